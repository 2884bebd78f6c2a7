"""Claims judged by several sentences of evidence (Di Liello et al. 2022, "MSPP", section 4.3): notebook 10.

Each system is trained with each seed; of its passes over the training claims the one with the highest label
accuracy on dev is kept. All other sets are labelled once by each. All that is finished stays in the run
folder: a stopped run goes on where it was.

Choices where the paper is silent: a pair of pairwise reading has as many tokens of claim and of evidence as
the joint sequence has, at compact positions, as cross-encoders have them; there is no weight decay.

From the corpus that notebook 10 names to claims with evidence: storyworld, or files of FEVER's family.

The systems of fact verification, as notebook 10 names them (Di Liello et al. 2022, "MSPP", Table 8).

`claim-only` is ours: the joint model without any evidence. What it gets right the claims give away by
themselves; only what others get right beyond that was read in the evidence.

Models that label claims, and how they read these: what the systems of notebook 10 are made of.

What a trained model says of claims, kept on disk as a line of JSON for each, and the share that each
sentence of evidence has in it.

Before a run of notebook 10: which claims are verified with what evidence, and what training will cost.

A claim with its evidence as a model reads it, before the start: where each sentence is cut.

After a run of notebook 10: label accuracy, tests between systems, and what is mistaken for what.

Claims with a model's verdict and the share that each sentence of evidence has in it: of dev, or one of
one's own, judged by every system.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from ipywidgets import Widget
from torch import nn
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.claims import (
    LABELS,
    SETS,
    Evidence,
    EvidencedClaim,
    checksum_of,
    claim_sets,
    read_claims,
)
from cdlm_lab.data.files import DataError, read_text, replaced_file
from cdlm_lab.data.storyworld.task_sets import read_storyworld_claims
from cdlm_lab.data.typed_documents import filled_lines, first_and_others
from cdlm_lab.examples.candidates import (
    POSITIONS,
    ClaimExamples,
    EncodedClaims,
    JointCollate,
    JointLayout,
    PairedClaimCollate,
    joint_sequence,
)
from cdlm_lab.examples.collate import batches_by_length
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.experiments.pretraining import token_texts
from cdlm_lab.experiments.runs import (
    FineTuning,
    KeptNumbers,
    Recipe,
    TrainingJob,
    fine_tune,
    paragraph_checkpoint,
    time_told,
)
from cdlm_lab.metrics.significance import compare_means, holm, mean_score, t_test_of_seeds
from cdlm_lab.models.checkpoint import default_device
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.estimate import parameter_count
from cdlm_lab.models.joint import (
    LAYERS,
    POOLINGS,
    JointHead,
    JointModel,
    PooledHead,
    PooledPairs,
    load_joint_model,
    load_pooled_pairs,
)
from cdlm_lab.models.precision import Precision, computing_in, precision_told
from cdlm_lab.parameters import (
    ParameterError,
    check_choice,
    check_least,
    check_types,
    parameters_of,
)
from cdlm_lab.progress import Progress
from cdlm_lab.report import Report, Run
from cdlm_lab.training.checkpoints import MODEL_FOLDER
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.history import seconds_of_batch
from cdlm_lab.training.processes import Processes
from cdlm_lab.widgets.ask import EVIDENCE, own_candidates_box
from cdlm_lab.widgets.browse import verdict_browser
from cdlm_lab.widgets.html import escaped, still_page
from cdlm_lab.widgets.matching_table import p_in_words
from cdlm_lab.widgets.measured_score import MeasuredScore
from cdlm_lab.widgets.packed import MarkedTokens, tokens_html
from cdlm_lab.widgets.verdicts import ReadClaim, verdict_html, verdicts_page
from cdlm_lab.widgets.verification_table import VerificationRow, verification_table_html

SPLITS = SETS[:3]  # train, dev and test, which every run has
HELD_OUT = SETS[1:]  # what is labelled by the systems, as far as it is there
Claims = Mapping[str, tuple[EvidencedClaim, ...]]  # by set


@dataclass(frozen=True, kw_only=True)
class ClaimCorpus:
    """Which claims are verified, and with what.

    Attributes:
        corpus: `storyworld`, or a folder or file as of `cdlm_lab.data.claims`: FEVER with KGAT's
            evidence, or FM2; FeverSymmetric beside either is one more test set.
        train_stories, held_out_stories: of storyworld, up to six claims each; the second for dev, and as many
            for test.
        train_claims, held_out_claims: at most so many are drawn of the training claims, and of each other
            set; 0 = all.
        evidence: `retrieved`, or of FM2 `gold`.
        evidence_sentences: of a claim, at most; the paper has 5.
    """

    corpus: str = "storyworld"
    train_stories: int = 200
    held_out_stories: int = 40
    train_claims: int = 0
    held_out_claims: int = 0
    evidence: str = "retrieved"
    evidence_sentences: int = 3

    def __post_init__(self) -> None:
        check_types(self)
        check_choice(self, get_args(Evidence), "evidence")
        check_least(self, 1, "evidence_sentences")
        check_least(self, 2, "train_stories", "held_out_stories")
        check_least(self, 0, "train_claims", "held_out_claims")
        if self.corpus == "storyworld" and self.evidence != "retrieved":
            raise ParameterError(f"evidence is {self.evidence!r}; storyworld has retrieved alone")


def read_claim_sets(settings: ClaimCorpus) -> Claims:
    """Claims of train, dev and test, and of FeverSymmetric where it is there.

    Raises:
        ParameterError: a claim of train or dev without label; all of train have one label; all of another set
            are of one group.
        DataError: as `read_claims`.
    """
    stories, path = settings.corpus == "storyworld", settings.corpus
    sets = SPLITS if stories else dict.fromkeys((*SPLITS, *claim_sets(path)))
    read = _storyworld if stories else _file
    found = {name: _drawn(read(name, settings), name, settings) for name in sets}
    for name in ("train", "dev"):
        if missing := [claim.id for claim in found[name] if claim.label is None]:
            raise ParameterError(
                f"{path}: claim {missing[0]} of {name} has no label, which training needs; leave it out"
            )
    for name in sets:
        groups = {claim.group for claim in found[name] if claim.label is not None}
        if name != "train" and len(groups) == 1:
            raise ParameterError(
                f"{path}: all claims of {name} are of {min(groups)!r}; intervals need claims of several pages"
            )
    trained = {claim.label for claim in found["train"]}
    if len(trained) < 2:
        raise ParameterError(f"{path}: all claims of train are {min(trained)}; there is nothing to learn")
    return found


def labels_of(claims: Claims) -> tuple[str, ...]:
    """The labels to choose from: those of LABELS up to the last that any claim has. One that no training
    claim has stays among them: claims that have it are to be counted as wrong."""
    there = {claim.label for of_set in claims.values() for claim in of_set}
    return LABELS[: 1 + max(place for place, label in enumerate(LABELS) if label in there)]


def label_counts(claims: Sequence[EvidencedClaim], labels: Sequence[str]) -> dict[str, int]:
    """Label -> how many claims have it, 0 included."""
    counts = Counter(claim.label for claim in claims)
    return {label: counts[label] for label in labels}


def majority_label(claims: Claims) -> str:
    """The label that most training claims have; of equals the first of LABELS."""
    counts = label_counts(claims["train"], LABELS)
    return max(counts, key=counts.__getitem__)


def _storyworld(name: str, settings: ClaimCorpus) -> Sequence[EvidencedClaim]:
    stories = settings.train_stories if name == "train" else settings.held_out_stories
    return list(read_storyworld_claims(name, stories, evidence=settings.evidence_sentences))


def _file(name: str, settings: ClaimCorpus) -> Sequence[EvidencedClaim]:
    return read_claims(
        settings.corpus, name, evidence=settings.evidence, most_evidence=settings.evidence_sentences
    )


def _drawn(claims: Sequence[EvidencedClaim], name: str, settings: ClaimCorpus) -> tuple[EvidencedClaim, ...]:
    """The claims that are used, in their order."""
    most = settings.train_claims if name == "train" else settings.held_out_claims
    if not most or most >= len(claims):
        return tuple(claims)
    kept = np.random.default_rng([0, SETS.index(name)]).permutation(len(claims))[:most]
    return tuple(claims[number] for number in sorted(kept))


LEFT_OUT = "share in the verdict: by how much its label falls without the sentence"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSystem:
    """What labels claims.

    Attributes:
        name, label: as a parameter and as in tables.
        paper: its name in `widgets.verification_table.PAPER_VERIFICATION`, or any other.
        head: `max` or `weighted_sum`, which pool pairs (see models/pooled_pairs.py), or `ie_1` or `ae_1`,
            which read all at once (see models/joint_head.py).
        pretrained: head of the pre-training with paragraphs, `ie` or `ae`; "" = the plain encoder.
        reads_evidence: False = it sees the claim alone.
        shares: what the shares of the evidence are; "" = there are none.
    """

    name: str
    label: str
    paper: str
    head: str
    pretrained: str = ""
    reads_evidence: bool = True
    shares: str = LEFT_OUT

    @property
    def pairwise(self) -> bool:
        """True if it reads one sentence of evidence at a time."""
        return self.head in POOLINGS


CLAIM_SYSTEMS = {
    system.name: system
    for system in (
        ClaimSystem(
            name="claim-only",
            label="claim only",
            paper="",
            head="ie_1",
            reads_evidence=False,
            shares="",
        ),
        ClaimSystem(
            name="pairwise-max",
            label="pairwise, max",
            paper="pairwise-max",
            head="max",
            shares="share of the dimensions in which the sentence is largest",
        ),
        ClaimSystem(
            name="pairwise-sum",
            label="pairwise, weighted sum",
            paper="pairwise-weighted_sum",
            head="weighted_sum",
            shares="weight in the sum",
        ),
        *(
            ClaimSystem(
                name=f"joint-{head}",
                label=f"joint {head.upper()}_1",
                paper=f"joint-{head}_1",
                head=f"{head}_1",
            )
            for head in ("ie", "ae")
        ),
        *(
            ClaimSystem(
                name=f"mspp-{pretrained}-{head}",
                label=f"MSPP {pretrained.upper()}_k + {head.upper()}_1",
                paper=f"mspp-{pretrained}_k-{head}_1",
                head=f"{head}_1",
                pretrained=pretrained,
            )
            for pretrained in ("ie", "ae")
            for head in ("ie", "ae")
        ),
    )
}


def claim_systems(names: str) -> tuple[ClaimSystem, ...]:
    """The systems of a list of names separated by spaces, in the order of the paper's tables.

    Raises:
        ParameterError: an unknown name, or none.
    """
    asked = names.split()
    if not asked or (unknown := [name for name in asked if name not in CLAIM_SYSTEMS]):
        told = repr(unknown[0]) if asked else "nothing"
        raise ParameterError(f"systems names {told}; choose among {', '.join(CLAIM_SYSTEMS)}")
    return tuple(system for name, system in CLAIM_SYSTEMS.items() if name in asked)


def compared_pairs(systems: tuple[ClaimSystem, ...]) -> list[tuple[ClaimSystem, ClaimSystem]]:
    """Which systems are tested against which, the second being what the first is held against: joint reading
    against the last pairwise one, MSPP against the same head without it, all that read evidence against what
    does not."""
    by_name = {system.name: system for system in systems}
    pairwise = [system for system in systems if system.pairwise][-1:]
    pairs = []
    for system in systems:
        joint = system.reads_evidence and not system.pairwise
        others = pairwise if joint else []
        if system.pretrained:
            others = [*others, by_name.get(f"joint-{system.head.removesuffix('_1')}")]
        if system.reads_evidence:
            others = [*others, by_name.get("claim-only")]
        pairs += [(system, other) for other in others if other]
    return pairs


@dataclass(frozen=True, kw_only=True)
class Verifier:
    """A model and how it reads claims.

    Attributes:
        model: its logits are of `labels`, in this order.
        layout: of a claim with all its evidence.
    """

    system: ClaimSystem
    model: JointModel | PooledPairs
    tokenizer: PreTrainedTokenizerBase
    layout: JointLayout
    labels: tuple[str, ...]

    def examples(
        self, claims: Sequence[EvidencedClaim], *, config: TrainingConfig | None = None
    ) -> ClaimExamples:
        """What `collate` makes batches of.

        Args:
            config: of a training, whose examples are drawn; None = each claim once, in order.

        Raises ValueError if there are no claims.
        """
        if not self.system.reads_evidence:
            claims = [replace(claim, evidence=()) for claim in claims]
        return ClaimExamples(
            claims=claims,
            encoded=EncodedClaims(claims, self.tokenizer),
            layout=self.layout,
            special=from_tokenizer(self.tokenizer),
            seed=config.seed if config else 0,
            size=config.steps * config.batch_size if config else None,
            shuffle=config is not None,
        )

    @property
    def collate(self) -> JointCollate | PairedClaimCollate:
        """From examples to batches."""
        pad = self.tokenizer.pad_token_id
        return PairedClaimCollate(pad, self.layout) if self.system.pairwise else JointCollate(pad)

    def on_device(self) -> Verifier:
        """With its model where models run unless someone says otherwise."""
        return replace(self, model=self.model.to(default_device()))

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device


def load_verifier(
    source: str,
    system: ClaimSystem,
    *,
    layout: JointLayout,
    head_layers: str,
    labels: tuple[str, ...],
    seed: int,
    dropout: float | None = None,
    attention_dropout: AttentionDropout = 0.0,
) -> Verifier:
    """A new verifier on an encoder, or a trained one from its folder.

    Args:
        source: folder of the trained model, or an encoder as of `load_encoder`.
        layout: of a claim with all its evidence.
        head_layers: of a joint head, `linear` or `tanh`; a pairwise one is linear.
        labels: to choose from.
        seed: of the head's weights.
        dropout, attention_dropout: as of `load_joint_model`.

    Errors as of `load_joint_model`.
    """
    drawn = {"seed": seed, "dropout": dropout, "attention_dropout": attention_dropout}
    if system.pairwise:
        form = PooledHead(
            pooling=system.head, labels=len(labels), length=layout.length, positions=layout.positions
        )
        model, tokenizer = load_pooled_pairs(source, head=form, **drawn)
    else:
        head = JointHead(
            kind=system.head,
            labels=len(labels),
            sentences=layout.sentences,
            length=layout.length,
            positions=layout.positions,
            layers=head_layers,
        )
        model, tokenizer = load_joint_model(source, head=head, **drawn)
    return Verifier(system=system, model=model, tokenizer=tokenizer, layout=layout, labels=labels)


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


@dataclass(frozen=True, kw_only=True)
class VerifierSettings:
    """What labels claims; the paper's values are in brackets.

    Attributes:
        systems: their names, separated by spaces (see experiments/claim_systems.py).
        encoder: of the systems without MSPP: a folder, a hub name, `minilm`, or one that comes with the
            project.
        mspp: a run folder of notebook 08, or a folder that holds several, of which the head tells the one for
            a system; systems without MSPP need none.
        sentence_length: L, tokens of a sentence, the one in front included [64].
        positions: of joint sequences, `strided` (the paper) or `compact` (its released code).
        head_layers: of joint heads, `linear` (the paper) or `tanh` (its released code).
    """

    systems: str = "pairwise-sum joint-ie claim-only"
    encoder: str = "storyworld/longformer"
    mspp: str = ""
    sentence_length: int = 32
    positions: str = "strided"
    head_layers: str = "linear"

    def __post_init__(self) -> None:
        check_types(self)
        claim_systems(self.systems)
        check_least(self, 2, "sentence_length")
        check_choice(self, POSITIONS, "positions")
        check_choice(self, LAYERS, "head_layers")

    @property
    def chosen(self) -> tuple[ClaimSystem, ...]:
        """The systems, in the order of the paper's tables."""
        return claim_systems(self.systems)

    def source_of(self, system: ClaimSystem) -> str:
        """What a system starts from; errors as of `paragraph_checkpoint`."""
        if not system.pretrained:
            return self.encoder
        return paragraph_checkpoint(self.mspp, head=system.pretrained)

    def shown(self, name: str) -> ClaimSystem:
        """The system of that name; "" = the last one. Raises ParameterError for one that is not trained."""
        of_name = {system.name: system for system in self.chosen}
        if name and name not in of_name:
            raise ParameterError(f"shown_system is {name!r}; choose one of {', '.join(of_name)}")
        return of_name[name] if name else self.chosen[-1]


