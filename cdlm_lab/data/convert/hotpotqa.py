"""Multi-hop questions over several paragraphs (HotpotQA's distractor setting; CDLM section 3.4).

HotpotQA (Yang et al. 2018) in its official files:

    [{"_id": "q1", "question": "Who wrote Blue Mill?", "answer": "Ann Lee", "type": "bridge", "level": "hard",
      "supporting_facts": [["Blue Mill", 0]],
      "context": [["Blue Mill", ["Blue Mill is a novel by Ann Lee.", " It was her first."]], ...]}, ...]

A supporting fact is the title of a paragraph and the number of a sentence in it, from 0. `answer`, `type`,
`level` and `supporting_facts` may be missing or null, as in a test set. Also read are the form of the Hugging
Face hub, with `id` for `_id` and columns for pairs, `"supporting_facts": {"title": [...], "sent_id": [...]}`
and `"context": {"title": [...], "sentences": [[...], ...]}`, and `.jsonl` files with one record per line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AliasChoices, BeforeValidator, Field

from cdlm_lab.data import files
from cdlm_lab.data.files import FROM_LIST, DataError, FieldFault, Fields, Text
from cdlm_lab.data.questions import check_question, has_gold
from cdlm_lab.data.records import QUESTION_KINDS, MultihopQuestion, Paragraph, QuestionKind, SupportingFact
from cdlm_lab.parameters import ParameterError

SPLITS = ("train", "dev", "test")


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


class _Question(Fields):
    id: Text = Field(validation_alias=AliasChoices("_id", "id"))
    question: Text
    answer: Text | None = None
    type: Literal[QuestionKind, ""] | None = Field(
        None, description=f"write {' or '.join(QUESTION_KINDS)}, or leave it out"
    )
    level: Text | None = None
    supporting_facts: _Facts | None = Field(None, description='write each as ["title", 0]')
    context: _Context = Field(description='write each as ["title", ["sentence", ...]]')


def read_hotpotqa(path: str | Path) -> list[MultihopQuestion]:
    """Read the questions of a file, plain or compressed, in order. Repeated supporting facts are kept once,
    as the official scorer counts them; those that refer to no sentence are in `unknown_supporting`."""
    path, questions, numbers = Path(path), [], {}
    in_lines = files.plain_name(path).endswith(".jsonl")
    for number, raw in enumerate(files.read_json_lines(path) if in_lines else files.read_json_list(path)):
        name = raw.fields.get("_id", raw.fields.get("id")) if isinstance(raw.fields, dict) else None
        within = f"[{number}] {name!r}." if isinstance(name, str) else f"[{number}]."
        record = replace(raw, within=within).checked(_Question)
        if (first := numbers.setdefault(record.fields.id, number)) != number:
            raise record.error("_id", f"[{first}] has this id too", "give each question its own")
        questions.append(_made(record.fields))
        try:
            check_question(questions[-1], where=f"[{number}]")
        except ValueError as error:
            remedy = "correct the question, or leave it out"
            raise DataError(path, str(error), remedy, line=record.line, field="question") from None
    if not questions:
        raise DataError(path, "no questions", "add some, or leave the file out")
    return questions


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
    paragraphs = tuple(Paragraph(title=title, sentences=tuple(texts)) for title, texts in fields.context)
    sizes = {paragraph.title: len(paragraph.sentences) for paragraph in paragraphs}
    facts = dict.fromkeys(fields.supporting_facts or ())
    known = tuple(fact for fact in facts if 0 <= fact[1] < sizes.get(fact[0], 0))
    return MultihopQuestion(
        id=fields.id,
        text=fields.question,
        paragraphs=paragraphs,
        answer=_label(fields, paragraphs),
        supporting=known,
        unknown_supporting=tuple(fact for fact in facts if fact not in known),
        kind=fields.type or "",
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


def read_question_folder(
    folder: str | Path, *, dev_from_train: int = 0, seed: int = 0
) -> dict[str, list[MultihopQuestion]]:
    """Read the questions of `train.json`, `dev.json` and `test.json` by split. `dev_from_train`: number of
    train questions, drawn with `seed`, that are used as dev and not for train; 0 = read `dev.json`. Raises
    ParameterError if a file is missing, a question has no gold, or two splits share a question."""
    paths = {split: _split_file(folder, split) for split in SPLITS if split != "dev" or not dev_from_train}
    read = {split: _with_gold(path) for split, path in paths.items()}
    if dev_from_train:
        train = read["train"]
        if dev_from_train >= len(train):
            what = f"dev_from_train is {dev_from_train}; train has {len(train):,} questions in all"
            raise ParameterError(what)
        order = np.random.default_rng([seed, len(SPLITS)]).permutation(len(train))
        for split, numbers in (("dev", order[:dev_from_train]), ("train", order[dev_from_train:])):
            read[split] = [train[number] for number in sorted(numbers)]
    for one, other in combinations(SPLITS, 2):
        if shared := {question.id for question in read[one]} & {question.id for question in read[other]}:
            raise ParameterError(
                f"corpus is {str(folder)!r}, where {one} and {other} share {len(shared):,} questions, as "
                f"{min(shared)}: what is learned or chosen on a question cannot be tested on it; take other "
                "questions, or as dev some of train with dev_from_train"
            )
    return {split: read[split] for split in SPLITS}


def _split_file(folder: str | Path, split: str) -> Path:
    if file := files.present_file(folder, f"{split}.json", f"{split}.jsonl"):
        return file
    also = "; or take dev from train with dev_from_train" if split == "dev" else ""
    raise ParameterError(
        f"corpus is {str(folder)!r}, where there is no {split}.json; write storyworld, or a folder with "
        f"train.json, dev.json and test.json in HotpotQA's format{also}"
    )


def _with_gold(file: Path) -> list[MultihopQuestion]:
    questions = read_hotpotqa(file)
    for question in questions:
        if not has_gold(question):
            what = f"question {question.id} has no answer or no supporting facts"
            raise ParameterError(f"{file}: {what}, which training and scores need; leave it out")
    return questions
