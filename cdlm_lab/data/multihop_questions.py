"""Questions over several paragraphs (HotpotQA's distractor setting; CDLM section 3.4): what every reader
yields. Frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
