"""Folders and files of claims: what is found, how it is parted, what names it."""

import gzip
import json

import pytest

from cdlm_lab.data.claims import checksum_of, claim_sets, format_of, read_claims, read_fm2, split_claims

LOOKED_FOR = (
    "give a folder with bert_dev.json and bert_test.json (FEVER), fm2_dev.jsonl and fm2_test.jsonl (FM2) or "
    "fever_symmetric_test.jsonl, or one such file"
)


def fm2(*pages: str, first: str = "") -> str:
    """Two claims for each page."""
    records = (
        {
            "id": f"{first}{page}-{number}",
            "text": f"claim {number} on {page}",
            "label": "SUPPORTS",
            "wikipedia_page": page,
            "gold_evidence": [{"text": "gold"}],
            "retrieved_evidence": [{"text": f"s{n}"} for n in range(7)],
        }
        for page in pages
        for number in range(2)
    )
    return "".join(json.dumps(record) + "\n" for record in records)


def fever(*names: str) -> str:
    records = (
        {"id": name, "claim": name, "label": "REFUTES", "evidence": [[name, 0, f"s{n}"] for n in range(7)]}
        for name in names
    )
    return "".join(json.dumps(record) + "\n" for record in records)


def symmetric(*names: str) -> str:
    records = ({"id": name, "claim": name, "label": "REFUTES", "evidence_sentence": name} for name in names)
    return "".join(json.dumps(record) + "\n" for record in records)


PAGES = tuple(f"page {number}" for number in range(40))


def ids(path, split: str, **options) -> list[str]:
    return [claim.id for claim in read_claims(path, split, **options)]


def test_fm2_without_a_training_file(write, tmp_path):
    """The dev file is parted by pages, a fifth for dev; the test file is left whole."""
    dev = write("fm2_dev.jsonl.gz", gzip.compress(fm2(*PAGES).encode()))
    write("fm2_test.jsonl", fm2("a", "b"))
    assert claim_sets(tmp_path) == ("train", "dev", "test")
    assert format_of(str(tmp_path)) == "fm2"
    assert ids(tmp_path, "test") == ["a-0", "a-1", "b-0", "b-1"]
    parted = split_claims(read_fm2(dev), held_out=0.2, into=("train", "dev"))
    train, held_out = read_claims(tmp_path, "train"), read_claims(tmp_path, "dev")
    assert (train, held_out) == (parted["train"], parted["dev"])
    assert len(train) + len(held_out) == 80
    assert not {claim.group for claim in train} & {claim.group for claim in held_out}
    assert 4 <= len(held_out) <= 28


def test_fm2_with_a_training_file(write, tmp_path):
    for split in ("train", "dev", "test"):
        write(f"{split}.jsonl", fm2("a", first=split))
    assert claim_sets(tmp_path) == ("train", "dev", "test")
    assert [ids(tmp_path, split) for split in ("train", "dev", "test")] == [
        ["traina-0", "traina-1"],
        ["deva-0", "deva-1"],
        ["testa-0", "testa-1"],
    ]


def test_fever_with_a_test_set_beside_it(write, tmp_path):
    for split in ("train", "dev", "test"):
        write(f"bert_{split}.json", fever(split))
    write("fm2_dev.jsonl", fm2("a"))
    write("fm2_test.jsonl", fm2("a"))
    write("v0.1_fever_symmetric_full.jsonl", symmetric("full"))
    assert claim_sets(tmp_path) == ("train", "dev", "test", "symmetric")
    assert format_of(tmp_path) == "fever"
    assert [ids(tmp_path, split) for split in claim_sets(tmp_path)] == [
        ["train"],
        ["dev"],
        ["test"],
        ["full"],
    ]
    write("fever_symmetric_test.jsonl", symmetric("new"))
    write("v0.2_fever_symmetric_dev.jsonl", symmetric("dev"))
    assert ids(tmp_path, "symmetric") == ["new"]


def test_a_plain_file_goes_first(write, tmp_path):
    write("fever_symmetric_test.jsonl.gz", gzip.compress(symmetric("packed").encode()))
    assert ids(tmp_path, "symmetric") == ["packed"]
    write("fever_symmetric_test.jsonl", symmetric("plain"))
    assert ids(tmp_path, "symmetric") == ["plain"]
    assert (claim_sets(tmp_path), format_of(tmp_path)) == (("symmetric",), "fever_symmetric")


