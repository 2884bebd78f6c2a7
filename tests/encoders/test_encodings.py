"""Encodings on disk: each sentence is computed once and read without copying, and incomplete files of a
killed run are not used."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.encoders import frozen
from cdlm_lab.encoders.frozen import (
    EncodingStore,
    PassingSentences,
    PassingWords,
    SentenceEncodings,
    WordEncodings,
    key_of,
    load_word_encoder,
)


def rows_of(texts: Iterable[str]) -> list[np.ndarray]:
    """Return for each text a row per letter, (letters, 2): the letter's code and its position."""
    return [
        np.array([[ord(letter), n] for n, letter in enumerate(text)], dtype=np.float32).reshape(-1, 2)
        for text in texts
    ]


def opened(folder: Path, *, half: bool = False) -> EncodingStore:
    return EncodingStore(folder, size=2, half=half)


def fill(store: EncodingStore, *texts: str, encode=rows_of, piece: int = 2) -> EncodingStore:
    store.fill({key_of(text): text for text in texts}, encode, piece=piece, name="filling")
    return store


def rows(store: EncodingStore, text: str) -> np.ndarray:
    return store.rows(key_of(text))


def test_a_key_has_as_many_rows_as_were_given(tmp_path: Path):
    store = fill(opened(tmp_path), "ab", "c", "", "def")
    assert rows(store, "def").tolist() == [[100, 0], [101, 1], [102, 2]]
    assert rows(store, "").shape == (0, 2)
    assert (len(store), key_of("c") in store, key_of("d") in store, rows(store, "d")) == (
        4,
        True,
        False,
        None,
    )
    again = fill(opened(tmp_path), "c", "gh")
    assert [rows(again, text)[:, 0].tolist() for text in ("ab", "c", "gh")] == [[97, 98], [99], [103, 104]]
    assert key_of("b").hex() == "96172b4c53372cd10faddc821bfe0318"  # b2sum --length 128 of "b"


def test_half_precision_is_off_by_half_a_unit_of_its_last_place(tmp_path: Path):
    numbers = np.random.default_rng(0).normal(size=(5000, 2)) * np.logspace(-9, 3, 5000)[:, None]
    numbers = numbers.astype(np.float32)
    stores = [opened(tmp_path / str(half), half=half) for half in (True, False)]
    kept, exact = (rows(fill(store, "x", encode=lambda _: [numbers]), "x") for store in stores)
    assert (kept.dtype, exact.dtype) == (np.float16, np.float32)
    np.testing.assert_array_equal(exact, numbers)
    error = np.abs(kept.astype(np.float64) - numbers)
    assert (error <= np.maximum(2.0**-11 * np.abs(numbers), 2.0**-25)).all()
    assert (error > 2.0**-13 * np.abs(numbers)).mean() > 0.3, "it is rounded"


@pytest.mark.parametrize("number", [70000.0, np.inf, np.nan])
def test_a_number_that_half_precision_cannot_hold_is_refused(tmp_path: Path, number: float):
    store = opened(tmp_path, half=True)
    message = r"the number (7e\+04|70000|inf|nan), which half precision cannot hold"
    with pytest.raises(ValueError, match=message):
        fill(store, "x", encode=lambda _: [np.array([[1, number]], dtype=np.float32)])
    assert len(store) == 0
    fill(store, "x", encode=lambda _: [np.array([[1, 65504]], dtype=np.float32)])
    assert rows(store, "x").tolist() == [[1, 65504]]


def _fill_until_killed(folder: Path, *, writing: bool) -> None:
    store = opened(folder)
    if writing:  # killed inside a transaction

        def write(content: list) -> None:
            if len(store) == 4:
                base = store._database()
                base.executemany("INSERT INTO encodings VALUES (?, ?)", content)
                os.kill(os.getpid(), 9)
            EncodingStore._write(store, content)

        store._write = write

    def encode(texts: list[str]) -> list[np.ndarray]:
        if "ffff" in texts and not writing:
            os.kill(os.getpid(), 9)
        return rows_of(texts)

    fill(store, "ab", "c", "ddd", "e", "ffff", "g", encode=encode)


@pytest.mark.parametrize("writing", [False, True])
def test_a_killed_process_loses_its_last_piece_alone(tmp_path: Path, writing: bool):
    process = multiprocessing.get_context("fork").Process(
        target=_fill_until_killed, args=(tmp_path,), kwargs={"writing": writing}
    )
    process.start()
    process.join()
    assert process.exitcode == -9
    store, texts = opened(tmp_path), ("ab", "c", "ddd", "e", "ffff", "g")
    assert [text for text in texts if key_of(text) in store] == ["ab", "c", "ddd", "e"]
    assert rows(fill(opened(tmp_path), "ffff", "ddd"), "ddd").tolist() == [[100, 0], [100, 1], [100, 2]]


