"""The plainest matcher there is, as a measure of how hard a corpus is: cosine of TF-IDF vectors, and a
threshold learned on train."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from cdlm_lab.data.document_pairs import DocumentPair
from cdlm_lab.experiments.match_predictions import MatchPredictions


class WordOverlap:
    """Fitted on pairs of train; `predict` then says of any pairs how probable it is that they belong together
    (logistic regression on the cosine), and aligns a sentence by its cosine with the other document."""

    def __init__(self, training: Sequence[DocumentPair]) -> None:
        documents = {one.id: one for pair in training for one in (pair.first, pair.second)}
        self._words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+")
        self._words.fit(one.text_of() for one in documents.values())
        labels = [pair.related for pair in training]
        self._decision = LogisticRegression().fit(self._cosines(training)[:, None], labels)

    def predict(self, pairs: Sequence[DocumentPair]) -> MatchPredictions:
        """Of pairs, in order; see the head of this class."""
        probabilities = self._decision.predict_proba(self._cosines(pairs)[:, None])[:, 1]
        cosine = [
            np.asarray(
                (self._vectors(pair.first.sentences) @ self._vectors([pair.second.text_of()]).T).todense()
            )
            .ravel()
            .astype(np.float64)
            for pair in pairs
        ]
        return MatchPredictions(probabilities=probabilities, alignments={"cosine": cosine})

    def _cosines(self, pairs: Sequence[DocumentPair]) -> np.ndarray:
        first, second = (
            self._vectors([one.text_of() for one in documents])
            for documents in zip(*((pair.first, pair.second) for pair in pairs), strict=True)
        )
        return np.asarray(first.multiply(second).sum(axis=1)).ravel()

    def _vectors(self, texts: Sequence[str]) -> csr_matrix:
        return self._words.transform(texts)
