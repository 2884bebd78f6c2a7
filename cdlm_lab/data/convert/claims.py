"""Claims with evidence for fact verification: FEVER and relatives (MSPP paper, section 3.1), as rows.

A folder may hold, compressed or not (a plain file is preferred to a compressed one of the same name):

- FEVER with KGAT's evidence: `bert_dev.json`, `bert_test.json` and, if it is there, `bert_train.json`;
- or else FM2: `fm2_dev.jsonl`, `fm2_test.jsonl` and `fm2_train.jsonl`; or one's own `dev.jsonl`, ...;
- FeverSymmetric, which is a test set of its own, "symmetric": `fever_symmetric_test.jsonl` (version 0.2) or,
  without that, `fever_symmetric_full.jsonl` (version 0.1), both also with `v0.2_` or `v0.1_` before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AliasChoices, BeforeValidator, Field

from cdlm_lab.data import files
from cdlm_lab.data.files import Fields, FilledText, JsonRecord, Name, Text
from cdlm_lab.data.records import CLAIM_LABELS, EvidencedClaim
from cdlm_lab.data.rows import rows_by_split, rows_of
from cdlm_lab.data.splits import SPLIT_NAMES

FeverLabel = Literal["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]
Evidence = Literal["retrieved", "gold"]
SYMMETRIC = "symmetric"
Rows = Iterator[JsonRecord[Any]]

_LABELS = dict(zip(get_args(FeverLabel), CLAIM_LABELS, strict=True))
_LABEL = Field(None, description=f"write one of {', '.join(_LABELS)}, or leave it out")
_MARKS = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]"}
_ESCAPES = [(re.compile(rf"-{name}-|\b{name}\b"), plain) for name, plain in _MARKS.items()]
_COLON = re.compile(r"-COLON-|\bCOLON\b")
_ADDED = re.compile(r"000000[2-4]$")
_NAMES = ("bert_{}.json", "fm2_{}.jsonl", "{}.jsonl")
_SYMMETRIC = [
    f"{version}fever_symmetric_{part}.jsonl"
    for part, versions in (("test", ("v0.2_", "")), ("full", ("v0.1_", "")))
    for version in versions
]


def files_by_set(folder: str | Path) -> dict[str, Callable[[], Rows]]:
    """Set (train, validation, test, symmetric) -> its rows, by the names of the files of a folder."""
    sets: dict[str, Callable[[], Rows]] = {}
    for pattern in _NAMES:
        names = {split: pattern.format(split) for split in ("train", "dev", "test")}
        found = {split: files.present_file(folder, name) for split, name in names.items()}
        if found["dev"] and found["test"]:
            sets = {SPLIT_NAMES[split]: partial(rows_of, file) for split, file in found.items() if file}
            break
    if symmetric := files.present_file(folder, *_SYMMETRIC):
        sets[SYMMETRIC] = partial(rows_of, symmetric)
    return sets or rows_by_split(folder)


def is_symmetric(fields: Mapping[str, Any]) -> bool:
    """Whether a row is of FeverSymmetric, whose evidence is one sentence."""
    return "claim" in fields and ("evidence_sentence" in fields or isinstance(fields.get("evidence"), str))


def is_fever(fields: Mapping[str, Any]) -> bool:
    """Whether a row is of FEVER with KGAT's evidence, which is lists of page, number, sentence and score."""
    evidence = fields.get("evidence")
    return "claim" in fields and isinstance(evidence, list) and all(isinstance(one, list) for one in evidence)


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


def _unique(rows: Rows, kind: type[Any]) -> Iterator[Any]:
    """The fields of rows, checked; ids differ."""
    lines: dict[str, int] = {}
    for row in rows:
        record = row.checked(kind)
        if (first := lines.setdefault(record.fields.id, record.line)) != record.line:
            what = f"{record.fields.id!r} stands in line {first} already"
            raise record.error("id", what, "give each record its own id")
        yield record.fields


def refuse_fever(rows: Rows, **_: Any) -> Iterator[EvidencedClaim]:
    """Raise DataError for FEVER's own file, whose evidence is numbers of sentences in a copy of Wikipedia."""
    what = "FEVER's own file: it names evidence by page and number, and has no sentences"
    remedy = "give the files with KGAT's evidence, bert_dev.json and bert_test.json"
    raise next(rows).error("evidence", what, remedy)


def read_fever(
    rows: Rows, *, most_evidence: int = 5, evidence: Evidence = "retrieved"
) -> Iterator[EvidencedClaim]:
    """Yield claims of FEVER (Thorne et al. 2018) with KGAT's evidence (Liu et al. 2020), one at a time.

        {"id": 91198, "claim": "Ann Lee wrote Blue Mill.", "label": "SUPPORTS",
         "evidence": [["Blue_Mill", 0, "Blue Mill LRB 1999 RRB is a novel by Ann Lee .", 0.97], ...]}

    A row of evidence is a page, the number of a sentence there, the sentence, and a score that is not read.
    The first `most_evidence` non-empty sentences are used: KGAT's own script put the annotated (gold) ones
    first in train and dev, but not in test, which makes dev easier (the MSPP paper's Table 3: 81.2 for dev,
    74.4 for test). The group of a claim is the page of its first evidence, or its id if it has none.
    """
    if evidence != "retrieved":
        what, remedy = f"FEVER in KGAT's form has no {evidence} evidence", 'read with evidence="retrieved"'
        raise next(rows).error("evidence", what, remedy)
    for fields in _unique(rows, _Fever):
        some = [(plain_title(title), plain_text(sentence)) for title, _, sentence in fields.evidence]
        some = [row for row in some if row[1].strip()][:most_evidence]
        group = some[0][0] if some else fields.id
        yield fields.claim_of(plain_text(fields.claim), [". ".join(row) for row in some], group)


def read_fm2(
    rows: Rows, *, evidence: Evidence = "retrieved", most_evidence: int = 5
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
    for fields in _unique(rows, _Retrieved if evidence == "retrieved" else _Gold):
        page = fields.wikipedia_page
        filled = [f"{page}. {one.text}" for one in fields.evidence if one.text.strip()]
        yield fields.claim_of(fields.text, filled[:most_evidence], page)


def read_symmetric(rows: Rows, **_: Any) -> Iterator[EvidencedClaim]:
    """Yield claims of FeverSymmetric (Schuster et al. 2019), each with its one evidence sentence.

        {"id": "111897", "claim": "...", "evidence_sentence": "...", "label": "REFUTES"}

    Of each four pairs of a claim and a sentence, two are supported and two refuted, so that the claim alone
    does not predict the label. Version 0.2 names the sentence `evidence`. The id of an added pair is that of
    the original pair followed by 0000002, 0000003 or 0000004; the group of a claim is the original's id.
    """
    for fields in _unique(rows, _Symmetric):
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
