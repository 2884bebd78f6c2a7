"""Results that a redesign of the library must not change, measured once and kept in frozen.json.

Stories and task sets of storyworld, logits of the shipped checkpoints, parameters of notebooks, parameter
files and grids, numbers of the README's tables, of data/results and of the small grid. New entries may be
added; existing ones must stay. After an intended change, write the file anew and say why in the commit:

    python tests/frozen/test_frozen.py --write
    python tests/frozen/test_frozen.py --write-grid runs/small    # the small grid, after it has run
"""

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from cdlm_lab.data.storyworld import task_sets
from cdlm_lab.data.storyworld.stories import GENERATOR_VERSION, stories
from cdlm_lab.encoders.checkpoint import shipped_names
from cdlm_lab.encoders.encoder import load_language_model

ROOT = Path(__file__).resolve().parents[2]
FROZEN = Path(__file__).with_name("frozen.json")
WRITE = "if this is meant: python tests/frozen/test_frozen.py --write"
RUNS = [(seed, split) for seed in (0, 1, 7) for split in ("train", "validation", "test")]
STORIES = (34, 33, 33) * 3  # of each of RUNS: 300 in all
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
PLACES, WORDS = 12, 8  # of a text, where logits are kept, and how many at each
ATOL, RTOL = 2e-3, 2e-4  # float32 sums of other kernels differ by some 1e-5
NUMBER = re.compile(r"(?<![\w.])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|(?<=\d))(?!\w)")
TABLE = re.compile(r"<!-- table ([\w-]+) begin -->(.*?)<!-- table \1 end -->", re.DOTALL)


# ---- what is measured ----


