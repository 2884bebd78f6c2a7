"""CL-SciSumm and ScisummNet: a miniature of both by hand, malicious archives, plain texts, citations removed,
and counts of the real ones."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from cdlm_lab.data.clusters import detect_format, open_corpus
from cdlm_lab.data.convert import scisumm
from cdlm_lab.data.convert.scisumm import SOURCES, collection_files, read_scisumm, without_citations
from cdlm_lab.data.files import DataError
from cdlm_lab.data.pairs import collected
from cdlm_lab.data.records import Document, DocumentLink, PairDocument, PassedOver
from cdlm_lab.data.splits import SPLITS

TASK = "cl_scisumm_2018/Training-Set-2018/R00-0001"
TEST_SET = "cl_scisumm_2018/Test-Set-2018/T00-0001"
GOLD = "cl_scisumm_2018/Test-Set-2018-Gold/Task1/T00-0001"
NET = "scisummnet_2019/{0}/Reference_XML/{0}.xml"
TRAINING = f"{TASK}/annotation/R00-0001.ann.txt"
SENTENCES = "scisummnet_2019/N00-0002/citing_sentences.json"
PAIRS = "scisummnet_citation_pairs.tsv"
LONG = "The very same words open this paper under both of its names, and we say them twice. " * 2


def paper(title: str, *sentences: str, start: int = 0) -> str:
    head, *lines = (
        f'<S sid ="{number}" ssid = "1">{sentence}</S>'
        for number, sentence in enumerate((title, *sentences), start=start)
    )
    return "\n".join(["<PAPER>", head, '<SECTION title="x" number = "1">', *lines, "</SECTION></PAPER>"])


def row(number: int, citing: str, offset: str, cited: str, text: str = "<S sid ='1'>x</S>") -> str:
    return (
        f"Citance Number: {number} | Reference Article:  R00-0001.xml | Citing Article:  {citing} | "
        f"Citation Marker Offset:  ['1'] | Citation Marker:  A | B, 2000 | Citation Offset:  {offset} | "
        f"Citation Text:  {text} | Reference Offset:  {cited} | Reference Text:  x | Discourse Facet:  M | "
        "Annotator:  N |"
    )


HEAD = (
    "Citance Number,Reference Article,Citing Article,Citation Marker Offset,Citation Marker,Citation Offset,"
    "Citation Text,Citation Text Clean,Reference Offset,Reference Text,Discourse Facet"
)
REFERENCE = paper("Of Trees", "We grow trees.", "They &amp;lt; 40 &quot;words&quot;.", " ", "Trees are tall.")
CITING = paper(
    "Parsing", "We parse.", "Trees are as Root (2000) grew them.", "That is, tall.", "We end (Ax, 1999)."
)
UNKNOWN = {"citing_paper_id": "X99-0001", "raw_text": "x"}
QUOTED = {"citing_paper_id": "N00-0001", "raw_text": "", "clean_text": "Follow Knot(1990) as all of us do."}
FILES: dict[str, str | bytes] = {
    f"{TASK}/Reference_XML/R00-0001.xml": REFERENCE,
    f"{TASK}/Citance_XML/C01-0001.xml": CITING,
    f"{TASK}/Citance_XML/C02-0002-parscit130908.xml": paper("A.", "\xe9tude", start=1),
    f"{TASK}/Citance_XML/Pproc_d10.xml": b"<PAPER><S>\xe9t\xe9 \xef\xbf\xbd</PAPER>",
    f"{TASK}/Citance_XML/P1.xml": "<PAPER>\n</PAPER>\n",
    f"{TASK}/R00-0001/C09-0009.xml": CITING,  # is not read
    f"{TASK}/summary/R00-0001.community.xml": REFERENCE,
    TRAINING: "\n\n".join(
        [
            row(1, "C01-0001.xml", "['2','3']", "['1', '4']"),
            row(2, "C01-0001.txt", "'4'", "['2' 9']").replace("Citance Number", "Citation Number"),
            row(3, "c02-0002", "['2']", "['0']"),
            row(4, "Pproc_D10", "['7']", "NA"),  # there is no sentence 7
        ]
    ),
    # the reference paper in another text, citing; R00-0001 is kept as above
    f"{TEST_SET}/Reference_XML/T00-0001.xml": paper("Of Tests", "We test often."),
    f"{TEST_SET}/Citance_XML/R00-0001.xml": paper("Title", "Trees are tall."),
    f"{TEST_SET}/Citance_XML/C01-0001.xml": CITING,
    f"{TEST_SET}/annotation/T00-0001.csv": f'{HEAD}\n1,,C01-0001,0,x,0,"a",a,,,\n',
    f"{GOLD}_ann.csv": (
        f'{HEAD},,\r\n1,,C01-0001,0,x,0,"Root (2000) grew them. That is",b,1\',"<S>, x</S>",M,,\r\n'
        ",,,,,,,,,,,,\r\n"
    ),
    f"{GOLD}_bob.csv": (
        f"{HEAD}\n1,T00-0001,C01-0001,0,x,0,no such words,No such words stand in it,NA,,\n"
        '2,T00-0001,C01-0001,0,x,0,no,"Trees are, as Root (2000) grew them!",;0\',,\n'
    ),
    NET.format("N00-0001"): paper("Of Nets", "We follow Knot (1990), as all of us do."),
    "scisummnet_2019/N00-0001/citing_sentences.json": "[]",
    NET.format("N00-0002"): paper("Of Knots", "We tie knots."),
    SENTENCES: json.dumps([UNKNOWN, QUOTED]),
    PAIRS: "citing_id\tcited_id\nN00-0001\tN00-0002\n",
}


def add(tar: tarfile.TarFile, name: str, content: str | bytes = b"", **attributes: object) -> None:
    member, data = tarfile.TarInfo(name), content if isinstance(content, bytes) else content.encode()
    for attribute, value in {"size": len(data), **attributes}.items():
        setattr(member, attribute, value)
    tar.addfile(member, io.BytesIO(data))


def pack(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write the files of each collection as a tar archive."""
    root.mkdir(exist_ok=True)
    for collection in {name.partition("/")[0] for name in files if not name.endswith(".tsv")}:
        with tarfile.open(root / f"{collection}.tar.xz", "w:xz") as tar:
            for name, content in files.items():
                if name.startswith(collection):
                    add(tar, name, content)
    return root


