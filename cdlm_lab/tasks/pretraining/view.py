"""What notebooks 00, 01 and 02 show: facts before the start, a training example, perplexities, and what the
tour leaves behind."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from cdlm_lab.data.files import named, replaced_file
from cdlm_lab.encoders.language_model import CrossDocumentLM
from cdlm_lab.encoders.model_folder import MODEL_FOLDER
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.encoders.variants import variant_name
from cdlm_lab.examples.cross_document import CrossDocumentExamples
from cdlm_lab.metrics.paired import SURE
from cdlm_lab.runs.report import Report
from cdlm_lab.runs.runs import write_page
from cdlm_lab.runs.scores import Score
from cdlm_lab.tasks.pretraining.experiment import PretrainingRun, cost_of_step, loss_of_text
from cdlm_lab.tasks.pretraining.perplexity import METRICS, PerplexityRun, Settings, cluster_losses
from cdlm_lab.tasks.pretraining.tour import TourRun
from cdlm_lab.views import html
from cdlm_lab.views.before_training import cost_in_words, facts_table, time_taken
from cdlm_lab.views.charts import lay_out, logarithmic_ticks, variant_label
from cdlm_lab.views.figures import figure_html, figure_scripts, folder_of, keep_figure
from cdlm_lab.views.html import escaped, paper_order, seconds_in_words, still_page, variant_colours
from cdlm_lab.views.packed import DocumentLoss, PackedPreview
from cdlm_lab.views.score_tables import Layout, score_table
from cdlm_lab.views.tables import (
    PERPLEXITY,
    Cell,
    ScoreTable,
    Shown,
    measured,
    p_text,
    published,
    seeds,
    text_table,
)
from cdlm_lab.views.tables import counted as counted_items


def _tokens(report: Report, *_: str) -> tuple[int, str]:
    score = next(score for score in report.rows if score.n)
    return score.n or 0, f"{score.clusters:,} clusters, {score.n:,} masked tokens"


_CROSSING = "cross_document_perplexity"
LAYOUT = Layout(
    shown=[
        measured("perplexity", "perplexity", PERPLEXITY, with_p=True, lower=True),
        measured("on cross-document tokens", _CROSSING, PERPLEXITY, with_p=True, lower=True),
        counted_items("cross-document tokens", _CROSSING),
        seeds(),
        published(
            "Multi-News",
            ("cdlm", "1"),
            columns=("validation perplexity", "test perplexity"),
            below="paper: validation / test",
        ),
    ],
    size=_tokens,
    note="Lower is better.",
    test="p: paired test against the next row.",
    split="",
    first="variant",
)


KINDS = dict(zip(METRICS, ("all", "cross-document"), strict=True))
TEXT_FILE, PAGE_FILE = "results.txt", "results.html"  # inside the run folder: the results


SHORT_FILE = "summary.txt"  # what a terminal shows of a tour, as it goes on
REAL_MODEL = "news/cdlm"
_HIDDEN = "Three workers died on Sunday in a fire at a paper mill in [MASK], police said."
_OTHER = "A fire at the Halden paper mill in Norway killed three workers on Sunday."


def preview(prepared: PretrainingRun | PerplexityRun | TourRun) -> Shown:
    """The main facts about a run before it starts; of a training also its first example."""
    table = facts_table(facts(prepared))
    if not isinstance(prepared, PretrainingRun):
        return table
    example = example_view(prepared)
    return Shown(table.data + example._repr_html_(), f"{table!r}\n{example!r}")


def facts(prepared: PretrainingRun | PerplexityRun | TourRun) -> list[tuple[str, str]]:
    """The rows of the table in `preview`, as (name, text)."""
    if isinstance(prepared, PretrainingRun):
        return _facts_of_pretraining(prepared)
    return _facts_of_tour(prepared) if isinstance(prepared, TourRun) else _facts_of_perplexity(prepared)


def _facts_of_pretraining(prepared: PretrainingRun) -> list[tuple[str, str]]:
    """The main facts about a training before it starts, as (name, text)."""
    counts, training = prepared.train_split.counts, prepared.settings.training
    passed_over = prepared.train_split.passed_over
    sizes = ", ".join(f"{n} documents: {count:,}" for n, count in counts.documents_per_cluster.items())
    examples = training.steps * training.batch_size
    return [
        (
            "clusters",
            f"{counts.clusters_kept:,} for training ({sizes}); {counts.clusters_dropped:,} dropped "
            f"for having fewer than {counts.minimum_documents} documents",
        ),
        *([("files passed over", named(passed_over))] if passed_over else []),
        ("held out", f"{prepared.validation_split.counts.clusters_kept:,} clusters"),
        ("text", str(loss_of_text(prepared))),
        ("weights", f"{prepared.model.num_parameters():,}"),
        ("precision", precision_in_words(training.precision)),
        (
            "training",
            f"{training.steps:,} steps of {training.batch_size} examples, "
            f"about {examples * prepared.settings.max_length:,} tokens",
        ),
    ]


def _facts_of_perplexity(prepared: PerplexityRun) -> list[tuple[str, str]]:
    """The models, the clusters they read, and the expected time, from timing one batch of the first model."""
    settings = prepared.settings
    _, model, examples, split = next(prepared.models_and_examples())
    counts = split.counts
    clusters = (
        f"{counts.clusters_kept:,} of {settings.corpus}, {settings.split}; {counts.clusters_dropped:,} "
        f"dropped for having fewer than {counts.minimum_documents} documents"
    )
    models = ", ".join(f"{name} ({where})" for name, where in settings.checkpoints.items())
    taken = time_taken(prepared) or [("time", _time_in_words(settings, model, examples))]
    return [("models", models), ("clusters", clusters), *taken]


def _time_in_words(settings: Settings, model: CrossDocumentLM, examples: CrossDocumentExamples) -> str:
    batch = [examples[number] for number in range(min(settings.batch_size, len(examples)))]
    for _ in range(2):  # the first forward pass is slower than all others
        start = time.perf_counter()
        cluster_losses(model, batch, batch_size=len(batch), precision=settings.precision, name="one batch")
    readings = len(examples) * len(settings.checkpoints)
    seconds = (time.perf_counter() - start) / len(batch) * readings
    return f"{readings:,} readings of a cluster: about {seconds_in_words(seconds)}"


def _facts_of_tour(prepared: TourRun) -> list[tuple[str, str]]:
    """What the base reads and how long its training takes, from timing one batch; a step of the others takes
    as long or slightly longer. For a finished run, the time it took."""
    if taken := time_taken(prepared):
        return taken
    base = PretrainingRun.read(prepared.variants["longformer"], cache=prepared.cache)
    facts = _facts_of_pretraining(base)
    others = f"{len(prepared.variants) - 1} models from it, {prepared.settings.steps:,} steps each"
    facts.append(("the base", cost_in_words(base.job(), items="examples")))
    return [*facts, ("then", others)]


def example_view(prepared: PretrainingRun, *, index: int = 0) -> PackedPreview:
    """A picture of a training example: masked and global tokens, cut text, estimated memory and time."""
    example = prepared.train_examples.describe(index)
    packed = example.packed
    lost = zip(example.document_ids, packed.lost_tokens, packed.reasons, strict=True)
    documents = [DocumentLoss(title=name, cut=cut, reason=why) for name, cut, why in lost]
    memory, seconds = cost_of_step(prepared)
    return PackedPreview.of(
        prepared.tokenizer,
        packed.input_ids,
        read=example.input_ids,
        masked=example.masked,
        document=packed.document,
        global_=example.global_,
        special=packed.is_special,
        documents=documents,
        cross_document=example.cross_document,
        title=f"{prepared.settings.variant} on {prepared.settings.corpus}",
        memory_bytes=memory,
        step_seconds=seconds,
    )


def summary(report: Report) -> str:
    """The perplexities of a report with their intervals, and the number of training tokens, as text."""
    lines = [
        f"{row.system}/{row.metric}: {row.value:.2f} [{row.low:.2f}, {row.high:.2f}], "
        f"{row.n:,} masked tokens of {row.clusters} clusters"
        for row in report.rows
        if row.low is not None
    ]
    (tokens,) = (row.value for row in report.rows if row.metric == "training_tokens")
    model = Path(report.parameters["run_folder"]) / MODEL_FOLDER
    return "\n".join([*lines, f"trained on {tokens:,} tokens; model: {model}"])


def figure_view(report: Report, *, title: str = "") -> go.Figure:
    """The perplexities with their intervals, one panel per metric."""
    parameters = report.parameters
    figure = perplexity_figure(report.rows, title=title or f"{parameters['corpus']}, {parameters['split']}")
    return keep_figure(folder_of(report), "perplexity", figure)


def table_view(report: Report) -> ScoreTable:
    """The score table, with the paper's Table 1 beside it."""
    return score_table(report, LAYOUT)


