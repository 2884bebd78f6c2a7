"""Encodings of words kept on disk: each sentence is computed once, whatever document, split or run it is in,
and read where it lies (Joerke et al. 2020, "Doc-ARC", section 2.2: "cache these representations in CPU
memory").

They lie in `<folder>/<fingerprint of the encoder>_half/`, or without `_half` in float32: a row for each word
of a sentence, under the hash of its words; how, says encoding_store.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from cdlm_lab.models.encoding_store import EncodingStore, key_of
from cdlm_lab.models.word_encoder import WordEncoder

PIECE = 256  # sentences that are computed before they are written
BETWEEN_WORDS = "\n"


class WordEncodings:
    """The encodings of one encoder below `folder`, which is made where it is not there.

    Args:
        half: True = they are kept in float16, in half the room; False = in float32, as they are computed.

    Raises:
        DataError: its files do not fit each other or the encoder.
    """

    def __init__(self, encoder: WordEncoder, folder: str | os.PathLike[str], *, half: bool = True) -> None:
        self._encoder = encoder
        self.folder = Path(folder) / f"{encoder.fingerprint}{'_half' if half else ''}"
        self._store = EncodingStore(self.folder, size=encoder.size, half=half, ragged=True)

    @property
    def size(self) -> int:
        """Of a vector."""
        return self._encoder.size

    def __len__(self) -> int:
        """Sentences that are known."""
        return len(self._store)

    def ensure(self, sentences: Iterable[Sequence[str]], *, name: str = "encoding") -> None:
        """Compute what is missing, with a bar called `name`.

        Raises:
            ValueError: a sentence is too long for the encoder, or has a word with a line feed; an encoding
                does not fit half precision.
        """
        wanted = {_key(words): words for words in sentences if words}
        self._store.fill(wanted, self._encoder.encode, piece=PIECE, name=name)

    def rows(self, sentence: Sequence[str]) -> np.ndarray:
        """The encodings of the words of a sentence: (words, size), float16 or float32, read-only: a part of
        the memory-mapped file. If it is missing it is computed; for many that is faster with `ensure`
        beforehand."""
        if not sentence:
            return self._store.table[:0]
        key = _key(sentence)
        if key not in self._store:
            self.ensure([sentence])
        first, stop = self._store.span(key)
        return self._store.table[first:stop]


def _key(words: Sequence[str]) -> bytes:
    """Different for different words. Raises ValueError for a line feed in a word."""
    text = BETWEEN_WORDS.join(words)
    if text.count(BETWEEN_WORDS) != len(words) - 1:
        number = next(number for number, word in enumerate(words) if BETWEEN_WORDS in word)
        raise ValueError(f"word {number}, {words[number]!r}, has a line feed in it; take it out")
    return key_of(text)
