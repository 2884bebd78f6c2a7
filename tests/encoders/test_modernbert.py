"""CDLM's masks on ModernBERT: what each token feels, the oracle, checkpoints, variants, other encoders."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from modernbert import save_modernbert
from torch import Tensor
from torch.nn.attention import flex_attention
from transformers import AutoModelForMaskedLM, DistilBertConfig, DistilBertForMaskedLM

from cdlm_lab.attention.dense import visible
from cdlm_lab.encoders.checkpoint import CheckpointError
from cdlm_lab.encoders.encoder import load_encoder, load_language_model, tiny_tokenizer
from cdlm_lab.encoders.estimate import estimate
from cdlm_lab.encoders.source_attention import CutAsGiven, apart, attend_to_source
from cdlm_lab.tasks.multihop.model import load_question_answerer

FORM = {"max_length": 400, "window": 8}
SEQ, MASKED = 40, 30
TYPES = ("full_attention", "sliding_attention")  # of layers, in ModernBERT's config


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_modernbert(tmp_path_factory.mktemp("modernbert"))


@pytest.fixture(scope="module")
def saved(folder: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same with document separators, as `load_language_model` adds them."""
    model, tokenizer = load_language_model(folder, **FORM)
    where = tmp_path_factory.mktemp("saved")
    model.save_pretrained(where)
    tokenizer.save_pretrained(where)
    return str(where)


def batch_of(*, labels: bool = True, documents: bool = False) -> dict[str, Tensor]:
    """Two rows, of which the second ends in padding; masked tokens are global. `documents`: of two."""
    ids = torch.randint(5, 900, (2, SEQ), generator=torch.Generator().manual_seed(1))
    if documents:
        ids[:, [1, 20]], ids[:, [19, 32]] = 1022, 1023
    present = torch.ones(2, SEQ, dtype=torch.long)
    present[1, 33:] = 0
    is_global = torch.zeros(2, SEQ, dtype=torch.long)
    is_global[:, MASKED] = 1
    batch = {"input_ids": ids, "attention_mask": present, "global_attention_mask": is_global}
    return batch | ({"labels": torch.where(is_global.bool(), ids, -100)} if labels else {})


def test_a_masked_token_feels_a_far_document_and_a_local_token_does_not(tmp_path: Path) -> None:
    """One layer, window 8: token 0 is far from both; only from the masked one does a gradient reach it."""
    model, _ = load_encoder(save_modernbert(tmp_path, layers=1), **FORM)
    embedded = model.embeddings.tok_embeddings.weight
    batch = batch_of(labels=False)
    batch["input_ids"][:] = torch.arange(100, 100 + SEQ)  # one row of embeddings for each position
    states = model(**batch).last_hidden_state[0]
    for position, feels in ((MASKED, True), (MASKED - 2, False)):
        (gradient,) = torch.autograd.grad(states[position].square().sum(), embedded, retain_graph=True)
        felt = gradient[100 : 100 + SEQ].abs().sum(dim=1) > 0
        near = (torch.arange(SEQ) - position).abs() <= 4
        expected = torch.ones(SEQ, dtype=torch.bool) if feels else near | (torch.arange(SEQ) == MASKED)
        assert torch.equal(felt, expected)


def results(model: Any, logits: Tensor, batch: dict[str, Tensor]) -> list[Tensor]:
    """Logits of masked tokens, and the gradients of their loss by all weights."""
    labels = batch["labels"][batch["labels"] != -100]
    torch.nn.functional.cross_entropy(logits, labels).backward()
    return [logits, *(weight.grad for weight in model.parameters())]


def of_plain(folder: str, batch: dict[str, Tensor], masks: dict[str, Tensor], attention: str) -> list[Tensor]:
    """`results` of Hugging Face's ModernBERT with a mask, True = attends, for each type of layer."""
    model = AutoModelForMaskedLM.from_pretrained(folder, attn_implementation=attention).double()
    if attention == "eager":
        masks = {name: torch.zeros(SEQ, SEQ).masked_fill(~mask, -torch.inf) for name, mask in masks.items()}
    logits = model(batch["input_ids"], attention_mask=masks).logits
    return results(model, logits[batch["labels"] != -100], batch)


