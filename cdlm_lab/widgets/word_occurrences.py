"""The occurrences of a word of a tagged sentence, nearest first, with the attention that each got (Joerke et
al. 2020, equation 3), as HTML. All texts are untrusted."""

from __future__ import annotations

from cdlm_lab.widgets.markup import MUTED, count_in_words, escaped
from cdlm_lab.widgets.shown_mention import ShownMention, muted, sentence_html
from cdlm_lab.widgets.tagged_sentences import ReadOccurrence, ReadSentence
from cdlm_lab.widgets.theme import GLOBAL

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
