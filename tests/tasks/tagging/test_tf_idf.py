"""TF-IDF of the words of documents and attention weights by distance: worked numbers, second definitions,
the paper's views, and what is refused."""

import math
from dataclasses import astuple

import numpy as np
import pytest

from cdlm_lab.data.records import TaggedDocument, TaggedSentence
from cdlm_lab.tasks.tagging.tf_idf import (
    BucketWeights,
    LabelledWord,
    labelled_words,
    shares_by_quantile,
    strata,
    tf_idf,
    top_entities,
    weights_by_distance,
)


def sentence(text: str) -> TaggedSentence:
    """`Mary/B-PER left` is labelled; `(Mary left)` is context."""
    if text.startswith("("):
        return TaggedSentence(words=tuple(text.strip("()").split()))
    pairs = [word.partition("/") for word in text.split()]
    return TaggedSentence(
        words=tuple(pair[0] for pair in pairs), tags=tuple(pair[2] or "O" for pair in pairs)
    )


def document(name: str, *sentences: str) -> TaggedDocument:
    return TaggedDocument(id=name, sentences=tuple(map(sentence, sentences)))


A = document("a", "Mary/B-PER saw mary", "(the MARY saw)")  # mary 3, saw 2, the 1
B = document("b", "the old/B-PER man/I-PER", "(saw it)")
C = document("c", "(it was the end of it all then)")  # the longest: 8 words


def test_worked_scores():
    scores = tf_idf([A, B], others=[C])
    idf = {"mary": math.log10(3 / 1), "saw": math.log10(3 / 2), "the": 0, "old": math.log10(3)}
    assert scores[0] == pytest.approx(
        {"mary": (1 + math.log10(3)) * idf["mary"], "saw": (1 + math.log10(2)) * idf["saw"], "the": 0}
    )
    assert set(scores[1]) == {"the", "old", "man", "saw", "it"}
    assert scores[1]["old"] == pytest.approx(math.log10(3))
    assert scores[1]["it"] == pytest.approx(math.log10(3 / 2))


def test_other_documents_count_and_an_empty_one_too():
    empty = document("e")
    assert tf_idf([], others=[A]) == []
    assert tf_idf([empty]) == [{}]
    assert tf_idf([A])[0] == {"mary": 0, "saw": 0, "the": 0}
    assert tf_idf([A], others=iter([empty]))[0]["the"] == pytest.approx(math.log10(2))


def test_a_second_definition():
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(list("aAbBcdefg"), size=rng.integers(1, 40))) for _ in range(12)]
    documents = [document(str(number), f"({text})") for number, text in enumerate(texts)]
    scores = tf_idf(documents[:5], others=documents[5:])
    lists = [text.lower().split() for text in texts]
    for words, result in zip(lists, scores, strict=False):
        for word in set(words):
            idf = math.log10(12 / sum(word in other for other in lists))
            assert result.pop(word) == pytest.approx((1 + math.log10(words.count(word))) * idf)
        assert result == {}


def test_labelled_words():
    scores = tf_idf([A, B], others=[C])
    mary, saw, *rest = labelled_words([A, B], scores)
    assert astuple(mary) == (0, "mary", "Mary", scores[0]["mary"], 2, 1, ("PER",))
    assert (saw.word, saw.occurrences, saw.inside, saw.labels) == ("saw", 1, 0, ())
    others = [(word.document, word.word, word.inside) for word in rest]
    assert others == [(1, "the", 0), (1, "old", 1), (1, "man", 1)]
    often = document("f", "Rome/B-GPE ROME/B-ORG ROME/I-ORG")
    (rome,) = labelled_words([often], tf_idf([often]))
    assert (rome.spelling, rome.labels, rome.occurrences, rome.inside) == ("ROME", ("ORG", "GPE"), 3, 3)


def word(name: str, score: float, *labels: str, of: int = 0) -> LabelledWord:
    counts = {"occurrences": 1, "inside": len(labels) > 0}
    return LabelledWord(document=of, word=name, spelling=name, score=score, labels=labels, **counts)


