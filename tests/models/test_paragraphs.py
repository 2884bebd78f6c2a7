"""Pre-training with paragraphs: the loss is the formula, and what is saved is a plain language model with a
head beside it."""

import math
import shutil
from pathlib import Path

import pytest
import torch
from model_cases import MASKED, PARAGRAPH_FORM, PARAGRAPH_HEADS, Batch, Loaded, of_cases, row_of, saved
from transformers import BertModel, LongformerForMaskedLM

from cdlm_lab.models.checkpoint import HEAD_FILE, is_trained
from cdlm_lab.models.encoder import load_encoder, load_language_model
from cdlm_lab.models.joint import (
    JointHead,
    ParagraphModel,
    load_joint_model,
    load_paragraph_model,
    save_paragraph_model,
)

LENGTHS = {"max_length": 24, "window": 24}


def without_labels(batch: Batch) -> Batch:
    return {name: values for name, values in batch.items() if name not in ("labels", "mlm_labels")}


@of_cases("paragraph")
def test_the_loss_is_the_formula(model: ParagraphModel, batch: Batch):
    out = model(**batch)
    p = out.logits.double().softmax(-1)
    right = [(0, 0, 1), (0, 1, 0), (0, 2, 0), (1, 0, 0), (1, 2, 1), (2, 1, 1)]
    mspp = sum(-math.log(p[at].item()) for at in right) / 6
    positions = batch["position_ids"] + model.config.pad_token_id + 1
    form = {"token_type_ids": batch["token_type_ids"], "position_ids": positions}
    states = model.longformer(batch["input_ids"], batch["attention_mask"], **form).last_hidden_state
    words = model.lm_head(states).double().log_softmax(-1)
    means = [
        sum(-words[row, at, batch["mlm_labels"][row, at]].item() for at in masked) / max(len(masked), 1)
        for row, masked in enumerate(MASKED)
    ]
    mlm = (3 * means[0] + 2 * means[1] + 1 * means[2]) / 6
    assert means[2] == 0, "nothing is masked there"
    assert out.parts.keys() == set(ParagraphModel.loss_parts)
    assert out.parts["mspp"].item() == pytest.approx(mspp, rel=1e-5)
    assert out.parts["mlm"].item() == pytest.approx(mlm, rel=1e-5)
    assert out.loss.item() == pytest.approx(mlm + mspp, rel=1e-5)
    assert out.loss.requires_grad
    assert not any(part.requires_grad for part in out.parts.values())
    bare = model(**without_labels(batch))
    assert (bare.loss, bare.parts) == (None, None)
    assert torch.equal(bare.logits, out.logits)
    rows = [model(**row_of(batch, row), num_items_in_batch=6).parts for row in range(3)]
    for name, part in out.parts.items():
        assert sum(of_row[name].item() for of_row in rows) == pytest.approx(part.item(), rel=1e-5)


@of_cases("paragraph")
def test_nothing_masked(model: ParagraphModel, batch: Batch):
    out = model(**batch | {"mlm_labels": torch.full_like(batch["mlm_labels"], -100)})
    assert out.parts["mlm"] == 0
    assert out.loss == out.parts["mspp"] > 0


@of_cases("paragraph")
def test_labels_that_cannot_be(model: ParagraphModel, batch: Batch):
    for name in ("labels", "mlm_labels"):
        with pytest.raises(ValueError, match=r"^labels and mlm_labels belong together; give both or none$"):
            model(**without_labels(batch), **{name: batch[name]})
    batch["labels"][1, 1] = 0
    with pytest.raises(ValueError, match=r"^an absent candidate has a label"):
        model(**batch)


@of_cases("paragraph")
def test_what_is_saved_is_a_plain_language_model(loaded: Loaded, tmp_path: Path):
    model, tokenizer = loaded
    types = model.longformer.embeddings.token_type_embeddings.weight
    with torch.no_grad():
        types[3] += 0.5
    folder = tmp_path / "new" / "model"
    save_paragraph_model(model, tokenizer, folder)
    plain, report = LongformerForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report
    assert plain.config.architectures == ["LongformerForMaskedLM"]
    assert plain.config.type_vocab_size == 4
    assert not hasattr(plain.config, "joint")
    assert hasattr(model.config, "joint"), "the model at hand is as it was"
    for again in (plain, load_language_model(folder, **LENGTHS)[0]):
        for name, weight in again.state_dict().items():
            assert torch.equal(weight, model.state_dict()[name]), name
    encoder, words = load_encoder(folder, **LENGTHS)
    assert torch.equal(encoder.embeddings.token_type_embeddings.weight[3], types[3])
    assert words.get_vocab() == tokenizer.get_vocab()


