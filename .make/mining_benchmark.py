"""How well `mine` finds events: B-cubed on AllSides' clusters as a pile, with and without dates and linkage.

    python .make/mining_benchmark.py CLUSTERS ARTICLES --json data/results/mining_benchmark.json

CLUSTERS is `allsides_fulltext_clusters.jsonl.xz`, whose train part gives the threshold of each way, and whose
validation and test parts are scored; ARTICLES is the pile that they are from (data/news_clusters/README.md).
Articles in two clusters are left out. "among others": with five times as many articles of ARTICLES, drawn at
random, of which no event is known; only the known ones are scored. "dated": only articles that have a date.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cdlm_lab.data import files
from cdlm_lab.data.files import replaced_file
from cdlm_lab.data.splits import SPLIT_NAMES
from cdlm_lab.errors import print_any_sign
from cdlm_lab.metrics.paired import jackknife_interval
from cdlm_lab.mining.articles import Article, Pile, pile_of, read_pile
from cdlm_lab.mining.clusters import UNDATED, MineSettings, clusters_from, days_of, pairs_among, vectors_of
from cdlm_lab.mining.linkage import joined
from cdlm_lab.mining.similarity import Pairs
from cdlm_lab.runs.report import git_commit

OTHERS = 5  # times as many articles of unknown events
THRESHOLDS = (0.08, 0.10, 0.12, 0.14, 0.16, 0.18, 0.2, 0.24, 0.28, 0.32, 0.36, 0.4)
WAYS = {  # name -> (with dates, with linkage)
    "as it is": (True, True),
    "without linkage": (True, False),
    "without dates": (False, True),
    "without both": (False, False),
}
COLUMNS = {
    "pile": "{pile}",
    "articles": "{articles:,}",
    "scored": "{scored:,}",
    "way": "{way}",
    "threshold": "{threshold:.2f}",
    "B-cubed F1": "{f1:.3f} [{low:.3f}, {high:.3f}]",
    "precision": "{precision:.3f}",
    "recall": "{recall:.3f}",
}


def read_events(path: Path) -> tuple[dict[str, dict[str, str]], dict[str, Article]]:
    """Part (`train`, `held out`) -> id of an article -> its event, and the articles by id."""
    events: dict[str, dict[str, str]] = {"train": {}, "held out": {}}
    documents, times = [], Counter()
    for record in files.read_json_lines(path):
        part = "train" if SPLIT_NAMES[record.fields["split"]] == "train" else "held out"
        for document in record.fields["docs"]:
            name = document["id"]
            times[name] += 1
            events[part][name] = record.fields["cluster_id"]
            documents.append(replace(record, fields=document))
    articles = {article.id: article for article in pile_of(documents, path).articles}
    known = {part: {n: e for n, e in of.items() if times[n] == 1} for part, of in events.items()}
    return known, articles


def labels_of(
    articles: Sequence[Article], pairs: Pairs, chosen: MineSettings, *, linkage: bool
) -> dict[str, str]:
    """Id of each article -> its cluster, from pairs that are similar at some lower threshold."""
    dated = np.array([article.day is not None for article in articles]) & chosen.dates
    both = dated[pairs.first] & dated[pairs.second]
    least = np.where(both | (not chosen.dates), chosen.threshold, chosen.threshold_undated)
    kept = Pairs(*(column[pairs.cosine >= least] for column in pairs))
    if linkage:
        return clusters_from(Pile(articles=list(articles)), kept, (), chosen).labels
    connected = joined(zip(kept.first.tolist(), kept.second.tolist(), strict=True), items=len(articles))
    return {article.id: articles[place].id for article, place in zip(articles, connected, strict=True)}


def b_cubed(events: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, float]:
    """B-cubed of the articles whose events are known, with the 95% interval of F1 over events."""
    events_of, clusters_of = Counter(events.values()), Counter(labels[name] for name in events)
    both = Counter((event, labels[name]) for name, event in events.items())
    rows: dict[str, np.ndarray] = {}
    for name, event in events.items():
        together = both[event, labels[name]]
        row = np.array([together / clusters_of[labels[name]], together / events_of[event], 1.0])
        rows[event] = rows.get(event, 0) + row
    counts = np.stack([*rows.values()])
    low, high = jackknife_interval(counts, _f1)
    precision, recall = (float(share) for share in counts[:, :2].sum(axis=0) / len(events))
    return {
        "f1": float(_f1(counts.sum(axis=0))),
        "precision": precision,
        "recall": recall,
        "low": low,
        "high": high,
    }


def _f1(sums: np.ndarray) -> np.ndarray:
    """F1 of sums of precision, recall and articles (..., 3)."""
    precision, recall = sums[..., 0] / sums[..., 2], sums[..., 1] / sums[..., 2]
    return 2 * precision * recall / (precision + recall)


def measure(
    articles: Sequence[Article], events: Mapping[str, str], way: str, thresholds: Sequence[float]
) -> dict[float, dict[str, float]]:
    """Threshold -> scores of a pile mined in one way."""
    dates, linkage = WAYS[way]
    of = {threshold: settings_of(threshold, dates=dates) for threshold in thresholds}
    lowest = of[min(thresholds)]
    days = days_of(articles, dates=dates)
    pairs = pairs_among(vectors_of(articles), days, range(len(articles)), lowest)
    labels = {key: labels_of(articles, pairs, chosen, linkage=linkage) for key, chosen in of.items()}
    return {threshold: b_cubed(events, clusters) for threshold, clusters in labels.items()}


def settings_of(threshold: float, *, dates: bool) -> MineSettings:
    """The settings of a threshold; the one for articles without a date is as much above it as by default,
    unless no dates are used at all."""
    more = UNDATED["some"] - MineSettings().threshold if dates else 0.0
    return MineSettings(threshold=threshold, threshold_undated=threshold + more, dates=dates)


def piles(
    events: Mapping[str, Mapping[str, str]], known: Mapping[str, Article], others: Sequence[Article]
) -> Iterator[tuple[str, dict[str, list[Article]]]]:
    """Yield (name of the pile, part -> articles in order of day)."""
    for dated in (True, False):
        own = {
            part: [known[name] for name in of if known[name].day or not dated] for part, of in events.items()
        }
        more = [article for article in others if article.day or not dated]
        random.Random(0).shuffle(more)
        train = OTHERS * len(own["train"])
        added = {"train": more[:train], "held out": more[train : train + OTHERS * len(own["held out"])]}
        for name, second in (("alone", {}), ("among others", added)):
            mixed = {part: [*of, *second.get(part, [])] for part, of in own.items()}
            yield f"{name}, {'dated' if dated else 'all'}", {part: in_order(of) for part, of in mixed.items()}


def in_order(articles: Sequence[Article]) -> list[Article]:
    """Articles in order of day, those without a date last."""
    return sorted(articles, key=lambda one: (one.day is None, one.day or 0))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write with `--json`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clusters", type=Path)
    parser.add_argument("articles", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    print_any_sign()
    events, known = read_events(given.clusters)
    others = [article for article in read_pile(given.articles).articles if article.id not in known]
    rows: list[dict[str, Any]] = []
    for pile, parts in piles(events, known, others):
        names = {part: {one.id for one in articles} for part, articles in parts.items()}
        scored = {part: {n: e for n, e in of.items() if n in names[part]} for part, of in events.items()}
        for way in WAYS:
            began = time.monotonic()
            trained = measure(parts["train"], scored["train"], way, THRESHOLDS)
            best = max(trained, key=lambda threshold: trained[threshold]["f1"])
            measured = measure(parts["held out"], scored["held out"], way, [best])[best]
            counts = {"articles": len(parts["held out"]), "scored": len(scored["held out"])}
            counts |= {"events": len(set(scored["held out"].values())), "train_f1": trained[best]["f1"]}
            more = {"seconds": round(time.monotonic() - began, 1)}
            rows.append({"pile": pile, "way": way, "threshold": best, **counts, **measured, **more})
            print(" | ".join(form.format_map(rows[-1]) for form in COLUMNS.values()), flush=True)
    if given.json:
        with replaced_file(given.json) as file:
            json.dump({"rows": rows, "git_commit": git_commit()}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
