"""Views of a coreference system's output: its predicted clusters as cards, the pairs of mentions that it got
wrong, and a dendrogram of its agglomerative clustering.

The main gold cluster of a card is the one with most of its mentions; a mention of another gold cluster gets a
dashed line, a sign and the cluster's name. Ten mentions wrongly merged with ten others make a hundred wrong
pairs with the same cause, so of all wrong pairs between the same two gold clusters (or within one that was
split) only the worst is shown, and the others are counted."""

from __future__ import annotations

import textwrap
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import leaves_list

from cdlm_lab.data.coreference import gold_names
from cdlm_lab.data.marked import MARKS
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, Span, Topic, gold_clusters
from cdlm_lab.encoders.checkpoint import default_device
from cdlm_lab.encoders.model_folder import MODEL_FOLDER, is_model
from cdlm_lab.encoders.precision import computing_in, precision_in_words
from cdlm_lab.runs.report import Report
from cdlm_lab.tasks.coreference.clustering import labels_at
from cdlm_lab.tasks.coreference.evaluation import BASELINES, documents_of
from cdlm_lab.tasks.coreference.experiment import SYSTEM, CoreferenceRun, dev_judge
from cdlm_lab.tasks.coreference.scoring import GroupPrediction, Predictions, probabilities
from cdlm_lab.views import charts, html
from cdlm_lab.views.ask import ask_box
from cdlm_lab.views.before_training import cost_in_words, facts_table, time_taken
from cdlm_lab.views.charts import marks, plain_text
from cdlm_lab.views.figures import keep_figure
from cdlm_lab.views.html import (
    GLOBAL,
    UNKNOWN,
    ShownMention,
    counted,
    document_name,
    joined,
    seconds_in_words,
)
from cdlm_lab.views.score_tables import Layout, score_table
from cdlm_lab.views.tables import ScoreTable, Shown, measured, published_rows, seeds, threes
from cdlm_lab.views.templates import view

MEASURES = {"muc": "MUC", "b_cubed": "B\u00b3", "ceaf_e": "CEAFe", "lea": "LEA"}


def _size(report: Report, split: str, _: str) -> tuple[int, str]:
    pairs = report.data["pairs_scored"][split]
    return pairs, f"{len(report.data['topics'][split]):,} topics, {pairs:,} pairs"


LAYOUT = Layout(
    shown=[
        *(threes(heading, metric) for metric, heading in MEASURES.items()),
        measured("CoNLL F1", "conll/f1", with_p=True),
        seeds(),
    ],
    size=_size,
    note="All times 100. CoNLL F1: mean of the F1 of MUC, B³ and CEAFe.",
)

