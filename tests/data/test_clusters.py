"""Clusters: every format is recognised and read, splits and sizes, checksums, and the real files."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import islice
from pathlib import Path

import datasets
import pytest

from cdlm_lab.data import clusters
from cdlm_lab.data.clusters import corpus_checksum, detect_format, open_corpus, passed_over
from cdlm_lab.data.files import DataError, entries
from cdlm_lab.data.records import Cluster, Document
from cdlm_lab.data.splits import SPLITS, hashed_split
from cdlm_lab.data.storyworld import stories

XML = '<Document><token t_id="1" sentence="0" number="0">x</token></Document>'
EVENT = '{"cluster_id": "a", "docs": [{"id": "1", "text": "t"}]}'
ACCEPTED = "give " + " | ".join(clusters.SHAPES)


def by_split(read, path) -> dict[str, list[str]]:
    """Return split -> ids of its clusters, after checking that each split has some."""
    ids = {split: [cluster.id for cluster in read(path, split=split)] for split in SPLITS}
    assert all(ids.values())
    return ids


def every(read, path) -> list[Cluster]:
    """Return the clusters of all splits, one split after the other."""
    return [cluster for split in SPLITS for cluster in read(path, split=split)]


def hashed(names: list[str]) -> dict[str, list[str]]:
    return {split: [name for name in names if hashed_split(name) == split] for split in SPLITS}


def jsonl(count: int) -> str:
    records = ({"id": f"c{n}", "documents": ["t", "u"], "split": "train"} for n in range(count))
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize(("file", "content", "folder", "name"), [
    ("x/train/a/1.txt", "t", True, "cluster_folder"),
    ("x/y.jsonl", jsonl(1), False, "rows"),
    ("x/y.jsonl", EVENT, False, "rows"),
    ("x/allsides_a.jsonl", EVENT, True, "rows"),
    ("x/train.txt.src", "a|||||b\n", True, "rows"),
    ("x/train.src.cleaned.gz", "a|||||b\n" * 40, False, "rows"),
    ("x/ECB+/1/1_1ecb.xml", XML, True, "ecb_plus"),
    ("x/train/a.tsv", "a\tNULL\n", True, "docarc"),
    ("x/scisummnet_2019/N00-0001/Reference_XML/N00-0001.xml", "<S>t</S>", True, "scisumm"),
    ("x/train.txt.tgt", "a|||||b\n", False, None),
    ("x/a.csv", "t", False, None),
    ("x/a.csv", "t", True, None),
    ("x/a.txt", "t", True, None),
    ("storywrld/", None, True, None),
])  # fmt: skip
def test_formats_are_recognised(write, tmp_path, refused, file, content, folder, name):
    path = tmp_path / "storywrld" if content is None else write(file, content)
    corpus = tmp_path / "x" if folder and content else path
    if name:
        assert detect_format(corpus).name == name
        assert next(open_corpus(str(corpus), split="train")).documents[0].text
        assert len(corpus_checksum(str(corpus), split="train")) == 64
        return
    what = "not a corpus that can be read" if content else "no such file or folder"
    if corpus != path and path.suffix == ".txt":
        what += " (its .txt files must lie in sub-folders, one for each cluster)"
    for read in (open_corpus, corpus_checksum):  # at once, not when the first cluster is read
        with refused(corpus, f"1: corpus: {what}; {ACCEPTED}"):
            read(str(corpus), split="train")


@pytest.mark.parametrize(("corpus", "options", "message"), [
    ("x.jsonl", {"split": "dev"}, "split is 'dev'; choose one of train, validation, test$"),
    ("x.jsonl", {"size": -1}, "size is -1; write 0 for all clusters, or how many at most$"),
    ("storyworld", {}, "size is 0, but storyworld has no end; write how many clusters"),
    (" ", {}, "corpus is ' '; give storyworld"),
])  # fmt: skip
def test_arguments_that_make_no_sense(corpus, options, message):
    for read in (open_corpus, corpus_checksum):
        with pytest.raises(ValueError, match=f"^{message}"):
            read(corpus, **{"split": "train", **options})


def test_size_takes_the_first_and_reads_no_further(write, refused):
    path = write("x.jsonl", jsonl(3) + "malformed\n")
    assert [cluster.id for cluster in open_corpus(str(path), split="train", size=2)] == ["c0", "c1"]
    assert next(open_corpus(str(path), split="train")).id == "c0"
    with pytest.raises(ValueError, match=r"x\.jsonl:4: field column 1: not JSON"):
        list(open_corpus(str(path), split="train"))
    path = write("x.jsonl", jsonl(2))
    shares = "where a corpus has no splits, 1 cluster in 20 is for validation and 1 in 20 for test"
    remedy = f"choose another split, or add clusters ({shares})"
    with refused(path, f"1: split: no cluster of the split test; {remedy}"):
        list(open_corpus(str(path), split="test"))


def test_storyworld():
    drawn = list(open_corpus("storyworld", split="validation", size=3, seed=5))
    assert drawn == [story.cluster for story in islice(stories.stories(seed=5, split="validation"), 3)]
    assert drawn != list(open_corpus("storyworld", split="validation", size=3, seed=6))


def test_checksum_of_storyworld_names_all_that_decides(monkeypatch):
    def checksum(
        split: str = "train", size: int = 3, seed: int = 0, version: str = "1", by_topic=False
    ) -> str:
        monkeypatch.setattr(stories, "GENERATOR_VERSION", version)
        return corpus_checksum("storyworld", split=split, size=size, seed=seed, by_topic=by_topic)

    changes = ({}, {"split": "test"}, {"size": 4}, {"seed": 1}, {"size": 31}, {"seed": 31}, {"version": "1x"})
    # Version and seed are told apart, not run together.
    more = ({"seed": 12}, {"version": "11", "seed": 2}, {"by_topic": True})
    sums = {checksum(**change) for change in (*changes, *more)}
    assert len(sums) == 10
    assert checksum() in sums


def test_checksum_of_files(write, tmp_path):
    def checksum(folder: str = "here", split: str = "train", size: int = 0, seed: int = 0) -> str:
        return corpus_checksum(str(tmp_path / folder), split=split, size=size, seed=seed)

    for folder in ("here", "there"):
        for name, text in {"train/a/1.txt": "t", "test/b/1.txt": "t"}.items():
            write(f"{folder}/{name}", text)
    first = checksum()
    assert first == checksum("there") == checksum(seed=7)  # wherever it lies; files have their own order
    assert len({first, checksum(size=1), checksum(split="test")}) == 3
    write("here/train/a/1.txt", "v")
    assert first != checksum()


def test_a_path_may_begin_with_the_home_folder(write, tmp_path, monkeypatch, refused):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = write("x.jsonl", jsonl(1))
    assert next(open_corpus("~/x.jsonl", split="train")).id == "c0"
    assert corpus_checksum("~/x.jsonl", split="train") == corpus_checksum(str(path), split="train")
    nobody, what = "~nobody-is-called-so/x", "no home folder of that name is known"
    with refused(nobody, f"1: path: {what}; write the path without ~"):
        open_corpus(nobody, split="train")


class TestFolder:
    def test_clusters(self, write, tmp_path):
        write("train/b/2.txt", "\ufeffHeadline\r\nText\u2028of two.\r\n".encode())
        write("train/b/1.txt.gz", gzip.compress(b"Text of one."))
        write("train/b/.hidden.txt", b"\xff")
        write("train/a/empty.txt", "")
        write("train/a/only.txt", "t")
        for name in ("train/b/notes.md", "train/.git/x.txt", "readme.txt"):
            write(name, "not read")
        one, two = Document(id="1", text="Text of one."), Document(id="2", text="Headline\nText\u2028of two.")
        empty, only = Document(id="empty", text=""), Document(id="only", text="t")
        assert list(clusters.read_cluster_folder(tmp_path, "train")) == [
            Cluster(id="a", documents=(empty, only)),
            Cluster(id="b", documents=(one, two)),
        ]

    def test_splits(self, write, tmp_path):
        names = [f"c{index:03}" for index in range(100)]
        for name in names:
            write(f"{name}/a.txt", "t")
        assert by_split(clusters.read_cluster_folder, tmp_path) == hashed(names)
        for name in ("train/a/1.txt", "val/b/1.txt", "test/1.txt"):  # the last is a cluster called test
            write(f"own/{name}", "t")
        ids = {
            split: [c.id for c in clusters.read_cluster_folder(tmp_path / "own", split)] for split in SPLITS
        }
        assert ids["validation"] == ["b"]
        assert sorted(ids["train"] + ids["test"]) == ["a", "test"]

    @pytest.mark.parametrize(("files", "place", "message"), [
        ({"a/1.txt": "t", "b/notes.md": "t"}, "b",
         "1: folder: a cluster without documents; put one .txt file for each document there, or remove "
         "the folder"),
        ({"a/1.txt": "", "a/2.txt": " \n\t\n"}, "a",
         "1: folder: no document has any text; fill its files, or remove the folder"),
        ({"a/1.txt": "t", "a/1.txt.gz": "t"}, "a/1.txt.gz",
         "1: file name: another file of this folder is document '1' too; keep one of them, or rename it"),
        ({"train/a/1.txt": "t", "test/a/1.txt": "t"}, "",
         "1: folder name: train/a and test/a have the same name; rename one: the name is the id of the "
         "cluster"),
    ])  # fmt: skip
    def test_faults(self, write, tmp_path, refused, files, place, message):
        for name, text in files.items():
            write(name, text)
        with refused(tmp_path / place, message):
            every(clusters.read_cluster_folder, tmp_path)

    def test_other_files_are_named(self, write, tmp_path, monkeypatch):
        for name in ("a/1.txt", "a/2.TXT", "a/3.Txt", "train/b/1.txt", "test/1.txt"):
            write(name, "t")
        others = ["loose.txt", "notes.md", "train/list.csv", "a/4.html", "a/5.md", "a/deeper/6.txt"]
        others.append("test/7.pdf")
        hidden = ["a/.hidden.txt", "a/.ipynb_checkpoints/1-checkpoint.txt", ".old/x.txt", "train/b/._1.txt"]
        for name in (*others, *hidden, ".git/config", "a/.DS_Store"):
            write(name, "t")
        documents = {c.id: [d.id for d in c.documents] for c in every(clusters.read_cluster_folder, tmp_path)}
        assert documents == {"a": ["1", "2", "3"], "b": ["1"], "test": ["1"]}
        assert sorted(passed_over(str(tmp_path))) == sorted([*others[:5], *hidden, "a/deeper", "test/7.pdf"])
        write("y/train.txt.src", "a|||||b\n")
        assert passed_over(str(tmp_path / "y")) == passed_over("storyworld") == []
        for number in range(30):
            write(f"z/a/{number}.txt", "t")
            write(f"z/a/{number}.md", "t")
        listed = []
        monkeypatch.setattr(clusters, "entries", lambda folder: listed.append(folder) or entries(folder))
        assert len(clusters.other_files(tmp_path / "z")) == 30
        assert len(listed) < 10, "a folder is listed a few times, not once for each of its files"


GOOD = (
    '{"id": "a", "split": "train", "documents": ["Plain\\u2028text.", {"text": "Body."}, '
    '{"id": "x", "title": "Head", "text": "Body.", "source": "?"}, {"title": null, "text": ""}, ""]}\n'
    '{"id": "b", "split": "dev", "documents": ["One alone."], "more": 1}\n'
)


def test_records(write):
    path = write("x.jsonl", GOOD)
    head = Document(id="x", text="Head\nBody.", title="Head")
    plain = {"0": "Plain\u2028text.", "1": "Body.", "3": "", "4": ""}
    zero, one, three, four = (Document(id=name, text=text) for name, text in plain.items())
    a = Cluster(id="a", documents=(zero, one, head, three, four))
    assert list(clusters.read_cluster_rows(path, "train")) == [a]
    assert [cluster.id for cluster in clusters.read_cluster_rows(path, "validation")] == ["b"]
    assert list(clusters.read_cluster_rows(path, "test")) == []
    names = [f"c{index}" for index in range(300)]
    path = write("x.jsonl", [{"id": name, "documents": ["t"]} for name in names])
    assert by_split(clusters.read_cluster_rows, path) == hashed(names)


SPLIT = "is not a split; write train, validation or test, or leave it out"
NO_TEXT = "no document has any text; fill one in, or delete the line"
SAME = "is in this cluster already; give every document its own id"
EMPTY = "an empty list; add what is missing, or delete the record"
OWN = 'null where an object belongs; write each as a text in quotes, or {"text": "..."}'


@pytest.mark.parametrize(("line", "message"), [
    ('{"documents": ["t"]}', 'id: missing; add "id" to the record'),
    ('{"id": "a", "documents": ["t"]}', "id: 'a' stands in line 1 already; give each record its own id"),
    ('{"id": "c", "documents": []}', f"documents: {EMPTY}"),
    ('{"id": "c", "documents": ["", {"text": " \\n"}]}', f"documents: {NO_TEXT}"),
    ('{"id": "c", "documents": ["t", null]}', f"documents[1]: {OWN}"),
    ('{"id": "c", "documents": ["t", {"id": "0", "text": "u"}]}', f"documents[1].id: '0' {SAME}"),
    ('{"id": "c", "documents": ["t"], "split": "Train"}', f"split: 'Train' {SPLIT}"),
    ('{"cluster_id": "b", "docs": [{"id": "1", "text": ""}, {"id": "2", "text": ""}]}', f"docs: {NO_TEXT}"),
    ('{"cluster_id": "b", "docs": [{"id": "1", "text": ""}, {"id": "1", "text": ""}]}',
     f"docs[1].id: '1' {SAME}"),
    ('{"cluster_id": "a", "docs": [{"id": "1", "text": "t"}]}',
     "cluster_id: 'a' stands in line 1 already; give each record its own cluster_id"),
])  # fmt: skip
def test_malformed_line(write, refused, line, message):
    event, read = "docs" in line or "cluster_id" in line, clusters.read_cluster_rows
    path = write("x.jsonl", (EVENT if event else GOOD.split("\n")[0]) + f"\n\n{line}\n")
    assert next(read(path, "train")).id == "a"  # what stands before the fault is read
    with refused(path, f"3: {message}"):
        list(read(path, "test"))  # also where no cluster of the line is asked for


def test_a_folder_of_news(write, tmp_path):
    write("neus_val.source", "TITLE=> One. ARTICLE=> First text.")  # is not read
    write("allsides_b.jsonl", EVENT.replace('"a"', '"b"'))
    write("allsides_a.jsonl", EVENT.replace('"docs"', '"split": "test", "docs"'))
    ids = [[cluster.id for cluster in clusters.read_cluster_rows(tmp_path, split)] for split in SPLITS]
    assert ids == [["b"], [], ["a"]]


class TestMultiNews:
    BAR, TAG = "|||||", "story_separator_special_tag"

    def texts(self, path: Path) -> list[list[str]]:
        documents = [cluster.documents for cluster in clusters.read_cluster_rows(path.parent, "train")]
        return [[document.text for document in some] for some in documents]

    @pytest.mark.parametrize("separator", [BAR, TAG])
    @pytest.mark.parametrize("end", ["", "{}", " {} "], ids=["none", "trailing", "with spaces"])
    def test_separators(self, write, separator, end):
        line = (
            f"one . {separator} two\u2028a | b || c {separator}{separator} four"
            + end.format(separator)
            + "\n"
        )
        documents = ["one .", "two\u2028a | b || c", "", "four"]
        assert self.texts(write("train.src", line + line)) == [documents, documents]

    def test_line_breaks_and_empty_documents(self, write):
        line = "N Head N N Body N |||||Next N line |||||".replace("N ", "NEWLINE_CHAR ")
        assert self.texts(write("a/train.src.cleaned", line)) == [["Head\n\nBody", "Next\nline"]]
        path = write("train.txt.src", f"alone\n\na{self.BAR}b\n{self.BAR}\nalone too\n")
        assert self.texts(path) == [["alone"], [""], ["a", "b"], [""], ["alone too"]]
        lines = list(clusters.read_cluster_rows(path.parent, "train"))
        assert [cluster.id for cluster in lines] == [f"train-{line}" for line in range(5)]
        assert [document.id for document in lines[2].documents] == ["train-2-0", "train-2-1"]

    def test_folder_of_official_files(self, write, tmp_path, refused):
        write("train.txt.src", f"a{self.BAR}b\n")
        validation = write("val.txt.src.gz", gzip.compress(f"c{self.TAG}d\n".encode()))
        write("train.txt.tgt", "a summary\n")
        write("notes.src", "some other file\n")
        for split, name in (("train", "train"), ("validation", "val")):
            assert [cluster.id for cluster in clusters.read_cluster_rows(tmp_path, split)] == [f"{name}-0"]
        validation.unlink()
        for split in ("validation", "test"):
            what = f"no rows of the split {split}; add its file, or read train"
            with refused(tmp_path, f"1: split: {what}"):
                list(clusters.read_cluster_rows(tmp_path, split))
        write("train.txt.src.cleaned", f"a{self.BAR}b\n")
        what = "train.txt.src.cleaned is a second file of the train split"
        with refused(tmp_path, f"1: folder: {what}; give the path of one, or move the other away"):
            detect_format(tmp_path)

    def test_a_single_file(self, write, refused):
        path = write("train.txt.src", f"a{self.BAR}b\n" * 200)
        assert by_split(clusters.read_cluster_rows, path) == hashed([f"train-{n}" for n in range(200)])
        path = write("x.src", "one\ntwo\n")
        remedy = "separate the documents of a line with ||||| or story_separator_special_tag"
        with refused(path, f"1: separator: no line has more than one document; {remedy}"):
            list(clusters.read_cluster_rows(path, "train"))


def test_multi_news_as_the_hub_has_it(write, tmp_path):
    rows = [{"document": f"One {n}. ||||| Two. |||||", "summary": "s"} for n in range(3)]
    write("x/train.jsonl", rows)
    datasets.DatasetDict(train=datasets.Dataset.from_list(rows)).save_to_disk(tmp_path / "saved")
    for folder in (tmp_path / "x", tmp_path / "saved"):
        assert detect_format(folder).name == "rows"
        some = list(open_corpus(str(folder), split="train"))
        assert [[one.text for one in cluster.documents] for cluster in some] == [
            [f"One {n}.", "Two."] for n in range(3)
        ]
        assert (some[2].id, some[2].documents[1].id) == ("train-2", "train-2-1")
        assert len(corpus_checksum(str(folder), split="train")) == 64
        with pytest.raises(DataError, match="no rows of the split test"):
            list(open_corpus(str(folder), split="test"))
    name = "hub:alexfabbri/multi_news"
    assert corpus_checksum(name, split="train") != corpus_checksum(f"{name}@1", split="train")
    write("x/train.jsonl", [*rows, {"document": 7}])
    with pytest.raises(DataError, match=r"train\.jsonl:4: field document: no text"):
        list(open_corpus(str(tmp_path / "x"), split="train"))


@pytest.mark.parametrize("count", [3, 9, 50])
def test_of_few_clusters_each_split_has_one(write, tmp_path, count):
    for number in range(count):
        write(f"folder/c{number}/a.txt", "t")
    path = write("x.jsonl", [{"id": f"c{number}", "documents": ["t"]} for number in range(count)])
    for corpus in (tmp_path / "folder", path):
        ids = [[one.id for one in open_corpus(str(corpus), split=split)] for split in SPLITS]
        assert all(ids)
        assert sorted(name for its in ids for name in its) == sorted(f"c{number}" for number in range(count))


# Counts of the description that comes with the data: clusters of 2, 3 and 4 documents.
REAL = [
    ("allsides_fulltext_clusters.jsonl.xz", "train", {2: 743, 3: 405}),
    ("allsides_fulltext_clusters.jsonl.xz", "validation", {2: 94, 3: 67}),
    ("allsides_fulltext_clusters.jsonl.xz", "test", {2: 104, 3: 50}),
    ("allsides_weak_clusters.jsonl.xz", "train", {2: 1086, 3: 353, 4: 125}),
    ("allsides_weak_clusters.jsonl.xz", "test", {}),
]


@pytest.mark.parametrize(("name", "split", "sizes"), REAL)
def test_counts_of_the_real_files(real_data, name, split, sizes):
    path = real_data("news_clusters") / name
    some = list(detect_format(path).read(path, split=split))
    assert Counter(len(cluster.documents) for cluster in some) == sizes
    assert all(document.text.strip() for cluster in some for document in cluster.documents)
