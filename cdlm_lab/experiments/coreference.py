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
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.coreference_records import PassedOver, Topic
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
from cdlm_lab.experiments.coreference_corpora import (
    SPLITS,
    CoreferenceSettings,
    TopicLevel,
    mention_groups,
    read_topics,
    topic_level_of,
)
from cdlm_lab.models.cross_encoder import PairScorer, load_pair_scorer
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.parameters import ParameterError, check_choice, check_least, check_types

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
    the checkpoint's."""

    epochs: int
    negatives_per_positive: float
    train_pairs: int
    max_length: int
    checkpoint: str
    both_orders: bool
    batch_size: int
    reset_globals: bool = False  # as of `load_pair_scorer`
    attention_dropout: AttentionDropout = 0.0  # likewise

    def __post_init__(self) -> None:
        check_types(self)
        check_choice(self, CHECKPOINTS, "checkpoint")
        check_least(self, 1, "epochs", "batch_size")
        if self.train_pairs < 0:
            raise ParameterError(f"train_pairs is {self.train_pairs}; write 0 for all, or how many at most")


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """All that a run needs, before anything is trained.

    Attributes:
        encoder: what was given to `prepare` as `model`, `window` and `attention`.
        levels: of each split, which documents are searched together.
        passed_over: of each split, what of the corpus could not be used.
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
    form = {"context": settings.context, "max_length": pairs.max_length, "tokenizer": tokenizer}
    train_examples, dev_examples = (
        pair_examples(topics[split], groups[split], found.pairs, labels=found.labels, **form)
        for split, found in (("train", drawn), ("dev", watched))
    )
    for split in ("dev", "test"):
        _check_room(topics[split], groups[split], **form)
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
        train_examples=train_examples,
        dev_examples=_longest_first(dev_examples),
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


def _check_room(topics: Sequence[Topic], groups: Sequence[MentionGroup], **form: Any) -> None:
    """Raise ValueError, before hours of training, if the two longest mentions of a group do not fit."""
    examples = pair_examples(topics, groups, np.empty((0, 2), dtype=int), **form)
    lengths = [np.ptp(examples.documents[one.document].subwords(one.tokens)) for one in examples.mentions]
    ends = np.cumsum([len(group.mentions) for group in groups])
    numbers = [range(end - len(group.mentions), end) for group, end in zip(groups, ends, strict=True)]
    longest = [sorted(own, key=lengths.__getitem__)[-2:] for own in numbers if len(own) > 1]
    pairs = replace(examples, pairs=np.array(longest, dtype=int).reshape(-1, 2))
    for number in range(len(longest)):
        pairs.size_of(number)


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
