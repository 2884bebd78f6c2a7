"""Alone a process is the first; under torchrun the environment says which it is."""

import pytest

from cdlm_lab.ranks import is_first, rank


def test_the_environment_says_which_process_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    assert (rank(), is_first()) == (0, True)
    monkeypatch.setenv("RANK", "0")
    assert is_first()
    monkeypatch.setenv("RANK", "3")
    assert (rank(), is_first()) == (3, False)
