"""Preparing and training one variant: what lands in the run's folder, and what is refused before any work."""

from dataclasses import replace

import pytest
import torch
from transformers import AutoTokenizer, LongformerForMaskedLM

from cdlm_lab.experiments.cluster_corpora import CorpusSettings
from cdlm_lab.experiments.pretraining import (
    ModelSettings,
    Prepared,
    facts_of,
    loss_of_text,
    prepare,
    pretrain,
)
from cdlm_lab.report import open_run, read_report
from cdlm_lab.training.checkpoints import MODEL_FOLDER
from cdlm_lab.training.config import TrainingConfig


@pytest.mark.parametrize("variant", ["cdlm", "local-cdlm"])
def test_a_run_leaves_a_model_that_opens_in_plain_huggingface(
    variant: str, tmp_path, corpus: CorpusSettings, tiny: ModelSettings, training: TrainingConfig
) -> None:
    prepared = prepare(variant=variant, model=tiny, corpus=corpus, training=training)
    records = []
    result, report = pretrain(
        prepared, open_run(tmp_path / "run", name="test", parameters={}), on_log=records.append
    )
    assert result.steps == 4
    assert {"loss", "eval_perplexity"} <= {key for record in records for key in record}
    folder = tmp_path / "run" / MODEL_FOLDER
    plain = LongformerForMaskedLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert "<doc-s>" in tokenizer.get_vocab()
    ids = torch.tensor([tokenizer("The mayor asked for calm.")["input_ids"]])
    with torch.no_grad():
        theirs, ours = plain.eval()(ids).logits, prepared.model.eval()(ids).logits
    torch.testing.assert_close(theirs, ours, rtol=0, atol=1e-4)
    attention = plain.longformer.encoder.layer[0].attention.self
    copied = torch.equal(attention.query.weight, attention.query_global.weight)
    assert copied is (variant == "local-cdlm"), "only models without globals get them from the local weights"
    saved = read_report(tmp_path / "run")
    assert saved.scores[f"{variant}/perplexity"]["n"] == 6
    assert saved.data["train_clusters"] == 20
    assert saved.data["files_passed_over"] == "none"
    assert report is not None


def test_preparing_trains_nothing_and_tells_what_will_be(prepared: Prepared) -> None:
    facts = dict(facts_of(prepared))
    assert facts["precision"] == "float32"
    assert facts["training"].startswith("4 steps of 2 examples")
    assert "20 for training" in facts["clusters"]
    lost = loss_of_text(prepared)
    assert lost.examples == 8, "steps x batch size"
    assert 0 < lost.share_lost < 1, "256 tokens hold a part of 3 to 6 reports"


def test_the_base_of_a_finished_model_is_not_trained(
    corpus: CorpusSettings, tiny: ModelSettings, training: TrainingConfig, tiny_folder
) -> None:
    with pytest.raises(ValueError, match="variant is 'longformer', which is the base itself"):
        prepare(
            variant="longformer",
            model=replace(tiny, model=str(tiny_folder)),
            corpus=corpus,
            training=training,
        )


def test_a_parameter_of_the_wrong_type_is_refused(tiny: ModelSettings) -> None:
    with pytest.raises(ValueError, match="dropout"):
        replace(tiny, dropout="0.1")
