"""Coreference records check themselves."""

import dataclasses
import re
from functools import partial

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


M = "mention m of document d"
ZERO, GAPS = "sentences are numbered from 0", "sentences follow each other without gaps"
OTHER = document(mention("m", document="e"), id="e")
EVENT, ENTITY = mention("d:1"), mention("d:2", (1, 2), kind="entity")
BOTH = "mention d:1 of document d is an event, mention d:2 of document d an entity; split the cluster"


def topic(name: str, *documents: CoreferenceDocument) -> Topic:
    return Topic(id=name, documents=documents)


@pytest.mark.parametrize(("make", "message"), [
    (partial(mention, "m", kind="EVENT"), f"{M}: kind is 'EVENT'; choose one of event, entity"),
    (partial(mention, "m", cluster=""),
     f"{M}: no cluster; give it one of its own if it corefers with no other"),
    (partial(mention, "m", (2, 2)), f"{M}: (2, 2) is no span of tokens; write (first, last + 1)"),
    (partial(document, tokens=(), sentences=()), "document d has no text; leave it out"),
    (partial(document, tokens=("Rain", "\t", ".", "It", "")),
     "document d: token 1 is empty; leave it out"),
    (partial(document, sentences=((0, 3), (4, 5))),
     f"document d: sentence 1 is (4, 5) after 3 tokens; {GAPS}"),
    *((partial(document, sentences=((0, end),)),
       f"document d: the sentences end at {end} of 5 tokens; sentences hold all of them")
      for end in (3, 6)),
    (partial(document, validated=(0, 2)),
     f"document d: validated sentence 2 is not one of its 2; {ZERO}"),
    (partial(document, mention("m"), mention("m", (1, 2))),
     f"{M}: a second mention of this id; number them apart"),
    (partial(topic, "t"), "topic t has no documents; leave it out"),
    (partial(topic, "u", document()), "document d is of topic t, not of u"),
    (partial(topic, "t", document(), document()), "topic t has two documents d; name them apart"),
    (partial(topic, "t", document(mention("m")), OTHER),
     "mention m of document e: document d has one of this id too"),
    (partial(topic, "t", document(EVENT, ENTITY)), f"cluster c is of both kinds: {BOTH}"),
])  # fmt: skip
def test_records_that_cannot_be(make, message):
    with raises(message):
        make()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (mention("m", document="e"), "mention m of document e stands in the list of document d"),
        (mention("m", (4, 6), sentence=1), f"{M}: its tokens (4, 6) lie outside: the document has 5"),
        (mention("m", sentence=2), f"{M}: sentence 2 is not one of its 2; {ZERO}"),
        (mention("m", (2, 4)), f"{M}: its tokens (2, 4) lie outside sentence 0, (0, 3)"),
    ],
)
def test_mention_that_does_not_fit(made, message):
    with raises(message):
        document(made)
    with raises(message):
        check_mention(made, document())
    check_mention(mention("m", (0, 3)), document())  # mentions at the edges fit
    check_mention(mention("m", (3, 5), sentence=1), document())


def test_clusters_through_topics():
    one = document(mention("d:1"), mention("d:2", (1, 2), cluster="x"), mention("d:3", (2, 3)))
    entity = mention("e:1", document="e", kind="entity", cluster="y")
    two = document(mention("e:2", (1, 2), document="e"), entity, id="e", topic="u")
    topics = [topic("t", one), topic("u", two)]
    assert [one.id for one in mentions_of(topics)] == ["d:1", "d:2", "d:3", "e:2", "e:1"]
    assert [one.id for one in mentions_of(topics, kind="entity")] == ["e:1"]
    names = {name: [m.id for m in members] for name, members in gold_clusters(topics, kind="event").items()}
    assert names == {"c": ["d:1", "d:3", "e:2"], "x": ["d:2"]}
    cut = gold_clusters(topics, by_topic=True)
    assert {name: len(members) for name, members in cut.items()} == {"t/c": 2, "t/x": 1, "u/c": 1, "u/y": 1}
    both = document(mention("e:2", document="e", kind="entity"), id="e", topic="u")
    topics[1] = topic("u", both)
    message = "cluster c is of both kinds: mention d:1 of document d is an event, "
    with pytest.raises(ValueError, match=message):
        gold_clusters(topics)
    assert len(gold_clusters(topics, kind="entity")) == 1
    assert len(gold_clusters(topics, by_topic=True)) == 3
