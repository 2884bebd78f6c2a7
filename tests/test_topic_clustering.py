"""Documents put into groups by their words, and groups read from a file."""

import gzip
import json
import random

import pytest

from cdlm_lab.clustering import predict_topics, read_predicted_topics
from cdlm_lab.data.files import DataError

WORDS = {
    "storm": ["storm", "wind", "flood", "rain", "harbour", "roof", "coast", "damage", "boats", "waves"],
    "trial": ["court", "judge", "verdict", "jury", "lawyer", "appeal", "sentence", "witness", "guilty"],
    "match": ["goal", "striker", "match", "league", "keeper", "penalty", "coach", "stadium", "fans", "final"],
    "vote": ["ballot", "election", "party", "candidate", "vote", "poll", "turnout", "seat", "campaign"],
}


def story(topic, number):
    rng = random.Random(f"{topic}{number}")
    return f"{' '.join(rng.choices(WORDS[topic], k=40))} and the report number {number}."


def stories(each, topics=WORDS):
    """Texts of several topics, ids in such an order that neighbours are of different topics."""
    return {f"{number}-{topic}": story(topic, number) for number in range(each) for topic in topics}


def groups(topics):
    members = {}
    for document, topic in topics.items():
        members.setdefault(topic, set()).add(document)
    return members


def by_story(texts):
    return groups({document: document.partition("-")[2] for document in texts})


@pytest.mark.parametrize("each", [3, 8])  # 12 documents, and 32, where rare terms are left out
@pytest.mark.parametrize("clusters", [4, None])
def test_documents_of_a_topic_come_together(each, clusters):
    texts = stories(each)
    predicted = predict_topics(texts, clusters=clusters)
    assert sorted(map(sorted, groups(predicted).values())) == sorted(map(sorted, by_story(texts).values()))
    assert sorted(set(predicted.values())) == [f"predicted-{n}" for n in (1, 2, 3, 4)]


def test_groups_are_numbered_in_the_order_of_ids():
    predicted = predict_topics(stories(3), clusters=4)
    first_of_each = list(dict.fromkeys(predicted[name] for name in sorted(predicted)))
    assert first_of_each == ["predicted-1", "predicted-2", "predicted-3", "predicted-4"]


def test_the_same_seed_gives_the_same_groups_in_any_order():
    texts = {name: text[:90] for name, text in stories(6).items()}
    backwards = dict(reversed(texts.items()))
    assert predict_topics(texts, clusters=5, seed=3) == predict_topics(backwards, clusters=5, seed=3)


def test_the_number_of_groups_is_as_asked():
    texts = stories(3)
    for clusters in (1, 2, 12):
        assert len(groups(predict_topics(texts, clusters=clusters))) == clusters


def test_few_documents_are_one_group():
    texts = stories(1, ["storm", "trial", "match"])
    assert set(predict_topics(texts).values()) == {"predicted-1"}
    assert predict_topics({"only": ""}) == {"only": "predicted-1"}
    same = dict.fromkeys("abcdef", "the same text")
    assert set(predict_topics(same).values()) == {"predicted-1"}


def test_copies_stay_together():
    texts = {"a": story("storm", 1), "b": story("trial", 1), "c": story("match", 1), "d": story("vote", 1)}
    texts |= {name.upper(): text for name, text in texts.items()}
    predicted = predict_topics(texts)
    assert all(predicted[name] == predicted[name.upper()] for name in "abcd")


@pytest.mark.filterwarnings("error")
def test_texts_that_differ_in_stop_words_alone_are_no_fault():
    texts = {name: f"storm {words}" for name, words in zip("abcd", ("of", "the", "and", "to"), strict=True)}
    assert len(set(predict_topics(texts).values())) == 1


def test_documents_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="no documents to cluster"):
        predict_topics({})
    for clusters in (0, 4):
        with pytest.raises(
            ValueError, match=f"clusters is {clusters}; it must be from 1 to 3, the different"
        ):
            predict_topics({"a": "x", "b": "y", "c": "z", "d": "z"}, clusters=clusters)
    with pytest.raises(ValueError, match="the 4 documents have no words to tell them apart"):
        predict_topics(dict(zip("abcd", ("of", "the", "and", "to"), strict=True)))


def written(tmp_path, value):
    path = tmp_path / "topics.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def test_groups_are_read(tmp_path):
    path = written(tmp_path, [["a", "b"], ["c"]])
    assert read_predicted_topics(path) == {"a": "predicted-1", "b": "predicted-1", "c": "predicted-2"}
    assert read_predicted_topics(path, documents=["c", "a"]) == {"c": "predicted-2", "a": "predicted-1"}
    packed = tmp_path / "topics.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_predicted_topics(packed) == read_predicted_topics(path)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('[["a"],\n["b"', r"topics.json:2: field column 5: not JSON \(.*\); complete the file"),
        ("[" * 100_000, "not JSON"),
        ("{}", r"topics.json:1: field file: no list of groups; write \[\["),
        ("[]", "no list of groups"),
        ('["a"]', r"field \[0\]: a group is a list of ids"),
        ('[["a"], []]', r"field \[1\]: a group is a list of ids"),
        ('[["a"], [3]]', r"field \[1\]: 3 is no id of a document"),
        ('[["a", ""]]', r'field \[0\]: "" is no id'),
        ('[["a"], ["b", "a"]]', r"field \[1\]: document a is in predicted-1 already"),
    ],
)
def test_files_that_make_no_sense_are_refused(tmp_path, value, message):
    with pytest.raises(DataError, match=message):
        read_predicted_topics(written(tmp_path, value))


def test_documents_without_a_group_are_named(tmp_path):
    with pytest.raises(DataError, match="document x is in no group, one of 2 such; add them"):
        read_predicted_topics(written(tmp_path, [["a"]]), documents=["a", "x", "y"])
    with pytest.raises(DataError, match="missing"):
        read_predicted_topics(tmp_path / "missing.json")
