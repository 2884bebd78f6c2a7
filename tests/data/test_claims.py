"""Claims with evidence: FEVER, FM2 and FeverSymmetric, how they are divided, folders, and the real files."""

import hashlib
from collections import Counter

import pytest

from cdlm_lab.data.claims import (
    EvidencedClaim,
    checksum_of,
    claim_sets,
    format_of,
    plain_text,
    plain_title,
    read_claims,
    read_fever,
    read_fever_symmetric,
    read_fm2,
    split_claims,
)

MILL = ["Blue_Mill_-LRB-novel-RRB-", 0, "Blue Mill LRB 1999 RRB is by `` Ann '' .", 0.2]
LEE = ["Ann_Lee", 3, "She is a baker .", 0.9]
PAGES = tuple(f"page {number}" for number in range(40))


def fever(**fields):
    return {
        "id": 91, "claim": "Ann -LRB- A -RRB- wrote it.", "label": "SUPPORTS", "evidence": [MILL, LEE],
    } | fields  # fmt: skip


def fm2(**fields):
    plot = [{"section_header": "Plot", "text": f"s{n}."} for n in range(10)]
    stands = {"section_header": "Summary", "text": "It stands."}
    claim = {
        "id": "x1", "text": "The mill burnt down.", "label": "REFUTES", "wikipedia_page": "Blue Mill (Orn)",
    }  # fmt: skip
    return claim | {"gold_evidence": [stands], "retrieved_evidence": [*plot, stands]} | fields


def symmetric(**fields):
    claim = {"id": "12", "label": "REFUTES", "claim": "A `` b '' .", "evidence_sentence": "A -LRB- c -RRB- ."}
    return {name: value for name, value in (claim | fields).items() if value is not ...}


def of_pages(*pages, first=""):
    """Two claims of FM2 for each page."""
    return [fm2(id=f"{first}{page}-{n}", wikipedia_page=page) for page in pages for n in range(2)]


def ids(path, split, **options):
    return [claim.id for claim in read_claims(path, split, **options)]


def test_fever(write):
    others = [fever(id=92, label="REFUTES", evidence=[]), fever(id="93", label="NOT ENOUGH INFO")]
    kept_back = [
        fever(id=94, label=None),
        {name: value for name, value in fever().items() if name != "label"},
    ]
    first, second, third, *hidden = read_fever(write("dev.jsonl.gz", [fever(), *others, kept_back[0]]))
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
    assert [claim.label for claim in [*hidden, *read_fever(write("test.jsonl", kept_back[1:]))]] == [
        None,
        None,
    ]


def test_fm2(write):
    path = write("fm2_dev.jsonl.gz", [fm2(), fm2(id="x2", label="SUPPORTS")])
    first, second = read_fm2(path, most_evidence=2)
    evidence = ("Blue Mill (Orn). s0.", "Blue Mill (Orn). s1.")
    page = "Blue Mill (Orn)"
    assert first == EvidencedClaim(
        id="x1", text="The mill burnt down.", evidence=evidence, label="refuted", group=page
    )
    assert (second.id, second.label) == ("x2", "supported")
    (gold,) = read_fm2(write("a.jsonl", [fm2()]), evidence="gold")
    assert gold.evidence == ("Blue Mill (Orn). It stands.",)


def test_fever_symmetric_in_both_versions(write):
    new = symmetric(
        id="120000003", claim="A c .", evidence="A c d .", label="SUPPORTS", evidence_sentence=...
    )
    first, second = read_fever_symmetric(write("a.jsonl", [symmetric(), new | {"gold_label": "REFUTES"}]))
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
def test_groups_of_fever_symmetric(write, identifier, group):
    (claim,) = read_fever_symmetric(write("a.jsonl", [symmetric(id=identifier)]))
    assert (claim.id, claim.group) == (identifier, group)


