"""No test is switched off without saying until when."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def skips_without_end(source: str) -> list[str]:
    """Skips in a test file that do not say until when; a skip without an end is a test deleted in silence."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    skips = r"(pytest\.skip|mark\.skip|mark\.skipif|importorskip)$"
    return [
        f"{call.lineno}: {ast.unparse(call.func)} without 'until'"
        for call in calls
        if re.search(skips, ast.unparse(call.func)) and "until" not in ast.unparse(call)
    ]


def test_skips_say_until_when():
    faults = [
        f"tests/{path.relative_to(TESTS).as_posix()}:{fault}"
        for path in sorted(TESTS.rglob("*.py"))
        for fault in skips_without_end(path.read_text(encoding="utf-8"))
    ]
    assert faults == []


def test_a_skip_without_an_end_is_found():
    assert skips_without_end("pytest.skip('broken')") == ["1: pytest.skip without 'until'"]
    source = "@pytest.mark.skipif(x, reason='no data until it is downloaded')\ndef test(): ..."
    assert skips_without_end(source) == []
