"""Claims judged by several sentences of evidence (Di Liello et al. 2022, "MSPP", section 4.3): notebook 10.

Each system is trained with each seed; of its epochs the one with the highest label accuracy on dev is kept.
All other sets are labelled once by each.

Choices where the paper is silent: a pair of pairwise reading has as many tokens of claim and of evidence as
the joint sequence has, at compact positions, as cross-encoders have them; there is no weight decay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from IPython.display import HTML
from ipywidgets import Widget
from pydantic import Field
from torch import nn
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.claims import LABELS, SETS, Evidence, EvidencedClaim, checksum_of, claim_sets, read_claims
from cdlm_lab.data.files import DataError, read_text, replaced_file
from cdlm_lab.data.storyworld.task_sets import read_storyworld_claims
from cdlm_lab.data.typed_documents import filled_lines, first_and_others
from cdlm_lab.examples.candidates import (
    ClaimExamples,
    EncodedClaims,
    JointCollate,
    JointLayout,
    PairedClaimCollate,
    joint_sequence,
)
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.experiments.runs import (
    Cell,
    JointSettings,
    KeptNumbers,
    Scores,
    SystemRun,
    Training,
    Values,
    chosen_systems,
    comparison_cells,
    cost_facts,
    facts_table,
    of_another_run,
    output_of,
    outputs_by_length,
    paired_tests,
    predict,
    read_rows,
    report,
    score_rows,
    sentence_rows,
    train,
    write_rows,
)
from cdlm_lab.models.checkpoint import default_device
from cdlm_lab.models.joint import (
    POOLINGS,
    JointHead,
    JointModel,
    PooledHead,
    PooledPairs,
    load_joint_model,
    load_pooled_pairs,
)
from cdlm_lab.models.precision import Precision, precision_told
from cdlm_lab.parameters import ParameterError, settings
from cdlm_lab.progress import Progress
from cdlm_lab.report import Report
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.fine_tuning import TrainingJob
from cdlm_lab.widgets.ask import EVIDENCE, own_candidates_box
from cdlm_lab.widgets.browse import verdict_browser
from cdlm_lab.widgets.html import escaped, still_page, table_html
from cdlm_lab.widgets.score_tables import score_table
from cdlm_lab.widgets.verdicts import ReadClaim, verdict_html, verdicts_page

__all__ = ["Settings", "evaluate", "predict", "prepare", "preview", "report", "train"]

STORYWORLD = "storyworld"
MAJORITY = "majority"
MEASURE = "label_accuracy"
SHOWN_ORDER = ("test", "symmetric", "dev")
SET_NAMES = {"symmetric": "FeverSymmetric"}
Claims = Mapping[str, tuple[EvidencedClaim, ...]]  # by set

# ---- systems ----

LEFT_OUT = "share in the verdict: by how much its label falls without the sentence"


@dataclass(frozen=True, slots=True)
class ClaimSystem:
    """What labels claims.

    Attributes:
        name, label: as a parameter and in tables.
        paper: its name in the paper's table, or any other.
        head: `max` or `weighted_sum`, which pool pairs, or `ie_1` or `ae_1`, which read all at once.
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


def _systems() -> Iterator[ClaimSystem]:
    """Those of the paper's Table 8, and one of ours: the joint model without any evidence. What that gets
    right the claims give away by themselves; only what others get right beyond it was read in the
    evidence."""
    yield ClaimSystem("claim-only", "claim only", "", "ie_1", reads_evidence=False, shares="")
    won = "share of the dimensions in which the sentence is largest"
    yield ClaimSystem("pairwise-max", "pairwise, max", "pairwise-max", "max", shares=won)
    summed = "pairwise, weighted sum"
    yield ClaimSystem(
        "pairwise-sum", summed, "pairwise-weighted_sum", "weighted_sum", shares="weight in the sum"
    )
    for head in ("ie", "ae"):
        yield ClaimSystem(f"joint-{head}", f"joint {head.upper()}_1", f"joint-{head}_1", f"{head}_1")
    for pretrained in ("ie", "ae"):
        for head in ("ie", "ae"):
            label, paper = f"MSPP {pretrained.upper()}_k + {head.upper()}_1", f"mspp-{pretrained}_k-{head}_1"
            yield ClaimSystem(f"mspp-{pretrained}-{head}", label, paper, f"{head}_1", pretrained)


