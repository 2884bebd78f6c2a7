"""What the explorer shows and what a person chooses in it: arrays and strings, checked where they come in."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from cdlm_lab.widgets.html import gap_between, visible

Place = tuple[int, int, int]  # number of the document, half-open span of its words
Edit = tuple[int, int, str]  # number of the document, its word, what stands there instead
LONGEST_EDIT = 60  # characters
Direction = Literal["both", "from", "to"]
Reduction = Literal["mean", "max"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDocument:
    """A document as words (untrusted text)."""

    name: str  # above its column
    words: tuple[str, ...]  # words and punctuation
    sentences: tuple[tuple[int, int], ...]  # half-open spans of words that follow each other and cover all
    # (start, end, label): a half-open span of words and whose mention it is ("" = unknown).
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

    @property
    def gaps(self) -> list[bool]:
        """(words,), True = print has a space before the word."""
        return [False, *(bool(gap_between(*map(visible, pair))) for pair in pairwise(self.words))]

    def edited(self, number: int, edits: Sequence[Edit]) -> ShownDocument:
        """With the edits of the document of that number."""
        words = list(self.words)
        for document, word, text in edits:
            if document == number:
                words[word] = text
        return replace(self, words=tuple(words))

    def for_browser(self) -> dict[str, Any]:
        """As JSON, with what is known of each word."""
        flags = {"gaps": self.gaps, "counts": self.counts}
        return as_json(self) | {name: "".join(str(int(one)) for one in of) for name, of in flags.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a person chose."""

    source: Place | None = None  # words that are looked from; None = none yet
    target: Place | None = None  # words whose rank is wanted
    source_global: bool = True  # True = the source attends globally, as in the paper's analysis
    extra_global: tuple[Place, ...] = ()  # other spans that attend globally
    masked: tuple[Place, ...] = ()  # spans hidden from the model, for it to predict
    layer: int = 0  # from 0
    heads: tuple[int, ...] | None = None  # numbers of heads; None = all
    direction: Direction = "both"  # `from` = what the source gives, `to` = what it receives, `both` = the sum
    reduce: Reduction = "mean"  # heads, and the subwords of a word: their mean, or the largest
    edits: tuple[Edit, ...] = ()  # words that are rewritten; the answer is of the text before them, too
    gradients: bool = False  # True = what the prediction of the last hidden span rests on is wanted

    def for_browser(self) -> dict[str, Any]:
        """As JSON."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_browser(
        cls, values: Mapping[str, Any], *, sizes: Sequence[int], layers: int, heads: int
    ) -> Selection:
        """Read what a browser sent, for documents of so many words (`sizes`) and models of so many layers and
        heads; a ValueError for anything that they do not have."""

        def place(value: Any) -> Place | None:
            if value is None:
                return None
            document, start, end = map(int, value)
            if not (0 <= document < len(sizes) and 0 <= start < end <= sizes[document]):
                raise ValueError(f"there are no words {start} to {end} of document {document}")
            return document, start, end

        def edit(value: Any) -> Edit:
            document, word, text = value
            text = " ".join(str(text).split())
            if not 0 < len(text) <= LONGEST_EDIT:
                raise ValueError(f"in place of a word write 1 to {LONGEST_EDIT} characters")
            return *place([document, word, int(word) + 1])[:2], text

        chosen, layer = values.get("heads"), int(values.get("layer", layers - 1))
        numbers = None if chosen is None else tuple(sorted({int(head) for head in chosen}))
        if not 0 <= layer < layers:
            raise ValueError(f"there is no layer {layer + 1} of {layers}")
        if numbers is not None and not (numbers and set(numbers) <= set(range(heads))):
            raise ValueError(f"heads {chosen} are not among the {heads} there are")
        for name, options in (("direction", Direction), ("reduce", Reduction)):
            if values.get(name) not in get_args(options):
                choices = ", ".join(get_args(options))
                raise ValueError(f"{name} is {values.get(name)!r}; choose one of {choices}")
        return cls(
            **{name: place(values.get(name)) for name in ("source", "target")},
            extra_global=tuple(filter(None, map(place, values.get("extra_global", ())))),
            masked=tuple(filter(None, map(place, values.get("masked", ())))),
            **{name: values[name] for name in ("direction", "reduce")},
            source_global=bool(values.get("source_global", True)),
            edits=tuple(map(edit, values.get("edits", ()))),
            gradients=bool(values.get("gradients", False)),
            layer=layer,
            heads=numbers,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a model predicts for hidden words."""

    span: Place  # the words
    truth_probability: float  # of what really stands there, as one word
    top: tuple[tuple[str, float], ...]  # (text, probability), most likely first; whole words
    pieces: int = 1  # how many tokens are hidden


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attributed:
    """What a prediction rests on: an attribution for each word, in natural logarithms, above 0 = it speaks
    for what really stands there."""

    span: Place  # the hidden words
    words: np.ndarray  # (words of all documents,)
    output: float  # logarithm of the probability of the hidden words
    baseline: float  # the same with all other words hidden, too
    total: float  # of `words`


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Panel:
    """The answer of one model."""

    name: str  # of the model
    scores: np.ndarray  # (words of all documents,), s(i|S) of each word
    ranks: np.ndarray  # (words,), percentile rank of each among the words of its document, 0 to 100
    reach: np.ndarray  # bool (words,), True = can carry weight to or from the source
    read: np.ndarray  # bool (words,), True = in the text that the model reads, False = did not fit
    target_rank: float | None = None  # percentile rank of the target; None = no target
    predictions: tuple[Prediction, ...] = ()  # one for each hidden span
    attributed: Attributed | None = None  # None = not wanted, or nothing is hidden
    before: Panel | None = None  # of the text before the edits; None = there are none


def as_json(value: Any) -> Any:
    """A record as JSON: arrays are base64 of little-endian float32, of flags bytes; invisible and
    direction-turning characters are made visible."""
    if is_dataclass(value):
        return {one.name: as_json(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, np.ndarray):
        return packed(value, "u1" if value.dtype == bool else "<f4")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [as_json(one) for one in value]
    return visible(value) if isinstance(value, str) else value


def packed(values: np.ndarray, dtype: str = "<f4") -> str:
    """Numbers as base64 of little-endian float32, or of another type, row by row."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode("ascii")
