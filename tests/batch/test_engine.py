"""What Snakemake is told, and what is written for it."""

import json
import math
from pathlib import Path

import pytest
from tiny_grid import plan_of, pretend, write_grid

from cdlm_lab.batch import engine
from cdlm_lab.batch.engine import Place, put_aside, write_jobs
from cdlm_lab.batch.grid import GridError, read_grid


@pytest.fixture
def grid(here: Path) -> Path:
    tasks = {
        "a": {"resources": {"gpus": 2, "memory_gb": 1.5, "minutes": 0.2, "cores": 3, "retries": 1}},
        "b": {"parameters": {"reads": "{a}", "rate": 1e-05}},
        "c": {},
    }
    return write_grid(here, tasks)


def command_of(grid: Path, *, gpus: int = 0, **place: object) -> list[str]:
    return engine.snakemake_command(read_grid(grid), place=Place(**place), gpus=gpus)


def following(command: list[str], option: str) -> str:
    return command[command.index(option) + 1]


def test_jobs_are_what_is_to_be_made_and_no_more(grid: Path):
    pretend(plan_of(grid), "c")
    file = write_jobs(read_grid(grid), plan_of(grid), place=Place(), gpus=["0", "1"])
    written = json.loads(file.read_text())
    assert list(written["jobs"]) == ["a", "b"]
    assert written["tasks"]["a"] == {
        "names": ["a"],
        "cores": 3,
        "retries": 1,
        "resources": {"mem_mb": 1500, "runtime": 1, "runs": 1, "gpu": 2},
        "notebook": "a.ipynb",
    }
    assert "gpu" not in written["tasks"]["b"]["resources"]
    assert (written["gpus"], written["jobs"]["a"]["gpus"]) == (["0", "1"], [0, 1])
    assert written["jobs"]["b"]["parameters"] == {"reads": "runs/a", "rate": 1e-05, "run_folder": "runs/b"}
    copy = Path("runs/.grid/notebooks/b.ipynb").read_bytes()
    assert copy == Path("tiny.ipynb").read_bytes(), "so that the notebook may be edited meanwhile"
    # on a cluster GPUs are not the runs' affair
    file = write_jobs(read_grid(grid), plan_of(grid), place=Place(executor="slurm"), gpus=[])
    assert json.loads(file.read_text())["gpus"] is None


def test_the_local_command_keeps_to_cores_memory_and_gpus(grid: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine, "usable_cores", lambda: 5)
    command = command_of(grid, jobs=3, more=("--verbose",), gpus=2)
    assert following(command, "--cores") == "5"
    limits = dict(text.split("=") for text in command[command.index("--resources") + 1 :][:5])
    assert [limits[name] for name in ("gpu", "gpu_0", "gpu_1", "runs")] == ["2", "1", "1", "3"]
    assert 100 < int(limits["mem_mb"]) < math.inf
    assert command[-1] == "--verbose"
    assert "--executor" not in command
    assert "runs=" not in " ".join(command_of(grid))


def test_the_command_for_a_cluster(grid: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine, "_has_accounting", lambda: False)
    command = command_of(grid, executor="slurm")
    assert following(command, "--executor") == "slurm"
    assert following(command, "--slurm-status-command") == "squeue"
    assert following(command, "--jobs") == "100"
    assert "--cores" not in command
    monkeypatch.setattr(engine, "_has_accounting", lambda: True)
    assert "--slurm-status-command" not in command_of(grid, executor="slurm", jobs=7)
    command = command_of(grid, executor=None, profile="p")
    assert following(command, "--profile") == "p"
    assert not {"--executor", "--jobs"} & set(command), "the profile says"
    with pytest.raises(GridError, match="pip install snakemake-executor-plugin-kubernets"):
        command_of(grid, executor="kubernets")


def test_what_is_made_anew_is_put_aside_whole(grid: Path, monkeypatch: pytest.MonkeyPatch):
    pretend(plan_of(grid))
    Path("runs/a/model").mkdir()
    Path("runs/a/model/weights").write_text("years of work")
    ((before, after), (other, _)) = put_aside(plan_of(grid, rerun=("a",)))
    assert (str(before), str(other)) == ("runs/a", "runs/b")
    assert (after / "model" / "weights").read_text() == "years of work"
    assert not before.exists()
    assert put_aside(plan_of(grid)) == [], "new runs have nothing to be put aside"

    class OneSecond(engine.datetime):
        @classmethod
        def now(cls) -> engine.datetime:
            return cls(2026, 11, 22, 9, 4)

    monkeypatch.setattr(engine, "datetime", OneSecond)
    for name in ("a.old-20261122-090400", "a.old-20261122-090400-2"):  # twice in a second
        pretend(plan_of(grid), "a")
        assert [new.name for _, new in put_aside(plan_of(grid, only=("a",), rerun=("a",)))] == [name]
