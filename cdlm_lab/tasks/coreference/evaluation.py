"""Scores of clusterings of the same mentions, beside baselines and the clusters of other runs.

Topics are what intervals and tests take as independent; those that share a cluster, of the key or of one of
the two systems that are compared, count as one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cdlm_lab.data.convert.conll import write_conll
from cdlm_lab.data.files import read_text
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, Topic
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.evaluation import Measure
from cdlm_lab.runs.items import items_of
from cdlm_lab.tasks.coreference import metrics
from cdlm_lab.tasks.coreference.clustering import clusters_of
from cdlm_lab.tasks.coreference.examples import MentionGroup

Clusters = Sequence[Sequence[tuple[str, int, int]]]  # each a list of mentions: document, start, end
BASELINES = ("singletons", "one cluster", "same head word")


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


def measures() -> tuple[Measure, ...]:
    """Recall, precision and F1 of MUC, B-cubed, CEAFe and LEA, CoNLL's means of the first three, and those of
    mentions that were found; `n` of CoNLL F1 is the number of topics that are scored together."""
    of = {}
    for name in (*metrics.CONLL, "lea"):
        recall, precision = (Measure(f"{name}/{part}") for part in metrics.SCORE_PARTS[:2])
        of[name] = recall, precision, Measure(f"{name}/f1", "f1", of=(precision.name, recall.name))
    means = zip(*(of[name] for name in metrics.CONLL), strict=True)
    conll = [
        Measure(f"conll/{part}", "mean", of=of_three, counts="topics")
        for part, of_three in zip(metrics.SCORE_PARTS, means, strict=True)
    ]
    found = [Measure(f"mentions/{part}") for part in metrics.SCORE_PARTS[:2]]
    f1 = Measure("mentions/f1", "f1", of=(found[1].name, found[0].name))
    return (*chain.from_iterable(of.values()), *conll, *found, f1)


def items_of_clusters(
    key: Clusters,
    responses: Mapping[tuple[str, int], Clusters],
    *,
    groups: Sequence[MentionGroup],
    topic_of: Mapping[str, str],
    singletons: bool,
    mentions: bool = False,
    **place: str,
) -> pd.DataFrame:
    """The table of items of systems that cluster the same mentions; an item is a topic, or several that a
    cluster or a group crosses. `topic_of`: document -> topic; `mentions`: True = with those that were found,
    singletons included; `place`: split and group of the rows."""
    together = [[mention.place for mention in group.mentions] for group in groups]
    sides = (key, together, *responses.values())
    unit_of = metrics.joined_topics(*sides, topic=lambda place: topic_of[place[0]])
    tables = []
    for (system, seed), response in responses.items():
        parts = metrics.parts_by_topic(key, response, topic=unit_of, singletons=singletons)
        values: dict[str, Any] = {"topics": np.ones(len(parts))}
        for measure in (*metrics.CONLL, "lea"):
            numbers = np.array([astuple(one[measure]) for one in parts.values()]).T
            values |= {f"{measure}/recall": (*numbers[:2],), f"{measure}/precision": (*numbers[2:],)}
        if mentions:
            gold, found = ({one for each in side for one in each} for side in (key, response))
            counts = [Counter(map(unit_of, some)) for some in (gold & found, gold, found)]
            right, *of = (np.array([float(count[unit]) for unit in parts]) for count in counts)
            values |= {"mentions/recall": (right, of[0]), "mentions/precision": (right, of[1])}
        names = ["+".join(sorted(unit)) for unit in parts]
        tables.append(items_of(values, system=system, seed=seed, items=names, **place))
    return pd.concat(tables)


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


def read_pooled(folder: Path, kind: str) -> list[list[list[tuple]]]:
    """The key and the clusters of test of a run on the other kind, each mention with its kind. Raises
    ParameterError if it is not finished, or is on the same kind."""
    file = folder / "clusters-test.json"
    read = json.loads(read_text(file)) if file.is_file() else {}
    if (other := read.get("kind", kind)) == kind:
        what = (
            f"a run on {kind} mentions too" if "kind" in read else f"without a {file.name} that says its kind"
        )
        raise ParameterError(f"pooled_with is {str(folder)!r}, {what}; name a finished one on the other kind")
    return [[[(*place, other) for place in one] for one in read[side]] for side in ("key", "clusters")]
