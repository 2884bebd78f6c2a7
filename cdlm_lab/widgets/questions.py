"""One question as a model read it: its paragraphs in order, how surely each sentence supports the answer, and
the answer marked in its place.

Every shade has a number and a bar beside it, every mark a word or a line. Plain HTML without scripts (see
`markup`); all texts are untrusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cdlm_lab.data.questions import Paragraph, Place, answer_occurrences
from cdlm_lab.widgets.html import (
    CROSS,
    DEEPEST,
    GLOBAL,
    MASKED,
    MUTED,
    OTHER_COLOURS,
    count_in_words,
    escaped,
    muted,
    still_page,
    table_html,
)

Span = tuple[int, int]
UNREAD = "did not fit"
NONE = "\u2013"
_WRONG = OTHER_COLOURS[0]
_SMALL = f"font-size:11.5px;{MUTED}"
_CELL = "vertical-align:top;text-align:left;white-space:normal"
_MARK = f"background:{MASKED}73;color:inherit;border-radius:2px;font-weight:600"
_UNDERLINE = f"text-decoration:underline 2px {CROSS};text-underline-offset:3px"
_PALE = "opacity:0.55"
_PREDICTED = f'<span style="color:{GLOBAL}">\u25cf</span> predicted'
_GOLD = f'<span style="color:{CROSS}">\u25c6</span> gold'
_STYLE = """
div.cdlm-question table.cdlm-table tr{background:none!important}
div.cdlm-question{color:var(--jp-ui-font-color1,inherit)}
div.cdlm-question summary{cursor:pointer}
"""
_PAGE_STYLE = "div.cdlm-question{border-top:1px solid rgba(128,128,128,0.4);padding:14px 0 22px}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadQuestion:
    """A question, what a model made of it, and what it should have made of it.

    Attributes:
        kind: such as "bridge"; "" = not known.
        gold_answer: None = not known.
        answer: the predicted one.
        place: of the predicted answer: number of the paragraph, "title" or "body", and the half-open span in
            characters of the title or of `Paragraph.text`; None = nowhere, as of yes and no.
        sentence_probabilities: of supporting the answer, by (paragraph, sentence); a sentence that is missing
            did not fit into the model.
        paragraph_probabilities: of being needed, one for each paragraph.
        supporting: the predicted supporting sentences, as (paragraph, sentence).
        gold_supporting: the true ones; None = not known.
        answer_f1, support_f1: in [0, 1]; None = not measured.
        answer_em, support_em: True = predicted exactly; None = not measured.

    Raises:
        ValueError: a sentence or a place that the paragraphs do not have, a number outside [0, 1], or not one
            probability for each paragraph.
    """

    id: str
    question: str
    kind: str
    gold_answer: str | None
    answer: str
    place: Place | None
    paragraphs: tuple[Paragraph, ...]
    sentence_probabilities: Mapping[tuple[int, int], float]
    paragraph_probabilities: tuple[float, ...]
    supporting: frozenset[tuple[int, int]]
    gold_supporting: frozenset[tuple[int, int]] | None
    answer_f1: float | None
    answer_em: bool | None
    support_em: bool | None
    support_f1: float | None

    def __post_init__(self) -> None:
        if problem := next(_problems(self), ""):
            raise ValueError(f"question {self.id!r}: {problem}")

    @property
    def shown_paragraphs(self) -> frozenset[int]:
        """Numbers of the paragraphs with a gold or a predicted sentence, or with the predicted answer."""
        named = {number for number, _ in self.supporting | (self.gold_supporting or frozenset())}
        return frozenset(named | ({self.place[0]} if self.place else set()))


def question_html(read: ReadQuestion, *, folded: bool = True) -> str:
    """The question and both answers, then the paragraphs in order.

    Sentences stand on the blue of their probability to support the answer; predicted and gold ones are named
    so, the predicted answer is marked where it was found, and sentences that did not fit are struck out. The
    gold answer is underlined wherever a model is trained to find it (see `answer_occurrences`): in titles and
    in all sentences of paragraphs with a gold sentence.

    Args:
        folded: True = paragraphs outside `shown_paragraphs` show their titles and open on a click.
    """
    gold = _gold_places(read)
    parts = [
        _paragraph(read, number, gold, folded=folded and number not in read.shown_paragraphs)
        for number in range(len(read.paragraphs))
    ]
    style = "font-size:13.5px;line-height:1.5;max-width:960px;overflow-x:auto"
    body = f"{_head(read)}{_legend(read, gold)}{''.join(parts)}"
    return f'<div class="cdlm-question" style="{style}"><style>{_STYLE}</style>{body}</div>'


def questions_page(reads: Sequence[ReadQuestion], *, title: str) -> str:
    """A page of its own with all questions in the order given; it runs nothing and loads nothing.

    Args:
        title: of the page (untrusted text).

    Raises:
        ValueError: no questions.
    """
    if not reads:
        raise ValueError("there is no question to show: reads is empty")
    asked = f"{count_in_words(len(reads))} question{'' if len(reads) == 1 else 's'}"
    known = [read.answer_em for read in reads if read.answer_em is not None]
    right = f"; {count_in_words(sum(known))} of {count_in_words(len(known))} answers right" if known else ""
    body = "".join(map(question_html, reads))
    return still_page(body, title=title, note=f"{asked}{right}", style=_PAGE_STYLE)


def _problems(read: ReadQuestion) -> Iterator[str]:
    """What is wrong with a question, if anything."""
    count = len(read.paragraphs)
    if len(read.paragraph_probabilities) != count:
        yield f"{len(read.paragraph_probabilities)} probabilities for {count} paragraphs; give one for each"
    known = {(p, s) for p, paragraph in enumerate(read.paragraphs) for s in range(len(paragraph.sentences))}
    named = {*read.sentence_probabilities, *read.supporting, *(read.gold_supporting or ())}
    for paragraph, sentence in sorted(named - known):
        yield f"there is no sentence {sentence} in paragraph {paragraph}; both are numbered from 0"
    numbers = {f"the probability of paragraph {p}": n for p, n in enumerate(read.paragraph_probabilities)}
    numbers |= {f"the probability of sentence {name}": n for name, n in read.sentence_probabilities.items()}
    numbers |= {name: n for name in ("answer_f1", "support_f1") if (n := getattr(read, name)) is not None}
    for name, number in numbers.items():
        if not 0 <= number <= 1:
            yield f"{name} is {number}; it must lie in [0, 1]"
    if read.place is not None:
        number, part, start, end = read.place
        if not 0 <= number < count or part not in ("title", "body"):
            yield f"{read.place} is no place; name a paragraph, title or body, start and end"
        elif not 0 <= start <= end <= len(_part(read.paragraphs[number], part)):
            yield f"{read.place} is no place; start and end must lie in that {part}, in order"


def _part(paragraph: Paragraph, part: str) -> str:
    return paragraph.title if part == "title" else paragraph.text


def _head(read: ReadQuestion) -> str:
    """The question; a table of what was predicted beside what is true."""
    about = " &middot; ".join(escaped(text) for text in (read.kind, read.id) if text)
    question = f'<div style="font-size:16px;font-weight:600" dir="auto">{escaped(read.question)}</div>'
    gold = read.gold_supporting
    rows = [
        ["answer", _answer(read), _text(read.gold_answer), _verdict(read.answer_em, read.answer_f1)],
        [
            "support",
            _sentence_count(read.supporting),
            NONE if gold is None else _sentence_count(gold),
            _verdict(read.support_em, read.support_f1),
        ],
    ]
    columns = ["", "predicted", "gold", ""]
    if gold is None and read.gold_answer is None:
        columns, rows = columns[:2], [row[:2] for row in rows]
    return f"{muted(about)}{question}{table_html(columns, rows, text_columns=range(4))}"


def _text(text: str | None) -> str:
    return f'<bdi style="overflow-wrap:anywhere">{escaped(text)}</bdi>' if text else NONE


def _answer(read: ReadQuestion) -> str:
    """The predicted answer, and in small type the title of the paragraph it comes from."""
    answer = f"<b>{_text(read.answer)}</b>"
    if read.place is None:
        return answer
    return f'{answer}<div style="{_SMALL}">from {_text(read.paragraphs[read.place[0]].title)}</div>'


def _sentence_count(sentences: frozenset[tuple[int, int]]) -> str:
    return f"{len(sentences)} sentence{'' if len(sentences) == 1 else 's'}"


def _verdict(exact: bool | None, f1: float | None) -> str:
    """Right or wrong, in words; how near it came if it is not exact."""
    near = "" if f1 is None or exact else f' <span style="{_SMALL}">F1 {f1:.2f}</span>'
    if exact is None:
        return near
    colour, sign, word = (CROSS, "\u2713", "right") if exact else (_WRONG, "\u2717", "wrong")
    return f'<span style="white-space:nowrap"><b style="color:{colour}">{sign}</b> {word}{near}</span>'


def _legend(read: ReadQuestion, gold: Sequence[Place]) -> str:
    """What ground and marks mean; of the marks those alone that are on the page."""
    swatches = "".join(
        f'<span style="{_blue(depth)};padding:1px 7px">{100 * depth:.0f}%</span>' for depth in (0, 0.5, 1)
    )
    names = _PREDICTED if read.gold_supporting is None else f"{_PREDICTED}, {_GOLD}"
    parts = [f"{swatches} probability that the sentence supports the answer", f"supporting sentence: {names}"]
    if read.place is not None:
        parts.append(f'<mark style="{_MARK}">predicted answer</mark>')
    if gold:
        parts.append(f'<u style="{_UNDERLINE}">gold answer</u> in paragraphs with a gold sentence')
    if len(read.sentence_probabilities) < sum(len(one.sentences) for one in read.paragraphs):
        parts.append(f'<s style="{_PALE}">struck out</s>: {UNREAD}, the model has not read it')
    items = "".join(f'<span style="display:inline-block;margin-right:16px">{part}</span>' for part in parts)
    return f'<div class="cdlm-legend" style="font-size:12px;margin:2px 0 8px">{items}</div>'


def _blue(probability: float) -> str:
    return f"background:{GLOBAL}{round(255 * DEEPEST * probability):02x}"


def _paragraph(read: ReadQuestion, number: int, gold: Sequence[Place], *, folded: bool) -> str:
    """A paragraph: its title and probability, and a row for each sentence."""
    paragraph = read.paragraphs[number]
    title = _marked(paragraph.title, _answer_span(read, number, "title"), _spans(gold, number, "title"))
    needed = f"needed: {100 * read.paragraph_probabilities[number]:.0f}%"
    head = (
        f'<span style="{_SMALL}">{number + 1}</span>&ensp;<bdi style="font-weight:600">{title}</bdi>'
        f'&ensp;<span style="white-space:nowrap;{_SMALL}">{needed}</span>'
    )
    rows, start = [], 0
    underlined = _spans(gold, number, "body")
    for sentence, text in enumerate(paragraph.sentences):
        first, last = _answer_span(read, number, "body")
        of_gold = [(begin - start, end - start) for begin, end in underlined]
        shown = _marked(text, (first - start, last - start), of_gold)
        rows.append(_sentence(read, (number, sentence), shown))
        start += len(text)
    table = (
        '<table class="cdlm-table" style="border-collapse:collapse;font-size:13.5px;margin:2px 0">'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
    if folded:
        return f'<details style="margin:6px 0"><summary>{head}</summary>{table}</details>'
    return f'<div style="margin:10px 0"><div>{head}</div>{table}</div>'


def _sentence(read: ReadQuestion, name: tuple[int, int], text: str) -> str:
    """A row: probability, what is said of the sentence, and the sentence itself, which is HTML already."""
    probability = read.sentence_probabilities.get(name)
    chips = [_PREDICTED] if name in read.supporting else []
    chips += [_GOLD] if name in (read.gold_supporting or ()) else []
    if probability is None:
        number, ground = f'<span style="{_SMALL}">{UNREAD}</span>', ""
        text = f'<s title="{UNREAD}" style="{_PALE}">{text}</s>'
    else:
        number, ground = _bar(probability), f";{_blue(probability)}"
    box = f"line-height:1.5;overflow-wrap:anywhere;border-radius:3px;padding:1px 6px{ground}"
    return (
        f'<tr><td style="{_CELL};padding:2px 8px 2px 0"><div style="width:62px">{number}</div></td>'
        f'<td style="{_CELL};padding:2px 8px 2px 0"><div style="width:74px;font-size:11.5px;line-height:1.5">'
        f"{'<br>'.join(chips)}</div></td>"
        f'<td style="{_CELL};padding:2px 0"><div style="{box}" dir="auto">{text}</div></td></tr>'
    )


def _bar(probability: float) -> str:
    """A probability as number and bar."""
    full = f"height:3px;width:{100 * probability:.0f}%;background:{GLOBAL}"
    bar = f'<div style="height:3px;background:rgba(128,128,128,0.22)"><div style="{full}"></div></div>'
    return f'<div style="width:40px;font-size:12px;text-align:right">{100 * probability:.0f}%{bar}</div>'


def _answer_span(read: ReadQuestion, number: int, part: str) -> Span:
    """Characters of the predicted answer in the title or the body of a paragraph; (0, 0) = not there."""
    return read.place[2:] if read.place and read.place[:2] == (number, part) else (0, 0)


def _spans(places: Sequence[Place], number: int, part: str) -> list[Span]:
    """Characters of those places that lie in the title or the body of a paragraph."""
    return [place[2:] for place in places if place[:2] == (number, part)]


def _gold_places(read: ReadQuestion) -> list[Place]:
    """Where the gold answer stands in paragraphs with gold sentences."""
    gold = sorted({number for number, _ in read.gold_supporting or ()})
    return answer_occurrences(read.gold_answer, read.paragraphs, gold=gold)


def _marked(text: str, marked: Span, underlined: Sequence[Span]) -> str:
    """Text as HTML with one span marked and others underlined; spans may reach beyond the text."""
    ends = {min(max(place, 0), len(text)) for span in (marked, *underlined) for place in span}
    pieces = []
    for start, end in pairwise(sorted({0, len(text)} | ends)):
        piece = escaped(text[start:end])
        if any(first <= start < last for first, last in underlined):
            piece = f'<u style="{_UNDERLINE}">{piece}</u>'
        if marked[0] <= start < marked[1]:
            piece = f'<mark style="{_MARK}">{piece}</mark>'
        pieces.append(piece)
    return "".join(pieces)
