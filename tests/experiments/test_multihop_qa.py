"""Multihop questions: a run on a handful of them, its report by hand, questions of files, what is refused."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tagging_runs import score_of

from cdlm_lab.data.questions import MultihopQuestion, Paragraph, hotpot_record
from cdlm_lab.experiments import multihop_qa, runs
from cdlm_lab.experiments.multihop_qa import (
    MultihopRun,
    Settings,
    answers_in_place,
    cluster_of,
    evaluate,
    example,
    kind_table,
    own_question_in_place,
    predict,
    prepare,
    preview,
    question_facts,
    read_questions,
    report,
    score_table,
    train,
    training_facts,
)
from cdlm_lab.experiments.systems.answering import QuestionPredictions
from cdlm_lab.experiments.views.questions import (
    EXAMPLE_DOCUMENTS,
    EXAMPLE_QUESTION,
    answer_own,
    answered_questions,
    own_texts,
)
from cdlm_lab.metrics.question_answering import HOTPOTQA_SCORES, hotpotqa
from cdlm_lab.models.precision import precision_told
from cdlm_lab.models.question_answering import DecodedAnswer
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import Report, open_run, read_report
from cdlm_lab.widgets.packed import packed_example_html

SMALL = {
    "train_stories": 4,
    "held_out_stories": 2,
    "train_questions": 8,
    "passage_sentences": 1,
    "seeds": 2,
    "epochs": 1,
    "batch_size": 4,
    "micro_batch_size": 2,
    "max_length": 384,
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory):
    run = prepare(Settings(run_folder=str(tmp_path_factory.mktemp("runs") / "qa"), **SMALL))
    train(run)
    predictions = predict(run)
    report(run, evaluate(run, predictions))
    return run, predictions


def training_of(run: MultihopRun, name: str, seed: int):
    return next(training for training in run.trainings if training.key == (name, seed))


def test_each_encoder_answers_every_question_with_each_seed(finished) -> None:
    run, predictions = finished
    assert list(predictions) == [("longformer", 0), ("longformer", 1), ("cdlm", 0), ("cdlm", 1)]
    for of_split in predictions.values():
        for split, one in of_split.items():
            official, ids = one.official(), {question.id for question in run.questions[split]}
            assert official["answer"].keys() == official["sp"].keys() == ids
            assert all(official["answer"].values())
            assert all(official["sp"].values())


def test_what_is_finished_is_not_trained_again(finished, monkeypatch: pytest.MonkeyPatch) -> None:
    run, predictions = finished
    monkeypatch.setattr(runs, "fine_tune", None)  # calling it would fail
    train(run)
    assert predict(run)["cdlm", 1]["test"].official() == predictions["cdlm", 1]["test"].official()
    run.files(training_of(run, "cdlm", 1))["test"].unlink()
    train(run)
    assert predict(run)["cdlm", 1]["test"].answers == predictions["cdlm", 1]["test"].answers
    with pytest.raises(ValueError, match="is of other questions"):
        run.read_predictions(run.files(training_of(run, "cdlm", 0))["dev"], "test")


def test_the_report_has_the_official_scores_and_their_files(finished) -> None:
    run, _ = finished
    written = read_report(run.folder)
    gold = [hotpot_record(question) for question in run.questions["test"]]
    folders = [run.folder_of(training_of(run, "cdlm", seed)) for seed in (0, 1)]
    each = [hotpotqa(gold, json.loads((one / "test_predictions.json").read_text())) for one in folders]
    for measure in ("em", "sp_f1", "joint_f1"):
        row = score_of(written, "cdlm", "test", measure)
        assert row.value == pytest.approx(sum(one[measure] for one in each) / 2)
        assert row.low <= row.value <= row.high
        assert row.seeds == 2
    tested = {(row["a"], row["b"], row["measure"]) for row in written.tables["comparisons"]}
    assert tested == {("cdlm", "longformer", measure) for measure in ("f1", "sp_f1", "joint_f1")}
    kinds = [row for row in written.tables["kinds"] if row["system"] == "cdlm" and row["split"] == "test"]
    counted = {row["kind"]: row["questions"] for row in kinds}
    assert counted["bridge"] + counted["comparison"] == len(run.questions["test"])
    weighted = sum(row["f1"] * row["questions"] for row in kinds if row["kind"] != "yes or no")
    assert weighted / len(run.questions["test"]) == pytest.approx(
        score_of(written, "cdlm", "test", "f1").value
    )


def test_tables(finished) -> None:
    run, _ = finished
    written = read_report(run.folder)
    for split in ("dev", "test"):
        table = score_table(written, split=split).html()
        assert "Longformer" in table
        assert "CDLM" in table
    kinds = kind_table(written, "dev").data
    assert "bridge" in kinds
    assert "comparison" in kinds


def test_what_a_person_reads_before_the_start(finished) -> None:
    run, _ = finished
    listed = dict(question_facts(run) + training_facts(run))
    assert listed["precision of training"] == precision_told("auto")
    assert listed["train"].startswith("8 questions (")
    assert listed["train: does not fit"] == "nothing"
    assert "2 updates with 4 questions, about" in listed["training"]
    assert "times 4 (encoders and seeds)" in listed["training"]
    assert "8 questions (" in preview(run).data
    short = replace(run, settings=replace(run.settings, max_length=160))
    assert "questions that lose text" in dict(question_facts(short))["train: does not fit"]


def test_answers_are_read_in_place_and_on_a_page(finished) -> None:
    run, predictions = finished
    reads = answered_questions(predictions["cdlm", 0]["dev"])
    of_measure = hotpotqa(
        [hotpot_record(question) for question in run.questions["dev"]],
        predictions["cdlm", 0]["dev"].official(),
    )
    assert sum(read.answer_em for read in reads) / len(reads) == pytest.approx(of_measure["em"])
    assert sum(read.support_f1 for read in reads) / len(reads) == pytest.approx(of_measure["sp_f1"])
    assert reads[0].gold_answer == run.questions["dev"][0].answer
    assert answers_in_place(run, predictions).children
    page = (run.folder / "answers.html").read_text()
    assert all(question.text.split("?")[0][:20] in page for question in run.questions["dev"])


def test_a_question_of_ones_own(finished, tmp_path: Path) -> None:
    run, _ = finished
    assert own_texts(run.settings) == (EXAMPLE_QUESTION, EXAMPLE_DOCUMENTS)
    assert own_question_in_place(run).children
    assert "Kryla Truldei" in (run.folder / "own_question.html").read_text()
    assert "&lt;b&gt;" in answer_own(run, "Where?", [("<b>", "A town."), ("Other", "A place.")])
    with pytest.raises(ValueError, match="two paragraphs are called 'One'"):
        answer_own(run, "Where?", [("One", "A town."), ("One", "A place.")])
    file = tmp_path / "documents.txt"
    file.write_text("== One ==\nA town.")
    own = replace(run.settings, own_question="Where?", own_documents=str(file))
    assert own_texts(own) == ("Where?", "== One ==\nA town.")


def write_hotpot_questions(path: Path, questions: Iterable[MultihopQuestion]) -> None:
    path.write_text(json.dumps(list(map(hotpot_record, questions))))


def test_questions_of_files_in_the_official_format(finished, tmp_path: Path) -> None:
    run, _ = finished
    for split in ("train", "dev", "test"):
        write_hotpot_questions(tmp_path / f"{split}.json", run.questions[split])
    read = read_questions(Settings(corpus=str(tmp_path)))
    assert read == run.questions
    drawn = read_questions(Settings(corpus=str(tmp_path), train_questions=3, held_out_questions=1))
    assert {split: len(questions) for split, questions in drawn.items()} == {"train": 3, "dev": 1, "test": 1}
    assert set(drawn["train"]) < set(run.questions["train"])
    unknown = {question.id for question in run.questions["train"][:1]}
    records = [hotpot_record(one) for one in run.questions["train"]]
    records[0]["supporting_facts"] = [["Nowhere", 0]]
    (tmp_path / "train.json").write_text(json.dumps(records))
    known = read_questions(Settings(corpus=str(tmp_path)))
    assert {one.id for one in known["train"] if one.unknown_supporting} == unknown
    listed = dict(question_facts(replace(run, questions=known)))
    assert listed["train: supporting facts"].startswith("1 in 1 questions name no sentence")
    assert "dev: supporting facts" not in listed
    records = json.loads((tmp_path / "dev.json").read_text())
    del records[0]["answer"]
    (tmp_path / "dev.json").write_text(json.dumps(records))
    with pytest.raises(ParameterError, match="has no answer or no supporting facts"):
        read_questions(Settings(corpus=str(tmp_path)))
    (tmp_path / "test.json").unlink()
    with pytest.raises(ParameterError, match=r"there is no test\.json; write storyworld, or a folder"):
        read_questions(Settings(corpus=str(tmp_path)))


@pytest.fixture
def folder(finished, tmp_path: Path) -> Path:
    """Questions in the official format, without dev.json; those of test are nowhere else."""
    run, _ = finished
    write_hotpot_questions(tmp_path / "train.json", run.questions["train"])
    write_hotpot_questions(tmp_path / "test.json", run.questions["test"])
    return tmp_path


def test_dev_is_drawn_from_train_by_question_and_seed(finished, folder: Path) -> None:
    run, _ = finished
    settings = Settings(corpus=str(folder), dev_from_train=3)
    read = read_questions(settings)
    assert [len(read[split]) for split in ("train", "dev", "test")] == [5, 3, len(run.questions["test"])]
    assert list(read) == ["train", "dev", "test"]
    assert set(read["train"]) | set(read["dev"]) == set(run.questions["train"])
    assert read == read_questions(settings)
    seeds = [{*read_questions(replace(settings, data_seed=seed))["dev"]} for seed in range(4)]
    assert any(one != seeds[0] for one in seeds[1:])
    fewer = read_questions(replace(settings, train_questions=2))
    assert fewer["dev"] == read["dev"]
    assert set(fewer["train"]) < set(read["train"]), "what is drawn of train is none of dev"


def test_a_pass_is_never_chosen_on_what_is_reported(finished, folder: Path) -> None:
    run, _ = finished
    settings = Settings(corpus=str(folder))
    with pytest.raises(ParameterError, match=r"no dev\.json.*; or take dev from train with dev_from_train$"):
        read_questions(settings)
    write_hotpot_questions(folder / "dev.json", run.questions["test"])
    count, first = len(run.questions["test"]), min(one.id for one in run.questions["test"])
    with pytest.raises(
        ParameterError, match=rf"dev and test share {count} questions, as {first}: .* dev_from_train"
    ):
        read_questions(settings)
    assert read_questions(replace(settings, dev_from_train=2))["test"] == run.questions["test"]
    write_hotpot_questions(folder / "dev.json", run.questions["dev"])
    write_hotpot_questions(folder / "test.json", (*run.questions["test"], run.questions["train"][0]))
    with pytest.raises(ParameterError, match="train and test share 1 questions"):
        read_questions(settings)
    with pytest.raises(ParameterError, match="dev_from_train is 8; train has 8 questions in all"):
        read_questions(replace(settings, dev_from_train=8))


def test_questions_of_one_story_are_one_cluster(finished) -> None:
    run, _ = finished
    assert len(set(map(cluster_of, run.questions["dev"]))) == 2
    assert cluster_of(replace(run.questions["dev"][0], id="5a8b57f2")) == "5a8b57f2"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"variants": "longformer cdml"}, "variants names 'cdml'; choose among longformer"),
        ({"variants": " "}, "variants names nothing"),
        ({"support": "all"}, "support is 'all'; it must be one of 'threshold', 'two_paragraphs'"),
        ({"seeds": 0}, "seeds is 0"),
        ({"seen": "one"}, "seen is 'one'; it must be one of 'both documents', 'one document'"),
        ({"paragraphs": 1}, "paragraphs is 1"),
        ({"train_questions": -1}, "train_questions is -1; it must be at least 0"),
        ({"dev_from_train": -1}, "dev_from_train is -1"),
        ({"dev_from_train": 2}, "dev_from_train is of a folder"),
        ({"shown_model": "cdml"}, "shown_model is 'cdml'; choose one of longformer, cdlm"),
        ({"own_question": "Where?"}, 'own_documents is ""; give a question and a file'),
        ({"parallel": "many"}, "parallel is 'many'"),
    ],
)
def test_values_that_cannot_be(values: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Settings(**values)


def test_encoders_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="encoders is 'nowhere', where longformer is not"):
        prepare(Settings(run_folder=str(tmp_path / "run"), **SMALL, encoders="nowhere"))


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


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("questions")
    settings = Settings(seeds=2, run_folder=str(folder))
    questions = dict.fromkeys(("train", "dev", "test"), QUESTIONS)
    opened = open_run(folder, name="x", parameters={})
    run = MultihopRun(settings=settings, questions=questions, opened=opened)
    predictions = {key: {"dev": answers((True,) * 3), "test": answers(right)} for key, right in RIGHT.items()}
    for training in run.trainings:
        run.folder_of(training).mkdir(parents=True)
    return report(run, evaluate(run, predictions))


def test_scores_are_means_over_seeds_with_intervals_over_stories(by_hand: Report) -> None:
    score = score_of(by_hand, "cdlm", "test", "em")
    assert score.value == pytest.approx(2 / 3)
    assert (score.deviation, score.n, score.clusters) == (0, 3, 2)
    # the first story has 1 + 1/2 in 2 questions, the second 1/2 in 1
    assert (score.low, score.high) == (1 / 2, 3 / 4)
    longformer = score_of(by_hand, "longformer", "test", "em")
    assert longformer.value == pytest.approx((1 / 3 + 0) / 2)
    assert longformer.deviation == pytest.approx(np.std([1 / 3, 0], ddof=1))
    assert (longformer.low, longformer.high, longformer.seeds) == (0, 1 / 4, 2)
    # one of two sentences of the support is right
    assert score_of(by_hand, "cdlm", "dev", "sp_prec").value == 1 / 2
    assert score_of(by_hand, "cdlm", "test", "joint_f1").value == pytest.approx(2 / 3 * 2 / 3)
    assert {row.key for row in by_hand.rows} == {
        (name, split, "", measure, seed)
        for name in ("longformer", "cdlm")
        for split in ("dev", "test")
        for measure in HOTPOTQA_SCORES
        for seed in (None, 0, 1)
    }
    for (name, seed), right in RIGHT.items():
        assert score_of(by_hand, name, "test", "em", seed).value == pytest.approx(sum(right) / 3)
    assert by_hand.data["clusters"] == {"train": 2, "dev": 2, "test": 2}
    assert by_hand.data["precision"] == precision_told("auto")


def test_the_tables_are_of_the_same_scores(by_hand: Report) -> None:
    kinds = {
        row["kind"]: (row["questions"], row["em"])
        for row in by_hand.tables["kinds"]
        if (row["system"], row["split"]) == ("cdlm", "test")
    }
    assert kinds == {"bridge": (2, 3 / 4), "comparison": (1, 1 / 2), "yes or no": (1, 1 / 2)}
    tested = {row["measure"]: row for row in by_hand.tables["comparisons"]}
    assert list(tested) == ["f1", "sp_f1", "joint_f1"]
    assert tested["f1"]["difference"] == pytest.approx(2 / 3 - 1 / 6)
    assert (tested["sp_f1"]["difference"], tested["sp_f1"]["p_holm"]) == (0, 1)
    assert (tested["f1"]["a"], tested["f1"]["b"], tested["f1"]["clusters"]) == ("cdlm", "longformer", 2)
    row = score_of(by_hand, "cdlm", "test", "f1")
    assert (row.p, row.against) == (tested["f1"]["p_holm"], "longformer")


# ---- before the start


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> MultihopRun:
    return MultihopRun.read(Settings(run_folder=str(tmp_path_factory.mktemp("run")), **SMALL))


def test_of_many_questions_the_first_are_read(fresh: MultihopRun, monkeypatch) -> None:
    assert multihop_qa.LOOKED_AT == 500
    monkeypatch.setattr(multihop_qa, "LOOKED_AT", 8)
    assert dict(question_facts(fresh))["train: does not fit"] == "nothing", "there are eight"
    monkeypatch.setattr(multihop_qa, "LOOKED_AT", 3)
    listed = dict(question_facts(fresh))
    assert listed["train: does not fit"] == "of the first 3: nothing"
    assert listed["train"].startswith("8 questions ("), "these are all"
    short = replace(fresh, settings=replace(fresh.settings, max_length=160))
    lost = dict(question_facts(short))["train: does not fit"]
    assert lost.startswith("of the first 3: questions that lose text: 3; lost are ")


def test_before_the_start_one_model_is_loaded(fresh: MultihopRun, monkeypatch) -> None:
    loaded, load = [], multihop_qa.load_question_answerer
    spy = lambda *given, **named: loaded.append(1) or load(*given, **named)  # noqa: E731
    monkeypatch.setattr(multihop_qa, "load_question_answerer", spy)
    run = replace(fresh)
    preview(run)
    example(run)
    assert len(loaded) == 1
    assert all(one.grad is None for one in run.untrained.model.parameters()), "gradients take memory"
    assert run.untrained.model.device.type == "cpu"
    assert run.answerer(training_of(run, "cdlm", 0), trained=False).model is not run.untrained.model


def test_the_example_shows_what_is_global_and_what_is_cut(finished) -> None:
    run, _ = finished
    shown = example(run)
    question = run.questions["train"][0]
    assert [one.title for one in shown.documents] == [question.text, *(p.title for p in question.paragraphs)]
    signs = [token for token, is_global in zip(shown.tokens, shown.global_, strict=True) if is_global]
    assert signs.count("<t>") == len(question.paragraphs) == 4
    assert signs.count("[s]") == sum(len(one.sentences) for one in question.paragraphs)
    assert len(signs) == 3 + shown.documents[0].kept + 4 + signs.count(
        "[s]"
    )  # [CLS] [q] [/q], and the question
    assert not any(one.cut for one in shown.documents)
    short = replace(run, settings=replace(run.settings, max_length=160))
    cut = example(short)
    assert sum(one.kept + one.cut for one in cut.documents) == sum(one.kept for one in shown.documents)
    assert any(one.cut for one in cut.documents[1:])
    assert not cut.documents[0].cut
    html = packed_example_html(cut)
    assert "masked" not in html
    assert "share of the room" in html
