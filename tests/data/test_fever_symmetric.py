"""FeverSymmetric in both versions, and the real files, where somebody has them."""

from collections import Counter

import pytest

from cdlm_lab.data.claims import EvidencedClaim, read_fever_symmetric

OLD = '{"id": "12", "label": "REFUTES", "claim": "A `` b \'\' .", "evidence_sentence": "A -LRB- c -RRB- ."}\n'
NEW = (
    '{"id": "120000003", "claim": "A c .", "evidence": "A c d .", "sentence1": "x", "gold_label": "REFUTES",'
    ' "label": "SUPPORTS", "evid": [["A c d .", 1.0]]}\n'
)


def test_both_versions(write):
    first, second = read_fever_symmetric(write("fever_symmetric_test.jsonl", OLD + NEW))
    assert first == EvidencedClaim(
        id="12", text='A " b " .', evidence=("A ( c ) .",), label="refuted", group="12"
    )
    assert second == EvidencedClaim(
        id="120000003", text="A c .", evidence=("A c d .",), label="supported", group="12"
    )


@pytest.mark.parametrize(
    ("identifier", "group"),
    [("90000001", "90000001"), ("9000000", "9000000"), ("9000000213", "9000000213"), ("970000004", "97")],
)
def test_groups(write, identifier, group):
    (claim,) = read_fever_symmetric(write("a.jsonl", OLD.replace('"12"', f'"{identifier}"')))
    assert (claim.id, claim.group) == (identifier, group)


@pytest.mark.parametrize("field", ["evidence_sentence", "evidence"])
def test_no_sentence(write, complains, field):
    path = write("a.jsonl", f'{{"id": "1", "claim": "a", "{field}": "  "}}\n')
    with complains(path, 1, field, "the evidence is empty", "write it, or delete the line"):
        list(read_fever_symmetric(path))
    path = write("a.jsonl", '{"id": "1", "claim": "a"}\n')
    with complains(path, 1, "evidence_sentence", "missing", 'add "evidence_sentence": "..." to the record'):
        list(read_fever_symmetric(path))


def test_the_real_files(real_data):
    folder, groups = real_data("fever_related"), {}
    for name in ("v0.1_fever_symmetric_full", "v0.2_fever_symmetric_dev", "v0.2_fever_symmetric_test"):
        claims = list(read_fever_symmetric(folder / f"{name}.jsonl"))
        groups[name] = Counter(claim.group for claim in claims)
        assert set(groups[name].values()) == {4}
        for part in (lambda claim: claim.text, lambda claim: claim.evidence):
            labels: dict[tuple, list] = {}
            for claim in claims:
                labels.setdefault((claim.group, part(claim)), []).append(claim.label)
            assert all(sorted(both) == ["refuted", "supported"] for both in labels.values())
        assert not any("-LRB-" in claim.text + claim.evidence[0] for claim in claims)
    dev, test = groups["v0.2_fever_symmetric_dev"], groups["v0.2_fever_symmetric_test"]
    assert not dev.keys() & test.keys()
