"""The store below sentence and word encodings; what one row for each key needs is tested in
test_sentence_encodings.py, here are the keys with several rows, and half precision."""

import json
import multiprocessing
import os
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.models.frozen import EncodingStore, key_of

RECORD = 16 + 8  # bytes of a key with the number of rows


def rows_of(texts: Iterable[str]) -> list[np.ndarray]:
    """A row for each letter: its code and its place, (letters, 2)."""
    return [np.array([[ord(letter), n] for n, letter in enumerate(text)], dtype=np.float32) for text in texts]


def filled(folder: Path, *texts: str, half: bool = False, piece: int = 2) -> EncodingStore:
    store = EncodingStore(folder, size=2, half=half, ragged=True)
    store.fill({key_of(text): text for text in texts}, rows_of, piece=piece, name="filling")
    return store


def rows(store: EncodingStore, text: str) -> np.ndarray:
    first, stop = store.span(key_of(text))
    return store.table[first:stop]


def test_a_key_has_as_many_rows_as_were_given(tmp_path: Path):
    store = filled(tmp_path, "ab", "c", "", "def")
    assert [store.span(key_of(text)) for text in ("ab", "c", "", "def")] == [(0, 2), (2, 3), (3, 3), (3, 6)]
    assert rows(store, "def").tolist() == [[100, 0], [101, 1], [102, 2]]
    assert (len(store), key_of("c") in store, key_of("d") in store) == (4, True, False)
    with pytest.raises(KeyError):
        store.span(key_of("d"))
    again = filled(tmp_path, "c", "gh")
    assert [rows(again, text)[:, 0].tolist() for text in ("ab", "c", "gh")] == [[97, 98], [99], [103, 104]]


def test_the_layout_of_the_files(tmp_path: Path):
    filled(tmp_path, "ab", "c", half=True)
    assert np.fromfile(tmp_path / "vectors.bin", "<f2").tolist() == [97, 0, 98, 1, 99, 0]
    keys = (tmp_path / "keys.bin").read_bytes()
    assert keys == key_of("ab") + (2).to_bytes(8, "little") + key_of("c") + (3).to_bytes(8, "little")
    form = {"size": 2, "precision": "half", "layout": "ragged"}
    assert json.loads((tmp_path / "size.json").read_text()) == form
    EncodingStore(tmp_path / "flat", size=2)
    assert (tmp_path / "flat" / "size.json").read_text() == '{"size": 2}', "what older folders have"


def test_half_precision_is_off_by_half_a_unit_of_its_last_place(tmp_path: Path):
    numbers = np.random.default_rng(0).normal(size=(5000, 2)) * np.logspace(-9, 3, 5000)[:, None]
    numbers = numbers.astype(np.float32)
    stores = [
        EncodingStore(tmp_path / name, size=2, half=name == "half", ragged=True) for name in ("half", "f")
    ]
    for store in stores:
        store.fill({key_of("x"): "x"}, lambda _: [numbers], piece=1, name="filling")
    kept, exact = (rows(store, "x") for store in stores)
    assert (kept.dtype, exact.dtype) == (np.float16, np.float32)
    np.testing.assert_array_equal(exact, numbers)
    error = np.abs(kept.astype(np.float64) - numbers)
    assert (error <= np.maximum(2.0**-11 * np.abs(numbers), 2.0**-25)).all()
    assert (error > 2.0**-13 * np.abs(numbers)).mean() > 0.3, "it is rounded"
    sizes = [(store.folder / "vectors.bin").stat().st_size for store in stores]
    assert sizes == [5000 * 2 * 2, 5000 * 2 * 4]


@pytest.mark.parametrize("number", [70000.0, np.inf, np.nan])
def test_a_number_that_half_precision_cannot_hold_is_refused(tmp_path: Path, number: float):
    store = EncodingStore(tmp_path, size=2, half=True, ragged=True)
    wanted = {key_of("x"): "x"}
    with pytest.raises(
        ValueError, match=r"the number (7e\+04|70000|inf|nan), which half precision cannot hold"
    ):
        store.fill(wanted, lambda _: [np.array([[1, number]], dtype=np.float32)], piece=1, name="filling")
    assert len(store) == 0
    store.fill(wanted, lambda _: [np.array([[1, 65504]], dtype=np.float32)], piece=1, name="filling")
    assert rows(store, "x").tolist() == [[1, 65504]]


def _fill_until_killed(folder: Path) -> None:
    def encode(texts: list[str]) -> list[np.ndarray]:
        if "ffff" in texts:
            with open(folder / "vectors.bin", "ab") as file:  # as if the power went while it wrote
                file.write(b"\1" * 13)
            os.kill(os.getpid(), 9)
        return rows_of(texts)

    store = EncodingStore(folder, size=2, ragged=True)
    texts = ("ab", "c", "ddd", "e", "ffff", "g")
    store.fill({key_of(text): text for text in texts}, encode, piece=2, name="filling")


