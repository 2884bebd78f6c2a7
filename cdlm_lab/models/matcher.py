"""Do two documents belong together, and which sentence says so? The matcher over a hierarchical encoder (Zhou
et al. 2020, "CDA", sections 3.1 and 5.1)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

from cdlm_lab.attention.cross_document import alignment_weights
from cdlm_lab.models.hierarchical import HierarchicalConfig, HierarchicalEncoder
from cdlm_lab.models.loss import over_items


@dataclass
class MatchOutput(ModelOutput):
    """What `DocumentMatcher` returns.

    Attributes:
        loss: (), summed cross entropy of the pairs over their number; None without labels.
        logits: (batch,); the sigmoid of one is the probability that the documents are related.
        attention: (batch, 2, sentences), AttScore (equation 3): of the sentences of each document, the
            softmax of their products with the other document's vector before cross-document attention.
        cosine: (batch, 2, sentences), CosScore (equation 4) of the same; -1 at filling.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    attention: Tensor | None = None
    cosine: Tensor | None = None


class DocumentMatcher(PreTrainedModel):
    """[d_A; d_B] -> Linear -> ReLU -> Linear -> one logit. All weights are drawn from a normal distribution
    with the config's `initializer_range`, biases are 0."""

    config_class = HierarchicalConfig
    # transformers.Trainer then counts the pairs of the whole effective batch
    accepts_loss_kwargs = True

    def __init__(self, config: HierarchicalConfig) -> None:
        super().__init__(config)
        self.encoder = HierarchicalEncoder(config)
        self.head = nn.Sequential(
            nn.Linear(2 * config.state_size, config.hidden_size), nn.ReLU(), nn.Linear(config.hidden_size, 1)
        )
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        for name, weight in module.named_parameters(recurse=False):
            if "bias" in name:
                nn.init.zeros_(weight)
            else:
                nn.init.normal_(weight, std=self.config.initializer_range)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])

    def forward(
        self,
        inputs: Tensor,
        sentence_mask: Tensor,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> MatchOutput:
        """Match a batch of pairs.

        Args:
            inputs: words or encodings, as of `HierarchicalEncoder`.
            sentence_mask: (batch, 2, sentences) bool, True = sentence.
            labels: (batch,), 1 = related, 0 = not.
            num_items_in_batch: pairs of the whole effective batch; None = those of this one.
        """
        encoded = self.encoder(inputs, sentence_mask)
        logits = self.head(encoded.documents.flatten(1)).squeeze(-1).float()
        loss = None
        if labels is not None:
            total = nn.functional.binary_cross_entropy_with_logits(logits, labels.float(), reduction="sum")
            loss = over_items(total, items=len(labels), num_items_in_batch=num_items_in_batch)
        attention, cosine = self._alignments(encoded.plain, encoded.sentences, sentence_mask)
        return MatchOutput(loss=loss, logits=logits, attention=attention, cosine=cosine)

    def _alignments(self, documents: Tensor, sentences: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Equations 3 and 4: the sentences of each document by the other document's vector."""
        others = documents.flip(1).flatten(0, 1)[:, None]  # (2 * batch, 1, size)
        parts, there = sentences.flatten(0, 1), mask.flatten(0, 1)
        attention = alignment_weights(others, parts, there)[:, 0]
        cosine = torch.cosine_similarity(parts, others, dim=-1).masked_fill(~there, -1.0)
        return attention.view(mask.shape), cosine.view(mask.shape)
