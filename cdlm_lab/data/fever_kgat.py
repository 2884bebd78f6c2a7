"""FEVER (Thorne et al. 2018) with KGAT's evidence (Liu et al. 2020), on which the MSPP paper reports.

    {"id": 91198, "claim": "Ann Lee wrote Blue Mill.", "label": "SUPPORTS",
     "evidence": [["Blue_Mill", 0, "Blue Mill LRB 1999 RRB is a novel by Ann Lee .", 0.97], ...]}

One claim a line, in `bert_train.json`, `bert_dev.json` and `bert_test.json`; the last has no labels. A piece
of evidence is the name of its page, the number of the sentence there, the sentence, and a score that is not
read (`golden_*.json` have none, in `all_*.json` it says which sentences are the right ones).

The order is that of the file, whatever the scores. By KGAT's own script (`retrieval_model/process_data.py`;
issue 7 there asks about it) the annotated sentences were put into train and dev with score 1 and then sorted:
there they stand first and none is missing, in test neither is so. That flatters dev; the paper's Table 3 has
81.2 for dev and 74.4 for test.

A sentence reads "title. sentence" as in the MSPP release, with the brackets, quotes and underscores of title
and sentence written plainly (`claims.plain_text`). The group of a claim is the page of its first evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cdlm_lab.data.claims import (
    EvidencedClaim,
    check_most_evidence,
    claim_id,
    claim_label,
    claim_text,
    evidence_items,
    plain_text,
    plain_title,
    read_claim_lines,
)
from cdlm_lab.data.json_lines import JsonRecord, kind_of

_REMEDY = 'write it as ["title", 0, "sentence", 0.9]'


def read_fever(path: str | Path, *, most_evidence: int = 5) -> Iterator[EvidencedClaim]:
    """Claims of a file, plain or compressed, one at a time.

    Args:
        most_evidence: at most so many sentences of a claim, the first ones; those of blanks alone do not
            count.

    Raises:
        ValueError: `most_evidence` below 1. Raised here; the next while reading.
        DataError: a missing or wrong field, an empty claim, an unknown label, evidence that is not a list of
            such lists, an id that occurs twice, and as `json_lines.read_json_lines`.
    """
    check_most_evidence(most_evidence)
    return read_claim_lines(path, partial(_claim, most_evidence=most_evidence))


def _claim(record: JsonRecord, *, most_evidence: int) -> EvidencedClaim:
    items = evidence_items(record, "evidence")
    rows = [_title_and_sentence(record, f"evidence[{place}]", item) for place, item in enumerate(items)]
    kept = [(title, sentence) for title, sentence in rows if sentence.strip()][:most_evidence]
    identifier = claim_id(record)
    return EvidencedClaim(
        id=identifier,
        text=plain_text(claim_text(record, "claim")),
        evidence=tuple(f"{title}. {sentence}" for title, sentence in kept),
        label=claim_label(record),
        group=kept[0][0] if kept else identifier,
    )


def _title_and_sentence(record: JsonRecord, field: str, item: object) -> tuple[str, str]:
    if not isinstance(item, list) or len(item) < 3:
        what = f"a list of {len(item)}" if isinstance(item, list) else kind_of(item)
        raise record.error(field, f"{what} where title, number and sentence belong", _REMEDY)
    title, sentence = (record.checked_text(f"{field}[{place}]", item[place]) for place in (0, 2))
    return plain_title(title), plain_text(sentence)
