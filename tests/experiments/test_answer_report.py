"""Scores, report and views of notebook 09 on rankings written by hand: all numbers can be worked out from
them."""

import itertools
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_ind

from cdlm_lab.data.candidates import counts_of
from cdlm_lab.data.records import CandidateSet
from cdlm_lab.examples.candidates import fixed_order
from cdlm_lab.experiments import answer_selection
from cdlm_lab.experiments.answer_selection import AnswerRun, AnswerSplit, Settings, answers_table, ranked
from cdlm_lab.experiments.systems import ranking
from cdlm_lab.experiments.systems.ranking import AnswerPredictions, expected_ratios, timed_sets
from cdlm_lab.experiments.views.candidates import read_rankings, row_label
from cdlm_lab.models.precision import precision_told
from cdlm_lab.report import Report, open_run, read_report
from cdlm_lab.widgets.rankings import Latency

NAN = float("nan")
# Two stories: the first asks two questions, the second one. The right candidate is the first.
IDS = ("storyworld-x-1-c0", "storyworld-x-1-c1", "storyworld-x-2-c0")
SETS = tuple(
    CandidateSet(
        id=name, question="Who?", candidates=("right", "wrong", "other"), correct=(True, False, False)
    )
    for name in IDS
)
SYSTEMS = "pairwise joint-ie mspp-ie"


def placed(place: int) -> np.ndarray:
    """Scores that put the right candidate at a place, from 1."""
    return np.array([2.5 - place, 1.0, 0.0])


# (system, seed) -> place of the right candidate of each question by all candidates; then, of the two that
# pairwise ranks highest, which a joint system has read: scores of right, wrong, other.
PLACES = {
    ("pairwise", 0): (1, 2, 3),
    ("pairwise", 1): (1, 1, 2),
    ("joint-ie", 0): (3, 3, 3),
    ("joint-ie", 1): (2, 3, 3),
    ("mspp-ie", 0): (1, 1, 2),
    ("mspp-ie", 1): (1, 1, 1),
}
BEST = {
    ("joint-ie", 0): ((0.0, 1.0, NAN), (0.0, 1.0, NAN), (NAN, 1.0, 0.0)),
    ("joint-ie", 1): ((0.0, 1.0, NAN), (1.0, 0.0, NAN), (0.0, 1.0, NAN)),
    ("mspp-ie", 0): ((1.0, 0.0, NAN), (1.0, 0.0, NAN), (NAN, 1.0, 0.0)),
    ("mspp-ie", 1): ((1.0, 0.0, NAN), (1.0, 0.0, NAN), (1.0, 0.0, NAN)),
}


def run_and_predictions(folder: Path, *, seeds: int = 2):
    """A run of these questions and rankings; of dev every system puts the right candidate second."""
    split = AnswerSplit(sets=SETS, read=counts_of(SETS), corpus="storyworld", checksum="")
    settings = Settings(run_folder=str(folder), systems=SYSTEMS, candidates=2, mspp="given", seeds=seeds)
    run = AnswerRun(
        settings=settings,
        splits=dict.fromkeys(("train", "dev", "test"), split),
        opened=open_run(folder, name=AnswerRun.NAME, parameters=asdict(settings)),
    )
    second = AnswerPredictions(sets=SETS, scores=[placed(2)] * 3)
    predictions = {}
    for key, places in PLACES.items():
        if key[1] < seeds:
            predictions[key] = {
                "dev": second,
                "test": AnswerPredictions(sets=SETS, scores=list(map(placed, places))),
            }
        if key[1] < seeds and key in BEST:
            best = AnswerPredictions(sets=SETS, scores=list(map(np.array, BEST[key])))
            predictions[key] |= {"dev_reranked": second, "test_reranked": best}
    return run, predictions


LATENCIES = [
    Latency(system=name, seconds=seconds, fastest=seconds / 2, slowest=2 * seconds, runs=3)
    for name, seconds in (("pairwise", 0.02), ("joint IE_k", 0.03), ("MSPP IE_k", 0.025))
]


def report_of(run: AnswerRun, predictions) -> Report:
    scores = answer_selection.evaluate(run, predictions, latencies=LATENCIES)
    return answer_selection.report(run, scores)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory):
    return run_and_predictions(tmp_path_factory.mktemp("answers") / "run")


