"""Folders of candidate sets: each format is known by its names, and checksums by what they are of."""

import shutil

import pytest

from cdlm_lab.data import candidates as candidate_files
from cdlm_lab.data.candidates import HEADER, checksum_of, format_of, read_candidate_sets

HEAD = "\t".join(HEADER)
PAIR = {"a.toks": "who", "b.toks": "orn", "sim.txt": "1", "id.txt": "8"}


@pytest.fixture
def folders(write, tmp_path):
    """w: WikiQA, x: TREC-QA as XML, t: TREC-QA as tokens, a: ASNQ -> a folder of it."""
    for split in ("train", "dev", "test"):
        write(f"w/WikiQA-{split}.tsv", f"{HEAD}\nQ-{split}\twho\tD1\tOrn\tD1-0\tOrn.\t1\n")
        write(f"x/{split.upper()}.xml", xml(f"X-{split}"))
    for split in ("clean-dev", "raw-dev"):
        for name, text in PAIR.items():
            write(f"t/{split}/{name}", f"{split}-8" if name == "id.txt" else text)
    write("a/dev.tsv", "who\tOrn.\t4\nwhy\tNo.\t1\nwhere\tHere.\t4\n")
    write("a/unique.dev", "who\nwhere\n")
    write("a/unique.test", "why\n")
    return {name: tmp_path / name for name in "wxta"}


def xml(name):
    return f"<QApairs id='{name}'>\n<question>\nWho\n</question>\n<positive>\nOrn\n</positive>\n</QApairs>\n"


def ids(folder, split):
    return [one.id for one in read_candidate_sets(folder, split)]


def test_every_format(folders):
    found = {name: format_of(folder) for name, folder in folders.items()}
    assert found == {"w": "wikiqa", "x": "trecqa", "t": "trecqa", "a": "asnq"}
    assert [ids(folders["w"], split) for split in ("train", "dev", "test")] == [
        ["Q-train"],
        ["Q-dev"],
        ["Q-test"],
    ]
    assert [ids(str(folders["x"]), split) for split in ("train", "validation", "val", "test")] == [
        ["X-train"],
        ["X-dev"],
        ["X-dev"],
        ["X-test"],
    ]
    assert ids(folders["t"], "dev") == ["clean-dev-8"]
    assert (ids(folders["a"], "dev"), ids(folders["a"], "test")) == (["dev:0", "dev:2"], ["dev:1"])


def test_complaints(folders, tmp_path, write, complains):
    with pytest.raises(ValueError, match=r"^split is 'all'; choose one of train, dev, test$"):
        read_candidate_sets(folders["w"], "all")
    missing = tmp_path / "none"
    with complains(missing, 1, "folder", "there is no such folder", "give the folder of the files"):
        format_of(missing)
    what = "it has no test set of trecqa, only dev"
    remedy = (
        "put the file there (train, clean-dev, clean-test (folders with a.toks) or "
        "TRAIN.xml, DEV.xml, TEST.xml)"
    )
    with complains(folders["t"], 1, "folder", what, remedy):
        checksum_of(folders["t"], "test")
    write("other/train.txt", "x")
    what = (
        "none of these is in it: WikiQA-train.tsv, WikiQA-dev.tsv, WikiQA-test.tsv (wikiqa); "
        "train, clean-dev, clean-test (folders with a.toks) or TRAIN.xml, DEV.xml, TEST.xml (trecqa); "
        "train.tsv, dev.tsv, test.tsv (asnq)"
    )
    remedy = "give the folder of one of these data sets"
    with complains(tmp_path / "other", 1, "folder", what, remedy):
        read_candidate_sets(tmp_path / "other", "train")


def test_checksums(folders, tmp_path, write, monkeypatch):
    before = {
        (name, split): checksum_of(folder, split)
        for name, folder in folders.items()
        for split in ("dev", "test")
        if (name, split) != ("t", "test")
    }
    assert len(set(before.values())) == len(before)
    assert all(len(value) == 64 for value in before.values())
    assert checksum_of(str(folders["w"]), "validation") == before["w", "dev"]
    # Where the folder lies does not matter, and neither do files that are not read.
    shutil.copytree(folders["t"], tmp_path / "moved")
    write("moved/raw-dev/id.txt", "changed")
    assert checksum_of(tmp_path / "moved", "dev") == before["t", "dev"]
    # Every file that is read does.
    for file in (
        "t/clean-dev/sim.txt",
        "t/clean-dev/a.toks",
        "a/unique.dev",
        "a/dev.tsv",
        "w/WikiQA-dev.tsv",
    ):
        now = checksum_of(folders[file[0]], "dev")
        write(file, "changed")
        assert checksum_of(folders[file[0]], "dev") != now
    assert checksum_of(folders["w"], "test") == before["w", "test"]
    monkeypatch.setattr(candidate_files, "READERS_VERSION", "2")
    assert checksum_of(folders["w"], "test") != before["w", "test"]
