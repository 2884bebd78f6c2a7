"""The attention analysis from models to report, table and figures: numbers are those of their definitions."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.analysis.percentile_rank import candidate_mask, source_scores, target_rank
from cdlm_lab.analysis.source_attention import attend_to_source
from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.examples.mention_pairs import sample_aligned_pairs
from cdlm_lab.examples.packing import document_sequence
from cdlm_lab.examples.tokens import EncodedDocuments, from_tokenizer
from cdlm_lab.experiments.attention_analysis import ranks as attention_analysis
from cdlm_lab.experiments.attention_analysis.ranks import (
    FIRST_HEAD,
    PAPER,
    RANDOM_SPAN,
    Analysis,
    ModelRanks,
    Settings,
    distribution_view,
    evaluate,
    facts_of,
    gap_view,
    head_differences,
    head_views,
    predict,
    prepare,
    preview,
    report,
    table_view,
    target_ranks,
)
from cdlm_lab.models.encoder import TinySizes, load_encoder, load_language_model
from cdlm_lab.parameters import ParameterError

SIZES = TinySizes(
    hidden_size=16, layers=2, heads=2, intermediate_size=16, vocabulary=300, initializer_range=0.2
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    models = dict.fromkeys(("longformer", "local_cdlm", "prefix_cdlm"), "")
    for seed, name in enumerate(("cdlm", "rand_cdlm")):
        folder = tmp_path_factory.mktemp(name)
        model, tokenizer = load_language_model("tiny", max_length=300, window=8, sizes=SIZES, seed=seed)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        models[name] = str(folder)
    run_folder = str(tmp_path_factory.mktemp("runs") / "run")
    return Settings(run_folder=run_folder, stories=6, pairs=8, max_length=300, window=8, **models)


@pytest.fixture(scope="module")
def analysis(settings: Settings) -> Analysis:
    return prepare(settings)


@pytest.fixture(scope="module")
def measured(analysis: Analysis) -> dict[str, ModelRanks]:
    return predict(analysis)


def test_models_stand_in_paper_order_and_those_left_out_are_gone(analysis: Analysis):
    assert list(analysis.settings.checkpoints) == ["rand-cdlm", "cdlm"]
    assert {kind: [pair.corefer for pair in pairs] for kind, pairs in analysis.pairs.items()} == {
        kind: [True] * 8 + [False] * 8 for kind in ("event", "entity")
    }


def test_a_second_run_reads_nothing(analysis: Analysis, measured, monkeypatch):
    assert sorted(file.name for file in (analysis.opened.folder / "ranks").iterdir()) == sorted(
        f"{variant}-{kind}.npy" for variant in ("cdlm", "rand-cdlm") for kind in ("event", "entity")
    )
    monkeypatch.delattr(attention_analysis, "attend_to_source")
    again = predict(analysis)
    np.testing.assert_array_equal(again["cdlm"].of_kind["event"], measured["cdlm"].of_kind["event"])


def test_the_report_holds_means_gaps_and_chance(analysis: Analysis, measured):
    of_run = report(analysis, evaluate(analysis, measured))
    ranks = measured["cdlm"].of_kind["entity"]  # eight that corefer, then eight that do not
    scores = {(row.system, row.metric): row for row in of_run.rows}
    positive, negative = (scores["cdlm", f"{sort}/entity"] for sort in ("positive", "negative"))
    assert positive.value == pytest.approx(ranks[:8, 0].mean(dtype=float))
    assert positive.chance == pytest.approx(ranks[:8, 1].mean(dtype=float))
    assert negative.value == pytest.approx(ranks[8:, 0].mean(dtype=float))
    assert (positive.n, positive.clusters) == (8, 2)
    assert positive.low <= positive.value <= positive.high
    assert scores["cdlm", "gap/entity"].value == pytest.approx(positive.value - negative.value)

    (row,) = [row for row in of_run.tables["comparisons"] if row["cell"] == "positive/entity"]
    assert (row["a"], row["b"]) == ("rand-cdlm", "cdlm")
    other = scores["rand-cdlm", "positive/entity"]
    assert row["difference"] == pytest.approx(other.value - positive.value)
    assert (other.p, other.against) == (row["p_holm"], "cdlm")

    assert positive.p is None
    names = [row[0].text for row in table_view(of_run).rows]
    assert names == ["Rand CDLM", "CDLM", "random span"]
    gaps = gap_view(of_run).data
    assert gaps.index("Rand CDLM") < gaps.index(">CDLM")
    assert f"{positive.value - negative.value:+.1f} [" in gaps
    assert f"{positive.value:.1f}" in table_view(of_run).html()


def test_heads_are_those_of_their_layer(analysis: Analysis, measured):
    ranks = measured["cdlm"].of_kind["event"]
    expected = ranks[:8, 2:].mean(axis=0) - ranks[8:, 2:].mean(axis=0)
    result = head_differences(analysis, measured, "event")["cdlm"]
    assert result.shape == (2, 2)
    np.testing.assert_allclose(result, [expected[:2], expected[2:]])


def test_figures_show_every_model(analysis: Analysis, measured):
    figure = distribution_view(analysis, measured)
    assert "CDLM" in figure.to_json()
    events, entities = head_views(analysis, measured)
    assert "event mentions" in events.to_json()
    assert "Rand CDLM" in entities.to_json()


def test_what_it_will_cost_is_said_before(analysis: Analysis):
    facts = dict(facts_of(analysis))
    assert facts["pairs of event mentions"] == "8 that corefer, 8 that do not"
    assert facts["time"].startswith("64 readings of two documents: about ")  # 2 models, 2 kinds, 8 + 8 pairs
    assert "8 that corefer, 8 that do not" in preview(analysis).data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": 0}, "pairs is 0; it must be at least 1"),
        ({"candidates": "tokens"}, "candidates is 'tokens'; it must be one of 'document', 'words', 'both"),
        ({"split": "validation"}, "split"),
        ({"seed": 0.5}, "seed"),
        ({"cdlm": "", "rand_cdlm": ""}, "every model is left out"),
    ],
)
def test_settings_that_cannot_be(settings: Settings, change: dict, message: str):
    with pytest.raises(ParameterError, match=message):
        replace(settings, **change)


def test_pairs_of_one_topic_are_refused_before_any_work(settings: Settings, tmp_path: Path):
    one_topic = replace(settings, run_folder=str(tmp_path / "run"), stories=3)
    with pytest.raises(ParameterError, match="of event mentions that corefer are of one topic"):
        prepare(one_topic)


# ---- ranks of targets ----


@pytest.fixture(scope="module")
def case():
    model, tokenizer = load_encoder("tiny", max_length=300, window=16, sizes=SIZES)
    topics = list(read_storyworld_topics("test", 2))
    pairs = sample_aligned_pairs(topics, "event", count=3, seed=0)
    documents = EncodedDocuments((d for topic in topics for d in topic.documents), tokenizer)
    settings = {
        "special": from_tokenizer(tokenizer),
        "max_length": 300,
        "candidates": "document",
    }
    return model, pairs, documents, settings


def test_ranks_by_a_second_definition(case):
    model, pairs, documents, settings = case
    ranks = target_ranks(model, pairs, documents, file=None, **settings)
    assert ranks.shape == (6, 2 + 2 * 2)
    pair = pairs[4]
    first, second = sorted((pair.source, pair.target), key=lambda mention: mention.document)
    sequence = document_sequence(
        [documents[first.document], documents[second.document]], special=settings["special"], max_length=300,
        around=[first.tokens, second.tokens],
    )  # fmt: skip
    number = {first.id: 0, second.id: 1}
    source = sequence.positions(number[pair.source.id], pair.source.tokens)
    target = sequence.positions(number[pair.target.id], pair.target.tokens)
    attention = attend_to_source(model, sequence.input_ids, source=source)
    masks = [np.isin(np.arange(300), positions)[: len(sequence.input_ids)] for positions in (source, target)]
    among = candidate_mask(sequence.document, source=masks[0], target=masks[1])
    paper = target_rank(source_scores(attention.given, attention.received), masks[1], among)
    head = source_scores(attention.given, attention.received, layers=[0], heads=[1])
    assert ranks[4, 0] == pytest.approx(paper)
    assert ranks[4, FIRST_HEAD + 1] == pytest.approx(target_rank(head, masks[1], among))
    length, scores = len(target), source_scores(attention.given, attention.received)
    (places,) = np.where(sequence.document == sequence.document[target[0]])
    spans = [
        np.isin(np.arange(len(masks[1])), places[i : i + length]) for i in range(len(places) - length + 1)
    ]
    random = np.mean([target_rank(scores, span, (among | masks[1]) & ~span) for span in spans])
    assert ranks[4, RANDOM_SPAN] == pytest.approx(random)


def test_punctuation_can_be_left_out(case):
    model, pairs, documents, settings = case
    words = target_ranks(model, pairs, documents, file=None, **{**settings, "candidates": "words"})
    assert (words[:, PAPER] != target_ranks(model, pairs, documents, file=None, **settings)[:, PAPER]).any()


def test_a_stopped_run_goes_on(case, tmp_path, monkeypatch):
    model, pairs, documents, settings = case
    whole = target_ranks(model, pairs, documents, file=None, **settings)
    real, seen = attention_analysis.attend_to_source, []

    def dies_in_the_third(*arguments, **named):
        seen.append(1)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return real(*arguments, **named)

    monkeypatch.setattr(attention_analysis, "attend_to_source", dies_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        target_ranks(model, pairs, documents, file=tmp_path / "m.npy", **settings)
    again = target_ranks(model, pairs, documents, file=tmp_path / "m.npy", **settings)
    np.testing.assert_array_equal(again, whole)
    assert len(seen) == 3 + 4, "what was there is not run again"
