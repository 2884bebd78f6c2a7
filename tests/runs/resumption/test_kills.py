"""A run that is killed at random moments, each time begun again by the same command, ends as undisturbed.

`kills.py` makes many more; data/results/kills.json is its record.
"""

from pathlib import Path

import kills
import pytest

QUICK = ("training:local_pretraining", "apply:storyworld/tagging")


@pytest.mark.parametrize(
    ("work", "count"),
    [
        *[pytest.param(work, 2) for work in QUICK],
        *[pytest.param(work, kills.KILLS_OF_A_RUN, marks=pytest.mark.slow) for work in kills.WORKS],
    ],
)
def test_a_killed_run_ends_as_undisturbed(work: str, count: int, tmp_path: Path):
    made = list(kills.kills_of(work, count, tmp_path))
    assert len(made) == count
    assert [kill for kill in made if not kill.equal] == []
