"""All event types and shared units of storyworld in one place, and the words that their texts use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from cdlm_lab.data.storyworld.angles import ANGLES
from cdlm_lab.data.storyworld.events_fire import EVENTS as FIRE
from cdlm_lab.data.storyworld.events_public import EVENTS as PUBLIC
from cdlm_lab.data.storyworld.events_sea import EVENTS as SEA
from cdlm_lab.data.storyworld.events_trade import EVENTS as TRADE
from cdlm_lab.data.storyworld.events_water import EVENTS as WATER
from cdlm_lab.data.storyworld.grammar import Bridge, EventType, Node, Template, Unit
from cdlm_lab.data.storyworld.shared_cast import BRIDGES
from cdlm_lab.data.storyworld.shared_units import ANY, DISASTER_ONLY

_ALL: tuple[EventType, ...] = (*WATER, *FIRE, *PUBLIC, *SEA, *TRADE)
SHARED: dict[str, tuple[Unit, ...]] = {
    event.name: tuple(unit for unit in ANY if "disaster" in event.groups or unit.key not in DISASTER_ONLY)
    for event in _ALL
}
BRIDGES_OF: dict[str, tuple[Bridge, ...]] = {
    event.name: tuple(item for item in BRIDGES if "disaster" in event.groups or item.key not in DISASTER_ONLY)
    for event in _ALL
}


def _trimmed(event: EventType) -> EventType:
    """The event type without the cast and the numbers that none of its texts can use.

    So that "not enough info" claims are about numbers which another cluster of the type does state.
    """
    units = [*event.core, *event.details, *event.comparison.units, *SHARED[event.name]]
    units += [half for bridge in BRIDGES_OF[event.name] for half in (bridge.link, bridge.reply)]
    templates = [template for unit in units for template in unit.templates]
    templates += [*event.leads, *(template for angle in ANGLES for template in angle.leads)]
    templates += [template for texts in event.macros.values() for template in texts]
    used = frozenset(key for template in templates for key in template.keys)
    return replace(
        event,
        cast={slot: part for slot, part in event.cast.items() if slot in used},
        numbers={slot: number for slot, number in event.numbers.items() if slot in used},
    )


EVENTS: tuple[EventType, ...] = tuple(_trimmed(event) for event in _ALL)


def _templates() -> Iterator[Template]:
    for unit in ANY:
        yield from unit.templates
    for bridge in BRIDGES:
        yield from (*bridge.link.templates, *bridge.reply.templates)
    for angle in ANGLES:
        yield from angle.leads
    for event in EVENTS:
        yield from (*event.headlines, *event.leads)
        for unit in (*event.core, *event.details, *event.comparison.units):
            yield from unit.templates
        for texts in event.macros.values():
            yield from texts


def _literals(nodes: tuple[Node, ...]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, str):
            yield node
        elif node[0] == "alt":
            for option in node[1]:
                yield from _literals(option)
        elif node[0] == "mark":
            yield from _literals(node[1])


def _vocabulary() -> frozenset[str]:
    texts = [text for template in _templates() for text in _literals(template.nodes)]
    for event in EVENTS:
        texts += [*event.nouns, *(text for options in event.words.values() for text in options)]
        texts += [text for part in event.cast.values() for text in (*part.nouns, *part.pattern)]
    return frozenset(word.lower() for text in texts for word in re.findall(r"[A-Za-z]+", text))


VOCABULARY: frozenset[str] = _vocabulary()
