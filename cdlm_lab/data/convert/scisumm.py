"""CL-SciSumm 2018 and ScisummNet 2019: papers of the ACL Anthology that cite each other, as full texts.

Reads a folder with `cl_scisumm_2018.tar.xz`, `scisummnet_2019.tar.xz` and `scisummnet_citation_pairs.tsv`, or
with unpacked folders instead of archives; made from https://github.com/WING-NUS/scisumm-corpus, CC BY 4.0.
Archives are streamed and never unpacked to disk, so that no member can be written outside a folder. Links
come from three sources:

    cl-scisumm-train  a paper in Citance_XML cites the reference paper of its folder. Annotators gave the
                      sentences of the citing passage (Citation Offset, perhaps with its context). Their
                      sentences of the cited paper are not read, as no task uses them.
    cl-scisumm-test   the same, by three or four annotators; sentences that any of them gave are kept. They
                      quote the citing text without its position, so it is located by matching its letters.
    scisummnet        pairs of the TSV, both papers of which are there. The citing text is located in the same
                      way.

Sentences are those of the release, without empty ones; they contain errors of character recognition (OCR).
"""

from __future__ import annotations

import csv
import html
import io
import lzma
import re
import tarfile
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path, PurePosixPath
from typing import Any

from cdlm_lab.data.files import (
    DataError,
    Fields,
    JsonRecord,
    checked_path,
    is_hidden,
    open_bytes,
    parse_json,
    read_lines,
)
from cdlm_lab.data.records import Cluster, Document, DocumentLink, PairDocument, PassedOver
from cdlm_lab.data.splits import Split, hashed_split
from cdlm_lab.data.words import plain_word

TASK, NET = "cl_scisumm_2018", "scisummnet_2019"
TRAINING, TEST, GOLD = "Training-Set-2018", "Test-Set-2018", "Test-Set-2018-Gold"
PAIRS = "scisummnet_citation_pairs.tsv"
SOURCES = ("cl-scisumm-train", "cl-scisumm-test", "scisummnet")
Place = tuple[str, str]  # set of data, name of a reference paper's folder in it
Member = tuple[str, Place, str, bytes | None]  # name, place, kind, contents (None = not to be read)

_TAG = re.compile(r"<(/?)(S|SECTION|ABSTRACT|PAPER)(\s[^<>]*)?>")
_SID = re.compile(r"""\bsid\s*=[\s"']*(\d{1,9})""")
# Matched without the end of the tag, which a heading such as "a < b" would hide.
_SECTION = re.compile(r"(?=</?(?:ABSTRACT|(?:SUB)?SECTION)\b)")
_ANTHOLOGY_ID = re.compile(r"([A-Z]\d\d-\d{4})(?:-PARSCIT\d*)?", re.IGNORECASE)
_NOT_A_LETTER = re.compile(r"[\W_]+")
_LEAST = 20  # minimum of letters and digits by which a passage can be located
_SAME_START = 100  # minimum of letters after the title by which a paper under another name is recognised


@dataclass(frozen=True, kw_only=True)
class Paper:
    """One text of a paper (one file), without empty sentences."""

    id: str
    source: str
    numbers: tuple[int | None, ...]  # "sid" of each sentence; None where there is none
    sentences: tuple[str, ...]

    @cached_property
    def _letters_and_ends(self) -> tuple[str, list[int]]:
        """The letters and digits of all sentences as one text, and the offset in it where each one ends."""
        letters = [letters_of(sentence) for sentence in self.sentences]
        return "".join(letters), list(accumulate(map(len, letters)))

    def containing(self, passage: str) -> list[int]:
        """The indices of the sentences that a passage spans, located by its letters and digits alone; [] if
        it is not found, is found in several places, or is too short."""
        (letters, ends), wanted = self._letters_and_ends, letters_of(passage)
        start = letters.find(wanted)
        if len(wanted) < _LEAST or start < 0 or letters.find(wanted, start + 1) >= 0:
            return []
        first, last = (bisect_right(ends, place) for place in (start, start + len(wanted) - 1))
        return [number for number in range(first, last + 1) if letters_of(self.sentences[number])]


def parse_paper(identifier: str, source: str) -> Paper | None:
    """Parse the sentences of a file, with entities resolved; None if it has no sentences."""
    sentences = numbered_sentences(source)
    if not sentences:
        return None
    numbers, texts = zip(*sentences, strict=True)
    return Paper(id=identifier, source=source, numbers=numbers, sentences=texts)


