"""Renders templates into the text of one report and notes where everything stands.

It decides how an entity is called: by name and office when it first appears, afterwards by description,
surname or pronoun, so that most names stand in a report exactly once.

How an entity is named the first time: office and name, age, population, staff, in varied order.

The office or the unit mostly stands next to the invented word, so that it can be found in another report.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from cdlm_lab.data.storyworld.grammar import Node, Template
from cdlm_lab.data.storyworld.names import draw
from cdlm_lab.data.storyworld.world import Entity, World

VOWELS = "aeiou"
MEMBERSHIPS = ("party", "union", "club", "charity", "foundation")
AN_NUMBERS = ("8", "11", "18")


class Pen(Protocol):
    """What an introduction needs of a writer. `numbers`: slots already stated in the report."""

    world: World
    rng: Random
    numbers: set[str]

    def put(self, text: str) -> None:
        """Append text."""

    def name(self, entity: Entity) -> None:
        """Append the name."""

    def number(self, key: str) -> None:
        """Append a number."""


def article(word: str) -> str:
    """`a` or `an`, by the first letter or the first digits of `word`."""
    if word[0].isdigit():
        # 8, 80 to 89, 11 and 18; 1,100 is read "one thousand"
        return "an" if word.startswith("8") or word in AN_NUMBERS else "a"
    return "an" if word[0] in VOWELS and not word.startswith(("uni", "eu")) else "a"


def introduction(writer: Pen, entity: Entity, *, possessive: bool = False) -> None:
    """Write the first mention of `entity`; with `possessive` a short one that can take 's."""
    if possessive:
        _title(writer, entity)
        writer.put("'s")
    elif entity.label == "PER":
        _person(writer, entity)
    elif entity.label == "LOC" and len(entity.name) == 1:
        _place(writer, entity)
    elif entity.label == "ORG":
        _organisation(writer, entity)
    else:
        writer.name(entity)


def _title(writer: Pen, entity: Entity) -> None:
    if entity.label == "PER":
        writer.put(f"{entity.noun} ")
    writer.name(entity)


def _apposition(entity: Entity) -> str:
    return f"the {entity.noun}" if entity.definite else f"{article(entity.noun)} {entity.noun}"


def _tells(writer: Pen, entity: Entity, detail: str) -> bool:
    """Whether to give a number with the name; reports of a cluster mostly agree on whose are news."""
    key = f"{entity.slot}:{detail}"
    return key not in writer.numbers and entity.slot in writer.world.told and writer.rng.random() < 0.85


def _person(writer: Pen, entity: Entity) -> None:
    age, chance = f"{entity.slot}:age", writer.rng.random()
    if _tells(writer, entity, "age"):
        if chance < 0.55:
            writer.name(entity)
            writer.put(", ")
            writer.number(age)
            writer.put(f", {_apposition(entity)},")
        else:
            writer.put("the " if entity.definite else f"{article(writer.world.numbers[age])} ")
            writer.number(age)
            writer.put(f"-year-old {entity.noun}, ")
            writer.name(entity)
            writer.put(",")
    elif chance < 0.4 and entity.noun.count(" ") < 2:
        _title(writer, entity)
    elif chance < 0.65:
        writer.put(f"{_apposition(entity)}, ")
        writer.name(entity)
        writer.put(",")
    else:
        writer.name(entity)
        writer.put(f", {_apposition(entity)},")


def _place(writer: Pen, entity: Entity) -> None:
    if _tells(writer, entity, "people"):
        writer.name(entity)
        writer.put(f", {article(entity.noun)} {entity.noun} of ")
        writer.number(f"{entity.slot}:people")
        writer.put(" people,")
    elif writer.rng.random() < 0.7:
        writer.put(f"the {entity.noun} of ")
        writer.name(entity)
    else:
        writer.name(entity)


