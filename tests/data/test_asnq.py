"""ASNQ's files: lines by hand, lists of questions, every complaint."""

import gzip

import pytest

from cdlm_lab.data.candidates import asnq_files, read_asnq
from cdlm_lab.data.records import CandidateSet

TEXT = (
    'who swims\t"Orn swims.\t4\n'
    "who swims\tIt rained.\t1\n"
    "who swims\tOrn is old.\t2\n"
    "who swims\tIn the river.\t3\n"
    "who runs\tLee runs.\t4\n"
    "who swims\tLee swims.\t4\n"
)


def made(name, question, *candidates):
    texts, correct = zip(*candidates, strict=True)
    return CandidateSet(id=name, question=question, candidates=texts, correct=correct)


SETS = [
    made(
        "dev:0",
        "who swims",
        ('"Orn swims.', True),
        ("It rained.", False),
        ("Orn is old.", False),
        ("In the river.", False),
    ),
    made("dev:1", "who runs", ("Lee runs.", True)),
    made("dev:2", "who swims", ("Lee swims.", True)),  # it came back, and is a set of its own
]


def test_lines(write):
    assert list(read_asnq(str(write("dev.tsv", TEXT)))) == SETS
    packed = gzip.compress(TEXT.replace("who runs", "\nwho runs").replace("\n", "\r\n").encode())
    assert list(read_asnq(write("dev.tsv.gz", packed))) == SETS


def test_listed_questions(write, complains):
    path = write("dev.tsv", TEXT.replace("Lee swims.\t4", "Lee swims.\t1").replace("runs\t", "runs \t"))
    assert list(read_asnq(path, write("unique.test", "who flies\n who runs \n"))) == SETS[1:2]
    first, last = read_asnq(path, str(write("unique.dev", "who swims")))
    assert (first, last.id, last.correct) == (SETS[0], "dev:2", (False,))
    # Half a question is none of the list.
    listed = write("unique.test", "who\n")
    remedy = "give the list of this file"
    with complains(path, 1, "file", "none of the listed questions is in it", remedy):
        list(read_asnq(path, listed))


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "what", "remedy"),
    [
        (
            "Lee runs.\t4",
            "Lee runs. 4",
            5,
            "row",
            "2 columns instead of 3",
            "write a question, a tab, a sentence, a tab and a label",
        ),
        (
            "Lee runs.",
            "Lee\truns.",
            5,
            "row",
            "4 columns instead of 3",
            "write a question, a tab, a sentence, a tab and a label",
        ),
        ("rained.\t1", "rained.\t0", 2, "label", "'0' is no label", "write one of 1, 2, 3, 4"),
        ("Lee runs.", " ", 5, "candidate", "it is empty", "fill it in, or leave it out"),
        ("who runs", "", 5, "question", "it is empty", "fill it in"),
    ],
)
def test_complaints(write, complains, old, new, line, field, what, remedy):
    path = write("dev.tsv", TEXT.replace(old, new))
    with complains(path, line, field, what, remedy):
        list(read_asnq(path))


def test_files_of_a_folder(write, tmp_path):
    assert asnq_files(tmp_path) == {}
    train, dev = write("train.tsv.gz", b""), write("dev.tsv", TEXT)
    assert asnq_files(str(tmp_path)) == {"train": (train,), "dev": (dev,)}
    lists = {split: write(f"unique.{split}", "who runs") for split in ("dev", "test")}
    for path in lists.values():  # one list says nothing of the other
        path.rename(tmp_path / "away")
        assert asnq_files(tmp_path) == {"train": (train,), "dev": (dev,)}
        (tmp_path / "away").rename(path)
    first, second = lists.values()
    assert asnq_files(tmp_path) == {"train": (train,), "dev": (dev, first), "test": (dev, second)}
    test = write("test.tsv", TEXT)
    assert asnq_files(tmp_path) == {"train": (train,), "dev": (dev,), "test": (test,)}
    for name in ("dev.tsv", "test.tsv"):
        (tmp_path / name).unlink()
    assert asnq_files(tmp_path) == {"train": (train,)}
