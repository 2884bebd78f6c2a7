"""What one run does: gradients, learning rates, validation, and what it leaves behind. Every parameter is in
one group, with the right decay and the right factor.
"""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path

import pytest
import torch
from tiny_run import Examples, PlainModel, TinyModel, collate, run, tiny_config, tiny_model
from torch import nn
from transformers import PreTrainedTokenizerFast

from cdlm_lab.parameters import ParameterError
from cdlm_lab.training.trainer import parameter_groups, train, training_arguments

EXACT = {"dropout": 0.0}


def losses(result) -> list[float]:
    return [record["loss"] for record in result.history if "loss" in record]


def gradient_norms(result) -> list[float]:
    return [record["gradient_norm"] for record in result.history if "loss" in record]


def test_accumulated_gradients_are_those_of_the_full_batch(tmp_path: Path):
    runs, weights = {}, {}
    for size in (1, 2, 8):
        model = tiny_model(**EXACT).double()
        settings = {"steps": 3, "batch_size": 8, "warmup_steps": 0, "evaluate_every": 3}
        runs[size] = run(tmp_path / str(size), model=model, micro_batch_size=size, **settings)
        weights[size] = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    for size in (1, 2):
        # Trainer sums up losses in float32; weights and norms show what the gradients were.
        assert losses(runs[size]) == pytest.approx(losses(runs[8]), rel=1e-6)
        assert gradient_norms(runs[size]) == pytest.approx(gradient_norms(runs[8]), rel=1e-12)
        torch.testing.assert_close(weights[size], weights[8], rtol=0, atol=1e-12)
    assert (
        weights[8] - torch.cat([p.detach().flatten() for p in tiny_model().parameters()])
    ).abs().max() > 1e-3


def gradients(folder: Path, *, precision: str, micro_batch_size: int) -> torch.Tensor:
    """All gradients of a first step of 8 examples."""
    model, seen = tiny_model(**EXACT), {}
    for name, parameter in model.named_parameters():
        # The last call has the sum over all micro-batches.
        parameter.register_post_accumulate_grad_hook(
            lambda p, name=name: seen.update({name: p.grad.clone().flatten()})
        )
    settings = {"steps": 1, "batch_size": 8, "warmup_steps": 0, "max_gradient_norm": 0.0}
    run(folder, model=model, precision=precision, micro_batch_size=micro_batch_size, **settings)
    return torch.cat([seen[name] for name in sorted(seen)])


def test_accumulated_gradients_in_bfloat16_are_off_by_its_rounding(tmp_path: Path):
    split = gradients(tmp_path / "split", precision="bfloat16", micro_batch_size=1)
    whole = gradients(tmp_path / "whole", precision="bfloat16", micro_batch_size=8)
    exact = gradients(tmp_path / "exact", precision="float32", micro_batch_size=8)
    # Rounding is by up to 2**-9 of a number, and a few products lie behind a gradient.
    assert (split - whole).norm() < 4 * 2**-9 * whole.norm()
    assert 0 < (whole - exact).norm() < 4 * 2**-9 * exact.norm()


def test_the_first_step_is_the_formula(tmp_path: Path):
    model = tiny_model(**EXACT).double()
    before = copy.deepcopy(model)
    settings = {"steps": 1, "warmup_steps": 0, "micro_batch_size": 1, "max_gradient_norm": 0.0}
    result = run(tmp_path, model=model, **settings)
    batch = collate([Examples(seed=1, size=4)[index] for index in range(4)])
    labels = batch.pop("labels")
    loss = nn.functional.cross_entropy(before.logits(**batch).flatten(0, 1), labels.flatten())
    loss.backward()
    assert losses(result) == pytest.approx([loss.item()], rel=1e-6)
    decayed = {
        name for name, _ in before.named_parameters() if name.endswith("weight") and "norm" not in name
    }
    for (name, new), old in zip(model.named_parameters(), before.parameters(), strict=True):
        decay = 0.01 * 0.01 * old if name in decayed else 0
        # After one step AdamW's moments, corrected for their start, are the gradient and its square.
        expected = old - decay - 0.01 * old.grad / (old.grad.abs() + 1e-6)
        torch.testing.assert_close(new, expected, rtol=0, atol=1e-9, msg=name)


