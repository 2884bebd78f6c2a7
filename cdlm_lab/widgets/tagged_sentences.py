"""Sentences as a model tagged them, with the occurrences that it attended to: what there is to show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cdlm_lab.data.tagged_documents import OUTSIDE, TagSpan, spans_of

_SLACK = 1e-3  # a weight may lie so far above 1: half precision


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOccurrence:
    """An occurrence of a word that the model attended to when it tagged the word.

    Attributes:
        words: of the sentence it stands in.
        place: its number in them.
        distance: in sentences, as the model counts them; 0 = in the same sentence.
        weight: the attention it got, in [0, 1].
        sentence: number of that sentence in the document, from 0.

    Raises:
        ValueError: a place outside the words, a negative distance, a weight outside [0, 1].
    """

    words: tuple[str, ...]
    place: int
    distance: int
    weight: float
    sentence: int

    def __post_init__(self) -> None:
        if not 0 <= self.place < len(self.words):
            raise ValueError(f"an occurrence at word {self.place} of {len(self.words)}; count them from 0")
        if self.distance < 0:
            raise ValueError(f"the distance of an occurrence is {self.distance}; it must not be negative")
        if not 0 <= self.weight <= 1 + _SLACK:
            raise ValueError(f"the weight of an occurrence is {self.weight}; it must lie in [0, 1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadWord:
    """A word of a tagged sentence.

    Attributes:
        gold: its true tag, such as "B-PER" or "O"; None = not known.
        predicted: its predicted tag.
        occurrences: those that the model attended to, itself among them if it may; () for a model that
            attends to none.
    """

    word: str
    gold: str | None
    predicted: str
    occurrences: tuple[ReadOccurrence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSentence:
    """A sentence, the tags that a model gave it, and the true ones.

    Attributes:
        document: where it stands.
        number: which sentence of the document it is, from 0.

    Raises:
        ValueError: no words, or gold tags of some words alone.
    """

    document: str
    number: int
    words: tuple[ReadWord, ...]

    def __post_init__(self) -> None:
        where = f"{self.document}, sentence {self.number}"
        if not self.words:
            raise ValueError(f"{where}: it has no words")
        if len({word.gold is None for word in self.words}) > 1:
            raise ValueError(f"{where}: some words have a gold tag and some have not; give all or none")

    @property
    def predicted(self) -> tuple[TagSpan, ...]:
        """The predicted spans."""
        return spans_of([word.predicted for word in self.words])

    @property
    def gold(self) -> tuple[TagSpan, ...] | None:
        """The true spans; None = not known."""
        tags = [word.gold for word in self.words if word.gold is not None]
        return spans_of(tags) if tags else None

    @property
    def right(self) -> bool | None:
        """True = exactly the true spans were predicted; None = these are not known."""
        return None if self.gold is None else self.predicted == self.gold

    @property
    def notable(self) -> tuple[int, ...]:
        """Numbers of the words that are worth a look: predicted to be in a span, or tagged wrongly."""
        return tuple(
            number
            for number, word in enumerate(self.words)
            if word.predicted != OUTSIDE or word.gold not in (None, word.predicted)
        )

    @property
    def first_choice(self) -> int | None:
        """Of those words that with the most occurrences, of several the longest; None = there are none.

        As a rule frequent words have as many occurrences as a model may attend to, "of" and names alike.
        """
        return max(
            self.notable,
            key=lambda number: (len(self.words[number].occurrences), len(self.words[number].word)),
            default=None,
        )


def labels_of_reads(reads: Iterable[ReadSentence]) -> tuple[str, ...]:
    """The labels of all spans of sentences, gold and predicted, sorted."""
    return tuple(sorted({span.label for read in reads for span in (*read.predicted, *(read.gold or ()))}))
