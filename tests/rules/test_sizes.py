"""The library and its tests are no larger than size_rules.py and ratchet.json allow."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import size_rules as sizes
from house_rules import Module, read_modules

LIBRARY, TESTS = read_modules(sizes.ROOT), read_modules(sizes.ROOT, "tests")


@pytest.fixture(scope="module")
def counted() -> Mapping[str, Mapping[str, int]]:
    """Rule -> name -> number."""
    return sizes.count_all(LIBRARY, TESTS)


@pytest.mark.parametrize("rule", sizes.LIMITS)
def test_nothing_is_above_its_limit(rule: str, counted: Mapping[str, Mapping[str, int]]):
    above, lower = sizes.compare(rule, counted[rule], sizes.read_ratchet().get(rule, {}))
    where = sizes.PLACES[rule](LIBRARY, TESTS) if above and rule in sizes.PLACES else []
    assert not above, "\n".join([*above, *where])
    sizes.say_lower(lower)


def test_exceptions_are_of_rules_that_exist_and_above_the_limit():
    borne = sizes.read_ratchet()
    assert borne.keys() <= sizes.LIMITS.keys()
    for rule, names in borne.items():
        assert all(number > sizes.limit_of(rule, name) for name, number in names.items()), rule


# ---- what is counted ----


def module(name: str, source: str) -> Module:
    return Module(f"cdlm_lab.{name}", source)


def test_files_are_counted_by_folder_and_one_without_tests_is_found(tmp_path: Path):
    files = "cdlm_lab/a.py cdlm_lab/data/b.py cdlm_lab/data/__init__.py cdlm_lab/c/__init__.py tests/c.txt"
    for file in [*files.split(), "tests/data/conftest.py"]:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    counted = {"cdlm_lab": 1, "cdlm_lab/c": 1, "cdlm_lab/data": 2, "tests/data": 1}
    assert sizes.files_in_folders(tmp_path) == counted
    assert sizes.folders_without_tests(tmp_path) == ["cdlm_lab/data"]
    (tmp_path / "tests/data/test_any.py").touch()
    assert sizes.folders_without_tests(tmp_path) == []


def test_lines_are_counted_by_folder_with_those_below():
    modules = [module("data.x", "a\n\nb"), module("data.deep.y", "a"), module("z", "a\nb")]
    assert sizes.lines_of_folders(modules) == {"cdlm_lab": 6, "cdlm_lab/data": 4, "cdlm_lab/data/deep": 1}
    assert sizes.lines_of_files(modules)["cdlm_lab/data/x.py"] == 3


def test_lines_of_functions_are_counted_nested_ones_too():
    source = "class C:\n    def f(self):\n        def g():\n            pass\n        return g"
    assert sizes.lines_of_functions([module("x", source)]) == {"cdlm_lab/x.py:f": 4, "cdlm_lab/x.py:g": 2}


def test_equal_lines_are_found_whatever_stands_around_them():
    same = [f"x{number} = f({number})" for number in range(13)]
    first = module("a", "import os\nfrom a import (\n  b,\n)\n" + "\n".join(same) + "\nend = 1")
    other = module(
        "b", "def g():\n" + "\n\n".join(f"    {line}  " for line in same) + "\n    # so\n    y = 1"
    )
    (found,) = sizes.equal_places([first, module("c", "\n".join(same[1:])), other])
    assert found == "cdlm_lab/a.py:5 and cdlm_lab/b.py:2 share 13 lines"
    assert len(sizes.equal_places([first, other, module("c", "\n".join(same[1:]))], most=11)) == 3
    assert sizes.equal_places([first, other], most=13) == []


def test_equal_lines_of_one_file_are_found_but_rows_that_repeat_are_not():
    same = "\n".join(f"x{number} = f({number})" for number in range(13))
    (found,) = sizes.equal_places([module("a", f"{same}\ny = 1\n{same}")])
    assert found == "cdlm_lab/a.py:1 and cdlm_lab/a.py:15 share 13 lines"
    assert sizes.equal_places([module("a", "x = 1\n" * 20)]) == []
    imports = "\n".join(f"import m{number}" for number in range(20))
    assert sizes.equal_places([module("a", imports), module("b", imports)]) == []


@pytest.mark.parametrize(
    "source", ["import cdlm_lab.data.x", "from cdlm_lab.data import x", "from cdlm_lab.data.x import f"]
)
def test_a_module_that_no_test_imports_is_found(source: str):
    modules = [module("data.x", ""), module("data.y", ""), Module("cdlm_lab.data", "", package=True)]
    assert sizes.untested(modules, [Module("tests.test_x", source)]) == ["cdlm_lab.data.y"]


def test_names_that_fit_anything_and_docstrings_that_refer_are_found():
    source = '"""m"""\ndef f(told, word):\n    """Does; errors\n    as of `g`."""\n'
    source += "    found = asked = word.said"
    vague = [*sizes.variables_that_say_little([module("x", source)])]
    assert vague == [f"cdlm_lab/x.py:{fault}" for fault in ("2: told", "5: found", "5: asked")]
    assert [*sizes.docstrings_that_refer([module("x", source)])] == ["cdlm_lab/x.py:2: 'as of `...'"]


# ---- the ratchet ----

RULE = "files in a folder"


def test_what_is_above_its_limit_is_named_with_what_to_do():
    (message,) = sizes.compare(RULE, {"cdlm_lab/new": 16, "cdlm_lab/old": 15}, {})[0]
    assert message.startswith("cdlm_lab/new: 16 files in a folder, at most 15; merge files")
    (message,) = sizes.compare(RULE, {"cdlm_lab/data": 81}, {"cdlm_lab/data": 80})[0]
    assert "81 files in a folder, at most 80" in message
    assert sizes.compare("lines", {"tests": 28_000}, {}) == ([], [])
    assert "28,001 lines, at most 28,000" in sizes.compare("lines", {"tests": 28_001}, {})[0][0]


def test_an_exception_that_is_no_longer_needed_is_named_and_lowered():
    borne = {RULE: {"cdlm_lab/data": 80, "cdlm_lab/widgets": 60, "cdlm_lab/gone": 20}}
    counted = {RULE: {"cdlm_lab/data": 70, "cdlm_lab/widgets": 9}}
    above, lower = sizes.compare(RULE, counted[RULE], borne[RULE])
    assert above == []
    assert sizes.compare(RULE, {"cdlm_lab/data": 79}, {"cdlm_lab/data": 80}) == ([], [])
    assert lower == [
        "files in a folder: cdlm_lab/data: 80 can be 70",
        "files in a folder: cdlm_lab/widgets: 60 can be 15",
        "files in a folder: cdlm_lab/gone is no more",
    ]
    with pytest.warns(UserWarning, match="80 can be 70"):
        sizes.say_lower(lower)
    assert sizes.lowered(counted, borne) == {RULE: {"cdlm_lab/data": 70}}
    assert sizes.lowered({RULE: {"cdlm_lab/data": 90}}, borne) == {RULE: {"cdlm_lab/data": 80}}