def headline(report: Report) -> str:
    """The result in a sentence: CDLM against Local CDLM with interval and p, undecided from p = 0.05 on; ""
    if one was not measured."""
    if not (rows := report.tables.get("headline")):
        return ""
    (row,) = rows
    tokens = "hidden words"
    if row["kind"] != "perplexity":
        tokens = "hidden names and numbers that only another document states"
    of_kind = {one.system: one for one in report.rows if one.metric == row["kind"]}
    numbers = [PERPLEXITY.write([of_kind[row[side]].value])[0] for side in ("a", "b")]
    sign, side = (-1, "lower") if row["difference"] <= 0 else (1, "higher")
    known = (row[name] for name in ("difference", "low", "high") if row[name] is not None)
    factor, *bounds = (math.exp(sign * one) for one in known)
    within = "interval {:.2f} to {:.2f}".format(*sorted(bounds)) if bounds else "interval unknown"
    amount = f"by a factor of {factor:.2f}" if f"{factor:.2f}" != "1.00" else "by less than 1%"
    p = p_text(row["p"])
    chance = "" if row["p"] < SURE else ", undecided, as it may be chance"
    return (
        f"On {tokens}, {variant_name(row['a'])} has a perplexity of {numbers[0]} and "
        f"{variant_name(row['b'])} one of {numbers[1]}: {side} {amount}{chance} (95% "
        f"{within}, p {p if '<' in p else f'= {p}'}, "
        f"{of_kind[row['a']].clusters} clusters)."
    )