def _organisation(writer: Pen, entity: Entity) -> None:
    named = entity.noun.rsplit(" ", 1)[-1] in entity.full_name.lower().split(" ")
    member = entity.noun in MEMBERSHIPS
    detail = "staff" if len(entity.slot) % 2 else "founded"
    if _tells(writer, entity, detail):
        if detail == "founded" and not named:
            writer.name(entity)
            writer.put(f", {article(entity.noun)} {entity.noun} founded in ")
            writer.number(f"{entity.slot}:founded")
            writer.put(",")
            return
        writer.put("" if named else f"the {entity.noun} ")
        writer.name(entity)
        writer.put(f", which {'has' if member else 'employs'} " if detail == "staff" else ", founded in ")
        writer.number(f"{entity.slot}:{detail}")
        writer.put((" members," if member else " people,") if detail == "staff" else ",")
        return
    if not named and writer.rng.random() < 0.55:
        writer.put(f"the {entity.noun} ")
    writer.name(entity)


STOPS = frozenset(".,;:?!")
PRONOUNS = {"he": ("she", "he"), "his": ("her", "his"), "him": ("her", "him")}


@dataclass(slots=True, kw_only=True)
class Sentence:
    """A written sentence: its span, the units and numbers it states, and the entities it names in full."""

    start: int
    end: int = 0
    units: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Marks:
    """What stands where. Offsets are characters of the report."""

    mentions: list[tuple[int, int, str, str]] = field(default_factory=list)  # start, end, kind, chain
    tags: list[tuple[int, int, str]] = field(default_factory=list)  # start, end, label
    stated: list[tuple[int, int, str]] = field(default_factory=list)  # start, end, fact