@dataclass(frozen=True, kw_only=True)
class VerificationSettings:
    """All parameters of a run but its folder."""

    corpus: ClaimCorpus = field(default_factory=ClaimCorpus)
    verifiers: VerifierSettings = field(default_factory=VerifierSettings)
    training: FineTuning = field(default_factory=lambda: FineTuning(batch_size=32, micro_batch_size=32))

    @property
    def parameters(self) -> dict[str, Any]:
        """By name, those of all parts."""
        return parameters_of(self)


# The parameters of notebook 10.
PARAMETERS = (
    "run_folder",
    *VerificationSettings().parameters,
    "shown_system",
    "own_claim",
)


@dataclass(frozen=True, kw_only=True)
class VerificationRun:
    """The claims of a run and the folder that it works in."""

    settings: VerificationSettings
    claims: Claims
    folder: Path

    @property
    def systems(self) -> tuple[ClaimSystem, ...]:
        """In the order of the tables."""
        return self.settings.verifiers.chosen

    @property
    def trainings(self) -> list[tuple[ClaimSystem, int]]:
        """Each system with each seed."""
        seeds = range(self.settings.training.seeds)
        return [(system, seed) for system in self.systems for seed in seeds]

    @property
    def held_out(self) -> tuple[str, ...]:
        """The sets that are labelled: all but train."""
        return tuple(name for name in self.claims if name != "train")

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """To choose from."""
        return labels_of(self.claims)

    def folder_of(self, system: ClaimSystem, seed: int) -> Path:
        """Where a system trained with a seed is kept."""
        return self.folder / "systems" / f"{system.name}-{seed}"

    def layout_of(self, system: ClaimSystem) -> JointLayout:
        """That of a claim with all its evidence."""
        given = self.settings.verifiers
        return JointLayout(
            sentences=1 + self.settings.corpus.evidence_sentences,
            length=given.sentence_length,
            positions="compact" if system.pairwise else given.positions,
        )

    def verifier(self, system: ClaimSystem, seed: int, *, trained: bool) -> Verifier:
        """A new one, or the one that was trained. Errors as of `load_verifier` and `source_of`."""
        given = self.settings.verifiers
        kept = str(self.folder_of(system, seed) / MODEL_FOLDER)
        return load_verifier(
            kept if trained else given.source_of(system),
            system,
            layout=self.layout_of(system),
            head_layers=given.head_layers,
            labels=self.labels,
            seed=seed,
            dropout=self.settings.training.dropout,
            attention_dropout=self.settings.training.attention_dropout,
        )

    def config_of(self, seed: int) -> TrainingConfig:
        """How each system is trained. Raises ParameterError for values that cannot be."""
        return self.settings.training.config(items=len(self.claims["train"]), seed=seed)


