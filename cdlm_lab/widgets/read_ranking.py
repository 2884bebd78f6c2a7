"""A question with its candidates and what systems made of them; `ranked_candidates` shows it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

# (right answer on top by the system beside, by the system) -> what became of the question.
OUTCOMES = {
    (False, True): "repaired",
    (True, False): "broken",
    (True, True): "both right",
    (False, False): "both wrong",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRanking:
    """A question, its candidates, and the scores that systems gave them.

    Attributes:
        id: "" = none, as of a question of one's own.
        candidates: in an order that knows nothing of labels: those of equal scores keep it.
        right: True = the candidate answers the question; None = not known.
        scores: name of a system -> for each candidate the log-odds that it is right. None = the system has
            not read it, as what a cascade leaves out; of each system at least one is read.

    Raises:
        ValueError: no candidates, no systems, labels or scores of another number than candidates, a score
            that is not finite, a system that has read nothing.
    """

    id: str
    question: str
    candidates: tuple[str, ...]
    right: tuple[bool, ...] | None
    scores: Mapping[str, Sequence[float | None]]

    def __post_init__(self) -> None:
        if problem := next(_problems(self), ""):
            raise ValueError(f"question {self.id or self.question!r}: {problem}")

    def order(self, system: str, *, beside: str | None = None) -> tuple[int, ...]:
        """Numbers of the candidates, the highest score first, ties in the order of `candidates`. What the
        system has not read stands below all that it has, in the order of `beside`.

        Raises:
            ValueError: a system without scores.
        """
        scores = self._of(system)
        unread = range(len(scores)) if beside in (None, system) else self.order(beside)
        read = sorted(range(len(scores)), key=lambda number: -_or_lowest(scores[number]))
        return (
            *(number for number in read if scores[number] is not None),
            *(number for number in unread if scores[number] is None),
        )

    def probabilities(self, system: str) -> list[float | None]:
        """Of each candidate the probability that it is right, in [0, 1]; None = not read.

        Raises:
            ValueError: a system without scores.
        """
        return [None if score is None else _logistic(score) for score in self._of(system)]

    def right_on_top(self, system: str) -> bool | None:
        """True = the first candidate of `order` is right; None = not known.

        Raises:
            ValueError: a system without scores.
        """
        scores = self._of(system)
        first = max(range(len(scores)), key=lambda number: _or_lowest(scores[number]))
        return None if self.right is None else self.right[first]

    def outcome(self, system: str, *, beside: str) -> str | None:
        """What became of the question between two systems, one of OUTCOMES; None = not known.

        Raises:
            ValueError: a system without scores.
        """
        return OUTCOMES.get((self.right_on_top(beside), self.right_on_top(system)))

    def _of(self, system: str) -> Sequence[float | None]:
        if system not in self.scores:
            known = ", ".join(self.scores)
            raise ValueError(
                f"question {self.id or self.question!r}: no scores of {system!r}; it has {known}"
            )
        return self.scores[system]


def _logistic(score: float) -> float:
    """1 / (1 + e^-score), without overflow."""
    return (1 + math.tanh(score / 2)) / 2


def _or_lowest(score: float | None) -> float:
    return -math.inf if score is None else score


def _problems(read: ReadRanking) -> Iterator[str]:
    """What is wrong with a ranking, if anything."""
    count = len(read.candidates)
    if not count:
        yield "there are no candidates; give at least one"
    if not read.scores:
        yield "there are no scores; give those of at least one system"
    if read.right is not None and len(read.right) != count:
        yield f"{len(read.right)} labels for {count} candidates; give one for each"
    for system, scores in read.scores.items():
        if len(scores) != count:
            yield f"{system}: {len(scores)} scores for {count} candidates; give one for each, None = not read"
        known = [score for score in scores if score is not None]
        if not known:
            yield f"{system} has read no candidate; leave it out"
        for score in known:
            if not math.isfinite(score):
                yield f"{system}: a score is {score}; it must be finite, or None = not read"
