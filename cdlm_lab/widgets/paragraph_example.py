"""One example of paragraph pre-training, a row for each of its sentences: where it comes from, what is to be
said of it, which of its words are masked (Di Liello et al. 2022, section 3.4).

Plain HTML without scripts (see `markup`); all texts are untrusted. Every colour has a sign beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cdlm_lab.widgets.markup import MUTED, count_in_words, escaped, table_html
from cdlm_lab.widgets.share_bar import share_bar
from cdlm_lab.widgets.theme import CROSS
from cdlm_lab.widgets.token_text import KEPT_SIGN, SWAPPED_SIGN, TOKEN_STYLE, MarkedTokens, tokens_html

_SMALL = f"font-size:12px;{MUTED}"
_STYLE = """
div.cdlm-packed{color:var(--jp-ui-font-color1,inherit)}
div.cdlm-packed table.cdlm-table tr{background:none!important}
"""
_RIGHT = f'<span style="color:{CROSS};font-weight:600">\u2713&nbsp;1</span>'
_LABELS = {None: "", 0: "0", 1: _RIGHT}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSentence:
    """A sentence of an example.

    Attributes:
        source: where it comes from, seen from s_0, for people.
        document: id of its document.
        label: 1 = of one paragraph with s_0, 0 = not; None = it is s_0.
        cut: tokens of it that are not read.
        probability: what a model says for label 1, in [0, 1]; None = it was not asked.

    Raises:
        ValueError: a label that is neither 0 nor 1, a negative number of tokens, a probability outside
            [0, 1].
    """

    source: str
    document: str
    label: int | None
    cut: int = 0
    probability: float | None = None

    def __post_init__(self) -> None:
        if self.label not in _LABELS:
            raise ValueError(f"the label is {self.label}; it must be 0 or 1, or None of s_0")
        if self.cut < 0:
            raise ValueError(f"{self.cut} tokens are cut; there must be 0 or more")
        if self.probability is not None and not 0 <= self.probability <= 1:
            raise ValueError(f"the probability is {self.probability}; it must lie in [0, 1]")


@dataclass(frozen=True, kw_only=True, eq=False)
class ParagraphExampleView:
    """An example that shows itself as the last value of a notebook cell.

    Attributes:
        marked: the tokens of the sequence, and which of them are masked.
        sentence: int (tokens,), which sentence each token is of, from 0.
        sentences: s_0 ... s_k.
        title: a line above (untrusted text).

    Raises:
        ValueError: a token of no sentence; another number of tokens in `marked` than in `sentence`.
    """

    marked: MarkedTokens
    sentence: np.ndarray
    sentences: Sequence[TaskSentence]
    title: str = ""

    def __post_init__(self) -> None:
        if len(self.sentence) != len(self.marked.texts):
            raise ValueError(
                f"there are {len(self.marked.texts)} tokens, but the sentences of {len(self.sentence)}"
            )
        if wrong := sorted({int(n) for n in self.sentence if not 0 <= n < len(self.sentences)}):
            raise ValueError(f"a token is of sentence {wrong[0]}; there are {len(self.sentences)}, from 0")

    def _repr_html_(self) -> str:
        return paragraph_example_html(self)


def paragraph_example_html(view: ParagraphExampleView) -> str:
    """The example as one block of HTML: what the signs mean, then a row for each sentence."""
    asked = any(sentence.probability is not None for sentence in view.sentences)
    columns = [
        "",
        "comes from",
        "label",
        *(["probability"] if asked else []),
        "what the model reads",
        "tokens",
    ]
    rows = [_row(view, number, asked=asked) for number in range(len(view.sentences))]
    table = table_html(columns, rows, text_columns=range(len(columns) - 1))
    title = f'<div style="font-size:16px;font-weight:600"><bdi>{escaped(view.title)}</bdi></div>'
    return (
        f'<div class="cdlm-packed" style="max-width:1100px"><style>{_STYLE}{TOKEN_STYLE}</style>'
        f"{title if view.title else ''}{_legend(view.marked)}{table}</div>"
    )


def _row(view: ParagraphExampleView, number: int, *, asked: bool) -> list[str]:
    """The cells of one sentence."""
    sentence = view.sentences[number]
    positions = np.flatnonzero(view.sentence == number).tolist()
    cut = f'<div style="{_SMALL}">{count_in_words(sentence.cut)}&nbsp;cut</div>' if sentence.cut else ""
    bar = "" if sentence.probability is None else share_bar(sentence.probability)
    source = f'<span style="white-space:nowrap">{escaped(sentence.source)}</span>'
    return [
        f"s<sub>{number}</sub>",
        f'{source}<div style="{_SMALL}"><bdi>{escaped(sentence.document)}</bdi></div>',
        _LABELS[sentence.label],
        *([bar] if asked else []),
        f'<div class="cdlm-text" dir="auto">{tokens_html(view.marked, positions)}</div>',
        f"{count_in_words(len(positions))}{cut}",
    ]


def _legend(marked: MarkedTokens) -> str:
    """What a mask looks like, and how many of each kind there are."""
    became = [marked.replaced_by(place) for place in np.flatnonzero(marked.masked)]
    entries = (
        ("<mark>word</mark>", f"hidden behind {escaped(marked.mask_token)}", "hidden"),
        (f"<mark>word<i>{SWAPPED_SIGN}other</i></mark>", "masked by another word", "swapped"),
        (f"<mark>word<i>{KEPT_SIGN}</i></mark>", "masked, but left as it is", "kept"),
    )
    items = "".join(
        f'<span style="display:inline-block;margin:1px 20px 1px 0">{sample}&ensp;'
        f'<span style="{MUTED}">{meaning} ({count_in_words(became.count(kind))})</span></span>'
        for sample, meaning, kind in entries
    )
    return f'<div style="font-size:12.5px;margin:8px 0 10px">{items}</div>'
