"""Doc-ARC's files: documents by hand, splits, lists of tags, and every complaint."""

import gzip
import lzma

import pytest

from cdlm_lab.data.tagged import (
    TaggedDocument,
    TaggedSentence,
    TagReading,
    docarc_labels,
    read_docarc,
    read_docarc_split,
)

TEXT = "Ann\tB-PER\nLee\tI-PER\nslept\tO\n\n. . .\tNULL\nShe\tNULL\n\nIn\tO\nGhent\tI-GPE"
DOCUMENT = TaggedDocument(
    id="1_ann.v2",
    sentences=(
        TaggedSentence(words=("Ann", "Lee", "slept"), tags=("B-PER", "I-PER", "O")),
        TaggedSentence(words=(". . .", "She")),
        TaggedSentence(words=("In", "Ghent"), tags=("O", "B-GPE")),
    ),
)


def test_a_document(write):
    reading = TagReading()
    # No line end or an end and a blank line: the last sentence is there.
    for end in ("", "\n", "\n\n", "\r\n \n\n"):
        assert read_docarc(str(write("1_ann.v2.tsv", TEXT + end)), reading=reading) == DOCUMENT
    assert reading.mended == 4
    assert DOCUMENT.labelled == (0, 2)
    packed = gzip.compress(TEXT.replace("\n", "\r\n").encode())
    assert read_docarc(write("1_ann.v2.tsv.gz", packed)) == DOCUMENT
    assert read_docarc(write("1_ann.v2.tsv.xz", lzma.compress(TEXT.encode()))) == DOCUMENT
    assert read_docarc(write("b.tsv", "a\tO\n")).sentences == (TaggedSentence(words=("a",), tags=("O",)),)


def test_words_are_kept_once(write):
    first, second = read_docarc(write("a.tsv", "some word\tO\n\nsome word\tNULL\n")).sentences
    assert first.words[0] is second.words[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tO\nb\n", "2: row: one column instead of 2; write the word, a tab and its tag"),
        ("a O\n", "1: row: one column instead of 2; write the word, a tab and its tag"),
        ("a\tb\tO\n", "1: row: 3 columns instead of 2; write the word, a tab and its tag"),
        ("a\tO\n\n\tO\n", "3: word: an empty word; write it, or delete the line"),
        ("a\tO\nb\t\n", "2: tag: '' is not a tag; write O, or B- or I- and a label"),
        (
            "a\tO\n\nb\tNULL\nc\tO\n",
            "4: tag: NULL and other tags in one sentence; label all of its words or none",
        ),
        (
            "a\tO\nb\tO\nc\tNULL\n",
            "3: tag: NULL and other tags in one sentence; label all of its words or none",
        ),
        (
            "a\tNULL\n\nb\tNULL\n",
            "1: tag: no sentence has labels, all tags are NULL; label a sentence (O is a label), or take "
            "the file out",
        ),
        ("\n \n", "1: file: the file is empty; fill it, or take it out of the corpus"),
    ],
)
def test_complaints(write, refused, text, message):
    path = write("a.tsv", text)
    with refused(path, message):
        read_docarc(path)


def test_stray_tags_refused(write, refused):
    path = write("a.tsv", TEXT)
    with refused(
        path, "9: tag: 'I-GPE' follows no span of its label; write B- for I-, or read with stray=\"accept\""
    ):
        read_docarc(path, reading=TagReading(stray="refuse"))


@pytest.fixture
def corpus(write, tmp_path):
    for name in ("train/b.tsv", "train/a.tsv", "development/c.tsv"):
        write(name, f"{name[-5]}\tI-X\n")
    write("train/d.tsv.gz", gzip.compress(b"d\tO\n"))
    write("train/notes.txt", "none")
    return tmp_path


def test_splits(corpus):
    reading = TagReading()
    found = list(read_docarc_split(corpus, "train", reading=reading))
    assert [(document.id, document.sentences[0].words) for document in found] == [
        ("a", ("a",)),
        ("b", ("b",)),
        ("d", ("d",)),
    ]
    assert reading.mended == 2
    for split in ("dev", "validation"):
        assert [document.id for document in read_docarc_split(str(corpus), split)] == ["c"]
    chosen = read_docarc_split(corpus, "train", chosen=lambda count: [count - 1, 0])
    assert [document.id for document in chosen] == ["d", "a"]


def test_one_document_at_a_time(corpus, write):
    documents = read_docarc_split(corpus, "train")
    write("train/b.tsv", "no tab")
    assert next(documents).id == "a"
    with pytest.raises(ValueError, match=r"b.tsv:1: field row: one column"):
        next(documents)


def test_labels_of_the_list(corpus, write, refused):
    assert docarc_labels(corpus) is None
    tags = write("x.tagset", "O\t0\nI-Y\t1\nB-Y\t2\n\nB-Z\t3\n")
    assert docarc_labels(corpus) == ("Y", "Z")
    path = corpus / "train" / "a.tsv"
    with refused(path, "1: tag: 'I-X' is not a known tag; the labels are Y, Z"):
        next(read_docarc_split(corpus, "train"))
    reading = TagReading(labels=["X"])
    assert len(list(read_docarc_split(corpus, "train", reading=reading))) == 3
    assert reading.labels == ["X"]
    write("x.tagset", "O\t0\nperson\t1\n")
    with refused(tags, "2: tag: 'person' is not a tag; write O, or B- or I- and a label"):
        docarc_labels(corpus)
    write("y.tagset", "O\t0\n")
    remedy = "leave the one that fits the files"
    with refused(corpus, f"1: folder: several lists of tags (x.tagset, y.tagset); {remedy}"):
        read_docarc_split(corpus, "train")


def test_faulty_folders(corpus, write, refused):
    with pytest.raises(ValueError, match="split is 'all'; choose one of train, dev, test"):
        read_docarc_split(corpus, "all")
    with refused(
        corpus, "1: folder: there is no folder test in it; give the folder around train, dev and test"
    ):
        read_docarc_split(corpus, "test")
    (corpus / "test").mkdir()
    remedy = "put a file for each document there"
    with refused(corpus / "test", f"1: folder: no .tsv files in it; {remedy}"):
        read_docarc_split(corpus, "test")
    second = write("train/a.tsv.gz", b"")
    with refused(second, "1: file: a.tsv is the same document; leave one of them"):
        read_docarc_split(corpus, "train")