class Writer:
    """Writes one report of `world`; `rng` makes all choices of wording."""

    def __init__(self, world: World, rng: Random) -> None:
        self.world = world
        self.rng = rng
        self.parts: list[str] = []
        self.length = 0
        self.capital = True
        self.marks = Marks()
        self.sentences: list[Sentence] = []
        self.introduced: set[str] = set()
        self.numbers: set[str] = set()
        self.before: list[str] = []  # persons of the sentence before
        self.now: list[str] = []  # persons of this sentence so far
        self.called: str | None = None  # how the last person was called; avoids a run of equal calls

    @property
    def text(self) -> str:
        """All that has been written."""
        return "".join(self.parts)

    def begin_paragraph(self) -> None:
        """Start a new line."""
        self._raw("\n")
        self.now = []

    def begin(self) -> None:
        """Start a sentence."""
        if self.parts and not self.parts[-1].endswith("\n"):
            self._raw(" ")
        self.before, self.now = self.now, []
        self.capital = True
        self.sentences.append(Sentence(start=self.length))

    def end(self, *, stop: str = ".") -> None:
        """End the sentence with `stop`, or with what it ends with already."""
        if stop:
            self.put(stop)
        self.sentences[-1].end = self.length

    def put(self, text: str) -> None:
        """Append `text`; a stop swallows a comma before it, the first letter of a sentence is raised."""
        if not text:
            return
        if text[0] in STOPS and self.parts and self.parts[-1].endswith(","):
            self.parts[-1] = self.parts[-1][:-1]
            self.length -= 1
        if self.capital:
            if text[0].isalnum():
                text = text[0].upper() + text[1:]
                self.capital = False
            elif len(text) > 1:
                text = text[0] + text[1].upper() + text[2:]
                self.capital = False
        self.parts.append(text)
        self.length += len(text)

    def write(self, template: Template) -> None:
        """Append the template's text."""
        self._nodes(template.nodes)

    def _raw(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)

    def _nodes(self, nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            if isinstance(node, str):
                self.put(node)
                continue
            kind = node[0]
            if kind == "alt":
                self._nodes(node[1][int(self.rng.random() * len(node[1]))])
            elif kind == "ref":
                self._refer(node[1], node[2])
            elif kind == "word":
                self.put(self.world.words[node[1]])
            elif kind == "macro":
                options = self.world.type.macros[node[1]]
                self._nodes(options[int(self.rng.random() * len(options))].nodes)
            elif kind == "event":
                self._marked((draw(self.rng, self.world.type.nouns),), chain="main")
            else:
                self._marked(node[1], chain=node[2])

    def _marked(self, nodes: tuple[Node, ...], *, chain: str) -> None:
        start = self.length
        self._nodes(nodes)
        self.marks.mentions.append((start, self.length, "event", f"event:{chain}"))

    def _refer(self, key: str, form: str) -> None:
        entity = self.world.entities.get(key)
        if entity is None:
            self.number(key)
        elif form == "name":
            self.name(entity)
        elif form == "desc":
            self._describe(entity)
        elif key not in self.introduced:
            introduction(self, entity, possessive=form == "'s")
        elif form in PRONOUNS:
            self._pronoun(entity, form)
        else:
            self._again(entity, form)
        if entity is not None and entity.label == "PER":
            self.now.append(key)

    def number(self, key: str) -> None:
        """Write a number and note it."""
        start = self.length
        self.put(self.world.numbers[key])
        quantity = self.world.type.numbers.get(key)
        year = quantity.year if quantity else key.endswith(":founded")
        self.marks.tags.append((start, self.length, "DATE" if year else "NUM"))
        self.marks.stated.append((start, self.length, key))
        self.numbers.add(key)
        if self.sentences:
            self.sentences[-1].numbers.append(key)

    def name(self, entity: Entity, *, surname_only: bool = False) -> None:
        """Write the name, without its article, and note each invented word of it."""
        words = entity.name[-1:] if surname_only else entity.name
        first = len(entity.name) - len(words)
        if entity.article and not surname_only:
            self.put("the ")
        start = self.length
        for number, (word, invented) in enumerate(words, start=first):
            if number > first:
                self.put(" ")
            at = self.length
            self.put(word)
            if invented:
                self.marks.stated.append((at, self.length, f"{entity.slot}/{number}"))
        self.marks.mentions.append((start, self.length, "entity", entity.slot))
        self.marks.tags.append((start, self.length, entity.label))
        self.introduced.add(entity.slot)
        self.called = "name"
        if self.sentences and not surname_only:
            self.sentences[-1].named.append(entity.slot)

    def _pronoun(self, entity: Entity, form: str) -> None:
        start = self.length
        self.put(PRONOUNS[form][0 if entity.female else 1])
        self.marks.mentions.append((start, self.length, "entity", entity.slot))
        self.called = "pronoun"

    def _describe(self, entity: Entity, *, possessive: bool = False) -> None:
        start = self.length
        self.put(f"the {entity.short_noun}")
        self.introduced.add(entity.slot)
        self.marks.mentions.append((start, self.length, "entity", entity.slot))
        self.called = "noun"
        if possessive:
            self.put("'" if entity.short_noun.endswith("s") else "'s")

    def _again(self, entity: Entity, form: str) -> None:
        """A later mention: pronoun if only this person can be meant, age if it is news, surname or noun."""
        chance = self.rng.random()
        if entity.label != "PER":
            if (chance < 0.08 or entity.echo) and form != "'s":
                self.name(entity)
            else:
                self._describe(entity, possessive=form == "'s")
            return
        alone = set(self.before + self.now) == {entity.slot}
        news = entity.slot in self.world.told and f"{entity.slot}:age" not in self.numbers
        if form == "sub" and alone and self.called != "pronoun" and chance < 0.75:
            self._pronoun(entity, "he")
        elif form != "'s" and chance < 0.2 and news:
            self._by_age(entity)
        elif chance > 0.8:
            self.name(entity, surname_only=True)
            self.put("'s" if form == "'s" else "")
        else:
            self._describe(entity, possessive=form == "'s")

    def _by_age(self, entity: Entity) -> None:
        start = self.length
        self.put("the ")
        self.number(f"{entity.slot}:age")
        self.put("-year-old")
        self.marks.mentions.append((start, self.length, "entity", entity.slot))
        self.called = "noun"
