"""Questions over invented reports: what stands in which paragraph, and that nothing else gives it away."""

import re
from collections import Counter
from functools import cache
from itertools import islice, pairwise

import pytest

from cdlm_lab.data.questions import check_question
from cdlm_lab.data.records import MultihopQuestion, Question
from cdlm_lab.data.storyworld.stories import event_type_of, story
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


def test_all_questions_of_all_stories_in_order():
    questions = read()
    wanted = [one for number in range(STORIES) for one in tale(number).questions]
    fields = ("id", "text", "answer", "type")
    for question, one in zip(questions, wanted, strict=True):
        assert [getattr(question, name) for name in fields] == [getattr(one, name) for name in fields]
        assert question.kind == one.hops
    assert {one.type for one in questions if one.kind == "comparison"} == {"span", "yes", "no"}
    assert {one.type for one in questions if one.kind == "bridge"} == {"span"}


@pytest.mark.parametrize("options", [{}, {"withheld": True}, {"sentences": 1, "paragraphs": 7}])
def test_every_question_can_be_scored(options):
    for question in read(**options):
        check_question(question, where="here")
        assert len(question.paragraphs) == options.get("paragraphs", 4)
        assert {len(one.sentences) for one in question.paragraphs} == {options.get("sentences", 4)}
        assert len(question.gold_paragraphs) == (1 if options.get("withheld") else 2)


def test_paragraphs_read_as_their_reports():
    breaks = 0
    for question in read():
        places = []
        for paragraph in question.paragraphs:
            number, place = report_holding(paragraph.text)
            report = tale(number).cluster.documents[place]
            assert re.sub(r" \(\d\)$", "", paragraph.title) == report.title
            starts = [begin for begin, _ in report.sentences]
            first = starts.index(report.text.index(paragraph.text))
            assert first > 0  # the headline is the title
            for sentence, (begin, end) in zip(paragraph.sentences, pairwise(starts[first:]), strict=False):
                assert sentence.rstrip() == report.text[begin:end].rstrip()
            assert all(sentence[-1] in " \n" for sentence in paragraph.sentences[:-1])
            assert paragraph.text == paragraph.text.strip()
            breaks += "\n" in paragraph.text
            places.append((number, place))
        assert len(set(places)) == 4  # one run of each report
    assert breaks > 100


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


def test_withheld_in_reports_too_short_for_another_run():
    full, half = (read(sentences=12, withheld=withheld) for withheld in (False, True))
    others = 0
    for question, less in zip(full, half, strict=True):
        check_question(less, where="here")
        (place,) = [n for n in range(4) if less.paragraphs[n] != question.paragraphs[n]]
        used = [report_holding(one.text) for one in question.paragraphs]
        now = report_holding(less.paragraphs[place].text)
        others += now != used[place]
        assert now == used[place] or now not in used
        assert not any(name in less.paragraphs[place].text for name in supporting_names(question))
    assert 30 < others < len(full)


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


def test_distractors_of_comparisons_are_of_the_story_then_of_its_type():
    types = {number: event_type_of(seed=0, split="train", index=number) for number in range(STORIES)}
    outside = 0
    for question in (one for one in read() if one.kind == "comparison"):
        numbers = [report_holding(one.text)[0] for one in question.paragraphs]
        own = numbers.count(number_of(question))
        assert own == min(4, len(tale(number_of(question)).cluster.documents))
        assert {types[number] for number in numbers} == {types[number_of(question)]}
        outside += own < 4
    assert outside > 10


def test_neither_order_nor_place_nor_title_gives_the_answer_away():
    questions = read()
    gold = Counter(place for one in questions for place in one.gold_paragraphs)
    assert sorted(gold) == [0, 1, 2, 3]
    assert min(gold.values()) > 0.2 * gold.total()
    assert len({one.gold_paragraphs[0] for one in questions}) == 3
    numbered, places, free = Counter(), Counter(), Counter()
    for one in questions:
        golden = {title for title, _ in one.supporting}
        numbered.update(p.title in golden for p in one.paragraphs if p.title.endswith("(2)"))
        documents = tale(number_of(one)).cluster.documents
        for at, (_, place) in zip(source_of(one).supporting, one.supporting, strict=True):
            after = len(documents[at.document].sentences) - 1 - at.sentence
            assert place >= 3 - after  # so many stand before it as are not there after it
            places[place] += 1
            free[place] += after >= 3  # all places that the report allows are drawn
    assert min(numbered[True], numbered[False]) > 2
    assert sorted(places) == [0, 1, 2, 3]
    assert min(places.values()) > 0.15 * places.total()
    assert min(free[place] for place in range(4)) > 0.18 * free.total()


def test_what_depends_on_the_number_of_stories():
    assert next(read_storyworld_questions("train", 10**6)).id == "storyworld-0-train-0-q0"  # comes at once
    many, more = (read_storyworld_questions("train", stories) for stories in (300, 400))
    assert list(islice(many, 12)) == list(islice(more, 12))
    pairs = list(zip(read(), read_storyworld_questions("train", STORIES + 20), strict=False))
    assert 10 < sum(one != other for one, other in pairs) < len(pairs) - 10
    for one, other in pairs:
        assert (one.id, one.text, one.answer) == (other.id, other.text, other.answer)
        first, second = ({each.paragraphs[n].text for n in each.gold_paragraphs} for each in (one, other))
        assert first == second


def test_splits_and_ranges_share_no_documents():
    texts = []
    for split, start in [("train", 0), ("dev", 0), ("test", 0), ("train", 6)]:
        questions = read_storyworld_questions(split, 6, start=start, paragraphs=12, sentences=2)
        texts.append({one.text for question in questions for one in question.paragraphs})
    assert sum(map(len, texts)) == len(set().union(*texts)) > 200


def test_the_least_and_the_most_paragraphs():
    for question in read_storyworld_questions("train", 2, paragraphs=2):
        assert question.gold_paragraphs == (0, 1)
    assert {number_of(one) for one in read_storyworld_questions("train", 2, start=7)} == {7, 8}
    reports = [(number, place) for number in range(6) for place in range(len(tale(number).cluster.documents))]
    for question in read_storyworld_questions("train", 6, paragraphs=len(reports), sentences=2):
        assert sorted(report_holding(one.text) for one in question.paragraphs) == reports
    with pytest.raises(ValueError, match=r"train-0-q0: the 6 stories of the range have no report left"):
        next(read_storyworld_questions("train", 6, paragraphs=len(reports) + 1))
