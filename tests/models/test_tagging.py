"""The static and the dynamic tagger equal the equations in loops; their context, sizes and files."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path

import pytest
import torch
from model_cases import (
    CONTEXT,
    CONTEXT_LENGTHS,
    DYNAMIC_HEADS,
    DYNAMIC_TAGS,
    NO_OCCURRENCE,
    OCCURRENCES_MOST,
    SIZE,
    STATIC_FORM,
    STATIC_KINDS,
    TAGGED_LENGTHS,
    TAGS,
    TARGET_WORDS,
    TARGETS,
    WITHOUT_OCCURRENCES,
    WORD_PIECES,
    Batch,
    assert_same_gradients,
    encoded_words,
    learn,
    rows_of_words,
    static_tagger,
    tokens_of_words,
)

from cdlm_lab.models.checkpoint import CheckpointError, own_randomness
from cdlm_lab.models.encoder import load_encoder
from cdlm_lab.models.tagging import (
    DynamicTagger,
    HeadLayers,
    StaticTagger,
    StaticTaggerConfig,
    TaggerHead,
    equal_head,
    equal_hidden_size,
    load_dynamic_tagger,
    load_static_tagger,
    nearest_size,
    new_static_tagger,
    rows_at,
    word_states,
)

KEPT = ("size", "tags", "hidden_size", "dropout", "distance_size")
KEPT += ("context", "context_encoder", "context_order")


@pytest.fixture(params=STATIC_KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def tagger(kind: str) -> StaticTagger:
    return static_tagger(kind)[0]


@pytest.fixture
def batch(kind: str) -> Batch:
    return encoded_words(kind)


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
        every = torch.cat([encoded(tagger, words) for words in batch["context"].split(CONTEXT_LENGTHS)])
        places = batch["places"][row, : TAGGED_LENGTHS[row]]
        return {(i, k): every[places[i, k]] for i, k in (places >= 0).nonzero().tolist()}
    actual = {}
    for k in range(OCCURRENCES_MOST):
        places = batch["places"][row, : TAGGED_LENGTHS[row], k].tolist()
        x = [torch.zeros(SIZE) if place == -1 else batch["context"][place] for place in places]
        states = encoded(tagger, torch.stack(x))
        actual |= {(i, k): states[i] for i, place in enumerate(places) if place != -1}
    return actual


def slow_logits(tagger: StaticTagger, batch: Batch, row: int) -> torch.Tensor:
    """The logits of one sentence, (words, tags), by equations 1 to 5: word by word."""
    states = encoded(tagger, batch["targets"][row, : TAGGED_LENGTHS[row]])
    if tagger.attention is not None:
        actual = slow_occurrences(tagger, batch, row)
        read = []
        for number, state in enumerate(states):
            occurrences = [
                torch.cat([one, tagger.attention.distances.weight[batch["buckets"][row, number, k]]])
                for (i, k), one in actual.items()
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
    for row, length in enumerate(TAGGED_LENGTHS):
        torch.testing.assert_close(
            out.logits[row, :length], slow_logits(tagger, batch, row), rtol=1e-4, atol=1e-5
        )
    assert out.logits.std() > 0.1, "all the same would show nothing"
    if tagger.attention is None:
        assert out.weights is None
        return
    present = batch["places"] >= 0
    assert out.weights.shape == present.shape
    assert not out.weights[~present].any()
    torch.testing.assert_close(out.weights.sum(-1), present.any(-1).float())
    assert not present[WITHOUT_OCCURRENCES].any()


def test_the_loss_is_the_definition(tagger: StaticTagger, batch: Batch):
    out = tagger(**batch)
    losses = [
        -math.log(out.logits[row, word].softmax(-1)[batch["labels"][row, word]].item())
        for row, length in enumerate(TAGGED_LENGTHS)
        for word in range(length)
        if (row, word) != (1, 1)
    ]
    assert len(losses) == 12
    assert out.loss.item() == pytest.approx(sum(losses) / 12, rel=1e-5)
    assert tagger(**{name: values for name, values in batch.items() if name != "labels"}).loss is None


def test_every_weight_gets_a_gradient(tagger: StaticTagger, batch: Batch):
    tagger(**batch).loss.backward()
    unused = [name for name, weight in tagger.named_parameters() if not weight.grad.any()]
    assert unused == []
    if tagger.attention is not None:  # a bucket that is nowhere is not learnt
        used = set(batch["buckets"][batch["places"] >= 0].tolist())
        assert {n for n in range(9) if tagger.attention.distances.weight.grad[n].any()} == used


@torch.no_grad()
def test_words_that_are_nobodys_occurrence_change_nothing():
    """Equation 5 reads the occurrences of the words of the sentence, and none of the words around them."""
    batch = encoded_words("bilstm")
    others = sorted(set(range(CONTEXT)) - set(batch["places"].flatten().tolist()))
    assert others
    changed = batch | {"context": batch["context"].clone()}
    changed["context"][others] += 3
    for kind, same in (("bilstm", True), ("linear", True), ("sentence", False)):
        tagger = static_tagger(kind)[0]
        lengths = {} if same else {"context_lengths": torch.tensor(CONTEXT_LENGTHS)}
        expected, actual = tagger(**batch, **lengths), tagger(**changed, **lengths)
        assert torch.equal(actual.logits, expected.logits) is same, kind
        assert torch.equal(actual.weights, expected.weights) is same, kind


@torch.no_grad()
def test_the_other_words_of_the_sentence_are_read_with_a_words_occurrence():
    """Equation 5 is no map of each word by itself: what stands for x_1 tells in c(x_2)."""
    batch = encoded_words("bilstm")
    places = torch.full_like(batch["places"][:1], -1)
    places[0, :2, 0] = torch.tensor([4, 7])
    one = rows_of_words(batch, slice(0, 1)) | {"places": places}
    changed = one | {"context": one["context"].clone()}
    changed["context"][4] += 3
    for kind, moves in (("bilstm", True), ("linear", False)):
        tagger = static_tagger(kind)[0]
        given = []
        tagger.attention.register_forward_hook(lambda _, __, out, given=given: given.append(out[0]))
        tagger(**one), tagger(**changed)
        first, second = (vectors[0, 1] for vectors in given)  # c of the second word
        assert torch.equal(first, second) is not moves, kind


def test_k_rows_of_the_length_of_the_sentence_are_computed():
    """One for each k of which any word has an occurrence, none for the others."""
    tagger, batch = static_tagger("bilstm")[0], encoded_words("bilstm")
    sizes = []
    tagger.context_encoder.register_forward_hook(lambda _, given, __: sizes.append(len(given[0][0])))
    tagger(**batch)
    present = (batch["places"] >= 0).any(1)  # (batch, OCCURRENCES_MOST)
    assert not present.all()
    rows = sum(length * int(present[row].sum()) for row, length in enumerate(TAGGED_LENGTHS))
    assert sizes == [sum(TAGGED_LENGTHS), rows]


@pytest.mark.parametrize("kind", ["bilstm", "linear"])
def test_a_word_of_the_context_is_as_if_there_were_one_for_each_occurrence(kind: str):
    """Against a copy of its own for each occurrence of each word, as in the released code."""
    tagger, batch = static_tagger(kind)[0], encoded_words(kind)
    present = batch["places"] >= 0
    row = batch["places"][present]
    copies = batch["places"].masked_scatter(present, torch.arange(len(row)))
    each = batch | {"context": batch["context"][row], "places": copies}
    once, often = tagger(**batch), tagger(**each)
    torch.testing.assert_close(once.logits, often.logits, rtol=1e-4, atol=1e-6)
    twin = copy.deepcopy(tagger)
    once.loss.backward()
    twin(**each).loss.backward()
    assert_same_gradients(tagger, twin, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("kind", ["bilstm", "sentence", "linear"])
@pytest.mark.parametrize("empty", ["no context", "no places", "no OCCURRENCES_MOST"])
def test_words_without_any_occurrence(kind: str, empty: str):
    tagger, batch = static_tagger(kind)[0], encoded_words(kind)
    batch["places"][:] = -1
    expected = tagger(**batch)
    if empty == "no context":
        batch["context"] = torch.zeros(0, SIZE)
        batch |= {"context_lengths": torch.zeros(0).long()} if kind == "sentence" else {}
    elif empty == "no OCCURRENCES_MOST":
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
        tagger = new_static_tagger(StaticTaggerConfig(**STATIC_KINDS[kind]))
        losses[kind] = learn(tagger, given, steps=60, rate=0.05).loss.item()
    assert losses["bilstm"] < 0.02
    assert losses["baseline"] > math.log(2) / 3 - 1e-3, "one word of three is a toss of a coin"


def test_context_must_be_given_to_who_takes_it():
    for kind, given in (("baseline", "bilstm"), ("bilstm", "baseline")):
        with pytest.raises(ValueError, match="this is one with" + ("out" if kind == "baseline" else "$")):
            static_tagger(kind)[0](**encoded_words(given))
    batch = encoded_words("linear")
    del batch["buckets"]
    with pytest.raises(ValueError, match="takes context, places and buckets"):
        static_tagger("linear")[0](**batch)
    for kind, given in (("bilstm", "sentence"), ("sentence", "bilstm"), ("linear", "sentence")):
        with pytest.raises(ValueError, match="context_lengths are for the context order 'sentence'"):
            static_tagger(kind)[0](**encoded_words(given))


def test_the_form_of_a_tagger_is_saved(tagger: StaticTagger, tmp_path: Path):
    tagger.save_pretrained(tmp_path)
    again = load_static_tagger(tmp_path)
    for name in KEPT:
        assert getattr(again.config, name) == getattr(tagger.config, name)
    assert again.config.tags == list(TAGS)


def test_what_cannot_be_loaded(tmp_path: Path):
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        load_static_tagger(tmp_path)


def test_a_tagger_of_before_the_order_was_written_down_reads_sentences(tmp_path: Path):
    """As those in older run folders, which learned to."""
    tagger, batch = static_tagger("sentence")[0], encoded_words("sentence")
    tagger.save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    assert values.pop("context_order") == "sentence"
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert torch.equal(load_static_tagger(tmp_path)(**batch).logits, tagger(**batch).logits)


def test_weights_are_drawn_from_the_seed_as_pytorch_does():
    before = torch.get_rng_state()
    first, same, other = (
        new_static_tagger(StaticTaggerConfig(**STATIC_FORM), seed=seed) for seed in (0, 0, 1)
    )
    equal_hidden_size(StaticTaggerConfig(**STATIC_FORM))
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
    wanted = parameters(**STATIC_KINDS[kind])
    gaps = [
        abs(parameters(**(STATIC_FORM | {"context": False, "hidden_size": size})) - wanted)
        for size in range(1, 30)
    ]
    assert 1 + gaps.index(min(gaps)) == equal_hidden_size(StaticTaggerConfig(**STATIC_KINDS[kind]))


@pytest.mark.parametrize(("wanted", "size"), [(0, 1), (1, 1), (4, 2), (6, 2), (7, 3), (100, 10), (111, 11)])
def test_the_nearest_size_on_either_side(wanted: int, size: int):
    assert nearest_size(lambda number: number * number, wanted) == size


def test_dropout_is_before_the_last_layer_alone(tagger: StaticTagger):
    dropouts = [module for module in tagger.modules() if isinstance(module, torch.nn.Dropout)]
    assert [dropout.p for dropout in dropouts] == [0.25]
    assert tagger.sequence_encoder.dropout == 0


def test_states_by_their_rows():
    states = torch.arange(12.0).view(6, 2)
    assert rows_at(states, torch.tensor([[5, 1], [3, -1]])).tolist() == [[[10, 11], [2, 3]], [[6, 7], [0, 0]]]
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
        StaticTaggerConfig(**(STATIC_FORM | change))


FORM = {"max_length": 12, "window": 12}


@pytest.fixture(params=DYNAMIC_HEADS)
def head(request: pytest.FixtureRequest) -> TaggerHead:
    return DYNAMIC_HEADS[request.param]


@pytest.fixture
def dynamic(bert: Path, head: TaggerHead) -> DynamicTagger:
    return load_dynamic_tagger(bert, head=head, **FORM)[0]


@pytest.fixture
def token_batch(head: TaggerHead) -> Batch:
    return tokens_of_words(head)


def slow_dynamic_logits(dynamic: DynamicTagger, token_batch: Batch, row: int) -> torch.Tensor:
    """The logits of one sentence, (words, tags): each sequence through the encoder by itself, as often as a
    word attends to it."""

    def encoded(number: int) -> list[torch.Tensor]:
        ids = token_batch["input_ids"][number, : len(WORD_PIECES[number]) + 2]
        states = dynamic.longformer(ids[None]).last_hidden_state[0, 1:-1]
        return [
            torch.stack([s for s, n in zip(states, WORD_PIECES[number], strict=True) if n == word]).mean(0)
            for word in range(WORD_PIECES[number][-1] + 1)
        ]

    states, layers = encoded(TARGETS[row]), dynamic.head
    if layers.attention is not None:
        for number, state in enumerate(states):
            places, buckets = (
                token_batch["places"][row, number].tolist(),
                token_batch["buckets"][row, number].tolist(),
            )
            occurrences = [
                torch.cat([encoded(at)[word], layers.attention.distances.weight[bucket]])
                for (at, word), bucket in zip(places, buckets, strict=True)
                if at >= 0
            ]
            shares = [math.exp(layers.attention.score.weight[0] @ one) for one in occurrences]
            c = torch.zeros(layers.attention.output_size)
            for share, one in zip(shares, occurrences, strict=True):
                c = c + share / sum(shares) * one
            states[number] = torch.cat([state, c])
    read = torch.stack(states)
    if layers.sequence_encoder is not None:
        read = layers.sequence_encoder(read[None])[0][0]
    return layers.classifier(read)


@torch.no_grad()
def test_the_dynamic_tagger_equals_the_equations_in_loops(dynamic: DynamicTagger, token_batch: Batch):
    out = dynamic(**token_batch)
    assert out.logits.shape == (2, 6, 3)
    for row, words in enumerate(TARGET_WORDS):
        expected = slow_dynamic_logits(dynamic, token_batch, row)
        assert len(expected) == words
        torch.testing.assert_close(out.logits[row, :words], expected, rtol=1e-4, atol=1e-5)
    assert out.logits.std() > 0.02, "all the same would show nothing"
    if dynamic.head.attention is None:
        assert out.weights is None
    else:
        present = token_batch["places"][..., 0] >= 0
        torch.testing.assert_close(out.weights.sum(-1), present.any(-1).float())
        assert not out.weights[NO_OCCURRENCE].any()


def test_the_loss_is_the_mean_over_labelled_words(dynamic: DynamicTagger, token_batch: Batch):
    out = dynamic(**token_batch)
    p = out.logits.double().softmax(-1)
    right = [(0, 0, 0), (0, 1, 1), (0, 2, 2), (0, 4, 0), (0, 5, 1), (1, 0, 1), (1, 1, 2), (1, 2, 0)]
    assert out.loss.item() == pytest.approx(sum(-math.log(p[at].item()) for at in right) / 8, rel=1e-5)


def test_the_encoder_learns_from_the_context_too(bert: Path):
    """One pass over all sequences; the tokens of those that are only attended to get gradients."""
    head = DYNAMIC_HEADS["context"]
    dynamic, token_batch = (load_dynamic_tagger(bert, head=head, **FORM)[0], tokens_of_words(head))
    passes = []
    dynamic.longformer.register_forward_hook(lambda _, given, __: passes.append(tuple(given[0].shape)))
    dynamic(**token_batch).loss.backward()
    assert passes == [(4, 9)]
    attended = {row for row in token_batch["places"][..., 0].flatten().tolist() if row >= 0}
    assert attended - set(TARGETS)
    gradient = dynamic.longformer.get_input_embeddings().weight.grad
    for row in attended - set(TARGETS):
        assert gradient[token_batch["input_ids"][row, 1]].any()


def test_a_sequence_once_is_a_sequence_for_each_word(bert: Path):
    """Against duplicates, as in the paper."""
    head = DYNAMIC_HEADS["context"]
    dynamic, token_batch = (load_dynamic_tagger(bert, head=head, **FORM)[0], tokens_of_words(head))
    present = token_batch["places"][..., 0] >= 0
    row = token_batch["places"][..., 0][present]
    every = torch.cat([torch.tensor(TARGETS), row])
    places = token_batch["places"].clone()
    places[present] = torch.stack([2 + torch.arange(len(row)), token_batch["places"][present][:, 1]], -1)
    each = token_batch | {name: token_batch[name][every] for name in ("input_ids", "attention_mask", "words")}
    each |= {"places": places, "target_rows": torch.arange(2)}
    once, often = dynamic(**token_batch), dynamic(**each)
    torch.testing.assert_close(once.logits, often.logits, rtol=1e-4, atol=1e-5)
    twin = copy.deepcopy(dynamic)
    once.loss.backward()
    twin(**each).loss.backward()
    for (name, weight), other in zip(dynamic.named_parameters(), twin.parameters(), strict=True):
        if weight.grad is not None:
            torch.testing.assert_close(weight.grad, other.grad, rtol=1e-3, atol=1e-5, msg=name)


@pytest.mark.parametrize("kind", ["context", "context alone"])
def test_words_of_the_dynamic_tagger_without_any_occurrence(bert: Path, kind: str):
    dynamic, token_batch = (
        load_dynamic_tagger(bert, head=DYNAMIC_HEADS[kind], **FORM)[0],
        tokens_of_words(DYNAMIC_HEADS[kind]),
    )
    token_batch["places"][:] = -1
    out = dynamic(**token_batch)
    assert not out.weights.any()
    out.loss.backward()
    for name, weight in dynamic.named_parameters():
        assert weight.grad is None or weight.grad.isfinite().all(), name
    none = token_batch | {
        "places": token_batch["places"][:, :, :0],
        "buckets": token_batch["buckets"][:, :, :0],
    }
    torch.testing.assert_close(dynamic(**none).logits, out.logits)


def test_places_are_for_a_tagger_with_context(bert: Path):
    for kind, given in (("lstm", "context"), ("context", "lstm")):
        dynamic = load_dynamic_tagger(bert, head=DYNAMIC_HEADS[kind], **FORM)[0]
        with pytest.raises(ValueError, match="places and buckets are for a tagger with context, which needs"):
            dynamic(**tokens_of_words(DYNAMIC_HEADS[given]))


def test_the_state_of_a_word_is_the_mean_of_its_tokens():
    states = torch.tensor([[[9.0], [1.0], [3.0], [5.0], [9.0]], [[9.0], [7.0], [9.0], [9.0], [9.0]]])
    words = torch.tensor([[-1, 0, 0, 1, -1], [-1, 2, -1, -1, -1]])
    assert word_states(states, words, most=3)[..., 0].tolist() == [[2, 5, 0], [0, 0, 7]]


def test_the_head_is_drawn_from_the_seed_as_pytorch_does_and_the_encoder_is_the_one_named(bert: Path):
    head = DYNAMIC_HEADS["context"]
    before = torch.get_rng_state()
    first, same, other = (load_dynamic_tagger(bert, head=head, **FORM, seed=seed)[0] for seed in (0, 0, 1))
    equal_head(head, size=32)
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    for name, weight in first.head.state_dict().items():
        assert torch.equal(weight, same.head.state_dict()[name])
        assert not torch.equal(weight, other.head.state_dict()[name]), name
    with own_randomness(0):
        drawn = HeadLayers(head, size=32)
    for name, weight in drawn.state_dict().items():
        assert torch.equal(weight, first.head.state_dict()[name]), name
    fresh = DynamicTagger(first.config)  # as its class makes it: the head is left as PyTorch draws it
    assert fresh.head.attention.distances.weight.std() > 0.6
    assert fresh.longformer.embeddings.word_embeddings.weight.std() < 0.3
    encoder = load_encoder(bert, **FORM, seed=1)[0]
    for name, weight in encoder.state_dict().items():
        assert torch.equal(other.longformer.state_dict()[name], weight), name


def size_of(head: TaggerHead, size: int) -> int:
    return sum(weight.numel() for weight in HeadLayers(head, size=size).parameters())


def test_table_8_is_an_lstm_of_128_in_each_direction():
    head = TaggerHead(tags=[str(number) for number in range(11)])
    expected = 8 * 128 * (2 * 128 + 20 + 128 + 2) + 257 * 11 + 9 * 20 + 148
    assert size_of(head, 128) == expected == 418_899  # and 4,385,920 of BERT-tiny: 4.8M
    baseline = equal_head(head, size=128)
    assert (baseline.context, baseline.hidden_size) == (False, 172)
    assert abs(size_of(baseline, 128) - expected) < 2_000
    assert (
        equal_head(TaggerHead(tags=DYNAMIC_TAGS, sequence_encoder="none"), size=32).sequence_encoder
        == "bilstm"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tags": []}, r"tags are \[\]; give each tag once"),
        ({"tags": ["O", "B-PER", "O"]}, "give each tag once"),
        ({"sequence_encoder": "gru"}, "sequence_encoder is 'gru'; it must be one of 'bilstm', 'none'"),
    ],
)
def test_heads_that_cannot_be(change: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        TaggerHead(**({"tags": DYNAMIC_TAGS} | change))
