"""The attention analysis from models to report, table and figures: numbers are those of their definitions."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cdlm_lab.experiments.attention_analysis import (
    Analysis,
    AnalysisSettings,
    ModelRanks,
    distribution_figure,
    facts_of,
    gap_rows,
    head_differences,
    head_figures,
    measured_ranks,
    prepare_analysis,
    ranks_by_cell,
    write_analysis_report,
)
from cdlm_lab.models.encoder import TinySizes, load_language_model
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import open_run
from cdlm_lab.widgets.score_tables import score_table

SETTINGS = AnalysisSettings(
    corpus="storyworld",
    split="test",
    stories=6,
    pairs=8,
    candidates="document",
    max_length=300,
    window=8,
    attention="auto",
    seed=0,
)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    torch.set_num_threads(1)
    sizes = TinySizes(
        hidden_size=16, layers=2, heads=2, intermediate_size=16, vocabulary=300, initializer_range=0.2
    )
    made = {"cdlm": "", "rand-cdlm": "", "local-cdlm": ""}
    for seed, name in enumerate(list(made)[:2]):
        folder = tmp_path_factory.mktemp(name)
        model, tokenizer = load_language_model("tiny", max_length=300, window=8, sizes=sizes, seed=seed)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        made[name] = str(folder)
    return made


@pytest.fixture(scope="module")
def analysis(checkpoints: dict[str, str]) -> Analysis:
    return prepare_analysis(SETTINGS, checkpoints)


@pytest.fixture(scope="module")
def measured(analysis: Analysis, tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModelRanks]:
    return measured_ranks(analysis, tmp_path_factory.mktemp("ranks"))


def test_models_stand_in_paper_order_and_those_left_out_are_gone(analysis: Analysis):
    assert list(analysis.checkpoints) == ["rand-cdlm", "cdlm"]
    assert {kind: [pair.corefer for pair in pairs] for kind, pairs in analysis.pairs.items()} == {
        kind: [True] * 8 + [False] * 8 for kind in ("event", "entity")
    }


def test_a_second_run_reads_nothing(analysis: Analysis, tmp_path: Path, monkeypatch):
    first = measured_ranks(analysis, tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(
        f"{variant}-{kind}.npy" for variant in ("cdlm", "rand-cdlm") for kind in ("event", "entity")
    )

    def refused(*arguments, **named):
        raise AssertionError("a pair was read again")

    monkeypatch.setattr("cdlm_lab.experiments.answer_selection.attend_to_source", refused)
    again = measured_ranks(analysis, tmp_path)
    np.testing.assert_array_equal(again["cdlm"].of_kind["event"], first["cdlm"].of_kind["event"])


def test_the_report_holds_means_gaps_and_chance(analysis: Analysis, measured, tmp_path: Path):
    run = open_run(tmp_path / "run", name="attention analysis", parameters={"seed": 0})
    report = write_analysis_report(run, analysis, measured)
    ranks = measured["cdlm"].of_kind["entity"]  # eight that corefer, then eight that do not
    found = report.scores["cdlm/positive/entity"]
    assert found["value"] == pytest.approx(ranks[:8, 0].mean(dtype=float))
    assert found["chance"] == pytest.approx(ranks[:8, 1].mean(dtype=float))
    assert (found["n"], found["clusters"]) == (8, 2)
    assert found["low"] <= found["value"] <= found["high"]
    negative = report.scores["cdlm/negative/entity"]["value"]
    assert report.scores["cdlm/gap/entity"]["value"] == pytest.approx(found["value"] - negative)

    (row,) = [row for row in report.tables["comparisons"] if row["cell"] == "positive/entity"]
    assert (row["a"], row["b"]) == ("rand-cdlm", "cdlm")
    other = report.scores["rand-cdlm/positive/entity"]["value"]
    assert row["difference"] == pytest.approx(other - found["value"])

    row = report.tables["comparisons"][0]
    tested = {(one.system, one.metric): one.p for one in report.rows}
    assert tested["rand-cdlm", row["cell"]] == row["p_holm"]
    assert tested["cdlm", row["cell"]] is None
    assert [row[0] for row in gap_rows(report)] == ["Rand CDLM", "CDLM"]
    assert gap_rows(report)[1][2].startswith(f"{found['value'] - negative:+.1f} [")
    assert f"{found['value']:.1f}" in score_table(report).html()


def test_heads_are_those_of_their_layer(analysis: Analysis, measured):
    ranks = measured["cdlm"].of_kind["event"]
    expected = ranks[:8, 2:].mean(axis=0) - ranks[8:, 2:].mean(axis=0)
    found = head_differences(analysis, measured, "event")["cdlm"]
    assert found.shape == (2, 2)
    np.testing.assert_allclose(found, [expected[:2], expected[2:]])


def test_figures_show_every_model(analysis: Analysis, measured):
    assert "CDLM" in distribution_figure(analysis, measured).to_json()
    events, entities = head_figures(analysis, measured)
    assert "event mentions" in events.to_json()
    assert "Rand CDLM" in entities.to_json()


def test_cells_hold_the_ranks_of_their_pairs(analysis: Analysis, measured):
    cells = ranks_by_cell(analysis, measured)["cdlm"]
    assert set(cells) == {
        f"{sort}/{kind}" for sort in ("positive", "negative") for kind in ("event", "entity")
    }
    np.testing.assert_array_equal(cells["negative/event"], measured["cdlm"].of_kind["event"][8:, 0])


def test_what_it_will_cost_is_said_before(analysis: Analysis):
    facts = dict(facts_of(analysis))
    assert facts["pairs of event mentions"] == "8 that corefer, 8 that do not"
    assert facts["time"].startswith("64 readings of two documents: about ")  # 2 models, 2 kinds, 8 + 8 pairs


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": 0}, "pairs is 0; it must be at least 1"),
        ({"candidates": "tokens"}, "candidates is 'tokens'; choose one of document, words, both_documents"),
        ({"split": "validation"}, "split"),
        ({"seed": 0.5}, "seed"),
    ],
)
def test_settings_that_cannot_be(change: dict, message: str):
    with pytest.raises(ParameterError, match=message):
        replace(SETTINGS, **change)


def test_pairs_of_one_topic_are_refused_before_any_work(checkpoints: dict[str, str]):
    with pytest.raises(ParameterError, match="of event mentions that corefer are of one topic"):
        prepare_analysis(replace(SETTINGS, stories=3), checkpoints)  # three stories are a topic


@pytest.mark.parametrize(
    ("checkpoints", "message"),
    [({"cdlm": ""}, "every model is left out"), ({"cdml": "x"}, "unknown variant 'cdml'")],
)
def test_models_that_cannot_be(checkpoints: dict, message: str):
    with pytest.raises(ValueError, match=message):
        prepare_analysis(SETTINGS, checkpoints)
