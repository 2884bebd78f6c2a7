"""No test is switched off without saying until when."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


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
