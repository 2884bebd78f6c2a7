"""Word vectors as GloVe is published: text, one word a line, most frequent first.

    the 0.418 0.24968 -0.41242
    at name@domain.com 0.1 -0.2 0.3

A word may hold spaces (GloVe 840B has some) and the odd white space of Unicode, so values are counted from
the right and parted by plain spaces. The first line says how many there are, either by its own values or as
word2vec does, in a header of two numbers: words and values.
"""

from __future__ import annotations

import re
from array import array
from math import isfinite, nan
from pathlib import Path

import numpy as np

from cdlm_lab.data.files import DataError, read_lines
from cdlm_lab.progress import tracked

_HEADER = re.compile(r"([0-9]+) ([0-9]+)")
_DIGITS = 9  # of a number in it
_FRACTION = re.compile(r"[-+]?[0-9]*\.[0-9]+([eE][-+]?[0-9]+)?")
_REMEDY = "write a word and its values, with single spaces between them"


def read_word_vectors(path: str | Path, *, limit: int = 0) -> tuple[tuple[str, ...], np.ndarray]:
    """Words and their vectors, float32 (words, size), in the order of the file.

    Of a word that is there twice the first vector is kept.

    Args:
        path: the file, plain or compressed.
        limit: read no more than so many words; 0 = all.

    Raises:
        ValueError: a limit below 0.
        DataError: a line with another number of values than the first line has or says, a value that is no
            finite number in float32, no vectors at all, another number of lines than the first one says; and
            as `files.read_lines`. Lines behind the last word wanted are not read.
    """
    if limit < 0:
        raise ValueError(f"limit is {limit}; it must be a number of words, or 0 for all")
    words: dict[str, None] = {}
    values, size, said, count = array("f"), 0, 0, 0
    for line, text in tracked(read_lines(path), desc="reading word vectors", unit="word", total=limit):
        plain = text.rstrip(" ")  # word2vec ends its lines with a space
        if not plain:
            continue
        if line == 1 and (header := _HEADER.fullmatch(plain)):
            said, size = _sizes(*header.groups(), path=path)
            continue
        count += 1
        size = size or max(plain.count(" "), 1)
        word, vector = _parse(plain, size, path=path, line=line)
        if word not in words:
            words[word] = None
            values.extend(vector)
            if len(words) == limit:
                break
    if not words:
        raise DataError(path, "no word vectors", _REMEDY)
    if said not in (0, count) and len(words) != limit:
        what = f"it says {said:,} words, but there are {count:,}"
        raise DataError(path, what, "copy or download the file again", field="header")
    return tuple(words), np.frombuffer(values, dtype=np.float32).reshape(len(words), size)


def _sizes(*numbers: str, path: str | Path) -> tuple[int, ...]:
    if max(map(len, numbers)) > _DIGITS:
        what = f"{' '.join(numbers)[:40]!r} is no number of words and of values"
        raise DataError(path, what, _REMEDY, field="header")
    return tuple(map(int, numbers))


def _parse(text: str, size: int, *, path: str | Path, line: int) -> tuple[str, array]:
    word, *pieces = text.rsplit(" ", size)
    # A value too many looks like a word with a space; but none in GloVe ends in a space and a fraction.
    extra = " " in word and _FRACTION.fullmatch(word.rpartition(" ")[2])
    if not word or word != word.strip(" ") or len(pieces) != size or extra:
        what = f"not a word and a vector of size {size}"
        raise DataError(path, what, _REMEDY, line=line, field="line")
    vector = array("f", map(_number, pieces))
    for place, number in enumerate(vector):
        if not isfinite(number):
            what, remedy = f"{pieces[place][:40]!r} is no finite number", "correct it, or leave the word out"
            raise DataError(path, what, remedy, line=line, field=f"value {place + 1}")
    return word, vector


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan
