"""Small settings, models and a finished run of document matching, shared by the tests of experiments."""

from dataclasses import replace
from pathlib import Path

import pytest
from tagging_runs import finished_run, saved

from cdlm_lab.tasks import coreference
from cdlm_lab.tasks.matching import experiment as document_matching
from cdlm_lab.tasks.pretraining import experiment as pretraining
from cdlm_lab.encoders.encoder import TinySizes, load_language_model


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder for the cache of tokenised corpora."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def small() -> pretraining.Settings:
    """Settings for a run of notebook 01 that takes seconds."""
    sizes = {"train_clusters": 20, "held_out_clusters": 6, "max_length": 256, "steps": 4, "evaluate_every": 2}
    sizes |= {"batch_size": 2, "micro_batch_size": 1, "warmup_steps": 1}
    return pretraining.Settings(learning_rate=1e-3, precision="float32", **sizes)


@pytest.fixture(scope="session")
def prepared(small: pretraining.Settings, cache: Path) -> pretraining.PretrainingRun:
    """A prepared pretraining run that tests share; it must not be trained."""
    return pretraining.PretrainingRun.read(small, cache=cache)


@pytest.fixture(scope="session")
def tiny_folder(prepared: pretraining.PretrainingRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(saved(tmp_path_factory.mktemp("tiny"), prepared.model, prepared.tokenizer))


def saved_encoder(folder: Path, **sizes: float) -> str:
    """Save a tiny encoder in a folder and return the folder."""
    tiny = TinySizes(hidden_size=16, layers=1, heads=2, intermediate_size=16, vocabulary=300, **sizes)
    return saved(folder, *load_language_model("tiny", max_length=128, window=8, sizes=tiny))


@pytest.fixture(scope="session")
def sharp_encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny encoder with large weights, so that its outputs for different texts differ clearly."""
    return saved_encoder(tmp_path_factory.mktemp("sharp"), initializer_range=0.2)


@pytest.fixture(scope="session")
def pair_settings(tmp_path_factory: pytest.TempPathFactory) -> coreference.Settings:
    """Settings for a run of notebook 03 that takes a few seconds."""
    sizes = {"train_stories": 3, "held_out_stories": 2, "max_length": 128, "window": 8, "train_pairs": 16}
    sizes |= {"epochs": 2, "batch_size": 8, "micro_batch_size": 4}
    rates = {"negatives_per_positive": 1.0, "learning_rate": 1e-3}
    model = saved_encoder(tmp_path_factory.mktemp("encoder"))
    form = {"model": model, "context": "sentences", "topic_level": "subtopic"}
    return coreference.Settings(**form, **sizes, **rates)


@pytest.fixture(scope="session")
def small_matching() -> document_matching.Settings:
    sizes = {
        "hidden_size": 6,
        "most_sentences": 8,
        "most_words": 12,
        "max_length": 192,
        "window": 32,
        "batch_size": 4,
    }
    sizes |= {"train_stories": 6, "held_out_stories": 3, "seeds": 2, "epochs": 2}
    encoder = {"encoder_epochs": 1, "encoder_batch_size": 4, "encoder_micro_batch_size": 2}
    systems = "tf-idf bert-han bert-han-shallow gru-han cdlm"
    return document_matching.Settings(systems=systems, **sizes, **encoder)


@pytest.fixture(scope="session")
def matched(small_matching: document_matching.Settings, tmp_path_factory) -> document_matching.MatchingRun:
    """A finished run of notebook 04, which notebook 05 reads."""
    folder = str(tmp_path_factory.mktemp("matching"))
    return finished_run(document_matching, replace(small_matching, run_folder=folder))[0]
