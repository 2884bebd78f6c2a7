"""Cluster losses against a second definition, and the report that the table is made from."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from cdlm_lab.experiments.cluster_corpora import CorpusSettings
from cdlm_lab.experiments.perplexity import (
    ClusterLosses,
    cluster_losses,
    comparisons_of,
    measure_variants,
    scores_of,
    write_perplexity_report,
)
from cdlm_lab.experiments.pretraining import Prepared
from cdlm_lab.report import open_run, read_report
from cdlm_lab.widgets.score_tables import score_table


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


def test_perplexity_in_bfloat16_is_that_of_float32(corpus: CorpusSettings) -> None:
    """Within 0.5%, of a trained model; 0.01% as measured."""
    form = {"split": "test", "window": 32, "batch_size": 4}
    found = [
        measure_variants({"cdlm": "storyworld/cdlm"}, corpus, **form, precision=precision)[0]["cdlm"]
        for precision in ("float32", "bfloat16")
    ]
    exact, rounded = (math.exp(one.loss.sum() / one.tokens.sum()) for one in found)
    assert exact < 10, "it is trained"
    assert exact != rounded == pytest.approx(exact, rel=0.005)
    crossing = [math.exp(one.cross_loss.sum() / one.cross_tokens.sum()) for one in found]
    assert crossing[1] == pytest.approx(crossing[0], rel=0.005)


def test_scores_are_weighted_by_tokens() -> None:
    scores = scores_of({"cdlm": worked_losses([2.0, 12.0])}, seed=0)
    assert list(scores) == ["cdlm/perplexity"], "no score where no token is marked"
    assert scores["cdlm/perplexity"]["value"] == pytest.approx(math.exp((2 + 12) / (2 + 6)))
    assert scores["cdlm/perplexity"]["n"] == 2
    assert scores["cdlm/perplexity"]["tokens"] == 8


def test_comparisons_are_of_neighbours_in_the_order_given() -> None:
    losses = {"a": worked_losses([2.0, 12.0]), "b": worked_losses([2.0, 4.0]), "c": worked_losses([2.0, 4.0])}
    rows = comparisons_of(losses, seed=0)
    assert [(row["a"], row["b"]) for row in rows] == [("a", "b"), ("b", "c")]
    assert rows[0]["difference"] == pytest.approx((14 - 6) / 8)
    assert rows[1]["difference"] == 0
    assert rows[1]["p_holm"] == 1


def test_the_table_is_made_from_the_report_alone(tmp_path, corpus: CorpusSettings, tiny_folder) -> None:
    losses, split = measure_variants(
        {"cdlm": tiny_folder, "longformer": tiny_folder}, corpus, split="validation", window=32, batch_size=4
    )
    assert list(losses) == ["longformer", "cdlm"], "paper order, whatever order they were given in"
    with_run = open_run(tmp_path / "run", name="cross-document perplexity", parameters={"seed": 0})
    write_perplexity_report(with_run, losses, split, seed=0)
    report = read_report(tmp_path / "run")
    first, second = (row for row in report.rows if row.metric == "perplexity")
    assert (first.system, second.system) == ("longformer", "cdlm")
    assert (first.p is None, second.p) == (False, None)
    assert first.clusters == 6
    expected = math.exp(losses["cdlm"].loss.sum() / losses["cdlm"].tokens.sum())
    assert second.value == pytest.approx(expected)
    assert [row[0].text for row in score_table(report).rows] == ["Longformer", "CDLM"]


def test_other_vocabularies_are_not_compared(
    corpus: CorpusSettings, prepared: Prepared, tiny_folder, tmp_path
) -> None:
    from cdlm_lab.models.encoder import TinySizes, load_language_model

    other, tokenizer = load_language_model("tiny", max_length=256, window=32, sizes=TinySizes(vocabulary=600))
    other.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="vocabulary is not that of the variants before"):
        measure_variants(
            {"longformer": tiny_folder, "cdlm": tmp_path}, corpus, split="validation", window=32, batch_size=4
        )


def test_variants_may_be_left_out_but_not_all(corpus: CorpusSettings) -> None:
    with pytest.raises(ValueError, match="every variant is left out"):
        measure_variants({"cdlm": ""}, corpus, split="validation", window=32, batch_size=4)


def test_an_unknown_variant_is_refused_by_name(corpus: CorpusSettings, tiny_folder) -> None:
    with pytest.raises(ValueError, match="unknown variant 'bigbird'"):
        measure_variants(
            {"bigbird": tiny_folder}, replace(corpus), split="validation", window=32, batch_size=4
        )
