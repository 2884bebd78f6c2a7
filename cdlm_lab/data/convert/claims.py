"""Readers of claims with evidence for fact verification: FEVER and relatives (MSPP paper, section 3.1).

A folder may hold, compressed or not (a plain file is preferred to a compressed one of the same name):

- FEVER with KGAT's evidence: `bert_dev.json`, `bert_test.json` and, if it is there, `bert_train.json`;
- or else FM2: `fm2_dev.jsonl`, `fm2_test.jsonl` and `fm2_train.jsonl`, or the same without `fm2_`;
- FeverSymmetric, which is a test set of its own, "symmetric": `fever_symmetric_test.jsonl` (version 0.2) or,
  without that, `fever_symmetric_full.jsonl` (version 0.1), both also with `v0.2_` or `v0.1_` before it.

Without a training file, the claims of a fifth of the pages of the dev file are dev and the others train. A
single file of FEVER or FM2, recognised by its first record, is divided into train, dev and test, with a fifth
of the pages for each of the last two; a single file of FeverSymmetric is "symmetric".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import AliasChoices, BeforeValidator, Field

from cdlm_lab.data import files
from cdlm_lab.data.files import DataError, Fields, FilledText, Name, Text, read_json_lines
from cdlm_lab.data.records import CLAIM_LABELS as LABELS
from cdlm_lab.data.records import EvidencedClaim
from cdlm_lab.errors import check_choice, check_least

FeverLabel = Literal["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]
Evidence = Literal["retrieved", "gold"]
SETS = ("train", "dev", "test", "symmetric")
HELD_OUT = 0.2  # share of the pages for each split but the first, where a file is divided into splits
READERS_VERSION = "1"  # part of every checksum; raise it when a reader makes other claims of the same files

_LABELS = dict(zip(get_args(FeverLabel), LABELS, strict=True))
_LABEL = Field(None, description=f"write one of {', '.join(_LABELS)}, or leave it out")
_MARKS = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]"}
_ESCAPES = [(re.compile(rf"-{name}-|\b{name}\b"), plain) for name, plain in _MARKS.items()]
_COLON = re.compile(r"-COLON-|\bCOLON\b")
_ADDED = re.compile(r"000000[2-4]$")
_NAMES = (("bert_{}.json", "fever"), ("fm2_{}.jsonl", "fm2"), ("{}.jsonl", "fm2"))
_SYMMETRIC = [
    f"{version}fever_symmetric_{part}.jsonl"
    for part, versions in (("test", ("v0.2_", "")), ("full", ("v0.1_", "")))
    for version in versions
]
_LOOKED_FOR = (
    "give a folder with bert_dev.json and bert_test.json (FEVER), fm2_dev.jsonl and fm2_test.jsonl (FM2) or "
    "fever_symmetric_test.jsonl, or one such file"
)


_FIRST_THREE = BeforeValidator(lambda row: row[:3] if isinstance(row, list) else row)


class _Labelled(Fields):
    id: Name
    label: FeverLabel | None = _LABEL

    def claim_of(self, text: str, evidence: Sequence[str], group: str) -> EvidencedClaim:
        label = None if self.label is None else _LABELS[self.label]
        return EvidencedClaim(id=self.id, text=text, evidence=tuple(evidence), label=label, group=group)


class _Fever(_Labelled):
    claim: FilledText
    evidence: list[Annotated[tuple[Text, Any, Text], files.FROM_LIST, _FIRST_THREE]] = Field(
        description='write each as ["title", 0, "sentence", 0.9]'
    )


class _Fm2Evidence(Fields):
    text: Text


class _Retrieved(_Labelled):
    text: FilledText
    wikipedia_page: Text
    evidence: list[_Fm2Evidence] = Field(alias="retrieved_evidence")


class _Gold(_Retrieved):
    evidence: list[_Fm2Evidence] = Field(alias="gold_evidence")


class _Symmetric(_Labelled):
    claim: FilledText
    sentence: FilledText = Field(validation_alias=AliasChoices("evidence", "evidence_sentence"))


def read_fever(path: str | Path, *, most_evidence: int = 5) -> Iterator[EvidencedClaim]:
    """Yield claims of FEVER (Thorne et al. 2018) with KGAT's evidence (Liu et al. 2020), one at a time.

        {"id": 91198, "claim": "Ann Lee wrote Blue Mill.", "label": "SUPPORTS",
         "evidence": [["Blue_Mill", 0, "Blue Mill LRB 1999 RRB is a novel by Ann Lee .", 0.97], ...]}

    A row of evidence is a page, the number of a sentence there, the sentence, and a score that is not read.
    The first `most_evidence` non-empty sentences are used: KGAT's own script put the annotated (gold) ones
    first in train and dev, but not in test, which makes dev easier (the MSPP paper's Table 3: 81.2 for dev,
    74.4 for test). The group of a claim is the page of its first evidence, or its id if it has none.
    """
    for record in read_json_lines(path, _Fever, unique="id"):
        fields = record.fields
        rows = [(plain_title(title), plain_text(sentence)) for title, _, sentence in fields.evidence]
        rows = [row for row in rows if row[1].strip()][:most_evidence]
        group = rows[0][0] if rows else fields.id
        yield fields.claim_of(plain_text(fields.claim), [". ".join(row) for row in rows], group)


def read_fm2(
    path: str | Path, *, evidence: Evidence = "retrieved", most_evidence: int = 5
) -> Iterator[EvidencedClaim]:
    """Yield claims of FM2 (Eisenschlos et al. 2021), which players wrote to mislead each other.

        {"id": "01EI", "text": "Filming of Gandhi was delayed.", "label": "SUPPORTS",
         "wikipedia_page": "Gandhi (film)", "gold_evidence": [{"section_header": "Production", "text":
         "..."}], "retrieved_evidence": [{"section_header": "Plot", "text": "..."}, ...]}

    "retrieved" evidence is ten sentences of the page that a search found, followed by the gold ones that it
    missed; "gold" evidence is what the author chose. Of 2,549 claims of dev and test, the first five
    retrieved sentences include all gold ones for 42% and one of them for 52%, the first ten for 59% and 69%.
    The first `most_evidence` non-empty sentences are used. The group of a claim is its page.
    """
    for record in read_json_lines(path, _Retrieved if evidence == "retrieved" else _Gold, unique="id"):
        page = record.fields.wikipedia_page
        filled = [f"{page}. {one.text}" for one in record.fields.evidence if one.text.strip()]
        yield record.fields.claim_of(record.fields.text, filled[:most_evidence], page)


def read_fever_symmetric(path: str | Path) -> Iterator[EvidencedClaim]:
    """Yield claims of FeverSymmetric (Schuster et al. 2019), each with its one evidence sentence.

        {"id": "111897", "claim": "...", "evidence_sentence": "...", "label": "REFUTES"}

    Of each four pairs of a claim and a sentence, two are supported and two refuted, so that the claim alone
    does not predict the label. Version 0.2 names the sentence `evidence`. The id of an added pair is that of
    the original pair followed by 0000002, 0000003 or 0000004; the group of a claim is the original's id.
    """
    for record in read_json_lines(path, _Symmetric, unique="id"):
        fields = record.fields
        evidence = [plain_text(fields.sentence)]
        yield fields.claim_of(plain_text(fields.claim), evidence, _ADDED.sub("", fields.id))


def plain_text(text: str) -> str:
    """Restore brackets and quotes in FEVER's tokenised text: "-LRB- born 1950 -RRB-" is "( born 1950 )"."""
    for pattern, plain in _ESCAPES:
        text = pattern.sub(plain, text)
    return text.replace("``", '"').replace("''", '"')