CLAIM_SYSTEMS = {system.name: system for system in _systems()}


def compared_pairs(systems: Sequence[ClaimSystem]) -> dict[str, list[tuple[str, str]]]:
    """Which systems are tested against which, by what they are tested for: all that read evidence against
    what does not, joint reading against the last pairwise one, MSPP against the same head without it."""
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


# ---- settings and claims ----


@settings
class Settings(JointSettings):
    """The parameters of notebook 10.

    Attributes:
        corpus: `storyworld`, or a folder or file: FEVER with KGAT's evidence, or FM2; FeverSymmetric beside
            either is one more test set.
        train_stories, held_out_stories: of storyworld, up to six claims each; the second for dev, and as many
            for test.
        train_claims, held_out_claims: at most so many are drawn of the training claims, and of each other
            set; 0 = all.
        evidence: `retrieved`, or of FM2 `gold`.
        evidence_sentences: of a claim, at most; the paper has 5.
        shown_system: whose verdicts are shown; "" = the last one.
        own_claim: a text file with a claim and evidence; "" = an example.
    """

    run_folder: str = "runs/fact_verification"
    corpus: str = STORYWORLD
    train_stories: int = Field(default=200, ge=2)
    held_out_stories: int = Field(default=40, ge=2)
    train_claims: int = Field(default=0, ge=0)
    held_out_claims: int = Field(default=0, ge=0)
    evidence: Evidence = "retrieved"
    evidence_sentences: int = Field(default=3, ge=1)
    systems: str = "pairwise-sum joint-ie claim-only"
    batch_size: int = Field(default=32, ge=1)
    micro_batch_size: int = Field(default=32, ge=1)
    shown_system: str = ""
    own_claim: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.corpus == STORYWORLD and self.evidence != "retrieved":
            raise ParameterError(f"evidence is {self.evidence!r}; storyworld has retrieved alone")
        _ = self.shown

    @property
    def chosen(self) -> tuple[ClaimSystem, ...]:
        """The systems, in the order of the paper's tables."""
        return chosen_systems(self.systems, CLAIM_SYSTEMS)

    @property
    def shown(self) -> ClaimSystem:
        """The system whose verdicts are shown. Raises ParameterError for one that is not trained."""
        by_name = {system.name: system for system in self.chosen}
        if self.shown_system and self.shown_system not in by_name:
            raise ParameterError(f"shown_system is {self.shown_system!r}; choose one of {', '.join(by_name)}")
        return by_name[self.shown_system] if self.shown_system else self.chosen[-1]


def read_claim_sets(settings: Settings) -> Claims:
    """Claims of train, dev and test, and of FeverSymmetric if its file is there too.

    Raises:
        ParameterError: a claim of train or dev without label; all of train have one label; all of another
            set are of one group.
        DataError: a file that cannot be read.
    """
    path = settings.corpus
    names = SETS[:3] if path == STORYWORLD else dict.fromkeys((*SETS[:3], *claim_sets(path)))
    claims = {name: _drawn(_read_set(name, settings), name, settings) for name in names}
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


def _read_set(name: str, settings: Settings) -> Sequence[EvidencedClaim]:
    most = settings.evidence_sentences
    if settings.corpus == STORYWORLD:
        stories = settings.train_stories if name == "train" else settings.held_out_stories
        return list(read_storyworld_claims(name, stories, evidence=most))
    return read_claims(settings.corpus, name, evidence=settings.evidence, most_evidence=most)


