"""Coreference across documents (CDLM sections 3.2, A.2, C.1; Tables 2 and 3): notebook 03.

A pair scorer is trained on the train topics; pairs of the dev and test mentions are scored, mentions are
clustered by average linkage, and the threshold is the one with the best CoNLL F1 on dev. Test topics are
looked at once, with that threshold.

Choices where the paper is silent: training pairs are made within gold topics; the checkpoint kept is that of
the lowest loss on a sample of dev pairs; test scores are those of the whole corpus, singletons kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerBase

from cdlm_lab.collate import Collate, like_lengths_together
from cdlm_lab.data.coreference_records import Topic
from cdlm_lab.examples.encode_document import EncodedDocuments
from cdlm_lab.examples.mention_context import marks_from_tokenizer
from cdlm_lab.examples.mention_pairs import (
    LabelledPairs,
    MentionGroup,
    MentionPairExamples,
    mentions_in,
    sampled_pairs,
)
from cdlm_lab.examples.special_tokens import from_tokenizer
from cdlm_lab.experiments.coreference_corpora import CoreferenceSettings, mention_groups, read_topics
from cdlm_lab.experiments.parallel import Recipe, TrainingJob, train_in_processes
from cdlm_lab.models.cross_encoder import PairScorer, load_pair_scorer
from cdlm_lab.parameters import ParameterError, check_least, check_types
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.processes import ALONE, Processes
from cdlm_lab.training.saved_model import MODEL_FOLDER, TRAINING_FOLDER, save_model
from cdlm_lab.training.trainer import TrainingResult

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
    "attention",
    "epochs",
    "negatives_per_positive",
    "train_pairs",
    "batch_size",
    "micro_batch_size",
    "learning_rate",
    "parallel",
    "workers",
    "both_orders",
    "singletons",
    "compare_with",
    "own_documents",
    "seed",
)
# Of so many dev pairs the loss is watched while training; at most a quarter of the training pairs, so that
# watching, which is done four times, takes a third of the time at most.
DEV_PAIRS, LEAST_DEV_PAIRS = 2_000, 64


@dataclass(frozen=True, kw_only=True)
class PairSettings:
    """How pairs are drawn and read. `epochs`: passes over the positive pairs, negatives drawn anew in each.
    `train_pairs`: at most so many a pass, 0 = all. `max_length`: of a sequence in tokens. `both_orders`:
    score (i, j) and (j, i), take the mean. `batch_size`: pairs scored at once."""

    epochs: int
    negatives_per_positive: float
    train_pairs: int
    max_length: int
    both_orders: bool
    batch_size: int

    def __post_init__(self) -> None:
        check_types(self)
        check_least(self, 1, "epochs", "batch_size")
        if self.train_pairs < 0:
            raise ParameterError(f"train_pairs is {self.train_pairs}; write 0 for all, or how many at most")


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """All that a run needs, before anything is trained.

    Attributes:
        encoder: what was given to `prepare` as `model`, `window` and `attention`.
    """

    model: PairScorer
    encoder: Mapping[str, Any]
    tokenizer: PreTrainedTokenizerBase
    settings: CoreferenceSettings
    pairs: PairSettings
    topics: Mapping[str, list[Topic]]
    groups: Mapping[str, list[MentionGroup]]
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
    """Read the corpus, load the encoder, draw the pairs; nothing is trained.

    Raises ValueError with one clear line for whatever does not fit.
    """
    scorer, tokenizer = load_pair_scorer(
        model, max_length=pairs.max_length, window=window, attention=attention, seed=settings.seed
    )
    topics = {split: read_topics(settings, split) for split in ("train", "dev", "test")}
    groups = {
        split: mention_groups(settings, found, level="topic" if split == "train" else settings.topic_level)
        for split, found in topics.items()
    }
    drawn = _training_pairs(groups["train"], pairs, seed=settings.seed)
    watched = _first(
        sampled_pairs(
            groups["dev"], negatives_per_positive=pairs.negatives_per_positive, seed=settings.seed, epoch=0
        ),
        min(DEV_PAIRS, max(LEAST_DEV_PAIRS, len(drawn.pairs) // 4)),
    )
    form = {"context": settings.context, "max_length": pairs.max_length, "tokenizer": tokenizer}
    train_examples, dev_examples = (
        pair_examples(topics[split], groups[split], found.pairs, labels=found.labels, **form)
        for split, found in (("train", drawn), ("dev", watched))
    )
    return Prepared(
        model=scorer,
        encoder={"model": model, "window": window, "attention": attention},
        tokenizer=tokenizer,
        settings=settings,
        pairs=pairs,
        topics=topics,
        groups=groups,
        train_examples=train_examples,
        dev_examples=_longest_first(dev_examples),
    )


def train_scorer(
    prepared: Prepared,
    folder: Path,
    config: TrainingConfig,
    *,
    processes: Processes = ALONE,
    on_log: Callable[[Mapping[str, Any]], None] | None = None,
) -> TrainingResult:
    """Train the scorer and write it into `folder/model`, as it was at the lowest loss on the dev sample;
    checkpoints and history go to `folder/training`. An interrupted run writes no model. Errors as of
    `train_in_processes`."""
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
        train_examples=examples.in_order(like_lengths_together(_lengths(examples), config.batch_size)),
        validation_examples=prepared.dev_examples,
        collate=Collate(pad_token_id=prepared.tokenizer.pad_token_id),
        config=config,
    )


def pair_examples(
    topics: Sequence[Topic],
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
        documents=EncodedDocuments((document for topic in topics for document in topic.documents), tokenizer),
        special=from_tokenizer(tokenizer),
        marks=marks_from_tokenizer(tokenizer),
        context=context,
        max_length=max_length,
    )


def steps_of(prepared: Prepared, batch_size: int) -> int:
    """Updates that read all drawn pairs once."""
    return max(1, len(prepared.train_examples) // batch_size)


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


def _longest_first(examples: MentionPairExamples) -> MentionPairExamples:
    """For evaluation, where the order does not matter: batches with little padding."""
    return examples.in_order(np.argsort(_lengths(examples), kind="stable")[::-1])


def _lengths(examples: MentionPairExamples) -> list[int]:
    return [examples.length_of(number) for number in range(len(examples))]


def _first(pairs: LabelledPairs, count: float) -> LabelledPairs:
    end = int(min(count, len(pairs.pairs)))
    return LabelledPairs(pairs=pairs.pairs[:end], labels=pairs.labels[:end])
