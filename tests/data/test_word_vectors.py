"""Files of word vectors: GloVe's and word2vec's, words that are odd, and lines that are wrong."""

import gzip

import numpy as np
import pytest

from cdlm_lab.data.files import read_word_vectors

GLOVE = "the 0.5 -1.25 2\nof 1e-2 0 3.0\n. . 4 5 6\na\u00a0b\x85\u2028 7 8 9\n\nof 10 11 12\n– 13 14 15.5"
WORDS = ("the", "of", ". .", "a\u00a0b\x85\u2028", "–")
VECTORS = [[0.5, -1.25, 2], [0.01, 0, 3], [4, 5, 6], [7, 8, 9], [13, 14, 15.5]]
REMEDY = "write a word and its values, with single spaces between them"


def test_glove(write):
    """A word with a space, one with Unicode's white space, a blank line, a word that comes again."""
    words, vectors = read_word_vectors(write("glove.txt", GLOVE))
    assert words == WORDS
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, np.array(VECTORS, dtype=np.float32))
    vectors[0] = 0  # not a view that may not be written to


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(GLOVE.encode()),
        f"6 3\n{GLOVE}",
        f"\ufeff6 3\r\n{GLOVE}".replace("\n", " \r\n").replace("\r \r", " \r"),
    ],
    ids=["compressed", "header", "header, spaces and returns at line ends"],
)
def test_other_forms(write, content):
    name = "glove.txt.gz" if isinstance(content, bytes) else "vectors.txt"
    words, vectors = read_word_vectors(write(name, content))
    assert words == WORDS
    np.testing.assert_array_equal(vectors, np.array(VECTORS, dtype=np.float32))


def test_the_first_word_of_a_file_with_a_header_may_have_a_space(write):
    words, vectors = read_word_vectors(write("v.txt", "2 2\nat me 0.5 1\nto 2 3\n"))
    assert words == ("at me", "to")
    assert vectors.tolist() == [[0.5, 1], [2, 3]]


def test_a_number_and_a_value_are_no_header(write):
    words, vectors = read_word_vectors(write("v.txt", "7 0.5\n8 2\n"))
    assert words == ("7", "8")
    assert vectors.tolist() == [[0.5], [2]]


@pytest.mark.parametrize(("limit", "count"), [(0, 5), (1, 1), (3, 3), (5, 5), (9, 5)])
def test_limit(write, limit, count):
    words, vectors = read_word_vectors(write("glove.txt", GLOVE), limit=limit)
    assert words == WORDS[:count]
    assert vectors.shape == (count, 3)


def test_limit_counts_words_and_not_lines_and_stops_there(write):
    path = write("v.txt", "a 1 2\na 3 4\nb 5 6\nbroken\n")
    words, vectors = read_word_vectors(path, limit=2)
    assert words == ("a", "b")
    assert vectors.tolist() == [[1, 2], [5, 6]]


def test_limit_below_zero(write):
    with pytest.raises(ValueError, match=r"^limit is -1; it must be a number of words, or 0 for all$"):
        read_word_vectors(write("glove.txt", GLOVE), limit=-1)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a 1 2 3\nb 1 2\n", 2),
        ("a 1 2 3\n\nb 0.1 0.2 0.3 0.4\n", 3),
        ("a 1 2 3\nb -7.1e-05 0.2 0.3 0.4\n", 2),
        ("a 1 2 3\n 0.1 0.2 0.3\n", 2),
        ("a 1 2 3\nb  0.1 0.2 0.3\n", 2),
        ("a 1 2 3\nb\t0.1\t0.2\t0.3\n", 2),
        ("2 3\na 1 2\n", 2),
    ],
    ids=["fewer", "more", "more and tiny", "no word", "two spaces", "tabs", "not as the header says"],
)
def test_lines_of_another_size(write, refused, content, line):
    path = write("v.txt", content)
    with refused(path, f"{line}: line: not a word and a vector of size 3; {REMEDY}"):
        read_word_vectors(path)


def test_a_first_line_without_values(write, refused):
    path = write("v.txt", "alone\nb 1\n")
    with refused(path, f"1: line: not a word and a vector of size 1; {REMEDY}"):
        read_word_vectors(path)


@pytest.mark.parametrize("value", ["x", "nan", "-inf", "1e39", "", "1,5"])
def test_values_that_are_no_numbers(write, refused, value):
    path = write("v.txt", f"a 1 2 3\nb 1 {value} 3\n")
    with refused(path, f"2: value 2: {value!r} is no finite number; correct it, or leave the word out"):
        read_word_vectors(path)


@pytest.mark.parametrize("content", ["0 50\n", "3 2\n\n \n"])
def test_no_vectors(write, refused, content):
    path = write("v.txt", content)
    with refused(path, f"1: file: no word vectors; {REMEDY}"):
        read_word_vectors(path)


def test_an_empty_file(write, refused):
    path = write("v.txt", "")
    with refused(path, "1: file: the file is empty; fill it, or take it out of the corpus"):
        read_word_vectors(path)


@pytest.mark.parametrize("header", ["1 99999999999999999999", f"{'9' * 5000} 2"])
def test_a_header_that_no_file_has(write, refused, header):
    path = write("v.txt", f"{header}\na 1 2\n")
    what = f"{header[:40]!r} is no number of words and of values"
    with refused(path, f"1: header: {what}; {REMEDY}"):
        read_word_vectors(path)


def test_a_file_that_was_cut_off_has_fewer_words_than_its_header_says(write, refused):
    path = write("v.txt", "3 2\na 1 2\nb 3 4\n")
    what = "it says 3 words, but there are 2"
    with refused(path, f"1: header: {what}; copy or download the file again"):
        read_word_vectors(path)
    assert read_word_vectors(path, limit=2)[0] == ("a", "b")
