"""The analyses of section 5 of the Doc-ARC paper on the test documents of a run: entities of high TF-IDF
(Figures 2 and 3, Table 5), and attention by distance (Figure 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

import numpy as np

from cdlm_lab.analysis.occurrence_weights import weights_by_distance
from cdlm_lab.analysis.tf_idf import labelled_words, shares_by_quantile, strata, tf_idf, top_entities
from cdlm_lab.experiments.document_tagging import TaggingRun, Training
from cdlm_lab.experiments.seed_scores import RESAMPLES
from cdlm_lab.experiments.tag_predictions import TagPredictions
from cdlm_lab.metrics.significance import compare
from cdlm_lab.metrics.span_f1 import Tags, f1_of, word_counts

# What Figure 3 subtracts; the paper has the second alone.
GAINS = (("doc-arc", "bert-lstm"), ("doc-arc", "bert"), ("dynamic-doc-arc", "dynamic-bert-lstm"))
Found = Mapping[Training, Mapping[str, TagPredictions]]


def analysis_tables(run: TaggingRun, found: Found) -> dict[str, list[dict[str, Any]]]:
    """Tables of a report: `shares` (Figure 2), `gains` (Figure 3), `top` (Table 5), `weights` (Figure 4)."""
    test = run.corpus.documents["test"]
    others = chain(run.corpus.documents["train"], run.corpus.documents["dev"])
    words = labelled_words(test, tf_idf(test, others=others))
    return {
        "shares": [asdict(share) for share in shares_by_quantile(words)],
        "gains": _gains(run, found, strata(test, words)),
        "top": [
            {"word": one.spelling, "labels": list(one.labels), "score": one.score}
            for one in top_entities(words)
        ],
        "weights": _weights(run, found),
    }


def mean_of_seeds(sums: np.ndarray, *, score: Any = f1_of) -> np.ndarray:
    """The mean over seeds of a score of summed counts (..., seeds * 3)."""
    return score(sums.reshape(*sums.shape[:-1], -1, 3)).mean(axis=-1)


def _gains(run: TaggingRun, found: Found, parts: Sequence[Any]) -> list[dict[str, Any]]:
    """Differences of word-level F1, mean over seeds, over all words and over entities of high TF-IDF;
    documents are drawn."""
    chosen = [("all words", None), *((_top(part.percentile), part.chosen) for part in parts)]
    rows = []
    for a, b in GAINS:
        sides = [[(one.gold(), one.predicted()) for one in _of_table(run, found, name)] for name in (a, b)]
        if not all(sides):
            continue
        for name, of_words in chosen:
            counts = [_word_counts(side, of_words) for side in sides]
            occurrences = int(counts[0][:, 2].sum())  # in the gold, which every seed has
            if not occurrences:
                continue
            compared = compare(*counts, mean_of_seeds, n_resamples=RESAMPLES, seed=0)
            f1 = {
                f"f1_{side}": float(mean_of_seeds(one.sum(axis=0)))
                for side, one in zip("ab", counts, strict=True)
            }
            rows.append({"a": a, "b": b, "words": name, "occurrences": occurrences, **f1, **asdict(compared)})
    return rows


def _top(percentile: float) -> str:
    return f"top {100 - percentile:g}%"


def _of_table(run: TaggingRun, found: Found, name: str) -> list[TagPredictions]:
    """Of all seeds, on test, without those of the sweep."""
    return [of_split["test"] for training, of_split in found.items() if run.row_of(training) == name]


def _word_counts(seeds: Sequence[tuple[Tags, Tags]], chosen: Any) -> np.ndarray:
    """(documents, seeds * 3), of gold and predicted tags with each seed."""
    counts = [word_counts(gold, predicted, chosen=chosen) for gold, predicted in seeds]
    return np.concatenate(counts, axis=1).astype(np.float64)


def _weights(run: TaggingRun, found: Found) -> list[dict[str, Any]]:
    """Of the words that occur more than once, with seed 0: a word that occurs once has weight 1 whatever was
    learned."""
    rows = []
    for training, of_split in found.items():
        predictions = of_split["test"]
        swept = run.row_of(training) != training.system.name
        if training.seed or swept or predictions.weights is None:
            continue
        buckets = predictions.buckets()
        several = (buckets >= 0).sum(axis=1) > 1
        if several.any():
            found_here = weights_by_distance(predictions.weights[several], buckets[several])
            rows += [{"system": training.system.name, **asdict(one)} for one in found_here]
    return rows
