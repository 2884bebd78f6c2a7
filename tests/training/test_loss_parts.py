"""Parts of a loss add up to it: in the records of training and of validation, and after a stop."""

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_run import VOCABULARY, TinyModel, run, tiny_model
from torch import Tensor, nn
from transformers.modeling_outputs import MaskedLMOutput

from cdlm_lab.training.validation import LossParts, parts_of


class Output(dict):
    """As Hugging Face's outputs are read."""


class PartedModel(TinyModel):
    """The loss of words below the middle of the vocabulary, and of the others."""

    loss_parts = ("low", "high")

    def forward(
        self, *, labels: Tensor, num_items_in_batch: Tensor | None = None, **inputs: Tensor
    ) -> MaskedLMOutput:
        losses = nn.functional.cross_entropy(
            self.logits(**inputs).flatten(0, 1), labels.flatten(), reduction="none"
        )
        count = labels.ne(-100).sum() if num_items_in_batch is None else num_items_in_batch
        low = labels.flatten() < VOCABULARY // 2
        parts = {"low": losses[low].sum() / count, "high": losses[~low].sum() / count}
        return Output(
            loss=parts["low"] + parts["high"], parts={name: part.detach() for name, part in parts.items()}
        )


def records(folder: Path, **settings: Any) -> list[dict[str, Any]]:
    result = run(folder, model=tiny_model(PartedModel), **settings)
    return [{k: v for k, v in record.items() if k != "seconds"} for record in result.history]


def test_the_parts_add_up_in_every_record(tmp_path: Path):
    """Two micro-batches a step, and several steps a record."""
    found = records(tmp_path, log_every=3)
    for record in found:
        kind = "loss" if "loss" in record else "eval_loss"
        parts = [record[f"{kind}_low"], record[f"{kind}_high"]]
        assert sum(parts) == pytest.approx(record[kind], rel=1e-5)
        assert min(parts) > 0.1
    assert {"loss", "eval_loss"} <= {name for record in found for name in record}


def test_they_change_nothing(tmp_path: Path):
    plain = run(tmp_path / "plain", model=tiny_model(TinyModel)).history
    parted = run(tmp_path / "parted", model=tiny_model(PartedModel)).history
    for a, b in zip(plain, parted, strict=True):
        assert a.get("loss", a.get("eval_loss")) == pytest.approx(b.get("loss", b.get("eval_loss")), rel=1e-5)
        assert not {name for name in a if "_low" in name}


def test_a_stop_between_two_records_loses_nothing(tmp_path: Path):
    settings = {"log_every": 4, "evaluate_every": 5, "save_every": 10}
    whole = records(tmp_path / "whole", **settings)
    stopped = tmp_path / "stopped"

    def stop(record: dict[str, Any]) -> None:
        if "eval_loss" in record and record["step"] == 5:
            os.kill(os.getpid(), signal.SIGINT)

    assert run(stopped, model=tiny_model(PartedModel), on_log=stop, **settings).interrupted
    assert records(stopped, **settings) == whole


def of_process(index: int, processes: int) -> SimpleNamespace:
    """An accelerator, for what is asked of it."""
    return SimpleNamespace(
        process_index=index, num_processes=processes, device=torch.device("cpu"), gather=lambda sums: sums
    )


def test_sums_of_other_processes_than_now():
    again = LossParts(("a", "b"), accelerator=of_process(1, 2))
    again.restore([[1.0, 2.0], [3.0, 4.0]], last_step=4)
    assert again.gathered() == [[3.0, 4.0]], "as many processes: each its own"
    alone = LossParts(("a", "b"), accelerator=of_process(0, 1))
    alone.restore([[1.0, 2.0], [3.0, 4.0]], last_step=4)
    assert alone.means(6) == {"loss_a": 2.0, "loss_b": 3.0}, "fewer: their sum, over the steps since"
    assert alone.means(8) == {"loss_a": 0.0, "loss_b": 0.0}


def test_most_models_have_no_parts():
    assert parts_of(tiny_model(TinyModel)) == ()
    none = LossParts((), accelerator=of_process(0, 1))
    none.add({})
    none.restore([], last_step=3)
    assert (none.gathered(), none.means(4)) == ([], {})
