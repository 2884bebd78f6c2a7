"""Evaluation and views of notebook 03: cost estimates, scores beside baselines, tests, clusters in context,
wrong pairs, merge trees, the table, and coreference in the reader's own documents.

Intervals and tests resample topics; topics that share a cluster, of the key or of any system, stay together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from cdlm_lab.data.convert.coreference_files import write_conll
from cdlm_lab.data.coreference import gold_names
from cdlm_lab.data.files import DataError, read_text
from cdlm_lab.data.marked import parse_marked_documents
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, Topic, gold_clusters
from cdlm_lab.data.text_profile import texts_of_record
from cdlm_lab.encoders.checkpoint import default_device
from cdlm_lab.encoders.model_folder import is_model
from cdlm_lab.encoders.precision import computing_in, precision_in_words
from cdlm_lab.metrics.significance import compare, percentile_interval, resampled_sums
from cdlm_lab.parameters import names_in
from cdlm_lab.runs.report import Report, write_json
from cdlm_lab.runs.runs import Scores, once, report
from cdlm_lab.runs.scores import Score
from cdlm_lab.runs.scoring import with_p_holm
from cdlm_lab.tasks.coreference import experiment as scorer
from cdlm_lab.tasks.coreference import metrics
from cdlm_lab.tasks.coreference import view as widgets
from cdlm_lab.tasks.coreference.clustering import clusters_of, labels_at
from cdlm_lab.tasks.coreference.examples import MentionGroup, corefer, group_mentions, pairs_within
from cdlm_lab.tasks.coreference.experiment import SYSTEM, CoreferenceRun, GroupPrediction, Predictions
from cdlm_lab.training.checkpoints import MODEL_FOLDER
from cdlm_lab.views.ask import OwnDocuments
from cdlm_lab.views.before_training import cost_in_words, facts_table, time_taken
from cdlm_lab.views.figures import keep_figure
from cdlm_lab.views.html import (
    ShownMention,
    counted,
    cut_in_words,
    document_name,
    joined,
    seconds_in_words,
    warning,
)
from cdlm_lab.views.score_tables import score_table
from cdlm_lab.views.tables import ScoreTable, Shown, published_rows

__all__ = ["evaluate", "preview", "report"]
Clusters = Sequence[Sequence[tuple[str, int, int]]]  # each a list of mentions: document, start, end
BASELINES = ("singletons", "one cluster", "same head word")
RESAMPLES = 10_000
LOOKED_AT = 200  # training pairs from which those of median length are timed
MOST_IN_WHOLE = 5_000  # most dev pairs for which whole documents are read to measure the shortcut's loss


# ---- before training ----


def preview(prepared: CoreferenceRun) -> Shown:
    """The main facts about the run before it starts."""
    return facts_table(facts_of(prepared))


def facts_of(prepared: CoreferenceRun) -> list[tuple[str, str]]:
    """The rows of `preview`, as (name, text). Takes seconds: a few pairs are scored and trained on."""
    settings, groups = prepared.settings, prepared.groups
    mentions = [f"{split} {len(examples.mentions):,}" for split, examples in prepared.examples.items()]
    own = prepared.folder / MODEL_FOLDER
    trained = settings.trained or (own if is_model(own) else "")
    if taken := time_taken(prepared):
        ((_, training),) = taken
    elif trained:
        training = f"none: the scorer is that of {trained}"
    else:
        share = prepared.train_examples.labels.mean()
        training = f"{share:.0%} of the pairs corefer; {_training_in_words(prepared)}"
    seconds, length, lost = _sample(prepared, settings.context)
    looks = 1 + (settings.epochs if scorer.dev_judge(prepared) and not trained else 0)
    pairs = len(pairs_within(groups["dev"])) * looks + len(pairs_within(groups["test"]))
    pairs *= 1 + settings.both_orders
    times = f" ({looks} times)" if looks > 1 else ""
    scoring = f"{pairs:,} pairs of dev{times} and test; about {seconds_in_words(pairs * seconds)}"
    facts = [
        ("mentions", ", ".join(mentions)),
        ("training", training),
        ("precision", precision_in_words(prepared.config.precision)),
        ("scoring", scoring),
    ]
    if settings.first_by_sentences:
        about = f"in {settings.sentences_run}"
        if not settings.sentences_run:
            about = f"about {seconds_in_words(pairs * _sample(prepared, 'sentences')[0])}"
        text = f"all pairs by sentences; {about}. Of the time above only what the pairs take that are read"
        facts.append(("first by sentences", text))
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
    text = f"{length:,.0f} tokens a pair; {lost:.1%} of the tokens of its documents do not fit"
    return [*facts, ("text", text)]


def _training_in_words(prepared: CoreferenceRun) -> str:
    """Timed on a batch of pairs of median length, as training batches have pairs of similar lengths."""
    examples, size = prepared.train_examples, prepared.config.micro_batch_size
    some = range(0, len(examples), max(1, len(examples) // LOOKED_AT))
    by_length = sorted(some, key=examples.length_of)
    first = max(0, len(by_length) - size) // 2
    middling = examples.in_order(np.resize(by_length[first : first + size], size))
    job = replace(prepared.job(), train_examples=middling)
    return cost_in_words(job, items="pairs", parallel=prepared.settings.parallel)


def _sample(prepared: CoreferenceRun, context: str, size: int = 24) -> tuple[float, float, float]:
    """Seconds per pair, tokens per pair, and the fraction of tokens that do not fit, from a few dev pairs."""
    settings, examples = prepared.settings, replace(prepared.examples["dev"], context=context)
    numbers = list(range(0, len(examples), max(1, len(examples) // size)))[:size]
    sizes = [examples.size_of(number) for number in numbers]
    lost, length = sum(one.lost_tokens for one in sizes), sum(one.length for one in sizes)
    chosen = [examples[number] for number in numbers[: settings.micro_batch_size]]
    model, batch = prepared.model.to(default_device()).eval(), prepared.job().collate(chosen)
    with computing_in(settings.precision, model.device):
        scorer.probabilities(model, batch)  # warm-up: the first call is slower than all others
        start = time.perf_counter()
        scorer.probabilities(model, batch)
    seconds = (time.perf_counter() - start) / len(chosen)
    return seconds, length / len(sizes), lost / max(1, lost + length)


# ---- scores and the report ----


@once
def evaluate(prepared: CoreferenceRun, predictions: Predictions) -> Scores:
    """Scores of dev and test at the chosen threshold, beside baselines and the runs of `compare_with`; also
    writes the clusters into the run folder.

    Raises ParameterError if a run to compare with has no clusters, or its clusters lack some mentions.
    """
    settings, folder, threshold = prepared.settings, prepared.folder, predictions.threshold
    rows: list[Score] = []
    comparisons: dict[str, list[dict[str, Any]]] = {}
    for split in ("test", "dev"):
        topics, groups = prepared.topics[split], getattr(predictions, split)
        clusters = scorer.response_at(groups, threshold)
        write_json(folder / f"clusters-{split}.json", {"clusters": clusters})
        _write_conll(folder / f"key-{split}.conll", topics, gold_clusters(topics, kind=settings.kind))
        response = {
            f"{one.group.id}/{number}": cluster
            for one in groups
            for number, cluster in enumerate(one.clusters(threshold))
        }
        _write_conll(folder / f"response-{split}.conll", topics, response)
        others = told_apart(names_in(settings.compare_with), taken={SYSTEM, *BASELINES})
        among = {place for one in clusters for place in one}
        read = partial(scorer.read_clusters, split=split, among=among)
        other_runs = {name: read(Path(one)) for one, name in others.items()}
        of_split, comparisons[split] = coreference_scores(
            scorer.key_of(topics, settings.kind),
            {SYSTEM: clusters} | other_runs | baseline_responses(topics, prepared.groups[split]),
            topic_of={name: document.topic for name, document in _documents(topics).items()},
            singletons=settings.singletons,
            seed=settings.seed,
            columns={"split": split, "group": settings.kind},
        )
        rows += of_split
    chosen = {"threshold": threshold, "threshold/dev_conll_f1": predictions.choice.score}
    rows += [Score(metric=metric, value=value, group=settings.kind) for metric, value in chosen.items()]
    tables = {
        "comparisons": comparisons["test"],
        "sentences_first": what_sentences_lose(prepared, folder / "scores"),
        "thresholds": [{"threshold": one, "dev_conll_f1": value} for one, value in predictions.choice.tried],
    }
    return Scores(rows=rows, tables=tables)


def told_apart(folders: Iterable[str], *, taken: Collection[str] = ()) -> dict[str, str]:
    """A name for each folder, the shortest end of its path that no other has and that is not `taken`.

    >>> told_apart(["runs/cdlm/a", "runs/longformer/a", "runs/b"])
    {'runs/cdlm/a': 'cdlm/a', 'runs/longformer/a': 'longformer/a', 'runs/b': 'b'}
    """
    by_path = {Path(folder).resolve().parts: folder for folder in folders}  # a folder may be named twice
    names = {}
    for own, folder in by_path.items():
        ends = [own[-count:] for count in range(1, len(own) + 1)]
        alone = (end for end in ends if sum(other[-len(end) :] == end for other in by_path) == 1)
        names[folder] = next(name for end in alone if (name := "/".join(end)) not in taken)
    return names


def baseline_responses(topics: Sequence[Topic], groups: Sequence[MentionGroup]) -> dict[str, Clusters]:
    """Baselines without training: every mention alone, one cluster per group, and within a group one cluster
    per head word."""
    documents = _documents(topics)
    mentions = [mention for group in groups for mention in group.mentions]
    group_of = [group.id for group in groups for _ in group.mentions]
    tokens = [documents[mention.document].tokens[slice(*mention.tokens)] for mention in mentions]
    labels = (range(len(mentions)), group_of, metrics.same_head(tokens, group_of))
    places = [mention.place for mention in mentions]
    return {name: clusters_of(places, of_all) for name, of_all in zip(BASELINES, labels, strict=True)}


def coreference_scores(
    key: Clusters,
    responses: Mapping[str, Clusters],
    *,
    topic_of: Mapping[str, str],
    singletons: bool = True,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
) -> tuple[list[Score], list[dict[str, Any]]]:
    """Scores of systems that cluster the same mentions, and tests of the first system against each other one.

    Args:
        topic_of: topic of each document.
        columns: further columns of all rows.

    Returns:
        Rows of `muc/recall`, `conll/f1` and so on; the CoNLL F1 has its 95% interval, the number of topics
        (n) and, on test, its p. And a row for each test of the CoNLL F1, `p_holm` corrected for all of them.
    """
    columns = columns or {}
    topic = metrics.joined_topics(key, *responses.values(), topic=lambda place: topic_of[place[0]])
    units = {
        name: list(metrics.parts_by_topic(key, response, topic=topic, singletons=singletons).values())
        for name, response in responses.items()
    }
    first, *others = units
    counts = {name: metrics.count_table(parts) for name, parts in units.items()}
    tests = []
    for other in others:
        compared = compare(counts[first], counts[other], metrics.mean_f1, n_resamples=RESAMPLES, seed=seed)
        names = ("difference", "low", "high", "p_bootstrap", "p")
        tests.append({"a": first, "b": other} | {name: getattr(compared, name) for name in names})
    tests = with_p_holm(tests)
    p_of = {row["b"]: row["p_holm"] for row in tests} if columns.get("split", "test") == "test" else {}
    rows = []
    for name, parts in units.items():
        drawn = resampled_sums(counts[name], n_resamples=RESAMPLES, rng=np.random.default_rng(seed))
        low, high = percentile_interval(metrics.mean_f1(drawn))
        of_conll = {"low": low, "high": high, "n": len(parts)}
        if name in p_of:
            of_conll |= {"p": p_of[name], "against": first}
        for measure, value in metrics.scores_of_parts(metrics.total_parts(parts)).items():
            for part in metrics.SCORE_PARTS:
                metric = f"{measure}/{part}"
                more = of_conll if metric == "conll/f1" else {}
                rows.append(Score(system=name, metric=metric, value=getattr(value, part), **columns, **more))
    return rows, tests


def what_sentences_lose(prepared: CoreferenceRun, folder: Path) -> list[dict[str, Any]]:
    """For dev and test, after `predict`: the threshold on the scores by sentences, the number of pairs, how
    many are read in whole documents, how many corefer, and how many of these are skipped; for dev, if it has
    at most MOST_IN_WHOLE pairs, also the best CoNLL F1 with the skipping and with all pairs read. Empty if
    whole documents are read at once."""
    rows = []
    for split in ("dev", "test") if prepared.settings.first_by_sentences else ():
        groups, first = prepared.groups[split], scorer.first_scores(prepared, split, folder)
        gold = corefer(groups, pairs_within(groups))
        row = {
            "split": split,
            "threshold": first.threshold,
            "pairs": len(gold),
            "read": int(first.read.sum()),
            "corefer": int(gold.sum()),
            "corefer_passed_over": int((gold & ~first.read).sum()),
        }
        if split == "dev" and len(gold) <= MOST_IN_WHOLE:
            for name, whole in (("conll_f1", False), ("conll_f1_in_full", True)):
                predicted = scorer.predict_split(prepared, split, folder, name="dev in full", whole=whole)
                row[name] = scorer.choose_threshold(prepared, predicted).score
        rows.append(row)
    return rows


def summary(report: Report) -> str:
    """How many pairs reading by sentences skipped, if it was used, and the threshold chosen on dev."""
    lines = []
    for row in report.tables.get("sentences_first", ()):
        share, lost = row["read"] / max(1, row["pairs"]), row["corefer_passed_over"] / max(1, row["corefer"])
        line = (
            f"{row['split']}: whole documents read for {row['read']:,} of {row['pairs']:,} pairs "
            f"({share:.1%}), of sentences that score {row['threshold']:.4f} or more; "
            f"passed over {row['corefer_passed_over']:,} of {row['corefer']:,} that corefer ({lost:.1%})"
        )
        if "conll_f1" in row:
            both = [100 * row[name] for name in ("conll_f1", "conll_f1_in_full")]
            line += "; CoNLL F1 {:.1f}, with all pairs read {:.1f}".format(*both)
        lines.append(line)
    value = {row.metric: row.value for row in report.rows if row.metric.startswith("threshold")}
    f1 = 100 * value["threshold/dev_conll_f1"]
    return "\n".join([*lines, f"threshold {value['threshold']:.2f}, with CoNLL F1 {f1:.1f} on dev"])


def _write_conll(
    file: Path, topics: Sequence[Topic], clusters: Mapping[str, Sequence[CoreferenceMention]]
) -> None:
    """Write a file for reference scorers. The format cannot hold crossing mentions of one cluster; then the
    file is left out and a line printed."""
    try:
        write_conll(file, topics, clusters)
    except ValueError as error:
        print(f"no {file.name}: {error}")


# ---- views ----


def clusters_view(prepared: CoreferenceRun, predictions: Predictions) -> Shown:
    """The clusters of the largest test group, each mention in its sentence."""
    clusters = shown_clusters(prepared.topics["test"], _largest(predictions), predictions.threshold)
    return Shown(widgets.clusters_html(clusters, _colours(prepared, predictions)))


def _colours(prepared: CoreferenceRun, predictions: Predictions) -> dict[str | None, str]:
    """The colour of each gold cluster of the largest test group, the same in all pictures of the notebook."""
    largest = _largest(predictions)
    clusters = shown_clusters(prepared.topics["test"], largest, predictions.threshold)
    return widgets.group_colours(clusters, largest.tree, _shown_mentions(prepared, largest))


def _shown_mentions(prepared: CoreferenceRun, prediction: GroupPrediction) -> list[ShownMention]:
    """The mentions of a test group, in the order of its scores."""
    documents = _documents(prepared.topics["test"])
    names = gold_names(documents.values())
    return [_shown(mention, documents, names) for mention in prediction.group.mentions]


def tree_view(prepared: CoreferenceRun, predictions: Predictions) -> go.Figure:
    """The merge tree of the largest test group, with the threshold."""
    largest = _largest(predictions)
    mentions = _shown_mentions(prepared, largest)
    count = len({mention.document for mention in largest.group.mentions})
    title = f"How the {len(mentions):,} mentions of {counted(count, 'document')} came together"
    form = {"threshold": predictions.threshold, "colours": _colours(prepared, predictions)}
    figure = widgets.dendrogram_figure(largest.tree, mentions, title=title, **form)
    return keep_figure(prepared.settings.run_folder, "merge-tree", figure)


def errors_view(prepared: CoreferenceRun, predictions: Predictions) -> Shown:
    """The wrong pairs of all test groups."""
    errors = pair_errors(prepared.topics["test"], predictions.test, predictions.threshold)
    form = {"threshold": predictions.threshold, "colours": _colours(prepared, predictions)}
    return Shown(widgets.errors_html(*errors, **form))


def table_view(report: Report) -> ScoreTable:
    """Baselines and systems on test, and below them the paper's scores on the same kind of mentions."""
    kind, systems = report.parameters["kind"], dict.fromkeys(row.system for row in report.rows if row.system)
    names = sorted(systems, key=lambda name: name not in BASELINES)
    papers = [
        replace(row, label=f"paper: {row.label.replace('cdlm/documents', 'CDLM')}")
        for row in published_rows("cdlm", "2", f"ECB+ {kind}")
    ]
    table = score_table(report, labels={name: name for name in names}, group=kind, others=papers)
    if report.parameters["singletons"]:
        return table
    note = "Without singletons: not to be compared with scores that keep them, as the paper's do."
    return replace(table, note=f"{table.note} {note}")


