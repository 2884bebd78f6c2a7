"""Errors whose message says all that a person needs: a notebook shows that line alone, without a traceback.

Outside IPython they behave like any other exception, and `%debug` still goes to where they were raised.
"""

from __future__ import annotations


class PlainError:
    """Mixed into exceptions whose message says what is wrong, where, and what to do."""

    def _render_traceback_(self) -> list[str]:
        """Called by IPython in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class Stopped(PlainError, KeyboardInterrupt):
    """Work was asked to stop and has saved what it did; the message says where, and how to go on."""
