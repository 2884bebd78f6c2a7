"""Pairs of documents, sentence by sentence, as hierarchical matchers read them (Zhou et al. 2020, "CDA")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cdlm_lab.data.document_pairs import DocumentPair, PairDocument

from .vocabulary import FILLING, Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceWords:
    """Documents as numbers of words; called with one, it gives int64 (sentences, longest), filled with 0.

    Attributes:
        vocabulary: numbers the words.
        most_sentences, most_words: of a document and of a sentence; the first are kept.

    Raises:
        ValueError: a limit below 1.

    Example: "Rain fell." and "So?", where only `rain` (2) and `.` (3) are known, give [[2, 1, 3], [1, 1, 0]].
    """

    vocabulary: Vocabulary
    most_sentences: int
    most_words: int

    def __post_init__(self) -> None:
        for name in ("most_sentences", "most_words"):
            if (limit := getattr(self, name)) < 1:
                raise ValueError(f"{name} is {limit}; it must be at least 1")

    def __call__(self, document: PairDocument) -> np.ndarray:
        """The words of a document."""
        kept = document.sentences[: self.most_sentences]
        rows = [self.vocabulary.numbers(sentence, most=self.most_words) for sentence in kept]
        words = np.full((len(rows), max(map(len, rows))), FILLING, dtype=np.int64)
        for place, row in zip(words, rows, strict=True):
            place[: len(row)] = row
        return words


@dataclass(frozen=True, kw_only=True, eq=False)
class SentencePairExamples:
    """Map-style dataset of pairs; a document is encoded when it is first read, and kept.

    `examples[i]` is a dict of `first` and `second`, what `encode` makes of the two documents (not to be
    written to), and, if they are wanted, `labels` float32 (), 1 = related, 0 = not.

    Attributes:
        pairs: in order of the examples; documents of one id are the same.
        encode: gives int64 (sentences, words), filled with 0, as `SentenceWords`; or float32 (sentences,
            size).
        labelled: False = leave out `labels`.
    """

    pairs: Sequence[DocumentPair]
    encode: Callable[[PairDocument], np.ndarray]
    labelled: bool = True
    _encoded: dict[str, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        pair = self.pairs[index]
        example = {"first": self._read(pair.first), "second": self._read(pair.second)}
        if self.labelled:
            example["labels"] = np.array(pair.related, dtype=np.float32)
        return example

    def _read(self, document: PairDocument) -> np.ndarray:
        if document.id not in self._encoded:
            self._encoded[document.id] = self.encode(document)
        return self._encoded[document.id]
