"""Claims with evidence to be verified (MSPP paper, section 3.1): what every reader yields, how claims are
split, and what the files of the FEVER family share.

These are JSON lines with a claim, its evidence and a label: SUPPORTS, REFUTES or NOT ENOUGH INFO. FEVER's
pages were tokenised before anybody looked at them: brackets are `-LRB-` and `-RRB-` (in KGAT's files LRB and
RRB), quotes are `` and ''. `plain_text` takes that back, which the MSPP release does not do.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cdlm_lab.data.json_lines import JsonRecord, kind_of, read_json_lines

LABELS = ("supported", "refuted", "not enough info")
_FEVER_LABELS = dict(zip(("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"), LABELS, strict=True))
_ESCAPES = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"-LRB-|\bLRB\b", "("),
        (r"-RRB-|\bRRB\b", ")"),
        (r"-LSB-|\bLSB\b", "["),
        (r"-RSB-|\bRSB\b", "]"),
        (r"``|''", '"'),
    )
)
_COLON = re.compile(r"-COLON-|\bCOLON\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencedClaim:
    """A claim and the sentences by which it is to be judged.

    Attributes:
        id: unique within its source.
        evidence: in the source's order, "title. sentence" where it knows titles; () = nothing was retrieved.
        label: one of LABELS, by the evidence there is, not by what was retrieved of it; None = not known.
        group: what claims have in common (a page, a story): claims of one group are of one split, and
            intervals draw groups.
    """

    id: str
    text: str
    evidence: tuple[str, ...]
    label: str | None
    group: str


def split_claims(
    claims: Iterable[EvidencedClaim],
    *,
    held_out: float,
    seed: int = 0,
    into: Sequence[str] = ("train", "dev", "test"),
) -> dict[str, list[EvidencedClaim]]:
    """Claims by split, where the source does not say, in their order.

    A group goes by a hash of its name (SHA-256 of "claims/seed/group", as a share between 0 and 1): below
    `held_out` to the last split, below twice that to the last but one, and so on; the rest to the first.
    Claims that are added or read in another order move no others.

    Args:
        held_out: share of the groups that each split but the first gets; of claims it is nearly that.
        into: names of the splits.

    Raises:
        ValueError: the held-out splits leave nothing for the first, or `held_out` is not above 0.
    """
    if not 0 < held_out * (len(into) - 1) < 1:
        raise ValueError(f"held_out is {held_out}; {len(into) - 1} such shares must be more than 0, below 1")
    found: dict[str, list[EvidencedClaim]] = {name: [] for name in into}
    for claim in claims:
        digest = hashlib.sha256(f"claims/{seed}/{claim.group}".encode()).digest()
        share = int.from_bytes(digest[:8], "big") / 2**64
        place = min(int(share / held_out), len(into) - 1)
        found[into[len(into) - 1 - place]].append(claim)
    return found


def read_claim_lines(
    path: str | Path, made: Callable[[JsonRecord], EvidencedClaim]
) -> Iterator[EvidencedClaim]:
    """What `made` makes of each line of a file, one at a time.

    Raises:
        DataError: an id that occurs twice, what `made` raises, and as `json_lines.read_json_lines`.
    """
    first_line: dict[str, int] = {}
    for record in read_json_lines(path):
        claim = made(record)
        if claim.id in first_line:
            what = f"{claim.id!r} stands in line {first_line[claim.id]} already"
            raise record.error("id", what, "give every claim an id of its own")
        first_line[claim.id] = record.line
        yield claim


def claim_id(record: JsonRecord) -> str:
    """The field `id`, a text or a whole number. Raises DataError if it is missing or something else."""
    value = record.fields.get("id")
    return str(value) if type(value) is int else record.text("id")


def claim_text(record: JsonRecord, field: str) -> str:
    """The claim in a field of the record. Raises DataError if it is missing, empty or no text."""
    text = record.text(field)
    if not text.strip():
        raise record.error(field, "the claim is empty", "write it, or delete the line")
    return text


def claim_label(record: JsonRecord) -> str | None:
    """One of LABELS from the field `label`; None if it is missing or null, as in a test set whose labels are
    kept back. Raises DataError for any other value."""
    said = record.optional_text("label")
    if said is not None and said not in _FEVER_LABELS:
        remedy = f"write one of {', '.join(_FEVER_LABELS)}, or leave it out"
        raise record.error("label", f"{said!r} is not a label", remedy)
    return None if said is None else _FEVER_LABELS[said]


def evidence_items(record: JsonRecord, field: str) -> list[object]:
    """A field that must be a list, and may be empty. Raises DataError if it is missing or something else."""
    if field not in record.fields:
        raise record.error(field, "missing", f'add "{field}": [...] to the record')
    value = record.fields[field]
    if not isinstance(value, list):
        raise record.error(field, f"{kind_of(value)} where a list belongs", "write it as [...]")
    return value


def check_most_evidence(most_evidence: int) -> None:
    """Raises ValueError for less than one sentence."""
    if most_evidence < 1:
        raise ValueError(f"most_evidence is {most_evidence}; it must be at least 1")


def plain_text(text: str) -> str:
    """FEVER's tokenised text with plain brackets and quotes: "-LRB- born 1950 -RRB-" is "( born 1950 )".

    Spaces around marks stay. KGAT drops what stands in square brackets, mostly pronunciations; here it stays.
    """
    for pattern, plain in _ESCAPES:
        text = pattern.sub(plain, text)
    return text


def plain_title(title: str) -> str:
    """Name of a page as it is read: "Soul_Food_-LRB-film-RRB-" is "Soul Food (film)"."""
    return _COLON.sub(":", plain_text(title.replace("_", " ")))
