"""Answers of models: small typed objects, each with a data frame and a picture for notebooks; and the lines
that warn of a text that was not read whole, or is foreign to the model."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, Generic, TypeVar

import pandas as pd

from cdlm_lab.data.marked import HALF_A_CHARACTER
from cdlm_lab.data.text_profile import TextProfile
from cdlm_lab.parameters import ParameterError
from cdlm_lab.views import html

PACKAGE = Path(__file__).resolve().parents[1]
Part, Item = TypeVar("Part"), TypeVar("Item")
PATIENCE = 2.0  # seconds before a progress bar appears
NO_REAL_MODEL = "no model of real English for this comes with the project, as none is good enough"
IN_SIGHT = 10  # most answers to a list that are shown below each other


class TextCut(UserWarning):
    """Warning that a model did not read all of a text."""


class ForeignText(UserWarning):
    """Warning that a text is unlike all that a model was trained on, so that its answer means little."""


def warn_of_cut(cut: str) -> str:
    """Warn of what is not read, if anything, and return it; the warning points at the caller's line outside
    the package."""
    if cut:
        _warn(cut, TextCut)
    return cut


def foreign_to(profile: TextProfile | None, name: str, texts: Iterable[str], *, real: Sequence[str]) -> str:
    """Warn, in one line, if texts that are read together are foreign to the model of that name, and return
    the line, which belongs to the result; "" if they are not, or the model has no profile. `real`: the models
    of real English that do the same; [] = none comes with the project."""
    message = profile.foreign(texts) if profile else ""
    if message:
        message += in_its_place(name, real)
        _warn(f"{name}: {message}", ForeignText)
    return message


def in_its_place(name: str, real: Sequence[str]) -> str:
    """What to open in place of the model of that name, as the end of a line (see `foreign_to`)."""
    others = " or ".join(f'"{one}"' for one in real if one != name)
    return f"; for real English open {others}" if others else "" if real else f"; {NO_REAL_MODEL}"


def _warn(message: str, category: type[Warning]) -> None:
    files = (frame.filename for frame in inspect.stack(context=0)[1:])
    level = 2 + sum(1 for _ in takewhile(lambda file: Path(file).is_relative_to(PACKAGE), files))
    warnings.warn(message, category, stacklevel=level)


def texts_of(texts: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Texts by name; unnamed ones are called "text 0", "text 1". Raises ParameterError if there is none, or
    one is not a string or is empty."""
    if isinstance(texts, str):
        texts = [texts]
    named = texts if isinstance(texts, Mapping) else {f"text {n}": text for n, text in enumerate(texts)}
    if not named:
        raise ParameterError("there is no text; give at least one")
    for name, text in named.items():
        if not isinstance(text, str) or not isinstance(name, str):
            raise ParameterError(f"{name} is {type(text).__name__}; names and texts must be text")
        if not text.strip():
            raise ParameterError(f"{name} is empty; write some text, or leave it out")
    return dict(named)


def list_of(texts: Sequence[str], *, name: str) -> list[str]:
    """Several texts as a list. Raises ParameterError for one text, whose letters would be taken for texts."""
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise ParameterError(f"{name} is one {type(texts).__name__}; give a list of texts")
    return list(texts)


def asked(read: Callable[..., Item], answer: Callable[[list[Item]], Iterable[Any]], **given: Any) -> Any:
    """What a verb of a model returns: for one item its answer, for lists of the same length an `Answers`,
    with one answer for each entry, in order.

    Args:
        read: checks the values of one item, given by name, and makes of them what `answer` takes.
        answer: answers several items at once, each as it would be answered alone.
        given: name of a parameter -> its value; lists, if the first one is a list (or a tuple, or another
            sequence), and not a text or documents by name.

    Raises ParameterError for lists of different lengths, for half a character in a text, and what `read`
    raises, for lists with the index of the entry.
    """

    def checked(**values: Any) -> Item:
        for parameter, value in values.items():
            _check_whole(parameter, value)
        return read(**values)

    (name, first), *others = given.items()
    if isinstance(first, str | bytes | Mapping) or not isinstance(first, Iterable):
        (result,) = answer([checked(**given)])
        return result
    columns = {name: list(first)} | {other: list_of(values, name=other) for other, values in others}
    if odd := [other for other, values in columns.items() if len(values) != len(columns[name])]:
        sizes = f"{name} has {len(columns[name])} entries and {odd[0]} {len(columns[odd[0]])}"
        raise ParameterError(f"{sizes}; give lists of the same length, or one item")
    items = []
    for number, values in enumerate(zip(*columns.values(), strict=True)):
        try:
            items.append(checked(**dict(zip(columns, values, strict=True))))
        except ValueError as error:
            raise ParameterError(f"entry {number} of the lists: {error}") from None
    return Answers(parts=tuple(answer(items)) if items else ())


