"""HotpotQA's files: a file by hand, round trips, and every complaint."""

import gzip
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.files import DataError
from cdlm_lab.data.questions import (
    MultihopQuestion,
    Paragraph,
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
        ("Blue Mill", 3),
        ("Blue Mill", -1),
        ("blue mill", 0),
        ("Ann Lee", 2),
    )
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