def test_no_more_evidence_than_wanted_and_none_of_blanks(write):
    path = write("a.jsonl", [fever(evidence=[["A", 0, " ", 0.9], *(["B", n, f"s{n}"] for n in range(9))])])
    (five,) = read_fever(path)
    assert (five.evidence, five.group) == (("B. s0", "B. s1", "B. s2", "B. s3", "B. s4"), "B")
    assert [len(next(read_fever(path, most_evidence=n)).evidence) for n in (1, 9, 99)] == [1, 9, 9]
    path = write("b.jsonl", [fm2()])
    assert [len(next(read_fm2(path, most_evidence=n)).evidence) for n in (1, 5, 99)] == [1, 5, 11]
    blank = [{"text": " "}, {"text": "a"}, {"text": "b"}]
    path = write("c.jsonl", [fm2(retrieved_evidence=blank), fm2(id="x2", retrieved_evidence=[])])
    assert [claim.evidence for claim in read_fm2(path, most_evidence=1)] == [("Blue Mill (Orn). a",), ()]


FORMS = {"fever": (read_fever, fever), "fm2": (read_fm2, fm2), "symmetric": (read_fever_symmetric, symmetric)}
EMPTY, LABEL = (
    "it is empty; fill it in, or delete the record",
    "SUPPORTS, REFUTES, NOT ENOUGH INFO, or leave it out",
)
ROW, QUOTES = 'write each as ["title", 0, "sentence", 0.9]', "put it in quotes"
TEXT = f"a number where a text belongs; {QUOTES}"


@pytest.mark.parametrize(
    ("form", "fields", "message"),
    [
        ("symmetric", {"id": "12"}, "id: '12' stands in line 1 already; give each record its own id"),
        ("symmetric", {"id": 12}, "id: '12' stands in line 1 already; give each record its own id"),
        ("symmetric", {"id": True}, f"id: true or false where a text belongs; {QUOTES}"),
        ("symmetric", {"id": ...}, 'id: missing; add "id" to the record'),
        ("symmetric", {"claim": " "}, f"claim: {EMPTY}"),
        ("symmetric", {"label": "no"}, f"label: 'no' is unknown; write one of {LABEL}"),
        ("symmetric", {"label": 1}, f"label: 1 is unknown; write one of {LABEL}"),
        ("symmetric", {"evidence_sentence": "  "}, f"evidence_sentence: {EMPTY}"),
        ("symmetric", {"evidence": " "}, f"evidence: {EMPTY}"),
        ("symmetric", {"evidence_sentence": ...}, 'evidence: missing; add "evidence" to the record'),
        ("fever", {"evidence": "x"}, "evidence: a text where a list belongs; write it as [...]"),
        ("fever", {"evidence": [MILL, "x"]}, f"evidence[1]: a text where a list belongs; {ROW}"),
        ("fever", {"evidence": [["A", 0]]}, f"evidence[0]: a list of 2, too short; {ROW}"),
        ("fever", {"evidence": [["A", 0, None]]}, f"evidence[0][2]: null where a text belongs; {QUOTES}"),
        ("fever", {"evidence": [[7, 0, "s"]]}, f"evidence[0][0]: {TEXT}"),
        ("fm2", {"text": ""}, f"text: {EMPTY}"),
        ("fm2", {"wikipedia_page": 3}, f"wikipedia_page: {TEXT}"),
        ("fm2", {"retrieved_evidence": {}},
         "retrieved_evidence: an object where a list belongs; write it as [...]"),
        ("fm2", {"retrieved_evidence": ["s"]},
         "retrieved_evidence[0]: a text where an object belongs; write it as {...}"),
        ("fm2", {"retrieved_evidence": [{"text": "s"}, {}]},
         'retrieved_evidence[1].text: missing; add "text" to the record'),
    ],
)  # fmt: skip
def test_refused_records(write, refused, form, fields, message):
    read, made = FORMS[form]
    path = write("a.jsonl", [made(), made(**{"id": "2"} | fields)])
    with refused(path, f"2: {message}"):
        list(read(path))


