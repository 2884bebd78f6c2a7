"""Files: checked opening, JSON and tables, cards of data sets, and word vectors; every message."""

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
from cdlm_lab.data.claims import read_claims
from cdlm_lab.data.clusters import open_corpus
from cdlm_lab.data.files import (
    FROM_LIST,
    Card,
    DataError,
    Fields,
    FilledText,
    Name,
    Text,
    check_files,
    parse_json,
    read_card,
    read_cards,
    read_json,
    read_json_lines,
    read_json_list,
    read_table,
    read_word_vectors,
)


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
        (1, "one\u2028still one\u0085and\x0bon"), (2, ""), (3, "  three  "), (4, "last"),
    ]  # fmt: skip
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


class Part(Fields):
    text: Text


class Record(Fields):
    a: Text
    filled: FilledText = "x"
    name: Name = "x"
    flag: bool = True
    many: list[Text] = Field(default_factory=list, min_length=1)
    pair: Annotated[tuple[Text, int], FROM_LIST] = ("a", 1)
    parts: list[Part] = Field(default_factory=list, description='write each as {"text": "..."}')
    choice: Literal["x", "y"] | None = None
    told: Literal["x", "y"] | None = Field(None, description="write x or y, or leave it out")


def test_records_know_their_line_and_blank_lines_are_skipped(write):
    path = write("x.jsonl", '{"a": "1"}\n \t\n{"a": "2", "name": 7, "pair": ["b", 2], "other": null}\n')
    first, second = read_json_lines(path, Record)
    assert (first.line, first.fields.a, first.fields.name) == (1, "1", "x")
    assert (second.line, second.fields.name, second.fields.pair) == (3, "7", ("b", 2))
    assert [record.fields.get("a") for record in read_json_lines(path)] == ["1", "2"]


def test_a_field_may_have_to_be_unique(write, refused):
    path = write("x.jsonl", [{"a": "1"}, {"a": "2"}, {"a": "1"}])
    assert len(list(read_json_lines(path, Record))) == 3
    with refused(path, "3: a: '1' stands in line 1 already; give each record its own a"):
        list(read_json_lines(path, Record, unique="a"))


COMPLETE = "write one complete JSON object on each line"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"a": "1"', f"column 10: not JSON (Expecting ',' delimiter); {COMPLETE}"),
        ("plain text", f"column 1: not JSON (Expecting value); {COMPLETE}"),
        ("[1]", "line: a list where an object belongs; write it as {...}"),
        ("null", "line: null where an object belongs; write it as {...}"),
        ("3", "line: a number where an object belongs; write it as {...}"),
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


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("{}", 'a: missing; add "a" to the record'),
        ('{"a": 1}', "a: a number where a text belongs; put it in quotes"),
        ('{"a": 1.5}', "a: a number where a text belongs; put it in quotes"),
        ('{"a": true}', "a: true or false where a text belongs; put it in quotes"),
        ('{"a": {}}', "a: an object where a text belongs; put it in quotes"),
        ('{"a": null}', "a: null where a text belongs; put it in quotes"),
        ('{"a": "xy\\ud800"}', "a: half a surrogate pair at character 2; remove the lone \\ud... escape"),
        ('{"a": "", "filled": " "}', "filled: it is empty; fill it in, or delete the record"),
        ('{"a": "", "name": true}', "name: true or false where a text belongs; put it in quotes"),
        ('{"a": "", "flag": 1}', "flag: a number where true or false belongs; write it without quotes"),
        ('{"a": "", "many": "b"}', "many: a text where a list belongs; write it as [...]"),
        ('{"a": "", "many": []}', "many: an empty list; add what is missing, or delete the record"),
        ('{"a": "", "many": ["b", 1]}', "many[1]: a number where a text belongs; put it in quotes"),
        ('{"a": "", "pair": ["b"]}',
         "pair: a list of 1, too short; add what is missing, or delete the record"),
        ('{"a": "", "pair": ["b", 1, 2]}', "pair: a list of 3, too long; take out what is too much"),
        ('{"a": "", "pair": ["b", 1.0]}', "pair[1]: a number where a whole number belongs; write it as 3"),
        ('{"a": "", "pair": "b"}', "pair: a text where a list belongs; write it as [...]"),
        ('{"a": "", "parts": {}}', "parts: an object where a list belongs; write it as [...]"),
        ('{"a": "", "parts": [3]}',
         'parts[0]: a number where an object belongs; write each as {"text": "..."}'),
        ('{"a": "", "parts": [{}]}', 'parts[0].text: missing; add "text" to the record'),
        ('{"a": "", "parts": [{"text": 1}]}',
         "parts[0].text: a number where a text belongs; put it in quotes"),
        ('{"a": "", "choice": "z"}', "choice: 'z' is unknown; write x or y"),
        ('{"a": "", "told": 3}', "told: 3 is unknown; write x or y, or leave it out"),
    ],
)  # fmt: skip
def test_fields_of_another_type(write, refused, fields, message):
    path = write("x.jsonl", fields)
    with refused(path, f"1: {message}"):
        list(read_json_lines(path, Record))


