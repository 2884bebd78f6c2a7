"""Verdicts in whatever batches, back from the disk, and shares of evidence against sums by hand."""

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from cdlm_lab.data.claims import LABELS, EvidencedClaim
from cdlm_lab.examples.candidates import JointLayout
from cdlm_lab.experiments import fact_verification as claim_predictions
from cdlm_lab.experiments.fact_verification import (
    CLAIM_SYSTEMS,
    ClaimPredictions,
    Verifier,
    evidence_shares,
    load_verifier,
    predict_verdicts,
)

LAYOUT = JointLayout(sentences=4, length=8)
SENTENCES = ("The ferry sank at night.", "Nobody was hurt.", "The mayor came from Telk to see it all.")
# The second has no evidence, the fourth more than is read.
CLAIMS = [
    EvidencedClaim(id=f"c{n}", text=text, evidence=evidence, label=label, group=f"g{n // 2}")
    for n, (text, evidence, label) in enumerate(
        (
            ("The ferry sank.", SENTENCES, "supported"),
            ("A storm.", (), "refuted"),
            ("Twelve people were hurt when the ferry sank.", SENTENCES[1:2], "refuted"),
            ("The mayor stayed at home.", (*SENTENCES[::-1], "Soup."), None),
        )
    )
]


def loaded(name: str) -> Verifier:
    system = CLAIM_SYSTEMS[name]
    layout = replace(LAYOUT, positions="compact") if system.pairwise else LAYOUT
    return load_verifier(
        "storyworld/longformer", system, layout=layout, head_layers="linear", labels=LABELS, seed=0
    )


@pytest.fixture(scope="module", params=["pairwise-max", "pairwise-sum", "joint-ae", "claim-only"])
def verifier(request: pytest.FixtureRequest) -> Verifier:
    return loaded(request.param)


class Votes(nn.Module):
    """In place of a joint model: a sentence of evidence votes for or against the first label, by number."""

    def __init__(self, votes: tuple[float, ...]) -> None:
        super().__init__()
        self.votes = nn.Parameter(torch.tensor([0.0, *votes]))
        self.read: list[dict[str, torch.Tensor]] = []

    def forward(self, starts: torch.Tensor, **batch: torch.Tensor) -> SimpleNamespace:
        self.read.append(batch | {"starts": starts})
        first = ((starts >= 0) * self.votes).sum(1)
        return SimpleNamespace(logits=torch.stack([first, torch.zeros_like(first)], dim=1))


def voting(*votes: float) -> Verifier:
    made = loaded("joint-ie")
    return replace(made, model=Votes(votes), labels=LABELS[:2])


def test_verdicts_are_those_of_each_claim_by_itself(verifier: Verifier):
    together = predict_verdicts(verifier, CLAIMS, batch_size=4)
    assert [claim.id for claim in together.claims] == ["c0", "c1", "c2", "c3"]
    np.testing.assert_allclose(together.probabilities.sum(1), 1)
    assert together.probabilities.std(axis=0).min() > 1e-4, "claims differ, or the test says nothing"
    for batch_size in (1, 3):
        apart = predict_verdicts(verifier, CLAIMS, batch_size=batch_size)
        np.testing.assert_allclose(apart.probabilities, together.probabilities, rtol=1e-4)


def test_claim_only_does_not_see_evidence_and_the_others_do(verifier: Verifier):
    other = [replace(claim, evidence=("Soup.",)) for claim in CLAIMS]
    before, after = (
        predict_verdicts(verifier, claims, batch_size=4).probabilities[0] for claims in (CLAIMS, other)
    )
    assert np.allclose(before, after) == (verifier.system.name == "claim-only")


def test_what_is_predicted_and_what_is_right():
    found = ClaimPredictions(
        claims=CLAIMS,
        labels=LABELS,
        probabilities=np.array([[0.5, 0.2, 0.3], [0.4, 0.2, 0.4], [0.1, 0.7, 0.2], [0.1, 0.1, 0.8]]),
    )
    assert found.predicted == ["supported", "supported", "refuted", "not enough info"]
    assert found.right.tolist() == [True, False, True, False], "the label of the last is not known"


