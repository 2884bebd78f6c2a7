"""Every example is counted once, whatever the number of processes. A judge decides instead of the loss;
patience ends a run for good. Parts of a loss add up to it in all records, and after a stop."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_run import VOCABULARY, Examples, PlainModel, TinyModel, collate, run, timeless, tiny_model
from torch import Tensor, nn

from cdlm_lab.progress import Share
from cdlm_lab.training import validation
from cdlm_lab.training.validation import LossSums, Selection, Validation


def alone(**changes: Any) -> SimpleNamespace:
    """The parts of an accelerator that are read."""
    parts = {"process_index": 0, "num_processes": 1, "device": torch.device("cpu")}
    return SimpleNamespace(gather=lambda sums: sums, **parts | changes)


@pytest.mark.parametrize(
    ("size", "batch_size", "processes"),
    [(11, 2, 1), (11, 2, 2), (11, 3, 4), (1, 4, 3), (8, 4, 2), (11, 2, 8)],
)
def test_batches_are_shared_without_repeats(size: int, batch_size: int, processes: int):
    shares = [
        Validation(
            range(size), lambda batch: {"labels": torch.tensor(batch)}, size=batch_size,
            accelerator=alone(process_index=process, num_processes=processes),
        )
        for process in range(processes)
    ]  # fmt: skip
    numbered = {n: one for share in shares for n, one in zip(share.numbers, share.batches(), strict=True)}
    assert sorted(numbered) == list(range(math.ceil(size / batch_size)))
    assert [index for n in sorted(numbered) for index in numbered[n]["labels"].tolist()] == list(range(size))
    counts = [len(share.numbers) for share in shares]
    assert max(counts) - min(counts) <= 1


def test_a_device_without_float64_adds_up_on_the_cpu():
    """As Apple's (MPS): the device of the sums is asked for, since there is none here."""
    assert validation.float64_device(torch.device("mps")) == torch.device("cpu")
    assert validation.float64_device(torch.device("cuda", 1)) == torch.device("cuda", 1)


