"""Examples of cross-document language modelling: related documents, packed and masked (CDLM section 2).

Which documents are used, their order, and which tokens are masked is a pure function of (seed, epoch, index)
and does not depend on the global policy, so models with different policies are compared on the same masks.
Each pass over the corpus has its own order of clusters, of documents within each, and its own masks. An
example with `documents="random"` (Rand CDLM) has as many documents as the cluster whose turn it is, the first
from that cluster and each other one from a different cluster, so that Rand sees as much text of as many
documents. A model that goes on from a base has other random numbers: else Rand would read its examples.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from datasets import Dataset

from cdlm_lab.attention.global_tokens import GLOBAL_POLICIES, global_tokens
from cdlm_lab.errors import check_choice
from cdlm_lab.examples.cached_corpus import COLUMNS, NO_FACT, TokenisedCluster, read_cluster
from cdlm_lab.examples.masking import (
    CONTINUES,
    NO_WORD,
    NOT_MASKED,
    check_probability,
    mask_tokens,
    numbers_of_words,
)
from cdlm_lab.examples.packing import Packed, check_packing, pack_documents
from cdlm_lab.examples.passes import Passes
from cdlm_lab.examples.tokens import SpecialTokens

DOCUMENT_CHOICES = ("related", "random")

_Choice = tuple[TokenisedCluster, int]  # a document of a cluster


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CrossDocumentExample:
    """One example with all its details, for the preview before training."""

    index: int  # of the example
    epoch: int  # pass over the corpus, from 0
    row: int  # of the cluster in the corpus
    document_ids: tuple[str, ...]  # of the documents drawn, in order, including those that did not fit
    cluster_ids: tuple[str, ...]  # the cluster of each document drawn
    packed: Packed  # the sequence before masking, and what was lost
    input_ids: np.ndarray  # int64 (seq,), what the model reads
    labels: np.ndarray  # int64 (seq,), the original id of masked tokens, -100 elsewhere
    masked: np.ndarray  # bool (seq,), True = must be predicted
    global_: np.ndarray  # bool (seq,), True = attends to all tokens and is attended to by all
    # Bool (seq,), True = part of a fact that another packed document also states and that the token's own
    # document states only here.
    cross_document: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossDocumentExamples:
    """Map-style dataset of training or evaluation examples; read it in order, since it is already shuffled.

    `examples[i]` is a dict of arrays (seq,): `input_ids` int64, `labels` int64 (-100 = not masked),
    `global_attention_mask` int64 (1 = global), `cross_document` bool (True = part of a fact, masked or not,
    that can be recovered from another document in the sequence and from nothing else). Where a corpus marks
    no facts, `words` makes each word one: it can be copied from the other document.
    """

    corpus: Dataset  # from `tokenise_clusters`, or a selection of it
    special: SpecialTokens
    max_length: int  # of a sequence, special tokens included
    packing: str = "whole_documents"  # `whole_documents` or `equal_share`
    global_policy: str = "masked"  # `masked`, `prefix` or `none`
    documents: str = "related"  # all of one cluster (CDLM); or `random` = of different clusters (Rand)
    mask_probability: float = 0.15  # for each text token, or each word
    continues: np.ndarray | None = None  # from `continuing_pieces`, to mask whole words; None: tokens
    words: np.ndarray | None = None  # from `word_pieces`: each word is a fact; None: as marked
    seed: int = 0  # not negative; determines everything random
    earlier: int = 0  # pretrainings of the model before this one, none of whose random numbers come again
    size: int | None = None  # total examples (steps x batch size), in as many passes as needed; None = one
    # True = a new order of clusters each pass. False = row i of the corpus is example i, for evaluation.
    shuffle: bool = True
    _rows: Dataset = field(init=False, repr=False)
    _passes: Passes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if missing := sorted(set(COLUMNS) - set(self.corpus.column_names)):
            raise ValueError(f"the corpus has no column {missing[0]!r}; make it with tokenise_clusters")
        if not (count := len(self.corpus)):
            raise ValueError("the corpus has no clusters")
        check_choice("choice of documents", self.documents, DOCUMENT_CHOICES)
        check_packing(self.packing, max_length=self.max_length, special=self.special)
        check_choice("global policy", self.global_policy, GLOBAL_POLICIES)
        check_probability(self.mask_probability)
        form = {"stream": self._streams[0], "size": self.size, "shuffle": self.shuffle}
        object.__setattr__(self, "_passes", Passes(items=count, seed=self.seed, **form))
        object.__setattr__(self, "_rows", self.corpus.with_format("arrow"))

    def __len__(self) -> int:
        return len(self._passes)

    @property
    def _streams(self) -> range:
        """Independent random streams of one seed: of the order of clusters, of documents, of masks."""
        return range(3 * self.earlier, 3 * self.earlier + 3)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        example = self.describe(index)
        return {
            "input_ids": example.input_ids,
            "labels": example.labels,
            "global_attention_mask": example.global_.astype(np.int64),
            "cross_document": example.cross_document,
        }

    def describe(self, index: int) -> CrossDocumentExample:
        """One example with all its details."""
        (_, documents, masks), (epoch, row) = self._streams, self._passes.item(index)
        chosen = self._chosen(row, generator=self._passes.generator(documents, epoch, row))
        packed = pack_documents(
            [cluster.input_ids[document] for cluster, document in chosen],
            max_length=self.max_length,
            policy=self.packing,
            special=self.special,
        )
        input_ids, labels = mask_tokens(
            packed.input_ids,
            ~packed.is_special,
            generator=self._passes.generator(masks, epoch, row),
            special=self.special,
            probability=self.mask_probability,
            continues=self.continues,
        )
        return CrossDocumentExample(
            index=index,
            epoch=epoch,
            row=row,
            document_ids=tuple(cluster.document_ids[document] for cluster, document in chosen),
            cluster_ids=tuple(cluster.id for cluster, _ in chosen),
            packed=packed,
            input_ids=input_ids,
            labels=labels,
            masked=labels != NOT_MASKED,
            global_=global_tokens(self.global_policy, labels=labels),
            cross_document=self._stated_elsewhere(chosen, packed),
        )

    def _chosen(self, row: int, *, generator: np.random.Generator) -> list[_Choice]:
        """The documents of one example, in the order in which they are packed."""
        own = read_cluster(self._rows, row)
        count = len(own.input_ids)
        if self.documents == "related":
            return [(own, int(document)) for document in generator.permutation(count)]
        chosen = [(own, int(generator.integers(count)))]
        others = len(self.corpus) - 1
        if others < count - 1:
            raise ValueError(
                f"cluster {own.id!r} has {count} documents, and with documents='random' each must come from "
                f"another cluster, but there are only {others + 1} clusters; use a larger corpus"
            )
        drawn = generator.choice(others, size=count - 1, replace=False)
        for other in drawn + (drawn >= row):  # all rows but this one
            cluster = read_cluster(self._rows, int(other))
            chosen.append((cluster, int(generator.integers(len(cluster.input_ids)))))
        return chosen

    def _stated_elsewhere(self, chosen: list[_Choice], packed: Packed) -> np.ndarray:
        """Bool (seq,), True = the token's fact is in another packed document too and once only in its own."""
        flags = np.zeros(len(packed.input_ids), dtype=bool)
        if self.documents != "related":
            return flags  # fact numbers of different clusters are unrelated
        marked = [cluster.fact_ids[document] for cluster, document in chosen]
        if self.words is not None:
            marked = word_facts([cluster.input_ids[document] for cluster, document in chosen], self.words)
        facts = [whole_facts(ids, kept=kept) for ids, kept in zip(marked, packed.kept_tokens, strict=True)]
        recoverable = recoverable_facts(facts)
        for number in packed.packed_documents:
            flags[(packed.document == number) & ~packed.is_special] = recoverable[number]
        return flags


