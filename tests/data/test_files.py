"""Checked opening: what passes, and the exact complaint about what does not."""

import errno
import gzip
import hashlib
import lzma
import os

import pytest

from cdlm_lab.data import files
from cdlm_lab.data.files import DataError


def test_the_message_has_one_shape_and_one_line():
    error = DataError("a/b.txt", "two\nlines", "join them", line=3, field="text")
    assert str(error) == "a/b.txt:3: field text: two lines; join them"
    assert (error.path.name, error.line, error.field) == ("b.txt", 3, "text")
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_lines_end_at_line_feeds_only(write, ending, pack):
    text = "one\u2028still one\u0085and\x0bon\r\n\n  three  \nlast"
    path = write("x.txt" + ending, pack(text.encode()))
    assert list(files.read_lines(path)) == [
        (1, "one\u2028still one\u0085and\x0bon"),
        (2, ""),
        (3, "  three  "),
        (4, "last"),
    ]
    assert files.read_text(path) == "one\u2028still one\u0085and\x0bon\n\n  three  \nlast"


def test_a_byte_order_mark_is_dropped_where_it_begins_the_file(write):
    path = write("x.txt", "\ufeffa\n\ufeffb\n".encode())
    assert [line for _, line in files.read_lines(path)] == ["a", "\ufeffb"]


def test_lines_are_read_one_at_a_time(write):
    lines = files.read_lines(write("x.txt", b"good\n\xff\n"))
    assert next(lines) == (1, "good")
    with pytest.raises(DataError, match="0xff is not UTF-8"):
        next(lines)


def test_missing(tmp_path, refused):
    for name in ("no.txt", "no.txt.gz", "no.txt.xz"):
        path = tmp_path / name
        with refused(path, "1: file: there is no such file; check the spelling of the path"):
            list(files.read_lines(path))
        with refused(path, "1: file: there is no such file; check the spelling of the path"):
            files.sha256_of_file(path)


def test_folder(tmp_path, refused):
    with refused(tmp_path, "1: file: this is a folder, not a file; give the path of a file in it"):
        files.read_text(tmp_path)


def test_no_permission(write, refused, monkeypatch):
    """Refused by us and not by the file system, which refuses root nothing."""

    def refuse(*_args, **_more):
        raise PermissionError(errno.EACCES, "Permission denied")

    path = write("x.txt", "a")
    monkeypatch.setattr(files.Path, "open", refuse)
    what = "the file cannot be read (Permission denied)"
    with refused(path, f"1: file: {what}; check its permissions and the disk"):
        files.read_text(path)


@pytest.mark.parametrize("content", [b"", b"\n \t\n", "\ufeff".encode()])
def test_empty(write, refused, content):
    path = write("x.txt", content)
    with refused(path, "1: file: the file is empty; fill it, or take it out of the corpus"):
        list(files.read_lines(path))
    assert files.read_text(path, allow_empty=True).strip() == ""


def test_binary(write, refused):
    path = write("x.txt", b"ab\ncd\0ef\n")
    remedy = "save it as plain UTF-8 text (files in UTF-16 look like this too)"
    with refused(path, f"2: byte 5: a NUL byte, so this is a binary file; {remedy}"):
        files.read_text(path)


