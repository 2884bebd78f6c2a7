"""JSON: what is no record and where, fields of the wrong type, whole files, and tables of cells."""

from typing import Annotated, Literal

import pytest
from pydantic import Field

from cdlm_lab.data.files import (
    FROM_LIST,
    DataError,
    Fields,
    FilledText,
    Name,
    Text,
    parse_json,
    read_json,
    read_json_lines,
    read_json_list,
    read_table,
)


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
    with refused(path, "3: a: '1' stands in line 1 already; give each record its own"):
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
