"""What the explorer shows and what a person chooses in it: arrays and strings, checked where they come in."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from cdlm_lab.widgets.html import joined, visible

Place = tuple[int, int, int]  # number of the document, half-open span of its words
Direction = Literal["both", "from", "to"]
Reduction = Literal["mean", "max"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDocument:
    """A document as words (untrusted text).

    Attributes:
        name: above its column.
        words: words and punctuation.
        sentences: half-open spans of words that follow each other and cover them all.
        mentions: (start, end, label): a half-open span of words, and what it is a mention of ("" = not said).

    Raises:
        ValueError: no words; sentences that leave gaps; a mention outside the document.
    """

    name: str
    words: tuple[str, ...]
    sentences: tuple[tuple[int, int], ...]
    mentions: tuple[tuple[int, int, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.words:
            raise ValueError(f"document {self.name} has no words; leave it out")
        ends = [0, *(end for _, end in self.sentences)]
        if [start for start, _ in self.sentences] != ends[:-1] or ends[-1] != len(self.words):
            raise ValueError(f"document {self.name}: its sentences must follow each other and hold all words")
        for start, end, _ in self.mentions:
            if not 0 <= start < end <= len(self.words):
                raise ValueError(f"document {self.name}: mention {(start, end)} is outside its words")

    @property
    def counts(self) -> np.ndarray:
        """bool (words,), True = a word, False = punctuation, which is not ranked."""
        return np.array([any(map(str.isalnum, word)) for word in self.words])

    def for_browser(self) -> dict[str, Any]:
        """As JSON; invisible and direction-turning characters are made visible."""
        shown = [visible(word) for word in self.words]
        gaps = [
            "0",
            *("1" if joined(pair) != "".join(pair) else "0" for pair in pairwise(shown)),
        ]
        return {
            "name": visible(self.name),
            "words": shown,
            "gaps": "".join(gaps),
            "counts": "".join("1" if count else "0" for count in self.counts),
            "sentences": [list(span) for span in self.sentences],
            "mentions": [[start, end, visible(label)] for start, end, label in self.mentions],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a person chose.

    Attributes:
        source: words that are looked from; None = none yet.
        target: words whose rank is wanted.
        source_global: True = the source attends globally, as in the paper's analysis.
        extra_global: other spans that attend globally.
        masked: spans hidden from the model, for it to predict.
        layer: from 0.
        heads: numbers of heads; None = all.
        direction: `from` = what the source gives, `to` = what it receives, `both` = their sum.
        reduce: heads, and the subwords of a word: their mean, or the largest.
    """

    source: Place | None = None
    target: Place | None = None
    source_global: bool = True
    extra_global: tuple[Place, ...] = ()
    masked: tuple[Place, ...] = ()
    layer: int = 0
    heads: tuple[int, ...] | None = None
    direction: Direction = "both"
    reduce: Reduction = "mean"

    def for_browser(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "source": self.source and list(self.source),
            "target": self.target and list(self.target),
            "source_global": self.source_global,
            "extra_global": [list(place) for place in self.extra_global],
            "masked": [list(place) for place in self.masked],
            "layer": self.layer,
            "heads": None if self.heads is None else list(self.heads),
            "direction": self.direction,
            "reduce": self.reduce,
        }

    @classmethod
    def from_browser(
        cls, values: Mapping[str, Any], *, sizes: Sequence[int], layers: int, heads: int
    ) -> Selection:
        """Read what a browser sent.

        Args:
            sizes: words of each document.
            layers, heads: how many there are.

        Raises:
            ValueError: anything that is not there.
        """

        def place(value: Any) -> Place | None:
            if value is None:
                return None
            document, start, end = map(int, value)
            if not (0 <= document < len(sizes) and 0 <= start < end <= sizes[document]):
                raise ValueError(f"there are no words {start} to {end} of document {document}")
            return document, start, end

        chosen = values.get("heads")
        numbers = None if chosen is None else tuple(sorted({int(head) for head in chosen}))
        layer = int(values.get("layer", layers - 1))
        if not 0 <= layer < layers:
            raise ValueError(f"there is no layer {layer + 1} of {layers}")
        if numbers is not None and not (numbers and set(numbers) <= set(range(heads))):
            raise ValueError(f"heads {chosen} are not among the {heads} there are")
        for name, options in (("direction", Direction), ("reduce", Reduction)):
            if values.get(name) not in get_args(options):
                raise ValueError(
                    f"{name} is {values.get(name)!r}; choose one of {', '.join(get_args(options))}"
                )
        return cls(
            source=place(values.get("source")),
            target=place(values.get("target")),
            source_global=bool(values.get("source_global", True)),
            extra_global=tuple(filter(None, map(place, values.get("extra_global", ())))),
            masked=tuple(filter(None, map(place, values.get("masked", ())))),
            layer=layer,
            heads=numbers,
            direction=values["direction"],
            reduce=values["reduce"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a model puts for hidden words.

    Attributes:
        span: the words.
        truth_probability: of what really stands there; of several subwords, the product.
        top: (text, probability), most likely first.
    """

    span: Place
    truth_probability: float
    top: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Panel:
    """The answer of one model.

    Attributes:
        name: of the model.
        scores: (words of all documents,), s(i|S) of each word.
        ranks: (words,), percentile rank of each among the words of its document, 0 to 100.
        reach: bool (words,), True = can carry weight to or from the source.
        read: bool (words,), True = in the text that the model reads, False = did not fit.
        target_rank: percentile rank of the target; None = no target.
        predictions: one for each hidden span.
    """

    name: str
    scores: np.ndarray
    ranks: np.ndarray
    reach: np.ndarray
    read: np.ndarray
    target_rank: float | None = None
    predictions: tuple[Prediction, ...] = field(default=())

    def for_browser(self) -> dict[str, Any]:
        """As JSON; arrays as base64 of little-endian float32 and bytes."""
        return {
            "name": visible(self.name),
            "scores": packed(self.scores),
            "ranks": packed(self.ranks),
            "reach": packed_bits(self.reach),
            "read": packed_bits(self.read),
            "target_rank": self.target_rank,
            "predictions": [
                {
                    "span": list(one.span),
                    "truth_probability": one.truth_probability,
                    "top": [[visible(text), probability] for text, probability in one.top],
                }
                for one in self.predictions
            ],
        }


def packed_bits(values: np.ndarray) -> str:
    """Truth values as base64 of a byte each."""
    return base64.b64encode(values.astype(np.uint8).tobytes()).decode("ascii")


def packed(values: np.ndarray) -> str:
    """Numbers as base64 of little-endian float32, row by row."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode("ascii")
