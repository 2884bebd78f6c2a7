"""CDLM's masks on ModernBERT (Warner et al. 2024), as an encoder whose attention takes a mask: no conversion.

Every layer has the mask of Longformer's local + global attention (`attention.dense.visible`): in ModernBERT
each third layer sees the whole text and the others 64 tokens on each side, here all see half a `window` and
the global tokens, so that variants differ in their global tokens alone. A global token attends with the same
projections as others: there are no separate ones, as Longformer has them, so none to reset or to copy.

A checkpoint is taken as it is, and one that is saved opens in `AutoModelForMaskedLM`, with ModernBERT's own
masks. SDPA and eager attention compute the whole matrix, so their time grows with the square of the length;
FlexAttention skips blocks that nobody sees.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

from torch import Tensor, nn
from transformers import (
    ModernBertConfig,
    ModernBertForMaskedLM,
    ModernBertModel,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.masking_utils import create_bidirectional_mask

from cdlm_lab.encoders.language_model import CrossDocumentLM, MaskedTokensOutput, masked_tokens_output

TAKEN = ("modernbert",)  # values of `model_type`
# Ways to compute attention, as `load_encoder` names them -> transformers' names.
IMPLEMENTATIONS = {"auto": "sdpa", "sparse": "sdpa", "flex": "flex_attention", "dense": "eager"}


class LocalGlobalModernBert(ModernBertModel):
    """ModernBERT with local + global attention; `config.attention_window` has the width of each layer."""

    def forward(
        self,
        input_ids: Tensor,  # (batch, seq)
        attention_mask: Tensor | None = None,  # (batch, seq), 1 = token, 0 = padding; None = no padding
        global_attention_mask: Tensor | None = None,  # (batch, seq), 1 = global; None = none
        plan: Any = None,  # of Longformer's attention; not read
        **others: Any,
    ) -> Any:
        """Hugging Face's output."""
        half, is_global = self.config.attention_window[0] // 2, global_attention_mask
        if is_global is not None:
            is_global = (
                is_global.bool() if attention_mask is None else is_global.bool() & attention_mask.bool()
            )

        def visible(batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            near = (query - key).abs() <= half
            return near if is_global is None else near | is_global[batch, query] | is_global[batch, key]

        mask = create_bidirectional_mask(
            config=self.config,
            inputs_embeds=self.embeddings.tok_embeddings.weight[:1].expand(*input_ids.shape, -1),
            attention_mask=attention_mask,
            and_mask_function=visible,
        )
        masks = {"full_attention": mask, "sliding_attention": mask}
        return super().forward(input_ids=input_ids, attention_mask=masks, **others)


class CrossDocumentModernBert(ModernBertForMaskedLM):
    """Masked language model over packed documents, as `CrossDocumentLM`."""

    accepts_loss_kwargs = True  # the training loop then counts the masked tokens of the effective batch

    def __init__(self, config: ModernBertConfig) -> None:
        super().__init__(config)
        self.model.__class__ = LocalGlobalModernBert  # of the same weights

    def lm_head(self, states: Tensor) -> Tensor:
        """Logits (..., vocab) of last hidden states (..., dim)."""
        return self.decoder(self.head(states))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,  # (batch, seq), the original token where masked, else -100
        masked_places: Tensor | None = None,  # (n_masked,) long, where labels are in the flattened batch
        num_items_in_batch: Tensor | int | None = None,  # masked tokens in the whole effective batch
        **others: Any,
    ) -> MaskedTokensOutput:
        """A `MaskedTokensOutput`: with labels the logits of the masked tokens alone, else of all."""
        encoded = self.model(input_ids, attention_mask, global_attention_mask, **others)
        if labels is None:
            return MaskedTokensOutput(logits=self.lm_head(encoded.last_hidden_state))
        form = {"places": masked_places, "items": num_items_in_batch}
        return masked_tokens_output(self.lm_head, encoded, labels, **form)

    def save_pretrained(self, save_directory: str | PathLike[str], **options: Any) -> None:
        """Save as Hugging Face does, with its plain class in the config."""
        super().save_pretrained(save_directory, **options)
        self.config.architectures = [ModernBertForMaskedLM.__name__]
        if options.get("is_main_process", True):
            self.config.save_pretrained(save_directory)


def configured(
    config: PretrainedConfig, *, window: int, dropout: float | None, attention_dropout: float | None
) -> PretrainedConfig:
    """The config with one window for all layers, and with dropout rates; None = the checkpoint's."""
    config.attention_window = [window] * config.num_hidden_layers
    if dropout is not None:
        config.mlp_dropout = config.embedding_dropout = dropout
    if attention_dropout is not None:
        config.attention_dropout = attention_dropout
    # under Longformer's names too, by which the cost of training is estimated
    config.hidden_dropout_prob, config.attention_probs_dropout_prob = (
        config.mlp_dropout,
        config.attention_dropout,
    )
    return config


def language_model_class(config: PretrainedConfig) -> type[PreTrainedModel]:
    """The class of a masked language model of this config."""
    return CrossDocumentModernBert if config.model_type in TAKEN else CrossDocumentLM


def longest(config: PretrainedConfig) -> int:
    """The most tokens that a model of this config reads: RoBERTa and Longformer count positions from behind
    that of padding, ModernBERT has rotary ones."""
    first = 0 if config.model_type in TAKEN else (config.pad_token_id or 0) + 1
    return int(config.max_position_embeddings - first)


def use_attention(model: nn.Module, attention: str) -> None:
    """Choose how the attention of an encoder of this module is computed, in place."""
    for module in model.modules():
        if isinstance(module, LocalGlobalModernBert):
            module.config._attn_implementation = IMPLEMENTATIONS[attention]
