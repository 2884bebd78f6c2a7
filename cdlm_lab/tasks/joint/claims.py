"""Fact verification: claims and several sentences of evidence (Di Liello et al. 2022, "MSPP", section 4.3),
of notebook 10.

Each system is trained with each seed; the epoch with the highest label accuracy on dev is kept. Each trained
model labels the held-out sets once. Choices where the paper is silent: in pairwise reading, claim and
evidence are as long as in the joint sequence, at compact positions, as in cross-encoders; no weight decay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from cdlm_lab.data.convert.claims import SYMMETRIC, Evidence
from cdlm_lab.data.files import DataError
from cdlm_lab.data.reading import read_records, splits_of
from cdlm_lab.data.records import CLAIM_LABELS as LABELS
from cdlm_lab.data.records import EvidencedClaim
from cdlm_lab.data.storyworld.task_sets import read_storyworld_claims
from cdlm_lab.encoders.checkpoint import default_device
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.parameters import ParameterError, settings
from cdlm_lab.progress import ALONE, Share
from cdlm_lab.runs import runs
from cdlm_lab.runs.evaluation import Evaluation, Measure, Planned
from cdlm_lab.runs.items import UNTRAINED, apart, items_of, read_frame
from cdlm_lab.runs.own import Lines, by_item
from cdlm_lab.runs.runs import Training, predict, report, train, train_small
from cdlm_lab.tasks.joint.examples import JointExamples, JointLayout
from cdlm_lab.tasks.joint.model import JointHead, PooledHead, load_joint_model, load_pooled_pairs
from cdlm_lab.tasks.joint.systems import JointRun, JointSettings
from cdlm_lab.tasks.joint.verifying import (
    CLAIM_SYSTEMS,
    ClaimPredictions,
    ClaimSystem,
    Verifier,
    compared_pairs,
    predict_verdicts,
)
from cdlm_lab.training.config import TrainingConfig

SETS = ("train", "dev", "test", SYMMETRIC)

__all__ = ["Settings", "evaluate", "predict", "prepare", "report", "train", "train_small"]
__all__ += ["CLAIM_SYSTEMS"]

STORYWORLD, MEASURE, MAJORITY = "storyworld", "label_accuracy", "majority"
Claims = Mapping[str, tuple[EvidencedClaim, ...]]  # by set


# ---- settings and claims ----


@settings
class Settings(JointSettings):
    """The parameters of notebook 10, whose first cell says what each is."""

    run_folder: str = "runs/fact_verification"
    trained: str = ""  # a run whose models are opened; "" = they are trained
    # `storyworld`, or a folder or file: FEVER with KGAT's evidence, or FM2; FeverSymmetric beside either is
    # one more test set.
    corpus: str = STORYWORLD
    train_stories: int = Field(default=200, ge=2)
    held_out_stories: int = Field(default=40, ge=2)
    # Without claims that no evidence decides, as in FM2, a small model learns the other two labels sooner.
    labels: Literal["all", "supported refuted"] = "all"
    evidence: Evidence = "retrieved"
    evidence_sentences: int = Field(default=3, ge=1)
    systems: str = "joint-ie claim-only"
    batch_size: int = Field(default=32, ge=1)
    micro_batch_size: int = Field(default=32, ge=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.corpus == STORYWORLD and self.evidence != "retrieved":
            raise ParameterError(f"evidence is {self.evidence!r}; storyworld has retrieved alone")
        _ = self.chosen

    @property
    def chosen(self) -> tuple[ClaimSystem, ...]:
        """The systems, in the order of the paper's tables."""
        return runs.chosen_systems(self.systems, CLAIM_SYSTEMS)


def read_claim_sets(settings: Settings) -> Claims:
    """Claims of train, dev and test, and of FeverSymmetric if there. Raises ParameterError: a claim of train
    or dev has no label, all of train have one label, or all of another set are of one group."""
    path = settings.corpus
    known = splits_of("claims", path) if path != STORYWORLD else ()
    names = SETS if SYMMETRIC in known else SETS[:3]
    claims = {name: _read_set(name, settings) for name in names}
    for name in ("train", "dev"):
        if missing := [claim.id for claim in claims[name] if claim.label is None]:
            raise ParameterError(
                f"{path}: claim {missing[0]} of {name} has no label, which training needs; leave it out"
            )
    for name in names:
        groups = {claim.group for claim in claims[name] if claim.label is not None}
        if name != "train" and len(groups) == 1:
            raise ParameterError(
                f"{path}: all claims of {name} are of {min(groups)!r}; intervals need claims of several pages"
            )
    labels = {claim.label for claim in claims["train"]}
    if len(labels) < 2:
        raise ParameterError(f"{path}: all claims of train are {min(labels)}; there is nothing to learn")
    return claims


