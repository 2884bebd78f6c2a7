"""The cross-document language model: Longformer with a masked-language-model head that reads masked
tokens only.

The weights are those of Hugging Face's `LongformerForMaskedLM`, and its checkpoints and ours load in
both; only the forward with labels differs. The vocabulary projection then runs on the masked tokens, 15%
of all, which at 4,096 tokens saves 0.7 GB of logits an example and for a small encoder most of the
arithmetic. Without labels it returns the logits of all tokens, as Hugging Face does.

The loss is divided by `num_items_in_batch` where the trainer gives it, the number of masked tokens in the
whole effective batch, so that accumulated micro-batches and several processes add up to the loss of the
full batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

from torch import Tensor, nn
from transformers import LongformerForMaskedLM, initialization
from transformers.utils import ModelOutput

from cdlm_lab.models.loss import over_items, word_losses

NOT_MASKED = -100
PLAIN_ARCHITECTURE = "LongformerForMaskedLM"


@dataclass
class MaskedTokensOutput(ModelOutput):
    """What `CrossDocumentLM` returns when it is given labels.

    Attributes:
        loss: (), float32; summed cross entropy of the masked tokens over their number.
        logits: (n_masked, vocab), of the masked tokens alone, row after row and in a row by position.
        token_loss: (n_masked,), float32, natural logarithm, no gradient, in the same order.
        hidden_states, attentions, global_attentions: Hugging Face's, when asked for.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    token_loss: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    global_attentions: tuple[Tensor, ...] | None = None


class CrossDocumentLM(LongformerForMaskedLM):
    """Masked language model over packed documents (CDLM, section 2.2).

    Every weight gets a gradient from a batch whose masked tokens are partly global. Without global tokens the
    global projections get none (None or zero, by the attention backend); where all masked tokens are global,
    as in CDLM, the last layer's local queries get none, for nothing is read from local tokens there.
    """

    # transformers.Trainer then counts the masked tokens of the whole effective batch
    accepts_loss_kwargs = True

    def _init_weights(self, module: nn.Module) -> None:
        """The bias of a head that a checkpoint lacks is zero; Hugging Face leaves it as the memory was."""
        super()._init_weights(module)
        if module is self.lm_head:
            initialization.zeros_(module.bias)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **encoder_arguments: Any,
    ) -> Any:
        """A `MaskedTokensOutput` when there are labels, else Hugging Face's output with the logits of all
        tokens.

        Args:
            input_ids: (batch, seq).
            attention_mask: (batch, seq), 1 = token, 0 = padding; None = no padding.
            global_attention_mask: (batch, seq), 1 = global; None = none.
            labels: (batch, seq), the token that was masked, -100 where none was.
            num_items_in_batch: masked tokens of the whole effective batch; None = those of this one. A batch
                without a masked token has loss 0 and zero gradients.
            encoder_arguments: others that `LongformerModel` takes (`token_type_ids`, ...).
        """
        if labels is None:
            return super().forward(
                input_ids, attention_mask, global_attention_mask=global_attention_mask, **encoder_arguments
            )
        encoded = self.longformer(
            input_ids,
            attention_mask,
            global_attention_mask=global_attention_mask,
            **{**encoder_arguments, "return_dict": True},
        )
        masked = labels != NOT_MASKED
        logits = self.lm_head(encoded.last_hidden_state[masked])  # (n_masked, vocab)
        token_loss = word_losses(logits, labels[masked])
        return MaskedTokensOutput(
            loss=over_items(token_loss.sum(), items=masked.sum(), num_items_in_batch=num_items_in_batch),
            logits=logits,
            token_loss=token_loss.detach(),
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
            global_attentions=encoded.global_attentions,
        )

    def save_pretrained(self, save_directory: str | PathLike[str], **options: Any) -> None:
        """Save as Hugging Face does; the config names its plain class, which loads these weights."""
        super().save_pretrained(save_directory, **options)
        self.config.architectures = [PLAIN_ARCHITECTURE]
        if options.get("is_main_process", True):
            self.config.save_pretrained(save_directory)
