"""What notebooks 04 and 05 show: the systems, their scores, and which sentences of a document a system aligns
with another document, as in Figure 4 of the CDA paper (Zhou et al. 2020, appendix A.6).

The sentences are listed in order; a number, a bar and the depth of a blue background show their weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from textwrap import wrap
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from cdlm_lab.data.records import DocumentPair
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.report import Report
from cdlm_lab.runs.scores import split_in_words
from cdlm_lab.tasks.matching import experiment
from cdlm_lab.tasks.matching.alignment import (
    GLOBAL_ATTENTION,
    JOINT,
    ORACLE,
    RANDOM,
    RELEASED,
    Aligned,
    AlignmentRun,
)
from cdlm_lab.tasks.matching.experiment import ONE_DOCUMENT, SPLITS, MatchingRun
from cdlm_lab.tasks.matching.systems import SYSTEMS
from cdlm_lab.views import charts, html, score_tables
from cdlm_lab.views.before_training import cost_facts, facts_table
from cdlm_lab.views.browse import Leafing, right_or_wrong
from cdlm_lab.views.charts import plain_text
from cdlm_lab.views.figures import folder_of, keep_figure
from cdlm_lab.views.html import CROSS, counted
from cdlm_lab.views.score_tables import Layout, counts, each
from cdlm_lab.views.tables import (
    THOUSANDTHS,
    ScoreTable,
    Shown,
    SystemRow,
    html_table,
    published,
    seeds,
    system_rows,
)
from cdlm_lab.views.templates import view


def _label(way: str) -> str:
    return "Random (exact)" if way == RANDOM else SYSTEMS[way.partition("/")[0]].label


def _labels(report: Report) -> dict[str, str]:
    """Labels of matchers and of ways of ranking: `GRU-HAN, cosine` for `gru-han/cosine`."""
    systems = dict.fromkeys(row.system for row in report.rows if row.system)
    return {one: ", ".join([_label(one), *one.split("/")[1:]]) for one in systems}


_MATCHED = {"columns": ("accuracy", "f1"), "below": "paper: Acc / F1", "decimals": (1, 1), "gaps": False}
MATCHING_LAYOUT = Layout(
    shown=[
        *each({"accuracy": "accuracy", "f1": "F1"}),
        seeds(),
        *(
            published(corpus, ("cda", "2"), ("cda", "3"), ("cdlm", "4"), **_MATCHED)
            for corpus in ("AAN", "OC", "S2ORC", "PAN")
        ),
    ],
    size=counts("pairs", "clusters"),
    note="All in per cent; F1 of the related pairs.",
    test="p: against the row above of the same family.",
    labels=_labels,
    paper="Papers: accuracy / F1 of Zhou et al. 2020, Tables 2 and 3; F1 alone of Caciularu et al. "
    "2021, Table 4.",
)
_ALIGNED = ("mrr", "at_10", "at_5", "at_1")
# CDA's numbers are shown with the group `released` only, which scores unrelated pairs as CDA's code does.
_RELEASED = {"decimals": (4, 1, 1, 1), "group": "released"}


def _aligned_size(report: Report, _: str, group: str) -> tuple[int, str]:
    """The pairs that a group of scores is of: those of the released code hold the unrelated ones too."""
    counts = ((row.n, row.clusters) for row in report.rows if row.group == group and row.n and row.clusters)
    pairs, clusters = next(counts, (report.data["pairs"], report.data["clusters"]))
    return pairs, f"{pairs:,} pairs in {clusters:,} clusters"


ALIGNMENT_LAYOUT = Layout(
    shown=[
        *each({"mrr": "MRR"}, THOUSANDTHS),
        *each({"at_10": "P@10", "at_5": "P@5", "at_1": "P@1"}),
        seeds(),
        published(
            "S2ORC", ("cda", "4"), columns=_ALIGNED, below="paper: MRR / P@10 / P@5 / P@1", **_RELEASED
        ),
        published("PAN", ("cda", "5"), columns=_ALIGNED[:3], below="paper: MRR / P@10 / P@5", **_RELEASED),
    ],
    size=_aligned_size,
    note="MRR: mean reciprocal rank of the first true sentence; P@N in per cent.",
    test="p: against the row above of the same family.",
    labels=_labels,
    paper="Paper: Zhou et al. 2020, Tables 4 and 5.",
    split="",
)


def preview(run: MatchingRun | AlignmentRun) -> Shown:
    """The facts about a run of notebook 04 or 05 before it starts."""
    return facts_table(alignment_facts(run) if isinstance(run, AlignmentRun) else facts(run))


def facts(run: MatchingRun) -> list[tuple[str, str]]:
    """Facts about the pairs of each split, and what training will cost, as (name, text)."""
    rows = []
    for split, pairs in ((split, run.pairs[split]) for split in SPLITS):
        sentences = fmean(len(one.sentences) for pair in pairs for one in (pair.first, pair.second))
        related = f"{fmean(pair.related for pair in pairs):.0%} related"
        rows.append((split, f"{len(pairs):,} pairs, {related}; {sentences:.0f} sentences a document"))
    rows += (tuple(line.split(": ", 1)) for line in run.lost.lines())
    shared = experiment.shared_documents(run.pairs)
    if any(shared.values()):
        shares = ", ".join(f"{share:.0%} of {split}" for split, share in shared.items())
        rows.append(("documents of train are in", f"{shares}: this corpus was split by pairs"))
    return rows + cost_facts(run)


def alignment_facts(run: AlignmentRun) -> list[tuple[str, str]]:
    """Facts about the run before it starts, as (name, text)."""
    matching = run.matching
    aligned = sum(pair.related and bool(pair.aligned) for pair in matching.pairs["test"])
    where = f"related test pairs of {matching.settings.corpus} with true sentences"
    rows = [("pairs", f"{aligned:,} {where}")]
    rows.append(("systems", ", ".join(system.label for system in matching.systems)))
    if untrained := [one.label for one in matching.trainings if matching.is_to_train(one)]:
        rows.append(("trained first", ", ".join(untrained)))
        rows.append(("precision of training", precision_in_words(matching.settings.precision)))
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedColumn:
    """The weights that one system gives to the sentences."""

    name: str  # name of the system to show
    # One finite weight per sentence; the largest is drawn deepest, those of 0 or below have no background.
    # None = the system has not read the sentence.
    weights: Sequence[float | None]
    shares: bool = False  # True = the weights are parts of a whole, such as attention, written in per cent
    decision: float | None = None  # probability that the documents are related; None = not shown
    others_read: int | None = None  # how many sentences of the other document it has read; None = all

    def written(self, place: int) -> str:
        """Return the weight of a sentence that was read as text."""
        weight = self.weights[place] or 0.0
        return f"{100 * weight:.1f}%" if self.shares else f"{weight:.3f}".replace("-", "\u2212")

    @property
    def strengths(self) -> list[float]:
        """Each weight divided by the largest, in [0, 1]; negative ones are 0, all are if none is above 0."""
        largest = max((weight for weight in self.weights if weight is not None), default=0.0)
        return [max(weight or 0.0, 0.0) / largest if largest > 0 else 0.0 for weight in self.weights]

    def unread_in_words(self, others: int) -> str:
        """What of both documents the system has not read, of which the other one has `others` sentences; ""
        if it has read all."""
        lost, count = sum(weight is None for weight in self.weights), len(self.weights)
        lost_of_other = 0 if self.others_read is None else others - self.others_read
        parts = [f"{lost:,} of {counted(count, 'sentence')} of the first document"] if lost else []
        if lost_of_other > 0:
            parts.append(f"{lost_of_other:,} of {counted(others, 'sentence')} of the second")
        return f"{self.name} has not read {' and '.join(parts)}, which count for nothing" if parts else ""


def _ground(strength: float) -> str:
    return f"border-radius:3px;padding:2px 6px 3px;{html.blue_ground(strength)}"


def pair_html(pair: DocumentPair, columns: Sequence[AlignedColumn]) -> str:
    """Return a row for each sentence of the first document of a pair: its weight by each system, each on its
    own scale, and its text. With one system the text has the blue background, with several each weight has.
    The second document is folded below. All texts are untrusted."""
    counts = [len(pair.second.sentences) if one.others_read is None else one.others_read for one in columns]
    weights = zip(*(one.weights for one in columns), strict=True)
    silent = [all(weight is None for weight in of_sentence) for of_sentence in weights]
    form = {"others_read": max(counts), "silent": silent, "grounds": _ground}
    return view("aligned", "tasks/matching/pair.html.jinja", width=1100, pair=pair, columns=columns, **form)


_COLOURS = (html.GLOBAL, html.MASKED, CROSS, *html.OTHER_COLOURS)
_PATTERNS = ("", "/", ".", "x")  # so that bars can be distinguished without their hue


def alignment_figure(rows: Sequence[SystemRow]) -> go.Figure:
    """Plot the MRR of each system as a group of bars, one for each way of ranking, with 95% intervals. Groups
    are in the order of the rows; the system `random` is a dashed line.

    `rows` are named by system and way of ranking, such as `gru-han/cosine`, and labelled by system."""
    bars = []
    for row in (one for one in rows if one.system != RANDOM):
        score = row.scores["mrr"]
        lines = wrap(html.visible(row.label), 14)  # wrapped, so never rotated
        names = {"system": "<br>".join(map(plain_text, lines)), "words": _in_words(row)}
        low, high = (score.value if bound is None else bound for bound in (score.low, score.high))
        ends = {"above": high - score.value, "below": score.value - low}
        bars.append(
            {**names, "way": plain_text(row.system.partition("/")[2]) or "all", "mrr": score.value, **ends}
        )
    form = {"color": "way", "pattern_shape": "way", "error_y": "above", "error_y_minus": "below"}
    looks = {"color_discrete_sequence": _COLOURS, "pattern_shape_sequence": _PATTERNS, "barmode": "group"}
    figure = px.bar(pd.DataFrame(bars), x="system", y="mrr", hover_name="words", **form, **looks)
    figure.update_traces(hovertemplate="%{hovertext}<extra></extra>")
    for trace in figure.data:  # two bars a system, beside its name: by attention, and by likeness
        trace.offsetgroup = "attention" if trace.name in _WAYS[:2] else "likeness"
    random = [row for row in rows if row.system == RANDOM]
    for row in random:
        figure.add_hline(row.scores["mrr"].value, line_dash="dash", line_color=html.TEXT)
    figure.update_traces(opacity=0.8).update_yaxes(range=[0, 1]).update_layout(legend_title_text="")
    y = "MRR, documents known to be related"
    x = "; ".join(f"dashed: {_in_words(row)}" for row in random) or " "
    return charts.lay_out(figure, title="", x=x, y=y, margin_t=60)


def _in_words(row: SystemRow) -> str:
    """Describe a row in words, such as `GRU-HAN, attention: MRR 0.5430 (0.5200 to 0.5600)`."""
    name, score = ", ".join(filter(None, (row.label, row.system.partition("/")[2]))), row.scores["mrr"]
    bounds = "" if score.low is None else f" ({score.low:.4f} to {score.high:.4f})"
    return plain_text(f"{name}: MRR {score.value:.4f}{bounds}")


def systems_table() -> Shown:
    """A table of the name and description of every system."""
    rows = [[f"<code>{one.name}</code>", f"<b>{one.label}</b>: {one.about}"] for one in SYSTEMS.values()]
    return html_table(["name", "what it is"], rows, texts=2)


def score_table(report: Report, split: str = "test") -> ScoreTable:
    """Accuracy and F1 of each system; on test beside the papers' scores, with p-values."""
    caption = f"{report.data['corpus']}, {split_in_words(split)}"
    return score_tables.score_table(report, MATCHING_LAYOUT, split=split, caption=caption)


