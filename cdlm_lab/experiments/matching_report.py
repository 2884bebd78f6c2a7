"""Before and after a run of notebook 04: what it will cost, its scores, and its tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from cdlm_lab.data.document_pairs import DocumentPair
from cdlm_lab.data.files import named
from cdlm_lab.experiments.document_matching import MatchingRun, training_of
from cdlm_lab.experiments.match_predictions import MatchPredictions
from cdlm_lab.experiments.matching_corpora import shared_documents
from cdlm_lab.experiments.matching_systems import SYSTEMS, System
from cdlm_lab.experiments.parallel import time_told
from cdlm_lab.experiments.seed_scores import score_of_seeds
from cdlm_lab.metrics.classification import binary_intervals, binary_scores, compare_binary
from cdlm_lab.metrics.significance import holm
from cdlm_lab.models.estimate import parameter_count
from cdlm_lab.report import Report, Run
from cdlm_lab.training.batch_time import seconds_of_batch
from cdlm_lab.training.config import precision_told
from cdlm_lab.training.processes import ALONE, Processes
from cdlm_lab.widgets.matching_table import MatchingRow

MEASURES = ("accuracy", "f1")
Found = Mapping[tuple[str, int], Mapping[str, MatchPredictions]]  # (system, seed) -> split


def corpus_facts(run: MatchingRun) -> list[tuple[str, str]]:
    """What is matched, as (name, text)."""
    rows = [
        (
            split,
            f"{len(pairs):,} pairs, {fmean(pair.related for pair in pairs):.0%} related; "
            f"{fmean(len(one.sentences) for pair in pairs for one in (pair.first, pair.second)):.0f} "
            "sentences a document",
        )
        for split, pairs in run.pairs.items()
    ]
    rows += ((name, named(places)) for name, places in run.lost.items())
    shared = shared_documents(run.pairs)
    if any(shared.values()):
        told = ", ".join(f"{share:.0%} of {split}" for split, share in shared.items())
        rows.append(("documents of train are in", f"{told}: this corpus was split by pairs"))
    return rows


def cost_facts(run: MatchingRun) -> list[tuple[str, str]]:
    """What each system will take, as (name, text); takes a few seconds, for one batch is learned from to know
    how long a step takes. Encodings of sentences that frozen encoders make once are not counted."""
    rows = [("precision of training", precision_told(run.settings.training.precision))]
    for system in run.settings.systems:
        if system.encoder == "words":
            continue
        matcher = run.matcher(system, 0, trained=False)
        config = training_of(run.settings, system, seed=0, pairs=len(run.pairs["train"]))
        processes = Processes.of(run.settings.training.parallel) if system.trains_encoder else ALONE
        examples = matcher.examples(run.pairs["train"][: config.micro_batch_size])
        seconds, _ = seconds_of_batch(
            matcher.model, partial(matcher.collate, examples), precision=config.precision
        )
        total = seconds * config.steps * config.batch_size / config.micro_batch_size
        rows.append(
            (
                system.label,
                f"{parameter_count(matcher.model) / 1e6:.2f} million parameters; updates with "
                f"{config.batch_size} pairs: {config.steps:,}, about {time_told(total, processes)}; times "
                f"seeds: {run.settings.training.seeds}",
            )
        )
    return rows


def write_matching_report(run: MatchingRun, opened: Run, found: Found) -> Report:
    """Scores of all systems on dev and test, and the tests between them on test."""
    return opened.write_report(
        scores={
            f"{system.name}/{split}/{measure}": score
            for system in run.settings.systems
            for split in ("dev", "test")
            for measure, score in _scores(run.pairs[split], _of(found, system.name, split)).items()
        },
        data={
            "corpus": run.settings.corpus.corpus,
            "precision": precision_told(run.settings.training.precision),
            "pairs": {split: len(pairs) for split, pairs in run.pairs.items()},
            "clusters": {split: len({pair.cluster for pair in pairs}) for split, pairs in run.pairs.items()},
            "shared_documents": shared_documents(run.pairs),
            "lost": {name: named(places) for name, places in run.lost.items()},
        },
        tables={
            "comparisons": _comparisons(run, found),
            "runs": [
                {"system": name, "seed": seed, "split": split, **asdict(_plain(run.pairs[split], one))}
                for (name, seed), of_split in found.items()
                for split, one in of_split.items()
            ],
        },
    )


def matching_rows(report: Report, split: str = "test") -> list[MatchingRow]:
    """A row for each system of a report, in order."""
    names = dict.fromkeys(name.partition("/")[0] for name in report.scores)
    p_of = {row["a"]: row["p_holm"] for row in report.tables["comparisons"] if row["measure"] == "accuracy"}
    rows = []
    for name in names:
        accuracy, f1 = (report.scores[f"{name}/{split}/{measure}"] for measure in MEASURES)
        rows.append(
            MatchingRow(
                system=name,
                label=SYSTEMS[name].label,
                accuracy=accuracy["value"],
                f1=f1["value"],
                accuracy_interval=(accuracy["low"], accuracy["high"]),
                f1_interval=(f1["low"], f1["high"]),
                accuracy_deviation=accuracy["deviation"],
                f1_deviation=f1["deviation"],
                seeds=accuracy["seeds"],
                p=p_of.get(name) if split == "test" else None,
            )
        )
    return rows


def labels_of(pairs: Iterable[DocumentPair]) -> np.ndarray:
    """bool (pairs,), True = related."""
    return np.array([pair.related for pair in pairs])


def _of(found: Found, system: str, split: str) -> list[MatchPredictions]:
    """Of all seeds."""
    return [of_split[split] for (name, _), of_split in found.items() if name == system]


def _plain(pairs: Sequence[DocumentPair], predictions: MatchPredictions) -> Any:
    return binary_scores(labels_of(pairs), predictions.decisions)


def _scores(pairs: Sequence[DocumentPair], seeds: Sequence[MatchPredictions]) -> dict[str, dict[str, Any]]:
    """Mean and deviation over seeds; the interval of the mean draws clusters of pairs."""
    each = [asdict(_plain(pairs, one)) for one in seeds]
    intervals = asdict(
        binary_intervals(labels_of(pairs), _decisions(seeds), clusters=[pair.cluster for pair in pairs])
    )
    return {
        measure: score_of_seeds([one[measure] for one in each], intervals[measure]) for measure in MEASURES
    }


def _decisions(seeds: Sequence[MatchPredictions]) -> np.ndarray:
    """bool (seeds, pairs)."""
    return np.stack([one.decisions for one in seeds])


def _comparisons(run: MatchingRun, found: Found) -> list[dict[str, Any]]:
    """Each system against the one that it builds on, by mean accuracy and by mean F1 over the seeds, clusters
    of pairs being what is drawn. `p_holm`: corrected for the systems tested."""
    tested = [
        (system, SYSTEMS[system.against])
        for system in run.settings.systems
        if system.against in {other.name for other in run.settings.systems}
    ]
    rows = []
    for measure in MEASURES:
        compared = [_compare(run.pairs["test"], found, *pair, measure=measure) for pair in tested]
        for row, corrected in zip(compared, holm([row["p_permutation"] for row in compared]), strict=True):
            rows.append({**row, "p_holm": corrected})
    return rows


def _compare(
    pairs: Sequence[DocumentPair], found: Found, a: System, b: System, *, measure: str
) -> dict[str, Any]:
    ours, theirs = (_decisions(_of(found, system.name, "test")) for system in (a, b))
    compared = compare_binary(
        labels_of(pairs), ours, theirs, measure=measure, clusters=[pair.cluster for pair in pairs]
    )
    return {"a": a.name, "b": b.name, **asdict(compared)}
