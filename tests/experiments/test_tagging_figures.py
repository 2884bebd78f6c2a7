"""Which figures a report of notebook 07 has, and the numbers in them."""

from types import SimpleNamespace
from typing import Any

import pytest

from cdlm_lab.examples.tagging import BUCKETS
from cdlm_lab.experiments.document_tagging import report_figures


def share(start: float, stop: float, value: float) -> dict[str, float]:
    return {"start": start, "stop": stop, "lowest": start, "highest": stop, "words": 8, "share": value}


def gain(other: str, words: str, difference: float) -> dict[str, Any]:
    return {
        "a": "doc-arc",
        "b": other,
        "measure": "f1",
        "words": words,
        "occurrences": 40,
        "difference": difference,
        "low": difference - 0.1,
        "high": difference + 0.1,
        "p": 0.5,
        "clusters": 3,
    }


def weights(system: str, bucket: int, mean: float) -> dict[str, Any]:
    quantiles = [mean / 4, mean / 2, mean, mean, 1.0]
    return {"system": system, "bucket": bucket, "count": 7, "mean": mean, "quantiles": quantiles}


TABLES = {
    "shares": [share(0, 50, 0.125), share(50, 100, 0.75)],
    "gains": [gain("bert-lstm", "all words", 0.02), gain("bert-lstm", "top 10%", 0.05)],
    "weights": [weights("doc-arc", 0, 0.6), weights("doc-arc", 4, 0.2)],
    "sweep": [
        {"occurrences": 10, "seed": 0, "f1": 0.75},
        {"occurrences": 10, "seed": 1, "f1": 0.25},
        {"occurrences": 2, "seed": 0, "f1": 0.5},
        {"occurrences": 2, "seed": 1, "f1": 0.625},
    ],
}


def figures(**tables: Any) -> list[Any]:
    return report_figures(SimpleNamespace(data={"corpus": "texts/mine"}, tables=TABLES | tables))


def titles(**tables: Any) -> list[str]:
    return [figure.layout.title.text for figure in figures(**tables)]


def test_all_figures_in_the_papers_order() -> None:
    found = titles()
    assert len(found) == 4
    assert "TF-IDF" in found[0]
    assert "Doc-ARC" in found[1]
    assert "BERT + LSTM" in found[1]
    assert found[2].startswith("Attention weight of occurrences, by distance: Doc-ARC")


def test_figures_without_numbers_are_left_out() -> None:
    every = titles()
    assert titles(sweep=[]) == every[:3]
    assert titles(sweep=TABLES["sweep"][:2]) == every[:3]  # one K is no sweep
    assert titles(weights=[]) == [*every[:2], every[3]]
    assert titles(gains=[], weights=[], sweep=[]) == every[:1]


def test_each_pair_and_each_system_has_its_own() -> None:
    every = titles()
    assert len(titles(gains=[*TABLES["gains"], gain("bert", "all words", 0.01)])) == len(every) + 1
    found = figures(weights=[*TABLES["weights"], weights("dynamic-doc-arc", 0, 0.5)])
    assert len(found) == len(every) + 1
    assert "Doc-ARC, dynamic" in found[3].layout.title.text
    assert [points(figure.data[-1])[1] for figure in found[2:4]] == [[0.6, 0.2], [0.5]]


def test_the_numbers_are_those_of_the_report() -> None:
    shares, gains, by_distance, sweep = figures()
    assert points(shares.data[0]) == ([25, 75], [12.5, 75])  # in the middle of each quantile
    assert points(gains.data[0]) == ([0, 1], [2, 5])
    (means,) = [trace for trace in by_distance.data if trace.type == "scatter"]
    assert points(means) == ([BUCKETS.index("0"), BUCKETS.index("4-7")], pytest.approx([0.6, 0.2]))
    assert points(sweep.data[-1]) == ([2, 10], [56.25, 50])  # means over the seeds, in the order of K
    assert "2 seeds" in sweep.data[-1].name


def points(trace: Any) -> tuple[list[float], list[float]]:
    return list(trace.x), list(trace.y)
