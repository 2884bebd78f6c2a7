"""What a trained model says of claims, kept on disk as a line of JSON for each, and the share that each
sentence of evidence has in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from cdlm_lab.collate import batches_by_length
from cdlm_lab.data.claims import EvidencedClaim
from cdlm_lab.data.files import replaced_file
from cdlm_lab.examples.candidate_examples import ClaimExamples
from cdlm_lab.examples.joint_sequence import joint_sequence
from cdlm_lab.experiments.claim_verifiers import Verifier
from cdlm_lab.experiments.kept_numbers import KeptNumbers
from cdlm_lab.models.precision import Precision, computing_in
from cdlm_lab.progress import Progress

_INPUTS = ("input_ids", "token_type_ids", "position_ids", "starts")


@dataclass(frozen=True, kw_only=True, eq=False)
class ClaimPredictions:
    """Verdicts on claims, in order.

    Attributes:
        claims: (claims,).
        labels: to choose from.
        probabilities: float64 (claims, labels).
    """

    claims: Sequence[EvidencedClaim]
    labels: tuple[str, ...]
    probabilities: np.ndarray

    @property
    def predicted(self) -> list[str]:
        """The label of the highest probability of each claim; of equals the first."""
        return [self.labels[number] for number in self.probabilities.argmax(axis=1)]

    @property
    def right(self) -> np.ndarray:
        """bool (claims,), True = the label is predicted; False where it is not known."""
        pairs = zip(self.claims, self.predicted, strict=True)
        return np.array([claim.label == label for claim, label in pairs], dtype=bool)

    def save(self, file: Path) -> None:
        """Write a line for each claim, in one go."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(file) as opened:
            for claim, label, row in zip(self.claims, self.predicted, self.probabilities, strict=True):
                said = {
                    "predicted": label,
                    "probabilities": dict(zip(self.labels, row.tolist(), strict=True)),
                }
                opened.write(json.dumps({"id": claim.id, **said}, ensure_ascii=False) + "\n")

    @classmethod
    def load(
        cls, file: Path, *, claims: Sequence[EvidencedClaim], labels: tuple[str, ...]
    ) -> ClaimPredictions:
        """Read what `save` wrote.

        Raises:
            ValueError: it is of other claims or labels.
        """
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
        known = all(tuple(row["probabilities"]) == labels for row in rows)
        if not known or [row["id"] for row in rows] != [claim.id for claim in claims]:
            raise ValueError(f"{file} is of other claims, so of another run: choose another run folder")
        values = np.array([list(row["probabilities"].values()) for row in rows])
        return cls(claims=claims, labels=labels, probabilities=values)


def predict_verdicts(
    verifier: Verifier,
    claims: Sequence[EvidencedClaim],
    *,
    batch_size: int,
    precision: Precision = "float32",
    name: str | None = None,
) -> ClaimPredictions:
    """Label every claim, the longest first, so that batches hold little padding.

    Args:
        verifier: its model is put into evaluation mode and stays on its device.
        claims: their labels, if they have any, are not read.
        batch_size: claims read at once; changes nothing but speed and memory.
        precision: of the forward pass, as of `resolve_precision`.
        name: beside the progress bar; None = no bar.
    """
    verifier.model.eval()
    examples = verifier.examples(claims)
    lengths = [examples.length_of(number) for number in range(len(claims))]
    probabilities = np.zeros((len(claims), len(verifier.labels)))
    with (
        Progress(total=len(claims), desc=name, unit="claim", disable=name is None) as bar,
        computing_in(precision, verifier.device),
    ):
        for numbers in batches_by_length(lengths, [0] * len(lengths), batch_size):
            read = _read(verifier, [examples[number] for number in numbers])
            probabilities[numbers] = np.exp(read["log_probabilities"])
            bar.update(len(numbers))
    return ClaimPredictions(claims=claims, labels=verifier.labels, probabilities=probabilities)


def evidence_shares(
    verifier: Verifier,
    claims: Sequence[EvidencedClaim],
    *,
    file: Path | None = None,
    precision: Precision = "float32",
    name: str | None = None,
) -> list[tuple[float, ...]]:
    """The share that each sentence of evidence has in the verdict on its claim, each in [0, 1].

    Of `weighted_sum` it is the sentence's weight in the sum, of `max` the part of the dimensions in which it
    is the largest; these sum to 1. A joint model does not tell, and is asked: each sentence is left out, the
    others staying at their places, and the share is how much the log-probability of the label that is
    predicted with all of them falls without it, 0 if it rises, divided by the sum over the sentences. They
    sum to 1, or are all 0 where no sentence alone is missed. Two sentences that say the same are missed
    little, however much they count together; the paper has no such numbers.

    Args:
        verifier: of a system that reads evidence; its model is put into evaluation mode.
        file: where the shares are kept as they come; None = nowhere.
        precision: of the forward pass, as of `resolve_precision`.
        name: beside the progress bar; None = no bar.

    Raises:
        ValueError: the file has shares of other claims.
    """
    verifier.model.eval()
    examples, k = verifier.examples(claims), verifier.layout.candidates
    counts = [min(len(claim.evidence), k) for claim in claims]
    shares_of = _own_shares if verifier.system.pairwise else _missed_shares
    with (
        KeptNumbers(file, (len(claims), k)) as kept,
        Progress(total=len(claims), desc=name, unit="claim", disable=name is None) as bar,
        computing_in(precision, verifier.device),
    ):
        bar.update(len(claims) - len(kept.missing))
        for number in kept.missing:
            found = shares_of(verifier, examples, number) if counts[number] else []
            kept.values[number] = [*found, *[0.0] * (k - len(found))]
            kept.save_when_due()
            bar.update(1)
    return [tuple(row[:count]) for row, count in zip(kept.values.clip(0, 1).tolist(), counts, strict=True)]


def _own_shares(verifier: Verifier, examples: ClaimExamples, number: int) -> list[float]:
    return _read(verifier, [examples[number]])["shares"].tolist()


def _missed_shares(verifier: Verifier, examples: ClaimExamples, number: int) -> list[float]:
    pieces = examples.encoded[examples.claims[number].id][: verifier.layout.sentences]
    absent = [None] * (verifier.layout.sentences - len(pieces))
    rows = []
    for left_out in (None, *range(1, len(pieces))):
        texts = [None if place == left_out else text for place, text in enumerate(pieces)]
        sequence = joint_sequence([*texts, *absent], layout=verifier.layout, special=examples.special)
        rows.append({key: getattr(sequence, key) for key in _INPUTS})
    values = _read(verifier, rows)["log_probabilities"]  # (1 + sentences, labels)
    of_predicted = values[:, values[0].argmax()]
    falls = np.maximum(of_predicted[0] - of_predicted[1:], 0)
    return (falls / falls.sum() if falls.any() else falls).tolist()


@torch.no_grad()  # not inference_mode: the judge of a training asks between updates
def _read(verifier: Verifier, examples: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """`log_probabilities`, float64 (examples, labels), and of pairwise systems `shares` (pairs,)."""
    batch = verifier.collate([{key: one[key] for key in _INPUTS} for one in examples])
    batch = {key: tensor.to(verifier.device) for key, tensor in batch.items()}
    output = verifier.model(**batch)
    found = {"log_probabilities": output.logits.double().log_softmax(-1)}
    if verifier.system.pairwise:
        found["shares"] = output.shares
    return {key: tensor.cpu().numpy() for key, tensor in found.items()}
