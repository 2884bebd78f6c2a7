"""Cut attention while a model reads: what does it say if no token attends to another document?

`with cutting(model, Cut(), separators=...)` forbids attention between documents, in all layers and heads or
in some, and whatever is read inside the block is read so: in every backend, with gradients. Documents stand
between two separators. A local token outside them, such as `<s>`, goes with the document beside it; a global
one, such as that of a question, keeps its attention, and so joins the documents from one layer to the next.

The control `edges="random"` cuts as many edges, pairs of a query and a key, within documents, drawn from a
seed; if there are not so many, then all but those from a token to itself. What a model says under both tells
whether attention across documents matters, or any attention of that amount.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from cdlm_lab.attention.dense import visible
from cdlm_lab.attention.plan import Plan
from cdlm_lab.attention.weights import layer_numbers, recordable_layers
from cdlm_lab.errors import check_choice

EDGES = ("documents", "random")


@dataclass(frozen=True, kw_only=True)
class Cut:
    """What is cut."""

    edges: str = "documents"  # between documents, or `random`: as many within them
    layers: tuple[int, ...] | None = None  # -1 = last; None = all
    heads: tuple[int, ...] | None = None  # of these layers; None = all
    seed: int = 0  # of `random`

    @classmethod
    def of(cls, given: str | Mapping[str, Any] | Cut | None) -> Cut | None:
        """A cut from `"documents"`, `"random"`, or a dictionary such as `{"layers": [4, 5]}`; None = no cut.
        Raises ValueError for what is none."""
        if given is None or isinstance(given, Cut):
            return given
        wanted = {"edges": given} if isinstance(given, str) else dict(given)
        if unknown := wanted.keys() - cls.__dataclass_fields__.keys():
            known = ", ".join(cls.__dataclass_fields__)
            raise ValueError(f"cut has {sorted(unknown)[0]!r}; it can have {known}")
        check_choice("edges of a cut", wanted.get("edges", EDGES[0]), EDGES)
        for name in ("layers", "heads"):
            if wanted.get(name) is not None:
                wanted[name] = tuple(int(one) for one in wanted[name])
        return cls(**wanted)


@dataclass(eq=False)
class _Reading:
    """A cut of one thread, with the documents of the batch that is read now."""

    cut: Cut
    documents: Tensor | None = None  # (batch, seq), as `documents_of` returns them


# Of the current thread alone, as recorders are: layer -> what is cut in it.
_CUTS: ContextVar[Mapping[nn.Module, _Reading] | None] = ContextVar("cuts", default=None)


@contextmanager
def cutting(model: nn.Module, cut: Cut | None, *, separators: tuple[int, int]) -> Iterator[None]:
    """Inside the block, in this thread, cut the attention of `model`, whose `base_model` is called with
    `input_ids`. `separators`: ids of the tokens before and after each document. None = cut nothing. Raises
    ValueError for layers and heads that there are not, and for a model whose attention is not ours."""
    if cut is None:
        yield
        return
    encoder = model.base_model
    layers = recordable_layers(encoder)
    numbers = layer_numbers(cut.layers, count=len(layers))
    if wrong := [head for head in cut.heads or () if not 0 <= head < layers[0].heads]:
        raise ValueError(f"there is no head {wrong[0]}; the model has {layers[0].heads}, from 0")
    reading = _Reading(cut)
    mine = {**(_CUTS.get() or {}), **{layers[number]: reading for number in numbers}}

    def note_documents(_: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        if _CUTS.get() is mine:  # another thread may read with the same model
            ids = given[0] if given else named["input_ids"]
            reading.documents = documents_of(ids, separators)

    hook = encoder.register_forward_pre_hook(note_documents, with_kwargs=True)
    before = _CUTS.set(mine)
    try:
        yield
    finally:
        _CUTS.reset(before)
        hook.remove()


def documents_of(input_ids: Tensor, separators: tuple[int, int]) -> Tensor:
    """The number n of the document of each token, its separators included; of tokens outside, -1 - n of the
    document beside them.

    Example:
        >>> documents_of(torch.tensor([[0, 8, 5, 9, 8, 6, 9, 2]]), (8, 9))
        tensor([[-1,  0,  0,  0,  1,  1,  1, -2]])
    """
    starts, ends = ((input_ids == one).long() for one in separators)
    number = (starts.cumsum(-1) - 1).clamp(min=0)
    inside = starts.cumsum(-1) > ends.cumsum(-1) - ends
    return torch.where(inside, number, -1 - number)


def is_cut(layer: nn.Module) -> bool:
    """True if attention of this layer is cut in the current thread."""
    return layer in (_CUTS.get() or {})


def cut_plan(layer: nn.Module, plan: Plan) -> Plan:
    """The plan with what is cut of this layer in the current thread; it is made once and kept in the plan."""
    reading = (_CUTS.get() or {}).get(layer)
    if reading is None:
        return plan
    if reading.cut not in plan.kept:
        edges = edges_cut(plan, reading.documents, edges=reading.cut.edges, seed=reading.cut.seed)
        plan.kept[reading.cut] = plan.without(edges, heads=reading.cut.heads)
    return plan.kept[reading.cut]


def edges_cut(plan: Plan, documents: Tensor, *, edges: str, seed: int = 0) -> Tensor:
    """(batch, query, key) bool, True = is cut."""
    present, is_global = plan.masks
    documents = documents.to(plan.order.device)
    documents = torch.where((documents < 0) & ~is_global, -1 - documents, documents)
    known = (documents >= 0)[:, :, None] & (documents >= 0)[:, None, :]
    same = documents[:, :, None] == documents[:, None, :]
    if edges == "documents":
        return known & ~same
    masks = {"attention_mask": present, "global_mask": is_global}
    sees = visible(**masks, window=plan.window)
    sees &= known & present[:, :, None]
    itself = torch.eye(plan.shape[1], dtype=torch.bool, device=sees.device)
    cut = torch.zeros_like(sees)
    for row, across, within in zip(cut, sees & ~same, sees & same & ~itself, strict=True):
        places, generator = within.flatten().nonzero().flatten(), torch.Generator().manual_seed(seed)
        drawn = torch.randperm(len(places), generator=generator)[: int(across.sum())]
        row.view(-1)[places[drawn.to(places.device)]] = True
    return cut
