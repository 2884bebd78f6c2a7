"""Models that label claims, and how they read these: what the systems of notebook 10 are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.claims import EvidencedClaim
from cdlm_lab.examples.candidate_examples import ClaimExamples, JointCollate, PairedClaimCollate
from cdlm_lab.examples.encode_candidates import EncodedClaims
from cdlm_lab.examples.joint_sequence import JointLayout
from cdlm_lab.examples.special_tokens import from_tokenizer
from cdlm_lab.experiments.claim_systems import ClaimSystem
from cdlm_lab.models.device import default_device
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.joint_model import JointHead, JointModel, load_joint_model
from cdlm_lab.models.pooled_pairs import PooledHead, PooledPairs, load_pooled_pairs
from cdlm_lab.training.config import TrainingConfig


@dataclass(frozen=True, kw_only=True)
class Verifier:
    """A model and how it reads claims.

    Attributes:
        model: its logits are of `labels`, in this order.
        layout: of a claim with all its evidence.
    """

    system: ClaimSystem
    model: JointModel | PooledPairs
    tokenizer: PreTrainedTokenizerBase
    layout: JointLayout
    labels: tuple[str, ...]

    def examples(
        self, claims: Sequence[EvidencedClaim], *, config: TrainingConfig | None = None
    ) -> ClaimExamples:
        """What `collate` makes batches of.

        Args:
            config: of a training, whose examples are drawn; None = each claim once, in order.

        Raises ValueError if there are no claims.
        """
        if not self.system.reads_evidence:
            claims = [replace(claim, evidence=()) for claim in claims]
        return ClaimExamples(
            claims=claims,
            encoded=EncodedClaims(claims, self.tokenizer),
            layout=self.layout,
            special=from_tokenizer(self.tokenizer),
            seed=config.seed if config else 0,
            size=config.steps * config.batch_size if config else None,
            shuffle=config is not None,
        )

    @property
    def collate(self) -> JointCollate | PairedClaimCollate:
        """From examples to batches."""
        pad = self.tokenizer.pad_token_id
        return PairedClaimCollate(pad, self.layout) if self.system.pairwise else JointCollate(pad)

    def on_device(self) -> Verifier:
        """With its model where models run unless someone says otherwise."""
        return replace(self, model=self.model.to(default_device()))

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device


def load_verifier(
    source: str,
    system: ClaimSystem,
    *,
    layout: JointLayout,
    head_layers: str,
    labels: tuple[str, ...],
    seed: int,
    dropout: float | None = None,
    attention_dropout: AttentionDropout = 0.0,
) -> Verifier:
    """A new verifier on an encoder, or a trained one from its folder.

    Args:
        source: folder of the trained model, or an encoder as of `load_encoder`.
        layout: of a claim with all its evidence.
        head_layers: of a joint head, `linear` or `tanh`; a pairwise one is linear.
        labels: to choose from.
        seed: of the head's weights.
        dropout, attention_dropout: as of `load_joint_model`.

    Errors as of `load_joint_model`.
    """
    drawn = {"seed": seed, "dropout": dropout, "attention_dropout": attention_dropout}
    if system.pairwise:
        form = PooledHead(
            pooling=system.head, labels=len(labels), length=layout.length, positions=layout.positions
        )
        model, tokenizer = load_pooled_pairs(source, head=form, **drawn)
    else:
        head = JointHead(
            kind=system.head,
            labels=len(labels),
            sentences=layout.sentences,
            length=layout.length,
            positions=layout.positions,
            layers=head_layers,
        )
        model, tokenizer = load_joint_model(source, head=head, **drawn)
    return Verifier(system=system, model=model, tokenizer=tokenizer, layout=layout, labels=labels)
