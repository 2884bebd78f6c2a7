"""Do two documents belong together? Longformer over both in one sequence, and a head on its first token (CDLM
sections 2.2, 3.3 and C.2).

The head is that of transformers' `LongformerForSequenceClassification`, by the same names: dropout, a linear
layer, tanh, dropout, a linear layer to two logits, of which the larger decides.

The released code calls documents related where `logit_1 > 0.5`, whatever the other logit is, and attends to
padding. Here neither is so. (For how it writes its sequences see examples/match_sequence.py.)
"""

from __future__ import annotations

import os

from torch import Tensor, nn
from transformers import LongformerConfig, LongformerModel, PreTrainedTokenizerFast
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.models.longformer.modeling_longformer import (
    LongformerClassificationHead,
    LongformerPreTrainedModel,
)

from cdlm_lab.attention.last_layer import read_only_globals
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.encoder_with_head import load_encoder_with_head
from cdlm_lab.models.loss import over_items


class PairClassifier(LongformerPreTrainedModel):
    """Longformer and a head on the state of its first token.

    So the local projections of the last layer get no gradient (every other weight does), and a model from
    `load_pair_classifier` computes no more of that layer.
    """

    # transformers.Trainer then counts the pairs of the whole effective batch
    accepts_loss_kwargs = True

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__(config)
        config.num_labels = 2  # an encoder's config may name those of another task
        self.longformer = LongformerModel(config, add_pooling_layer=False)
        self.classifier = LongformerClassificationHead(config)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> SequenceClassifierOutput:
        """Classify a batch of pairs.

        Args:
            input_ids: (batch, seq), `[CLS]` first.
            attention_mask: (batch, seq), 1 = token, 0 = padding; None = no padding.
            global_attention_mask: (batch, seq), 1 = global, as the first token must be.
            labels: (batch,), 1 = related, 0 = not.
            num_items_in_batch: pairs of the whole effective batch; None = those of this one.

        Returns:
            `loss`: (), float32, summed cross entropy of the pairs over their number; None without labels.
            `logits`: (batch, 2), float32; their softmax are the probabilities of not related and related.

        Raises:
            ValueError: the first token is not global.
        """
        if global_attention_mask is None or (global_attention_mask[:, 0] != 1).any():
            raise ValueError("the first token must be global: set it to 1 in global_attention_mask")
        states = self.longformer(
            input_ids, attention_mask, global_attention_mask=global_attention_mask, return_dict=True
        ).last_hidden_state  # (batch, seq, dim)
        logits = self.classifier(states).float()  # (batch, 2)
        if labels is None:
            return SequenceClassifierOutput(logits=logits)
        total = nn.functional.cross_entropy(logits, labels.long(), reduction="sum")
        loss = over_items(total, items=len(labels), num_items_in_batch=num_items_in_batch)
        return SequenceClassifierOutput(loss=loss, logits=logits)


def load_pair_classifier(
    name_or_path: str | os.PathLike[str],
    *,
    max_length: int,
    window: int,
    attention: str = "auto",
    dropout: float | None = None,
    attention_dropout: AttentionDropout = 0.0,
    seed: int = 0,
    whole_last_layer: bool = False,
) -> tuple[PairClassifier, PreTrainedTokenizerFast]:
    """A pair classifier on top of any encoder, or a trained one from its folder, and its tokenizer.

    The weights of the head are drawn from `seed`. Arguments and errors otherwise as of `load_encoder`.

    Args:
        whole_last_layer: True = the last layer computes all tokens, which costs time and changes no logit;
            sentence alignment reads them.
    """
    model, tokenizer = load_encoder_with_head(
        PairClassifier,
        name_or_path,
        max_length=max_length,
        window=window,
        attention=attention,
        dropout=dropout,
        attention_dropout=attention_dropout,
        seed=seed,
    )
    if not whole_last_layer:
        read_only_globals(model.longformer)
    return model, tokenizer
