"""Tokenised corpora: made once, kept in a memory-mapped Arrow file and read from there afterwards.

Folder of one corpus, `<cache_dir>/<fingerprint>/`: the Arrow file (one row per cluster, or per document of
paragraphs) and `counts.json`, made as `built_once` says. The fingerprint covers all that determines the
contents. Memory use does not grow with the corpus. (`Dataset.from_generator` keeps no
counts, and wraps what the source raises in an error that does not name the line.)
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from datasets import Dataset, Features, List, Value
from datasets.arrow_writer import ArrowWriter
from pydantic import TypeAdapter

from cdlm_lab.data.cache import built_once
from cdlm_lab.data.clusters import LEAST_CHARACTERS
from cdlm_lab.data.records import Cluster, Document, Fact, Paragraphed
from cdlm_lab.errors import check_least
from cdlm_lab.examples.tokens import encode_pieces, tokenise
from cdlm_lab.progress import shared_out, tracked

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


FORMAT_VERSION = 1  # part of every fingerprint; raise it when the columns or their meaning change
COLUMNS = Features(
    {
        "cluster_id": Value("string"),
        "document_ids": List(Value("string")),  # of the documents that have text
        "input_ids": List(List(Value("int32"))),  # of each such document, without special tokens
        "fact_ids": List(List(Value("int32"))),  # of each token the number of its fact in the cluster
    }
)
PARAGRAPH_COLUMNS = Features(
    {
        "document_id": Value("string"),
        "paragraph_sizes": List(Value("int32")),  # number of sentences in each paragraph
        "input_ids": List(List(Value("int32"))),  # of each sentence, without special tokens
    }
)
NO_FACT = -1
_COUNTS_FILE = "counts.json"
_ROWS_AT_ONCE = 64  # rows kept in memory between writes
Counts = TypeVar("Counts")


def tokenizer_fingerprint(tokenizer: PreTrainedTokenizerBase, *parts: str | int) -> str:
    """A hash of 32 hexadecimal digits over the parts and all that affects tokenisation: what the tokenizer
    does, not where it was loaded from."""
    _check_fast(tokenizer)
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    # Settings left over from the last call; no corpus is built with either.
    rules.pop("truncation", None)
    rules.pop("padding", None)
    return hashlib.sha256(json.dumps([*parts, rules], sort_keys=True).encode()).hexdigest()[:32]


def _check_fast(tokenizer: PreTrainedTokenizerBase) -> None:
    if not tokenizer.is_fast:
        raise ValueError(
            f"{type(tokenizer).__name__} is a slow tokenizer, which does not say where in the text a token "
            "stands; load the fast one (a folder with tokenizer.json)"
        )


def _folder(cache_dir: Path, fingerprint: str) -> Path:
    if not re.fullmatch(r"[0-9A-Za-z_-]+", fingerprint):
        what = f"the fingerprint {fingerprint!r} is no file name"
        raise ValueError(f"{what}; take it from the corpus's fingerprint function")
    return Path(cache_dir) / fingerprint


def _built_once(folder: Path, *, arrow_file: str, build: Callable[[Path], Any]) -> Dataset:
    """The corpus in a folder, built first if it is missing: `build` writes the Arrow file to the path it is
    given and returns its counts, a dataclass."""

    def write(new: Path) -> None:
        counts = build(new / arrow_file)
        (new / _COUNTS_FILE).write_text(json.dumps(asdict(counts), indent=2) + "\n", encoding="utf-8")

    built_once(
        folder, write, is_built=lambda at: (at / arrow_file).is_file() and (at / _COUNTS_FILE).is_file()
    )
    try:
        return Dataset.from_file(str(folder / arrow_file))
    except Exception as error:  # pyarrow and datasets raise many kinds for a damaged file
        what = f"{folder / arrow_file} cannot be read ({error})"
        raise ValueError(f"{what}; delete the folder {folder} and run again") from error


def read_counts(cache_dir: Path, kind: type[Counts], *, fingerprint: str) -> Counts:
    """The counts stored with a corpus, CorpusCounts or ParagraphCounts; FileNotFoundError if the corpus has
    not been built."""
    path = _folder(cache_dir, fingerprint) / _COUNTS_FILE
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such tokenised corpus; tokenise it first")
    return TypeAdapter(kind).validate_json(path.read_bytes())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenisedCluster:
    """One row of a corpus of clusters; its arrays are read-only views of the file."""

    id: str
    document_ids: tuple[str, ...]  # of its non-empty documents
    input_ids: tuple[np.ndarray, ...]  # int32 (tokens,) for each document, without special tokens
    fact_ids: tuple[np.ndarray, ...]  # likewise, number of each token's fact in the cluster; -1 = none


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusCounts:
    """Counts over a corpus of clusters. Documents without text are removed from all clusters read, then
    clusters with fewer than `minimum_documents` are dropped; the other counts are of the clusters kept.
    `documents_per_cluster`: number of documents -> number of clusters with so many, ascending."""

    clusters_read: int = 0
    clusters_kept: int = 0
    clusters_dropped: int = 0
    minimum_documents: int = 3
    documents: int = 0
    empty_documents_removed: int = 0
    tokens: int = 0
    longest_document: int = 0
    documents_per_cluster: dict[int, int] = field(default_factory=dict)


def corpus_fingerprint(
    corpus_checksum: str, tokenizer: PreTrainedTokenizerBase, *, minimum_documents: int = 3
) -> str:
    """The name of the cache folder. `corpus_checksum`: identifies everything that determines which clusters
    are read: files, split, size, seed."""
    return tokenizer_fingerprint(tokenizer, FORMAT_VERSION, corpus_checksum, minimum_documents)


def tokenise_clusters(
    clusters: Callable[[], Iterator[Cluster]],
    tokenizer: PreTrainedTokenizerBase,
    *,
    cache_dir: Path,
    fingerprint: str,
    minimum_documents: int = 3,
    expected: int = 0,
    processes: int = 1,
) -> Dataset:
    """The tokenised corpus with this fingerprint, built first if it is missing: a memory-mapped dataset of
    COLUMNS, one row per cluster, in the order of the source, for `read_cluster`; `read_counts` returns its
    counts.

    The paper (section 2.3) uses clusters of at least 3 documents. Empty documents are removed BEFORE
    counting; the released code counts them, so a trailing separator in a corpus file lets clusters of two
    documents in.

    Args:
        clusters: yields the clusters; called only if the corpus must be built.
        tokenizer: a fast one, for the character offsets of tokens.
        minimum_documents: clusters with fewer non-empty documents are dropped and counted.
        expected: number of clusters that `clusters` yields, to estimate the time left; 0 = unknown.
        processes: number of processes that tokenise; the corpus is the same for any.
    """
    _check_fast(tokenizer)
    check_least(minimum_documents=minimum_documents)

    def build(path: Path) -> CorpusCounts:
        source = tracked(clusters(), desc="tokenising", unit="cluster", total=expected)
        rows = shared_out(partial(encode_cluster, tokenizer=tokenizer), source, processes=processes)
        return _write_clusters(rows, path, minimum_documents=minimum_documents)

    return _built_once(_folder(cache_dir, fingerprint), arrow_file="clusters.arrow", build=build)


def encode_cluster(cluster: Cluster, tokenizer: PreTrainedTokenizerBase) -> tuple[dict[str, Any], int]:
    """The row of a cluster (columns: COLUMNS), and how many documents without text are left out of it.

    A token belongs to a fact if its characters overlap the fact's; where facts overlap, to the one that
    starts first. Facts are numbered in the order in which they first appear in the cluster, -1 = none.
    """
    row: dict[str, Any] = {"cluster_id": cluster.id, "document_ids": [], "input_ids": [], "fact_ids": []}
    written = [document for document in cluster.documents if document.text.strip()]
    if written:
        encoded = tokenise([document.text for document in written], tokenizer, return_offsets_mapping=True)
        facts = [fact.id for document in written for fact in _in_order(document)]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(facts))}
        offsets_of = encoded["offset_mapping"]
        for document, ids, offsets in zip(written, encoded["input_ids"], offsets_of, strict=True):
            if ids:
                row["document_ids"].append(document.id)
                row["input_ids"].append(np.array(ids, dtype=np.int32))
                row["fact_ids"].append(_fact_of_tokens(document, np.array(offsets), numbers=numbers))
    return row, len(cluster.documents) - len(row["input_ids"])


def _in_order(document: Document) -> Sequence[Fact]:
    return sorted(document.facts, key=lambda fact: fact.start)


def _fact_of_tokens(document: Document, offsets: np.ndarray, *, numbers: dict[str, int]) -> np.ndarray:
    """Number of each token's fact, int32 (tokens,), from offsets (tokens, 2), half-open character ranges."""
    fact_ids = np.full(len(offsets), NO_FACT, dtype=np.int32)
    starts, ends = offsets[:, 0], offsets[:, 1]
    for fact in _in_order(document):
        fact_ids[(starts < fact.end) & (ends > fact.start) & (fact_ids == NO_FACT)] = numbers[fact.id]
    return fact_ids


