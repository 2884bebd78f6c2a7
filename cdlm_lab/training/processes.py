"""Several processes that train one model, started by `torchrun` under a process that waits for them, such as
the kernel of a notebook.

They end when it ends, however it ends: each asks twice a second whether its parent is still there, since a
killed process can tell nobody. If it is interrupted it asks them to stop, so that they finish their step and
leave a checkpoint.

Those of one machine find each other in files of a folder that only this user may read, and listen on the
loopback interface alone. torchrun by itself listens on all interfaces and unpickles what it is sent there;
with several machines that is so, and they belong into a network where everybody is trusted.
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
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import torch
import torch.distributed as dist

from cdlm_lab.parameters import ParameterError
from cdlm_lab.ranks import PAUSE, end_with_parent, rank
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.progress import STOP_FILE_VARIABLE, stop_on_signals

LOG_FILE, STOP_FILE = "processes.log", "stop"
MEETING_VARIABLE = "CDLM_LAB_MEETING_FILE"
_FAULT_FILE = "fault-{}.txt"  # of a process, by its number
_WRITTEN = re.compile(r"(ddp|fsdp) (\d+)(?: on (\d+) machines at (\S+:\d+))?")
_PATIENCE = 20  # seconds that the rest of a group has to end by itself


@dataclass(frozen=True, kw_only=True)
class Processes:
    """How many processes train.

    Attributes:
        sharded: False = DDP, each has all weights; True = FSDP, they share them out.
        here: on each machine, one for each of its GPUs.
        machines: that take part; each runs the same, in a run folder that all of them see.
        meeting: `host:port` of one of several machines, where they find each other.
    """

    sharded: bool = False
    here: int = 1
    machines: int = 1
    meeting: str = ""

    @property
    def total(self) -> int:
        """On all machines."""
        return self.here * self.machines

    @property
    def told(self) -> str:
        """In words."""
        kind = "which share out the weights (FSDP)" if self.sharded else "each with all weights (DDP)"
        where = f" on {self.machines} machines" if self.machines > 1 else ""
        return f"{self.total} processes{where}, {kind}"

    @classmethod
    def of(cls, parallel: str, *, config: TrainingConfig | None = None) -> Processes:
        """From `ddp 4`, `fsdp 4`, `fsdp 8 on 2 machines at host:29500`, or "" for this process alone.

        Args:
            config: of the training that they are to start with here; None = that is not yet known, or done.

        Raises:
            ParameterError: something else; with a config also more processes than GPUs, where there is a GPU,
                and a batch size that they cannot share.
        """
        written = parallel.strip() if isinstance(parallel, str) else "a number"
        if not written:
            return cls()
        match = _WRITTEN.fullmatch(written)
        if not match or not int(match[2]) or (match[3] and int(match[3]) < 2):
            raise ParameterError(
                f'parallel is {parallel!r}; write "ddp 4" or "fsdp 4" (processes, one for each GPU), '
                '"fsdp 8 on 2 machines at host:29500", or "" for one process'
            )
        found = cls(
            sharded=match[1] == "fsdp",
            here=int(match[2]),
            machines=int(match[3] or 1),
            meeting=match[4] or "",
        )
        if config is not None:
            gpus = torch.cuda.device_count()
            if gpus and found.here > gpus:
                raise ParameterError(f"parallel is {parallel!r}, but this machine has {gpus} GPUs")
            config.accumulation(processes=found.total)
        return found

    def command(self, module: str, arguments: Sequence[str], *, file: Path | None = None) -> list[str]:
        """What starts them: `torchrun`, bound to the life of its parent. `file`: by which those of one
        machine find each other; it need not exist."""
        where = ["--nnodes", str(self.machines), "--rdzv-backend", "c10d"]
        if self.machines == 1:
            where += ["--rdzv-conf", "store_type=file", "--rdzv-endpoint", str(file)]
            where += ["--local-addr", "127.0.0.1"]
        else:
            where += ["--rdzv-endpoint", self.meeting]
        launcher = [sys.executable, "-m", __name__, *where, "--nproc-per-node", str(self.here)]
        return [*launcher, "-m", module, *arguments]


ALONE = Processes()


def run_processes(
    processes: Processes,
    *,
    module: str,
    arguments: Sequence[str],
    folder: Path,
    look: Callable[[], None],
) -> bool:
    """Run a module in all processes of this machine; returns whether they were asked to stop.

    Args:
        module: run as by `python -m`; it should call `end_with_parent` first, and `keep_fault` around the
            rest, of which `join_others` is the first.
        arguments: of the module.
        folder: for `processes.log`, what they print.
        look: called twice a second while they run, and once after.

    Raises:
        RuntimeError: they failed; with the fault of the first of them that told one.
        KeyboardInterrupt: it was asked to stop a second time; the processes were ended.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob(_FAULT_FILE.format("*")):
        file.unlink()
    stop_file = (folder / STOP_FILE).resolve()
    stop_file.unlink(missing_ok=True)
    with stop_on_signals() as stop, open(folder / LOG_FILE, "ab") as log, TemporaryDirectory() as meeting:
        started = subprocess.Popen(
            processes.command(module, [*arguments], file=Path(meeting) / "launcher"),
            env=_environment(processes, meeting) | {STOP_FILE_VARIABLE: str(stop_file)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # an interrupt from a terminal reaches this process alone
        )
        try:
            while started.poll() is None:
                time.sleep(PAUSE)
                look()
                if stop.asked:
                    stop_file.touch()
        finally:
            _end(started)
            stop_file.unlink(missing_ok=True)
            look()
    if started.returncode:
        told = _first_fault(folder) or f"they ended with {started.returncode}"
        raise RuntimeError(f"{processes.total} processes: {told} (all they said: {folder / LOG_FILE})")
    return stop.asked


def _environment(processes: Processes, meeting: str) -> dict[str, str]:
    """Of the processes; `meeting`: a folder by which those of one machine find each other."""
    threads = max(1, torch.get_num_threads() // processes.here)
    shared = {"OMP_NUM_THREADS": str(threads)} | os.environ
    if processes.machines > 1:
        return shared
    return shared | {
        MEETING_VARIABLE: str(Path(meeting) / "processes"),
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # else torchrun serves a store on all interfaces
        "GLOO_SOCKET_IFNAME": _loopback(),
        "NCCL_SOCKET_IFNAME": _loopback(),
    }


def _loopback() -> str:
    """Name of the loopback interface."""
    names = (
        name
        for name, addresses in psutil.net_if_addrs().items()
        if any(one.family == socket.AF_INET and one.address == "127.0.0.1" for one in addresses)
    )
    return next(names, "lo")


def join_others() -> None:
    """Called in each of the processes before it trains: meet the others where that is done in a file, as on
    one machine; elsewhere the trainer does it, as torchrun says."""
    if file := os.environ.get(MEETING_VARIABLE):
        backend = "nccl" if torch.cuda.is_available() else "gloo"
        dist.init_process_group(
            backend, init_method=f"file://{file}", rank=rank(), world_size=int(os.environ["WORLD_SIZE"])
        )


def _end(started: subprocess.Popen) -> None:
    """Leave none of them."""
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
    """Called in a process that fails: leave one line for the one that waits."""
    line = " ".join(f"{type(error).__name__}: {error}".split())
    (folder / _FAULT_FILE.format(rank())).write_text(line + "\n", encoding="utf-8")


def _first_fault(folder: Path) -> str:
    """What the process said that failed before the others; "" if none did."""
    files = sorted(folder.glob(_FAULT_FILE.format("*")), key=lambda file: file.stat().st_mtime_ns)
    return files[0].read_text(encoding="utf-8").strip() if files else ""


if __name__ == "__main__":
    from torch.distributed.run import main

    end_with_parent()
    main()
