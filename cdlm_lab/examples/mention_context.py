"""From two mentions to the one sequence in which a model reads both (CDLM sections 3.2 and C.1):

    [CLS] <doc-s> a <m> fire </m> broke out </doc-s> <doc-s> the <m> blaze </m> spread </doc-s> [SEP]

Two mentions of one document stand in that document, which is written once. What is shown of a document is its
`context`: all of it, or only the sentence of the mention. `[CLS]`, the marks and the mentions are global.

Choices where the paper is silent:
- Marks have no names, so those of nested and of crossing mentions look alike: `<m> a <m> b </m> c </m>`.
  Which token belongs to which mention is told by `mention_mask` alone.
- What is too long is cut to windows centred on the mentions. Each document gets an equal share of the room,
  what a short one leaves goes to the other, and a mention always gets its own length. At the borders of a
  document a window is shifted, not shortened. Two mentions of one document share a window if it holds both;
  otherwise each has its own, and the two are joined. (The released code drops the head or the tail of each
  document, by a count of words that it takes from the head; a mention in a long one can be lost with it.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cdlm_lab.attention.global_tokens import mention_tokens
from cdlm_lab.data.coreference_records import CoreferenceMention, TokenSpan, check_mention

from .encode_document import EncodedDocument
from .packing import NOTHING_LOST, equal_share
from .special_tokens import SpecialTokens

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MENTION_START, MENTION_END = "<m>", "</m>"
CONTEXTS = ("documents", "sentences")
OUTSIDE = "outside the window"
_MARKS = 4  # two for each mention, whether nested or not


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionMarks:
    """Ids of `<m>` and `</m>`, which stand before and after each mention."""

    start: int
    end: int


def marks_from_tokenizer(tokenizer: PreTrainedTokenizerBase) -> MentionMarks:
    """Read the ids off a tokenizer that has both marks.

    Raises:
        ValueError: it has not; the message names the one it lacks.
    """
    known = tokenizer.get_vocab()
    for mark in (MENTION_START, MENTION_END):
        if mark not in known:
            raise ValueError(
                f"the tokenizer {tokenizer.name_or_path!r} has no {mark}: load it with "
                "cdlm_lab.models.cross_encoder.load_pair_scorer, which adds what is missing"
            )
    return MentionMarks(start=known[MENTION_START], end=known[MENTION_END])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairSequence:
    """One sequence with two marked mentions.

    Attributes:
        input_ids: int64 (seq,).
        global_attention_mask: int64 (seq,), 1 = global.
        mention_mask: bool (2, seq), True = token of mention i, in the order given; marks belong to none.
        kept_tokens: of each document in the sequence, the tokens of its context that are there.
        lost_tokens: of each, those left out because the sequence would have been too long.
        reasons: of each, why; empty if nothing was. `LossOfText.over` adds up the losses of many sequences.
    """

    input_ids: np.ndarray
    global_attention_mask: np.ndarray
    mention_mask: np.ndarray
    kept_tokens: tuple[int, ...]
    lost_tokens: tuple[int, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSize:
    """What there is to know of a `PairSequence` without writing it: its tokens, how many of them are global,
    and how many tokens of text are left out."""

    length: int
    global_count: int
    lost_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Passage:
    """Ids (tokens,) of one document's context, and the spans of the mentions in it, by number of mention."""

    ids: np.ndarray
    spans: dict[int, TokenSpan]

    def cut(self, pieces: Sequence[TokenSpan]) -> _Passage:
        """Only these pieces, joined; each mention lies within one of them."""
        spans, length = {}, 0
        for start, end in pieces:
            for number, (first, last) in self.spans.items():
                if start <= first and last <= end:
                    spans[number] = (first - start + length, last - start + length)
            length += end - start
        return _Passage(ids=np.concatenate([self.ids[start:end] for start, end in pieces]), spans=spans)

    @property
    def in_mentions(self) -> int:
        """Tokens of mentions; where mentions overlap, once."""
        return len(set().union(*(range(*span) for span in self.spans.values())))


def pair_sequence(
    first: CoreferenceMention,
    second: CoreferenceMention,
    *,
    documents: Mapping[str, EncodedDocument],
    context: str,
    max_length: int,
    special: SpecialTokens,
    marks: MentionMarks,
) -> PairSequence:
    """Write two mentions and what stands around them into one sequence of at most `max_length` tokens.

    Args:
        first: its document stands first, unless both stand in one, which keeps its own order.
        second: the other.
        documents: those of both mentions, by id.
        context: `documents` or `sentences`. Two sentences of one document stand in one frame, in order.
        max_length: of the whole sequence, special tokens and marks included.
        special: ids of the special tokens.
        marks: ids of the marks.

    Raises:
        ValueError: an unknown context, a document that is not there, a mention outside its document, mentions
            that do not fit.
    """
    mentions = (first, second)
    passages = _passages(mentions, documents=documents, context=context)
    room = _room(passages, mentions=mentions, max_length=max_length, special=special)
    kept = [passage.cut(pieces) for passage, pieces in zip(passages, _pieces(passages, room), strict=True)]
    written = [_marked(passage, special=special, marks=marks) for passage in kept]
    input_ids = np.concatenate([[special.cls], *(ids for ids, _ in written), [special.sep]]).astype(np.int64)
    mention_mask = np.zeros((2, len(input_ids)), dtype=bool)
    before = 1  # [CLS]
    for ids, places in written:
        for number, tokens in places.items():
            mention_mask[number, [before + token for token in tokens]] = True
        before += len(ids)
    global_ = mention_tokens(input_ids, mention_mask, others=(special.cls, marks.start, marks.end))
    lost = tuple(len(p.ids) - len(k.ids) for p, k in zip(passages, kept, strict=True))
    return PairSequence(
        input_ids=input_ids,
        global_attention_mask=global_.astype(np.int64),
        mention_mask=mention_mask,
        kept_tokens=tuple(len(passage.ids) for passage in kept),
        lost_tokens=lost,
        reasons=tuple(OUTSIDE if count else NOTHING_LOST for count in lost),
    )


