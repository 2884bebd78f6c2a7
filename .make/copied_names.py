"""How often a language model fills a blank with the name that only the other report has:

    python .make/copied_names.py CLUSTERS MODEL [MODEL ...] --json FILE

CLUSTERS is a corpus of notebook 01, of which a split is read. Of each cluster two reports are read, up to
`--words` words of each. A name is a capitalised word after a word in small letters, so that no sentence
begins with it. One that stands once in its report and also in the other is hidden, at most `--names` in a
cluster, and `fill` is asked for it, once with both reports and once with its own alone: what is found alone
was guessed. It is found if it is the first word of `fill`, whatever the case of letters. Intervals and tests
resample clusters; a model with both reports is compared with itself without, and with the next model.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from cdlm_lab.apply.language import MASK, LanguageModel
from cdlm_lab.apply.loading import load
from cdlm_lab.data.clusters import open_corpus
from cdlm_lab.data.files import replaced_file
from cdlm_lab.data.records import Cluster
from cdlm_lab.data.splits import SPLITS
from cdlm_lab.errors import print_any_sign
from cdlm_lab.progress import Progress
from cdlm_lab.runs.evaluation import Measure, Planned, evaluate
from cdlm_lab.runs.items import UNTRAINED, items_of
from cdlm_lab.runs.report import git_commit

FOUND = Measure("found")
ALONE = "{model}, its report alone"
_NAME = re.compile(r"(?<=[a-z]\s)[A-Z][a-z]{2,}\b")
_WORD = re.compile(r"\S+")


class HiddenName(NamedTuple):
    """A name that is hidden in one report of a cluster and stands in the other."""

    cluster: str
    name: str
    blanked: str  # the report with a blank in its place
    other: str


def hidden_names(clusters: Iterable[Cluster], *, words: int, most: int) -> Iterator[HiddenName]:
    """At most `most` names of each cluster, drawn by the id of the cluster; `words`: read of each report."""
    for cluster in clusters:
        texts = [_beginning(document.text, words) for document in cluster.documents[:2]]
        found = [
            HiddenName(cluster.id, name[0], f"{own[: name.start()]}{MASK}{own[name.end() :]}", other)
            for own, other in (texts, texts[::-1])
            for name in _NAME.finditer(own)
            if _times(name[0], own) == 1 and _times(name[0], other)
        ]
        yield from random.Random(cluster.id).sample(found, min(most, len(found)))


def _beginning(text: str, words: int) -> str:
    ends = [word.end() for word in _WORD.finditer(text)][:words]
    return text[: ends[-1]] if ends else ""


def _times(name: str, text: str) -> int:
    return len(re.findall(rf"\b{name}\b", text, re.IGNORECASE))


def found_names(model: LanguageModel, names: Sequence[HiddenName], *, system: str) -> pd.DataFrame:
    """Items: whether a model finds each name with both reports, and with its own alone."""
    found: dict[str, list[bool]] = {system: [], ALONE.format(model=system): []}
    with Progress(total=2 * len(names), desc=system, unit="blank") as bar:
        for one in names:
            for hits, texts in zip(found.values(), ([one.blanked, one.other], [one.blanked]), strict=True):
                words = model.fill(texts)[0].words
                hits.append(bool(words) and words[0].word.lower() == one.name.lower())
                bar.update(1)
    form = {"split": "", "seed": UNTRAINED, "clusters": [one.cluster for one in names]}
    each = [f"{one.cluster}/{one.name}" for one in names]
    return pd.concat(
        items_of({FOUND.name: hits}, system=name, items=each, **form) for name, hits in found.items()
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write with `--json`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clusters")
    parser.add_argument("models", nargs="+", metavar="model", help="as `load` takes it, or NAME=MODEL")
    parser.add_argument("--split", choices=SPLITS, default="test")
    parser.add_argument("--clusters", dest="size", type=int, default=0, help="most clusters; 0 = all")
    parser.add_argument(
        "--words", type=int, default=120, help="of each report, so that both fit in 512 pieces"
    )
    parser.add_argument("--names", type=int, default=1, help="most names of a cluster")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    print_any_sign()
    models = dict(one.split("=", 1) if "=" in one else (one, one) for one in given.models)
    clusters = open_corpus(given.clusters, split=given.split, size=given.size)
    names = [*hidden_names(clusters, words=given.words, most=given.names)]
    commit = git_commit()  # that of the code which runs, even if another is checked out meanwhile
    items = pd.concat(found_names(load(path), names, system=name) for name, path in models.items())
    planned = [Planned(a=a, b=b, measure=FOUND.name, split="", family="models") for a, b in pairwise(models)]
    planned += [
        Planned(a=one, b=ALONE.format(model=one), measure=FOUND.name, split="", family="alone", beside=False)
        for one in models
    ]
    made = evaluate(items, [FOUND], planned)
    print(made.frame.to_string(index=False), made.comparison_frame.to_string(index=False), sep="\n\n")
    if given.json:
        told = {"scores": [asdict(row) for row in made.rows], "comparisons": made.comparisons}
        with replaced_file(given.json) as file:
            json.dump({**told, "names": len(names), "git_commit": commit}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
