"""Multi-hop questions: records, HotpotQA's files and predictions, and where an answer stands."""

import gzip
import json
import re
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.files import DataError
from cdlm_lab.data.questions import (
    MultihopQuestion,
    Paragraph,
    answer_occurrences,
    check_question,
    hotpot_record,
    read_hotpotqa,
    read_predictions,
    write_hotpot_questions,
    write_predictions,
)
from cdlm_lab.metrics.question_answering import hotpotqa, scores_by_question

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
    **{name: BRIDGE[name] for name in ("question", "context")},
    "_id": "q2",
    "answer": "yes",
    "type": "comparison",
    "level": "easy",
    "supporting_facts": [["Rain", 0], ["Ann Lee", 1]],
}
WITHOUT_GOLD: dict[str, Any] = {"_id": "q3", "question": "Is it?", "context": [["É", ["Non.", " Yes."]]]}
RECORDS = [BRIDGE, COMPARISON, WITHOUT_GOLD]


@pytest.fixture
def questions(write):
    """questions(content): a file of it, written out if it is no text."""

    def _questions(content: object):
        return write("dev.json", content if isinstance(content, str) else json.dumps(content, indent=1))

    return _questions


def test_a_file(questions):
    first, second, third = read_hotpotqa(str(questions(RECORDS)))
    assert first == MultihopQuestion(
        id="q1",
        text=" Where is the author of Blue Mill from?",
        paragraphs=(
            Paragraph(title="Rain", sentences=("It is wet.",)),
            Paragraph(title="Blue Mill", sentences=("Blue Mill is a novel.", " ", " Ann Lee wrote it.")),
            Paragraph(title="Ann Lee", sentences=("Ann Lee is from Ghent.\u2028", "")),
        ),
        answer="Ghent",
        supporting=(("Blue Mill", 2), ("Ann Lee", 0)),
        kind="bridge",
        level="hard",
    )
    assert (second.answer, second.type, second.kind, second.level) == ("yes", "yes", "comparison", "easy")
    assert second.supporting == (("Rain", 0), ("Ann Lee", 1))
    assert (third.answer, third.type, third.supporting, third.kind, third.level) == (None, None, (), "", "")
    assert third.paragraphs == (Paragraph(title="É", sentences=("Non.", " Yes.")),)


def test_a_compressed_file_and_one_in_a_single_line(questions, write):
    expected = read_hotpotqa(questions(RECORDS))
    assert read_hotpotqa(write("one.json", json.dumps(RECORDS))) == expected
    packed = gzip.compress(json.dumps(RECORDS, ensure_ascii=False).encode())
    assert read_hotpotqa(write("dev.json.gz", packed)) == expected


def test_null_is_missing(questions):
    gold = dict.fromkeys(("answer", "type", "level", "supporting_facts"))
    assert read_hotpotqa(questions([{**WITHOUT_GOLD, **gold}])) == read_hotpotqa(questions([WITHOUT_GOLD]))


def test_a_repeated_fact_is_kept_once_at_its_first_place(questions):
    facts = [["Rain", 0], ["Ann Lee", 0], ["Rain", 0]]
    (found,) = read_hotpotqa(questions([{**BRIDGE, "supporting_facts": facts}]))
    assert found.supporting == (("Rain", 0), ("Ann Lee", 0))


FACTS = [["Blue Mill", 3], ["Ann Lee", 0], ["Blue Mill", -1], ["blue mill", 0], ["Ann Lee", 2], ["Rain", 0]]


