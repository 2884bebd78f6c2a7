"""What a grid reads from a notebook."""

from pathlib import Path

import pytest
from tiny_grid import write_notebook

from cdlm_lab.batch.grid import GridError, find_notebook, read_notebook

ROOT = Path(__file__).resolve().parents[2]


def test_defaults_are_the_literals_of_the_parameters_cell(tmp_path: Path):
    notebook = read_notebook(write_notebook(tmp_path / "n.ipynb"))
    assert notebook.defaults["rate"] == 0.5
    assert notebook.defaults["maybe"] is None
    assert next(iter(notebook.defaults)) == "run_folder"


@pytest.mark.parametrize(("text", "part"), [
    ("{", "no notebook of format 4"), ('{"cells": []}', "0 code cells are tagged 'parameters'"),
])  # fmt: skip
def test_what_is_no_notebook(text: str, part: str, tmp_path: Path):
    (tmp_path / "n.ipynb").write_text(text)
    with pytest.raises(GridError, match=part):
        read_notebook(tmp_path / "n.ipynb")


@pytest.mark.parametrize("source", [
    "rate = 1", "run_folder = 'x'\nrate =", "run_folder = 'x'\nrate = f()", "import os\nrun_folder = 'x'",
])  # fmt: skip
def test_parameters_that_are_no_literals(source: str, tmp_path: Path):
    part = "nothing but lines like" if "run_folder" in source else "has no parameter 'run_folder'"
    with pytest.raises(GridError, match=part):
        read_notebook(write_notebook(tmp_path / "n.ipynb", parameters=source))


def test_notebooks_are_found_by_name_from_anywhere(tmp_path: Path):
    assert find_notebook("01_pretraining", where="x").samefile(ROOT / "notebooks" / "01_pretraining.ipynb")
    (tmp_path / "notebooks").mkdir()
    own = write_notebook(tmp_path / "notebooks" / "01_pretraining.ipynb")
    assert find_notebook("01_pretraining", where="x").samefile(own), "the folder one works in comes first"
