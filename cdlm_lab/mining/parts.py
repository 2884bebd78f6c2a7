"""A large pile in parts: the comparison of articles, whose cost grows with the pile times its days, is made
by several tasks of Snakemake, on this machine or a cluster; reading and linkage are made once.

A part is a number of neighbouring articles in order of time, which are compared with those of the days
before. Each pair is in one part, so the pairs of all parts are those of one run, and so are the clusters.
The folder `CLUSTERS.parts` holds what is done; the same command goes on with it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from scipy.sparse import load_npz, save_npz

from cdlm_lab.data.files import printable, replaced_file, replaced_folder, sha256_of_parts
from cdlm_lab.mining.articles import Article, Pile
from cdlm_lab.mining.clusters import (
    Mined,
    MineSettings,
    days_of,
    find_clusters,
    pairs_among,
    vectors_of,
)
from cdlm_lab.mining.similarity import Pairs
from cdlm_lab.parameters import ParameterError
from cdlm_lab.progress import Progress

SNAKEFILE = Path(__file__).with_name("Snakefile")
PLAN, VECTORS, DAYS, LOG = "plan.json", "vectors.npz", "days.npy", "snakemake.log"
POLL = 0.2  # seconds


def find_clusters_in_parts(
    pile: Pile,
    chosen: MineSettings,
    *,
    folder: Path,
    parts: int,
    apart: Sequence[Article] = (),
    more: Sequence[str] = (),
) -> Mined:
    """As `find_clusters`, with the comparisons in `parts` tasks. `folder`: where they are kept until the end.
    `more`: options for Snakemake, such as `--executor slurm`; by default as many tasks at once as there are
    cores. Raises ParameterError if a task failed."""
    compare = partial(_pairs_in_parts, folder=folder, parts=parts, more=more)
    mined = find_clusters(pile, chosen, apart=apart, compare=compare)
    shutil.rmtree(folder)
    return mined


def _pairs_in_parts(
    articles: Sequence[Article], chosen: MineSettings, *, folder: Path, parts: int, more: Sequence[str]
) -> Pairs:
    """The pairs of `all_pairs`, found by Snakemake."""
    settings = json.dumps(asdict(chosen), sort_keys=True)
    texts = (part for one in articles for part in (one.id, one.title, one.text, str(one.day)))
    identity = sha256_of_parts([settings, str(parts), *texts])
    if not _is_of(folder, identity):
        shutil.rmtree(folder, ignore_errors=True)
        with replaced_folder(folder) as new:
            save_npz(new / VECTORS, vectors_of(articles))
            np.save(new / DAYS, days_of(articles, dates=chosen.dates))
            plan = {"identity": identity, "parts": parts, "settings": asdict(chosen)}
            (new / PLAN).write_text(json.dumps(plan), encoding="utf-8")
    options = more or ["--cores", "all"]
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE), "--directory", str(folder)]
    command += ["--rerun-incomplete", *options, "--config", f"python={sys.executable}", f"parts={parts}"]
    if fault := _run(command, folder, parts):
        raise ParameterError(f"{fault} (see {folder / LOG}); the same command goes on with the parts it has")
    return read_pairs(folder, parts)


def _run(command: Sequence[str], folder: Path, parts: int) -> str:
    """Run Snakemake with a bar of the parts that are done; returns why it failed, "" if it did not."""
    with (folder / LOG).open("w", encoding="utf-8") as log:
        running = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        with Progress(total=parts, desc="comparing articles", unit="part") as bar:
            while (code := running.poll()) is None:
                time.sleep(POLL)
                bar.update(len([*folder.glob("pairs-*.npz")]) - bar.n)
            bar.update(len([*folder.glob("pairs-*.npz")]) - bar.n)
    if not code:
        return ""
    lines = [line.strip() for line in (folder / LOG).read_text(encoding="utf-8").splitlines() if line.strip()]
    fault = next((place for place, line in enumerate(lines) if re.search(r"Error|Exception|error:", line)), 0)
    return f"Snakemake could not finish: {printable(' '.join(lines[fault : fault + 2]))}"


def _is_of(folder: Path, identity: str) -> bool:
    """True if a folder holds parts of these articles with these settings."""
    try:
        return json.loads((folder / PLAN).read_text(encoding="utf-8"))["identity"] == identity
    except (OSError, ValueError, LookupError, TypeError):
        return False


def write_part(folder: Path, number: int) -> None:
    """Write the pairs of a part, numbered from 0."""
    plan = json.loads((folder / PLAN).read_text(encoding="utf-8"))
    days = np.load(folder / DAYS, allow_pickle=False)
    bounds = np.linspace(0, len(days), plan["parts"] + 1).astype(int)
    places = range(bounds[number], bounds[number + 1])
    pairs = pairs_among(load_npz(folder / VECTORS), days, places, MineSettings(**plan["settings"]))
    with replaced_file(folder / f"pairs-{number}.npz", binary=True) as file:
        np.savez(file, **pairs._asdict())


def read_pairs(folder: Path, parts: int) -> Pairs:
    """The pairs of all parts, in the order of one run."""
    read = []
    for number in range(parts):
        with np.load(folder / f"pairs-{number}.npz", allow_pickle=False) as arrays:
            read.append(Pairs(**arrays))
    return Pairs(*(np.concatenate(part) for part in zip(*read, strict=True)))


if __name__ == "__main__":
    write_part(Path(sys.argv[1]), int(sys.argv[2]))
