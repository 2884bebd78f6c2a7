"""Multi-hop questions: records, HotpotQA's files and predictions, and where an answer stands."""

import gzip
import json
import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdlm_lab.data.convert.hotpotqa import hotpot_record, read_rows, write_predictions
from cdlm_lab.data.files import DataError
from cdlm_lab.data.questions import answer_occurrences, asked_by_its_clue, check_question
from cdlm_lab.data.records import MultihopQuestion, Paragraph
from cdlm_lab.data.rows import rows_of
from cdlm_lab.tasks.multihop.metrics import hotpotqa, scores_by_question


def read_hotpotqa(path: str | Path) -> list[MultihopQuestion]:
    return list(read_rows(rows_of(Path(path))))


BRIDGE: dict[str, Any] = {
    "_id": "q1",
    "question": " Where is the author of Blue Mill from?",
    "answer": "Ghent",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Blue Mill", 2], ["Ann Lee", 0]],
    "context": [
        ["Rain", ["It is wet."]],
        ["Blue Mill", ["Blue Mill is a novel.", " ", " Ann Lee wrote it."]],
        ["Ann Lee", ["Ann Lee is from Ghent.\u2028", ""]],
    ],
}
COMPARISON: dict[str, Any] = {
    **BRIDGE, "_id": "q2", "answer": "yes", "type": "comparison", "level": "easy",
    "supporting_facts": [["Rain", 0], ["Ann Lee", 1]],
}  # fmt: skip
WITHOUT_GOLD: dict[str, Any] = {"_id": "q3", "question": "Is it?", "context": [["É", ["Non.", " Yes."]]]}
RECORDS = [BRIDGE, COMPARISON, WITHOUT_GOLD]
RAIN = Paragraph(title="Rain", sentences=("It is wet.",))
MILL = Paragraph(title="Blue Mill", sentences=("Blue Mill is a novel.", " ", " Ann Lee wrote it."))
LEE = Paragraph(title="Ann Lee", sentences=("Ann Lee is from Ghent.\u2028", ""))
QUESTION = MultihopQuestion(
    id="q1",
    text=" Where is the author of Blue Mill from?",
    paragraphs=(RAIN, MILL, LEE),
    answer="Ghent",
    supporting=(("Blue Mill", 2), ("Ann Lee", 0)),
    kind="bridge",
    level="hard",
)


@pytest.fixture
def written(write):
    """`written(content)` writes a file; content other than text is written as JSON."""

    def _written(content: object):
        return write("dev.json", content if isinstance(content, str) else json.dumps(content, indent=1))

    return _written


def test_a_file(written, write):
    first, second, third = expected = read_hotpotqa(str(written(RECORDS)))
    assert first == QUESTION
    assert (second.answer, second.type, second.kind, second.level) == ("yes", "yes", "comparison", "easy")
    assert second.supporting == (("Rain", 0), ("Ann Lee", 1))
    assert (third.answer, third.type, third.supporting, third.kind, third.level) == (None, None, (), "", "")
    assert third.paragraphs == (Paragraph(title="É", sentences=("Non.", " Yes.")),)
    assert read_hotpotqa(write("one.json", json.dumps(RECORDS))) == expected
    packed = gzip.compress(json.dumps(RECORDS, ensure_ascii=False).encode())
    assert read_hotpotqa(write("dev.json.gz", packed)) == expected
    null = dict.fromkeys(("answer", "type", "level", "supporting_facts"))
    assert read_hotpotqa(written([{**WITHOUT_GOLD, **null}])) == [third]
    facts = [["Rain", 0], ["Ann Lee", 0], ["Rain", 0]]
    (repeated,) = read_hotpotqa(written([{**BRIDGE, "supporting_facts": facts}]))
    assert repeated.supporting == (("Rain", 0), ("Ann Lee", 0))


def test_facts_that_name_no_sentence_are_kept_apart_and_scored(written):
    """The official script compares only titles and numbers, so such a fact is one that no system predicts."""
    unknown = [["Blue Mill", 3], ["Blue Mill", -1], ["blue mill", 0], ["Ann Lee", 2]]
    facts = [unknown[0], ["Ann Lee", 0], *unknown[1:], ["Rain", 0]]
    first, second = read_hotpotqa(written([BRIDGE, {**COMPARISON, "supporting_facts": facts}]))
    assert first == QUESTION
    assert second.supporting == (("Ann Lee", 0), ("Rain", 0))
    assert second.unknown_supporting == tuple(map(tuple, unknown))
    assert second.gold_paragraphs == (0, 1, 2), "the paragraph of a fact is needed, whatever its sentence"
    predicted = {"q1": BRIDGE["supporting_facts"], "q2": [list(fact) for fact in second.supporting]}
    predictions = {"answer": {"q1": "Ghent", "q2": "yes"}, "sp": predicted}
    scores = scores_by_question([hotpot_record(one) for one in (first, second)], predictions)
    assert [scores[name].tolist() for name in ("sp_recall", "sp_em", "sp_prec")] == [
        [1, 2 / 6],
        [1, 0],
        [1, 1],
    ]


