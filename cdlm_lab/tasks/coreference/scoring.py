"""Scores of pairs of mentions, and the clusters that follow from them at a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.records import CoreferenceMention, Topic, gold_clusters
from cdlm_lab.encoders.checkpoint import on_default_device
from cdlm_lab.encoders.precision import Precision, computing_in
from cdlm_lab.examples.collate import Collate, batches_by_tokens
from cdlm_lab.examples.tokens import EncodedDocuments, from_tokenizer
from cdlm_lab.parameters import parameters_of
from cdlm_lab.progress import ALONE, Progress, Share
from cdlm_lab.runs.made import KeptNumbers
from cdlm_lab.tasks.coreference import clustering
from cdlm_lab.tasks.coreference import examples as mention_pairs
from cdlm_lab.tasks.coreference.examples import MentionGroup, MentionPairExamples, pairs_within
from cdlm_lab.tasks.coreference.model import OneReadingScorer, PairScorer
from cdlm_lab.tasks.coreference.readings import ReadingExamples

Examples = MentionPairExamples | ReadingExamples


@dataclass(frozen=True, kw_only=True)
class Scorer:
    """A scorer of pairs of mentions with its tokenizer and settings."""

    settings: Any  # `Settings` of the experiment
    model: PairScorer | OneReadingScorer
    tokenizer: PreTrainedTokenizerBase


def pair_examples(
    settings: Any,
    tokenizer: PreTrainedTokenizerBase,
    topics: Sequence[Topic],
    groups: Sequence[MentionGroup],
) -> Examples:
    """What the scorer of the settings reads to score every pair within each group once, group after group;
    documents are tokenised on first use."""
    documents = (document for topic in topics for document in topic.documents)
    form = parameters_of(settings, "context", "max_length") | {
        "documents": EncodedDocuments(documents, tokenizer),
        "special": from_tokenizer(tokenizer),
        "marks": mention_pairs.marks_from_tokenizer(tokenizer),
    }
    if settings.scorer == "one-reading":
        return ReadingExamples.over(groups, **form)
    mentions = mention_pairs.mentions_in(groups)
    return MentionPairExamples(mentions=mentions, pairs=pairs_within(groups), **form)


def score_pairs(
    model: PairScorer | OneReadingScorer,
    examples: Examples,
    *,
    file: Path | None,
    batch_size: int,
    precision: Precision = "float32",
    name: str = "scoring",
    share: Share = ALONE,
) -> np.ndarray:
    """Probability that the mentions of each pair corefer; float32 (pairs,), whatever the precision; nan for a
    pair that is in none of the examples.

    Args:
        file: `.npy`; pairs in it are not scored again, and it is saved every 20 seconds. It belongs to one
            model and one list of pairs. None = nothing is saved.
        batch_size: of the longest sequences, of shorter ones as many as have as many tokens; affects only
            speed and memory.
    """
    examples, collate = examples.without_labels(), Collate(pad_token_id=model.config.pad_token_id)
    model.eval()
    with KeptNumbers(file, (examples.pair_count,)) as scores, computing_in(precision, model.device):
        unknown = np.isnan(scores.values)
        missing = {n for n in range(len(examples)) if unknown[examples.pairs_of(n)].any()}
        # Of all, so that after a kill the same sequences are read together.
        batches = [one for one in batches_of(examples, batch_size) if missing & {*one}] if missing else []
        done, own = len(examples) - sum(map(len, batches)), []
        with Progress(total=len(examples), initial=done, desc=name, unit=examples.UNIT) as bar:
            for numbers in share.of(batches):
                batch = collate([examples[number] for number in numbers])
                pairs = np.concatenate([examples.pairs_of(number) for number in numbers])
                own.append((pairs, probabilities(model, batch)))
                scores.values[pairs] = own[-1][1]
                scores.save_when_due()
                bar.update(len(numbers))
        for pairs, values in share.gathered(own):
            scores.values[pairs] = values
    return scores.values


@torch.no_grad()  # not inference_mode: the judge of a training predicts between optimizer steps
def probabilities(model: PairScorer | OneReadingScorer, batch: dict[str, torch.Tensor]) -> np.ndarray:
    """Probability that each pair of a batch corefers, float32 (pairs,)."""
    on_device = {key: tensor.to(model.device) for key, tensor in batch.items()}
    return torch.sigmoid(model(**on_device).logits).cpu().numpy()


@torch.no_grad()
def scored_apart(
    prepared: Scorer, examples: ReadingExamples, *, batch_size: int, name: str | None = None
) -> np.ndarray:
    """Probability that the mentions of each pair corefer, float32 (pairs,), from readings of each part of a
    document alone, which are far fewer than those of two. `name`: text beside the bar; None = no bar."""
    model, alone = on_default_device(prepared.model).eval(), examples.alone.without_labels()
    collate, kept = Collate(pad_token_id=model.config.pad_token_id), model.scorer[0].weight
    # of each mention, that of the [CLS] of its reading and its own
    first, states = kept.new_empty(2, len(alone.mentions), model.config.hidden_size)
    with computing_in(prepared.settings.precision, model.device):
        with Progress(total=len(alone), desc=name, unit=alone.UNIT, disable=name is None) as bar:
            for numbers in batches_of(alone, batch_size):
                batch = collate([alone[number] for number in numbers])
                given = {key: value.to(model.device) for key, value in batch.items() if key != "pair_mask"}
                for number, of_text, of_mentions in zip(numbers, *model.mentions(**given), strict=True):
                    own = [*alone.parts[number].mentions]
                    first[own], states[own] = of_text, of_mentions[: len(own)]
                bar.update(len(numbers))
        scores, sizes = [], [len(group.mentions) for group in examples.groups]
        for of_texts, of_group in zip(first.split(sizes), states.split(sizes), strict=True):
            pairs = torch.as_tensor(mention_pairs.all_pairs(len(of_group)), device=model.device)
            logits = model.logits(of_texts[None], of_group[None], nn.functional.pad(pairs, (1, 0)))
            scores.append(logits.sigmoid().cpu().numpy())
    return np.concatenate(scores)


def batches_of(examples: Examples, batch_size: int) -> list[list[int]]:
    """The indices of all examples in batches of as many tokens as `batch_size` of the longest have."""
    sizes = [examples.size_of(number) for number in range(len(examples))]
    return batches_by_tokens([one.length for one in sizes], [one.global_count for one in sizes], batch_size)


def beside(file: Path | None, what: str) -> Path | None:
    """A file with `what` in its name beside a file, or None."""
    return file and file.with_name(f"{file.stem}-{what}{file.suffix}")


def scored(prepared: Scorer, examples: Examples, **more: Any) -> np.ndarray:
    """Probabilities of all pairs as the settings say. `more`: other arguments of `score_pairs`."""
    form = {"batch_size": prepared.settings.micro_batch_size, "precision": prepared.settings.precision}
    return score_pairs(on_default_device(prepared.model), examples, **form | more)


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
    examples: Examples,
    groups: Sequence[MentionGroup],
    *,
    file: Path | None,
    name: str,
    unread: np.ndarray | None = None,
    **more: Any,
) -> list[GroupPrediction]:
    """Score every pair of every group. `unread`: scores (pairs,) of pairs that are in no example; `more`:
    other arguments of `score_pairs`."""
    scores = scored(prepared, examples, file=file, name=name, **more)
    scores = scores if unread is None else np.where(np.isnan(scores), unread, scores)
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
