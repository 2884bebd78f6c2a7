"""Pretraining one model variant (CDLM section 2, appendix B): notebook 01.

`train` keeps the checkpoint with the lowest validation perplexity and writes the model into the run folder.
Calling it again continues a run that was stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.clusters import open_corpus
from cdlm_lab.data.files import named
from cdlm_lab.data.records import Cluster
from cdlm_lab.data.splits import split_named
from cdlm_lab.encoders import estimate
from cdlm_lab.encoders.conversion import copy_global_to_local, copy_local_to_global, reset_globals
from cdlm_lab.encoders.encoder import FROM_SCRATCH, load_language_model
from cdlm_lab.encoders.language_model import CrossDocumentLM
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.encoders.variants import VARIANTS
from cdlm_lab.examples.collate import Collate
from cdlm_lab.examples.cross_document import CrossDocumentExamples
from cdlm_lab.examples.packing import LossOfText
from cdlm_lab.parameters import ParameterError, parameters_of, settings
from cdlm_lab.runs.corpora import (
    CACHE_FOLDER,
    CorpusSettings,
    TokenisedSplit,
    examples_of,
    print_passed_over,
    tokenised_split,
)
from cdlm_lab.runs.evaluation import ItemTable, score_rows
from cdlm_lab.runs.identity import earlier_pretrainings
from cdlm_lab.runs.runs import ModelRun, Scores, StepSettings, once, report
from cdlm_lab.runs.runs import train_model as train
from cdlm_lab.runs.scores import Score
from cdlm_lab.tasks.pretraining import perplexity
from cdlm_lab.training.fine_tuning import Recipe, TrainingJob
from cdlm_lab.training.processes import processes_of
from cdlm_lab.training.trainer import TrainingResult

__all__ = ["Settings", "evaluate", "prepare", "report", "train"]
EXAMPLES_LOOKED_AT = 200  # gives the share of text lost and, a tenth of it, the mean number of global tokens


@settings
class Settings(CorpusSettings, StepSettings):
    """The parameters of notebook 01, whose comments say what they mean."""

    run_folder: str = "runs/pretraining"
    variant: Literal["longformer", "local-cdlm", "rand-cdlm", "prefix-cdlm", "cdlm"] = "cdlm"
    model: str = "tiny"
    extend_positions: bool = False  # True: a base that goes on with longer texts
    window: int = 32
    attention: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        base = self.model in (FROM_SCRATCH, "minilm") or self.extend_positions
        if self.variant == "longformer" and not base:
            raise ParameterError(
                f"variant is 'longformer', which is the base itself: {self.model!r} has a language-model "
                "head and needs no training; choose another variant, or extend_positions for longer texts"
            )


@dataclass(frozen=True, kw_only=True)
class PretrainingRun(ModelRun):
    """A pretraining run: the model and its tokenised examples."""

    NAME: ClassVar[str] = "pretraining"

    settings: Settings
    model: CrossDocumentLM
    train_split: TokenisedSplit
    validation_split: TokenisedSplit
    train_examples: CrossDocumentExamples
    validation_examples: CrossDocumentExamples
    cache: str | Path  # the folder of tokenised corpora

    @classmethod
    def read(cls, settings: Settings, *, cache: str | Path = CACHE_FOLDER) -> PretrainingRun:
        """Load the model, tokenise the corpus (once, into the folder `cache`), and build the examples."""
        training, (model, tokenizer) = settings.training, cls.load(settings)
        form = {"tokenizer": tokenizer, "cache": cache, "workers": training.workers}
        train_split = tokenised_split(settings, "train", **form)
        print_passed_over(settings.corpus, train_split.passed_over)
        validation_split = tokenised_split(settings, "validation", **form)
        parts = {"variant": VARIANTS[settings.variant], "tokenizer": tokenizer}
        more = {"size": training.steps * training.batch_size, "earlier": earlier_pretrainings(settings.model)}
        return cls(
            settings=settings,
            model=model,
            tokenizer=tokenizer,
            train_split=train_split,
            validation_split=validation_split,
            train_examples=examples_of(train_split, "train", settings, **more, **parts),
            validation_examples=examples_of(validation_split, "validation", settings, **parts),
            cache=cache,
        )

    def records(self, split: str) -> Iterator[Cluster]:
        """The clusters of a split, read again."""
        name = split_named(split)
        return open_corpus(self.settings.corpus, split=name, size=self.settings.size(name), seed=0)

    @staticmethod
    def load(settings: Settings) -> tuple[CrossDocumentLM, PreTrainedTokenizerBase]:
        """The model and its tokenizer. Global projections start as copies of the local ones in a new model
        and, as in the paper, wherever no token is global; others are those of the checkpoint."""
        names = ("max_length", "window", "extend_positions", "attention", "seed")
        dropouts = ("dropout", "attention_dropout")
        model, tokenizer = load_language_model(settings.model, **parameters_of(settings, *names, *dropouts))
        if settings.projections == "global":
            copy_global_to_local(model)
        elif settings.model == FROM_SCRATCH:
            copy_local_to_global(model)
        reset_globals(model, settings.variant)
        return model, tokenizer

    @property
    def label(self) -> str:
        """The name of the variant, beside the progress bar."""
        return self.settings.variant

    def job(self) -> TrainingJob:
        """The training job: the model and its examples."""
        return TrainingJob(
            model=self.model,
            tokenizer=self.tokenizer,
            train_examples=self.train_examples,
            validation_examples=self.validation_examples,
            collate=Collate(
                pad_token_id=self.tokenizer.pad_token_id, cross_document=False, window=self.settings.window
            ),
            config=self.settings.training,
        )

    def recipe(self) -> Recipe:
        """The recipe, with the folder of tokenised corpora added."""
        return super().recipe(cache=str(self.cache))

    @property
    def data(self) -> dict[str, Any]:
        """Facts about the corpus, the model and the training setup, stored in the report."""
        counts = self.train_split.counts
        return {
            "corpus": self.settings.corpus,
            "train_checksum": self.train_split.checksum,
            "validation_checksum": self.validation_split.checksum,
            "train_clusters": counts.clusters_kept,
            "train_clusters_dropped": counts.clusters_dropped,
            "files_passed_over": named(self.train_split.passed_over),
            "share_of_text_lost": loss_of_text(self).share_lost,
            "weights": self.model.num_parameters(),
            "processes": processes_of(self.settings.parallel),
            "precision": precision_in_words(self.settings.precision),
        }


def prepare(settings: Settings, *, cache: str | Path = CACHE_FOLDER) -> PretrainingRun:
    """Claim the run folder, load the model, tokenise the corpus and build the examples. Raises ValueError
    with a one-line message if anything does not fit."""
    processes_of(settings.parallel, config=settings.training)
    return PretrainingRun.open(settings, cache=cache)


@once
def evaluate(prepared: PretrainingRun, result: TrainingResult) -> Scores:
    """Validation perplexity of the written model, training time and tokens, and the training history."""
    losses = perplexity.cluster_losses(
        prepared.model,
        prepared.validation_examples,
        batch_size=prepared.settings.micro_batch_size,
        precision=prepared.settings.precision,
        name="validation",
    )
    items = perplexity.items_of_losses({prepared.settings.variant: losses})
    rows = score_rows(ItemTable(items), perplexity.MEASURES)
    rows.append(Score(metric="training_seconds", value=result.seconds))
    rows.append(Score(metric="training_tokens", value=result.tokens))
    return Scores(rows=rows, tables={"history": [dict(record) for record in result.history]}, items=items)


def loss_of_text(prepared: PretrainingRun) -> LossOfText:
    """How much text packing cuts off, and why, over the first training examples."""
    examples = prepared.train_examples
    looked_at = range(min(EXAMPLES_LOOKED_AT, len(examples)))
    return LossOfText.over(examples.describe(index).packed for index in looked_at)


def cost_of_step(prepared: PretrainingRun) -> tuple[float, float]:
    """Estimated (peak memory in bytes, seconds) of one optimizer step, from the first examples' mean length
    and mean number of global tokens."""
    examples = prepared.train_examples
    seen = [examples[index] for index in range(min(EXAMPLES_LOOKED_AT // 10, len(examples)))]
    training, config = prepared.settings.training, prepared.model.config
    cost = estimate.estimate(
        config,
        length=round(np.mean([len(example["input_ids"]) for example in seen])),
        batch=training.micro_batch_size,
        global_tokens=float(np.mean([example["global_attention_mask"].sum() for example in seen])),
        bytes_per_number=estimate.bytes_per_number(training.precision),
        gradient_checkpointing=training.gradient_checkpointing,
    )
    rate = estimate.measured_rate(training.precision)
    return cost.peak_bytes, training.batch_size * estimate.training_seconds(cost, config, rate=rate)
