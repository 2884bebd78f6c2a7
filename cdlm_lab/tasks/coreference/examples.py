"""Pairs of mentions, for training or querying a pairwise scorer, and the sequence in which a model reads both
(CDLM sections 3.2 and C.1):

    [CLS] <doc-s> a <m> fire </m> broke out </doc-s> <doc-s> the <m> blaze </m> spread </doc-s> [SEP]

Two mentions in one document are both marked in it, and it is written once. The part of a document that is
shown is its `context`: all of it, or only the sentence of the mention. `[CLS]`, the marks and the mentions
are global. A sequence is created in 0.1 ms when it is read; a million pairs take 16 MB.

Choices where the paper is silent:
- Marks have no names; which token belongs to which mention is only in `mention_mask`.
- What is too long is cut to windows centred on the mentions, shifted at the borders of a document. Each
  document gets an equal share of the room, what a short one does not need goes to the other, and a mention
  is never cut. Two mentions in one document share a window if it holds both; otherwise two windows are
  joined. (The released code drops the head or the tail of each document; a mention in a long one can be lost
  with it.)
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cdlm_lab.attention.global_tokens import mention_tokens
from cdlm_lab.data import records
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, Kind, TokenSpan, Topic
from cdlm_lab.errors import check_choice, check_least
from cdlm_lab.examples.packing import NOTHING_LOST, equal_share
from cdlm_lab.examples.passes import checked_index
from cdlm_lab.examples.tokens import EncodedDocument, SpecialTokens, lacking

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


MENTION_START, MENTION_END = "<m>", "</m>"
CONTEXTS = ("documents", "sentences")
OUTSIDE = "outside the window"
_MARKS = 4  # number of marks in a sequence: two for each mention, nested or not


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionMarks:
    """Ids of `<m>` and `</m>`, the marks before and after each mention."""

    start: int
    end: int


def marks_from_tokenizer(tokenizer: PreTrainedTokenizerBase) -> MentionMarks:
    """The ids of both marks in a tokenizer; ValueError if one is missing."""
    known = tokenizer.get_vocab()
    for mark in (MENTION_START, MENTION_END):
        if mark not in known:
            raise lacking(tokenizer, mark, "coreference.load_pair_scorer")
    return MentionMarks(start=known[MENTION_START], end=known[MENTION_END])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairSequence:
    """One sequence with two marked mentions; `LossOfText.over` adds up the truncation of many."""

    input_ids: np.ndarray  # int64 (seq,)
    global_attention_mask: np.ndarray  # int64 (seq,), 1 = global
    mention_mask: np.ndarray  # bool (2, seq), True = token of mention i; marks belong to none
    kept_tokens: tuple[int, ...]  # number of text tokens of each document in the sequence
    lost_tokens: tuple[int, ...]  # number of tokens of each that were cut to fit `max_length`
    reasons: tuple[str, ...]  # the reason for each; empty if nothing was cut


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSize:
    """The length of a sequence, its number of global tokens, and the number of text tokens cut from it."""

    length: int
    global_count: int
    lost_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Passage:
    """Ids (tokens,) of one document's context, and the spans of the mentions in it, by mention number."""

    ids: np.ndarray
    spans: dict[int, TokenSpan]

    def cut(self, pieces: Sequence[TokenSpan]) -> Passage:
        """Keep only these pieces, joined; each mention must lie within one of them."""
        spans, length = {}, 0
        for start, end in pieces:
            for number, (first, last) in self.spans.items():
                if start <= first and last <= end:
                    spans[number] = (first - start + length, last - start + length)
            length += end - start
        return Passage(ids=np.concatenate([self.ids[start:end] for start, end in pieces]), spans=spans)

    @property
    def in_mentions(self) -> int:
        """The number of tokens in mentions, counted once where mentions overlap."""
        return len(set().union(*(range(*span) for span in self.spans.values())))


