"""Sets of candidates: which are clean, what they hold, and every complaint about a question that was read."""

import gzip
from dataclasses import replace

import pytest

from cdlm_lab.data.candidates import (
    CandidateCounts,
    CandidateRow,
    ReadQuestion,
    checked_set,
    checked_sets,
    clean_sets,
    counts_of,
    in_one_file,
    is_clean,
    neighbouring_rows,
    present_file,
)
from cdlm_lab.data.records import CandidateSet

READ = ReadQuestion(
    id=" q1",
    question="Who won? ",
    line=4,
    candidates=((5, "Ann won.", "1"), (6, " It rained.", "0 "), (7, "Ann won.", "0")),
)
SOME_FILE = "q.tsv"


def made(*correct):
    texts = tuple(f"sentence {number}" for number in range(len(correct)))
    return CandidateSet(id="q", question="?", candidates=texts, correct=correct)


MIXED, ALL_RIGHT, ALL_WRONG = made(False, True, True), made(True), made(False, False)


def test_clean_is_with_a_right_and_a_wrong_candidate():
    assert [is_clean(one) for one in (MIXED, ALL_RIGHT, ALL_WRONG)] == [True, False, False]
    other = made(True, False)
    assert clean_sets(iter([ALL_WRONG, MIXED, ALL_RIGHT, other])) == [MIXED, other]


def test_counts():
    # 3 + 1 + 2 + 2 candidates, of which 2 + 1 are right.
    expected = CandidateCounts(questions=4, candidates=8, right=3, without_right=2, without_wrong=1)
    assert counts_of(iter([MIXED, ALL_RIGHT, ALL_WRONG, ALL_WRONG])) == expected
    nothing = CandidateCounts(questions=0, candidates=0, right=0, without_right=0, without_wrong=0)
    assert counts_of([]) == nothing


def test_a_set(tmp_path):
    found = checked_set(READ, files=in_one_file(tmp_path))
    assert found == CandidateSet(
        id="q1",
        question="Who won?",
        candidates=("Ann won.", "It rained.", "Ann won."),  # given twice, kept twice
        correct=(True, False, False),
    )
    third = replace(READ, candidates=((5, "a", "3"), (6, "b", "4")))
    assert checked_set(third, files=in_one_file(tmp_path), labels={"3": False, "4": True}).correct == (
        False,
        True,
    )


@pytest.mark.parametrize(
    ("change", "line", "field", "what", "remedy"),
    [
        ({"id": " "}, 4, "id", "it is empty", "fill it in"),
        ({"question": ""}, 4, "question", "it is empty", "fill it in"),
        (
            {"candidates": ()},
            4,
            "candidate",
            "question ' q1' has no candidates",
            "give it some, or leave it out",
        ),
        (
            {"candidates": ((5, "a", "1"), (6, " ", "0"))},
            6,
            "candidate",
            "it is empty",
            "fill it in, or leave it out",
        ),
        ({"candidates": ((5, "a", "1"), (6, "b", "2"))}, 6, "label", "'2' is no label", "write one of 0, 1"),
        ({"candidates": ((5, "a", ""),)}, 5, "label", "'' is no label", "write one of 0, 1"),
    ],
)
def test_complaints_name_the_file_of_the_field(tmp_path, complains, change, line, field, what, remedy):
    files = {name: tmp_path / f"{name}.txt" for name in ("id", "question", "candidate", "label")}
    with complains(files[field], line, field, what, remedy):
        checked_set(replace(READ, **change), files=files)


def test_questions_have_their_own_ids(tmp_path, complains):
    files = in_one_file(tmp_path / SOME_FILE)
    again = replace(READ, id="q1", line=9)
    sets = checked_sets([READ, replace(again, id="q2"), again], files=files)
    assert [next(sets).id, next(sets).id] == ["q1", "q2"]
    what = "'q1' is the id of line 4 already, of another question or of other rows"
    remedy = "put the rows of a question together, and give each question its own id"
    with complains(tmp_path / SOME_FILE, 9, "id", what, remedy):
        next(sets)


def test_no_questions(tmp_path, complains):
    with complains(tmp_path / SOME_FILE, 1, "file", "no questions", "add some, or leave the file out"):
        list(checked_sets([], files=in_one_file(tmp_path / SOME_FILE)))


def test_rows_that_follow_each_other_are_a_question():
    keys = [("a", "?"), ("a", "?"), ("b", "?"), ("b", "!"), ("a", "?")]
    rows = [
        CandidateRow(line=line, id=name, question=question, candidate=f"c{line}", label="0")
        for line, (name, question) in enumerate(keys, start=2)
    ]
    found = list(neighbouring_rows(rows))
    assert [(read.id, read.question, read.line) for read in found] == [
        ("a", "?", 2),
        ("b", "?", 4),
        ("b", "!", 5),
        ("a", "?", 6),
    ]
    assert found[0].candidates == ((2, "c2", "0"), (3, "c3", "0"))


def test_files_of_a_folder_plain_or_compressed(write, tmp_path):
    assert present_file(tmp_path, "a.tsv", "b.tsv") is None
    packed = write("b.tsv.gz", gzip.compress(b"x"))
    assert present_file(tmp_path, "a.tsv", "b.tsv") == packed
    plain = write("b.tsv", "x")
    assert present_file(tmp_path, "a.tsv", "b.tsv") == plain
    (tmp_path / "a.tsv").mkdir()  # no file
    assert present_file(tmp_path, "a.tsv", "b.tsv") == plain
    first = write("a.tsv.xz", b"x")
    assert present_file(tmp_path, "a.tsv", "b.tsv") == first
