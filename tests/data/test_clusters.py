"""Clusters: every format is recognised and read, splits and sizes, checksums, and the real files."""

from __future__ import annotations

import gzip
import json
import lzma
import os
from itertools import islice

import pytest

from cdlm_lab.data import clusters as cluster_folder
from cdlm_lab.data.clusters import (
    SHAPES,
    cluster_files,
    corpus_checksum,
    detect_format,
    is_cluster_folder,
    is_multi_news_name,
    multi_news_files,
    news_files,
    open_corpus,
    other_files,
    passed_over,
    read_allsides,
    read_cluster_folder,
    read_cluster_jsonl,
    read_multi_news,
    read_neus,
    read_news_clusters,
)
from cdlm_lab.data.files import DataError, entries
from cdlm_lab.data.records import Cluster, Document, hashed_split
from cdlm_lab.data.storyworld.stories import GENERATOR_VERSION, stories

NEUS = "TITLE=> A. ARTICLE=> b\n"
XML = '<Document><token t_id="1" sentence="0" number="0">x</token></Document>'
ACCEPTED = "give " + " | ".join(SHAPES)


def jsonl(n: int, split: str = "train") -> str:
    return "".join(
        json.dumps({"id": f"c{i}", "documents": ["t", "u"], "split": split}) + "\n" for i in range(n)
    )


@pytest.mark.parametrize(
    ("file", "content", "folder", "name"),
    [
        ("x/train/a/1.txt", "t", True, "cluster_folder"),
        ("x/y.jsonl", jsonl(1), False, "cluster_jsonl"),
        ("x/y.jsonl", '{"cluster_id": "a", "docs": [{"id": "1", "text": "t"}]}', False, "news_clusters"),
        ("x/allsides_a.jsonl", '{"cluster_id": "a", "docs": [{"id": "1", "text": "t"}]}', True,
         "news_clusters"),
        ("x/neus_train.source", NEUS, True, "news_clusters"),
        ("x/neus_train.source", NEUS, False, "news_clusters"),
        ("x/train.txt.src", "a|||||b\n", True, "multi_news"),
        ("x/train.txt.src", "a|||||b\n" * 40, False, "multi_news"),
        ("x/ECB+/1/1_1ecb.xml", XML, True, "ecb_plus"),
        ("x/train/a.tsv", "a\tNULL\n", True, "docarc"),
        ("x/scisummnet_2019/N00-0001/Reference_XML/N00-0001.xml", "<S>t</S>", True, "scisumm"),
    ],
)  # fmt: skip
def test_formats_are_recognised(write, tmp_path, file, content, folder, name):
    path = write(file, content)
    corpus = str(tmp_path / "x" if folder else path)
    assert detect_format(corpus).name == name
    assert next(open_corpus(corpus, split="train")).documents[0].text
    assert len(corpus_checksum(corpus, split="train")) == 64


def test_a_missing_corpus_is_told_what_would_do(tmp_path, refused):
    path = tmp_path / "storywrld"
    with refused(path, f"1: corpus: no such file or folder; {ACCEPTED}"):
        open_corpus(str(path), split="train")  # at once, not when the first cluster is read
    with refused(path, f"1: corpus: no such file or folder; {ACCEPTED}"):
        corpus_checksum(str(path), split="train")


def test_something_else_is_told_what_would_do(write, tmp_path, refused):
    path = write("x/a.csv", "t")
    with refused(path, f"1: corpus: not a corpus that can be read; {ACCEPTED}"):
        open_corpus(str(path), split="train")
    with refused(path.parent, f"1: corpus: not a corpus that can be read; {ACCEPTED}"):
        open_corpus(str(path.parent), split="train")
    write("x/a.txt", "t")
    what = "not a corpus that can be read (its .txt files must lie in sub-folders, one for each cluster)"
    with refused(path.parent, f"1: corpus: {what}; {ACCEPTED}"):
        open_corpus(str(path.parent), split="train")


def test_arguments_that_make_no_sense(write):
    path = str(write("x.jsonl", jsonl(1)))
    with pytest.raises(ValueError, match=r"^split is 'dev'; choose one of train, validation, test$"):
        open_corpus(path, split="dev")
    with pytest.raises(ValueError, match=r"^size is -1; write 0 for all clusters, or how many at most$"):
        corpus_checksum(path, split="train", size=-1)
    with pytest.raises(ValueError, match=r"^size is 0, but storyworld has no end; write how many clusters"):
        open_corpus("storyworld", split="train")
    with pytest.raises(ValueError, match=r"^corpus is ' '; give storyworld"):
        open_corpus(" ", split="train")


