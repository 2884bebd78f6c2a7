"""Claims judged by several sentences of evidence (Di Liello et al. 2022, "MSPP", section 4.3): notebook 10.

Each system is trained with each seed; of its passes over the training claims the one with the highest label
accuracy on dev is kept. All other sets are labelled once by each. All that is finished stays in the run
folder: a stopped run goes on where it was.

Choices where the paper is silent: a pair of pairwise reading has as many tokens of claim and of evidence as
the joint sequence has, at compact positions, as cross-encoders have them; there is no weight decay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import nn

from cdlm_lab.data.claims import EvidencedClaim
from cdlm_lab.examples.joint_sequence import POSITIONS, JointLayout
from cdlm_lab.experiments.claim_corpora import ClaimCorpus, Claims, labels_of, read_claim_sets
from cdlm_lab.experiments.claim_predictions import ClaimPredictions, predict_verdicts
from cdlm_lab.experiments.claim_systems import CLAIM_SYSTEMS, ClaimSystem, claim_systems
from cdlm_lab.experiments.claim_verifiers import Verifier, load_verifier
from cdlm_lab.experiments.fine_tuning import FineTuning, fine_tune
from cdlm_lab.experiments.joint_checkpoints import paragraph_checkpoint
from cdlm_lab.experiments.parallel import Recipe, TrainingJob
from cdlm_lab.models.joint_head import LAYERS
from cdlm_lab.parameters import ParameterError, check_choice, check_least, check_types, parameters_of
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.saved_model import MODEL_FOLDER


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
