"""The cross-document language model: an encoder whose head computes masked tokens only; and the losses that
this and the other models are trained with.

The weights are those of Hugging Face's `LongformerForMaskedLM` or `ModernBertForMaskedLM`, and checkpoints of
either load in the other; only the forward pass with labels differs. The vocabulary projection then runs on
the masked tokens only, 15% of all, which at 4,096 tokens saves 0.7 GB of logits per example and for a small
encoder most of the arithmetic. Without labels it returns the logits of all tokens, as Hugging Face does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from transformers import (
    LongformerForMaskedLM,
    LongformerModel,
    ModernBertForMaskedLM,
    ModernBertModel,
    PretrainedConfig,
    PreTrainedModel,
    initialization,
)
from transformers.models.longformer.modeling_longformer import LongformerLMHead
from transformers.utils import ModelOutput

from cdlm_lab.attention.layer import rows_of_products
from cdlm_lab.examples.masking import NOT_MASKED

# With a vocabulary of 50,000, 16 rows stay in a core's cache; 2,048 keep a GPU busy in 400 MB.
ROWS_AT_ONCE = 16
ROWS_AT_ONCE_ELSEWHERE = 2048
COLUMNS = 64  # of the tiles in which a GPU multiplies


def word_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of each row in natural logarithms, (rows,) float32, summed in float32 whatever the dtype
    of `logits` (rows, vocab); `labels`: (rows,) int64.

    PyTorch's own loss holds logits, their logarithms and two gradients in float32, four times (rows, vocab);
    this one holds the gradient alone, in the dtype of `logits`, and processes a few rows at a time.
    """
    losses: Tensor = _WordLosses.apply(logits, labels)
    return losses


