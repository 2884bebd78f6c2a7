"""What the explorer shows, documents and the models that read them, and what it can open next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cdlm_lab.widgets.explorer.records import Panel, Selection, ShownDocument
from cdlm_lab.widgets.html import visible

OWN = ""  # in place of an example: a text of one's own
LONGEST_TEXT = 200_000  # characters that a box may send


@dataclass(frozen=True, kw_only=True, eq=False)
class Content:
    """Documents, models, and the functions that answer what is chosen in them.

    Args:
        documents: what is shown.
        models: names of the models, in the order of their panels.
        layers, heads: of the models; the smallest of each, so that all of them have what can be chosen.
        answer: called with what was chosen; gives the panels in the order of `models`. It may raise
            ValueError with a line for the person.
        overview: called once, when the overview is first shown, with a function that takes a line to show
            meanwhile; gives for each model (sentences, sentences): how much sentence i has to do with j.
            None = there is no overview.
        predicts: True = words can be hidden, and the panels bring predictions.
        selection: at first; None = nothing chosen yet, the last layer.
        note: a line on what is shown, and what is not.
        opened: by what it was opened; None = nothing else can be.
    """

    documents: Sequence[ShownDocument]
    models: Sequence[str]
    layers: int
    heads: int
    answer: Callable[[Selection], Sequence[Panel]]
    overview: Callable[[Callable[[str], None]], Sequence[np.ndarray]] | None = None
    predicts: bool = False
    selection: Selection | None = None
    note: str = ""
    opened: Opened | None = None

    @property
    def first_selection(self) -> Selection:
        """What is chosen at first."""
        return self.selection or Selection(layer=self.layers - 1)

    def options(self) -> dict[str, Any]:
        """As JSON, what the controls offer."""
        values = {"models": list(map(visible, self.models)), "layers": self.layers, "heads": self.heads}
        values |= {"predicts": self.predicts, "overview": self.overview is not None}
        return values | {"exports": True, "note": visible(self.note)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What a person opens: an example, or some of its documents, or own text; and one or two models."""

    example: str  # key; OWN = `text`
    documents: tuple[str, ...] = ()  # keys of documents of the example; () = those it begins with
    text: str = ""
    models: tuple[str, ...]  # keys

    def for_browser(self) -> dict[str, Any]:
        """As JSON."""
        values = asdict(self)
        return values | {name: list(values[name]) for name in ("documents", "models")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Documents that belong together."""

    key: str
    label: str
    documents: Mapping[str, str]  # key -> label


@dataclass(frozen=True, kw_only=True, eq=False)
class Choices:
    """What can be opened; `open` may raise ValueError with a line for the person."""

    examples: Sequence[Example]
    models: Mapping[str, str]  # key -> label
    open: Callable[[Opened], Content]

    def for_browser(self) -> dict[str, Any]:
        """As JSON."""

        def pairs(named: Mapping[str, str]) -> list[list[str]]:
            return [[key, visible(label)] for key, label in named.items()]

        examples = [[one.key, visible(one.label), pairs(one.documents)] for one in self.examples]
        return {"examples": examples, "models": pairs(self.models)}

    def checked(self, values: Mapping[str, Any]) -> Opened:
        """Read what a browser sent; a ValueError for anything that there is not."""
        example, text = str(values.get("example", OWN)), str(values.get("text", ""))
        known = {one.key: one for one in self.examples}
        models, documents = (
            tuple(dict.fromkeys(map(str, values.get(name, ())))) for name in ("models", "documents")
        )
        if example != OWN and example not in known:
            raise ValueError(f"there is no example {example!r}")
        if not 1 <= len(models) <= 2 or set(models) - set(self.models):
            raise ValueError(f"models are {', '.join(models) or 'none'}; choose one or two of the list")
        if example != OWN and set(documents) - set(known[example].documents):
            raise ValueError("one of the documents is not of this example")
        if len(text) > LONGEST_TEXT:
            raise ValueError(f"the text has {len(text):,} characters, at most {LONGEST_TEXT:,} are taken")
        if example == OWN:
            return Opened(example=OWN, text=text, models=models)
        return Opened(example=example, documents=documents, models=models)
