"""A multihop question and a model's prediction: the paragraphs in order, the probability that each sentence
supports the answer, and the answer span marked in the text.

Every shade has a number and a bar beside it, every mark a word or a line; all texts are untrusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cdlm_lab.data.questions import Place, answer_occurrences
from cdlm_lab.data.records import QUESTION_KINDS, Paragraph
from cdlm_lab.views import html
from cdlm_lab.views.browse import Leafing, has_value, right_or_wrong
from cdlm_lab.views.html import GOLD, PREDICTED, SMALL, div, escaped, name_html, span

UNREAD = "did not fit"
# How supporting sentences are chosen by their probabilities, by the name of the rule.
RULES = {
    "threshold": "above 50%, or the most probable one if none is",
    "two_paragraphs": "in two paragraphs only, there above 50%, or the most probable one if none is",
}
BEST = "most probable"  # beside a sentence that is predicted with 50% or less
NONE = "\u2013"
_MARK = f"background:{html.MASKED}73;color:inherit;border-radius:2px;font-weight:600"
_UNDERLINE = f"text-decoration:underline 2px {html.CROSS};text-underline-offset:3px"
_PALE = "opacity:0.55"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadQuestion:
    """A question with its paragraphs, a model's predictions for it, and the gold answer and sentences."""

    id: str
    question: str
    kind: str  # such as "bridge"; "" = not known
    gold_answer: str | None  # None = not known
    answer: str  # the predicted answer
    # Where the predicted answer stands: index of the paragraph, "title" or "body", and the half-open span of
    # characters of the title or of `Paragraph.text`; None = it is no span, as for yes and no.
    place: Place | None
    paragraphs: tuple[Paragraph, ...]
    # (paragraph, sentence) -> probability that it supports the answer; truncated sentences are missing.
    sentence_probabilities: Mapping[tuple[int, int], float]
    paragraph_probabilities: tuple[float, ...]  # probability that each paragraph is needed for the answer
    supporting: frozenset[tuple[int, int]]  # the predicted supporting sentences, as (paragraph, sentence)
    gold_supporting: frozenset[tuple[int, int]] | None  # the gold ones; None = not known
    answer_f1: float | None  # in [0, 1]; None = not measured
    answer_em: bool | None  # exact match; None = not measured
    support_em: bool | None
    support_f1: float | None
    answer_probability: float | None = None  # of the predicted answer; None = not known
    support: str = "threshold"  # the rule for supporting sentences, one of RULES

    def __post_init__(self) -> None:
        if problem := next(self._problems(), ""):
            raise ValueError(f"question {self.id!r}: {problem}")

    def _problems(self) -> Iterator[str]:
        count = len(self.paragraphs)
        if len(self.paragraph_probabilities) != count:
            probabilities = f"{len(self.paragraph_probabilities)} probabilities"
            yield f"{probabilities} for {count} paragraphs; give one for each"
        known = {(p, s) for p, text in enumerate(self.paragraphs) for s in range(len(text.sentences))}
        named = {*self.sentence_probabilities, *self.supporting, *(self.gold_supporting or ())}
        for paragraph, sentence in sorted(named - known):
            yield f"there is no sentence {sentence} in paragraph {paragraph}; both are numbered from 0"
        numbers = {f"the probability of paragraph {n}": p for n, p in enumerate(self.paragraph_probabilities)}
        numbers |= {f"the probability of sentence {n}": p for n, p in self.sentence_probabilities.items()}
        numbers |= {"answer_f1": self.answer_f1, "support_f1": self.support_f1}
        numbers["answer_probability"] = self.answer_probability
        if self.support not in RULES:
            yield f"support is {self.support!r}; choose one of {', '.join(RULES)}"
        for name, number in numbers.items():
            if number is not None and not 0 <= number <= 1:
                yield f"{name} is {number}; it must lie in [0, 1]"
        if self.place is not None:
            number, part, start, end = self.place
            if not 0 <= number < count or part not in ("title", "body"):
                yield f"{self.place} is no place; name a paragraph, title or body, start and end"
            else:
                text = self.paragraphs[number].title if part == "title" else self.paragraphs[number].text
                if not 0 <= start <= end <= len(text):
                    yield f"{self.place} is no place; start and end must lie in that {part}, in order"

    @property
    def shown_paragraphs(self) -> frozenset[int]:
        """Indices of the paragraphs with a gold or a predicted sentence, or with the predicted answer."""
        named = {number for number, _ in self.supporting | (self.gold_supporting or frozenset())}
        return frozenset(named | ({self.place[0]} if self.place else set()))


