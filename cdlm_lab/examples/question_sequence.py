"""A question and all of its paragraphs in one sequence (CDLM sections 3.4 and C.3, after Beltagy et al.
2020), with the way back from its positions to sentences and characters:

    [CLS] [q] Who? [/q] <doc-s> <t> Title </t> [s] One. [/s] [s] Two. [/s] </doc-s> <doc-s> ... </doc-s> [SEP]

The paper writes `<s>` and `</s>` around a sentence. Those are Longformer's `[CLS]` and `[SEP]` already, so
here, as in Beltagy et al., they are `[s]` and `[/s]`.

- Global attention, policy `question_titles_sentences`: `[CLS]`, the question with its two marks, each `<t>`
  and each `[s]`. (The released code has `<doc-s>` in place of `<t>`, and that only as an option.)
- What is too long is cut by the policy `equal_share`: the question and the titles stay whole; each paragraph
  gets an equal share of the room for sentences, their marks counted, and what a short one leaves goes to the
  others. A paragraph loses its end. A sentence may be cut in the middle; one without a token left has no
  marks either. A share that ends with room for no more than marks leaves it unused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .encode_question import EncodedParagraph, EncodedQuestion
from .packing import equal_share
from .special_tokens import SpecialTokens

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

QUESTION_START, QUESTION_END = "[q]", "[/q]"
TITLE_START, TITLE_END = "<t>", "</t>"
SENTENCE_START, SENTENCE_END = "[s]", "[/s]"
QUESTION_MARKS = (QUESTION_START, QUESTION_END, TITLE_START, TITLE_END, SENTENCE_START, SENTENCE_END)
GLOBAL_POLICY, CUTTING_POLICY = "question_titles_sentences", "equal_share"

QUESTION_TYPES = ("span", "yes", "no")
SPAN, YES, NO = range(3)
TITLE, NO_SENTENCE = -1, -2
_NO_PARAGRAPH = -1
_PER_SENTENCE = 2  # `[s]` and `[/s]`


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionMarks:
    """Ids of the six marks, in the order of QUESTION_MARKS."""

    question_start: int
    question_end: int
    title_start: int
    title_end: int
    sentence_start: int
    sentence_end: int


def question_marks_of(tokenizer: PreTrainedTokenizerBase) -> QuestionMarks:
    """Read the ids off a tokenizer that has all six as special tokens.

    Raises:
        ValueError: it has not; the message names the first it lacks. A mark that is an ordinary token is
            lacking too: it could not be told from the same signs in a text.
    """
    known = {token.content: i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
    for mark in QUESTION_MARKS:
        if mark not in known:
            raise ValueError(
                f"the tokenizer {tokenizer.name_or_path!r} has no special token {mark}: load it with "
                "cdlm_lab.models.question_answering.load_question_answerer, which adds what is missing"
            )
    names = QuestionMarks.__dataclass_fields__
    return QuestionMarks(**{name: known[mark] for name, mark in zip(names, QUESTION_MARKS, strict=True)})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuestionSequence:
    """One sequence.

    Attributes:
        input_ids: int64 (seq,).
        global_attention_mask: int64 (seq,), 1 = global.
        paragraph: int64 (seq,), number of the paragraph, of its marks too; -1 = none.
        sentence: int64 (seq,), number of the sentence of a token of text, TITLE in titles; NO_SENTENCE at
            all else: marks, the question, special tokens.
        offsets: int64 (seq, 2), characters [start, end) of the title or of `Paragraph.text`, without the
            white space around them; (0, 0) where `sentence` is NO_SENTENCE.
        paragraph_positions: int64 (paragraphs,), of each `<t>`.
        sentence_positions: int64 (sentences,), of each `[s]`: of the sentences of which anything is there.
        sentence_names: int64 (sentences, 2), the paragraph of each and its number in it.
        lost_sentences: of each paragraph, the sentences of which nothing is in the sequence; those that have
            no tokens, as blank ones, too.
        lost_tokens: tokens of sentences left out.
    """

    input_ids: np.ndarray
    global_attention_mask: np.ndarray
    paragraph: np.ndarray
    sentence: np.ndarray
    offsets: np.ndarray
    paragraph_positions: np.ndarray
    sentence_positions: np.ndarray
    sentence_names: np.ndarray
    lost_sentences: tuple[int, ...]
    lost_tokens: int

    @property
    def answerable(self) -> np.ndarray:
        """Bool (seq,), True = token of a title or a sentence. One of white space alone is none: as an answer
        it would say nothing."""
        return (self.sentence != NO_SENTENCE) & (self.offsets[:, 0] < self.offsets[:, 1])

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """What a model reads of it, by name: `input_ids`, `global_attention_mask`, `answerable`,
        `paragraph_positions` and `sentence_positions`."""
        return {
            "input_ids": self.input_ids,
            "global_attention_mask": self.global_attention_mask,
            "answerable": self.answerable,
            "paragraph_positions": self.paragraph_positions,
            "sentence_positions": self.sentence_positions,
        }


def question_sequence(
    encoded: EncodedQuestion, *, special: SpecialTokens, marks: QuestionMarks, max_length: int
) -> QuestionSequence:
    """Write a question into one sequence of at most `max_length` tokens, special ones included.

    Raises:
        ValueError: there is no room for the question, the titles and a token of each paragraph.
    """
    kept = _kept_tokens(encoded, max_length)
    parts = [
        _part([special.cls], attends=True),
        _part([marks.question_start, *encoded.question_ids, marks.question_end], attends=True),
    ]
    for number, (paragraph, count) in enumerate(zip(encoded.paragraphs, kept, strict=True)):
        parts += _paragraph_parts(paragraph, number, count=count, special=special, marks=marks)
    table = np.concatenate([*parts, _part([special.sep])])
    ids, attends, paragraph, sentence = table[:, :4].T.copy()
    sentence_positions = np.flatnonzero((ids == marks.sentence_start) & (sentence == NO_SENTENCE))
    in_paragraphs = paragraph[sentence_positions]
    return QuestionSequence(
        input_ids=ids,
        global_attention_mask=attends,
        paragraph=paragraph,
        sentence=sentence,
        offsets=table[:, 4:].copy(),
        paragraph_positions=np.flatnonzero((ids == marks.title_start) & (sentence == NO_SENTENCE)),
        sentence_positions=sentence_positions,
        # Text follows each mark: a sentence without any has none.
        sentence_names=np.stack([in_paragraphs, sentence[sentence_positions + 1]], axis=1),
        lost_sentences=tuple(
            each.sentence_count - int((in_paragraphs == number).sum())
            for number, each in enumerate(encoded.paragraphs)
        ),
        lost_tokens=sum(len(each.ids) for each in encoded.paragraphs) - sum(kept),
    )


def _kept_tokens(encoded: EncodedQuestion, max_length: int) -> list[int]:
    """Tokens of the sentences of each paragraph that have room."""
    paragraphs = encoded.paragraphs
    # [CLS] [q] question [/q] [SEP], and of each paragraph <doc-s> <t> title </t> </doc-s>
    frame = 4 + len(encoded.question_ids) + sum(4 + len(each.title_ids) for each in paragraphs)
    least = frame + (_PER_SENTENCE + 1) * len(paragraphs)
    if max_length < least:
        raise ValueError(
            f"question {encoded.id}: max_length is {max_length}; the question, its titles and one token of "
            f"each paragraph need {least} with their marks; raise it or leave the question out"
        )
    costs = [_cost(each) for each in paragraphs]
    totals = [int(cost[-1]) if len(cost) else 0 for cost in costs]
    shares, _ = equal_share(totals, budget=max_length - frame, per_document=0)
    return [int((cost <= share).sum()) for cost, share in zip(costs, shares, strict=True)]


def _cost(paragraph: EncodedParagraph) -> np.ndarray:
    """int (tokens,): what the sentences take up if the paragraph ends with this token, marks included."""
    _, sentences_before = np.unique(paragraph.sentence, return_inverse=True)
    return np.arange(1, len(paragraph.ids) + 1) + _PER_SENTENCE * (sentences_before + 1)


def _paragraph_parts(
    paragraph: EncodedParagraph, number: int, *, count: int, special: SpecialTokens, marks: QuestionMarks
) -> list[np.ndarray]:
    """The rows of one paragraph, cut to `count` tokens of its sentences."""
    parts = [
        _part([special.start], paragraph=number),
        _part([marks.title_start], paragraph=number, attends=True),
        _part(paragraph.title_ids, paragraph=number, sentence=TITLE, offsets=paragraph.title_offsets),
        _part([marks.title_end], paragraph=number),
    ]
    sentences = paragraph.sentence[:count]
    for sentence in np.unique(sentences):
        start, end = np.searchsorted(sentences, [sentence, sentence + 1])
        offsets = paragraph.offsets[start:end]
        parts += [
            _part([marks.sentence_start], paragraph=number, attends=True),
            _part(paragraph.ids[start:end], paragraph=number, sentence=sentence, offsets=offsets),
            _part([marks.sentence_end], paragraph=number),
        ]
    return [*parts, _part([special.end], paragraph=number)]


def _part(
    ids: Sequence[int] | np.ndarray,
    *,
    paragraph: int = _NO_PARAGRAPH,
    sentence: int = NO_SENTENCE,
    offsets: np.ndarray | int = 0,
    attends: bool = False,
) -> np.ndarray:
    """int64 (tokens, 6): id, 1 = global, paragraph, sentence, first character, end."""
    rows = np.empty((len(ids), 6), dtype=np.int64)
    rows[:, 0] = ids
    rows[:, 1:4] = attends, paragraph, sentence
    rows[:, 4:] = offsets
    return rows
