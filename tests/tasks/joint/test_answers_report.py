"""Scores, report and views of notebook 09 from rankings written by hand, from which all numbers follow."""

import itertools
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from tagging_runs import by_name, table_cells

from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import CandidateSet, counts_of
from cdlm_lab.runs.own import add_predictions, lines_of
from cdlm_lab.runs.report import Report, open_run, read_report
from cdlm_lab.tasks.joint import answers as answer_selection
from cdlm_lab.tasks.joint import answers_view, ranking
from cdlm_lab.tasks.joint.answers import NO_QUESTION, AnswerRun, AnswerSplit, Settings
from cdlm_lab.tasks.joint.answers_view import Latency, answers_table, read_rankings, row_label
from cdlm_lab.tasks.joint.examples import fixed_order
from cdlm_lab.tasks.joint.ranking import AnswerPredictions, expected_ratios, timed_sets

NAN = float("nan")


def question(name: str, *candidates: str) -> CandidateSet:
    """Make a question whose first candidate is right."""
    correct = tuple(number == 0 for number in range(len(candidates)))
    return CandidateSet(id=name, question=f"Who is {name}?", candidates=candidates, correct=correct)


# Two stories: the first asks two questions, the second one.
IDS = ("storyworld-x-1-c0", "storyworld-x-1-c1", "storyworld-x-2-c0")
SETS = tuple(question(name, "right", "wrong", "other") for name in IDS)


def placed(place: int) -> np.ndarray:
    """Return scores that give the right candidate a rank, from 1."""
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


def scored(*scores) -> AnswerPredictions:
    return AnswerPredictions(sets=SETS, scores=list(map(np.array, scores)))


def run_and_predictions(folder: Path, *, seeds: int = 2):
    """Make a run of these questions and rankings; on dev all systems rank the right candidate second."""
    split = AnswerSplit(sets=SETS, read=counts_of(SETS), corpus="storyworld")
    given = {"systems": "pairwise joint-ie mspp-ie", "mspp": "storyworld/paragraphs"}
    settings = Settings(run_folder=str(folder), candidates=2, seeds=seeds, **given)
    opened = open_run(folder, name=AnswerRun.NAME, parameters=asdict(settings))
    splits = dict.fromkeys(("train", "dev", "test", NO_QUESTION), split)
    second, predictions = scored(*[placed(2)] * 3), {}
    for key, places in PLACES.items():
        if key[1] < seeds:
            predictions[key] = {"dev": second, "test": scored(*map(placed, places)), NO_QUESTION: second}
            if key in BEST:
                predictions[key] |= {"dev_reranked": second, "test_reranked": scored(*BEST[key])}
    return AnswerRun(settings=settings, splits=splits, opened=opened), predictions


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
    report_of(*given)
    return read_report(given[0].folder)


def test_scores_are_means_over_seeds_with_intervals_over_stories(report: Report):
    scores = by_name(report)
    of_pairwise = scores["pairwise/all/test/p_at_1"]
    assert (of_pairwise.low, of_pairwise.high, of_pairwise.seeds) == (0, 1, 2), "two stories tell little"
    assert (of_pairwise.n, of_pairwise.clusters) == (3, 2)
    expected = {
        "pairwise/all/test/p_at_1": (1 / 3 + 2 / 3) / 2,
        "pairwise/all/test/mrr": ((1 + 1 / 2 + 1 / 3) / 3 + (1 + 1 + 1 / 2) / 3) / 2,
        "mspp-ie/all/test/map": ((1 + 1 + 1 / 2) / 3 + 1) / 2,
        "joint-ie/all/dev/map": 1 / 2,
        # of the best of pairwise: with seed 0 second, second, third, with 1 second, first, second
        "joint-ie/reranked/test/mrr": ((1 / 2 + 1 / 2 + 1 / 3) / 3 + (1 / 2 + 1 + 1 / 2) / 3) / 2,
        # what pairwise leaves out of its best two cannot be first: third with seed 0
        "mspp-ie/reranked/test/p_at_1": (2 / 3 + 1) / 2,
        "random/all/dev/mrr": (1 + 1 / 2 + 1 / 3) / 3,
        "random/all/test/p_at_1": 1 / 3,
    }
    assert {name: scores[name].value for name in expected} == pytest.approx(expected)
    assert "pairwise/reranked/test/map" not in scores
    rows = {row.key: row.value for row in report.rows if row.seed is not None}
    assert len(rows) == ((1 + 2 * 2) * 2 + 3) * 2 * 3  # dev, test, ranked anew; no question
    assert rows["joint-ie", "test", "reranked", "mrr", 0] == pytest.approx((1 / 2 + 1 / 2 + 1 / 3) / 3)


