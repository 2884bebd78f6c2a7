"""CL-SciSumm 2018 and ScisummNet 2019: papers of the ACL Anthology that cite each other, as full texts.

A folder with `cl_scisumm_2018.tar.xz`, `scisummnet_2019.tar.xz` and `scisummnet_citation_pairs.tsv`, or with
the unpacked folders instead of the archives; made from https://github.com/WING-NUS/scisumm-corpus, CC BY 4.0.
Archives are streamed; nothing is written to the disk, so that no member can end up anywhere. Links are of
three sources:

    cl-scisumm-train  a paper in Citance_XML cites the reference paper of its folder. Annotators gave the
                      sentences of the passage that cites (Citation Offset; its context may be among them) and
                      those of the cited paper that are meant (Reference Offset).
    cl-scisumm-test   the same, by three or four annotators; sentences that any of them gave are kept. They
                      quote the text that cites without its place, so that it is located by its letters.
    scisummnet        pairs of the TSV, both papers of which are there. The citing text is located in the same
                      way; which sentences it means was aligned automatically in the release, and is left out.

Sentences are those of the release, without empty ones; there are errors of character recognition in them.
"""

from __future__ import annotations

import csv
import html
import io
import lzma
import re
import tarfile
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, chain
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import IO, Any, Literal, get_args

from cdlm_lab.data.document_links import DocumentLink
from cdlm_lab.data.document_pairs import PairDocument
from cdlm_lab.data.files import (
    DataError,
    Fields,
    JsonRecord,
    checked_path,
    open_bytes,
    parse_json,
    read_lines,
)
from cdlm_lab.data.records import Cluster, Document, Split, hashed_split

_TAG = re.compile(r"<(/?)(S|SECTION|ABSTRACT|PAPER)(\s[^<>]*)?>")
_SID = re.compile(r"""\bsid\s*=[\s"']*(\d{1,9})""")
_ANTHOLOGY_ID = re.compile(r"([A-Z]\d\d-\d{4})(?:-PARSCIT\d*)?", re.IGNORECASE)
_NOT_A_LETTER = re.compile(r"[\W_]+")
LEAST = 20  # letters and digits of a passage that can be told from others


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """One text of a paper, as it stands in one file.

    `numbers`: of its sentences, from their "sid"; None where there is none. `letters`: letters and digits of
    all the sentences, lower-case, without gaps, and `ends`: where in them each sentence ends.
    """

    document: PairDocument
    numbers: tuple[int | None, ...]
    letters: str = field(repr=False)
    ends: tuple[int, ...] = field(repr=False)

    def numbered(self, sid: int) -> int | None:
        """Place of the first sentence of this number."""
        return self.numbers.index(sid) if sid in self.numbers else None

    def containing(self, passage: str) -> tuple[int, ...]:
        """Sentences over which a passage extends, by its letters and digits alone; () if it is not there, in
        several places, or too short to tell."""
        wanted = letters_of(passage)
        start = self.letters.find(wanted)
        if len(wanted) < LEAST or start < 0 or self.letters.find(wanted, start + 1) >= 0:
            return ()
        first, last = (bisect_right(self.ends, place) for place in (start, start + len(wanted) - 1))
        sentences = self.document.sentences
        return tuple(number for number in range(first, last + 1) if letters_of(sentences[number]))


def parse_paper(identifier: str, source: str) -> Paper | None:
    """The sentences of a file, entities resolved; None if it has none. Empty sentences are left out."""
    numbered = []
    tags = list(_TAG.finditer(source))
    # A sentence ends at the next tag, of whatever kind: some are not closed.
    for tag, end in zip(tags, [*(tag.start() for tag in tags[1:]), len(source)], strict=False):
        if tag[2] == "S" and not tag[1] and (sentence := plain_text(source[tag.end() : end])):
            sid = _SID.search(tag[3] or "")
            numbered.append((int(sid[1]) if sid else None, sentence))
    if not numbered:
        return None
    numbers, sentences = zip(*numbered, strict=True)
    letters = [letters_of(sentence) for sentence in sentences]
    return Paper(
        document=PairDocument(id=identifier, sentences=sentences),
        numbers=numbers,
        letters="".join(letters),
        ends=tuple(accumulate(map(len, letters))),
    )


