"""The dynamic tagger: equal to the equations in loops over sentences encoded one by one; rows, filling,
micro-batches, files change nothing."""

import copy
import math
from pathlib import Path

import pytest
import torch

from cdlm_lab.models.checkpoint import CheckpointError, is_trained, own_randomness
from cdlm_lab.models.encoder import load_encoder
from cdlm_lab.models.tagging import (
    DynamicTagger,
    HeadLayers,
    TaggerHead,
    equal_head,
    load_dynamic_tagger,
    word_states,
)

TAGS = ["O", "B-PER", "I-PER"]
FORM = {"max_length": 12, "window": 12}
K = 2
CLS, SEP, PAD = 1, 2, 0
# Of each sequence the number of the word that each of its pieces is of.
PIECES = ([0, 1, 1, 2], [0, 0, 0], [0, 1, 2, 3, 4, 4, 5], [0])
TARGETS = (2, 0)  # rows of sentences to be tagged, of six words and three
WORDS = (6, 3)
NONE = (0, 4)  # row and number of a word without occurrences
BY_ROW = ("target_rows", "word_mask", "places", "buckets", "labels")
HEADS = {
    "context": TaggerHead(tags=TAGS, hidden_size=4, distance_size=3),
    "context alone": TaggerHead(tags=TAGS, sequence_encoder="none", distance_size=3),
    "lstm": TaggerHead(tags=TAGS, context=False, hidden_size=4),
    "fine-tuned": TaggerHead(tags=TAGS, context=False, sequence_encoder="none"),
}
Batch = dict[str, torch.Tensor]


@pytest.fixture(params=HEADS)
def head(request: pytest.FixtureRequest) -> TaggerHead:
    return HEADS[request.param]


@pytest.fixture
def tagger(bert: Path, head: TaggerHead) -> DynamicTagger:
    return load_dynamic_tagger(bert, head=head, **FORM)[0]


def batch_of(head: TaggerHead) -> Batch:
    generator = torch.Generator().manual_seed(0)
    width = max(map(len, PIECES)) + 2
    ids, numbers = torch.full((4, width), PAD), torch.full((4, width), -1)
    for row, pieces in enumerate(PIECES):
        ids[row, : len(pieces) + 2] = torch.tensor(
            [CLS, *torch.randint(5, 55, (len(pieces),), generator=generator), SEP]
        )
        numbers[row, 1 : len(pieces) + 1] = torch.tensor(pieces)
    mask = torch.arange(6) < torch.tensor(WORDS)[:, None]
    row = torch.randint(4, (2, 6, K), generator=generator)
    count = torch.tensor([pieces[-1] + 1 for pieces in PIECES])[row]
    word = (torch.rand(row.shape, generator=generator) * count).long()
    there = (torch.rand(row.shape, generator=generator) < 0.6) & mask[..., None]
    there[0, 0], there[NONE] = True, False
    batch = {
        "input_ids": ids,
        "attention_mask": (ids != PAD).long(),
        "words": numbers,
        "target_rows": torch.tensor(TARGETS),
        "word_mask": mask,
        "labels": torch.tensor([[0, 1, 2, -100, 0, 1], [1, 2, 0, -100, -100, -100]]),
    }
    if head.context:
        batch["places"] = torch.stack([row, word], -1).masked_fill(~there[..., None], -1)
        batch["buckets"] = torch.randint(9, row.shape, generator=generator).masked_fill(~there, 0)
    return batch


@pytest.fixture
def batch(head: TaggerHead) -> Batch:
    return batch_of(head)


def rows_of(batch: Batch, rows: slice) -> Batch:
    return {name: values[rows] if name in BY_ROW else values for name, values in batch.items()}


def slow_logits(tagger: DynamicTagger, batch: Batch, row: int) -> torch.Tensor:
    """The logits of one sentence, (words, tags): each sequence through the encoder by itself, as often as a
    word attends to it."""

    def encoded(number: int) -> list[torch.Tensor]:
        ids = batch["input_ids"][number, : len(PIECES[number]) + 2]
        states = tagger.longformer(ids[None]).last_hidden_state[0, 1:-1]
        return [
            torch.stack([s for s, n in zip(states, PIECES[number], strict=True) if n == word]).mean(0)
            for word in range(PIECES[number][-1] + 1)
        ]

    states, layers = encoded(TARGETS[row]), tagger.head
    if layers.attention is not None:
        for number, state in enumerate(states):
            places, buckets = batch["places"][row, number].tolist(), batch["buckets"][row, number].tolist()
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
def test_equals_the_equations_in_loops(tagger: DynamicTagger, batch: Batch):
    out = tagger(**batch)
    assert out.logits.shape == (2, 6, 3)
    for row, words in enumerate(WORDS):
        expected = slow_logits(tagger, batch, row)
        assert len(expected) == words
        torch.testing.assert_close(out.logits[row, :words], expected, rtol=1e-4, atol=1e-5)
    assert out.logits.std() > 0.02, "all the same would show nothing"
    if tagger.head.attention is None:
        assert out.weights is None
    else:
        there = batch["places"][..., 0] >= 0
        torch.testing.assert_close(out.weights.sum(-1), there.any(-1).float())
        assert not out.weights[NONE].any()


