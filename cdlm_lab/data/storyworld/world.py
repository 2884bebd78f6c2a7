"""The facts of one story: who, where, how many. Everything that its reports may state is drawn here, once."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from cdlm_lab.data.storyworld.grammar import EventType, Part
from cdlm_lab.data.storyworld.names import PHONOLOGIES, Phonology, draw, name_word, number_text

# Ages by trade: (words of the noun, youngest, oldest); the last line is for everybody else.
AGES = (
    (("student", "apprentice", "trainee", "courier", "violinist", "striker", "winger", "goalkeeper"), 18, 29),
    (("retired", "former", "pensioner", "widow", "sexton"), 64, 89),
    (("daughter",), 26, 44),
    ((), 31, 66),
)
# A painter is long dead, and "a rival party founded in" is no English.
NUMBERLESS = ("painter", "visiting club", "rival party")
POPULATIONS = {"village": (213, 4876), "town": (4213, 48760), "city": (51204, 98760)}
SMALL, LARGE = ("village", "parish", "hamlet", "island", "suburb"), ("city",)
STAFFS = (112, 9800)
FOUNDED = (1803, 2016)
NEXT_DAY = {
    "Monday": "Tuesday",
    "Tuesday": "Wednesday",
    "Wednesday": "Thursday",
    "Thursday": "Friday",
    "Friday": "Saturday",
}
FEMALE = (
    "prisoner's daughter",
    "miner's wife",
    "postwoman",
    "widow",
    "seamstress",
    "chairwoman of the board",
)
MALE = ("founder's grandson", "former postman", "council chairman", "company spokesman")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A member of the cast. `name`: (word, invented?) in order; `article`: the name takes "the".
    `echo`: another entity has the same noun, so this one is called by name.
    """

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
        """The name without an article."""
        return " ".join(word for word, _ in self.name)

    @property
    def short_noun(self) -> str:
        """The noun by which it is called later: "town" for "market town"; of persons the whole."""
        return self.noun if self.label in ("PER", "ORG") else self.noun.rsplit(" ", 1)[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is true in one story. `numbers`: slot to digits; `words`: plain words such as the currency.
    `told`: entities whose age, population, staff or founding year the reports like to give.
    """

    type: EventType
    entities: dict[str, Entity]
    numbers: dict[str, str]
    words: dict[str, str]
    told: frozenset[str]


def build_world(rng: Random, event_type: EventType, *, vocabulary: frozenset[str]) -> World:
    """Draw the facts of a story; no name is a word of `vocabulary` (what the templates use)."""
    taken: set[str] = set()
    words = {key: draw(rng, options) for key, options in event_type.words.items()}
    words["next"] = NEXT_DAY[words["day"]]
    home, abroad = int(rng.random() * len(PHONOLOGIES)), int(rng.random() * len(PHONOLOGIES))
    entities: dict[str, Entity] = {}
    nouns: set[str] = set()
    for slot, part in event_type.cast.items():
        phonology = PHONOLOGIES[abroad if rng.random() < 0.15 else home]
        entities[slot] = _entity(
            rng, slot, part, phonology=phonology, taken=taken, nouns=nouns, vocabulary=vocabulary
        )
    told = frozenset(
        slot for slot, entity in entities.items() if rng.random() < 0.55 and entity.noun not in NUMBERLESS
    )
    return World(
        type=event_type,
        entities=entities,
        numbers=_numbers(rng, event_type, entities),
        words=words,
        told=told,
    )


def _entity(
    rng: Random,
    slot: str,
    part: Part,
    *,
    phonology: Phonology,
    taken: set[str],
    nouns: set[str],
    vocabulary: frozenset[str],
) -> Entity:
    female = rng.random() < 0.5
    free = tuple(noun for noun in part.nouns if noun not in nouns) or part.nouns
    noun = draw(rng, free)
    short = noun if part.label in ("PER", "ORG") else noun.rsplit(" ", 1)[-1]
    echo = short in nouns
    nouns.update((noun, short))
    female = (female or noun in FEMALE) and noun not in MALE
    pattern = draw(rng, part.pattern)
    article = pattern.startswith("the ")
    name: list[tuple[str, bool]] = []
    for word in pattern.removeprefix("the ").split(" "):
        if word == "@" and part.label == "PER":
            given = phonology.female if female else phonology.male
            name.append((_fresh(rng, phonology, given, taken=taken, vocabulary=vocabulary), True))
            name.append((_fresh(rng, phonology, phonology.surname, taken=taken, vocabulary=vocabulary), True))
        elif word == "@":
            endings = phonology.place if part.label in ("LOC", "FAC") else phonology.surname
            name.append((_fresh(rng, phonology, endings, taken=taken, vocabulary=vocabulary), True))
        else:
            name.append((word, False))
    return Entity(
        slot=slot,
        label=part.label,
        noun=noun,
        definite=part.definite,
        name=tuple(name),
        article=article,
        female=female,
        echo=echo,
    )


def _fresh(
    rng: Random,
    phonology: Phonology,
    endings: tuple[str, ...],
    *,
    taken: set[str],
    vocabulary: frozenset[str],
) -> str:
    while True:
        word = name_word(rng, phonology, endings=endings, taken=taken)
        if word.lower() not in vocabulary:
            return word


def _numbers(rng: Random, event_type: EventType, entities: dict[str, Entity]) -> dict[str, str]:
    """Digits for every slot; no group of digits is used for two slots."""
    taken: set[str] = set()
    numbers: dict[str, str] = {}
    for slot, quantity in event_type.numbers.items():
        numbers[slot] = number_text(
            rng, low=quantity.low, high=quantity.high, taken=taken, grouped=not quantity.year
        )
    for slot, part in event_type.cast.items():
        if part.label == "PER":
            numbers[f"{slot}:age"] = _age(rng, entities[slot].noun, taken=taken)
        elif part.label == "LOC" and part.pattern == ("@",):
            noun = entities[slot].short_noun
            low, high = POPULATIONS["village" if noun in SMALL else "city" if noun in LARGE else "town"]
            numbers[f"{slot}:people"] = number_text(rng, low=low, high=high, taken=taken)
        elif part.label == "ORG":
            numbers[f"{slot}:staff"] = number_text(rng, low=STAFFS[0], high=STAFFS[1], taken=taken)
            numbers[f"{slot}:founded"] = number_text(
                rng, low=FOUNDED[0], high=FOUNDED[1], taken=taken, grouped=False
            )
    return numbers


def _age(rng: Random, noun: str, *, taken: set[str]) -> str:
    """An age that fits the trade and is no number of the event; two people may be of one age."""
    youngest, oldest = next(
        (low, high) for words, low, high in AGES if not words or any(word in noun for word in words)
    )
    while True:
        age = str(youngest + int(rng.random() * (oldest - youngest + 1)))
        if age not in taken:
            return age
