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
from cdlm_lab.data.files import replaced_file
from cdlm_lab.examples.mention_pairs import MentionPairExamples
from cdlm_lab.models.cross_encoder import PairScorer
from cdlm_lab.progress import Progress

SAVE_SECONDS = 20.0


def score_pairs(
    model: PairScorer,
    examples: MentionPairExamples,
    *,
    file: Path | None,
    batch_size: int,
    both_orders: bool = False,
    name: str = "scoring",
) -> np.ndarray:
    """Probability that the mentions of each pair corefer; float32 (pairs,).

    Args:
        model: on the device where it is to run; on CUDA it computes in half precision.
        examples: labels, if any, are not read.
        file: `.npy`; what it holds is not scored again, and it grows every 20 seconds. One file belongs to
            one model and one list of pairs; keep it in the folder of their run. None = nothing is kept.
        batch_size: pairs read at once; changes nothing but speed and memory.
        both_orders: score (i, j) and (j, i) and take the mean; the second go has a file of its own.

    Raises:
        ValueError: the file holds another number of pairs.
    """
    unlabelled = replace(examples, labels=None)
    scores = _scored(model, unlabelled, file=file, batch_size=batch_size, name=name)
    if not both_orders:
        return scores
    exchanged = replace(unlabelled, pairs=np.ascontiguousarray(examples.pairs[:, ::-1]))
    other = file and file.with_name(f"{file.stem}-exchanged{file.suffix}")
    return (scores + _scored(model, exchanged, file=other, batch_size=batch_size, name=name)) / 2


def seconds_of_batch(model: PairScorer, examples: MentionPairExamples, numbers: Sequence[int]) -> float:
    """Seconds that one pair of a batch of these takes, measured on the second go."""
    unlabelled = replace(examples, labels=None)
    batch = Collate(pad_token_id=model.config.pad_token_id)([unlabelled[number] for number in numbers])
    model.eval()
    _probabilities(model, batch)
    start = time.perf_counter()
    _probabilities(model, batch)
    return (time.perf_counter() - start) / len(numbers)


def _scored(
    model: PairScorer, examples: MentionPairExamples, *, file: Path | None, batch_size: int, name: str
) -> np.ndarray:
    scores = _read(file, len(examples))
    missing = np.flatnonzero(np.isnan(scores))
    batches = _batches(examples, missing, batch_size)
    collate = Collate(pad_token_id=model.config.pad_token_id)
    model.eval()
    saved = time.monotonic()
    with Progress(total=len(scores), initial=len(scores) - len(missing), desc=name, unit="pair") as bar:
        for numbers in batches:
            batch = collate([examples[number] for number in numbers])
            scores[numbers] = _probabilities(model, batch)
            bar.update(len(numbers))
            if file and time.monotonic() - saved > SAVE_SECONDS:
                _write(file, scores)
                saved = time.monotonic()
    if file and len(missing):
        _write(file, scores)
    return scores


def _batches(examples: MentionPairExamples, numbers: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """Batches of pairs, the longest first."""
    sizes = [examples.size_of(int(number)) for number in numbers]
    batches = batches_by_length(
        [size.length for size in sizes], [size.global_count for size in sizes], batch_size
    )
    return [numbers[batch] for batch in batches]


@torch.inference_mode()
def _probabilities(model: PairScorer, batch: dict[str, torch.Tensor]) -> np.ndarray:
    device = model.device
    on_device = {key: tensor.to(device) for key, tensor in batch.items()}
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
        logits = model(**on_device).logits
    return torch.sigmoid(logits).cpu().numpy()


def _read(file: Path | None, count: int) -> np.ndarray:
    """What was scored so far; nan = not yet."""
    if not (file and file.exists()):
        return np.full(count, np.nan, dtype=np.float32)
    scores = np.load(file, allow_pickle=False)
    if scores.shape != (count,):
        raise ValueError(
            f"{file} holds the scores of {scores.size} pairs, but there are {count}; it is of another run: "
            "choose another run folder"
        )
    return scores


def _write(file: Path, scores: np.ndarray) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with replaced_file(file, binary=True) as opened:
        np.save(opened, scores, allow_pickle=False)
