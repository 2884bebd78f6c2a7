"""What a run ran on, taken from the machine as it is."""

import resource
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdlm_lab.runs import report as surroundings


def git(folder: Path, *command: str) -> str:
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *command]
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    code = tmp_path / "surroundings.py"
    monkeypatch.setattr(surroundings, "__file__", str(code))
    assert surroundings.git_commit() is None  # no checkout
    code.write_text("a = 1\n")
    git(tmp_path, "init", "-q")
    assert surroundings.git_commit() is None  # somebody else's checkout
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert surroundings.git_commit() == commit
    code.write_text("a = 2\n")
    assert surroundings.git_commit() == f"{commit}-dirty"


@pytest.mark.parametrize(("platform", "expected"), [("linux", 3000 * 1024), ("darwin", 3000)])
def test_peak_memory_is_in_bytes(platform: str, expected: int, monkeypatch: pytest.MonkeyPatch):
    """Linux counts kilobytes, macOS bytes."""
    monkeypatch.setattr(surroundings.sys, "platform", platform)
    usage = SimpleNamespace(ru_maxrss=3000)
    monkeypatch.setattr(surroundings.resource, "getrusage", {resource.RUSAGE_SELF: usage}.get)
    monkeypatch.setattr(surroundings, "_cuda", lambda: None)
    assert surroundings.peak_memory() == {"cpu": expected}


def test_hardware_names_the_processor():
    hardware = surroundings.hardware()
    assert hardware["processor"]
    assert 1 <= hardware["cores_available"] <= hardware["cores"]
