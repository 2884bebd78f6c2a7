"""The card of a run: what it recorded, and the commands that repeat it."""

import json
import shlex
from pathlib import Path

import pytest
import yaml

from cdlm_lab.runs.card import run_card
from cdlm_lab.runs.report import RunError, open_run
from cdlm_lab.runs.scores import Score


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_finished_run():
    run = open_run("runs/x", name="tiny", parameters={"rate": 1e-05, "name": "it's"})
    scores = [
        Score(metric="f1", value=0.71249, low=0.5, high=0.75, n=40),
        Score(metric="f1", value=0.6, seed=1),
        Score(metric="count", value=3),
    ]
    run.write_report(scores=scores, data={"corpus": "abc"})
    # What this process took is the machine's affair; the card shows what the report says.
    written = json.loads(Path("runs/x/report.json").read_text())
    written |= {"seconds": 75.4, "peak_memory": {"cpu": 1_234_567_890, "cuda": 40_000_000_000}}
    written["hardware"] |= {"cores_available": 3, "cores": 8, "memory": 16_000_000_000, "cuda": ["H100"]}
    Path("runs/x/report.json").write_text(json.dumps(written))
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
    ):
        assert part in card, card
    assert run_card("runs/x/report.json") == card
    repeat = shlex.split(card.splitlines()[-1])
    assert repeat[:3] == ["papermill", "NOTEBOOK.ipynb", "runs/x-again.ipynb"]
    assert yaml.safe_load(repeat[4]) == {"rate": 1e-05, "name": "it's"}


def test_a_run_of_a_grid_says_by_which_it_is_repeated():
    Path("runs/.grid").mkdir(parents=True)
    job = {"notebook": "runs/.grid/notebooks/a.ipynb", "parameters": {"rate": 2, "run_folder": "runs/a"}}
    Path("runs/.grid/jobs.json").write_text(json.dumps({"grid": "my grid.yaml", "jobs": {"a": job}}))
    run = open_run("runs/a", name="tiny", parameters={"rate": 2})
    run.write_report(scores=[])
    grid, alone = run_card("runs/a").splitlines()[-2:]
    assert grid.strip() == "cdlm-lab run 'my grid.yaml' --rerun a"
    words = shlex.split(alone)
    assert words[1] == "runs/.grid/notebooks/a.ipynb"
    assert yaml.safe_load(words[4]) == {"rate": 2}
    Path("runs/a/report.json").unlink()
    assert "cdlm-lab run 'my grid.yaml' --only a" in run_card("runs/a"), "it was interrupted, and goes on"
    Path("runs/a").rename("runs/a.old-1")
    assert "cdlm-lab run" not in run_card("runs/a.old-1"), "the grid knows no run of this name"


def test_an_interrupted_run_says_so():
    run = open_run("runs/x", name="tiny", parameters={"rate": 1})
    assert "still running" in run_card("runs/x")
    run.close()
    card = run_card("runs/x")
    assert "NOT FINISHED: the same command takes it up again" in card
    assert "rate  1" in card


def test_text_from_anywhere_moves_no_cursor():
    run = open_run("x", name="a\x1b[2Jb", parameters={})
    run.write_report(scores=[Score(metric="\x07", value=1)])
    assert not {"\x1b", "\x07"} & set(run_card("x"))


def test_a_run_cut_off_at_once():
    Path("x").mkdir()
    Path("x/run.json").write_text(json.dumps({"name": "a"}))
    with pytest.raises(RunError, match=r"x/run\.json cannot be read: move the folder away"):
        run_card("x")
    with pytest.raises(RunError, match="y holds no run"):
        run_card("y")
