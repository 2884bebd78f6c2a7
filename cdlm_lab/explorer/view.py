"""What notebook 11 shows of the ranks: what will be read, tables and figures."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
from IPython.display import HTML

from cdlm_lab.encoders.variants import variant_name
from cdlm_lab.explorer.cuts import LOCAL, WHOLE, CutScores
from cdlm_lab.explorer.rank_figures import (
    COREFERRING,
    OTHERS,
    RANK_CELLS,
    head_maps,
    pairs_in_words,
    rank_distributions,
)
from cdlm_lab.explorer.ranks import (
    BASE,
    PAPER,
    SORTS,
    Analysis,
    Measured,
    head_differences,
    seconds_expected,
)
from cdlm_lab.runs.report import Report
from cdlm_lab.runs.scores import Score
from cdlm_lab.views.before_training import facts_table, time_taken
from cdlm_lab.views.figures import keep_figure
from cdlm_lab.views.html import seconds_in_words
from cdlm_lab.views.score_tables import Layout, each, score_table
from cdlm_lab.views.tables import (
    PER_CENT,
    PERPLEXITY,
    POINTS,
    Cell,
    ScoreTable,
    SystemRow,
    number_cell,
    p_text,
    published,
    seeds,
    text_table,
)

RANK_GAPS = {"gap/event": "gap, events", "gap/entity": "gap, entities"}


def _size(report: Report, *_: str) -> tuple[int, str]:
    counts = [row.n for row in report.rows if row.n and not row.metric.startswith("gap/")]
    topics = len(report.data["topics"])
    return sum(counts), f"{pairs_in_words(counts)} of each sort and kind, {topics:,} topics"


LAYOUT = Layout(
    shown=[
        *each(COREFERRING, POINTS),
        *(replace(one, value=None) for one in each(OTHERS, POINTS)),  # none is bold
        *each(RANK_GAPS, POINTS),
        seeds(),
        published("ECB+", ("cdlm", "6"), columns=tuple(RANK_CELLS), below="paper: the first four"),
    ],
    size=_size,
    note="Rank of the second mention among the tokens of its document, by the attention between it and "
    "the first mention: 0 lowest, 100 highest; mean over pairs.",
    test="p: paired test against the next row.",
    split="",
    first="variant",
)


def preview(analysis: Analysis) -> HTML:
    """The main facts about the run before it starts."""
    settings = analysis.settings
    models = ", ".join(f"{variant} ({where})" for variant, where in settings.checkpoints.items())
    facts = [("models", models)]
    for kind, pairs in analysis.pairs.items():
        corefer = sum(pair.corefer for pair in pairs)
        text = f"{corefer:,} that corefer, {len(pairs) - corefer:,} that do not"
        facts.append((f"pairs of {kind} mentions", text))
    facts.append(("from", f"{len(analysis.topics)} topics of {settings.corpus}, {settings.split}"))
    return facts_table([*facts, *(time_taken(analysis) or [_expected(analysis)])])


def _expected(analysis: Analysis) -> tuple[str, str]:
    about = seconds_in_words(seconds_expected(analysis))
    return "time", f"{analysis.readings:,} readings of two documents: about {about}"


def table_view(report: Report) -> ScoreTable:
    """Table 6 beside the paper's, with the mean rank of random spans as long as the targets."""
    chances: dict[str, list[float]] = {}
    for row in report.rows:
        if row.chance is not None:
            chances.setdefault(row.metric, []).append(row.chance)
    random = {metric: Score(metric=metric, value=float(np.mean(of))) for metric, of in chances.items()}
    other = SystemRow(system="random span", label="random span", scores=random)
    return score_table(report, LAYOUT, others=[other])


def gap_view(report: Report) -> ScoreTable:
    """How many points higher the targets of each variant rank if they corefer, and how much that exceeds
    Longformer's gap, one column per kind of mention."""
    gaps: dict[str, list[str | Cell]] = {}
    for row in report.rows:
        if row.metric.startswith("gap/"):
            words = f"{row.value:+.1f} [{row.low:+.1f}, {row.high:+.1f}]"
            gaps.setdefault(row.system, [variant_name(row.system)]).append(words)
    columns = ["points higher if they corefer", "events", "entities"]
    tests = [row for row in report.tables["comparisons"] if row["cell"].startswith("gap/")]
    for row in tests:
        words = f"{row['difference']:+.1f} [{row['low']:+.1f}, {row['high']:+.1f}]"
        gaps[row["a"]].append(Cell(text=words, below=f"p {p_text(row['p_holm'])}"))
    if tests:
        columns += ["above Longformer, events", "above Longformer, entities"]
        gaps[BASE] += [""] * (len(columns) - len(gaps[BASE]))
    return text_table(columns, gaps.values())


def cut_view(scores: CutScores) -> ScoreTable:
    """What attention between documents is worth: each condition's scores with 95% intervals, and how far it
    is from the whole model: of a perplexity the factor."""
    columns = {
        "cross_document_perplexity": ("perplexity of words that only another document has", PERPLEXITY),
        "perplexity": ("perplexity of all hidden words", PERPLEXITY),
        "coreference": ("event pairs right, %", PER_CENT),
        "matching": ("document pairs right, %", PER_CENT),
    }
    shown = [name for name in columns if any(row.metric == name for row in scores.rows)]
    differences = {(row["a"], row["measure"]): row for row in scores.comparisons}
    cells: dict[str, dict[str, Cell]] = {}
    for row in scores.rows:
        form, test = columns[row.metric][1], ""
        if other := differences.get((row.system, row.metric)):
            change, p = other["difference"], p_text(other["p_holm"])
            factor = PERPLEXITY.write([math.exp(change)])[0]
            by = f"\u00d7 {factor}" if form is PERPLEXITY else f"{100 * change:+.1f}"
            test = f"{by}, p {p}"
        cells.setdefault(row.system, {})[row.metric] = replace(number_cell(row, form), test=test)
    ordered = sorted(cells, key=lambda name: (name != WHOLE, name == LOCAL))
    rows = [[name, *(cells[name].get(metric, Cell()) for metric in shown)] for name in ordered]
    return text_table(["CDLM reads", *(columns[metric][0] for metric in shown)], rows)


def distribution_view(analysis: Analysis, measured: Measured) -> go.Figure:
    """The distribution of the ranks of the pairs."""
    ranks = {
        variant: {
            f"{sort}/{kind}": of_kind[analysis.of_sort(kind, sort)[0], PAPER]
            for sort in SORTS
            for kind, of_kind in ranks.of_kind.items()
        }
        for variant, ranks in measured.items()
    }
    figure = rank_distributions(ranks, title=f"{analysis.settings.corpus}, {analysis.settings.split}")
    return keep_figure(analysis.settings.run_folder, "ranks", figure)


def head_views(analysis: Analysis, measured: Measured) -> list[go.Figure]:
    """One figure per kind of mention: which heads of which layers rank coreferring targets higher."""
    maps = {kind: head_differences(analysis, measured, kind) for kind in analysis.pairs}
    figures = {kind: head_maps(of_kind, title=f"{kind} mentions") for kind, of_kind in maps.items()}
    return [keep_figure(analysis.settings.run_folder, f"heads-{kind}", one) for kind, one in figures.items()]