def shown_clusters(
    topics: Sequence[Topic], prediction: GroupPrediction, threshold: float, *, gold: bool = True
) -> list[widgets.ShownCluster]:
    """The clusters of one group, each mention in its sentence; `gold`: False = gold is unknown."""
    documents, shown = _documents(topics), []
    names = gold_names(documents.values()) if gold else None
    for number, cluster in enumerate(prediction.clusters(threshold), start=1):
        mentions = tuple(_shown(mention, documents, names) for mention in cluster)
        shown.append(widgets.ShownCluster(name=f"#{number}", mentions=mentions))
    return shown


def pair_errors(
    topics: Sequence[Topic], predictions: Sequence[GroupPrediction], threshold: float
) -> tuple[list[widgets.PairError], list[widgets.PairError]]:
    """Pairs that were merged and do not corefer, and pairs that corefer and were kept apart."""
    documents = _documents(topics)
    names = gold_names(documents.values())
    merged: list[widgets.PairError] = []
    split: list[widgets.PairError] = []
    for prediction in predictions:
        mentions = prediction.group.mentions
        shown = [_shown(mention, documents, names) for mention in mentions]
        labels = labels_at(prediction.tree, threshold)
        gold = np.unique([mention.cluster for mention in mentions], return_inverse=True)[1]
        first, second = np.triu_indices(len(mentions), k=1)
        together, same = labels[first] == labels[second], gold[first] == gold[second]
        for errors, wrong in ((merged, together & ~same), (split, same & ~together)):
            errors += [
                widgets.PairError(first=shown[i], second=shown[j], score=float(prediction.scores[i, j]))
                for i, j in zip(first[wrong], second[wrong], strict=True)
            ]
    return merged, split


