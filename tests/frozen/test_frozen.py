"""What a redesign must not move, measured once and kept in frozen.json: stories and task sets of storyworld,
logits of the shipped checkpoints, numbers of the READMEs' tables of recorded runs, scores of the small grid.

New entries may come, existing ones must stay. To write the file anew after an intended change:

    python tests/frozen/test_frozen.py             # all but the small grid
    python tests/frozen/test_frozen.py runs/small  # the small grid, after it has run
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from cdlm_lab.data.storyworld import task_sets
from cdlm_lab.data.storyworld.stories import GENERATOR_VERSION, stories
from cdlm_lab.encoders.checkpoint import shipped_names
from cdlm_lab.encoders.encoder import load_language_model
from cdlm_lab.runs.report import read_report
from cdlm_lab.runs.scores import plain_name

ROOT = Path(__file__).resolve().parents[2]
FROZEN = Path(__file__).with_name("frozen.json")
WITHHELD = {"sentences": 3, "paragraphs": 3, "withheld": True}
# kind -> reader, stories, options
TASK_SETS: dict[str, tuple[Callable[..., Iterator[Any]], int, dict[str, Any]]] = {
    "candidates": (task_sets.read_storyworld_candidates, 6, {}),
    "candidates later": (task_sets.read_storyworld_candidates, 3, {"start": 5}),
    "claims": (task_sets.read_storyworld_claims, 6, {}),
    "claims two evidence": (task_sets.read_storyworld_claims, 4, {"evidence": 2}),
    "coreference": (task_sets.read_storyworld_topics, 6, {}),
    "coreference pairs of stories": (task_sets.read_storyworld_topics, 4, {"stories_per_topic": 2}),
    "pairs": (task_sets.read_storyworld_pairs, 6, {}),
    "pairs recurring": (task_sets.read_storyworld_pairs, 6, {"unrelated": "recurring"}),
    "pairs contradicting": (task_sets.read_storyworld_pairs, 6, {"unrelated": "contradicting"}),
    "pairs drawn at random": (task_sets.read_storyworld_pairs, 6, {"unrelated": "random"}),
    "questions": (task_sets.read_storyworld_questions, 6, {}),
    "questions withheld": (task_sets.read_storyworld_questions, 6, WITHHELD),
    "tags": (task_sets.read_storyworld_tags, 6, {}),
}
PLACES, WORDS = 4, 6  # how many positions of a text, and words at each, logits are kept of
NUMBER = re.compile(r"(?<![\w.])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|(?<=\d))(?!\w)")
TABLE = re.compile(r"<!-- table ([^ ]+) begin -->(.*?)<!-- table \1 end -->", re.DOTALL)


def plain(value: Any) -> Any:
    """Convert records to nested lists, without the names of their fields, which may change."""
    if is_dataclass(value):
        return [plain(getattr(value, one.name)) for one in fields(value) if one.compare]
    if isinstance(value, Mapping):
        return sorted([plain(key), plain(inner)] for key, inner in value.items())
    if isinstance(value, set | frozenset):
        return sorted(plain(inner) for inner in value)
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def digest(records: Iterable[Any]) -> str:
    """Return a short hash of records."""
    text = json.dumps([plain(record) for record in records], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def story_hashes() -> dict[str, str]:
    """Return seed/split -> hash of 33 stories with their gold annotation, and how the first one begins."""
    found = {"version": GENERATOR_VERSION}
    for seed in (0, 1, 7):
        for split in ("train", "validation", "test"):
            made = list(stories(seed=seed, split=split, stop=33))
            found[f"{seed}/{split}"] = f"{digest(made)} {made[0].cluster.documents[0].text[:60]}"
    return found


def task_set_hashes() -> dict[str, str]:
    """Return kind/seed/split -> number of records and their hash."""
    found = {}
    for kind, (read, count, options) in TASK_SETS.items():
        for seed, split in ((0, "train"), (3, "test")):
            records = list(read(split, count, seed=seed, **options))
            found[f"{kind}/{seed}/{split}"] = f"{len(records)} {digest(records)}"
    return found


def shipped_logits() -> dict[str, list[list[float]]]:
    """Return checkpoint -> logits of some words at some positions of a text with global tokens."""
    text = " ".join(document.text for document in next(stories(seed=5, split="test")).cluster.documents)
    found = {}
    for name in shipped_names():
        if not name.startswith("storyworld/"):
            continue
        model, tokenizer = load_language_model(name, max_length=256, window=32)
        ids = tokenizer(text, return_tensors="pt", truncation=True, max_length=240)["input_ids"]
        attended = torch.zeros_like(ids)
        attended[:, ::16] = 1  # global
        with torch.inference_mode():
            logits = model.eval()(ids, global_attention_mask=attended).logits[0]
        kept = logits[:: logits.shape[0] // PLACES][:PLACES, :: logits.shape[1] // WORDS][:, :WORDS]
        found[name] = [[round(value, 4) for value in row] for row in kept.tolist()]
    return found


def table_numbers() -> dict[str, str]:
    """Return the name of each marked table in the README files -> its numbers, row by row."""
    found = {}
    for path in (ROOT / "README.md", *sorted(ROOT.glob("data/**/*.md"))):
        for name, table in TABLE.findall(path.read_text(encoding="utf-8")):
            _, *rows = (line for line in table.splitlines() if line.startswith("|"))
            found[name] = " | ".join(" ".join(NUMBER.findall(row)) for row in rows if NUMBER.search(row))
    return found


def grid_scores(folder: Path) -> dict[str, str]:
    """Return run of the small grid -> its scores that have an interval, or if it has none all, over seeds."""
    found = {}
    for path in sorted(folder.glob("*/report.json")):
        if ".old-" in path.parent.name or path.parent.name == "results":  # set aside; read from the others
            continue
        rows = [row for row in read_report(path).rows if row.seed is None and "seconds" not in row.metric]
        rows = [row for row in rows if row.low is not None] or rows
        found[path.parent.name] = ", ".join(f"{plain_name(row)} {row.value:.4g}" for row in rows)
    return found


def processor() -> str:
    """Return CPU capability and torch version, which determine the kernels and so the last digits."""
    return f"{torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}"


def assert_same(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Fail with a line for each name that is missing or has another value; new names are allowed."""
    found = [f"{name} is lost" for name in before if name not in now]
    found += [
        f"{name} was {was!r}, is {now[name]!r}" for name, was in before.items() if now.get(name, was) != was
    ]
    assert not found, "\n".join([*found[:20], f"{len(found)} in all; if meant, write {FROZEN.name} anew"])


