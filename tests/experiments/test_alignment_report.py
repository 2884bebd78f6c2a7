"""Alignment scores by hand: oracle, joint, released, random, over seeds; lists with unread sentences."""

from dataclasses import replace

import numpy as np
import pytest

from cdlm_lab.data.document_pairs import DocumentPair, PairDocument
from cdlm_lab.experiments.sentence_alignment import (
    Aligned,
    AlignmentSettings,
    alignment_table,
    ranked,
    write_alignment_report,
)
from cdlm_lab.report import open_run


def pair(name: str, sentences: int, *true: int) -> DocumentPair:
    first = PairDocument(id=f"{name} first", sentences=tuple(f"{name} {n}" for n in range(sentences)))
    second = PairDocument(id=f"{name} second", sentences=("x",))
    return DocumentPair(id=name, first=first, second=second, related=True, aligned=true, cluster=name)


PAIRS = [pair("p", 4, 1), pair("q", 2, 0)]
# GRU-HAN finds p's sentence first with seed 0 and third with seed 1, q's second and first.
SCORES = {
    ("gru-han", "attention", 0): [np.array([0.1, 0.6, 0.2, 0.1]), np.array([0.4, 0.6])],
    ("gru-han", "attention", 1): [np.array([0.4, 0.2, 0.3, 0.1]), np.array([0.7, 0.3])],
    ("gru-han", "cosine", 0): [np.array([0.9, 0.1, 0.8, 0.7]), np.array([0.1, 0.2])],
    ("gru-han", "cosine", 1): [np.array([0.9, 0.1, 0.8, 0.7]), np.array([0.1, 0.2])],
}
FOUND = {("gru-han", 0): np.array([True, False]), ("gru-han", 1): np.array([True, True])}
# Of p's first document and another one: seed 0 sees that they are unrelated, seed 1 does not.
UNRELATED = [replace(PAIRS[0], id="u", related=False, aligned=())]
REFUSED = {("gru-han", 0): np.array([True]), ("gru-han", 1): np.array([False])}


def reported(folder, **settings):
    aligned = Aligned(
        pairs=PAIRS,
        scores=SCORES,
        found=FOUND,
        probabilities={key: one * 1.0 for key, one in FOUND.items()},
        unrelated=UNRELATED,
        refused=REFUSED,
    )
    opened = open_run(folder, name="sentence alignment", parameters={})
    return write_alignment_report(opened, aligned, AlignmentSettings(**settings))


@pytest.fixture
def report(tmp_path):
    return reported(tmp_path)


def values(report, setting: str) -> dict:
    """(system, by) -> metric -> row."""
    found: dict = {}
    for row in report.rows:
        if row.group == setting:
            name, _, by = row.system.partition("/")
            found.setdefault((name, by), {})[row.metric] = row
    assert len(alignment_table(report, setting).rows) == len(found)
    return found


def test_given_that_the_documents_are_related(report) -> None:
    row = values(report, "oracle")["gru-han", "attention"]
    # seed 0: 1 and 1/2; seed 1: 1/3 and 1
    assert row["mrr"].value == pytest.approx(((1 + 1 / 2) / 2 + (1 / 3 + 1) / 2) / 2)
    assert row["mrr"].deviation == pytest.approx(np.std([3 / 4, 2 / 3], ddof=1))
    assert row["at_1"].value == pytest.approx(1 / 2)
    assert row["at_5"].value == 1
    assert row["mrr"].seeds == 2
    assert values(report, "oracle")["gru-han", "cosine"]["mrr"].value == pytest.approx((1 / 4 + 1 / 2) / 2)


def test_jointly_a_pair_that_was_not_found_counts_0(report) -> None:
    row = values(report, "joint")["gru-han", "attention"]
    assert row["mrr"].value == pytest.approx(((1 + 0) / 2 + (1 / 3 + 1) / 2) / 2)
    assert row["mrr"].p is None


def test_released_an_unrelated_pair_counts_and_a_wrong_decision_is_rank_21(report) -> None:
    row = values(report, "released")["gru-han", "attention"]
    seeds = ((1 + 1 / 21 + 1) / 3, (1 / 3 + 1 + 1 / 21) / 3)
    assert row["mrr"].value == pytest.approx(sum(seeds) / 2)
    assert row["mrr"].deviation == pytest.approx(np.std(seeds, ddof=1))
    assert row["at_1"].value == pytest.approx(((1 + 0 + 1) / 3 + (0 + 1 + 0) / 3) / 2)
    # p and u are one cluster, q another: drawn are the one twice, both, or the other twice
    alone = ((1 + 1) / 2 + (1 / 3 + 1 / 21) / 2) / 2, (1 / 21 + 1) / 2
    assert (row["mrr"].low, row["mrr"].high) == pytest.approx((min(alone), max(alone)))
    random = values(report, "released")["random", ""]
    chance = (25 / 48 + 3 / 4) / 2
    assert random["mrr"].value == pytest.approx((chance + 1 / 21 + (1 + 1 / 21) / 2) / 3)


def test_released_sentences_of_pan_are_pooled(tmp_path) -> None:
    row = values(reported(tmp_path, reading="precision"), "released")["gru-han", "attention"]
    # seed 0: one of 5 of p, q missed, u seen; seed 1: one of 5 of both, u taken to be related
    assert row["at_5"].value == pytest.approx(((1 + 0 + 1) / (5 + 1 + 1) + (1 + 1 + 0) / (5 + 5 + 1)) / 2)
    assert row["mrr"].value == pytest.approx(((1 + 1 / 60 + 1) / 3 + (1 / 3 + 1 + 1 / 60) / 3) / 2)


def test_random_is_the_mean_over_all_orders(report) -> None:
    # 4 sentences: (1 + 1/2 + 1/3 + 1/4) / 4 = 25/48; 2 sentences: 3/4
    row = values(report, "oracle")["random", ""]
    assert row["mrr"].value == pytest.approx((25 / 48 + 3 / 4) / 2)
    assert row["at_1"].value == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert row["mrr"].seeds == 1


def test_cosine_is_tested_against_attention(report) -> None:
    (row,) = report.tables["comparisons"]
    assert (row["a"], row["by"], row["b"], row["b_by"]) == ("gru-han", "cosine", "gru-han", "attention")
    assert row["difference"] == pytest.approx(3 / 8 - (3 / 4 + 2 / 3) / 2)
    assert values(report, "oracle")["gru-han", "cosine"]["mrr"].p == row["p_holm"]


def test_sentences_that_a_system_does_not_read_come_last_and_tie() -> None:
    found = ranked(pair("p", 5, 4), np.array([-0.5, 0.25]))
    assert found.scores[:2].tolist() == [-0.5, 0.25]
    assert (found.scores[2:] < -0.5).all()
    assert len(set(found.scores[2:])) == 1
    assert np.flatnonzero(found.relevant).tolist() == [4]