def test_facts_that_name_no_sentence_are_kept_apart_and_scored(questions):
    """The official script looks at titles and numbers alone: such a fact is one that nobody predicts."""
    records = [BRIDGE, {**COMPARISON, "supporting_facts": FACTS}]
    first, second = read_hotpotqa(questions(records), unknown_facts="keep")
    assert (first.supporting, first.unknown_supporting) == ((("Blue Mill", 2), ("Ann Lee", 0)), ())
    assert second.supporting == (("Ann Lee", 0), ("Rain", 0))
    assert second.unknown_supporting == (
        ("Blue Mill", 3), ("Blue Mill", -1), ("blue mill", 0), ("Ann Lee", 2),
    )  # fmt: skip
    assert second.gold_paragraphs == (0, 1, 2), "the paragraph of a fact is needed, whatever its sentence"
    found = {"answer": {"q1": "Ghent", "q2": "yes"}, "sp": {"q1": BRIDGE["supporting_facts"]}}
    found["sp"]["q2"] = [list(fact) for fact in second.supporting]
    scores = scores_by_question([hotpot_record(one) for one in (first, second)], found)
    assert scores["sp_recall"].tolist() == [1, 2 / 6]
    assert scores["sp_em"].tolist() == [1, 0]
    assert scores["sp_prec"].tolist() == [1, 1]


def test_an_unknown_way_with_unknown_facts(questions):
    with pytest.raises(ValueError, match=r"^unknown_facts is 'drop'; choose refuse or keep$"):
        read_hotpotqa(questions(RECORDS), unknown_facts="drop")


def in_columns(record: dict[str, Any]) -> dict[str, Any]:
    """A record as the hub has it."""
    found = {**record, "id": record["_id"]}
    del found["_id"]
    for field, names in (("context", ("title", "sentences")), ("supporting_facts", ("title", "sent_id"))):
        if field in record:
            columns = zip(*record[field], strict=True)
            found[field] = dict(zip(names, map(list, columns), strict=True))
    return found


def test_the_columns_of_the_hub(questions, write):
    expected = read_hotpotqa(questions(RECORDS))
    columns = [in_columns(record) for record in RECORDS]
    assert columns[0]["supporting_facts"] == {"title": ["Blue Mill", "Ann Lee"], "sent_id": [2, 0]}
    assert columns[2]["context"] == {"title": ["É"], "sentences": [["Non.", " Yes."]]}
    assert read_hotpotqa(questions(columns)) == expected
    lines = "".join(f"{json.dumps(one)}\n" for one in columns)
    assert read_hotpotqa(write("dev.jsonl", lines)) == expected
    with_a_fault = write("dev.jsonl", lines + json.dumps({**columns[0], "id": 7}))
    with pytest.raises(DataError, match=r"dev\.jsonl:4: field \[3\]\.id: a number where a text belongs"):
        read_hotpotqa(with_a_fault)


