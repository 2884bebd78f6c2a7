"""Views of paragraph pretraining (Di Liello et al. 2022, section 3.4): an example, sentence by sentence, and
the course of both losses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from cdlm_lab.views import html
from cdlm_lab.views.charts import lay_out
from cdlm_lab.views.html import CROSS, GLOBAL, MASKED, TEXT, escaped, muted, table_html
from cdlm_lab.views.live_curve import smoothed, thinned
from cdlm_lab.views.packed import TOKEN_STYLE, MarkedTokens, legend_of, mask_entries, tokens_html

_RIGHT = f'<span style="color:{CROSS};font-weight:600">\u2713&nbsp;1</span>'
_LABELS = {None: "", 0: "0", 1: _RIGHT}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSentence:
    """A sentence of a paragraph pretraining example."""

    source: str  # where the sentence comes from, relative to s_0, in words
    document: str  # id of its document
    label: int | None  # 1 = from the same paragraph as s_0, 0 = not; None = it is s_0 itself
    cut: int = 0  # number of its tokens that were truncated
    probability: float | None = None  # predicted probability of label 1, in [0, 1]; None = not predicted

    def __post_init__(self) -> None:
        if self.label not in _LABELS:
            raise ValueError(f"the label is {self.label}; it must be 0 or 1, or None of s_0")
        if self.cut < 0:
            raise ValueError(f"{self.cut} tokens are cut; there must be 0 or more")
        if self.probability is not None:
            html.check_between("the probability", self.probability)


@dataclass(frozen=True, kw_only=True, eq=False)
class ParagraphExampleView:
    """A paragraph pretraining example, which a notebook displays as the last value of a cell: a legend, then
    a row for each sentence with its source, its label, its predicted probability if any sentence has one, and
    its words."""

    marked: MarkedTokens  # the tokens of the sequence, and which of them are masked
    sentence: np.ndarray  # int (tokens,), index of each token's sentence, from 0
    sentences: Sequence[TaskSentence]  # s_0 ... s_k
    title: str  # headline (untrusted text)

    def __post_init__(self) -> None:
        lengths = len(self.marked.tokens), len(self.sentence)
        if lengths[0] != lengths[1]:
            raise ValueError(f"there are {lengths[0]} tokens, but the sentences of {lengths[1]}")
        if wrong := sorted({int(n) for n in self.sentence if not 0 <= n < len(self.sentences)}):
            raise ValueError(f"a token is of sentence {wrong[0]}; there are {len(self.sentences)}, from 0")

    def __repr__(self) -> str:
        return f"ParagraphExampleView({len(self.marked.tokens)} tokens, {len(self.sentences)} sentences)"

    def _repr_html_(self) -> str:
        judged = any(sentence.probability is not None for sentence in self.sentences)
        probability = ["probability"] if judged else []
        columns = ["", "comes from", "label", *probability, "what the model reads", "tokens"]
        rows = [self._row(number, judged) for number in range(len(self.sentences))]
        table = table_html(columns, rows, text_columns=range(len(columns) - 1))
        body = html.headline(self.title) + legend_of(mask_entries(self.marked)) + table
        return html.view_html("packed", body, width=1100, style=TOKEN_STYLE)

    def _row(self, number: int, judged: bool) -> list[str]:
        sentence, positions = self.sentences[number], np.flatnonzero(self.sentence == number).tolist()
        bar = "" if sentence.probability is None else html.share_bar(sentence.probability)
        source = html.span(escaped(sentence.source), "white-space:nowrap")
        return [
            f"s<sub>{number}</sub>",
            source + muted(f"<bdi>{escaped(html.shown_id(sentence.document))}</bdi>"),
            _LABELS[sentence.label],
            *([bar] if judged else []),
            f'<div class="cdlm-text" dir="auto">{tokens_html(self.marked, positions)}</div>',
            f"{len(positions):,}{muted(f'{sentence.cut:,}&nbsp;cut') if sentence.cut else ''}",
        ]


# loss -> its title and its unit
_LOSSES = {
    "mlm": ("masked words (MLM)", "nats for each masked token"),
    "mspp": ("candidates of the same paragraph (MSPP)", "nats for each candidate"),
}


def pretraining_losses_figure(records: Sequence[Mapping[str, Any]], *, right: float) -> go.Figure:
    """Plot the MLM loss and the MSPP loss, which predicts the sentences of the same paragraph (Di Liello et
    al. 2022, section 3.4). Lines: training, smoothed; diamonds: validation; dashed: the MSPP loss of a model
    that always predicts the probability `right`, the proportion of candidates of the same paragraph, such as
    k_1 / k. The MLM loss is omitted if nothing was masked, so that it is 0 throughout.

    `records` of a run have `step` with `loss_mlm` and `loss_mspp`, or with `eval_loss_mlm` and
    `eval_loss_mspp`; missing values and None are ignored. ValueError: neither loss has values."""
    if not 0 < right < 1:
        raise ValueError(f"right is {right}; the share of right candidates lies in (0, 1)")
    courses = {
        loss: (_course(records, f"loss_{loss}"), _course(records, f"eval_loss_{loss}")) for loss in _LOSSES
    }
    if not any(steps for both in courses.values() for steps, _ in both):
        raise ValueError("there is nothing to show: neither loss has numbers")
    if not any(value for _, losses in courses["mlm"] for value in losses):
        del courses["mlm"]
    titles = [_LOSSES[loss][0] for loss in courses]
    last = len(courses)
    figure = make_subplots(rows=last, cols=1, shared_xaxes=True, vertical_spacing=0.09, subplot_titles=titles)
    diamonds = {"color": GLOBAL, "size": 9, "symbol": "diamond"}
    validated = {"mode": "lines+markers", "line": {"color": GLOBAL, "width": 1.4}, "marker": diamonds}
    lines = {"mode": "lines", "line": {"color": MASKED, "width": 2.2}}
    for row, (loss, ((steps, losses), validation)) in enumerate(courses.items(), start=1):
        average, chosen = smoothed(losses), thinned(len(losses))
        trained = [steps[i] for i in chosen], [average[i] for i in chosen]
        for kind, (x, y), style in (
            ("training, smoothed", trained, lines),
            ("validation", validation, validated),
        ):
            hover = f"{loss.upper()}, {kind.split(',')[0]}<br>step %{{x:,}}: %{{y:.3f}}<extra></extra>"
            in_legend = {"name": kind, "legendgroup": kind, "showlegend": row == 1}  # one for both losses
            y = [round(float(value), 4) for value in y]
            figure.add_scatter(x=x, y=y, hovertemplate=hover, row=row, col=1, **in_legend, **style)
        figure.update_yaxes(title_text=_LOSSES[loss][1], row=row, col=1)
    ignorant = -right * math.log(right) - (1 - right) * math.log(1 - right)
    line = {"color": TEXT, "width": 1.2, "dash": "dash"}
    note = {"text": f"always guessing {right:.0%}: {ignorant:.2f}", "font": {"size": 11.5}}
    figure.add_hline(y=ignorant, row=last, col=1, line=line, annotation=note, annotation_position="top right")
    figure.update_xaxes(title_text="optimiser step", row=last, col=1)
    title = "The two losses of pretraining" if last == 2 else "The loss of pretraining"
    return lay_out(figure, title=title, height=150 + 205 * last, margin_t=104, legend_y=1 + 0.1 / last)


def _course(records: Iterable[Mapping[str, Any]], key: str) -> tuple[list[int], list[float]]:
    known = [record for record in records if record.get(key) is not None]
    return [int(record["step"]) for record in known], [float(record[key]) for record in known]
