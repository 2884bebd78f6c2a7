"""Examples of paragraph pre-training: which of k sentences are from the same paragraph as s_0 (Di Liello et
al. 2022, "MSPP", section 3.4)?

s_0 is drawn from a paragraph P of a document D; then k_1 other sentences of P, the positives, k_2 sentences
of other paragraphs of D, the hard negatives, and k_3 sentences of other documents, the easy negatives. The
candidates are in random order, and tokens of all sentences are masked for the language model. All random
choices are a pure function of (seed, epoch, index).

Choices where the paper is silent:
- each pass has every paragraph that can be P once, in an order of its own; s_0 is any of its sentences. P has
  k_1 + 1 sentences or more, and D has another paragraph;
- hard negatives that D does not have are taken from other documents, and counted;
- each easy negative comes from another document drawn uniformly, even one on the same event as D;
- no negative has the same tokens as a sentence of P or another negative, after truncation to L: news repeats
  itself, and a copy of a sentence of P would be labelled wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from datasets import Dataset

from cdlm_lab.examples.cached_corpus import TokenisedDocument, read_document
from cdlm_lab.examples.masking import NOT_MASKED, mask_tokens
from cdlm_lab.examples.passes import Passes
from cdlm_lab.examples.tokens import SpecialTokens
from cdlm_lab.tasks.joint.examples import JointLayout, JointSequence, joint_sequence

KINDS = SAME_PARAGRAPH, SAME_DOCUMENT, OTHER_DOCUMENT = "same paragraph", "same document", "other document"
_ORDER, _SENTENCES, _MASKS = range(3)  # independent random streams of one seed
_ROWS_AT_ONCE = 10_000  # documents whose paragraph sizes are read at a time
_TRIES = 100  # draws of an easy negative before other documents are assumed to hold only copies


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnSentence:
    """A sentence of a tokenised corpus."""

    document_id: str  # id of its document
    row: int  # row of that document in the corpus
    number: int  # index of the sentence in the document
    kind: str  # its relation to s_0, one of KINDS
    tokens: np.ndarray  # int32 (tokens,), before truncation


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCounts:
    """Numbers of documents and paragraphs that examples are drawn from."""

    documents: int  # all; easy negatives come from any of them
    source_documents: int  # those with a paragraph that can be P
    sources: int  # paragraphs that can be P = examples in a pass
    short_of_hard: int  # sources whose document has fewer than k_2 sentences in other paragraphs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParagraphExample:
    """One example with all its details, for the preview before training."""

    index: int  # of the example
    epoch: int  # pass over the sources, from 0
    sentences: tuple[DrawnSentence, ...]  # s_0 ... s_k; s_0 is of the kind "same paragraph"
    replaced: int  # number of hard negatives taken from other documents
    sequence: JointSequence  # before masking, with the number of tokens cut per sentence
    input_ids: np.ndarray  # int64 (tokens,), what the model reads
    labels: np.ndarray  # int64 (k,), 1 = of the same paragraph as s_0
    mlm_labels: np.ndarray  # int64 (tokens,), the original id of masked tokens, -100 elsewhere

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """The arrays that the collate function takes."""
        made = {"input_ids": self.input_ids, "labels": self.labels, "mlm_labels": self.mlm_labels}
        return self.sequence.inputs | made


@dataclass(frozen=True, kw_only=True, eq=False)
class ParagraphTasks:
    """Map-style dataset of training or evaluation examples; read it in order, since it is already shuffled.

    `tasks[i]` is a dict of int64 arrays: `input_ids`, `token_type_ids`, `position_ids`, `mlm_labels` (-100 =
    not masked), all (tokens,); `starts` (k + 1,), position of each sentence's first token; `labels` (k,), 1 =
    same paragraph as sentence 0.

    Creating the dataset reads one number per paragraph of the corpus, and keeps 12 bytes for each paragraph
    that can be P and 8 for its place in a pass. An example reads only the rows it draws from.
    """

    corpus: Dataset  # from `tokenise_paragraphs`, or a selection of it
    layout: JointLayout  # of the sequence; with k_1 + k_2 + k_3 + 1 sentences
    special: SpecialTokens
    k: tuple[int, int, int] = (1, 2, 2)  # (k_1, k_2, k_3)
    mask_probability: float = 0.15  # for each token that is not special; 0 = no masking
    seed: int = 0  # not negative; determines everything random
    size: int | None = None  # total examples, in as many passes as needed; None = one pass
    counts: TaskCounts = field(init=False)
    _documents: Dataset = field(init=False, repr=False)
    _rows: np.ndarray = field(init=False, repr=False)  # int64 (sources,), row of the document
    _paragraphs: np.ndarray = field(init=False, repr=False)  # int32 (sources,), index in the document
    _passes: Passes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rows, paragraphs, counts = _sources(self.corpus, k=self.k)
        if not counts.sources:
            raise ValueError(
                f"none of the {counts.documents:,} documents has a paragraph of {self.k[0] + 1} or more "
                "sentences and another paragraph; check that line breaks end the paragraphs of the corpus"
            )
        if counts.documents < 2 and (self.k[2] or counts.short_of_hard):
            what = "the corpus has one document only, and negatives are to come from others"
            raise ValueError(f"{what}; add documents")
        made = {
            "counts": counts,
            "_documents": self.corpus.with_format("arrow"),
            "_rows": rows,
            "_paragraphs": paragraphs,
            "_passes": Passes(items=len(rows), seed=self.seed, stream=_ORDER, size=self.size),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self._passes)

    @property
    def source_rows(self) -> np.ndarray:
        """The row of the document of each paragraph that can be asked about; int64 (sources,)."""
        return self._rows

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        return self.describe(index).inputs

    def describe(self, index: int) -> ParagraphExample:
        """One example with all its details."""
        epoch, source = self._passes.item(index)
        drawn = self._drawn(source, generator=self._passes.generator(_SENTENCES, epoch, source))
        pieces = [sentence.tokens for sentence in drawn]
        sequence = joint_sequence(pieces, layout=self.layout, special=self.special)
        input_ids, mlm_labels = sequence.input_ids, np.full(len(sequence.input_ids), NOT_MASKED)
        if self.mask_probability:
            input_ids, mlm_labels = mask_tokens(
                input_ids,
                np.ones(len(input_ids), dtype=bool),  # special tokens are never masked anyway
                generator=self._passes.generator(_MASKS, epoch, source),
                special=self.special,
                probability=self.mask_probability,
            )
        kinds = [sentence.kind for sentence in drawn[1:]]
        return ParagraphExample(
            index=index,
            epoch=epoch,
            sentences=tuple(drawn),
            replaced=self.k[1] - kinds.count(SAME_DOCUMENT),
            sequence=sequence,
            input_ids=input_ids,
            labels=np.array([kind == SAME_PARAGRAPH for kind in kinds], dtype=np.int64),
            mlm_labels=mlm_labels,
        )

    def _drawn(self, source: int, *, generator: np.random.Generator) -> list[DrawnSentence]:
        """Draw the sentences s_0 ... s_k."""
        row, paragraph = int(self._rows[source]), int(self._paragraphs[source])
        own = read_document(self._documents, row)
        inside, outside = (
            np.flatnonzero(chosen) for chosen in (own.paragraphs == paragraph, own.paragraphs != paragraph)
        )
        numbers = generator.choice(inside, size=1 + self.k[0], replace=False)
        first, *positives = (_sentence(own, row, number, SAME_PARAGRAPH) for number in numbers)
        read = {self._as_read(own.sentence(number)) for number in inside}
        near = (_sentence(own, row, number, SAME_DOCUMENT) for number in generator.permutation(outside))
        hard = self._unlike(read, near, count=self.k[1])
        missing = sum(self.k[1:]) - len(hard)
        far = islice(self._elsewhere(row, generator), _TRIES * missing)
        easy = self._unlike(read, far, count=missing)
        if len(easy) < missing:
            raise ValueError(
                f"document {own.id!r}: {missing - len(easy)} of {sum(self.k[1:])} negatives not found, for "
                "other documents only repeat what is there; add documents, or take copies out of the corpus"
            )
        candidates = [*positives, *hard, *easy]
        return [first, *(candidates[place] for place in generator.permutation(len(candidates)))]

    def _elsewhere(self, row: int, generator: np.random.Generator) -> Iterator[DrawnSentence]:
        """Endless random sentences from documents other than `row`; none if there is no other document."""
        while (others := len(self.corpus) - 1) > 0:
            other = int(generator.integers(others))
            other += other >= row  # all rows but this one
            document = read_document(self._documents, other)
            yield _sentence(document, other, generator.integers(len(document.paragraphs)), OTHER_DOCUMENT)

    def _unlike(self, read: set[bytes], drawn: Iterator[DrawnSentence], *, count: int) -> list[DrawnSentence]:
        """The first `count` of `drawn`, or fewer, whose tokens are not in `read`, to which they are added."""
        unlike: list[DrawnSentence] = []
        while len(unlike) < count and (sentence := next(drawn, None)):
            text = self._as_read(sentence.tokens)
            if text not in read:
                read.add(text)
                unlike.append(sentence)
        return unlike

    def _as_read(self, tokens: np.ndarray) -> bytes:
        """The tokens of a sentence after truncation by the layout, as bytes."""
        return tokens[: self.layout.length - 1].tobytes()


def _sentence(document: TokenisedDocument, row: int, number: int, kind: str) -> DrawnSentence:
    tokens = document.sentence(number)
    return DrawnSentence(document_id=document.id, row=row, number=int(number), kind=kind, tokens=tokens)


def _sources(corpus: Dataset, *, k: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, TaskCounts]:
    """Row of the document, int64, and index in it, int32, of each paragraph that can be P; and counts."""
    rows, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
    first = source_documents = short = 0
    columns = corpus.select_columns(["paragraph_sizes"]).with_format("arrow")
    for table in columns.iter(batch_size=_ROWS_AT_ONCE):
        lists = table["paragraph_sizes"].combine_chunks()
        sizes = lists.flatten().to_numpy()  # (paragraphs,)
        paragraphs = lists.value_lengths().to_numpy()  # (documents,)
        starts = paragraphs.cumsum() - paragraphs
        document = np.repeat(np.arange(len(paragraphs)), paragraphs)  # (paragraphs,)
        elsewhere = np.add.reduceat(sizes, starts)[document] - sizes  # sentences in D's other paragraphs
        usable = (sizes > k[0]) & ((elsewhere > 0) | (k[1] == 0))
        rows.append(first + document[usable])
        numbers.append((np.arange(len(sizes)) - starts[document])[usable].astype(np.int32))
        source_documents += len(np.unique(document[usable]))
        short += int((usable & (elsewhere < k[1])).sum())
        first += len(paragraphs)
    counts = TaskCounts(
        documents=len(corpus),
        source_documents=source_documents,
        sources=sum(map(len, rows)),
        short_of_hard=short,
    )
    return np.concatenate(rows), np.concatenate(numbers), counts
