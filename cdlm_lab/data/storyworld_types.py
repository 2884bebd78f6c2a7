"""The shape of storyworld's tables: casts, numbers and sentences of an event type."""

from __future__ import annotations

from dataclasses import dataclass

from cdlm_lab.data.storyworld_grammar import Template, compile_all, compile_template


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part in the cast. `label`: entity tag; `nouns`: what it can be, one is drawn ("baker|nurse");
    `pattern`: its name, with @ for an invented word; `definite`: there is only one ("the mayor").
    """

    label: str
    nouns: tuple[str, ...]
    pattern: tuple[str, ...] = ("@",)
    definite: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number of the story: its range, and a question and a claim about it (# = the number; "" = none)."""

    low: int
    high: int
    question: Template | None = None
    claim: tuple[Template, Template] | None = None
    year: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One thing to report, in several wordings. `topic` decides which angles like it."""

    key: str
    topic: str
    templates: tuple[Template, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridge:
    """A question over two documents: `link` stands in one, `answer` in the other, both about `entity`."""

    key: str
    link: Unit
    reply: Unit
    question: Template
    slot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two statements of the same kind in two documents; slots place_a/count_a and place_b/count_b."""

    units: tuple[Unit, Unit]
    which: Template
    whether: Template


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """All that is written about one kind of event."""

    name: str
    groups: tuple[str, ...]
    nouns: tuple[str, ...]
    words: dict[str, tuple[str, ...]]
    cast: dict[str, Part]
    numbers: dict[str, Quantity]
    macros: dict[str, tuple[Template, ...]]
    headlines: tuple[Template, ...]
    leads: tuple[Template, ...]
    core: tuple[Unit, ...]
    details: tuple[Unit, ...]
    comparison: Comparison


def person(nouns: str, *, definite: bool = True) -> Part:
    """A person by trade or office; `nouns` separated by "|"."""
    return Part(label="PER", nouns=tuple(nouns.split("|")), definite=definite)


def place(nouns: str, pattern: str = "@") -> Part:
    """A place; `pattern` alternatives separated by "|", e.g. "the River @"."""
    return Part(label="LOC", nouns=tuple(nouns.split("|")), pattern=tuple(pattern.split("|")))


def building(nouns: str, pattern: str) -> Part:
    """A building, bridge, ship or other facility."""
    return Part(label="FAC", nouns=tuple(nouns.split("|")), pattern=tuple(pattern.split("|")))


def body(nouns: str, pattern: str) -> Part:
    """An organisation."""
    return Part(label="ORG", nouns=tuple(nouns.split("|")), pattern=tuple(pattern.split("|")))


def work(nouns: str, pattern: str) -> Part:
    """A work of art or a product."""
    return Part(label="MISC", nouns=tuple(nouns.split("|")), pattern=tuple(pattern.split("|")))


def quantity(low: int, high: int, question: str = "", claim: str = "", *, year: bool = False) -> Quantity:
    """A number between `low` and `high`; `claim` has # where the number stands."""
    before, _, after = claim.partition("#")
    return Quantity(
        low=low,
        high=high,
        question=compile_template(question) if question else None,
        claim=(compile_template(before), compile_template(after)) if claim else None,
        year=year,
    )


def unit(key: str, topic: str, *texts: str) -> Unit:
    """A unit from the texts of its templates."""
    return Unit(key=key, topic=topic, templates=compile_all(texts))


def bridge(key: str, slot: str, *, link: tuple[str, ...], reply: tuple[str, ...], question: str) -> Bridge:
    """A two-document question whose answer is the value of `slot`."""
    return Bridge(
        key=key,
        link=unit(f"{key}.link", "bridge", *link),
        reply=unit(f"{key}.reply", "bridge", *reply),
        question=compile_template(question),
        slot=slot,
    )


def comparison(*texts: str, which: str, whether: str) -> Comparison:
    """`texts` use PLACE and COUNT, which become the slots of either side."""
    sides = []
    for side in "ab":
        filled = (text.replace("PLACE", f"place_{side}").replace("COUNT", f"count_{side}") for text in texts)
        sides.append(unit(f"compare.{side}", "bridge", *filled))
    return Comparison(
        units=(sides[0], sides[1]), which=compile_template(which), whether=compile_template(whether)
    )