def test_not_utf_8(write, refused):
    path = write("x.txt", "ab\ncaf\xe9\n".encode("latin-1"))
    remedy = "convert the file, for example: iconv -f WINDOWS-1252 -t UTF-8 x.txt"
    with refused(path, f"2: byte 6: 0xe9 is not UTF-8; {remedy}"):
        files.read_text(path)


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_damaged(write, ending, pack):
    whole = pack(os.urandom(3000).hex().encode())
    for content in (whole[: len(whole) // 2], b"not compressed at all"):
        path = write("x.txt" + ending, content)
        with pytest.raises(DataError, match=r":1: field file: .* is damaged .*; copy or download it again$"):
            files.read_text(path)


def test_only_files_are_read(tmp_path, refused):
    """A pipe would be waited for, and a device may have no end."""
    pipe, device = tmp_path / "pipe.txt", tmp_path / "device.txt"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    what, remedy = "this is a pipe, a socket or a device, not a file", "write what it gives into a file"
    for path in (pipe, device):
        for read in (files.read_text, files.open_bytes, files.sha256_of_file):
            with refused(path, f"1: file: {what}; {remedy}"):
                read(path)


def test_a_line_that_is_too_long(write, monkeypatch, refused):
    monkeypatch.setattr(files, "LONGEST_TEXT", 20)
    path = write("x.txt", "short\n" + "x" * 10 + "\nx" + "x" * 20)
    with refused(path, "2: line: longer than 10 bytes; break it into several lines"):
        list(files.read_lines(path, longest=10))
    with refused(path, "3: line: longer than 20 bytes; break it into several lines"):
        files.read_text(path)
    assert len(list(files.read_lines(path))) == 3


@pytest.mark.parametrize("line", [b"x" * 5000, b"x\n" * 2500], ids=["one line", "many lines"])
@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_file_that_unpacks_to_far_more_than_text_does(write, monkeypatch, ending, pack, line):
    monkeypatch.setattr(files, "LONGEST_LINE", 4000)
    monkeypatch.setattr(files, "_MOST_UNPACKED", 10)
    path = write(f"x.txt{ending}", pack(line))
    message = r"the compressed file unpacks to more than 10 times its size, as no text does; unpack it"
    with pytest.raises(DataError, match=message):
        list(files.read_lines(path, longest=1 << 20))
    monkeypatch.setattr(files, "LONGEST_LINE", 6000)  # small ones may be packed as they like
    assert files.read_text(path).strip()


def test_names_that_are_not_utf_8(tmp_path):
    """Python holds such bytes as halves of surrogate pairs, which no file and no terminal takes."""
    path = tmp_path / os.fsdecode(b"caf\xe9.txt")
    path.write_text("a")
    for read in (files.read_text, files.open_bytes, files.sha256_of_file):
        with pytest.raises(DataError, match=r"caf\\udce9\.txt:1: field path: the path is not UTF-8") as said:
            read(path)
        assert str(said.value).isascii()
        assert said.value.path == path
    with pytest.raises(DataError, match=r"a\\x00b:1: field path: a path cannot hold a NUL"):
        files.read_text("a\0b")


def test_complaints_are_one_short_printable_line():
    error = DataError("a\x1b[2J", "x" * 5000, "one\ntwo\u2028three", field="y" * 5000)
    assert str(error).isprintable()
    assert len(str(error)) < 1000
    assert str(error).endswith("; one two three")


def test_home_folders(tmp_path, monkeypatch, refused):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.home_path("~/x") == tmp_path / "x"
    path, what = "~nobody-is-called-so/x", "no home folder of that name is known"
    with refused(path, f"1: path: {what}; write the path without ~"):
        files.home_path(path)


def test_entries(write, tmp_path, refused):
    for name in ("b", "a/c", ".hidden"):
        write(name, "x")
    assert [path.name for path in files.entries(tmp_path)] == ["a", "b"]
    for path in (tmp_path / "b", tmp_path / "no"):
        with refused(path, "1: folder: there is no such folder; check the path"):
            files.entries(path)


def test_what_was_passed_over_in_words():
    assert files.named([]) == "none"
    assert files.named(["a", "b\udce9"]) == "2: a, b\\udce9"
    assert files.named([*"abcdefg"]) == "7: a, b, c, d, e and 2 more"


def test_names_and_checksums(write):
    assert files.plain_name("x/train.txt.src.gz") == "train.txt.src"
    assert files.plain_name("x/train.txt.src") == "train.txt.src"
    assert files.plain_stem("x/train.txt.src.xz") == "train"
    assert files.sha256_of_file(write("x", b"abc")) == hashlib.sha256(b"abc").hexdigest()


@pytest.mark.parametrize("binary", [False, True])
def test_a_replaced_file_is_there_whole(tmp_path, binary):
    path = tmp_path / "x"
    path.write_text("before")
    with files.replaced_file(path, binary=binary) as file:
        file.write(b"a\n" if binary else "ä\n")
        assert path.read_text() == "before"
    assert path.read_bytes() == (b"a\n" if binary else "ä\n".encode())
    assert os.listdir(tmp_path) == ["x"]


def test_a_replaced_file_stays_as_it_was_when_writing_fails(tmp_path):
    path = tmp_path / "x"
    path.write_text("before")
    with pytest.raises(TypeError), files.replaced_file(path) as file:
        file.writelines(["half", None])
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["x"]