def _pieces(passages: Sequence[Passage], room: int) -> list[list[TokenSpan]]:
    """The spans of each passage to keep, `room` tokens in total if there are that many."""
    borders = [(0, len(passage.ids)) for passage in passages]
    if len(passages) == 2:
        spans = [span for passage in passages for span in passage.spans.values()]
        return [[window] for window in _windows(spans, borders, room)]
    left, right = sorted(passages[0].spans.values())
    both = left[0], max(left[1], right[1])
    if both[1] - both[0] <= room:
        return [_windows([both], borders, room)]
    # They cannot overlap, or both would fit. Each side of the middle between them is treated as a document.
    middle, end = (left[1] + right[0]) // 2, borders[0][1]
    return [_windows([left, right], [(0, middle), (middle, end)], room)]


def _windows(spans: Sequence[TokenSpan], borders: Sequence[TokenSpan], room: int) -> list[TokenSpan]:
    """A window around each of one or two spans, within its borders; `room` tokens in total."""
    widths, _ = equal_share([high - low for low, high in borders], budget=room, per_document=0)
    for number, (start, end) in enumerate(spans):
        if end - start > widths[number]:
            widths = [room - (end - start)] * len(spans)
            widths[number] = end - start
    windows = []
    for (start, end), (low, high), width in zip(spans, borders, widths, strict=True):
        shifted = min(max((start + end - width) // 2, low), high - width)
        windows.append((shifted, shifted + width))
    return windows


def marked(
    passage: Passage, *, special: SpecialTokens, marks: MentionMarks
) -> tuple[np.ndarray, dict[int, list[int]]]:
    """Ids (tokens,) of a passage with separators and mention marks, and where each mention's tokens are."""
    starts, ends = zip(*passage.spans.values(), strict=True)
    # A mark is put before the token at its place; closing marks come first where places are equal.
    signs = sorted([(end, 0, marks.end) for end in ends] + [(start, 1, marks.start) for start in starts])
    parts, written = [[special.start]], 0
    for place, _, mark in signs:
        parts += [passage.ids[written:place], [mark]]
        written = place
    ids = np.concatenate([*parts, passage.ids[written:], [special.end]])
    at = [place for place, *_ in signs]
    places = {
        number: [1 + token + bisect_right(at, token) for token in range(*span)]
        for number, span in passage.spans.items()
    }
    return ids, places


@dataclass(frozen=True, kw_only=True, eq=False)
class MentionPairExamples:
    """Map-style dataset of pairs; each sequence is created when it is read.

    `examples[i]` is a dict of `input_ids` int64 (seq,), `global_attention_mask` int64 (seq,), 1 = global,
    `mention_mask` bool (2, seq), True = token of mention i, and, if there are labels, `labels` float32 (), 1
    = corefer. The document of the first mention comes first; one document with both keeps its order.
    """

    UNIT: ClassVar[str] = "pair"

    mentions: Sequence[CoreferenceMention]  # the mentions that `pairs` refers to by index
    pairs: np.ndarray  # int (pairs, 2); the first of a pair is mention 0 of its sequence
    documents: Mapping[str, EncodedDocument]  # by id; `EncodedDocuments` encodes each when first read
    special: SpecialTokens
    marks: MentionMarks
    context: str  # `documents` or `sentences`; two sentences of one document share a frame
    max_length: int  # of a sequence, special tokens and marks included
    labels: np.ndarray | None = None  # (pairs,), 1 = corefer, 0 = do not; None = unknown

    def __post_init__(self) -> None:
        check_choice("context", self.context, CONTEXTS)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        sequence = self.describe(index)
        names = ("input_ids", "global_attention_mask", "mention_mask")
        example = {name: getattr(sequence, name) for name in names}
        if self.labels is not None:
            example["labels"] = np.array(self.labels[index], dtype=np.float32)
        return example

    def in_order(self, order: Sequence[int] | np.ndarray) -> MentionPairExamples:
        """The pairs with the indices in `order`, as a new dataset."""
        order = np.asarray(order, dtype=int)
        for outside in order[(order < 0) | (order >= len(self))]:
            checked_index(outside, len(self), "pair")
        labels = None if self.labels is None else self.labels[order]
        return replace(self, pairs=self.pairs[order], labels=labels)

    def without_labels(self) -> MentionPairExamples:
        """The same pairs without labels."""
        return replace(self, labels=None)

    def describe(self, index: int) -> PairSequence:
        """The sequence of one pair, with what was cut from it."""
        passages, room = self._passages(index)
        kept = [passage.cut(spans) for passage, spans in zip(passages, _pieces(passages, room), strict=True)]
        written = [marked(passage, special=self.special, marks=self.marks) for passage in kept]
        parts = [[self.special.cls], *(ids for ids, _ in written), [self.special.sep]]
        input_ids = np.concatenate(parts).astype(np.int64)
        mention_mask = np.zeros((2, len(input_ids)), dtype=bool)
        before = 1  # [CLS]
        for ids, places in written:
            for number, tokens in places.items():
                mention_mask[number, [before + token for token in tokens]] = True
            before += len(ids)
        others = (self.special.cls, self.marks.start, self.marks.end)
        lost = tuple(len(p.ids) - len(k.ids) for p, k in zip(passages, kept, strict=True))
        return PairSequence(
            input_ids=input_ids,
            global_attention_mask=mention_tokens(input_ids, mention_mask, others=others).astype(np.int64),
            mention_mask=mention_mask,
            kept_tokens=tuple(len(passage.ids) for passage in kept),
            lost_tokens=lost,
            reasons=tuple(OUTSIDE if count else NOTHING_LOST for count in lost),
        )

    def size_of(self, index: int) -> PairSize:
        """Length, number of global and of cut tokens of a pair's sequence, which is not created for it."""
        passages, room = self._passages(index)
        text = sum(len(passage.ids) for passage in passages)
        lost = max(0, text - room)
        return PairSize(
            length=self.max_length - room + text - lost,
            global_count=1 + _MARKS + sum(passage.in_mentions for passage in passages),
            lost_tokens=lost,
        )

    def length_of(self, index: int) -> int:
        """Number of tokens of a pair's sequence, for batches of similar lengths."""
        return self.size_of(index).length

    @property
    def pair_count(self) -> int:
        """Number of pairs, one in each sequence."""
        return len(self)

    def pairs_of(self, index: int) -> np.ndarray:
        """The numbers of a sequence's pairs, which is only its own."""
        return np.array([index])

    def pair(self, index: int) -> tuple[CoreferenceMention, CoreferenceMention]:
        """The two mentions of a pair."""
        first, second = self.pairs[checked_index(index, len(self), "pair")]
        return self.mentions[first], self.mentions[second]

    def _passages(self, index: int) -> tuple[list[Passage], int]:
        """One passage if both mentions are in one document, else two; and the room for text in tokens."""
        mentions = self.pair(index)
        passages = []
        for name in dict.fromkeys(mention.document for mention in mentions):
            here = {number: mention for number, mention in enumerate(mentions) if mention.document == name}
            if name not in self.documents:
                raise ValueError(f"{next(iter(here.values())).name}: no document of this id was given")
            encoded = self.documents[name]
            for mention in here.values():
                records.check_mention(mention, encoded.document)
            spans = {number: encoded.subwords(mention.tokens) for number, mention in here.items()}
            passage = Passage(ids=encoded.input_ids, spans=spans)
            if self.context == "sentences":
                numbers = sorted({mention.sentence for mention in here.values()})
                passage = passage.cut([encoded.subwords(encoded.document.sentences[n]) for n in numbers])
            passages.append(passage)
        frame = self.special.framing + self.special.per_document * len(passages) + _MARKS
        needed = sum(passage.in_mentions for passage in passages)
        if frame + needed > self.max_length:
            spans = {number: span for passage in passages for number, span in passage.spans.items()}
            parts = [f"{m.name} (length {spans[n][1] - spans[n][0]})" for n, m in enumerate(mentions)]
            raise ValueError(
                f"{' and '.join(parts)} need {frame + needed} tokens with marks and frames, but max_length "
                f"{self.max_length} leaves {max(0, self.max_length - frame)} for text; raise it or leave the "
                "pair out"
            )
        return passages, self.max_length - frame


LEVELS = ("topic", "subtopic", "predicted")
# The training topics of ECB+ have 21.5 negative pairs of events for each positive one and 12.7 of entities,
# so 20 takes nearly all of the former and all of the latter.
NEGATIVES_PER_POSITIVE = 20.0
_NEGATIVES, _ORDER = range(2)  # independent random streams of one seed


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionGroup:
    """Mentions of one kind that can corefer only with each other; `id`: of the group."""

    id: str
    mentions: tuple[CoreferenceMention, ...]


def group_mentions(
    topics: Iterable[Topic], kind: Kind, level: str, predicted: Mapping[str, str] | None = None
) -> list[MentionGroup]:
    """Split the mentions of a kind into groups, in order of first appearance; no group is empty.

    Args:
        level: `topic` and `subtopic` are those of the documents; `predicted` is given by the next argument.
        predicted: document id -> name of its group, for each document that has mentions. A group may span
            several topics. Only used at the level `predicted`.
    """
    check_choice("kind", kind, records.KINDS)
    check_choice("topic level", level, LEVELS)
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
        what = f"document {document.id} has mentions, but is in none of the predicted groups"
        raise ValueError(f"{what} (these have {len(predicted)} documents); add it")
    return predicted[document.id]


def mentions_in(groups: Iterable[MentionGroup]) -> tuple[CoreferenceMention, ...]:
    """The mentions of all groups in order; pairs over several groups contain indices into this tuple."""
    return tuple(chain.from_iterable(group.mentions for group in groups))


def all_pairs(n: int) -> np.ndarray:
    """All pairs of the numbers 0 to n - 1, each once with the lower number first; int64 (n (n - 1) / 2, 2).

    Example:
        >>> all_pairs(3).tolist()
        [[0, 1], [0, 2], [1, 2]]
    """
    return np.stack(np.triu_indices(n, k=1), axis=1).astype(np.int64)


def pairs_within(groups: Sequence[MentionGroup]) -> np.ndarray:
    """All pairs of mentions within a group, each once, group after group; int64 (pairs, 2), indices into
    `mentions_in(groups)`, the lower first."""
    firsts = np.cumsum([0, *(len(group.mentions) for group in groups)])
    parts = [all_pairs(len(group.mentions)) + first for group, first in zip(groups, firsts, strict=False)]
    return np.concatenate([np.empty((0, 2), dtype=np.int64), *parts])


def corefer(groups: Sequence[MentionGroup], pairs: np.ndarray) -> np.ndarray:
    """bool (pairs,), True = same gold cluster; `pairs` contains indices into `mentions_in(groups)`."""
    codes = np.unique([mention.cluster for mention in mentions_in(groups)], return_inverse=True)[1]
    return codes[pairs[:, 0]] == codes[pairs[:, 1]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledPairs:
    """Pairs of mentions, and whether they corefer."""

    pairs: np.ndarray  # int64 (pairs, 2), indices into `mentions_in(groups)`, lower first
    labels: np.ndarray  # float32 (pairs,), 1 = corefer, 0 = do not


def sampled_pairs(
    groups: Sequence[MentionGroup],
    *,
    negatives_per_positive: float = NEGATIVES_PER_POSITIVE,
    seed: int,
    epoch: int,
) -> LabelledPairs:
    """The pairs of one training epoch, shuffled: all positive pairs, and negatives sampled anew each epoch
    (Cattan et al. 2020, which CDLM follows, C.1). A pure function of (seed, epoch).

    Args:
        groups: pairs are made within each; negatives are sampled uniformly over all groups, so each group
            gives its share of them on average.
        negatives_per_positive: number of negatives as a multiple of the number of positives, rounded, and at
            most all there are; `math.inf` = all.
    """
    check_least(0, negatives_per_positive=negatives_per_positive, seed=seed, epoch=epoch)
    pairs = pairs_within(groups)
    same = corefer(groups, pairs)
    positives, negatives = pairs[same], pairs[~same]
    if not len(positives):
        what = f"no two of the {len(mentions_in(groups))} mentions corefer within a group"
        raise ValueError(f"{what}; there is nothing to learn from them")
    wanted = len(negatives)
    if math.isfinite(negatives_per_positive):
        wanted = min(wanted, round(negatives_per_positive * len(positives)))
    drawn = np.random.default_rng([seed, _NEGATIVES, epoch]).choice(len(negatives), wanted, replace=False)
    order = np.random.default_rng([seed, _ORDER, epoch]).permutation(len(positives) + wanted)
    labels = np.repeat(np.array([1, 0], dtype=np.float32), [len(positives), wanted])
    return LabelledPairs(pairs=np.concatenate([positives, negatives[drawn]])[order], labels=labels[order])
