"""What the house is measured by, and rules that neither ruff nor import-linter has."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EQUAL = 12  # most consecutive equal lines that two places may share
UNSAFE_SWITCHES = ("trust_remote_code", "allow_pickle")
VAGUE = {"util", "utils", "utility", "utilities", "helper", "helpers", "manager", "managers", "handler"}
# Vague as first word only: `peak_memory_of_process` is specific, `process_batch` and `BaseModel` are not.
VAGUE_FIRST = {"process", "handle", "manage", "base"}
DICTATED = {"LogHandler"}  # by Snakemake
AT_IMPORT = r"manual_seed$|random\.seed$|cuda\.is_available$|^os\.environ$|^os\.getenv$"
DEFINITION = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
IMPORT = re.compile(r"^[ ]*(?:from [\w.]+ )?import (?:\([^)]*\)|[^(\n]*)$", re.MULTILINE)


@dataclass(frozen=True)
class Module:
    """One source file; `name`: dotted name."""

    name: str
    source: str
    path: str = ""

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def imports(self) -> frozenset[str]:
        """The dotted names of all imports anywhere in the module, by a constant in `import_module` too."""
        return frozenset(_imports(self.nodes))

    @property
    def lines(self) -> int:
        return self.source.count("\n")


def read_modules(folder: str, root: Path = ROOT) -> list[Module]:
    """The modules below a folder of the project, in order."""
    return [
        Module(
            ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"),
            path.read_text(encoding="utf-8"),
            path.relative_to(root).as_posix(),
        )
        for path in sorted((root / folder).rglob("*.py"))
    ]


def _imports(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            yield from (str(one.value) for one in node.args[:1] if isinstance(one, ast.Constant))


# ---- sizes ----


def reading_path(start: str, modules: Iterable[Module]) -> int:
    """The lines of a module and of all that it reaches by its imports: what one has in front of oneself."""
    by_name = {module.name: module for module in modules}
    reached, waiting = set(), [start]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += by_name[name].imports & by_name.keys()
    return sum(by_name[name].lines for name in reached)


def lines_of_functions(modules: Iterable[Module]) -> dict[str, int]:
    """file:function -> lines, nested ones too; of functions with the same name, the longest counts."""
    counted: Counter[str] = Counter()
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{module.path}:{node.name}"
                counted[name] = max(counted[name], node.end_lineno - node.lineno + 1)
    return dict(counted)


def equal_places(modules: Iterable[Module], *, most: int = EQUAL) -> list[str]:
    """Pairs of places that share more than `most` consecutive equal lines, without comments and imports."""
    texts = [(module.path, _code_lines(module)) for module in modules]
    seen: defaultdict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for file, (_, lines) in enumerate(texts):
        windows = zip(*([line for _, line in lines][shift:] for shift in range(most + 1)), strict=False)
        for start, window in enumerate(windows):
            seen[window].append((file, start))
    pairs = {pair for same in seen.values() for pair in combinations(same, 2)}
    first = [
        (a, b)
        for a, b in sorted(pairs)
        if ((a[0], a[1] - 1), (b[0], b[1] - 1)) not in pairs and (a[0] != b[0] or b[1] - a[1] > most)
    ]
    return [
        " and ".join(f"{texts[file][0]}:{texts[file][1][start][0]}" for file, start in pair) for pair in first
    ]


def _code_lines(module: Module) -> list[tuple[int, str]]:
    source = IMPORT.sub(lambda match: "\n" * match[0].count("\n"), module.source)
    lines = ((number, line.strip()) for number, line in enumerate(source.splitlines(), start=1))
    return [(number, line) for number, line in lines if re.search(r"\w", line) and not line.startswith("#")]


# ---- rules; each yields faults as "line: what is wrong" ----


def unsafe_switches(module: Module) -> Iterator[str]:
    """Arguments that let a library run code that comes with data or models."""
    for node in module.nodes:
        if (
            isinstance(node, ast.keyword)
            and node.arg in UNSAFE_SWITCHES
            and ast.unparse(node.value) != "False"
        ):
            yield f"{node.value.lineno}: {node.arg}={ast.unparse(node.value)}"


def vague_names(module: Module) -> Iterator[str]:
    """Modules, classes and functions whose names fit anything."""
    for part in module.name.split("."):
        if _says_little(part):
            yield f"1: module name {part} does not say what it is for"
    for node in module.nodes:
        if isinstance(node, DEFINITION) and _says_little(node.name) and node.name not in DICTATED:
            yield f"{node.lineno}: {node.name} does not say what it is for"


def _says_little(name: str) -> bool:
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]
    return bool(VAGUE & set(words)) or bool(words and words[0] in VAGUE_FIRST)


FOR_OPENMP = "os.environ.setdefault('GOMP_SPINCOUNT', '30000')"  # must come before PyTorch


def state_at_import(module: Module) -> Iterator[str]:
    """What must not happen at import: choosing a device, seeding, reading the environment."""
    for statement in module.tree.body:
        if isinstance(statement, DEFINITION | ast.If):  # an `if` at top level is `if __name__ == ...`
            continue
        if ast.unparse(statement) == FOR_OPENMP:
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute | ast.Name) and re.search(AT_IMPORT, ast.unparse(node)):
                yield f"{node.lineno}: {ast.unparse(node)} at import time"


RULES = (unsafe_switches, vague_names, state_at_import)
