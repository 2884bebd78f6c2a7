"""The attention analysis from models to report, table and figures: numbers are those of their definitions."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tagging_runs import saved

from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.encoders.encoder import load_encoder, load_language_model
from cdlm_lab.encoders.percentile_rank import candidate_mask, source_scores, target_rank
from cdlm_lab.encoders.source_attention import attend_to_source
from cdlm_lab.examples.packing import document_sequence
from cdlm_lab.examples.tokens import EncodedDocuments, from_tokenizer
from cdlm_lab.explorer import ranks as attention_analysis
from cdlm_lab.explorer import view
from cdlm_lab.explorer.aligned_pairs import sample_aligned_pairs
from cdlm_lab.explorer.ranks import FIRST_HEAD, PAPER, RANDOM_SPAN, Analysis, Settings
from cdlm_lab.parameters import ParameterError

from .conftest import SIZES


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    models = dict.fromkeys(("longformer", "local_cdlm", "prefix_cdlm"), "")
    for seed, name in enumerate(("cdlm", "rand_cdlm")):
        parts = load_language_model("tiny", max_length=300, window=8, sizes=SIZES, seed=seed)
        models[name] = saved(tmp_path_factory.mktemp(name), *parts)
    run_folder = str(tmp_path_factory.mktemp("runs") / "run")
    return Settings(run_folder=run_folder, stories=6, pairs=8, max_length=300, window=8, **models)


@pytest.fixture(scope="module")
def analysis(settings: Settings) -> Analysis:
    return attention_analysis.prepare(settings)


@pytest.fixture(scope="module")
def measured(analysis: Analysis) -> attention_analysis.Measured:
    return attention_analysis.predict(analysis)


def test_what_will_be_read(analysis: Analysis):
    assert list(analysis.settings.checkpoints) == ["rand-cdlm", "cdlm"], "paper order, without those left out"
    of_kind = {kind: [pair.corefer for pair in pairs] for kind, pairs in analysis.pairs.items()}
    assert of_kind == dict.fromkeys(("event", "entity"), [True] * 8 + [False] * 8)
    shown = view.preview(analysis).data
    assert "pairs of event mentions" in shown
    assert shown.count("8 that corefer, 8 that do not") == 2
    assert "64 readings of two documents: about " in shown  # 2 models, 2 kinds, 8 + 8 pairs


def test_a_second_run_reads_nothing(analysis: Analysis, measured, monkeypatch):
    files = {file.name for file in (analysis.opened.folder / "ranks").iterdir()}
    assert files == {f"{name}-{kind}.npy" for name in ("cdlm", "rand-cdlm") for kind in ("event", "entity")}
    monkeypatch.delattr(attention_analysis, "attend_to_source")
    again = attention_analysis.predict(analysis)
    np.testing.assert_array_equal(again["cdlm"].of_kind["event"], measured["cdlm"].of_kind["event"])


def test_the_report_holds_means_gaps_and_chance(analysis: Analysis, measured):
    of_run = attention_analysis.report(analysis, attention_analysis.evaluate(analysis, measured))
    ranks = measured["cdlm"].of_kind["entity"]  # eight that corefer, then eight that do not
    scores = {(row.system, row.metric): row for row in of_run.rows}
    positive, negative = (scores["cdlm", f"{sort}/entity"] for sort in ("positive", "negative"))
    assert positive.value == pytest.approx(ranks[:8, 0].mean(dtype=float))
    assert positive.chance == pytest.approx(ranks[:8, 1].mean(dtype=float))
    assert negative.value == pytest.approx(ranks[8:, 0].mean(dtype=float))
    assert (positive.n, positive.clusters, positive.p) == (8, 2, None)
    assert positive.low <= positive.value <= positive.high
    gap = positive.value - negative.value
    assert scores["cdlm", "gap/entity"].value == pytest.approx(gap)

    (row,) = [row for row in of_run.tables["comparisons"] if row["cell"] == "positive/entity"]
    other = scores["rand-cdlm", "positive/entity"]
    assert (row["a"], row["b"]) == ("rand-cdlm", "cdlm")
    assert row["difference"] == pytest.approx(other.value - positive.value)
    assert (other.p, other.against) == (row["p_holm"], "cdlm")

    table, gaps = view.table_view(of_run), view.gap_view(of_run).html()
    assert [row[0].text for row in table.rows] == ["Rand CDLM", "CDLM", "random span"]
    best = {
        heading.name
        for row in table.rows
        for heading, cell in zip(table.columns, row, strict=True)
        if cell.best
    }
    assert "events that corefer" in best
    assert not {"other events", "other entities"} & best, "a high rank of what does not corefer is no success"
    assert f"{positive.value:.1f}" in table.html()
    assert gaps.index("Rand CDLM") < gaps.index(">CDLM") < gaps.index(f"{gap:+.1f} [")


def test_the_gap_is_tested_against_that_of_longformer(analysis: Analysis, measured):
    named = {"longformer": measured["rand-cdlm"], "cdlm": measured["cdlm"]}
    scores = attention_analysis.evaluate(replace(analysis, opened=None), named)
    gaps = {row.system: row.value for row in scores.rows if row.metric == "gap/event"}
    (row,) = [row for row in scores.tables["comparisons"] if row["cell"] == "gap/event"]
    assert (row["a"], row["b"], row["p_holm"]) == ("cdlm", "longformer", row["p"])
    assert row["difference"] == pytest.approx(gaps["cdlm"] - gaps["longformer"])
    assert row["low"] <= row["difference"] <= row["high"]
    report = attention_analysis.report(analysis, attention_analysis.evaluate(analysis, measured))
    shown = view.gap_view(replace(report, rows=scores.rows, tables=scores.tables)).text()
    assert "above Longformer, events" in shown
    assert f"{row['difference']:+.1f} [{row['low']:+.1f}, {row['high']:+.1f}]" in shown


def test_heads_are_those_of_their_layer(analysis: Analysis, measured):
    ranks = measured["cdlm"].of_kind["event"]
    expected = ranks[:8, 2:].mean(axis=0) - ranks[8:, 2:].mean(axis=0)
    result = attention_analysis.head_differences(analysis, measured, "event")["cdlm"]
    np.testing.assert_allclose(result, [expected[:2], expected[2:]])
    assert "CDLM" in view.distribution_view(analysis, measured).to_json()
    events, entities = view.head_views(analysis, measured)
    assert "event mentions" in events.to_json()
    assert "Rand CDLM" in entities.to_json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cdlm": "", "rand_cdlm": ""}, "every model is left out"),
        ({"run_folder": "another", "stories": 3}, "of event mentions that corefer are of one topic"),
    ],
)
def test_settings_that_cannot_be(settings: Settings, tmp_path: Path, monkeypatch, change: dict, message: str):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=message):
        attention_analysis.prepare(replace(settings, **change))


# ---- ranks of targets ----


@pytest.fixture(scope="module")
def case():
    model, tokenizer = load_encoder("tiny", max_length=300, window=16, sizes=SIZES)
    topics = list(read_storyworld_topics("test", 2))
    pairs = sample_aligned_pairs(topics, "event", count=3, seed=0)
    documents = EncodedDocuments((d for topic in topics for d in topic.documents), tokenizer)
    settings = {"special": from_tokenizer(tokenizer), "max_length": 300}
    return model, pairs, documents, settings


def test_ranks_by_a_second_definition(case):
    model, pairs, documents, settings = case
    ranks = attention_analysis.target_ranks(model, pairs, documents, **settings)
    assert ranks.shape == (6, 2 + 2 * 2)
    pair = pairs[4]
    mentions = sorted((pair.source, pair.target), key=lambda mention: mention.document)
    encoded, around = [documents[one.document] for one in mentions], [one.tokens for one in mentions]
    sequence = document_sequence(encoded, special=settings["special"], max_length=300, around=around)
    source, target = (sequence.positions(mentions.index(m), m.tokens) for m in (pair.source, pair.target))
    attention = attend_to_source(model, sequence.input_ids, source=source)
    everywhere = np.arange(len(sequence.input_ids))
    at_source, at_target = np.isin(everywhere, source), np.isin(everywhere, target)
    among = candidate_mask(sequence.document, source=at_source, target=at_target)
    scores = source_scores(attention.given, attention.received)
    head = source_scores(attention.given, attention.received, layers=[0], heads=[1])
    assert ranks[4, PAPER] == pytest.approx(target_rank(scores, at_target, among))
    assert ranks[4, FIRST_HEAD + 1] == pytest.approx(target_rank(head, at_target, among))
    (places,) = np.where(sequence.document == sequence.document[target[0]])
    starts = range(len(places) - len(target) + 1)
    spans = [np.isin(everywhere, places[start : start + len(target)]) for start in starts]
    random = np.mean([target_rank(scores, span, (among | at_target) & ~span) for span in spans])
    assert ranks[4, RANDOM_SPAN] == pytest.approx(random)
