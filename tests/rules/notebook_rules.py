"""The contract of the notebooks, checked on their JSON. tests/notebooks/test_contract.py applies it.

A notebook is an experiment of a paper that users read from top to bottom and papermill runs unattended: a
header that describes it, one cell of parameters, one of imports and settings, short cells that call the
library, and a last cell that interprets the result. Each rule takes the notebook as a dict (nbformat 4) and
yields faults as "cell N: what is wrong", with cells counted from 0.
"""

import ast
import importlib
import io
import json
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

Notebook = dict
Rule = Callable[[Notebook], Iterator[str]]

MAX_LINES = 25  # most lines of a cell
MAX_PARAMETERS = 40  # most parameters, one per line, besides the headings of their groups
GROUPS = ("what", "data", "training", "machine")  # headings of the parameters cell, in this order
FIRST, RARELY = 12, "# rarely changed"  # at most so many parameters stand above this line
# Topics of the header, each with a bold label: **Question.** ..., **Data.** ...
HEADER_LABELS = ("Question", "Paper", "Data", "Cost", "Leaves behind")
READING_WORDS = 15  # least number of words of the last cell, if it is Markdown
# One of them must be called by the second code cell: papermill itself only logs a misspelt name.
PARAMETER_CHECKS = {"refuse_unknown", "read_settings"}


def read_notebook(path: Path) -> Notebook:
    return json.loads(path.read_text(encoding="utf-8"))


def source_of(cell: dict) -> str:
    """Return a cell's text, which nbformat stores as one string or as a list of lines."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def code_cells(notebook: Notebook) -> list[tuple[int, dict]]:
    """Return (position, cell) of all code cells."""
    return [(i, cell) for i, cell in enumerate(notebook["cells"]) if cell["cell_type"] == "code"]


def tags(cell: dict) -> list[str]:
    return cell.get("metadata", {}).get("tags", [])


def parse(cell: dict) -> ast.Module | None:
    """Return the syntax tree of a code cell; None if it is not plain Python (a magic, a shell line)."""
    try:
        return ast.parse(source_of(cell))
    except SyntaxError:
        return None


def experiment_of(notebook: Notebook) -> ModuleType:
    """Return the module of the experiment that a notebook imports, the one whose `Settings` it reads."""
    sources = "\n".join(source_of(cell) for _, cell in code_cells(notebook))
    (name,) = re.findall(r"read_settings\(globals\(\), (\w+)\.Settings\)", sources)
    package, module = re.search(
        rf"^from (\S+) import (?:.*, |(\w+) as )?{name}\b", sources, re.MULTILINE
    ).groups()
    return importlib.import_module(f"{package}.{module or name}")


def names_read(tree: ast.AST) -> set[str]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in nodes if isinstance(node.ctx, ast.Load)}


def names_called(tree: ast.AST) -> set[str]:
    """Return the last part of each called name: `parameters.refuse_unknown(...)` -> refuse_unknown."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {ast.unparse(node.func).split(".")[-1] for node in calls}


def assigned_parameters(notebook: Notebook) -> dict[str, ast.AST]:
    """Return parameter name -> its statement, from the first code cell."""
    found = {}
    tree = parse(code_cells(notebook)[0][1]) if code_cells(notebook) else None
    for node in tree.body if tree else ():
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found.update({target.id: node for target in targets if isinstance(target, ast.Name)})
    return found


def header(notebook: Notebook) -> Iterator[str]:
    """The first cell is prose with a title and answers every question of HEADER_LABELS."""
    first = notebook["cells"][0] if notebook["cells"] else {"cell_type": "none"}
    if first["cell_type"] != "markdown":
        yield "cell 0: the header must be a markdown cell"
        return
    text = source_of(first)
    if not text.startswith("# "):
        yield "cell 0: the header must begin with a title, '# ...'"
    for label in HEADER_LABELS:
        if not re.search(rf"\*\*{label}[^*]*\*\*\s*\S", text, re.IGNORECASE):
            yield f"cell 0: the header has no **{label}.**"


