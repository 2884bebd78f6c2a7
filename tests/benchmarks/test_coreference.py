"""The benchmark of pair scoring: arithmetic by hand, both ways agree, the command from end to end."""

import numpy as np
import pytest
import torch
from transformers import LongformerConfig

from cdlm_lab.attention.layer import LocalGlobalSelfAttention
from cdlm_lab.benchmarks import coreference as benchmark
from cdlm_lab.encoders.encoder import TinySizes
from cdlm_lab.examples.collate import batches_by_length
from cdlm_lab.tasks.coreference.examples import MentionPairExamples
from cdlm_lab.tasks.coreference.model import PairScorer

WINDOW = 16
SIZES = TinySizes(hidden_size=32, layers=2, heads=4, intermediate_size=48, vocabulary=400)
FIELDS = {
    *("machine", "torch", "transformers", "dtype", "matmul_gflops", "of_peak"),
    *("model", "parameters", "window", "max_length", "context", "batch_size", "repeats"),
    *("all_pairs", "pairs", "tokens_per_pair", "globals_per_pair", "gflop_per_pair"),
    *("pairs_per_second", "times_faster", "times_faster_min", "times_faster_max"),
    *("padding", "largest_difference", "probability_min", "probability_max"),
}
Scorers = dict[str, PairScorer]


@pytest.fixture(scope="module")
def both() -> tuple[Scorers, MentionPairExamples]:
    form = {"window": WINDOW, "max_length": 512, "context": "sentences", "stories": 2}
    return benchmark.scorers_and_examples(sizes=SIZES, **form)


def test_useful_operations():
    """Tokens 0 and 3 global, 1, 2 and 4 local, one token to each side; 8 wide, 16 inside.

    query-key pairs: local to local 2 + 2 + 1, local to global 6, global to all 10                       = 21
    first layer: five projections of 5 tokens; pairs; output projection and feed-forward of 5 tokens
    last layer: key and value of 5, query of 2; 10 pairs; the rest of 2 tokens
    """
    sizes = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = LongformerConfig(**sizes, attention_window=[2, 2])
    example = {"global_attention_mask": np.array([1, 0, 0, 1, 0])}
    projection, pair, rest = 2 * 8 * 8, 4 * 8, 2 * (8 * 8 + 2 * 8 * 16)
    first = 25 * projection + 21 * pair + 5 * rest
    last = 12 * projection + 10 * pair + 2 * rest
    scorer = 2 * 1024 * (4 * 8 + 1)
    assert benchmark.useful_operations(config, example) == first + last + scorer == 77_792


def test_both_scorers_share_their_weights_and_only_one_has_our_attention(both):
    theirs, ours = (both[0][name].state_dict() for name in benchmark.WAYS)
    assert list(theirs) == list(ours)
    assert all(torch.equal(theirs[name], ours[name]) for name in theirs)
    replaced = {
        name: sum(isinstance(module, LocalGlobalSelfAttention) for module in scorer.modules())
        for name, scorer in both[0].items()
    }
    assert replaced == {"huggingface": 0, "ours": SIZES.layers}


def test_batches_are_those_of_all_pairs_and_evenly_spaced(both):
    _, examples = both
    sizes = [examples.size_of(number) for number in range(len(examples))]
    whole = batches_by_length([size.length for size in sizes], [size.global_count for size in sizes], 4)
    chosen = [whole.index(batch) for batch in benchmark.spaced_batches(examples, batch_size=4, pairs=12)]
    sixth = len(whole) / 6
    assert chosen == [int(sixth), int(3 * sixth), int(5 * sixth)]
    assert benchmark.spaced_batches(examples, batch_size=4, pairs=10**6) == whole


def test_both_ways_give_the_same_probabilities_and_their_padding_is_counted(both):
    """Hugging Face fills each sequence up to a multiple of the window; ours to the longest of its batch."""
    scorers, examples = both
    batches = benchmark.spaced_batches(examples, batch_size=4, pairs=12)
    found = benchmark.measure(scorers, examples, batches=batches, dtype=torch.float32, repeats=3)
    assert found["largest_difference"] < 1e-5
    assert 0 < found["probability_min"] < found["probability_max"] - 1e-3 < 1
    assert 0 < found["times_faster_min"] <= found["times_faster"] <= found["times_faster_max"]

    def filled_up(length: int) -> int:
        return -(-length // WINDOW) * WINDOW

    lengths = [[examples.length_of(number) for number in batch] for batch in batches]
    tokens = sum(sum(batch) for batch in lengths)
    alone = sum(filled_up(length) for batch in lengths for length in batch)
    together = sum(len(batch) * filled_up(max(batch)) for batch in lengths)
    assert found["padding"]["huggingface"] == pytest.approx(1 - tokens / alone)
    assert 0 <= found["padding"]["ours"] <= 1 - tokens / together + 1e-9


def test_the_difference_is_that_of_the_same_pairs(both, monkeypatch: pytest.MonkeyPatch):
    """With another bias in one of the two the difference shows."""
    scorers, examples = both
    batches = benchmark.spaced_batches(examples, batch_size=4, pairs=4)
    bias = scorers["ours"].scorer[-1].bias
    monkeypatch.setattr(bias, "data", bias.data + 0.1)
    found = benchmark.measure(scorers, examples, batches=batches, dtype=torch.float32, repeats=1)
    assert 1e-4 < found["largest_difference"] < 0.1


def test_the_command(monkeypatch: pytest.MonkeyPatch, command):
    monkeypatch.setitem(benchmark.SIZES, "tiny", SIZES)
    options = "--model tiny --window 32 --max-length 256 --context documents --stories 2 --pairs 4"
    report, printed = command(benchmark, f"{options} --batch-size 2 --repeats 1 --threads 1")
    assert set(report) == FIELDS
    assert (report["pairs"], report["batch_size"], report["window"]) == (4, 2, 32)
    expected = ("1 CPU threads", "float32", "documents")
    assert (report["machine"], report["dtype"], report["context"]) == expected
    tokens = report["tokens_per_pair"]
    assert 0 < tokens["min"] <= tokens["median"] <= tokens["max"] <= 256
    assert report["largest_difference"] < 1e-5
    speeds = report["pairs_per_second"]
    limit = report["matmul_gflops"] / report["gflop_per_pair"]  # pairs per second at the peak
    assert report["of_peak"] == {name: pytest.approx(speeds[name] / limit) for name in benchmark.WAYS}
    # one run of each: the ratio is that of the two times
    assert report["times_faster"] == pytest.approx(speeds["ours"] / speeds["huggingface"])
    assert benchmark.described(report) in printed
