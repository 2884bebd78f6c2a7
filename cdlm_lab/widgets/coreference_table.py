"""Coreference scores of systems and baselines as the literature prints them, with those of the CDLM paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cdlm_lab.metrics.coreference import Score
from cdlm_lab.widgets.html import MUTED, escaped

NONE = "\u2013"
MEASURES = {"muc": "MUC", "b_cubed": "B\u00b3", "ceaf_e": "CEAFe", "lea": "LEA"}
Kind = Literal["event", "entity"]
Numbers = tuple[float | None, ...]
_BORDER = "border-left:1px solid rgba(128,128,128,0.22)"
_STYLE = """
div.cdlm-coreference table.cdlm-table tr{background:none!important}
"""

# Caciularu et al. 2021, Table 2: ECB+ test set. Recall, precision and F1 of MUC, B-cubed, CEAFe and LEA, then
# CoNLL F1, all times 100; None where the paper has a dash.
_EVENTS: Mapping[str, Numbers] = {
    "Barhom et al. (2019)": (78.1, 84.0, 80.9, 76.8, 86.1, 81.2, 79.6, 73.3, 76.3, 64.6, 72.3, 68.3, 79.5),
    "Meged et al. (2020)": (78.8, 84.7, 81.6, 75.9, 85.9, 80.6, 81.1, 74.8, 77.8, 64.7, 73.4, 68.8, 80.0),
    "Cattan et al. (2020)": (85.1, 81.9, 83.5, 82.1, 82.7, 82.4, 75.2, 78.9, 77.0, 68.8, 72.0, 70.4, 81.0),
    "Zeng et al. (2020)": (85.6, 89.3, 87.5, 77.6, 89.7, 83.2, 84.5, 80.1, 82.3, None, None, None, 84.3),
    "Yu et al. (2020)": (88.1, 85.1, 86.6, 86.1, 84.7, 85.4, 79.6, 83.1, 81.3, None, None, None, 84.4),
    "Allaway et al. (2021)": (81.7, 82.8, 82.2, 80.8, 81.5, 81.1, 79.8, 78.4, 79.1, None, None, None, 80.8),
    "CDLM": (87.1, 89.2, 88.1, 84.9, 87.9, 86.4, 83.3, 81.2, 82.2, 76.7, 77.2, 76.9, 85.6),
}
_ENTITIES: Mapping[str, Numbers] = {
    "Barhom et al. (2019)": (81.0, 80.8, 80.9, 66.8, 75.5, 70.9, 62.5, 62.8, 62.7, 53.5, 63.8, 58.2, 71.5),
    "Cattan et al. (2020)": (85.7, 81.7, 83.6, 70.7, 74.8, 72.7, 59.3, 67.4, 63.1, 56.8, 65.8, 61.0, 73.1),
    "Allaway et al. (2021)": (83.9, 84.7, 84.3, 74.5, 70.5, 72.4, 70.0, 68.1, 69.2, None, None, None, 75.3),
    "CDLM": (88.1, 91.8, 89.9, 82.5, 81.7, 82.1, 81.2, 72.9, 76.8, 76.4, 73.0, 74.7, 82.9),
}
PAPER_TABLE_2: Mapping[str, Mapping[str, Numbers]] = {"event": _EVENTS, "entity": _ENTITIES}
# The same paper, Table 3: CoNLL F1 of its model on the events of the ECB+ test set, with other encoders, and
# with sentences in place of whole documents.
PAPER_TABLE_3: Mapping[str, float] = {
    "full document CDLM": 85.6,
    "sentences only CDLM": 84.2,
    "Longformer": 84.6,
    "Local CDLM": 84.7,
    "Rand CDLM": 84.1,
    "Prefix CDLM": 85.1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreferenceRow:
    """One system's scores.

    Attributes:
        system: its name.
        scores: `muc`, `b_cubed`, `ceaf_e`, `lea` and `conll`, as `metrics.coreference.score` gives them;
            between 0 and 1.
        interval: 95% interval of the CoNLL F1; None = not measured.
        p: p-value of the paired test that the caption of the table names; None = not tested.
        is_baseline: set apart from the systems, above them.

    Raises:
        ValueError: a measure is missing, an interval that runs backwards, a p-value outside [0, 1].
    """

    system: str
    scores: Mapping[str, Score]
    interval: tuple[float, float] | None = None
    p: float | None = None
    is_baseline: bool = False

    def __post_init__(self) -> None:
        if missing := [measure for measure in (*MEASURES, "conll") if measure not in self.scores]:
            raise ValueError(
                f"{self.system}: no score of {', '.join(missing)}; give what coreference.score gives"
            )
        if self.interval is not None and not 0 <= self.interval[0] <= self.interval[1] <= 1:
            raise ValueError(f"{self.system}: {self.interval} is no interval in [0, 1]")
        if self.p is not None and not 0 <= self.p <= 1:
            raise ValueError(f"{self.system}: p is {self.p}; it must lie in [0, 1]")

    @property
    def numbers(self) -> Numbers:
        """The thirteen numbers of the paper's table, times 100."""
        numbers: list[float] = []
        for measure in MEASURES:
            numbers += [getattr(self.scores[measure], part) for part in ("recall", "precision", "f1")]
        return tuple(100 * number for number in (*numbers, self.scores["conll"].f1))