def _write_clusters(
    rows: Iterator[tuple[dict[str, Any], int]], path: Path, *, minimum_documents: int
) -> CorpusCounts:
    sums: Counter[str] = Counter()
    sizes: Counter[int] = Counter()
    longest = 0
    with ArrowWriter(path=str(path), features=COLUMNS, writer_batch_size=_ROWS_AT_ONCE) as writer:
        for row, empty in rows:
            lengths = [len(ids) for ids in row["input_ids"]]
            sums.update(clusters_read=1, empty_documents_removed=empty)
            if len(lengths) < minimum_documents:
                sums["clusters_dropped"] += 1
                continue
            writer.write(row)
            sums.update(clusters_kept=1, documents=len(lengths), tokens=sum(lengths))
            sizes[len(lengths)] += 1
            longest = max(longest, *lengths)
        writer.finalize()
    if not sums["clusters_kept"]:
        raise ValueError(
            f"none of the {sums['clusters_read']:,} clusters has at least {minimum_documents} non-empty "
            "documents; lower minimum_documents, or check how the corpus separates documents"
        )
    return CorpusCounts(
        **sums,
        minimum_documents=minimum_documents,
        longest_document=longest,
        documents_per_cluster=dict(sorted(sizes.items())),
    )


def read_cluster(corpus: Dataset, row: int) -> TokenisedCluster:
    """Read one row without converting tokens to Python integers; `corpus` must have the format "arrow"."""
    table = corpus[row]
    return TokenisedCluster(
        id=table["cluster_id"][0].as_py(),
        document_ids=tuple(table["document_ids"][0].as_py()),
        input_ids=tuple(_arrays(table["input_ids"][0].values)),
        fact_ids=tuple(_arrays(table["fact_ids"][0].values)),
    )


