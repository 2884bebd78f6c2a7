"""Which pieces make words, and words of several pieces by a model whose probabilities are known."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import nn
from transformers import PreTrainedTokenizerFast

from cdlm_lab.analysis.filled_words import WordPieces, fill_blank
from cdlm_lab.models.encoder import load_tokenizer

PIECES = ["[MASK]", "old", "##er", "mill", "##s", ",", "##,", "("]


@pytest.fixture(scope="module")
def wordpiece() -> WordPieces:
    numbers = {piece: number for number, piece in enumerate(PIECES)}
    backend = Tokenizer(models.WordPiece(numbers, unk_token="("))
    backend.decoder = decoders.WordPiece()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return WordPieces(PreTrainedTokenizerFast(tokenizer_object=backend, mask_token="[MASK]"))


def named(chosen: np.ndarray) -> list[str]:
    return [piece for piece, is_chosen in zip(PIECES, chosen, strict=True) if is_chosen]


def test_pieces_of_word_pieces(wordpiece: WordPieces) -> None:
    assert named(wordpiece.first[False]) == ["old", "mill"]
    assert named(wordpiece.first[True]) == named(wordpiece.later) == ["##er", "##s"]
    glued = {"": False, "the ": False, "(": False, "re": True}
    assert {text: wordpiece.is_glued(text) for text in glued} == glued


def test_pieces_of_byte_pairs() -> None:
    words = WordPieces(load_tokenizer("storyworld/cdlm"))
    texts = [words.tokenizer.decode([number]) for number in range(len(words.later))]
    assert all(texts[number].startswith(" ") for number in np.flatnonzero(words.first[False]))
    assert not any(" " in texts[number] for number in np.flatnonzero(words.later))
    assert not words.later[words.tokenizer.all_special_ids].any()
    assert [words.is_glued(text) for text in ("the ", "(", "re")] == [False, True, True]


class Certain(nn.Module):
    """Says the same of a place whatever stands elsewhere, but that `##er` follows `old` for sure."""

    def __init__(self) -> None:
        super().__init__()
        self.base_model, self.device = self._states, "cpu"
        self.reads: list[tuple[int, int]] = []

    def _states(self, ids: torch.Tensor, global_attention_mask: torch.Tensor) -> SimpleNamespace:
        self.reads.append((ids.shape[1], int(global_attention_mask[0].sum())))
        shares = torch.full((*ids.shape, len(PIECES)), 0.02)
        shares[..., PIECES.index("old")], shares[..., PIECES.index("mill")] = 0.5, 0.3
        shares[:, 1:][ids[:, :-1] == PIECES.index("old")] = torch.tensor([0.0, 0, 1, 0, 0, 0, 0, 0]).clamp(
            min=1e-9
        )
        return SimpleNamespace(last_hidden_state=shares.log())

    def lm_head(self, states: torch.Tensor) -> torch.Tensor:
        return states


def test_the_surest_piece_comes_first_and_the_others_are_read_anew(wordpiece: WordPieces) -> None:
    model, ids = Certain(), np.array([7, 0, 3])
    filled = fill_blank(model, wordpiece, ids, 1, globals_of=lambda blank: blank, pieces=2, top=3)
    total = 0.5 + 0.3 + 6 * 0.02
    shares = {"old": 0.5 / total, "older": 0.5 / total, "mill": 0.3 / total}
    assert {one.word: one.probability for one in filled} == pytest.approx(shares, rel=1e-5)
    assert [one.word for one in filled][2] == "mill"
    assert [one.pieces for one in sorted(filled, key=lambda one: one.word)] == [1, 1, 2]
    assert model.reads == [(3, 1), (4, 2), (4, 2)], "blanks are global, whatever stands in them"
    assert ids.tolist() == [7, 0, 3]