def test_a_killed_process_loses_its_last_piece_alone(tmp_path: Path):
    process = multiprocessing.get_context("fork").Process(target=_fill_until_killed, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -9
    store = EncodingStore(tmp_path, size=2, ragged=True)
    assert [key_of(text) in store for text in ("ab", "c", "ddd", "e", "ffff", "g")] == [True] * 4 + [
        False
    ] * 2
    assert (tmp_path / "vectors.bin").stat().st_size == 7 * 8
    assert rows(filled(tmp_path, "ffff", "ddd"), "ddd").tolist() == [[100, 0], [100, 1], [100, 2]]


@pytest.mark.parametrize("tail", [1, 16, RECORD - 1])
def test_what_was_half_written_is_cut_off(tmp_path: Path, tail: int):
    """A key without the number of its rows is none."""
    filled(tmp_path, "ab", "c")
    for name, length in (("vectors.bin", 5), ("keys.bin", tail)):
        with open(tmp_path / name, "ab") as file:
            file.write(b"\1" * length)
    store = filled(tmp_path, "def")
    assert rows(store, "def").tolist() == [[100, 0], [101, 1], [102, 2]]
    assert ((tmp_path / "vectors.bin").stat().st_size, (tmp_path / "keys.bin").stat().st_size) == (
        48,
        3 * RECORD,
    )


def _texts(start: int) -> list[str]:
    return [chr(97 + n % 26) * (n % 7) + str(n) for n in range(start, start + 40)]


def _fill(folder: Path, start: int) -> None:
    filled(folder, *_texts(start))


def test_processes_that_write_at_once_do_not_disturb_each_other(tmp_path: Path):
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_fill, args=(tmp_path, start)) for start in (0, 20, 0)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    store = EncodingStore(tmp_path, size=2, ragged=True)
    for text, expected in zip(_texts(0) + _texts(20), rows_of(_texts(0) + _texts(20)), strict=True):
        assert rows(store, text).tolist() == expected.tolist()
    assert (tmp_path / "keys.bin").stat().st_size == 60 * RECORD
    assert len(store.table) == sum(len(text) for text in _texts(0) + _texts(40)[:20])


def test_what_another_wrote_meanwhile_is_not_written_twice(tmp_path: Path):
    first, second = filled(tmp_path, "ab"), EncodingStore(tmp_path, size=2, ragged=True)

    def encode(texts: list[str]) -> list[np.ndarray]:
        first.fill({key_of("ddd"): "ddd"}, rows_of, piece=1, name="filling")
        return rows_of(texts)

    second.fill({key_of(text): text for text in ("c", "ddd")}, encode, piece=2, name="filling")
    assert second.table[:, 0].tolist() == [97, 98, 100, 100, 100, 99]
    assert rows(second, "c").tolist() == [[99, 0]]


def test_rows_are_read_where_they_lie(tmp_path: Path):
    """A file of 160 MB, most of it never written, is opened, and two rows of it read, in a few kilobytes."""
    EncodingStore(tmp_path, size=2, ragged=True)
    many = 20_000_000
    (tmp_path / "keys.bin").write_bytes(
        b"".join(key_of(text) + stop.to_bytes(8, "little") for text, stop in (("a", many - 2), ("b", many)))
    )
    with open(tmp_path / "vectors.bin", "r+b") as file:
        file.truncate(many * 8)
        file.seek(-16, os.SEEK_END)
        file.write(np.array([1, 2, 3, 4], dtype="<f4").tobytes())
    rows(EncodingStore(tmp_path, size=2, ragged=True), "b")  # pays for imports and caches
    tracemalloc.start()
    store = EncodingStore(tmp_path, size=2, ragged=True)
    found = rows(store, "b")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.tolist() == [[1, 2], [3, 4]]
    assert peak < 1_000_000
    assert np.shares_memory(found, store.table)
    assert not found.flags.writeable
    assert len(rows(store, "a")) == many - 2


def test_rows_that_were_read_stay_when_the_file_grows(tmp_path: Path):
    store = filled(tmp_path, "ab")
    before = rows(store, "ab")
    filled(tmp_path, "c")
    store.fill({key_of("c"): "c"}, rows_of, piece=1, name="filling")
    assert len(store.table) == 3
    assert before.tolist() == rows(store, "ab").tolist() == [[97, 0], [98, 1]]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            {"half": False},
            r"size\.json:1: field file: the precision is half, but the encoder's is single; del",
        ),
        (
            {"ragged": False},
            r"size\.json:1: field file: the layout is ragged, but the encoder's is flat; delete",
        ),
        ({"size": 3}, r"size\.json:1: field file: the size is 2, but the encoder's is 3; delete the folder"),
        ("vectors", r"vectors\.bin:1: field file: 2 vectors for 3 rows; delete the folder .*anew"),
        ("keys", r"keys\.bin:1: field file: the numbers of rows do not grow from key to key; delete"),
        ("form", r"size\.json:1: field file: the size is None, but the encoder's is 2; delete"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path: Path, fault: dict | str, message: str):
    filled(tmp_path, "ab", "c", half=True)
    arguments = {"size": 2, "half": True, "ragged": True}
    if fault == "vectors":
        os.truncate(tmp_path / "vectors.bin", 3 * 4 - 1)
    elif fault == "keys":
        (tmp_path / "keys.bin").write_bytes((key_of("ab") + (3).to_bytes(8, "little")) * 2 + b"\0" * RECORD)
    elif fault == "form":
        (tmp_path / "size.json").write_text("[2]")
    else:
        arguments |= fault
    with pytest.raises(DataError, match=message):
        EncodingStore(tmp_path, **arguments)


def test_a_folder_that_was_deleted_meanwhile_is_not_written_to(tmp_path: Path):
    store = filled(tmp_path, "ab")
    for name in ("vectors.bin", "keys.bin", "size.json"):
        (tmp_path / name).unlink()
    EncodingStore(tmp_path, size=2, ragged=True)
    with pytest.raises(DataError, match=r"vectors\.bin:1: field file: 0 vectors for 2 rows"):
        store.fill({key_of("c"): "c"}, rows_of, piece=1, name="filling")


def test_the_bar_counts_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    filled(tmp_path, "ab", "c")
    capsys.readouterr()
    filled(tmp_path, "c", "d", "e", "f")
    assert "filling: 100%" in (shown := capsys.readouterr().out)
    assert "3/3" in shown
    filled(tmp_path, "c")
    assert capsys.readouterr().out == ""
