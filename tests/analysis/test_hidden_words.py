"""Whole words in the place of hidden ones, against all words there are, tried one by one."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import LongformerConfig

from cdlm_lab.analysis.hidden_words import MOST_PIECES, HiddenSpan, guess_hidden
from cdlm_lab.attention.layer import replace_self_attention
from cdlm_lab.models.language_model import CrossDocumentLM

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
