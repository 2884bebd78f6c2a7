"""Multi-News (Fabbri et al. 2019) in its official files: `train.txt.src`, `val.txt.src`, `test.txt.src`.

One cluster a line, documents joined by a separator. Both conventions are read: `|||||` (also in
`*.src.cleaned`) and `story_separator_special_tag`, with or without one more at the end of the line. That last
one begins no document; the released CDLM code takes it for one, and so lets clusters of two documents pass
for three. NEWLINE_CHAR tokens become line breaks. Empty documents between two separators, and blank lines (a
cluster of one empty document), are kept: they are dropped and counted when clusters are tokenised, and line
numbers stay those of the summaries in `*.tgt`. (Elsewhere a cluster without any text is a fault; a published
file with such lines has to be read as it is.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cdlm_lab.data.files import DataError, entries, plain_name, plain_stem, read_lines
from cdlm_lab.data.records import Cluster, Document
from cdlm_lab.data.splits import SPLIT_NAMES, Split, hashed_split

ENDINGS = (".src", ".src.cleaned")
_SEPARATOR = re.compile(r"\|{5}|story_separator_special_tag")
_LINE_BREAK = "NEWLINE_CHAR"


def is_multi_news_name(path: str | Path) -> bool:
    """True for `*.src` and `*.src.cleaned`, compressed or not."""
    return plain_name(path).endswith(ENDINGS)


def multi_news_files(folder: str | Path, *, split: Split | None = None) -> list[Path]:
    """The files of a folder with the clusters of `split` (None: of all), by name; [] if there are none.

    Raises:
        DataError: two files for the same split, such as `train.txt.src` beside `train.txt.src.cleaned`.
    """
    found: dict[Split, Path] = {}
    for path in entries(folder):
        own_split = SPLIT_NAMES.get(plain_stem(path))
        if own_split is None or not path.is_file() or not is_multi_news_name(path):
            continue
        if own_split in found:
            what = f"{found[own_split].name} and {path.name} both hold the {own_split} split"
            raise DataError(folder, what, "give the path of one file, or move the other away", field="folder")
        found[own_split] = path
    return [path for own_split, path in found.items() if split in (None, own_split)]


def read_multi_news(path: str | Path, *, split: Split | None = None) -> Iterator[Cluster]:
    """Clusters of a folder of official files, or of a single file; `split` None for those of every split.

    The names in a folder say the split; clusters of a single file are split 90/5/5 by a hash of their ids
    (`train-0` for the first line of `train.txt.src`).

    Raises:
        DataError: a folder without a file for the split, a file without any separator, and as
            `files.read_lines`.
    """
    path = Path(path)
    if not path.is_dir():
        clusters = _read_file(path)
        yield from (cluster for cluster in clusters if split in (None, hashed_split(cluster.id)))
        return
    files = multi_news_files(path, split=split)
    if not files:
        name = {"validation": "val", None: "train"}.get(split, split)
        what = f"no file for the split {split}" if split else "no file for any split"
        raise DataError(path, what, f"put {name}.txt.src there", field="folder")
    for file in files:
        yield from _read_file(file)


def _read_file(path: Path) -> Iterator[Cluster]:
    separated = False
    for number, line in read_lines(path):
        cluster_id = f"{plain_stem(path)}-{number - 1}"
        pieces = _SEPARATOR.split(line)
        separated = separated or len(pieces) > 1
        if len(pieces) > 1 and not pieces[-1].strip():
            pieces.pop()
        documents = tuple(
            Document(id=f"{cluster_id}-{index}", text=_with_line_breaks(piece))
            for index, piece in enumerate(pieces)
        )
        yield Cluster(id=cluster_id, documents=documents)
    if not separated:
        remedy = "separate the documents of a line with ||||| or story_separator_special_tag"
        raise DataError(path, "no line has more than one document", remedy, field="separator")


def _with_line_breaks(piece: str) -> str:
    return "\n".join(line.strip(" \t") for line in piece.split(_LINE_BREAK)).strip()
