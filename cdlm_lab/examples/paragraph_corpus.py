"""Documents as paragraphs of sentences, tokenised once into a memory-mapped Arrow file.

Folder of one tokenised corpus, `<cache_dir>/<fingerprint>/`: `paragraphs.arrow` (one row a document) and
`counts.json`, made as `arrow_folder` says. Memory stays the same however large the corpus is. Sentences are
kept whole; a layout cuts them when an example is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from datasets import Dataset, Features, List, Value
from datasets.arrow_writer import ArrowWriter

from cdlm_lab.data.paragraphs import LEAST_CHARACTERS, Paragraphed
from cdlm_lab.progress import tracked
from cdlm_lab.ranks import shared_out

from .arrow_folder import built_once, check_fast, kept_counts, tokenizer_fingerprint
from .joint_sequence import encode_pieces

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FORMAT_VERSION = 1  # part of every fingerprint; raise it when columns, or what `paragraphed` does, change
COLUMNS = Features(
    {
        "document_id": Value("string"),
        "paragraph_sizes": List(Value("int32")),  # sentences of each paragraph
        "input_ids": List(List(Value("int32"))),  # of each sentence, without special tokens
    }
)
_ARROW_FILE = "paragraphs.arrow"
_DOCUMENTS_AT_ONCE = 64  # rows kept in memory before they are written


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenisedDocument:
    """One row of a tokenised corpus.

    Attributes:
        id: of the document.
        tokens: int32 (tokens,), of all sentences, no special tokens; a view of the file, not to be written
            to.
        ends: int32 (sentences + 1,), 0 and then where in `tokens` each sentence ends.
        paragraphs: int64 (sentences,), the number of the paragraph each sentence is of, ascending from 0.
    """

    id: str
    tokens: np.ndarray
    ends: np.ndarray
    paragraphs: np.ndarray

    def sentence(self, number: int) -> np.ndarray:
        """The tokens of a sentence, counted from 0; int32 (tokens,), a view."""
        return self.tokens[self.ends[number] : self.ends[number + 1]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParagraphCounts:
    """What went into a tokenised corpus.

    Attributes:
        documents_read: all documents of the source.
        documents_kept: those with a sentence.
        paragraphs, sentences, tokens: of the documents kept; special tokens not counted.
        longest_sentence: tokens of the longest one.
    """

    documents_read: int = 0
    documents_kept: int = 0
    paragraphs: int = 0
    sentences: int = 0
    tokens: int = 0
    longest_sentence: int = 0


def paragraph_fingerprint(corpus_checksum: str, tokenizer: PreTrainedTokenizerBase) -> str:
    """Name of the cache folder: 32 hexadecimal digits that change with anything that changes the tokens.

    Args:
        corpus_checksum: names everything that decides which documents are read: files, split, size, seed.
        tokenizer: a fast one; hashed is what it does, not where it was loaded from.

    Raises:
        ValueError: a tokenizer that is not a fast one.
    """
    return tokenizer_fingerprint(tokenizer, "paragraphs", FORMAT_VERSION, corpus_checksum)


def tokenise_paragraphs(
    documents: Callable[[], Iterator[Paragraphed]],
    tokenizer: PreTrainedTokenizerBase,
    *,
    cache_dir: Path,
    fingerprint: str,
    processes: int = 1,
) -> Dataset:
    """The tokenised corpus of that fingerprint, made first if it is not there yet.

    Args:
        documents: gives the documents one by one; called only if the corpus must be made.
        tokenizer: a fast one.
        cache_dir: holds one folder for each fingerprint; created if missing.
        fingerprint: from `paragraph_fingerprint`.
        processes: that tokenise; the corpus is the same with any number.

    Returns:
        A memory-mapped dataset with the columns `document_id`, `paragraph_sizes` and `input_ids`, one row a
        document, in the order of the source. Sentences without a token are left out, as are paragraphs and
        documents of which nothing remains. `read_document` reads a row, `read_paragraph_counts` the counts.

    Raises:
        ValueError: no document has a sentence; a slow tokenizer; a fingerprint that is no file name; a file
            in the cache that cannot be read. Whatever reading the source raises passes through; nothing is
            left behind.
    """
    check_fast(tokenizer)
    return built_once(
        cache_dir,
        fingerprint=fingerprint,
        arrow_file=_ARROW_FILE,
        build=lambda path: _write_arrow(
            tracked(documents(), desc="tokenising", unit="document"),
            tokenizer,
            path=path,
            processes=processes,
        ),
    )


def read_paragraph_counts(cache_dir: Path, *, fingerprint: str) -> ParagraphCounts:
    """The counts kept beside a tokenised corpus.

    Raises:
        FileNotFoundError: no such corpus has been made.
    """
    return ParagraphCounts(**kept_counts(cache_dir, fingerprint=fingerprint, maker="tokenise_paragraphs"))


def read_document(corpus: Dataset, row: int) -> TokenisedDocument:
    """Read one row without turning tokens into Python numbers.

    Args:
        corpus: from `tokenise_paragraphs`, or a selection of it, in the format `corpus.with_format("arrow")`.
        row: 0 to `len(corpus) - 1`.
    """
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


def _write_arrow(
    documents: Iterator[Paragraphed], tokenizer: PreTrainedTokenizerBase, *, path: Path, processes: int
) -> ParagraphCounts:
    """Stream the documents into an Arrow file."""
    sums: Counter[str] = Counter()
    longest = 0
    with ArrowWriter(path=str(path), features=COLUMNS, writer_batch_size=_DOCUMENTS_AT_ONCE) as writer:
        encode = partial(_encoded, tokenizer=tokenizer)
        for row in shared_out(encode, documents, processes=processes):
            sums["documents_read"] += 1
            lengths = [len(ids) for ids in row["input_ids"]]
            if not lengths:
                continue
            writer.write(row)
            sums.update(documents_kept=1, paragraphs=len(row["paragraph_sizes"]))
            sums.update(sentences=len(lengths), tokens=sum(lengths))
            longest = max(longest, *lengths)
        writer.finalize()
    if not sums["documents_kept"]:
        raise ValueError(
            f"none of the {sums['documents_read']:,} documents has a sentence; those of fewer than "
            f"{LEAST_CHARACTERS} characters do not count"
        )
    return ParagraphCounts(**sums, longest_sentence=longest)


def _encoded(document: Paragraphed, *, tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """The row of a document."""
    texts = [text for paragraph in document.paragraphs for text in paragraph]
    encoded = iter(encode_pieces(texts, tokenizer))
    read = [[ids for ids in islice(encoded, len(paragraph)) if len(ids)] for paragraph in document.paragraphs]
    filled = [paragraph for paragraph in read if paragraph]
    return {
        "document_id": document.id,
        "paragraph_sizes": [len(paragraph) for paragraph in filled],
        "input_ids": [ids for paragraph in filled for ids in paragraph],
    }