def parameters_cell(notebook: Notebook) -> Iterator[str]:
    """The first code cell, and no other, is tagged `parameters`."""
    tagged = [i for i, cell in enumerate(notebook["cells"]) if "parameters" in tags(cell)]
    first = [i for i, _ in code_cells(notebook)[:1]]
    if not first or tagged != first:
        yield f"cells tagged 'parameters': {tagged}; must be the first code cell alone, {first}"


def literal_parameters(notebook: Notebook) -> Iterator[str]:
    """Every statement of the parameters cell gives a literal to one name, with a comment beside or above."""
    if not code_cells(notebook):
        return
    position, cell = code_cells(notebook)[0]
    tree = parse(cell)
    if tree is None:  # reported by plain_python
        return
    noted = comments(source_of(cell))
    beside = {token.start[0] for token in noted}
    above = {token.start[0] for token in noted if token.line.lstrip().startswith("#")}
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or len(getattr(node, "targets", [0])) != 1:
            yield f"cell {position}: line {node.lineno}: only `name = literal` may stand here"
            continue
        name = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        try:
            ast.literal_eval(node.value)
        except (ValueError, TypeError):
            yield f"cell {position}: {name} is not a literal"
        if not beside & set(range(node.lineno, node.end_lineno + 1)) and node.lineno - 1 not in above:
            yield f"cell {position}: {name} has no comment"


def grouped_parameters(notebook: Notebook) -> Iterator[str]:
    """Parameters stand in GROUPS below a heading each, at most FIRST of them above the line RARELY."""
    for position, cell in code_cells(notebook)[:1]:
        above, *below = source_of(cell).split(RARELY)
        if (count := above.count(" = ")) > FIRST:
            yield f"cell {position}: {count} parameters above {RARELY!r}, at most {FIRST}"
        for part in (above, *below):
            names = re.findall(r"^# (\w+)", part, re.MULTILINE)
            if names != [group for group in GROUPS if group in names]:
                yield f"cell {position}: headings {', '.join(names)}; of {', '.join(GROUPS)}, in this order"
        if not above.startswith(f"# {GROUPS[0]}"):
            yield f"cell {position}: it must begin with the heading '# {GROUPS[0]}'"


def comments_for_papermill(notebook: Notebook) -> Iterator[str]:
    """No comment on a parameter has an equals sign: `papermill --help-notebook` would leave it out."""
    for position, cell in code_cells(notebook)[:1]:
        for token in comments(source_of(cell)):
            if "=" in token.string:
                yield f"cell {position}: line {token.start[0]}: write the comment without '='"


def comments(source: str) -> list[tokenize.TokenInfo]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token for token in tokens if token.type == tokenize.COMMENT]


def settings_cell(notebook: Notebook) -> Iterator[str]:
    """Imports stand in the second code cell and nowhere else, and before any work it refuses parameters that
    do not exist."""
    for order, (position, cell) in enumerate(code_cells(notebook)):
        tree = parse(cell)
        nodes = ast.walk(tree) if tree else ()
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        if order == 1:
            if not imports:
                yield f"cell {position}: the second code cell must hold the imports and settings"
            if tree and not PARAMETER_CHECKS & names_called(tree):
                yield f"cell {position}: must call {' or '.join(sorted(PARAMETER_CHECKS))}"
            elif tree and not PARAMETER_CHECKS & names_called(after_imports(tree)):
                yield f"cell {position}: the check of the parameters must come first after the imports"
        elif imports:
            yield f"cell {position}: imports belong into the second code cell"
    if len(code_cells(notebook)) < 2:
        yield "no second code cell with imports and settings"


def after_imports(tree: ast.Module) -> ast.AST:
    """Return the first statement that is no import, or an empty module."""
    rest = (node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom))
    return next(rest, ast.Module([], []))


