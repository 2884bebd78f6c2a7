"""HotpotQA's scores: worked fractions, a second definition word by word."""

import random
import re
from collections import Counter

import pytest

from cdlm_lab.tasks.multihop.metrics import HOTPOTQA_SCORES, hotpotqa, question_scores


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


# A second definition, from what the official script does step by step, in the order in which it does it.
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def slow_normalised(text: str) -> str:
    text = "".join(character for character in text.lower() if character not in PUNCTUATION)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def slow_answer(predicted: str, expected: str) -> tuple[float, float, float, float]:
    predicted, expected = slow_normalised(predicted), slow_normalised(expected)
    em = 1.0 if predicted == expected else 0.0
    for special in ("yes", "no", "noanswer"):
        if special in (predicted, expected) and predicted != expected:
            return em, 0, 0, 0
    left = expected.split()
    same = 0
    for word in predicted.split():
        if word in left:
            left.remove(word)
            same += 1
    if same == 0:
        return em, 0, 0, 0
    precision, recall = same / len(predicted.split()), same / len(expected.split())
    return em, (2 * precision * recall) / (precision + recall), precision, recall


def slow_facts(predicted: list, expected: list) -> tuple[float, float, float, float]:
    predicted, expected = {tuple(fact) for fact in predicted}, {tuple(fact) for fact in expected}
    tp = sum(fact in expected for fact in predicted)
    fp = sum(fact not in expected for fact in predicted)
    fn = sum(fact not in predicted for fact in expected)
    precision = tp / (tp + fp) if tp + fp > 0 else 0.0
    recall = tp / (tp + fn) if tp + fn > 0 else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
    return (1.0 if fp + fn == 0 else 0.0), f1, precision, recall


def slow_hotpotqa(records: list[dict], predictions: dict) -> dict[str, float]:
    sums = Counter(dict.fromkeys(HOTPOTQA_SCORES, 0.0))
    for record in records:
        answer = facts = None
        if record["_id"] in predictions["answer"]:
            answer = slow_answer(predictions["answer"][record["_id"]], record["answer"])
            sums.update(dict(zip(("em", "f1", "prec", "recall"), answer, strict=True)))
        if record["_id"] in predictions["sp"]:
            facts = slow_facts(predictions["sp"][record["_id"]], record["supporting_facts"])
            sums.update(dict(zip(("sp_em", "sp_f1", "sp_prec", "sp_recall"), facts, strict=True)))
        if answer is not None and facts is not None:
            precision, recall = answer[2] * facts[2], answer[3] * facts[3]
            f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
            both = {"em": answer[0] * facts[0], "f1": f1, "prec": precision, "recall": recall}
            sums.update({f"joint_{name}": value for name, value in both.items()})
    return {name: value / len(records) for name, value in sums.items()}


WORDS = ["a", "An", "THE", "the", "yes", "No", "noanswer", "no", "mill", "Mill", "blue", "B.", "été", "«a»"]
GAPS = ["", " ", " ", "  ", "-", ", ", ".", "'", "\t", "\u00a0", "_", "—", "\n"]


def any_answer(draw: random.Random) -> str:
    if draw.random() < 0.2:
        return draw.choice(["", " ", ".", "yes", "no", "Yes!", "noanswer", "the no", "No answer"])
    return "".join(draw.choice(WORDS) + draw.choice(GAPS) for _ in range(draw.randint(0, 5)))


def any_facts(draw: random.Random) -> list[list]:
    return [[draw.choice("ABa"), draw.randint(0, 2)] for _ in range(draw.randint(0, 4))]


def test_thousands_of_random_files_equal_the_second_definition():
    draw = random.Random(7)
    seen: Counter = Counter()
    for _ in range(3000):
        names = [f"q{number}" for number in range(draw.randint(1, 4))]
        records = [gold(any_answer(draw), *any_facts(draw), name=name) for name in names]
        answers = {
            one["_id"]: one["answer"].upper() if draw.random() < 0.3 else any_answer(draw)
            for one in records
            if draw.random() < 0.85
        }
        facts = {
            one["_id"]: one["supporting_facts"][::-1] if draw.random() < 0.3 else any_facts(draw)
            for one in records
            if draw.random() < 0.85
        }
        predictions = {"answer": answers, "sp": facts}
        assert hotpotqa(records, predictions) == pytest.approx(slow_hotpotqa(records, predictions), abs=1e-14)
        for one in records:
            alone = slow_hotpotqa([one], predictions)
            name = one["_id"]
            assert question_scores(one, answer=answers.get(name), supporting=facts.get(name)) == alone
            seen[(name in answers, name in facts)] += 1
            seen["partial"] += 0 < alone["joint_f1"] < 1
            seen["all"] += alone["joint_em"] == 1
            seen["empty"] += alone["em"] == 1 and alone["f1"] == 0
            seen["special"] += slow_normalised(one["answer"]) in ("yes", "no", "noanswer")
    assert len(seen) == 8
    assert min(seen.values()) > 100, "every case is among them"
