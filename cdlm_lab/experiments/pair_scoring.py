"""Probabilities of many pairs of mentions, kept on disk as they come, so that a stopped run goes on.

Pairs are read in batches of like length and like number of global tokens; each pair once, or once in either
order, whose mean is taken.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from cdlm_lab.collate import Collate, batches_by_length
from cdlm_lab.examples.mention_pairs import MentionPairExamples
from cdlm_lab.experiments.kept_numbers import KeptNumbers
from cdlm_lab.models.cross_encoder import PairScorer
from cdlm_lab.models.precision import Precision, computing_in
from cdlm_lab.progress import Progress


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
    """Probability that the mentions of each pair corefer; float32 (pairs,).

    Args:
        model: on the device where it is to run.
        examples: labels, if any, are not read.
        file: `.npy`; what it holds is not scored again, and it grows every 20 seconds. One file belongs to
            one model and one list of pairs; keep it in the folder of their run. None = nothing is kept.
        batch_size: pairs read at once; changes nothing but speed and memory.
        both_orders: score (i, j) and (j, i) and take the mean; the second go has a file of its own.
        precision: of the forward pass, as of `resolve_precision`; probabilities are float32 in each.

    Raises:
        ValueError: the file holds another number of pairs.
    """
    unlabelled = replace(examples, labels=None)
    form = {"batch_size": batch_size, "precision": precision, "name": name}
    scores = _scored(model, unlabelled, file=file, **form)
    if not both_orders:
        return scores
    exchanged = replace(unlabelled, pairs=np.ascontiguousarray(examples.pairs[:, ::-1]))
    other = file and file.with_name(f"{file.stem}-exchanged{file.suffix}")
    return (scores + _scored(model, exchanged, file=other, **form)) / 2


def seconds_of_batch(
    model: PairScorer,
    examples: MentionPairExamples,
    numbers: Sequence[int],
    *,
    precision: Precision = "float32",
) -> float:
    """Seconds that one pair of a batch of these takes, measured on the second go."""
    unlabelled = replace(examples, labels=None)
    batch = Collate(pad_token_id=model.config.pad_token_id)([unlabelled[number] for number in numbers])
    model.eval()
    with computing_in(precision, model.device):
        _probabilities(model, batch)
        start = time.perf_counter()
        _probabilities(model, batch)
    return (time.perf_counter() - start) / len(numbers)


def _scored(
    model: PairScorer,
    examples: MentionPairExamples,
    *,
    file: Path | None,
    batch_size: int,
    precision: Precision,
    name: str,
) -> np.ndarray:
    collate = Collate(pad_token_id=model.config.pad_token_id)
    model.eval()
    with KeptNumbers(file, (len(examples),)) as scores, computing_in(precision, model.device):
        done = len(examples) - len(scores.missing)
        with Progress(total=len(examples), initial=done, desc=name, unit="pair") as bar:
            for numbers in _batches(examples, scores.missing, batch_size):
                batch = collate([examples[number] for number in numbers])
                scores.values[numbers] = _probabilities(model, batch)
                scores.save_when_due()
                bar.update(len(numbers))
    return scores.values


def _batches(examples: MentionPairExamples, numbers: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """Batches of pairs, the longest first."""
    sizes = [examples.size_of(int(number)) for number in numbers]
    batches = batches_by_length(
        [size.length for size in sizes], [size.global_count for size in sizes], batch_size
    )
    return [numbers[batch] for batch in batches]


@torch.no_grad()  # not inference_mode: the judge of a training asks between updates
def _probabilities(model: PairScorer, batch: dict[str, torch.Tensor]) -> np.ndarray:
    on_device = {key: tensor.to(model.device) for key, tensor in batch.items()}
    return torch.sigmoid(model(**on_device).logits).cpu().numpy()
