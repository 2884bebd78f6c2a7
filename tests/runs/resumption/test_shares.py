"""Processes that judge a model together give what one gives, to the last bit."""

from pathlib import Path
from typing import Any

import pytest
import small_runs

from cdlm_lab.progress import ALONE, Share


@pytest.mark.parametrize("kind", ["coreference", "tagging", "answers", "claims"])
def test_shares_of_dev_make_the_whole(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cdlm_lab.tasks.tagging.systems.BATCH", 4)  # so that there are several
    run = small_runs.prepared(kind, tmp_path)
    job = run.job(run.trainings[-1]) if hasattr(run, "trainings") else run.job()
    whole = job.judge(job.model.eval(), ALONE)
    made: list[list[Any]] = []

    def keep(own: list[Any]) -> list[Any]:
        made.append(own)
        return own

    for process in (1, 2):
        try:
            job.judge(job.model, Share(process, 3, keep))
        except ValueError:  # a third of the predictions need not make a score
            assert len(made) == process
    assert job.judge(job.model, Share(0, 3, lambda own: [*made[1], *own, *made[0]])) == whole
    assert all(made), "each had something to do"
