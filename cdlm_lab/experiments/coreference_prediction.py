"""From a trained pair scorer to clusters: probabilities of all pairs, merge trees, and the threshold that is
best on dev (CDLM sections 3.2 and C.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cdlm_lab.clustering import (
    ThresholdChoice,
    best_threshold,
    clusters_of,
    labels_at,
    merge_tree,
    square_scores,
)
from cdlm_lab.data.coreference_records import CoreferenceMention, Topic, gold_clusters
from cdlm_lab.examples.mention_pairs import MentionGroup, MentionPairExamples, all_pairs, pairs_within
from cdlm_lab.experiments.coreference import Prepared, pair_examples
from cdlm_lab.experiments.pair_scoring import score_pairs
from cdlm_lab.metrics.coreference import score
from cdlm_lab.models.device import default_device

THRESHOLDS = np.round(np.arange(0.02, 1.0, 0.02), 2)


@dataclass(frozen=True, kw_only=True)
class GroupPrediction:
    """The mentions of a group, the probability of each pair, (mentions, mentions), and their merge tree."""

    group: MentionGroup
    scores: np.ndarray
    tree: np.ndarray

    def clusters(self, threshold: float) -> list[tuple[CoreferenceMention, ...]]:
        """The mentions, put together while the mean probability between two clusters is above a threshold."""
        return clusters_of(self.group.mentions, labels_at(self.tree, threshold))


def predict(prepared: Prepared, split: str, folder: Path) -> list[GroupPrediction]:
    """Score every pair of every group of a split; the scores are kept in `folder`, in a file of the split."""
    return predict_groups(
        prepared,
        prepared.topics[split],
        prepared.groups[split],
        file=folder / f"{split}.npy",
        name=f"scoring {split}",
    )


def predict_groups(
    prepared: Prepared,
    topics: Sequence[Topic],
    groups: Sequence[MentionGroup],
    *,
    file: Path | None,
    name: str,
) -> list[GroupPrediction]:
    """Score every pair of every group, as of any documents.

    Args:
        topics: hold the documents of the groups.
        file: where scores are kept, so that a stopped run goes on; None = nowhere.
        name: beside the progress bar.
    """
    scores = score_pairs(
        prepared.model.to(default_device()),
        prediction_examples(prepared, topics, groups),
        file=file,
        batch_size=prepared.pairs.batch_size,
        both_orders=prepared.pairs.both_orders,
        name=name,
    )
    found, first = [], 0
    for group in groups:
        pairs = all_pairs(len(group.mentions))
        square = square_scores(pairs, scores[first : first + len(pairs)], mentions=len(group.mentions))
        found.append(GroupPrediction(group=group, scores=square, tree=merge_tree(square)))
        first += len(pairs)
    return found


def prediction_examples(
    prepared: Prepared, topics: Sequence[Topic], groups: Sequence[MentionGroup]
) -> MentionPairExamples:
    """Every pair of each group, once, group after group."""
    return pair_examples(
        topics,
        groups,
        pairs_within(groups),
        context=prepared.settings.context,
        max_length=prepared.pairs.max_length,
        tokenizer=prepared.tokenizer,
    )


def response_at(predictions: Sequence[GroupPrediction], threshold: float) -> list[list[tuple]]:
    """Clusters of all groups at a threshold, of places of mentions, as the metrics read them."""
    return [
        [mention.place for mention in cluster]
        for prediction in predictions
        for cluster in prediction.clusters(threshold)
    ]


def key_of(topics: Sequence[Topic], kind: str) -> list[list[tuple]]:
    """Gold clusters of all topics, of places of mentions."""
    return [[mention.place for mention in cluster] for cluster in gold_clusters(topics, kind=kind).values()]


def choose_threshold(prepared: Prepared, predictions: Sequence[GroupPrediction]) -> ThresholdChoice:
    """The threshold with the best CoNLL F1 on dev."""
    key = key_of(prepared.topics["dev"], prepared.settings.kind)
    return best_threshold(
        THRESHOLDS.tolist(), lambda threshold: score(key, response_at(predictions, threshold))["conll"].f1
    )
