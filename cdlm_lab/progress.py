"""One progress bar for terminals, notebooks and logs.

`tqdm.auto` draws a widget in a notebook, of which nothing reaches the log of a run without a person in front
of it (papermill). This one is text everywhere. On a terminal it moves ten times a second. Elsewhere every
picture of it stays in the log; so there it is drawn every second at first, and then whenever a sixtieth of
the time so far has passed: a day leaves about 500 lines.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")


class Progress(tqdm):
    """tqdm's bar with the pace described above; off a terminal it goes to standard output, which notebooks
    do not paint red. Arguments as of tqdm; count with `update`, or iterate with `tracked`."""

    def __init__(self, **arguments: Any) -> None:
        self._live = sys.stderr.isatty()
        self._began = time.monotonic()
        pace = {"mininterval": 0.1, "dynamic_ncols": True} if self._live else {"mininterval": 1.0}
        super().__init__(file=sys.stderr if self._live else sys.stdout, **pace, **arguments)

    def update(self, n: float | None = 1) -> bool | None:
        """Count `n` more; draw when it is time."""
        if not self._live:
            self.mininterval = max(1.0, (time.monotonic() - self._began) / 60)
        return super().update(n)


def tracked(items: Iterable[Item], **arguments: Any) -> Iterator[Item]:
    """The items, with a bar beside them. `total`: how many there are, if they do not say (0 = unknown)."""
    total = arguments.pop("total", None) or (len(items) if hasattr(items, "__len__") else None)
    with Progress(total=total, **arguments) as bar:
        for item in items:
            yield item
            bar.update(1)