def test_the_loss_is_the_mean_over_labelled_words(tagger: DynamicTagger, batch: Batch):
    out = tagger(**batch)
    p = out.logits.double().softmax(-1)
    right = [(0, 0, 0), (0, 1, 1), (0, 2, 2), (0, 4, 0), (0, 5, 1), (1, 0, 1), (1, 1, 2), (1, 2, 0)]
    assert out.loss.item() == pytest.approx(sum(-math.log(p[at].item()) for at in right) / 8, rel=1e-5)


def test_a_row_alone_is_the_row_in_its_batch(tagger: DynamicTagger, batch: Batch):
    together = tagger(**batch).logits
    for row in range(2):
        alone = rows_of(batch, slice(row, row + 1))
        torch.testing.assert_close(tagger(**alone).logits[0], together[row], rtol=1e-4, atol=1e-5)
    # the second has fewer words, and without context needs one sequence alone
    words = WORDS[1]
    short = {name: values[:, :words] if name in BY_ROW[1:] else values for name, values in alone.items()}
    if "places" not in batch:
        for name in ("input_ids", "attention_mask", "words"):
            short[name] = short[name][:1, : len(PIECES[0]) + 2]
    torch.testing.assert_close(tagger(**short).logits[0], together[1, :words], rtol=1e-4, atol=1e-5)


def test_filling_is_inert(tagger: DynamicTagger, batch: Batch):
    expected = tagger(**batch)
    pad = torch.nn.functional.pad
    ids = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, 30)
    wider = batch | {
        "input_ids": pad(ids, (0, 1), value=33),
        "attention_mask": pad(batch["attention_mask"], (0, 1)),
        "words": pad(batch["words"], (0, 1), value=-1),
        "word_mask": pad(batch["word_mask"], (0, 8)),  # more words than a sequence has tokens
        "labels": pad(batch["labels"], (0, 8), value=-100),
    }
    if "places" in batch:
        there = batch["places"][..., 0] >= 0
        wider["places"] = pad(batch["places"], (0, 0, 0, 1, 0, 8), value=-1)
        wider["buckets"] = pad(batch["buckets"].masked_fill(~there, 5), (0, 1, 0, 8), value=6)
    found = tagger(**wider)
    words = batch["word_mask"]
    torch.testing.assert_close(found.logits[:, :6][words], expected.logits[words], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-4, atol=1e-5)


def test_every_weight_but_the_global_projections_gets_a_gradient(tagger: DynamicTagger, batch: Batch):
    tagger(**batch).loss.backward()
    without = {
        name for name, weight in tagger.named_parameters() if weight.grad is None or not weight.grad.any()
    }
    # a bias on all keys, which the softmax cancels, has a gradient of rounding errors or none
    keys = {name for name in without if name.endswith("self.key.bias")}
    assert without - keys == {name for name, _ in tagger.named_parameters() if "_global." in name}


def test_the_encoder_learns_from_the_context_too(bert: Path):
    """One pass over all sequences; the tokens of those that are only attended to get gradients."""
    head = HEADS["context"]
    tagger, batch = load_dynamic_tagger(bert, head=head, **FORM)[0], batch_of(head)
    passes = []
    tagger.longformer.register_forward_hook(lambda _, given, __: passes.append(tuple(given[0].shape)))
    tagger(**batch).loss.backward()
    assert passes == [(4, 9)]
    attended = {row for row in batch["places"][..., 0].flatten().tolist() if row >= 0}
    assert attended - set(TARGETS)
    gradient = tagger.longformer.get_input_embeddings().weight.grad
    for row in attended - set(TARGETS):
        assert gradient[batch["input_ids"][row, 1]].any()


def test_a_sequence_once_is_a_sequence_for_each_word(bert: Path):
    """Against duplicates, as in the paper."""
    head = HEADS["context"]
    tagger, batch = load_dynamic_tagger(bert, head=head, **FORM)[0], batch_of(head)
    there = batch["places"][..., 0] >= 0
    row = batch["places"][..., 0][there]
    every = torch.cat([torch.tensor(TARGETS), row])
    places = batch["places"].clone()
    places[there] = torch.stack([2 + torch.arange(len(row)), batch["places"][there][:, 1]], -1)
    each = batch | {name: batch[name][every] for name in ("input_ids", "attention_mask", "words")}
    each |= {"places": places, "target_rows": torch.arange(2)}
    once, often = tagger(**batch), tagger(**each)
    torch.testing.assert_close(once.logits, often.logits, rtol=1e-4, atol=1e-5)
    twin = copy.deepcopy(tagger)
    once.loss.backward()
    twin(**each).loss.backward()
    for (name, weight), other in zip(tagger.named_parameters(), twin.parameters(), strict=True):
        if weight.grad is not None:
            torch.testing.assert_close(weight.grad, other.grad, rtol=1e-3, atol=1e-5, msg=name)


