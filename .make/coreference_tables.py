"""Tables 2 and 3 of CDLM in the paper's layout: coreference on ECB+, the peers' numbers beside ours.

`coreference.csv` has a line for each row, in order: `table` is `events` or `entities` (Table 2) or `ablation`
(Table 3); `system`, `encoder` and `mentions` are shown; `row` is one of the papers' tables in `published.csv`
or, where there are `files`, the system in these recorded reports, one of each seed. So a further seed is a
further file, and a further run a further line.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cdlm_lab.results.claims import mark_of, mean_score
from cdlm_lab.results.reports import report_rows
from cdlm_lab.runs.report import read_report
from cdlm_lab.runs.scores import Score
from cdlm_lab.tasks.coreference.view import LAYOUT
from cdlm_lab.views import tables
from cdlm_lab.views.tables import Cell, Column, Heading, ScoreTable, SystemRow

FILE = Path(__file__).with_name("coreference.csv")
_GROUPS = {"events": "event", "entities": "entity", "ablation": "event"}
_PUBLISHED = (("cdlm", "2"), ("cdlm", "3"), ("acci", "2"))  # the first that has a row counts
_CONLL = "conll/f1"


def _lines(table: str) -> list[dict[str, str]]:
    with FILE.open(encoding="utf-8", newline="") as file:
        return [line for line in csv.DictReader(file) if line["table"] == table]


def coreference_table(results: Path, table: str) -> ScoreTable:
    """Table 2 for `events` or `entities`: all measures, what encoder, and whether mentions are gold."""
    lines = {line["system"]: line for line in _lines(table)}

    def given(name: str) -> Column:
        texts = {system: line[name] for system, line in lines.items()}
        return Column(
            heading=Heading(name=name, is_text=True), cell=lambda row, _: Cell(text=texts[row.system])
        )

    def seeds(row: SystemRow, _: Mapping[str, str]) -> Cell:
        line = lines[row.system]
        is_trained = line["files"] and line["encoder"] != "none"
        return Cell(text=str(len(line["files"].split())) if is_trained else "")

    rows = [_row(results, line) for line in lines.values()]
    measures = [*LAYOUT.shown[:-2], tables.measured("CoNLL F1", _CONLL)]
    columns = [
        given("encoder"),
        given("mentions"),
        *measures,
        Column(heading=Heading(name="seeds"), cell=seeds),
    ]
    return tables.table_of(rows, columns)


def ablation_table(results: Path) -> ScoreTable:
    """Table 3: what the pretraining of the encoder is worth for events, CoNLL F1, the paper's with whole
    documents and ours with sentences; ours with the difference from CDLM and its interval."""
    of_paper = tables.published_numbers()["cdlm", "3"]
    lines = _lines("ablation")
    whole = read_report(results / lines[0]["files"])
    tested = {row["b"]: row for row in whole.tables["comparisons"]}
    body = []
    for line in lines:
        numbers = [float(of_paper["ECB+ event", f"{one}/documents", _CONLL]) for one in (line["row"], "cdlm")]
        ours = _row(results, line | {"row": "this run"}).scores[_CONLL]
        far = f"{numbers[0] - numbers[1]:+.1f}" if line != lines[0] else ""
        texts = [line["system"], f"{numbers[0]:.1f}", far]
        cells = [Cell(text=text, published=place > 0) for place, text in enumerate(texts)]
        row = tested.get(f"ecb_{Path(line['files']).stem}")
        below = "" if row is None else _below(row)
        body.append([*cells, tables.number_cell(ours, tables.PER_CENT), Cell(text=below)])
    names = {"paper, documents": True, "to CDLM": True, "ours, sentences": False, "to CDLM ": False}
    headings = [Heading(name=name, published=published) for name, published in names.items()]
    return ScoreTable(caption="", columns=[Heading(name="encoder", is_text=True), *headings], rows=body)


def _below(row: Mapping[str, float]) -> str:
    """By how much a system is above CDLM, from a row that tests CDLM against it."""
    numbers = [-100 * row[name] for name in ("difference", "high", "low")]
    return "{:+.1f} ({:.1f} to {:.1f})".format(*numbers)


def mean_scores(found: Sequence[Mapping[str, Score]]) -> dict[str, Score]:
    """Metric -> the mean of a system's scores in reports of one seed each."""
    return {name: mean_score([one[name] for one in found]) for name in found[0]}


def _row(results: Path, line: dict[str, str]) -> SystemRow:
    group, files = _GROUPS[line["table"]], [results / file for file in line["files"].split()]
    if not files:
        rows = (row for table in _PUBLISHED for row in tables.published_rows(*table, f"ECB+ {group}"))
        row = next(row for row in rows if row.system == line["row"])
        return replace(row, system=line["system"], label=line["system"])
    reports = [read_report(file) for file in files]
    every = [row for report in reports for row in report_rows(report)]
    found = [row.scores for row in every if (row.system, row.group) == (line["row"], group)]
    scores = found[0]
    if len(found) > 1:  # the text says their interval
        scores = {name: replace(one, low=None, high=None) for name, one in mean_scores(found).items()}
    label = f"{line['system']} {mark_of(reports, line)}".strip()
    return SystemRow(system=line["system"], label=label, scores=scores)
