"""The static tagger: equal to the equations in loops; rows, filling, micro-batches, files change nothing."""

import copy
import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from cdlm_lab.models.checkpoint import CheckpointError
from cdlm_lab.models.tagging import (
    StaticTagger,
    StaticTaggerConfig,
    equal_hidden_size,
    load_static_tagger,
    nearest_size,
    new_static_tagger,
    rows_at,
)

SIZE, K = 6, 3
TAGS = ("O", "B-PER", "I-PER", "B-GPE", "I-GPE")
LENGTHS, CONTEXT = (5, 3, 1, 4), 12  # words of sentences to be tagged, and words of the context
NONE = (2, 0)  # row and number of a word without occurrences
FORM = {"size": SIZE, "tags": TAGS, "hidden_size": 4, "distance_size": 3}
KINDS = {
    "bilstm": FORM,
    "sentence": FORM | {"context_order": "sentence"},
    "linear": FORM | {"context_encoder": "linear"},
    "baseline": FORM | {"context": False},
}
SENTENCES = (4, 6, 2)  # words of the sentences that the context is of
KEPT = ("size", "tags", "hidden_size", "dropout", "distance_size")
KEPT += ("context", "context_encoder", "context_order")
CONTEXT_KEYS = ("context", "places", "buckets")
BY_ROW = ("targets", "attention_mask", "places", "buckets", "labels")
Batch = dict[str, torch.Tensor]


def tagger_of(kind: str) -> StaticTagger:
    tagger = new_static_tagger(StaticTaggerConfig(**KINDS[kind]), seed=3)
    with torch.no_grad():  # so that attention is far from even
        for weight in tagger.parameters():
            weight.mul_(2)
    return tagger