def comparisons(report: Report) -> ScoreTable:
    """The tests between neighbouring variants, over all clusters and by their number of documents."""
    rows: dict[tuple[str, ...], dict[str, Cell]] = {}
    for row in [*report.tables["comparisons"], *report.tables.get("by_documents", [])]:
        group = "{documents} documents ({clusters} clusters)" if "documents" in row else "all clusters"
        names = (variant_name(row["a"]), variant_name(row["b"]), KINDS[row["kind"]])
        cell = Cell(text=f"{row['difference']:+.3f}", below="[{low:+.3f}, {high:+.3f}]".format(**row))
        rows.setdefault(names, {})[group.format(**row)] = cell
    groups = list(dict.fromkeys(chain.from_iterable(rows.values())))
    columns = ["variant", "against", "hidden words", *groups]
    shown = [[*names, *(cells.get(group, Cell()) for group in groups)] for names, cells in rows.items()]
    return text_table(columns, shown, texts=3, caption="Difference in nats a hidden word; below 0 is better")


def first_result(prepared: TourRun, title: str, report: Report) -> str:
    """A table as text and its result in a sentence, which begin the summary in the run folder."""
    text = f"{title}\n\n{table_view(report).text()}\n\n{headline(report)}\n"
    with replaced_file(prepared.folder / SHORT_FILE) as file:
        file.write(text)
    return text


def real_answer(prepared: TourRun, load: Callable[[str], Any]) -> str:
    """What a model of real news takes a hidden word for, alone and beside another report, in words; they are
    added to the summary. `load`: `cdlm_lab.load`."""
    try:
        model = load(REAL_MODEL)
    except ValueError as error:
        text = f"No answer about real English: {error}"
    else:
        lines = []
        for name, texts in (("alone", [_HIDDEN]), ("beside the other report", [_HIDDEN, _OTHER])):
            words = model.fill(texts).parts[0].words[:3]
            found = ", ".join(f"{one.word} {one.probability:.0%}" for one in words)
            lines.append(f"  {name}: {found}")
        text = f'Real English, read by {REAL_MODEL}. One report: "{_HIDDEN}"\nAnother: "{_OTHER}"\n'
        text += "The hidden word, by probability:\n" + "\n".join(lines)
    _add_to_summary(prepared, text)
    return text


def _add_to_summary(prepared: TourRun, text: str) -> None:
    file = prepared.folder / SHORT_FILE
    before = file.read_text(encoding="utf-8") + "\n" if file.is_file() else ""
    with replaced_file(file) as opened:
        opened.write(f"{before}{text}\n")


