"""The explorer in a notebook, as a page that needs no notebook, no kernel and no network, and as a picture of
it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from cdlm_lab.data.files import replaced_file
from cdlm_lab.widgets.explorer.content import Choices, Content
from cdlm_lab.widgets.explorer.records import Panel, Selection, as_json, packed
from cdlm_lab.widgets.explorer.still import still_html
from cdlm_lab.widgets.html import STILL_POLICY, whole_page

SCRIPTS = ("text", "drawing", "controls", "search", "guesses", "editing", "panel", "pointing", "saving")
SCRIPTS += ("choosing", "main")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WIDTH = 1300  # pixels of a picture
MOST_STORED = 200  # answers that an exported page holds


def _asset(name: str) -> str:
    return (files("cdlm_lab.widgets.explorer") / name).read_text(encoding="utf-8")


# One file after the other; they know nothing of the notebook.
SCRIPT = "\n".join(_asset(f"{name}.js") for name in SCRIPTS)
STYLE = _asset("explorer.css")


def page_html(stored: Mapping[str, Any], *, title: str, picture: bool = False) -> str:
    """A self-contained page, whose policy lets nothing run but the explorer's own script (by its checksum)
    and nothing be fetched.

    `stored` is what the widget would have: documents, options, selection, answer, answers, overview, view.
    `picture`: True = without controls, and the page writes its height where `page_png` reads it."""
    code = f"{SCRIPT}\n{_asset('standalone.js')}\nrenderStored('stored');\n"
    if picture:
        code += "document.documentElement.dataset.height = document.body.scrollHeight;\n"
    policy = f"{STILL_POLICY}; img-src data:"
    data = json.dumps(stored, ensure_ascii=True, allow_nan=False)
    data = data.replace("<", "\\u003c").replace("&", "\\u0026")
    hidden = ".cdlm-x-bar{display:none!important}" if picture else ""
    body = f'<div id="explorer"></div><script type="application/json" id="stored">{data}</script>'
    style = f"{STYLE}body{{margin:16px}}{hidden}"
    return whole_page(body, title=title, policy=policy, style=style, name="cdlm-x-page", scripts=[code])


def page_png(html: str, path: str | os.PathLike[str]) -> None:
    """A picture of a page made with `picture=True`, WIDTH pixels wide, at twice the resolution, drawn by a
    Chromium without a window; `BROWSER_PATH` may name the browser. A RuntimeError if there is none, or it
    drew nothing."""
    browser = os.environ.get("BROWSER_PATH") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise RuntimeError(
            "no Chromium or Chrome found to draw the picture; install one, set BROWSER_PATH, or open the "
            "page and use its 'save as picture'"
        )
    with tempfile.TemporaryDirectory() as folder:
        page, drawn = Path(folder) / "page.html", Path(folder) / "drawn.png"
        page.write_text(html, encoding="utf-8")
        command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
            "--disable-background-networking", "--disable-sync", "--force-device-scale-factor=2",
            f"--user-data-dir={folder}/profile", "--virtual-time-budget=3000",
        ]  # fmt: skip
        written = _run([*command, f"--window-size={WIDTH},900", "--dump-dom", page.as_uri()])
        if height := re.search(r'data-height="(\d+)"', written):
            size = f"--window-size={WIDTH},{int(height[1]) + 40}"
            _run([*command, size, f"--screenshot={drawn}", page.as_uri()])
        if not drawn.exists():
            raise RuntimeError(f"{browser} drew no picture of the page; its page can still be saved as HTML")
        shutil.move(drawn, Path(path).resolve())


def _run(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False).stdout
    except subprocess.TimeoutExpired:
        return ""


def _answer_json(panels: Sequence[Panel]) -> dict[str, Any]:
    return {"panels": as_json(panels)}


class Explorer(anywidget.AnyWidget):
    """Documents side by side; choose words, and see which words of the others go with them.

    Args:
        content: documents and models at first.
        choices: what else can be opened; None = nothing.
        title: of exported pages.
    """

    _esm = f"{SCRIPT}\nexport default {{ render }};\n"
    _css = STYLE

    documents = traitlets.List().tag(sync=True)
    options = traitlets.Dict().tag(sync=True)
    selection = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    overview = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    view = traitlets.Enum(["overview", "words"], default_value="words").tag(sync=True)
    message = traitlets.Unicode().tag(sync=True)
    choices = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    opened = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    refused = traitlets.Unicode().tag(sync=True)  # why what was to be opened last could not be
    shown = traitlets.Int().tag(sync=True)  # goes up when there are other documents or models

    def __init__(
        self,
        content: Content,
        *,
        choices: Choices | None = None,
        title: str = "Where the model looks",
    ) -> None:
        chosen = content.first_selection
        super().__init__(
            documents=[document.for_browser() for document in content.documents],
            options=content.options(),
            selection=chosen.for_browser(),
            view="words" if content.overview is None or chosen.source else "overview",
            choices=choices and choices.for_browser(),
            opened=content.opened and content.opened.for_browser(),
        )
        self.content, self.title = content, title
        self._choices, self._last = choices, self.opened
        self._stored: dict[Selection, Sequence[Panel]] = {}
        self.observe(lambda change: self._on_selection(), names="selection")
        self.observe(lambda change: self._on_view(), names="view")
        self.observe(lambda change: self._on_opened(), names="opened")
        self.on_msg(self._on_message)
        self._on_selection()
        self._on_view()

    def _on_opened(self) -> None:
        if self._choices is None or self.opened == self._last:
            return
        try:
            opened = self._choices.checked(self.opened)
            self.message = "opening\u2026"
            content = self._choices.open(opened)
        except ValueError as error:
            with self.hold_sync():  # what is in sight stays
                self.opened, self.message, self.refused = self._last, "", str(error)
            return
        self._show(content)

    def _show(self, content: Content) -> None:
        """Put other documents or models in place of what is there."""
        self.content, self._stored, self._last = content, {}, content.opened.for_browser()
        with self.hold_sync():
            self.opened, self.refused = self._last, ""
            self.documents = [document.for_browser() for document in content.documents]
            self.options, self.answer, self.overview = content.options(), None, None
            self.view = "words"
            self.selection = content.first_selection.for_browser()
            self._on_selection()
            self.shown += 1

    @property
    def chosen(self) -> Selection:
        """What is chosen now; a ValueError if a browser sent what does not exist."""
        layers, heads = self.options["layers"], self.options["heads"]
        sizes = [len(document.words) for document in self.content.documents]
        return Selection.from_browser(self.selection, sizes=sizes, layers=layers, heads=heads)

    def choose(self, selection: Selection) -> None:
        """Choose from Python, as a click does; errors are raised."""
        self._reply(selection)
        self.set_trait("selection", selection.for_browser())
        self.view = "words"

    def html(self, *, picture: bool = False) -> str:
        """A self-contained page: what is shown now, and what else was asked in this session."""
        stored = {
            "documents": self.documents,
            "options": {**self.options, "exports": False},
            "selection": self.selection,
            "answer": self.answer,
            "answers": [[one.for_browser(), _answer_json(panels)] for one, panels in self._stored.items()],
            "overview": self.overview,
            "view": self.view,
        }
        return page_html(stored, title=self.title, picture=picture)

    def save_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the page."""
        with replaced_file(Path(path)) as file:
            file.write(self.html())
        return Path(path)

    def save_png(self, path: str | os.PathLike[str]) -> Path:
        """Write a picture of what is shown now, as `page_png` does."""
        page_png(self.html(picture=True), path)
        return Path(path)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget, and for where no script runs what it shows at this moment."""
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

    def _on_view(self) -> None:
        if self.view != "overview" or self.overview is not None or self.content.overview is None:
            return
        try:
            matrices = self.content.overview(lambda text: self.set_trait("message", text))
        except ValueError as error:
            self.message = str(error)
            return
        named = zip(self.options["models"], matrices, strict=True)
        self.overview = {"panels": [{"name": name, "matrix": packed(matrix)} for name, matrix in named]}
        self.message = ""

    def _on_message(self, widget: Explorer, content: dict[str, Any], buffers: list[bytes]) -> None:
        if content.get("type") == "export":
            self.send({"type": "export", "name": "explorer.html", "html": self.html()})
