"""Files: checked opening, JSON and tables, and word vectors, with every message; the cards of data sets."""

import errno
import gzip
import hashlib
import lzma
import os
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest
from pydantic import Field

from cdlm_lab.data import files
from cdlm_lab.data.clusters import open_corpus
from cdlm_lab.data.files import (
    DataError,
    Fields,
    parse_json,
    read_json_lines,
    read_json_list,
    read_word_vectors,
)
from cdlm_lab.data.reading import read_records

PACKED = pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
EMPTY = "the file is empty; fill it, or take it out of the corpus"
READS = (files.read_text, files.open_bytes, files.sha256_of_file)


def test_messages_are_one_short_printable_line():
    error = DataError("a/b.txt", "two\nlines", "join them", line=3, field="text")
    assert str(error) == "a/b.txt:3: field text: two lines; join them"
    assert (error.path, error.line, error.field) == (Path("a/b.txt"), 3, "text")
    assert isinstance(error, ValueError)
    long = str(DataError("a\x1b[2J", "x" * 5000, "one\ntwo\u2028three", field="y" * 5000))
    assert long.isprintable()
    assert len(long) < 1000
    assert long.endswith("; one two three")
    assert files.named([]) == "none"
    assert files.named(["a", "b\udce9"]) == "2: a, b\\udce9"
    assert files.named([*"abcdefg"]) == "7: a, b, c, d, e and 2 more"


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_lines_end_at_line_feeds_only(write, ending, pack):
    text = "\ufeffone\u2028still one\u0085and\x0bon\r\n\n  three  \n\ufefflast"
    path = write("x.txt" + ending, pack(text.encode()))
    assert list(files.read_lines(path)) == [
        (1, "one\u2028still one\u0085and\x0bon"), (2, ""), (3, "  three  "), (4, "\ufefflast"),
    ]  # fmt: skip
    assert files.read_text(path) == "one\u2028still one\u0085and\x0bon\n\n  three  \n\ufefflast"


def test_lines_are_read_one_at_a_time(write):
    lines = files.read_lines(write("x.txt", b"good\n\xff\n"))
    assert next(lines) == (1, "good")
    with pytest.raises(DataError, match="0xff is not UTF-8"):
        next(lines)


@pytest.mark.parametrize(("content", "message"), [
    *((blank, f"1: file: {EMPTY}") for blank in (b"", b"\n \t\n", b"\xef\xbb\xbf")),
    (b"ab\ncd\0ef\n", "2: byte 5: a NUL byte, so this is a binary file; save it as plain UTF-8 text "
     "(files in UTF-16 look like this too)"),
    (b"ab\ncaf\xe9\n", "2: byte 6: 0xe9 is not UTF-8; convert the file, for example: "
     "iconv -f WINDOWS-1252 -t UTF-8 x.txt"),
])  # fmt: skip
def test_contents_that_are_no_text(write, refused, content, message):
    path = write("x.txt", content)
    with refused(path, message):
        list(files.read_lines(path))
    if EMPTY in message:
        assert files.read_text(path, allow_empty=True).strip() == ""


def test_what_is_no_file_is_refused(write, tmp_path, refused, monkeypatch):
    """Reading a pipe would wait, and a device may have no end; the system refuses root no file."""
    pipe, device = tmp_path / "pipe.txt", tmp_path / "device.txt"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    nothing = "1: file: there is no such file; check the spelling of the path"
    special = "1: file: this is a pipe, a socket or a device, not a file; write what it gives into a file"
    folder = "1: file: this is a folder, not a file; give the path of a file in it"
    messages = {tmp_path: folder, pipe: special, device: special}
    messages |= {tmp_path / name: nothing for name in ("no.txt", "no.txt.gz", "no.txt.xz")}
    for path, message in messages.items():
        for read in READS:
            with refused(path, message):
                read(path)

    def refuse(*_args, **_more):
        raise PermissionError(errno.EACCES, "Permission denied")

    path = write("x.txt", "a")
    monkeypatch.setattr(files.Path, "open", refuse)
    what = "the file cannot be read (Permission denied)"
    with refused(path, f"1: file: {what}; check its permissions and the disk"):
        files.read_text(path)


