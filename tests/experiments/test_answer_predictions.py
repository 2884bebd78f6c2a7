"""Scores of candidates: in whatever batches those of each group by itself, of the best of another model in
the fixed order, and back from the disk."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cdlm_lab.data.records import CandidateSet
from cdlm_lab.examples.candidates import fixed_order
from cdlm_lab.experiments import answer_selection as answer_predictions
from cdlm_lab.experiments.answer_selection import (
    ANSWER_SYSTEMS,
    AnswerModels,
    AnswerPredictions,
    Ranker,
    new_ranker,
    rerank_answers,
    score_answers,
)
from cdlm_lab.models.joint import scores_of

TEXT = "the mayor of a town left and nobody saw the storm that hit its harbour at night"
WORDS = TEXT.split()
NAN = float("nan")


def question(name: str, count: int, *, right: int = 0) -> CandidateSet:
    """Candidates of different lengths."""
    return CandidateSet(
        id=name,
        question=f"Who left town {name}?",
        candidates=tuple(" ".join(WORDS[at : at + 2 + 3 * at]) for at in range(count)),
        correct=tuple(at == right for at in range(count)),
    )


SETS = [question("a", 4), question("b", 2), question("c", 3)]


def ranker_of(name: str) -> Ranker:
    models = AnswerModels(candidates=3, sentence_length=8, pairwise_length=8)
    return new_ranker("storyworld/longformer", models.head_of(ANSWER_SYSTEMS[name]), seed=0)


@pytest.fixture(scope="module")
def pairwise() -> Ranker:
    return ranker_of("pairwise")


@pytest.fixture(scope="module")
def joint() -> Ranker:
    return ranker_of("joint-ae")


def assert_same(found: AnswerPredictions, expected: list[np.ndarray]) -> None:
    """But for rounding, as a batch may change the last digits."""
    for one, other in zip(found.scores, expected, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


@torch.inference_mode()
def alone(ranker: Ranker, sets: list[CandidateSet], *, k: int) -> list[np.ndarray]:
    """Each group by itself, in the order of the hash."""
    found = []
    for one in sets:
        order, scores = fixed_order(one.candidates, key=one.id).tolist(), np.full(len(one.candidates), NAN)
        for first in range(0, len(order), k):
            members = order[first : first + k]
            group = replace(
                one,
                candidates=tuple(one.candidates[at] for at in members),
                correct=tuple(one.correct[at] for at in members),
            )
            (example,) = ranker.examples([group])
            batch = ranker.collate([example])
            del batch["labels"]
            logits = ranker.model(**batch).logits.reshape(-1, 2)
            scores[members] = scores_of(logits)[: len(members)]
        found.append(scores)
    return found


def test_candidates_are_scored_in_groups_of_the_fixed_order(joint: Ranker, pairwise: Ranker):
    for ranker, k in ((joint, 3), (pairwise, 1)):
        found = score_answers(ranker, SETS, batch_size=2)
        assert [len(scores) for scores in found.scores] == [4, 2, 3]
        assert_same(found, alone(ranker, SETS, k=k))
        assert len(np.unique(np.concatenate(found.scores))) == 9, "they differ"


def test_neither_batches_nor_the_order_of_the_source_change_a_score(joint: Ranker):
    found = score_answers(joint, SETS, batch_size=1)
    assert_same(score_answers(joint, SETS, batch_size=4), list(found.scores))
    turned = [
        replace(one, candidates=one.candidates[::-1], correct=one.correct[::-1]) for one in reversed(SETS)
    ]
    again = score_answers(joint, turned, batch_size=2)
    assert_same(again, [scores[::-1] for scores in reversed(found.scores)])


def test_labels_are_not_read(joint: Ranker):
    found = score_answers(joint, SETS, batch_size=2)
    lied = [replace(one, correct=one.correct[::-1]) for one in SETS]
    assert_same(score_answers(joint, lied, batch_size=2), list(found.scores))


def test_groups_are_read_longest_first(joint: Ranker, monkeypatch: pytest.MonkeyPatch):
    lengths, read = [], answer_predictions._scores
    monkeypatch.setattr(
        answer_predictions,
        "_scores",
        lambda model, collate, examples: (
            lengths.append([len(one["input_ids"]) for one in examples]) or read(model, collate, examples)
        ),
    )
    score_answers(joint, SETS, batch_size=2)
    assert [len(batch) for batch in lengths] == [2, 2]
    first, second = lengths
    assert first + second == sorted(first + second, reverse=True)


def test_the_best_of_another_model_are_read_in_the_fixed_order(joint: Ranker):
    others = [np.array([0.0, 1.0]), np.array([1.0, 2.0, 3.0])]
    kept = replace(SETS[0], candidates=SETS[0].candidates[1:], correct=SETS[0].correct[1:])
    (expected,) = alone(joint, [kept], k=3)
    for best in ([2.0, 1.0, 3.0], [1.0, 3.0, 2.0]):  # in whatever order they were
        pairwise = AnswerPredictions(sets=SETS, scores=[np.array([-9.0, *best]), *others])
        found = rerank_answers(joint, pairwise, batch_size=2)
        assert np.isnan(found.scores[0]).tolist() == [True, False, False, False]
        assert found.scores[0][1:] == pytest.approx(expected, abs=1e-5)
        assert not np.isnan(np.concatenate(found.scores[1:])).any()


def test_of_equal_candidates_the_first_of_the_fixed_order_are_ranked_anew(joint: Ranker):
    tied = AnswerPredictions(sets=SETS[:1], scores=[np.zeros(4)])
    (scores,) = rerank_answers(joint, tied, batch_size=1).scores
    left_out = fixed_order(SETS[0].candidates, key="a")[3]
    assert np.flatnonzero(np.isnan(scores)).tolist() == [left_out]


def test_one_ranking_of_those_ranked_anew_and_the_others():
    sets = [question("a", 4)]
    pairwise = AnswerPredictions(sets=sets, scores=[np.array([0.1, 0.9, 0.8, 0.2])])
    best = AnswerPredictions(sets=sets, scores=[np.array([NAN, -5.0, -4.0, NAN])])
    (scores,) = best.after(pairwise).scores
    assert np.argsort(-scores).tolist() == [2, 1, 3, 0]
    ((values, labels),) = best.after(pairwise).groups()
    assert values.tolist() == scores.tolist()
    assert labels.tolist() == [True, False, False, False]


def test_what_was_read_together():
    sets = [question("a", 4, right=2), question("b", 2, right=1)]
    scores = [np.array([0.0, 1.0, 2.0, 3.0]), np.array([4.0, 5.0])]
    found, labels, numbers = AnswerPredictions(sets=sets, scores=scores).read_together(3)
    order = fixed_order(sets[0].candidates, key="a").tolist()
    assert found[0].tolist() == order[:3]
    assert found[1, 0] == order[3]
    assert labels[0].tolist() == [int(at == 2) for at in order[:3]]
    assert labels[1].tolist() == [int(order[3] == 2), -100, -100]
    assert sorted(found[2][labels[2] >= 0].tolist()) == [4.0, 5.0]
    assert found[2][labels[2] == 1].tolist() == [5.0]
    assert numbers.tolist() == [0, 0, 1]


def test_scores_come_back_as_they_were(tmp_path: Path):
    file = tmp_path / "new" / "test.jsonl"
    scores = [np.array([1 / 3, NAN, -7.25, 1e-300]), np.array([NAN, 2.0])]
    AnswerPredictions(sets=SETS[:2], scores=scores).save(file)
    again = AnswerPredictions.load(file, sets=SETS[:2])
    for one, other in zip(again.scores, scores, strict=True):
        assert one.dtype == np.float64
        np.testing.assert_array_equal(one, other)
    assert json.loads(file.read_text().split("\n")[0]) == {"id": "a", "scores": [1 / 3, None, -7.25, 1e-300]}
    for others in (SETS[:1], [SETS[1], SETS[0]], [question("a", 3), SETS[1]]):
        with pytest.raises(ValueError, match=r"test\.jsonl is of other questions, so of another run"):
            AnswerPredictions.load(file, sets=others)
