"""A sentence as a model tagged it, and where else in the document a word of it stands.

Predicted spans stand on a ground with their label behind them, gold spans that were not found are underlined
and named. For one word, its occurrences follow with the attention that each got (see `word_occurrences`).
Every colour has a word beside it. Plain HTML without scripts (see `markup`); all texts are untrusted.

Sentences as a model tagged them, with the occurrences that it attended to: what there is to show.

The occurrences of a word of a tagged sentence, nearest first, with the attention that each got (Joerke et
al. 2020, equation 3), as HTML. All texts are untrusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdlm_lab.data.tagged import OUTSIDE, TagSpan, spans_of
from cdlm_lab.widgets.html import (
    CROSS,
    GLOBAL,
    HUES,
    MUTED,
    OTHER_COLOURS,
    ShownMention,
    count_in_words,
    escaped,
    joined,
    muted,
    sentence_html,
    still_page,
)

_SLACK = 1e-3  # a weight may lie so far above 1: half precision


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOccurrence:
    """An occurrence of a word that the model attended to when it tagged the word.

    Attributes:
        words: of the sentence it stands in.
        place: its number in them.
        distance: in sentences, as the model counts them; 0 = in the same sentence.
        weight: the attention it got, in [0, 1].
        sentence: number of that sentence in the document, from 0.

    Raises:
        ValueError: a place outside the words, a negative distance, a weight outside [0, 1].
    """

    words: tuple[str, ...]
    place: int
    distance: int
    weight: float
    sentence: int

    def __post_init__(self) -> None:
        if not 0 <= self.place < len(self.words):
            raise ValueError(f"an occurrence at word {self.place} of {len(self.words)}; count them from 0")
        if self.distance < 0:
            raise ValueError(f"the distance of an occurrence is {self.distance}; it must not be negative")
        if not 0 <= self.weight <= 1 + _SLACK:
            raise ValueError(f"the weight of an occurrence is {self.weight}; it must lie in [0, 1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadWord:
    """A word of a tagged sentence.

    Attributes:
        gold: its true tag, such as "B-PER" or "O"; None = not known.
        predicted: its predicted tag.
        occurrences: those that the model attended to, itself among them if it may; () for a model that
            attends to none.
    """

    word: str
    gold: str | None
    predicted: str
    occurrences: tuple[ReadOccurrence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSentence:
    """A sentence, the tags that a model gave it, and the true ones.

    Attributes:
        document: where it stands.
        number: which sentence of the document it is, from 0.

    Raises:
        ValueError: no words, or gold tags of some words alone.
    """

    document: str
    number: int
    words: tuple[ReadWord, ...]

    def __post_init__(self) -> None:
        where = f"{self.document}, sentence {self.number}"
        if not self.words:
            raise ValueError(f"{where}: it has no words")
        if len({word.gold is None for word in self.words}) > 1:
            raise ValueError(f"{where}: some words have a gold tag and some have not; give all or none")

    @property
    def predicted(self) -> tuple[TagSpan, ...]:
        """The predicted spans."""
        return spans_of([word.predicted for word in self.words])

    @property
    def gold(self) -> tuple[TagSpan, ...] | None:
        """The true spans; None = not known."""
        tags = [word.gold for word in self.words if word.gold is not None]
        return spans_of(tags) if tags else None

    @property
    def right(self) -> bool | None:
        """True = exactly the true spans were predicted; None = these are not known."""
        return None if self.gold is None else self.predicted == self.gold

    @property
    def notable(self) -> tuple[int, ...]:
        """Numbers of the words that are worth a look: predicted to be in a span, or tagged wrongly."""
        return tuple(
            number
            for number, word in enumerate(self.words)
            if word.predicted != OUTSIDE or word.gold not in (None, word.predicted)
        )

    @property
    def first_choice(self) -> int | None:
        """Of those words that with the most occurrences, of several the longest; None = there are none.

        As a rule frequent words have as many occurrences as a model may attend to, "of" and names alike.
        """
        return max(
            self.notable,
            key=lambda number: (len(self.words[number].occurrences), len(self.words[number].word)),
            default=None,
        )


def labels_of_reads(reads: Iterable[ReadSentence]) -> tuple[str, ...]:
    """The labels of all spans of sentences, gold and predicted, sorted."""
    return tuple(sorted({span.label for read in reads for span in (*read.predicted, *(read.gold or ()))}))


UNLABELLED = "#8c8c8c"  # ground of a word outside all spans
HERE = "here"
_SMALL = f"font-size:11.5px;{MUTED}"
_CELL = "vertical-align:top;text-align:left;padding:2px 12px 2px 0"


def occurrences_heading(read: ReadSentence, number: int) -> str:
    """The word, how it is tagged, and how many occurrences elsewhere were attended to, as HTML.

    Args:
        number: of the word in `read.words`.
    """
    word = read.words[number]
    tags = escaped(word.predicted)
    if word.gold not in (None, word.predicted):
        tags += f", gold {escaped(word.gold)}"
    count = elsewhere(read, number)
    occurrences = f"{count_in_words(count)} occurrence{'' if count == 1 else 's'} elsewhere"
    return (
        f'<bdi style="font-weight:600;overflow-wrap:anywhere">{escaped(word.word)}</bdi>&ensp;'
        f'<span style="{_SMALL}">{tags} &middot; {occurrences}</span>'
    )


def elsewhere(read: ReadSentence, number: int) -> int:
    """How many occurrences of a word were attended to, the word itself left out."""
    return sum(not _is_itself(one, read, number) for one in read.words[number].occurrences)


def occurrences_html(read: ReadSentence, number: int, *, colour: str) -> str:
    """A row for each occurrence: where it is, its weight as number and bar, and its sentence, cut to some
    words around the occurrence, which is bold.

    Args:
        number: of the word in `read.words`.
        colour: of the occurrences, `#rrggbb`.
    """
    nearest = sorted(read.words[number].occurrences, key=lambda one: (one.distance, one.sentence, one.place))
    if not nearest:
        return muted("The model attended to no occurrence of this word.")
    largest = max(one.weight for one in nearest)
    rows = "".join(
        f'<tr><td style="{_CELL};white-space:nowrap;{_SMALL}">{_where(one, read, number)}</td>'
        f'<td style="{_CELL}">{_weight(one.weight, largest)}</td>'
        f'<td style="{_CELL};white-space:normal" dir="auto">{_sentence(one, colour)}</td></tr>'
        for one in nearest
    )
    table = (
        '<table class="cdlm-table" style="border-collapse:collapse;font-size:13px;line-height:1.45;'
        f'margin:2px 0"><tbody>{rows}</tbody></table>'
    )
    return table + muted("Number and bar: share of the attention; the bar is full at the largest.", size=11.5)


def _is_itself(one: ReadOccurrence, read: ReadSentence, number: int) -> bool:
    return one.distance == 0 and (one.sentence, one.place) == (read.number, number)


def _where(one: ReadOccurrence, read: ReadSentence, number: int) -> str:
    if _is_itself(one, read, number):
        return HERE
    if one.distance == 0:
        return "this sentence"
    side = "before" if one.sentence < read.number else "after"
    return f"{count_in_words(one.distance)} sentence{'' if one.distance == 1 else 's'} {side}"


def _weight(weight: float, largest: float) -> str:
    """A weight as number and bar."""
    share = weight / largest if largest else 0.0
    full = f"height:3px;width:{100 * share:.0f}%;background:{GLOBAL}"
    bar = f'<div style="height:3px;background:rgba(128,128,128,0.22)"><div style="{full}"></div></div>'
    return f'<div style="width:48px;font-size:12px;text-align:right">{100 * weight:.1f}%{bar}</div>'


def _sentence(one: ReadOccurrence, colour: str) -> str:
    return sentence_html(ShownMention.from_tokens(one.words, (one.place, one.place + 1)), colour)


_WRONG = OTHER_COLOURS[0]
_CHIP = "font-size:10.5px;font-weight:700;white-space:nowrap;letter-spacing:0.02em"
_CHOSEN = "font-weight:700;border:1px solid;border-radius:3px;padding:0 2px"
_STYLE = """
div.cdlm-tagged table.cdlm-table tr{background:none!important}
div.cdlm-tagged{color:var(--jp-ui-font-color1,inherit)}
div.cdlm-tagged summary{cursor:pointer}
"""
_PAGE_STYLE = "div.cdlm-tagged{border-top:1px solid rgba(128,128,128,0.4);padding:14px 0 22px}"


def tagged_sentence_html(
    read: ReadSentence, *, chosen: int | None = None, labels: Sequence[str] | None = None
) -> str:
    """The sentence with its spans, and the occurrences of one word, nearest first.

    Args:
        chosen: number of that word; None = `ReadSentence.first_choice`.
        labels: all labels of the documents, in the order of their colours, so that a label has the same
            colour in all sentences; None = those of this sentence.

    Raises:
        ValueError: `chosen` is no number of a word.
    """
    if chosen is not None and not 0 <= chosen < len(read.words):
        raise ValueError(f"chosen is {chosen}; the sentence has words 0 to {len(read.words) - 1}")
    word = read.first_choice if chosen is None else chosen
    colours = _colours(labels_of_reads([read]) if labels is None else labels)
    lists = "" if word is None else _list(read, word, colours, folded=False)
    return _whole(read, word, colours, lists)


def tagged_page(reads: Sequence[ReadSentence], *, title: str) -> str:
    """A page of its own with all sentences in the order given; it runs nothing and loads nothing. Of each
    sentence the occurrences of `first_choice` are shown, those of its other words in spans are folded.

    Args:
        title: of the page (untrusted text).

    Raises:
        ValueError: no sentences.
    """
    if not reads:
        raise ValueError("there is no sentence to show: reads is empty")
    colours = _colours(labels_of_reads(reads))
    known = [read.right for read in reads if read.right is not None]
    note = f"{count_in_words(len(reads))} sentence{'' if len(reads) == 1 else 's'}"
    if known:
        note += f"; {count_in_words(sum(known))} of {count_in_words(len(known))} right"
    body = "".join(_whole(read, read.first_choice, colours, _lists(read, colours)) for read in reads)
    return still_page(body, title=title, note=note, style=_PAGE_STYLE)


def _whole(read: ReadSentence, chosen: int | None, colours: Mapping[str, str], lists: str) -> str:
    """Head, sentence, legend, and the lists of occurrences, which are HTML already; without any, no word is
    marked as chosen."""
    chosen = chosen if lists else None
    style = "font-size:13.5px;line-height:1.5;max-width:960px;overflow-x:auto"
    text = "font-size:15.5px;line-height:1.95;overflow-wrap:anywhere;margin:2px 0 4px"
    sentence = f'<div style="{text}" dir="auto">{"".join(_marked(read, chosen, colours))}</div>'
    return (
        f'<div class="cdlm-tagged" style="{style}"><style>{_STYLE}</style>'
        f"{_head(read)}{sentence}{_legend(read, chosen)}{lists}</div>"
    )


def _colours(labels: Sequence[str]) -> dict[str, str]:
    return {label: HUES[place % len(HUES)] for place, label in enumerate(labels)}


def _head(read: ReadSentence) -> str:
    where = f"<bdi>{escaped(read.document)}</bdi>, sentence {count_in_words(read.number + 1)}"
    return f'<div style="font-size:12px"><span style="{MUTED}">{where}</span>{_verdict(read.right)}</div>'


def _verdict(right: bool | None) -> str:
    if right is None:
        return ""
    colour, sign, word = (CROSS, "\u2713", "right") if right else (_WRONG, "\u2717", "wrong")
    return f'&ensp;<b style="color:{colour}">{sign}</b> {word}'


def _marked(read: ReadSentence, chosen: int | None, colours: Mapping[str, str]) -> Iterator[str]:
    """The sentence as HTML, piece by piece. Predicted spans are `mark`, missed gold ones `u`, of each word
    and each space by itself, because they may end inside a predicted span."""
    missed = _by_word([span for span in read.gold or () if span not in read.predicted])
    predicted = _by_word(read.predicted)
    for number, word in enumerate(read.words):
        span, gold = predicted.get(number), missed.get(number)
        goes_on = gold is not None and gold.first < number
        yield _underlined(_gap(read, number), gold if goes_on else None, colours)
        if span and span.first == number:
            ground = f"background:{_colour(span, colours)}42;color:inherit;border-radius:3px;padding:2px 3px"
            yield f'<mark style="{ground}">'
        text = escaped(word.word)
        if number == chosen:
            text = f'<b style="{_CHOSEN}">{text}</b>'
        yield _underlined(text, gold, colours)
        if span and span.stop == number + 1:
            yield f"{_predicted_chip(span, read.gold)}</mark>"
        if gold and gold.stop == number + 1:
            yield f' <span style="{_CHIP}">\u25c6 gold {escaped(gold.label)}</span>'


def _by_word(spans: Sequence[TagSpan]) -> dict[int, TagSpan]:
    return {number: span for span in spans for number in range(span.first, span.stop)}


def _gap(read: ReadSentence, number: int) -> str:
    """The space that print has before a word."""
    if not number:
        return ""
    pair = read.words[number - 1].word, read.words[number].word
    return "" if joined(pair) == "".join(pair) else " "


def _colour(span: TagSpan, colours: Mapping[str, str]) -> str:
    return colours.get(span.label, UNLABELLED)


def _underlined(text: str, gold: TagSpan | None, colours: Mapping[str, str]) -> str:
    if gold is None or not text:
        return text
    line = f"text-decoration:underline dashed 2px {_colour(gold, colours)};text-underline-offset:4px"
    return f'<u style="{line}">{text}</u>'


def _predicted_chip(span: TagSpan, gold: Sequence[TagSpan] | None) -> str:
    sign = "" if gold is None else " \u2713" if span in gold else " \u2717"
    return f' <span style="{_CHIP}">{escaped(span.label)}{sign}</span>'


def _lists(read: ReadSentence, colours: Mapping[str, str]) -> str:
    """Occurrences of the notable words that have some elsewhere; the first choice comes first, unfolded."""
    first = read.first_choice
    others = [number for number in read.notable if number != first and elsewhere(read, number)]
    open_list = "" if first is None else _list(read, first, colours, folded=False)
    return open_list + "".join(_list(read, number, colours, folded=True) for number in others)


def _list(read: ReadSentence, number: int, colours: Mapping[str, str], *, folded: bool) -> str:
    """Occurrences of a word under a heading; nothing if the model attends to none at all."""
    if not any(word.occurrences for word in read.words):
        return ""
    span = _by_word(read.predicted).get(number)
    table = occurrences_html(read, number, colour=_colour(span, colours) if span else UNLABELLED)
    heading = occurrences_heading(read, number)
    if folded:
        return f'<details style="margin:6px 0"><summary>{heading}</summary>{table}</details>'
    return f'<div style="margin:8px 0"><div>{heading}</div>{table}</div>'


def _legend(read: ReadSentence, chosen: int | None) -> str:
    """What the marks mean; of the marks those alone that are in the sentence."""
    parts = []
    if read.predicted:
        signs = "" if read.gold is None else ": \u2713 right, \u2717 wrong"
        ground = f"background:{UNLABELLED}42;color:inherit;border-radius:3px;padding:1px 3px"
        parts.append(f'<mark style="{ground}">predicted span</mark>{signs}')
    if any(span not in read.predicted for span in read.gold or ()):
        line = f"text-decoration:underline dashed 2px {UNLABELLED};text-underline-offset:4px"
        parts.append(f'<u style="{line}">gold span</u> that was not found')
    if chosen is not None:
        parts.append(f'<b style="{_CHOSEN}">word</b> of which occurrences are shown')
    if not parts:
        parts.append("no spans" if read.gold is not None else "no span was predicted")
    items = "".join(f'<span style="display:inline-block;margin-right:16px">{part}</span>' for part in parts)
    return f'<div class="cdlm-legend" style="font-size:11.5px;margin:0 0 6px;{MUTED}">{items}</div>'
