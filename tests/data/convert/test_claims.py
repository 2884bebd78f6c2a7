"""Claims with evidence: FEVER, FM2 and FeverSymmetric, how they are divided, folders, and the real files."""

import hashlib
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from cdlm_lab.data.convert import claims
from cdlm_lab.data.reading import read_records, splits_of
from cdlm_lab.data.records import EvidencedClaim
from cdlm_lab.data.rows import rows_of

MILL = ["Blue_Mill_-LRB-novel-RRB-", 0, "Blue Mill LRB 1999 RRB is by `` Ann '' .", 0.2]
LEE = ["Ann_Lee", 3, "She is a baker .", 0.9]
PAGES = tuple(f"page {number}" for number in range(40))
SPLITS = ("train", "dev", "test")


def made(record, fields):
    return {name: value for name, value in (record | fields).items() if value is not ...}


def fever(**fields):
    claim = {"id": 91, "claim": "Ann -LRB- A -RRB- wrote it.", "label": "SUPPORTS", "evidence": [MILL, LEE]}
    return made(claim, fields)


def fm2(**fields):
    plot = [{"section_header": "Plot", "text": f"s{n}."} for n in range(10)]
    stands = {"section_header": "Summary", "text": "It stands."}
    claim = {"id": "x1", "text": "The mill burnt down.", "label": "REFUTES"}
    claim["wikipedia_page"] = "Blue Mill (Orn)"
    return made(claim | {"gold_evidence": [stands], "retrieved_evidence": [*plot, stands]}, fields)


def symmetric(**fields):
    claim = {"id": "12", "label": "REFUTES", "claim": "A `` b '' .", "evidence_sentence": "A -LRB- c -RRB- ."}
    return made(claim, fields)


def claim_of(id, text, evidence, label, group):
    return EvidencedClaim(id=id, text=text, evidence=evidence, label=label, group=group)


def of_pages(*pages, first=""):
    """Make two claims of FM2 for each page."""
    return [fm2(id=f"{first}{page}-{n}", wikipedia_page=page) for page in pages for n in range(2)]


def read_claims(path, split, **options):
    return list(read_records("claims", path, split, **options))


def of_rows(read):
    return lambda path, **options: read(rows_of(Path(path)), **options)


read_fever, read_fm2 = of_rows(claims.read_fever), of_rows(claims.read_fm2)
read_symmetric = of_rows(claims.read_symmetric)


def ids(path, split, **options):
    return [claim.id for claim in read_claims(path, split, **options)]


def test_fever(write):
    others = [fever(id=92, label="REFUTES", evidence=[]), fever(id="93", label="NOT ENOUGH INFO")]
    hidden = [fever(id=94, label=None), fever(id=95, label=...)]
    first, second, third, *hidden = read_fever(write("dev.jsonl.gz", [fever(), *others, *hidden]))
    mill = 'Blue Mill (novel). Blue Mill ( 1999 ) is by " Ann " .'  # first in the file, whatever the scores
    evidence = (mill, "Ann Lee. She is a baker .")
    assert first == claim_of("91", "Ann ( A ) wrote it.", evidence, "supported", "Blue Mill (novel)")
    assert (second.id, second.evidence, second.label, second.group) == ("92", (), "refuted", "92")
    assert (third.id, third.label) == ("93", "not enough info")
    assert [claim.label for claim in hidden] == [None, None]


def test_fm2(write):
    path = write("fm2_dev.jsonl.gz", [fm2(), fm2(id="x2", label="SUPPORTS")])
    first, second = read_fm2(path, most_evidence=2)
    page = "Blue Mill (Orn)"
    assert first == claim_of("x1", "The mill burnt down.", (f"{page}. s0.", f"{page}. s1."), "refuted", page)
    assert (second.id, second.label) == ("x2", "supported")
    assert next(read_fm2(path, evidence="gold")).evidence == (f"{page}. It stands.",)


def test_fever_symmetric_in_both_versions(write):
    new = symmetric(
        id="120000003", claim="A c .", evidence="A c d .", label="SUPPORTS", evidence_sentence=...
    )
    path = write("a.jsonl", [symmetric(), new | {"gold_label": "REFUTES"}])
    assert list(read_symmetric(path)) == [
        claim_of("12", 'A " b " .', ("A ( c ) .",), "refuted", "12"),
        claim_of("120000003", "A c .", ("A c d .",), "supported", "12"),
    ]
    groups = {"90000001": "90000001", "9000000": "9000000", "9000000213": "9000000213", "970000004": "97"}
    path = write("b.jsonl", [symmetric(id=name) for name in groups])
    assert {claim.id: claim.group for claim in read_symmetric(path)} == groups


