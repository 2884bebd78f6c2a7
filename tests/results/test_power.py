"""The smallest difference that a comparison could have shown, and the paper's."""

import csv
import math

import pytest
from scipy.stats import nct, norm, t

from cdlm_lab.results.claims import CLAIMS_FILE
from cdlm_lab.results.power import CLAIMED_FILE, could_show, papers_difference

WIDTH_ONE = {"low": -1.0, "high": 1.0}  # an interval of half width 1, so a standard error of 1 / 1.96


def test_a_test_finds_the_difference_in_four_of_five_repetitions():
    shown = could_show(WIDTH_ONE, [[0.5], [0.5]])
    assert shown == pytest.approx((1.959964 + 0.841621) / 1.959964, abs=1e-6)
    assert norm.sf(1.959964 - 1.959964 * shown) == pytest.approx(0.8, abs=1e-4), "the power of the z test"


def test_with_seeds_the_test_over_seeds_has_to_find_it_as_well():
    sides = [
        [0.0, 1.0, 2.0],
        [3.0, 4.0, 5.0],
    ]  # variances 1, so standard error sqrt(2/3), 4 degrees of freedom
    shown = could_show({"low": -0.001, "high": 0.001}, sides)
    error, critical = math.sqrt(2 / 3), t.ppf(0.975, 4)
    assert shown == pytest.approx((2.776445 + 0.940965) * error, abs=1e-5)
    power = nct.sf(critical, 4, shown / error)
    assert power == pytest.approx(0.8, abs=0.05), "of the exact distribution, which is not symmetric"
    assert could_show(WIDTH_ONE, [[0.1], sides[1]]) == could_show(WIDTH_ONE, [[0.1], [0.2]]), (
        "one seed: no test"
    )
    assert could_show(WIDTH_ONE, [[0.1, 0.1], [0.3, 0.3]]) == could_show(WIDTH_ONE, [[0.1], [0.2]])


def test_a_single_cluster_shows_nothing():
    assert could_show({"low": None, "high": None}, [[0.1], [0.2]]) == math.inf


@pytest.mark.parametrize(
    ("table", "claim", "corpus", "expected"),
    [
        ("CDLM, 1", "Global masked tokens help (CDLM below Prefix)", "news", math.log(3.41 / 3.39)),
        ("CDLM, 4", "CDLM is above Longformer at matching documents", "SciSumm", (3.4 + 1.9 + 0.7 + 2.5) / 4),
        ("CDLM, 6", "CDLM ranks coreferring events higher than Longformer does", "ECB+", 14.1 - 7.1),
        ("CDA, 4", "Cross-document attention aligns sentences (GRU-HAN)", "SciSumm", 100 * (0.6225 - 0.5430)),
        (
            "Doc-ARC, 2",
            "The same word elsewhere in the document helps to name entities",
            "LitBank, linear context encoder",
            75.75 - 74.22,
        ),
        ("CDLM, 2", "A trained scorer is above the same head word, events", "ECB+", None),
    ],
)
def test_what_the_paper_reports(table: str, claim: str, corpus: str, expected: float | None):
    found = papers_difference(table, claim, corpus)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-9))


def test_each_line_belongs_to_a_claim_whose_paper_reports_a_gain():
    claims, claimed = (
        list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
        for file in (CLAIMS_FILE, CLAIMED_FILE)
    )
    known = {(one["table"], one["claim"]) for one in claims}
    assert {(line["table"], line["claim"]) for line in claimed} <= known
    for line in claimed:
        assert papers_difference(line["table"], line["claim"], "another corpus") > 0, line["claim"]
