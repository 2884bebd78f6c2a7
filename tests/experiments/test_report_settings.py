"""What the parameters of a report say about its table, its test items and its model."""

from dataclasses import replace
from pathlib import Path

from small_reports import matching_report, perplexity_report, pretraining_report

from cdlm_lab.report import open_run
from cdlm_lab.results.reports import (
    READERS,
    SETTINGS,
    FoundReport,
    FoundReports,
    KnownRuns,
    corpus_name,
    corpus_of,
    find_reports,
)


def known(folder: Path) -> tuple[KnownRuns, dict[str, FoundReport]]:
    found = find_reports(folder)
    return KnownRuns(found), {one.name: one for one in (*found.reports, *found.others)}


def test_every_experiment_of_tables_has_settings():
    assert set(SETTINGS) == set(READERS)


def test_models_are_known_by_their_runs_or_by_their_folders(tmp_path: Path):
    pretraining_report(tmp_path / "base", variant="longformer")
    pretraining_report(tmp_path / "on", variant="cdlm", model=f"{tmp_path}/base/model")
    perplexity_report(tmp_path / "p", {"cdlm": 1.0}, checkpoints={"cdlm": f"{tmp_path}/on/model"})
    runs, _ = known(tmp_path)
    assert runs.encoder_of(f"{tmp_path}/on/model") == "CDLM of storyworld, from tiny, 5,000 steps"
    assert runs.variant_of(f"{tmp_path}/on/checkpoint-10") == "cdlm"
    assert runs.variant_of("else/rand-cdlm/model") == "rand-cdlm"
    assert runs.variant_of("minilm") == ""
    assert runs.encoder_of("../runs/news/cdlm/training/checkpoint-400") == "runs/news/cdlm"
    assert runs.encoder_of("storyworld/cdlm") == "storyworld/cdlm"
    assert runs.encoder_of("") == ""


def test_a_run_of_another_notebook_hands_its_encoder_on(tmp_path: Path):
    run = open_run(tmp_path / "scorer", name="pretraining", parameters={"model": "runs/news/cdlm/model"})
    run.write_report(scores={})
    runs, _ = known(tmp_path)
    assert runs.encoder_of(f"{tmp_path}/scorer/training/checkpoint-40") == "runs/news/cdlm"
    assert runs.variant_of(f"{tmp_path}/scorer/model") == "cdlm"


def test_a_model_of_paragraphs_is_known_by_its_head_and_the_folder_of_its_runs(tmp_path: Path):
    parameters = {"head": "ie_k", "model": "minilm", "steps": 1400, "corpus": "data/fever_related"}
    open_run(tmp_path / "mspp" / "first", name="paragraph pretraining", parameters=parameters).write_report(
        scores={}
    )
    runs, _ = known(tmp_path)
    for name in ("first", "first/model", "mspp-ie"):
        assert runs.encoder_of(f"{tmp_path}/mspp/{name}") == "MSPP IE_k of FM2, from minilm, 1,400 steps"
    assert runs.encoder_of(f"{tmp_path}/mspp/mspp-ae") == f"{tmp_path}/mspp/mspp-ae"


def test_runs_that_name_each_other_end(tmp_path: Path):
    for name, other in (("a", "b"), ("b", "a")):
        run = open_run(tmp_path / name, name="pretraining", parameters={"model": f"{tmp_path / other}/model"})
        run.write_report(scores={})
    runs, _ = known(tmp_path)
    assert runs.encoder_of(f"{tmp_path}/a/model")
    assert runs.variant_of(f"{tmp_path}/a/model") == ""
    assert runs.told(f"{tmp_path}/a/model")


def test_a_model_under_another_variants_name_is_told(tmp_path: Path):
    perplexity_report(tmp_path / "a", {"cdlm": 1.0}, checkpoints={"cdlm": "runs/news/longformer/model"})
    perplexity_report(tmp_path / "b", {"cdlm": 1.0}, checkpoints={"cdlm": "my/own"})
    runs, by_name = known(tmp_path)
    assert runs.misnamed(by_name["a"]) == "has a model of longformer for cdlm"
    assert runs.misnamed(by_name["b"]) == ""


def test_a_folder_of_runs_is_what_its_runs_were_made_with(tmp_path: Path):
    """The parameter `encoders`: two folders of equal models are one setting, seeds apart."""
    for seed in (0, 1):
        pretraining_report(tmp_path / f"models{seed}" / "cdlm", variant="cdlm", seed=seed)
    pretraining_report(tmp_path / "models2" / "cdlm", variant="cdlm", model="minilm")
    runs, _ = known(tmp_path)
    told = [runs.told(f"{tmp_path}/models{number}") for number in (0, 1, 2)]
    assert told[0] == told[1] != told[2]


def test_a_folder_of_runs_that_reads_itself_is_no_more_than_its_models(tmp_path: Path):
    """A grid whose runs have their own folder as `encoders` or `mspp`: no run is told by the others."""
    pretraining_report(tmp_path / "cdlm", variant="cdlm")
    runs, _ = known(tmp_path)
    alone = runs.told(str(tmp_path))
    matching_report(tmp_path / "m", {"cdlm": (0.5, 0.5)}, encoders=str(tmp_path))
    runs, by_name = known(tmp_path)
    assert "m" in by_name
    assert runs.told(str(tmp_path)) == alone


def test_what_was_measured_on_leaves_training_out(tmp_path: Path):
    perplexity_report(tmp_path / "a", {"cdlm": 1.0}, checkpoints={"cdlm": "x"})
    perplexity_report(tmp_path / "b", {"cdlm": 1.0}, checkpoints={"cdlm": "y"}, seed=3)
    perplexity_report(tmp_path / "c", {"cdlm": 1.0}, max_length=64)
    runs, by_name = known(tmp_path)
    assert runs.test_of(by_name["a"]) == runs.test_of(by_name["b"]) != runs.test_of(by_name["c"])
    assert ("seed", "3") not in runs.setting_of(by_name["b"])


def test_a_run_from_before_dropout_of_attention_was_a_parameter_stands_with_those_that_have_what_it_had(
    tmp_path: Path,
):
    perplexity_report(tmp_path / "a", {"cdlm": 1.0})
    runs, by_name = known(tmp_path)
    before = by_name["a"]
    checkpoints, none = (
        replace(
            before,
            report=replace(before.report, parameters=before.report.parameters | {"attention_dropout": share}),
        )
        for share in ("checkpoint", 0.0)
    )
    assert runs.setting_of(before) == runs.setting_of(checkpoints) != runs.setting_of(none)


def test_corpora_have_names(tmp_path: Path):
    assert corpus_name("shared/data/ECB+_LREC2014/") == "ECB+"
    assert corpus_name("my/texts") == "texts"
    matching_report(tmp_path / "m", {"bert-han": (0.5, 0.5)})
    run = open_run(tmp_path / "al", name="sentence alignment", parameters={"matching_run": f"{tmp_path}/m"})
    report = run.write_report(scores={})
    runs = KnownRuns(
        FoundReports(folder=tmp_path, reports=find_reports(tmp_path).reports, others=(), aside=())
    )
    assert corpus_of(FoundReport(name="al", report=report), runs) == "storyworld"
