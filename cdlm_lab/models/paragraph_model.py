"""Pre-training with paragraphs: which of k sentences stand in one paragraph with s_0 (MSPP, "multi-sentences
in paragraph prediction"), and what the masked tokens are (Di Liello et al. 2022, section 3.4 and appendix B).

The loss is the sum of two, "equally weighted":

- `mspp`: mean cross entropy of the candidates;
- `mlm`: mean over examples of the mean cross entropy of their masked tokens.

The paper does not say what the second mean is over; the released code takes it over all masked tokens of a
micro-batch. Here each example weighs as many candidates as it has, which is the same for all that are full:
then micro-batches add up to the full batch under one count, that of candidates.
"""

from __future__ import annotations

import os
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from transformers import LongformerConfig, LongformerForMaskedLM, PreTrainedTokenizerFast
from transformers.utils import ModelOutput

from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.models.checkpoint import is_trained, without_bars
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.encoder import load_language_model
from cdlm_lab.models.joint_head import (
    JointHead,
    JointHeadLayers,
    check_labels,
    front_states,
    sentence_states,
    start_from_paragraph_head,
    summed_loss,
    write_head,
)
from cdlm_lab.models.joint_loading import load_on_sentences
from cdlm_lab.models.language_model import CrossDocumentLM
from cdlm_lab.models.loss import over_items, word_losses


@dataclass
class ParagraphOutput(ModelOutput):
    """What `ParagraphModel` returns.

    Attributes:
        loss: (), float32, the sum of both parts; None without labels.
        logits: (batch, k, 2), float32, of the candidates; 0 of absent ones.
        parts: `mlm` and `mspp` -> (), float32, without gradient; None without labels.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    parts: dict[str, Tensor] | None = None


class ParagraphModel(LongformerForMaskedLM):
    """Longformer, its language-model head and a head of candidates, `ie_k` or `ae_k`; no token is global, so
    the global projections get no gradient.

    Attributes:
        config: of the encoder, and besides `joint`, the arguments of `JointHead`.

    Raises:
        ValueError: the head is not of candidates, or has other than two labels.
    """

    head_class = JointHead
    # transformers.Trainer then counts the candidates of the whole effective batch
    accepts_loss_kwargs = True
    loss_parts = ("mlm", "mspp")

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__(config)
        head = JointHead(**config.joint)
        if not head.of_candidates or head.labels != 2:
            raise ValueError(
                f"the head is {head.kind} of {head.labels} labels; paragraphs need ie_k or ae_k of two"
            )
        self.head = JointHeadLayers(head, config)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor,
        position_ids: Tensor,
        starts: Tensor,
        labels: Tensor | None = None,
        mlm_labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> ParagraphOutput:
        """Both tasks on a batch of examples.

        Args:
            input_ids, attention_mask, token_type_ids, position_ids, starts: as of `JointModel.forward`.
            labels: (batch, k), 1 = in one paragraph with s_0, 0 = not, -100 = absent.
            mlm_labels: (batch, tokens), the token that was masked, -100 where none was.
            num_items_in_batch: candidates of the whole effective batch; None = those of this one.

        Raises:
            ValueError: more or fewer sentences than the head reads; a label of an absent candidate; labels
                of one task without those of the other.
        """
        if (labels is None) != (mlm_labels is None):
            raise ValueError("labels and mlm_labels belong together; give both or none")
        states = sentence_states(self.longformer, input_ids, attention_mask, token_type_ids, position_ids)
        logits = self.head(front_states(states, starts, sentences=self.head.form.sentences), starts)
        if labels is None:
            return ParagraphOutput(logits=logits)
        check_labels(labels, starts)
        total, items = summed_loss(logits, labels)
        totals = {"mlm": self._masked_loss(states, mlm_labels, labels), "mspp": total}
        parts = {
            name: over_items(value, items=items, num_items_in_batch=num_items_in_batch)
            for name, value in totals.items()
        }
        return ParagraphOutput(
            loss=parts["mlm"] + parts["mspp"],
            logits=logits,
            parts={name: value.detach() for name, value in parts.items()},
        )

    def _masked_loss(self, states: Tensor, mlm_labels: Tensor, labels: Tensor) -> Tensor:
        """The mean cross entropy of the masked tokens of each example times its candidates, summed: ()."""
        masked = mlm_labels != NOT_MASKED
        logits = self.lm_head(states[masked])  # (n_masked, vocab)
        each = word_losses(logits, mlm_labels[masked].long())
        weight = (labels != NOT_MASKED).sum(1) / masked.sum(1).clamp(min=1)  # (batch,)
        return (each * weight[masked.nonzero()[:, 0]]).sum()


def load_paragraph_model(
    name_or_path: str | os.PathLike[str],
    *,
    head: JointHead | None = None,
    dropout: float | None = None,
    attention_dropout: AttentionDropout = 0.0,
    seed: int = 0,
    attention: str = "auto",
    window: int | None = None,
    max_length: int | None = None,
) -> tuple[ParagraphModel, PreTrainedTokenizerFast]:
    """A model to pre-train, on top of any language model, and its tokenizer.

    Of an encoder without language-model head, as `minilm`, that is new, with a warning. Arguments and errors
    otherwise as of `load_joint_model`.

    Args:
        name_or_path: as of `load_language_model`; a folder that `save_paragraph_model` left, whose head is
            gone on with if it is of the same kind and layers; or one that a `ParagraphModel` was saved in, as
            checkpoints of a training are.
        max_length: positions that a model gets at least which is converted or made, for it can never read a
            longer text; None = twice the most tokens of a sequence.
    """
    name = os.fspath(name_or_path)
    model, tokenizer = load_on_sentences(
        ParagraphModel,
        name,
        head=head,
        window=window,
        load=partial(load_language_model, new_head=True),
        max_length=max_length,
        attention=attention,
        dropout=dropout,
        attention_dropout=attention_dropout,
        seed=seed,
    )
    if not is_trained(name, ParagraphModel):
        start_from_paragraph_head(model.head, name)
    return model, tokenizer


def save_paragraph_model(
    model: ParagraphModel, tokenizer: PreTrainedTokenizerFast, folder: str | os.PathLike[str]
) -> None:
    """Write what pre-training is for: a plain `LongformerForMaskedLM`, which opens wherever a model is named,
    and its head in a file beside it, from which `load_joint_model` starts. Under torchrun for rank 0 only."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = deepcopy(model.config)
    del config.joint
    with torch.device("meta"):  # all its parts are replaced below
        plain = CrossDocumentLM(config)
    plain.longformer, plain.lm_head = model.longformer, model.lm_head
    write_head(model.head, folder)  # first, so that no complete model is without it
    with without_bars():
        plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
