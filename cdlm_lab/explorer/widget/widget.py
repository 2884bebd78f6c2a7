"""The explorer as a notebook widget, and as an HTML page that works without notebook, kernel and network."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from cdlm_lab.data.files import replaced_file
from cdlm_lab.explorer.reading import Panel, Selection
from cdlm_lab.explorer.widget.content import Content, Opened, as_json, selection_from_browser
from cdlm_lab.explorer.widget.still import still_html
from cdlm_lab.views.html import STILL_POLICY, whole_page
from cdlm_lab.views.rerun import close_with_cell

SCRIPTS = ("text", "drawing", "controls", "search", "guesses", "editing", "panel", "pointing", "saving")
SCRIPTS += ("choosing", "main")
MOST_STORED = 200  # most answers that are kept, and that an exported page contains


def _asset(name: str) -> str:
    return (files("cdlm_lab.explorer.widget") / name).read_text(encoding="utf-8")


# The scripts concatenated in this order; none of them depends on the notebook.
SCRIPT = "\n".join(_asset(f"{name}.js") for name in SCRIPTS)
STYLE = _asset("explorer.css")


def page_html(stored: Mapping[str, Any], *, title: str) -> str:
    """Return a self-contained page, whose content security policy allows no script but the explorer's own (by
    its checksum) and no network access.

    `stored`: the state that the widget would hold: documents, options, selection, answer, answers."""
    code = f"{SCRIPT}\n{_asset('standalone.js')}\nrenderStored('stored');\n"
    policy = f"{STILL_POLICY}; img-src data:"
    data = json.dumps(stored, ensure_ascii=True, allow_nan=False)
    data = data.replace("<", "\\u003c").replace("&", "\\u0026")
    body = f'<div id="explorer"></div><script type="application/json" id="stored">{data}</script>'
    style = f"{STYLE}body{{margin:16px}}"
    return whole_page(body, title=title, policy=policy, style=style, name="cdlm-x-page", scripts=[code])


def _closed(selection: Selection) -> Sequence[Panel]:
    raise ValueError("this explorer is closed, since its cell was run again")


def _answer_json(panels: Sequence[Panel]) -> dict[str, Any]:
    return {"panels": as_json(panels)}


class Explorer(anywidget.AnyWidget):
    """Widget that shows documents side by side: the user chooses words and sees which others relate to them.

    Args:
        content: the documents and models that are shown at first.
        open: reads what the user wants next; may raise ValueError, whose one-line message the user sees.
        choices: what that can be: `examples`, lists of key, label, and ids and labels of the documents, and
            `models`, lists of key and label; None = nothing.
        title: title of exported pages.
    """

    _esm = f"{SCRIPT}\nexport default {{ render }};\n"
    _css = STYLE

    documents = traitlets.List().tag(sync=True)
    options = traitlets.Dict().tag(sync=True)
    selection = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    message = traitlets.Unicode().tag(sync=True)
    choices = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    opened = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    refused = traitlets.Unicode().tag(sync=True)  # why the last request to open something failed
    shown = traitlets.Int().tag(sync=True)  # increases by 1 whenever other documents or models are opened

    def __init__(
        self,
        content: Content,
        *,
        open: Callable[[Opened], Content] | None = None,
        choices: dict[str, Any] | None = None,
        title: str = "Where the model looks",
    ) -> None:
        super().__init__(
            documents=[document.for_browser() for document in content.documents],
            options=content.options(),
            selection=as_json(content.first_selection),
            choices=choices,
            opened=content.opened and asdict(content.opened),
        )
        self.content, self.title = content, title
        self._open, self._last = open, self.opened
        self._stored: dict[Selection, Sequence[Panel]] = {}
        self.observe(lambda change: self._on_selection(), names="selection")
        self.observe(lambda change: self._on_opened(), names="opened")
        self.on_msg(self._on_message)
        self._on_selection()
        close_with_cell(self.close)

    def close(self) -> None:
        """Close the widget, and let go of the models behind it."""
        self.unobserve_all()
        self.on_msg(self._on_message, remove=True)
        self._open, self._stored = None, {}
        self.content = replace(self.content, answer=_closed)
        super().close()

    def _on_opened(self) -> None:
        if self._open is None or self.opened == self._last:
            return
        try:
            opened = Opened.from_browser(self.opened, self.choices)
            self.message = "opening\u2026"
            content = self._open(opened)
        except ValueError as error:
            with self.hold_sync():  # the documents that are shown stay
                self.opened, self.message, self.refused = self._last, "", str(error)
            return
        self._show(content)

    def _show(self, content: Content) -> None:
        """Replace the documents and models that are shown."""
        self.content, self._stored, self._last = content, {}, asdict(content.opened)
        with self.hold_sync():
            self.opened, self.refused = self._last, ""
            self.documents = [document.for_browser() for document in content.documents]
            self.options, self.answer = content.options(), None
            self.selection = as_json(content.first_selection)
            self._on_selection()
            self.shown += 1

    @property
    def chosen(self) -> Selection:
        """The current selection. Raises ValueError if the browser sent one that does not exist."""
        layers, heads = self.options["layers"], self.options["heads"]
        sizes = [len(document.words) for document in self.content.documents]
        return selection_from_browser(self.selection, sizes=sizes, layers=layers, heads=heads)

    def choose(self, selection: Selection) -> None:
        """Select from Python, as a click in the browser does; unlike there, errors are raised."""
        self._reply(selection)
        self.set_trait("selection", as_json(selection))

    def html(self) -> str:
        """Return a self-contained page with what is shown now and the other answers of this session."""
        stored = {
            "documents": self.documents,
            "options": {**self.options, "exports": False},
            "selection": self.selection,
            "answer": self.answer,
            "answers": [[as_json(one), _answer_json(panels)] for one, panels in self._stored.items()],
        }
        return page_html(stored, title=self.title)

    def save_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the self-contained page to a file and return its path."""
        with replaced_file(Path(path)) as file:
            file.write(self.html())
        return Path(path)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the widget and, for places where no script runs, its current content as plain HTML."""
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return {**data, "text/html": self._still()}, metadata

    def _still(self) -> str:
        try:
            selection = self.chosen
        except ValueError:  # the message in the widget says why
            selection = Selection()
        panels, documents = self._stored.get(selection, ()), self.content.documents
        form = {"layers": self.options["layers"], "title": self.title}
        return still_html(documents, selection=selection, panels=panels, **form)

    def _on_selection(self) -> None:
        try:
            selection = self.chosen
            if selection.source is not None:
                self._reply(selection)
            self.message = ""
        except ValueError as error:
            self.message = str(error)

    def _reply(self, selection: Selection) -> None:
        if selection not in self._stored:
            self.message = "reading the documents\u2026"
            panels = self.content.answer(selection)
            while len(self._stored) >= MOST_STORED:
                del self._stored[next(iter(self._stored))]
            self._stored[selection] = panels
        self.answer = _answer_json(self._stored[selection])
        self.message = ""

    def _on_message(self, widget: Explorer, content: dict[str, Any], buffers: list[bytes]) -> None:
        if content.get("type") == "export":
            self.send({"type": "export", "name": "explorer.html", "html": self.html()})