def plain_python(notebook: Notebook) -> Iterator[str]:
    """No definitions (their place is the library), no magics, no shell lines (they fail in silence)."""
    for position, cell in code_cells(notebook):
        tree = parse(cell)
        if tree is None:
            yield f"cell {position}: not plain Python"
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield f"cell {position}: {node.name} belongs into the library"


def imported_names(notebook: Notebook) -> list[str]:
    """Return the names that the notebook imports from the library."""
    trees = [parse(cell) for _, cell in code_cells(notebook)]
    return [
        alias.name
        for tree in trees
        for node in (tree.body if tree else ())
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cdlm_lab"
        for alias in node.names
    ]


def lines_of_imports(cell: dict) -> int:
    """Return the number of lines of imports; size_rules limits the number of imported names."""
    tree = parse(cell) if cell["cell_type"] == "code" else None
    nodes = (node for node in (tree.body if tree else ()) if isinstance(node, ast.Import | ast.ImportFrom))
    return sum(node.end_lineno - node.lineno + 1 for node in nodes)


def short_cells(notebook: Notebook) -> Iterator[str]:
    """No cell is longer than MAX_LINES besides imports, or MAX_PARAMETERS if it has the parameters."""
    for position, cell in enumerate(notebook["cells"]):
        has_parameters = "parameters" in tags(cell)
        source = [one for one in source_of(cell).splitlines() if not (has_parameters and one[:1] == "#")]
        lines = len(source) - lines_of_imports(cell)
        most = MAX_PARAMETERS if has_parameters else MAX_LINES
        if lines > most:
            yield f"cell {position}: {lines} lines, at most {most}"


def parameters_used(notebook: Notebook) -> Iterator[str]:
    """Every parameter is read by a later cell, or all are by `read_settings`."""
    trees = [parse(cell) for _, cell in code_cells(notebook)[1:]]
    if any("read_settings" in names_called(tree) for tree in trees if tree):
        return
    read = set().union(*(names_read(tree) for tree in trees if tree))
    for name in assigned_parameters(notebook):
        if name not in read:
            yield f"parameter {name} is never used"


def no_outputs(notebook: Notebook) -> Iterator[str]:
    """Nothing of a run is stored: no outputs, no execution counts, no widget state, no attachments."""
    for position, cell in enumerate(notebook["cells"]):
        if cell.get("outputs") or cell.get("execution_count") is not None or cell.get("attachments"):
            yield f"cell {position}: stored output; run `make strip`"
    for key in ("widgets", "papermill"):
        if key in notebook["metadata"]:
            yield f"metadata holds {key}; run `make strip`"


def result_is_read(notebook: Notebook) -> Iterator[str]:
    """The last cell says in prose what came out, or has the report say it."""
    last = notebook["cells"][-1] if notebook["cells"] else {"cell_type": "none"}
    tree = parse(last) if last["cell_type"] == "code" else None
    if last["cell_type"] == "markdown" and len(re.findall(r"\w{2,}", source_of(last))) >= READING_WORDS:
        return
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)) if tree else ()
    if not any("report" in ast.unparse(node).lower() for node in nodes):
        yield f"the last cell must read the result: {READING_WORDS} words of prose, or code on the report"


def kernel(notebook: Notebook) -> Iterator[str]:
    """The kernel is the one every Jupyter has."""
    name = notebook["metadata"].get("kernelspec", {}).get("name")
    if name != "python3":
        yield f"kernelspec is {name!r}, must be 'python3'"


def language(notebook: Notebook) -> Iterator[str]:
    """The metadata say what `jupyter nbconvert --to script` needs to write a .py file."""
    given = notebook["metadata"].get("language_info", {})
    for key, value in {"file_extension": ".py", "nbconvert_exporter": "python"}.items():
        if given.get(key) != value:
            yield f"language_info has {key} {given.get(key)!r}, must be {value!r}"


RULES: tuple[Rule, ...] = (
    *(header, parameters_cell, literal_parameters, grouped_parameters, comments_for_papermill),
    *(settings_cell, plain_python, short_cells, parameters_used, no_outputs, result_is_read),
    *(kernel, language),
)