@pytest.fixture
def build(tmp_path: Path, write: Callable[..., Path]) -> Callable[..., Path]:
    """`build(changes, archives=...)` writes the releases to a folder; files changed to None are omitted."""

    def _build(changes: dict[str, str | bytes | None] | None = None, *, archives: bool = True) -> Path:
        files = {name: data for name, data in (FILES | (changes or {})).items() if data is not None}
        root = pack(tmp_path / "archives", files) if archives else tmp_path / "folders"
        for name, content in files.items():
            if not archives or name == PAIRS:
                write(f"{root.name}/{name}", content)
        return root

    return _build


class Read(NamedTuple):
    papers: dict[str, PairDocument]
    links: tuple[DocumentLink, ...]
    lost: dict[str, tuple[int, str]]  # reason -> count, file name of the first place


def read(root: Path) -> Read:
    lost = PassedOver()
    papers, links = collected(read_scisumm(root, passed_over=lost))
    return Read(papers, links, {why: (n, at.rpartition("/")[2]) for why, (n, at) in lost.counts.items()})


NOT_FOUND = "citing text that is not found in the paper"
NOT_UTF_8 = "file with bytes that are not UTF-8, each read as U+FFFD"
NO_FILE = "hidden file, link, or no file at all"


def test_papers_and_links(build):
    data = read(build())
    names = ["C01-0001", "C02-0002", "N00-0001", "N00-0002", "R00-0001", "R00-0001/pproc-d10", "T00-0001"]
    assert list(data.papers) == names
    reference = ("Of Trees", "We grow trees.", 'They < 40 "words".', "Trees are tall.")
    assert data.papers["R00-0001"].sentences == reference
    assert data.papers["C02-0002"].sentences == ("A.", "étude")
    assert data.papers["R00-0001/pproc-d10"].sentences == ("\ufffdt\ufffd \ufffd",)
    # Citations are taken out.
    end = ("Trees are as grew them.", "That is, tall.", "We end.")
    assert data.papers["C01-0001"].sentences[2:] == end
    assert data.papers["N00-0001"].sentences[1] == "We follow, as all of us do."
    assert {(*link.documents, link.source): link.in_first for link in data.links} == {
        ("C01-0001", "R00-0001", SOURCES[0]): (2, 3, 4),  # 3 is empty: 4 -> 3; no 9
        ("C02-0002", "R00-0001", SOURCES[0]): (1,),
        ("R00-0001/pproc-d10", "R00-0001", SOURCES[0]): None,
        ("C01-0001", "T00-0001", SOURCES[1]): (2, 3),
        ("R00-0001", "T00-0001", SOURCES[1]): None,
        ("N00-0001", "N00-0002", SOURCES[2]): (1,),
    }
    sources = [SOURCES.index(link.source) for link in data.links]
    assert sources == sorted(sources)
    assert data.lost == {
        "paper without sentences": (1, "P1.xml"),
        NOT_FOUND: (3, "R00-0001.ann.txt:7"),
        NOT_UTF_8: (1, "Pproc_d10.xml"),
    }
    # Folders hold the same, and a byte order mark changes nothing.
    marked = {
        name: "\ufeff" + content
        for name, content in FILES.items()
        if "nnotation" in name or "Gold" in name or name.endswith(".json")
    }
    assert len(marked) == 6
    unpacked = read(build(marked, archives=False))
    assert unpacked == data


