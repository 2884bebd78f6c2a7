"""Which sentences of a document a matcher takes to be about another one, as in Figure 4 of the CDA paper.

The sentences stand one below the other on blue ground, the deeper the higher the weight; a number and a bar
say the same (Zhou et al. 2020, appendix A.6). Plain HTML without scripts (see `markup`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cdlm_lab.widgets.html import CROSS, DEEPEST, GLOBAL, MUTED, escaped, muted, table_html

TRUE = "the true sentence"
_STYLE = """
div.cdlm-aligned table.cdlm-table tr{background:none!important}
div.cdlm-aligned{color:var(--jp-ui-font-color1,inherit)}
div.cdlm-aligned summary{cursor:pointer;color:var(--jp-content-link-color,inherit)}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedColumn:
    """What one system gives the sentences.

    Attributes:
        name: what to call the system.
        weights: one for each sentence, finite; the largest is drawn deepest, what is not above 0 without
            ground. Weights that add up to 1 are written in per cent.
        decision: probability that the documents are related; None = not shown.

    Raises:
        ValueError: a weight that is not finite, a decision outside [0, 1].
    """

    name: str
    weights: Sequence[float]
    decision: float | None = None

    def __post_init__(self) -> None:
        if wrong := [place for place, weight in enumerate(self.weights) if not math.isfinite(weight)]:
            what = f"the weight of sentence {wrong[0]} is {self.weights[wrong[0]]}"
            raise ValueError(f"{self.name}: {what}; it must be finite")
        if self.decision is not None and not 0 <= self.decision <= 1:
            raise ValueError(f"{self.name}: decision is {self.decision}; a probability lies in [0, 1]")

    @property
    def strengths(self) -> list[float]:
        """Each weight as a share of the largest, in [0, 1]; all 0 if none is above 0."""
        largest = max(self.weights, default=0.0)
        return [max(weight, 0.0) / largest if largest > 0 else 0.0 for weight in self.weights]

    @property
    def texts(self) -> list[str]:
        """The weights as they are written."""
        if math.isclose(sum(self.weights), 1, abs_tol=1e-3) and min(self.weights) >= 0:
            return [f"{100 * weight:.1f}%" for weight in self.weights]
        return [f"{weight:.3f}".replace("-", "\u2212") for weight in self.weights]


def aligned_sentences_html(
    sentences: Sequence[str],
    weights: Sequence[float],
    *,
    gold: Collection[int] = (),
    title: str,
    other_title: str,
    other_sentences: Sequence[str] = (),
    decision: float | None = None,
) -> str:
    """The sentences of a document, each on the blue of its weight; all texts are untrusted.

    Args:
        sentences: of the first document.
        weights: one for each, as of `AlignedColumn`.
        gold: numbers of the true sentences, from 0; () = none, or not known.
        title, other_title: of the first and of the second document.
        other_sentences: of the second document, folded below; () = not shown.
        decision: probability that the documents are related, shown above; None = not shown.

    Raises:
        ValueError: no sentences, as many weights as there are not sentences, a true sentence that is none of
            them, a weight that is not finite, a decision outside [0, 1].
    """
    column = AlignedColumn(name=title, weights=weights, decision=decision)
    _check(sentences, [column], gold)
    rows = [
        [_number(place), _weight(text, strength), _sentence(sentence, strength, place in gold)]
        for place, (sentence, text, strength) in enumerate(
            zip(sentences, column.texts, column.strengths, strict=True)
        )
    ]
    above = ""
    if decision is not None:
        above = f"<div>probability that they are related: <b>{100 * decision:.1f}%</b></div>"
    table = table_html(["", "weight", ""], rows, text_columns=(2,))
    folded = _folded(other_title, other_sentences)
    return _page(_titles(title, other_title), above, table, folded, _legend(gold))


def compared_alignments_html(
    columns: Sequence[AlignedColumn],
    sentences: Sequence[str],
    gold: Collection[int] = (),
    *,
    title: str,
    other_title: str,
    other_sentences: Sequence[str] = (),
) -> str:
    """The same for several systems: a row for each sentence with a cell for each system, each shaded on a
    scale of its own.

    Args:
        columns: the systems.
        sentences, gold, title, other_title, other_sentences: as of `aligned_sentences_html`.

    Raises:
        ValueError: no systems, or what `aligned_sentences_html` raises.
    """
    if not columns:
        raise ValueError("there is no system to compare: columns is empty")
    _check(sentences, columns, gold)
    heads = [_head(column) for column in columns]
    measured = [list(zip(column.texts, column.strengths, strict=True)) for column in columns]
    rows = [
        [
            _number(place),
            *(_weight(*of_system[place], ground=True) for of_system in measured),
            _sentence(sentence, 0, place in gold),
        ]
        for place, sentence in enumerate(sentences)
    ]
    table = table_html(["", *heads, ""], rows, text_columns=(len(columns) + 1,))
    folded = _folded(other_title, other_sentences)
    return _page(_titles(title, other_title), "", table, folded, _legend(gold))


