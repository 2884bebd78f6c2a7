"""The joint model: E_i are those of plain BERT and RoBERTa with every sentence padded, heads and loss are the
equations; rows, padding, absent candidates, micro-batches and files change nothing."""

import copy
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import BertModel, PreTrainedTokenizerFast, RobertaModel

from cdlm_lab.examples.candidates import JointCollate, JointLayout, joint_sequence
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.models.checkpoint import CheckpointError, is_trained
from cdlm_lab.models.encoder import load_encoder
from cdlm_lab.models.joint import JointHead, JointModel, load_joint_model, scores_of

K, LENGTH = 2, 8
LAYOUT = {"sentences": K + 1, "length": LENGTH}  # 24 tokens, as many as BERT's and RoBERTa's positions
# Pieces of the sentences of each group: one is cut, one has no pieces, one is absent.
PIECES = [[3, 6, 11], [2, None, 4], [5, 0, 7]]
LABELS = {"k": torch.tensor([[1, 0], [-100, 1], [0, -100]]), "1": torch.tensor([2, 0, 1])}
HEADS = {
    f"{kind} {layers}": JointHead(kind=kind, layers=layers, labels=3 if kind.endswith("1") else 2, **LAYOUT)
    for kind in ("ie_1", "ae_1", "ie_k", "ae_k")
    for layers in ("linear", "tanh")
}
Batch = dict[str, torch.Tensor]


def batch_of(
    tokenizer: PreTrainedTokenizerFast,
    pieces: list[list[int | None]] = PIECES,
    *,
    positions: str = "strided",
    labels: torch.Tensor | None = None,
) -> Batch:
    """Sentences of so many random pieces each; None = absent."""
    random, special = np.random.default_rng(0), from_tokenizer(tokenizer)
    layout = JointLayout(positions=positions, **LAYOUT)
    sequences = [
        joint_sequence(
            [None if n is None else random.integers(5, 55, n) for n in group], layout=layout, special=special
        )
        for group in pieces
    ]
    names = ("input_ids", "token_type_ids", "position_ids", "starts")
    batch = JointCollate(special.pad)([{name: getattr(one, name) for name in names} for one in sequences])
    return batch if labels is None else batch | {"labels": labels}


def rows_of(batch: Batch, row: int) -> Batch:
    """One row, without its padding."""
    width = int(batch["attention_mask"][row].sum())
    wide = batch["input_ids"].shape
    return {
        name: t[row : row + 1, :width] if t.shape == wide else t[row : row + 1] for name, t in batch.items()
    }


def unlabelled(batch: Batch) -> Batch:
    return {name: values for name, values in batch.items() if name != "labels"}


def with_own_token_types(model: JointModel) -> JointModel:
    """Token types that differ: those that were copied would hide a wrong one."""
    nn.init.normal_(model.longformer.embeddings.token_type_embeddings.weight, std=0.5)
    return model


@pytest.fixture(params=HEADS)
def head(request: pytest.FixtureRequest) -> JointHead:
    return HEADS[request.param]


@pytest.fixture
def loaded(bert: Path, head: JointHead) -> tuple[JointModel, PreTrainedTokenizerFast]:
    torch.manual_seed(5)
    model, tokenizer = load_joint_model(bert, head=head, seed=1)
    return with_own_token_types(model), tokenizer


@pytest.fixture
def model(loaded) -> JointModel:
    return loaded[0]


@pytest.fixture
def batch(loaded, head: JointHead) -> Batch:
    return batch_of(loaded[1], labels=LABELS[head.kind[-1]])


def padded(batch: Batch, *, pad: int) -> Batch:
    """The same sentences, each padded to L, in the words of plain BERT."""
    rows, tokens = len(batch["input_ids"]), (K + 1) * LENGTH
    made = {
        "input_ids": torch.full((rows, tokens), pad),
        "attention_mask": torch.zeros(rows, tokens, dtype=torch.long),
        "token_type_ids": torch.arange(K + 1).repeat_interleave(LENGTH).repeat(rows, 1),
        "position_ids": torch.arange(tokens).repeat(rows, 1),
    }
    for row in range(rows):
        kept = batch["attention_mask"][row].bool()
        sentence = batch["token_type_ids"][row][kept]
        for number in sentence.unique().tolist():
            ids = batch["input_ids"][row][kept][sentence == number]
            place = slice(number * LENGTH, number * LENGTH + len(ids))
            made["input_ids"][row, place] = ids
            made["attention_mask"][row, place] = 1
    return made


