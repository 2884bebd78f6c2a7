"""The benchmark of `mine` scores as B-cubed is defined, chooses on train, and compares four ways."""

import json
from pathlib import Path

import mining_benchmark as mining
import pytest

from cdlm_lab.data.storyworld.stories import stories
from cdlm_lab.tasks.coreference.metrics import score


def test_b_cubed_is_that_of_the_coreference_metrics_and_of_the_known_articles_alone():
    events = {"a": "x", "b": "x", "c": "x", "d": "y", "e": "y", "f": "z"}
    labels = {"a": "1", "b": "1", "c": "2", "d": "2", "e": "3", "f": "4", "unknown": "1"}
    scores = mining.b_cubed(events, labels)
    assert scores["precision"] == pytest.approx((1 + 1 + 1 / 2 + 1 / 2 + 1 + 1) / 6)
    assert scores["recall"] == pytest.approx((2 / 3 + 2 / 3 + 1 / 3 + 1 / 2 + 1 / 2 + 1) / 6)
    other = score([["a", "b", "c"], ["d", "e"], ["f"]], [["a", "b"], ["c", "d"], ["e"], ["f"]])["b_cubed"]
    assert scores["f1"] == pytest.approx(other.f1)
    assert scores["low"] < scores["f1"] < scores["high"]


def test_four_ways_are_measured_on_four_piles(tmp_path: Path):
    """Stories of one day each, of which every other one is known; the rest are others."""
    clusters, articles = [], []
    for number, story in enumerate(stories(seed=5, split="train", stop=24)):
        docs = [
            {"id": f"{number}/{one.id}", "text": one.text, "date": f"2018-01-{1 + number:02}"}
            for one in story.cluster.documents
        ]
        docs[0]["date"] = "" if number % 4 == 0 else docs[0]["date"]
        articles += docs
        if number % 2 == 0:
            split = "train" if number < 12 else "test"
            clusters.append({"cluster_id": story.cluster.id, "split": split, "docs": docs})
    files = {"clusters.jsonl": clusters, "articles.jsonl": articles}
    for name, rows in files.items():
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    mining.main([*(str(tmp_path / name) for name in files), "--json", str(tmp_path / "made.json")])
    rows = json.loads((tmp_path / "made.json").read_text())["rows"]
    assert [row["way"] for row in rows] == [*mining.WAYS] * 4
    assert len({row["pile"] for row in rows}) == 4
    scores = {(row["pile"], row["way"]): row["f1"] for row in rows}
    assert scores["alone, dated", "as it is"] > 0.8
    assert scores["alone, dated", "as it is"] > scores["alone, dated", "without both"]