def test_verdicts_come_back_from_disk_and_not_for_other_claims_or_labels(verifier: Verifier, tmp_path: Path):
    found = predict_verdicts(verifier, CLAIMS, batch_size=2)
    file = tmp_path / "new" / "dev.jsonl"
    found.save(file)
    again = ClaimPredictions.load(file, claims=CLAIMS, labels=LABELS)
    np.testing.assert_array_equal(again.probabilities, found.probabilities)
    row = json.loads(file.read_text().splitlines()[2])
    assert (row["id"], row["predicted"]) == ("c2", found.predicted[2])
    assert row["probabilities"]["refuted"] == found.probabilities[2, 1]
    for claims, labels in ((CLAIMS[::-1], LABELS), (CLAIMS[:3], LABELS), (CLAIMS, LABELS[:2])):
        with pytest.raises(ValueError, match="is of other claims, so of another run"):
            ClaimPredictions.load(file, claims=claims, labels=labels)


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x))


def test_shares_of_a_joint_model_are_falls_by_hand():
    """All three: 2 + 1 - 1 for the first label; without the first 0, the second 1, the third 3."""
    (shares,) = evidence_shares(voting(2, 1, -1), CLAIMS[:1])
    falls = [log_sigmoid(2) - log_sigmoid(0), log_sigmoid(2) - log_sigmoid(1), 0]
    assert shares == pytest.approx([fall / sum(falls) for fall in falls], rel=1e-5)
    assert shares == pytest.approx([0.7524, 0.2476, 0], abs=1e-4)


def test_shares_are_of_the_label_that_is_predicted_with_all_of_the_evidence():
    """The second label wins by 1 - 2 < 0; only what votes against the first is missed."""
    (shares,) = evidence_shares(voting(1, -2, 0), CLAIMS[:1])
    assert shares == (0, 1, 0)
    (shares,) = evidence_shares(voting(0, 0, 0), CLAIMS[:1])
    assert shares == (0, 0, 0)


def test_a_sentence_is_left_out_and_nothing_else_moves():
    asked = voting(2, 1, -1)
    evidence_shares(asked, CLAIMS[:1])
    (batch,) = asked.model.read
    rows = [
        {
            (kind, position, token)
            for kind, position, token, there in zip(
                *(batch[key][row].tolist() for key in ("token_type_ids", "position_ids", "input_ids")),
                batch["attention_mask"][row].tolist(),
                strict=True,
            )
            if there
        }
        for row in range(4)
    ]
    for left_out in (1, 2, 3):
        assert rows[left_out] == {token for token in rows[0] if token[0] != left_out}
        assert len(rows[left_out]) < len(rows[0])


def test_shares_of_pairwise_systems_are_the_models_own():
    for name in ("pairwise-max", "pairwise-sum"):
        asked = loaded(name)
        found = evidence_shares(asked, CLAIMS)
        examples = asked.examples(CLAIMS)
        batch = asked.collate([examples[number] for number in range(4)])
        with torch.no_grad():
            output = asked.model(**{key: tensor for key, tensor in batch.items() if key != "labels"})
        own = [output.shares[batch["claim"] == number].tolist() for number in range(4)]
        assert [len(shares) for shares in found] == [3, 0, 1, 3]
        for number in (0, 2, 3):
            assert found[number] == pytest.approx(own[number], abs=1e-4)
            assert sum(found[number]) == pytest.approx(1, abs=1e-4)


def test_shares_are_kept_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, asked = tmp_path / "shares.npy", voting(2, 1, -1)
    first, after = claim_predictions._missed_shares, []

    def stopped(verifier: Verifier, examples: object, number: int) -> list[float]:
        if number == 2:
            raise KeyboardInterrupt
        return first(verifier, examples, number)

    monkeypatch.setattr(claim_predictions, "_missed_shares", stopped)
    with pytest.raises(KeyboardInterrupt):
        evidence_shares(asked, CLAIMS, file=file)
    counted = lambda *given: after.append(given[2]) or first(*given)  # noqa: E731
    monkeypatch.setattr(claim_predictions, "_missed_shares", counted)
    found = evidence_shares(asked, CLAIMS, file=file)
    assert after == [2, 3], "the first two were kept"
    assert found == evidence_shares(asked, CLAIMS)
    assert found[1] == ()
    with pytest.raises(ValueError, match=r"holds numbers of shape \(4, 3\), but there are \(2, 3\)"):
        evidence_shares(asked, CLAIMS[:2], file=file)
