"""Encodings of sentences kept on disk: each is computed once, whatever document, split or run it is in.

They lie in `<folder>/<fingerprint of the encoder>/`, a row for each sentence in float32, under the hash of
its text; how, says encoding_store.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from cdlm_lab.models.encoding_store import EncodingStore, key_of
from cdlm_lab.models.sentence_encoder import SentenceEncoder

PIECE = 512  # sentences that are computed before they are written


class SentenceEncodings:
    """The encodings of one encoder below `folder`, which is made where it is not there.

    Raises:
        DataError: its files do not fit each other or the encoder.
    """

    def __init__(self, encoder: SentenceEncoder, folder: str | os.PathLike[str]) -> None:
        self._encoder = encoder
        self.folder = Path(folder) / encoder.fingerprint
        self._store = EncodingStore(self.folder, size=encoder.size)

    @property
    def size(self) -> int:
        """Of a vector."""
        return self._encoder.size

    def __len__(self) -> int:
        """Sentences that are known."""
        return len(self._store)

    def ensure(self, sentences: Iterable[str], *, name: str = "encoding") -> None:
        """Compute what is missing, with a bar called `name`."""
        wanted = {key_of(sentence): sentence for sentence in sentences}
        self._store.fill(wanted, self._encoder.encode, piece=PIECE, name=name)

    def vectors(self, sentences: Sequence[str]) -> np.ndarray:
        """The encodings of sentences: (sentences, size), float32. What is missing is computed; for many
        documents that is faster with `ensure` beforehand."""
        self.ensure(sentences)
        rows = np.array([self._store.span(key_of(sentence))[0] for sentence in sentences], dtype=np.int64)
        return np.array(self._store.table[rows], dtype=np.float32)