@pytest.mark.parametrize(
    ("source", "line", "key"),
    [
        ('{"a": 1, "b": 2, "a": 1}', 1, "a"),
        ('[{"a": {"b": 1}, "b": 2},\n {"a": 1,\n\n "\\u0061": 2}]', 4, "a"),
        ('{"x": "{\\"b\\": 1}",\n "b": [{"c": 1}, {"c": 1}], "b":\n 2}', 2, "b"),
        ('{"": 0,\n"" : 1}', 2, ""),
    ],
)
def test_a_key_given_twice_is_refused(refused, source, line, key):
    """The last one would replace the others: documents would be lost, and nobody would know."""
    with refused("x.json", f"{line}: {key!a}: the key is given twice; keep one of the two"):
        parse_json(source, "x.json")


def test_faulty_keys_in_lines(write, refused):
    path = write("x.jsonl", '{"a": "1"}\n\n{"a": {"\\u00fc": 1, "\\u00fc": 2}}\n')
    with refused(path, "3: '\\xfc': the key is given twice; keep one of the two"):
        list(read_json_lines(path))
    what, remedy = "half a surrogate pair in the key", "remove the lone \\ud... escape"
    with refused("x", f"2: '\\ud83d': {what}; {remedy}"):
        parse_json('{"\\ud83d\\ude00": 1,\n"\\ud83d": 2}', "x")


def test_elements_of_a_list_come_with_their_lines(write):
    file = write("a.json", '\n[ {"a": [1,\n2]}, "x",\n\n3\n]\n')
    found = [(one.line, one.within, one.fields) for one in read_json_list(file)]
    assert found == [(2, "[0].", {"a": [1, 2]}), (3, "[1].", "x"), (5, "[2].", 3)]
    assert read_json(file) == (file.read_text().rstrip("\n"), [{"a": [1, 2]}, "x", 3])
    assert list(read_json_list(write("b.json", "[]"))) == []
    with pytest.raises(DataError, match=r":3: field \[1\]: a text where an object belongs"):
        [one.checked(Record) for one in read_json_list(write("c.json", '[\n{"a": "b"},\n"x"]'))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[1,\n {"a": }]', r"a\.json:2: field column 8: not JSON \(Expecting value\); complete the file"),
        ('{"a": 1}', r"a\.json:1?.*an object where a list belongs; write it as \[\{\.\.\.\}, \.\.\.\]"),
        ("[" * 100_000, r"a\.json.*: not JSON"),
        ("[" + "9" * 5000 + "]", r"a\.json.*: not JSON \(Exceeds the limit"),
    ],
)
def test_lists_that_cannot_be_read(write, text, message):
    with pytest.raises(DataError, match=message):
        list(read_json_list(write("a.json", text)))


def test_tables(write, refused):
    path = write("a.csv", 'a,"b"\n\n 1 ,2\n3\n')
    rows = read_table(path, columns=2, row="two cells", header=["a", "b"], separator=",")
    assert next(rows) == (3, ["1", "2"])
    with refused(path, "4: row: 1 columns instead of 2; write two cells"):
        next(rows)
    with refused(path, "1: header: 'a,\"b\"' is not the header; begin with c, d, commas between"):
        list(read_table(path, columns=2, row="two cells", header=["c", "d"], separator=","))


DATA = Path(__file__).resolve().parents[2] / "data"
SHA = hashlib.sha256(b"abc").hexdigest()
GOOD = f"""---
name: toy
licence: CC BY 4.0: see the site
shipped: no

count train clusters: 12
sha256 a.txt: {SHA}
---
# Toy

Some prose.
---
count: none
"""


def test_a_card(write):
    assert read_card(write("toy/README.md", GOOD)) == Card(
        name="toy",
        licence="CC BY 4.0: see the site",
        shipped=False,
        counts={"train clusters": 12},
        checksums={"a.txt": SHA},
        text="# Toy\n\nSome prose.\n---\ncount: none",
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: toy", "name", "2: name: not `key: value`; write a key, a colon and a value"),
        ("name: toy", ": toy", "2: key: not `key: value`; write a key, a colon and a value"),
        ("name: toy\n", "", "1: name: missing; add a line `name: ...` to the block"),
        (
            "licence",
            "license",
            "3: license: unknown key; use name, licence, shipped, count ... or sha256 ...",
        ),
        ("shipped: no", "name: no", "4: name: stands in line 2 already; keep one of the two lines"),
        ("shipped: no", "shipped: some", "1: shipped: 'some' is neither yes nor no; write yes or no"),
        (
            "12",
            "1,200",
            "6: count train clusters: '1,200' is not a whole number in plain digits; write a whole "
            "number in plain digits",
        ),
        (
            SHA,
            SHA[:-1],
            f"7: sha256 a.txt: '{SHA[:-1]}' is not 64 hexadecimal digits; write 64 hexadecimal digits",
        ),
    ],
)
def test_malformed_line(write, refused, old, new, message):
    path = write("README.md", GOOD.replace(old, new, 1))
    with refused(path, message):
        read_card(path)


