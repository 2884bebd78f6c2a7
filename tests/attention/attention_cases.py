"""Batches of awkward sizes, packed projections, a small Longformer, and a count of an operation's memory."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LEDConfig, LEDForConditionalGeneration, LongformerConfig, PreTrainedModel

from cdlm_lab.attention.plan import Plan, Projections

HEADS, DIM = 2, 8
VOCABULARY = 60
# (batch, seq, window, proportion of global tokens, proportion of padding in the last row)
SHAPES = {
    "no globals": (2, 50, 8, 0.0, 0.3),
    "ragged globals": (3, 61, 8, 0.2, 0.4),
    "all global": (2, 20, 4, 1.0, 0.2),
    "one token": (1, 1, 2, 0.0, 0.0),
    "window wider than the text": (2, 30, 128, 0.1, 0.0),
    "several blocks": (2, 300, 64, 0.15, 0.2),
    "length no multiple of the window": (1, 131, 32, 0.05, 0.0),
    "more globals than are scored at once": (1, 200, 16, 0.9, 0.0),
}


def setting_of(shape: str) -> dict[str, Any]:
    """Return masks and window; in batches of 3, one row has no global token, one padding in the middle."""
    batch, seq, window, globals_, padding = SHAPES[shape]
    generator = torch.Generator().manual_seed(batch * seq)
    present = torch.ones(batch, seq, dtype=torch.bool)
    if padding:
        present[-1, round(seq * (1 - padding)) :] = False
    is_global = torch.rand(batch, seq, generator=generator) < globals_
    if batch > 2:
        is_global[0] = False
        present[1, 5:15] = False
    return {"attention_mask": present, "global_mask": is_global & present, "window": window}


def inputs_of(batch: int, seq: int, *, dtype: torch.dtype = torch.float64) -> Projections:
    """Return random projections (batch, seq, head, dim), which are leaves that require gradients."""
    shape, generator = (batch, seq, HEADS, DIM), torch.Generator().manual_seed(seq)
    made = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in Projections._fields)
    return Projections(*(tensor.to(dtype).requires_grad_() for tensor in made))


def packed(projections: Projections, plan: Plan) -> Projections:
    orders = (plan.local_order, plan.order, plan.order, plan.global_order, plan.order, plan.order)
    return Projections(*(one.flatten(0, 1)[order] for one, order in zip(projections, orders, strict=True)))


def unpacked(outputs: Iterable[Tensor], plan: Plan) -> Tensor:
    of_locals, of_globals = outputs
    empty = of_locals.new_zeros(plan.shape[0] * plan.shape[1], *of_locals.shape[1:])
    full = empty.index_copy(0, plan.local_order, of_locals).index_copy(0, plan.global_order, of_globals)
    return full.unflatten(0, plan.shape)


def longformer(model_class: Callable[..., PreTrainedModel], *, std: float = 0.2, **changes: Any) -> Any:
    """Return a small model in eval mode. Weights have a larger standard deviation than the usual 0.02, with
    which attention would be nearly uniform, and comparisons would say little."""
    sizes = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 48, "attention_window": [8, 8, 16], "max_position_embeddings": 140}
    dropout = {"attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0}
    options = {"add_pooling_layer": False} if model_class.__name__ == "LongformerModel" else {}
    torch.manual_seed(0)
    config = LongformerConfig(**sizes | dropout | {"pad_token_id": 1} | changes)
    return _drawn(model_class(config, **options), std)


def led() -> LEDForConditionalGeneration:
    """Such as PRIMERA: its encoder has Longformer's attention, its decoder none of it."""
    sizes = {"encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_layers": 1}
    sizes |= {"decoder_attention_heads": 2, "decoder_ffn_dim": 24, "vocab_size": VOCABULARY, "d_model": 16}
    sizes |= {"max_encoder_position_embeddings": 80, "max_decoder_position_embeddings": 80}
    torch.manual_seed(0)
    config = LEDConfig(**sizes, attention_window=[8, 16], pad_token_id=1)
    return _drawn(LEDForConditionalGeneration(config), 0.2)


def _drawn(model: PreTrainedModel, std: float) -> Any:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, std)
    return model.eval()


class _Watched(TorchDispatchMode):
    """Context in which each operation is noted with what it returns."""

    def __torch_dispatch__(
        self, function: Callable, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        result = function(*args, **(kwargs or {}))
        self.note(function, result)
        return result


class LargestTensor(_Watched):
    """Context that records the number of elements of the largest tensor that any operation returns."""

    numbers = 0

    def note(self, function: Callable, result: object) -> None:
        if isinstance(result, Tensor):
            self.numbers = max(self.numbers, result.numel())


class BytesWritten(_Watched):
    """Context that counts the bytes of all tensors that operations make or change, views aside: of all
    together, and of the largest."""

    bytes = largest = 0

    def note(self, function: Callable, result: object) -> None:
        arguments = function._schema.arguments
        if not any(one.alias_info and not one.alias_info.is_write for one in arguments):
            written = result if isinstance(result, tuple | list) else (result,)
            sizes = [one.numel() * one.element_size() for one in written if isinstance(one, Tensor)]
            self.bytes += sum(sizes)
            self.largest = max(self.largest, *sizes, 0)