def test_size_takes_the_first_and_reads_no_further(write):
    path = str(write("x.jsonl", jsonl(3) + "malformed\n"))
    assert [cluster.id for cluster in open_corpus(path, split="train", size=2)] == ["c0", "c1"]
    with pytest.raises(ValueError, match=r"x\.jsonl:4: field column 1: not JSON"):
        list(open_corpus(path, split="train"))


def test_clusters_are_streamed(write):
    path = str(write("x.jsonl", jsonl(1) + "malformed\n"))
    assert next(open_corpus(path, split="train")).id == "c0"


def test_a_split_without_clusters(write, refused):
    path = write("x.jsonl", jsonl(2))
    remedy = (
        "choose another split, or add clusters "
        "(where a corpus has no splits, 1 cluster in 20 is for validation and 1 in 20 for test)"
    )
    with refused(path, f"1: split: no cluster of the split test; {remedy}"):
        list(open_corpus(str(path), split="test"))


def test_storyworld():
    clusters = list(open_corpus("storyworld", split="validation", size=3, seed=5))
    assert clusters == [story.cluster for story in islice(stories(seed=5, split="validation"), 3)]
    assert clusters != list(open_corpus("storyworld", split="validation", size=3, seed=6))


def test_checksum_of_storyworld_names_all_that_decides(monkeypatch):
    def checksum(split: str = "train", size: int = 3, seed: int = 0) -> str:
        return corpus_checksum("storyworld", split=split, size=size, seed=seed)

    sums = {
        checksum(), checksum("test"), checksum(size=4), checksum(seed=1), checksum(size=31),
        checksum(seed=31),
    }  # fmt: skip
    assert len(sums) == 6
    assert checksum() in sums
    before = checksum()
    monkeypatch.setattr("cdlm_lab.data.storyworld.stories.GENERATOR_VERSION", GENERATOR_VERSION + "x")
    assert checksum() != before
    # Version and seed are told apart, not run together.
    monkeypatch.setattr("cdlm_lab.data.storyworld.stories.GENERATOR_VERSION", "1")
    before = checksum(seed=12)
    monkeypatch.setattr("cdlm_lab.data.storyworld.stories.GENERATOR_VERSION", "11")
    assert checksum(seed=2) != before


def test_checksum_of_files(write, tmp_path):
    def checksum(folder: str, split: str = "train", size: int = 0, seed: int = 0) -> str:
        return corpus_checksum(str(tmp_path / folder), split=split, size=size, seed=seed)

    for folder in ("here", "there"):
        write(f"{folder}/train/a/1.txt", "t")
        write(f"{folder}/train/a/2.txt", "u")
        write(f"{folder}/test/b/1.txt", "t")
    first = checksum("here")
    assert first == checksum("there")  # wherever it lies
    assert first == checksum("here", seed=7)  # files are read in their own order
    assert first != checksum("here", size=1)
    assert first != checksum("here", split="test")
    write("here/test/b/1.txt", "v")
    assert first == checksum("here")  # of another split
    write("here/notes.md", "not read")
    assert first == checksum("here")
    write("here/train/a/2.txt", "v")
    assert first != checksum("here")
    write("here/train/a/2.txt", "u")
    (tmp_path / "here/train/a/2.txt").rename(tmp_path / "here/train/a/3.txt")
    assert first != checksum("here")


