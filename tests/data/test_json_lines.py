"""JSON lines: what is no record, and where."""

import pytest

from cdlm_lab.data.files import parse_json, read_json_lines


def test_records_know_their_line_and_blank_lines_are_passed_over(write):
    path = write("x.jsonl", '{"a": "1"}\n \t\n{"a": "2", "b": null}\n')
    first, second = read_json_lines(path)
    assert (first.line, first.text("a")) == (1, "1")
    assert (second.line, second.text("a"), second.optional_text("b")) == (3, "2", None)
    assert second.optional_text("c") is None


@pytest.mark.parametrize(
    ("line", "field", "what", "remedy"),
    [
        (
            '{"a": "1"',
            "column 10",
            "not JSON (Expecting ',' delimiter)",
            "write one complete JSON object on each line",
        ),
        (
            "plain text",
            "column 1",
            "not JSON (Expecting value)",
            "write one complete JSON object on each line",
        ),
        ("[1]", "line", "a list where an object belongs", "write it as {...}"),
        ("null", "line", "null where an object belongs", "write it as {...}"),
        ("3", "line", "a number where an object belongs", "write it as {...}"),
    ],
)
def test_lines_that_are_no_records(write, complains, line, field, what, remedy):
    path = write("x.jsonl", '{"a": "1"}\n' + line)
    with complains(path, 2, field, what, remedy):
        list(read_json_lines(path))


@pytest.mark.parametrize("line", ["[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_lines_that_no_parser_takes(write, line):
    path = write("x.jsonl", line)
    with pytest.raises(ValueError, match=r"x\.jsonl:1: field line: not JSON \(.*write plain records"):
        list(read_json_lines(path))


@pytest.mark.parametrize(
    ("line", "what", "remedy"),
    [
        ("{}", "missing", 'add "a" to the record'),
        ('{"a": 1}', "a number where a text belongs", "put it in quotes"),
        ('{"a": 1.5}', "a number where a text belongs", "put it in quotes"),
        ('{"a": true}', "true or false where a text belongs", "put it in quotes"),
        ('{"a": {}}', "an object where a text belongs", "put it in quotes"),
        ('{"a": null}', "null where a text belongs", "put it in quotes"),
        ('{"a": "xy\\ud800"}', "half a surrogate pair at character 2", "remove the lone \\ud... escape"),
    ],
)
def test_fields_that_are_no_texts(write, complains, line, what, remedy):
    path = write("x.jsonl", line)
    with complains(path, 1, "a", what, remedy):
        next(read_json_lines(path)).text("a")


def test_fields_that_are_no_lists(write, complains):
    path = write("x.jsonl", '{"a": "text"}')
    with complains(path, 1, "a", "a text where a list belongs", "write it as [...]"):
        next(read_json_lines(path)).items("a")


TWICE = "keep one of the two"


@pytest.mark.parametrize(
    ("source", "line", "key"),
    [
        ('{"a": 1, "b": 2, "a": 1}', 1, "a"),
        ('[{"a": {"b": 1}, "b": 2},\n {"a": 1,\n\n "\\u0061": 2}]', 4, "a"),
        ('{"x": "{\\"b\\": 1}",\n "b": [{"c": 1}, {"c": 1}], "b":\n 2}', 2, "b"),
        ('{"": 0,\n"" : 1}', 2, ""),
    ],
)
def test_a_key_given_twice_is_refused(complains, source, line, key):
    """The last one would replace the others: documents would be lost, and nobody would know."""
    with complains("x.json", line, ascii(key), "the key is given twice", TWICE):
        parse_json(source, "x.json")


def test_a_key_given_twice_in_a_line(write, complains):
    path = write("x.jsonl", '{"a": "1"}\n\n{"a": {"\\u00fc": 1, "\\u00fc": 2}}\n')
    with complains(path, 3, "'\\xfc'", "the key is given twice", TWICE):
        list(read_json_lines(path))


def test_half_a_surrogate_pair_in_a_key(complains):
    source = '{"\\ud83d\\ude00": 1,\n"\\ud83d": 2}'
    with complains("x", 2, "'\\ud83d'", "half a surrogate pair in the key", "remove the lone \\ud... escape"):
        parse_json(source, "x")
