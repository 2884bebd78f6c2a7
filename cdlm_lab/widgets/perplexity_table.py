"""The perplexity table of a run, beside Table 1 of the CDLM paper, as HTML and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdlm_lab.widgets.html import MUTED, count_in_words, escaped, in_paper_order, table_html, variant_name

# Caciularu et al. 2021, Table 1: perplexity on the validation and the test set of Multi-News.
PAPER_TABLE_1: Mapping[str, tuple[float, float]] = {
    "longformer": (3.89, 3.94),
    "local-cdlm": (3.78, 3.84),
    "rand-cdlm": (3.68, 3.81),
    "prefix-cdlm": (3.20, 3.41),
    "cdlm": (3.23, 3.39),
}
NONE = "\u2013"


@dataclass(frozen=True, kw_only=True)
class Perplexity:
    """A perplexity over a set of masked tokens.

    Attributes:
        value: exponential of the mean cross entropy over the tokens.
        low, high: bounds of the 95% interval, from resampling clusters.
        tokens: how many masked tokens it is the mean of.
        p_next: p-value of the paired test against the next variant in paper order; None = no next one, or not
            tested.

    Raises:
        ValueError: bounds that do not enclose the value, or a value below 1.
    """

    value: float
    low: float
    high: float
    tokens: int
    p_next: float | None = None

    def __post_init__(self) -> None:
        if not self.value >= 1:
            raise ValueError(f"a perplexity is at least 1, got {self.value}")
        if not self.low <= self.value <= self.high:
            raise ValueError(
                f"the interval [{self.low}, {self.high}] does not hold the perplexity {self.value}"
            )


@dataclass(frozen=True, kw_only=True)
class PerplexityRow:
    """One variant's perplexities on one corpus.

    Attributes:
        variant: `longformer local-cdlm rand-cdlm prefix-cdlm cdlm`, or any other name.
        clusters: how many clusters it was measured on.
        all_masked: over all masked tokens.
        cross_document: over the masked tokens that another document of the example states too; None = not
            known.
    """

    variant: str
    clusters: int
    all_masked: Perplexity
    cross_document: Perplexity | None = None


def perplexity_table_html(
    rows: Sequence[PerplexityRow], *, paper: Mapping[str, tuple[float, float]] = PAPER_TABLE_1
) -> str:
    """The table as HTML; `paper` gives each variant's published (validation, test) perplexity, {} leaves it
    out."""
    columns, cells = _columns_and_cells(rows, paper)
    head = [escaped(column.removesuffix(" (next row)")) for column in columns]
    body = [[f'<span style="white-space:nowrap">{escaped(cell)}</span>' for cell in row] for row in cells]
    note = "Lower is better. Brackets: 95% interval over clusters. p: paired test against the next row."
    return table_html(head, body) + (f'<div style="font-size:12px;{MUTED}">{note}</div>')


def perplexity_table_markdown(
    rows: Sequence[PerplexityRow], *, paper: Mapping[str, tuple[float, float]] = PAPER_TABLE_1
) -> str:
    """The same table in GitHub's Markdown, without a line break at its end."""
    columns, cells = _columns_and_cells(rows, paper)
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *cells]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _columns_and_cells(
    rows: Sequence[PerplexityRow], paper: Mapping[str, tuple[float, float]]
) -> tuple[list[str], list[list[str]]]:
    ordered = in_paper_order(rows)
    crossing = any(row.cross_document for row in ordered)
    columns = ["variant", "perplexity [95%]", "p (next row)"]
    columns += ["cross-document [95%]", "p (next row)"] if crossing else []
    columns += ["clusters", "tokens", *(["cross-document tokens"] if crossing else [])]
    columns += ["paper: validation / test"] if paper else []
    return columns, [_cells(row, paper, crossing) for row in ordered]


def _cells(row: PerplexityRow, paper: Mapping[str, tuple[float, float]], crossing: bool) -> list[str]:
    cells = [variant_name(row.variant), *_measured(row.all_masked)]
    cells += _measured(row.cross_document) if crossing else []
    cells += [count_in_words(row.clusters), count_in_words(row.all_masked.tokens)]
    if crossing:
        cells.append(count_in_words(row.cross_document.tokens) if row.cross_document else NONE)
    if paper:
        published = paper.get(row.variant)
        cells.append(f"{published[0]:.2f} / {published[1]:.2f}" if published else NONE)
    return cells


def _measured(measured: Perplexity | None) -> list[str]:
    if measured is None:
        return [NONE, NONE]
    value, low, high = map(perplexity_in_words, (measured.value, measured.low, measured.high))
    return [f"{value} [{low}, {high}]", _p_in_words(measured.p_next)]


def perplexity_in_words(value: float) -> str:
    """Two decimals below 100, one below 1,000, none above: 3.204 -> `3.20`, 1234.5 -> `1,234`."""
    if math.isinf(value):
        return "infinite"
    return f"{value:.2f}" if value < 100 else f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def _p_in_words(p: float | None) -> str:
    if p is None:
        return NONE
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
