"""Scores of clusterings of the same mentions, beside baselines and the clusters of other runs.

Intervals and tests resample topics; topics that share a cluster, of the key or of any system, stay together.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cdlm_lab.data.convert.conll import write_conll
from cdlm_lab.data.files import read_text
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, Topic
from cdlm_lab.metrics.significance import compare, percentile_interval, resampled_sums
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.scores import Score
from cdlm_lab.runs.scoring import with_p_holm
from cdlm_lab.tasks.coreference import metrics
from cdlm_lab.tasks.coreference.clustering import clusters_of
from cdlm_lab.tasks.coreference.examples import MentionGroup

Clusters = Sequence[Sequence[tuple[str, int, int]]]  # each a list of mentions: document, start, end
BASELINES = ("singletons", "one cluster", "same head word")
RESAMPLES = 10_000


# ---- scores and the report ----


def told_apart(folders: Iterable[str], *, taken: Collection[str] = ()) -> dict[str, str]:
    """A name for each folder, the shortest end of its path that no other has and that is not `taken`.

    >>> told_apart(["runs/cdlm/a", "runs/longformer/a", "runs/b"])
    {'runs/cdlm/a': 'cdlm/a', 'runs/longformer/a': 'longformer/a', 'runs/b': 'b'}
    """
    by_path = {Path(folder).resolve().parts: folder for folder in folders}  # a folder may be named twice
    names = {}
    for own, folder in by_path.items():
        ends = [own[-count:] for count in range(1, len(own) + 1)]
        alone = (end for end in ends if sum(other[-len(end) :] == end for other in by_path) == 1)
        names[folder] = next(name for end in alone if (name := "/".join(end)) not in taken)
    return names


def baseline_responses(topics: Sequence[Topic], groups: Sequence[MentionGroup]) -> dict[str, Clusters]:
    """Baselines without training: every mention alone, one cluster per group, and within a group one cluster
    per head word."""
    documents = documents_of(topics)
    mentions = [mention for group in groups for mention in group.mentions]
    group_of = [group.id for group in groups for _ in group.mentions]
    tokens = [documents[mention.document].tokens[slice(*mention.tokens)] for mention in mentions]
    labels = (range(len(mentions)), group_of, metrics.same_head(tokens, group_of))
    places = [mention.place for mention in mentions]
    return {name: clusters_of(places, of_all) for name, of_all in zip(BASELINES, labels, strict=True)}


def coreference_scores(
    key: Clusters,
    responses: Mapping[str, Clusters],
    *,
    topic_of: Mapping[str, str],
    singletons: bool = True,
    seed: int = 0,
    columns: Mapping[str, str] | None = None,
) -> tuple[list[Score], list[dict[str, Any]]]:
    """Scores of systems that cluster the same mentions, and tests of the first system against each other one.

    Args:
        topic_of: topic of each document.
        columns: further columns of all rows.

    Returns:
        Rows of `muc/recall`, `conll/f1` and so on; the CoNLL F1 has its 95% interval, the number of topics
        (n) and, on test, its p. And a row for each test of the CoNLL F1, `p_holm` corrected for all of them.
    """
    columns = columns or {}
    topic = metrics.joined_topics(key, *responses.values(), topic=lambda place: topic_of[place[0]])
    units = {
        name: list(metrics.parts_by_topic(key, response, topic=topic, singletons=singletons).values())
        for name, response in responses.items()
    }
    first, *others = units
    counts = {name: metrics.count_table(parts) for name, parts in units.items()}
    tests = []
    for other in others:
        compared = compare(counts[first], counts[other], metrics.mean_f1, n_resamples=RESAMPLES, seed=seed)
        names = ("difference", "low", "high", "p_bootstrap", "p")
        tests.append({"a": first, "b": other} | {name: getattr(compared, name) for name in names})
    tests = with_p_holm(tests)
    p_of = {row["b"]: row["p_holm"] for row in tests} if columns.get("split", "test") == "test" else {}
    rows = []
    for name, parts in units.items():
        drawn = resampled_sums(counts[name], n_resamples=RESAMPLES, rng=np.random.default_rng(seed))
        low, high = percentile_interval(metrics.mean_f1(drawn))
        of_conll = {"low": low, "high": high, "n": len(parts)}
        if name in p_of:
            of_conll |= {"p": p_of[name], "against": first}
        for measure, value in metrics.scores_of_parts(metrics.total_parts(parts)).items():
            for part in metrics.SCORE_PARTS:
                metric = f"{measure}/{part}"
                more = of_conll if metric == "conll/f1" else {}
                rows.append(Score(system=name, metric=metric, value=getattr(value, part), **columns, **more))
    return rows, tests


def write_for_scorers(
    file: Path, topics: Sequence[Topic], clusters: Mapping[str, Sequence[CoreferenceMention]]
) -> None:
    """Write a file for reference scorers. The format cannot hold crossing mentions of one cluster; then the
    file is left out and a line printed."""
    try:
        write_conll(file, topics, clusters)
    except ValueError as error:
        print(f"no {file.name}: {error}")


def documents_of(topics: Sequence[Topic]) -> dict[str, CoreferenceDocument]:
    """The documents of topics by id."""
    return {document.id: document for topic in topics for document in topic.documents}


def read_clusters(folder: Path, split: str, *, among: Collection[tuple]) -> list[list[tuple]]:
    """The clusters that another run wrote, restricted to the mentions at `among`: so a run on fewer topics
    can be compared with one on all. Raises ParameterError if the folder has none, or they lack mentions."""
    file = folder / f"clusters-{split}.json"
    if not file.is_file():
        raise ParameterError(
            f"compare_with names {folder}, but there is no {file.name} in it; is the run finished?"
        )
    read = [[tuple(place) for place in one] for one in json.loads(read_text(file))["clusters"]]
    clusters = [kept for one in read if (kept := [place for place in one if place in among])]
    if lacking := len(among) - sum(map(len, clusters)):
        raise ParameterError(
            f"compare_with names {folder}, which lacks {lacking} of the {len(among)} mentions of {split}; "
            "compare runs on one corpus and kind, whose topics hold those of this run"
        )
    return clusters
