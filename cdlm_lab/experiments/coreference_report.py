"""Before and after a run of notebook 03: what it will cost, and its report with clusters as CoNLL files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cdlm_lab.clustering import ThresholdChoice
from cdlm_lab.collate import Collate
from cdlm_lab.data.coreference_conll import write_conll
from cdlm_lab.data.coreference_records import Topic, gold_clusters, mentions_of
from cdlm_lab.data.files import plain_name, read_text
from cdlm_lab.examples.mention_pairs import MentionGroup
from cdlm_lab.experiments.coreference import Prepared
from cdlm_lab.experiments.coreference_prediction import (
    GroupPrediction,
    dev_judge,
    key_of,
    prediction_examples,
    response_at,
)
from cdlm_lab.experiments.coreference_scores import Clusters, baseline_responses, coreference_scores
from cdlm_lab.experiments.pair_scoring import seconds_of_batch
from cdlm_lab.experiments.parallel import time_told
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import Report, Run
from cdlm_lab.report.values import write_json
from cdlm_lab.training.batch_time import seconds_of_batch as seconds_to_learn
from cdlm_lab.training.config import Precision, TrainingConfig, precision_told
from cdlm_lab.training.processes import ALONE, Processes
from cdlm_lab.widgets.markup import seconds_in_words

SYSTEM = "this run"
LOOKED_AT = 200  # training pairs, for one of middling length


def pairs_of(groups: Sequence[MentionGroup]) -> int:
    """How many pairs there are within the groups."""
    return sum(len(group.mentions) * (len(group.mentions) - 1) // 2 for group in groups)


def facts_of(
    prepared: Prepared, config: TrainingConfig, *, processes: Processes = ALONE
) -> list[tuple[str, str]]:
    """What a person wants to know before a run starts, as (name, text) pairs; takes a few seconds, for a few
    pairs are scored, and learned from, to know how long that takes."""
    settings, pairs = prepared.settings, prepared.pairs
    counts = {
        split: sum(1 for _ in mentions_of(topics, kind=settings.kind))
        for split, topics in prepared.topics.items()
    }
    seconds, length, lost = _sample(prepared)
    looks = 1 + (pairs.epochs if dev_judge(prepared) else 0)
    to_score = pairs_of(prepared.groups["dev"]) * looks + pairs_of(prepared.groups["test"])
    to_score *= 1 + pairs.both_orders
    training = config.steps * config.batch_size * _training_seconds(prepared, config)
    share = prepared.train_examples.labels.mean()
    return [
        ("mentions", ", ".join(f"{split} {count:,}" for split, count in counts.items())),
        (
            "training",
            f"{config.steps:,} steps of {config.batch_size} pairs, {share:.0%} of which corefer; "
            f"about {time_told(training, processes)}",
        ),
        ("precision of training", precision_told(config.precision)),
        (
            "scoring",
            f"{to_score:,} pairs of dev{f' ({looks} times)' if looks > 1 else ''} and test; "
            f"about {seconds_in_words(to_score * seconds)}",
        ),
        *_corpus_facts(prepared),
        ("text", f"{length:,.0f} tokens a pair; {lost:.1%} of the tokens of its documents do not fit"),
    ]


def _corpus_facts(prepared: Prepared) -> list[tuple[str, str]]:
    """How documents are put together, how many clusters go through several of them, what was passed over."""
    facts = [
        (f"searched together in {split}", f"{prepared.levels[split].described}; {len(groups):,} groups")
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


def write_coreference_report(
    prepared: Prepared,
    run: Run,
    dev: Sequence[GroupPrediction],
    test: Sequence[GroupPrediction],
    choice: ThresholdChoice,
    *,
    compare_with: Sequence[str] = (),
    precision: Precision = "auto",
) -> Report:
    """Score test and dev at the chosen threshold, beside the baselines; write the clusters and the report.

    `compare_with`: folders of other runs on these mentions, or more, of which these are taken; they are
    scored and tested too. `precision`: as it was given for the training.

    Raises ParameterError for a folder without clusters, or whose clusters lack some of the mentions.
    """
    settings = prepared.settings
    measured = {}
    for split, predictions in (("test", test), ("dev", dev)):
        clusters = response_at(predictions, choice.threshold)
        write_clusters(run.folder, split, clusters)
        responses = {SYSTEM: clusters}
        for folder in compare_with:
            responses[plain_name(folder)] = read_clusters(Path(folder), split, among=clusters)
        measured[split] = _measured(prepared, split, responses)
        _write_conll(run.folder, split, prepared.topics[split], predictions, choice.threshold, settings.kind)
    return run.write_report(
        scores={
            **{
                f"{split}/{name}": value
                for split, (scores, _) in measured.items()
                for name, value in scores.items()
            },
            "threshold": {"value": choice.threshold, "dev_conll_f1": choice.score},
        },
        data={
            "corpus": settings.corpus,
            "precision": precision_told(precision),
            "singletons": settings.singletons,
            "topic_level": {split: level.described for split, level in prepared.levels.items()},
            "passed_over": {split: counted.lines() for split, counted in prepared.passed_over.items()},
            "pairs_scored": {split: pairs_of(prepared.groups[split]) for split in ("dev", "test")},
            "topics": {split: [topic.id for topic in topics] for split, topics in prepared.topics.items()},
        },
        tables={
            "comparisons": measured["test"][1],
            "thresholds": [{"threshold": one, "dev_conll_f1": score} for one, score in choice.tried],
        },
    )


def scores_of_split(report: Report, split: str) -> dict[str, dict[str, Any]]:
    """The scores of one split, `system/measure/part` -> value."""
    start = f"{split}/"
    return {
        name.removeprefix(start): value for name, value in report.scores.items() if name.startswith(start)
    }


def _measured(
    prepared: Prepared,
    split: str,
    responses: Mapping[str, Clusters],
) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    topics = prepared.topics[split]
    return coreference_scores(
        key_of(topics, prepared.settings.kind),
        {**responses, **baseline_responses(topics, prepared.groups[split])},
        topic_of={document.id: document.topic for topic in topics for document in topic.documents},
        singletons=prepared.settings.singletons,
        seed=prepared.settings.seed,
    )


def write_clusters(folder: Path, split: str, clusters: Clusters) -> None:
    """Write `clusters-<split>.json`: for each cluster its mentions, each [document, start, end]."""
    write_json(folder / f"clusters-{split}.json", {"clusters": clusters})


def read_clusters(folder: Path, split: str, *, among: Clusters) -> list[list[tuple]]:
    """The clusters that another run wrote, of the mentions of `among` alone: a run on fewer topics can be
    compared with one on all.

    Raises:
        ParameterError: the folder has none, or some of the mentions are not in them.
    """
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
    """`key-<split>.conll` and `response-<split>.conll`, for reference scorers. What that form cannot hold
    (mentions of one cluster that cross) is said and left out; the report does not need these files."""
    response: Mapping[str, Sequence] = {
        f"{prediction.group.id}/{number}": cluster
        for prediction in predictions
        for number, cluster in enumerate(prediction.clusters(threshold))
    }
    for name, clusters in (("key", gold_clusters(topics, kind=kind)), ("response", response)):
        try:
            write_conll(folder / f"{name}-{split}.conll", topics, clusters, level="corpus")
        except ValueError as error:
            print(f"no {name}-{split}.conll: {error}")


def _training_seconds(prepared: Prepared, config: TrainingConfig) -> float:
    """Seconds to learn from a pair, in a batch of pairs of middling length, as training puts like lengths
    together."""
    examples = prepared.train_examples
    some = range(0, len(examples), max(1, len(examples) // LOOKED_AT))
    by_length = sorted(some, key=examples.length_of)
    size = min(config.micro_batch_size, len(by_length))
    first = (len(by_length) - size) // 2
    chosen = [examples[number] for number in by_length[first : first + size]]
    collate = Collate(pad_token_id=prepared.tokenizer.pad_token_id)
    seconds, _ = seconds_to_learn(prepared.model, partial(collate, chosen), precision=config.precision)
    return seconds / size


def _sample(prepared: Prepared, size: int = 24) -> tuple[float, float, float]:
    """Seconds a pair, tokens a pair, and the share of tokens that do not fit, over a few pairs of dev."""
    group = max(prepared.groups["dev"], key=lambda one: len(one.mentions))
    examples = prediction_examples(prepared, prepared.topics["dev"], [group])
    step = max(1, len(examples) // size)
    numbers = list(range(0, len(examples), step))[:size]
    sizes = [examples.size_of(number) for number in numbers]
    lost = sum(one.lost_tokens for one in sizes)
    length = float(np.mean([one.length for one in sizes]))
    seconds = seconds_of_batch(prepared.model, examples, numbers[: prepared.pairs.batch_size])
    return seconds, length, lost / max(1, lost + sum(one.length for one in sizes))
