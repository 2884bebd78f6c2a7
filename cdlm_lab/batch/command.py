"""The command line `cdlm-lab`: `run grid.yaml`; `show runs/x`, the card of a run with its parameters, data,
results and the command that repeats it; `apply`, `mine`, `convert`, and `notebooks`, which copies them.

Exit codes: 0 everything is done; 1 a run failed; 2 nothing was started because something is wrong or missing;
130 and 143 stopped (Ctrl-C, SIGTERM).
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cdlm_lab.batch.convert import add_convert
from cdlm_lab.batch.engine import LOCAL, Place
from cdlm_lab.batch.grid import GridError
from cdlm_lab.batch.plan import Choice
from cdlm_lab.batch.session import WRONG, Session
from cdlm_lab.data.files import DataError, replaced_file, shipped_path
from cdlm_lab.errors import print_any_sign
from cdlm_lab.parameters import ParameterError, local_path
from cdlm_lab.runs.card import run_card
from cdlm_lab.runs.report import RunError

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
_OF_A_CLONE = re.compile(r"(?:!\[[^\]]*|\[(?P<words>[^\]]*))\]\(\.\./data/[^)]*\)")  # pictures and links
_PATHS = ("grid", "profile", "folders", "html", "export")  # arguments that are paths
_PATHS += ("model", "input", "output", "pile", "clusters", "apart")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of `cdlm-lab` and return its exit code."""
    print_any_sign()
    given = list(sys.argv[1:] if arguments is None else arguments)
    own, more = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, [])
    chosen = _parser().parse_args(own)
    chosen.more, chosen.written = tuple(more), shlex.join(["cdlm-lab", *given])
    try:
        for name in _PATHS:  # `~` and variables are replaced, addresses refused
            if path := getattr(chosen, name, None):
                several = isinstance(path, list)
                setattr(
                    chosen,
                    name,
                    [local_path(one, name) for one in path] if several else local_path(path, name),
                )
        return chosen.do(chosen)
    except (GridError, RunError, DataError, ParameterError) as error:
        print(error, file=sys.stderr)
    except KeyboardInterrupt as stopped:  # but while runs are made, `session` handles it
        print(str(stopped) or "stopped", file=sys.stderr)
        return 128 + signal.SIGINT
    except OSError as error:
        print(f"{error.filename or 'cdlm-lab'}: {error.strerror or error}", file=sys.stderr)
    return WRONG


def _show(chosen: argparse.Namespace) -> int:
    ways = {"--html": chosen.html, "--export": chosen.export}
    if not any(ways.values()):
        print("\n\n".join(run_card(folder) for folder in chosen.folders))
        return 0
    if len(chosen.folders) > 1:
        raise RunError("--html and --export take one run; give one folder")
    run_card(chosen.folders[0])  # raises RunError if it holds no run
    # In a separate process, as the names of systems come from modules that import torch.
    given = [part for way, path in ways.items() if path for part in (way, path)]
    return subprocess.run([sys.executable, "-m", "cdlm_lab.results.page", *chosen.folders, *given]).returncode


def _apply(chosen: argparse.Namespace) -> int:
    from cdlm_lab.apply.lines import apply_lines  # imports torch, which takes seconds

    try:
        how = {"system": chosen.system, "batch": chosen.batch, "shard": chosen.shard}
        applied = apply_lines(chosen.model, chosen.input, chosen.output, **how)
    except ValueError as error:
        raise RunError(str(error)) from None
    print(f"{applied.file}: {applied.lines:,} {'line' if applied.lines == 1 else 'lines'}")
    if applied.foreign:
        foreign = f"{applied.foreign:,} of them: foreign text, unlike all that the model was trained on"
        print(f"{foreign}; the answers to these mean little", file=sys.stderr)
    if applied.refused:
        print(f"{applied.refused:,} of them have an error in place of an answer", file=sys.stderr)
    return 1 if applied.refused else 0


