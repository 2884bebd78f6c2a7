"""From names to taggers: values that cannot be, sentences that are cut, what is encoded, what is loaded."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence
from cdlm_lab.experiments.document_tagging import (
    TAG_SYSTEMS,
    Tagger,
    TaggerParts,
    TaggingModels,
    new_tagger,
    predict_tags,
)
from cdlm_lab.models.frozen import ENDS
from cdlm_lab.parameters import ParameterError
from cdlm_lab.training.checkpoints import save_model


def document(name: str) -> TaggedDocument:
    words = f"The town of {name} burned while people slept near {name} bridge".split()
    return TaggedDocument(
        id=name,
        sentences=(
            TaggedSentence(words=tuple(words), tags=("O", "O", "O", "B-LOC", *["O"] * (len(words) - 4))),
            TaggedSentence(words=(name, "is", "small")),
            TaggedSentence(words=("Nobody", "came")),
        ),
    )


DOCUMENTS = [document("Dram"), document("Sul")]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def made(name: str, cache: Path, *, trained: Path | None = None, seed: int = 1, **more) -> Tagger:
    settings = TaggingModels(**{"layers": 1, "hidden_size": 6, "most_tokens": 10} | more)
    parts = TaggerParts(settings=settings, labels=("LOC",), cache=cache)
    system = TAG_SYSTEMS[name]
    return new_tagger(system, parts, most=3 if system.context else 0, seed=seed, trained=trained)


@pytest.mark.parametrize("name", ["bert-lstm", "doc-arc", "dynamic-doc-arc"])
def test_sentences_are_cut_to_the_tokens_that_there_is_room_for(name: str, cache: Path) -> None:
    examples = made(name, cache).read(DOCUMENTS)
    assert examples.tags == ("O", "B-LOC", "I-LOC")
    assert examples.most == (0 if name == "bert-lstm" else 3)
    found = predict_tags(made(name, cache), examples)
    assert [len(tags) for of_document in found.predicted() for tags in of_document] == [11, 11]
    assert found.gold()[0][0][3] == "B-LOC"
    sizes = [len(one.words) for split in examples.documents for one in split.document.sentences]
    assert max(sizes) <= 10 - ENDS
    assert len(examples) >= 4


def test_only_what_is_looked_at_is_encoded(cache: Path, tmp_path: Path) -> None:
    """ "Nobody came" has no word of a labelled sentence; "Dram is small" has one, for a tagger that looks."""
    for name, sentences in (("bert-lstm", 2), ("doc-arc", 4)):
        tagger = made(name, tmp_path / name, most_tokens=64)
        tagger.ready(tagger.read(DOCUMENTS))
        again = made(name, tmp_path / name, most_tokens=64)
        collate = again.collate_of(again.read(DOCUMENTS))
        assert len(collate.encodings) == sentences


@pytest.mark.parametrize("name", ["doc-arc", "dynamic-doc-arc", "dynamic-bert"])
def test_a_saved_tagger_says_the_same_when_it_is_loaded(name: str, cache: Path, tmp_path: Path) -> None:
    tagger = made(name, cache)
    for parameter in tagger.model.parameters():
        parameter.data.mul_(1.1)  # so that it is no fresh one
    save_model(tagger.model, tagger.tokenizer, tmp_path / "model")
    again = made(name, cache, trained=tmp_path / "model", seed=2)
    found, same = (predict_tags(one, one.read(DOCUMENTS)) for one in (tagger, again))
    np.testing.assert_array_equal(found.tags, same.tags)
    if found.weights is not None:
        np.testing.assert_array_equal(found.weights, same.weights)
    weights = [next(iter(one.model.state_dict().values())) for one in (tagger, again)]
    assert (weights[0] == weights[1]).all()


def test_weights_are_drawn_from_the_seed(cache: Path) -> None:
    first, same, other = (made("doc-arc", cache, seed=seed).model.classifier.weight for seed in (1, 1, 2))
    assert (first == same).all()
    assert (first != other).any()


def test_a_linear_context_encoder(cache: Path) -> None:
    tagger = made("doc-arc", cache, context_encoder="linear", most_tokens=64)
    examples = tagger.read(DOCUMENTS)
    batch = tagger.collate_of(examples)([examples[0]])
    assert isinstance(tagger.model.context_encoder, torch.nn.Linear)
    assert tagger.model(**batch).logits.shape[1] == len(examples[0].words)
    assert made("bert-lstm", cache, context_encoder="linear").model.config.context_encoder == "bilstm"


def test_each_system_reads_the_encoder_that_is_its_own(cache: Path) -> None:
    assert made("bert", cache, small_encoder="nowhere").system.name == "bert"
    for name, missing in (
        ("bert", "encoder"),
        ("dynamic-doc-arc", "small_encoder"),
        ("doc-arc", "encoder"),
    ):
        with pytest.raises(ValueError, match="nowhere") as raised:
            made(name, cache, **{missing: "nowhere"})
        assert "\n" not in str(raised.value)


def test_values_that_cannot_be(cache: Path) -> None:
    for given, message in (
        ({"layers": 0}, "layers is 0; it must be at least 1"),
        ({"occurrences": 0}, "occurrences is 0"),
        ({"hidden_size": -1}, "hidden_size is -1"),
        ({"context_encoder": "gru"}, "context_encoder is 'gru'; choose one of bilstm, linear"),
        ({"most_tokens": 2}, "most_tokens is 2; it must be at least 3"),
        ({"encoder": 3}, "encoder"),
    ):
        with pytest.raises(ParameterError, match=message):
            TaggingModels(**given)
    for name, given, message in (
        ("doc-arc", {"layers": 99}, "layers is 99; the encoder has 3"),
        ("doc-arc", {"most_tokens": 10**6}, "is longer than storyworld/longformer was made for"),
        ("dynamic-doc-arc", {"most_tokens": 10**6}, "is longer than storyworld/longformer was made for"),
    ):
        with pytest.raises(ValueError, match=message) as raised:
            made(name, cache, **given)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["doc-arc", "dynamic-doc-arc", "bert-lstm"])
def test_a_word_without_room_is_tagged_all_the_same(name: str, cache: Path) -> None:
    words = ("Orn", "x" * 60, "slept")
    long = [TaggedDocument(id="d", sentences=(TaggedSentence(words=words, tags=("O",) * 3),))]
    tagger = made(name, cache)
    examples = tagger.read(long)
    assert [split.shortened for split in examples.documents] == [1]
    assert [len(tags) for tags in predict_tags(tagger, examples).predicted()[0]] == [3]
