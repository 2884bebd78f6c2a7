"""One's own data: rows in the native form of each task, as a person writes them, become records.

A row has the fields of the record (`cdlm_lab.data.records`), and may be shorter: a text stands for a document
or paragraph and is split into sentences here, an id that is missing is the number of the row, spans are in
characters of the text as given. notebooks/README.md shows three lines for each task.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from cdlm_lab.data import records, tags
from cdlm_lab.data.coreference import document_of_spans, words_of_text
from cdlm_lab.data.files import FROM_LIST, Fields, FilledText, JsonRecord, Name
from cdlm_lab.data.questions import check_question
from cdlm_lab.data.records import Kind
from cdlm_lab.data.words import sentence_spans, sentence_starts, split_sentences, visible_word, with_spaces

Row = JsonRecord[Any]
Rows = Iterator[Row]


def checked(row: Row, kind: type[Any], fields: Mapping[str, Any]) -> Any:
    """The record of that kind with these fields. Raises DataError at the row if it is not consistent, or has
    a text that UTF-8 cannot encode."""
    try:
        json.dumps(fields, ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError:
        raise row.error("line", "half a surrogate pair", "remove the lone \\ud... escape") from None
    return replace(row, fields=dict(fields)).checked(kind).fields


def _renamed(fields: Mapping[str, Any], number: int, **names: str) -> dict[str, Any]:
    """The fields under the names of records, without those that are null; an id is a text, by default the
    number of the row. `names`: other name -> name."""
    given = {names.get(name, name): value for name, value in fields.items() if value is not None}
    given.setdefault("id", number)
    return given | {"id": str(given["id"])} if isinstance(given["id"], int) else given


# ---- pairs of documents ----


def pair_document(name: str, text: str) -> records.PairDocument:
    """A text as sentences, with their offsets. Raises ValueError if it has none."""
    return records.PairDocument(id=name, **_sentences(text))


def _sentences(text: str) -> dict[str, Any]:
    return {"sentences": tuple(split_sentences(text)), "offsets": tuple(sentence_spans(text))}


def _as_document(value: object) -> object:
    """A text, or an object with `text` or `sentences`, as the fields of a PairDocument."""
    given = {"text": value} if isinstance(value, str) else value
    if isinstance(given, dict) and isinstance(given.get("text"), str) and "sentences" not in given:
        text = given["text"]
        given = {"id": given.get("id", text[:60].strip()), **_sentences(text)}
    if isinstance(given, dict) and isinstance(given.get("id"), int):
        given = given | {"id": str(given["id"])}
    return given


def read_pairs(rows: Rows) -> Iterator[records.DocumentPair]:
    """{"first": "A text.", "second": {"id": "b", "sentences": ["One.", "Two."]}, "related": true,
    "aligned": [0]}; pairs of one first document are of one cluster, unless `cluster` says otherwise."""
    for number, row in enumerate(rows):
        fields = _renamed(row.fields, number, label="related", text1="first", text2="second")
        for name in ("first", "second"):
            fields[name] = _as_document(fields.get(name))
        first = fields["first"]
        fields.setdefault("cluster", first.get("id", "") if isinstance(first, dict) else "")
        related = str(fields.get("related")).lower() in ("true", "1")
        fields.setdefault("aligned", None if related else ())
        yield checked(row, records.DocumentPair, fields)


# ---- questions over paragraphs ----


def read_questions(rows: Rows) -> Iterator[records.MultihopQuestion]:
    """{"question": "Who?", "paragraphs": {"Mill": "Ann wrote it. It was her first."}, "answer": "Ann",
    "supporting": [["Mill", 0]]}"""
    for number, row in enumerate(rows):
        fields = _renamed(row.fields, number, question="text", supporting_facts="supporting", type="kind")
        given = fields.get("paragraphs")
        if isinstance(given, dict):
            given = [{"title": title, "text": text} for title, text in given.items()]
        fields["paragraphs"] = [_paragraph(one) for one in given] if isinstance(given, list) else given
        question = checked(row, records.MultihopQuestion, fields)
        try:
            check_question(question, where=f"question {number}")
        except ValueError as error:
            raise row.error("question", str(error), "correct the question, or leave it out") from None
        yield question


def paragraph(title: str, text: str) -> records.Paragraph:
    """A text as a paragraph of the same length, with spaces for all white space."""
    plain, (_, *starts) = with_spaces(text), [*sentence_starts(text), len(text)]
    places = pairwise([0, *starts])
    return records.Paragraph(title=title, sentences=tuple(plain[start:end] for start, end in places))


def _paragraph(value: object) -> object:
    if isinstance(value, dict) and isinstance(value.get("text"), str) and "sentences" not in value:
        return {**value, "sentences": paragraph("", value["text"]).sentences}
    return value


# ---- tagged words ----


class _Named(Fields):
    start: int
    end: int
    label: FilledText


class _TaggedText(Fields):
    id: Name
    text: FilledText
    names: Annotated[tuple[_Named, ...], FROM_LIST] = ()


def read_tagged(rows: Rows) -> Iterator[records.TaggedDocument]:
    """{"text": "Ann left Rome.", "names": [{"start": 0, "end": 3, "label": "PER"}]}, in characters, or
    {"sentences": [{"words": ["Ann", "left"], "tags": ["B-PER", "O"]}]}; a sentence without tags is
    context."""
    for number, row in enumerate(rows):
        fields = _renamed(row.fields, number)
        if "text" not in fields:
            yield checked(row, records.TaggedDocument, fields)
            continue
        given = replace(row, fields=fields).checked(_TaggedText).fields
        names = [tags.TagSpan(label=one.label, first=one.start, stop=one.end) for one in given.names]
        for place, one in enumerate(names):
            inside = 0 <= one.first < one.stop <= len(given.text)
            if not inside or not given.text[one.first : one.stop].strip():
                what = f"[{one.first}, {one.stop}) is no name in a text of {len(given.text)} characters"
                raise row.error(f"names[{place}]", what, "count characters from 0; the end is the one behind")
        try:
            yield tags.tagged_text(given.id, given.text, names)
        except ValueError as error:
            raise row.error("names", str(error), "put one name inside the other, or leave one") from None


# ---- candidate answers ----


class _Candidate(Fields):
    id: Name | None = Field(None, min_length=1, validation_alias=AliasChoices("id", "QuestionID"))
    question: FilledText = Field(validation_alias=AliasChoices("question", "Question"))
    text: FilledText = Field(
        validation_alias=AliasChoices("candidate", "sentence", "answer", "Sentence", "text")
    )
    label: Annotated[
        bool, BeforeValidator(lambda value: {"0": False, "1": True}.get(str(value).strip(), value))
    ] = Field(validation_alias=AliasChoices("label", "Label", "correct"), description="write 1 or 0")


def read_candidates(rows: Rows) -> Iterator[records.CandidateSet]:
    """{"question": "Who?", "candidates": ["Ann did.", "It rained."], "correct": [true, false]}"""
    for number, row in enumerate(rows):
        fields = _renamed(row.fields, number, labels="correct")
        one = checked(row, records.CandidateSet, fields)
        if not one.candidates or len(one.correct) != len(one.candidates):
            what = f"{len(one.candidates)} candidates, but {len(one.correct)} labels"
            raise row.error("correct", what, "give one for each candidate, and at least one candidate")
        yield one


def read_candidate_table(rows: Rows) -> Iterator[records.CandidateSet]:
    """{"question": "Who?", "candidate": "Ann did.", "label": 1}, a row for each candidate, as also in CSV and
    in WikiQA (Yang, Yih and Meek 2015); all rows of one `id` (QuestionID), or of one question, are a set, by
    default with the number of the question as id. Equal candidates stay, as published numbers count them."""
    sets: dict[str, list[_Candidate]] = {}
    for row in rows:
        one = row.checked(_Candidate).fields
        some = sets.setdefault(one.id or one.question, [])
        some.append(one)
        if some[0].question != one.question:
            what = f"{one.id!r} is the id of another question already"
            raise row.error("id", what, "give each question its own id")
    for number, some in enumerate(sets.values()):
        yield records.CandidateSet(
            id=some[0].id or str(number),
            question=some[0].question.strip(),
            candidates=tuple(one.text.strip() for one in some),
            correct=tuple(one.label for one in some),
        )


# ---- claims ----

_LABELS = {"SUPPORTS": "supported", "REFUTES": "refuted", "NOT ENOUGH INFO": "not enough info"}


class _Claim(Fields):
    id: Name
    text: FilledText = Field(validation_alias=AliasChoices("text", "claim"))
    evidence: Annotated[tuple[FilledText, ...], FROM_LIST] = ()
    label: str | None = Field(None, description=f"write one of {', '.join(records.CLAIM_LABELS)}")
    group: Name = ""


def read_claims(
    rows: Rows, *, most_evidence: int | None = None, evidence: str = ""
) -> Iterator[records.EvidencedClaim]:
    """{"claim": "Ann wrote it.", "evidence": ["Mill. Ann wrote it in May."], "label": "supported"}; claims of
    one `group` (a page, a story) are in one split. `most_evidence`: the first so many sentences are used;
    `evidence` is of other formats."""
    for number, row in enumerate(rows):
        given = replace(row, fields=_renamed(row.fields, number)).checked(_Claim).fields
        label = _LABELS.get(given.label or "", given.label)
        if label is not None and label not in records.CLAIM_LABELS:
            remedy = f"write one of {', '.join(records.CLAIM_LABELS)}, or leave it out"
            raise row.error("label", f"{label!r} is unknown", remedy)
        yield records.EvidencedClaim(
            id=given.id,
            text=given.text,
            evidence=given.evidence[:most_evidence],
            label=label,
            group=given.group or given.id,
        )


# ---- coreference ----


class _Mention(Fields):
    start: int
    end: int
    cluster: Annotated[Name, Field(min_length=1)]
    kind: Kind = "event"


class _MentionText(Fields):
    id: Name
    topic: Name = "all"
    text: FilledText
    mentions: Annotated[tuple[_Mention, ...], FROM_LIST] = ()

    @model_validator(mode="after")
    def _check(self) -> _MentionText:
        for one in self.mentions:
            if not 0 <= one.start < one.end <= len(self.text) or not self.text[one.start : one.end].strip():
                what = f"mention [{one.start}, {one.end}) has no words in {len(self.text)} characters"
                raise ValueError(f"{what}; count characters from 0; the end is the one behind")
        return self


def read_coreference(rows: Rows, *, kind: Kind | None = None) -> Iterator[records.CoreferenceDocument]:
    """{"id": "a", "topic": "fire", "text": "A fire broke out.", "mentions": [{"start": 2, "end": 6,
    "cluster": "fire", "kind": "event"}]}, a document a row; kinds are event (the default) and entity. Words
    are those of `words_of_text`. `kind`: only these mentions."""
    for number, row in enumerate(rows):
        fields = _renamed(row.fields, number)
        if "tokens" in fields:
            one = checked(row, records.CoreferenceDocument, fields)
        else:
            given = replace(row, fields=fields).checked(_MentionText).fields
            try:
                one = _marked_text(given)
            except ValueError as error:
                raise row.error("mentions", str(error), "correct the mention, or leave it out") from None
        kept = tuple(mention for mention in one.mentions if kind in (None, mention.kind))
        yield replace(one, mentions=kept)


def _marked_text(given: _MentionText) -> records.CoreferenceDocument:
    cuts = (place for one in given.mentions for place in (one.start, one.end))
    words, sentences, before = words_of_text(given.text, cuts)
    return document_of_spans(
        [
            (f"{given.id}:{number}", (before[one.start], before[one.end]), one.kind, one.cluster)
            for number, one in enumerate(given.mentions)
        ],
        id=given.id,
        topic=given.topic,
        subtopic=given.topic,
        tokens=[visible_word(given.text[start:end]) for start, end in words],
        offsets=words,
        sentences=sentences,
        validated=range(len(sentences)),
    )


READ: dict[str, Callable[..., Iterator[Any]]] = {
    "coreference": read_coreference,
    "pairs": read_pairs,
    "questions": read_questions,
    "tagging": read_tagged,
    "candidates": read_candidates,
    "claims": read_claims,
}