@pytest.fixture(scope="module")
def frozen() -> dict[str, Any]:
    return json.loads(FROZEN.read_text(encoding="utf-8"))


MEASURED = {"stories": story_hashes, "task sets": task_set_hashes, "tables": table_numbers}


@pytest.mark.parametrize("part", MEASURED)
def test_all_is_as_it_was(part: str, frozen: dict):
    assert_same(frozen[part], MEASURED[part]())


def test_shipped_checkpoints_give_the_same_logits(frozen: dict):
    now = shipped_logits()
    for name, before in frozen["logits"].items():
        assert torch.allclose(torch.tensor(now[name]), torch.tensor(before), atol=2e-3, rtol=2e-4), (
            name
        )  # other kernels: 1e-5


@pytest.mark.slow  # half an hour
def test_the_small_grid_gives_the_same_scores(frozen: dict, tmp_path: Path):
    """On another processor training ends differently: there only which scores there are counts."""
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    command = [sys.executable, "-m", "cdlm_lab.batch.command", "run", "notebooks/grids/small.yaml"]
    surroundings = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=tmp_path, env=surroundings, check=True)
    before, now = frozen["grid"]["runs"], grid_scores(tmp_path / "runs" / "small")
    if frozen["grid"]["processor"] != processor():
        before, now = ({run: re.sub(r" [^ ]+(,|$)", r"\1", one[run]) for run in one} for one in (before, now))
    assert_same(before, now)


def test_a_change_is_seen():
    assert_same({"a": 1}, {"a": 1, "c": 3})
    with pytest.raises(AssertionError, match="b is lost"):
        assert_same({"a": 1, "b": 1}, {"a": 2})
    numbers = NUMBER.findall("| B³, IE_3 | 1,024 | *84.2* [-2.95, .31] | 5x |")
    assert numbers == ["1,024", "84.2", "-2.95", ".31"]
    assert digest([{"a": 1}]) != digest([{"a": 2}])
    assert digest([{"b": 1, "a": (2, {3})}]) == digest([{"a": [2, [3]], "b": 1}])


def main(arguments: list[str]) -> None:
    """Write frozen.json anew: its grid from a folder of runs, or else all but the grid."""
    if arguments:
        if not Path(arguments[0]).is_dir():
            sys.exit(f"{arguments[0]} is no folder of runs; give none to write all but the grid")
        new = {"grid": {"processor": processor(), "runs": grid_scores(Path(arguments[0]))}}
    else:
        new = {part: measure() for part, measure in MEASURED.items()} | {"logits": shipped_logits()}
    kept = json.loads(FROZEN.read_text(encoding="utf-8")) | new
    text = json.dumps(kept, indent=1, ensure_ascii=False)
    # the rows of logits on one line each
    text = re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda row: f"[{' '.join(row[1].split())}]", text)
    FROZEN.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
