"""What a grid reads from a notebook."""

import json
from pathlib import Path

import pytest
from tiny_grid import BODY, PARAMETERS, write_notebook

from cdlm_lab.batch.grid import check_given, find_notebook, read_notebook
from cdlm_lab.batch.marked_yaml import Given, GridError

ROOT = Path(__file__).resolve().parents[2]


def test_every_notebook_of_the_project_can_stand_in_a_grid():
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = read_notebook(path)
        assert len(notebook.defaults) > 3, path
        assert notebook.sources


def test_defaults_are_the_literals_of_the_parameters_cell(tmp_path: Path):
    notebook = read_notebook(write_notebook(tmp_path / "n.ipynb"))
    assert notebook.defaults["rate"] == 0.5
    assert notebook.defaults["maybe"] is None
    assert next(iter(notebook.defaults)) == "run_folder"


def test_only_code_counts(tmp_path: Path):
    path = write_notebook(tmp_path / "n.ipynb")
    before = read_notebook(path).code
    values = json.loads(path.read_text())
    values["metadata"]["more"] = 1
    for cell in values["cells"]:
        cell["metadata"]["more"] = 1
        if cell["cell_type"] == "code":
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x"}]
        else:
            cell["source"] = "other prose"
        cell["source"] = cell["source"].splitlines(keepends=True)
    path.write_text(json.dumps(values))
    assert read_notebook(path).code == before
    write_notebook(path, parameters=PARAMETERS.replace("rate = 0.5", "rate = 0.6"))
    assert read_notebook(path).code == before, "a default is a parameter, not code"
    write_notebook(path, body=BODY + "\nx = 1")
    assert read_notebook(path).code != before


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", "no notebook of format 4"),
        ("[]", "no notebook of format 4"),
        ('{"cells": []}', "0 code cells are tagged 'parameters'"),
        ('{"cells": [{"cell_type": "code"}]}', "no notebook of format 4"),
    ],
)
def test_what_is_no_notebook(text: str, part: str, tmp_path: Path):
    (tmp_path / "n.ipynb").write_text(text)
    with pytest.raises(GridError, match=part):
        read_notebook(tmp_path / "n.ipynb")


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("rate = 1", "has no parameter 'run_folder'"),
        ("run_folder = 'x'\nrate =", "line 2: not Python"),
        ("run_folder = 'x'\nrate = f()", "nothing but lines like"),
        ("import os\nrun_folder = 'x'", "nothing but lines like"),
    ],
)
def test_parameters_that_are_no_literals(source: str, part: str, tmp_path: Path):
    with pytest.raises(GridError, match=part):
        read_notebook(write_notebook(tmp_path / "n.ipynb", parameters=source))


def test_notebooks_are_found_by_name_from_anywhere(tmp_path: Path):
    assert find_notebook("01_pretraining", where="x").samefile(ROOT / "notebooks" / "01_pretraining.ipynb")
    (tmp_path / "notebooks").mkdir()
    own = write_notebook(tmp_path / "notebooks" / "01_pretraining.ipynb")
    assert find_notebook("01_pretraining", where="x").samefile(own), "the folder one works in comes first"


def test_a_default_none_takes_anything_and_a_float_whole_numbers(tmp_path: Path):
    notebook = read_notebook(write_notebook(tmp_path / "n.ipynb"))
    for values in ({"maybe": [1, "x"]}, {"maybe": 0.1}, {"rate": 3}):
        check_given(notebook, {name: Given(value=value, where="g:1") for name, value in values.items()})
