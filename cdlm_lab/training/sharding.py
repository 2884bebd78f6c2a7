"""A model whose weights, gradients and optimiser state are shared out among processes (FSDP: `fully_shard` of
torch), each layer gathered while it computes.

Losses, updates and checkpoints are those of any other number of processes; a run may go on sharded or not.
Two things that `fully_shard` leaves open are closed here. A weight that took no part in a process's batch, as
the global projections where no token is global, has no gradient there, and the processes would add up
different lists of gradients: here it has one of zeros. And where it took part in no process's batch it has
none again before the update, as with one process, so that it is not decayed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.utils._pytree import tree_leaves, tree_map

_USED = "_names_of_weights_used"  # of a module: since the last update


def shard(model: nn.Module) -> None:
    """Share out the weights of a model, in place; each of its layers is gathered by itself. All processes
    must call it, with equal weights."""
    for module in (*layers_of(model), model):
        # Before `fully_shard`, so that it runs while the weights are gathered.
        module.register_forward_hook(_touch_weights, with_kwargs=True)
        fully_shard(module)
    model.register_load_state_dict_pre_hook(_take_own_shards)


def is_sharded(model: nn.Module) -> bool:
    """Whether `shard` was called with it."""
    return isinstance(model, FSDPModule)


def layers_of(model: nn.Module) -> list[nn.Module]:
    """The modules of the list of modules with the most weights; none without a list."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    return list(max(lists, key=_size, default=()))


def full_states(
    model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[dict[str, Any], dict[str, Any]] | tuple[None, None]:
    """The states of a sharded model and of its optimiser as `full_state`; of another model None, None."""
    if not is_sharded(model):
        return None, None
    return full_state(model.state_dict()), full_state(optimizer.state_dict())


@contextmanager
def reduction_deferred(model: FSDPModule) -> Iterator[None]:
    """Within, gradients are added up where they are; the processes share them out after the next backward
    pass outside."""
    model.set_requires_gradient_sync(False)
    try:
        yield
    finally:
        model.set_requires_gradient_sync(True)


def full_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a sharded model or of its optimiser, as if it were not sharded, on the CPU. All processes
    must call it."""
    return tree_map(lambda value: _full(value) if isinstance(value, Tensor) else value, dict(state))


def share_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module) -> None:
    """Make an optimiser over a sharded model load the state of one that is not, and pass over weights that
    took part in nobody's batch."""
    optimizer.register_load_state_dict_pre_hook(_take_own_moments)
    optimizer.register_step_pre_hook(lambda *_: _drop_unused(model))


def _size(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


def _full(value: Tensor) -> Tensor:
    whole = value.full_tensor() if isinstance(value, DTensor) else value
    return whole.detach().cpu()


def _like(value: Tensor, own: Tensor) -> Tensor:
    """The part of a whole tensor that lies here where `own` is sharded."""
    if not isinstance(own, DTensor) or isinstance(value, DTensor) or value.shape != own.shape:
        return value
    return distribute_tensor(value.to(own.device), own.device_mesh, own.placements, src_data_rank=None)


def _touch_weights(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], output: Any) -> Any:
    """Add nothing to an output, but of each weight that took no part in it and that no layer below has."""
    if not (torch.is_grad_enabled() and module.training):
        return output
    below = {id(weight) for layer in layers_of(module) for weight in layer.parameters()}
    reached = _weights_behind(output, stop=(inputs, named))
    used = module.__dict__.setdefault(_USED, set())
    for name, weight in module.named_parameters():
        if not weight.requires_grad or id(weight) in below:
            continue
        if id(weight) in reached:
            used.add(name)
        else:
            output = _add_to_first(output, weight.flatten()[0] * 0)
    return output


def _weights_behind(output: Any, *, stop: Any) -> set[int]:
    """`id` of the weights that the tensors of an output were computed from, not by way of those of `stop`."""
    seen = set(_nodes_of(stop))
    left = [node for node in _nodes_of(output) if node not in seen]
    found = set()
    while left:
        node = left.pop()
        if node in seen:
            continue
        seen.add(node)
        if (weight := getattr(node, "variable", None)) is not None:
            found.add(id(weight))
        left += [before for before, _ in node.next_functions if before is not None]
    return found


def _nodes_of(values: Any) -> list[Any]:
    tensors = [value for value in tree_leaves(values) if isinstance(value, Tensor)]
    return [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]


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
    modules = [*layers_of(model), model]
    named = [(name, weight, module) for module in modules for name, weight in module.named_parameters()]
    flags = [name in module.__dict__.get(_USED, ()) for name, _, module in named]
    used = torch.tensor(flags, dtype=torch.int32, device=named[0][1].device)
    dist.all_reduce(used, op=dist.ReduceOp.MAX)
    kept = {id(weight) for (_, weight, _), flag in zip(named, used.tolist(), strict=True) if flag}
    for weight in model.parameters():
        if id(weight) not in kept:
            weight.grad = None
    for module in modules:
        module.__dict__.pop(_USED, None)
