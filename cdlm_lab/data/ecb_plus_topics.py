"""ECB+ (Cybulska and Vossen 2014) as clusters of plain text, without its annotation, for pre-training.

Folder: `ECB+/<topic>/<topic>_<number>ecb[plus].xml`, given itself, or as the sub-folder `ECB+` or
`ECB+_LREC2014/ECB+` of what is given. A cluster is a sub-topic, "1ecb" or "1ecbplus": the two halves of a
topic tell of different events of the same kind. `by_topic` makes one cluster of both, "1". Tokens are joined
by spaces, one sentence a line. Sentence 0 of the `ecbplus` files is the address of the page, cut into tokens;
it is left out. Topics are split as in appendix A.2 of the CDLM paper (topics 15 and 17 do not exist).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from cdlm_lab.data.ecb_plus_xml import read_ecb_xml
from cdlm_lab.data.files import DataError, entries
from cdlm_lab.data.records import Cluster, Document
from cdlm_lab.data.splits import Split

TOPICS: dict[Split, frozenset[int]] = {
    "train": frozenset([1, 3, 4, *range(6, 12), 13, 14, 15, 16, 17, 19, 20, 22, *range(24, 34)]),
    "validation": frozenset([2, 5, 12, 18, 21, 23, 34, 35]),
    "test": frozenset(range(36, 46)),
}
_FILE_NAME = re.compile(r"(\d+)_(\d+)(ecb|ecbplus)\.xml")
_NAME_REMEDY = "keep the official names, <topic>/<topic>_<number>ecb.xml or ...ecbplus.xml, topics 1 to 45"


def ecb_plus_files(path: str | Path, *, split: Split | None = None) -> list[Path]:
    """The XML files of the topics of `split` (None: of all) by topic, half and number; [] if there are none.

    Raises:
        DataError: an XML file in a topic folder is not named as in the corpus.
    """
    below = (Path(path) / name for name in ("ECB+", "ECB+_LREC2014/ECB+"))
    root = next((folder for folder in below if folder.is_dir()), Path(path))
    keys = {
        file: _key(file)
        for topic in entries(root)
        if topic.is_dir() and topic.name.isdecimal()
        for file in entries(topic)
        if file.suffix == ".xml"
    }
    return sorted(
        (file for file in keys if split is None or keys[file][0] in TOPICS[split]), key=keys.__getitem__
    )


def read_ecb_plus_topics(
    path: str | Path, *, split: Split | None = None, by_topic: bool = False
) -> Iterator[Cluster]:
    """Sub-topics, or topics, in order of topic; `split` None for those of every split.

    Raises:
        DataError: no such files, a file name or XML that is not as in the corpus, and as `files.read_lines`.
    """
    files = ecb_plus_files(path, split=split)
    if not files:
        what = f"no ECB+ files for the split {split}" if split else "no ECB+ files"
        raise DataError(path, what, _NAME_REMEDY, field="folder")
    for cluster_id, members in groupby(files, key=lambda file: _cluster_id(file, by_topic=by_topic)):
        yield Cluster(id=cluster_id, documents=tuple(_read_document(file) for file in members))


def _cluster_id(file: Path, *, by_topic: bool) -> str:
    topic, half, _ = _key(file)
    return str(topic) if by_topic else f"{topic}{half}"


def _key(file: Path) -> tuple[int, str, int]:
    """(topic, half, number) of a file."""
    match = _FILE_NAME.fullmatch(file.name)
    topic = int(match[1]) if match else 0
    if not match or match[1] != file.parent.name or not any(topic in topics for topics in TOPICS.values()):
        raise DataError(file, "not the name of an ECB+ file", _NAME_REMEDY, field="file name")
    return topic, match[3], int(match[2])


def _read_document(file: Path) -> Document:
    xml = read_ecb_xml(file)
    lines: list[str] = []
    for sentence, tokens in groupby(xml.root.iter("token"), xml.sentence):
        if sentence or not file.stem.endswith("plus"):
            lines.append(" ".join(token.text.strip() for token in tokens if token.text))
    if not any(lines):
        remedy = "copy the file again from the official release"
        raise xml.error("no token has any text", remedy, field="token")
    spans, start = [], 0
    for line in lines:
        spans.append((start, start + len(line)))
        start += len(line) + 1
    return Document(id=file.stem, text="\n".join(lines), sentences=tuple(spans))
