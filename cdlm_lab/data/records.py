"""What every reader yields: documents, clusters of related documents, and the gold that tasks need. Frozen.

Spans are half-open [start, end) character offsets into `Document.text`; documents of a cluster and sentences
of a document are named by their index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
