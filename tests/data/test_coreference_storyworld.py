"""Storyworld as coreference data: spans, ids and groups agree with the stories they come from."""

from itertools import islice, pairwise

import pytest

from cdlm_lab.data.records import (
    Cluster,
    Document,
    EntityTag,
    Mention,
    Story,
    gold_clusters,
    mentions_of,
    token_spans,
)
from cdlm_lab.data.storyworld import task_sets as coreference_storyworld
from cdlm_lab.data.storyworld.stories import stories
from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics


@pytest.mark.parametrize(
    ("text", "boundaries", "tokens"),
    [
        ("The fire, in 1986.", (), ["The", "fire", ",", "in", "1986", "."]),
        ('"62,689 ducats," she said', (), ['"', "62,689", "ducats", ",", '"', "she", "said"]),
        ("1.456,7. 12,x 3rd", (), ["1.456,7", ".", "12", ",", "x", "3rd"]),
        ("broken-off half–time Ann's ’tis", (), ["broken-off", "half", "–", "time", "Ann's", "’", "tis"]),
        ("Ann's car-park", (3, 6, 9, 0, 14), ["Ann", "'s", "car", "-park"]),
        ("ab", (0, 1, 2, 7), ["a", "b"]),
        (" \n", (1,), []),
    ],
)
def test_token_spans(text, boundaries, tokens):
    spans = token_spans(text, boundaries=boundaries)
    assert [text[start:end] for start, end in spans] == tokens
    assert all(first[1] <= second[0] for first, second in pairwise(spans))


def test_topics_of_stories():
    topics = list(read_storyworld_topics("test", 7, seed=3, start=2))
    assert [topic.id for topic in topics] == [
        "storyworld-3-test-stories-2-4",
        "storyworld-3-test-stories-5-7",
        "storyworld-3-test-stories-8-8",
    ]
    given = list(stories(seed=3, split="test", start=2, stop=9))
    subtopics = [list(dict.fromkeys(document.subtopic for document in topic.documents)) for topic in topics]
    names = [story.cluster.id for story in given]
    assert subtopics == [names[:3], names[3:6], names[6:]]
    found = [document.id for topic in topics for document in topic.documents]
    assert found == [document.id for story in given for document in story.cluster.documents]
    assert len(list(read_storyworld_topics("test", 4, stories_per_topic=1))) == 4
    assert len(list(read_storyworld_topics("test", 4, stories_per_topic=9))) == 1


def test_same_topics_every_time():
    assert list(read_storyworld_topics("dev", 2)) == list(read_storyworld_topics("validation", 2))
    first = next(read_storyworld_topics("train", 10**9))  # made one at a time
    assert first != next(read_storyworld_topics("dev", 3))
    assert first == next(read_storyworld_topics("train", 3))
    assert first != next(read_storyworld_topics("train", 3, seed=1))


def test_mentions_are_those_of_the_stories():
    given = {
        document.id: (story, number)
        for story in stories(split="train", stop=12)
        for number, document in enumerate(story.cluster.documents)
    }
    topics = list(read_storyworld_topics("train", 12))
    seen = 0
    for document in (document for topic in topics for document in topic.documents):
        story, number = given[document.id]
        text = story.cluster.documents[number].text
        gold = [mention for mention in story.mentions if mention.document == number]
        tags = {(tag.start, tag.end): tag.label for tag in story.tags if tag.document == number}
        assert "".join(document.tokens) == "".join(text.split())
        assert len(document.sentences) == len(story.cluster.documents[number].sentences)
        assert document.validated == tuple(range(len(document.sentences)))
        made = [
            ("".join(document.text_of(m).split()), m.kind, m.cluster, m.tag, m.sentence)
            for m in document.mentions
        ]
        spans = story.cluster.documents[number].sentences
        assert made == [
            (
                "".join(text[m.start : m.end].split()),
                m.kind,
                f"{story.cluster.id}:{m.chain}",
                tags.get((m.start, m.end), ""),
                next(place for place, (start, end) in enumerate(spans) if start <= m.start and m.end <= end),
            )
            for m in sorted(gold, key=lambda m: (m.start, m.end))
        ]
        assert len({mention.place for mention in document.mentions}) == len(gold)
        seen += len(gold)
    assert seen == sum(len(story.mentions) for story in stories(split="train", stop=12)) > 700


def test_mentions_that_are_parts_of_words(monkeypatch):
    """Storyworld has none so far; wherever a mention ends, a token does."""
    text = "Fire. Ann's half-built house"
    one = Document(id="s-0", text=text, sentences=((0, 5), (6, 28)))
    other = Document(id="s-1", text="Ann", sentences=((0, 3),))
    spans = {"ann": (6, 9), "house": (6, 28), "half": (12, 16)}
    mentions = [
        Mention(document=0, start=start, end=end, kind="entity", chain=chain)
        for chain, (start, end) in spans.items()
    ]
    tags = (
        EntityTag(document=1, start=12, end=16, label="ORG"),
        EntityTag(document=0, start=6, end=9, label="PER"),
    )
    made = Story(
        cluster=Cluster(id="s", documents=(one, other)),
        mentions=tuple(mentions),
        alignments=(),
        tags=tags,
        questions=(),
        candidate_sets=(),
        claims=(),
    )
    monkeypatch.setattr(coreference_storyworld, "stories", lambda **_: [made])
    (topic,) = read_storyworld_topics("train", 1)
    found = topic.documents[0]
    assert found.tokens == ("Fire", ".", "Ann", "'s", "half", "-built", "house")
    assert [(m.id, m.cluster, m.tokens, m.sentence, m.tag) for m in found.mentions] == [
        ("s-0:0", "s:ann", (2, 3), 1, "PER"),
        ("s-0:1", "s:house", (2, 7), 1, ""),
        ("s-0:2", "s:half", (4, 5), 1, ""),
    ]
    assert topic.documents[1].mentions == ()


def test_clusters_link_documents_but_not_stories():
    topics = list(islice(read_storyworld_topics("train", 12), 4))
    for kind in ("event", "entity"):
        clusters = gold_clusters(topics, kind=kind).values()
        story_of = {d.id: d.subtopic for topic in topics for d in topic.documents}
        assert all(len({story_of[mention.document] for mention in members}) == 1 for members in clusters)
        assert sum(len({mention.document for mention in members}) > 1 for members in clusters) >= 12
    assert {mention.tag for mention in mentions_of(topics)} >= {"PER", "LOC", "ORG", ""}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "tset"}, "split is 'tset'; choose one of train, dev, test"),
        ({"clusters": 0}, "clusters is 0; it must be at least 1"),
        ({"stories_per_topic": 0}, "stories_per_topic is 0; it must be at least 1"),
        ({"start": -1}, "start is -1; it must be at least 0"),
    ],
)
def test_arguments_that_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        read_storyworld_topics(**{"split": "train", "clusters": 3, **arguments})
