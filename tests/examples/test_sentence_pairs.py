"""Pairs of documents as examples: words of sentences, labels, and each document encoded once."""

from __future__ import annotations

import numpy as np
import pytest

from cdlm_lab.data.document_pairs import DocumentPair, PairDocument
from cdlm_lab.examples.document_pairs import SentencePairExamples, SentenceWords
from cdlm_lab.examples.tokens import Vocabulary

VOCABULARY = Vocabulary.of_words(("rain", ".", "fell"))
WET = PairDocument(id="wet", sentences=("Rain fell.", "So?", "Rain, rain, rain fell."))
DRY = PairDocument(id="dry", sentences=("No.",))


def pair(first: PairDocument, second: PairDocument, *, related: bool) -> DocumentPair:
    return DocumentPair(
        id=f"{first.id}-{second.id}", first=first, second=second, related=related, aligned=None, cluster="c"
    )


PAIRS = (pair(WET, DRY, related=True), pair(DRY, WET, related=False), pair(WET, WET, related=True))


@pytest.mark.parametrize(
    ("sentences", "words", "expected"),
    [
        (9, 9, [[2, 4, 3, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0], [2, 1, 2, 1, 2, 4, 3]]),
        (2, 9, [[2, 4, 3], [1, 1, 0]]),  # the longest sentence is not among the two
        (3, 2, [[2, 4], [1, 1], [2, 1]]),
        (1, 1, [[2]]),
    ],
)
def test_words_of_sentences(sentences: int, words: int, expected: list):
    encode = SentenceWords(vocabulary=VOCABULARY, most_sentences=sentences, most_words=words)
    found = encode(WET)
    assert found.dtype == np.int64
    assert found.tolist() == expected


def test_no_sentence_is_without_a_word(tokenizer):
    """A control character has no piece; 0 in front would make the sentence one of filling."""
    document = PairDocument(id="d", sentences=("\x1c w1", "\u200b", "\x85 \u3000."))
    for vocabulary in (VOCABULARY, Vocabulary.of_tokenizer(tokenizer)):
        encode = SentenceWords(vocabulary=vocabulary, most_sentences=9, most_words=9)
        assert (encode(document)[:, 0] > 0).all()


@pytest.mark.parametrize("name", ["most_sentences", "most_words"])
def test_limits(name: str):
    limits = {"most_sentences": 1, "most_words": 1} | {name: 0}
    with pytest.raises(ValueError, match=f"^{name} is 0; it must be at least 1$"):
        SentenceWords(vocabulary=VOCABULARY, **limits)


def test_examples():
    encode = SentenceWords(vocabulary=VOCABULARY, most_sentences=2, most_words=2)
    examples = SentencePairExamples(pairs=PAIRS, encode=encode)
    assert len(examples) == 3
    assert examples[1]["first"].tolist() == [[1, 3]]
    assert examples[1]["second"].tolist() == [[2, 4], [1, 1]]
    assert [float(example["labels"]) for example in examples] == [1, 0, 1]
    assert (examples[0]["labels"].dtype, examples[0]["labels"].shape) == (np.float32, ())
    with pytest.raises(IndexError):
        examples[3]


def test_without_labels():
    examples = SentencePairExamples(pairs=PAIRS, encode=lambda _: np.ones((1, 4)), labelled=False)
    assert examples[0].keys() == {"first", "second"}


def test_each_document_is_encoded_once_and_only_when_read():
    read = []

    def encode(document: PairDocument) -> np.ndarray:
        read.append(document.id)
        return np.full((len(document.sentences), 3), len(read), dtype=np.float32)

    examples = SentencePairExamples(pairs=PAIRS, encode=encode)
    assert read == []
    assert [examples[n][side][0, 0] for n in (1, 0, 2) for side in ("first", "second")] == [1, 2, 2, 1, 2, 2]
    assert read == ["dry", "wet"]