Found = dict[tuple[str, int], dict[str, ClaimPredictions]]  # (system, seed) -> set


def prepare_verification(settings: VerificationSettings, folder: Path) -> VerificationRun:
    """Read the claims and look whether all is there and fits; nothing is trained.

    Raises ValueError with one clear line for whatever does not fit.
    """
    for system in settings.verifiers.chosen:  # before the reading, which may take long
        settings.verifiers.source_of(system)
    run = VerificationRun(settings=settings, claims=read_claim_sets(settings.corpus), folder=folder)
    run.config_of(0)
    for system in run.systems:
        run.verifier(system, 0, trained=False)  # is it there, and has it positions enough?
    return run


def verify_claims(run: VerificationRun) -> Found:
    """(system, seed) -> set -> verdicts; trained where that was not done yet.

    Raises Stopped when it was asked to stop; the same call goes on from there.
    """
    return {(system.name, seed): _verified(run, system, seed) for system, seed in run.trainings}


def _verified(run: VerificationRun, system: ClaimSystem, seed: int) -> dict[str, ClaimPredictions]:
    files = {name: run.folder_of(system, seed) / f"{name}.jsonl" for name in run.held_out}
    missing = [name for name, file in files.items() if not file.is_file()]
    if missing:
        if not (run.folder_of(system, seed) / MODEL_FOLDER).is_dir():
            _train(run, system, seed)
        verifier = run.verifier(system, seed, trained=True).on_device()
        for name in missing:
            predict_verdicts(
                verifier,
                run.claims[name],
                batch_size=run.settings.training.micro_batch_size,
                precision=run.settings.training.precision,
                name=f"{system.label}, seed {seed}: {name}",
            ).save(files[name])
    return {
        name: ClaimPredictions.load(file, claims=run.claims[name], labels=run.labels)
        for name, file in files.items()
    }


