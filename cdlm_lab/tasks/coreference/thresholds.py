"""The threshold at which clusters of mentions are merged no more: the best on dev, that of another run, or
one that needs no gold clusters of the new texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from cdlm_lab.data.records import Topic
from cdlm_lab.parameters import ParameterError
from cdlm_lab.tasks.coreference import clustering
from cdlm_lab.tasks.coreference.metrics import score
from cdlm_lab.tasks.coreference.scoring import GroupPrediction, key_of, response_at
from cdlm_lab.training.trained import trained_merged, trained_threshold

THRESHOLDS = np.round(np.arange(0.02, 1.0, 0.02), 2)
LOW_THRESHOLDS = (0.0005, 0.001, 0.002, 0.005, 0.01)  # of `one-reading` as well


class Prepared(Protocol):
    """What is known of a run before its scores."""

    settings: Any
    topics: Mapping[str, list[Topic]]


def threshold_for(
    prepared: Prepared, dev: Sequence[GroupPrediction], test: Sequence[GroupPrediction]
) -> clustering.ThresholdChoice:
    """The threshold as `threshold_by` says: the best on dev; that of the run which `trained` names; or the
    one at which the same share of the mentions is merged in test as in the gold clusters of what that run was
    trained on, which needs no gold of test and no scores that mean the same there. On the dev split of
    ECB+META, where it was chosen, the largest gap, Otsu's method, a mixture of two Gaussians, and the share
    that the same head word merges were worse."""
    if prepared.settings.threshold_by == "dev":
        return choose_threshold(prepared, dev)
    threshold = of_trained(prepared.settings)
    if prepared.settings.threshold_by == "unlabelled":
        threshold = clustering.threshold_of_share([one.tree for one in test], threshold)
    return choose_threshold(prepared, dev, among=[threshold])


def of_trained(settings: Any) -> float:
    """The threshold of the run that `trained` names, or for `unlabelled` the share of its mentions that are
    merged. Raises ParameterError if it does not say."""
    by, run = settings.threshold_by, settings.trained
    known = trained_threshold(run) if by == "trained" else trained_merged(run)
    if known is None:
        what = "chose no threshold" if by == "trained" else "does not say how many of its mentions are merged"
        raise ParameterError(f"threshold_by is {by!r}, but {run} {what}; name a finished run, or write 'dev'")
    return known


def choose_threshold(
    prepared: Prepared, predictions: Sequence[GroupPrediction], *, among: Sequence[float] = ()
) -> clustering.ThresholdChoice:
    """The threshold with the best CoNLL F1 on dev, without singletons if the settings leave these out.
    `among`: the candidates; () = the usual ones."""
    key, singletons = key_of(prepared.topics["dev"], prepared.settings.kind), prepared.settings.singletons

    def conll_f1(threshold: float) -> float:
        return score(key, response_at(predictions, threshold), singletons=singletons)["conll"].f1

    low = LOW_THRESHOLDS if prepared.settings.scorer == "one-reading" else ()
    return clustering.best_threshold(among or [*low, *THRESHOLDS.tolist()], conll_f1)
