"""Claims with evidence to be verified (MSPP paper, section 3.1): what every reader yields, how claims are
split, and what the files of the FEVER family share.

These are JSON lines with a claim, its evidence and a label: SUPPORTS, REFUTES or NOT ENOUGH INFO. FEVER's
pages were tokenised before anybody looked at them: brackets are `-LRB-` and `-RRB-` (in KGAT's files LRB and
RRB), quotes are `` and ''. `plain_text` takes that back, which the MSPP release does not do.

FEVER (Thorne et al. 2018) with KGAT's evidence (Liu et al. 2020), on which the MSPP paper reports.

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

FM2, Fool Me Twice (Eisenschlos et al. 2021): claims that players of a game wrote to mislead each other.

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

FeverSymmetric (Schuster et al. 2019): pairs of claim and evidence, of which the claim alone tells nothing.

    {"id": "111897", "claim": "...", "evidence_sentence": "...", "label": "REFUTES"}

One pair a line. For a pair of FEVER's development set another claim and another sentence were written, so
that of the four pairs two are supported and two refuted, each claim once the one and once the other, and so
each sentence. A set to test with: there is no training part. Version 0.2, which calls the sentence
`evidence`, has a dev and a test file without a common pair.

The ids of new pairs are those of the first with 0000002, 0000003 or 0000004 behind; the group of a claim is
the id of the first. There are no titles. Brackets and quotes are written plainly (`claims.plain_text`).

One way to all files of claims: which there are, and which part of them is train, dev or test.

A folder may hold, compressed or not (a plain file goes before a compressed one of the same name):

- FEVER with KGAT's evidence: `bert_dev.json`, `bert_test.json` and, if it is there, `bert_train.json`;
- or else FM2: `fm2_dev.jsonl`, `fm2_test.jsonl` and `fm2_train.jsonl`, or the same without `fm2_`;
- FeverSymmetric, which is a test set of its own, "symmetric": `fever_symmetric_test.jsonl` (version 0.2) or,
  without that, `fever_symmetric_full.jsonl` (version 0.1), both also with `v0.2_` or `v0.1_` before it.

Where the training file is missing, the dev file is parted: a fifth of its pages is dev, the others are train
(`claims.split_claims`, seed 0). A single file of FEVER or FM2, told by its first record, is parted likewise
into train, dev and test, the last two a fifth of the pages each; one of FeverSymmetric is "symmetric".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from cdlm_lab.data.files import (
    DataError,
    JsonRecord,
    entries,
    kind_of,
    plain_name,
    read_json_lines,
    sha256_of_file,
)

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
    return read_claim_lines(
        path, partial(_fm2_claim, field=f"{evidence}_evidence", most_evidence=most_evidence)
    )


def check_evidence(evidence: str) -> None:
    """Raises ValueError for what is neither "retrieved" nor "gold"."""
    if evidence not in get_args(Evidence):
        raise ValueError(f"evidence is {evidence!r}; choose one of {', '.join(get_args(Evidence))}")


def _fm2_claim(record: JsonRecord, *, field: str, most_evidence: int) -> EvidencedClaim:
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


_MADE = re.compile(r"000000[2-4]$")


def read_fever_symmetric(path: str | Path) -> Iterator[EvidencedClaim]:
    """Claims of a file, plain or compressed, one at a time, each with its one sentence.

    Raises:
        DataError: a missing or wrong field, an empty claim or sentence, an unknown label, an id that occurs
            twice, and as `json_lines.read_json_lines`.
    """
    return read_claim_lines(path, _symmetric_claim)


def _symmetric_claim(record: JsonRecord) -> EvidencedClaim:
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


SETS = ("train", "dev", "test", "symmetric")
HELD_OUT = 0.2  # share of the pages for each split that is parted off a file
READERS_VERSION = "1"  # part of every checksum; raise it when a reader makes other claims of the same files
_NAMES = (("bert_{}.json", "fever"), ("fm2_{}.jsonl", "fm2"), ("{}.jsonl", "fm2"))
_SYMMETRIC = (
    "v0.2_fever_symmetric_test.jsonl",
    "fever_symmetric_test.jsonl",
    "v0.1_fever_symmetric_full.jsonl",
    "fever_symmetric_full.jsonl",
)
_LOOKED_FOR = (
    "give a folder with bert_dev.json and bert_test.json (FEVER), fm2_dev.jsonl and fm2_test.jsonl (FM2) or "
    "fever_symmetric_test.jsonl, or one such file"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Where the claims of a set are. `into`: the splits that its file is parted into; () = it is not."""

    path: Path
    format: str
    into: tuple[str, ...] = ()