@pytest.fixture(scope="module")
def report(given) -> Report:
    run, predictions = given
    report_of(run, predictions)
    return read_report(run.folder)


def test_scores_are_means_over_seeds_with_intervals_over_stories(report: Report):
    scores = report.scores
    of_pairwise = scores["pairwise/all/test/p_at_1"]
    assert of_pairwise["value"] == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert of_pairwise["deviation"] == pytest.approx(np.std([1 / 3, 2 / 3], ddof=1))
    # the first story has 1 + 1/2 in two questions, the second 0 in one
    assert (of_pairwise["low"], of_pairwise["high"], of_pairwise["seeds"]) == (0, 3 / 4, 2)
    assert scores["pairwise/all/test/mrr"]["value"] == pytest.approx(
        ((1 + 1 / 2 + 1 / 3) / 3 + (1 + 1 + 1 / 2) / 3) / 2
    )
    assert scores["mspp-ie/all/test/map"]["value"] == pytest.approx(((1 + 1 + 1 / 2) / 3 + 1) / 2)
    assert scores["joint-ie/all/dev/map"]["value"] == 1 / 2


def test_the_best_of_pairwise_are_ranked_above_the_others(report: Report):
    scores = report.scores
    # seed 0: second, second, third; seed 1: second, first, second
    assert scores["joint-ie/reranked/test/mrr"]["value"] == pytest.approx(
        ((1 / 2 + 1 / 2 + 1 / 3) / 3 + (1 / 2 + 1 + 1 / 2) / 3) / 2
    )
    # what pairwise leaves out of its best two cannot be first: third with seed 0
    assert scores["mspp-ie/reranked/test/p_at_1"]["value"] == pytest.approx((2 / 3 + 1) / 2)
    assert "pairwise/reranked/test/map" not in scores


