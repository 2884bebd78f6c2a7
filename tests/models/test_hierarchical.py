"""Hierarchical encoders: the levels in loops for one pair, masks, symmetry, and what cannot be built."""

import pytest
import torch
from torch import Tensor

from cdlm_lab.models.matching import HierarchicalConfig, HierarchicalEncoder, contextualised

KINDS = [("gru", "none"), ("gru", "shallow"), ("gru", "deep"), ("vectors", "none"), ("vectors", "shallow")]
KINDS += [("average", "none")]


def encoder_of(encoder: str, cda: str) -> HierarchicalEncoder:
    torch.manual_seed(0)
    config = HierarchicalConfig(
        encoder=encoder, cda=cda, vocabulary_size=30, word_size=5, vector_size=6, hidden_size=4
    )
    made = HierarchicalEncoder(config).double()
    with torch.no_grad():
        for weight in made.parameters():
            weight.normal_(0, 0.5)
    return made


def batch_of(encoder: str) -> tuple[Tensor, Tensor]:
    """Two pairs: documents of 3, 1, 2 and 3 sentences of 1 to 4 words, or as many encodings."""
    generator = torch.Generator().manual_seed(1)
    mask = torch.tensor([[[1, 1, 1], [1, 0, 0]], [[1, 1, 0], [1, 1, 1]]]).bool()
    if encoder != "gru":
        return torch.randn(2, 2, 3, 6, generator=generator).double() * mask[..., None], mask
    words = torch.randint(1, 30, (2, 2, 3, 4), generator=generator)
    lengths = torch.randint(1, 5, (2, 2, 3), generator=generator)
    return words * (torch.arange(4) < lengths[..., None]) * mask[..., None], mask


@pytest.mark.parametrize(("encoder", "cda"), KINDS)
def test_a_pair_alone_is_the_pair_in_its_batch_and_filling_is_inert(encoder: str, cda: str):
    model, (inputs, mask) = encoder_of(encoder, cda), batch_of(encoder)
    together = model(inputs, mask)
    alone = model(inputs[1:], mask[1:])
    torch.testing.assert_close(alone.documents[0], together.documents[1])
    shape = (2, 2, 2, *inputs.shape[3:])  # two more sentences, and for words one more word, all filling
    longer = torch.cat([inputs, torch.zeros(shape, dtype=inputs.dtype)], 2)
    if encoder == "gru":
        longer = torch.nn.functional.pad(longer, (0, 1))
    else:
        longer[:, :, 3:] = 1e3
    padded = model(longer, torch.cat([mask, torch.zeros(2, 2, 2, dtype=torch.bool)], 2))
    torch.testing.assert_close(padded.documents, together.documents)
    torch.testing.assert_close(padded.plain, together.plain)
    torch.testing.assert_close(padded.sentences[:, :, :3][mask], together.sentences[mask])


@pytest.mark.parametrize(("encoder", "cda"), KINDS)
def test_swapped_documents_swap_their_vectors(encoder: str, cda: str):
    model, (inputs, mask) = encoder_of(encoder, cda), batch_of(encoder)
    given, swapped = model(inputs, mask), model(inputs.flip(1), mask.flip(1))
    torch.testing.assert_close(swapped.documents, given.documents.flip(1))
    torch.testing.assert_close(swapped.sentences, given.sentences.flip(1))


@pytest.mark.parametrize(("encoder", "cda"), KINDS)
def test_only_cross_document_attention_sees_the_other_document(encoder: str, cda: str):
    model, (inputs, mask) = encoder_of(encoder, cda), batch_of(encoder)
    other = inputs.clone()
    other[0, 1, 0] = inputs[1, 1, 2]  # another sentence in the partner of document (0, 0)
    before, after = model(inputs, mask), model(other, mask)
    same = torch.allclose(before.documents[0, 0], after.documents[0, 0])
    assert same == (cda == "none")
    assert torch.allclose(before.plain[0, 0], after.plain[0, 0]) == (cda != "deep")
    torch.testing.assert_close(before.documents[1], after.documents[1])