def test_a_path_may_begin_with_the_home_folder(write, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write("x.jsonl", jsonl(1))
    assert next(open_corpus("~/x.jsonl", split="train")).id == "c0"
    assert corpus_checksum("~/x.jsonl", split="train") == corpus_checksum(
        str(tmp_path / "x.jsonl"), split="train"
    )


def test_files_passed_over_are_named(write, tmp_path):
    for name in ("x/a/1.txt", "x/a/2.md", "x/b.txt", "y/train.txt.src"):
        write(name, "a|||||b\n")
    assert sorted(passed_over(str(tmp_path / "x"))) == ["a/2.md", "b.txt"]
    assert passed_over(str(tmp_path / "y")) == passed_over("storyworld") == []


def test_a_home_folder_that_nobody_has(refused):
    path, what = "~nobody-is-called-so/x", "no home folder of that name is known"
    with refused(path, f"1: path: {what}; write the path without ~"):
        open_corpus(path, split="train")


def test_clusters(write, tmp_path):
    write("b/2.txt", "\ufeffHeadline\r\nText\u2028of two.\r\n".encode())
    write("b/1.txt.gz", gzip.compress(b"Text of one."))
    write("b/notes.md", "not read")
    write("b/.hidden.txt", b"\xff")
    write("a/empty.txt", "")
    write("a/only.txt", "t")
    write(".git/x.txt", "not read")
    write("readme.txt", "not read")
    a, b = read_cluster_folder(tmp_path)
    assert a == Cluster(id="a", documents=(Document(id="empty", text=""), Document(id="only", text="t")))
    assert b == Cluster(
        id="b",
        documents=(
            Document(id="1", text="Text of one."),
            Document(id="2", text="Headline\nText\u2028of two."),
        ),
    )
    assert [path.name for path in cluster_files(tmp_path)] == ["empty.txt", "only.txt", "1.txt.gz", "2.txt"]
    assert is_cluster_folder(tmp_path)
    assert not is_cluster_folder(tmp_path / "b")


def test_the_name_of_the_cluster_decides_the_split(write, tmp_path):
    names = [f"c{index:03}" for index in range(100)]
    for name in names:
        write(f"{name}/a.txt", "t")
    for split in ("train", "validation", "test"):
        expected = [name for name in names if hashed_split(name) == split]
        assert [cluster.id for cluster in read_cluster_folder(tmp_path, split=split)] == expected
        assert [path.parent.name for path in cluster_files(tmp_path, split=split)] == expected
        assert expected


def test_sub_folders_named_after_splits(write, tmp_path):
    write("train/a/1.txt", "t")
    write("val/b/1.txt", "t")
    write("test/1.txt", "a cluster that is called test")
    assert is_cluster_folder(tmp_path)
    assert [cluster.id for cluster in read_cluster_folder(tmp_path)] == ["test", "a", "b"]
    assert [cluster.id for cluster in read_cluster_folder(tmp_path, split="validation")] == ["b"]
    assert "a" in [cluster.id for cluster in read_cluster_folder(tmp_path, split="train")]


def test_cluster_without_documents(write, tmp_path, refused):
    write("a/1.txt", "t")
    path = write("b/notes.md", "t").parent
    remedy = "put one .txt file for each document there, or remove the folder"
    with refused(path, f"1: folder: a cluster without documents; {remedy}"):
        list(read_cluster_folder(tmp_path))


def test_cluster_without_any_text(write, tmp_path, refused):
    write("a/1.txt", "")
    path = write("a/2.txt", " \n\t\n").parent
    with refused(path, "1: folder: no document has any text; fill its files, or remove the folder"):
        list(read_cluster_folder(tmp_path))


def test_the_same_document_twice(write, tmp_path, refused):
    write("a/1.txt", "t")
    path = write("a/1.txt.gz", gzip.compress(b"t"))
    what = "another file of this folder is document '1' too"
    with refused(path, f"1: file name: {what}; keep one of them, or rename it"):
        list(read_cluster_folder(tmp_path))


def test_the_same_cluster_twice(write, tmp_path, refused):
    write("train/a/1.txt", "t")
    write("test/a/1.txt", "t")
    what, remedy = "train/a and test/a have the same name", "rename one: the name is the id of the cluster"
    with refused(tmp_path, f"1: folder name: {what}; {remedy}"):
        list(read_cluster_folder(tmp_path))


def test_faults_inside_a_text(write, tmp_path, refused):
    path = write("a/1.txt", b"fine\nna\xefve\n")
    remedy = "convert the file, for example: iconv -f WINDOWS-1252 -t UTF-8 1.txt"
    with refused(path, f"2: byte 7: 0xef is not UTF-8; {remedy}"):
        list(read_cluster_folder(tmp_path))


def test_other_files_are_named(write, tmp_path):
    for name in ("a/1.txt", "a/2.TXT", "a/3.Txt", "train/b/1.txt", "test/1.txt"):
        write(name, "t")
    others = ["loose.txt", "notes.md", "train/list.csv", "a/4.html", "a/5.md", "a/deeper/6.txt", "test/7.pdf"]
    for name in (*others, ".git/x.txt", "a/.hidden.txt"):
        write(name, "t")
    assert {c.id: [d.id for d in c.documents] for c in read_cluster_folder(tmp_path)} == {
        "a": ["1", "2", "3"],
        "b": ["1"],
        "test": ["1"],
    }
    found = [path.relative_to(tmp_path).as_posix() for path in other_files(tmp_path)]
    assert sorted(found) == sorted([*others[:5], "a/deeper", "test/7.pdf"])


def test_other_files_take_as_long_as_there_are_files(write, tmp_path, monkeypatch):
    for number in range(30):
        write(f"a/{number}.txt", "t")
        write(f"a/{number}.md", "t")
    listed = []
    monkeypatch.setattr(cluster_folder, "entries", lambda folder: listed.append(folder) or entries(folder))
    assert len(other_files(tmp_path)) == 30
    assert len(listed) < 10, "a folder is listed a few times, not once for each of its files"


def test_a_cluster_whose_name_is_not_utf_8(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / "1.txt").write_text("t")
    with pytest.raises(DataError, match=r"caf\\udce9:1: field path: the path is not UTF-8"):
        list(read_cluster_folder(tmp_path))


GOOD = (
    '{"id": "a", "split": "train", "documents": ["Plain\\u2028text.", {"text": "Body."}, '
    '{"id": "x", "title": "Head", "text": "Body.", "source": "?"}, {"title": null, "text": ""}, ""]}\n'
    '{"id": "b", "split": "dev", "documents": ["One alone."], "more": 1}\n'
)


def test_records(write):
    path = write("x.jsonl", GOOD)
    a, b = read_cluster_jsonl(path)
    assert a == Cluster(
        id="a",
        documents=(
            Document(id="0", text="Plain\u2028text."),
            Document(id="1", text="Body."),
            Document(id="x", text="Head\nBody.", title="Head"),
            Document(id="3", text=""),
            Document(id="4", text=""),
        ),
    )
    assert list(read_cluster_jsonl(path, split="train")) == [a]
    assert list(read_cluster_jsonl(path, split="validation")) == [b]
    assert list(read_cluster_jsonl(path, split="test")) == []


def test_without_a_split_the_hash_of_the_id_decides(write):
    ids = [f"c{index}" for index in range(300)]
    path = write("x.jsonl", "".join(json.dumps({"id": i, "documents": ["t"]}) + "\n" for i in ids))
    for split in ("train", "validation", "test"):
        found = [cluster.id for cluster in read_cluster_jsonl(path, split=split)]
        assert found == [i for i in ids if hashed_split(i) == split]
        assert found


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"documents": ["t"]}', '3: id: missing; add "id" to the record'),
        ('{"id": 5, "documents": ["t"]}', "3: id: a number where a text belongs; put it in quotes"),
        ('{"id": "a", "documents": ["t"]}',
         "3: id: 'a' stands in line 1 already; give each record its own id"),
        ('{"id": "c"}', '3: documents: missing; add "documents" to the record'),
        ('{"id": "c", "documents": "t"}', "3: documents: a text where a list belongs; write it as [...]"),
        ('{"id": "c", "documents": []}',
         "3: documents: an empty list; add what is missing, or delete the record"),
        ('{"id": "c", "documents": ["", {"text": " \\n"}]}',
         "3: documents: no document has any text; fill one in, or delete the line"),
        ('{"id": "c", "documents": ["t", null]}',
         '3: documents[1]: null where an object belongs; write each as a text in quotes, or {"text": "..."}'),
        ('{"id": "c", "documents": [{"title": "t"}]}',
         '3: documents[0].text: missing; add "text" to the record'),
        ('{"id": "c", "documents": [{"text": "t", "title": ["x"]}]}',
         "3: documents[0].title: a list where a text belongs; put it in quotes"),
        ('{"id": "c", "documents": ["t", {"id": "0", "text": "u"}]}',
         "3: documents[1].id: '0' is in this cluster already; give every document its own id"),
        ('{"id": "c", "documents": ["t"], "split": "Train"}',
         "3: split: 'Train' is not a split; write train, validation or test, or leave it out"),
        ('{"id": "c", "documents": ["\\udfff"]}',
         "3: documents[0].text: half a surrogate pair at character 0; remove the lone \\ud... escape"),
    ],
)  # fmt: skip
def test_malformed_line(write, refused, line, message):
    path = write("x.jsonl", GOOD + line + "\n")
    clusters = read_cluster_jsonl(path, split="train")
    assert next(clusters).id == "a"  # what stands before the fault is read
    with refused(path, message):
        list(clusters)


