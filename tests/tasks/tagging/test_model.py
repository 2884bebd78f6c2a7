"""The static and the dynamic tagger equal the equations in loops; their context, sizes and files."""

from __future__ import annotations

import math
from pathlib import Path

import model_cases as cases
import pytest
import torch
from model_cases import DYNAMIC_HEADS, SIZE, TAGS, Batch, encoded_words, of_cases

from cdlm_lab.encoders.checkpoint import CheckpointError
from cdlm_lab.tasks.tagging import model as tagging
from cdlm_lab.tasks.tagging.model import (
    DynamicTagger,
    HeadLayers,
    StaticTagger,
    StaticTaggerConfig,
    TaggerHead,
)

every_static = of_cases("static tagger")
static_with_context = of_cases(*(f"static tagger {kind}" for kind in ("bilstm", "linear")))


def attended(attention: torch.nn.Module, encodings: list[torch.Tensor], buckets: list[int]) -> torch.Tensor:
    """Compute c of one word by equations 1 to 3, one occurrence after the other."""
    weights = attention.distances.weight
    vectors = [torch.cat([one, weights[bucket]]) for one, bucket in zip(encodings, buckets, strict=True)]
    shares = [math.exp(attention.score.weight[0].detach() @ one) for one in vectors]
    nothing = torch.zeros(attention.output_size)
    return sum((share / sum(shares) * one for share, one in zip(shares, vectors, strict=True)), nothing)


def encoded(tagger: StaticTagger, words: torch.Tensor) -> torch.Tensor:
    """Compute f_c of a sequence of words, (words, 2 * hidden_size)."""
    read = tagger.context_encoder(words[None])
    return (read if isinstance(read, torch.Tensor) else read[0])[0]


def slow_occurrences(tagger: StaticTagger, batch: Batch, row: int) -> dict[tuple[int, int], torch.Tensor]:
    """Compute f_c of each occurrence of the words of a sentence, as {(index of the word, k): f_c}.

    Equation 5: e_c(x)^(k) = f_c(e_c(x_1)^(k), ..., e_c(x_n)^(k)). For each k the sentence is read once with
    each word replaced by its k-th occurrence, or by 0 if there is none.
    """
    places = batch["places"][row][batch["attention_mask"][row]]
    actual = {}
    for k in range(places.shape[1]):
        of_k = places[:, k].tolist()
        x = [torch.zeros(SIZE) if place == -1 else batch["context"][place] for place in of_k]
        states = encoded(tagger, torch.stack(x))
        actual |= {(i, k): states[i] for i, place in enumerate(of_k) if place != -1}
    return actual


def slow_logits(tagger: StaticTagger, batch: Batch, row: int) -> torch.Tensor:
    """Compute the logits of one sentence, (words, tags), by equations 1 to 5, word by word."""
    states = encoded(tagger, batch["targets"][row][batch["attention_mask"][row]])
    if tagger.attention is not None:
        actual, read = slow_occurrences(tagger, batch, row), []
        for number, state in enumerate(states):
            own = [k for i, k in actual if i == number]
            buckets = [batch["buckets"][row, number, k] for k in own]
            c = attended(tagger.attention, [actual[number, k] for k in own], buckets)
            read.append(torch.cat([state, c]))
        states = torch.stack(read)
    return tagger.classifier(tagger.sequence_encoder(states[None])[0][0])


@every_static
@torch.no_grad()
def test_logits_and_weights_are_the_equations_in_loops(model: StaticTagger, batch: Batch):
    out = model(**batch)
    assert out.logits.shape == (4, 5, len(TAGS))
    for row, length in enumerate(batch["attention_mask"].sum(1)):
        expected = slow_logits(model, batch, row)
        torch.testing.assert_close(out.logits[row, :length], expected, rtol=1e-4, atol=1e-5)
    assert out.logits.std() > 0.1, "all the same would show nothing"
    if model.attention is None:
        assert out.weights is None
        return
    present = batch["places"] >= 0
    assert out.weights.shape == present.shape
    assert not out.weights[~present].any()
    torch.testing.assert_close(out.weights.sum(-1), present.any(-1).float())
    assert not present[batch["attention_mask"]].any(-1).all(), "a word has none"


