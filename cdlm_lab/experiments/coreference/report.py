"""What notebook 03 shows and leaves behind: what it will cost, scores beside baselines, tests, clusters in
context, wrong pairs, merge trees, the table, and coreference in documents of one's own.

Intervals and tests draw topics; topics that share a cluster, of the key or of any system, are drawn together.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from IPython.display import HTML

from cdlm_lab.clustering import clusters_of, labels_at
from cdlm_lab.data.coreference_files import write_conll
from cdlm_lab.data.files import DataError, plain_name, read_text
from cdlm_lab.data.records import (
    CoreferenceDocument,
    CoreferenceMention,
    Topic,
    gold_clusters,
    mentions_of,
)
from cdlm_lab.data.typed_documents import parse_marked_documents
from cdlm_lab.examples.collate import Collate
from cdlm_lab.examples.mention_pairs import MentionGroup, corefer, group_mentions, pairs_within
from cdlm_lab.experiments.coreference.scorer import (
    SYSTEM,
    GroupPrediction,
    Predictions,
    Prepared,
    choose_threshold,
    dev_judge,
    encoded_documents,
    first_scores,
    key_of,
    predict_groups,
    predict_split,
    prediction_examples,
    probabilities,
    response_at,
)
from cdlm_lab.experiments.runs import Scores, facts_table, report, time_in_words
from cdlm_lab.metrics.coreference import (
    SCORE_PARTS,
    count_table,
    joined_topics,
    mean_f1,
    parts_by_topic,
    same_head,
    scores_of_parts,
    total_parts,
)
from cdlm_lab.metrics.significance import compare, holm, percentile_interval, resampled_sums
from cdlm_lab.models.precision import computing_in, precision_told
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import Report, write_json
from cdlm_lab.scores import Score
from cdlm_lab.training.history import seconds_of_batch
from cdlm_lab.training.processes import Processes
from cdlm_lab.widgets.ask import OwnDocuments
from cdlm_lab.widgets.coreference import (
    CoreferenceErrors,
    PairError,
    ShownCluster,
    clusters_html,
    dendrogram_figure,
    errors_html,
)
from cdlm_lab.widgets.html import ShownMention, joined, seconds_in_words
from cdlm_lab.widgets.score_tables import score_table
from cdlm_lab.widgets.tables import ScoreTable, published_rows

__all__ = ["evaluate", "preview", "report"]
Clusters = Sequence[Sequence[tuple[str, int, int]]]  # of places of mentions: document, start, end
BASELINES = ("singletons", "one cluster", "same head word")
RESAMPLES = 10_000
LOOKED_AT = 200  # training pairs, to find some of middling length
MOST_IN_WHOLE = (
    5_000  # pairs of dev that are all read in whole documents, to see what passing over some costs
)


# ---- before the start ----


def preview(prepared: Prepared) -> HTML:
    """What a person wants to know before a run starts."""
    return facts_table(facts_of(prepared))


def facts_of(prepared: Prepared) -> list[tuple[str, str]]:
    """What `preview` shows, as (name, text); takes a few seconds, for a few pairs are scored, and learned
    from, to know how long that takes."""
    settings, config = prepared.settings, prepared.config
    counts = {
        split: sum(1 for _ in mentions_of(topics, kind=settings.kind))
        for split, topics in prepared.topics.items()
    }
    seconds, length, lost = _sample(prepared, settings.context)
    looks = 1 + (settings.epochs if dev_judge(prepared) else 0)
    to_score = len(pairs_within(prepared.groups["dev"])) * looks + len(pairs_within(prepared.groups["test"]))
    to_score *= 1 + settings.both_orders
    training = time_in_words(_training_seconds(prepared), Processes.of(settings.parallel))
    share = prepared.train_examples.labels.mean()
    facts = [
        ("mentions", ", ".join(f"{split} {count:,}" for split, count in counts.items())),
        (
            "training",
            f"{config.steps:,} steps of {config.batch_size} pairs, {share:.0%} of which corefer; "
            f"about {training}",
        ),
        ("precision", precision_told(config.precision)),
        (
            "scoring",
            f"{to_score:,} pairs of dev{f' ({looks} times)' if looks > 1 else ''} and test; "
            f"about {seconds_in_words(to_score * seconds)}",
        ),
    ]
    if settings.first_by_sentences:
        by_sentences = seconds_in_words(to_score * _sample(prepared, "sentences")[0])
        text = f"all pairs by sentences; about {by_sentences}. Of the time above only what the pairs take "
        facts.append(("first by sentences", f"{text}that are read"))
    text = f"{length:,.0f} tokens a pair; {lost:.1%} of the tokens of its documents do not fit"
    return [*facts, *_corpus_facts(prepared), ("text", text)]


def _corpus_facts(prepared: Prepared) -> list[tuple[str, str]]:
    """How documents are put together, how many clusters go through several of them, what was passed over."""
    facts = [
        (f"searched together in {split}", f"{prepared.level[split]}; {len(groups):,} groups")
        for split, groups in prepared.groups.items()
    ]
    for split, topics in prepared.topics.items():
        clusters = gold_clusters(topics, kind=prepared.settings.kind).values()
        across = sum(len({mention.document for mention in cluster}) > 1 for cluster in clusters)
        text = f"{len(clusters):,}, of which {across:,} go through several documents"
        facts.append((f"gold clusters of {split}", text))
    for split, counted in prepared.passed_over.items():
        facts += [(f"passed over in {split}", line) for line in counted.lines()]
    return facts


def _training_seconds(prepared: Prepared) -> float:
    """Of all steps, from a batch of pairs of middling length, as training puts like lengths together."""
    examples, config = prepared.train_examples, prepared.config
    some = range(0, len(examples), max(1, len(examples) // LOOKED_AT))
    by_length = sorted(some, key=examples.length_of)
    size = min(config.micro_batch_size, len(by_length))
    first = (len(by_length) - size) // 2
    chosen = [examples[number] for number in by_length[first : first + size]]
    collate = Collate(pad_token_id=prepared.tokenizer.pad_token_id)
    seconds, _ = seconds_of_batch(prepared.model, partial(collate, chosen), precision=config.precision)
    return seconds / size * config.steps * config.batch_size


def _sample(prepared: Prepared, context: str, size: int = 24) -> tuple[float, float, float]:
    """Seconds a pair, tokens a pair, and the share of tokens that do not fit, over a few pairs of dev."""
    group = max(prepared.groups["dev"], key=lambda one: len(one.mentions))
    examples = replace(prediction_examples(prepared, prepared.documents["dev"], [group]), context=context)
    numbers = list(range(0, len(examples), max(1, len(examples) // size)))[:size]
    sizes = [examples.size_of(number) for number in numbers]
    lost, length = sum(one.lost_tokens for one in sizes), sum(one.length for one in sizes)
    chosen = [examples[number] for number in numbers[: prepared.settings.micro_batch_size]]
    model, batch = prepared.model.eval(), Collate(pad_token_id=prepared.tokenizer.pad_token_id)(chosen)
    with computing_in(prepared.settings.precision, model.device):
        probabilities(model, batch)  # the first time is slower than all others
        start = time.perf_counter()
        probabilities(model, batch)
    seconds = (time.perf_counter() - start) / len(chosen)
    return seconds, length / len(sizes), lost / max(1, lost + length)


# ---- scores and the report ----


def evaluate(prepared: Prepared, predictions: Predictions) -> Scores:
    """Scores of dev and test at the chosen threshold, beside baselines and the runs of `compare_with`;
    clusters are written into the run's folder.

    Raises ParameterError for a run without clusters, or whose clusters lack some of the mentions.
    """
    settings, folder, threshold = prepared.settings, prepared.opened.folder, predictions.threshold
    rows: list[Score] = []
    comparisons: dict[str, list[dict[str, Any]]] = {}
    for split in ("test", "dev"):
        topics, groups = prepared.topics[split], getattr(predictions, split)
        clusters = response_at(groups, threshold)
        write_json(folder / f"clusters-{split}.json", {"clusters": clusters})
        _write_conll(folder, split, topics, groups, threshold, settings.kind)
        responses = {SYSTEM: clusters}
        for other in settings.compare_with.split():
            responses[plain_name(other)] = read_clusters(Path(other), split, among=clusters)
        of_split, comparisons[split] = coreference_scores(
            key_of(topics, settings.kind),
            responses | baseline_responses(topics, prepared.groups[split]),
            topic_of={document.id: document.topic for topic in topics for document in topic.documents},
            singletons=settings.singletons,
            seed=settings.seed,
            columns={"split": split, "group": settings.kind},
        )
        rows += of_split
    choice = predictions.choice
    rows.append(Score(metric="threshold", value=choice.threshold, group=settings.kind))
    rows.append(Score(metric="threshold/dev_conll_f1", value=choice.score, group=settings.kind))
    tables = {
        "comparisons": comparisons["test"],
        "sentences_first": what_sentences_lose(prepared, folder / "scores"),
        "thresholds": [{"threshold": one, "dev_conll_f1": value} for one, value in choice.tried],
    }
    return Scores(rows=rows, tables=tables)


def baseline_responses(topics: Sequence[Topic], groups: Sequence[MentionGroup]) -> dict[str, Clusters]:
    """What needs no training: every mention alone, all of a group together, and equal head words of a group
    together."""
    documents = _documents(topics)
    mentions = [mention for group in groups for mention in group.mentions]
    group_of = [group.id for group in groups for _ in group.mentions]
    tokens = [documents[mention.document].tokens[slice(*mention.tokens)] for mention in mentions]
    labels = (range(len(mentions)), group_of, same_head(tokens, group_of))
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
    """Scores of systems that cluster the same mentions, and tests of the first against each other one.

    Args:
        topic_of: topic of each document.
        columns: of all rows.

    Returns:
        Rows of `muc/recall`, `conll/f1` and so on; the CoNLL F1 has its 95% interval, the count of topics (n)
        and, on test, its p. And a row for each test of the CoNLL F1, `p_holm` corrected for all of them.
    """
    columns = columns or {}
    topic = joined_topics(key, *responses.values(), topic=lambda place: topic_of[place[0]])
    units = {
        name: list(parts_by_topic(key, response, topic=topic, singletons=singletons).values())
        for name, response in responses.items()
    }
    first, *others = units
    counts = {name: count_table(parts) for name, parts in units.items()}
    tests = []
    for other in others:
        compared = compare(counts[first], counts[other], mean_f1, n_resamples=RESAMPLES, seed=seed)
        names = ("difference", "low", "high", "p_bootstrap", "p")
        tests.append({"a": first, "b": other} | {name: getattr(compared, name) for name in names})
    for row, corrected in zip(tests, holm([row["p"] for row in tests]), strict=True):
        row["p_holm"] = corrected
    p_of = {row["b"]: row["p_holm"] for row in tests} if columns.get("split", "test") == "test" else {}
    rows = []
    for name, parts in units.items():
        drawn = resampled_sums(counts[name], n_resamples=RESAMPLES, rng=np.random.default_rng(seed))
        low, high = percentile_interval(mean_f1(drawn))
        of_conll = {"low": low, "high": high, "n": len(parts)}
        if name in p_of:
            of_conll |= {"p": p_of[name], "against": first}
        for measure, value in scores_of_parts(total_parts(parts)).items():
            for part in SCORE_PARTS:
                metric = f"{measure}/{part}"
                more = of_conll if metric == "conll/f1" else {}
                rows.append(Score(system=name, metric=metric, value=getattr(value, part), **columns, **more))
    return rows, tests


def what_sentences_lose(prepared: Prepared, folder: Path) -> list[dict[str, Any]]:
    """For dev and test, after `predict`: the threshold of the reading by sentences, the pairs, how many of
    them are read in whole documents, the coreferring ones, and how many of these are passed over; of dev,
    where it has at most MOST_IN_WHOLE pairs, also the best CoNLL F1 so and with all pairs read. Nothing where
    whole documents are read at once."""
    rows = []
    for split in ("dev", "test") if prepared.settings.first_by_sentences else ():
        groups, first = prepared.groups[split], first_scores(prepared, split, folder)
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
                predictions = predict_split(prepared, split, folder, name="dev in full", whole=whole)
                row[name] = choose_threshold(prepared, predictions).score
        rows.append(row)
    return rows


def summary(report: Report) -> str:
    """What the reading by sentences passed over, if there was one, and the threshold that dev chose."""
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


def read_clusters(folder: Path, split: str, *, among: Clusters) -> list[list[tuple]]:
    """The clusters that another run wrote, of the mentions of `among` alone: a run on fewer topics can be
    compared with one on all. Raises ParameterError: the folder has none, or some of the mentions are not in
    them."""
    file = folder / f"clusters-{split}.json"
    if not file.is_file():
        raise ParameterError(
            f"compare_with names {folder}, but there is no {file.name} in it; is the run finished?"
        )
    wanted = {place for one in among for place in one}
    read = [[tuple(place) for place in one] for one in json.loads(read_text(file))["clusters"]]
    clusters = [kept for one in read if (kept := [place for place in one if place in wanted])]
    if lacking := len(wanted) - sum(map(len, clusters)):
        raise ParameterError(
            f"compare_with names {folder}, which lacks {lacking} of the {len(wanted)} mentions of {split}; "
            "compare runs on one corpus and kind, whose topics hold those of this run"
        )
    return clusters


def _write_conll(
    folder: Path,
    split: str,
    topics: Sequence[Topic],
    predictions: Sequence[GroupPrediction],
    threshold: float,
    kind: str,
) -> None:
    """`key-<split>.conll` and `response-<split>.conll`, for reference scorers. Mentions of one cluster that
    cross do not fit that form; then the file is left out with a line of output."""
    response: Mapping[str, Sequence] = {
        f"{prediction.group.id}/{number}": cluster
        for prediction in predictions
        for number, cluster in enumerate(prediction.clusters(threshold))
    }
    for name, clusters in (("key", gold_clusters(topics, kind=kind)), ("response", response)):
        try:
            write_conll(folder / f"{name}-{split}.conll", topics, clusters)
        except ValueError as error:
            print(f"no {name}-{split}.conll: {error}")


# ---- views ----


def clusters_view(prepared: Prepared, predictions: Predictions) -> HTML:
    """The clusters of the largest group of test, each mention in its sentence."""
    topics, largest = prepared.topics["test"], _largest(predictions)
    return HTML(clusters_html(shown_clusters(topics, largest, predictions.threshold)))


def tree_view(prepared: Prepared, predictions: Predictions) -> go.Figure:
    """The merge tree of the largest group of test, with the threshold."""
    largest, documents = _largest(predictions), _documents(prepared.topics["test"])
    mentions = [_shown(mention, documents) for mention in largest.group.mentions]
    title = f"How {largest.group.id} came together"
    return dendrogram_figure(largest.tree, mentions, threshold=predictions.threshold, title=title)


def errors_view(prepared: Prepared, predictions: Predictions) -> HTML:
    """The wrong pairs of all groups of test."""
    errors = pair_errors(prepared.topics["test"], predictions.test, predictions.threshold)
    return HTML(errors_html(errors))


def table_view(report: Report) -> ScoreTable:
    """Baselines, the systems of test, and below them what the paper reports on the same kind of mentions."""
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
) -> list[ShownCluster]:
    """The clusters of one group, each mention in its sentence; `gold`: False = they are not known."""
    documents = _documents(topics)
    return [
        ShownCluster(
            name=f"#{number}", mentions=tuple(_shown(mention, documents, gold=gold) for mention in cluster)
        )
        for number, cluster in enumerate(prediction.clusters(threshold), start=1)
    ]


def pair_errors(
    topics: Sequence[Topic], predictions: Sequence[GroupPrediction], threshold: float
) -> CoreferenceErrors:
    """Pairs that were put together and do not corefer, and pairs that corefer and were kept apart."""
    documents = _documents(topics)
    errors: dict[str, list[PairError]] = {"merged": [], "split": []}
    for prediction in predictions:
        mentions = prediction.group.mentions
        shown = [_shown(mention, documents) for mention in mentions]
        labels = labels_at(prediction.tree, threshold)
        gold = np.unique([mention.cluster for mention in mentions], return_inverse=True)[1]
        first, second = np.triu_indices(len(mentions), k=1)
        together, same = labels[first] == labels[second], gold[first] == gold[second]
        for name, wrong in (("merged", together & ~same), ("split", same & ~together)):
            errors[name] += [
                PairError(first=shown[i], second=shown[j], score=float(prediction.scores[i, j]))
                for i, j in zip(first[wrong], second[wrong], strict=True)
            ]
    return CoreferenceErrors(
        merged=tuple(errors["merged"]), split=tuple(errors["split"]), threshold=threshold
    )


def _largest(predictions: Predictions) -> GroupPrediction:
    return max(predictions.test, key=lambda one: len(one.group.mentions))


def _documents(topics: Sequence[Topic]) -> dict[str, CoreferenceDocument]:
    return {document.id: document for topic in topics for document in topic.documents}


def _shown(
    mention: CoreferenceMention, documents: Mapping[str, CoreferenceDocument], *, gold: bool = True
) -> ShownMention:
    document = documents[mention.document]
    start, end = mention.tokens
    first, last = document.sentences[mention.sentence]
    return ShownMention(
        text=joined(document.tokens[start:end]),
        before=joined(document.tokens[first:start]),
        after=joined(document.tokens[end:last]),
        document=mention.document,
        gold=mention.cluster if gold else None,
    )


# ---- documents of one's own ----

# What stands in the box before anything is typed, by kind of mention.
EXAMPLES = {
    "event": """\
