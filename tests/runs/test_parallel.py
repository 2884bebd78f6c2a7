"""Every training that a notebook starts gives the same result in two processes as in one; killed anywhere, it
leaves no process behind and can be resumed."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import small_runs
import torch
from safetensors.torch import load_file

from cdlm_lab.attention.plan import Plan
from cdlm_lab.errors import Stopped
from cdlm_lab.parameters import ParameterError
from cdlm_lab.training import fine_tuning
from cdlm_lab.training.checkpoints import checkpoint_step, complete_checkpoints
from cdlm_lab.training.fine_tuning import Recipe, TrainingJob, read_result, write_result
from cdlm_lab.training.trainer import TrainingResult
from cdlm_lab.views.before_training import time_in_words

TESTS = Path(__file__).parents[1]
PATHS = os.pathsep.join([str(TESTS.parent), str(TESTS / "runs" / "resumption")])
ENVIRONMENT = os.environ | {"PYTHONPATH": PATHS, "OMP_NUM_THREADS": "1"}
SIXTY = {"steps": 60, "batch_size": 4, "evaluate_every": 6}


def start(folder: Path, *, workers: int = 0) -> subprocess.Popen:
    """Run this module: a pretraining in two processes, each with so many that make examples."""
    return subprocess.Popen(
        [sys.executable, __file__, str(folder), str(workers)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def pretrained(folder: Path, *, workers: int = 0) -> Path:
    return train_task("pretraining", folder, "ddp 2", workers=workers, **SIXTY)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretrained(tmp_path_factory.mktemp("whole"))


def workers(folder: Path) -> list[psutil.Process]:
    training = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        of_folder = any(one.startswith(str(folder)) for one in line)
        if "--nproc-per-node" not in line and fine_tuning.__name__ in line and of_folder:
            training.append(process)
    return training


def until(condition: Callable[[], bool], *, of: subprocess.Popen | None = None, seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert of is None or of.poll() is None, of.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.2)


def timeless(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "training" / "history.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name != "seconds"} for line in lines]


def assert_same(made: Path, expected: Path) -> None:
    """Check that histories agree to one part in 10,000, and weights within rtol 1e-3 and atol 1e-4."""
    for one, other in zip(timeless(made), timeless(expected), strict=True):
        assert one == pytest.approx(other, rel=1e-4)
    ours, theirs = (load_file(folder / "model" / "model.safetensors") for folder in (made, expected))
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        if name.endswith("key.bias"):  # without effect: its gradient is what rounding leaves
            continue
        torch.testing.assert_close(ours[name], value, rtol=1e-3, atol=1e-4, msg=name)


def test_several_processes_take_a_share_of_the_time() -> None:
    assert time_in_words(7260, 1) == "2 h 1 min"
    assert time_in_words(7260, 4) == "30 min 15 s with 4 processes"


# What is trained -> the system that several processes train, and the parameters that leave out others.
SYSTEMS: dict[str, tuple[str, dict[str, str]]] = {
    "matching": ("cdlm", {"systems": "cdlm"}),
    "multihop": ("cdlm", {"systems": "cdlm"}),
    "answers": ("joint-ae", {}),
    "claims": ("joint-ie", {"systems": "joint-ie"}),
}
TRAININGS = ("pretraining", "coreference", "paragraphs", *SYSTEMS)
FORM = dict.fromkeys(("dropout", "attention_dropout", "encoder_dropout"), 0.0)  # it differs in processes
FORM |= {"precision": "float32", "workers": 0}


def train_task(name: str, folder: Path, by: str, **changes: Any) -> Path:
    """Train with `parallel` in a folder, as the notebook does; return the folder of the trained system."""
    system, only = SYSTEMS.get(name, ("", {}))
    run = small_runs.prepared(name, folder, parallel=by, **FORM | only | changes)
    small_runs.module_of(name).train(run)
    if not system:
        return folder / "run"
    small_runs.module_of(name).predict(run)
    return folder / "run" / "systems" / f"{system}-0"


class Started(Exception):
    """Raised in place of starting a training; its arguments are the recipe and the job."""


def started(train: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> tuple[Recipe, TrainingJob]:
    """Return the recipe and the job of the training that a notebook would start."""

    def keep(recipe: Recipe, *, job: TrainingJob, **others: Any) -> None:
        raise Started(recipe, job)

    monkeypatch.setattr(fine_tuning, "train_in_processes", keep)
    with pytest.raises(Started) as stopped:
        train()
    return stopped.value.args


def assert_same_job(made: TrainingJob, expected: TrainingJob) -> None:
    assert made.config == expected.config
    assert (made.judge is None) == (expected.judge is None)
    assert made.model.config.to_dict() == expected.model.config.to_dict()
    ours, theirs = made.model.state_dict(), expected.model.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    for examples in ("train_examples", "validation_examples"):
        one, other = getattr(made, examples), getattr(expected, examples)
        assert len(one) == len(other)
        batches = [job.collate([of[0], of[1]]) for job, of in ((made, one), (expected, other))]
        assert batches[0].keys() == batches[1].keys()
        for key in batches[0]:
            ours, theirs = (tensors_of(of[key]) for of in batches)
            assert all(map(torch.equal, ours, theirs))


def tensors_of(value: torch.Tensor | Plan) -> list[torch.Tensor]:
    """A tensor of a batch, or those of its plan."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [value.order, value.local_places, value.global_places, torch.from_numpy(value.reach)]


