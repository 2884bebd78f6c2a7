"""Which pairs of mentions a scorer learns from and is asked about, and the sequences of those pairs.

Pairs are only made within a group: a topic, a sub-topic, or documents that a clustering put together. They
are arrays of numbers of mentions; a sequence is written when it is read, so a million pairs cost 16 MB and
not the text of two million documents.

What pairs of two documents share is their text, and nothing that a model computes of it: the marks stand in
the text and move what is after them, and the mentions are global, so that from the first layer on every
state is another one for each pair. So each pair is an encoding of its own, and read once (in either order,
if both are asked for). Shared are the subwords of the documents, tokenised once whatever pairs, contexts and
splits of a run read them; from them a sequence is put together in 0.1 ms, less than 1% of what reading it
takes.

Training: all pairs of a cluster, and negatives drawn at random among the other pairs of the same groups
(Cattan et al. 2020, whom CDLM follows, C.1; their code keeps about 20 for each positive one). All is a pure
function of (seed, epoch). Prediction: each pair once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from cdlm_lab.data.coreference_records import KINDS, CoreferenceDocument, CoreferenceMention, Kind, Topic

from .encode_document import EncodedDocument
from .mention_context import (
    MentionMarks,
    PairSequence,
    PairSize,
    check_context,
    pair_sequence,
    pair_size,
)
from .special_tokens import SpecialTokens

LEVELS = ("topic", "subtopic", "predicted")
# The training topics of ECB+ have 21.5 negative pairs of events for each positive one and 12.7 of entities,
# so 20 takes nearly all of the former and all of the latter.
NEGATIVES_PER_POSITIVE = 20.0
_NEGATIVES, _ORDER = range(2)  # independent streams of chance of one seed


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionGroup:
    """Mentions of one kind that may corefer with each other and with no others; `id`: of the group."""

    id: str
    mentions: tuple[CoreferenceMention, ...]


def group_mentions(
    topics: Iterable[Topic], kind: Kind, level: str, predicted: Mapping[str, str] | None = None
) -> list[MentionGroup]:
    """Put the mentions of a kind into groups, in order of first appearance; groups without any are left out.

    Args:
        topics: as a reader yields them.
        kind: `event` or `entity`.
        level: `topic` and `subtopic` are those of the documents; `predicted` is told by the next argument.
        predicted: name of the group of each document that has mentions, by the document's id. A group may
            hold documents of several topics. Only read at the level `predicted`.

    Raises:
        ValueError: an unknown kind or level, no mentions, a document without a predicted group, a sub-topic
            in two topics.
    """
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; choose one of {', '.join(KINDS)}")
    if level not in LEVELS:
        raise ValueError(f"unknown topic level {level!r}; choose one of {', '.join(LEVELS)}")
    groups: dict[str, list[CoreferenceMention]] = {}
    topic_of: dict[str, str] = {}
    for document in chain.from_iterable(topic.documents for topic in topics):
        if mentions := [mention for mention in document.mentions if mention.kind == kind]:
            name = _group_name(document, level, predicted)
            groups.setdefault(name, []).extend(mentions)
            other = topic_of.setdefault(name, document.topic)
            if level == "subtopic" and other != document.topic:
                raise ValueError(f"sub-topic {name} is in topics {other} and {document.topic}; rename one")
    if not groups:
        raise ValueError(f"there are no {kind} mentions; choose another kind, or other documents")
    return [MentionGroup(id=name, mentions=tuple(mentions)) for name, mentions in groups.items()]


def _group_name(document: CoreferenceDocument, level: str, predicted: Mapping[str, str] | None) -> str:
    if level != "predicted":
        return document.topic if level == "topic" else document.subtopic
    if predicted is None:
        raise ValueError("level is 'predicted', but predicted is None; give the group of each document")
    if document.id not in predicted:
        raise ValueError(
            f"document {document.id} has mentions, but is in none of the predicted groups "
            f"(these have {len(predicted)} documents); add it"
        )
    return predicted[document.id]


def mentions_in(groups: Iterable[MentionGroup]) -> tuple[CoreferenceMention, ...]:
    """The mentions of all groups in order; pairs of several groups are numbers in this list."""
    return tuple(chain.from_iterable(group.mentions for group in groups))


def all_pairs(n: int) -> np.ndarray:
    """Each pair of the numbers 0 to n - 1 once, the lower first; int64 (n (n - 1) / 2, 2).

    Example:
        >>> all_pairs(3).tolist()
        [[0, 1], [0, 2], [1, 2]]
    """
    return np.stack(np.triu_indices(n, k=1), axis=1).astype(np.int64)


def pairs_within(groups: Sequence[MentionGroup]) -> np.ndarray:
    """Each pair of mentions of a group once, group after group; int64 (pairs, 2), numbers in
    `mentions_in(groups)`, the lower first."""
    firsts = np.cumsum([0, *(len(group.mentions) for group in groups)])
    parts = [all_pairs(len(group.mentions)) + first for group, first in zip(groups, firsts, strict=False)]
    return np.concatenate([np.empty((0, 2), dtype=np.int64), *parts])


def positive_pairs(groups: Sequence[MentionGroup]) -> np.ndarray:
    """Those of `pairs_within` that are of one cluster."""
    pairs = pairs_within(groups)
    return pairs[corefer(groups, pairs)]


def corefer(groups: Sequence[MentionGroup], pairs: np.ndarray) -> np.ndarray:
    """bool (pairs,), True = of one cluster; pairs are as of `pairs_within`."""
    clusters = [mention.cluster for mention in mentions_in(groups)]
    codes = np.unique(clusters, return_inverse=True)[1]
    return codes[pairs[:, 0]] == codes[pairs[:, 1]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledPairs:
    """Pairs and whether their mentions corefer.

    Attributes:
        pairs: int64 (pairs, 2), numbers in `mentions_in(groups)`, the lower first.
        labels: float32 (pairs,), 1 = corefer, 0 = do not.
    """

    pairs: np.ndarray
    labels: np.ndarray


def sampled_pairs(
    groups: Sequence[MentionGroup],
    *,
    negatives_per_positive: float = NEGATIVES_PER_POSITIVE,
    seed: int,
    epoch: int,
) -> LabelledPairs:
    """What one pass of training reads, shuffled: all positive pairs, and negatives drawn anew each epoch.

    Args:
        groups: pairs are made within each; negatives are drawn from all of them alike, so a group gives as
            many as its share of all negative pairs.
        negatives_per_positive: times the number of positive pairs, rounded, is the number of negatives, at
            most all there are; `math.inf` = all.
        seed: not negative.
        epoch: from 0.

    Raises:
        ValueError: no positive pair; a ratio, a seed or an epoch below 0.
    """
    if not negatives_per_positive >= 0:
        raise ValueError(f"negatives_per_positive is {negatives_per_positive}; it must be 0 or more")
    if min(seed, epoch) < 0:
        raise ValueError(f"seed is {seed} and epoch {epoch}; neither may be negative")
    pairs = pairs_within(groups)
    same = corefer(groups, pairs)
    positives, negatives = pairs[same], pairs[~same]
    if not len(positives):
        count = sum(len(group.mentions) for group in groups)
        raise ValueError(
            f"no two of the {count} mentions corefer within a group; there is nothing to learn from them"
        )
    wanted = len(negatives)
    if math.isfinite(negatives_per_positive):
        wanted = min(wanted, round(negatives_per_positive * len(positives)))
    drawn = np.random.default_rng([seed, _NEGATIVES, epoch]).choice(len(negatives), wanted, replace=False)
    order = np.random.default_rng([seed, _ORDER, epoch]).permutation(len(positives) + wanted)
    labels = np.repeat(np.array([1, 0], dtype=np.float32), [len(positives), wanted])
    return LabelledPairs(pairs=np.concatenate([positives, negatives[drawn]])[order], labels=labels[order])


@dataclass(frozen=True, kw_only=True, eq=False)
class MentionPairExamples:
    """Map-style dataset of pairs; each sequence is written when it is read.

    `examples[i]` is a dict of `input_ids` int64 (seq,), `global_attention_mask` int64 (seq,), 1 = global,
    `mention_mask` bool (2, seq), True = token of mention i, and `labels` float32 (), 1 = corefer, if there
    are labels.

    Attributes:
        mentions: those that pairs are numbers of.
        pairs: int (pairs, 2); the first of a pair is mention 0 of its sequence.
        documents: of the mentions, by id; `EncodedDocuments` encodes each once, when it is first needed.
        special, marks: ids of the special tokens and of the marks.
        context: `documents` or `sentences`.
        max_length: of a sequence, special tokens and marks included.
        labels: (pairs,), 1 = corefer, 0 = do not; None = not known.

    Raises:
        ValueError: an unknown context; pairs of another shape, of a mention that is not there or of one with
            itself; labels of another number or value. What a pair's own texts make impossible is raised when
            it is read or measured.
    """

    mentions: Sequence[CoreferenceMention]
    pairs: np.ndarray
    documents: Mapping[str, EncodedDocument]
    special: SpecialTokens
    marks: MentionMarks
    context: str
    max_length: int
    labels: np.ndarray | None = None

    def __post_init__(self) -> None:
        check_context(self.context)
        pairs, count = self.pairs, len(self.mentions)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
            raise ValueError(
                f"pairs is {pairs.dtype} of shape {pairs.shape}; it must be integers of shape (pairs, 2)"
            )
        outside, alone = (pairs < 0) | (pairs >= count), pairs[:, 0] == pairs[:, 1]
        if outside.any():
            raise ValueError(f"there is no mention {pairs[outside][0]}; there are {count}, counted from 0")
        if alone.any():
            raise ValueError(f"pairs[{alone.argmax()}] is of mention {pairs[alone][0, 0]} with itself")
        if self.labels is not None and np.shape(self.labels) != (len(pairs),):
            raise ValueError(f"labels has shape {np.shape(self.labels)}, but there are {len(pairs)} pairs")
        if self.labels is not None and not np.isin(self.labels, (0, 1)).all():
            raise ValueError("a label is neither 0 nor 1")

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        sequence = self.describe(index)
        example = {
            "input_ids": sequence.input_ids,
            "global_attention_mask": sequence.global_attention_mask,
            "mention_mask": sequence.mention_mask,
        }
        if self.labels is not None:
            example["labels"] = np.array(self.labels[index], dtype=np.float32)
        return example

    def in_order(self, order: Sequence[int] | np.ndarray) -> MentionPairExamples:
        """The same pairs in another order. Raises IndexError for a pair that is not there."""
        order = np.asarray(order, dtype=int)
        labels = None if self.labels is None else self.labels[order]
        return replace(self, pairs=self.pairs[order], labels=labels)

    def describe(self, index: int) -> PairSequence:
        """The sequence of one pair with what was left out of it.

        Raises:
            IndexError: an index below 0 or not below the number of pairs.
            ValueError: as of `pair_sequence`.
        """
        return pair_sequence(*self.pair(index), marks=self.marks, **self._settings)

    def size_of(self, index: int) -> PairSize:
        """Tokens, global ones and lost ones of a pair's sequence, without writing it; errors as of
        `describe`."""
        return pair_size(*self.pair(index), **self._settings)

    def length_of(self, index: int) -> int:
        """Tokens of a pair's sequence, for batches of like lengths."""
        return self.size_of(index).length

    def global_count_of(self, index: int) -> int:
        """Global tokens of a pair's sequence."""
        return self.size_of(index).global_count

    def pair(self, index: int) -> tuple[CoreferenceMention, CoreferenceMention]:
        """The two mentions of a pair; errors as of `describe`."""
        index = operator.index(index)
        if not 0 <= index < len(self):
            raise IndexError(f"there is no pair {index}; there are {len(self)}, counted from 0")
        first, second = self.pairs[index]
        return self.mentions[first], self.mentions[second]

    @property
    def _settings(self) -> dict[str, object]:
        return {
            "documents": self.documents,
            "context": self.context,
            "max_length": self.max_length,
            "special": self.special,
        }