def _drawn(claims: Sequence[EvidencedClaim], name: str, settings: Settings) -> tuple[EvidencedClaim, ...]:
    """The claims that are used, in their order."""
    most = settings.train_claims if name == "train" else settings.held_out_claims
    if not most or most >= len(claims):
        return tuple(claims)
    numbers = np.random.default_rng([0, SETS.index(name)]).permutation(len(claims))[:most]
    return tuple(claims[number] for number in sorted(numbers))


def labels_of(claims: Claims) -> tuple[str, ...]:
    """The labels to choose from: those of LABELS up to the last that any claim has. One that no training
    claim
    has stays among them: claims that have it are to be counted as wrong."""
    used = {claim.label for of_set in claims.values() for claim in of_set}
    return LABELS[: 1 + max(place for place, label in enumerate(LABELS) if label in used)]


def label_counts(claims: Sequence[EvidencedClaim], labels: Sequence[str]) -> dict[str, int]:
    """Label -> how many claims have it, 0 included."""
    counts = Counter(claim.label for claim in claims)
    return {label: counts[label] for label in labels}


def majority_label(claims: Claims) -> str:
    """The label that most training claims have; ties go to the first of LABELS."""
    counts = label_counts(claims["train"], LABELS)
    return max(counts, key=counts.__getitem__)


# ---- models and what they predict ----


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
        """What `collate` makes batches of: those of a training, or each claim once, in order.

        Raises:
            ValueError: there are no claims.
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


@dataclass(frozen=True, kw_only=True, eq=False)
class ClaimPredictions:
    """Verdicts on claims, in order; `probabilities`: float64 (claims, labels)."""

    claims: Sequence[EvidencedClaim]
    labels: tuple[str, ...]
    probabilities: np.ndarray

    @property
    def predicted(self) -> list[str]:
        """The label of the highest probability of each claim; ties go to the first."""
        return [self.labels[number] for number in self.probabilities.argmax(axis=1)]

    @property
    def right(self) -> np.ndarray:
        """bool (claims,), True = the gold label is predicted; False where it is not known."""
        pairs = zip(self.claims, self.predicted, strict=True)
        return np.array([claim.label == label for claim, label in pairs], dtype=bool)

    def save(self, file: Path) -> None:
        """Write a line for each claim, atomically."""
        rows = (dict(zip(self.labels, row.tolist(), strict=True)) for row in self.probabilities)
        each = zip(self.claims, self.predicted, rows, strict=True)
        write_rows(
            file, ({"id": claim.id, "predicted": label, "probabilities": row} for claim, label, row in each)
        )

    @classmethod
    def load(
        cls, file: Path, *, claims: Sequence[EvidencedClaim], labels: tuple[str, ...]
    ) -> ClaimPredictions:
        """Read what `save` wrote. Raises ValueError if it is of other claims or labels."""
        rows = [
            row["probabilities"] for row in read_rows(file, [claim.id for claim in claims], what="claims")
        ]
        if any(tuple(row) != labels for row in rows):
            raise of_another_run(file, "claims")
        values = np.array([list(row.values()) for row in rows])
        return cls(claims=claims, labels=labels, probabilities=values)


def predict_verdicts(
    verifier: Verifier, claims: Sequence[EvidencedClaim], *, name: str | None = None, **reading: Any
) -> ClaimPredictions:
    """Label every claim; labels that claims have are not read.

    Args:
        name: beside the progress bar; None = no bar.
        reading: batch size and precision.
    """
    examples, probabilities = verifier.examples(claims), np.zeros((len(claims), len(verifier.labels)))
    form = {"name": name, "unit": "claim", **reading}
    for numbers, output in outputs_by_length(verifier.model, examples, verifier.collate, **form):
        probabilities[numbers] = np.exp(_log_probabilities(output))
    return ClaimPredictions(claims=claims, labels=verifier.labels, probabilities=probabilities)


def _log_probabilities(output: Any) -> np.ndarray:
    """float64 (examples, labels)."""
    return output.logits.double().log_softmax(-1).cpu().numpy()


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
    is the largest; these sum to 1. A joint model has no such number. There each sentence is left out, the
    others staying at their places, and the share is how much the log-probability of the label that is
    predicted with all of them falls without it, 0 if it rises, divided by the sum over the sentences. They
    sum to 1, or are all 0 where no sentence alone is missed. Two sentences that say the same are missed
    little, however much they count together; the paper has no such numbers.

    Args:
        verifier: of a system that reads evidence.
        file: where the shares are kept as they come; None = nowhere.
        name: beside the progress bar; None = no bar.

    Raises:
        ValueError: the file has shares of other claims.
    """
    examples, k = verifier.examples(claims), verifier.layout.candidates
    counts = [min(len(claim.evidence), k) for claim in claims]
    with (
        KeptNumbers(file, (len(claims), k)) as kept,
        Progress(total=len(claims), desc=name, unit="claim", disable=name is None) as bar,
    ):
        bar.update(len(claims) - len(kept.missing))
        for number in kept.missing:
            shares = _shares(verifier, examples, number, precision) if counts[number] else ()
            kept.values[number] = [*shares, *[0.0] * (k - len(shares))]
            kept.save_when_due()
            bar.update(1)
    return [tuple(row[:count]) for row, count in zip(kept.values.clip(0, 1).tolist(), counts, strict=True)]