def numbered_sentences(source: str) -> list[tuple[int | None, str]]:
    """The "sid" (None without one) and the text of each non-empty sentence."""
    tags = list(_TAG.finditer(source))
    ends = [*(tag.start() for tag in tags[1:]), len(source)]
    sentences = []
    # A sentence ends at the next tag of any kind, as some are not closed.
    for tag, end in zip(tags, ends, strict=False):
        if tag[2] == "S" and not tag[1] and (sentence := plain_text(source[tag.end() : end])):
            sid = _SID.search(tag[3] or "")
            sentences.append((int(sid[1]) if sid else None, sentence))
    return sentences


def plain_text(source: str) -> str:
    """Remove tags and superfluous white space, and resolve entities (some are escaped twice: &amp;lt;)."""
    return " ".join(html.unescape(html.unescape(_TAG.sub(" ", source))).split())


def letters_of(text: str) -> str:
    """The letters and digits of a text, in lower case, without anything else."""
    return _NOT_A_LETTER.sub("", plain_word(text)).lower()


def paper_id(name: str, reference: str) -> str:
    """The id of the paper in a file of a reference paper's folder: its id in the ACL Anthology, if the file
    is named by that, else "C04-1089/file", after the folder, outside of which such names mean nothing."""
    match = _ANTHOLOGY_ID.fullmatch(plain := file_stem(name))
    return match[1].upper() if match else f"{reference}/{plain.lower().replace('_', '-')}"


def file_stem(name: str) -> str:
    """The name of a file that an annotation gives, without folders, ".xml" and ".txt"."""
    return re.sub(r"\.(?:xml|txt)$", "", name.strip().rpartition("/")[2], flags=re.IGNORECASE)


_AGAIN = "copy or download it again"
_PAPERS = ("Reference_XML", "Citance_XML")
_FORMS = tuple(  # collection, pattern of the paths of files in it, and their kind
    (collection, re.compile(form), kind)
    for collection, form, kind in (
        (NET, r"(?P<paper>[^/]+)/Reference_XML/[^/]*\.xml", _PAPERS[0]),
        (NET, r"(?P<paper>[^/]+)/citing_sentences\.json", "annotation"),
        (TASK, rf"{GOLD}/Task1/(?P<paper>[^/_]*?)(?:_[^/]*)?\.csv", "annotation"),
        (TASK, rf"(?P<set>{TRAINING}|{TEST})/(?P<paper>[^/]+)/Reference_XML/[^/]*\.xml", _PAPERS[0]),
        (TASK, rf"(?P<set>{TRAINING}|{TEST})/(?P<paper>[^/]+)/Citance_XML/[^/]*\.xml", _PAPERS[1]),
        (TASK, rf"(?P<set>{TRAINING})/(?P<paper>[^/]+)/annotation/[^/]*\.txt", "annotation"),
        (TASK, rf"(?P<set>{TEST})/(?P<paper>[^/]+)/annotation/[^/]*\.csv", "annotation"),
    )
)


def _role(collection: str, name: str) -> tuple[Place, str] | None:
    """The data set and reference paper that a file belongs to, and its kind; None if it is not to be read."""
    for owner, form, kind in _FORMS:
        if owner == collection and (match := form.fullmatch(name)):
            return (NET if owner == NET else match.groupdict().get("set", TEST), match["paper"]), kind
    return None


def read_collection(root: Path, collection: str) -> Iterator[Member] | None:
    """The relevant files of a collection, with names such as "Test-Set-2018/A00-2018/...": from its archive,
    in archive order, or, if that is missing, from its folder, sorted by name; None if there is neither."""
    archive, folder = root / f"{collection}.tar.xz", root / collection
    if archive.is_file():
        return _from_archive(archive, collection)
    return _from_folder(folder) if folder.is_dir() else None


