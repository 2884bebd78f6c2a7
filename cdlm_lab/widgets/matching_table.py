"""How often matchers say rightly whether two documents are related: a table beside those of the papers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cdlm_lab.widgets.html import MUTED, escaped, table_html

NONE = "\u2013"
CORPORA = ("AAN", "OC", "S2ORC", "PAN")
Published = Mapping[str, Mapping[str, tuple[float | None, float]]]
_SMALL = f"font-size:11px;font-weight:400;{MUTED}"
_P_TITLE = "two-sided, against the row above of the same family"

# Zhou et al. 2020 ("CDA"), Tables 2 and 3: accuracy and F1 on the test sets in per cent, in the order of
# CORPORA.
_CDA = {
    "bert-avg": ((53.54, 53.89), (84.72, 84.99), (77.78, 76.92), (79.62, 76.60)),
    "bert-han": ((67.32, 64.97), (85.96, 86.33), (90.67, 90.76), (87.57, 87.36)),
    "bert-han-shallow": ((71.57, 69.08), (87.81, 87.89), (91.92, 92.07), (86.23, 86.19)),
    "gru-han": ((68.01, 67.23), (84.46, 82.26), (82.36, 83.28), (75.70, 75.88)),
    "gru-han-shallow": ((74.51, 74.81), (88.71, 88.96), (88.91, 89.92), (77.04, 78.23)),
    "gru-han-deep": ((75.08, 75.18), (89.79, 89.92), (91.59, 91.61), (75.77, 76.71)),
    "bert-han-finetuned": ((73.36, 73.51),),
    "bert-han-finetuned-shallow": ((82.03, 82.08),),
}
# Caciularu et al. 2021 ("CDLM"), Table 4: F1 alone.
_CDLM = {
    "longformer": (85.4, 93.4, 95.8, 80.4),
    "local-cdlm": (83.8, 92.1, 94.5, 80.9),
    "rand-cdlm": (85.7, 93.5, 94.6, 79.4),
    "prefix-cdlm": (87.3, 94.8, 94.7, 81.7),
    "cdlm": (88.8, 95.3, 96.5, 82.9),
}
# System -> corpus -> (accuracy, F1) in per cent; None = not reported.
PAPER_MATCHING: Published = {
    **{system: dict(zip(CORPORA, pairs, strict=False)) for system, pairs in _CDA.items()},
    **{
        system: {corpus: (None, f1) for corpus, f1 in zip(CORPORA, scores, strict=True)}
        for system, scores in _CDLM.items()
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingRow:
    """One system's scores on the pairs of a test set.

    Attributes:
        system: its name in `PAPER_MATCHING`, or any other.
        label: what to call it.
        accuracy, f1: in [0, 1], means over the seeds; F1 is that of the related pairs. None = not measured.
        accuracy_interval, f1_interval: 95% intervals (low, high) in [0, 1]; None = not measured.
        accuracy_deviation, f1_deviation: standard deviations over the seeds; None with one seed.
        seeds: how many models were trained.
        p: two-sided p-value against the row above of its family, such as the same encoder without
            cross-document attention; None = not tested.

    Raises:
        ValueError: a number outside [0, 1], an interval that runs backwards, a deviation over one seed, no
            seeds.
    """

    system: str
    label: str
    accuracy: float | None
    f1: float | None
    accuracy_interval: tuple[float, float] | None = None
    f1_interval: tuple[float, float] | None = None
    accuracy_deviation: float | None = None
    f1_deviation: float | None = None
    seeds: int = 1
    p: float | None = None

    def __post_init__(self) -> None:
        check_measured(f"{self.system}: accuracy", self.accuracy, self.accuracy_interval)
        check_measured(f"{self.system}: f1", self.f1, self.f1_interval)
        deviations = {"accuracy": self.accuracy_deviation, "f1": self.f1_deviation}
        check_seeds(self.system, self.seeds, deviations, p=self.p)


def matching_table_html(rows: Sequence[MatchingRow], *, caption: str, paper: Published | None = None) -> str:
    """The table as HTML, in the order given; the best accuracy and the best F1 are bold, ties all.

    Args:
        rows: one for each system.
        caption: shown above (plain text).
        paper: published accuracy and F1 in per cent by system and corpus, such as `PAPER_MATCHING`, in muted
            columns for the systems in `rows`; None = none.

    Raises:
        ValueError: no rows, or two of one system.
    """
    check_distinct([row.system for row in rows])
    published = [(paper or {}).get(row.system, {}) for row in rows]
    corpora = [corpus for corpus in CORPORA if any(corpus in numbers for numbers in published)]
    several = any(row.seeds > 1 for row in rows)
    tested = any(row.p is not None for row in rows)
    columns = [
        "system",
        "accuracy",
        "F1",
        *(["seeds"] if several else []),
        *([P_HEADING] if tested else []),
        *(muted_heading(corpus, "paper") for corpus in corpora),
    ]
    best = {name: best_written([getattr(row, name) for row in rows], per_cent) for name in ("accuracy", "f1")}
    body = []
    for row, numbers in zip(rows, published, strict=True):
        seeds = [str(row.seeds)] if several else []
        papers = [f'<span style="{MUTED}">{_in_the_paper(numbers.get(corpus))}</span>' for corpus in corpora]
        p = [p_in_words(row.p)] if tested else []
        body.append([name_html(row.label), *_measured_cells(row, best), *seeds, *p, *papers])
    return captioned_table(caption, columns, body, note=_explanation(rows, several, bool(corpora)))


def _measured_cells(row: MatchingRow, best: Mapping[str, str | None]) -> list[str]:
    accuracy = measured_html(
        row.accuracy,
        form=per_cent,
        interval=row.accuracy_interval,
        deviation=row.accuracy_deviation,
        best=best["accuracy"],
    )
    f1 = measured_html(
        row.f1, form=per_cent, interval=row.f1_interval, deviation=row.f1_deviation, best=best["f1"]
    )
    return [accuracy, f1]


def _in_the_paper(numbers: tuple[float | None, float] | None) -> str:
    if numbers is None:
        return NONE
    return " / ".join(f"{number:.1f}" for number in numbers if number is not None)


def _explanation(rows: Sequence[MatchingRow], several: bool, published: bool) -> str:
    intervals = any(row.accuracy_interval or row.f1_interval for row in rows)
    tested = any(row.p is not None for row in rows)
    parts = ["All in per cent; F1 of the related pairs.", *explained(len(rows), intervals, several, tested)]
    if published:
        parts.append(
            "Papers: accuracy / F1 of Zhou et al. 2020, Tables 2 and 3; F1 alone of Caciularu et al. 2021, "
            "Table 4."
        )
    return " ".join(parts)


# What the table of alignments has in common with this one.

P_HEADING = f'<span title="{_P_TITLE}">p</span>'


def check_distinct(names: Sequence[str]) -> None:
    """Refuses no rows, and rows of one name.

    Raises:
        ValueError: there are no rows, or two of one name.
    """
    if not names:
        raise ValueError("there is no system to show: rows is empty")
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two rows of {repeated[0]}; give each system once")


def check_measured(name: str, value: float | None, interval: tuple[float, float] | None) -> None:
    """Refuses a value outside [0, 1], and what is no interval in [0, 1].

    Raises:
        ValueError: such a number; the message begins with `name`.
    """
    if value is not None and not 0 <= value <= 1:
        raise ValueError(f"{name} is {value}; it must lie in [0, 1]")
    if interval is not None and not 0 <= interval[0] <= interval[1] <= 1:
        raise ValueError(f"{name}: {interval} is no interval in [0, 1]")


def check_seeds(name: str, seeds: int, deviations: Mapping[str, float | None], *, p: float | None) -> None:
    """Refuses deviations over fewer than two seeds, negative ones, and a p-value outside [0, 1].

    Raises:
        ValueError: such a number; the message begins with `name`.
    """
    if seeds < 1:
        raise ValueError(f"{name}: seeds is {seeds}; a system is trained at least once")
    for measure, deviation in deviations.items():
        if deviation is not None and seeds == 1:
            raise ValueError(f"{name}: a deviation of {measure} over one seed; give None")
        if deviation is not None and not 0 <= deviation < math.inf:
            raise ValueError(f"{name}: the deviation of {measure} is {deviation}; it must not be negative")
    if p is not None and not 0 <= p <= 1:
        raise ValueError(f"{name}: p is {p}; it must lie in [0, 1]")


def per_cent(share: float) -> str:
    """0.7157 -> `71.6`."""
    return f"{100 * share:.1f}"


def name_html(name: str) -> str:
    """The name of a system, not broken into single words where room is short."""
    return f'<bdi style="display:inline-block;min-width:9em">{escaped(name)}</bdi>'


def p_in_words(p: float | None) -> str:
    """0.0123 -> `0.012`, 0.0001 -> `&lt; 0.001` (HTML), None -> a dash."""
    return NONE if p is None else "&lt; 0.001" if p < 0.001 else f"{p:.3f}"


def best_written(values: Iterable[float | None], form: Callable[[float], str]) -> str | None:
    """The highest value as it is written; None if there are not two to choose from."""
    known = [value for value in values if value is not None]
    return form(max(known)) if len(known) > 1 else None


def measured_html(
    value: float | None,
    *,
    form: Callable[[float], str],
    interval: tuple[float, float] | None = None,
    deviation: float | None = None,
    best: str | None = None,
) -> str:
    """A number, bold if it is written like `best`, and in small type below it deviation and interval."""
    if value is None:
        return NONE
    below = [] if deviation is None else [f"\u00b1 {form(deviation)}"]
    below += [] if interval is None else [f"[{form(interval[0])}, {form(interval[1])}]"]
    text = f"<b>{form(value)}</b>" if form(value) == best else form(value)
    return text + (f'<div style="{_SMALL}">{" ".join(below)}</div>' if below else "")


def muted_heading(name: str, what: str) -> str:
    """HTML of the heading of a column of published numbers."""
    small = f"white-space:nowrap;{_SMALL}"
    return f'<div style="{MUTED}">{escaped(name)}</div><div style="{small}">{escaped(what)}</div>'


def explained(rows: int, intervals: bool, several: bool, tested: bool) -> list[str]:
    """Sentences on what stands in the cells of a table of so many rows; `several`: of several seeds;
    `tested`: it has p-values."""
    parts = ["Brackets: 95% interval."] if intervals else []
    parts += ["\u00b1: standard deviation over the seeds, of which the mean is shown."] if several else []
    parts += ["Bold: best."] if rows > 1 else []
    return [*parts, f"p: {_P_TITLE}; {NONE}: not tested."] if tested else parts


def captioned_table(
    caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, note: str, texts: int = 1
) -> str:
    """A table as of `markup.table_html` with a line above and one below it, which are plain text; the first
    `texts` columns hold text."""
    table = table_html(columns, rows, text_columns=range(texts))
    return (
        f'<div style="font-size:13px;font-weight:600;margin:8px 0 2px">{escaped(caption)}</div>'
        f'<div style="overflow-x:auto;font-variant-numeric:tabular-nums">{table}</div>'
        f'<div style="font-size:12px;max-width:900px;{MUTED}">{escaped(note)}</div>'
    )