LIST, TEXT = "a list where a text belongs", "put it in quotes"
UNKNOWN = 'correct it, or read with unknown_facts="keep"'
FACT, PARAGRAPH = 'write it as ["title", 0]', 'write it as ["title", ["sentence", ...]]'


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"_id": ...}, '3: [1]._id: missing; add "_id" to the record'),
        ({"_id": 7}, f"3: [1]._id: a number where a text belongs; {TEXT}"),
        ({"_id": "q1"}, "3: [1] 'q1'._id: [0] has this id too; give each question its own"),
        ({"_id": "a\nb", "question": []}, f"3: [1] 'a\\nb'.question: {LIST}; {TEXT}"),
        ({"question": ...}, "3: [1] 'q2'.question: missing; add \"question\" to the record"),
        ({"question": None}, f"3: [1] 'q2'.question: null where a text belongs; {TEXT}"),
        ({"answer": ["yes"]}, f"3: [1] 'q2'.answer: {LIST}; {TEXT}"),
        ({"answer": True}, f"3: [1] 'q2'.answer: true or false where a text belongs; {TEXT}"),
        (
            {"answer": "\ud800"},
            "3: [1] 'q2'.answer: half a surrogate pair at character 0; remove the lone \\ud... escape",
        ),
        ({"level": 3}, f"3: [1] 'q2'.level: a number where a text belongs; {TEXT}"),
        ({"type": {}}, "3: [1] 'q2'.type: {} is unknown; write bridge or comparison, or leave it out"),
        (
            {"type": "Bridge"},
            "3: [1] 'q2'.type: 'Bridge' is unknown; write bridge or comparison, or leave it out",
        ),
        ({"context": ...}, "3: [1] 'q2'.context: missing; add \"context\" to the record"),
        ({"context": None}, "3: [1] 'q2'.context: null where a list belongs; write it as [...]"),
        (
            {"context": {"sentences": []}},
            "3: [1] 'q2'.context: title is missing or no list; give the columns \"title\" and "
            '"sentences" as lists',
        ),
        (
            {"context": {"title": ["Rain", "Sun"], "sentences": [["Wet."]]}},
            "3: [1] 'q2'.context: 2 titles, but 1 sentences; give one for each title",
        ),
        (
            {"context": {"title": ["Rain"], "sentences": ["Wet."]}},
            "3: [1] 'q2'.context[0][1]: a text where a list belongs; write it as [...]",
        ),
        (
            {"context": ["Rain"]},
            '3: [1] \'q2\'.context[0]: a text where a list belongs; write each as ["title", ["sentence", '
            "...]]",
        ),
        (
            {"context": [["Rain"]]},
            '3: [1] \'q2\'.context[0]: a list of 1, too short; write each as ["title", ["sentence", ...]]',
        ),
        ({"context": [[["Rain"], []]]}, f"3: [1] 'q2'.context[0][0]: {LIST}; {TEXT}"),
        (
            {"context": [["Rain", "It is wet."]]},
            "3: [1] 'q2'.context[0][1]: a text where a list belongs; write it as [...]",
        ),
        (
            {"context": [["Rain", ["Wet.", None]]]},
            f"3: [1] 'q2'.context[0][1][1]: null where a text belongs; {TEXT}",
        ),
        (
            {"supporting_facts": {"title": ["Rain"], "sent_id": 0}},
            "3: [1] 'q2'.supporting_facts: sent_id is missing or no list; give the columns \"title\" and "
            '"sent_id" as lists',
        ),
        (
            {"supporting_facts": [["Rain", 0], ["Rain", 0, 0]]},
            "3: [1] 'q2'.supporting_facts[1]: a list of 3, too long; write each as [\"title\", 0]",
        ),
        ({"supporting_facts": [[["Rain"], 0]]}, f"3: [1] 'q2'.supporting_facts[0][0]: {LIST}; {TEXT}"),
        (
            {"supporting_facts": [["Rain", "0"]]},
            "3: [1] 'q2'.supporting_facts[0][1]: a text where a whole number belongs; write it as 3",
        ),
        (
            {"supporting_facts": [["Rain", 0.0]]},
            "3: [1] 'q2'.supporting_facts[0][1]: a number where a whole number belongs; write it as 3",
        ),
        (
            {"supporting_facts": [["Rain", False]]},
            "3: [1] 'q2'.supporting_facts[0][1]: true or false where a whole number belongs; write it as 3",
        ),
        (
            {"supporting_facts": [["Rain", 0], ["Rain", 1]]},
            f"3: [1] 'q2'.supporting_facts: the context has no sentence 1 of 'Rain', counted from 0; "
            f"{UNKNOWN}",
        ),
        (
            {"supporting_facts": [["Rain", -1]]},
            f"3: [1] 'q2'.supporting_facts: the context has no sentence -1 of 'Rain', counted from 0; "
            f"{UNKNOWN}",
        ),
        (
            {"supporting_facts": [["Sun", 0]]},
            f"3: [1] 'q2'.supporting_facts: the context has no sentence 0 of 'Sun', counted from 0; "
            f"{UNKNOWN}",
        ),
    ],
)
def test_malformed_fields(questions, refused, changes, message):
    record = {name: value for name, value in {**COMPARISON, **changes}.items() if value is not ...}
    path = questions(json.dumps([BRIDGE, record]).replace('}, {"', '},\n\n{"'))
    with refused(path, message):
        read_hotpotqa(path)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"_id": ""}, "question '': it has no id; give each its own"),
        ({"question": " "}, "question 'q3': the question is empty"),
        ({"answer": ""}, "question 'q3': the answer is empty; leave the field out if it is not known"),
        ({"context": []}, "question 'q3': the context is empty; give at least one paragraph"),
        ({"context": [], "supporting_facts": [["É", 0]]},
         "question 'q3': the context is empty; give at least one paragraph"),
        ({"context": [["É", [" ", ""]]]}, "question 'q3': paragraph 0, 'É', has no text"),
        ({"context": [["É", ["Un."]], ["É", ["Deux."]]]},
         "question 'q3': two paragraphs are called 'É'; titles tell paragraphs apart"),
    ],
)  # fmt: skip
def test_questions_that_no_system_could_be_scored_on(questions, refused, changes, problem):
    path = questions(json.dumps([BRIDGE, {**WITHOUT_GOLD, **changes}], ensure_ascii=False))
    with refused(path, f"1: question: [1]: {problem}; correct the question, or leave it out"):
        read_hotpotqa(path, unknown_facts="keep")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (" \n", "1: file: the file is empty; fill it, or take it out of the corpus"),
        ("[]", "1: file: no questions; add some, or leave the file out"),
        ('{"data": []}', "1: file: an object where a list belongs; write it as [{...}, ...]"),
        ("7", "1: file: a number where a list belongs; write it as [{...}, ...]"),
        ('[{"_id": "q1",\n "a" 1}]', "2: column 6: not JSON (Expecting ':' delimiter); complete the file"),
        ('[\n{"_id": "q', "2: column 9: not JSON (Unterminated string starting at); complete the file"),
        (f"[\n{json.dumps(BRIDGE)}\n ,\n7]", "4: [1]: a number where an object belongs; write it as {...}"),
    ],
)
def test_malformed_files(questions, refused, content, message):
    path = questions(content)
    with refused(path, message):
        read_hotpotqa(path)


