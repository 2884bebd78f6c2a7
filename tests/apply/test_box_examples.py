"""The text in each box as it is opened: shipped models know its world, and what they say of it is right."""

import warnings
from collections.abc import Iterator

import pytest

from cdlm_lab.apply.loading import load
from cdlm_lab.data.marked import pasted_documents
from cdlm_lab.data.text_profile import PROFILE_FILE, foreign_to_a_model
from cdlm_lab.encoders.checkpoint import FOLDER
from cdlm_lab.tasks.coreference.view import example_of
from cdlm_lab.tasks.joint import answers as answer_selection
from cdlm_lab.tasks.joint import claims as fact_verification
from cdlm_lab.tasks.matching import ask as matching
from cdlm_lab.tasks.multihop import experiment as multihop_qa
from cdlm_lab.tasks.tagging import experiment as document_tagging
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
    documents = dict(pasted_documents(example_of("event").read_text(encoding="utf-8")))
    clusters = load("storyworld/coreference").clusters(documents)
    assert sorted(sorted(one.text for one in cluster) for cluster in clusters) == [
        ["collapsed", "dropped", "failure"],
        ["merger", "merger", "offer"],
    ]


def test_entities_are_of_the_same_world() -> None:
    folders = [file.parent for file in (FOLDER / "coreference").rglob(PROFILE_FILE)]
    assert folders
    assert foreign_to_a_model(folders, [example_of("entity").read_text(encoding="utf-8")]) == ""


@pytest.mark.parametrize("system", ["gru-han-deep", "cdlm"])
def test_two_reports_of_one_event_are_related(system: str) -> None:
    aligned = load("storyworld/matching", system=system).align(*matching.EXAMPLE)
    assert aligned.probability > 0.5


@pytest.mark.parametrize(("name", "system"), QUESTIONS)
def test_a_question_is_answered_right(name: str, system: str) -> None:
    documents = dict(pasted_documents(multihop_qa.EXAMPLE_DOCUMENTS))
    assert load(name, system=system).answer(multihop_qa.EXAMPLE_QUESTION, documents).text == TEACHER


@pytest.mark.parametrize("system", ["doc-arc", "bert-lstm"])
def test_names_are_tagged(system: str) -> None:
    tagged = load("storyworld/tagging", system=system).tag(document_tagging.EXAMPLE_TEXT)
    assert ("Yessel Brandir", "PER") in {(one.text, one.label) for one in tagged}


@pytest.mark.parametrize("system", ["pairwise", "joint-ie"])
def test_the_right_candidate_is_first(system: str) -> None:
    candidates = list(answer_selection.EXAMPLE_CANDIDATES)
    ranking = load("storyworld/answers", system=system).rank(answer_selection.EXAMPLE_QUESTION, candidates)
    assert ranking[0].text == "The blast killed 75 miners at once."
    assert ranking[0].probability > 0.9 > 0.1 > ranking[1].probability


@pytest.mark.parametrize(("number", "label"), [("699", "supported"), ("412", "refuted")])
def test_a_claim_is_judged_right(number: str, label: str) -> None:
    claim = fact_verification.EXAMPLE_CLAIM.replace("699", number)
    verdict = load("storyworld/claims").verify(claim, list(fact_verification.EXAMPLE_EVIDENCE))
    assert verdict.label == label
    assert max(verdict, key=lambda one: one.share or 0).evidence == 0
    assert load("storyworld/claims", system="claim-only").verify(claim, []).foreign == ""
