"""Attention between texts that is cut, by each verb: another text then says nothing."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from cdlm_lab.apply.loading import load

STORY = {
    "first": "The blast killed 75 miners. Rungerens Doendyholt, 63, a lecturer, had warned of it.",
    "second": "The lecturer [MASK] Doendyholt had warned of the blast. It killed [MASK] miners.",
}
BACKWARDS = {**STORY, "first": " ".join(reversed(STORY["first"].split()))}  # of as many tokens


@pytest.fixture(autouse=True)
def _no_warnings_of_foreign_texts() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def shares(filled: Any) -> list[float]:
    return [word.probability for blank in filled for word in blank.words]


def test_blanks_are_filled_without_the_other_text(cdlm) -> None:
    assert shares(cdlm.fill(STORY)) != pytest.approx(shares(cdlm.fill(BACKWARDS)), abs=1e-4)
    alone = shares(cdlm.fill(STORY, cut="documents"))
    assert alone == pytest.approx(shares(cdlm.fill(BACKWARDS, cut="documents")), abs=1e-6)
    assert shares(cdlm.fill(STORY, cut={"layers": [0, 1, 2]})) == pytest.approx(alone, abs=1e-6)
    assert shares(cdlm.fill(STORY, cut={"layers": [2]})) != pytest.approx(alone, abs=1e-4)
    assert shares(cdlm.fill(STORY, cut={"layers": [2], "heads": [0]})) != pytest.approx(alone, abs=1e-4)
    assert shares(cdlm.fill(STORY)) == shares(cdlm.fill(STORY, cut=None)), "nothing is left of the cut"


def test_words_of_other_texts_get_no_attention_where_it_is_cut(cdlm) -> None:
    texts = {name: text.replace("[MASK]", "the") for name, text in STORY.items()}
    cut = cdlm.attention(texts, (0, "lecturer"), cut="documents")
    assert {word.score for word in cut} == {1.0}, "exp(0)"
    below = cdlm.attention(texts, (0, "lecturer"), cut={"layers": [0, 1]})
    assert len({word.score for word in below}) > 5


@pytest.mark.parametrize(
    ("name", "verb", "form"),
    [
        ("storyworld/matching", "score", {"system": "cdlm"}),
        ("storyworld/questions", "answer", {}),
        ("storyworld/coreference", "clusters", {}),
    ],
)
def test_models_of_tasks_read_documents_apart(name: str, verb: str, form: dict[str, str]) -> None:
    model = load(name, **form)
    given = {key: value for key, value in model.example.items() if key != "threshold"}
    whole, cut, random = (
        getattr(model, verb)(**given, cut=one).as_json() for one in (None, "documents", "random")
    )
    again = getattr(model, verb)(**given).as_json()
    if verb == "clusters":  # its answer is coarser than the scores that it is made from
        whole, cut, random, again = (
            scores_of(model, given, one) for one in (None, "documents", "random", None)
        )
    assert whole == again
    assert whole != cut != random


def scores_of(model: Any, given: dict[str, Any], cut: str | None) -> list[float]:
    model.clusters(**given, cut=cut)
    return model._scored[0].prediction.scores.ravel().tolist()


def test_a_model_that_reads_documents_each_by_itself_refuses_in_one_line() -> None:
    model = load("storyworld/matching", system="gru-han-deep")
    with pytest.raises(ValueError, match="cannot be cut in a"):
        model.score("One blast.", "Another blast.", cut="documents")
