"""Damaged files: every reader reads them, or refuses them in one line that names the file; nothing else.

Each round writes a small valid input, damages a file of it (cut, odd bytes, lines moved, other numbers and
signs, values of JSON of other types, other contents) and reads it; any other error than DataError is a
failure. CDLM_LAB_FUZZ_ROUNDS makes more rounds of each reader.
"""

import gzip
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from valid_inputs import PAGE, POINTER, READERS, Chance, folder_of

from cdlm_lab.data.files import DataError

ROUNDS = int(os.environ.get("CDLM_LAB_FUZZ_ROUNDS", "10"))
ODD = [
    b"\xff",
    b"\xe9",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\0",
    b"\t",
    b"\r",
    b'"',
    b"<",
    b"|",
    b" " * 3000,
]
ODD += [one.encode() for one in ("\x1b[2J", "\u2028", "\u0085", "\u200f", "\ufeff", "\u0661", "\U0001f525")]
NUMBERS = ("9" * 5000, "9" * 25, "-1", "1e999", "0x1", "nan", "1.5", "", "\u0661\u0662")
WRONG = (
    None,
    True,
    -1,
    1.5,
    10**30,
    float("inf"),
    "",
    " ",
    "x",
    "\ud800",
    "\0",
    "a\nb",
    [],
    {},
    [[]],
    {"a": 1},
)
RAW_JSON = ("[" * 100_000, '{"a":' * 3000, "9" * 5000, "NaN", '"\\ud83d"', "'x'", "[1,]", '{"a": 1, "a": 2}')


# Damage to the bytes of a file; each takes them and chance.


def cut(data: bytes, rng: Chance) -> bytes:
    place = rng.randrange(len(data) + 1)
    return rng.choice([data[:place], data[place:]])


def insert(data: bytes, rng: Chance) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.choice(ODD) + data[place:]


def line_moved(data: bytes, rng: Chance) -> bytes:
    rows = data.split(b"\n")
    row = rows.pop(rng.randrange(len(rows)))
    for _ in range(rng.choice([0, 1, 2])):  # gone, elsewhere, twice
        rows.insert(rng.randrange(len(rows) + 1), row)
    return b"\n".join(rows)


def sign(data: bytes, rng: Chance) -> bytes:
    """A number that is another; a sign of a format that is away, twice, or repeated without end."""
    if not (places := list(re.finditer(rb"\d+|<[^<>]*>|[<>\[\]{}()|\"':=/#-]", data))):
        return data
    one = rng.choice(places)
    other = rng.choice(NUMBERS).encode() if one[0].isdigit() else one[0] * rng.choice([0, 2, 3000])
    return data[: one.start()] + other + data[one.end() :]


def replaced(data: bytes, rng: Chance) -> bytes:
    return rng.choice(
        [b"", b"\n \n", PAGE, POINTER, data * 2, b"\0" * 100, bytes(range(256)), gzip.compress(data)]
    )


def in_json(data: bytes, rng: Chance) -> bytes:
    """Change a value of a JSON file or of one of its lines: of another type, removed, twice, or invalid."""
    rows = [data] if data.lstrip().startswith(b"[") else data.split(b"\n")
    chosen = rng.randrange(len(rows))
    try:
        holder: Any = [json.loads(rows[chosen])]
    except (ValueError, RecursionError):
        return data
    inside, key = rng.choice(list(_places(holder)))
    mark, again = f"@{rng.random()}", json.dumps(inside[key])
    raw = rng.choice([json.dumps(rng.choice(WRONG)), rng.choice(RAW_JSON)])
    if isinstance(inside, dict) and rng.random() < 0.3:  # the same key twice
        raw = f"{again}, {json.dumps(key)}: {again}"
    if inside is not holder and rng.random() < 0.3:
        del inside[key]
    else:
        inside[key] = mark
    text = json.dumps(holder[0] if holder else None).replace(json.dumps(mark), raw)
    return b"\n".join([*rows[:chosen], text.encode("utf-8", "surrogatepass"), *rows[chosen + 1 :]])


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


DAMAGE = (cut, insert, line_moved, sign, sign, replaced, in_json, in_json)


@pytest.mark.parametrize("name", READERS)
def test_damaged_files(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    for number in range(ROUNDS):
        rng = random.Random(f"{name}/{number}")
        files = reader.files(rng)
        folder, chosen = folder_of(tmp_path / str(number), files), rng.choice(sorted(files))
        reader.read(folder)
        damage = rng.choice(DAMAGE)
        (folder / chosen).write_bytes(damage(files[chosen], rng))
        refused: list[DataError] = []
        try:
            reader.read(folder)
        except DataError as error:
            refused.append(error)
        except Exception as error:
            error.add_note(f"round {number}, {damage.__name__} of {chosen}")
            raise
        assert all(str(one).isprintable() for one in refused), refused
        assert all(one.path.is_relative_to(folder) for one in refused), refused


SPACES = """
import sys
from pathlib import Path
from cdlm_lab.data.convert.conll import read_conll
from cdlm_lab.data.files import parse_json
from cdlm_lab.data.clusters import read_cluster_rows
from cdlm_lab.data.records import PassedOver
from cdlm_lab.data.convert.scisumm import line_citances
from cdlm_lab.data.convert.scisumm import parse_paper

spaces, file = " " * 2_000_000, Path(sys.argv[1])
with open(file, "w") as opened:
    opened.write(f"a{spaces}b NEWLINE_CHAR{spaces}c ||||| d\\n")
assert len(list(read_cluster_rows(file, 'validation'))) == 1
fields = f"Citing Article: a{spaces}b | Citation Offset: 1 | Citation Text: c |{spaces}| Reference Offset: 2"
assert len(list(line_citances("x", f"Citance Number: 1 | {fields}"))) == 1
assert parse_paper("x", f"<S sid={spaces}x>text</S><S sid{spaces}>more</S>").numbers == (None, None)
for cell in ("(12)" * 100_000 + "!", "(" + "1" * 1_000_000 + "!", "1" * 1_000_000 + "!"):
    with open(file, "w") as opened:
        opened.write(f"#begin document (a); part 000\\na\\t0\\t0\\tword\\t{cell}\\n#end document\\n")
    try:
        list(read_conll(("a", [file]), passed_over=PassedOver()))
    except ValueError as error:
        assert "no mention" in str(error)
try:
    parse_json('{"a": "' + '\\\\"' * 1_000_000 + '", "b"' + spaces + ': 1, "a"' + spaces + ': 2}', "x")
except ValueError as error:
    assert "the key is given twice" in str(error)
"""


def test_time_grows_with_the_length_of_a_text_and_not_with_its_square(tmp_path: Path) -> None:
    """This takes a tenth of a second; patterns that compare all pairs of spaces would take an hour."""
    program = [sys.executable, "-c", SPACES, str(tmp_path / "train.txt.src")]
    subprocess.run(program, check=True, timeout=600)