BAR, TAG = "|||||", "story_separator_special_tag"


def texts(path) -> list[list[str]]:
    return [[document.text for document in cluster.documents] for cluster in read_multi_news(path)]


@pytest.mark.parametrize("separator", [BAR, TAG])
@pytest.mark.parametrize("end", ["", "{}", " {} "], ids=["no trailing", "trailing", "trailing with spaces"])
def test_separators(write, separator, end):
    line = f"one . {separator} two\u2028a | b || c {separator}{separator} four" + end.format(separator) + "\n"
    path = write("x.src", line + line)
    documents = ["one .", "two\u2028a | b || c", "", "four"]
    assert texts(path) == [documents, documents]


def test_newline_tokens_become_line_breaks(write):
    line = (
        f"NEWLINE_CHAR Head NEWLINE_CHAR NEWLINE_CHAR Body NEWLINE_CHAR {BAR}Next NEWLINE_CHAR line {BAR}\n"
    )
    assert texts(write("x.src.cleaned", line)) == [["Head\n\nBody", "Next\nline"]]


def test_lone_and_empty_documents_keep_their_lines(write):
    path = write("train.txt.src", f"alone\n\na{BAR}b\n{BAR}\nalone too\n")
    assert texts(path) == [["alone"], [""], ["a", "b"], [""], ["alone too"]]
    clusters = list(read_multi_news(path))
    assert [cluster.id for cluster in clusters] == [f"train-{line}" for line in range(5)]
    assert [document.id for document in clusters[2].documents] == ["train-2-0", "train-2-1"]