def _shares(verifier: Verifier, examples: ClaimExamples, number: int, precision: Precision) -> np.ndarray:
    """Of the sentences of one claim that are read."""
    reading = {"collate": verifier.collate, "precision": precision}
    if verifier.system.pairwise:
        return output_of(verifier.model, [examples[number]], **reading).shares.cpu().numpy()
    pieces = examples.encoded[examples.claims[number].id][: verifier.layout.sentences]
    absent = [None] * (verifier.layout.sentences - len(pieces))
    rows = []
    for left_out in (None, *range(1, len(pieces))):
        texts = [None if place == left_out else text for place, text in enumerate(pieces)]
        sequence = joint_sequence([*texts, *absent], layout=verifier.layout, special=examples.special)
        inputs = ("input_ids", "token_type_ids", "position_ids", "starts")
        rows.append({key: getattr(sequence, key) for key in inputs})
    values = _log_probabilities(output_of(verifier.model, rows, **reading))  # (1 + sentences, labels)
    of_predicted = values[:, values[0].argmax()]
    falls = np.maximum(of_predicted[0] - of_predicted[1:], 0)
    return falls / falls.sum() if falls.any() else falls


# ---- the run ----


@dataclass(frozen=True, kw_only=True)
class VerificationRun(SystemRun):
    """The claims of a run, and how its systems are trained and predict."""

    NAME: ClassVar[str] = "fact verification"

    settings: Settings
    claims: Claims

    @classmethod
    def read(cls, settings: Settings) -> VerificationRun:
        """Read the claims."""
        return cls(settings=settings, claims=read_claim_sets(settings))

    @property
    def systems(self) -> tuple[ClaimSystem, ...]:
        """In the order of the tables."""
        return self.settings.chosen

    @property
    def held_out(self) -> tuple[str, ...]:
        """The sets that are labelled: all but train."""
        return tuple(name for name in self.claims if name != "train")

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """To choose from."""
        return labels_of(self.claims)

    @property
    def data(self) -> dict[str, Any]:
        """What the report says of the claims; storyworld, which is made, has no checksums."""
        corpus, made = self.settings.corpus, self.settings.corpus == STORYWORLD
        return {
            "corpus": corpus,
            "precision": precision_told(self.settings.precision),
            "checksums": {} if made else {name: checksum_of(corpus, name) for name in self.claims},
            "claims": {name: len(claims) for name, claims in self.claims.items()},
            "labels": {name: label_counts(claims, self.labels) for name, claims in self.claims.items()},
        }

    def config(self, seed: int) -> TrainingConfig:
        """How each system is trained. Raises ParameterError for values that cannot be."""
        return self.settings.config(items=len(self.claims["train"]), seed=seed)

    def verifier(self, system: ClaimSystem, seed: int = 0, *, trained: bool = False) -> Verifier:
        """A new one on the CPU, or the one that was trained on the default device."""
        given = self.settings
        layout = JointLayout(
            sentences=1 + given.evidence_sentences,
            length=given.sentence_length,
            positions="compact" if system.pairwise else given.positions,
        )
        source = self.model_folder(Training(system, seed)) if trained else given.checkpoint(system.pretrained)
        form = {"labels": len(self.labels), "length": layout.length, "positions": layout.positions}
        if system.pairwise:
            pooled = PooledHead(pooling=system.head, **form)
            model, tokenizer = load_pooled_pairs(source, head=pooled, seed=seed, **given.loading)
        else:
            joint = JointHead(kind=system.head, sentences=layout.sentences, layers=given.head_layers, **form)
            model, tokenizer = load_joint_model(source, head=joint, seed=seed, **given.loading)
        return Verifier(
            system=system,
            model=model.to(default_device()) if trained else model,
            tokenizer=tokenizer,
            layout=layout,
            labels=self.labels,
        )

    def items(self, system: ClaimSystem) -> str:
        """What an update has a batch of."""
        return "claims"

    def sets(self, training: Training) -> tuple[str, ...]:
        """All held-out sets."""
        return self.held_out

    def job(self, training: Training) -> TrainingJob:
        """A new verifier, judged by its label accuracy on dev."""
        verifier, config, dev = self.verifier(*training), self.config(training.seed), self.claims["dev"]

        def judge(model: nn.Module) -> float:
            judged = replace(verifier, model=model)
            return float(predict_verdicts(judged, dev, **self.settings.predicting).right.mean())

        return TrainingJob(
            model=verifier.model,
            tokenizer=verifier.tokenizer,
            train_examples=verifier.examples(self.claims["train"], config=config),
            validation_examples=verifier.examples(dev),
            collate=verifier.collate,
            config=config,
            judge=judge,
        )

    def load(self, training: Training) -> Verifier:
        """The trained one."""
        return self.verifier(*training, trained=True)

    def predict_set(self, loaded: Verifier, name: str, bar: str) -> ClaimPredictions:
        """Verdicts on the claims of a set."""
        return predict_verdicts(loaded, self.claims[name], name=bar, **self.settings.predicting)

    def read_predictions(self, file: Path, name: str) -> ClaimPredictions:
        """Verdicts on the claims of a set."""
        return ClaimPredictions.load(file, claims=self.claims[name], labels=self.labels)


