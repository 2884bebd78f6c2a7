"""From written reports to records: facts, mentions, tags, alignments, questions, candidates and claims.

Questions over two reports, candidate answers and claims of a storyworld cluster.
"""

from __future__ import annotations

import re
from collections import Counter
from random import Random

from cdlm_lab.data.records import (
    CandidateSet,
    Claim,
    Cluster,
    Document,
    EntityTag,
    Fact,
    Mention,
    Question,
    SentenceAlignment,
    SentenceRef,
    Story,
)
from cdlm_lab.data.storyworld.grammar import Bridge, Comparison, Template
from cdlm_lab.data.storyworld.names import draw
from cdlm_lab.data.storyworld.plan import Draft, Plan
from cdlm_lab.data.storyworld.world import World
from cdlm_lab.data.storyworld.writer import Writer

Stated = dict[str, tuple[SentenceRef, ...]]  # number to the sentences that state it

CANDIDATES = 8  # at most, in one set
SETS = 3  # candidate sets of a cluster, at most
CLAIMS = 2  # of each label, at most


def questions(
    identifier: str, world: World, drafts: list[Draft], plan: Plan, *, rng: Random
) -> tuple[Question, ...]:
    """Bridge questions (the answer's report lacks the clue) and a comparison (a choice, or yes or no)."""
    made = [
        _bridge_question(f"{identifier}-q{number}", world, drafts, dealt=dealt, rng=rng)
        for number, dealt in enumerate(plan.bridges)
    ]
    last = f"{identifier}-q{len(made)}"
    made.append(_comparison_question(last, world, drafts, compared=plan.compared, rng=rng))
    return tuple(made)


def _plain(world: World, template: Template, *, rng: Random) -> str:
    writer = Writer(world, rng)
    writer.write(template)
    return writer.text


def _holder(drafts: list[Draft], document: int, unit: str) -> SentenceRef:
    for place, sentence in enumerate(drafts[document].writer.sentences):
        if unit in sentence.units:
            return SentenceRef(document=document, sentence=place)
    raise LookupError(f"report {document} has no sentence for unit {unit!r}; plan and writer disagree")


def _spans(
    world: World, drafts: list[Draft], *, slot: str, at: SentenceRef
) -> tuple[tuple[int, int, int], ...]:
    """Where the name of `slot` stands in a sentence."""
    writer = drafts[at.document].writer
    sentence, name = writer.sentences[at.sentence], world.entities[slot].full_name
    return tuple(
        (at.document, start, end)
        for start, end, _, chain in writer.marks.mentions
        if chain == slot and sentence.start <= start and end <= sentence.end and end - start == len(name)
    )


def _bridge_question(
    identifier: str, world: World, drafts: list[Draft], *, dealt: tuple[Bridge, int, int], rng: Random
) -> Question:
    bridge, first, second = dealt
    clue, reply = _holder(drafts, first, bridge.link.key), _holder(drafts, second, bridge.reply.key)
    return Question(
        id=identifier,
        text=_plain(world, bridge.question, rng=rng),
        answer=world.entities[bridge.slot].full_name,
        type="span",
        hops="bridge",
        answer_spans=_spans(world, drafts, slot=bridge.slot, at=reply),
        supporting=(clue, reply),
    )


def _comparison_question(
    identifier: str, world: World, drafts: list[Draft], *, compared: tuple[Comparison, int, int], rng: Random
) -> Question:
    comparison, *places = compared
    at = tuple(_holder(drafts, place, unit.key) for place, unit in zip(places, comparison.units, strict=True))
    first_is_more = _value(world, "count_a") > _value(world, "count_b")
    if rng.random() < 0.5:
        return Question(
            id=identifier,
            text=_plain(world, comparison.whether, rng=rng),
            answer="yes" if first_is_more else "no",
            type="yes" if first_is_more else "no",
            hops="comparison",
            answer_spans=(),
            supporting=at,
        )
    slot, winner = ("place_a", at[0]) if first_is_more else ("place_b", at[1])
    return Question(
        id=identifier,
        text=_plain(world, comparison.which, rng=rng),
        answer=world.entities[slot].full_name,
        type="span",
        hops="comparison",
        answer_spans=_spans(world, drafts, slot=slot, at=winner),
        supporting=at,
    )


