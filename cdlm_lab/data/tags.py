"""Tags of words, and the spans that they stand for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from cdlm_lab.data.records import CoreferenceDocument, PassedOver, Span, TaggedDocument, TaggedSentence
from cdlm_lab.data.words import sentence_starts, token_spans

OUTSIDE = "O"


@dataclass(frozen=True, slots=True, kw_only=True)
class TagSpan:
    """A labelled span: the words of a sentence with indices from `first` up to, not including, `stop`."""

    label: str
    first: int
    stop: int


def spans_of(tags: Sequence[str]) -> tuple[TagSpan, ...]:
    """Decode the tags of a sentence into spans, in order; an `I-` after no span of its label starts one."""
    spans: list[TagSpan] = []
    first, label = 0, ""
    for place, tag in enumerate((*tags, OUTSIDE)):
        prefix, _, name = tag.partition("-")
        if label and (prefix != "I" or name != label):
            spans.append(TagSpan(label=label, first=first, stop=place))
            label = ""
        if prefix in ("B", "I") and not label:
            first, label = place, name
    return tuple(spans)


def outermost(spans: Iterable[TagSpan]) -> tuple[TagSpan, ...]:
    """The spans that lie within no other, in order; of identical spans the first. Crossing spans are kept."""
    outer: list[TagSpan] = []
    for span in sorted(spans, key=lambda span: (span.first, -span.stop)):
        if not outer or span.stop > outer[-1].stop:
            outer.append(span)
    return tuple(outer)


def tags_of(spans: Iterable[TagSpan], length: int) -> tuple[str, ...]:
    """Encode spans as the IOB2 tags of a sentence of `length` words, the inverse of `spans_of`. Raises
    ValueError for a span that is empty or outside the sentence, and for two that share a word."""
    tags = [OUTSIDE] * length
    for span in spans:
        if not 0 <= span.first < span.stop <= length:
            raise ValueError(f"{span} does not fit a sentence of {length} words")
        if any(tag != OUTSIDE for tag in tags[span.first : span.stop]):
            raise ValueError(f"{span} shares words with another span")
        inside = span.stop - span.first - 1
        tags[span.first : span.stop] = [f"B-{span.label}", *[f"I-{span.label}"] * inside]
    return tuple(tags)


def tagged_sentence(text: str, place: Span, names: Iterable[TagSpan]) -> TaggedSentence:
    """Tokenise and tag a sentence of a text; words are also split where a name begins or ends. `place` (of
    the sentence) and `names` are in characters of the text. Raises ValueError if names share a word."""
    start, end = place
    inside = [name for name in names if start <= name.first < end]
    cuts = [cut - start for name in inside for cut in (name.first, name.stop)]
    words = [(start + first, start + stop) for first, stop in token_spans(text[start:end], boundaries=cuts)]
    starts = [first for first, _ in words]
    spans = (
        replace(name, first=bisect_left(starts, name.first), stop=bisect_left(starts, name.stop))
        for name in inside
    )
    texts = tuple(text[first:stop] for first, stop in words)
    return TaggedSentence(words=texts, tags=tags_of(spans, len(texts)), offsets=tuple(words))


def tagged_text(name: str, text: str, names: Sequence[TagSpan] = ()) -> TaggedDocument:
    """A text as a tagged document with the offsets of its words: sentences as `sentence_starts` says, but
    none ends within a name; of nested names the outermost is kept. Raises ValueError if names cross."""
    kept = outermost(names)
    starts = sentence_starts(text)
    starts = [at for at in starts if not any(one.first < at < one.stop for one in kept)]
    each = (tagged_sentence(text, span, kept) for span in pairwise([*starts, len(text)]))
    return TaggedDocument(id=name, sentences=tuple(sentence for sentence in each if sentence.words))


SHARED = "mention that shares words with another one, left out"


def tagged_mentions(document: CoreferenceDocument, passed_over: PassedOver | None = None) -> TaggedDocument:
    """The mentions of a document as tags, labelled by their kinds; sentences that are not validated are
    context. A word has one tag: events go before entities, of one kind the longer mention before the shorter
    one, then the earlier. Mentions that share words with one that goes before are counted in `passed_over`.
    """
    kept: dict[int, list[TagSpan]] = {number: [] for number in document.validated}
    taken: set[int] = set()
    order = sorted(document.mentions, key=lambda one: (one.kind != "event", one.tokens[0] - one.tokens[1]))
    for one in order:
        if taken.isdisjoint(words := range(*one.tokens)):
            taken.update(words)
            start = document.sentences[one.sentence][0]
            place = {"first": one.tokens[0] - start, "stop": one.tokens[1] - start}
            kept[one.sentence].append(TagSpan(label=one.kind, **place))
        elif passed_over is not None:
            passed_over.add(SHARED, f"token {one.tokens[0]} of {document.id}")
    sentences = (
        TaggedSentence(
            words=document.tokens[start:end],
            tags=tags_of(kept[number], end - start) if number in kept else None,
            offsets=document.offsets[start:end],
        )
        for number, (start, end) in enumerate(document.sentences)
    )
    return TaggedDocument(id=document.id, sentences=tuple(sentences))


def labels_of(documents: Iterable[TaggedDocument]) -> tuple[str, ...]:
    """The labels that occur in the documents, sorted."""
    sentences = chain.from_iterable(document.sentences for document in documents)
    tags = set(chain.from_iterable(sentence.tags or () for sentence in sentences))
    return tuple(sorted({tag.partition("-")[2] for tag in tags if tag != OUTSIDE}))


def tag_set(labels: Iterable[str]) -> tuple[str, ...]:
    """All IOB2 tags of these labels: `O` first, then `B-` and `I-` of each label."""
    return (OUTSIDE, *(f"{prefix}-{label}" for label in labels for prefix in "BI"))
