"""The explorer for any encoder: BERT, ModernBERT and Longformer, texts of 20 to 4,000 tokens."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from modernbert import save_modernbert
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    DebertaV2Config,
    DebertaV2Model,
    LongformerConfig,
    LongformerForMaskedLM,
    PreTrainedModel,
)

import cdlm_lab
from cdlm_lab.encoders.encoder import tiny_tokenizer
from cdlm_lab.encoders.percentile_rank import source_scores
from cdlm_lab.encoders.source_attention import attend_to_source
from cdlm_lab.explorer.reading import Selection

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return tiny_tokenizer()


def made(kind: str, folder: Path, words: int, *, head: bool = False) -> PreTrainedModel:
    torch.manual_seed(0)
    length = {"max_position_embeddings": 4200, "vocab_size": words, "initializer_range": 0.5}
    if kind == "bert":
        return (BertForMaskedLM if head else BertModel)(BertConfig(**SIZES, **length, pad_token_id=1))
    if kind == "modernbert":
        form = {"layers": 2, "max_position_embeddings": 4200}
        return (AutoModelForMaskedLM if head else AutoModel).from_pretrained(save_modernbert(folder, **form))
    config = LongformerConfig(**SIZES, **length, attention_window=[8, 8], pad_token_id=1)
    return LongformerForMaskedLM(config)


@pytest.mark.parametrize("kind", ["bert", "modernbert", "longformer"])
@pytest.mark.parametrize("words", [8, 960])  # 20 and 4,000 tokens
def test_a_model_is_explored_without_a_run(kind: str, words: int, tokenizer: Any, tmp_path: Path) -> None:
    model = made(kind, tmp_path, len(tokenizer))
    before = {name: one.clone() for name, one in model.state_dict().items()}
    text = " ".join(["mine", "blast", "miners", "rain"] * (words // 4))
    texts = {"first": text, "second": f"The {text}."}
    explorer = cdlm_lab.explore(model, tokenizer, texts)
    explorer.choose(Selection(source=(0, 1, 2), target=(1, 2, 3), layer=1))
    (panel,) = explorer.content.answer(explorer.chosen)
    assert panel.read.all()
    assert panel.reach.all(), "in some layer"
    assert np.isfinite(panel.scores).all()
    assert len(np.unique(panel.scores)) > 3
    assert 0 <= panel.target_rank <= 100
    page = explorer.save_html(tmp_path / "page.html")
    assert "miners" in page.read_text(encoding="utf-8")
    assert {name: one.tolist() for name, one in model.state_dict().items()} == {
        name: one.tolist() for name, one in before.items()
    }


@pytest.mark.parametrize("kind", ["bert", "modernbert", "longformer"])
def test_hidden_words_are_guessed_by_the_models_own_head(kind: str, tokenizer: Any, tmp_path: Path) -> None:
    """By the probabilities of a plain forward; the chosen words are global in a Longformer alone."""
    model = made(kind, tmp_path, len(tokenizer), head=True).eval()
    explorer = cdlm_lab.explore(model, tokenizer, ["rain fell in town", "rain fell"])
    assert explorer.content.predicts
    explorer.choose(Selection(source=(0, 0, 1), source_global=False, masked=((1, 0, 1),)))
    ((prediction,),) = (panel.predictions for panel in explorer.content.answer(explorer.chosen))
    texts = [
        tokenizer(f" {text}", add_special_tokens=False)["input_ids"] for text in ("rain fell in town", "fell")
    ]
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    rain = tokenizer(" rain", add_special_tokens=False)["input_ids"]
    probability = 1.0
    for number, piece in enumerate(rain):
        hidden = [*rain[:number], *[tokenizer.mask_token_id] * (len(rain) - number)]
        ids = torch.tensor([[cls, cls, *texts[0], sep, cls, *hidden, *texts[1], sep, sep]])
        with torch.no_grad():
            shares = model(ids).logits[0, 4 + len(texts[0]) + number].softmax(-1)
        probability *= float(shares[piece])
    assert prediction.truth_probability == pytest.approx(probability, rel=1e-3)
    assert len(prediction.top) == 5


def test_its_weights_are_those_that_the_model_returns(tokenizer: Any, tmp_path: Path) -> None:
    """A score is the exponential of a mean over heads and over the tokens of both words."""
    model = made("bert", tmp_path, len(tokenizer)).eval()
    explorer = cdlm_lab.explore(model, tokenizer, ["rain in town", "rain fell"])
    explorer.choose(Selection(source=(0, 0, 1), layer=1, direction="from"))
    (panel,) = explorer.content.answer(explorer.chosen)
    texts = [
        tokenizer(f" {text}", add_special_tokens=False)["input_ids"] for text in ("rain in town", "rain fell")
    ]
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    ids = torch.tensor([[cls, cls, *texts[0], sep, cls, *texts[1], sep, sep]])
    model.set_attn_implementation("eager")
    with torch.no_grad():
        weights = model(ids, output_attentions=True).attentions[1][0]
    rain = len(tokenizer(" rain", add_special_tokens=False)["input_ids"])
    other = 2 + len(texts[0]) + 2  # the first token of the second text
    recorded = attend_to_source(model, ids[0], source=range(2, 2 + rain), layers=[1])
    np.testing.assert_allclose(recorded.given[0], weights[:, 2 : 2 + rain], atol=1e-6)
    np.testing.assert_allclose(recorded.received[0], weights[:, :, 2 : 2 + rain].transpose(1, 2), atol=1e-6)
    scores = source_scores(recorded.given, recorded.received, directions="from", layers=[0])
    assert panel.scores[3] == pytest.approx(scores[other : other + rain].mean(), rel=0.01)


def test_an_encoder_with_attention_of_its_own_is_refused_in_one_line(tokenizer: Any) -> None:
    model = DebertaV2Model(DebertaV2Config(**SIZES, vocab_size=len(tokenizer)))
    with pytest.raises(ValueError, match="DebertaV2Model does not return its attention"):
        cdlm_lab.explore(model, tokenizer, "rain").choose(Selection(source=(0, 0, 1)))
