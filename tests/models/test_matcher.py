"""The document matcher: loss, alignments (equations 3 and 4), gradients, micro-batches, files, parameters."""

import copy
import math
from pathlib import Path

import pytest
import torch

from cdlm_lab.models.matching import DocumentMatcher, HierarchicalConfig

KINDS = [("gru", "none"), ("gru", "shallow"), ("gru", "deep"), ("vectors", "none"), ("vectors", "shallow")]
KINDS += [("average", "none")]
Batch = dict[str, torch.Tensor]


def matcher_of(encoder: str, cda: str) -> DocumentMatcher:
    torch.manual_seed(0)
    config = HierarchicalConfig(
        encoder=encoder, cda=cda, vocabulary_size=30, word_size=5, vector_size=6, hidden_size=4,
        initializer_range=0.4,
    )  # fmt: skip
    return DocumentMatcher(config).eval()


def batch_of(encoder: str) -> Batch:
    generator = torch.Generator().manual_seed(1)
    mask = torch.rand(4, 2, 3, generator=generator).sort(descending=True).values > 0.4
    mask[..., 0] = True
    words = torch.randint(1, 30, (4, 2, 3, 4), generator=generator) * mask[..., None]
    vectors = torch.randn(4, 2, 3, 6, generator=generator)
    labels = torch.tensor([1.0, 0.0, 0.0, 1.0])
    return {"inputs": words if encoder == "gru" else vectors, "sentence_mask": mask, "labels": labels}


@pytest.mark.parametrize(("encoder", "cda"), KINDS)
def test_every_weight_gets_a_gradient(encoder: str, cda: str):
    model = matcher_of(encoder, cda)
    model(**batch_of(encoder)).loss.backward()
    assert [name for name, weight in model.named_parameters() if not weight.grad.any()] == []


@pytest.mark.parametrize(("encoder", "cda"), KINDS)
def test_micro_batches_add_up_to_the_full_batch(encoder: str, cda: str):
    model, batch = matcher_of(encoder, cda), batch_of(encoder)
    twin = copy.deepcopy(model)
    model(**batch).loss.backward()
    for rows in (slice(0, 1), slice(1, 4)):
        twin(**{name: tensor[rows] for name, tensor in batch.items()}, num_items_in_batch=4).loss.backward()
    for (name, weight), other in zip(model.named_parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(weight.grad, other.grad, rtol=1e-4, atol=1e-6, msg=name)


def test_the_loss_is_the_formula():
    out = matcher_of("gru", "deep")(**batch_of("gru"))
    p = torch.sigmoid(out.logits.double())
    expected = -(p[0].log() + (1 - p[1]).log() + (1 - p[2]).log() + p[3].log()) / 4
    assert out.loss.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize(("encoder", "cda"), KINDS)
@torch.no_grad()
def test_alignments_are_equations_3_and_4(encoder: str, cda: str):
    model, batch = matcher_of(encoder, cda), batch_of(encoder)
    out = model(**batch)
    encoded = model.encoder(batch["inputs"], batch["sentence_mask"])
    for side in range(2):
        target = encoded.plain[2, 1 - side]
        there = [n for n in range(3) if batch["sentence_mask"][2, side, n]]
        products = {n: float(encoded.sentences[2, side, n] @ target) for n in there}
        total = sum(map(math.exp, products.values()))
        for n in range(3):
            share = math.exp(products[n]) / total if n in products else 0
            assert float(out.attention[2, side, n]) == pytest.approx(share, rel=1e-4)
            cosine = -1.0
            if n in products:
                cosine = products[n] / float(encoded.sentences[2, side, n].norm() * target.norm())
            assert float(out.cosine[2, side, n]) == pytest.approx(cosine, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("encoder", "cda"), KINDS)
def test_swapped_documents_swap_their_alignments(encoder: str, cda: str):
    model, batch = matcher_of(encoder, cda), batch_of(encoder)
    out = model(**batch)
    other = model(batch["inputs"].flip(1), batch["sentence_mask"].flip(1))
    torch.testing.assert_close(other.attention, out.attention.flip(1))
    torch.testing.assert_close(other.cosine, out.cosine.flip(1))


@pytest.mark.parametrize(("encoder", "cda"), KINDS)
def test_save_and_load_agree(encoder: str, cda: str, tmp_path: Path):
    model, batch = matcher_of(encoder, cda), batch_of(encoder)
    model.save_pretrained(tmp_path)
    assert not list(tmp_path.glob("*.bin"))
    again = DocumentMatcher.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(again(**batch).logits, model(**batch).logits, rtol=0, atol=0)


def parameters(cda: str) -> int:
    config = HierarchicalConfig(encoder="gru", cda=cda, vocabulary_size=1000)
    return sum(weight.numel() for weight in DocumentMatcher(config).parameters())


def test_cross_document_attention_adds_20k_parameters_at_any_depth():
    assert parameters("shallow") - parameters("none") == 20_100
    assert parameters("deep") == parameters("shallow")


def test_weights_are_drawn_as_the_config_says_and_filling_is_zero():
    model = DocumentMatcher(HierarchicalConfig(encoder="gru", vocabulary_size=5000, cda="deep"))
    words = model.encoder.words.weight
    assert not words[0].any()
    assert float(words[1:].detach().std()) == pytest.approx(0.15, rel=0.02)
    assert float(model.encoder.word_gru.weight_hh_l0.detach().std()) == pytest.approx(0.15, rel=0.05)
    assert not model.encoder.word_gru.bias_hh_l0.any()


def test_it_learns_eight_pairs_by_heart():
    model = matcher_of("gru", "deep")
    generator = torch.Generator().manual_seed(2)
    inputs = torch.randint(1, 30, (8, 2, 2, 3), generator=generator)
    mask = torch.ones(8, 2, 2, dtype=torch.bool)
    labels = torch.tensor([1.0, 0, 0, 1, 0, 1, 1, 0])
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        loss = model(inputs, mask, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.05