def test_folder_of_official_files(write, tmp_path, refused):
    write("train.txt.src", f"a{BAR}b\n")
    write("val.txt.src.gz", gzip.compress(f"c{TAG}d\n".encode()))
    write("train.txt.tgt", "a summary\n")
    write("notes.src", "some other file\n")
    assert [cluster.id for cluster in read_multi_news(tmp_path)] == ["train-0", "val-0"]
    assert [cluster.id for cluster in read_multi_news(tmp_path, split="validation")] == ["val-0"]
    assert [path.name for path in multi_news_files(tmp_path, split="train")] == ["train.txt.src"]
    with refused(tmp_path, "1: folder: no file for the split test; put test.txt.src there"):
        list(read_multi_news(tmp_path, split="test"))
    (tmp_path / "val.txt.src.gz").unlink()
    with refused(tmp_path, "1: folder: no file for the split validation; put val.txt.src there"):
        list(read_multi_news(tmp_path, split="validation"))
    (empty := tmp_path / "empty").mkdir()
    with refused(empty, "1: folder: no file for any split; put train.txt.src there"):
        list(read_multi_news(empty))
    write("train.txt.src.cleaned", f"a{BAR}b\n")
    what = "train.txt.src and train.txt.src.cleaned both hold the train split"
    with refused(tmp_path, f"1: folder: {what}; give the path of one file, or move the other away"):
        multi_news_files(tmp_path)


def test_a_single_file_is_split_by_the_hash_of_its_lines(write):
    path = write("train.txt.src", f"a{BAR}b\n" * 200)
    for split in ("train", "validation", "test"):
        found = [cluster.id for cluster in read_multi_news(path, split=split)]
        assert found == [f"train-{n}" for n in range(200) if hashed_split(f"train-{n}") == split]
        assert found


def test_a_file_without_separators_is_something_else(write, refused):
    path = write("x.src", "one\ntwo\n")
    remedy = "separate the documents of a line with ||||| or story_separator_special_tag"
    with refused(path, f"1: separator: no line has more than one document; {remedy}"):
        list(read_multi_news(path))


def test_malformed_line_of_multi_news(write, refused):
    path = write("x.src", f"a{BAR}b\n".encode() + b"caf\xe9\n")
    remedy = "convert the file, for example: iconv -f WINDOWS-1252 -t UTF-8 x.src"
    with refused(path, f"2: byte 11: 0xe9 is not UTF-8; {remedy}"):
        list(read_multi_news(path))


