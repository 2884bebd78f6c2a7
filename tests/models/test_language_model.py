"""The language model: Hugging Face's numbers on masked tokens only."""

import copy

import pytest
import torch
from torch import Tensor
from transformers import LongformerForMaskedLM

from cdlm_lab.models.language_model import CrossDocumentLM


def batch_of(rows: int = 3, length: int = 32, globals_: bool = True) -> dict[str, Tensor]:
    """Random tokens, the second row padded from 20 on, about a fifth masked; masked tokens are global."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 55, (rows, length), generator=generator)
    present = torch.ones(rows, length, dtype=torch.long)
    present[1:2, 20:] = 0
    masked = (torch.rand(rows, length, generator=generator) < 0.2) & present.bool()
    return {
        "input_ids": torch.where(masked, 4, ids) * present + (1 - present),
        "attention_mask": present,
        "global_attention_mask": (masked & torch.tensor(globals_)).long(),
        "labels": torch.where(masked, ids, -100),
    }


def test_loss_and_gradients_equal_huggingface(language_model: CrossDocumentLM, tmp_path) -> None:
    language_model.save_pretrained(tmp_path)
    theirs = LongformerForMaskedLM.from_pretrained(tmp_path)
    batch = {name: tensor[:1] for name, tensor in batch_of().items()}  # padding makes their gradient NaN
    ours, expected = language_model(**batch).loss, theirs(**batch).loss
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=0)
    ours.backward()
    expected.backward()
    wanted = dict(theirs.named_parameters())
    for name, parameter in language_model.named_parameters():
        torch.testing.assert_close(parameter.grad, wanted[name].grad, rtol=1e-3, atol=1e-6, msg=name)


def test_token_losses_stand_row_after_row(language_model: CrossDocumentLM) -> None:
    batch = batch_of()
    output = language_model(**batch)
    labels = batch.pop("labels")
    full = torch.nn.functional.cross_entropy(
        language_model(**batch).logits.transpose(1, 2), labels, reduction="none"
    )
    torch.testing.assert_close(output.token_loss, full[labels != -100].detach(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(output.loss, output.token_loss.mean(), rtol=1e-6, atol=0)
    assert output.logits.shape == ((labels != -100).sum(), 55)
    assert output.loss.requires_grad
    assert not output.token_loss.requires_grad, "kept over an evaluation it would keep the graph alive"


def test_micro_batches_with_the_whole_count_give_the_full_batch(language_model: CrossDocumentLM) -> None:
    batch = batch_of()
    count = (batch["labels"] != -100).sum()
    language_model.double()
    language_model(**batch).loss.backward()
    full = {name: parameter.grad.clone() for name, parameter in language_model.named_parameters()}
    language_model.zero_grad()
    losses = []
    for row in range(3):
        part = {name: tensor[row : row + 1] for name, tensor in batch.items()}
        loss = language_model(**part, num_items_in_batch=count).loss
        loss.backward()
        losses.append(loss.detach())
    torch.testing.assert_close(torch.stack(losses).sum(), language_model(**batch).loss.detach())
    for name, parameter in language_model.named_parameters():
        # the loss is summed in float32 whatever the model's precision
        torch.testing.assert_close(parameter.grad, full[name], rtol=1e-4, atol=1e-7, msg=name)


def test_a_batch_without_masked_tokens_has_no_loss_and_zero_gradients(
    language_model: CrossDocumentLM,
) -> None:
    batch = batch_of()
    batch["labels"] = torch.full_like(batch["labels"], -100)
    loss = language_model(**batch).loss
    loss.backward()
    assert loss == 0
    gradients = [parameter.grad for parameter in language_model.parameters() if parameter.grad is not None]
    assert gradients
    assert not any(gradient.any() for gradient in gradients), "a NaN counts as true here, too"


def test_every_weight_gets_a_gradient_and_globals_only_with_global_tokens(
    language_model: CrossDocumentLM,
) -> None:
    batch = batch_of()
    # every other masked token stays local: were all global, nobody would read the last layer's local queries
    batch["global_attention_mask"][:, ::2] = 0
    language_model(**batch).loss.backward()
    for name, parameter in language_model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name
    language_model.zero_grad()
    language_model(**batch_of(globals_=False)).loss.backward()
    for name, parameter in language_model.named_parameters():
        touched = parameter.grad is not None and bool(parameter.grad.any())
        assert touched is ("_global" not in name), name


def test_a_row_alone_equals_the_row_in_its_batch_and_padding_is_inert(
    language_model: CrossDocumentLM,
) -> None:
    language_model.double()
    batch = batch_of()
    labels = batch.pop("labels")
    assert (labels[1] != -100).any()
    with torch.no_grad():
        together = language_model(**batch).logits[1, :20]
        alone = language_model(**{name: tensor[1:2, :20] for name, tensor in batch.items()}).logits[0]
    torch.testing.assert_close(alone, together, rtol=0, atol=1e-11)


def test_saved_it_is_the_plain_class_with_tied_weights(language_model: CrossDocumentLM, tmp_path) -> None:
    language_model.save_pretrained(tmp_path)
    plain = LongformerForMaskedLM.from_pretrained(tmp_path).eval()
    assert plain.config.architectures == ["LongformerForMaskedLM"]
    assert plain.lm_head.decoder.weight is plain.longformer.embeddings.word_embeddings.weight
    batch = {name: tensor[:1] for name, tensor in batch_of().items() if name != "labels"}
    with torch.no_grad():
        torch.testing.assert_close(plain(**batch).logits, language_model(**batch).logits, rtol=0, atol=2e-5)
    assert not list(tmp_path.glob("*.bin")), "safetensors only"


def test_weights_stay_tied_when_words_are_added(language_model: CrossDocumentLM) -> None:
    language_model.resize_token_embeddings(60)
    assert (
        language_model.lm_head.decoder.weight is language_model.longformer.embeddings.word_embeddings.weight
    )
    assert language_model.lm_head.bias.shape == (60,)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_loss_is_float32_under_autocast(language_model: CrossDocumentLM, dtype: torch.dtype) -> None:
    exact = language_model(**batch_of()).loss
    with torch.autocast("cpu", dtype=dtype):
        rounded = language_model(**batch_of()).loss
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded, exact, rtol=0.03, atol=0)


def test_the_loss_is_float32_in_a_bfloat16_model(language_model: CrossDocumentLM) -> None:
    output = language_model.bfloat16()(**batch_of())
    assert output.loss.dtype == output.token_loss.dtype == torch.float32
    assert output.logits.dtype == torch.bfloat16


def test_it_learns_eight_examples_by_heart(language_model: CrossDocumentLM) -> None:
    model = copy.deepcopy(language_model).train()
    batch = batch_of(rows=8)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    start = model(**batch).loss.item()
    for _ in range(150):
        optimiser.zero_grad()
        model(**batch).loss.backward()
        optimiser.step()
    assert model(**batch).loss.item() < 0.1 * start
