"""CL-SciSumm and ScisummNet: a miniature of both by hand, hostile archives, plain texts, citations taken out,
and counts of the real ones."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from cdlm_lab.data.clusters import corpus_checksum, detect_format, open_corpus
from cdlm_lab.data.document_links import pairs_from_links
from cdlm_lab.data.document_pairs import check_splits, split_without_leaks
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import Document
from cdlm_lab.data.scisumm import (
    SOURCES,
    SciSumm,
    read_scisumm,
    read_scisumm_corpus,
    scisumm_files,
    without_citations,
)

RELEASE = "copy the file again from the official release"
LONG = "The very same words open this paper under both of its names, and " * 2


def paper(*sentences: str, start: int = 0, quote: str = '"') -> str:
    lines = [
        f"<S sid ={quote}{number}{quote} ssid = {quote}1{quote}>{sentence}</S>"
        for number, sentence in enumerate(sentences, start=start)
    ]
    return "\n".join(
        ["<PAPER>", lines[0], '<SECTION title="x" number = "1">', *lines[1:], "</SECTION></PAPER>"]
    )


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
TASK = "cl_scisumm_2018/Training-Set-2018/R00-0001"
FILES: dict[str, str | bytes] = {
    f"{TASK}/Reference_XML/R00-0001.xml": REFERENCE,
    f"{TASK}/Citance_XML/C01-0001.xml": CITING,
    f"{TASK}/Citance_XML/C02-0002-parscit130908.xml": paper("A.", "\xe9tude", start=1),
    f"{TASK}/Citance_XML/Pproc_d10.xml": b"<PAPER><S>\xe9t\xe9 \xef\xbf\xbd</PAPER>",
    f"{TASK}/Citance_XML/P1.xml": "<PAPER>\n</PAPER>\n",
    f"{TASK}/R00-0001/C09-0009.xml": CITING,  # is not read
    f"{TASK}/summary/R00-0001.community.xml": REFERENCE,
    f"{TASK}/annotation/R00-0001.ann.txt": "\n\n".join(
        [
            row(1, "C01-0001.xml", "['2','3']", "['1', '4']"),
            row(2, "C01-0001.txt", "'4'", "['2' 9']").replace("Citance Number", "Citation Number"),
            row(3, "c02-0002", "['2']", "['0']"),
            row(4, "Pproc_D10", "['7']", "NA"),  # there is no sentence 7
        ]
    ),
    # the reference paper in another text, citing; R00-0001 is kept as above
    "cl_scisumm_2018/Test-Set-2018/T00-0001/Reference_XML/T00-0001.xml": paper("Of Tests", "We test often."),
    "cl_scisumm_2018/Test-Set-2018/T00-0001/Citance_XML/R00-0001.xml": paper("Title", "Trees are tall."),
    "cl_scisumm_2018/Test-Set-2018/T00-0001/Citance_XML/C01-0001.xml": CITING,
    "cl_scisumm_2018/Test-Set-2018/T00-0001/annotation/T00-0001.csv": f'{HEAD}\n1,,C01-0001,0,x,0,"a",a,,,\n',
    "cl_scisumm_2018/Test-Set-2018-Gold/Task1/T00-0001_ann.csv": (
        f'{HEAD},,\r\n1,,C01-0001,0,x,0,"Root (2000) grew them. That is",b,1\',"<S>, x</S>",M,,\r\n'
        ",,,,,,,,,,,,\r\n"
    ),
    "cl_scisumm_2018/Test-Set-2018-Gold/Task1/T00-0001_bob.csv": (
        f"{HEAD}\n1,T00-0001,C01-0001,0,x,0,no such words,No such words stand in it,NA,,\n"
        '2,T00-0001,C01-0001,0,x,0,no,"Trees are, as Root (2000) grew them!",;0\',,\n'
    ),
    "scisummnet_2019/N00-0001/Reference_XML/N00-0001.xml": paper(
        "Of Nets", "We follow Knot (1990), as all of us do."
    ),
    "scisummnet_2019/N00-0001/citing_sentences.json": "[]",
    "scisummnet_2019/N00-0002/Reference_XML/N00-0002.xml": paper("Of Knots", "We tie knots."),
    "scisummnet_2019/N00-0002/citing_sentences.json": json.dumps(
        [
            {"citing_paper_id": "X99-0001", "raw_text": "x"},
            {
                "citing_paper_id": "N00-0001",
                "raw_text": "",
                "clean_text": "Follow Knot(1990) as all of us do.",
            },
        ]
    ),
    "scisummnet_citation_pairs.tsv": "citing_id\tcited_id\nN00-0001\tN00-0002\n",
}


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    """build(changes, archives=...): a folder with the releases; a file changed to None is left out."""

    def _build(changes: dict[str, str | bytes | None] | None = None, *, archives: bool = True) -> Path:
        root = tmp_path / ("archives" if archives else "folders")
        root.mkdir()
        tars: dict[str, tarfile.TarFile] = {}
        for name, content in (FILES | (changes or {})).items():
            if content is None:
                continue
            data = content if isinstance(content, bytes) else content.encode()
            collection = name.partition("/")[0]
            if archives and not name.endswith(".tsv"):
                if collection not in tars:
                    tars[collection] = tarfile.open(root / f"{collection}.tar.xz", "w:xz")  # noqa: SIM115
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tars[collection].addfile(member, io.BytesIO(data))
            else:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(data)
        for tar in tars.values():
            tar.close()
        return root

    return _build


def test_papers(build):
    papers = read_scisumm(build(), blanked="none").papers
    assert list(papers) == sorted(papers)
    assert set(papers) == {
        "R00-0001", "C01-0001", "C02-0002", "R00-0001/pproc-d10", "T00-0001", "N00-0001", "N00-0002",
    }  # fmt: skip
    assert papers["R00-0001"].sentences == (
        "Of Trees", "We grow trees.", 'They < 40 "words".', "Trees are tall.",
    )  # fmt: skip
    assert papers["C02-0002"].sentences == ("A.", "étude")
    assert papers["R00-0001/pproc-d10"].sentences == ("\ufffdt\ufffd \ufffd",)


def test_links(build):
    data = read_scisumm(build())
    found = {
        (link.first, link.second, link.source): (link.in_first, link.in_second, link.gold)
        for link in data.links
    }
    assert found == {
        ("C01-0001", "R00-0001", SOURCES[0]): ((2, 3, 4), (1, 2, 3), "annotated"),  # 3 is empty: 4 -> 3; no 9
        ("C02-0002", "R00-0001", SOURCES[0]): ((1,), (0,), "annotated"),
        ("R00-0001/pproc-d10", "R00-0001", SOURCES[0]): (None, None, ""),
        ("C01-0001", "T00-0001", SOURCES[1]): ((2, 3), (0, 1), "located"),
        ("R00-0001", "T00-0001", SOURCES[1]): (None, None, ""),
        ("N00-0001", "N00-0002", SOURCES[2]): ((1,), None, "located"),
    }
    sources = [SOURCES.index(link.source) for link in data.links]
    assert sources == sorted(sources)
    places = [place.rpartition("/")[2] for place in data.unplaced]
    assert places == ["R00-0001.ann.txt:7", "T00-0001_bob.csv:2", "T00-0001.csv:2"]
    assert list(data.replaced.values()) == [2]
    assert next(iter(data.replaced)).endswith("Citance_XML/Pproc_d10.xml")


def test_folders_and_archives_are_the_same(build):
    packed, unpacked = read_scisumm(build()), read_scisumm(build(archives=False))
    assert packed.papers == unpacked.papers
    assert packed.links == unpacked.links
    assert [place.rpartition("/")[2] for place in packed.unplaced] == [
        place.rpartition("/")[2] for place in unpacked.unplaced
    ]


def test_citations_are_taken_out(build):
    root = build()
    everywhere, citing = read_scisumm(root).papers, read_scisumm(root, blanked="citing").papers
    assert everywhere["C01-0001"].sentences[2:] == ("Trees are as grew them.", "That is, tall.", "We end.")
    assert everywhere["N00-0001"].sentences[1] == "We follow, as all of us do."
    assert citing["C01-0001"].sentences[2] == "Trees are as grew them."
    assert read_scisumm(root, blanked="none").papers["C01-0001"].sentences[4] == "We end (Ax, 1999)."


def test_other_text_of_a_paper(build):
    """Numbers count the sentences of one text, and the paper is kept in another."""
    folder = "cl_scisumm_2018/Training-Set-2018/S00-0001"
    other = paper(
        "x", "y", "z", "Trees are as Root (2000) grew them. That is, tall.", "Not in it at all, we say."
    )
    changes = {
        f"{folder}/Reference_XML/S00-0001.xml": paper("Of Seeds"),
        f"{folder}/Citance_XML/C01-0001.xml": other,
        f"{folder}/annotation/S00-0001.ann.txt": row(1, "C01-0001", "['3', '4']", "['0']"),
    }
    link = next(link for link in read_scisumm(build(changes)).links if link.second == "S00-0001")
    assert (link.in_first, link.in_second) == ((2, 3), (0,))


def test_one_paper_under_two_names(build):
    folder = f"{TASK}/"
    one, other = paper("T.", "U.", LONG, "We cite."), paper("T", "U", LONG, "We cite.", "More.")
    changes = {
        folder + "Citance_XML/C05-0005.xml": one,
        folder + "Citance_XML/Pproc9.xml": other,
        folder + "annotation/R00-0001.ann.txt": row(1, "C05-0005", "['1']", "['1']")
        + "\n"
        + row(2, "Pproc9", "['2']", "['0']"),
    }
    data = read_scisumm(build(changes))
    (link,) = [link for link in data.links if link.first == "C05-0005"]
    assert "R00-0001/pproc9" not in data.papers
    assert link.in_second == (0, 1)
    assert link.in_first == (1, 2)


def test_one_collection_is_enough(build):
    task = {name: None for name in FILES if name.startswith("cl_")}
    net = {name: None for name in FILES if name.startswith("scisummnet")}
    assert Counter(link.source for link in read_scisumm(build(net)).links) == {SOURCES[0]: 3, SOURCES[1]: 2}
    (link,) = read_scisumm(build(task, archives=False)).links
    assert link.source == SOURCES[2]


def test_nothing_there(tmp_path, refused):
    remedy = "put cl_scisumm_2018.tar.xz or scisummnet_2019.tar.xz there"
    with refused(tmp_path, f"1: folder: neither archives nor folders of CL-SciSumm; {remedy}"):
        read_scisumm(tmp_path)
    with pytest.raises(ValueError, match="blanked is 'some'; choose one of all, citing, none"):
        read_scisumm(tmp_path, blanked="some")


@pytest.mark.parametrize("name", ["cl_scisumm_2018/../../evil.xml", "/etc/evil.xml", "evil.xml", "../evil"])
def test_members_outside(build, tmp_path, refused, name):
    root = build()
    with tarfile.open(root / "cl_scisumm_2018.tar.xz", "w:xz") as tar:
        tar.addfile(tarfile.TarInfo(name))
    what = f"member {name!r} lies outside the folder cl_scisumm_2018"
    with refused(root / "cl_scisumm_2018.tar.xz", f"1: archive: {what}; copy or download it again"):
        read_scisumm(root)
    assert not list(tmp_path.rglob("evil*"))


def links_only(path: Path, *, beside: dict[str, str] | None = None) -> None:
    with tarfile.open(path, "w:xz") as tar:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            member = tarfile.TarInfo(f"{TASK}/Citance_XML/C01-0001.xml")
            member.type, member.linkname = kind, "/etc/passwd"
            tar.addfile(member)
        for name, content in (beside or {}).items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content.encode()))


def test_links_in_archives_are_named(build):
    root, place = build(), f"{TASK}/Citance_XML/C01-0001.xml"
    links_only(root / "cl_scisumm_2018.tar.xz", beside={f"{TASK}/Reference_XML/R00-0001.xml": REFERENCE})
    data = read_scisumm(root)
    assert "C01-0001" not in data.papers
    assert data.passed_over[:3] == (f"{root}/{place}: a link, or no file",) * 3


def test_an_archive_of_links_alone_is_refused(build, refused):
    root = build()
    links_only(root / "cl_scisumm_2018.tar.xz")
    what, remedy = "no papers in it; 3 links are passed over", "copy or download it again"
    with refused(root / "cl_scisumm_2018", f"1: collection: {what}; {remedy}"):
        read_scisumm(root)


@pytest.mark.parametrize("content", [None, "", "<html><body>Not Found</body></html>", "<PAPER>\n</PAPER>"])
@pytest.mark.parametrize("place", [TASK, "cl_scisumm_2018/Test-Set-2018/T00-0001"])
def test_a_reference_paper_without_sentences_is_refused(build, refused, place, content):
    """All links to it and their gold would be gone, and nobody would know."""
    name = place.rpartition("/")[2]
    root = build({f"{place}/Reference_XML/{name}.xml": content})
    what = f"no Reference_XML/{name}.xml in it, or no sentences in that"
    with refused(root / place, f"1: folder: {what}; copy the folder again, or remove it"):
        read_scisumm(root)


def test_what_says_nothing_is_named(build):
    """The fixture has a citing paper without sentences; here are one that is a page, an annotation of a paper
    that is not there, and a folder without annotation."""
    changes = {
        f"{TASK}/Citance_XML/C02-0002-parscit130908.xml": "<html><body>404 Not Found</body></html>",
        f"{TASK}/Citance_XML/Pproc_d10.xml": None,
        "cl_scisumm_2018/Training-Set-2018/E00-0001/Reference_XML/E00-0001.xml": REFERENCE,
        "cl_scisumm_2018/Training-Set-2018/E00-0001/Citance_XML/C01-0001.xml": CITING,
    }
    root = build(changes)
    annotation = f"{root}/{TASK}/annotation/R00-0001.ann.txt"
    assert sorted(read_scisumm(root).passed_over) == sorted(
        [
            f"{root}/{TASK}: no sentences in C02-0002-parscit130908.xml",
            f"{root}/{TASK}: no sentences in P1.xml",
            f"{annotation}:5: no text of C02-0002",
            f"{annotation}:7: no text of R00-0001/pproc-d10",
            f"{root}/cl_scisumm_2018/Training-Set-2018/E00-0001: no annotation",
        ]
    )


def test_a_byte_order_mark_changes_nothing(build):
    marked = {
        name: "\ufeff" + content
        for name, content in FILES.items()
        if "nnotation" in name or "Gold" in name or name.endswith(".json")
    }
    assert len(marked) == 6
    assert read_scisumm(build(marked, archives=False)).links == read_scisumm(build()).links


def test_a_name_of_gigabytes_is_not_read(build, monkeypatch):
    root = build()
    monkeypatch.setattr("cdlm_lab.data.scisumm._MAX_FILE", 1 << 16)
    with tarfile.open(root / "cl_scisumm_2018.tar.xz", "w:xz", format=tarfile.GNU_FORMAT, preset=0) as tar:
        tar.addfile(tarfile.TarInfo("cl_scisumm_2018/" + "x" * (1 << 18)))
    with pytest.raises(DataError, match=r"more than 131,072 bytes between two files"):
        read_scisumm(root)


def test_too_many_members(build, monkeypatch):
    root = build()
    monkeypatch.setattr("cdlm_lab.data.scisumm._MAX_MEMBERS", 3)
    with pytest.raises(DataError, match=r"is too large \(\d+ bytes\), or member 4"):
        read_scisumm(root)


def test_damaged_archives(build):
    root = build()
    path = root / "cl_scisumm_2018.tar.xz"
    whole = path.read_bytes()
    assert len(whole) > 400
    for content in (whole[: len(whole) // 2], whole[:-30], whole[:-1], b"no archive", b""):
        path.write_bytes(content)
        with pytest.raises(
            DataError, match=r"tar\.xz:1: field archive: the archive is damaged \(.*download it again"
        ):
            read_scisumm(root)


def test_member_that_is_too_large(build):
    root = build()
    member = tarfile.TarInfo("cl_scisumm_2018/x.xml")
    member.size = (1 << 26) + 1
    with tarfile.open(root / "cl_scisumm_2018.tar.xz", "w:xz", preset=0) as tar:
        tar.addfile(member, io.BytesIO(bytes(member.size)))
    with pytest.raises(DataError, match=r"'cl_scisumm_2018/x.xml' is too large \(67108865 bytes"):
        read_scisumm(root)


TRAINING = f"{TASK}/annotation/R00-0001.ann.txt"
GOLD = "cl_scisumm_2018/Test-Set-2018-Gold/Task1/T00-0001_ann.csv"
A_NUMBER = "a number where a text belongs"
SENTENCES = "scisummnet_2019/N00-0002/citing_sentences.json"
PAIRS = "scisummnet_citation_pairs.tsv"
TABS = "write the ids of two papers with a tab between them"
ADD = "add it to scisummnet_2019, or leave the pair out"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (TRAINING, "\nnonsense", f"2: Citance Number: a line without Citance Number; {RELEASE}"),
        (TRAINING, "Citance Number: 1", f"1: Citing Article: the field is missing; {RELEASE}"),
        (TRAINING, " \n", f"1: file: no annotation in it; {RELEASE}"),
        (GOLD, "a,b\n1,2\n", f"1: Citing Article: the field is missing; {RELEASE}"),
        (GOLD, "<html><body>Not Found</body></html>\n", f"1: Citing Article: the field is missing; "
                                                        f"{RELEASE}"),
        (GOLD, f'{HEAD}\n1,"a', f"2: row: not CSV (unexpected end of data); {RELEASE}"),
        (SENTENCES, "[\n1,", f"2: column 3: not JSON (Expecting value); {RELEASE}"),
        (SENTENCES, "{}", "1: [0]: null where an object belongs; write it as {...}"),
        (SENTENCES, '[{"citing_paper_id": 1}]', f"1: [0].citing_paper_id: {A_NUMBER}; put it in quotes"),
        (PAIRS, "a\tb\nx\n", f"2: row: 'x' is not a pair; {TABS}"),
        (PAIRS, "a\tb\nx\tx\n", f"2: row: 'x\\tx' is not a pair; {TABS}"),
        (PAIRS, "a\tb\n\nN00-0001\tx\n", f"3: row: no text of x; {ADD}"),
    ],
)  # fmt: skip
def test_broken_files(build, refused, name, content, message):
    root = build({name: content}, archives=False)
    with refused(root / name, message):
        read_scisumm(root)


def test_no_pairs_file(build):
    with pytest.raises(DataError, match=r"citation_pairs\.tsv:1: field file: there is no such file"):
        read_scisumm(build({PAIRS: None}))


def test_hostile_papers(build):
    folder = f"{TASK}/Citance_XML/"
    changes = {
        folder + "C10-0001.xml": "<S sid='1'>" * 20_000 + "x",
        folder + "C10-0002.xml": '<!DOCTYPE x [<!ENTITY a "b">]><S sid="1">&a;\0&#0; end</S>'
        '<S sid="9999999999999">y',
        folder + "C10-0003.xml": "<S " * 50_000,
        folder + "C10-0004.xml": "&amp;" * 100_000 + "<S>z &lt;S&gt; w",
    }
    papers = read_scisumm(build(changes)).papers
    assert papers["C10-0001"].sentences == ("x",)
    assert papers["C10-0002"].sentences == ("&a;\ufffd\ufffd end", "y")
    assert "C10-0003" not in papers
    assert papers["C10-0004"].sentences == ("z <S> w",)


@pytest.fixture(scope="module")
def scisumm(real_data: Callable[[str], Path]) -> SciSumm:
    return read_scisumm(real_data("scisumm"))


@pytest.mark.slow
def test_counts_of_the_real_data(scisumm):
    assert len(scisumm.papers) == 1721
    assert median(len(paper.sentences) for paper in scisumm.papers.values()) == 184
    counts = {
        source: (
            sum(link.source == source for link in scisumm.links),
            sum(link.source == source and link.in_first is not None for link in scisumm.links),
            sum(link.source == source and link.in_second is not None for link in scisumm.links),
        )
        for source in SOURCES
    }
    # 577 - 2 papers without text - 5 that are there under two names; 226; 1156
    assert counts == {SOURCES[0]: (570, 473, 481), SOURCES[1]: (226, 209, 226), SOURCES[2]: (1156, 1030, 0)}
    assert len(scisumm.replaced) == 63


@pytest.mark.slow
def test_pairs_of_the_real_data(scisumm):
    shares = {"train": 0.8, "dev": 0.1, "test": 0.1}
    splits = split_without_leaks(scisumm.links, shares=shares, seed=0, drop_crossing=True)
    assert sum(map(len, splits.values())) > 1500
    pairs = {name: list(pairs_from_links(scisumm.papers, links, seed=0)) for name, links in splits.items()}
    check_splits(pairs)
    year = re.compile(r"\([A-Z][a-z]+,? (?:19|20)\d\d\)")
    assert not any(year.search(pair.first.text_of()) for pair in pairs["test"])


NET = "scisummnet_2019/{0}/Reference_XML/{0}.xml"
CORPUS_TASK = "cl_scisumm_2018/Training-Set-2018/R00-0001"
CORPUS_LONG = "The very same words open this paper under both of its names, and we say them twice. " * 2


def sentences(*texts: str) -> str:
    return "\n".join(f'<S sid ="1" ssid = "1">{text}</S>' for text in texts)


def section(*texts: str, heading: str = "1 Method") -> str:
    return f'<SECTION title="{heading}" number="1">\n{sentences(*texts)}\n</SECTION>\n'


def corpus_paper(title: str, *sections: str) -> str:
    head = sentences(title) if title else ""
    return f"<PAPER>\n{head}\n<ABSTRACT>\n{sentences('Abstract.')}\n</ABSTRACT>\n{''.join(sections)}</PAPER>"


def documents(folder: Path, split: str | None = None) -> dict[str, Document]:
    clusters = list(read_scisumm_corpus(folder, split=split))
    assert all([document.id for document in cluster.documents] == [cluster.id] for cluster in clusters)
    return {cluster.id: cluster.documents[0] for cluster in clusters}


def read(write, tmp_path: Path, source: str) -> Document:
    write(NET.format("N00-0001"), source)
    return documents(tmp_path)["N00-0001"]


class TestText:
    def test_sections_are_lines_and_the_sentence_before_them_is_the_title(self, write, tmp_path):
        found = read(
            write,
            tmp_path,
            corpus_paper(
                "Of Trees", section("We &amp;lt; grow.", " ", "They are  tall."), section("The end.")
            ),
        )
        assert found.title == "Of Trees"
        assert found.text == "Of Trees\nAbstract.\nWe < grow. They are tall.\nThe end."
        assert [found.text[start:end] for start, end in found.sentences] == [
            "Of Trees", "Abstract.", "We < grow.", "They are tall.", "The end.",
        ]  # fmt: skip

    def test_without_title(self, write, tmp_path):
        found = read(write, tmp_path, corpus_paper("", section("We grow.")))
        assert (found.title, found.text) == (None, "Abstract.\nWe grow.")

    def test_without_sections_the_title_cannot_be_told(self, write, tmp_path):
        found = read(write, tmp_path, f"<PAPER>{sentences('Of Trees by Ann', 'We grow.')}</PAPER>")
        assert (found.title, found.text) == (None, "Of Trees by Ann We grow.")

    def test_loose_xml(self, write, tmp_path):
        """An open sentence, a heading with < and >, sub-sections, text between sections, an empty one."""
        source = (
            '<PAPER>\n<S sid="0">T.<ABSTRACT/>\n<SECTION title="a < b > c" number="1"><S sid="1">One.'
            '</SECTION><S sid="2">Between.</S><SECTION title="x"><S sid="3">Two.</S>\n'
            '<SUBSECTION title="y"><S sid="4">Three.</S></SUBSECTION><S sid="5">Four.</S></SECTION>'
            '<SECTION title="empty"></SECTION><S>Five.</S></PAPER>'
        )
        found = read(write, tmp_path, source)
        assert found.title == "T."
        assert found.text == "T.\nOne.\nBetween.\nTwo.\nThree.\nFour.\nFive."

    def test_a_paper_without_a_sentence_is_left_out(self, write, tmp_path):
        write(NET.format("N00-0002"), "<PAPER>\n</PAPER>\n")
        write(NET.format("N00-0003"), corpus_paper("Of Nets"))
        assert list(documents(tmp_path)) == ["N00-0003"]


COPIES = {
    NET.format("C01-0001"): corpus_paper("Net's text"),
    f"{CORPUS_TASK}/Citance_XML/C01-0001-parscit130908.xml": corpus_paper("Citing text"),
    f"{CORPUS_TASK}/Reference_XML/R00-0001.xml": corpus_paper("Reference text", section(CORPUS_LONG)),
    f"{CORPUS_TASK}/Citance_XML/P1.xml": corpus_paper("Renamed", section(CORPUS_LONG)),
    f"{CORPUS_TASK}/Citance_XML/P2.xml": corpus_paper("Other", section("It is short.")),
    f"{CORPUS_TASK}/Citance_XML/P3.xml": corpus_paper("Another", section("It is short.")),
    NET.format("N00-0001"): corpus_paper("Journal", section(CORPUS_LONG)),
    f"{CORPUS_TASK}/summary/R00-0001.xml": corpus_paper("A summary"),
}


class TestEachPaperOnce:
    @pytest.fixture
    def folder(self, write, tmp_path) -> Path:
        for name, content in COPIES.items():
            write(name, content)
        return tmp_path

    def test_by_id_and_by_how_it_begins(self, folder):
        """Papers with ids of their own stay apart; short beginnings say nothing."""
        titles = {identifier: found.title for identifier, found in documents(folder).items()}
        assert titles == {
            "R00-0001": "Reference text", "C01-0001": "Net's text", "N00-0001": "Journal",
            "R00-0001/p2": "Other", "R00-0001/p3": "Another",
        }  # fmt: skip
        assert next(iter(titles)) == "R00-0001"  # reference papers of the task first

    def test_as_scisumm_knows_them(self, folder, write):
        write("scisummnet_citation_pairs.tsv", "citing_id\tcited_id\nN00-0001\tC01-0001\n")
        papers = read_scisumm(folder, blanked="none").papers
        found = documents(folder)
        assert set(found) == set(papers)
        for identifier, document in found.items():
            texts = tuple(document.text[start:end] for start, end in document.sentences)
            assert texts == papers[identifier].sentences

    def test_archives_hold_the_same(self, folder, tmp_path):
        packed = tmp_path / "packed"
        packed.mkdir()
        for collection in ("cl_scisumm_2018", "scisummnet_2019"):
            with tarfile.open(packed / f"{collection}.tar.xz", "w:xz") as archive:
                for name, content in COPIES.items():
                    if name.startswith(collection):
                        member = tarfile.TarInfo(name)
                        member.size = len(content.encode())
                        archive.addfile(member, io.BytesIO(content.encode()))
        assert documents(packed) == documents(folder)
        assert [path.name for path in scisumm_files(packed)] == [
            "cl_scisumm_2018.tar.xz",
            "scisummnet_2019.tar.xz",
        ]


class TestCorpus:
    def test_it_is_a_corpus(self, write, tmp_path):
        file = write(NET.format("N00-0001"), corpus_paper("Of Nets"))  # by its hash for training
        write(NET.format("N00-0035"), corpus_paper("Of Knots"))  # and this for test
        corpus = str(tmp_path)
        assert detect_format(corpus).name == "scisumm"
        assert [cluster.id for cluster in open_corpus(corpus, split="train")] == ["N00-0001"]
        assert [cluster.id for cluster in open_corpus(corpus, split="test")] == ["N00-0035"]
        with pytest.raises(ValueError, match="no cluster of the split validation"):
            list(open_corpus(corpus, split="validation"))
        first = corpus_checksum(corpus, split="train")
        write("scisummnet_2019/N00-0001/summary/N00-0001.txt", "not read")
        write("scisummnet_2019/N00-0001/annotation/x.txt", "not read")
        assert detect_format(corpus).name == "scisumm"  # and not a folder of folders of .txt
        assert corpus_checksum(corpus, split="train") == first
        assert corpus_checksum(corpus, split="test") != first
        file.write_text(corpus_paper("Of Mets"))
        assert corpus_checksum(corpus, split="train") != first

    def test_an_archive_counts_where_there_is_a_folder_too(self, write, tmp_path):
        write(NET.format("N00-0001"), corpus_paper("Of Nets"))
        archive = write("scisummnet_2019.tar.xz", b"damaged")
        assert scisumm_files(tmp_path) == [archive]
        with pytest.raises(ValueError, match="the archive is damaged"):
            list(open_corpus(str(tmp_path), split="train"))

    def test_no_collection(self, write, tmp_path):
        write("scisummnet_2019/README.txt", "x")
        assert scisumm_files(tmp_path) == []

    @pytest.mark.slow
    def test_counts_of_the_real_collections(self, real_data):
        found = documents(real_data("scisumm"))
        assert len(found) == 1721
        assert sum(document.title is None for document in found.values()) == 566
        lines = [document.text.count("\n") + (document.title is None) for document in found.values()]
        assert (sum(lines), lines.count(1)) == (12890, 63)  # without titles


@pytest.mark.parametrize(
    ("sentence", "bare"),
    [
        ("It is computed as usual (Shao and Ng, 2004).", "It is computed as usual."),
        ("We take trees (see Brill, 1995; Wu et al., 2004b) apart.", "We take trees apart."),
        ("As Brill and Wu (2000, 2004) show, it works.", "As show, it works."),
        ("Smith, Jones and van der Berg (2004) agree.", "agree."),
        ("Lee et al.'s (2010, p. 5) bank", "bank"),
        ("Müller (1999) says so [12], and others [3, 5-7] too.", "says so, and others too."),
        ("Early work [Brill, 1995] failed.", "Early work failed."),
        ("(2010) combined both.", "combined both."),
        ("(Brill, 1995)", "."),
        ("It has (one, two) parts, as in 1999 (and later).",
         "It has (one, two) parts, as in 1999 (and later)."),
        ("We use x [i] and 1995 words.", "We use x [i] and 1995 words."),
        ("Brill's tagger, of Brill 1995,  is fast.", "Brill's tagger, of Brill 1995, is fast."),
        ("", "."),
    ],
)  # fmt: skip
def test_without_citations(sentence, bare):
    assert without_citations(sentence) == bare
    assert without_citations(bare) == bare


READS_LONG_TEXTS = """
from cdlm_lab.data.scisumm import without_citations
for piece in "(", "(A ", "A, ", "A and ", "van ", "(A 1999 ", "[1,", "[1999 ", "A", "'", "(A b ", "A et al. ":
    print(repr(piece), flush=True)
    without_citations(piece * (200_000 // len(piece)))
"""


def test_no_text_takes_for_ever():
    # All take half a second; each would take hours if brackets were looked for without bound.
    subprocess.run([sys.executable, "-c", READS_LONG_TEXTS], check=True, timeout=1200)
