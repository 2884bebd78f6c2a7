"""Claims with evidence: FEVER, FM2 and FeverSymmetric, how they are divided, folders, and the real files."""

import hashlib
from collections import Counter, defaultdict

import pytest

from cdlm_lab.data.convert import claims
from cdlm_lab.data.convert.claims import checksum_of, claim_sets, read_claims, split_claims
from cdlm_lab.data.records import EvidencedClaim

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


def ids(path, split, **options):
    return [claim.id for claim in read_claims(path, split, **options)]


def test_fever(write):
    others = [fever(id=92, label="REFUTES", evidence=[]), fever(id="93", label="NOT ENOUGH INFO")]
    hidden = [fever(id=94, label=None), fever(id=95, label=...)]
    first, second, third, *hidden = claims.read_fever(write("dev.jsonl.gz", [fever(), *others, *hidden]))
    mill = 'Blue Mill (novel). Blue Mill ( 1999 ) is by " Ann " .'  # first in the file, whatever the scores
    evidence = (mill, "Ann Lee. She is a baker .")
    assert first == claim_of("91", "Ann ( A ) wrote it.", evidence, "supported", "Blue Mill (novel)")
    assert (second.id, second.evidence, second.label, second.group) == ("92", (), "refuted", "92")
    assert (third.id, third.label) == ("93", "not enough info")
    assert [claim.label for claim in hidden] == [None, None]


def test_fm2(write):
    path = write("fm2_dev.jsonl.gz", [fm2(), fm2(id="x2", label="SUPPORTS")])
    first, second = claims.read_fm2(path, most_evidence=2)
    page = "Blue Mill (Orn)"
    assert first == claim_of("x1", "The mill burnt down.", (f"{page}. s0.", f"{page}. s1."), "refuted", page)
    assert (second.id, second.label) == ("x2", "supported")
    assert next(claims.read_fm2(path, evidence="gold")).evidence == (f"{page}. It stands.",)


def test_fever_symmetric_in_both_versions(write):
    new = symmetric(
        id="120000003", claim="A c .", evidence="A c d .", label="SUPPORTS", evidence_sentence=...
    )
    path = write("a.jsonl", [symmetric(), new | {"gold_label": "REFUTES"}])
    assert list(claims.read_fever_symmetric(path)) == [
        claim_of("12", 'A " b " .', ("A ( c ) .",), "refuted", "12"),
        claim_of("120000003", "A c .", ("A c d .",), "supported", "12"),
    ]
    groups = {"90000001": "90000001", "9000000": "9000000", "9000000213": "9000000213", "970000004": "97"}
    path = write("b.jsonl", [symmetric(id=name) for name in groups])
    assert {claim.id: claim.group for claim in claims.read_fever_symmetric(path)} == groups


def test_no_more_evidence_than_wanted_and_none_of_blanks(write):
    path = write("a.jsonl", [fever(evidence=[["A", 0, " ", 0.9], *(["B", n, f"s{n}"] for n in range(9))])])
    (five,) = claims.read_fever(path)
    assert (five.evidence, five.group) == (("B. s0", "B. s1", "B. s2", "B. s3", "B. s4"), "B")
    assert [len(next(claims.read_fever(path, most_evidence=n)).evidence) for n in (1, 9, 99)] == [1, 9, 9]
    path = write("b.jsonl", [fm2()])
    assert [len(next(claims.read_fm2(path, most_evidence=n)).evidence) for n in (1, 5, 99)] == [1, 5, 11]
    blank = [{"text": " "}, {"text": "a"}, {"text": "b"}]
    path = write("c.jsonl", [fm2(retrieved_evidence=blank), fm2(id="x2", retrieved_evidence=[])])
    assert [one.evidence for one in claims.read_fm2(path, most_evidence=1)] == [("Blue Mill (Orn). a",), ()]


