"""Which pieces make words, and whole words in the place of hidden ones: against all words there are, tried
one by one, and by a model whose probabilities are known."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import nn
from transformers import LongformerConfig, PreTrainedTokenizerFast

from cdlm_lab.encoders.encoder import load_tokenizer
from cdlm_lab.encoders.language_model import CrossDocumentLM
from cdlm_lab.encoders.packed import replace_self_attention
from cdlm_lab.explorer.hidden_words import MOST_PIECES, HiddenSpan, WordPieces, fill_blank, guess_hidden

WORDS, MASK = 13, 4
BEGINS = np.isin(np.arange(WORDS), [5, 6, 7, 8])
CONTINUES = np.isin(np.arange(WORDS), [9, 10, 11])
PIECES = SimpleNamespace(first={False: BEGINS}, later=CONTINUES)
TEXT = np.random.default_rng(0).integers(5, WORDS, size=20)
GLOBAL = np.isin(np.arange(20), [3, 12])


@pytest.fixture(scope="module")
def model() -> CrossDocumentLM:
    torch.manual_seed(0)
    config = LongformerConfig(
        vocab_size=WORDS, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        attention_window=[4, 4], max_position_embeddings=32, pad_token_id=1, initializer_range=0.4,
    )  # fmt: skip
    return replace_self_attention(CrossDocumentLM(config)).eval()


def span(start: int, end: int, begins: list[bool] | None = None) -> HiddenSpan:
    positions = np.arange(start, end)
    begins = begins or [True, *[False] * (end - start - 1)]
    return HiddenSpan(positions=positions, truth=TEXT[positions], begins=np.array(begins))


def probability(
    model: CrossDocumentLM, text: np.ndarray, places: np.ndarray, pieces: tuple[int, ...]
) -> float:
    """Of pieces at places that are masks in the text, one after the other."""
    text, product = text.copy(), 1.0
    for place, piece in zip(places, pieces, strict=True):
        mask = torch.from_numpy(GLOBAL)[None].long()
        with torch.no_grad():
            logits = model(torch.from_numpy(text)[None], global_attention_mask=mask).logits
        product *= float(logits[0, place].softmax(-1)[piece])
        text[place] = piece
    return product


@pytest.mark.parametrize("begins", [[True, False], [True, True]], ids=["one word", "two words"])
def test_the_best_are_those_of_all_words_and_the_truth_is_scored_whole(model, begins):
    hidden = [span(6, 8, begins), span(14, 15)]
    text = TEXT.copy()
    text[[6, 7, 14]] = MASK
    given = {"is_global": GLOBAL, "mask": MASK, "words": PIECES}
    two, one = guess_hidden(model, TEXT, hidden, beams=16, **given)
    places = hidden[0].positions
    may = [np.flatnonzero(BEGINS if begin else CONTINUES).tolist() for begin in begins]
    every = {pieces: probability(model, text, places, pieces) for pieces in itertools.product(*may)}
    assert dict(two.best) == pytest.approx(every, rel=1e-4)
    assert [pieces for pieces, _ in two.best] == sorted(every, key=every.get, reverse=True)
    truth = probability(model, text, places, tuple(hidden[0].truth.tolist()))
    assert two.truth_probability == pytest.approx(truth, rel=1e-4), "of pieces that no guess may have, too"
    assert {pieces for (pieces,), _ in one.best} == {5, 6, 7, 8}
    few, _ = guess_hidden(model, TEXT, hidden, beams=3, **given)
    assert few.truth_probability == pytest.approx(truth, rel=1e-4)
    assert len(few.best) == 3


def test_what_cannot_be_guessed(model):
    given = {"is_global": GLOBAL, "mask": MASK, "words": PIECES}
    with pytest.raises(ValueError, match="LongformerModel has no language-model head to predict with"):
        guess_hidden(model.longformer, TEXT, [span(6, 8)], **given)
    long = HiddenSpan(positions=np.arange(17), truth=np.full(17, 5), begins=np.full(17, True))
    with pytest.raises(ValueError, match=f"are 17 pieces, at most {MOST_PIECES} can be guessed together"):
        guess_hidden(model, TEXT, [long], **given)
    assert guess_hidden(model, TEXT, [], **given) == []


# ---- blanks of any length ----

VOCABULARY = ["[MASK]", "old", "##er", "mill", "##s", ",", "##,", "("]


@pytest.fixture(scope="module")
def wordpiece() -> WordPieces:
    numbers = {piece: number for number, piece in enumerate(VOCABULARY)}
    backend = Tokenizer(models.WordPiece(numbers, unk_token="("))
    backend.decoder = decoders.WordPiece()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return WordPieces(PreTrainedTokenizerFast(tokenizer_object=backend, mask_token="[MASK]"))


def named(chosen: np.ndarray) -> list[str]:
    return [piece for piece, is_chosen in zip(VOCABULARY, chosen, strict=True) if is_chosen]


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


class States(nn.Module):
    """Says the same of a place whatever stands elsewhere, but that `##er` follows `old` for sure."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[tuple[int, int]] = []

    def forward(
        self, input_ids: torch.Tensor, global_attention_mask: torch.Tensor, **more: torch.Tensor
    ) -> SimpleNamespace:
        self.reads.append((input_ids.shape[1], int(global_attention_mask[0].sum())))
        shares = torch.full((*input_ids.shape, len(VOCABULARY)), 0.02)
        shares[..., VOCABULARY.index("old")], shares[..., VOCABULARY.index("mill")] = 0.5, 0.3
        only_er = torch.tensor([0.0, 0, 1, 0, 0, 0, 0, 0]).clamp(min=1e-9)
        shares[:, 1:][input_ids[:, :-1] == VOCABULARY.index("old")] = only_er
        return SimpleNamespace(last_hidden_state=shares.log())


class Certain(nn.Module):
    """A language model on these states, whose head changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.base_model, self.device, self.decoder = States(), "cpu", nn.Identity()

    def get_output_embeddings(self) -> nn.Module:
        return self.decoder

    def forward(self, **batch: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.decoder(self.base_model(**batch).last_hidden_state))


def test_the_surest_piece_comes_first_and_the_others_are_read_anew(wordpiece: WordPieces) -> None:
    model, ids = Certain(), np.array([7, 0, 3])
    filled = fill_blank(model, wordpiece, ids, 1, globals_of=lambda blank: blank, pieces=2, top=3)
    # alone they would have 0.5, 0.5 and 0.3 of 0.92, which is more than 1, so all are divided by the sum
    shares = {one.word: one.probability for one in filled}
    assert list(shares)[2] == "mill"
    relative = {word: share / shares["mill"] for word, share in shares.items()}
    assert relative == pytest.approx({"old": 5 / 3, "older": 5 / 3, "mill": 1}, rel=1e-5)
    assert 0.98 < sum(shares.values()) < 1, "other words that were compared have the rest"
    assert [one.pieces for one in sorted(filled, key=lambda one: one.word)] == [1, 1, 2]
    assert model.base_model.reads == [(3, 1), (4, 2), (4, 2)], "blanks are global, whatever stands in them"
    assert ids.tolist() == [7, 0, 3]
