"""A model applied to texts as a step of a grid: what the file may say, and one step that is made."""

import json
from pathlib import Path

import pytest
from tiny_grid import run_grid, write_notebook

from cdlm_lab.batch.expansion import expand
from cdlm_lab.batch.grid import GridError, read_grid

TASK = "  read: {apply: {model: %s, texts: %s}}\n"


def read(folder: Path, tasks: str):
    write_notebook(folder / "tiny.ipynb")
    head = "runs: runs\nvariables: {data: corpora}\ntasks:\n"
    (folder / "grid.yaml").write_text(f"{head}  train: {{notebook: tiny.ipynb}}\n{tasks}")
    return expand(read_grid(folder / "grid.yaml"))


def test_it_reads_the_model_of_another_task_and_needs_its_texts(tmp_path: Path) -> None:
    job = read(tmp_path, TASK % ('"{train}"', '"{data}/x.jsonl"'))["read"]
    assert job.parameters == {"model": "runs/train", "texts": "corpora/x.jsonl"}
    assert job.needs == {"texts": "corpora/x.jsonl"}
    assert job.after == ("train",)
    made = read(tmp_path, TASK % ("storyworld/tagging", '"{train}/x.jsonl"'))["read"]
    assert (made.needs, made.after) == ({}, ("train",))
    axes = "  read: {apply: {texts: x.jsonl}, axes: {model: [storyworld/cdlm, storyworld/rand-cdlm]}}\n"
    assert list(read(tmp_path, axes)) == ["train", "read-storyworld-cdlm", "read-storyworld-rand-cdlm"]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("{apply: {model: x}}", "apply needs texts"),
        (
            "{apply: {model: x, texts: y, txt: z}}",
            "apply.ipynb: it has no parameter 'txt': did you mean 'text",
        ),
        ("{apply: {model: x, texts: y}, notebook: tiny.ipynb}", "apply and notebook do not go together"),
        ("{apply: {model: x, texts: y}, parameters: {a: 1}}", "apply and parameters do not go together"),
        ("{apply: {model: x, texts: y}, seeds: [1]}", "apply.ipynb: it has no parameter 'seed'"),
    ],
)
def test_what_it_may_not_say(task: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(GridError, match=f"grid.yaml:5: .*{message}"):
        read(tmp_path, f"  read: {task}\n")


@pytest.mark.slow
def test_a_step_is_made_and_stays(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"text": "Yessel Brandir left Telk."}\n')
    text = "runs: runs\ntasks:\n" + TASK % ("storyworld/tagging", "x.jsonl")
    (tmp_path / "grid.yaml").write_text(text)
    code, out = run_grid(tmp_path)
    assert code == 0, out
    folder = tmp_path / "runs" / "read"
    assert json.loads((folder / "answers.jsonl").read_text())["words"]
    scores = json.loads((folder / "report.json").read_text())["scores"]
    assert {row["metric"]: row["value"] for row in scores} == {"lines": 1, "refused": 0, "foreign": 0}
    assert "nothing to do" in run_grid(tmp_path)[1]
