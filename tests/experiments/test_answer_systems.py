"""The systems by name: the paper's five rows, each with a head and a place in the published tables."""

import pytest

from cdlm_lab.experiments.answer_selection import ANSWER_SYSTEMS, answer_systems
from cdlm_lab.parameters import ParameterError
from cdlm_lab.widgets.answer_table import PAPER_TABLE_1, PAPER_TABLES_2_AND_7


def test_they_are_the_rows_of_the_papers_tables():
    published = [system.published for system in ANSWER_SYSTEMS.values()]
    assert published == list(PAPER_TABLE_1) == list(PAPER_TABLES_2_AND_7)
    assert [one.head for one in ANSWER_SYSTEMS.values()] == ["ie_1", "ie_k", "ae_k", "ie_k", "ae_k"]
    assert [one.is_joint for one in ANSWER_SYSTEMS.values()] == [False, True, True, True, True]
    for name, one in ANSWER_SYSTEMS.items():
        assert one.name == name
        assert one.pretrained == name.startswith("mspp") == bool(one.plain)
        if one.plain:
            assert ANSWER_SYSTEMS[one.plain].head == one.head


def test_names_come_in_the_order_of_the_tables():
    assert [one.name for one in answer_systems("mspp-ae joint-ie pairwise")] == [
        "pairwise",
        "joint-ie",
        "mspp-ae",
    ]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("pairwise joint", "systems names 'joint'; choose among pairwise, joint-ie"),
        ("joint-ie mspp-ie", "name pairwise, whose best candidates are ranked anew"),
        ("pairwise", "and at least one of joint-ie, joint-ae, mspp-ie, mspp-ae"),
        ("", "systems is ''; name pairwise"),
    ],
)
def test_names_that_cannot_be(names: str, message: str):
    with pytest.raises(ParameterError, match=message):
        answer_systems(names)