def test_other_text_of_a_paper(build):
    """The numbers refer to the sentences of one text, but the paper is kept with another text."""
    folder = "cl_scisumm_2018/Training-Set-2018/S00-0001"
    cut = ("Trees are as Root (2000) grew them. That is, tall.", "Not in it at all, we say.")
    changes = {
        f"{folder}/Reference_XML/S00-0001.xml": paper("Of Seeds"),
        f"{folder}/Citance_XML/C01-0001.xml": paper("x", "y", "z", *cut),
        f"{folder}/annotation/S00-0001.ann.txt": row(1, "C01-0001", "['3', '4']", "['0']"),
    }
    link = next(link for link in read(build(changes)).links if link.second == "S00-0001")
    assert link.in_first == (2, 3)


def test_one_paper_under_two_names(build):
    rows = row(1, "C05-0005", "['1']", "['1']"), row(2, "Pproc9", "['2']", "['0']")
    changes = {
        f"{TASK}/Citance_XML/C05-0005.xml": paper("T.", "U.", LONG, "We cite."),
        f"{TASK}/Citance_XML/Pproc9.xml": paper("T", "U", LONG, "We cite.", "More."),
        TRAINING: "\n".join(rows),
    }
    data = read(build(changes))
    (link,) = [link for link in data.links if link.first == "C05-0005"]
    assert "R00-0001/pproc9" not in data.papers
    assert link.in_first == (1, 2)


def test_one_collection_is_enough(build, tmp_path, refused):
    remedy = "put cl_scisumm_2018.tar.xz or scisummnet_2019.tar.xz there"
    with refused(tmp_path, f"1: folder: neither archives nor folders of CL-SciSumm; {remedy}"):
        read(tmp_path)
    task, net = ({name: None for name in FILES if name.startswith(start)} for start in ("cl_", "scisummnet"))
    assert Counter(link.source for link in read(build(net)).links) == {SOURCES[0]: 3, SOURCES[1]: 2}
    (link,) = read(build(task, archives=False)).links
    assert link.source == SOURCES[2]


AGAIN = "copy or download it again"


@pytest.mark.parametrize("name", ["cl_scisumm_2018/../../evil.xml", "/etc/evil.xml", "evil.xml", "../evil"])
def test_members_outside(build, tmp_path, refused, name):
    archive = build() / "cl_scisumm_2018.tar.xz"
    with tarfile.open(archive, "w:xz") as tar:
        add(tar, name)
    with refused(archive, f"1: archive: member {name!r} lies outside the folder cl_scisumm_2018; {AGAIN}"):
        read(archive.parent)
    assert not list(tmp_path.rglob("evil*"))


