"""Encodings on disk: each sentence is computed once and read where it lies, and no file that a killed run
leaves is believed."""

from __future__ import annotations

import json
import multiprocessing
import os
import tracemalloc
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.models import frozen
from cdlm_lab.models.frozen import EncodingStore, SentenceEncodings, WordEncodings, key_of, load_word_encoder

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
    actual = rows(store, "b")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert actual.tolist() == [[1, 2], [3, 4]]
    assert peak < 1_000_000
    assert np.shares_memory(actual, store.table)
    assert not actual.flags.writeable
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


ROW = 3 * 4  # bytes of a vector


class Letters:
    """Stands for a `SentenceEncoder`: a sentence's vector is its length, its first letter and 0.5."""

    size, fingerprint = 3, "abc"

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        self.encoded += sentences
        return np.array([[len(text), ord(text[0]), 0.5] for text in sentences], dtype=np.float32)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen, "SENTENCE_PIECE", 2)
    monkeypatch.setattr(frozen, "PIECE", 2)


def files(folder: Path) -> tuple[Path, Path]:
    return folder / "abc" / "vectors.bin", folder / "abc" / "keys.bin"


def test_each_sentence_is_computed_once(tmp_path: Path):
    first = Letters()
    kept = SentenceEncodings(first, tmp_path)
    actual = kept.vectors(["b", "aa", "b"])
    assert actual.tolist() == [[1, 98, 0.5], [2, 97, 0.5], [1, 98, 0.5]]
    assert actual.dtype == np.float32
    assert kept.vectors(["ccc", "aa"]).tolist() == [[3, 99, 0.5], [2, 97, 0.5]]
    assert first.encoded == ["b", "aa", "ccc"]
    second = Letters()
    again = SentenceEncodings(second, tmp_path)
    assert len(again) == 3
    assert again.vectors(["aa", "ccc", "d"]).tolist() == [[2, 97, 0.5], [3, 99, 0.5], [1, 100, 0.5]]
    assert second.encoded == ["d"]


def test_the_layout(tmp_path: Path):
    SentenceEncodings(Letters(), tmp_path).ensure(["b", "aa", "ccc"])
    vectors, keys = files(tmp_path)
    assert np.fromfile(vectors, "<f4").reshape(-1, 3)[:, 0].tolist() == [1, 2, 3]
    assert keys.stat().st_size == 3 * 16
    assert keys.read_bytes()[:16].hex() == "96172b4c53372cd10faddc821bfe0318"  # b2sum --length 128 of "b"
    assert json.loads((tmp_path / "abc" / "size.json").read_text()) == {"size": 3}


def test_what_was_returned_may_be_written_to_and_no_sentences_have_no_vectors(tmp_path: Path):
    kept = SentenceEncodings(Letters(), tmp_path)
    assert kept.vectors([]).shape == (0, kept.size) == (0, 3)
    kept.vectors(["b"])[:] = 7
    assert kept.vectors(["b"]).tolist() == [[1, 98, 0.5]]


def test_other_encoders_have_folders_of_their_own(tmp_path: Path):
    other = Letters()
    other.fingerprint = "def"
    SentenceEncodings(Letters(), tmp_path).ensure(["b"])
    SentenceEncodings(other, tmp_path).ensure(["b"])
    assert other.encoded == ["b"]


@pytest.mark.parametrize("tail", ["half a vector", "a vector without key", "half a key"])
def test_a_half_written_tail_is_cut_off(tmp_path: Path, tail: str):
    SentenceEncodings(Letters(), tmp_path).ensure(["b", "aa"])
    vectors, keys = files(tmp_path)
    with open(vectors, "ab") as file:
        file.write(b"\1" * (5 if tail == "half a vector" else ROW))
    if tail == "half a key":
        with open(keys, "ab") as file:
            file.write(b"\1" * 9)
    encoder = Letters()
    kept = SentenceEncodings(encoder, tmp_path)
    assert (len(kept), vectors.stat().st_size, keys.stat().st_size) == (2, 2 * ROW, 32)
    assert kept.vectors(["ccc", "aa"]).tolist() == [[3, 99, 0.5], [2, 97, 0.5]]
    assert encoder.encoded == ["ccc"]


def test_two_at_once_keep_one_row_for_each_sentence(tmp_path: Path):
    """The second has not read what the first wrote since it was opened; nor does it before it writes."""
    one, two = Letters(), Letters()
    first, second = SentenceEncodings(one, tmp_path), SentenceEncodings(two, tmp_path)
    first.ensure(["a", "bb"])

    class Meanwhile(Letters):
        def encode(self, sentences: Sequence[str]) -> np.ndarray:
            first.ensure(sentences[:1])  # another process is faster
            return super().encode(sentences)

    second._encoder = other = Meanwhile()
    assert second.vectors(["ccc", "bb", "dddd"]).tolist() == [[3, 99, 0.5], [2, 98, 0.5], [4, 100, 0.5]]
    assert other.encoded == ["ccc", "dddd"], "bb was there"
    assert files(tmp_path)[1].stat().st_size == 4 * 16
    assert first.vectors(["dddd", "a"]).tolist() == [[4, 100, 0.5], [1, 97, 0.5]]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("vectors", r"vectors\.bin:1: field file: 1 vectors for 2 keys; delete the folder .*abc"),
        ("size", r"size\.json:1: field file: the size is 4, but the encoder's is 3; delete the folder"),
        ("no size", r"size\.json:1: field file: the size is None, but the encoder's is 3; delete"),
        ("broken size", r"size\.json:1: field file: the size is None"),
    ],
)
def test_files_of_sentences_that_do_not_fit_are_refused(tmp_path: Path, fault: str, message: str):
    SentenceEncodings(Letters(), tmp_path).ensure(["b", "aa"])
    size = tmp_path / "abc" / "size.json"
    if fault == "vectors":
        os.truncate(files(tmp_path)[0], 2 * ROW - 1)
    elif fault == "no size":
        size.unlink()
    else:
        size.write_text('{"size": 4}' if fault == "size" else '{"si')
    with pytest.raises(DataError, match=message):
        SentenceEncodings(Letters(), tmp_path)


