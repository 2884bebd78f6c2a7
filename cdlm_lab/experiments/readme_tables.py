"""The tables of README.md, made from the reports in data/results and from nothing else.

    python -m cdlm_lab.experiments.readme_tables README.md            # writes them anew
    python -m cdlm_lab.experiments.readme_tables README.md --check    # says which are stale, changes nothing

They stand between markers (see `marked_tables`), and data/results lies beside the README. `TABLES` has the
names that a marker can have.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cdlm_lab.experiments.benchmark_tables import BENCHMARK_TABLES
from cdlm_lab.experiments.marked_tables import marked_tables, write_tables
from cdlm_lab.experiments.readme_joint import JOINT_TABLES
from cdlm_lab.experiments.readme_numbers import RUN_TABLES
from cdlm_lab.report import RunError
from cdlm_lab.widgets.result_table import ResultTable, result_table_markdown

RESULTS = Path("data") / "results"
TABLES: Mapping[str, Callable[[Path], ResultTable]] = {**RUN_TABLES, **JOINT_TABLES, **BENCHMARK_TABLES}
COMMAND = ".venv/bin/python -m cdlm_lab.experiments.readme_tables"


def stale_tables(readme: Path) -> list[str]:
    """What to say of each marked table that is not what the recorded runs make of it; none if all are.

    Raises:
        RunError: as of `marked_tables`, or a report is missing.
    """
    texts = _texts(readme)
    return [
        f"{readme}:{one.line}: table {one.name} is not what {RESULTS} says; write it with: {COMMAND} {readme}"
        for one in marked_tables(readme, known=TABLES)
        if one.text != texts[one.name]
    ]


def write_readme(readme: Path) -> list[str]:
    """Write all marked tables anew, in one go; names of those that changed. Errors as of `stale_tables`."""
    return write_tables(readme, _texts(readme), known=TABLES)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 0 = all is well, 1 = tables are stale, 2 = something is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("readme", type=Path, help="the file with the markers")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a table is stale")
    given = parser.parse_args(arguments)
    try:
        if given.check:
            stale = stale_tables(given.readme)
            print("\n".join(stale) or "all tables are what the recorded runs say")
            return 1 if stale else 0
        changed = write_readme(given.readme)
    except RunError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"changed: {', '.join(changed)}" if changed else "nothing to change")
    return 0


def _texts(readme: Path) -> dict[str, str]:
    """Of the tables that are marked, not of all: some have no recorded runs yet."""
    results = readme.resolve().parent / RESULTS
    texts = {}
    for one in marked_tables(readme, known=TABLES):
        try:
            texts[one.name] = result_table_markdown(TABLES[one.name](results))
        except (LookupError, TypeError, ValueError) as error:
            raise RunError(
                f"{readme}:{one.line}: table {one.name} cannot be made: its file in {results} is not as its "
                f"notebook or benchmark writes it ({error!r})"
            ) from None
    return texts


if __name__ == "__main__":
    sys.exit(main())
