"""Storyworld: determinism, the rules of facts by brute force, and plain language."""

import itertools
import re
from collections import Counter

import pytest

from cdlm_lab.data.records import Story
from cdlm_lab.data.storyworld.catalogue import catalogue
from cdlm_lab.data.storyworld.plan import write_reports
from cdlm_lab.data.storyworld.stories import _begun, digest, event_type_of, stories, story
from cdlm_lab.data.storyworld.world import build_world

WORD = r"[A-Z][a-z]+|\d+(,\d{3})*"  # an invented name or a number


def texts(one: Story) -> list[str]:
    return [document.text for document in one.cluster.documents]


def pieces(text: str) -> list[str]:
    """Words and numbers in lower case; "12,480" is one number."""
    return re.findall(r"[a-z]+|\d+(?:,\d+)*", text.lower())


def test_a_story_is_a_pure_function_of_seed_split_and_index():
    first = story(seed=1, split="test", index=7)
    assert first == story(seed=1, split="test", index=7)
    for seed, split, index in [(2, "test", 7), (1, "train", 7), (1, "test", 8)]:
        assert texts(story(seed=seed, split=split, index=index)) != texts(first)
    streamed = list(stories(seed=4, split="validation", start=3, stop=6))
    assert streamed == [story(seed=4, split="validation", index=index) for index in (3, 4, 5)]
    assert len(list(itertools.islice(stories(), 3))) == 3  # without a stop there is no end
    with pytest.raises(ValueError, match="split is 'dev'; choose one of train, validation, test"):
        story(seed=0, split="dev", index=0)
    with pytest.raises(ValueError, match="index is -1; stories are numbered from 0"):
        story(seed=0, split="train", index=-1)


@pytest.mark.parametrize("index", range(4))
def test_a_digest_has_a_paragraph_for_each_topic_of_the_reports(index):
    made = digest(seed=3, split="test", index=index)
    assert made == digest(seed=3, split="test", index=index)
    rng, event = _begun(seed=3, split="test", index=index)
    topics = {unit.key: unit.topic for unit in event.units} | {"lead": "core"}
    drafts, _ = write_reports(build_world(rng, event), rng)
    bodies = [(draft.writer.text, one) for draft in drafts for one in draft.writer.sentences[1:]]
    written = [(topics.get(one.units[0], one.units[0]), text[one.start : one.end]) for text, one in bodies]
    wanted = {topic: [words for other, words in written if other == topic] for topic, _ in written}
    assert made.text.split("\n") == [" ".join(sentences) for sentences in wanted.values()]
    assert [made.text[slice(*span)] for span in made.sentences] == list(itertools.chain(*wanted.values()))
    assert {"core", "money"} < set(wanted)
    reports = story(seed=3, split="test", index=index).cluster.documents
    assert len(made.sentences) == sum(len(report.sentences) - 1 for report in reports)


def test_sizes_and_types(many):
    assert {len(one.cluster.documents) for one in many} == {3, 4, 5, 6}
    words = [len(text.split()) for one in many for text in texts(one)]
    assert min(words) >= 150
    assert max(words) <= 600
    assert 200 <= sum(words) / len(words) <= 350
    facts = sum(len(document.facts) for one in many for document in one.cluster.documents)
    assert 0.12 <= facts / sum(words) <= 0.20
    assert len({one.cluster.id for one in many}) == len(many)
    kinds = {event_type_of(seed=0, split="train", index=index) for index in range(len(many))}
    assert kinds == {event.name for event in catalogue().events}
    assert len(kinds) >= 8


def test_a_fact_stands_once_in_its_document_and_in_another_in_the_same_words(many):
    for one in many:
        stated: dict[str, list[str]] = {}
        for document in one.cluster.documents:
            counts = Counter(pieces(document.text))
            facts = sorted(document.facts, key=lambda fact: fact.start)
            assert all(left.end <= right.start for left, right in itertools.pairwise(facts))
            for fact in facts:
                text = document.text[fact.start : fact.end]
                assert re.fullmatch(WORD, text)
                assert not document.text[fact.end : fact.end + 1].isalnum()
                (piece,) = pieces(text)  # one word or one number
                assert counts[piece] == 1, (document.id, text)
                stated.setdefault(fact.id, []).append(text)
        for fact, words in stated.items():
            assert len(words) > 1, (one.cluster.id, fact)
            assert len(set(words)) == 1, (one.cluster.id, fact, words)


@pytest.mark.parametrize("count", [100, pytest.param(500, marks=pytest.mark.slow)])
def test_names_are_not_shared_by_stories(count):
    owners: dict[str, set[str]] = {}
    for split, start in (("train", 0), ("train", 1000), ("validation", 0), ("test", 0)):
        for one in stories(seed=0, split=split, start=start, stop=start + count):
            for document in one.cluster.documents:
                for fact in document.facts:
                    if fact.id[-1].isdigit() and "/" in fact.id:
                        owners.setdefault(document.text[fact.start : fact.end], set()).add(one.cluster.id)
    # 400 or 2,000 stories with 25 shared name words each: a draw from millions rarely meets an old one
    assert len(owners) > 90 * count
    assert sum(len(clusters) > 1 for clusters in owners.values()) / len(owners) < 0.01


@pytest.mark.parametrize("fault", [
    r"  | \n|\n\n",
    r"[\[\]{}<>@|~#$_]",
    r"\b(the|a|an|of|in|to|by|for) \1\b",
    r"\ba [aeio]\w+",
    r"\ban [bcdfgjklmnpqrstvwxyz]\w+",
    r"\ban (?!8|11|18)\d",
    r" [,.;:?!]",
    r"[,;:]\.|\.\.|,,|,;|\.,",
    r"(?:^|\n|\. )[a-z]",
    r"(?:^|\n|\. )\d",
])  # fmt: skip
def test_the_texts_are_clean(many, fault):
    faults = [
        text[max(0, result.start() - 30) : result.end() + 30]
        for one in many
        for text in texts(one)
        for result in re.finditer(fault, text)
    ]
    assert faults == []


def test_sentences_tile_the_text_the_first_is_the_headline_and_no_pattern_is_frequent(many):
    """With names and numbers blanked, no sentence is a hundredth of all, and half are met once or twice."""
    patterns: Counter[str] = Counter()
    for document in (document for one in many for document in one.cluster.documents):
        spans = ((0, 0), *document.sentences, (len(document.text), len(document.text)))
        for (_, end), (start, _) in itertools.pairwise(spans):
            assert document.text[end:start] in ("", " ", "\n"), document.id
        start, end = document.sentences[0]
        assert document.text[start:end] == document.title == document.text.split("\n", 1)[0]
        for start, end in document.sentences:
            blanked = re.sub(r"\b[A-Z]\w+", "N", document.text[start + 1 : end])
            patterns[re.sub(r"\d[\d,]*", "#", blanked)] += 1
    assert patterns.most_common(1)[0][1] / patterns.total() < 0.01
    assert sum(count for count in patterns.values() if count <= 2) / patterns.total() > 0.5
