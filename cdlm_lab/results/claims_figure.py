"""The papers' claims as one figure: claim by data set, the verdict, and the size of the effect."""

from __future__ import annotations

from pathlib import Path

import plotly.graph_objects as go

from cdlm_lab.results.claims import NO_VERDICT, TOO_SMALL, VERDICTS, claims_of, effect_of
from cdlm_lab.views.charts import lay_out, marks, rows_of_an_axis
from cdlm_lab.views.html import TEXT

# Verdict -> colour (Okabe and Ito) and symbol, so that no verdict is told by its colour alone.
_LOOKS = {
    "holds": ("#009e73", "circle"),
    "does not": ("#d55e00", "x"),
    "undecided": (TEXT, "circle-open"),
    TOO_SMALL: (TEXT, "line-ns-open"),
    NO_VERDICT: (TEXT, "diamond-open"),
}
_NAMES = {NO_VERDICT: "no verdict (made by uncommitted code)"}
_SAME = {"storyworld with MiniLM": "storyworld", "FeverSymmetric": "FM2", "Fool Me Twice": "FM2"}
_BETWEEN = 0.27  # of a column, between the marks of one claim on one data set
_LEAST, _MOST = 7, 19  # diameters in pixels, of no effect and of LARGE points
LARGE = 20.0


def claims_figure(results: Path) -> go.Figure:
    """Plot each measured claim as one mark: its column is the data set, its shape and colour the verdict, its
    size the effect, in points or in percent of a perplexity."""
    claims = claims_of()
    rows = list(dict.fromkeys((one["table"], one["claim"]) for one in claims))
    data = [_data_of(one["corpus"]) for one in claims]
    columns = list(dict.fromkeys(sorted(data, key=lambda name: name != "storyworld")))
    places: dict[str, list[tuple[float, float, float, str]]] = {verdict: [] for verdict in VERDICTS}
    cells = [(rows.index((one["table"], one["claim"])), of) for one, of in zip(claims, data, strict=True)]
    for number, (claim, cell) in enumerate(zip(claims, cells, strict=True)):
        verdict, effect = effect_of(results, claim)
        shift = cells[:number].count(cell) - (cells.count(cell) - 1) / 2
        size = _LEAST + (_MOST - _LEAST) * min(abs(effect), LARGE) / LARGE
        words = f"{claim['claim']}<br>{claim['corpus']}, {claim['measure']}: {verdict}, {effect:+.1f}"
        places[verdict].append((columns.index(cell[1]) + _BETWEEN * shift, cell[0], size, words))
    figure = go.Figure()
    for verdict, found in places.items():
        if found:
            x, y, sizes, words = zip(*found, strict=True)
            colour, symbol = _LOOKS[verdict]
            form = {"color": colour, "symbol": symbol, "size": list(sizes)}
            name = _NAMES.get(verdict, verdict)
            figure.add_trace(marks(x, y, words, mode="markers", name=name, marker=form))
    names = [f"{claim} [{table.replace(',', '')}]" for table, claim in rows]
    upside_down = rows_of_an_axis(names) | {"range": [len(rows) - 0.5, -0.5], "showgrid": True}
    figure.update_xaxes(**rows_of_an_axis(columns))
    figure.update_yaxes(**upside_down)
    form = {"height": 130 + 24 * len(rows), "width": 1240, "margin": {"l": 540, "r": 30, "t": 90, "b": 40}}
    return lay_out(figure, title="What the papers claim, and what we measured", **form)


def _data_of(corpus: str) -> str:
    name = corpus.partition(",")[0]
    return _SAME.get(name, name)
