"""FEVER with KGAT's evidence: order, titles, marks, and complaints."""

import gzip
import json

import pytest

from cdlm_lab.data.claims import EvidencedClaim, read_fever

MILL = ["Blue_Mill_-LRB-novel-RRB-", 0, "Blue Mill LRB 1999 RRB is by `` Ann '' .", 0.2]
LEE = ["Ann_Lee", 3, "She is a baker .", 0.9]


def line(**fields) -> str:
    record = {"id": 91, "claim": "Ann -LRB- A -RRB- wrote it.", "label": "SUPPORTS", "evidence": [MILL, LEE]}
    return json.dumps(record | fields) + "\n"


def test_claims(write):
    others = line(id=92, label="REFUTES", evidence=[]) + line(id="93", label="NOT ENOUGH INFO")
    packed = write("bert_dev.json.gz", gzip.compress(f"{line()}\n{others}".encode()))
    first, second, third = read_fever(packed)
    assert first == EvidencedClaim(
        id="91",
        text="Ann ( A ) wrote it.",
        evidence=(  # in the order of the file, whatever the scores
            'Blue Mill (novel). Blue Mill ( 1999 ) is by " Ann " .',
            "Ann Lee. She is a baker .",
        ),
        label="supported",
        group="Blue Mill (novel)",
    )
    assert (second.id, second.evidence, second.label, second.group) == ("92", (), "refuted", "92")
    assert (third.id, third.label) == ("93", "not enough info")


def test_no_more_than_asked_for(write):
    rows = [["A", 0, " ", 0.9], *(["B", n, f"s{n}"] for n in range(9))]
    path = write("golden_train.json", line(evidence=rows))
    (five,) = read_fever(path)
    assert five.evidence == ("B. s0", "B. s1", "B. s2", "B. s3", "B. s4")  # blank ones do not count
    assert five.group == "B"
    assert [len(next(read_fever(path, most_evidence=n)).evidence) for n in (1, 9, 99)] == [1, 9, 9]
    with pytest.raises(ValueError, match=r"^most_evidence is 0; it must be at least 1$"):
        read_fever(path, most_evidence=0)


def test_labels_kept_back(write):
    record = json.loads(line())
    del record["label"]
    path = write("bert_test.json", json.dumps(record) + "\n" + line(id=2, label=None))
    assert [claim.label for claim in read_fever(path)] == [None, None]


REMEDY = 'write it as ["title", 0, "sentence", 0.9]'


@pytest.mark.parametrize(
    ("evidence", "field", "what", "remedy"),
    [
        ("Blue_Mill", "evidence", "a text where a list belongs", "write it as [...]"),
        ([MILL, "x"], "evidence[1]", "a text where title, number and sentence belong", REMEDY),
        ([["A", 0]], "evidence[0]", "a list of 2 where title, number and sentence belong", REMEDY),
        ([["A", 0, None]], "evidence[0][2]", "null where a text belongs", "put it in quotes"),
        ([[7, 0, "s"]], "evidence[0][0]", "a number where a text belongs", "put it in quotes"),
    ],
)
def test_complaints(write, complains, evidence, field, what, remedy):
    path = write("bert_dev.json", line() + line(id=2, evidence=evidence))
    with complains(path, 2, field, what, remedy):
        list(read_fever(path))


def test_no_evidence_field(write, complains):
    path = write("bert_dev.json", '{"id": 1, "claim": "a"}\n')
    with complains(path, 1, "evidence", "missing", 'add "evidence": [...] to the record'):
        list(read_fever(path))