def masked(lengths: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Encodings, 0 at filling, and their mask."""
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.randn(*mask.shape, SIZE) * mask[..., None], mask


def batch_of(kind: str) -> Batch:
    """Four sentences over the words of others; some words have all K occurrences, most fewer, one none."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(1)
        targets, mask = masked(LENGTHS)
        context = torch.randn(CONTEXT, SIZE)
        places = torch.randint(CONTEXT - 3, (*mask.shape, K))  # the last three are nobody's occurrence
        there = (torch.rand(places.shape) < 0.6) & mask[..., None]
        there[0, 0], there[NONE] = True, False
        labels = torch.randint(len(TAGS), mask.shape).masked_fill(~mask, -100)
        labels[1, 1] = -100
        batch = {
            "targets": targets,
            "attention_mask": mask,
            "context": context,
            "places": places.masked_fill(~there, -1),
            "buckets": torch.randint(9, places.shape).masked_fill(~there, 0),
            "labels": labels,
        }
    if kind == "sentence":
        batch["context_lengths"] = torch.tensor(SENTENCES)
    return {name: values for name, values in batch.items() if kind != "baseline" or name not in CONTEXT_KEYS}


def rows_of(batch: Batch, rows: slice) -> Batch:
    return {name: values[rows] if name in BY_ROW else values for name, values in batch.items()}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def tagger(kind: str) -> StaticTagger:
    return tagger_of(kind)


@pytest.fixture
def batch(kind: str) -> Batch:
    return batch_of(kind)


def encoded(tagger: StaticTagger, words: torch.Tensor) -> torch.Tensor:
    """f_c of words in a row, (words, 2 * hidden_size)."""
    read = tagger.context_encoder(words[None])
    return (read if isinstance(read, torch.Tensor) else read[0])[0]


def slow_occurrences(tagger: StaticTagger, batch: Batch, row: int) -> dict[tuple[int, int], torch.Tensor]:
    """f_c of each occurrence of the words of a sentence, by number of the word and k.

    Equation 5: e_c(x)^(k) = f_c(e_c(x_1)^(k), ..., e_c(x_n)^(k)), for each k one reading of the sentence
    itself, in which the k-th occurrence of each word stands for the word; 0 stands for one that is not there.
    With the context order "sentence" each sentence of the context is read instead.
    """
    if tagger.config.context_order == "sentence":
        every = torch.cat([encoded(tagger, words) for words in batch["context"].split(SENTENCES)])
        places = batch["places"][row, : LENGTHS[row]]
        return {(i, k): every[places[i, k]] for i, k in (places >= 0).nonzero().tolist()}
    found = {}
    for k in range(K):
        places = batch["places"][row, : LENGTHS[row], k].tolist()
        x = [torch.zeros(SIZE) if place == -1 else batch["context"][place] for place in places]
        states = encoded(tagger, torch.stack(x))
        found |= {(i, k): states[i] for i, place in enumerate(places) if place != -1}
    return found


def slow_logits(tagger: StaticTagger, batch: Batch, row: int) -> torch.Tensor:
    """The logits of one sentence, (words, tags), by equations 1 to 5: word by word."""
    states = encoded(tagger, batch["targets"][row, : LENGTHS[row]])
    if tagger.attention is not None:
        found = slow_occurrences(tagger, batch, row)
        read = []
        for number, state in enumerate(states):
            occurrences = [
                torch.cat([one, tagger.attention.distances.weight[batch["buckets"][row, number, k]]])
                for (i, k), one in found.items()
                if i == number
            ]
            shares = [math.exp(tagger.attention.score.weight[0].detach() @ one) for one in occurrences]
            c = torch.zeros(tagger.attention.output_size)
            for share, one in zip(shares, occurrences, strict=True):
                c = c + share / sum(shares) * one
            read.append(torch.cat([state, c]))
        states = torch.stack(read)
    return tagger.classifier(tagger.sequence_encoder(states[None])[0][0])


@torch.no_grad()
def test_equals_the_equations_in_loops(tagger: StaticTagger, batch: Batch):
    out = tagger(**batch)
    assert out.logits.shape == (4, 5, len(TAGS))
    for row, length in enumerate(LENGTHS):
        torch.testing.assert_close(
            out.logits[row, :length], slow_logits(tagger, batch, row), rtol=1e-4, atol=1e-5
        )
    assert out.logits.std() > 0.1, "all the same would show nothing"
    if tagger.attention is None:
        assert out.weights is None
        return
    there = batch["places"] >= 0
    assert out.weights.shape == there.shape
    assert not out.weights[~there].any()
    torch.testing.assert_close(out.weights.sum(-1), there.any(-1).float())
    assert not there[NONE].any()


def test_the_loss_is_the_definition(tagger: StaticTagger, batch: Batch):
    out = tagger(**batch)
    losses = [
        -math.log(out.logits[row, word].softmax(-1)[batch["labels"][row, word]].item())
        for row, length in enumerate(LENGTHS)
        for word in range(length)
        if (row, word) != (1, 1)
    ]
    assert len(losses) == 12
    assert out.loss.item() == pytest.approx(sum(losses) / 12, rel=1e-5)
    assert tagger(**{name: values for name, values in batch.items() if name != "labels"}).loss is None


def test_a_row_alone_is_the_row_in_its_batch(tagger: StaticTagger, batch: Batch):
    together = tagger(**batch)
    for row, length in enumerate(LENGTHS):
        alone = tagger(**rows_of(batch, slice(row, row + 1)))
        torch.testing.assert_close(alone.logits[0], together.logits[row], rtol=1e-4, atol=1e-6)
        cut = {name: values[:, :length] if name in BY_ROW else values for name, values in batch.items()}
        alone = tagger(**rows_of(cut, slice(row, row + 1)))
        torch.testing.assert_close(alone.logits[0], together.logits[row, :length], rtol=1e-4, atol=1e-6)


def test_filling_is_inert(tagger: StaticTagger, batch: Batch):
    expected = tagger(**batch)
    pad = torch.nn.functional.pad
    targets = batch["targets"].masked_fill(~batch["attention_mask"][..., None], 7.0)
    wider = batch | {
        "targets": pad(targets, (0, 0, 0, 2), value=9.0),
        "attention_mask": pad(batch["attention_mask"], (0, 2)),
        "labels": pad(batch["labels"], (0, 2), value=-100),
    }
    if "context" in batch:
        there = batch["places"] >= 0
        if "context_lengths" in batch:
            wider["context_lengths"] = torch.tensor([*SENTENCES, 3])
        wider |= {
            "context": pad(batch["context"], (0, 0, 0, 3), value=8.0),
            "places": pad(batch["places"], (0, 1, 0, 2), value=-1),  # one occurrence more for each
            "buckets": pad(batch["buckets"].masked_fill(~there, 5), (0, 1, 0, 2), value=6),
        }
    found = tagger(**wider)
    words = batch["attention_mask"]
    torch.testing.assert_close(found.logits[:, :5][words], expected.logits[words], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(found.loss, expected.loss)
    if "context" in batch:
        torch.testing.assert_close(found.weights[:, :5, :K], expected.weights)


def test_every_weight_gets_a_gradient(tagger: StaticTagger, batch: Batch):
    tagger(**batch).loss.backward()
    unused = [name for name, weight in tagger.named_parameters() if not weight.grad.any()]
    assert unused == []
    if tagger.attention is not None:  # a bucket that is nowhere is not learnt
        used = set(batch["buckets"][batch["places"] >= 0].tolist())
        assert {n for n in range(9) if tagger.attention.distances.weight.grad[n].any()} == used


def test_micro_batches_add_up_to_the_full_batch(tagger: StaticTagger, batch: Batch):
    twin = copy.deepcopy(tagger)
    tagger(**batch).loss.backward()
    for rows in (slice(0, 1), slice(1, 3), slice(3, 4)):
        twin(**rows_of(batch, rows), num_items_in_batch=torch.tensor(12)).loss.backward()
    for (name, weight), other in zip(tagger.named_parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(weight.grad, other.grad, rtol=1e-4, atol=1e-6, msg=name)


@torch.no_grad()
def test_words_that_are_nobodys_occurrence_change_nothing():
    """Equation 5 reads the occurrences of the words of the sentence, and none of the words around them."""
    batch = batch_of("bilstm")
    others = sorted(set(range(CONTEXT)) - set(batch["places"].flatten().tolist()))
    assert others
    changed = batch | {"context": batch["context"].clone()}
    changed["context"][others] += 3
    for kind, same in (("bilstm", True), ("linear", True), ("sentence", False)):
        tagger = tagger_of(kind)
        lengths = {} if same else {"context_lengths": torch.tensor(SENTENCES)}
        expected, found = tagger(**batch, **lengths), tagger(**changed, **lengths)
        assert torch.equal(found.logits, expected.logits) is same, kind
        assert torch.equal(found.weights, expected.weights) is same, kind


@torch.no_grad()
def test_the_other_words_of_the_sentence_are_read_with_a_words_occurrence():
    """Equation 5 is no map of each word by itself: what stands for x_1 tells in c(x_2)."""
    batch = batch_of("bilstm")
    places = torch.full_like(batch["places"][:1], -1)
    places[0, :2, 0] = torch.tensor([4, 7])
    one = rows_of(batch, slice(0, 1)) | {"places": places}
    changed = one | {"context": one["context"].clone()}
    changed["context"][4] += 3
    for kind, moves in (("bilstm", True), ("linear", False)):
        tagger = tagger_of(kind)
        given = []
        tagger.attention.register_forward_hook(lambda _, __, out, given=given: given.append(out[0]))
        tagger(**one), tagger(**changed)
        first, second = (vectors[0, 1] for vectors in given)  # c of the second word
        assert torch.equal(first, second) is not moves, kind


def test_k_rows_of_the_length_of_the_sentence_are_computed():
    """One for each k of which any word has an occurrence, none for the others."""
    tagger, batch = tagger_of("bilstm"), batch_of("bilstm")
    sizes = []
    tagger.context_encoder.register_forward_hook(lambda _, given, __: sizes.append(len(given[0][0])))
    tagger(**batch)
    there = (batch["places"] >= 0).any(1)  # (batch, K)
    assert not there.all()
    rows = sum(length * int(there[row].sum()) for row, length in enumerate(LENGTHS))
    assert sizes == [sum(LENGTHS), rows]


@pytest.mark.parametrize("kind", ["bilstm", "linear"])
def test_a_word_of_the_context_is_as_if_there_were_one_for_each_occurrence(kind: str):
    """Against a copy of its own for each occurrence of each word, as in the released code."""
    tagger, batch = tagger_of(kind), batch_of(kind)
    there = batch["places"] >= 0
    row = batch["places"][there]
    copies = batch["places"].masked_scatter(there, torch.arange(len(row)))
    each = batch | {"context": batch["context"][row], "places": copies}
    once, often = tagger(**batch), tagger(**each)
    torch.testing.assert_close(once.logits, often.logits, rtol=1e-4, atol=1e-6)
    twin = copy.deepcopy(tagger)
    once.loss.backward()
    twin(**each).loss.backward()
    for (name, weight), other in zip(tagger.named_parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(weight.grad, other.grad, rtol=1e-3, atol=1e-6, msg=name)


@pytest.mark.parametrize("kind", ["bilstm", "sentence", "linear"])
@pytest.mark.parametrize("empty", ["no context", "no places", "no K"])
def test_words_without_any_occurrence(kind: str, empty: str):
    tagger, batch = tagger_of(kind), batch_of(kind)
    batch["places"][:] = -1
    expected = tagger(**batch)
    if empty == "no context":
        batch["context"] = torch.zeros(0, SIZE)
        batch |= {"context_lengths": torch.zeros(0).long()} if kind == "sentence" else {}
    elif empty == "no K":
        batch |= {"places": batch["places"][:, :, :0], "buckets": batch["buckets"][:, :, :0]}
    out = tagger(**batch)
    torch.testing.assert_close(out.logits, expected.logits)
    assert not out.weights.any()
    out.loss.backward()
    for name, weight in tagger.named_parameters():
        assert weight.grad is None or weight.grad.isfinite().all(), name
    assert tagger.sequence_encoder.weight_ih_l0.grad.any()


def test_a_batch_without_labels_to_learn_gives_no_nan(tagger: StaticTagger, batch: Batch):
    batch["labels"][:] = -100
    out = tagger(**batch)
    assert out.loss.item() == 0
    out.loss.backward()
    assert all(weight.grad.isfinite().all() for weight in tagger.parameters())


def test_in_half_precision_logits_and_loss_are_float32(tagger: StaticTagger, batch: Batch):
    with torch.autocast("cpu", torch.bfloat16):
        out = tagger(**batch)
    assert {values.dtype for values in out.values()} == {torch.float32}
    assert out.loss.item() == pytest.approx(tagger(**batch).loss.item(), rel=0.05)


def test_context_tells_apart_what_a_sentence_does_not():
    """The same sentence twice, with two tags; what the word is elsewhere decides."""
    one = torch.randn(1, 3, SIZE, generator=torch.Generator().manual_seed(0))
    elsewhere = torch.randn(2, SIZE, generator=torch.Generator().manual_seed(1))
    batch = {
        "targets": one.expand(2, 3, SIZE),
        "attention_mask": torch.ones(2, 3, dtype=torch.bool),
        "labels": torch.tensor([[0, 1, 0], [0, 3, 0]]),
    }
    context = {
        "context": elsewhere,
        "places": torch.tensor([[[0]] * 3, [[1]] * 3]),
        "buckets": torch.ones(2, 3, 1, dtype=torch.int64),
    }
    losses = {}
    for kind, given in (("bilstm", batch | context), ("baseline", batch)):
        tagger = new_static_tagger(StaticTaggerConfig(**KINDS[kind]))
        optimiser = torch.optim.AdamW(tagger.parameters(), lr=0.05)
        for _ in range(60):
            loss = tagger(**given).loss
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        losses[kind] = loss.item()
    assert losses["bilstm"] < 0.02
    assert losses["baseline"] > math.log(2) / 3 - 1e-3, "one word of three is a toss of a coin"


def test_context_must_be_given_to_who_takes_it():
    for kind, given in (("baseline", "bilstm"), ("bilstm", "baseline")):
        with pytest.raises(ValueError, match="this is one with" + ("out" if kind == "baseline" else "$")):
            tagger_of(kind)(**batch_of(given))
    batch = batch_of("linear")
    del batch["buckets"]
    with pytest.raises(ValueError, match="takes context, places and buckets"):
        tagger_of("linear")(**batch)
    for kind, given in (("bilstm", "sentence"), ("sentence", "bilstm"), ("linear", "sentence")):
        with pytest.raises(ValueError, match="context_lengths are for the context order 'sentence'"):
            tagger_of(kind)(**batch_of(given))


def test_save_and_load_agree(tagger: StaticTagger, batch: Batch, tmp_path: Path):
    tagger.save_pretrained(tmp_path)
    assert [file.name for file in tmp_path.glob("*.safetensors")] == ["model.safetensors"]
    assert not list(tmp_path.glob("*.bin"))
    again = load_static_tagger(tmp_path)
    assert not again.training
    assert torch.equal(again(**batch).logits, tagger(**batch).logits)
    for name in KEPT:
        assert getattr(again.config, name) == getattr(tagger.config, name)
    assert again.config.tags == list(TAGS)


def test_what_cannot_be_loaded(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        load_static_tagger(tmp_path)
    tagger_of("bilstm").save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["attention.score.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"missing: attention\.score\.weight"):
        load_static_tagger(tmp_path)


def test_a_tagger_of_before_the_order_was_written_down_reads_sentences(tmp_path: Path):
    """As those in older run folders, which learned to."""
    tagger, batch = tagger_of("sentence"), batch_of("sentence")
    tagger.save_pretrained(tmp_path)
    told = json.loads((tmp_path / "config.json").read_text())
    assert told.pop("context_order") == "sentence"
    (tmp_path / "config.json").write_text(json.dumps(told))
    assert torch.equal(load_static_tagger(tmp_path)(**batch).logits, tagger(**batch).logits)


def test_weights_are_drawn_from_the_seed_as_pytorch_does():
    before = torch.get_rng_state()
    first, same, other = (new_static_tagger(StaticTaggerConfig(**FORM), seed=seed) for seed in (0, 0, 1))
    equal_hidden_size(StaticTaggerConfig(**FORM))
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, same.state_dict()[name])
        assert not torch.equal(weight, other.state_dict()[name]), name
    wide = new_static_tagger(StaticTaggerConfig(size=100, tags=TAGS, hidden_size=64))
    lstm = wide.context_encoder.weight_ih_l0
    assert lstm.abs().max().item() == pytest.approx(1 / math.sqrt(64), rel=0.01)
    assert wide.attention.distances.weight.std().item() == pytest.approx(1, rel=0.15)


def parameters(**form: object) -> int:
    return StaticTagger(StaticTaggerConfig(**form)).num_parameters()


def test_table_6_is_an_lstm_of_256_in_each_direction_over_four_layers():
    of_bert = {"size": 4 * 768, "tags": [str(number) for number in range(11)]}
    expected = 8 * 256 * (3072 + 256 + 2) + 8 * 256 * (1024 + 20 + 256 + 2) + 9 * 20 + 532 + 513 * 11
    assert parameters(**of_bert) == expected == 9_492_691
    assert parameters(**of_bert, context=False) == 8_402_443
    config = StaticTaggerConfig(**of_bert)
    assert equal_hidden_size(config) == 282
    assert parameters(**of_bert, context=False, hidden_size=282) == 9_490_439


@pytest.mark.parametrize("kind", ["bilstm", "linear"])
def test_no_baseline_is_nearer_than_that_of_the_equal_size(kind: str):
    wanted = parameters(**KINDS[kind])
    gaps = [
        abs(parameters(**(FORM | {"context": False, "hidden_size": size})) - wanted) for size in range(1, 30)
    ]
    assert 1 + gaps.index(min(gaps)) == equal_hidden_size(StaticTaggerConfig(**KINDS[kind]))


@pytest.mark.parametrize(("wanted", "size"), [(0, 1), (1, 1), (4, 2), (6, 2), (7, 3), (100, 10), (111, 11)])
def test_the_nearest_size_on_either_side(wanted: int, size: int):
    assert nearest_size(lambda number: number * number, wanted) == size


def test_dropout_is_before_the_last_layer_alone(tagger: StaticTagger):
    dropouts = [module for module in tagger.modules() if isinstance(module, torch.nn.Dropout)]
    assert [dropout.p for dropout in dropouts] == [0.25]
    assert tagger.sequence_encoder.dropout == 0


def test_states_by_their_rows():
    states = torch.arange(12.0).view(6, 2)
    assert rows_at(states, torch.tensor([[5, 1], [3, -1]])).tolist() == [
        [[10, 11], [2, 3]],
        [[6, 7], [0, 0]],
    ]
    assert not rows_at(states[:0], torch.full((4, 3), -1)).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 0}, "size is 0"),
        ({"tags": ()}, r"tags are \(\); give each tag once"),
        ({"tags": ("O", "O")}, "give each tag once"),
        ({"tags": "O"}, "give each tag once"),
        ({"context_encoder": "gru"}, "context_encoder is 'gru'; choose one of bilstm, linear"),
        ({"context_order": "sentences"}, "context_order is 'sentences'; choose one of target, sentence"),
        ({"context_encoder": "linear", "context": False}, "'linear' needs context"),
    ],
)
def test_forms_that_cannot_be(change: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        StaticTaggerConfig(**(FORM | change))
