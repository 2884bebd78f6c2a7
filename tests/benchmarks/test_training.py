"""The benchmark of whole training steps: both models are the same, arithmetic by hand, rows complete."""

import dataclasses
import os

import pytest
import torch
from transformers import LongformerConfig

from cdlm_lab.attention.layer import LocalGlobalAttention
from cdlm_lab.benchmarks import timing
from cdlm_lab.benchmarks import training as benchmark
from cdlm_lab.encoders.encoder import TinySizes
from cdlm_lab.progress import Progress

SMALL = TinySizes(hidden_size=32, layers=2, heads=2, intermediate_size=64, vocabulary=300)
CPU = torch.device("cpu")


def case_of(part: str, **changes: object) -> benchmark.Case:
    form = {"length": 64, "window": 16, "examples": 2, "global_tokens": 9}
    case = benchmark.Case(part=part, **form, attention_dropout=0.0, precision="float32")
    return dataclasses.replace(case, **changes)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "SIZES", {"minilm": SMALL, "tiny": SMALL})


def test_the_grid_is_that_of_two_shapes_two_globals_two_dropouts_two_precisions():
    grid = list(benchmark.cases(parts=["minilm"]))
    assert len(set(grid)) == len(grid) == 16
    assert {(case.length, case.window, case.global_tokens) for case in grid} == {
        *((1024, 128, 154), (1024, 128, 0)),
        *((4096, 512, 614), (4096, 512, 0)),
    }
    chosen = list(benchmark.cases(lengths=[1024], shares=["15%"], dropouts=[0.1], precisions=["bfloat16"]))
    assert [case.part for case in chosen] == ["minilm", "modernbert", "pairs", "sentences", "tiny"]
    of_modernbert = list(benchmark.cases(parts=["modernbert"]))
    assert {(case.length, case.global_tokens) for case in of_modernbert} == {(1024, 154), (4096, 614)}
    assert {case.attention_dropout for case in of_modernbert} == {0.0}
    assert [case.global_tokens for case in chosen] == [154, 154, 9, 0, 77]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("part", benchmark.PARTS)
def test_both_models_have_one_loss_and_only_ours_has_our_attention(part: str):
    losses, few = {}, {"global_tokens": 0, "window": 128} if part == "sentences" else {}
    for way in benchmark.WAYS:
        step = benchmark.TrainingStep(case_of(part, **few), way, device=CPU)
        assert step.model.training
        ours = [isinstance(module, LocalGlobalAttention) for module in step.model.modules()]
        assert any(ours) == (way == "ours")
        losses[way] = step.model(**step.batch).loss
    torch.testing.assert_close(losses["ours"], losses["huggingface"], rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("small")
def test_useful_operations_without_globals():
    """Two examples of 8 tokens with windows of 2, one masked: pairs 8 x 3 - 2 = 22.

    A layer: four projections and the feed-forward block of 8 tokens, two products of the pairs; forward and
    backward are 3 times the products, 3.5 times the attention.
    """
    case = case_of("minilm", length=8, window=2, global_tokens=0)
    linear = 2 * 8 * (4 * 32 * 32 + 2 * 32 * 64)
    head = 2 * 32 * (32 + 300)
    assert case.useful_operations == 2 * (2 * (3 * linear + 3.5 * 4 * 32 * 22) + 3 * head)


def test_operations_of_a_pair():
    """Tokens 0 and 3 global, 1, 2 and 4 local, one token to each side; 8 wide, 16 inside.

    query-key pairs: local to local 2 + 2 + 1, local to global 6, global to all 10                       = 21
    first layer: five projections of 5 tokens; pairs; output projection and feed-forward of 5 tokens
    last layer: key and value of 5, query of 2; 10 pairs; the rest of 2 tokens
    """
    sizes = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = LongformerConfig(**sizes, attention_window=[2, 2])
    projection, pair, rest = 2 * 8 * 8, 4 * 8, 2 * (8 * 8 + 2 * 8 * 16)
    first = 25 * projection + 21 * pair + 5 * rest
    last = 12 * projection + 10 * pair + 2 * rest
    scorer = 2 * 1024 * (4 * 8 + 1)
    is_global = torch.tensor([[True, False, False, True, False]])
    assert benchmark.pair_operations(config, is_global) == first + last + scorer == 77_792


@pytest.mark.usefixtures("memory_measured")
def test_rows_are_complete(command):
    options = "--parts tiny --globals 15% --precisions float32 --repeats 2 --patience 0"
    written, printed = command(benchmark, options)
    (row,) = written["rows"]
    assert (row["precision"], row["global_tokens"]) == ("float32", 77)
    assert row["pairs_of_steps"] == 1, "its patience ended"
    faster = row["ours_tokens_per_second"] / row["huggingface_tokens_per_second"]
    assert row["times_faster"] == row["times_faster_min"] == pytest.approx(faster)
    assert min(row["of_rate"], row["matmul_gflops"]) > 0
    # 1 million weights: their gradients and two averages are 4 MB each
    assert all(11 < row[f"{way}_mib"] < 1000 for way in benchmark.WAYS)
    assert timing.table(benchmark.COLUMNS, [row]) in printed


class Dying(str):
    """A name that ends the process to which it is sent, as the system ends one that takes too much memory."""

    def __reduce__(self):
        return os._exit, (9,)


@pytest.mark.usefixtures("memory_measured")
def test_a_peer_without_memory_leaves_its_numbers_out():
    form = {"parts": ["tiny"], "shares": ["0"], "precisions": ["float32"]}
    (case,) = benchmark.cases(**form)
    bar = Progress(total=1)
    pace = {"device": torch.device("cpu"), "repeats": 1, "patience": 0.0, "bar": bar}
    row = benchmark.measure(case, **pace, ways=(Dying("huggingface"), "ours"))
    assert row["huggingface_mib"] is row["huggingface_tokens_per_second"] is row["times_faster"] is None
    assert min(row["ours_tokens_per_second"], row["ours_mib"], row["of_rate"]) > 0
    assert timing.table(benchmark.COLUMNS, [row]).count("out of memory") == 3
    with pytest.raises(MemoryError, match="our model had no memory for a step of Case"):
        benchmark.measure(case, **pace, ways=("huggingface", Dying("ours")))
