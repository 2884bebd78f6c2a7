"""Documents whose words are tagged, in part: the records of document-attentive tagging (Joerke et al. 2020,
"Doc-ARC", section 2.1: "other sequences in D may or may not have labels")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

OUTSIDE = "O"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedSentence:
    """A sentence in words.

    Attributes:
        words: as the source separates them.
        tags: one for each word, in IOB2: `B-` and a label starts a span, `I-` and the same label goes on
            with it, `O` is outside. None: the sentence is context, nobody labelled it.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedDocument:
    """A document in sentences, in the order that the source gives them.

    Attributes:
        id: unique in its split.
        sentences: labelled ones and context; their indices are what distances are counted in.
    """

    id: str
    sentences: tuple[TaggedSentence, ...]

    @property
    def labelled(self) -> tuple[int, ...]:
        """Indices of the sentences that have tags."""
        return tuple(n for n, sentence in enumerate(self.sentences) if sentence.tags is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagSpan:
    """Words `first` to `stop` of a sentence, `stop` not included, and the label of the span they are."""

    label: str
    first: int
    stop: int


def spans_of(tags: Sequence[str]) -> tuple[TagSpan, ...]:
    """The spans of a sentence in IOB2, in order; an `I-` that follows no span of its label starts one, as in
    conlleval and in seqeval's default."""
    found: list[TagSpan] = []
    first, label = 0, ""
    for place, tag in enumerate((*tags, OUTSIDE)):
        prefix, _, name = tag.partition("-")
        if label and (prefix != "I" or name != label):
            found.append(TagSpan(label=label, first=first, stop=place))
            label = ""
        if prefix in ("B", "I") and not label:
            first, label = place, name
    return tuple(found)


def outermost(spans: Iterable[TagSpan]) -> tuple[TagSpan, ...]:
    """The spans that lie in no other, in order; of those in the same place the first that is given. Spans
    that cross each other are all kept."""
    kept: list[TagSpan] = []
    for span in sorted(spans, key=lambda span: (span.first, -span.stop)):
        if not kept or span.stop > kept[-1].stop:
            kept.append(span)
    return tuple(kept)


def tags_of(spans: Iterable[TagSpan], length: int) -> tuple[str, ...]:
    """IOB2 tags of a sentence of `length` words: `spans_of` backwards.

    Raises:
        ValueError: a span without words or outside of the sentence, or two that share a word.
    """
    tags = [OUTSIDE] * length
    for span in spans:
        if not 0 <= span.first < span.stop <= length:
            raise ValueError(f"{span} does not fit a sentence of {length} words")
        if any(tag != OUTSIDE for tag in tags[span.first : span.stop]):
            raise ValueError(f"{span} shares words with another span")
        tags[span.first] = f"B-{span.label}"
        for place in range(span.first + 1, span.stop):
            tags[place] = f"I-{span.label}"
    return tuple(tags)


def labels_of(documents: Iterable[TaggedDocument]) -> tuple[str, ...]:
    """The labels of all spans, sorted."""
    return tuple(
        sorted(
            {
                tag.partition("-")[2]
                for document in documents
                for number in document.labelled
                for tag in document.sentences[number].tags or ()
                if tag != OUTSIDE
            }
        )
    )


def tag_set(labels: Iterable[str]) -> tuple[str, ...]:
    """All tags of IOB2 with these labels: `O` first, then `B-` and `I-` of each."""
    return (OUTSIDE, *(f"{prefix}-{label}" for label in labels for prefix in "BI"))
