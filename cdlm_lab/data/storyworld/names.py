"""Invented names and numbers: from the syllables of six phonologies, more than a million words of each kind.

A name is drawn for one story and never again, so a model cannot know it: it has to read it in another report
of the same cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from cdlm_lab.data.storyworld.grammar import Phonology

Option = TypeVar("Option")


def draw(rng: Random, options: Sequence[Option]) -> Option:
    """One of the options, evenly; `random.choice` with an algorithm that no Python version may change."""
    return options[int(rng.random() * len(options))]


def name_word(rng: Random, phonology: Phonology, *, endings: tuple[str, ...], taken: set[str]) -> str:
    """A capitalised invented word that is not in `taken` (lower case); adds it there."""
    while True:
        onset, vowel = draw(rng, phonology.onsets), draw(rng, phonology.vowels)
        middle, ending = draw(rng, phonology.middles), draw(rng, endings)
        word = onset + vowel + middle
        if ending[0] not in "aeiouy":
            word += draw(rng, phonology.vowels)
            if rng.random() < 0.4:
                word += draw(rng, phonology.onsets) + draw(rng, phonology.vowels)
        elif rng.random() < 0.88:  # the short words are only some ten thousands
            word += draw(rng, phonology.vowels) + draw(rng, phonology.onsets)
        word = (word + ending).replace("yy", "y").replace("iii", "ii").replace("ww", "w")
        if 5 <= len(word) <= 12 and word not in taken:
            taken.add(word)
            return word.capitalize()


def number_text(rng: Random, *, low: int, high: int, taken: set[str], grouped: bool = True) -> str:
    """A number in [low, high] in digits, by thousands if `grouped`; no group of digits is taken twice."""
    for _ in range(1000):
        value = low + int(rng.random() * (high - low + 1))
        text = f"{value:,}" if grouped else str(value)
        groups = [group for group in text.split(",") if len(group) > 1]
        if value % 10 and not any(group in taken for group in groups) and len(set(groups)) == len(groups):
            taken.update(groups)
            return text
    raise ValueError(f"no number is left between {low} and {high}; widen the range in storyworld/texts")
