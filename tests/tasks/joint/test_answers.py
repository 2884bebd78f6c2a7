"""Notebook 09's experiment: questions, systems, groups and scores by hand; then a small run that is trained,
ranked, reranked, timed, resumed and shown."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tagging_runs import finished_run, judged

from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import CandidateSet, clean_sets, counts_of
from cdlm_lab.metrics.ranking import mean_average_precision
from cdlm_lab.parameters import ParameterError, parameters_of
from cdlm_lab.runs import runs
from cdlm_lab.runs.items import read_frame
from cdlm_lab.runs.runs import Training
from cdlm_lab.tasks.joint import answers as answer_selection
from cdlm_lab.tasks.joint import ranking
from cdlm_lab.tasks.joint.answers import (
    ANSWER_SYSTEMS,
    AnswerRun,
    AnswerSplit,
    Settings,
    measured_latencies,
    read_answers,
)
from cdlm_lab.tasks.joint.answers_view import pretraining_facts, question_facts
from cdlm_lab.tasks.joint.examples import fixed_order, top_k
from cdlm_lab.tasks.joint.model import JointHead, load_paragraph_model, save_paragraph_model, scores_of
from cdlm_lab.tasks.joint.ranking import AnswerPredictions, Ranker, rerank_answers, score_answers
from cdlm_lab.views.before_training import cost_facts

NAN = float("nan")
PAIR, JOINT, MSPP = (ANSWER_SYSTEMS[name] for name in ("pairwise", "joint-ie", "mspp-ie"))


# ---- questions ----

HEADER = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel"
# Of each question the labels of its candidates.
CLEAN, NONE, ALL = "01", "00", "11"
WIKIQA = {
    "train": (CLEAN, NONE, CLEAN, ALL, "100"),
    "dev": (CLEAN, NONE, CLEAN),
    "test": (CLEAN, CLEAN, ALL, "010"),
}


def write_wikiqa(folder: Path, questions: dict[str, tuple[str, ...]] = WIKIQA) -> str:
    folder.mkdir(exist_ok=True)
    for split, of_split in questions.items():
        rows = [
            f"Q{number}\tWhat of {split} {number}?\tD{number}\tTitle\tD{number}-{at}\tSentence {at}.\t{label}"
            for number, labels in enumerate(of_split)
            for at, label in enumerate(labels)
        ]
        (folder / f"WikiQA-{split}.tsv").write_text("\n".join([HEADER, *rows]) + "\n")
    return str(folder)


def ids(splits, split: str) -> list[str]:
    return [one.id for one in splits[split].sets]


def test_dev_and_test_are_clean_and_train_as_asked(tmp_path: Path):
    folder = write_wikiqa(tmp_path)
    clean = read_answers(Settings(corpus=folder))
    every = read_answers(Settings(corpus=folder, train_on="all"))
    assert ids(clean, "train") == ["Q0", "Q2", "Q4"]
    assert ids(every, "train") == ["Q0", "Q1", "Q2", "Q3", "Q4"]
    for splits in (clean, every):
        assert (ids(splits, "dev"), ids(splits, "test")) == (["Q0", "Q2"], ["Q0", "Q1", "Q3"])
    read = clean["train"].read
    assert (read.questions, read.candidates, read.without_right, read.without_wrong) == (5, 11, 1, 1)
    assert {one.corpus for one in clean.values()} == {"wikiqa"}
    write_wikiqa(tmp_path, WIKIQA | {"dev": (NONE, CLEAN, ALL)})
    with pytest.raises(ParameterError, match="1 of the 3 questions of dev can be used"):
        read_answers(Settings(corpus=folder))


def test_the_test_questions_of_another_corpus(tmp_path: Path):
    wikiqa, asnq = write_wikiqa(tmp_path / "w"), str(tmp_path / "a")
    (tmp_path / "a").mkdir()
    for split in ("train", "dev", "test"):
        rows = [f"who is {at}\tIt is {n}.\t{4 if n == at else 1}" for at in range(2) for n in range(3)]
        (tmp_path / "a" / f"{split}.tsv").write_text("\n".join(rows) + "\n")
    own = read_answers(Settings(corpus=wikiqa))
    read = read_answers(Settings(corpus=wikiqa, test_corpus=asnq))
    assert (read["train"], read["dev"]) == (own["train"], own["dev"])
    assert [one.question for one in read["test"].sets] == ["who is 0", "who is 1"]
    assert (read["test"].corpus, read["dev"].corpus) == ("asnq", "wikiqa")
    from_stories = read_answers(Settings(train_stories=2, held_out_stories=2, test_corpus=asnq))
    assert [one.corpus for one in from_stories.values()] == ["storyworld", "storyworld", "asnq", "asnq"]
    assert {one.question for one in from_stories["test_no_question"].sets} == {""}
    with pytest.raises(DataError, match="no such file or folder"):
        read_answers(Settings(corpus=wikiqa, test_corpus=str(tmp_path / "gone")))


def test_some_questions_are_drawn_the_same_ones_each_time_in_their_order(tmp_path: Path):
    folder = write_wikiqa(tmp_path)
    drawn = read_answers(Settings(corpus=folder, train_on="all", train_questions=3))
    assert len(ids(drawn, "train")) == 3
    assert ids(drawn, "train") == sorted(ids(drawn, "train"))
    assert drawn == read_answers(Settings(corpus=folder, train_on="all", train_questions=3))
    assert ids(drawn, "test") == ["Q0", "Q1", "Q3"]
    assert ids(read_answers(Settings(corpus=folder, train_questions=99)), "train") == ["Q0", "Q2", "Q4"]


def test_questions_that_were_left_out_and_candidates_that_are_cut():
    texts = ("one", "two", "word " * 40)
    labels = {"a": (True, False, False), "b": (False,), "c": (True, True), "d": (True,)}
    sets = [
        CandidateSet(id=name, question="Who?", candidates=texts[: len(correct)], correct=correct)
        for name, correct in labels.items()
    ]
    form = {"read": counts_of(sets), "corpus": "wikiqa"}
    every, clean = AnswerSplit(sets=tuple(sets), **form), AnswerSplit(sets=tuple(clean_sets(sets)), **form)
    settings = Settings(systems="pairwise joint-ie", sentence_length=32, pairwise_length=100)
    run = AnswerRun(settings=settings, splits={"train": every, "dev": clean, "test": clean})
    facts = dict(question_facts(run))
    assert facts["train"] == "4 questions with 7 candidates, 4 of them right"
    assert facts["dev"] == (
        "1 questions with 3 candidates, 1 of them right; of the 4 that are there, 1 have no right candidate "
        "and 2 no wrong one"
    )
    assert facts["dev: candidates that lose their end"] == "0% (pairwise), 33% (joint IE_k)"
    assert facts["train: candidates that lose their end"] == "0% (pairwise), 14% (joint IE_k)"


# ---- systems ----

MODELS = Settings(candidates=3, sentence_length=8, pairwise_length=12, head_layers="tanh")


def test_systems_come_in_the_order_of_the_tables_each_with_its_head():
    assert [one.head for one in ANSWER_SYSTEMS.values()] == ["ie_1", "ie_k", "ae_k", "ie_k", "ae_k"]
    for name, one in ANSWER_SYSTEMS.items():
        assert (one.name, one.is_joint) == (name, name != "pairwise")
        assert bool(one.pretrained) == name.startswith("mspp") == bool(one.plain)
        assert not one.plain or (ANSWER_SYSTEMS[one.plain].head, one.head[:2]) == (one.head, one.pretrained)
    chosen = Settings(systems="mspp-ae joint-ie pairwise").chosen
    assert [one.name for one in chosen] == ["pairwise", "joint-ie", "mspp-ae"]
    pairwise, joint = MODELS.head_of(PAIR), MODELS.head_of(ANSWER_SYSTEMS["mspp-ae"])
    assert pairwise == JointHead(kind="ie_1", sentences=2, length=12, positions="compact", layers="tanh")
    assert joint == JointHead(kind="ae_k", sentences=4, length=8, positions="strided", layers="tanh")


def test_training_reads_shuffled_groups_and_testing_each_candidate_once():
    ranker = AnswerRun(settings=MODELS, splits={}).reader(JOINT)
    sets = [question("a", 4), question("b", 2)]
    fixed = ranker.examples(sets)
    assert [fixed.owner(number)[0] for number in range(len(fixed))] == [0, 0, 1]
    config = Settings(batch_size=6, micro_batch_size=6, epochs=4).config(items=6, seed=3)
    drawn = ranker.examples(sets, config=config)
    assert (drawn.shuffle, len(drawn), drawn.seed) == (True, 24, 3)


def test_systems_with_mspp_start_from_their_own_with_its_head_and_others_from_the_encoder(tmp_path: Path):
    system = ANSWER_SYSTEMS["mspp-ae"]
    drawn, tokenizer = load_paragraph_model("storyworld/longformer", head=MODELS.head_of(system), seed=7)
    save_paragraph_model(drawn, tokenizer, tmp_path / "model")
    run = AnswerRun(settings=replace(MODELS, mspp=str(tmp_path), model="minilm"), splits={})
    assert run.settings.checkpoint("ae") == str(tmp_path / "model")
    assert run.settings.checkpoint("") == "minilm"
    weights = run.reader(system, 1).model.head.state_dict()  # another seed than the head was drawn with
    assert all(torch.equal(weights[name], weight) for name, weight in drawn.head.state_dict().items())
    with pytest.raises(ParameterError, match="which was pretrained with ae_k"):
        run.settings.checkpoint("ie")


# ---- scores ----

TEXT = "the mayor of a town left and nobody saw the storm that hit its harbour at night"
WORDS = TEXT.split()


def question(name: str, count: int, *, right: int = 0) -> CandidateSet:
    """Make a question with candidates of different lengths."""
    texts = tuple(" ".join(WORDS[at : at + 2 + 3 * at]) for at in range(count))
    correct = tuple(at == right for at in range(count))
    return CandidateSet(id=name, question=f"Who left town {name}?", candidates=texts, correct=correct)


SETS = [question("a", 4), question("b", 2), question("c", 3)]


@pytest.fixture(scope="module")
def rankers() -> dict[str, Ranker]:
    run = AnswerRun(settings=Settings(candidates=3, sentence_length=8, pairwise_length=8), splits={})
    return {name: run.reader(ANSWER_SYSTEMS[name]) for name in ("pairwise", "joint-ae")}


@pytest.fixture(scope="module")
def joint(rankers: dict[str, Ranker]) -> Ranker:
    return rankers["joint-ae"]


def assert_same(predictions: AnswerPredictions, expected: list[np.ndarray]) -> None:
    """Check scores up to rounding, as the batch may change the last digits."""
    for one, other in zip(predictions.scores, expected, strict=True):
        assert one == pytest.approx(other, abs=1e-5, nan_ok=True)


def some_of(one: CandidateSet, members) -> CandidateSet:
    texts, correct = (tuple(column[at] for at in members) for column in (one.candidates, one.correct))
    return replace(one, candidates=texts, correct=correct)


@torch.inference_mode()
def alone(ranker: Ranker, sets: list[CandidateSet], seed: int = 0) -> list[np.ndarray]:
    """Score each group of candidates in a separate batch, in the order fixed by the hash."""
    predictions = []
    for one in sets:
        key, scores = f"{one.id}\0{seed}" if seed else one.id, np.full(len(one.candidates), NAN)
        order = fixed_order(one.candidates, key=key).tolist()
        for first in range(0, len(order), ranker.k):
            members = order[first : first + ranker.k]
            (example,) = replace(ranker.examples([some_of(one, members)]), seed=seed)
            batch = ranker.collate([example])
            del batch["labels"]
            scores[members] = scores_of(ranker.model(**batch).logits.reshape(-1, 2))[: len(members)]
        predictions.append(scores)
    return predictions


@pytest.mark.parametrize(("name", "k"), [("joint-ae", 3), ("pairwise", 1)])
def test_candidates_are_scored_in_groups_of_the_fixed_order(rankers: dict[str, Ranker], name: str, k: int):
    predictions = score_answers(rankers[name], SETS, batch_size=2)
    assert rankers[name].k == k
    assert [len(scores) for scores in predictions.scores] == [4, 2, 3]
    assert_same(predictions, alone(rankers[name], SETS))
    assert len(np.unique(np.concatenate(predictions.scores))) == 9, "they differ"


def test_neither_batches_nor_the_order_of_the_source_nor_labels_change_a_score(joint: Ranker):
    scores = list(score_answers(joint, SETS, batch_size=1).scores)
    assert_same(score_answers(joint, SETS, batch_size=4), scores)
    turned = [some_of(one, range(len(one.candidates))[::-1]) for one in reversed(SETS)]
    assert_same(score_answers(joint, turned, batch_size=2), [one[::-1] for one in reversed(scores)])
    false = [replace(one, correct=one.correct[::-1]) for one in SETS]
    assert_same(score_answers(joint, false, batch_size=2), scores)


def test_a_joint_score_is_the_mean_over_groupings(joint: Ranker, rankers: dict[str, Ranker]):
    each = [alone(joint, SETS, seed) for seed in range(3)]
    assert not np.allclose(each[0][0], each[1][0])
    mean = [np.mean(scores, axis=0) for scores in zip(*each, strict=True)]
    assert_same(score_answers(joint, SETS, groupings=3, batch_size=2), mean)
    pairwise = rankers["pairwise"]
    assert_same(score_answers(pairwise, SETS, groupings=3, batch_size=2), alone(pairwise, SETS))


def test_the_best_of_another_model_are_read_in_the_fixed_order(joint: Ranker):
    others = [np.array([0.0, 1.0]), np.array([1.0, 2.0, 3.0])]
    (expected,) = alone(joint, [some_of(SETS[0], (1, 2, 3))])
    for best in ([2.0, 1.0, 3.0], [1.0, 3.0, 2.0]):  # in whatever order they were
        pairwise = AnswerPredictions(sets=SETS, scores=[np.array([-9.0, *best]), *others])
        predictions = rerank_answers(joint, pairwise, batch_size=2)
        assert np.isnan(predictions.scores[0]).tolist() == [True, False, False, False]
        assert predictions.scores[0][1:] == pytest.approx(expected, abs=1e-5)
        assert not np.isnan(np.concatenate(predictions.scores[1:])).any()
    # of equal ones the first of the fixed order
    tied = AnswerPredictions(sets=SETS[:1], scores=[np.zeros(4)])
    (scores,) = rerank_answers(joint, tied, batch_size=1).scores
    assert np.flatnonzero(np.isnan(scores)).tolist() == [fixed_order(SETS[0].candidates, key="a")[3]]


def test_one_ranking_of_those_ranked_anew_and_the_others():
    sets = [question("a", 4)]
    pairwise = AnswerPredictions(sets=sets, scores=[np.array([0.1, 0.9, 0.8, 0.2])])
    best = AnswerPredictions(sets=sets, scores=[np.array([NAN, -5.0, -4.0, NAN])])
    (scores,) = best.after(pairwise).scores
    assert np.argsort(-scores).tolist() == [2, 1, 3, 0]
    ((values, labels),) = best.after(pairwise).groups()
    assert (values.tolist(), labels.tolist()) == (scores.tolist(), [True, False, False, False])


def test_what_was_read_together():
    sets = [question("a", 4, right=2), question("b", 2, right=1)]
    scores = [np.array([0.0, 1.0, 2.0, 3.0]), np.array([4.0, 5.0])]
    predictions, labels, numbers = AnswerPredictions(sets=sets, scores=scores).read_together(3)
    order = fixed_order(sets[0].candidates, key="a").tolist()
    assert predictions[0].tolist() == order[:3]
    assert predictions[1, 0] == order[3]
    assert labels[0].tolist() == [int(at == 2) for at in order[:3]]
    assert labels[1].tolist() == [int(order[3] == 2), -100, -100]
    assert sorted(predictions[2][labels[2] >= 0].tolist()) == [4.0, 5.0]
    assert predictions[2][labels[2] == 1].tolist() == [5.0]
    assert numbers.tolist() == [0, 0, 1]


def test_scores_come_back_as_they_were(tmp_path: Path):
    file = tmp_path / "new" / "test.parquet"
    scores = [np.array([1 / 3, NAN, -7.25, 1e-300]), np.array([NAN, 2.0])]
    AnswerPredictions(sets=SETS[:2], scores=scores).save(file)
    splits = {"test": AnswerSplit(sets=SETS[:2], read=counts_of(SETS[:2]), corpus="x")}
    again = AnswerRun(settings=None, splits=splits).read_predictions(file, "test_reranked")
    for one, other in zip(again.scores, scores, strict=True):
        assert one.dtype == np.float64
        np.testing.assert_array_equal(one, other)
    assert read_frame(file)["item"].tolist() == ["a", "b"]


# ---- a run ----

K = 3
NAMES = ("pairwise", "mspp-ie")
Finished = tuple[AnswerRun, Mapping[tuple[str, int], Mapping[str, AnswerPredictions]]]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings with nine training questions, and an untrained model in the form that notebook 08 writes."""
    folder = tmp_path_factory.mktemp("mspp")
    settings = Settings(
        run_folder=str(tmp_path_factory.mktemp("runs") / "answers"), train_stories=3, held_out_stories=2,
        systems=" ".join(NAMES), candidates=K, sentence_length=12, pairwise_length=12, mspp=str(folder),
        seeds=2, micro_batch_size=8
    )  # fmt: skip
    head = replace(settings.head_of(MSPP), length=16)
    save_paragraph_model(*load_paragraph_model("storyworld/longformer", head=head, seed=7), folder / "model")
    return settings