def in_columns(record: dict[str, Any]) -> dict[str, Any]:
    """Convert a record to the format of the Hugging Face hub."""
    columns = {"id" if name == "_id" else name: value for name, value in record.items()}
    for field, names in (("context", ("title", "sentences")), ("supporting_facts", ("title", "sent_id"))):
        if field in record:
            columns[field] = dict(zip(names, map(list, zip(*record[field], strict=True)), strict=True))
    return columns


def test_the_columns_of_the_hub(written, write):
    columns = [in_columns(record) for record in RECORDS]
    assert columns[0]["supporting_facts"] == {"title": ["Blue Mill", "Ann Lee"], "sent_id": [2, 0]}
    assert columns[2]["context"] == {"title": ["É"], "sentences": [["Non.", " Yes."]]}
    expected = read_hotpotqa(written(RECORDS))
    assert read_hotpotqa(written(columns)) == read_hotpotqa(write("dev.jsonl", columns)) == expected
    with pytest.raises(DataError, match=r"dev\.jsonl:4: field \[3\]\.id: a number where a text belongs"):
        read_hotpotqa(write("dev.jsonl", [*columns, {**columns[0], "id": 7}]))


def a_text(field: str, value: str) -> str:
    return f"{field}: {value} where a text belongs; put it in quotes"


KIND = "is unknown; write bridge or comparison, or leave it out"
FACT, PARAGRAPH = 'write each as ["title", 0]', 'write each as ["title", ["sentence", ...]]'
LIST, NUMBER = "where a list belongs; write it as [...]", "where a whole number belongs; write it as 3"


@pytest.mark.parametrize(("changes", "message"), [
    ({"_id": ...}, '3: [1]._id: missing; add "_id" to the record'),
    ({"_id": "q1"}, "3: [1] 'q1'._id: [0] has this id too; give each question its own"),
    ({"_id": "a\nb", "question": []}, f"3: [1] 'a\\nb'.{a_text('question', 'a list')}"),
    ({"type": "Bridge"}, f"type: 'Bridge' {KIND}"),
    ({"context": ...}, 'context: missing; add "context" to the record'),
    ({"context": {"sentences": []}},
     'context: title is missing or no list; give the columns "title" and "sentences" as lists'),
    ({"context": {"title": ["Rain", "Sun"], "sentences": [["Wet."]]}},
     "context: 2 titles, but 1 sentences; give one for each title"),
    ({"context": [["Rain"]]}, f"context[0]: a list of 1, too short; {PARAGRAPH}"),
    ({"supporting_facts": {"title": ["Rain"], "sent_id": 0}},
     'supporting_facts: sent_id is missing or no list; give the columns "title" and "sent_id" as lists'),
    ({"supporting_facts": [["Rain", 0], [0] * 3]}, f"supporting_facts[1]: a list of 3, too long; {FACT}"),
    ({"supporting_facts": [["Rain", 0.0]]}, f"supporting_facts[0][1]: a number {NUMBER}"),
])  # fmt: skip
def test_malformed_fields(written, refused, changes, message):
    record = {name: value for name, value in {**COMPARISON, **changes}.items() if value is not ...}
    path = written(json.dumps([BRIDGE, record]).replace('}, {"', '},\n\n{"'))
    with refused(path, message if message.startswith("3") else f"3: [1] 'q2'.{message}"):
        read_hotpotqa(path)


def test_records_leave_out_what_is_not_known(written):
    assert [hotpot_record(question) for question in read_hotpotqa(written(RECORDS))] == RECORDS
    # With an answer there is gold, so that the official scorer finds the field.
    assert hotpot_record(replace(QUESTION, supporting=()))["supporting_facts"] == []


def test_predictions_can_be_scored_and_are_whole_or_not_there(tmp_path):
    path = tmp_path / "predictions.json"
    answers, supporting = (
        {"q1": "Gent, é", "q2": ""},
        {"q1": [("Rain", np.int64(0)), ("Ann Lee", 0)], "q9": []},
    )
    write_predictions(path, answers, supporting)
    predictions = json.loads(path.read_text())
    assert predictions == {"answer": answers, "sp": {"q1": [["Rain", 0], ["Ann Lee", 0]], "q9": []}}
    scores = hotpotqa([BRIDGE, COMPARISON], predictions)
    assert (scores["em"], scores["sp_em"]) == (0, 0)
    assert scores["sp_prec"] == scores["sp_recall"] == (1 / 2 + 0) / 2
    with pytest.raises(TypeError):
        write_predictions(path, {"q1": object()}, {})
    assert json.loads(path.read_text()) == predictions
    assert [file.name for file in tmp_path.iterdir()] == ["predictions.json"]


