"""Doc-ARC's files as passages: worked by hand, read one sentence at a time, labels left alone."""

import pytest

from cdlm_lab.data import tagged as docarc_corpus
from cdlm_lab.data.clusters import corpus_checksum, open_corpus
from cdlm_lab.data.tagged import PASSAGE_WORDS, read_docarc_passages


def passages(folder, split: str = "train") -> list[tuple[str, str]]:
    found = list(read_docarc_passages(folder, split))
    assert all([document.id for document in cluster.documents] == [cluster.id] for cluster in found)
    return [(cluster.id, cluster.documents[0].text) for cluster in found]


def sentences(*lengths: int) -> str:
    """Sentences of so many words, `w0`, `w1`, and so on, numbered through; labelled ones first."""
    numbers = iter(range(sum(lengths)))
    tags = ["O"] + ["NULL"] * (len(lengths) - 1)
    return "\n".join(
        "".join(f"w{next(numbers)}\t{tag}\n" for _ in range(length))
        for length, tag in zip(lengths, tags, strict=True)
    )


def words(first: int, stop: int) -> str:
    return " ".join(f"w{number}" for number in range(first, stop))


def test_passages_are_whole_sentences(write, tmp_path):
    write("train/b.tsv", sentences(30, 49, 1, 1, 80, 79))
    write("train/a.tsv", "Ann\tB-PER\nLee\tI-PER\n\n. . .\tNULL\nslept\tNULL\n")
    write("dev/c.tsv", "c\tO\n")
    assert passages(tmp_path) == [
        ("a/1", "Ann Lee . . . slept"),
        ("b/1", words(0, 80)),  # 30 + 49 + 1 are just as many as there may be
        ("b/2", words(80, 81)),  # 1 + 80 are one too many
        ("b/3", words(81, 161)),
        ("b/4", words(161, 240)),
    ]
    assert passages(tmp_path, "validation") == [("c/1", "c")]


def test_long_sentences_are_cut_and_no_word_is_lost(write, tmp_path):
    write("train/a.tsv", sentences(5, 185, 3))
    assert passages(tmp_path) == [
        ("a/1", words(0, 5)),
        ("a/2", words(5, 85)),
        ("a/3", words(85, 165)),
        ("a/4", words(165, 193)),  # the end of the long one, 25 words, and the next
    ]


def test_the_length_is_the_constant(write, tmp_path, monkeypatch):
    assert PASSAGE_WORDS == 80
    monkeypatch.setattr(docarc_corpus, "PASSAGE_WORDS", 2)
    write("train/a.tsv", sentences(3, 1))
    assert [text for _, text in passages(tmp_path)] == ["w0 w1", "w2 w3"]


def test_labels_are_not_read(write, tmp_path):
    write("x.tagset", "O\t0\nB-Y\t1\n")
    write("train/a.tsv", "a\tI-X\nb\tNULL\nc\twhatever\n\nd\tNULL\n")
    write("train/b.tsv", "e\tNULL\n")  # a document that nobody labelled
    assert [text for _, text in passages(tmp_path)] == ["a b c d", "e"]


def test_one_sentence_at_a_time(write, tmp_path):
    path = write("train/a.tsv", sentences(80, 80) + "\nno tab\n")
    found = read_docarc_passages(tmp_path, "train")
    assert next(found).id == "a/1"
    with pytest.raises(ValueError, match=rf"{path}:163: field row: one column instead of 2"):
        list(found)


def test_it_is_a_corpus(write, tmp_path, refused):
    file = write("train/a.tsv", sentences(80, 1))
    corpus = str(tmp_path)
    assert [cluster.id for cluster in open_corpus(corpus, split="train", size=1)] == ["a/1"]
    first = corpus_checksum(corpus, split="train")
    write("dev/b.tsv", "x\tO\n")
    write("notes.txt", "x")
    assert corpus_checksum(corpus, split="train") == first
    assert corpus_checksum(corpus, split="validation") != first
    file.write_text(sentences(80, 2))
    assert corpus_checksum(corpus, split="train") != first
    remedy = "give the folder around train, dev and test"
    with refused(tmp_path, f"1: folder: there is no folder test in it; {remedy}"):
        list(open_corpus(corpus, split="test"))