def test_without_the_question_the_same_models_are_measured_again(report: Report):
    table = answers_view.control_table(report).html()
    assert "storyworld, test, no question" in table
    assert "random order" in table
    assert by_name(report)[f"mspp-ie/all/{NO_QUESTION}/map"].value == 1 / 2


def test_systems_are_tested_against_pairwise_and_with_mspp_against_without(report: Report):
    rows = {(row["a"], row["b"], row["group"], row["measure"]): row for row in report.tables["comparisons"]}
    pairs = [("joint-ie", "pairwise"), ("mspp-ie", "pairwise"), ("mspp-ie", "joint-ie")]
    assert {key[:2] for key in rows} == set(pairs)
    assert len(rows) == 3 * 2 * 3
    p_at_1 = rows["mspp-ie", "pairwise", "all", "p_at_1"]
    assert (p_at_1["difference"], p_at_1["clusters"]) == (pytest.approx((2 / 3 + 1) / 2 - 1 / 2), 2)
    # p is corrected for the systems tested with one measure; of MSPP there is one test
    against, alone = [rows[*pair, "all", "map"] for pair in pairs[:2]], rows[*pairs[2], "all", "map"]
    lower, upper = sorted(row["p"] for row in against)
    held = {row["p"]: row["p_holm"] for row in against}
    assert held[lower] == pytest.approx(min(1.0, 2 * lower))
    assert held[upper] == pytest.approx(max(min(1.0, 2 * lower), upper))
    assert alone["p_holm"] == alone["p"]


LISTS = [{"item": name, "scores": placed(place).tolist()} for name, place in zip(IDS, (1, 2, 3), strict=True)]


@pytest.mark.parametrize("form", ["in their order", "by their texts"])
def test_scores_of_ones_own_are_measured_on_the_same_questions(
    given, report: Report, tmp_path: Path, form: str
):
    """Those of pairwise with seed 0, written by another program."""
    lines, names = LISTS, SETS[0].candidates
    if form == "by their texts":
        lines = [one | {"scores": dict(zip(names, one["scores"], strict=True))} for one in LISTS[::-1]]
    file = tmp_path / "mine.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    made = add_predictions(given[0], file)
    mine = {row.metric: row.value for row in made.rows if row.system == "mine" and row.seed is None}
    assert mine == {
        row.metric: row.value
        for row in report.rows
        if row.key[:3] + row.key[4:] == ("pairwise", "test", "all", 0)
    }
    assert {row["b"] for row in made.comparisons} == {"pairwise", "joint-ie", "mspp-ie", "random"}
    assert {row["group"] for row in made.comparisons} == {"all"}


@pytest.mark.parametrize(
    "scores", [[1.0], [1.0, 2.0, None], {"right": 1.0, "wrong": 0.0}, "high", [1, 2, "3"]]
)
def test_a_question_with_a_candidate_without_a_score_is_named(given, tmp_path: Path, scores):
    file = tmp_path / "mine.jsonl"
    file.write_text("\n".join(map(json.dumps, [*LISTS[:2], LISTS[2] | {"scores": scores}])))
    with pytest.raises(DataError, match=r"mine\.jsonl:3: field scores: question .* has 3 candidates, each"):
        given[0].own_predictions(file, lines_of(file), "test")


def test_the_tables_of_scores(report: Report):
    header, *rows = table_cells(answers_table(report).html())
    assert [row[0] for row in rows] == ["pairwise", "joint IE_k", "MSPP IE_k", "random order"]
    assert rows[0][-1].startswith("87.9"), "pairwise RoBERTa on TREC-QA, P@1 of Table 1"
    by_name = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert by_name["MSPP IE_k"]["MAP"].startswith("91.7")
    assert "p = " in by_name["MSPP IE_k"]["MRR"]
    assert "p " not in by_name["pairwise"]["MRR"]
    _, *rows = table_cells(answers_table(report, ranking="reranked").html())
    joint = [f"{name} on pairwise's top 2" for name in ("joint IE_k", "MSPP IE_k")]
    assert [row[0].replace("&#x27;", "'") for row in rows] == ["pairwise", *joint, "random order"]
    assert "93.5" in rows[2][-1], "Table 7"
    assert row_label("joint-ie", "reranked", k=4) == "joint IE_k on pairwise's top 4"
    header, *rows = table_cells(answers_view.comparisons(report, ranking="reranked").html())
    assert header[0] == "ranked anew"
    assert rows[0][2].startswith("\u221233.3 [")


