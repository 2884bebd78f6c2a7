"""The whole packed sequence as one narrow picture: where documents begin, where masks and global tokens
lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cdlm_lab.widgets.theme import FONT, TEXT

BINS = 240  # bars a lane: fine enough to see a prefix end, coarse enough for 10 kB
_LEFT, _WIDTH, _LANE, _GAP = 132, 856, 17, 7


def overview_svg(document: np.ndarray, lanes: Sequence[tuple[str, np.ndarray, str]]) -> str:
    """A picture 1,000 units wide with a lane of documents and one lane for each property.

    The height of a bar is the share of the tokens in its place that have the property, the fullest place of a
    lane being full height (with masks at 15% nothing would be seen otherwise).

    Args:
        document: int (seq,), number of the document a token belongs to; -1 = none.
        lanes: (label, bool (seq,) with True = has the property, colour), drawn from top to bottom.

    Raises:
        ValueError: a lane whose length is not that of `document`.
    """
    height = (len(lanes) + 1) * (_LANE + _GAP)
    parts = [_label("documents", 0), *_document_blocks(document)]
    for row, (label, flags, colour) in enumerate(lanes, start=1):
        if len(flags) != len(document):
            raise ValueError(f"lane {label!r} has {len(flags)} tokens, document has {len(document)}")
        parts += [_label(label, row), _ground(row), _bars(np.asarray(flags, bool), row, colour)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 {height}" font-family="{FONT}" '
        f'font-size="12.5" fill="{TEXT}">{"".join(parts)}</svg>'
    )


def _top(row: int) -> int:
    return row * (_LANE + _GAP) + 2


def _label(text: str, row: int) -> str:
    return f'<text x="0" y="{_top(row) + 13}">{text}</text>'


def _ground(row: int) -> str:
    place = f'x="{_LEFT}" y="{_top(row)}" width="{_WIDTH}" height="{_LANE}"'
    return f'<rect {place} rx="2" fill="#808080" opacity=".1"/>'


def _document_blocks(document: np.ndarray) -> list[str]:
    blocks, scale = [], _WIDTH / max(len(document), 1)
    edges = np.flatnonzero(np.diff(document)) + 1
    for start, stop in zip([0, *edges], [*edges, len(document)], strict=True):
        if start == stop or document[start] < 0:
            continue
        x, width = _LEFT + start * scale, (stop - start) * scale
        blocks.append(
            f'<rect x="{x:.1f}" y="{_top(0)}" width="{max(width - 2, 1):.1f}" height="{_LANE}" rx="3" '
            'fill="#808080" opacity=".24"/>'
        )
        if width > 14:
            middle = x + width / 2 - 1
            blocks.append(
                f'<text x="{middle:.1f}" y="{_top(0) + 13}" text-anchor="middle">{document[start] + 1}</text>'
            )
    return blocks


def _bars(flags: np.ndarray, row: int, colour: str) -> str:
    """One path for the lane: a bar wherever any token of the bin has the property."""
    bins = min(BINS, max(len(flags), 1))
    edges = np.linspace(0, len(flags), bins + 1).astype(int)
    counts = np.diff(np.concatenate([[0], np.cumsum(flags)])[edges])
    shares = counts / np.maximum(np.diff(edges), 1)
    step, bottom = _WIDTH / bins, _top(row) + _LANE
    tall = np.maximum(shares / max(shares.max(), 1e-9) * _LANE, 1.5)
    moves = "".join(
        f"M{_LEFT + i * step:.1f} {bottom}v-{tall[i]:.1f}h{step * 0.82:.1f}v{tall[i]:.1f}z"
        for i in np.flatnonzero(shares)
    )
    return f'<path fill="{colour}" d="{moves}"/>'
