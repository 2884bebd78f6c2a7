"""A share or a probability as a number with a bar below it, and as the depth of a ground."""

from __future__ import annotations

from cdlm_lab.widgets.aligned_sentences import DEEPEST
from cdlm_lab.widgets.theme import GLOBAL


def share_bar(share: float) -> str:
    """A number in [0, 1] in per cent and as a bar, 40 pixels wide."""
    full = f"height:3px;width:{100 * share:.0f}%;background:{GLOBAL}"
    bar = f'<div style="height:3px;background:rgba(128,128,128,0.22)"><div style="{full}"></div></div>'
    return f'<div style="width:40px;font-size:12px;text-align:right">{100 * share:.0f}%{bar}</div>'


def blue_ground(share: float) -> str:
    """CSS of a ground that is the deeper the larger the share, in [0, 1]; text reads on all of them."""
    return f"background:{GLOBAL}{round(255 * DEEPEST * share):02x}"
