"""Scores of systems and baselines: fractions by hand, topics as units, tests in both directions."""

import pytest

from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, Topic
from cdlm_lab.examples.mention_pairs import group_mentions
from cdlm_lab.experiments.coreference import baseline_responses, coreference_scores


def document(name: str, topic: str, words: str, clusters: dict[int, str]) -> CoreferenceDocument:
    """One sentence; `clusters`: number of a one-word mention -> its cluster."""
    tokens = tuple(words.split())
    mentions = tuple(
        CoreferenceMention(
            id=f"{name}-{place}",
            document=name,
            tokens=(place, place + 1),
            sentence=0,
            kind="event",
            cluster=cluster,
        )
        for place, cluster in clusters.items()
    )
    return CoreferenceDocument(
        id=name,
        topic=topic,
        subtopic=topic,
        tokens=tokens,
        sentences=((0, len(tokens)),),
        validated=(0,),
        mentions=mentions,
    )


@pytest.fixture
def topics() -> list[Topic]:
    """In each of three topics a fire and an attack that two documents report; one says "raid" for attack."""
    return [
        Topic(
            id=topic,
            documents=(
                document(
                    f"{topic}a", topic, "The fire and the attack", {1: f"{topic}fire", 4: f"{topic}raid"}
                ),
                document(f"{topic}b", topic, "A raid caused fires", {1: f"{topic}raid", 3: f"{topic}fire"}),
            ),
        )
        for topic in ("1", "2", "3")
    ]


def test_baselines_and_their_scores(topics: list[Topic]):
    groups = group_mentions(topics, "event", "topic")
    responses = baseline_responses(topics, groups)
    fire = [("1a", 1, 2), ("1b", 3, 4)]
    assert sorted(map(sorted, responses["same head word"]))[:2] == [fire, [("1a", 4, 5)]]
    assert len(responses["singletons"]) == 12
    assert [len(cluster) for cluster in responses["one cluster"]] == [4, 4, 4]
    key = [[(f"{t}a", 1, 2), (f"{t}b", 3, 4)] for t in "123"] + [
        [(f"{t}a", 4, 5), (f"{t}b", 1, 2)] for t in "123"
    ]
    scores, tests = coreference_scores(
        key, responses, topic_of={d.id: t.id for t in topics for d in t.documents}
    )
    # of each topic's two links one is found, and no wrong one
    assert scores["same head word/muc/recall"]["value"] == pytest.approx(1 / 2)
    assert scores["same head word/muc/precision"]["value"] == pytest.approx(1.0)
    # mentions: the fire whole (2 x 1), the raid in halves (2 x 1/2), of 4
    assert scores["same head word/b_cubed/recall"]["value"] == pytest.approx((2 + 1) / 4)
    # one cluster: 2 of its 3 links are right
    assert scores["one cluster/muc/precision"]["value"] == pytest.approx(2 / 3)
    conll = scores["same head word/conll/f1"]
    assert conll["n"] == 3
    assert conll["low"] == pytest.approx(conll["high"]), "three equal topics leave nothing to chance"
    assert [(row["a"], row["b"]) for row in tests] == [
        ("singletons", "one cluster"),
        ("singletons", "same head word"),
    ]
    assert all(row["p_holm"] >= row["p"] for row in tests)


def test_without_singletons_they_are_dropped_first(topics: list[Topic]):
    key = [[("1a", 1, 2), ("1b", 3, 4)], [("1a", 4, 5)]]
    response = [[("1a", 1, 2), ("1b", 3, 4)], [("1a", 4, 5)]]
    topic_of = {"1a": "1", "1b": "1"}
    with_them, _ = coreference_scores(key, {"x": response}, topic_of=topic_of)
    worse = [[("1a", 1, 2), ("1b", 3, 4), ("1a", 4, 5)]]
    dropped, _ = coreference_scores(key, {"x": worse}, topic_of=topic_of, singletons=False)
    assert with_them["x/b_cubed/precision"]["value"] == 1.0
    # the response's one cluster of three holds both mentions of the key: (2/3 + 2/3 + 0) / 3 of its mentions
    assert dropped["x/b_cubed/precision"]["value"] == pytest.approx((2 / 3 + 2 / 3) / 3)
    assert dropped["x/b_cubed/recall"]["value"] == 1.0
