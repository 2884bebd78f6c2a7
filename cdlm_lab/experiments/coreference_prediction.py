"""Training of the pair scorer, and from the trained one to clusters: probabilities of all pairs, merge trees,
and the threshold that is best on dev (CDLM sections 3.2 and C.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cdlm_lab.clustering import (
    ThresholdChoice,
    best_threshold,
    clusters_of,
    labels_at,
    merge_tree,
    square_scores,
)
from cdlm_lab.collate import Collate, like_lengths_together
from cdlm_lab.data.coreference_records import CoreferenceMention, Topic, gold_clusters
from cdlm_lab.examples.mention_pairs import MentionGroup, MentionPairExamples, all_pairs, pairs_within
from cdlm_lab.experiments.coreference import PairSettings, Prepared, lengths_of, pair_examples, prepare
from cdlm_lab.experiments.coreference_corpora import CoreferenceSettings
from cdlm_lab.experiments.fine_tuning import config_of_passes
from cdlm_lab.experiments.pair_scoring import score_pairs
from cdlm_lab.experiments.parallel import Recipe, TrainingJob, train_in_processes
from cdlm_lab.metrics.coreference import score
from cdlm_lab.models.cross_encoder import PairScorer
from cdlm_lab.models.device import default_device
from cdlm_lab.training.config import Precision, TrainingConfig, Workers
from cdlm_lab.training.processes import ALONE, Processes
from cdlm_lab.training.saved_model import MODEL_FOLDER, TRAINING_FOLDER, save_model
from cdlm_lab.training.selection import Judge
from cdlm_lab.training.trainer import TrainingResult

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


def training_config(
    prepared: Prepared,
    *,
    batch_size: int,
    micro_batch_size: int,
    learning_rate: float,
    warmup_steps: int,
    precision: Precision = "auto",
    workers: Workers = "auto",
) -> TrainingConfig:
    """So many epochs over the drawn pairs, with a look at dev after each.

    Raises ParameterError for values that cannot be.
    """
    epochs = prepared.pairs.epochs
    return config_of_passes(
        items=len(prepared.train_examples) // epochs,
        epochs=epochs,
        batch_size=batch_size,
        micro_batch_size=micro_batch_size,
        learning_rate=learning_rate,
        warmup_steps=warmup_steps,
        precision=precision,
        workers=workers,
        seed=prepared.settings.seed,
    )


def train_scorer(
    prepared: Prepared,
    folder: Path,
    config: TrainingConfig,
    *,
    processes: Processes = ALONE,
    on_log: Callable[[Mapping[str, Any]], None] | None = None,
) -> TrainingResult:
    """Train the scorer and write it into `folder/model`, as it was after the epoch that `dev_judge` finds
    best or, without it, that of the lowest loss on the dev sample; checkpoints and history go to
    `folder/training`. An interrupted run writes no model. Errors as of `train_in_processes`."""
    settings = {"settings": prepared.settings, "pairs": prepared.pairs, "config": config}
    result = train_in_processes(
        Recipe(function=prepare_job, arguments=settings | prepared.encoder),
        job=_job(prepared, config),
        processes=processes,
        folder=folder / TRAINING_FOLDER,
        on_log=on_log,
    )
    if not result.interrupted:
        save_model(prepared.model, prepared.tokenizer, folder / MODEL_FOLDER)
    return result


def prepare_job(
    *,
    settings: CoreferenceSettings,
    pairs: PairSettings,
    model: str,
    window: int,
    attention: str,
    config: TrainingConfig,
) -> TrainingJob:
    """That of `prepare`, for each of several processes."""
    prepared = prepare(settings=settings, pairs=pairs, model=model, window=window, attention=attention)
    return _job(prepared, config)


def _job(prepared: Prepared, config: TrainingConfig) -> TrainingJob:
    """The pairs of an update are sorted by length, so that its micro-batches hold little padding."""
    examples = prepared.train_examples
    return TrainingJob(
        model=prepared.model,
        tokenizer=prepared.tokenizer,
        train_examples=examples.in_order(like_lengths_together(lengths_of(examples), config.batch_size)),
        validation_examples=prepared.dev_examples,
        collate=Collate(pad_token_id=prepared.tokenizer.pad_token_id),
        config=config,
        judge=dev_judge(prepared),
    )


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
    """The threshold with the best CoNLL F1 on dev, without clusters of one mention if the settings leave them
    out of all scores."""
    key, singletons = key_of(prepared.topics["dev"], prepared.settings.kind), prepared.settings.singletons
    return best_threshold(
        THRESHOLDS.tolist(),
        lambda threshold: score(key, response_at(predictions, threshold), singletons=singletons)["conll"].f1,
    )


def dev_judge(prepared: Prepared) -> Judge | None:
    """CoNLL F1 of a scorer on all of dev, at its best threshold; None where nothing is to be judged: a single
    epoch, or a choice by loss."""
    if prepared.pairs.checkpoint != "conll" or prepared.pairs.epochs == 1:
        return None
    topics, groups = prepared.topics["dev"], prepared.groups["dev"]

    def conll_f1(model: PairScorer) -> float:
        judged = replace(prepared, model=model)
        predictions = predict_groups(judged, topics, groups, file=None, name="dev after this epoch")
        return choose_threshold(prepared, predictions).score

    return conll_f1
