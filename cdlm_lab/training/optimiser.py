"""Which parameters learn how fast, and which are decayed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from torch import nn

from cdlm_lab.parameters import ParameterError, closest_name


def parameter_groups(
    model: nn.Module,
    *,
    decayed: Collection[str],
    weight_decay: float,
    learning_rate: float,
    factors: Sequence[tuple[str, float]] = (),
) -> list[dict[str, Any]]:
    """Groups for AdamW: one for each pair of (decayed or not, learning-rate factor).

    Args:
        model: parameters that need no gradient are left out.
        decayed: names of the parameters that weight decay applies to.
        weight_decay: for those; 0 for all others.
        learning_rate: of parameters that no factor names.
        factors: (part of a name, factor) pairs.

    Returns:
        Dicts with `params`, `weight_decay`, `lr`. The first has factor 1 even if empty: Trainer logs its
        rate.

    Raises:
        ParameterError: a part that no parameter's name contains; a parameter whose name contains two parts.
    """
    grouped: dict[tuple[float, bool], list[nn.Parameter]] = {(1.0, True): []}
    unused = dict.fromkeys(part for part, _ in factors)
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        matching = [(part, factor) for part, factor in factors if part in name]
        if parts := " and ".join(repr(part) for part, _ in matching) if len(matching) > 1 else "":
            raise ParameterError(
                f"learning_rate_factors: the parameter {name} matches {parts}; keep one of them"
            )
        factor = matching[0][1] if matching else 1.0
        for part, _ in matching:
            unused.pop(part, None)
        grouped.setdefault((factor, name in decayed), []).append(parameter)
    if unused:
        part = next(iter(unused))
        names = {piece for name, _ in model.named_parameters() for piece in name.split(".")}
        raise ParameterError(
            f"learning_rate_factors: no parameter's name contains {part!r}; {closest_name(part, names)}"
        )
    return [
        {"params": parameters, "weight_decay": weight_decay if decay else 0.0, "lr": learning_rate * factor}
        for (factor, decay), parameters in grouped.items()
    ]
