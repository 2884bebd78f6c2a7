"""P@1, MAP and MRR of every system, with intervals over questions, deviations over seeds, and tests.

Each joint system is scored twice: `all`, all candidates in groups of k, ranked together (the paper's Table
1), and `reranked`, the k that the pairwise system ranks highest above all others (Tables 2 and 7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from cdlm_lab.experiments.answer_corpora import cluster_of
from cdlm_lab.experiments.answer_predictions import AnswerPredictions
from cdlm_lab.experiments.answer_selection import HELD_OUT, AnswerRun, Found
from cdlm_lab.experiments.answer_systems import ANSWER_SYSTEMS, PAIRWISE
from cdlm_lab.experiments.seed_scores import compare_means, mean_score
from cdlm_lab.experiments.seed_t_test import t_test_of_seeds
from cdlm_lab.metrics.ranking import values_per_group
from cdlm_lab.metrics.significance import holm

ALL, RERANKED = "all", "reranked"
RANKINGS = (ALL, RERANKED)
RANDOM = "random"
MEASURES = {"p_at_1": "precision_at_1", "map": "average_precision", "mrr": "reciprocal_rank"}
# Measure -> with each seed float64 (questions,).
OfSeeds = Mapping[str, list[np.ndarray]]


@dataclass(frozen=True, kw_only=True)
class AnswerScores:
    """Every score of every question, worked out once for all tables.

    Attributes:
        run, found: what is scored.
        values: (system, ranking, split) -> measure -> seeds.
    """

    run: AnswerRun
    found: Found
    values: dict[tuple[str, str, str], OfSeeds] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for system in self.run.systems:
            for ranking in RANKINGS if system.is_joint else (ALL,):
                for split in HELD_OUT:
                    seeds = [
                        _values(predictions_of(self.found, system.name, seed, split, ranking=ranking))
                        for seed in range(self.run.settings.training.seeds)
                    ]
                    self.values[system.name, ranking, split] = {
                        measure: [one[name] for one in seeds] for measure, name in MEASURES.items()
                    }

    def scores(self) -> dict[str, dict[str, Any]]:
        """As a report has them, `system/ranking/split/measure`; of a random order what is expected, which has
        no interval."""
        found = {}
        for (system, ranking, split), of_measure in self.values.items():
            for measure, seeds in of_measure.items():
                score = mean_score(seeds, self._clusters(split), seed=0)
                found[f"{system}/{ranking}/{split}/{measure}"] = score
        for split in HELD_OUT:
            sets = self.run.sets(split)
            # Of equal scores alone, every measure is its expectation over random orders.
            order = AnswerPredictions(sets=sets, scores=[np.zeros(len(one.candidates)) for one in sets])
            values = _values(order)
            for measure, name in MEASURES.items():
                found[f"{RANDOM}/{ALL}/{split}/{measure}"] = {"value": float(values[name].mean())}
        return found

    def runs(self) -> list[dict[str, Any]]:
        """A row for each training, ranking and split, with its means."""
        return [
            {
                "system": system,
                "ranking": ranking,
                "split": split,
                "seed": seed,
                **{measure: float(seeds[seed].mean()) for measure, seeds in of_measure.items()},
            }
            for (system, ranking, split), of_measure in self.values.items()
            for seed in range(self.run.settings.training.seeds)
        ]

    def comparisons(self) -> list[dict[str, Any]]:
        """On test, each joint system against pairwise, and with MSPP against without. `p_holm`: corrected for
        the systems tested against the same kind of other with one measure and ranking; `p_seeds`: of
        `t_test_of_seeds`."""
        names = {system.name for system in self.run.systems}
        joint = [system for system in self.run.systems if system.is_joint]
        families = (
            [(system.name, PAIRWISE) for system in joint],
            [(system.name, system.plain) for system in joint if system.plain in names],
        )
        return [
            row
            for ranking in RANKINGS
            for measure in MEASURES
            for family in families
            for row in self._family(family, ranking=ranking, measure=measure)
        ]

    def _family(
        self, pairs: Sequence[tuple[str, str]], *, ranking: str, measure: str
    ) -> list[dict[str, Any]]:
        rows = []
        for a, b in pairs:
            other = ALL if b == PAIRWISE else ranking
            sides = [self.values[name, how, "test"][measure] for name, how in ((a, ranking), (b, other))]
            compared = compare_means(*sides, self._clusters("test"), seed=0)
            p_seeds = t_test_of_seeds(*([float(one.mean()) for one in side] for side in sides))
            rows.append(
                {
                    "a": a,
                    "b": b,
                    "ranking": ranking,
                    "measure": measure,
                    **asdict(compared),
                    "p_seeds": p_seeds,
                }
            )
        corrected = holm([row["p_permutation"] for row in rows])
        return [{**row, "p_holm": p} for row, p in zip(rows, corrected, strict=True)]

    def _clusters(self, split: str) -> list[str]:
        return list(map(cluster_of, self.run.sets(split)))


def predictions_of(
    found: Found, system: str, seed: int, split: str, *, ranking: str = ALL
) -> AnswerPredictions:
    """What ranks all candidates of a split.

    Args:
        ranking: `all`, or `reranked`: the best of pairwise by a joint system, the others as pairwise has
            them.
    """
    ranked = found[system, seed][split]
    if ranking == ALL or ranked.best is None:
        return ranked.every
    return ranked.best.after(found[PAIRWISE, seed][split].every)


def row_label(system: str, ranking: str, *, k: int) -> str:
    """What tables and figures call a system with a ranking."""
    label = ANSWER_SYSTEMS[system].label
    return label if ranking == ALL else f"{label} on pairwise's top {k}"


def _values(predictions: AnswerPredictions) -> dict[str, np.ndarray]:
    return values_per_group(predictions.groups())
