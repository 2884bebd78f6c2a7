"""Sentences first: which pairs are read in whole documents, what the others keep, what it costs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_coreference import PAIRS, SETTINGS, encoder  # noqa: F401

from cdlm_lab.examples.mention_pairs import corefer, pairs_within
from cdlm_lab.experiments import coreference as sentences_first
from cdlm_lab.experiments.coreference import (
    FirstGo,
    Prepared,
    dev_judge,
    first_go,
    in_full,
    in_two_goes,
    losses_told,
    passing_threshold,
    predict,
    prediction_examples,
    prepare,
    score_pairs,
    scoring_form,
    what_sentences_lose,
)
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import open_run

LOST = 0.3


@pytest.fixture(scope="module")
def prepared(encoder: str) -> Prepared:  # noqa: F811
    return prepare(
        settings=replace(SETTINGS, context="documents"),
        pairs=replace(PAIRS, first_by_sentences=LOST, precision="float32"),
        model=encoder,
        window=8,
        attention="auto",
    )


@pytest.mark.parametrize(("lost", "expected"), [(0, 0.2), (0.24, 0.2), (0.25, 0.4), (0.5, 0.6), (0.99, 0.8)])
def test_the_threshold_is_the_largest_that_loses_no_more(lost: float, expected: float):
    corefer = np.array([True, False, True, False, True, False, True])
    scores = np.array([0.8, 0.9, 0.2, 0.1, 0.6, 0.3, 0.4])
    threshold = passing_threshold(scores, corefer, lost=lost)
    assert threshold == expected
    assert (scores[corefer] < threshold).mean() <= lost
    assert passing_threshold(scores, np.zeros(7, dtype=bool), lost=lost) == 0, "nothing to lose, all is read"


def test_equal_scores_are_read_together_whatever_they_are():
    """Ties do not look at labels: a pair that does not corefer is read like one that does."""
    scores = np.array([0.5, 0.5, 0.5, 0.7])
    first = FirstGo(scores=scores, threshold=passing_threshold(scores, scores < 0.6, lost=0.5))
    assert first.read.all()


def test_what_is_passed_over_keeps_its_sentences_and_the_rest_is_read(prepared: Prepared, tmp_path: Path):
    form = scoring_form(prepared) | {"name": ""}
    examples = prediction_examples(prepared, prepared.documents["test"], prepared.groups["test"])
    whole = score_pairs(prepared.model, examples, file=None, **form)
    alone = score_pairs(prepared.model, replace(examples, context="sentences"), file=None, **form)
    first = first_go(prepared, "test", tmp_path)
    np.testing.assert_allclose(first.scores, alone, rtol=1e-5)
    assert 0 < first.read.sum() < len(first.read), "some are read and some are not"
    found = in_two_goes(prepared.model, examples, first, file=tmp_path / "test.npy", **form)
    np.testing.assert_allclose(found, np.where(first.read, whole, alone), rtol=1e-4)
    np.testing.assert_allclose(
        in_full(prepared.model, examples, first, file=tmp_path / "test.npy", **form), whole, rtol=1e-4
    )
    of_groups = predict(prepared, "test", tmp_path)
    pairs = [one.scores[np.triu_indices(len(one.scores), 1)] for one in of_groups]
    np.testing.assert_allclose(np.concatenate(pairs), found, rtol=1e-6)


def test_the_threshold_is_of_dev_alone_and_what_is_lost_is_told(
    prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for split in ("dev", "test"):
        predict(prepared, split, tmp_path / "scores")
    monkeypatch.setattr(sentences_first, "score_pairs", only_what_is_kept(sentences_first.score_pairs))
    dev, test = (first_go(prepared, split, tmp_path / "scores") for split in ("dev", "test"))
    assert dev.threshold == test.threshold
    gold = corefer(prepared.groups["dev"], pairs_within(prepared.groups["dev"]))
    assert (dev.scores[gold] < dev.threshold).mean() <= LOST
    monkeypatch.undo()

    rows = what_sentences_lose(prepared, tmp_path / "scores")
    assert [row["split"] for row in rows] == ["dev", "test"]
    assert rows[0]["corefer_passed_over"] <= LOST * rows[0]["corefer"]
    assert rows[1]["read"] == test.read.sum()
    assert rows[0]["conll_f1"] == pytest.approx(dev_judge(prepared)(prepared.model)), "as while training"
    plain = replace(prepared, pairs=replace(prepared.pairs, first_by_sentences=0.0))
    assert rows[0]["conll_f1_in_full"] == pytest.approx(dev_judge(plain)(prepared.model))
    assert what_sentences_lose(plain, tmp_path / "scores") == []

    run = open_run(tmp_path / "run", name="x", parameters={"seed": 0})
    lines = losses_told(run.write_report(scores={}, data={}, tables={"sentences_first": rows}))
    assert lines[0].startswith(f"dev: whole documents read for {dev.read.sum():,} of {len(gold):,} pairs (")
    assert "with all pairs read" in lines[0]
    assert "with all pairs read" not in lines[1], "test is looked at once, with the clusters of the run"


def only_what_is_kept(score):
    """Scores only where a file holds them all."""

    def checked(model, examples, *, file, **form):
        assert file.is_file()
        return score(model, examples, file=file, **form)

    return checked


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_share_that_cannot_be_is_refused(share: float):
    with pytest.raises(ParameterError, match=f"first_by_sentences is {share}; write the share of"):
        replace(PAIRS, first_by_sentences=share)


def test_sentences_alone_have_no_second_go(encoder: str):  # noqa: F811
    pairs = replace(PAIRS, first_by_sentences=0.01)
    with pytest.raises(ParameterError, match="but context is 'sentences', which is read in one go"):
        prepare(settings=SETTINGS, pairs=pairs, model=encoder, window=8, attention="auto")
