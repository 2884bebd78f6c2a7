"""Grids run for real, by the command: with Snakemake, papermill and kernels."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_grid
from tiny_grid import report, run_grid, write_grid, write_notebook

from cdlm_lab.batch.command import main


def finished(folder: Path, *names: str) -> list[float]:
    """When runs were finished, by the clock of their reports."""
    return [report(folder, name)["finished"] for name in names]


def test_a_grid_runs_in_order_once_and_a_failure_harms_nothing_else(tmp_path: Path):
    """The core: dependencies, a failure, what is said of it, the second call, and the repair;
    in a folder whose name Snakemake and shells could misread."""
    broken = tmp_path / "broken"
    broken.touch()
    folder = tmp_path / "it's {b} $c"
    folder.mkdir()
    write_grid(
        folder,
        {
            "last": {"seeds": False, "parameters": {"reads": "{first:seed=0}", "trouble": f"raise {broken}"}},
            "first": {"parameters": {"rate": 0.25}},
            "never": {"after": ["last"], "seeds": False},
        },
        seeds=[0],
    )
    code, said = run_grid(folder)
    assert code == 1, said
    assert report(folder, "first-s0")["scores"][0]["value"] == 0.5
    assert "last failed: the notebook ended with exit code 1" in said
    assert "ValueError: this cell is broken" in said
    assert "the notebook as far as it came: runs/last/executed.ipynb" in said
    assert "never did not start: it waits for last" in said
    assert "1 failed, 1 done, 1 not started" in said
    executed = (folder / "runs" / "last" / "executed.ipynb").read_text()
    assert "this cell is broken" in executed
    assert not (folder / "runs" / "never" / "run.json").exists()

    before = finished(folder, "first-s0")
    broken.unlink()
    code, said = run_grid(folder)
    assert code == 0, said
    assert "last: will go on" in said
    assert "first-s0" not in said
    assert report(folder, "last")["scores"][0]["value"] == 1.5
    assert finished(folder, "first-s0") == before, "what was finished is not made again"
    assert "resumed" in (folder / "runs" / "last" / "run.log").read_text()
    assert (folder / "runs" / "last" / "executed.1.ipynb").read_text() == executed, "the partial one is kept"

    logs = folder / "runs" / ".snakemake" / "log"
    assert len(list(logs.iterdir())) == 2
    code, said = run_grid(folder)
    assert (code, said) == (
        0,
        "3 of 3 runs are finished and stay as they are\nnothing to do: 3 runs are finished in runs\n",
    )
    assert len(list(logs.iterdir())) == 2, "Snakemake is not started for it"


def test_that_snakemake_fails_is_no_run_s_fault(tmp_path: Path):
    write_grid(tmp_path, {"a": {}})
    code, said = run_grid(tmp_path, "--", "--no-such-option")
    assert code == 1, said
    assert "Snakemake ended with exit code 2; the end of runs/.grid/snakemake.log:" in said
    assert said.endswith("\nSnakemake itself failed (see above), 0 done, 1 not started\n")


@pytest.mark.slow
def test_what_changed_is_run_again_and_the_old_run_is_kept(tmp_path: Path):
    data = tmp_path / "corpus"
    data.mkdir()
    (data / "a.txt").write_text("one")
    tasks = {
        "plain": {"parameters": {"rate": 0.25}},
        "reader": {"parameters": {"reads": "{plain}"}},
        "other": {"needs": {"corpus": "corpus"}},
    }
    write_grid(tmp_path, tasks)
    assert run_grid(tmp_path)[0] == 0
    tasks["plain"]["parameters"]["rate"] = 1.0
    write_grid(tmp_path, tasks)
    code, said = run_grid(tmp_path)
    assert code == 0, said
    assert "plain: will run again: parameter rate 0.25 -> 1.0" in said
    assert "reader: will run again: plain, which it reads, is made first" in said
    assert "1 of 3 runs are finished" in said
    assert report(tmp_path, "reader")["scores"][0]["value"] == 3.0
    old = sorted(path.name for path in (tmp_path / "runs").glob("*.old-*"))
    assert [name.partition(".old-")[0] for name in old] == ["plain", "reader"]
    assert report(tmp_path, old[0])["scores"][0]["value"] == 0.5
    assert report(tmp_path, old[1])["scores"][0]["value"] == 1.5
    assert json.loads((tmp_path / "runs" / old[0] / "report.json").read_text())["parameters"]["rate"] == 0.25


@pytest.mark.slow
def test_runs_of_a_task_at_once_and_one_after_the_other(tmp_path: Path):
    """--jobs 1: no two sessions overlap."""
    write_grid(tmp_path, {"a": {}}, seeds=[0, 1])
    code, said = run_grid(tmp_path, "--jobs", "1")
    assert code == 0, said
    first, second = sorted(
        (report(tmp_path, name)["started"], report(tmp_path, name)["finished"]) for name in ("a-s0", "a-s1")
    )
    assert first[1] < second[0]


@pytest.mark.slow
def test_a_notebook_that_leaves_no_report_failed(tmp_path: Path):
    write_grid(tmp_path, {"a": {"parameters": {"trouble": "silent"}}})
    write_notebook(tmp_path / "tiny.ipynb", end="pass")
    code, said = run_grid(tmp_path)
    assert code == 1
    assert "a failed: the notebook ended but left no report.json" in said


@pytest.mark.slow
def test_threads_kernel_and_parameters_are_those_of_the_grid(tmp_path: Path):
    body = tiny_grid.BODY + (
        '\nimport sys\nseen = [os.environ["OMP_NUM_THREADS"], sys.executable, rate, type(maybe).__name__]'
        '\npathlib.Path(run_folder, "seen.json").write_text(json.dumps(seen))'
    )
    write_notebook(tmp_path / "tiny.ipynb", body=body)
    write_grid(tmp_path, {"a": {"parameters": {"rate": 1e-05}, "resources": {"cores": 2}}})
    code, said = run_grid(tmp_path)
    assert code == 0, said
    seen = json.loads((tmp_path / "runs" / "a" / "seen.json").read_text())
    assert seen == ["2", tiny_grid.sys.executable, 1e-05, "NoneType"]


# ---- what is refused before anything starts ----


def refused(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    assert main(list(arguments)) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1, "one line"
    return told


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return tmp_path


def test_what_is_missing_is_said_and_nothing_starts(here: Path, capsys: pytest.CaptureFixture):
    write_grid(here, {"a": {"needs": {"corpus": "nowhere"}}, "b": {"resources": {"gpus": 2}}, "c": {}})
    assert main(["run", "grid.yaml", "--dry-run"]) == 2
    said = capsys.readouterr().out
    assert "    missing: corpus: there is no nowhere\n" in said
    assert "    missing: 2 GPUs: this machine has none\n" in said
    assert "3 of 3 runs to make, about 30:00" in said or "about 1:00 h" in said or "about 1:30 h" in said
    assert "missing in all" not in said, "no two runs lack the same"
    assert not (here / "runs").exists(), "a dry run touches nothing"
    told = refused(capsys, "run", "grid.yaml")
    assert told.startswith("nothing was started: a, b need what is not here")
    assert not (here / "runs" / "a").exists()
    assert main(["run", "grid.yaml", "--dry-run", "--without-missing"]) == 0
    assert "a: left out\nb: left out\n" in capsys.readouterr().out


def test_what_several_runs_lack_is_listed_once(here: Path, capsys: pytest.CaptureFixture):
    write_grid(here, {name: {"needs": {"corpus": "nowhere"}} for name in "ab"} | {"c": {"needs": {"x": "y"}}})
    assert main(["run", "grid.yaml", "--dry-run"]) == 2
    said = capsys.readouterr().out
    assert "missing in all:\n    corpus: there is no nowhere (2 runs)\n    x: there is no y (1 run)\n" in said


def test_gpus_are_a_cluster_s_affair(here: Path, capsys: pytest.CaptureFixture):
    write_grid(here, {"b": {"resources": {"gpus": 2}}})
    assert main(["run", "grid.yaml", "--dry-run", "--executor", "slurm"]) == 0
    assert "on slurm" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--set", "data"], "--set data: it must look like name=value"),
        (["--set", "dta=x"], "--set dta=x: grid.yaml has no such variable: did you mean 'data'?"),
        (["--jobs", "0"], "--jobs 0: it must be at least 1"),
        (["--only", "aa"], "--only aa: no task and no run is called so: did you mean 'a'?"),
        (["--rerun", "b"], "--rerun b: no task and no run is called so: known are a"),
        (["--executor", "sluurm"], "snakemake-executor-plugin-sluurm is not installed: pip install"),
    ],
)
def test_options_that_make_no_sense(
    arguments: list[str], expected: str, here: Path, capsys: pytest.CaptureFixture
):
    write_grid(here, {"a": {}}, variables={"data": "x"})
    assert refused(capsys, "run", "grid.yaml", *arguments).startswith(expected)


def test_a_grid_that_is_not_there(here: Path, capsys: pytest.CaptureFixture):
    assert refused(capsys, "run", "gird.yaml").startswith("gird.yaml:1: field file: there is no such file")


def test_a_run_that_is_not_there(here: Path, capsys: pytest.CaptureFixture):
    assert refused(capsys, "show", "runs/x").startswith("runs/x holds no run")


def test_a_grid_that_runs_already(here: Path, capsys: pytest.CaptureFixture):
    from cdlm_lab.batch.engine import take_grid

    write_grid(here, {"a": {}})
    with take_grid(Path("runs")):
        assert refused(capsys, "run", "grid.yaml").startswith("runs is in use by process ")


def test_the_command_starts_without_torch():
    slow = "{'torch', 'transformers', 'rich'}"
    code = f"import sys, cdlm_lab.batch.command; sys.exit(bool({slow} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], env=tiny_grid.environment()).returncode == 0
