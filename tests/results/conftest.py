"""Reports made by these tests are of a clean commit, also while somebody works on the project."""

import pytest

from cdlm_lab.runs import report


@pytest.fixture(autouse=True)
def clean_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of runs from a tree with uncommitted changes would be marked."""
    monkeypatch.setattr(report, "git_commit", lambda: "0" * 40)
