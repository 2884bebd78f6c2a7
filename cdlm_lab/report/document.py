"""What `report.json` says."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from cdlm_lab.report.values import RunError, write_json

REPORT_FILE = "report.json"
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
    """Write `report.json` into a folder, in one go."""
    write_json(folder / REPORT_FILE, {"format": FORMAT, **asdict(report)})


def read_report(path: str | os.PathLike[str]) -> Report:
    """Read a `report.json`, or the one in a folder.

    Raises:
        RunError: there is none, it is not JSON, or it lacks a field.
    """
    file = Path(path) / REPORT_FILE if Path(path).is_dir() else Path(path)
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"there is no {file}: the run has not finished, or the path is wrong") from None
    except json.JSONDecodeError as error:
        raise RunError(f"{file}:{error.lineno}: not JSON ({error.msg})") from None
    except UnicodeDecodeError:
        raise RunError(f"{file}: not text in UTF-8") from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        found = values.get("format") if isinstance(values, dict) else None
        raise RunError(f"{file}: format is {found!r}, this version of cdlm_lab reads {FORMAT}")
    names = [known.name for known in fields(Report)]
    if missing := [name for name in names if name not in values]:
        raise RunError(f"{file}: the field {missing[0]!r} is missing")
    return Report(**{name: values[name] for name in names})
