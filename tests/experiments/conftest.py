"""A small storyworld corpus and settings for it, and a finished run of document matching, shared by the tests
of the experiments; puts this folder on the path, so that they share tagging_runs.py."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cdlm_lab.experiments import document_matching
from cdlm_lab.experiments.cluster_corpora import CorpusSettings
from cdlm_lab.experiments.pretraining import ModelSettings, Prepared, prepare
from cdlm_lab.training.config import TrainingConfig

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The models are too small for two threads to help."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> CorpusSettings:
    return CorpusSettings(
        corpus="storyworld",
        train_clusters=20,
        held_out_clusters=6,
        minimum_documents=3,
        packing="equal_share",
        max_length=256,
        mask_probability=0.15,
        seed=0,
        cache_folder=str(tmp_path_factory.mktemp("cache")),
    )


@pytest.fixture(scope="session")
def tiny() -> ModelSettings:
    return ModelSettings(model="tiny", window=32, attention="auto", dropout=None, seed=0)


@pytest.fixture(scope="session")
def training() -> TrainingConfig:
    return TrainingConfig(
        steps=4,
        batch_size=2,
        micro_batch_size=1,
        evaluate_every=2,
        save_every=2,
        log_every=1,
        seed=0,
        learning_rate=1e-3,
        warmup_steps=1,
        precision="float32",
    )


@pytest.fixture(scope="session")
def prepared(corpus: CorpusSettings, tiny: ModelSettings, training: TrainingConfig) -> Prepared:
    """Not to be trained: other tests look at it."""
    return prepare(variant="cdlm", model=tiny, corpus=corpus, training=training)


@pytest.fixture(scope="session")
def tiny_folder(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    prepared.model.save_pretrained(folder)
    prepared.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def small_matching() -> document_matching.Settings:
    return document_matching.Settings(
        systems="tf-idf bert-han bert-han-shallow gru-han cdlm",
        seeds=2,
        train_stories=6,
        held_out_stories=3,
        hidden_size=6,
        most_sentences=8,
        most_words=12,
        max_length=192,
        epochs=2,
        batch_size=4,
        encoder_epochs=1,
        encoder_batch_size=4,
        encoder_micro_batch_size=2,
    )


@pytest.fixture(scope="session")
def matched(small_matching: document_matching.Settings, tmp_path_factory) -> document_matching.MatchingRun:
    """A finished run of notebook 04, which notebook 05 reads."""
    folder = str(tmp_path_factory.mktemp("matching"))
    run = document_matching.prepare(replace(small_matching, run_folder=folder))
    document_matching.train(run)
    scores = document_matching.evaluate(run, document_matching.predict(run))
    document_matching.report(run, scores)
    return run