FORMS = {
    "fever": (claims.read_fever, fever),
    "fm2": (claims.read_fm2, fm2),
    "symmetric": (claims.read_fever_symmetric, symmetric),
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


@pytest.mark.parametrize(("split", "options", "message"), [
    ("all", {}, "split is 'all'; choose one of train, dev, test, symmetric"),
    ("symmetric", {"evidence": "some"}, "evidence is 'some'; choose one of retrieved, gold"),
    ("symmetric", {"most_evidence": 0}, "most_evidence is 0; it must be at least 1"),
])  # fmt: skip
def test_unknown_options(write, split, options, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        read_claims(write("a.jsonl", [symmetric()]), split, **options)


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


CLAIMS = [claim_of(str(number), "a", ("b",), None, f"page {number // 3}") for number in range(6000)]


def test_groups_stay_together_and_nothing_is_lost():
    divided = split_claims(CLAIMS, SPLITS)
    assert tuple(divided) == SPLITS
    groups = {name: {one.group for one in some} for name, some in divided.items()}
    assert sum(len(names) for names in groups.values()) == len(set().union(*groups.values())) == 2000
    numbers = [[int(one.id) for one in some] for some in divided.values()]
    assert all(some == sorted(some) for some in numbers)
    assert sorted(number for some in numbers for number in some) == list(range(6000))
    # Three standard errors of a share of 0.2 among 2,000 groups: 3 * sqrt(0.2 * 0.8 / 2000) = 0.027.
    assert [len(groups[name]) / 2000 for name in ("dev", "test")] == pytest.approx([0.2, 0.2], abs=0.027)


def test_claims_are_divided_by_the_stated_rule_whatever_stands_beside_them():
    three, two = split_claims(CLAIMS, SPLITS), split_claims(CLAIMS, ("kept", "away"))
    for one in CLAIMS[:150]:
        share = int(hashlib.sha256(f"claims/0/{one.group}".encode()).hexdigest()[:16], 16) / 16**16
        assert one in three["test" if share < 0.2 else "dev" if share < 0.4 else "train"]
        assert one in two["away" if share < 0.2 else "kept"]
    fewer = split_claims(reversed(CLAIMS[:300]), SPLITS)
    for name, some in fewer.items():
        assert {one.id for one in some} == {one.id for one in three[name] if int(one.id) < 300}


def test_fm2_without_a_training_file(write, tmp_path):
    """The dev file is split by pages, a fifth of them for dev; the test file is not split."""
    dev = write("fm2_dev.jsonl.gz", of_pages(*PAGES))
    write("fm2_test.jsonl", of_pages("a", "b"))
    assert claim_sets(str(tmp_path)) == SPLITS
    assert ids(tmp_path, "test") == ["a-0", "a-1", "b-0", "b-1"]
    divided = split_claims(claims.read_fm2(dev), ("train", "dev"))
    assert {split: read_claims(tmp_path, split) for split in ("train", "dev")} == divided
    assert 4 <= len(divided["dev"]) <= 28


def test_training_files_and_a_test_set_beside_them(write, tmp_path):
    for split in SPLITS:
        write(f"{split}.jsonl", of_pages("a", first=split))
    assert [ids(tmp_path, split)[0] for split in claim_sets(tmp_path)] == ["traina-0", "deva-0", "testa-0"]
    for split in SPLITS:
        write(f"bert_{split}.json", fever(id=split))
    write("v0.1_fever_symmetric_full.jsonl", [symmetric(id="full")])
    assert claim_sets(tmp_path) == (*SPLITS, "symmetric")
    names = [ids(tmp_path, split) for split in claim_sets(tmp_path)]
    assert names == [["train"], ["dev"], ["test"], ["full"]]
    write("v0.2_fever_symmetric_dev.jsonl", [symmetric(id="dev")])
    for name in ("fever_symmetric_test.jsonl.gz", "fever_symmetric_test.jsonl"):  # a plain file goes first
        write(name, [symmetric(id=name)])
        assert ids(tmp_path, "symmetric") == [name]


@pytest.mark.parametrize("records", [of_pages(*PAGES), [fever(id=p, evidence=[[p, 0, "s"]]) for p in PAGES]])
def test_one_file_is_divided(write, records):
    path = write("some.jsonl", records)
    assert claim_sets(path) == SPLITS
    parts = [read_claims(path, split) for split in SPLITS]
    assert parts == list(split_claims((claim for part in parts for claim in part), SPLITS).values())
    assert sum(map(len, parts)) == len(records)
    assert len(parts[0]) > max(len(parts[1]), len(parts[2])) > 0


@pytest.mark.parametrize("fields", [{}, {"evidence": "b", "evidence_sentence": ...}])
def test_one_symmetric_file(write, fields):
    path = write("some.jsonl", [symmetric(id=name, **fields) for name in "ab"])
    assert claim_sets(path) == ("symmetric",)
    assert ids(path, "symmetric") == ["a", "b"]


def test_which_evidence(write, tmp_path, refused):
    write("fm2_dev.jsonl", of_pages(*PAGES))
    write("fm2_test.jsonl", of_pages("a"))
    write("fever_symmetric_test.jsonl", [symmetric()])
    assert len(read_claims(tmp_path, "test")[0].evidence) == 5
    assert len(read_claims(tmp_path, "train", most_evidence=2)[0].evidence) == 2
    assert read_claims(tmp_path, "test", evidence="gold")[0].evidence == ("a. It stands.",)
    assert read_claims(tmp_path, "symmetric", evidence="gold")[0].evidence == ("A ( c ) .",)
    path = write("bert.json", fever())
    with refused(path, '1: file: FEVER in KGAT\'s form has no gold evidence; read with evidence="retrieved"'):
        read_claims(path, "train", evidence="gold")


@pytest.mark.parametrize(("name", "records", "what"), [
    ("fm2_dev.jsonl", of_pages("a"), None),  # a folder without a test file
    ("clusters.jsonl", [{"id": "1", "documents": []}], "no claims that can be read"),
    ("", None, "no such file or folder"),
    ("a.jsonl", [symmetric()], "no claims for train here, but for symmetric"),
])  # fmt: skip
def test_no_claims(write, tmp_path, refused, name, records, what):
    path = write(name, records) if name else tmp_path / "none"
    remedy = (
        "give a folder with bert_dev.json and bert_test.json (FEVER), fm2_dev.jsonl and fm2_test.jsonl (FM2) "
        "or fever_symmetric_test.jsonl, or one such file"
    )
    with refused(path if what else tmp_path, f"1: claims: {what or 'no claims that can be read'}; {remedy}"):
        read_claims(path if what else tmp_path, "train")


def test_a_page_fills_one_split_only(write, refused):
    path = write("b.jsonl", of_pages("a"))
    empty = next(split for split, some in split_claims(claims.read_fm2(path), SPLITS).items() if not some)
    what = f"divided into train, dev, test by pages, it leaves none for {empty}"
    with refused(path, f"1: file: {what}; give a file with more claims"):
        read_claims(path, empty)


def test_checksums(write, tmp_path):
    write("fm2_dev.jsonl", of_pages(*PAGES))
    write("fm2_test.jsonl", of_pages("a"))
    sums = {split: checksum_of(tmp_path, split) for split in claim_sets(tmp_path)}
    assert len(set(sums.values())) == 3
    for name in ("fm2_dev.jsonl", "fm2_test.jsonl"):  # where the folder lies does not matter
        write(f"moved/{name}", (tmp_path / name).read_bytes())
    assert {split: checksum_of(tmp_path / "moved", split) for split in sums} == sums
    write("fm2_train.jsonl", of_pages("b"))
    assert checksum_of(tmp_path, "dev") != sums["dev"]  # no longer divided
    assert checksum_of(tmp_path, "test") == sums["test"]
    write("fm2_test.jsonl", of_pages("c"))
    assert checksum_of(tmp_path, "test") != sums["test"]


def test_the_real_fm2_has_the_evidence_of_the_docstring(real_data):
    counts, total = Counter(), 0
    for name in ("fm2_dev.jsonl.gz", "fm2_test.jsonl.gz"):
        path = real_data("fever_related") / name
        retrieved = claims.read_fm2(path, most_evidence=99)
        for gold, one in zip(
            claims.read_fm2(path, evidence="gold", most_evidence=99), retrieved, strict=True
        ):
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
        some = list(claims.read_fever_symmetric(real_data("fever_related") / f"{name}.jsonl"))
        groups[name] = Counter(claim.group for claim in some)
        assert set(groups[name].values()) == {4}
        labels = defaultdict(list)
        for claim in some:
            for part in (claim.text, claim.evidence):
                labels[claim.group, part].append(claim.label)
        assert all(sorted(both) == ["refuted", "supported"] for both in labels.values())
        assert not any("-LRB-" in claim.text + claim.evidence[0] for claim in some)
    assert not groups["v0.2_fever_symmetric_dev"].keys() & groups["v0.2_fever_symmetric_test"].keys()
