"""What stands between markers is replaced, and nothing else."""

from pathlib import Path

import pytest

from cdlm_lab.report import RunError
from cdlm_lab.results.readme import marked_tables, write_tables

KNOWN = ("one", "two")
BEGIN, END = b"<!-- table one begin -->", b"<!-- table one end -->"


def written(folder: Path, content: bytes, **texts: str) -> bytes:
    file = folder / "README.md"
    file.write_bytes(content)
    write_tables(file, texts, known=KNOWN)
    return file.read_bytes()


def test_a_table_is_put_between_its_markers(tmp_path: Path):
    content = b"before\n" + BEGIN + b"\nold\n" + END + b"\nafter"
    assert written(tmp_path, content, one="| new |") == (
        b"before\n" + BEGIN + b"\n\n| new |\n\n" + END + b"\nafter"
    )


def test_what_is_outside_stays_byte_for_byte(tmp_path: Path):
    # a byte-order mark, bytes that are no UTF-8, spaces at ends of lines, Windows' line ends
    before, after = b"\xef\xbb\xbf \xff\xfe  \r\n\r\n", b"\r\n\t \xe9\x00 no line end"
    found = written(tmp_path, before + BEGIN + b"\r\n" + END + after, one="| a |\n| b |")
    assert found == before + BEGIN + b"\r\n\r\n| a |\r\n| b |\r\n\r\n" + END + after
    assert marked_tables(tmp_path / "README.md", known=KNOWN)[0].text == "| a |\n| b |"


def test_writing_twice_changes_nothing(tmp_path: Path):
    file = tmp_path / "README.md"
    file.write_bytes(BEGIN + b"\n" + END)
    assert write_tables(file, {"one": "x"}, known=KNOWN) == ["one"]
    before = file.stat().st_mtime_ns
    assert write_tables(file, {"one": "x"}, known=KNOWN) == []
    assert file.stat().st_mtime_ns == before


def test_tables_are_found_in_order_with_their_lines(tmp_path: Path):
    file = tmp_path / "README.md"
    file.write_bytes(b"\n".join([b"a", BEGIN, b"", b"| x |", b"", END, b"", *_marks("two")]))
    assert [(one.name, one.line, one.text) for one in marked_tables(file, known=KNOWN)] == [
        ("one", 2, "| x |"),
        ("two", 8, ""),
    ]


def _marks(name: str) -> list[bytes]:
    return [f"<!-- table {name} {word} -->".encode() for word in ("begin", "end")]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (_marks("ones"), r"README.md:2: there is no table 'ones'; did you mean 'one'"),
        (_marks("zebra"), r"README.md:2: there is no table 'zebra'; known are one, two"),
        ([BEGIN], r"README.md:2: table one has no end"),
        ([END], r"README.md:2: table one is ended and has not begun"),
        ([BEGIN, BEGIN], r"README.md:3: table one is not ended yet"),
        ([BEGIN, _marks("two")[1]], r"README.md:3: table one has begun, but two is ended here"),
        ([*_marks("one"), *_marks("one")], r"README.md:5: table one is marked a second time"),
        ([b"<!-- table one start -->"], r"README.md:2: table one is marked 'start'; write begin or end"),
        ([BEGIN, b"\xff", END], r"README.md:2: table one is not text in UTF-8"),
        (_marks("two"), r"README.md:2: there is nothing to put into table two"),
    ],
)
def test_errors_have_the_line_and_leave_the_file(lines: list[bytes], message: str, tmp_path: Path):
    content = b"\n".join([b"first", *lines])
    with pytest.raises(RunError, match=message):
        written(tmp_path, content, one="x")
    assert (tmp_path / "README.md").read_bytes() == content


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(RunError, match="cannot be read"):
        marked_tables(tmp_path / "no.md", known=KNOWN)
