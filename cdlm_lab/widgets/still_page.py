"""A page of its own around HTML: it runs nothing, loads nothing, and is light or dark as its reader likes."""

from __future__ import annotations

from cdlm_lab.widgets.markup import escaped
from cdlm_lab.widgets.shown_mention import muted
from cdlm_lab.widgets.theme import FONT

_STYLE = f"""
:root{{color-scheme:light dark}}
body{{font-family:{FONT};margin:24px auto;padding:0 16px;max-width:960px}}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def still_page(body: str, *, title: str, note: str, style: str = "") -> str:
    """The page.

    Args:
        body: HTML that is safe already (see `markup`).
        title: of the page, also shown above (untrusted text).
        note: a line below the title (untrusted text).
        style: CSS beyond that of all pages.
    """
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">'
        f"<title>{escaped(title)}</title><style>{_STYLE}{style}</style></head><body>"
        f'<div style="font-size:20px;font-weight:600"><bdi>{escaped(title)}</bdi></div>'
        f'<div style="margin:2px 0 16px">{muted(escaped(note), size=13)}</div>{body}</body></html>'
    )
