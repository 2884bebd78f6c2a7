"""Errors whose line says all that a person needs: a notebook shows that line alone, without a traceback.

IPython asks an exception for `_render_traceback_`; elsewhere nothing is different, and `%debug` still goes to
where it was raised.
"""

from __future__ import annotations


class Told:
    """Mixed into exceptions whose message says what is wrong, where, and what to do."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class Stopped(Told, KeyboardInterrupt):
    """Work was asked to stop and has kept what it did; the message says where, and how to go on."""
