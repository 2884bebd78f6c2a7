"""Figures as files. A run keeps the figures that its notebook shows, as plotly's JSON, in `figures/`; from
there they become HTML that needs no network, and SVG and PNG, which kaleido draws with a Chrome or Chromium
that is here."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import plotly.graph_objects as go

from cdlm_lab.data.files import replaced_file
from cdlm_lab.report import REPORT_FILE, Report, RunError, read_report
from cdlm_lab.widgets.export.text import file_name
from cdlm_lab.widgets.html import escaped

FIGURES = "figures"  # in the folder of a run
# The camera above a figure saves it as SVG, in any browser and offline.
CONFIG = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
    "toImageButtonOptions": {"format": "svg", "filename": "figure"},
}
_DRAW = "for(const e of document.querySelectorAll('[data-figure]')){const f=JSON.parse(e.dataset.figure);"
_DRAW += f"Plotly.newPlot(e,f.data,f.layout,{json.dumps(CONFIG | {'responsive': True})})}}"
_WIDTH, _HEIGHT = 960, 420  # pixels, of figures that do not say


@cache
def save_as_svg() -> None:
    """From now on the camera above each figure of this process saves SVG."""
    if not {"jsonschema", "rfc3987_syntax"} & sys.modules.keys():
        # With the first figure plotly loads jsonschema, and that, if it can, a grammar of web addresses which
        # takes as long as plotly to load and which no figure needs.
        sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
        with suppress(ImportError):
            import_module("jsonschema")
        del sys.modules["rfc3987_syntax"]
    import plotly.io as pio

    for name in ("plotly_mimetype", "notebook", "browser"):
        pio.renderers[name].config = CONFIG


def folder_of(report: Report) -> Path | None:
    """The folder of the run that a report is of, if it is where the report says."""
    folder = Path(report.parameters.get("run_folder") or os.devnull)
    try:
        same = (folder / REPORT_FILE).is_file() and read_report(folder).finished == report.finished
    except RunError:
        return None
    return folder if same else None


def keep_figure(folder: str | Path | None, name: str, figure: go.Figure) -> go.Figure:
    """The figure; it is kept in the folder of the run, if that is there."""
    if folder is not None and Path(folder).is_dir():
        file = Path(folder) / FIGURES / f"{file_name(name, otherwise='figure')}.json"
        file.parent.mkdir(exist_ok=True)
        with replaced_file(file) as opened:
            opened.write(figure.to_json())
    return figure


def kept_figures(folder: Path) -> dict[str, go.Figure]:
    """Name -> figure of a run. Raises RunError: a file holds something else."""
    figures = {}
    for file in sorted((folder / FIGURES).glob("*.json")):
        try:
            figures[file.stem] = go.Figure(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            first = (str(error).strip().splitlines() or [""])[0]
            raise RunError(f"{file} is no figure ({first}): delete it, and run the notebook again") from None
    return figures


def write_figures(figures: Mapping[str, go.Figure], folder: Path) -> str:
    """`NAME.html` of each, with plotly's script once beside them, and `NAME.svg` and `NAME.png` where they
    can be drawn; says in a line why they cannot, "" if all are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        figure.write_html(folder / f"{name}.html", include_plotlyjs="directory", config=CONFIG)
    if not figures:
        return ""
    if find_spec("kaleido") is None:
        return f"no SVG and PNG: pip install 'cdlm_lab[export]', or click on the camera in {folder}/*.html"
    import kaleido
    from kaleido.errors import BrowserFailedError, ChromeNotFoundError

    try:
        # Without MathJax, which it would load from the network.
        kaleido.start_sync_server(mathjax=False, n=1, silence_warnings=True)
        for name, figure in figures.items():
            for suffix in ("svg", "png"):
                size = {"width": _WIDTH, "height": figure.layout.height or _HEIGHT, "scale": 2}
                image = kaleido.calc_fig_sync(figure, opts={"format": suffix, **size})
                (folder / f"{name}.{suffix}").write_bytes(image)
    except (ChromeNotFoundError, BrowserFailedError):
        return f"no SVG and PNG: they need Chrome or Chromium; or click on the camera in {folder}/*.html"
    finally:
        kaleido.stop_sync_server(silence_warnings=True)
    return ""


def figure_html(name: str, figure: go.Figure) -> str:
    """A figure in a page that ends with `figure_scripts`."""
    height = figure.layout.height or _HEIGHT
    figure.update_layout(width=None)
    data = escaped(figure.to_json())
    return f'<div data-figure="{data}" title="{escaped(name)}" style="height:{height}px;margin:18px 0"></div>'


def figure_scripts() -> tuple[str, str]:
    """What draws the figures of a page that loads nothing: the `scripts` of a `still_page`."""
    from plotly.offline import get_plotlyjs  # here, as it takes a second to load

    return get_plotlyjs(), _DRAW
