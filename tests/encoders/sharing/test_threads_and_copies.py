"""Models as others use them: one model in several threads, pickled, copied, and in replicas of
`torch.nn.DataParallel`; used or not, every copy computes the same by its own weights."""

import copy
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from model_cases import Batch, Case
from torch.nn.parallel import replicate
from transformers import (
    LEDConfig,
    LEDForConditionalGeneration,
    LongformerConfig,
    LongformerForSequenceClassification,
    LongformerModel,
    PreTrainedModel,
)

from cdlm_lab.attention.layer import read_only_globals, replace_self_attention
from cdlm_lab.attention.weights import record_attention, recordable_layers

THREADS, ROUNDS = 8, 4
SIZES = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 24, "attention_window": [4, 8, 4], "max_position_embeddings": 80}


def plain_longformer() -> PreTrainedModel:
    return replace_self_attention(LongformerForSequenceClassification(LongformerConfig(**SIZES)))


def longformer_of_globals() -> PreTrainedModel:
    return read_only_globals(replace_self_attention(LongformerModel(LongformerConfig(**SIZES))))


def led() -> PreTrainedModel:
    sizes = {"encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_layers": 1}
    sizes |= {"decoder_attention_heads": 2, "decoder_ffn_dim": 24, "vocab_size": 60, "d_model": 16}
    sizes |= {"max_encoder_position_embeddings": 80, "max_decoder_position_embeddings": 80}
    sizes |= {"attention_window": 4}
    return replace_self_attention(LEDForConditionalGeneration(LEDConfig(**sizes)))


HUGGING_FACE = {"longformer": plain_longformer, "globals only": longformer_of_globals, "led": led}
by_kind = pytest.mark.parametrize("make", HUGGING_FACE.values(), ids=HUGGING_FACE)


def made(make: Callable[[], PreTrainedModel]) -> PreTrainedModel:
    torch.manual_seed(0)
    model = make()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.2)
    return model.eval()


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


def assert_shared(model: PreTrainedModel, given: list[Batch]) -> None:
    expected = [tensors(model, batch) for batch in given]
    for results in in_threads(lambda batch: tensors(model, batch), given):
        for found, wanted in zip(results, expected, strict=True):
            assert_equal(found, wanted)


@pytest.mark.usefixtures("often_switched")
def test_eight_threads_get_what_one_gets(case: Case, loaded: tuple, batch: Batch) -> None:
    rows = [case.row(batch, row) for row in range(case.rows)]
    assert_shared(loaded[0], [*rows, batch, case.wider(batch), *rows][:THREADS])


@pytest.mark.usefixtures("often_switched")
@by_kind
def test_eight_threads_get_what_one_gets_of_hugging_faces_models(make: Callable) -> None:
    assert_shared(made(make), batches())


def changed_to_zero(model: PreTrainedModel) -> None:
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()


def copies(model: PreTrainedModel) -> list[PreTrainedModel]:
    return [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]  # noqa: S301


def assert_copied(model: PreTrainedModel, batch: Batch) -> None:
    """Copies made before and after use compute the same, and go on doing so when the original changes."""
    every = copies(model)
    expected = tensors(model, batch)
    every += copies(model)
    kinds = [type(module) for module in model.modules()]
    changed_to_zero(model)
    for one in every:
        assert [type(module) for module in one.modules()] == kinds
        assert_equal(tensors(one, batch), expected)


def test_a_model_is_pickled_and_copied_before_and_after_use(loaded: tuple, batch: Batch) -> None:
    assert_copied(loaded[0], batch)


@by_kind
def test_a_model_of_hugging_face_is_pickled_and_copied_before_and_after_use(make: Callable) -> None:
    assert_copied(made(make), batches()[0])


@pytest.fixture
def on_one_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `replicate`, which is for GPUs, copy tensors on the CPU."""

    def copied(tensors: list, devices: list, detach: bool = False) -> list[list[torch.Tensor]]:
        return [[one.detach().clone() if detach else one.clone() for one in tensors] for _ in devices]

    module = sys.modules["torch.nn.parallel.replicate"]
    monkeypatch.setattr(module, "_get_device_index", lambda device, _: device)
    monkeypatch.setattr(module, "_broadcast_coalesced_reshape", copied)


def assert_replicated(model: PreTrainedModel, batch: Batch) -> None:
    expected = tensors(model, batch)
    replicas = replicate(model, [0, 1], detach=True)
    changed_to_zero(model)
    for results in in_threads(lambda replica: tensors(replica, batch), replicas):
        for found in results:
            assert_equal(found, expected)


@pytest.mark.usefixtures("on_one_cpu")
def test_replicas_compute_with_their_own_weights(loaded: tuple, batch: Batch) -> None:
    assert_replicated(loaded[0], batch)


@pytest.mark.usefixtures("on_one_cpu")
@by_kind
def test_replicas_of_hugging_faces_models_compute_with_their_own_weights(make: Callable) -> None:
    assert_replicated(made(make), batches()[0])


@pytest.mark.usefixtures("often_switched")
def test_each_thread_records_the_attention_of_its_own_text() -> None:
    model = made(plain_longformer)
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
