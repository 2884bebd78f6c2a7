"""Dropout of hidden states and of attention weights are set apart, in every model that is trained."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from cdlm_lab.models.coreference import load_pair_scorer
from cdlm_lab.models.encoder import load_encoder, load_language_model
from cdlm_lab.models.joint import (
    JointHead,
    PooledHead,
    load_joint_model,
    load_paragraph_model,
    load_pooled_pairs,
)
from cdlm_lab.models.matching import load_finetuned_matcher, load_pair_classifier
from cdlm_lab.models.question_answering import load_question_answerer
from cdlm_lab.models.tagging import TaggerHead, load_dynamic_tagger

LENGTHS = {"max_length": 32, "window": 8}
LAST = {"head": JointHead(kind="ie_1", sentences=3, length=6)}
LOADERS: dict[str, tuple[Callable, dict[str, Any]]] = {
    "language model": (load_language_model, LENGTHS),
    "its own layer": (load_language_model, LENGTHS | {"attention": "huggingface"}),
    "encoder": (load_encoder, LENGTHS),
    "pair scorer": (load_pair_scorer, LENGTHS),
    "pair classifier": (load_pair_classifier, LENGTHS),
    "question answerer": (load_question_answerer, LENGTHS),
    "tagger": (load_dynamic_tagger, LENGTHS | {"head": TaggerHead(tags=("O", "B-a", "I-a"), hidden_size=4)}),
    "joint model": (load_joint_model, LAST),
    "paragraph model": (load_paragraph_model, {"head": JointHead(kind="ie_k", sentences=3, length=6)}),
    "pooled pairs": (load_pooled_pairs, {"head": PooledHead(pooling="max", labels=3, length=6)}),
    "matcher": (
        load_finetuned_matcher,
        {"matcher": {"encoder": "average", "cda": "none", "hidden_size": 4}, "max_tokens": 16},
    ),
}


@pytest.fixture(scope="module")
def shaky(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Longformer with 0.1 of both, as released ones have."""
    folder = tmp_path_factory.mktemp("shaky")
    model, tokenizer = load_language_model("tiny", **LENGTHS, dropout=0.1, attention_dropout=0.1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def dropouts(model: PreTrainedModel) -> tuple[set[float], set[float]]:
    """That of hidden states in the layers of the encoder, and that of attention weights."""
    layers = model.base_model.encoder.layer
    hidden = {module.p for module in layers.modules() if isinstance(module, torch.nn.Dropout)}
    return hidden, {layer.attention.self.dropout for layer in layers}


@pytest.mark.parametrize("name", LOADERS)
def test_attention_has_none_unless_it_is_asked_for(name: str, shaky: Path) -> None:
    load, form = LOADERS[name]
    assert dropouts(load(shaky, **form)[0]) == ({0.1}, {0.0})
    assert dropouts(load(shaky, **form, attention_dropout=0.3)[0]) == ({0.1}, {0.3})
    model, _ = load(shaky, **form, attention_dropout="checkpoint")
    assert dropouts(model) == ({0.1}, {0.1})
    assert model.config.attention_probs_dropout_prob == 0.1


@pytest.mark.parametrize("name", [name for name in LOADERS if name != "matcher"])
def test_each_is_set_for_itself(name: str, shaky: Path) -> None:
    load, form = LOADERS[name]
    assert dropouts(load(shaky, **form, dropout=0.2)[0]) == ({0.2}, {0.0})
    assert dropouts(load(shaky, **form, dropout=0.0, attention_dropout="checkpoint")[0]) == ({0.0}, {0.1})


def test_a_trained_model_is_read_with_either(shaky: Path, tmp_path: Path) -> None:
    model, tokenizer = load_pair_scorer(shaky, **LENGTHS)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    for given, expected in (("checkpoint", 0.0), (0.2, 0.2)):  # it was trained with none
        again, _ = load_pair_scorer(tmp_path, **LENGTHS, attention_dropout=given)
        assert dropouts(again) == ({0.1}, {expected})


@pytest.mark.parametrize("converted", ["bert", "roberta"])
def test_converted_encoders_have_what_is_asked_for(
    converted: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    source = request.getfixturevalue(converted)
    assert dropouts(load_encoder(source, **LENGTHS, attention_dropout=0.3)[0])[1] == {0.3}


@pytest.mark.parametrize("share", [-0.1, 1.0, 2, "model", "0.1"])
def test_shares_that_cannot_be(share: float | str) -> None:
    with pytest.raises(ValueError, match=rf"^attention_dropout \({share}\) must be in \[0, 1\), or 'checkp"):
        load_encoder("tiny", **LENGTHS, attention_dropout=share)
    if not isinstance(share, str):
        with pytest.raises(ValueError, match=r"^dropout "):
            load_encoder("tiny", **LENGTHS, dropout=share)
