"""A run of document matching from end to end: trained once, taken up again, reported, and then aligned."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.experiments import document_matching
from cdlm_lab.experiments.document_matching import (
    PARAMETERS,
    SYSTEMS,
    MatchingCorpus,
    MatchingModels,
    MatchingRun,
    MatchingSettings,
    MatchingTraining,
    corpus_facts,
    cost_facts,
    match_documents,
    matching_table,
    prepare_matching,
    training_of,
    write_matching_report,
)
from cdlm_lab.experiments.sentence_alignment import (
    EXAMPLE,
    AlignmentSettings,
    align_sentences,
    aligned_test_pair,
    alignment_facts,
    alignment_table,
    matched_run,
    mrr_figure,
    own_pair,
    own_texts,
    write_alignment_report,
)
from cdlm_lab.models.precision import precision_told
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import Report, open_run, read_report

SMALL = MatchingSettings(
    corpus=MatchingCorpus(train_stories=6, held_out_stories=3),
    models=MatchingModels(hidden_size=6, most_sentences=8, most_words=12, max_length=192),
    training=MatchingTraining(
        systems="tf-idf bert-han bert-han-shallow gru-han cdlm",
        seeds=2,
        epochs=2,
        batch_size=4,
        encoder_epochs=1,
        encoder_batch_size=4,
        encoder_micro_batch_size=2,
    ),
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[MatchingRun, Report]:
    folder = tmp_path_factory.mktemp("matching")
    opened = open_run(folder, name="document matching", parameters={"run_folder": "x", **SMALL.parameters})
    run = prepare_matching(SMALL, folder)
    return run, write_matching_report(run, opened, match_documents(run))


def test_settings_are_made_of_the_parameters_of_the_notebook() -> None:
    assert set(PARAMETERS) == {"run_folder", *MatchingSettings().parameters}
    assert MatchingSettings.of(SMALL.parameters) == SMALL


def test_every_system_is_trained_with_every_seed_and_scored(finished) -> None:
    run, report = finished
    assert [(system.name, seed) for system, seed in run.trainings] == [
        ("tf-idf", 0),
        *((name, seed) for name in ("bert-han", "bert-han-shallow", "gru-han", "cdlm") for seed in (0, 1)),
    ]
    rows = {(row.system, row.metric): row for row in report.rows if row.split == "test"}
    assert rows["cdlm", "f1"].seeds == 2
    assert rows["tf-idf", "accuracy"].deviation is None
    assert rows["bert-han-shallow", "accuracy"].p is not None
    assert rows["gru-han", "accuracy"].p is None  # nothing that it builds on was run
    assert len(matching_table(report).rows) == 5
    of_test = [row for row in report.tables["runs"] if row["split"] == "test" and row["system"] == "cdlm"]
    assert rows["cdlm", "accuracy"].value == pytest.approx(np.mean([row["accuracy"] for row in of_test]))
    assert {row["a"]: row["b"] for row in report.tables["comparisons"]} == {"bert-han-shallow": "bert-han"}


def test_what_is_finished_is_not_trained_again(finished, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = finished
    monkeypatch.setattr(document_matching, "fine_tune", None)  # calling it would fail
    found = match_documents(run)
    assert len(found) == 9
    (run.folder_of(SYSTEMS["gru-han"], 1) / "test.npz").rename(run.folder / "aside.npz")
    with pytest.raises(TypeError):
        match_documents(run)
    (run.folder / "aside.npz").rename(run.folder_of(SYSTEMS["gru-han"], 1) / "test.npz")


def test_what_a_person_reads_before_the_start(finished) -> None:
    run, _ = finished
    facts = dict(corpus_facts(run) + cost_facts(run))
    assert facts["precision of training"] == precision_told("auto")
    assert facts["train"].startswith("12 pairs, 50% related")
    assert "updates with 4 pairs: 6, about" in facts["GRU-HAN"]
    assert "times seeds: 2" in facts["CDLM"]
    assert "TF-IDF cosine" not in facts
    lost = replace(run, lost={"not read": ["a.xml: no sentences", "b.xml: a link, or no file"]})
    told = "2: a.xml: no sentences, b.xml: a link, or no file"
    assert dict(corpus_facts(lost))["not read"] == told


def test_encoders_that_are_trained_have_settings_of_their_own() -> None:
    assert training_of(SMALL, SYSTEMS["gru-han"], seed=3, pairs=10).steps == 4
    tuned = training_of(SMALL, SYSTEMS["bert-han-finetuned"], seed=0, pairs=12)
    assert (tuned.steps, tuned.micro_batch_size, tuned.learning_rate) == (3, 2, 0.0005)
    frozen = training_of(SMALL, SYSTEMS["bert-han"], seed=0, pairs=12)
    assert (frozen.steps, frozen.micro_batch_size, frozen.learning_rate) == (6, 4, 0.002)


def test_the_learning_rate_falls_from_the_first_update_unless_told_otherwise() -> None:
    assert training_of(SMALL, SYSTEMS["cdlm"], seed=0, pairs=80).warmup_steps == 0
    warm = replace(SMALL, training=replace(SMALL.training, warmup_share=0.1))
    config = training_of(warm, SYSTEMS["cdlm"], seed=0, pairs=80)
    assert (config.steps, config.warmup_steps) == (20, 2)
    later = ("warmup_share", "parallel", "workers")
    before = {name: value for name, value in SMALL.parameters.items() if name not in later}
    assert MatchingSettings.of(before) == warm


def test_values_that_cannot_be() -> None:
    with pytest.raises(ParameterError, match=r"warmup_share is 0\.6"):
        MatchingTraining(warmup_share=0.6)
    with pytest.raises(ParameterError, match="seeds is 0"):
        MatchingTraining(seeds=0)
    with pytest.raises(ParameterError, match="systems names 'bert'"):
        MatchingTraining(systems="bert")
    uneven = replace(SMALL, training=replace(SMALL.training, encoder_micro_batch_size=3))
    with pytest.raises(ParameterError, match=r"batch_size \(4\) must be a multiple"):
        prepare_matching(uneven, Path("unused"))


# ---- notebook 05 on the same run


def test_by_how_many_a_run_was_made_does_not_matter_where_it_is_read(finished, tmp_path: Path) -> None:
    run, _ = finished
    report = json.loads((run.folder / "report.json").read_text())
    del report["parameters"]["workers"]  # as of a run of before
    report["parameters"]["parallel"] = "ddp 3"  # which the batches cannot be shared by
    (tmp_path / "report.json").write_text(json.dumps(report))
    assert matched_run(tmp_path, matching_run=str(tmp_path), systems="").settings == SMALL


def test_runs_of_before_had_the_dropout_of_their_checkpoints() -> None:
    before = {name: SMALL.parameters[name] for name in SMALL.parameters.keys() - {"attention_dropout"}}
    assert MatchingSettings.of(before).models.attention_dropout == "checkpoint"
    del before["precision"]
    assert MatchingSettings.of(before).training.precision == "auto"


def test_a_run_of_its_own_trains_in_the_precision_that_is_asked_for(tmp_path: Path) -> None:
    run = matched_run(tmp_path, matching_run="", systems="gru-han", precision="float32")
    assert run.settings.training.precision == "float32"
    told = dict(alignment_facts(run))
    assert (told["trained first"], told["precision of training"]) == ("GRU-HAN, seed 0", "float32")


@pytest.fixture(scope="module")
def aligned(finished, tmp_path_factory: pytest.TempPathFactory):
    run, _ = finished
    folder = tmp_path_factory.mktemp("alignment")
    opened = open_run(folder, name="sentence alignment", parameters={})
    read = matched_run(folder, matching_run=str(run.folder), systems="")
    settings = AlignmentSettings()
    found = align_sentences(read, settings, folder)
    return read, found, folder, write_alignment_report(opened, found, settings)


def test_a_finished_run_is_read_with_its_own_settings(finished, aligned) -> None:
    assert aligned[0].settings == finished[0].settings
    assert aligned[0].pairs == finished[0].pairs
    assert dict(alignment_facts(aligned[0])).keys() == {"pairs", "systems"}  # nothing is trained


def test_every_system_ranks_the_sentences_of_every_pair_with_true_ones(aligned) -> None:
    _, found, _, report = aligned
    assert all(pair.related and pair.aligned for pair in found.pairs)
    assert {key[:2] for key in found.scores} == {
        ("tf-idf", "cosine"),
        *(
            (name, by)
            for name in ("bert-han", "bert-han-shallow", "gru-han")
            for by in ("attention", "cosine")
        ),
        ("cdlm", "global attention"),
        ("cdlm", "encodings"),
    }
    for key in found.scores:
        lists = found.lists(key)
        assert [len(one.scores) for one in lists] == [len(pair.first.sentences) for pair in found.pairs]
        assert [np.flatnonzero(one.relevant).tolist() for one in lists] == [
            list(pair.aligned) for pair in found.pairs
        ]
    rows = [row[0].text for row in alignment_table(report, "joint").rows]
    assert len(rows) == 9
    for setting in ("oracle", "released"):
        assert [row[0].text for row in alignment_table(report, setting).rows] == ["Random", *rows]
    assert mrr_figure(report).data


def test_joint_scores_are_those_of_the_pairs_that_were_found(aligned) -> None:
    _, found, _, report = aligned
    values = {(row.system, row.group): row.value for row in report.rows if row.metric == "mrr"}
    for (ranked_by, group), joint in values.items():
        if group == "joint":
            name, _, by = ranked_by.partition("/")
            oracle = values[ranked_by, "oracle"]
            kept = [found.found[name, seed] for *key, seed in found.scores if key == [name, by]]
            if all(one.all() for one in kept):
                assert joint == pytest.approx(oracle)
            if not any(one.any() for one in kept):
                assert joint == 0
            assert joint <= oracle + 1e-12


def test_released_scores_count_the_unrelated_test_pairs_too(aligned) -> None:
    run, found, _, report = aligned
    assert found.unrelated == [pair for pair in run.pairs["test"] if not pair.related]
    released = report.scores["tf-idf/cosine/released/at_1"]["value"]
    joint = report.scores["tf-idf/cosine/joint/at_1"]["value"] * len(found.pairs)
    pairs = len(found.pairs) + len(found.unrelated)
    assert released == pytest.approx((joint + found.refused["tf-idf", 0].sum()) / pairs)


def test_alignments_of_the_longformers_are_kept(aligned, monkeypatch: pytest.MonkeyPatch) -> None:
    run, found, folder, _ = aligned
    monkeypatch.setattr(MatchingRun, "matcher", None)  # loading a model would fail
    again = align_sentences(run, AlignmentSettings(), folder)
    for key, scores in found.scores.items():
        for one, same in zip(scores, again.scores[key], strict=True):
            np.testing.assert_array_equal(one, same)


def test_the_picture_of_a_pair_has_a_column_for_every_system(aligned) -> None:
    run, found, *_ = aligned
    html = aligned_test_pair(run, found, name="")
    assert all(system.label.replace("+", "+") in html for system in run.settings.systems)
    assert "the true sentence" in html
    assert aligned_test_pair(run, found, name=found.pairs[1].id).count("<tr") > 3
    with pytest.raises(ParameterError, match="shown_pair is 'none such'"):
        aligned_test_pair(run, found, name="none such")


def test_two_documents_of_ones_own(aligned, tmp_path: Path) -> None:
    run, *_ = aligned
    compare = own_pair(run, AlignmentSettings(), folder=tmp_path)
    html = compare(*EXAMPLE)
    assert html.count("related: ") == len(run.settings.systems)
    assert "A gas blast killed 14 miners" in html
    assert html in (tmp_path / "own_pair.html").read_text(encoding="utf-8")
    hostile = compare("<script>alert(1)</script> fell.", "It fell.")
    assert "<script>" not in hostile
    with pytest.raises(ParameterError, match="the second document is empty"):
        compare("One.", " \n")


def test_own_documents_come_from_two_files_or_none(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One.")
    assert own_texts("", "") == EXAMPLE
    assert own_texts(str(tmp_path / "a.txt"), str(tmp_path / "a.txt")) == ("One.", "One.")
    with pytest.raises(ParameterError, match='second_document is ""'):
        own_texts(str(tmp_path / "a.txt"), "")


def test_runs_that_cannot_be_read(finished, tmp_path: Path) -> None:
    run, _ = finished
    with pytest.raises(ParameterError, match="where no finished run of notebook 04 is"):
        matched_run(tmp_path, matching_run=str(tmp_path), systems="")
    with pytest.raises(ParameterError, match="systems names gru-han-deep, which"):
        matched_run(tmp_path, matching_run=str(run.folder), systems="gru-han-deep tf-idf")
    opened = open_run(tmp_path / "other", name="coreference", parameters={"seed": 1})
    opened.write_report(scores={"x": 1.0})
    assert read_report(tmp_path / "other").name == "coreference"
    with pytest.raises(ParameterError, match="a run of 'coreference' without 'corpus'"):
        matched_run(tmp_path, matching_run=str(tmp_path / "other"), systems="")
    with pytest.raises(ParameterError, match="source is 'second token'"):
        AlignmentSettings(source="second token")