def control_table(report: Report) -> ScoreTable | Shown:
    """The score table on test with only one document of each pair."""
    return score_tables.control_table(report, ONE_DOCUMENT, score_table)


_CAPTIONS = {
    ORACLE: "documents known to be related (oracle)",
    JOINT: "jointly with the decision on the documents",
    RELEASED: "as the released code scores CDA's Tables 4 and 5, unrelated pairs included",
}


class ReadPair(NamedTuple):
    """A pair of documents, and the probability with which each system, by its label, calls them related."""

    pair: DocumentPair
    probabilities: Mapping[str, float]
    right: bool  # whether the last of these systems is right


def decided_pair_html(read: ReadPair) -> str:
    """Return both documents side by side, a line a sentence, on blue the numbers that both state, and each
    system's decision."""
    documents = read.pair.first, read.pair.second
    parts = [re.split(r"(\d+(?:[.,]\d+)*)", "\n".join(one.sentences)) for one in documents]
    return view("decided", "tasks/matching/decided.html.jinja", read=read, parts=parts)


def pairs_in_place(run: MatchingRun, predictions: experiment.Predictions) -> Leafing:
    """A browser of the dev pairs with the decisions of every system (seed 0)."""
    found = {one.label: predictions[one.name, 0]["dev"].probabilities for one in run.systems}
    pairs, table = run.pairs["dev"], pd.DataFrame(found)
    right = (table.iloc[:, -1] > 0.5) == [one.related for one in pairs]
    form = {"filters": {"decision": right_or_wrong("right")}, "right": lambda read: read.right}
    form |= {"text": lambda read: read.pair.first.sentences[0], "html": decided_pair_html}
    return Leafing([*map(ReadPair, pairs, table.to_dict("records"), right)], noun="pair", **form)