def test_copies_of_an_editor_take_no_paper_s_place(build):
    """Not in an archive, which macOS fills with "._" files, and not in a folder."""
    root, place = build(), f"{TASK}/Reference_XML"
    copies = [f"{place}/._R00-0001.xml", f"{TASK}/Citance_XML/.a/C01-0001-checkpoint.xml"]
    with tarfile.open(root / "cl_scisumm_2018.tar.xz", "w:xz") as tar:
        add(tar, f"{place}/R00-0001.xml", REFERENCE)
        for name in copies:
            add(tar, name, REFERENCE.replace("trees", "weeds"))
    data = read(root)
    assert data.lost[NO_FILE][0] == 1
    assert not any("weeds" in sentence for one in data.papers.values() for sentence in one.sentences)
    with tarfile.open(root / "cl_scisumm_2018.tar.xz") as tar:
        tar.extractall(root, filter="data")
    (root / "cl_scisumm_2018.tar.xz").unlink()
    unpacked = read(root)
    assert (unpacked.papers, unpacked.lost[NO_FILE][0]) == (data.papers, 1)


def test_links_in_archives_are_named_and_nothing_else_is_refused(build, refused):
    root, place = build(), f"{TASK}/Citance_XML/C01-0001.xml"
    for files in ({f"{TASK}/Reference_XML/R00-0001.xml": REFERENCE}, {}):
        with tarfile.open(root / "cl_scisumm_2018.tar.xz", "w:xz") as tar:
            for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
                add(tar, place, type=kind, linkname="/etc/passwd")
            for name, content in files.items():
                add(tar, name, content)
        if files:
            data = read(root)
            assert "C01-0001" not in data.papers
            assert data.lost[NO_FILE] == (3, "C01-0001.xml")
    what = "no papers in it; 3 links are passed over"
    with refused(root / "cl_scisumm_2018", f"1: collection: {what}; {AGAIN}"):
        read(root)


@pytest.mark.parametrize("content", [None, "", "<html><body>Not Found</body></html>", "<PAPER>\n</PAPER>"])
@pytest.mark.parametrize("place", [TASK, TEST_SET])
def test_a_reference_paper_without_sentences_is_refused(build, refused, place, content):
    """Otherwise all links to it and their gold annotation would be lost unnoticed."""
    name = place.rpartition("/")[2]
    root = build({f"{place}/Reference_XML/{name}.xml": content})
    what = f"no Reference_XML/{name}.xml in it, or no sentences in that"
    with refused(root / place, f"1: folder: {what}; copy the folder again, or remove it"):
        read(root)


def test_what_says_nothing_is_named(build):
    """The fixture has a citing paper without sentences; here are one that is a web page, an annotation of a
    missing paper, and a folder without annotation."""
    other = "cl_scisumm_2018/Training-Set-2018/E00-0001"
    changes = {
        f"{TASK}/Citance_XML/C02-0002-parscit130908.xml": "<html><body>404 Not Found</body></html>",
        f"{TASK}/Citance_XML/Pproc_d10.xml": None,
        f"{other}/Reference_XML/E00-0001.xml": REFERENCE,
        f"{other}/Citance_XML/C01-0001.xml": CITING,
    }
    root = build(changes)
    lost = read(root).lost
    assert (lost["paper without sentences"], lost["reference paper without annotation"]) == (
        (2, "C02-0002-parscit130908.xml"),
        (1, "E00-0001"),
    )
    assert lost["annotation of a paper that is not there"] == (2, "R00-0001.ann.txt:5, C02-0002")


