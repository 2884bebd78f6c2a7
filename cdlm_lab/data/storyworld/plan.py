"""Plans and writes the reports of a cluster: which report says what, in which order and which wording.

Every report is an inverted pyramid: a lead of its angle, the core of the event, then details by topic. The
reports of a cluster rank the details by a common importance and by their own angle, so they overlap most at
the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from cdlm_lab.data.storyworld.catalogue import catalogue
from cdlm_lab.data.storyworld.grammar import Angle, Bridge, Comparison, Template, Unit
from cdlm_lab.data.storyworld.world import World, draw
from cdlm_lab.data.storyworld.writer import Writer

DOCUMENTS = (3, 3, 3, 4, 4, 4, 5, 5, 6)
OPENERS = ("Meanwhile, ", "Separately, ", "At the same time, ", "In addition, ", "It also emerged that ")
ATTRIBUTED = ("core", "official", "after", "people")  # topics whose clauses may be attributed to a source
JOINTS = (", and ", ", while ", "; ", ", and ")
UNIT_WORDS = 16  # approximate words of a sentence
POOL_SPARE = 3  # details of the cluster that even the longest report leaves out
LEAST, MOST = 6.1 * 176, 6.1 * 545  # characters of a report; a last sentence may still follow


@dataclass(slots=True, kw_only=True)
class Draft:
    """A report in the making. `units`: those planned, in order; `spare`: more, if the report is too short."""

    angle: Angle
    words: int
    writer: Writer
    units: list[Unit] = field(default_factory=list)
    spare: list[Unit] = field(default_factory=list)
    title: str = ""


class Plan(NamedTuple):
    """Bridge questions and the comparison of a cluster, each with the two reports that hold its halves."""

    bridges: list[tuple[Bridge, int, int]]
    compared: tuple[Comparison, int, int]


def write_reports(world: World, rng: Random) -> tuple[list[Draft], Plan]:
    """Plan and write all reports of a cluster; all random choices are drawn from `rng`."""
    drafts = _drafts(world, rng)
    _deal(world, rng, drafts)
    bridges, compared = list(world.type.bridges), world.type.comparison
    rng.shuffle(bridges)
    some = bridges[: 1 + int(rng.random() * 2)]
    dealt = [(bridge, *_insert(rng, drafts, (bridge.link, bridge.reply))) for bridge in some]
    plan = Plan(dealt, (compared, *_insert(rng, drafts, compared.units)))
    order: dict[str, list[Template]] = {}
    headlines = list(world.type.texts["headlines"])
    rng.shuffle(headlines)
    for draft, headline in zip(drafts, headlines, strict=False):  # six or more headlines, six reports at most
        _write(draft, rng, headline=headline, order=order)
    return drafts, plan


def _drafts(world: World, rng: Random) -> list[Draft]:
    count = draw(rng, DOCUMENTS)
    first, *others = catalogue().angles
    rng.shuffle(others)
    drafts = []
    for angle in (first, *others[: count - 1]):
        low, high = angle.words
        words = low + int(rng.random() ** 1.6 * (high - low))
        drafts.append(Draft(angle=angle, words=words, writer=Writer(world, rng)))
    rng.shuffle(drafts)
    return drafts


def _deal(world: World, rng: Random, drafts: list[Draft]) -> None:
    """Distribute core units, each to at least two reports, and details, the most important to nearly all."""
    for unit in world.type.core:
        chosen = [draft for draft in drafts if rng.random() < 0.85]
        while len(chosen) < 2:
            extra = draw(rng, drafts)
            if all(extra is not draft for draft in chosen):
                chosen.append(extra)
        for draft in chosen:
            draft.units.append(unit)
    # All sentences of a report but the lead, the core and one more are details.
    wants = [max(3, round(draft.words / UNIT_WORDS - len(draft.units) - 2)) for draft in drafts]
    pool = [unit for unit in world.type.units if unit.topic != "core"]
    rng.shuffle(pool)
    details = [(rng.random(), unit) for unit in pool[: max(wants) + POOL_SPARE]]
    for draft, wanted in zip(drafts, wants, strict=True):
        rng.shuffle(draft.units)
        likes = draft.angle.likes
        scored = [
            (weight + likes.get(unit.topic, 0.0) + 0.25 * rng.random(), place)
            for place, (weight, unit) in enumerate(details)
        ]
        ranked = [details[place][1] for _, place in sorted(scored, reverse=True)]
        draft.units += _by_topic(ranked[:wanted], rng, likes)
        draft.spare = ranked[wanted:]


def _by_topic(units: list[Unit], rng: Random, likes: dict[str, float]) -> list[Unit]:
    """Group details by topic, the topics that the angle likes first; units of "voice" go anywhere."""
    topics = dict.fromkeys(unit.topic for unit in units)
    rank = {topic: likes.get(topic, 0.0) + 0.6 * rng.random() for topic in topics}
    ordered = sorted((unit for unit in units if unit.topic != "voice"), key=lambda unit: -rank[unit.topic])
    for unit in units:
        if unit.topic == "voice":
            ordered.insert(int(rng.random() * (len(ordered) + 1)), unit)
    return ordered


def _insert(rng: Random, drafts: list[Draft], halves: tuple[Unit, Unit]) -> tuple[int, int]:
    """Insert each half at a random place after the core of a report; return the two reports' indices."""
    count = len(drafts)
    first = int(rng.random() * count)
    second = (first + 1 + int(rng.random() * (count - 1))) % count
    for place, unit in zip((first, second), halves, strict=True):
        units = drafts[place].units
        core = sum(planned.topic == "core" for planned in units)
        units.insert(core + int(rng.random() * (len(units) - core + 1)), unit)
    return first, second


