"""How similar articles are: the cosine of their words by TF-IDF, and the Jaccard index of their five-grams.

A vector has the words of the title, twice, and the first 300 of the text, weighted by 1 + log(count) and by
the inverse document frequency in the pile (smoothed, as in scikit-learn), and has the length 1. Words that
fewer than two articles have, or more than 30% of them and more than 20, say nothing. In writing without
spaces (Chinese, Japanese, Thai, ...) each pair of neighbouring characters is a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import regex
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

from cdlm_lab.data.words import words_of
from cdlm_lab.mining.articles import Article

FIRST_WORDS = 300  # of the text
TITLE_TIMES = 2
FEWEST_WITH_WORD = 2
LARGEST_SHARE_WITH_WORD, ALWAYS_FEW = 0.3, 20
BLOCK = 500  # rows that are compared at once
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_IS_UNSPACED = regex.compile(rf"[{_UNSPACED}]")
GRAM = 5  # words


class Pairs(NamedTuple):
    """Pairs of articles, by their places (first < second), with their cosines; three arrays (pair,)."""

    first: np.ndarray
    second: np.ndarray
    cosine: np.ndarray


def compared_words(text: str) -> list[str]:
    """The words of a text in lower case, of at least two characters."""
    compared = []
    for word in words_of(text.lower()):
        if _IS_UNSPACED.search(word):
            compared += [word[place : place + 2] for place in range(max(1, len(word) - 1))]
        elif len(word) > 1:
            compared.append(word)
    return compared


def counted_words(article: Article) -> list[str]:
    """The words of an article that its vector is made of."""
    text = article.text
    # 300 words of the text are in its first 300 pieces between spaces; far fewer pieces without spaces.
    start = " ".join(text.split(None, FIRST_WORDS)[:FIRST_WORDS])[: 12 * FIRST_WORDS]
    words = compared_words(article.title) * TITLE_TIMES + compared_words(start)
    return [word for word in words if word not in ENGLISH_STOP_WORDS]


def vectors_of(articles: Iterable[Article], *, count: int) -> csr_matrix:
    """TF-IDF vectors (article, word), float32, of `count` articles; one without any word that says something
    has the vector 0."""
    most = max(int(LARGEST_SHARE_WITH_WORD * count), ALWAYS_FEW)
    vectoriser = TfidfVectorizer(
        analyzer=counted_words, sublinear_tf=True, min_df=FEWEST_WITH_WORD, max_df=most, dtype=np.float32
    )
    try:
        return vectoriser.fit_transform(articles)
    except ValueError:  # "empty vocabulary" or "no terms remain"
        return csr_matrix((count, 1), dtype=np.float32)


def similar_pairs(
    vectors: csr_matrix, days: np.ndarray, places: range, *, least: tuple[float, float], window: int
) -> Iterator[Pairs]:
    """Yield the pairs of similar articles that are at most `window` days apart, block by block.

    Args:
        vectors: (article, word), in order of day, those without a date last.
        days: of each article, float; nan = without a date, which is near every day.
        places: of the articles that are compared with those before them.
        least: cosine of a similar pair with two dates, and of one without.
    """
    for start in range(places.start, places.stop, BLOCK):
        stop = min(start + BLOCK, places.stop)
        undated = bool(np.isnan(days[start:stop]).any())
        low = 0 if undated else int(np.searchsorted(days[:stop], days[start] - window, side="left"))
        cosines = (vectors[start:stop] @ vectors[low:stop].T).tocoo()
        row, other = cosines.row + start, cosines.col + low
        apart = np.abs(days[row] - days[other])
        similar = cosines.data >= np.where(np.isnan(apart), least[1], least[0])
        kept = (other < row) & similar & (np.isnan(apart) | (apart <= window))
        # Rounded, so that the order of sums in the last digits decides no tie.
        yield Pairs(other[kept], row[kept], np.round(cosines.data[kept].astype(np.float64), 6))


def grams_of(article: Article) -> frozenset[int]:
    """The five-grams of the words of a whole text, each as a number."""
    words = compared_words(article.text)
    places = range(max(1, len(words) - GRAM + 1))
    return frozenset(hash(tuple(words[place : place + GRAM])) for place in places)


def jaccard(first: frozenset[int], second: frozenset[int]) -> float:
    """The share of five-grams that both have among those that either has."""
    both = len(first & second)
    return both / (len(first) + len(second) - both) if first or second else 0.0
