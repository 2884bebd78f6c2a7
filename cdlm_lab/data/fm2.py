"""FM2, Fool Me Twice (Eisenschlos et al. 2021): claims that players of a game wrote to mislead each other.

    {"id": "01EI", "text": "Filming of Gandhi was delayed.", "label": "SUPPORTS",
     "wikipedia_page": "Gandhi (film)", "gold_evidence": [{"section_header": "Production", "text": "..."}],
     "retrieved_evidence": [{"section_header": "Plot", "text": "..."}, ...]}

One claim a line, in `train.jsonl`, `dev.jsonl` and `test.jsonl`; other fields are not read. Labels are
SUPPORTS and REFUTES, no claim lacks evidence. All evidence of a claim is of its one page, so that a sentence
reads "page. sentence", as the MSPP release writes FEVER's. The group of a claim is its page.

`retrieved_evidence` is what a search found, ten sentences of the page if it has so many; the one or two gold
sentences that it missed were put behind these. So the first ten are a search's result, and all of the list
has the gold sentences because they were put there. Counted over the 2,549 claims of dev and test: the first
five have all gold sentences for 42% and at least one for 52%, the first ten for 59% and 69%; the very first
is one for 4%.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from cdlm_lab.data.claims import (
    EvidencedClaim,
    check_most_evidence,
    claim_id,
    claim_label,
    claim_text,
    evidence_items,
    read_claim_lines,
)
from cdlm_lab.data.json_lines import JsonRecord

Evidence = Literal["retrieved", "gold"]


def read_fm2(
    path: str | Path, *, evidence: Evidence = "retrieved", most_evidence: int = 5
) -> Iterator[EvidencedClaim]:
    """Claims of a file, plain or compressed, one at a time.

    Args:
        evidence: "retrieved", what a search found; or "gold", what the author of the claim chose.
        most_evidence: at most so many sentences of a claim, the first ones; those of blanks alone do not
            count.

    Raises:
        ValueError: an unknown `evidence`, `most_evidence` below 1. Raised here; the next while reading.
        DataError: a missing or wrong field, an empty claim, an unknown label, evidence that is not a list of
            such objects, an id that occurs twice, and as `json_lines.read_json_lines`.
    """
    check_evidence(evidence)
    check_most_evidence(most_evidence)
    return read_claim_lines(path, partial(_claim, field=f"{evidence}_evidence", most_evidence=most_evidence))


def check_evidence(evidence: str) -> None:
    """Raises ValueError for what is neither "retrieved" nor "gold"."""
    if evidence not in get_args(Evidence):
        raise ValueError(f"evidence is {evidence!r}; choose one of {', '.join(get_args(Evidence))}")


def _claim(record: JsonRecord, *, field: str, most_evidence: int) -> EvidencedClaim:
    page = record.text("wikipedia_page")
    sentences = [
        record.record(f"{field}[{place}]", item).text("text")
        for place, item in enumerate(evidence_items(record, field))
    ]
    kept = [sentence for sentence in sentences if sentence.strip()][:most_evidence]
    return EvidencedClaim(
        id=claim_id(record),
        text=claim_text(record, "text"),
        evidence=tuple(f"{page}. {sentence}" for sentence in kept),
        label=claim_label(record),
        group=page,
    )
