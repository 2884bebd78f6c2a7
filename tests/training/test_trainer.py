"""What one run does: gradients, learning rates, validation, and what it leaves behind. Every parameter is in
one group, with the right decay and the right factor."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from accelerate.tracking import LOGGER_TYPE_TO_CLASS, GeneralTracker
from tiny_run import Examples, PlainModel, TinyModel, collate, run, tiny_config, tiny_model
from tokenizers import Tokenizer, models
from torch import nn
from transformers import PreTrainedTokenizerFast

from cdlm_lab.parameters import ParameterError
from cdlm_lab.training.trainer import TrainingJob, parameter_groups, train

EXACT = {"dropout": 0.0}
ONE_STEP = {"steps": 1, "warmup_steps": 0}


def values(result, name: str = "loss") -> list[float]:
    return [record[name] for record in result.history if "loss" in record]


def batch_of(*numbers: int, seed: int = 1) -> dict[str, torch.Tensor]:
    return collate([Examples(seed=seed, size=40)[number] for number in numbers])


def test_accumulated_gradients_are_those_of_the_full_batch(tmp_path: Path):
    runs, weights = {}, {}
    for size in (1, 2, 8):
        model = tiny_model(**EXACT).double()
        settings = {"steps": 3, "batch_size": 8, "warmup_steps": 0, "evaluate_every": 3}
        runs[size] = run(tmp_path / str(size), model=model, micro_batch_size=size, **settings)
        weights[size] = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    for size in (1, 2):
        # Losses are summed up in float32; weights and norms show what the gradients were.
        assert values(runs[size]) == pytest.approx(values(runs[8]), rel=1e-6)
        norms = [values(runs[one], "gradient_norm") for one in (size, 8)]
        assert norms[0] == pytest.approx(norms[1], rel=1e-12)
        torch.testing.assert_close(weights[size], weights[8], rtol=0, atol=1e-12)
    start = torch.cat([parameter.detach().flatten() for parameter in tiny_model().parameters()])
    assert (weights[8] - start).abs().max() > 1e-3


def test_the_first_step_is_the_formula(tmp_path: Path):
    model = tiny_model(**EXACT).double()
    before = copy.deepcopy(model)
    result = run(tmp_path, model=model, **ONE_STEP, micro_batch_size=1, max_gradient_norm=0.0)
    batch = batch_of(0, 1, 2, 3)
    labels = batch.pop("labels")
    loss = nn.functional.cross_entropy(before.logits(**batch).flatten(0, 1), labels.flatten())
    loss.backward()
    assert values(result) == pytest.approx([loss.item()], rel=1e-6)
    for (name, new), old in zip(model.named_parameters(), before.parameters(), strict=True):
        decay = 0.01 * 0.01 * old if name.endswith("weight") and "norm" not in name else 0
        # After one step AdamW's moments, corrected for their start, are the gradient and its square.
        expected = old - decay - 0.01 * old.grad / (old.grad.abs() + 1e-6)
        torch.testing.assert_close(new, expected, rtol=0, atol=1e-9, msg=name)


def test_models_that_ignore_the_count_get_the_mean_over_micro_batches(tmp_path: Path):
    model = tiny_model(PlainModel, **EXACT)
    before = copy.deepcopy(model)
    result = run(tmp_path, model=model, **ONE_STEP, micro_batch_size=1)
    with torch.no_grad():
        parts = [before(**batch_of(index)).loss.item() for index in range(4)]
    assert values(result) == pytest.approx([sum(parts) / 4], rel=1e-5)  # not their sum
    whole = run(tmp_path / "whole", model=tiny_model(PlainModel, **EXACT), **ONE_STEP, micro_batch_size=4)
    assert values(result, "gradient_norm")[0] < 2 * values(whole, "gradient_norm")[0]


def test_the_learning_rate_at_every_step(tmp_path: Path):
    result = run(tmp_path, steps=30, warmup_steps=5, evaluate_every=30, save_every=30)
    expected = [0.01 * t / 5 for t in range(5)] + [0.01 * ((30 - t) / 25) ** 3 for t in range(5, 30)]
    assert values(result, "learning_rate") == pytest.approx(expected)


def test_a_learning_rate_factor_scales_the_first_update(tmp_path: Path):
    plain, faster = tiny_model(**EXACT), tiny_model(**EXACT)
    settings = ONE_STEP | {"weight_decay": 0.0}
    run(tmp_path / "a", model=plain, **settings)
    factors = (("global_projection", 4.0),)
    result = run(tmp_path / "b", model=faster, learning_rate_factors=factors, **settings)
    start = dict(tiny_model().named_parameters())
    for (name, new), scaled in zip(plain.named_parameters(), faster.parameters(), strict=True):
        factor = 4.0 if "global_projection" in name else 1.0
        torch.testing.assert_close(scaled - start[name], factor * (new - start[name]), rtol=1e-3, atol=1e-6)
    assert result.history[0]["learning_rate"] == 0.01


def test_validation_is_weighted_by_masked_tokens(tmp_path: Path):
    model = tiny_model()
    result = run(tmp_path, model=model)
    model.eval()
    sums, counts = [], []
    for first in range(0, 11, 2):
        batch = batch_of(*range(first, min(first + 2, 11)), seed=2)
        labels = batch.pop("labels")
        with torch.no_grad():
            logits = model.logits(**batch).flatten(0, 1)
        sums.append(nn.functional.cross_entropy(logits, labels.flatten(), reduction="sum").item())
        counts.append(int((labels != -100).sum()))
    mean = sum(sums) / sum(counts)
    (best,) = (one for one in result.history if one["step"] == result.best_step and "eval_loss" in one)
    assert best["eval_loss"] == pytest.approx(mean, rel=1e-6)
    assert best["eval_perplexity"] == pytest.approx(math.exp(mean), rel=1e-5)
    means = [part / count for part, count in zip(sums, counts, strict=True)]
    assert abs(sum(means) / len(means) - mean) > 1e-4, "the other mean would be noticed"


def test_the_best_checkpoint_is_kept_beside_the_last(tmp_path: Path):
    model = tiny_model()
    result = run(tmp_path, model=model)
    by_step = {r["step"]: r["eval_perplexity"] for r in result.history if "eval_loss" in r}
    assert list(by_step) == [4, 8, 10], "the last step is always evaluated"
    assert result.best_step == min(by_step, key=by_step.get) == 4, "were it the last this would test nothing"
    kept = [tmp_path / "checkpoint-10", tmp_path / "checkpoint-4"]
    assert sorted(tmp_path.glob("checkpoint-*")) == kept
    assert [result.last_checkpoint, result.best_checkpoint] == kept
    for checkpoint, equal in zip(kept, (False, True), strict=True):
        weights = TinyModel.from_pretrained(checkpoint).state_dict()
        assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items()) == equal


def test_the_history(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    seen = []
    result = run(tmp_path / "seen", on_log=seen.append, log_every=3)
    assert "steps/s" not in capfd.readouterr().out, "the bar gives way to what shows the records"
    lines = [json.loads(line) for line in (tmp_path / "seen" / "history.jsonl").read_text().splitlines()]
    assert lines == seen == list(result.history)
    assert [r["step"] for r in lines if "loss" in r] == [1, 3, 6, 9]
    assert all(r["total_steps"] == 10 for r in lines)
    assert [r["seconds"] for r in lines] == sorted(r["seconds"] for r in lines)
    lengths = [len(example["labels"]) for example in Examples(seed=1, size=40)]
    assert values(result, "tokens") == [sum(lengths[: 4 * step]) for step in (1, 3, 6, 9)]
    assert (result.steps, result.interrupted) == (10, False)
    every = values(run(tmp_path / "every", evaluate_every=10))
    assert "steps/s" in capfd.readouterr().out
    means = [every[0], sum(every[1:3]) / 2, sum(every[3:6]) / 3, sum(every[6:9]) / 3]
    assert values(result) == pytest.approx(means), "a record is the mean since the last"
    assert values(run(tmp_path / "often", evaluate_every=1)) == every, "evaluations leave training as it is"


def test_without_global_tokens_their_projections_are_not_touched(tmp_path: Path):
    model, start = tiny_model(), dict(tiny_model().named_parameters())
    examples = Examples(seed=1, size=40, global_from=99)
    run(tmp_path, model=model, train_examples=examples, weight_decay=0.5)
    changed = {name for name, value in model.named_parameters() if not torch.equal(value, start[name])}
    assert changed == {name for name in start if "global_projection" not in name}


def test_gradient_clipping(tmp_path: Path):
    free, short = (run(tmp_path / f"{norm}", max_gradient_norm=norm) for norm in (0.0, 0.001))
    before = [values(one, "gradient_norm")[0] for one in (free, short)]
    assert before[0] == pytest.approx(before[1]), "recorded as it was before clipping"
    assert values(free)[-1] != values(short)[-1]


def test_half_precision_ends_with_the_run(tmp_path: Path):
    model = tiny_model()
    half = values(run(tmp_path / "half", model=model, precision="bfloat16"))
    full = values(run(tmp_path / "full"))
    assert half[:3] == pytest.approx(full[:3], rel=0.02)
    assert half != full
    seen = []
    model.vocabulary.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    model(**batch_of(0))
    assert seen == [torch.float32]
    assert {p.dtype for p in model.parameters()} == {torch.float32}


@pytest.fixture
def job() -> TrainingJob:
    config = tiny_config(steps=3, warmup_steps=0)
    examples = {"train_examples": Examples(seed=1, size=12), "validation_examples": Examples(seed=2, size=3)}
    return TrainingJob(model=tiny_model(), collate=collate, config=config, **examples)


def test_the_tokenizer_goes_with_the_checkpoint(job: TrainingJob, tmp_path: Path):
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, unk_token="a")))
    result = train(replace(job, tokenizer=tokenizer), tmp_path)
    assert PreTrainedTokenizerFast.from_pretrained(result.last_checkpoint).get_vocab() == {"a": 0}


def test_what_is_refused(job: TrainingJob, tmp_path: Path):
    with pytest.raises(ValueError, match="there are 11 training examples, but 3 steps of 4 take 12"):
        train(replace(job, train_examples=Examples(seed=1, size=11)), tmp_path)
    with pytest.raises(ValueError, match="there are no validation examples"):
        train(replace(job, validation_examples=[]), tmp_path)
    with pytest.raises(ParameterError, match="no parameter's name contains 'globle'"):
        run(tmp_path, learning_rate_factors=(("globle", 2.0),))
    bare = [example | {"labels": example["labels"] * 0 - 100} for example in Examples(seed=2, size=3)]
    with pytest.raises(ValueError, match="no token of the 3 validation examples is masked"):
        train(replace(job, validation_examples=bare), tmp_path)
    assert not list(tmp_path.glob("checkpoint*"))


def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path):
    model = tiny_model()
    with torch.no_grad():
        model.local.weight.fill_(math.nan)
    message = "the training loss is nan at step 1: lower the learning rate"
    with pytest.raises(FloatingPointError, match=message):
        run(tmp_path, model=model)
    assert not (tmp_path / "history.jsonl").read_text()


def rates(*factors: tuple[str, float]) -> list[float]:
    """Learning rates of weight and bias of `local` and of `query_global`; weights decay, biases do not."""
    net = nn.ModuleDict({name: nn.Linear(2, 2) for name in ("local", "query_global", "frozen")})
    net["frozen"].requires_grad_(False)
    names = {id(parameter): name for name, parameter in net.named_parameters()}
    decayed = {name for name in names.values() if name.endswith("weight")}
    groups = parameter_groups(net, decayed=decayed, weight_decay=0.1, learning_rate=2.0, factors=factors)
    assert (groups[0]["lr"], groups[0]["weight_decay"]) == (2.0, 0.1), "even if it is empty"
    grouped = [(names[id(parameter)], group) for group in groups for parameter in group["params"]]
    assert len(grouped) == len(dict(grouped)) == 4
    assert all(group["weight_decay"] == 0.1 * (name in decayed) for name, group in grouped)
    return [dict(grouped)[name]["lr"] for name in list(names.values())[:4]]


def test_groups_of_parameters():
    assert rates() == [2.0, 2.0, 2.0, 2.0]
    assert rates(("_global", 5.0)) == [2.0, 2.0, 10.0, 10.0]
    assert rates(("local", 0.5), ("global", 5.0)) == [1.0, 1.0, 10.0, 10.0]
    with pytest.raises(ParameterError, match="contains 'query_globl'; did you mean 'query_global'"):
        rates(("query_globl", 2.0))
    with pytest.raises(ParameterError, match=r"query_global\.weight matches 'query' and '_global'"):
        rates(("query", 2.0), ("_global", 2.0))


class Noted(GeneralTracker):
    """Keeps what it is told."""

    name, requires_logging_directory = "noted", False
    told: ClassVar[list[Any]] = []

    def __init__(self, run_name: str, **arguments: Any) -> None:
        super().__init__(_blank=True)

    def start(self) -> None:
        """As of a tracker that needs no start."""

    @property
    def tracker(self) -> None:
        """As of a tracker without one of its own."""

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        self.told.append(values)

    def log(self, values: dict[str, Any], step: int | None = None, **arguments: Any) -> None:
        self.told.append({"step": step, **values})

    def finish(self) -> None:
        self.told.append("finished")


def test_trackers_get_every_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(LOGGER_TYPE_TO_CLASS, Noted.name, Noted)
    monkeypatch.setenv("CDLM_LAB_TRACKERS", "noted")
    result = run(tmp_path)
    settings, *records, end = Noted.told
    assert (settings["steps"], settings["learning_rate"], end) == (10, 0.01, "finished")
    assert records == list(result.history)
    monkeypatch.setenv("CDLM_LAB_TRACKERS", "notd")
    with pytest.raises(ParameterError, match="CDLM_LAB_TRACKERS names 'notd'; the trackers installed here:"):
        run(tmp_path / "other")
