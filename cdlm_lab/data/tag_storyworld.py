"""Tagged documents from storyworld: reports of an invented event, one of them labelled, without any file.

The names of a story are invented and occur in several of its reports, so that what a word is can be learned
from the places where it stands elsewhere. Labels are those of `records.EntityTag`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from random import Random

from cdlm_lab.data.coreference_storyworld import token_spans
from cdlm_lab.data.records import EntityTag, Story
from cdlm_lab.data.splits import SPLIT_NAMES
from cdlm_lab.data.storyworld import stories as told
from cdlm_lab.data.tagged_documents import TaggedDocument, TaggedSentence, TagSpan, tags_of


def read_storyworld_tags(
    split: str, stories: int, *, seed: int = 0, start: int = 0
) -> Iterator[TaggedDocument]:
    """A document for each story, one at a time, the same on every machine.

    It is the reports of the story one after the other: first a drawn one, which is labelled, then the others
    in their order, which are context. Words are cut as in `coreference_storyworld.token_spans`; those of the
    labelled report also where a span begins or ends, which nobody knows of text without labels: "Orn's" is
    one word of the context, though the labelled report may have "Orn" and "'s".

    Args:
        split: train, dev or test; splits share no facts.
        stories: how many.
        seed: of the stories and of what is drawn.
        start: number of the first story.

    Raises:
        ValueError: an unknown split, `stories` below 1, `start` below 0.
    """
    if split not in SPLIT_NAMES:
        raise ValueError(f"split is {split!r}; choose one of train, dev, test")
    for name, value, least in (("stories", stories, 1), ("start", start, 0)):
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    members = told(seed=seed, split=SPLIT_NAMES[split], start=start, stop=start + stories)
    return (_document(story) for story in members)


def _document(story: Story) -> TaggedDocument:
    reports = list(range(len(story.cluster.documents)))
    labelled = Random(f"tags/{story.cluster.id}").choice(reports)
    order = [labelled, *(number for number in reports if number != labelled)]
    sentences = (
        sentence for number in order for sentence in _sentences(story, number, labelled=number == labelled)
    )
    return TaggedDocument(id=story.cluster.id, sentences=tuple(sentences))


def _sentences(story: Story, number: int, *, labelled: bool) -> Iterator[TaggedSentence]:
    report = story.cluster.documents[number]
    # The tags of context are not even looked at: text without labels must not profit from annotation.
    found = [tag for tag in story.tags if labelled and tag.document == number]
    for start, end in report.sentences:
        inside = [tag for tag in found if start <= tag.start < end]
        cuts = [place - start for tag in inside for place in (tag.start, tag.end)]
        spans = token_spans(report.text[start:end], boundaries=cuts)
        words = tuple(report.text[start + first : start + stop] for first, stop in spans)
        tags = None
        if labelled:
            starts = [start + first for first, _ in spans]
            tags = tags_of((_span(tag, starts) for tag in inside), len(words))
        yield TaggedSentence(words=words, tags=tags)


def _span(tag: EntityTag, starts: list[int]) -> TagSpan:
    return TagSpan(label=tag.label, first=bisect_left(starts, tag.start), stop=bisect_left(starts, tag.end))
