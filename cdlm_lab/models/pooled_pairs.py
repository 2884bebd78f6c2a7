"""A claim read with one piece of evidence at a time, and the pairs pooled: what joint reading is compared
with (Di Liello et al. 2022, table 8; the poolings are those of Tymoshenko and Moschitti 2021).

    E_0 of each (claim, evidence) -> pooled over the claim's evidence -> linear -> label of the claim

`max` takes the largest value of each dimension, `weighted_sum` the sum by the softmax, over the claim's
evidence, of w E_0. The paper does not say what the weights are of; w is a choice.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import LongformerConfig, LongformerModel, PreTrainedTokenizerFast
from transformers.models.longformer.modeling_longformer import LongformerPreTrainedModel
from transformers.utils import ModelOutput

from cdlm_lab.examples.joint_sequence import JointLayout
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.joint_head import front_states, sentence_states, summed_loss
from cdlm_lab.models.joint_loading import load_on_sentences
from cdlm_lab.models.loss import over_items

POOLINGS = ("max", "weighted_sum")
PAIR = 2  # sentences: claim and evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledHead:
    """What stands on the encoder, and the layout of the pairs that it reads.

    Attributes:
        pooling: `max` or `weighted_sum`.
        labels: how many there are to choose from.
        length, positions: as of `JointLayout`.

    Raises:
        ValueError: unknown pooling, fewer than 2 labels, a layout that cannot be.
    """

    pooling: str
    labels: int = 3
    length: int = 64
    positions: str = "strided"

    def __post_init__(self) -> None:
        if self.pooling not in POOLINGS:
            raise ValueError(f"pooling is {self.pooling!r}; choose one of {', '.join(POOLINGS)}")
        if self.labels < 2:
            raise ValueError(f"labels is {self.labels}; there must be 2 or more to choose from")
        _ = self.layout  # which refuses what cannot be

    @property
    def layout(self) -> JointLayout:
        """That of a claim with one piece of evidence."""
        return JointLayout(sentences=PAIR, length=self.length, positions=self.positions)


@dataclass
class PooledOutput(ModelOutput):
    """What `PooledPairs` returns, float32.

    Attributes:
        loss: (), summed cross entropy of the claims over their number; None without labels.
        logits: (claims, labels).
        shares: (pairs,), without gradient: how much of the pooled vector comes from a pair, 1 in all for a
            claim. Of `weighted_sum` its weight, of `max` the part of the dimensions in which it is largest.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    shares: Tensor | None = None


class PooledPairs(LongformerPreTrainedModel):
    """Longformer, pooling and a linear layer; no token is global, so the global projections get no gradient.

    Attributes:
        config: of the encoder, and besides `joint`, the arguments of `PooledHead`.
    """

    head_class = PooledHead
    # transformers.Trainer then counts the claims of the whole effective batch
    accepts_loss_kwargs = True

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__(config)
        form = PooledHead(**config.joint)
        self.longformer = LongformerModel(config, add_pooling_layer=False)
        # without bias, which a softmax cancels
        self.score = nn.Linear(config.hidden_size, 1, bias=False) if form.pooling == "weighted_sum" else None
        self.classifier = nn.Linear(config.hidden_size, form.labels)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor,
        position_ids: Tensor,
        starts: Tensor,
        claim: Tensor,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> PooledOutput:
        """Label a batch of claims.

        Args:
            input_ids, attention_mask, token_type_ids, position_ids: (pairs, tokens), as of
                `JointModel.forward`.
            starts: (pairs, 2) long, of claim and evidence; -1 = absent: a claim without evidence is one pair
                without it.
            claim: (pairs,) long, number of the claim, from 0; each has a pair.
            labels: (claims,), -100 = none.
            num_items_in_batch: labels of the whole effective batch; None = those of this one.

        Raises:
            ValueError: a claim has no pair; there are more claims than labels.
        """
        states = sentence_states(self.longformer, input_ids, attention_mask, token_type_ids, position_ids)
        read = front_states(states, starts, sentences=PAIR)[:, 0]  # (pairs, dim)
        claims = int(claim.max()) + 1 if labels is None else len(labels)
        pairs = torch.bincount(claim, minlength=claims)
        if len(pairs) > claims or not pairs.all():
            raise ValueError(
                f"of {claims} claims {int((pairs > 0).sum())} have pairs, numbered up to "
                f"{len(pairs) - 1}; number them from 0, and give one without evidence a pair without it"
            )
        if self.score is None:
            pooled, shares = largest(read.float(), claim, claims=claims)
        else:
            scores = self.score(read)[:, 0].float()
            pooled, shares = weighted_sum(read.float(), scores, claim, claims=claims)
        logits = self.classifier(pooled.to(read.dtype)).float()
        loss = None
        if labels is not None:
            total, items = summed_loss(logits, labels)
            loss = over_items(total, items=items, num_items_in_batch=num_items_in_batch)
        return PooledOutput(loss=loss, logits=logits, shares=shares.detach())


def largest(read: Tensor, claim: Tensor, *, claims: int) -> tuple[Tensor, Tensor]:
    """The largest value of each dimension over the pairs of a claim.

    Args:
        read: (pairs, dim).
        claim: (pairs,) long, number of the claim, below `claims`; each has a pair.

    Returns:
        (claims, dim), and (pairs,): in what part of the dimensions a pair has the largest value; several that
        have it go shares.
    """
    pooled = read.new_full((claims, read.shape[1]), -torch.inf)
    pooled = pooled.scatter_reduce(0, claim[:, None].expand_as(read), read, "amax")
    wins = (read == pooled[claim]).to(read.dtype)
    winners = torch.zeros_like(pooled).index_add(0, claim, wins)
    return pooled, (wins / winners[claim]).mean(1)


def weighted_sum(read: Tensor, scores: Tensor, claim: Tensor, *, claims: int) -> tuple[Tensor, Tensor]:
    """The sum over the pairs of a claim, weighted by the softmax of their scores over it.

    Args:
        read: (pairs, dim).
        scores: (pairs,).
        claim: as of `largest`.

    Returns:
        (claims, dim), and the weights, (pairs,).
    """
    top = scores.new_full((claims,), -torch.inf).scatter_reduce(0, claim, scores.detach(), "amax")
    powers = (scores - top[claim]).exp()
    weights = powers / powers.new_zeros(claims).index_add(0, claim, powers)[claim]
    return read.new_zeros(claims, read.shape[1]).index_add(0, claim, weights[:, None] * read), weights


def load_pooled_pairs(
    name_or_path: str | os.PathLike[str],
    *,
    head: PooledHead | None = None,
    dropout: float | None = None,
    attention_dropout: AttentionDropout = 0.0,
    seed: int = 0,
    attention: str = "auto",
    window: int | None = None,
) -> tuple[PooledPairs, PreTrainedTokenizerFast]:
    """A model of pooled pairs on top of any encoder, or a trained one from its folder, and its tokenizer.
    Arguments and errors as of `load_joint_model`."""
    return load_on_sentences(
        PooledPairs,
        os.fspath(name_or_path),
        head=head,
        window=window,
        attention=attention,
        dropout=dropout,
        attention_dropout=attention_dropout,
        seed=seed,
    )
