"""Claims about invented events: that they are the stories' own, and how their evidence is found."""

import re
from collections import Counter
from functools import cache

import pytest

from cdlm_lab.data.claims import LABELS, EvidencedClaim
from cdlm_lab.data.records import Claim, Cluster, Document, SentenceRef, Story
from cdlm_lab.data.storyworld import task_sets as claim_storyworld
from cdlm_lab.data.storyworld.stories import stories
from cdlm_lab.data.storyworld.task_sets import read_storyworld_claims

STORIES = 40


@cache
def told() -> tuple[Story, ...]:
    return tuple(stories(seed=0, split="train", stop=STORIES))


@cache
def read(**options) -> tuple[EvidencedClaim, ...]:
    return tuple(read_storyworld_claims("train", STORIES, **options))


def report(name: str, *sentences: str) -> Document:
    text, spans = "", []
    for sentence in sentences:
        spans.append((len(text), len(text) + len(sentence)))
        text += f"{sentence}\n"
    return Document(id=name, text=text, title=sentences[0], sentences=tuple(spans))


def made(*claims: Claim) -> Story:
    first = report(
        "r0", "The hall burns", "The hall had 12 doors.", "Rain fell.", "The hall burnt, the\nhall fell."
    )
    second = report("r1", "Hall burns down", "Rain fell.", "All 12 doors of the hall burnt.")
    empty = dict.fromkeys(("mentions", "alignments", "tags", "questions", "candidate_sets"), ())
    return Story(cluster=Cluster(id="s", documents=(first, second)), claims=claims, **empty)


def claim(text: str, label: str = "supported", *evidence: SentenceRef) -> Claim:
    return Claim(id="c", text=text, label=label, evidence=evidence)


def found(monkeypatch, *claims: Claim, **options) -> list[tuple[str, ...]]:
    monkeypatch.setattr(claim_storyworld, "told", lambda **_: iter([made(*claims)]))
    return [one.evidence for one in read_storyworld_claims("train", 1, **options)]


def test_retrieval_by_hand(monkeypatch):
    """Of four sentences "the" and "hall" stand in three, "doors" in two, "had" in one. So the first scores
    log 4 + log 2 + 2 log 4/3 = 2.65, the last log 2 + 2 log 4/3 = 1.27, the third 0.58, the second 0."""
    (evidence,) = found(monkeypatch, claim("The hall had 99 doors."))
    assert evidence == (
        "The hall had 12 doors.",
        "All 12 doors of the hall burnt.",
        "The hall burnt, the hall fell.",
        "Rain fell.",
    )


def test_a_rare_word_outweighs_two_frequent_ones(monkeypatch):
    # "fell" gives log 2 = 0.69 to two sentences, "the" and "hall" together 2 log 4/3 = 0.58 to three.
    (evidence,) = found(monkeypatch, claim("The hall fell."), evidence=3)
    assert evidence == ("The hall burnt, the hall fell.", "Rain fell.", "The hall had 12 doors.")


def test_equal_scores_go_to_the_earlier_sentence(monkeypatch):
    # "hall" gives log 4/3 to three sentences, "burnt" log 2 to two of them.
    (evidence,) = found(monkeypatch, claim("HALL BURNT 12"), evidence=3)
    assert evidence == (
        "The hall burnt, the hall fell.",
        "All 12 doors of the hall burnt.",
        "The hall had 12 doors.",
    )
    (evidence,) = found(monkeypatch, claim("Nothing known"), evidence=2)
    assert evidence == ("The hall had 12 doors.", "Rain fell.")


def test_neither_label_nor_gold_nor_number_matters(monkeypatch):
    gold = SentenceRef(document=0, sentence=2)
    one, two, three = found(
        monkeypatch,
        claim("The hall had 12 doors."),
        claim("The hall had 7,000 doors.", "refuted", gold),
        claim("The hall had 13 doors.", "not enough info"),
        evidence=2,
    )
    assert one == two == three == ("The hall had 12 doors.", "All 12 doors of the hall burnt.")


def test_claims_are_the_stories():
    expected = [(one.id, one.text, one.label, story.cluster.id) for story in told() for one in story.claims]
    assert [(one.id, one.text, one.label, one.group) for one in read()] == expected
    labels = Counter(one.label for one in read())
    assert labels.keys() == set(LABELS)
    assert labels["supported"] == labels["refuted"] == 2 * STORIES


def test_evidence_is_of_the_story_and_no_headline():
    for options in ({}, {"evidence": 8}):
        texts = {
            story.cluster.id: {
                " ".join(one.text[start:stop].split())
                for one in story.cluster.documents
                for start, stop in one.sentences[1:]
            }
            for story in told()
        }
        for one in read(**options):
            assert len(set(one.evidence)) == len(one.evidence) == options.get("evidence", 5)
            assert set(one.evidence) <= texts[one.group]
    fewer = read_storyworld_claims("train", 1, evidence=10_000)
    assert {len(one.evidence) for one in fewer} == {len(texts[told()[0].cluster.id])}


def test_how_often_the_number_is_found():
    """The claims of the docstring, on fewer stories."""
    hits, known = Counter(), Counter()
    by_id = {one.id: one for one in read()}
    for story in told():
        for one in story.claims:
            reports = story.cluster.documents
            gold = {
                " ".join(
                    reports[at.document].text[slice(*reports[at.document].sentences[at.sentence])].split()
                )
                for at in one.evidence
            }
            known[one.label] += 1
            hits[one.label] += bool(gold & set(by_id[one.id].evidence))
            evidence, numbers = " ".join(by_id[one.id].evidence), re.findall(r"\d[\d,]*", one.text)
            stated = any(re.search(rf"(?<![\d,]){number}(?![\d,]*\d)", evidence) for number in numbers)
            assert stated <= (one.label == "supported")
    assert hits["supported"] / known["supported"] > 0.95
    assert hits["refuted"] / known["refuted"] > 0.95
    assert not hits["not enough info"]


def test_same_claims_every_time():
    assert list(read_storyworld_claims("dev", 2)) == list(read_storyworld_claims("validation", 2))
    first = next(read_storyworld_claims("train", 10**9))  # made one at a time
    assert first == read()[0]
    assert first != next(read_storyworld_claims("train", 1, seed=1))
    third = [one for one in read() if one.group == "storyworld-0-train-2"]
    assert list(read_storyworld_claims("train", 1, start=2)) == third


@pytest.mark.parametrize(
    ("split", "count", "options", "what"),
    [
        ("all", 1, {}, "split is 'all'; choose one of train, dev, test"),
        ("train", 0, {}, "stories_count is 0; it must be at least 1"),
        ("train", 1, {"evidence": 0}, "evidence is 0; it must be at least 1"),
        ("train", 1, {"start": -1}, "start is -1; it must be at least 0"),
    ],
)
def test_senseless_requests(split, count, options, what):
    with pytest.raises(ValueError, match=f"^{what}$"):
        read_storyworld_claims(split, count, **options)
