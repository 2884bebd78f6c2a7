"""Which reports make one table, which of them a row is from, and what several seeds are together."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import pytest
from small_reports import RESULTS, matching_report, perplexity_report

from cdlm_lab.parameters import ParameterError
from cdlm_lab.results.reports import MATCHING, PERPLEXITY, Encoder, NamedReport, find_reports
from cdlm_lab.results.series import (
    Series,
    check_chosen,
    corpus_name,
    corpus_of,
    encoder_name,
    misnamed,
    rows_of_reports,
    series_of,
    setting_of,
)
from cdlm_lab.results.series import (
    test_of as data_of,
)
from cdlm_lab.runs.report import open_run

LOSSES = {"longformer": 1.5, "cdlm": 1.0}


def found(folder: Path) -> dict[str, NamedReport]:
    return {one.name: one for one in find_reports(folder).reports}


def series_in(
    folder: Path, *, experiment: str = PERPLEXITY, choose: str = "", group: str = ""
) -> list[Series]:
    frame = rows_of_reports(find_reports(folder).reports)
    return series_of(frame, experiment=experiment, group=group, choose=choose)


def names(series: Series, system: str) -> tuple[list[str], list[str]]:
    """Of the reports that a row is from, and of those that were passed over."""
    one = series.rows[system]
    return [source.name for source in one.sources], [other.name for other in one.passed_over]


def test_runs_that_differ_in_their_seed_alone_are_one_row(tmp_path: Path):
    reports = [
        perplexity_report(tmp_path / f"s{seed}", {"longformer": 1.5, "cdlm": 1 + seed / 10}, seed=seed)
        for seed in (0, 1, 2)
    ]
    (series,) = series_in(tmp_path)
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
    (series,) = series_in(tmp_path)
    assert names(series, "cdlm") == (["second"], ["first"])
    assert series.rows["cdlm"].row.scores["perplexity"].deviation is None
    (series,) = series_in(tmp_path, choose="fir*")
    assert names(series, "cdlm") == (["first"], ["second"])
    with pytest.raises(ParameterError, match="choose names 'third'"):
        check_chosen(find_reports(tmp_path), "first third")
    assert series_in(tmp_path, experiment=MATCHING) == [], "nothing of other experiments"
    assert series_in(tmp_path, group="x") == [], "nor of other groups"


def test_other_settings_make_another_table(tmp_path: Path):
    perplexity_report(tmp_path / "a", LOSSES)
    perplexity_report(tmp_path / "b", LOSSES, max_length=1024)
    perplexity_report(tmp_path / "c", LOSSES, corpus="else/news_clusters")
    perplexity_report(tmp_path / "d", LOSSES, corpus="news_clusters", seed=3)
    tables = [[one.name for one in series.reports] for series in series_in(tmp_path)]
    assert tables == [["a"], ["b"], ["c", "d"]], "where the folder of a corpus lies is no setting, nor a seed"
    a, b, _, d = found(tmp_path).values()
    assert data_of(a) != data_of(b), "clusters of another length are other test data"
    assert '"seed"' not in setting_of(d)


def test_a_test_against_a_row_of_another_report_is_not_shown(tmp_path: Path):
    perplexity_report(tmp_path / "a", LOSSES)
    (series,) = series_in(tmp_path)
    assert series.rows["longformer"].row.scores["perplexity"].against == "CDLM"
    perplexity_report(tmp_path / "b", {"cdlm": 0.9}, checkpoints={"cdlm": "mine/cdlm"})
    (series,) = series_in(tmp_path)
    assert names(series, "cdlm") == (["b"], ["a"])
    score = series.rows["longformer"].row.scores["perplexity"]
    assert (score.p, score.against) == (None, "")


NEWS = {"variant": "cdlm", "corpus": "news_clusters", "root": "minilm", "steps": 400}


@pytest.mark.parametrize("own", [1, 0])
def test_models_that_differ_in_their_seed_are_one_model(tmp_path: Path, own: int):
    """Pretraining with a seed, then perplexity with the same or with one for all: the folders differ, too."""
    for seed in (0, 1):
        form = {"checkpoints": {"cdlm": f"runs/{seed}/model"}, "seed": seed * own}
        made = NEWS | {"seed": seed, "recipe": "a"}
        perplexity_report(tmp_path / f"p{seed}", {"cdlm": 1 + seed}, **form, made=made)
    other = NEWS | {"root": "tiny", "recipe": "b", "seed": 2}
    perplexity_report(tmp_path / "p2", {"cdlm": 5.0}, checkpoints={"cdlm": "mine"}, made=other, seed=2)
    (series,) = series_in(tmp_path, choose="p1")
    assert names(series, "cdlm") == (["p0", "p1"], ["p2"])
    assert series.rows["cdlm"].encoder == "CDLM of news, from minilm, 400 steps"
    assert [(one.encoder, one.sources[0].name) for one in series.others] == [
        ("CDLM of news, from tiny, 400 steps", "p2")
    ]
    (series,) = series_in(tmp_path)
    assert names(series, "cdlm") == (["p2"], ["p0", "p1"])


def test_seeds_of_a_run_itself_stay_as_it_has_them(tmp_path: Path):
    report = matching_report(tmp_path / "a", {"tf-idf": (0.5, 0.5), "bert-han": (0.5, 0.6)})
    (series,) = series_in(tmp_path, experiment=MATCHING)
    score = series.rows["bert-han"].row.scores["f1"]
    (theirs,) = (row for row in report.rows if row.key == ("bert-han", "test", "", "f1", None))
    assert score.seeds == 2
    assert replace(score, against="") == theirs


def test_a_folder_of_models_is_what_they_were_made_with(tmp_path: Path):
    """The parameter `encoders`: two folders of equal models are one setting, seeds apart."""
    for name, recipe in (("a", "same"), ("b", "same"), ("c", "other")):
        made = {"recipe": recipe, "seed": ord(name)}
        matching_report(tmp_path / name, {"cdlm": (0.5, 0.5)}, encoders=f"runs/{name}", made=made)
    first, second, other = map(setting_of, found(tmp_path).values())
    assert first == second != other


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        ({}, ""),
        ({"name": "runs/news/cdlm"}, "runs/news/cdlm"),
        (NEWS | {"name": "runs/x"}, "CDLM of news, from minilm, 400 steps"),
        (NEWS | {"name": "storyworld/cdlm"}, "storyworld/cdlm"),
        (
            {"name": "storyworld/cdlm", "tasks": ["claims", "answers"]},
            "storyworld/cdlm, after claims, answers",
        ),
        (NEWS | {"head": "ie_k", "corpus": "d/fever_related"}, "MSPP IE_k of FM2, from minilm, 400 steps"),
    ],
)
def test_encoders_have_names(facts: dict, shown: str):
    assert encoder_name(Encoder(**facts)) == shown


def test_the_two_recorded_generations_of_news_models_are_told_apart():
    names = {encoder_name(made) for one in found(RESULTS).values() for made in one.encoders.values()}
    assert {"CDLM of news, from minilm, 400 steps", "runs/news/cdlm"} <= names


def test_a_model_under_another_variants_name_is_told(tmp_path: Path):
    form = {"checkpoints": {"cdlm": "runs/news/longformer/model"}}
    perplexity_report(tmp_path / "a", {"cdlm": 1.0}, **form, made={"variant": "longformer"})
    perplexity_report(tmp_path / "b", {"cdlm": 1.0}, **form)
    told = {name: misnamed(one) for name, one in found(tmp_path).items()}
    assert told == {"a": "has a model of longformer for cdlm", "b": ""}


def test_corpora_have_names(tmp_path: Path):
    assert corpus_name("shared/data/ECB+_LREC2014/") == "ECB+"
    assert corpus_name("docarc/flat_litbank_full") == "LitBank"
    assert corpus_name("my/texts") == "texts"
    run = open_run(tmp_path / "al", name="sentence alignment", parameters={"matching_run": "m"})
    report = run.write_report(scores=[], data={"matching": {"corpus": "storyworld"}})
    assert corpus_of(NamedReport(name="al", report=report)) == "storyworld"