def _value(world: World, slot: str) -> int:
    return int(world.numbers[slot].replace(",", ""))


def stated_numbers(drafts: list[Draft]) -> Stated:
    """For every number, the sentences that state it (headlines apart)."""
    found: dict[str, list[SentenceRef]] = {}
    for document, draft in enumerate(drafts):
        for place, sentence in enumerate(draft.writer.sentences):
            for slot in sentence.numbers if place else ():
                found.setdefault(slot, []).append(SentenceRef(document=document, sentence=place))
    return {slot: tuple(refs) for slot, refs in found.items()}


def candidate_sets(
    identifier: str, world: World, drafts: list[Draft], stated: Stated, *, rng: Random
) -> tuple[CandidateSet, ...]:
    """Questions about numbers with sentences of one report; those that state the number are correct."""
    askable = [slot for slot, quantity in world.type.numbers.items() if quantity.question and slot in stated]
    rng.shuffle(askable)
    made = []
    for number, slot in enumerate(askable[:SETS]):
        report = draw(rng, tuple(sorted({ref.document for ref in stated[slot]})))
        spans = drafts[report].writer.sentences
        right = [place for place in range(1, len(spans)) if slot in spans[place].numbers]
        wrong = [place for place in range(1, len(spans)) if slot not in spans[place].numbers]
        rng.shuffle(wrong)
        places = sorted(right + wrong[: CANDIDATES - len(right)])
        question = world.type.numbers[slot].question
        assert question is not None
        made.append(
            CandidateSet(
                id=f"{identifier}-c{number}",
                question=_plain(world, question, rng=rng),
                candidates=tuple(
                    drafts[report].writer.text[spans[place].start : spans[place].end] for place in places
                ),
                correct=tuple(place in right for place in places),
            )
        )
    return tuple(made)


def claims(identifier: str, world: World, holders: Stated, *, rng: Random) -> tuple[Claim, ...]:
    """Claims with the true number (supported), a wrong one (refuted), and about what no report states."""
    stated, silent = [], []
    for slot, quantity in world.type.numbers.items():
        if quantity.claim:
            (stated if slot in holders else silent).append(slot)
    rng.shuffle(stated)
    rng.shuffle(silent)
    made: list[Claim] = []
    chosen = [(slot, "supported") for slot in stated[:CLAIMS]]
    chosen += [(slot, "refuted") for slot in stated[CLAIMS : 2 * CLAIMS]]
    chosen += [(slot, "not enough info") for slot in silent[:CLAIMS]]
    for number, (slot, label) in enumerate(chosen):
        value = _wrong(world, slot, rng=rng) if label == "refuted" else world.numbers[slot]
        made.append(
            Claim(
                id=f"{identifier}-f{number}",
                text=_claim_text(world, slot, value, rng=rng),
                label=label,
                evidence=holders.get(slot, ()),
            )
        )
    return tuple(made)


def _wrong(world: World, slot: str, *, rng: Random) -> str:
    """A number that no report can state."""
    quantity, known = world.type.numbers[slot], set(world.numbers.values())
    while True:
        value = quantity.low + int(rng.random() * (quantity.high - quantity.low + 1))
        text = str(value) if quantity.year else f"{value:,}"
        if text not in known:
            return text


def _claim_text(world: World, slot: str, value: str, *, rng: Random) -> str:
    claim = world.type.numbers[slot].claim
    assert claim is not None
    writer = Writer(world, rng)
    writer.write(claim[0])
    writer.put(value)
    writer.write(claim[1])
    return writer.text


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
