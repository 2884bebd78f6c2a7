"""One reading for all pairs of mentions of two documents: both are written into one sequence, in which every
mention is marked, and each pair of mentions is scored from its states.

    [CLS] <doc-s> a <m> fire </m> <m> broke out </m> </doc-s> <doc-s> the <m> blaze </m> spread </doc-s> [SEP]

The pairs within a document come from a reading of that document alone. ECB+'s test has 1,224 readings in
place of 93,878 pairs of event mentions. This is in no paper; frames, marks and global tokens are those of
the pairs in `examples.py`. The context `sentences` keeps the sentences that hold mentions.

What is too long is cut to windows around all its mentions, as wide as there is room; the two documents share
it as those of a pair do. A document whose mentions do not leave half of its room to the text between them is
read in parts, a few mentions after another, each part with those of every other document: no pair is lost.
As their number grows with the square of the length, texts of one's own are read so only where it may matter:
first each part alone, then of two documents in parts the mentions in promising pairs (`of_promising`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations_with_replacement, product
from typing import ClassVar

import numpy as np

from cdlm_lab.attention.global_tokens import mention_tokens
from cdlm_lab.data.records import CoreferenceMention, TokenSpan
from cdlm_lab.errors import check_least
from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.examples.packing import equal_share
from cdlm_lab.examples.passes import checked_index
from cdlm_lab.examples.tokens import EncodedDocument, SpecialTokens
from cdlm_lab.tasks.coreference.examples import (
    MentionGroup,
    MentionMarks,
    PairSize,
    Passage,
    all_pairs,
    marked,
    mentions_in,
)

_MARKS = 2  # of each mention
_DRAWN, _ORDER, _HIDDEN = range(3)  # independent random streams of one seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Mentions of one document that are read together: all of them, if there is room."""

    document: str
    group: int  # number of the group of its mentions
    mentions: tuple[int, ...]  # indices into `mentions_in(groups)`


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Written:
    """A part with its frame and marks."""

    ids: np.ndarray  # int64 (seq,)
    places: list[list[int]]  # for each mention, where its tokens are
    lost: int  # number of tokens of its text that were cut


