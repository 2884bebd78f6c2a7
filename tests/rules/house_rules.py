"""Rules that all code of cdlm_lab follows, checked by static analysis of the source.

Imports only go down the list LAYERS; the number of parameters and the choice of names are restricted; nothing
unpickles. Each rule takes a module and yields faults as "line: what is wrong". test_house_rules.py applies
the rules to the library and tests each on snippets that break it; size_rules.py has the rules for sizes. Ruff
checks that public names have docstrings and types, and that random numbers come from explicit generators.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

# From top to bottom. A module may import from its own group and from lower ones, not from neighbours.
LAYERS = (
    ("results",),
    ("batch",),
    ("applied",),
    ("experiments", "benchmarks"),
    ("widgets",),
    ("report",),
    ("analysis", "clustering", "mining", "training"),
    ("identity",),
    ("models",),
    ("examples",),
    ("attention", "metrics", "data"),
    ("scores",),
    ("parameters", "progress", "words"),
    ("errors",),
)
HEIGHT = {group: height for height, groups in enumerate(reversed(LAYERS)) for group in groups}

# Group -> packages that it must not import: readers and metrics run anywhere and fast, attention serves any
# model, widgets need only texts and arrays, grids start without delay.
WITHOUT = {
    "data": ("torch", "transformers"),
    "metrics": ("torch", "transformers"),
    "attention": ("transformers",),
    "widgets": ("torch", "transformers", "cdlm_lab.models"),
    "parameters": ("torch", "transformers"),
    "progress": ("torch", "transformers"),
    "errors": ("torch", "transformers"),
    "mining": ("torch", "transformers"),
    "report": ("torch", "transformers"),
    "scores": ("torch", "transformers"),
    "identity": ("torch", "transformers"),
    "batch": ("torch", "transformers", "snakemake"),
}
UNPICKLERS = ("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal")
UNSAFE_CALLS = ("eval", "exec", "torch.load", "__import__")
# The only module that opens a pickle, restricted to tensors and plain containers; it is called by hand.
PICKLE_OPENED = ("cdlm_lab.encoders.to_safetensors", "weights_only=True")
UNSAFE_SWITCHES = ("trust_remote_code", "allow_pickle")
VAGUE = {"util", "utils", "utility", "utilities", "helper", "helpers", "manager", "managers", "handler"}
# Vague as first word only: `peak_memory_of_process` is specific, `process_batch` and `BaseModel` are not.
VAGUE_FIRST = {"process", "handle", "manage", "base"}
# Attention takes six projections by position, then masks and settings by name; nothing else takes more.
MAX_PARAMETERS, MAX_POSITIONAL = 10, 6

FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
DEFINITION = FUNCTION | ast.ClassDef
AT_IMPORT = r"manual_seed$|random\.seed$|cuda\.is_available$|^os\.environ$|^os\.getenv$"


@dataclass(frozen=True)
class Module:
    """One source file; `name`: dotted name; `package`: True for an __init__.py."""

    name: str
    source: str
    package: bool = False

    @property
    def path(self) -> str:
        return self.name.replace(".", "/") + ("/__init__.py" if self.package else ".py")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def group(self) -> str:
        """The part of the library the module belongs to (data, models, ...); "" for cdlm_lab itself."""
        return self.name.partition(".")[2].partition(".")[0]


Rule = Callable[[Module], Iterator[str]]


def read_modules(root: Path, folder: str = "cdlm_lab") -> list[Module]:
    modules = []
    for path in sorted((root / folder).rglob("*.py")):
        package = path.name == "__init__.py"
        named = path.parent if package else path.with_suffix("")
        name = ".".join(named.relative_to(root).parts)
        modules.append(Module(name, path.read_text(encoding="utf-8"), package))
    return modules


def faults(rule: Rule, module: Module) -> list[str]:
    """Return the faults that a rule finds, without duplicates (`from a import b` names both a and a.b)."""
    return list(dict.fromkeys(rule(module)))


def all_faults(rule: Rule, modules: list[Module]) -> list[str]:
    return [f"{module.name}:{fault}" for module in modules for fault in faults(rule, module)]


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of all imports anywhere in the module; relative ones are made absolute."""
    for node in module.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            parts = module.name.split(".")
            above = parts[: len(parts) - node.level + module.package] if node.level else []
            start = ".".join([*above, *([node.module] if node.module else [])])
            yield node.lineno, start
            for alias in node.names:  # `from cdlm_lab import models` imports a module as well
                yield node.lineno, f"{start}.{alias.name}"


