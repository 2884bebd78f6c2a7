"""A grid on a real Slurm, started and stopped on this machine: `pytest -m cluster`."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import one_machine_slurm
import pytest
import tiny_grid
from tiny_grid import processes_in, report, run_grid, start_grid, wait_for, write_grid, write_notebook

pytestmark = pytest.mark.cluster
SEEN = (
    '\nnames = ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "OMP_NUM_THREADS")'
    '\npathlib.Path(run_folder, "seen.json").write_text(json.dumps([os.environ.get(n) for n in names]))'
)
# Else Snakemake waits 40 seconds before it asks how a job stands.
ON_SLURM = ("--executor", "slurm", "--", "--slurm-init-seconds-before-status-checks", "5")
SMALL = {"memory_gb": 1, "minutes": 10}


@pytest.fixture(scope="module", autouse=True)
def _slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    if problem := one_machine_slurm.missing():
        pytest.skip(f"skipped until Slurm can be started here: {problem}")
    folder = tmp_path_factory.mktemp("slurm") / "one"
    folder.mkdir()
    one_machine_slurm.start(folder)
    yield
    one_machine_slurm.stop(folder)


def in_the_queue() -> str:
    return subprocess.run(["squeue", "--noheader"], capture_output=True, text=True, check=True).stdout


def test_three_stages_with_gpus_and_a_failure(tmp_path: Path):
    broken = tmp_path / "broken"
    broken.touch()
    write_notebook(tmp_path / "tiny.ipynb", body=tiny_grid.BODY + SEEN)
    tasks = {
        "train": {"resources": {"gpus": 1}},
        "read": {"parameters": {"reads": "{train}"}},
        "last": {"after": ["read"], "seeds": False, "parameters": {"trouble": f"raise {broken}"}},
    }
    write_grid(tmp_path, tasks, seeds=[0, 1], defaults=SMALL)
    code, said = run_grid(tmp_path, *ON_SLURM)
    assert code == 1, said
    assert "last failed: the notebook ended with ValueError" in said
    assert "1 failed, 4 done, 0 not started" in said
    broken.unlink()
    code, said = run_grid(tmp_path, *ON_SLURM)
    assert code == 0, said
    assert "4 of 5 runs are finished" in said
    seen = {
        name: json.loads((tmp_path / "runs" / name / "seen.json").read_text())
        for name in ("train-s0", "train-s1", "read-s0", "last")
    }
    assert {seen["train-s0"][0], seen["train-s1"][0]} <= {"0", "1"}, "one GPU each"
    assert all(job_id for _, job_id, _ in seen.values()), "all ran as jobs"
    assert {threads for *_, threads in seen.values()} == {"1"}
    assert report(tmp_path, "read-s1")["scores"][0]["value"] == 2.0
    assert run_grid(tmp_path, *ON_SLURM)[1].endswith("5 runs are finished in runs\n")


def test_a_job_that_slurm_refuses_is_told_in_its_words_while_others_run(tmp_path: Path):
    hold = tmp_path / "hold"
    hold.touch()
    tasks = {"a": {"resources": {"memory_gb": 90_000}}, "b": {"parameters": {"trouble": f"wait {hold}"}}}
    write_grid(tmp_path, tasks, defaults=SMALL)
    grid = start_grid(tmp_path, *ON_SLURM)
    words = "it could not begin; SLURM sbatch failed. The error message was 'sbatch: error: "
    wait_for(lambda: words in (tmp_path / "out.txt").read_text(), "sbatch's words")
    hold.unlink()
    assert grid.wait(timeout=tiny_grid.BUSY) == 1
    said = (tmp_path / "out.txt").read_text()
    assert "Memory specification can not be satisfied" in said
    assert "1 failed, 1 done, 0 not started" in said


def test_ctrl_c_cancels_the_jobs_of_the_cluster(tmp_path: Path):
    hold = tmp_path / "hold"
    hold.touch()
    write_grid(tmp_path, {"a": {"parameters": {"trouble": f"wait {hold}"}}}, defaults=SMALL)
    grid = start_grid(tmp_path, *ON_SLURM)
    wait_for((tmp_path / "runs" / "a" / "waiting").exists, "the kernel")
    grid.send_signal(2)
    assert grid.wait(timeout=tiny_grid.BUSY) == 130
    wait_for(lambda: not in_the_queue(), "an empty queue")
    wait_for(lambda: not processes_in(tmp_path), "the end of all processes")
