"""Tags and attention weights of labelled sentences: numbered through, kept on disk, joined where a sentence
was cut."""

from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence, tag_set
from cdlm_lab.examples.tagging import TagExamples, split_long
from cdlm_lab.experiments.document_tagging import TagPredictions

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