def test_names():
    assert is_multi_news_name("a/train.txt.src")
    assert is_multi_news_name("val.src.cleaned.xz")
    assert not is_multi_news_name("train.txt.tgt")
    assert not is_multi_news_name("train.source")


NEWS_NEUS = (
    "TITLE=> One. ARTICLE=> First text. [SEP] TITLE=> Two. ARTICLE=> Second\u2028text. "
    "[SEP] TITLE=> Three. ARTICLE=>\n"
    "TITLE=>  ARTICLE=> Only text.\n"
)
NEUS_REMEDY = "write TITLE=> title ARTICLE=> text, with [SEP] between documents"


def allsides(cluster_id: str, *documents: tuple[str, str, str], **more: object) -> str:
    docs = [{"id": i, "title": title, "text": text, "source": "x"} for i, title, text in documents]
    return json.dumps({"cluster_id": cluster_id, "docs": docs, **more}) + "\n"


def test_allsides_records(write):
    lines = (
        allsides("a", ("1", "Head", "Body\u2028of\n\nit"), ("2", "Alone", ""), split="train")
        + "\n"
        + allsides("b", ("1", "", "No title"), split="val")
        + allsides("c", ("1", "T", "x"))
        + '{"cluster_id": "d", "split": null, "docs": [{"id": "1", "text": ""}, {"id": "2", "text": "y"}]}\n'
    )
    path = write("allsides_x.jsonl.xz", lzma.compress(lines.encode()))
    a, b, c, d = read_allsides(path)
    assert [document.text for document in a.documents] == ["Head\nBody\u2028of\n\nit", "Alone"]
    assert [document.title for document in a.documents] == ["Head", "Alone"]
    assert [document.id for document in a.documents] == ["1", "2"]
    assert b.documents[0].text == "No title"
    assert (d.documents[0].text, d.documents[0].title) == ("", None)
    assert [cluster.id for cluster in read_allsides(path, split="train")] == ["a", "c", "d"]
    assert list(read_allsides(path, split="validation")) == [b]
    assert list(read_allsides(path, split="test")) == []
    assert c.id == "c"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"cluster_id": "b"}', '2: docs: missing; add "docs" to the record'),
        ('{"cluster_id": "b", "docs": []}',
         "2: docs: an empty list; add what is missing, or delete the record"),
        ('{"cluster_id": "b", "docs": [7]}',
         "2: docs[0]: a number where an object belongs; write it as {...}"),
        ('{"cluster_id": "b", "docs": [{"id": "1"}]}', '2: docs[0].text: missing; add "text" to the record'),
        ('{"cluster_id": "b", "split": "train2", "docs": [{"id": "1", "text": ""}]}',
         "2: split: 'train2' is not a split; write train, validation or test, or leave it out"),
        (allsides("b", ("1", "", ""), ("2", "", " ")),
         "2: docs: no document has any text; fill one in, or delete the line"),
        (allsides("b", ("1", "", ""), ("1", "", "")),
         "2: docs[1].id: '1' is in this cluster already; give every document its own id"),
        (allsides("a", ("1", "", "")),
         "2: cluster_id: 'a' stands in line 1 already; give each record its own cluster_id"),
    ],
)  # fmt: skip
def test_malformed_allsides_line(write, refused, line, message):
    path = write("allsides_x.jsonl", allsides("a", ("1", "T", "x")) + line)
    with refused(path, message):
        list(read_allsides(path, split="test"))  # also where no cluster of the line is asked for


def test_neus_records(write):
    path = write("neus_val.source.gz", gzip.compress(NEWS_NEUS.encode()))
    first, second = read_neus(path)
    assert (first.id, second.id) == ("neus-val-0", "neus-val-1")
    assert [document.id for document in first.documents] == ["neus-val-0-0", "neus-val-0-1", "neus-val-0-2"]
    assert [document.text for document in first.documents] == [
        "One.\nFirst text.",
        "Two.\nSecond\u2028text.",
        "Three.",
    ]
    assert (second.documents[0].text, second.documents[0].title) == ("Only text.", "")
    assert list(read_neus(path, split="validation")) == [first, second]
    assert list(read_neus(path, split="train")) == []


