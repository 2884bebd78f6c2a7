"""What readers of tagged text share: IOB1 and IOB2, counted and refused tags, blocks of lines, columns."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdlm_lab.data.tagged import TagReading, columns_of, iob2_tags, line_blocks, marked_parts, spans_of

PATH = Path("x.tsv")


def read(tags: str, reading: TagReading, labels: Sequence[str] | None = None) -> str:
    return " ".join(iob2_tags(enumerate(tags.split(), start=7), path=PATH, reading=reading, labels=labels))


@pytest.mark.parametrize(
    ("tags", "iob2", "mended"),
    [
        ("O B-X I-X O", "O B-X I-X O", 0),
        ("I-X I-X O I-X", "B-X I-X O B-X", 2),  # IOB1
        ("I-X B-X I-X", "B-X B-X I-X", 1),
        ("B-X I-Y I-X", "B-X B-Y B-X", 2),
        ("B-a-b I-a-b", "B-a-b I-a-b", 0),
    ],
)
def test_every_span_starts_with_b(tags, iob2, mended):
    reading = TagReading()
    assert read(tags, reading) == iob2
    assert reading.mended == mended
    assert spans_of(tags.split()) == spans_of(iob2.split())
    assert read(tags, reading) == iob2
    assert reading.mended == 2 * mended


@given(st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"])))
def test_spans_stay_and_nothing_is_left_to_mend(tags):
    once = read(" ".join(tags), TagReading())
    assert spans_of(tags) == spans_of(once.split())
    assert read(once, TagReading(stray="refuse")) == once


def test_faulty_tags(refused):
    remedy = 'write B- for I-, or read with stray="accept"'
    refusing = TagReading(stray="refuse")
    with refused(PATH, f"9: tag: 'I-Y' follows no span of its label; {remedy}"):
        read("B-X I-X I-Y", refusing)
    assert refusing.mended == 0
    for tag in ("X", "B", "B-", "I-", "E-X", "o", "b-X", "NULL", "O-X"):
        with refused(PATH, f"8: tag: {tag!r} is not a tag; write O, or B- or I- and a label"):
            read(f"O {tag}", TagReading())
    with refused(PATH, f"7: tag: '{'x' * 40}' is not a tag; write O, or B- or I- and a label"):
        read("x" * 99, TagReading())
    with pytest.raises(ValueError, match="stray is 'drop'; choose one of accept, refuse"):
        TagReading(stray="drop")


def test_known_labels(refused):
    with refused(PATH, "8: tag: 'I-Z' is not a known tag; the labels are X, Y"):
        read("O I-Z", TagReading(labels=("X", "Y")))
    assert read("O B-Z", TagReading(labels=("Z",)), ("X",)) == "O B-Z"  # the reading's go first
    with refused(PATH, "8: tag: 'B-Z' is not a known tag; the labels are X"):
        read("O B-Z", TagReading(), ("X",))
    with refused(PATH, "7: tag: 'B-Z' is not a known tag; the labels are "):
        read("B-Z", TagReading(labels=()))


def test_blocks(write):
    path = write("a.txt", "\r\n\na\nb\r\n \t\n\n#x\nc\n#y\n#z\n\nd")
    assert list(line_blocks(path)) == [
        [(3, "a"), (4, "b")],
        [(7, "#x"), (8, "c"), (9, "#y"), (10, "#z")],
        [(12, "d")],
    ]
    assert list(line_blocks(path, mark="#")) == [
        [(3, "a"), (4, "b")],
        [(7, "#x")],
        [(8, "c")],
        [(9, "#y")],
        [(10, "#z")],
        [(12, "d")],
    ]


def test_parts(write, refused):
    path = write("a.txt", "a\nb\n\nc\n#x 1\n\nd\n\n#y\ne\n")
    assert list(marked_parts(path, mark="#")) == [
        ((1, ""), [[(1, "a"), (2, "b")], [(4, "c")]]),
        ((5, "#x 1"), [[(7, "d")]]),
        ((9, "#y"), [[(10, "e")]]),
    ]
    remedy = "delete the line, or write the document below it"
    for text, line in (("#x\n\n#y\na\n", 1), ("#x\na\n#y\n\n", 3)):
        path = write("b.txt", text)
        with refused(path, f"{line}: document: no sentence follows; {remedy}"):
            list(marked_parts(path, mark="#"))


def test_columns(refused):
    def columns(text: str, count: int | None = None, tabs: bool = True) -> list[str]:
        return columns_of(text, path=PATH, line=3, count=count, tabs=tabs)

    assert columns(" . . .\t x\t") == [". . .", "x", ""]
    assert columns("a\u00a0b\tc", count=2) == ["a\u00a0b", "c"]
    assert columns("a  b \tc", tabs=False) == ["a", "b", "c"]
    remedy = "write the word, a tab and its tag"
    with refused(PATH, f"3: row: one column instead of 2; {remedy}"):
        columns("a O", count=2)
    with refused(PATH, f"3: row: 3 columns instead of 2; {remedy}"):
        columns("a\tb\tO", count=2)
    remedy = remedy.replace("a tab", "white space")
    with refused(PATH, f"3: row: one column instead of a word and its tag; {remedy}"):
        columns("word", tabs=False)
    with refused(PATH, "3: word: an empty word; write it, or delete the line"):
        columns("\u3000\tO", count=2)