def _arrays(lists: Any) -> Iterator[np.ndarray]:
    """Views into an Arrow array of lists, one per document."""
    values = lists.values.to_numpy()
    for start, end in pairwise(lists.offsets.to_numpy()):
        yield values[start:end]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenisedDocument:
    """One row of a corpus of paragraphs; `tokens` is a read-only view of the file. Sentences are not
    truncated; a layout truncates them when an example is made."""

    id: str
    tokens: np.ndarray  # int32 (tokens,), of all sentences, no special tokens
    ends: np.ndarray  # int32 (sentences + 1,), 0, then the end of each sentence in `tokens`
    paragraphs: np.ndarray  # int64 (sentences,), number of each sentence's paragraph, ascending from 0

    def sentence(self, number: int) -> np.ndarray:
        """The tokens of sentence `number`, counted from 0; int32 (tokens,), a view."""
        return self.tokens[self.ends[number] : self.ends[number + 1]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParagraphCounts:
    """Counts over a corpus of paragraphs: all documents of the source, those kept because they have a
    sentence, and the contents of these."""

    documents_read: int = 0
    documents_kept: int = 0
    paragraphs: int = 0
    sentences: int = 0
    tokens: int = 0
    longest_sentence: int = 0


def paragraph_fingerprint(corpus_checksum: str, tokenizer: PreTrainedTokenizerBase) -> str:
    """The name of the cache folder. `corpus_checksum`: identifies all that decides which texts are read."""
    return tokenizer_fingerprint(tokenizer, "paragraphs", FORMAT_VERSION, corpus_checksum)


def tokenise_paragraphs(
    documents: Callable[[], Iterator[Paragraphed]],
    tokenizer: PreTrainedTokenizerBase,
    *,
    cache_dir: Path,
    fingerprint: str,
    processes: int = 1,
) -> Dataset:
    """The tokenised corpus with this fingerprint (of source and tokenizer), built first if it is missing: a
    memory-mapped dataset of PARAGRAPH_COLUMNS, one row per document, in the order of the source, for
    `read_document`; `read_counts` returns its counts. Sentences without a token are left out, as
    are paragraphs and documents of which nothing remains. `documents` is called only if the corpus must be
    built; `processes` is the number of processes that tokenise, with the same result for any."""
    _check_fast(tokenizer)

    def build(path: Path) -> ParagraphCounts:
        source = tracked(documents(), desc="tokenising", unit="document")
        rows = shared_out(partial(_encoded_paragraphs, tokenizer=tokenizer), source, processes=processes)
        return _write_paragraphs(rows, path)

    return _built_once(_folder(cache_dir, fingerprint), arrow_file="paragraphs.arrow", build=build)


def _encoded_paragraphs(document: Paragraphed, *, tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """The row of a document, with the columns PARAGRAPH_COLUMNS."""
    texts = [text for paragraph in document.paragraphs for text in paragraph]
    encoded = iter(encode_pieces(texts, tokenizer))
    read = [[ids for ids in islice(encoded, len(paragraph)) if len(ids)] for paragraph in document.paragraphs]
    filled = [paragraph for paragraph in read if paragraph]
    return {
        "document_id": document.id,
        "paragraph_sizes": [len(paragraph) for paragraph in filled],
        "input_ids": [ids for paragraph in filled for ids in paragraph],
    }


def _write_paragraphs(rows: Iterator[dict[str, Any]], path: Path) -> ParagraphCounts:
    sums: Counter[str] = Counter()
    longest = 0
    with ArrowWriter(path=str(path), features=PARAGRAPH_COLUMNS, writer_batch_size=_ROWS_AT_ONCE) as writer:
        for row in rows:
            sums["documents_read"] += 1
            if lengths := [len(ids) for ids in row["input_ids"]]:
                writer.write(row)
                sums.update(documents_kept=1, paragraphs=len(row["paragraph_sizes"]))
                sums.update(sentences=len(lengths), tokens=sum(lengths))
                longest = max(longest, *lengths)
        writer.finalize()
    if not sums["documents_kept"]:
        what = f"none of the {sums['documents_read']:,} documents has a sentence"
        raise ValueError(f"{what}; those of fewer than {LEAST_CHARACTERS} characters do not count")
    return ParagraphCounts(**sums, longest_sentence=longest)


def read_document(corpus: Dataset, row: int) -> TokenisedDocument:
    """Read one row without converting tokens to Python integers; `corpus` must have the format "arrow"."""
    table = corpus[row]
    sizes = table["paragraph_sizes"][0].values.to_numpy()
    sentences = table["input_ids"][0].values
    offsets = sentences.offsets.to_numpy()
    return TokenisedDocument(
        id=table["document_id"][0].as_py(),
        tokens=sentences.values.to_numpy()[offsets[0] : offsets[-1]],
        ends=offsets - offsets[0],
        paragraphs=np.repeat(np.arange(len(sizes)), sizes),
    )
