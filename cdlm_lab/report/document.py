"""What `report.json` says."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from cdlm_lab.parameters import ParameterError, check_types
from cdlm_lab.report.values import RunError, kept, plain, write_json

REPORT_FILE = "report.json"
_DEEPEST, _LONGEST = 50, 200  # levels of values; characters of what is said of them
FORMAT = 1  # raised when a field changes its meaning


@dataclass(frozen=True, kw_only=True)
class Report:
    """The contents of `report.json`.

    Attributes:
        name: of the experiment.
        parameters: all parameters of the run.
        seed: the parameter of that name, or None.
        scores: name -> {"value": ..., and what belongs to it: "low", "high", "n", ...}. In [0, 1] unless the
            score has another scale, as perplexity has.
        data: name -> checksum, or what else identifies the data.
        tables: name -> rows, each a mapping of column to value.
        figures: name -> file, relative to the folder of the run.
        versions: of Python and of the packages that matter.
        hardware: processor, cores, memory, devices.
        seconds: wall time, over all resumptions; of a session that was killed, up to its last sign of life.
        peak_memory: {"cpu": bytes, "cuda": bytes} of this process in the last session.
        git_commit: of cdlm_lab, with "-dirty" if it was changed since; None where there is none.
        started, finished: UTC, ISO 8601.
    """

    name: str
    parameters: dict[str, Any]
    seed: int | None
    scores: dict[str, dict[str, Any]]
    data: dict[str, Any]
    tables: dict[str, list[dict[str, Any]]]
    figures: dict[str, str]
    versions: dict[str, str]
    hardware: dict[str, Any]
    seconds: float
    peak_memory: dict[str, int]
    git_commit: str | None
    started: str
    finished: str


def save_report(report: Report, folder: Path) -> None:
    """Write `report.json` into a folder, in one go; raises RunError if the disk is full."""
    with kept(folder / REPORT_FILE):
        write_json(folder / REPORT_FILE, {"format": FORMAT, **asdict(report)})


def read_report(path: str | os.PathLike[str]) -> Report:
    """Read a `report.json`, or the one in a folder.

    Raises:
        RunError: there is none, it is not JSON, it lacks a field, or one holds what no report has.
    """
    file = Path(path)
    file = file / REPORT_FILE if file.is_dir() and file.name != REPORT_FILE else file
    try:
        if not file.exists():
            raise RunError(f"there is no {file}: the run has not finished, or the path is wrong")
        if not file.is_file():
            raise RunError(f"{file}: is no file")
        values = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunError(f"{file}: cannot be read ({error.strerror or error})") from None
    except json.JSONDecodeError as error:
        raise RunError(f"{file}:{error.lineno}: not JSON ({error.msg})") from None
    except UnicodeDecodeError:
        raise RunError(f"{file}: not text in UTF-8") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, endless nesting
        raise RunError(f"{file}: not JSON ({error})") from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        found = repr(values.get("format"))[:_LONGEST] if isinstance(values, dict) else None
        raise RunError(f"{file}: format is {found}, this version of cdlm_lab reads {FORMAT}")
    names = [known.name for known in fields(Report)]
    if missing := [name for name in names if name not in values]:
        raise RunError(f"{file}: the field {missing[0]!r} is missing")
    if _levels(values) > _DEEPEST:
        raise RunError(f"{file}: has more than {_DEEPEST} levels of lists and mappings")
    try:
        report = Report(**{name: plain(values[name], name) for name in names})
        check_types(report)
    except (RunError, ParameterError) as error:
        told = str(error).partition(": write")[0].partition(": find out")[0]
        raise RunError(f"{file}: {told[:_LONGEST]}") from None
    return report


def _levels(values: Any) -> int:
    """How deep lists and mappings lie in each other."""
    level, count = [values], 0
    while level:
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        count += 1
    return count
