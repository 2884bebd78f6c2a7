"""The tests are laid out as the library is, and none of them is switched off without saying until when."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def packages(root: Path) -> set[str]:
    """Folders below `root` with modules of their own."""
    files = (path for path in root.rglob("*.py") if path.name != "__init__.py" and path.parent != root)
    return {path.parent.relative_to(root).as_posix() for path in files}


def folders_with_tests(root: Path) -> set[str]:
    """Folders below `root` with tests."""
    return {path.parent.relative_to(root).as_posix() for path in root.rglob("test_*.py")}


def test_each_folder_of_the_library_has_its_folder_of_tests():
    lacking = packages(TESTS.parent / "cdlm_lab") - folders_with_tests(TESTS)
    assert not lacking, "\n".join(f"cdlm_lab/{name}: put its tests into tests/{name}" for name in lacking)


def test_a_folder_without_tests_is_found(tmp_path: Path):
    for file in ("lib/a.py", "lib/data/files.py", "lib/empty/__init__.py", "tests/data/conftest.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    assert packages(tmp_path / "lib") - folders_with_tests(tmp_path / "tests") == {"data"}
    (tmp_path / "tests/data/test_any.py").touch()
    assert packages(tmp_path / "lib") - folders_with_tests(tmp_path / "tests") == set()


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
