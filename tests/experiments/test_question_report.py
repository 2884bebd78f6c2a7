"""The report of notebook 06 by hand, and what is read before the start."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.data.questions import MultihopQuestion, Paragraph
from cdlm_lab.experiments import multihop_qa
from cdlm_lab.experiments import multihop_qa as question_report
from cdlm_lab.experiments.multihop_qa import (
    AnswererSettings,
    MultihopRun,
    MultihopSettings,
    QuestionCorpus,
    QuestionPredictions,
    facts,
    prepare_multihop,
    question_facts,
    question_preview,
    write_question_report,
)
from cdlm_lab.metrics.question_answering import HOTPOTQA_SCORES
from cdlm_lab.models.precision import precision_told
from cdlm_lab.models.question_answering import DecodedAnswer
from cdlm_lab.report import Report, open_run

# Two stories: the first asks a bridge and a comparison question, the second a bridge question.
KINDS = {"storyworld-x-1-q0": "bridge", "storyworld-x-1-q1": "comparison", "storyworld-x-2-q0": "bridge"}
QUESTIONS = tuple(
    MultihopQuestion(
        id=name,
        text="Which?",
        paragraphs=(Paragraph(title="One", sentences=("A ship. ", "It sank.")),),
        answer="yes" if kind == "comparison" else "ship",
        supporting=(("One", 0),),
        kind=kind,
    )
    for name, kind in KINDS.items()
)
# Which of the three questions each training answers rightly on test.
RIGHT = {
    ("longformer", 0): (False, True, False),
    ("longformer", 1): (False, False, False),
    ("cdlm", 0): (True, True, False),
    ("cdlm", 1): (True, False, True),
}


def answers(right: tuple[bool, ...]) -> QuestionPredictions:
    """Of QUESTIONS; the support is always the right sentence and a wrong one."""
    return QuestionPredictions(
        questions=QUESTIONS,
        answers=[
            DecodedAnswer(
                text=question.answer if is_right else "harbour",
                type="span",
                type_probabilities={},
                place=None,
                n_best=(),
                sentence_probabilities={},
                paragraph_probabilities=(),
                supporting=((0, 0), (0, 1)),
            )
            for question, is_right in zip(QUESTIONS, right, strict=True)
        ],
    )


def report_in(folder: Path) -> Report:
    settings = MultihopSettings(answerer=AnswererSettings(seeds=2))
    run = MultihopRun(
        settings=settings, questions=dict.fromkeys(("train", "dev", "test"), QUESTIONS), folder=folder
    )
    found = {key: {"dev": answers((True,) * 3), "test": answers(right)} for key, right in RIGHT.items()}
    for key in found:
        run.folder_of(*key).mkdir(parents=True)
    return write_question_report(run, open_run(folder / "run", name="x", parameters={}), found)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_in(tmp_path_factory.mktemp("questions"))


def test_scores_are_means_over_seeds_with_intervals_over_stories(report: Report) -> None:
    score = report.scores["cdlm/test/em"]
    assert score["value"] == pytest.approx(2 / 3)
    assert score["deviation"] == 0
    # the first story has 1 + 1/2 in 2 questions, the second 1/2 in 1
    assert (score["low"], score["high"]) == (1 / 2, 3 / 4)
    longformer = report.scores["longformer/test/em"]
    assert longformer["value"] == pytest.approx((1 / 3 + 0) / 2)
    assert longformer["deviation"] == pytest.approx(np.std([1 / 3, 0], ddof=1))
    assert (longformer["low"], longformer["high"], longformer["seeds"]) == (0, 1 / 4, 2)
    # one of two sentences of the support is right
    assert report.scores["cdlm/dev/sp_prec"]["value"] == 1 / 2
    assert report.scores["cdlm/test/joint_f1"]["value"] == pytest.approx(2 / 3 * 2 / 3)
    assert set(report.scores) == {
        f"{name}/{split}/{measure}"
        for name in ("longformer", "cdlm")
        for split in ("dev", "test")
        for measure in HOTPOTQA_SCORES
    }
    assert report.data["clusters"] == {"train": 2, "dev": 2, "test": 2}
    assert report.data["precision"] == precision_told("auto")


def test_the_tables_are_of_the_same_scores(report: Report) -> None:
    kinds = {
        row["kind"]: (row["questions"], row["em"])
        for row in report.tables["kinds"]
        if (row["system"], row["split"]) == ("cdlm", "test")
    }
    assert kinds == {"bridge": (2, 3 / 4), "comparison": (1, 1 / 2), "yes or no": (1, 1 / 2)}
    runs = {
        (row["system"], row["seed"]): row["em"] for row in report.tables["runs"] if row["split"] == "test"
    }
    assert runs == {key: pytest.approx(sum(right) / 3) for key, right in RIGHT.items()}
    tested = {row["measure"]: row for row in report.tables["comparisons"]}
    assert list(tested) == ["f1", "sp_f1", "joint_f1"]
    assert tested["f1"]["difference"] == pytest.approx(2 / 3 - 1 / 6)
    assert (tested["sp_f1"]["difference"], tested["sp_f1"]["p_holm"]) == (0, 1)
    assert (tested["f1"]["a"], tested["f1"]["b"], tested["f1"]["clusters"]) == ("cdlm", "longformer", 2)


def test_each_training_is_scored_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scored, score = [], question_report.scores_by_question
    monkeypatch.setattr(
        question_report, "scores_by_question", lambda *given: scored.append(given) or score(*given)
    )
    report_in(tmp_path)
    assert len(scored) == 4 * 2


# ---- before the start


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> MultihopRun:
    settings = MultihopSettings(
        corpus=QuestionCorpus(train_stories=4, held_out_stories=2, train_questions=8, passage_sentences=1),
        answerer=AnswererSettings(batch_size=4, micro_batch_size=2, max_length=384),
    )
    return prepare_multihop(settings, tmp_path_factory.mktemp("run"))


def test_of_many_questions_the_first_are_read(run: MultihopRun, monkeypatch: pytest.MonkeyPatch) -> None:
    assert question_report.LOOKED_AT == 500
    monkeypatch.setattr(question_report, "LOOKED_AT", 8)
    assert dict(question_facts(run))["train: does not fit"] == "nothing", "there are eight"
    monkeypatch.setattr(question_report, "LOOKED_AT", 3)
    told = dict(question_facts(run))
    assert told["train: does not fit"] == "of the first 3: nothing"
    assert told["train"].startswith("8 questions ("), "these are all"
    short = replace(run, settings=replace(run.settings, answerer=AnswererSettings(max_length=160)))
    assert dict(question_facts(short))["train: does not fit"].startswith(
        "of the first 3: questions that lose text: 3; lost are "
    )


def test_before_the_start_one_model_is_loaded(run: MultihopRun, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, load = [], multihop_qa.load_question_answerer
    monkeypatch.setattr(
        multihop_qa,
        "load_question_answerer",
        lambda *given, **named: loaded.append(1) or load(*given, **named),
    )
    fresh = replace(run)
    facts(fresh)
    question_preview(fresh)
    assert len(loaded) == 1
    assert all(one.grad is None for one in fresh.untrained.model.parameters()), "gradients take memory"
    assert fresh.untrained.model.device.type == "cpu"
    assert fresh.answerer("cdlm", 0, trained=False).model is not fresh.untrained.model
