"""Claims of storyworld and of files, in sets: which labels there are, what is drawn, what is refused."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from cdlm_lab.data.files import DataError
from cdlm_lab.experiments.fact_verification import (
    ClaimCorpus,
    label_counts,
    labels_of,
    majority_label,
    read_claim_sets,
)
from cdlm_lab.parameters import ParameterError

SOME = ("SUPPORTS", "REFUTES")


def fever(folder: Path, split: str, labels: Sequence[str | None], *, first: int = 0) -> None:
    """A claim of each label, each of a page of its own, with seven sentences."""
    records = [
        {
            "id": first + number,
            "claim": f"claim {number}",
            "evidence": [[f"Page {first + number}", 0, f"s{place}", 1] for place in range(7)],
            **({} if label is None else {"label": label}),
        }
        for number, label in enumerate(labels)
    ]
    text = "".join(json.dumps(record) + "\n" for record in records)
    (folder / f"bert_{split}.json").write_text(text, encoding="utf-8")


def symmetric(folder: Path) -> None:
    records = [
        {"id": str(number), "claim": "c", "evidence": "e", "label": label}
        for number, label in enumerate(SOME)
    ]
    text = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "fever_symmetric_test.jsonl").write_text(text, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split, labels in (("train", [*SOME, "REFUTES"]), ("dev", SOME), ("test", [None, None])):
        fever(tmp_path, split, labels, first=100 * len(split))
    return tmp_path


def test_storyworld():
    found = read_claim_sets(ClaimCorpus(train_stories=3, held_out_stories=2, evidence_sentences=4))
    assert {name: len({claim.group for claim in claims}) for name, claims in found.items()} == {
        "train": 3,
        "dev": 2,
        "test": 2,
    }
    assert labels_of(found) == ("supported", "refuted", "not enough info")
    assert {len(claim.evidence) for claims in found.values() for claim in claims} == {4}


def test_files_with_the_symmetric_set_beside_them(folder: Path):
    assert list(read_claim_sets(ClaimCorpus(corpus=str(folder)))) == ["train", "dev", "test"]
    symmetric(folder)
    found = read_claim_sets(ClaimCorpus(corpus=str(folder), evidence_sentences=3))
    assert list(found) == ["train", "dev", "test", "symmetric"]
    assert [len(claim.evidence) for claim in found["dev"]] == [3, 3]
    assert [claim.label for claim in found["test"]] == [None, None]
    assert majority_label(found) == "refuted"


def test_two_labels_or_three_and_one_that_training_never_has(folder: Path):
    assert labels_of(read_claim_sets(ClaimCorpus(corpus=str(folder)))) == ("supported", "refuted")
    fever(folder, "dev", ["SUPPORTS", "NOT ENOUGH INFO"], first=900)
    found = read_claim_sets(ClaimCorpus(corpus=str(folder)))
    labels = labels_of(found)
    assert label_counts(found["train"], labels) == {"supported": 1, "refuted": 2, "not enough info": 0}
    assert label_counts(found["dev"], labels) == {"supported": 1, "refuted": 0, "not enough info": 1}


def test_draws_are_the_same_ones_and_in_order():
    every = read_claim_sets(ClaimCorpus(train_stories=5, held_out_stories=3))
    some = ClaimCorpus(train_stories=5, held_out_stories=3, train_claims=8, held_out_claims=4)
    drawn = read_claim_sets(some)
    assert {name: len(claims) for name, claims in drawn.items()} == {"train": 8, "dev": 4, "test": 4}
    for name, claims in drawn.items():
        places = [every[name].index(claim) for claim in claims]
        assert places == sorted(places)
        assert places != list(range(len(places)))
    assert read_claim_sets(some) == drawn


def test_most_frequent_label_of_training_and_of_equals_the_first(folder: Path):
    fever(folder, "train", ["NOT ENOUGH INFO", "REFUTES", "NOT ENOUGH INFO", "REFUTES"])
    assert majority_label(read_claim_sets(ClaimCorpus(corpus=str(folder)))) == "refuted"


def test_what_cannot_be_learned_or_scored(folder: Path):
    corpus = ClaimCorpus(corpus=str(folder))
    fever(folder, "dev", ["SUPPORTS", None], first=500)
    with pytest.raises(ParameterError, match=r"claim 501 of dev has no label, which training needs"):
        read_claim_sets(corpus)
    fever(folder, "dev", ["SUPPORTS"])
    with pytest.raises(ParameterError, match=r"all claims of dev are of 'Page 0'; intervals need"):
        read_claim_sets(corpus)
    fever(folder, "dev", SOME)
    fever(folder, "train", ["REFUTES", "REFUTES"])
    with pytest.raises(ParameterError, match="all claims of train are refuted; there is nothing to learn"):
        read_claim_sets(corpus)


def test_symmetric_alone_has_nothing_to_train_on(tmp_path: Path):
    symmetric(tmp_path)
    with pytest.raises(DataError, match="no claims for train here, but for symmetric"):
        read_claim_sets(ClaimCorpus(corpus=str(tmp_path)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"evidence": "golden"}, "evidence is 'golden'; choose one of retrieved, gold"),
        ({"evidence": "gold"}, "evidence is 'gold'; storyworld has retrieved alone"),
        ({"evidence_sentences": 0}, "evidence_sentences is 0; it must be at least 1"),
        ({"train_stories": 1}, "train_stories is 1; it must be at least 2"),
        ({"held_out_claims": -1}, "held_out_claims is -1; it must be at least 0"),
    ],
)
def test_values_that_cannot_be(given: dict, message: str):
    with pytest.raises(ParameterError, match=message):
        ClaimCorpus(**given)


def test_the_draw_does_not_follow_labels():
    """Twenty of some hundred claims: all three labels are among them."""
    drawn = read_claim_sets(ClaimCorpus(train_stories=20, held_out_stories=2, train_claims=20))["train"]
    assert min(Counter(claim.label for claim in drawn).values()) >= 3