Predictions = Mapping[tuple[str, int], Mapping[str, ClaimPredictions]]  # (system, seed) -> set


def prepare(settings: Settings) -> VerificationRun:
    """Take the folder, read the claims and look whether all is there and fits; nothing is trained.

    Raises:
        ValueError: whatever does not fit, in one line.
        RunError: the folder is not free for this run.
    """
    for system in settings.chosen:  # before the reading, which may take long
        settings.checkpoint(system.pretrained)
    own_texts(settings)
    run = VerificationRun.open(settings)
    run.config(0)
    for system in run.systems:
        run.verifier(system)  # has it positions enough?
    return run


# ---- before the start ----

LOOKED_AT = 500  # claims of a set that are put into pieces before the start


def preview(run: VerificationRun) -> HTML:
    """What is verified and what training will cost."""
    return facts_table([*claim_facts(run), *cost_facts(run)])


def claim_facts(run: VerificationRun) -> list[tuple[str, str]]:
    """What is verified, what of it is cut, and labels that cannot be learned, as (name, text)."""
    tokenizer = run.verifier(run.systems[0]).tokenizer
    rows = []
    for name, claims in run.claims.items():
        counts = label_counts(claims, run.labels)
        labels = ", ".join(f"{count:,} {label}" for label, count in counts.items())
        if unknown := len(claims) - sum(counts.values()):
            labels += f", {unknown:,} without label, which are not scored"
        evidence = [len(claim.evidence) for claim in claims]
        text = (
            f"{len(claims):,} claims in {len({claim.group for claim in claims}):,} groups ({labels}); "
            f"{np.mean(evidence):.1f} sentences of evidence each, {evidence.count(0):,} claims without"
        )
        encoded = EncodedClaims(claims[:LOOKED_AT], tokenizer)
        rows += [(name, text), (f"{name}: cut", _what_is_cut(encoded, run.settings.sentence_length))]
    never = [label for label, count in label_counts(run.claims["train"], run.labels).items() if not count]
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


