"""A small storyworld corpus and settings for it, and a finished run of document matching, shared by the tests
of the experiments; puts this folder on the path, so that they share tagging_runs.py."""

import sys
from pathlib import Path

import pytest
import torch

from cdlm_lab.experiments import pretraining

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The models are too small for two threads to help."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of tokenised corpora."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def small() -> pretraining.Settings:
    """Of a run of notebook 01 that takes seconds."""
    return pretraining.Settings(
        train_clusters=20,
        held_out_clusters=6,
        max_length=256,
        steps=4,
        batch_size=2,
        micro_batch_size=1,
        evaluate_every=2,
        learning_rate=1e-3,
        warmup_steps=1,
        precision="float32",
    )


@pytest.fixture(scope="session")
def prepared(small: pretraining.Settings, cache: Path) -> pretraining.Prepared:
    """Not to be trained: other tests look at it."""
    return pretraining.read(small, cache=cache)


@pytest.fixture(scope="session")
def tiny_folder(prepared: pretraining.Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    prepared.model.save_pretrained(folder)
    prepared.tokenizer.save_pretrained(folder)
    return folder


from cdlm_lab.experiments import pretraining

sys.path.insert(0, str(Path(__file__).parent))