def test_a_random_order_of_three_has_its_expectation(report: Report):
    scores = report.scores
    assert scores["random/all/test/p_at_1"] == {"value": pytest.approx(1 / 3)}
    assert scores["random/all/dev/mrr"]["value"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def test_every_training_has_a_row(report: Report):
    rows = {(row.system, row.group, row.split, row.metric, row.seed): row for row in report.rows}
    of_seeds = [row for row in report.rows if row.seed is not None]
    assert len(of_seeds) == (1 + 2 * 2) * 2 * 2 * 3
    assert rows["pairwise", "all", "test", "p_at_1", 1].value == pytest.approx(2 / 3)
    expected = pytest.approx((1 / 2 + 1 / 2 + 1 / 3) / 3)
    assert rows["joint-ie", "reranked", "test", "mrr", 0].value == expected


def test_systems_are_tested_against_pairwise_and_with_mspp_against_without(report: Report):
    rows = {(row["a"], row["b"], row["group"], row["measure"]): row for row in report.tables["comparisons"]}
    pairs = [("joint-ie", "pairwise"), ("mspp-ie", "pairwise"), ("mspp-ie", "joint-ie")]
    assert {key[:2] for key in rows} == set(pairs)
    assert len(rows) == 3 * 2 * 3
    p_at_1 = rows["mspp-ie", "pairwise", "all", "p_at_1"]
    assert p_at_1["difference"] == pytest.approx((2 / 3 + 1) / 2 - 1 / 2)
    assert p_at_1["clusters"] == 2
    reranked = rows["mspp-ie", "joint-ie", "reranked", "mrr"]
    sides = [[(1 + 1 + 1 / 3) / 3, 1.0], [(1 / 2 + 1 / 2 + 1 / 3) / 3, (1 / 2 + 1 + 1 / 2) / 3]]
    assert reranked["difference"] == pytest.approx(np.mean(sides[0]) - np.mean(sides[1]))
    assert reranked["p_seeds"] == pytest.approx(ttest_ind(*sides, equal_var=False).pvalue)
    row = rows["mspp-ie", "pairwise", "all", "mrr"]
    sides = [[(1 + 1 + 1 / 2) / 3, 1.0], [(1 + 1 / 2 + 1 / 3) / 3, (1 + 1 + 1 / 2) / 3]]
    assert row["p_seeds"] == pytest.approx(ttest_ind(*sides, equal_var=False).pvalue)


def test_p_values_are_corrected_for_the_systems_tested_with_one_measure(report: Report):
    rows = [row for row in report.tables["comparisons"] if row["group"] == "all" and row["measure"] == "map"]
    against, alone = rows[:2], rows[2]
    lower, upper = sorted(row["p"] for row in against)
    held = {row["p"]: row["p_holm"] for row in against}
    assert held[lower] == pytest.approx(min(1.0, 2 * lower))
    assert held[upper] == pytest.approx(max(min(1.0, 2 * lower), upper))
    assert alone["b"] == "joint-ie"
    assert alone["p_holm"] == alone["p"], "one test of MSPP"


def test_one_seed_has_no_deviation_and_no_t_test(tmp_path: Path):
    report = report_of(*run_and_predictions(tmp_path, seeds=1))
    assert report.scores["mspp-ie/all/test/map"]["deviation"] is None
    assert {row["p_seeds"] for row in report.tables["comparisons"]} == {None}


def test_what_ranks_the_candidates(given):
    _, predictions = given
    assert ranked(predictions, "joint-ie", 0, "test") is predictions["joint-ie", 0]["test"]
    assert ranked(predictions, "pairwise", 0, "test", "reranked") is predictions["pairwise", 0]["test"]
    first = ranked(predictions, "joint-ie", 0, "test", "reranked").scores[0]
    assert np.argsort(-first).tolist() == [1, 0, 2]


def test_what_was_not_read_stands_in_the_order_of_pairwise_with_the_same_seed(given):
    _, predictions = given
    best = AnswerPredictions(sets=SETS, scores=[np.array([NAN, NAN, -1.0])] * 3)
    orders = []
    for seed in (0, 1):
        again = predictions | {("joint-ie", seed): predictions["joint-ie", seed] | {"test_reranked": best}}
        scores = ranked(again, "joint-ie", seed, "test", "reranked").scores[1]
        orders.append(np.argsort(-scores).tolist())
    assert orders == [[2, 1, 0], [2, 0, 1]], "pairwise has it second, then first"


def test_labels_of_rows():
    assert row_label("mspp-ae", "all", k=5) == "MSPP AE_k"
    assert row_label("random", "all", k=5) == "random order"
    assert row_label("joint-ie", "reranked", k=4) == "joint IE_k on pairwise's top 4"


def cells(html: str) -> list[list[str]]:
    """The texts of the cells of a table, row by row."""
    rows = re.findall(r"<tr.*?</tr>", html, flags=re.DOTALL)
    texts = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, flags=re.DOTALL) for row in rows]
    return [[re.sub(r"<[^>]+>", " ", cell).strip() for cell in row] for row in texts]


def test_scores_data_and_tables_are_in_the_report(report: Report):
    assert report.scores["mspp-ie/reranked/test/p_at_1"]["value"] == pytest.approx(5 / 6)
    assert report.data["clusters"] == {"train": 2, "dev": 2, "test": 2}
    assert report.data["candidates"]["test"] == 9
    assert report.data["precision"] == precision_told("auto")
    assert report.data["format"]["test"] == "storyworld"
    assert set(report.tables) == {"comparisons", "diagnosis", "latency"}
    of_runs = {
        (row.system, row.seed): row.value
        for row in report.rows
        if (row.group, row.split, row.metric) == ("all", "test", "map")
        and row.seed is not None
        and row.system != "pairwise"
    }
    diagnosed = {(row["system"], row["seed"]): row["map"] for row in report.tables["diagnosis"]}
    assert diagnosed == pytest.approx(of_runs)


def test_the_table_of_all_candidates(report: Report):
    header, *rows = cells(answers_table(report).html())
    assert [row[0] for row in rows] == ["pairwise", "joint IE_k", "MSPP IE_k", "random order"]
    by_name = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert by_name["pairwise"]["P@1"].startswith("50.0")
    assert by_name["MSPP IE_k"]["MAP"].startswith("91.7")
    assert by_name["random order"]["P@1"] == "33.3"
    assert by_name["MSPP IE_k"]["seeds"] == "2"
    p = next(
        row["p_holm"]
        for row in report.tables["comparisons"]
        if (row["a"], row["b"], row["measure"], row["group"]) == ("mspp-ie", "pairwise", "mrr", "all")
    )
    assert f"p = {p:.3f}" in by_name["MSPP IE_k"]["MRR"]
    assert "p " not in by_name["pairwise"]["MRR"]


