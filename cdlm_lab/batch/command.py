"""The command line `cdlm-lab`: `run grid.yaml`; `show runs/x`, the card of a run with its parameters, data,
results and the command that repeats it; `apply` and `ship`.

Exit codes: 0 everything is done; 1 a run failed; 2 nothing was started because something is wrong or missing;
130 and 143 stopped (Ctrl-C, SIGTERM).
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from cdlm_lab.batch.engine import LOCAL, Place
from cdlm_lab.batch.marked_yaml import GridError
from cdlm_lab.batch.plan import Choice, changes, read_stamp
from cdlm_lab.batch.session import WRONG, Session, shown_time
from cdlm_lab.data.files import DataError, replaced_file
from cdlm_lab.errors import print_any_sign
from cdlm_lab.parameters import ParameterError, local_path
from cdlm_lab.runs import report
from cdlm_lab.runs.scores import Score, json_of, plain_name

_GB = 10**9
_FORMS = """each line holds, by the sort of model (and an "id", which comes back):
  language model  {"texts": ["A [MASK] broke out.", "..."]}   words for blanks; without any, vectors
                  {"texts": ["...", "..."], "source": [0, "recount"]}   attention
  coreference     {"documents": {"police": "A <m>fire</m> ...", "paper": "The <m>blaze</m> ..."}}
  matching        {"first": "...", "second": "..."}
  questions       {"question": "...", "documents": {"title": "text"}}
  tagging         {"text": "..."}
  answers         {"question": "...", "candidates": ["...", "..."]}
  claims          {"claim": "...", "evidence": ["...", "..."]}

The same command goes on where it was stopped. A line that the model cannot read has an "error"; the exit
code is 1 then. A line that is malformed stops the command before it begins."""
_OF_MODELS = ("model", "input", "output", "pile", "clusters", "apart")  # arguments of `apply` and `mine`
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
    stamp = read_stamp(path)
    if stamp and (changed := changes(stamp.get("began_with", stamp["fingerprint"]), stamp["fingerprint"])):
        parts.append(f"  what has changed since it began: {'; '.join(changed)}")
    parts.append(_part("to repeat it", _commands(path, parameters, stamp)))
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


def _commands(folder: Path, parameters: Mapping[str, Any], stamp: Mapping[str, Any] | None) -> list[str]:
    """Return the commands that repeat a run: by the grid that made it, if any, and by papermill alone."""
    # A notebook may report fewer parameters than it has.
    known = stamp["fingerprint"]["parameters"] if stamp else parameters
    given = {name: value for name, value in known.items() if name != "run_folder"}
    # YAML in flow style, on one line; as YAML, unlike as JSON, 1.0e-05 is read as a number.
    text = yaml.safe_dump(given, default_flow_style=True, width=10**6, sort_keys=False).strip()
    notebook, new = str(stamp["notebook"]) if stamp else "NOTEBOOK.ipynb", f"{folder}-again"
    alone = shlex.join(["papermill", notebook, f"{new}.ipynb", "-y", text, "-p", "run_folder", new])
    if not stamp or not stamp.get("grid") or stamp.get("name") != folder.name:
        return [alone]
    option = "--rerun" if (folder / report.REPORT_FILE).exists() else "--only"  # which resumes it
    return [f"cdlm-lab run {shlex.quote(str(stamp['grid']))} {option} {folder.name}", alone]


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of `cdlm-lab` and return its exit code."""
    print_any_sign()
    given = list(sys.argv[1:] if arguments is None else arguments)
    own, more = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, [])
    chosen = _parser().parse_args(own)
    try:
        _expand_paths(chosen)
        if chosen.command == "show" and (chosen.html or chosen.export):
            return _as_files(chosen)
        if chosen.command == "show":
            print("\n\n".join(run_card(folder) for folder in chosen.folders))
            return 0
        if chosen.command == "apply":
            return _apply(chosen)
        if chosen.command == "mine":
            return _mine(chosen, more)
        return _run(chosen, tuple(more), shlex.join(["cdlm-lab", *given]))
    except (GridError, report.RunError, DataError, ParameterError) as error:
        print(error, file=sys.stderr)
    except KeyboardInterrupt as stopped:  # but while runs are made, `session` handles it
        print(str(stopped) or "stopped", file=sys.stderr)
        return 128 + signal.SIGINT
    except OSError as error:
        print(f"{error.filename or 'cdlm-lab'}: {error.strerror or error}", file=sys.stderr)
    return WRONG


