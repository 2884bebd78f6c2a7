"""Models that are a Longformer encoder with a head of their own: on top of any encoder, or trained before."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

from transformers import PreTrainedTokenizerFast
from transformers.models.longformer.modeling_longformer import LongformerPreTrainedModel

from cdlm_lab.models.checkpoint import is_trained, own_randomness
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.encoder import load_encoder, load_trained

Model = TypeVar("Model", bound=LongformerPreTrainedModel)


def load_encoder_with_head(
    model_class: type[Model],
    name_or_path: str | os.PathLike[str],
    *,
    max_length: int,
    window: int,
    attention: str = "auto",
    dropout: float | None = None,
    attention_dropout: AttentionDropout = 0.0,
    seed: int = 0,
    marks: Sequence[str] = (),
) -> tuple[Model, PreTrainedTokenizerFast]:
    """A model of a class that keeps its encoder in `longformer`, and its tokenizer.

    Args:
        name_or_path: a folder that such a model was saved in, trained, or an encoder as of `load_encoder`.
        seed: of the weights of the head and of the embeddings of the marks.
        marks: special tokens that the tokenizer gets where it has them not.

    Other arguments and errors as of `load_encoder`.
    """
    name = os.fspath(name_or_path)
    form = {
        "max_length": max_length,
        "window": window,
        "attention": attention,
        "dropout": dropout,
        "attention_dropout": attention_dropout,
    }
    if is_trained(name, model_class):
        return load_trained(model_class, name, **form)
    encoder, tokenizer = load_encoder(name, **form, seed=seed)
    tokenizer.add_special_tokens({"extra_special_tokens": list(marks)}, replace_extra_special_tokens=False)
    with own_randomness(seed):
        if len(tokenizer) > encoder.get_input_embeddings().num_embeddings:
            encoder.resize_token_embeddings(len(tokenizer), mean_resizing=False)
        model = model_class(encoder.config)
    model.longformer = encoder
    return model.eval(), tokenizer
