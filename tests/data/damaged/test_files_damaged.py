"""Damaged files: every reader reads them, or refuses them in one line that names the file; nothing else.

Each round writes a small valid input, damages it in a way that fits its format (truncation, wrong types,
duplicate keys and lines, other encodings, deep nesting, missing fields, huge numbers, odd names, pipes) and
reads it. The outcome is counted: `equal`, `counted` (less was read, and the reader reports it), `other`
(another text was read, as if a line was deleted, which no reader can notice) and `refused`. Any other error
than DataError is a failure.

CDLM_LAB_FUZZ_ROUNDS=233 makes 10,000 rounds over all readers, CDLM_LAB_FUZZ_SEED='conll test.conll/17'
repeats one.
"""

import gzip
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from valid_inputs import PAGE, POINTER, READERS, Chance, Files, Reader, folder_of

from cdlm_lab.data.files import DataError

ROUNDS = int(os.environ.get("CDLM_LAB_FUZZ_ROUNDS", "10"))  # of each reader
REPEATED = os.environ.get("CDLM_LAB_FUZZ_SEED", "")
OUTCOMES = ("equal", "counted", "other", "refused")

# Damage to the bytes of a file; each takes them and chance.

ODD = (
    "\0", "\x1b[2J", "\u2028", "\u0085", "\u200f", "\ufeff", "\u0661", "\U0001f525", " " * 3000, "\t",
    "\r", '"', "<", "|",
)  # fmt: skip
RAW = (b"\xff", b"\xe9", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80")
NUMBERS = ("9" * 5000, "9" * 25, "-1", "1e999", "0x1", "nan", "1.5", "", "\u0661\u0662")


def cut(data: bytes, rng: Chance) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def cut_front(data: bytes, rng: Chance) -> bytes:
    return data[rng.randrange(len(data) + 1) :]


def bits(data: bytes, rng: Chance) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 8])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def insert(data: bytes, rng: Chance) -> bytes:
    place = rng.randrange(len(data) + 1)
    piece = rng.choice([*RAW, *(text.encode() for text in ODD)])
    return data[:place] + piece + data[place:]


def encoded(data: bytes, rng: Chance) -> bytes:
    return data.decode("utf-8", "replace").encode(
        rng.choice(["utf-16", "utf-16-le", "latin-1", "utf-8-sig"]), "replace"
    )


def line_ends(data: bytes, rng: Chance) -> bytes:
    return data.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n", b" \n", "\u2028".encode(), b""]))


def in_lines(change: Callable[[list[bytes], Chance], None]) -> Callable[[bytes, Chance], bytes]:
    def _changed(data: bytes, rng: Chance) -> bytes:
        rows = data.split(b"\n")
        change(rows, rng)
        return b"\n".join(rows)

    return _changed


@in_lines
def line_moved(rows: list[bytes], rng: Chance) -> None:
    row = rows.pop(rng.randrange(len(rows)))
    for _ in range(rng.choice([0, 1, 2])):  # gone, elsewhere, twice
        rows.insert(rng.randrange(len(rows) + 1), row)


def somewhere(pattern: bytes, change: Callable[[bytes, Chance], bytes]) -> Callable[[bytes, Chance], bytes]:
    """Return a damage that changes one random match of a pattern."""

    def _changed(data: bytes, rng: Chance) -> bytes:
        if not (places := list(re.finditer(pattern, data))):
            return data
        chosen = rng.choice(places)
        return data[: chosen.start()] + change(chosen[0], rng) + data[chosen.end() :]

    return _changed


# A number that is another; a sign of a format, or a tag of XML, that is away, twice, or repeated without end.
number = somewhere(rb"\d+", lambda digits, rng: rng.choice(NUMBERS).encode())
bracket = somewhere(rb"[<>\[\]{}()|\"':=/#-]", lambda sign, rng: sign * rng.choice([0, 2, 3000]))
tag = somewhere(rb"<[^<>]*>", lambda tag, rng: tag * rng.choice([0, 2, 20_000]))


def replaced(data: bytes, rng: Chance) -> bytes:
    return rng.choice(
        [b"", b"\n \n", PAGE, POINTER, data * 2, b"\0" * 100, bytes(range(256)), gzip.compress(data)]
    )


WRONG = (
    None, True, -1, 0, 1.5, 10**30, float("inf"), "", " ", "x", "\ud800", "\0", "a\nb", [], {}, [[]],
    {"a": 1}, ["x", 1],
)  # fmt: skip
RAW_JSON = ("[" * 100_000, '{"a":' * 3000, "9" * 5000, "NaN", '"\\ud83d"', "'x'", "[1,]", '{"a": 1, "a": 2}')