def test_models_that_ignore_the_count_get_the_mean_over_micro_batches(tmp_path: Path):
    model = tiny_model(PlainModel, **EXACT)
    before = copy.deepcopy(model)
    result = run(tmp_path, model=model, steps=1, warmup_steps=0, micro_batch_size=1)
    with torch.no_grad():
        parts = [before(**collate([Examples(seed=1, size=4)[index]])).loss.item() for index in range(4)]
    assert losses(result) == pytest.approx([sum(parts) / 4], rel=1e-5)  # the plain Trainer logs their sum
    whole = run(
        tmp_path / "whole", model=tiny_model(PlainModel, **EXACT), steps=1, warmup_steps=0, micro_batch_size=4
    )
    assert gradient_norms(result)[0] < 2 * gradient_norms(whole)[0]


def test_the_learning_rate_at_every_step(tmp_path: Path):
    result = run(tmp_path, steps=30, warmup_steps=5, evaluate_every=30, save_every=30)
    expected = [0.01 * t / 5 for t in range(5)] + [0.01 * ((30 - t) / 25) ** 3 for t in range(5, 30)]
    assert [record["learning_rate"] for record in result.history if "loss" in record] == pytest.approx(
        expected
    )
    config = tiny_config(steps=30, warmup_steps=5)
    assert [config.learning_rate_at(t) for t in range(30)] == pytest.approx(expected)


def test_a_learning_rate_factor_scales_the_first_update(tmp_path: Path):
    plain, faster = tiny_model(**EXACT), tiny_model(**EXACT)
    settings = {"steps": 1, "warmup_steps": 0, "weight_decay": 0.0}
    run(tmp_path / "a", model=plain, **settings)
    result = run(
        tmp_path / "b", model=faster, learning_rate_factors=(("global_projection", 4.0),), **settings
    )
    start = dict(tiny_model().named_parameters())
    for (name, new), scaled in zip(plain.named_parameters(), faster.parameters(), strict=True):
        factor = 4.0 if "global_projection" in name else 1.0
        torch.testing.assert_close(scaled - start[name], factor * (new - start[name]), rtol=1e-3, atol=1e-6)
    assert result.history[0]["learning_rate"] == 0.01


def test_validation_is_weighted_by_masked_tokens(tmp_path: Path):
    model = tiny_model()
    result = run(tmp_path, model=model)
    model.eval()
    sums, counts, means = 0.0, 0, []
    for first in range(0, 11, 2):
        examples = [Examples(seed=2, size=11)[index] for index in range(first, min(first + 2, 11))]
        batch = collate(examples)
        labels = batch.pop("labels")
        with torch.no_grad():
            logits = model.logits(**batch).flatten(0, 1)
        part = nn.functional.cross_entropy(logits, labels.flatten(), reduction="sum").item()
        sums, counts = sums + part, counts + int((labels != -100).sum())
        means.append(part / int((labels != -100).sum()))
    assert result.validation_loss == pytest.approx(sums / counts, rel=1e-6)
    assert result.validation_perplexity == pytest.approx(math.exp(sums / counts), rel=1e-5)
    assert abs(sum(means) / len(means) - sums / counts) > 1e-4  # the other mean would be found out


def test_the_best_checkpoint_is_kept_beside_the_last(tmp_path: Path):
    model = tiny_model()
    result = run(tmp_path, model=model)
    by_step = {r["step"]: r["eval_perplexity"] for r in result.history if "eval_loss" in r}
    assert list(by_step) == [4, 8, 10]  # the last step is always evaluated
    assert (
        result.best_step == min(by_step, key=by_step.get) == 4
    )  # if it were the last this would test nothing
    assert result.validation_perplexity == by_step[4]
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == ["checkpoint-10", "checkpoint-4"]
    assert (result.best_checkpoint, result.last_checkpoint) == (
        tmp_path / "checkpoint-4",
        tmp_path / "checkpoint-10",
    )
    for checkpoint, equal in ((result.best_checkpoint, True), (result.last_checkpoint, False)):
        weights = TinyModel.from_pretrained(checkpoint).state_dict()
        assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items()) == equal


