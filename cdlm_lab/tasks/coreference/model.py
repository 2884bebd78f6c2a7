"""The scorers of coreference, which read the documents of both mentions together (CDLM 3.2, C.1).

The vector of a pair is [s, m_i, m_j, m_i * m_j]: the state of `[CLS]`, the sum of the states of each
mention's tokens, and the element-wise product of the two sums. An MLP with one hidden layer of 1,024 and tanh
turns it into one logit. (The released code has two hidden layers with ReLU instead; we follow the paper.)

Choices where the paper is silent: the loss is binary cross entropy; the MLP has no dropout and its weights
are initialised as the encoder's config says; the layers on top of the encoder compute in float32.

The paper's scorer reads the documents anew for each pair of mentions. `OneReadingScorer`, which is in no
paper, reads two documents once, with all mentions marked, and scores each pair of them by the same MLP; the
vector of a mention is the mean of its states there, as mentions of several words are not to weigh more than
the others.
"""

from __future__ import annotations

import os
from typing import Literal, Unpack

import torch
from torch import Tensor, nn
from transformers import LongformerConfig, PreTrainedTokenizerFast
from transformers.modeling_outputs import SequenceClassifierOutput

from cdlm_lab.attention.plan import Plan
from cdlm_lab.encoders.checkpoint import is_trained
from cdlm_lab.encoders.conversion import copy_local_to_global
from cdlm_lab.encoders.encoder import EncoderWithHead, LoadOptions, load_encoder_with_head
from cdlm_lab.encoders.language_model import Items, pair_loss
from cdlm_lab.encoders.packed import read_only_globals
from cdlm_lab.encoders.precision import as_weights, found_on_cpu, in_full
from cdlm_lab.tasks.coreference.examples import MENTION_END, MENTION_START

HIDDEN = 1024  # of the MLP's hidden layer (appendix C.1)
PAIRS_AT_ONCE = 1 << 16  # whose hidden layers are in memory together

ScorerName = Literal["pairwise", "one-reading"]


class _Scorer(EncoderWithHead):
    """A Longformer with an MLP over [s, m_i, m_j, m_i * m_j]. These are states of global tokens only, so the
    last layer's local projections get no gradient, and `load_pair_scorer` lets that layer skip local
    tokens."""

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__(config)
        self.scorer = nn.Sequential(
            nn.Linear(4 * config.hidden_size, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 1)
        )
        self.post_init()

    def states(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        global_attention_mask: Tensor | None,
        mention_mask: Tensor | None,
        plan: Plan | None,
    ) -> Tensor:
        """The states (batch, seq, dim) of a batch; the arguments are those of `forward`. Raises ValueError
        without `mention_mask`, or when `[CLS]` or a token of a mention is not global."""
        if mention_mask is None:
            raise ValueError("mention_mask is missing; it says where the mentions are")
        read = mention_mask.any(dim=1)
        read[:, 0] = True
        if global_attention_mask is None or found_on_cpu(read & (global_attention_mask != 1)):
            raise ValueError(
                "[CLS] and the tokens of all mentions must be global: set them to 1 in global_attention_mask"
            )
        return self.longformer(input_ids, attention_mask, global_attention_mask, plan=plan).last_hidden_state


class PairScorer(_Scorer):
    """The scorer of the paper: one sequence for each pair of mentions."""

    def forward(
        self,
        input_ids: Tensor,  # (batch, seq), [CLS] first
        attention_mask: Tensor | None = None,  # (batch, seq), 1 = token, 0 = padding; None = no padding
        global_attention_mask: Tensor | None = None,  # (batch, seq), 1 = global: [CLS] and both mentions
        mention_mask: Tensor | None = None,  # (batch, 2, seq), True = token of mention i
        labels: Tensor | None = None,  # (batch,), 1 = the mentions corefer, 0 = they do not
        plan: Plan | None = None,  # of the masks; None = the encoder makes it
        num_items_in_batch: Items = None,  # number of pairs in the whole effective batch
    ) -> SequenceClassifierOutput:
        """The logits of a batch of pairs, (batch,), float32, whose sigmoid is the probability that the
        mentions corefer; with labels also the loss, summed binary cross entropy over the number of pairs."""
        states = self.states(input_ids, attention_mask, global_attention_mask, mention_mask, plan)
        with in_full(states.device):
            vectors = pair_vectors(as_weights(states, self.scorer), mention_mask)
            logits = self.scorer(vectors).squeeze(-1).float()  # (batch,)
        return SequenceClassifierOutput(loss=pair_loss(logits, labels, num_items_in_batch), logits=logits)


