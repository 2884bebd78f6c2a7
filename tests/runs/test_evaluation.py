"""From the table of items to scores, intervals and verdicts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cdlm_lab.metrics import paired
from cdlm_lab.runs.evaluation import Measure, Planned, evaluate, verdict
from cdlm_lab.runs.items import UNTRAINED, items_of

ACCURACY = Measure("accuracy")
F1 = Measure("f1", "f1", of=("precision", "recall"))
PERPLEXITY = Measure("perplexity", "exp", of=("nats",), lower=True)
CONLL = Measure("conll", "mean", of=(F1, Measure("ceaf", "f1", of=("ceaf_p", "ceaf_r"))))


def answers(
    system: str, right: list[int], *, seed: int = 0, stories: list[int] | None = None
) -> pd.DataFrame:
    return items_of(
        {"accuracy": right}, system=system, split="test", items=range(len(right)), clusters=stories, seed=seed
    )


def score(evaluation, metric: str, system: str = "a", seed: int | None = None):
    return next(
        row for row in evaluation.rows if (row.system, row.metric, row.seed) == (system, metric, seed)
    )


def test_a_mean_over_items_and_seeds():
    table = pd.concat([answers("a", [1, 0, 1, 1]), answers("a", [1, 1, 1, 1], seed=1)])
    row = score(evaluate(table, [ACCURACY]), "accuracy")
    assert (row.value, row.n, row.clusters, row.seeds) == (0.875, 4, 4, 2)
    assert row.deviation == pytest.approx(0.25 / np.sqrt(2))
    assert [score(evaluate(table, [ACCURACY]), "accuracy", seed=n).value for n in (0, 1)] == [0.75, 1.0]
    assert 0 <= row.low <= 0.875 <= row.high == 1.0, "a share ends at 1"


def spans(correct: list[int], predicted: list[int], gold: list[int], **names: str) -> dict:
    return {"precision": (correct, predicted), "recall": (correct, gold)}


def test_f1_is_of_summed_counts_and_not_a_mean_of_documents():
    values = spans([1, 8], [1, 16], [10, 10])
    table = items_of(values, system="a", split="test", items=["d1", "d2"])
    row = score(evaluate(table, [F1]), "f1")
    assert row.value == pytest.approx(2 * 9 / (17 + 20))
    assert row.n == 20, "gold spans"


def test_nothing_found_and_nothing_to_find_is_zero():
    table = items_of(spans([0, 0], [0, 0], [3, 2]), system="a", split="test", items=[1, 2])
    assert score(evaluate(table, [F1]), "f1").value == 0


def test_a_perplexity_weighs_clusters_by_their_tokens():
    table = items_of({"nats": ([20.0, 3.0], [10, 1])}, system="a", split="test", items=["x", "y"])
    row = score(evaluate(table, [PERPLEXITY]), "perplexity")
    assert row.value == pytest.approx(np.exp(23 / 11))
    assert (row.n, row.clusters) == (11, 2)
    assert row.low < row.value < row.high


def test_conll_f1_is_a_mean_of_f1_of_sums():
    values = spans([3, 5], [4, 6], [6, 6]) | {"ceaf_p": ([1, 2], [2, 2]), "ceaf_r": ([1, 2], [4, 4])}
    table = items_of(values, system="a", split="test", items=["t1", "t2"])
    first, second = 2 * 8 / (10 + 12), 2 * 0.75 * 0.375 / (0.75 + 0.375)
    assert score(evaluate(table, [CONLL]), "conll").value == pytest.approx((first + second) / 2)


def test_the_interval_leaves_out_clusters_and_not_items():
    """Copies of an answer within a story say nothing new."""
    right, stories = [1, 0, 1, 1, 0, 1], [0, 1, 2, 3, 4, 5]
    alone = score(evaluate(answers("a", right, stories=stories), [ACCURACY]), "accuracy")
    copied = score(evaluate(answers("a", right * 9, stories=stories * 9), [ACCURACY]), "accuracy")
    assert (copied.low, copied.high) == pytest.approx((alone.low, alone.high))
    assert (copied.n, copied.clusters) == (54, 6)


def by_hand(table: pd.DataFrame, a: str, b: str) -> float:
    """The accuracy of a less that of b: means over items, then over seeds."""
    means = table.groupby(["system", "seed"])["num"].mean().groupby("system").mean()
    return means[a] - means[b]


@pytest.fixture(scope="module")
def three_systems() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    tables = [
        answers(name, list(rng.binomial(1, rate, 60)), seed=seed, stories=[n // 3 for n in range(60)])
        for name, rate in (("a", 0.9), ("b", 0.5), ("c", 0.55))
        for seed in range(3)
    ]
    return pd.concat(tables)


def test_a_comparison_is_over_items_and_seeds(three_systems: pd.DataFrame):
    (row,) = evaluate(three_systems, [ACCURACY], [Planned(a="a", b="b", measure="accuracy")]).comparisons
    assert row["difference"] == pytest.approx(by_hand(three_systems, "a", "b"))
    assert row["p"] == max(row["p_items"], row["p_seeds"]) == row["p_holm"]
    scores = [
        [group["num"].mean() for _, group in three_systems[three_systems["system"] == one].groupby("seed")]
        for one in "ab"
    ]
    assert row["p_seeds"] == pytest.approx(paired.t_test_of_seeds(*scores))
    assert (row["clusters"], row["seeds"], row["verdict"]) == (20, 3, "holds")
    (back,) = evaluate(three_systems, [ACCURACY], [Planned(a="b", b="a", measure="accuracy")]).comparisons
    assert back["verdict"] == "does not"


def test_items_alone_do_not_make_a_verdict_that_other_seeds_would_not():
    seeds = [answers("a", [1] * 30, seed=0), answers("a", [1] * 10 + [0] * 20, seed=1)]
    others = [answers("b", [1] * 9 + [0] * 21, seed=0), answers("b", [1] * 8 + [0] * 22, seed=1)]
    (row,) = evaluate(
        pd.concat(seeds + others), [ACCURACY], [Planned(a="a", b="b", measure="accuracy")]
    ).comparisons
    assert row["p_items"] < 0.05 < row["p_seeds"]
    assert row["verdict"] == "undecided"


def test_a_further_system_changes_no_verdict(three_systems: pd.DataFrame):
    plan = [Planned(a="a", b="b", measure="accuracy"), Planned(a="a", b="c", measure="accuracy")]
    more = Planned(a="mine", b="a", measure="accuracy", family="explored")
    mine = answers("mine", [1, 0] * 30, stories=[n // 3 for n in range(60)])
    before = evaluate(three_systems, [ACCURACY], plan).comparisons
    after = evaluate(pd.concat([three_systems, mine]), [ACCURACY], [*plan, more]).comparisons
    assert after[:2] == before
    assert [row["p_holm"] for row in before] == paired.holm([row["p"] for row in before])
    assert after[2]["p_holm"] == after[2]["p"]


def test_a_baseline_without_seeds_stands_for_each(three_systems: pd.DataFrame):
    rule = answers("rule", [1, 0] * 30, stories=[n // 3 for n in range(60)])
    plan = [Planned(a="a", b="rule", measure="accuracy")]
    (row,) = evaluate(pd.concat([three_systems, rule]), [ACCURACY], plan).comparisons
    assert row["difference"] == pytest.approx(by_hand(pd.concat([three_systems, rule]), "a", "rule"))
    assert (row["seeds"], row["p_seeds"]) == (3, None)


def test_a_gap_is_a_difference_of_means_of_other_items_and_of_both_the_clusters():
    values = {"near": ([60.0, 80.0, 0.0], [1, 1, 0]), "far": ([60.0, 0.0, 20.0], [1, 0, 1])}
    table = items_of(values, system="a", split="", items=range(3), clusters=["x", "y", "y"], seed=UNTRAINED)
    table = pd.concat([table, table.assign(system="b", num=table["num"] / 2)])
    gap = Measure("gap", "gap", of=("near", "far"))
    made = evaluate(table, [gap], [Planned(a="a", b="b", measure="gap", split="")])
    row = score(made, "gap")
    assert (row.value, row.n, row.clusters) == (140 / 2 - 80 / 2, 4, 2)
    assert row.low < 0 < row.high, "a gap of 0 in x, of 60 in y: no share that ends at 0"
    assert made.comparisons[0]["difference"] == pytest.approx(15)


def test_what_was_not_trained_has_one_row_and_no_seeds():
    (row,) = evaluate(answers("a", [1, 0, 1], seed=UNTRAINED), [ACCURACY]).rows
    assert (row.seed, row.seeds, row.value) == (None, None, pytest.approx(2 / 3))


def test_a_comparison_across_groups_and_one_that_stands_in_its_table_alone():
    table = pd.concat([answers("a", [1] * 7).assign(group="again"), answers("b", [0] * 7)])
    plan = Planned(a="a", b="b", measure="accuracy", group="again", group_of_b="")
    made = evaluate(table, [ACCURACY], [plan])
    assert (made.comparisons[0]["difference"], made.comparisons[0]["group"]) == (1, "again")
    assert score(made, "accuracy").against == "b"
    assert score(evaluate(table, [ACCURACY], [replace(plan, beside=False)]), "accuracy").p is None


def test_few_units_give_no_verdict():
    """Five clusters cannot give a p below 1/16, six cannot once two comparisons are corrected for."""
    for number, verdicts in ((5, {"too few units"}), (6, {"too few units"}), (7, {"holds"})):
        table = pd.concat([answers("a", [1] * number), answers("b", [0] * number)])
        table = pd.concat([table, answers("c", [0] * number)])
        plan = [Planned(a="a", b=one, measure="accuracy") for one in "bc"]
        assert {row["verdict"] for row in evaluate(table, [ACCURACY], plan).comparisons} == verdicts


def test_a_single_unit_has_no_interval():
    table = pd.concat([answers("a", [1, 1], stories=[0, 0]), answers("b", [0, 1], stories=[0, 0])])
    made = evaluate(table, [ACCURACY], [Planned(a="a", b="b", measure="accuracy")])
    (row,) = made.comparisons
    assert (row["difference"], row["low"], row["high"], row["verdict"]) == (0.5, None, None, "too few units")
    assert {(one.low, one.high) for one in made.rows} == {(None, None)}


def test_where_lower_is_better():
    values = {name: {"nats": ([loss * 10] * 8, [10] * 8)} for name, loss in (("a", 2.0), ("b", 2.5))}
    table = pd.concat(
        [items_of(one, system=name, split="test", items=range(8)) for name, one in values.items()]
    )
    plan = [Planned(a="a", b="b", measure="perplexity"), Planned(a="b", b="a", measure="perplexity")]
    rows = evaluate(table, [PERPLEXITY], plan).comparisons
    assert [row["verdict"] for row in rows] == ["holds", "does not"]
    assert rows[0]["difference"] == pytest.approx(-0.5), "in nats"


def test_what_was_not_measured_is_left_out(three_systems: pd.DataFrame):
    plan = [Planned(a="a", b="gone", measure="accuracy"), Planned(a="a", b="b", measure="f1")]
    made = evaluate(three_systems, [ACCURACY, F1], plan)
    assert made.comparisons == []
    assert {row.metric for row in made.rows} == {"accuracy"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="den"), "no column den"),
        (lambda t: t.assign(more=1), "a column more"),
        (lambda t: t.assign(num=np.nan), r"items\[0\].*finite"),
        (lambda t: t.assign(den=-1.0), r"items\[0\].*negative"),
        (lambda t: pd.concat([t, t.iloc[:1]]), r"items\[4\].*second row"),
        (lambda t: pd.concat([t, answers("a", [1, 1], seed=1)]), "a/test: the seeds.*different items"),
    ],
)
def test_a_table_at_fault_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        evaluate(change(answers("a", [1, 0, 1, 1])), [ACCURACY])


def test_systems_measured_on_different_clusters_are_not_compared():
    table = pd.concat([answers("a", [1, 0, 1]), answers("b", [1, 0])])
    with pytest.raises(ValueError, match="a and b were not measured on the same clusters"):
        evaluate(table, [ACCURACY], [Planned(a="a", b="b", measure="accuracy")])


def test_a_verdict_needs_a_p_below_5_in_100():
    assert verdict(0.1, 0.049) == "holds"
    assert verdict(0.1, 0.05) == "undecided"
    assert verdict(-0.1, 0.01) == "does not"
    assert verdict(-0.1, 0.01, lower=True) == "holds"
    assert verdict(0.1, 0.01, few=True) == "too few units"