def decode(content: bytes) -> tuple[str, int]:
    """Text of a file without byte order mark, and how many bytes or runs of bytes that are not UTF-8 were
    replaced by U+FFFD."""
    text = content.decode("utf-8", "replace").replace("\0", "\ufffd").removeprefix("\ufeff")
    return text, text.count("\ufffd") - content.count("\ufffd".encode())


def plain_text(source: str) -> str:
    """Text without tags, entities (some are written twice: &amp;lt;) and superfluous white space."""
    return " ".join(html.unescape(html.unescape(_TAG.sub(" ", source))).split())


def letters_of(text: str) -> str:
    """Lower-case letters and digits alone."""
    return _NOT_A_LETTER.sub("", text).lower()


def paper_id(name: str, reference: str) -> str:
    """Id of the paper in a file of the folder of a reference paper: that of the ACL Anthology, if the file is
    named so, or else "C04-1089/file", for such names mean nothing elsewhere."""
    match = _ANTHOLOGY_ID.fullmatch(plain := file_stem(name))
    return match[1].upper() if match else f"{reference}/{plain.lower().replace('_', '-')}"


def file_stem(name: str) -> str:
    """Name of a file in an annotation, without folders, ".xml" and ".txt"."""
    return re.sub(r"\.(?:xml|txt)$", "", name.strip().rpartition("/")[2], flags=re.IGNORECASE)


TASK, NET = "cl_scisumm_2018", "scisummnet_2019"
TRAINING, TEST, GOLD = "Training-Set-2018", "Test-Set-2018", "Test-Set-2018-Gold"
Place = tuple[str, str]  # set of data, name of a reference paper's folder in it

_MAX_FILE = 1 << 26  # bytes; the longest paper has 0.6 MB
_MAX_TOTAL = 1 << 31
_MAX_MEMBERS = 200_000
_AGAIN = "copy or download it again"


