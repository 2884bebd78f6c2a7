"""JSON files as a whole: which line an element starts at, and what is said of broken ones."""

from pathlib import Path

import pytest

from cdlm_lab.data.files import DataError, read_json, read_json_list


def written(folder: Path, text: str) -> Path:
    file = folder / "a.json"
    file.write_text(text)
    return file


def test_elements_come_with_their_lines(tmp_path: Path) -> None:
    file = written(tmp_path, '\n[ {"a": [1,\n2]}, "x",\n\n3\n]\n')
    found = [(record.line, item) for record, item in read_json_list(file)]
    assert found == [(2, {"a": [1, 2]}), (3, "x"), (5, 3)]
    assert read_json(file) == (file.read_text().rstrip("\n"), [{"a": [1, 2]}, "x", 3])


def test_no_elements(tmp_path: Path) -> None:
    assert list(read_json_list(written(tmp_path, "[]"))) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[1,\n {"a": }]', r"a\.json:2: field column 8: not JSON \(Expecting value\); complete the file"),
        ('{"a": 1}', r"a\.json:1?.*an object where a list belongs; write it as \[\{\.\.\.\}, \.\.\.\]"),
        ("[" * 100_000, r"a\.json.*: not JSON"),
        ("[" + "9" * 5000 + "]", r"a\.json.*: not JSON \(Exceeds the limit"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(read_json_list(written(tmp_path, text)))
