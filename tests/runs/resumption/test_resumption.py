"""Every kind of training goes on as if nothing had been, to the last bit, when its cell is run again.

A kernel keeps the run, and with it the model, between the two times: so do these tests.
"""

import signal
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import small_runs
from small_runs import KINDS, weights

from cdlm_lab.errors import Stopped
from cdlm_lab.training import checkpoints, history

Weights = dict[str, bytes]


def stop() -> None:
    signal.raise_signal(signal.SIGINT)


def stop_at_once() -> None:
    stop()
    stop()


def fail() -> None:
    raise ZeroDivisionError


# In each attempt the n-th record, or the saving of the model (0), is disturbed. The first two leave no
# checkpoint of the first step.
DISTURBANCES: list[tuple[int, Callable[[], None]]] = [
    (1, fail), (1, stop_at_once), (2, stop), (1, stop), (2, fail), (0, stop_at_once)
]  # fmt: skip


class Disturbed:
    """Disturbs each attempt to train, until no disturbance is left."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.left, self.records, self.happened = list(DISTURBANCES), 0, 0
        add, write = history.RunHistory.add, checkpoints.replaced_folder

        def counted(records: history.RunHistory, record: dict[str, Any]) -> None:
            add(records, record)
            self.records += 1
            self.disturb(self.records)

        def saved(folder: Path) -> Any:
            self.disturb(0)
            return write(folder)

        patched.setattr(history.RunHistory, "add", counted)
        patched.setattr(checkpoints, "replaced_folder", saved)

    def disturb(self, moment: int) -> None:
        if self.left and moment == self.left[0][0]:
            _, act = self.left.pop(0)
            self.happened += 1
            act()

    def again(self) -> None:
        self.records = 0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Weights]:
    made: dict[tuple[str, str], Weights] = {}

    def of(kind: str, precision: str) -> Weights:
        if (kind, precision) not in made:
            folder = tmp_path_factory.mktemp(kind)
            small_runs.module_of(kind).train(small_runs.prepared(kind, folder, precision=precision))
            made[kind, precision] = weights(folder)
        return made[kind, precision]

    return of


def trained_with_disturbances(run: Any, train: Callable[[Any], Any], disturbed: Disturbed) -> None:
    for _ in range(len(DISTURBANCES) + 1):
        disturbed.again()
        before = disturbed.happened
        try:
            train(run)
        except (Stopped, KeyboardInterrupt, ZeroDivisionError):
            assert disturbed.happened > before
        else:
            return
    raise AssertionError("it does not end")


def resumed(kind: str, precision: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Weights:
    run = small_runs.prepared(kind, folder, precision=precision)
    with monkeypatch.context() as patched:
        disturbed = Disturbed(patched)
        trained_with_disturbances(run, small_runs.module_of(kind).train, disturbed)
    assert disturbed.happened >= len(DISTURBANCES) - 1
    return weights(folder)


# The other kinds and precisions are slow only because they are many.
QUICK = {("local_pretraining", "bfloat16"), ("coreference", "bfloat16"), ("answers", "float32")}
CASES = [
    pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow)
    for case in product(KINDS, ["float32", "bfloat16"])
]


@pytest.mark.parametrize(("kind", "precision"), CASES)
def test_a_cell_run_again_trains_to_the_same_weights(
    kind: str, precision: str, undisturbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    expected = undisturbed(kind, precision)
    assert expected
    assert resumed(kind, precision, tmp_path, monkeypatch) == expected


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_run_again_in_float16(kind: str, undisturbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert resumed(kind, "float16", tmp_path, monkeypatch) == undisturbed(kind, "float16")
