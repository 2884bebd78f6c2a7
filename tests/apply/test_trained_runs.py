"""Runs of notebooks 04, 05, 06, 09 and 10 opened from Python: they answer as the notebooks' boxes do. The
models are tiny and untrained."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ship import ship_run

from cdlm_lab.apply.loading import load
from cdlm_lab.data.records import CLAIM_LABELS as LABELS
from cdlm_lab.data.storyworld.task_sets import read_storyworld_pairs
from cdlm_lab.encoders import model_folder
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.opened import settings_of_run
from cdlm_lab.runs.runs import SystemRun, Training
from cdlm_lab.tasks.joint import answers as answer_selection
from cdlm_lab.tasks.joint import claims as fact_verification
from cdlm_lab.tasks.joint.answers import AnswerRun
from cdlm_lab.tasks.joint.claims import VerificationRun
from cdlm_lab.tasks.joint.ranking import score_answers
from cdlm_lab.tasks.matching import alignment
from cdlm_lab.tasks.matching import experiment as document_matching
from cdlm_lab.tasks.matching.ask import MatchingModel
from cdlm_lab.tasks.matching.experiment import MatchingRun
from cdlm_lab.tasks.multihop import experiment as multihop_qa
from cdlm_lab.tasks.multihop.experiment import MultihopRun
from cdlm_lab.training.checkpoints import save_model
from cdlm_lab.views.answers import TextCut

FIRST, SECOND = MatchingModel.example.values()
DOCUMENTS = {
    "Warning": "A paper warned of this. Its author is Kryla Truldei.",
    "Soup": "Truldei teaches <b>there</b>.",
}
CANDIDATES = ["The ferry sails again.", "In all, 214 passengers were aboard.", "A ticket costs 14 crowns."]
EXACT = {"precision": "float32"}  # `auto` is bfloat16 where a processor is fast in it
SMALL = {"max_length": 128, "window": 32} | EXACT


def kept(run: SystemRun, models: dict[str, Any]) -> str:
    """The folder of a run with these models by system."""
    for name, one in models.items():
        system = next(system for system in run.systems if system.name == name)
        save_model(one.model, one.tokenizer, run.folder_of(Training(system, 0)) / "model")
    values = {"name": run.NAME, "parameters": asdict(run.settings)}
    (run.folder / "run.json").write_text(json.dumps(values))
    return str(run.folder)


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> MultihopRun:
    folder = str(tmp_path_factory.mktemp("questions"))
    settings = multihop_qa.Settings(run_folder=folder, systems="longformer cdlm", **SMALL)
    run = MultihopRun(settings=settings, questions={})
    kept(run, {one.system.name: run.answerer(one, trained=False) for one in run.trainings})
    return run


@pytest.fixture(scope="module")
def matching(tmp_path_factory: pytest.TempPathFactory) -> MatchingRun:
    sizes = {"most_sentences": 3, "most_words": 12, "hidden_size": 6}
    settings = document_matching.Settings(
        run_folder=str(tmp_path_factory.mktemp("matching")),
        systems="tf-idf bert-han-shallow gru-han cdlm",
        **sizes,
        **SMALL,
    )
    run = MatchingRun(settings=settings, pairs={"train": tuple(read_storyworld_pairs("train", 2))})
    learned = [one for one in run.systems if one.is_model]
    kept(run, {one.name: run.matchers.make(one, seed=0, sample=2) for one in learned})
    return run


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> AnswerRun:
    folder = str(tmp_path_factory.mktemp("answers"))
    settings = answer_selection.Settings(
        run_folder=folder, systems="pairwise joint-ie", candidates=2, **EXACT
    )
    run = AnswerRun(settings=settings, splits={})
    kept(run, {system.name: run.reader(system) for system in run.systems})
    return run


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory) -> VerificationRun:
    folder = str(tmp_path_factory.mktemp("claims"))
    systems = "pairwise-sum joint-ie claim-only"
    settings = fact_verification.Settings(run_folder=folder, systems=systems, evidence_sentences=2, **EXACT)
    run = VerificationRun(settings=settings, claims={}, trained_labels=LABELS[:2])
    kept(run, {system.name: run.reader(system) for system in run.systems})
    return run


def test_questions_are_answered_as_in_the_box(questions: MultihopRun) -> None:
    model = load(questions.folder)
    answer = model.answer("Where does Truldei teach?", DOCUMENTS)
    assert model.system == "cdlm"
    assert [one.title for one in answer] == ["Warning", "Warning", "Soup"]
    assert answer.as_json()["answer"] == answer.text
    assert 0 < answer.as_json()["probability"] == answer.probability < 1
    assert all(0 < one["probability"] < 1 for one in answer.as_json()["supporting"])
    first, *support = str(answer).split("\n")
    assert first == f"{answer.text} ({answer.probability:.1%})"
    assert support == [f"{one.title}: {one.text} ({one.probability:.1%})" for one in answer.supporting]
    assert f"{100 * answer.probability:.1f}%" in answer._repr_html_()
    assert list(answer.to_frame().columns) == [
        *("title", "sentence", "start", "end", "text", "probability", "supports")
    ]
    assert load(questions.folder, system="longformer").system == "longformer"
    with pytest.raises(ParameterError, match="system is 'x'; choose one of longformer, cdlm"):
        load(questions.folder, system="x")
    with pytest.raises(ValueError, match="the question is empty"):
        model.answer(" ", DOCUMENTS)
    with pytest.warns(TextCut, match=r"documents: \d+ of \d+ tokens are not read; .* reads 128 at once"):
        model.answer("Where?", {"Long": "It rained. " * 100})


@pytest.mark.parametrize("system", ["", "bert-han-shallow", "gru-han"])
def test_pairs_are_matched_and_aligned_as_in_the_box(matching: MatchingRun, system: str) -> None:
    model = load(matching.folder, system=system)
    assert model.system == (system or "cdlm")
    few = " ".join(FIRST.split(". ")[:2]) + "."
    aligned = model.align(few, SECOND)
    assert [few[one.start : one.end] for one in aligned] == [one.text for one in aligned]
    assert "<script" not in model.align("<script>alert(1)</script> fell.", "It fell.")._repr_html_()
    match = model.score(few, SECOND)
    assert float(match) == pytest.approx(aligned.probability)
    assert match.related == (match.probability > 0.5)
    assert match.to_frame().shape == (1, 3)
    assert match.to_frame().to_dict("records") == [match.as_json()]
    assert f"{'' if match.related else 'do not '}belong together, says " in match._repr_html_()
    assert [row["sentence"] for row in aligned.as_json()["sentences"]] == list(range(len(aligned)))
    assert aligned.to_frame()["weight"].is_monotonic_decreasing
    assert not (Path() / "encodings").exists()


def test_the_shipped_matcher_is_the_one_best_on_dev_and_reads_short_texts_of_ones_own() -> None:
    model = load("storyworld/matching")
    assert model.system == "gru-han-deep"
    first = "The doors of 33 exits were chained. The blaze was fought by 792 firefighters."
    second = "Across Waampuchoko district, {} firefighters were called in. The market opened late."
    same, other = (float(model.score(first, second.format(number))) for number in (792, 431))
    assert same > 0.9 > other + 0.1
    assert model.align(first, second.format(792)).to_frame()["sentence"][0] == 1


def test_long_documents_and_systems_that_are_fitted(matching: MatchingRun) -> None:
    with pytest.warns(
        TextCut, match="documents: 3 of 7 sentences are not read; .* reads the first 3 of each"
    ):
        load(matching.folder, system="gru-han").score(FIRST, "It fell.")
    with pytest.warns(TextCut, match="reads 128 tokens, of both an equal share"):
        load(matching.folder).score("It rained. " * 100, SECOND)
    with pytest.raises(
        ParameterError, match="system is 'tf-idf'; choose one of bert-han-shallow, gru-han, cdlm"
    ):
        load(matching.folder, system="tf-idf")
    with pytest.raises(ParameterError, match="text 1 is empty"):
        load(matching.folder).align("One.", " ")


def test_a_run_of_notebook_05_opens_the_models_that_it_aligns_with(
    matching: MatchingRun, tmp_path: Path
) -> None:
    settings = alignment.Settings(trained=str(matching.folder), systems="cdlm", precision="float32")
    values = {"name": alignment.AlignmentRun.NAME, "parameters": asdict(settings)}
    (tmp_path / "run.json").write_text(json.dumps(values))
    model = load(tmp_path)
    assert model.system == "cdlm"
    assert (
        model.score("One fell.", SECOND).probability
        == load(matching.folder).score("One fell.", SECOND).probability
    )


def test_candidates_are_ranked_as_the_system_scores_them(answers: AnswerRun) -> None:
    model = load(answers.folder)
    ranking = model.rank("How many passengers?", CANDIDATES)
    assert model.system == "joint-ie"
    assert sorted(one.candidate for one in ranking) == [0, 1, 2]
    assert all(CANDIDATES[one.candidate] == one.text for one in ranking)
    assert ranking.to_frame()["probability"].is_monotonic_decreasing
    assert ranking.as_json() == {"ranking": ranking.to_frame().to_dict("records")}
    one = answer_selection.CandidateSet(
        id="own", question="How many passengers?", candidates=tuple(CANDIDATES), correct=(False,) * 3
    )
    scores = score_answers(model.ranker, [one], batch_size=4).scores[0]
    best = int(np.argmax(scores))
    assert (ranking[0].candidate, ranking[0].probability) == (
        best,
        pytest.approx(1 / (1 + np.exp(-scores[best])), rel=1e-3),
    )
    assert "<script" not in model.rank("<script>", ["<script>alert(1)</script>"])._repr_html_()
    with pytest.warns(TextCut, match=r"sentences: \d+ of \d+ tokens are not read; .* reads 31 of a sentence"):
        model.rank("How many?", ["word " * 60])
    for given, message in (
        ([], "there is no candidate"), (["a", ""], "candidate 1 is empty"),
        ("48", "candidates is one str; give a list of texts"), ({"48": "48"}, "candidates is one dict"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=message):
            model.rank("How many?", given)


def test_claims_are_judged_as_in_the_box(claims: VerificationRun) -> None:
    model = load(claims.folder)
    verdict = model.verify("A claim.", CANDIDATES[:2])
    assert verdict.label == max(verdict.probabilities, key=verdict.probabilities.get)
    assert list(verdict.probabilities) == list(LABELS[:2])
    assert len(verdict.to_frame()) == 2
    assert verdict.as_json()["shares"] == verdict.to_frame()["share"].tolist()
    assert load(claims.folder, system="claim-only").verify("A claim.", [])[:] == ()
    assert load(claims.folder, system="claim-only").verify("A claim.", ["One."])[0].share is None
    with pytest.warns(TextCut, match="evidence: 1 of 3 sentences are not read; .* reads the first 2"):
        verdict = model.verify("A claim.", CANDIDATES)
    assert [one.text for one in verdict] == CANDIDATES
    assert [one.share is None for one in verdict] == [False, False, True]
    with pytest.raises(ParameterError, match="the claim is empty"):
        model.verify("", [])
    with pytest.raises(ParameterError, match="evidence is one str; give a list of texts"):
        model.verify("A claim.", "Some evidence.")


def test_a_run_answers_the_same_once_it_is_shipped(
    claims: VerificationRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_folder, "FOLDER", tmp_path)
    shipped = load(ship_run(claims.folder, "storyworld/claims"))
    before = load(claims.folder).verify("A claim.", CANDIDATES[:2]).probabilities
    assert shipped.verify("A claim.", CANDIDATES[:2]).probabilities == pytest.approx(before, abs=1e-2)


def test_a_run_that_opened_models_of_another_opens_them_again(
    claims: VerificationRun, tmp_path: Path
) -> None:
    settings = replace(claims.settings, trained=str(claims.folder), run_folder=str(tmp_path))
    (tmp_path / "run.json").write_text(json.dumps({"name": claims.NAME, "parameters": asdict(settings)}))
    assert load(tmp_path).verify("A.", []).probabilities == load(claims.folder).verify("A.", []).probabilities


@pytest.mark.parametrize(
    ("trained", "opened"), [("bfloat16", "auto"), ("float16", "auto"), ("float32", "float32")]
)
def test_a_model_of_another_machine_reads_as_this_one_can(
    claims: VerificationRun, tmp_path: Path, trained: str, opened: str
) -> None:
    made = asdict(claims.settings) | {"precision": trained, "parallel": "ddp 3", "workers": 8}
    made |= {"trained": str(claims.folder), "run_folder": str(tmp_path)}
    (tmp_path / "run.json").write_text(json.dumps({"name": claims.NAME, "parameters": made}))
    settings = settings_of_run(fact_verification.Settings, str(tmp_path))
    assert (settings.precision, settings.parallel, settings.workers) == (opened, "", "auto")
    model = load(tmp_path)  # float16 cannot be had here
    assert model.reading["precision"] == opened
    there = load(claims.folder).verify("A.", []).probabilities
    assert model.verify("A.", []).probabilities == pytest.approx(there, abs=1e-2)


def test_a_model_that_learned_no_words_says_so() -> None:
    with pytest.warns(UserWarning, match="storyworld/paragraphs has learned no words, only paragraphs"):
        load("storyworld/paragraphs")
