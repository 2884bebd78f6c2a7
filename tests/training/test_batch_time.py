"""The time of a batch: that of the second go, in the precision of the training, and nothing stays of it."""

from collections.abc import Mapping

import pytest
import torch
from tiny_run import Examples, collate, tiny_model
from torch import Tensor, nn

from cdlm_lab.training import history as batch_time
from cdlm_lab.training.history import seconds_of_batch


class Slow(nn.Module):
    """Takes 8 seconds the first time and 2 from then on, by a clock of its own; knows what it was computed
    in."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.clock = nn.Linear(2, 2), 0.0
        self.types: list[torch.dtype] = []

    def forward(self, x: Tensor) -> Mapping[str, Tensor]:
        self.clock += 2 if self.types else 8
        result = self.weight(x)
        self.types.append(result.dtype)
        return {"loss": result.float().sum()}


def test_the_first_time_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Slow().eval()
    monkeypatch.setattr(batch_time.time, "perf_counter", lambda: model.clock)
    seconds, batch = seconds_of_batch(model, lambda: {"x": torch.ones(1, 2)}, precision="bfloat16")
    assert seconds == 2
    assert batch["x"].tolist() == [[1, 1]]
    assert model.types == [torch.bfloat16, torch.bfloat16]
    assert model.training


def test_weights_stay_and_gradients_go() -> None:
    model = tiny_model()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    examples = Examples(seed=0, size=2)
    _, batch = seconds_of_batch(model, lambda: collate([examples[0], examples[1]]))
    assert set(batch) == {"input_ids", "labels", "global_attention_mask", "attention_mask"}
    assert all(weight.grad is None for weight in model.parameters())
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
