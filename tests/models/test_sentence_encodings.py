"""Encodings on disk: each sentence is computed once, and no file that a killed run leaves is believed."""

import json
import multiprocessing
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.models import frozen as sentence_encodings
from cdlm_lab.models.frozen import SentenceEncodings

ROW = 3 * 4  # bytes of a vector


class Letters:
    """Stands for a `SentenceEncoder`: a sentence's vector is its length, its first letter and 0.5."""

    size, fingerprint = 3, "abc"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        self.asked += sentences
        return np.array([[len(text), ord(text[0]), 0.5] for text in sentences], dtype=np.float32)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_encodings, "SENTENCE_PIECE", 2)


def files(folder: Path) -> tuple[Path, Path]:
    return folder / "abc" / "vectors.bin", folder / "abc" / "keys.bin"


def test_each_sentence_is_computed_once(tmp_path: Path):
    first = Letters()
    kept = SentenceEncodings(first, tmp_path)
    found = kept.vectors(["b", "aa", "b"])
    assert found.tolist() == [[1, 98, 0.5], [2, 97, 0.5], [1, 98, 0.5]]
    assert found.dtype == np.float32
    assert kept.vectors(["ccc", "aa"]).tolist() == [[3, 99, 0.5], [2, 97, 0.5]]
    assert first.asked == ["b", "aa", "ccc"]
    second = Letters()
    again = SentenceEncodings(second, tmp_path)
    assert len(again) == 3
    assert again.vectors(["aa", "ccc", "d"]).tolist() == [[2, 97, 0.5], [3, 99, 0.5], [1, 100, 0.5]]
    assert second.asked == ["d"]


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
    assert other.asked == ["b"]


def test_a_killed_run_loses_its_last_piece_alone(tmp_path: Path):
    class Killed(Letters):
        def encode(self, sentences: Sequence[str]) -> np.ndarray:
            if "e" in sentences:
                raise KeyboardInterrupt
            return super().encode(sentences)

    with pytest.raises(KeyboardInterrupt):
        SentenceEncodings(Killed(), tmp_path).ensure(["a", "b", "c", "d", "e"])
    assert len(SentenceEncodings(Letters(), tmp_path)) == 4


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
    assert encoder.asked == ["ccc"]


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
    assert other.asked == ["ccc", "dddd"], "bb was there"
    assert files(tmp_path)[1].stat().st_size == 4 * 16
    assert first.vectors(["dddd", "a"]).tolist() == [[4, 100, 0.5], [1, 97, 0.5]]


def _ensure(folder: Path, start: int) -> None:
    texts = [chr(97 + (start + n) % 26) * (1 + (start + n) % 40) for n in range(40)]
    SentenceEncodings(Letters(), folder).ensure(texts)


def test_processes_that_write_at_once_do_not_disturb_each_other(tmp_path: Path):
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_ensure, args=(tmp_path, start)) for start in (0, 7, 20)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    encoder = Letters()
    kept = SentenceEncodings(encoder, tmp_path)
    texts = [chr(97 + n % 26) * (1 + n % 40) for n in range(60)]
    assert kept.vectors(texts).tolist() == [[len(text), ord(text[0]), 0.5] for text in texts]
    assert encoder.asked == []
    assert files(tmp_path)[1].stat().st_size == 16 * len(set(texts))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("vectors", r"vectors\.bin:1: field file: 1 vectors for 2 keys; delete the folder .*abc"),
        ("size", r"size\.json:1: field file: the size is 4, but the encoder's is 3; delete the folder"),
        ("no size", r"size\.json:1: field file: the size is None, but the encoder's is 3; delete"),
        ("broken size", r"size\.json:1: field file: the size is None"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path: Path, fault: str, message: str):
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


def test_the_bar_counts_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    kept = SentenceEncodings(Letters(), tmp_path)
    kept.ensure(["b", "aa"])
    kept.ensure(["b", "c", "d", "e"], name="test sentences")
    assert "test sentences: 100%" in (shown := capsys.readouterr().out)
    assert "3/3" in shown
    kept.ensure(["b"])
    assert capsys.readouterr().out == ""
