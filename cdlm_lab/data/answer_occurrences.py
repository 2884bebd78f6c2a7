"""Where the answer to a question stands in its gold paragraphs: every place, since nobody marked the one that
was meant. One rule for what a model is trained to find and for what a person is shown.

Sought are whole words (no letter, digit or `_` directly before or after) in the same case; only if there are
none in any gold paragraph, whole words in any case; then parts of words, in the same case, then in any. White
space matches any white space. Occurrences may overlap, and may run over several sentences.

(CDLM's released code takes matches in supporting sentences, only if there are none those in gold paragraphs,
and then those in titles, parts of words included.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from cdlm_lab.data.multihop_questions import Paragraph

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