@pytest.mark.parametrize("read", [read_hotpotqa, read_predictions])
@pytest.mark.parametrize("content", ["[" * 100_000, '{"answer":' * 100_000, "9" * 100_000])
def test_what_python_will_not_parse_is_a_complaint_too(questions, read, content):
    complaint = r"dev\.json:1: field file: not JSON \(.*\); write plain records: texts, numbers and lists of"
    with pytest.raises(DataError, match=complaint):
        read(questions(content))


def test_a_number_that_is_no_place(questions):
    """Of so many digits as Python still reads; and one that it takes for infinity."""
    for number, complaint in (("9" * 4000, r"no sentence 9+\.\.\.9+ of 'Rain'"), ("1e999", "a whole number")):
        changed = json.dumps([{**BRIDGE, "supporting_facts": [["Rain", "X"]]}]).replace('"X"', number)
        with pytest.raises(DataError, match=complaint):
            read_hotpotqa(questions(changed))


def test_records_leave_out_what_is_not_known(questions):
    assert [hotpot_record(question) for question in read_hotpotqa(questions(RECORDS))] == RECORDS
    first = read_hotpotqa(questions(RECORDS))[0]
    # With an answer there is gold, so that the official scorer finds the field.
    assert hotpot_record(replace(first, supporting=()))["supporting_facts"] == []


SENTENCES = st.lists(st.text(st.characters(codec="utf-8"), max_size=8), max_size=3).map(tuple)


@st.composite
def any_question(draw) -> MultihopQuestion:
    titles = draw(
        st.lists(st.text(st.characters(codec="utf-8"), max_size=8), min_size=1, max_size=4, unique=True)
    )
    paragraphs = [Paragraph(title=title, sentences=("a", *draw(SENTENCES))) for title in titles]
    facts = [(one.title, number) for one in paragraphs for number in range(len(one.sentences))]
    filled = st.text(st.characters(codec="utf-8"), max_size=8).map("{}.".format)
    return MultihopQuestion(
        id=draw(filled),
        text=draw(filled),
        paragraphs=tuple(paragraphs),
        answer=draw(st.none() | st.sampled_from(["yes", "no"]) | filled),
        supporting=tuple(draw(st.lists(st.sampled_from(facts), unique=True))),
        kind=draw(st.sampled_from(["", "bridge", "comparison"])),
        level=draw(st.sampled_from(["", "hard"])),
    )


