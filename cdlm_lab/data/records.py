"""What every reader yields: documents, clusters of related documents, and the gold that tasks need. Frozen.

Spans are half-open [start, end) character offsets into `Document.text`; documents of a cluster and sentences
of a document are named by their index.

What every reader of coreference data yields: topics of tokenised documents with their mentions. Frozen.

Spans are half-open [start, end) token numbers of one document; sentences are named by their index. Records
check themselves: whatever they hold fits together, or they are not made.

Train, validation and test: what corpora call them, and a stable choice where a corpus has none.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, get_args

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Characters that state a fact. One `id` in two documents = the same fact in the same words."""

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
    """Words that name an entity or an event; mentions of one `chain` corefer, across documents."""

    document: int
    start: int
    end: int
    kind: Literal["event", "entity"]
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


Kind = Literal["event", "entity"]
KINDS: tuple[Kind, ...] = get_args(Kind)
TokenSpan = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreferenceMention:
    """Words that name an event or an entity. Mentions of one `cluster` corefer, across documents.

    Attributes:
        id: no other mention of the corpus has it.
        document: id of the document it stands in.
        tokens: its span, from the first to the last of its tokens.
        sentence: index of the sentence it stands in.
        kind: event or entity.
        cluster: name of the event or entity, the same in all of the corpus; a mention that corefers with
            no other has a cluster of its own.
        tag: the finer kind that a corpus gives, as ACTION_OCCURRENCE or LOC_GEO; "" if it gives none.

    Raises:
        ValueError: an unknown kind, no cluster, a span that is empty or starts below 0.
    """

    id: str
    document: str
    tokens: TokenSpan
    sentence: int
    kind: Kind
    cluster: str
    tag: str = ""

    def __post_init__(self) -> None:
        start, end = self.tokens
        if self.kind not in KINDS:
            raise ValueError(f"{self.name}: kind is {self.kind!r}; choose one of {', '.join(KINDS)}")
        if not self.cluster:
            raise ValueError(f"{self.name}: no cluster; give it one of its own if it corefers with no other")
        if not 0 <= start < end:
            raise ValueError(f"{self.name}: {self.tokens} is no span of tokens; write (first, last + 1)")

    @property
    def name(self) -> str:
        """What complaints call it: "mention 36_1ecb:37 of document 36_1ecb"."""
        return f"mention {self.id} of document {self.document}"

    @property
    def place(self) -> tuple[str, int, int]:
        """Where it stands: (document, start, end); by this, scorers know a mention again."""
        return self.document, *self.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreferenceDocument:
    """A tokenised text with its mentions.

    Attributes:
        id, topic, subtopic: its own name and those of the larger and smaller group of documents it is in.
        tokens: words and punctuation; none of them empty.
        sentences: spans, in order, that cover all the tokens.
        validated: indices of the sentences whose annotation was checked; readers give mentions in no other.
        mentions: in order of their spans.

    Raises:
        ValueError: no tokens, an empty one, sentences that leave gaps, a validated sentence that is not
            there, a mention outside the document or its sentence, two mentions of one id.
    """

    id: str
    topic: str
    subtopic: str
    tokens: tuple[str, ...]
    sentences: tuple[TokenSpan, ...]
    validated: tuple[int, ...]
    mentions: tuple[CoreferenceMention, ...] = ()

    def __post_init__(self) -> None:
        if not self.tokens:
            raise ValueError(f"document {self.id} has no text; leave it out")
        if empty := [number for number, token in enumerate(self.tokens) if not token.strip()]:
            raise ValueError(f"document {self.id}: token {empty[0]} is empty; leave it out")
        self._check_sentences()
        seen: set[str] = set()
        for mention in self.mentions:
            check_mention(mention, self)
            if mention.id in seen:
                raise ValueError(f"{mention.name}: a second mention of this id; number them apart")
            seen.add(mention.id)

    def _check_sentences(self) -> None:
        ends = [0, *(end for _, end in self.sentences)]
        for number, (start, end) in enumerate(self.sentences):
            if start != ends[number] or end <= start:
                what = f"sentence {number} is {(start, end)} after {ends[number]} tokens"
                raise ValueError(f"document {self.id}: {what}; sentences follow each other without gaps")
        if ends[-1] != len(self.tokens):
            what = f"the sentences end at {ends[-1]} of {len(self.tokens)} tokens"
            raise ValueError(f"document {self.id}: {what}; sentences hold all of them")
        for number in self.validated:
            if not 0 <= number < len(self.sentences):
                what = f"validated sentence {number} is not one of its {len(self.sentences)}"
                raise ValueError(f"document {self.id}: {what}; sentences are numbered from 0")

    def text_of(self, mention: CoreferenceMention) -> str:
        """The words of a mention, with spaces between them."""
        start, end = mention.tokens
        return " ".join(self.tokens[start:end])


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Documents among which mentions are to be clustered.

    Raises:
        ValueError: no documents, two documents or two mentions of one id, a document of another topic, a
            cluster of both events and entities.
    """

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
                if other := mentions.get(mention.id):
                    raise ValueError(f"{mention.name}: document {other.document} has one of this id too")
                mentions[mention.id] = mention
        gold_clusters([self])


@dataclass(slots=True)
class PassedOver:
    """What a reader of foreign data could not use, or had to change, counted by reason.

    `found`: reason -> (how often, where first).
    """

    found: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, reason: str, place: str) -> None:
        """Count one more; `place`: where it is, as "file:line"."""
        count, first = self.found.get(reason, (0, place))
        self.found[reason] = (count + 1, first)

    def lines(self) -> list[str]:
        """A line for each reason."""
        return [f"{reason}: {count:,} (first: {first})" for reason, (count, first) in self.found.items()]


def joined_sentences(sentences: Sequence[TokenSpan], mentions: Iterable[TokenSpan]) -> tuple[TokenSpan, ...]:
    """The sentences of a document, those joined that one of the mentions goes across.

    Example:
        >>> joined_sentences([(0, 3), (3, 5), (5, 9)], [(0, 2), (4, 6)])
        ((0, 3), (3, 9))
    """
    starts = [start for start, _ in sentences]
    inside: set[int] = set()
    for start, end in mentions:
        inside.update(starts[bisect_right(starts, start) : bisect_left(starts, end)])
    kept = [start for start in starts if start not in inside]
    ends = [*kept[1:], *(end for _, end in sentences[-1:])]
    return tuple(zip(kept, ends, strict=True))


def topics_by_name(documents: Collection[str], *, otherwise: str) -> dict[str, str]:
    """A topic for documents of which nothing says it: the name up to the first "_" (36_1ecb), if that puts
    any two of them together, else one for all, `otherwise`."""
    starts = {name: name.partition("_")[0] for name in documents}
    return starts if len(set(starts.values())) < len(starts) else dict.fromkeys(starts, otherwise)


def without_repeats(topics: Iterable[Topic], passed_over: PassedOver) -> list[Topic]:
    """Topics in which each place has one mention of a kind, the first, as scorers take no other; the rest are
    counted."""
    return [
        Topic(
            id=topic.id,
            documents=tuple(_without_repeats(document, passed_over) for document in topic.documents),
        )
        for topic in topics
    ]


def _without_repeats(document: CoreferenceDocument, passed_over: PassedOver) -> CoreferenceDocument:
    kept: dict[tuple[Kind, TokenSpan], CoreferenceMention] = {}
    for mention in document.mentions:
        if kept.setdefault((mention.kind, mention.tokens), mention) is not mention:
            place = f"token {mention.tokens[0]} of {document.id}"
            passed_over.add("mention in the place of another one, which counts", place)
    return replace(document, mentions=tuple(kept.values()))


def check_mention(mention: CoreferenceMention, document: CoreferenceDocument) -> None:
    """Whether a mention stands in the document, and in the sentence it says.

    Raises:
        ValueError: it does not.
    """
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


def mentions_of(topics: Iterable[Topic], *, kind: Kind | None = None) -> Iterator[CoreferenceMention]:
    """All mentions (of one kind) of all documents, in order."""
    for topic in topics:
        for document in topic.documents:
            yield from (mention for mention in document.mentions if kind in (None, mention.kind))


def gold_clusters(
    topics: Iterable[Topic], *, kind: Kind | None = None, by_topic: bool = False
) -> dict[str, tuple[CoreferenceMention, ...]]:
    """Mentions (of one kind) by cluster, in order of the first mention; singletons are clusters too.

    `by_topic`: a cluster that goes through several topics is cut at their borders, and all names get the
    topic in front: "38/HUM1". Otherwise it is one cluster.

    Raises:
        ValueError: a cluster of both events and entities.
    """
    clusters: dict[str, list[CoreferenceMention]] = {}
    for topic in topics:
        for mention in mentions_of([topic], kind=kind):
            name = f"{topic.id}/{mention.cluster}" if by_topic else mention.cluster
            members = clusters.setdefault(name, [])
            if members and members[0].kind != mention.kind:
                what = f"{members[0].name} is an {members[0].kind}, {mention.name} an {mention.kind}"
                raise ValueError(f"cluster {name} is of both kinds: {what}; split the cluster")
            members.append(mention)
    return {name: tuple(members) for name, members in clusters.items()}


Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
# What files and records call them.
SPLIT_NAMES: dict[str, Split] = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "development": "validation",
    "test": "test",
}
_TRAIN, _VALIDATION = 0.90, 0.95  # cumulative shares: 90% train, 5% validation, 5% test


def hashed_split(cluster_id: str) -> Split:
    """Split of a cluster whose corpus does not say: 90/5/5 by a hash of its id.

    Adding clusters to a corpus, or reading it in another order or on another machine, moves none of the
    others.
    """
    digest = hashlib.sha256(cluster_id.encode("utf-8")).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    if share < _TRAIN:
        return "train"
    return "validation" if share < _VALIDATION else "test"


def check_split(split: str) -> None:
    """Raises ValueError for a split that is not one of SPLITS."""
    if split not in SPLITS:
        raise ValueError(f"split is {split!r}; choose one of {', '.join(SPLITS)}")


_TOKEN = re.compile(r"\d+(?:[.,]\d+)+|\w+(?:[-'’]\w+)*|[^\w\s]")


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
