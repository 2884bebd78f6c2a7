"""The pair classifier, the matchers and the pair scorer: heads, levels, alignments and losses are the papers'
equations."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import pytest
import torch
from model_cases import (
    DOCUMENTS,
    MATCHERS,
    MAX_TOKENS,
    SHALLOW,
    Batch,
    assert_same_gradients,
    classified,
    document_pairs,
    matcher_of,
    scored,
    sentences_of_documents,
)
from torch import Tensor
from transformers import LongformerForMaskedLM, LongformerForSequenceClassification

from cdlm_lab.attention.layer import replace_self_attention
from cdlm_lab.examples.mention_pairs import MENTION_END, MENTION_START
from cdlm_lab.models.checkpoint import CheckpointError, own_randomness
from cdlm_lab.models.coreference import PairScorer, load_pair_scorer, pair_vectors
from cdlm_lab.models.frozen import load_sentence_encoder
from cdlm_lab.models.matching import (
    DocumentMatcher,
    FineTunedMatcher,
    HierarchicalConfig,
    HierarchicalEncoder,
    PairClassifier,
    contextualised,
    load_finetuned_matcher,
    load_pair_classifier,
)


@pytest.fixture
def batch() -> Batch:
    return classified()


@pytest.fixture
def classifier(tiny: Path) -> PairClassifier:
    return load_pair_classifier(tiny, max_length=64, window=8)[0]


def saved(model: PairClassifier, tiny: Path, target: Path) -> Path:
    """The model and its tokenizer, as training leaves them."""
    model.save_pretrained(target)
    load_pair_classifier(tiny, max_length=64, window=8)[1].save_pretrained(target)
    return target


def test_it_is_the_classifier_of_transformers(classifier: PairClassifier, batch: Batch):
    """Names, head and logits; whose last layer computes every token."""
    theirs = LongformerForSequenceClassification(classifier.config).eval()
    theirs.load_state_dict(classifier.state_dict())
    replace_self_attention(theirs)
    expected = theirs(**batch)
    actual = classifier(**batch)
    torch.testing.assert_close(actual.logits, expected.logits, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(actual.loss, expected.loss, rtol=1e-5, atol=1e-6)
    assert actual.logits.shape == (4, 2)


def test_the_loss_is_the_formula(classifier: PairClassifier, batch: Batch):
    out = classifier(**batch)
    p = out.logits.double().softmax(1)
    expected = -(p[0, 1].log() + p[1, 0].log() + p[2, 0].log() + p[3, 1].log()) / 4
    assert out.loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert classifier(**{name: t for name, t in batch.items() if name != "labels"}).loss is None


@pytest.mark.parametrize("trained", [False, True])
def test_a_whole_last_layer_changes_no_logit_and_no_gradient(tiny, batch, tmp_path, trained):
    name = tiny
    if trained:
        name = saved(load_pair_classifier(tiny, max_length=64, window=8, seed=3)[0], tiny, tmp_path)
    (model, _), (whole, _) = (
        load_pair_classifier(name, max_length=64, window=8, whole_last_layer=whole) for whole in (False, True)
    )
    inputs = {name: t for name, t in batch.items() if name != "labels"}
    texts = slice(1, 24)  # of every row
    assert not model.longformer(**inputs).last_hidden_state[:, texts].any()
    assert whole.longformer(**inputs).last_hidden_state[:, texts].any(-1).all()
    actual, expected = model(**batch), whole(**batch)
    torch.testing.assert_close(actual.logits, expected.logits, rtol=1e-5, atol=1e-6)
    actual.loss.backward()
    expected.loss.backward()
    assert_same_gradients(model, whole, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("missing", ["all", "in one row"])
def test_the_first_token_must_be_global(classifier: PairClassifier, batch: Batch, missing: str):
    if missing == "all":
        batch["global_attention_mask"] = None
    else:
        batch["global_attention_mask"][2, 0] = 0
        batch["global_attention_mask"][2, 5] = 1
    with pytest.raises(
        ValueError, match=r"^the first token must be global: set it to 1 in global_attention_mask$"
    ):
        classifier(**batch)


def test_an_encoder_of_another_task_gets_two_logits_all_the_same(tiny: Path, tmp_path: Path, batch: Batch):
    model = LongformerForMaskedLM.from_pretrained(tiny)
    model.config.num_labels = 5
    model.save_pretrained(tmp_path)
    load_pair_classifier(tiny, max_length=64, window=8)[1].save_pretrained(tmp_path)
    actual, _ = load_pair_classifier(tmp_path, max_length=64, window=8)
    assert actual.config.num_labels == 2
    assert actual(**batch).logits.shape == (4, 2)


def test_dropout_is_of_encoder_and_head(tiny: Path):
    model, _ = load_pair_classifier(tiny, max_length=64, window=8, dropout=0.25)
    assert model.classifier.dropout.p == 0.25
    assert model.longformer.embeddings.dropout.p == 0.25


@pytest.fixture
def document_batch(bert) -> Batch:
    return sentences_of_documents(load_finetuned_matcher(bert, matcher=SHALLOW, max_tokens=MAX_TOKENS)[1])


@pytest.fixture
def model(bert) -> FineTunedMatcher:
    return load_finetuned_matcher(bert, matcher=SHALLOW, max_tokens=MAX_TOKENS)[0]


@pytest.mark.parametrize("encoder", ["vectors", "average"])
def test_it_starts_as_the_matcher_of_frozen_vectors(bert, document_batch: Batch, encoder: str):
    kind = SHALLOW | {"encoder": encoder, "cda": "none"}
    model, _ = load_finetuned_matcher(bert, matcher=kind, max_tokens=MAX_TOKENS)
    frozen = load_sentence_encoder(bert, max_tokens=MAX_TOKENS)
    vectors = torch.zeros(3, 2, 4, 32)
    for row, pair in enumerate(DOCUMENTS):
        for side, sentences in enumerate(pair):
            vectors[row, side, : len(sentences)] = torch.from_numpy(frozen.encode(sentences))
    expected = model.matcher(vectors, document_batch["sentence_mask"], document_batch["labels"])
    actual = model(**document_batch)
    torch.testing.assert_close(actual.logits, expected.logits, rtol=0, atol=1e-4)
    torch.testing.assert_close(actual.loss, expected.loss, rtol=0, atol=1e-4)
    torch.testing.assert_close(actual.attention, expected.attention, rtol=0, atol=1e-4)
    assert actual.logits.detach().std() > 1e-3, "all the same would show nothing"


def test_tokens_stand_between_the_ends_and_are_cut(model: FineTunedMatcher):
    # Ids: [PAD] 0, [CLS] 1, [SEP] 2, w0 5, and numbers are ids + 2; eight tokens leave room for six words.
    words = torch.tensor([[7, 8, 0, 0, 0, 0, 0, 0], [7, 8, 9, 10, 11, 12, 13, 14], [1, 0, 0, 0, 0, 0, 0, 0]])
    ids, mask = model._between_ends(words)
    assert ids.tolist() == [[1, 5, 6, 2, 0, 0, 0, 0], [1, 5, 6, 7, 8, 9, 10, 2], [1, 2, 0, 0, 0, 0, 0, 0]]
    assert mask.sum(1).tolist() == [4, 8, 2]
    assert mask[0].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_filling_is_inert_and_not_computed(model: FineTunedMatcher, document_batch: Batch):
    expected = model(**document_batch).logits
    widths = []
    model.longformer.register_forward_hook(lambda module, given, output: widths.append(given[0].shape))
    wider = torch.nn.functional.pad(document_batch["inputs"], (0, 3, 0, 2))
    wider[..., 4:, :] = 9  # sentences that are not there
    mask = torch.nn.functional.pad(document_batch["sentence_mask"], (0, 2))
    torch.testing.assert_close(model(wider, mask).logits, expected, rtol=1e-4, atol=1e-5)
    assert widths == [(11, MAX_TOKENS)], "eleven sentences of at most eight tokens"


@pytest.fixture
def trained(bert, model: FineTunedMatcher, tmp_path: Path) -> Path:
    model.save_pretrained(tmp_path)
    load_finetuned_matcher(bert, matcher=SHALLOW, max_tokens=MAX_TOKENS)[1].save_pretrained(tmp_path)
    return tmp_path


def test_a_trained_one_can_be_asked_for_shorter_sentences(trained: Path, bert, document_batch: Batch):
    shorter, _ = load_finetuned_matcher(trained, matcher=SHALLOW, max_tokens=5)
    other, _ = load_finetuned_matcher(bert, matcher=SHALLOW, max_tokens=5)
    torch.testing.assert_close(
        shorter(**document_batch).logits, other(**document_batch).logits, rtol=0, atol=1e-5
    )


def test_a_trained_one_is_what_was_asked_for(trained: Path):
    with pytest.raises(ValueError, match=r"trained with cda 'shallow', not 'none'; ask for 'shallow'"):
        load_finetuned_matcher(trained, matcher=SHALLOW | {"cda": "none"}, max_tokens=MAX_TOKENS)
    with pytest.raises(CheckpointError, match=r"max_length \(18\) is longer than .* was made for \(16\)"):
        load_finetuned_matcher(trained, matcher=SHALLOW, max_tokens=9)


def test_the_matcher_is_drawn_from_the_seed_as_one_of_frozen_vectors(bert):
    before = torch.get_rng_state()
    first, same, other = (
        load_finetuned_matcher(bert, matcher=SHALLOW, max_tokens=MAX_TOKENS, seed=seed)[0]
        for seed in (0, 0, 1)
    )
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    heads = [model.matcher.head[0].weight for model in (first, same, other)]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])
    with own_randomness(0):
        frozen = DocumentMatcher(HierarchicalConfig(**SHALLOW, vector_size=32))
    for (name, weight), expected in zip(
        first.matcher.state_dict().items(), frozen.state_dict().values(), strict=True
    ):
        assert torch.equal(weight, expected), name


def test_words_are_no_sentences(bert):
    with pytest.raises(ValueError, match="encoder is 'gru', which reads words, not sentences"):
        load_finetuned_matcher(bert, matcher={"encoder": "gru"}, max_tokens=MAX_TOKENS)
    with pytest.raises(ValueError, match="max_tokens is 1"):
        load_finetuned_matcher(bert, matcher=SHALLOW, max_tokens=1)


MATCHERS += [("average", "none")]


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


@pytest.mark.parametrize(("encoder", "cda"), MATCHERS)
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


@pytest.mark.parametrize(("encoder", "cda"), MATCHERS)
def test_swapped_documents_swap_their_vectors(encoder: str, cda: str):
    model, (inputs, mask) = encoder_of(encoder, cda), batch_of(encoder)
    given, swapped = model(inputs, mask), model(inputs.flip(1), mask.flip(1))
    torch.testing.assert_close(swapped.documents, given.documents.flip(1))
    torch.testing.assert_close(swapped.sentences, given.sentences.flip(1))


@pytest.mark.parametrize(("encoder", "cda"), MATCHERS)
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
    actual = model(inputs, mask)
    for side in range(2):
        expected = plain[side]
        if cda != "none":
            parts = torch.cat([after[1 - side], plain[1 - side][None]])
            expected = told(model, plain[side], parts)
        torch.testing.assert_close(actual.documents[1, side], expected)
        torch.testing.assert_close(actual.plain[1, side], plain[side])
        torch.testing.assert_close(actual.sentences[1, side][mask[1, side]], after[side])


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
    actual = model(inputs, mask)
    assert not actual.plain[0, 1].any()
    assert torch.isfinite(actual.documents).all()


def test_rows_of_a_gru_do_not_see_each_other():
    gru = torch.nn.GRU(3, 2, batch_first=True, bidirectional=True)
    states = torch.randn(3, 4, 3)
    mask = torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0]]).bool()
    actual = contextualised(gru, states, mask)
    torch.testing.assert_close(actual[2, :2], gru(states[2:, :2])[0][0])
    assert not actual[1].any()
    assert not actual[2, 2:].any()


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


MATCHERS += [("average", "none")]


def test_the_loss_of_a_matcher_is_the_formula():
    out = matcher_of("gru", "deep")(**document_pairs("gru"))
    p = torch.sigmoid(out.logits.double())
    expected = -(p[0].log() + (1 - p[1]).log() + (1 - p[2]).log() + p[3].log()) / 4
    assert out.loss.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize(("encoder", "cda"), MATCHERS)
@torch.no_grad()
def test_alignments_are_equations_3_and_4(encoder: str, cda: str):
    model, batch = matcher_of(encoder, cda), document_pairs(encoder)
    out = model(**batch)
    encoded = model.encoder(batch["inputs"], batch["sentence_mask"])
    for side in range(2):
        target = encoded.plain[2, 1 - side]
        present = [n for n in range(3) if batch["sentence_mask"][2, side, n]]
        products = {n: float(encoded.sentences[2, side, n] @ target) for n in present}
        total = sum(map(math.exp, products.values()))
        for n in range(3):
            share = math.exp(products[n]) / total if n in products else 0
            assert float(out.attention[2, side, n]) == pytest.approx(share, rel=1e-4)
            cosine = -1.0
            if n in products:
                cosine = products[n] / float(encoded.sentences[2, side, n].norm() * target.norm())
            assert float(out.cosine[2, side, n]) == pytest.approx(cosine, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("encoder", "cda"), MATCHERS)
def test_swapped_documents_swap_their_alignments(encoder: str, cda: str):
    model, batch = matcher_of(encoder, cda), document_pairs(encoder)
    out = model(**batch)
    other = model(batch["inputs"].flip(1), batch["sentence_mask"].flip(1))
    torch.testing.assert_close(other.attention, out.attention.flip(1))
    torch.testing.assert_close(other.cosine, out.cosine.flip(1))


def parameters(cda: str) -> int:
    config = HierarchicalConfig(encoder="gru", cda=cda, vocabulary_size=1000)
    return sum(weight.numel() for weight in DocumentMatcher(config).parameters())


def test_cross_document_attention_adds_20k_parameters_at_any_depth():
    assert parameters("shallow") - parameters("none") == 20_100
    assert parameters("deep") == parameters("shallow")


def test_weights_are_drawn_as_the_config_says_and_filling_is_zero():
    model = DocumentMatcher(HierarchicalConfig(encoder="gru", vocabulary_size=5000, cda="deep"))
    words = model.encoder.words.weight
    assert not words[0].any()
    assert float(words[1:].detach().std()) == pytest.approx(0.15, rel=0.02)
    assert float(model.encoder.word_gru.weight_hh_l0.detach().std()) == pytest.approx(0.15, rel=0.05)
    assert not model.encoder.word_gru.bias_hh_l0.any()


@pytest.fixture
def mention_batch() -> Batch:
    return scored()


@pytest.fixture
def scorer(tiny: Path) -> PairScorer:
    return load_pair_scorer(tiny, max_length=64, window=8)[0]


def test_the_vector_is_s_and_sums_and_their_product():
    states = torch.tensor([[[9.0, 8.0], [1.0, 2.0], [3.0, -4.0], [5.0, 6.0]]])
    mask = torch.tensor([[[False, True, True, False], [False, False, False, True]]])
    # s = (9, 8), m_i = (1 + 3, 2 - 4), m_j = (5, 6), product = (20, -12)
    assert pair_vectors(states, mask).tolist() == [[9.0, 8.0, 4.0, -2.0, 5.0, 6.0, 20.0, -12.0]]


def test_the_mlp_has_one_hidden_layer_of_1024_and_tanh(scorer: PairScorer):
    first, squash, last = scorer.scorer
    assert (first.in_features, first.out_features, last.out_features) == (4 * 16, 1024, 1)
    assert isinstance(squash, torch.nn.Tanh)


def test_the_loss_of_a_scorer_is_the_formula(scorer: PairScorer, mention_batch: Batch):
    out = scorer(**mention_batch)
    p = torch.sigmoid(out.logits.double())
    expected = -(p[0].log() + (1 - p[1]).log() + (1 - p[2]).log() + p[3].log()) / 4
    assert out.loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert out.logits.shape == (4,)
    assert scorer(**{name: t for name, t in mention_batch.items() if name != "labels"}).loss is None


@pytest.mark.parametrize("trained", [False, True])
def test_a_whole_last_layer_would_change_nothing(
    scorer: PairScorer, tiny: Path, mention_batch: Batch, tmp_path: Path, trained: bool
):
    if trained:
        scorer.save_pretrained(tmp_path)
        load_pair_scorer(tiny, max_length=64, window=8)[1].save_pretrained(tmp_path)
        scorer = load_pair_scorer(tmp_path, max_length=64, window=8)[0]
    whole = copy.deepcopy(scorer)
    del whole.longformer.encoder.layer[-1].forward  # its class's own: every token
    actual, expected = scorer(**mention_batch), whole(**mention_batch)
    torch.testing.assert_close(actual.logits, expected.logits, rtol=1e-5, atol=1e-6)
    actual.loss.backward()
    expected.loss.backward()
    assert_same_gradients(scorer, whole, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("missing", ["all", "[CLS]", "a mention"])
def test_what_is_read_must_be_global(scorer: PairScorer, mention_batch: Batch, missing: str):
    if missing == "all":
        mention_batch["global_attention_mask"] = None
    else:
        mention_batch["global_attention_mask"][2, 0 if missing == "[CLS]" else 15] = 0
    with pytest.raises(ValueError, match=r"\[CLS\] and the tokens of both mentions must be global"):
        scorer(**mention_batch)


def test_the_marks_are_words_of_their_own_drawn_from_the_seed(tiny: Path):
    before = torch.get_rng_state()
    (model, tokenizer), (same, _), (other, _) = (
        load_pair_scorer(tiny, max_length=64, window=8, seed=seed) for seed in (0, 0, 1)
    )
    assert torch.equal(torch.get_rng_state(), before), "the global generator was moved"
    marks = tokenizer.convert_tokens_to_ids([MENTION_START, MENTION_END])
    assert len({*marks, tokenizer.unk_token_id}) == 3
    assert tokenizer(f"a {MENTION_START} b", add_special_tokens=False)["input_ids"].count(marks[0]) == 1
    rows = [m.longformer.get_input_embeddings().weight[marks] for m in (model, same, other)]
    assert torch.equal(rows[0], rows[1])
    assert not torch.equal(rows[0], rows[2])
    assert torch.equal(model.scorer[0].weight, same.scorer[0].weight)
    assert not torch.equal(model.scorer[0].weight, other.scorer[0].weight)


def test_no_mention_mask_no_score(scorer: PairScorer, mention_batch: Batch):
    with pytest.raises(ValueError, match="mention_mask is missing"):
        scorer(mention_batch["input_ids"])
