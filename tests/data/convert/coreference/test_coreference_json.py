"""JSON files of the paper's code: a split by hand, tolerance, and every complaint."""

import json
from typing import Any

import pytest

from cdlm_lab.data.convert.coreference_json import json_files, read_json
from cdlm_lab.data.coreference import topics_of
from cdlm_lab.data.records import PassedOver, gold_clusters, mentions_of

DOCUMENTS: dict[str, Any] = {
    "36_1ecb.xml": [
        [0, 1, "Fire", False], [2, 4, "It", True], [2, 5, " ", True], [2, 6, " burnt", True],
        ["3", "7", "Rain", False],
    ],
    "36_2ecbplus.xml": [
        [0, 1, "http", False], [1, 2, "Blaze", True], [1, 4, "out", True], [1, 5, "now", True],
    ],
    "36_3ecb.xml": [[0, 1, "Nothing", False]],
    "37_1ecb.xml": [[0, 1, "Quake", True]],
}  # fmt: skip
EVENTS: list[Any] = [
    {
        "doc_id": "36_2ecbplus.xml", "topic": "36", "subtopic": "36_0", "m_id": "9", "sentence_id": "1",
        "tokens_ids": [2, 5], "tokens": "Blaze now", "tags": "NN RB", "lemmas": "blaze now", "cluster_id": 7,
        "cluster_desc": "fire", "singleton": False,
    },
    {"doc_id": "36_1ecb.xml", "topic": "36", "m_id": 3, "tokens_ids": [6], "cluster_id": 7},
    {"doc_id": "37_1ecb.xml", "topic": None, "m_id": "1", "tokens_ids": [1], "cluster_id": "quake"},
]  # fmt: skip
ENTITIES: list[Any] = [
    {"doc_id": "36_1ecb.xml", "topic": "36", "m_id": "4", "tokens_ids": ["4", 4], "cluster_id": 200000000}
]


@pytest.fixture
def split(write, tmp_path):
    """split(documents, events, entities): the folder with the files of the split dev."""

    def _split(documents: object = DOCUMENTS, events: object = EVENTS, entities: object = ENTITIES):
        for name, value in (("dev", documents), ("dev_events", events), ("dev_entities", entities)):
            write(f"{name}.json", value if isinstance(value, str) else json.dumps(value, indent=4))
        return tmp_path

    return _split


def read(folder, kind=None, passed_over=None):
    found = json_files(folder)["validation"]
    return topics_of(read_json(found, passed_over=passed_over or PassedOver(), kind=kind), folder)


def test_topics(split):
    first, second = read(split())
    assert (first.id, second.id) == ("36", "37")
    one, two, three = first.documents
    assert (one.id, one.topic, one.subtopic) == ("36_1ecb", "36", "36_ecb")
    assert (two.id, two.subtopic, three.id) == ("36_2ecbplus", "36_ecbplus", "36_3ecb")
    assert one.tokens == ("Fire", "It", "burnt", "Rain")
    assert (one.sentences, one.validated) == (((0, 1), (1, 3), (3, 4)), (1,))
    assert (two.tokens, two.validated, three.validated) == (("http", "Blaze", "out", "now"), (1,), ())
    assert [(m.id, m.tokens, m.sentence, m.kind, m.cluster, m.tag) for m in mentions_of([first])] == [
        ("36_1ecb:4", (1, 2), 1, "entity", "200000000", ""),
        ("36_1ecb:3", (2, 3), 1, "event", "7", ""),
        ("36_2ecbplus:9", (1, 4), 1, "event", "7", ""),
    ]
    assert list(gold_clusters([first, second], kind="event")) == ["7", "quake"]


def test_kinds_and_files_that_are_missing(split, refused):
    folder = split()
    (folder / "dev_entities.json").unlink()
    for kind in ("event", None):
        assert [mention.kind for mention in mentions_of(read(folder, kind))] == ["event"] * 3
    what = "no file of entity mentions beside it; add it, or set kind to 'event'"
    with refused(folder / "dev.json", f"1: file: {what}"):
        read(folder, "entity")


def changed(place: int, **fields: object) -> list[Any]:
    """The events with changed fields; ... takes one out."""
    item = {name: value for name, value in {**EVENTS[place], **fields}.items() if value is not ...}
    return [*EVENTS[:place], item, *EVENTS[place + 1 :]]


TEXT = '19: [1].{0}: {1} where a text belongs; write it as "{0}": 7'
ROW = 'write it as [sentence, token id, "text", true]'


@pytest.mark.parametrize(("events", "message"), [
    ("{}", "1: file: an object where a list belongs; write it as [{...}, ...]"),
    ("[\n\n  {}]", '3: [0].doc_id: missing; add "doc_id" to the record'),
    (changed(1, doc_id=7), "19: [1].doc_id: a number where a text belongs; put it in quotes"),
    (changed(1, m_id=[]), TEXT.format("m_id", "a list")),
    (changed(1, cluster_id=...), '19: [1].cluster_id: missing; add "cluster_id" to the record'),
    (changed(1, cluster_id=None), TEXT.format("cluster_id", "null")),
    (changed(1, tokens_ids=[6, -1]),
     "19: [1].tokens_ids[1]: -1 is not a whole number from 0; write it as 3"),
    (changed(1, topic=[]), TEXT.format("topic", "a list")),
    ([*EVENTS[:2], {**EVENTS[1], "topic": "37"}],
     "28: [2].topic: 37, but 36 in another mention of 36_1ecb.xml; give all mentions of a document one "
     "topic"),
])  # fmt: skip
def test_malformed_mentions(split, refused, events, message):
    folder = split(events=events)
    with refused(folder / "dev_events.json", message):
        read(folder, "event")