def pair_size(
    first: CoreferenceMention,
    second: CoreferenceMention,
    *,
    documents: Mapping[str, EncodedDocument],
    context: str,
    max_length: int,
    special: SpecialTokens,
) -> PairSize:
    """How long the sequence of a pair will be; arguments and errors as of `pair_sequence`."""
    mentions = (first, second)
    passages = _passages(mentions, documents=documents, context=context)
    room = _room(passages, mentions=mentions, max_length=max_length, special=special)
    lost = max(0, sum(len(passage.ids) for passage in passages) - room)
    return PairSize(
        length=max_length - room + sum(len(passage.ids) for passage in passages) - lost,
        global_count=1 + _MARKS + sum(passage.in_mentions for passage in passages),
        lost_tokens=lost,
    )


def check_context(context: str) -> None:
    """Raise ValueError, with the names there are, unless `context` is one of them."""
    if context not in CONTEXTS:
        raise ValueError(f"unknown context {context!r}; choose one of {', '.join(CONTEXTS)}")


def _passages(
    mentions: tuple[CoreferenceMention, CoreferenceMention],
    *,
    documents: Mapping[str, EncodedDocument],
    context: str,
) -> list[_Passage]:
    """One passage if both mentions stand in one document, else two."""
    check_context(context)
    passages = []
    for name in dict.fromkeys(mention.document for mention in mentions):
        here = {number: mention for number, mention in enumerate(mentions) if mention.document == name}
        if name not in documents:
            raise ValueError(f"{next(iter(here.values())).name}: no document of this id was given")
        encoded = documents[name]
        for mention in here.values():
            check_mention(mention, encoded.document)
        spans = {number: encoded.subwords(mention.tokens) for number, mention in here.items()}
        passage = _Passage(ids=encoded.input_ids, spans=spans)
        if context == "sentences":
            numbers = sorted({mention.sentence for mention in here.values()})
            passage = passage.cut([encoded.subwords(encoded.document.sentences[n]) for n in numbers])
        passages.append(passage)
    return passages


def _room(
    passages: Sequence[_Passage],
    *,
    mentions: tuple[CoreferenceMention, CoreferenceMention],
    max_length: int,
    special: SpecialTokens,
) -> int:
    """Tokens of text that a sequence holds, after checking that the mentions are not more than that."""
    frame = special.framing + special.per_document * len(passages) + _MARKS
    needed = sum(passage.in_mentions for passage in passages)
    if frame + needed > max_length:
        spans = {number: span for passage in passages for number, span in passage.spans.items()}
        parts = [f"{m.name} (length {spans[n][1] - spans[n][0]})" for n, m in enumerate(mentions)]
        raise ValueError(
            f"{' and '.join(parts)} need {frame + needed} tokens with marks and frames, but max_length "
            f"{max_length} leaves {max(0, max_length - frame)} for text; raise it or leave the pair out"
        )
    return max_length - frame


def _pieces(passages: Sequence[_Passage], room: int) -> list[list[TokenSpan]]:
    """The spans of each passage that are kept, `room` tokens in all if there are so many."""
    borders = [(0, len(passage.ids)) for passage in passages]
    if len(passages) == 2:
        spans = [span for passage in passages for span in passage.spans.values()]
        return [[window] for window in _windows(spans, borders, room)]
    left, right = sorted(passages[0].spans.values())
    both = left[0], max(left[1], right[1])
    if both[1] - both[0] <= room:
        return [_windows([both], borders, room)]
    # They do not overlap, or they would fit. Each side of the middle between them is like a document.
    middle, end = (left[1] + right[0]) // 2, borders[0][1]
    return [_windows([left, right], [(0, middle), (middle, end)], room)]


def _windows(spans: Sequence[TokenSpan], borders: Sequence[TokenSpan], room: int) -> list[TokenSpan]:
    """A window around each of one or two spans, within its borders; `room` tokens in all."""
    lengths = [high - low for low, high in borders]
    widths, _ = equal_share(lengths, budget=room, per_document=0)
    for number, (start, end) in enumerate(spans):
        if end - start > widths[number]:
            widths = [room - (end - start)] * len(spans)
            widths[number] = end - start
    windows = []
    for (start, end), (low, high), width in zip(spans, borders, widths, strict=True):
        centred = (start + end - width) // 2
        shifted = min(max(centred, low), high - width)
        windows.append((shifted, shifted + width))
    return windows


def _marked(
    passage: _Passage, *, special: SpecialTokens, marks: MentionMarks
) -> tuple[np.ndarray, dict[int, list[int]]]:
    """Ids (tokens,) of a passage in its frame with the marks set, and where in them each mention's tokens
    are."""
    starts, ends = zip(*passage.spans.values(), strict=True)
    # A mark stands before the token of its place; at one place closing marks come first.
    signs = sorted([(end, 0, marks.end) for end in ends] + [(start, 1, marks.start) for start in starts])
    parts, written = [[special.start]], 0
    for place, _, mark in signs:
        parts += [passage.ids[written:place], [mark]]
        written = place
    ids = np.concatenate([*parts, passage.ids[written:], [special.end]])
    places = {
        number: [1 + token + sum(place <= token for place, *_ in signs) for token in range(*span)]
        for number, span in passage.spans.items()
    }
    return ids, places
