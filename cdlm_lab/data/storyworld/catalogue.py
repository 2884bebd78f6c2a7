"""All that storyworld can write, read once from the YAML files of `texts/`.

A file for each kind of event (its nouns, plain words, cast, numbers and sentences); `shared.yaml` (what every
kind of event has); `angles.yaml` (ways to report); `names.yaml` (syllables of invented names). Each line of a
block is one wording, in the language of `grammar`. The order of everything is part of the stories.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from cdlm_lab.data.storyworld.grammar import (
    Angle,
    Bridge,
    Comparison,
    EventType,
    Part,
    Quantity,
    Template,
    Unit,
    compile_template,
)
from cdlm_lab.data.storyworld.names import Phonology

TEXTS = Path(__file__).with_name("texts")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where libyaml is installed


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """`vocabulary`: the words of templates and casts, in lower case; no invented name is one of them."""

    events: tuple[EventType, ...]
    angles: tuple[Angle, ...]
    phonologies: tuple[Phonology, ...]
    vocabulary: frozenset[str]


@cache
def catalogue() -> Catalogue:
    """What the files hold; read at the first call."""
    angles = tuple(
        Angle(name=name, likes=row["likes"], words=tuple(row["words"]), leads=_wordings(row.get("leads", "")))
        for name, row in _read("angles").items()
    )
    leads = [template for angle in angles for template in angle.leads]
    shared = _read("shared")
    units = list(_units(shared["units"]))
    bridges = [_bridge(slot, row) for slot, row in shared["bridges"].items()]
    events = []
    for kind in shared["kinds"]:
        row = _read(kind)
        hidden = () if row["disaster"] else shared["disaster_only"]
        row |= {section: shared[section] | row[section] for section in ("words", "cast", "numbers")}
        event = _event_type(
            kind,
            row,
            shared=[unit for unit in units if unit.key not in hidden],
            bridges=[bridge for bridge in bridges if bridge.slot not in hidden],
        )
        events.append(_trimmed(event, leads))
    phonologies = (
        {part: tuple(syllables.split()) for part, syllables in row.items()} for row in _read("names")
    )
    return Catalogue(
        events=tuple(events),
        angles=angles,
        phonologies=tuple(Phonology(**parts) for parts in phonologies),
        vocabulary=frozenset(_vocabulary(events, leads)),
    )


def _read(name: str) -> Any:
    return yaml.load((TEXTS / f"{name}.yaml").read_text(encoding="utf-8"), Loader=_LOADER)


def _event_type(
    name: str, row: Mapping[str, Any], *, shared: Iterable[Unit], bridges: Iterable[Bridge]
) -> EventType:
    macros = {key: _wordings(text) for key, text in row["texts"].items()}
    units = list(_units(row["units"]))
    return EventType(
        name=name,
        nouns=_options(row["nouns"]),
        words={key: _options(text) for key, text in row["words"].items()},
        cast={slot: _part(**part) for slot, part in row["cast"].items()},
        numbers={slot: _quantity(**number) for slot, number in row["numbers"].items()},
        headlines=macros.pop("headlines"),
        leads=macros.pop("leads"),
        macros=macros,
        core=tuple(unit for unit in units if unit.topic == "core"),
        details=(*(unit for unit in units if unit.topic != "core"), *shared),
        bridges=tuple(bridges),
        comparison=_comparison(row["comparison"]),
    )


def _trimmed(event: EventType, leads: Iterable[Template]) -> EventType:
    """Without the cast and the numbers that none of its texts can use, so that "not enough info" claims are
    about numbers which another cluster of the type does state."""
    used = {key for template in (*event.templates(), *leads) for key in template.keys}
    return replace(
        event,
        cast={slot: part for slot, part in event.cast.items() if slot in used},
        numbers={slot: number for slot, number in event.numbers.items() if slot in used},
    )


def _options(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


def _wordings(text: str) -> tuple[Template, ...]:
    return tuple(compile_template(line) for line in text.splitlines())


def _units(rows: Mapping[str, Mapping[str, str]]) -> Iterator[Unit]:
    for key, row in rows.items():
        ((topic, text),) = row.items()
        yield Unit(key=key, topic=topic, templates=_wordings(text))


def _part(*, label: str, nouns: str, name: str = "@", definite: bool = True) -> Part:
    return Part(label=label, nouns=_options(nouns), pattern=_options(name), definite=definite)


def _quantity(*, low: int, high: int, question: str = "", claim: str = "", year: bool = False) -> Quantity:
    before, _, after = claim.partition("#")
    return Quantity(
        low=low,
        high=high,
        question=compile_template(question) if question else None,
        claim=(compile_template(before), compile_template(after)) if claim else None,
        year=year,
    )


def _bridge(slot: str, row: Mapping[str, str]) -> Bridge:
    link, reply = (
        Unit(key=f"{slot}.{half}", topic="bridge", templates=_wordings(row[half]))
        for half in ("link", "reply")
    )
    return Bridge(slot=slot, link=link, reply=reply, question=compile_template(row["question"]))


def _comparison(row: Mapping[str, str]) -> Comparison:
    """PLACE and COUNT in its statements become the slots of either side."""
    first, second = (
        Unit(
            key=f"compare.{side}",
            topic="bridge",
            templates=_wordings(
                row["statements"].replace("PLACE", f"place_{side}").replace("COUNT", f"count_{side}")
            ),
        )
        for side in "ab"
    )
    which, whether = compile_template(row["which"]), compile_template(row["whether"])
    return Comparison(units=(first, second), which=which, whether=whether)


def _vocabulary(events: Iterable[EventType], leads: Iterable[Template]) -> Iterator[str]:
    templates, texts = list(leads), []
    for event in events:
        templates += event.templates()
        texts += [*event.nouns, *(option for options in event.words.values() for option in options)]
        texts += [text for part in event.cast.values() for text in (*part.nouns, *part.pattern)]
    texts += [re.sub(r"\{[^}]*\}|~\w+", " ", template.text) for template in templates]
    for text in texts:
        yield from re.findall(r"[a-z]+", text.lower())