def _train(run: VerificationRun, system: ClaimSystem, seed: int) -> None:
    arguments = {"settings": run.settings, "folder": str(run.folder), "system": system.name, "seed": seed}
    fine_tune(
        _job(run, system, seed),
        folder=run.folder_of(system, seed),
        name=f"{system.label}, seed {seed}",
        parallel=run.settings.training.parallel,
        recipe=Recipe(function=prepare_job, arguments=arguments),
    )


def prepare_job(*, settings: VerificationSettings, folder: str, system: str, seed: int) -> TrainingJob:
    """That of a system and a seed, for each of several processes. Errors as of `prepare_verification`."""
    claims = read_claim_sets(settings.corpus)
    return _job(
        VerificationRun(settings=settings, claims=claims, folder=Path(folder)), CLAIM_SYSTEMS[system], seed
    )


def _job(run: VerificationRun, system: ClaimSystem, seed: int) -> TrainingJob:
    verifier, config = run.verifier(system, seed, trained=False), run.config_of(seed)
    dev: Sequence[EvidencedClaim] = run.claims["dev"]

    def judge(model: nn.Module) -> float:
        form = {"batch_size": config.micro_batch_size, "precision": config.precision}
        verdicts = predict_verdicts(replace(verifier, model=model), dev, **form)
        return float(verdicts.right.mean())

    return TrainingJob(
        model=verifier.model,
        tokenizer=verifier.tokenizer,
        train_examples=verifier.examples(run.claims["train"], config=config),
        validation_examples=verifier.examples(dev),
        collate=verifier.collate,
        config=config,
        judge=judge,
    )


