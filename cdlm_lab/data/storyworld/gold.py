"""Makes records of written reports: facts, mentions, tags, alignments, questions, candidates and claims."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations
from random import Random

from cdlm_lab.data import records
from cdlm_lab.data.records import CandidateSet, Claim, Mention, Question, SentenceRef, Story
from cdlm_lab.data.storyworld.grammar import Bridge, Comparison, Template, Unit
from cdlm_lab.data.storyworld.plan import Draft, Plan
from cdlm_lab.data.storyworld.world import World, draw
from cdlm_lab.data.storyworld.writer import Writer

CANDIDATES = 8  # of a candidate set, at most
SETS = 3  # candidate sets of a cluster, at most
CLAIMS = 2  # claims of each label for a cluster, at most
PIECES = re.compile(r"[a-z]+|[0-9][0-9,]*[0-9]|[0-9]")


def story_of(identifier: str, world: World, drafts: list[Draft], plan: Plan, *, rng: Random) -> Story:
    """Make the records of a cluster of written reports. `rng` draws which questions and claims are made."""
    writers = [draft.writer for draft in drafts]
    documents = tuple(
        records.Document(
            id=f"{identifier}-{number}",
            text=draft.writer.text,
            title=draft.title,
            sentences=tuple((sentence.start, sentence.end) for sentence in draft.writer.sentences),
            facts=facts,
        )
        for number, (draft, facts) in enumerate(zip(drafts, _facts(writers), strict=True))
    )
    asker = _Asker(identifier, world, writers, rng)
    return Story(
        cluster=records.Cluster(id=identifier, documents=documents),
        mentions=tuple(
            Mention(document=number, start=start, end=end, kind=kind, chain=chain)
            for number, writer in enumerate(writers)
            for start, end, kind, chain in sorted(writer.mentions)
        ),
        alignments=asker.alignments(),
        tags=tuple(
            records.EntityTag(document=number, start=start, end=end, label=label)
            for number, writer in enumerate(writers)
            for start, end, label in sorted(writer.tags)
        ),
        questions=asker.questions(plan),
        candidate_sets=asker.candidate_sets(),
        claims=asker.claims(),
    )


def _facts(writers: list[Writer]) -> list[tuple[records.Fact, ...]]:
    """The facts of each report: invented words and numbers that occur once in it, and once in another one."""
    single: list[list[tuple[int, int, str]]] = []
    reports: Counter[str] = Counter()
    for writer in writers:
        text = writer.text.lower()
        counts = Counter(PIECES.findall(text))
        # a fact is one word or one number: one piece
        single.append([mark for mark in writer.stated if counts[text[mark[0] : mark[1]]] == 1])
        reports.update(fact for _, _, fact in single[-1])
    return [
        tuple(records.Fact(start=start, end=end, id=fact) for start, end, fact in alone if reports[fact] > 1)
        for alone in single
    ]


class _Asker:
    """Makes the tasks of one story. `holders`: slot of a number -> sentences with it, except headlines."""

    def __init__(self, identifier: str, world: World, writers: list[Writer], rng: Random) -> None:
        self.identifier, self.world, self.writers, self.rng = identifier, world, writers, rng
        self.holders: dict[str, list[SentenceRef]] = {}
        for document, writer in enumerate(writers):
            for place, sentence in enumerate(writer.sentences[1:], start=1):
                for slot in dict.fromkeys(sentence.numbers):
                    ref = SentenceRef(document=document, sentence=place)
                    self.holders.setdefault(slot, []).append(ref)

    def alignments(self) -> tuple[records.SentenceAlignment, ...]:
        """Pairs of sentences from different reports that state the same number of the event."""
        pairs = {
            (first.document, first.sentence, second.document, second.sentence): (first, second)
            for slot, refs in self.holders.items()
            for first, second in combinations(refs, 2)
            if ":" not in slot and first.document < second.document
        }
        ordered = (pairs[key] for key in sorted(pairs))
        return tuple(records.SentenceAlignment(source=first, target=second) for first, second in ordered)

    def questions(self, plan: Plan) -> tuple[Question, ...]:
        """Bridge questions (clue and answer are in two reports) and a comparison (a choice, or yes or no)."""
        made = [self._bridge_question(number, *dealt) for number, dealt in enumerate(plan.bridges)]
        return (*made, self._comparison_question(len(made), *plan.compared))

    def candidate_sets(self) -> tuple[CandidateSet, ...]:
        """Questions about numbers, with sentences of one report: those that state the number are correct."""
        numbers = self.world.type.numbers
        slots = [slot for slot, quantity in numbers.items() if quantity.question and slot in self.holders]
        self.rng.shuffle(slots)
        made = []
        for number, slot in enumerate(slots[:SETS]):
            writer = self.writers[draw(self.rng, sorted({ref.document for ref in self.holders[slot]}))]
            body = writer.sentences[1:]
            right = [place for place, sentence in enumerate(body) if slot in sentence.numbers]
            wrong = [place for place, sentence in enumerate(body) if slot not in sentence.numbers]
            self.rng.shuffle(wrong)
            places = sorted(right + wrong[: CANDIDATES - len(right)])
            made.append(
                CandidateSet(
                    id=f"{self.identifier}-c{number}",
                    question=self._text(numbers[slot].question),
                    candidates=tuple(writer.text[body[place].start : body[place].end] for place in places),
                    correct=tuple(place in right for place in places),
                )
            )
        return tuple(made)

    def claims(self) -> tuple[Claim, ...]:
        """Claims with the true number (supported) or a wrong one (refuted), and on what no report states."""
        slots = [slot for slot, quantity in self.world.type.numbers.items() if quantity.claim]
        stated = [slot for slot in slots if slot in self.holders]
        silent = [slot for slot in slots if slot not in self.holders]
        self.rng.shuffle(stated)
        self.rng.shuffle(silent)
        chosen = [(slot, "supported") for slot in stated[:CLAIMS]]
        chosen += [(slot, "refuted") for slot in stated[CLAIMS : 2 * CLAIMS]]
        chosen += [(slot, "not enough info") for slot in silent[:CLAIMS]]
        made = []
        for number, (slot, label) in enumerate(chosen):
            value = self._wrong(slot) if label == "refuted" else self.world.numbers[slot]
            before, after = self.world.type.numbers[slot].claim
            text = self._text(before, value, after)
            evidence = tuple(self.holders.get(slot, ()))
            made.append(Claim(id=f"{self.identifier}-f{number}", text=text, label=label, evidence=evidence))
        return tuple(made)

    def _text(self, *parts: Template | str) -> str:
        writer = Writer(self.world, self.rng)
        for part in parts:
            if isinstance(part, str):
                writer.put(part)
            else:
                writer.write(part)
        return writer.text

    def _holder(self, document: int, unit: Unit) -> SentenceRef:
        for place, sentence in enumerate(self.writers[document].sentences):
            if unit.key in sentence.units:
                return SentenceRef(document=document, sentence=place)
        raise LookupError(f"report {document} has no sentence for unit {unit.key!r}")

    def _spans(self, slot: str, at: SentenceRef) -> tuple[tuple[int, int, int], ...]:
        """(document, start, end) of each place where the full name of `slot` occurs in a sentence."""
        writer, length = self.writers[at.document], len(self.world.entities[slot].full_name)
        sentence = writer.sentences[at.sentence]
        return tuple(
            (at.document, start, end)
            for start, end, _, chain in writer.mentions
            if chain == slot and sentence.start <= start and end <= sentence.end and end - start == length
        )

    def _bridge_question(self, number: int, bridge: Bridge, first: int, second: int) -> Question:
        clue, reply = self._holder(first, bridge.link), self._holder(second, bridge.reply)
        return Question(
            id=f"{self.identifier}-q{number}",
            text=self._text(bridge.question),
            answer=self.world.entities[bridge.slot].full_name,
            type="span",
            hops="bridge",
            answer_spans=self._spans(bridge.slot, reply),
            supporting=(clue, reply),
        )

    def _comparison_question(self, number: int, comparison: Comparison, first: int, second: int) -> Question:
        supporting = (self._holder(first, comparison.units[0]), self._holder(second, comparison.units[1]))
        first_count, second_count = (
            int(self.world.numbers[slot].replace(",", "")) for slot in ("count_a", "count_b")
        )
        more = 0 if first_count > second_count else 1
        slot = ("place_a", "place_b")[more]
        whether = self.rng.random() < 0.5
        answer = ("yes", "no")[more] if whether else self.world.entities[slot].full_name
        return Question(
            id=f"{self.identifier}-q{number}",
            text=self._text(comparison.whether if whether else comparison.which),
            answer=answer,
            type=answer if whether else "span",
            hops="comparison",
            answer_spans=() if whether else self._spans(slot, supporting[more]),
            supporting=supporting,
        )

    def _wrong(self, slot: str) -> str:
        """Draw a number in the range of `slot` that is not a number of the story."""
        quantity, known = self.world.type.numbers[slot], set(self.world.numbers.values())
        while True:
            value = quantity.low + int(self.rng.random() * (quantity.high - quantity.low + 1))
            text = str(value) if quantity.year else f"{value:,}"
            if text not in known:
                return text
