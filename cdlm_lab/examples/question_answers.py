"""Where in a sequence the answer to its question stands: every place, since nobody marked the one that was
meant. (The loss sums over all of them, as in Clark and Gardner 2018, section 3.2.)"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from cdlm_lab.data.multihop_questions import MultihopQuestion

from .question_sequence import NO_SENTENCE, TITLE, QuestionSequence

_Place = tuple[int, bool, int, int]  # paragraph, in its title, first character, end


def answer_positions(question: MultihopQuestion, sequence: QuestionSequence) -> np.ndarray:
    """Every occurrence of the answer's text in the titles and the sentences of the gold paragraphs.

    Sought are whole words (no letter, digit or `_` directly before or after) in the same case; only if there
    are none in any gold paragraph, whole words in any case; then parts of words, in the same case, then in
    any. White space matches any white space. Occurrences may overlap, and may run over several sentences. One
    that is not wholly in the sequence is left out.

    (The released code takes matches in supporting sentences, only if there are none those in gold paragraphs,
    and then those in titles, parts of words included.)

    Args:
        question: that the sequence was made of.

    Returns:
        int64 (occurrences, 2), positions of the first and the last token, inclusive, both `answerable`, in
        order of the sequence. (0, 2) if there is none, the answer is yes, no or not known, or no paragraph is
        known to be gold.
    """
    places = _places(question) if question.type == "span" else []
    found = [tokens for place in places if (tokens := _tokens(sequence, *place)) is not None]
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 2)


def _places(question: MultihopQuestion) -> list[_Place]:
    """The occurrences of the strictest kind that there is."""
    text = r"\s+".join(map(re.escape, question.answer.split()))
    for pattern in (rf"(?<!\w)(?=({text})(?!\w))", rf"(?=({text}))"):  # looking ahead, as they may overlap
        for flags in (re.NOFLAG, re.IGNORECASE):
            if places := list(_matches(question, re.compile(pattern, flags))):
                return places
    return []


def _matches(question: MultihopQuestion, pattern: re.Pattern[str]) -> Iterator[_Place]:
    """In all gold paragraphs, cut or not."""
    for number in question.gold_paragraphs:
        paragraph = question.paragraphs[number]
        for in_title, text in ((True, paragraph.title), (False, paragraph.text)):
            for match in pattern.finditer(text):
                yield number, in_title, *match.span(1)


def _tokens(
    sequence: QuestionSequence, number: int, in_title: bool, start: int, end: int
) -> tuple[int, int] | None:
    """First and last token with a character of the place; None if not all of it is there."""
    sentence = sequence.sentence
    text = (sentence == TITLE) if in_title else (sentence != TITLE) & (sentence != NO_SENTENCE)
    here = np.flatnonzero((sequence.paragraph == number) & text & sequence.answerable)
    starts, ends = sequence.offsets[here].T
    inside = here[(starts < end) & (ends > start)]
    # A paragraph loses its end, so that what is there up to the last character is there from the first.
    if not len(inside) or ends.max() < end:
        return None
    return int(inside[0]), int(inside[-1])