def test_the_history(tmp_path: Path):
    seen = []
    result = run(tmp_path, on_log=seen.append, log_every=3)
    lines = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert lines == seen == list(result.history)
    assert [r["step"] for r in lines if "loss" in r] == [1, 3, 6, 9]
    assert all(r["total_steps"] == 10 for r in lines)
    assert [r["seconds"] for r in lines] == sorted(r["seconds"] for r in lines)
    examples = Examples(seed=1, size=40)
    assert [r["tokens"] for r in lines if "loss" in r] == [
        sum(len(examples[index]["labels"]) for index in range(4 * step)) for step in (1, 3, 6, 9)
    ]
    assert (result.steps, result.interrupted) == (10, False)


def test_the_bar_gives_way_to_whoever_shows_the_records(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    run(tmp_path / "a")
    assert "step/s" in capfd.readouterr().out
    run(tmp_path / "b", on_log=lambda record: None)
    assert "step/s" not in capfd.readouterr().out


def test_a_record_is_the_mean_since_the_last(tmp_path: Path):
    every = losses(run(tmp_path / "a"))
    some = losses(run(tmp_path / "b", log_every=4))
    assert some == pytest.approx([every[0], sum(every[1:4]) / 3, sum(every[4:8]) / 4])


def test_evaluating_more_often_leaves_training_as_it_is(tmp_path: Path):
    assert losses(run(tmp_path / "a", evaluate_every=1)) == losses(run(tmp_path / "b", evaluate_every=10))


def test_the_seed_decides_the_dropout(tmp_path: Path):
    first, same, other = (
        losses(run(tmp_path / name, seed=seed)) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first == same != other


def test_every_parameter_gets_a_gradient_or_none_is_touched(tmp_path: Path):
    model, start = tiny_model(), dict(tiny_model().named_parameters())
    examples = Examples(seed=1, size=40, global_from=99)  # no token is global: the projections take no part
    run(tmp_path, model=model, train_examples=examples, weight_decay=0.5)
    changed = {name for name, value in model.named_parameters() if not torch.equal(value, start[name])}
    assert changed == {name for name in start if "global_projection" not in name}


def test_gradient_clipping(tmp_path: Path):
    free = run(tmp_path / "a", max_gradient_norm=0.0)
    short = run(tmp_path / "b", max_gradient_norm=0.001)
    assert gradient_norms(free)[0] == pytest.approx(
        gradient_norms(short)[0]
    )  # told as it was before clipping
    assert losses(free)[-1] != losses(short)[-1]


def test_half_precision_ends_with_the_run(tmp_path: Path):
    model = tiny_model()
    result = run(tmp_path, model=model, precision="bfloat16")
    assert losses(result)[:3] == pytest.approx(losses(run(tmp_path / "full"))[:3], rel=0.02)
    assert losses(result) != losses(run(tmp_path / "full2"))
    seen = []
    model.vocabulary.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    model(**collate([Examples(seed=1, size=4)[0]]))
    assert seen == [torch.float32]
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_the_tokenizer_goes_with_the_checkpoint(tmp_path: Path):
    from tokenizers import Tokenizer, models

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, unk_token="a")))
    config = tiny_config(steps=3, warmup_steps=0)
    result = train(
        model=tiny_model(),
        train_examples=Examples(seed=1, size=12),
        validation_examples=Examples(seed=2, size=3),
        collate=collate,
        config=config,
        output_dir=tmp_path,
        tokenizer=tokenizer,
    )
    assert PreTrainedTokenizerFast.from_pretrained(result.last_checkpoint).get_vocab() == {"a": 0}
    assert not list(tmp_path.rglob("training_args.bin"))  # a pickle


