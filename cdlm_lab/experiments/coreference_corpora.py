"""From the corpus that notebook 03 names to groups of mentions: ECB+, the released JSON, CoNLL files, or
storyworld."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from cdlm_lab.data.coreference_conll import find_conll, read_conll_corpus
from cdlm_lab.data.coreference_json import has_mentions, read_coreference_json
from cdlm_lab.data.coreference_records import KINDS, Kind, PassedOver, Topic, mentions_of, without_repeats
from cdlm_lab.data.coreference_storyworld import read_storyworld_topics
from cdlm_lab.data.ecb_plus import read_ecb_plus
from cdlm_lab.data.files import DataError
from cdlm_lab.examples.mention_context import check_context
from cdlm_lab.examples.mention_pairs import LEVELS, MentionGroup, group_mentions
from cdlm_lab.parameters import ParameterError, check_choice, check_types
from cdlm_lab.topic_clustering import predict_topics, read_predicted_topics

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
AUTO = "auto"


@dataclass(frozen=True, kw_only=True)
class CoreferenceSettings:
    """Which mentions, in which context, may corefer with which, and which clusters count.

    `corpus`: `storyworld`, the folder of ECB+, a folder of `<split>.json` and `<split>_<kind>.json` as the
    released code has them, or a folder of CoNLL files (`coreference_conll.find_conll`), or one such file.
    `kind`: event or entity. `context`: documents or sentences. `topic_level`: which documents of dev and test
    are searched together: topic, subtopic, predicted (as the file of predicted topics says, else documents
    clustered by their words), or auto: predicted if there is such a file, else topic. Training pairs are of
    the corpus's topics. `predicted_topics`: that file; "" = one in the folder of the corpus that is called
    predicted_topics*.json, if there is one. Documents of a split of which it lists none stay in their topics,
    as the released code has dev. `train_stories`, `held_out_stories`: of storyworld. `dev_topics`,
    `test_topics`: names of topics, separated by spaces; "" = all. Of a corpus without splits they say which
    topics are dev and test; the others are train. `singletons`: False = scores, and the choice of the
    threshold, leave out clusters of one mention.
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
    singletons: bool
    seed: int

    def __post_init__(self) -> None:
        check_types(self)
        check_context(self.context)
        check_choice(self, KINDS, "kind")
        check_choice(self, (AUTO, *LEVELS), "topic_level")
        if self.predicted_topics and self.topic_level not in (AUTO, "predicted"):
            raise ParameterError(
                f"predicted_topics is given but topic_level is {self.topic_level!r}; set it to 'predicted'"
            )


def read_topics(
    settings: CoreferenceSettings, split: Split, passed_over: PassedOver | None = None
) -> list[Topic]:
    """All topics of a split; of dev and test only those asked for. `passed_over`: counts what of a foreign
    corpus could not be used.

    Raises what the readers raise, and ParameterError for a topic that is not there.
    """
    passed_over = PassedOver() if passed_over is None else passed_over
    stories = settings.train_stories if split == "train" else settings.held_out_stories
    chosen = {"dev": settings.dev_topics.split(), "test": settings.test_topics.split()}
    if whole := _whole_corpus(settings, passed_over):
        return _divided(settings.corpus, whole, chosen, split)
    topics = read_corpus(settings.corpus, split, stories=stories, kind=settings.kind, passed_over=passed_over)
    wanted = chosen.get(split)
    if not wanted:
        return topics
    _check_names(f"{split}_topics", wanted, topics)
    return [topic for topic in topics if topic.id in wanted]


def read_corpus(
    corpus: str,
    split: Split,
    *,
    stories: int,
    kind: Kind | None = None,
    passed_over: PassedOver | None = None,
) -> list[Topic]:
    """All topics of a split of storyworld (so many `stories`), of a folder with the released JSON, of ECB+,
    or of CoNLL files, which hold one kind of mentions. `kind`: None = both; `passed_over`: None = what cannot
    be used is refused. Raises what the readers raise."""
    folder = Path(corpus)
    counted = PassedOver() if passed_over is None else passed_over
    if corpus == "storyworld":
        return list(read_storyworld_topics(split, stories))
    if (folder / f"{split}.json").exists():
        if kind and not has_mentions(folder, split, kind):
            other = KINDS[1 - KINDS.index(kind)]
            raise ParameterError(
                f"{corpus} has no file of {kind} mentions for {split}; set kind to {other!r}"
            )
        kinds = (kind,) if kind else KINDS
        topics = list(read_coreference_json(folder, split, kinds=kinds, passed_over=passed_over))
    elif kind is None or _is_ecb_plus(folder):
        topics = list(read_ecb_plus(corpus, split))
    else:
        files = find_conll(corpus, kind or "entity")
        if split not in files:
            raise _no_split(folder, split, files)
        for file in files.get("", []):
            counted.add("CoNLL file whose name says no split", str(file))
        topics = read_conll_corpus(files[split], kind=kind, name=split, passed_over=counted)
    return without_repeats(topics, counted)


def _is_ecb_plus(folder: Path) -> bool:
    return any((folder / name).is_dir() for name in ("ECB+", "ECB+_LREC2014/ECB+"))


