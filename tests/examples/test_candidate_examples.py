"""Data sets of questions with candidates and of claims with evidence, and their batches."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from cdlm_lab.data.claims import LABELS, EvidencedClaim
from cdlm_lab.data.records import CandidateSet
from cdlm_lab.examples.candidates import (
    CandidateExamples,
    ClaimExamples,
    EncodedCandidates,
    EncodedClaims,
    JointCollate,
    JointLayout,
    PairedClaimCollate,
    fixed_order,
)

LAYOUT = JointLayout(sentences=4, length=4)


def question(name: str, *candidates: str, right: tuple[int, ...] = (0,)) -> CandidateSet:
    correct = tuple(number in right for number in range(len(candidates)))
    return CandidateSet(id=name, question=f"w1 {name}", candidates=candidates, correct=correct)


# Groups of three: 3 + 2, 1, and 3 candidates.
SETS = [
    question("w100", "w10", "w11", "w12 w13 w14 w15", "w16", "w17", right=(1, 3)),
    question("w101", "w20"),
    question("w102", "w30", "w31", "w32", right=()),
]
CLAIMS = [
    EvidencedClaim(id="a", text="w1", evidence=("w2 w3", "w4"), label="refuted", group="g"),
    EvidencedClaim(id="b", text="w5", evidence=(), label="not enough info", group="g"),
    EvidencedClaim(id="c", text="w6 w7", evidence=("w8",), label=None, group="h"),
    EvidencedClaim(id="d", text="w9", evidence=("w1", "w2", "w3", "w4"), label="supported", group="h"),
]


@pytest.fixture
def make(tokenizer, special):
    def _make(**settings) -> CandidateExamples:
        settings = {"sets": SETS, "layout": LAYOUT, "shuffle": False, **settings}
        return CandidateExamples(
            encoded=EncodedCandidates(settings["sets"], tokenizer), special=special, **settings
        )

    return _make


@pytest.fixture
def claims(tokenizer, special) -> ClaimExamples:
    encoded = EncodedClaims(CLAIMS, tokenizer)
    return ClaimExamples(claims=CLAIMS, encoded=encoded, layout=LAYOUT, special=special, shuffle=False)


def owners(examples: CandidateExamples, start: int, stop: int) -> list[tuple[int, list[int]]]:
    return [(number, group.tolist()) for number, group in map(examples.owner, range(start, stop))]


def words(ids: np.ndarray | torch.Tensor, tokenizer) -> str:
    return " ".join(tokenizer.convert_ids_to_tokens(ids.tolist()))


def same(first: dict, second: dict) -> bool:
    return first.keys() == second.keys() and all(np.array_equal(first[key], second[key]) for key in first)


def test_an_example_by_hand(make, tokenizer):
    one = make(sets=[question("w104", "w30", "w31 w32 w33 w34", right=(1,))])[0]
    order = fixed_order(["w30", "w31 w32 w33 w34"], key="w104").tolist()
    assert order == [1, 0], "so that the candidates stand in another order than in the set"
    text = "[CLS] w1 w104 [SEP] w31 w32 w33 [SEP] w30"
    assert words(one["input_ids"], tokenizer) == text
    assert one["token_type_ids"].tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert one["position_ids"].tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert one["starts"].tolist() == [0, 3, 7, -1]
    assert one["labels"].tolist() == [1, 0, -100]
    assert {array.dtype for array in one.values()} == {np.dtype(np.int64)}
    assert list(one) == ["input_ids", "token_type_ids", "position_ids", "starts", "labels"]


def test_for_testing_each_candidate_is_read_once_in_the_fixed_order(make):
    examples = make()
    assert len(examples) == 4
    found = owners(examples, 0, 4)
    assert [number for number, _ in found] == [0, 0, 1, 2]
    assert found[0][1] + found[1][1] == fixed_order(SETS[0].candidates, key="w100").tolist()
    assert [len(group) for _, group in found] == [3, 2, 1, 3]
    for index, (number, group) in enumerate(found):
        labels = [int(SETS[number].correct[candidate]) for candidate in group]
        assert examples[index]["labels"].tolist() == labels + [-100] * (3 - len(group))
    assert examples.describe(0).cut.sum() + examples.describe(1).cut.sum() == 1, "w15 of the third candidate"


def test_labels_and_the_order_of_the_file_do_not_decide_the_order_for_testing(make):
    one = SETS[0]
    other = replace(one, correct=tuple(not right for right in one.correct))
    turned = replace(one, candidates=one.candidates[::-1], correct=one.correct[::-1])
    plain, flipped, reversed_ = (make(sets=[each]) for each in (one, other, turned))
    for index in range(2):
        ids = plain[index]["input_ids"].tolist()
        assert ids == flipped[index]["input_ids"].tolist() == reversed_[index]["input_ids"].tolist()
        assert plain[index]["labels"].tolist() == reversed_[index]["labels"].tolist()
        assert plain[index]["labels"].tolist() != flipped[index]["labels"].tolist()


def test_training_reads_each_candidate_once_in_each_pass_in_another_order(make):
    examples = make(shuffle=True, size=10, seed=5)
    assert len(examples) == 10
    passes = [owners(examples, 0, 4), owners(examples, 4, 8)]
    for found in passes:
        pairs = sorted((number, candidate) for number, group in found for candidate in group)
        assert pairs == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (2, 0), (2, 1), (2, 2)]
    assert passes[0] != passes[1]
    assert sorted(passes[0]) != sorted(passes[1]), "not only the groups move, their candidates do"
    again = make(shuffle=True, size=10, seed=5)
    assert all(same(again[index], examples[index]) for index in reversed(range(10)))
    assert owners(make(shuffle=True, seed=6), 0, 4) != passes[0]


def test_one_candidate_at_a_time_is_a_cross_encoder(make, tokenizer):
    pairwise = make(layout=JointLayout(sentences=2, length=4))
    assert len(pairwise) == 9
    assert words(pairwise[5]["input_ids"], tokenizer) == "[CLS] w1 w101 [SEP] w20"
    assert pairwise[5]["labels"].tolist() == [1]
    assert [len(group) for _, group in owners(make(k=1), 0, 9)] == [1] * 9


def test_groups_may_be_smaller_than_the_layout(make):
    examples = make(k=2)
    assert [len(group) for _, group in owners(examples, 0, len(examples))] == [2, 2, 1, 1, 2, 1]
    assert examples[0]["starts"].shape == (4,)
    assert (examples[0]["starts"] == -1).tolist() == [False, False, False, True]
    assert examples[0]["labels"][2] == -100


def test_lengths_are_known_without_writing_a_sequence(make, claims):
    for examples in (make(), make(shuffle=True, size=9), claims):
        found = [examples.length_of(index) for index in range(len(examples))]
        assert found == [len(examples[index]["input_ids"]) for index in range(len(examples))]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sets": []}, "there are no examples to make"),
        ({"sets": [SETS[0], question("w103")]}, "question w103 has no candidates; leave it out"),
        ({"k": 0}, "k is 0; it must be 1 to 3, as the layout has"),
        ({"k": 4}, "k is 4; it must be 1 to 3, as the layout has"),
        ({"seed": -1}, "seed is -1; it must not be negative"),
    ],
)
def test_messages_about_questions(make, settings, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make(**settings)


def test_indices_outside_are_refused(make, claims):
    for read in (make().__getitem__, make().owner, make().describe, claims.__getitem__, claims.length_of):
        for index in (-1, 4):
            message = rf"^there is no example {index}; there are 4, counted from 0$"
            with pytest.raises(IndexError, match=message):
                read(index)


def test_claims_by_hand(claims, tokenizer):
    found = [claims[index] for index in range(4)]
    assert [words(one["input_ids"], tokenizer) for one in found] == [
        "[CLS] w1 [SEP] w2 w3 [SEP] w4",
        "[CLS] w5",
        "[CLS] w6 w7 [SEP] w8",
        "[CLS] w9 [SEP] w1 [SEP] w2 [SEP] w3",  # there is room for three
    ]
    assert [one["labels"].tolist() for one in found] == [1, 2, -100, 0]
    assert [LABELS[number] for number in (1, 2, 0)] == ["refuted", "not enough info", "supported"]
    assert [one["starts"].tolist() for one in found] == [
        [0, 2, 5, -1],
        [0, -1, -1, -1],
        [0, 3, -1, -1],
        [0, 2, 4, 6],
    ]
    assert found[0]["labels"].shape == ()


def test_claims_are_shuffled_and_their_evidence_is_not(claims, tokenizer):
    shuffled = replace(claims, shuffle=True, size=8, seed=1)
    passes = [[shuffled.owner(index) for index in range(start, start + 4)] for start in (0, 4)]
    assert sorted(passes[0]) == sorted(passes[1]) == [0, 1, 2, 3]
    assert passes[0] != passes[1]
    for index in range(8):
        assert same(shuffled[index], claims[shuffled.owner(index)])


def test_a_batch_by_hand(make, tokenizer):
    examples = make()
    batch = JointCollate(tokenizer.pad_token_id)([examples[2], examples[3]])
    assert words(batch["input_ids"][0], tokenizer) == "[CLS] w1 w101 [SEP] w20 [PAD] [PAD] [PAD] [PAD]"
    assert batch["attention_mask"].tolist() == [[1] * 5 + [0] * 4, [1] * 9]
    assert batch["position_ids"].tolist() == [[0, 1, 2, 4, 5, 0, 0, 0, 0], [0, 1, 2, 4, 5, 8, 9, 12, 13]]
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 2, 2, 3, 3]]
    assert batch["starts"].tolist() == [[0, 3, -1, -1], [0, 3, 5, 7]]
    assert batch["labels"].tolist() == [[1, -100, -100], [0, 0, 0]]
    assert {tensor.dtype for tensor in batch.values()} == {torch.int64}


def test_a_padding_id_other_than_zero_and_labels_of_tokens(make):
    examples = make()
    masked = [one | {"mlm_labels": one["input_ids"]} for one in (examples[2], examples[3])]
    batch = JointCollate(77)(masked)
    assert batch["input_ids"][0, 5:].tolist() == [77] * 4
    assert batch["mlm_labels"][0, 5:].tolist() == [-100] * 4
    assert batch["mlm_labels"][0, :5].tolist() == examples[2]["input_ids"].tolist()


def test_a_batch_of_claims(claims):
    batch = JointCollate(0)([claims[index] for index in range(4)])
    assert batch["labels"].tolist() == [1, 2, -100, 0]
    assert batch["starts"].shape == (4, 4)


def test_claims_in_pairs_by_hand(claims, tokenizer):
    collate = PairedClaimCollate(tokenizer.pad_token_id, LAYOUT)
    batch = collate([claims[index] for index in range(3)])
    assert [words(row, tokenizer) for row in batch["input_ids"]] == [
        "[CLS] w1 [SEP] w2 w3",
        "[CLS] w1 [SEP] w4 [PAD]",
        "[CLS] w5 [PAD] [PAD] [PAD]",
        "[CLS] w6 w7 [SEP] w8",
    ]
    assert batch["position_ids"].tolist() == [
        [0, 1, 4, 5, 6],
        [0, 1, 4, 5, 0],
        [0, 1, 0, 0, 0],
        [0, 1, 2, 4, 5],
    ]
    assert batch["token_type_ids"].tolist() == [[0, 0, 1, 1, 1], [0, 0, 1, 1, 0], [0] * 5, [0, 0, 0, 1, 1]]
    assert batch["starts"].tolist() == [[0, 2], [0, 2], [0, -1], [0, 3]]
    assert batch["claim"].tolist() == [0, 0, 1, 2]
    assert batch["labels"].tolist() == [1, 2, -100]
    assert {tensor.dtype for tensor in batch.values()} == {torch.int64}


@pytest.mark.parametrize("positions", ["strided", "compact"])
def test_a_pair_is_what_the_claim_is_with_that_evidence_alone(claims, tokenizer, special, positions):
    wide = replace(claims, layout=replace(LAYOUT, positions=positions))
    alone = [
        replace(claim, id=f"{claim.id}{number}", evidence=(evidence,))
        for claim in CLAIMS
        for number, evidence in enumerate(claim.evidence[:3] or ("",))
    ]
    narrow = ClaimExamples(
        claims=alone,
        encoded=EncodedClaims(alone, tokenizer),
        layout=JointLayout(sentences=2, length=4, positions=positions),
        special=special,
        shuffle=False,
    )
    pairs = PairedClaimCollate(0, wide.layout)([wide[index] for index in range(4)])
    expected = JointCollate(0)([narrow[index] for index in range(len(narrow))])
    rows = torch.arange(len(alone)) != 2  # of claim b, which has no evidence: there it has a blank one
    for key in ("input_ids", "attention_mask", "token_type_ids", "position_ids", "starts"):
        assert torch.equal(pairs[key][rows], expected[key][rows])
    assert pairs["claim"].tolist() == [0, 0, 1, 2, 3, 3, 3]


@pytest.mark.parametrize("collate", [JointCollate(0), PairedClaimCollate(0, LAYOUT)])
def test_messages_about_batches(collate, claims):
    with pytest.raises(ValueError, match=r"^no examples to collate$"):
        collate([])
    less = {key: value for key, value in claims[0].items() if key != "labels"}
    message = "examples[1] has the keys ['input_ids', 'position_ids', 'starts', 'token_type_ids'], but "
    with pytest.raises(ValueError, match=f"^{re.escape(message)}examples"):
        collate([claims[0], less])
    assert "labels" not in collate([less]), "they may be left out of all"
    with pytest.raises(ValueError, match=r"^examples\[0\] has the keys .*'odd'.*; they must be input_ids, "):
        collate([claims[0] | {"odd": claims[0]["starts"]}])