def _check(sentences: Sequence[str], columns: Sequence[AlignedColumn], gold: Collection[int]) -> None:
    if not sentences:
        raise ValueError("there are no sentences to show")
    for column in columns:
        if len(column.weights) != len(sentences):
            counts = f"{len(column.weights)} weights for {len(sentences)} sentences"
            raise ValueError(f"{column.name}: {counts}; give one for each")
    if outside := [number for number in gold if not 0 <= number < len(sentences)]:
        what = f"true sentence {outside[0]} is none of the {len(sentences)}"
        raise ValueError(f"{what}; sentences are numbered from 0")


def _number(place: int) -> str:
    """The number of a sentence as people count."""
    return f'<span style="font-size:11.5px;{MUTED}">{place + 1}</span>'


def _blue(strength: float) -> str:
    return f"background:{GLOBAL}{round(255 * DEEPEST * strength):02x}"


def _weight(text: str, strength: float, *, ground: bool = False) -> str:
    """A weight as number and bar, on blue ground if asked for."""
    bar = (
        '<div style="height:3px;margin-top:2px;background:rgba(128,128,128,0.22)">'
        f'<div style="height:3px;width:{100 * strength:.0f}%;background:{GLOBAL}"></div></div>'
    )
    box = f"width:64px;margin-left:auto;font-size:12px;text-align:right{_ground(strength) if ground else ''}"
    return f'<div style="{box}">{text}{bar}</div>'


def _ground(strength: float) -> str:
    return f";border-radius:3px;padding:2px 6px 3px;{_blue(strength)}"


def _sentence(sentence: str, strength: float, true: bool) -> str:
    """A sentence on its ground; a true one has a line before it, an asterisk and words behind it."""
    line = f"border-left:3px solid {CROSS if true else 'transparent'};padding-left:8px"
    words = f'<span style="font-size:11.5px;{MUTED}">{TRUE}</span>'
    sign = f' <span style="white-space:nowrap"><b>*</b> {words}</span>' if true else ""
    box = f"line-height:1.5;overflow-wrap:anywhere;max-width:880px{_ground(strength)}"
    return f'<div style="{line}"><div style="{box}" dir="auto">{escaped(sentence)}{sign}</div></div>'


def _head(column: AlignedColumn) -> str:
    """The name of a system, and below it its decision."""
    name, below = f'<bdi style="overflow-wrap:anywhere">{escaped(column.name)}</bdi>', ""
    if column.decision is not None:
        probability = f"related: {100 * column.decision:.1f}%"
        below = f'<div style="font-size:11px;font-weight:400;{MUTED}">{probability}</div>'
    return f'<div style="max-width:96px;margin-left:auto">{name}{below}</div>'


def _titles(*titles: str) -> str:
    between = f' <span style="{MUTED}">compared with</span> '
    names = between.join(f'<bdi style="font-weight:600">{escaped(title)}</bdi>' for title in titles)
    return f"<div>{names}</div>"


def _folded(title: str, sentences: Sequence[str]) -> str:
    """The second document, folded; nothing if it has no sentences."""
    if not sentences:
        return ""
    text = "".join(
        f'<div style="margin:3px 0;line-height:1.5;overflow-wrap:anywhere" dir="auto">{_number(place)}&ensp;'
        f"{escaped(sentence)}</div>"
        for place, sentence in enumerate(sentences)
    )
    summary = f"the other document: <bdi>{escaped(title)}</bdi>"
    return f'<details style="margin:6px 0;max-width:980px"><summary>{summary}</summary>{text}</details>'


def _legend(gold: Collection[int]) -> str:
    parts = ["Number, bar and depth of blue: weight of the sentence; the bar is full at the largest."]
    return muted(" ".join([*parts, *([f"<b>*</b>: {TRUE}."] if gold else [])]))


def _page(*parts: str) -> str:
    style = "font-size:13.5px;max-width:1100px;overflow-x:auto"
    return f'<div class="cdlm-aligned" style="{style}"><style>{_STYLE}</style>{"".join(parts)}</div>'
