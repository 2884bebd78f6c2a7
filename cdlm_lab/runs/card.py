"""The card of a run: everything that it recorded about itself, as text, and the commands that repeat it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from cdlm_lab.runs import report
from cdlm_lab.runs.scores import Score, json_of, plain_name

GRID_FILE = ".grid/jobs.json"  # in the folder of a grid's runs: what the grid is and which runs it made
_GB = 10**9
_NAMES = ("system", "split", "group", "metric", "value", "low", "high")  # shown before the other fields


def run_card(folder: str | os.PathLike[str]) -> str:
    """Return everything that a run recorded about itself as text, even if it was interrupted. Raises RunError
    if the folder holds no run or its files cannot be read."""
    path = Path(folder)
    path = path.parent if path.name == report.REPORT_FILE else path
    if (path / report.REPORT_FILE).exists():
        made = report.read_report(path)
        parameters = made.parameters
        parts = [f"{path}: {made.name}\n  finished {made.finished[:19]} UTC", *_finished(made)]
    elif (path / report.RUN_FILE).exists():
        name, parameters, sessions = report.read_run_file(path)
        held = report.is_held(path)
        state = "still running" if held else "NOT FINISHED: the same command takes it up again"
        lines = [f"{session.get('started', '?')[:19]} on {session.get('host')}" for session in sessions]
        parts = [f"{path}: {name}\n  {state}", _part("parameters", _values(parameters))]
        parts.append(_part("sessions", lines))
    else:
        files = f"no {report.REPORT_FILE} and no {report.RUN_FILE}"
        raise report.RunError(f"{path} holds no run: there is {files} in it")
    parts.append(_part("to repeat it", _commands(path, parameters)))
    text = "\n".join(part for part in parts if part)
    # Names and scores are untrusted: control characters that move the cursor are replaced.
    return "".join(sign if sign.isprintable() or sign == "\n" else "\ufffd" for sign in text)


def _finished(made: report.Report) -> list[str]:
    hardware = made.hardware
    devices = ", ".join(hardware.get("cuda") or ()) or "no GPU"
    memory = ", ".join(f"{size / _GB:.2f} GB {kind}" for kind, size in made.peak_memory.items())
    machine = [
        f"{hardware.get('processor')}, {hardware.get('cores_available')} of {hardware.get('cores')} cores, "
        f"{hardware.get('memory', 0) / _GB:.0f} GB, {devices}, {hardware.get('system')}",
        f"took {shown_time(made.seconds)}, at most {memory}",
    ]
    return [
        _part("scores", _table({plain_name(row): _score(row) for row in made.rows if row.seed is None})),
        _part("parameters", _values(made.parameters)),
        _part("data", _values(made.data)),
        _part("versions", _values(made.versions | {"commit": made.git_commit or "unknown"})),
        _part("machine", machine),
    ]


def _commands(folder: Path, parameters: Mapping[str, Any]) -> list[str]:
    """Return the commands that repeat a run: by the grid that made it, if any, and by papermill alone."""
    grid, notebook = "", "NOTEBOOK.ipynb"
    with suppress(OSError, ValueError, LookupError, TypeError):
        made_by = json.loads((folder.parent / GRID_FILE).read_text(encoding="utf-8"))
        job = made_by["jobs"][folder.name]
        grid, notebook, parameters = made_by["grid"], job["notebook"], job["parameters"]
    given = {name: value for name, value in parameters.items() if name != "run_folder"}
    # YAML in flow style, on one line; as YAML, unlike as JSON, 1.0e-05 is read as a number.
    text = yaml.safe_dump(given, default_flow_style=True, width=10**6, sort_keys=False).strip()
    new = f"{folder}-again"
    alone = shlex.join(["papermill", notebook, f"{new}.ipynb", "-y", text, "-p", "run_folder", new])
    option = "--rerun" if (folder / report.REPORT_FILE).exists() else "--only"  # which resumes it
    return [f"cdlm-lab run {shlex.quote(grid)} {option} {folder.name}"] * bool(grid) + [alone]


def shown_time(seconds: float) -> str:
    """Write a duration in seconds: 75 -> "1:15", 7260 -> "2:01 h"."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600}:{whole % 3600 // 60:02d} h"
    return f"{whole // 60}:{whole % 60:02d}"


def _part(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"  {title}", *(f"    {line}" for line in lines)]) if lines else ""


def _table(texts: Mapping[str, str]) -> list[str]:
    width = max(map(len, texts), default=0)
    return [f"{name:<{width}}  {text}" for name, text in texts.items()]


def _values(values: Mapping[str, Any]) -> list[str]:
    texts = {k: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in values.items()}
    return _table(texts)


def _score(row: Score) -> str:
    """Write a score, such as `0.712 [0.690, 0.731] n=40`."""
    interval = [] if row.low is None else [f"[{_number(row.low)}, {_number(row.high)}]"]
    (values,) = json_of([row])
    more = [f"{name}={_number(value)}" for name, value in values.items() if name not in _NAMES]
    return " ".join([_number(row.value), *interval, *more])


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
