"""The form of a head, and the file of one that was pre-trained. What heads compute: test_joint_model.py."""

import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import LongformerConfig

from cdlm_lab.examples.candidates import JointLayout
from cdlm_lab.models.checkpoint import CheckpointError, own_randomness
from cdlm_lab.models.joint import (
    HEAD_FILE,
    JointHead,
    JointHeadLayers,
    paragraph_head,
    start_from_paragraph_head,
    write_head,
)


def layers_of(seed: int, *, size: int = 12, **form: str | int) -> JointHeadLayers:
    with own_randomness(seed):
        return JointHeadLayers(JointHead(**form), LongformerConfig(hidden_size=size))


def test_the_layout_is_that_of_the_sequences():
    head = JointHead(kind="ie_k", sentences=4, length=10, positions="compact")
    assert head.layout == JointLayout(sentences=4, length=10, positions="compact")
    assert JointHead(kind="ae_1").layout.tokens == 384, "the paper's 64 * (5 + 1)"
    assert [JointHead(kind=kind).of_candidates for kind in ("ie_1", "ae_1", "ie_k", "ae_k")] == [
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"kind": "AE_K"}, "kind is 'AE_K'; it must be one of 'ie_1', 'ae_1', 'ie_k', 'ae_k'"),
        ({"kind": "ie_k", "layers": "deep"}, "layers is 'deep'; it must be one of 'linear', 'tanh'"),
        ({"kind": "ie_k", "labels": 1}, "labels is 1; it must be at least 2"),
        ({"kind": "ie_k", "sentences": 1}, "sentences is 1"),
        ({"kind": "ie_k", "positions": "none"}, "unknown positions 'none'"),
    ],
)
def test_forms_that_cannot_be(form: dict, message: str):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        JointHead(**form)


@pytest.mark.parametrize(
    ("kind", "layers", "weights"),
    # 2 labels on 12 numbers or 24; the hidden layer is as wide as what it reads, as in the released code
    [
        ("ie_1", "linear", 12 * 2 + 2),
        ("ae_1", "linear", 12 * 2 + 2),
        ("ie_k", "linear", 12 * 2 + 2),
        ("ae_k", "linear", 24 * 2 + 2),
        ("ie_k", "tanh", 12 * 12 + 12 + 12 * 2 + 2),
        ("ae_k", "tanh", 24 * 24 + 24 + 24 * 2 + 2),
    ],
)
def test_the_number_of_weights(kind: str, layers: str, weights: int):
    made = layers_of(0, kind=kind, layers=layers)
    assert sum(weight.numel() for weight in made.parameters()) == weights


def test_hidden_dropout_is_twice_in_a_tanh_head():
    made = layers_of(0, kind="ie_k", layers="tanh")
    assert [type(layer).__name__ for layer in made.layers] == [
        "Dropout",
        "Linear",
        "Tanh",
        "Dropout",
        "Linear",
    ]


@pytest.mark.parametrize("layers", ["linear", "tanh"])
def test_a_head_starts_from_the_file_of_one_of_its_form(tmp_path: Path, layers: str):
    written = layers_of(0, kind="ae_k", layers=layers, length=20)
    assert paragraph_head(str(tmp_path)) is None
    write_head(written, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [HEAD_FILE]
    form, weights = paragraph_head(str(tmp_path))
    assert form == written.form
    assert weights.keys() == written.state_dict().keys()
    # the layout may be another: the head does not know of it
    head = layers_of(1, kind="ae_k", layers=layers, sentences=3)
    assert start_from_paragraph_head(head, str(tmp_path))
    for name, weight in head.state_dict().items():
        assert torch.equal(weight, written.state_dict()[name]), name


@pytest.mark.parametrize(
    "other", [{"kind": "ie_k"}, {"kind": "ae_k", "labels": 3}, {"kind": "ae_k", "layers": "tanh"}]
)
def test_a_head_of_another_form_stays_as_drawn(tmp_path: Path, other: dict):
    write_head(layers_of(0, kind="ae_k"), tmp_path)
    head, untouched = layers_of(1, **other), layers_of(1, **other)
    assert not start_from_paragraph_head(head, str(tmp_path))
    for name, weight in head.state_dict().items():
        assert torch.equal(weight, untouched.state_dict()[name]), name


def test_a_file_that_is_no_head(tmp_path: Path):
    file = tmp_path / HEAD_FILE
    message = rf"^{re.escape(str(file))}: no head of paragraph pre-training \(.*\); save the model again$"
    save_file({"layers.0.weight": torch.zeros(2, 12)}, file)  # which does not say what it is
    with pytest.raises(CheckpointError, match=message):
        paragraph_head(str(tmp_path))
    write_head(layers_of(0, kind="ie_k"), tmp_path)
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(CheckpointError, match=message):
        paragraph_head(str(tmp_path))


def test_a_head_of_another_encoder(tmp_path: Path):
    write_head(layers_of(0, kind="ie_k"), tmp_path)
    message = rf"^{re.escape(str(tmp_path))}: {HEAD_FILE} is not of the encoder beside it; remove it"
    with pytest.raises(CheckpointError, match=message):
        start_from_paragraph_head(layers_of(1, kind="ie_k", size=16), str(tmp_path))