@pytest.mark.parametrize(
    ("line", "document", "mark"),
    [
        ("TITLE=> a ARTICLE=> b [SEP] TITLE=> c", 2, "ARTICLE=>"),
        ("a ARTICLE=> b", 1, "TITLE=>"),
        ("x TITLE=> a ARTICLE=> b", 1, "TITLE=>"),
        ("TITLE=> a ARTICLE=> b [SEP]", 2, "TITLE=>"),
        ("", 1, "TITLE=>"),
    ],
)
def test_malformed_neus_line(write, refused, line, document, mark):
    path = write("neus_train.source", NEWS_NEUS + line + "\n")
    with refused(path, f"3: document {document}: no {mark} where one belongs; {NEUS_REMEDY}"):
        list(read_neus(path))


def test_neus_line_without_any_text(write, refused):
    path = write("neus_train.source", NEWS_NEUS + "TITLE=>  ARTICLE=> [SEP] TITLE=> ARTICLE=>\n")
    with refused(path, "3: line: no document has any text; fill one in, or delete the line"):
        list(read_neus(path))


def test_neus_name_without_split(write, refused):
    path = write("neus.source", NEWS_NEUS)
    remedy = "name it neus_train.source, neus_val.source or neus_test.source"
    with refused(path, f"1: file name: the name does not say the split; {remedy}"):
        list(read_neus(path))


def test_a_folder_is_read_as_its_full_texts_or_else_as_its_openings(write, tmp_path, refused):
    remedy = "put allsides_*.jsonl or neus_<split>.source files there"
    with refused(tmp_path, f"1: folder: no news clusters here; {remedy}"):
        list(read_news_clusters(tmp_path))
    for name in ("neus_val.source", "neus_train.source", "neus_val.target"):
        write(name, NEWS_NEUS)
    assert [path.name for path in news_files(tmp_path, split="train")] == ["neus_train.source"]
    clusters = [cluster.id for cluster in read_news_clusters(tmp_path)]
    assert clusters == ["neus-train-0", "neus-train-1", "neus-val-0", "neus-val-1"]
    write("allsides_b.jsonl", allsides("b", ("1", "", "x")))
    write("allsides_a.jsonl", allsides("a", ("1", "", "x"), split="test"))
    assert [cluster.id for cluster in read_news_clusters(tmp_path)] == ["a", "b"]
    assert [cluster.id for cluster in read_news_clusters(tmp_path, split="test")] == ["a"]


# Counts of the description that comes with the data: clusters of 2, 3 and 4 documents.
REAL = [
    ("allsides_fulltext_clusters.jsonl.xz", "train", {2: 743, 3: 405}),
    ("allsides_fulltext_clusters.jsonl.xz", "validation", {2: 94, 3: 67}),
    ("allsides_fulltext_clusters.jsonl.xz", "test", {2: 104, 3: 50}),
    ("allsides_weak_clusters.jsonl.xz", "train", {2: 1086, 3: 353, 4: 125}),
    ("allsides_weak_clusters.jsonl.xz", "test", {}),
    ("neus_train.source.gz", "train", {3: 2452}),
    ("neus_val.source.gz", "validation", {3: 307}),
    ("neus_test.source.gz", "test", {3: 307}),
]


@pytest.mark.parametrize(("name", "split", "sizes"), REAL)
def test_counts_of_the_real_files(real_data, name, split, sizes):
    counts: dict[int, int] = {}
    for cluster in read_news_clusters(real_data("news_clusters") / name, split=split):
        counts[len(cluster.documents)] = counts.get(len(cluster.documents), 0) + 1
        assert all(document.text.strip() for document in cluster.documents)
    assert counts == sizes


def test_first_middle_and_last_record_of_the_real_files(real_data):
    folder = real_data("news_clusters")
    full = list(read_allsides(folder / "allsides_fulltext_clusters.jsonl.xz"))
    assert len(full) == 1463
    assert (full[0].id, full[0].documents[0].id) == ("neus-train-0", "3Pna4x6u4Ksz9Upf")
    assert (
        full[0]
        .documents[0]
        .text.startswith("Trump slams John Kerry for 'shadow diplomacy' on Iran deal\nPresident")
    )
    assert len({document.id for cluster in full for document in cluster.documents}) == 3442
    train = list(read_neus(folder / "neus_train.source.gz"))
    # The same event in both files, by its number.
    assert full[0].documents[0].title in train[0].documents[0].title
    empty = sum(
        document.text == document.title
        for name in ("train", "val", "test")
        for cluster in read_neus(folder / f"neus_{name}.source.gz")
        for document in cluster.documents
    )
    assert empty == 22  # documents without a body
