"""Every notebook keeps the contract of tests/rules/notebook_rules.py, and each rule finds its faults."""

import copy
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import notebook_rules as rules
import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_every_notebook_keeps(rule: rules.Rule):
    faults = [f"{path.name}: {fault}" for path in NOTEBOOKS for fault in rule(rules.read_notebook(path))]
    assert not faults, "\n".join([f"{rule.__name__}: {rule.__doc__}", *faults])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_valid_and_numbered(path: Path):
    nbformat.validate(nbformat.read(path, as_version=4))
    assert re.fullmatch(r"\d\d_[a-z0-9_]+", path.stem)


def test_the_notebooks_of_the_first_milestone_are_there():
    stems = {path.stem for path in NOTEBOOKS}
    assert {"00_tour", "01_pretraining", "02_cross_document_perplexity"} <= stems


def cell(kind: str, source: str, *tags: str) -> dict:
    made = {"cell_type": kind, "source": source, "metadata": {"tags": list(tags)}}
    return made | ({"outputs": [], "execution_count": None} if kind == "code" else {})


SOUND = {
    "metadata": {
        "kernelspec": {"name": "python3"},
        "language_info": {"file_extension": ".py", "nbconvert_exporter": "python"},
    },
    "cells": [
        cell(
            "markdown",
            "# Title\n**Question.** Does it? **Paper and table.** X, Table 1. **Data.** Embedded. "
            "**Cost.** 1 minute. **Leaves behind.** report.json",
        ),
        cell(
            "code",
            "# what runs\nsteps = 10  # how many\nrates = (1e-4, -1.0)  # two\nname: str = 'x'  # any",
            "parameters",
        ),
        cell("code", "from cdlm_lab import parameters\nparameters.refuse_unknown(globals())"),
        cell("code", "report = run(steps, rates, name)"),
        cell("code", "report.show()"),
    ],
}


def test_a_sound_notebook_passes():
    assert [fault for rule in rules.RULES for fault in rule(SOUND)] == []


# rule, position of the cell, what is put there, part of the one fault it must find
BROKEN = [
    (rules.header, 0, cell("code", "x = 1"), "must be a markdown cell"),
    (rules.header, 0, cell("markdown", SOUND["cells"][0]["source"].replace("# T", "T")), "title"),
    (rules.header, 0, cell("markdown", SOUND["cells"][0]["source"].replace("**Cost", "**Fun")), "**Cost.**"),
    (rules.parameters_cell, 1, cell("code", "steps = 10  # x"), "must be the first code cell alone"),
    (rules.parameters_cell, 3, cell("code", "steps", "parameters"), "[1, 3]"),
    (rules.parameters_cell, 0, cell("code", "x = 1  # x"), "must be the first code cell alone, [0]"),
    (rules.literal_parameters, 1, cell("code", "steps = 2 * n  # x", "parameters"), "steps is not a literal"),
    (rules.literal_parameters, 1, cell("code", "# a\na = 1\nb = 2", "parameters"), "b has no comment"),
    (rules.literal_parameters, 1, cell("code", "a = 1  # a\nb = 2", "parameters"), "b has no comment"),
    (rules.literal_parameters, 1, cell("code", "import os  # x", "parameters"), "only `name = literal`"),
    (rules.literal_parameters, 1, cell("code", "a = b = 1  # x", "parameters"), "only `name = literal`"),
    (rules.grouped_parameters, 1, cell("code", "# what\n" + "x = 1  # x\n" * 13, "parameters"), "13 param"),
    (rules.grouped_parameters, 1, cell("code", "# what\n# machine\n# data", "parameters"), "in this order"),
    (rules.grouped_parameters, 1, cell("code", "# what\n# of\nx = 1  # x", "parameters"), "headings what"),
    (rules.grouped_parameters, 1, cell("code", "# data\nx = 1  # x", "parameters"), "begin with the heading"),
    (rules.comments_for_papermill, 1, cell("code", "a = 1  # 0 = all", "parameters"), "line 1: write"),
    (rules.settings_cell, 2, cell("code", "import os"), "must call read_settings or refuse_unknown"),
    (rules.settings_cell, 2, cell("code", "refuse_unknown()"), "must hold the imports"),
    (rules.settings_cell, 2, cell("code", "import os\nos.stat('.')\nrefuse_unknown()"), "come first"),
    (rules.settings_cell, 3, cell("code", "import os"), "cell 3: imports belong"),
    (rules.plain_python, 3, cell("code", "def f():\n    pass"), "f belongs into the library"),
    (rules.plain_python, 3, cell("code", "class C:\n    pass"), "C belongs into the library"),
    (rules.plain_python, 3, cell("code", "!false"), "not plain Python"),
    (rules.plain_python, 3, cell("code", "%matplotlib inline"), "not plain Python"),
    (rules.short_cells, 3, cell("code", "x = 1\n" * 26), "cell 3: 26 lines"),
    (rules.short_cells, 1, cell("code", "x = 1  # x\n" * 41, "parameters"), "cell 1: 41 lines"),
    (rules.parameters_used, 3, cell("code", "report = run(steps, rates)\nname = 1"), "name is never used"),
    (rules.no_outputs, 3, cell("code", "x") | {"execution_count": 3}, "cell 3: stored output"),
    (rules.no_outputs, 3, cell("code", "x") | {"outputs": [{}]}, "cell 3: stored output"),
    (rules.result_is_read, 4, cell("code", "print(steps)"), "must read the result"),
    (rules.result_is_read, 4, cell("markdown", "Done."), "must read the result"),
]


@pytest.mark.parametrize(("rule", "position", "put", "expected"), BROKEN)
def test_rule_finds(rule: rules.Rule, position: int, put: dict, expected: str):
    broken = copy.deepcopy(SOUND)
    broken["cells"][position] = put
    found = list(rule(broken))
    assert len(found) == 1, found
    assert expected in found[0]


def test_imports_are_counted_by_names_not_by_lines():
    many = "from cdlm_lab.parameters import (\n" + "".join(f"    n{i},\n" for i in range(30)) + ")\nimport os"
    notebook = SOUND | {"cells": [*SOUND["cells"], cell("code", many)]}
    assert list(rules.short_cells(notebook)) == []
    assert rules.imported_names(notebook) == ["parameters", *(f"n{i}" for i in range(30))]


def test_another_kernel_stored_widgets_and_no_code_are_found():
    broken = copy.deepcopy(SOUND) | {"metadata": {"kernelspec": {"name": "mine"}, "widgets": {}}}
    assert list(rules.kernel(broken)) == ["kernelspec is 'mine', must be 'python3'"]
    assert list(rules.no_outputs(broken)) == ["metadata holds widgets; run `make strip`"]
    assert len(list(rules.language(broken))) == 2
    empty = SOUND | {"cells": SOUND["cells"][:1]}
    assert len(list(rules.parameters_cell(empty))) == 1
    assert list(rules.settings_cell(empty)) == ["no second code cell with imports and settings"]


def test_make_strip_changes_nothing_in_a_notebook_without_outputs(tmp_path: Path):
    makefile = (NOTEBOOKS[0].parents[1] / "Makefile").read_text(encoding="utf-8")
    arguments = re.search(r"nbstripout (.*) notebooks/\*\.ipynb", makefile)[1].split()
    copies = [shutil.copy(path, tmp_path) for path in NOTEBOOKS]
    subprocess.run([sys.executable, "-m", "nbstripout", *arguments, *copies], check=True)
    for path, copied in zip(NOTEBOOKS, copies, strict=True):
        assert Path(copied).read_text(encoding="utf-8") == path.read_text(encoding="utf-8"), path.stem
