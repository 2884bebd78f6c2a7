"""Pairs of mentions whose attention is analysed: of two documents of a topic, drawn from a seed."""

from collections import Counter
from dataclasses import replace

import pytest

from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.explorer.aligned_pairs import sample_aligned_pairs


@pytest.fixture(scope="module")
def dev_topics():
    return list(read_storyworld_topics("dev", 4, stories_per_topic=2))


def test_pairs_are_of_two_documents_of_a_topic_and_as_they_say(dev_topics):
    pairs = sample_aligned_pairs(dev_topics, "event", count=20, seed=0)
    topic_of = {document.id: topic.id for topic in dev_topics for document in topic.documents}
    assert Counter(pair.corefer for pair in pairs) == {True: 20, False: 20}
    for pair in pairs:
        assert pair.source.document != pair.target.document
        assert topic_of[pair.source.document] == topic_of[pair.target.document] == pair.topic
        assert (pair.source.cluster == pair.target.cluster) is pair.corefer
        assert pair.source.kind == pair.target.kind == "event"
    assert len({frozenset((pair.source.id, pair.target.id)) for pair in pairs}) == 40


def test_either_mention_may_be_the_source_and_chance_comes_from_the_seed(dev_topics):
    pairs = sample_aligned_pairs(dev_topics, "entity", count=100, seed=1)
    order = {document.id: n for n, document in enumerate(d for topic in dev_topics for d in topic.documents)}
    assert 70 < sum(order[pair.source.document] < order[pair.target.document] for pair in pairs) < 130
    first, again, other = (sample_aligned_pairs(dev_topics, "event", count=9, seed=n) for n in (0, 0, 1))
    assert first == again != other


def test_all_there_are_and_not_more(dev_topics):
    pairs = sample_aligned_pairs(dev_topics, "event", count=100_000, seed=0)
    mentions = [(m, t.id) for t in dev_topics for d in t.documents for m in d.mentions if m.kind == "event"]
    expected = Counter(
        a.cluster == b.cluster
        for n, (a, one) in enumerate(mentions)
        for b, other in mentions[:n]
        if one == other and a.document != b.document
    )
    assert Counter(pair.corefer for pair in pairs) == expected


def test_nothing_to_compare(dev_topics):
    alone = replace(dev_topics[0], documents=dev_topics[0].documents[:1])
    with pytest.raises(ValueError, match="no two in different documents of a topic corefer"):
        sample_aligned_pairs([alone], "event", count=5, seed=0)
    with pytest.raises(ValueError, match="count is 0"):
        sample_aligned_pairs(dev_topics, "event", count=0, seed=0)
