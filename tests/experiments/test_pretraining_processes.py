"""A pretraining in two processes is that of one; killed anywhere, it leaves nobody behind and goes on."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from safetensors.torch import load_file

from cdlm_lab.experiments.corpora import CorpusSettings
from cdlm_lab.experiments.pretraining import ModelSettings, prepare, pretrain
from cdlm_lab.experiments.pretraining_processes import WORKER, read_result, write_result
from cdlm_lab.report import open_run
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.processes import Processes
from cdlm_lab.training.trainer import TrainingResult

# `python -c` with the folder of a run, `parallel`, and the settings as JSON; what a notebook does.
PROGRAM = """
import json, sys
from cdlm_lab.experiments.corpora import CorpusSettings
from cdlm_lab.experiments.pretraining import ModelSettings, prepare, pretrain
from cdlm_lab.report import open_run
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.processes import Processes
folder, parallel, given = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
training = TrainingConfig(**given["training"] | {"learning_rate_factors": ()})
prepared = prepare(variant="cdlm", model=ModelSettings(**given["model"]),
                   corpus=CorpusSettings(**given["corpus"]), training=training)
run = open_run(folder, name="pretraining", parameters={})
result, _ = pretrain(prepared, run, processes=Processes.of(parallel, config=training))
sys.exit(7 if result.interrupted else 0)
"""
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def settings(corpus: CorpusSettings, tiny: ModelSettings, training: TrainingConfig) -> dict[str, Any]:
    """Without dropout, which differs from process to process; of five validation batches one process has
    three."""
    return {
        "model": replace(tiny, dropout=0.0),
        "corpus": replace(corpus, held_out_clusters=5, max_length=128),
        "training": replace(training, steps=60, batch_size=4, evaluate_every=6, save_every=6),
    }


@pytest.fixture(scope="module")
def alone(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone") / "run"
    train(settings, folder, parallel="")
    return folder


def train(settings: dict[str, Any], folder: Path, *, parallel: str) -> list[dict[str, Any]]:
    """The records that were told."""
    told: list[dict[str, Any]] = []
    processes = Processes.of(parallel, config=settings["training"])
    result, report = pretrain(
        prepare(variant="cdlm", **settings),
        open_run(folder, name="pretraining", parameters={}),
        processes=processes,
        on_log=told.append,
    )
    assert report is not None
    assert told == list(result.history)
    assert report.data["processes"] == processes.total
    return told


def start(settings: dict[str, Any], folder: Path, *, parallel: str) -> subprocess.Popen:
    given = json.dumps({name: asdict(value) for name, value in settings.items()})
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), parallel, given],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def workers(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if "--nproc-per-node" not in line and WORKER in line and str(folder / "training") in line:
            found.append(process)
    return found


def until(condition: Callable[[], bool], *, of: subprocess.Popen | None = None, seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert of is None or of.poll() is None, of.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.2)


def timeless(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "training" / "history.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name != "seconds"} for line in lines]


def assert_same(found: Path, expected: Path) -> None:
    """The histories agree to one part in 10,000, and so do the models within that of their largest weight."""
    for one, other in zip(timeless(found), timeless(expected), strict=True):
        assert one == pytest.approx(other, rel=1e-4)
    ours, theirs = (load_file(folder / "model" / "model.safetensors") for folder in (found, expected))
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        torch.testing.assert_close(ours[name], value, rtol=1e-3, atol=1e-4, msg=name)


def test_what_a_result_is_written_as(tmp_path: Path) -> None:
    result = TrainingResult(
        best_checkpoint=None,
        last_checkpoint=tmp_path / "checkpoint-3",
        best_step=None,
        validation_loss=None,
        validation_perplexity=None,
        steps=3,
        interrupted=True,
        seconds=1.5,
        tokens=7,
        history=({"step": 1, "loss": 2.0},),
    )
    write_result(result, tmp_path)
    assert read_result(tmp_path) == result


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["ddp 2", "fsdp 2"])
def test_two_processes_train_as_one(
    settings: dict[str, Any], alone: Path, tmp_path: Path, parallel: str
) -> None:
    train(settings, tmp_path / "run", parallel=parallel)
    assert_same(tmp_path / "run", alone)


@pytest.mark.slow
def test_killed_it_leaves_nobody_and_goes_on(settings: dict[str, Any], alone: Path, tmp_path: Path) -> None:
    """First the process that waits is killed, then one of the two that train, then it is interrupted."""
    folder = tmp_path / "run"
    checkpoints = folder / "training"
    parent = start(settings, folder, parallel="ddp 2")
    until(lambda: (checkpoints / "checkpoint-6").is_dir(), of=parent)
    parent.kill()
    parent.communicate()
    until(lambda: not workers(folder))

    parent = start(settings, folder, parallel="fsdp 2")
    until(lambda: (checkpoints / "checkpoint-12").is_dir(), of=parent)
    workers(folder)[0].kill()
    _, printed = parent.communicate(timeout=240)
    assert parent.returncode == 1
    assert "RuntimeError: 2 processes: " in printed.splitlines()[-1]
    assert not workers(folder)

    parent = start(settings, folder, parallel="ddp 2")
    until(lambda: len(workers(folder)) == 2 and len(timeless(folder)) > 18, of=parent)
    parent.send_signal(signal.SIGINT)
    parent.communicate(timeout=240)
    assert parent.returncode == 7
    assert not workers(folder)

    train(settings, folder, parallel="ddp 2")
    assert_same(folder, alone)


@pytest.mark.slow
def test_two_machines_train_as_one(settings: dict[str, Any], alone: Path, tmp_path: Path) -> None:
    """Two launchers on this one, which find each other as those of two machines do."""
    folder = tmp_path / "run"
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    first = start(settings, folder, parallel=f"ddp 1 on 2 machines at localhost:{port}")
    until(lambda: (folder / "training" / "settings.json").is_file(), of=first)
    command = Processes(machines=2, meeting=f"localhost:{port}").command(WORKER, [str(folder / "training")])
    second = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=240)
    assert second.returncode == 0, second.stderr
    printed, errors = first.communicate(timeout=240)
    assert first.returncode == 0, errors
    assert shlex.join(command) in printed
    assert_same(folder, alone)