def of_ours(folder: str, batch: dict[str, Tensor], attention: str, cut: CutAsGiven = None) -> list[Tensor]:
    """`results` of our ModernBERT."""
    model, tokenizer = load_language_model(folder, attention=attention, **FORM)
    device = batch["input_ids"].device
    model = model.to(device, torch.float32 if device.type == "cuda" else torch.float64)
    with apart(model, tokenizer, cut):
        return results(model, model(**batch).logits, batch)


def oracle(batch: dict[str, Tensor]) -> Tensor:
    """(batch, 1, query, key) bool; padding sees itself, as a softmax over nothing is NaN."""
    masks = {
        "attention_mask": batch["attention_mask"].bool(),
        "global_mask": batch["global_attention_mask"].bool(),
    }
    return (visible(**masks, window=8) | torch.eye(SEQ, dtype=torch.bool))[:, None]


def assert_equal(made: list[Tensor], expected: list[Tensor], *, within: float = 1e-9) -> None:
    for one, other in zip(made, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=within)


@pytest.fixture
def flex_with_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU FlexAttention refuses gradients; uncompiled it has them all the same."""
    monkeypatch.setattr(flex_attention, "_validate_device", lambda *_: None)


@pytest.mark.usefixtures("flex_with_gradients")
def test_all_ways_equal_their_attention_with_the_oracles_mask_with_gradients(saved: str) -> None:
    """In float64, but for the sums of their eager attention."""
    batch = batch_of()
    expected = of_plain(saved, batch, dict.fromkeys(TYPES, oracle(batch)), "sdpa")
    eager = of_plain(saved, batch, dict.fromkeys(TYPES, oracle(batch)), "eager")
    assert_equal(eager, expected, within=1e-5)
    for attention in ("sparse", "flex", "dense"):
        assert_equal(of_ours(saved, batch, attention), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("cut", [None, "documents"])
def test_flex_attention_on_a_gpu_equals_the_dense_reference(saved: str, cut: CutAsGiven) -> None:
    batch = {name: one.cuda() for name, one in batch_of(documents=True).items()}
    flex, dense = (of_ours(saved, batch, attention, cut) for attention in ("flex", "dense"))
    assert_equal(flex, dense, within=1e-3)


@pytest.mark.usefixtures("flex_with_gradients")
@pytest.mark.parametrize("attention", ["sparse", "flex", "dense"])
@pytest.mark.parametrize(
    ("cut", "types", "heads"),
    [
        ("documents", TYPES, [0, 1, 2, 3]),
        ({"layers": [0], "heads": [1, 3]}, ("full_attention",), [1, 3]),
        ({"layers": [1, 2]}, ("sliding_attention",), [0, 1, 2, 3]),
    ],
)
def test_cut_equals_a_mask_made_by_hand_with_gradients(
    saved: str, attention: str, cut: CutAsGiven, types: Sequence[str], heads: list[int]
) -> None:
    """Two documents of 20 tokens, the token before the first included; layer 0 is of another type."""
    batch = batch_of(documents=True)
    whole = oracle(batch).repeat(1, 4, 1, 1)
    document = torch.arange(SEQ) // 20
    cut_too = whole.clone()
    cut_too[:, heads] &= document == document[:, None]
    masks = {name: cut_too if name in types else whole for name in TYPES}
    assert_equal(of_ours(saved, batch, attention, cut), of_plain(saved, batch, masks, "sdpa"))


def test_its_attention_is_that_of_the_oracle(folder: str) -> None:
    """The weights of every layer are positive exactly where the oracle's mask is, as recorded for notebook 11
    and the explorer."""
    model, _ = load_encoder(folder, attention="dense", **FORM)
    batch = batch_of(labels=False)
    sees = visible(
        attention_mask=batch["attention_mask"].bool(),
        global_mask=batch["global_attention_mask"].bool(),
        window=8,
    )
    row, present = sees[1, :33, :33], 33
    attention = attend_to_source(
        model, batch["input_ids"][1, :33], source=range(33), extra_global=[MASKED], source_is_global=False
    )
    assert attention.given.shape == (3, 4, present, present)
    for layer in attention.given:
        assert torch.equal(torch.from_numpy(layer > 0).any(dim=0), row)
    np.testing.assert_allclose(attention.given.sum(-1), 1, atol=1e-5)
    np.testing.assert_array_equal(attention.received, attention.given.transpose(0, 1, 3, 2))


def test_a_row_alone_equals_the_row_in_a_batch(folder: str) -> None:
    model, _ = load_encoder(folder, **FORM)
    batch = batch_of(labels=False)
    together = model(**batch).last_hidden_state[1, :33]
    alone = model(**{name: one[1:, :33] for name, one in batch.items()}).last_hidden_state[0]
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)


def test_a_checkpoint_comes_in_plain_and_goes_out_plain(folder: str, tmp_path: Path) -> None:
    model, tokenizer = load_language_model(folder, **FORM)
    assert len(tokenizer) == model.get_input_embeddings().num_embeddings
    assert tokenizer.convert_tokens_to_ids("<doc-s>") != tokenizer.unk_token_id
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    plain = AutoModelForMaskedLM.from_pretrained(tmp_path)
    assert type(plain).__name__ == "ModernBertForMaskedLM"
    again, _ = load_language_model(tmp_path, **FORM)
    for other in (plain, again):
        assert {name: one.tolist() for name, one in other.state_dict().items()} == {
            name: one.tolist() for name, one in model.state_dict().items()
        }
    # where every token is in the window, and none global, local + global attention is full attention
    wide, _ = load_language_model(tmp_path, max_length=400, window=400)
    short = {name: one[:1, :5] for name, one in batch_of(labels=False).items()}
    short["global_attention_mask"][:] = 0
    expected = plain(short["input_ids"], short["attention_mask"]).logits
    torch.testing.assert_close(wide(**short).logits, expected, rtol=0, atol=1e-4)


def test_every_weight_learns_and_loss_is_the_mean_of_the_masked_tokens(folder: str) -> None:
    model, _ = load_language_model(folder, **FORM)
    batch = batch_of()
    output = model(**batch)
    logits = model(**{name: one for name, one in batch.items() if name != "labels"}).logits
    wanted = torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch["labels"])
    assert output.loss.item() == pytest.approx(wanted.item(), abs=1e-5)
    output.loss.backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in model.parameters())


def test_its_cost_is_estimated(folder: str) -> None:
    model, _ = load_language_model(folder, **FORM)
    cost = estimate(model.config, length=8, batch=2, global_tokens=0, masked_tokens=1)
    assert cost.parameters == model.num_parameters()
    # three layers of 8 tokens with 4 to each side: four projections, three matrices of 32 x 48, 52 pairs
    linear, head = 2 * 8 * (4 * 32 * 32 + 3 * 32 * 48), 2 * 32 * (32 + 1024)
    assert cost.forward_flops == 3 * (linear + 4 * 32 * 52) + head


def test_another_encoder_is_refused_in_one_line(tmp_path: Path) -> None:
    config = DistilBertConfig(vocab_size=1022, dim=16, n_layers=1, n_heads=2, hidden_dim=16)
    DistilBertForMaskedLM(config).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"'distilbert': 'longformer' and 'modernbert' are taken"):
        load_language_model(tmp_path, **FORM)


def test_longer_than_it_was_made_for_is_refused(folder: str) -> None:
    with pytest.raises(CheckpointError, match=r"max_length \(700\) is longer than .* was made for \(600\)"):
        load_language_model(folder, max_length=700, window=8)


def test_a_task_that_needs_types_of_tokens_refuses_it(folder: str) -> None:
    with pytest.raises(CheckpointError, match="has no types of tokens, by which this task"):
        load_question_answerer(folder, paragraph_types=2, **FORM)
