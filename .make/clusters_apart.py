"""Given clusters without those near in time to what is judged, as `mine --apart` does it for a pile.

    python .make/clusters_apart.py CLUSTERS... given_clusters.jsonl --judged CLUSTERS

Of the training clusters of CLUSTERS (`allsides_fulltext_clusters.jsonl.xz`,
`allsides_weak_clusters.jsonl.xz`) those are kept whose articles all have a date, and none within --days of an
article of --judged's validation and test clusters. The validation clusters, on which checkpoints are chosen,
stay. What is written is a corpus of notebook 01; `notebooks/grids/deciding.yaml` takes it as `given`.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cdlm_lab.data import files
from cdlm_lab.data.files import replaced_file
from cdlm_lab.errors import print_any_sign
from cdlm_lab.mining.articles import pile_of
from cdlm_lab.mining.clusters import MineSettings, kept_from
from cdlm_lab.mining.mine import read_apart

JUDGED = ("val", "test")
CHOSEN_ON = "val"


def clusters_apart(
    paths: Sequence[Path], judged: Path, *, days: int, counts: Counter[str]
) -> Iterator[dict[str, Any]]:
    """The clusters that are kept; `counts` says how many of each file and split were, and were not."""
    records = [record for path in paths for record in files.read_json_lines(path)]
    documents = [replace(one, fields=fields) for one in records for fields in one.fields["docs"]]
    kept, _ = kept_from(pile_of(documents, paths[0]).articles, read_apart(judged, JUDGED), days=days)
    ids = {article.id for article in kept}
    for record in records:
        split = record.fields.get("split", "train")
        far = all(one["id"] in ids for one in record.fields["docs"])
        stays = split == CHOSEN_ON or (split == "train" and far)
        counts[f"{record.path.name}: {split} {'kept' if stays else 'left out'}"] += 1
        if stays:
            yield {**record.fields, "split": split}


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the clusters, and say how many there are."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("clusters", nargs="+", type=Path)
    parser.add_argument("written", type=Path)
    parser.add_argument("--judged", type=Path, required=True)
    parser.add_argument("--days", type=int, default=MineSettings().days)
    given = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    with replaced_file(given.written) as stream:
        for cluster in clusters_apart(given.clusters, given.judged, days=given.days, counts=counts):
            stream.write(json.dumps(cluster, ensure_ascii=False) + "\n")
    print(*(f"{kind}: {count:,}" for kind, count in sorted(counts.items())), sep="\n")


if __name__ == "__main__":
    print_any_sign()
    main()
