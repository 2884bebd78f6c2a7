"""What `parallel` may say, what several processes are started with, and that none of them is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest
import torch
from tiny_run import tiny_config

from cdlm_lab.parameters import ParameterError
from cdlm_lab.training.processes import processes_of, run_processes

WRITES_AND_FAILS = """
import os, sys, time
from pathlib import Path
from cdlm_lab.training.processes import end_with_parent, keep_fault
end_with_parent()
folder, rank = Path(sys.argv[1]), os.environ["RANK"]
(folder / f"pid-{rank}").write_text(str(os.getpid()))
if sys.argv[2] == "fail" and rank == "1":
    keep_fault(folder, ValueError("the loss is nan"))
    sys.exit(1)
time.sleep(float(sys.argv[3]))
"""

LISTENS = """
import json, os, sys
from pathlib import Path
import psutil, torch
import torch.distributed as dist
from cdlm_lab.training.processes import end_with_parent, join_others
end_with_parent()
join_others()
total = torch.ones(3)
dist.all_reduce(total)
me = psutil.Process()
listening = [
    one.laddr.ip
    for process in (me, me.parent())  # the parent is torchrun
    for one in process.net_connections("inet")
    if one.status == psutil.CONN_LISTEN
]
threads = [os.environ["OMP_NUM_THREADS"], os.environ["MKL_NUM_THREADS"]]
Path(sys.argv[1], f"heard-{os.environ['RANK']}").write_text(json.dumps([total.tolist(), listening, threads]))
dist.barrier()
"""


@pytest.fixture
def run_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """Runs one of the two modules above in two processes."""
    (tmp_path / "busy_module.py").write_text(WRITES_AND_FAILS)
    (tmp_path / "listening_module.py").write_text(LISTENS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])]))
    return partial(run_processes, 2, folder=tmp_path)


def test_what_parallel_may_say(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny_config(batch_size=32, micro_batch_size=2)
    assert processes_of("", config=config) == 1
    assert processes_of(" ddp 4 ", config=config) == 4
    for wrong in (4, None, "4", "ddp", "ddp 0", "ddp x", "dp 2", "fsdp 2", "ddp 2 on 2 machines at a:1"):
        with pytest.raises(ParameterError, match=r"parallel is .*; write") as raised:
            processes_of(wrong, config=config)
        assert "\n" not in str(raised.value)
    with pytest.raises(ParameterError, match=r"batch_size \(32\) must be a multiple of .* x 3 processes"):
        processes_of("ddp 3", config=config)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert processes_of("ddp 2", config=config) == 2
    assert processes_of("ddp 4") == 4, "as of a run of another machine"
    with pytest.raises(ParameterError, match="parallel is 'ddp 4', but this machine has 2 GPUs"):
        processes_of("ddp 4", config=config)


@pytest.mark.slow
def test_on_one_machine_nobody_else_can_reach_them_and_they_share_its_threads(
    run_two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "4")  # as a grid sets them for a run of four cores
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    run_two(module="listening_module", arguments=[str(tmp_path)], look=lambda: None)
    for rank in "01":
        total, listening, threads = json.loads((tmp_path / f"heard-{rank}").read_text())
        assert threads == ["2", "2"]
        assert total == [2.0] * 3
        assert listening, "they speak over sockets, so some are seen if this test sees any"
        assert set(listening) <= {"127.0.0.1", "::1"}


@pytest.mark.slow
def test_the_fault_of_one_is_reported_and_none_is_left(run_two, tmp_path: Path) -> None:
    looks: list[int] = []
    run = partial(run_two, module="busy_module", look=lambda: looks.append(1))
    message = r"2 processes: ValueError: the loss is nan \(all their output: "
    with pytest.raises(RuntimeError, match=message) as shown:
        run(arguments=[str(tmp_path), "fail", "600"])
    assert "\n" not in str(shown.value)
    assert looks
    assert not [rank for rank in "01" if psutil.pid_exists(int((tmp_path / f"pid-{rank}").read_text()))]
    assert not run(arguments=[str(tmp_path), "", "0"]), "not stopped"


@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them(run_two, tmp_path: Path) -> None:
    starts = (
        "import sys; from pathlib import Path; from cdlm_lab.training.processes import *; "
        "run_processes(2, module='busy_module', arguments=[sys.argv[1], '', '600'], "
        "folder=Path(sys.argv[1]), look=lambda: None)"
    )
    parent = subprocess.Popen([sys.executable, "-c", starts, str(tmp_path)])
    files = [tmp_path / "pid-0", tmp_path / "pid-1"]
    _until(lambda: all(file.is_file() and file.read_text() for file in files))
    family = [psutil.Process(int(file.read_text())) for file in files]
    launcher = family[0].parent()
    parent.kill()
    parent.wait()
    _until(lambda: not any(one.is_running() for one in [*family, launcher]))


def _until(condition: Callable[[], bool], *, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)
