"""Figures of words by TF-IDF, after those of the Doc-ARC paper (Joerke et al. 2020, section 5.1): which are
entities, and who tags them better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from cdlm_lab.widgets.figure_parts import (
    lay_out,
    line_styles,
    not_empty,
    plain_text,
    points_in_words,
    short_name,
)
from cdlm_lab.widgets.html import TEXT
from cdlm_lab.widgets.tagging_numbers import WordGain, WordShare, check_number

_SMALL = "font-size:11px"


def shares_by_tf_idf_figure(
    shares: Mapping[str, Sequence[WordShare]],
    *,
    title: str = "Share of words that are entities, by TF-IDF",
) -> go.Figure:
    """Figure 2: the share of words with an entity label, by TF-IDF, a line for each corpus.

    Args:
        shares: name of a corpus -> its words in parts, TF-IDF rising.
        title: shown above (plain text).

    Raises:
        ValueError: nothing to show, a share outside [0, 1].
    """
    shown = not_empty(shares, "shares")
    figure = go.Figure()
    for (name, parts), style in zip(shown.items(), line_styles(len(shown)), strict=True):
        for part in parts:
            check_number(f"{name}: share", part.share)
        label = plain_text(name)
        figure.add_scatter(
            x=[round((part.start + part.stop) / 2, 3) for part in parts],
            y=[round(100 * part.share, 3) for part in parts],
            text=[_between(part) for part in parts],
            name=f"{short_name(name)} (n = {sum(part.words for part in parts):,} words)",
            hovertemplate=f"{label}<br>%{{text}}<br>%{{y:.1f}}% are entities<extra></extra>",
            cliponaxis=False,
            **style,
        )
    lay_out(
        figure, title=title, x="TF-IDF of the word in its document (percentile)", y="share of entities (%)"
    )
    figure.update_xaxes(range=[0, 100], tickvals=[0, 25, 50, 75, 100])
    figure.update_yaxes(rangemode="tozero")
    return figure


def gain_by_tf_idf_figure(
    gains: Mapping[str, Sequence[WordGain]], *, system: str, other: str, title: str = ""
) -> go.Figure:
    """Figure 3: by how much `system` tags words better than `other`, over all words and over entities of
    high TF-IDF; dots with 95% intervals, above zero where `system` is better.

    Args:
        gains: name of a corpus -> its strata, in the order to be drawn; the same strata of each.
        system, other: what to call the two.
        title: shown above (plain text); "" = one that names the two.

    Raises:
        ValueError: nothing to show, or corpora with different strata.
    """
    shown = not_empty(gains, "gains")
    strata = [gain.stratum for gain in next(iter(shown.values()))]
    for name, of_corpus in shown.items():
        if [gain.stratum for gain in of_corpus] != strata:
            raise ValueError(f"{name}: its strata are not {', '.join(strata)}; give the same of each corpus")
    figure = go.Figure()
    width = 0.66 / len(shown)
    for place, ((name, of_corpus), style) in enumerate(
        zip(shown.items(), line_styles(len(shown)), strict=True)
    ):
        offset = (place - (len(shown) - 1) / 2) * width
        figure.add_traces(_gain_traces(name, of_corpus, offset, style, several=len(shown) > 1))
    axis = f"word F1: {short_name(system)} \u2212 {short_name(other)} (points)"
    lay_out(figure, title=title or f"Word F1 of {system} minus that of {other}, by TF-IDF", x="", y=axis)
    figure.update_xaxes(
        tickvals=list(range(len(strata))),
        ticktext=[_stratum_label(shown, number) for number in range(len(strata))],
        range=[-0.5, len(strata) - 0.5],
        showgrid=False,
    )
    bounds = [
        100 * bound for of_corpus in shown.values() for gain in of_corpus for bound in (gain.low, gain.high)
    ]
    low, high = min(0.0, *bounds), max(0.0, *bounds)
    room = max(high - low, 0.1) / 20
    figure.update_yaxes(
        zeroline=True, zerolinecolor=TEXT, zerolinewidth=1, range=[low - room, high + 2 * room]
    )
    if len(shown) == 1:
        figure.update_layout(showlegend=False, margin_t=60)
    return figure


def _gain_traces(
    name: str, gains: Sequence[WordGain], offset: float, style: Mapping[str, Any], *, several: bool
) -> list[go.Scatter]:
    """Dots with intervals, and above each interval the number in figures."""
    start = f"{plain_text(name)}, " if several else ""
    places = [round(place + offset, 4) for place in range(len(gains))]
    dots = go.Scatter(
        x=places,
        y=[round(100 * gain.gain, 3) for gain in gains],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [round(100 * (gain.high - gain.gain), 3) for gain in gains],
            "arrayminus": [round(100 * (gain.gain - gain.low), 3) for gain in gains],
            "color": style["line"]["color"],
            "thickness": 2.5,
            "width": 0,
        },
        mode="markers",
        marker={**style["marker"], "size": 11},
        name=short_name(name),
        legendgroup=name,
        hovertext=[f"{start}{_gain_in_words(gain)}" for gain in gains],
        hoverinfo="text",
    )
    numbers = go.Scatter(
        x=places,
        y=[round(100 * gain.high, 3) for gain in gains],
        mode="text",
        text=[points_in_words(gain.gain) for gain in gains],
        textposition="top center",
        textfont={"size": 12},
        cliponaxis=False,
        legendgroup=name,
        hoverinfo="skip",
        showlegend=False,
    )
    return [dots, numbers]


def _gain_in_words(gain: WordGain) -> str:
    mean, low, high = (points_in_words(share) for share in (gain.gain, gain.low, gain.high))
    return f"{plain_text(gain.stratum)}<br>{mean} points ({low} to {high}), n = {gain.words:,} words"


def _stratum_label(gains: Mapping[str, Sequence[WordGain]], number: int) -> str:
    """The name of a stratum, and below it how many words it is of."""
    stratum = plain_text(next(iter(gains.values()))[number].stratum)
    counts = [
        f"{f'{short_name(name)}: ' if len(gains) > 1 else ''}n = {of_corpus[number].words:,}"
        for name, of_corpus in gains.items()
    ]
    return f'{stratum}<br><span style="{_SMALL}">{"<br>".join(counts)}</span>'


def _between(part: WordShare) -> str:
    return f"percentiles {part.start:.0f} to {part.stop:.0f}, n = {part.words:,} words"
