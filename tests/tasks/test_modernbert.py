"""A small random ModernBERT: trained through 01, measured in 02, read in 11, the base of a scorer in 03."""

from pathlib import Path

import numpy as np
import pytest
import torch
from modernbert import save_modernbert
from transformers import AutoModelForMaskedLM

import cdlm_lab
from cdlm_lab.encoders.adapter import attach
from cdlm_lab.encoders.encoder import load_encoder
from cdlm_lab.encoders.packed import ModernBertModel
from cdlm_lab.explorer import ranks
from cdlm_lab.explorer.explorer import explore
from cdlm_lab.explorer.opening import models_to_open
from cdlm_lab.parameters import ParameterError
from cdlm_lab.tasks.coreference import experiment as coreference
from cdlm_lab.tasks.pretraining import experiment as pretraining
from cdlm_lab.tasks.pretraining import perplexity

LEFT_OUT = {"longformer": "", "rand_cdlm": "", "prefix_cdlm": ""}
FORM = {"max_length": 128, "window": 16}
STEPS = {"steps": 3, "warmup_steps": 1, "batch_size": 2, "micro_batch_size": 2}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of notebook 01."""
    folder = tmp_path_factory.mktemp("runs")
    given = {"run_folder": str(folder / "cdlm"), "model": save_modernbert(folder / "plain", std=0.05)}
    settings = pretraining.Settings(**given, **FORM, **STEPS, train_clusters=12, held_out_clusters=4)
    run = pretraining.prepare(settings, cache=folder / "cache")
    scores = pretraining.evaluate(run, pretraining.train(run))
    assert scores.rows[0].metric == "perplexity"
    assert min(pretraining.cost_of_step(run)) > 0
    return folder


def test_it_leaves_a_plain_checkpoint_that_loads(trained: Path) -> None:
    model = AutoModelForMaskedLM.from_pretrained(trained / "cdlm" / "model")
    assert type(model).__name__ == "ModernBertForMaskedLM"
    loaded = cdlm_lab.load(str(trained / "cdlm"))
    assert len(loaded.fill(["the [MASK] fell", "a mine blast"], top=2)[0].words) == 2
    whole, apart, above = (
        loaded.fill(["the [MASK] fell", "a mine blast"], top=2, cut=cut)
        for cut in (None, "documents", {"layers": [2], "heads": [0]})
    )
    assert len({str(one) for one in (whole, apart, above)}) == 3


def test_variants_differ_in_their_global_tokens_alone(trained: Path) -> None:
    model = str(trained / "cdlm" / "model")
    models = {**LEFT_OUT, "local_cdlm": model, "cdlm": model, "run_folder": str(trained / "perplexity")}
    run = perplexity.prepare(perplexity.Settings(**models, clusters=4, **FORM), cache=trained / "cache")
    losses, _ = perplexity.predict(run)
    assert (losses["cdlm"].loss != losses["local-cdlm"].loss).all()


def test_notebook_11_reads_it(trained: Path) -> None:
    model = str(trained / "cdlm" / "model")
    models = {**LEFT_OUT, "local_cdlm": "", "longformer": model, "cdlm": model}
    sizes = {"stories": 6, "pairs": 12, "max_length": 400, "window": 8}
    analysis = ranks.prepare(ranks.Settings(run_folder=str(trained / "ranks"), **models, **sizes))
    pair = analysis.pairs["event"][:1]
    _, read = ranks._reader(analysis, "cdlm")
    assert (read(pair)[0] >= 0).all()
    assert np.isfinite(read(pair)).all()
    explored = explore(analysis, models=["cdlm"])
    assert explored.view.answer["panels"]
    assert explored.view.options["cuts"]
    assert any(key.endswith("cdlm/model") for key in models_to_open(analysis))


def test_it_is_the_base_of_a_coreference_scorer(trained: Path) -> None:
    form = {"model": str(trained / "cdlm" / "model"), "run_folder": str(trained / "events")}
    sizes = {
        "train_stories": 3,
        "held_out_stories": 2,
        "train_pairs": 8,
        "batch_size": 4,
        "micro_batch_size": 4,
    }
    run = coreference.prepare(coreference.Settings(**form, **sizes, **FORM, context="sentences"))
    assert isinstance(run.model.longformer, ModernBertModel)
    coreference.train(run)
    model = str(trained / "events" / "model")
    weights = load_encoder(model, **FORM)[0].state_dict()
    assert all(torch.equal(one, weights[name]) for name, one in run.model.longformer.state_dict().items())
    with pytest.raises(ParameterError, match="is no Longformer, which it is for"):
        attach(run.model, run.tokenizer, "lora", seed=0)
    loaded = cdlm_lab.load(str(trained / "events"))
    documents = {"a": "A <m>blast</m> hit the town.", "b": "The <m>explosion</m> hit it."}
    assert 1 <= len(loaded.clusters(documents, threshold=0.5)) <= 2