@of_cases("paragraph")
def test_training_goes_on_from_what_is_saved_and_from_a_checkpoint(loaded, batch: Batch, tmp_path: Path):
    model, tokenizer = loaded
    head, expected = model.head.form, model(**batch)
    save_paragraph_model(model, tokenizer, tmp_path / "plain")
    model.save_pretrained(tmp_path / "checkpoint")  # as the trainer does
    tokenizer.save_pretrained(tmp_path / "checkpoint")
    assert is_trained(str(tmp_path / "checkpoint"), ParagraphModel)
    for folder, given in (("plain", head), ("checkpoint", head), ("checkpoint", None)):
        again, _ = load_paragraph_model(tmp_path / folder, head=given, seed=8)
        assert torch.equal(again(**batch).loss, expected.loss), folder
    with pytest.raises(ValueError, match="not a trained ParagraphModel; give a head for it"):
        load_paragraph_model(tmp_path / "plain")
    joint, _ = load_joint_model(tmp_path / "plain", head=head)
    assert torch.equal(joint(**without_labels(batch)).logits, expected.logits)


@of_cases("paragraph")
def test_a_joint_model_keeps_the_head_of_its_kind_alone(loaded: Loaded, tmp_path: Path):
    model, tokenizer = loaded
    head = model.head.form
    save_paragraph_model(model, tokenizer, tmp_path)
    alone = shutil.copytree(tmp_path, tmp_path / "alone", ignore=lambda *_: [HEAD_FILE, "alone"])
    joint, drawn = (load_joint_model(folder, head=head, seed=5)[0] for folder in (tmp_path, alone))
    for name, weight in model.head.state_dict().items():
        assert torch.equal(joint.head.state_dict()[name], weight), name
        assert torch.equal(drawn.head.state_dict()[name], weight) == name.endswith("bias"), name
    for name, weight in model.longformer.state_dict().items():
        assert torch.equal(drawn.longformer.state_dict()[name], weight), name
    claims = JointHead(kind="ie_1", labels=3, **PARAGRAPH_FORM)
    assert load_joint_model(tmp_path, head=claims)[0].head.layers[0].weight.shape == (3, 32)
    fewer = JointHead(kind=head.kind, layers=head.layers, sentences=2, length=6)
    pairwise, _ = load_joint_model(tmp_path, head=fewer)
    assert torch.equal(pairwise.head.layers[-1].weight, model.head.layers[-1].weight)
    assert pairwise.config.type_vocab_size == 4


@pytest.mark.parametrize(
    ("form", "named"), [({"kind": "ie_1"}, "ie_1 of 2"), ({"kind": "ae_k", "labels": 3}, "ae_k of 3")]
)
def test_only_a_head_of_candidates_of_two_labels(bert: Path, form: dict, named: str):
    message = rf"^the head is {named} labels; paragraphs need ie_k or ae_k of two$"
    with pytest.raises(ValueError, match=message):
        load_paragraph_model(bert, head=JointHead(**form, **PARAGRAPH_FORM))


def test_an_encoder_alone_gets_a_language_model_head_with_a_warning(bert: Path, tmp_path: Path):
    saved(tmp_path, BertModel.from_pretrained(bert), load_encoder(bert, **LENGTHS)[1])
    with pytest.warns(UserWarning, match="a new one was drawn from seed 4"):
        model, _ = load_paragraph_model(tmp_path, head=PARAGRAPH_HEADS["ie_k"], seed=4)
    assert model.lm_head.decoder.weight is model.get_input_embeddings().weight


def test_room_for_longer_texts_than_it_is_trained_with(bert: Path):
    model, _ = load_paragraph_model(bert, head=PARAGRAPH_HEADS["ie_k"], max_length=100)
    assert model.config.max_position_embeddings == 101
    assert {layer.attention.self.window for layer in model.longformer.encoder.layer} == {48}
