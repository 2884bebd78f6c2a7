"""What parameters say of each other, which reports make one table, and what several seeds are together."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import pytest
from small_reports import RESULTS, matching_report, perplexity_report, pretraining_report

from cdlm_lab.parameters import ParameterError
from cdlm_lab.results.reports import MATCHING, PERPLEXITY, NamedReport, find_reports
from cdlm_lab.results.series import KnownRuns, Series, check_chosen, corpus_name, series_of
from cdlm_lab.runs.report import Report, open_run

LOSSES = {"longformer": 1.5, "cdlm": 1.0}


def known(folder: Path) -> tuple[KnownRuns, dict[str, NamedReport]]:
    reports = find_reports(folder)
    return KnownRuns(reports), {one.name: one for one in (*reports.reports, *reports.others)}


def perplexities(folder: Path, *, choose: str = "") -> list[Series]:
    return series_of(known(folder)[0], experiment=PERPLEXITY, group="", choose=choose)


def names(series: Series, system: str) -> tuple[list[str], list[str]]:
    """Of the reports that a row is from, and of those that were passed over."""
    one = series.rows[system]
    return [source.name for source in one.sources], [other.name for other in one.passed_over]


def test_runs_that_differ_in_their_seed_alone_are_one_row(tmp_path: Path):
    reports = [
        perplexity_report(tmp_path / f"s{seed}", {"longformer": 1.5, "cdlm": 1 + seed / 10}, seed=seed)
        for seed in (0, 1, 2)
    ]
    (series,) = perplexities(tmp_path)
    score = series.rows["cdlm"].row.scores["perplexity"]
    rows = [row for report in reports for row in report.rows]
    values = [row.value for row in rows if (row.system, row.metric) == ("cdlm", "perplexity")]
    assert score.value == pytest.approx(fmean(values))
    assert (score.deviation, score.seeds, score.low) == (pytest.approx(stdev(values)), 3, None)
    assert names(series, "cdlm") == (["s0", "s1", "s2"], [])
    tested = series.rows["longformer"].row.scores["perplexity"]
    every = [report.tables["comparisons"][0]["p_holm"] for report in reports]
    assert (tested.p, tested.against) == (max(every), "CDLM")


def test_of_two_runs_that_are_alike_the_newest_is_taken_or_the_chosen_one(tmp_path: Path):
    for name in ("first", "second"):
        perplexity_report(tmp_path / name, LOSSES)
    (series,) = perplexities(tmp_path)
    assert names(series, "cdlm") == (["second"], ["first"])
    assert series.rows["cdlm"].row.scores["perplexity"].deviation is None
    (series,) = perplexities(tmp_path, choose="fir*")
    assert names(series, "cdlm") == (["first"], ["second"])
    with pytest.raises(ParameterError, match="choose names 'third'"):
        check_chosen(find_reports(tmp_path), "first third")
    runs, _ = known(tmp_path)
    assert series_of(runs, experiment=MATCHING, group="") == [], "nothing of other experiments"
    assert series_of(runs, experiment=PERPLEXITY, group="x") == [], "nor of other groups"


def test_other_settings_make_another_table(tmp_path: Path):
    perplexity_report(tmp_path / "a", LOSSES)
    perplexity_report(tmp_path / "b", LOSSES, max_length=1024)
    perplexity_report(tmp_path / "c", LOSSES, corpus="else/news_clusters")
    perplexity_report(tmp_path / "d", LOSSES, corpus="news_clusters")
    found = [[one.name for one in series.reports] for series in perplexities(tmp_path)]
    assert found == [["a"], ["b"], ["c", "d"]], "where the folder of a corpus lies is no setting"


def test_models_may_differ_and_rows_come_from_several_reports(tmp_path: Path):
    for name, system in (("a", "longformer"), ("b", "cdlm")):
        perplexity_report(tmp_path / name, {system: 1.5}, checkpoints={system: f"storyworld/{system}"})
    (series,) = perplexities(tmp_path)
    assert (names(series, "longformer")[0], names(series, "cdlm")[0]) == (["a"], ["b"])


def test_a_test_against_a_row_of_another_report_is_not_shown(tmp_path: Path):
    perplexity_report(tmp_path / "a", LOSSES)
    (series,) = perplexities(tmp_path)
    assert series.rows["longformer"].row.scores["perplexity"].against == "CDLM"
    perplexity_report(tmp_path / "b", {"cdlm": 0.9}, checkpoints={"cdlm": "mine/cdlm"})
    (series,) = perplexities(tmp_path)
    assert names(series, "cdlm") == (["b"], ["a"])
    score = series.rows["longformer"].row.scores["perplexity"]
    assert (score.p, score.against) == (None, "")


@pytest.mark.parametrize("own", [1, 0])
def test_models_of_runs_that_differ_in_their_seed_are_one_model(tmp_path: Path, own: int):
    """Pretraining with a seed, then perplexity with the same or with one for all: the folders differ, too."""
    for seed in (0, 1):
        made = tmp_path / f"pretraining-{seed}"
        pretraining_report(made, variant="cdlm", seed=seed)
        where = {"cdlm": f"{made}/model"}
        perplexity_report(tmp_path / f"p{seed}", {"cdlm": 1 + seed}, checkpoints=where, seed=seed * own)
    other = tmp_path / "other"
    pretraining_report(other, variant="cdlm", model="minilm")
    perplexity_report(tmp_path / "p2", {"cdlm": 5.0}, checkpoints={"cdlm": f"{other}/model"}, seed=2)
    (series,) = perplexities(tmp_path, choose="p1")
    assert names(series, "cdlm") == (["p0", "p1"], ["p2"])
    assert series.rows["cdlm"].encoder == "CDLM of storyworld, from tiny, 5,000 steps"
    (series,) = perplexities(tmp_path)
    assert names(series, "cdlm") == (["p2"], ["p0", "p1"])


def test_seeds_of_a_run_itself_stay_as_it_has_them(tmp_path: Path):
    report = matching_report(tmp_path / "a", {"tf-idf": (0.5, 0.5), "bert-han": (0.5, 0.6)})
    (series,) = series_of(known(tmp_path)[0], experiment=MATCHING, group="")
    score = series.rows["bert-han"].row.scores["f1"]
    (theirs,) = (row for row in report.rows if row.key == ("bert-han", "test", "", "f1", None))
    assert score.seeds == 2
    assert replace(score, against="") == theirs


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


def finish(folder: Path, name: str, **parameters: object) -> Report:
    return open_run(folder, name=name, parameters=parameters).write_report(scores=[])


def test_a_run_of_another_notebook_hands_its_encoder_on(tmp_path: Path):
    finish(tmp_path / "scorer", "pretraining", model="runs/news/cdlm/model")
    runs, _ = known(tmp_path)
    handed_on = runs.encoder_of(f"{tmp_path}/scorer/training/checkpoint-40")
    assert handed_on == "runs/news/cdlm, after language modelling"
    assert runs.variant_of(f"{tmp_path}/scorer/model") == "cdlm"


def test_a_model_of_paragraphs_is_known_by_its_head_and_the_folder_of_its_runs(tmp_path: Path):
    parameters = {"head": "ie_k", "model": "minilm", "steps": 1400, "corpus": "data/fever_related"}
    finish(tmp_path / "mspp" / "first", "paragraph pretraining", **parameters)
    runs, _ = known(tmp_path)
    for name in ("first", "first/model", "mspp-ie"):
        assert runs.encoder_of(f"{tmp_path}/mspp/{name}") == "MSPP IE_k of FM2, from minilm, 1,400 steps"
    assert runs.encoder_of(f"{tmp_path}/mspp/mspp-ae") == f"{tmp_path}/mspp/mspp-ae"
    on = {"head": "ie_k", "model": f"{tmp_path}/mspp/first/model", "steps": 9, "corpus": "scisumm"}
    finish(tmp_path / "mspp" / "a second", "paragraph pretraining", **on)
    runs, _ = known(tmp_path)
    assert runs.encoder_of(f"{tmp_path}/mspp/mspp-ie") == "MSPP IE_k of SciSumm, from minilm, 9 steps"


def test_the_two_recorded_generations_of_news_models_are_told_apart():
    runs, _ = known(RESULTS)
    assert runs.encoder_of("runs/news_512/cdlm/model") == "CDLM of news, from minilm, 400 steps"
    assert runs.encoder_of("runs/news/cdlm/model") == "runs/news/cdlm", "no report of it is recorded"


def test_runs_that_name_each_other_end(tmp_path: Path):
    for name, other in (("a", "b"), ("b", "a")):
        finish(tmp_path / name, "pretraining", model=f"{tmp_path / other}/model")
    runs, _ = known(tmp_path)
    assert runs.encoder_of(f"{tmp_path}/a/model")
    assert runs.variant_of(f"{tmp_path}/a/model") == ""
    assert runs.comparable(f"{tmp_path}/a/model")


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
    told = [runs.comparable(f"{tmp_path}/models{number}") for number in (0, 1, 2)]
    assert told[0] == told[1] != told[2]


def test_a_folder_of_runs_that_reads_itself_is_no_more_than_its_models(tmp_path: Path):
    """A grid whose runs have their own folder as `encoders` or `mspp`: no run is told by the others."""
    pretraining_report(tmp_path / "cdlm", variant="cdlm")
    runs, _ = known(tmp_path)
    alone = runs.comparable(str(tmp_path))
    matching_report(tmp_path / "m", {"cdlm": (0.5, 0.5)}, encoders=str(tmp_path))
    runs, by_name = known(tmp_path)
    assert "m" in by_name
    assert runs.comparable(str(tmp_path)) == alone


def test_what_was_measured_on_leaves_training_out(tmp_path: Path):
    perplexity_report(tmp_path / "a", {"cdlm": 1.0}, checkpoints={"cdlm": "x"})
    perplexity_report(tmp_path / "b", {"cdlm": 1.0}, checkpoints={"cdlm": "y"}, seed=3)
    perplexity_report(tmp_path / "c", {"cdlm": 1.0}, max_length=64)
    runs, by_name = known(tmp_path)
    assert runs.test_of(by_name["a"]) == runs.test_of(by_name["b"]) != runs.test_of(by_name["c"])
    assert ("seed", "3") not in runs.setting_of(by_name["b"])


def test_corpora_have_names(tmp_path: Path):
    assert corpus_name("shared/data/ECB+_LREC2014/") == "ECB+"
    assert corpus_name("docarc/flat_litbank_full") == "LitBank"
    assert corpus_name("my/texts") == "texts"
    matching_report(tmp_path / "m", {"bert-han": (0.5, 0.5)})
    report = finish(tmp_path / "al", "sentence alignment", matching_run=f"{tmp_path}/m")
    runs, _ = known(tmp_path)
    assert runs.corpus_of(NamedReport(name="al", report=report)) == "storyworld"
