"""Where the answer to a question stands in its gold paragraphs: every place, since nobody marked the one that
was meant. One rule for what a model is trained to find and for what a person is shown.

Sought are whole words (no letter, digit or `_` directly before or after) in the same case; only if there are
none in any gold paragraph, whole words in any case; then parts of words, in the same case, then in any. White
space matches any white space. Occurrences may overlap, and may run over several sentences.

(CDLM's released code takes matches in supporting sentences, only if there are none those in gold paragraphs,
and then those in titles, parts of words included.)

Questions over several paragraphs (HotpotQA's distractor setting; CDLM section 3.4): what every reader
yields. Frozen.

HotpotQA (Yang et al. 2018) in its official files: questions with gold, questions without, predictions.

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
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

import numpy as np

from cdlm_lab.data.files import (
    COMPRESSED,
    DataError,
    JsonRecord,
    kind_of,
    plain_name,
    read_json,
    read_json_lines,
    read_json_list,
    replaced_file,
)
from cdlm_lab.parameters import ParameterError

AnswerType = Literal["span", "yes", "no"]
SupportingFact = tuple[str, int]  # title of a paragraph, number of the sentence in it from 0
QUESTION_KINDS = ("bridge", "comparison")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A paragraph of a document.

    Attributes:
        title: of its document; unique within a question.
        sentences: as they stand in the source, the spaces between them included, so that they join to `text`.
    """

    title: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """All sentences, without the title."""
        return "".join(self.sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class MultihopQuestion:
    """A question and the paragraphs it is asked over.

    Attributes:
        paragraphs: in the order in which a model reads them; at least one.
        answer: "yes", "no", or words of the paragraphs; None = not known.
        supporting: the sentences that are needed for the answer, in the source's order.
        unknown_supporting: facts of the source that name no sentence of the paragraphs, as a few of HotpotQA
            do; nobody can find them, and the official scores count them as missed.
        kind: one of QUESTION_KINDS, or "" = not known.
        level: as the source says, as "hard"; or "".
    """

    id: str
    text: str
    paragraphs: tuple[Paragraph, ...]
    answer: str | None = None
    supporting: tuple[SupportingFact, ...] = ()
    unknown_supporting: tuple[SupportingFact, ...] = ()
    kind: str = ""
    level: str = ""

    @property
    def type(self) -> AnswerType | None:
        """Of its answer; None = the answer is not known."""
        if self.answer is None:
            return None
        return self.answer if self.answer in ("yes", "no") else "span"

    @property
    def gold_paragraphs(self) -> tuple[int, ...]:
        """Numbers of the paragraphs that supporting facts name, ascending."""
        named = {title for title, _ in self.supporting + self.unknown_supporting}
        return tuple(number for number, one in enumerate(self.paragraphs) if one.title in named)


def check_question(question: MultihopQuestion, *, where: str) -> None:
    """Refuse a question that no system could be scored on.

    Args:
        where: it was read, for the message.

    Raises:
        ValueError: no id, no question, an empty answer, no paragraphs, a paragraph without text, two of one
            title, or a supporting fact that names no sentence.
    """
    problem = _problem(question)
    if problem:
        raise ValueError(f"{where}: question {question.id!r}: {problem}")


def _problem(question: MultihopQuestion) -> str:
    if not question.id:
        return "it has no id; give each its own"
    if not question.text.strip():
        return "the question is empty"
    if question.answer is not None and not question.answer.strip():
        return "the answer is empty; leave the field out if it is not known"
    if not question.paragraphs:
        return "the context is empty; give at least one paragraph"
    sizes: dict[str, int] = {}
    for number, paragraph in enumerate(question.paragraphs):
        if not paragraph.text.strip():
            return f"paragraph {number}, {paragraph.title!r}, has no text"
        if paragraph.title in sizes:
            return f"two paragraphs are called {paragraph.title!r}; titles tell paragraphs apart"
        sizes[paragraph.title] = len(paragraph.sentences)
    for title, sentence in question.supporting:
        if title not in sizes:
            return f"a supporting fact names {title!r}, which is no paragraph of the context"
        if not 0 <= sentence < sizes[title]:
            return (
                f"a supporting fact names sentence {sentence} of {title!r}, which has {sizes[title]}, "
                "counted from 0"
            )
    return ""


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


# Number of the paragraph; first character and end in its title or in `Paragraph.text`.
Place = tuple[int, Literal["title", "body"], int, int]


def answer_occurrences(
    answer: str | None, paragraphs: Sequence[Paragraph], *, gold: Sequence[int]
) -> list[Place]:
    """The occurrences of the strictest kind that there is, in titles and bodies.

    Args:
        answer: None = not known.
        gold: numbers of the paragraphs that are looked at.

    Returns:
        In the order of `gold`, in each paragraph those in the title first, then by their first character.
        Empty if the answer is yes, no, blank or not known, or stands nowhere.
    """
    words = (answer or "").split()
    if not words or answer in ("yes", "no"):
        return []
    text = r"\s+".join(map(re.escape, words))
    for pattern in (rf"(?<!\w)(?=({text})(?!\w))", rf"(?=({text}))"):  # looking ahead, as they may overlap
        for flags in (re.NOFLAG, re.IGNORECASE):
            if places := list(_matches(re.compile(pattern, flags), paragraphs, gold)):
                return places
    return []


def _matches(
    pattern: re.Pattern[str], paragraphs: Sequence[Paragraph], gold: Sequence[int]
) -> Iterator[Place]:
    for number in gold:
        for part, text in (("title", paragraphs[number].title), ("body", paragraphs[number].text)):
            for match in pattern.finditer(text):
                yield number, part, *match.span(1)


SPLITS = ("train", "dev", "test")
_SUFFIXES = (".json", ".json.gz", ".jsonl", ".jsonl.gz")


def read_question_folder(
    folder: str | Path, *, dev_from_train: int = 0, seed: int = 0
) -> dict[str, list[MultihopQuestion]]:
    """Questions of `train.json`, `dev.json` and `test.json`, with gold; facts that name a sentence which is
    not there, as a few of the official ones do, are `unknown_supporting`.

    Args:
        dev_from_train: so many questions, drawn of train, are dev and not train; 0 = `dev.json` is dev.
        seed: of this draw.

    Raises:
        ParameterError: a file that is not there or has a question without gold, one question in two splits.
        DataError: a file that cannot be read.
    """
    files = {split: _split_file(folder, split) for split in SPLITS if split != "dev" or not dev_from_train}
    read = {split: _with_gold(file) for split, file in files.items()}
    if dev_from_train:
        train = read["train"]
        if dev_from_train >= len(train):
            raise ParameterError(
                f"dev_from_train is {dev_from_train}; train has {len(train):,} questions in all"
            )
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


def has_gold(question: MultihopQuestion) -> bool:
    """True if its answer and its supporting facts are known."""
    return question.answer is not None and bool(question.supporting or question.unknown_supporting)


def _split_file(folder: str | Path, split: str) -> Path:
    files = [file for suffix in _SUFFIXES if (file := Path(folder) / f"{split}{suffix}").is_file()]
    if not files:
        also = "; or take dev from train with dev_from_train" if split == "dev" else ""
        raise ParameterError(
            f"corpus is {str(folder)!r}, where there is no {split}.json; write storyworld, or a folder with "
            f"train.json, dev.json and test.json in HotpotQA's format{also}"
        )
    return files[0]


def _with_gold(file: Path) -> list[MultihopQuestion]:
    questions = read_hotpotqa(file, unknown_facts="keep")
    for question in questions:
        if not has_gold(question):
            raise ParameterError(
                f"{file}: question {question.id} has no answer or no supporting facts, which training and "
                "scores need; leave it out"
            )
    return questions
