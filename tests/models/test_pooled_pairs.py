"""Pooled pairs: equal to loops over the evidence of each claim; order, padding, micro-batches and files
change nothing."""

import copy
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast

from cdlm_lab.examples.candidates import JointCollate, JointLayout, PairedClaimCollate, joint_sequence
from cdlm_lab.examples.tokens import from_tokenizer
from cdlm_lab.models.checkpoint import is_trained
from cdlm_lab.models.joint import PooledHead, PooledPairs, largest, load_pooled_pairs, weighted_sum

HEADS = {name: PooledHead(pooling=name, length=8) for name in ("max", "weighted_sum")}
EVIDENCE = ([4, 7, 2], [5], [])  # pieces of the evidence of each claim
CLAIM = [0, 0, 0, 1, 2]
LABELS = torch.tensor([2, 0, 1])
Batch = dict[str, torch.Tensor]


@pytest.fixture(params=HEADS)
def head(request: pytest.FixtureRequest) -> PooledHead:
    return HEADS[request.param]


@pytest.fixture
def loaded(bert: Path, head: PooledHead) -> tuple[PooledPairs, PreTrainedTokenizerFast]:
    return load_pooled_pairs(bert, head=head, seed=2)


@pytest.fixture
def model(loaded) -> PooledPairs:
    return loaded[0]


@pytest.fixture
def batch(loaded) -> Batch:
    """Three claims, one of them without evidence, in five pairs."""
    random, special = np.random.default_rng(0), from_tokenizer(loaded[1])
    layout, examples = JointLayout(sentences=4, length=8), []
    for evidence, label in zip(EVIDENCE, LABELS, strict=True):
        texts = [random.integers(5, 55, n) for n in (3, *evidence)] + [None] * (3 - len(evidence))
        one = joint_sequence(texts, layout=layout, special=special)
        names = ("input_ids", "token_type_ids", "position_ids", "starts")
        examples.append({name: getattr(one, name) for name in names} | {"labels": label.numpy()})
    return PairedClaimCollate(special.pad, layout)(examples)


def pairs_of(batch: Batch, pairs: list[int], claims: list[int]) -> Batch:
    """Some pairs, with their claims numbered anew."""
    taken = {name: values[pairs] for name, values in batch.items() if name != "labels"}
    numbers = torch.tensor([claims.index(number) for number in taken["claim"].tolist()])
    return taken | {"claim": numbers, "labels": batch["labels"][claims]}


def by_loops(model: PooledPairs, batch: Batch) -> tuple[torch.Tensor, list[float]]:
    """Logits of the claims and shares of the pairs, each pair through the encoder by itself."""
    read = []
    for row in range(len(CLAIM)):
        width = int(batch["attention_mask"][row].sum())
        ids, types, positions = (
            batch[name][row : row + 1, :width] for name in ("input_ids", "token_type_ids", "position_ids")
        )
        states = model.longformer(ids, token_type_ids=types, position_ids=positions + 1).last_hidden_state
        read.append(states[0, 0])
    logits, shares = [], []
    for claim in range(3):
        own = [e for e, number in zip(read, CLAIM, strict=True) if number == claim]
        if model.score is None:
            pooled = torch.stack([max(values) for values in zip(*own, strict=True)])
            best = [max(range(len(own)), key=lambda i, d=d: own[i][d]) for d in range(len(pooled))]
            weights = [best.count(i) / len(best) for i in range(len(own))]
        else:
            powers = [math.exp(model.score.weight[0] @ e) for e in own]
            weights = [power / sum(powers) for power in powers]
            pooled = sum(weight * e for weight, e in zip(weights, own, strict=True))
        logits.append(model.classifier.weight @ pooled + model.classifier.bias)
        shares += weights
    return torch.stack(logits), shares


