"""Questions over invented reports: what stands in which paragraph, and that nothing else gives it away."""

from collections import Counter
from functools import cache

import pytest

from cdlm_lab.data.questions import check_question
from cdlm_lab.data.records import MultihopQuestion, Question
from cdlm_lab.data.storyworld.stories import story
from cdlm_lab.data.storyworld.task_sets import read_storyworld_questions

STORIES = 60


@cache
def read(**options) -> tuple[MultihopQuestion, ...]:
    return tuple(read_storyworld_questions("train", STORIES, **options))


@cache
def tale(number: int):
    return story(seed=0, split="train", index=number)


def number_of(question: MultihopQuestion) -> int:
    return int(question.id.split("-")[3])


def source_of(question: MultihopQuestion) -> Question:
    return next(one for one in tale(number_of(question)).questions if one.id == question.id)


def sentences_of(number: int, wanted: Question) -> list[str]:
    """The supporting sentences that the story's own record names."""
    documents = tale(number).cluster.documents
    spans = [(at.document, *documents[at.document].sentences[at.sentence]) for at in wanted.supporting]
    return [documents[document].text[start:end] for document, start, end in spans]


def supporting_names(question: MultihopQuestion) -> set[str]:
    """Names of persons, bodies and places in the supporting sentences."""
    given, names = tale(number_of(question)), set()
    for at in source_of(question).supporting:
        report = given.cluster.documents[at.document]
        start, end = report.sentences[at.sentence]
        for tag in given.tags:
            if tag.document == at.document and start <= tag.start < end and tag.label not in ("NUM", "DATE"):
                names.add(report.text[tag.start : tag.end])
    assert len(names) == 2
    return names


@cache
def report_holding(text: str) -> tuple[int, int]:
    """Story and report with the words of a paragraph."""
    clusters = [(number, tale(number).cluster.documents) for number in range(STORIES)]
    (holder,) = ((number, n) for number, all in clusters for n, one in enumerate(all) if text in one.text)
    return holder


def test_a_question_and_its_paragraphs_with_and_without_the_clue():
    question = next(read_storyworld_questions("train", 12, sentences=2))
    assert question.text.endswith("head office of the company that is to lift the girders out of the water?")
    assert (question.id, question.answer) == ("storyworld-0-train-0-q0", "Tyttafors")
    assert (question.kind, question.type, question.level) == ("bridge", "span", "")
    clue, reply = "The gap in the road (2)", "Divers find more dead after bridge collapse"
    titles = [paragraph.title for paragraph in question.paragraphs]
    assert titles == ["Bridge fall kills dozens", "The gap in the road", reply, clue]
    assert question.supporting == ((clue, 1), (reply, 0))
    assert question.paragraphs[2].sentences == (
        "Work is not scarce in the region: Loevnaumoe Works, with its head office in Tyttafors, has just "
        "bought new lorries.\n",
        "In Golmeifors Square, 5,965 people listened to the bells until dark.",
    )
    assert question.paragraphs[3].sentences == (
        "A fund of 181 million ducats is to help the city. ",
        "Loevnaumoe Works has been engaged to lift the girders out of the water.",
    )
    assert "has its head office in Refaewick" in question.paragraphs[1].text  # of another bridge's firm
    half = next(read_storyworld_questions("train", 12, sentences=2, withheld=True))
    assert (half.answer, half.supporting, half.paragraphs[3].title) == ("Tyttafors", ((reply, 0),), clue)
    assert half.paragraphs[3].text == (
        "The roadway fell 31 metres into the Hettaukuholm river.\n"
        "Boruholm Hospital admitted 329 injured people."
    )


@pytest.mark.parametrize("options", [{}, {"withheld": True}, {"sentences": 1, "paragraphs": 7}])
def test_every_question_can_be_scored(options):
    for question in read(**options):
        check_question(question, where="here")
        assert len(question.paragraphs) == options.get("paragraphs", 4)
        assert {len(one.sentences) for one in question.paragraphs} == {options.get("sentences", 4)}
        assert len(question.gold_paragraphs) == (1 if options.get("withheld") else 2)


def test_supporting_facts_name_the_sentences_and_names_stand_only_where_they_must():
    for question in read():
        by_title = {one.title: one for one in question.paragraphs}
        sentences = [by_title[title].sentences[n].strip() for title, n in question.supporting]
        assert sentences == sentences_of(number_of(question), source_of(question))
        names, titles = supporting_names(question), list(by_title)
        assert not any(name in title for name in names for title in titles)
        holders = {
            name: [n for n, one in enumerate(question.paragraphs) if name in one.text] for name in names
        }
        first, second = (titles.index(title) for title, _ in question.supporting)
        if question.kind == "bridge":
            (link,) = names - {question.answer}
            assert holders == {question.answer: [second], link: sorted((first, second))}
        else:
            assert sorted(holders.values()) == sorted([[first], [second]])


def test_withheld_changes_one_paragraph():
    lost = Counter()
    for question, half in zip(read(), read(withheld=True), strict=True):
        for field in ("id", "text", "answer", "kind"):
            assert getattr(half, field) == getattr(question, field)
        (place,) = (n for n in range(4) if half.paragraphs[n] != question.paragraphs[n])
        before, after = question.paragraphs[place], half.paragraphs[place]
        assert before.title == after.title
        assert report_holding(before.text) == report_holding(after.text)
        which = [title for title, _ in question.supporting].index(before.title)
        assert half.supporting == (question.supporting[1 - which],)
        sentence = sentences_of(number_of(question), source_of(question))[which]
        assert any(sentence in one.text for one in question.paragraphs)
        assert not any(sentence in one.text for one in half.paragraphs)
        assert not any(name in after.text for name in supporting_names(question))
        lost[question.kind, which] += 1
        assert question.kind == "comparison" or any(question.answer in one.text for one in half.paragraphs)
    assert set(lost) == {("bridge", 0), ("comparison", 0), ("comparison", 1)}
    assert min(lost["comparison", 0], lost["comparison", 1]) > 20


def test_of_two_replies_of_one_wording_only_the_clue_tells_which():
    bridges = [one for one in read() if one.kind == "bridge"]
    halves = {one.id: one for one in read(withheld=True)}
    assert len(bridges) > 60
    for question in bridges:
        for context in (question, halves[question.id]):
            numbers = [report_holding(one.text)[0] for one in context.paragraphs]
            (rival,) = set(numbers) - {number_of(question)}
            assert numbers.count(rival) == 2  # as many as of its own story
            alike = [
                one for one in tale(rival).questions if one.text.split()[:3] == question.text.split()[:3]
            ]
            clue, reply = sentences_of(rival, next(one for one in alike if one.hops == "bridge"))
            assert [reply in one.text for one in context.paragraphs].count(True) == 1
            assert not any(clue in one.text for one in context.paragraphs)
