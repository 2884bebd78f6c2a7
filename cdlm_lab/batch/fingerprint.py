"""What the result of a run depends on, and what of it changed since a run was made.

A fingerprint is plain JSON:

    {"notebook": sha256 of its code cells, "parameters": {name: value}, "code": {file: sha256},
     "data": {name: checksum, or None = not known here}, "runs": {name: when that run was finished}}

`code` holds the modules of cdlm_lab that the notebook imports, and those that they import, wherever in the
file the import stands, with the other files of their folders. So a change to the tagger repeats no run of
coreference.
"""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import cdlm_lab
from cdlm_lab.data.files import DataError, sha256_of_file
from cdlm_lab.parameters import BY_HOW_MANY
from cdlm_lab.report.values import write_json

STAMP_FILE = ".grid.json"  # in the folder of a run; `open_run` passes over names that begin with a dot
_LIBRARY = Path(cdlm_lab.__file__).parent
_DIGITS = 16  # of a checksum of code
_SHOWN = 3  # files of code that a reason names


def code_of(sources: Sequence[str]) -> dict[str, str]:
    """file -> checksum of the parts of cdlm_lab that cells of code import, directly or not.

    Cells that are not plain Python (IPython magics) could import anything: then it is the whole library.
    """
    return dict(_code_of(tuple(sources)))


@functools.cache  # the runs of a task have the same
def _code_of(sources: tuple[str, ...]) -> dict[str, str]:
    try:
        wanted = [name for source in sources for name in _imports(ast.parse(source), "")]
    except SyntaxError:
        return checksums_of(sorted(str(p.relative_to(_LIBRARY.parent)) for p in _LIBRARY.rglob("*.py")))
    reached: set[Path] = set()
    while wanted:
        for path in _files(wanted.pop()):
            if path not in reached:
                reached.add(path)
                wanted += _imports_of(path)
    others = {
        path
        for folder in {path.parent for path in reached}
        for path in folder.iterdir()
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    return checksums_of(sorted(str(path.relative_to(_LIBRARY.parent)) for path in reached | others))


def checksums_of(files: Sequence[str]) -> dict[str, str]:
    """file of the library -> the beginning of its SHA-256; "" for one that is gone."""
    found = {}
    for file in files:
        try:
            found[file] = sha256_of_file(_LIBRARY.parent / file)[:_DIGITS]
        except DataError:
            found[file] = ""
    return found


def changes(old: Mapping[str, Any], new: Mapping[str, Any], *, ignore_code: bool = False) -> list[str]:
    """What differs between two fingerprints, in words; [] if nothing does.

    Args:
        old: of a run that was made.
        new: of the run as it would be made now.
        ignore_code: changes to notebook and library do not count.
    """
    found = _changed_parameters(old["parameters"], new["parameters"])
    if not ignore_code:
        if old["notebook"] not in (None, new["notebook"]):
            found.append("the notebook's code changed")
        if old["code"] is not None:
            found += _changed_code(old["code"], new["code"])
    for name in sorted(old["data"].keys() | new["data"].keys()):
        before, now = old["data"].get(name), new["data"].get(name)
        if name not in new["data"]:
            continue  # what is no longer asked for does no harm
        if before is not None and now is not None and before != now:
            found.append(f"data: {name} changed")
    for name, finished in new["runs"].items():
        if name not in old["runs"]:
            found.append(f"it reads {name} now")
        elif finished is not None and old["runs"][name] not in (None, finished):
            found.append(f"{name}, which it reads, was made anew")
    return found


def read_stamp(folder: Path) -> dict[str, Any] | None:
    """What the grid noted in a run folder: {"fingerprint", "began_with", "notebook", "grid", "name"}; None if
    there is nothing that can be read."""
    try:
        stamp = json.loads((folder / STAMP_FILE).read_text(encoding="utf-8"))
        fingerprint = stamp["fingerprint"]
        complete = all(part in fingerprint for part in ("notebook", "parameters", "code", "data", "runs"))
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return stamp if complete else None


def write_stamp(folder: Path, stamp: Mapping[str, Any]) -> None:
    """Note in a run folder what the run is made of; whole or not at all."""
    write_json(folder / STAMP_FILE, stamp)


def _changed_parameters(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    found = []
    for name in sorted((old.keys() | new.keys()) - set(BY_HOW_MANY)):
        before, now = (json.dumps(part[name]) if name in part else "(absent)" for part in (old, new))
        if before != now:
            found.append(f"parameter {name} {_cut(before)} -> {_cut(now)}")
    return found


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _changed_code(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    files = sorted(file for file in old.keys() | new.keys() if old.get(file, "") != new.get(file, ""))
    if not files:
        return []
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return [f"code: {', '.join(files[:_SHOWN])}{more} changed"]


@functools.cache
def _imports_of(path: Path) -> tuple[str, ...]:
    if path.suffix != ".py":
        return ()
    parts = path.relative_to(_LIBRARY.parent).with_suffix("").parts
    package = ".".join(parts[:-1])  # of a module the one it is in, of an __init__ itself
    return tuple(_imports(ast.parse(path.read_text(encoding="utf-8")), package))


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Dotted names of whatever of cdlm_lab is imported anywhere in a tree; `package` holds relative ones."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = node.module or ""
            if node.level:
                kept = package.split(".")[: len(package.split(".")) - node.level + 1]
                start = ".".join([*kept, *([start] if start else [])])
            names = [start, *(f"{start}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == _LIBRARY.name)


def _files(name: str) -> Iterator[Path]:
    """The files that importing a dotted name reads: the module, and the packages it lies in."""
    place = _LIBRARY.parent
    for part in name.split("."):
        place = place / part
        if (place / "__init__.py").is_file():
            yield place / "__init__.py"
        elif place.with_suffix(".py").is_file():
            yield place.with_suffix(".py")