@given(asked=st.lists(any_question(), min_size=1, max_size=3, unique_by=lambda question: question.id))
def test_questions_come_back_as_they_were(tmp_path_factory, asked):
    path = tmp_path_factory.mktemp("written") / "train.json"
    write_hotpot_questions(str(path), iter(asked))
    assert read_hotpotqa(path) == asked


def test_predictions_come_back_and_can_be_scored(tmp_path):
    path = tmp_path / "predictions.json"
    answers = {"q1": "Gent, é", "q2": ""}
    supporting = {"q1": [("Rain", np.int64(0)), ("Ann Lee", 0)], "q9": []}
    write_predictions(str(path), answers, supporting)
    assert json.loads(path.read_text()) == {
        "answer": {"q1": "Gent, é", "q2": ""},
        "sp": {"q1": [["Rain", 0], ["Ann Lee", 0]], "q9": []},
    }
    found = read_predictions(path)
    assert found == {"answer": answers, "sp": {"q1": [("Rain", 0), ("Ann Lee", 0)], "q9": []}}
    scores = hotpotqa([BRIDGE, COMPARISON], found)
    assert (scores["em"], scores["sp_em"]) == (0, 0)
    assert scores["sp_prec"] == scores["sp_recall"] == (1 / 2 + 0) / 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "1: line: a list where an object belongs; write it as {...}"),
        ({"answer": {}}, '1: sp: missing; add "sp" to the record'),
        ({"sp": {}}, '1: answer: missing; add "answer" to the record'),
        ({"answer": [], "sp": {}}, "1: answer: a list where an object belongs; write it as {...}"),
        ({"answer": {}, "sp": None}, "1: sp: null where an object belongs; write it as {...}"),
        ({"answer": {"q1": None}, "sp": {}}, f"1: answer.q1: null where a text belongs; {TEXT}"),
        ({"answer": {"q1": ["a"]}, "sp": {}}, f"1: answer.q1: {LIST}; {TEXT}"),
        ({"answer": {"\ud800": "a"}, "sp": {}},
         "1: '\\ud800': half a surrogate pair in the key; remove the lone \\ud... escape"),
        ({"answer": {}, "sp": {"q1": "Rain"}}, "1: sp.q1: a text where a list belongs; write it as [...]"),
        ({"answer": {}, "sp": {"q1": ["Rain", 0]}},
         "1: sp.q1[0]: a text where a list belongs; write it as [...]"),
        ({"answer": {}, "sp": {"q1": [["Rain", "0"]]}},
         "1: sp.q1[0][1]: a text where a whole number belongs; write it as 3"),
        ({"answer": {}, "sp": {"q1": [[None, 0]]}}, f"1: sp.q1[0][0]: null where a text belongs; {TEXT}"),
    ],
)  # fmt: skip
def test_malformed_predictions(write, refused, content, message):
    path = write("predictions.json", json.dumps(content))
    with refused(path, message):
        read_predictions(path)


def test_broken_predictions(write, refused):
    path = write("predictions.json", '{"answer": {},\n"sp": }')
    with refused(path, "2: column 7: not JSON (Expecting value); complete the file"):
        read_predictions(path)


def test_a_file_that_cannot_be_written_stays_as_it_was(write, questions, tmp_path, refused):
    path = write("predictions.json", "before")
    with pytest.raises(TypeError):
        write_predictions(path, {"q1": object()}, {})
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["predictions.json"]
    nowhere = tmp_path / "none" / "dev.json"
    with refused(nowhere, "1: folder: there is no such folder to write to; make it first"):
        write_hotpot_questions(nowhere, read_hotpotqa(questions(RECORDS)))
    with pytest.raises(ValueError, match=r"dev\.json\.gz: files are written plain; call it dev\.json$"):
        write_hotpot_questions(tmp_path / "dev.json.gz", [])


