"""Coreference across documents (CDLM sections 3.2, A.2, C.1; Tables 2 and 3): notebook 03.

A pair scorer is trained on the train topics; pairs of the dev and test mentions are scored, mentions are
clustered by average linkage, and the threshold is the one with the best CoNLL F1 on dev. Test topics are
looked at once, with that threshold.

Choices where the paper is silent, all but the last as in the released code: AdamW without weight decay
(beta_2 0.999, epsilon 1e-8), a rate that falls linearly without warm-up; a look at dev after each epoch,
where the checkpoint with the best CoNLL F1 is kept, each at its own best threshold (`checkpoint="loss"`: that
of the lowest loss on a sample of dev pairs, which is cheaper); training pairs are made within gold topics, as
those of dev; test is searched within predicted topics where they are known (`topic_level`); scores are those
of the whole corpus, singletons kept. Negatives are drawn at random, as the paper says; the released code
takes all.

From the corpus that notebook 03 names to groups of mentions: ECB+, the released JSON, CoNLL files, or
storyworld.

Probabilities of many pairs of mentions, kept on disk as they come, so that a stopped run goes on.

Pairs are read in batches of like length and like number of global tokens; each pair once, or once in either
order, whose mean is taken.

Sentences first: pairs are scored by the sentences of their mentions, and whole documents are read only
for those that may corefer (the option `first_by_sentences` of notebook 03; in no paper).

The same scorer reads both. The threshold of the first go is the largest that passes over at most a stated
share of the pairs of dev that corefer; what it passes over elsewhere is measured, not chosen.

A pair that is passed over keeps its score by sentences: it is the same scorer's probability of the same
thing, read from less. Average linkage takes the mean over all pairs of two clusters, and to call a pair
impossible that nobody has read, with 0, would weigh more in it than anything that was read.

Training of the pair scorer, and from the trained one to clusters: probabilities of all pairs, merge trees,
and the threshold that is best on dev (CDLM sections 3.2 and C.1).

Systems and baselines on one key: scores with intervals, and tests of the differences (CDLM Table 2).

What is drawn again for intervals and tests is topics, where clusters cross topics those taken together.

Before and after a run of notebook 03: what it will cost, and its report with clusters as CoNLL files.

What notebook 03 shows of a prediction: clusters in context, wrong pairs, the tree of a group, a table.

Coreference in documents of one's own: from marked mentions to clusters, with a trained scorer.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import plotly.graph_objects as go
import torch
from transformers import PreTrainedTokenizerBase

from cdlm_lab.clustering import (
    ThresholdChoice,
    best_threshold,
    clusters_of,
    labels_at,
    merge_tree,
    predict_topics,
    read_predicted_topics,
    square_scores,
)
from cdlm_lab.data.coreference_files import (
    find_conll,
    has_mentions,
    read_conll_corpus,
    read_coreference_json,
    write_conll,
)
from cdlm_lab.data.ecb_plus import read_ecb_plus
from cdlm_lab.data.files import DataError, plain_name, read_text
from cdlm_lab.data.records import (
    KINDS,
    CoreferenceDocument,
    CoreferenceMention,
    Kind,
    PassedOver,
    Topic,
    gold_clusters,
    mentions_of,
    without_repeats,
)
from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.data.typed_documents import parse_marked_documents
from cdlm_lab.examples.collate import Collate, batches_by_length, like_lengths_together
from cdlm_lab.examples.mention_pairs import (
    LEVELS,
    LabelledPairs,
    MentionGroup,
    MentionPairExamples,
    check_context,
    corefer,
    group_mentions,
    marks_from_tokenizer,
    mentions_in,
    pairs_within,
    sampled_pairs,
)
from cdlm_lab.examples.tokens import EncodedDocuments, from_tokenizer
from cdlm_lab.experiments.runs import KeptNumbers, time_told
from cdlm_lab.metrics.coreference import (
    Parts,
    count_table,
    joined_topics,
    mean_f1,
    parts_by_topic,
    same_head,
    score,
    scores_of_parts,
    total_parts,
)
from cdlm_lab.metrics.significance import compare, holm, percentile_interval, resampled_sums
from cdlm_lab.models.checkpoint import default_device
from cdlm_lab.models.coreference import PairScorer, load_pair_scorer
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.precision import Precision, computing_in, precision_told
from cdlm_lab.parameters import ParameterError, check_choice, check_least, check_types
from cdlm_lab.progress import Progress
from cdlm_lab.report import Report, Run, write_json
from cdlm_lab.training.checkpoints import MODEL_FOLDER, TRAINING_FOLDER, save_model
from cdlm_lab.training.config import TrainingConfig, Workers
from cdlm_lab.training.fine_tuning import Recipe, TrainingJob, config_of_passes, train_in_processes
from cdlm_lab.training.history import seconds_of_batch as seconds_to_learn
from cdlm_lab.training.processes import ALONE, Processes
from cdlm_lab.training.trainer import TrainingResult
from cdlm_lab.training.validation import Judge
from cdlm_lab.widgets.coreference import (
    CoreferenceErrors,
    PairError,
    ShownCluster,
    clusters_html,
    dendrogram_figure,
    errors_html,
)
from cdlm_lab.widgets.html import ShownMention, joined, seconds_in_words
from cdlm_lab.widgets.score_tables import score_table
from cdlm_lab.widgets.tables import ScoreTable, published_rows

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


# The parameters of notebook 03.
PARAMETERS = (
    "run_folder",
    "corpus",
    "kind",
    "model",
    "context",
    "topic_level",
    "predicted_topics",
    "dev_topics",
    "test_topics",
    "train_stories",
    "held_out_stories",
    "max_length",
    "window",
    "reset_globals",
    "attention",
    "attention_dropout",
    "epochs",
    "negatives_per_positive",
    "train_pairs",
    "batch_size",
    "micro_batch_size",
    "learning_rate",
    "warmup_steps",
    "precision",
    "checkpoint",
    "parallel",
    "workers",
    "both_orders",
    "first_by_sentences",
    "singletons",
    "compare_with",
    "own_documents",
    "seed",
)
CHECKPOINTS = ("conll", "loss")
# Of so many dev pairs the loss is watched after each epoch; at most a quarter of the training pairs.
DEV_PAIRS, LEAST_DEV_PAIRS = 2_000, 64


@dataclass(frozen=True, kw_only=True)
class PairSettings:
    """How pairs are drawn and read, and which checkpoint is kept. `epochs`: passes over the positive pairs,
    negatives drawn anew in each. `train_pairs`: at most so many a pass, 0 = all. `max_length`: of a sequence
    in tokens. `checkpoint`: after each epoch, the best is kept by CoNLL F1 of the clusters of all of dev,
    "conll", or by the loss of some dev pairs, "loss". `both_orders`: score (i, j) and (j, i), take the mean.
    `batch_size`: pairs scored at once. `attention_dropout`: of attention weights; that of hidden states is
    the checkpoint's. `precision`: of the forward pass in training and scoring, as of `resolve_precision`.
    `first_by_sentences`: score all pairs by sentences first, and read whole documents only for those that
    reach a threshold, which at most this share of the coreferring pairs of dev does not; 0 = read all."""

    epochs: int
    negatives_per_positive: float
    train_pairs: int
    max_length: int
    checkpoint: str
    both_orders: bool
    batch_size: int
    reset_globals: bool = False  # as of `load_pair_scorer`
    attention_dropout: AttentionDropout = 0.0  # likewise
    precision: Precision = "auto"
    first_by_sentences: float = 0.0

    def __post_init__(self) -> None:
        check_types(self)
        check_choice(self, CHECKPOINTS, "checkpoint")
        check_least(self, 1, "epochs", "batch_size")
        if self.train_pairs < 0:
            raise ParameterError(f"train_pairs is {self.train_pairs}; write 0 for all, or how many at most")
        if not 0 <= self.first_by_sentences < 1:
            raise ParameterError(
                f"first_by_sentences is {self.first_by_sentences}; write the share of coreferring pairs that "
                "may be passed over, as 0.01, or 0 to read all pairs in whole documents"
            )


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """All that a run needs, before anything is trained.

    Attributes:
        encoder: what was given to `prepare` as `model`, `window` and `attention`.
        levels: of each split, which documents are searched together.
        passed_over: of each split, what of the corpus could not be used.
        documents: of each split, in subwords; each is tokenised once, whatever reads it.
    """

    model: PairScorer
    encoder: Mapping[str, Any]
    tokenizer: PreTrainedTokenizerBase
    settings: CoreferenceSettings
    pairs: PairSettings
    topics: Mapping[str, list[Topic]]
    levels: Mapping[str, TopicLevel]
    passed_over: Mapping[str, PassedOver]
    groups: Mapping[str, list[MentionGroup]]
    documents: Mapping[str, EncodedDocuments]
    train_examples: MentionPairExamples
    dev_examples: MentionPairExamples


def prepare(
    *,
    settings: CoreferenceSettings,
    pairs: PairSettings,
    model: str,
    window: int,
    attention: str,
) -> Prepared:
    """Read the corpus, load the encoder, draw the pairs; nothing is trained. What of the corpus could not be
    used is printed.

    Raises ValueError with one clear line for whatever does not fit.
    """
    _check_goes(settings, pairs)
    scorer, tokenizer = load_pair_scorer(
        model,
        max_length=pairs.max_length,
        window=window,
        attention=attention,
        seed=settings.seed,
        reset_globals=pairs.reset_globals,
        attention_dropout=pairs.attention_dropout,
    )
    topics, passed_over = _read_splits(settings)
    levels = {split: topic_level_of(settings, found, split) for split, found in topics.items()}
    groups = {split: mention_groups(settings, found, levels[split]) for split, found in topics.items()}
    drawn = _training_pairs(groups["train"], pairs, seed=settings.seed)
    watched = _watched_pairs(groups["dev"], pairs, seed=settings.seed, training=len(drawn.pairs))
    documents = {split: encoded_documents(found, tokenizer) for split, found in topics.items()}
    form = {"context": settings.context, "max_length": pairs.max_length, "tokenizer": tokenizer}
    train_examples, dev_examples = (
        pair_examples(documents[split], groups[split], found.pairs, labels=found.labels, **form)
        for split, found in (("train", drawn), ("dev", watched))
    )
    for split in ("dev", "test"):
        _check_room(documents[split], groups[split], **form)
    return Prepared(
        model=scorer,
        encoder={"model": model, "window": window, "attention": attention},
        tokenizer=tokenizer,
        settings=settings,
        pairs=pairs,
        topics=topics,
        levels=levels,
        passed_over=passed_over,
        groups=groups,
        documents=documents,
        train_examples=train_examples,
        dev_examples=_longest_first(dev_examples),
    )


def _check_goes(settings: CoreferenceSettings, pairs: PairSettings) -> None:
    """Raise ParameterError for a first go by sentences where there would be no second."""
    if pairs.first_by_sentences and settings.context == "sentences":
        raise ParameterError(
            f"first_by_sentences is {pairs.first_by_sentences}, but context is 'sentences', which is read in "
            "one go; write 0, or context 'documents'"
        )


def _read_splits(
    settings: CoreferenceSettings,
) -> tuple[dict[str, list[Topic]], dict[str, PassedOver]]:
    """The topics of each split, and what could not be used, which is printed too."""
    passed_over = {split: PassedOver() for split in SPLITS}
    topics = {split: read_topics(settings, split, passed_over[split]) for split in SPLITS}
    for split, counted in passed_over.items():
        for line in counted.lines():
            print(f"{split}: {line}")
    return topics, passed_over


def _check_room(documents: EncodedDocuments, groups: Sequence[MentionGroup], **form: Any) -> None:
    """Raise ValueError, before hours of training, if the two longest mentions of a group do not fit."""
    examples = pair_examples(documents, groups, np.empty((0, 2), dtype=int), **form)
    lengths = [np.ptp(examples.documents[one.document].subwords(one.tokens)) for one in examples.mentions]
    ends = np.cumsum([len(group.mentions) for group in groups])
    numbers = [range(end - len(group.mentions), end) for group, end in zip(groups, ends, strict=True)]
    longest = [sorted(own, key=lengths.__getitem__)[-2:] for own in numbers if len(own) > 1]
    pairs = replace(examples, pairs=np.array(longest, dtype=int).reshape(-1, 2))
    for number in range(len(longest)):
        pairs.size_of(number)


def encoded_documents(topics: Sequence[Topic], tokenizer: PreTrainedTokenizerBase) -> EncodedDocuments:
    """The documents of topics in subwords."""
    return EncodedDocuments((document for topic in topics for document in topic.documents), tokenizer)


def pair_examples(
    documents: EncodedDocuments,
    groups: Sequence[MentionGroup],
    pairs: np.ndarray,
    *,
    labels: np.ndarray | None = None,
    context: str,
    max_length: int,
    tokenizer: PreTrainedTokenizerBase,
) -> MentionPairExamples:
    """A data set of pairs, numbers in `mentions_in(groups)`; `labels`: None = not known."""
    return MentionPairExamples(
        mentions=mentions_in(groups),
        pairs=pairs,
        labels=labels,
        documents=documents,
        special=from_tokenizer(tokenizer),
        marks=marks_from_tokenizer(tokenizer),
        context=context,
        max_length=max_length,
    )


def _training_pairs(groups: Sequence[MentionGroup], pairs: PairSettings, *, seed: int) -> LabelledPairs:
    """The pairs of all epochs, one after the other."""
    drawn = [
        _first(
            sampled_pairs(
                groups, negatives_per_positive=pairs.negatives_per_positive, seed=seed, epoch=epoch
            ),
            pairs.train_pairs or math.inf,
        )
        for epoch in range(pairs.epochs)
    ]
    return LabelledPairs(
        pairs=np.concatenate([one.pairs for one in drawn]),
        labels=np.concatenate([one.labels for one in drawn]),
    )


def _watched_pairs(
    groups: Sequence[MentionGroup], pairs: PairSettings, *, seed: int, training: int
) -> LabelledPairs:
    """Of dev, while so many pairs are trained on."""
    drawn = sampled_pairs(groups, negatives_per_positive=pairs.negatives_per_positive, seed=seed, epoch=0)
    return _first(drawn, min(DEV_PAIRS, max(LEAST_DEV_PAIRS, training // 4)))


def _longest_first(examples: MentionPairExamples) -> MentionPairExamples:
    """For evaluation, where the order does not matter: batches with little padding."""
    return examples.in_order(np.argsort(lengths_of(examples), kind="stable")[::-1])


def lengths_of(examples: MentionPairExamples) -> list[int]:
    """Tokens of each sequence."""
    return [examples.length_of(number) for number in range(len(examples))]


def _first(pairs: LabelledPairs, count: float) -> LabelledPairs:
    end = int(min(count, len(pairs.pairs)))
    return LabelledPairs(pairs=pairs.pairs[:end], labels=pairs.labels[:end])


def score_pairs(
    model: PairScorer,
    examples: MentionPairExamples,
    *,
    file: Path | None,
    batch_size: int,
    both_orders: bool = False,
    precision: Precision = "float32",
    name: str = "scoring",
) -> np.ndarray:
    """Probability that the mentions of each pair corefer; float32 (pairs,).

    Args:
        model: on the device where it is to run.
        examples: labels, if any, are not read.
        file: `.npy`; what it holds is not scored again, and it grows every 20 seconds. One file belongs to
            one model and one list of pairs; keep it in the folder of their run. None = nothing is kept.
        batch_size: pairs read at once; changes nothing but speed and memory.
        both_orders: score (i, j) and (j, i) and take the mean; the second go has a file of its own.
        precision: of the forward pass, as of `resolve_precision`; probabilities are float32 in each.

    Raises:
        ValueError: the file holds another number of pairs.
    """
    unlabelled = replace(examples, labels=None)
    form = {"batch_size": batch_size, "precision": precision, "name": name}
    scores = _scored(model, unlabelled, file=file, **form)
    if not both_orders:
        return scores
    exchanged = replace(unlabelled, pairs=np.ascontiguousarray(examples.pairs[:, ::-1]))
    other = file and file.with_name(f"{file.stem}-exchanged{file.suffix}")
    return (scores + _scored(model, exchanged, file=other, **form)) / 2


def seconds_of_batch(
    model: PairScorer,
    examples: MentionPairExamples,
    numbers: Sequence[int],
    *,
    precision: Precision = "float32",
) -> float:
    """Seconds that one pair of a batch of these takes, measured on the second go."""
    unlabelled = replace(examples, labels=None)
    batch = Collate(pad_token_id=model.config.pad_token_id)([unlabelled[number] for number in numbers])
    model.eval()
    with computing_in(precision, model.device):
        _probabilities(model, batch)
        start = time.perf_counter()
        _probabilities(model, batch)
    return (time.perf_counter() - start) / len(numbers)


def _scored(
    model: PairScorer,
    examples: MentionPairExamples,
    *,
    file: Path | None,
    batch_size: int,
    precision: Precision,
    name: str,
) -> np.ndarray:
    collate = Collate(pad_token_id=model.config.pad_token_id)
    model.eval()
    with KeptNumbers(file, (len(examples),)) as scores, computing_in(precision, model.device):
        done = len(examples) - len(scores.missing)
        with Progress(total=len(examples), initial=done, desc=name, unit="pair") as bar:
            for numbers in _batches(examples, scores.missing, batch_size):
                batch = collate([examples[number] for number in numbers])
                scores.values[numbers] = _probabilities(model, batch)
                scores.save_when_due()
                bar.update(len(numbers))
    return scores.values


def _batches(examples: MentionPairExamples, numbers: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """Batches of pairs, the longest first."""
    sizes = [examples.size_of(int(number)) for number in numbers]
    batches = batches_by_length(
        [size.length for size in sizes], [size.global_count for size in sizes], batch_size
    )
    return [numbers[batch] for batch in batches]


@torch.no_grad()  # not inference_mode: the judge of a training asks between updates
def _probabilities(model: PairScorer, batch: dict[str, torch.Tensor]) -> np.ndarray:
    on_device = {key: tensor.to(model.device) for key, tensor in batch.items()}
    return torch.sigmoid(model(**on_device).logits).cpu().numpy()


MORE_AT_ONCE = 8  # times as many pairs of sentences as of documents


@dataclass(frozen=True, kw_only=True, eq=False)
class FirstGo:
    """What sentences say of the pairs of a split.

    Attributes:
        scores: float32 (pairs,), probabilities by sentences.
        threshold: pairs that score less are not read in whole documents.
    """

    scores: np.ndarray
    threshold: float

    @property
    def read(self) -> np.ndarray:
        """bool (pairs,), True = read in whole documents."""
        return self.scores >= self.threshold


def by_sentences(
    model: PairScorer, examples: MentionPairExamples, *, file: Path | None, batch_size: int, **form: Any
) -> np.ndarray:
    """The scores of the first go, kept beside `file`; arguments as of `score_pairs`. Sentences are short: so
    many more are read at once."""
    sentences, kept = replace(examples, context="sentences"), _beside(file, "sentences")
    return score_pairs(model, sentences, file=kept, batch_size=MORE_AT_ONCE * batch_size, **form)


def passing_threshold(scores: np.ndarray, corefer: np.ndarray, *, lost: float) -> float:
    """The largest threshold that at most a share of the coreferring pairs score less than; 0 if none does.

    Args:
        scores: (pairs,).
        corefer: bool (pairs,).
        lost: the share, in [0, 1).

    Example:
        >>> scores, corefer = np.array([0.1, 0.2, 0.3, 0.9]), np.array([True, False, True, True])
        >>> passing_threshold(scores, corefer, lost=0.34), passing_threshold(scores, corefer, lost=0.3)
        (0.3, 0.1)
    """
    found = np.sort(scores[corefer])
    return float(found[int(lost * len(found))]) if len(found) else 0.0


def in_two_goes(
    model: PairScorer, examples: MentionPairExamples, first: FirstGo, *, file: Path | None, **form: Any
) -> np.ndarray:
    """Scores of whole documents where these are read, of sentences elsewhere; float32 (pairs,). Arguments as
    of `score_pairs`."""
    return _in_whole(model, examples, first.scores, first.read, file=_beside(file, "read"), **form)


def in_full(
    model: PairScorer, examples: MentionPairExamples, first: FirstGo, *, file: Path | None, **form: Any
) -> np.ndarray:
    """As if there had been no first go: what `in_two_goes` has read is not read again."""
    scores = in_two_goes(model, examples, first, file=file, **form)
    return _in_whole(model, examples, scores, ~first.read, file=_beside(file, "passed-over"), **form)


def _in_whole(
    model: PairScorer,
    examples: MentionPairExamples,
    scores: np.ndarray,
    chosen: np.ndarray,
    *,
    file: Path | None,
    **form: Any,
) -> np.ndarray:
    """The scores, with those of the chosen pairs (bool) by whole documents."""
    found = scores.copy()
    if chosen.any():
        found[chosen] = score_pairs(model, examples.in_order(np.flatnonzero(chosen)), file=file, **form)
    return found


def _beside(file: Path | None, what: str) -> Path | None:
    return file and file.with_name(f"{file.stem}-{what}{file.suffix}")


THRESHOLDS = np.round(np.arange(0.02, 1.0, 0.02), 2)


@dataclass(frozen=True, kw_only=True)
class GroupPrediction:
    """The mentions of a group, the probability of each pair, (mentions, mentions), and their merge tree."""

    group: MentionGroup
    scores: np.ndarray
    tree: np.ndarray

    def clusters(self, threshold: float) -> list[tuple[CoreferenceMention, ...]]:
        """The mentions, put together while the mean probability between two clusters is above a threshold."""
        return clusters_of(self.group.mentions, labels_at(self.tree, threshold))


def training_config(
    prepared: Prepared,
    *,
    batch_size: int,
    micro_batch_size: int,
    learning_rate: float,
    warmup_steps: int,
    workers: Workers = "auto",
) -> TrainingConfig:
    """So many epochs over the drawn pairs, with a look at dev after each.

    Raises ParameterError for values that cannot be.
    """
    epochs = prepared.pairs.epochs
    return config_of_passes(
        items=len(prepared.train_examples) // epochs,
        epochs=epochs,
        batch_size=batch_size,
        micro_batch_size=micro_batch_size,
        learning_rate=learning_rate,
        warmup_steps=warmup_steps,
        precision=prepared.pairs.precision,
        workers=workers,
        seed=prepared.settings.seed,
    )


def train_scorer(
    prepared: Prepared,
    folder: Path,
    config: TrainingConfig,
    *,
    processes: Processes = ALONE,
    on_log: Callable[[Mapping[str, Any]], None] | None = None,
) -> TrainingResult:
    """Train the scorer and write it into `folder/model`, as it was after the epoch that `dev_judge` finds
    best or, without it, that of the lowest loss on the dev sample; checkpoints and history go to
    `folder/training`. An interrupted run writes no model. Errors as of `train_in_processes`."""
    settings = {"settings": prepared.settings, "pairs": prepared.pairs, "config": config}
    result = train_in_processes(
        Recipe(function=prepare_job, arguments=settings | prepared.encoder),
        job=_job(prepared, config),
        processes=processes,
        folder=folder / TRAINING_FOLDER,
        on_log=on_log,
    )
    if not result.interrupted:
        save_model(prepared.model, prepared.tokenizer, folder / MODEL_FOLDER)
    return result


def prepare_job(
    *,
    settings: CoreferenceSettings,
    pairs: PairSettings,
    model: str,
    window: int,
    attention: str,
    config: TrainingConfig,
) -> TrainingJob:
    """That of `prepare`, for each of several processes."""
    prepared = prepare(settings=settings, pairs=pairs, model=model, window=window, attention=attention)
    return _job(prepared, config)


def _job(prepared: Prepared, config: TrainingConfig) -> TrainingJob:
    """The pairs of an update are sorted by length, so that its micro-batches hold little padding."""
    examples = prepared.train_examples
    return TrainingJob(
        model=prepared.model,
        tokenizer=prepared.tokenizer,
        train_examples=examples.in_order(like_lengths_together(lengths_of(examples), config.batch_size)),
        validation_examples=prepared.dev_examples,
        collate=Collate(pad_token_id=prepared.tokenizer.pad_token_id),
        config=config,
        judge=dev_judge(prepared),
    )


def predict(prepared: Prepared, split: str, folder: Path) -> list[GroupPrediction]:
    """Score every pair of every group of a split; the scores are kept in `folder`, in files of the split."""
    return predict_groups(
        prepared,
        prepared.documents[split],
        prepared.groups[split],
        file=folder / f"{split}.npy",
        name=f"scoring {split}",
        first=first_go(prepared, split, folder),
    )


def first_go(prepared: Prepared, split: str, folder: Path | None) -> FirstGo | None:
    """What sentences say of the pairs of a split, with the threshold of dev; None where whole documents are
    read at once. `folder`: as of `predict`; None = nothing is kept."""
    if not prepared.pairs.first_by_sentences:
        return None
    scores = {
        one: by_sentences(
            prepared.model.to(default_device()),
            prediction_examples(prepared, prepared.documents[one], prepared.groups[one]),
            file=folder and folder / f"{one}.npy",
            name=f"sentences of {one}",
            **scoring_form(prepared),
        )
        for one in dict.fromkeys(("dev", split))
    }
    dev = prepared.groups["dev"]
    lost = prepared.pairs.first_by_sentences
    threshold = passing_threshold(scores["dev"], corefer(dev, pairs_within(dev)), lost=lost)
    return FirstGo(scores=scores[split], threshold=threshold)


def scoring_form(prepared: Prepared) -> dict[str, Any]:
    """How pairs are scored, as `score_pairs` takes it."""
    pairs = prepared.pairs
    return {name: getattr(pairs, name) for name in ("batch_size", "both_orders", "precision")}


def predict_groups(
    prepared: Prepared,
    documents: EncodedDocuments,
    groups: Sequence[MentionGroup],
    *,
    file: Path | None,
    name: str,
    first: FirstGo | None = None,
) -> list[GroupPrediction]:
    """Score every pair of every group, as of any documents.

    Args:
        documents: of the groups.
        file: where scores are kept, so that a stopped run goes on; None = nowhere.
        name: beside the progress bar.
        first: of these pairs, some of which are then not read; None = all are.
    """
    model = prepared.model.to(default_device())
    examples = prediction_examples(prepared, documents, groups)
    form = {"file": file, "name": name, **scoring_form(prepared)}
    if first is None:
        return clustered(groups, score_pairs(model, examples, **form))
    return clustered(groups, in_two_goes(model, examples, first, **form))


def clustered(groups: Sequence[MentionGroup], scores: np.ndarray) -> list[GroupPrediction]:
    """The groups with the scores of their pairs, which are as of `pairs_within`."""
    found, start = [], 0
    for group in groups:
        mentions = len(group.mentions)
        end = start + mentions * (mentions - 1) // 2
        square = square_scores(scores[start:end], mentions=mentions)
        found.append(GroupPrediction(group=group, scores=square, tree=merge_tree(square)))
        start = end
    return found


def prediction_examples(
    prepared: Prepared, documents: EncodedDocuments, groups: Sequence[MentionGroup]
) -> MentionPairExamples:
    """Every pair of each group, once, group after group."""
    return pair_examples(
        documents,
        groups,
        pairs_within(groups),
        context=prepared.settings.context,
        max_length=prepared.pairs.max_length,
        tokenizer=prepared.tokenizer,
    )


def response_at(predictions: Sequence[GroupPrediction], threshold: float) -> list[list[tuple]]:
    """Clusters of all groups at a threshold, of places of mentions, as the metrics read them."""
    return [
        [mention.place for mention in cluster]
        for prediction in predictions
        for cluster in prediction.clusters(threshold)
    ]


def key_of(topics: Sequence[Topic], kind: str) -> list[list[tuple]]:
    """Gold clusters of all topics, of places of mentions."""
    return [[mention.place for mention in cluster] for cluster in gold_clusters(topics, kind=kind).values()]


def choose_threshold(prepared: Prepared, predictions: Sequence[GroupPrediction]) -> ThresholdChoice:
    """The threshold with the best CoNLL F1 on dev, without clusters of one mention if the settings leave them
    out of all scores."""
    key, singletons = key_of(prepared.topics["dev"], prepared.settings.kind), prepared.settings.singletons
    return best_threshold(
        THRESHOLDS.tolist(),
        lambda threshold: score(key, response_at(predictions, threshold), singletons=singletons)["conll"].f1,
    )


def dev_judge(prepared: Prepared) -> Judge | None:
    """CoNLL F1 of a scorer on all of dev, at its best threshold; None where nothing is to be judged: a single
    epoch, or a choice by loss."""
    if prepared.pairs.checkpoint != "conll" or prepared.pairs.epochs == 1:
        return None
    documents, groups = prepared.documents["dev"], prepared.groups["dev"]

    def conll_f1(model: PairScorer) -> float:
        judged = replace(prepared, model=model)
        form = {"file": None, "name": "dev after this epoch", "first": first_go(judged, "dev", None)}
        predictions = predict_groups(judged, documents, groups, **form)
        return choose_threshold(prepared, predictions).score

    return conll_f1


Place = tuple[str, int, int]
Clusters = Sequence[Sequence[Place]]
BASELINES = ("singletons", "one cluster", "same head word")
RESAMPLES = 10_000


def baseline_responses(topics: Sequence[Topic], groups: Sequence[MentionGroup]) -> dict[str, Clusters]:
    """What needs no training: every mention alone, all of a group together, and equal head words of a group
    together."""
    documents = {document.id: document for topic in topics for document in topic.documents}
    mentions = [mention for group in groups for mention in group.mentions]
    group_of = [group.id for group in groups for _ in group.mentions]
    tokens = [documents[mention.document].tokens[slice(*mention.tokens)] for mention in mentions]
    labels = (range(len(mentions)), group_of, same_head(tokens, group_of))
    places = [mention.place for mention in mentions]
    return {name: clusters_of(places, found) for name, found in zip(BASELINES, labels, strict=True)}


def coreference_scores(
    key: Clusters,
    responses: Mapping[str, Clusters],
    *,
    topic_of: Mapping[str, str],
    singletons: bool = True,
    seed: int = 0,
) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """Scores for the report, and the first system tested against each other one.

    Args:
        key: gold clusters of places of mentions.
        responses: of each system; all of the same mentions.
        topic_of: topic of each document.
        singletons: False = clusters of one mention are dropped first.
        seed: of intervals and tests.

    Returns:
        `system/measure/recall` (`precision`, `f1`) -> value, for muc, b_cubed, ceaf_e, lea and conll, with a
        95% interval over topics and their number for `system/conll/f1`; and rows of paired tests of it.
    """
    # topics that share a cluster of the key or of any response are one, for all systems alike
    topic = joined_topics(key, *responses.values(), topic=lambda place: topic_of[place[0]])
    units = {
        name: list(parts_by_topic(key, response, topic=topic, singletons=singletons).values())
        for name, response in responses.items()
    }
    scores: dict[str, dict[str, Any]] = {}
    for name, parts in units.items():
        for measure, found in scores_of_parts(total_parts(parts)).items():
            for part in ("recall", "precision", "f1"):
                scores[f"{name}/{measure}/{part}"] = {"value": getattr(found, part)}
        counts = count_table(parts)
        drawn = resampled_sums(counts, n_resamples=RESAMPLES, rng=np.random.default_rng(seed))
        low, high = percentile_interval(mean_f1(drawn))
        scores[f"{name}/conll/f1"] |= {"low": low, "high": high, "n": len(parts)}
    return scores, _tests(units, seed=seed)


def _tests(units: Mapping[str, list[dict[str, Parts]]], *, seed: int) -> list[dict[str, Any]]:
    """CoNLL F1 of the first system minus that of each other one; p corrected by Holm."""
    first, *others = units
    counts = {name: count_table(parts) for name, parts in units.items()}
    rows = []
    for other in others:
        compared = compare(counts[first], counts[other], mean_f1, n_resamples=RESAMPLES, seed=seed)
        rows.append(
            {
                "a": first,
                "b": other,
                "difference": compared.difference,
                "low": compared.low,
                "high": compared.high,
                "p_bootstrap": compared.p_bootstrap,
                "p": compared.p,
            }
        )
    for row, corrected in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = corrected
    return rows


SYSTEM = "this run"
MOST_IN_FULL = 5_000  # pairs of dev that are all read to see what passing over some costs
LOOKED_AT = 200  # training pairs, for one of middling length


def pairs_of(groups: Sequence[MentionGroup]) -> int:
    """How many pairs there are within the groups."""
    return sum(len(group.mentions) * (len(group.mentions) - 1) // 2 for group in groups)


def facts_of(
    prepared: Prepared, config: TrainingConfig, *, processes: Processes = ALONE
) -> list[tuple[str, str]]:
    """What a person wants to know before a run starts, as (name, text) pairs; takes a few seconds, for a few
    pairs are scored, and learned from, to know how long that takes."""
    settings, pairs = prepared.settings, prepared.pairs
    counts = {
        split: sum(1 for _ in mentions_of(topics, kind=settings.kind))
        for split, topics in prepared.topics.items()
    }
    seconds, length, lost = _sample(prepared, settings.context)
    looks = 1 + (pairs.epochs if dev_judge(prepared) else 0)
    to_score = pairs_of(prepared.groups["dev"]) * looks + pairs_of(prepared.groups["test"])
    to_score *= 1 + pairs.both_orders
    training = config.steps * config.batch_size * _training_seconds(prepared, config)
    share = prepared.train_examples.labels.mean()
    return [
        ("mentions", ", ".join(f"{split} {count:,}" for split, count in counts.items())),
        (
            "training",
            f"{config.steps:,} steps of {config.batch_size} pairs, {share:.0%} of which corefer; "
            f"about {time_told(training, processes)}",
        ),
        ("precision", precision_told(config.precision)),
        (
            "scoring",
            f"{to_score:,} pairs of dev{f' ({looks} times)' if looks > 1 else ''} and test; "
            f"about {seconds_in_words(to_score * seconds)}",
        ),
        *_first_facts(prepared, to_score),
        *_corpus_facts(prepared),
        ("text", f"{length:,.0f} tokens a pair; {lost:.1%} of the tokens of its documents do not fit"),
    ]


def _first_facts(prepared: Prepared, to_score: int) -> list[tuple[str, str]]:
    """What the first go will take, where there is one."""
    if not prepared.pairs.first_by_sentences:
        return []
    told = seconds_in_words(to_score * _sample(prepared, "sentences")[0])
    text = f"all pairs by sentences; about {told}. Of the time above only what the pairs take that are read"
    return [("first by sentences", text)]


def _corpus_facts(prepared: Prepared) -> list[tuple[str, str]]:
    """How documents are put together, how many clusters go through several of them, what was passed over."""
    facts = [
        (f"searched together in {split}", f"{prepared.levels[split].described}; {len(groups):,} groups")
        for split, groups in prepared.groups.items()
    ]
    for split, topics in prepared.topics.items():
        clusters = gold_clusters(topics, kind=prepared.settings.kind).values()
        across = sum(len({mention.document for mention in cluster}) > 1 for cluster in clusters)
        text = f"{len(clusters):,}, of which {across:,} go through several documents"
        facts.append((f"gold clusters of {split}", text))
    for split, counted in prepared.passed_over.items():
        facts += [(f"passed over in {split}", line) for line in counted.lines()]
    return facts


def write_coreference_report(
    prepared: Prepared,
    run: Run,
    dev: Sequence[GroupPrediction],
    test: Sequence[GroupPrediction],
    choice: ThresholdChoice,
    *,
    compare_with: Sequence[str] = (),
) -> Report:
    """Score test and dev at the chosen threshold, beside the baselines; write the clusters and the report.

    `compare_with`: folders of other runs on these mentions, or more, of which these are taken; they are
    scored and tested too.

    Raises ParameterError for a folder without clusters, or whose clusters lack some of the mentions.
    """
    settings = prepared.settings
    measured = {}
    for split, predictions in (("test", test), ("dev", dev)):
        clusters = response_at(predictions, choice.threshold)
        write_clusters(run.folder, split, clusters)
        responses = {SYSTEM: clusters}
        for folder in compare_with:
            responses[plain_name(folder)] = read_clusters(Path(folder), split, among=clusters)
        measured[split] = _measured(prepared, split, responses)
        _write_conll(run.folder, split, prepared.topics[split], predictions, choice.threshold, settings.kind)
    return run.write_report(
        scores={
            **{
                f"{split}/{name}": value
                for split, (scores, _) in measured.items()
                for name, value in scores.items()
            },
            "threshold": {"value": choice.threshold, "dev_conll_f1": choice.score},
        },
        data={
            "corpus": settings.corpus,
            "precision": precision_told(prepared.pairs.precision),
            "singletons": settings.singletons,
            "topic_level": {split: level.described for split, level in prepared.levels.items()},
            "passed_over": {split: counted.lines() for split, counted in prepared.passed_over.items()},
            "pairs_scored": {split: pairs_of(prepared.groups[split]) for split in ("dev", "test")},
            "topics": {split: [topic.id for topic in topics] for split, topics in prepared.topics.items()},
        },
        tables={
            "comparisons": measured["test"][1],
            "sentences_first": what_sentences_lose(prepared, run.folder / "scores"),
            "thresholds": [{"threshold": one, "dev_conll_f1": score} for one, score in choice.tried],
        },
    )


def what_sentences_lose(prepared: Prepared, folder: Path) -> list[dict[str, Any]]:
    """For each of dev and test, after `predict`: the threshold of the first go, the pairs, how many of them
    are read in whole documents, the coreferring ones, and how many of these are passed over; of dev, where
    it has at most MOST_IN_FULL pairs, also the best CoNLL F1 with the first go and with all pairs read.
    Nothing where there is no first go."""
    rows = []
    for split in ("dev", "test") if prepared.pairs.first_by_sentences else ():
        groups, first = prepared.groups[split], first_go(prepared, split, folder)
        gold = corefer(groups, pairs_within(groups))
        row = {
            "split": split,
            "threshold": first.threshold,
            "pairs": len(gold),
            "read": int(first.read.sum()),
            "corefer": int(gold.sum()),
            "corefer_passed_over": int((gold & ~first.read).sum()),
        }
        if split == "dev" and len(gold) <= MOST_IN_FULL:
            examples = prediction_examples(prepared, prepared.documents[split], groups)
            form = {"file": folder / f"{split}.npy", "name": "dev in full", **scoring_form(prepared)}
            for name, scored in (("conll_f1", in_two_goes), ("conll_f1_in_full", in_full)):
                scores = scored(prepared.model, examples, first, **form)
                row[name] = choose_threshold(prepared, clustered(groups, scores)).score
        rows.append(row)
    return rows


def losses_told(report: Report) -> list[str]:
    """A line for each row that `what_sentences_lose` left in a report."""
    lines = []
    for row in report.tables.get("sentences_first", ()):
        share = row["read"] / max(1, row["pairs"])
        line = (
            f"{row['split']}: whole documents read for {row['read']:,} of {row['pairs']:,} pairs "
            f"({share:.1%}), of sentences that score {row['threshold']:.4f} or "
            "more; "
            f"passed over {row['corefer_passed_over']:,} of {row['corefer']:,} that corefer "
            f"({row['corefer_passed_over'] / max(1, row['corefer']):.1%})"
        )
        if "conll_f1" in row:
            both = [100 * row[name] for name in ("conll_f1", "conll_f1_in_full")]
            line += "; CoNLL F1 {:.1f}, with all pairs read {:.1f}".format(*both)
        lines.append(line)
    return lines


def scores_of_split(report: Report, split: str) -> dict[str, dict[str, Any]]:
    """The scores of one split, `system/measure/part` -> value."""
    start = f"{split}/"
    return {
        name.removeprefix(start): value for name, value in report.scores.items() if name.startswith(start)
    }


def _measured(
    prepared: Prepared,
    split: str,
    responses: Mapping[str, Clusters],
) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    topics = prepared.topics[split]
    return coreference_scores(
        key_of(topics, prepared.settings.kind),
        {**responses, **baseline_responses(topics, prepared.groups[split])},
        topic_of={document.id: document.topic for topic in topics for document in topic.documents},
        singletons=prepared.settings.singletons,
        seed=prepared.settings.seed,
    )


def write_clusters(folder: Path, split: str, clusters: Clusters) -> None:
    """Write `clusters-<split>.json`: for each cluster its mentions, each [document, start, end]."""
    write_json(folder / f"clusters-{split}.json", {"clusters": clusters})


def read_clusters(folder: Path, split: str, *, among: Clusters) -> list[list[tuple]]:
    """The clusters that another run wrote, of the mentions of `among` alone: a run on fewer topics can be
    compared with one on all.

    Raises:
        ParameterError: the folder has none, or some of the mentions are not in them.
    """
    file = folder / f"clusters-{split}.json"
    if not file.is_file():
        raise ParameterError(
            f"compare_with names {folder}, but there is no {file.name} in it; is the run finished?"
        )
    wanted = {place for one in among for place in one}
    read = [[tuple(place) for place in one] for one in json.loads(read_text(file))["clusters"]]
    clusters = [kept for one in read if (kept := [place for place in one if place in wanted])]
    if lacking := len(wanted) - sum(map(len, clusters)):
        raise ParameterError(
            f"compare_with names {folder}, which lacks {lacking} of the {len(wanted)} mentions of {split}; "
            "compare runs on one corpus and kind, whose topics hold those of this run"
        )
    return clusters


def _write_conll(
    folder: Path,
    split: str,
    topics: Sequence[Topic],
    predictions: Sequence[GroupPrediction],
    threshold: float,
    kind: str,
) -> None:
    """`key-<split>.conll` and `response-<split>.conll`, for reference scorers. What that form cannot hold
    (mentions of one cluster that cross) is said and left out; the report does not need these files."""
    response: Mapping[str, Sequence] = {
        f"{prediction.group.id}/{number}": cluster
        for prediction in predictions
        for number, cluster in enumerate(prediction.clusters(threshold))
    }
    for name, clusters in (("key", gold_clusters(topics, kind=kind)), ("response", response)):
        try:
            write_conll(folder / f"{name}-{split}.conll", topics, clusters, level="corpus")
        except ValueError as error:
            print(f"no {name}-{split}.conll: {error}")


def _training_seconds(prepared: Prepared, config: TrainingConfig) -> float:
    """Seconds to learn from a pair, in a batch of pairs of middling length, as training puts like lengths
    together."""
    examples = prepared.train_examples
    some = range(0, len(examples), max(1, len(examples) // LOOKED_AT))
    by_length = sorted(some, key=examples.length_of)
    size = min(config.micro_batch_size, len(by_length))
    first = (len(by_length) - size) // 2
    chosen = [examples[number] for number in by_length[first : first + size]]
    collate = Collate(pad_token_id=prepared.tokenizer.pad_token_id)
    seconds, _ = seconds_to_learn(prepared.model, partial(collate, chosen), precision=config.precision)
    return seconds / size


def _sample(prepared: Prepared, context: str, size: int = 24) -> tuple[float, float, float]:
    """Seconds a pair, tokens a pair, and the share of tokens that do not fit, over a few pairs of dev."""
    group = max(prepared.groups["dev"], key=lambda one: len(one.mentions))
    examples = replace(prediction_examples(prepared, prepared.documents["dev"], [group]), context=context)
    step = max(1, len(examples) // size)
    numbers = list(range(0, len(examples), step))[:size]
    sizes = [examples.size_of(number) for number in numbers]
    lost = sum(one.lost_tokens for one in sizes)
    length = float(np.mean([one.length for one in sizes]))
    chosen, precision = numbers[: prepared.pairs.batch_size], prepared.pairs.precision
    seconds = seconds_of_batch(prepared.model, examples, chosen, precision=precision)
    return seconds, length, lost / max(1, lost + sum(one.length for one in sizes))


MEASURES = ("muc", "b_cubed", "ceaf_e", "lea", "conll")


def shown_clusters(
    topics: Sequence[Topic], prediction: GroupPrediction, threshold: float, *, gold: bool = True
) -> list[ShownCluster]:
    """The clusters of one group, each mention in its sentence.

    `gold`: False = gold clusters are not known.
    """
    documents = _documents(topics)
    return [
        ShownCluster(
            name=f"#{number}",
            mentions=tuple(_shown(mention, documents, gold=gold) for mention in cluster),
        )
        for number, cluster in enumerate(prediction.clusters(threshold), start=1)
    ]


def clusters_view(
    topics: Sequence[Topic], prediction: GroupPrediction, threshold: float, *, gold: bool = True
) -> str:
    """`shown_clusters` as HTML."""
    return clusters_html(shown_clusters(topics, prediction, threshold, gold=gold))


def errors_view(topics: Sequence[Topic], predictions: Sequence[GroupPrediction], threshold: float) -> str:
    """The wrong pairs of all groups as HTML."""
    return errors_html(pair_errors(topics, predictions, threshold))


def pair_errors(
    topics: Sequence[Topic], predictions: Sequence[GroupPrediction], threshold: float
) -> CoreferenceErrors:
    """Pairs that were put together and do not corefer, and pairs that corefer and were kept apart."""
    documents = _documents(topics)
    errors: dict[str, list[PairError]] = {"merged": [], "split": []}
    for prediction in predictions:
        mentions = prediction.group.mentions
        shown = [_shown(mention, documents) for mention in mentions]
        labels = labels_at(prediction.tree, threshold)
        gold = np.unique([mention.cluster for mention in mentions], return_inverse=True)[1]
        first, second = np.triu_indices(len(mentions), k=1)
        together, corefer = labels[first] == labels[second], gold[first] == gold[second]
        for name, wrong in (("merged", together & ~corefer), ("split", corefer & ~together)):
            errors[name] += [
                PairError(first=shown[i], second=shown[j], score=float(prediction.scores[i, j]))
                for i, j in zip(first[wrong], second[wrong], strict=True)
            ]
    return CoreferenceErrors(
        merged=tuple(errors["merged"]), split=tuple(errors["split"]), threshold=threshold
    )


def group_tree(topics: Sequence[Topic], prediction: GroupPrediction, threshold: float) -> go.Figure:
    """The merge tree of one group with the threshold."""
    documents = _documents(topics)
    mentions = [_shown(mention, documents) for mention in prediction.group.mentions]
    return dendrogram_figure(
        prediction.tree, mentions, threshold=threshold, title=f"How {prediction.group.id} came together"
    )


def coreference_table(report: Report) -> ScoreTable:
    """Baselines, the systems of a report, and below them what the paper reports on the same kind."""
    kind, systems = report.parameters["kind"], dict.fromkeys(row.system for row in report.rows if row.system)
    names = sorted(systems, key=lambda name: name not in BASELINES)
    papers = [
        replace(row, label=f"paper: {row.label.replace('cdlm/documents', 'CDLM')}")
        for row in published_rows("cdlm", "2", f"ECB+ {kind}")
    ]
    table = score_table(report, labels={name: name for name in names}, group=kind, others=papers)
    if report.data["singletons"]:
        return table
    note = "Without singletons: not to be compared with scores that keep them, as the paper's do."
    return replace(table, note=f"{table.note} {note}")


def _documents(topics: Sequence[Topic]) -> dict[str, CoreferenceDocument]:
    return {document.id: document for topic in topics for document in topic.documents}


def _shown(
    mention: CoreferenceMention, documents: Mapping[str, CoreferenceDocument], *, gold: bool = True
) -> ShownMention:
    document = documents[mention.document]
    start, end = mention.tokens
    first, last = document.sentences[mention.sentence]
    return ShownMention(
        text=joined(document.tokens[start:end]),
        before=joined(document.tokens[first:start]),
        after=joined(document.tokens[end:last]),
        document=mention.document,
        gold=mention.cluster if gold else None,
    )


# What stands in the box before anything is typed, by kind of mention.
EXAMPLES = {
    "event": """\
