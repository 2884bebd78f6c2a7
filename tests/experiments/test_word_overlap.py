"""TF-IDF cosine: learns a threshold, aligns by common words, and never sees what it is tested on."""

import numpy as np

from cdlm_lab.data.document_pairs import DocumentPair, PairDocument
from cdlm_lab.experiments.document_matching import WordOverlap

TEXTS = {
    "a": ("the cat sat", "a storm came"),
    "b": ("a cat was there", "it purred"),
    "c": ("ships sink", "banks fail"),
    "d": ("the bank failed", "ships sink fast"),
}


def pair(first: str, second: str) -> DocumentPair:
    documents = [PairDocument(id=name, sentences=TEXTS[name]) for name in (first, second)]
    related = {first, second} in ({"a", "b"}, {"c", "d"})
    return DocumentPair(
        id=first + second,
        first=documents[0],
        second=documents[1],
        related=related,
        aligned=None,
        cluster=first,
    )


TRAINING = [pair("a", "b"), pair("c", "d"), pair("a", "d"), pair("b", "c")]


def test_common_words_make_pairs_probable_and_sentences_aligned() -> None:
    found = WordOverlap(TRAINING).predict([pair("a", "b"), pair("b", "c"), pair("c", "d")])
    assert found.probabilities[0] > found.probabilities[1]  # the latter have no word in common
    assert found.probabilities[2] > found.probabilities[1]
    assert found.alignments["cosine"][1].tolist() == [0, 0]
    ships, banks = found.alignments["cosine"][2]
    assert ships > banks == 0  # "banks" is not "bank"


def test_cosines_are_those_of_the_vectors_by_hand() -> None:
    overlap = WordOverlap(TRAINING)
    first, second = (overlap._words.transform([" ".join(TEXTS[name])]).toarray()[0] for name in "ab")
    found = overlap.predict([pair("a", "b")]).alignments["cosine"][0]
    rows = overlap._words.transform(TEXTS["a"]).toarray()
    np.testing.assert_allclose(found, rows @ second, atol=1e-12)
    np.testing.assert_allclose(overlap._cosines([pair("a", "b")]), [first @ second], atol=1e-12)


def test_words_of_the_tested_documents_are_not_learned() -> None:
    assert "purred" not in WordOverlap([pair("c", "d"), pair("d", "a")])._words.vocabulary_