def alignment_table(report: Report, group: str) -> ScoreTable:
    """MRR and P@N for `oracle`, `joint` or `released`; the last beside the paper's scores."""
    return score_tables.score_table(report, ALIGNMENT_LAYOUT, group=group, caption=_CAPTIONS[group])


def mrr_figure(report: Report) -> go.Figure:
    """A figure of MRR given that the documents are related, as CDA's Figure 3."""
    rows = system_rows(report.rows, split="", group=ORACLE)
    figure = alignment_figure([replace(row, label=_label(row.system)) for row in rows])
    return keep_figure(folder_of(report), "mrr", figure)


_WAYS = ("attention", GLOBAL_ATTENTION, "cosine")  # the first that a system has is shown


def compared_pair(run: AlignmentRun, aligned: Aligned, name: str = "") -> Shown:
    """A test pair as aligned by every system with seed 0: the one of that name, or one that most systems
    detect, preferably with few gold sentences that are neither first nor last."""
    names = [pair.id for pair in run.pairs]
    if name and name not in names:
        raise ParameterError(
            f"the pair is {name!r}, which is no related test pair with true sentences; one is {names[0]!r}"
        )
    detected = np.mean(list(aligned.detected.values()), axis=0)
    inside = [
        len(pair.aligned) < 3 and not {0, len(pair.first.sentences) - 1} & set(pair.aligned)
        for pair in run.pairs
    ]
    place = names.index(name) if name else int(np.argmax(detected + inside))
    pair, columns = run.pairs[place], []
    for system in run.matching.systems:
        keys = {by: (system.name, by, 0) for by in _WAYS}
        alignments = {by: aligned.scores[key][place] for by, key in keys.items() if key in aligned.scores}
        columns.append(
            column_of(system.label, alignments, pair, aligned.probabilities[system.name, 0][place])
        )
    return Shown(pair_html(pair, columns))


def column_of(
    label: str, alignments: Mapping[str, np.ndarray], pair: DocumentPair, probability: float
) -> AlignedColumn:
    """The weights of the sentences by one system; None for sentences that it does not read."""
    by = next(by for by in _WAYS if by in alignments)
    weights: list[float | None] = [None] * len(pair.first.sentences)
    known = _shares(alignments[by]) if by == GLOBAL_ATTENTION else alignments[by].tolist()
    weights[: len(known)] = known
    return AlignedColumn(name=label, weights=weights, shares=by != "cosine", decision=float(probability))


def _shares(scores: np.ndarray) -> list[float | None]:
    """Scores of global attention, which have no scale, as shares of their excess over the lowest; equal
    shares if all are tied. A sentence outside the sequence has a score 1 below the lowest, and no share."""
    read = scores >= scores.min() + 1 - 1e-6  # as 0.3 is a little less than 1 - 0.7
    read |= not read.any()
    above = np.maximum(scores - scores[read].min(), 0)
    shares = above / above.sum() if above.sum() > 0 else read / read.sum()
    return [share if known else None for share, known in zip(shares.tolist(), read.tolist(), strict=True)]