@static_with_context
def test_a_bucket_that_is_nowhere_is_not_learnt(model: StaticTagger, batch: Batch):
    model(**batch).loss.backward()
    used = set(batch["buckets"][batch["places"] >= 0].tolist())
    assert {n for n in range(9) if model.attention.distances.weight.grad[n].any()} == used


@of_cases("static tagger bilstm", "static tagger linear", "dynamic tagger context")
@pytest.mark.parametrize("empty", ["no context", "no places", "no occurrences"])
def test_words_without_any_occurrence(empty: str, model: StaticTagger | DynamicTagger, batch: Batch):
    batch["places"][:] = -1
    expected = model(**batch)
    if empty == "no context" and "context" in batch:
        batch["context"] = torch.zeros(0, SIZE)
    elif empty == "no occurrences":
        batch |= {name: batch[name][:, :, :0] for name in ("places", "buckets")}
    out = model(**batch)
    torch.testing.assert_close(out.logits, expected.logits)
    assert not out.weights.any()
    out.loss.backward()
    for name, weight in model.named_parameters():
        assert weight.grad is None or weight.grad.isfinite().all(), name
    if isinstance(model, StaticTagger):
        assert model.sequence_encoder.weight_ih_l0.grad.any()


def test_context_must_be_given_to_a_tagger_with_it_alone(bert: Path):
    for kind, given in (("baseline", "bilstm"), ("bilstm", "baseline")):
        with pytest.raises(ValueError, match="this is one with" + ("out" if kind == "baseline" else "$")):
            cases.static_tagger(kind)[0](**encoded_words(given))
    batch = encoded_words("linear")
    del batch["buckets"]
    with pytest.raises(ValueError, match="takes context, places and buckets"):
        cases.static_tagger("linear")[0](**batch)
    for kind, given in (("lstm", "context"), ("context", "lstm")):
        dynamic = tagging.load_dynamic_tagger(bert, head=DYNAMIC_HEADS[kind], **FORM)[0]
        with pytest.raises(ValueError, match="places and buckets are for a tagger with context, which needs"):
            dynamic(**cases.tokens_of_words(DYNAMIC_HEADS[given]))