@torch.no_grad()
def test_equals_loops_over_pairs(model: PooledPairs, batch: Batch):
    assert batch["claim"].tolist() == CLAIM
    out = model(**batch)
    logits, shares = by_loops(model, batch)
    torch.testing.assert_close(out.logits, logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(out.shares, torch.tensor(shares), rtol=1e-4, atol=1e-5)
    assert out.logits.std(0).min() > 0.01, "claims differ, or the test says nothing"
    assert out.shares[:3].std() > 0.01
    assert out.shares[3:].tolist() == [1, 1]


def test_the_loss_is_the_mean_over_claims(model: PooledPairs, batch: Batch):
    out = model(**batch)
    p = out.logits.double().softmax(-1)
    expected = -(p[0, 2].log() + p[1, 0].log() + p[2, 1].log()) / 3
    assert out.loss.item() == pytest.approx(expected.item(), rel=1e-5)
    some = model(**batch | {"labels": torch.tensor([2, -100, 1])}).loss
    assert some.item() == pytest.approx(-(p[0, 2].log() + p[2, 1].log()).item() / 2, rel=1e-5)
    bare = model(**{name: values for name, values in batch.items() if name != "labels"})
    assert bare.loss is None
    assert torch.equal(bare.logits, out.logits)
    assert not out.shares.requires_grad


@torch.no_grad()
def test_a_claim_alone_is_the_claim_in_its_batch_and_padding_is_inert(model: PooledPairs, batch: Batch):
    together = model(**batch)
    for claim, pairs in enumerate(([0, 1, 2], [3], [4])):
        alone = model(**pairs_of(batch, pairs, [claim]))
        torch.testing.assert_close(alone.logits[0], together.logits[claim], rtol=1e-4, atol=1e-5)
    order = [3, 1, 4, 0, 2]
    mixed = model(**pairs_of(batch, order, [1, 0, 2]))
    torch.testing.assert_close(mixed.logits, together.logits[[1, 0, 2]], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(mixed.shares, together.shares[order], rtol=1e-4, atol=1e-5)
    padding = batch["attention_mask"] == 0
    assert padding.any()
    other = batch | {"input_ids": batch["input_ids"].masked_fill(padding, 33)}
    torch.testing.assert_close(model(**other).logits, together.logits, rtol=1e-4, atol=1e-5)


def test_every_weight_but_the_global_projections_gets_a_gradient(model: PooledPairs, batch: Batch):
    model(**batch).loss.backward()
    without = {name for name, w in model.named_parameters() if w.grad is None or not w.grad.any()}
    # a bias on all keys, which the softmax cancels, has a gradient of rounding errors or none
    keys = {name for name in without if name.endswith("self.key.bias")}
    assert without - keys == {name for name, _ in model.named_parameters() if "_global." in name}


def test_micro_batches_add_up_to_the_full_batch(model: PooledPairs, batch: Batch):
    twin = copy.deepcopy(model)
    model(**batch).loss.backward()
    for pairs, claims in (([0, 1, 2], [0]), ([3, 4], [1, 2])):
        twin(**pairs_of(batch, pairs, claims), num_items_in_batch=torch.tensor(3)).loss.backward()
    for (name, weight), other in zip(model.named_parameters(), twin.parameters(), strict=True):
        if weight.grad is not None:
            torch.testing.assert_close(weight.grad, other.grad, rtol=1e-3, atol=1e-6, msg=name)


def test_it_learns_by_heart(model: PooledPairs, batch: Batch):
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(30):
        out = model(**batch)
        optimiser.zero_grad()
        out.loss.backward()
        optimiser.step()
    assert out.loss.item() < 0.05


@torch.no_grad()
def test_in_half_precision_all_is_float32(model: PooledPairs, batch: Batch):
    exact = model(**batch)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model(**batch)
    assert (rounded.logits != rounded.logits.bfloat16()).any()  # the head computes in float32
    for out in (rounded, copy.deepcopy(model).bfloat16()(**batch)):
        assert {values.dtype for values in out.values()} == {torch.float32}
        assert out.loss.item() == pytest.approx(exact.loss.item(), rel=0.1)


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ([0, 0, 0, 2, 2], "of 3 claims 2 have pairs, numbered up to 2"),
        ([0, 0, 1, 2, 3], "of 3 claims 4 have pairs, numbered up to 3"),
    ],
)
@pytest.mark.parametrize("head", [HEADS["max"]], ids=[""])
def test_each_claim_has_a_pair(model: PooledPairs, batch: Batch, claim: list[int], message: str):
    with pytest.raises(ValueError, match=f"^{message}; number them from 0, and give one without evidence"):
        model(**batch | {"claim": torch.tensor(claim)})


