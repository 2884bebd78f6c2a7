"""The names of the systems, and which is tested against which."""

import pytest

from cdlm_lab.experiments.fact_verification import CLAIM_SYSTEMS, claim_systems, compared_pairs
from cdlm_lab.parameters import ParameterError
from cdlm_lab.widgets.verification_table import PAPER_VERIFICATION


def pairs(names: str) -> list[tuple[str, str]]:
    return [(a.name, b.name) for a, b in compared_pairs(claim_systems(names))]


def test_systems_come_in_the_order_of_the_tables():
    names = [system.name for system in claim_systems("mspp-ae-ie  joint-ie pairwise-max")]
    assert names == ["pairwise-max", "joint-ie", "mspp-ae-ie"]


def test_the_middle_of_a_name_is_the_head_of_pre_training_and_its_end_that_of_fine_tuning():
    system = CLAIM_SYSTEMS["mspp-ae-ie"]
    assert (system.pretrained, system.head, system.paper) == ("ae", "ie_1", "mspp-ae_k-ie_1")
    assert system.label == "MSPP AE_k + IE_1"


def test_the_papers_numbers_are_found_by_name():
    """Table 3; the paper has no joint AE_1 without MSPP, and nothing without evidence."""
    found = {name: PAPER_VERIFICATION.get(system.paper) for name, system in CLAIM_SYSTEMS.items()}
    assert {name for name, numbers in found.items() if numbers is None} == {"claim-only", "joint-ae"}
    dev = {name: numbers.dev for name, numbers in found.items() if numbers}
    assert dev == {
        "pairwise-max": 79.82,
        "pairwise-sum": 80.01,
        "joint-ie": 79.25,
        "mspp-ie-ie": 81.21,
        "mspp-ie-ae": 81.10,
        "mspp-ae-ie": 81.18,
        "mspp-ae-ae": 81.21,
    }


def test_joint_systems_are_tested_against_pairwise_mspp_against_its_head_and_all_against_claims_alone():
    assert pairs("claim-only pairwise-max pairwise-sum joint-ie joint-ae mspp-ie-ae") == [
        ("pairwise-max", "claim-only"),
        ("pairwise-sum", "claim-only"),
        ("joint-ie", "pairwise-sum"),
        ("joint-ie", "claim-only"),
        ("joint-ae", "pairwise-sum"),
        ("joint-ae", "claim-only"),
        ("mspp-ie-ae", "pairwise-sum"),
        ("mspp-ie-ae", "joint-ae"),
        ("mspp-ie-ae", "claim-only"),
    ]
    assert pairs("joint-ie mspp-ie-ae pairwise-max") == [
        ("joint-ie", "pairwise-max"),
        ("mspp-ie-ae", "pairwise-max"),
    ]
    assert pairs("claim-only") == []


def test_values_that_cannot_be():
    with pytest.raises(
        ParameterError, match="systems names 'mspp-ie'; choose among claim-only, pairwise-max"
    ):
        claim_systems("mspp-ie")
    with pytest.raises(ParameterError, match="systems names nothing"):
        claim_systems(" ")
