"""Fact verification systems, which label claims given sentences of evidence (Di Liello et al. 2022, "MSPP",
Table 8): notebook 10."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.records import EvidencedClaim
from cdlm_lab.encoders.precision import Precision
from cdlm_lab.progress import ALONE, Progress, Share
from cdlm_lab.runs import runs
from cdlm_lab.runs.items import write_frame
from cdlm_lab.runs.made import KeptNumbers
from cdlm_lab.tasks.joint import examples as candidates
from cdlm_lab.tasks.joint.examples import JointExamples, JointLayout
from cdlm_lab.tasks.joint.model import POOLINGS, JointModel, PooledPairs
from cdlm_lab.tasks.joint.systems import examples_of
from cdlm_lab.training.config import TrainingConfig

LEFT_OUT = "share in the verdict: by how much its label falls without the sentence"


@dataclass(frozen=True, slots=True)
class ClaimSystem(runs.System):
    """A system that labels claims."""

    head: str  # `max` or `weighted_sum`, which pool pairs; `ie_1` or `ae_1`, which read all evidence at once
    pretrained: str = ""  # head of the MSPP pretraining, `ie` or `ae`; "" = the plain encoder
    reads_evidence: bool = True  # False = it reads only the claim
    shares: str = LEFT_OUT  # what a sentence's share in the verdict means; "" = there are no shares

    @property
    def pairwise(self) -> bool:
        """True if it reads one sentence of evidence at a time."""
        return self.head in POOLINGS


_LARGEST = "share of the dimensions in which the sentence is largest"
# The systems of the paper's Table 8, and a control of ours, the joint model without evidence. What that gets
# right, the claims alone reveal; only what other systems get right beyond it comes from the evidence.
CLAIM_SYSTEMS = {
    system.name: system
    for system in (
        ClaimSystem("claim-only", "claim only", "ie_1", reads_evidence=False, shares=""),
        ClaimSystem("pairwise-max", "pairwise, max", "max", shares=_LARGEST),
        ClaimSystem("pairwise-sum", "pairwise, weighted sum", "weighted_sum", shares="weight in the sum"),
        ClaimSystem("joint-ie", "joint IE_1", "ie_1"),
        ClaimSystem("joint-ae", "joint AE_1", "ae_1"),
        *(
            ClaimSystem(
                f"mspp-{before}-{head}", f"MSPP {before.upper()}_k + {head.upper()}_1", f"{head}_1", before
            )
            for before, head in product(("ie", "ae"), repeat=2)
        ),
    )
}


def compared_pairs(systems: Sequence[ClaimSystem]) -> dict[str, list[tuple[str, str]]]:
    """Which systems are tested against which, by the purpose of the test: all that read evidence against
    claim-only, joint reading against the last pairwise system, MSPP against the same head without it."""
    names = {system.name for system in systems}
    pairwise = [system.name for system in systems if system.pairwise][-1:]
    reading = [system for system in systems if system.reads_evidence]
    joint = [system for system in reading if not system.pairwise]
    pretrained = [(system.name, f"joint-{system.head[:2]}") for system in joint if system.pretrained]
    return {
        "evidence": [(system.name, "claim-only") for system in reading if "claim-only" in names],
        "joint reading": [(system.name, other) for system in joint for other in pairwise],
        "pre-training": [pair for pair in pretrained if pair[1] in names],
    }


@dataclass(frozen=True, kw_only=True)
class Verifier:
    """A model and how it reads claims."""

    system: ClaimSystem
    model: JointModel | PooledPairs  # its logits stand in the order of `labels`
    tokenizer: PreTrainedTokenizerBase
    layout: JointLayout  # sequence layout of a claim with all its evidence
    labels: tuple[str, ...]

    def examples(
        self, claims: Sequence[EvidencedClaim], *, config: TrainingConfig | None = None
    ) -> JointExamples:
        """The claims: for training with `config`, else each once, in order."""
        if not self.system.reads_evidence:
            claims = [replace(claim, evidence=()) for claim in claims]
        return examples_of(claims, self.tokenizer, self.layout, config)

    @property
    def collate(self) -> candidates.JointCollate | candidates.PairedClaimCollate:
        """Turns examples into batches."""
        pad = self.tokenizer.pad_token_id
        if self.system.pairwise:
            return candidates.PairedClaimCollate(pad, self.layout)
        return candidates.JointCollate(pad)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClaimPredictions:
    """Predictions for claims, in the same order; `probabilities`: float64 (claims, labels)."""

    claims: Sequence[EvidencedClaim]
    labels: tuple[str, ...]
    probabilities: np.ndarray

    @property
    def predicted(self) -> list[str]:
        """The most probable label of each claim; ties go to the first label."""
        return [self.labels[number] for number in self.probabilities.argmax(axis=1)]

    @property
    def right(self) -> np.ndarray:
        """bool (claims,), True = the gold label is predicted; False where the gold label is unknown."""
        pairs = zip(self.claims, self.predicted, strict=True)
        return np.array([claim.label == label for claim, label in pairs], dtype=bool)

    def save(self, file: Path) -> None:
        """Write one row a claim, atomically."""
        frame = pd.DataFrame(self.probabilities, columns=[*self.labels])
        frame.insert(0, "item", [one.id for one in self.claims])
        write_frame(frame.assign(label=self.predicted), file)


def predict_verdicts(
    verifier: Verifier,
    claims: Sequence[EvidencedClaim],
    *,
    examples: JointExamples | None = None,
    share: Share = ALONE,
    **reading: Any,
) -> ClaimPredictions:
    """Label all claims. `examples`: made of these; `reading`: batch size, precision, name beside a bar."""
    examples = examples or verifier.examples(claims)
    probabilities = np.zeros((len(claims), len(verifier.labels)))
    reading |= {"unit": "claim", "share": share}
    outputs = runs.outputs_by_length(verifier.model, examples, verifier.collate, **reading)
    own = [(numbers, np.exp(_log_probabilities(output))) for numbers, _, output in outputs]
    for numbers, rows in share.gathered(own):
        probabilities[numbers] = rows
    return ClaimPredictions(claims=claims, labels=verifier.labels, probabilities=probabilities)


def _log_probabilities(output: Any) -> np.ndarray:
    """float64 (examples, labels), log-probabilities."""
    return output.logits.cpu().double().log_softmax(-1).numpy()


AT_ONCE = 4  # claims whose sentences are left out in one batch


def evidence_shares(
    verifier: Verifier,
    claims: Sequence[EvidencedClaim],
    *,
    file: Path | None = None,
    precision: Precision = "float32",
    name: str | None = None,
) -> list[tuple[float, ...]]:
    """The share of each evidence sentence in the verdict on its claim, in [0, 1]; saved to `file` as they are
    computed, if one is given.

    For `weighted_sum` it is the sentence's weight in the sum, for `max` the fraction of dimensions in which
    it is the largest; these sum to 1. A joint model has no such number, so each sentence is left out in turn,
    the others keeping their positions: the share is the drop in the log-probability of the label predicted
    with all sentences, 0 if it rises, divided by the sum over sentences. Shares sum to 1, or are all 0 if no
    single sentence is missed. Of two sentences that say the same, each is missed little even if they matter
    together; the paper has no such numbers.
    """
    examples, k = verifier.examples(claims), verifier.layout.candidates
    counts = [min(len(claim.evidence), k) for claim in claims]
    with (
        KeptNumbers(file, (len(claims), k)) as kept,
        Progress(total=len(claims), desc=name, unit="claim", disable=name is None) as bar,
    ):
        bar.update(len(claims) - len(kept.missing))
        for start in sorted({number // AT_ONCE * AT_ONCE for number in kept.missing}):
            some = range(start, min(start + AT_ONCE, len(claims)))  # also after a kill the same ones
            read = [number for number in some if counts[number]]
            found = _shares(verifier, examples, read, precision)
            kept.values[start : some.stop] = 0.0
            for number, shares in zip(read, found, strict=True):
                kept.values[number, : len(shares)] = shares
            kept.save_when_due()
            bar.update(sum(number in kept.missing for number in some))
    return [tuple(row[:count]) for row, count in zip(kept.values.clip(0, 1).tolist(), counts, strict=True)]


def _shares(
    verifier: Verifier, examples: JointExamples, numbers: Sequence[int], precision: Precision
) -> list[np.ndarray]:
    """The shares of the sentences of each of these claims, as far as they are read."""
    reading = {"collate": verifier.collate, "precision": precision}
    if verifier.system.pairwise:
        outputs = (runs.output_of(verifier.model, [examples[number]], **reading) for number in numbers)
        return [output.shares.cpu().numpy() for output in outputs]
    rows = [_left_out(verifier, examples, number) for number in numbers]
    if not rows:
        return []
    output = runs.output_of(verifier.model, [row for of_claim in rows for row in of_claim], **reading)
    values = np.split(_log_probabilities(output), np.cumsum([len(of_claim) for of_claim in rows])[:-1])
    shares = []
    for of_claim in values:  # (1 + sentences, labels), the first with all sentences
        of_predicted = of_claim[:, of_claim[0].argmax()]
        falls = np.maximum(of_predicted[0] - of_predicted[1:], 0)
        shares.append(falls / falls.sum() if falls.any() else falls)
    return shares


def _left_out(verifier: Verifier, examples: JointExamples, number: int) -> list[dict[str, np.ndarray]]:
    """A claim with all its evidence, and without each sentence in turn."""
    pieces = examples.encoded[examples.records[number].id][: verifier.layout.sentences]
    absent = [None] * (verifier.layout.sentences - len(pieces))
    form = {"layout": verifier.layout, "special": examples.special}
    rows = []
    for left_out in (None, *range(1, len(pieces))):
        texts = [None if place == left_out else text for place, text in enumerate(pieces)]
        sequence = candidates.joint_sequence([*texts, *absent], **form)
        inputs = ("input_ids", "token_type_ids", "position_ids", "starts")
        rows.append({key: getattr(sequence, key) for key in inputs})
    return rows