def _no_split(folder: Path, split: str, files: Mapping[str, Sequence[Path]]) -> DataError:
    if not folder.exists():
        what = "there is no such file or folder"
        return DataError(folder, what, "check the spelling of the path", field="corpus")
    if not files:
        what = f"neither ECB+, nor {split}.json of the released code, nor CoNLL files (*.conll, *_conll)"
        return DataError(folder, what, "give a folder that holds one of them, or storyworld", field="folder")
    found = ", ".join(f"{name or 'no split'} ({len(paths)})" for name, paths in files.items())
    what = f"no CoNLL files of {split}, only of {found}"
    return DataError(folder, what, f"call one {split}.conll, or put it in a folder {split}", field="folder")


def _whole_corpus(settings: CoreferenceSettings, passed_over: PassedOver) -> list[Topic]:
    """All topics of CoNLL files that are of no split, or of one; [] for other corpora."""
    folder = Path(settings.corpus)
    has_json = any((folder / f"{split}.json").exists() for split in SPLITS)
    if settings.corpus == "storyworld" or has_json or _is_ecb_plus(folder):
        return []
    files = find_conll(folder, settings.kind)
    if len(files) != 1:
        return []
    (only,) = files.values()
    topics = read_conll_corpus(only, kind=settings.kind, name="all", passed_over=passed_over)
    return without_repeats(topics, passed_over)


def _divided(
    corpus: str, topics: Sequence[Topic], chosen: Mapping[str, Sequence[str]], split: Split
) -> list[Topic]:
    """The topics of a split of a corpus that has none."""
    if len(topics) < len(SPLITS):
        raise ParameterError(
            f"{corpus} is not split and has {len(topics)} topics, but train, dev and test take one each; to "
            "test on it alone, call it test.conll and put train.conll and dev.conll of another one beside it"
        )
    for name, wanted in chosen.items():
        if not wanted:
            raise ParameterError(
                f"{corpus} is not split into train, dev and test: name some of its {len(topics)} topics as "
                f"{name}_topics, separated by spaces ({_some(topics)})"
            )
        _check_names(f"{name}_topics", wanted, topics)
    if both := set(chosen["dev"]) & set(chosen["test"]):
        raise ParameterError(f"{min(both)} is in dev_topics and in test_topics; leave it in one of them")
    held_out = {*chosen["dev"], *chosen["test"]}
    found = [
        topic
        for topic in topics
        if (topic.id in chosen[split] if split in chosen else topic.id not in held_out)
    ]
    if not found:
        raise ParameterError(
            f"dev_topics and test_topics take all topics of {corpus}; leave some to learn from"
        )
    return found


def _check_names(parameter: str, wanted: Sequence[str], topics: Sequence[Topic]) -> None:
    there = {topic.id for topic in topics}
    if missing := [name for name in wanted if name not in there]:
        raise ParameterError(f"{parameter} names {missing[0]}, but the topics are {_some(topics)}")


def _some(topics: Sequence[Topic], most: int = 50) -> str:
    return ", ".join(topic.id for topic in topics[:most]) + (", ..." if len(topics) > most else "")


@dataclass(frozen=True, kw_only=True)
class TopicLevel:
    """Which documents of a split are searched together: a `level` of LEVELS, with the group of each document
    where that is `predicted`; `described`: the same in words."""

    level: str
    described: str
    predicted: Mapping[str, str] | None = None


def topic_level_of(settings: CoreferenceSettings, topics: Sequence[Topic], split: Split) -> TopicLevel:
    """What `topic_level` means for a split.

    Raises:
        DataError: a file of predicted topics that lists some documents with mentions and not others, and as
            of `read_predicted_topics`.
    """
    level = settings.topic_level if split != "train" else "topic"
    files = _predicted_files(settings) if level in (AUTO, "predicted") else []
    if not files and level != "predicted":
        level = "topic" if level == AUTO else level
        return TopicLevel(level=level, described=level)
    documents = {mention.document for mention in mentions_of(topics, kind=settings.kind)}
    for file in files:
        listed = read_predicted_topics(file)
        if documents & listed.keys():
            kept = read_predicted_topics(file, documents=documents)
            described = f"predicted topics of {file.name}"
            return TopicLevel(level="predicted", predicted=kept, described=described)
    if files:
        described = f"topic, as {files[0].name} lists none of these documents"
        return TopicLevel(level="topic", described=described)
    texts = {document.id: " ".join(document.tokens) for topic in topics for document in topic.documents}
    found = predict_topics(texts, clusters=None, seed=settings.seed)
    return TopicLevel(level="predicted", predicted=found, described="predicted topics, by words")


def _predicted_files(settings: CoreferenceSettings) -> list[Path]:
    if settings.predicted_topics:
        return [Path(settings.predicted_topics)]
    return sorted(Path(settings.corpus).glob("predicted_topics*.json"))


def mention_groups(
    settings: CoreferenceSettings, topics: Sequence[Topic], level: TopicLevel
) -> list[MentionGroup]:
    """Mentions of the kind in groups that may corefer.

    Raises ParameterError when there are none.
    """
    if not any(mentions_of(topics, kind=settings.kind)):
        raise ParameterError(f"{settings.corpus}: no {settings.kind} mentions in {len(topics)} topics")
    return group_mentions(topics, settings.kind, level.level, level.predicted)
