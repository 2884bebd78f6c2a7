"""Notebook 06's experiment on a handful of questions: trained, answered, scored, read, resumed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cdlm_lab.data.questions import hotpot_record, read_predictions, write_hotpot_questions
from cdlm_lab.experiments import multihop_qa
from cdlm_lab.experiments.multihop_qa import (
    EXAMPLE_DOCUMENTS,
    EXAMPLE_QUESTION,
    PARAMETERS,
    AnswererSettings,
    MultihopSettings,
    QuestionCorpus,
    QuestionPredictions,
    answer_questions,
    answers_in_place,
    cluster_of,
    facts,
    kind_rows,
    own_answer,
    own_question_in_place,
    own_texts,
    prepare_multihop,
    question_preview,
    question_table,
    read_questions,
    read_questions_of,
    write_question_report,
)
from cdlm_lab.metrics.question_answering import hotpotqa
from cdlm_lab.models.precision import precision_told
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import open_run, read_report
from cdlm_lab.widgets.packed import packed_example_html

SMALL = MultihopSettings(
    corpus=QuestionCorpus(train_stories=4, held_out_stories=2, train_questions=8, passage_sentences=1),
    answerer=AnswererSettings(
        seeds=2, epochs=1, batch_size=4, micro_batch_size=2, max_length=384, learning_rate=0.001
    ),
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("runs") / "qa"
    opened = open_run(folder, name="multihop question answering", parameters=SMALL.parameters)
    run = prepare_multihop(SMALL, opened.folder)
    found = answer_questions(run)
    write_question_report(run, opened, found)
    return run, found


def test_each_encoder_answers_every_question_with_each_seed(finished) -> None:
    run, found = finished
    assert list(found) == [("longformer", 0), ("longformer", 1), ("cdlm", 0), ("cdlm", 1)]
    for of_split in found.values():
        for split, one in of_split.items():
            assert set(one.texts()) == {question.id for question in run.questions[split]}
            assert all(one.texts().values())
            assert all(one.supporting().values())


def test_what_is_finished_is_not_trained_again(finished, monkeypatch: pytest.MonkeyPatch) -> None:
    run, found = finished
    monkeypatch.setattr(multihop_qa, "fine_tune", None)  # calling it would fail
    again = answer_questions(run)
    assert again["cdlm", 1]["test"].official() == found["cdlm", 1]["test"].official()
    run.predictions_of("cdlm", 1, "test").rename(run.folder / "aside")
    assert answer_questions(run)["cdlm", 1]["test"].answers == found["cdlm", 1]["test"].answers
    (run.folder / "aside").unlink()


def test_answers_come_back_from_disk_and_not_for_other_questions(finished) -> None:
    run, found = finished
    file = run.predictions_of("cdlm", 0, "dev")
    (first, *_), *_ = (found["cdlm", 0]["dev"].answers,)
    again = QuestionPredictions.load(file, questions=run.questions["dev"])
    assert again.answers[0] == first
    with pytest.raises(ValueError, match="is of other questions"):
        QuestionPredictions.load(file, questions=run.questions["test"])


def test_the_report_has_the_official_scores_and_their_files(finished) -> None:
    run, _ = finished
    report = read_report(run.folder)
    gold = [hotpot_record(question) for question in run.questions["test"]]
    each = [
        hotpotqa(gold, read_predictions(run.folder_of("cdlm", seed) / "test_predictions.json"))
        for seed in (0, 1)
    ]
    for measure in ("em", "sp_f1", "joint_f1"):
        score = report.scores[f"cdlm/test/{measure}"]
        assert score["value"] == pytest.approx(sum(one[measure] for one in each) / 2)
        assert score["low"] <= score["value"] <= score["high"]
        assert score["seeds"] == 2
    tested = {(row["a"], row["b"], row["measure"]) for row in report.tables["comparisons"]}
    assert tested == {("cdlm", "longformer", measure) for measure in ("f1", "sp_f1", "joint_f1")}
    kinds = [row for row in report.tables["kinds"] if row["system"] == "cdlm" and row["split"] == "test"]
    counted = {row["kind"]: row["questions"] for row in kinds}
    assert counted["bridge"] + counted["comparison"] == len(run.questions["test"])
    weighted = sum(row["f1"] * row["questions"] for row in kinds if row["kind"] != "yes or no")
    assert weighted / len(run.questions["test"]) == pytest.approx(report.scores["cdlm/test/f1"]["value"])


def test_rows_of_the_tables(finished) -> None:
    run, _ = finished
    report = read_report(run.folder)
    table = question_table(report)
    assert [row[0].text for row in table.rows] == ["Longformer", "CDLM"]
    assert table.rows[1][2].text == f"{100 * report.scores['cdlm/test/f1']['value']:.1f}"
    assert {row[1] for row in kind_rows(report, "dev")} >= {"bridge", "comparison"}


def test_what_a_person_reads_before_the_start(finished) -> None:
    run, _ = finished
    told = dict(facts(run))
    assert told["precision of training"] == precision_told("auto")
    assert told["train"].startswith("8 questions (")
    assert told["train: does not fit"] == "nothing"
    assert "2 updates with 4 questions, about" in told["training"]
    assert "times 4 (encoders and seeds)" in told["training"]
    short = replace(run, settings=replace(SMALL, answerer=replace(SMALL.answerer, max_length=160)))
    assert "questions that lose text" in dict(facts(short))["train: does not fit"]


def test_answers_are_read_in_place_and_on_a_page(finished, tmp_path: Path) -> None:
    run, found = finished
    reads = read_questions_of(found["cdlm", 0]["dev"])
    of_measure = hotpotqa(
        [hotpot_record(question) for question in run.questions["dev"]], found["cdlm", 0]["dev"].official()
    )
    assert sum(read.answer_em for read in reads) / len(reads) == pytest.approx(of_measure["em"])
    assert sum(read.support_f1 for read in reads) / len(reads) == pytest.approx(of_measure["sp_f1"])
    assert reads[0].gold_answer == run.questions["dev"][0].answer
    answers_in_place(found["cdlm", 0]["dev"], file=tmp_path / "answers.html")
    page = (tmp_path / "answers.html").read_text()
    assert all(question.text.split("?")[0][:20] in page for question in run.questions["dev"])


def test_a_question_of_ones_own(finished, tmp_path: Path) -> None:
    run, _ = finished
    assert own_texts("", "") == (EXAMPLE_QUESTION, EXAMPLE_DOCUMENTS)
    box = own_question_in_place(run, "cdlm", EXAMPLE_QUESTION, EXAMPLE_DOCUMENTS)
    assert "Kryla Truldei" in (run.folder / "own_question.html").read_text()
    assert box.children
    answer = own_answer(run, "cdlm")
    assert "&lt;b&gt;" in answer("Where?", [("<b>", "A town."), ("Other", "A place.")])
    with pytest.raises(ValueError, match="two paragraphs are called 'One'"):
        answer("Where?", [("One", "A town."), ("One", "A place.")])
    file = tmp_path / "documents.txt"
    file.write_text("== One ==\nA town.")
    assert own_texts("Where?", str(file)) == ("Where?", "== One ==\nA town.")
    with pytest.raises(ParameterError, match='own_documents is ""'):
        own_texts("Where?", "")


def test_questions_of_files_in_the_official_format(finished, tmp_path: Path) -> None:
    run, _ = finished
    for split in ("train", "dev", "test"):
        write_hotpot_questions(tmp_path / f"{split}.json", run.questions[split])
    read = read_questions(QuestionCorpus(corpus=str(tmp_path)))
    assert read == run.questions
    drawn = read_questions(QuestionCorpus(corpus=str(tmp_path), train_questions=3, held_out_questions=1))
    assert {split: len(questions) for split, questions in drawn.items()} == {"train": 3, "dev": 1, "test": 1}
    assert set(drawn["train"]) < set(run.questions["train"])
    unknown = {question.id for question in run.questions["train"][:1]}
    records = [hotpot_record(one) for one in run.questions["train"]]
    records[0]["supporting_facts"] = [["Nowhere", 0]]
    (tmp_path / "train.json").write_text(json.dumps(records))
    known = read_questions(QuestionCorpus(corpus=str(tmp_path)))
    assert {one.id for one in known["train"] if one.unknown_supporting} == unknown
    told = dict(facts(replace(run, questions=known)))
    assert told["train: supporting facts"].startswith("1 in 1 questions name no sentence")
    assert "dev: supporting facts" not in told
    records = json.loads((tmp_path / "dev.json").read_text())
    del records[0]["answer"]
    (tmp_path / "dev.json").write_text(json.dumps(records))
    with pytest.raises(ParameterError, match="has no answer or no supporting facts"):
        read_questions(QuestionCorpus(corpus=str(tmp_path)))
    (tmp_path / "test.json").unlink()
    with pytest.raises(ParameterError, match=r"there is no test\.json; write storyworld, or a folder"):
        read_questions(QuestionCorpus(corpus=str(tmp_path)))


@pytest.fixture
def folder(finished, tmp_path: Path) -> Path:
    """Questions in the official format, without dev.json; those of test are nowhere else."""
    run, _ = finished
    write_hotpot_questions(tmp_path / "train.json", run.questions["train"])
    write_hotpot_questions(tmp_path / "test.json", run.questions["test"])
    return tmp_path


def test_dev_is_drawn_from_train_by_question_and_seed(finished, folder: Path) -> None:
    run, _ = finished
    settings = QuestionCorpus(corpus=str(folder), dev_from_train=3)
    found = read_questions(settings)
    assert [len(found[split]) for split in ("train", "dev", "test")] == [5, 3, len(run.questions["test"])]
    assert list(found) == ["train", "dev", "test"]
    assert set(found["train"]) | set(found["dev"]) == set(run.questions["train"])
    assert found == read_questions(settings)
    seeds = [{*read_questions(replace(settings, data_seed=seed))["dev"]} for seed in range(4)]
    assert any(one != seeds[0] for one in seeds[1:])
    fewer = read_questions(replace(settings, train_questions=2))
    assert fewer["dev"] == found["dev"]
    assert set(fewer["train"]) < set(found["train"]), "what is drawn of train is none of dev"


def test_a_pass_is_never_chosen_on_what_is_reported(finished, folder: Path) -> None:
    run, _ = finished
    settings = QuestionCorpus(corpus=str(folder))
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


def test_values_that_cannot_be() -> None:
    for given, message in (
        ({"variants": "longformer cdml"}, "variants names 'cdml'; choose among longformer"),
        ({"variants": " "}, "variants names nothing"),
        ({"support": "all"}, "support is 'all'; choose one of threshold, two_paragraphs"),
        ({"seeds": 0}, "seeds is 0"),
    ):
        with pytest.raises(ParameterError, match=message):
            AnswererSettings(**given)
    for given, message in (
        ({"seen": "one"}, "seen is 'one'; choose one of both documents, one document"),
        ({"paragraphs": 1}, "paragraphs is 1"),
        ({"train_questions": -1}, "train_questions is -1; write 0 for all"),
        ({"dev_from_train": -1}, r"dev_from_train is -1; write 0 for dev\.json"),
        ({"dev_from_train": 2}, "dev_from_train is of a folder"),
    ):
        with pytest.raises(ParameterError, match=message):
            QuestionCorpus(**given)
    with pytest.raises(ParameterError, match="shown_model is 'cdml'"):
        AnswererSettings().shown("cdml")
    with pytest.raises(ParameterError, match="encoders is 'nowhere', where longformer is not"):
        prepare_multihop(replace(SMALL, answerer=replace(SMALL.answerer, encoders="nowhere")), Path("x"))


def test_parameters_are_those_of_all_parts() -> None:
    assert {"run_folder", "corpus", "seen", "variants", "support", "own_question"} <= set(PARAMETERS)


def test_the_preview_shows_what_is_global_and_what_is_cut(finished) -> None:
    run, _ = finished
    shown = question_preview(run)
    question = run.questions["train"][0]
    assert [one.title for one in shown.documents] == [question.text, *(p.title for p in question.paragraphs)]
    signs = [token for token, is_global in zip(shown.tokens, shown.global_, strict=True) if is_global]
    assert signs.count("<t>") == len(question.paragraphs) == 4
    assert signs.count("[s]") == sum(len(one.sentences) for one in question.paragraphs)
    assert len(signs) == 3 + shown.documents[0].kept + 4 + signs.count(
        "[s]"
    )  # [CLS] [q] [/q], and the question
    assert not any(one.cut for one in shown.documents)
    short = replace(run, settings=replace(SMALL, answerer=replace(SMALL.answerer, max_length=160)))
    cut = question_preview(short)
    assert sum(one.kept + one.cut for one in cut.documents) == sum(one.kept for one in shown.documents)
    assert any(one.cut for one in cut.documents[1:])
    assert not cut.documents[0].cut
    html = packed_example_html(cut)
    assert "masked" not in html
    assert "share of the room" in html
