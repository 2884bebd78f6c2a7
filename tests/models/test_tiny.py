"""The small model from scratch: the same tokenizer everywhere, sizes that are checked."""

import copy
import hashlib
import math
import subprocess
import sys

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from cdlm_lab.models.encoder import (
    TinySizes,
    load_language_model,
    start_positions_as_sinusoids,
    tiny_tokenizer,
)
from cdlm_lab.models.estimate import parameter_count

PRINT_HASH = (
    "import hashlib; from cdlm_lab.models.encoder import tiny_tokenizer;"
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
    monkeypatch.setattr("cdlm_lab.models.encoder.tiny_tokenizer", lambda sizes: copy.deepcopy(tokenizer))
    before = torch.get_rng_state()
    model, tokenizer = load_language_model("tiny", max_length=1024, window=64)
    again, _ = load_language_model("tiny", max_length=1024, window=64)
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    # 1,024 x 128 words + 1,026 x 128 positions + 3 layers of 247,680 (with global projections) + the head
    layer = 7 * (128 * 128 + 128) + 2 * 128 * 512 + 512 + 128 + 4 * 128
    head = 128 * 128 + 128 + 2 * 128 + 1024
    embeddings = (1024 + 1026 + 1) * 128 + 2 * 128
    assert len(tokenizer) == 1024
    assert parameter_count(model) == embeddings + 3 * layer + head
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded, words = load_language_model(tmp_path, max_length=1024, window=64)
    assert words.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()
    assert words.all_special_ids == tokenizer.all_special_ids
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), loaded.parameters(), strict=True))


def test_positions_start_as_sinusoids() -> None:
    embedding = torch.nn.Embedding(700, 6, padding_idx=1)
    start_positions_as_sinusoids(embedding, size=0.1)
    for position in (0, 2, 699):
        for pair in range(3):  # sine and cosine of position / 10000^(2 pair / width)
            angle = position / 10_000 ** (2 * pair / 6)
            expected = [0.1 * math.sqrt(2) * math.sin(angle), 0.1 * math.sqrt(2) * math.cos(angle)]
            assert embedding.weight[position, 2 * pair : 2 * pair + 2].tolist() == pytest.approx(
                expected, abs=1e-5
            )
    assert not embedding.weight[1].any(), "the padding row"
    assert embedding.weight[2:].square().mean().sqrt().item() == pytest.approx(0.1, rel=1e-3)
    # what makes them useful: the product of two depends on their distance alone
    products = embedding.weight @ embedding.weight.T
    assert products[10, 13].item() == pytest.approx(products[500, 503].item(), abs=1e-5)


def test_positions_of_tiny_are_sinusoids_unless_told(monkeypatch, tokenizer) -> None:
    monkeypatch.setattr("cdlm_lab.models.encoder.tiny_tokenizer", lambda sizes: copy.deepcopy(tokenizer))
    for size, is_smooth in ((0.1, True), (0.0, False)):
        model, _ = load_language_model("tiny", max_length=64, window=8, sizes=TinySizes(position_size=size))
        weight = model.longformer.embeddings.position_embeddings.weight[2:]
        neighbours = torch.cosine_similarity(weight[:-1], weight[1:]).mean().item()
        assert (neighbours > 0.9) == is_smooth


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