def test_records_without_evidence(write, refused):
    path = write("a.jsonl", [{"id": 1, "claim": "a"}])
    with refused(path, '1: evidence: missing; add "evidence" to the record'):
        list(read_fever(path))


def test_unknown_options(write):
    path = write("a.jsonl", [symmetric()])
    with pytest.raises(ValueError, match=r"^split is 'all'; choose one of train, dev, test, symmetric$"):
        read_claims(path, "all")
    for read in (read_fm2, lambda path, **options: read_claims(path, "symmetric", **options)):
        with pytest.raises(ValueError, match=r"^evidence is 'some'; choose one of retrieved, gold$"):
            read(path, evidence="some")
    for read in (read_fm2, read_fever, lambda path, **options: read_claims(path, "symmetric", **options)):
        with pytest.raises(ValueError, match=r"^most_evidence is 0; it must be at least 1$"):
            read(path, most_evidence=0)


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


CLAIMS = [
    EvidencedClaim(id=str(number), text="a", evidence=("b",), label=None, group=f"page {number // 3}")
    for number in range(6000)
]


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
    three = split_claims(CLAIMS, held_out=0.3, seed=7)
    two = split_claims(CLAIMS, held_out=0.3, seed=7, into=("kept", "away"))
    seen = Counter()
    for one in CLAIMS[:150]:
        share = int(hashlib.sha256(f"claims/7/{one.group}".encode()).hexdigest()[:16], 16) / 16**16
        name = "test" if share < 0.3 else "dev" if share < 0.6 else "train"
        assert one in three[name]
        assert one in two["away" if share < 0.3 else "kept"]
        seen[name] += 1
    assert len(seen) == 3


def test_added_and_reordered_claims_move_no_others():
    first = split_claims(CLAIMS[:300], held_out=0.2)
    second = split_claims(reversed(CLAIMS[:600]), held_out=0.2)
    for name, claims in first.items():
        assert {one.id for one in claims} == {one.id for one in second[name] if int(one.id) < 300}
    assert first != split_claims(CLAIMS[:300], held_out=0.2, seed=1)


@pytest.mark.parametrize("held_out", [0.5, 0.0, -0.1])
def test_shares_that_leave_nothing(held_out):
    with pytest.raises(
        ValueError, match=f"^held_out is {held_out}; 2 such shares must be more than 0, below 1$"
    ):
        split_claims(CLAIMS, held_out=held_out)
    found = split_claims(
        CLAIMS, held_out=0.5, into=("train", "dev")
    )  # half may go to the only held-out split
    assert len(found["train"]) + len(found["dev"]) == 6000
    assert len(found["dev"]) / 6000 == pytest.approx(0.5, abs=0.034)


def test_fm2_without_a_training_file(write, tmp_path):
    """The dev file is divided by pages, a fifth for dev; the test file is left whole."""
    dev = write("fm2_dev.jsonl.gz", of_pages(*PAGES))
    write("fm2_test.jsonl", of_pages("a", "b"))
    assert claim_sets(tmp_path) == ("train", "dev", "test")
    assert format_of(str(tmp_path)) == "fm2"
    assert ids(tmp_path, "test") == ["a-0", "a-1", "b-0", "b-1"]
    divided = split_claims(read_fm2(dev), held_out=0.2, into=("train", "dev"))
    train, held_out = read_claims(tmp_path, "train"), read_claims(tmp_path, "dev")
    assert (train, held_out) == (divided["train"], divided["dev"])
    assert len(train) + len(held_out) == 80
    assert not {claim.group for claim in train} & {claim.group for claim in held_out}
    assert 4 <= len(held_out) <= 28


def test_fm2_with_a_training_file(write, tmp_path):
    for split in ("train", "dev", "test"):
        write(f"{split}.jsonl", of_pages("a", first=split))
    assert claim_sets(tmp_path) == ("train", "dev", "test")
    assert [ids(tmp_path, split)[0] for split in claim_sets(tmp_path)] == ["traina-0", "deva-0", "testa-0"]