LOOKED_AT = 500  # claims of a set that are put into pieces before the start


def facts(run: VerificationRun) -> list[tuple[str, str]]:
    """What there is to know before the start, as (name, text)."""
    return claim_facts(run) + training_facts(run)


def claim_facts(run: VerificationRun) -> list[tuple[str, str]]:
    """What is verified, what of it is cut, and labels that cannot be learned, as (name, text)."""
    tokenizer = run.verifier(run.systems[0], 0, trained=False).tokenizer
    rows = []
    for name, claims in run.claims.items():
        counts = label_counts(claims, run.labels)
        told = ", ".join(f"{count:,} {label}" for label, count in counts.items())
        if unknown := len(claims) - sum(counts.values()):
            told += f", {unknown:,} without label, which are not scored"
        evidence = [len(claim.evidence) for claim in claims]
        rows.append(
            (
                name,
                f"{len(claims):,} claims in {len({claim.group for claim in claims}):,} groups ({told}); "
                f"{np.mean(evidence):.1f} sentences of evidence each, {evidence.count(0):,} claims without",
            )
        )
        length = run.settings.verifiers.sentence_length
        rows.append((f"{name}: cut", _what_is_cut(EncodedClaims(claims[:LOOKED_AT], tokenizer), length)))
    trained = label_counts(run.claims["train"], run.labels)
    never = [label for label, count in trained.items() if not count]
    if never:
        rows.append(("never learned", f"no training claim is {', '.join(never)}: such claims are lost"))
    return rows


def _what_is_cut(encoded: EncodedClaims, length: int) -> str:
    sizes = np.array([len(pieces) for name in encoded for pieces in encoded[name]])
    lost = np.maximum(sizes - (length - 1), 0)
    if not lost.any():
        return "nothing"
    return (
        f"{(lost > 0).mean():.0%} of the sentences have more than {length - 1} pieces of words and lose "
        f"their end, {lost.sum() / sizes.sum():.0%} of all pieces (of {len(encoded):,} claims looked at)"
    )


def training_facts(run: VerificationRun) -> list[tuple[str, str]]:
    """What training each system takes, as (name, text); one batch of each is learned from to know that."""
    config = run.config_of(0)
    rows = [("precision of training", precision_told(config.precision))]
    seeds, processes = run.settings.training.seeds, Processes.of(run.settings.training.parallel)
    for system in run.systems:
        verifier = run.verifier(system, 0, trained=False)
        examples = verifier.examples(run.claims["train"][: config.micro_batch_size])
        chosen = [examples[number] for number in range(len(examples))]
        seconds, _ = seconds_of_batch(
            verifier.model, partial(verifier.collate, chosen), precision=config.precision
        )
        total = seconds * config.steps * config.batch_size / config.micro_batch_size
        rows.append(
            (
                system.label,
                f"{parameter_count(verifier.model) / 1e6:.1f} million parameters; {config.steps:,} updates "
                f"with {config.batch_size} claims, about {time_told(total, processes)}"
                f"{f'; times {seeds} seeds' if seeds > 1 else ''}",
            )
        )
    return rows