class WordLetters:
    """Stands for a `WordEncoder`: a word's vector is its length, its first letter and a third."""

    size, fingerprint = 3, "abc"

    def __init__(self) -> None:
        self.encoded: list[list[str]] = []

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        self.encoded += [list(words) for words in sentences]
        return [np.array([[len(word), ord(word[0]), 1 / 3] for word in words], "f4") for words in sentences]


def test_the_words_of_each_sentence_are_computed_once(tmp_path: Path):
    first = WordLetters()
    kept = WordEncodings(first, tmp_path, half=False)
    kept.ensure([["b", "aa"], ("ccc",), ["b", "aa"], [], ["d"]])
    assert first.encoded == [["b", "aa"], ["ccc"], ["d"]]
    third = np.float32(1 / 3)
    assert kept.rows(("b", "aa")).tolist() == [[1, 98, third], [2, 97, third]]
    assert (len(kept), kept.size, kept.rows(["ccc"]).dtype) == (3, 3, np.float32)
    second = WordLetters()
    again = WordEncodings(second, tmp_path, half=False)
    again.ensure([["ccc"], ["b"]])
    assert again.rows(["ccc"]).tolist() == [[3, 99, third]]
    assert second.encoded == [["b"]], "words that stood in another sentence are others"


def test_what_is_missing_is_computed_when_it_is_read(tmp_path: Path):
    encoder = WordLetters()
    kept = WordEncodings(encoder, tmp_path)
    assert kept.rows(["b", "aa"])[:, :2].tolist() == [[1, 98], [2, 97]]
    assert kept.rows(["b", "aa"]).shape == (2, 3)
    assert encoder.encoded == [["b", "aa"]]


def test_a_sentence_without_words_has_no_rows(tmp_path: Path):
    kept = WordEncodings(WordLetters(), tmp_path)
    assert (kept.rows([]).shape, kept.rows([]).dtype, len(kept)) == ((0, 3), np.float16, 0)


def test_half_precision_has_a_folder_of_its_own(tmp_path: Path):
    half, single = (
        WordEncodings(WordLetters(), tmp_path),
        WordEncodings(WordLetters(), tmp_path, half=False),
    )
    assert (half.folder.name, single.folder.name) == ("abc_half", "abc")
    rounded, exact = half.rows(["b"]), single.rows(["b"])
    assert (rounded.dtype, exact.dtype) == (np.float16, np.float32)
    assert exact[0, 2] == np.float32(1 / 3)
    assert rounded[0, 2] == 0.333251953125  # 1365 / 4096
    assert (half.folder / "vectors.bin").stat().st_size == 3 * 2


def test_rows_are_a_part_of_the_mapped_file(tmp_path: Path):
    kept = WordEncodings(WordLetters(), tmp_path)
    kept.ensure([["b", "aa"], ["ccc"]])
    one, other = kept.rows(["b", "aa"]), kept.rows(["ccc"])
    assert np.shares_memory(one, kept.rows(["b", "aa"]))
    assert one.__array_interface__["data"][0] + one.nbytes == other.__array_interface__["data"][0]
    with pytest.raises(ValueError, match="read-only"):
        one[:] = 0


def test_sentences_with_other_words_have_other_keys(tmp_path: Path):
    encoder = WordLetters()
    WordEncodings(encoder, tmp_path).ensure([["a b"], ["a", "b"], ["ab"]])
    assert len(encoder.encoded) == 3
    with pytest.raises(ValueError, match=r"word 1, 'c\\nd', has a line feed in it; take it out"):
        WordEncodings(WordLetters(), tmp_path).ensure([["b", "c\nd"]])


def test_the_encodings_of_a_real_encoder_come_back(tmp_path: Path):
    encoder = load_word_encoder("storyworld/longformer", layers=3, max_tokens=40)
    sentences = [["The", "river", "rose", "."], ["Rescuers", "searched", "the", "river"], ["No", "."]]
    expected = encoder.encode(sentences)
    for half, tolerance in ((False, 1e-5), (True, 2.0**-11)):
        kept = WordEncodings(encoder, tmp_path, half=half)
        kept.ensure(sentences)
        for words, rows in zip(sentences, expected, strict=True):
            actual = kept.rows(words)
            assert actual.shape == (len(words), 3 * 128)
            np.testing.assert_allclose(actual.astype("f4"), rows, rtol=tolerance, atol=1e-4)


def test_a_sentence_that_is_too_long_stops_the_filling(tmp_path: Path):
    kept = WordEncodings(load_word_encoder("storyworld/longformer", layers=1, max_tokens=10), tmp_path)
    with pytest.raises(
        ValueError, match=r"the sentence 'river( river)+' has \d+ pieces, but there is room for 8"
    ):
        kept.ensure([["No"], ["."], ["river"] * 9])
    assert len(kept) == 2


@pytest.mark.parametrize(("kind", "letters"), [(SentenceEncodings, Letters), (WordEncodings, WordLetters)])
def test_the_bar_counts_sentences_that_are_missing(kind: type, letters: type, tmp_path: Path, capsys):
    kept = kind(letters(), tmp_path)
    kept.ensure(["b", "aa"])
    kept.ensure(["b", "c", "d", "e"], name="test sentences")
    assert "test sentences: 100%" in (shown := capsys.readouterr().out)
    assert "3/3" in shown
    kept.ensure(["b"])
    assert capsys.readouterr().out == ""
