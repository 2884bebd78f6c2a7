"""Errors whose message says all that a person needs: a notebook shows that line alone, without a traceback.

Outside IPython they behave like any other exception, and `%debug` still goes to where they were raised.
"""

from __future__ import annotations

from collections.abc import Iterable


class PlainError:
    """Mixed into exceptions whose message says what is wrong, where, and what to do."""

    def _render_traceback_(self) -> list[str]:
        """Called by IPython in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class Stopped(PlainError, KeyboardInterrupt):
    """Work was asked to stop and has saved what it did; the message says where, and how to go on."""


def check_choice(what: str, value: object, known: Iterable[object]) -> None:
    """Raise ValueError, with the values there are, unless `value` is one of them; `what` it is the value
    of."""
    if value not in known:
        raise ValueError(f"unknown {what} {value!r}; choose one of {', '.join(map(str, known))}")


def check_least(least: int = 1, /, **values: float) -> None:
    """Raise ValueError for the first of the named numbers that is below `least`."""
    for name, value in values.items():
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
