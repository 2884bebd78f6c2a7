"""Progress is visible in a log; the first interrupt waits for the step, the second does not."""

import os
import signal
import threading
from pathlib import Path

import pytest

from cdlm_lab.training.history import STOP_FILE_VARIABLE, TrainingBar, stop_on_signals


def test_the_bar_says_what_is_left_and_how_well_it_goes(capsys: pytest.CaptureFixture[str]):
    bar = TrainingBar(total=10, done=4)
    bar.show(loss=2.34567)
    for _ in range(3):
        bar.advance()
        bar.checking(total=5)
    bar.checked()
    bar.show(perplexity=10.0)
    bar.advance()
    bar.close()
    told = capsys.readouterr().out
    assert "8/10" in told
    assert "loss=2.346, perplexity=10" in told
    assert "validation" in told


def test_the_first_interrupt_is_noted_and_the_second_obeyed(capsys: pytest.CaptureFixture[str]):
    with stop_on_signals() as stop:
        assert stop.signal is None
        assert not stop.asked
        signal.raise_signal(signal.SIGINT)
        assert stop.signal == signal.SIGINT
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert "Stopping after this step" in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_in_another_thread_nothing_is_changed():
    found = []

    def inside() -> None:
        with stop_on_signals() as stop:
            found.append(stop.signal)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert found == [None]


def test_a_file_asks_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STOP_FILE_VARIABLE, str(tmp_path / "stop"))
    with stop_on_signals() as stop:
        assert not stop.asked
        (tmp_path / "stop").touch()
        assert stop.asked
        assert stop.signal is None
