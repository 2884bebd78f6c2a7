"""Several processes that train one model, started by `torchrun` under a process that waits for them, such as
the kernel of a notebook; each with the whole model, or with a share of it.

They end when it ends, however it ends: each looks twice a second whether its parent still runs. If it is
interrupted it stops them, so that they finish their step and leave a checkpoint. Those of one machine meet
through files of a folder that only this user may read, and listen on the loopback interface alone. torchrun
by itself listens on all interfaces and unpickles what it is sent there; with several machines that is so, and
they belong into a network where everybody is trusted.

A sharded model (FSDP: `fully_shard` of torch) has the losses, updates and checkpoints of any other. A weight
that took no part in a process's batch, as the global projections where no token is global, would have no
gradient there, and the processes would add up different lists of gradients: here it has one of zeros. Where
it took part in no process's batch it has none before the update, as with one process, so that it is not
decayed.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.utils._pytree import tree_leaves, tree_map

from cdlm_lab.parameters import ParameterError
from cdlm_lab.progress import PAUSE, end_with_parent, rank
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.history import STOP_FILE_VARIABLE, stop_on_signals

LOG_FILE, STOP_FILE = "processes.log", "stop"
MEETING_VARIABLE = "CDLM_LAB_MEETING_FILE"
_FAULT_FILE = "fault-{}.txt"  # of a process, by its number
_WRITTEN = re.compile(r"(ddp|fsdp) (\d+)(?: on (\d+) machines at (\S+:\d+))?")
_PATIENCE = 20  # seconds that the rest of a group has to end by itself


@dataclass(frozen=True, kw_only=True)
class Processes:
    """How many processes train."""

    sharded: bool = False  # False = DDP, each has all weights; True = FSDP, they share them out
    here: int = 1  # on each machine, one for each of its GPUs
    machines: int = 1  # that take part; each runs the same, in a run folder that all of them see
    meeting: str = ""  # `host:port` of one of several machines, where they find each other

    @property
    def total(self) -> int:
        """On all machines."""
        return self.here * self.machines

    @property
    def in_words(self) -> str:
        """In words."""
        kind = "which share out the weights (FSDP)" if self.sharded else "each with all weights (DDP)"
        where = f" on {self.machines} machines" if self.machines > 1 else ""
        return f"{self.total} processes{where}, {kind}"

    @classmethod
    def of(cls, parallel: str, *, config: TrainingConfig | None = None) -> Processes:
        """From `ddp 4`, `fsdp 4`, `fsdp 8 on 2 machines at host:29500`, or "" for this process alone.

        Raises ParameterError for something else; with the config of the training that they are to start here
        also for more processes than GPUs, where there is a GPU, and for a batch size that they cannot share.
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
        here, machines, meeting = int(match[2]), int(match[3] or 1), match[4] or ""
        processes = cls(sharded=match[1] == "fsdp", here=here, machines=machines, meeting=meeting)
        if config is not None:
            gpus = torch.cuda.device_count()
            if gpus and here > gpus:
                raise ParameterError(f"parallel is {parallel!r}, but this machine has {gpus} GPUs")
            config.accumulation(processes=processes.total)
        return processes

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


def run_processes(
    processes: Processes, *, module: str, arguments: Sequence[str], folder: Path, look: Callable[[], None]
) -> bool:
    """Run a module in all processes of this machine; returns whether they were stopped.

    Args:
        module: run as by `python -m` with `arguments`; it should call `end_with_parent` first, and
            `keep_fault` around the rest, of which `join_others` is the first.
        folder: for `processes.log`, what they print.
        look: called twice a second while they run, and once after.

    Raises:
        RuntimeError: they failed; with the fault of the first of them that left one.
        KeyboardInterrupt: a second interrupt; the processes were ended.
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
        raise RuntimeError(f"{processes.total} processes: {fault} (all their output: {folder / LOG_FILE})")
    return stop.requested


def _environment(processes: Processes, meeting: str) -> dict[str, str]:
    """Of the processes; `meeting`: a folder by which those of one machine find each other."""
    threads = max(1, torch.get_num_threads() // processes.here)
    shared = {"OMP_NUM_THREADS": str(threads)} | os.environ
    if processes.machines > 1:
        return shared
    loopbacks = (
        name
        for name, addresses in psutil.net_if_addrs().items()
        if any(one.family == socket.AF_INET and one.address == "127.0.0.1" for one in addresses)
    )
    loopback = next(loopbacks, "lo")
    return shared | {
        MEETING_VARIABLE: str(Path(meeting) / "processes"),
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # else torchrun serves a store on all interfaces
        "GLOO_SOCKET_IFNAME": loopback,
        "NCCL_SOCKET_IFNAME": loopback,
    }


def join_others() -> None:
    """Called in each of the processes before it trains: meet the others in a file, as on one machine;
    elsewhere the trainer does it."""
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


_TOUCH = "_touch"  # of a module: its hook


def shard(model: nn.Module) -> None:
    """Share out the weights of a model, in place; each of its layers is gathered by itself. All processes
    must call it, with equal weights."""
    layers = layers_of(model)
    below = {id(weight) for layer in layers for weight in layer.parameters()}

    def names(module: nn.Module, *, without: set[int]) -> list[str]:
        named = module.named_parameters()
        return [name for name, weight in named if weight.requires_grad and id(weight) not in without]

    # All before the first is sharded, which takes other objects for its weights.
    touches = {layer: _Touch(names(layer, without=set())) for layer in layers}
    touches[model] = _Touch(names(model, without=below))
    for module, touch in touches.items():
        module.__dict__[_TOUCH] = touch
        # Before `fully_shard`, so that it runs while the weights are gathered.
        module.register_forward_hook(touch, with_kwargs=True)
        fully_shard(module)
    model.register_load_state_dict_pre_hook(_take_own_shards)


def is_sharded(model: nn.Module) -> bool:
    """Whether `shard` was called with it."""
    return isinstance(model, FSDPModule)


def layers_of(model: nn.Module) -> list[nn.Module]:
    """The modules of the list of modules with the most weights; none without a list."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    sizes = [sum(weight.numel() for weight in module.parameters()) for module in lists]
    return list(lists[sizes.index(max(sizes))]) if lists else []


