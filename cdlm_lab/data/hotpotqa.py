"""HotpotQA (Yang et al. 2018) in its official files: questions with gold, questions without, predictions.

    [{"_id": "q1", "question": "Who wrote Blue Mill?", "answer": "Ann Lee", "type": "bridge", "level": "hard",
      "supporting_facts": [["Blue Mill", 0]],
      "context": [["Blue Mill", ["Blue Mill is a novel by Ann Lee.", " It was her first."]], ...]}, ...]

A supporting fact is the title of a paragraph and the number of a sentence in it, from 0. `answer`, `type`,
`level` and `supporting_facts` may be missing or null, as in a test set. Sentences keep the space before them,
and those of blanks alone, which the data have, keep their numbers. A prediction file, for all questions or
some:

    {"answer": {"q1": "Ann Lee"}, "sp": {"q1": [["Blue Mill", 0]]}}

The hub's form is read too: `id` for `_id`, and columns for pairs, `"supporting_facts": {"title": [...],
"sent_id": [...]}` and `"context": {"title": [...], "sentences": [[...], ...]}`; and files `.jsonl`, with a
record on each line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

from cdlm_lab.data.files import COMPRESSED, DataError, plain_name, replaced_file
from cdlm_lab.data.json_file import read_json, read_json_list
from cdlm_lab.data.json_lines import JsonRecord, kind_of, read_json_lines
from cdlm_lab.data.multihop_questions import (
    QUESTION_KINDS,
    MultihopQuestion,
    Paragraph,
    SupportingFact,
    check_question,
)

UnknownFacts = Literal["refuse", "keep"]
Facts = tuple[SupportingFact, ...]

_FACT_REMEDY = 'write it as ["title", 0]'
_PARAGRAPH_REMEDY = 'write it as ["title", ["sentence", ...]]'


class HotpotPredictions(TypedDict):
    """A prediction file. Either part may lack questions: the official scorer gives 0 for these.

    Keys:
        answer: id of a question -> text of its answer.
        sp: id of a question -> its supporting facts.
    """

    answer: dict[str, str]
    sp: dict[str, list[SupportingFact]]


def read_hotpotqa(path: str | Path, *, unknown_facts: UnknownFacts = "refuse") -> list[MultihopQuestion]:
    """The questions of a file, plain or compressed, in order. A fact that is given twice is kept once.

    Args:
        unknown_facts: what to do with supporting facts that name no sentence of the context, of which the
            published data are said to have a few: refuse the file, or keep them apart, in
            `unknown_supporting`.

    Raises:
        ValueError: an unknown value of `unknown_facts`.
        DataError: broken JSON, not a list, no questions, a missing or wrong field, two questions of one id, a
            question that `check_question` refuses, an unknown fact, and as `files.read_text`. `line` is that
            at which the question starts; its number and id are in the message.
    """
    if unknown_facts not in get_args(UnknownFacts):
        raise ValueError(f"unknown_facts is {unknown_facts!r}; choose refuse or keep")
    questions = []
    for record, question in _read_questions(Path(path)):
        if question.unknown_supporting and unknown_facts == "refuse":
            title, sentence = question.unknown_supporting[0]
            what = f"the context has no sentence {sentence} of {title!r}, counted from 0"
            raise record.error("supporting_facts", what, 'correct it, or read with unknown_facts="keep"')
        questions.append(question)
    return questions


def hotpot_record(question: MultihopQuestion) -> dict[str, Any]:
    """A question as the official files and scorer have it. What is not known is left out; facts that name no
    sentence are not."""
    facts = [[title, sentence] for title, sentence in question.supporting + question.unknown_supporting]
    record = {
        "_id": question.id,
        "question": question.text,
        "answer": question.answer,
        "type": question.kind or None,
        "level": question.level or None,
        "supporting_facts": facts if facts or question.answer is not None else None,
        "context": [[paragraph.title, list(paragraph.sentences)] for paragraph in question.paragraphs],
    }
    return {name: value for name, value in record.items() if value is not None}


def write_hotpot_questions(path: str | Path, questions: Iterable[MultihopQuestion]) -> None:
    """Questions in the official format, from which `read_hotpotqa` makes the same questions again.

    Raises:
        ValueError: `path` names a compressed file; they are written plain.
        DataError: the folder of `path` is not there.
    """
    _write(path, [hotpot_record(question) for question in questions])


def write_predictions(
    path: str | Path, answers: Mapping[str, str], supporting: Mapping[str, Sequence[SupportingFact]]
) -> None:
    """The official prediction file.

    Args:
        answers: id of a question -> text of its answer.
        supporting: id of a question -> its supporting facts.

    Raises:
        ValueError: `path` names a compressed file; they are written plain.
        DataError: the folder of `path` is not there.
    """
    facts = {
        name: [[title, int(sentence)] for title, sentence in members] for name, members in supporting.items()
    }
    _write(path, {"answer": dict(answers), "sp": facts})


def read_predictions(path: str | Path) -> HotpotPredictions:
    """A prediction file, as `metrics.question_answering.hotpotqa` takes it; other parts are passed over.

    Raises:
        DataError: broken JSON, a part that is missing or wrong, an answer that is no text, a supporting fact
            that is not a title and a number, and as `files.read_text`.
    """
    path = Path(path)
    _, value = read_json(path)
    if not isinstance(value, dict):
        what = f"{kind_of(value)} where an object belongs"
        raise DataError(path, what, 'write it as {"answer": {...}, "sp": {...}}')
    whole = JsonRecord(path=path, line=1, fields=value)
    answers, supporting = _part(whole, "answer"), _part(whole, "sp")
    return {
        "answer": {name: answers.text(name) for name in answers.fields},
        "sp": {name: list(_facts(supporting, name)) for name in supporting.fields},
    }


def _part(whole: JsonRecord, name: str) -> JsonRecord:
    if name not in whole.fields:
        raise whole.error(name, "missing", f'add "{name}": {{...}} to the file')
    return whole.record(name, whole.fields[name])


def _read_questions(path: Path) -> Iterator[tuple[JsonRecord, MultihopQuestion]]:
    """Every question with the record it is of."""
    numbers: dict[str, int] = {}
    by_line = plain_name(path).endswith(".jsonl")
    records = ((one, one.fields) for one in read_json_lines(path)) if by_line else read_json_list(path)
    for number, (whole, item) in enumerate(records):
        record = whole.record(f"[{number}]", item)
        id_field = "id" if "id" in record.fields and "_id" not in record.fields else "_id"
        name = record.text(id_field)
        record = replace(record, within=f"[{number}] {name!r}.")
        if (first := numbers.setdefault(name, number)) != number:
            raise record.error(id_field, f"[{first}] has this id too", "give each question its own")
        question = _question(record, name)
        try:
            check_question(question, where=f"[{number}]")
        except ValueError as error:
            remedy = "correct the question, or leave it out"
            raise DataError(path, str(error), remedy, line=whole.line, field="question") from None
        yield record, question
    if not numbers:
        raise DataError(path, "no questions", "add some, or leave the file out")


def _question(record: JsonRecord, name: str) -> MultihopQuestion:
    kind = record.optional_text("type") or ""
    if kind and kind not in QUESTION_KINDS:
        remedy = f"write {' or '.join(QUESTION_KINDS)}, or leave it out"
        raise record.error("type", f"{kind!r} is no type of question", remedy)
    paragraphs = tuple(_paragraphs(record))
    sizes = {paragraph.title: len(paragraph.sentences) for paragraph in paragraphs}
    # Facts as a set: the official scorer counts a repeated one once.
    given = record.fields.get("supporting_facts")
    facts = dict.fromkeys(() if given is None else _facts(record, "supporting_facts"))
    known = tuple(fact for fact in facts if 0 <= fact[1] < sizes.get(fact[0], 0))
    return MultihopQuestion(
        id=name,
        text=record.text("question"),
        paragraphs=paragraphs,
        answer=record.optional_text("answer"),
        supporting=known,
        unknown_supporting=tuple(fact for fact in facts if fact not in known),
        kind=kind,
        level=record.optional_text("level") or "",
    )


def _paragraphs(record: JsonRecord) -> Iterator[Paragraph]:
    if "context" not in record.fields:
        raise record.error("context", "missing", 'add "context": [...] to the record')
    for where, title, sentences in _pairs(record, "context", "sentences", remedy=_PARAGRAPH_REMEDY):
        yield Paragraph(
            title=record.checked_text(f"{where}[0]", title),
            sentences=tuple(
                record.checked_text(f"{where}[1][{place}]", sentence)
                for place, sentence in enumerate(_list(record, f"{where}[1]", sentences))
            ),
        )


def _facts(record: JsonRecord, field: str) -> Iterator[SupportingFact]:
    for where, title, sentence in _pairs(record, field, "sent_id", remedy=_FACT_REMEDY):
        if not isinstance(sentence, int) or isinstance(sentence, bool):
            what = f"{kind_of(sentence)} where a whole number belongs"
            raise record.error(f"{where}[1]", what, _FACT_REMEDY)
        yield record.checked_text(f"{where}[0]", title), sentence


def _pairs(
    record: JsonRecord, field: str, second: str, *, remedy: str
) -> Iterator[tuple[str, object, object]]:
    """(where it stands, title, the other value) of each pair in a list of pairs, or in two columns."""
    value = record.fields[field]
    if isinstance(value, dict):
        columns = record.record(field, value)
        titles, others = (_column(columns, name) for name in ("title", second))
        if len(titles) != len(others):
            what = f"{len(titles)} titles, but {len(others)} {second}"
            raise record.error(field, what, "give one for each title")
        value = [[title, other] for title, other in zip(titles, others, strict=True)]
    for number, item in enumerate(_list(record, field, value)):
        where = f"{field}[{number}]"
        if not isinstance(item, list) or len(item) != 2:
            found = f"a list of {len(item)}" if isinstance(item, list) else kind_of(item)
            raise record.error(where, f"{found} where two values belong", remedy)
        yield where, *item


def _column(columns: JsonRecord, name: str) -> list[object]:
    if name not in columns.fields:
        raise columns.error(name, "missing", f'add "{name}": [...] to the columns')
    return _list(columns, name, columns.fields[name])


def _list(record: JsonRecord, where: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise record.error(where, f"{kind_of(value)} where a list belongs", "write it as [...]")
    return value


def _write(path: str | Path, value: object) -> None:
    path = Path(path)
    if path.suffix in COMPRESSED:
        raise ValueError(f"{path}: files are written plain; call it {path.stem}")
    if not path.parent.is_dir():
        raise DataError(path, "there is no such folder to write to", "make it first", field="folder")
    with replaced_file(path) as file:
        json.dump(value, file)
        file.write("\n")
