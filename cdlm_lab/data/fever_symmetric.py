"""FeverSymmetric (Schuster et al. 2019): pairs of claim and evidence, of which the claim alone tells nothing.

    {"id": "111897", "claim": "...", "evidence_sentence": "...", "label": "REFUTES"}

One pair a line. For a pair of FEVER's development set another claim and another sentence were written, so
that of the four pairs two are supported and two refuted, each claim once the one and once the other, and so
each sentence. A set to test with: there is no training part. Version 0.2, which calls the sentence
`evidence`, has a dev and a test file without a common pair.

The ids of new pairs are those of the first with 0000002, 0000003 or 0000004 behind; the group of a claim is
the id of the first. There are no titles. Brackets and quotes are written plainly (`claims.plain_text`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cdlm_lab.data.claims import (
    EvidencedClaim,
    claim_id,
    claim_label,
    claim_text,
    plain_text,
    read_claim_lines,
)
from cdlm_lab.data.json_lines import JsonRecord

_MADE = re.compile(r"000000[2-4]$")


def read_fever_symmetric(path: str | Path) -> Iterator[EvidencedClaim]:
    """Claims of a file, plain or compressed, one at a time, each with its one sentence.

    Raises:
        DataError: a missing or wrong field, an empty claim or sentence, an unknown label, an id that occurs
            twice, and as `json_lines.read_json_lines`.
    """
    return read_claim_lines(path, _claim)


def _claim(record: JsonRecord) -> EvidencedClaim:
    field = "evidence" if "evidence" in record.fields else "evidence_sentence"
    sentence = record.text(field)
    if not sentence.strip():
        raise record.error(field, "the evidence is empty", "write it, or delete the line")
    identifier = claim_id(record)
    return EvidencedClaim(
        id=identifier,
        text=plain_text(claim_text(record, "claim")),
        evidence=(plain_text(sentence),),
        label=claim_label(record),
        group=_MADE.sub("", identifier),
    )
