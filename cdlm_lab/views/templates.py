"""Views as jinja2 templates, each beside the module that fills it. Every text that a template writes is
escaped, its control characters become visible; the parts of `html` are functions there that give HTML."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup

from cdlm_lab.views import html

PACKAGE = Path(__file__).resolve().parents[1]
OF_TEXTS = ("headline", "name_html", "warning", "gold_chip", "sentence_html", "share_bar")
OF_TEXTS += ("right_or_wrong", "tile")
OF_HTML = ("muted", "legend", "fold", "card", "text_box", "unread", "swatches")
WORDS = ("blue_ground", "counted", "shortened", "shown_id", "gap_between")
MARKUP = ("PREDICTED", "GOLD", "BARE", "CELL", "TOP", "LIGHT", "RULED", "HEAD", "RIGHT", "WORD", "NUMBER")
MARKUP += ("ROW",)
CONSTANTS = ("MUTED", "SMALL", "CROSS", "WRONG", "GLOBAL", "SIGNS", "FRAME")


class _OneLine(Extension):
    """Takes the line breaks and indentation of a template out, so that they are no spaces in the view."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return re.sub(r"\s*\n\s*", "", source)


def text(value: object) -> Markup:
    """Return a text as HTML, and HTML as it is."""
    return value if isinstance(value, Markup) else Markup(html.escaped(str(value)))


def _marked(part: Callable[..., str], *, of_html: bool) -> Callable[..., Markup]:
    """The function `part` for templates: what it returns is HTML, and if `of_html` what it takes is, too."""

    @wraps(part)
    def called(*given: Any, **options: Any) -> Markup:
        if of_html:
            given = (*(text(one) if isinstance(one, str) else one for one in given[:1]), *given[1:])
        return Markup(part(*given, **options))

    return called


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=[_OneLine],
        finalize=lambda value: text(value) if isinstance(value, str) else value,
    )
    for names, of_html in ((OF_TEXTS, False), (OF_HTML, True)):
        templates.globals |= {name: _marked(getattr(html, name), of_html=of_html) for name in names}
    templates.globals |= {name: getattr(html, name) for name in (*WORDS, *CONSTANTS)}
    templates.globals |= {name: Markup(getattr(html, name)) for name in MARKUP}
    templates.globals |= {"text": text, "html": Markup}
    templates.filters["text"] = text
    return templates


def view(name: str, template: str, *, width: int = 960, style: str = "", **values: Any) -> str:
    """Return the view `name` of a template, given by its path in the package and what it shows; `width`, in
    pixels, and `style` as for `view_html`."""
    body = _templates().get_template(template).render(values)
    return html.view_html(name, body, width=width, style=style)
