"""Draws the facts of one story (who, where, how many), once for everything that its reports may state.

Names are invented, from the syllables of six phonologies: more than a million words of each kind. A name is
drawn for one story and never again, so that a model cannot know it but has to read it in another report of
the same cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from cdlm_lab.data.storyworld.catalogue import catalogue
from cdlm_lab.data.storyworld.grammar import EventType, Part, Phonology

# Ages by occupation: (words in the noun, youngest, oldest); the last line is for everybody else.
AGES = (
    (("student", "apprentice", "trainee", "courier", "violinist", "striker", "winger", "goalkeeper"), 18, 29),
    (("retired", "former", "pensioner", "widow", "sexton"), 64, 89),
    (("daughter",), 26, 44),
    ((), 31, 66),
)
# Nouns without such a number: a painter is long dead, and "a rival party founded in" is not English.
NUMBERLESS = ("painter", "visiting club", "rival party")
VILLAGE, TOWN, CITY = (213, 4876), (4213, 48760), (51204, 98760)
POPULATIONS = dict.fromkeys(("village", "parish", "hamlet", "island", "suburb"), VILLAGE) | {"city": CITY}
STAFFS, FOUNDED = (112, 9800), (1803, 2016)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
WOMEN = ("prisoner's daughter", "miner's wife", "postwoman", "widow", "seamstress", "chairwoman of the board")
MEN = ("founder's grandson", "former postman", "council chairman", "company spokesman")
Option = TypeVar("Option")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A member of the cast. `name`: (word, whether it is invented) in order; `article`: the name takes "the";
    `echo`: an earlier entity has the same noun, so this one is called by its name."""

    slot: str
    label: str
    noun: str
    definite: bool
    name: tuple[tuple[str, bool], ...]
    article: bool
    female: bool
    echo: bool

    @property
    def full_name(self) -> str:
        """The full name, without an article."""
        return " ".join(word for word, _ in self.name)

    @property
    def short_noun(self) -> str:
        """The noun for later mentions: "town" for "market town"; of persons and bodies the whole noun."""
        return _short(self.noun, self.label)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The facts of one story. `numbers`: slot -> digits; `words`: slot -> plain word, such as the currency;
    `newsworthy`: slots of entities whose age, population, staff or founding year reports tend to give."""

    type: EventType
    entities: dict[str, Entity]
    numbers: dict[str, str]
    words: dict[str, str]
    newsworthy: frozenset[str]


def draw(rng: Random, options: Sequence[Option]) -> Option:
    """Draw an option uniformly; unlike `random.choice`, by an algorithm that no Python version can change."""
    return options[int(rng.random() * len(options))]


def build_world(rng: Random, event_type: EventType) -> World:
    """Draw the facts of a story."""
    words = {key: draw(rng, options) for key, options in event_type.words.items()}
    words["next"] = DAYS[DAYS.index(words["day"]) + 1]
    home, abroad = (draw(rng, catalogue().phonologies) for _ in range(2))
    taken, nouns = set(catalogue().vocabulary), set()
    entities = {}
    for slot, part in event_type.cast.items():
        phonology = abroad if rng.random() < 0.15 else home
        entities[slot] = _entity(rng, slot, part, phonology=phonology, taken=taken, nouns=nouns)
    newsworthy = frozenset(
        slot for slot, entity in entities.items() if rng.random() < 0.55 and entity.noun not in NUMBERLESS
    )
    numbers = _numbers(rng, event_type, entities)
    return World(type=event_type, entities=entities, numbers=numbers, words=words, newsworthy=newsworthy)


def exchanged(world: World, rng: Random, *, among: Collection[str]) -> World:
    """Exchange names and numbers among the slots of `among`. Of several persons of one sex, places, or other
    bodies, each gets the name of another one, and of several numbers of the event that are equally long, each
    gets the value of another. Ages and the like stay, as they belong to the office."""
    alike: dict[tuple[str, bool, int], list[str]] = {}
    for slot, entity in world.entities.items():
        words = sum(invented for _, invented in entity.name)
        place, person = entity.label in ("LOC", "FAC"), entity.label == "PER"
        kind = "place" if place else "person" if person else "body"
        alike.setdefault((kind, person and entity.female, words), []).append(slot)
    for slot, quantity in world.type.numbers.items():
        alike.setdefault(("number", quantity.year, len(world.numbers[slot])), []).append(slot)
    entities, numbers = dict(world.entities), dict(world.numbers)
    for slots in alike.values():
        order = [slot for slot in slots if slot in among]
        order.sort(key=lambda _: rng.random())
        for slot, other in zip(order, order[1:] + order[:1], strict=True):
            if slot in numbers:
                numbers[slot] = world.numbers[other]
            else:
                entities[slot] = _renamed(world.entities[slot], world.entities[other])
    return replace(world, entities=entities, numbers=numbers)


def recurring(world: World, rng: Random) -> World:
    """The facts of another event of the same type, at the same places with the same people: new numbers."""
    return replace(world, numbers=_numbers(rng, world.type, world.entities))


def _renamed(entity: Entity, other: Entity) -> Entity:
    """The entity, with the invented words of its name replaced by those of another's."""
    words = iter([word for word, invented in other.name if invented])
    return replace(entity, name=tuple((next(words) if new else word, new) for word, new in entity.name))