@torch.no_grad()
@pytest.mark.parametrize("positions", ["strided", "compact"])
@pytest.mark.parametrize("attention", ["auto", "huggingface"])
@pytest.mark.parametrize(("name", "plain_class"), [("bert", BertModel), ("roberta", RobertaModel)])
def test_embeddings_are_those_of_the_plain_model_with_every_sentence_padded(
    name, plain_class, attention, positions, request: pytest.FixtureRequest
):
    folder = request.getfixturevalue(name)
    head = JointHead(kind="ie_k", positions=positions, **LAYOUT)
    model, tokenizer = load_joint_model(folder, head=head, attention=attention)
    with_own_token_types(model)
    plain = plain_class.from_pretrained(folder, add_pooling_layer=False).eval()
    plain.embeddings.token_type_embeddings = model.longformer.embeddings.token_type_embeddings
    batch = batch_of(tokenizer, positions=positions)
    theirs = padded(batch, pad=tokenizer.pad_token_id)
    if positions == "compact":  # as RoBERTa numbers tokens by itself, skipping padding
        theirs["position_ids"] = (theirs["attention_mask"].cumsum(1) - 1).clamp(min=0)
    if name == "roberta":
        theirs["position_ids"] += tokenizer.pad_token_id + 1
    expected = plain(**theirs).last_hidden_state[:, ::LENGTH]
    there = batch["starts"] >= 0
    assert there.sum() == 8
    found = model(**batch).embeddings
    torch.testing.assert_close(found[there], expected[there], rtol=1e-4, atol=1e-5)
    assert not found[~there].any()


def by_formula(model: JointModel, embeddings: torch.Tensor, row: int) -> list[torch.Tensor]:
    """The logits of a group, one for each label that it is to get, in the order of section 3.3."""
    head = model.head.form

    def labelled(vector: torch.Tensor) -> torch.Tensor:
        linear = [layer for layer in model.head.layers if isinstance(layer, nn.Linear)]
        if head.layers == "tanh":
            vector = torch.tanh(linear[0].weight @ vector + linear[0].bias)
        return linear[-1].weight @ vector + linear[-1].bias

    first, *others = [
        None if pieces is None else e for pieces, e in zip(PIECES[row], embeddings[row], strict=True)
    ]
    there = [first, *[e for e in others if e is not None]]
    if head.kind == "ie_1":
        return [labelled(first)]
    if head.kind == "ae_1":
        return [labelled(sum(there) / len(there))]
    none = torch.zeros(2)
    if head.kind == "ie_k":
        return [none if e is None else labelled(e) for e in others]
    return [none if e is None else labelled(torch.cat([first, e])) for e in others]


@torch.no_grad()
def test_heads_are_the_equations(model: JointModel, batch: Batch, head: JointHead):
    out = model(**unlabelled(batch))
    assert out.loss is None
    assert out.logits.dtype == torch.float32
    assert out.logits.shape == ((3, K, 2) if head.kind.endswith("k") else (3, 3))
    for row in range(3):
        found = out.logits[row] if head.kind.endswith("k") else out.logits[row][None]
        expected = torch.stack(by_formula(model, out.embeddings, row))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert out.logits.std() > 0.05, "all the same would show nothing"


def test_the_loss_is_the_mean_over_labels(model: JointModel, batch: Batch, head: JointHead):
    out = model(**batch)
    p = out.logits.double().softmax(-1)
    right = [(0, 0, 1), (0, 1, 0), (1, 1, 1), (2, 0, 0)]
    if head.kind.endswith("1"):
        right = [(0, 2), (1, 0), (2, 1)]
    expected = sum(-math.log(p[at].item()) for at in right) / len(right)
    assert out.loss.item() == pytest.approx(expected, rel=1e-5)
    nothing = model(**batch | {"labels": torch.full_like(batch["labels"], -100)}).loss
    nothing.backward()
    assert nothing == 0
    assert not any(w.grad.any() for w in model.parameters() if w.grad is not None)


