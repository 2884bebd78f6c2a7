"""JSON files of the paper's code: a split by hand, tolerance, and every complaint."""

import json
from typing import Any

import pytest

from cdlm_lab.data.convert.coreference_files import read_coreference_json
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


def read(folder, kinds=("event", "entity"), **options):
    return list(read_coreference_json(folder, "dev", kinds=kinds, **options))


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
    with refused(folder / "test.json", "1: file: there is no such file; check the spelling of the path"):
        read_coreference_json(folder, "test")
    (folder / "dev_entities.json").unlink()
    mentions = list(mentions_of(read(str(folder), kinds=("event", "event"))))
    assert [mention.kind for mention in mentions] == ["event"] * 3
    remedy = "copy it there, or leave its kind out of kinds, which is ('event', 'entity')"
    with refused(folder / "dev_entities.json", f"1: file: there is no such file; {remedy}"):
        read(folder)
    for kinds, shown in (((), r"\(\)"), (("events",), r"\('events',\)")):
        with pytest.raises(ValueError, match=f"^kinds is {shown}; choose from event, entity$"):
            read(folder, kinds=kinds)


def changed(place: int, **fields: object) -> list[Any]:
    """The events with changed fields; ... takes one out."""
    item = {name: value for name, value in {**EVENTS[place], **fields}.items() if value is not ...}
    return [*EVENTS[:place], item, *EVENTS[place + 1 :]]


LONE = "half a surrogate pair at character 1; remove the lone \\ud... escape"
SENTENCE = "name tokens of one sentence"
BY_ID = "name tokens of the document by their id"


@pytest.mark.parametrize(("events", "message"), [
    ("{}", "1: file: an object where a list belongs; write it as [{...}, ...]"),
    ("[\n\n  {}]", '3: [0].doc_id: missing; add "doc_id" to the record'),
    (changed(1, doc_id=7), "19: [1].doc_id: a number where a text belongs; put it in quotes"),
    (changed(1, doc_id="36_9ecb.xml"),
     "19: [1].doc_id: there is no document 36_9ecb; name one of the documents of the split"),
    (changed(1, m_id=[]), '19: [1].m_id: a list where a text belongs; write it as "m_id": 7'),
    (changed(1, cluster_id="x\ud83d"), f"19: [1].cluster_id: {LONE}"),
    (changed(1, cluster_id=""), "19: [1].cluster_id: it is empty; fill it in"),
    (changed(1, cluster_id=...), '19: [1].cluster_id: missing; add "cluster_id" to the record'),
    (changed(1, cluster_id=None),
     '19: [1].cluster_id: null where a text belongs; write it as "cluster_id": 7'),
    (changed(1, tokens_ids=...), f"19: [1].tokens_ids: no tokens; {SENTENCE}"),
    (changed(1, tokens_ids=[]), f"19: [1].tokens_ids: no tokens; {SENTENCE}"),
    (changed(1, tokens_ids=6), "19: [1].tokens_ids: a number where a list belongs; write it as [...]"),
    (changed(1, tokens_ids=[6, -1]),
     "19: [1].tokens_ids[1]: -1 is not a whole number from 0; write it as 3"),
    (changed(1, tokens_ids=[99]),
     f"19: [1].tokens_ids[0]: the document 36_1ecb has no token 99 with text; {BY_ID}"),
    (changed(1, tokens_ids=[4, 5]),
     f"19: [1].tokens_ids[1]: the document 36_1ecb has no token 5 with text; {BY_ID}"),
    (changed(1, tokens_ids=[1, 7]), f"19: [1].tokens_ids: tokens of three sentences or more; {SENTENCE}"),
    (changed(1, topic=[]), '19: [1].topic: a list where a text belongs; write it as "topic": 7'),
    ([*EVENTS, {**ENTITIES[0], "topic": "37"}],
     "37: [3].topic: 37, but 36 in another mention of 36_1ecb; give all mentions of a document one "
     "topic"),
])  # fmt: skip
def test_malformed_mentions(split, refused, events, message):
    folder = split(events=events)
    with refused(folder / "dev_events.json", message):
        read(folder)


