"""Numbers kept on disk: saved when due and at the end, whatever ends it; found again."""

from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.experiments import runs as kept_numbers
from cdlm_lab.experiments.runs import KeptNumbers


def stopped_after_two(numbers: KeptNumbers) -> None:
    numbers.values[1] = (0.5, 0.25)
    numbers.values[2] = (0.5, np.nan)
    raise KeyboardInterrupt


def test_a_stopped_run_finds_what_it_had(tmp_path: Path):
    file = tmp_path / "scores" / "x.npy"
    with pytest.raises(KeyboardInterrupt), KeptNumbers(file, (3, 2)) as numbers:
        stopped_after_two(numbers)
    with KeptNumbers(file, (3, 2)) as numbers:
        assert numbers.missing.tolist() == [0, 2], "a row that is half there is not there"
        assert numbers.values[1].tolist() == [0.5, 0.25]


def test_it_is_saved_when_due_and_not_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "x.npy"
    numbers = KeptNumbers(file, (2,))
    numbers.values[0] = 1
    numbers.save_when_due()
    assert not file.exists()
    monkeypatch.setattr(kept_numbers, "SAVE_SECONDS", -1.0)
    numbers.save_when_due()
    assert np.load(file)[0] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_without_a_file_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with KeptNumbers(None, (2,)) as numbers:
        numbers.values[:] = 1
    assert not list(tmp_path.iterdir())


def test_another_run_is_refused(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.zeros(3, dtype=np.float32))
    with pytest.raises(ValueError, match=r"x\.npy holds numbers of shape \(3,\), but there are \(2,\)"):
        KeptNumbers(tmp_path / "x.npy", (2,))