def in_json(data: bytes, rng: Chance) -> bytes:
    """Change a value of a JSON file or of one of its lines: of another type, removed, twice, or invalid."""
    text = data.decode("utf-8", "replace")
    rows = [text]
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        rows = text.split("\n")
    chosen = rng.randrange(len(rows))
    try:
        value = json.loads(rows[chosen])
    except (ValueError, RecursionError):
        return data
    rows[chosen] = _changed_json(value, rng)
    return "\n".join(rows).encode("utf-8", "surrogatepass")


def _changed_json(value: Any, rng: Chance) -> str:
    holder: Any = [value]
    inside, key = rng.choice(list(_places(holder)))
    what = rng.randrange(5)
    if what == 0:
        inside[key] = rng.choice(WRONG)
    elif what == 1 and inside is not holder:
        del inside[key]
    elif what == 2 and isinstance(inside, list) and inside is not holder:
        inside.insert(0, inside[key])
    elif what == 2 and isinstance(inside, dict):
        inside[rng.choice(["", "id", "\ud800", "x" * 1000])] = inside.pop(key)
    elif what == 3 and isinstance(inside, dict):  # the same key twice
        mark, again = f"@{rng.random()}", json.dumps(inside[key])
        inside[key] = mark
        return json.dumps(holder[0]).replace(json.dumps(mark), f"{again}, {json.dumps(key)}: {again}")
    else:
        mark = f"@{rng.random()}"
        inside[key] = mark
        return json.dumps(holder[0]).replace(json.dumps(mark), rng.choice(RAW_JSON))
    return json.dumps(holder[0])


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


OF_BYTES = (
    cut, cut, cut_front, bits, insert, insert, encoded, line_ends, line_moved, line_moved, number, bracket,
    replaced, replaced, tag, tag, in_json, in_json, in_json,
)  # fmt: skip


# Damage to the names of files; each takes a file and chance.


def name(path: Path, rng: Chance) -> None:
    raw = os.fsencode(path.name)
    other = rng.choice(
        [b"\xff" + raw, raw.upper(), b"." + raw, raw + b".gz", raw + b"~", b"x" + raw, raw + b".html"]
    )
    path.rename(path.with_name(os.fsdecode(other)))


def no_file(path: Path, rng: Chance) -> None:
    path.unlink()
    what = rng.choice(["nothing", "folder", "pipe", "loop", "device"])
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what in ("loop", "device"):
        path.symlink_to(path if what == "loop" else "/dev/zero")


OF_NAMES = (name, no_file)


def damaged(folder: Path, files: Files, rng: Chance) -> list[str]:
    """Damage one of the files in one or two ways; return file and kinds of damage, for messages."""
    chosen = rng.choice(sorted(files))
    path = folder / chosen
    if rng.random() < 0.12:
        changes = [rng.choice(OF_NAMES)]
        changes[0](path, rng)
    else:
        data, changes = files[chosen], rng.choices(OF_BYTES, k=rng.choice([1, 1, 1, 2]))
        for change in changes:
            data = change(data, rng) if data else data
        path.write_bytes(data)
    return [chosen, *(change.__name__ for change in changes)]


def outcome(reader: Reader, folder: Path, seed: str) -> str:
    """Run one round and return its outcome, one of OUTCOMES."""
    rng = random.Random(seed)
    files = reader.files(rng)
    expected, before = reader.read(folder_of(folder, files))
    again = f"{' '.join(damaged(folder, files, rng))}; repeat with CDLM_LAB_FUZZ_SEED={seed}"
    try:
        content, losses = reader.read(folder)
    except DataError as error:
        refused = error
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # panics of Rust are no Exception
        raise AssertionError(f"{again}: {type(error).__name__}: {str(error)[:300]}") from error
    else:
        return "counted" if losses > before else "equal" if content == expected else "other"
    assert str(refused).isprintable(), f"{again}: not one plain line: {str(refused)!r}"
    assert refused.path.is_relative_to(folder), f"{again}: no path in {refused}"
    return "refused"


@pytest.mark.parametrize("reader", READERS)
def test_damaged_files(reader: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seeds = [f"{reader}/{round}" for round in range(ROUNDS)]
    counts: Counter[str] = Counter()
    for seed in [REPEATED] if REPEATED.startswith(f"{reader}/") else seeds:
        folder = tmp_path / seed.rpartition("/")[2]
        folder.mkdir()
        counts[outcome(READERS[reader], folder, seed)] += 1
    with capsys.disabled():
        print(f"\n{reader}: {', '.join(f'{counts[one]} {one}' for one in OUTCOMES)}", end="")
    assert counts.keys() <= set(OUTCOMES)


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
