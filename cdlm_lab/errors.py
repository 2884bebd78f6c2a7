"""Errors whose message says all that the user needs: a notebook shows it alone, without a traceback.

Outside IPython they behave like any other exception, and `%debug` still opens where they were raised.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any

_OURS = __name__.partition(".")[0]


class PlainError:
    """Mixin for exceptions whose message says what is wrong, where, and what to do about it."""

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython shows instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class Stopped(PlainError, KeyboardInterrupt):
    """Raised when a computation is interrupted; the message says what was kept and how to resume."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def print_any_sign() -> None:
    """Let a command write a sign that the terminal's encoding does not have as its number, such as `\\u2026`,
    where Python would end it with a UnicodeEncodeError. Called first by every command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def interrupts_in_one_line(message: str) -> None:
    """In a notebook, show `message` instead of a traceback when KeyboardInterrupt is raised while code of
    cdlm_lab runs; other interrupts are shown as usual. Outside IPython this does nothing."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return

    def show(
        shell: Any, kind: type, error: BaseException, traceback: TracebackType, tb_offset: int | None = None
    ) -> None:
        if not isinstance(error, Stopped) and _is_ours(traceback):
            error = Stopped(message)
        shell.showtraceback((type(error), error, traceback))

    shell.set_custom_exc((KeyboardInterrupt,), show)


def loading_line() -> None:
    """In JupyterLab (recognised by the variable JPY_SESSION_NAME of its kernels), show that PyTorch is being
    loaded until the cell that imports it ends. Does nothing if torch is imported already."""
    if "torch" in sys.modules or "IPython" not in sys.modules or "JPY_SESSION_NAME" not in os.environ:
        return
    from IPython import get_ipython
    from IPython.display import HTML, display

    line = display(HTML("loading PyTorch and the models\u2026"), display_id=True)
    if (shell := get_ipython()) is None or line is None:
        return

    def clear(*_: object) -> None:
        shell.events.unregister("post_run_cell", clear)
        line.update(HTML(""))

    shell.events.register("post_run_cell", clear)


def _is_ours(traceback: TracebackType | None) -> bool:
    """Whether any frame of the traceback runs code of cdlm_lab."""
    while traceback is not None:
        if str(traceback.tb_frame.f_globals.get("__name__")).partition(".")[0] == _OURS:
            return True
        traceback = traceback.tb_next
    return False


def check_choice(what: str, value: object, known: Iterable[object]) -> None:
    """Raise ValueError, with the name `what` and the values allowed, unless `value` is one of `known`."""
    if value not in known:
        raise ValueError(f"{what} is {value!r}; choose one of {', '.join(map(str, known))}")


def check_least(least: int = 1, /, **values: float) -> None:
    """Raise ValueError for the first of the named numbers that is below `least`."""
    for name, value in values.items():
        if not value >= least:  # true of nan as well
            raise ValueError(f"{name} is {value}; it must be at least {least}")
