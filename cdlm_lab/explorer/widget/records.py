"""Data of the explorer, and the user's selection in it: arrays and strings, checked where they come in."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import TypeAdapter, ValidationError

from cdlm_lab.views.html import gap_between, visible

Place = tuple[int, int, int]  # index of a document, start and end of a half-open span of its words
Edit = tuple[int, int, str]  # index of a document, index of a word in it, the text that replaces the word
LONGEST_EDIT = 60  # characters
Direction = Literal["both", "from", "to"]
Reduction = Literal["mean", "max"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDocument:
    """A document to show, as a sequence of words (untrusted text)."""

    name: str  # shown above its column
    words: tuple[str, ...]  # words and punctuation marks
    sentences: tuple[tuple[int, int], ...]  # half-open spans of words: consecutive, and covering all words
    # (start, end, label): a half-open span of words, and the label of its coreference cluster ("" = unknown).
    mentions: tuple[tuple[int, int, str], ...] = ()
    spaces: tuple[bool, ...] | None = None  # is one before each word? None = as in print

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
        """bool (words,): True = a word, False = punctuation, which gets no percentile rank."""
        return np.array([any(map(str.isalnum, word)) for word in self.words])

    @property
    def gaps(self) -> list[bool]:
        """For each word, True = a space is printed before it."""
        if self.spaces is not None:
            return [False, *self.spaces[1:]]
        return [False, *(bool(gap_between(*map(visible, pair))) for pair in pairwise(self.words))]

    def edited(self, number: int, edits: Sequence[Edit]) -> ShownDocument:
        """Return a copy with those edits applied that are meant for the document of index `number`."""
        words = list(self.words)
        for document, word, text in edits:
            if document == number:
                words[word] = text
        return replace(self, words=tuple(words))

    def for_browser(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary; `gaps` and `counts` are strings with 0 or 1 for each word."""
        flags = {"gaps": self.gaps, "counts": self.counts}
        shown = as_json(replace(self, spaces=None))
        del shown["spaces"]
        return shown | {name: "".join(str(int(one)) for one in of) for name, of in flags.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The user's choices in the explorer."""

    source: Place | None = None  # words S whose attention to or from others is shown; None = not chosen yet
    target: Place | None = None  # words whose percentile rank is shown; None = none
    source_global: bool = True  # True = the source has global attention, as in the CDLM paper's analysis
    extra_global: tuple[Place, ...] = ()  # other spans with global attention
    masked: tuple[Place, ...] = ()  # spans that are masked, for the model to predict
    layer: int = 0  # index of the layer, from 0
    heads: tuple[int, ...] | None = None  # indices of heads, from 0; None = all
    direction: Direction = "both"  # `from` = attention from the source, `to` = to the source, `both` = sum
    reduce: Reduction = "mean"  # how heads, and the subwords of a word, are combined: mean or maximum
    edits: tuple[Edit, ...] = ()  # words to replace; the answer then also covers the text without edits

    def for_browser(self) -> dict[str, Any]:
        """Return the fields as a JSON-compatible dictionary."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_browser(
        cls, values: Mapping[str, Any], *, sizes: Sequence[int], layers: int, heads: int
    ) -> Selection:
        """Parse a selection sent by the browser. `sizes`: words of each document; `layers`, `heads`: how many
        the models have. Raises ValueError for words, layers, heads or options that do not exist."""
        try:
            sent = _SELECTION.validate_python({"layer": layers - 1} | dict(values))
        except ValidationError as error:
            first = error.errors()[0]
            where = " ".join(map(str, first["loc"]))
            raise ValueError(f"{where}: {first['msg']}, not {first['input']!r}") from None
        edits = tuple((document, word, " ".join(text.split())) for document, word, text in sent.edits)
        if not all(0 < len(text) <= LONGEST_EDIT for _, _, text in edits):
            raise ValueError(f"in place of a word write 1 to {LONGEST_EDIT} characters")
        edited = ((document, word, word + 1) for document, word, _ in edits)
        places = (sent.source, sent.target, *sent.extra_global, *sent.masked, *edited)
        for document, start, end in filter(None, places):
            if not (0 <= document < len(sizes) and 0 <= start < end <= sizes[document]):
                raise ValueError(f"there are no words {start} to {end} of document {document}")
        if not 0 <= sent.layer < layers:
            raise ValueError(f"there is no layer {sent.layer + 1} of {layers}")
        chosen = None if sent.heads is None else tuple(sorted(set(sent.heads)))
        if chosen is not None and not (chosen and set(chosen) <= set(range(heads))):
            raise ValueError(f"heads {list(sent.heads)} are not among the {heads} there are")
        return replace(sent, edits=edits, heads=chosen)


_SELECTION = TypeAdapter(Selection)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A model's prediction for a masked span."""

    span: Place  # the masked words
    truth_probability: float  # of the original text, as one word: the product over its tokens
    top: tuple[tuple[str, float], ...]  # (whole word, probability), most likely first
    pieces: int = 1  # number of masked tokens


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Panel:
    """The answer of one model to a selection."""

    name: str  # of the model
    scores: np.ndarray  # (words of all documents,), attention score s(i|S) of each word i for the source S
    ranks: np.ndarray  # (words,), percentile rank of each score among the words of its document, 0 to 100
    reach: np.ndarray  # bool (words,), True = attention to or from the source is possible
    read: np.ndarray  # bool (words,), True = in the text that the model reads, False = did not fit
    target_rank: float | None = None  # percentile rank of the target; None = no target
    predictions: tuple[Prediction, ...] = ()  # one for each masked span
    before: Panel | None = None  # the answer for the text without the edits; None = there are no edits


def as_json(value: Any) -> Any:
    """Return a record as JSON-compatible values. Arrays become base64 of little-endian float32, Boolean ones
    of bytes; control characters and those that change the text direction are replaced by visible ones."""
    if is_dataclass(value):
        return {one.name: as_json(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, np.ndarray):
        return packed(value, "u1" if value.dtype == bool else "<f4")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [as_json(one) for one in value]
    return visible(value) if isinstance(value, str) else value


def packed(values: np.ndarray, dtype: str = "<f4") -> str:
    """Return an array in row-major order as base64 of little-endian float32, or of another `dtype`."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode("ascii")
