"""The tests are laid out as the library is, and none of them is switched off without saying until when."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
NOT_MIRRORED = {"notebooks", "browser"}  # test folders that mirror no package
OWN = {
    "test_structure.py",
    "test_layout.py",
    "test_packaging.py",
    "test_readme_tables.py",
}  # about the project, not about a module
# Tests of several modules of one package at once, with the modules they hold together.
SEVERAL = {
    "attention/test_backends.py": ("dense", "sparse", "flex"),
    "batch/test_shipped_grids.py": ("grid_file", "expansion", "needs", "plan"),
}


def module_names() -> set[str]:
    """`data/records` for cdlm_lab/data/records.py; packages themselves are left out."""
    library = ROOT / "cdlm_lab"
    files = (path for path in library.rglob("*.py") if path.name != "__init__.py")
    return {path.relative_to(library).with_suffix("").as_posix() for path in files}


def mirror_faults(tests: list[str], modules: set[str]) -> list[str]:
    """Test files (`data/test_x.py`) that name no module, and packages with modules but no test file.

    A test may take a part of a module (`test_sparse_gradients.py` for sparse.py) or a family of modules
    (`test_storyworld.py` for storyworld_words.py).
    """
    faults = []
    for test in tests:
        folder, _, file = test.rpartition("/")
        prefix = f"{folder}/" if folder else ""
        subject = file.removesuffix(".py").removeprefix("test_")
        if not any(
            f"{prefix}{subject}" == name
            or f"{prefix}{subject}_".startswith(f"{name}_")
            or name.startswith(f"{prefix}{subject}_")
            for name in modules
        ):
            faults.append(f"tests/{test} names no module of cdlm_lab")
    tested = {test.rpartition("/")[0] for test in tests}
    packages = {name.rpartition("/")[0] for name in modules if "/" in name}
    return faults + [
        f"cdlm_lab/{package} has no tests in tests/{package}" for package in sorted(packages - tested)
    ]


def test_tests_mirror_the_library():
    files = [path.relative_to(TESTS).as_posix() for path in sorted(TESTS.rglob("test_*.py"))]
    mirrored = [file for file in files if file.split("/")[0] not in NOT_MIRRORED | OWN]
    assert mirror_faults([file for file in mirrored if file not in SEVERAL], module_names()) == []


def test_tests_of_several_modules_name_modules_that_exist():
    for file, modules in SEVERAL.items():
        folder = file.rpartition("/")[0]
        assert {f"{folder}/{module}" for module in modules} <= module_names()


def test_a_test_without_a_module_is_found():
    modules = {"report", "data/files", "data/storyworld_words"}
    good = ["test_report.py", "data/test_files.py", "data/test_files_gzip.py", "data/test_storyworld.py"]
    assert mirror_faults(good, modules) == []
    assert mirror_faults([*good, "data/test_file.py"], modules) == [
        "tests/data/test_file.py names no module of cdlm_lab"
    ]
    assert mirror_faults(["test_report.py"], modules) == ["cdlm_lab/data has no tests in tests/data"]


def skips_without_end(source: str) -> list[str]:
    """Skips in a test file that do not say until when; a skip without an end is a test deleted in silence."""
    faults = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if re.search(r"(pytest\.skip|mark\.skip|mark\.skipif|importorskip)$", called):
                given = [
                    ast.unparse(argument) for argument in [*node.args, *(k.value for k in node.keywords)]
                ]
                if "until" not in " ".join(given):
                    faults.append(f"{node.lineno}: {called} without 'until'")
    return faults


def test_skips_say_until_when():
    faults = [
        f"tests/{path.relative_to(TESTS).as_posix()}:{fault}"
        for path in sorted(TESTS.rglob("*.py"))
        for fault in skips_without_end(path.read_text(encoding="utf-8"))
    ]
    assert faults == []


def test_a_skip_without_an_end_is_found():
    assert skips_without_end("pytest.skip('broken')") == ["1: pytest.skip without 'until'"]
    assert (
        skips_without_end("@pytest.mark.skipif(x, reason='no data until it is downloaded')\ndef test(): ...")
        == []
    )
