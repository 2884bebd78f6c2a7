"""Settings are checked when they are made, with both values in the message; epochs over the items of a task:
how many updates they are, and in which order the items come."""

from collections import Counter

import pytest
from tiny_run import tiny_config

from cdlm_lab.parameters import ParameterError
from cdlm_lab.tasks.joint.systems import JointSettings
from cdlm_lab.training import config
from cdlm_lab.training.config import TrainingConfig, resolve_workers
from cdlm_lab.training.fine_tuning import config_of_passes, in_training_order


def test_defaults_are_those_of_the_paper():
    often = {"evaluate_every": 500, "save_every": 500, "log_every": 10}
    config = TrainingConfig(steps=25_000, batch_size=64, micro_batch_size=1, seed=0, **often)
    assert (config.learning_rate, config.warmup_steps, config.decay_power) == (3e-5, 500, 3)
    assert (config.weight_decay, config.adam_beta2, config.adam_epsilon) == (0.01, 0.98, 1e-6)
    assert config.accumulation(processes=8) == 8


@pytest.mark.parametrize(("changes", "message"), [
    ({"steps": 0}, "steps is 0; it must be at least 1"),
    ({"warmup_steps": 10}, r"warmup_steps \(10\) must be fewer than steps \(10\)"),
    ({"warmup_steps": -1}, r"warmup_steps is -1; it must be at least 0"),
    ({"batch_size": 5}, r"batch_size \(5\) must be a multiple of micro_batch_size \(2\)$"),
    ({"learning_rate": "1e-4"}, "papermill -y reads 1e-4 as text"),
    ({"learning_rate": 0}, "learning_rate is 0; it must be above 0"),
    ({"learning_rate": float("inf")}, "learning_rate is inf"),
    ({"max_gradient_norm": -1.0}, "max_gradient_norm is -1.0; it must be at least 0"),
    ({"adam_beta2": 1.0}, r"adam_beta2 is 1.0; it must be below 1"),
    ({"precision": "fp16"}, "'fp16'; it must be one of 'auto', 'float32', 'bfloat16', 'float16'"),
    ({"learning_rate_factors": (("a", -2.0),)}, r"learning_rate_factors\[0\]\[1\] is -2.0; it must be a"),
    ({"seed": -1}, "seed is -1"),
    ({"patience": -1}, "patience is -1"),
    ({"workers": -1}, "workers is -1; it must be at least 0"),
    ({"workers": "some"}, "workers is 'some'"),
    ({"gradient_checkpointing": 1}, "gradient_checkpointing is 1"),
])  # fmt: skip
def test_what_cannot_be(changes: dict[str, object], message: str):
    with pytest.raises(ParameterError, match=message):
        tiny_config(**changes)


def test_processes_must_share_the_batch_evenly():
    assert tiny_config(batch_size=12).accumulation(processes=3) == 2
    message = r"batch_size \(4\) must .* micro_batch_size \(2\) x 3 processes = 6"
    with pytest.raises(ParameterError, match=message):
        tiny_config().accumulation(processes=3)


def test_how_many_processes_make_examples(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(config, "usable_cores", lambda: 16)
    assert [resolve_workers("auto", device="cuda", processes=n) for n in (1, 4, 16)] == [8, 3, 1]
    assert resolve_workers("auto", device="cpu") == resolve_workers(0, device="cuda") == 0
    assert resolve_workers(5, device="cpu", processes=2) == 5


def passes(**given) -> TrainingConfig:
    form = {"items": 50, "epochs": 3, "batch_size": 8, "micro_batch_size": 4, "learning_rate": 0.1, "seed": 0}
    return config_of_passes(**form | given)


def test_updates_evaluations_and_warm_up_of_three_passes_over_fifty_items() -> None:
    config = passes()
    assert (config.steps, config.evaluate_every, config.warmup_steps) == (18, 6, 1)  # 6 full batches a pass
    assert (config.learning_rate, config.decay_power) == (0.1, 1)
    assert passes(warmup_steps=4).warmup_steps == 4
    assert passes(warmup_steps=100).warmup_steps == 9, "at most half of them"
    assert passes(items=3, epochs=1, warmup_steps=100).warmup_steps == 0
    with pytest.raises(ParameterError, match="must be a multiple of micro_batch_size"):
        passes(micro_batch_size=3)


def test_settings_of_a_fine_tuning_reach_its_config() -> None:
    others = {"patience": 2, "precision": "bfloat16", "warmup_steps": 4}
    given = JointSettings(epochs=3, batch_size=8, micro_batch_size=4, **others)
    assert given.config(items=50, seed=7) == passes(learning_rate=0.001, seed=7, **others)


def test_each_pass_reads_every_item_once_in_an_order_of_its_own() -> None:
    items = list(range(50))
    actual = list(in_training_order(items, passes()))
    assert len(actual) == 18 * 8
    first, second = actual[:50], actual[50:100]
    assert Counter(first) == Counter(second) == Counter(items)
    assert set(Counter(actual[100:]).values()) == {1}
    assert first != second != items
    assert actual == list(in_training_order(items, passes()))
    assert actual != list(in_training_order(items, passes(seed=1)))
