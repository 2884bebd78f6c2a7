"""What systems share that read several sentences at once (Di Liello et al. 2022): notebooks 09 and 10."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field
from torch import nn
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.files import entries
from cdlm_lab.data.text_profile import Record
from cdlm_lab.encoders.checkpoint import named_faults
from cdlm_lab.encoders.model_folder import CONFIG_FILE, MODEL_FOLDER
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.parameters import RUN_FILE, ParameterError, settings
from cdlm_lab.progress import Share
from cdlm_lab.runs.report import ASIDE
from cdlm_lab.runs.runs import EpochSettings, SystemRun, Training
from cdlm_lab.tasks.joint.examples import EncodedTexts, JointExamples, JointLayout
from cdlm_lab.tasks.joint.model import JointModel, paragraph_head
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.fine_tuning import TrainingJob
from cdlm_lab.training.trained import folder_of_run, trained_parameters


@settings
class JointSettings(EpochSettings):
    """Parameters shared by notebooks 09 and 10. The paper's values for WikiQA and TREC-QA (FEVER): 64 tokens;
    5 seeds (not reported); 40 epochs (not reported); batches of 32 (64); learning rate 2e-6 (1e-5); 1000
    warm-up steps."""

    systems: str = ""
    model: str = "storyworld/longformer"  # for the systems without MSPP
    # A run of notebook 08, by its folder or its name if it ships with the project, or a folder of several, of
    # which a system takes the one with its head; systems without MSPP need none.
    mspp: str = ""
    sentence_length: int = Field(default=32, ge=2)  # L, the token in front included
    head_layers: Literal["linear", "tanh"] = "linear"  # linear: the paper's; tanh: its released code's
    patience: int = Field(default=0, ge=0)  # 0 = no early stopping
    dropout: float | None = None  # of hidden states and head; None = the checkpoint's value

    def config(self, *, items: int, seed: int) -> TrainingConfig:
        """The config of a training on `items` examples with one seed."""
        return super().config(items=items, seed=seed, patience=self.patience)

    def checkpoint(self, pretrained: str) -> str:
        """The checkpoint to start from; `pretrained`: the head of its pretraining, `ie`, `ae`, "" = none."""
        return paragraph_checkpoint(self.mspp, head=pretrained) if pretrained else self.model

    @property
    def loading(self) -> dict[str, Any]:
        """Keyword arguments for loading models."""
        return {"dropout": self.dropout, "attention_dropout": self.attention_dropout}

    @property
    def predicting(self) -> dict[str, Any]:
        """Keyword arguments for prediction with `outputs_by_length`."""
        return {"batch_size": self.micro_batch_size, "precision": self.precision}


@dataclass(frozen=True, kw_only=True)
class JointRun(SystemRun):
    """A run whose systems keep the epoch with the highest score on dev. An experiment also defines

    of_split(name)                    returns questions or claims
    reader(system, seed, trained)     returns a new or the trained model, with its tokenizer
    config(system, seed)              returns the training config
    judged(reader, examples, share)   returns the score on dev; higher is better
    """

    @classmethod
    def open(cls, settings: JointSettings) -> Self:
        """Check that every checkpoint is there, read the data, and claim the folder."""
        if not settings.trained:
            for system in settings.chosen:  # before reading the data, which may take long
                settings.checkpoint(system.pretrained)
        return super().open(settings)

    def check(self) -> None:
        """Raise an error if a system cannot be built and trained."""
        super().check()
        for system in self.systems:
            self.config(system)
            self.shown_reader(system)  # raises if the encoder has too few positions

    def begins_with(self, training: Training) -> str:
        """The encoder, or the run of notebook 08 with the same head."""
        return self.settings.checkpoint(training.system.pretrained)

    def records(self, split: str) -> Sequence[Record]:
        """The questions or claims of a split."""
        return self.of_split(split)

    def job(self, training: Training) -> TrainingJob:
        """A new model on train, selected by its score on dev."""
        reader, config = self.reader(*training), self.config(*training)
        dev = reader.examples(self.of_split("dev"))

        def judge(model: nn.Module, share: Share) -> float:
            return self.judged(replace(reader, model=model), dev, share)

        return TrainingJob(
            model=reader.model,
            tokenizer=reader.tokenizer,
            train_examples=reader.examples(self.of_split("train"), config=config),
            validation_examples=dev,
            collate=reader.collate,
            config=config,
            judge=judge,
        )

    def shown_reader(self, system: Any) -> Any:
        """The model for views before training: a new one, or the opened one."""
        return self.reader(system, trained=bool(self.settings.trained))

    def can_begin(self, training: Training) -> bool:
        """False for an MSPP system without `mspp` set, which a run with opened models does not need."""
        return bool(self.settings.mspp) or not training.system.pretrained

    def load(self, training: Training) -> Any:
        """The trained model with its tokenizer."""
        return self.reader(*training, trained=True)


def labels_of_head(folder: Path) -> int:
    """The number of labels of a trained model. Raises CheckpointError if it is not a joint model."""
    with named_faults(str(folder), CONFIG_FILE):
        values = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        return int(values[JointModel.head_entry]["labels"])


def examples_of(
    records: Sequence[Record],
    tokenizer: PreTrainedTokenizerBase,
    layout: JointLayout,
    config: TrainingConfig | None,
) -> JointExamples:
    """Examples of questions or claims: with a training `config`, shuffled anew in each epoch; otherwise each
    once, in a fixed order that is independent of the labels."""
    drawn: dict[str, Any] = {"shuffle": False, "size": None, "seed": 0}
    if config:
        drawn = {"shuffle": True, "size": config.steps * config.batch_size, "seed": config.seed}
    form = {"layout": layout, "special": from_tokenizer(tokenizer)}
    return JointExamples(records=records, encoded=EncodedTexts(records, tokenizer), **form, **drawn)


def paragraph_checkpoint(given: str, *, head: str) -> str:
    """The model that was pretrained with a head, `ie` or `ae`, at the place that the parameter `mspp` names:
    a run folder of notebook 08, its model folder, a run that ships with the project, or a folder with several
    runs, of which the one with this head is taken (not runs that a grid put aside, or that another run
    continues from). A single named model is also accepted if it has no head.

    Raises ParameterError if it is not given, missing, pretrained with the other head, or ambiguous.
    """
    kind = f"{head}_k"
    remedy = f"give a run folder of notebook 08 that was pretrained with {kind}, or leave out its systems"
    if not given:
        raise ParameterError(f'mspp is ""; {remedy}')
    place = folder_of_run(given)
    if alone := next(filter(_is_model, (place / MODEL_FOLDER, place)), None):
        pretrained = _kind(alone)
        if pretrained not in (kind, None):
            raise ParameterError(f"mspp is {given!r}, which was pretrained with {pretrained}; {remedy}")
        return str(alone)
    inside = entries(place) if place.is_dir() else ()
    folders = (folder for folder in inside if folder.is_dir() and ASIDE not in folder.name)
    models = (folder / MODEL_FOLDER for folder in folders)
    fitting = [model for model in models if _is_model(model) and _kind(model) == kind]
    runs = [str(model.parent) for model in fitting if (model.parent / RUN_FILE).is_file()]
    begun_with = [Path(trained_parameters(run).get("model", "")).resolve() for run in runs]
    fitting = [model for model in fitting if model.resolve() not in begun_with]
    if not fitting:
        raise ParameterError(f"mspp is {given!r}, where there is no model pretrained with {kind}; {remedy}")
    if len(fitting) > 1:
        names = " and ".join(model.parent.name for model in fitting[:2])
        raise ParameterError(f"mspp is {given!r}, where {names} were pretrained with {kind}; keep one there")
    return str(fitting[0])


def _is_model(folder: Path) -> bool:
    return (folder / "config.json").is_file()


def _kind(folder: Path) -> str | None:
    pretrained = paragraph_head(str(folder))
    return pretrained[0].kind if pretrained else None
