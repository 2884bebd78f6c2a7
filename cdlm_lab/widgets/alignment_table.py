"""How high matchers rank the sentences that are about the other document: a table beside those of CDA."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cdlm_lab.widgets.html import MUTED, escaped
from cdlm_lab.widgets.matching_table import (
    NONE,
    P_HEADING,
    best_written,
    captioned_table,
    check_distinct,
    check_measured,
    check_seeds,
    explained,
    measured_html,
    muted_heading,
    name_html,
    p_in_words,
    per_cent,
)

RANDOM = "random"  # the system that draws its scores
MEASURES = {"mrr": "MRR", "at_10": "P@10", "at_5": "P@5", "at_1": "P@1"}
Published = Mapping[tuple[str, str], Mapping[str, Mapping[str, float]]]

# Zhou et al. 2020 ("CDA"), Table 4: S2ORC, test set, in the order of MEASURES; P@N in per cent.
_S2ORC = {
    (RANDOM, ""): (0.3611, 46.03, 39.30, 28.83),
    ("bert-avg", "attention"): (0.5596, 72.67, 64.24, 47.22),
    ("bert-avg", "cosine"): (0.5470, 74.18, 64.25, 45.07),
    ("bert-han", "attention"): (0.6068, 82.75, 70.67, 51.20),
    ("bert-han", "cosine"): (0.5481, 63.71, 56.73, 48.46),
    ("bert-han-shallow", "attention"): (0.6240, 84.95, 73.14, 52.51),
    ("bert-han-shallow", "cosine"): (0.6152, 81.21, 71.16, 52.27),
    ("gru-han", "attention"): (0.5430, 74.94, 63.38, 44.75),
    ("gru-han", "cosine"): (0.4742, 52.59, 47.91, 41.68),
    ("gru-han-shallow", "attention"): (0.6225, 84.17, 73.11, 52.42),
    ("gru-han-shallow", "cosine"): (0.5013, 54.19, 48.93, 45.31),
    ("gru-han-deep", "attention"): (0.6474, 86.37, 76.11, 54.90),
    ("gru-han-deep", "cosine"): (0.6252, 81.93, 72.04, 53.35),
}
# The same, Table 5: PAN, which is scored without P@1 and by attention alone.
_PAN = {
    (RANDOM, ""): (0.4215, 44.23, 43.28),
    ("bert-avg", "attention"): (0.7864, 58.24, 64.69),
    ("bert-han", "attention"): (0.8072, 60.36, 68.94),
    ("bert-han-shallow", "attention"): (0.8386, 60.47, 69.07),
    ("gru-han", "attention"): (0.6205, 50.72, 51.90),
    ("gru-han-shallow", "attention"): (0.6479, 51.71, 53.05),
    ("gru-han-deep", "attention"): (0.6378, 52.07, 53.82),
}
# (system, by) -> corpus -> measure -> number as printed: MRR in [0, 1], P@N in per cent.
PAPER_ALIGNMENT: Published = {
    key: {
        corpus: dict(zip(MEASURES, table[key], strict=False))
        for corpus, table in (("S2ORC", _S2ORC), ("PAN", _PAN))
        if key in table
    }
    for key in _S2ORC
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentRow:
    """One system's scores at finding the sentences of one document that are about the other.

    Attributes:
        system: its name in `PAPER_ALIGNMENT`, or any other.
        label: what to call it.
        by: what ranks the sentences: `attention`, `cosine` or another, such as `global attention`; "" =
            nothing of the kind, as for random scores.
        values: `mrr`, `at_1`, `at_5`, `at_10` in [0, 1], means over the seeds; what is missing was not
            measured.
        intervals: measure -> 95% interval (low, high) in [0, 1].
        deviations: measure -> standard deviation over the seeds.
        seeds: how many models were trained.
        p: two-sided p-value against the row above of its family; None = not tested.

    Raises:
        ValueError: an unknown measure, a number outside [0, 1], an interval that runs backwards, a deviation
            over one seed, no seeds.
    """

    system: str
    label: str
    by: str
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    deviations: Mapping[str, float] = field(default_factory=dict)
    seeds: int = 1
    p: float | None = None

    def __post_init__(self) -> None:
        for name in [*self.values, *self.intervals, *self.deviations]:
            if name not in MEASURES:
                raise ValueError(f"{self.name}: unknown measure {name!r}; choose from {', '.join(MEASURES)}")
        for name in MEASURES:
            check_measured(f"{self.name}: {name}", self.values.get(name), self.intervals.get(name))
        check_seeds(self.name, self.seeds, self.deviations, p=self.p)

    @property
    def name(self) -> str:
        """System and what ranks: `gru-han by cosine`."""
        return f"{self.system} by {self.by}" if self.by else self.system


def alignment_table_html(
    rows: Sequence[AlignmentRow], *, caption: str, paper: Published | None = None
) -> str:
    """The table as HTML, in the order given; the best of each measure is bold, ties all.

    Args:
        rows: one for each system and what it ranks by.
        caption: shown above (plain text).
        paper: published numbers by (system, by), corpus and measure, such as `PAPER_ALIGNMENT`, of which the
            MRR is shown in muted columns; None = none.

    Raises:
        ValueError: no rows, or two of one system and `by`.
    """
    check_distinct([row.name for row in rows])
    published = [(paper or {}).get((row.system, row.by), {}) for row in rows]
    corpora = list(dict.fromkeys(corpus for numbers in published for corpus in numbers))
    several = any(row.seeds > 1 for row in rows)
    tested = any(row.p is not None for row in rows)
    best = {name: best_written([row.values.get(name) for row in rows], _form(name)) for name in MEASURES}
    columns = ["system", "by", *MEASURES.values(), *(["seeds"] if several else [])]
    columns += [P_HEADING] if tested else []
    columns += [muted_heading(corpus, "paper: MRR") for corpus in corpora]
    body = []
    for row, numbers in zip(rows, published, strict=True):
        names = [name_html(row.label), f"<bdi>{escaped(row.by or NONE)}</bdi>"]
        mrrs = [mrr_in_words(numbers[corpus]["mrr"]) if corpus in numbers else NONE for corpus in corpora]
        papers = [f'<span style="{MUTED}">{mrr}</span>' for mrr in mrrs]
        seeds = [str(row.seeds)] if several else []
        p = [p_in_words(row.p)] if tested else []
        body.append([*names, *_measured_cells(row, best), *seeds, *p, *papers])
    note = _explanation(rows, several, bool(corpora))
    return captioned_table(caption, columns, body, note=note, texts=2)


def mrr_in_words(mrr: float) -> str:
    """Four decimals, as in the paper."""
    return f"{mrr:.4f}"


def _form(measure: str) -> Callable[[float], str]:
    return mrr_in_words if measure == "mrr" else per_cent


def _measured_cells(row: AlignmentRow, best: Mapping[str, str | None]) -> list[str]:
    return [
        measured_html(
            row.values.get(name),
            form=_form(name),
            interval=row.intervals.get(name) if name == "mrr" else None,
            deviation=row.deviations.get(name),
            best=best[name],
        )
        for name in MEASURES
    ]


def _explanation(rows: Sequence[AlignmentRow], several: bool, published: bool) -> str:
    intervals = any("mrr" in row.intervals for row in rows)
    parts = [
        "MRR: mean reciprocal rank of the first true sentence; P@N in per cent.",
        *explained(len(rows), intervals, several, any(row.p is not None for row in rows)),
    ]
    return " ".join([*parts, *(["Paper: Zhou et al. 2020, Tables 4 and 5."] if published else [])])
