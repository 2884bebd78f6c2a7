"""How an entity is named the first time: office and name, age, population, staff, in varied order.

The office or the unit mostly stands next to the invented word, so that it can be found in another report.
"""

from __future__ import annotations

from random import Random
from typing import Protocol

from cdlm_lab.data.storyworld_world import Entity, World

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
