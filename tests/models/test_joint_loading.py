"""Encoders for joint sequences: every token sees every other, also in a Longformer with few positions, and
there are as many token types as sentences."""

from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

from cdlm_lab.models.checkpoint import CheckpointError
from cdlm_lab.models.encoder import load_encoder
from cdlm_lab.models.joint import JointHead, lengths_for, load_joint_model, widen_token_types
from cdlm_lab.models.language_model import CrossDocumentLM

ROOM = 40
HEAD = JointHead(kind="ie_1", sentences=4, length=10)


@pytest.fixture
def longformer(language_model: CrossDocumentLM, roberta: Path, tmp_path: Path) -> Path:
    """A Longformer with 40 positions."""
    language_model.save_pretrained(tmp_path / "longformer")
    AutoTokenizer.from_pretrained(roberta).save_pretrained(tmp_path / "longformer")
    return tmp_path / "longformer"


def test_lengths(longformer: Path, bert: Path):
    assert lengths_for("minilm", tokens=384, window=None) == {"max_length": 768, "window": 768}
    assert lengths_for("tiny", tokens=20, window=None, max_length=100) == {"max_length": 100, "window": 40}
    assert lengths_for(str(bert), tokens=20, window=None, max_length=30) == {"max_length": 40, "window": 40}
    assert lengths_for(str(bert), tokens=20, window=8) == {"max_length": 20, "window": 8}
    name = str(longformer)
    assert lengths_for(name, tokens=15, window=None) == {"max_length": 30, "window": 30}
    assert lengths_for(name, tokens=39, window=None) == {"max_length": 40, "window": 40}
    assert lengths_for(name, tokens=39, window=6) == {"max_length": 39, "window": 6}
    # longer is what load_encoder refuses: a Longformer is never extended
    for asked, given in ((20, 40), (41, 41)):
        assert lengths_for(name, tokens=39, window=None, max_length=asked)["max_length"] == given
    with pytest.raises(
        CheckpointError, match="reads 40 tokens, but the sentences may have 41 together; take"
    ):
        lengths_for(name, tokens=41, window=None)


def test_a_shipped_checkpoint_with_fewer_positions_than_the_window():
    assert lengths_for("storyworld/cdlm", tokens=384, window=None) == {"max_length": 512, "window": 512}


def changed(model, ids: torch.Tensor) -> list[bool]:
    """Which states change if the last token does."""
    other = ids.clone()
    other[0, -1] += 1
    with torch.no_grad():
        states, others = (model(tokens).last_hidden_state[0] for tokens in (ids, other))
    return (states - others).abs().gt(1e-6).any(1).tolist()


@pytest.mark.parametrize("attention", ["auto", "huggingface"])
def test_a_longformer_with_few_positions_sees_all(longformer: Path, attention: str):
    """40 positions allow a window of 40, which is 20 on each side; two layers would hide that."""
    ids = torch.randint(10, 50, (1, ROOM), generator=torch.Generator().manual_seed(0))
    model, _ = load_joint_model(longformer, head=HEAD, attention=attention)
    assert model.config.attention_window == [80, 80]
    model.longformer.encoder.layer = model.longformer.encoder.layer[:1]
    assert changed(model.longformer, ids) == [True] * 40
    narrow, _ = load_joint_model(longformer, head=HEAD, attention=attention, window=4)
    assert narrow.config.attention_window == [4, 4]
    assert changed(narrow.longformer, ids) == [False] * 35 + [True] * 5


def test_a_trained_model_sees_all_again(longformer: Path, tmp_path: Path):
    model, tokenizer = load_joint_model(longformer, head=HEAD)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    for window, width in ((None, 80), (8, 8)):
        again, _ = load_joint_model(tmp_path, window=window)
        assert {layer.attention.self.window for layer in again.longformer.encoder.layer} == {width}


def test_token_types_are_widened_with_copies_and_never_narrowed(bert: Path):
    encoder, _ = load_encoder(bert, max_length=24, window=24)
    first = encoder.embeddings.token_type_embeddings.weight.detach().clone()
    assert len(first) == 2
    widen_token_types(encoder, 5)
    table = encoder.embeddings.token_type_embeddings.weight
    assert table.requires_grad
    assert torch.equal(table, torch.stack([first[0], *[first[1]] * 4]))
    assert encoder.config.type_vocab_size == 5
    widen_token_types(encoder, 3)
    assert encoder.embeddings.token_type_embeddings.weight is table
    assert encoder.config.type_vocab_size == 5
    with torch.no_grad():
        table[3] = 7.0
    assert table[4].ne(7).all(), "copies, not one row seen several times"