@pytest.mark.parametrize(
    ("split", "count", "comparisons"), [("train", 600, 140), ("dev", 150, 28), ("test", 150, 27)]
)
def test_the_real_files_come_back_as_they_were(real_data, tmp_path, split, count, comparisons):
    path = real_data("hotpotqa") / f"{split}.json.gz"
    found = read_hotpotqa(path)
    assert (len(found), sum(question.kind == "comparison" for question in found)) == (count, comparisons)
    assert all(len(question.gold_paragraphs) == 2 for question in found)
    write_hotpot_questions(tmp_path / "again.json", found)
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(gzip.decompress(path.read_bytes()))


MILL = Paragraph(title="Blue Mill", sentences=("Blue Mill is a novel.", " ", " Ann Lee wrote it."))
LEE = Paragraph(title="Ann Lee", sentences=("Ann Lee is from Ghent.",))
RAIN = Paragraph(title="Rain", sentences=("It is wet.",))
QUESTION = MultihopQuestion(
    id="q1",
    text="Where is the author of Blue Mill from?",
    paragraphs=(RAIN, MILL, LEE),
    answer="Ghent",
    supporting=(("Ann Lee", 0), ("Blue Mill", 2)),
    kind="bridge",
)


def test_text_of_a_paragraph_is_its_sentences_and_nothing_between_them():
    assert MILL.text == "Blue Mill is a novel.  Ann Lee wrote it."
    assert Paragraph(title="Blue Mill", sentences=()).text == ""


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("yes", "yes"), ("no", "no"), ("Ghent", "span"), ("No", "span"), ("noanswer", "span"), (None, None)],
)
def test_type_is_that_of_the_answer(answer, expected):
    assert replace(QUESTION, answer=answer).type == expected


def test_gold_paragraphs_are_ascending_and_each_there_once():
    assert QUESTION.gold_paragraphs == (1, 2)
    assert replace(QUESTION, supporting=(("Ann Lee", 0), ("Ann Lee", 0))).gold_paragraphs == (2,)
    assert replace(QUESTION, supporting=()).gold_paragraphs == ()


def test_records_are_frozen():
    with pytest.raises(FrozenInstanceError):
        QUESTION.answer = "Rome"
    assert hash(QUESTION) == hash(replace(QUESTION))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"answer": None, "supporting": ()},
        {"answer": "words that stand nowhere"},
        {"supporting": (("Blue Mill", 1),)},  # a sentence of blanks is one
        {"supporting": (("Ann Lee", 0), ("Ann Lee", 0))},
        {"paragraphs": (LEE,), "supporting": ()},
    ],
)
def test_questions_that_can_be_scored_pass(changes):
    check_question(replace(QUESTION, **changes), where="here")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"text": " \n"}, "the question is empty"),
        ({"answer": ""}, "the answer is empty; leave the field out if it is not known"),
        ({"answer": " "}, "the answer is empty; leave the field out if it is not known"),
        ({"paragraphs": ()}, "the context is empty; give at least one paragraph"),
        ({"paragraphs": (*QUESTION.paragraphs, Paragraph(title="Dry", sentences=(" ", "\n")))},
         "paragraph 3, 'Dry', has no text"),
        ({"paragraphs": (Paragraph(title="Dry", sentences=()), *QUESTION.paragraphs)},
         "paragraph 0, 'Dry', has no text"),
        ({"paragraphs": (*QUESTION.paragraphs, replace(MILL, title="Rain"))},
         "two paragraphs are called 'Rain'; titles tell paragraphs apart"),
        ({"supporting": (("Ann Lee", 0), ("ann lee", 0))},
         "a supporting fact names 'ann lee', which is no paragraph of the context"),
        ({"supporting": (("Blue Mill", 3),)},
         "a supporting fact names sentence 3 of 'Blue Mill', which has 3, counted from 0"),
        ({"supporting": (("Blue Mill", -1),)},
         "a supporting fact names sentence -1 of 'Blue Mill', which has 3, counted from 0"),
    ],
)  # fmt: skip
def test_what_is_refused(changes, problem):
    complaint = f"dev.json: question 'q1': {problem}"
    with pytest.raises(ValueError, match=f"^{re.escape(complaint)}$"):
        check_question(replace(QUESTION, **changes), where="dev.json")