@torch.no_grad()
def test_a_row_alone_is_the_row_in_its_batch_and_padding_is_inert(model: JointModel, batch: Batch):
    together = model(**batch).logits
    for row in range(3):
        alone = model(**rows_of(batch, row)).logits[0]
        torch.testing.assert_close(alone, together[row], rtol=1e-4, atol=1e-5)
    padding = batch["attention_mask"] == 0
    assert padding.any()
    other = batch | {
        "input_ids": batch["input_ids"].masked_fill(padding, 33),
        "position_ids": batch["position_ids"].masked_fill(padding, 9),
        "token_type_ids": batch["token_type_ids"].masked_fill(padding, 2),
    }
    torch.testing.assert_close(model(**other).logits, together, rtol=1e-4, atol=1e-5)


def test_every_weight_but_the_global_projections_gets_a_gradient(model: JointModel, batch: Batch):
    model(**batch).loss.backward()
    without = {name for name, w in model.named_parameters() if w.grad is None or not w.grad.any()}
    # a bias on all keys, which the softmax cancels, has a gradient of rounding errors or none
    keys = {name for name in without if name.endswith("self.key.bias")}
    assert without - keys == {name for name, _ in model.named_parameters() if "_global." in name}
    assert model.longformer.embeddings.token_type_embeddings.weight.grad.any(1).all()


@pytest.mark.parametrize("kind", ["ie_k", "ae_k"])
def test_an_absent_candidate_leaves_nothing(bert: Path, kind: str):
    model, tokenizer = load_joint_model(bert, head=JointHead(kind=kind, **LAYOUT))
    batch = batch_of(tokenizer, [[3, 4, None]])
    out = model(**batch, labels=torch.tensor([[1, -100]]))
    assert not out.logits[0, 1].any()
    assert out.loss.item() == pytest.approx(-out.logits[0, 0].log_softmax(-1)[1].item(), rel=1e-6)
    out.loss.backward()
    used = model.longformer.embeddings.token_type_embeddings.weight.grad.any(1)
    assert used.tolist() == [True, True, False]
    with pytest.raises(ValueError, match=r"^an absent candidate has a label; give it -100$"):
        model(**batch, labels=torch.tensor([[1, 0]]))


def test_micro_batches_add_up_to_the_full_batch(model: JointModel, batch: Batch):
    twin = copy.deepcopy(model)
    full = model(**batch).loss
    full.backward()
    items, total = (batch["labels"] != -100).sum(), 0.0
    for row in range(3):
        part = twin(**rows_of(batch, row), num_items_in_batch=items).loss
        part.backward()
        total += part.item()
    assert total == pytest.approx(full.item(), rel=1e-5)
    for (name, weight), other in zip(model.named_parameters(), twin.parameters(), strict=True):
        if weight.grad is not None:
            torch.testing.assert_close(weight.grad, other.grad, rtol=1e-3, atol=1e-6, msg=name)


@torch.no_grad()
def test_in_half_precision_logits_and_loss_are_float32(model: JointModel, batch: Batch):
    exact = model(**batch)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model(**batch)
    assert (rounded.logits != rounded.logits.bfloat16()).any()  # the head computes in float32
    whole = copy.deepcopy(model).bfloat16()(**batch)
    for out in (rounded, whole):
        assert out.loss.dtype == out.logits.dtype == torch.float32
        assert out.loss.item() == pytest.approx(exact.loss.item(), rel=0.1)


def test_it_learns_groups_by_heart(bert: Path):
    model, tokenizer = load_joint_model(bert, head=JointHead(kind="ie_k", **LAYOUT))
    labels = torch.tensor([[1, 0], [-100, 1], [0, 0], [0, 1]])
    batch = batch_of(tokenizer, [*PIECES, [4, 3, 6]], labels=labels)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(30):
        out = model(**batch)
        optimiser.zero_grad()
        out.loss.backward()
        optimiser.step()
    assert out.loss.item() < 0.05
    assert (scores_of(out.logits) > 0)[labels != -100].tolist() == [
        True,
        False,
        True,
        False,
        False,
        False,
        True,
    ]


