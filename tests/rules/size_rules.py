"""Limits of size: files in a folder, lines of files, of functions and in total, duplicated lines.

Exceptions, where the code is above a limit, are in ratchet.json with their current number, which may only
shrink: a test fails if the code is above it, and warns if it is well below; `python tests/rules/lines.py
--lower` lowers it.
"""

import ast
import json
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path

from house_rules import DEFINITION, Module, functions, imports
from notebook_rules import imported_names, read_notebook

ROOT = Path(__file__).resolve().parents[2]
RATCHET = Path(__file__).with_name("ratchet.json")
# Name of a rule -> the limit of what it counts, unless ratchet.json has an exception.
LIMITS = {
    "files in a folder": 15,
    "lines of a file": 700,
    "lines of a function": 50,
    "lines": {"cdlm_lab": 33_000, "tests": 28_000},
    "names that a notebook imports": 6,
    "places with equal lines": 0,
    "folders without a folder of tests": 0,
    "modules that no test imports": 0,
    "variables with a name that fits anything": 0,
    "docstrings that send the reader to another": 0,
}
WHAT_TO_DO = {
    "files in a folder": "merge files that are one idea, or make a folder for those that belong together",
    "lines of a file": "split it at an idea",
    "lines of a function": "give its steps functions with names",
    "lines": "remove what is needless or written twice; where lines are: python tests/rules/lines.py",
    "names that a notebook imports": "let the experiment's module do what takes more names",
    "places with equal lines": "write it once, in the lower of the two places",
    "folders without a folder of tests": "put the tests of cdlm_lab/x into tests/x",
    "modules that no test imports": "test it by its own names",
    "variables with a name that fits anything": "say what it holds",
    "docstrings that send the reader to another": "say the thing itself",
}
EQUAL = 12  # most consecutive equal lines that two places may share
SLACK = 0.95  # an exception can be lowered if the count is below this proportion of it
SAYS_LITTLE = {"told", "said", "found", "asked", "there"}
IMPORT = re.compile(r"^[ ]*(?:from [\w.]+ )?import (?:\([^)]*\)|[^(\n]*)$", re.MULTILINE)
WORD = re.compile(r"\w")
ELSEWHERE = re.compile(r"\b(as of|errors as|raises as|arguments as) `", re.IGNORECASE)


# ---- what is counted: name -> number ----


def files_in_folders(root: Path = ROOT) -> dict[str, int]:
    """Return the number of Python files in each folder, including __init__.py."""
    paths = [path for top in ("cdlm_lab", "tests") for path in (root / top).rglob("*.py")]
    return dict(sorted(Counter(path.parent.relative_to(root).as_posix() for path in paths).items()))


def lines_of_files(modules: Iterable[Module]) -> dict[str, int]:
    """Return the number of lines of each file, including docstrings and blank lines."""
    return {module.path: len(module.source.splitlines()) for module in modules}


def lines_of_functions(modules: Iterable[Module]) -> dict[str, int]:
    """Return file:function -> lines; of functions with the same name, the longest counts."""
    counted: Counter[str] = Counter()
    for module in modules:
        for node in functions(module):
            name = f"{module.path}:{node.name}"
            counted[name] = max(counted[name], node.end_lineno - node.lineno + 1)
    return dict(counted)


def names_in_notebooks(root: Path = ROOT) -> dict[str, int]:
    """Return the number of names that each notebook imports from the library."""
    paths = sorted((root / "notebooks").glob("*.ipynb"))
    return {f"notebooks/{path.name}": len(imported_names(read_notebook(path))) for path in paths}


def lines_of_folders(modules: Iterable[Module]) -> dict[str, int]:
    """Return the number of lines in each folder and below it."""
    counted: Counter[str] = Counter()
    for path, lines in lines_of_files(modules).items():
        for folder in Path(path).parents[:-1]:
            counted[folder.as_posix()] += lines
    return dict(sorted(counted.items()))


def folders_without_tests(root: Path = ROOT) -> list[str]:
    """Return the folders of the library with modules, for which there is no folder of tests."""
    library, tests = root / "cdlm_lab", root / "tests"
    modules = [path for path in library.rglob("*.py") if path.name != "__init__.py"]
    folders = {path.parent.relative_to(library) for path in modules if path.parent != library}
    tested = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    return sorted(f"cdlm_lab/{folder}" for folder in folders - tested)


def untested(modules: Iterable[Module], tests: Iterable[Module]) -> list[str]:
    """Return modules that no test imports, wholly or in part; packages are not considered."""
    imported = {name for test in tests for _, name in imports(test)}
    return [module.name for module in modules if not module.package and module.name not in imported]


def variables_that_say_little(modules: Iterable[Module]) -> Iterator[str]:
    """Yield variables and arguments whose name is in SAYS_LITTLE."""
    for module in modules:
        for node in module.nodes:
            stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            name = node.id if stored else node.arg if isinstance(node, ast.arg) else None
            if name in SAYS_LITTLE:
                yield f"{module.path}:{node.lineno}: {name}"


