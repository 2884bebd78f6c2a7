"""The tables of README.md are what the recorded runs in data/results say."""

from pathlib import Path

import pytest

from cdlm_lab.results.readme import marked_tables, stale_tables
from cdlm_lab.results.readme_tables import JOINT_TABLES, TABLES

README = Path(__file__).resolve().parents[1] / "README.md"


@pytest.fixture(scope="module")
def stale() -> list[str]:
    return stale_tables(README)


def test_no_table_is_stale(stale: list[str]):
    assert not stale, "\n".join(stale)


@pytest.mark.parametrize("name", ["wikiqa", "trecqa", "fm2"])
def test_recorded_runs_are_shown(name: str):
    """Those whose tables wait for them; all others are marked, or their test above would not be."""
    marked = {one.name for one in marked_tables(README, known=TABLES)}
    folder = README.parent / "data" / "results" / f"{name}_minilm"
    shown = [table for table in marked if table.partition("-")[0] == name]
    assert bool(shown) == folder.exists(), f"mark table {name} in README.md, or take its markers away"
    assert {table for table in TABLES if table not in JOINT_TABLES} <= marked
