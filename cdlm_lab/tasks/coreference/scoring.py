"""Scores of pairs of mentions, and the clusters that follow from them at a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.records import CoreferenceMention, Topic, gold_clusters
from cdlm_lab.encoders.checkpoint import on_default_device
from cdlm_lab.encoders.precision import Precision, computing_in
from cdlm_lab.examples.collate import Collate, batches_by_length
from cdlm_lab.examples.tokens import EncodedDocuments, from_tokenizer
from cdlm_lab.parameters import parameters_of
from cdlm_lab.progress import Progress
from cdlm_lab.runs.made import KeptNumbers
from cdlm_lab.tasks.coreference import clustering
from cdlm_lab.tasks.coreference import examples as mention_pairs
from cdlm_lab.tasks.coreference.examples import MentionGroup, MentionPairExamples, pairs_within
from cdlm_lab.tasks.coreference.model import PairScorer

SENTENCES_AT_ONCE = 8  # batches of sentence pairs are this many times larger than those of document pairs


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """A pair scorer with its tokenizer and settings."""

    settings: Any  # `Settings` of the experiment
    model: PairScorer
    tokenizer: PreTrainedTokenizerBase


def pair_examples(
    settings: Any,
    tokenizer: PreTrainedTokenizerBase,
    topics: Sequence[Topic],
    groups: Sequence[MentionGroup],
) -> MentionPairExamples:
    """Every pair within each group, once, group after group; documents are tokenised on first use."""
    documents = (document for topic in topics for document in topic.documents)
    return MentionPairExamples(
        mentions=mention_pairs.mentions_in(groups),
        pairs=pairs_within(groups),
        documents=EncodedDocuments(documents, tokenizer),
        special=from_tokenizer(tokenizer),
        marks=mention_pairs.marks_from_tokenizer(tokenizer),
        **parameters_of(settings, "context", "max_length"),
    )


def score_pairs(
    model: PairScorer,
    examples: MentionPairExamples,
    *,
    file: Path | None,
    batch_size: int,
    both_orders: bool = False,
    precision: Precision = "float32",
    name: str = "scoring",
) -> np.ndarray:
    """Probability that the mentions of each pair corefer; float32 (pairs,), whatever the precision.

    Args:
        file: `.npy`; pairs in it are not scored again, and it is saved every 20 seconds. It belongs to one
            model and one list of pairs. None = nothing is saved.
        batch_size: pairs per batch, of similar lengths; affects only speed and memory.
        both_orders: score (i, j) and (j, i) and take the mean; the second order has its own file.
    """
    if both_orders:
        form = {"batch_size": batch_size, "precision": precision, "name": name}
        exchanged = replace(examples, pairs=np.ascontiguousarray(examples.pairs[:, ::-1]), labels=None)
        as_given = score_pairs(model, examples, file=file, **form)
        return (as_given + score_pairs(model, exchanged, file=beside(file, "exchanged"), **form)) / 2
    examples, collate = replace(examples, labels=None), Collate(pad_token_id=model.config.pad_token_id)
    model.eval()
    with KeptNumbers(file, (len(examples),)) as scores, computing_in(precision, model.device):
        missing = scores.missing
        sizes = [examples.size_of(int(number)) for number in missing]
        lengths, globals_ = [size.length for size in sizes], [size.global_count for size in sizes]
        done = len(examples) - len(missing)
        with Progress(total=len(examples), initial=done, desc=name, unit="pair") as bar:
            for numbers in (missing[batch] for batch in batches_by_length(lengths, globals_, batch_size)):
                batch = collate([examples[number] for number in numbers])
                scores.values[numbers] = probabilities(model, batch)
                scores.save_when_due()
                bar.update(len(numbers))
    return scores.values


@torch.no_grad()  # not inference_mode: the judge of a training predicts between optimizer steps
def probabilities(model: PairScorer, batch: dict[str, torch.Tensor]) -> np.ndarray:
    """Probability that each pair of a batch corefers, float32 (pairs,)."""
    on_device = {key: tensor.to(model.device) for key, tensor in batch.items()}
    return torch.sigmoid(model(**on_device).logits).cpu().numpy()


def beside(file: Path | None, what: str) -> Path | None:
    """A file with `what` in its name beside a file, or None."""
    return file and file.with_name(f"{file.stem}-{what}{file.suffix}")


def scored(
    prepared: Scorer, examples: MentionPairExamples, *, file: Path | None, name: str, times: int = 1
) -> np.ndarray:
    """Probabilities of all pairs as the settings say; `times`: factor on the batch size."""
    form = parameters_of(prepared.settings, "both_orders", "precision") | {"file": file, "name": name}
    batch_size = times * prepared.settings.micro_batch_size
    return score_pairs(on_default_device(prepared.model), examples, batch_size=batch_size, **form)


class FirstScores(NamedTuple):
    """Probabilities from sentences alone, float32 (pairs,); for pairs below the threshold, whole documents
    are not read."""

    scores: np.ndarray
    threshold: float

    @property
    def read(self) -> np.ndarray:
        """bool (pairs,), True = whole documents are read."""
        return self.scores >= self.threshold


def passing_threshold(scores: np.ndarray, corefer: np.ndarray, *, lost: float) -> float:
    """The largest threshold with at most a fraction `lost` of coreferring pairs below; 0 if none corefer.

    Example:
        >>> scores, corefer = np.array([0.1, 0.2, 0.3, 0.9]), np.array([True, False, True, True])
        >>> passing_threshold(scores, corefer, lost=0.34), passing_threshold(scores, corefer, lost=0.3)
        (0.3, 0.1)
    """
    positive = np.sort(scores[corefer])
    return float(positive[int(lost * len(positive))]) if len(positive) else 0.0


@dataclass(frozen=True)
class GroupPrediction:
    """The mentions of a group and the coreference probability of each pair, (mentions, mentions)."""

    group: MentionGroup
    scores: np.ndarray

    @cached_property
    def tree(self) -> np.ndarray:
        """The merge tree of the mentions, which does not depend on the threshold."""
        return clustering.merge_tree(self.scores)

    def clusters(self, threshold: float) -> list[tuple[CoreferenceMention, ...]]:
        """Clusters, merged while the mean probability between two of them is above the threshold."""
        return clustering.clusters_of(self.group.mentions, clustering.labels_at(self.tree, threshold))


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """The predictions for the groups of dev and test, and the threshold that is best on dev."""

    dev: list[GroupPrediction]
    test: list[GroupPrediction]
    choice: clustering.ThresholdChoice

    @property
    def threshold(self) -> float:
        """The mean probability above which two clusters are merged."""
        return self.choice.threshold


def predict_groups(
    prepared: Scorer,
    examples: MentionPairExamples,
    groups: Sequence[MentionGroup],
    *,
    file: Path | None,
    name: str,
    first: FirstScores | None = None,
    whole: bool = False,
) -> list[GroupPrediction]:
    """Score every pair of every group. With `first`, whole documents are read only for the pairs above its
    threshold, or for all if `whole`."""
    if first is None:
        scores = scored(prepared, examples, file=file, name=name)
    else:
        scores = first.scores.copy()
        for chosen, kept in ((first.read, "read"), (~first.read, "passed-over"))[: 1 + whole]:
            if chosen.any():
                some = examples.in_order(np.flatnonzero(chosen))
                scores[chosen] = scored(prepared, some, file=beside(file, kept), name=name)
    sizes = [len(group.mentions) for group in groups]
    of_groups = np.split(scores, np.cumsum([size * (size - 1) // 2 for size in sizes])[:-1])
    return [
        GroupPrediction(group, clustering.square_scores(of_group, mentions=size))
        for group, of_group, size in zip(groups, of_groups, sizes, strict=True)
    ]


def response_at(predictions: Sequence[GroupPrediction], threshold: float) -> list[list[tuple]]:
    """Predicted clusters of all groups at a threshold, each a list of (document, start, end)."""
    clusters = (cluster for prediction in predictions for cluster in prediction.clusters(threshold))
    return [[mention.place for mention in cluster] for cluster in clusters]


def key_of(topics: Sequence[Topic], kind: str) -> list[list[tuple]]:
    """Gold clusters of all topics, each a list of (document, start, end)."""
    return [[mention.place for mention in cluster] for cluster in gold_clusters(topics, kind=kind).values()]