class OneReadingScorer(_Scorer):
    """Scores all pairs of the mentions of a sequence from one reading of it."""

    def forward(
        self,
        input_ids: Tensor,  # (batch, seq), [CLS] first
        attention_mask: Tensor | None = None,  # (batch, seq), 1 = token, 0 = padding; None = no padding
        global_attention_mask: Tensor | None = None,  # (batch, seq), 1 = global: [CLS] and all mentions
        mention_mask: Tensor | None = None,  # (batch, mention, seq), True = token of mention i
        pair_mask: Tensor | None = None,  # (batch, mention, mention), True = the pair is scored
        labels: Tensor | None = None,  # (batch, mention, mention), 1 = they corefer, 0 = they do not
        plan: Plan | None = None,  # of the masks; None = the encoder makes it
        num_items_in_batch: Items = None,  # number of pairs in the whole effective batch
    ) -> SequenceClassifierOutput:
        """The logits of the pairs in `pair_mask`, (pairs,), float32, ordered by sequence, then by row and
        column; with labels also the loss, as that of `PairScorer`."""
        first, mentions = self.mentions(input_ids, attention_mask, global_attention_mask, mention_mask, plan)
        logits = self.logits(first, mentions, pair_mask.nonzero())
        wanted = None if labels is None else labels[pair_mask]
        loss = pair_loss(logits, wanted, num_items_in_batch)
        return SequenceClassifierOutput(loss=loss, logits=logits)

    def mentions(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        global_attention_mask: Tensor | None,
        mention_mask: Tensor,
        plan: Plan | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The states of [CLS], (batch, 1, dim), and of the mentions, (batch, mention, dim), in the dtype of
        the head's weights; the arguments are those of `forward`."""
        states = self.states(input_ids, attention_mask, global_attention_mask, mention_mask, plan)
        states = as_weights(states, self.scorer)
        with in_full(states.device):
            return states[:, :1], mean_states(states, mention_mask)

    def logits(self, first: Tensor, mentions: Tensor, pairs: Tensor) -> Tensor:
        """The logits of pairs, (pairs,), float32. `first`: (batch, 1, dim), of the sequences, or (batch,
        mention, dim), of that in which each mention was read, of which a pair has the mean; `mentions`:
        (batch, mention, dim); `pairs`: int64 (pairs, 3), batch and mentions of each."""
        with in_full(mentions.device):
            return torch.cat(
                [self._logits(first, mentions, *n.T) for n in pairs.split(PAIRS_AT_ONCE)]
            ).float()

    def _logits(self, first: Tensor, mentions: Tensor, row: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """The logits (pairs,) of pairs (i, j) in sequences `row`: what `scorer` gives for [s, m_i, m_j, m_i *
        m_j], but what belongs to a sequence or a mention alone is multiplied once."""
        hidden, activation, out = self.scorer
        of_text, of_i, of_j, of_both = hidden.weight.chunk(4, dim=1)
        half = nn.functional.linear(first, of_text, hidden.bias) / 2
        summed = (nn.functional.linear(mentions, of_i) + half)[row, i]  # (pairs, HIDDEN)
        summed = summed + (nn.functional.linear(mentions, of_j) + half)[row, j]
        summed = torch.addmm(summed, mentions[row, i] * mentions[row, j], of_both.T)
        return out(activation(summed)).squeeze(-1)


SCORERS: dict[ScorerName, type[_Scorer]] = {"pairwise": PairScorer, "one-reading": OneReadingScorer}


def mean_states(states: Tensor, mention_mask: Tensor) -> Tensor:
    """The mean states of mentions, (batch, mention, dim), in the dtype of `states` (batch, seq, dim); 0 for a
    mention without tokens. `mention_mask`: (batch, mention, seq), True = token of mention i."""
    counts = mention_mask.sum(-1, keepdim=True).clamp(min=1)
    return (torch.bmm(mention_mask.float(), states.float()) / counts).to(states.dtype)


def pair_vectors(states: Tensor, mention_mask: Tensor) -> Tensor:
    """The vectors [s, m_i, m_j, m_i * m_j] of pairs, (batch, 4 * dim), in the dtype of `states` (batch, seq,
    dim); `mention_mask`: (batch, 2, seq), True = token of mention i."""
    mentions = torch.bmm(mention_mask.float(), states.float()).to(states.dtype)  # (batch, 2, dim)
    first, second = mentions.unbind(1)
    return torch.cat([states[:, 0], first, second, first * second], dim=-1)


def load_pair_scorer(
    name_or_path: str | os.PathLike[str],
    *,
    scorer: ScorerName = "pairwise",
    reset_globals: bool = False,
    **options: Unpack[LoadOptions],
) -> tuple[PairScorer | OneReadingScorer, PreTrainedTokenizerFast]:
    """A scorer on top of any encoder, or a trained one from its folder, and its tokenizer.

    The mention marks `<m>` and `</m>` are added to the tokenizer; their embeddings and the MLP are drawn from
    the seed. `reset_globals`: True = the global projections of a new scorer start as copies of the encoder's
    local ones, as in the paper for Longformer and Local CDLM (section 3, "Baseline LMs").
    """
    marks = (MENTION_START, MENTION_END)
    kind = SCORERS[scorer]
    model, tokenizer = load_encoder_with_head(kind, name_or_path, marks=marks, **options)
    if reset_globals and not is_trained(os.fspath(name_or_path), kind):
        copy_local_to_global(model)
    read_only_globals(model.longformer)
    return model, tokenizer