@pytest.mark.parametrize("content", ["# Toy\n", "---\nname: toy\n", "\n" + GOOD])
def test_a_card_without_its_block(write, refused, content):
    path = write("README.md", content)
    remedy = "begin the card with --- and end the block with --- on a line of its own"
    with refused(path, f"1: block: no block between two lines of ---; {remedy}"):
        read_card(path)


def test_files_are_held_against_their_checksums(write, tmp_path, refused):
    card = read_card(write("README.md", GOOD))
    assert check_files(card, tmp_path) == []
    path = write("a.txt", "abc")
    assert check_files(card, tmp_path) == ["a.txt"]
    write("a.txt", "abd")
    what = f"{hashlib.sha256(b'abd').hexdigest()} is not {SHA} as on the card of toy"
    with refused(path, f"1: sha256: {what}; copy or download the file again"):
        check_files(card, tmp_path)


def test_recorded_runs_have_no_card(write, tmp_path):
    write("data/toy/README.md", GOOD)
    write("data/results/README.md", "# Recorded runs\n")
    assert [card.name for card in read_cards(tmp_path / "data")] == ["toy"]


def test_the_projects_own_cards():
    cards = read_cards(DATA)
    assert {card.name for card in cards} == {
        "asnq", "ecb_plus", "docarc_ner", "fever_related", "hotpotqa", "multi_news", "news_clusters",
        "scisumm", "storyworld", "trecqa", "wikiqa",
    }  # fmt: skip
    for card in cards:
        assert read_card(DATA / card.name / "README.md") == card  # named after its folder
        assert "corpus = " in card.text
        assert card.shipped == (card.name == "storyworld")


def test_the_card_of_storyworld_bounds_its_clusters():
    counts = read_card(DATA / "storyworld" / "README.md").counts
    sizes = {len(cluster.documents) for cluster in open_corpus("storyworld", split="test", size=60)}
    assert min(sizes) == counts["documents of a cluster at least"]
    assert max(sizes) == counts["documents of a cluster at most"]


def test_the_card_of_the_news_clusters_has_the_real_checksums_and_counts(real_data):
    folder = real_data("news_clusters")
    card = read_card(DATA / "news_clusters" / "README.md")
    assert check_files(card, folder) == list(card.checksums)
    # By hand: 1148 + 1564 clusters and 2701 + 3731 documents, the automatic clusters being all for training.
    assert (card.counts["train clusters"], card.counts["train documents"]) == (2712, 6432)
    for split in ("train", "validation", "test"):
        sizes = [len(cluster.documents) for cluster in open_corpus(str(folder), split=split)]
        assert (len(sizes), sum(sizes)) == (
            card.counts[f"{split} clusters"],
            card.counts[f"{split} documents"],
        )


def test_the_card_of_the_claims_has_the_real_checksums_and_counts(real_data):
    folder = real_data("fever_related")
    card = read_card(DATA / "fever_related" / "README.md")
    assert check_files(card, folder) == list(card.checksums)
    found = {split: read_claims(folder, split) for split in ("train", "dev", "test", "symmetric")}
    names = {"symmetric": "symmetric claims"} | {
        split: f"fm2 {split} claims" for split in ("train", "dev", "test")
    }
    assert card.counts == {names[split]: len(claims) for split, claims in found.items()}
    assert card.counts["fm2 train claims"] + card.counts["fm2 dev claims"] == 1169  # as released
    said = [sum(claim.label == "supported" for claim in claims) for claims in found.values()]
    pages = [len({claim.group for claim in claims}) for claims in found.values()]
    assert (said, pages) == ([494, 102, 681, 356], [168, 41, 234, 178])


GLOVE = "the 0.5 -1.25 2\nof 1e-2 0 3.0\n. . 4 5 6\na\u00a0b\x85\u2028 7 8 9\n\nof 10 11 12\n– 13 14 15.5"
WORDS = ("the", "of", ". .", "a\u00a0b\x85\u2028", "–")
VECTORS = [[0.5, -1.25, 2], [0.01, 0, 3], [4, 5, 6], [7, 8, 9], [13, 14, 15.5]]
REMEDY = "write a word and its values, with single spaces between them"