def test_damaged_archives(build):
    path = build() / "cl_scisumm_2018.tar.xz"
    whole = path.read_bytes()
    assert len(whole) > 400
    for content in (whole[: len(whole) // 2], whole[:-30], whole[:-1], b"no archive", b""):
        path.write_bytes(content)
        damaged = r"tar\.xz:1: field archive: the archive is damaged \(.*download it again"
        with pytest.raises(DataError, match=damaged):
            read(path.parent)


RELEASE = "copy the file again from the official release"
MISSING = f"1: Citing Article: the field is missing; {RELEASE}"
TABS = "write the ids of two papers with a tab between them"


@pytest.mark.parametrize(("name", "content", "message"), [
    (TRAINING, "\nnonsense", f"2: Citance Number: a line without Citance Number; {RELEASE}"),
    (TRAINING, "Citance Number: 1", MISSING),
    (f"{GOLD}_ann.csv", "a,b\n1,2\n", MISSING),
    (f"{GOLD}_ann.csv", f'{HEAD}\n1,"a', f"2: row: not CSV (unexpected end of data); {RELEASE}"),
    (SENTENCES, "{}", "1: [0]: null where an object belongs; write it as {...}"),
    (PAIRS, "a\tb\nx\n", f"2: row: 'x' is not a pair; {TABS}"),
    (PAIRS, "a\tb\n\nN00-0001\tx\n",
     "3: row: no text of x; add it to scisummnet_2019, or leave the pair out"),
    (PAIRS, None, "1: file: there is no such file; check the spelling of the path"),
])  # fmt: skip
def test_broken_files(build, refused, name, content, message):
    root = build({name: content}, archives=False)
    with refused(root / name, message):
        read(root)


def test_hostile_papers(build):
    texts = {
        "C10-0001": "<S sid='1'>" * 20_000 + "x",
        "C10-0002": '<!DOCTYPE x [<!ENTITY a "b">]><S sid="1">&a;\0&#0; end</S><S sid="9999999999999">y',
        "C10-0003": "<S " * 50_000,
        "C10-0004": "&amp;" * 100_000 + "<S>z &lt;S&gt; w",
    }
    papers = read(build({f"{TASK}/Citance_XML/{name}.xml": text for name, text in texts.items()})).papers
    assert {name: papers[name].sentences for name in texts if name in papers} == {
        "C10-0001": ("x",),
        "C10-0002": ("&a;\ufffd\ufffd end", "y"),
        "C10-0004": ("z <S> w",),
    }


@pytest.fixture(scope="module")
def real(real_data: Callable[[str], Path]) -> Read:
    return read(real_data("scisumm"))


@pytest.mark.slow
def test_counts_of_the_real_data(real):
    assert len(real.papers) == 1721
    assert median(len(paper.sentences) for paper in real.papers.values()) == 184
    counts = Counter((link.source, link.in_first is not None) for link in real.links)
    # 577 - 2 papers without text - 5 that are there under two names; 226; 1156
    expected = zip(SOURCES, ((97, 473), (17, 209), (126, 1030)), strict=True)
    assert counts == {(source, known): of[known] for source, of in expected for known in (False, True)}
    assert real.lost[NOT_UTF_8][0] == 63


def body(title: str, *sections: str) -> str:
    """A paper with an abstract; each section has one sentence."""
    head = f"<S>{title}</S>" if title else ""
    parts = (f'<SECTION title="1 Method" number="1">\n<S>{one}</S>\n</SECTION>\n' for one in sections)
    return f"<PAPER>\n{head}\n<ABSTRACT>\n<S>Abstract.</S>\n</ABSTRACT>\n{''.join(parts)}</PAPER>"


def documents(folder: Path) -> dict[str, Document]:
    clusters = [cluster for split in SPLITS for cluster in scisumm.read_scisumm_corpus(folder, split=split)]
    assert all([document.id for document in cluster.documents] == [cluster.id] for cluster in clusters)
    return {cluster.id: cluster.documents[0] for cluster in clusters}


def texts(document: Document) -> tuple[str, ...]:
    return tuple(document.text[start:end] for start, end in document.sentences)


# An open sentence, a heading with < and >, sub-sections, text between sections, an empty one.
LOOSE = (
    '<PAPER>\n<S sid="0">T.<ABSTRACT/>\n<SECTION title="a < b > c" number="1"><S sid="1">One.'
    '</SECTION><S sid="2">Between.</S><SECTION title="x"><S sid="3">Two.</S>\n'
    '<SUBSECTION title="y"><S sid="4">Three.</S></SUBSECTION><S sid="5">Four.</S></SECTION>'
    '<SECTION title="empty"></SECTION><S>Five.</S></PAPER>'
)


@pytest.mark.parametrize(("source", "title", "lines"), [
    (body("Of Trees", "We &amp;lt; grow.</S> <S> </S><S>They are  tall.", "The end."), "Of Trees",
     ["Of Trees", "Abstract.", "We < grow. They are tall.", "The end."]),
    (body("", "We grow."), None, ["Abstract.", "We grow."]),
    # without sections the title cannot be told
    ("<PAPER><S>Of Trees by Ann</S><S>We grow.</S></PAPER>", None, ["Of Trees by Ann We grow."]),
    (LOOSE, "T.", ["T.", "One.", "Between.", "Two.", "Three.", "Four.", "Five."]),
])  # fmt: skip
def test_sections_are_lines_and_the_sentence_before_them_is_the_title(write, tmp_path, source, title, lines):
    write(NET.format("N00-0001"), source)
    write(NET.format("N00-0002"), "<PAPER>\n</PAPER>\n")  # a paper without a sentence is left out
    (document,) = documents(tmp_path).values()
    assert (document.title, document.text.split("\n")) == (title, lines)
    assert " ".join(texts(document)) == " ".join(lines)


def test_it_is_a_corpus(write, tmp_path):
    corpus = str(tmp_path)
    assert not collection_files(tmp_path)
    write(NET.format("N00-0001"), body("Of Nets"))  # by its hash for training
    write(NET.format("N00-0035"), body("Of Knots"))  # and this for test
    for split, name in (("train", "N00-0001"), ("test", "N00-0035")):
        assert [cluster.id for cluster in open_corpus(corpus, split=split)] == [name]
    with pytest.raises(ValueError, match="no cluster of the split validation"):
        list(open_corpus(corpus, split="validation"))
    write("scisummnet_2019/N00-0001/summary/N00-0001.txt", "not read")
    assert detect_format(corpus).name == "scisumm"  # and not a folder of folders of .txt
    write("scisummnet_2019.tar.xz", b"damaged")  # counts where there is a folder too
    with pytest.raises(ValueError, match="the archive is damaged"):
        list(open_corpus(corpus, split="train"))


@pytest.mark.parametrize(("sentence", "bare"), [
    ("It is computed as usual (Shao and Ng, 2004).", "It is computed as usual."),
    ("We take trees (see Brill, 1995; Wu et al., 2004b) apart.", "We take trees apart."),
    ("As Brill and Wu (2000, 2004) show, it works.", "As show, it works."),
    ("Smith, Jones and van der Berg (2004) agree.", "agree."),
    ("Lee et al.'s (2010, p. 5) bank", "bank"),
    ("Müller (1999) says so [12], and others [3, 5-7] too.", "says so, and others too."),
    ("(Brill, 1995)", "."),
    ("It has (one, two) parts, as in 1999 (and later).", "It has (one, two) parts, as in 1999 (and later)."),
    ("Brill's tagger, of Brill 1995,  is fast.", "Brill's tagger, of Brill 1995, is fast."),
    ("", "."),
])  # fmt: skip
def test_without_citations(sentence, bare):
    assert without_citations(sentence) == bare
    assert without_citations(bare) == bare


READS_LONG_TEXTS = """
from cdlm_lab.data.convert.scisumm import without_citations
for piece in "(", "(A ", "A, ", "A and ", "van ", "(A 1999 ", "[1,", "[1999 ", "A", "'", "(A b ", "A et al. ":
    print(repr(piece), flush=True)
    without_citations(piece * (200_000 // len(piece)))
"""


def test_no_text_takes_for_ever():
    # All take half a second; each would take hours if brackets were looked for without bound.
    subprocess.run([sys.executable, "-c", READS_LONG_TEXTS], check=True, timeout=1200)
