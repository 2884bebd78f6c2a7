"""The one tokeniser and sentence splitter, for all readers and for what a person types; and when two words
are the same.

A word is a run of letters, digits and the marks on them (accents in decomposed text, vowel signs, Hebrew
points, Arabic harakat), with the punctuation inside it: O'Brien, 15-year-old, 3.5, 1,473, 10:30, U.S., צה״ל.
Invisible characters do not break a word: soft hyphens, zero-width joiners and non-joiners, marks of
direction; a zero-width space does so only in scripts that use it between words, such as Thai. Every other
visible character is a token of its own, with what belongs to it (an emoji of several characters). Spans are
in characters of the text as given.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate, pairwise

import regex
from sentencex import get_sentence_boundaries

LETTER = r"[\p{L}\p{N}\p{M}_\u05f3]"  # U+05F3: geresh, which changes the Hebrew letter before it
_HIDDEN = r"[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
_UNSPACED = r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Han}\p{Hiragana}\p{Katakana}]"
_INSIDE = rf"(?:(?!\u200b){_HIDDEN}|(?<!{_UNSPACED})\u200b(?!{_UNSPACED}))+"
# A joiner at the end belongs to the last letter, as in Malayalam and Sinhala.
_RUN = rf"{LETTER}+(?:{_INSIDE}{LETTER}+)*[\u200c\u200d]*"
_ENDING = rf"['’](?:s|m|d|re|ve|ll)(?!{LETTER})"
_SYMBOL = rf"(?!{_HIDDEN}|\p{{Cc}}|\s)\X"
_FORM = r"""(?:\p{{L}}\.){{2,}}(?!{letter})
    | {ending}
    | {run} (?: (?: (?!{ending})['’] | [-‐‑.] | (?<=\d)[,:](?=\d) | (?<=\p{{Hebrew}})["״] ) {run} )*
    | {symbol}"""
_TOKEN, _TOKEN_OR_ENDING = (
    regex.compile(
        _FORM.format(letter=LETTER, run=_RUN, symbol=_SYMBOL, ending=ending),
        regex.VERBOSE | regex.IGNORECASE,
    )
    for ending in (r"(?!)", _ENDING)
)
_ONLY_RUN, _RUN_OR_SIGN = regex.compile(_RUN), regex.compile(rf"{_RUN}|{_SYMBOL}")
# All invisible characters but the joiners, which tell words apart in Persian and in scripts of India.
_NO_MEANING = dict.fromkeys(
    [0xAD, 0x61C, 0x180E, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF]
)


def token_spans(
    text: str,
    *,
    start: int = 0,
    end: int | None = None,
    boundaries: Iterable[int] = (),
    endings_apart: bool = False,
) -> list[tuple[int, int]]:
    """The tokens of text[start:end] as spans [first, last + 1) in characters of `text`; white space, control
    characters and invisible ones between words are in no span.

    `boundaries`: offsets at which a token is split in two, so that mentions consist of whole tokens.
    `endings_apart`: True = possessive endings and contracted verbs ('s, 're) are tokens, as in many corpora.

    Example:
        >>> text = "Ann's car-park: 62,689 cars."
        >>> [text[first:last] for first, last in token_spans(text)]
        ["Ann's", 'car-park', ':', '62,689', 'cars', '.']
    """
    cuts, spans = sorted(set(boundaries)), []
    pattern = _TOKEN_OR_ENDING if endings_apart else _TOKEN
    for match in pattern.finditer(text, start, len(text) if end is None else end):
        first, last = match.span()
        spans += pairwise([first, *cuts[bisect_right(cuts, first) : bisect_left(cuts, last)], last])
    return spans


def words_of(text: str, *, signs: bool = False) -> list[str]:
    """The runs of letters and digits of a text, each as `plain_word`; `signs`: with every other visible
    character between them."""
    return [plain_word(run) for run in (_RUN_OR_SIGN if signs else _ONLY_RUN).findall(text)]


def visible_word(word: str) -> str:
    """A word without soft hyphens, zero-width spaces and marks of direction."""
    return word if word.isascii() else word.translate(_NO_MEANING)


def plain_word(word: str) -> str:
    """The form by which words are compared: in Unicode's normal form C, without invisible characters; joiners
    stay, since they tell words apart in some languages."""
    return word if word.isascii() else unicodedata.normalize("NFC", visible_word(word))


# ---- sentences ----

_SPACE = re.compile(r"\s")
_BREAK = re.compile(r"[^\S\n]*\n\s*")
_WRAPPED = 40  # least width of a text whose lines an editor has wrapped; verses are shorter


_ENTRY = re.compile(r"[a-z][.)]\s")  # "a) first", an entry of a list, though it begins in lower case


def line_ends(text: str) -> list[int]:
    """The character offsets behind those line breaks of a text that end a sentence, whatever precedes them.

    A blank line always does. Any other line break does, too, as behind a headline, an entry of a list or a
    verse, unless the text goes on: the line ends with a comma, or with a full stop, which may be that of an
    abbreviation; the next line begins with a lower-case letter; or an editor has wrapped the lines and this
    one is full. Lines are wrapped if the longest one that goes on with a lower-case letter has at least 40
    characters, which gives the width; a line is full if the first word of the next one would not have fitted
    into that width.

    Example:
        >>> line_ends("Blast in Telk\\nTwo miners\\ndied.\\n\\nMore follows.")
        [14, 31, 32]
    """
    lines = [line.strip() for line in text.split("\n")]
    places = accumulate(len(line) + 1 for line in text.split("\n"))
    goes_on = [
        bool(one) and after[:1].islower() and not _ENTRY.match(after) for one, after in pairwise(lines)
    ]
    width = max((len(line) for line, on in zip(lines, goes_on, strict=False) if on), default=0)

    def ends(line: str, after: str) -> bool:
        fits = width < _WRAPPED or len(line) + 1 + len(after.split(maxsplit=1)[0]) <= width
        return fits and not line.endswith((",", "."))

    each = zip(places, pairwise(lines), goes_on, strict=False)
    return [
        place for place, (line, after), on in each if not (line and after) or (not on and ends(line, after))
    ]


def sentence_starts(text: str) -> list[int]:
    """The character offsets at which English sentences of a text begin; `line_ends` says which line breaks
    end one."""
    starts: list[int] = []
    for start, end in pairwise([0, *line_ends(text), len(text)]):
        # sentencex 1.0.32 panics at white space of several bytes, and takes every line break for an end.
        plain = _SPACE.sub(" ", text[start:end])
        if plain.strip():
            starts += [start + one["start_index"] for one in get_sentence_boundaries("en", plain)]
    return starts


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """The sentences of an English text as spans in its characters, without the white space around them; []
    for an empty text. `line_ends` says which line breaks end a sentence."""
    pieces = ((start, text[start:end]) for start, end in pairwise([*sentence_starts(text), len(text)]))
    stripped = ((start + len(one) - len(one.lstrip()), one.strip()) for start, one in pieces)
    return [(start, start + len(one)) for start, one in stripped if one]


def split_sentences(text: str) -> list[str]:
    """Split an English text into sentences, stripped, as `sentence_spans` does; line breaks within a sentence
    become spaces."""
    return [_SPACE.sub(" ", _BREAK.sub(" ", text[start:end])) for start, end in sentence_spans(text)]


def with_spaces(text: str) -> str:
    """A text with a space for every other white space, so that it has the same length."""
    return _SPACE.sub(" ", text)
