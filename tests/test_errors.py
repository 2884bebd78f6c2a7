"""What a notebook shows of an error whose line says all."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

from cdlm_lab.data.files import DataError
from cdlm_lab.errors import PlainError, Stopped
from cdlm_lab.models.checkpoint import CheckpointError as ModelError
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import RunError
from cdlm_lab.training.checkpoints import CheckpointError

ERRORS = [
    DataError("a.txt", "no words", "write some"),
    *(sort("what; what to do") for sort in (ModelError, ParameterError, RunError, CheckpointError, Stopped)),
]


@pytest.fixture(scope="module")
def shell() -> InteractiveShell:
    return InteractiveShell()


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__module__)
def test_a_notebook_shows_the_line_alone(
    error: BaseException, shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
):
    assert isinstance(error, PlainError)
    shell.user_ns["error"] = error
    assert shell.run_cell("raise error").error_in_exec is error
    shown = capsys.readouterr()
    assert (shown.out + shown.err).splitlines() == [f"{type(error).__name__}: {error}"]


def test_another_error_keeps_its_traceback(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]):
    shell.run_cell("1 / 0")
    assert "Traceback" in capsys.readouterr().out
    # `except Exception` does not catch it
    assert issubclass(Stopped, KeyboardInterrupt)
    assert not issubclass(Stopped, Exception)
