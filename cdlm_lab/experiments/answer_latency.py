"""How long systems take for one question, measured, beside what the MSPP paper expects (appendix C.3)."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import accumulate
from statistics import median

from cdlm_lab.data.records import CandidateSet
from cdlm_lab.experiments.answer_models import Ranker
from cdlm_lab.experiments.answer_predictions import score_examples
from cdlm_lab.experiments.answer_selection import AnswerRun
from cdlm_lab.models.precision import Precision
from cdlm_lab.report.values import write_json
from cdlm_lab.widgets.joint_numbers import Latency

FILE = "latency.json"
MOST_CANDIDATES = 400  # of the test questions that are timed, together
RUNS = 3


def expected_ratios(k: int) -> tuple[float, float]:
    """How many times as long as pairwise reading joint reading of k candidates should take, if every sentence
    has one length: of what grows with the square of a sequence (self-attention), (k + 1)^2 / 4k, and of what
    grows with its length (all other layers), (k + 1) / 2k."""
    return (k + 1) ** 2 / (4 * k), (k + 1) / (2 * k)


def measured_latencies(run: AnswerRun) -> list[Latency]:
    """Seconds for one question, of every system with seed 0: the first test questions, one after the other,
    all groups of a question at once, without the time for tokenising. Systems take turns, so that whatever
    else the machine does hits all. Measured once and kept in the folder of the run."""
    file = run.folder / FILE
    if not file.is_file():
        sets = timed_sets(run.sets("test"))
        rankers = {system.label: run.ranker(system, 0, trained=True) for system in run.systems}
        measured = _measured(rankers, sets, precision=run.settings.training.precision)
        rows = {label: asdict(one) for label, one in measured.items()}
        write_json(file, {"questions": len(sets), "latencies": list(rows.values())})
    return [Latency(**row) for row in json.loads(file.read_text(encoding="utf-8"))["latencies"]]


def timed_sets(sets: Sequence[CandidateSet]) -> Sequence[CandidateSet]:
    """The first ones, with up to MOST_CANDIDATES candidates together, and at least one."""
    counts = accumulate(len(one.candidates) for one in sets)
    return sets[: max(1, sum(count <= MOST_CANDIDATES for count in counts))]


def _measured(
    rankers: dict[str, Ranker], sets: Sequence[CandidateSet], *, precision: Precision
) -> dict[str, Latency]:
    seconds: dict[str, list[float]] = {label: [] for label in rankers}
    examples = {label: [ranker.examples([one]) for one in sets] for label, ranker in rankers.items()}
    for number in range(1 + RUNS):  # the first one tokenises, and is not counted
        for label, ranker in rankers.items():
            start = time.perf_counter()
            for question in examples[label]:
                form = {"batch_size": len(question), "precision": precision}
                score_examples(ranker.model, question, ranker.collate, **form)
            if number:
                seconds[label].append((time.perf_counter() - start) / len(sets))
    return {
        label: Latency(
            system=label, seconds=median(each), fastest=min(each), slowest=max(each), runs=len(each)
        )
        for label, each in seconds.items()
    }
