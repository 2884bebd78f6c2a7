"""Pairs of invented reports: related ones state the same numbers, unrelated ones are of one type of event."""

import re

import pytest

from cdlm_lab.data.document_pairs import check_splits
from cdlm_lab.data.storyworld import stories as storyworld
from cdlm_lab.data.storyworld.stories import event_type_of, stories
from cdlm_lab.data.storyworld.task_sets import read_storyworld_pairs

NUMBER = re.compile(r"\d[\d,]*\d|\d")


def test_pairs_of_stories():
    pairs = list(read_storyworld_pairs("dev", 24, seed=3, start=5))
    told = {story.cluster.id: story for story in stories(seed=3, split="validation", start=5, stop=29)}
    assert [pair.related for pair in pairs] == [True, False] * 24
    assert [pair.cluster for pair in pairs[::2]] == [pair.cluster for pair in pairs[1::2]] == list(told)
    assert len({pair.id for pair in pairs}) == 48
    owner = {document.id: name for name, story in told.items() for document in story.cluster.documents}
    for pair in pairs:
        first, second = (owner[name] for name in pair.documents)
        assert first == pair.cluster
        assert (first == second) == pair.related
        assert pair.first.id != pair.second.id
    assert all(one.first == other.first for one, other in zip(pairs[::2], pairs[1::2], strict=True))
    assert any(pair.first.id > pair.second.id for pair in pairs[::2])  # either order
    assert any(pair.first.id < pair.second.id for pair in pairs[::2])


def test_documents_are_the_reports():
    pair = next(read_storyworld_pairs("train", 2))
    reports = {document.id: document for document in next(stories()).cluster.documents}
    report = reports[pair.first.id]
    assert pair.first.text_of() == " ".join(report.text.split())
    assert pair.first.sentences[0] == report.title
    assert len(pair.first.sentences) == len(report.sentences)


def test_aligned_sentences_share_a_number():
    checked = 0
    for pair in read_storyworld_pairs("test", 40):
        if not pair.related:
            assert pair.aligned == ()
            continue
        assert pair.aligned
        assert 0 not in pair.aligned  # the headline
        assert len(pair.aligned) < len(pair.first.sentences)
        there = set(NUMBER.findall(pair.second.text_of()))
        digits = [number for number in pair.aligned if NUMBER.search(pair.first.sentences[number])]
        checked += len(digits)
        for number in digits:
            assert there & set(NUMBER.findall(pair.first.sentences[number])), pair.first.sentences[number]
    assert checked > 150


def test_aligned_is_the_gold_of_the_story():
    told = {story.cluster.id: story for story in stories(split="train", stop=20)}
    for pair in read_storyworld_pairs("train", 20):
        if pair.related:
            first, second = (int(name.rpartition("-")[2]) for name in pair.documents)
            expected = {
                end.sentence
                for alignment in told[pair.cluster].alignments
                if {alignment.source.document, alignment.target.document} == {first, second}
                for end in (alignment.source, alignment.target)
                if end.document == first
            }
            assert set(pair.aligned) == expected


def test_types_of_events(monkeypatch):
    seen = []
    build = storyworld.build_world
    monkeypatch.setattr(
        storyworld,
        "build_world",
        lambda rng, kind, **rest: seen.append(kind.name) or build(rng, kind, **rest),
    )
    for split in ("train", "test"):
        seen.clear()
        list(stories(seed=7, split=split, stop=15))
        assert [event_type_of(seed=7, split=split, index=index) for index in range(15)] == seen


def test_unrelated_reports_are_of_one_type():
    kinds = {index: event_type_of(seed=0, split="train", index=index) for index in range(60)}
    partners = set()
    for pair in read_storyworld_pairs("train", 60):
        one, other = (int(name.split("-")[3]) for name in pair.documents)
        alone = list(kinds.values()).count(kinds[one]) == 1
        assert kinds[one] == kinds[other] or alone
        partners.add(other - one)
        assert 0 <= other < 60
    assert len(partners) > 10


def test_two_stories_are_enough():
    pairs = list(read_storyworld_pairs("train", 2))
    assert [pair.second.id.split("-")[3] for pair in pairs if not pair.related] == ["1", "0"]


def test_same_pairs_every_time():
    first = list(read_storyworld_pairs("dev", 6))
    assert first == list(read_storyworld_pairs("validation", 6))
    assert first != list(read_storyworld_pairs("dev", 6, seed=1))
    assert next(read_storyworld_pairs("train", 2000)) == next(read_storyworld_pairs("train", 3))


def test_splits_do_not_leak():
    check_splits({split: read_storyworld_pairs(split, 8) for split in ("train", "dev", "test")})
    check_splits(
        {"early": read_storyworld_pairs("train", 8), "late": read_storyworld_pairs("train", 8, start=8)}
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"split": "exam"}, "split is 'exam'; choose one of train, dev, test"),
        ({"stories": 1}, "stories is 1; unrelated reports take at least 2"),
        ({"start": -1}, "start is -1; it must be at least 0"),
    ],
)
def test_what_is_refused(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        read_storyworld_pairs(**({"split": "train", "stories": 3} | arguments))


def test_unrelated_reports_of_any_event_or_of_one_of_the_same_kind() -> None:
    kinds = {}
    for unrelated in ("random", "similar"):
        pairs = list(read_storyworld_pairs("dev", 60, unrelated=unrelated))
        stories = [[int(one.id.split("-")[3]) for one in (pair.first, pair.second)] for pair in pairs[1::2]]
        assert not any(pair.related for pair in pairs[1::2])
        types = [[event_type_of(seed=0, split="validation", index=n) for n in both] for both in stories]
        kinds[unrelated] = sum(first == second for first, second in types)
        assert all(first != second for first, second in stories)
    assert kinds["similar"] > 50
    assert kinds["random"] < 15
    with pytest.raises(ValueError, match="unrelated is 'hard'; choose one of random, similar"):
        read_storyworld_pairs("dev", 60, unrelated="hard")
