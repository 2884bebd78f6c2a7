"""The papers' claims as one figure: claim by data set, the verdict, and the size of the effect."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from textwrap import wrap

import plotly.graph_objects as go

from cdlm_lab.results.claims import NO_VERDICT, TOO_SMALL, VERDICTS, claims_of, effect_of
from cdlm_lab.views.charts import lay_out, marks, rows_of_an_axis
from cdlm_lab.views.html import RULE, TEXT

# Verdict -> colour (Okabe and Ito) and symbol, so that no verdict is told by its colour alone.
_LOOKS = {
    "holds": ("#009e73", "circle"),
    "does not": ("#d55e00", "x"),
    "undecided": (TEXT, "circle-open"),
    TOO_SMALL: (TEXT, "line-ns-open"),
    NO_VERDICT: (TEXT, "diamond-open"),
}
_NAMES = {"does not": "does not hold", NO_VERDICT: "no verdict (a fault, or uncommitted code)"}
_SAME = {"storyworld with MiniLM": "storyworld", "FeverSymmetric": "FM2", "Fool Me Twice": "FM2"}
_WIDTH, _LINE = 960, 44  # pixels; characters of a line of a claim
_LEAST, _MOST = 7, 19  # diameters in pixels, of no effect and of LARGE points
LARGE = 20.0
_NO_BREAK = "\u00a0"


def claims_figure(results: Path) -> go.Figure:
    """Plot each measured claim as one mark: its column is the data set, its shape and colour the verdict, its
    size the effect, in points or in percent of a perplexity."""
    claims = claims_of()
    rows = list(dict.fromkeys((one["table"], one["claim"]) for one in claims))
    data = [_data_of(one["corpus"]) for one in claims]
    columns = list(dict.fromkeys(sorted(data, key=lambda name: name != "storyworld")))
    places: dict[str, list[tuple[float, float, float, str]]] = {verdict: [] for verdict in VERDICTS}
    cells = [(rows.index((one["table"], one["claim"])), of) for one, of in zip(claims, data, strict=True)]
    # A column is as wide as the most marks that one claim has on its data set.
    widths = [max(2, *(cells.count(cell) for cell in cells if cell[1] == column)) for column in columns]
    ends = list(accumulate(widths))
    middles = {name: end - width / 2 for name, end, width in zip(columns, ends, widths, strict=True)}
    for number, (claim, cell) in enumerate(zip(claims, cells, strict=True)):
        verdict, effect = effect_of(results, claim)
        shift = cells[:number].count(cell) - (cells.count(cell) - 1) / 2
        size = _LEAST + (_MOST - _LEAST) * min(abs(effect), LARGE) / LARGE
        words = f"{claim['claim']}<br>{claim['corpus']}, {claim['measure']}: {verdict}, {effect:+.1f}"
        places[verdict].append((middles[cell[1]] + shift, cell[0], size, words))
    figure = go.Figure()
    for verdict, found in places.items():
        if found:
            x, y, sizes, words = zip(*found, strict=True)
            colour, symbol = _LOOKS[verdict]
            form = {"color": colour, "symbol": symbol, "size": list(sizes)}
            name = _NAMES.get(verdict, verdict)
            figure.add_trace(marks(x, y, words, mode="markers", name=name, marker=form))
    names = [_in_lines(f"{claim} [{table.replace(', ', _NO_BREAK)}]") for table, claim in rows]
    upside_down = {"range": [len(rows) - 0.5, -0.5], "showgrid": True, "tickfont": {"size": 11}}
    figure.update_yaxes(**rows_of_an_axis(names) | upside_down)
    # Of neighbours one name stands above the other, as names are wider than some columns.
    shown = ["<br>" * (number % 2) + name for number, name in enumerate(columns)]
    across = {"tickvals": list(middles.values()), "ticktext": shown, "range": [0, ends[-1]]}
    figure.update_xaxes(**across, showgrid=False)
    for start, end in zip(ends[::2], ends[1::2], strict=False):
        figure.add_vrect(start, end, fillcolor=RULE, opacity=0.5, line_width=0)
    form = {"height": 150 + 30 * len(rows), "width": _WIDTH, "margin": {"l": 310, "r": 20, "t": 90, "b": 60}}
    return lay_out(figure, title="What the papers claim, and what we measured", **form)


def _in_lines(text: str) -> str:
    """A text in one or two lines, which are about as long as each other."""
    return "<br>".join(wrap(text, max(_LINE, len(text) // 2 + 8), break_on_hyphens=False))


def _data_of(corpus: str) -> str:
    name = corpus.partition(",")[0]
    return _SAME.get(name, name)