@pytest.mark.parametrize(("documents", "message"), [
    ("[]", "1: file: no documents; write it as {document: [[sentence, token, text, true]]}"),
    ({"a": [[0, 0, 1, True]]}, "1: a[0][2]: a number where a text belongs; put it in quotes"),
    ({"a": [[0, 1, " ", True]]}, "1: a: the document has no text; leave it out"),
    ({"a": [[0, 1, "x"]]}, f"1: a[0]: a list of 3, too short; {ROW}"),
    ({"a": [["x", 1, "x", True]]}, "1: a[0][0]: 'x' is not a whole number from 0; write it as 3"),
    ({"a": [[0, 1, "x", True], [0, "1", "y", True]]}, "1: a[1]: a second token 1; number the tokens apart"),
    ({"a": [[4, 1, "x", True], [3, 2, "y", True]]}, "1: a[1]: sentence 3 after 4; put the tokens in order"),
    ({"a": [[0, 0, "x", True]], "a.xml": [[0, 0, "x", True]]},
     "1: a.xml: two documents of this name; name them apart, without .xml"),
])  # fmt: skip
def test_malformed_documents(split, refused, documents, message):
    folder = split(documents=documents)
    with refused(folder / "dev.json", message):
        read(folder)


def test_no_mentions_and_a_cluster_of_both_kinds(split, refused):
    with refused(split(events=[]), "1: mentions: no mention in it; annotate some, or take the split out"):
        read(split(events=[]), "event")
    folder = split(entities=[{**ENTITIES[0], "cluster_id": 7}])
    one, two = "mention 36_1ecb:4 of document 36_1ecb", "mention 36_1ecb:3 of document 36_1ecb"
    what = f"cluster 7 is of both kinds: {one} is an entity, {two} an event; split the cluster"
    apart = "where events and entities share numbers, read one kind of mentions"
    with refused(folder, f"1: mentions: {what}; correct the mention; {apart}"):
        read(folder)
    assert len(read(folder, "entity")) == 2


LENIENT: list[Any] = [
    {"doc_id": "0_news_1", "tokens_ids": [1, 2], "cluster_id": 7, "topic": 0},
    {"doc_id": "0_news_1", "tokens_ids": [0], "cluster_id": 8, "topic": 0},
    {"doc_id": "0_news_1", "m_id": "1", "tokens_ids": [3], "cluster_id": 9, "topic": 0},
    {"doc_id": "0_news_1", "m_id": 1, "tokens_ids": [4], "cluster_id": 9, "topic": 0},
    {"doc_id": "0_news_1", "tokens_ids": [0, 4], "cluster_id": 7, "topic": 0},  # over three sentences
    {"doc_id": "0_news_1", "tokens_ids": [77], "cluster_id": 7, "topic": 0},
    {"doc_id": "0_news_9", "tokens_ids": [1], "cluster_id": 7, "topic": 0},
]


def test_what_corpora_of_others_hold(split):
    """Numeric topics, mentions without a name or with the same, across sentences; the rest is counted."""
    words = [
        [0, 0, "A", True], [0, 1, "virus", True], [1, 2, "flu", False], [1, 3, "It", False],
        [2, 4, "he", True],
    ]  # fmt: skip
    documents = {"0_news_1": words, "0_news_2": words[:1], "1_news_3": words[:1]}
    folder, passed_over = split(documents, LENIENT, []), PassedOver()
    topics = read(folder, "event", passed_over)
    assert [(topic.id, [document.id for document in topic.documents]) for topic in topics] == [
        ("0", ["0_news_1", "0_news_2"]),
        ("dev", ["1_news_3"]),
    ]
    document = topics[0].documents[0]
    assert (document.sentences, document.validated) == (((0, 4), (4, 5)), (0, 1))
    assert [(m.id, m.tokens, m.sentence, m.cluster) for m in document.mentions] == [
        ("0_news_1:number 1", (0, 1), 0, "8"),
        ("0_news_1:number 0", (1, 3), 0, "7"),
        ("0_news_1:1", (3, 4), 0, "9"),
        ("0_news_1:number 3", (4, 5), 1, "9"),
    ]
    assert {reason: count for reason, (count, _) in passed_over.counts.items()} == {
        "mention across two sentences, which were joined": 1,
        "event mention across three sentences or more": 1,
        "event mention of tokens that are not there": 1,
        "event mention of a document that is not there": 1,
    }


@pytest.mark.parametrize(
    ("names", "topic", "expected"),
    [
        # that of the mentions, and for a document that has none the name of the split
        (["news-a", "news-b", "x_y"], "w", {"news-a": "w", "news-b": "w", "x_y": "dev"}),
        # nothing says a topic: the id up to the first "_" if that puts documents together, else all are one
        (["1_a", "1_b", "2_c"], None, {"1_a": "1", "1_b": "1", "2_c": "2"}),
        (["a", "b_1"], None, {"a": "dev", "b_1": "dev"}),
    ],
)
def test_topics_of_other_corpora(split, names, topic, expected):
    documents = {name: [[0, 0, "Fire", True]] for name in names}
    events = [{"doc_id": name, "tokens_ids": [0], "cluster_id": 0, "topic": topic} for name in names[:2]]
    topics = read(split(documents, events, []))
    assert {document.id: one.id for one in topics for document in one.documents} == expected
    assert all(document.subtopic == one.id for one in topics for document in one.documents)
    assert {name: len(members) for name, members in gold_clusters(topics).items()} == {"0": 2}