@PACKED
def test_damaged(write, ending, pack):
    whole = pack(os.urandom(3000).hex().encode())
    for content in (whole[: len(whole) // 2], b"not compressed at all"):
        path = write("x.txt" + ending, content)
        with pytest.raises(DataError, match=r":1: field file: .* is damaged .*; copy or download it again$"):
            files.read_text(path)


def test_names_that_are_not_utf_8(tmp_path):
    """Python represents such bytes as unpaired surrogates, which cannot be written to files and terminals."""
    path = tmp_path / os.fsdecode(b"caf\xe9.txt")
    path.write_text("a")
    for read in READS:
        with pytest.raises(
            DataError, match=r"caf\\udce9\.txt:1: field path: the path is not UTF-8"
        ) as raised:
            read(path)
        assert str(raised.value).isascii()
        assert raised.value.path == path
    with pytest.raises(DataError, match=r"a\\x00b:1: field path: a path cannot hold a NUL"):
        files.read_text("a\0b")


def test_names_folders_and_checksums(write, tmp_path, monkeypatch, refused):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.home_path("~/x") == tmp_path / "x"
    path, what = "~nobody-is-called-so/x", "no home folder of that name is known"
    with refused(path, f"1: path: {what}; write the path without ~"):
        files.home_path(path)
    for name in ("b", "a/c", ".hidden"):
        write(name, "abc")
    assert [path.name for path in files.entries(tmp_path)] == ["a", "b"]
    for path in (tmp_path / "b", tmp_path / "no"):
        with refused(path, "1: folder: there is no such folder; check the path"):
            files.entries(path)
    assert files.plain_name("x/train.txt.src.gz") == "train.txt.src"
    assert files.plain_name("x/train.txt.src") == "train.txt.src"
    assert files.plain_stem("x/train.txt.src.xz") == "train"
    assert files.sha256_of_file(tmp_path / "b") == hashlib.sha256(b"abc").hexdigest()


@pytest.mark.parametrize("binary", [False, True])
def test_a_replaced_file_is_there_whole_or_stays_as_it_was(tmp_path, binary):
    path = tmp_path / "x"
    path.write_text("before")
    with pytest.raises(TypeError), files.replaced_file(path) as file:
        file.writelines(["half", None])
    with files.replaced_file(path, binary=binary) as file:
        file.write(b"a\n" if binary else "ä\n")
        assert path.read_text() == "before"
    assert path.read_bytes() == (b"a\n" if binary else "ä\n".encode())
    assert os.listdir(tmp_path) == ["x"]


# ---- JSON ----


class Part(Fields):
    text: files.Text


class Record(Fields):
    a: files.Text
    filled: files.FilledText = "x"
    name: files.Name = "x"
    flag: bool = True
    many: list[files.Text] = Field(default_factory=list, min_length=1)
    pair: Annotated[tuple[files.Text, int], files.FROM_LIST] = ("a", 1)
    parts: list[Part] = Field(default_factory=list, description='write each as {"text": "..."}')
    choice: Literal["x", "y"] | None = None
    told: Literal["x", "y"] | None = Field(None, description="write x or y, or leave it out")


def test_records_know_their_line_and_blank_lines_are_skipped(write):
    path = write("x.jsonl", '{"a": "1"}\n \t\n{"a": "2", "name": 7, "pair": ["b", 2], "other": null}\n')
    first, second = read_json_lines(path, Record)
    assert (first.line, first.fields.a, first.fields.name) == (1, "1", "x")
    assert (second.line, second.fields.name, second.fields.pair) == (3, "7", ("b", 2))
    assert [record.fields.get("a") for record in read_json_lines(path)] == ["1", "2"]


COMPLETE = "write one complete JSON object on each line"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"a": "1"', f"column 10: not JSON (Expecting ',' delimiter); {COMPLETE}"),
        ("plain text", f"column 1: not JSON (Expecting value); {COMPLETE}"),
        ("[1]", "line: a list where an object belongs; write it as {...}"),
    ],
)
@pytest.mark.parametrize("kind", [dict, Record])
def test_lines_that_are_no_records(write, refused, line, message, kind):
    path = write("x.jsonl", '{"a": "1"}\n' + line)
    with refused(path, f"2: {message}"):
        list(read_json_lines(path, kind))


