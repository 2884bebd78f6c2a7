"""Taggers by name: impossible values, sentences that are cut, what is encoded, what comes back from disk."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence, tag_set
from cdlm_lab.examples.tagging import TagExamples, split_long
from cdlm_lab.experiments.systems.tagging import TAG_SYSTEMS, Tagger, Taggers, TaggerSettings, TagPredictions
from cdlm_lab.models.frozen import ENDS
from cdlm_lab.parameters import ParameterError
from cdlm_lab.training.checkpoints import save_model


def test_systems_are_those_of_the_paper() -> None:
    """Tables 2 and 3 against Table 4: frozen; small and trained; large and fine-tuned as it is usual."""

    def names(attribute: str, value: bool = True) -> list[str]:
        return [name for name, system in TAG_SYSTEMS.items() if getattr(system, attribute) is value]

    assert names("context") == ["doc-arc", "dynamic-doc-arc"]
    assert names("trains_encoder", False) == ["bert-lstm", "doc-arc"]
    assert names("sequence_encoder", False) == ["dynamic-bert", "bert"]
    assert names("small") == ["dynamic-bert", "dynamic-bert-lstm", "dynamic-doc-arc"]
    assert len({system.label for system in TAG_SYSTEMS.values()}) == 6


def test_systems_come_in_the_order_of_the_tables() -> None:
    chosen = TaggerSettings(systems=" bert dynamic-doc-arc  doc-arc bert-lstm doc-arc ").chosen
    assert [system.name for system in chosen] == ["bert-lstm", "doc-arc", "dynamic-doc-arc", "bert"]
    for names, message in (
        ("bert-lstm Doc-ARC", "systems names 'Doc-ARC'; choose among bert-lstm, doc-arc, dyn"),
        ("", "systems names nothing; choose among"),
    ):
        with pytest.raises(ParameterError, match=message):
            _ = TaggerSettings(systems=names).chosen


def burned(name: str) -> TaggedDocument:
    words = f"The town of {name} burned while people slept near {name} bridge".split()
    return TaggedDocument(
        id=name,
        sentences=(
            TaggedSentence(words=tuple(words), tags=("O", "O", "O", "B-LOC", *["O"] * (len(words) - 4))),
            TaggedSentence(words=(name, "is", "small")),
            TaggedSentence(words=("Nobody", "came")),
        ),
    )


BURNED = [burned("Dram"), burned("Sul")]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def made(name: str, cache: Path, *, trained: Path | None = None, seed: int = 1, **more) -> Tagger:
    settings = TaggerSettings(**{"layers": 1, "hidden_size": 6, "most_tokens": 10} | more)
    taggers, system = Taggers(settings=settings, labels=("LOC",), cache=cache), TAG_SYSTEMS[name]
    return taggers.make(system, most=3 if system.context else 0, seed=seed, trained=trained)


@pytest.mark.parametrize("name", ["bert-lstm", "doc-arc", "dynamic-doc-arc"])
def test_sentences_are_cut_to_the_tokens_that_there_is_room_for(name: str, cache: Path) -> None:
    examples = made(name, cache).read(BURNED)
    assert examples.tags == ("O", "B-LOC", "I-LOC")
    assert examples.most == (0 if name == "bert-lstm" else 3)
    found = made(name, cache).predict(examples)
    assert [len(tags) for of_document in found.predicted() for tags in of_document] == [11, 11]
    assert found.gold()[0][0][3] == "B-LOC"
    sizes = [len(one.words) for split in examples.documents for one in split.document.sentences]
    assert max(sizes) <= 10 - ENDS
    assert len(examples) >= 4


def test_only_what_is_looked_at_is_encoded(cache: Path, tmp_path: Path) -> None:
    """ "Nobody came" has no word of a labelled sentence; "Dram is small" has one, for a tagger that looks."""
    for name, sentences in (("bert-lstm", 2), ("doc-arc", 4)):
        tagger = made(name, tmp_path / name, most_tokens=64)
        tagger.make_ready(tagger.read(BURNED))
        again = made(name, tmp_path / name, most_tokens=64)
        collate = again.collate_of(again.read(BURNED))
        assert len(collate.encodings) == sentences


@pytest.mark.parametrize("name", ["doc-arc", "dynamic-doc-arc", "dynamic-bert"])
def test_a_saved_tagger_says_the_same_when_it_is_loaded(name: str, cache: Path, tmp_path: Path) -> None:
    tagger = made(name, cache)
    for parameter in tagger.model.parameters():
        parameter.data.mul_(1.1)  # so that it is no fresh one
    save_model(tagger.model, tagger.tokenizer, tmp_path / "model")
    again = made(name, cache, trained=tmp_path / "model", seed=2)
    found, same = (one.predict(one.read(BURNED)) for one in (tagger, again))
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
    examples = tagger.read(BURNED)
    batch = tagger.collate_of(examples)([examples[0]])
    assert isinstance(tagger.model.context_encoder, torch.nn.Linear)
    assert tagger.model(**batch).logits.shape[1] == len(examples[0].words)
    assert made("bert-lstm", cache, context_encoder="linear").model.config.context_encoder == "bilstm"


def test_each_system_reads_the_encoder_that_is_its_own(cache: Path) -> None:
    assert made("bert", cache, small_encoder="nowhere").system.name == "bert"
    for name, missing in (("bert", "encoder"), ("dynamic-doc-arc", "small_encoder"), ("doc-arc", "encoder")):
        with pytest.raises(ValueError, match="nowhere") as raised:
            made(name, cache, **{missing: "nowhere"})
        assert "\n" not in str(raised.value)


def test_values_that_cannot_be(cache: Path) -> None:
    for given, message in (
        ({"layers": 0}, "layers is 0; it must be at least 1"),
        ({"occurrences": 0}, "occurrences is 0"),
        ({"hidden_size": -1}, "hidden_size is -1"),
        ({"context_encoder": "gru"}, "context_encoder is 'gru'; it must be one of 'bilstm', 'linear'"),
        ({"most_tokens": 2}, "most_tokens is 2; it must be at least 3"),
        ({"encoder": 3}, "encoder"),
    ):
        with pytest.raises(ParameterError, match=message):
            TaggerSettings(**given)
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
    assert [len(tags) for tags in tagger.predict(examples).predicted()[0]] == [3]


# ---- predictions

TAGS = tag_set(["LOC", "PER"])  # O, B-LOC, I-LOC, B-PER, I-PER
NOTHING, PLACE, PERSON, MORE = 0, 1, 3, 4


def sentence(words: str, tags: str | None = None) -> TaggedSentence:
    return TaggedSentence(words=tuple(words.split()), tags=tuple(tags.split()) if tags else None)


DOCUMENTS = (
    TaggedDocument(
        id="a",
        sentences=(
            sentence("Sir Orn Vale of Dram slept", "O B-PER I-PER O B-LOC O"),
            sentence("He was in Dram for a week"),
            sentence("Orn woke", "B-PER O"),
        ),
    ),
    TaggedDocument(id="b", sentences=(sentence("Dram burned"), sentence("Sul too", "B-LOC O"))),
)
# The first sentence is cut after "Orn" and after "of".
PREDICTED = [NOTHING, PERSON, MORE, NOTHING, PLACE, NOTHING, NOTHING, NOTHING, PERSON, NOTHING]


def examples(*documents: TaggedDocument, room: int = 2, most: int = 2) -> TagExamples:
    return TagExamples(
        [
            split_long(one, pieces=lambda words: [1] * len(words), most_labelled=room, most_context=4)
            for one in documents
        ],
        TAGS,
        most=most,
    )


@pytest.fixture
def predictions() -> TagPredictions:
    weights = np.linspace(0, 1, 20, dtype=np.float16).reshape(10, 2)
    return TagPredictions(
        examples=examples(*DOCUMENTS), tags=np.array(PREDICTED, dtype=np.int16), weights=weights
    )


def test_tags_of_a_sentence_that_was_cut_are_joined(predictions: TagPredictions) -> None:
    assert predictions.examples.sequences.tolist() == [[0, 0], [0, 1], [0, 2], [0, 5], [1, 1]]
    assert predictions.starts.tolist() == [0, 2, 4, 6, 8, 10]
    assert predictions.documents == [0, 1]
    assert predictions.predicted() == [
        [["O", "B-PER", "I-PER", "O", "B-LOC", "O"], ["O", "O"]],
        [["B-PER", "O"]],
    ]


@pytest.mark.parametrize("room", [1, 2, 3, 99])
def test_the_gold_is_that_of_the_source(room: int) -> None:
    found = TagPredictions(
        examples=examples(*DOCUMENTS, room=room), tags=np.zeros(10, dtype=np.int16), weights=None
    )
    assert found.gold() == [
        [list(one.tags) for one in document.sentences if one.tags is not None] for document in DOCUMENTS
    ]
    assert found.predicted() == [[["O"] * 6, ["O"] * 2], [["O"] * 2]]


def test_predictions_of_some_documents_are_of_these_alone() -> None:
    some = examples(*DOCUMENTS).in_order([4])
    found = TagPredictions(examples=some, tags=np.array([PLACE, NOTHING], dtype=np.int16), weights=None)
    assert found.documents == [1]
    assert found.predicted() == found.gold() == [[["B-LOC", "O"]]]


def test_buckets_say_how_far_occurrences_are(predictions: TagPredictions) -> None:
    """In sequences: "Orn" is in 0 and 5, "Dram" in 2 and, of the context, in 3, all others are there once."""
    once = [0, -1]
    orn, dram, later = [0, 5 - 1], [0, 1], [0, 5 - 1]  # 5 sequences away is the bucket 4-7, number 4
    assert predictions.buckets().tolist() == [once, orn, once, once, dram, once, later, once, once, once]


def test_predictions_come_back_from_disk(predictions: TagPredictions, tmp_path: Path) -> None:
    file = tmp_path / "new" / "dev.npz"
    predictions.save(file)
    again = TagPredictions.load(file, examples=predictions.examples)
    assert (again.tags.dtype, again.weights.dtype) == (np.int16, np.float16)
    np.testing.assert_array_equal(again.tags, predictions.tags)
    np.testing.assert_array_equal(again.weights, predictions.weights)
    assert again.predicted() == predictions.predicted()
    assert [path.name for path in file.parent.iterdir()] == ["dev.npz"]


def test_without_context_there_are_no_weights(tmp_path: Path) -> None:
    found = TagPredictions(
        examples=examples(*DOCUMENTS, most=0), tags=np.array(PREDICTED, dtype=np.int16), weights=None
    )
    found.save(tmp_path / "dev.npz")
    assert TagPredictions.load(tmp_path / "dev.npz", examples=found.examples).weights is None


def test_predictions_of_other_documents_are_refused(predictions: TagPredictions, tmp_path: Path) -> None:
    predictions.save(tmp_path / "dev.npz")
    other = examples(DOCUMENTS[0])
    with pytest.raises(ValueError, match=r"dev\.npz is of other documents, so of another run: choose"):
        TagPredictions.load(tmp_path / "dev.npz", examples=other)
