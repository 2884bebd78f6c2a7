"""Reports with invented numbers, written by the library's functions as notebooks write theirs; and a recorded
report in the form of its run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from cdlm_lab.data.records import CandidateSet, EvidencedClaim, counts_of
from cdlm_lab.runs.evaluation import Measure, evaluate
from cdlm_lab.runs.items import items_of
from cdlm_lab.runs.report import Report, open_run
from cdlm_lab.tasks.joint import answers as answer_selection
from cdlm_lab.tasks.joint import claims as fact_verification
from cdlm_lab.tasks.joint.answers import AnswerRun, AnswerSplit
from cdlm_lab.tasks.joint.claims import VerificationRun
from cdlm_lab.tasks.joint.ranking import AnswerPredictions
from cdlm_lab.tasks.joint.verifying import ClaimPredictions
from cdlm_lab.tasks.pretraining.perplexity import MEASURES, ClusterLosses, items_of_losses, neighbours

RESULTS = Path(__file__).resolve().parents[2] / "data" / "results"
MADE: Mapping[str, object] = {}
SHIPPED = {variant: f"storyworld/{variant}" for variant in ("longformer", "local-cdlm", "cdlm")}


def perplexity_report(
    folder: Path,
    losses: Mapping[str, float],
    *,
    checkpoints: Mapping[str, str] = SHIPPED,
    made: Mapping[str, object] = MADE,
    seed: int = 0,
    max_length: int = 512,
    corpus: str = "storyworld",
) -> Report:
    """Write a report of notebook 02; `losses`: mean loss of each variant, around which eight clusters lie;
    `made`: what made each checkpoint."""
    spread = np.tile([-0.1, 0.1, -0.05, 0.05], 2)
    measured = {
        variant: ClusterLosses(
            loss=(loss + spread) * 10,
            tokens=np.full(8, 10.0),
            cross_loss=np.zeros(8),
            cross_tokens=np.zeros(8),
        )
        for variant, loss in losses.items()
    }
    names = {name.replace("-", "_"): where for name, where in checkpoints.items()}
    parameters = {"run_folder": str(folder), "corpus": corpus, "split": "test", "seed": seed, **names}
    run = open_run(
        folder, name="cross-document perplexity", parameters=parameters | {"max_length": max_length}
    )
    found = evaluate(items_of_losses(measured), MEASURES, neighbours(measured))
    tables = {"comparisons": [{"kind": row["measure"], **row} for row in found.comparisons]}
    data = {"checksum": "0" * 64, "clusters": 8, "clusters_dropped": 0}
    encoders = {name: {"model": where, "name": where, **made} for name, where in checkpoints.items()}
    return run.write_report(scores=found.rows, data=data, tables=tables, encoders=encoders)


def matching_report(
    folder: Path,
    systems: Mapping[str, tuple[float, float]],
    *,
    encoders: str = "storyworld",
    made: Mapping[str, object] = MADE,
    **more: int,
) -> Report:
    """Write a report of notebook 04 with two seeds; `systems`: accuracy on ten pairs of dev and of test."""

    def items(system: str, split: str, share: float, seed: int) -> pd.DataFrame:
        right = np.roll(np.arange(10) < round(10 * share), seed)
        form = {"system": system, "split": split, "seed": seed, "items": range(10)}
        return items_of({"accuracy": right, "f1": right}, **form)

    every = [
        items(system, split, share, seed)
        for system, shares in systems.items()
        for split, share in zip(("dev", "test"), shares, strict=True)
        for seed in range(2)
    ]
    rows = evaluate(pd.concat(every), [Measure("accuracy"), Measure("f1")]).rows
    parameters = more | {"run_folder": str(folder), "corpus": "storyworld", "systems": " ".join(systems)}
    parameters |= {"sentence_encoder": "minilm", "encoders": encoders}
    models = {
        one: "minilm" if one.startswith("bert") else f"{encoders}/{one}" for one in systems if one != "tf-idf"
    }
    run = open_run(folder, name="document matching", parameters=parameters)
    return run.write_report(
        scores=[row for row in rows if row.seed is None],
        data={"pairs": {"test": 10}, "clusters": {"test": 10}},
        tables={"comparisons": [], "runs": []},
        encoders={system: {"model": name, "name": name, **made} for system, name in models.items()},
    )


IDS = ("q1", "q2", "q3", "q4")
SETS = tuple(
    CandidateSet(
        id=name, question="Who?", candidates=("right", "wrong", "other"), correct=(True, False, False)
    )
    for name in IDS
)
# (system, seed) -> rank of the right candidate of each question.
PLACES = {
    ("pairwise", 0): (1, 2, 3, 1),
    ("pairwise", 1): (1, 1, 2, 1),
    ("joint-ie", 0): (3, 3, 3, 1),
    ("joint-ie", 1): (2, 3, 3, 3),
    ("mspp-ie", 0): (1, 1, 2, 1),
    ("mspp-ie", 1): (1, 1, 1, 1),
}


def known(**models: str) -> dict[str, dict[str, str]]:
    """Encoders of systems, of which only the names are known; `_` stands for `-`."""
    return {system.replace("_", "-"): {"model": name, "name": name} for system, name in models.items()}


class Answers(AnswerRun):
    """A run of notebook 09 whose models are nowhere."""

    encoders: ClassVar = known(
        pairwise="storyworld/longformer", joint_ie="storyworld/longformer", mspp_ie="given/mspp-ie"
    )


class Claims(VerificationRun):
    """A run of notebook 10 whose models are nowhere."""

    encoders: ClassVar = known(claim_only="minilm", pairwise_sum="minilm", joint_ie="minilm")


def answer_report(folder: Path, *, corpus: str = "wikiqa") -> Report:
    """Write a report of notebook 09: `PLACES` among all candidates, and with only the best two reranked."""
    split = AnswerSplit(sets=SETS, read=counts_of(SETS), corpus=corpus)
    settings = answer_selection.Settings(
        run_folder=str(folder), systems="pairwise joint-ie mspp-ie", candidates=2, mspp="given", seeds=2
    )
    run = Answers(
        settings=settings,
        splits=dict.fromkeys(("train", "dev", "test"), split),
        opened=open_run(folder, name=AnswerRun.NAME, parameters=asdict(settings)),
    )
    predictions = {}
    for (system, seed), places in PLACES.items():
        scores = [np.array([2.5 - place, 1.0, 0.0]) for place in places]
        every = AnswerPredictions(sets=SETS, scores=scores)
        best = AnswerPredictions(sets=SETS, scores=[np.array([*one[:2], np.nan]) for one in scores])
        again = {} if system == "pairwise" else {"dev_reranked": best, "test_reranked": best}
        predictions[system, seed] = {"dev": every, "test": every, **again}
    return answer_selection.report(run, answer_selection.evaluate(run, predictions, latencies=[]))


GOLD = ("supported", "supported", "refuted", "refuted")
CLAIMS = tuple(
    EvidencedClaim(id=f"c{n}", text=f"claim {n}", evidence=("e",), label=label, group=f"page {n}")
    for n, label in enumerate(GOLD)
)
# Predictions for the claims: + = supported, - = refuted.
SAID = {"claim-only": "++++", "pairwise-sum": "++-+", "joint-ie": "++--"}


def claim_report(folder: Path, **more: str) -> Report:
    """Write a report of notebook 10 with the predictions `SAID` and one seed."""
    parameters = {"corpus": "fm2", "model": "minilm", "mspp": "", "systems": " ".join(SAID)} | more
    run = Claims(
        settings=fact_verification.Settings(systems=" ".join(SAID)),
        claims=dict.fromkeys(("train", "dev", "test"), CLAIMS),
        opened=open_run(folder, name=VerificationRun.NAME, parameters=parameters),
    )
    labels = ("supported", "refuted")
    predictions = {}
    for system, signs in SAID.items():
        rows = [[0.75, 0.25] if sign == "+" else [0.25, 0.75] for sign in signs]
        one = ClaimPredictions(claims=CLAIMS, labels=labels, probabilities=np.array(rows))
        predictions[system, 0] = dict.fromkeys(run.held_out, one)
    return fact_verification.report(run, fact_verification.evaluate(run, predictions))


def write_history(training: Path, records: Sequence[Mapping[str, float]]) -> None:
    """Write the records of a training to its folder."""
    training.mkdir(parents=True)
    (training / "history.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))


def recorded_run(
    folder: Path,
    records: Sequence[Mapping[str, float]],
    *,
    system: str = "cdlm",
    kind: str = "bridge",
    finished: str = "2026-01-01T00:00:00+00:00",
    **parameters: object,
) -> None:
    """Make the folder of the recorded run of notebook 06, with the training records of a system, and with
    `kind` as the name of its first kind of questions."""
    write_history(folder / "systems" / f"{system}-0" / "training", records)
    values = json.loads((RESULTS / "storyworld_tiny" / "questions.json").read_text())
    values["parameters"] |= parameters
    values["tables"]["kinds"][0]["kind"] = kind
    (folder / "report.json").write_text(json.dumps(values | {"finished": finished}))
