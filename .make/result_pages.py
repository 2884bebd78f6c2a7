"""The tables of README.md and of the pages in data/results, written anew from the recorded runs.

    .venv/bin/python .make/result_pages.py README.md data/results/*.md            # writes them anew
    .venv/bin/python .make/result_pages.py README.md data/results/*.md --check    # says which are stale

What stands between `<!-- table NAME begin -->` and `<!-- table NAME end -->` is written anew, and all else
stays as it is. The recorded runs lie in data/results beside a README, or in its own folder. A page there that
shows `claims.svg` has that figure written anew as well.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from page_tables import table_named

from cdlm_lab.data.files import replaced_file
from cdlm_lab.errors import print_any_sign
from cdlm_lab.parameters import path_argument
from cdlm_lab.results.claims_figure import claims_figure
from cdlm_lab.runs.report import RunError
from cdlm_lab.views.still_figure import figure_svg

RESULTS = Path("data") / "results"
FIGURE = "claims.svg"
COMMAND = ".venv/bin/python .make/result_pages.py"
_TABLE = r"(^<!-- table (\S+) begin -->[ \t]*\r?\n)(?:(?!^<!-- table ).)*(^<!-- table \2 end -->)"
_TABLE = re.compile(_TABLE, re.DOTALL | re.MULTILINE)
_MARKER = re.compile(r"^<!-- table (\S+)[^>]*-->", re.MULTILINE)


def tables_shown(page: Path) -> list[str]:
    """The names of the tables in a page, in order. Raises RunError if it is no text in UTF-8, or a marker
    has no counterpart."""
    text = _content(page)
    names = [match[2] for match in _TABLE.finditer(text)]
    if (left := _MARKER.search(_TABLE.sub("", text))) is not None:
        begin, end = (f"<!-- table {left[1]} {word} -->" for word in ("begin", "end"))
        raise RunError(f"{page}: {left[0]} stands alone; a table stands between {begin} and {end}")
    return names


def made_anew(page: Path) -> tuple[str, dict[str, int]]:
    """The text of a page with all its tables as the recorded runs say, and the names of those that differ,
    each with its line."""
    text, differ = _content(page), {}
    tables = {name: _table(page, name) for name in tables_shown(page)}

    def put(match: re.Match[str]) -> str:
        # an empty line on both sides: without it, GitHub shows a table that follows a comment as text
        new = f"{match[1]}\n{tables[match[2]]}\n\n{match[3]}"
        if "\r\n" in match[1]:
            new = new.replace("\r\n", "\n").replace("\n", "\r\n")
        if new != match[0]:
            differ[match[2]] = text.count("\n", 0, match.start()) + 1
        return new

    return _TABLE.sub(put, text), differ


def _table(page: Path, name: str) -> str:
    beside = page.resolve().parent
    results = beside / RESULTS if (beside / RESULTS).is_dir() or not beside.match(str(RESULTS)) else beside
    try:
        return table_named(results, name).markdown()
    except (LookupError, TypeError, ValueError) as error:
        raise RunError(
            f"{page}: table {name} cannot be made: its file in {results} is not as its notebook or benchmark "
            f"writes it ({error!r})"
        ) from None


def _content(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")  # with line ends as they are
    except OSError as error:
        raise RunError(f"{file} cannot be read ({error.strerror or error}); check the path") from None
    except UnicodeDecodeError:
        raise RunError(f"{file} is not text in UTF-8; save it so") from None


def stale_tables(page: Path) -> list[str]:
    """A message for each table, and the figure, of a page that differs from the recorded runs; [] if all are
    up to date. Raises RunError if a marker stands alone, a table is not known, or a report is missing."""
    what = f"is not what {RESULTS} says; write it with: {COMMAND} {page}"
    stale = [f"{page}:{line}: table {name} {what}" for name, line in made_anew(page)[1].items()]
    if shows_figure(page) and _content(page.with_name(FIGURE)) != _figure(page):
        stale.append(f"{page}: {FIGURE} {what}")
    return stale


def write_readme(page: Path) -> list[str]:
    """Rewrite all tables of a page and its figure, atomically; returns the names of those that changed."""
    text, differ = made_anew(page)
    written, figure = {page: text} if differ else {}, page.with_name(FIGURE)
    if shows_figure(page) and not (figure.is_file() and _content(figure) == _figure(page)):
        written[figure] = _figure(page)
    for file, content in written.items():
        with replaced_file(file, binary=True) as stream:
            stream.write(content.encode("utf-8"))
    return [*differ, *([FIGURE] if figure in written else [])]


def shows_figure(page: Path) -> bool:
    """Whether a page shows the figure of the claims, which lies beside it."""
    return f"({FIGURE})" in _content(page)


def _figure(page: Path) -> str:
    return figure_svg(claims_figure(page.resolve().parent).to_dict())


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns 0 if all is well, 1 if tables are stale, 2 after an error."""
    print_any_sign()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "readmes", type=path_argument, nargs="+", metavar="README", help="a file with markers"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a table is stale")
    given = parser.parse_args(arguments)
    try:
        if given.check:
            stale = [line for readme in given.readmes for line in stale_tables(readme)]
            print("\n".join(stale) or "all tables are what the recorded runs say")
            return 1 if stale else 0
        changed = [name for readme in given.readmes for name in write_readme(readme)]
    except RunError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"changed: {', '.join(changed)}" if changed else "nothing to change")
    return 0


if __name__ == "__main__":
    sys.exit(main())
