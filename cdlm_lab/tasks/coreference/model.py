"""The pairwise scorer of coreference, which reads the documents of both mentions together (CDLM 3.2, C.1).

The vector of a pair is [s, m_i, m_j, m_i * m_j]: the state of `[CLS]`, the sum of the states of each
mention's tokens, and the element-wise product of the two sums. An MLP with one hidden layer of 1,024 and tanh
turns it into one logit. (The released code has two hidden layers with ReLU instead; we follow the paper.)

Choices where the paper is silent: the loss is binary cross entropy; the MLP has no dropout and its weights
are initialised as the encoder's config says; the layers on top of the encoder compute in float32.
"""

from __future__ import annotations

import os
from typing import Unpack

import torch
from torch import Tensor, nn
from transformers import LongformerConfig, PreTrainedTokenizerFast
from transformers.modeling_outputs import SequenceClassifierOutput

from cdlm_lab.attention.layer import read_only_globals
from cdlm_lab.encoders.checkpoint import is_trained
from cdlm_lab.encoders.conversion import copy_local_to_global
from cdlm_lab.encoders.encoder import EncoderWithHead, LoadOptions, load_encoder_with_head
from cdlm_lab.encoders.language_model import Items, pair_loss
from cdlm_lab.encoders.precision import as_weights, in_full
from cdlm_lab.tasks.coreference.examples import MENTION_END, MENTION_START

HIDDEN = 1024  # of the MLP's hidden layer (appendix C.1)


class PairScorer(EncoderWithHead):
    """A Longformer with an MLP over [s, m_i, m_j, m_i * m_j]. These are states of global tokens only, so the
    last layer's local projections get no gradient, and `load_pair_scorer` lets that layer skip local
    tokens."""

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__(config)
        self.scorer = nn.Sequential(
            nn.Linear(4 * config.hidden_size, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 1)
        )
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,  # (batch, seq), [CLS] first
        attention_mask: Tensor | None = None,  # (batch, seq), 1 = token, 0 = padding; None = no padding
        global_attention_mask: Tensor | None = None,  # (batch, seq), 1 = global: [CLS] and both mentions
        mention_mask: Tensor | None = None,  # (batch, 2, seq), True = token of mention i
        labels: Tensor | None = None,  # (batch,), 1 = the mentions corefer, 0 = they do not
        num_items_in_batch: Items = None,  # number of pairs in the whole effective batch
    ) -> SequenceClassifierOutput:
        """The logits of a batch of pairs, (batch,), float32, whose sigmoid is the probability that the
        mentions corefer; with labels also the loss, summed binary cross entropy over the number of pairs.
        Raises ValueError without `mention_mask`, or when `[CLS]` or a token of a mention is not global."""
        if mention_mask is None:
            raise ValueError("mention_mask is missing; it says where the two mentions are")
        read = mention_mask.any(dim=1)
        read[:, 0] = True
        if global_attention_mask is None or (read & (global_attention_mask != 1)).any():
            raise ValueError(
                "[CLS] and the tokens of both mentions must be global: set them to 1 in global_attention_mask"
            )
        states = self.longformer(input_ids, attention_mask, global_attention_mask).last_hidden_state
        with in_full(states.device):
            vectors = pair_vectors(as_weights(states, self.scorer), mention_mask)
            logits = self.scorer(vectors).squeeze(-1).float()  # (batch,)
        return SequenceClassifierOutput(loss=pair_loss(logits, labels, num_items_in_batch), logits=logits)


def pair_vectors(states: Tensor, mention_mask: Tensor) -> Tensor:
    """The vectors [s, m_i, m_j, m_i * m_j] of pairs, (batch, 4 * dim), in the dtype of `states` (batch, seq,
    dim); `mention_mask`: (batch, 2, seq), True = token of mention i."""
    mentions = torch.bmm(mention_mask.float(), states.float()).to(states.dtype)  # (batch, 2, dim)
    first, second = mentions.unbind(1)
    return torch.cat([states[:, 0], first, second, first * second], dim=-1)


def load_pair_scorer(
    name_or_path: str | os.PathLike[str], *, reset_globals: bool = False, **options: Unpack[LoadOptions]
) -> tuple[PairScorer, PreTrainedTokenizerFast]:
    """A pair scorer on top of any encoder, or a trained one from its folder, and its tokenizer.

    The mention marks `<m>` and `</m>` are added to the tokenizer; their embeddings and the MLP are drawn from
    the seed. `reset_globals`: True = the global projections of a new scorer start as copies of the encoder's
    local ones, as in the paper for Longformer and Local CDLM (section 3, "Baseline LMs").
    """
    marks = (MENTION_START, MENTION_END)
    model, tokenizer = load_encoder_with_head(PairScorer, name_or_path, marks=marks, **options)
    if reset_globals and not is_trained(os.fspath(name_or_path), PairScorer):
        copy_local_to_global(model)
    read_only_globals(model.longformer)
    return model, tokenizer
