"""Every example is counted once, whatever the number of processes. A judge decides instead of the loss;
patience ends a run, and a run that it has ended stays ended. Parts of a loss add up to it: in the records
of training and of validation, and after a stop.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from tiny_run import VOCABULARY, Examples, PlainModel, TinyModel, collate, run, tiny_config, tiny_model
from torch import Tensor, nn
from transformers.modeling_outputs import MaskedLMOutput

from cdlm_lab.parameters import ParameterError
from cdlm_lab.training.validation import (
    LossParts,
    Selection,
    SharedBatches,
    parts_of,
    validation_loader,
    validation_loss,
)


@pytest.mark.parametrize("processes", [1, 2, 3, 8])
def test_even_shares_are_filled_up_with_what_does_not_count(processes: int):
    shares = [
        SharedBatches(11, batch_size=2, process=process, processes=processes, even=True)
        for process in range(processes)
    ]
    assert len({len(share) for share in shares}) == 1
    assert all(len(list(share)) == len(share.numbers) == len(share) for share in shares)
    counted = [number for share in shares for number in share.numbers if number is not None]
    assert sorted(counted) == list(range(6))


@pytest.mark.parametrize(
    ("size", "batch_size", "processes"), [(11, 2, 1), (11, 2, 2), (11, 3, 4), (1, 4, 3), (8, 4, 2)]
)
def test_batches_are_shared_without_repeats(size: int, batch_size: int, processes: int):
    shares = [
        SharedBatches(size, batch_size=batch_size, process=process, processes=processes)
        for process in range(processes)
    ]
    numbered = {number: batch for share in shares for number, batch in zip(share.numbers, share, strict=True)}
    assert [index for number in sorted(numbered) for index in numbered[number]] == list(range(size))
    assert sum(map(len, shares)) == len(numbered) == shares[0].total
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def loss(model: PlainModel, examples: object, batch_size: int) -> tuple[float, int]:
    loader = validation_loader(examples, collate, SharedBatches(len(examples), batch_size=batch_size))
    actual = validation_loss(
        model, loader, accelerator=Accelerator(cpu=True), to_device=dict, after_batch=lambda: None
    )
    assert actual[2] == {}, "a loss without parts"
    return actual[:2]


def test_the_batch_size_does_not_matter():
    model, examples = tiny_model(PlainModel).double(), Examples(seed=2, size=11)
    alone, count = loss(model, examples, 1)
    assert count == sum((example["labels"] != -100).sum() for example in [examples[n] for n in range(11)])
    for size in (2, 3, 11, 20):
        assert loss(model, examples, size) == (pytest.approx(alone, rel=1e-12), count)
    assert not model.training


def test_batches_without_masked_tokens_count_nothing():
    model = tiny_model(PlainModel).double()
    examples = [Examples(seed=2, size=11)[n] for n in range(4)]
    bare = [example | {"labels": example["labels"] * 0 - 100} for example in examples]
    assert loss(model, examples + bare, 2) == loss(model, examples, 2)


def test_no_random_number_is_taken():
    before = torch.get_rng_state()
    loss(tiny_model(PlainModel), Examples(seed=2, size=11), 2)
    assert torch.equal(torch.get_rng_state(), before)


def perplexities(*values: float) -> list[dict[str, Any]]:
    """Records of evaluation, with records of training between them."""
    evaluations = [{"step": number, "eval_perplexity": value} for number, value in enumerate(values)]
    return [record for one in evaluations for record in ({"step": one["step"], "loss": 1.0}, one)]


@pytest.mark.parametrize(
    ("values", "patience", "over"),
    [
        ((3.0, 2.0, 2.5), 1, True),
        ((3.0, 2.0, 2.5), 2, False),
        ((3.0, 2.0, 2.5, 2.2), 2, True),
        ((3.0, 2.0, 2.0), 1, True),  # as good is not better
        ((3.0, 2.0, 2.5, 1.9), 1, False),
        ((3.0, 4.0), 0, False),
        ((), 1, False),
    ],
)
def test_patience(values: tuple[float, ...], patience: int, over: bool):
    assert Selection(patience=patience).is_over(perplexities(*values)) is over


def test_of_a_judge_more_is_better():
    judged = [
        {"step": n, "eval_perplexity": 9.0 - n, "eval_judged": v} for n, v in enumerate((0.5, 0.7, 0.6))
    ]
    assert Selection(judge=lambda model: 0.0, patience=1).is_over(judged)
    assert not Selection(judge=lambda model: 0.0, patience=2).is_over(judged)
    assert not Selection(patience=1).is_over(judged), "the perplexity falls"


class Judged:
    """Gives scores one after the other, whatever the model."""

    def __init__(self, *scores: float) -> None:
        self.scores, self.calls = list(scores), 0

    def __call__(self, model: nn.Module) -> float:
        assert not model.training
        assert not torch.is_grad_enabled()
        self.calls += 1
        return self.scores[self.calls - 1]


def test_a_judge_decides(tmp_path: Path):
    model = tiny_model(TinyModel)
    result = run(tmp_path, model=model, judge=Judged(0.1, 0.9, 0.3), evaluate_every=4)
    assert result.best_step == 8
    assert [r["eval_judged"] for r in result.history if "eval_judged" in r] == [0.1, 0.9, 0.3]
    kept = TinyModel.from_pretrained(result.best_checkpoint)
    for name, weights in kept.state_dict().items():
        assert torch.equal(weights, model.state_dict()[name])


def test_a_judge_takes_no_part_in_training(tmp_path: Path):
    plain = run(tmp_path / "plain").history
    judged = run(tmp_path / "judged", judge=Judged(0.1, 0.9, 0.3)).history
    assert [r["loss"] for r in plain if "loss" in r] == [r["loss"] for r in judged if "loss" in r]


def test_patience_ends_a_run_for_good(tmp_path: Path):
    settings = {"evaluate_every": 2, "save_every": 10, "patience": 2}
    result = run(tmp_path, judge=Judged(0.1, 0.9, 0.3, 0.9), **settings)
    assert (result.steps, result.best_step, result.interrupted) == (8, 4, False)
    assert (tmp_path / "checkpoint-8").is_dir()
    again = Judged()
    read = run(tmp_path, judge=again, **settings)
    assert (read.steps, read.best_step, again.calls) == (8, 4, 0)
    assert read.history == result.history


def test_an_older_run_without_patience_goes_on(tmp_path: Path):
    run(tmp_path)
    file = tmp_path / "checkpoint-10" / "progress.json"
    before = file.read_text()
    assert '"patience": 0,' in before
    file.write_text(before.replace('  "patience": 0,', ""))
    sizes = {path.name: path.stat().st_size for path in file.parent.iterdir() if path.name != "complete.json"}
    (file.parent / "complete.json").write_text(json.dumps(sizes))  # older lists have no checksums
    assert run(tmp_path).steps == 10


def test_patience_is_no_negative_number():
    with pytest.raises(ParameterError, match="patience is -1"):
        tiny_config(patience=-1)


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
    actual = records(tmp_path, log_every=3)
    for record in actual:
        kind = "loss" if "loss" in record else "eval_loss"
        parts = [record[f"{kind}_low"], record[f"{kind}_high"]]
        assert sum(parts) == pytest.approx(record[kind], rel=1e-5)
        assert min(parts) > 0.1
    assert {"loss", "eval_loss"} <= {name for record in actual for name in record}


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
