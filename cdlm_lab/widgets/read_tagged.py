"""A sentence as a model tagged it, and where else in the document a word of it stands.

Predicted spans stand on a ground with their label behind them, gold spans that were not found are underlined
and named. For one word, its occurrences follow with the attention that each got (see `word_occurrences`).
Every colour has a word beside it. Plain HTML without scripts (see `markup`); all texts are untrusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cdlm_lab.data.tagged_documents import TagSpan
from cdlm_lab.widgets.markup import MUTED, count_in_words, escaped
from cdlm_lab.widgets.shown_mention import HUES, joined
from cdlm_lab.widgets.still_page import still_page
from cdlm_lab.widgets.tagged_sentences import ReadOccurrence, ReadSentence, ReadWord, labels_of_reads
from cdlm_lab.widgets.theme import CROSS, OTHER_COLOURS
from cdlm_lab.widgets.word_occurrences import UNLABELLED, elsewhere, occurrences_heading, occurrences_html

__all__ = ["ReadOccurrence", "ReadSentence", "ReadWord", "labels_of_reads", "sentence_html", "tagged_page"]

_WRONG = OTHER_COLOURS[0]
_CHIP = "font-size:10.5px;font-weight:700;white-space:nowrap;letter-spacing:0.02em"
_CHOSEN = "font-weight:700;border:1px solid;border-radius:3px;padding:0 2px"
_STYLE = """
div.cdlm-tagged table.cdlm-table tr{background:none!important}
div.cdlm-tagged{color:var(--jp-ui-font-color1,inherit)}
div.cdlm-tagged summary{cursor:pointer}
"""
_PAGE_STYLE = "div.cdlm-tagged{border-top:1px solid rgba(128,128,128,0.4);padding:14px 0 22px}"


def sentence_html(
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
