"""What a grid needs to know of a notebook: its parameters with their defaults, and when its code changed.

Read from the file, nothing is executed. The parameters are those of the one code cell tagged `parameters`,
which holds nothing but literals; papermill knows no other, and would run a notebook without such a cell with
its defaults and exit code 0.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdlm_lab.batch.marked_yaml import Given, GridError
from cdlm_lab.parameters import ParameterError, check_like, closest_name

RUN_FOLDER = "run_folder"  # the parameter, of every notebook, that says where results go


@dataclass(frozen=True, kw_only=True)
class Notebook:
    """A notebook on disk.

    Attributes:
        path: of the file.
        defaults: name -> value of its parameters.
        code: SHA-256 of its code cells but the parameters; neither outputs, nor metadata, nor prose count.
        sources: of these cells.
    """

    path: Path
    defaults: Mapping[str, Any]
    code: str
    sources: tuple[str, ...]


def find_notebook(name: str, *, where: str) -> Path:
    """The file of a notebook: a path, or a name in `notebooks/` below this folder or of the checkout.

    Args:
        name: "01_pretraining", or a path that ends in .ipynb.
        where: begins the message.

    Raises:
        GridError: there is none.
    """
    if name.endswith(".ipynb"):
        places = [Path(name)]
    else:
        checkout = Path(__file__).resolve().parents[2]
        places = [folder / "notebooks" / f"{name}.ipynb" for folder in (Path(), checkout)]
    for place in places:
        if place.is_file():
            return place
    known = sorted({path.stem for place in places for path in place.parent.glob("*.ipynb")})
    hint = closest_name(Path(name).stem, known) if known else "give the path of a file that ends in .ipynb"
    raise GridError(f"{where}: there is no notebook {name}: {hint}")


def read_notebook(path: Path) -> Notebook:
    """Parameters and code of a notebook.

    Raises:
        GridError: it cannot be read, has no cell or several cells tagged `parameters`, something other than
            literals in it, or no parameter `run_folder`.
    """
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        codes = [cell for cell in cells if cell["cell_type"] == "code"]
        sources = ["".join(cell["source"]) for cell in codes]
    except OSError as error:
        raise GridError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, LookupError, TypeError):
        what = "this is no notebook of format 4: open it in JupyterLab and save it"
        raise GridError(f"{path}: {what}") from None
    tagged = [n for n, cell in enumerate(codes) if "parameters" in cell.get("metadata", {}).get("tags", ())]
    if len(tagged) != 1:
        raise GridError(f"{path}: {len(tagged)} code cells are tagged 'parameters'; there must be one")
    defaults = _literals(sources.pop(tagged[0]), path)
    if RUN_FOLDER not in defaults:
        raise GridError(f"{path}: has no parameter {RUN_FOLDER!r}, which says where its results go")
    code = hashlib.sha256(json.dumps(sources).encode()).hexdigest()
    return Notebook(path=path, defaults=defaults, code=code, sources=tuple(sources))


def check_given(notebook: Notebook, given: Mapping[str, Given]) -> None:
    """Hold names and types of given parameters against the notebook's defaults, as `check_like` does.

    Raises:
        GridError: an unknown name, a value of another type than the default, or `run_folder`, which is the
            grid's to choose.
    """
    for name, item in given.items():
        if name == RUN_FOLDER:
            raise GridError(f"{item.where}: the grid chooses {RUN_FOLDER}: leave it out")
        if name not in notebook.defaults:
            hint = closest_name(name, [known for known in notebook.defaults if known != RUN_FOLDER])
            raise GridError(f"{item.where}: {notebook.path.name} has no parameter {name!r}: {hint}")
        try:
            check_like(name, item.value, notebook.defaults[name])
        except ParameterError as error:
            what = str(error).replace("papermill -y reads", "YAML reads")
            raise GridError(f"{item.where}: {notebook.path.name}: {what}") from None


def _literals(source: str, path: Path) -> dict[str, Any]:
    """name -> value of a cell of literal assignments."""
    try:
        statements = ast.parse(source).body
        pairs = [(statement.targets[0].id, ast.literal_eval(statement.value)) for statement in statements]
    except SyntaxError as error:
        raise GridError(f"{path}: cell 'parameters', line {error.lineno}: not Python ({error.msg})") from None
    except (AttributeError, ValueError):
        what = "the cell 'parameters' must hold nothing but lines like `steps = 400`"
        raise GridError(f"{path}: {what}") from None
    return dict(pairs)