def conclude(prepared: TourRun, reports: Mapping[str, Report]) -> str:
    """Write the reports, given as title -> report, into the run folder as text and as a page with figures,
    and the sentence on the last into the summary; returns all sentences and the paths of the files."""
    folder, heads = prepared.folder, []
    texts, parts = [], []
    for title, made in reports.items():
        head, table = headline(made), table_view(made)
        figure = figure_view(made, title=title)
        if head:
            heads.append(f"{title}: {head[0].lower()}{head[1:]}")
        texts.append(f"{title}\n\n{table.text()}\n")
        drawn = figure_html(title, figure)
        parts.append(f"<h2>{escaped(title)}</h2><p>{escaped(head)}</p>{drawn}{table.html()}")
    with replaced_file(folder / TEXT_FILE) as file:
        file.write("\n".join([*texts, *heads, ""]))
    _add_to_summary(prepared, heads[-1] if heads else "No variant was compared.")
    note = f"{folder}; the models of variants in {folder}/VARIANT/model"
    page = still_page("".join(parts), title="The tour", note=note, scripts=figure_scripts())
    write_page(folder / PAGE_FILE, page)
    return "\n".join([*heads, f"tables: {folder / TEXT_FILE}", f"tables and figures: {folder / PAGE_FILE}"])


def perplexity_figure(scores: Iterable[Score], *, title: str = "") -> go.Figure:
    """Plot perplexity (lower is better) and 95% interval per variant, in the paper's order, on a log axis.

    A second panel with the perplexity of cross-document tokens is added if any variant has it. `scores`: rows
    of a report. Raises ValueError if no row is a perplexity.
    """
    named = {(score.metric, score.system): score for score in scores}
    ordered = paper_order(system for metric, system in named if metric == "perplexity")
    if not ordered:
        raise ValueError("there is no variant to show: no row is a perplexity")
    panels = {"all masked tokens": [named["perplexity", variant] for variant in ordered]}
    metric = "cross_document_perplexity"
    if crossing := [named[metric, variant] for variant in ordered if (metric, variant) in named]:
        panels["tokens that another document states too"] = crossing
    table = pd.DataFrame([_dot(one, panel) for panel, of_panel in panels.items() for one in of_panel])
    colours, names = variant_colours(ordered), [variant_label(variant) for variant in ordered]
    looks = {
        "color_discrete_sequence": [colours[variant] for variant in ordered],
        "symbol_sequence": [html.VARIANT_SYMBOLS.get(variant, "circle") for variant in ordered],
        "category_orders": {"variant": names},
    }
    form = {"facet_col": "panel", "facet_col_spacing": 0.06, "text": "number", "hover_name": "words"}
    form |= {"error_x": "above", "error_x_minus": "below", "log_x": True} | looks
    figure = px.scatter(table, x="value", y="variant", color="variant", symbol="variant", **form)
    for trace in figure.data:
        trace.update(error_x={"color": trace.marker.color, "thickness": 2.5, "width": 0})
    look = {"marker_size": 12, "textposition": "top center", "hovertemplate": "%{hovertext}<extra></extra>"}
    figure.update_traces(**look, showlegend=False)
    for column, panel in enumerate(panels, start=1):
        bounds = table[table["panel"] == panel]
        low = (bounds["value"] - bounds["below"]).min() / 1.06
        high = (bounds["value"] + bounds["above"]).max() * 1.06
        numbers = logarithmic_ticks(low, high)
        ends, texts = [math.log10(low), math.log10(high)], [f"{value:,g}" for value in numbers]
        form = {"range": ends, "tickvals": numbers, "ticktext": texts, "matches": None}
        figure.update_xaxes(**form, row=1, col=column)
    # Leave room for the number above the topmost dot.
    form = {"range": [-0.6, len(ordered) - 0.35], "categoryorder": "array", "categoryarray": names[::-1]}
    figure.update_yaxes(**form, title_text="", showgrid=False, ticks="", tickfont_size=14)
    figure.for_each_annotation(lambda one: one.update(text=one.text.partition("=")[2]))
    figure.update_annotations(font_size=13)
    height, margin = 150 + 46 * len(ordered) + (30 if title else 0), {"l": 110, "t": 90 if title else 60}
    return lay_out(figure, title=title, x="perplexity (lower is better)", height=height, margin=margin)


def _dot(score: Score, panel: str) -> dict[str, Any]:
    """A row of the table behind the figure of perplexities."""
    value, name = score.value, variant_label(score.system)
    bounds = (value, value) if score.low is None else (score.low, score.high)
    low, high = (bound if math.isfinite(bound) else value for bound in bounds)
    number, lowest, highest = (PERPLEXITY.write([bound])[0] for bound in (value, *bounds))
    words = f"{name}: {number} ({lowest} to {highest}), {score.n or 0:,} tokens"
    place = {"panel": panel, "variant": name, "value": value, "number": number, "words": words}
    return place | {"above": high - value, "below": value - low}