def _texts(start: int) -> list[str]:
    return [chr(97 + n % 26) * (n % 7) + str(n) for n in range(start, start + 40)]


def test_processes_that_write_at_once_do_not_disturb_each_other(tmp_path: Path):
    """They are forked while this one has the store open."""
    context, store = multiprocessing.get_context("fork"), opened(tmp_path)
    processes = [
        context.Process(target=fill, args=(one, *_texts(start)))
        for one, start in ((store, 0), (opened(tmp_path), 20), (store, 0))
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    texts = _texts(0) + _texts(20)
    for text, expected in zip(texts, rows_of(texts), strict=True):
        assert rows(store, text).tolist() == expected.tolist()
    assert len(store) == 60


def test_what_another_wrote_meanwhile_is_neither_computed_nor_written_twice(tmp_path: Path):
    first, second, computed = opened(tmp_path), opened(tmp_path), []
    fill(first, "ab")

    def encode(texts: list[str]) -> list[np.ndarray]:
        computed.extend(texts)
        fill(first, "ddd")
        return rows_of(texts)

    fill(second, "c", "ab", "ddd", encode=encode, piece=3)
    assert computed == ["c", "ddd"], "the other was there"
    assert len(first) == len(second) == 3
    assert rows(first, "c").tolist() == [[99, 0]]


def test_a_damaged_file_is_named(tmp_path: Path):
    fill(opened(tmp_path), "ab")
    (tmp_path / frozen.STORE).write_bytes(b"no database " * 9)
    with pytest.raises(DataError, match=r"encodings\.sqlite:1: field file: it cannot be used .*; check"):
        opened(tmp_path)


# ---- encodings of sentences and of their words


class Letters:
    """Replaces a `SentenceEncoder`: a sentence's vector is its length, its first letter's code and 0.5."""

    size, fingerprint = 3, "abc"

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        self.encoded += sentences
        return np.array([[len(text), ord(text[0]), 0.5] for text in sentences], dtype=np.float32)


class WordLetters:
    """Replaces a `WordEncoder`: a word's vector is its length, its first letter's code and 1/3."""

    size, fingerprint = 3, "abc"

    def __init__(self) -> None:
        self.encoded: list[list[str]] = []

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        self.encoded += [list(words) for words in sentences]
        return [np.array([[len(word), ord(word[0]), 1 / 3] for word in words], "f4") for words in sentences]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen, "SENTENCE_PIECE", 2)
    monkeypatch.setattr(frozen, "PIECE", 2)


def test_each_sentence_is_computed_once(tmp_path: Path):
    first = Letters()
    kept = SentenceEncodings(first, tmp_path)
    assert kept.folder == tmp_path / "abc"
    assert kept.vectors([]).shape == (0, kept.size) == (0, 3)
    actual = kept.vectors(["b", "aa", "b"])
    assert actual.tolist() == [[1, 98, 0.5], [2, 97, 0.5], [1, 98, 0.5]]
    assert actual.dtype == np.float32
    actual[:] = 7  # which changes nothing on disk
    assert kept.vectors(["ccc", "aa"]).tolist() == [[3, 99, 0.5], [2, 97, 0.5]]
    assert first.encoded == ["b", "aa", "ccc"]
    second, other = Letters(), Letters()
    again = SentenceEncodings(second, tmp_path)
    assert len(again) == 3
    assert again.vectors(["aa", "ccc", "d"]).tolist() == [[2, 97, 0.5], [3, 99, 0.5], [1, 100, 0.5]]
    assert second.encoded == ["d"]
    other.fingerprint = "def"
    SentenceEncodings(other, tmp_path).ensure(["b"])
    assert other.encoded == ["b"], "other encoders have folders of their own"


def test_the_words_of_each_sentence_are_computed_once(tmp_path: Path):
    first = WordLetters()
    kept = WordEncodings(first, tmp_path, half=False)
    kept.ensure([["b", "aa"], ("ccc",), ["b", "aa"], []])
    third = np.float32(1 / 3)
    assert kept.rows(("b", "aa")).tolist() == [[1, 98, third], [2, 97, third]]
    assert kept.rows(["d"]).tolist() == [[1, 100, third]], "what is missing is computed when it is read"
    assert first.encoded == [["b", "aa"], ["ccc"], ["d"]]
    assert (len(kept), kept.size, kept.rows(["ccc"]).dtype) == (3, 3, np.float32)
    with pytest.raises(ValueError, match="read-only"):
        kept.rows(["ccc"])[:] = 0
    second = WordLetters()
    again = WordEncodings(second, tmp_path, half=False)
    again.ensure([["ccc"], ["b"], ["aa", "b"], ["b aa"]])
    assert again.rows(["ccc"]).tolist() == [[3, 99, third]]
    assert second.encoded == [["b"], ["aa", "b"], ["b aa"]], "sentences with other words are others"
    with pytest.raises(ValueError, match=r"word 1, 'c\\nd', has a line feed in it; take it out"):
        again.ensure([["b", "c\nd"]])


