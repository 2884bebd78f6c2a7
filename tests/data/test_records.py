"""Records are frozen, take keywords only and hold nothing but what they name."""

from __future__ import annotations

import dataclasses

import pytest

from cdlm_lab.data import records

RECORDS = (
    records.Fact,
    records.Document,
    records.Cluster,
    records.Mention,
    records.SentenceRef,
    records.SentenceAlignment,
    records.EntityTag,
    records.Question,
    records.CandidateSet,
    records.Claim,
    records.Story,
)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_records_are_frozen_slotted_and_keyword_only(record):
    fields = dataclasses.fields(record)
    assert all(field.kw_only for field in fields)
    assert record.__dataclass_params__.frozen
    assert not hasattr(record, "__dict__") or "__dict__" not in record.__slots__
    assert set(record.__slots__) == {field.name for field in fields}


def test_a_document_needs_an_id_and_a_text_only():
    document = records.Document(id="d", text="Rain fell.")
    assert (document.title, document.sentences, document.facts) == (None, (), ())
    with pytest.raises(dataclasses.FrozenInstanceError):
        document.text = "Snow fell."


def test_equal_records_are_equal_and_hashable():
    assert records.Fact(start=0, end=4, id="a") == records.Fact(start=0, end=4, id="a")
    assert len({records.Fact(start=0, end=4, id="a"), records.Fact(start=0, end=4, id="a")}) == 1