def _read_set(name: str, settings: Settings) -> tuple[EvidencedClaim, ...]:
    """The claims of a set that are used, in their original order."""
    evidence = settings.evidence_sentences
    if settings.corpus == STORYWORLD:
        stories = settings.train_stories if name == "train" else settings.held_out_stories
        claims = list(read_storyworld_claims(name, stories, evidence=evidence))
    else:
        form = {"evidence": settings.evidence, "most_evidence": evidence}
        claims = list(read_records("claims", settings.corpus, name, **form))
    if settings.labels != "all":
        claims = [claim for claim in claims if claim.label != LABELS[-1]]
    return tuple(claims)


def labels_of(claims: Claims) -> tuple[str, ...]:
    """The labels to predict: those of LABELS up to the last that occurs. A label that no training claim has
    is kept, so that claims with it count as wrong."""
    used = {claim.label for of_set in claims.values() for claim in of_set}
    return LABELS[: 1 + max(place for place, label in enumerate(LABELS) if label in used)]


def label_counts(claims: Sequence[EvidencedClaim], labels: Sequence[str]) -> dict[str, int]:
    """Label -> number of claims that have it, 0 included."""
    counts = Counter(claim.label for claim in claims)
    return {label: counts[label] for label in labels}


def majority_label(claims: Claims) -> str:
    """The most frequent label of the training claims; ties go to the first of LABELS."""
    counts = label_counts(claims["train"], LABELS)
    return max(counts, key=counts.__getitem__)


# ---- the run ----


