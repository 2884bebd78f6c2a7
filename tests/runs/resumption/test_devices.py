"""Nothing that a training computes with is in float64, which Apple's devices (MPS) do not have."""

from pathlib import Path
from typing import Any

import pytest
import small_runs
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from cdlm_lab.training.fine_tuning import TrainingJob


class Float64(TorchDispatchMode):
    """Notes the operations that read or make a tensor in float64."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, given: Any = (), named: Any = None) -> Any:
        made = function(*given, **(named or {}))
        values = [one for one in tree_leaves([given, named, made]) if isinstance(one, torch.Tensor)]
        if any(one.dtype == torch.float64 for one in values):
            self.found.append(str(function))
        return made


def jobs(run: Any) -> list[TrainingJob]:
    trainings = getattr(run, "trainings", None)
    return [run.job()] if trainings is None else [run.job(one) for one in trainings if one.system.is_model]


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind in ("paragraphs", "answers") else pytest.mark.slow)
        for kind in small_runs.KINDS
    ],
)
def test_a_step_of_training_has_no_float64(kind: str, tmp_path: Path):
    for job in jobs(small_runs.prepared(kind, tmp_path)):
        batch = job.collate([job.train_examples[number] for number in range(2)])
        assert {name for name, value in batch.items() if value.dtype == torch.float64} == set()
        with Float64() as noted:
            job.model(**batch)["loss"].backward()
        assert noted.found == []
