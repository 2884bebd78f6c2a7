"""Mine a pile of articles for clusters: from a file to a file. `cdlm_lab.mine`, `cdlm-lab mine`."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cdlm_lab.data import files
from cdlm_lab.data.files import DataError, named, replaced_file
from cdlm_lab.mining.articles import Article, pile_of, read_pile
from cdlm_lab.mining.clusters import Mined, MineSettings, find_clusters
from cdlm_lab.mining.dates import iso
from cdlm_lab.mining.parts import find_clusters_in_parts
from cdlm_lab.parameters import ParameterError


def read_apart(path: str | Path, splits: Collection[str] = ()) -> list[Article]:
    """The articles of a file of clusters (`documents`, or `docs` as in AllSides' files) that are to be kept
    apart; `splits`: only those of clusters whose "split" is among these. Raises DataError: there are none."""
    documents = []
    for record in files.read_json_lines(files.home_path(path)):
        if not splits or record.fields.get("split") in splits:
            within = record.fields.get("documents") or record.fields.get("docs") or ()
            documents += [
                replace(record, fields=one if isinstance(one, dict) else {"text": one}) for one in within
            ]
    if not documents:
        remedy = "give a .jsonl of clusters, and splits that it has"
        what = f"no cluster of the split {' or '.join(splits)}" if splits else "no cluster"
        raise DataError(path, what, remedy, field="split")
    return pile_of(documents, path).articles


def mine(
    pile: str | Path,
    clusters: str | Path | None = None,
    *,
    apart: str | Path | None = None,
    apart_splits: Sequence[str] = (),
    parts: int = 1,
    more: Sequence[str] = (),
    **chosen: Any,
) -> Mined:
    """Find clusters of articles on one event, and write them as JSON lines that every notebook takes.

    Args:
        pile: JSON lines, CSV, Parquet, a folder of texts, or what `datasets` opens (`articles.SHAPES`).
        clusters: the file to write, `.jsonl`; it appears whole or not at all. None = none is written.
        apart: a file of clusters that are to be judged later: their articles, near duplicates of these, and
            all articles of their dates are left out, with those that have no date. `apart_splits`: only the
            clusters of these splits.
        parts: number of tasks that compare the articles; above 1 they are made by Snakemake, with the
            options `more`, and an interrupted run goes on with the parts that it has.
        chosen: fields of `MineSettings`.

    Raises DataError for a pile that cannot be read, ParameterError for a value that is not possible.
    """
    settings = MineSettings(**chosen)
    target = Path(clusters) if clusters is not None else None
    if target is not None:
        check_target(target)
    judged = read_apart(apart, apart_splits) if apart else ()
    if parts > 1:
        folder = Path(f"{target or Path.cwd() / 'mined'}.parts")
        form = {"folder": folder.absolute(), "parts": parts, "more": more}
        mined = find_clusters_in_parts(read_pile(pile), settings, apart=judged, **form)
    else:
        mined = find_clusters(read_pile(pile), settings, apart=judged)
    if target is not None:
        write_clusters(mined, target)
    return mined


def check_target(file: Path) -> None:
    """Raise ParameterError unless clusters can be written to the file."""
    if not file.name.endswith(".jsonl"):
        raise ParameterError(f"clusters is {str(file)!r}; it must end in .jsonl, as notebooks expect")
    if not file.parent.is_dir():
        what = f"clusters is {str(file)!r}, but there is no folder {file.parent}"
        raise ParameterError(f"{what}; make it first")


def write_clusters(mined: Mined, file: Path) -> None:
    """Write the clusters, one on each line, atomically. Raises ParameterError if there are none."""
    if not mined.clusters:
        what = f"no two of {len(mined.pile):,} articles are of one event"
        if len(mined.pile) < 2:
            raise ParameterError("there is one article; give more, as clusters are made of several")
        if mined.copies:
            what = f"{what}, and {len(mined.copies):,} are near duplicates of others"
        raise ParameterError(f"{what}; lower threshold, or raise days")
    with replaced_file(file) as stream:
        for record in mined.records():
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")


def in_words(mined: Mined, *, shown: int = 3) -> str:
    """What a pile holds: counts, sizes of the clusters, and the titles of some of them."""
    clusters, articles = len(mined.clusters), sum(map(len, mined.clusters))
    apart = f"; {len(mined.apart):,} more kept apart" if mined.apart else ""
    lines = [
        f"{len(mined.pile):,} articles, {mined.undated:,} of them without a date; {len(mined.copies):,} near "
        f"duplicates of others put aside{apart}",
        f"{clusters:,} clusters with {articles:,} articles: "
        + ", ".join(f"{count:,} of {size}" for size, count in sorted(mined.sizes.items())),
    ]
    if mined.undated == len(mined.pile):
        lines.append(
            "no article has a date, so all were compared with all; on dated news that costs 8 points of F1: "
            'give "date" in each line, or name text files as 2018-08-29-name.txt'
        )
    lines += [f"{reason}: {named(places)}" for reason, places in mined.faults.items()]
    middle = [cluster for cluster in mined.clusters if len(cluster) == max(2, min(mined.sizes, default=2))]
    for cluster in middle[:: max(1, len(middle) // shown)][:shown]:
        lines.append("")
        lines += [f"  {headline(article)}" for article in cluster]
    return "\n".join(lines)


def headline(article: Article, *, most: int = 90) -> str:
    """The date, source and title of an article, or the start of its text, on one line."""
    title = " ".join((article.title or article.text[: 2 * most]).split())
    title = title if len(title) <= most else title[: most - 1].rstrip() + "\u2026"
    day = iso(article.day) if article.day is not None else "no date   "
    return files.printable("  ".join(part for part in (day, article.source[:24], title) if part))