def example(run: VerificationRun) -> HTML:
    """The first training claim as the shown system reads it."""
    columns = ["", "what is read", "tokens", "positions"]
    return HTML(table_html(columns, example_rows(run, run.settings.shown), text_columns=(0, 1)))


def example_rows(run: VerificationRun, system: ClaimSystem, *, index: int = 0) -> list[list[str]]:
    """A training claim, then each sentence of its evidence that is read, as cells of HTML. A pairwise system
    reads the claim with each sentence by itself."""
    verifier = run.verifier(system)
    sequence = verifier.examples([run.claims["train"][index]]).describe(0)
    return [
        [f"evidence {number}" if number else "claim", *cells]
        for number, *cells in sentence_rows(verifier.tokenizer, sequence)
    ]


# ---- scores ----


def evaluate(run: VerificationRun, predictions: Predictions) -> Scores:
    """Label accuracy of all systems on every set that has labels, and of the most frequent training label;
    the tests between systems, and how often each label is taken for each."""
    labelled = _labelled(run)
    gold = {name: [run.claims[name][number] for number in numbers] for name, numbers in labelled.items()}
    groups = {name: [claim.group for claim in claims] for name, claims in gold.items()}
    values: Values = {
        Cell(system.name, name, MEASURE): [
            predictions[system.name, seed][name].right[numbers].astype(float)
            for seed in range(run.settings.seeds)
        ]
        for system in run.systems
        for name, numbers in labelled.items()
    }
    tests = [
        row
        for name in gold
        for pairs in compared_pairs(run.systems).values()
        for row in paired_tests(
            [(Cell(a, name, MEASURE), Cell(b, name, MEASURE)) for a, b in pairs], values, groups
        )
    ]
    best = majority_label(run.claims)
    majority: Values = {
        Cell(MAJORITY, name, MEASURE): [np.array([claim.label == best for claim in claims], dtype=float)]
        for name, claims in gold.items()
    }
    of_majority = [
        replace(row, seeds=None, note=best) for row in score_rows(majority, groups) if row.seed is None
    ]
    against_pairwise = [row for row in tests if CLAIM_SYSTEMS[row["b"]].pairwise]
    return Scores(
        rows=[*score_rows(values, groups, against_pairwise), *of_majority],
        tables={
            "comparisons": [{**row, "set": row["split"]} for row in tests],
            "confusion": [
                {"system": system, "seed": seed, "split": name, **row}
                for (system, seed), of_set in predictions.items()
                for name in gold
                for row in _confusion(of_set[name])
            ],
        },
        data={
            "scored": {name: len(claims) for name, claims in gold.items()},
            "groups": {name: len(set(of_set)) for name, of_set in groups.items()},
        },
    )


def _labelled(run: VerificationRun) -> dict[str, list[int]]:
    """Held-out set -> numbers of its claims that have a label, if any have."""
    numbers = {
        name: [number for number, claim in enumerate(run.claims[name]) if claim.label is not None]
        for name in run.held_out
    }
    return {name: of_set for name, of_set in numbers.items() if of_set}


def _confusion(predictions: ClaimPredictions) -> Iterator[dict[str, Any]]:
    """Of each gold label how often each is predicted."""
    pairs = [*zip((claim.label for claim in predictions.claims), predictions.predicted, strict=True)]
    for gold in predictions.labels:
        counts = {label: pairs.count((gold, label)) for label in predictions.labels}
        if any(counts.values()):
            yield {"gold": gold, "predicted": counts}


