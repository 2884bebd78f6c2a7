"""What a notebook shows of an error whose line says all."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from IPython.core.interactiveshell import InteractiveShell

import cdlm_lab
from cdlm_lab.data.files import DataError
from cdlm_lab.encoders.checkpoint import CheckpointError as ModelError
from cdlm_lab.errors import PlainError, Stopped, interrupts_in_one_line, loading_line
from cdlm_lab.parameters import ParameterError
from cdlm_lab.progress import tracked
from cdlm_lab.runs.report import RunError, open_run
from cdlm_lab.runs.scores import Score
from cdlm_lab.training.checkpoints import CheckpointError

FOLDER = Path(cdlm_lab.__file__).parent
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
    name = "" if isinstance(error, Stopped) else f"{type(error).__name__}: "
    assert (shown.out + shown.err).splitlines() == [f"{name}{error}"]


def interrupted() -> Iterator[int]:
    yield 1
    raise KeyboardInterrupt


def test_an_interrupt_of_our_work_is_one_line(capsys: pytest.CaptureFixture[str]):
    shell = InteractiveShell.instance()
    try:
        shell.user_ns |= {"tracked": tracked, "interrupted": interrupted}
        interrupts_in_one_line("Interrupted: run all cells again to go on.")
        result = shell.run_cell("list(tracked(interrupted(), disable=True))")
        shown = capsys.readouterr()
        assert (shown.out + shown.err).splitlines() == ["Interrupted: run all cells again to go on."]
        assert isinstance(result.error_in_exec, KeyboardInterrupt), "the cells below are not run"
        shell.run_cell("raise KeyboardInterrupt")
        assert "Traceback" in capsys.readouterr().out, "what is not ours looks as ever"
    finally:
        InteractiveShell.clear_instance()


def test_a_line_says_what_an_import_waits_for(monkeypatch: pytest.MonkeyPatch):
    shown, shell = [], InteractiveShell.instance()
    line = SimpleNamespace(update=lambda html: shown.append(html.data))
    monkeypatch.setattr("IPython.display.display", lambda html, display_id: shown.append(html.data) or line)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    try:
        loading_line()
        assert shown == [], "nobody looks on"
        monkeypatch.setenv("JPY_SESSION_NAME", "a.ipynb")
        loading_line()
        assert shown == ["loading PyTorch and the models\u2026"]
        shell.run_cell("1")
        shell.run_cell("2")
        assert shown[1:] == [""], "it goes once"
    finally:
        InteractiveShell.clear_instance()


@pytest.mark.parametrize("package", ["cdlm_lab.tasks", "cdlm_lab.explorer"])
def test_the_packages_of_notebooks_ask_for_both(package: str):
    """Before PyTorch is imported."""
    program = "\n".join(
        [
            "import sys",
            "from IPython.core.interactiveshell import InteractiveShell",
            "import cdlm_lab.errors as errors",
            "shell, asked = InteractiveShell.instance(), []",
            "errors.loading_line = lambda: asked.append('torch' in sys.modules)",
            f"import {package}",
            "assert asked == [False], asked",
            "assert KeyboardInterrupt in shell.custom_exceptions",
        ]
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_another_error_keeps_its_traceback(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]):
    shell.run_cell("1 / 0")
    assert "Traceback" in capsys.readouterr().out
    # `except Exception` does not catch it
    assert issubclass(Stopped, KeyboardInterrupt)
    assert not issubclass(Stopped, Exception)


# ---- commands on a terminal of any encoding ----


def test_every_command_prints_any_sign():
    """Itself, or by the parser that all benchmarks share; a process of a training prints into a pipe."""
    found = set()
    for path in FOLDER.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        takes = re.search(r"^def (main|arguments)\(|^    parser", text, re.MULTILINE)
        if takes and '__name__ == "__main__"' in text and path.parent.name != "training":
            assert re.search(r"\bprint_any_sign\(\)|\btiming\.arguments\(", text), path
            found.add(path.stem)
    assert {"command", "page", "training", "one_run"} <= found


@pytest.mark.parametrize(
    ("arguments", "code"),
    [("show {}", 0), ("show {} --html {}/page.html", 0), ("show {}-none", 2), ("run {}/grid.yaml", 2)],
)
def test_what_a_terminal_cannot_show_is_written_as_its_number(arguments: str, code: int, tmp_path: Path):
    folder = tmp_path / "лес"
    score = Score(metric="f1", value=0.5, system="Ω")
    open_run(folder, name="tiny", parameters={"corpus": "Zażółć"}).write_report(scores=[score])
    command = [sys.executable, "-m", "cdlm_lab.batch.command", *arguments.format(folder, folder).split()]
    environ = os.environ | {
        "PYTHONIOENCODING": "latin-1",
        "PYTHONPATH": str(FOLDER.parent),
        "PYTHONUTF8": "0",
    }
    ended = subprocess.run(command, env=environ, capture_output=True)
    said = (ended.stdout + ended.stderr).decode("latin-1")
    assert ended.returncode == code, said
    assert "\\u043b\\u0435\\u0441" in said
    assert "Traceback" not in said