def _short(noun: str, label: str) -> str:
    return noun if label in ("PER", "ORG") else noun.rsplit(" ", 1)[-1]


def _entity(
    rng: Random, slot: str, part: Part, *, phonology: Phonology, taken: set[str], nouns: set[str]
) -> Entity:
    """Draw a member of the cast, and add its words to `taken` and its noun to `nouns`."""
    female = rng.random() < 0.5
    noun = draw(rng, tuple(noun for noun in part.nouns if noun not in nouns) or part.nouns)
    short = _short(noun, part.label)
    echo = short in nouns
    nouns.update((noun, short))
    female = (female or noun in WOMEN) and noun not in MEN
    pattern = draw(rng, part.name)
    endings = [phonology.place if part.label in ("LOC", "FAC") else phonology.surname]
    if part.label == "PER":
        endings.insert(0, phonology.female if female else phonology.male)
    name: list[tuple[str, bool]] = []
    for word in pattern.removeprefix("the ").split(" "):
        if word == "@":
            name += ((name_word(rng, phonology, endings=each, taken=taken), True) for each in endings)
        else:
            name.append((word, False))
    return Entity(
        slot=slot,
        label=part.label,
        noun=noun,
        definite=part.definite,
        name=tuple(name),
        article=pattern.startswith("the "),
        female=female,
        echo=echo,
    )


def name_word(rng: Random, phonology: Phonology, *, endings: tuple[str, ...], taken: set[str]) -> str:
    """Invent a capitalised word that is not in `taken` (lower case), and add it there."""
    while True:
        onset, vowel = draw(rng, phonology.onsets), draw(rng, phonology.vowels)
        middle, ending = draw(rng, phonology.middles), draw(rng, endings)
        word = onset + vowel + middle
        if ending[0] not in "aeiouy":
            word += draw(rng, phonology.vowels)
            if rng.random() < 0.4:
                word += draw(rng, phonology.onsets) + draw(rng, phonology.vowels)
        elif rng.random() < 0.88:  # there are only some ten thousand short words
            word += draw(rng, phonology.vowels) + draw(rng, phonology.onsets)
        word = (word + ending).replace("yy", "y").replace("iii", "ii").replace("ww", "w")
        if 5 <= len(word) <= 12 and word not in taken:
            taken.add(word)
            return word.capitalize()


def _numbers(rng: Random, event_type: EventType, entities: dict[str, Entity]) -> dict[str, str]:
    """Draw the digits of each slot. No two slots share a group of digits, but two people may share an age."""
    taken: set[str] = set()
    numbers = {
        slot: _number(rng, quantity.low, quantity.high, taken=taken, year=quantity.year)
        for slot, quantity in event_type.numbers.items()
    }
    for slot, part in event_type.cast.items():
        if part.label == "PER":
            numbers[f"{slot}:age"] = _age(rng, entities[slot].noun, taken=taken)
        elif part.label == "LOC" and part.name == ("@",):
            population = POPULATIONS.get(entities[slot].short_noun, TOWN)
            numbers[f"{slot}:people"] = _number(rng, *population, taken=taken)
        elif part.label == "ORG":
            numbers[f"{slot}:staff"] = _number(rng, *STAFFS, taken=taken)
            numbers[f"{slot}:founded"] = _number(rng, *FOUNDED, taken=taken, year=True)
    return numbers


def _number(rng: Random, low: int, high: int, *, taken: set[str], year: bool = False) -> str:
    """Draw a number in [low, high] as digits, with thousands separators unless it is a year; its groups of
    digits are not in `taken`, and are added there."""
    for _ in range(1000):
        value = low + int(rng.random() * (high - low + 1))
        text = str(value) if year else f"{value:,}"
        groups = [group for group in text.split(",") if len(group) > 1]
        if value % 10 and not any(group in taken for group in groups) and len(set(groups)) == len(groups):
            taken.update(groups)
            return text
    raise ValueError(f"no number is left between {low} and {high}; widen the range in storyworld/texts")


def _age(rng: Random, noun: str, *, taken: set[str]) -> str:
    """Draw an age that fits the occupation and is not a number of the event."""
    youngest, oldest = next(
        (low, high) for words, low, high in AGES if not words or any(word in noun for word in words)
    )
    while True:
        age = str(youngest + int(rng.random() * (oldest - youngest + 1)))
        if age not in taken:
            return age
