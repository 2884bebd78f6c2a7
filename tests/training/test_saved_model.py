"""What a training leaves can be loaded, and of several processes one writes it."""

from pathlib import Path

import pytest
import torch

from cdlm_lab.models.encoder import TinySizes, load_language_model
from cdlm_lab.training.checkpoints import save_model

SIZES = TinySizes(hidden_size=16, layers=1, heads=2, intermediate_size=16, vocabulary=300)


@pytest.mark.parametrize(("rank", "writes"), [(None, True), ("0", True), ("1", False)])
def test_the_first_process_writes_what_can_be_loaded(tmp_path: Path, monkeypatch, rank, writes: bool):
    monkeypatch.delenv("RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("RANK", rank)
    model, tokenizer = load_language_model("tiny", max_length=32, window=8, sizes=SIZES)
    save_model(model, tokenizer, tmp_path / "model")
    assert (tmp_path / "model").exists() == writes
    if writes:
        assert not list((tmp_path / "model").glob("*.bin"))
        again, words = load_language_model(str(tmp_path / "model"), max_length=32, window=8)
        assert words.get_vocab() == tokenizer.get_vocab()
        for weight, other in zip(again.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(weight, other, rtol=0, atol=0)
