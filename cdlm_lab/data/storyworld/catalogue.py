"""The templates, nouns and syllables that storyworld writes with, read once from the YAML files of `texts/`.

There is a file for each type of event (its nouns, plain words, cast, numbers and sentences), `shared.yaml`
(what all types have), `angles.yaml` (ways to report) and `names.yaml` (syllables of invented names). Each
line of a block is one wording, in the template language of `grammar`. Changing any order changes the stories.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from cdlm_lab.data.storyworld.grammar import Angle, Bridge, EventType, Phonology, Template, Unit

TEXTS = Path(__file__).with_name("texts")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where libyaml is installed


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The contents of the YAML files. `vocabulary`: lower-case words of templates and casts, never names."""

    events: tuple[EventType, ...]
    angles: tuple[Angle, ...]
    phonologies: tuple[Phonology, ...]
    vocabulary: frozenset[str]


@cache
def catalogue() -> Catalogue:
    """The contents of the YAML files, which are read at the first call and then cached."""
    angles = tuple(Angle(**row) for row in _read("angles").values())
    leads = [template for angle in angles for template in angle.leads]
    shared = _read("shared")
    units = list(_units(shared["units"]))
    bridges = [_bridge(slot, row) for slot, row in shared["bridges"].items()]
    events = []
    for kind in shared["kinds"]:
        row = _read(kind)
        hidden = () if row.pop("disaster") else shared["disaster_only"]
        row |= {section: shared[section] | row[section] for section in ("words", "cast", "numbers")}
        row["units"] = [*_units(row["units"]), *(unit for unit in units if unit.key not in hidden)]
        row["bridges"] = [bridge for bridge in bridges if bridge.slot not in hidden]
        events.append(_trimmed(EventType(name=kind, **row), leads))
    names = ({part: syllables.split() for part, syllables in row.items()} for row in _read("names"))
    return Catalogue(
        events=tuple(events),
        angles=angles,
        phonologies=tuple(Phonology(**parts) for parts in names),
        vocabulary=frozenset(_vocabulary(events, leads)),
    )


def _read(name: str) -> Any:
    return yaml.load((TEXTS / f"{name}.yaml").read_text(encoding="utf-8"), Loader=_LOADER)


def _units(rows: Mapping[str, Mapping[str, str]]) -> Iterator[Unit]:
    for key, row in rows.items():
        ((topic, text),) = row.items()
        yield Unit(key=key, topic=topic, templates=text)


def _bridge(slot: str, row: Mapping[str, str]) -> Bridge:
    link, reply = (
        Unit(key=f"{slot}.{half}", topic="bridge", templates=row[half]) for half in ("link", "reply")
    )
    return Bridge(slot=slot, link=link, reply=reply, question=row["question"])


def _trimmed(event: EventType, leads: Iterable[Template]) -> EventType:
    """The event type without the cast and the numbers that none of its texts can use, so that claims with
    "not enough info" are about numbers that other clusters of the type do state."""
    used = {key for template in (*event.templates(), *leads) for key in template.keys}
    cast = {slot: part for slot, part in event.cast.items() if slot in used}
    numbers = {slot: number for slot, number in event.numbers.items() if slot in used}
    return event.model_copy(update={"cast": cast, "numbers": numbers})


def _vocabulary(events: Iterable[EventType], leads: Iterable[Template]) -> Iterator[str]:
    templates, texts = list(leads), []
    for event in events:
        templates += event.templates()
        texts += [*event.nouns, *(option for options in event.words.values() for option in options)]
        texts += [text for part in event.cast.values() for text in (*part.nouns, *part.name)]
    texts += [re.sub(r"\{[^}]*\}|~\w+", " ", template.text) for template in templates]
    for text in texts:
        yield from re.findall(r"[a-z]+", text.lower())
