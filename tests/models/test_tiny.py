"""The small model from scratch: the same tokenizer everywhere, sizes that are checked."""

import copy
import hashlib
import subprocess
import sys

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from cdlm_lab.models.encoder import load_language_model
from cdlm_lab.models.estimate import parameter_count
from cdlm_lab.models.tiny import TinySizes, tiny_tokenizer

PRINT_HASH = (
    "import hashlib; from cdlm_lab.models.tiny import tiny_tokenizer;"
    "print(hashlib.sha256(tiny_tokenizer().backend_tokenizer.to_str().encode()).hexdigest())"
)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    """Trained once: it takes seconds."""
    return tiny_tokenizer()


def test_the_tokenizer_is_the_same_in_another_process(tokenizer) -> None:
    here = hashlib.sha256(tokenizer.backend_tokenizer.to_str().encode()).hexdigest()
    there = subprocess.run([sys.executable, "-c", PRINT_HASH], check=True, capture_output=True, text=True)
    assert there.stdout.strip() == here


def test_text_survives_a_round_trip(tokenizer) -> None:
    text = 'The mayor of Ostrelin said: "41,870 crowns." Ünïcode \U0001f30a too.'
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids).strip() == text
    assert tokenizer.unk_token_id not in ids


def test_offsets_are_those_of_the_words_without_the_space_before_them(tokenizer) -> None:
    text = "The mayor of Ostrelin said 41,870."
    found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    pieces = [text[start:end] for start, end in found]
    assert "".join(pieces) == text.replace(" ", "")
    assert pieces[:3] == ["The", "mayor", "of"]


def test_a_word_is_the_same_at_the_beginning_of_a_text(tokenizer) -> None:
    first = tokenizer("river", add_special_tokens=False)["input_ids"]
    assert tokenizer("the river", add_special_tokens=False)["input_ids"][-len(first) :] == first


def test_size_of_the_default_and_what_is_loaded_again(monkeypatch, tokenizer, tmp_path) -> None:
    monkeypatch.setattr("cdlm_lab.models.tokenizer.tiny_tokenizer", lambda sizes: copy.deepcopy(tokenizer))
    before = torch.get_rng_state()
    model, tokenizer = load_language_model("tiny", max_length=1024, window=64)
    again, _ = load_language_model("tiny", max_length=1024, window=64)
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    # 4,096 x 128 words + 1,026 x 128 positions + 4 layers of 247,680 (with global projections) + the head
    layer = 7 * (128 * 128 + 128) + 2 * 128 * 512 + 512 + 128 + 4 * 128
    head = 128 * 128 + 128 + 2 * 128 + 4096
    embeddings = (4096 + 1026 + 1) * 128 + 2 * 128
    assert len(tokenizer) == 4096
    assert parameter_count(model) == embeddings + 4 * layer + head
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded, words = load_language_model(tmp_path, max_length=1024, window=64)
    assert words.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()
    assert words.all_special_ids == tokenizer.all_special_ids
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), loaded.parameters(), strict=True))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"heads": 3}, r"hidden_size \(128\) must be divisible by heads \(3\)"),
        ({"vocabulary": 100}, "at least 263"),
    ],
)
def test_sizes_that_cannot_be(sizes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TinySizes(**sizes)