@pytest.fixture(scope="module")
def finished(settings: Settings) -> Finished:
    return finished_run(answer_selection, settings)


def test_each_system_ranks_every_candidate_and_joint_ones_the_best_of_pairwise_anew(finished: Finished):
    run, predictions = finished
    assert list(predictions) == [(name, seed) for name in NAMES for seed in (0, 1)]
    for (name, seed), of_set in predictions.items():
        again = ["dev_reranked", "test_reranked"] if name == "mspp-ie" else []
        assert list(of_set) == ["dev", "test", "test_no_question", *again]
        for split in ("dev", "test"):
            questions = run.of_split(split)
            assert [one.id for one in of_set[split].sets] == [one.id for one in questions]
            assert np.isfinite(np.concatenate(of_set[split].scores)).all()
            if again:
                both = (of_set[f"{split}_reranked"].scores, predictions["pairwise", seed][split].scores)
                for one, scores, of_pairwise in zip(questions, *both, strict=True):
                    expected = top_k(of_pairwise, fixed_order(one.candidates, key=one.id), k=K)
                    assert set(np.flatnonzero(~np.isnan(scores))) == set(expected.tolist())


def test_the_models_of_a_run_are_opened_without_what_they_started_from(finished: Finished, tmp_path: Path):
    run, predictions = finished
    form = parameters_of(run.settings, *AnswerRun.SHAPES, "systems")
    given = Settings(trained=str(run.folder), run_folder=str(tmp_path / "run"), micro_batch_size=8, **form)
    opened = answer_selection.prepare(replace(given, train_stories=3, held_out_stories=2))
    assert [one.name for one in opened.systems] == [*NAMES]
    assert pretraining_facts(opened) == []
    assert dict(cost_facts(opened))["MSPP IE_k"] == f"is trained already, in {run.folder}"
    again = answer_selection.predict(opened)["mspp-ie", 0]["test"].scores
    for one, other in zip(again, predictions["mspp-ie", 0]["test"].scores, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    assert opened.small_job().model.head.form.kind == PAIR.head, "mspp is not named"


def test_the_epoch_with_the_highest_map_on_dev_is_kept(finished: Finished):
    run, predictions = finished
    for training in run.trainings:
        epochs = judged(run.folder_of(training))
        kept = mean_average_precision(predictions[training.key]["dev"].groups())
        assert (len(epochs), kept) == (2, pytest.approx(max(epochs)))


def test_what_is_finished_is_not_done_again(finished: Finished, monkeypatch: pytest.MonkeyPatch):
    run, predictions = finished
    monkeypatch.setattr(runs, "fine_tune", None)  # calling it would fail
    (run.folder_of(Training(MSPP, 1)) / "test_reranked.parquet").unlink()
    answer_selection.train(run)
    again = answer_selection.predict(run)["mspp-ie", 1]["test_reranked"]
    assert_same(again, list(predictions["mspp-ie", 1]["test_reranked"].scores))
    measured = measured_latencies(run)
    assert all(one.runs == ranking.RUNS for one in measured)
    monkeypatch.setattr(ranking, "measured_in_turns", None)
    assert measured_latencies(run) == measured
    monkeypatch.setattr(answer_selection, "load_joint_model", None)
    answer_selection.predict(run)  # no model is loaded


def test_what_cannot_be_is_refused_before_anything_is_read(settings: Settings, tmp_path: Path):
    elsewhere = replace(settings, run_folder=str(tmp_path / "run"))
    for given, message in (
        ({"mspp": "nowhere"}, "mspp is 'nowhere', where there is no model"),
        ({"mspp": "", "corpus": str(tmp_path)}, 'mspp is ""; give a run folder'),
        ({"sentence_length": 200}, "reads 512 tokens, but the sentences may have 800 together"),
        (
            {"micro_batch_size": 3, "run_folder": str(tmp_path / "other")},
            "must be a multiple of micro_batch_size",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            answer_selection.prepare(replace(elsewhere, **given))
