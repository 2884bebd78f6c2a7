"""Numbers of joint reading that figures are drawn from (see `joint_figures`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLosses:
    """The course of one of the losses of a run.

    Attributes:
        steps, losses: optimiser step and training loss in nats, of equal length.
        eval_steps, eval_losses: the same for validation; may be empty.

    Raises:
        ValueError: lists of unequal length.
    """

    steps: Sequence[int]
    losses: Sequence[float]
    eval_steps: Sequence[int] = ()
    eval_losses: Sequence[float] = ()

    def __post_init__(self) -> None:
        for left, right in (("steps", "losses"), ("eval_steps", "eval_losses")):
            lengths = len(getattr(self, left)), len(getattr(self, right))
            if lengths[0] != lengths[1]:
                raise ValueError(
                    f"{left} has {lengths[0]} entries, {right} has {lengths[1]}: they must be equal"
                )


def task_losses(records: Iterable[Mapping[str, object]], name: str) -> TaskLosses:
    """One of several losses from the records of a run.

    Args:
        records: of training with `step` and `loss_<name>`, of validation with `step` and `eval_loss_<name>`;
            those with neither, and missing numbers (None), are passed over.
        name: such as "mlm".
    """
    of_kind: dict[str, list[tuple[int, float]]] = {"loss": [], "eval_loss": []}
    for record in records:
        for kind, course in of_kind.items():
            if (loss := record.get(f"{kind}_{name}")) is not None:
                course.append((int(record["step"]), float(loss)))
    training, validation = of_kind.values()
    return TaskLosses(
        steps=[step for step, _ in training],
        losses=[loss for _, loss in training],
        eval_steps=[step for step, _ in validation],
        eval_losses=[loss for _, loss in validation],
    )


class PlacedAccuracy(Protocol):
    """What a joint model says at each place of its sequence, as an `analysis.joint_diagnosis.JointDiagnosis`.

    `accuracy`: (k,), share of the candidates at each place that are called as they are; `always_wrong`: the
    same if each candidate were called wrong. Each in [0, 1]; nan = there is no candidate at that place.
    """

    @property
    def accuracy(self) -> Sequence[float]:
        """(k,), see above."""

    @property
    def always_wrong(self) -> Sequence[float]:
        """(k,), see above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long a system takes for one question.

    Attributes:
        system: what to call it.
        seconds: median over the runs.
        fastest, slowest: of the runs, in seconds.
        runs: how many times it was measured.

    Raises:
        ValueError: times that are not above 0 or not in order, no runs.
    """

    system: str
    seconds: float
    fastest: float
    slowest: float
    runs: int

    def __post_init__(self) -> None:
        if not 0 < self.fastest <= self.seconds <= self.slowest < float("inf"):
            times = f"{self.fastest}, {self.seconds}, {self.slowest}"
            raise ValueError(
                f"{self.system}: fastest, median and slowest ({times}) must be above 0 and not fall"
            )
        if self.runs < 1:
            raise ValueError(f"{self.system}: runs is {self.runs}; it must be at least 1")