def _write(draft: Draft, rng: Random, *, headline: Template, order: dict[str, list[Template]]) -> None:
    writer, own = draft.writer, draft.writer.world.type.texts["leads"]
    writer.begin()
    writer.write(headline)
    writer.end(stop="")
    draft.title = writer.text
    writer.introduced.clear()  # the body introduces again whom the headline named
    writer.begin_paragraph()
    leads = draft.angle.leads if draft.angle.leads and rng.random() < 0.6 else own
    _sentence(writer, draw(rng, leads), "lead", rng=rng, wrap=False)
    left = 1  # sentences until the next paragraph
    pending = list(draft.units)
    while pending or (draft.spare and writer.length < LEAST):
        unit = pending.pop(0) if pending else draft.spare.pop(0)
        if writer.length > MOST and unit.topic != "bridge":
            continue
        template = _wording(unit, writer, rng, order=order)
        if template is None:
            continue
        left -= 1
        if left < 0:
            writer.begin_paragraph()
            left = int(rng.random() * 3)
        partner = _partner(unit, template, pending, writer, rng)
        if partner is None:
            _sentence(writer, template, unit.key, rng=rng, wrap=unit.topic in ATTRIBUTED)
        else:
            writer.begin(unit.key, pending.pop(0).key)
            writer.write(template)
            writer.put(draw(rng, JOINTS))
            writer.write(partner)
            writer.end()


def _wording(unit: Unit, writer: Writer, rng: Random, *, order: dict[str, list[Template]]) -> Template | None:
    """The next wording of the unit in this cluster that repeats no number of this report; None if none."""
    if unit.key not in order:
        order[unit.key] = list(unit.templates)
        rng.shuffle(order[unit.key])
    turns = order[unit.key]
    for template in turns:
        if not template.keys & writer.numbers:
            turns.remove(template)
            turns.append(template)
            return template
    return None


def _partner(
    unit: Unit, template: Template, pending: list[Unit], writer: Writer, rng: Random
) -> Template | None:
    """Sometimes a clause of the next unit, to be joined on if both are clauses of one topic; else None."""
    if not template.clause or not pending or rng.random() > 0.14:
        return None
    other, stated = pending[0], writer.numbers | template.keys
    if other.topic != unit.topic or other.topic == "bridge":
        return None
    return next((each for each in other.templates if each.clause and not each.keys & stated), None)


def _sentence(writer: Writer, template: Template, unit: str, *, rng: Random, wrap: bool) -> None:
    """Write a sentence; with `wrap`, a clause may be attributed to a source or opened with a connective."""
    writer.begin(unit)
    kind = writer.world.type
    chance = rng.random() if wrap and template.clause else 1.0
    source = draw(rng, kind.words["source"]) if chance < 0.2 else ""
    if chance < 0.05:
        writer.put(f"according to {source}, ")
    elif chance < 0.09:
        writer.put(f"{source} said ")
    elif 0.2 <= chance < 0.27 and all(unit != core.key for core in kind.core):
        writer.put(draw(rng, OPENERS))
    writer.write(template)
    if 0.09 <= chance < 0.15:
        writer.put(f", {source} said")
    elif 0.15 <= chance < 0.2:
        writer.put(f", according to {source}")
    writer.end(stop="." if template.clause else "")
