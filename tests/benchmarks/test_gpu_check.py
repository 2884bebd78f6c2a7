"""The check of a GPU: on a CPU the same command does what needs none, and writes its page."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from cdlm_lab.benchmarks import gpu_check

CPU = {"device": torch.device("cpu"), "precision": "float32", "only": ()}


def test_the_command_writes_a_page_and_says_what_failed(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(
        sys, "argv", ["gpu_check", "--parts", "tests", "paper", "--device", "cpu", "--folder", str(tmp_path)]
    )
    monkeypatch.setitem(gpu_check.PARTS, "paper", lambda _: gpu_check.Part("too slow", passed=False))
    with pytest.raises(SystemExit) as ended:
        gpu_check.main()
    page = (tmp_path / "record.md").read_text()
    assert page.startswith("# GPU check: no GPU")
    assert "## tests: passed" in page
    assert "## paper: FAILED" in page
    assert page.endswith("too slow\n")
    assert ended.value.code == 1
    assert "something FAILED" in capsys.readouterr().out


def test_scores_are_held_to_the_bound(monkeypatch, tmp_path) -> None:
    recorded = {"a": "x/f1 0.5, x/perplexity 50", "b": "y/f1 0.9", "not made": "z/f1 1"}
    (tmp_path / "frozen.json").write_text(json.dumps({"grid": {"runs": recorded}}))
    monkeypatch.setattr(gpu_check, "CPU_SCORES", tmp_path / "frozen.json")
    found = {"a": {"x/f1": 0.52, "x/perplexity": 51.0}, "b": {"y/f1": 0.9}}
    monkeypatch.setattr(gpu_check, "scores_of", lambda run: found[run.name])
    for run in found:
        (tmp_path / run).mkdir()
        (tmp_path / run / "report.json").touch()
    text, held = gpu_check.beside_cpu(tmp_path)
    assert held
    assert "3 scores of 2 runs" in text
    assert "median distance 0.020" in text
    found["b"]["y/f1"] = 0.6
    text, held = gpu_check.beside_cpu(tmp_path)
    assert not held
    assert "the largest 0.30 (b y/f1)" in text


def test_a_killed_command_of_a_training_is_ended_with_its_children(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(gpu_check, "_history", lambda _: [{"step": gpu_check.KILLED_AT}])
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    )
    gpu_check._kill_when(process, tmp_path)
    assert process.returncode == -9


@pytest.mark.usefixtures("memory_measured")
def test_every_papers_settings_are_estimated_and_measured(monkeypatch) -> None:
    """In this process and with a fixed rate, for time."""
    monkeypatch.setattr(gpu_check, "measured_rate", lambda _: 1e9)
    part = gpu_check.paper(SimpleNamespace(**CPU))
    assert part.passed
    assert len(part.text.splitlines()) == 2 + len(list(gpu_check.settings())) + 2
    assert "| CDLM, pretraining | 2 x 512 |" in part.text


@pytest.mark.slow
@pytest.mark.parametrize("part", ["resume", "benchmark", "notebooks"])
def test_the_other_parts_pass_on_a_cpu(part: str, tmp_path) -> None:
    given = SimpleNamespace(**CPU | {"folder": tmp_path, "only": ["base"]})
    found = gpu_check.PARTS[part](given)
    assert found.passed, found.text