def preview_rows(run: VerificationRun, system: ClaimSystem, *, index: int = 0) -> list[list[str]]:
    """A training claim, then each sentence of its evidence that is read, as cells of HTML: which it is, its
    tokens, how many are read and how many are not.

    Args:
        system: whose; a pairwise one reads the claim with each sentence by itself.
        index: of the claim, in the order of the corpus.
    """
    verifier = run.verifier(system, 0, trained=False)
    examples = verifier.examples([run.claims["train"][index]])
    sequence = examples.describe(0)
    texts, starts_word = token_texts(verifier.tokenizer, sequence.input_ids)
    nothing = np.zeros(len(texts), dtype=bool)
    marked = MarkedTokens(
        tokens=texts,
        starts_word=starts_word,
        masked=nothing,
        replacement=[None] * len(texts),
        mask_token="",
        global_=nothing,
        special=examples.special.is_special(sequence.input_ids),
        cross_document=nothing,
    )
    rows = []
    for number in np.flatnonzero(sequence.starts >= 0).tolist():
        read = np.flatnonzero(sequence.sentence == number).tolist()
        cut = int(sequence.cut[number])
        name = f"evidence {number}" if number else "claim"
        rows.append([name, tokens_html(marked, read), f"{len(read)}, {cut} cut" if cut else f"{len(read)}"])
    return rows


MAJORITY = "majority"
MEASURE = "label_accuracy"
SHOWN_ORDER = ("test", "symmetric", "dev")
SET_NAMES = {"symmetric": "FeverSymmetric"}


def write_claim_report(run: VerificationRun, opened: Run, found: Found) -> Report:
    """Label accuracy of all systems on every set that has labels, and of the most frequent training label;
    the tests between systems, and how often each label is taken for each."""
    scored = {name: known for name in run.held_out if len(known := _known(run.claims[name]))}
    right = _right(run, found, scored)
    groups = {name: [run.claims[name][number].group for number in known] for name, known in scored.items()}
    best = majority_label(run.claims)
    scores = {
        f"{system}/{name}/{MEASURE}": mean_score(seeds, groups[name], seed=0)
        for (system, name), seeds in right.items()
    }
    for name, known in scored.items():
        values = np.array([run.claims[name][number].label == best for number in known], dtype=float)
        score = mean_score([values], groups[name], seed=0)
        scores[f"{MAJORITY}/{name}/{MEASURE}"] = score | {"seeds": None, "label": best}
    return opened.write_report(
        scores=scores,
        data={
            "corpus": run.settings.corpus.corpus,
            "precision": precision_told(run.settings.training.precision),
            "checksums": _checksums(run),
            "claims": {name: len(claims) for name, claims in run.claims.items()},
            "scored": {name: len(known) for name, known in scored.items()},
            "groups": {name: len(set(of_set)) for name, of_set in groups.items()},
            "labels": {name: label_counts(claims, run.labels) for name, claims in run.claims.items()},
        },
        tables={
            "comparisons": [row for name in scored for row in _comparisons(run, right, groups, name)],
            "confusion": [
                row for key, of_set in found.items() for row in _confusion(run, key, of_set, scored)
            ],
            "runs": [
                {"system": system, "set": name, "seed": seed, MEASURE: float(values.mean())}
                for (system, name), seeds in right.items()
                for seed, values in enumerate(seeds)
            ],
        },
    )


def score_tables(report: Report) -> str:
    """A table of label accuracy for each set that is scored, as HTML."""
    corpus = Path(report.data["corpus"]).name
    return "".join(
        verification_table_html(
            verification_rows(report, name),
            claims=report.data["scored"][name],
            corpus=f"{corpus}, {SET_NAMES.get(name, name)}",
        )
        for name in SHOWN_ORDER
        if name in report.data["scored"]
    )


def verification_rows(report: Report, name: str) -> list[VerificationRow]:
    """A row for each system of a report on a set: first the most frequent label, then in the order of the
    paper's tables. p is that against pairwise reading, corrected for the systems tested so."""
    first = VerificationRow(
        label=f"always \u201c{report.scores[f'{MAJORITY}/{name}/{MEASURE}']['label']}\u201d",
        system=MAJORITY,
        accuracy=_measured(report.scores[f"{MAJORITY}/{name}/{MEASURE}"]),
        seeds=None,
    )
    p = {
        row["a"]: row["p_holm"]
        for row in report.tables["comparisons"]
        if row["set"] == name and CLAIM_SYSTEMS[row["b"]].pairwise
    }
    rows = []
    for system in CLAIM_SYSTEMS.values():
        if score := report.scores.get(f"{system.name}/{name}/{MEASURE}"):
            accuracy = _measured(score, p=p.get(system.name))
            rows.append(
                VerificationRow(
                    label=system.label, system=system.paper, accuracy=accuracy, seeds=score["seeds"]
                )
            )
    return [first, *rows]


def comparison_rows(report: Report, name: str) -> list[list[str]]:
    """The tests of a report on a set as rows of a table, cells of HTML: both systems, the difference with its
    interval, p corrected, p of the t-test over seeds."""
    return [
        [
            escaped(CLAIM_SYSTEMS[row["a"]].label),
            escaped(CLAIM_SYSTEMS[row["b"]].label),
            f"{100 * row['difference']:+.1f} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]",
            *(p_in_words(row[key]) for key in ("p_holm", "p_seeds")),
        ]
        for row in report.tables["comparisons"]
        if row["set"] == name
    ]


