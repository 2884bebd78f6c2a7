"""The matcher that trains its sentence encoder along: it starts as the frozen one; rows, filling,
micro-batches and files change nothing."""

import copy
from pathlib import Path

import pytest
import torch

from cdlm_lab.examples.tokens import Vocabulary
from cdlm_lab.models.checkpoint import CheckpointError, is_trained, own_randomness
from cdlm_lab.models.frozen import load_sentence_encoder
from cdlm_lab.models.matching import (
    DocumentMatcher,
    FineTunedMatcher,
    HierarchicalConfig,
    load_finetuned_matcher,
)

MAX_TOKENS = 8
SHALLOW = {"encoder": "vectors", "cda": "shallow", "hidden_size": 5, "initializer_range": 0.4}
Batch = dict[str, torch.Tensor]
# Three pairs; the words of one sentence are too many, one is a special token as text, one has none.
TEXTS = [
    (["w1 w2 w3", "w4", "w5 w6 w7 w8 w9 w10 w11 w12"], ["w2 w13"]),
    (["w20 w21"], ["w22 w23 [SEP] w24", "w1 w2 w3"]),
    (["w30", "w31 w32 w33 w34 w35 w36"], [" ", "w4"]),
]


@pytest.fixture
def model(bert) -> FineTunedMatcher:
    return load_finetuned_matcher(bert, matcher=SHALLOW, max_tokens=MAX_TOKENS)[0]


@pytest.fixture
def batch(bert) -> Batch:
    """TEXTS as numbers, with room for ten words in four sentences."""
    tokenizer = load_finetuned_matcher(bert, matcher=SHALLOW, max_tokens=MAX_TOKENS)[1]
    vocabulary = Vocabulary.of_tokenizer(tokenizer)
    inputs = torch.zeros(3, 2, 4, 10, dtype=torch.int64)
    mask = torch.zeros(3, 2, 4, dtype=torch.bool)
    for row, pair in enumerate(TEXTS):
        for side, sentences in enumerate(pair):
            for place, sentence in enumerate(sentences):
                numbers = vocabulary.numbers(sentence, most=10)
                inputs[row, side, place, : len(numbers)] = torch.from_numpy(numbers)
                mask[row, side, place] = True
    return {"inputs": inputs, "sentence_mask": mask, "labels": torch.tensor([1.0, 0.0, 1.0])}


def rows_of(batch: Batch, rows: slice) -> Batch:
    return {name: tensor[rows] for name, tensor in batch.items()}


@pytest.mark.parametrize("encoder", ["vectors", "average"])
def test_it_starts_as_the_matcher_of_frozen_vectors(bert, batch: Batch, encoder: str):
    kind = SHALLOW | {"encoder": encoder, "cda": "none"}
    model, _ = load_finetuned_matcher(bert, matcher=kind, max_tokens=MAX_TOKENS)
    frozen = load_sentence_encoder(bert, max_tokens=MAX_TOKENS)
    vectors = torch.zeros(3, 2, 4, 32)
    for row, pair in enumerate(TEXTS):
        for side, sentences in enumerate(pair):
            vectors[row, side, : len(sentences)] = torch.from_numpy(frozen.encode(sentences))
    expected = model.matcher(vectors, batch["sentence_mask"], batch["labels"])
    found = model(**batch)
    torch.testing.assert_close(found.logits, expected.logits, rtol=0, atol=1e-4)
    torch.testing.assert_close(found.loss, expected.loss, rtol=0, atol=1e-4)
    torch.testing.assert_close(found.attention, expected.attention, rtol=0, atol=1e-4)
    assert found.logits.detach().std() > 1e-3, "all the same would show nothing"


