"""The systems by name: what each is, and that tests compare what the papers compare."""

import pytest

from cdlm_lab.experiments.document_matching import SYSTEMS, system_rows, systems_named
from cdlm_lab.parameters import ParameterError
from cdlm_lab.widgets.tables import published_numbers


def test_names_say_what_a_system_is() -> None:
    deep = SYSTEMS["gru-han-deep"]
    assert (deep.label, deep.encoder, deep.cda, deep.finetuned) == ("GRU-HAN + DEEP", "gru", "deep", False)
    tuned = SYSTEMS["bert-han-finetuned-shallow"]
    assert (tuned.label, tuned.encoder, tuned.cda, tuned.finetuned) == (
        "BERT-HAN + SHALLOW, fine-tuned",
        "vectors",
        "shallow",
        True,
    )
    assert SYSTEMS["prefix-cdlm"].label == "Prefix CDLM"
    assert {one.cda for one in SYSTEMS.values() if one.encoder not in ("gru", "vectors")} == {"none"}


def test_all_published_systems_are_there_and_tested_against_one_that_is() -> None:
    tables = (("cda", "2"), ("cda", "3"), ("cdlm", "4"))
    published = {row for table in tables for _, row, _ in published_numbers()[table]}
    assert set(SYSTEMS) - published == {"tf-idf"}
    assert {one.against for one in SYSTEMS.values()} - {""} <= set(SYSTEMS)
    assert SYSTEMS["gru-han-deep"].against == "gru-han-shallow"
    assert SYSTEMS["gru-han-shallow"].against == "gru-han"
    assert SYSTEMS["cdlm"].against == "longformer"


def test_systems_come_in_order_each_once() -> None:
    assert [one.name for one in systems_named("cdlm gru-han tf-idf  cdlm")] == ["tf-idf", "gru-han", "cdlm"]
    assert [row[0] for row in system_rows()] == [f"<code>{name}</code>" for name in SYSTEMS]


@pytest.mark.parametrize(("names", "complaint"), [("", "systems is empty"), ("gru", "systems names 'gru'")])
def test_systems_that_are_not_there(names: str, complaint: str) -> None:
    with pytest.raises(ParameterError, match=complaint):
        systems_named(names)
