"""Coreference records check themselves."""

import dataclasses
import re

import pytest

from cdlm_lab.data.records import (
    CoreferenceDocument,
    CoreferenceMention,
    Topic,
    check_mention,
    gold_clusters,
    mentions_of,
)


def mention(identifier: str, tokens: tuple[int, int] = (0, 1), **changes: object) -> CoreferenceMention:
    given = {"document": "d", "sentence": 0, "kind": "event", "cluster": "c"}
    return CoreferenceMention(**{"id": identifier, "tokens": tokens} | given | changes)


def document(*mentions: CoreferenceMention, **changes: object) -> CoreferenceDocument:
    """Five tokens in two sentences."""
    given = {
        "id": "d",
        "topic": "t",
        "subtopic": "t_a",
        "tokens": ("Rain", "fell", ".", "It", "stopped"),
        "sentences": ((0, 3), (3, 5)),
        "validated": (0, 1),
    }
    return CoreferenceDocument(mentions=mentions, **given | changes)


def raises(message: str):
    return pytest.raises(ValueError, match=f"^{re.escape(message)}$")


def test_a_document_with_mentions():
    first, second = mention("d:1", (0, 2)), mention("d:2", (4, 5), sentence=1, tag="ACTION_STATE")
    assert document(first, second).text_of(first) == "Rain fell"
    assert second.place == ("d", 4, 5)
    assert (first.tag, second.tag) == ("", "ACTION_STATE")
    assert first.name == "mention d:1 of document d"
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.cluster = "x"
    assert len({first, second, mention("d:1", (0, 2))}) == 2


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"kind": "EVENT"}, "kind is 'EVENT'; choose one of event, entity"),
        ({"cluster": ""}, "no cluster; give it one of its own if it corefers with no other"),
        ({"tokens": (2, 2)}, "(2, 2) is no span of tokens; write (first, last + 1)"),
        ({"tokens": (-1, 2)}, "(-1, 2) is no span of tokens; write (first, last + 1)"),
    ],
)
def test_mention_that_cannot_be(changes, what):
    with raises(f"mention m of document d: {what}"):
        mention("m", **changes)


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (mention("m", document="e"), "of document e stands in the list of document d"),
        (mention("m", (4, 6), sentence=1),
         "of document d: its tokens (4, 6) lie outside: the document has 5"),
        (mention("m", sentence=2),
         "of document d: sentence 2 is not one of its 2; sentences are numbered from 0"),
        (mention("m", sentence=-1),
         "of document d: sentence -1 is not one of its 2; sentences are numbered from 0"),
        (mention("m", (2, 4)), "of document d: its tokens (2, 4) lie outside sentence 0, (0, 3)"),
        (mention("m", (2, 4), sentence=1),
         "of document d: its tokens (2, 4) lie outside sentence 1, (3, 5)"),
    ],
)  # fmt: skip
def test_mention_that_does_not_fit(made, what):
    for checks in (lambda: document(made), lambda: check_mention(made, document())):
        with raises(f"mention m {what}"):
            checks()
    check_mention(mention("m", (0, 3)), document())  # mentions at the edges fit
    check_mention(mention("m", (3, 5), sentence=1), document())


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"tokens": (), "sentences": ()}, " has no text; leave it out"),
        ({"tokens": ("Rain", "\t", ".", "It", "")}, ": token 1 is empty; leave it out"),
        ({"sentences": ((0, 3), (4, 5))},
         ": sentence 1 is (4, 5) after 3 tokens; sentences follow each other without gaps"),
        ({"sentences": ((0, 3), (3, 3), (3, 5))},
         ": sentence 1 is (3, 3) after 3 tokens; sentences follow each other without gaps"),
        ({"sentences": ((0, 3),)}, ": the sentences end at 3 of 5 tokens; sentences hold all of them"),
        ({"sentences": ((0, 6),)}, ": the sentences end at 6 of 5 tokens; sentences hold all of them"),
        ({"validated": (0, 2)}, ": validated sentence 2 is not one of its 2; sentences are numbered from 0"),
    ],
)  # fmt: skip
def test_document_that_cannot_be(changes, what):
    with raises(f"document d{what}"):
        document(**changes)


OTHER = document(mention("m", document="e"), id="e")
EVENT, ENTITY = mention("d:1"), mention("d:2", (1, 2), kind="entity")
BOTH = "mention d:1 of document d is an event, mention d:2 of document d an entity; split the cluster"


@pytest.mark.parametrize(
    ("topic", "documents", "what"),
    [
        ("t", [], "topic t has no documents; leave it out"),
        ("u", [document()], "document d is of topic t, not of u"),
        ("t", [document(), document()], "topic t has two documents d; name them apart"),
        ("t", [document(mention("m")), OTHER], "mention m of document e: document d has one of this id too"),
        ("t", [document(EVENT, ENTITY)], f"cluster c is of both kinds: {BOTH}"),
    ],
)
def test_topic_that_cannot_be(topic, documents, what):
    with raises(what):
        Topic(id=topic, documents=tuple(documents))
    with raises("mention m of document d: a second mention of this id; number them apart"):
        document(mention("m"), mention("m", (1, 2)))


def test_clusters_through_topics():
    one = document(mention("d:1"), mention("d:2", (1, 2), cluster="x"), mention("d:3", (2, 3)))
    entity = mention("e:1", document="e", kind="entity", cluster="y")
    two = document(mention("e:2", (1, 2), document="e"), entity, id="e", topic="u")
    topics = [Topic(id="t", documents=(one,)), Topic(id="u", documents=(two,))]
    assert [found.id for found in mentions_of(topics)] == ["d:1", "d:2", "d:3", "e:2", "e:1"]
    assert [found.id for found in mentions_of(topics, kind="entity")] == ["e:1"]
    names = {name: [m.id for m in members] for name, members in gold_clusters(topics, kind="event").items()}
    assert names == {"c": ["d:1", "d:3", "e:2"], "x": ["d:2"]}
    cut = gold_clusters(topics, by_topic=True)
    assert {name: len(members) for name, members in cut.items()} == {"t/c": 2, "t/x": 1, "u/c": 1, "u/y": 1}
    both = document(mention("e:2", document="e", kind="entity"), id="e", topic="u")
    topics[1] = Topic(id="u", documents=(both,))
    message = "cluster c is of both kinds: mention d:1 of document d is an event, "
    with pytest.raises(ValueError, match=message):
        gold_clusters(topics)
    assert len(gold_clusters(topics, kind="entity")) == 1
    assert len(gold_clusters(topics, by_topic=True)) == 3