@pytest.mark.parametrize(("content", "form"), [(fm2(*PAGES), "fm2"), (fever(*PAGES), "fever")])
def test_one_file(write, content, form):
    path = write("some.jsonl", content)
    assert (claim_sets(path), format_of(path)) == (("train", "dev", "test"), form)
    parts = [read_claims(path, split) for split in ("train", "dev", "test")]
    together = split_claims((claim for part in parts for claim in part), held_out=0.2)
    assert parts == list(together.values())
    assert sum(len(part) for part in parts) == content.count("\n")
    assert len(parts[0]) > max(len(parts[1]), len(parts[2]))


@pytest.mark.parametrize("field", ["evidence", "evidence_sentence"])
def test_one_symmetric_file(write, field):
    path = write("some.jsonl", symmetric("a", "b").replace("evidence_sentence", field))
    assert (claim_sets(path), format_of(path)) == (("symmetric",), "fever_symmetric")
    assert ids(path, "symmetric") == ["a", "b"]


def test_evidence(write, tmp_path, complains):
    write("fm2_dev.jsonl", fm2(*PAGES))
    write("fm2_test.jsonl", fm2("a"))
    write("fever_symmetric_test.jsonl", symmetric("a"))
    assert len(read_claims(tmp_path, "test")[0].evidence) == 5
    assert len(read_claims(tmp_path, "train", most_evidence=2)[0].evidence) == 2
    assert read_claims(tmp_path, "test", evidence="gold")[0].evidence == ("a. gold",)
    assert read_claims(tmp_path, "symmetric", evidence="gold")[0].evidence == ("a",)
    path = write("bert.json", fever(*PAGES))
    assert len(read_claims(path, "train", most_evidence=6)[0].evidence) == 6
    what, remedy = "FEVER in KGAT's form has no gold evidence", 'read with evidence="retrieved"'
    with complains(path, 1, "file", what, remedy):
        read_claims(path, "train", evidence="gold")


def test_senseless_requests(write):
    path = write("a.jsonl", symmetric("a"))
    with pytest.raises(ValueError, match=r"^split is 'all'; choose one of train, dev, test, symmetric$"):
        read_claims(path, "all")
    with pytest.raises(ValueError, match=r"^evidence is 'some'; choose one of retrieved, gold$"):
        read_claims(path, "symmetric", evidence="some")
    with pytest.raises(ValueError, match=r"^most_evidence is 0; it must be at least 1$"):
        read_claims(path, "symmetric", most_evidence=0)


def test_nothing_there(write, tmp_path, complains):
    write("fm2_dev.jsonl", fm2("a"))  # without a test file
    with complains(tmp_path, 1, "claims", "no claims that can be read", LOOKED_FOR):
        claim_sets(tmp_path)
    path = write("clusters.jsonl", '{"id": "1", "documents": []}\n')
    with complains(path, 1, "claims", "no claims that can be read", LOOKED_FOR):
        read_claims(path, "train")
    with complains(tmp_path / "none", 1, "claims", "no such file or folder", LOOKED_FOR):
        format_of(tmp_path / "none")


def test_no_such_set(write, complains):
    path = write("a.jsonl", symmetric("a"))
    with complains(path, 1, "claims", "no claims for train here, but for symmetric", LOOKED_FOR):
        read_claims(path, "train")
    path = write("b.jsonl", fm2("a"))
    empty = [split for split in ("train", "dev", "test") if split != _only(path)]
    what = f"parted into train, dev, test by pages, it leaves none for {empty[0]}"
    with complains(path, 1, "file", what, "give a file with more claims"):
        read_claims(path, empty[0])


def _only(path) -> str:
    return next(name for name, claims in split_claims(read_fm2(path), held_out=0.2).items() if claims)


def test_checksums(write, tmp_path):
    write("fm2_dev.jsonl", fm2(*PAGES))
    write("fm2_test.jsonl", fm2("a"))
    sums = {split: checksum_of(tmp_path, split) for split in claim_sets(tmp_path)}
    assert len(set(sums.values())) == 3
    for name in ("fm2_dev.jsonl", "fm2_test.jsonl"):  # where the folder lies does not matter
        write(f"moved/{name}", (tmp_path / name).read_bytes())
    assert {split: checksum_of(tmp_path / "moved", split) for split in sums} == sums
    write("fm2_train.jsonl", fm2("b"))
    assert checksum_of(tmp_path, "dev") != sums["dev"]  # no longer parted
    assert checksum_of(tmp_path, "test") == sums["test"]
    write("fm2_test.jsonl", fm2("c"))
    assert checksum_of(tmp_path, "test") != sums["test"]
