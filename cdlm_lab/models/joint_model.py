"""A question or claim and its candidates read at once by one encoder, with a head on the embeddings of the
sentences (Di Liello et al. 2022, "MSPP", section 3; for the heads see joint_head.py, for the sequences
examples/joint_sequence.py).

Every token sees every other and none is global, so a converted BERT computes what BERT does.

With k = 1 it is the pairwise cross-encoder that the paper compares with.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from torch import Tensor
from transformers import LongformerConfig, LongformerModel, PreTrainedTokenizerFast
from transformers.models.longformer.modeling_longformer import LongformerPreTrainedModel
from transformers.utils import ModelOutput

from cdlm_lab.models.checkpoint import is_trained
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.joint_head import (
    JointHead,
    JointHeadLayers,
    check_labels,
    front_states,
    sentence_states,
    start_from_paragraph_head,
    summed_loss,
)
from cdlm_lab.models.joint_loading import load_on_sentences
from cdlm_lab.models.loss import over_items

__all__ = ["JointHead", "JointHeadLayers", "JointModel", "JointOutput", "load_joint_model", "scores_of"]


@dataclass
class JointOutput(ModelOutput):
    """What `JointModel` returns.

    Attributes:
        loss: (), float32, summed cross entropy of the labels over their number; None without labels.
        logits: float32, (batch, k, labels) of `ie_k` and `ae_k`, 0 of absent candidates; (batch, labels) of
            `ie_1` and `ae_1`.
        embeddings: (batch, k + 1, dim), E_0 ... E_k, 0 of absent sentences.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    embeddings: Tensor | None = None


class JointModel(LongformerPreTrainedModel):
    """Longformer and a head; no token is global, so the global projections get no gradient.

    Attributes:
        config: of the encoder, and besides `joint`, the arguments of `JointHead`.
    """

    head_class = JointHead
    # transformers.Trainer then counts the labels of the whole effective batch
    accepts_loss_kwargs = True

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__(config)
        self.longformer = LongformerModel(config, add_pooling_layer=False)
        self.head = JointHeadLayers(JointHead(**config.joint), config)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor,
        position_ids: Tensor,
        starts: Tensor,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> JointOutput:
        """Label a batch of groups.

        Args:
            input_ids, attention_mask: (batch, tokens); 1 = token, 0 = padding.
            token_type_ids: (batch, tokens), of which sentence a token is, 0 ... k.
            position_ids: (batch, tokens), from 0, whatever the encoder; of padding any that there is.
            starts: (batch, k + 1) long, where the front token of each sentence is; -1 = absent.
            labels: (batch, k) of `ie_k` and `ae_k`, (batch,) of `ie_1` and `ae_1`; -100 = none.
            num_items_in_batch: labels of the whole effective batch; None = those of this one.

        Raises:
            ValueError: more or fewer sentences than the head reads; a label of an absent candidate.
        """
        form = self.head.form
        states = sentence_states(self.longformer, input_ids, attention_mask, token_type_ids, position_ids)
        embeddings = front_states(states, starts, sentences=form.sentences)
        logits = self.head(embeddings, starts)
        if labels is None:
            return JointOutput(logits=logits, embeddings=embeddings)
        if form.of_candidates:
            check_labels(labels, starts)
        total, items = summed_loss(logits, labels)
        loss = over_items(total, items=items, num_items_in_batch=num_items_in_batch)
        return JointOutput(loss=loss, logits=logits, embeddings=embeddings)


def load_joint_model(
    name_or_path: str | os.PathLike[str],
    *,
    head: JointHead | None = None,
    dropout: float | None = None,
    attention_dropout: AttentionDropout = 0.0,
    seed: int = 0,
    attention: str = "auto",
    window: int | None = None,
    keep_head: bool = True,
) -> tuple[JointModel, PreTrainedTokenizerFast]:
    """A joint model on top of any encoder, or a trained one from its folder, and its tokenizer.

    An encoder with fewer token types than there are sentences gets more, which start as copies of its last.
    In the released code they start at random.

    Args:
        name_or_path: a folder that a `JointModel` was saved in, or an encoder as of `load_encoder`, among
            them what `save_paragraph_model` left.
        head: what to put on the encoder. A trained model must have been trained with it; None = whatever it
            was trained with.
        dropout: of hidden states and head; None = as the checkpoint says.
        attention_dropout: of attention weights; `checkpoint` = as the checkpoint says.
        seed: of the head's weights and of all that the checkpoint does not bring.
        attention: as of `load_encoder`.
        window: total width of attention; None = every token sees every other.
        keep_head: True = where the head of paragraph pre-training lies beside the encoder and is of the same
            kind, labels and layers, start from it.

    Raises:
        ValueError: an encoder without `head`; a trained model with another one. Others as of `load_encoder`.
        CheckpointError: the encoder has too few positions for the sentences; its paragraph head is damaged.
    """
    name = os.fspath(name_or_path)
    model, tokenizer = load_on_sentences(
        JointModel,
        name,
        head=head,
        window=window,
        attention=attention,
        dropout=dropout,
        attention_dropout=attention_dropout,
        seed=seed,
    )
    if keep_head and not is_trained(name, JointModel):
        start_from_paragraph_head(model.head, name)
    return model, tokenizer


def scores_of(logits: Tensor) -> np.ndarray:
    """The log-odds of label 1, float64 (...), of logits (..., 2). Probabilities would often be equal, at 1.0.

    Raises:
        ValueError: more or fewer than two labels.
    """
    if logits.shape[-1] != 2:
        raise ValueError(f"logits are of {logits.shape[-1]} labels; log-odds are of two")
    values = logits.detach().cpu().double().numpy()
    return values[..., 1] - values[..., 0]
