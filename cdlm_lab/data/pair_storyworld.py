"""Document pairs from storyworld: reports of one invented event, or of two events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from random import Random
from typing import get_args

from cdlm_lab.data.document_links import Hardness
from cdlm_lab.data.document_pairs import DocumentPair, PairDocument
from cdlm_lab.data.records import Document, Story
from cdlm_lab.data.splits import SPLIT_NAMES, Split
from cdlm_lab.data.storyworld import event_type_of, story

_REMEMBERED = 64  # stories


def read_storyworld_pairs(
    split: str, stories: int, *, seed: int = 0, start: int = 0, unrelated: Hardness = "similar"
) -> Iterator[DocumentPair]:
    """A related and an unrelated pair for each story, one at a time, the same on every machine.

    Related are two reports of the story, in a drawn order. Unrelated are the first of these and a report of
    another of the stories. The sentences of a document are those of its report; the first is the headline.

    A sentence of the first report is `aligned` if it states a number of the event (18 killed, 329 injured)
    that a sentence of the second report states too, in whatever words. That is what `Story.alignments` holds.
    Not counted are headlines, which state no numbers; numbers that belong to a person or a thing rather than
    to the event (an age, the people a firm employs); and what is told without numbers, such as a name or a
    quotation, even if both reports have it. Each related pair has aligned sentences, and they are sure; that
    another sentence has nothing to do with the second report is not.

    A pair is of the cluster of its first report: the story.

    Args:
        split: train, dev or test; splits share no facts.
        stories: how many; at least 2. Pairs lie within them, so that ranges that do not overlap share no
            documents.
        seed: of the stories and of what is drawn.
        start: number of the first story.
        unrelated: "similar", of the same type of event (a ferry that sank, a bridge that fell) unless the
            type occurs once; or "random", of any.

    Raises:
        ValueError: an unknown split or `unrelated`, fewer than 2 stories, `start` below 0.
    """
    if split not in SPLIT_NAMES:
        raise ValueError(f"split is {split!r}; choose one of train, dev, test")
    if stories < 2:
        raise ValueError(f"stories is {stories}; unrelated reports take at least 2")
    if start < 0:
        raise ValueError(f"start is {start}; it must be at least 0")
    if unrelated not in get_args(Hardness):
        raise ValueError(f"unrelated is {unrelated!r}; choose one of {', '.join(get_args(Hardness))}")
    return _pairs(SPLIT_NAMES[split], range(start, start + stories), seed=seed, unrelated=unrelated)


def _pairs(split: Split, numbers: range, *, seed: int, unrelated: Hardness) -> Iterator[DocumentPair]:
    types = {
        number: event_type_of(seed=seed, split=split, index=number) if unrelated == "similar" else ""
        for number in numbers
    }
    members: dict[str, list[int]] = {}
    for number, name in types.items():
        members.setdefault(name, []).append(number)

    @lru_cache(maxsize=_REMEMBERED)
    def told(number: int) -> Story:
        return story(seed=seed, split=split, index=number)

    for number in numbers:
        rng = Random(f"pairs/{seed}/{split}/{number}")
        this = told(number)
        reports = _aligned(this)
        first, second = rng.choice(sorted(reports))
        yield _pair(this, first, this, second, aligned=reports[first, second])
        alike = members[types[number]] if len(members[types[number]]) > 1 else numbers
        place = rng.randrange(len(alike) - 1)  # of the others
        other = told(alike[place + (place >= alike.index(number))])
        yield _pair(this, first, other, rng.randrange(len(other.cluster.documents)), aligned=())


def _aligned(told: Story) -> Mapping[tuple[int, int], tuple[int, ...]]:
    """Two reports of a story, in order -> sentences of the first that state a number of the second."""
    found: dict[tuple[int, int], set[int]] = {}
    for alignment in told.alignments:
        for here, there in ((alignment.source, alignment.target), (alignment.target, alignment.source)):
            found.setdefault((here.document, there.document), set()).add(here.sentence)
    return {reports: tuple(sorted(sentences)) for reports, sentences in found.items()}


def _pair(told: Story, first: int, other: Story, second: int, *, aligned: tuple[int, ...]) -> DocumentPair:
    left, right = told.cluster.documents[first], other.cluster.documents[second]
    return DocumentPair(
        id=f"{left.id}+{right.id}",
        first=_document(left),
        second=_document(right),
        related=told is other,
        aligned=aligned,
        cluster=told.cluster.id,
    )


def _document(report: Document) -> PairDocument:
    sentences = tuple(" ".join(report.text[start:end].split()) for start, end in report.sentences)
    return PairDocument(id=report.id, sentences=sentences)
