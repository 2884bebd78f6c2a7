"""From the corpus that notebook 03 names to groups of mentions: ECB+, the released JSON, or storyworld."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cdlm_lab.data.coreference_json import read_coreference_json
from cdlm_lab.data.coreference_records import KINDS, Topic
from cdlm_lab.data.coreference_storyworld import read_storyworld_topics
from cdlm_lab.data.ecb_plus import read_ecb_plus
from cdlm_lab.examples.mention_context import check_context
from cdlm_lab.examples.mention_pairs import LEVELS, MentionGroup, group_mentions
from cdlm_lab.parameters import ParameterError, check_choice, check_types
from cdlm_lab.topic_clustering import predict_topics, read_predicted_topics

Split = Literal["train", "dev", "test"]


@dataclass(frozen=True, kw_only=True)
class CoreferenceSettings:
    """Which mentions, in which context, may corefer with which.

    `corpus`: `storyworld`, the folder of ECB+, or a folder of `<split>.json` and `<split>_<kind>.json` as the
    released code has them. `kind`: event or entity. `context`: documents or sentences. `topic_level`: topic,
    subtopic or predicted (documents clustered by their words, or as the file `predicted_topics` says for
    those it lists). `train_stories`, `held_out_stories`: of storyworld. `dev_topics`, `test_topics`: names of
    topics, separated by spaces; "" = all.
    """

    corpus: str
    kind: str
    context: str
    topic_level: str
    predicted_topics: str
    train_stories: int
    held_out_stories: int
    dev_topics: str
    test_topics: str
    seed: int

    def __post_init__(self) -> None:
        check_types(self)
        check_context(self.context)
        check_choice(self, KINDS, "kind")
        check_choice(self, LEVELS, "topic_level")
        if self.predicted_topics and self.topic_level != "predicted":
            raise ParameterError(
                f"predicted_topics is given but topic_level is {self.topic_level!r}; set it to 'predicted'"
            )


def read_topics(settings: CoreferenceSettings, split: Split) -> list[Topic]:
    """All topics of a split; of dev and test only those asked for.

    Raises what the readers raise, and ParameterError for a topic that is not there.
    """
    stories = settings.train_stories if split == "train" else settings.held_out_stories
    topics = read_corpus(settings.corpus, split, stories=stories)
    wanted = {"dev": settings.dev_topics, "test": settings.test_topics}.get(split, "").split()
    if not wanted:
        return topics
    there = [topic.id for topic in topics]
    if missing := [name for name in wanted if name not in there]:
        raise ParameterError(f"{split}_topics names {missing[0]}, but the topics are {', '.join(there)}")
    return [topic for topic in topics if topic.id in wanted]


def read_corpus(corpus: str, split: Split, *, stories: int) -> list[Topic]:
    """All topics of a split of storyworld (so many `stories`), of a folder with the released JSON, or of
    ECB+. Raises what the readers raise."""
    if corpus == "storyworld":
        return list(read_storyworld_topics(split, stories))
    if (Path(corpus) / f"{split}.json").exists():
        return list(read_coreference_json(corpus, split))
    return list(read_ecb_plus(corpus, split))


def mention_groups(
    settings: CoreferenceSettings, topics: Sequence[Topic], *, level: str
) -> list[MentionGroup]:
    """Mentions of the kind in groups that may corefer.

    Raises ParameterError when there are none.
    """
    predicted = _predicted(settings, topics) if level == "predicted" else None
    groups = group_mentions(topics, settings.kind, level, predicted)
    if not groups:
        raise ParameterError(f"{settings.corpus}: no {settings.kind} mentions in {len(topics)} topics")
    return groups


def _predicted(settings: CoreferenceSettings, topics: Sequence[Topic]) -> Mapping[str, str]:
    """Group of each document: from the file where it lists all of them, else by their words."""
    texts = {document.id: " ".join(document.tokens) for topic in topics for document in topic.documents}
    if settings.predicted_topics:
        listed = read_predicted_topics(settings.predicted_topics)
        if texts.keys() <= listed.keys():
            return listed
    return predict_topics(texts, clusters=None, seed=settings.seed)
