"""Several processes that train one model, each with the whole model or with a share of it; started by
`torchrun` under a process that waits for them, such as the kernel of a notebook.

They end when it ends, in whatever way: each checks twice a second whether its parent still runs. If it is
interrupted it stops them, so that they finish their step and leave a checkpoint. Those on one machine find
each other through files in a folder that only this user may read, and listen only on the loopback interface.
torchrun by itself listens on all interfaces and unpickles what it is sent there; with several machines that
is so, and they must be in a network where everybody is trusted.

A sharded model (FSDP: `fully_shard` of torch) has the losses, updates and checkpoints of any other. A weight
not used in a process's batch, such as the global projections where no token is global, would have no gradient
there, and the processes would add up different lists of gradients: here it gets a gradient of zeros. If no
process's batch used it, that is removed before the update, so that it is not decayed, as with one process.
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
_FAULT_FILE = "fault-{}.txt"  # written by a process that fails; its rank is filled in
_WRITTEN = re.compile(r"(ddp|fsdp) (\d+)(?: on (\d+) machines at (\S+:\d+))?")
_PATIENCE = 20  # seconds to wait for killed processes to end


@dataclass(frozen=True, kw_only=True)
class Processes:
    """How many processes train, and where."""

    sharded: bool = False  # False = DDP, each has all weights; True = FSDP, each has a share
    here: int = 1  # on each machine, one for each of its GPUs
    machines: int = 1  # number of machines; each runs the same, in a shared run folder
    meeting: str = ""  # `host:port` of one of several machines, where they find each other

    @property
    def total(self) -> int:
        """The number of processes on all machines."""
        return self.here * self.machines

    @property
    def in_words(self) -> str:
        """A description for display."""
        kind = "which share out the weights (FSDP)" if self.sharded else "each with all weights (DDP)"
        where = f" on {self.machines} machines" if self.machines > 1 else ""
        return f"{self.total} processes{where}, {kind}"

    @classmethod
    def of(cls, parallel: str, *, config: TrainingConfig | None = None) -> Processes:
        """Parse `ddp 4`, `fsdp 4`, `fsdp 8 on 2 machines at host:29500`, or "" for this process alone.

        Raises ParameterError for anything else; given the `config` of a training to be started here, also for
        more processes than GPUs, where there is a GPU, and for a batch size that they cannot share.
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
        """The command that starts them: `torchrun`, ending with its parent. `file`: for the rendezvous of the
        processes on one machine; it need not exist."""
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
            processes.command(module, [*arguments], file=Path(meeting) / "launcher"),
            env=_environment(processes, meeting) | {STOP_FILE_VARIABLE: str(stop_file)},
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
        raise RuntimeError(f"{processes.total} processes: {fault} (all their output: {folder / LOG_FILE})")
    return stop.requested


def _environment(processes: Processes, meeting: str) -> dict[str, str]:
    """The environment of the processes; `meeting`: a folder for the rendezvous of those on one machine."""
    threads = str(max(1, torch.get_num_threads() // processes.here))  # also where a grid has set how many
    shared = os.environ | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
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
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # otherwise torchrun serves a store on all interfaces
        "GLOO_SOCKET_IFNAME": loopback,
        "NCCL_SOCKET_IFNAME": loopback,
    }


def join_others() -> None:
    """Called in each process before it trains: join the others through a file, if all are on one machine;
    otherwise the trainer does it."""
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


_TOUCH = "_touch"  # attribute of a module with its hook


def shard(model: nn.Module) -> None:
    """Shard the weights of a model over the processes, in place, layer by layer. All processes must call it,
    with equal weights."""
    layers = layers_of(model)
    below = {id(weight) for layer in layers for weight in layer.parameters()}

    def names(module: nn.Module, *, without: set[int]) -> list[str]:
        named = module.named_parameters()
        return [name for name, weight in named if weight.requires_grad and id(weight) not in without]

    # All created before sharding begins, which replaces the weight objects.
    touches = {layer: _Touch(names(layer, without=set())) for layer in layers}
    touches[model] = _Touch(names(model, without=below))
    for module, touch in touches.items():
        module.__dict__[_TOUCH] = touch
        # Before `fully_shard`, so that it runs while the weights are gathered.
        module.register_forward_hook(touch, with_kwargs=True)
        fully_shard(module)
    model.register_load_state_dict_pre_hook(_take_own_shards)


def is_sharded(model: nn.Module) -> bool:
    """Whether `shard` was called on the model."""
    return isinstance(model, FSDPModule)


def layers_of(model: nn.Module) -> list[nn.Module]:
    """The modules of the module list with the most weights; empty if there is no module list."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    sizes = [sum(weight.numel() for weight in module.parameters()) for module in lists]
    return list(lists[sizes.index(max(sizes))]) if lists else []


@contextmanager
def reduction_deferred(model: FSDPModule) -> Iterator[None]:
    """Inside the block, gradients are accumulated locally; the processes reduce them after the next backward
    pass outside of it."""
    model.set_requires_gradient_sync(False)
    try:
        yield
    finally:
        model.set_requires_gradient_sync(True)


def full_states(
    model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[dict[str, Any], dict[str, Any]] | tuple[None, None]:
    """The states of a sharded model and of its optimiser, gathered as if they were not sharded, on the CPU;
    None, None for another model. All processes must call it."""
    if not is_sharded(model):
        return None, None
    return tree_map(_full, model.state_dict()), tree_map(_full, optimizer.state_dict())


def share_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module) -> None:
    """Let an optimiser over a sharded model load the state of an unsharded one, and skip weights that no
    process's batch used."""
    optimizer.register_load_state_dict_pre_hook(_take_own_moments)
    optimizer.register_step_pre_hook(lambda *_: _drop_unused(model))


def _full(value: Any) -> Any:
    """A tensor gathered from all processes, on the CPU; any other value unchanged."""
    whole = value.full_tensor() if isinstance(value, DTensor) else value
    return whole.detach().cpu() if isinstance(whole, Tensor) else whole


def _like(value: Tensor, own: Tensor) -> Tensor:
    """This process's part of a whole tensor if `own` is sharded."""
    if not isinstance(own, DTensor) or isinstance(value, DTensor) or value.shape != own.shape:
        return value
    return distribute_tensor(value.to(own.device), own.device_mesh, own.placements, src_data_rank=None)


class _Touch:
    """Forward hook of a module that adds 0 times each unused weight to its output, so that all get a
    gradient. `own`: names of the module's weights that no layer below it has."""

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
    """The `id` of each weight that an output was computed from, except by way of tensors in `stop`."""
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
    """Remove the zero gradient of weights that no process's batches have used since the last update."""
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
