"""From written reports to records: facts, mentions, tags, alignments, questions, candidates and claims."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

from cdlm_lab.data.records import (
    Cluster,
    Document,
    EntityTag,
    Fact,
    Mention,
    SentenceAlignment,
    SentenceRef,
    Story,
)
from cdlm_lab.data.storyworld_plan import Draft, Plan
from cdlm_lab.data.storyworld_tasks import candidate_sets, claims, questions, stated_numbers
from cdlm_lab.data.storyworld_world import World

PIECES = re.compile(r"[a-z]+|[0-9][0-9,]*[0-9]|[0-9]")


def story_of(identifier: str, world: World, drafts: list[Draft], plan: Plan, *, rng: Random) -> Story:
    """The records of a cluster of written reports. `rng` draws which questions and claims are made."""
    texts = [draft.writer.text for draft in drafts]
    documents = tuple(
        Document(
            id=f"{identifier}-{number}",
            text=text,
            title=draft.title,
            sentences=tuple((sentence.start, sentence.end) for sentence in draft.writer.sentences),
            facts=facts,
        )
        for number, (draft, text, facts) in enumerate(zip(drafts, texts, _facts(drafts, texts), strict=True))
    )
    stated = stated_numbers(drafts)
    return Story(
        cluster=Cluster(id=identifier, documents=documents),
        mentions=_mentions(drafts),
        alignments=_alignments(drafts),
        tags=_tags(drafts),
        questions=questions(identifier, world, drafts, plan, rng=rng),
        candidate_sets=candidate_sets(identifier, world, drafts, stated, rng=rng),
        claims=claims(identifier, world, stated, rng=rng),
    )


def _facts(drafts: list[Draft], texts: list[str]) -> list[tuple[Fact, ...]]:
    """Invented words and numbers that stand once in their report and, as such, in another one."""
    single: list[list[tuple[int, int, str]]] = []
    reports: Counter[str] = Counter()
    for draft, text in zip(drafts, texts, strict=True):
        counts = Counter(PIECES.findall(text.lower()))
        # a fact is one word or one number: one piece
        alone = [mark for mark in draft.writer.marks.stated if counts[text[mark[0] : mark[1]].lower()] == 1]
        reports.update(fact for _, _, fact in alone)
        single.append(alone)
    return [
        tuple(Fact(start=start, end=end, id=fact) for start, end, fact in alone if reports[fact] > 1)
        for alone in single
    ]


def _mentions(drafts: list[Draft]) -> tuple[Mention, ...]:
    return tuple(
        Mention(document=number, start=start, end=end, kind=kind, chain=chain)
        for number, draft in enumerate(drafts)
        for start, end, kind, chain in sorted(draft.writer.marks.mentions)
    )


def _tags(drafts: list[Draft]) -> tuple[EntityTag, ...]:
    return tuple(
        EntityTag(document=number, start=start, end=end, label=label)
        for number, draft in enumerate(drafts)
        for start, end, label in sorted(draft.writer.marks.tags)
    )


def _alignments(drafts: list[Draft]) -> tuple[SentenceAlignment, ...]:
    """Pairs of sentences of two reports that state the same number of the event."""
    rows = [
        (document, place, {number for number in sentence.numbers if ":" not in number})
        for document, draft in enumerate(drafts)
        for place, sentence in enumerate(draft.writer.sentences)
        if place
    ]
    holders: dict[str, list[tuple[int, int]]] = {}
    for document, place, stated in rows:
        for item in sorted(stated):
            holders.setdefault(item, []).append((document, place))
    pairs = {
        (first, second)
        for places in holders.values()
        for first in places
        for second in places
        if first[0] < second[0]
    }
    return tuple(
        SentenceAlignment(
            source=SentenceRef(document=first[0], sentence=first[1]),
            target=SentenceRef(document=second[0], sentence=second[1]),
        )
        for first, second in sorted(pairs)
    )