def _check_whole(name: str, value: Any) -> None:
    """Raise ParameterError for a text that UTF-8 cannot encode."""
    if isinstance(value, Mapping):
        for key, text in value.items():
            _check_whole(name, key)
            _check_whole(key if isinstance(key, str) else name, text)
    elif isinstance(value, str) and (half := HALF_A_CHARACTER.search(value)):
        what = f"{name} has half a character (U+{ord(half[0]):04X})"
        raise ParameterError(f"{what}; delete it and type it again")
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for text in value:
            _check_whole(name, text)


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """Base class of all results."""

    foreign: str = ""  # a line that says so if the text is foreign to the model, as `ForeignText` does
    cut: str = ""  # a line on what of the text the model has not read, as `TextCut` has it

    def picture_html(self) -> str:
        """The picture of the result for notebooks, without the lines above it."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return f"{html.warning(self.foreign)}{html.warning(self.cut)}{self.picture_html()}"

    def rows(self) -> Iterable[Mapping[str, Any]]:
        """The rows of the data frame."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """The result as a data frame."""
        return pd.DataFrame(list(self.rows()))

    def as_json(self) -> dict[str, Any]:
        """The result as plain values that JSON can hold."""
        raise NotImplementedError

    def heading(self) -> str:
        """The first line of the result in a terminal; "" = none."""
        return ""

    def __str__(self) -> str:
        table = self.to_frame().to_string(index=False, max_rows=50, max_cols=10, max_colwidth=80)
        return "\n".join(filter(None, (self.foreign, self.cut, self.heading(), table)))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts(Result, Sequence, Generic[Part]):
    """A result that is a sequence of parts, each one row of the data frame."""

    parts: tuple[Part, ...]

    def rows(self) -> Iterable[Mapping[str, Any]]:
        """The fields of each part, as one row."""
        return map(asdict, self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, number: Any) -> Any:
        return self.parts[number]

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)


@dataclass(frozen=True, kw_only=True)
class Answers(Sequence[Any]):
    """The answers to several items, in their order."""

    parts: tuple[Result, ...]

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, number: Any) -> Any:
        return self.parts[number]

    def to_frame(self) -> pd.DataFrame:
        """The data frames of all answers, one below the other; the column `item` has the index of each."""
        frames = {number: one.to_frame() for number, one in enumerate(self.parts)}
        return pd.concat(frames, names=["item"]).reset_index("item") if frames else pd.DataFrame()

    def as_json(self) -> list[dict[str, Any]]:
        """Each answer as plain values that JSON can hold."""
        return [one.as_json() for one in self.parts]

    def _repr_html_(self) -> str:
        shown = "".join(f"<div>{one._repr_html_()}</div>" for one in self.parts[:IN_SIGHT])
        more = f"{len(self.parts) - IN_SIGHT:,} more, not shown here; to_frame() has all."
        return shown + (html.muted(more) if len(self.parts) > IN_SIGHT else "")

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.parts))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


@dataclass(frozen=True, kw_only=True)
class Pictured(Parts[Part]):
    """A sequence result with the picture that the notebook of its task shows."""

    picture: Callable[[], str] = field(repr=False, compare=False)  # HTML

    def picture_html(self) -> str:
        """The picture that the notebook of the task shows."""
        return self.picture()