def plain_title(title: str) -> str:
    """Readable title of a Wikipedia page: "Soul_Food_-LRB-film-RRB-" is "Soul Food (film)"."""
    return _COLON.sub(":", plain_text(title.replace("_", " ")))


def split_claims(claims: Iterable[EvidencedClaim], into: Sequence[str]) -> dict[str, list[EvidencedClaim]]:
    """Divide claims of a source without splits into the splits `into`. Each but the first gets about the
    share HELD_OUT of the groups, by a hash of their names, so that adding or reordering claims moves no
    others."""
    splits: dict[str, list[EvidencedClaim]] = {name: [] for name in into}
    for claim in claims:
        digest = hashlib.sha256(f"claims/0/{claim.group}".encode()).digest()
        share = int.from_bytes(digest[:8], "big") / 2**64  # below HELD_OUT: the last split, and so on
        splits[into[-1 - min(int(share / HELD_OUT), len(into) - 1)]].append(claim)
    return splits


class _Part(NamedTuple):
    """The file of a set, and its format. `into`: splits that the file is divided into; () = it is not."""

    path: Path
    format: str
    into: tuple[str, ...] = ()


def read_claims(
    path: str | Path, split: str, *, evidence: Evidence = "retrieved", most_evidence: int = 5
) -> list[EvidencedClaim]:
    """Read the claims of one of SETS from a folder or file, in its order. `evidence` matters for FM2: FEVER
    has no gold evidence (a DataError), and FeverSymmetric one sentence, which serves as both."""
    check_choice("evidence", evidence, get_args(Evidence))
    check_least(most_evidence=most_evidence)
    file, form, into = _part(Path(path), split)
    if form == "fever" and evidence != "retrieved":
        what, remedy = f"FEVER in KGAT's form has no {evidence} evidence", 'read with evidence="retrieved"'
        raise DataError(file, what, remedy)
    if form == "fever":
        claims = read_fever(file, most_evidence=most_evidence)
    elif form == "fm2":
        claims = read_fm2(file, evidence=evidence, most_evidence=most_evidence)
    else:
        claims = read_fever_symmetric(file)
    if not into:
        return list(claims)
    if chosen := split_claims(claims, into)[split]:
        return chosen
    what = f"divided into {', '.join(into)} by pages, it leaves none for {split}"
    raise DataError(file, what, "give a file with more claims")


