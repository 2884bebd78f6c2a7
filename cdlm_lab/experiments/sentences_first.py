"""Sentences first: pairs are scored by the sentences of their mentions, and whole documents are read only
for those that may corefer (the option `first_by_sentences` of notebook 03; in no paper).

The same scorer reads both. The threshold of the first go is the largest that passes over at most a stated
share of the pairs of dev that corefer; what it passes over elsewhere is measured, not chosen.

A pair that is passed over keeps its score by sentences: it is the same scorer's probability of the same
thing, read from less. Average linkage takes the mean over all pairs of two clusters, and to call a pair
impossible that nobody has read, with 0, would weigh more in it than anything that was read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cdlm_lab.examples.mention_pairs import MentionPairExamples
from cdlm_lab.experiments.pair_scoring import score_pairs
from cdlm_lab.models.cross_encoder import PairScorer

MORE_AT_ONCE = 8  # times as many pairs of sentences as of documents


@dataclass(frozen=True, kw_only=True, eq=False)
class FirstGo:
    """What sentences say of the pairs of a split.

    Attributes:
        scores: float32 (pairs,), probabilities by sentences.
        threshold: pairs that score less are not read in whole documents.
    """

    scores: np.ndarray
    threshold: float

    @property
    def read(self) -> np.ndarray:
        """bool (pairs,), True = read in whole documents."""
        return self.scores >= self.threshold


def by_sentences(
    model: PairScorer, examples: MentionPairExamples, *, file: Path | None, batch_size: int, **form: Any
) -> np.ndarray:
    """The scores of the first go, kept beside `file`; arguments as of `score_pairs`. Sentences are short: so
    many more are read at once."""
    sentences, kept = replace(examples, context="sentences"), _beside(file, "sentences")
    return score_pairs(model, sentences, file=kept, batch_size=MORE_AT_ONCE * batch_size, **form)


def passing_threshold(scores: np.ndarray, corefer: np.ndarray, *, lost: float) -> float:
    """The largest threshold that at most a share of the coreferring pairs score less than; 0 if none does.

    Args:
        scores: (pairs,).
        corefer: bool (pairs,).
        lost: the share, in [0, 1).

    Example:
        >>> scores, corefer = np.array([0.1, 0.2, 0.3, 0.9]), np.array([True, False, True, True])
        >>> passing_threshold(scores, corefer, lost=0.34), passing_threshold(scores, corefer, lost=0.3)
        (0.3, 0.1)
    """
    found = np.sort(scores[corefer])
    return float(found[int(lost * len(found))]) if len(found) else 0.0


def in_two_goes(
    model: PairScorer, examples: MentionPairExamples, first: FirstGo, *, file: Path | None, **form: Any
) -> np.ndarray:
    """Scores of whole documents where these are read, of sentences elsewhere; float32 (pairs,). Arguments as
    of `score_pairs`."""
    return _in_whole(model, examples, first.scores, first.read, file=_beside(file, "read"), **form)


def in_full(
    model: PairScorer, examples: MentionPairExamples, first: FirstGo, *, file: Path | None, **form: Any
) -> np.ndarray:
    """As if there had been no first go: what `in_two_goes` has read is not read again."""
    scores = in_two_goes(model, examples, first, file=file, **form)
    return _in_whole(model, examples, scores, ~first.read, file=_beside(file, "passed-over"), **form)


def _in_whole(
    model: PairScorer,
    examples: MentionPairExamples,
    scores: np.ndarray,
    chosen: np.ndarray,
    *,
    file: Path | None,
    **form: Any,
) -> np.ndarray:
    """The scores, with those of the chosen pairs (bool) by whole documents."""
    found = scores.copy()
    if chosen.any():
        found[chosen] = score_pairs(model, examples.in_order(np.flatnonzero(chosen)), file=file, **form)
    return found


def _beside(file: Path | None, what: str) -> Path | None:
    return file and file.with_name(f"{file.stem}-{what}{file.suffix}")
