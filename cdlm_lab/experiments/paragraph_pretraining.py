"""Pre-training with paragraphs, MLM and MSPP: notebook 08 (Di Liello et al. 2022, section 3.4, appendix B).

`prepare_paragraphs` reads and tokenises the corpus and loads the model; nothing is trained, so that a person
can look at what will be. `pretrain` trains, keeps the checkpoint with the lowest sum of both losses on
validation, and writes the model into the run's folder. A run that was stopped goes on when the same is called
again.

Ours: a model is chosen by validation, where the paper seems to take that of the last step; documents for
validation and test, and all their candidates, are of other clusters than those for training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.splits import SPLITS, Split
from cdlm_lab.examples.candidate_examples import JointCollate
from cdlm_lab.experiments.corpora import tell_passed_over
from cdlm_lab.experiments.paragraph_corpora import ParagraphCorpus, ParagraphSplit, ParagraphTask, read_split
from cdlm_lab.experiments.parallel import Recipe, TrainingJob, train_in_processes
from cdlm_lab.models.conversion import copy_local_to_global
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.paragraph_model import ParagraphModel, load_paragraph_model, save_paragraph_model
from cdlm_lab.models.precision import Precision
from cdlm_lab.parameters import check_types, parameters_of
from cdlm_lab.ranks import is_first
from cdlm_lab.told import Stopped
from cdlm_lab.training.config import TrainingConfig, Workers
from cdlm_lab.training.processes import Processes
from cdlm_lab.training.saved_model import MODEL_FOLDER, TRAINING_FOLDER
from cdlm_lab.training.trainer import TrainingResult


@dataclass(frozen=True, kw_only=True)
class ParagraphTraining:
    """What the training starts from, and how it goes. What is no parameter is the paper's: AdamW with beta_2
    0.999, epsilon 1e-8 and weight decay 0.01, gradients cut at 1.

    Attributes:
        model: as of `load_language_model`.
        dropout: of hidden states and head; None = as the checkpoint says.
        attention_dropout: of attention weights; `checkpoint` = as the checkpoint says.
        steps ... gradient_checkpointing: as of `TrainingConfig`.
        workers: processes that tokenise (`auto` = one for each core) and then make examples, as of
            `TrainingConfig`.
        evaluate_every: steps between looks at the validation examples, and between checkpoints.
        parallel: processes that train, as of `Processes.of`; "" = one.
        seed: of everything left to chance.
    """

    model: str = "storyworld/longformer"
    dropout: float | None = None
    attention_dropout: AttentionDropout = 0.0
    steps: int = 300
    batch_size: int = 16
    micro_batch_size: int = 16
    learning_rate: float = 0.002
    warmup_steps: int = 30
    decay_power: float = 1.0
    precision: Precision = "auto"
    gradient_checkpointing: bool = False
    evaluate_every: int = 100
    parallel: str = ""
    workers: Workers = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        check_types(self)
        self.config.accumulation(processes=Processes.of(self.parallel).total)  # refuses what cannot be

    @property
    def config(self) -> TrainingConfig:
        """The settings of the trainer. Raises ParameterError for values that cannot be."""
        return TrainingConfig(
            steps=self.steps,
            batch_size=self.batch_size,
            micro_batch_size=self.micro_batch_size,
            learning_rate=self.learning_rate,
            warmup_steps=self.warmup_steps,
            decay_power=self.decay_power,
            weight_decay=0.01,
            adam_beta2=0.999,
            adam_epsilon=1e-8,
            max_gradient_norm=1.0,
            precision=self.precision,
            gradient_checkpointing=self.gradient_checkpointing,
            evaluate_every=self.evaluate_every,
            save_every=self.evaluate_every,
            log_every=max(1, self.steps // 100),
            workers=self.workers,
            seed=self.seed,
        )


@dataclass(frozen=True, kw_only=True)
class ParagraphSettings:
    """All parameters of a run but its folder."""

    corpus: ParagraphCorpus = field(default_factory=ParagraphCorpus)
    task: ParagraphTask = field(default_factory=ParagraphTask)
    training: ParagraphTraining = field(default_factory=ParagraphTraining)

    @property
    def parameters(self) -> dict[str, Any]:
        """By name, those of all parts."""
        return parameters_of(self)


# The parameters of notebook 08.
PARAMETERS = ("run_folder", *ParagraphSettings().parameters)


@dataclass(frozen=True, kw_only=True)
class ParagraphRun:
    """All that a run needs.

    Attributes:
        splits: `train`, with as many examples as the training takes; `validation` and `test`, with one of
            each paragraph that has two sentences or more.
        cache_folder: where tokenised corpora are kept.
        own_globals: True = the checkpoint brought global projections other than copies of the local ones.
    """

    settings: ParagraphSettings
    model: ParagraphModel
    tokenizer: PreTrainedTokenizerBase
    splits: Mapping[Split, ParagraphSplit]
    cache_folder: str
    own_globals: bool

    @property
    def collate(self) -> JointCollate:
        """From examples to batches."""
        return JointCollate(pad_token_id=self.tokenizer.pad_token_id)

    @property
    def job(self) -> TrainingJob:
        """What is trained on what."""
        return TrainingJob(
            model=self.model,
            tokenizer=self.tokenizer,
            train_examples=self.splits["train"].examples,
            validation_examples=self.splits["validation"].examples,
            collate=self.collate,
            config=self.settings.training.config,
        )


def prepare_paragraphs(settings: ParagraphSettings, *, cache_folder: str | Path) -> ParagraphRun:
    """Load the model, tokenise the corpus (once) and make the examples; nothing is trained.

    Args:
        cache_folder: where tokenised corpora are kept.

    Raises ValueError with one clear line for whatever does not fit.
    """
    training = settings.training
    model, tokenizer = load_paragraph_model(
        training.model,
        head=settings.task.joint_head,
        dropout=training.dropout,
        attention_dropout=training.attention_dropout,
        seed=training.seed,
    )
    if training.model == "tiny":
        copy_local_to_global(model)
    splits = {
        split: read_split(
            settings.corpus,
            settings.task,
            split,
            tokenizer=tokenizer,
            cache=Path(cache_folder),
            seed=training.seed,
            size=training.steps * training.batch_size if split == "train" else None,
            workers=training.workers,
        )
        for split in SPLITS
    }
    tell_passed_over(settings.corpus.corpus, splits["train"].passed_over)
    if splits["test"].examples.counts.source_documents < 2:
        raise ValueError(
            f"{settings.corpus.corpus}, test: only one document can be asked about, and intervals need two; "
            "give more clusters"
        )
    return ParagraphRun(
        settings=settings,
        model=model,
        tokenizer=tokenizer,
        splits=splits,
        cache_folder=str(cache_folder),
        own_globals=not has_copied_globals(model),
    )


def prepare_job(*, settings: ParagraphSettings, cache_folder: str) -> TrainingJob:
    """That of `prepare_paragraphs`, for each of several processes."""
    return prepare_paragraphs(settings, cache_folder=cache_folder).job


def has_copied_globals(model: ParagraphModel) -> bool:
    """True = all global projections are what the local ones are."""
    return all(
        getattr(layer, f"{name}_global").weight.equal(getattr(layer, name).weight)
        for layer in model.modules()
        if hasattr(layer, "query_global")
        for name in ("query", "key", "value")
    )


def pretrain(
    run: ParagraphRun, folder: Path, *, on_log: Callable[[Mapping[str, Any]], None] | None = None
) -> TrainingResult:
    """Train and write the best model into `folder/model`, its head beside it; checkpoints and history go to
    `folder/training`.

    No token is global in this task. Global projections that were copies of the local ones at the start are so
    at the end; a checkpoint's own are kept as they were.

    Raises:
        Stopped: it was asked to stop; the same call goes on from there.
    """
    arguments, job = {"settings": run.settings, "cache_folder": run.cache_folder}, run.job
    result = train_in_processes(
        Recipe(function=prepare_job, arguments=arguments),
        job=job,
        processes=Processes.of(run.settings.training.parallel, config=job.config),
        folder=folder / TRAINING_FOLDER,
        on_log=on_log,
    )
    if result.interrupted:
        raise Stopped(f"stopped after step {result.steps}; run again to go on")
    if not run.own_globals:
        copy_local_to_global(run.model)
    if is_first():
        save_paragraph_model(run.model, run.tokenizer, folder / MODEL_FOLDER)
    return result