@pytest.mark.parametrize(
    ("split", "count", "comparisons"), [("train", 600, 140), ("dev", 150, 28), ("test", 150, 27)]
)
def test_the_real_files_come_back_as_they_were(real_data, split, count, comparisons):
    path = real_data("hotpotqa") / f"{split}.json.gz"
    every = read_hotpotqa(path)
    assert (len(every), sum(question.kind == "comparison" for question in every)) == (count, comparisons)
    assert all(len(question.gold_paragraphs) == 2 for question in every)
    assert list(map(hotpot_record, every)) == json.loads(gzip.decompress(path.read_bytes()))


def test_what_a_question_tells_of_itself():
    types = {"yes": "yes", "no": "no", "Ghent": "span", "No": "span", "noanswer": "span", None: None}
    assert {answer: replace(QUESTION, answer=answer).type for answer in types} == types
    assert QUESTION.gold_paragraphs == (1, 2)
    assert replace(QUESTION, supporting=(("Ann Lee", 0), ("Ann Lee", 0))).gold_paragraphs == (2,)


def test_a_question_that_its_clue_asks():
    asked = asked_by_its_clue(QUESTION)
    facts = {
        "id": "q1-clue",
        "text": "Ann Lee wrote it.",
        "supporting": (("Ann Lee", 0),),
        "paragraphs": (RAIN, LEE),
    }
    assert asked == replace(QUESTION, **facts)
    both = (("Ann Lee", 0), ("Blue Mill", 0), ("Blue Mill", 2))
    joined = asked_by_its_clue(replace(QUESTION, supporting=both))
    assert joined.text == "Blue Mill is a novel. Ann Lee wrote it."
    unclear = (
        {"kind": "comparison"},
        {"answer": "yes"},
        {"answer": "Rome"},
        {"supporting": both[:1]},
        {"answer": None},
    )
    assert [asked_by_its_clue(replace(QUESTION, **changes)) for changes in unclear] == [None] * 5


@pytest.mark.parametrize("changes", [
    {},
    {"answer": None, "supporting": ()},
    {"supporting": (("Blue Mill", 1),)},  # a sentence of blanks is one
    {"supporting": (("Ann Lee", 0), ("Ann Lee", 0))},
    {"paragraphs": (LEE,), "supporting": ()},
])  # fmt: skip
def test_questions_that_can_be_scored_pass(changes):
    check_question(replace(QUESTION, **changes), where="here")


@pytest.mark.parametrize(("changes", "problem"), [
    ({"id": ""}, "it has no id; give each its own"),
    ({"text": " \n"}, "the question is empty"),
    ({"answer": " "}, "the answer is empty; leave the field out if it is not known"),
    ({"paragraphs": ()}, "the context is empty; give at least one paragraph"),
    ({"supporting": (("Ann Lee", 0), ("ann lee", 0))},
     "a supporting fact names 'ann lee', which is no paragraph of the context"),
    ({"supporting": (("Blue Mill", 3),)},
     "a supporting fact names sentence 3 of 'Blue Mill', which has 3, counted from 0"),
])  # fmt: skip
def test_questions_that_no_system_could_be_scored_on(written, refused, changes, problem):
    question = replace(QUESTION, **changes)
    complaint = f"question {question.id!r}: {problem}"
    with pytest.raises(ValueError, match=f"^{re.escape(f'dev.json: {complaint}')}$"):
        check_question(question, where="dev.json")
    if "supporting" not in changes:  # whose facts a reader keeps apart
        path = written(json.dumps([COMPARISON, hotpot_record(question)], ensure_ascii=False))
        with refused(path, f"1: question: [1]: {complaint}; correct the question, or leave it out"):
            read_hotpotqa(path)


PARAGRAPHS = (
    Paragraph(title="Mark Twain", sentences=("Mark wrote it. ", "The Market knew Mark, or mark.")),
    Paragraph(title="Hannibal", sentences=("Twain was here; MARK was not.",)),
    Paragraph(title="A", sentences=("remarkable remarks",)),
)


def places(answer: str | None, *gold: int, body: str = "") -> list[tuple]:
    """Return the places of an answer, with their words instead of their ends, in PARAGRAPHS or in `body`."""
    paragraphs = (Paragraph(title="T", sentences=(body,)),) if body else PARAGRAPHS
    texts = {"title": lambda one: one.title, "body": lambda one: one.text}
    return [
        (number, part, start, texts[part](paragraphs[number])[start:end])
        for number, part, start, end in answer_occurrences(answer, paragraphs, gold=gold)
    ]