def test_examples_are_made_once_for_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Three evaluations of eleven examples."""
    made: list[int] = []
    original = Examples.__getitem__

    def counted(examples: Examples, index: int) -> Any:
        if examples.seed == 2:
            made.append(index)
        return original(examples, index)

    monkeypatch.setattr(Examples, "__getitem__", counted)
    assert len([r for r in run(tmp_path).history if "eval_loss" in r]) == 3
    assert sorted(made) == list(range(11))


def loss(model: PlainModel, examples: Any, batch_size: int) -> tuple[float, int]:
    share = Validation(examples, collate, size=batch_size, accelerator=alone())
    *actual, parts = share.loss(model)
    assert parts == {}, "a loss without parts"
    assert share.loss(model) == (*actual, parts), "of the batches that were kept"
    return tuple(actual)


def test_the_batch_size_does_not_matter_and_no_random_number_is_drawn():
    model, examples = tiny_model(PlainModel).double(), Examples(seed=2, size=11)
    before = torch.get_rng_state()
    alone, count = loss(model, examples, 1)
    assert count == sum((examples[n]["labels"] != -100).sum() for n in range(11))
    for size in (2, 3, 11, 20):
        assert loss(model, examples, size) == (pytest.approx(alone, rel=1e-12), count)
    assert not model.training
    some = [examples[n] for n in range(4)]
    bare = [example | {"labels": example["labels"] * 0 - 100} for example in some]
    assert loss(model, some + bare, 2) == loss(model, some, 2), "batches without masked tokens count nothing"
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("values", "patience", "over"), [
    ((3.0, 2.0, 2.5), 1, True),
    ((3.0, 2.0, 2.5), 2, False),
    ((3.0, 2.0, 2.5, 2.2), 2, True),
    ((3.0, 2.0, 2.0), 1, True),  # as good is not better
    ((3.0, 2.0, 2.5, 1.9), 1, False),
    ((3.0, 4.0), 0, False),
    ((), 1, False),
])  # fmt: skip
def test_patience(values: tuple[float, ...], patience: int, over: bool):
    """With records of training between those of evaluation."""
    evaluations = [{"step": number, "eval_perplexity": value} for number, value in enumerate(values)]
    records = [record for one in evaluations for record in ({"step": one["step"], "loss": 1.0}, one)]
    assert Selection(patience=patience).is_over(records) is over


def test_of_a_judge_more_is_better():
    scores = (0.5, 0.7, 0.6)
    judged = [{"step": n, "eval_perplexity": 9.0 - n, "eval_judged": v} for n, v in enumerate(scores)]
    assert Selection(judge=lambda model, share: 0.0, patience=1).is_over(judged)
    assert not Selection(judge=lambda model, share: 0.0, patience=2).is_over(judged)
    assert not Selection(patience=1).is_over(judged), "the perplexity falls"


class Judged:
    """Gives scores one after the other, whatever the model."""

    def __init__(self, *scores: float) -> None:
        self.scores, self.calls = list(scores), 0

    def __call__(self, model: nn.Module, share: Share) -> float:
        assert share.of(range(3)) == range(3)
        assert not model.training
        assert not torch.is_grad_enabled()
        self.calls += 1
        return self.scores[self.calls - 1]


def test_a_judge_decides_and_takes_no_part_in_training(tmp_path: Path):
    model = tiny_model(TinyModel)
    result = run(tmp_path / "judged", model=model, judge=Judged(0.1, 0.9, 0.3))
    assert result.best_step == 8
    assert [r["eval_judged"] for r in result.history if "eval_judged" in r] == [0.1, 0.9, 0.3]
    kept = TinyModel.from_pretrained(result.best_checkpoint)
    for name, weights in kept.state_dict().items():
        assert torch.equal(weights, model.state_dict()[name])
    plain = run(tmp_path / "plain").history
    assert [r["loss"] for r in plain if "loss" in r] == [r["loss"] for r in result.history if "loss" in r]


def test_patience_ends_a_run_for_good(tmp_path: Path):
    settings = {"evaluate_every": 2, "save_every": 10, "patience": 2}
    result = run(tmp_path, judge=Judged(0.1, 0.9, 0.3, 0.9), **settings)
    assert (result.steps, result.best_step, result.interrupted) == (8, 4, False)
    assert (tmp_path / "checkpoint-8").is_dir()
    again = Judged()
    read = run(tmp_path, judge=again, **settings)
    assert (read.steps, read.best_step, again.calls) == (8, 4, 0)
    assert read.history == result.history


class PartedModel(TinyModel):
    """The loss of words below the middle of the vocabulary, and of the others."""

    loss_parts = ("low", "high")

    def forward(
        self, *, labels: Tensor, num_items_in_batch: Tensor | None = None, **inputs: Tensor
    ) -> dict[str, Any]:
        logits, words = self.logits(**inputs).flatten(0, 1), labels.flatten()
        losses = nn.functional.cross_entropy(logits, words, reduction="none")
        count = labels.ne(-100).sum() if num_items_in_batch is None else num_items_in_batch
        low = words < VOCABULARY // 2
        parts = {"low": losses[low].sum() / count, "high": losses[~low].sum() / count}
        detached = {name: part.detach() for name, part in parts.items()}
        return {"loss": parts["low"] + parts["high"], "parts": detached}


def records(folder: Path, **settings: Any) -> list[dict[str, Any]]:
    return timeless(run(folder, model=tiny_model(PartedModel), **settings).history)


def test_the_parts_add_up_in_every_record_and_change_nothing(tmp_path: Path):
    """Two micro-batches a step, and several steps a record."""
    parted = records(tmp_path / "parted", log_every=3)
    plain = run(tmp_path / "plain", model=tiny_model(TinyModel), log_every=3).history
    for record, other in zip(parted, plain, strict=True):
        kind = "loss" if "loss" in record else "eval_loss"
        parts = [record[f"{kind}_low"], record[f"{kind}_high"]]
        assert sum(parts) == pytest.approx(record[kind], rel=1e-5)
        assert min(parts) > 0.1
        assert record[kind] == pytest.approx(other[kind], rel=1e-5)
        assert not {name for name in other if "_low" in name}
    assert {"loss", "eval_loss"} <= {name for record in parted for name in record}


def test_a_stop_between_two_records_loses_no_parts(tmp_path: Path):
    settings = {"log_every": 4, "evaluate_every": 5, "save_every": 10}
    whole = records(tmp_path / "whole", **settings)

    def stop(record: dict[str, Any]) -> None:
        if "eval_loss" in record and record["step"] == 5:
            os.kill(os.getpid(), signal.SIGINT)

    stopped = tmp_path / "stopped"
    assert run(stopped, model=tiny_model(PartedModel), on_log=stop, **settings).interrupted
    assert records(stopped, **settings) == whole


def sums_of(process: int, processes: int) -> LossSums:
    names = SimpleNamespace(loss_parts=("a", "b"))
    return LossSums(names, accelerator=alone(process_index=process, num_processes=processes))


def test_sums_of_other_processes_than_now():
    again = sums_of(1, 2)
    again.restore([[0.5, 1.0, 2.0], [1.5, 3.0, 4.0]], last_step=4)
    assert again.gathered() == [[1.5, 3.0, 4.0]], "as many processes: each its own"
    one = sums_of(0, 1)
    one.restore([[0.5, 1.0, 2.0], [1.5, 3.0, 4.0]], last_step=4)
    means = one.means(6)
    assert means == {"loss": 0.5, "loss_a": 2.0, "loss_b": 3.0}, "fewer: over the steps since"
    assert one.means(8) == {"loss": 0.0, "loss_a": 0.0, "loss_b": 0.0}
