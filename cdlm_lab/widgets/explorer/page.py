"""The explorer as a file: a page that needs no notebook, no kernel and no network, and a picture of it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from cdlm_lab.widgets.html import escaped

SCRIPTS = (
    "text.js",
    "shading.js",
    "arcs.js",
    "controls.js",
    "panel.js",
    "predictions.js",
    "pointing.js",
    "saving.js",
    "main.js",
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def script() -> str:
    """The JavaScript of the widget, one file after the other; they know nothing of the notebook."""
    return "\n".join(_asset(name) for name in SCRIPTS)


def stylesheet() -> str:
    """The CSS of the widget."""
    return _asset("explorer.css")


def page_html(stored: Mapping[str, Any], *, title: str, picture: bool = False) -> str:
    """A self-contained page.

    Its policy lets nothing run but the explorer's own script (by its checksum) and nothing be fetched.

    Args:
        stored: what the widget would have: documents, options, selection, answer, answers, overview, view.
        title: of the page (untrusted text).
        picture: True = without controls, and the page tells its height, for `page_png`.
    """
    code = f"{script()}\n{_asset('standalone.js')}\nrenderStored('stored');\n"
    if picture:
        code += "document.documentElement.dataset.height = document.body.scrollHeight;\n"
    digest = base64.b64encode(hashlib.sha256(code.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    data = (
        json.dumps(stored, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c").replace("&", "\\u0026")
    )
    hidden = ".cdlm-x-bar{display:none!important}" if picture else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">'
        f"<title>{escaped(title)}</title><style>{stylesheet()}body{{margin:16px}}{hidden}</style></head>"
        f'<body class="cdlm-x-page"><div id="explorer"></div>'
        f'<script type="application/json" id="stored">{data}</script><script>{code}</script></body></html>'
    )


def page_png(html: str, path: str | os.PathLike[str], *, width: int = 1300) -> None:
    """A picture of a page made with `picture=True`, by a Chromium that is run for it without a window.

    `BROWSER_PATH` may name the browser.

    Raises:
        RuntimeError: no browser, or it drew nothing.
    """
    browser = os.environ.get("BROWSER_PATH") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise RuntimeError(
            "no Chromium or Chrome found to draw the picture; install one, set BROWSER_PATH, or open the "
            "page and use its 'save as picture'"
        )
    target = Path(path).resolve()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(html, encoding="utf-8")
        command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
            "--disable-background-networking", "--disable-sync", "--force-device-scale-factor=2",
            f"--user-data-dir={folder}/profile", "--virtual-time-budget=3000",
        ]  # fmt: skip
        drawn = Path(folder) / "drawn.png"
        told = _run([*command, f"--window-size={width},900", "--dump-dom", page.as_uri()])
        height = re.search(r'data-height="(\d+)"', told)
        if height:
            size = f"--window-size={width},{int(height[1]) + 40}"
            _run([*command, size, f"--screenshot={drawn}", page.as_uri()])
        if not drawn.exists():
            raise RuntimeError(f"{browser} drew no picture of the page; its page can still be saved as HTML")
        shutil.move(drawn, target)


def _run(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False).stdout
    except subprocess.TimeoutExpired:
        return ""


def _asset(name: str) -> str:
    return (files("cdlm_lab.widgets.explorer") / name).read_text(encoding="utf-8")