@dataclass(frozen=True, kw_only=True, eq=False)
class ReadingExamples:
    """Map-style dataset of readings; each sequence is created when it is read.

    `examples[i]` is a dict of `input_ids` int64 (seq,), `global_attention_mask` int64 (seq,), 1 = global,
    `mention_mask` bool (mentions, seq), True = token of mention i, `pair_mask` bool (mentions, mentions),
    True = this pair is scored, and, with `clusters`, `labels` float32 (mentions, mentions), 1 = corefer, 0 =
    do not, -100 = not scored. The mentions of the first part come first.
    """

    UNIT: ClassVar[str] = "reading"

    groups: Sequence[MentionGroup]
    documents: Mapping[str, EncodedDocument]  # by id
    special: SpecialTokens
    marks: MentionMarks
    context: str  # `documents` or `sentences`
    max_length: int  # of a sequence, special tokens and marks included
    parts: Sequence[Part] = ()
    readings: np.ndarray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))  # indices of parts
    clusters: np.ndarray | None = None  # (mentions,), equal numbers corefer; None = unknown
    hidden: float = 0.0  # probability with which the words of a mention are masked
    seed: int = 0  # of what is hidden
    _whole: dict[int, _Written] = field(default_factory=dict, repr=False)  # of a part, if it fits

    @classmethod
    def over(cls, groups: Sequence[MentionGroup], **form: object) -> ReadingExamples:
        """All readings that score each pair within each group once, group after group. Raises ValueError if a
        mention is too long for half of `max_length`."""
        empty = cls(groups=groups, **form)
        parts = [part for number, group in enumerate(groups) for part in empty._parts(number, group)]
        of_groups: dict[int, list[int]] = {}
        for number, part in enumerate(parts):
            of_groups.setdefault(part.group, []).append(number)
        pairs = (pair for own in of_groups.values() for pair in combinations_with_replacement(own, 2))
        return empty._of_parts(parts, pairs)

    def __len__(self) -> int:
        return len(self.readings)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        written, numbers = self._read(index)
        input_ids = np.concatenate([[self.special.cls], *(one.ids for one in written), [self.special.sep]])
        mention_mask = np.zeros((len(numbers), len(input_ids)), dtype=bool)
        before = 1 + np.cumsum([0, *(len(one.ids) for one in written)])
        rows = iter(mention_mask)
        for one, start in zip(written, before, strict=False):
            for places in one.places:
                next(rows)[np.add(places, start)] = True
        if self.hidden:
            generator = np.random.default_rng([self.seed, _HIDDEN, index])
            masked = mention_mask[generator.random(len(numbers)) < self.hidden].any(axis=0)
            input_ids = np.where(masked, self.special.mask, input_ids)
        others = (self.special.cls, self.marks.start, self.marks.end)
        example = {
            "input_ids": input_ids.astype(np.int64),
            "global_attention_mask": mention_tokens(input_ids, mention_mask, others=others).astype(np.int64),
            "mention_mask": mention_mask,
            "pair_mask": self._pair_mask(index),
        }
        if self.clusters is not None:
            own = self.clusters[numbers]
            labels = np.where(example["pair_mask"], own[:, None] == own, NOT_MASKED)
            example["labels"] = labels.astype(np.float32)
        return example

    @property
    def in_parts(self) -> bool:
        """Whether a document is read in several parts."""
        return len(self.parts) > len({(part.group, part.document) for part in self.parts})

    @property
    def alone(self) -> ReadingExamples:
        """A reading of each part alone, in the order of `parts`."""
        return replace(self, readings=np.repeat(np.arange(len(self.parts)), 2).reshape(-1, 2))

    def of_promising(self, promising: np.ndarray) -> ReadingExamples:
        """The readings that are left where a pair needs one only if it is promising, bool (pairs,): of two
        documents that do not fit one reading only the mentions in promising pairs are read together."""
        parts, readings = list(self.parts), []
        for number, group in enumerate(self.groups):
            own: dict[str, list[int]] = {}
            for place, part in enumerate(self.parts):
                if part.group == number:
                    own.setdefault(part.document, []).append(place)
            of_group = promising[self._first_pairs[number] : self._first_pairs[number + 1]]
            pairs = all_pairs(len(group.mentions))[of_group] + self._starts[number]
            wanted: dict[frozenset[str], set[int]] = {}
            for pair in pairs.tolist():
                documents = frozenset(self.mentions[place].document for place in pair)
                wanted.setdefault(documents, set()).update(pair)
            for two in combinations_with_replacement(own, 2):
                sides = [own[document] for document in dict.fromkeys(two)]
                if any(len(side) > 1 for side in sides):
                    chosen, sides = sorted(wanted.get(frozenset(two), ())), []
                    for document in dict.fromkeys(two):
                        some = [place for place in chosen if self.mentions[place].document == document]
                        new = self._parts_of(document, number, some)
                        sides.append([*range(len(parts), len(parts) + len(new))])
                        parts += new
                readings += combinations_with_replacement(sides[0], 2) if len(sides) == 1 else product(*sides)
        return self._of_parts(parts, readings)

    def _of_parts(self, parts: Sequence[Part], readings: Iterable[tuple[int, int]]) -> ReadingExamples:
        """The readings, each two indices of parts, that hold a pair of mentions."""
        useful = [pair for pair in readings if pair[0] != pair[1] or len(parts[pair[0]].mentions) > 1]
        made = np.array(useful, dtype=np.int64).reshape(-1, 2)
        return replace(self, parts=parts, readings=made, _whole={})

    @cached_property
    def mentions(self) -> tuple[CoreferenceMention, ...]:
        """The mentions of all groups."""
        return mentions_in(self.groups)

    @property
    def pair_count(self) -> int:
        """Number of pairs of mentions in all groups, also where some are in no reading."""
        return sum(len(group.mentions) * (len(group.mentions) - 1) // 2 for group in self.groups)

    def pairs_of(self, index: int) -> np.ndarray:
        """Numbers of a reading's pairs among `pairs_within(groups)`, in the order of its logits; int64."""
        part = self.parts[self.readings[checked_index(index, len(self), "reading"), 0]]
        numbers = self._numbers(index) - self._starts[part.group]
        rows, columns = np.nonzero(self._pair_mask(index))
        first, second = np.sort([numbers[rows], numbers[columns]], axis=0)
        size = len(self.groups[part.group].mentions)
        return self._first_pairs[part.group] + first * size - first * (first + 1) // 2 + second - first - 1

    def size_of(self, index: int) -> PairSize:
        """Length, number of global and of cut tokens of a reading."""
        written, numbers = self._read(index)
        return PairSize(
            length=self.special.framing + sum(len(one.ids) for one in written),
            global_count=1 + _MARKS * len(numbers) + sum(len(set().union(*one.places)) for one in written),
            lost_tokens=sum(one.lost for one in written),
        )

    def length_of(self, index: int) -> int:
        """Number of tokens of a reading."""
        return self.size_of(index).length

    def in_order(self, order: Sequence[int] | np.ndarray) -> ReadingExamples:
        """The readings with the indices in `order`, as a new dataset."""
        return replace(self, readings=self.readings[np.asarray(order, dtype=int)])

    def drawn(self, *, seed: int, epochs: int, batch_size: int, most: int | None = None) -> ReadingExamples:
        """The labelled readings of all epochs, at most `most` in each, in batches of similar lengths, whose
        order and the order of each two documents are drawn. A pure function of the seed; what does not fill a
        batch is left out, another rest in each epoch."""
        check_least(batch_size=batch_size, epochs=epochs)
        lengths, chosen = np.array([self.length_of(number) for number in range(len(self))]), []
        for epoch in range(epochs):
            generator = np.random.default_rng([seed, _DRAWN, epoch])
            order = generator.permutation(len(self))[:most]
            order = order[: len(order) // batch_size * batch_size or len(order)]
            near = np.argsort(lengths[order] * generator.uniform(0.8, 1.2, len(order)), kind="stable")
            batches = [near[first : first + batch_size] for first in range(0, len(order), batch_size)]
            chosen += [order[batches[number]] for number in generator.permutation(len(batches))]
        ordered = self.in_order(np.concatenate(chosen))
        turned = np.random.default_rng([seed, _ORDER]).random(len(ordered)) < 0.5
        readings = np.where(turned[:, None], ordered.readings[:, ::-1], ordered.readings)
        return replace(ordered.labelled(), readings=readings, seed=seed)

    def labelled(self) -> ReadingExamples:
        """The same readings with labels."""
        clusters = np.unique([mention.cluster for mention in self.mentions], return_inverse=True)[1]
        return replace(self, clusters=clusters)

    def without_labels(self) -> ReadingExamples:
        """The same readings without labels, nothing hidden."""
        return replace(self, clusters=None, hidden=0.0)

    # ---- which mentions and pairs a reading has

    @cached_property
    def _starts(self) -> np.ndarray:
        return np.cumsum([0, *(len(group.mentions) for group in self.groups)])

    @cached_property
    def _first_pairs(self) -> np.ndarray:
        sizes = np.diff(self._starts)
        return np.cumsum([0, *(sizes * (sizes - 1) // 2)])

    def _own(self, index: int) -> list[int]:
        """The parts of a reading, one or two."""
        return list(dict.fromkeys(self.readings[checked_index(index, len(self), "reading")].tolist()))

    def _numbers(self, index: int) -> np.ndarray:
        return np.array([number for own in self._own(index) for number in self.parts[own].mentions])

    def _pair_mask(self, index: int) -> np.ndarray:
        sizes = [len(self.parts[own].mentions) for own in self._own(index)]
        mask = np.zeros((sum(sizes), sum(sizes)), dtype=bool)
        if len(sizes) == 1:
            mask[np.triu_indices(sizes[0], 1)] = True
        else:
            mask[: sizes[0], sizes[0] :] = True
        return mask

    # ---- the text of a part

    def _room(self, parts: int) -> int:
        return self.max_length - self.special.framing - self.special.per_document * parts

    def _parts(self, number: int, group: MentionGroup) -> list[Part]:
        """The parts of each document of a group, in order."""
        own: dict[str, list[int]] = {}
        for place, mention in enumerate(group.mentions, start=int(self._starts[number])):
            own.setdefault(mention.document, []).append(place)
        return [part for document, some in own.items() for part in self._parts_of(document, number, some)]

    def _parts_of(self, document: str, group: int, mentions: Sequence[int]) -> list[Part]:
        """The parts of a document with some of its mentions; [] for none."""
        if not mentions:
            return []
        form = {"document": document, "group": group}
        whole, room = Part(**form, mentions=tuple(mentions)), self._room(2) // 2
        if len(self._passage(whole).ids) + _MARKS * len(mentions) <= room:
            return [whole]
        parts: list[Part] = []
        chosen: list[int] = []
        taken = 0
        for place in sorted(mentions, key=lambda one: self.mentions[one].tokens):
            start, end = self.documents[document].subwords(self.mentions[place].tokens)
            needed = end - start + _MARKS
            if needed > room:
                what = f"{self.mentions[place].name} needs {needed} tokens with its marks"
                why = f"max_length {self.max_length} leaves {room} for each document"
                raise ValueError(f"{what}, but {why}; raise it or leave the mention out")
            if chosen and taken + needed > room // 2:
                parts.append(Part(**form, mentions=tuple(sorted(chosen))))
                chosen, taken = [], 0
            chosen.append(place)
            taken += needed
        return [*parts, Part(**form, mentions=tuple(sorted(chosen)))]

    def _passage(self, part: Part) -> Passage:
        """The context of a part, before it is cut."""
        encoded = self.documents[part.document]
        spans = {number: encoded.subwords(self.mentions[number].tokens) for number in part.mentions}
        passage = Passage(ids=encoded.input_ids, spans=spans)
        if self.context == "documents":
            return passage
        sentences = sorted({self.mentions[number].sentence for number in part.mentions})
        return passage.cut([encoded.subwords(encoded.document.sentences[one]) for one in sentences])

    def _read(self, index: int) -> tuple[list[_Written], np.ndarray]:
        """The parts of a reading as they are written, and the indices of their mentions."""
        own = self._own(index)
        for number in own:
            if number not in self._whole:
                self._whole[number] = self._write(number, self.max_length)
        whole = [self._whole[number] for number in own]
        if sum(len(one.ids) for one in whole) <= self.max_length - self.special.framing:
            return whole, self._numbers(index)
        passages = [self._passage(self.parts[number]) for number in own]
        needs = [one.in_mentions for one in passages]
        spare = [len(one.ids) - need for one, need in zip(passages, needs, strict=True)]
        marks = _MARKS * sum(len(self.parts[number].mentions) for number in own)
        widths, _ = equal_share(spare, budget=self._room(len(own)) - marks - sum(needs), per_document=0)
        kept = zip(own, needs, widths, strict=True)
        return [self._write(number, need + more) for number, need, more in kept], self._numbers(index)

    def _write(self, number: int, room: int) -> _Written:
        """A part with its text cut to `room` tokens."""
        passage = self._passage(self.parts[number])
        cut = passage.cut(windows_around(sorted(passage.spans.values()), length=len(passage.ids), room=room))
        ids, places = marked(cut, special=self.special, marks=self.marks)
        own, lost = [places[one] for one in self.parts[number].mentions], len(passage.ids) - len(cut.ids)
        return _Written(ids=ids, places=own, lost=lost)


def windows_around(spans: Sequence[TokenSpan], *, length: int, room: int) -> list[TokenSpan]:
    """The widest windows around spans, as wide on all sides, that hold at most `room` of `length` tokens;
    windows that touch are one.

    >>> windows_around([(10, 12), (14, 15), (40, 41)], length=50, room=14)
    [(8, 17), (38, 43)]
    """

    def windows(width: int) -> list[TokenSpan]:
        joined: list[TokenSpan] = []
        for start, end in spans:
            low, high = max(0, start - width), min(length, end + width)
            if joined and low <= joined[-1][1]:
                low, high = joined[-1][0], max(joined.pop()[1], high)
            joined.append((low, high))
        return joined

    def total(width: int) -> int:
        return sum(high - low for low, high in windows(width))

    return windows(max(0, bisect_right(range(length + 1), room, key=total) - 1))
