"""Questions over several paragraphs: each is one sequence with all of its paragraphs, with a mapping from
positions back to sentences and characters (CDLM sections 3.4 and C.3, after Beltagy et al. 2020):

    [CLS] [q] Who? [/q] <doc-s> <t> Title </t> [s] One. [/s] [s] Two. [/s] </doc-s> <doc-s> ... </doc-s> [SEP]

The paper puts `<s>` and `</s>` around a sentence, which are already Longformer's `[CLS]` and `[SEP]`. Global
are `[CLS]`, the question with its two marks, each `<t>` and each `[s]`. What is too long is truncated: the
question and the titles stay whole; each paragraph gets an equal share of the room for sentences and marks,
what a short one does not need goes to the others, and it loses its end. A sentence that loses all its tokens
has no marks. The loss sums over all occurrences of an answer, as in Clark and Gardner 2018, section 3.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cdlm_lab.data.questions import Place, answer_occurrences
from cdlm_lab.data.records import MultihopQuestion, Paragraph
from cdlm_lab.examples.collate import collated, plan_of
from cdlm_lab.examples.packing import equal_share
from cdlm_lab.examples.passes import checked_index
from cdlm_lab.examples.tokens import EncodedById, SpecialTokens, as_within_a_text, lacking, tokenise

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedParagraph:
    """A tokenised paragraph, without special tokens.

    Offsets are half-open ranges of characters. White space around a token does not count, and a token of
    nothing but white space has an empty range. Several tokens may share one character, as the bytes of an
    accented letter do; each has all of it.
    """

    title_ids: np.ndarray  # int32 (title tokens,)
    title_offsets: np.ndarray  # int32 (title tokens, 2), characters of the title
    ids: np.ndarray  # int32 (tokens,), of all sentences
    offsets: np.ndarray  # int32 (tokens, 2), characters of `Paragraph.text`
    sentence: np.ndarray  # int32 (tokens,), number of each token's sentence, ascending


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedQuestion:
    """A tokenised question with its paragraphs, without special tokens."""

    id: str  # of the question
    question_ids: np.ndarray  # int32 (tokens,)
    paragraphs: tuple[EncodedParagraph, ...]  # in the order of the question's paragraphs


_Text = tuple[np.ndarray, np.ndarray]  # ids (tokens,) and offsets (tokens, 2) of one text


def encode_question(question: MultihopQuestion, tokenizer: PreTrainedTokenizerBase) -> EncodedQuestion:
    """Tokenise the question, each title and each sentence separately, each as if a space stood before it."""
    texts = [question.text]
    for paragraph in question.paragraphs:
        texts += [paragraph.title, *paragraph.sentences]
    encoded = iter(_encoded(texts, tokenizer))
    question_ids, _ = next(encoded)
    return EncodedQuestion(
        id=question.id,
        question_ids=question_ids,
        paragraphs=tuple(_paragraph(paragraph, encoded) for paragraph in question.paragraphs),
    )


class EncodedQuestions(EncodedById[MultihopQuestion, EncodedQuestion]):
    """Tokenised questions by id, each encoded when it is first read."""

    def __init__(self, questions: Iterable[MultihopQuestion], tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__(questions, partial(encode_question, tokenizer=tokenizer), kind="questions")


def _paragraph(paragraph: Paragraph, encoded: Iterator[_Text]) -> EncodedParagraph:
    """A paragraph from the next of the `encoded` texts: its title, then its sentences."""
    title_ids, title_offsets = next(encoded)
    ids, spans = [np.empty(0, np.int32)], [np.empty((0, 2), np.int32)]
    start = 0  # of the sentence, in the characters of the paragraph
    for text in paragraph.sentences:
        of_sentence, own = next(encoded)
        ids.append(of_sentence)
        spans.append(own + np.int32(start))
        start += len(text)
    counts = [len(one) for one in ids[1:]]
    return EncodedParagraph(
        title_ids=title_ids,
        title_offsets=title_offsets,
        ids=np.concatenate(ids),
        offsets=np.concatenate(spans),
        sentence=np.repeat(np.arange(len(counts), dtype=np.int32), counts),
    )


def _encoded(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[_Text]:
    """Ids and offsets of each text; a text of nothing but white space has no tokens."""
    encoded = tokenise([as_within_a_text(text) for text in texts], tokenizer, return_offsets_mapping=True)
    return [
        (np.array(ids, dtype=np.int32), _own_characters(text, spans))
        for text, ids, spans in zip(texts, encoded["input_ids"], encoded["offset_mapping"], strict=True)
    ]


def _own_characters(text: str, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """int32 (tokens, 2), characters of `text`, from `spans` in ` {text.strip()}`, without white space around
    them; whether a byte-level BPE counts the space before a word differs between tokenizers."""
    first = len(text) - len(text.lstrip())
    own = []
    for start, end in spans:
        # The space added in front is not a character of the text.
        low, high = (max(place + first - 1, first) for place in (start, end))
        low += len(text[low:high]) - len(text[low:high].lstrip())
        own.append((low, low + len(text[low:high].strip())))
    return np.array(own, dtype=np.int32).reshape(-1, 2)


QUESTION_MARKS = ("[q]", "[/q]", "<t>", "</t>", "[s]", "[/s]")  # around a question, a title, a sentence
QUESTION_TYPES = ("span", "yes", "no")
SPAN, YES, NO = range(3)
TITLE, NO_SENTENCE = -1, -2
_NO_PARAGRAPH = -1
_PER_SENTENCE = 2  # `[s]` and `[/s]`


class QuestionMarks(NamedTuple):
    """Ids of the six marks, in the order of QUESTION_MARKS."""

    question_start: int
    question_end: int
    title_start: int
    title_end: int
    sentence_start: int
    sentence_end: int


def question_marks_of(tokenizer: PreTrainedTokenizerBase) -> QuestionMarks:
    """Ids of the six marks in a tokenizer; ValueError unless it has all as special tokens. A mark that is an
    ordinary token does not count: it could not be told from the same characters in a text."""
    known = {token.content: i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
    for mark in QUESTION_MARKS:
        if mark not in known:
            raise lacking(tokenizer, f"special token {mark}", "question_answering.load_question_answerer")
    return QuestionMarks(*(known[mark] for mark in QUESTION_MARKS))


_INPUTS = ("input_ids", "global_attention_mask", "answerable", "paragraph_positions", "sentence_positions")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuestionSequence:
    """A question and its paragraphs as one sequence."""

    input_ids: np.ndarray  # int64 (seq,)
    global_attention_mask: np.ndarray  # int64 (seq,), 1 = global
    paragraph: np.ndarray  # int64 (seq,), number of the paragraph, for its marks too; -1 = none
    # Int64 (seq,), number of each token's sentence, TITLE in titles, NO_SENTENCE everywhere else: marks, the
    # question, special tokens.
    sentence: np.ndarray
    # Int64 (seq, 2), characters [start, end) of the title or of `Paragraph.text`, without the white space
    # around them; (0, 0) where `sentence` is NO_SENTENCE.
    offsets: np.ndarray
    paragraph_positions: np.ndarray  # int64 (paragraphs,), of each `<t>`
    sentence_positions: np.ndarray  # int64 (sentences,), of each `[s]`, for sentences with any token left
    sentence_names: np.ndarray  # int64 (sentences, 2), paragraph of each, and its number in that
    lost_tokens: int  # number of sentence tokens left out

    @property
    def answerable(self) -> np.ndarray:
        """Bool (seq,), True = token of a title or a sentence. Tokens of nothing but white space are not,
        since such an answer would be empty."""
        return (self.sentence != NO_SENTENCE) & (self.offsets[:, 0] < self.offsets[:, 1])

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """The arrays that a model reads, by name."""
        return {key: getattr(self, key) for key in _INPUTS}


def question_sequence(
    encoded: EncodedQuestion, *, special: SpecialTokens, marks: QuestionMarks, max_length: int
) -> QuestionSequence:
    """Write a question into one sequence of at most `max_length` tokens, special ones included. ValueError if
    that has no room for the question, the titles and one token of each paragraph."""
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
    return QuestionSequence(
        input_ids=ids,
        global_attention_mask=attends,
        paragraph=paragraph,
        sentence=sentence,
        offsets=table[:, 4:].copy(),
        paragraph_positions=np.flatnonzero((ids == marks.title_start) & (sentence == NO_SENTENCE)),
        sentence_positions=sentence_positions,
        # Text follows each mark, since sentences without text have no mark.
        sentence_names=np.stack([paragraph[sentence_positions], sentence[sentence_positions + 1]], axis=1),
        lost_tokens=sum(len(each.ids) for each in encoded.paragraphs) - sum(kept),
    )


def _kept_tokens(encoded: EncodedQuestion, max_length: int) -> list[int]:
    """The number of sentence tokens of each paragraph that fit."""
    paragraphs = encoded.paragraphs
    # [CLS] [q] question [/q] [SEP], and of each paragraph <doc-s> <t> title </t> </doc-s>
    frame = 4 + len(encoded.question_ids) + sum(4 + len(each.title_ids) for each in paragraphs)
    least = frame + (_PER_SENTENCE + 1) * len(paragraphs)
    if max_length < least:
        raise ValueError(
            f"question {encoded.id}: max_length is {max_length}; the question, its titles and one token of "
            f"each paragraph need {least} with their marks; raise it or leave the question out"
        )
    # for each token of a paragraph: the length of its sentences, with marks, if they end with this token
    sentences_before = [np.unique(each.sentence, return_inverse=True)[1] for each in paragraphs]
    costs = [np.arange(1, len(one) + 1) + _PER_SENTENCE * (one + 1) for one in sentences_before]
    totals = [int(cost[-1]) if len(cost) else 0 for cost in costs]
    shares, _ = equal_share(totals, budget=max_length - frame, per_document=0)
    return [int((cost <= share).sum()) for cost, share in zip(costs, shares, strict=True)]


def _paragraph_parts(
    paragraph: EncodedParagraph, number: int, *, count: int, special: SpecialTokens, marks: QuestionMarks
) -> list[np.ndarray]:
    """The table rows of one paragraph, truncated to `count` tokens of its sentences."""
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
    """Table rows of tokens, int64 (tokens, 6): id, 1 = global, paragraph, sentence, start and end offset."""
    rows = np.empty((len(ids), 6), dtype=np.int64)
    rows[:, 0] = ids
    rows[:, 1:4] = attends, paragraph, sentence
    rows[:, 4:] = offsets
    return rows


def answer_positions(question: MultihopQuestion, sequence: QuestionSequence) -> np.ndarray:
    """All occurrences of the answer's text in titles and sentences of the gold paragraphs that are entirely
    in the sequence: int64 (occurrences, 2), positions of first and last token, inclusive, both `answerable`,
    ascending. (0, 2) if there is none, the answer is yes, no or unknown, or no paragraph is known to be
    gold."""
    places = answer_occurrences(question.answer, question.paragraphs, gold=question.gold_paragraphs)
    spans = [tokens for place in places if (tokens := _tokens(sequence, place)) is not None]
    return np.array(sorted(spans), dtype=np.int64).reshape(-1, 2)


def _tokens(sequence: QuestionSequence, place: Place) -> tuple[int, int] | None:
    """First and last token with a character of the place; None if it is not entirely in the sequence."""
    number, part, start, end = place
    sentence = sequence.sentence
    text = (sentence == TITLE) if part == "title" else (sentence != TITLE) & (sentence != NO_SENTENCE)
    here = np.flatnonzero((sequence.paragraph == number) & text & sequence.answerable)
    starts, ends = sequence.offsets[here].T
    inside = here[(starts < end) & (ends > start)]
    # Paragraphs are truncated at the end, so if the last character is there, all before it are.
    if not len(inside) or ends.max() < end:
        return None
    return int(inside[0]), int(inside[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class FitFacts:
    """How much of some questions is in their sequences."""

    questions_cut: int  # those of which tokens are cut
    tokens: int  # number of tokens in sentences
    tokens_lost: int
    supporting: int  # number of supporting sentences
    supporting_lost: int
    span_questions: int  # with a span as answer and known supporting sentences
    without_occurrence: int  # of them, those without the answer in the gold paragraphs as truncated


@dataclass(frozen=True, kw_only=True, eq=False)
class QuestionExamples:
    """Map-style dataset of questions; each sequence is created when it is read.

    `examples[i]` is a dict of
    - `input_ids` int64 (seq,), `global_attention_mask` int64 (seq,), 1 = global;
    - `answerable` bool (seq,), True = an answer may start or end here;
    - `paragraph_positions` int64 (paragraphs,) and `sentence_positions` int64 (sentences,), of their marks;
    and with labels
    - `labels` int64 (), the type of the answer, an index into QUESTION_TYPES;
    - `answer_positions` int64 (occurrences, 2), first and last token of each occurrence of the answer;
    - `paragraph_labels` int64 (paragraphs,), 1 = has supporting sentences;
    - `sentence_labels` int64 (sentences,), 1 = supporting.
    """

    questions: Sequence[MultihopQuestion]
    encoded: Mapping[str, EncodedQuestion]  # by id; `EncodedQuestions` encodes each when first read
    special: SpecialTokens
    marks: QuestionMarks
    max_length: int  # of a sequence, special tokens included
    labelled: bool = True  # False = leave out the four label keys

    def __len__(self) -> int:
        return len(self.questions)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        sequence = self.describe(index)
        return sequence.inputs | (_labels(self.questions[index], sequence) if self.labelled else {})

    def describe(self, index: int) -> QuestionSequence:
        """The sequence of one question, with what was truncated from it."""
        encoded = self.encoded[self.questions[checked_index(index, len(self), "question")].id]
        return question_sequence(encoded, special=self.special, marks=self.marks, max_length=self.max_length)

    def fit_facts(self) -> FitFacts:
        """Measure how much of the questions is in their sequences; reads all of them."""
        total: Counter[str] = Counter()
        for index, question in enumerate(self.questions):
            total.update(_fit(question, self.describe(index)))
        return FitFacts(**{name: total[name] for name in FitFacts.__dataclass_fields__})


def _labels(question: MultihopQuestion, sequence: QuestionSequence) -> dict[str, np.ndarray]:
    """The four label keys, from the answer and the supporting facts of a question."""
    needed, gold = _needed(question), question.gold_paragraphs
    supporting = [tuple(name) in needed for name in sequence.sentence_names.tolist()]
    return {
        "labels": np.array(QUESTION_TYPES.index(question.type), dtype=np.int64),
        "answer_positions": answer_positions(question, sequence),
        "sentence_labels": np.array(supporting, dtype=np.int64),
        "paragraph_labels": np.isin(np.arange(len(question.paragraphs)), gold).astype(np.int64),
    }


def _needed(question: MultihopQuestion) -> set[tuple[int, int]]:
    """Paragraph, and index in it, of each supporting sentence."""
    numbers = {paragraph.title: number for number, paragraph in enumerate(question.paragraphs)}
    return {(numbers[title], sentence) for title, sentence in question.supporting}


def _fit(question: MultihopQuestion, sequence: QuestionSequence) -> dict[str, int]:
    """The contribution of one question to each field of FitFacts."""
    needed = _needed(question)
    present = set(map(tuple, sequence.sentence_names.tolist()))
    seeks_span = question.type == "span" and bool(needed)
    return {
        "questions_cut": int(sequence.lost_tokens > 0),
        "tokens": int((sequence.sentence >= 0).sum()) + sequence.lost_tokens,
        "tokens_lost": sequence.lost_tokens,
        "supporting": len(needed),
        "supporting_lost": len(needed - present),
        "span_questions": int(seeks_span),
        "without_occurrence": int(seeks_span and not len(answer_positions(question, sequence))),
    }


_LABELS = {"labels", "answer_positions", "sentence_labels", "paragraph_labels"}
_FILL: dict[str, int | bool] = {
    "answerable": False,
    "paragraph_positions": -1,
    "sentence_positions": -1,
    "answer_positions": -1,
    "sentence_labels": -100,
    "paragraph_labels": -100,
}


@dataclass(frozen=True, slots=True)
class QuestionCollate:
    """Pads examples of `QuestionExamples` and stacks them into what `QuestionAnswerer.forward` takes:
    `input_ids` with `pad_token_id`, positions with -1, labels of sentences and paragraphs with -100, masks
    with 0 or False.

    Example, for `QuestionCollate(pad_token_id=0)`, of two of the keys:

        [{"input_ids": [5, 7, 9], "answer_positions": [[1, 2]], ...},
         {"input_ids": [5, 9],    "answer_positions": [], ...}]
        gives
        {"input_ids":        [[5, 7, 9], [5, 9, 0]],
         "attention_mask":   [[1, 1, 1], [1, 1, 0]],
         "answer_positions": [[[1, 2]], [[-1, -1]]], ...}
    """

    pad_token_id: int
    window: int | None = None  # of the model: add its `plan`

    def __call__(self, examples: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Any]:
        """Pad and stack; the four label keys must be in all examples or in none. `answer_positions` (batch,
        occurrences, 2) may have 0 occurrences."""
        fill = _FILL | {"input_ids": self.pad_token_id}
        batch = collated(examples, needed=_INPUTS, optional=_LABELS, fill=fill)
        return batch if self.window is None else batch | {"plan": plan_of(batch, window=self.window)}
