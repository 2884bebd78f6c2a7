"""Recorded attention against the dense oracle: several tokens at once, padding, some layers, work, memory."""

import math

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LongformerConfig, LongformerModel

from cdlm_lab.attention import weights
from cdlm_lab.attention.dense import dense_weights
from cdlm_lab.attention.layer import replace_self_attention
from cdlm_lab.attention.plan import Plan, make_plan
from cdlm_lab.attention.weights import AttentionRecorder, record_attention, recordable_layers

HEADS, DIM = 2, 8

# (batch, seq, window, share of globals)
SHAPES = {
    "no globals": (2, 50, 8, 0.0),
    "ragged globals and padding": (3, 61, 8, 0.2),
    "all global": (2, 20, 4, 1.0),
    "one token": (1, 1, 2, 0.0),
    "window wider than the text": (2, 30, 128, 0.1),
    "several blocks": (2, 300, 64, 0.15),
    "more globals than are scored at once": (1, 200, 16, 0.9),
}


def masks_of(batch: int, seq: int, globals_: float) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(batch * seq)
    attention_mask = torch.ones(batch, seq, dtype=torch.bool)
    global_mask = torch.rand(batch, seq, generator=generator) < globals_
    if batch > 2:
        global_mask[0] = False  # one row without any
        attention_mask[1, 5:15] = False  # padding in the middle
        attention_mask[2, 40:] = False
    return attention_mask, global_mask & attention_mask


def projections_of(batch: int, seq: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seq)
    names = ("query", "key", "query_global", "key_global")
    return {name: torch.randn(batch, seq, HEADS, DIM, generator=generator) * 2 for name in names}


def packed(projections: dict[str, Tensor], plan: Plan) -> dict[str, Tensor]:
    orders = {"query": plan.local_order, "query_global": plan.global_order}
    return {name: tensor.flatten(0, 1)[orders.get(name, plan.order)] for name, tensor in projections.items()}


def recorded(tokens: Tensor, *, globals_: float, window: int, seq: int) -> AttentionRecorder:
    attention_mask, global_mask = masks_of(len(tokens), seq, globals_)
    plan = make_plan(attention_mask=attention_mask, global_mask=global_mask, window=window)
    recorder = AttentionRecorder(tokens)
    recorder.record(packed(projections_of(len(tokens), seq), plan), plan)
    return recorder


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_every_token_at_once_equals_the_dense_oracle(shape) -> None:
    batch, seq, window, globals_ = shape
    attention_mask, global_mask = masks_of(batch, seq, globals_)
    projections = projections_of(batch, seq)
    matrix = dense_weights(
        *projections.values(), attention_mask=attention_mask, global_mask=global_mask, window=window
    )
    # all tokens of the shortest row, in no order, the last one twice
    count = int(attention_mask.sum(1).min())
    generator = torch.Generator().manual_seed(3)
    rows = [mask.nonzero().flatten() for mask in attention_mask]
    tokens = torch.stack([row[torch.randperm(len(row), generator=generator)[:count]] for row in rows])
    tokens = torch.cat([tokens, tokens[:, -1:]], dim=1)

    recorder = recorded(tokens, globals_=globals_, window=window, seq=seq)

    for row, chosen in enumerate(tokens):
        given, received = matrix[row][:, chosen], matrix[row][:, :, chosen].transpose(1, 2)
        torch.testing.assert_close(recorder.from_tokens[0][row], given, rtol=0, atol=2e-6)
        torch.testing.assert_close(recorder.to_tokens[0][row], received, rtol=0, atol=2e-6)
        for actual, wanted in ((recorder.from_tokens, given), (recorder.to_tokens, received)):
            assert torch.equal(actual[0][row] == 0, wanted == 0), "out of reach is exactly 0"


def test_the_blocks_are_scored_once_however_many_tokens_are_chosen(monkeypatch) -> None:
    scored = []

    def counted(packed, row, block):
        scored.append(block.query_start)
        return original(packed, row, block)

    original = weights._block_scores
    monkeypatch.setattr(weights, "_block_scores", counted)
    recorded(torch.tensor([[150]]), globals_=0.0, window=64, seq=300)
    assert len(scored) == 3, "a local token: only the blocks within its reach, of 10"
    scored.clear()
    recorded(torch.arange(300)[None], globals_=0.0, window=64, seq=300)
    assert len(scored) == 10


