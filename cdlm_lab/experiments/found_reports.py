"""Reports found in a folder of runs, or in data/results, and what lies there besides and is left aside."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from cdlm_lab.experiments.report_size import size_of
from cdlm_lab.experiments.reported_rows import READERS, reported_rows
from cdlm_lab.experiments.reported_scores import ReportedRow
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import Report, RunError, read_report
from cdlm_lab.report.document import REPORT_FILE
from cdlm_lab.report.folder import ASIDE, RUN_FILE

BOOK = "results book"
# What fills no table of a paper, and why.
_ELSEWHERE = {
    "tour": "trains for show, for minutes; notebook 02 measures",
    "tour, shipped checkpoints": "a part of the tour; notebook 02 measures",
    "pretraining": "says what its model was trained with; notebook 02 measures it",
    "paragraph pretraining": "says what its model was trained with; notebooks 09 and 10 measure it",
    BOOK: "is an earlier results book",
}
_REPORT_START = re.compile(rb'\s*\{\s*"format"\s*:')  # reports are written with this field first


@dataclass(frozen=True)
class FoundReport:
    """A report in a folder.

    Attributes:
        name: its place below the folder, without `report.json`.
        report: what it says.
    """

    name: str
    report: Report

    @cached_property
    def rows(self) -> list[ReportedRow]:
        """Its rows; [] if it fills no table."""
        return reported_rows(self.report) if self.report.name in READERS else []


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftAside:
    """Something in the folder that fills no table, and why; `damaged` if it is a report that should."""

    name: str
    why: str
    damaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundReports:
    """What a folder holds.

    Attributes:
        folder: where was looked.
        reports: those that fill tables.
        others: those that say how models were made.
        aside: what is not used, and why.
    """

    folder: Path
    reports: Sequence[FoundReport]
    others: Sequence[FoundReport]
    aside: Sequence[LeftAside]


def find_reports(
    folder: str | os.PathLike[str], *, leave_out: str = "", own: str | Path | None = None
) -> FoundReports:
    """Look through a folder, however deep.

    Args:
        folder: of runs, where reports are called `report.json`, or of recorded ones, called anything.
        leave_out: names of reports, separated by spaces, as `FoundReport.name` has them; `*` stands for
            anything.
        own: a folder that is not looked into, that of the run which looks.

    Raises:
        ParameterError: the folder is not there, or a name of `leave_out` fits none.
    """
    top = Path(folder)
    if not top.is_dir():
        raise ParameterError(
            f"results is {os.fspath(folder)!r}, which is no folder; give one with runs in it"
        )
    patterns = leave_out.split()
    fitting = dict.fromkeys(patterns, 0)
    reports: list[FoundReport] = []
    others: list[FoundReport] = []
    aside: list[LeftAside] = []
    no_reports = 0
    for file in _files(top, own):
        name = _name(file, top)
        if ASIDE in file.name and file.is_dir():
            aside.append(LeftAside(name=name, why="was put aside; another run has its place"))
        elif file.name == RUN_FILE:
            if not (file.parent / REPORT_FILE).exists():
                aside.append(LeftAside(name=_name(file.parent / REPORT_FILE, top), why="is not finished"))
        elif not _is_report(file):
            no_reports += 1
        elif left := next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None):
            fitting[left] += 1
            aside.append(LeftAside(name=name, why=f"is left out, as leave_out says ({left})"))
        elif isinstance(one := _read(file, name), LeftAside):
            aside.append(one)
        else:
            (reports if one.rows else others).append(one)
            if why := _ELSEWHERE.get(one.report.name):
                aside.append(LeftAside(name=name, why=why))
    if unused := [pattern for pattern, count in fitting.items() if not count]:
        raise ParameterError(f"leave_out names {unused[0]!r}, which no report in {top} is called")
    if no_reports:
        aside.append(LeftAside(name=f"{no_reports} other JSON files", why="are no reports of runs"))
    return FoundReports(folder=top, reports=reports, others=others, aside=aside)


def _files(top: Path, own: str | Path | None) -> list[Path]:
    """JSON files in order, folders that were put aside, and those that are called as a report is. None of
    these is entered, nor are `own` and those that begin with a dot."""
    left = None if own is None else Path(own).resolve()
    found: list[Path] = []
    for where, folders, names in os.walk(top):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and (Path(where) / name).resolve() != left
        )
        found += [Path(where) / name for name in folders if ASIDE in name or name == REPORT_FILE]
        folders[:] = [name for name in folders if ASIDE not in name and name != REPORT_FILE]
        found += [Path(where) / name for name in sorted(names) if name.endswith(".json")]
    return found


def _name(file: Path, top: Path) -> str:
    place = file.parent if file.name == REPORT_FILE else file
    name = place.relative_to(top).as_posix() if place != top else REPORT_FILE
    return name.encode("utf-8", errors="backslashreplace").decode("utf-8")  # a name may be of any bytes


def _is_report(file: Path) -> bool:
    """By its name, or by its first field: other JSON files of runs can be large."""
    if file.name == REPORT_FILE:
        return True
    if not file.is_file():
        return False
    try:
        with file.open("rb") as stream:
            return bool(_REPORT_START.match(stream.read(64)))
    except OSError:
        return False


def _read(file: Path, name: str) -> FoundReport | LeftAside:
    """A report whose rows can be read, and on how much they were measured."""
    try:
        found = FoundReport(name=name, report=read_report(file))
        if found.report.name not in READERS and found.report.name not in _ELSEWHERE:
            return LeftAside(name=name, why=f"is of {found.report.name!r}, which fills no table")
        if not found.rows and found.report.name in READERS:
            return LeftAside(name=name, why="has no scores")
        for row in found.rows:
            size_of(found.report, row.group)
    except RunError as error:
        told = str(error).removeprefix(str(file)).lstrip(": ")
        return LeftAside(name=name, why=f"cannot be read: {told}", damaged=True)
    except Exception as error:
        return malformed(name, error)
    return found


def malformed(name: str, error: Exception) -> LeftAside:
    """A report that has all fields, but in them something else than its notebook writes."""
    return LeftAside(name=name, why=f"is not as its notebook writes it ({repr(error)[:200]})", damaged=True)