@pytest.mark.parametrize("line", ["[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_lines_that_no_parser_takes(write, line):
    path = write("x.jsonl", line)
    with pytest.raises(ValueError, match=r"x\.jsonl:1: field line: not JSON \(.*write plain records"):
        list(read_json_lines(path))


@pytest.mark.parametrize(("fields", "message"), [
    ("{}", 'a: missing; add "a" to the record'),
    ('{"a": 1}', "a: a number where a text belongs; put it in quotes"),
    ('{"a": null}', "a: null where a text belongs; put it in quotes"),
    ('{"a": "xy\\ud800"}', "a: half a surrogate pair at character 2; remove the lone \\ud... escape"),
    ('{"a": "", "filled": " "}', "filled: it is empty; fill it in, or delete the record"),
    ('{"a": "", "name": true}', "name: true or false where a text belongs; put it in quotes"),
    ('{"a": "", "many": []}', "many: an empty list; add what is missing, or delete the record"),
    ('{"a": "", "many": ["b", 1]}', "many[1]: a number where a text belongs; put it in quotes"),
    ('{"a": "", "pair": ["b"]}',
     "pair: a list of 1, too short; add what is missing, or delete the record"),
    ('{"a": "", "pair": ["b", 1.0]}', "pair[1]: a number where a whole number belongs; write it as 3"),
    ('{"a": "", "parts": [3]}',
     'parts[0]: a number where an object belongs; write each as {"text": "..."}'),
    ('{"a": "", "parts": [{}]}', 'parts[0].text: missing; add "text" to the record'),
    ('{"a": "", "choice": "z"}', "choice: 'z' is unknown; write x or y"),
    ('{"a": "", "told": 3}', "told: 3 is unknown; write x or y, or leave it out"),
])  # fmt: skip
def test_fields_of_another_type(write, refused, fields, message):
    path = write("x.jsonl", fields)
    with refused(path, f"1: {message}"):
        list(read_json_lines(path, Record))


@pytest.mark.parametrize(("source", "message"), [
    ('{"a": 1, "b": 2, "a": 1}', "2: 'a': the key is given twice; keep one"),
    ('[{"a": {"b": 1}, "b": 2}, {"a": 1, "\\u0061": 2}]', "2: 'a': the key is given twice; keep one"),
    ('{"\\ud83d\\ude00": 1, "\\ud83d": 2}',
     "2: '\\ud83d': half a surrogate pair in the key; remove the lone \\ud... escape"),
])  # fmt: skip
def test_a_key_given_twice_or_not_utf_8_is_refused(refused, source, message):
    """The last one would replace the others: documents would be lost unnoticed."""
    with refused("x.json", message):
        parse_json(source, "x.json", line=2)


def test_elements_of_a_list_come_with_their_lines(write):
    file = write("a.json", '\n[ {"a": [1,\n2]}, "x",\n\n3\n]\n')
    elements = [(one.line, one.within, one.fields) for one in read_json_list(file)]
    assert elements == [(2, "[0].", {"a": [1, 2]}), (3, "[1].", "x"), (5, "[2].", 3)]
    assert files.read_json(file) == (file.read_text().rstrip("\n"), [{"a": [1, 2]}, "x", 3])
    assert list(read_json_list(write("b.json", "[]"))) == []
    with pytest.raises(DataError, match=r":3: field \[1\]: a text where an object belongs"):
        [one.checked(Record) for one in read_json_list(write("c.json", '[\n{"a": "b"},\n"x"]'))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[1,\n {"a": }]', r"a\.json:2: field column 8: not JSON \(Expecting value\); complete the file"),
        ('{"a": 1}', r"a\.json:1: .*an object where a list belongs; write it as \[\{\.\.\.\}, \.\.\.\]"),
        ("[" * 100_000, r"a\.json.*: not JSON"),
        ("[" + "9" * 5000 + "]", r"a\.json.*: not JSON \(Exceeds the limit"),
    ],
)
def test_lists_that_cannot_be_read(write, text, message):
    with pytest.raises(DataError, match=message):
        list(read_json_list(write("a.json", text)))


# ---- word vectors ----


GLOVE = "the 0.5 -1.25 2\nof 1e-2 0 3.0\n. . 4 5 6\na\u00a0b\x85\u2028 7 8 9\n\nof 10 11 12\n– 13 14 15.5"
WORDS = ("the", "of", ". .", "a\u00a0b\x85\u2028", "–")
VECTORS = [[0.5, -1.25, 2], [0.01, 0, 3], [4, 5, 6], [7, 8, 9], [13, 14, 15.5]]
REMEDY = "write a word and its values, with single spaces between them"


@pytest.mark.parametrize(
    "content",
    [
        GLOVE,  # a word with a space, one with Unicode's white space, a blank line, a word that comes again
        gzip.compress(GLOVE.encode()),
        f"6 3\n{GLOVE}",
        f"\ufeff6 3\r\n{GLOVE}".replace("\n", " \r\n").replace("\r \r", " \r"),
    ],
    ids=["plain", "compressed", "header", "header, spaces and returns at line ends"],
)
def test_word_vectors(write, content):
    words, vectors = read_word_vectors(write("v.txt.gz" if isinstance(content, bytes) else "v.txt", content))
    assert words == WORDS
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, np.array(VECTORS, dtype=np.float32))
    vectors[0] = 0  # not a view that may not be written to


