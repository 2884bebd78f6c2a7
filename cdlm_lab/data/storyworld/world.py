"""The facts of one story: who, where, how many. Everything that its reports may state is drawn here, once."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from cdlm_lab.data.storyworld.catalogue import catalogue
from cdlm_lab.data.storyworld.grammar import EventType, Part, Phonology
from cdlm_lab.data.storyworld.names import draw, name_word, number_text

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
SMALL = ("village", "parish", "hamlet", "island", "suburb")
STAFFS, FOUNDED = (112, 9800), (1803, 2016)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
WOMEN = ("prisoner's daughter", "miner's wife", "postwoman", "widow", "seamstress", "chairwoman of the board")
MEN = ("founder's grandson", "former postman", "council chairman", "company spokesman")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A member of the cast. `name`: (word, invented?) in order; `article`: the name takes "the".
    `echo`: another entity has the same noun, so this one is called by name."""

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
        """The noun by which it is called later: "town" for "market town"; of persons and bodies the whole."""
        return _short(self.noun, self.label)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is true in one story. `numbers`: slot to digits; `words`: plain words such as the currency;
    `newsworthy`: entities whose age, population, staff or founding year the reports like to give."""

    type: EventType
    entities: dict[str, Entity]
    numbers: dict[str, str]
    words: dict[str, str]
    newsworthy: frozenset[str]


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
    newsworthy = (
        slot for slot, entity in entities.items() if rng.random() < 0.55 and entity.noun not in NUMBERLESS
    )
    return World(
        type=event_type,
        entities=entities,
        words=words,
        newsworthy=frozenset(newsworthy),
        numbers=_numbers(rng, event_type, entities),
    )


def _short(noun: str, label: str) -> str:
    return noun if label in ("PER", "ORG") else noun.rsplit(" ", 1)[-1]


def _entity(
    rng: Random, slot: str, part: Part, *, phonology: Phonology, taken: set[str], nouns: set[str]
) -> Entity:
    """A member of the cast; adds its words to `taken` and its noun to `nouns`."""
    female = rng.random() < 0.5
    noun = draw(rng, tuple(noun for noun in part.nouns if noun not in nouns) or part.nouns)
    short = _short(noun, part.label)
    echo = short in nouns
    nouns.update((noun, short))
    female = (female or noun in WOMEN) and noun not in MEN
    pattern = draw(rng, part.name)
    if part.label == "PER":
        endings = [phonology.female if female else phonology.male, phonology.surname]
    else:
        endings = [phonology.place if part.label in ("LOC", "FAC") else phonology.surname]
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


def _numbers(rng: Random, event_type: EventType, entities: dict[str, Entity]) -> dict[str, str]:
    """Digits for every slot; no group of digits is used for two slots."""
    taken: set[str] = set()
    numbers: dict[str, str] = {}

    def put(key: str, low: int, high: int, *, year: bool = False) -> None:
        numbers[key] = number_text(rng, low=low, high=high, taken=taken, grouped=not year)

    for slot, quantity in event_type.numbers.items():
        put(slot, quantity.low, quantity.high, year=quantity.year)
    for slot, part in event_type.cast.items():
        if part.label == "PER":
            numbers[f"{slot}:age"] = _age(rng, entities[slot].noun, taken=taken)
        elif part.label == "LOC" and part.name == ("@",):
            noun = entities[slot].short_noun
            put(
                f"{slot}:people",
                *POPULATIONS["village" if noun in SMALL else "city" if noun == "city" else "town"],
            )
        elif part.label == "ORG":
            put(f"{slot}:staff", *STAFFS)
            put(f"{slot}:founded", *FOUNDED, year=True)
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
