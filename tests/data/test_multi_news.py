"""Multi-News files with either separator, with and without a trailing one."""

import gzip

import pytest

from cdlm_lab.data.clusters import is_multi_news_name, multi_news_files, read_multi_news
from cdlm_lab.data.records import hashed_split

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


def test_malformed_line(write, refused):
    path = write("x.src", f"a{BAR}b\n".encode() + b"caf\xe9\n")
    remedy = "convert the file, for example: iconv -f WINDOWS-1252 -t UTF-8 x.src"
    with refused(path, f"2: byte 11: 0xe9 is not UTF-8; {remedy}"):
        list(read_multi_news(path))


def test_names():
    assert is_multi_news_name("a/train.txt.src")
    assert is_multi_news_name("val.src.cleaned.xz")
    assert not is_multi_news_name("train.txt.tgt")
    assert not is_multi_news_name("train.source")