def _expand_paths(chosen: argparse.Namespace) -> None:
    """Replace `~` and variables in all paths that were given. Raises ParameterError for an address."""
    for name in ("grid", "profile", "folders", "html", "export", *_OF_MODELS):
        given = getattr(chosen, name, None)
        if isinstance(given, list):
            setattr(chosen, name, [local_path(one, name) for one in given])
        elif given:
            setattr(chosen, name, local_path(given, name))


def _as_files(chosen: argparse.Namespace) -> int:
    """Export a run in a separate process, as the names of systems come from modules that import torch."""
    if len(chosen.folders) > 1:
        raise report.RunError("--html and --export take one run; give one folder")
    ways = {f"--{name}": getattr(chosen, name) for name in ("html", "export")}
    given = [part for way, path in ways.items() if path for part in (way, path)]
    return subprocess.run([sys.executable, "-m", "cdlm_lab.results.page", *chosen.folders, *given]).returncode


def _apply(chosen: argparse.Namespace) -> int:
    from cdlm_lab.apply.lines import apply_lines  # imports torch, which takes seconds

    try:
        applied = apply_lines(chosen.model, chosen.input, chosen.output, system=chosen.system)
    except ValueError as error:
        raise report.RunError(str(error)) from None
    print(f"{chosen.output}: {applied.lines:,} {'line' if applied.lines == 1 else 'lines'}")
    if applied.foreign:
        foreign = f"{applied.foreign:,} of them: foreign text, unlike all that the model was trained on"
        print(f"{foreign}; the answers to these mean little", file=sys.stderr)
    if applied.refused:
        print(f"{applied.refused:,} of them have an error in place of an answer", file=sys.stderr)
    return 1 if applied.refused else 0


def _mine(chosen: argparse.Namespace, more: Sequence[str]) -> int:
    from cdlm_lab.mining.mine import in_words, mine  # imports scikit-learn, which takes a second
    from cdlm_lab.mining.view import pile_page, pile_text

    names = ("apart", "apart_splits", "parts", "threshold", "days", "duplicates", "least", "most", "by_date")
    given = {name: getattr(chosen, name) for name in names if getattr(chosen, name) is not None}
    if chosen.without_dates:
        given["dates"] = False
    try:
        mined = mine(chosen.pile, chosen.clusters, more=more, **given)
    except ParameterError as error:
        raise report.RunError(str(error)) from None
    page = Path(chosen.clusters).with_suffix(".html")
    with replaced_file(page) as file:
        file.write(pile_page(mined, title=f"{chosen.pile}: the clusters of {chosen.clusters}"))
    end = f"{chosen.clusters}: the clusters; {page}: this, as a figure"
    print("", pile_text(mined), in_words(mined), end, sep="\n\n")
    return 0


def _run(chosen: argparse.Namespace, more: tuple[str, ...], command: str) -> int:
    if chosen.jobs is not None and chosen.jobs < 1:
        raise GridError(f"--jobs {chosen.jobs}: it must be at least 1")
    variables = {}
    for text in chosen.set:
        name, mark, value = text.partition("=")
        if not mark:
            raise GridError(f"--set {text}: it must look like name=value")
        variables[name] = value
    # A profile may name an executor; without either the runs are made on this machine.
    executor = chosen.executor or (None if chosen.profile else LOCAL)
    session = Session(
        grid=chosen.grid,
        variables=variables,
        place=Place(executor=executor, profile=chosen.profile, jobs=chosen.jobs, more=more),
        choice=Choice(only=tuple(chosen.only), rerun=tuple(chosen.rerun), ignore_code=chosen.ignore_code),
        leave_out=chosen.without_missing,
        command=command,
    )
    return session.show() if chosen.dry_run else session.run()


