"""What the systems of the MSPP paper have in common, which read several sentences at once: notebooks 09 and
10 (Di Liello et al. 2022)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from cdlm_lab.examples.candidates import JointSequence
from cdlm_lab.examples.tokens import from_tokenizer, token_texts
from cdlm_lab.models.encoder import AttentionDropout
from cdlm_lab.models.joint import paragraph_head
from cdlm_lab.models.precision import Precision
from cdlm_lab.parameters import ParameterError, settings
from cdlm_lab.report import ASIDE
from cdlm_lab.training.checkpoints import MODEL_FOLDER
from cdlm_lab.training.config import TrainingConfig, Workers
from cdlm_lab.training.fine_tuning import config_of_passes
from cdlm_lab.training.processes import Processes
from cdlm_lab.widgets.packed import MarkedTokens, tokens_html


@settings
class JointSettings:
    """What the systems are made of and how each is trained; in brackets the paper's values, for WikiQA and
    TREC-QA and for FEVER where they differ.
    """

    systems: str = ""  # their names, separated by spaces
    # Of the systems without MSPP: a folder, a hub name, `minilm`, or one of the project's.
    encoder: str = "storyworld/longformer"
    # A run folder of notebook 08, or a folder that holds several, of which the head tells the one for a
    # system; systems without MSPP need none.
    mspp: str = ""
    # L, tokens of a sentence in a joint sequence, the one in front included [64].
    sentence_length: int = Field(default=32, ge=2)
    # Of joint sequences, `strided` (the paper) or `compact` (its released code).
    positions: Literal["strided", "compact"] = "strided"
    # Of joint heads, `linear` (the paper) or `tanh` (its released code).
    head_layers: Literal["linear", "tanh"] = "linear"
    # How many times each system is trained, with seeds from 0 [5; not reported].
    seeds: int = Field(default=1, ge=1)
    epochs: int = Field(default=2, ge=1)  # over what is trained on [40; not reported]
    # Epochs without a better one on dev after which training ends; 0 = never [not reported].
    patience: int = Field(default=0, ge=0)
    # Examples of one update [32; 64]; an example is what a system reads at once.
    batch_size: int = Field(default=16, ge=1)
    micro_batch_size: int = Field(default=16, ge=1)  # of these held at once
    learning_rate: float = 0.001  # the largest [2e-6; 1e-5]; it falls linearly
    warmup_steps: int = Field(default=20, ge=0)  # updates until it is reached [1000]; at most half of them
    dropout: float | None = None  # of hidden states and head; None = as the checkpoint says
    attention_dropout: AttentionDropout = 0.0  # of attention weights; `checkpoint` = as the checkpoint says
    precision: Precision = "auto"  # of the forward pass in training and on held-out data
    parallel: str = ""  # processes that train, as "ddp 4"; "" = one. Held-out data are read by one.
    workers: Workers = "auto"  # processes that make examples

    def __post_init__(self) -> None:
        Processes.of(self.parallel)

    def config(self, *, items: int, seed: int) -> TrainingConfig:
        """With one seed, on so many examples. Raises ParameterError for values that cannot be."""
        names = ("epochs", "batch_size", "micro_batch_size", "learning_rate", "warmup_steps", "patience")
        given = {name: getattr(self, name) for name in (*names, "precision", "parallel", "workers")}
        return config_of_passes(items=items, seed=seed, **given)

    def checkpoint(self, pretrained: str) -> str:
        """What a system starts from; `pretrained`: the head of its pre-training, `ie` or `ae`, "" = none.
        Raises ParameterError: there is no such model in `mspp`."""
        return paragraph_checkpoint(self.mspp, head=pretrained) if pretrained else self.encoder

    @property
    def loading(self) -> dict[str, Any]:
        """How models are loaded."""
        return {"dropout": self.dropout, "attention_dropout": self.attention_dropout}

    @property
    def predicting(self) -> dict[str, Any]:
        """How `outputs_by_length` reads."""
        return {"batch_size": self.micro_batch_size, "precision": self.precision}


def paragraph_checkpoint(given: str, *, head: str) -> str:
    """The model that was pretrained with a head.

    Args:
        given: the parameter `mspp`: a run folder of notebook 08, a folder with its model, or a folder that
            holds several run folders, of which the head tells the one (those put aside by a grid do not
            count).
        head: `ie` or `ae`.

    Raises:
        ParameterError: it is missing, not given, was pretrained with the other head, or there are several. A
            model without a head of pre-training, as another program may have left, is taken at its word if it
            alone is named.
    """
    kind = f"{head}_k"
    remedy = f"give a run folder of notebook 08 that was pretrained with {kind}, or leave out its systems"
    if not given:
        raise ParameterError(f'mspp is ""; {remedy}')
    if alone := next(filter(_is_model, (Path(given) / MODEL_FOLDER, Path(given))), None):
        pretrained = _kind(alone)
        if pretrained not in (kind, None):
            raise ParameterError(f"mspp is {given!r}, which was pretrained with {pretrained}; {remedy}")
        return str(alone)
    folders = (folder for folder in sorted(Path(given).glob("*/")) if ASIDE not in folder.name)
    models = (folder / MODEL_FOLDER for folder in folders)
    fitting = [model for model in models if _is_model(model) and _kind(model) == kind]
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


def sentence_rows(
    tokenizer: PreTrainedTokenizerBase, sequence: JointSequence
) -> list[tuple[int, str, str, str]]:
    """Of each sentence in a joint sequence its number, and as HTML its tokens, how many are read and cut, and
    the positions of the first and the last."""
    texts, starts_word = token_texts(tokenizer, sequence.input_ids)
    nothing = np.zeros(len(texts), dtype=bool)
    marked = MarkedTokens(
        tokens=texts,
        starts_word=starts_word,
        masked=nothing,
        replacement=[None] * len(texts),
        mask_token="",
        global_=nothing,
        special=from_tokenizer(tokenizer).is_special(sequence.input_ids),
        cross_document=nothing,
    )
    rows = []
    for number in np.flatnonzero(sequence.starts >= 0).tolist():
        read = np.flatnonzero(sequence.sentence == number).tolist()
        cut = f", {sequence.cut[number]} cut" if sequence.cut[number] else ""
        positions = f"{sequence.position_ids[read[0]]}&ndash;{sequence.position_ids[read[-1]]}"
        rows.append((number, tokens_html(marked, read), f"{len(read)}{cut}", positions))
    return rows