# ---- views of the report ----


def score_tables(report: Report) -> HTML:
    """A table of label accuracy for each set that is scored: first the most frequent label, then the systems
    in the order of the paper's tables."""
    corpus = Path(report.data["corpus"]).name
    majority = next((row.note for row in report.rows if row.system == MAJORITY), "")
    labels = {MAJORITY: f"always \u201c{majority}\u201d"}
    labels |= {name: system.label for name, system in CLAIM_SYSTEMS.items()}
    captions = {name: f"Claims verified: {corpus}, {SET_NAMES.get(name, name)}" for name in SHOWN_ORDER}
    tables = [
        score_table(report, labels=labels, split=name, caption=captions[name])
        for name in SHOWN_ORDER
        if name in report.data["scored"]
    ]
    return HTML("".join(table.html() for table in tables))


def shown_set(report: Report) -> str:
    """The set whose tests and mistakes are shown: test, if it has labels, else dev."""
    return "test" if "test" in report.data["scored"] else "dev"


def comparisons(report: Report) -> HTML:
    """The tests between systems on the shown set: the difference with its interval, p corrected, p of the
    t-test over seeds."""
    name = shown_set(report)
    rows = [
        [
            escaped(CLAIM_SYSTEMS[row["a"]].label),
            escaped(CLAIM_SYSTEMS[row["b"]].label),
            *comparison_cells(row),
        ]
        for row in report.tables["comparisons"]
        if row["split"] == name
    ]
    columns = [f"on {name}", "against", "difference [95%]", "p (Holm)", "p over seeds"]
    return HTML(table_html(columns, rows, text_columns=(0, 1)))