@pytest.mark.parametrize("name", TRAININGS)
def test_other_processes_make_the_same_model_and_examples(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the recipe."""
    recipe, job = started(lambda: train_task(name, tmp_path, "ddp 2"), monkeypatch)
    assert_same_job(Recipe.of_json(json.loads(json.dumps(recipe.as_json()))).make(), job)


def test_the_notebook_takes_over_what_the_processes_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uses one process in place of two, which would take long to start."""
    started_with: list[int] = []

    def run_here(processes: int, *, arguments: list[str], look: Callable[[], None], **others: Any) -> None:
        started_with.append(processes)
        fine_tuning.train_as_one_of_several(Path(arguments[0]))
        look()

    monkeypatch.setattr(fine_tuning, "run_processes", run_here)
    made = train_task("claims", tmp_path / "two", "ddp 2")
    assert started_with == [2]
    expected = train_task("claims", tmp_path / "one", "")
    assert timeless(made) == timeless(expected)
    for file in ("model/model.safetensors", "test.parquet"):
        assert (made / file).read_bytes() == (expected / file).read_bytes()


@pytest.mark.parametrize(
    ("by", "complaint"),
    [
        ("4", "parallel is '4'; write \"ddp 4\""),
        ("ddp 3", "batch_size (8) must be a multiple of micro_batch_size (4) x 3 processes = 12"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_trained(
    by: str, complaint: str, tmp_path: Path
) -> None:
    for name in ("paragraphs", "answers", "claims", "coreference"):
        with pytest.raises(ParameterError, match=re.escape(complaint)) as refused:
            train_task(name, tmp_path / name, by, batch_size=8, micro_batch_size=4)
        assert "\n" not in str(refused.value)
        assert not list(tmp_path.glob(f"{name}/**/training"))


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_two_processes_fine_tune_as_one(name: str, tmp_path: Path) -> None:
    expected = train_task(name, tmp_path / "one", "")
    assert_same(train_task(name, tmp_path / "two", "ddp 2"), expected)


def test_what_a_result_is_written_as(tmp_path: Path) -> None:
    result = TrainingResult(
        best_checkpoint=None, last_checkpoint=tmp_path / "checkpoint-3", best_step=None, steps=3,
        interrupted=True, seconds=1.5, tokens=7,
        history=({"step": 1, "loss": 2.0},)
    )  # fmt: skip
    write_result(result, tmp_path)
    assert read_result(tmp_path) == result


def assert_goes_on(folder: Path, whole: Path) -> None:
    """The same command ends as if nothing had been, to the last bit."""
    assert not workers(folder)
    made = pretrained(folder)
    assert timeless(made) == timeless(whole)
    weights, expected = (one / "model" / "model.safetensors" for one in (made, whole))
    assert weights.read_bytes() == expected.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["the one that waits", "all, as Slurm does"])
def test_a_sigterm_leaves_a_checkpoint(whole: Path, tmp_path: Path, whom: str) -> None:
    parent, run = start(tmp_path), tmp_path / "run"
    until(lambda: len(workers(run)) == 2 and len(timeless(run)) > 1, of=parent)
    recorded = timeless(run)[-1]["step"]
    waiting = psutil.Process(parent.pid)
    for process in [waiting, *(waiting.children(recursive=True) if whom != "the one that waits" else [])]:
        process.terminate()
    parent.communicate(timeout=240)
    assert parent.returncode == -signal.SIGTERM
    assert checkpoint_step(complete_checkpoints(run / "training")[-1]) >= recorded
    assert_goes_on(tmp_path, whole)


@pytest.mark.slow
def test_killed_it_leaves_nobody_and_goes_on(whole: Path, tmp_path: Path) -> None:
    """First the waiting process is killed, then one of the two that train, then the run is interrupted."""
    parent, run = start(tmp_path, workers=1), tmp_path / "run"
    until(lambda: (run / "training" / "checkpoint-6").is_dir(), of=parent)
    family = psutil.Process(parent.pid).children(recursive=True)
    parent.kill()
    parent.communicate()
    until(lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in family))

    for code in (1, 7):
        before, parent = len(timeless(run)), start(tmp_path, workers=1)
        until(lambda least=before: len(workers(run)) == 2 and len(timeless(run)) > least, of=parent)
        if code == 1:
            workers(run)[0].kill()
        else:
            parent.send_signal(signal.SIGINT)
        _, printed = parent.communicate(timeout=240)
        assert parent.returncode == code
        assert code == 7 or "RuntimeError: 2 processes: " in printed.splitlines()[-1]
        assert not workers(run)
    assert_goes_on(tmp_path, whole)


if __name__ == "__main__":
    try:
        pretrained(Path(sys.argv[1]), workers=int(sys.argv[2]))
    except Stopped:
        sys.exit(7)
