"""Views of notebook 08: what is read before training, the losses, the scores on test, single examples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from cdlm_lab.data.clusters import passed_over
from cdlm_lab.data.files import named
from cdlm_lab.data.splits import Split
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.runs.report import Report
from cdlm_lab.runs.scores import plain_name
from cdlm_lab.tasks.joint.paragraph_examples import OTHER_DOCUMENT, SAME_DOCUMENT, SAME_PARAGRAPH
from cdlm_lab.tasks.joint.paragraphs import (
    TF_IDF,
    ParagraphAnswers,
    ParagraphRun,
    ParagraphSplit,
    tokens_cut,
)
from cdlm_lab.views import html
from cdlm_lab.views.before_training import cost_in_words, facts_table
from cdlm_lab.views.charts import lay_out
from cdlm_lab.views.figures import folder_of, keep_figure
from cdlm_lab.views.html import CROSS, GLOBAL, MASKED, escaped, muted, table_html
from cdlm_lab.views.live_curve import smoothed, thinned
from cdlm_lab.views.packed import TOKEN_STYLE, MarkedTokens, legend_of, mask_entries, tokens_html
from cdlm_lab.views.tables import ScoreTable, Shown, text_table

MEASURES = {
    "mspp/called": "candidates called as they are",
    f"mspp/called/{SAME_PARAGRAPH}": "of the same paragraph",
    f"mspp/called/{SAME_DOCUMENT}": "of the same document, another paragraph",
    f"mspp/called/{OTHER_DOCUMENT}": "of other documents",
    "mspp/first": "one of the same paragraph is ranked first",
    f"{TF_IDF}/mspp/first": "by counting common words (TF-IDF)",
    f"mspp/above/{SAME_DOCUMENT}": "above one of the same document, another paragraph",
    f"mspp/above/{OTHER_DOCUMENT}": "above one of another document",
}


def score_table(report: Report) -> ScoreTable:
    """The scores on test with their intervals, the score of chance, and the number of items."""
    scores = {plain_name(row): row for row in report.rows}
    rows = [
        [
            f"\u2003{name}" if key.count("/") > 1 else name,
            f"{score.value:.1%} [{score.low:.1%}, {score.high:.1%}]",
            "" if score.chance is None else f"{score.chance:.0%}",
            f"{score.n:,}",
        ]
        for key, name in MEASURES.items()
        if (score := scores.get(key))
    ]
    if words := scores.get("mlm/perplexity"):
        interval = f"{words.value:.2f} [{words.low:.2f}, {words.high:.2f}]"
        rows.append(["perplexity of masked tokens", interval, "", f"{words.n:,}"])
    return text_table(["test documents", "measured [95%]", "by chance", "of how many"], rows)


def losses_figure(report: Report) -> go.Figure | Shown:
    """Both losses over the steps; a line of text if the opened model came without its history."""
    if not report.tables["history"]:
        return Shown("<p>This model came without the history of its training.</p>")
    figure = pretraining_losses_figure(report.tables["history"], right=report.data["right"])
    return keep_figure(folder_of(report), "losses", figure)


def preview(run: ParagraphRun) -> Shown:
    """What is read, how much of it is cut off, and what training will cost."""
    return facts_table(facts(run))


def facts(run: ParagraphRun) -> list[tuple[str, str]]:
    """Facts about the run before it starts, as (name, text)."""
    given, counts = run.settings, run.splits["train"].examples.counts
    hard, short = given.same_document, counts.short_of_hard
    shortage = (
        f"{short / counts.sources:.0%} of these paragraphs stand in documents with fewer than {hard:,} "
        "sentences elsewhere; what is missing is taken from other documents"
        if short
        else f"each document has {hard:,} or more sentences in other paragraphs"
    )
    held_out = {name: run.splits[name] for name in ("validation", "test")}
    unread, (cut, read) = passed_over(given.corpus), tokens_cut(run)
    return [
        ("for training", _documents_in_words(run.splits["train"])),
        *(
            (name, f"{_documents_in_words(one)}; {len(one.examples):,} examples")
            for name, one in held_out.items()
        ),
        *([("files passed over", named(unread))] if unread else []),
        ("wrong candidates", shortage),
        (
            "too long",
            f"{(cut > 0).mean():.0%} of the sentences are cut to {given.sentence_length:,} tokens, which "
            f"takes {cut.sum() / (cut.sum() + read):.0%} of the text",
        ),
        ("precision", precision_in_words(given.precision)),
        ("training", f"done already, in {given.trained}" if given.trained else _training_in_words(run)),
    ]


def _training_in_words(run: ParagraphRun) -> str:
    given = run.settings
    times = given.steps * given.batch_size / run.splits["train"].examples.counts.sources
    cost = cost_in_words(run.job(), items="examples", parallel=given.parallel)
    return f"{cost}; {times:,.1f} times each paragraph"


def _documents_in_words(split: ParagraphSplit) -> str:
    counts = split.counts
    left_out = counts.documents_read - counts.documents_kept
    without = f" ({left_out:,} without)" if left_out else ""
    return (
        f"{counts.documents_kept:,} documents with sentences{without}: {counts.paragraphs:,} paragraphs, "
        f"{split.examples.counts.sources:,} of them long enough to ask about, {counts.sentences:,} sentences"
    )


def example(
    run: ParagraphRun, *, split: Split = "train", index: int = 0, answers: ParagraphAnswers | None = None
) -> Shown:
    """s_0 and its candidates: the source of each, its label, masked words, how much of it is cut, and the
    model's prediction if `answers` are given. Raises IndexError if there is no such example."""
    examples = run.splits[split].examples
    one = examples.describe(index)
    form = {"masked": one.mlm_labels >= 0, "read": one.input_ids}
    marked = MarkedTokens.of(run.tokenizer, one.sequence.input_ids, **form)
    labels = [None, *one.labels.tolist()]
    probabilities = [None, *(answers.probabilities[index].tolist() if answers else [None] * len(one.labels))]
    rows = [
        (drawn.kind if number else "this paragraph", drawn.document_id, *of_sentence)
        for number, (drawn, *of_sentence) in enumerate(
            zip(one.sentences, labels, one.sequence.cut.tolist(), probabilities, strict=True)
        )
    ]
    title = f"Example {index + 1:,} of {split}"
    if answers:
        right = bool(one.labels[answers.scores[index].argmax()])
        title += ": the highest score is right" if right else ": a mistake, the highest score is wrong"
    return Shown(example_html(marked, one.sequence.sentence, rows, title=title))