def question_html(read: ReadQuestion) -> str:
    """Return the question with the predicted and the gold answer, then the paragraphs in order.

    The blue behind a sentence is deeper for a higher probability of supporting the answer. Predicted and gold
    sentences are labelled, the predicted answer span is marked, and truncated sentences are struck out. The
    gold answer is underlined wherever models are trained to find it: in the titles and all sentences of
    paragraphs with a gold sentence. Paragraphs outside `shown_paragraphs` are folded."""
    gold_paragraphs = sorted({number for number, _ in read.gold_supporting or ()})
    gold = answer_occurrences(read.gold_answer, read.paragraphs, gold=gold_paragraphs)
    parts = []
    for number in range(len(read.paragraphs)):
        head, sentences = _paragraph(read, number, gold)
        shown = number in read.shown_paragraphs
        parts.append(
            div(f"<div>{head}</div>{sentences}", "margin:10px 0") if shown else html.fold(head, sentences)
        )
    return html.view_html("question", f"{_head(read)}{_legend(read, gold)}{''.join(parts)}")


def questions_page(reads: Sequence[ReadQuestion], *, title: str, foreign: str = "") -> str:
    """Return a page with all questions, in the order given, below `foreign`, a warning."""
    facts = html.right_of_known((read.answer_em for read in reads), "{} of {} answers right")
    form = {"noun": "question", "facts": facts, "title": title, "foreign": foreign}
    return html.page_of(reads, question_html, **form)


def _head(read: ReadQuestion) -> str:
    """Return the question, and a table of predicted against gold answer and supporting sentences."""

    def shown(text: str | None) -> str:
        return name_html(text) if text else NONE

    def verdict(exact: bool | None, f1: float | None) -> str:
        """Return "right" or "wrong", and F1 unless the prediction is exact."""
        near = "" if f1 is None or exact else f" {span(f'F1 {f1:.2f}', SMALL)}"
        return near if exact is None else span(f"{html.right_or_wrong(exact)}{near}", "white-space:nowrap")

    answer = f"<b>{shown(read.answer)}</b>"
    if read.answer_probability is not None:
        answer += f"&ensp;{span(f'{100 * read.answer_probability:.1f}%', 'white-space:nowrap')}"
    if read.place is not None:
        answer += div(f"from {shown(read.paragraphs[read.place[0]].title)}", SMALL)
    support = html.counted(len(read.supporting), "sentence")
    gold = NONE if read.gold_supporting is None else html.counted(len(read.gold_supporting), "sentence")
    columns = ["", "predicted", "gold", ""]
    rows = [
        ["answer", answer, shown(read.gold_answer), verdict(read.answer_em, read.answer_f1)],
        ["support", support, gold, verdict(read.support_em, read.support_f1)],
    ]
    if read.gold_supporting is None and read.gold_answer is None:
        columns, rows = columns[:2], [row[:2] for row in rows]
    about = " &middot; ".join(escaped(text) for text in (read.kind, html.shown_id(read.id)) if text)
    table = html.table_html(columns, rows, text_columns=range(4))
    return f"{html.muted(about)}{html.headline(read.question)}{table}"


