"""Make coreference documents from spans, keep one mention in a place, name topics and clusters."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import (
    CoreferenceDocument,
    CoreferenceMention,
    Kind,
    PassedOver,
    Span,
    TokenSpan,
    Topic,
)
from cdlm_lab.data.words import sentence_starts, token_spans


def document_of_spans(
    mentions: Iterable[tuple[str, TokenSpan, Kind, str]],
    *,
    id: str,
    topic: str,
    subtopic: str,
    tokens: Sequence[str],
    sentences: Sequence[TokenSpan],
    validated: Collection[int],
    tags: Mapping[str, str] = MappingProxyType({}),
    offsets: Sequence[TokenSpan] = (),
) -> CoreferenceDocument:
    """Make a document from mentions given as (id, span, kind, cluster); sentences that a mention crosses are
    joined. `tags`: id of a mention -> its tag; `offsets`: of the tokens."""
    ordered = sorted(mentions, key=lambda mention: mention[1])
    starts = [start for start, _ in sentences]
    inside = {
        begin
        for _, (start, end), _, _ in ordered
        for begin in starts[bisect_right(starts, start) : bisect_left(starts, end)]
    }
    starts = [start for start in starts if start not in inside]
    return CoreferenceDocument(
        id=id,
        topic=topic,
        subtopic=subtopic,
        tokens=tuple(tokens),
        offsets=tuple(offsets),
        sentences=tuple(pairwise([*starts, *(end for _, end in sentences[-1:])])),
        validated=tuple(sorted({bisect_right(starts, sentences[one][0]) - 1 for one in validated})),
        mentions=tuple(
            CoreferenceMention(
                id=name,
                document=id,
                tokens=span,
                sentence=bisect_right(starts, span[0]) - 1,
                kind=kind,
                cluster=cluster,
                tag=tags.get(name, ""),
            )
            for name, span, kind, cluster in ordered
        ),
    )


def words_of_text(text: str, cuts: Iterable[int]) -> tuple[list[Span], list[TokenSpan], dict[int, int]]:
    """The words of a text as spans of its characters, its sentences as spans of words, and for each of `cuts`
    how many words stand before it. Words are those of `token_spans`, with possessive endings and contracted
    verbs ('s, 're) apart, as in the corpora; none goes over one of `cuts`, where mentions begin and end."""
    starts, words = sentence_starts(text), list[Span]()
    before: dict[int, int] = {}
    for start, end in pairwise(sorted({0, len(text), *starts, *cuts})):
        before[start] = len(words)
        words += token_spans(text, start=start, end=end, endings_apart=True)
    before[len(text)] = len(words)
    borders = sorted({0, len(words), *(before[start] for start in starts)})
    return words, list(pairwise(borders)), before


def kind_of_tag(tag: str) -> Kind:
    """The kind of a mention by the finer kind that a corpus gives: ACTION_OCCURRENCE, event."""
    return "event" if tag.upper().startswith(("ACT", "NEG_ACT", "EVENT")) else "entity"


def kinds_told(tags: Collection[str], kind: Kind | None) -> dict[str, Kind]:
    """Tag -> kind of its mentions: what the tags say if one of them is of events or is "entity"; else all
    mentions are of the `kind` that is wanted, None = entities."""
    told = "entity" in tags or any(kind_of_tag(tag) == "event" for tag in tags)
    return {tag: kind_of_tag(tag) if told else kind or "entity" for tag in tags}


def topics_by_name(documents: Collection[str], *, otherwise: str) -> dict[str, str]:
    """Document -> topic: the part of its name up to the first "_" ("36" of 36_1ecb), provided that at least
    two documents share one; else `otherwise` for all."""
    starts = {name: name.partition("_")[0] for name in documents}
    return starts if len(set(starts.values())) < len(starts) else dict.fromkeys(starts, otherwise)


def topics_of(documents: Iterable[CoreferenceDocument], corpus: str) -> list[Topic]:
    """Documents as topics, in order of their first documents. Raises DataError about `corpus` if there is no
    mention at all, or documents or mentions do not fit together."""
    members: dict[str, list[CoreferenceDocument]] = {}
    for document in documents:
        members.setdefault(document.topic, []).append(document)
    try:
        topics = [Topic(id=topic, documents=tuple(its)) for topic, its in members.items()]
    except ValueError as error:
        also = "where events and entities share numbers, read one kind of mentions"
        raise DataError(corpus, str(error), f"correct the mention; {also}", field="mentions") from None
    if not any(document.mentions for topic in topics for document in topic.documents):
        raise DataError(corpus, "no mention in it", "annotate some, or take the split out", field="mentions")
    return topics


def without_repeats(topics: Iterable[Topic], passed_over: PassedOver) -> list[Topic]:
    """Keep only the first of several mentions of one kind with the same span, as scorers require; the others
    are counted in `passed_over`."""

    def first_only(document: CoreferenceDocument) -> CoreferenceDocument:
        first: dict[tuple[Kind, TokenSpan], CoreferenceMention] = {}
        for mention in document.mentions:
            if first.setdefault((mention.kind, mention.tokens), mention) is not mention:
                place = f"token {mention.tokens[0]} of {document.id}"
                passed_over.add("mention in the place of another one, which counts", place)
        return replace(document, mentions=tuple(first.values()))

    return [replace(topic, documents=tuple(map(first_only, topic.documents))) for topic in topics]


def gold_names(documents: Iterable[CoreferenceDocument]) -> dict[str, str]:
    """Gold cluster -> a readable name, as corpora name clusters by codes: the words of its first mention,
    with a number, "fire (2)", if an earlier cluster has the same words."""
    names: dict[str, str] = {}
    used: Counter[str] = Counter()
    for document in documents:
        for mention in document.mentions:
            if mention.cluster not in names:
                words = document.text_of(mention)
                used[words] += 1
                names[mention.cluster] = f"{words} ({used[words]})" if used[words] > 1 else words
    return names
