"""Claims with evidence: splits by group, and what the files of the FEVER family share."""

import hashlib
from collections import Counter

import pytest

from cdlm_lab.data.claims import EvidencedClaim, plain_text, plain_title, read_fever_symmetric, split_claims


def claim(number: int, group: str) -> EvidencedClaim:
    return EvidencedClaim(id=str(number), text="a", evidence=("b",), label=None, group=group)


CLAIMS = [claim(number, f"page {number // 3}") for number in range(6000)]


def test_groups_stay_together_and_nothing_is_lost():
    found = split_claims(CLAIMS, held_out=0.2)
    assert list(found) == ["train", "dev", "test"]
    groups = {name: {one.group for one in claims} for name, claims in found.items()}
    assert sum(len(names) for names in groups.values()) == len(set().union(*groups.values())) == 2000
    assert sorted(int(one.id) for claims in found.values() for one in claims) == list(range(6000))
    for claims in found.values():
        assert [int(one.id) for one in claims] == sorted(int(one.id) for one in claims)
    # Three standard errors of a share of 0.2 among 2,000 groups: 3 * sqrt(0.2 * 0.8 / 2000) = 0.027.
    assert len(groups["dev"]) / 2000 == pytest.approx(0.2, abs=0.027)
    assert len(groups["test"]) / 2000 == pytest.approx(0.2, abs=0.027)


def test_the_rule_as_it_is_stated():
    def share(seed: int, group: str) -> float:
        return int(hashlib.sha256(f"claims/{seed}/{group}".encode()).hexdigest()[:16], 16) / 16**16

    three = split_claims(CLAIMS, held_out=0.3, seed=7)
    two = split_claims(CLAIMS, held_out=0.3, seed=7, into=("kept", "away"))
    seen = Counter()
    for one in CLAIMS:
        value = share(7, one.group)
        name = "test" if value < 0.3 else "dev" if value < 0.6 else "train"
        assert one in three[name]
        assert one in two["away" if value < 0.3 else "kept"]
        seen[name] += 1
        if sum(seen.values()) >= 150:
            break
    assert len(seen) == 3


def test_added_and_reordered_claims_move_no_others():
    first = split_claims(CLAIMS[:300], held_out=0.2)
    second = split_claims(reversed(CLAIMS[:600]), held_out=0.2)
    for name, claims in first.items():
        assert {one.id for one in claims} == {one.id for one in second[name] if int(one.id) < 300}
    assert first != split_claims(CLAIMS[:300], held_out=0.2, seed=1)


@pytest.mark.parametrize(("held_out", "shares"), [(0.5, 2), (0.0, 2), (-0.1, 2)])
def test_shares_that_leave_nothing(held_out, shares):
    what = f"^held_out is {held_out}; {shares} such shares must be more than 0, below 1$"
    with pytest.raises(ValueError, match=what):
        split_claims(CLAIMS, held_out=held_out)


def test_half_may_go_where_there_is_one_held_out_split():
    found = split_claims(CLAIMS, held_out=0.5, into=("train", "dev"))
    assert len(found["train"]) + len(found["dev"]) == 6000
    assert len(found["dev"]) / 6000 == pytest.approx(0.5, abs=0.034)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Ann -LRB- -LSB- an -RSB- -RRB- wrote `` it '' .", 'Ann ( [ an ] ) wrote " it " .'),
        ("Ann LRB LSB an RSB ; born 1950 RRB", "Ann ( [ an ] ; born 1950 )"),
        ("The LRBX and `it' stay , COLON too", "The LRBX and `it' stay , COLON too"),
    ],
)
def test_plain_text(text, plain):
    assert plain_text(text) == plain


def test_plain_title():
    assert plain_title("Soul_Food_-LRB-film-RRB-") == "Soul Food (film)"
    assert plain_title("Aliens-COLON-_Part_II") == "Aliens: Part II"
    assert plain_title("Soul_LRB_a_RRB_COLON_b") == "Soul ( a ) : b"


GOOD = '{"id": "1", "claim": "a", "evidence_sentence": "b", "label": "SUPPORTS"}\n'


@pytest.mark.parametrize(
    ("line", "field", "what", "remedy"),
    [
        (GOOD, "id", "'1' stands in line 1 already", "give every claim an id of its own"),
        (
            GOOD.replace('"id": "1"', '"id": 1'),
            "id",
            "'1' stands in line 1 already",
            "give every claim an id of its own",
        ),
        (
            GOOD.replace('"id": "1"', '"id": true'),
            "id",
            "true or false where a text belongs",
            "put it in quotes",
        ),
        (GOOD.replace('"id": "1", ', ""), "id", "missing", 'add "id": "..." to the record'),
        (GOOD.replace('"a"', '" "'), "claim", "the claim is empty", "write it, or delete the line"),
        (
            GOOD.replace("SUPPORTS", "supported"),
            "label",
            "'supported' is not a label",
            "write one of SUPPORTS, REFUTES, NOT ENOUGH INFO, or leave it out",
        ),
        (GOOD.replace('"SUPPORTS"', "1"), "label", "a number where a text belongs", "put it in quotes"),
    ],
)
def test_complaints(write, complains, line, field, what, remedy):
    path = write("a.jsonl", GOOD + line)
    with complains(path, 2, field, what, remedy):
        list(read_fever_symmetric(path))
