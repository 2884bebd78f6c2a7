"""Benchmarks called by their command line, with very small sizes."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Command = Callable[[ModuleType, str], tuple[dict[str, Any], str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Function that runs a benchmark with options in a text; returns (content of --json, printed text)."""

    def run(benchmark: ModuleType, options: str) -> tuple[dict[str, Any], str]:
        out = tmp_path / "out.json"
        words = [*options.split(), "--device", "cpu", "--json", str(out)]
        monkeypatch.setattr(sys, "argv", [benchmark.__name__, *words])
        benchmark.main()
        return json.loads(out.read_text()), capsys.readouterr().out

    return run


@pytest.fixture
def memory_measured() -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("CPU memory: Linux only, until there is another measure")
