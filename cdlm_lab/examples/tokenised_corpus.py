"""Clusters of documents, tokenised once into a memory-mapped Arrow file and read from there ever after.

Folder of one tokenised corpus, `<cache_dir>/<fingerprint>/`: `clusters.arrow` (one row a cluster) and
`counts.json`, made as `arrow_folder` says. Memory stays the same however large the corpus is.

The paper (section 2.3) uses clusters of at least 3 documents. Empty documents are removed BEFORE counting;
the released code counts them, so that a trailing separator in a corpus file lets clusters of two documents
in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from datasets import Dataset, Features, List, Value
from datasets.arrow_writer import ArrowWriter

from cdlm_lab.data.records import Cluster
from cdlm_lab.progress import tracked
from cdlm_lab.ranks import shared_out

from .arrow_folder import built_once, check_fast, kept_counts, tokenizer_fingerprint
from .encode_cluster import EncodedCluster, encode_cluster

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FORMAT_VERSION = 1  # part of every fingerprint; raise it when the columns or their meaning change
COLUMNS = Features(
    {
        "cluster_id": Value("string"),
        "document_ids": List(Value("string")),
        "input_ids": List(List(Value("int32"))),
        "fact_ids": List(List(Value("int32"))),
    }
)
_ARROW_FILE = "clusters.arrow"
_CLUSTERS_AT_ONCE = 64  # rows kept in memory before they are written


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenisedCluster:
    """One row of a tokenised corpus.

    Attributes:
        id: of the cluster.
        document_ids: of its non-empty documents.
        input_ids: of each document int32 (tokens,), no special tokens; views of the file, not to be written
            to.
        fact_ids: of each document int32 (tokens,): the number, within the cluster, of the fact a token
            belongs to; -1 = none.
    """

    id: str
    document_ids: tuple[str, ...]
    input_ids: tuple[np.ndarray, ...]
    fact_ids: tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusCounts:
    """What went into a tokenised corpus.

    Attributes:
        clusters_read: all clusters of the source.
        clusters_kept: those with enough non-empty documents.
        clusters_dropped: those with fewer.
        minimum_documents: how many are enough.
        documents: in the clusters kept.
        empty_documents_removed: documents without text in all clusters read.
        tokens: of the documents, special tokens not counted.
        longest_document: tokens of the longest one.
        documents_per_cluster: number of documents -> number of clusters kept that have so many, ascending.
    """

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
    """Name of the cache folder: 32 hexadecimal digits that change with anything that changes the tokens.

    Args:
        corpus_checksum: names everything that decides which clusters are read: files, split, size, seed.
        tokenizer: a fast one; hashed is what it does, not where it was loaded from.
        minimum_documents: as for `tokenise_clusters`.

    Raises:
        ValueError: a tokenizer that is not a fast one.
    """
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
    """The tokenised corpus of that fingerprint, made first if it is not there yet.

    Args:
        clusters: gives the clusters one by one; called only if the corpus must be made.
        tokenizer: a fast one, for the character offsets of tokens.
        cache_dir: holds one folder for each fingerprint; created if missing.
        fingerprint: from `corpus_fingerprint`.
        minimum_documents: clusters with fewer non-empty documents are dropped and counted.
        expected: how many clusters `clusters` gives, for the time left; 0 = not known.
        processes: that tokenise; the corpus is the same with any number.

    Returns:
        A memory-mapped dataset with the columns `cluster_id`, `document_ids`, `input_ids` and `fact_ids`, one
        row a cluster, in the order of the source. `read_cluster` reads a row, `read_counts` the counts.

    Raises:
        ValueError: no cluster is large enough; `minimum_documents` below 1; a slow tokenizer; a fingerprint
            that is no file name; a file in the cache that cannot be read. Whatever reading the source raises
            passes through; nothing is left behind.
    """
    check_fast(tokenizer)
    if minimum_documents < 1:
        raise ValueError(f"minimum_documents is {minimum_documents}; it must be at least 1 (the paper: 3)")
    return built_once(
        cache_dir,
        fingerprint=fingerprint,
        arrow_file=_ARROW_FILE,
        build=lambda path: _write_arrow(
            tracked(clusters(), desc="tokenising", unit="cluster", total=expected),
            tokenizer,
            path=path,
            minimum_documents=minimum_documents,
            processes=processes,
        ),
    )


def read_counts(cache_dir: Path, *, fingerprint: str) -> CorpusCounts:
    """The counts kept beside a tokenised corpus.

    Raises:
        FileNotFoundError: no such corpus has been made.
    """
    values = kept_counts(cache_dir, fingerprint=fingerprint, maker="tokenise_clusters")
    per_cluster = {int(size): count for size, count in values.pop("documents_per_cluster").items()}
    return CorpusCounts(**values, documents_per_cluster=per_cluster)


def read_cluster(corpus: Dataset, row: int) -> TokenisedCluster:
    """Read one row without turning tokens into Python numbers.

    Args:
        corpus: from `tokenise_clusters`, or a selection of it, in the format `corpus.with_format("arrow")`.
        row: 0 to `len(corpus) - 1`.
    """
    table = corpus[row]
    return TokenisedCluster(
        id=table["cluster_id"][0].as_py(),
        document_ids=tuple(table["document_ids"][0].as_py()),
        input_ids=tuple(_arrays(table["input_ids"][0].values)),
        fact_ids=tuple(_arrays(table["fact_ids"][0].values)),
    )


def _arrays(lists) -> Iterator[np.ndarray]:
    """Views into an Arrow array of lists, one a document."""
    offsets = lists.offsets.to_numpy()
    values = lists.values.to_numpy()
    for start, end in pairwise(offsets):
        yield values[start:end]


def _encoded(cluster: Cluster, *, tokenizer: PreTrainedTokenizerBase) -> tuple[EncodedCluster, int]:
    """The row of a cluster, and how many documents are not in it."""
    row = encode_cluster(cluster, tokenizer)
    return row, len(cluster.documents) - len(row["input_ids"])


def _write_arrow(
    clusters: Iterator[Cluster],
    tokenizer: PreTrainedTokenizerBase,
    *,
    path: Path,
    minimum_documents: int,
    processes: int,
) -> CorpusCounts:
    """Stream the clusters into an Arrow file."""
    sums: Counter[str] = Counter()
    sizes: Counter[int] = Counter()
    longest = 0
    with ArrowWriter(path=str(path), features=COLUMNS, writer_batch_size=_CLUSTERS_AT_ONCE) as writer:
        encode = partial(_encoded, tokenizer=tokenizer)
        for row, empty in shared_out(encode, clusters, processes=processes):
            lengths = [len(ids) for ids in row["input_ids"]]
            sums["clusters_read"] += 1
            sums["empty_documents_removed"] += empty
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
