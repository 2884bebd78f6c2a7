"""Questions that need two documents (CDLM section 3.4 and C.3, Table 5): notebook 06.

Each encoder is trained with each seed; of its passes over the training questions the one with the lowest loss
on dev is kept. Test questions are answered once by each. All that is finished stays in the run folder: a
stopped run goes on where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.multihop_questions import MultihopQuestion
from cdlm_lab.examples.encode_question import EncodedQuestions
from cdlm_lab.examples.question_examples import QuestionCollate, QuestionExamples
from cdlm_lab.examples.question_sequence import question_marks_of
from cdlm_lab.examples.special_tokens import from_tokenizer
from cdlm_lab.experiments.fine_tuning import config_of_passes, fine_tune, in_training_order
from cdlm_lab.experiments.parallel import Recipe, TrainingJob
from cdlm_lab.experiments.question_corpora import QuestionCorpus, Questions, read_questions
from cdlm_lab.experiments.question_predictions import QuestionPredictions, predict_answers
from cdlm_lab.experiments.variants import VARIANTS, checkpoint_of, reset_globals
from cdlm_lab.models.answer_decoding import SUPPORT
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.precision import Precision
from cdlm_lab.models.question_answering import QuestionAnswerer, load_question_answerer
from cdlm_lab.parameters import ParameterError, check_choice, check_least, check_types, parameters_of
from cdlm_lab.training.config import TrainingConfig, Workers
from cdlm_lab.training.processes import Processes
from cdlm_lab.training.saved_model import MODEL_FOLDER

SPLITS = ("dev", "test")  # that are answered


@dataclass(frozen=True, kw_only=True)
class AnswererSettings:
    """What answers, and how it is trained; the paper's values are 4,096 tokens, window 512, 5 passes, batches
    of 32, learning rate 1e-4 and 100 steps of warm-up.

    Attributes:
        variants: encoders, names of CDLM's ablation separated by spaces.
        encoders: where they are: `storyworld`, or a folder with a folder for each, such as `cdlm` or
            `cdlm/model`.
        reset_globals: Longformer and Local CDLM start with their local projections as the global ones, as in
            the paper; False = with those of the checkpoint. (Of the models of notebook 01 they are the same.)
        max_length: of a question with its paragraphs in tokens; what is longer loses the ends of its
            paragraphs (see examples/question_sequence.py), and is reported.
        window: of local attention.
        seeds: how many times each is trained, with seeds from 0.
        attention_dropout: of attention weights; `checkpoint` = as the checkpoint says. That of hidden states
            is the checkpoint's.
        precision: of the forward pass in training and in answering, as of `TrainingConfig`.
        support: which sentences are predicted as support: `threshold` or `two_paragraphs`.
        most_answer_tokens: of an answer.
        parallel: processes that train, as of `Processes.of`; "" = one. Questions are answered by one.
        workers: as of `TrainingConfig`.
    """

    variants: str = "longformer cdlm"
    encoders: str = "storyworld"
    reset_globals: bool = True
    max_length: int = 512
    window: int = 32
    seeds: int = 1
    epochs: int = 2
    batch_size: int = 16
    micro_batch_size: int = 16
    learning_rate: float = 0.001
    warmup_steps: int = 20
    attention_dropout: AttentionDropout = 0.0
    precision: Precision = "auto"
    support: str = "threshold"
    most_answer_tokens: int = 30
    parallel: str = ""
    workers: Workers = "auto"

    def __post_init__(self) -> None:
        check_types(self)
        names = self.variants.split()
        if not names or (unknown := [name for name in names if name not in VARIANTS]):
            told = repr(unknown[0]) if names else "nothing"
            raise ParameterError(f"variants names {told}; choose among {', '.join(VARIANTS)}")
        check_choice(self, SUPPORT, "support")
        check_least(self, 1, "seeds", "epochs", "most_answer_tokens")
        Processes.of(self.parallel)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the encoders, in the paper's order."""
        return tuple(name for name in VARIANTS if name in self.variants.split())

    def shown(self, name: str) -> str:
        """The encoder of that name; "" = the last one. Raises ParameterError for one that is not trained."""
        if name and name not in self.names:
            raise ParameterError(f"shown_model is {name!r}; choose one of {', '.join(self.names)}")
        return name or self.names[-1]


@dataclass(frozen=True, kw_only=True)
class MultihopSettings:
    """All parameters of a run but its folder."""

    corpus: QuestionCorpus = field(default_factory=QuestionCorpus)
    answerer: AnswererSettings = field(default_factory=AnswererSettings)

    @property
    def parameters(self) -> dict[str, Any]:
        """By name, those of both parts."""
        return parameters_of(self)


# The parameters of notebook 06.
PARAMETERS = (
    "run_folder",
    *MultihopSettings().parameters,
    "shown_model",
    "own_question",
    "own_documents",
)


@dataclass(frozen=True, kw_only=True)
class Answerer:
    """A model and how it reads questions."""

    model: QuestionAnswerer
    tokenizer: PreTrainedTokenizerBase
    max_length: int

    def examples(self, questions: Sequence[MultihopQuestion], *, labelled: bool = True) -> QuestionExamples:
        """What `collate` makes batches of."""
        return QuestionExamples(
            questions=questions,
            encoded=EncodedQuestions(questions, self.tokenizer),
            special=from_tokenizer(self.tokenizer),
            marks=question_marks_of(self.tokenizer),
            max_length=self.max_length,
            labelled=labelled,
        )

    @property
    def collate(self) -> QuestionCollate:
        """From examples to batches."""
        return QuestionCollate(pad_token_id=self.tokenizer.pad_token_id)