def test_glove(write):
    """A word with a space, one with Unicode's white space, a blank line, a word that comes again."""
    words, vectors = read_word_vectors(write("glove.txt", GLOVE))
    assert words == WORDS
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, np.array(VECTORS, dtype=np.float32))
    vectors[0] = 0  # not a view that may not be written to


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(GLOVE.encode()),
        f"6 3\n{GLOVE}",
        f"\ufeff6 3\r\n{GLOVE}".replace("\n", " \r\n").replace("\r \r", " \r"),
    ],
    ids=["compressed", "header", "header, spaces and returns at line ends"],
)
def test_other_forms(write, content):
    name = "glove.txt.gz" if isinstance(content, bytes) else "vectors.txt"
    words, vectors = read_word_vectors(write(name, content))
    assert words == WORDS
    np.testing.assert_array_equal(vectors, np.array(VECTORS, dtype=np.float32))


def test_the_first_word_of_a_file_with_a_header_may_have_a_space(write):
    words, vectors = read_word_vectors(write("v.txt", "2 2\nat me 0.5 1\nto 2 3\n"))
    assert words == ("at me", "to")
    assert vectors.tolist() == [[0.5, 1], [2, 3]]


def test_a_number_and_a_value_are_no_header(write):
    words, vectors = read_word_vectors(write("v.txt", "7 0.5\n8 2\n"))
    assert words == ("7", "8")
    assert vectors.tolist() == [[0.5], [2]]


@pytest.mark.parametrize(("limit", "count"), [(0, 5), (1, 1), (3, 3), (5, 5), (9, 5)])
def test_limit(write, limit, count):
    words, vectors = read_word_vectors(write("glove.txt", GLOVE), limit=limit)
    assert words == WORDS[:count]
    assert vectors.shape == (count, 3)


def test_limit_counts_words_and_not_lines_and_stops_there(write):
    path = write("v.txt", "a 1 2\na 3 4\nb 5 6\nbroken\n")
    words, vectors = read_word_vectors(path, limit=2)
    assert words == ("a", "b")
    assert vectors.tolist() == [[1, 2], [5, 6]]


def test_limit_below_zero(write):
    with pytest.raises(ValueError, match=r"^limit is -1; it must be a number of words, or 0 for all$"):
        read_word_vectors(write("glove.txt", GLOVE), limit=-1)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a 1 2 3\nb 1 2\n", 2),
        ("a 1 2 3\n\nb 0.1 0.2 0.3 0.4\n", 3),
        ("a 1 2 3\nb -7.1e-05 0.2 0.3 0.4\n", 2),
        ("a 1 2 3\n 0.1 0.2 0.3\n", 2),
        ("a 1 2 3\nb  0.1 0.2 0.3\n", 2),
        ("a 1 2 3\nb\t0.1\t0.2\t0.3\n", 2),
        ("2 3\na 1 2\n", 2),
    ],
    ids=["fewer", "more", "more and tiny", "no word", "two spaces", "tabs", "not as the header says"],
)
def test_lines_of_another_size(write, refused, content, line):
    path = write("v.txt", content)
    with refused(path, f"{line}: line: not a word and a vector of size 3; {REMEDY}"):
        read_word_vectors(path)


def test_a_first_line_without_values(write, refused):
    path = write("v.txt", "alone\nb 1\n")
    with refused(path, f"1: line: not a word and a vector of size 1; {REMEDY}"):
        read_word_vectors(path)


@pytest.mark.parametrize("value", ["x", "nan", "-inf", "1e39", "", "1,5"])
def test_values_that_are_no_numbers(write, refused, value):
    path = write("v.txt", f"a 1 2 3\nb 1 {value} 3\n")
    with refused(path, f"2: value 2: {value!r} is no finite number; correct it, or leave the word out"):
        read_word_vectors(path)


@pytest.mark.parametrize("content", ["0 50\n", "3 2\n\n \n"])
def test_no_vectors(write, refused, content):
    path = write("v.txt", content)
    with refused(path, f"1: file: no word vectors; {REMEDY}"):
        read_word_vectors(path)


@pytest.mark.parametrize("header", ["1 99999999999999999999", f"{'9' * 5000} 2"])
def test_a_header_that_no_file_has(write, refused, header):
    path = write("v.txt", f"{header}\na 1 2\n")
    what = f"{header[:40]!r} is no number of words and of values"
    with refused(path, f"1: header: {what}; {REMEDY}"):
        read_word_vectors(path)


def test_a_file_that_was_cut_off_has_fewer_words_than_its_header_says(write, refused):
    path = write("v.txt", "3 2\na 1 2\nb 3 4\n")
    what = "it says 3 words, but there are 2"
    with refused(path, f"1: header: {what}; copy or download the file again"):
        read_word_vectors(path)
    assert read_word_vectors(path, limit=2)[0] == ("a", "b")
