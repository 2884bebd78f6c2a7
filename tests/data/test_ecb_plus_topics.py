"""ECB+ as plain text: a small document by hand, and the counts of the real corpus."""

import tarfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from cdlm_lab.data.ecb_plus import TOPICS, ecb_plus_files, read_ecb_plus_topics

NAME_REMEDY = "keep the official names, <topic>/<topic>_<number>ecb.xml or ...ecbplus.xml, topics 1 to 45"


def document(*tokens: tuple[int, str]) -> str:
    lines = "".join(
        f'<token t_id="{n}" sentence="{sentence}" number="0">{text}</token>\n'
        for n, (sentence, text) in enumerate(tokens, start=1)
    )
    return f'<Document doc_name="x">\n{lines}<Markables>\n<ACTION m_id="1"/></Markables></Document>\n'


WITH_ADDRESS = document((0, "http"), (0, ":"), (1, "The"), (1, "d&amp;am"), (2, "Broke"), (2, ""), (2, "."))


def test_sub_topics(write, tmp_path):
    for name in (
        "2/2_1ecb.xml",
        "10/10_2ecbplus.xml",
        "10/10_11ecbplus.xml",
        "10/10_3ecb.xml",
        "36/36_1ecb.xml",
    ):
        write(f"ECB+_LREC2014/ECB+/{name}", WITH_ADDRESS)
    write("ECB+_LREC2014/ECB+/10/._10_3ecb.xml", b"\0")
    write("ECB+_LREC2014/README.txt", "x")
    for folder in (tmp_path, tmp_path / "ECB+_LREC2014", tmp_path / "ECB+_LREC2014" / "ECB+"):
        clusters = list(read_ecb_plus_topics(folder))
        assert [cluster.id for cluster in clusters] == ["2ecb", "10ecb", "10ecbplus", "36ecb"]
    assert [found.id for found in clusters[2].documents] == ["10_2ecbplus", "10_11ecbplus"]
    plus, plain = clusters[2].documents[0], clusters[1].documents[0]
    assert plus.text == "The d&am\nBroke ."  # without the address of the page
    assert plain.text == "http :\nThe d&am\nBroke ."
    assert [plain.text[start:end] for start, end in plain.sentences] == ["http :", "The d&am", "Broke ."]
    assert [cluster.id for cluster in read_ecb_plus_topics(tmp_path, split="validation")] == ["2ecb"]
    assert [cluster.id for cluster in read_ecb_plus_topics(tmp_path, split="test")] == ["36ecb"]


def test_whole_topics(write, tmp_path):
    for name in ("2/2_1ecbplus.xml", "2/2_9ecb.xml", "10/10_3ecb.xml"):
        write(name, WITH_ADDRESS)
    clusters = list(read_ecb_plus_topics(tmp_path, by_topic=True))
    assert [(cluster.id, [document.id for document in cluster.documents]) for cluster in clusters] == [
        ("2", ["2_9ecb", "2_1ecbplus"]),
        ("10", ["10_3ecb"]),
    ]


def test_no_files(write, tmp_path, refused):
    with refused(tmp_path, f"1: folder: no ECB+ files; {NAME_REMEDY}"):
        list(read_ecb_plus_topics(tmp_path))
    write("1/1_1ecb.xml", WITH_ADDRESS)
    assert ecb_plus_files(tmp_path, split="test") == []
    with refused(tmp_path, f"1: folder: no ECB+ files for the split test; {NAME_REMEDY}"):
        list(read_ecb_plus_topics(tmp_path, split="test"))


@pytest.mark.parametrize("name", ["1/1_1.xml", "1/2_1ecb.xml", "46/46_1ecb.xml", "1/01_1ecb.xml"])
def test_other_names(write, tmp_path, refused, name):
    path = write(name, WITH_ADDRESS)
    with refused(path, f"1: file name: not the name of an ECB+ file; {NAME_REMEDY}"):
        list(read_ecb_plus_topics(tmp_path))


SECOND = '<token t_id="2" sentence="0" number="0">:</token>'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            SECOND,
            SECOND.replace('sentence="0" ', ""),
            '3: sentence: missing in the token t_id="2"; write the number from 0, as in sentence="3"',
        ),
        (
            SECOND,
            SECOND.replace('"0"', '"-1"', 1),
            "3: sentence: '-1' of the token t_id=\"2\" is not a number; write the number from 0, as in "
            'sentence="3"',
        ),
        (
            "<Markables>",
            "<Markables></oops>",
            "9: column 14: not XML (mismatched tag: line 9, column 13); copy the file again from the "
            "official release",
        ),
    ],
)
def test_malformed_line(write: Callable[..., Path], tmp_path, refused, old, new, message):
    path = write("1/1_1ecb.xml", WITH_ADDRESS.replace(old, new, 1))
    with refused(path, message):
        list(read_ecb_plus_topics(tmp_path))


def test_entities_are_refused(write, tmp_path):
    bomb = '<!DOCTYPE d [<!ENTITY a "aaaa">]><Document><token t_id="1" sentence="0">&a;</token></Document>'
    write("1/1_1ecb.xml", bomb)
    with pytest.raises(
        ValueError, match=r"1_1ecb\.xml:1: field DOCTYPE: the XML defines entities .*; remove the"
    ):
        list(read_ecb_plus_topics(tmp_path))


def test_every_topic_is_in_one_split():
    assert sorted(topic for topics in TOPICS.values() for topic in topics) == list(range(1, 46))


@pytest.fixture(scope="module")
def ecb_plus(real_data, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("ecb_plus")
    with tarfile.open(real_data("ecbplus") / "ECB+_LREC2014.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


# Topics and documents of the description that comes with the data.
@pytest.mark.parametrize(
    ("split", "topics", "documents"), [("train", 25, 575), ("validation", 8, 197), ("test", 10, 210)]
)
def test_counts_of_the_real_corpus(ecb_plus, split, topics, documents):
    clusters = list(read_ecb_plus_topics(ecb_plus, split=split))
    assert len(clusters) == 2 * topics
    whole = [len(cluster.documents) for cluster in read_ecb_plus_topics(ecb_plus, split=split, by_topic=True)]
    assert (len(whole), sum(whole)) == (topics, documents)
    assert sum(len(cluster.documents) for cluster in clusters) == documents
    assert all(document.text and document.sentences for cluster in clusters for document in cluster.documents)
    assert not any(document.text.startswith("http") for cluster in clusters for document in cluster.documents)


def test_documents_of_the_real_corpus(ecb_plus):
    halves = [file.stem.endswith("plus") for file in ecb_plus_files(ecb_plus)]
    assert (halves.count(False), halves.count(True)) == (480, 502)
    first, second = islice(read_ecb_plus_topics(ecb_plus, split="train"), 2)
    assert (first.id, second.id) == ("1ecb", "1ecbplus")
    document = second.documents[9]
    assert document.id == "1_10ecbplus"
    assert document.text.startswith("Lindsay Lohan checks into Betty Ford Center\nMay 03 , 2013\n")


def test_a_page_in_place_of_a_document(write, tmp_path, refused):
    path = write("1/1_1ecb.xml", "<html><body>Not Found</body></html>")
    remedy = "copy the file again from the official release"
    with refused(path, f"1: token: no token has any text; {remedy}"):
        list(read_ecb_plus_topics(tmp_path))