def read(gru: torch.nn.GRU, rows: Tensor) -> Tensor:
    """One sequence (items, size) through a GRU, by itself."""
    return gru(rows[None])[0][0]


def pooled(pooling: torch.nn.Module, rows: Tensor) -> Tensor:
    return pooling(rows[None], torch.ones(1, len(rows), dtype=torch.bool))[0][0]


def told(model: HierarchicalEncoder, query: Tensor, parts: Tensor) -> Tensor:
    """Equation 2."""
    weights = torch.softmax(parts @ query, 0)
    return model.cross.affine(torch.cat([query, weights @ parts]))


@pytest.mark.parametrize("cda", ["none", "shallow", "deep"])
def test_gru_han_level_by_level(cda: str):
    model, (inputs, mask) = encoder_of("gru", cda), batch_of("gru")
    words, sentences = [[], []], [[], []]
    for side in range(2):
        for ids in inputs[1, side][mask[1, side]]:
            states = read(model.word_gru, model.words(ids[ids != 0]))
            words[side].append(states)
            sentences[side].append(pooled(model.word_pooling, states))
    before = [torch.stack(one) for one in sentences]
    after = before
    if cda == "deep":
        after = [
            torch.stack([
                told(model, one, torch.cat([before[1 - side], *words[1 - side]])) for one in before[side]
            ])
            for side in range(2)
        ]  # fmt: skip
    plain = [pooled(model.sentence_pooling, read(model.sentence_gru, one)) for one in after]
    found = model(inputs, mask)
    for side in range(2):
        expected = plain[side]
        if cda != "none":
            parts = torch.cat([after[1 - side], plain[1 - side][None]])
            expected = told(model, plain[side], parts)
        torch.testing.assert_close(found.documents[1, side], expected)
        torch.testing.assert_close(found.plain[1, side], plain[side])
        torch.testing.assert_close(found.sentences[1, side][mask[1, side]], after[side])


def test_bert_han_attends_to_sentences_after_the_first_gru():
    model, (inputs, mask) = encoder_of("vectors", "shallow"), batch_of("vectors")
    first = [read(model.vector_gru, inputs[1, side][mask[1, side]]) for side in range(2)]
    plain = [pooled(model.sentence_pooling, read(model.sentence_gru, one)) for one in first]
    expected = told(model, plain[0], torch.cat([first[1], plain[1][None]]))
    torch.testing.assert_close(model(inputs, mask).documents[1, 0], expected)


def test_bert_avg_is_the_mean_of_the_sentences():
    model, (inputs, mask) = encoder_of("average", "none"), batch_of("average")
    assert not list(model.parameters())
    torch.testing.assert_close(model(inputs, mask).documents[1, 0], inputs[1, 0, :2].mean(0))


def test_a_document_without_sentences_is_zero_and_not_nan():
    model, (inputs, mask) = encoder_of("gru", "deep"), batch_of("gru")
    mask[0, 1] = False
    inputs[0, 1] = 0
    found = model(inputs, mask)
    assert not found.plain[0, 1].any()
    assert torch.isfinite(found.documents).all()


def test_rows_of_a_gru_do_not_see_each_other():
    gru = torch.nn.GRU(3, 2, batch_first=True, bidirectional=True)
    states = torch.randn(3, 4, 3)
    mask = torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0]]).bool()
    found = contextualised(gru, states, mask)
    torch.testing.assert_close(found[2, :2], gru(states[2:, :2])[0][0])
    assert not found[1].any()
    assert not found[2, 2:].any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder": "lstm"}, "encoder is 'lstm'; choose one of gru, vectors, average"),
        ({"cda": "full"}, "cda is 'full'; choose one of none, shallow, deep"),
        ({"encoder": "vectors", "cda": "deep"}, "attends to words, which encoder 'vectors' has not"),
        ({"encoder": "average", "cda": "shallow"}, "has no level to attend to"),
        ({"encoder": "gru"}, "vocabulary_size is 0"),
        ({"encoder": "vectors"}, "vector_size is 0"),
    ],
)
def test_what_cannot_be_built(settings: dict, message: str):
    with pytest.raises(ValueError, match=message):
        HierarchicalConfig(**settings)