def coreference_table_html(
    rows: Sequence[CoreferenceRow], *, kind: Kind | None = None, note: str = "", singletons: bool = True
) -> str:
    """The table as HTML: baselines, systems, and muted below them what the paper reports.

    The best F1 of each measure among the rows is bold.

    Args:
        rows: baselines are moved to the top, the order is kept otherwise.
        kind: what was clustered; adds the paper's numbers for it. None = none of them.
        note: what follows the explanation below the table (plain text): which data, what p compares with.
        singletons: False says that the scores are without singletons; the paper's are with them.

    Raises:
        ValueError: no rows, two of one system, an unknown kind.
    """
    ordered = _ordered(rows, kind)
    extras = _extra_columns(ordered)
    best = _best(ordered)
    body = []
    for title, members in _sections(ordered):
        body += [_title_row(title, extras)] if title else []
        body += [
            _row_html(row.system, _cells(row.numbers, best=best), [_extra(row, name) for name in extras])
            for row in members
        ]
    for title, published in _published(kind):
        body.append(_title_row(title, extras))
        body += [
            _row_html(system, _cells(numbers, muted=False), [""] * len(extras), style=MUTED)
            for system, numbers in published
        ]
    return (
        f'<div class="cdlm-coreference" style="overflow-x:auto"><style>{_STYLE}</style>'
        '<table class="cdlm-table" style="border-collapse:collapse;font-size:13px;margin:4px 0">'
        f"{_head(extras)}<tbody>{''.join(body)}</tbody></table></div>"
        f'<div style="font-size:12px;{MUTED}">{escaped(_explanation(extras, singletons, note))}</div>'
    )


def coreference_table_markdown(
    rows: Sequence[CoreferenceRow], *, kind: Kind | None = None, note: str = "", singletons: bool = True
) -> str:
    """The same table in GitHub's Markdown, without a line break at its end. Arguments and errors alike."""
    ordered = _ordered(rows, kind)
    extras = _extra_columns(ordered)
    columns = ["system", *(f"{name} R / P / F1" for name in MEASURES.values()), "CoNLL F1", *extras]
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)]]
    for row in ordered:
        lines.append([row.system, *_in_threes(row.numbers), *(_extra(row, name) for name in extras)])
    for title, published in _published(kind):
        for system, numbers in published:
            cells = _in_threes(numbers) if len(numbers) > 1 else [*[NONE] * 4, f"{numbers[0]:.1f}"]
            lines.append([f"{system} ({title.partition(':')[0]})", *cells, *[NONE] * len(extras)])
    table = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([*table, "", _explanation(extras, singletons, note)])


def _ordered(rows: Sequence[CoreferenceRow], kind: str | None) -> list[CoreferenceRow]:
    if not rows:
        raise ValueError("there is no system to show: rows is empty")
    if kind is not None and kind not in PAPER_TABLE_2:
        raise ValueError(f"unknown kind {kind!r}; choose one of {', '.join(PAPER_TABLE_2)}, or None")
    names = [row.system for row in rows]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two rows are called {repeated[0]!r}; name them apart")
    return sorted(rows, key=lambda row: not row.is_baseline)


def _sections(rows: Sequence[CoreferenceRow]) -> list[tuple[str, list[CoreferenceRow]]]:
    """Rows under their titles; no titles where there is but one kind of row."""
    parts = [[row for row in rows if row.is_baseline], [row for row in rows if not row.is_baseline]]
    titles = ("Baselines", "Systems") if all(parts) else ("", "")
    return [(title, part) for title, part in zip(titles, parts, strict=True) if part]


def _published(kind: str | None) -> list[tuple[str, list[tuple[str, Numbers]]]]:
    """What the paper has on a kind, under titles: system and thirteen numbers, or its CoNLL F1 alone."""
    if kind is None:
        return []
    what = f"ECB+ test set, {'events' if kind == 'event' else 'entities'}"
    tables = [(f"CDLM paper, Table 2: {what}", list(PAPER_TABLE_2[kind].items()))]
    if kind == "event":
        ablations = [(system, (f1,)) for system, f1 in PAPER_TABLE_3.items()]
        tables.append((f"CDLM paper, Table 3: {what}, ablations", ablations))
    return tables