def test_save_and_load_agree(bert: Path, loaded, head: JointHead, batch: Batch, tmp_path: Path):
    model, tokenizer = loaded
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert is_trained(str(tmp_path), JointModel)
    assert not is_trained(str(bert), JointModel)
    for given in (head, None):
        again, words = load_joint_model(tmp_path, head=given, seed=9)
        assert not again.training
        assert again.head.form == head
        assert torch.equal(again(**batch).logits, model(**batch).logits)
    assert words.get_vocab() == tokenizer.get_vocab()


@pytest.mark.parametrize("head", [HEADS["ie_k linear"]], ids=[""])
def test_what_cannot_be_loaded(bert: Path, loaded, tmp_path: Path):
    model, tokenizer = loaded
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    other = JointHead(kind="ae_k", **LAYOUT)
    with pytest.raises(
        ValueError, match=r"trained with JointHead\(kind='ie_k'.*, not .*'ae_k'.* ask for that"
    ):
        load_joint_model(tmp_path, head=other)
    with pytest.raises(ValueError, match=r"not a trained JointModel; give a head for it$"):
        load_joint_model(bert)
    with pytest.raises(ValueError, match="dropout"):
        load_joint_model(bert, head=other, dropout=1.5)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["head.layers.0.bias"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"missing: head\.layers\.0\.bias"):
        load_joint_model(tmp_path)


def test_the_head_is_drawn_from_the_seed_and_the_encoder_is_the_one_named(bert: Path):
    before = torch.get_rng_state()
    head = HEADS["ae_k tanh"]
    first, same, other = (load_joint_model(bert, head=head, seed=seed)[0] for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    for name, weight in first.head.state_dict().items():
        assert torch.equal(weight, same.head.state_dict()[name])
        assert torch.equal(weight, other.head.state_dict()[name]) == name.endswith("bias"), name
    lengths = {"max_length": 48, "window": 48}
    encoder = load_encoder(bert, **lengths, seed=1)[0].state_dict()
    types = "embeddings.token_type_embeddings.weight"
    for name, weight in other.longformer.state_dict().items():
        kept = weight[:2] if name == types else weight
        assert torch.equal(kept, encoder[name]), name
    assert torch.equal(other.longformer.state_dict()[types][2], encoder[types][1])


def test_dropout_is_of_encoder_and_head(bert: Path):
    model, _ = load_joint_model(bert, head=HEADS["ie_k tanh"], dropout=0.25)
    assert model.longformer.embeddings.dropout.p == 0.25
    assert [layer.p for layer in model.head.layers if isinstance(layer, nn.Dropout)] == [0.25, 0.25]


def test_other_sentences_than_the_head_reads_are_refused(bert: Path):
    model, tokenizer = load_joint_model(bert, head=JointHead(kind="ie_1", sentences=4, length=6))
    with pytest.raises(
        ValueError, match=r"^the sequences have 3 sentences, the model reads 4; write them by"
    ):
        model(**batch_of(tokenizer))


def test_scores_are_log_odds():
    logits = torch.tensor([[[0.5, 2.0], [3.0, -1.0]], [[0.0, 40.0], [0.0, 41.0]]])
    scores = scores_of(logits.requires_grad_())
    assert scores.dtype == np.float64
    assert scores.tolist() == [[1.5, -4.0], [40.0, 41.0]]
    probabilities = logits.double().softmax(-1)[..., 1].detach().numpy()
    np.testing.assert_allclose(np.log(probabilities[0] / (1 - probabilities[0])), scores[0], rtol=1e-9)
    assert probabilities[1, 0] == probabilities[1, 1] == 1, "which is why"
    with pytest.raises(ValueError, match=r"^logits are of 3 labels; log-odds are of two$"):
        scores_of(torch.zeros(2, 3))
