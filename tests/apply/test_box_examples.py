"""The text in each box as it is opened: shipped models know its world, and what they say of it is right."""

import warnings
from collections.abc import Iterator
from dataclasses import replace

import pytest

from cdlm_lab.apply.loading import load
from cdlm_lab.data.text_profile import PROFILE_FILE, foreign_to_a_model
from cdlm_lab.encoders.model_folder import FOLDER
from cdlm_lab.views.answers import ForeignText

TEACHER = "Klivaholt University"
QUESTIONS = (
    ("storyworld/questions", ""),
    *(("storyworld/questions-compared", s) for s in ("longformer", "cdlm")),
)


@pytest.fixture(autouse=True)
def _none_is_foreign() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ForeignText)
        yield


def test_events_are_clustered_right() -> None:
    model = load("storyworld/coreference")
    clusters = model.clusters(**model.example)
    assert sorted(sorted(one.text for one in cluster) for cluster in clusters) == [
        ["collapsed", "dropped", "failure"],
        ["merger", "merger", "offer"],
    ]


def test_entities_are_of_the_same_world() -> None:
    folders = [file.parent for file in (FOLDER / "coreference").rglob(PROFILE_FILE)]
    assert folders
    entities = replace(load("storyworld/coreference"), kind="entity")
    assert sum(map(len, entities.clusters(**entities.example))) >= 6
    assert foreign_to_a_model(folders, entities.example["documents"].values()) == ""


@pytest.mark.parametrize("system", ["gru-han-deep", "cdlm"])
def test_two_reports_of_one_event_are_related(system: str) -> None:
    model = load("storyworld/matching", system=system)
    aligned = model.align(**model.example)
    assert aligned.probability > 0.5


@pytest.mark.parametrize(("name", "system"), QUESTIONS)
def test_a_question_is_answered_right(name: str, system: str) -> None:
    model = load(name, system=system)
    answer = model.answer(**model.example)
    assert answer.text == TEACHER == model.example["documents"][answer.title][answer.start : answer.end]


@pytest.mark.parametrize("system", ["doc-arc", "bert-lstm"])
def test_names_are_tagged(system: str) -> None:
    model = load("storyworld/tagging", system=system)
    tagged = model.tag(**model.example)
    assert ("Yessel Brandir", "PER") in {(one.text, one.label) for one in tagged}


@pytest.mark.parametrize("system", ["pairwise", "joint-ie"])
def test_the_right_candidate_is_first(system: str) -> None:
    model = load("storyworld/answers", system=system)
    ranking = model.rank(**model.example)
    assert ranking[0].text == "The blast killed 75 miners at once."
    assert ranking[0].probability > 0.9 > 0.1 > ranking[1].probability


@pytest.mark.parametrize(("number", "label"), [("699", "supported"), ("412", "refuted")])
def test_a_claim_is_judged_right(number: str, label: str) -> None:
    model = load("storyworld/claims")
    claim = model.example["claim"].replace("699", number)
    verdict = model.verify(claim, model.example["evidence"])
    assert verdict.label == label
    assert max(verdict, key=lambda one: one.share or 0).evidence == 0
    assert load("storyworld/claims", system="claim-only").verify(claim, []).foreign == ""
