"""Where in a sequence the answer to its question stands, in tokens. (The loss sums over all places, as in
Clark and Gardner 2018, section 3.2.)"""

from __future__ import annotations

import numpy as np

from cdlm_lab.data.answer_occurrences import Place, answer_occurrences
from cdlm_lab.data.multihop_questions import MultihopQuestion

from .question_sequence import NO_SENTENCE, TITLE, QuestionSequence


def answer_positions(question: MultihopQuestion, sequence: QuestionSequence) -> np.ndarray:
    """Every occurrence of the answer's text in the titles and the sentences of the gold paragraphs.

    `answer_occurrences` says what is one, in paragraphs as they are before they are cut; one that is not
    wholly in the sequence is left out.

    Args:
        question: that the sequence was made of.

    Returns:
        int64 (occurrences, 2), positions of the first and the last token, inclusive, both `answerable`, in
        order of the sequence. (0, 2) if there is none, the answer is yes, no or not known, or no paragraph is
        known to be gold.
    """
    places = answer_occurrences(question.answer, question.paragraphs, gold=question.gold_paragraphs)
    found = [tokens for place in places if (tokens := _tokens(sequence, place)) is not None]
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 2)


def _tokens(sequence: QuestionSequence, place: Place) -> tuple[int, int] | None:
    """First and last token with a character of the place; None if not all of it is there."""
    number, part, start, end = place
    sentence = sequence.sentence
    text = (sentence == TITLE) if part == "title" else (sentence != TITLE) & (sentence != NO_SENTENCE)
    here = np.flatnonzero((sequence.paragraph == number) & text & sequence.answerable)
    starts, ends = sequence.offsets[here].T
    inside = here[(starts < end) & (ends > start)]
    # A paragraph loses its end, so that what is there up to the last character is there from the first.
    if not len(inside) or ends.max() < end:
        return None
    return int(inside[0]), int(inside[-1])
