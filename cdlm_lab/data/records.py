"""Immutable records that readers yield: documents, clusters of documents, coreference topics, gold labels.

Spans are half-open [start, end), in characters of a `Document` and in tokens of a `CoreferenceDocument`.
Documents of a cluster and sentences of a document are referred to by index. Coreference records check on
construction that they are consistent, else they raise ValueError. Only this module defines names of splits.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, get_args

from cdlm_lab.errors import check_choice

Span = tuple[int, int]
TokenSpan = Span
Kind = Literal["event", "entity"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A span that states a fact; facts with the same `id` in two documents are the same in the same words."""

    start: int
    end: int
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text. `text` is everything a model reads; a headline, if any, is its first line.

    `sentences`: spans in order, empty when the source does not give them. `facts`: characters that can be
    recovered from another document of the cluster and from nothing else (storyworld only).
    """

    id: str
    text: str
    title: str | None = None
    sentences: tuple[Span, ...] = ()
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Documents that describe the same topic."""

    id: str
    documents: tuple[Document, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Words that name an entity or an event; mentions with the same `chain` corefer, across documents too."""

    document: int
    start: int
    end: int
    kind: Kind
    chain: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceRef:
    """A sentence of a cluster: index of the document, index of the sentence in it."""

    document: int
    sentence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceAlignment:
    """Two sentences of different documents that state the same fact."""

    source: SentenceRef
    target: SentenceRef


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityTag:
    """A named entity: `label` is one of PER LOC ORG FAC DATE NUM MISC (works of art, brands)."""

    document: int
    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question over two documents; `answer` is "yes", "no" or text that stands at each of `answer_spans`.

    `answer_spans`: (document, start, end), empty for yes and no. `supporting`: the sentences an answer needs.
    """

    id: str
    text: str
    answer: str
    type: Literal["span", "yes", "no"]
    hops: Literal["bridge", "comparison"]
    answer_spans: tuple[tuple[int, int, int], ...]
    supporting: tuple[SentenceRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSet:
    """A question with candidate answer sentences and which of them answer it."""

    id: str
    question: str
    candidates: tuple[str, ...]
    correct: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim about a cluster, and the sentences that support or refute it (none for "not enough info")."""

    id: str
    text: str
    label: Literal["supported", "refuted", "not enough info"]
    evidence: tuple[SentenceRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One cluster of the embedded corpus with gold for every task."""

    cluster: Cluster
    mentions: tuple[Mention, ...]
    alignments: tuple[SentenceAlignment, ...]
    tags: tuple[EntityTag, ...]
    questions: tuple[Question, ...]
    candidate_sets: tuple[CandidateSet, ...]
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreferenceMention:
    """Words that name an event or an entity; mentions with one `cluster` corefer, across documents too."""

    id: str  # unique in the corpus
    document: str  # id of its document
    tokens: TokenSpan  # its span, from its first to its last token
    sentence: int
    kind: Kind
    cluster: str  # name of the event or entity in the whole corpus; a singleton has a cluster of its own
    tag: str = ""  # the finer kind that a corpus gives, such as ACTION_OCCURRENCE or LOC_GEO

    def __post_init__(self) -> None:
        start, end = self.tokens
        check_choice(f"{self.name}: kind", self.kind, KINDS)
        if not self.cluster:
            raise ValueError(f"{self.name}: no cluster; give it one of its own if it corefers with no other")
        if not 0 <= start < end:
            raise ValueError(f"{self.name}: {self.tokens} is no span of tokens; write (first, last + 1)")

    @property
    def name(self) -> str:
        """Its name in messages: "mention 36_1ecb:37 of document 36_1ecb"."""
        return f"mention {self.id} of document {self.document}"

    @property
    def place(self) -> tuple[str, int, int]:
        """(document id, start, end) in tokens, by which scorers identify the mention."""
        return self.document, *self.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreferenceDocument:
    """A tokenised text with its mentions, in order of their spans; `sentences` cover all the tokens.

    `validated`: indices of the sentences whose annotation was checked; readers yield no mentions in others.
    """

    id: str
    topic: str
    subtopic: str
    tokens: tuple[str, ...]
    sentences: tuple[TokenSpan, ...]
    validated: tuple[int, ...]
    mentions: tuple[CoreferenceMention, ...] = ()

    def __post_init__(self) -> None:
        name = f"document {self.id}"
        if not self.tokens:
            raise ValueError(f"{name} has no text; leave it out")
        if empty := [number for number, token in enumerate(self.tokens) if not token.strip()]:
            raise ValueError(f"{name}: token {empty[0]} is empty; leave it out")
        before = 0
        for number, (start, end) in enumerate(self.sentences):
            if start != before or end <= start:
                what = f"sentence {number} is {(start, end)} after {before} tokens"
                raise ValueError(f"{name}: {what}; sentences follow each other without gaps")
            before = end
        if before != len(self.tokens):
            what = f"the sentences end at {before} of {len(self.tokens)} tokens"
            raise ValueError(f"{name}: {what}; sentences hold all of them")
        for number in self.validated:
            if not 0 <= number < len(self.sentences):
                what = f"validated sentence {number} is not one of its {len(self.sentences)}"
                raise ValueError(f"{name}: {what}; sentences are numbered from 0")
        seen: set[str] = set()
        for mention in self.mentions:
            check_mention(mention, self)
            if mention.id in seen:
                raise ValueError(f"{mention.name}: a second mention of this id; number them apart")
            seen.add(mention.id)

    def text_of(self, mention: CoreferenceMention) -> str:
        """The words of a mention, with spaces between them."""
        return " ".join(self.tokens[slice(*mention.tokens)])


def check_mention(mention: CoreferenceMention, document: CoreferenceDocument) -> None:
    """Raise ValueError if a mention does not lie in the document, or in the sentence that it refers to."""
    start, end = mention.tokens
    if mention.document != document.id:
        raise ValueError(f"{mention.name} stands in the list of document {document.id}")
    if end > len(document.tokens):
        what = f"its tokens {mention.tokens} lie outside: the document has {len(document.tokens)}"
        raise ValueError(f"{mention.name}: {what}")
    if not 0 <= mention.sentence < len(document.sentences):
        what = f"sentence {mention.sentence} is not one of its {len(document.sentences)}"
        raise ValueError(f"{mention.name}: {what}; sentences are numbered from 0")
    first, last = document.sentences[mention.sentence]
    if start < first or end > last:
        what = f"its tokens {mention.tokens} lie outside sentence {mention.sentence}, {(first, last)}"
        raise ValueError(f"{mention.name}: {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Documents among which mentions are clustered."""

    id: str
    documents: tuple[CoreferenceDocument, ...]

    def __post_init__(self) -> None:
        if not self.documents:
            raise ValueError(f"topic {self.id} has no documents; leave it out")
        documents: set[str] = set()
        mentions: dict[str, CoreferenceMention] = {}
        for document in self.documents:
            if document.topic != self.id:
                raise ValueError(f"document {document.id} is of topic {document.topic}, not of {self.id}")
            if document.id in documents:
                raise ValueError(f"topic {self.id} has two documents {document.id}; name them apart")
            documents.add(document.id)
            for mention in document.mentions:
                if (other := mentions.setdefault(mention.id, mention)) is not mention:
                    raise ValueError(f"{mention.name}: document {other.document} has one of this id too")
        gold_clusters([self])


@dataclass(slots=True)
class PassedOver:
    """Counts of what a reader skipped or had to change: reason -> (count, first place, as "file:line"); and
    `notes`, what it had to decide, in words."""

    counts: dict[str, tuple[int, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, reason: str, place: str) -> None:
        """Count one more case of `reason`; `place` is kept if it is the first."""
        count, first = self.counts.get(reason, (0, place))
        self.counts[reason] = (count + 1, first)

    def lines(self) -> list[str]:
        """One line for each reason, with its count and the first place."""
        return [f"{reason}: {count:,} (first: {first})" for reason, (count, first) in self.counts.items()]


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
) -> CoreferenceDocument:
    """Make a document from mentions given as (id, span, kind, cluster); sentences that a mention crosses are
    joined. `tags`: id of a mention -> its tag."""
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


def topics_by_name(documents: Collection[str], *, otherwise: str) -> dict[str, str]:
    """Document -> topic: the part of its name up to the first "_" ("36" of 36_1ecb), provided that at least
    two documents share one; else `otherwise` for all."""
    starts = {name: name.partition("_")[0] for name in documents}
    return starts if len(set(starts.values())) < len(starts) else dict.fromkeys(starts, otherwise)


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


def mentions_of(topics: Iterable[Topic], *, kind: Kind | None = None) -> Iterator[CoreferenceMention]:
    """Yield the mentions of all documents in order; `kind`: only those of this kind."""
    for topic in topics:
        for document in topic.documents:
            yield from (mention for mention in document.mentions if kind in (None, mention.kind))


def gold_clusters(
    topics: Iterable[Topic], *, kind: Kind | None = None, by_topic: bool = False
) -> dict[str, tuple[CoreferenceMention, ...]]:
    """Cluster -> its mentions (of one `kind`), in order of the first mention; singletons are included.

    `by_topic`: clusters that span topics are divided by topic; all names are then like "38/HUM1".
    Raises ValueError for a cluster with mentions of both kinds.
    """
    clusters: dict[str, list[CoreferenceMention]] = {}
    for topic in topics:
        for mention in mentions_of([topic], kind=kind):
            name = f"{topic.id}/{mention.cluster}" if by_topic else mention.cluster
            members = clusters.setdefault(name, [])
            members.append(mention)
            if members[0].kind != mention.kind:
                what = f"{members[0].name} is an {members[0].kind}, {mention.name} an {mention.kind}"
                raise ValueError(f"cluster {name} is of both kinds: {what}; split the cluster")
    return {name: tuple(members) for name, members in clusters.items()}


# ---- splits ----

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
SPLIT_NAMES: dict[str, Split] = {name: name for name in SPLITS} | dict.fromkeys(
    ("valid", "val", "dev", "development"), "validation"
)
_TRAIN, _VALIDATION = 0.90, 0.95  # cumulative shares: 90% train, 5% validation, 5% test


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


def split_named(name: str) -> Split:
    """The split that a name of SPLIT_NAMES, such as "dev", stands for. Raises ValueError for other names."""
    if name not in SPLIT_NAMES:
        raise ValueError(f"split is {name!r}; choose one of train, dev, test")
    return SPLIT_NAMES[name]


def hashed_split(cluster_id: str) -> Split:
    """The split of a cluster by a hash of its id (90/5/5), for corpora that define no splits: adding or
    reordering clusters moves no other cluster to another split."""
    digest = hashlib.sha256(cluster_id.encode("utf-8")).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    return "train" if share < _TRAIN else "validation" if share < _VALIDATION else "test"
