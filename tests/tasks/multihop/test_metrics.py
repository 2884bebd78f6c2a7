"""HotpotQA's scores: worked fractions."""

import pytest

from cdlm_lab.tasks.multihop.metrics import hotpotqa, question_scores


def gold(answer: str, *facts: tuple[str, int], name: str = "q1") -> dict:
    return {"_id": name, "answer": answer, "supporting_facts": [list(fact) for fact in facts]}


@pytest.mark.parametrize(
    ("predicted", "expected", "scores"),
    [
        ("the Blue Mill", "Blue mill.", (1, 1, 1, 1)),
        ("blue mill novel x", "Blue Mill", (0, 2 / 3, 2 / 4, 2 / 2)),
        ("mill", "old blue mill", (0, 1 / 2, 1, 1 / 3)),
        ("mill mill mill", "mill mill blue", (0, 2 / 3, 2 / 3, 2 / 3)),
        ("mill blue", "blue mill", (0, 1, 1, 1)),
        ("Ghent", "Rome", (0, 0, 0, 0)),
        ("", "Rome", (0, 0, 0, 0)),
        ("the", "An!", (1, 0, 0, 0)),
        ("Yes.", "yes", (1, 1, 1, 1)),
        ("no", "no man's land", (0, 0, 0, 0)),
        ("yes it is", "yes", (0, 0, 0, 0)),
        ("noanswer here", "noanswer", (0, 0, 0, 0)),
        ("NoAnswer", "the noanswer", (1, 1, 1, 1)),
        ("oh yes", "yes indeed", (0, 1 / 2, 1 / 2, 1 / 2)),
        ("yes", "no", (0, 0, 0, 0)),
    ],
)
def test_worked_answers(predicted, expected, scores):
    of_question = question_scores(gold(expected), answer=predicted, supporting=None)
    assert tuple(of_question[name] for name in ("em", "f1", "prec", "recall")) == pytest.approx(scores)


A0, A1, B0, B1 = ("A", 0), ("A", 1), ("B", 0), ("B", 1)


@pytest.mark.parametrize(
    ("predicted", "expected", "scores"),
    [
        ([A0, B1], [B1, A0], (1, 1, 1, 1)),
        ([A0, A0, B1], [A0, B1, B1], (1, 1, 1, 1)),
        ([A0, A1, B0], [A0, B1], (0, 2 / 5, 1 / 3, 1 / 2)),
        ([A0], [A0, B1], (0, 2 / 3, 1, 1 / 2)),
        ([A1, B0], [A0, B1], (0, 0, 0, 0)),
        ([], [A0], (0, 0, 0, 0)),
        ([A0], [], (0, 0, 0, 0)),
        ([], [], (1, 0, 0, 0)),
        ([("a", 0)], [A0], (0, 0, 0, 0)),
    ],
)
def test_worked_facts(predicted, expected, scores):
    of_question = question_scores(gold("x", *expected), answer=None, supporting=predicted)
    assert [of_question.pop(f"sp_{name}") for name in ("em", "f1", "prec", "recall")] == pytest.approx(scores)
    assert not any(of_question.values())


FOUR = [
    gold("Ghent", A0, B1, name="q1"),
    gold("yes", A0, name="q2"),
    gold("Rome", B0, name="q3"),
    gold("old mill", A0, name="q4"),
]
PREDICTED = {
    "answer": {"q1": "Ghent", "q2": "yes", "q4": "mill", "other": "x"},
    "sp": {"q1": [["A", 0]], "q3": [["B", 0]], "q4": [["A", 0], ["A", 1]], "other": []},
}


def test_worked_means_over_all_gold_questions():
    """q2 has no facts, q3 no answer: 0 in these and in both together, and still divided by four."""
    means = hotpotqa(FOUR, PREDICTED)
    of_one = ("em", "f1", "prec", "recall")
    assert list(means) == [*of_one, *(f"sp_{name}" for name in of_one), *(f"joint_{name}" for name in of_one)]
    four_times = {
        "em": 1 + 1 + 0 + 0,
        "f1": 1 + 1 + 0 + 2 / 3,
        "prec": 1 + 1 + 0 + 1,
        "recall": 1 + 1 + 0 + 1 / 2,
        "sp_em": 0 + 0 + 1 + 0,
        "sp_f1": 2 / 3 + 0 + 1 + 2 / 3,
        "sp_prec": 1 + 0 + 1 + 1 / 2,
        "sp_recall": 1 / 2 + 0 + 1 + 1,
        "joint_em": 0,
        "joint_f1": 2 / 3 + 0 + 0 + 1 / 2,
        "joint_prec": 1 + 0 + 0 + 1 / 2,
        "joint_recall": 1 / 2 + 0 + 0 + 1 / 2,
    }
    assert means == pytest.approx({name: total / 4 for name, total in four_times.items()})
    assert set(hotpotqa(FOUR, {"answer": {}, "sp": {}}).values()) == {0.0}
    twice = hotpotqa([FOUR[0], FOUR[0], FOUR[2]], PREDICTED)  # a gold question counts as often as it is there
    assert (twice["em"], twice["sp_em"]) == pytest.approx((2 / 3, 1 / 3))
