"""Pair classifier, matchers and pair scorer: heads, levels, alignments, losses as the papers' equations."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from pathlib import Path

import model_cases as cases
import pytest
import torch
from model_cases import DOCUMENTS, MATCHERS, MAX_TOKENS, SHALLOW, TINY, Batch, Loaded, of_cases
from torch import Tensor, nn
from transformers import LongformerForMaskedLM, LongformerForSequenceClassification

from cdlm_lab.encoders.checkpoint import CheckpointError, own_randomness
from cdlm_lab.encoders.frozen import load_sentence_encoder
from cdlm_lab.encoders.packed import replace_self_attention
from cdlm_lab.tasks.coreference.model import PairScorer, load_pair_scorer, pair_vectors
from cdlm_lab.tasks.matching import model as matching
from cdlm_lab.tasks.matching.model import (
    DocumentMatcher,
    FineTunedMatcher,
    HierarchicalConfig,
    PairClassifier,
)


@pytest.fixture
def classifier(tiny: Path) -> PairClassifier:
    return matching.load_pair_classifier(tiny, **TINY)[0]


@pytest.fixture
def scorer(tiny: Path) -> PairScorer:
    return load_pair_scorer(tiny, **TINY)[0]


# ---- pairs of texts in one sequence


def test_the_classifier_is_that_of_transformers(classifier: PairClassifier):
    """Names, head and logits are those of transformers, whose last layer computes every token."""
    batch = cases.classified()
    theirs = LongformerForSequenceClassification(classifier.config).eval()
    theirs.load_state_dict(classifier.state_dict())
    replace_self_attention(theirs)
    expected, actual = theirs(**batch), classifier(**batch)
    torch.testing.assert_close(actual.logits, expected.logits, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(actual.loss, expected.loss, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize(
    ("load", "batch"),
    [(matching.load_pair_classifier, cases.classified()), (load_pair_scorer, cases.scored())],
    ids=["", "scorer"],
)
def test_a_whole_last_layer_changes_no_logit_and_no_gradient(
    load: Callable, batch: Batch, tiny: Path, tmp_path: Path, trained: bool
):
    model, tokenizer = load(tiny, **TINY, seed=3)
    if trained:
        model, _ = load(cases.saved(tmp_path, model, tokenizer), **TINY)
    whole = copy.deepcopy(model)
    whole.longformer.only_globals = False
    if load is matching.load_pair_classifier:
        whole = load(tmp_path if trained else tiny, **TINY, seed=3, whole_last_layer=True)[0]
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "global_attention_mask")}
    local = (batch["global_attention_mask"] == 0) & (batch["attention_mask"] == 1)
    assert not model.longformer(**inputs).last_hidden_state[local].any()
    assert whole.longformer(**inputs).last_hidden_state[local].any(-1).all()
    actual, expected = model(**batch), whole(**batch)
    torch.testing.assert_close(actual.logits, expected.logits, rtol=1e-5, atol=1e-6)
    actual.loss.backward()
    expected.loss.backward()
    cases.assert_same_gradients(model, whole, rtol=1e-4, atol=1e-6)


def test_an_encoder_of_another_task_gets_two_logits_all_the_same(tiny: Path, tmp_path: Path):
    model = LongformerForMaskedLM.from_pretrained(tiny)
    model.config.num_labels = 5
    cases.saved(tmp_path, model, matching.load_pair_classifier(tiny, **TINY)[1])
    actual, _ = matching.load_pair_classifier(tmp_path, **TINY, dropout=0.25)
    assert actual.config.num_labels == 2
    assert actual(**cases.classified()).logits.shape == (4, 2)
    assert actual.classifier.dropout.p == actual.longformer.embeddings.dropout.p == 0.25


def test_the_vector_of_a_pair_is_s_and_sums_and_their_product(scorer: PairScorer):
    states = torch.tensor([[[9.0, 8.0], [1.0, 2.0], [3.0, -4.0], [5.0, 6.0]]])
    mask = torch.tensor([[[False, True, True, False], [False, False, False, True]]])
    # s = (9, 8), m_i = (1 + 3, 2 - 4), m_j = (5, 6), product = (20, -12)
    assert pair_vectors(states, mask).tolist() == [[9.0, 8.0, 4.0, -2.0, 5.0, 6.0, 20.0, -12.0]]
    with pytest.raises(ValueError, match="mention_mask is missing"):
        scorer(cases.scored()["input_ids"])
    first, squash, last = scorer.scorer
    assert (first.in_features, first.out_features, last.out_features) == (4 * 16, 1024, 1)
    assert isinstance(squash, nn.Tanh)


# ---- an encoder that is trained along


@of_cases("fine-tuned matcher")
@pytest.mark.parametrize("encoder", ["vectors", "average"])
def test_it_starts_as_the_matcher_of_frozen_vectors(bert: Path, batch: Batch, encoder: str):
    kind = SHALLOW | {"encoder": encoder, "cda": "none"}
    model, _ = matching.load_finetuned_matcher(bert, matcher=kind, max_tokens=MAX_TOKENS)
    frozen = load_sentence_encoder(bert, max_tokens=MAX_TOKENS)
    vectors = torch.zeros(3, 2, 4, 32)
    for row, pair in enumerate(DOCUMENTS):
        for side, sentences in enumerate(pair):
            vectors[row, side, : len(sentences)] = torch.from_numpy(frozen.encode(sentences))
    expected = model.matcher(vectors, batch["sentence_mask"], batch["labels"])
    actual = model(**batch)
    for name in ("logits", "loss", "attention"):
        torch.testing.assert_close(actual[name], expected[name], rtol=0, atol=1e-4)
    assert actual.logits.detach().std() > 1e-3, "all the same would show nothing"
    with own_randomness(0):
        drawn = DocumentMatcher(HierarchicalConfig(**kind, vector_size=32)).state_dict()
    for name, weight in model.matcher.state_dict().items():
        assert torch.equal(weight, drawn[name]), name


@of_cases("fine-tuned matcher")
def test_tokens_stand_between_the_ends_and_are_cut(model: FineTunedMatcher, batch: Batch):
    # Ids: [PAD] 0, [CLS] 1, [SEP] 2, w0 5, and numbers are ids + 2; eight tokens leave room for six words.
    words = torch.tensor([[7, 8, 0, 0, 0, 0, 0, 0], [7, 8, 9, 10, 11, 12, 13, 14], [1, 0, 0, 0, 0, 0, 0, 0]])
    ids, mask = model._between_ends(words)
    assert ids.tolist() == [[1, 5, 6, 2, 0, 0, 0, 0], [1, 5, 6, 7, 8, 9, 10, 2], [1, 2, 0, 0, 0, 0, 0, 0]]
    assert mask.sum(1).tolist() == [4, 8, 2]
    assert mask[0].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    widths = []
    model.longformer.register_forward_hook(lambda module, given, output: widths.append(given[0].shape))
    model(**batch)
    assert widths == [(11, MAX_TOKENS)], "eleven sentences of at most eight tokens, filling is not computed"


@of_cases("fine-tuned matcher")
def test_a_trained_one_is_what_was_trained_and_may_read_shorter_sentences(
    bert: Path, loaded: Loaded, batch: Batch, tmp_path: Path
):
    cases.saved(tmp_path, *loaded)
    logits = [
        matching.load_finetuned_matcher(name, matcher=SHALLOW, max_tokens=5)[0](**batch).logits
        for name in (tmp_path, bert)
    ]
    torch.testing.assert_close(*logits, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match=r"trained with cda 'shallow', not 'none'; ask for 'shallow'"):
        matching.load_finetuned_matcher(tmp_path, matcher=SHALLOW | {"cda": "none"}, max_tokens=MAX_TOKENS)
    with pytest.raises(CheckpointError, match=r"max_length \(18\) is longer than .* was made for \(16\)"):
        matching.load_finetuned_matcher(tmp_path, matcher=SHALLOW, max_tokens=9)
    with pytest.raises(ValueError, match="encoder is 'gru', which reads words, not sentences"):
        matching.load_finetuned_matcher(bert, matcher={"encoder": "gru"}, max_tokens=MAX_TOKENS)
    with pytest.raises(ValueError, match="max_tokens is 1"):
        matching.load_finetuned_matcher(bert, matcher=SHALLOW, max_tokens=1)


# ---- documents of sentences, level by level


def encoder_of(encoder: str, cda: str) -> matching.HierarchicalEncoder:
    torch.manual_seed(0)
    sizes = {"vocabulary_size": 30, "word_size": 5, "vector_size": 6, "hidden_size": 4}
    made = matching.HierarchicalEncoder(HierarchicalConfig(encoder=encoder, cda=cda, **sizes)).double()
    with torch.no_grad():
        for weight in made.parameters():
            weight.normal_(0, 0.5)
    return made


def batch_of(encoder: str) -> tuple[Tensor, Tensor]:
    """Make two pairs of documents with 3, 1, 2 and 3 sentences of 1 to 4 words, or with random encodings."""
    generator = torch.Generator().manual_seed(1)
    mask = torch.tensor([[[1, 1, 1], [1, 0, 0]], [[1, 1, 0], [1, 1, 1]]]).bool()
    if encoder != "gru":
        return torch.randn(2, 2, 3, 6, generator=generator).double() * mask[..., None], mask
    words = torch.randint(1, 30, (2, 2, 3, 4), generator=generator)
    lengths = torch.randint(1, 5, (2, 2, 3), generator=generator)
    return words * (torch.arange(4) < lengths[..., None]) * mask[..., None], mask


every_matcher = pytest.mark.parametrize(("encoder", "cda"), MATCHERS)


@every_matcher
def test_only_cross_document_attention_sees_the_other_document(encoder: str, cda: str):
    model, (inputs, mask) = encoder_of(encoder, cda), batch_of(encoder)
    other = inputs.clone()
    other[0, 1, 0] = inputs[1, 1, 2]  # another sentence in the partner of document (0, 0)
    before, after = model(inputs, mask), model(other, mask)
    assert torch.allclose(before.documents[0, 0], after.documents[0, 0]) == (cda == "none")
    assert torch.allclose(before.plain[0, 0], after.plain[0, 0]) == (cda != "deep")
    torch.testing.assert_close(before.documents[1], after.documents[1])


def read(gru: nn.GRU, rows: Tensor) -> Tensor:
    """Read a single sequence (items, size) with a GRU."""
    return gru(rows[None])[0][0]


def pooled(pooling: nn.Module, rows: Tensor) -> Tensor:
    return pooling(rows[None], torch.ones(1, len(rows), dtype=torch.bool))[0][0]


def attending(model: matching.HierarchicalEncoder, query: Tensor, parts: Tensor) -> Tensor:
    """Compute cross-document attention of one query, equation 2 of the CDA paper."""
    return model.cross.affine(torch.cat([query, torch.softmax(parts @ query, 0) @ parts]))


@pytest.mark.parametrize("cda", ["none", "shallow", "deep"])
def test_gru_han_level_by_level(cda: str):
    model, (inputs, mask) = encoder_of("gru", cda), batch_of("gru")
    words = [
        [read(model.word_gru, model.words(ids[ids != 0])) for ids in inputs[1, side][mask[1, side]]]
        for side in range(2)
    ]
    before = [torch.stack([pooled(model.word_pooling, states) for states in side]) for side in words]
    after = before
    if cda == "deep":
        parts = [torch.cat([before[side], *words[side]]) for side in range(2)]
        after = [
            torch.stack([attending(model, one, parts[1 - side]) for one in before[side]]) for side in range(2)
        ]
    plain = [pooled(model.sentence_pooling, read(model.sentence_gru, one)) for one in after]
    actual = model(inputs, mask)
    for side in range(2):
        expected = plain[side]
        if cda != "none":
            expected = attending(model, expected, torch.cat([after[1 - side], plain[1 - side][None]]))
        torch.testing.assert_close(actual.documents[1, side], expected)
        torch.testing.assert_close(actual.plain[1, side], plain[side])
        torch.testing.assert_close(actual.sentences[1, side][mask[1, side]], after[side])


def test_bert_han_attends_to_sentences_after_the_first_gru_and_bert_avg_is_a_mean():
    model, (inputs, mask) = encoder_of("vectors", "shallow"), batch_of("vectors")
    first = [read(model.vector_gru, inputs[1, side][mask[1, side]]) for side in range(2)]
    plain = [pooled(model.sentence_pooling, read(model.sentence_gru, one)) for one in first]
    expected = attending(model, plain[0], torch.cat([first[1], plain[1][None]]))
    torch.testing.assert_close(model(inputs, mask).documents[1, 0], expected)
    average = encoder_of("average", "none")
    assert not list(average.parameters())
    torch.testing.assert_close(average(inputs, mask).documents[1, 0], inputs[1, 0, :2].mean(0))


@pytest.mark.parametrize(("encoder", "cda"), [("vectors", "shallow"), ("average", "none")])
def test_standardised_encodings_are_read_as_without_what_they_have_in_common(encoder: str, cda: str):
    plain, batch = cases.matcher_of(encoder, cda), cases.document_pairs(encoder)
    model = DocumentMatcher(HierarchicalConfig(**plain.config.to_dict() | {"standardised": True})).eval()
    assert not model.load_state_dict(plain.state_dict(), strict=False).unexpected_keys
    mask, common = batch["sentence_mask"], 4 + torch.arange(6.0)
    moved = batch | {"inputs": 7 * batch["inputs"] + common}
    model.encoder.standardise(moved["inputs"][mask])
    inputs = batch["inputs"] - batch["inputs"][mask].mean(0)
    inputs = inputs / inputs[mask].square().mean().sqrt()
    expected, actual = plain(**batch | {"inputs": inputs}), model(**moved)
    for name in ("logits", "attention", "cosine"):
        torch.testing.assert_close(actual[name], expected[name], rtol=1e-4, atol=1e-5)


def test_a_document_without_sentences_is_zero_and_not_nan():
    model, (inputs, mask) = encoder_of("gru", "deep"), batch_of("gru")
    mask[0, 1], inputs[0, 1] = False, 0
    actual = model(inputs, mask)
    assert not actual.plain[0, 1].any()
    assert torch.isfinite(actual.documents).all()


@every_matcher
@torch.no_grad()
def test_alignments_are_equations_3_and_4(encoder: str, cda: str):
    model, batch = cases.matcher_of(encoder, cda), cases.document_pairs(encoder)
    out = model(**batch)
    encoded = model.encoder(batch["inputs"], batch["sentence_mask"])
    for side in range(2):
        target, own = encoded.plain[2, 1 - side], encoded.sentences[2, side]
        present = batch["sentence_mask"][2, side].nonzero().flatten().tolist()
        products = {n: float(own[n] @ target) for n in present}
        total = sum(map(math.exp, products.values()))
        shares = [math.exp(products[n]) / total if n in products else 0 for n in range(3)]
        cosines = [
            products[n] / float(own[n].norm() * target.norm()) if n in products else -1 for n in range(3)
        ]
        assert out.attention[2, side].tolist() == pytest.approx(shares, rel=1e-4)
        assert out.cosine[2, side].tolist() == pytest.approx(cosines, rel=1e-4, abs=1e-5)


def test_cross_document_attention_adds_20k_parameters_at_any_depth():
    def parameters(cda: str) -> int:
        config = HierarchicalConfig(encoder="gru", cda=cda, vocabulary_size=1000)
        return sum(weight.numel() for weight in DocumentMatcher(config).parameters())

    assert parameters("shallow") - parameters("none") == 20_100
    assert parameters("deep") == parameters("shallow")


@pytest.mark.parametrize(("initializer_range", "words"), [(0.3, 0.3), (0.0, 0.15)])
def test_weights_are_drawn_as_the_config_says_and_filling_is_zero(initializer_range: float, words: float):
    form = {"encoder": "gru", "cda": "deep", "initializer_range": initializer_range}
    model = DocumentMatcher(HierarchicalConfig(vocabulary_size=5000, **form))
    encoder = model.encoder
    assert not encoder.words.weight[0].any()
    assert float(encoder.words.weight[1:].detach().std()) == pytest.approx(words, rel=0.02)
    assert not encoder.word_gru.bias_hh_l0.any()
    matrices = {"affine": encoder.cross.affine.weight, "head": model.head[0].weight}
    matrices["update gate"] = encoder.sentence_gru.weight_ih_l0[50:100]
    for name, weight in matrices.items():
        expected = initializer_range or math.sqrt(2 / sum(weight.shape))  # Glorot and Bengio 2010, eq. 16
        assert float(weight.detach().std()) == pytest.approx(expected, rel=0.05), name
    for gate in encoder.word_gru.weight_hh_l0.detach().chunk(3):
        assert torch.allclose(gate @ gate.T, torch.eye(50), atol=1e-5) == (not initializer_range)
