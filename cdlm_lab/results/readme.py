"""The tables of README.md and of the pages in data/results, written anew from the recorded runs.

    python -m cdlm_lab.results.readme README.md data/results/*.md            # writes them anew
    python -m cdlm_lab.results.readme README.md data/results/*.md --check    # says which are stale

What stands between `<!-- table NAME begin -->` and `<!-- table NAME end -->` is written anew, and all else
stays as it is, byte for byte. The recorded runs lie in data/results beside a README, or in its own folder. A
page there that shows `claims.svg` has that figure written anew as well.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cdlm_lab.data.files import replaced_file
from cdlm_lab.errors import print_any_sign
from cdlm_lab.parameters import path_argument
from cdlm_lab.results.claims_figure import claims_figure
from cdlm_lab.results.readme_tables import TABLES
from cdlm_lab.runs.report import RunError
from cdlm_lab.views.still_figure import figure_svg

RESULTS = Path("data") / "results"
FIGURE = "claims.svg"
COMMAND = ".venv/bin/python -m cdlm_lab.results.readme"
_MARKER = re.compile(rb"^[ \t]*<!--[ \t]*table[ \t]+(\S+)[ \t]+(\S+)[ \t]*-->[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedTable:
    """A table between two markers in a file."""

    name: str
    line: int  # line of its first marker, from 1
    start: int  # start, stop: byte offsets in the file of the text between the markers
    stop: int
    text: str  # the text between the markers, without line breaks around it


def marked_tables(file: Path, *, known: Collection[str]) -> list[MarkedTable]:
    """The tables with `known` names that are marked in a file, in order. Raises RunError, with the line, if
    the file cannot be read, a marker has an unknown name or word or lacks its counterpart, or tables are
    nested or repeated."""
    content = _content(file)
    tables: dict[str, MarkedTable] = {}
    begun, start, line = "", 0, 0
    for marker in _MARKER.finditer(content):
        name, word = (part.decode("utf-8", "replace") for part in marker.groups())
        here = content.count(b"\n", 0, marker.start()) + 1
        if word not in ("begin", "end"):
            raise RunError(f"{file}:{here}: table {name} is marked {word!r}; write begin or end")
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"
            raise RunError(f"{file}:{here}: there is no table {name!r}; {hint}")
        if (word == "begin") is bool(begun):
            what = f"table {begun} is not ended yet" if begun else f"table {name} is ended and has not begun"
            raise RunError(f"{file}:{here}: {what}; markers stand in pairs")
        if word == "begin":
            # the line break is part of the replaced text
            begun, start, line = name, marker.end() - marker.group(0).endswith(b"\r"), here
            continue
        if begun != name:
            raise RunError(f"{file}:{here}: table {begun} has begun, but {name} is ended here")
        if name in tables:
            raise RunError(f"{file}:{here}: table {name} is marked a second time; each can stand once")
        try:
            lines = content[start : marker.start()].decode("utf-8").splitlines()
        except UnicodeDecodeError:
            raise RunError(f"{file}:{line}: table {name} is not text in UTF-8") from None
        text = "\n".join(lines).strip("\n")
        tables[name] = MarkedTable(name=name, line=line, start=start, stop=marker.start(), text=text)
        begun = ""
    if begun:
        raise RunError(f"{file}:{line}: table {begun} has no end; add its second marker")
    return list(tables.values())


def write_tables(file: Path, texts: Mapping[str, str], *, known: Collection[str]) -> list[str]:
    """Write texts, without line breaks around them, between the markers of a file, atomically; returns the
    names of changed tables. Raises RunError: a marker is unpaired or of no known table, or a text is
    missing."""
    content, tables = _content(file), marked_tables(file, known=known)
    if lacking := [one for one in tables if one.name not in texts]:
        raise RunError(f"{file}:{lacking[0].line}: there is nothing to put into table {lacking[0].name}")
    line_break = b"\r\n" if b"\r\n" in content else b"\n"
    changed, parts, at = [], [], 0
    for one in tables:
        # an empty line on both sides: without it, GitHub shows a table that follows a comment as text
        put = (b"\n\n%b\n\n" % texts[one.name].encode("utf-8")).replace(b"\n", line_break)
        if content[one.start : one.stop] != put:
            changed.append(one.name)
        parts += [content[at : one.start], put]
        at = one.stop
    if changed:
        with replaced_file(file, binary=True) as stream:
            stream.write(b"".join([*parts, content[at:]]))
    return changed


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise RunError(f"{file} cannot be read ({error.strerror or error}); check the path") from None


def stale_tables(readme: Path) -> list[str]:
    """A message for each marked table that differs from the recorded runs; [] if all are up to date. Raises
    RunError if a marker is unpaired or of no known table, or a report is missing."""
    texts = _texts(readme)
    stale = [
        f"{readme}:{one.line}: table {one.name} is not what {RESULTS} says; write it with: {COMMAND} {readme}"
        for one in marked_tables(readme, known=TABLES)
        if one.text != texts[one.name]
    ]
    if shows_figure(readme) and _content(readme.with_name(FIGURE)).decode() != _figure(readme):
        stale.append(f"{readme}: {FIGURE} is not what {RESULTS} says; write it with: {COMMAND} {readme}")
    return stale


def write_readme(readme: Path) -> list[str]:
    """Rewrite all marked tables and the figure, atomically; returns the names of those that changed."""
    changed, figure = write_tables(readme, _texts(readme), known=TABLES), readme.with_name(FIGURE)
    if shows_figure(readme):
        drawn = _figure(readme)
        if not figure.is_file() or figure.read_text(encoding="utf-8") != drawn:
            with replaced_file(figure) as opened:
                opened.write(drawn)
            changed.append(FIGURE)
    return changed


def shows_figure(readme: Path) -> bool:
    """Whether a page shows the figure of the claims, which lies beside it."""
    return f"({FIGURE})".encode() in _content(readme)


def _figure(readme: Path) -> str:
    return figure_svg(claims_figure(readme.resolve().parent).to_dict())


def _texts(readme: Path) -> dict[str, str]:
    """Name -> text, only for the tables that are marked: some others have no recorded runs yet."""
    beside = readme.resolve().parent
    results = beside / RESULTS if (beside / RESULTS).is_dir() or not beside.match(str(RESULTS)) else beside
    texts = {}
    for one in marked_tables(readme, known=TABLES):
        try:
            texts[one.name] = TABLES[one.name](results).markdown()
        except (LookupError, TypeError, ValueError) as error:
            raise RunError(
                f"{readme}:{one.line}: table {one.name} cannot be made: its file in {results} is not as its "
                f"notebook or benchmark writes it ({error!r})"
            ) from None
    return texts


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
