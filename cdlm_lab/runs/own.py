"""Score predictions of one's own, made by any program, on the items of a run:

    add_predictions(run, "mine.jsonl")    # after report(); or of a finished run, opened again

The file has one line of JSON an item of the split: what it must hold says `own_predictions` of the run's
experiment. The predictions are scored by the same code as those of the run, and compared with each of its
systems, in a family of their own, so that the verdicts of the run stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cdlm_lab.data.files import DataError, read_json_lines
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.evaluation import Evaluation, Planned, evaluate
from cdlm_lab.runs.items import ITEMS_FILE, read_items
from cdlm_lab.runs.runs import ExperimentRun

Lines = Sequence[tuple[int, Mapping[str, Any]]]  # (line number, what it says)


def add_predictions(
    run: ExperimentRun, file: str | Path, *, name: str = "mine", split: str = "test"
) -> Evaluation:
    """Score one's own predictions beside those of a run.

    Args:
        run: finished; its table of items is read from its folder.
        file: lines of JSON, one for each item of the split, in any order.
        name: of the system in the tables; none of the run may have it.
        split: what was predicted; of no account where the run has no splits.

    Returns all rows of the run on this split and those of the new system, and its comparisons with each
    system of the run by the measures that the run plans to compare. Raises DataError, with file and line, if
    a line cannot be read, an item is missing, not known or given twice; ParameterError for a taken name.
    """
    items = read_items(run.folder / ITEMS_FILE)
    if {*items["split"]} == {""}:
        split = ""
    items = items[items["split"] == split]
    systems = [*items["system"].unique()]
    if not systems:
        raise ParameterError(f"split is {split!r}, on which this run measured nothing")
    if name in systems:
        raise ParameterError(f"name is {name!r}, which is a system of this run; choose another")
    mine = run.items({(name, 0): {split: run.own_predictions(Path(file), lines_of(file), split)}})
    measures = dict.fromkeys(one.measure for one in run.planned) or [run.MEASURES[0].name]
    groups = [*mine["group"].unique()]
    planned = [
        Planned(a=name, b=system, measure=measure, split=split, group=group, family=f"{name}/{measure}")
        for measure in measures
        for group in groups
        for system in systems
    ]
    return evaluate(pd.concat([items, mine]), run.MEASURES, planned)


def lines_of(file: str | Path) -> list[tuple[int, Mapping[str, Any]]]:
    """(line number, values) of each line that is not empty. Raises DataError: a line is no JSON object."""
    return [(one.line, one.fields) for one in read_json_lines(Path(file))]


def by_item(file: Path, lines: Lines, items: Sequence[str], *, field: str) -> dict[str, tuple[int, Any]]:
    """Item -> (line, the value of `field`), in the order of `items`. Raises DataError unless each item has
    exactly one line with this field."""
    found: dict[str, tuple[int, Any]] = {}
    known = set(items)
    for number, values in lines:
        if missing := next((one for one in ("item", field) if one not in values), ""):
            raise DataError(file, f"has no {missing!r}", f'write "item" and "{field}"', line=number)
        name = str(values["item"])
        if name not in known:
            raise DataError(file, f"item {name!r} is not in this split", "leave it out", line=number)
        if name in found:
            raise DataError(file, f"item {name!r} has a second line", "leave one out", line=number)
        found[name] = number, values[field]
    if lacking := [one for one in items if one not in found]:
        what = f"{len(lacking):,} of {len(items):,} items have no line, such as {lacking[0]!r}"
        raise DataError(file, what, "predict every item of the split")
    return {one: found[one] for one in items}
