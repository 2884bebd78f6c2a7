"""Content of the explorer: documents, the models that read them, and what the user can open next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cdlm_lab.explorer.widget.records import Panel, Selection, ShownDocument
from cdlm_lab.views.html import visible

OWN = ""  # in place of the key of an example: a text of the user's own
LONGEST_TEXT = 200_000  # most characters that are accepted from the text box


@dataclass(frozen=True, kw_only=True, eq=False)
class Content:
    """Documents, models, and the functions that compute the answer to a selection in them.

    Args:
        documents: the documents to show.
        models: names of the models, in the order of their panels.
        layers, heads: how many can be chosen: the minimum over the models, so that each model has them.
        answer: called with the selection; returns one panel per model, in the order of `models`. It may
            raise ValueError, whose one-line message is shown to the user.
        predicts: True = words can be masked, and the panels contain predictions for them.
        selection: the initial selection; None = no words are chosen yet, and the layer is the last.
        note: one line on what is shown and what is not.
        opened: the request that this content answers; None = the user cannot open anything else.
    """

    documents: Sequence[ShownDocument]
    models: Sequence[str]
    layers: int
    heads: int
    answer: Callable[[Selection], Sequence[Panel]]
    predicts: bool = False
    selection: Selection | None = None
    note: str = ""
    opened: Opened | None = None

    @property
    def first_selection(self) -> Selection:
        """The initial selection; by default no words, in the last layer."""
        return self.selection or Selection(layer=self.layers - 1)

    def options(self) -> dict[str, Any]:
        """Return what the browser's controls offer, as a JSON-compatible dictionary."""
        values = {"models": list(map(visible, self.models)), "layers": self.layers, "heads": self.heads}
        return values | {"predicts": self.predicts, "exports": True, "note": visible(self.note)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A user's request: an example, or some of its documents, or a text; to be read by one or two models."""

    example: str  # key of the example; OWN = the user's own `text`
    documents: tuple[str, ...] = ()  # keys of documents of the example; () = those it shows at first
    text: str = ""
    models: tuple[str, ...]  # keys of the models

    def for_browser(self) -> dict[str, Any]:
        """Return the fields as a JSON-compatible dictionary."""
        values = asdict(self)
        return values | {name: list(values[name]) for name in ("documents", "models")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Related documents that can be opened together."""

    key: str
    label: str
    documents: Mapping[str, str]  # key -> label


@dataclass(frozen=True, kw_only=True, eq=False)
class Choices:
    """What the user can open. `open` may raise ValueError, whose one-line message is shown to the user."""

    examples: Sequence[Example]
    models: Mapping[str, str]  # key -> label
    open: Callable[[Opened], Content]

    def for_browser(self) -> dict[str, Any]:
        """Return the lists of examples and of models as a JSON-compatible dictionary."""

        def pairs(named: Mapping[str, str]) -> list[list[str]]:
            return [[key, visible(label)] for key, label in named.items()]

        examples = [[one.key, visible(one.label), pairs(one.documents)] for one in self.examples]
        return {"examples": examples, "models": pairs(self.models)}

    def checked(self, values: Mapping[str, Any]) -> Opened:
        """Parse a request from the browser. ValueError: unknown keys, not 1 or 2 models, too long a text."""
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
