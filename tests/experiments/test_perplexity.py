"""Cluster losses against a second definition, and the report that the table is made from."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from cdlm_lab.experiments import perplexity
from cdlm_lab.experiments.perplexity import (
    ClusterLosses,
    cluster_losses,
    comparisons_of,
    evaluate,
    measure,
    score_rows,
    summary,
)
from cdlm_lab.experiments.pretraining import Prepared, Settings
from cdlm_lab.models.encoder import TinySizes, load_language_model
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import read_report

FORM = {"split": "validation", "window": 32, "batch_size": 4}


@pytest.mark.parametrize("batch_size", [1, 4])
def test_losses_equal_those_of_each_example_alone(prepared: Prepared, batch_size: int) -> None:
    """Second definition: full logits of one example at a time, cross-entropy token by token."""
    examples = prepared.validation_examples
    found = cluster_losses(prepared.model, examples, batch_size=batch_size)
    for index in range(len(examples)):
        example = {name: torch.from_numpy(values) for name, values in examples[index].items()}
        with torch.no_grad():
            logits = prepared.model(
                example["input_ids"][None], global_attention_mask=example["global_attention_mask"][None]
            ).logits[0]
        losses = torch.nn.functional.cross_entropy(logits.double(), example["labels"], reduction="none")
        masked, crossing = example["labels"] != -100, example["cross_document"]
        assert found.tokens[index] == masked.sum()
        assert found.cross_tokens[index] == (masked & crossing).sum()
        assert found.loss[index] == pytest.approx(losses[masked].sum().item(), rel=1e-5)
        assert found.cross_loss[index] == pytest.approx(losses[masked & crossing].sum().item(), rel=1e-5)
    assert found.cross_tokens.sum() > 0


def worked_losses(values: list[float]) -> ClusterLosses:
    """Two clusters of 2 and 6 masked tokens, no cross-document ones."""
    nothing = np.zeros(2)
    return ClusterLosses(
        loss=np.array(values), tokens=np.array([2.0, 6.0]), cross_loss=nothing, cross_tokens=nothing
    )


def test_perplexity_in_bfloat16_is_that_of_float32(small: Settings, cache: Path) -> None:
    """Within 0.5%, of a trained model; 0.01% as measured."""
    form = FORM | {"split": "test", "cache": cache}
    found = [
        measure({"cdlm": "storyworld/cdlm"}, small, **form, precision=precision)[0]["cdlm"]
        for precision in ("float32", "bfloat16")
    ]
    exact, rounded = (math.exp(one.loss.sum() / one.tokens.sum()) for one in found)
    assert exact < 10, "it is trained"
    assert exact != rounded == pytest.approx(exact, rel=0.005)
    crossing = [math.exp(one.cross_loss.sum() / one.cross_tokens.sum()) for one in found]
    assert crossing[1] == pytest.approx(crossing[0], rel=0.005)


def test_scores_are_weighted_by_tokens() -> None:
    (row,), comparisons = score_rows({"cdlm": worked_losses([2.0, 12.0])}, seed=0)
    assert (row.system, row.metric) == ("cdlm", "perplexity"), "no score where no token is marked"
    assert row.value == pytest.approx(math.exp((2 + 12) / (2 + 6)))
    assert (row.clusters, row.n) == (2, 8)
    assert comparisons == []


def test_comparisons_are_of_neighbours_in_the_order_given() -> None:
    losses = {"a": worked_losses([2.0, 12.0]), "b": worked_losses([2.0, 4.0]), "c": worked_losses([2.0, 4.0])}
    rows = comparisons_of(losses, seed=0)
    assert [(row["a"], row["b"]) for row in rows] == [("a", "b"), ("b", "c")]
    assert rows[0]["difference"] == pytest.approx((14 - 6) / 8)
    assert rows[1]["difference"] == 0
    assert rows[1]["p_holm"] == 1
    scores, _ = score_rows(losses, seed=0)
    assert [(row.p, row.against) for row in scores] == [(rows[0]["p_holm"], "b"), (1, "c"), (None, "")]


def test_views_are_made_from_the_report_alone(
    tmp_path: Path, small: Settings, cache: Path, tiny_folder: Path
) -> None:
    models = dict.fromkeys(("local_cdlm", "rand_cdlm", "prefix_cdlm"), "")
    models |= dict.fromkeys(("cdlm", "longformer"), str(tiny_folder))
    settings = perplexity.Settings(run_folder=str(tmp_path / "run"), split="validation", **models)
    losses, _ = predictions = measure(settings.checkpoints, small, cache=cache, **FORM)
    assert list(losses) == ["longformer", "cdlm"], "paper order"
    perplexity.report(perplexity.prepare(settings), evaluate(predictions, seed=0))
    report = read_report(tmp_path / "run")
    assert report.data["clusters"] == 6
    first, second = (row for row in report.rows if row.metric == "perplexity")
    assert (first.system, second.system) == ("longformer", "cdlm")
    assert first.p is not None
    assert second.p is None
    assert first.clusters == 6
    expected = math.exp(losses["cdlm"].loss.sum() / losses["cdlm"].tokens.sum())
    assert second.value == pytest.approx(expected)
    assert summary(report).startswith("perplexity: longformer against cdlm: -0.00")
    assert "storyworld, validation" in perplexity.figure_view(report).layout.title.text
    assert "CDLM" in perplexity.table_view(report).html()


def test_from_settings_to_a_report(
    tmp_path: Path, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the tokenised corpora are kept
    left_out = dict.fromkeys(("longformer", "local_cdlm", "rand_cdlm", "prefix_cdlm"), "")
    settings = perplexity.Settings(cdlm=str(tiny_folder), clusters=3, max_length=256, **left_out)
    prepared = perplexity.prepare(settings)
    report = perplexity.report(prepared, evaluate(perplexity.predict(prepared), seed=settings.seed))
    assert {(row.system, row.clusters) for row in report.rows} == {("cdlm", 3)}


def test_other_vocabularies_are_not_compared(
    small: Settings, cache: Path, tiny_folder: Path, tmp_path: Path
) -> None:
    other, tokenizer = load_language_model("tiny", max_length=256, window=32, sizes=TinySizes(vocabulary=600))
    other.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="vocabulary is not that of the variants before"):
        measure({"longformer": tiny_folder, "cdlm": tmp_path}, small, cache=cache, **FORM)


def test_variants_may_be_left_out_but_not_all() -> None:
    left_out = dict.fromkeys(("longformer", "local_cdlm", "rand_cdlm", "prefix_cdlm"), "")
    assert perplexity.Settings(**left_out).checkpoints == {"cdlm": "storyworld/cdlm"}
    with pytest.raises(ParameterError, match="every model is left out; name at least one"):
        perplexity.Settings(cdlm="", **left_out)
