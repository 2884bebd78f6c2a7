"""What `parallel` may say, and what several processes are started with."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import torch
from tiny_run import tiny_config

from cdlm_lab.parameters import ParameterError
from cdlm_lab.training.processes import ALONE, Processes, run_processes

WRITES_AND_FAILS = """
import os, sys, time
from collections.abc import Callable
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
found = [
    one.laddr.ip
    for process in (me, me.parent())  # the parent is torchrun
    for one in process.net_connections("inet")
    if one.status == psutil.CONN_LISTEN
]
Path(sys.argv[1], f"told-{os.environ['RANK']}").write_text(json.dumps([total.tolist(), found]))
dist.barrier()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a module that the processes can run."""
    (tmp_path / "busy_module.py").write_text(WRITES_AND_FAILS)
    (tmp_path / "listening_module.py").write_text(LISTENS)
    paths = [str(tmp_path), str(Path(__file__).parents[2])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    return "busy_module"


def test_what_parallel_may_say(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny_config(batch_size=32, micro_batch_size=2)
    assert Processes.of("", config=config) == ALONE
    assert Processes.of(" ddp 4 ", config=config) == Processes(here=4)
    assert Processes.of("fsdp 2", config=config) == Processes(sharded=True, here=2)
    several = Processes.of("fsdp 8 on 2 machines at node-0.local:29500", config=config)
    assert several == Processes(sharded=True, here=8, machines=2, meeting="node-0.local:29500")
    assert several.total == 16
    assert several.told == "16 processes on 2 machines, which share out the weights (FSDP)"
    machines = ("ddp 2 on 1 machines at a:1", "ddp 2 on 2 machines")
    for wrong in (4, None, "4", "ddp", "ddp 0", "ddp x", "dp 2", *machines):
        with pytest.raises(ParameterError, match=r"parallel is .*; write") as raised:
            Processes.of(wrong, config=config)
        assert "\n" not in str(raised.value)
    with pytest.raises(ParameterError, match=r"batch_size \(32\) must be a multiple of .* x 3 processes"):
        Processes.of("ddp 3", config=config)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert Processes.of("ddp 2", config=config).here == 2
    assert Processes.of("ddp 4").here == 4, "as of a run of another machine"
    with pytest.raises(ParameterError, match="parallel is 'ddp 4', but this machine has 2 GPUs"):
        Processes.of("ddp 4", config=config)


def test_machines_meet_where_they_are_told() -> None:
    command = Processes(here=8, machines=2, meeting="head:29500").command("a.module", ["runs/x"])
    assert command[-3:] == ["-m", "a.module", "runs/x"]
    told = " ".join(command)
    assert "--nnodes 2 --rdzv-backend c10d --rdzv-endpoint head:29500 --nproc-per-node 8" in told
    told = " ".join(Processes(here=2).command("a.module", [], file=Path("/x/meeting")))
    assert "store_type=file --rdzv-endpoint /x/meeting --local-addr 127.0.0.1 --nproc-per-node 2" in told


@pytest.mark.slow
def test_on_one_machine_nobody_else_can_reach_them(module: str, tmp_path: Path) -> None:
    run_processes(
        Processes(here=2),
        module="listening_module",
        arguments=[str(tmp_path)],
        folder=tmp_path,
        look=lambda: None,
    )
    for rank in "01":
        total, listening = json.loads((tmp_path / f"told-{rank}").read_text())
        assert total == [2.0] * 3
        assert listening, "they speak over sockets, so some are seen if this test sees any"
        assert set(listening) <= {"127.0.0.1", "::1"}


@pytest.mark.slow
def test_the_fault_of_one_is_told_and_none_is_left(module: str, tmp_path: Path) -> None:
    looks: list[int] = []
    with pytest.raises(
        RuntimeError, match=r"2 processes: ValueError: the loss is nan \(all they said: "
    ) as told:
        run_processes(
            Processes(here=2),
            module=module,
            arguments=[str(tmp_path), "fail", "600"],
            folder=tmp_path,
            look=lambda: looks.append(1),
        )
    assert "\n" not in str(told.value)
    assert looks
    assert not [rank for rank in "01" if psutil.pid_exists(int((tmp_path / f"pid-{rank}").read_text()))]
    stopped = run_processes(
        Processes(here=2),
        module=module,
        arguments=[str(tmp_path), "", "0"],
        folder=tmp_path,
        look=lambda: None,
    )
    assert not stopped


@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them(module: str, tmp_path: Path) -> None:
    starts = (
        "import sys; from pathlib import Path; from cdlm_lab.training.processes import *; "
        f"run_processes(Processes(here=2), module={module!r}, arguments=[sys.argv[1], '', '600'], "
        "folder=Path(sys.argv[1]), look=lambda: None)"
    )
    parent = subprocess.Popen([sys.executable, "-c", starts, str(tmp_path)])
    files = [tmp_path / "pid-0", tmp_path / "pid-1"]
    _until(lambda: all(file.is_file() and file.read_text() for file in files))
    numbers = [int(file.read_text()) for file in files]
    family = [psutil.Process(number) for number in numbers]
    launcher = family[0].parent()
    parent.kill()
    parent.wait()
    _until(lambda: not any(one.is_running() for one in [*family, launcher]))


def _until(condition: Callable[[], bool], *, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)