def masked_losses(head: Callable[[Tensor], Tensor], states: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The cross entropy of masked tokens, (n_masked,) float32 as in `word_losses`, and their logits
    (n_masked, vocab), from their `states` (n_masked, dim) and `labels` (n_masked,) int64, by the `head` of a
    language model."""
    missing = -len(labels) % rows_of_products()
    if missing:
        states, labels = (
            nn.functional.pad(states, (0, 0, 0, missing)),
            nn.functional.pad(labels, (0, missing)),
        )
    wide = states.is_cuda and isinstance(head, LongformerLMHead)
    logits = wide_logits(head, states) if wide else head(states)
    losses, count = word_losses(logits, labels), len(labels) - missing
    return losses[:count], logits[:count, : head.decoder.out_features if wide else None]


def wide_logits(head: LongformerLMHead, states: Tensor) -> Tensor:
    """The logits (rows, vocab) of a head for `states` (rows, dim), with further words up to a multiple of
    COLUMNS, each with the logit -inf: a GPU multiplies whole tiles, and RoBERTa has 50,265 words."""
    missing = -head.decoder.out_features % COLUMNS
    weight = nn.functional.pad(head.decoder.weight, (0, 0, 0, missing))
    bias = nn.functional.pad(head.decoder.bias, (0, missing), value=-torch.inf)
    return nn.functional.linear(head.layer_norm(nn.functional.gelu(head.dense(states))), weight, bias)


class _WordLosses(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor) -> Tensor:
        ctx.save_for_backward(logits, labels)
        losses = logits.new_empty(len(labels), dtype=torch.float32)
        for rows in _rows_at_once(logits):
            losses[rows] = nn.functional.cross_entropy(logits[rows].float(), labels[rows], reduction="none")
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_losses: Tensor) -> tuple[Tensor, None]:
        """The gradient of a row: its probabilities, less 1 at the label, times the gradient of its loss."""
        logits, labels = ctx.saved_tensors
        gradient = torch.empty_like(logits)
        for rows in _rows_at_once(logits):
            share = logits[rows].softmax(dim=-1, dtype=torch.float32)
            share.scatter_add_(1, labels[rows, None], share.new_full((len(share), 1), -1.0))
            gradient[rows] = share.mul_(grad_losses[rows, None])
        return gradient, None


def _rows_at_once(logits: Tensor) -> Iterator[slice]:
    most = ROWS_AT_ONCE if logits.device.type == "cpu" else ROWS_AT_ONCE_ELSEWHERE
    for start in range(0, len(logits), most):
        yield slice(start, start + most)


Items = Tensor | int | None  # number in the whole effective batch, as the training loop counts


def over_items(total: Tensor, *, items: Tensor | int, num_items_in_batch: Items) -> Tensor:
    """Divide a summed loss by its number of items in the whole effective batch, so that accumulated
    micro-batches and several processes add up to the loss of the full batch; without items it is `total`,
    which is then 0. `items`: the number in this batch, used where the effective batch's number is None."""
    count = items if num_items_in_batch is None else num_items_in_batch
    return total / (count.clamp(min=1).to(total.device) if isinstance(count, Tensor) else max(count, 1))


def label_loss(logits: Tensor, labels: Tensor | None, num_items_in_batch: Items) -> Tensor | None:
    """The summed cross entropy of `labels` (...,), -100 = none, divided by their number in the effective
    batch; None without labels. `logits`: (..., classes)."""
    if labels is None:
        return None
    total = nn.functional.cross_entropy(
        logits.flatten(0, -2), labels.flatten().long(), ignore_index=NOT_MASKED, reduction="sum"
    )
    return over_items(total, items=(labels != NOT_MASKED).sum(), num_items_in_batch=num_items_in_batch)


def pair_loss(logits: Tensor, labels: Tensor | None, num_items_in_batch: Items) -> Tensor | None:
    """The summed binary cross entropy of pairs, divided by their number in the effective batch; logits and
    labels (0 or 1) are (pairs,). None without labels."""
    if labels is None:
        return None
    total = nn.functional.binary_cross_entropy_with_logits(logits, labels.float(), reduction="sum")
    return over_items(total, items=len(labels), num_items_in_batch=num_items_in_batch)


@dataclass
class MaskedTokensOutput(ModelOutput):
    """What `CrossDocumentLM` returns when it is given labels."""

    loss: Tensor | None = None  # (), float32; summed cross entropy over the number of masked tokens
    logits: Tensor | None = None  # (n_masked, vocab), ordered by row, then by position
    token_loss: Tensor | None = None  # (n_masked,), float32, natural logarithm, no gradient, in that order
    hidden_states: tuple[Tensor, ...] | None = None  # this and the next two: as in Hugging Face, on request
    attentions: tuple[Tensor, ...] | None = None
    global_attentions: tuple[Tensor, ...] | None = None


def masked_tokens_output(
    head: Callable[[Tensor], Tensor], encoded: Any, labels: Tensor, *, places: Tensor | None, items: Items
) -> MaskedTokensOutput:
    """The output of a language model for what its encoder returned, by its `head`. `labels`: (batch, seq);
    `places`: (n_masked,) long, where they are in the flattened batch; None = they are looked for, for which a
    GPU waits."""
    if places is None:
        places = (labels.flatten() != NOT_MASKED).nonzero().flatten()
    states, wanted = (of.flatten(0, 1).index_select(0, places) for of in (encoded.last_hidden_state, labels))
    token_loss, logits = masked_losses(head, states, wanted)
    return MaskedTokensOutput(
        loss=over_items(token_loss.sum(), items=len(wanted), num_items_in_batch=items),
        logits=logits,
        token_loss=token_loss.detach(),
        hidden_states=encoded.hidden_states,
        attentions=encoded.attentions,
        global_attentions=getattr(encoded, "global_attentions", None),
    )


class _MaskedTokensLM:
    """A masked language model over packed documents (CDLM, section 2.2): what those of all encoders share.

    Subclasses say what an encoder is; nothing else that opens, trains or reads a model asks for its kind.
    """

    plain_class: type[PreTrainedModel]  # of Hugging Face's, with the same weights
    new_encoder: Callable[[PretrainedConfig], PreTrainedModel]  # without pooler
    hidden_dropout: tuple[str, ...]  # names in the config, and under Longformer's, by which cost is estimated
    attention_dropout: tuple[str, ...]
    global_projections: bool  # True = global tokens have their own
    inner_matrices: int  # of a feed-forward block
    key_mapping: ClassVar[Mapping[str, str] | None] = None  # names of weights in a model of a task -> here
    # the training loop then counts the masked tokens of the whole effective batch
    accepts_loss_kwargs = True

    def forward(
        self,
        input_ids: Tensor | None = None,  # (batch, seq)
        attention_mask: Tensor | None = None,  # (batch, seq), 1 = token, 0 = padding; None = no padding
        global_attention_mask: Tensor | None = None,  # (batch, seq), 1 = global; None = none
        labels: Tensor | None = None,  # (batch, seq), the original token where masked, else -100
        masked_places: Tensor | None = None,  # (n_masked,) long, where labels are in the flattened batch
        num_items_in_batch: Tensor | int | None = None,  # masked tokens in the whole effective batch
        **encoder_arguments: Any,  # others that the encoder takes (`plan`, `token_type_ids`, ...)
    ) -> Any:
        """A `MaskedTokensOutput` if there are labels, else Hugging Face's output with the logits of all
        tokens. A batch without masked tokens has loss 0 and zero gradients."""
        masks = {"attention_mask": attention_mask, "global_attention_mask": global_attention_mask}
        if labels is None:
            return super().forward(input_ids, **masks, **encoder_arguments)
        encoded = self.base_model(input_ids, **masks, **encoder_arguments | {"return_dict": True})
        form = {"places": masked_places, "items": num_items_in_batch}
        return masked_tokens_output(self.lm_head, encoded, labels, **form)

    def save_pretrained(self, save_directory: str | PathLike[str], **options: Any) -> None:
        """Save as Hugging Face does, but with its plain class in the config, which can load these weights."""
        super().save_pretrained(save_directory, **options)
        self.config.architectures = [self.plain_class.__name__]
        if options.get("is_main_process", True):
            self.config.save_pretrained(save_directory)


class CrossDocumentLM(_MaskedTokensLM, LongformerForMaskedLM):
    """Masked language model over packed documents, on a Longformer.

    Every weight gets a gradient from a batch with both local and global masked tokens. Without global tokens
    the global projections get none (None or zero, by the attention backend); where all masked tokens are
    global, as in CDLM, the last layer's local queries get none, for no local token's output is used there.
    """

    plain_class = LongformerForMaskedLM
    new_encoder = partial(LongformerModel, add_pooling_layer=False)
    hidden_dropout, attention_dropout = ("hidden_dropout_prob",), ("attention_probs_dropout_prob",)
    global_projections, inner_matrices = True, 2

    def _init_weights(self, module: nn.Module) -> None:
        """Zero the bias of a head that a checkpoint lacks; Hugging Face leaves it as uninitialised memory."""
        super()._init_weights(module)
        if module is self.lm_head:
            initialization.zeros_(module.bias)


class CrossDocumentModernBert(_MaskedTokensLM, ModernBertForMaskedLM):
    """Masked language model over packed documents, on a ModernBERT."""

    plain_class = ModernBertForMaskedLM
    new_encoder = ModernBertModel
    hidden_dropout = ("mlp_dropout", "embedding_dropout", "hidden_dropout_prob")
    attention_dropout = ("attention_dropout", "attention_probs_dropout_prob")
    global_projections, inner_matrices = False, 3
    key_mapping: ClassVar = {r"^longformer\.": "model."}

    def lm_head(self, states: Tensor) -> Tensor:
        """Logits (..., vocab) of last hidden states (..., dim)."""
        return self.decoder(self.head(states))


# `model_type` of the encoders that read with CDLM's masks -> their language model
LANGUAGE_MODELS = {"longformer": CrossDocumentLM, "modernbert": CrossDocumentModernBert}
POSITIONS_FROM_0 = ("bert", "modernbert")  # values of `model_type`


def set_dropout(config: PretrainedConfig, *, hidden: float | None, attention: float | None) -> None:
    """Set the dropout of hidden states and of attention weights in a config; None = as it is."""
    kind = LANGUAGE_MODELS[config.model_type]
    for names, rate in ((kind.hidden_dropout, hidden), (kind.attention_dropout, attention)):
        for name in names:
            setattr(config, name, getattr(config, names[0]) if rate is None else rate)


def longest(config: PretrainedConfig) -> int:
    """The most tokens that a model of this config reads: RoBERTa and Longformer count positions from behind
    that of padding, BERT and ModernBERT from 0."""
    first = 0 if config.model_type in POSITIONS_FROM_0 else (config.pad_token_id or 0) + 1
    return int(config.max_position_embeddings - first)
