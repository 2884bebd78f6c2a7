"""Several documents in one sequence: `[CLS] <doc-s> d1 </doc-s> <doc-s> d2 </doc-s> ... [SEP]`.

PACKING_POLICIES names the ways to handle documents that do not all fit. The special tokens of the released
code differ (`<doc-s> <s> sentence </s> ... </doc-s></doc-s>`, sentence marks after full stops, no `[CLS]`);
the layout above is the paper's, with the tokenizer's own first and last token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cdlm_lab.data.records import TokenSpan
from cdlm_lab.errors import check_choice
from cdlm_lab.examples.tokens import EncodedDocument, SpecialTokens

NOTHING_LOST = ""
DID_NOT_FIT = "did not fit"
CUT_TO_SHARE = "cut to share"
FIRST_TOO_LONG = "first document longer than the budget"


Share = tuple[list[int], list[str]]  # for each document: number of tokens kept; reason for a loss


def whole_documents(lengths: Sequence[int], *, budget: int, per_document: int) -> Share:
    """Keep whole documents in order (CDLM, section 2.3, "concatenating related documents ... until reaching
    the input sequence length limit"); the first that does not fit and all after it are left out.

    If even the first is longer than the budget, it is truncated to the budget, and reported, because an empty
    example would teach nothing (the released code builds just that empty example).
    """
    if lengths[0] + per_document > budget:
        others = len(lengths) - 1
        return [budget - per_document] + [0] * others, [FIRST_TOO_LONG] + [DID_NOT_FIT] * others
    fits = int((np.cumsum(np.asarray(lengths) + per_document) <= budget).sum())
    others = len(lengths) - fits
    return [*lengths[:fits]] + [0] * others, [NOTHING_LOST] * fits + [DID_NOT_FIT] * others


def equal_share(lengths: Sequence[int], *, budget: int, per_document: int) -> Share:
    """Give each document the same share, and what short ones do not need to the longer ones. If there is less
    than one text token for each, the last documents are left out."""
    fits = min(len(lengths), budget // (per_document + 1))
    room = budget - fits * per_document
    kept = [0] * len(lengths)
    # Shortest first: each takes at most an equal part of what is left, so no later (longer) one gets less.
    # The remainder of the division thus goes to the longest documents, among equally long ones the earliest.
    for served, number in enumerate(sorted(range(fits), key=lambda n: (lengths[n], -n))):
        kept[number] = min(lengths[number], room // (fits - served))
        room -= kept[number]
    short = [CUT_TO_SHARE if kept[n] < lengths[n] else NOTHING_LOST for n in range(fits)]
    return kept, short + [DID_NOT_FIT] * (len(lengths) - fits)


PACKING_POLICIES: dict[str, Callable[..., Share]] = {
    "whole_documents": whole_documents,
    "equal_share": equal_share,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Packed:
    """One sequence and the origin of its tokens. Documents are only ever truncated at the end."""

    input_ids: np.ndarray  # int64 (seq,)
    # Int64 (seq,), index into the documents given, for `<doc-s>`, `</doc-s>` too; -1 = `[CLS]`, `[SEP]`.
    document: np.ndarray
    is_special: np.ndarray  # bool (seq,), True = added by packing, False = text
    kept_tokens: tuple[int, ...]  # for each document given, number of text tokens in the sequence
    lost_tokens: tuple[int, ...]  # for each document given, number of text tokens left out
    reasons: tuple[str, ...]  # for each document given, why tokens were left out; empty if none

    @property
    def packed_documents(self) -> tuple[int, ...]:
        """Indices of the documents with any token in the sequence, in order."""
        return tuple(number for number, kept in enumerate(self.kept_tokens) if kept)


def pack_documents(
    documents: Sequence[Sequence[int] | np.ndarray], *, max_length: int, policy: str, special: SpecialTokens
) -> Packed:
    """Write documents (token ids without special tokens), in order, into one sequence of at most `max_length`
    tokens, special ones included."""
    check_packing(policy, max_length=max_length, special=special)
    if not documents:
        raise ValueError("no documents to pack")
    lengths = [len(document) for document in documents]
    if 0 in lengths:
        raise ValueError(f"documents[{lengths.index(0)}] is empty; leave empty documents out before packing")
    kept, reasons = PACKING_POLICIES[policy](
        lengths, budget=max_length - special.framing, per_document=special.per_document
    )
    shown = [document[:count] for document, count in zip(documents, kept, strict=True)]
    ids, document, place = _framed(shown, [np.arange(count) for count in kept], special=special)
    return Packed(
        input_ids=ids,
        document=document,
        is_special=place < 0,
        kept_tokens=tuple(kept),
        lost_tokens=tuple(length - count for length, count in zip(lengths, kept, strict=True)),
        reasons=tuple(reasons),
    )


def _framed(
    texts: Sequence[Sequence[int] | np.ndarray], numbers: Sequence[np.ndarray], *, special: SpecialTokens
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Write texts into one sequence with special tokens, without empty ones: the ids; the index of each
    token's text, its separators included; and its entry in `numbers`. int64 (seq,) each, -1 = none."""
    ids, owners, places = [[special.cls]], [[-1]], [[-1]]
    for which, (text, own) in enumerate(zip(texts, numbers, strict=True)):
        if len(text):
            ids += [[special.start], text, [special.end]]
            owners.append(np.full(len(text) + 2, which))
            places += [[-1], own, [-1]]
    ids, owners, places = [*ids, [special.sep]], [*owners, [-1]], [*places, [-1]]
    return tuple(np.concatenate(parts).astype(np.int64) for parts in (ids, owners, places))


def check_packing(policy: str, *, max_length: int, special: SpecialTokens) -> None:
    """Raise ValueError unless the policy is known and `max_length` leaves room for a text token."""
    check_choice("packing policy", policy, PACKING_POLICIES)
    least = special.framing + special.per_document + 1
    if max_length < least:
        what = f"max_length is {max_length}"
        raise ValueError(f"{what}; a document with its special tokens needs at least {least}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LossOfText:
    """How much text a packing policy left out over many examples; created by `LossOfText.over`."""

    examples: int
    documents: int  # number given, packed or not
    tokens: int  # number of text tokens given
    # Number of text tokens left out, and of documents that lost any, by reason.
    tokens_lost: dict[str, int] = field(default_factory=dict)
    documents_touched: dict[str, int] = field(default_factory=dict)

    @classmethod
    def over(cls, examples: Iterable[Packed]) -> LossOfText:
        """Add up the losses of packed examples, which are read one by one."""
        sums = Counter(dict.fromkeys(("examples", "documents", "tokens"), 0))
        lost: Counter[str] = Counter()
        touched: Counter[str] = Counter()
        for packed in examples:
            tokens = sum(packed.kept_tokens) + sum(packed.lost_tokens)
            sums.update(examples=1, documents=len(packed.kept_tokens), tokens=tokens)
            for count, reason in zip(packed.lost_tokens, packed.reasons, strict=True):
                if count:
                    lost[reason] += count
                    touched[reason] += 1
        return cls(
            **sums, tokens_lost=dict(lost.most_common()), documents_touched=dict(touched.most_common())
        )

    @property
    def share_lost(self) -> float:
        """Text tokens left out as a fraction of those given, in [0, 1]; 0 without any text."""
        return sum(self.tokens_lost.values()) / self.tokens if self.tokens else 0.0

    def __str__(self) -> str:
        """One sentence for display."""
        given = f"{_counted(self.tokens, 'token')} in {_counted(self.documents, 'document')}"
        lead = f"{self.share_lost:.1%} of {given} were left out"
        parts = [
            f"{reason}: {_counted(count, 'token')} of {_counted(self.documents_touched[reason], 'document')}"
            for reason, count in self.tokens_lost.items()
        ]
        return f"{lead} ({'; '.join(parts)})" if parts else lead


def _counted(count: int, noun: str) -> str:
    """`1 token`, `2,000 tokens`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DocumentSequence:
    """Documents of words in one sequence, without mention marks or masks, with a mapping from positions back
    to words: the input of models in the attention analysis (CDLM section 3.5) and in the explorer."""

    input_ids: np.ndarray  # int64 (seq,)
    document: np.ndarray  # int64 (seq,), number of the document; -1 = any special token
    word: np.ndarray  # int64 (seq,), index of the word (the record's token) in its document; -1 = special
    lost_tokens: tuple[int, ...]  # number of subword tokens of each document that did not fit

    def positions(self, document: int, words: TokenSpan) -> np.ndarray:
        """Positions of a half-open span of words, in order; empty if it did not fit."""
        start, end = words
        return np.flatnonzero((self.document == document) & (self.word >= start) & (self.word < end))

    def word_numbers(self, sizes: Sequence[int]) -> np.ndarray:
        """int64 (seq,), index of each position's word among the words of all documents, where `sizes` are the
        numbers of words per document; -1 = special."""
        return np.where(self.document < 0, -1, np.cumsum([0, *sizes])[self.document] + self.word)


def document_sequence(
    documents: Sequence[EncodedDocument],
    *,
    special: SpecialTokens,
    max_length: int,
    around: Sequence[TokenSpan] | None = None,
) -> DocumentSequence:
    """Write documents into one sequence of at most `max_length` tokens.

    Documents that are too long are cut: each gets an equal share of the room, what a short one does not need
    goes to the others. A document loses its end, or what is farthest from its span in `around` (half-open, in
    words), which must fit.
    """
    if not documents:
        raise ValueError("no documents to write into a sequence")
    lengths = [len(document.input_ids) for document in documents]
    budget = max_length - special.framing
    kept, _ = equal_share(lengths, budget=budget, per_document=special.per_document)
    if 0 in kept:
        what = f"max_length {max_length} has no room for {len(documents)} documents"
        raise ValueError(f"{what}; raise it or leave some out")
    spans = [(0, 0)] * len(documents) if around is None else around
    texts, words = [], []
    for document, span, room in zip(documents, spans, kept, strict=True):
        start, end = document.subwords(span)
        if end - start > room:
            what = f"document {document.document.id}: words {span} are {end - start} tokens"
            raise ValueError(f"{what}, but it has room for {room}; raise max_length or leave documents out")
        first = min(max((start + end - room) // 2, 0), len(document.input_ids) - room)
        texts.append(document.input_ids[first : first + room])
        numbers = np.repeat(np.arange(len(document.starts) - 1), np.diff(document.starts))
        words.append(numbers[first : first + room])
    ids, document, word = _framed(texts, words, special=special)
    return DocumentSequence(
        input_ids=ids,
        document=np.where(word < 0, -1, document),
        word=word,
        lost_tokens=tuple(length - room for length, room in zip(lengths, kept, strict=True)),
    )