def test_no_more_evidence_than_wanted_and_none_of_blanks(write):
    path = write("a.jsonl", [fever(evidence=[["A", 0, " ", 0.9], *(["B", n, f"s{n}"] for n in range(9))])])
    (five,) = read_fever(path)
    assert (five.evidence, five.group) == (("B. s0", "B. s1", "B. s2", "B. s3", "B. s4"), "B")
    assert [len(next(read_fever(path, most_evidence=n)).evidence) for n in (1, 9, 99)] == [1, 9, 9]
    path = write("b.jsonl", [fm2()])
    assert [len(next(read_fm2(path, most_evidence=n)).evidence) for n in (1, 5, 99)] == [1, 5, 11]
    blank = [{"text": " "}, {"text": "a"}, {"text": "b"}]
    path = write("c.jsonl", [fm2(retrieved_evidence=blank), fm2(id="x2", retrieved_evidence=[])])
    assert [one.evidence for one in read_fm2(path, most_evidence=1)] == [("Blue Mill (Orn). a",), ()]


FORMS = {
    "fever": (read_fever, fever),
    "fm2": (read_fm2, fm2),
    "symmetric": (read_symmetric, symmetric),
}
EMPTY = "it is empty; fill it in, or delete the record"
LABEL = "is unknown; write one of SUPPORTS, REFUTES, NOT ENOUGH INFO, or leave it out"
ROW = 'write each as ["title", 0, "sentence", 0.9]'
TEXT, LIST = "a text belongs; put it in quotes", "a list belongs; write it as"
AS = "write it as {...}"
TWICE = "id: '12' stands in line 1 already; give each record its own id"


@pytest.mark.parametrize(("form", "fields", "message"), [
    ("symmetric", {"id": "12"}, TWICE),
    ("symmetric", {"id": 12}, TWICE),
    ("symmetric", {"id": True}, f"id: true or false where {TEXT}"),
    ("symmetric", {"id": ...}, 'id: missing; add "id" to the record'),
    ("symmetric", {"claim": " "}, f"claim: {EMPTY}"),
    ("symmetric", {"label": "no"}, f"label: 'no' {LABEL}"),
    ("symmetric", {"label": "\ud800"}, "label: half a surrogate pair; remove the lone \\ud... escape"),
    ("symmetric", {"evidence_sentence": "  "}, f"evidence_sentence: {EMPTY}"),
    ("symmetric", {"evidence": " "}, f"evidence: {EMPTY}"),
    ("symmetric", {"evidence_sentence": ...}, 'evidence: missing; add "evidence" to the record'),
    ("fever", {"evidence": ...}, 'evidence: missing; add "evidence" to the record'),
    ("fever", {"evidence": [MILL, "x"]}, f"evidence[1]: a text where a list belongs; {ROW}"),
    ("fever", {"evidence": [["A", 0]]}, f"evidence[0]: a list of 2, too short; {ROW}"),
    ("fever", {"evidence": [["A", 0, None]]}, f"evidence[0][2]: null where {TEXT}"),
    ("fever", {"evidence": [[7, 0, "s"]]}, f"evidence[0][0]: a number where {TEXT}"),
    ("fm2", {"text": ""}, f"text: {EMPTY}"),
    ("fm2", {"wikipedia_page": 3}, f"wikipedia_page: a number where {TEXT}"),
    ("fm2", {"retrieved_evidence": {}}, f"retrieved_evidence: an object where {LIST} [...]"),
    ("fm2", {"retrieved_evidence": ["s"]}, f"retrieved_evidence[0]: a text where an object belongs; {AS}"),
    ("fm2", {"retrieved_evidence": [{"text": "s"}, {}]},
     'retrieved_evidence[1].text: missing; add "text" to the record'),
])  # fmt: skip
def test_refused_records(write, refused, form, fields, message):
    read, record = FORMS[form]
    path = write("a.jsonl", [record(), record(**{"id": "2"} | fields)])
    with refused(path, f"2: {message}"):
        list(read(path))


@pytest.mark.parametrize(("text", "plain"), [
    ("Ann -LRB- -LSB- an -RSB- -RRB- wrote `` it '' .", 'Ann ( [ an ] ) wrote " it " .'),
    ("Ann LRB LSB an RSB ; born 1950 RRB", "Ann ( [ an ] ; born 1950 )"),
    ("The LRBX and `it' stay , COLON too", "The LRBX and `it' stay , COLON too"),
])  # fmt: skip
def test_plain_text(text, plain):
    assert claims.plain_text(text) == plain


