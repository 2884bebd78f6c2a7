"""A model whose weights, gradients and optimiser state are shared out among processes (FSDP: `fully_shard` of
torch), each layer gathered while it computes.

Losses, updates and checkpoints are those of any other number of processes; a run may go on sharded or not.
Two things that `fully_shard` leaves open are closed here. A weight that took no part in a process's batch, as
the global projections where no token is global, has no gradient there, and the processes would add up
different lists of gradients: here it has one of zeros. And where it took part in no process's batch it has
none again before the update, as with one process, so that it is not decayed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.utils._pytree import tree_leaves, tree_map

_TOUCH = "_touch"  # of a module: its hook


def shard(model: nn.Module) -> None:
    """Share out the weights of a model, in place; each of its layers is gathered by itself. All processes
    must call it, with equal weights."""
    layers = layers_of(model)
    below = {id(weight) for layer in layers for weight in layer.parameters()}
    # All before the first is sharded, which takes other objects for its weights.
    touches = {layer: _Touch(_names(layer, without=set())) for layer in layers}
    touches[model] = _Touch(_names(model, without=below))
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


def _names(module: nn.Module, *, without: set[int]) -> list[str]:
    """Of the weights that learn, but for those with these `id`s."""
    named = module.named_parameters()
    return [name for name, weight in named if weight.requires_grad and id(weight) not in without]


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


class _Touch:
    """Hook of a module's forward pass that adds nothing to its output, but of each of its weights that took
    no part in it.

    Args:
        own: names of the weights of the module that no layer below it has.
    """

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