# ---- an example, and the course of both losses ----

_RIGHT = f'<span style="color:{CROSS};font-weight:600">\u2713&nbsp;1</span>'
_LABELS = {None: "", 0: "0", 1: _RIGHT}
# A sentence: where it comes from, seen from s_0; id of its document; 1 = from the paragraph of s_0, 0 = not,
# None = it is s_0; how many of its tokens were cut; the predicted probability of label 1, None = none.
TaskSentence = tuple[str, str, int | None, int, float | None]


def example_html(
    marked: MarkedTokens, sentence: np.ndarray, sentences: Sequence[TaskSentence], *, title: str
) -> str:
    """Return an example of pretraining as HTML: a legend, then a row for each sentence with its source, its
    label, its predicted probability if any has one, and its words. `sentence`: int (tokens,), index of each
    token's sentence; `title`: untrusted text."""
    judged = any(probability is not None for *_, probability in sentences)
    columns = ["", "comes from", "label", *(["probability"] * judged), "what the model reads", "tokens"]
    rows = []
    for number, (source, document, label, cut, probability) in enumerate(sentences):
        positions = np.flatnonzero(sentence == number).tolist()
        bar = "" if probability is None else html.share_bar(probability)
        name = muted(f"<bdi>{escaped(html.shown_id(document))}</bdi>")
        first = [f"s<sub>{number}</sub>", html.span(escaped(source), "white-space:nowrap") + name]
        text = f'<div class="cdlm-text" dir="auto">{tokens_html(marked, positions)}</div>'
        count = f"{len(positions):,}{muted(f'{cut:,}&nbsp;cut') if cut else ''}"
        rows.append([*first, _LABELS[label], *([bar] * judged), text, count])
    table = table_html(columns, rows, text_columns=range(len(columns) - 1))
    body = html.headline(title) + legend_of(mask_entries(marked)) + table
    return html.view_html("packed", body, width=1100, style=TOKEN_STYLE)


# loss -> what its panel is called
_LOSSES = {"mlm": "MLM: nats for each masked token", "mspp": "MSPP: nats for each candidate"}


def _above(figure: go.Figure, middle: float) -> dict[str, Any]:
    """Where the name of a panel stands: above its right end, not turned. `middle`: of its height."""
    domains = [axis.domain for axis in figure.select_yaxes()]
    top = next(high for low, high in domains if low <= middle <= high)
    return {"x": 1, "y": top, "textangle": 0, "xanchor": "right", "yanchor": "bottom"}


def pretraining_losses_figure(records: Sequence[Mapping[str, Any]], *, right: float) -> go.Figure:
    """Plot the MLM loss and the MSPP loss, which predicts the sentences of the same paragraph (Di Liello et
    al. 2022, section 3.4). Lines: training, smoothed, and validation; dashed: the MSPP loss of a model that
    always predicts the probability `right`, the proportion of candidates of the same paragraph, such as
    k_1 / k. The MLM loss is omitted if nothing was masked, so that it is 0 throughout.

    `records` of a run have `step` with `loss_mlm` and `loss_mspp`, or with `eval_loss_mlm` and
    `eval_loss_mspp`; missing values and None are ignored."""
    points = []
    for loss, kind in product(_LOSSES, ("training, smoothed", "validation")):
        key = f"eval_loss_{loss}" if kind == "validation" else f"loss_{loss}"
        known = [(one["step"], one[key]) for one in records if one.get(key) is not None]
        values = [value for _, value in known]
        if any(values):
            values = values if kind == "validation" else smoothed(values)
            chosen = range(len(known)) if kind == "validation" else thinned(len(known))
            points += [(_LOSSES[loss], kind, known[n][0], values[n]) for n in chosen]
    table = pd.DataFrame(points, columns=["loss", "kind", "step", "value"])
    form = {"facet_row": "loss", "color": "kind", "color_discrete_sequence": [MASKED, GLOBAL]}
    figure = px.line(table, x="step", y="value", symbol="kind", **form)
    figure.update_yaxes(matches=None, title_text="")
    for one in figure.layout.annotations:
        one.update(text=one.text.partition("=")[2], **_above(figure, one.y))
    ignorant = -right * math.log(right) - (1 - right) * math.log(1 - right)
    note = {"annotation_text": f"always guessing {right:.0%}: {ignorant:.2f}", "line_dash": "dash"}
    figure.add_hline(y=ignorant, row=1, col=1, **note)  # plotly express counts its rows from below
    panels = table["loss"].nunique()
    form = {"x": "optimiser step", "height": 150 + 205 * panels, "margin_t": 90}
    made = lay_out(figure, title="The loss of pretraining", **form)
    for row in range(2, panels + 1):  # only the lowest panel says what its steps are
        made.update_xaxes(title_text="", row=row, col=1)
    return made
