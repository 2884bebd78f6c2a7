"""Pairs of mentions for the analysis of attention (CDLM section 3.5: "We randomly sampled 1,000 positive and
1,000 negative coreference-pair examples").

Where the paper is silent: the two mentions are in different documents of one topic, and negatives are drawn
uniformly from all such pairs that do not corefer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cdlm_lab.data.records import CoreferenceMention, Kind, Topic
from cdlm_lab.errors import check_least
from cdlm_lab.tasks.coreference.examples import corefer, group_mentions, mentions_in, pairs_within

_POSITIVE, _NEGATIVE = 11, 12  # further streams, for pairs in the analysis of attention


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedPair:
    """A source mention, a target in another document of the same topic, and whether they corefer."""

    source: CoreferenceMention
    target: CoreferenceMention
    topic: str
    corefer: bool


def sample_aligned_pairs(topics: Sequence[Topic], kind: Kind, *, count: int, seed: int) -> list[AlignedPair]:
    """Sample up to `count` pairs that corefer and as many that do not, without replacement; fewer if there
    are fewer. Which of two mentions is the source is random too. Positives and negatives have separate random
    streams, so that a larger number of one does not change the other."""
    check_least(count=count)
    check_least(0, seed=seed)
    groups = group_mentions(topics, kind, "topic", None)
    mentions = mentions_in(groups)
    pairs = pairs_within(groups)
    documents = np.unique([mention.document for mention in mentions], return_inverse=True)[1]
    topic_of = {document.id: topic.id for topic in topics for document in topic.documents}
    pairs = pairs[documents[pairs[:, 0]] != documents[pairs[:, 1]]]
    same = corefer(groups, pairs)
    sampled = []
    for stream, sort, what in ((_POSITIVE, same, "corefer"), (_NEGATIVE, ~same, "do not corefer")):
        among = pairs[sort]
        if not len(among):
            lone = f"of {len(mentions)} {kind} mentions no two in different documents of a topic {what}"
            raise ValueError(f"{lone}; there is nothing to compare")
        generator = np.random.default_rng([seed, stream])
        drawn = among[generator.choice(len(among), min(count, len(among)), replace=False)]
        turned = generator.random(len(drawn)) < 0.5
        drawn[turned] = drawn[turned, ::-1]
        for source, target in ((mentions[first], mentions[second]) for first, second in drawn):
            topic = topic_of[source.document]
            sampled.append(
                AlignedPair(source=source, target=target, topic=topic, corefer=stream == _POSITIVE)
            )
    return sampled
