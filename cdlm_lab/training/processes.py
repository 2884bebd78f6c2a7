"""Several processes that train one model, each with the whole model; started by `torchrun` under a process
that waits for them, such as the kernel of a notebook.

They end when it ends, in whatever way: each checks twice a second whether its parent still runs. If it is
interrupted it stops them, so that they finish their step and leave a checkpoint. They find each other through
files in a folder that only this user may read, and listen only on the loopback interface: torchrun by itself
listens on all interfaces and unpickles what it is sent there.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import torch
import torch.distributed as dist

from cdlm_lab.parameters import ParameterError
from cdlm_lab.progress import PAUSE, end_with_parent, rank
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.history import STOP_FILE_VARIABLE, stop_on_signals

LOG_FILE, STOP_FILE = "processes.log", "stop"
MEETING_VARIABLE = "CDLM_LAB_MEETING_FILE"
_FAULT_FILE = "fault-{}.txt"  # written by a process that fails; its rank is filled in
_WRITTEN = re.compile(r"ddp (\d+)")
_PATIENCE = 20  # seconds to wait for killed processes to end


def processes_of(parallel: str, *, config: TrainingConfig | None = None) -> int:
    """The number of processes that `parallel` asks for: 4 for `ddp 4`, 1 for "", this process alone.

    Raises ParameterError for anything else; given the `config` of a training to be started here, also for
    more processes than GPUs, where there is a GPU, and for a batch size that they cannot share.
    """
    written = parallel.strip() if isinstance(parallel, str) else "a number"
    if not written:
        return 1
    match = _WRITTEN.fullmatch(written)
    if not match or not int(match[1]):
        raise ParameterError(
            f'parallel is {parallel!r}; write "ddp 4" (processes, one for each GPU), or "" for one process'
        )
    count = int(match[1])
    if config is not None:
        gpus = torch.cuda.device_count()
        if gpus and count > gpus:
            raise ParameterError(f"parallel is {parallel!r}, but this machine has {gpus} GPUs")
        config.accumulation(processes=count)
    return count


def command(count: int, module: str, arguments: Sequence[str], *, file: Path) -> list[str]:
    """The command that starts `count` processes: `torchrun`, ending with its parent. `file`: for their
    rendezvous; it need not exist."""
    where = ["--nnodes", "1", "--nproc-per-node", str(count), "--local-addr", "127.0.0.1"]
    where += ["--rdzv-backend", "c10d", "--rdzv-conf", "store_type=file", "--rdzv-endpoint", str(file)]
    return [sys.executable, "-m", __name__, *where, "-m", module, *arguments]


def run_processes(
    count: int, *, module: str, arguments: Sequence[str], folder: Path, look: Callable[[], None]
) -> bool:
    """Run a module in `count` processes; returns whether they were stopped.

    Args:
        module: run like `python -m` with `arguments`; it should call `end_with_parent` first, and then,
            with `keep_fault` for errors, `join_others` and its own work.
        folder: for `processes.log`, their output.
        look: called twice a second while they run, and once afterwards.

    Raises:
        RuntimeError: they failed; with the earliest fault that one of them recorded.
        KeyboardInterrupt: a second interrupt; the processes were killed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob(_FAULT_FILE.format("*")):
        file.unlink()
    stop_file = (folder / STOP_FILE).resolve()
    stop_file.unlink(missing_ok=True)
    with stop_on_signals() as stop, open(folder / LOG_FILE, "ab") as log, TemporaryDirectory() as meeting:
        started = subprocess.Popen(
            command(count, module, arguments, file=Path(meeting) / "launcher"),
            env=_environment(count, meeting) | {STOP_FILE_VARIABLE: str(stop_file)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that an interrupt from a terminal reaches only this process
        )
        try:
            while started.poll() is None:
                time.sleep(PAUSE)
                look()
                if stop.requested:
                    stop_file.touch()
        finally:
            _end(started)
            stop_file.unlink(missing_ok=True)
            look()
    if started.returncode:
        faults = sorted(folder.glob(_FAULT_FILE.format("*")), key=lambda file: file.stat().st_mtime_ns)
        fault = faults[0].read_text(encoding="utf-8").strip() if faults else ""
        fault = fault or f"they ended with {started.returncode}"
        raise RuntimeError(f"{count} processes: {fault} (all their output: {folder / LOG_FILE})")
    return stop.requested


def _environment(count: int, meeting: str) -> dict[str, str]:
    """The environment of the processes; `meeting`: a folder for their rendezvous."""
    threads = str(max(1, torch.get_num_threads() // count))  # also where a grid has set how many
    loopbacks = (
        name
        for name, addresses in psutil.net_if_addrs().items()
        if any(one.family == socket.AF_INET and one.address == "127.0.0.1" for one in addresses)
    )
    loopback = next(loopbacks, "lo")
    return os.environ | {
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        MEETING_VARIABLE: str(Path(meeting) / "processes"),
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # otherwise torchrun serves a store on all interfaces
        "GLOO_SOCKET_IFNAME": loopback,
        "NCCL_SOCKET_IFNAME": loopback,
    }


def join_others() -> None:
    """Called in each process before it trains: join the others through a file. Without one, as under
    `accelerate launch`, the trainer joins them."""
    if file := os.environ.get(MEETING_VARIABLE):
        backend = "nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(
            backend, init_method=f"file://{file}", rank=rank(), world_size=int(os.environ["WORLD_SIZE"])
        )


def _end(started: subprocess.Popen) -> None:
    """Kill all processes that are left."""
    try:
        family = [*psutil.Process(started.pid).children(recursive=True), psutil.Process(started.pid)]
    except psutil.NoSuchProcess:
        family = []
    for member in family:
        with suppress(psutil.NoSuchProcess):  # it may end by itself meanwhile
            member.kill()
    psutil.wait_procs(family, timeout=_PATIENCE)
    started.wait()


def keep_fault(folder: Path, error: BaseException) -> None:
    """Called in a process that fails: write its error as one line for the process that waits."""
    line = " ".join(f"{type(error).__name__}: {error}".split())
    (folder / _FAULT_FILE.format(rank())).write_text(line + "\n", encoding="utf-8")


if __name__ == "__main__":
    from torch.distributed.run import main

    end_with_parent()
    main()
