"""The native form of every task: the immutable records that all readers yield, on one page.

A line of a native file is one record as JSON, with the names of its fields; pydantic checks it against the
classes here (`cdlm_lab.data.reading`). Spans are half-open [start, end), in characters of a `Document` and in
tokens of a `CoreferenceDocument`. Documents of a cluster and sentences of a document are referred to by
index. Records check on construction that they are consistent, else they raise ValueError.

**Back to the text as given.** Records that were made of a text keep where their parts stand in it, as
`offsets`: of the words of a `TaggedSentence`, the tokens of a `CoreferenceDocument` (in the text as typed,
marks included), the sentences of a `PairDocument`; () where a source gives words or sentences, not a text.
`characters(sentence.offsets, first, stop)` is the span of a name, a mention or a sentence, for which
`text[start:end]` is what the reader typed. A `Paragraph` needs none: `Paragraph.text` has as many characters
as the text as given, with spaces for all white space, so that places of an answer hold in both. They are made
by `native.pair_document(id, text)`, `native.paragraph(title, text)`, `tags.tagged_text(id, text)` and
`marked.marked_texts({id: text})`, and by what reads one's own rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

from cdlm_lab.errors import check_choice

Span = tuple[int, int]
TokenSpan = Span
Offsets = tuple[Span, ...]  # of words or sentences, in characters of the text as given
Kind = Literal["event", "entity"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def characters(offsets: Sequence[Span], first: int, stop: int) -> Span | None:
    """The span of a record's items (words, tokens, sentences) with indices from `first` up to, not including,
    `stop`, in characters of the text as given; None if the record was not made of a text."""
    return (offsets[first][0], offsets[stop - 1][1]) if offsets else None


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
    offsets: Offsets = field(default=(), compare=False, repr=False)  # of the tokens

    def __post_init__(self) -> None:
        name = f"document {self.id}"
        if not self.tokens:
            raise ValueError(f"{name} has no text; leave it out")
        if empty := [number for number, token in enumerate(self.tokens) if not token.strip()]:
            raise ValueError(f"{name}: token {empty[0]} is empty; leave it out")
        check_offsets(name, self.offsets, len(self.tokens))
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


def check_offsets(name: str, offsets: Offsets, count: int) -> None:
    """Raise ValueError, about `name`, unless there are no offsets or one for each of `count` items."""
    if offsets and len(offsets) != count:
        raise ValueError(f"{name}: {len(offsets)} offsets of {count} parts; give one for each, or none")


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

    def count(self, reason: str) -> int:
        """The number of cases of a reason."""
        return self.counts.get(reason, (0, ""))[0]

    def include(self, other: PassedOver) -> None:
        """Count also what another one has counted."""
        for reason, (count, first) in other.counts.items():
            known, place = self.counts.get(reason, (0, first))
            self.counts[reason] = (known + count, place)
        self.notes += [note for note in other.notes if note not in self.notes]

    def lines(self) -> list[str]:
        """One line for each reason, with its count and the first place."""
        return [f"{reason}: {count:,} (first: {first})" for reason, (count, first) in self.counts.items()]


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


# ---- clusters as paragraphs ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraphed:
    """A document as paragraphs of sentences, both in order. No paragraph is empty; there may be none."""

    id: str
    paragraphs: tuple[tuple[str, ...], ...]


# ---- pairs of documents ----


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDocument:
    """A text as sentences, which are numbered from 0. Documents with the same id have the same text."""

    id: str
    sentences: tuple[str, ...]
    offsets: Offsets = field(default=(), compare=False, repr=False)  # of the sentences

    def __post_init__(self) -> None:
        check_offsets(f"document {self.id}", self.offsets, len(self.sentences))
        if not self.id:
            raise ValueError("a document without id; name it")
        if not self.sentences:
            raise ValueError(f"document {self.id} has no sentences; leave it out")
        for number, sentence in enumerate(self.sentences):
            if not sentence.strip():
                raise ValueError(f"document {self.id}: sentence {number} is empty; leave it out")

    def text_of(self) -> str:
        """The sentences, joined by spaces."""
        return " ".join(self.sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPair:
    """Two documents in order; if related, the first cites, copies or reports what is in the second."""

    id: str  # unique in the corpus
    first: PairDocument
    second: PairDocument
    related: bool  # gold label: whether the relationship of interest holds
    # Indices of the sentences of `first` that belong to `second`, ascending; None if they are not known. It
    # is () or None for an unrelated pair.
    aligned: tuple[int, ...] | None
    cluster: str  # group of pairs that belong together, such as those with the same first document

    def __post_init__(self) -> None:
        if not self.id or not self.cluster:
            name, what = (self.id, "cluster") if self.id else (str(self.documents), "id")
            raise ValueError(f"pair {name}: no {what}; name it")
        if self.related and self.aligned == ():
            remedy = "write None if it is not known which"
            raise ValueError(f"pair {self.id} is related, but no sentence is aligned; {remedy}")
        if self.aligned and not self.related:
            what = f"it is not related, but sentence {self.aligned[0]} is aligned"
            raise ValueError(f"pair {self.id}: {what}; write () for an unrelated pair")
        check_positions(f"pair {self.id}", self.aligned or (), self.first)

    @property
    def documents(self) -> tuple[str, str]:
        """Ids of the two documents."""
        return self.first.id, self.second.id


def check_positions(name: str, positions: Sequence[int], document: PairDocument) -> None:
    """Raise ValueError, about `name`, unless positions are ascending indices of sentences of a document."""
    count = len(document.sentences)
    for position in positions:
        if not 0 <= position < count:
            what = f"sentence {position} lies outside: document {document.id} has {count}"
            raise ValueError(f"{name}: {what}; sentences are numbered from 0")
    if list(positions) != sorted(set(positions)):
        raise ValueError(f"{name}: sentences {tuple(positions)} are out of order; write each once, ascending")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentLink:
    """A link from the document `first` to `second`, such as a citation."""

    first: str
    second: str
    source: str  # name of the data set that it is from
    in_first: tuple[int, ...] | None = None  # indices of the linking sentences, ascending; None = not known

    def __post_init__(self) -> None:
        if self.first == self.second:
            raise ValueError(f"link {self.id}: a document linked with itself; leave it out")
        numbers = self.in_first
        ascending = numbers and numbers[0] >= 0 and list(numbers) == sorted(set(numbers))
        if numbers is not None and not ascending:
            remedy = "write each once, ascending, from 0, or None if they are not known"
            raise ValueError(f"link {self.id}: in_first is {numbers}; {remedy}")

    @property
    def id(self) -> str:
        """The id of the link, "first>second"."""
        return f"{self.first}>{self.second}"

    @property
    def documents(self) -> tuple[str, str]:
        """Ids of the two documents."""
        return self.first, self.second


# ---- questions over paragraphs ----

QuestionKind = Literal["bridge", "comparison"]


QUESTION_KINDS = get_args(QuestionKind)


SupportingFact = tuple[str, int]  # title of a paragraph, index of the sentence in it


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A paragraph, with a title that is unique within a question. The sentences include the spaces between
    them, so that they concatenate to `text`; blank sentences are kept, so that the numbering stays valid.
    Where it was made of a text, `text` has the same length, so that places in it are places in that."""

    title: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """All sentences, without the title."""
        return "".join(self.sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class MultihopQuestion:
    """A question and the paragraphs it is asked over."""

    id: str
    text: str
    paragraphs: tuple[Paragraph, ...]  # in the order in which a model reads them; at least one
    answer: str | None = None  # "yes", "no", or words of the paragraphs; None = not known
    # The sentences that are needed for the answer, in the source's order.
    supporting: tuple[SupportingFact, ...] = ()
    # Facts of the source that refer to no sentence of the paragraphs, as a few of HotpotQA do. No system can
    # predict them, and the official scores count them as missed.
    unknown_supporting: tuple[SupportingFact, ...] = ()
    kind: str = ""  # one of QUESTION_KINDS, or "" = not known
    level: str = ""  # of difficulty, in the source's words, such as "hard"; "" = not known

    @property
    def type(self) -> Literal["span", "yes", "no"] | None:
        """Type of the answer; None if the answer is not known."""
        return self.answer if self.answer in ("yes", "no", None) else "span"

    @property
    def gold_paragraphs(self) -> tuple[int, ...]:
        """Indices of the paragraphs that supporting facts refer to, ascending."""
        titles = {title for title, _ in self.supporting + self.unknown_supporting}
        return tuple(number for number, one in enumerate(self.paragraphs) if one.title in titles)


# ---- tagged words ----


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedSentence:
    """A sentence as words, tokenised by the source, with an IOB2 tag for each. `tags` is None for context, a
    sentence that nobody labelled."""

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    offsets: Offsets = field(default=(), compare=False, repr=False)  # of the words


@dataclass(frozen=True, kw_only=True)
class TaggedDocument:
    """A document as labelled and context sentences, in the order of the source; `id` is unique in its split.
    Distances between sentences are differences of their indices."""

    id: str
    sentences: tuple[TaggedSentence, ...]

    @cached_property
    def labelled(self) -> tuple[int, ...]:
        """Indices of the sentences that have tags."""
        return tuple(n for n, sentence in enumerate(self.sentences) if sentence.tags is not None)


# ---- candidate answers ----


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateCounts:
    """Counts over candidate sets: `right` of candidates, `without_right` and `without_wrong` of questions."""

    questions: int
    candidates: int
    right: int
    without_right: int
    without_wrong: int


def is_clean(candidates: CandidateSet) -> bool:
    """True if the question has at least one right and at least one wrong candidate."""
    return any(candidates.correct) and not all(candidates.correct)


def clean_sets(sets: Iterable[CandidateSet]) -> list[CandidateSet]:
    """The sets with at least one right and at least one wrong candidate, in order."""
    return list(filter(is_clean, sets))


def counts_of(sets: Iterable[CandidateSet]) -> CandidateCounts:
    """Count the questions and candidates of `sets`, which is iterated over once."""
    labels = [one.correct for one in sets]
    return CandidateCounts(
        questions=len(labels),
        candidates=sum(map(len, labels)),
        right=sum(map(sum, labels)),
        without_right=sum(not any(correct) for correct in labels),
        without_wrong=sum(all(correct) for correct in labels),
    )


# ---- claims ----

CLAIM_LABELS = ("supported", "refuted", "not enough info")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencedClaim:
    """A claim and the evidence sentences by which it is to be verified."""

    id: str  # unique within its source
    text: str
    # In the source's order, "title. sentence" where titles are known; () = no evidence was retrieved.
    evidence: tuple[str, ...]
    # One of CLAIM_LABELS, by all evidence that exists, not only what was retrieved of it; None = not known.
    label: str | None
    # Page or story: claims of one group are in the same split, and confidence intervals resample groups.
    group: str