@dataclass(frozen=True, kw_only=True)
class MultihopRun:
    """The questions of a run and the folder that it works in."""

    settings: MultihopSettings
    questions: Questions
    folder: Path

    @property
    def trainings(self) -> list[tuple[str, int]]:
        """Each encoder with each seed."""
        answerer = self.settings.answerer
        return [(name, seed) for name in answerer.names for seed in range(answerer.seeds)]

    def folder_of(self, name: str, seed: int) -> Path:
        """Where an encoder trained with a seed is kept."""
        return self.folder / "systems" / f"{name}-{seed}"

    def predictions_of(self, name: str, seed: int, split: str) -> Path:
        """The file of its answers."""
        return self.folder_of(name, seed) / f"{split}.jsonl"

    def answerer(self, name: str, seed: int, *, trained: bool) -> Answerer:
        """A new one on an encoder, or the one that was trained. Errors as of its loader."""
        settings = self.settings.answerer
        source = self.folder_of(name, seed) / MODEL_FOLDER if trained else self.encoder_of[name]
        model, tokenizer = load_question_answerer(
            source,
            max_length=settings.max_length,
            window=settings.window,
            attention_dropout=settings.attention_dropout,
            seed=seed,
        )
        if settings.reset_globals and not trained:
            reset_globals(model, name)
        return Answerer(model=model, tokenizer=tokenizer, max_length=settings.max_length)

    @cached_property
    def untrained(self) -> Answerer:
        """A new one on the first encoder, loaded once for all that looks before the start; not to be trained.
        Errors as of `answerer`."""
        return self.answerer(self.settings.answerer.names[0], 0, trained=False)

    @cached_property
    def encoder_of(self) -> dict[str, str]:
        """Name of an encoder -> where it is. Raises ParameterError for one that is not there."""
        answerer = self.settings.answerer
        return {name: checkpoint_of(answerer.encoders, name) for name in answerer.names}

    @property
    def config(self) -> TrainingConfig:
        """Of seed 0. Raises ParameterError for values that cannot be."""
        return self.config_of(0)

    def config_of(self, seed: int) -> TrainingConfig:
        """How each encoder is trained; weight decay and epsilon as in the released code, where the paper is
        silent."""
        settings = self.settings.answerer
        config = config_of_passes(
            items=len(self.questions["train"]),
            epochs=settings.epochs,
            batch_size=settings.batch_size,
            micro_batch_size=settings.micro_batch_size,
            learning_rate=settings.learning_rate,
            warmup_steps=settings.warmup_steps,
            precision=settings.precision,
            parallel=settings.parallel,
            workers=settings.workers,
            seed=seed,
        )
        return replace(config, weight_decay=0.01, adam_epsilon=1e-6)


def prepare_multihop(settings: MultihopSettings, folder: Path) -> MultihopRun:
    """Read the questions and look whether all is there; nothing is trained.

    Raises ValueError with one clear line for whatever does not fit.
    """
    run = MultihopRun(settings=settings, questions=read_questions(settings.corpus), folder=folder)
    _ = run.config, run.encoder_of
    return run


def answer_questions(run: MultihopRun) -> dict[tuple[str, int], dict[str, QuestionPredictions]]:
    """(encoder, seed) -> split -> answers; trained where that was not done yet.

    Raises Stopped when it was asked to stop; the same call goes on from there.
    """
    return {
        (name, seed): {split: _answers(run, name, seed, split) for split in SPLITS}
        for name, seed in run.trainings
    }


def _answers(run: MultihopRun, name: str, seed: int, split: str) -> QuestionPredictions:
    file = run.predictions_of(name, seed, split)
    if not file.is_file():
        if not (run.folder_of(name, seed) / MODEL_FOLDER).is_dir():
            _train(run, name, seed)
        answerer = run.answerer(name, seed, trained=True)
        found = predict_answers(
            answerer.model,
            answerer.examples(run.questions[split], labelled=False),
            answerer.collate,
            support=run.settings.answerer.support,
            most_tokens=run.settings.answerer.most_answer_tokens,
            batch_size=run.settings.answerer.micro_batch_size,
            precision=run.settings.answerer.precision,
            name=f"{name}, seed {seed}: {split}",
        )
        found.save(file)
    return QuestionPredictions.load(file, questions=run.questions[split])


def _train(run: MultihopRun, name: str, seed: int) -> None:
    arguments = {"settings": run.settings, "folder": str(run.folder), "name": name, "seed": seed}
    fine_tune(
        _job(run, name, seed),
        folder=run.folder_of(name, seed),
        name=f"{name}, seed {seed}",
        parallel=run.settings.answerer.parallel,
        recipe=Recipe(function=prepare_job, arguments=arguments),
    )


def prepare_job(*, settings: MultihopSettings, folder: str, name: str, seed: int) -> TrainingJob:
    """That of an encoder and a seed, for each of several processes. Errors as of `prepare_multihop`."""
    return _job(prepare_multihop(settings, Path(folder)), name, seed)


def _job(run: MultihopRun, name: str, seed: int) -> TrainingJob:
    answerer, config = run.answerer(name, seed, trained=False), run.config_of(seed)
    return TrainingJob(
        model=answerer.model,
        tokenizer=answerer.tokenizer,
        train_examples=answerer.examples(list(in_training_order(run.questions["train"], config))),
        validation_examples=answerer.examples(run.questions["dev"]),
        collate=answerer.collate,
        config=config,
    )
