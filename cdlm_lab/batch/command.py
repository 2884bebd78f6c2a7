"""`cdlm-lab run grid.yaml`, and `cdlm-lab show runs/x`, the card of a run: what was asked, of what, with
which result, and the command that repeats it.

Exit codes: 0 all is done, 1 a run failed, 2 nothing was started since something is wrong or missing, 130 and
143 it was stopped (Ctrl-C, SIGTERM).
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from cdlm_lab.batch import session
from cdlm_lab.batch.engine import LOCAL, Place
from cdlm_lab.batch.marked_yaml import GridError
from cdlm_lab.batch.plan import Choice, changes, read_stamp
from cdlm_lab.batch.session import shown_time
from cdlm_lab.data.files import DataError
from cdlm_lab.report import REPORT_FILE, RUN_FILE, Report, RunError, is_held, read_report, read_run_file

_GB = 10**9


def run_card(folder: str | os.PathLike[str]) -> str:
    """Everything that a run left to say about itself, as text; also of one that was interrupted. Raises
    RunError: there is no run in the folder, or its files cannot be read."""
    path = Path(folder)
    path = path.parent if path.name == REPORT_FILE else path
    if (path / REPORT_FILE).exists():
        report = read_report(path)
        parts = [_head(path, report.name, f"finished {report.finished[:19]} UTC"), *_finished(path, report)]
        parameters = report.parameters
    elif (path / RUN_FILE).exists():
        name, parameters, sessions = read_run_file(path)
        state = "still running" if is_held(path) else "NOT FINISHED: the same command takes it up again"
        parts = [_head(path, name, state), _part("parameters", _values(parameters))]
        parts.append(
            _part("sessions", (f"{s.get('started', '?')[:19]} on {s.get('host')}" for s in sessions))
        )
    else:
        raise RunError(f"{path} holds no run: there is no {REPORT_FILE} and no {RUN_FILE} in it")
    if _went_on_with_other_code(path):
        parts.append("  it was interrupted, and went on with other code than it began with")
    parts.append(_part("to repeat it", _commands(path, parameters)))
    return _printable("\n".join(part for part in parts if part))


def _finished(folder: Path, report: Report) -> list[str]:
    hardware = report.hardware
    devices = ", ".join(hardware.get("cuda") or ()) or "no GPU"
    memory = ", ".join(f"{size / _GB:.2f} GB {kind}" for kind, size in report.peak_memory.items())
    machine = [
        f"{hardware.get('processor')}, {hardware.get('cores_available')} of {hardware.get('cores')} cores, "
        f"{hardware.get('memory', 0) / _GB:.0f} GB, {devices}, {hardware.get('system')}",
        f"took {shown_time(report.seconds)}, at most {memory}",
    ]
    return [
        _part("scores", _table((name, _score(score)) for name, score in report.scores.items())),
        _part("parameters", _values(report.parameters)),
        _part("data", _values(report.data)),
        _part("versions", _values(report.versions | {"commit": report.git_commit or "unknown"})),
        _part("machine", machine),
        _part("figures", (str(folder / file) for file in report.figures.values())),
    ]


def _commands(folder: Path, parameters: Mapping[str, Any]) -> list[str]:
    """By the grid that made the run, and by papermill alone."""
    stamp = read_stamp(folder)
    # A notebook may report fewer parameters than it has.
    known = stamp["fingerprint"]["parameters"] if stamp else parameters
    given = {name: value for name, value in known.items() if name != "run_folder"}
    # Flow style on one line; in YAML, unlike JSON, 1.0e-05 is a number.
    text = yaml.safe_dump(given, default_flow_style=True, width=10**6, sort_keys=False).strip()
    notebook = stamp["notebook"] if stamp else "NOTEBOOK.ipynb"
    new = f"{folder}-again"
    lines = [f"papermill {shlex.quote(str(notebook))} {shlex.quote(f'{new}.ipynb')} -y {shlex.quote(text)} "]
    lines[0] += f"-p run_folder {shlex.quote(new)}"
    if stamp and stamp.get("grid") and stamp.get("name") == folder.name:
        option = "--rerun" if (folder / REPORT_FILE).exists() else "--only"  # which goes on with it
        lines.insert(0, f"cdlm-lab run {shlex.quote(str(stamp['grid']))} {option} {folder.name}")
    return lines


def _went_on_with_other_code(folder: Path) -> bool:
    stamp = read_stamp(folder) or {}
    began, now = stamp.get("began_with"), stamp.get("fingerprint")
    return began is not None and bool(changes(began, now))


def _head(folder: Path, name: str, state: str) -> str:
    return f"{folder}: {name}\n  {state}"


def _part(title: str, lines: Iterable[str]) -> str:
    listed = [f"    {line}" for line in lines]
    return "\n".join([f"  {title}", *listed]) if listed else ""


def _table(rows: Iterable[tuple[str, str]]) -> list[str]:
    listed = list(rows)
    width = max((len(name) for name, _ in listed), default=0)
    return [f"{name:<{width}}  {value}" for name, value in listed]


def _values(values: Mapping[str, Any]) -> list[str]:
    shown = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in values.items()
    }
    return _table(shown.items())


def _score(score: Mapping[str, Any]) -> str:
    """`0.712 [0.690, 0.731] n=40`."""
    text = _number(score.get("value"))
    if score.get("low") is not None and score.get("high") is not None:
        text += f" [{_number(score['low'])}, {_number(score['high'])}]"
    more = {
        k: v for k, v in score.items() if k not in ("value", "low", "high") and not isinstance(v, list | dict)
    }
    return " ".join([text, *(f"{name}={_number(value)}" for name, value in more.items())])


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _printable(text: str) -> str:
    """Without what could move the cursor: names and scores may come from anywhere."""
    return "".join(sign if sign.isprintable() or sign == "\n" else "\ufffd" for sign in text)


WRONG = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    own, more = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, [])
    chosen = _parser().parse_args(own)
    try:
        if chosen.command == "show":
            print("\n\n".join(run_card(folder) for folder in chosen.folders))
            return 0
        return _run(chosen, tuple(more), shlex.join(["cdlm-lab", *given]))
    except (GridError, RunError, DataError) as error:
        print(error, file=sys.stderr)
    except KeyboardInterrupt:  # while it plans; later it is heeded in `session`
        return 128 + signal.SIGINT
    except OSError as error:
        print(f"{error.filename or 'cdlm-lab'}: {error.strerror or error}", file=sys.stderr)
    return WRONG


def _run(chosen: argparse.Namespace, more: tuple[str, ...], command: str) -> int:
    if chosen.jobs is not None and chosen.jobs < 1:
        raise GridError(f"--jobs {chosen.jobs}: it must be at least 1")
    variables = {}
    for text in chosen.set:
        name, mark, value = text.partition("=")
        if not mark:
            raise GridError(f"--set {text}: it must look like name=value")
        variables[name] = value
    # A profile may name an executor; without either the runs are made here.
    executor = chosen.executor or (None if chosen.profile else LOCAL)
    wanted = session.Session(
        grid=chosen.grid,
        variables=variables,
        place=Place(executor=executor, profile=chosen.profile, jobs=chosen.jobs, more=more),
        choice=Choice(only=tuple(chosen.only), rerun=tuple(chosen.rerun), ignore_code=chosen.ignore_code),
        leave_out=chosen.without_missing,
        command=command,
    )
    return wanted.show() if chosen.dry_run else wanted.run()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cdlm-lab", description="Grids of notebook runs, and what they left."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        "run",
        help="run a grid, or go on with it",
        epilog="What follows -- is handed on to Snakemake: -- --default-resources slurm_partition=gpu",
    )
    run.add_argument("grid", help="the grid, a YAML file")
    run.add_argument("--dry-run", "-n", action="store_true", help="only say what would be done, and why")
    run.add_argument("--jobs", "-j", type=int, help="at most so many runs at once")
    run.add_argument(
        "--executor", help="local (what it is unless a profile says otherwise), slurm, kubernetes, ..."
    )
    run.add_argument("--profile", help="a folder with a profile of Snakemake")
    run.add_argument(
        "--only", action="append", default=[], metavar="TASK", help="this task or run, and what it needs"
    )
    run.add_argument(
        "--rerun", nargs="+", default=[], metavar="RUN", help="runs or tasks to make anew in any case"
    )
    run.add_argument(
        "--ignore-code", action="store_true", help="keep finished runs though code changed since"
    )
    run.add_argument("--without-missing", action="store_true", help="leave out runs whose data are not here")
    run.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a variable of the grid"
    )
    show = commands.add_parser("show", help="show what a run was, and how to repeat it")
    show.add_argument("folders", nargs="+", metavar="RUN", help="the folder of a run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
