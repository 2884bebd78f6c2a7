"""The card of a run."""

import json
import shlex
from pathlib import Path

import pytest
import yaml
from tiny_grid import plan_of, pretend, write_grid

from cdlm_lab.batch.command import run_card
from cdlm_lab.report import RunError, open_run


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_finished_run(tmp_path: Path):
    run = open_run("runs/x", name="tiny", parameters={"rate": 1e-05, "name": "it's"})
    (run.folder / "f.svg").touch()
    score = {"value": 0.71249, "low": 0.5, "high": 0.75, "n": 40}
    run.write_report(scores={"f1": score, "count": 3}, data={"corpus": "abc"}, figures={"f": "f.svg"})
    # What this process took is the machine's affair; the card shows what the report says.
    report = json.loads(Path("runs/x/report.json").read_text())
    report |= {"seconds": 75.4, "peak_memory": {"cpu": 1_234_567_890, "cuda": 40_000_000_000}}
    report["hardware"] |= {"cores_available": 3, "cores": 8, "memory": 16_000_000_000, "cuda": ["H100"]}
    Path("runs/x/report.json").write_text(json.dumps(report))
    card = run_card("runs/x")
    for part in (
        "runs/x: tiny",
        "finished 20",
        "f1     0.7125 [0.5, 0.75] n=40\n",
        "count  3\n",
        "corpus  abc",
        "python        3.",
        ", 3 of 8 cores, 16 GB, H100, ",
        "took 1:15, at most 1.23 GB cpu, 40.00 GB cuda\n",
        "runs/x/f.svg",
    ):
        assert part in card, card
    assert run_card("runs/x/report.json") == card
    repeat = shlex.split(card.splitlines()[-1])
    assert repeat[:3] == ["papermill", "NOTEBOOK.ipynb", "runs/x-again.ipynb"]
    assert yaml.safe_load(repeat[4]) == {"rate": 1e-05, "name": "it's"}


def test_a_run_of_a_grid_says_by_which_it_is_repeated(tmp_path: Path):
    path = write_grid(tmp_path, {"a": {"parameters": {"rate": 2}}})
    pretend(plan_of(path))
    grid, alone = run_card("runs/a").splitlines()[-2:]
    assert grid.strip() == "cdlm-lab run grid.yaml --rerun a"
    words = shlex.split(alone)
    assert words[1] == "tiny.ipynb"
    assert yaml.safe_load(words[4]) == plan_of(path)["a"].job.effective
    Path("runs/a").rename("runs/a.old-1")
    assert "cdlm-lab run" not in run_card("runs/a.old-1"), "the grid knows no run of this name"


def test_an_interrupted_run_says_so(tmp_path: Path):
    run = open_run("runs/x", name="tiny", parameters={"rate": 1})
    assert "still running" in run_card("runs/x")
    run.close()
    card = run_card("runs/x")
    assert "NOT FINISHED: the same command takes it up again" in card
    assert "rate  1" in card


def test_an_interrupted_run_of_a_grid_goes_on_by_the_grid(tmp_path: Path):
    path = write_grid(tmp_path, {"a": {}})
    pretend(plan_of(path))
    Path("runs/a/report.json").unlink()
    assert "cdlm-lab run grid.yaml --only a" in run_card("runs/a")


def test_a_run_that_went_on_with_other_code_says_so(tmp_path: Path):
    pretend(plan_of(write_grid(tmp_path, {"a": {}})))
    stamp = json.loads(Path("runs/a/.grid.json").read_text())
    stamp["began_with"] = stamp["fingerprint"]
    Path("runs/a/.grid.json").write_text(json.dumps(stamp))
    assert "other code" not in run_card("runs/a")
    stamp["began_with"] = stamp["fingerprint"] | {"notebook": "0"}
    Path("runs/a/.grid.json").write_text(json.dumps(stamp))
    assert "went on with other code than it began with" in run_card("runs/a")


def test_text_from_anywhere_moves_no_cursor(tmp_path: Path):
    open_run("x", name="a\x1b[2Jb", parameters={}).write_report(scores={"\x07": 1})
    card = run_card("x")
    assert "\x1b" not in card
    assert "\x07" not in card


def test_a_run_cut_off_at_once(tmp_path: Path):
    Path("x").mkdir()
    Path("x/run.json").write_text(json.dumps({"name": "a"}))
    with pytest.raises(RunError, match=r"x/run\.json cannot be read: move the folder away"):
        run_card("x")
    with pytest.raises(RunError, match="y holds no run"):
        run_card("y")
