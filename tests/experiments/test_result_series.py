"""Which reports make one table, which of two is taken, and what several seeds are together."""

from pathlib import Path
from statistics import fmean, stdev

import pytest
from small_reports import SHIPPED, matching_report, perplexity_report, pretraining_report

from cdlm_lab.parameters import ParameterError
from cdlm_lab.results.reports import (
    MATCHING,
    PERPLEXITY,
    KnownRuns,
    Series,
    check_chosen,
    find_reports,
    series_of,
)

LOSSES = {"longformer": 1.5, "cdlm": 1.0}


def perplexities(folder: Path, *, choose: str = "") -> list[Series]:
    found = find_reports(folder)
    return series_of(found, KnownRuns(found), experiment=PERPLEXITY, group="", choose=choose)


def names(series: Series, system: str) -> tuple[list[str], list[str]]:
    """Of the reports that a row is from, and of those that were passed over."""
    one = series.rows[system]
    return [found.name for found in one.sources], [found.name for found in one.passed_over]


def test_runs_that_differ_in_their_seed_alone_are_one_row(tmp_path: Path):
    reports = [
        perplexity_report(tmp_path / f"s{seed}", {"longformer": 1.5, "cdlm": 1 + seed / 10}, seed=seed)
        for seed in (0, 1, 2)
    ]
    (series,) = perplexities(tmp_path)
    score = series.rows["cdlm"].row.scores["perplexity"]
    values = [report.scores["cdlm/perplexity"]["value"] for report in reports]
    assert score.value == pytest.approx(fmean(values))
    assert (score.deviation, score.seeds, score.interval) == (pytest.approx(stdev(values)), 3, None)
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


def test_other_settings_make_another_table(tmp_path: Path):
    perplexity_report(tmp_path / "a", LOSSES)
    perplexity_report(tmp_path / "b", LOSSES, max_length=1024)
    perplexity_report(tmp_path / "c", LOSSES, corpus="else/news_clusters")
    perplexity_report(tmp_path / "d", LOSSES, corpus="news_clusters")
    found = [[one.name for one in series.reports] for series in perplexities(tmp_path)]
    assert found == [["a"], ["b"], ["c", "d"]], "where the folder of a corpus lies is no setting"


def test_models_may_differ_and_rows_come_from_several_reports(tmp_path: Path):
    perplexity_report(
        tmp_path / "a", {"longformer": 1.5}, checkpoints={"longformer": "storyworld/longformer"}
    )
    perplexity_report(tmp_path / "b", {"cdlm": 1.0}, checkpoints={"cdlm": "storyworld/cdlm"})
    (series,) = perplexities(tmp_path)
    assert names(series, "longformer")[0] == ["a"]
    assert names(series, "cdlm")[0] == ["b"]


def test_a_test_against_a_row_of_another_report_is_not_shown(tmp_path: Path):
    perplexity_report(tmp_path / "a", LOSSES)
    (series,) = perplexities(tmp_path)
    assert series.rows["longformer"].row.scores["perplexity"].against == "CDLM"
    perplexity_report(tmp_path / "b", {"cdlm": 0.9}, checkpoints={"cdlm": "mine/cdlm"})
    (series,) = perplexities(tmp_path)
    assert names(series, "cdlm") == (["b"], ["a"])
    score = series.rows["longformer"].row.scores["perplexity"]
    assert (score.p, score.against) == (None, "")


def test_models_of_runs_that_differ_in_their_seed_are_one_model(tmp_path: Path):
    """Pretraining with a seed, then perplexity with the same: the folders differ, too."""
    for seed in (0, 1):
        made = tmp_path / f"pretraining-{seed}"
        pretraining_report(made, variant="cdlm", seed=seed)
        where = {"cdlm": f"{made}/model"}
        perplexity_report(tmp_path / f"p{seed}", {"cdlm": 1 + seed}, checkpoints=where, seed=seed)
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
    found = find_reports(tmp_path)
    (series,) = series_of(found, KnownRuns(found), experiment=MATCHING, group="")
    score = series.rows["bert-han"].row.scores["f1"]
    theirs = report.scores["bert-han/test/f1"]
    assert (score.value, score.seeds, score.deviation) == (theirs["value"], 2, theirs["deviation"])
    assert score.interval == (theirs["low"], theirs["high"])


def test_there_is_nothing_of_other_experiments_and_groups(tmp_path: Path):
    perplexity_report(tmp_path / "a", LOSSES, checkpoints=SHIPPED)
    found = find_reports(tmp_path)
    assert series_of(found, KnownRuns(found), experiment=MATCHING, group="") == []
    assert series_of(found, KnownRuns(found), experiment=PERPLEXITY, group="x") == []
