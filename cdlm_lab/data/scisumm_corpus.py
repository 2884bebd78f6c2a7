"""Papers of CL-SciSumm and ScisummNet (see `scisumm`) as plain texts for pre-training.

A cluster is one paper by itself, each paper once: a paper that cites one of the collection is cited in turn,
so that clusters of a paper and those that cite it would overlap. The text is the title, and then a line for
the abstract and for each section, whose sentences are those of the release; headings of sections are left
out. One sentence before the abstract or first section is the title; more of them (62 papers of ScisummNet are
without sections) are a line of their own. Of several texts of a paper the one that `scisumm` prefers is read.
Papers go to train, validation and test by a hash of their ids (90/5/5).

Both collections are read as a whole before the first paper is given (150 MB), since archives hold the papers
in another order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate, chain
from pathlib import Path

from cdlm_lab.data.records import Cluster, Document
from cdlm_lab.data.scisumm_archive import NET, TASK, SciSummFiles
from cdlm_lab.data.scisumm_papers import letters_of, paper_id, parse_paper
from cdlm_lab.data.splits import Split, hashed_split

# Without the tag's end, which a heading such as "a < b" would hide.
_SECTION = re.compile(r"(?=</?(?:ABSTRACT|(?:SUB)?SECTION)\b)")
_SAME_START = 100  # letters by which a paper under another name is known again, as in `scisumm`


def scisumm_files(folder: str | Path, *, split: Split | None = None) -> list[Path]:
    """The archives of a folder, or the papers' XML where unpacked, sorted; [] if it has neither.

    Any of them may hold papers of any split.
    """
    files: list[Path] = []
    for name in (TASK, NET):
        archive, unpacked = Path(folder) / f"{name}.tar.xz", Path(folder) / name
        files += [archive] if archive.is_file() else sorted(unpacked.glob("**/*_XML/*.xml"))
    return files


def read_scisumm_corpus(folder: str | Path, *, split: Split | None = None) -> Iterator[Cluster]:
    """Clusters of one paper each, reference papers first; `split` None for those of every split.

    Raises:
        DataError: neither collection is there, or as `scisumm_archive.read_collection`.
    """
    papers = [(paper_id(name, place[1]), text) for place, name, text in SciSummFiles(Path(folder)).papers]
    known: set[str] = set()
    # Papers with an id of the Anthology first: one that a folder names in its own way may be one of them.
    for identifier, source in sorted(papers, key=lambda paper: _is_own_name(paper[0])):
        parts = [_sentences(identifier, part) for part in _SECTION.split(source)]
        start = letters_of(" ".join(list(chain(*parts))[2:4]))
        copied = identifier in known or (_is_own_name(identifier) and start in known)
        known |= {identifier, start} if len(start) >= _SAME_START else {identifier}
        if any(parts) and not copied and split in (None, hashed_split(identifier)):
            yield Cluster(id=identifier, documents=(_document(identifier, parts),))


def _is_own_name(identifier: str) -> bool:
    """Whether the name of a paper means something in its folder alone: C04-1089/name."""
    return "/" in identifier


def _sentences(identifier: str, part: str) -> tuple[str, ...]:
    paper = parse_paper(identifier, part)
    return paper.document.sentences if paper else ()


def _document(identifier: str, parts: list[tuple[str, ...]]) -> Document:
    """What stands before the first section, and then each section, as lines."""
    lines = [part for part in parts if part]
    lengths = [len(sentence) + 1 for sentence in chain(*lines)]  # with the blank or line break behind it
    ends = list(accumulate(lengths))
    return Document(
        id=identifier,
        text="\n".join(" ".join(line) for line in lines),
        title=parts[0][0] if len(parts[0]) == 1 else None,
        sentences=tuple((end - length, end - 1) for length, end in zip(lengths, ends, strict=True)),
    )