IN_SIGHT = 5  # most mentions of the main gold cluster, and most others, that a card shows unfolded
IN_FOLD = 80  # most further mentions that a card shows when it is unfolded
CHIPS = 8  # most gold clusters that are named at the top of a card
MOST_CLUSTERS = 40  # most clusters of several mentions that are shown, and most singletons
MOST_PAIRS = 20  # most rows of wrong pairs in each of the two tables
LOOKED_AT = 200  # training pairs from which those of median length are timed
Colours = Mapping[str | None, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCluster:
    """A predicted cluster: its mentions in the order to show them, and a name that no other cluster has."""

    name: str
    mentions: tuple[ShownMention, ...]

    @property
    def golds(self) -> Counter[str | None]:
        """Number of mentions from each gold cluster, largest first; ties are in the order of the mentions."""
        return Counter(dict(Counter(mention.gold for mention in self.mentions).most_common()))

    @property
    def main(self) -> str | None:
        """The gold cluster with most of its mentions."""
        return next(iter(self.golds))

    @property
    def text(self) -> str:
        """The most frequent text of its mentions."""
        return Counter(mention.text.lower() for mention in self.mentions).most_common(1)[0][0]

    @property
    def in_sight(self) -> list[ShownMention]:
        """The mentions that a card shows unfolded: some of the main gold cluster, then some others."""
        main = self.main
        right = [mention for mention in self.mentions if mention.gold == main]
        wrong = [mention for mention in self.mentions if mention.gold != main]
        if len(self.mentions) <= IN_SIGHT + 1:  # a fold for one line is more bother than it saves
            return right + wrong
        return right[:IN_SIGHT] + wrong[:IN_SIGHT]

    @property
    def hidden(self) -> list[ShownMention]:
        """The mentions that a card folds, those of other gold clusters first."""
        main, seen = self.main, set(map(id, self.in_sight))
        rest = [mention for mention in self.mentions if id(mention) not in seen]
        return sorted(rest, key=lambda mention: mention.gold == main)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairError:
    """A wrongly clustered pair of mentions, and the scorer's probability, in [0, 1], that they corefer."""

    first: ShownMention
    second: ShownMention
    score: float


def clusters_html(clusters: Sequence[ShownCluster], colours: Colours | None = None) -> str:
    """Return the predicted clusters as one block of HTML, largest first, at most MOST_CLUSTERS, then a folded
    list of at most as many singletons. `clusters`: all predicted clusters, so that the view can say which
    others hold the rest of a gold cluster. `colours`: those of gold clusters in other pictures, which
    stay."""
    ordered = sorted(clusters, key=lambda cluster: -len(cluster.mentions))
    several = [cluster for cluster in ordered if len(cluster.mentions) > 1]
    single = ordered[len(several) :]
    holders: dict[str | None, list[str]] = {}  # gold cluster -> predicted clusters with parts of it
    for cluster in ordered:
        for gold in cluster.golds:
            holders.setdefault(gold, []).append(cluster.name)
    shown = [several[:MOST_CLUSTERS], single[:MOST_CLUSTERS]]
    colours = html.gold_colours((cluster.golds for cluster in [*shown[0], *shown[1]]), colours)
    return view(
        "clusters",
        "tasks/coreference/clusters.html.jinja",
        width=1180,
        several=several,
        single=single,
        holders=holders,
        colours=colours,
        mentions=sum(len(cluster.mentions) for cluster in ordered),
        mixed=sum(len(cluster.golds) > 1 for cluster in ordered) if set(holders) - {None} else None,
        most=MOST_CLUSTERS,
        chips=CHIPS,
        in_fold=IN_FOLD,
    )


MOST_TEXTS, LONGEST_TEXT = 6, 6_000  # documents that are shown as texts, and characters of each


def texts_html(texts: Mapping[str, str], clusters: Sequence[Sequence[tuple[str, int, int]]]) -> str:
    """Documents side by side, those with the most mentions of clusters of several, at most MOST_TEXTS, with
    the colour and number of its cluster on each mention (document, start, end in characters)."""
    several = sorted((one for one in clusters if len(one) > 1), key=len, reverse=True)
    numbers = {one: number for number, cluster in enumerate(several, start=1) for one in cluster}
    spans: dict[str, dict[Span, int]] = {name: {} for name in texts}
    for name, *span in (one for cluster in clusters for one in cluster):
        spans[name][tuple(span)] = numbers.get((name, *span), 0)
    linked = {name: sum(map(bool, of_text.values())) for name, of_text in spans.items()}
    shown = sorted(texts, key=linked.__getitem__, reverse=True)[:MOST_TEXTS]
    marked = [(name, _segments(texts[name], spans[name])) for name in texts if name in shown]
    rules = (
        f".cdlm-texts:has(.m{n}:hover) .m{n}{{outline:2px solid {GLOBAL}}}"
        for n in range(1, len(several) + 1)
    )
    form = {"hues": html.HUES, "grey": UNKNOWN, "left_out": len(texts) - len(shown), "style": "".join(rules)}
    return view("texts", "tasks/coreference/texts.html.jinja", width=1180, texts=marked, **form)


def _segments(text: str, spans: Mapping[Span, int]) -> list[tuple[str, int | None, list[int]]]:
    """Pieces of a text, each with the number of the innermost mention that it is in, 0 = one alone, None = in
    none, and the numbers of the clusters whose mentions end with it."""
    stop = min(len(text), LONGEST_TEXT)
    cuts = sorted({0, stop, *(place for span in spans for place in span if place < stop)})
    segments = []
    for start, end in pairwise(cuts):
        inside = [span for span in spans if span[0] <= start and end <= span[1]]
        number = spans[min(inside, key=lambda span: span[1] - span[0])] if inside else None
        ends = [number for span, number in spans.items() if span[1] == end and number]
        segments.append((MARKS.sub("", text[start:end]), number, ends))
    return [*segments, ("\u2026", None, [])] if stop < len(text) else segments


def errors_html(
    merged: Sequence[PairError],
    split: Sequence[PairError],
    *,
    threshold: float,
    colours: Colours | None = None,
) -> str:
    """Return two tables of wrong pairs, of at most MOST_PAIRS rows, each with its score and both mentions in
    context: merged pairs, in one cluster though they do not corefer, by descending score, and split pairs,
    which do corefer, by ascending score, so that the scorer's most confident errors come first. Pairs whose
    own score is on the correct side of the threshold are marked: other pairs caused these errors. `colours`:
    those of gold clusters in other pictures, which stay."""
    merged = sorted(merged, key=lambda pair: -pair.score)
    split = sorted(split, key=lambda pair: pair.score)
    sections = []
    for name, meaning, pairs, note in (
        ("Merged", "in one cluster, but they do not corefer; the highest", merged, "joined by way of others"),
        ("Split", "in two clusters, but they corefer; the lowest", split, "kept apart by others"),
    ):
        # Pairs of the same two gold clusters share a row, in the order of the first; unknown ones do not.
        alike: dict[object, list[PairError]] = {}
        for place, pair in enumerate(pairs):
            golds = frozenset((pair.first.gold, pair.second.gold))
            alike.setdefault(place if None in golds else golds, []).append(pair)
        shown = list(alike.values())
        beside = [(one[0].first.gold, one[0].second.gold) for one in shown[:MOST_PAIRS]]
        colours = html.gold_colours(beside, colours)
        misled = [(one[0].score > threshold) == (pairs is split) for one in shown]
        rows = [
            (pair, note if by_others else "", len(others))
            for (pair, *others), by_others in zip(shown[:MOST_PAIRS], misled, strict=False)
        ]
        sections.append((name, len(pairs), meaning, rows, sum(map(len, shown[MOST_PAIRS:]))))
    style = "div.cdlm-errors table.cdlm-table td:nth-child(n+2){width:46%}\n"
    form = {"sections": sections, "colours": colours}
    return view("errors", "tasks/coreference/errors.html.jinja", width=1180, style=style, **form)


def dendrogram_figure(
    tree: ArrayLike,
    mentions: Sequence[ShownMention],
    *,
    threshold: float,
    title: str = "",
    colours: Colours | None = None,
) -> go.Figure:
    """Return the dendrogram, with its leaves on the left and scores falling from 1 to 0 towards the right.

    A branch has the colour of a gold cluster if all mentions below it belong to that cluster, and is grey
    otherwise. A line marks the threshold, grey bands the resulting clusters. Mentions of gold singletons are
    hollow dots, those of unknown clusters grey ones. The figure grows with the mentions: 200 are legible.
    `tree`: (mentions - 1, 4), of `clustering.merge_tree`; `mentions`: the leaves, in the order of its scores;
    `colours`: those of gold clusters in other pictures, which stay.
    """
    tree = np.asarray(tree, dtype=np.float64)
    labels = labels_at(tree, threshold)
    order = leaf_order(tree)
    leaves = [mentions[leaf] for leaf in order]
    golds = [mention.gold for mention in leaves]
    colours = html.gold_colours(zip(golds, golds[1:] or golds, strict=False), colours)
    hues, times = [colours[gold] for gold in golds], Counter(golds)
    shapes = ["circle" if gold is not None and times[gold] > 1 else "circle-open" for gold in golds]
    marker = {"color": hues, "symbol": shapes, "size": 9, "line": {"width": 1.4, "color": hues}}
    figure = go.Figure(_branches(tree, order, [mention.gold for mention in mentions], colours))
    rows, hover = list(range(len(leaves))), list(map(_hover, leaves))
    figure.add_trace(marks([1.0] * len(leaves), rows, hover, mode="markers", marker=marker))
    _draw_clusters(figure, [int(labels[leaf]) for leaf in order], threshold)
    step = 19 if len(order) <= 60 else 16 if len(order) <= 120 else 13  # pixels a row
    figure.update_xaxes(range=[1.02, -0.02])
    names = [plain_text(html.shortened(mention.text, 36)) for mention in leaves]
    ends, size = [len(order) - 0.3, -0.7], 12 if step > 13 else 10
    figure.update_yaxes(charts.rows_of_an_axis(names), range=ends, tickfont_size=size, ticks="")
    x = "average score between the clusters joined"
    x += charts.small("colour: gold cluster \u00b7 band: cluster at the threshold")
    height = 164 + (30 if title else 0) + step * len(order)
    margin = {"l": 40, "t": 100 if title else 62, "b": 72}
    return charts.lay_out(figure, title=title, x=x, height=height, margin=margin, showlegend=False)


def leaf_order(tree: np.ndarray) -> list[int]:
    """Return the leaves from top to bottom: no branches cross, the branch with the first mention is above."""
    if not len(tree):
        return [0]
    ordered, first = tree.copy(), list(range(len(tree) + 1))  # `first`: first mention below each node
    for row in ordered:
        row[:2] = sorted(row[:2], key=lambda node: first[int(node)])
        first.append(first[int(row[0])])
    return leaves_list(ordered).tolist()  # scipy's `dendrogram` recurses, too deep for long chains of merges


def _branches(
    tree: np.ndarray, order: Sequence[int], golds: Sequence[str | None], colours: Colours
) -> list[go.Scatter]:
    """Return one trace of lines for each colour, with an elbow for each merge."""
    places = [(1.0, float(row)) for row in np.argsort(order)]  # score and row of each node
    below: list[str | None] = list(golds)  # the only gold cluster below each node, None if there are several
    lines: dict[str, tuple[list, list]] = {}
    for left, right, distance, _ in tree:
        (x_a, y_a), (x_b, y_b) = places[int(left)], places[int(right)]
        score = round(1 - float(distance), 4)
        gold = below[int(left)] if below[int(left)] == below[int(right)] else None
        xs, ys = lines.setdefault(colours[gold] if gold is not None else UNKNOWN, ([], []))
        xs += [x_a, score, score, x_b, None]
        ys += [y_a, y_a, y_b, y_b, None]
        places.append((score, (y_a + y_b) / 2))
        below.append(gold)
    looks = {colour: {"mode": "lines", "line": {"color": colour, "width": 1.8}} for colour in lines}
    return [marks(xs, ys, **looks[colour]) for colour, (xs, ys) in lines.items()]


def _hover(mention: ShownMention) -> str:
    sentence = "<br>".join(map(plain_text, textwrap.wrap(mention.sentence, 70)[:8]))
    gold = "not known" if mention.gold is None else plain_text(mention.gold)
    where = f"document {plain_text(mention.document)}<br>gold: {gold}"
    return f"<b>{plain_text(mention.text)}</b><br>{sentence}<br>{where}"


def _draw_clusters(figure: go.Figure, labels: Sequence[int], threshold: float) -> None:
    """Add a band for each cluster of several mentions, and the threshold line; `labels` are from the top."""
    for label in dict.fromkeys(labels):
        rows = [row for row, other in enumerate(labels) if other == label]  # adjacent: branches do not cross
        if len(rows) > 1:
            corners = {"x0": 1.012, "x1": threshold, "y0": rows[0] - 0.45, "y1": rows[-1] + 0.45}
            look = {"fillcolor": "rgba(128,128,128,0.13)", "line_width": 0, "layer": "below"}
            figure.add_shape(type="rect", **corners, **look)
    figure.add_vline(threshold, line={"color": GLOBAL, "width": 1.8, "dash": "dash"})
    where = {"x": threshold, "y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 4}
    font = {"color": GLOBAL, "size": 13}
    figure.add_annotation(text=f"threshold {threshold:.2f}", showarrow=False, font=font, **where)


# ---- what notebook 03 shows ----


def preview(prepared: CoreferenceRun) -> Shown:
    """The main facts about the run before it starts."""
    return facts_table(facts(prepared))


def facts(prepared: CoreferenceRun) -> list[tuple[str, str]]:
    """Facts about the run before it starts, as (name, text); a few pairs are scored and trained on."""
    settings, groups = prepared.settings, prepared.groups
    mentions = [f"{split} {len(examples.mentions):,}" for split, examples in prepared.examples.items()]
    own = prepared.folder / MODEL_FOLDER
    trained = settings.trained or (own if is_model(own) else "")
    if taken := time_taken(prepared):
        ((_, training),) = taken
    elif trained:
        training = f"none: the scorer is that of {trained}"
    else:
        training = _training_in_words(prepared)
    seconds, length, lost = _sample(prepared)
    looks = 1 + (settings.epochs if dev_judge(prepared) and not trained else 0)
    unit = prepared.train_examples.UNIT
    total = len(prepared.examples["dev"]) * looks + len(prepared.examples["test"])
    times = f" ({looks} times)" if looks > 1 else ""
    scoring = f"{total:,} {unit}s of dev{times} and test; about {seconds_in_words(total * seconds)}"
    if unit == "reading":
        scoring += f", for {sum(prepared.examples[one].pair_count for one in ('dev', 'test')):,} pairs"
    facts = [
        ("mentions", ", ".join(mentions)),
        ("training", training),
        ("precision", precision_in_words(prepared.config.precision)),
        ("scoring", scoring),
    ]
    facts += ((f"chains of {split}", note) for split, note in prepared.notes.items() if note)
    for split, of_split in groups.items():
        text = f"{prepared.level[split]}; {len(of_split):,} groups"
        facts.append((f"searched together in {split}", text))
    for split, topics in prepared.topics.items():
        clusters = gold_clusters(topics, kind=settings.kind).values()
        across = sum(len({mention.document for mention in cluster}) > 1 for cluster in clusters)
        text = f"{len(clusters):,}, of which {across:,} go through several documents"
        facts.append((f"gold clusters of {split}", text))
    for split, passed_over in prepared.passed_over.items():
        facts += [(f"passed over in {split}", line) for line in passed_over.lines()]
    text = f"{length:,.0f} tokens a {unit}; {lost:.1%} of the tokens of its documents do not fit"
    return [*facts, ("text", text)]


def _training_in_words(prepared: CoreferenceRun) -> str:
    """Timed on a batch of median length, as training batches have examples of similar lengths."""
    examples, size = prepared.train_examples, prepared.config.micro_batch_size
    some = range(0, len(examples), max(1, len(examples) // LOOKED_AT))
    by_length = sorted(some, key=examples.length_of)
    first = max(0, len(by_length) - size) // 2
    middling = examples.in_order(np.resize(by_length[first : first + size], size))
    job = replace(prepared.job(), train_examples=middling)
    cost = cost_in_words(job, items=f"{examples.UNIT}s", parallel=prepared.settings.parallel)
    return f"{examples.labels.mean():.0%} of the pairs corefer; {cost}" if examples.UNIT == "pair" else cost


def _sample(prepared: CoreferenceRun, size: int = 24) -> tuple[float, float, float]:
    """Seconds and tokens per pair or reading, and the share of tokens that do not fit, from a few of dev."""
    settings, examples = prepared.settings, prepared.examples["dev"]
    numbers = list(range(0, len(examples), max(1, len(examples) // size)))[:size]
    sizes = [examples.size_of(number) for number in numbers]
    lost, length = sum(one.lost_tokens for one in sizes), sum(one.length for one in sizes)
    chosen = [examples[number] for number in numbers[: settings.micro_batch_size]]
    model, batch = prepared.model.to(default_device()).eval(), prepared.job().collate(chosen)
    with computing_in(settings.precision, model.device):
        probabilities(model, batch)  # warm-up: the first call is slower than all others
        start = time.perf_counter()
        probabilities(model, batch)
    seconds = (time.perf_counter() - start) / len(chosen)
    return seconds, length / len(sizes), lost / max(1, lost + length)


def summary(report: Report) -> str:
    """The threshold chosen on dev."""
    value = {row.metric: row.value for row in report.rows if row.metric.startswith("threshold")}
    f1 = 100 * value["threshold/dev_conll_f1"]
    return f"threshold {value['threshold']:.2f}, with CoNLL F1 {f1:.1f} on dev"


def clusters_view(prepared: CoreferenceRun, predictions: Predictions) -> Shown:
    """The clusters of the test group with most wrong pairs, each mention in its sentence."""
    clusters = shown_clusters(prepared.topics["test"], _most_wrong(predictions), predictions.threshold)
    return Shown(clusters_html(clusters, _colours(prepared, predictions)))


def _colours(prepared: CoreferenceRun, predictions: Predictions) -> dict[str | None, str]:
    """The colour of each gold cluster of the shown test group, the same in all pictures of the notebook."""
    group = _most_wrong(predictions)
    clusters = shown_clusters(prepared.topics["test"], group, predictions.threshold)
    return html.gold_colours(cluster.golds for cluster in clusters)


def _shown_mentions(prepared: CoreferenceRun, prediction: GroupPrediction) -> list[ShownMention]:
    """The mentions of a test group, in the order of its scores."""
    documents = documents_of(prepared.topics["test"])
    names = gold_names(documents.values())
    return [_shown(mention, documents, names) for mention in prediction.group.mentions]


def tree_view(prepared: CoreferenceRun, predictions: Predictions) -> go.Figure:
    """The merge tree of the test group with most wrong pairs, with the threshold."""
    group = _most_wrong(predictions)
    mentions = _shown_mentions(prepared, group)
    count = len({mention.document for mention in group.group.mentions})
    title = f"How the {len(mentions):,} mentions of {counted(count, 'document')} came together"
    form = {"threshold": predictions.threshold, "colours": _colours(prepared, predictions)}
    figure = dendrogram_figure(group.tree, mentions, title=title, **form)
    return keep_figure(prepared.settings.run_folder, "merge-tree", figure)


def errors_view(prepared: CoreferenceRun, predictions: Predictions) -> Shown:
    """The wrong pairs of all test groups."""
    errors = pair_errors(prepared.topics["test"], predictions.test, predictions.threshold)
    form = {"threshold": predictions.threshold, "colours": _colours(prepared, predictions)}
    return Shown(errors_html(*errors, **form))


def found_view(report: Report) -> list[ScoreTable]:
    """The scores of test with and without singletons, and of both kinds together, if the run has them."""
    groups = dict.fromkeys(row.group for row in report.rows if row.group and row.split == "test")
    layout = replace(LAYOUT, shown=[*LAYOUT.shown, threes("Mentions", "mentions")])
    return [
        score_table(report, layout, labels={SYSTEM: SYSTEM}, group=group, caption=group)
        for group in groups
        if len(groups) > 1
    ]


def show_articles(load: Callable[[str], Any], *names: str) -> None:
    """Three real articles without marks, in a box for each model of these names: the mentions that are found
    in them, and their clusters. Where a model is not here, a line says so. `load`: `cdlm_lab.load`."""
    try:
        models = [load(name) for name in names]
        for model in models:
            model.open_finder("")
    except ValueError as error:
        print(f"The articles cannot be read yet: {error}")
        return
    for model in models:
        example = model.example | {"documents": model.marked(model.example["documents"])}
        ask_box(model.clusters, example, button=f"Cluster {model.kind} mentions", mark=model.marked).show()


def table_view(report: Report) -> ScoreTable:
    """Baselines and systems on test, and below them the paper's scores on the same kind of mentions."""
    kind, systems = report.parameters["kind"], dict.fromkeys(row.system for row in report.rows if row.system)
    names = sorted(systems, key=lambda name: name not in BASELINES)
    papers = [
        replace(row, label=f"paper: {row.label.replace('cdlm/documents', 'CDLM')}")
        for row in published_rows("cdlm", "2", f"ECB+ {kind}")
    ]
    table = score_table(report, LAYOUT, labels={name: name for name in names}, group=kind, others=papers)
    if report.parameters["singletons"]:
        return table
    note = "Without singletons: not to be compared with scores that keep them, as the paper's do."
    return replace(table, note=f"{table.note} {note}")


def shown_clusters(
    topics: Sequence[Topic], prediction: GroupPrediction, threshold: float, *, gold: bool = True
) -> list[ShownCluster]:
    """The clusters of one group, each mention in its sentence; `gold`: False = gold is unknown."""
    documents, shown = documents_of(topics), []
    names = gold_names(documents.values()) if gold else None
    for number, cluster in enumerate(prediction.clusters(threshold), start=1):
        mentions = tuple(_shown(mention, documents, names) for mention in cluster)
        shown.append(ShownCluster(name=f"#{number}", mentions=mentions))
    return shown


def pair_errors(
    topics: Sequence[Topic], predictions: Sequence[GroupPrediction], threshold: float
) -> tuple[list[PairError], list[PairError]]:
    """Pairs that were merged and do not corefer, and pairs that corefer and were kept apart."""
    documents = documents_of(topics)
    names = gold_names(documents.values())
    merged: list[PairError] = []
    split: list[PairError] = []
    for prediction in predictions:
        mentions = prediction.group.mentions
        shown = [_shown(mention, documents, names) for mention in mentions]
        labels = labels_at(prediction.tree, threshold)
        gold = np.unique([mention.cluster for mention in mentions], return_inverse=True)[1]
        first, second = np.triu_indices(len(mentions), k=1)
        together, same = labels[first] == labels[second], gold[first] == gold[second]
        for errors, wrong in ((merged, together & ~same), (split, same & ~together)):
            errors += [
                PairError(first=shown[i], second=shown[j], score=float(prediction.scores[i, j]))
                for i, j in zip(first[wrong], second[wrong], strict=True)
            ]
    return merged, split


def _most_wrong(predictions: Predictions) -> GroupPrediction:
    """The test group with most wrongly clustered pairs; of several, the largest."""

    def rank(one: GroupPrediction) -> tuple[int, int]:
        labels = labels_at(one.tree, predictions.threshold)
        gold = np.array([mention.cluster for mention in one.group.mentions])
        wrong = (labels[:, None] == labels) != (gold[:, None] == gold)
        return int(wrong.sum()), len(gold)

    return max(predictions.test, key=rank)


def _shown(
    mention: CoreferenceMention, documents: Mapping[str, CoreferenceDocument], names: Mapping[str, str] | None
) -> ShownMention:
    """A mention in its sentence; `names`: of the gold clusters, None = these are unknown."""
    document = documents[mention.document]
    first, last = document.sentences[mention.sentence]
    start, end = mention.tokens
    return ShownMention.from_tokens(
        document.tokens[first:last],
        (start - first, end - first),
        document=document_name(mention.document, joined(document.tokens[slice(*document.sentences[0])])),
        gold=names.get(mention.cluster) if names is not None else None,  # of one that was found, perhaps none
    )
