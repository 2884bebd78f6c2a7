"""Questions with candidates and claims with evidence by their ids, in pieces."""

import pytest

from cdlm_lab.data.claims import EvidencedClaim
from cdlm_lab.data.records import CandidateSet
from cdlm_lab.examples.candidates import EncodedCandidates, EncodedClaims

SET = CandidateSet(id="q", question="w1 w2", candidates=("w3", "w4 w5"), correct=(True, False))
CLAIM = EvidencedClaim(id="c", text="w6", evidence=("w7", "w8 w9"), label=None, group="g")


def words(pieces, tokenizer) -> list[str]:
    return [" ".join(tokenizer.convert_ids_to_tokens(ids.tolist())) for ids in pieces]


def test_the_question_or_claim_comes_first(tokenizer):
    assert words(EncodedCandidates([SET], tokenizer)["q"], tokenizer) == ["w1 w2", "w3", "w4 w5"]
    assert words(EncodedClaims([CLAIM], tokenizer)["c"], tokenizer) == ["w6", "w7", "w8 w9"]


def test_two_questions_of_one_id_are_named(tokenizer):
    other = CandidateSet(id="q", question="w1", candidates=("w3",), correct=(True,))
    with pytest.raises(ValueError, match=r"^there are two different questions q; name them apart$"):
        EncodedCandidates([SET, other], tokenizer)
    assert len(EncodedCandidates([SET, SET], tokenizer)) == 1


def test_two_claims_of_one_id_are_named(tokenizer):
    other = EvidencedClaim(id="c", text="w1", evidence=(), label=None, group="g")
    with pytest.raises(ValueError, match=r"^there are two different claims c; name them apart$"):
        EncodedClaims([CLAIM, other], tokenizer)