def confusion_rows(report: Report, name: str) -> list[list[str]]:
    """Of each system and gold label, how many claims there are and which share of them is given each label,
    as cells of HTML; with several seeds their mean."""
    return [
        [
            escaped(CLAIM_SYSTEMS[row["system"]].label),
            escaped(row["gold"]),
            f"{row['claims']:,}",
            *(_share_html(share, right=label == row["gold"]) for label, share in row["predicted"].items()),
        ]
        for row in _mean_confusion(report, name)
    ]


def shown_set(report: Report) -> str:
    """The set whose tests and mistakes are shown: test, if it has labels, else dev."""
    return "test" if "test" in report.data["scored"] else "dev"


def _known(claims: Sequence[EvidencedClaim]) -> np.ndarray:
    """Numbers of the claims whose label is known."""
    return np.array([number for number, claim in enumerate(claims) if claim.label is not None], dtype=int)


def _right(
    run: VerificationRun, found: Found, scored: Mapping[str, np.ndarray]
) -> dict[tuple[str, str], list[np.ndarray]]:
    """(system, set) -> with each seed (claims,) of 1 and 0."""
    return {
        (system.name, name): [
            found[system.name, seed][name].right[known].astype(float)
            for seed in range(run.settings.training.seeds)
        ]
        for system in run.systems
        for name, known in scored.items()
    }


def _comparisons(
    run: VerificationRun,
    right: Mapping[tuple[str, str], list[np.ndarray]],
    groups: Mapping[str, Sequence[str]],
    name: str,
) -> list[dict[str, Any]]:
    """`compared_pairs` on a set, groups being what is drawn. `p_holm`: corrected for the systems tested
    against the same kind of other; `p_seeds`: of `t_test_of_seeds`."""
    families: dict[str, list[dict[str, Any]]] = {}
    for a, b in compared_pairs(run.systems):
        sides = [right[system.name, name] for system in (a, b)]
        compared = compare_means(*sides, groups[name], seed=0)
        p_seeds = t_test_of_seeds(*([float(values.mean()) for values in side] for side in sides))
        row = {"a": a.name, "b": b.name, "set": name, "measure": MEASURE, **asdict(compared)}
        families.setdefault(_family(b), []).append(row | {"p_seeds": p_seeds})
    rows = []
    for family in families.values():
        corrected = holm([row["p"] for row in family])
        rows += [{**row, "p_holm": p} for row, p in zip(family, corrected, strict=True)]
    return rows


def _family(b: ClaimSystem) -> str:
    if not b.reads_evidence:
        return "claim only"
    return "pairwise" if b.pairwise else "plain"


def _confusion(
    run: VerificationRun,
    key: tuple[str, int],
    of_set: Mapping[str, ClaimPredictions],
    scored: Mapping[str, np.ndarray],
) -> list[dict[str, Any]]:
    """How often each label is taken for each, with one seed."""
    rows = []
    for name in scored:
        pairs = [
            (claim.label, label)
            for claim, label in zip(of_set[name].claims, of_set[name].predicted, strict=True)
        ]
        for gold in run.labels:
            counts = {label: pairs.count((gold, label)) for label in run.labels}
            if any(counts.values()):
                rows.append(
                    {"system": key[0], "seed": key[1], "set": name, "gold": gold, "predicted": counts}
                )
    return rows


def _mean_confusion(report: Report, name: str) -> list[dict[str, Any]]:
    """Shares of the labels over the seeds, for each system and gold label in the order of the tables."""
    rows = [row for row in report.tables["confusion"] if row["set"] == name]
    found = []
    for system in CLAIM_SYSTEMS:
        for gold in dict.fromkeys(row["gold"] for row in rows):
            same = [row["predicted"] for row in rows if (row["system"], row["gold"]) == (system, gold)]
            if same:
                claims = sum(same[0].values())
                shares = {label: sum(one[label] for one in same) / (claims * len(same)) for label in same[0]}
                found.append({"system": system, "gold": gold, "claims": claims, "predicted": shares})
    return found


def _checksums(run: VerificationRun) -> dict[str, str]:
    """Of the files; storyworld, which is made, has none."""
    corpus = run.settings.corpus.corpus
    return {} if corpus == "storyworld" else {name: checksum_of(corpus, name) for name in run.claims}


def _measured(score: Mapping[str, Any], *, p: float | None = None) -> MeasuredScore:
    interval = score["low"], score["high"]
    return MeasuredScore(value=score["value"], interval=interval, deviation=score["deviation"], p=p)


def _share_html(share: float, *, right: bool) -> str:
    text = f"{100 * share:.1f}"
    return f"<b>{text}</b>" if right else text


MOST_SHOWN = 300  # claims to leaf through: a joint model reads each once more for each sentence
ON_A_PAGE = 50
_PAGE_STYLE = "div.cdlm-claim{padding:0 0 22px}"
# What stands in the boxes before anything is typed.
EXAMPLE_CLAIM = "The police had 412 officers on duty."
EXAMPLE_EVIDENCE = """\
According to the police, order was kept by 412 officers, some of them called back from leave.
The ferry to Telk sails again from Monday.
A petition had gathered 11,523 signatures by noon.
"""


