"""`cdlm-lab` as users call it: exit codes, messages, and the card of a run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_grid
from tiny_grid import plan_of, report, run_grid, write_grid, write_notebook

from cdlm_lab.batch.command import main
from cdlm_lab.batch.engine import only_user


def value(folder: Path, name: str) -> float:
    return report(folder, name)["scores"][0]["value"]


def test_a_grid_runs_in_order_once_and_a_failure_harms_nothing_else(tmp_path: Path):
    """Dependencies, a failure and its message, the second call, and the repair; in a folder whose name
    Snakemake and shells could misread."""
    broken, folder = tmp_path / "broken", tmp_path / "it's {b} $c"
    broken.touch()
    folder.mkdir()
    last = {"seeds": False, "parameters": {"reads": "{first:seed=0}", "trouble": f"raise {broken}"}}
    tasks = {"last": last, "first": {"parameters": {"rate": 0.25}}}
    write_grid(folder, tasks | {"never": {"after": ["last"], "seeds": False}}, seeds=[0])
    code, printed = run_grid(folder)
    assert code == 1, printed
    assert value(folder, "first-s0") == 0.5
    for part in (
        "last: failed: the notebook ended with ValueError: this cell is broken, after ",
        "last failed: the notebook ended with ValueError: this cell is broken\n",
        "see runs/last/run.log and the notebook beside it",
        "never did not start: it waits for last",
        "1 failed, 1 done, 1 not started",
    ):
        assert part in printed
    executed = (folder / "runs" / "last" / "executed.ipynb").read_text()
    assert "this cell is broken" in executed
    assert not (folder / "runs" / "never" / "run.json").exists()

    before = report(folder, "first-s0")["finished"]
    broken.unlink()
    code, printed = run_grid(folder)
    assert code == 0, printed
    assert "last: will go on" in printed
    assert "first-s0" not in printed
    assert value(folder, "last") == 1.5
    assert report(folder, "first-s0")["finished"] == before, "what was finished is not made again"
    assert "resumed" in (folder / "runs" / "last" / "run.log").read_text()
    assert (folder / "runs" / "last" / "executed.1.ipynb").read_text() == executed, "the partial one is kept"

    logs = folder / "runs" / ".snakemake" / "log"
    assert "(1 of 2 done, 0 failed)" in printed
    assert len(list(logs.iterdir())) == 2
    kept = "3 of 3 runs are finished and stay as they are\nnothing to do: 3 runs are finished in runs\n"
    assert run_grid(folder) == (0, kept)
    assert len(list(logs.iterdir())) == 2, "Snakemake is not started for it"


def test_that_snakemake_fails_is_no_run_s_fault(tmp_path: Path):
    write_grid(tmp_path, {"a": {}})
    code, printed = run_grid(tmp_path, "--", "--no-such-option")
    assert code == 1, printed
    assert "unrecognized arguments: --no-such-option" in printed
    assert "not all is done (exit code 2 of Snakemake). To go on: cdlm-lab run grid.yaml" in printed


@pytest.mark.slow
def test_threads_gpus_kernel_and_parameters_are_those_of_the_grid_and_a_report_must_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tiny_grid, "GPUS", "5,7")
    body = tiny_grid.BODY + (
        '\nimport sys\nseen = [os.environ["OMP_NUM_THREADS"], sys.executable, rate, type(maybe).__name__]'
        '\nseen.append(os.environ["CUDA_VISIBLE_DEVICES"])'
        '\npathlib.Path(run_folder, "seen.json").write_text(json.dumps(seen))'
    )
    write_notebook(tmp_path / "tiny.ipynb", body=body, end="pass")
    task = {"parameters": {"rate": 1e-05}, "resources": {"cores": 2, "gpus": 1}}
    write_grid(tmp_path, {"a": task, "b": task, "c": {"parameters": {"trouble": "silent"}}})
    code, printed = run_grid(tmp_path)
    assert code == 1
    assert "c failed: the notebook ended but left no report.json" in printed
    seen = [json.loads((tmp_path / "runs" / name / "seen.json").read_text()) for name in "ab"]
    assert [one[:4] for one in seen] == [["2", sys.executable, 1e-05, "NoneType"]] * 2
    assert [one[4] for one in seen] == ["5", "7"], "each has its own"


# ---- what is refused before anything starts ----


def refused(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    assert main(list(arguments)) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1, "one line"
    return message


def test_what_is_missing_is_said_and_nothing_starts(here: Path, capsys: pytest.CaptureFixture):
    write_grid(here, {"a": {"needs": {"corpus": "nowhere"}}, "b": {"resources": {"gpus": 2}}, "c": {}})
    assert main(["run", "grid.yaml", "--dry-run"]) == 2
    printed = capsys.readouterr().out
    assert "    missing: corpus: there is no nowhere\n" in printed
    assert "    missing: 2 GPUs: this machine has none\n" in printed
    assert "3 of 3 runs to make (here: " in printed
    assert "missing in all" not in printed, "no two runs lack the same"
    assert not (here / "runs").exists(), "a dry run touches nothing"
    message = refused(capsys, "run", "grid.yaml")
    assert message.startswith("nothing was started: a, b need what is not here")
    assert not (here / "runs" / "a").exists()
    assert main(["run", "grid.yaml", "--dry-run", "--without-missing"]) == 0
    assert "a: left out\nb: left out\n" in capsys.readouterr().out


def test_what_several_runs_lack_is_listed_once(here: Path, capsys: pytest.CaptureFixture):
    write_grid(here, {name: {"needs": {"corpus": "nowhere"}} for name in "ab"} | {"c": {"needs": {"x": "y"}}})
    assert main(["run", "grid.yaml", "--dry-run"]) == 2
    lines = "missing in all:\n    corpus: there is no nowhere (2 runs)\n    x: there is no y (1 run)\n"
    assert lines in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "expected"), [
    ("run grid.yaml --set data", "--set data: it must look like name=value"),
    ("run grid.yaml --set dta=x", "--set dta=x: grid.yaml has no such variable: did you mean 'data'?"),
    ("run grid.yaml --jobs 0", "--jobs 0: it must be at least 1"),
    ("run grid.yaml --only a aa --only a", "--only aa: no task and no run is called so: did you mean 'a'?"),
    ("run grid.yaml --rerun b", "--rerun b: no task and no run is called so: known are a"),
    ("run grid.yaml --executor sluurm", "snakemake-executor-plugin-sluurm is not installed: pip install"),
    ("run gird.yaml", "gird.yaml:1: field file: there is no such file"),
    ("show runs/x", "runs/x holds no run"),
])  # fmt: skip
def test_what_makes_no_sense(arguments: str, expected: str, here: Path, capsys: pytest.CaptureFixture):
    write_grid(here, {"a": {}}, variables={"data": "x"})
    assert refused(capsys, *arguments.split()).startswith(expected)


def test_a_grid_that_runs_already(here: Path, capsys: pytest.CaptureFixture):
    write_grid(here, {"a": {}})
    with only_user(Path("runs")):
        assert refused(capsys, "run", "grid.yaml").startswith("runs is in use by another command: ")


def test_the_command_starts_without_torch():
    slow = "{'torch', 'transformers', 'rich'}"
    code = f"import sys, cdlm_lab.batch.command; sys.exit(bool({slow} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], env=tiny_grid.environment()).returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        "run {}",
        "run grid.yaml --profile {}",
        "show {}",
        "show runs --html {}",
        "show runs --export {}",
        "apply {} in.jsonl out.jsonl",
        "apply storyworld/cdlm {} out.jsonl",
        "apply storyworld/cdlm in.jsonl {}",
        "mine {} out.jsonl",
        "mine pile {}",
        "mine pile out.jsonl --apart {}",
    ],
)
def test_every_path_may_begin_with_the_home_folder_and_is_no_address(
    arguments: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    monkeypatch.setenv("HOME", str(here / "home"))
    assert main(arguments.format("s3://bucket/x").split()) == 2
    said = capsys.readouterr().err
    assert "is 's3://bucket/x', an address" in said
    assert said.count("\n") == 1
    assert main(arguments.format("~/x").split()) == 2, "there is nothing there"
    assert "~" not in capsys.readouterr().err
    assert list(here.iterdir()) == []


def test_a_grid_in_the_home_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    home = here / "my home"
    (home / "data").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    (home / "data" / "a.txt").touch()
    tasks = {"a": {"needs": {"text": "{data}/a.txt"}}, "b": {"after": ["a"]}}
    path = write_grid(here, tasks, runs="~/my runs", variables={"data": "~/data"})
    steps = plan_of(path)
    assert steps["a"].job.folder == home / "my runs" / "a"
    assert steps["a"].missing == ()
    for line, text in (("runs: ~/my runs", "runs: s3://bucket/runs"), ("data: ~/data", "data: s3://bucket")):
        path.write_text(path.read_text().replace(line, text))
        assert main(["run", str(path), "--dry-run"]) == 2
        said = capsys.readouterr().err
        assert re.match(r"\S+grid.yaml:\d+: .*is 's3://bucket", said), said
        path.write_text(path.read_text().replace(text, line))
