"""`cdlm-lab run grid.yaml` and `cdlm-lab show runs/x`.

Exit codes: 0 all is done, 1 a run failed, 2 nothing was started since something is wrong or missing, 130 and
143 it was stopped (Ctrl-C, SIGTERM).
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from collections.abc import Sequence

from cdlm_lab.batch import session
from cdlm_lab.batch.engine import LOCAL, Place
from cdlm_lab.batch.marked_yaml import GridError
from cdlm_lab.batch.plan import Choice
from cdlm_lab.batch.run_card import run_card
from cdlm_lab.data.files import DataError
from cdlm_lab.report import RunError

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