def _notebooks(chosen: argparse.Namespace) -> int:
    """Copy the notebooks, with their grids and parameter files, without what only a clone has."""
    folder = Path(chosen.folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder} is there and not empty; name a new folder, so that nothing is replaced")
    leave = shutil.ignore_patterns("runs", ".*", "__pycache__", "*.pyc")
    shutil.copytree(shipped_path("notebooks"), folder, ignore=leave, dirs_exist_ok=True)
    for file in folder.glob("*.ipynb"):
        file.write_text(_OF_A_CLONE.sub(r"\g<words>", file.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{folder}: {len(list(folder.glob('*.ipynb')))} notebooks; open them with: jupyter lab {folder}")
    return 0


def _mine(chosen: argparse.Namespace) -> int:
    from cdlm_lab.mining.mine import in_words, mine  # imports scikit-learn, which takes a second
    from cdlm_lab.mining.view import pile_page, pile_text

    names = ("apart", "apart_splits", "parts", "threshold", "days", "duplicates", "least", "most", "by_date")
    given = {name: getattr(chosen, name) for name in names if getattr(chosen, name) is not None}
    if chosen.without_dates:
        given["dates"] = False
    try:
        mined = mine(chosen.pile, chosen.clusters, more=chosen.more, **given)
    except ParameterError as error:
        raise RunError(str(error)) from None
    page = Path(chosen.clusters).with_suffix(".html")
    with replaced_file(page) as file:
        file.write(pile_page(mined, title=f"{chosen.pile}: the clusters of {chosen.clusters}"))
    end = f"{chosen.clusters}: the clusters; {page}: this, as a figure"
    print("", pile_text(mined), in_words(mined), end, sep="\n\n")
    return 0


def _run(chosen: argparse.Namespace) -> int:
    if chosen.jobs is not None and chosen.jobs < 1:
        raise GridError(f"--jobs {chosen.jobs}: it must be at least 1")
    if wrong := [text for text in chosen.set if "=" not in text]:
        raise GridError(f"--set {wrong[0]}: it must look like name=value")
    # A profile may name an executor; without either the runs are made on this machine.
    executor = chosen.executor or (None if chosen.profile else LOCAL)
    session = Session(
        grid=chosen.grid,
        variables=dict(text.split("=", 1) for text in chosen.set),
        place=Place(executor=executor, profile=chosen.profile, jobs=chosen.jobs, more=chosen.more),
        choice=Choice(only=tuple(chosen.only), rerun=tuple(chosen.rerun), ignore_code=chosen.ignore_code),
        leave_out=chosen.without_missing,
        command=chosen.written,
    )
    return session.show() if chosen.dry_run else session.run()


def _parser() -> argparse.ArgumentParser:
    about = "Grids of notebook runs, and what they left."
    parser = argparse.ArgumentParser(prog="cdlm-lab", description=about)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_run(commands)
    show = commands.add_parser("show", help="show what a run was, and how to repeat it")
    show.set_defaults(do=_show)
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
    apply.set_defaults(do=_apply)
    apply.add_argument("model", metavar="RUN_OR_NAME", help="a run folder, storyworld/coreference, ...")
    apply.add_argument("input", metavar="IN.jsonl", help="a JSON object on each line")
    apply.add_argument("output", metavar="OUT.jsonl", help="one answer on each line, in the same order")
    apply.add_argument("--system", default="", help="of a run with several systems")
    apply.add_argument("--batch", type=int, default=32, metavar="N", help="lines answered together (32)")
    apply.add_argument(
        "--shard",
        default="",
        metavar="I/N",
        help="only the I-th of N shares of the lines, from 1; answers go to OUT-I-of-N.jsonl",
    )
    _add_mine(commands)
    add_convert(commands)
    notebooks = commands.add_parser("notebooks", help="copy the notebooks into a folder, to work with")
    notebooks.set_defaults(do=_notebooks)
    notebooks.add_argument("folder", metavar="FOLDER", help="a new folder, or an empty one")
    return parser


def _add_run(commands: argparse._SubParsersAction) -> None:
    after = "What follows -- is handed on to Snakemake: -- --default-resources slurm_partition=gpu"
    run = commands.add_parser("run", help="run a grid, or go on with it", epilog=after)
    run.set_defaults(do=_run)
    add = run.add_argument
    add("grid", help="the grid, a YAML file")
    add("--dry-run", "-n", action="store_true", help="only say what would be done, and why")
    add("--jobs", "-j", type=int, help="at most so many runs at once")
    add("--executor", help="local (what it is unless a profile says otherwise), slurm, kubernetes, ...")
    add("--profile", help="a folder with a profile of Snakemake")
    several = {"action": "extend", "nargs": "+", "default": []}
    add("--only", **several, metavar="RUN", help="these tasks or runs, and what they need")
    add("--rerun", **several, metavar="RUN", help="tasks or runs to make anew in any case")
    add(
        "--ignore-code", action="store_true", help="keep finished runs though what computes has a new version"
    )
    add("--without-missing", action="store_true", help="leave out runs whose data are not here")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable of the grid")


def _add_mine(commands: argparse._SubParsersAction) -> None:
    mine = commands.add_parser("mine", help="find clusters of articles on one event in a pile of articles")
    mine.set_defaults(do=_mine)
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
