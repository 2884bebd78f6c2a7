"""The shape of storyworld's tables: casts, numbers and sentences of an event type.

The little language in which storyworld's sentences are written, and its compiler.

    [a|b|]        one of the alternatives, which may nest and may be empty
    {mayor}       an entity: named and introduced at first, then described, called by surname or by pronoun
    {mayor.sub}   the same as the subject of a sentence (a pronoun is possible); .'s possessive;
                  .he .his .him pronouns; .name the full name; .desc the description ("the mayor")
    {dead}        a number
    {$crowns}     a plain word of the story
    {>what}       a fragment of the event type, chosen anew each time
    <fell~main>   words that name the event `main`
    {ev}          a noun for the main event, marked as its mention
    @             in an introduction: the name

A template without a final stop is a clause: it can be attributed, joined or opened with a connective.
"""

from __future__ import annotations

from dataclasses import dataclass

Node = str | tuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A compiled template. `keys`: all slots it may use; `clause`: it has no final stop."""

    nodes: tuple[Node, ...]
    keys: frozenset[str]
    clause: bool


def compile_template(text: str) -> Template:
    """Parse `text`.

    Raises:
        ValueError: brackets do not match; the message shows where.
    """
    keys: set[str] = set()
    nodes, end = _sequence(text, 0, stops="", keys=keys)
    if end != len(text):
        raise ValueError(f"stray {text[end]!r} at character {end} of template {text!r}; remove it")
    return Template(nodes=nodes, keys=frozenset(keys), clause=not text.endswith((".", "?", "!", '"')))


def compile_all(texts: tuple[str, ...]) -> tuple[Template, ...]:
    """Compile each of `texts`."""
    return tuple(compile_template(text) for text in texts)


def _sequence(text: str, at: int, *, stops: str, keys: set[str]) -> tuple[tuple[Node, ...], int]:
    nodes: list[Node] = []
    literal = ""
    while at < len(text) and text[at] not in stops:
        if text[at] not in "[{<@":
            if text[at] in "]}>":
                break
            literal += text[at]
            at += 1
            continue
        if literal:
            nodes.append(literal)
            literal = ""
        node, at = _node(text, at, keys=keys)
        nodes.append(node)
    if literal:
        nodes.append(literal)
    return tuple(nodes), at


def _node(text: str, at: int, *, keys: set[str]) -> tuple[Node, int]:
    opening = text[at]
    if opening == "@":
        return ("at",), at + 1
    if opening == "{":
        end = _closing(text, at, "}")
        return _slot(text[at + 1 : end], keys=keys), end + 1
    if opening == "<":
        inner, end = _sequence(text, at + 1, stops="~", keys=keys)
        close = _closing(text, end, ">")
        return ("mark", inner, text[end + 1 : close]), close + 1
    options = []
    while True:
        inner, end = _sequence(text, at + 1, stops="|]", keys=keys)
        options.append(inner)
        if end >= len(text):
            raise ValueError(f"'[' is never closed in template {text!r}; add ']'")
        at = end
        if text[end] == "]":
            return ("alt", tuple(options)), end + 1


def _closing(text: str, at: int, mark: str) -> int:
    end = text.find(mark, at)
    if end < 0:
        raise ValueError(f"no {mark!r} after character {at} of template {text!r}; add it")
    return end


def _slot(body: str, *, keys: set[str]) -> Node:
    if body.startswith("$"):
        return ("word", body[1:])
    if body.startswith(">"):
        return ("macro", body[1:])
    if body == "ev":
        return ("event",)
    key, _, form = body.partition(".")
    keys.add(key)
    return ("ref", key, form)


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