def test_a_question_without_id_is_refused():
    with pytest.raises(ValueError, match=r"^here: question '': it has no id; give each its own$"):
        check_question(replace(QUESTION, id=""), where="here")


PARAGRAPHS = (
    Paragraph(title="Mark Twain", sentences=("Mark wrote it. ", "The Market knew Mark, or mark.")),
    Paragraph(title="Hannibal", sentences=("Twain was here; MARK was not.",)),
    Paragraph(title="A", sentences=("remarkable remarks",)),
)


def found(answer: str | None, *gold: int, paragraphs: tuple[Paragraph, ...] = PARAGRAPHS) -> list[tuple]:
    """The places, with the words that stand there in place of their end."""
    places = answer_occurrences(answer, paragraphs, gold=gold)
    text = {"title": lambda number: paragraphs[number].title, "body": lambda number: paragraphs[number].text}
    return [(number, part, start, text[part](number)[start:end]) for number, part, start, end in places]


def body(text: str) -> tuple[Paragraph, ...]:
    return (Paragraph(title="T", sentences=(text,)),)


def test_places_by_hand():
    assert answer_occurrences("Mark", PARAGRAPHS, gold=(0, 1)) == [
        (0, "title", 0, 4),
        (0, "body", 0, 4),
        (0, "body", 31, 35),
    ]


def test_only_paragraphs_that_are_gold_and_in_their_order():
    assert found("Twain", 0) == [(0, "title", 5, "Twain")]
    assert found("Twain", 1) == [(1, "body", 0, "Twain")]
    assert found("Twain", 1, 0) == [(1, "body", 0, "Twain"), (0, "title", 5, "Twain")]
    assert found("Twain") == []


@pytest.mark.parametrize(
    ("answer", "gold", "places"),
    [
        ("mark", (0,), [(0, "body", 40, "mark")]),  # whole, in its own case
        ("market", (0,), [(0, "body", 19, "Market")]),  # whole, in another
        ("mark", (1, 2), [(1, "body", 16, "MARK")]),  # which goes before parts of words, wherever they are
        ("mark", (2,), [(2, "body", 2, "mark"), (2, "body", 13, "mark")]),  # a part, in its own case
        ("arket", (0,), [(0, "body", 20, "arket")]),
        ("WAIN", (0, 1), [(0, "title", 6, "wain"), (1, "body", 1, "wain")]),  # a part, in another
        ("Samuel", (0, 1, 2), []),
    ],
)
def test_the_strictest_kind_that_there_is(answer, gold, places):
    assert found(answer, *gold) == places


def test_over_the_end_of_a_sentence_and_any_white_space():
    assert found("wrote it. The", 0) == [(0, "body", 5, "wrote it. The")]
    assert found(" Mark \n Twain ", 0) == [(0, "title", 0, "Mark Twain")]
    there = body("to  Žofie\u00a0Ň, to žofie ň")
    assert found("Žofie Ň", 0, paragraphs=there) == [(0, "body", 4, "Žofie\u00a0Ň")]
    assert found("was.here", 1) == []


def test_occurrences_that_overlap():
    there = body("the fire the fire the.")
    assert [start for _, _, start, _ in found("the fire the", 0, paragraphs=there)] == [0, 9]


@pytest.mark.parametrize("answer", ["$1,000", "(or 1.000)", "U.S.", "[s]", "a+b", "1.000"])
def test_signs_are_taken_as_they_are(answer):
    there = body("It cost $1,000 (or 1.000) in the U.S. of [s] a+b.")
    assert [text for *_, text in found(answer, 0, paragraphs=there)] == [answer]


@pytest.mark.parametrize("answer", [None, "", " ", "yes", "no"])
def test_what_no_words_of_the_paragraphs_answer(answer):
    assert found(answer, 0, paragraphs=(Paragraph(title="no", sentences=("yes, no ",)),)) == []


def test_yes_in_another_case_is_a_word():
    assert found("Yes", 0, paragraphs=body("Yes is a band.")) == [(0, "body", 0, "Yes")]
