"""Pairs of mentions of two documents, for asking whether attention aligns them (CDLM section 3.5).

"We randomly sampled 1,000 positive and 1,000 negative coreference-pair examples [...] for both events and
entities. [...] For each example, which contains two mention spans, we randomly pick one to be considered as
the source span, while the second one is the target span."

Choices where the paper is silent: the two mentions stand in different documents of one topic; negatives are
drawn from all such pairs that do not corefer, each as likely as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cdlm_lab.data.coreference_records import CoreferenceMention, Kind, Topic

from .mention_pairs import group_mentions, mentions_in, pairs_within

# Streams of random numbers, so that more pairs of one sort leave those of the other as they are.
_POSITIVE, _NEGATIVE = 11, 12


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedPair:
    """A source, a target in another document of the same topic, and whether they corefer."""

    source: CoreferenceMention
    target: CoreferenceMention
    topic: str
    corefer: bool


def sample_aligned_pairs(topics: Sequence[Topic], kind: Kind, *, count: int, seed: int) -> list[AlignedPair]:
    """At most `count` pairs that corefer and as many that do not, drawn without replacement.

    All that there are if there are fewer. The same for the same topics, kind, count and seed; which of two
    mentions is the source is drawn too.

    Raises:
        ValueError: no pair that corefers across documents, or none that does not; `count` below 1, a seed
            below 0.
    """
    if count < 1 or seed < 0:
        raise ValueError(f"count is {count} and seed {seed}; they must be at least 1 and 0")
    groups = group_mentions(topics, kind, "topic", None)
    mentions = mentions_in(groups)
    pairs = pairs_within(groups)
    documents = np.unique([mention.document for mention in mentions], return_inverse=True)[1]
    clusters = np.unique([mention.cluster for mention in mentions], return_inverse=True)[1]
    topic_of = {document.id: topic.id for topic in topics for document in topic.documents}
    pairs = pairs[documents[pairs[:, 0]] != documents[pairs[:, 1]]]
    corefer = clusters[pairs[:, 0]] == clusters[pairs[:, 1]]
    found = []
    for stream, sort, what in ((_POSITIVE, corefer, "corefer"), (_NEGATIVE, ~corefer, "do not corefer")):
        among = pairs[sort]
        if not len(among):
            raise ValueError(
                f"of {len(mentions)} {kind} mentions no two in different documents of a topic {what}; "
                "there is nothing to compare"
            )
        generator = np.random.default_rng([seed, stream])
        drawn = among[generator.choice(len(among), min(count, len(among)), replace=False)]
        turned = generator.random(len(drawn)) < 0.5
        for (first, second), turn in zip(drawn, turned, strict=True):
            source, target = (second, first) if turn else (first, second)
            found.append(
                AlignedPair(
                    source=mentions[source],
                    target=mentions[target],
                    topic=topic_of[mentions[source].document],
                    corefer=stream == _POSITIVE,
                )
            )
    return found
