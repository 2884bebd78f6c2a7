"""Coreference data from storyworld: gold mentions of invented events and entities, without any file.

A story is a sub-topic; several stories make a topic, so that reports of different events have to be told
apart, as in ECB+. Names are invented anew for each story, but the nouns that stand for them ("the city", "the
bridge") recur.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

from cdlm_lab.data.coreference_records import CoreferenceDocument, CoreferenceMention, Topic
from cdlm_lab.data.records import Span, Story
from cdlm_lab.data.splits import SPLIT_NAMES, Split
from cdlm_lab.data.storyworld import stories

_TOKEN = re.compile(r"\d+(?:[.,]\d+)+|\w+(?:[-'’]\w+)*|[^\w\s]")


def read_storyworld_topics(
    split: str, clusters: int, *, seed: int = 0, start: int = 0, stories_per_topic: int = 3
) -> Iterator[Topic]:
    """Topics of invented stories, one at a time, the same on every machine.

    Args:
        split: train, dev or test; splits share no facts.
        clusters: how many stories in all. A last topic of fewer than `stories_per_topic` is kept.
        seed: of the stories.
        start: number of the first story.
        stories_per_topic: 1 for topics in which all documents report the same event.

    Raises:
        ValueError: an unknown split, `clusters` or `stories_per_topic` below 1, `start` below 0.
    """
    if split not in SPLIT_NAMES:
        raise ValueError(f"split is {split!r}; choose one of train, dev, test")
    for name, value, least in (
        ("clusters", clusters, 1),
        ("stories_per_topic", stories_per_topic, 1),
        ("start", start, 0),
    ):
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    numbers = range(start, start + clusters)
    return (
        _topic(numbers[first : first + stories_per_topic], split=SPLIT_NAMES[split], seed=seed)
        for first in range(0, clusters, stories_per_topic)
    )


def token_spans(text: str, *, boundaries: Iterable[int] = ()) -> list[Span]:
    """Words, numbers and punctuation of a text, as half-open spans of characters.

    A hyphen or apostrophe within a word and a comma or point within a number stay in it: "son's", "62,689".
    `boundaries`: characters at which a token is cut in two, so that mentions consist of whole tokens.
    """
    cuts = sorted(set(boundaries))
    spans: list[Span] = []
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        inner = cuts[bisect_right(cuts, start) : bisect_left(cuts, end)]
        edges = [start, *inner, end]
        spans += pairwise(edges)
    return spans


def _topic(numbers: range, *, split: Split, seed: int) -> Topic:
    topic = f"storyworld-{seed}-{split}-stories-{numbers[0]}-{numbers[-1]}"
    members = stories(seed=seed, split=split, start=numbers[0], stop=numbers[-1] + 1)
    return Topic(
        id=topic,
        documents=tuple(
            _document(story, number, topic)
            for story in members
            for number in range(len(story.cluster.documents))
        ),
    )


def _document(story: Story, number: int, topic: str) -> CoreferenceDocument:
    document = story.cluster.documents[number]
    gold = sorted((m for m in story.mentions if m.document == number), key=lambda m: (m.start, m.end))
    boundaries = set(chain.from_iterable((mention.start, mention.end) for mention in gold))
    tokens: list[Span] = []
    sentences: list[Span] = []
    for start, end in document.sentences:
        before = len(tokens)
        cuts = (place - start for place in boundaries)
        tokens += ((start + a, start + b) for a, b in token_spans(document.text[start:end], boundaries=cuts))
        sentences.append((before, len(tokens)))
    labels = {(tag.start, tag.end): tag.label for tag in story.tags if tag.document == number}
    starts, first = [start for start, _ in tokens], [start for start, _ in sentences]
    spans = [(bisect_left(starts, mention.start), bisect_left(starts, mention.end)) for mention in gold]
    return CoreferenceDocument(
        id=document.id,
        topic=topic,
        subtopic=story.cluster.id,
        tokens=tuple(document.text[start:end] for start, end in tokens),
        sentences=tuple(sentences),
        validated=tuple(range(len(sentences))),
        mentions=tuple(
            CoreferenceMention(
                id=f"{document.id}:{index}",
                document=document.id,
                tokens=span,
                sentence=bisect_right(first, span[0]) - 1,
                kind=mention.kind,
                cluster=f"{story.cluster.id}:{mention.chain}",
                tag=labels.get((mention.start, mention.end), ""),
            )
            for index, (mention, span) in enumerate(zip(gold, spans, strict=True))
        ),
    )