def test_fever_with_a_test_set_beside_it(write, tmp_path):
    for split in ("train", "dev", "test"):
        write(f"bert_{split}.json", fever(id=split))
        write(f"fm2_{split}.jsonl", of_pages("a"))
    write("v0.1_fever_symmetric_full.jsonl", [symmetric(id="full")])
    assert claim_sets(tmp_path) == ("train", "dev", "test", "symmetric")
    assert format_of(tmp_path) == "fever"
    assert [ids(tmp_path, split) for split in claim_sets(tmp_path)] == [
        ["train"], ["dev"], ["test"], ["full"],
    ]  # fmt: skip
    write("fever_symmetric_test.jsonl", [symmetric(id="new")])
    write("v0.2_fever_symmetric_dev.jsonl", [symmetric(id="dev")])
    assert ids(tmp_path, "symmetric") == ["new"]


def test_a_plain_file_goes_first(write, tmp_path):
    for name in ("fever_symmetric_test.jsonl.gz", "fever_symmetric_test.jsonl"):
        write(name, [symmetric(id=name)])
        assert ids(tmp_path, "symmetric") == [name]
    assert (claim_sets(tmp_path), format_of(tmp_path)) == (("symmetric",), "fever_symmetric")


@pytest.mark.parametrize(
    ("records", "form"),
    [(of_pages(*PAGES), "fm2"), ([fever(id=page, evidence=[[page, 0, "s"]]) for page in PAGES], "fever")],
)
def test_one_file(write, records, form):
    path = write("some.jsonl", records)
    assert (claim_sets(path), format_of(path)) == (("train", "dev", "test"), form)
    parts = [read_claims(path, split) for split in ("train", "dev", "test")]
    together = split_claims((claim for part in parts for claim in part), held_out=0.2)
    assert parts == list(together.values())
    assert sum(len(part) for part in parts) == len(records)
    assert len(parts[0]) > max(len(parts[1]), len(parts[2]))


@pytest.mark.parametrize("fields", [{}, {"evidence": "b", "evidence_sentence": ...}])
def test_one_symmetric_file(write, fields):
    path = write("some.jsonl", [symmetric(id=name, **fields) for name in "ab"])
    assert (claim_sets(path), format_of(path)) == (("symmetric",), "fever_symmetric")
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


LOOKED_FOR = (
    "give a folder with bert_dev.json and bert_test.json (FEVER), fm2_dev.jsonl and fm2_test.jsonl (FM2) or "
    "fever_symmetric_test.jsonl, or one such file"
)


def test_no_claims(write, tmp_path, refused):
    write("fm2_dev.jsonl", of_pages("a"))  # without a test file
    with refused(tmp_path, f"1: claims: no claims that can be read; {LOOKED_FOR}"):
        claim_sets(tmp_path)
    path = write("clusters.jsonl", [{"id": "1", "documents": []}])
    with refused(path, f"1: claims: no claims that can be read; {LOOKED_FOR}"):
        read_claims(path, "train")
    with refused(tmp_path / "none", f"1: claims: no such file or folder; {LOOKED_FOR}"):
        format_of(tmp_path / "none")
    path = write("a.jsonl", [symmetric()])
    with refused(path, f"1: claims: no claims for train here, but for symmetric; {LOOKED_FOR}"):
        read_claims(path, "train")


def test_a_page_fills_one_split_only(write, refused):
    path = write("b.jsonl", of_pages("a"))
    filled = next(name for name, claims in split_claims(read_fm2(path), held_out=0.2).items() if claims)
    empty = next(split for split in ("train", "dev", "test") if split != filled)
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


def test_the_real_symmetric_files_are_balanced(real_data):
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
    assert not groups["v0.2_fever_symmetric_dev"].keys() & groups["v0.2_fever_symmetric_test"].keys()
