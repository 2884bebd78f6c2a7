"""Multihop questions: a run on a handful of them, its report by hand, questions of files, what is refused."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch
from tagging_runs import finished_run, score_of

from cdlm_lab.data.convert.hotpotqa import hotpot_record
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import MultihopQuestion, Paragraph
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.encoders.variants import checkpoint_of
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.own import add_predictions, lines_of
from cdlm_lab.runs.report import Report, open_run, read_report
from cdlm_lab.tasks.multihop import experiment as multihop_qa
from cdlm_lab.tasks.multihop import view
from cdlm_lab.tasks.multihop.experiment import MultihopRun, Settings, cluster_of, read_questions
from cdlm_lab.tasks.multihop.metrics import HOTPOTQA_SCORES, hotpotqa
from cdlm_lab.tasks.multihop.model import DecodedAnswer
from cdlm_lab.tasks.multihop.systems import QuestionPredictions
from cdlm_lab.tasks.multihop.view import question_facts
from cdlm_lab.training.trained import trained_parameters
from cdlm_lab.views.packed import packed_example_html

SMALL = Settings(
    train_stories=4, held_out_stories=2, train_questions=8, passage_sentences=1, seeds=2, epochs=1,
    batch_size=4, micro_batch_size=2, max_length=384, window=32,
    systems="longformer cdlm", paragraph_types=0,
)  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory):
    folder = str(tmp_path_factory.mktemp("runs") / "qa")
    return finished_run(multihop_qa, replace(SMALL, run_folder=folder))


def training_of(run: MultihopRun, name: str, seed: int):
    return next(training for training in run.trainings if training.key == (name, seed))


def test_the_report_has_the_official_scores_and_their_files(finished) -> None:
    run, _ = finished
    written = read_report(run.folder)
    gold = [hotpot_record(question) for question in run.questions["test"]]
    folders = [run.folder_of(training_of(run, "cdlm", seed)) for seed in (0, 1)]
    each = [hotpotqa(gold, json.loads((one / "test_predictions.json").read_text())) for one in folders]
    for measure in ("em", "sp_f1", "joint_f1"):
        row = score_of(written, "cdlm", "test", measure)
        assert row.value == pytest.approx(sum(one[measure] for one in each) / 2)
    for split in ("dev", "test"):
        table = view.score_table(written, split=split).html()
        kinds = view.kind_table(written, split).html()
        assert all(name in html for name in ("Longformer", "CDLM") for html in (table, kinds))
        assert all(kind in kinds for kind in ("bridge", "comparison"))


def test_without_the_document_of_the_clue_the_same_models_are_measured_again(finished) -> None:
    run, _ = finished
    written, asked = read_report(run.folder), run.questions["test_one_document"]
    assert [(one.id, one.text, one.answer) for one in asked] == [
        (one.id, one.text, one.answer) for one in run.questions["test"]
    ]
    assert all(len(one.supporting) == 1 for one in asked)
    assert score_of(written, "cdlm", "test_one_document", "f1").n == len(asked)
    assert "test, one document" in view.control_table(written).html()
    trained_so = MultihopRun.read(replace(run.settings, seen="one document"))
    assert "test_one_document" not in trained_so.questions


def test_models_are_opened_though_their_encoders_are_gone(finished, tmp_path: Path, capsys, monkeypatch):
    run, predictions = finished
    shutil.copytree(run.folder, tmp_path / "moved", ignore=shutil.ignore_patterns("*.jsonl", "report.json"))
    file = tmp_path / "moved" / "run.json"
    file.write_text(file.read_text().replace('"encoders": "storyworld"', '"encoders": "/gone"'))
    given = replace(SMALL, trained=str(tmp_path / "moved"), run_folder=str(tmp_path / "again"), seeds=1)
    opened = multihop_qa.prepare(replace(given, systems="longformer"))
    assert "is trained already" in view.preview(opened).data
    again = multihop_qa.predict(opened)["longformer", 0]["test"]
    assert again.answers == predictions["longformer", 0]["test"].answers
    small = opened.small_job().model.state_dict()
    began = run.answerer(run.trainings[0], trained=False).model.state_dict()
    assert all(torch.equal(small[name], weight) for name, weight in began.items()), "with the usual encoder"
    monkeypatch.setattr(MultihopRun, "job", lambda *_: checkpoint_of("/gone", "longformer"))
    multihop_qa.train_small(opened, on_log=None)
    assert "No new one is trained: encoders is '/gone', where longformer is not" in capsys.readouterr().out


# ---- questions of files


def write_questions(path: Path, questions: Iterable[MultihopQuestion]) -> None:
    path.write_text(json.dumps(list(map(hotpot_record, questions))))


@pytest.fixture
def folder(finished, tmp_path: Path) -> Path:
    """Folder of questions in the official format, without dev.json; test questions are in no other file."""
    for split in ("train", "test"):
        write_questions(tmp_path / f"{split}.json", finished[0].questions[split])
    return tmp_path


def test_questions_of_files_in_the_official_format(finished, folder: Path) -> None:
    run, _ = finished
    write_questions(folder / "dev.json", run.questions["dev"])
    settings = Settings(corpus=str(folder))
    assert read_questions(settings) == {split: run.questions[split] for split in ("train", "dev", "test")}
    drawn = read_questions(replace(settings, train_questions=3))
    assert (len(drawn["train"]), drawn["test"]) == (3, run.questions["test"])
    assert set(drawn["train"]) < set(run.questions["train"])
    records = [hotpot_record(one) for one in run.questions["train"]]
    records[0]["supporting_facts"] = [["Nowhere", 0]]
    (folder / "train.json").write_text(json.dumps(records))
    known = read_questions(settings)
    unknown = [one.id for one in known["train"] if one.unknown_supporting]
    assert unknown == [run.questions["train"][0].id]
    listed = dict(question_facts(replace(run, questions=known)))
    assert listed["train: supporting facts"].startswith("1 in 1 questions name no sentence")
    assert "dev: supporting facts" not in listed
    records = json.loads((folder / "dev.json").read_text())
    del records[0]["answer"]
    (folder / "dev.json").write_text(json.dumps(records))
    with pytest.raises(ParameterError, match="has no answer or no supporting facts"):
        read_questions(settings)
    (folder / "test.json").unlink()
    with pytest.raises(DataError, match="it has no split test, but train, dev"):
        read_questions(settings)


def test_dev_is_drawn_from_train_by_question_and_seed(finished, folder: Path) -> None:
    run, _ = finished
    settings = Settings(corpus=str(folder), dev_from_train=3)
    read = read_questions(settings)
    sizes = {split: len(questions) for split, questions in read.items()}
    assert list(sizes.items()) == [("train", 5), ("dev", 3), ("test", len(run.questions["test"]))]
    assert set(read["train"]) | set(read["dev"]) == set(run.questions["train"])
    assert read == read_questions(settings)
    fewer = read_questions(replace(settings, train_questions=2))
    assert fewer["dev"] == read["dev"]
    assert set(fewer["train"]) < set(read["train"]), "what is drawn of train is none of dev"


def test_a_pass_is_never_chosen_on_what_is_reported(finished, folder: Path) -> None:
    questions, settings = finished[0].questions, Settings(corpus=str(folder))
    with pytest.raises(ParameterError, match=r"no split dev.*; or take dev from train with dev_from_train$"):
        read_questions(settings)
    write_questions(folder / "dev.json", questions["test"])
    count, first = len(questions["test"]), min(one.id for one in questions["test"])
    shared = rf"dev and test share {count} questions, as {first}: .* dev_from_train"
    with pytest.raises(ParameterError, match=shared):
        read_questions(settings)
    assert read_questions(replace(settings, dev_from_train=2))["test"] == questions["test"]
    write_questions(folder / "dev.json", questions["dev"])
    write_questions(folder / "test.json", (*questions["test"], questions["train"][0]))
    with pytest.raises(ParameterError, match="train and test share 1 questions"):
        read_questions(settings)
    with pytest.raises(ParameterError, match="dev_from_train is 8; train has 8 questions in all"):
        read_questions(replace(settings, dev_from_train=8))


def test_questions_of_one_kind_alone() -> None:
    given = {"train_stories": 4, "held_out_stories": 2}
    every, bridges = (read_questions(Settings(kinds=kinds, **given)) for kinds in ("all", "bridge"))
    for split, questions in every.items():
        assert bridges[split] == tuple(one for one in questions if one.kind == "bridge")
        assert 0 < len(bridges[split]) < len(questions)


def test_training_with_bridges_asked_by_their_clues() -> None:
    given = {"train_stories": 4, "held_out_stories": 2}
    plain, more = (read_questions(Settings(clue_questions=clues, **given)) for clues in (False, True))
    assert plain == more | {"train": plain["train"]}, "only training has them"
    added = more["train"][len(plain["train"]) :]
    bridges = [one for one in plain["train"] if one.kind == "bridge"]
    assert [one.id for one in added] == [f"{one.id}-clue" for one in bridges]
    assert {cluster_of(one) for one in added} == {cluster_of(one) for one in bridges}
    for whole, one in zip(bridges, added, strict=True):
        ((title, number),) = (fact for fact in whole.supporting if fact not in one.supporting)
        assert one.text == next(p for p in whole.paragraphs if p.title == title).sentences[number].strip()
        assert one.paragraphs == tuple(p for p in whole.paragraphs if p.title != title)
        assert any(one.answer in p.text for p in one.paragraphs if p.title == one.supporting[0][0])


# ---- the report by hand

# Two stories: the first asks a bridge and a comparison question, the second a bridge question.
KINDS = {"storyworld-x-1-q0": "bridge", "storyworld-x-1-q1": "comparison", "storyworld-x-2-q0": "bridge"}
ONE = (Paragraph(title="One", sentences=("A ship. ", "It sank.")),)
QUESTIONS = tuple(
    MultihopQuestion(
        id=name, text="Which?", paragraphs=ONE, answer="yes" if kind == "comparison" else "ship",
        supporting=(("One", 0),), kind=kind
    )
    for name, kind in KINDS.items()
)  # fmt: skip
# Which of the three questions each training answers rightly on test.
RIGHT = {
    ("longformer", 0): (False, True, False),
    ("longformer", 1): (False, False, False),
    ("cdlm", 0): (True, True, False),
    ("cdlm", 1): (True, False, True),
}


def answers(right: tuple[bool, ...]) -> QuestionPredictions:
    """Make predictions for QUESTIONS; the support is always one right and one wrong sentence."""
    answer = DecodedAnswer(
        text="harbour", type="span", type_probabilities={}, place=None, n_best=(), sentence_probabilities={},
        paragraph_probabilities=(), supporting=((0, 0), (0, 1))
    )  # fmt: skip
    texts = (one.answer if is_right else "harbour" for one, is_right in zip(QUESTIONS, right, strict=True))
    return QuestionPredictions(questions=QUESTIONS, answers=[replace(answer, text=text) for text in texts])


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory):
    settings = replace(SMALL, run_folder=str(tmp_path_factory.mktemp("questions")))
    questions = dict.fromkeys(("train", "dev", "test"), QUESTIONS)
    opened = open_run(settings.run_folder, name="x", parameters={})
    run = MultihopRun(settings=settings, questions=questions, opened=opened)
    predictions = {key: {"dev": answers((True,) * 3), "test": answers(right)} for key, right in RIGHT.items()}
    for training in run.trainings:
        run.folder_of(training).mkdir(parents=True)
    return run, predictions


@pytest.fixture(scope="module")
def by_hand(answered) -> Report:
    return multihop_qa.report(answered[0], multihop_qa.evaluate(*answered))


def test_answers_of_ones_own_are_scored_on_the_same_questions(answered, by_hand: Report, tmp_path: Path):
    """Those of CDLM with seed 1, written by another program."""
    run, predictions = answered
    official, file = predictions["cdlm", 1]["test"].official(), tmp_path / "mine.jsonl"
    lines = [
        {"item": name, "answer": text, "facts": official["sp"][name]}
        for name, text in official["answer"].items()
    ]
    file.write_text("\n".join(map(json.dumps, lines[::-1])))
    made = add_predictions(run, file)
    mine = {row.metric: row.value for row in made.rows if row.system == "mine" and row.seed is None}
    of_cdlm = (row for row in by_hand.rows if row.key[:2] == ("cdlm", "test"))
    assert mine == {row.metric: row.value for row in of_cdlm if row.seed == 1}
    assert [(row["b"], row["measure"]) for row in made.comparisons] == [
        (name, measure) for measure in multihop_qa.TESTED for name in ("longformer", "cdlm")
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": None}, "field answer: the answer to question .* is None; write a text"),
        ({"facts": [["Nowhere", 0]]}, r"field facts: \['Nowhere', 0\] is no sentence of question"),
        ({"facts": [[QUESTIONS[0].paragraphs[0].title, 99]]}, "field facts: .*99. is no sentence"),
        ({"facts": "all"}, "field facts: 'all' is no sentence"),
    ],
)
def test_an_answer_that_cannot_be_scored_is_named(answered, tmp_path: Path, change: dict, message: str):
    file = tmp_path / "mine.jsonl"
    lines = [{"item": one.id, "answer": "yes"} for one in QUESTIONS]
    file.write_text("\n".join(map(json.dumps, [lines[0] | change, *lines[1:]])))
    with pytest.raises(DataError, match=f"mine.jsonl:1: {message}"):
        answered[0].own_predictions(file, lines_of(file), "test")


def test_scores_are_means_over_seeds_with_intervals_over_stories(by_hand: Report) -> None:
    score, longformer = (score_of(by_hand, name, "test", "em") for name in ("cdlm", "longformer"))
    # the first story has 1 + 1/2 in 2 questions, the second 1/2 in 1
    assert score.value == pytest.approx(2 / 3)
    assert (score.low, score.high, score.n, score.clusters) == (0, 1, 3, 2), "two stories tell little"
    assert (longformer.value, longformer.seeds) == (pytest.approx((1 / 3 + 0) / 2), 2)
    # one of two sentences of the support is right
    assert score_of(by_hand, "cdlm", "dev", "sp_prec").value == 1 / 2
    assert score_of(by_hand, "cdlm", "test", "joint_f1").value == pytest.approx(2 / 3 * 2 / 3)
    keys = product(("longformer", "cdlm"), ("dev", "test"), [""], HOTPOTQA_SCORES, (None, 0, 1))
    assert {row.key for row in by_hand.rows} == set(keys)
    assert by_hand.data["clusters"] == {"train": 2, "dev": 2, "test": 2}
    assert multihop_qa.cluster_of(replace(QUESTIONS[0], id="5a8b57f2")) == "5a8b57f2"


def test_the_tables_are_of_the_same_scores(by_hand: Report) -> None:
    kinds = [row for row in by_hand.tables["kinds"] if (row["system"], row["split"]) == ("cdlm", "test")]
    found = {row["kind"]: (row["questions"], row["em"]) for row in kinds}
    assert found == {"bridge": (2, 3 / 4), "comparison": (1, 1 / 2), "of all, yes or no": (1, 1 / 2)}
    tested = {row["measure"]: row for row in by_hand.tables["comparisons"]}
    assert list(tested) == ["f1", "sp_f1", "joint_f1"]
    f1 = tested["f1"]
    assert f1["difference"] == pytest.approx(2 / 3 - 1 / 6)
    assert (f1["a"], f1["b"], f1["clusters"]) == ("cdlm", "longformer", 2)
    assert (tested["sp_f1"]["difference"], tested["sp_f1"]["p_holm"]) == (0, 1)
    row = score_of(by_hand, "cdlm", "test", "f1")
    assert (row.p, row.against) == (f1["p_holm"], "longformer")


# ---- before the start


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> MultihopRun:
    return MultihopRun.read(replace(SMALL, run_folder=str(tmp_path_factory.mktemp("run"))))


def test_what_a_person_reads_before_the_start(fresh: MultihopRun, monkeypatch) -> None:
    listed = dict(question_facts(fresh) + view.training_facts(fresh))
    assert listed["precision of training"] == precision_in_words("auto")
    assert listed["train"].startswith("8 questions (")
    assert listed["train: does not fit"] == "nothing"
    assert "2 updates with 4 questions, about" in listed["training"]
    assert "times 4 (encoders and seeds)" in listed["training"]
    # of many questions the first are read
    assert view.LOOKED_AT == 500
    short = replace(fresh, settings=replace(fresh.settings, max_length=160))
    for most, some in ((8, ""), (3, "of the first 3: ")):
        monkeypatch.setattr(view, "LOOKED_AT", most)
        listed = dict(question_facts(fresh))
        assert listed["train: does not fit"] == f"{some}nothing"
        assert listed["train"].startswith("8 questions ("), "these are all"
    lost = dict(question_facts(short))["train: does not fit"]
    assert lost.startswith("of the first 3: questions that lose text: 3; lost are ")


def test_the_example_shows_what_is_global_and_what_is_cut(fresh: MultihopRun) -> None:
    shown, question = view.example(fresh), fresh.questions["train"][0]
    assert [one.title for one in shown.documents] == [question.text, *(p.title for p in question.paragraphs)]
    signs = [token for token, is_global in zip(shown.tokens, shown.global_, strict=True) if is_global]
    sentences = sum(len(one.sentences) for one in question.paragraphs)
    assert (signs.count("<t>"), signs.count("[s]")) == (4, sentences)
    assert len(signs) == 3 + shown.kept[0] + 4 + sentences  # [CLS] [q] [/q], and the question
    assert not any(one.cut for one in shown.documents)
    cut = view.example(replace(fresh, settings=replace(fresh.settings, max_length=160)))
    assert sum(cut.kept) + sum(one.cut for one in cut.documents) == sum(shown.kept)
    assert any(one.cut for one in cut.documents[1:])
    assert not cut.documents[0].cut
    html = packed_example_html(cut)
    assert "masked" not in html
    assert "share of the room" in html


def test_encoders_trained_alike_are_compared_on_the_questions_of_the_run(
    finished, by_hand: Report, tmp_path: Path
):
    """This run's own, if it has the baseline and another; else those that come with the project."""
    run, _ = finished
    name = "storyworld/questions-compared"
    assert multihop_qa.trained_alike(run, by_hand, name=name) is by_hand, "it trained both itself"
    alone = replace(run, settings=replace(SMALL, systems="local-cdlm", run_folder=str(tmp_path)))
    report = multihop_qa.trained_alike(alone, by_hand, name=name)
    assert (tmp_path / "trained_alike" / "report.json").is_file()
    assert {row.system for row in report.rows} == {"longformer", "cdlm"}
    tested = [row for row in report.rows if row.against == "longformer"]
    assert {row.metric for row in tested} == set(multihop_qa.TESTED)
    assert report.data["questions"]["test"] == len(run.questions["test"])
    made, other = trained_parameters(name), report.parameters
    assert {one: other[one] for one in MultihopRun.SHAPES} == {one: made[one] for one in MultihopRun.SHAPES}
    elsewhere = replace(alone, settings=replace(alone.settings, corpus="hotpotqa"))
    assert multihop_qa.trained_alike(elsewhere, by_hand, name=name) is by_hand