def word_facts(documents: list[np.ndarray], words: np.ndarray) -> list[np.ndarray]:
    """A number for each token's word, the same for words of the same tokens in any of the documents; -1 for a
    token without letters and digits, which ends a word. `words`: the result of `word_pieces`.

    Example:
        >>> from cdlm_lab.examples.masking import STARTS
        >>> words = np.array([STARTS, CONTINUES, NO_WORD])
        >>> [ids.tolist() for ids in word_facts([np.array([0, 1, 2, 1]), np.array([0, 0, 1])], words)]
        [[0, 0, -1, 2], [3, 0, 0]]
    """
    known: dict[bytes, int] = {}
    facts = []
    for ids in documents:
        alone = words[ids] == NO_WORD
        place = numbers_of_words(words[ids] == CONTINUES, alone)
        pieces = np.split(ids, np.flatnonzero(np.diff(place)) + 1)
        of_words = np.array([known.setdefault(word.tobytes(), len(known)) for word in pieces])
        facts.append(np.where(alone, NO_FACT, of_words[place]))
    return facts


def whole_facts(fact_ids: np.ndarray, *, kept: int) -> np.ndarray:
    """The fact numbers (-1 = none) of a document's first `kept` tokens, also -1 for a fact that is cut in two
    there."""
    beginning = fact_ids[:kept].copy()
    if 0 < kept < len(fact_ids) and beginning[-1] != NO_FACT and fact_ids[kept] == beginning[-1]:
        others = np.flatnonzero(beginning != beginning[-1])
        beginning[others[-1] + 1 if len(others) else 0 :] = NO_FACT
    return beginning


def recoverable_facts(facts: list[np.ndarray]) -> list[np.ndarray]:
    """Mark the tokens of facts that another of the documents also states and their own document states once:
    bool (tokens,) for each document, from each token's fact number, -1 = none. Adjacent tokens with the same
    number are one statement.

    Example:
        >>> [flags.tolist() for flags in recoverable_facts([np.array([-1, 4, 4, 7]), np.array([4, -1, 4])])]
        [[False, True, True, False], [False, False, False]]
    """
    statements = [_statements(document) for document in facts]
    stated_in = Counter(fact for counts in statements for fact in counts)
    return [
        np.isin(document, [fact for fact, count in counts.items() if count == 1 and stated_in[fact] > 1])
        for document, counts in zip(facts, statements, strict=True)
    ]


def _statements(fact_ids: np.ndarray) -> dict[int, int]:
    """Fact number -> number of separate runs of tokens that state it."""
    starts = fact_ids != np.concatenate([[NO_FACT], fact_ids[:-1]])
    numbers, counts = np.unique(fact_ids[starts & (fact_ids != NO_FACT)], return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))
