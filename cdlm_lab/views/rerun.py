"""Widgets of a notebook cell that is run again. ipywidgets keeps every widget until it is closed, and with it
the models that answer in it; so what a cell made before is closed when the same cell runs again."""

from __future__ import annotations

from collections.abc import Callable

from ipywidgets import Widget

Close = Callable[[], None]
_MADE: dict[str, tuple[str, list[Close]]] = {}  # id of a cell -> its last run, and what closes what it made


def running_cell() -> tuple[str, str] | None:
    """The id of the notebook cell that runs now, and of this run of it; None where no front end tells it,
    such as in papermill, which runs a cell once."""
    from IPython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    request = kernel.get_parent("shell") if kernel is not None else {}
    cell = request.get("metadata", {}).get("cellId")
    return (cell, request["header"]["msg_id"]) if cell else None


def close_earlier() -> None:
    """Close what earlier runs of the running cell made."""
    if (running := running_cell()) is None:
        return
    cell, run = running
    earlier, made = _MADE.get(cell, (run, []))
    if earlier != run:
        del _MADE[cell]
        for close in made:
            close()


def close_with_cell(close: Close) -> None:
    """Close what earlier runs of the running cell made, and call `close` when it is run again."""
    close_earlier()
    if (running := running_cell()) is not None:
        cell, run = running
        _MADE.setdefault(cell, (run, []))[1].append(close)


def close_whole(widget: Widget) -> None:
    """Close a widget and all that it consists of, so that neither the front end nor ipywidgets holds it."""
    for part in getattr(widget, "children", ()):
        close_whole(part)
    for name in ("layout", "style"):
        if isinstance(part := getattr(widget, name, None), Widget):
            part.close()
    widget.unobserve_all()
    widget.close()
