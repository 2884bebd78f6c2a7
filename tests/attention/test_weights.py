"""Recorded attention against the dense oracle: several tokens at once, padding, some layers, work, memory."""

import math

import pytest
import torch
from attention_cases import SHAPES, LargestTensor, inputs_of, longformer, packed, setting_of
from torch import Tensor
from transformers import LongformerModel

from cdlm_lab.attention import weights
from cdlm_lab.attention.dense import dense_weights
from cdlm_lab.attention.plan import Projections, make_plan
from cdlm_lab.attention.weights import AttentionRecorder, record_attention, recordable_layers
from cdlm_lab.encoders.packed import replace_self_attention


def projections_of(batch: int, seq: int) -> Projections:
    return Projections(*(2 * tensor.detach() for tensor in inputs_of(batch, seq, dtype=torch.float32)))


def recorded(tokens: Tensor, shape: str) -> AttentionRecorder:
    plan, recorder = make_plan(**setting_of(shape)), AttentionRecorder(tokens)
    recorder.record(packed(projections_of(*SHAPES[shape][:2]), plan), plan)
    return recorder


@pytest.mark.parametrize("shape", SHAPES)
def test_every_token_at_once_equals_the_dense_oracle(shape: str) -> None:
    setting = setting_of(shape)
    present = setting["attention_mask"]
    matrix = dense_weights(projections_of(*SHAPES[shape][:2]), **setting)
    # all tokens of the shortest row, in no order, the last one twice
    count, generator = int(present.sum(1).min()), torch.Generator().manual_seed(3)
    rows = [mask.nonzero().flatten() for mask in present]
    tokens = torch.stack([row[torch.randperm(len(row), generator=generator)[:count]] for row in rows])
    tokens = torch.cat([tokens, tokens[:, -1:]], dim=1)
    recorder = recorded(tokens, shape)
    for row, chosen in enumerate(tokens):
        given, received = matrix[row][:, chosen], matrix[row][:, :, chosen].transpose(1, 2)
        for actual, wanted in ((recorder.from_tokens, given), (recorder.to_tokens, received)):
            torch.testing.assert_close(actual[0][row], wanted, rtol=0, atol=2e-6)
            assert torch.equal(actual[0][row] == 0, wanted == 0), "out of reach is exactly 0"


def recorded_in(seq: int, tokens: Tensor, *, global_token: int | None = None) -> None:
    """A text with at most one global token, window 64."""
    present = torch.ones(1, seq, dtype=torch.bool)
    is_global = torch.arange(seq)[None] == global_token if global_token else ~present
    plan = make_plan(attention_mask=present, global_mask=is_global, window=64)
    AttentionRecorder(tokens).record(packed(projections_of(1, seq), plan), plan)


def test_the_runs_are_scored_once_however_many_tokens_are_chosen(monkeypatch) -> None:
    scored, original = [], weights._run_scores

    def counted(packed, run):
        scored.append(run.queries)
        return original(packed, run)

    monkeypatch.setattr(weights, "_run_scores", counted)
    recorded_in(300, torch.tensor([[150]]))
    assert len(scored) == 3, "a local token: only the runs within its reach, of 10"
    scored.clear()
    recorded_in(300, torch.arange(300)[None])
    assert len(scored) == 10


def test_memory_is_linear_in_length() -> None:
    largest = []
    for seq in (1024, 2048):
        with LargestTensor() as mode:
            recorded_in(seq, torch.tensor([[7, 8, 9]]), global_token=7)
        largest.append(mode.numbers)
    assert largest[1] <= 2 * largest[0]


@pytest.fixture
def model() -> LongformerModel:
    return replace_self_attention(longformer(LongformerModel, attention_window=[4, 8, 4]))


def test_chosen_layers_are_those_of_a_full_recording(model: LongformerModel) -> None:
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
def test_layers_that_are_not_there_are_refused(model: LongformerModel, layers, message) -> None:
    tokens = torch.tensor([[0]])
    with pytest.raises(ValueError, match=message), record_attention(model, tokens, layers=layers):
        pass


@pytest.mark.parametrize("token", [-1, 61, 10, 1_000_000])
def test_tokens_that_are_not_there_are_named(token: int) -> None:
    message = f"token {token} of row 1 is padding or outside the text of length 61"
    with pytest.raises(ValueError, match=message):
        recorded(torch.tensor([[0, 1], [20, token], [0, 1]]), "ragged globals")


def test_tokens_must_be_positions_of_each_row() -> None:
    with pytest.raises(ValueError, match=r"must be \(batch, chosen\) long positions"):
        AttentionRecorder(torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="tokens chosen for 2 rows, but the batch has 1"):
        recorded(torch.tensor([[0], [0]]), "one token")


def test_weights_by_hand() -> None:
    """Two local tokens and a global one, keys chosen so that scores are logarithms of whole numbers."""
    is_global = torch.tensor([[False, False, True]])
    plan = make_plan(attention_mask=torch.ones_like(is_global), global_mask=is_global, window=2)
    ones = torch.ones(1, 3, 1, 1)
    keys = torch.tensor([1.0, 2.0, 3.0]).log().view(1, 3, 1, 1)
    projections = Projections(ones, keys, ones, ones, -keys, ones)
    recorder = AttentionRecorder(torch.tensor([[2, 0]]))
    recorder.record(packed(projections, plan), plan)
    given, received = recorder.from_tokens[0][0, 0], recorder.to_tokens[0][0, 0]
    whole = 1 + 1 / 2 + 1 / 3
    wanted = torch.tensor([[1 / whole, 1 / 2 / whole, 1 / 3 / whole], [1 / 6, 2 / 6, 3 / 6]])
    torch.testing.assert_close(given, wanted)
    wanted = torch.tensor([[3 / 6, 3 / 6, 1 / 3 / whole], [1 / 6, 1 / 6, 1 / whole]])
    torch.testing.assert_close(received, wanted)
    assert math.isclose(float(given.sum()), 2, rel_tol=1e-6)