@pytest.mark.parametrize(
    ("content", "words", "vectors"),
    [
        ("2 2\nat me 0.5 1\nto 2 3\n", ("at me", "to"), [[0.5, 1], [2, 3]]),  # a space after a header
        ("7 0.5\n8 2\n", ("7", "8"), [[0.5], [2]]),  # a number and a value are no header
    ],
)
def test_words_with_spaces_and_headers(write, content, words, vectors):
    result = read_word_vectors(write("v.txt", content))
    assert result[0] == words
    np.testing.assert_array_equal(result[1], np.array(vectors, dtype=np.float32))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *(
            (content, f"{line}: line: not a word and {size} finite numbers; {REMEDY}")
            for content, line, size in (
                ("a 1 2 3\nb 1 2\n", 2, 3),
                ("a 1 2 3\n\nb 0.1 0.2 0.3 0.4\n", 3, 3),
                ("a 1 2 3\nb -7.1e-05 0.2 0.3 0.4\n", 2, 3),
                ("a 1 2 3\n 0.1 0.2 0.3\n", 2, 3),  # no word
                ("a 1 2 3\nb  0.1 0.2 0.3\n", 2, 3),  # two spaces
                ("2 3\na 1 2\n", 2, 3),  # not as the header says
                ("alone\nb 1\n", 1, 1),
                *((f"a 1 2 3\nb 1 {value} 3\n", 2, 3) for value in ("x", "nan", "-inf", "1e39", "", "1,5")),
            )
        ),
        *((content, f"1: file: no word vectors; {REMEDY}") for content in ("0 50\n", "3 2\n\n \n")),
        ("3 2\na 1 2\nb 3 4\n",
         "1: header: it says 3 words, but there are 2; copy or download the file again"),
    ],
    ids=lambda value: repr(value[:20]),
)  # fmt: skip
def test_word_vectors_that_are_refused(write, refused, content, message):
    path = write("v.txt", content)
    with refused(path, message):
        read_word_vectors(path)


# ---- the cards of data sets ----


def test_every_data_set_has_a_card(card):
    data = Path(__file__).resolve().parents[2] / "data"
    names = {path.parent.name for path in data.glob("*/README.md")} - {"results", "models"}
    assert names == {
        "asnq", "ecb_plus", "docarc_ner", "fever_related", "hotpotqa", "multi_news", "news_clusters",
        "scisumm", "storyworld", "trecqa", "wikiqa",
    }  # fmt: skip
    for name in names:
        fields = card(name).fields
        assert fields.keys() == {"name", "licence", "shipped"}
        assert (fields["name"], fields["shipped"]) == (name, "yes" if name == "storyworld" else "no")
        assert fields["licence"]
        assert all(len(checksum) == 64 for checksum in card(name).checksums.values())
        assert "corpus = " in card(name).text


def test_the_card_of_storyworld_bounds_its_clusters(card):
    counts = card("storyworld").counts
    sizes = {len(cluster.documents) for cluster in open_corpus("storyworld", split="test", size=60)}
    assert min(sizes) == counts["documents of a cluster at least"]
    assert max(sizes) == counts["documents of a cluster at most"]


def test_the_card_of_the_news_clusters_has_the_real_checksums_and_counts(real_data, card):
    folder, news = real_data("news_clusters"), card("news_clusters")
    assert news.present(folder) == list(news.checksums)
    # By hand: 1148 + 1564 clusters and 2701 + 3731 documents, the automatic clusters being all for training.
    assert (news.counts["train clusters"], news.counts["train documents"]) == (2712, 6432)
    for split in ("train", "validation", "test"):
        sizes = [len(cluster.documents) for cluster in open_corpus(str(folder), split=split)]
        assert (len(sizes), sum(sizes)) == tuple(
            news.counts[f"{split} {what}"] for what in ("clusters", "documents")
        )


def test_the_card_of_the_claims_has_the_real_checksums_and_counts(real_data, card):
    folder, claims = real_data("fever_related"), card("fever_related")
    assert claims.present(folder) == list(claims.checksums)
    splits = {
        split: list(read_records("claims", folder, split)) for split in ("train", "dev", "test", "symmetric")
    }
    names = {split: f"fm2 {split} claims" for split in splits} | {"symmetric": "symmetric claims"}
    assert claims.counts == {names[split]: len(of_split) for split, of_split in splits.items()}
    assert claims.counts["fm2 train claims"] + claims.counts["fm2 dev claims"] == 1169  # as released
    supported = [sum(claim.label == "supported" for claim in of_split) for of_split in splits.values()]
    pages = [len({claim.group for claim in of_split}) for of_split in splits.values()]
    assert (supported, pages) == ([494, 102, 681, 356], [168, 41, 234, 178])


def test_a_folder_stays_where_a_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    (tmp_path / "kept").mkdir()
    rename = Path.rename

    def failing(path: Path, to: Path) -> Path:
        if path.suffix == ".unfinished":
            raise OSError(errno.ENOSPC, "full")
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="full"), files.replaced_folder(tmp_path / "kept"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
