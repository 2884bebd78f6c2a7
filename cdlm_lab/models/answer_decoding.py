"""From the logits of a question to its answer, cut from the original text with its casing and spacing, and to
the sentences that support it (CDLM section 3.4; Beltagy et al. 2020, appendix D).

The answer is the span with the largest sum of the logits of its first and its last token, among those that
start at one of the best starts and end at one of the best ends; "yes" or "no" takes its place where the type
says so. Support is every sentence with a probability above 0.5 ("threshold"), or as many within exactly two
paragraphs ("two_paragraphs"), which is what HotpotQA's questions need. Spans that begin or end inside a word
are taken to its ends, as BERT's answers to SQuAD were: tokens are parts of words.

The released code also takes spans that run from one paragraph into another, puts the words of an answer
together from its tokens, and chooses the two paragraphs by the logits of their sentences alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple
from unicodedata import east_asian_width

import numpy as np
from scipy.special import expit, softmax

from cdlm_lab.data.multihop_questions import MultihopQuestion
from cdlm_lab.examples.question_sequence import QUESTION_TYPES, TITLE, QuestionSequence

SUPPORT = ("threshold", "two_paragraphs")
COUNT, MOST_TOKENS = 20, 30

SentenceName = tuple[int, int]  # number of the paragraph, and of the sentence in it


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanCandidate:
    """Tokens `first` to `last` of a sequence, both included; `score`: sum of the logits of these two."""

    first: int
    last: int
    score: float


class Place(NamedTuple):
    """Characters [start, end) of the title of a paragraph or of its text."""

    paragraph: int
    part: Literal["title", "body"]
    start: int
    end: int


class AnswerSpan(NamedTuple):
    """An answer that a question might have; `score` as of `SpanCandidate`."""

    text: str
    score: float
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedAnswer:
    """What a model says to a question.

    Attributes:
        text: the answer: "yes", "no", or the best span as it stands in the paragraphs.
        type: one of QUESTION_TYPES.
        type_probabilities: of each of them.
        place: of the answer; None for yes and no.
        n_best: different spans, best first, whatever the type.
        sentence_probabilities: that a sentence supports the answer; of those in the sequence.
        paragraph_probabilities: that a paragraph has such a sentence; in their order.
        supporting: the sentences taken for support, ascending.
    """

    text: str
    type: str
    type_probabilities: dict[str, float]
    place: Place | None
    n_best: tuple[AnswerSpan, ...]
    sentence_probabilities: dict[SentenceName, float]
    paragraph_probabilities: tuple[float, ...]
    supporting: tuple[SentenceName, ...]


def best_spans(
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    sequence: QuestionSequence,
    *,
    count: int = COUNT,
    most_tokens: int = MOST_TOKENS,
) -> list[SpanCandidate]:
    """All spans from one of the best starts to one of the best ends that may be an answer, best first.

    A span may be one if it lies in one paragraph, in its title or in its text, over the end of a sentence
    too, and has at most `most_tokens` tokens, marks not counted. If there is none, the single token that is
    best as both start and end. Of equals the one that starts first, then the one that ends first.

    Args:
        start_logits, end_logits: (seq,); what is beyond the sequence is filling.
        count: of starts and of ends.

    Raises:
        ValueError: `count` or `most_tokens` below 1; no token of the sequence can be an answer.
    """
    for name, value in (("count", count), ("most_tokens", most_tokens)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    starts, ends = (np.asarray(logits, dtype=np.float64) for logits in (start_logits, end_logits))
    places = np.flatnonzero(sequence.answerable)
    if not len(places):
        raise ValueError("no token of the sequence can be an answer; leave the question out")
    best_starts, best_ends = (places[np.argsort(-of[places], kind="stable")[:count]] for of in (starts, ends))
    first, last = (grid.ravel() for grid in np.meshgrid(best_starts, best_ends))
    text_token = np.cumsum(sequence.answerable)
    in_title = sequence.sentence == TITLE
    valid = (
        (first <= last)
        & (text_token[last] - text_token[first] < most_tokens)
        & (sequence.paragraph[first] == sequence.paragraph[last])
        & (in_title[first] == in_title[last])
    )
    first, last = first[valid], last[valid]
    if not len(first):
        first = last = places[[np.argmax((starts + ends)[places])]]
    scores = starts[first] + ends[last]
    return [
        SpanCandidate(first=int(first[n]), last=int(last[n]), score=float(scores[n]))
        for n in np.lexsort((last, first, -scores))
    ]


def answer_text(question: MultihopQuestion, sequence: QuestionSequence, candidate: SpanCandidate) -> str:
    """The characters of a span, to the ends of its words, as they stand in the title or the text of its
    paragraph."""
    return _cut(question, sequence, candidate).text


def decode(
    question: MultihopQuestion,
    sequence: QuestionSequence,
    outputs: Mapping[str, np.ndarray],
    *,
    support: str = "threshold",
    most_tokens: int = MOST_TOKENS,
    count: int = COUNT,
) -> DecodedAnswer:
    """The answer to a question.

    Args:
        outputs: logits of the question, as of `QuestionOutput.row`: `type_logits`, `start_logits`,
            `end_logits`, `sentence_logits` and `paragraph_logits`; what is beyond the sequence is filling.
        support: "threshold": sentences with a probability above 0.5, or the best one if there is none.
            "two_paragraphs": the two paragraphs with the largest sum of their own logit and that of their
            best sentence, and in each of them its sentences above 0.5, or its best one. Of equals the first.
        most_tokens, count: as of `best_spans`; `n_best` has at most `count` spans.

    Raises:
        ValueError: as `best_spans`; also another `support`.
    """
    if support not in SUPPORT:
        raise ValueError(f"unknown support {support!r}; choose one of {', '.join(SUPPORT)}")
    candidates = best_spans(
        outputs["start_logits"], outputs["end_logits"], sequence, count=count, most_tokens=most_tokens
    )
    by_place: dict[Place, AnswerSpan] = {}  # the best of those that are the same words
    for candidate in candidates:
        span = _cut(question, sequence, candidate)
        by_place.setdefault(span.place, span)
    n_best = tuple(by_place.values())[:count]
    types = softmax(np.asarray(outputs["type_logits"], dtype=np.float64))
    kind = QUESTION_TYPES[int(np.argmax(types))]
    names = [(int(paragraph), int(sentence)) for paragraph, sentence in sequence.sentence_names]
    logits = dict(zip(names, _numbers(outputs["sentence_logits"]), strict=False))
    paragraphs = _numbers(outputs["paragraph_logits"])[: len(sequence.paragraph_positions)]
    return DecodedAnswer(
        text=n_best[0].text if kind == "span" else kind,
        type=kind,
        type_probabilities=dict(zip(QUESTION_TYPES, types.tolist(), strict=True)),
        place=n_best[0].place if kind == "span" else None,
        n_best=n_best,
        sentence_probabilities={name: float(expit(logit)) for name, logit in logits.items()},
        paragraph_probabilities=tuple(expit(paragraphs).tolist()),
        supporting=_supporting(logits) if support == "threshold" else _of_two_paragraphs(logits, paragraphs),
    )


def _cut(question: MultihopQuestion, sequence: QuestionSequence, candidate: SpanCandidate) -> AnswerSpan:
    number = int(sequence.paragraph[candidate.first])
    in_title = sequence.sentence[candidate.first] == TITLE
    paragraph = question.paragraphs[number]
    source = paragraph.title if in_title else paragraph.text
    start, end = int(sequence.offsets[candidate.first, 0]), int(sequence.offsets[candidate.last, 1])
    while _inside_word(source, start):
        start -= 1
    while _inside_word(source, end):
        end += 1
    place = Place(number, "title" if in_title else "body", start, end)
    return AnswerSpan(source[start:end], candidate.score, place)


def _inside_word(text: str, place: int) -> bool:
    """True if characters on both sides of a place are of one word; signs as wide as Chinese ones never are,
    for they are written without spaces."""
    around = text[max(place - 1, 0) : place + 1]
    return len(around) == 2 and all(one.isalnum() and east_asian_width(one) not in "WF" for one in around)


def _numbers(logits: np.ndarray) -> list[float]:
    return np.asarray(logits, dtype=np.float64).tolist()


def _supporting(logits: Mapping[SentenceName, float]) -> tuple[SentenceName, ...]:
    """Sentences above 0.5, which is a logit of 0, or the best one."""
    best_first = sorted(logits, key=lambda name: (-logits[name], name))
    return tuple(sorted(name for name in best_first if logits[name] > 0)) or tuple(best_first[:1])


def _of_two_paragraphs(
    logits: Mapping[SentenceName, float], paragraphs: list[float]
) -> tuple[SentenceName, ...]:
    """`_supporting` of each of the two best paragraphs that have sentences in the sequence."""
    by_paragraph: dict[int, dict[SentenceName, float]] = {}
    for name, logit in logits.items():
        by_paragraph.setdefault(name[0], {})[name] = logit
    scores = {number: paragraphs[number] + max(of.values()) for number, of in by_paragraph.items()}
    chosen = sorted(scores, key=lambda number: (-scores[number], number))[:2]
    return tuple(name for number in sorted(chosen) for name in _supporting(by_paragraph[number]))
