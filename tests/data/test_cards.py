"""Cards: the block at their head, and that the project's own cards agree with the readers."""

import hashlib
from pathlib import Path

import pytest

from cdlm_lab.data.claims import read_claims
from cdlm_lab.data.clusters import open_corpus
from cdlm_lab.data.files import Card, check_files, read_card, read_cards

DATA = Path(__file__).resolve().parents[2] / "data"
SHA = hashlib.sha256(b"abc").hexdigest()
GOOD = f"""---
name: toy
licence: CC BY 4.0: see the site
shipped: no

count train clusters: 12
sha256 a.txt: {SHA}
---
# Toy

Some prose.
---
count: none
"""


def test_a_card(write):
    assert read_card(write("toy/README.md", GOOD)) == Card(
        name="toy",
        licence="CC BY 4.0: see the site",
        shipped=False,
        counts={"train clusters": 12},
        checksums={"a.txt": SHA},
        text="# Toy\n\nSome prose.\n---\ncount: none",
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: toy", "name", "2: name: not `key: value`; write a key, a colon and a value"),
        ("name: toy", ": toy", "2: key: not `key: value`; write a key, a colon and a value"),
        ("name: toy\n", "", "1: name: missing; add a line `name: ...` to the block"),
        (
            "licence",
            "license",
            "3: license: unknown key; use name, licence, shipped, count ... or sha256 ...",
        ),
        ("shipped: no", "name: no", "4: name: stands in line 2 already; keep one of the two lines"),
        ("shipped: no", "shipped: some", "1: shipped: 'some' is neither yes nor no; write yes or no"),
        (
            "12",
            "1,200",
            "6: count train clusters: '1,200' is not a whole number in plain digits; write a whole "
            "number in plain digits",
        ),
        (
            SHA,
            SHA[:-1],
            f"7: sha256 a.txt: '{SHA[:-1]}' is not 64 hexadecimal digits; write 64 hexadecimal digits",
        ),
    ],
)
def test_malformed_line(write, refused, old, new, message):
    path = write("README.md", GOOD.replace(old, new, 1))
    with refused(path, message):
        read_card(path)


@pytest.mark.parametrize("content", ["# Toy\n", "---\nname: toy\n", "\n" + GOOD])
def test_a_card_without_its_block(write, refused, content):
    path = write("README.md", content)
    remedy = "begin the card with --- and end the block with --- on a line of its own"
    with refused(path, f"1: block: no block between two lines of ---; {remedy}"):
        read_card(path)


def test_files_are_held_against_their_checksums(write, tmp_path, refused):
    card = read_card(write("README.md", GOOD))
    assert check_files(card, tmp_path) == []
    path = write("a.txt", "abc")
    assert check_files(card, tmp_path) == ["a.txt"]
    write("a.txt", "abd")
    what = f"{hashlib.sha256(b'abd').hexdigest()} is not {SHA} as on the card of toy"
    with refused(path, f"1: sha256: {what}; copy or download the file again"):
        check_files(card, tmp_path)


def test_recorded_runs_have_no_card(write, tmp_path):
    write("data/toy/README.md", GOOD)
    write("data/results/README.md", "# Recorded runs\n")
    assert [card.name for card in read_cards(tmp_path / "data")] == ["toy"]


def test_the_projects_own_cards():
    cards = read_cards(DATA)
    assert {card.name for card in cards} == {
        "asnq",
        "ecb_plus",
        "docarc_ner",
        "fever_related",
        "hotpotqa",
        "multi_news",
        "news_clusters",
        "scisumm",
        "storyworld",
        "trecqa",
        "wikiqa",
    }
    for card in cards:
        assert read_card(DATA / card.name / "README.md") == card  # named after its folder
        assert "corpus = " in card.text
        assert card.shipped == (card.name == "storyworld")


def test_the_card_of_storyworld_bounds_its_clusters():
    counts = read_card(DATA / "storyworld" / "README.md").counts
    sizes = {len(cluster.documents) for cluster in open_corpus("storyworld", split="test", size=60)}
    assert min(sizes) == counts["documents of a cluster at least"]
    assert max(sizes) == counts["documents of a cluster at most"]


def test_the_card_of_the_news_clusters_has_the_real_checksums_and_counts(real_data):
    folder = real_data("news_clusters")
    card = read_card(DATA / "news_clusters" / "README.md")
    assert check_files(card, folder) == list(card.checksums)
    # By hand: 1148 + 1564 clusters and 2701 + 3731 documents, the automatic clusters being all for training.
    assert (card.counts["train clusters"], card.counts["train documents"]) == (2712, 6432)
    for split in ("train", "validation", "test"):
        sizes = [len(cluster.documents) for cluster in open_corpus(str(folder), split=split)]
        assert (len(sizes), sum(sizes)) == (
            card.counts[f"{split} clusters"],
            card.counts[f"{split} documents"],
        )


def test_the_card_of_the_claims_has_the_real_checksums_and_counts(real_data):
    folder = real_data("fever_related")
    card = read_card(DATA / "fever_related" / "README.md")
    assert check_files(card, folder) == list(card.checksums)
    found = {split: read_claims(folder, split) for split in ("train", "dev", "test", "symmetric")}
    names = {"symmetric": "symmetric claims"} | {
        split: f"fm2 {split} claims" for split in ("train", "dev", "test")
    }
    assert card.counts == {names[split]: len(claims) for split, claims in found.items()}
    assert card.counts["fm2 train claims"] + card.counts["fm2 dev claims"] == 1169  # as released
    said = [sum(claim.label == "supported" for claim in claims) for claims in found.values()]
    pages = [len({claim.group for claim in claims}) for claims in found.values()]
    assert (said, pages) == ([494, 102, 681, 356], [168, 41, 234, 178])
