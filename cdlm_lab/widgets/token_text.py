"""Running text in which every token's part in training can be seen, as compact HTML.

Each property has its own place, so that all can meet on one token and none depends on hue alone:

| property | tag | with our stylesheet | without it (untrusted notebook) |
|---|---|---|---|
| masked | `<mark>` | amber ground, a sign if swapped or kept | yellow ground, the same signs |
| global | `<u>` | blue line below | line below |
| stated in another document too | `<b>` | green dots above | bold |
| special token | `<small>` | grey tablet | small print |

Tags without attributes also keep an example of 4,096 tokens below 100 kB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from cdlm_lab.widgets.markup import count_in_words, escaped
from cdlm_lab.widgets.theme import CROSS, GLOBAL, MASKED

SWAPPED_SIGN = "\u2192"  # an arrow, then the word that stands in place
KEPT_SIGN = "="
LONGEST_SPECIAL_RUN = 3  # more equal special tokens in a row (padding) are shown once, with their number

TOKEN_STYLE = f"""
div.cdlm-packed .cdlm-text{{white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.85}}
div.cdlm-packed mark{{background:{MASKED}59;color:inherit;border-radius:3px;padding:1px 2px;margin:0 -1px}}
div.cdlm-packed mark i{{font-style:normal;font-size:.82em;opacity:.8;padding-left:3px}}
div.cdlm-packed u{{text-decoration:underline solid {GLOBAL} 2px;text-underline-offset:4px;
 text-decoration-skip-ink:none}}
div.cdlm-packed b{{font-weight:inherit;padding-top:1px;
 background:linear-gradient(90deg,{CROSS} 50%,transparent 50%) 0 0/5px 2px repeat-x}}
div.cdlm-packed small{{font:11px/1 ui-monospace,SFMono-Regular,Menlo,'DejaVu Sans Mono',monospace;opacity:.75;
 border:1px solid rgba(128,128,128,.5);border-radius:3px;padding:1px 3px;white-space:nowrap}}
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class MarkedTokens:
    """The tokens of one packed example and what each is; every field has one entry per token.

    Attributes:
        texts: token texts (untrusted), joining signs such as `##` or a leading space already taken off.
        starts_word: bool (seq,), True = a space stands before the token.
        masked: bool (seq,), True = the model must give this token back.
        replacement: what the model reads in place of a masked token; None where nothing is masked.
        mask_token: the replacement that says "hidden"; another one is a random word, or the token itself.
        global_: bool (seq,), True = attends to every token and is attended to by every token.
        special: bool (seq,), True = a mark of the tokenizer, not text.
        cross_document: bool (seq,), True = part of a fact that another document of the example states too.
    """

    texts: Sequence[str]
    starts_word: np.ndarray
    masked: np.ndarray
    replacement: Sequence[str | None]
    mask_token: str
    global_: np.ndarray
    special: np.ndarray
    cross_document: np.ndarray

    def replaced_by(self, i: int) -> str | None:
        """What became of token `i`: `hidden`, `swapped`, `kept`, or None if it is not masked."""
        if not self.masked[i]:
            return None
        if self.replacement[i] == self.mask_token:
            return "hidden"
        return "kept" if self.replacement[i] == self.texts[i] else "swapped"


def tokens_html(marked: MarkedTokens, positions: Sequence[int]) -> str:
    """The tokens at `positions` (in order, of one document) as HTML; every text in it is escaped."""
    return _joined(
        _framed("u", *_joined_runs(marked, run)) if is_global else _joined_runs(marked, run)
        for is_global, run in _runs(positions, lambda i: bool(marked.global_[i]))
    )


def _runs(positions: Sequence[int], key: Callable[[int], object]) -> Iterator[tuple[object, list[int]]]:
    for value, run in groupby(positions, key):
        yield value, list(run)


def _joined_runs(marked: MarkedTokens, positions: Sequence[int]) -> tuple[bool, str]:
    """(whether a space stands before, HTML) of tokens that are all global or all not."""

    def alike(i: int) -> object:
        # A masked token stands alone, so that masks can be counted; other neighbours of one kind share a tag.
        if marked.masked[i]:
            return i
        if marked.special[i]:
            return "special", marked.texts[i]
        return "plain", bool(marked.cross_document[i])

    pieces = [_piece(marked, run) for _, run in _runs(positions, alike)]
    return pieces[0][0], _joined([(False, pieces[0][1]), *pieces[1:]])


def _piece(marked: MarkedTokens, run: list[int]) -> tuple[bool, str]:
    first = run[0]
    spaced = bool(marked.starts_word[first])
    if marked.special[first] and not marked.masked[first]:
        return True, _special_html(marked.texts[first], len(run))
    text = escaped(
        "".join((" " if marked.starts_word[i] and i != first else "") + marked.texts[i] for i in run)
    )
    body = f"<b>{text}</b>" if marked.cross_document[first] else text
    return spaced, mark_html(marked, first, body) if marked.masked[first] else body


def mark_html(marked: MarkedTokens, i: int, body: str) -> str:
    """Masked token `i` as HTML; `body` is its text, escaped. The sign after it says what the model reads
    instead."""
    became = marked.replaced_by(i)
    if became == "hidden":
        return f"<mark>{body}</mark>"
    sign = (
        KEPT_SIGN if became == "kept" else f"{SWAPPED_SIGN}<bdi>{escaped(marked.replacement[i] or '')}</bdi>"
    )
    return f"<mark>{body}<i>{sign}</i></mark>"


def _special_html(text: str, times: int) -> str:
    # Direction given, so that a document whose own text runs right to left is still recognised as such.
    tablet = f'<small dir="ltr">{escaped(text)}</small>'
    if times > LONGEST_SPECIAL_RUN:
        return f"{tablet} \u00d7 {count_in_words(times)}"
    return " ".join([tablet] * times)


def _framed(tag: str, spaced: bool, body: str) -> tuple[bool, str]:
    return spaced, f"<{tag}>{body}</{tag}>"


def _joined(pieces: Iterable[tuple[bool, str]]) -> str:
    """Pieces in a row, with a space before each that asks for one, except the first."""
    return "".join((" " if spaced and i else "") + body for i, (spaced, body) in enumerate(pieces))
