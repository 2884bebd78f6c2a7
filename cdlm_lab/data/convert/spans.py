"""Spans of characters, as tools of annotation and spaCy export them, become rows of one's own.

One text is a row of JSON lines or of a JSON list, in one of these forms, whose exports are

    {"text": "", "label": [[0, 3, "PER"]]}                                      doccano 1.8
    {"text": "", "entities": [{"id", "label", "start_offset", "end_offset"}],
     "relations": [{"from_id", "to_id", "type"}]}                               doccano 1.8, with relations
    {"text": "", "spans": [{"start", "end", "label"}], "answer": "accept",
     "relations": [{"head_span", "child_span", "label"}]}                       Prodigy 1.10 and later
    {"data": {"text": ""}, "annotations": [{"result": [{"id", "type": "labels",
     "value": {"start", "end", "labels"}}, {"type": "relation", ...}]}]}        Label Studio 1.x, and JSON_MIN
    {"text": "", "ents": [{"start", "end", "label"}],
     "spans": {"coref_clusters_1": [{"start", "end"}]}}                         spaCy 3, `Doc.to_json`

Places are in characters from 0, with the end behind the last one. Where a span says its text and has it at
its place in UTF-16, as browsers count, it is taken from there.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field, model_validator

from cdlm_lab.data import native, records
from cdlm_lab.data.coreference import kinds_told
from cdlm_lab.data.files import DataError, Fields, FilledText, Name, Text
from cdlm_lab.data.records import Kind, PassedOver
from cdlm_lab.data.rows import Row, Rows, rows_by_split
from cdlm_lab.data.words import token_spans

_LISTS = ("label", "labels", "entities", "spans", "ents")
_SAME = re.compile("coref|same|ident|anaphor", re.IGNORECASE)  # in the names of relations
_GROUP = "coref_clusters"  # in the names of spaCy's groups of spans of one cluster


class _Span(Fields):
    id: Name = ""
    start: int = Field(validation_alias=AliasChoices("start", "start_offset"))
    end: int = Field(validation_alias=AliasChoices("end", "end_offset"))
    label: Text = ""
    text: Text | None = None
    cluster: Name = ""

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        """[0, 3, "PER"], and a result of Label Studio, as the others."""
        if isinstance(value, list) and len(value) == 3:
            return dict(zip(("start", "end", "label"), value, strict=True))
        if not isinstance(value, dict):
            return value
        inner = value.get("value")
        value = {"id": value.get("id"), **inner} if isinstance(inner, dict) else value
        named = value.get("labels") or value.get("hypertextlabels")
        if isinstance(named, list) and named:
            value = value | {"label": named[0]}
        return {name: one for name, one in value.items() if one is not None}


@dataclass(slots=True, kw_only=True)
class _Annotated:
    """A text with its spans, by a key that relations use; `links`: pairs of such keys."""

    row: Row
    id: str
    text: str
    spans: dict[Any, _Span] = field(default_factory=dict)
    links: list[tuple[Any, Any]] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The file and line."""
        return f"{self.row.path}:{self.row.line}"

    def add(self, given: Any, passed_over: PassedOver, *, cluster: str = "") -> Any:
        """Add a span, and return its key; one that cannot be is counted."""
        one = replace(self.row, fields=given, within="span.").checked(_Span).fields
        if one.text is not None and self.text[one.start : one.end] != one.text:
            units = self.text.encode("utf-16-le")[2 * one.start : 2 * one.end]
            before = self.text.encode("utf-16-le")[: 2 * one.start].decode("utf-16-le", "replace")
            if one.start < 0 or units.decode("utf-16-le", "replace") != one.text:
                return passed_over.add("span whose text is not what stands at its place", self.place)
            one = one.model_copy(update={"start": len(before), "end": len(before) + len(one.text)})
        if not 0 <= one.start < one.end <= len(self.text):
            return passed_over.add("span outside of its text", self.place)
        if not self.text[one.start : one.end].strip():
            return passed_over.add("span without words", self.place)
        key = one.id or (one.start, one.end, one.label)
        self.spans.setdefault(key, one.model_copy(update={"cluster": cluster or one.cluster}))
        return key

    def count_divided(self, passed_over: PassedOver) -> None:
        """Count the spans that begin or end within a word."""
        words = token_spans(self.text) if self.spans else []
        starts, ends = [start for start, _ in words], [end for _, end in words]
        for one in self.spans.values():
            if any(bisect_right(ends, place) < bisect_left(starts, place) for place in (one.start, one.end)):
                passed_over.add("span that begins or ends within a word, which was divided", self.place)

    def link(self, first: Any, second: Any, named: object, passed_over: PassedOver) -> None:
        """Add a link of coreference; a relation of another name is counted."""
        if named and not _SAME.search(str(named)):
            return passed_over.add("relation that is not named as one of coreference", self.place)
        if first not in self.spans or second not in self.spans:
            return passed_over.add("relation of spans that are not there", self.place)
        return self.links.append((first, second))


