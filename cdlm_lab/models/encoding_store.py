"""Rows of numbers kept on disk under the hash of what they encode: each is computed once, whatever document,
split or run it is in.

    vectors.bin   the rows, little-endian float32 or float16
    keys.bin      for each key, in the same order: its 16 bytes and, where keys have several rows ("ragged"),
                  the number of all rows up to its last, int64
    size.json     {"size": numbers in a row}, with "precision": "half" and "layout": "ragged" where they hold

Both files only grow: rows first, and once they are on the disk their keys. So a killed run loses its last
piece at most; what it left half-written is cut off. Several processes may share a folder.
"""

from __future__ import annotations

import fcntl
import json
import os
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import numpy as np

from cdlm_lab.data.files import DataError, replaced_file
from cdlm_lab.progress import Progress

VECTORS, KEYS, SIZE, LOCK = "vectors.bin", "keys.bin", "size.json", "lock"
KEY_BYTES = 16
PLAIN = {"size": None, "precision": "single", "layout": "flat"}  # what holds where size.json is silent
HALF, RAGGED = {"precision": "half"}, {"layout": "ragged"}

Item = TypeVar("Item")


class EncodingStore:
    """The rows in `folder`, which is made where it is not there.

    Args:
        size: numbers in a row.
        half: True = they are kept as float16, rounded to 11 binary digits, in half the room.
        ragged: True = a key has any number of rows; False = one.

    Raises:
        DataError: its files do not fit each other, or were made with other arguments.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, size: int, half: bool = False, ragged: bool = False
    ) -> None:
        self.folder, self.size = Path(folder), size
        self._form = {"size": size, **(HALF if half else {}), **(RAGGED if ragged else {})}
        self._ragged, self._number = ragged, np.dtype("<f2" if half else "<f4")
        self._record = np.dtype([("key", f"V{KEY_BYTES}")] + [("stop", "<i8")] * ragged)
        self._places: dict[bytes, int] = {}
        self._stops = array("q")  # rows up to and with those of a key, by its place
        self._table = np.zeros((0, size), dtype=self._number)
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._locked():
            self._prepare()

    def __len__(self) -> int:
        """Keys that are known."""
        return len(self._places)

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def span(self, key: bytes) -> tuple[int, int]:
        """The first row of a key in `table`, and the one after its last. KeyError: it is not known."""
        place = self._places[key]
        return (self._stops[place - 1] if place else 0), self._stops[place]

    @property
    def table(self) -> np.ndarray:
        """All rows that are known: (rows, size), float32 or float16, memory-mapped and read-only."""
        rows = self._rows
        if len(self._table) < rows:
            file = self.folder / VECTORS
            mapped = np.memmap(file, dtype=self._number, mode="r", shape=(rows, self.size))
            self._table = np.asarray(mapped)  # the same memory; slices of a memmap are slow to make
        return self._table

    def fill(
        self,
        wanted: Mapping[bytes, Item],
        encode: Callable[[list[Item]], Sequence[np.ndarray]],
        *,
        piece: int,
        name: str,
    ) -> None:
        """Compute what is missing, with a bar called `name`.

        Args:
            wanted: what is to be encoded, by its key.
            encode: gives the rows of each: (size,), or (rows, size) if the store is ragged.
            piece: that many are computed before they are written.

        Raises:
            ValueError: a number does not fit half precision.
        """
        missing = [key for key in wanted if key not in self]
        if not missing:
            return
        with Progress(total=len(missing), desc=name, unit=" sentences") as bar:
            for start in range(0, len(missing), piece):
                part = missing[start : start + piece]
                self._read_keys()  # another process may have been here
                if keys := [key for key in part if key not in self]:
                    self._append(keys, encode([wanted[key] for key in keys]))
                bar.update(len(part))

    def _append(self, keys: list[bytes], encodings: Sequence[np.ndarray]) -> None:
        with self._locked():
            self._prepare()
            fresh = {
                key: np.reshape(rows, (-1, self.size))
                for key, rows in zip(keys, encodings, strict=True)
                if key not in self
            }
            if not fresh:
                return
            records = np.zeros(len(fresh), dtype=self._record)
            records["key"] = np.frombuffer(b"".join(fresh), dtype=f"V{KEY_BYTES}")
            if self._ragged:
                records["stop"] = self._rows + np.cumsum([len(rows) for rows in fresh.values()])
            _write(self.folder / VECTORS, self._joined(list(fresh.values())))
            _write(self.folder / KEYS, records)
            self._read_keys()

    def _joined(self, parts: list[np.ndarray]) -> np.ndarray:
        with np.errstate(over="ignore"):
            rows = np.concatenate(parts, dtype=self._number, casting="same_kind")
        if self._number.itemsize == 2 and not np.isfinite(rows).all():
            largest = max(np.abs(part).max() for part in parts)
            what = f"an encoding has the number {largest:.6g}, which half precision cannot hold"
            raise ValueError(f"{what}; keep it with half=False")
        return rows

    @property
    def _rows(self) -> int:
        return self._stops[-1] if self._stops else 0

    def _read_keys(self) -> None:
        """Learn of the keys that were added since the last time; half a record is not one yet."""
        known = len(self._stops)
        with open(self.folder / KEYS, "rb") as file:
            file.seek(known * self._record.itemsize)
            added = file.read()
        records = np.frombuffer(added, dtype=self._record, count=len(added) // self._record.itemsize)
        stops = records["stop"] if self._ragged else np.arange(known + 1, known + 1 + len(records))
        if (np.diff(stops, prepend=self._rows) < 0).any():
            self._refuse(self.folder / KEYS, "the numbers of rows do not grow from key to key")
        self._places.update(zip(records["key"].tolist(), range(known, known + len(records)), strict=True))
        self._stops.extend(stops.tolist())

    def _prepare(self) -> None:
        """Check the files, read the keys, and cut off what a killed run left half-written. Only under the
        lock: what another process is about to write looks the same."""
        vectors, keys, size = (self.folder / name for name in (VECTORS, KEYS, SIZE))
        for file in (vectors, keys):
            file.touch()
        if not size.exists() and not keys.stat().st_size:
            with replaced_file(size) as file:
                json.dump(self._form, file)
        found = _form_in(size)
        for name, value in (PLAIN | self._form).items():
            if found[name] != value:
                self._refuse(size, f"the {name} is {found[name]}, but the encoder's is {value}")
        self._read_keys()
        row = self._number.itemsize * self.size
        if vectors.stat().st_size < self._rows * row:
            there, of_what = vectors.stat().st_size // row, "rows" if self._ragged else "keys"
            self._refuse(vectors, f"{there} vectors for {self._rows} {of_what}")
        for file, length in ((vectors, self._rows * row), (keys, len(self._stops) * self._record.itemsize)):
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


def key_of(text: str) -> bytes:
    """The key of a text: 16 bytes, BLAKE2b."""
    return blake2b(text.encode(), digest_size=KEY_BYTES).digest()


def _form_in(file: Path) -> dict[str, object]:
    """What the file says; size None if it says nothing."""
    try:
        return {**PLAIN, **json.loads(file.read_text(encoding="utf-8"))}
    except (OSError, ValueError, TypeError):
        return PLAIN


def _write(file: Path, content: np.ndarray) -> None:
    with open(file, "ab") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
