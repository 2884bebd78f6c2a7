"""Answers and supporting sentences, scored as HotpotQA does (Yang et al. 2018; hotpot_evaluate_v1.py).

Every question has twelve scores in [0, 1]: `em`, `f1`, `prec` and `recall` of the answer (exact match, and
overlap of words with the gold answer, both normalised), the same of the supporting facts (`sp_...`, as sets),
and of both together (`joint_...`: products, and the F1 of the products). A score is the mean over all gold
questions; a question without prediction counts 0.

Three things are as in that script and may be unexpected:
- if either answer is yes, no or noanswer and the other one differs, shared words do not count: "no" against
  "no man's land" is 0;
- no overlap is F1 0, even if both are empty, so two answers of "the" have em 1 and f1 0, and so do two empty
  sets of facts;
- punctuation is that of ASCII, and removed, not replaced: "well-known" becomes "wellknown".
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

_OF_ONE = ("em", "f1", "prec", "recall")
HOTPOTQA_SCORES = tuple(f"{part}{score}" for part in ("", "sp_", "joint_") for score in _OF_ONE)
_ALL_OR_NOTHING = {"yes", "no", "noanswer"}
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def hotpotqa(gold: Sequence[Mapping[str, Any]], predictions: Mapping[str, Any]) -> dict[str, float]:
    """The official scores: the mean of each over the questions."""
    return {name: float(values.mean()) for name, values in scores_by_question(gold, predictions).items()}


def scores_by_question(
    gold: Sequence[Mapping[str, Any]], predictions: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Every score of every question, float64 (questions,), for intervals and paired tests.

    `gold`: the official records. `predictions`: `answer`, id -> text, and `sp`, id -> [[title, sentence],
    ...]; either may lack questions, and may have others, which are ignored.
    """
    answers, supporting = predictions["answer"], predictions["sp"]
    rows = [
        question_scores(one, answer=answers.get(one["_id"]), supporting=supporting.get(one["_id"]))
        for one in gold
    ]
    return {name: np.array([row[name] for row in rows]) for name in HOTPOTQA_SCORES}


def question_scores(
    gold: Mapping[str, Any], *, answer: str | None, supporting: Iterable[Sequence[Any]] | None
) -> dict[str, float]:
    """The scores of one question (its official record), named as in HOTPOTQA_SCORES. A missing answer (None)
    gives 0 in `em` to `recall` and `joint_...`, missing facts in `sp_...` and `joint_...`; duplicate facts
    count once."""
    scores = dict.fromkeys(HOTPOTQA_SCORES, 0.0)
    if answer is not None:
        words, gold_words = (normalise_answer(text).split() for text in (answer, gold["answer"]))
        shared = (Counter(words) & Counter(gold_words)).total()
        if words != gold_words and _ALL_OR_NOTHING & {" ".join(words), " ".join(gold_words)}:
            shared = 0
        right = words == gold_words
        scores |= _shares("", shared, len(words), len(gold_words), right=right)
    if supporting is not None:
        facts, expected = (set(map(tuple, some)) for some in (supporting, gold["supporting_facts"]))
        scores |= _shares("sp_", len(facts & expected), len(facts), len(expected), right=facts == expected)
    for name in ("em", "prec", "recall"):  # 0 wherever one of the two is missing
        scores[f"joint_{name}"] = scores[name] * scores[f"sp_{name}"]
    scores["joint_f1"] = _harmonic_mean(scores["joint_prec"], scores["joint_recall"])
    return scores


def normalise_answer(text: str) -> str:
    """Lower case, without punctuation, then without articles (a, an, the), words one space apart."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def _shares(part: str, shared: int, predicted: int, gold: int, *, right: bool) -> dict[str, float]:
    """Exact match, F1, precision and recall, under names that begin with `part`; 0 / 0 is 0."""
    precision = shared / predicted if predicted else 0.0
    recall = shared / gold if gold else 0.0
    values = (float(right), _harmonic_mean(precision, recall), precision, recall)
    return {f"{part}{name}": value for name, value in zip(_OF_ONE, values, strict=True)}


def _harmonic_mean(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
