"""Numbers of document-attentive tagging that figures are drawn from (see `tagging_figures`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

QUANTILES = (5, 25, 50, 75, 95)


def check_number(name: str, number: float, *, lowest: float = 0) -> None:
    """Refuses a number outside [`lowest`, 1].

    Raises:
        ValueError: such a number; the message begins with `name`.
    """
    if not lowest <= number <= 1:
        raise ValueError(f"{name} is {number}; it must lie in [{lowest:g}, 1]")


class WordShare(Protocol):
    """Words of neighbouring TF-IDF; `analysis.tf_idf.QuantileShare` is one.

    `start` and `stop` are percentiles between which they lie, `words` says how many they are, and `share`, in
    [0, 1], which part of them is tagged as an entity.
    """

    @property
    def start(self) -> float:
        """In [0, 100]."""

    @property
    def stop(self) -> float:
        """In [0, 100], not below `start`."""

    @property
    def words(self) -> int:
        """At least 1."""

    @property
    def share(self) -> float:
        """In [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordGain:
    """By how much a system tags some words better than another one.

    Attributes:
        stratum: which words, such as "all words" or "top 5%".
        gain: difference of word-level F1, in [-1, 1].
        low, high: bounds of its 95% interval.
        words: how many occurrences of words in the text it is of.

    Raises:
        ValueError: a number outside [-1, 1], bounds that run backwards, a negative number of words.
    """

    stratum: str
    gain: float
    low: float
    high: float
    words: int

    def __post_init__(self) -> None:
        check_number(f"{self.stratum}: gain", self.gain, lowest=-1)
        if not -1 <= self.low <= self.high <= 1:
            raise ValueError(f"{self.stratum}: ({self.low}, {self.high}) is no interval in [-1, 1]")
        if self.words < 0:
            raise ValueError(f"{self.stratum}: words is {self.words}; it must not be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceWeights:
    """The attention weights of the occurrences at some distance.

    Attributes:
        bucket: the distance in sentences, such as "4-7".
        quantiles: of the weights, at the percentiles QUANTILES, each in [0, 1].
        mean: of the weights.
        count: how many; with 0 the numbers before mean nothing.

    Raises:
        ValueError: not five quantiles, quantiles that fall, a number outside [0, 1], a negative count.
    """

    bucket: str
    quantiles: Sequence[float]
    mean: float
    count: int

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"{self.bucket}: count is {self.count}; it must not be negative")
        if len(self.quantiles) != len(QUANTILES):
            raise ValueError(f"{self.bucket}: {len(self.quantiles)} quantiles; give those at {QUANTILES}")
        if not self.count:
            return
        for number in (*self.quantiles, self.mean):
            check_number(f"{self.bucket}: a weight", number)
        if any(left > right for left, right in pairwise(self.quantiles)):
            raise ValueError(f"{self.bucket}: quantiles {tuple(self.quantiles)} must not fall")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """F1 on development documents at one attention width.

    Attributes:
        k: to how many occurrences a word may attend.
        f1: mean over the seeds, in [0, 1].
        deviation: standard deviation over the seeds; None with one seed.
        seeds: how many models were trained.

    Raises:
        ValueError: a number out of bounds, a deviation over one seed.
    """

    k: int
    f1: float
    deviation: float | None
    seeds: int

    def __post_init__(self) -> None:
        check_number(f"K = {self.k}: f1", self.f1)
        if self.k < 0 or self.seeds < 1:
            raise ValueError(f"K = {self.k} with {self.seeds} seeds; K is at least 0, seeds at least 1")
        if self.deviation is not None and (self.seeds == 1 or not 0 <= self.deviation < math.inf):
            raise ValueError(f"K = {self.k}: a deviation of {self.deviation} over {self.seeds} seeds")