def test_half_precision_has_a_folder_of_its_own(tmp_path: Path):
    half, single = (WordEncodings(WordLetters(), tmp_path, **form) for form in ({}, {"half": False}))
    assert (half.rows([]).shape, half.rows([]).dtype, len(half)) == ((0, 3), np.float16, 0)
    assert (half.folder.name, single.folder.name) == ("abc_half", "abc")
    rounded, exact = half.rows(["b"]), single.rows(["b"])
    assert (rounded.dtype, exact.dtype) == (np.float16, np.float32)
    assert exact[0, 2] == np.float32(1 / 3)
    assert rounded[0, 2] == 0.333251953125  # 1365 / 4096


def test_the_encodings_of_a_real_encoder_come_back(tmp_path: Path):
    encoder = load_word_encoder("storyworld/longformer", layers=3, max_tokens=10)
    sentences = [["The", "river", "rose", "."], ["No", "."]]
    for half, tolerance in ((False, 1e-5), (True, 2.0**-11)):
        kept = WordEncodings(encoder, tmp_path, half=half)
        kept.ensure(sentences)
        for words, expected in zip(sentences, encoder.encode(sentences), strict=True):
            actual = kept.rows(words)
            assert actual.shape == (len(words), 3 * 128)
            np.testing.assert_allclose(actual.astype("f4"), expected, rtol=tolerance, atol=1e-4)
    message = r"the sentence 'river( river)+' has \d+ pieces, but there is room for 8"
    with pytest.raises(ValueError, match=message):
        kept.ensure([["Yes"], ["."], ["river"] * 9])
    assert len(kept) == 4, "what stood before the long sentence is kept"


# Each kind in memory or in a folder, and how the vectors of sentences, given as lists of words, are read.
KINDS: dict[str, tuple[Callable[[Path], Any], Callable[[Any, list[list[str]]], list]]] = {
    "passing sentences": (
        lambda folder: PassingSentences(Letters()),
        lambda kept, read: kept.vectors([" ".join(words) for words in read]).tolist(),
    ),
    "sentences": (
        lambda folder: SentenceEncodings(Letters(), folder),
        lambda kept, read: kept.vectors([" ".join(words) for words in read]).tolist(),
    ),
    "passing words": (
        lambda folder: PassingWords(WordLetters()),
        lambda kept, read: [kept.rows(words).tolist() for words in read],
    ),
    "words": (
        lambda folder: WordEncodings(WordLetters(), folder),
        lambda kept, read: [kept.rows(words).tolist() for words in read],
    ),
}


def ensured(kept: Any, read: list[list[str]]) -> Any:
    of_words = isinstance(kept, WordEncodings | PassingWords)
    kept.ensure(read if of_words else [" ".join(words) for words in read])
    return kept


@pytest.mark.usefixtures("often_switched")
@pytest.mark.parametrize("kind", KINDS)
def test_threads_that_encode_at_once_do_not_disturb_each_other(kind: str, tmp_path: Path) -> None:
    make, rows_of = KINDS[kind]
    kept, alone = make(tmp_path / "together"), make(tmp_path / "alone")
    parts = [[[f"{letter}{'x' * n}", letter] for n in range(20)] for letter in "abcdefgh"] * 2
    expected = [rows_of(ensured(alone, part), part) for part in parts]
    with ThreadPoolExecutor(len(parts)) as pool:
        for found in pool.map(lambda part: rows_of(ensured(kept, part), part), parts):
            assert found in expected
    if kind in ("sentences", "words"):
        assert len(kept) == len(alone), "each sentence once"


@pytest.mark.parametrize("kind", KINDS)
def test_encodings_are_pickled_with_what_they_have(kind: str, tmp_path: Path) -> None:
    make, rows_of = KINDS[kind]
    read = [["b", "aa"], ["ccc"]]
    kept = ensured(make(tmp_path), read)
    again = pickle.loads(pickle.dumps(kept))  # noqa: S301
    done = len(again.encoder.encoded)
    assert rows_of(again, read) == rows_of(kept, read)
    assert len(again.encoder.encoded) == done, "nothing is encoded anew"
    assert rows_of(ensured(again, [["d"]]), [["d"]]) != rows_of(kept, read)[:1]


@pytest.mark.parametrize(("kind", "letters"), [(SentenceEncodings, Letters), (WordEncodings, WordLetters)])
def test_the_bar_counts_sentences_that_are_missing(kind: type, letters: type, tmp_path: Path, capsys):
    kept = kind(letters(), tmp_path)
    kept.ensure(["b", "aa"])
    kept.ensure(["b", "c", "d", "e"], name="test sentences")
    assert "test sentences: 100%" in (shown := capsys.readouterr().out)
    assert "3/3" in shown
    kept.ensure(["b"])
    assert capsys.readouterr().out == ""