def plain(value: Any) -> Any:
    """Convert records to nested lists, without the names of their fields, which may change."""
    if is_dataclass(value):
        return plain(astuple(value))
    if isinstance(value, Mapping):
        return sorted([plain(key), plain(inner)] for key, inner in value.items())
    if isinstance(value, set | frozenset):
        return sorted(plain(inner) for inner in value)
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def digest(records: Iterable[Any]) -> str:
    """Return a short hash of records."""
    text = json.dumps([plain(record) for record in records], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def story_hashes() -> dict[str, str]:
    """Return seed/split/index -> hash of a story's text and gold annotation."""
    return {"version": GENERATOR_VERSION} | {
        f"{seed}/{split}/{index}": digest([story])
        for (seed, split), count in zip(RUNS, STORIES, strict=True)
        for index, story in enumerate(stories(seed=seed, split=split, stop=count))
    }


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
        model, tokenizer = load_language_model(name, max_length=256, window=32)
        ids = tokenizer(text, return_tensors="pt", truncation=True, max_length=240)["input_ids"]
        attended = torch.zeros_like(ids)
        attended[:, ::16] = 1  # global
        with torch.inference_mode():
            logits = model.eval()(ids, global_attention_mask=attended).logits[0]
        places = torch.arange(PLACES) * (logits.shape[0] // PLACES)
        words = torch.arange(WORDS) * (logits.shape[1] // WORDS)
        kept = [[round(value, 4) for value in row] for row in logits[places][:, words].tolist()]
        found[name] = [[float(value) for value in logits.shape], *kept]
    return found


def parameters() -> dict[str, dict[str, Any]]:
    """Return notebook, parameter file or grid -> name of a parameter (of nested ones the path) -> value."""
    found = {}
    for path in sorted(ROOT.glob("notebooks/*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        (cell,) = [one for one in cells if "parameters" in one["metadata"].get("tags", [])]
        found[path.name] = {}
        for one in ast.parse("".join(cell["source"])).body:
            target = one.targets[0] if isinstance(one, ast.Assign) else one.target
            found[path.name][target.id] = repr(ast.literal_eval(one.value))
    for path in sorted(ROOT.glob("notebooks/*/*.yaml")):
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
        found[f"{path.parent.name}/{path.name}"] = {name: repr(value) for name, value in leaves(given)}
    return found


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of all leaves of nested mappings and lists; empty ones are leaves too."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}/{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for position, inner in enumerate(value):
            yield from leaves(inner, f"{path}/{position}")
    else:
        yield path, value


def table_numbers() -> dict[str, str]:
    """Return the name of each marked table in the README files -> its numbers, row by row."""
    found = {}
    for path in (ROOT / "README.md", *ROOT.glob("data/**/README.md")):
        for name, table in TABLE.findall(path.read_text(encoding="utf-8")):
            _, *rows = (line for line in table.splitlines() if line.startswith("|"))
            found[name] = " | ".join(" ".join(NUMBER.findall(row)) for row in rows)
    return found


def numbers(value: Any) -> Iterator[str]:
    """Yield all numbers in a report except the format version, with six digits each."""
    for path, inner in leaves(value):
        if isinstance(inner, int | float) and not isinstance(inner, bool) and path != "format":
            yield f"{inner:.6g}"


def untimed(scores: Any) -> Any:
    """Return the scores of a run, as rows or by name, without its durations."""
    if isinstance(scores, Mapping):
        return {name: score for name, score in scores.items() if "seconds" not in name}
    return [row for row in scores if "seconds" not in row["metric"]]


def sorted_numbers(value: Any) -> str:
    """Return the sorted numbers of a report, which do not depend on its layout."""
    return " ".join(sorted(numbers(value), key=lambda text: (float(text), text)))


def recorded_numbers() -> dict[str, str]:
    """Return file of data/results -> its numbers."""
    found = {}
    for path in sorted((ROOT / "data" / "results").rglob("*.json*")):
        lines = path.read_text(encoding="utf-8")
        value = json.loads(lines) if path.suffix == ".json" else [*map(json.loads, lines.splitlines())]
        found[path.relative_to(ROOT / "data" / "results").as_posix()] = sorted_numbers(value)
    return found


def grid_numbers(folder: Path, *, all_of_them: bool = False) -> dict[str, str]:
    """Return run of the small grid -> numbers of its scores, or of its whole report."""
    found = {}
    for path in sorted(folder.glob("*/report.json")):
        if ".old-" in path.parent.name:  # set aside when it was made again
            continue
        report = json.loads(path.read_text(encoding="utf-8"))
        found[path.parent.name] = sorted_numbers(report if all_of_them else untimed(report["scores"]))
    return found


# ---- what is compared ----


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a message for each name that is missing or has another value; new names are allowed."""
    lost = [f"{name} is lost" for name in before if name not in now]
    other = [name for name, value in before.items() if name in now and now[name] != value]
    return lost + [f"{name} was {before[name]!r}, is {now[name]!r}" for name in other]


def lost_numbers(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return a message for each file that has lost numbers; repeated numbers count as often as they occur."""
    found = []
    for name, value in before.items():
        if name not in now:
            found.append(f"{name} is lost")
        elif lacking := Counter(value.split()) - Counter(now[name].split()):
            some = ", ".join([*lacking.elements()][:8])
            found.append(f"{name} lacks {lacking.total()} of {len(value.split())} numbers: {some}")
    return found


def faults(found: list[str]) -> str:
    """Return the message of a failed test: at most 20 differences, and what to do."""
    return "\n".join([*found[:20], *([f"and {len(found) - 20} more"] if len(found) > 20 else []), WRITE])


@pytest.fixture(scope="module")
def frozen() -> dict[str, Any]:
    """The measurements recorded in frozen.json."""
    return json.loads(FROZEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("part", "measure"),
    [("stories", story_hashes), ("task sets", task_set_hashes), ("tables", table_numbers)],
    ids=["stories", "task sets of storyworld", "numbers of tables"],
)
def test_all_is_as_it_was(part: str, measure: Callable[[], dict[str, str]], frozen: dict):
    found = changes(frozen[part], measure())
    assert not found, faults(found)


def test_shipped_checkpoints_give_the_same_logits(frozen: dict):
    now = shipped_logits()
    assert set(frozen["logits"]) <= set(now)
    for name, before in frozen["logits"].items():
        assert before[0] == now[name][0], f"{name}: shape of the logits"
        logits = (torch.tensor(one[1:]) for one in (now[name], before))
        message = lambda text, name=name: f"{name}: {text}\n{WRITE}"  # noqa: E731
        torch.testing.assert_close(*logits, atol=ATOL, rtol=RTOL, msg=message)


def test_parameters_keep_their_names_and_defaults(frozen: dict):
    now = parameters()
    found = [f"{file} is lost" for file in frozen["parameters"] if file not in now]
    for file, before in frozen["parameters"].items():
        found += [f"{file}: {change}" for change in changes(before, now.get(file, before))]
    assert not found, faults(found)


def test_recorded_results_lose_no_number(frozen: dict):
    found = lost_numbers(frozen["recorded"], recorded_numbers())
    assert not found, faults(found)


@pytest.mark.slow  # half an hour
def test_the_small_grid_gives_the_same_scores(frozen: dict, tmp_path: Path):
    """On another processor training ends differently: there only the runs and how many numbers count."""
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    command = [sys.executable, "-m", "cdlm_lab.batch.command", "run", "notebooks/grids/small.yaml"]
    surroundings = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=tmp_path, env=surroundings, check=True)
    now = grid_numbers(tmp_path / "runs" / "small", all_of_them=True)
    before = frozen["grid"]["runs"]
    found = lost_numbers(before, now)
    if frozen["grid"]["processor"] != processor():
        fewer = [run for run in before if len(now.get(run, "").split()) < len(before[run].split())]
        found = [f"{run} has fewer numbers" for run in fewer]
    assert not found, faults(found)


def processor() -> str:
    """Return CPU capability and torch version, which determine the kernels and so the last digits."""
    return f"{torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}"


# ---- that a change is seen ----


def test_what_is_lost_or_changed_is_named_and_what_is_new_may_come():
    assert changes({"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}) == []
    assert changes({"a": 1, "b": 2}, {"b": 3}) == ["a is lost", "b was 2, is 3"]


def test_numbers_may_move_but_none_is_lost():
    before = {"r": sorted_numbers({"format": 1, "a": {"value": 0.5, "low": 0.25}, "n": 0.5, "ok": True})}
    moved = {"r": sorted_numbers({"format": 2, "rows": [["a", 0.5, 0.25], ["n", 0.5], ["seed", 3]]})}
    assert lost_numbers(before, moved) == []
    for rows in ([0.5, 0.25], [0.5, 0.5, 0.2500011]):
        assert len(lost_numbers(before, {"r": sorted_numbers(rows)})) == 1
    assert lost_numbers(before, {}) == ["r is lost"]


def test_numbers_of_tables_are_read_without_the_words():
    row = "| B³, MSPP IE_3 of 2 | 1,024 | *84.2* | 3.03 [-2.95, .31] | 5x | 10% |"
    assert NUMBER.findall(row) == ["2", "1,024", "84.2", "3.03", "-2.95", ".31", "10"]


def test_records_are_told_apart_by_any_of_their_values():
    first, second = stories(seed=0, split="train", stop=2)
    assert digest([first]) != digest([second])
    assert digest([{"b": 1, "a": (2, {3})}]) == digest([{"a": [2, [3]], "b": 1}])


def main(arguments: list[str]) -> int:
    """Write frozen.json, or only its grid; return the exit code."""
    frozen = json.loads(FROZEN.read_text(encoding="utf-8")) if FROZEN.exists() else {}
    match arguments:
        case ["--write"]:  # all but the small grid
            frozen |= {"stories": story_hashes(), "task sets": task_set_hashes(), "logits": shipped_logits()}
            frozen |= {"parameters": parameters(), "tables": table_numbers(), "recorded": recorded_numbers()}
        case ["--write-grid", folder]:
            frozen["grid"] = {"processor": processor(), "runs": grid_numbers(Path(folder))}
        case _:
            print(__doc__)
            return 2
    text = json.dumps(frozen, indent=1, ensure_ascii=False)
    # the rows of logits on one line each
    text = re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda row: f"[{' '.join(row[1].split())}]", text)
    FROZEN.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