def within(name: str, package: str) -> bool:
    """Return whether the dotted `name` is `package` or is inside it."""
    return name == package or name.startswith(f"{package}.")


def functions(module: Module) -> Iterator[FUNCTION]:
    """Return all functions and methods, including nested ones."""
    return (node for node in module.nodes if isinstance(node, FUNCTION))


def upward_imports(module: Module) -> Iterator[str]:
    """Imports from a higher group or from a neighbour, and modules in a group that LAYERS does not know."""
    if module.group and module.group not in HEIGHT:
        yield f"1: {module.group} has no place in LAYERS; give it one in tests/rules/house_rules.py"
        return
    for line, name in imports(module):
        target = name.partition(".")[2].partition(".")[0]
        if not within(name, "cdlm_lab") or target not in HEIGHT or target == module.group:
            continue
        if not module.group or HEIGHT[target] >= HEIGHT[module.group]:
            yield f"{line}: {module.group or 'cdlm_lab'} must not import {target}"


def foreign_imports(module: Module) -> Iterator[str]:
    """Imports that the module's group must do without."""
    for line, name in imports(module):
        for banned in WITHOUT.get(module.group, ()):
            if within(name, banned):
                yield f"{line}: {module.group} must run without {banned}"


def unsafe_code(module: Module) -> Iterator[str]:
    """Whatever runs code that comes with the data."""
    for line, name in imports(module):
        if name.split(".")[0] in UNPICKLERS or name == "torch.load":
            yield f"{line}: {name} can run code that comes with the data"
    opened = False
    for node in module.nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func) in UNSAFE_CALLS:
            switches = [ast.unparse(keyword) for keyword in node.keywords]
            allowed = ast.unparse(node.func) == "torch.load" and not opened
            if allowed and module.name == PICKLE_OPENED[0] and PICKLE_OPENED[1] in switches:
                opened = True
            else:
                yield f"{node.lineno}: {ast.unparse(node.func)}()"
        switch = isinstance(node, ast.keyword) and node.arg in UNSAFE_SWITCHES
        if switch and ast.unparse(node.value) != "False":
            yield f"{node.value.lineno}: {node.arg}={ast.unparse(node.value)}"


def crowded_signatures(module: Module) -> Iterator[str]:
    """Functions with too many parameters. Methods are left out: Hugging Face dictates those of `forward`."""
    classes = (node for node in module.nodes if isinstance(node, ast.ClassDef))
    methods = {id(child) for node in classes for child in node.body}
    for node in functions(module):
        if id(node) in methods:
            continue
        positional = node.args.posonlyargs + node.args.args
        count = len(positional) + len(node.args.kwonlyargs)
        required = len(positional) - len(node.args.defaults)
        if count > MAX_PARAMETERS:
            yield f"{node.lineno}: {node.name} has {count} parameters, at most {MAX_PARAMETERS}"
        if required > MAX_POSITIONAL and not node.name.startswith("_"):
            yield f"{node.lineno}: {node.name} takes {required} by position; make them keyword-only"


def says_little(name: str) -> bool:
    """Return whether a name is vague: text_utils, DataManager, process_batch, BaseModel."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]
    return bool(VAGUE & set(words)) or bool(words and words[0] in VAGUE_FIRST)


def vague_names(module: Module) -> Iterator[str]:
    """Modules, classes and functions whose names fit anything."""
    for part in module.name.split("."):
        if says_little(part):
            yield f"1: module name {part} does not say what it is for"
    for node in module.nodes:
        if isinstance(node, DEFINITION) and says_little(node.name):
            yield f"{node.lineno}: {node.name} does not say what it is for"


def state_at_import(module: Module) -> Iterator[str]:
    """What must not happen at import: choosing a device, seeding, reading the environment."""
    for statement in module.tree.body:
        if isinstance(statement, DEFINITION | ast.If):  # an `if` at top level is `if __name__ == ...`
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute | ast.Name) and re.search(AT_IMPORT, ast.unparse(node)):
                yield f"{node.lineno}: {ast.unparse(node)} at import time"


def import_cycle(modules: list[Module]) -> list[str]:
    """Return modules that import each other in a cycle, in order; [] if there is none. Imports in functions
    count; the import of a package on the way to one of its own modules does not."""
    names = {module.name for module in modules}
    graph = {
        module.name: {name for _, name in imports(module) if name in names and not within(module.name, name)}
        for module in modules
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1][::-1]  # it names those first that are imported
    return []


RULES: tuple[Rule, ...] = (
    *(upward_imports, foreign_imports, unsafe_code),
    *(crowded_signatures, vague_names, state_at_import),
)