def test_worked_shares():
    words = [word("a", 0), word("b", 1), word("c", 2), word("d", 3, "x"), word("e", 4), word("f", 5, "x")]
    low, middle, high = shares_by_quantile(words[::-1], quantiles=3)
    assert (low.start, low.lowest, low.highest, low.words, low.share) == (0, 0, 1, 2, 0)
    assert (middle.start, middle.stop, middle.share) == (pytest.approx(100 / 3), pytest.approx(200 / 3), 0.5)
    assert (high.stop, high.lowest, high.highest, high.words, high.share) == (100, 4, 5, 2, 0.5)
    (everything,) = shares_by_quantile(words, quantiles=1)
    assert (everything.start, everything.stop, everything.words) == (0, 100, 6)
    assert everything.share == pytest.approx(2 / 6)


def test_equal_scores_stay_in_one_quantile():
    words = [word(str(number), 0.0) for number in range(7)] + [word("x", 1, "l"), word("y", 2)]
    result = shares_by_quantile(words, quantiles=4)
    parts = [(part.start, part.words, part.share) for part in result]
    assert parts == [(0, 7, 0), (pytest.approx(700 / 9), 2, 0.5)]
    assert sum(part.words for part in shares_by_quantile(words, quantiles=100)) == 9
    assert len(shares_by_quantile(words, quantiles=100)) == 3


TEST_SET = [
    document("a", "Mary/B-PER saw Rome", "(Mary left)", "rome mary/B-PER"),
    document("b", "Mary left", "to Rome/B-GPE"),
]
# Entities somewhere: mary and rome; saw, left and to never.
SCORES = [{"mary": 4.0, "saw": 9.0, "rome": 3.0, "left": 9.0}, {"mary": 1.0, "left": 9.0, "to": 9, "rome": 2}]


def test_worked_strata():
    words = labelled_words(TEST_SET, SCORES)
    everything, half, top = strata(TEST_SET, words, percentiles=(0, 50, 100))
    assert [(part.threshold, part.words) for part in (everything, half, top)] == [(1, 4), (2.5, 2), (4, 1)]
    assert half.percentile == 50
    # the third sentence of the first document is its second labelled one
    assert top.chosen == (((True, False, False), (False, True)), ((False, False), (False, False)))
    assert half.chosen == (((True, False, True), (True, True)), ((False, False), (False, False)))
    assert everything.chosen[1] == ((True, False), (False, True))


def test_top_entities():
    words = [word("saw", 9), word("rome", 2, "GPE"), word("mary", 3, "PER")]
    words += [word("rome", 5, "GPE", "ORG", of=1), word("bath", 3, "GPE", of=1)]
    top = [(result.word, result.score, result.document) for result in top_entities(words)]
    assert top == [("rome", 5, 1), ("mary", 3, 0), ("bath", 3, 1)]
    assert [result.word for result in top_entities(words, most=1)] == ["rome"]
    assert top_entities([word("saw", 9)]) == ()
    documents = [document("a", "Mary/B-PER met mary", "Rome/B-GPE")]
    scores = [{"mary": 3.0, "met": 2.0, "rome": 1.0}]
    assert [result.word for result in top_entities(labelled_words(documents, scores))] == ["rome"]


# ---- attention weights by distance


def test_worked_distribution():
    weights = np.array([[0.5, 0.3, 0.2], [1.0, 7.0, np.nan], [0.1, 0.9, 0.0]])
    buckets = np.array([[0, 4, 4], [0, -1, -1], [0, 4, -1]])
    near, far = weights_by_distance(weights, buckets)
    # near: 0.1, 0.5, 1.0; the 5% quantile lies a tenth of the way from the first to the second
    assert (near.bucket, near.count, near.mean) == (0, 3, pytest.approx(1.6 / 3))
    assert near.quantiles == pytest.approx((0.14, 0.3, 0.5, 0.75, 0.95))
    assert far == BucketWeights(bucket=4, count=3, mean=far.mean, quantiles=far.quantiles)
    assert far.mean == pytest.approx(1.4 / 3)
    assert far.quantiles == pytest.approx((0.21, 0.25, 0.3, 0.6, 0.84))
    (rounded,) = weights_by_distance(np.array([[1.0005]]), np.array([[0]]))  # as half precision may
    assert rounded.count == 1
