"""A real browser for the tests of this folder: Debian's Chromium, controlled by playwright, offline.

apt-get install chromium     # once; then: make test-browser
"""

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 120_000  # timeout in milliseconds, long enough for a busy machine
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OFFLINE = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
OFFLINE += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]


@dataclass
class Watched:
    """A page with a record of what must not happen: requests beyond this machine, dialogs, errors."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def check_quiet(self) -> None:
        assert self.requests == []
        assert self.complaints == []


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: skipped until it is installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OFFLINE, timeout=PATIENCE)
        yield browser
        browser.close()


@pytest.fixture
def new_page(chromium: Any) -> Iterator[Callable[..., Watched]]:
    """Function that opens a page with a fresh profile; requests beyond this machine are blocked and kept."""
    contexts = []

    def open_page(**settings: Any) -> Watched:
        context = chromium.new_context(**({"viewport": {"width": 1400, "height": 1000}} | settings))
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        watched = Watched(context.new_page())

        def refuse(route: Any) -> None:
            watched.requests.append(route.request.url)
            route.abort()

        context.route(re.compile(r"^(?!file:|data:|blob:|https?://127\.0\.0\.1)"), refuse)
        watched.page.on("dialog", lambda box: watched.complaints.append(box.message) or box.dismiss())
        watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        return watched

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Folder of screenshots: the one that CDLM_LAB_PICTURES names, or a folder of the test."""
    folder = Path(os.environ.get("CDLM_LAB_PICTURES", tmp_path / "pictures"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True)
class Jupyter:
    """A separate JupyterLab server: its address, its token and its folder of notebooks."""

    address: str
    token: str
    folder: Path

    def write(self, name: str, *sources: str) -> str:
        """Write a notebook; return the address at which it opens."""
        cells = [
            {"cell_type": "code", "id": f"c{n}", "metadata": {}, "source": source, "outputs": []}
            | {"execution_count": None}
            for n, source in enumerate(sources)
        ]
        metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
        (self.folder / name).write_text(json.dumps(notebook), encoding="utf-8")
        return f"{self.address}/lab/tree/{name}?token={self.token}&reset"


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    pytest.importorskip("jupyterlab", reason="needs JupyterLab: skipped until cdlm_lab[lab] is installed")
    folder = tmp_path_factory.mktemp("jupyter")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    names = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    environ = os.environ | {f"JUPYTER_{name}": str(folder / name.lower()) for name in names}
    for name in ("SETTINGS_DIR", "WORKSPACES_DIR"):
        environ[f"JUPYTERLAB_{name}"] = str(folder / name.lower())
    quiet = folder / "settings_dir/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    quiet.parent.mkdir(parents=True)
    quiet.write_text('{"fetchNews": "false", "checkForUpdates": false}')
    (folder / "notebooks").mkdir()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    command += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder / 'notebooks'}"]
    with (folder / "log.txt").open("w") as log:
        server = subprocess.Popen(command, env=environ, stdout=log, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{address}/api/status?token={token}", server, folder / "log.txt")
        yield Jupyter(address, token, folder / "notebooks")
    finally:
        server.terminate()
        server.wait(30)


def _wait_for(address: str, server: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.3)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")


def run_all_cells(page: Any, address: str, cells: int) -> None:
    """Open a notebook in JupyterLab, run its cells one by one and wait until the last is done."""
    page.goto(address)
    # Wait, as clicks are lost before the kernel is connected.
    page.locator("#jp-main-statusbar", has_text=re.compile(r"\|\s*Idle")).wait_for()
    page.locator(".jp-Cell").first.click()
    for _ in range(cells):
        page.keyboard.press("Shift+Enter")
    page.locator(".jp-InputPrompt", has_text=f"[{cells}]:").wait_for()
