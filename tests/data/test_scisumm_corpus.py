"""Papers of CL-SciSumm and ScisummNet as texts: sections as lines, each paper once, the real ones counted."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from cdlm_lab.data.clusters import corpus_checksum, detect_format, open_corpus
from cdlm_lab.data.records import Document
from cdlm_lab.data.scisumm import read_scisumm, read_scisumm_corpus, scisumm_files

NET = "scisummnet_2019/{0}/Reference_XML/{0}.xml"
TASK = "cl_scisumm_2018/Training-Set-2018/R00-0001"
LONG = "The very same words open this paper under both of its names, and we say them twice. " * 2


def sentences(*texts: str) -> str:
    return "\n".join(f'<S sid ="1" ssid = "1">{text}</S>' for text in texts)


def section(*texts: str, heading: str = "1 Method") -> str:
    return f'<SECTION title="{heading}" number="1">\n{sentences(*texts)}\n</SECTION>\n'


def paper(title: str, *sections: str) -> str:
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
            paper("Of Trees", section("We &amp;lt; grow.", " ", "They are  tall."), section("The end.")),
        )
        assert found.title == "Of Trees"
        assert found.text == "Of Trees\nAbstract.\nWe < grow. They are tall.\nThe end."
        assert [found.text[start:end] for start, end in found.sentences] == [
            "Of Trees",
            "Abstract.",
            "We < grow.",
            "They are tall.",
            "The end.",
        ]

    def test_without_title(self, write, tmp_path):
        found = read(write, tmp_path, paper("", section("We grow.")))
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
        write(NET.format("N00-0003"), paper("Of Nets"))
        assert list(documents(tmp_path)) == ["N00-0003"]


COPIES = {
    NET.format("C01-0001"): paper("Net's text"),
    f"{TASK}/Citance_XML/C01-0001-parscit130908.xml": paper("Citing text"),
    f"{TASK}/Reference_XML/R00-0001.xml": paper("Reference text", section(LONG)),
    f"{TASK}/Citance_XML/P1.xml": paper("Renamed", section(LONG)),
    f"{TASK}/Citance_XML/P2.xml": paper("Other", section("It is short.")),
    f"{TASK}/Citance_XML/P3.xml": paper("Another", section("It is short.")),
    NET.format("N00-0001"): paper("Journal", section(LONG)),
    f"{TASK}/summary/R00-0001.xml": paper("A summary"),
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
            "R00-0001": "Reference text",
            "C01-0001": "Net's text",
            "N00-0001": "Journal",
            "R00-0001/p2": "Other",
            "R00-0001/p3": "Another",
        }
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
        file = write(NET.format("N00-0001"), paper("Of Nets"))  # by its hash for training
        write(NET.format("N00-0035"), paper("Of Knots"))  # and this for test
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
        file.write_text(paper("Of Mets"))
        assert corpus_checksum(corpus, split="train") != first

    def test_an_archive_counts_where_there_is_a_folder_too(self, write, tmp_path):
        write(NET.format("N00-0001"), paper("Of Nets"))
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
