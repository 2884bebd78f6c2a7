"""Encodings of sentences kept on disk: each is computed once, whatever document, split or run it is in.

    <folder>/<fingerprint of the encoder>/
        vectors.bin   float32, a row for each sentence
        keys.bin      16 bytes for each, in the same order: BLAKE2b of its text
        size.json     {"size": numbers in a row}

Both files only grow: vectors first, and once they are on the disk their keys. So a killed run loses its last
piece at most; what it left half-written is cut off. Several processes may share a folder.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import numpy as np

from cdlm_lab.data.files import DataError, replaced_file
from cdlm_lab.models.sentence_encoder import SentenceEncoder
from cdlm_lab.progress import Progress

VECTORS, KEYS, SIZE, LOCK = "vectors.bin", "keys.bin", "size.json", "lock"
KEY_BYTES = 16
PIECE = 512  # sentences that are computed before they are written
NUMBER = np.dtype("<f4")


class SentenceEncodings:
    """The encodings of one encoder below `folder`, which is made where it is not there.

    Raises:
        DataError: its files do not fit each other or the encoder.
    """

    def __init__(self, encoder: SentenceEncoder, folder: str | os.PathLike[str]) -> None:
        self._encoder = encoder
        self.folder = Path(folder) / encoder.fingerprint
        self.folder.mkdir(parents=True, exist_ok=True)
        self._rows: dict[bytes, int] = {}
        self._table = np.zeros((0, self.size), dtype=NUMBER)
        with self._locked():
            self._prepare()
        self._read_keys()

    @property
    def size(self) -> int:
        """Of a vector."""
        return self._encoder.size

    def __len__(self) -> int:
        """Sentences that are known."""
        return len(self._rows)

    def ensure(self, sentences: Iterable[str], *, name: str = "encoding") -> None:
        """Compute what is missing, with a bar called `name`."""
        wanted = {_key(sentence): sentence for sentence in sentences}
        missing = [key for key in wanted if key not in self._rows]
        if not missing:
            return
        with Progress(total=len(missing), desc=name, unit=" sentences") as bar:
            for start in range(0, len(missing), PIECE):
                piece = missing[start : start + PIECE]
                self._read_keys()  # another process may have been here
                if keys := [key for key in piece if key not in self._rows]:
                    self._append(keys, self._encoder.encode([wanted[key] for key in keys]))
                bar.update(len(piece))

    def vectors(self, sentences: Sequence[str]) -> np.ndarray:
        """The encodings of sentences: (sentences, size), float32. What is missing is computed; for many
        documents that is faster with `ensure` beforehand."""
        self.ensure(sentences)
        if len(self._table) < len(self._rows):
            shape = (len(self._rows), self.size)
            self._table = np.memmap(self.folder / VECTORS, dtype=NUMBER, mode="r", shape=shape)
        rows = np.array([self._rows[_key(sentence)] for sentence in sentences], dtype=np.int64)
        return np.array(self._table[rows], dtype=np.float32)

    def _append(self, keys: list[bytes], vectors: np.ndarray) -> None:
        with self._locked():
            self._prepare()
            self._read_keys()
            fresh = [number for number, key in enumerate(keys) if key not in self._rows]
            _write(self.folder / VECTORS, vectors[fresh].astype(NUMBER).tobytes())
            _write(self.folder / KEYS, b"".join(keys[number] for number in fresh))
        self._read_keys()

    def _read_keys(self) -> None:
        """Learn of the keys that were added since the last time; half a key is not one yet."""
        with open(self.folder / KEYS, "rb") as file:
            file.seek(len(self._rows) * KEY_BYTES)
            added = file.read()
        for start in range(0, len(added) - KEY_BYTES + 1, KEY_BYTES):
            self._rows[added[start : start + KEY_BYTES]] = len(self._rows)

    def _prepare(self) -> None:
        """Check the files and cut off what a killed run left half-written. Only under the lock: what another
        process is about to write looks the same."""
        vectors, keys, size = (self.folder / name for name in (VECTORS, KEYS, SIZE))
        for file in (vectors, keys):
            file.touch()
        row = NUMBER.itemsize * self.size
        if not size.exists() and not keys.stat().st_size:
            with replaced_file(size) as file:
                json.dump({"size": self.size}, file)
        if (found := _size_in(size)) != self.size:
            self._refuse(size, f"the size is {found}, but the encoder's is {self.size}")
        count = keys.stat().st_size // KEY_BYTES
        if vectors.stat().st_size < count * row:
            self._refuse(vectors, f"{vectors.stat().st_size // row} vectors for {count} keys")
        for file, length in ((vectors, count * row), (keys, count * KEY_BYTES)):
            if file.stat().st_size > length:
                os.truncate(file, length)

    def _refuse(self, file: Path, what: str) -> None:
        raise DataError(file, what, f"delete the folder {self.folder}, it will be computed anew")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone among all processes."""
        with open(self.folder / LOCK, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # let go of when the file is closed
            yield


def _key(sentence: str) -> bytes:
    return blake2b(sentence.encode(), digest_size=KEY_BYTES).digest()


def _size_in(file: Path) -> object:
    """What the file says, None if it says nothing."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))["size"]
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _write(file: Path, content: bytes) -> None:
    with open(file, "ab") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