def test_micro_batches_add_up_to_the_full_batch(tagger: DynamicTagger, batch: Batch):
    twin = copy.deepcopy(tagger)
    tagger(**batch).loss.backward()
    for row in range(2):
        twin(**rows_of(batch, slice(row, row + 1)), num_items_in_batch=torch.tensor(8)).loss.backward()
    for (name, weight), other in zip(tagger.named_parameters(), twin.parameters(), strict=True):
        if weight.grad is not None:
            torch.testing.assert_close(weight.grad, other.grad, rtol=1e-3, atol=1e-6, msg=name)


@pytest.mark.parametrize("kind", ["context", "context alone"])
def test_words_without_any_occurrence(bert: Path, kind: str):
    tagger, batch = load_dynamic_tagger(bert, head=HEADS[kind], **FORM)[0], batch_of(HEADS[kind])
    batch["places"][:] = -1
    out = tagger(**batch)
    assert not out.weights.any()
    out.loss.backward()
    for name, weight in tagger.named_parameters():
        assert weight.grad is None or weight.grad.isfinite().all(), name
    none = batch | {"places": batch["places"][:, :, :0], "buckets": batch["buckets"][:, :, :0]}
    torch.testing.assert_close(tagger(**none).logits, out.logits)


def test_in_half_precision_logits_and_loss_are_float32(tagger: DynamicTagger, batch: Batch):
    with torch.autocast("cpu", torch.bfloat16):
        out = tagger(**batch)
    assert {values.dtype for values in out.values()} == {torch.float32}
    assert out.loss.item() == pytest.approx(tagger(**batch).loss.item(), rel=0.05)


def test_places_are_for_a_tagger_with_context(bert: Path):
    for kind, given in (("lstm", "context"), ("context", "lstm")):
        tagger = load_dynamic_tagger(bert, head=HEADS[kind], **FORM)[0]
        with pytest.raises(ValueError, match="places and buckets are for a tagger with context, which needs"):
            tagger(**batch_of(HEADS[given]))


def test_the_state_of_a_word_is_the_mean_of_its_tokens():
    states = torch.tensor([[[9.0], [1.0], [3.0], [5.0], [9.0]], [[9.0], [7.0], [9.0], [9.0], [9.0]]])
    words = torch.tensor([[-1, 0, 0, 1, -1], [-1, 2, -1, -1, -1]])
    assert word_states(states, words, most=3)[..., 0].tolist() == [[2, 5, 0], [0, 0, 7]]


@pytest.fixture
def saved(bert: Path, tagger: DynamicTagger, tmp_path: Path) -> Path:
    tagger.save_pretrained(tmp_path)
    load_dynamic_tagger(bert, head=HEADS["lstm"], **FORM)[1].save_pretrained(tmp_path)
    return tmp_path


def test_save_and_load_agree(bert: Path, tagger: DynamicTagger, saved: Path, batch: Batch, head: TaggerHead):
    assert is_trained(str(saved), DynamicTagger)
    assert not is_trained(str(bert), DynamicTagger)
    for given in (head, None):
        again, tokenizer = load_dynamic_tagger(saved, head=given, **FORM, seed=9)
        assert not again.training
        torch.testing.assert_close(again(**batch).logits, tagger(**batch).logits, rtol=0, atol=1e-6)
        for (name, weight), other in zip(
            tagger.state_dict().items(), again.state_dict().values(), strict=True
        ):
            assert torch.equal(weight, other), name
        assert TaggerHead(**again.config.tagger) == head
    assert tokenizer.cls_token_id == CLS


@pytest.mark.parametrize("head", [HEADS["context"]], ids=[""])
def test_a_trained_one_is_what_was_asked_for(bert: Path, saved: Path):
    with pytest.raises(ValueError, match=r"trained with TaggerHead\(.*hidden_size=4.*\), not TaggerHead"):
        load_dynamic_tagger(saved, head=TaggerHead(tags=TAGS, hidden_size=5, distance_size=3), **FORM)
    with pytest.raises(ValueError, match="not a trained DynamicTagger; give a head for it"):
        load_dynamic_tagger(bert, **FORM)
    from safetensors.torch import load_file, save_file

    weights = load_file(saved / "model.safetensors")
    del weights["head.classifier.bias"]
    save_file(weights, saved / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"missing: head\.classifier\.bias"):
        load_dynamic_tagger(saved, **FORM)


def test_the_head_is_drawn_from_the_seed_as_pytorch_does_and_the_encoder_is_the_one_named(bert: Path):
    head = HEADS["context"]
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
    assert equal_head(TaggerHead(tags=TAGS, sequence_encoder="none"), size=32).sequence_encoder == "bilstm"


def test_it_learns_two_sentences_by_heart_and_the_encoder_with_it(tagger: DynamicTagger, batch: Batch):
    before = tagger.longformer.encoder.layer[0].attention.self.query.weight.detach().clone()
    optimiser = torch.optim.AdamW(tagger.parameters(), lr=1e-2)
    for _ in range(40):
        loss = tagger(**batch).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.2
    assert not torch.equal(before, tagger.longformer.encoder.layer[0].attention.self.query.weight)


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
        TaggerHead(**({"tags": TAGS} | change))
