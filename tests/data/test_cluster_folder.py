"""Folders of folders of texts."""

import gzip
import os

import pytest

from cdlm_lab.data import clusters as cluster_folder
from cdlm_lab.data.clusters import cluster_files, is_cluster_folder, other_files, read_cluster_folder
from cdlm_lab.data.files import DataError, entries
from cdlm_lab.data.records import Cluster, Document, hashed_split


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