def docstrings_that_refer(modules: Iterable[Module]) -> Iterator[str]:
    """Yield docstrings that refer the reader to another docstring."""
    for module in modules:
        for node in module.nodes:
            text = ast.get_docstring(node) if isinstance(node, DEFINITION | ast.Module) else None
            if text and (match := ELSEWHERE.search(" ".join(text.split()))):
                yield f"{module.path}:{getattr(node, 'lineno', 1)}: '{match[0]}...'"


# ---- equal lines ----


def code_lines(module: Module) -> list[tuple[int, str]]:
    """Return (number, text) of all lines, unindented, without comments, imports and lone brackets."""
    source = IMPORT.sub(lambda match: "\n" * match[0].count("\n"), module.source)
    lines = ((number, line.strip()) for number, line in enumerate(source.splitlines(), start=1))
    return [(number, line) for number, line in lines if WORD.search(line) and not line.startswith("#")]


def equal_places(modules: Iterable[Module], *, most: int = EQUAL) -> list[str]:
    """Return pairs of places that share more than `most` consecutive equal lines, each pair once."""
    texts = [(module.path, code_lines(module)) for module in modules]
    numbers: dict[str, int] = {}
    seen: defaultdict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
    for file, (_, lines) in enumerate(texts):
        coded = [numbers.setdefault(line, len(numbers)) for _, line in lines]
        for start, window in enumerate(zip(*(coded[shift:] for shift in range(most + 1)), strict=False)):
            seen[window].append((file, start))
    pairs = {pair for same in seen.values() if len(same) > 1 for pair in combinations(same, 2)}
    places = []
    for (file, start), (other, at) in sorted(pairs):
        # Skip pairs that continue a pair one line earlier, and places that overlap with themselves.
        if ((file, start - 1), (other, at - 1)) in pairs or (file == other and at - start <= most):
            continue
        length = most + 1
        while ((file, start + length - most), (other, at + length - most)) in pairs:
            length += 1
        (path, lines), (other_path, other_lines) = texts[file], texts[other]
        places.append(f"{path}:{lines[start][0]} and {other_path}:{other_lines[at][0]} share {length} lines")
    return places


# Rule -> function that lists all places that it counts, for the message.
PLACES: dict[str, Callable[[list[Module], list[Module]], list[str]]] = {
    "places with equal lines": lambda library, tests: equal_places(library) + equal_places(tests),
    "folders without a folder of tests": lambda *_: folders_without_tests(),
    "modules that no test imports": untested,
    "variables with a name that fits anything": lambda library, _: [*variables_that_say_little(library)],
    "docstrings that send the reader to another": lambda library, _: [*docstrings_that_refer(library)],
}


def count_all(library: list[Module], tests: list[Module]) -> dict[str, dict[str, int]]:
    """Return rule -> name -> the number that LIMITS restricts."""
    whole = {**lines_of_folders(library), **lines_of_folders(tests)}
    return {
        "files in a folder": files_in_folders(),
        "lines of a file": lines_of_files([*library, *tests]),
        "lines of a function": lines_of_functions([*library, *tests]),
        "names that a notebook imports": names_in_notebooks(),
        "lines": {top: whole[top] for top in LIMITS["lines"]},
        **{rule: {"all": len(places(library, tests))} for rule, places in PLACES.items()},
    }


# ---- the ratchet ----


def read_ratchet() -> dict[str, dict[str, int]]:
    """Read the exceptions: rule -> name -> the number that is tolerated."""
    return json.loads(RATCHET.read_text(encoding="utf-8"))


def limit_of(rule: str, name: str) -> int:
    limit = LIMITS[rule]
    return limit[name] if isinstance(limit, dict) else limit


def compare(rule: str, counted: Mapping[str, int], borne: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Return for one rule (what exceeds its limit, which exceptions can be lowered or removed)."""
    above, lower = [], []
    for name, number in counted.items():
        limit = limit_of(rule, name)
        allowed = max(borne.get(name, limit), limit)
        if number > allowed:
            above.append(f"{name}: {number:,} {rule}, at most {allowed:,}; {WHAT_TO_DO[rule]}")
        elif number < SLACK * borne.get(name, 0):
            lower.append(f"{rule}: {name}: {borne[name]:,} can be {max(number, limit):,}")
    return above, lower + [f"{rule}: {name} is no more" for name in borne if name not in counted]


def say_lower(lower: list[str]) -> None:
    """Warn, and do not fail: others may need the exception until their work is merged."""
    if lower:
        warnings.warn(f"{'; '.join(lower)}. Do it: python tests/rules/lines.py --lower", stacklevel=2)


def lowered(counted: Mapping[str, Mapping[str, int]], borne: Mapping[str, Mapping[str, int]]) -> dict:
    """Return the exceptions, lowered to the current numbers; those no longer needed are removed."""
    kept: dict[str, dict[str, int]] = {}
    for rule, names in borne.items():
        for name, number in names.items():
            now = min(number, counted[rule].get(name, 0))
            if now > limit_of(rule, name):
                kept.setdefault(rule, {})[name] = now
    return kept