ROW = 'write it as [sentence, token id, "text", true]'


@pytest.mark.parametrize(("documents", "message"), [
    ("[]", "1: file: a list where an object belongs; write it as {document: [tokens]}"),
    ("{}", "1: file: no documents; add some, or take the split out"),
    ('{"a": [[0, 0, "x", true]],\n"b": 7}', "2: b: a number where a list belongs; write it as [...]"),
    ('{\n"a": [[0, 0, "Fire", true]],\n"Müller": [[0, 0, 1, true]]}',
     "3: Müller[0][2]: a number where a text belongs; put it in quotes"),
    ('{\n"a": []}', "2: a: the document has no text; leave it out"),
    ({"a": [[0, 1, " ", True]]}, "2: a: the document has no text; leave it out"),
    ({"a": [[0, 1, "x"]]}, f"2: a[0]: a list of 3, too short; {ROW}"),
    ({"a": ["x"]}, f"2: a[0]: a text where a list belongs; {ROW}"),
    ({"a": [[0, 1, "x", 1]]},
     "2: a[0][3]: a number where true or false belongs; write it without quotes"),
    ({"a": [["x", 1, "x", True]]}, "2: a[0][0]: 'x' is not a whole number from 0; write it as 3"),
    ({"a": [[0, True, "x", True]]}, "2: a[0][1]: True is not a whole number from 0; write it as 3"),
    ({"a": [[0, 1, "x", True], [0, "1", "y", True]]},
     "2: a[1]: a second token 1; number the tokens of a document apart"),
    ({"a": [[4, 1, "x", True], [3, 2, "y", True]]},
     "2: a[1]: sentence 3 after 4; put the tokens in order"),
    ('{"a": [[0, 0, "x", true]],\n\n"a.xml": [[0, 0, "x", true]]}',
     "3: a.xml: two documents of this name; name them apart, without .xml"),
])  # fmt: skip
def test_malformed_documents(split, refused, documents, message):
    folder = split(documents=documents)
    with refused(folder / "dev.json", message):
        read(folder)


def test_no_mentions_and_a_cluster_of_both_kinds(split, refused):
    folder = split(events=[])
    for entities, kinds in ((ENTITIES, ("event",)), ([], ("event", "entity"))):
        what = f"1: mentions: no mention of kind {' or '.join(kinds)}; annotate some, or take the split out"
        with refused(split(events=[], entities=entities) / "dev.json", what):
            read(folder, kinds=kinds)
    folder = split(entities=[{**ENTITIES[0], "cluster_id": 7}])
    one, two = "mention 36_1ecb:4 of document 36_1ecb", "mention 36_1ecb:3 of document 36_1ecb"
    what = f"cluster 7 is of both kinds: {one} is an entity, {two} an event; split the cluster"
    apart = 'where events and entities share numbers, read one kind: kinds=("event",)'
    with refused(folder / "dev.json", f"1: mentions: {what}; correct the mention; {apart}"):
        read(folder)
    assert len(read(folder, kinds=("entity",))) == 2


LENIENT: list[Any] = [
    {"doc_id": "0_news_1", "tokens_ids": [1, 2], "cluster_id": 7, "topic": 0},
    {"doc_id": "0_news_1", "tokens_ids": [0], "cluster_id": 8, "topic": 0},
    {"doc_id": "0_news_1", "m_id": "1", "tokens_ids": [3], "cluster_id": 9, "topic": 0},
    {"doc_id": "0_news_1", "m_id": 1, "tokens_ids": [4], "cluster_id": 9, "topic": 0},
    {"doc_id": "0_news_1", "tokens_ids": [0, 4], "cluster_id": 7, "topic": 0},  # over three sentences
    {"doc_id": "0_news_1", "tokens_ids": [77], "cluster_id": 7, "topic": 0},
    {"doc_id": "0_news_1", "tokens_ids": [1], "topic": 0},
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
    topics = read(folder, kinds=("event",), passed_over=passed_over)
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
        "event mention whose tokens_ids means nothing": 2,
        "event mention whose cluster_id means nothing": 1,
        "event mention whose doc_id means nothing": 1,
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
