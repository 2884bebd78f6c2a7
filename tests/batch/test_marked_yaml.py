"""Grids and files of parameters that are damaged, at random but the same each time: they are read, or refused
in one line that begins with file and line. CDLM_LAB_FUZZ_ROUNDS=20000 in the environment tries so many."""

import os
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from tiny_grid import plan_of, write_notebook

from cdlm_lab.batch.engine import Place, write_jobs
from cdlm_lab.batch.grid import read_grid
from cdlm_lab.batch.marked_yaml import GridError

TRIALS = int(os.environ.get("CDLM_LAB_FUZZ_ROUNDS", "100"))
GRID = """\
runs: runs/x
seeds: [0, 1]
variables: {data: corpora, n: 7}
defaults: {minutes: 5, cores: 2}
tasks:
  first: &first
    notebook: tiny.ipynb
    files: [p.yaml]
    parameters: &given {rate: 0.5, maybe: [1, {deep: "{data}/x"}]}
    axes: {name: [x, y z]}
    resources: {gpus: 0, memory_gb: 1.5, retries: 2}
    needs: {corpus: "{data}/a", model: "hub:a/b"}
  second:
    <<: *first
    parameters: {<<: *given, reads: "{first:name=x} and {{literally}}"}
    axes: {size: {small: {steps: 1}, large: {steps: "{n}"}}}
    seeds: [1]
  third: {notebook: tiny.ipynb, after: [first, second], seeds: false}
"""
PARAMETERS = "rate: 0.25  # of something\nmaybe: {a: [1, 2], b: null}\ntrouble: ''\n"
# In place of a value, a key, or anywhere.
SCALARS = r"""
012 1:30 1e-4 .5e3 1_000 0x_ 0o9 .inf -.nan 1.0e999 99999999999999999999 2024-01-01 2024-13-45 yes ~ null
true -0 = << '' "" "\0" "\ud800" "\U99999999" "\x85" é 😀 {data} {nobody} {{ } {first} {first:name=*}
{third:x=1} {first:seed} ../.. / a/b !unknown !!bool !!int !!float !!null !!binary !!set !!timestamp
!!python/name:os.system ! & * &x *x *first *given <<:*first [] {} [[]] {a:1} - ? : , | > # % @ `
""".split()  # noqa: SIM905
PIECES = [*SCALARS, "\n", "\n\n", "  ", "\t", "\r\n", "\ufeff", "\0", "\x01", "---\n", "...\n"]
PIECES += ["%YAML 1.1\n---\n", "[" * 300, "{a: " * 200, "? " * 200, "- " * 300, "&a [*a]", "9" * 5000]
PIECES += ["a" * 5000, "\n  <<: [*first, *first]\n"]


def damaged(text: str, chance: random.Random) -> bytes:
    """A text with a few faults."""
    for _ in range(chance.choice([1, 1, 1, 2, 3, 5])):
        lines = text.split("\n")
        place = chance.randrange(len(lines))
        match chance.randrange(8):
            case 0:
                text = text[: chance.randrange(len(text) + 1)]
            case 1:
                at = chance.randrange(len(text) + 1)
                text = text[:at] + chance.choice(PIECES) + text[at:]
            case 2:  # a word becomes another
                words = list(re.finditer(r"[\w.{}/]+", text))
                if words:
                    word = chance.choice(words)
                    text = text[: word.start()] + chance.choice(SCALARS) + text[word.end() :]
            case 3:
                text = "\n".join([*lines[:place], lines[place], *lines[place:]])
            case 4:
                text = "\n".join(lines[:place] + lines[place + 1 :])
            case 5:
                lines[place] = " " * chance.randrange(5) + lines[place].lstrip()
                text = "\n".join(lines)
            case 6:
                other = chance.randrange(len(lines))
                lines[place], lines[other] = lines[other], lines[place]
                text = "\n".join(lines)
            case 7:
                at = chance.randrange(len(text) + 1)
                text = text[:at] + text[at + chance.randrange(1, 20) :]
    raw = bytearray(text.encode("utf-8"))
    if raw and chance.random() < 0.1:
        raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    return text.encode("utf-16") if chance.random() < 0.01 else bytes(raw)


def outcome(place: Path) -> str:
    """How a grid ends that is read, planned and written down for Snakemake."""
    try:
        steps = plan_of(Path("grid.yaml"))
        grid = read_grid("grid.yaml")
        if grid.runs.resolve().is_relative_to(place):
            write_jobs(grid, steps, place=Place(), gpus=())
    except OSError as error:  # a name too long; the command tells it in one line
        return str(error)
    except GridError as error:
        told = str(error)
        assert "\n" not in told, told
        assert re.match(r"(grid|p)\.yaml:\d+: ", told), told
        return re.sub(r".*:\d+: ", "", told)
    return "read"


@pytest.mark.parametrize("file", ["grid.yaml", "p.yaml"])
def test_damaged_files_are_read_or_refused_in_one_line(file: str, tmp_path: Path):
    write_notebook(tmp_path / "tiny.ipynb")
    whole = {"grid.yaml": GRID, "p.yaml": PARAMETERS}
    for name, text in whole.items():
        Path(name).write_text(text)
    assert outcome(tmp_path) == "read"
    counts: Counter[str] = Counter()
    for seed in range(TRIALS):
        Path(file).write_bytes(damaged(whole[file], random.Random(seed)))
        try:
            counts["read" if outcome(tmp_path) == "read" else "refused"] += 1
        except BaseException as error:
            error.add_note(f"seed {seed}: {Path(file).read_bytes()[:600]!r}")
            raise
    print(file, dict(counts))
    assert counts["read"] > TRIALS / 20, counts
    assert counts["refused"] > TRIALS / 4, counts