def test_the_table_of_what_was_ranked_anew(report: Report):
    _, *rows = cells(answers_table(report, ranking="reranked").html())
    assert [row[0].replace("&#x27;", "'") for row in rows] == [
        "pairwise",
        "joint IE_k on pairwise's top 2",
        "MSPP IE_k on pairwise's top 2",
        "random order",
    ]
    assert rows[2][1].startswith("83.3")


def test_dev_has_no_tests_and_no_published_numbers(report: Report):
    html = answers_table(report, split="dev").html()
    assert "p = " not in html
    assert "storyworld, dev" in html
    assert "paper" not in html
    _, *rows = cells(answers_table(report).html())
    assert rows[0][-1].startswith("87.9"), "pairwise RoBERTa on TREC-QA, P@1 of Table 1"
    _, *rows = cells(answers_table(report, ranking="reranked").html())
    assert "93.5" in rows[2][-1], "Table 7"


def test_rows_of_the_tests(report: Report):
    header, *rows = cells(answer_selection.comparisons(report).data)
    assert header == ["all candidates", "against", "P@1", "MAP", "MRR"]
    assert [row[:2] for row in rows] == [
        ["joint IE_k", "pairwise"],
        ["MSPP IE_k", "pairwise"],
        ["MSPP IE_k", "joint IE_k"],
    ]
    assert rows[1][2].startswith("+33.3 [")
    assert "over seeds" in rows[1][2]
    assert "over seeds" in rows[1][4]
    header, *again = cells(answer_selection.comparisons(report, ranking="reranked").data)
    assert header[0] == "ranked anew"
    assert again[0][2].startswith("\u221233.3 [")


def test_a_collapsed_system_is_named(tmp_path: Path):
    run, predictions = run_and_predictions(tmp_path)
    same = AnswerPredictions(sets=SETS, scores=[np.full(3, 0.5)] * 3)
    predictions["joint-ie", 0] |= {"test": same, "test_reranked": same}
    keys = [("joint-ie", 0), ("joint-ie", 1), ("mspp-ie", 0), ("mspp-ie", 1)]
    assert list(answer_selection.diagnoses(run, predictions)) == keys
    report = report_of(run, predictions)
    first = cells(answer_selection.collapses(report).data)[1]
    assert first[:2] == ["joint IE_k", "0"]
    assert first[2].startswith("Collapsed: ")
    assert "nearly the same (spread 0.000 log-odds)" in first[2]
    row = report.tables["diagnosis"][0]
    assert (row["system"], row["seed"], row["collapsed"], row["median_spread"]) == ("joint-ie", 0, True, 0)
    assert row["random_map"] == pytest.approx(11 / 18)
    # all are called right, a third of which is; candidates of each question stand in two places
    assert len(row["accuracy"]) == 2
    assert row["accuracy"] == pytest.approx((1 - np.array(row["always_wrong"])).tolist())


def test_figures_are_of_the_joint_systems_with_seed_0(given):
    spread, places = answer_selection.collapse_figures(*given)
    assert {"joint IE_k", "MSPP IE_k"} <= {trace.name for trace in places.data}
    assert len(spread.layout.yaxis.ticktext) == 2


def test_times_are_put_beside_the_papers_arithmetic(report: Report):
    html = answer_selection.timing(report).data
    assert "takes 1.38 times as long as pairwise" in html  # (0.03 + 0.025) / 2 / 0.02
    assert "4k = 1.12" in html  # 9 / 8
    assert "2k = 0.75" in html
    figure = answer_selection.timing_figure(report)
    assert list(figure.data[0].x) == [20, 30, 25]


# ---- to read


