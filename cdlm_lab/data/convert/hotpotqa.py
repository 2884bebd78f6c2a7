"""Multi-hop questions over several paragraphs (HotpotQA's distractor setting; CDLM section 3.4).

HotpotQA (Yang et al. 2018) in its official files:

    [{"_id": "q1", "question": "Who wrote Blue Mill?", "answer": "Ann Lee", "type": "bridge", "level": "hard",
      "supporting_facts": [["Blue Mill", 0]],
      "context": [["Blue Mill", ["Blue Mill is a novel by Ann Lee.", " It was her first."]], ...]}, ...]

A supporting fact is the title of a paragraph and the number of a sentence in it, from 0. `answer`, `type`,
`level` and `supporting_facts` may be missing or null, as in a test set. Also read are the form of the Hugging
Face hub, with `id` for `_id` and columns for pairs, `"supporting_facts": {"title": [...], "sent_id": [...]}`
and `"context": {"title": [...], "sentences": [[...], ...]}`, and 2WikiMultihopQA (Ho et al. 2020), whose four
types become the two of HotpotQA. Paragraphs without text are left out; one whose title is there already gets
a number, "Mill (2)".
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from cdlm_lab.data import files
from cdlm_lab.data.files import FROM_LIST, DataError, FieldFault, Fields, JsonRecord, Text
from cdlm_lab.data.questions import check_question
from cdlm_lab.data.records import QUESTION_KINDS, MultihopQuestion, Paragraph, SupportingFact


def _rows(second: str, value: object) -> object:
    """Make the hub's two columns, "title" and `second`, a list of pairs; anything else stays as it is."""
    if not isinstance(value, dict):
        return value
    for name in ("title", second):
        if not isinstance(value.get(name), list):
            remedy = f'give the columns "title" and "{second}" as lists'
            raise FieldFault(f"{name} is missing or no list", remedy)
    titles, others = value["title"], value[second]
    if len(titles) != len(others):
        raise FieldFault(f"{len(titles)} titles, but {len(others)} {second}", "give one for each title")
    return [list(pair) for pair in zip(titles, others, strict=True)]


_Facts = Annotated[
    list[Annotated[tuple[Text, int], FROM_LIST]], BeforeValidator(lambda value: _rows("sent_id", value))
]
_Context = Annotated[
    list[Annotated[tuple[Text, list[Text]], FROM_LIST]],
    BeforeValidator(lambda value: _rows("sentences", value)),
]


# The kinds of 2WikiMultihopQA in HotpotQA's words: two hops in a row, or two things compared.
_KINDS = {"compositional": "bridge", "inference": "bridge", "bridge_comparison": "comparison"}
_TYPES = (*QUESTION_KINDS, *_KINDS, "")


class _Question(Fields):
    id: Text = Field(validation_alias=AliasChoices("_id", "id"))
    question: Text
    answer: Text | None = None
    type: Literal[_TYPES] | None = Field(
        None, description=f"write {' or '.join(QUESTION_KINDS)}, or leave it out"
    )
    level: Text | None = None
    supporting_facts: _Facts | None = Field(None, description='write each as ["title", 0]')
    context: _Context = Field(description='write each as ["title", ["sentence", ...]]')


def read_rows(rows: Iterator[JsonRecord[Any]]) -> Iterator[MultihopQuestion]:
    """Yield questions in order. Repeated supporting facts are kept once, as the official scorer counts them;
    those that refer to no sentence are in `unknown_supporting`. Raises DataError for a repeated id."""
    numbers: dict[str, int] = {}
    for number, raw in enumerate(rows):
        name = raw.fields.get("_id", raw.fields.get("id"))
        within = f"[{number}] {name!r}." if isinstance(name, str) else f"[{number}]."
        record = replace(raw, within=within).checked(_Question)
        if (first := numbers.setdefault(record.fields.id, number)) != number:
            raise record.error("_id", f"[{first}] has this id too", "give each question its own")
        question = _made(record.fields)
        try:
            check_question(question, where=f"[{number}]")
        except ValueError as error:
            remedy = "correct the question, or leave it out"
            raise DataError(raw.path, str(error), remedy, line=record.line, field="question") from None
        yield question


def _label(fields: _Question, paragraphs: Sequence[Paragraph]) -> str | None:
    """The answer; "Yes" or "no." is yes or no, unless it is a name ("Yes", the band) that stands in a
    paragraph of the supporting facts of a question that compares nothing."""
    answer = fields.answer
    plain = (answer or "").strip().rstrip(".!").strip().lower()
    if plain not in ("yes", "no"):
        return answer
    gold = {title for title, _ in fields.supporting_facts or ()}
    texts = "\n".join(f"{one.title}\n{one.text}" for one in paragraphs if one.title in gold)
    is_name = fields.type != "comparison" and answer.strip() != plain
    return answer if is_name and re.search(rf"\b{re.escape(answer.strip())}(?!\w)", texts) else plain


def _made(fields: _Question) -> MultihopQuestion:
    titles: Counter[str] = Counter()
    paragraphs = []
    for title, texts in fields.context:
        if any(text.strip() for text in texts):  # a paragraph without text is left out
            titles[title] += 1
            name = f"{title} ({titles[title]})" if titles[title] > 1 else title
            paragraphs.append(Paragraph(title=name, sentences=tuple(texts)))
    sizes = {paragraph.title: len(paragraph.sentences) for paragraph in paragraphs}
    facts = dict.fromkeys(fields.supporting_facts or ())
    known = tuple(fact for fact in facts if 0 <= fact[1] < sizes.get(fact[0], 0))
    return MultihopQuestion(
        id=fields.id,
        text=fields.question,
        paragraphs=tuple(paragraphs),
        answer=_label(fields, paragraphs),
        supporting=known,
        unknown_supporting=tuple(fact for fact in facts if fact not in known),
        kind=_KINDS.get(fields.type or "", fields.type or ""),
        level=fields.level or "",
    )


def hotpot_record(question: MultihopQuestion) -> dict[str, Any]:
    """A question as a record of the official files and scorer. Unknown fields are left out; supporting facts
    that refer to no sentence are included."""
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


def write_predictions(
    path: Path, answers: Mapping[str, str], supporting: Mapping[str, Sequence[SupportingFact]]
) -> None:
    """Write the official prediction file: the text of the answer and the supporting facts, by question id."""
    facts = {name: [[title, int(sentence)] for title, sentence in one] for name, one in supporting.items()}
    with files.replaced_file(path) as file:
        json.dump({"answer": dict(answers), "sp": facts}, file)
        file.write("\n")
