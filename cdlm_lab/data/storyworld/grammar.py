"""The template language in which storyworld's sentences are written, and the schema of its tables.

    [a|b|]        one of the alternatives, which may nest and may be empty
    {mayor}       an entity: named and introduced at first, then described, called by surname or by pronoun
    {mayor.sub}   the same as the subject of a sentence (a pronoun is possible); .he .his pronouns;
                  .name the full name
    {dead}        a number
    {$crowns}     a plain word of the story
    {>what}       a fragment of the event type, chosen anew each time
    <fell~main>   words that name the event `main`
    {ev}          a noun for the main event, marked as its mention

A template without a final stop is a clause, which can be attributed, joined, or opened with a connective.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

Node = str | tuple
_KEY = re.compile(r"\{(?!ev\})(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A compiled template. `keys`: all slots that it may use; `clause`: whether it lacks a final stop."""

    text: str
    nodes: tuple[Node, ...]
    keys: frozenset[str]
    clause: bool


def compile_template(text: str) -> Template:
    """Parse a template. Raises ValueError, which says where, if its brackets do not match."""
    nodes, end = _sequence(text, 0, stops="")
    if end != len(text):
        raise ValueError(f"stray {text[end]!r} at character {end} of template {text!r}; remove it")
    clause = not text.endswith((".", "?", "!", '"'))
    return Template(text=text, nodes=nodes, keys=frozenset(_KEY.findall(text)), clause=clause)


def _sequence(text: str, at: int, *, stops: str) -> tuple[tuple[Node, ...], int]:
    """Parse from `at` up to one of `stops` or a closing bracket; return the nodes and the place of that."""
    nodes: list[Node] = []
    while at < len(text) and text[at] not in f"{stops}]}}>":
        if text[at] == "{":
            end = _closing(text, at, "}")
            nodes.append(_slot(text[at + 1 : end]))
            at = end + 1
        elif text[at] == "<":
            inner, end = _sequence(text, at + 1, stops="~")
            at = _closing(text, end, ">") + 1
            nodes.append(("mark", inner, text[end + 1 : at - 1]))
        elif text[at] == "[":
            options: list[tuple[Node, ...]] = []
            while not options or text[at] != "]":
                inner, at = _sequence(text, at + 1, stops="|")
                options.append(inner)
                if at >= len(text):
                    raise ValueError(f"'[' is never closed in template {text!r}; add ']'")
            nodes.append(("alt", tuple(options)))
            at += 1
        else:
            start = at
            while at < len(text) and text[at] not in f"{stops}]}}>[{{<":
                at += 1
            nodes.append(text[start:at])
    return tuple(nodes), at


def _closing(text: str, at: int, mark: str) -> int:
    end = text.find(mark, at)
    if end < 0:
        raise ValueError(f"no {mark!r} after character {at} of template {text!r}; add it")
    return end


def _slot(body: str) -> Node:
    if body.startswith("$"):
        return ("word", body[1:])
    if body.startswith(">"):
        return ("macro", body[1:])
    key, _, form = body.partition(".")
    return ("event",) if body == "ev" else ("ref", key, form)


# ---- tables ----


def _halves(text: str) -> tuple[Template, Template]:
    before, _, after = text.partition("#")
    return compile_template(before), compile_template(after)


Options = Annotated[tuple[str, ...], BeforeValidator(lambda text: tuple(text.split("|")))]
Wording = Annotated[Template, BeforeValidator(compile_template)]
Wordings = Annotated[
    tuple[Template, ...], BeforeValidator(lambda text: tuple(map(compile_template, text.splitlines())))
]


class Table(BaseModel):
    """Base class of the rows of the YAML files, whose texts are parsed by the fields' validators."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Phonology(Table):
    """The syllable parts of one invented language; a word is made of two to four syllables."""

    onsets: tuple[str, ...]
    vowels: tuple[str, ...]
    middles: tuple[str, ...]
    female: tuple[str, ...]
    male: tuple[str, ...]
    surname: tuple[str, ...]
    place: tuple[str, ...]


class Part(Table):
    """A part in the cast. `label`: its entity tag; `nouns`: nouns, of which one is drawn; `name`: patterns of
    names, with @ for an invented word; `definite`: whether there is only one ("the mayor")."""

    label: str
    nouns: Options
    name: Options = ("@",)
    definite: bool = True


class Quantity(Table):
    """A number of the story: its range, a question about it, and a claim, as texts before and after it."""

    low: int
    high: int
    question: Wording | None = None
    claim: Annotated[tuple[Template, Template], BeforeValidator(_halves)] | None = None
    year: bool = False


class Unit(Table):
    """One thing to report, in several wordings. `topic`: decides which angles prefer it."""

    key: str
    topic: str
    templates: Wordings


class Bridge(Table):
    """A question over two documents whose answer is the name of `slot`: the clue `link` is stated in one
    document, and `reply` in the other."""

    slot: str
    link: Unit
    reply: Unit
    question: Wording


class Comparison(Table):
    """Two statements of the same kind in two documents, with slots place_a/count_a and place_b/count_b."""

    units: tuple[Unit, Unit]
    which: Wording
    whether: Wording

    @model_validator(mode="before")
    @classmethod
    def _sides(cls, row: Mapping[str, str]) -> dict[str, Any]:
        """Make a unit for each side, with PLACE and COUNT in the statements replaced by its slots."""
        units = []
        for side in "ab":
            text = row["statements"].replace("PLACE", f"place_{side}").replace("COUNT", f"count_{side}")
            units.append(Unit(key=f"compare.{side}", topic="bridge", templates=text))
        return {"units": units, "which": row["which"], "whether": row["whether"]}


class EventType(Table):
    """All texts about one type of event.

    `texts`: headlines, leads, and the fragments "what" (a clause that tells the event) and "after" (a noun
    phrase for it). `units`: its own, followed by those that all types of event share.
    """

    name: str
    nouns: Options
    words: dict[str, Options]
    cast: dict[str, Part]
    numbers: dict[str, Quantity]
    texts: dict[str, Wordings]
    units: tuple[Unit, ...]
    bridges: tuple[Bridge, ...]
    comparison: Comparison

    @property
    def core(self) -> list[Unit]:
        """The units that every report may be expected to state."""
        return [unit for unit in self.units if unit.topic == "core"]

    def templates(self) -> Iterator[Template]:
        """Yield all wordings that reports of this type can use."""
        halves = [half for bridge in self.bridges for half in (bridge.link, bridge.reply)]
        for unit in (*self.units, *halves, *self.comparison.units):
            yield from unit.templates
        yield from chain.from_iterable(self.texts.values())


class Angle(Table):
    """A way to report. `likes`: topic -> weight; `words`: range of a report's length in words; `leads`:
    openings; if there are none, those of the event type are used."""

    likes: dict[str, float]
    words: tuple[int, int]
    leads: Wordings = ()