@pytest.mark.parametrize(("answer", "gold", "expected"), [
    ("Mark", (0, 1), [(0, "title", 0, "Mark"), (0, "body", 0, "Mark"), (0, "body", 31, "Mark")]),
    # only paragraphs that are gold, and in their order
    ("Twain", (0,), [(0, "title", 5, "Twain")]),
    ("Twain", (1,), [(1, "body", 0, "Twain")]),
    ("Twain", (1, 0), [(1, "body", 0, "Twain"), (0, "title", 5, "Twain")]),
    ("Twain", (), []),
    ("mark", (0,), [(0, "body", 40, "mark")]),  # whole, in its own case
    ("market", (0,), [(0, "body", 19, "Market")]),  # whole, in another
    ("mark", (1, 2), [(1, "body", 16, "MARK")]),  # which goes before parts of words, wherever they are
    ("mark", (2,), [(2, "body", 2, "mark"), (2, "body", 13, "mark")]),  # a part, in its own case
    ("arket", (0,), [(0, "body", 20, "arket")]),
    ("WAIN", (0, 1), [(0, "title", 6, "wain"), (1, "body", 1, "wain")]),  # a part, in another
    ("Samuel", (0, 1, 2), []),
    # over the end of a sentence, and any white space
    ("wrote it. The", (0,), [(0, "body", 5, "wrote it. The")]),
    (" Mark \n Twain ", (0,), [(0, "title", 0, "Mark Twain")]),
    ("was.here", (1,), []),
])  # fmt: skip
def test_the_strictest_kind_of_place_that_there_is(answer, gold, expected):
    assert places(answer, *gold) == expected


def test_places_of_odd_answers():
    assert places("Žofie Ň", 0, body="to  Žofie\u00a0Ň, to žofie ň") == [(0, "body", 4, "Žofie\u00a0Ň")]
    overlapping = places("the fire the", 0, body="the fire the fire the.")
    assert [start for _, _, start, _ in overlapping] == [0, 9]
    for sign in ("$1,000", "(or 1.000)", "U.S.", "[s]", "a+b", "1.000"):
        taken = places(sign, 0, body="It cost $1,000 (or 1.000) in the U.S. of [s] a+b.")
        assert [text for *_, text in taken] == [sign]
    for answer in (None, "", " ", "yes", "no"):
        assert places(answer, 0, body="yes, no ") == []
    assert places("Yes", 0, body="Yes is a band.") == [(0, "body", 0, "Yes")]


@pytest.mark.parametrize(("answer", "text"), [
    ("Zürich", "Zu\u0308rich"), ("Zu\u0308rich", "Zürich"), ("firefighter", "fire\xadfighter"),
    ("नई दिल्ली", "नई\u00a0दिल्ली"), ("Zürich", "zu\u0308rich"),
    ("Việt Nam", unicodedata.normalize("NFD", "Việt Nam")),
])  # fmt: skip
def test_places_of_an_answer_in_other_characters(answer, text):
    """Spans are in characters of the paragraph as it is."""
    assert places(answer, 0, body=f"In {text}, 1999.") == [(0, "body", 3, text)]


def test_half_a_letter_is_no_end_of_a_word():
    assert places("cafe", 0, body="cafe\u0301, cafe") == [(0, "body", 7, "cafe")]


@pytest.mark.parametrize(("answer", "kind", "expected"), [
    ("Yes", "comparison", "yes"), ("no.", "bridge", "no"), (" NO ", None, "no"), ("yes!", "bridge", "yes"),
    ("Yes", "bridge", "Yes"),  # the band, of which a gold paragraph tells
    ("No", "bridge", "no"), ("Non", "comparison", "Non"), ("yes, it is", "comparison", "yes, it is"),
])  # fmt: skip
def test_yes_and_no_in_any_spelling(written, answer, kind, expected):
    context = [["Rain", ["No rain, said No."]], ["Yes (band)", ["Yes are a band of London."]]]
    record = {"_id": "q", "question": "Is it?", "answer": answer, "type": kind, "context": context}
    (question,) = read_hotpotqa(written([{**record, "supporting_facts": [["Yes (band)", 0]]}]))
    assert (question.answer, question.type) == (expected, expected if expected in ("yes", "no") else "span")


def test_other_types_empty_and_repeated_paragraphs(written):
    """2WikiMultihopQA has four types; some contexts name a page twice, or one without text."""
    context = [["Rain", ["It rained."]], ["Dry", [" "]], ["Rain", ["Again."]]]
    record = {**BRIDGE, "type": "bridge_comparison", "supporting_facts": [["Rain", 0]], "context": context}
    (question,) = read_hotpotqa(written([record]))
    assert question.kind == "comparison"
    assert [one.title for one in question.paragraphs] == ["Rain", "Rain (2)"]