== morning paper ==
A gas <m>blast</m> killed 14 miners in the Ombrava mine near Telk on Tuesday. Another 30 men were
<m>brought up alive</m> by nightfall. Engineers began <m>drilling</m> a shaft to reach the rest.

== evening paper ==
The <m>explosion</m> in the mine near Telk was the worst in ten years, the energy minister said on
Wednesday. The <m>rescue</m> of 30 miners had taken six hours.

== radio bulletin ==
A shaft is being <m>drilled</m> at the Ombrava mine, a day after the <m>accident</m>.
""",
    "entity": """\
== morning paper ==
A gas blast killed 14 miners in the <m>Ombrava mine</m> near <m>Telk</m> on Tuesday. <m>Marta Elling</m>,
the energy minister, promised an inquiry.

== evening paper ==
The explosion in the <m>mine</m> near <m>Telk</m> was the worst in ten years, the <m>energy minister</m>
said on Wednesday. <m>She</m> will visit the <m>town</m> on Friday.
""",
}


def own_documents(prepared: Prepared, predictions: Predictions) -> OwnDocuments:
    """A box for documents with marked mentions, at first those of the parameter `own_documents`, or an
    example; their clusters are also written to `own_clusters.json`."""
    settings = prepared.settings
    return OwnDocuments(
        own_text(settings.own_documents, settings.kind),
        find=lambda text: own_clusters(prepared, text, source=settings.own_documents or "text"),
        threshold=predictions.threshold,
    )


def own_text(path: str, kind: str) -> str:
    """The text of a file, or an example if `path` is ""."""
    return read_text(path) if path else EXAMPLES[kind]


def own_clusters(prepared: Prepared, text: str, *, source: str = "text") -> Callable[[float], str]:
    """Score all pairs of the marked mentions of a text; the function returned takes a threshold, writes the
    clusters into the run's folder and gives them as HTML. Raises DataError, which names the `source`."""
    topic, prediction = cluster_own(prepared, text, source=source)

    def clusters_at(threshold: float) -> str:
        _write_own(prepared.opened.folder / "own_clusters.json", topic, prediction, threshold)
        return clusters_html(shown_clusters([topic], prediction, threshold, gold=False))

    return clusters_at


def cluster_own(prepared: Prepared, text: str, *, source: str = "text") -> tuple[Topic, GroupPrediction]:
    """Score all pairs of the marked mentions of a text; raises DataError, which names the `source`."""
    kind = prepared.settings.kind
    topic = parse_marked_documents(text, kind=kind, source=source)
    groups = group_mentions([topic], kind, "topic", None)
    if len(groups[0].mentions) < 2:
        remedy = "mark at least two with <m> and </m>"
        raise DataError(source, "there is one mention only", remedy, field="marks")
    documents = encoded_documents([topic], prepared.tokenizer)
    (prediction,) = predict_groups(prepared, documents, groups, file=None, name="scoring your documents")
    return topic, prediction


def _write_own(file: Path, topic: Topic, prediction: GroupPrediction, threshold: float) -> None:
    """For each cluster its mentions with document, half-open span of tokens and words."""
    documents = _documents([topic])
    clusters = [
        [
            {
                "document": mention.document,
                "tokens": list(mention.tokens),
                "text": documents[mention.document].text_of(mention),
            }
            for mention in cluster
        ]
        for cluster in prediction.clusters(threshold)
    ]
    write_json(file, {"threshold": threshold, "clusters": clusters})
