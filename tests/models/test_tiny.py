"""The small model from scratch: the same tokenizer everywhere, sizes that are checked."""

import hashlib
import subprocess
import sys

import pytest

from cdlm_lab.models.encoder import load_language_model
from cdlm_lab.models.estimate import parameter_count
from cdlm_lab.models.tiny import TinySizes, tiny_tokenizer

PRINT_HASH = (
    "import hashlib; from cdlm_lab.models.tiny import tiny_tokenizer;"
    "print(hashlib.sha256(tiny_tokenizer().backend_tokenizer.to_str().encode()).hexdigest())"
)


def test_the_tokenizer_is_the_same_in_another_process() -> None:
    here = hashlib.sha256(tiny_tokenizer().backend_tokenizer.to_str().encode()).hexdigest()
    there = subprocess.run([sys.executable, "-c", PRINT_HASH], check=True, capture_output=True, text=True)
    assert there.stdout.strip() == here


def test_text_survives_a_round_trip() -> None:
    tokenizer = tiny_tokenizer()
    text = 'The mayor of Ostrelin said: "41,870 crowns." Ünïcode \U0001f30a too.'
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids).strip() == text
    assert tokenizer.unk_token_id not in ids


def test_size_of_the_default() -> None:
    model, tokenizer = load_language_model("tiny", max_length=1024, window=64)
    # 4,096 x 128 words + 1,026 x 128 positions + 4 layers of 247,680 (with global projections) + the head
    layer = 7 * (128 * 128 + 128) + 2 * 128 * 512 + 512 + 128 + 4 * 128
    head = 128 * 128 + 128 + 2 * 128 + 4096
    embeddings = (4096 + 1026 + 1) * 128 + 2 * 128
    assert len(tokenizer) == 4096
    assert parameter_count(model) == embeddings + 4 * layer + head


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