class LargestTensor(TorchDispatchMode):
    """Elements of the largest tensor that any operation makes."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        if isinstance(made, Tensor):
            self.elements = max(self.elements, made.numel())
        return made


def test_memory_is_linear_in_length() -> None:
    largest = []
    for seq in (1024, 2048):
        mask = torch.ones(1, seq, dtype=torch.bool)
        global_mask = torch.arange(seq)[None] == 7
        plan = make_plan(attention_mask=mask, global_mask=global_mask, window=64)
        projections = packed(projections_of(1, seq), plan)
        with LargestTensor() as mode:
            AttentionRecorder(torch.tensor([[7, 8, 9]])).record(projections, plan)
        largest.append(mode.elements)
    assert largest[1] <= 2 * largest[0]


def small_model() -> LongformerModel:
    torch.manual_seed(0)
    config = LongformerConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=16,
        attention_window=[4, 8, 4],
        max_position_embeddings=40,
        pad_token_id=1,
        initializer_range=0.5,
    )
    return replace_self_attention(LongformerModel(config, add_pooling_layer=False)).eval()


def test_chosen_layers_are_those_of_a_full_recording() -> None:
    model = small_model()
    ids, tokens = torch.arange(2, 26)[None], torch.tensor([[3, 9]])
    with record_attention(model, tokens) as full, torch.no_grad():
        model(ids)
    assert full.layers == (0, 1, 2)
    for layers, numbers in (([-1], (2,)), ([2, 0, -3], (0, 2)), (iter([1]), (1,))):
        with record_attention(model, tokens, layers=layers) as some, torch.no_grad():
            model(ids)
        assert some.layers == numbers
        assert len(some.from_tokens) == len(some.to_tokens) == len(numbers)
        for actual, number in zip(some.to_tokens, numbers, strict=True):
            assert torch.equal(actual, full.to_tokens[number])
    assert all(layer.recorder is None for layer in recordable_layers(model)), "left recording"
    assert [layer.window for layer in recordable_layers(model)] == [4, 8, 4]


@pytest.mark.parametrize(
    ("layers", "message"),
    [([], "no layer is chosen"), ([3], "no layer 3; the model has 3: 0 to 2"), ([0, -4], "no layer -4")],
)
def test_layers_that_are_not_there_are_refused(layers, message) -> None:
    with (
        pytest.raises(ValueError, match=message),
        record_attention(small_model(), torch.tensor([[0]]), layers=layers),
    ):
        pass


@pytest.mark.parametrize("token", [-1, 61, 10, 1_000_000])
def test_tokens_that_are_not_there_are_named(token: int) -> None:
    tokens = torch.tensor([[0, 1], [20, token], [0, 1]])
    with pytest.raises(
        ValueError, match=f"token {token} of row 1 is padding or outside the text of length 61"
    ):
        recorded(tokens, globals_=0.2, window=8, seq=61)


def test_tokens_must_be_positions_of_each_row() -> None:
    with pytest.raises(ValueError, match=r"must be \(batch, chosen\) long positions"):
        AttentionRecorder(torch.tensor([0, 1]))
    present = torch.ones(1, 4, dtype=torch.bool)
    plan = make_plan(attention_mask=present, global_mask=~present, window=2)
    projections = packed(projections_of(1, 4), plan)
    with pytest.raises(ValueError, match="tokens chosen for 2 rows, but the batch has 1"):
        AttentionRecorder(torch.tensor([[0], [0]])).record(projections, plan)


def test_weights_by_hand() -> None:
    """Two local tokens and a global one, keys chosen so that scores are logarithms of whole numbers."""
    plan = make_plan(
        attention_mask=torch.ones(1, 3, dtype=torch.bool),
        global_mask=torch.tensor([[False, False, True]]),
        window=2,
    )
    ones = torch.ones(1, 3, 1, 1)
    keys = torch.tensor([1.0, 2.0, 3.0]).log().view(1, 3, 1, 1)
    projections = {"query": ones, "key": keys, "query_global": ones, "key_global": -keys}
    recorder = AttentionRecorder(torch.tensor([[2, 0]]))
    recorder.record(packed(projections, plan), plan)
    given, received = recorder.from_tokens[0][0, 0], recorder.to_tokens[0][0, 0]
    whole = 1 + 1 / 2 + 1 / 3
    wanted = torch.tensor([[1 / whole, 1 / 2 / whole, 1 / 3 / whole], [1 / 6, 2 / 6, 3 / 6]])
    torch.testing.assert_close(given, wanted)
    wanted = torch.tensor([[3 / 6, 3 / 6, 1 / 3 / whole], [1 / 6, 1 / 6, 1 / whole]])
    torch.testing.assert_close(received, wanted)
    assert math.isclose(float(given.sum()), 2, rel_tol=1e-6)
