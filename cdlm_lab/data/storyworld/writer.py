"""Renders templates into the text of a report, and records the spans of mentions, tags and facts.

It chooses how an entity is referred to: at first by name and office, with age, population or staff in varied
order, later by description, surname or pronoun, so that most names occur only once in a report.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random

from cdlm_lab.data.storyworld.grammar import Node, Template
from cdlm_lab.data.storyworld.world import Entity, World, draw

MEMBERSHIPS = ("party", "union", "club", "charity", "foundation")
STOPS = frozenset(".,;:?!")
PRONOUNS = {"he": ("she", "he"), "his": ("her", "his")}


@dataclass(slots=True, kw_only=True)
class Sentence:
    """A written sentence: its span in characters, and the units and numbers (slots) that it states."""

    start: int
    end: int = 0
    units: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)


class Writer:
    """Writes one report of `world`; all choices of wording are drawn from `rng`.

    Attributes:
        mentions: (start, end, kind, chain), where start and end are characters of the report, as below.
        tags: (start, end, label) of named entities, dates and numbers.
        stated: (start, end, fact) of invented words and numbers.
        introduced, numbers: slots of the entities and of the numbers that the report has given so far.
    """

    def __init__(self, world: World, rng: Random) -> None:
        self.world = world
        self.rng = rng
        self.length = 0
        self.sentences: list[Sentence] = []
        self.mentions: list[tuple[int, int, str, str]] = []
        self.tags: list[tuple[int, int, str]] = []
        self.stated: list[tuple[int, int, str]] = []
        self.introduced: set[str] = set()
        self.numbers: set[str] = set()
        self._parts: list[str] = []
        self._capital = True
        self._before: list[str] = []  # persons in the previous sentence
        self._now: list[str] = []  # persons in this sentence so far
        self._pronoun_last = False  # the last entity was a pronoun; avoids several in a row

    @property
    def text(self) -> str:
        """The text written so far."""
        return "".join(self._parts)

    def begin_paragraph(self) -> None:
        """Start a new line."""
        self._append("\n")
        self._now = []

    def begin(self, *units: str) -> None:
        """Start a sentence that states `units`."""
        if self._parts and not self._parts[-1].endswith("\n"):
            self._append(" ")
        self._before, self._now = self._now, []
        self._capital = True
        self.sentences.append(Sentence(start=self.length, units=list(units)))

    def end(self, *, stop: str = ".") -> None:
        """End the sentence with `stop`; "" leaves the end as it is."""
        self.put(stop)
        self.sentences[-1].end = self.length

    def put(self, text: str) -> None:
        """Append `text`; a stop replaces a comma before it; a sentence starts with a capital letter."""
        if not text:
            return
        if text[0] in STOPS and self._parts and self._parts[-1].endswith(","):
            self._parts[-1] = self._parts[-1][:-1]
            self.length -= 1
        if self._capital:
            first = 0 if text[0].isalnum() else 1  # after a quotation mark
            self._capital = len(text) <= first
            text = text[:first] + text[first : first + 1].upper() + text[first + 1 :]
        self._append(text)

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self.length += len(text)

    def write(self, template: Template) -> None:
        """Render a template and append its text."""
        self._nodes(template.nodes)

    def _nodes(self, nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            match node:
                case str():
                    self.put(node)
                case ("alt", options):
                    self._nodes(draw(self.rng, options))
                case ("ref", key, form):
                    self._refer(key, form)
                case ("word", key):
                    self.put(self.world.words[key])
                case ("macro", key):
                    self.write(draw(self.rng, self.world.type.texts[key]))
                case ("event",):
                    start = self.length
                    self.put(draw(self.rng, self.world.type.nouns))
                    self._mention(start, "event:main", kind="event")
                case ("mark", inner, chain):
                    start = self.length
                    self._nodes(inner)
                    self._mention(start, f"event:{chain}", kind="event")

    def _mention(self, start: int, chain: str, *, kind: str = "entity") -> None:
        self.mentions.append((start, self.length, kind, chain))

    def _refer(self, key: str, form: str) -> None:
        entity = self.world.entities.get(key)
        if entity is None:
            self._number(key)
            return
        if form == "name":
            self._name(entity)
        elif key not in self.introduced:
            self._introduce(entity)
        elif form in PRONOUNS:
            self._pronoun(entity, form)
        else:
            self._again(entity, form)
        if entity.label == "PER":
            self._now.append(key)

    def _number(self, key: str) -> None:
        start = self.length
        self.put(self.world.numbers[key])
        quantity = self.world.type.numbers.get(key)
        year = quantity.year if quantity else key.endswith(":founded")
        self.tags.append((start, self.length, "DATE" if year else "NUM"))
        self.stated.append((start, self.length, key))
        self.numbers.add(key)
        if self.sentences:
            self.sentences[-1].numbers.append(key)

    def _name(self, entity: Entity, *, surname_only: bool = False) -> None:
        """Write the name of an entity, and record each invented word, the mention and the tag."""
        words = list(enumerate(entity.name))[-1 if surname_only else 0 :]
        if entity.article and not surname_only:
            self.put("the ")
        start = self.length
        for number, (word, invented) in words:
            if number > words[0][0]:
                self.put(" ")
            at = self.length
            self.put(word)
            if invented:
                self.stated.append((at, self.length, f"{entity.slot}/{number}"))
        self._mention(start, entity.slot)
        self.tags.append((start, self.length, entity.label))
        self.introduced.add(entity.slot)
        self._pronoun_last = False

    def _pronoun(self, entity: Entity, form: str) -> None:
        start = self.length
        self.put(PRONOUNS[form][not entity.female])
        self._mention(start, entity.slot)
        self._pronoun_last = True

    def _describe(self, entity: Entity) -> None:
        start = self.length
        self.put(f"the {entity.short_noun}")
        self._mention(start, entity.slot)
        self.introduced.add(entity.slot)
        self._pronoun_last = False

    def _again(self, entity: Entity, form: str) -> None:
        """Write a later mention: a pronoun if unambiguous, the age if newsworthy, surname or noun."""
        chance = self.rng.random()
        if entity.label != "PER":
            if chance < 0.08 or entity.echo:
                self._name(entity)
            else:
                self._describe(entity)
            return
        alone = set(self._before + self._now) == {entity.slot}
        news = entity.slot in self.world.newsworthy and f"{entity.slot}:age" not in self.numbers
        if form == "sub" and alone and not self._pronoun_last and chance < 0.75:
            self._pronoun(entity, "he")
        elif chance < 0.2 and news:
            start = self.length
            self.put("the ")
            self._number(f"{entity.slot}:age")
            self.put("-year-old")
            self._mention(start, entity.slot)
            self._pronoun_last = False
        elif chance > 0.8:
            self._name(entity, surname_only=True)
        else:
            self._describe(entity)

    def _introduce(self, entity: Entity) -> None:
        """Write the first mention, in whose pattern @ is the name and # a number. Mostly, office or unit
        stand beside the invented word, so that it can be recovered from another report."""
        text, detail = "@", ""
        if entity.label == "PER":
            text, detail = self._person(entity), "age"
        elif entity.label == "LOC" and len(entity.name) == 1:
            text, detail = self._place(entity), "people"
        elif entity.label == "ORG":
            detail = "staff" if len(entity.slot) % 2 else "founded"
            text = self._organisation(entity, detail)
        for piece in re.split("([@#])", text):
            if piece == "@":
                self._name(entity)
            elif piece == "#":
                self._number(f"{entity.slot}:{detail}")
            else:
                self.put(piece)

    def _gives(self, entity: Entity, detail: str) -> bool:
        """Whether to give a number with the name; reports of a cluster mostly agree on whose they give."""
        fresh = f"{entity.slot}:{detail}" not in self.numbers
        return fresh and entity.slot in self.world.newsworthy and self.rng.random() < 0.85

    def _person(self, entity: Entity) -> str:
        noun, chance = entity.noun, self.rng.random()
        office = f"the {noun}" if entity.definite else f"{article(noun)} {noun}"
        if self._gives(entity, "age"):
            before = "the" if entity.definite else article(self.world.numbers[f"{entity.slot}:age"])
            return f"@, #, {office}," if chance < 0.55 else f"{before} #-year-old {noun}, @,"
        if chance < 0.4 and noun.count(" ") < 2:
            return f"{noun} @"
        return f"{office}, @," if chance < 0.65 else f"@, {office},"

    def _place(self, entity: Entity) -> str:
        if self._gives(entity, "people"):
            return f"@, {article(entity.noun)} {entity.noun} of # people,"
        return f"the {entity.noun} of @" if self.rng.random() < 0.7 else "@"

    def _organisation(self, entity: Entity, detail: str) -> str:
        noun = entity.noun
        named = noun.rsplit(" ", 1)[-1] in entity.full_name.lower().split(" ")
        if not self._gives(entity, detail):
            return f"the {noun} @" if not named and self.rng.random() < 0.55 else "@"
        if detail == "staff":
            clause = "which has # members," if noun in MEMBERSHIPS else "which employs # people,"
            return f"@, {clause}" if named else f"the {noun} @, {clause}"
        return "@, founded in #," if named else f"@, {article(noun)} {noun} founded in #,"


def article(word: str) -> str:
    """The indefinite article, `a` or `an`, that fits the first letter or the first digits of `word`."""
    if word[0].isdigit():
        # 8, 80 to 89, 11 and 18; 1,100 is read "one thousand"
        return "an" if word.startswith("8") or word in ("11", "18") else "a"
    return "an" if word[0] in "aeiou" and not word.startswith(("uni", "eu")) else "a"
