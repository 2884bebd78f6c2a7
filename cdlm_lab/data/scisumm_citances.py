"""What the annotations of CL-SciSumm and ScisummNet say of each citation: which sentences cite, and which
sentences of the cited paper are meant.

Three formats: lines of "Field: value | Field: value" (training set), CSV with the same fields (test set, one
file for each annotator) and JSON (ScisummNet, sentences alone).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from cdlm_lab.data.files import DataError
from cdlm_lab.data.json_lines import parse_json
from cdlm_lab.data.scisumm_papers import file_stem, plain_text

_NEXT_FIELD = re.compile(r"\|\s*+(?=[A-Z][A-Za-z ]{2,30}:)")
_NUMBER = re.compile(r"\d{1,9}")
_FIRST_FIELD = ("Citance Number", "Citation Number")  # one line of the release has the second
_FIELDS = ("Citing Article", "Citation Offset", "Citation Text", "Reference Offset")
_RELEASE = "copy the file again from the official release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Citance:
    """A passage of a citing paper that cites, as annotated.

    Attributes:
        citing: name of the citing paper's file, without ending.
        file, line: where the annotation stands.
        sentences: "sid" of the sentences of the passage; () if the annotation does not say.
        passages: the text itself, as it stands in the paper and cleaned, either may be missing.
        cited: "sid" of the sentences of the cited paper that are meant; () if the annotation does not say.
    """

    citing: str
    file: str
    line: int
    sentences: tuple[int, ...]
    passages: tuple[str, ...]
    cited: tuple[int, ...]


def line_citances(file: str, text: str) -> Iterator[Citance]:
    """Those of a file of the training set.

    Raises:
        DataError: a line that lacks one of the fields that are read, or no line at all.
    """
    if not text.strip():
        raise DataError(file, "no annotation in it", _RELEASE)
    for line, row in enumerate(text.split("\n"), start=1):
        if not row.strip():
            continue
        parts = (part.partition(":") for part in _NEXT_FIELD.split(row.strip().rstrip("|")))
        fields = {name.strip(): value.strip() for name, _, value in parts}
        if not any(name in fields for name in _FIRST_FIELD):
            what = f"a line without {_FIRST_FIELD[0]}"
            raise DataError(file, what, _RELEASE, line=line, field=_FIRST_FIELD[0])
        yield _citance(file, line, fields, text_field="Citation Text")


def csv_citances(file: str, text: str) -> Iterator[Citance]:
    """Those of a CSV of the test set, with answers or without. Its "Citation Offset" is 0 throughout, so that
    `sentences` is empty.

    Raises:
        DataError: no CSV, or one that lacks one of the fields that are read.
    """
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        _check_fields(file, 1, rows.fieldnames or ())
        for row in rows:
            fields = {name: value or "" for name, value in row.items() if isinstance(name, str)}
            if "".join(value if isinstance(value, str) else "" for value in row.values()).strip():
                fields["Citation Offset"] = ""
                yield _citance(file, rows.line_num, fields, text_field="Citation Text Clean")
    except csv.Error as error:
        raise DataError(
            file, f"not CSV ({error})", _RELEASE, line=rows.reader.line_num, field="row"
        ) from None


def json_citances(file: str, text: str) -> Iterator[Citance]:
    """Those of a `citing_sentences.json`.

    Raises:
        DataError: no JSON, or not of the form [{"citing_paper_id": "...", "raw_text": "..."}].
    """
    items = parse_json(text, file, remedy=_RELEASE)
    for number, item in enumerate(items if isinstance(items, list) else [None]):
        if not isinstance(item, dict) or not isinstance(item.get("citing_paper_id"), str):
            raise DataError(file, "no text", _RELEASE, field=f"[{number}].citing_paper_id")
        texts = (item.get(name) for name in ("raw_text", "clean_text"))
        passages = tuple(found for found in texts if isinstance(found, str))
        yield Citance(
            citing=item["citing_paper_id"], file=file, line=1, sentences=(), passages=passages, cited=()
        )


def _citance(file: str, line: int, fields: Mapping[str, str], *, text_field: str) -> Citance:
    _check_fields(file, line, fields)
    passages = dict.fromkeys(plain_text(fields.get(name, "")) for name in ("Citation Text", text_field))
    return Citance(
        citing=file_stem(fields["Citing Article"]),
        file=file,
        line=line,
        sentences=_numbers(fields["Citation Offset"]),
        passages=tuple(passage for passage in passages if passage),
        cited=_numbers(fields["Reference Offset"]),
    )


def _check_fields(file: str, line: int, fields: Collection[str]) -> None:
    for name in _FIELDS:
        if name not in fields:
            raise DataError(file, "the field is missing", _RELEASE, line=line, field=name)


def _numbers(text: str) -> tuple[int, ...]:
    """Those in a list that is written in many ways, as "['53', '61']" or "17'"; none in "NA"."""
    return tuple(map(int, _NUMBER.findall(text)))
