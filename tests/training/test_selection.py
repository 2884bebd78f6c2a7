"""A judge decides instead of the loss; patience ends a run, and a run that it has ended stays ended."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_run import TinyModel, run, tiny_config, tiny_model
from torch import nn

from cdlm_lab.parameters import ParameterError
from cdlm_lab.training.validation import Selection


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
