"""HotpotQA's scores: worked fractions, a second definition word by word, and what is refused."""

import random
import re
from collections import Counter

import numpy as np
import pytest

from cdlm_lab.metrics.significance import compare, mean_of_sums
from cdlm_lab.tasks.multihop import metrics as question_answering
from cdlm_lab.tasks.multihop.metrics import HOTPOTQA_SCORES, hotpotqa, question_scores, scores_by_question


def gold(answer: str, *facts: tuple[str, int], name: str = "q1") -> dict:
    return {"_id": name, "answer": answer, "supporting_facts": [list(fact) for fact in facts]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Cat's\tPyjamas!", "cats pyjamas"),
        ("a-b", "ab"),
        ("A.", ""),
        ("the.the", "thethe"),
        ("an apple, the a", "apple"),
        ("Théâtre a\u00a0an b", "théâtre b"),
        ("«a» –", "« » –"),
        ("the_end", "theend"),
        ("antheme atheist", "antheme atheist"),
        ("İ", "i̇"),
        ("", ""),
    ],
)
def test_normalised(text, expected):
    assert question_answering.normalise_answer(text) == expected


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


def test_both_together():
    # Answer: 2 of 3 words, both gold ones. Facts: 1 of 4, which is 1 of 2.
    facts = [A0, A1, B0, ("C", 0)]
    scores = question_scores(gold("blue mill", A0, B1), answer="old blue mill", supporting=facts)
    joint = [scores[f"joint_{name}"] for name in ("em", "prec", "recall", "f1")]
    precision, recall = 2 / 3 * 1 / 4, 1 * 1 / 2
    assert joint == pytest.approx([0, precision, recall, 2 * (1 / 6) * (1 / 2) / (1 / 6 + 1 / 2)])
    assert joint[-1] == pytest.approx(1 / 4)  # not 4/5 * 1/3, the F1s multiplied
    right = question_scores(gold("blue mill", A0), answer="The Blue Mill", supporting=iter([A0]))
    assert right == dict.fromkeys(HOTPOTQA_SCORES, 1.0)
    wrong = question_scores(gold("blue mill", A0), answer="Blue Mill", supporting=[A0, A1])
    assert (wrong["em"], wrong["sp_em"], wrong["joint_em"], wrong["joint_prec"]) == (1, 0, 0, 1 / 2)


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


def test_values_of_questions_can_be_tested_in_pairs():
    values = scores_by_question(FOUR, PREDICTED)
    assert values["recall"].tolist() == [1, 1, 0, 1 / 2]
    assert values["joint_prec"].tolist() == [1, 0, 0, 1 / 2]
    assert {(each.dtype.name, each.shape) for each in values.values()} == {("float64", (4,))}
    worse = scores_by_question(FOUR, {"answer": {"q1": "Ghent"}, "sp": {}})
    a, b = (np.stack([each["f1"], np.ones(4)], axis=1) for each in (values, worse))
    compared = compare(a, b, mean_of_sums, n_resamples=200)
    assert compared.difference == pytest.approx((1 + 2 / 3) / 4)
    assert compared.clusters == 4


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


ONE = {"_id": "q1", "answer": "x"}
NO_GOLD = "only questions with gold can be scored"
NO_TEXT, NO_FACTS = "where the text of an answer belongs", "where [[title, sentence], ...] belongs"


@pytest.mark.parametrize(
    ("records", "predictions", "complaint"),
    [
        ([], PREDICTED, "there are no gold questions to score"),
        ([{"answer": "x"}], PREDICTED, f"gold[0] has no '_id'; {NO_GOLD}"),
        ([{"_id": "q1", "supporting_facts": []}], PREDICTED, "gold question 'q1' has no 'answer';"),
        ([ONE], PREDICTED, f"gold question 'q1' has no 'supporting_facts'; {NO_GOLD}"),
        ([gold(None)], PREDICTED, f"gold question 'q1': None {NO_TEXT}"),
        ([{**FOUR[0], "supporting_facts": None}], PREDICTED, f"gold question 'q1': None {NO_FACTS}"),
        (FOUR, {"answer": {}}, "the predictions have no 'sp': {id: ...}; give both 'answer' and 'sp'"),
        (FOUR, {"answer": [], "sp": {}}, "the predictions have no 'answer': {id: ...}; give both"),
        (FOUR, {"answer": {"q2": None}, "sp": {}}, "the predicted 'answer' of question 'q2' is None; leave"),
        (FOUR, {"answer": {}, "sp": {"q3": None}}, "the predicted 'sp' of question 'q3' is None; leave it"),
        (FOUR, {"answer": {"q2": 7}, "sp": {}}, f"the answer to gold question 'q2': 7 {NO_TEXT}"),
        (FOUR, {"answer": {}, "sp": {"q3": [7]}}, f"the facts for gold question 'q3': [7] {NO_FACTS}"),
        (FOUR, {"answer": {}, "sp": {"q3": [[["A"], 0]]}}, "for gold question 'q3': [[['A'], 0]]"),
    ],
)
def test_what_is_refused(records, predictions, complaint):
    for score in (hotpotqa, scores_by_question):
        with pytest.raises(ValueError, match=re.escape(complaint)):
            score(records, predictions)