def test_what_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="there are 39 training examples, but 10 steps of 4 take 40"):
        run(tmp_path, train_examples=Examples(seed=1, size=39))
    settings = {"model": tiny_model(), "collate": collate, "config": tiny_config(), "output_dir": tmp_path}
    with pytest.raises(ValueError, match="there are no validation examples"):
        train(train_examples=Examples(seed=1, size=40), validation_examples=[], **settings)
    with pytest.raises(ParameterError, match="no parameter's name contains 'globle'"):
        run(tmp_path, learning_rate_factors=(("globle", 2.0),))
    assert not list(tmp_path.glob("checkpoint*"))


def test_nothing_masked_in_validation(tmp_path: Path):
    bare = [example | {"labels": example["labels"] * 0 - 100} for example in Examples(seed=2, size=3)]
    with pytest.raises(ValueError, match="no token of the 3 validation examples is masked"):
        train(
            model=tiny_model(),
            train_examples=Examples(seed=1, size=40),
            validation_examples=bare,
            collate=collate,
            config=tiny_config(evaluate_every=1),
            output_dir=tmp_path,
        )


def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path):
    model = tiny_model()
    with torch.no_grad():
        model.local.weight.fill_(math.nan)
    with pytest.raises(
        FloatingPointError, match="the training loss is nan at step 1: lower the learning rate"
    ):
        run(tmp_path, model=model)
    assert not (tmp_path / "history.jsonl").read_text()


def test_one_device_of_many_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "transformers.TrainingArguments.n_gpu", property(lambda self: self.__dict__.get("_n_gpu") or 4)
    )
    with pytest.warns(UserWarning, match="of 4 devices one is used: start with torchrun"):
        args = training_arguments(tiny_config(), tmp_path)
    assert (args.n_gpu, args.train_batch_size, args.gradient_accumulation_steps) == (1, 2, 2)


def grouped(**settings: object) -> dict[str, tuple[float, float]]:
    """Name -> (weight decay, learning rate)."""
    net = nn.ModuleDict({name: nn.Linear(2, 2) for name in ("local", "query_global", "frozen")})
    net["frozen"].requires_grad_(False)
    names = {id(parameter): name for name, parameter in net.named_parameters()}
    decayed = {name for name in names.values() if name.endswith("weight")}
    groups = parameter_groups(net, decayed=decayed, weight_decay=0.1, learning_rate=2.0, **settings)
    assert (groups[0]["lr"], groups[0]["weight_decay"]) == (2.0, 0.1)
    actual = [
        (names[id(p)], (group["weight_decay"], group["lr"])) for group in groups for p in group["params"]
    ]
    assert len(actual) == len(dict(actual)) == 4
    return dict(actual)


def test_without_factors():
    assert grouped() == {
        "local.weight": (0.1, 2.0),
        "local.bias": (0.0, 2.0),
        "query_global.weight": (0.1, 2.0),
        "query_global.bias": (0.0, 2.0),
    }


def test_with_a_factor():
    assert grouped(factors=[("_global", 5.0)]) == {
        "local.weight": (0.1, 2.0),
        "local.bias": (0.0, 2.0),
        "query_global.weight": (0.1, 10.0),
        "query_global.bias": (0.0, 10.0),
    }


def test_the_first_group_has_the_plain_rate_even_if_nothing_else_has():
    assert grouped(factors=[("local", 0.5), ("global", 5.0)])["local.bias"] == (0.0, 1.0)


def test_names_that_match_nothing_or_twice():
    with pytest.raises(ParameterError, match="contains 'query_globl'; did you mean 'query_global'"):
        grouped(factors=[("query_globl", 2.0)])
    with pytest.raises(ParameterError, match=r"query_global\.weight matches 'query' and '_global'"):
        grouped(factors=[("query", 2.0), ("_global", 2.0)])