def _legend(read: ReadQuestion, gold: Sequence[Place]) -> str:
    """Return a legend of the background and of those marks that occur in this view."""
    names = f"{PREDICTED}: {RULES[read.support]}"
    names += "" if read.gold_supporting is None else f"; {GOLD}"
    ground = f"{html.swatches()} probability that the sentence supports the answer"
    parts = [ground, f"supporting sentence: {names}"]
    if read.answer_probability is not None:
        of_words = " times those of its first and its last word among all" if read.place else ""
        parts.append(f"beside the answer: the probability of its type, span, yes or no{of_words}")
    if read.place is not None:
        parts.append(f'<mark style="{_MARK}">predicted answer</mark>')
    if gold:
        parts.append(f'<u style="{_UNDERLINE}">gold answer</u> in paragraphs with a gold sentence')
    if len(read.sentence_probabilities) < sum(len(one.sentences) for one in read.paragraphs):
        parts.append(f'<s style="{_PALE}">struck out</s>: {UNREAD}, the model has not read it')
    return html.legend(parts)


def _paragraph(read: ReadQuestion, number: int, gold: Sequence[Place]) -> tuple[str, str]:
    """Return a paragraph as its title with the paragraph's probability, and a table of its sentences."""
    paragraph, predicted = read.paragraphs[number], [read.place] if read.place else []

    def marked(text: str, part: str, start: int = 0) -> str:
        """Mark the answers in `text`, which begins at character `start` of the title or the body."""
        of_both = (
            [(first - start, last - start) for *where, first, last in places if where == [number, part]]
            for places in (predicted, gold)
        )
        return _marked(text, *of_both)

    title = f'<bdi style="font-weight:600">{marked(paragraph.title, "title")}</bdi>'
    needed = f"needed: {100 * read.paragraph_probabilities[number]:.0f}%"
    head = f"{span(f'{number + 1}', SMALL)}&ensp;{title}&ensp;{span(needed, f'white-space:nowrap;{SMALL}')}"
    rows, start = [], 0
    for sentence, text in enumerate(paragraph.sentences):
        name, body = (number, sentence), marked(text, "body", start)
        start += len(text)
        share, ground = span(UNREAD, SMALL), ""
        if (probability := read.sentence_probabilities.get(name)) is None:
            body = f'<s title="{UNREAD}" style="{_PALE}">{body}</s>'
        else:
            share, ground = html.share_bar(probability), html.blue_ground(probability)
        chosen = name in read.supporting
        signs = [PREDICTED] * chosen + [BEST] * (chosen and (probability or 0) <= 0.5)
        signs += [GOLD] * (name in (read.gold_supporting or ()))
        small = "width:74px;font-size:11.5px;line-height:1.5"
        box = html.text_box(body, f"padding:1px 6px;{ground}")
        rows.append([div(share, "width:62px"), div("<br>".join(signs), small), box])
    return head, html.bare_table(rows, align="top")


def _marked(text: str, marked: Sequence[tuple[int, int]], underlined: Sequence[tuple[int, int]]) -> str:
    """Return text as HTML, with some spans marked and others underlined; spans may extend beyond the text."""
    ends = {min(max(place, 0), len(text)) for ends in (*marked, *underlined) for place in ends}
    pieces = []
    for start, end in pairwise(sorted({0, len(text)} | ends)):
        piece = escaped(text[start:end])
        if any(first <= start < last for first, last in underlined):
            piece = f'<u style="{_UNDERLINE}">{piece}</u>'
        if any(first <= start < last for first, last in marked):
            piece = f'<mark style="{_MARK}">{piece}</mark>'
        pieces.append(piece)
    return "".join(pieces)


def question_browser(reads: Sequence[ReadQuestion]) -> Leafing:
    """Return a browser of questions, filtered by answer, support and kind; right means an exact match."""
    return Leafing(
        reads,
        noun="question",
        filters={
            "answer": right_or_wrong("answer_em"),
            "support": right_or_wrong("support_em"),
            "kind": {kind: has_value("kind", kind) for kind in QUESTION_KINDS},
        },
        text=lambda read: read.question,
        right=lambda read: read.answer_em,
        html=question_html,
    )
