"""Which report says what, in what order and in which wording: from a world to the reports of a cluster.

Every report is an inverted pyramid: a lead of its angle, the core of the event, then details by topic. All
reports of a cluster weigh the details by one common importance and by their own angle, so they overlap most
where they begin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from cdlm_lab.data.storyworld.angles import ANGLES, Angle
from cdlm_lab.data.storyworld.grammar import Bridge, Comparison, Template, Unit
from cdlm_lab.data.storyworld.names import draw
from cdlm_lab.data.storyworld.world import World
from cdlm_lab.data.storyworld.writer import Writer

DOCUMENTS = (3, 3, 3, 4, 4, 4, 5, 5, 6)
OPENERS = ("Meanwhile, ", "Separately, ", "At the same time, ", "In addition, ", "It also emerged that ")
ATTRIBUTED = ("core", "official", "after", "people")  # topics whose clauses a source may vouch for
JOINTS = (", and ", ", while ", "; ", ", and ")
UNIT_WORDS = 16  # of a sentence, about
POOL_SPARE = 3  # details that the longest report leaves to others
LEAST_WORDS = 176
BODY_LIMIT = 545  # words; a last sentence may still follow


@dataclass(slots=True, kw_only=True)
class Draft:
    """One report on its way. `units`: planned, in order; `spare`: more, in case those are too short."""

    angle: Angle
    words: int
    units: list[Unit] = field(default_factory=list)
    spare: list[Unit] = field(default_factory=list)
    writer: Writer
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Bridge questions and the comparison of a cluster, each with the two reports that hold its halves."""

    bridges: tuple[tuple[Bridge, int, int], ...]
    compared: tuple[Comparison, int, int]


def write_reports(
    world: World, rng: Random, *, shared: tuple[Unit, ...], bridges: tuple[Bridge, ...]
) -> tuple[list[Draft], Plan]:
    """Plan and write all reports of a cluster.

    Args:
        world: the facts.
        rng: all choices.
        shared: detail units that fit the event type's groups.
        bridges: two-document questions that fit.

    Returns:
        The written drafts and the plan of the two-document questions.
    """
    drafts = _drafts(world, rng)
    _deal(world, rng, drafts, shared=shared)
    plan = _two_document_units(world, rng, drafts, bridges=bridges)
    order: dict[str, list[Template]] = {}
    headlines = list(world.type.headlines)
    rng.shuffle(headlines)
    for draft, headline in zip(drafts, headlines, strict=False):  # six or more headlines, six reports at most
        _write(draft, rng, headline=headline, order=order)
    return drafts, plan


def _drafts(world: World, rng: Random) -> list[Draft]:
    count = DOCUMENTS[int(rng.random() * len(DOCUMENTS))]
    others = list(ANGLES[1:])
    rng.shuffle(others)
    drafts = []
    for angle in (ANGLES[0], *others[: count - 1]):
        words = angle.low + int(rng.random() ** 1.6 * (angle.high - angle.low))
        drafts.append(Draft(angle=angle, words=words, writer=Writer(world, rng)))
    rng.shuffle(drafts)
    return drafts


def _deal(world: World, rng: Random, drafts: list[Draft], *, shared: tuple[Unit, ...]) -> None:
    """Deal core units (each to two reports at least) and details (the most important to nearly all)."""
    core: list[list[Unit]] = [[] for _ in drafts]
    for unit in world.type.core:
        chosen = [number for number in range(len(drafts)) if rng.random() < 0.85]
        while len(chosen) < 2:
            extra = int(rng.random() * len(drafts))
            if extra not in chosen:
                chosen.append(extra)
        for number in chosen:
            core[number].append(unit)
    wants = [_details_wanted(draft, core=len(units)) for draft, units in zip(drafts, core, strict=True)]
    pool = [*world.type.details, *shared]
    rng.shuffle(pool)
    del pool[max(wants) + POOL_SPARE :]
    details = [(rng.random(), unit) for unit in pool]
    for draft, units, wanted in zip(drafts, core, wants, strict=True):
        rng.shuffle(units)
        scored = [
            (weight + draft.angle.likes.get(unit.topic, 0.0) + 0.25 * rng.random(), place)
            for place, (weight, unit) in enumerate(details)
        ]
        scored.sort(reverse=True)
        picked = [details[place][1] for _, place in scored[:wanted]]
        draft.units = units + _by_topic(picked, rng, draft.angle)
        draft.spare = [details[place][1] for _, place in scored[wanted:]]


def _details_wanted(draft: Draft, *, core: int) -> int:
    return max(3, round((draft.words - UNIT_WORDS * (core + 2)) / UNIT_WORDS))


