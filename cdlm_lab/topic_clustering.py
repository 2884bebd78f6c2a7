"""The topic level `predicted`: which documents tell of the same thing, found from their words or read.

As Barhom et al. (2019) did for ECB+, documents are vectors of TF-IDF over words and runs of two and three
words, without English stop words, and K-means puts them into groups, of a number that is given or has the
best silhouette. Cattan et al. (2020) and CDLM read the groups that this gave for the test documents, 20 of
them; `read_predicted_topics` reads a file of that shape.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import silhouette_score

from cdlm_lab.data.files import DataError
from cdlm_lab.data.json_file import read_json

LONGEST_TERM = 3  # words
# In a collection of some size, a term counts if it is in three documents or more and in half of them or
# fewer, as in the code of Barhom et al.; a small one has no terms to spare.
FEWEST_FOR_LIMITS = 30  # documents
FEWEST_WITH_TERM = 3
LARGEST_SHARE_WITH_TERM = 0.5
MOST_TRIED = 60  # numbers of groups, when the silhouette is to choose
STARTS = 5  # of K-means; the best one counts


def predict_topics(texts: Mapping[str, str], *, clusters: int | None = None, seed: int = 0) -> dict[str, str]:
    """Put documents into groups by their words.

    The order of `texts` does not matter: documents are taken in the order of their ids.

    Args:
        texts: text of each document, by its id.
        clusters: how many groups. None: the number, from 2 to half of the documents (at most `MOST_TRIED`),
            whose groups have the highest silhouette (Rousseeuw 1987), the lower of equals; fewer than four
            different texts are one group, as the silhouette cannot tell.
        seed: of K-means.

    Returns:
        Name of the group of each document, "predicted-1" being that of the first id.

    Raises:
        ValueError: no documents, fewer different texts than groups, texts without a word to go by.
    """
    if not texts:
        raise ValueError("there are no documents to cluster; give at least one")
    names = sorted(texts)
    different = len({texts[name] for name in names})
    if clusters is not None and not 1 <= clusters <= different:
        raise ValueError(f"clusters is {clusters}; it must be from 1 to {different}, the different texts")
    if clusters == 1 or (clusters is None and different < 4):
        return dict.fromkeys(names, "predicted-1")
    vectors = _vectors([texts[name] for name in names])
    if clusters is not None:
        labels = _k_means(vectors, clusters, seed)
    else:
        tried = range(2, min(different // 2, MOST_TRIED) + 1)
        groupings = [_k_means(vectors, count, seed) for count in tried]
        labels = max(groupings, key=lambda grouping: _silhouette(vectors, grouping))
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels.tolist()), start=1)}
    return {name: f"predicted-{numbers[label]}" for name, label in zip(names, labels.tolist(), strict=True)}


def _vectors(texts: list[str]) -> csr_matrix:
    """(documents, terms), rows of length 1, or 0 where none of the terms occurs."""
    small = len(texts) < FEWEST_FOR_LIMITS
    vectoriser = TfidfVectorizer(
        ngram_range=(1, LONGEST_TERM),
        stop_words="english",
        min_df=1 if small else FEWEST_WITH_TERM,
        max_df=1.0 if small else LARGEST_SHARE_WITH_TERM,
    )
    try:
        return vectoriser.fit_transform(texts)
    except ValueError as error:  # "empty vocabulary", "no terms remain"
        what = f"the {len(texts)} documents have no words to tell them apart ({error})"
        raise ValueError(f"{what}; name their topics yourself") from None


def _k_means(vectors: csr_matrix, clusters: int, seed: int) -> np.ndarray:
    with warnings.catch_warnings():
        # Texts that differ in stop words alone are equal vectors; there can be fewer groups than asked for.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KMeans(clusters, n_init=STARTS, random_state=seed).fit_predict(vectors)


def _silhouette(vectors: csr_matrix, labels: np.ndarray) -> float:
    found = len(np.unique(labels))
    return float(silhouette_score(vectors, labels)) if 1 < found < len(labels) else -1.0


def read_predicted_topics(path: str | Path, *, documents: Iterable[str] | None = None) -> dict[str, str]:
    """Groups of documents from a JSON file: a list of groups, each a list of ids of documents.

    Args:
        path: the file; `.gz` and `.xz` are read too.
        documents: ids of those that must be there, and the only ones kept. None: all of the file.

    Returns:
        Name of the group of each document, "predicted-1" being the first of the file.

    Raises:
        DataError: no JSON, or not of this shape; a document that is in two groups, or in none.
    """
    _, groups = read_json(Path(path))
    if not isinstance(groups, list) or not groups:
        raise DataError(path, "no list of groups", 'write [["1_1ecb", "1_2ecb"], ["1_1ecbplus"]]')
    group_of: dict[str, str] = {}
    for number, group in enumerate(groups, start=1):
        field = f"[{number - 1}]"
        if not isinstance(group, list) or not group:
            raise DataError(path, "a group is a list of ids", 'write it as ["1_1ecb"]', field=field)
        for document in group:
            if not isinstance(document, str) or not document:
                what = f"{json.dumps(document)} is no id of a document"
                raise DataError(path, what, 'write it as "1_1ecb"', field=field)
            if document in group_of:
                what = f"document {document} is in {group_of[document]} already"
                raise DataError(path, what, "leave it in one group", field=field)
            group_of[document] = f"predicted-{number}"
    return group_of if documents is None else _kept(group_of, documents, path)


def _kept(group_of: Mapping[str, str], documents: Iterable[str], path: str | Path) -> dict[str, str]:
    wanted = list(dict.fromkeys(documents))
    if missing := [document for document in wanted if document not in group_of]:
        what = f"document {missing[0]} is in no group, one of {len(missing)} such"
        raise DataError(path, what, "add them, or read the documents that the file is for")
    return {document: group_of[document] for document in wanted}
