"""Questions over several paragraphs: where their answers stand, and which can be scored."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import regex

from cdlm_lab.data.records import MultihopQuestion, Paragraph
from cdlm_lab.data.words import LETTER, plain_word

# Index of the paragraph, and the span in characters of its title or of `Paragraph.text`.
Place = tuple[int, Literal["title", "body"], int, int]


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


def has_gold(question: MultihopQuestion) -> bool:
    """True if its answer and its supporting facts are known."""
    return question.answer is not None and bool(question.supporting or question.unknown_supporting)