def _largest(predictions: Predictions) -> GroupPrediction:
    return max(predictions.test, key=lambda one: len(one.group.mentions))


def _documents(topics: Sequence[Topic]) -> dict[str, CoreferenceDocument]:
    return {document.id: document for topic in topics for document in topic.documents}


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
        gold=names[mention.cluster] if names is not None else None,
    )


# ---- the reader's own documents ----


def example_of(kind: str) -> Path:
    """The file with the text in the input box before the reader types."""
    return Path(__file__).parent / "own_texts" / f"{kind}.txt"


def own_documents(prepared: CoreferenceRun, predictions: Predictions) -> OwnDocuments:
    """An input box for documents with marked mentions, at first those of the parameter `own_documents` or an
    example; their clusters are also written to `own_clusters.json`."""
    settings = prepared.settings
    text = read_text(settings.own_documents or example_of(settings.kind))
    source = settings.own_documents or "text"
    find = partial(own_clusters, prepared, source=source)
    return OwnDocuments(text, find=find, threshold=predictions.threshold)


def own_clusters(prepared: CoreferenceRun, text: str, *, source: str = "text") -> Callable[[float], str]:
    """Score all pairs of the marked mentions of a text. Returns a function of a threshold that gives the
    clusters as HTML and writes them into the run folder, with document, half-open token span and words of
    each mention. Raises DataError, which names the `source`."""
    topic = parse_marked_documents(text, kind=prepared.settings.kind, source=source)
    prediction, cut = score_own(prepared, topic, source=source)
    documents = _documents([topic])
    notes = warning(prepared.foreign(texts_of_record(topic))) + warning(cut)

    def written(mention: CoreferenceMention) -> dict[str, Any]:
        words = documents[mention.document].text_of(mention)
        return {"document": mention.document, "tokens": list(mention.tokens), "text": words}

    def clusters_at(threshold: float) -> str:
        clusters = [list(map(written, cluster)) for cluster in prediction.clusters(threshold)]
        file = prepared.folder / "own_clusters.json"
        write_json(file, {"threshold": threshold, "clusters": clusters})
        shown = widgets.clusters_html(shown_clusters([topic], prediction, threshold, gold=False))
        return f"{notes}{shown}"

    return clusters_at


class ScoredOwn(NamedTuple):
    """The mentions of a topic with the scores of their pairs."""

    prediction: GroupPrediction
    cut: str  # a line on the tokens that did not fit


def score_own(one: scorer.Scorer, topic: Topic, *, source: str = "documents") -> ScoredOwn:
    """Score all pairs of mentions of a topic. Raises DataError, naming `source`, for a single mention."""
    groups = group_mentions([topic], one.settings.kind, "topic", None)
    if len(groups[0].mentions) < 2:
        remedy = "mark at least two with <m> and </m>"
        raise DataError(source, "there is one mention only", remedy, field="marks")
    examples = scorer.pair_examples(one.settings, one.tokenizer, [topic], groups)
    sizes = [examples.size_of(number) for number in range(len(examples))]
    (prediction,) = scorer.predict_groups(one, examples, groups, file=None, name="scoring your documents")
    read, lost = (
        sum(column) for column in zip(*((one.length, one.lost_tokens) for one in sizes), strict=True)
    )
    longest = one.settings.max_length
    policy = f"a pair has {longest:,}, of its documents what is nearest to the mentions"
    return ScoredOwn(prediction, cut_in_words("pairs of documents", lost=lost, of=read + lost, policy=policy))