def test_questions_have_the_scores_of_every_system_and_of_both_rankings(tmp_path: Path):
    run, predictions = run_and_predictions(tmp_path)
    first, second, third = read_rankings(run, predictions)
    assert list(first.scores) == [
        "pairwise",
        "joint IE_k",
        "joint IE_k on pairwise's top 2",
        "MSPP IE_k",
        "MSPP IE_k on pairwise's top 2",
    ]
    order = fixed_order(SETS[0].candidates, key=SETS[0].id)
    assert first.candidates == tuple(SETS[0].candidates[number] for number in order)
    right = first.candidates.index("right")
    assert first.right == tuple(number == right for number in range(3))
    assert first.scores["joint IE_k"][right] == -0.5
    assert first.scores["joint IE_k on pairwise's top 2"][first.candidates.index("other")] is None
    assert second.outcome("MSPP IE_k", beside="pairwise") == "repaired"
    assert first.outcome("joint IE_k", beside="pairwise") == "broken"
    assert third.outcome("MSPP IE_k on pairwise's top 2", beside="pairwise") == "both wrong"
    assert [one.id for one in read_rankings(run, predictions, "dev")] == [one.id for one in SETS]


def test_equal_scores_are_read_in_the_order_of_the_hash(tmp_path: Path):
    run, predictions = run_and_predictions(tmp_path)
    predictions["pairwise", 0]["test"].scores[0][:] = 0.0
    read = read_rankings(run, predictions)[0]
    assert read.order("pairwise") == (0, 1, 2)
    assert [read.candidates[number] for number in read.order("pairwise")] == [
        SETS[0].candidates[number] for number in fixed_order(SETS[0].candidates, key=SETS[0].id)
    ]


def test_questions_whose_answer_a_system_changed_are_on_its_page(tmp_path: Path):
    run, predictions = run_and_predictions(tmp_path)
    answer_selection.rankings(run, predictions)
    # with seed 0: joint IE_k breaks the first question, MSPP repairs the second
    joint, mspp = ((tmp_path / "changed" / f"{name}.html").read_text() for name in ("joint-ie", "mspp-ie"))
    assert [one.id in joint for one in SETS] == [True, False, False]
    assert [one.id in mspp for one in SETS] == [False, True, False]
    assert "Where MSPP IE_k changed the answer" in mspp


def test_a_system_that_changed_nothing_has_no_page(tmp_path: Path):
    run, predictions = run_and_predictions(tmp_path)
    predictions["mspp-ie", 0]["test"] = predictions["pairwise", 0]["test"]
    answer_selection.rankings(run, predictions)
    assert [page.stem for page in (tmp_path / "changed").glob("*")] == ["joint-ie"]


# ---- how long a question takes ----


def asked(count: int) -> CandidateSet:
    return CandidateSet(
        id=f"q{count}",
        question="Who?",
        candidates=tuple(map(str, range(count))),
        correct=(True, *[False] * (count - 1)),
    )


def test_the_papers_formulas():
    assert expected_ratios(5) == (pytest.approx(36 / 20), pytest.approx(6 / 10))


def test_questions_are_timed_up_to_so_many_candidates(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ranking, "MOST_CANDIDATES", 10)
    sets = [asked(4), asked(6), asked(1), asked(2)]
    assert list(timed_sets(sets)) == sets[:2]
    assert list(timed_sets(sets[2:])) == sets[2:]
    assert list(timed_sets([asked(11), asked(1)])) == [asked(11)], "at least one"


class Clock:
    """Each reading of a system moves it on."""

    now = 0.0

    def read(self, ranker, examples, *, batch_size, precision):
        assert batch_size == len(examples), "all groups of a question at once"
        assert precision == "float32"
        self.now += next(ranker.model)


class TimedRanker:
    def __init__(self, seconds):
        self.model = iter(seconds)

    def examples(self, sets):
        return [0] * len(sets[0].candidates)


def test_the_first_round_is_not_counted_and_systems_take_turns(monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    monkeypatch.setattr(ranking, "score_examples", clock.read)
    monkeypatch.setattr(ranking.time, "perf_counter", lambda: clock.now)
    sets = [asked(2), asked(3)]
    slow = [90, 90, 1, 3, 2, 2, 5, 7]  # rounds of two questions
    rankers = {"a": TimedRanker(slow), "b": TimedRanker(itertools.repeat(0.5))}
    first, second = ranking.measured_in_turns(rankers, sets, precision="float32")
    assert (first.system, first.seconds, first.fastest, first.slowest) == ("a", 2, 2, 6)
    assert (second.seconds, second.runs) == (0.5, 3)