def is_spans(fields: Mapping[str, Any]) -> bool:
    """Whether a row is a text with spans in one of the forms."""
    lists = any(isinstance(fields.get(name), list) for name in _LISTS)
    return ("text" in fields and lists) or (
        isinstance(fields.get("data"), dict) and isinstance(fields.get("annotations"), list)
    )


def span_files(path: Path) -> dict[str, Rows]:
    """Split -> its rows, if the first one is a text with spans; else {}."""
    found = rows_by_split(path)
    try:
        first = next(next(iter(found.values()))(), None) if found else None
    except DataError:  # whoever reads the file says so
        return {}
    return found if first and isinstance(first.fields, dict) and is_spans(first.fields) else {}


def read_spans(rows: Rows, *, passed_over: PassedOver) -> Iterator[records.TaggedDocument]:
    """Yield the texts with their spans as names. Of nested spans the outermost is kept, of crossing ones the
    first; a word within which one begins or ends is divided there. These, spans without a label or outside of
    their text, and texts that were rejected are counted."""
    return native.read_tagged(
        _tagged(one, passed_over) for one in _annotated(rows, passed_over, linked=False)
    )


def _tagged(one: _Annotated, passed_over: PassedOver) -> Row:
    names, reached = [], 0
    for span in sorted(one.spans.values(), key=lambda span: (span.start, -span.end)):
        if span.start < reached:
            reason = "span within another one" if span.end <= reached else "span that crosses another one"
            passed_over.add(f"{reason}, which counts", one.place)
        elif not span.label:
            passed_over.add("span without a label", one.place)
        else:
            names.append({"start": span.start, "end": span.end, "label": span.label})
            reached = span.end
    return replace(one.row, fields={"id": one.id, "text": one.text, "names": names})


def read_linked_spans(
    rows: Rows, *, passed_over: PassedOver, kind: Kind | None = None
) -> Iterator[records.CoreferenceDocument]:
    """Yield the texts with their spans as mentions. Spans are of one cluster if relations between them say so
    (their name holds coref, same, ident or anaphor, or there is none), a group of spaCy's, or their field
    `cluster`; others stand alone. Each text is a topic of its own, unless the row has a `topic`, within which
    equal names in `cluster` are one. Labels say what is an event (`kinds_told`); `kind`: only these
    mentions."""
    texts = list(_annotated(rows, passed_over, linked=True))
    kinds = kinds_told({span.label for one in texts for span in one.spans.values()}, kind)
    return native.read_coreference((_linked(one, kinds) for one in texts), kind=kind)


