"""Figures as files. A run keeps the figures that its notebook shows in `figures/`, as plotly's JSON. They can
be exported as HTML that needs no network, and as plain SVG."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from cdlm_lab.data.files import replaced_file
from cdlm_lab.runs.report import REPORT_FILE, Report, RunError, read_report
from cdlm_lab.views.html import escaped
from cdlm_lab.views.still_figure import figure_image, figure_svg, is_of_this_project
from cdlm_lab.views.text import file_name

FIGURES = "figures"  # name of a folder in the folder of a run
# The camera button above a figure saves it as SVG, in any browser and offline. No button uploads the figure.
CONFIG = {
    "displaylogo": False,
    "showSendToCloud": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
    "toImageButtonOptions": {"format": "svg", "filename": "figure"},
}
_DRAW = "for(const e of document.querySelectorAll('[data-figure]')){const f=JSON.parse(e.dataset.figure);"
_DRAW += f"Plotly.newPlot(e,f.data,f.layout,{json.dumps(CONFIG | {'responsive': True})})}}"
_STILL = "still"  # name of the renderer
_HEIGHT = 420  # pixels of a figure that sets none


@cache
def show_anywhere() -> None:
    """Make the camera button above every later figure of this process save SVG, and put each figure as plain
    SVG beside the interactive one in a notebook, for pages and places where no script runs."""
    if not {"jsonschema", "rfc3987_syntax"} & sys.modules.keys():
        # With the first figure plotly imports jsonschema, which imports, where installed, a grammar of URLs
        # that no figure needs and that takes as long to load as plotly itself. It is hidden meanwhile.
        sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
        with suppress(ImportError):
            import_module("jsonschema")
        del sys.modules["rfc3987_syntax"]
    import plotly.io as pio
    from plotly.io.base_renderers import MimetypeRenderer

    class StillRenderer(MimetypeRenderer):
        def to_mimebundle(self, fig_dict: dict[str, Any]) -> dict[str, str]:
            return {"text/html": figure_image(fig_dict)} if is_of_this_project(fig_dict) else {}

    for name in ("plotly_mimetype", "notebook", "browser"):
        pio.renderers[name].config = CONFIG
    pio.renderers[_STILL] = StillRenderer()
    if "plotly_mimetype" in (names := pio.renderers.default.split("+")):
        pio.renderers.default = "+".join([*names, _STILL])


def folder_of(report: Report) -> Path | None:
    """Return the folder of a report's run; None if that run is no longer where the report says."""
    folder = Path(report.parameters.get("run_folder") or os.devnull)
    try:
        same = (folder / REPORT_FILE).is_file() and read_report(folder).finished == report.finished
    except RunError:
        return None
    return folder if same else None


def keep_figure(folder: str | Path | None, name: str, figure: go.Figure) -> go.Figure:
    """Save a figure as JSON in the folder of the run, if that exists, and return the figure."""
    if folder is not None and Path(folder).is_dir():
        file = Path(folder) / FIGURES / f"{file_name(name, otherwise='figure')}.json"
        file.parent.mkdir(exist_ok=True)
        with replaced_file(file) as opened:
            opened.write(figure.to_json())
    return figure


def kept_figures(folder: Path) -> dict[str, go.Figure]:
    """Return the figures that a run has kept, by name. Raises RunError if a file holds no figure."""
    figures = {}
    for file in sorted((folder / FIGURES).glob("*.json")):
        try:
            figures[file.stem] = go.Figure(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            first = (str(error).strip().splitlines() or [""])[0]
            raise RunError(f"{file} is no figure ({first}): delete it, and run the notebook again") from None
    return figures


def write_figures(figures: Mapping[str, go.Figure], folder: Path) -> None:
    """Write `NAME.html` for each figure, with one copy of plotly's script beside them, and `NAME.svg`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        figure.write_html(folder / f"{name}.html", include_plotlyjs="directory", config=CONFIG)
        (folder / f"{name}.svg").write_text(figure_svg(figure.to_dict()), encoding="utf-8")


def figure_html(name: str, figure: go.Figure) -> str:
    """Return the element for a figure in a page that ends with the scripts of `figure_scripts`."""
    height = figure.layout.height or _HEIGHT
    figure.update_layout(width=None)
    data = escaped(figure.to_json())
    return f'<div data-figure="{data}" title="{escaped(name)}" style="height:{height}px;margin:18px 0"></div>'


def figure_scripts() -> tuple[str, str]:
    """Return the scripts that draw the figures of a page without network: `scripts` of `still_page`."""
    from plotly.offline import get_plotlyjs  # imported here, because it takes a second to load

    return get_plotlyjs(), _DRAW
