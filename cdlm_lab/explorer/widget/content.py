"""What the explorer shows and is asked, in Python and as the browser has it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from cdlm_lab.explorer.reading import Edit, Panel, Place, Selection
from cdlm_lab.views.html import gap_between, visible

OWN = ""  # in place of the key of an example: a text of the user's own
LONGEST_TEXT = 200_000  # most characters that are accepted from the text box
LONGEST_EDIT = 60  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDocument:
    """A document to show, as a sequence of words (untrusted text)."""

    name: str  # shown above its column
    words: tuple[str, ...]  # words and punctuation marks
    sentences: tuple[tuple[int, int], ...]  # half-open spans of words: consecutive, and covering all words
    # (start, end, label): a half-open span of words, and the label of its coreference cluster ("" = unknown).
    mentions: tuple[tuple[int, int, str], ...] = ()
    spaces: tuple[bool, ...] | None = None  # is one before each word? None = as in print

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
        """The fields, JSON-compatible; `gaps` and `counts` are strings with 0 or 1 for each word."""
        flags = {"gaps": self.gaps, "counts": self.counts}
        fields = {name: getattr(self, name) for name in ("name", "words", "sentences", "mentions")}
        return as_json(fields) | {name: "".join(str(int(one)) for one in of) for name, of in flags.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class Content:
    """The documents that are shown, and the models that read them."""

    documents: Sequence[ShownDocument]
    models: Sequence[str]  # names, in the order of their panels
    layers: int  # how many can be chosen: the minimum over the models, so that each has them
    heads: int
    # The panel of each model for a selection; may raise ValueError, whose one-line message the user sees.
    answer: Callable[[Selection], Sequence[Panel]]
    predicts: bool = False  # True = words can be masked, and the panels contain predictions for them
    cuts: bool = False  # True = attention between the documents can be cut
    selection: Selection | None = None  # the initial one; None = no words are chosen, the layer is the last
    note: str = ""  # a line on what is shown and what is not
    opened: Opened | None = None  # the request that this answers; None = nothing else can be opened

    @property
    def first_selection(self) -> Selection:
        """The initial selection; by default no words, in the last layer."""
        return self.selection or Selection(layer=self.layers - 1)

    def options(self) -> dict[str, Any]:
        """What the browser's controls offer, JSON-compatible."""
        names = ("models", "layers", "heads", "predicts", "cuts", "note")
        return as_json({name: getattr(self, name) for name in names}) | {"exports": True}


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A user's request: an example, or some of its documents, or a text; to be read by one or two models."""

    example: str  # key of the example; OWN = the user's own `text`
    documents: list[str] = field(default_factory=list)  # ids, of the example; [] = those it shows at first
    text: str = ""
    models: list[str]  # keys

    @classmethod
    def from_browser(cls, values: Mapping[str, Any], choices: Mapping[str, Any]) -> Opened:
        """Parse a request. `choices`: keys and labels of the examples, with their documents, and of the
        models. Raises ValueError for unknown keys, not 1 or 2 models, or too long a text."""
        sent = _parsed(_OPENED, values)
        known = {key: dict(documents) for key, _, documents in choices["examples"]}
        models = list(dict.fromkeys(sent.models))
        if sent.example not in {OWN, *known}:
            raise ValueError(f"there is no example {sent.example!r}")
        if not 1 <= len(models) <= 2 or set(models) - set(dict(choices["models"])):
            raise ValueError(f"models are {', '.join(models) or 'none'}; choose one or two of the list")
        if len(sent.text) > LONGEST_TEXT:
            raise ValueError(
                f"the text has {len(sent.text):,} characters, at most {LONGEST_TEXT:,} are taken"
            )
        if sent.example == OWN:
            return replace(sent, models=models, documents=[])
        if set(sent.documents) - set(known[sent.example]):
            raise ValueError("one of the documents is not of this example")
        return replace(sent, models=models, documents=list(dict.fromkeys(sent.documents)), text="")


def selection_from_browser(
    values: Mapping[str, Any], *, sizes: Sequence[int], layers: int, heads: int
) -> Selection:
    """Parse a selection. `sizes`: words of each document; `layers`, `heads`: how many the models have. Raises
    ValueError for words, layers, heads or options that do not exist."""
    sent = _parsed(_SELECTION, {"layer": layers - 1} | dict(values))
    edits = tuple((document, word, " ".join(text.split())) for document, word, text in sent.edits)
    if not all(0 < len(text) <= LONGEST_EDIT for _, _, text in edits):
        raise ValueError(f"in place of a word write 1 to {LONGEST_EDIT} characters")
    edited = ((document, word, word + 1) for document, word, _ in edits)
    for place in (sent.source, sent.target, *sent.extra_global, *sent.masked, *edited):
        _check_place(place, sizes)
    if not 0 <= sent.layer < layers:
        raise ValueError(f"there is no layer {sent.layer + 1} of {layers}")
    chosen = None if sent.heads is None else tuple(sorted(set(sent.heads)))
    if chosen is not None and not (chosen and set(chosen) <= set(range(heads))):
        raise ValueError(f"heads {list(sent.heads)} are not among the {heads} there are")
    return replace(sent, edits=edits, heads=chosen)


def _check_place(place: Place | None, sizes: Sequence[int]) -> None:
    if place is not None:
        document, start, end = place
        if not (0 <= document < len(sizes) and 0 <= start < end <= sizes[document]):
            raise ValueError(f"there are no words {start} to {end} of document {document}")


_OPENED, _SELECTION = TypeAdapter(Opened), TypeAdapter(Selection)


def _parsed(form: TypeAdapter[Any], values: Mapping[str, Any]) -> Any:
    try:
        return form.validate_python(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        where = " ".join(map(str, first["loc"]))
        raise ValueError(f"{where}: {first['msg']}, not {first['input']!r}") from None


def as_json(value: Any) -> Any:
    """Return a record as JSON-compatible values. Arrays become base64 of little-endian float32, Boolean ones
    of bytes; control characters and those that change the text direction are replaced by visible ones."""
    if is_dataclass(value):
        return {one.name: as_json(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {name: as_json(one) for name, one in value.items()}
    if isinstance(value, np.ndarray):
        return packed(value, "u1" if value.dtype == bool else "<f4")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [as_json(one) for one in value]
    return visible(value) if isinstance(value, str) else value


def packed(values: np.ndarray, dtype: str = "<f4") -> str:
    """Return an array in row-major order as base64 of little-endian float32, or of another `dtype`."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode("ascii")
