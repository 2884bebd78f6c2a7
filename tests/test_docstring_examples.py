"""What the examples in docstrings show is what comes."""

import doctest
import importlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "cdlm_lab"
SHOWING = [file for file in sorted(PACKAGE.rglob("*.py")) if ">>> " in file.read_text(encoding="utf-8")]


@pytest.mark.parametrize("file", SHOWING, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_what_an_example_shows_is_what_comes(file: Path):
    name = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
    differences: list[str] = []
    runner = doctest.DocTestRunner()
    for examples in doctest.DocTestFinder().find(importlib.import_module(name)):
        runner.run(examples, out=differences.append)
    assert runner.summarize(verbose=False).attempted
    assert not differences, "".join(differences)