def _linked(one: _Annotated, kinds: Mapping[str, Kind]) -> Row:
    topic = str(one.row.fields.get("topic") or one.id)
    cluster = {key: f"{one.id}:{number}" for number, key in enumerate(one.spans)}
    for key, span in one.spans.items():
        if span.cluster:
            cluster[key] = f"{topic}:{span.cluster}"
    for first, second in one.links:
        was, now = cluster[second], cluster[first]
        cluster = {key: now if name == was else name for key, name in cluster.items()}
    mentions = [
        {"start": span.start, "end": span.end, "cluster": cluster[key], "kind": kinds[span.label]}
        for key, span in one.spans.items()
    ]
    return replace(one.row, fields={"id": one.id, "topic": topic, "text": one.text, "mentions": mentions})


def _annotated(rows: Rows, passed_over: PassedOver, *, linked: bool) -> Iterator[_Annotated]:
    """The texts; `linked`: with their relations and groups."""
    for number, row in enumerate(rows()):
        given = row.fields
        if given.get("answer", "accept") != "accept":
            passed_over.add(f"text whose answer is {given['answer']}", f"{row.path}:{row.line}")
            continue
        name, data = str(given.get("id", number)), given.get("data")
        if isinstance(data, dict):
            texts = [value for value in data.values() if isinstance(value, str)]
            data = data if "text" in data or len(texts) != 1 else {"text": texts[0]}
            one = _Annotated(row=row, id=name, text=_text(row, data))
            found = _add_results(one, passed_over, linked=linked)
        elif is_spans(given):
            one = _Annotated(row=row, id=name, text=_text(row, given))
            found = _add_spans(one, given, passed_over, linked=linked)
        else:
            raise row.error("spans", "no list of spans", f"write one of {', '.join(_LISTS)}")
        one.count_divided(passed_over)
        yield from [one] if found else []


def _text(row: Row, given: Mapping[str, Any]) -> str:
    class Given(Fields):
        text: FilledText

    return replace(row, fields=dict(given)).checked(Given).fields.text


def _add_spans(one: _Annotated, given: Mapping[str, Any], passed_over: PassedOver, *, linked: bool) -> bool:
    held = given.get("spans")
    groups = {name: some for name, some in held.items() if _GROUP in name} if isinstance(held, dict) else {}
    groups = groups if linked else {}
    for name, some in groups.items():
        for part in some if isinstance(some, list) else ():
            one.add(part, passed_over, cluster=f"{one.id}/{name}")
    for part in () if groups else next(given[each] for each in _LISTS if isinstance(given.get(each), list)):
        one.add(part, passed_over)
    relations = given.get("relations")
    for relation in relations if linked and isinstance(relations, list) else ():
        if isinstance(relation, dict) and {"head_span", "child_span"} <= set(relation):
            ends = [one.add(relation[end], passed_over) for end in ("head_span", "child_span")]
            one.link(*ends, relation.get("label"), passed_over)
        elif isinstance(relation, dict):
            ends = [str(relation.get(end, "")) for end in ("from_id", "to_id")]
            one.link(*ends, relation.get("type"), passed_over)
    return True


def _add_results(one: _Annotated, passed_over: PassedOver, *, linked: bool) -> bool:
    """Add the results of a task of Label Studio, those of its first annotation that was not cancelled; False
    if it has none."""
    made = [each for each in one.row.fields.get("annotations") or () if isinstance(each, dict)]
    made = [each.get("result") for each in made if not each.get("was_cancelled")]
    if not made:
        passed_over.add("text that nobody annotated", one.place)
    for _ in made[1:]:
        passed_over.add("second annotation of a text, of which the first counts", one.place)
    given = made[0] if made and isinstance(made[0], list) else []
    results = [each for each in given if isinstance(each, dict)]
    for result in results:
        value = result.get("value")
        if isinstance(value, dict) and {"labels", "hypertextlabels"} & set(value):
            one.add(result, passed_over)
        elif result.get("type") != "relation":
            passed_over.add("result that is no span", one.place)
    for result in results if linked else ():
        if result.get("type") == "relation":
            named = " ".join(map(str, result.get("labels") or ()))
            one.link(str(result.get("from_id")), str(result.get("to_id")), named, passed_over)
    return bool(made)