def _parser() -> argparse.ArgumentParser:
    about = "Grids of notebook runs, and what they left."
    parser = argparse.ArgumentParser(prog="cdlm-lab", description=about)
    commands = parser.add_subparsers(dest="command", required=True)
    after = "What follows -- is handed on to Snakemake: -- --default-resources slurm_partition=gpu"
    run = commands.add_parser("run", help="run a grid, or go on with it", epilog=after)
    add = run.add_argument
    add("grid", help="the grid, a YAML file")
    add("--dry-run", "-n", action="store_true", help="only say what would be done, and why")
    add("--jobs", "-j", type=int, help="at most so many runs at once")
    add("--executor", help="local (what it is unless a profile says otherwise), slurm, kubernetes, ...")
    add("--profile", help="a folder with a profile of Snakemake")
    several = {"action": "extend", "nargs": "+", "default": []}
    add("--only", **several, metavar="RUN", help="these tasks or runs, and what they need")
    add("--rerun", **several, metavar="RUN", help="tasks or runs to make anew in any case")
    add("--ignore-code", action="store_true", help="keep finished runs though code changed since")
    add("--without-missing", action="store_true", help="leave out runs whose data are not here")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable of the grid")
    show = commands.add_parser("show", help="show what a run was, and how to repeat it")
    show.add_argument("folders", nargs="+", metavar="RUN", help="the folder of a run")
    show.add_argument("--html", metavar="FILE", help="write the whole run as one HTML page, without code")
    export = "write its tables (CSV, LaTeX) and figures (HTML, SVG, PNG)"
    show.add_argument("--export", metavar="FOLDER", help=export)
    apply = commands.add_parser(
        "apply",
        help="let a model answer each line of a file",
        epilog=_FORMS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    apply.add_argument("model", metavar="RUN_OR_NAME", help="a run folder, storyworld/coreference, ...")
    apply.add_argument("input", metavar="IN.jsonl", help="a JSON object on each line")
    apply.add_argument("output", metavar="OUT.jsonl", help="one answer on each line, in the same order")
    apply.add_argument("--system", default="", help="of a run with several systems")
    _add_mine(commands)
    return parser


def _add_mine(commands: argparse._SubParsersAction) -> None:
    mine = commands.add_parser("mine", help="find clusters of articles on one event in a pile of articles")
    add = mine.add_argument
    add("pile", metavar="PILE", help="JSON lines, CSV, Parquet, a folder of texts, a data set")
    add("clusters", metavar="CLUSTERS.jsonl", help="one cluster on each line; a corpus of the notebooks")
    add("--threshold", type=float, help="least cosine of two articles of a cluster (0.12)")
    add("--days", type=int, help="most days between two articles of a cluster (3)")
    add("--without-dates", action="store_true", help="compare all articles, whatever their dates")
    add("--duplicates", type=float, help="Jaccard index of words above which one is a copy (0.7)")
    add("--least", type=int, help="articles of a cluster (2)")
    add("--most", type=int, help="articles of a cluster; larger ones are divided in order of time (any)")
    add("--by-date", action="store_true", help="the last clusters are for validation and test")
    add("--apart", metavar="FILE.jsonl", help="clusters whose articles and dates are left out")
    add("--apart-splits", nargs="+", metavar="SPLIT", help="only the clusters of these splits")
    add("--parts", type=int, help="compare in so many tasks of Snakemake (1)")


if __name__ == "__main__":
    sys.exit(main())
