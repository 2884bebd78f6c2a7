"""The systems of notebook 07 by their names."""

import pytest

from cdlm_lab.experiments.document_tagging import TAG_SYSTEMS, tag_systems
from cdlm_lab.parameters import ParameterError


def test_systems_come_in_the_order_of_the_tables() -> None:
    names = [system.name for system in tag_systems(" bert dynamic-doc-arc  doc-arc bert-lstm doc-arc ")]
    assert names == ["bert-lstm", "doc-arc", "dynamic-doc-arc", "bert"]


def test_systems_are_those_of_the_paper() -> None:
    """Tables 2 and 3 against Table 4: frozen; small and trained; large and fine-tuned as it is usual."""
    assert [name for name, system in TAG_SYSTEMS.items() if system.context] == ["doc-arc", "dynamic-doc-arc"]
    assert [name for name, system in TAG_SYSTEMS.items() if not system.trains_encoder] == [
        "bert-lstm",
        "doc-arc",
    ]
    assert [name for name, system in TAG_SYSTEMS.items() if not system.sequence_encoder] == [
        "dynamic-bert",
        "bert",
    ]
    assert {name for name, system in TAG_SYSTEMS.items() if system.small} == {
        "dynamic-bert",
        "dynamic-bert-lstm",
        "dynamic-doc-arc",
    }
    assert len({system.label for system in TAG_SYSTEMS.values()}) == 6


def test_names_that_cannot_be() -> None:
    with pytest.raises(ParameterError, match="systems names 'Doc-ARC'; choose among bert-lstm, doc-arc, dyn"):
        tag_systems("bert-lstm Doc-ARC")
    with pytest.raises(ParameterError, match="systems names nothing; choose among"):
        tag_systems("")
