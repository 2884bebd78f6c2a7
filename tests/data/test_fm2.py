"""FM2: retrieved and gold evidence, and complaints; the real files, where somebody has them."""

import gzip
import json
from collections import Counter

import pytest

from cdlm_lab.data.claims import EvidencedClaim, read_fm2


def line(**fields) -> str:
    record = {
        "id": "x1",
        "text": "The mill burnt down.",
        "label": "REFUTES",
        "wikipedia_page": "Blue Mill (Orn)",
        "gold_evidence": [{"section_header": "Summary", "text": "It stands."}],
        "retrieved_evidence": [
            *({"section_header": "Plot", "text": f"s{n}."} for n in range(10)),
            {"section_header": "Summary", "text": "It stands."},
        ],
    }
    return json.dumps(record | fields) + "\n"


def test_claims(write):
    path = write(
        "fm2_dev.jsonl.gz", gzip.compress(line().encode() + line(id="x2", label="SUPPORTS").encode())
    )
    first, second = read_fm2(path, most_evidence=2)
    assert first == EvidencedClaim(
        id="x1",
        text="The mill burnt down.",
        evidence=("Blue Mill (Orn). s0.", "Blue Mill (Orn). s1."),
        label="refuted",
        group="Blue Mill (Orn)",
    )
    assert (second.id, second.label) == ("x2", "supported")


def test_evidence(write):
    path = write("dev.jsonl", line())
    lengths = {most: len(next(read_fm2(path, most_evidence=most)).evidence) for most in (1, 10, 99)}
    assert lengths == {1: 1, 10: 10, 99: 11}
    assert len(next(read_fm2(path)).evidence) == 5
    (gold,) = read_fm2(path, evidence="gold")
    assert gold.evidence == ("Blue Mill (Orn). It stands.",)
    blank = [{"text": " "}, {"text": "a"}, {"text": "b"}]
    path = write("dev.jsonl", line(retrieved_evidence=blank) + line(id="x2", retrieved_evidence=[]))
    assert [claim.evidence for claim in read_fm2(path, most_evidence=1)] == [("Blue Mill (Orn). a",), ()]


def test_senseless_requests(write):
    path = write("dev.jsonl", line())
    with pytest.raises(ValueError, match=r"^evidence is 'all'; choose one of retrieved, gold$"):
        read_fm2(path, evidence="all")
    with pytest.raises(ValueError, match=r"^most_evidence is 0; it must be at least 1$"):
        read_fm2(path, most_evidence=0)


@pytest.mark.parametrize(
    ("fields", "field", "what", "remedy"),
    [
        ({"text": ""}, "text", "the claim is empty", "write it, or delete the line"),
        ({"wikipedia_page": 3}, "wikipedia_page", "a number where a text belongs", "put it in quotes"),
        (
            {"retrieved_evidence": {}},
            "retrieved_evidence",
            "an object where a list belongs",
            "write it as [...]",
        ),
        (
            {"retrieved_evidence": ["s"]},
            "retrieved_evidence[0]",
            "a text where an object belongs",
            "write it as {...}",
        ),
        (
            {"retrieved_evidence": [{"text": "s"}, {}]},
            "retrieved_evidence[1].text",
            "missing",
            'add "text": "..." to the record',
        ),
    ],
)
def test_complaints(write, complains, fields, field, what, remedy):
    path = write("dev.jsonl", line() + line(id="x2", **fields))
    with complains(path, 2, field, what, remedy):
        list(read_fm2(path))


def test_the_real_files(real_data):
    """What the docstring says of retrieved and gold evidence."""
    folder, counts, total = real_data("fever_related"), Counter(), 0
    for name in ("fm2_dev.jsonl.gz", "fm2_test.jsonl.gz"):
        gold = [set(claim.evidence) for claim in read_fm2(folder / name, evidence="gold", most_evidence=99)]
        found = [claim.evidence for claim in read_fm2(folder / name, most_evidence=99)]
        total += len(found)
        for one, listed in zip(gold, found, strict=True):
            assert one <= set(listed)
            assert set(listed[10:]) <= one  # put behind what was retrieved
            for first in (1, 5, 10):
                counts[first, "all"] += one <= set(listed[:first])
                counts[first, "one"] += bool(one & set(listed[:first]))
    assert total == 2549
    shares = {which: round(100 * number / total) for which, number in counts.items()}
    assert [shares[5, "all"], shares[5, "one"], shares[10, "all"], shares[10, "one"]] == [42, 52, 59, 69]
    assert shares[1, "one"] == 4
