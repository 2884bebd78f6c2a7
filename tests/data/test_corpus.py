"""One way in: every shape is recognised, splits and sizes are honoured, checksums name what is read."""

import json
from itertools import islice

import pytest

from cdlm_lab.data.clusters import SHAPES, corpus_checksum, detect_format, open_corpus, passed_over
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
        checksum(),
        checksum("test"),
        checksum(size=4),
        checksum(seed=1),
        checksum(size=31),
        checksum(seed=31),
    }
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
