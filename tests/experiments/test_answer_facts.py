"""What is told before a run of notebook 09 of questions, on questions written by hand."""

from cdlm_lab.data.candidates import clean_sets, counts_of
from cdlm_lab.data.records import CandidateSet
from cdlm_lab.experiments.answer_selection import (
    AnswerModels,
    AnswerRun,
    AnswerSettings,
    AnswerSplit,
    question_facts,
)

LONG = "word " * 40
SETS = [
    CandidateSet(id="a", question="Who?", candidates=("one", "two", LONG), correct=(True, False, False)),
    CandidateSet(id="b", question="Who?", candidates=("one",), correct=(False,)),
    CandidateSet(id="c", question="Who?", candidates=("one", "two"), correct=(True, True)),
    CandidateSet(id="d", question="Who?", candidates=("one",), correct=(True,)),
]


def test_questions_that_were_left_out_and_candidates_that_are_cut(tmp_path):
    every = AnswerSplit(sets=tuple(SETS), read=counts_of(SETS), corpus="wikiqa", checksum="x")
    clean = AnswerSplit(sets=tuple(clean_sets(SETS)), read=counts_of(SETS), corpus="wikiqa", checksum="x")
    models = AnswerModels(systems="pairwise joint-ie", sentence_length=32, pairwise_length=100)
    run = AnswerRun(
        settings=AnswerSettings(models=models),
        splits={"train": every, "dev": clean, "test": clean},
        folder=tmp_path,
    )
    told = dict(question_facts(run))
    assert told["train"] == "4 questions with 7 candidates, 4 of them right"
    assert told["dev"] == (
        "1 questions with 3 candidates, 1 of them right; of the 4 that are there, 1 have no right candidate "
        "and 2 no wrong one"
    )
    assert told["dev: candidates that lose their end"] == "0% (pairwise), 33% (joint IE_k)"
    assert told["train: candidates that lose their end"] == "0% (pairwise), 14% (joint IE_k)"
