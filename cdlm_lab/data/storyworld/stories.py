"""The embedded corpus: clusters of related news reports of invented events, with gold for every task.

A story is a pure function of (seed, split, index) and of `GENERATOR_VERSION`. Its facts (invented names and
numbers) are drawn from spaces so large that a masked one can be recovered from another report of its cluster
and from nothing else; `Document.facts` marks exactly those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import count
from random import Random

from cdlm_lab.data.records import Document, Story
from cdlm_lab.data.splits import SPLITS, Split
from cdlm_lab.data.storyworld.catalogue import catalogue
from cdlm_lab.data.storyworld.gold import story_of
from cdlm_lab.data.storyworld.grammar import EventType
from cdlm_lab.data.storyworld.plan import write_reports
from cdlm_lab.data.storyworld.world import build_world, draw, exchanged, recurring
from cdlm_lab.errors import check_choice

GENERATOR_VERSION = "1"  # part of every story's seed; raise it when any text changes


def story(*, seed: int, split: Split, index: int) -> Story:
    """Make story number `index` (from 0), which is the same on every machine; splits share no facts. Raises
    ValueError if `split` is unknown or `index` negative."""
    rng, event_type = _begun(seed=seed, split=split, index=index)
    world = build_world(rng, event_type)
    drafts, plan = write_reports(world, rng)
    return story_of(f"storyworld-{seed}-{split}-{index}", world, drafts, plan, rng=rng)


def contradicting_story(*, seed: int, split: Split, index: int, reports: tuple[int, int]) -> Story:
    """Make a false version of a story, in which the names and the numbers that both of two `reports` state
    are exchanged with each other. It is written like the true one, with the same random numbers."""
    rng, event_type = _begun(seed=seed, split=split, index=index)
    world, before = build_world(rng, event_type), rng.getstate()
    writers = [draft.writer for draft in write_reports(world, rng)[0]]
    first, second = ({what.partition("/")[0] for *_, what in writers[one].stated} for one in reports)
    rng.setstate(before)
    name = f"storyworld-{seed}-{split}-{index}-contradicting"
    drafts, plan = write_reports(exchanged(world, Random(name), among=first & second), rng)
    return story_of(name, world, drafts, plan, rng=rng)


def recurring_story(*, seed: int, split: Split, index: int) -> Story:
    """Make a story of another event of the same type, with the names of story number `index` but other
    numbers. It is written like that story, with the same random numbers."""
    rng, event_type = _begun(seed=seed, split=split, index=index)
    name = f"storyworld-{seed}-{split}-{index}-recurring"
    world = recurring(build_world(rng, event_type), Random(name))
    drafts, plan = write_reports(world, rng)
    return story_of(name, world, drafts, plan, rng=rng)


def digest(*, seed: int, split: Split, index: int) -> Document:
    """Join all sentences of a story's reports, except headlines, into one text. It has paragraphs for the
    core of the event with the leads, for each topic of its details, and for each statement that a question
    over two reports turns on. Within a paragraph, sentences are in the order of the reports."""
    rng, event_type = _begun(seed=seed, split=split, index=index)
    topics = {unit.key: unit.topic for unit in event_type.units} | {"lead": "core"}
    paragraphs: dict[str, list[str]] = {}
    for writer in (draft.writer for draft in write_reports(build_world(rng, event_type), rng)[0]):
        for sentence in writer.sentences[1:]:
            unit = sentence.units[0]
            paragraphs.setdefault(topics.get(unit, unit), []).append(
                writer.text[sentence.start : sentence.end]
            )
    text, spans = "", []
    for paragraph in paragraphs.values():
        for sentence in paragraph:
            spans.append((len(text), len(text) + len(sentence)))
            text += f"{sentence} "
        text = f"{text[:-1]}\n"
    name = f"storyworld-{seed}-{split}-{index}-digest"
    return Document(id=name, text=text.rstrip("\n"), sentences=tuple(spans))


def event_type_of(*, seed: int, split: Split, index: int) -> str:
    """The name of the type of event that a story is about, found without writing the story."""
    return _begun(seed=seed, split=split, index=index)[1].name


def _begun(*, seed: int, split: Split, index: int) -> tuple[Random, EventType]:
    """The story's own random generator, and the type of event, which is drawn first."""
    check_choice("split", split, SPLITS)
    if index < 0:
        raise ValueError(f"index is {index}; stories are numbered from 0")
    digest = hashlib.sha256(f"{GENERATOR_VERSION}/{seed}/{split}/{index}".encode()).digest()
    rng = Random(int.from_bytes(digest, "big"))
    return rng, draw(rng, catalogue().events)


def stories(
    *, seed: int = 0, split: Split = "train", start: int = 0, stop: int | None = None
) -> Iterator[Story]:
    """Yield the stories from `start` up to, not including, `stop` (without end if None)."""
    for index in count(start) if stop is None else range(start, stop):
        yield story(seed=seed, split=split, index=index)
