"""Integrated gradients of a prediction: they add up, and are those of a slow second definition."""

import numpy as np
import pytest
import torch
from transformers import LongformerConfig

from cdlm_lab.attention.layer import replace_self_attention
from cdlm_lab.encoders.language_model import CrossDocumentLM
from cdlm_lab.explorer.attribution import Attribution, integrated_gradients

WORDS, MASK, LENGTH = 31, 4, 22
TEXT = np.random.default_rng(3).integers(5, WORDS, size=LENGTH)
HIDDEN, GLOBAL = np.array([6, 7]), np.isin(np.arange(LENGTH), [3, 7])
IS_WORD = ~np.isin(np.arange(LENGTH), [0, 10, 21])
READ = np.where(np.isin(np.arange(LENGTH), [6, 7, 15]), MASK, TEXT)  # 15: hidden, but not asked for


@pytest.fixture(scope="module")
def model() -> CrossDocumentLM:
    torch.manual_seed(1)
    config = LongformerConfig(
        vocab_size=WORDS, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        attention_window=[4, 6], max_position_embeddings=40, pad_token_id=1, initializer_range=0.4,
        hidden_dropout_prob=0.3,
    )  # fmt: skip
    return replace_self_attention(CrossDocumentLM(config))


def attributed(model: CrossDocumentLM, **options: int) -> Attribution:
    form = {"positions": HIDDEN, "truth": TEXT[HIDDEN], "words": IS_WORD, "is_global": GLOBAL, "mask": MASK}
    return integrated_gradients(model, READ, **form, **options)


def ends(model: CrossDocumentLM, pieces: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings of the text and of the baseline, with so many of the hidden pieces in both."""
    read, base = READ.copy(), np.where(IS_WORD, MASK, READ)
    for ids in (read, base):
        ids[HIDDEN[:pieces]] = TEXT[HIDDEN[:pieces]]
    embed = model.get_input_embeddings()
    return embed(torch.from_numpy(read)).detach(), embed(torch.from_numpy(base)).detach()


def log_probability(model: CrossDocumentLM, embeddings: torch.Tensor, piece: int) -> torch.Tensor:
    masks = {"global_attention_mask": torch.from_numpy(GLOBAL)[None].long()}
    logits = model.eval()(inputs_embeds=embeddings[None], **masks).logits[0]
    return logits[HIDDEN[piece]].log_softmax(-1)[TEXT[HIDDEN[piece]]]


def test_they_add_up_to_the_difference_of_the_outputs(model):
    result = attributed(model, steps=60)
    assert abs(result.output - result.baseline) > 0.1, "else there is nothing to add up to"
    gap, far = (
        abs(one.output - one.baseline - one.tokens.sum()) for one in (result, attributed(model, steps=3))
    )
    assert gap < 0.01 * abs(result.output - result.baseline)
    assert far > gap, "more steps come nearer"
    with torch.no_grad():
        outputs = [[float(log_probability(model, end, n)) for end in ends(model, n)] for n in (0, 1)]
    assert [result.output, result.baseline] == pytest.approx(np.sum(outputs, axis=0), rel=1e-4)
    unchanged = ~IS_WORD | (READ == MASK)
    assert (result.tokens[unchanged] == 0).all()
    assert (np.abs(result.tokens[~unchanged]) > 0).all()


def test_they_are_those_of_the_midpoint_rule(model):
    steps, expected = 200, np.zeros(LENGTH)
    for piece in (0, 1):
        text, base = ends(model, piece)
        for step in range(steps):
            point = (base + (step + 0.5) / steps * (text - base)).requires_grad_()
            gradient = torch.autograd.grad(log_probability(model, point, piece), point)[0]
            expected += ((text - base) * gradient / steps).sum(-1).numpy()
    given = attributed(model, steps=60).tokens
    np.testing.assert_allclose(given, expected, atol=2e-3 * np.abs(expected).max())


def test_the_model_is_left_as_it_was(model):
    model.train()
    before = attributed(model)
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    np.testing.assert_array_equal(attributed(model).tokens, before.tokens)