def test_the_largest_by_hand():
    read = torch.tensor([[1.0, 5.0, 2.0, -3.0], [7.0, 7.0, 7.0, 7.0], [4.0, 0.0, 2.0, -9.0]])
    pooled, shares = largest(read, torch.tensor([1, 0, 1]), claims=2)
    assert pooled.tolist() == [[7, 7, 7, 7], [4, 5, 2, -3]]
    # the first has the second and the fourth dimension and half of the third
    assert shares.tolist() == [2.5 / 4, 1, 1.5 / 4]


def test_the_weighted_sum_by_hand():
    read = torch.tensor([[8.0, 4.0], [1.0, 1.0], [0.0, 2.0]])
    scores = torch.tensor([100 + math.log(3), -1e4, 100.0])  # which would overflow as they are
    pooled, weights = weighted_sum(read, scores, torch.tensor([1, 0, 1]), claims=2)
    torch.testing.assert_close(weights, torch.tensor([3 / 4, 1, 1 / 4]))
    torch.testing.assert_close(pooled, torch.tensor([[1.0, 1.0], [6.0, 3.5]]))


def test_gradients_of_both_poolings_are_those_of_differences():
    generator = torch.Generator().manual_seed(0)
    read = torch.randn(5, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    scores = torch.randn(5, generator=generator, dtype=torch.float64, requires_grad=True)
    claim = torch.tensor([1, 0, 1, 1, 0])
    assert torch.autograd.gradcheck(lambda x: largest(x, claim, claims=2)[0], read)
    assert torch.autograd.gradcheck(lambda x, s: weighted_sum(x, s, claim, claims=2), (read, scores))


def test_save_and_load_agree(bert: Path, loaded, head: PooledHead, batch: Batch, tmp_path: Path):
    model, tokenizer = loaded
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert is_trained(str(tmp_path), PooledPairs)
    for given in (head, None):
        again, _ = load_pooled_pairs(tmp_path, head=given, seed=9)
        assert not again.training
        assert torch.equal(again(**batch).logits, model(**batch).logits)
    other = PooledHead(pooling=head.pooling, labels=4, length=8)
    with pytest.raises(
        ValueError, match=r"trained with PooledHead\(.*labels=3.*\), not PooledHead\(.*labels=4"
    ):
        load_pooled_pairs(tmp_path, head=other)
    with pytest.raises(ValueError, match="not a trained PooledPairs; give a head for it"):
        load_pooled_pairs(bert)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"pooling": "mean"}, "pooling is 'mean'; it must be one of 'max', 'weighted_sum'"),
        ({"pooling": "max", "labels": 1}, "labels is 1; it must be at least 2"),
        ({"pooling": "max", "length": 1}, "length is 1"),
    ],
)
def test_forms_that_cannot_be(form: dict, message: str):
    with pytest.raises(ValueError, match=f"^{message}"):
        PooledHead(**form)


def test_a_pair_takes_the_place_of_a_group_of_one(loaded, head: PooledHead):
    """The same layout as joint reading with k = 1, so an encoder can serve both."""
    assert head.layout == JointLayout(sentences=2, length=8)
    special = from_tokenizer(loaded[1])
    one = joint_sequence([[7, 8], [9]], layout=head.layout, special=special)
    names = ("input_ids", "token_type_ids", "position_ids", "starts")
    batch = JointCollate(special.pad)([{name: getattr(one, name) for name in names}])
    assert loaded[0](**batch, claim=torch.tensor([0])).logits.shape == (1, 3)
