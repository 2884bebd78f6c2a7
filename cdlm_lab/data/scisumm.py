"""CL-SciSumm 2018 and ScisummNet 2019: papers of the ACL Anthology that cite each other, as full texts.

A folder with `cl_scisumm_2018.tar.xz`, `scisummnet_2019.tar.xz` and `scisummnet_citation_pairs.tsv`, or with
the unpacked folders instead of the archives; made from https://github.com/WING-NUS/scisumm-corpus, CC BY 4.0.
Links are of three sources:

    cl-scisumm-train  a paper in Citance_XML cites the reference paper of its folder. Annotators gave the
                      sentences of the passage that cites (Citation Offset; its context may be among them) and
                      those of the cited paper that are meant (Reference Offset).
    cl-scisumm-test   the same, by three or four annotators; sentences that any of them gave are kept. They
                      say which text cites but not where, so that it is located in the paper by its letters.
    scisummnet        pairs of the TSV, both papers of which are there. The citing text is located in the same
                      way; which sentences it means was aligned automatically in the release, and is left out.

Sentences are those of the release, without empty ones; there are errors of character recognition in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Literal, get_args

from cdlm_lab.data.citation_marks import without_citations
from cdlm_lab.data.document_links import DocumentLink
from cdlm_lab.data.document_pairs import PairDocument
from cdlm_lab.data.files import DataError, read_lines
from cdlm_lab.data.scisumm_archive import NET, TEST, TRAINING, Place, SciSummFiles
from cdlm_lab.data.scisumm_citances import (
    Citance,
    csv_citances,
    json_citances,
    line_citances,
)
from cdlm_lab.data.scisumm_papers import Paper, file_stem, letters_of, paper_id, parse_paper

PAIRS = "scisummnet_citation_pairs.tsv"
SOURCES = ("cl-scisumm-train", "cl-scisumm-test", "scisummnet")
Blanked = Literal["all", "citing", "none"]

_SAME_START = 100  # letters after the title by which a paper under another name is known again


@dataclass(frozen=True, slots=True, kw_only=True)
class SciSumm:
    """Papers by id, in order, and links from citing to cited ones.

    `replaced`: file -> how many byte sequences in it were not UTF-8. `unplaced`: annotations (file:line)
    whose citing passage was not found in the text of the paper. `passed_over`: files and annotations (path:
    why) that say nothing: links, papers without sentences, annotations of papers that are not there.
    """

    papers: Mapping[str, PairDocument]
    links: tuple[DocumentLink, ...]
    replaced: Mapping[str, int]
    unplaced: tuple[str, ...]
    passed_over: tuple[str, ...] = ()


def read_scisumm(root: str | Path, *, blanked: Blanked = "all") -> SciSumm:
    """All papers and links; each of the two collections may be missing.

    A paper of which there are several texts is kept once, by preference as a reference paper; sentence
    numbers that refer to another text of it are found again by the letters of the sentence. A paper without
    an id of the Anthology is called "C04-1089/name", after the folder it is in, unless another paper begins
    with the same text, which is it then.

    Args:
        root: the folder.
        blanked: in which sentences citations are taken out (see `citation_marks`), lest the names or the
            mere brackets give the citing sentence away: "all" of them; "citing", those known to cite in any
            of the links, which is what Zhou et al. 2020 did, though a sentence without citation beside others
            that have theirs gives it away as well; "none". The text of a paper is the same in all its links.

    Raises:
        ValueError: an unknown `blanked`.
        DataError: neither collection is there, a damaged archive or one with members outside its folder,
            a malformed annotation, a reference paper that is missing or has no sentences, a pair of papers
            that are not there; and as `files.read_lines`.
    """
    if blanked not in get_args(Blanked):
        raise ValueError(f"blanked is {blanked!r}; choose one of {', '.join(get_args(Blanked))}")
    files = SciSummFiles(Path(root))
    library = _Library(files)
    unplaced: list[str] = []
    links = [
        link
        for links in (_task_links(files, library, unplaced), _net_links(files, library, unplaced))
        for link in links
    ]
    merged: dict[tuple[str, str], DocumentLink] = {}
    for link in links:
        known = merged.get(link.documents)
        merged[link.documents] = _merged(known, link) if known else link
    kept = tuple(sorted(merged.values(), key=lambda link: (SOURCES.index(link.source), link.documents)))
    return SciSumm(
        papers=MappingProxyType(_blanked(library.kept, kept, blanked)),
        links=kept,
        replaced=MappingProxyType(files.replaced),
        unplaced=tuple(unplaced),
        passed_over=tuple(files.passed_over),
    )


class _Library:
    """Papers by id, `kept`, and their texts by place and name of the file, `texts`."""

    def __init__(self, files: SciSummFiles) -> None:
        self.kept: dict[str, Paper] = {}
        self.texts: dict[tuple[Place, str], Paper] = {}
        parsed = []
        for place, name, source in files.papers:
            if paper := parse_paper(paper_id(name, place[1]), source):
                parsed.append((place, name, paper))
            else:
                file = PurePosixPath(name).name
                files.passed_over.append(f"{files.folder_of(place)}: no sentences in {file}")
        starts: dict[str, str] = {}
        for named in (True, False):  # papers with an id of the Anthology before the others
            for place, name, paper in parsed:
                identifier = paper.document.id
                if named == ("/" in identifier):
                    continue
                start = letters_of(" ".join(paper.document.sentences[2:4]))
                if len(start) >= _SAME_START:
                    known = starts.setdefault(start, identifier)
                    identifier = identifier if named else known
                if identifier != paper.document.id:
                    document = PairDocument(id=identifier, sentences=paper.document.sentences)
                    paper = Paper(
                        document=document, numbers=paper.numbers, letters=paper.letters, ends=paper.ends
                    )
                self.kept.setdefault(identifier, paper)
                self.texts[place, paper_id(name, place[1])] = paper

    def sentences(self, paper: Paper, sids: Iterable[int]) -> set[int]:
        """Places in the kept text of the sentences that have these numbers in `paper`."""
        kept, places = self.kept[paper.document.id], set()
        for sid in sids:
            if (number := paper.numbered(sid)) is None:
                continue
            places.update([number] if kept is paper else kept.containing(paper.document.sentences[number]))
        return places


def _task_links(files: SciSummFiles, library: _Library, unplaced: list[str]) -> Iterator[DocumentLink]:
    """Links of CL-SciSumm: each paper of a folder cites its reference paper, annotated or not."""
    for dataset, source, read in (
        (TRAINING, SOURCES[0], line_citances),
        (TEST, SOURCES[1], csv_citances),
    ):
        citing: dict[Place, dict[str, Paper]] = {}
        for (place, identifier), paper in library.texts.items():
            if place[0] == dataset and identifier != place[1]:
                citing.setdefault(place, {})[identifier] = paper
        for place in sorted({*citing, *(place for place in files.annotations if place[0] == dataset)}):
            citances: dict[str, list[Citance]] = {}
            for citance in chain.from_iterable(
                read(file, text) for file, text in files.annotations.get(place, [])
            ):
                citances.setdefault(paper_id(citance.citing, place[1]), []).append(citance)
            _check_place(files, library, place, citances)
            cited = library.texts[place, place[1]]
            for identifier, paper in sorted(citing.get(place, {}).items()):
                if cited.document.id != paper.document.id:
                    given = citances.get(identifier, [])
                    yield _link(library, paper, cited, given, source=source, unplaced=unplaced)


def _check_place(
    files: SciSummFiles, library: _Library, place: Place, citances: Mapping[str, list[Citance]]
) -> None:
    """Refuse a folder without a reference paper, as all its links would be lost; note what else is
    missing."""
    folder = files.folder_of(place)
    if (place, place[1]) not in library.texts:
        what = f"no Reference_XML/{place[1]}.xml in it, or no sentences in that"
        raise DataError(folder, what, "copy the folder again, or remove it", field="folder")
    if place not in files.annotations:
        files.passed_over.append(f"{folder}: no annotation")
    for identifier, given in citances.items():
        if (place, identifier) not in library.texts:
            files.passed_over += (f"{one.file}:{one.line}: no text of {identifier}" for one in given)


def _net_links(files: SciSummFiles, library: _Library, unplaced: list[str]) -> Iterator[DocumentLink]:
    """Links of ScisummNet: the pairs of the TSV."""
    if not any(place[0] == NET for place, _ in library.texts):
        return
    path, citances = files.root / PAIRS, {}
    for line, text in read_lines(path):
        if line == 1 or not text.strip():
            continue
        columns = text.split("\t")
        if len(columns) != 2 or columns[0] == columns[1]:
            remedy = "write the ids of two papers with a tab between them"
            raise DataError(path, f"{text[:60]!r} is not a pair", remedy, line=line, field="row")
        papers = [library.texts.get(((NET, identifier), identifier)) for identifier in columns]
        for identifier, paper in zip(columns, papers, strict=True):
            if paper is None:
                remedy = f"add it to {NET}, or leave the pair out"
                raise DataError(path, f"no text of {identifier[:60]}", remedy, line=line, field="row")
        place = NET, columns[1]
        if place not in citances:
            found = (json_citances(*item) for item in files.annotations.get(place, []))
            citances[place] = [citance for group in found for citance in group]
        given = [citance for citance in citances[place] if file_stem(citance.citing) == columns[0]]
        yield _link(library, *papers, given, source=SOURCES[2], unplaced=unplaced)


def _link(
    library: _Library,
    citing: Paper,
    cited: Paper,
    citances: Iterable[Citance],
    *,
    source: str,
    unplaced: list[str],
) -> DocumentLink:
    kept, ours, theirs, gold = library.kept[citing.document.id], set(), set(), "annotated"
    for citance in citances:
        found = library.sentences(citing, citance.sentences)
        if not citance.sentences:
            gold = "located"
            found = next((hit for text in citance.passages if (hit := kept.containing(text))), ())
        if not found:
            unplaced.append(f"{citance.file}:{citance.line}")
        ours.update(found)
        theirs.update(library.sentences(cited, citance.cited))
    return DocumentLink(
        first=citing.document.id,
        second=cited.document.id,
        source=source,
        in_first=tuple(sorted(ours)) or None,
        in_second=tuple(sorted(theirs)) or None,
        gold=gold if ours else "",
    )


def _merged(known: DocumentLink, link: DocumentLink) -> DocumentLink:
    """What two annotations of one link say together; the source is that of the first."""
    return replace(
        known,
        in_first=tuple(sorted({*(known.in_first or ()), *(link.in_first or ())})) or None,
        in_second=tuple(sorted({*(known.in_second or ()), *(link.in_second or ())})) or None,
        gold=known.gold or link.gold,
    )


def _blanked(
    papers: Mapping[str, Paper], links: Iterable[DocumentLink], blanked: Blanked
) -> dict[str, PairDocument]:
    citing: dict[str, set[int]] = {}
    for link in links:
        citing.setdefault(link.first, set()).update(link.in_first or ())
    documents = {}
    for identifier in sorted(papers):
        document = papers[identifier].document
        chosen = {
            "all": set(range(len(document.sentences))),
            "citing": citing.get(identifier, set()),
            "none": (),
        }
        sentences = (
            without_citations(sentence) if number in chosen[blanked] else sentence
            for number, sentence in enumerate(document.sentences)
        )
        documents[identifier] = PairDocument(id=identifier, sentences=tuple(sentences))
    return documents
