"""A pile of articles and what was found in it: articles over time, clusters by size, the largest clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cdlm_lab.mining.articles import Article
from cdlm_lab.mining.clusters import Mined
from cdlm_lab.mining.dates import iso
from cdlm_lab.mining.mine import headline
from cdlm_lab.views import html
from cdlm_lab.views.charts import lay_out
from cdlm_lab.views.figures import figure_html, figure_scripts

LARGEST = 10  # clusters whose titles are shown
_TITLES = 5  # of each of them
_MOST_DAYS = 120  # above which months are counted in place of days
_WIDTH = 40  # characters of the longest bar


def over_time(mined: Mined) -> tuple[str, Counter[str], Counter[str]]:
    """The unit, "day" or "month", with the number of articles and of clusters of each, in order of time; a
    cluster counts where it begins. Articles without a date are left out."""
    days = [article.day for article in mined.pile if article.day is not None]
    by_day = not days or max(days) - min(days) <= _MOST_DAYS
    length = len("2018-08-29") if by_day else len("2018-08")
    first = [article.day for cluster in mined.clusters if (article := cluster[0]).day is not None]
    counts = [Counter(iso(day)[:length] for day in sorted(some)) for some in (days, first)]
    return ("day" if by_day else "month"), counts[0], counts[1]


def largest(mined: Mined) -> list[list[Article]]:
    """The largest clusters, of equal ones the earliest first."""
    return sorted(mined.clusters, key=len, reverse=True)[:LARGEST]


def pile_text(mined: Mined) -> str:
    """The figure as text: articles a year (or day), clusters by size, and the titles of the largest."""
    unit, articles, _ = over_time(mined)
    if unit == "month":
        unit, articles = "year", _summed(articles, len("2018"))
    parts = [_bars(f"articles a {unit}", articles)] if articles else []
    sizes = {f"{size} articles": count for size, count in sorted(mined.sizes.items())}
    parts.append(_bars("clusters by size", sizes))
    titles = [line for cluster in largest(mined) for line in _titles(cluster)]
    return "\n\n".join([*parts, "\n".join([f"the {len(largest(mined))} largest clusters", *titles])])


def _summed(counts: Counter[str], length: int) -> Counter[str]:
    summed: Counter[str] = Counter()
    for name, count in counts.items():
        summed[name[:length]] += count
    return summed


def _bars(title: str, counts: dict[str, int]) -> str:
    most, width = max(counts.values()), max(map(len, counts))
    bars = (
        f"  {name:>{width}}  {'#' * max(1, round(_WIDTH * n / most))} {n:,}" for name, n in counts.items()
    )
    return "\n".join([title, *bars])


def _titles(cluster: Sequence[Article]) -> list[str]:
    more = [f"       and {len(cluster) - _TITLES} more"] if len(cluster) > _TITLES else []
    return [f"  {len(cluster)} articles", *(f"       {headline(one)}" for one in cluster[:_TITLES]), *more]


def pile_figure(mined: Mined) -> go.Figure:
    """Articles and clusters over time, and clusters by size, as bars."""
    unit, articles, clusters = over_time(mined)
    figure = make_subplots(rows=1, cols=2, column_widths=[0.68, 0.32], horizontal_spacing=0.1)
    for name, counts, colour in (("articles", articles, html.HUES[0]), ("clusters", clusters, html.HUES[1])):
        bars = go.Bar(x=list(counts), y=list(counts.values()), name=name, marker_color=colour)
        figure.add_trace(bars, row=1, col=1)
    sizes = sorted(mined.sizes.items())
    labels, numbers = [str(size) for size, _ in sizes], [count for _, count in sizes]
    by_size = go.Bar(x=labels, y=numbers, marker_color=html.HUES[1], showlegend=False)
    figure.add_trace(by_size, row=1, col=2)
    lay_out(
        figure, title=f"{len(mined.pile):,} articles, {len(mined.clusters):,} clusters", barmode="overlay"
    )
    figure.update_xaxes(title_text=unit, row=1, col=1)
    figure.update_xaxes(title_text="articles of a cluster", type="category", row=1, col=2)
    return figure.update_yaxes(title_text=f"a {unit}", row=1, col=1)


def pile_page(mined: Mined, *, title: str) -> str:
    """The figure and the titles of the largest clusters as a page that loads nothing."""
    groups = [
        f"<h3>{html.counted(len(cluster), 'article')}</h3><ul>"
        + "".join(f"<li>{html.name_html(headline(article))}</li>" for article in cluster)
        + "</ul>"
        for cluster in largest(mined)
    ]
    body = figure_html("pile", pile_figure(mined)) + "<h2>The largest clusters</h2>" + "".join(groups)
    note = f"{html.counted(len(mined.copies), 'near duplicate')} put aside"
    return html.still_page(body, title=title, note=note, scripts=figure_scripts())
