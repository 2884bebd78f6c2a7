"""How high attention ranks the other mention of a pair: a table beside Table 6 of the CDLM paper, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cdlm_lab.widgets.html import MUTED, count_in_words, escaped, in_paper_order, variant_name

SORTS = ("positive", "negative")  # the two mentions of a pair corefer, or they do not
KINDS = ("event", "entity")
CELLS = tuple(f"{sort}/{kind}" for sort in SORTS for kind in KINDS)
KIND_NAMES = {"event": "events", "entity": "entities"}
NONE = "\u2013"
_SORT_NAMES = {"positive": "same event/entity (positive)", "negative": "different (negative)"}
_LINE = "1px solid rgba(128,128,128,0.22)"
_SMALL = f"font-size:11px;font-weight:400;{MUTED}"

# Caciularu et al. 2021, Table 6: mean percentile rank of the target mention, by the attention between it and
# the source mention.
PAPER_TABLE_6: Mapping[str, Mapping[str, float]] = {
    variant: dict(zip(CELLS, numbers, strict=True))
    for variant, numbers in {
        "longformer": (61.9, 59.7, 54.8, 50.5),
        "local-cdlm": (62.2, 60.8, 54.6, 52.6),
        "rand-cdlm": (70.6, 69.1, 56.6, 53.2),
        "prefix-cdlm": (70.7, 69.4, 58.5, 56.5),
        "cdlm": (72.1, 70.3, 58.0, 55.7),
    }.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCell:
    """The mean percentile rank of the targets of one sort of pairs.

    Attributes:
        mean: mean over the pairs, in percent.
        low, high: bounds of its 95% interval, in percent.
        pairs: how many pairs it is the mean of.
        chance: mean rank of random spans as long as the targets, in percent.
        p_next: p-value of the paired test against the next row, corrected for the number of tests by Holm's
            method; None = no next row, or not tested.

    Raises:
        ValueError: a rank outside 0 to 100, bounds that do not enclose the mean, no pair, or a p-value
            outside 0 to 1.
    """

    mean: float
    low: float
    high: float
    pairs: int
    chance: float
    p_next: float | None = None

    def __post_init__(self) -> None:
        for name in ("mean", "low", "high", "chance"):
            if not 0 <= getattr(self, name) <= 100:
                raise ValueError(f"{name} is {getattr(self, name)}; a percentile rank lies in [0, 100]")
        if not self.low <= self.mean <= self.high:
            raise ValueError(f"the interval [{self.low}, {self.high}] does not hold the mean {self.mean}")
        if self.pairs < 1:
            raise ValueError(f"a mean rank needs at least one pair, got {self.pairs}")
        if self.p_next is not None and not 0 <= self.p_next <= 1:
            raise ValueError(f"p_next is {self.p_next}; it must lie in [0, 1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """One variant's mean ranks.

    Attributes:
        variant: `longformer local-cdlm rand-cdlm prefix-cdlm cdlm`, or any other name.
        cells: by `positive/event`, `positive/entity`, `negative/event`, `negative/entity`; what is missing
            was not measured.

    Raises:
        ValueError: a cell of another name.
    """

    variant: str
    cells: Mapping[str, RankCell]

    def __post_init__(self) -> None:
        check_cell_names(self.variant, self.cells)


def check_cell_names(variant: str, names: Iterable[str]) -> None:
    """Refuses names that are none of the four of `CELLS`.

    Raises:
        ValueError: such a name; the message says which variant has it.
    """
    if unknown := [name for name in names if name not in CELLS]:
        raise ValueError(f"{variant}: unknown cell {unknown[0]!r}; choose from {', '.join(CELLS)}")


def rank_table_html(
    rows: Sequence[RankRow], *, paper: Mapping[str, Mapping[str, float]] | None = None
) -> str:
    """The table as HTML: a row for each variant in paper order, and what random spans reach below them.

    The highest mean of each column of coreferring pairs is bold, if there are two to choose from.

    Args:
        rows: one for each variant.
        paper: published mean ranks by variant and cell, such as `PAPER_TABLE_6`, shown in small type under
            those measured; None = none.

    Raises:
        ValueError: no row, or two rows of one variant.
    """
    ordered = in_paper_order(rows)
    columns = {cell: [row.cells[cell] for row in ordered if cell in row.cells] for cell in CELLS}
    best = {cell: _best(measured) for cell, measured in columns.items() if cell.startswith("positive")}
    body = [
        _row_html(
            variant_name(row.variant),
            [
                _cell_html(row.cells.get(cell), (paper or {}).get(row.variant, {}).get(cell), best.get(cell))
                for cell in CELLS
            ],
        )
        for row in ordered
    ]
    chances = [_range_in_words([f"{c.chance:.1f}" for c in columns[cell]]) for cell in CELLS]
    body.append(_row_html("random span", chances, style=MUTED))
    return (
        '<div style="overflow-x:auto">'
        '<table class="cdlm-table" style="border-collapse:collapse;font-size:13px;margin:4px 0">'
        f"{_head(columns)}<tbody>{''.join(body)}</tbody></table></div>"
        f'<div style="font-size:12px;{MUTED}">{escaped(_explanation(ordered, best))}</div>'
    )


def pairs_in_words(counts: Iterable[int]) -> str:
    """[1000, 1000] -> `1,000 pairs`, [990, 1000] -> `990–1,000 pairs`, [1] -> `1 pair`, [] -> `no pairs`."""
    ordered = sorted(set(counts))
    if not ordered:
        return "no pairs"
    return f"{_range_in_words(map(count_in_words, ordered))} {'pair' if ordered == [1] else 'pairs'}"


def _best(measured: Sequence[RankCell]) -> str | None:
    """The highest mean as it is written; None if there is nothing to choose from."""
    return f"{max(cell.mean for cell in measured):.1f}" if len(measured) > 1 else None


def _range_in_words(numbers: Iterable[str]) -> str:
    """One number if all are written alike, else the lowest and the highest."""
    ordered = sorted(set(numbers), key=lambda number: float(number.replace(",", "")))
    if not ordered:
        return NONE
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]}\u2013{ordered[-1]}"


def _cell_html(cell: RankCell | None, published: float | None, best: str | None) -> str:
    """Mean and interval, and in small type below them the paper's number and the test."""
    text, below = NONE, [] if published is None else [f"paper {published:.1f}"]
    if cell is not None:
        mean = f"{cell.mean:.1f}"
        text = f"{f'<b>{mean}</b>' if mean == best else mean} [{cell.low:.1f}, {cell.high:.1f}]"
        below += [] if cell.p_next is None else [_p_in_words(cell.p_next)]
    return text + (f'<div style="{_SMALL}">{escaped(", ".join(below))}</div>' if below else "")