@dataclass(frozen=True, kw_only=True)
class VerificationRun(JointRun):
    """A run of notebook 10: its claims, and how its systems are trained and predict."""

    NAME: ClassVar[str] = "fact verification"
    UNIT: ClassVar[str] = "claims"
    SHAPES: ClassVar[tuple[str, ...]] = ("labels", "evidence_sentences", "sentence_length", "head_layers")
    MEASURES: ClassVar[tuple[Measure, ...]] = (Measure(MEASURE),)

    settings: Settings
    claims: Claims
    trained_labels: tuple[str, ...] = ()  # labels of trained models, for use without reading a corpus

    @classmethod
    def read(cls, settings: Settings) -> VerificationRun:
        """Read the claims."""
        return cls(settings=settings, claims=read_claim_sets(settings))

    @property
    def held_out(self) -> tuple[str, ...]:
        """The sets that are predicted: all except train."""
        return tuple(name for name in self.claims if name != "train")

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels to predict."""
        return self.trained_labels or labels_of(self.claims)

    @property
    def data(self) -> dict[str, Any]:
        """Facts about the claims, stored in the report."""
        corpus = self.settings.corpus
        return {
            "corpus": corpus,
            "precision": precision_in_words(self.settings.precision),
            "claims": {name: len(claims) for name, claims in self.claims.items()},
            "labels": {name: label_counts(claims, self.labels) for name, claims in self.claims.items()},
        }

    def of_split(self, name: str) -> tuple[EvidencedClaim, ...]:
        """The claims of a set."""
        return self.claims[name]

    def config(self, system: ClaimSystem, seed: int = 0) -> TrainingConfig:
        """The training config, the same for all systems."""
        return self.settings.config(items=len(self.claims["train"]), seed=seed)

    def reader(self, system: ClaimSystem, seed: int = 0, *, trained: bool = False) -> Verifier:
        """A new model on the CPU, or the trained one on the default device."""
        given = self.settings
        positions = "compact" if system.pairwise else "strided"
        form = {"length": given.sentence_length, "positions": positions}
        layout = JointLayout(sentences=1 + given.evidence_sentences, **form)
        source = self.model_folder(Training(system, seed)) if trained else given.checkpoint(system.pretrained)
        form |= {"labels": len(self.labels)}
        loading = {"new_head": not trained, "seed": seed, **given.loading}
        if system.pairwise:
            pooled = PooledHead(pooling=system.head, **form)
            model, tokenizer = load_pooled_pairs(source, head=pooled, **loading)
        else:
            joint = JointHead(kind=system.head, sentences=layout.sentences, layers=given.head_layers, **form)
            model, tokenizer = load_joint_model(source, head=joint, **loading)
        model = model.to(default_device()) if trained else model
        return Verifier(system=system, model=model, tokenizer=tokenizer, layout=layout, labels=self.labels)

    def sets(self, training: Training) -> tuple[str, ...]:
        """All held-out sets."""
        return self.held_out

    def judged(self, reader: Verifier, examples: JointExamples, share: Share = ALONE) -> float:
        """Label accuracy of the model on these examples."""
        form = {"examples": examples, "share": share, **self.settings.predicting}
        return float(predict_verdicts(reader, examples.records, **form).right.mean())

    def predict_set(self, loaded: Verifier, name: str, bar: str) -> ClaimPredictions:
        """Predict the labels of the claims of a set."""
        return predict_verdicts(loaded, self.claims[name], name=bar, **self.settings.predicting)

    def own_predictions(self, file: Path, lines: Lines, split: str) -> ClaimPredictions:
        """Lines `{"item": id of the claim, "label": ...}`, with one of the labels of the corpus."""
        given = by_item(file, lines, apart(one.id for one in self.claims[split]), field="label")
        for line, label in given.values():
            if label not in self.labels:
                known = ", ".join(self.labels)
                raise DataError(
                    file, f"{label!r} is no label", f"choose among {known}", line=line, field="label"
                )
        return self.labelled(split, [label for _, label in given.values()])

    def labelled(self, split: str, labels: Sequence[str]) -> ClaimPredictions:
        """Predictions of which only the labels are known."""
        sure = np.array([[label == one for one in self.labels] for label in labels], dtype=float)
        return ClaimPredictions(claims=self.claims[split], labels=self.labels, probabilities=sure)

    def read_predictions(self, file: Path, name: str) -> ClaimPredictions:
        """Read the probabilities of the labels of the claims of a set."""
        shares = read_frame(file)[[*self.labels]].to_numpy()
        return ClaimPredictions(claims=self.claims[name], labels=self.labels, probabilities=shares)

    def items(self, predictions: Predictions) -> pd.DataFrame:
        """Whether the label of each claim is right, of those whose label is known."""
        parts = []
        for (system, seed), of_system in predictions.items():
            for split, one in of_system.items():
                known = [n for n, claim in enumerate(one.claims) if claim.label is not None]
                claims = [one.claims[n] for n in known]
                form = {"system": system, "seed": seed, "split": split}
                form |= {"items": apart(each.id for each in claims)}
                clusters = [each.group for each in claims]
                parts.append(items_of({MEASURE: one.right[known]}, clusters=clusters, **form))
        return pd.concat(parts)

    @property
    def planned(self) -> list[Planned]:
        """On each set, the pairs of `compared_pairs`, corrected by their purpose."""
        return [
            Planned(
                a=a,
                b=b,
                measure=MEASURE,
                split=split,
                family=f"{purpose}/{split}",
                beside=CLAIM_SYSTEMS[b].pairwise,
            )
            for split in self.held_out
            for purpose, pairs in compared_pairs(self.systems).items()
            for a, b in pairs
        ]

    def evaluated(self, predictions: Predictions) -> Evaluation:
        """Beside the systems the most frequent label of training."""
        best = majority_label(self.claims)
        rule = {split: self.labelled(split, [best] * len(self.claims[split])) for split in self.held_out}
        made = super().evaluated({**predictions, (MAJORITY, UNTRAINED): rule})
        rows = [replace(row, note=best) if row.system == MAJORITY else row for row in made.rows]
        return replace(made, rows=rows)


Predictions = Mapping[tuple[str, int], Mapping[str, ClaimPredictions]]  # (system, seed) -> set


def prepare(settings: Settings) -> VerificationRun:
    """Claim the run folder, read the claims, and check that all models are available and fit."""
    return VerificationRun.open(settings)


# ---- scores ----


@runs.once
def evaluate(run: VerificationRun, predictions: Predictions) -> runs.Scores:
    """Label accuracy of all systems and of the majority label on every set that has labels, and confusion
    counts."""
    scored = {name: [claim for claim in run.claims[name] if claim.label is not None] for name in run.held_out}
    confusion = [
        {"system": system, "seed": seed, "split": name, **row}
        for (system, seed), of_set in predictions.items()
        for name, claims in scored.items()
        if claims
        for row in _confusion(of_set[name])
    ]
    data = {
        "scored": {name: len(claims) for name, claims in scored.items() if claims},
        "groups": {name: len({claim.group for claim in claims}) for name, claims in scored.items() if claims},
    }
    return runs.Scores.of(run.evaluated(predictions), data=data, confusion=confusion)


def _confusion(predictions: ClaimPredictions) -> Iterator[dict[str, Any]]:
    """For each gold label, how often each label is predicted."""
    pairs = [*zip((claim.label for claim in predictions.claims), predictions.predicted, strict=True)]
    for gold in predictions.labels:
        counts = {label: pairs.count((gold, label)) for label in predictions.labels}
        if any(counts.values()):
            yield {"gold": gold, "predicted": counts}


SHOWN_ORDER = ("test", "symmetric", "dev")