def _from_archive(archive: Path, collection: str) -> Iterator[Member]:
    try:
        # If tarfile opens the stream itself, it takes a truncated archive for a complete one.
        with open_bytes(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as members:
            for member in members:
                name = _name_in(archive, member.name, collection)
                if role := _role(collection, name):
                    is_file = member.isreg() and not is_hidden(Path(name), Path())
                    file = members.extractfile(member) if is_file else None
                    yield name, *role, file and file.read()
            while stream.read(1 << 20):
                pass
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
        raise DataError(archive, f"the archive is damaged ({error})", _AGAIN, field="archive") from None


def _name_in(archive: Path, name: str, collection: str) -> str:
    checked_path(archive / name)
    folder, *parts = PurePosixPath(name).parts or ("",)
    if folder != collection or ".." in parts:
        what = f"member {name[:200]!r} lies outside the folder {collection}"
        raise DataError(archive, what, _AGAIN, field="archive")
    return "/".join(parts)


def _from_folder(folder: Path) -> Iterator[Member]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not (role := _role(folder.name, name)):
            continue
        content = None
        if path.is_file() and not path.is_symlink() and not is_hidden(path, folder):
            with open_bytes(path) as stream:
                content = stream.read()
        yield name, *role, content


_NEXT_FIELD = re.compile(r"\|\s*+(?=[A-Z][A-Za-z ]{2,30}:)")
_NUMBER = re.compile(r"\d{1,9}")
_FIRST_FIELD = ("Citance Number", "Citation Number")  # one line of the release has the second
_FIELDS = ("Citing Article", "Citation Offset", "Citation Text")
_RELEASE = "copy the file again from the official release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Citance:
    """An annotated passage of a citing paper in which it cites the reference paper."""

    citing: str  # name of the citing paper's file, without ending
    where: str  # file:line of the annotation
    sentences: tuple[int, ...] = ()  # "sid" of the sentences of the passage, if the annotation gives any
    passages: tuple[str, ...]  # the text of the passage, as in the paper and cleaned; either may be missing


class _CitingSentence(Fields):
    citing_paper_id: str
    raw_text: Any = None
    clean_text: Any = None


def line_citances(file: str, text: str) -> Iterator[Citance]:
    """Yield the citances of a file of the training set, with lines of "Field: value | Field: value"."""
    if not text.strip():
        raise DataError(file, "no annotation in it", _RELEASE)
    for line, row in enumerate(text.split("\n"), start=1):
        if not row.strip():
            continue
        parts = (part.partition(":") for part in _NEXT_FIELD.split(row.strip().rstrip("|")))
        fields = {name.strip(): value.strip() for name, _, value in parts}
        if not any(name in fields for name in _FIRST_FIELD):
            what = f"a line without {_FIRST_FIELD[0]}"
            raise DataError(file, what, _RELEASE, line=line, field=_FIRST_FIELD[0])
        yield _citance(file, line, fields, cleaned="Citation Text")


def csv_citances(file: str, text: str) -> Iterator[Citance]:
    """Yield the citances of a CSV of the test set; there is one for each annotator, with answers or without.
    Their "Citation Offset" is always 0, so that `sentences` is empty."""
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        _check_fields(file, 1, rows.fieldnames or ())
        for row in rows:
            fields = {name: value or "" for name, value in row.items() if isinstance(name, str)}
            if "".join(value if isinstance(value, str) else "" for value in row.values()).strip():
                fields["Citation Offset"] = ""
                yield _citance(file, rows.line_num, fields, cleaned="Citation Text Clean")
    except csv.Error as error:
        what, line = f"not CSV ({error})", rows.reader.line_num
        raise DataError(file, what, _RELEASE, line=line, field="row") from None


def json_citances(file: str, text: str) -> Iterator[Citance]:
    """Yield the citances of a `citing_sentences.json`: [{"citing_paper_id": "...", "raw_text": "..."}]."""
    items = parse_json(text, file, remedy=_RELEASE)
    for number, item in enumerate(items if isinstance(items, list) else [None]):
        record = JsonRecord(path=Path(file), line=1, fields=item, within=f"[{number}].")
        fields = record.checked(_CitingSentence).fields
        passages = tuple(text for text in (fields.raw_text, fields.clean_text) if isinstance(text, str))
        yield Citance(citing=fields.citing_paper_id, where=f"{file}:1", passages=passages)


def _citance(file: str, line: int, fields: Mapping[str, str], *, cleaned: str) -> Citance:
    _check_fields(file, line, fields)
    passages = dict.fromkeys(plain_text(fields.get(name, "")) for name in ("Citation Text", cleaned))
    # Numbers are written in many ways, such as "['53', '61']" or "17'"; "NA" has none.
    return Citance(
        citing=file_stem(fields["Citing Article"]),
        where=f"{file}:{line}",
        sentences=tuple(map(int, _NUMBER.findall(fields["Citation Offset"]))),
        passages=tuple(filter(None, passages)),
    )


def _check_fields(file: str, line: int, fields: Collection[str]) -> None:
    if missing := [name for name in _FIELDS if name not in fields]:
        raise DataError(file, "the field is missing", _RELEASE, line=line, field=missing[0])


# All repetitions are bounded, so that matching takes long on no text.
_YEAR = r"(?:1[89]|20)\d\d[a-z]?"
_NAME = r"(?:(?:[Vv]an|[Vv]on|[Dd]er?|[Dd]en|[Ll]a|[Ll]e|[Dd]i)\s){0,2}[^\W\d_a-z][\w'’-]{0,40}"
_AND = r"\s?,?\s(?:and|&)\s"
_NAMES = rf"{_NAME}(?:(?:,\s{_NAME}){{0,4}}{_AND}{_NAME}|,?\set\.?\sal\.?,?)?(?:['’]s?)?"
_CITATION = re.compile(
    rf"""
    (?:\b{_NAMES}\s?)? \(\s?{_YEAR} (?:\s?[,;:][^()]{{0,60}})? \)      # Brill and Wu (2000, 2004), or (2000)
    | \( [^()]{{0,300}} \b{_NAME}[^()]{{0,80}}?\b{_YEAR}\b [^()]{{0,300}} \)  # (see Brill, 1995; Wu, 2004)
    | \[ [^\[\]]{{0,300}} \b{_YEAR}\b [^\[\]]{{0,300}} \]              # [Brill, 1995]
    | \[\s?\d{{1,3}} (?:\s?[,;–-]\s?\d{{1,3}}){{0,20}} \s?\]           # [12], [3, 5-7]
    """,
    re.VERBOSE,
)
_GAP = re.compile(r"\s+([.,;:!?)])")


def without_citations(sentence: str) -> str:
    """Remove the citations of a sentence, so that finding the citing sentence takes understanding it; "." if
    nothing else is left, so that sentences keep their numbers.

    Removed are brackets that hold a name and a year, (see Brill, 1995; Wu et al., 2004) or [Brill, 1995]; a
    year in brackets together with the names before it, as in Brill and Wu (2004); and numbers in square
    brackets, [3, 5-7]. Citations without brackets, those split by the end of a sentence, and names that stand
    apart ("Brill's tagger") remain; some other brackets, such as (Monday, 1995), are removed too.
    """
    bare = _GAP.sub(r"\1", " ".join(_CITATION.sub(" ", sentence).split()))
    return bare if any(character.isalnum() for character in bare) else "."


def read_scisumm(root: Path, *, passed_over: PassedOver) -> Iterator[PairDocument | DocumentLink]:
    """Yield all papers, sorted by id, and then all links; one of the two collections may be missing.

    Of a paper with several texts one is kept, preferably that of a reference paper; sentence numbers of its
    other texts are mapped by the letters of the sentence. A paper without an id of the Anthology is named
    "C04-1089/name", after its folder, unless it begins with the same text as another paper and so is that
    paper. Citations are removed from all sentences: removed only from those known to cite, as in Zhou et al.
    2020, their absence would reveal these sentences. Counted are files and annotations that cannot be used,
    files with bytes that are not UTF-8, and annotations whose citing passage is not found in the paper.
    """
    release = _Release(root, passed_over)
    merged: dict[tuple[str, str], DocumentLink] = {}
    for link in chain(release.task_links(), release.net_links()):
        known = merged.get(link.documents, link)
        merged[link.documents] = replace(known, in_first=_union(known.in_first, link.in_first))
    for name, paper in sorted(release.kept.items()):
        yield PairDocument(id=name, sentences=tuple(map(without_citations, paper.sentences)))
    yield from sorted(merged.values(), key=lambda link: (SOURCES.index(link.source), link.documents))


def collection_files(folder: Path) -> dict[str, Path]:
    """The folder, as the one split that it has; {} if it holds neither collection."""
    present = any((folder / name).is_dir() or (folder / f"{name}.tar.xz").is_file() for name in (TASK, NET))
    return {"": folder} if present else {}


def _union(*numbers: Iterable[int] | None) -> tuple[int, ...] | None:
    """All of these numbers, ascending; None if there are none."""
    return tuple(sorted({*chain.from_iterable(some or () for some in numbers)})) or None


class _Release:
    """The contents of the archives or folders, and what of them could not be used.

    `kept`: papers by id, those with an id of the Anthology first, and among these reference papers first.
    `texts`: (place, id there) -> text of a paper. `annotations`: place -> (path, text) of its files.
    """

    def __init__(self, root: Path, lost: PassedOver) -> None:
        self.root, self.lost = root, lost
        self.kept: dict[str, Paper] = {}
        self.texts: dict[tuple[Place, str], Paper] = {}
        self.annotations: dict[Place, list[tuple[str, str]]] = {}
        present = {name: files for name in (TASK, NET) if (files := read_collection(root, name))}
        if not present:
            remedy = f"put {TASK}.tar.xz or {NET}.tar.xz there"
            raise DataError(root, "neither archives nor folders of CL-SciSumm", remedy, field="folder")
        papers = [paper for name, files in present.items() for paper in self._read(root / name, files)]
        order = (TRAINING, TEST, NET)
        papers.sort(key=lambda paper: (_PAPERS.index(paper[2]), order.index(paper[0][0]), paper))
        self._keep(papers)

    def _read(self, folder: Path, members: Iterable[Member]) -> list[tuple[Place, str, str, str]]:
        """Place, name, kind and text of the papers of a collection; annotations go to `annotations`."""
        papers, links = [], 0
        for name, place, kind, content in members:
            where = str(folder / name)
            if content is None:
                links += 1
                self.lost.add("hidden file, link, or no file at all", where)
                continue
            text = content.decode("utf-8", "replace").replace("\0", "\ufffd").removeprefix("\ufeff")
            if text.count("\ufffd") > content.count("\ufffd".encode()):
                self.lost.add("file with bytes that are not UTF-8, each read as U+FFFD", where)
            if kind == "annotation":
                self.annotations.setdefault(place, []).append((where, text))
            else:
                papers.append((place, name, kind, text))
        if not papers:
            also = f"; {links} links are passed over" if links else ""
            raise DataError(folder, f"no papers in it{also}", _AGAIN, field="collection")
        return papers

    def _keep(self, papers: Iterable[tuple[Place, str, str, str]]) -> None:
        parsed: list[tuple[Place, Paper]] = []
        for place, name, _, source in papers:
            if paper := parse_paper(paper_id(name, place[1]), source):
                parsed.append((place, paper))
            else:
                where = self._folder_of(place) / PurePosixPath(name).name
                self.lost.add("paper without sentences", str(where))
        starts: dict[str, str] = {}
        # A paper with a name of the folder's own may be the same as one with an id of the Anthology.
        for place, paper in sorted(parsed, key=lambda one: "/" in one[1].id):
            name, start = paper.id, letters_of(" ".join(paper.sentences[2:4]))
            known = starts.setdefault(start, name) if len(start) >= _SAME_START else name
            paper = replace(paper, id=known) if "/" in name else paper
            self.kept.setdefault(paper.id, paper)
            self.texts[place, name] = paper

    def _folder_of(self, place: Place) -> Path:
        return self.root / (NET if place[0] == NET else f"{TASK}/{place[0]}") / place[1]

    def task_links(self) -> Iterator[DocumentLink]:
        """Yield the links of CL-SciSumm: each paper cites its folder's reference paper, annotated or not."""
        kinds = (TRAINING, SOURCES[0], line_citances), (TEST, SOURCES[1], csv_citances)
        for dataset, source, read in kinds:
            annotated = (place for place in self.annotations if place[0] == dataset)
            citing: dict[Place, dict[str, Paper]] = {place: {} for place in annotated}
            for (place, identifier), paper in self.texts.items():
                if place[0] == dataset and identifier != place[1]:
                    citing.setdefault(place, {})[identifier] = paper
            for place in sorted(citing):
                citances: dict[str, list[Citance]] = {}
                for file, text in sorted(self.annotations.get(place, [])):
                    for citance in read(file, text):
                        citances.setdefault(paper_id(citance.citing, place[1]), []).append(citance)
                self._check_place(place, citances)
                cited = self.texts[place, place[1]]
                for identifier, paper in sorted(citing[place].items()):
                    if cited.id != paper.id:
                        yield self._link(paper, cited, citances.get(identifier, []), source)

    def _check_place(self, place: Place, citances: Mapping[str, list[Citance]]) -> None:
        """Raise DataError for a folder without a reference paper, as all its links would be lost; record
        other missing things in `lost`."""
        folder = self._folder_of(place)
        if (place, place[1]) not in self.texts:
            what = f"no Reference_XML/{place[1]}.xml in it, or no sentences in that"
            raise DataError(folder, what, "copy the folder again, or remove it", field="folder")
        if place not in self.annotations:
            self.lost.add("reference paper without annotation", str(folder))
        for identifier, annotated in citances.items():
            if (place, identifier) not in self.texts:
                for one in annotated:
                    self.lost.add("annotation of a paper that is not there", f"{one.where}, {identifier}")

    def net_links(self) -> Iterator[DocumentLink]:
        """Yield the links of ScisummNet, the pairs of the TSV. Raises DataError for a row that is no pair."""
        if not any(place[0] == NET for place, _ in self.texts):
            return
        path, citances = self.root / PAIRS, {}
        for line, text in read_lines(path):
            if line == 1 or not text.strip():
                continue
            columns = text.split("\t")
            if len(columns) != 2 or columns[0] == columns[1]:
                remedy = "write the ids of two papers with a tab between them"
                raise DataError(path, f"{text[:60]!r} is not a pair", remedy, line=line, field="row")
            papers = [self.texts.get(((NET, identifier), identifier)) for identifier in columns]
            if None in papers:
                what = f"no text of {columns[papers.index(None)][:60]}"
                raise DataError(path, what, f"add it to {NET}, or leave the pair out", line=line, field="row")
            place = NET, columns[1]
            if place not in citances:
                items = self.annotations.get(place, [])
                citances[place] = list(chain.from_iterable(json_citances(*item) for item in items))
            quoted = [one for one in citances[place] if file_stem(one.citing) == columns[0]]
            yield self._link(*papers, quoted, SOURCES[2])

    def _link(self, citing: Paper, cited: Paper, citances: Iterable[Citance], source: str) -> DocumentLink:
        kept, sentences = self.kept[citing.id], set()
        for citance in citances:
            places = self._places(citing, citance.sentences)
            if not citance.sentences:
                places = next((match for text in citance.passages if (match := kept.containing(text))), [])
            if not places:
                self.lost.add("citing text that is not found in the paper", citance.where)
            sentences.update(places)
        return DocumentLink(first=citing.id, second=cited.id, source=source, in_first=_union(sentences))

    def _places(self, paper: Paper, sids: Iterable[int]) -> list[int]:
        """The indices, in the kept text, of the first sentence of `paper` with each of these numbers."""
        kept, places = self.kept[paper.id], []
        for number in (paper.numbers.index(sid) for sid in sids if sid in paper.numbers):
            places += [number] if kept is paper else kept.containing(paper.sentences[number])
        return places


def read_scisumm_corpus(folder: str | Path, *, split: Split) -> Iterator[Cluster]:
    """Yield clusters of plain text for pre-training, reference papers first.

    A cluster is a single paper, each paper once, as clusters of a paper and those that cite it would overlap.
    The text is the title, followed by one line each for the abstract and the sections, without headings. A
    single sentence before the abstract or first section is the title; several (62 papers of ScisummNet have
    no sections) form a line of their own. A hash of a paper's id decides its split (90/5/5).
    """
    for identifier, paper in _Release(Path(folder), PassedOver()).kept.items():
        if hashed_split(identifier) != split:
            continue
        # The text before the first section, and then each section.
        parts = [[text for _, text in numbered_sentences(part)] for part in _SECTION.split(paper.source)]
        lengths = [len(sentence) + 1 for sentence in chain(*parts)]  # with the space or line break after it
        document = Document(
            id=identifier,
            text="\n".join(" ".join(part) for part in parts if part),
            title=parts[0][0] if len(parts[0]) == 1 else None,
            sentences=tuple(
                (end - length, end - 1) for length, end in zip(lengths, accumulate(lengths), strict=True)
            ),
        )
        yield Cluster(id=identifier, documents=(document,))
