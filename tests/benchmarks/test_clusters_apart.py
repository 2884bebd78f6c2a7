"""Given clusters without the events that are judged: no article of theirs is near one of those in time."""

import json
from pathlib import Path

import clusters_apart


def cluster(name: str, split: str | None, *dates: str) -> dict[str, object]:
    docs = [
        {"id": f"{name}{number}", "text": f"The council of {name} met, report {number}.", "date": date}
        for number, date in enumerate(dates)
    ]
    return {"cluster_id": name, **({"split": split} if split else {}), "docs": docs}


def test_training_clusters_far_from_all_that_is_judged_are_kept(tmp_path: Path, capsys):
    gold, weak, written = (tmp_path / name for name in ("gold.jsonl", "weak.jsonl", "written.jsonl"))
    clusters = {
        gold: [
            cluster("far", "train", "2018-01-01", "2018-01-02"),
            cluster("near", "train", "2018-03-01", "2018-03-06"),
            cluster("undated", "train", "2018-01-01", ""),
            cluster("chosen", "val", "2018-05-01", "2018-05-02"),
            cluster("judged", "test", "2018-03-09", "2018-03-10"),
        ],
        weak: [
            cluster("weak", None, "2018-03-04", "2018-03-05"),
            cluster("edge", None, "2018-05-05", "2018-05-06"),
        ],
    }
    for path, rows in clusters.items():
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    clusters_apart.main([str(gold), str(weak), str(written), "--judged", str(gold), "--days", "3"])
    rows = [json.loads(line) for line in written.read_text(encoding="utf-8").splitlines()]
    kept = [("far", "train"), ("chosen", "val"), ("weak", "train")]
    assert [(one["cluster_id"], one["split"]) for one in rows] == kept
    assert rows[0] == clusters[gold][0]
    assert "gold.jsonl: train left out: 2" in capsys.readouterr().out

    clusters_apart.main([str(gold), str(weak), str(written), "--judged", str(gold), "--days", "2"])
    rows = [json.loads(line) for line in written.read_text(encoding="utf-8").splitlines()]
    assert [one["cluster_id"] for one in rows] == ["far", "near", "chosen", "weak", "edge"]