def verdicts_in_place(
    run: VerificationRun, system: ClaimSystem, predictions: ClaimPredictions, *, file: Path
) -> Widget:
    """The first MOST_SHOWN claims of dev to leaf through, as a system trained with seed 0 judged them; the
    first ON_A_PAGE also go to `file`, which needs no kernel. Their shares are kept in the folder of the run.

    Args:
        predictions: of dev.
    """
    reads = read_verdicts(run, system, predictions)
    title = f"Claims and verdicts: {system.label}"
    with replaced_file(file) as opened:
        opened.write(verdicts_page(reads[:ON_A_PAGE], title=title, shares=system.shares))
    return verdict_browser(reads, shares=system.shares)


def read_verdicts(
    run: VerificationRun, system: ClaimSystem, predictions: ClaimPredictions
) -> list[ReadClaim]:
    """The first MOST_SHOWN claims of dev, each with its evidence and its shares; arguments as of
    `verdicts_in_place`."""
    claims, shares = predictions.claims[:MOST_SHOWN], None
    if system.reads_evidence:
        shares = evidence_shares(
            run.verifier(system, 0, trained=True).on_device(),
            claims,
            file=run.folder_of(system, 0) / "dev_shares.npy",
            precision=run.settings.training.precision,
            name=f"{system.label}: shares of the evidence",
        )
    return [
        _read_verdicts(
            claim, dict(zip(predictions.labels, row.tolist(), strict=True)), shares and shares[number]
        )
        for number, (claim, row) in enumerate(zip(claims, predictions.probabilities, strict=False))
    ]


def own_claim_in_place(run: VerificationRun, claim: str, evidence: str) -> Widget:
    """Boxes for a claim and its evidence, and the verdict of every system trained with seed 0, that on what
    stands in the boxes at first included.

    Raises ValueError if these cannot be read.
    """
    judge = own_judge(run)
    return own_candidates_box(
        judge,
        asked=claim,
        candidates=evidence,
        words=EVIDENCE,
        answered=judge(claim, own_sentences(evidence)),
    )


def own_judge(run: VerificationRun) -> Callable[[str, Sequence[str]], str]:
    """From a claim and sentences to HTML: the verdict of every system. The models are loaded when they are
    first needed; the verdicts are also written to `own_claim.html` in the folder of the run.

    The function raises ValueError for more sentences than the systems read.
    """
    verifiers: list[Verifier] = []

    def judge(text: str, sentences: Sequence[str]) -> str:
        most = run.settings.corpus.evidence_sentences
        if len(sentences) > most:
            raise ValueError(f"there are {len(sentences)} sentences; the systems read {most}: delete some")
        claim = EvidencedClaim(id="", text=text, evidence=tuple(sentences), label=None, group="")
        if not verifiers:
            verifiers.extend(run.verifier(system, 0, trained=True).on_device() for system in run.systems)
        precision = run.settings.training.precision
        html = "".join(
            verdict_html(_judged(verifier, claim, precision=precision), shares=verifier.system.shares)
            for verifier in verifiers
        )
        with replaced_file(run.folder / "own_claim.html") as opened:
            note = f"as judged by {', '.join(verifier.system.label for verifier in verifiers)}"
            opened.write(still_page(html, title=text, note=note, style=_PAGE_STYLE))
        return html

    return judge


def own_texts(file: str, *, most: int) -> tuple[str, str]:
    """A claim and evidence, a sentence a line, from a text file with the claim on the first; the example if
    `file` is "".

    Args:
        most: sentences that the systems read.

    Raises:
        DataError: more sentences; as of `read_text` and `first_and_others`.
    """
    if not file:
        return EXAMPLE_CLAIM, "\n".join(own_sentences(EXAMPLE_EVIDENCE)[:most])
    claim, evidence = first_and_others(
        read_text(file), source=file, first="a claim", other="sentence of evidence"
    )
    if (given := len(own_sentences(evidence))) > most:
        what = f"there are {given} sentences of evidence; the systems read {most}"
        raise DataError(file, what, "delete some, or raise evidence_sentences", field="evidence")
    return claim, evidence


def own_sentences(text: str) -> list[str]:
    """The lines of a text that are not empty. Raises DataError if there are none."""
    return filled_lines(text, source="evidence", remedy="write one sentence on each line")


def _judged(verifier: Verifier, claim: EvidencedClaim, *, precision: Precision) -> ReadClaim:
    """By one system, whose label stands for an id."""
    found = predict_verdicts(verifier, [claim], batch_size=1, precision=precision)
    probabilities = dict(zip(found.labels, found.probabilities[0].tolist(), strict=True))
    shares = None
    if verifier.system.reads_evidence:
        (shares,) = evidence_shares(verifier, [claim], precision=precision)
    return _read_verdicts(claim, probabilities, shares, name=verifier.system.label)


def _read_verdicts(
    claim: EvidencedClaim,
    probabilities: dict[str, float],
    shares: tuple[float, ...] | None,
    *,
    name: str | None = None,
) -> ReadClaim:
    return ReadClaim(
        id=claim.id if name is None else name,
        claim=claim.text,
        evidence=claim.evidence,
        probabilities=probabilities,
        shares=shares,
        gold=claim.label,
    )
