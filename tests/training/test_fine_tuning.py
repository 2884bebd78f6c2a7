"""Epochs over the items of a task: how many updates they are, and in which order the items come."""

from collections import Counter

import pytest

from cdlm_lab.experiments.systems.joint import JointSettings
from cdlm_lab.parameters import ParameterError
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.fine_tuning import config_of_passes, in_training_order


def passes(**given) -> TrainingConfig:
    form = {"items": 50, "epochs": 3, "batch_size": 8, "micro_batch_size": 4, "learning_rate": 0.1, "seed": 0}
    return config_of_passes(**form | given)


def test_updates_evaluations_and_warm_up_of_three_passes_over_fifty_items() -> None:
    config = passes()
    assert (config.steps, config.evaluate_every, config.warmup_steps) == (18, 6, 1)  # 6 full batches a pass
    assert config.learning_rate_at(1) == 0.1
    assert config.learning_rate_at(18) == 0
    assert passes(warmup_steps=4).warmup_steps == 4


def test_a_warm_up_that_is_too_long_for_a_short_run_takes_half_of_it() -> None:
    assert passes(warmup_steps=100).warmup_steps == 9
    assert passes(items=3, epochs=1, warmup_steps=100).warmup_steps == 0


def test_settings_of_a_fine_tuning_reach_its_config() -> None:
    given = JointSettings(
        epochs=3, batch_size=8, micro_batch_size=4, patience=2, precision="bfloat16", warmup_steps=4
    )
    config = given.config(items=50, seed=7)
    assert config == passes(learning_rate=0.001, seed=7, patience=2, precision="bfloat16", warmup_steps=4)


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


def test_values_that_cannot_be() -> None:
    with pytest.raises(ParameterError, match="must be a multiple of micro_batch_size"):
        passes(micro_batch_size=3)
