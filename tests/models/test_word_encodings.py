"""Encodings of words on disk: each sentence is computed once and read where it lies."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.models import frozen as word_encodings
from cdlm_lab.models.frozen import WordEncodings, load_word_encoder


class Letters:
    """Stands for a `WordEncoder`: a word's vector is its length, its first letter and a third."""

    size, fingerprint = 3, "abc"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        self.asked += [list(words) for words in sentences]
        return [np.array([[len(word), ord(word[0]), 1 / 3] for word in words], "f4") for words in sentences]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_encodings, "PIECE", 2)


def test_each_sentence_is_computed_once(tmp_path: Path):
    first = Letters()
    kept = WordEncodings(first, tmp_path, half=False)
    kept.ensure([["b", "aa"], ("ccc",), ["b", "aa"], [], ["d"]])
    assert first.asked == [["b", "aa"], ["ccc"], ["d"]]
    third = np.float32(1 / 3)
    assert kept.rows(("b", "aa")).tolist() == [[1, 98, third], [2, 97, third]]
    assert (len(kept), kept.size, kept.rows(["ccc"]).dtype) == (3, 3, np.float32)
    second = Letters()
    again = WordEncodings(second, tmp_path, half=False)
    again.ensure([["ccc"], ["b"]])
    assert again.rows(["ccc"]).tolist() == [[3, 99, third]]
    assert second.asked == [["b"]], "words that stood in another sentence are others"


def test_what_is_missing_is_computed_when_it_is_read(tmp_path: Path):
    encoder = Letters()
    kept = WordEncodings(encoder, tmp_path)
    assert kept.rows(["b", "aa"])[:, :2].tolist() == [[1, 98], [2, 97]]
    assert kept.rows(["b", "aa"]).shape == (2, 3)
    assert encoder.asked == [["b", "aa"]]


def test_a_sentence_without_words_has_no_rows(tmp_path: Path):
    kept = WordEncodings(Letters(), tmp_path)
    assert (kept.rows([]).shape, kept.rows([]).dtype, len(kept)) == ((0, 3), np.float16, 0)


def test_half_precision_has_a_folder_of_its_own(tmp_path: Path):
    half, single = WordEncodings(Letters(), tmp_path), WordEncodings(Letters(), tmp_path, half=False)
    assert (half.folder.name, single.folder.name) == ("abc_half", "abc")
    rounded, exact = half.rows(["b"]), single.rows(["b"])
    assert (rounded.dtype, exact.dtype) == (np.float16, np.float32)
    assert exact[0, 2] == np.float32(1 / 3)
    assert rounded[0, 2] == 0.333251953125  # 1365 / 4096
    assert (half.folder / "vectors.bin").stat().st_size == 3 * 2


def test_rows_are_a_part_of_the_mapped_file(tmp_path: Path):
    kept = WordEncodings(Letters(), tmp_path)
    kept.ensure([["b", "aa"], ["ccc"]])
    one, other = kept.rows(["b", "aa"]), kept.rows(["ccc"])
    assert np.shares_memory(one, kept.rows(["b", "aa"]))
    assert one.__array_interface__["data"][0] + one.nbytes == other.__array_interface__["data"][0]
    with pytest.raises(ValueError, match="read-only"):
        one[:] = 0


def test_sentences_with_other_words_have_other_keys(tmp_path: Path):
    encoder = Letters()
    WordEncodings(encoder, tmp_path).ensure([["a b"], ["a", "b"], ["ab"]])
    assert len(encoder.asked) == 3
    with pytest.raises(ValueError, match=r"word 1, 'c\\nd', has a line feed in it; take it out"):
        WordEncodings(Letters(), tmp_path).ensure([["b", "c\nd"]])


def test_the_encodings_of_a_real_encoder_come_back(tmp_path: Path):
    encoder = load_word_encoder("storyworld/longformer", layers=3, max_tokens=40)
    sentences = [["The", "river", "rose", "."], ["Rescuers", "searched", "the", "river"], ["No", "."]]
    expected = encoder.encode(sentences)
    for half, tolerance in ((False, 1e-5), (True, 2.0**-11)):
        kept = WordEncodings(encoder, tmp_path, half=half)
        kept.ensure(sentences)
        for words, rows in zip(sentences, expected, strict=True):
            found = kept.rows(words)
            assert found.shape == (len(words), 3 * 128)
            np.testing.assert_allclose(found.astype("f4"), rows, rtol=tolerance, atol=1e-4)


def test_a_sentence_that_is_too_long_stops_the_filling(tmp_path: Path):
    kept = WordEncodings(load_word_encoder("storyworld/longformer", layers=1, max_tokens=10), tmp_path)
    with pytest.raises(
        ValueError, match=r"the sentence 'river( river)+' has \d+ pieces, but there is room for 8"
    ):
        kept.ensure([["No"], ["."], ["river"] * 9])
    assert len(kept) == 2


def test_the_bar_counts_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    kept = WordEncodings(Letters(), tmp_path)
    kept.ensure([["b"], ["aa"]])
    kept.ensure([["b"], ["c"], ["d"], ["e"]], name="test sentences")
    assert "test sentences: 100%" in (shown := capsys.readouterr().out)
    assert "3/3" in shown
