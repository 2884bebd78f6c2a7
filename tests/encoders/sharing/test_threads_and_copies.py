"""Models as others use them: one model in several threads, pickled, copied, and in replicas of
`torch.nn.DataParallel`; used or not, every copy computes the same by its own weights."""

import copy
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from attention_cases import led, longformer
from model_cases import CASES, Batch
from torch.nn.parallel import replicate
from transformers import LongformerForSequenceClassification, LongformerModel, PreTrainedModel

from cdlm_lab.attention.weights import record_attention, recordable_layers
from cdlm_lab.encoders.packed import read_only_globals, replace_self_attention

THREADS, ROUNDS = 8, 4
HUGGING_FACE: dict[str, Callable[[], PreTrainedModel]] = {
    "longformer": lambda: replace_self_attention(longformer(LongformerForSequenceClassification)),
    "globals only": lambda: read_only_globals(replace_self_attention(longformer(LongformerModel))),
    "led": lambda: replace_self_attention(led()),
}


def batches() -> list[Batch]:
    """Make a batch for each thread, of other lengths, padding and global tokens."""
    generator, every = torch.Generator().manual_seed(0), []
    for length in range(20, 20 + THREADS):
        mask = torch.ones(2, length, dtype=torch.long)
        mask[1, length - 7 :] = 0
        is_global = (torch.rand(2, length, generator=generator) < 0.2).long() * mask
        is_global[:, 0] = 1
        ids = torch.randint(3, 60, (2, length), generator=generator)
        every.append({"input_ids": ids, "attention_mask": mask, "global_attention_mask": is_global})
    return every


@pytest.fixture(params=[*CASES, *HUGGING_FACE])
def shared(request: pytest.FixtureRequest) -> tuple[PreTrainedModel, list[Batch]]:
    """A model, and a batch for each thread."""
    if request.param in HUGGING_FACE:
        return HUGGING_FACE[request.param](), batches()
    case = CASES[request.param]
    model, tokenizer = case.load(request.getfixturevalue(case.encoder) if case.encoder else None)
    batch = case.batch(tokenizer)
    rows = [case.row(batch, row) for row in range(case.rows)]
    return model, [batch, case.wider(batch), *rows, *rows][:THREADS]


@torch.inference_mode()
def tensors(model: PreTrainedModel, batch: Batch) -> dict[str, torch.Tensor]:
    return {name: one for name, one in model(**batch).items() if isinstance(one, torch.Tensor)}


def assert_equal(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    """Up to the last digits, which depend on where in memory the weights are."""
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def in_threads(function: Callable, given: list) -> list:
    """Apply the function to each item in a thread of its own, all at once and several times."""
    with ThreadPoolExecutor(THREADS) as pool:
        return [list(pool.map(function, given)) for _ in range(ROUNDS)]


@pytest.mark.usefixtures("often_switched")
def test_eight_threads_get_what_one_gets(shared: tuple) -> None:
    model, given = shared
    expected = [tensors(model, batch) for batch in given]
    for results in in_threads(lambda batch: tensors(model, batch), given):
        for found, wanted in zip(results, expected, strict=True):
            assert_equal(found, wanted)


def changed_to_zero(model: PreTrainedModel) -> None:
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()


def copies(model: PreTrainedModel) -> list[PreTrainedModel]:
    return [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]  # noqa: S301


def test_a_model_is_pickled_and_copied_before_and_after_use(shared: tuple) -> None:
    """All copies compute the same, and go on doing so when the original changes."""
    model, (batch, *_) = shared
    every = copies(model)
    expected = tensors(model, batch)
    every += copies(model)
    kinds = [type(module) for module in model.modules()]
    changed_to_zero(model)
    for one in every:
        assert [type(module) for module in one.modules()] == kinds
        assert_equal(tensors(one, batch), expected)


@pytest.fixture
def on_one_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `replicate`, which is for GPUs, copy tensors on the CPU."""

    def copied(tensors: list, devices: list, detach: bool = False) -> list[list[torch.Tensor]]:
        return [[one.detach().clone() if detach else one.clone() for one in tensors] for _ in devices]

    module = sys.modules["torch.nn.parallel.replicate"]
    monkeypatch.setattr(module, "_get_device_index", lambda device, _: device)
    monkeypatch.setattr(module, "_broadcast_coalesced_reshape", copied)


@pytest.mark.usefixtures("on_one_cpu")
def test_replicas_compute_with_their_own_weights(shared: tuple) -> None:
    model, (batch, *_) = shared
    expected = tensors(model, batch)
    replicas = replicate(model, [0, 1], detach=True)
    changed_to_zero(model)
    for results in in_threads(lambda replica: tensors(replica, batch), replicas):
        for found in results:
            assert_equal(found, expected)


@pytest.mark.usefixtures("often_switched")
def test_each_thread_records_the_attention_of_its_own_text() -> None:
    model = HUGGING_FACE["longformer"]()
    tokens = torch.tensor([[3], [4]])

    def recorded(batch: Batch) -> list[torch.Tensor]:
        with record_attention(model, tokens) as recorder, torch.inference_mode():
            model(**batch)
        return [*recorder.from_tokens, *recorder.to_tokens]

    given = batches()
    expected = [recorded(batch) for batch in given]
    for results in in_threads(recorded, given):
        for found, wanted in zip(results, expected, strict=True):
            assert len(found) == len(wanted) == 6
            assert all(map(torch.equal, found, wanted))
    assert all(layer.recorder is None for layer in recordable_layers(model))