def test_tokens_stand_between_the_ends_and_are_cut(model: FineTunedMatcher):
    # Ids: [PAD] 0, [CLS] 1, [SEP] 2, w0 5, and numbers are ids + 2; eight tokens leave room for six words.
    words = torch.tensor([[7, 8, 0, 0, 0, 0, 0, 0], [7, 8, 9, 10, 11, 12, 13, 14], [1, 0, 0, 0, 0, 0, 0, 0]])
    ids, mask = model._between_ends(words)
    assert ids.tolist() == [[1, 5, 6, 2, 0, 0, 0, 0], [1, 5, 6, 7, 8, 9, 10, 2], [1, 2, 0, 0, 0, 0, 0, 0]]
    assert mask.sum(1).tolist() == [4, 8, 2]
    assert mask[0].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_a_row_alone_is_the_row_in_its_batch(model: FineTunedMatcher, batch: Batch):
    together = model(**batch)
    for row in range(3):
        alone = model(**rows_of(batch, slice(row, row + 1)))
        torch.testing.assert_close(alone.logits[0], together.logits[row], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(alone.cosine[0], together.cosine[row], rtol=1e-4, atol=1e-5)


def test_filling_is_inert_and_not_computed(model: FineTunedMatcher, batch: Batch):
    expected = model(**batch).logits
    widths = []
    model.longformer.register_forward_hook(lambda module, given, output: widths.append(given[0].shape))
    wider = torch.nn.functional.pad(batch["inputs"], (0, 3, 0, 2))
    wider[..., 4:, :] = 9  # sentences that are not there
    mask = torch.nn.functional.pad(batch["sentence_mask"], (0, 2))
    torch.testing.assert_close(model(wider, mask).logits, expected, rtol=1e-4, atol=1e-5)
    assert widths == [(11, MAX_TOKENS)], "eleven sentences of at most eight tokens"


def test_every_weight_but_the_global_projections_gets_a_gradient(model: FineTunedMatcher, batch: Batch):
    model(**batch).loss.backward()
    without = {
        name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()
    }
    expected = {name for name, _ in model.named_parameters() if "_global." in name}
    # a bias on all keys, which the softmax cancels, has a gradient of rounding errors or none
    keys = {name for name in without if name.endswith("self.key.bias")}
    assert without - keys == expected
    assert len(expected) == 2 * 6


def test_micro_batches_add_up_to_the_full_batch(model: FineTunedMatcher, batch: Batch):
    twin = copy.deepcopy(model)
    model(**batch).loss.backward()
    for rows in (slice(0, 1), slice(1, 3)):
        twin(**rows_of(batch, rows), num_items_in_batch=3).loss.backward()
    for (name, weight), other in zip(model.named_parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(weight.grad, other.grad, rtol=1e-3, atol=1e-6, msg=name)


def test_it_learns_three_pairs_by_heart_and_the_encoder_with_it(model: FineTunedMatcher, batch: Batch):
    before = model.longformer.encoder.layer[0].attention.self.query.weight.detach().clone()
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(25):
        loss = model(**batch).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.05
    assert not torch.equal(before, model.longformer.encoder.layer[0].attention.self.query.weight)


@pytest.fixture
def saved(bert, model: FineTunedMatcher, tmp_path: Path) -> Path:
    model.save_pretrained(tmp_path)
    load_finetuned_matcher(bert, matcher=SHALLOW, max_tokens=MAX_TOKENS)[1].save_pretrained(tmp_path)
    return tmp_path


def test_save_and_load_agree(bert, model: FineTunedMatcher, saved: Path, batch: Batch):
    assert is_trained(str(saved), FineTunedMatcher)
    assert not is_trained(str(bert), FineTunedMatcher)
    assert not is_trained("minilm", FineTunedMatcher)
    again, tokenizer = load_finetuned_matcher(saved, matcher=SHALLOW, max_tokens=MAX_TOKENS, seed=9)
    assert not again.training
    torch.testing.assert_close(again(**batch).logits, model(**batch).logits, rtol=0, atol=1e-6)
    for (name, weight), other in zip(model.state_dict().items(), again.state_dict().values(), strict=True):
        assert torch.equal(weight, other), name
    assert tokenizer.cls_token_id == again.config.cls_token_id == 1


def test_a_trained_one_can_be_asked_for_shorter_sentences(saved: Path, bert, batch: Batch):
    shorter, _ = load_finetuned_matcher(saved, matcher=SHALLOW, max_tokens=5)
    other, _ = load_finetuned_matcher(bert, matcher=SHALLOW, max_tokens=5)
    torch.testing.assert_close(shorter(**batch).logits, other(**batch).logits, rtol=0, atol=1e-5)


def test_a_trained_one_is_what_was_asked_for(saved: Path):
    with pytest.raises(ValueError, match=r"trained with cda 'shallow', not 'none'; ask for 'shallow'"):
        load_finetuned_matcher(saved, matcher=SHALLOW | {"cda": "none"}, max_tokens=MAX_TOKENS)
    with pytest.raises(CheckpointError, match=r"max_length \(18\) is longer than .* was made for \(16\)"):
        load_finetuned_matcher(saved, matcher=SHALLOW, max_tokens=9)


def test_a_trained_one_that_lacks_weights_is_refused(saved: Path):
    from safetensors.torch import load_file, save_file

    weights = load_file(saved / "model.safetensors")
    del weights["matcher.head.2.weight"]
    save_file(weights, saved / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"missing: matcher\.head\.2\.weight"):
        load_finetuned_matcher(saved, matcher=SHALLOW, max_tokens=MAX_TOKENS)


def test_the_matcher_is_drawn_from_the_seed_as_one_of_frozen_vectors(bert):
    before = torch.get_rng_state()
    first, same, other = (
        load_finetuned_matcher(bert, matcher=SHALLOW, max_tokens=MAX_TOKENS, seed=seed)[0]
        for seed in (0, 0, 1)
    )
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    heads = [model.matcher.head[0].weight for model in (first, same, other)]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])
    with own_randomness(0):
        frozen = DocumentMatcher(HierarchicalConfig(**SHALLOW, vector_size=32))
    for (name, weight), expected in zip(
        first.matcher.state_dict().items(), frozen.state_dict().values(), strict=True
    ):
        assert torch.equal(weight, expected), name


def test_words_are_no_sentences(bert):
    with pytest.raises(ValueError, match="encoder is 'gru', which reads words, not sentences"):
        load_finetuned_matcher(bert, matcher={"encoder": "gru"}, max_tokens=MAX_TOKENS)
    with pytest.raises(ValueError, match="max_tokens is 1"):
        load_finetuned_matcher(bert, matcher=SHALLOW, max_tokens=1)