def _is_f1(place: int) -> bool:
    return place == 12 or (place < 12 and place % 3 == 2)


def _best(rows: Sequence[CoreferenceRow]) -> list[str | None]:
    """The highest F1 of each measure as it is written, None for columns of no F1; [] if none can be best."""
    if len(rows) < 2:
        return []
    columns = zip(*(row.numbers for row in rows), strict=True)
    return [f"{max(column):.1f}" if _is_f1(place) else None for place, column in enumerate(columns)]


def _cells(numbers: Numbers, *, best: Sequence[str | None] = (), muted: bool = True) -> list[str]:
    """HTML of each number; recall and precision are muted if `muted`, the best F1 is bold."""
    cells = []
    for place, number in enumerate(numbers):
        text = NONE if number is None else f"{number:.1f}"
        if best and text == best[place]:
            text = f"<b>{text}</b>"
        cells.append(f'<span style="{MUTED}">{text}</span>' if muted and not _is_f1(place) else text)
    return cells


def _in_threes(numbers: Numbers) -> list[str]:
    """(78.1, 84.0, 80.9, ..., 79.5) -> ["78.1 / 84.0 / 80.9", ..., "79.5"]; three dashes are one."""
    texts = [NONE if number is None else f"{number:.1f}" for number in numbers]
    threes = [texts[place : place + 3] for place in range(0, 12, 3)]
    return [*(NONE if set(three) == {NONE} else " / ".join(three) for three in threes), texts[12]]


def _extra_columns(rows: Sequence[CoreferenceRow]) -> list[str]:
    """Headings of the columns that some row fills."""
    interval = ["[95%]"] if any(row.interval is not None for row in rows) else []
    return [*interval, *(["p"] if any(row.p is not None for row in rows) else [])]


def _extra(row: CoreferenceRow, column: str) -> str:
    if column == "p":
        return NONE if row.p is None else "< 0.001" if row.p < 0.001 else f"{row.p:.3f}"
    return NONE if row.interval is None else f"[{100 * row.interval[0]:.1f}, {100 * row.interval[1]:.1f}]"


def _explanation(extras: Sequence[str], singletons: bool, note: str) -> str:
    parts = ["All times 100. CoNLL F1: mean of the F1 of MUC, B\u00b3 and CEAFe."]
    parts += ["[95%]: its bootstrap interval."] if "[95%]" in extras else []
    parts += [] if singletons else ["Without singletons: not to be compared with scores that keep them."]
    return " ".join([*parts, *([note] if note else [])])


def _head(extras: Sequence[str]) -> str:
    """Two lines of headings: the measures, and what is reported of each."""
    names = "".join(
        f'<th colspan="3" style="text-align:center;font-weight:600;padding:3px 12px;{_BORDER}">{name}</th>'
        for name in MEASURES.values()
    )
    conll = f'<th style="{_cell_style(12)};font-weight:600">CoNLL</th>'
    parts = "".join(
        f'<th style="{_cell_style(place)};font-weight:600">{part}</th>'
        for place, part in enumerate(["R", "P", "F1"] * len(MEASURES) + ["F1", *extras])
    )
    system = '<th style="text-align:left;font-weight:600;padding:3px 12px 3px 0">system</th>'
    first = f"<tr><th></th>{names}{conll}{'<th></th>' * len(extras)}</tr>"
    return f"<thead>{first}<tr>{system}{parts}</tr></thead>"


def _cell_style(place: int) -> str:
    """Style of the cell of a number; a line stands before each measure, and room behind it."""
    starts, ends = place % 3 == 0 and place <= 12, _is_f1(place)
    style = f"text-align:right;white-space:nowrap;padding:4px {10 if ends else 0}px 4px 12px"
    return f"{style};font-variant-numeric:tabular-nums{';' + _BORDER if starts else ''}"


def _title_row(title: str, extras: Sequence[str]) -> str:
    style = f"text-align:left;font-size:12px;padding:10px 0 3px 0;{MUTED}"
    return f'<tr><td colspan="{14 + len(extras)}" style="{style}">{escaped(title)}</td></tr>'


def _row_html(system: str, cells: Sequence[str], extras: Sequence[str], *, style: str = "") -> str:
    """A row of thirteen cells, or of the last of them alone, and those of the extra columns."""
    blank = "" if len(cells) == 13 else f'<td colspan="12" style="{_BORDER}"></td>'
    texts = [*cells, *map(escaped, extras)]
    columns = "".join(
        f'<td style="{_cell_style(place)}">{text}</td>'
        for place, text in enumerate(texts, start=13 - len(cells))
    )
    name = f'<td style="text-align:left;padding:4px 12px 4px 0"><bdi>{escaped(system)}</bdi></td>'
    return f'<tr style="border-top:1px solid rgba(128,128,128,0.22);{style}">{name}{blank}{columns}</tr>'
