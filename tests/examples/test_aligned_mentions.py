"""Pairs for the attention analysis: who may be paired, how many, and that chance comes from the seed."""

from collections import Counter
from dataclasses import replace

import pytest

from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.examples.mention_pairs import sample_aligned_pairs


@pytest.fixture(scope="module")
def topics():
    return list(read_storyworld_topics("dev", 4, stories_per_topic=2))


def identity(pairs):
    return [(pair.source.id, pair.target.id, pair.corefer) for pair in pairs]


def test_pairs_are_of_two_documents_of_a_topic_and_as_they_say(topics):
    pairs = sample_aligned_pairs(topics, "event", count=20, seed=0)
    topic_of = {document.id: topic.id for topic in topics for document in topic.documents}
    assert Counter(pair.corefer for pair in pairs) == {True: 20, False: 20}
    for pair in pairs:
        assert pair.source.document != pair.target.document
        assert topic_of[pair.source.document] == topic_of[pair.target.document] == pair.topic
        assert (pair.source.cluster == pair.target.cluster) is pair.corefer
        assert pair.source.kind == pair.target.kind == "event"
    assert len({frozenset((pair.source.id, pair.target.id)) for pair in pairs}) == 40


def test_either_mention_may_be_the_source(topics):
    pairs = sample_aligned_pairs(topics, "entity", count=100, seed=1)
    order = {document.id: n for n, document in enumerate(d for topic in topics for d in topic.documents)}
    first = sum(order[pair.source.document] < order[pair.target.document] for pair in pairs)
    assert 70 < first < 130


def test_all_there_are_and_not_more(topics):
    pairs = sample_aligned_pairs(topics, "event", count=100_000, seed=0)
    mentions = [(m, t.id) for t in topics for d in t.documents for m in d.mentions if m.kind == "event"]
    expected = Counter(
        a.cluster == b.cluster
        for n, (a, one) in enumerate(mentions)
        for b, other in mentions[:n]
        if one == other and a.document != b.document
    )
    assert Counter(pair.corefer for pair in pairs) == expected


def test_chance_comes_from_the_seed(topics):
    one = identity(sample_aligned_pairs(topics, "event", count=9, seed=0))
    assert one == identity(sample_aligned_pairs(topics, "event", count=9, seed=0))
    assert one != identity(sample_aligned_pairs(topics, "event", count=9, seed=1))


def test_nothing_to_compare(topics):
    alone = replace(topics[0], documents=topics[0].documents[:1])
    with pytest.raises(ValueError, match="no two in different documents of a topic corefer"):
        sample_aligned_pairs([alone], "event", count=5, seed=0)
    with pytest.raises(ValueError, match="count is 0"):
        sample_aligned_pairs(topics, "event", count=0, seed=0)