class SciSummFiles:
    """The contents of the archives of a folder, sorted.

    Attributes:
        papers: place, name and text of the papers by preference: reference papers come first.
        annotations: place -> path and text of the files that name the citing sentences.
        replaced: path -> how many byte sequences were not UTF-8; only files that have some.
        passed_over: files (path: why) that should have been read, but are links or no files at all.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.replaced: dict[str, int] = {}
        self.passed_over: list[str] = []
        self.annotations: dict[Place, list[tuple[str, str]]] = {}
        references: list[tuple[Place, str, str]] = []
        citing: list[tuple[Place, str, str]] = []
        present = False
        for collection in (TASK, NET):
            members = read_collection(root, collection, wanted=partial(_role, collection))
            present, before = present or members is not None, len(references) + len(citing)
            for name, content in members or ():
                where = root / collection / name
                if content is None:
                    self.passed_over.append(f"{where}: a link, or no file")
                    continue
                place, kind = _role(collection, name)
                text, count = decode(content)
                if count:
                    self.replaced[str(where)] = count
                if kind == "annotation":
                    self.annotations.setdefault(place, []).append((str(where), text))
                else:
                    (references if kind == "Reference_XML" else citing).append((place, name, text))
            if members is not None and len(references) + len(citing) == before:
                links = f"; {len(self.passed_over)} links are passed over" if self.passed_over else ""
                raise DataError(root / collection, f"no papers in it{links}", _AGAIN, field="collection")
        if not present:
            remedy = f"put {TASK}.tar.xz or {NET}.tar.xz there"
            raise DataError(root, "neither archives nor folders of CL-SciSumm", remedy, field="folder")
        for files in self.annotations.values():
            files.sort()
        order = (TRAINING, TEST, NET)
        self.papers = [
            paper
            for kind in (references, citing)
            for paper in sorted(kind, key=lambda p: (order.index(p[0][0]), p))
        ]

    def folder_of(self, place: Place) -> Path:
        """The folder of a reference paper."""
        return self.root / (NET if place[0] == NET else TASK / Path(place[0])) / place[1]


def read_collection(
    root: Path, name: str, *, wanted: Callable[[str], object]
) -> Iterator[tuple[str, bytes | None]] | None:
    """Names below the collection's own folder, such as "Test-Set-2018/A00-2018/...", and contents of its
    files, None of a link and of whatever else is no file; files of an archive in its order, those of a folder
    by name.

    `root`: folder with `{name}.tar.xz` or, if that is missing, the folder `{name}`; None if it has neither.
    `wanted`: the kind of a file, by its name; those of kind "" are not read.
    """
    if (archive := root / f"{name}.tar.xz").is_file():
        return _from_archive(archive, name, wanted)
    folder = root / name
    return _from_folder(folder, wanted) if folder.is_dir() else None


def _from_archive(
    archive: Path, folder: str, wanted: Callable[[str], object]
) -> Iterator[tuple[str, bytes | None]]:
    try:
        # Of a stream that it opens itself, tarfile takes a cut for the end.
        with open_bytes(archive) as packed:
            stream = _Bounded(packed, archive)
            with tarfile.open(fileobj=stream, mode="r|") as members:  # type: ignore[call-overload]
                for number, member in enumerate(members):
                    name = _name_in(archive, member.name, folder)
                    if member.size > _MAX_FILE or number >= _MAX_MEMBERS:
                        what = f"{member.name!r} is too large ({member.size} bytes), or member {number + 1:,}"
                        raise DataError(archive, what, _AGAIN, field="archive")
                    stream.since_last = 0
                    if wanted(name):
                        file = members.extractfile(member) if member.isreg() else None
                        yield name, file and file.read()
            while stream.read(_MAX_FILE):
                pass
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as error:
        raise DataError(archive, f"the archive is damaged ({error})", _AGAIN, field="archive") from None


class _Bounded:
    """A stream that ends before an archive can ask for more memory, as by a name of gigabytes."""

    def __init__(self, stream: IO[bytes], archive: Path) -> None:
        self.stream, self.archive = stream, archive
        self.total = self.since_last = 0

    def read(self, size: int) -> bytes:
        """The next bytes. Raises DataError if there are too many of them."""
        data = self.stream.read(size)
        self.total, self.since_last = self.total + len(data), self.since_last + len(data)
        if self.total > _MAX_TOTAL or self.since_last > 2 * _MAX_FILE:
            what = f"more than {2 * _MAX_FILE:,} bytes between two files, or {_MAX_TOTAL:,} in all"
            raise DataError(self.archive, what, _AGAIN, field="archive")
        return data


def _name_in(archive: Path, name: str, folder: str) -> str:
    checked_path(archive / name)
    parts = PurePosixPath(name).parts
    if parts[:1] != (folder,) or ".." in parts:
        what = f"member {name[:200]!r} lies outside the folder {folder}"
        raise DataError(archive, what, _AGAIN, field="archive")
    return "/".join(parts[1:])


def _from_folder(folder: Path, wanted: Callable[[str], object]) -> Iterator[tuple[str, bytes | None]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not wanted(name):
            continue
        if path.is_symlink() or not path.is_file():
            yield name, None
            continue
        with open_bytes(path) as stream:
            content = stream.read(_MAX_FILE + 1)
        if len(content) > _MAX_FILE:
            raise DataError(path, f"the file is too large (over {_MAX_FILE:,} bytes)", _AGAIN)
        yield name, content


_FORMS = tuple(  # collection, where its files stand and what they are
    (collection, re.compile(form), kind)
    for collection, form, kind in (
        (NET, r"(?P<paper>[^/]+)/Reference_XML/[^/]*\.xml", "Reference_XML"),
        (NET, r"(?P<paper>[^/]+)/citing_sentences\.json", "annotation"),
        (TASK, rf"{GOLD}/Task1/(?P<paper>[^/_]*?)(?:_[^/]*)?\.csv", "annotation"),
        (TASK, rf"(?P<set>{TRAINING}|{TEST})/(?P<paper>[^/]+)/Reference_XML/[^/]*\.xml", "Reference_XML"),
        (TASK, rf"(?P<set>{TRAINING}|{TEST})/(?P<paper>[^/]+)/Citance_XML/[^/]*\.xml", "Citance_XML"),
        (TASK, rf"(?P<set>{TRAINING})/(?P<paper>[^/]+)/annotation/[^/]*\.txt", "annotation"),
        (TASK, rf"(?P<set>{TEST})/(?P<paper>[^/]+)/annotation/[^/]*\.csv", "annotation"),
    )
)


def _role(collection: str, name: str) -> tuple[Place, str] | None:
    """The set of data and reference paper that a file belongs to, and its kind; None for what is not read."""
    for owner, form, kind in _FORMS:
        if owner == collection and (match := form.fullmatch(name)):
            return (NET if owner == NET else match.groupdict().get("set", TEST), match["paper"]), kind
    return None


_NEXT_FIELD = re.compile(r"\|\s*+(?=[A-Z][A-Za-z ]{2,30}:)")
_NUMBER = re.compile(r"\d{1,9}")
_FIRST_FIELD = ("Citance Number", "Citation Number")  # one line of the release has the second
_FIELDS = ("Citing Article", "Citation Offset", "Citation Text", "Reference Offset")
_RELEASE = "copy the file again from the official release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Citance:
    """A passage of a citing paper that cites, as annotated."""

    citing: str  # name of the citing paper's file, without ending
    # file, line: where the annotation stands.
    file: str
    line: int
    sentences: tuple[int, ...]  # "sid" of the sentences of the passage; () if the annotation has none
    passages: tuple[str, ...]  # the text itself, as it stands in the paper and cleaned, either may be missing
    # "sid" of the sentences of the cited paper that are meant; () if the annotation has none.
    cited: tuple[int, ...]


class _CitingSentence(Fields):
    citing_paper_id: str
    raw_text: Any = None
    clean_text: Any = None


def line_citances(file: str, text: str) -> Iterator[Citance]:
    """Those of a file of the training set, lines of "Field: value | Field: value"."""
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
        yield _citance(file, line, fields, text_field="Citation Text")


def csv_citances(file: str, text: str) -> Iterator[Citance]:
    """Those of a CSV of the test set, one for each annotator, with answers or without. Its "Citation Offset"
    is 0 throughout, so that `sentences` is empty."""
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        _check_fields(file, 1, rows.fieldnames or ())
        for row in rows:
            fields = {name: value or "" for name, value in row.items() if isinstance(name, str)}
            if "".join(value if isinstance(value, str) else "" for value in row.values()).strip():
                fields["Citation Offset"] = ""
                yield _citance(file, rows.line_num, fields, text_field="Citation Text Clean")
    except csv.Error as error:
        what, line = f"not CSV ({error})", rows.reader.line_num
        raise DataError(file, what, _RELEASE, line=line, field="row") from None


def json_citances(file: str, text: str) -> Iterator[Citance]:
    """Those of a `citing_sentences.json` of ScisummNet: [{"citing_paper_id": "...", "raw_text": "..."}]."""
    items = parse_json(text, file, remedy=_RELEASE)
    for number, item in enumerate(items if isinstance(items, list) else [None]):
        record = JsonRecord(path=Path(file), line=1, fields=item, within=f"[{number}].")
        fields = record.checked(_CitingSentence).fields
        passages = tuple(text for text in (fields.raw_text, fields.clean_text) if isinstance(text, str))
        yield Citance(
            citing=fields.citing_paper_id, file=file, line=1, sentences=(), passages=passages, cited=()
        )


def _citance(file: str, line: int, fields: Mapping[str, str], *, text_field: str) -> Citance:
    _check_fields(file, line, fields)
    passages = dict.fromkeys(plain_text(fields.get(name, "")) for name in ("Citation Text", text_field))
    return Citance(
        citing=file_stem(fields["Citing Article"]),
        file=file,
        line=line,
        sentences=_numbers(fields["Citation Offset"]),
        passages=tuple(passage for passage in passages if passage),
        cited=_numbers(fields["Reference Offset"]),
    )


def _check_fields(file: str, line: int, fields: Collection[str]) -> None:
    for name in _FIELDS:
        if name not in fields:
            raise DataError(file, "the field is missing", _RELEASE, line=line, field=name)


def _numbers(text: str) -> tuple[int, ...]:
    """Those in a list that is written in many ways, such as "['53', '61']" or "17'"; none in "NA"."""
    return tuple(map(int, _NUMBER.findall(text)))


# All repeats are bounded, so that no text takes long.
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
    """A sentence without its citations, so that whoever looks for the citing sentence has to understand it;
    "." if nothing else is in it, so that it keeps its number.

    Taken out are brackets that hold a name and a year, (see Brill, 1995; Wu et al., 2004) or [Brill, 1995]; a
    year in brackets together with the names before it, as in Brill and Wu (2004); and numbers in square
    brackets, [3, 5-7]. This is an approximation. It leaves citations without brackets, those that were cut in
    two by the end of a sentence and names that stand apart ("Brill's tagger"), and it takes some brackets
    that are no citations, such as (Monday, 1995).
    """
    bare = _GAP.sub(r"\1", " ".join(_CITATION.sub(" ", sentence).split()))
    return bare if any(character.isalnum() for character in bare) else "."


PAIRS = "scisummnet_citation_pairs.tsv"
SOURCES = ("cl-scisumm-train", "cl-scisumm-test", "scisummnet")
Blanked = Literal["all", "citing", "none"]
_SAME_START = 100  # letters after the title by which a paper under another name is known again


@dataclass(frozen=True, slots=True, kw_only=True)
class SciSumm:
    """Papers by id, in order, and links from citing to cited ones.

    `replaced`: file -> how many byte sequences in it were not UTF-8. `unplaced`: annotations (file:line)
    whose citing passage was not located in the text of the paper. `passed_over`: files and annotations (path:
    why) that cannot be used: links, papers without sentences, annotations of missing papers.
    """

    papers: Mapping[str, PairDocument]
    links: tuple[DocumentLink, ...]
    replaced: Mapping[str, int]
    unplaced: tuple[str, ...]
    passed_over: tuple[str, ...] = ()


def read_scisumm(root: str | Path, *, blanked: Blanked = "all") -> SciSumm:
    """All papers and links; each of the two collections may be missing.

    A paper of which there are several texts is kept once, by preference as a reference paper; sentence
    numbers that refer to another text of it are mapped by the letters of the sentence. A paper without an id
    of the Anthology is called "C04-1089/name", after the folder it is in, unless another paper begins with
    the same text, which is it then.

    `blanked`: in which sentences citations are taken out, lest the names or the mere brackets give the citing
    sentence away: "all" of them; "citing", those known to cite in any of the links, which is what Zhou et al.
    2020 did, though a sentence without citation beside others that have theirs gives it away as well; "none".
    The text of a paper is the same in all its links.
    """
    if blanked not in get_args(Blanked):
        raise ValueError(f"blanked is {blanked!r}; choose one of {', '.join(get_args(Blanked))}")
    files = SciSummFiles(Path(root))
    library = _Library(files)
    unplaced: list[str] = []
    merged: dict[tuple[str, str], DocumentLink] = {}
    for link in chain(_task_links(files, library, unplaced), _net_links(files, library, unplaced)):
        known = merged.get(link.documents)
        merged[link.documents] = _merged(known, link) if known else link
    ordered = tuple(sorted(merged.values(), key=lambda link: (SOURCES.index(link.source), link.documents)))
    return SciSumm(
        papers=MappingProxyType(_blanked(library.kept, ordered, blanked)),
        links=ordered,
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
                    paper = replace(paper, document=replace(paper.document, id=identifier))
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
    for dataset, source, read in ((TRAINING, SOURCES[0], line_citances), (TEST, SOURCES[1], csv_citances)):
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
                    annotated = citances.get(identifier, [])
                    yield _link(library, paper, cited, annotated, source=source, unplaced=unplaced)


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
    for identifier, annotated in citances.items():
        if (place, identifier) not in library.texts:
            files.passed_over += (f"{one.file}:{one.line}: no text of {identifier}" for one in annotated)


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
            items = files.annotations.get(place, [])
            citances[place] = list(chain.from_iterable(json_citances(*item) for item in items))
        quoted = [citance for citance in citances[place] if file_stem(citance.citing) == columns[0]]
        yield _link(library, *papers, quoted, source=SOURCES[2], unplaced=unplaced)


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
        places = library.sentences(citing, citance.sentences)
        if not citance.sentences:
            gold = "located"
            places = next((match for text in citance.passages if (match := kept.containing(text))), ())
        if not places:
            unplaced.append(f"{citance.file}:{citance.line}")
        ours.update(places)
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
    """The union of two annotations of one link; the source is that of the first."""
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
        chosen = citing.get(identifier, ()) if blanked == "citing" else ()
        sentences = (
            without_citations(sentence) if blanked == "all" or number in chosen else sentence
            for number, sentence in enumerate(document.sentences)
        )
        documents[identifier] = PairDocument(id=identifier, sentences=tuple(sentences))
    return documents


# Without the tag's end, which a heading such as "a < b" would hide.
_SECTION = re.compile(r"(?=</?(?:ABSTRACT|(?:SUB)?SECTION)\b)")


def scisumm_files(folder: str | Path, *, split: Split | None = None) -> list[Path]:
    """The archives of a folder, or the papers' XML where unpacked, sorted; [] if it has neither. Any of them
    may hold papers of any split."""
    files: list[Path] = []
    for name in (TASK, NET):
        archive, unpacked = Path(folder) / f"{name}.tar.xz", Path(folder) / name
        files += [archive] if archive.is_file() else sorted(unpacked.glob("**/*_XML/*.xml"))
    return files


def read_scisumm_corpus(folder: str | Path, *, split: Split | None = None) -> Iterator[Cluster]:
    """Clusters of plain text for pre-training, reference papers first; `split` None for those of every split.

    A cluster is one paper by itself, each paper once, as clusters of a paper and those that cite it would
    overlap. The text is the title, and then a line for the abstract and for each section; headings of
    sections are left out. One sentence before the abstract or first section is the title; more of them (62
    papers of ScisummNet are without sections) are a line of their own. Papers are split by a hash of their
    ids (90/5/5). Both collections are read as a whole before the first paper is given (150 MB), since
    archives hold the papers in another order.
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
    """Whether the name of a paper is one in its folder alone: C04-1089/name."""
    return "/" in identifier


def _sentences(identifier: str, part: str) -> tuple[str, ...]:
    paper = parse_paper(identifier, part)
    return paper.document.sentences if paper else ()


def _document(identifier: str, parts: list[tuple[str, ...]]) -> Document:
    """The text before the first section, and then each section, as lines."""
    lines = [part for part in parts if part]
    lengths = [len(sentence) + 1 for sentence in chain(*lines)]  # with the blank or line break behind it
    ends = list(accumulate(lengths))
    return Document(
        id=identifier,
        text="\n".join(" ".join(line) for line in lines),
        title=parts[0][0] if len(parts[0]) == 1 else None,
        sentences=tuple((end - length, end - 1) for length, end in zip(lengths, ends, strict=True)),
    )