def _by_topic(units: list[Unit], rng: Random, angle: Angle) -> list[Unit]:
    """Group details by topic, the angle's favourite topics first, voices between them."""
    topics = list(dict.fromkeys(unit.topic for unit in units))
    rank = {topic: angle.likes.get(topic, 0.0) + 0.6 * rng.random() for topic in topics}
    ordered = sorted((unit for unit in units if unit.topic != "voice"), key=lambda unit: -rank[unit.topic])
    for unit in units:
        if unit.topic == "voice":
            ordered.insert(int(rng.random() * (len(ordered) + 1)), unit)
    return ordered


def _two_document_units(
    world: World, rng: Random, drafts: list[Draft], *, bridges: tuple[Bridge, ...]
) -> Plan:
    chosen = list(bridges)
    rng.shuffle(chosen)
    dealt = []
    for bridge in chosen[: 1 + int(rng.random() * 2)]:
        first, second = _two(rng, len(drafts))
        _insert(rng, drafts[first], bridge.link)
        _insert(rng, drafts[second], bridge.reply)
        dealt.append((bridge, first, second))
    compared = world.type.comparison
    first, second = _two(rng, len(drafts))
    _insert(rng, drafts[first], compared.units[0])
    _insert(rng, drafts[second], compared.units[1])
    return Plan(bridges=tuple(dealt), compared=(compared, first, second))


def _two(rng: Random, count: int) -> tuple[int, int]:
    first = int(rng.random() * count)
    return first, (first + 1 + int(rng.random() * (count - 1))) % count


def _insert(rng: Random, draft: Draft, unit: Unit) -> None:
    """Put a unit somewhere after the core."""
    core = sum(planned.topic == "core" for planned in draft.units)
    draft.units.insert(core + int(rng.random() * (len(draft.units) - core + 1)), unit)


def _write(draft: Draft, rng: Random, *, headline: Template, order: dict[str, list[Template]]) -> None:
    writer, world = draft.writer, draft.writer.world
    writer.begin()
    writer.write(headline)
    writer.end(stop="")
    draft.title = writer.text
    writer.introduced.clear()  # the body names again whom the headline named
    writer.begin_paragraph()
    own = world.type.leads
    leads = draft.angle.leads if draft.angle.leads and rng.random() < 0.6 else own
    _sentence(writer, draw(rng, leads), units=("lead",), rng=rng, wrap=False)
    left = 1  # sentences until the next paragraph
    pending = list(draft.units)
    while pending or (draft.spare and writer.length < 6.1 * LEAST_WORDS):
        unit = pending.pop(0) if pending else draft.spare.pop(0)
        if writer.length > 6.1 * BODY_LIMIT and unit.topic != "bridge":
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
            _sentence(writer, template, units=(unit.key,), rng=rng, wrap=unit.topic in ATTRIBUTED)
        else:
            other = pending.pop(0)
            writer.begin()
            writer.sentences[-1].units += [unit.key, other.key]
            writer.write(template)
            writer.put(draw(rng, JOINTS))
            writer.write(partner)
            writer.end()


def _wording(unit: Unit, writer: Writer, rng: Random, *, order: dict[str, list[Template]]) -> Template | None:
    """The next wording in this cluster that repeats no number of this report, if any."""
    turns = order.get(unit.key)
    if turns is None:
        turns = list(unit.templates)
        rng.shuffle(turns)
        order[unit.key] = turns
    for place, template in enumerate(turns):
        if not template.keys & writer.numbers:
            turns.append(turns.pop(place))
            return template
    return None


def _partner(
    unit: Unit, template: Template, pending: list[Unit], writer: Writer, rng: Random
) -> Template | None:
    """A clause of the next unit to join on, sometimes, when both are clauses and of one topic."""
    if not template.clause or not pending or rng.random() > 0.14:
        return None
    other = pending[0]
    if other.topic != unit.topic or other.topic == "bridge":
        return None
    for candidate in other.templates:
        if candidate.clause and not candidate.keys & (writer.numbers | template.keys):
            return candidate
    return None


def _sentence(writer: Writer, template: Template, *, units: tuple[str, ...], rng: Random, wrap: bool) -> None:
    """Write one sentence; a clause may be attributed or opened with a connective."""
    writer.begin()
    writer.sentences[-1].units += units
    chance = rng.random() if wrap and template.clause else 1.0
    source = draw(rng, writer.world.type.words["source"]) if chance < 0.2 else ""
    if chance < 0.05:
        writer.put(f"according to {source}, ")
    elif chance < 0.09:
        writer.put(f"{source} said ")
    elif 0.2 <= chance < 0.27 and units[0] not in {unit.key for unit in writer.world.type.core}:
        writer.put(draw(rng, OPENERS))
    writer.write(template)
    if 0.09 <= chance < 0.15:
        writer.put(f", {source} said")
    elif 0.15 <= chance < 0.2:
        writer.put(f", according to {source}")
    writer.end(stop="." if template.clause else "")