def test_a_collapsed_system_is_named(tmp_path: Path):
    run, predictions = run_and_predictions(tmp_path)
    same = scored(*[np.full(3, 0.5)] * 3)
    predictions["joint-ie", 0] |= {"test": same, "test_reranked": same}
    keys = [("joint-ie", 0), ("joint-ie", 1), ("mspp-ie", 0), ("mspp-ie", 1)]
    assert list(answer_selection.diagnoses(run, predictions)) == keys
    report = report_of(run, predictions)
    name, seed, verdict = table_cells(answers_view.collapses(report).html())[1]
    assert (name, seed) == ("joint IE_k", "0")
    assert verdict.startswith("Collapsed: ")
    assert "nearly the same (spread 0.000 log-odds)" in verdict
    row = report.tables["diagnosis"][0]
    assert (row["system"], row["seed"], row["collapsed"], row["median_spread"]) == ("joint-ie", 0, True, 0)
    assert row["random_map"] == pytest.approx(11 / 18)
    # all are called right, a third of which is; candidates of each question stand in two places
    assert len(row["accuracy"]) == 2
    assert row["accuracy"] == pytest.approx((1 - np.array(row["always_wrong"])).tolist())


def test_figures_are_of_the_joint_systems_with_seed_0_and_times_beside_the_papers(given, report: Report):
    spread, places = answers_view.collapse_figures(*given)
    assert {"joint IE_k", "MSPP IE_k"} <= {trace.name for trace in places.data}
    assert len(spread.data[0].median) == 2
    html = answers_view.timing(report).data
    assert "takes 1.38 times as long as pairwise" in html  # (0.03 + 0.025) / 2 / 0.02
    assert "4k = 1.12" in html  # 9 / 8
    assert "2k = 0.75" in html
    assert list(answers_view.timing_figure(report).data[0].x) == [20, 30, 25]


# ---- to read


def test_questions_have_the_scores_of_every_system_and_of_both_rankings(tmp_path: Path):
    run, predictions = run_and_predictions(tmp_path)
    first, second, third = read_rankings(run, predictions)
    joint, mspp = (f"{name} on pairwise's top 2" for name in ("joint IE_k", "MSPP IE_k"))
    assert list(first.scores) == ["pairwise", "joint IE_k", joint, "MSPP IE_k", mspp]
    order = fixed_order(SETS[0].candidates, key=SETS[0].id)
    assert first.candidates == tuple(SETS[0].candidates[number] for number in order)
    right = first.candidates.index("right")
    assert first.right == tuple(number == right for number in range(3))
    assert first.scores["joint IE_k"][right] == -0.5
    assert first.scores[joint][first.candidates.index("other")] is None
    assert second.outcome("MSPP IE_k", beside="pairwise") == "repaired"
    assert first.outcome("joint IE_k", beside="pairwise") == "broken"
    assert third.outcome(mspp, beside="pairwise") == "both wrong"
    assert [one.id for one in read_rankings(run, predictions, "dev")] == [one.id for one in SETS]
    predictions["pairwise", 0]["test"].scores[0][:] = 0.0
    assert read_rankings(run, predictions)[0].order("pairwise") == (0, 1, 2), (
        "equal ones as the hash has them"
    )


# ---- how long a question takes ----


def test_questions_are_timed_up_to_so_many_candidates(monkeypatch: pytest.MonkeyPatch):
    assert expected_ratios(5) == (pytest.approx(36 / 20), pytest.approx(6 / 10))
    monkeypatch.setattr(ranking, "MOST_CANDIDATES", 10)
    sets = [question(f"q{count}", *map(str, range(count))) for count in (4, 6, 1, 2, 11)]
    assert list(timed_sets(sets)) == sets[:2]
    assert list(timed_sets(sets[2:4])) == sets[2:4]
    assert list(timed_sets(sets[4:])) == sets[4:], "at least one"


class Clock:
    """A clock that a system's reading advances by its next duration."""

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
    sets = [question("q2", "a", "b"), question("q3", "a", "b", "c")]
    slow = [90, 90, 1, 3, 2, 2, 5, 7]  # rounds of two questions
    rankers = {"a": TimedRanker(slow), "b": TimedRanker(itertools.repeat(0.5))}
    first, second = ranking.measured_in_turns(rankers, sets, precision="float32")
    assert (first.system, first.seconds, first.fastest, first.slowest) == ("a", 2, 2, 6)
    assert (second.seconds, second.runs) == (0.5, 3)