== morning paper ==
A gas <m>blast</m> killed 14 miners in the Ombrava mine near Telk on Tuesday. Another 30 men were
<m>brought up alive</m> by nightfall. Engineers began <m>drilling</m> a shaft to reach the rest.

== evening paper ==
The <m>explosion</m> in the mine near Telk was the worst in ten years, the energy minister said on
Wednesday. The <m>rescue</m> of 30 miners had taken six hours.

== radio bulletin ==
A shaft is being <m>drilled</m> at the Ombrava mine, a day after the <m>accident</m>.
""",
    "entity": """\
== morning paper ==
A gas blast killed 14 miners in the <m>Ombrava mine</m> near <m>Telk</m> on Tuesday. <m>Marta Elling</m>,
the energy minister, promised an inquiry.

== evening paper ==
The explosion in the <m>mine</m> near <m>Telk</m> was the worst in ten years, the <m>energy minister</m>
said on Wednesday. <m>She</m> will visit the <m>town</m> on Friday.
""",
}


def own_text(path: str, kind: str) -> str:
    """The text of a file, or an example if `path` is "". Raises DataError as its reader does."""
    return read_text(path) if path else EXAMPLES[kind]


def cluster_own(prepared: Prepared, text: str, *, source: str = "text") -> tuple[Topic, GroupPrediction]:
    """Score all pairs of the marked mentions of a text; `source`: what complaints call it.

    Raises:
        DataError: as of `parse_marked_documents`, and for a text with one mention alone.
    """
    kind = prepared.settings.kind
    topic = parse_marked_documents(text, kind=kind, source=source)
    groups = group_mentions([topic], kind, "topic", None)
    if len(groups[0].mentions) < 2:
        remedy = "mark at least two with <m> and </m>"
        raise DataError(source, "there is one mention only", remedy, field="marks")
    documents = encoded_documents([topic], prepared.tokenizer)
    (prediction,) = predict_groups(prepared, documents, groups, file=None, name="scoring your documents")
    return topic, prediction


def own_clusters(
    prepared: Prepared, text: str, *, folder: Path, source: str = "text"
) -> Callable[[float], str]:
    """For the box of documents: score a text; the function returned takes a threshold, writes the clusters
    to `own_clusters.json` in `folder` and gives them as HTML. Errors as of `cluster_own`."""
    topic, prediction = cluster_own(prepared, text, source=source)

    def clusters_at(threshold: float) -> str:
        _write(folder / "own_clusters.json", topic, prediction, threshold)
        return clusters_view([topic], prediction, threshold, gold=False)

    return clusters_at


def _write(file: Path, topic: Topic, prediction: GroupPrediction, threshold: float) -> None:
    """For each cluster its mentions with document, half-open span of tokens and words."""
    documents = {document.id: document for document in topic.documents}
    clusters = [
        [
            {
                "document": mention.document,
                "tokens": list(mention.tokens),
                "text": documents[mention.document].text_of(mention),
            }
            for mention in cluster
        ]
        for cluster in prediction.clusters(threshold)
    ]
    write_json(file, {"threshold": threshold, "clusters": clusters})
