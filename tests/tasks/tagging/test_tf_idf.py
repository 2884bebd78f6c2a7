"""TF-IDF of the words of documents and attention weights by distance: worked numbers, second definitions,
the paper's views, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest

from cdlm_lab.data.records import TaggedDocument, TaggedSentence
from cdlm_lab.tasks.tagging.tf_idf import (
    entities_by_percentile,
    labelled_words,
    shares_by_quantile,
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


def scores(words: pd.DataFrame, number: int = 0) -> dict[str, float]:
    of_document = words[words["document"] == number]
    return dict(zip(of_document["word"], of_document["score"], strict=True))


def test_worked_scores():
    words = labelled_words([A, B], others=iter([C]))
    assert scores(words) == pytest.approx(
        {"mary": (1 + math.log10(3)) * math.log10(3 / 1), "saw": (1 + math.log10(2)) * math.log10(3 / 2)}
    )
    assert scores(words, 1) == pytest.approx({"the": 0, "old": math.log10(3), "man": math.log10(3)})
    assert scores(labelled_words([A])) == {"mary": 0, "saw": 0}
    assert scores(labelled_words([A], others=[document("e")]))["mary"] > 0, "an empty document counts"


def test_a_second_definition():
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(list("aAbBcdefg"), size=rng.integers(1, 40))) for _ in range(12)]
    documents = [document(str(number), text) for number, text in enumerate(texts)]
    words = labelled_words(documents[:5], others=documents[5:])
    lists = [text.lower().split() for text in texts]
    for number in range(5):
        result = scores(words, number)
        assert result.keys() == set(lists[number])
        for word, score in result.items():
            idf = math.log10(12 / sum(word in other for other in lists))
            assert score == pytest.approx((1 + math.log10(lists[number].count(word))) * idf)


def test_labelled_words():
    words = labelled_words([A, B], others=[C])
    mary, saw, *rest = words.drop(columns="score").values.tolist()
    assert mary == [0, "mary", "Mary", 2, 1, ["PER"]]
    assert saw == [0, "saw", "saw", 1, 0, []]
    assert [(row[0], row[1], row[4]) for row in rest] == [(1, "the", 0), (1, "old", 1), (1, "man", 1)]
    often = labelled_words([document("f", "Rome/B-GPE ROME/B-ORG ROME/I-ORG")])
    assert often.drop(columns="score").values.tolist() == [[0, "rome", "ROME", 3, 3, ["ORG", "GPE"]]]


def word(name: str, score: float, *labels: str, of: int = 0) -> dict:
    counts = {"occurrences": 1, "inside": int(len(labels) > 0)}
    return {"document": of, "word": name, "spelling": name, "score": score, **counts, "labels": [*labels]}


def test_worked_shares():
    words = [word("a", 0), word("b", 1), word("c", 2), word("d", 3, "x"), word("e", 4), word("f", 5, "x")]
    low, middle, high = shares_by_quantile(pd.DataFrame(words[::-1]), quantiles=3)
    third = pytest.approx(100 / 3)
    assert low == {"start": 0, "stop": third, "lowest": 0, "highest": 1, "words": 2, "share": 0}
    assert (middle["start"], middle["stop"], middle["share"]) == (third, pytest.approx(200 / 3), 0.5)
    assert (high["stop"], high["lowest"], high["highest"], high["share"]) == (100, 4, 5, 0.5)
    (everything,) = shares_by_quantile(pd.DataFrame(words), quantiles=1)
    assert (everything["start"], everything["stop"], everything["words"]) == (0, 100, 6)
    assert everything["share"] == pytest.approx(2 / 6)


def test_equal_scores_stay_in_one_quantile():
    words = pd.DataFrame([*(word(str(n), 0.0) for n in range(7)), word("x", 1, "l"), word("y", 2)])
    parts = [(one["start"], one["words"], one["share"]) for one in shares_by_quantile(words, quantiles=4)]
    assert parts == [(0, 7, 0), (pytest.approx(700 / 9), 2, 0.5)]
    assert [one["words"] for one in shares_by_quantile(words, quantiles=100)] == [7, 1, 1]


TEST_SET = [
    document("a", "Mary/B-PER saw Rome", "(Mary left)", "rome mary/B-PER"),
    document("b", "Mary left", "to Rome/B-GPE"),
]
# Entities somewhere: mary and rome; saw, left and to never.
SCORES = {(0, "mary"): 4.0, (0, "rome"): 3.0, (1, "mary"): 1.0, (1, "rome"): 2.0}


def test_entities_at_and_above_a_percentile():
    words = labelled_words(TEST_SET)
    places = zip(words["document"], words["word"], strict=True)
    words["score"] = [SCORES.get(place, 9.0) for place in places]
    every, half, top = entities_by_percentile(TEST_SET, words, percentiles=(0, 50, 100)).values()
    # the third sentence of the first document is its second labelled one
    assert top == [[[True, False, False], [False, True]], [[False, False], [False, False]]]
    assert half == [[[True, False, True], [True, True]], [[False, False], [False, False]]]
    assert every[1] == [[True, False], [False, True]]


def test_top_entities():
    words = [word("saw", 9), word("rome", 2, "GPE"), word("mary", 3, "PER")]
    words += [word("rome", 5, "GPE", "ORG", of=1), word("bath", 3, "GPE", of=1)]
    top = top_entities(pd.DataFrame(words))
    assert [(one["word"], one["score"]) for one in top] == [("rome", 5), ("mary", 3), ("bath", 3)]
    assert top[0]["labels"] == ["GPE", "ORG"]
    assert [one["word"] for one in top_entities(pd.DataFrame(words), most=1)] == ["rome"]
    assert top_entities(pd.DataFrame([word("saw", 9)])) == []
    sometimes = labelled_words([document("a", "Mary/B-PER met mary", "Rome/B-GPE")])
    assert [one["word"] for one in top_entities(sometimes)] == ["Rome"]


def test_worked_distribution_of_weights():
    weights = np.array([[0.5, 0.3, 0.2], [1.0, 7.0, np.nan], [0.1, 0.9, 0.0]])
    buckets = np.array([[0, 4, 4], [0, -1, -1], [0, 4, -1]])
    near, far = weights_by_distance(weights, buckets)
    # near: 0.1, 0.5, 1.0; the 5% quantile lies a tenth of the way from the first to the second
    assert (near["bucket"], near["count"], near["mean"]) == (0, 3, pytest.approx(1.6 / 3))
    assert near["quantiles"] == pytest.approx([0.14, 0.3, 0.5, 0.75, 0.95])
    assert (far["bucket"], far["count"], far["mean"]) == (4, 3, pytest.approx(1.4 / 3))
    assert far["quantiles"] == pytest.approx([0.21, 0.25, 0.3, 0.6, 0.84])