@every_static
def test_the_form_of_a_tagger_is_saved(model: StaticTagger, tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        tagging.load_static_tagger(tmp_path)
    model.save_pretrained(tmp_path)
    again = tagging.load_static_tagger(tmp_path)
    names = ("size", "tags", "hidden_size", "dropout", "distance_size", "context", "context_encoder")
    for name in names:
        assert getattr(again.config, name) == getattr(model.config, name)
    assert again.config.tags == list(TAGS)


def parameters(**form: object) -> int:
    return StaticTagger(StaticTaggerConfig(**form)).num_parameters()


def test_table_6_is_an_lstm_of_256_in_each_direction_over_four_layers():
    of_bert = {"size": 4 * 768, "tags": [str(number) for number in range(11)]}
    expected = 8 * 256 * (3072 + 256 + 2) + 8 * 256 * (1024 + 20 + 256 + 2) + 9 * 20 + 532 + 513 * 11
    assert parameters(**of_bert) == expected == 9_492_691
    assert parameters(**of_bert, context=False) == 8_402_443
    assert tagging.equal_hidden_size(StaticTaggerConfig(**of_bert)) == 282
    assert parameters(**of_bert, context=False, hidden_size=282) == 9_490_439


@pytest.mark.parametrize(("wanted", "size"), [(0, 1), (1, 1), (4, 2), (6, 2), (7, 3), (100, 10), (111, 11)])
def test_the_nearest_size_on_either_side(wanted: int, size: int):
    assert tagging.nearest_size(lambda number: number * number, wanted) == size


@every_static
def test_dropout_is_before_the_last_layer_alone(model: StaticTagger):
    dropouts = [module for module in model.modules() if isinstance(module, torch.nn.Dropout)]
    assert [dropout.p for dropout in dropouts] == [0.25]
    assert model.sequence_encoder.dropout == 0


def test_states_by_their_rows_and_words():
    states = torch.arange(12.0).view(6, 2)
    rows = tagging.rows_at(states, torch.tensor([[5, 1], [3, -1]]))
    assert rows.tolist() == [[[10, 11], [2, 3]], [[6, 7], [0, 0]]]
    assert not tagging.rows_at(states[:0], torch.full((4, 3), -1)).any()
    states = torch.tensor([[[9.0], [1.0], [3.0], [5.0], [9.0]], [[9.0], [7.0], [9.0], [9.0], [9.0]]])
    words = torch.tensor([[-1, 0, 0, 1, -1], [-1, 2, -1, -1, -1]])
    assert tagging.word_states(states, words, most=3)[..., 0].tolist() == [[2, 5, 0], [0, 0, 7]]


# ---- dynamic

FORM = {"max_length": 12, "window": 12}


of_context = pytest.mark.parametrize("case", ["dynamic tagger context"], indirect=True)


def slow_dynamic_logits(model: DynamicTagger, batch: Batch, row: int) -> torch.Tensor:
    """The logits of one sentence, (words, tags); sequences are encoded as often as a word attends to them."""

    def encoded(number: int) -> list[torch.Tensor]:
        pieces = [word for word in batch["words"][number].tolist() if word >= 0]
        ids = batch["input_ids"][number, : len(pieces) + 2]
        states = list(zip(model.longformer(ids[None]).last_hidden_state[0, 1:-1], pieces, strict=True))
        return [torch.stack([s for s, n in states if n == word]).mean(0) for word in range(pieces[-1] + 1)]

    states, layers = encoded(batch["target_rows"][row]), model.head
    if layers.attention is not None:
        for number, state in enumerate(states):
            places = batch["places"][row, number].tolist()
            occurrences = [encoded(at)[word] for at, word in places if at >= 0]
            present = [n for n, (at, _) in enumerate(places) if at >= 0]
            buckets = batch["buckets"][row, number][present].tolist()
            states[number] = torch.cat([state, attended(layers.attention, occurrences, buckets)])
    read = torch.stack(states)
    if layers.sequence_encoder is not None:
        read = layers.sequence_encoder(read[None])[0][0]
    return layers.classifier(read)


@of_cases("dynamic tagger")
@torch.no_grad()
def test_the_dynamic_tagger_equals_the_equations_in_loops(model: DynamicTagger, batch: Batch):
    out = model(**batch)
    assert out.logits.shape == (4, 5, 3)
    for row, words in enumerate(batch["word_mask"].sum(1)):
        expected = slow_dynamic_logits(model, batch, row)
        assert len(expected) == words
        torch.testing.assert_close(out.logits[row, :words], expected, rtol=1e-4, atol=1e-5)
    assert out.logits.std() > 0.02, "all the same would show nothing"
    if model.head.attention is None:
        assert out.weights is None
    else:
        present = batch["places"][..., 0] >= 0
        torch.testing.assert_close(out.weights.sum(-1), present.any(-1).float())
        assert not present[batch["word_mask"]].any(-1).all(), "a word has none"


@of_context
def test_the_encoder_learns_from_the_context_too(model: DynamicTagger, batch: Batch):
    """One pass over all sequences; tokens of sequences that are only attended to get gradients."""
    passes = []
    model.longformer.register_forward_hook(lambda _, given, __: passes.append(tuple(given[0].shape)))
    model(**batch).loss.backward()
    assert passes == [tuple(batch["input_ids"].shape)]
    rows = {row for row in batch["places"][..., 0].flatten().tolist() if row >= 0}
    others = rows - set(batch["target_rows"].tolist())
    assert others
    gradient = model.longformer.get_input_embeddings().weight.grad
    assert all(gradient[batch["input_ids"][row, 1]].any() for row in others)


def size_of(head: TaggerHead, size: int) -> int:
    return sum(weight.numel() for weight in HeadLayers(head, size=size).parameters())


def test_table_8_is_an_lstm_of_128_in_each_direction():
    head = TaggerHead(tags=[str(number) for number in range(11)])
    expected = 8 * 128 * (2 * 128 + 20 + 128 + 2) + 257 * 11 + 9 * 20 + 148
    assert size_of(head, 128) == expected == 418_899  # and 4,385,920 of BERT-tiny: 4.8M
    baseline = tagging.equal_head(head, size=128)
    assert (baseline.context, baseline.hidden_size) == (False, 172)
    assert abs(size_of(baseline, 128) - expected) < 2_000
    without = TaggerHead(tags=TAGS, sequence_encoder="none")
    assert tagging.equal_head(without, size=32).sequence_encoder == "bilstm"