def test_plain_title():
    titles = ("Soul_Food_-LRB-film-RRB-", "Aliens-COLON-_Part_II", "Soul_LRB_a_RRB_COLON_b")
    assert list(map(claims.plain_title, titles)) == ["Soul Food (film)", "Aliens: Part II", "Soul ( a ) : b"]


def test_the_real_fm2_has_the_evidence_of_the_docstring(real_data):
    counts, total = Counter(), 0
    for name in ("fm2_dev.jsonl.gz", "fm2_test.jsonl.gz"):
        path = real_data("fever_related") / name
        retrieved = read_fm2(path, most_evidence=99)
        for gold, one in zip(read_fm2(path, evidence="gold", most_evidence=99), retrieved, strict=True):
            chosen, listed, total = set(gold.evidence), one.evidence, total + 1
            assert chosen <= set(listed)
            assert set(listed[10:]) <= chosen  # put behind what was retrieved
            for first in (1, 5, 10):
                counts[first, "all"] += chosen <= set(listed[:first])
                counts[first, "one"] += bool(chosen & set(listed[:first]))
    assert total == 2549
    shares = {which: round(100 * number / total) for which, number in counts.items()}
    assert [shares[5, "all"], shares[5, "one"], shares[10, "all"], shares[10, "one"]] == [42, 52, 59, 69]
    assert shares[1, "one"] == 4


def test_the_real_symmetric_files_are_balanced(real_data):
    groups = {}
    for name in ("v0.1_fever_symmetric_full", "v0.2_fever_symmetric_dev", "v0.2_fever_symmetric_test"):
        some = list(read_symmetric(real_data("fever_related") / f"{name}.jsonl"))
        groups[name] = Counter(claim.group for claim in some)
        assert set(groups[name].values()) == {4}
        labels = defaultdict(list)
        for claim in some:
            for part in (claim.text, claim.evidence):
                labels[claim.group, part].append(claim.label)
        assert all(sorted(both) == ["refuted", "supported"] for both in labels.values())
        assert not any("-LRB-" in claim.text + claim.evidence[0] for claim in some)
    assert not groups["v0.2_fever_symmetric_dev"].keys() & groups["v0.2_fever_symmetric_test"].keys()


def test_sets_by_the_names_of_files(write, tmp_path, refused):
    """The plain file goes first; without a file for train, a fifth of the pages of dev are dev."""
    write("fm2_dev.jsonl", of_pages(*PAGES))
    write("fm2_test.jsonl", of_pages("a"))
    for name in ("fever_symmetric_test.jsonl.gz", "fever_symmetric_test.jsonl"):
        write(name, [symmetric(id=name)])
        assert ids(tmp_path, "symmetric") == [name]
    assert splits_of("claims", tmp_path) == ("train", "validation", "test", "symmetric")
    divided = {split: read_claims(tmp_path, split) for split in ("train", "dev")}
    for one in divided["train"] + divided["dev"]:
        share = int(hashlib.sha256(f"claims/0/{one.group}".encode()).hexdigest()[:16], 16) / 16**16
        assert one in divided["dev" if share < 0.2 else "train"]
    assert len(read_claims(tmp_path, "test")[0].evidence) == 5
    assert read_claims(tmp_path, "test", evidence="gold")[0].evidence == ("a. It stands.",)
    path = write("bert.json", fever())
    what = 'FEVER in KGAT\'s form has no gold evidence; read with evidence="retrieved"'
    with refused(path, f"1: evidence: {what}"):
        read_claims(path, "train", evidence="gold")


def test_the_own_file_of_fever_is_refused_in_words(write):
    own = {"id": 1, "verifiable": "VERIFIABLE", "claim": "a", "evidence": [[[1, 2, "P", 0]]]}
    path = write("dev.jsonl", [own])
    with pytest.raises(ValueError, match="FEVER's own file: it names evidence by page and number"):
        read_claims(path, "test")


def test_one_file_is_divided(write):
    path = write("some.jsonl", of_pages(*PAGES))
    parts = [read_claims(path, split) for split in SPLITS]
    assert sum(map(len, parts)) == 2 * len(PAGES)
    assert not {one.group for one in parts[0]} & {one.group for one in parts[2]}
    assert len(parts[0]) > max(len(parts[1]), len(parts[2])) > 0
    assert ids(write("other.jsonl", [symmetric(id=name) for name in "ab"]), "symmetric") == ["a", "b"]