def _p_in_words(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _cell_style(place: int) -> str:
    """Style of the cell of a number; a line stands before each sort of pairs."""
    border = f";border-left:{_LINE}" if place % len(KINDS) == 0 else ""
    return (
        "text-align:right;white-space:nowrap;vertical-align:top;padding:5px 14px"
        f";font-variant-numeric:tabular-nums{border}"
    )


def _head(columns: Mapping[str, Sequence[RankCell]]) -> str:
    """Two lines of headings: the sorts of pairs; kinds and numbers of pairs."""
    sorts = "".join(
        f'<th colspan="{len(KINDS)}" style="text-align:center;font-weight:600;padding:3px 14px;'
        f'border-left:{_LINE}">{_SORT_NAMES[sort]}</th>'
        for sort in SORTS
    )
    kinds = "".join(
        f'<th style="{_cell_style(place)};font-weight:600">{KIND_NAMES[cell.partition("/")[2]]}'
        f'<div style="{_SMALL}">{pairs_in_words(c.pairs for c in columns[cell])}</div></th>'
        for place, cell in enumerate(CELLS)
    )
    style = "text-align:left;vertical-align:top;font-weight:600;padding:5px 14px 5px 0"
    return f'<thead><tr><th></th>{sorts}</tr><tr><th style="{style}">variant</th>{kinds}</tr></thead>'


def _row_html(name: str, cells: Sequence[str], *, style: str = "") -> str:
    """A row from cells that are HTML already."""
    numbers = "".join(f'<td style="{_cell_style(place)}">{cell}</td>' for place, cell in enumerate(cells))
    return (
        f'<tr style="border-top:{_LINE};{style}">'
        '<td style="text-align:left;vertical-align:top;padding:5px 14px 5px 0">'
        f"<bdi>{escaped(name)}</bdi></td>{numbers}</tr>"
    )


def _explanation(rows: Sequence[RankRow], best: Mapping[str, str | None]) -> str:
    parts = [
        "Rank of the second mention among the tokens of its document, by the attention between it and the "
        "first mention: 0 lowest, 100 highest; mean over pairs.",
        "Brackets: 95% interval.",
    ]
    parts += ["Bold: highest."] if any(best.values()) else []
    if any(cell.p_next is not None for row in rows for cell in row.cells.values()):
        parts.append("p: paired test against the next row, corrected for several tests (Holm).")
    return " ".join([*parts, "Random span: mean rank of random spans as long as the second mentions."])