@contextmanager
def reduction_deferred(model: FSDPModule) -> Iterator[None]:
    """Within, gradients are added up where they are; the processes share them out after the next backward
    pass outside."""
    model.set_requires_gradient_sync(False)
    try:
        yield
    finally:
        model.set_requires_gradient_sync(True)


def full_states(
    model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[dict[str, Any], dict[str, Any]] | tuple[None, None]:
    """The states of a sharded model and of its optimiser, as if they were not sharded, on the CPU; of another
    model None, None. All processes must call it."""
    if not is_sharded(model):
        return None, None
    return tree_map(_full, model.state_dict()), tree_map(_full, optimizer.state_dict())


def share_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module) -> None:
    """Make an optimiser over a sharded model load the state of one that is not, and pass over weights that
    took part in nobody's batch."""
    optimizer.register_load_state_dict_pre_hook(_take_own_moments)
    optimizer.register_step_pre_hook(lambda *_: _drop_unused(model))


def _full(value: Any) -> Any:
    """Of a tensor all of it, on the CPU."""
    whole = value.full_tensor() if isinstance(value, DTensor) else value
    return whole.detach().cpu() if isinstance(whole, Tensor) else whole


def _like(value: Tensor, own: Tensor) -> Tensor:
    """The part of a whole tensor that lies here where `own` is sharded."""
    if not isinstance(own, DTensor) or isinstance(value, DTensor) or value.shape != own.shape:
        return value
    return distribute_tensor(value.to(own.device), own.device_mesh, own.placements, src_data_rank=None)


class _Touch:
    """Hook of a module's forward pass that adds nothing to its output, but of each of its weights that took
    no part in it. `own`: names of the weights of the module that no layer below it has."""

    def __init__(self, own: Sequence[str]) -> None:
        self.own, self.used = own, set[str]()  # since the last update

    def __call__(self, module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], output: Any) -> Any:
        if not (torch.is_grad_enabled() and module.training):
            return output
        reached = _weights_behind(output, stop=(inputs, named))
        for name in self.own:
            weight = module.get_parameter(name)
            if id(weight) in reached:
                self.used.add(name)
            else:
                output = _add_to_first(output, weight.flatten()[0] * 0)
        return output


def _weights_behind(output: Any, *, stop: Any) -> set[int]:
    """`id` of the weights that the tensors of an output were computed from, not by way of those of `stop`."""
    seen, left, weights = {None, *_nodes_of(stop)}, _nodes_of(output), set()
    while left:
        if (node := left.pop()) in seen:
            continue
        seen.add(node)
        if (weight := getattr(node, "variable", None)) is not None:
            weights.add(id(weight))
        left += [before for before, _ in node.next_functions]
    return weights


def _nodes_of(values: Any) -> list[Any]:
    return [value.grad_fn for value in tree_leaves(values) if isinstance(value, Tensor)]


def _add_to_first(output: Any, nothing: Tensor) -> Any:
    if isinstance(output, Tensor):
        return output + nothing.to(output.dtype)
    if isinstance(output, Mapping):
        output["loss"] = _add_to_first(output["loss"], nothing)
        return output
    return (_add_to_first(output[0], nothing), *output[1:])


def _take_own_shards(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    own = dict(module.state_dict())
    state.update({name: _like(value, own[name]) for name, value in state.items() if name in own})


def _take_own_moments(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> dict[str, Any]:
    numbers = [number for group in state["param_groups"] for number in group["params"]]
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    own = dict(zip(numbers, weights, strict=True))
    moments = {
        number: {name: _like(value, own[number]) for name, value in kept.items()}
        for number, kept in state["state"].items()
    }
    return {**state, "state": moments}


def _drop_unused(model: nn.Module) -> None:
    """Take the gradient of zeros from weights that took part in nobody's batches since the last update."""
    modules = [module for module in model.modules() if _TOUCH in module.__dict__]
    touches = [(module, module.__dict__[_TOUCH]) for module in modules]
    weights = [module.get_parameter(name) for module, touch in touches for name in touch.own]
    flags = [name in touch.used for _, touch in touches for name in touch.own]
    used = torch.tensor(flags, dtype=torch.int32, device=weights[0].device)
    dist.all_reduce(used, op=dist.ReduceOp.MAX)
    for weight, flag in zip(weights, used.tolist(), strict=True):
        if not flag:
            weight.grad = None
    for _, touch in touches:
        touch.used.clear()


if __name__ == "__main__":
    from torch.distributed.run import main

    end_with_parent()
    main()