def mistakes(report: Report) -> HTML:
    """Of each system and gold label on the shown set, how many claims there are and which share of them is
    given each label; with several seeds their mean."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    seeds: Counter[tuple[str, str]] = Counter()
    for row in report.tables["confusion"]:
        if row["split"] == shown_set(report):
            key = row["system"], row["gold"]
            counts.setdefault(key, Counter()).update(row["predicted"])
            seeds[key] += 1
    labels = [*dict.fromkeys(label for shares in counts.values() for label in shares)]
    order = [*CLAIM_SYSTEMS]
    rows = []
    for (system, gold), of_label in sorted(counts.items(), key=lambda item: order.index(item[0][0])):
        claims = of_label.total() // seeds[system, gold]
        shares = {label: f"{100 * of_label[label] / of_label.total():.1f}" for label in labels}
        shares[gold] = f"<b>{shares[gold]}</b>"
        label = escaped(CLAIM_SYSTEMS[system].label)
        rows.append([label, escaped(gold), f"{claims:,}", *shares.values()])
    return HTML(table_html(["system", "gold label", "claims", *labels], rows, text_columns=(0, 1)))


# ---- claims one by one ----

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


def verdicts(run: VerificationRun, predictions: Predictions) -> Widget:
    """The first MOST_SHOWN claims of dev to leaf through, as the shown system with seed 0 judged them; the
    first ON_A_PAGE also go to `verdicts.html`, which needs no kernel. Their shares are kept in the folder."""
    system = run.settings.shown
    reads = read_verdicts(run, system, predictions[system.name, 0]["dev"])
    title = f"Claims and verdicts: {system.label}"
    with replaced_file(run.folder / "verdicts.html") as file:
        file.write(verdicts_page(reads[:ON_A_PAGE], title=title, shares=system.shares))
    return verdict_browser(reads, shares=system.shares)


def read_verdicts(
    run: VerificationRun, system: ClaimSystem, predictions: ClaimPredictions
) -> list[ReadClaim]:
    """The first MOST_SHOWN claims of dev, each with its evidence and its shares."""
    some = replace(
        predictions,
        claims=predictions.claims[:MOST_SHOWN],
        probabilities=predictions.probabilities[:MOST_SHOWN],
    )
    if not system.reads_evidence:
        return _read_claims(some, None)
    shares = evidence_shares(
        run.verifier(system, 0, trained=True),
        some.claims,
        file=run.folder_of(Training(system, 0)) / "dev_shares.npy",
        precision=run.settings.precision,
        name=f"{system.label}: shares of the evidence",
    )
    return _read_claims(some, shares)


def _read_claims(
    predictions: ClaimPredictions, shares: Sequence[tuple[float, ...]] | None
) -> list[ReadClaim]:
    """The claims as they are shown."""
    return [
        ReadClaim(
            id=claim.id,
            claim=claim.text,
            evidence=claim.evidence,
            probabilities=dict(zip(predictions.labels, row.tolist(), strict=True)),
            shares=shares and shares[number],
            gold=claim.label,
        )
        for number, (claim, row) in enumerate(zip(predictions.claims, predictions.probabilities, strict=True))
    ]


def own_claim(run: VerificationRun) -> Widget:
    """Boxes for a claim and its evidence, and the verdict of every system trained with seed 0, that on what
    stands in the boxes at first included."""
    judge = own_judge(run)
    claim, evidence = own_texts(run.settings)
    answered = judge(claim, own_sentences(evidence))
    return own_candidates_box(judge, query=claim, candidates=evidence, words=EVIDENCE, answered=answered)


def own_judge(run: VerificationRun) -> Callable[[str, Sequence[str]], str]:
    """From a claim and sentences to HTML: the verdict of every system. The models are loaded when they are
    first needed; the verdicts are also written to `own_claim.html` in the folder of the run.

    The function raises ValueError for more sentences than the systems read.
    """
    verifiers: list[Verifier] = []

    def judge(text: str, sentences: Sequence[str]) -> str:
        most = run.settings.evidence_sentences
        if len(sentences) > most:
            raise ValueError(f"there are {len(sentences)} sentences; the systems read {most}: delete some")
        claim = EvidencedClaim(id="", text=text, evidence=tuple(sentences), label=None, group="")
        verifiers.extend(() if verifiers else (run.verifier(one, trained=True) for one in run.systems))
        html = "".join(
            verdict_html(_judged(one, claim, precision=run.settings.precision), shares=one.system.shares)
            for one in verifiers
        )
        with replaced_file(run.folder / "own_claim.html") as file:
            note = f"as judged by {', '.join(one.system.label for one in verifiers)}"
            file.write(still_page(html, title=text, note=note, style=_PAGE_STYLE))
        return html

    return judge


def _judged(verifier: Verifier, claim: EvidencedClaim, *, precision: Precision) -> ReadClaim:
    """By one system, whose label stands for an id."""
    predictions = predict_verdicts(verifier, [claim], batch_size=1, precision=precision)
    reads = verifier.system.reads_evidence
    shares = evidence_shares(verifier, [claim], precision=precision) if reads else None
    return replace(_read_claims(predictions, shares)[0], id=verifier.system.label)


def own_texts(settings: Settings) -> tuple[str, str]:
    """A claim and evidence, a sentence a line, from the text file `own_claim`, or the example.

    Raises:
        DataError: it cannot be read, has no evidence, or more than the systems read.
    """
    most, file = settings.evidence_sentences, settings.own_claim
    if not file:
        return EXAMPLE_CLAIM, "\n".join(own_sentences(EXAMPLE_EVIDENCE)[:most])
    claim, evidence = first_and_others(
        read_text(file), source=file, first="a claim", other="sentence of evidence"
    )
    if (count := len(own_sentences(evidence))) > most:
        what = f"there are {count} sentences of evidence; the systems read {most}"
        raise DataError(file, what, "delete some, or raise evidence_sentences", field="evidence")
    return claim, evidence


def own_sentences(text: str) -> list[str]:
    """The lines of a text that are not empty. Raises DataError if there are none."""
    return filled_lines(text, source="evidence", remedy="write one sentence on each line")