def claim_sets(path: str | Path) -> tuple[str, ...]:
    """The names of SETS that a folder or file has. Raises DataError if it has none."""
    return tuple(name for name in SETS if name in _parts(Path(path)))


def checksum_of(path: str | Path, split: str) -> str:
    """SHA-256 (hexadecimal) that identifies the claims of a set: over the name and bytes of its file,
    wherever the folder lies, and the rule by which the file is divided."""
    file, form, into = _part(Path(path), split)
    rule = [*into, str(HELD_OUT)] if into else []
    words = [READERS_VERSION, form, split, *rule, file.name, files.sha256_of_file(file)]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def _part(path: Path, split: str) -> _Part:
    check_choice("split", split, SETS)
    parts = _parts(path)
    if split not in parts:
        what = f"no claims for {split} here, but for {', '.join(parts)}"
        raise DataError(path, what, _LOOKED_FOR, field="claims")
    return parts[split]


def _parts(path: Path) -> dict[str, _Part]:
    """Set -> its file, for all sets that are there. Raises DataError if there is none."""
    if not path.exists():
        raise DataError(path, "no such file or folder", _LOOKED_FOR, field="claims")
    parts = _parts_of_folder(path) if path.is_dir() else _parts_of_file(path)
    if not parts:
        raise DataError(path, "no claims that can be read", _LOOKED_FOR, field="claims")
    return parts


def _parts_of_folder(folder: Path) -> dict[str, _Part]:
    parts: dict[str, _Part] = {}
    for pattern, form in _NAMES:
        of_split = {split: files.present_file(folder, pattern.format(split)) for split in SETS[:3]}
        if not parts and of_split["dev"] and of_split["test"]:
            parts = {split: _Part(file, form) for split, file in of_split.items() if file}
            if "train" not in parts:
                divided = _Part(of_split["dev"], form, into=("train", "dev"))
                parts = {"train": divided, **parts, "dev": divided}
    if symmetric := files.present_file(folder, *_SYMMETRIC):
        parts["symmetric"] = _Part(symmetric, "fever_symmetric")
    return parts


def _parts_of_file(file: Path) -> dict[str, _Part]:
    fields = next(read_json_lines(file)).fields
    if "evidence_sentence" in fields or isinstance(fields.get("evidence"), str):
        return {"symmetric": _Part(file, "fever_symmetric")}
    form = "fm2" if "wikipedia_page" in fields else "fever" if "evidence" in fields else ""
    return {split: _Part(file, form, into=SETS[:3]) for split in SETS[:3] if form}