def read_claims(
    path: str | Path, split: str, *, evidence: Evidence = "retrieved", most_evidence: int = 5
) -> list[EvidencedClaim]:
    """The claims of one set, in the order of the file.

    Args:
        path: a folder or file, as above.
        split: one of SETS; `claim_sets` says which there are.
        evidence: of FM2, "retrieved" or "gold" (`fm2.read_fm2`); FEVER has the first, FeverSymmetric, which
            has one sentence each, reads the same with both.
        most_evidence: at most so many sentences of a claim, the first ones.

    Raises:
        ValueError: an unknown `split` or `evidence`, `most_evidence` below 1.
        DataError: nothing here that can be read, no such set, gold evidence of FEVER, a file that is parted
            and has no page for the set, and as the readers.
    """
    check_evidence(evidence)
    check_most_evidence(most_evidence)
    part = _part(Path(path), split)
    claims = _reader(part, evidence=evidence, most_evidence=most_evidence)(part.path)
    if not part.into:
        return list(claims)
    found = split_claims(claims, held_out=HELD_OUT, into=part.into)[split]
    if not found:
        what = f"parted into {', '.join(part.into)} by pages, it leaves none for {split}"
        raise DataError(part.path, what, "give a file with more claims", field="file")
    return found


def claim_sets(path: str | Path) -> tuple[str, ...]:
    """Those of SETS that a folder or file has. Raises DataError if there are none."""
    return tuple(name for name in SETS if name in _parts(Path(path)))


def format_of(path: str | Path) -> str:
    """What is here: "fever", "fm2" or "fever_symmetric"; of a folder with claims to train on, what these are.
    Raises DataError if there is nothing that can be read."""
    return next(iter(_parts(Path(path)).values())).format


def checksum_of(path: str | Path, split: str) -> str:
    """SHA-256 (hexadecimal) that names the claims of a set: over name and bytes of its file, and how it is
    parted. Where the folder lies does not matter. Raises ValueError and DataError as `read_claims`, less
    faults inside the files."""
    part = _part(Path(path), split)
    rule = [*part.into, str(HELD_OUT)] if part.into else []
    words = [READERS_VERSION, part.format, split, *rule, part.path.name, sha256_of_file(part.path)]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def _part(path: Path, split: str) -> _Part:
    if split not in SETS:
        raise ValueError(f"split is {split!r}; choose one of {', '.join(SETS)}")
    parts = _parts(path)
    if split not in parts:
        what = f"no claims for {split} here, but for {', '.join(parts)}"
        raise DataError(path, what, _LOOKED_FOR, field="claims")
    return parts[split]


def _parts(path: Path) -> dict[str, _Part]:
    """What is there, by set: first what can be trained on. Never empty."""
    if not path.exists():
        raise DataError(path, "no such file or folder", _LOOKED_FOR, field="claims")
    parts = _parts_of_folder(path) if path.is_dir() else _parts_of_file(path)
    if not parts:
        raise DataError(path, "no claims that can be read", _LOOKED_FOR, field="claims")
    return parts


def _parts_of_folder(folder: Path) -> dict[str, _Part]:
    files: dict[str, Path] = {}
    for file in entries(folder):
        if file.is_file():
            files.setdefault(plain_name(file), file)
    parts: dict[str, _Part] = {}
    for pattern, form in _NAMES:
        named = {split: files[name] for split in SETS[:3] if (name := pattern.format(split)) in files}
        if not parts and {"dev", "test"} <= named.keys():
            parts = {split: _Part(path=file, format=form) for split, file in named.items()}
            if "train" not in parts:
                parted = _Part(path=named["dev"], format=form, into=("train", "dev"))
                parts = {"train": parted, "dev": parted, "test": parts["test"]}
    symmetric = next((files[name] for name in _SYMMETRIC if name in files), None)
    if symmetric:
        parts["symmetric"] = _Part(path=symmetric, format="fever_symmetric")
    return parts


def _parts_of_file(file: Path) -> dict[str, _Part]:
    fields = next(read_json_lines(file)).fields
    if "evidence_sentence" in fields or isinstance(fields.get("evidence"), str):
        return {"symmetric": _Part(path=file, format="fever_symmetric")}
    form = "fm2" if "wikipedia_page" in fields else "fever" if "evidence" in fields else ""
    return {split: _Part(path=file, format=form, into=SETS[:3]) for split in SETS[:3] if form}


def _reader(
    part: _Part, *, evidence: Evidence, most_evidence: int
) -> Callable[[Path], Iterator[EvidencedClaim]]:
    if part.format == "fm2":
        return partial(read_fm2, evidence=evidence, most_evidence=most_evidence)
    if part.format == "fever_symmetric":
        return read_fever_symmetric
    if evidence != "retrieved":
        remedy = 'read with evidence="retrieved"'
        raise DataError(part.path, f"FEVER in KGAT's form has no {evidence} evidence", remedy)
    return partial(read_fever, most_evidence=most_evidence)
