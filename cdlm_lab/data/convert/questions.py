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
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
import regex
from pydantic import AliasChoices, BeforeValidator, Field

from cdlm_lab.data import files
from cdlm_lab.data.files import FROM_LIST, DataError, FieldFault, Fields, Text
from cdlm_lab.data.words import LETTER, plain_word
from cdlm_lab.parameters import ParameterError

SPLITS = ("train", "dev", "test")
QuestionKind = Literal["bridge", "comparison"]
QUESTION_KINDS = get_args(QuestionKind)
SupportingFact = tuple[str, int]  # title of a paragraph, index of the sentence in it
# Index of the paragraph, and the span in characters of its title or of `Paragraph.text`.
Place = tuple[int, Literal["title", "body"], int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A paragraph, with a title that is unique within a question. The sentences include the spaces between
    them, so that they concatenate to `text`; blank sentences are kept, so that the numbering stays valid."""

    title: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """All sentences, without the title."""
        return "".join(self.sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class MultihopQuestion:
    """A question and the paragraphs it is asked over."""

    id: str
    text: str
    paragraphs: tuple[Paragraph, ...]  # in the order in which a model reads them; at least one
    answer: str | None = None  # "yes", "no", or words of the paragraphs; None = not known
    # The sentences that are needed for the answer, in the source's order.
    supporting: tuple[SupportingFact, ...] = ()
    # Facts of the source that refer to no sentence of the paragraphs, as a few of HotpotQA do. No system can
    # predict them, and the official scores count them as missed.
    unknown_supporting: tuple[SupportingFact, ...] = ()
    kind: str = ""  # one of QUESTION_KINDS, or "" = not known
    level: str = ""  # of difficulty, in the source's words, such as "hard"; "" = not known

    @property
    def type(self) -> Literal["span", "yes", "no"] | None:
        """Type of the answer; None if the answer is not known."""
        return self.answer if self.answer in ("yes", "no", None) else "span"

    @property
    def gold_paragraphs(self) -> tuple[int, ...]:
        """Indices of the paragraphs that supporting facts refer to, ascending."""
        titles = {title for title, _ in self.supporting + self.unknown_supporting}
        return tuple(number for number, one in enumerate(self.paragraphs) if one.title in titles)


def asked_by_its_clue(question: MultihopQuestion) -> MultihopQuestion | None:
    """Reduce a bridge question to its second hop: its text becomes the clue, the supporting sentences of the
    gold paragraph that do not contain the answer, and that paragraph is removed. None unless the supporting
    facts lie in two paragraphs and those of exactly one lack the answer."""
    if question.kind != "bridge" or question.answer is None:
        return None
    facts: dict[str, list[str]] = {}
    of_title = {one.title: one for one in question.paragraphs}
    for title, number in question.supporting:
        facts.setdefault(title, []).append(of_title[title].sentences[number].strip())
    clues = [title for title, texts in facts.items() if question.answer not in " ".join(texts)]
    if (len(facts), len(clues)) != (2, 1):
        return None
    (clue,) = clues
    return replace(
        question,
        id=f"{question.id}-clue",
        text=" ".join(facts[clue]),
        paragraphs=tuple(one for one in question.paragraphs if one.title != clue),
        supporting=tuple(fact for fact in question.supporting if fact[0] != clue),
    )


def check_question(question: MultihopQuestion, *, where: str) -> None:
    """Raise ValueError for a question that no system can be scored on; `where`: its place, for messages."""
    if problem := _problem(question):
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
            what = f"sentence {sentence} of {title!r}, which has {sizes[title]}, counted from 0"
            return f"a supporting fact names {what}"
    return ""


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


def answer_occurrences(
    answer: str | None, paragraphs: Sequence[Paragraph], *, gold: Sequence[int]
) -> list[Place]:
    """All occurrences of an answer in the `gold` paragraphs, as the data does not mark the one that is meant.

    Whole words in the same case are matched; if no gold paragraph has any, whole words in any case; then
    parts of words, first in the same case, then in any. All white space is equal; occurrences may overlap and
    cross sentences. They are in the order of `gold`, in each paragraph the title first (CDLM's released code
    prefers supporting sentences, then bodies). Empty for yes, no, and an answer that is not known.
    """
    words = (answer or "").split()
    if not words or answer in ("yes", "no"):
        return []
    text = r"\s+".join(map(_in_any_form, words))
    texts = [
        (number, part, text_of)
        for number in gold
        for part, text_of in (("title", paragraphs[number].title), ("body", paragraphs[number].text))
    ]
    for pattern in (rf"(?<!{LETTER})(?=({text})(?!{LETTER}))", rf"(?=({text}))"):  # as they may overlap
        for flags in (0, regex.IGNORECASE):
            if places := [
                (number, part, *match.span(1))
                for number, part, text_of in texts
                for match in regex.finditer(pattern, text_of, flags)
            ]:
                return places
    return []


def _in_any_form(word: str) -> str:
    """A pattern for a word whose accents may be composed or not, with soft hyphens or without."""
    forms = ({sign, unicodedata.normalize("NFD", sign)} for sign in regex.findall(r"\X", plain_word(word)))
    return r"\xad*".join("(?:" + "|".join(map(re.escape, sorted(form))) + ")" for form in forms)


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


def has_gold(question: MultihopQuestion) -> bool:
    """True if its answer and its supporting facts are known."""
    return question.answer is not None and bool(question.supporting or question.unknown_supporting)


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
