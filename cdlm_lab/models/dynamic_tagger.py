"""Tagging words with what their document says of the same words elsewhere, the encoder trained along: dynamic
Doc-ARC (Joerke et al. 2020, sections 2.2 and 4.2), and its baselines.

    all sentences of a batch, to be tagged or attended to -> encoder, last layer -> e: mean of a word's pieces
    a word's occurrences -> attention -> c (eq. 1 to 3)
    [e(x); c(x)] -> f_s, a biLSTM -> dropout -> linear -> softmax (eq. 4)

There is no context encoder f_c. Without context it is the baseline with one biLSTM (Table 3); without the
biLSTM as well it is the encoder fine-tuned, as BERT in Table 4.

H is of one direction: with 128, an encoder of 4.39M parameters (BERT-tiny) makes the 4.8M of Table 8; with
128 for both together it were 4.6M. In the paper a sentence is encoded as often as a word attends to it; here
once for each batch, which changes no number without dropout. Dropout and weights otherwise as of
`StaticTagger`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor, nn
from transformers import LongformerConfig, LongformerModel, PreTrainedTokenizerFast
from transformers.models.longformer.modeling_longformer import LongformerPreTrainedModel

from cdlm_lab.attention.occurrences import OccurrenceAttention
from cdlm_lab.models.checkpoint import is_trained, own_randomness
from cdlm_lab.models.document_tagger import (
    TagOutput,
    bilstm,
    check_tags,
    nearest_size,
    rows_at,
    tag_output,
)
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.encoder import load_encoder, load_trained
from cdlm_lab.models.hierarchical import contextualised

SEQUENCE_ENCODERS = ("bilstm", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggerHead:
    """What stands on the encoder.

    Attributes:
        tags: all of them, in the order of the logits.
        context: False = no attention to the rest of the document.
        sequence_encoder: f_s: `bilstm`, or `none`.
        hidden_size: of the LSTM in one direction (the paper: 128).
        distance_size: of the embedding of a distance.
        dropout: before the last layer.

    Raises:
        ValueError: no tags or one twice; an unknown sequence encoder.
    """

    tags: Sequence[str]
    context: bool = True
    sequence_encoder: str = "bilstm"
    hidden_size: int = 128
    distance_size: int = 20
    dropout: float = 0.25

    def __post_init__(self) -> None:
        check_tags(self.tags)
        object.__setattr__(self, "tags", list(self.tags))  # as it comes back from a file
        if self.sequence_encoder not in SEQUENCE_ENCODERS:
            raise ValueError(
                f"sequence_encoder is {self.sequence_encoder!r}; choose one of {', '.join(SEQUENCE_ENCODERS)}"
            )


class HeadLayers(nn.Module):
    """From words and their occurrences to logits, see the head of this module.

    Args:
        head: its form.
        size: of the encoder's vectors.
    """

    def __init__(self, head: TaggerHead, *, size: int) -> None:
        super().__init__()
        width = size
        self.attention = None
        if head.context:
            self.attention = OccurrenceAttention(size, distance_size=head.distance_size)
            width += self.attention.output_size
        self.sequence_encoder = None
        if head.sequence_encoder == "bilstm":
            self.sequence_encoder = bilstm(width, 2 * head.hidden_size)
            width = 2 * head.hidden_size
        self.dropout = nn.Dropout(head.dropout)
        self.classifier = nn.Linear(width, len(head.tags))


class DynamicTagger(LongformerPreTrainedModel):
    """Longformer and the layers above; no token is global, so the global projections get no gradient.

    Attributes:
        config: of the encoder, and besides `tagger`, the arguments of `TaggerHead`.
    """

    # transformers.Trainer then counts the words of the whole effective batch
    accepts_loss_kwargs = True

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__(config)
        self.longformer = LongformerModel(config, add_pooling_layer=False)
        self.head = HeadLayers(TaggerHead(**config.tagger), size=config.hidden_size)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Of the encoder as usual; the head is as PyTorch has drawn it."""
        if not any(module is own for own in self.head.modules()):
            super()._init_weights(module)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        words: Tensor,
        target_rows: Tensor,
        word_mask: Tensor,
        places: Tensor | None = None,
        buckets: Tensor | None = None,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> TagOutput:
        """Tag a batch of sentences.

        Args:
            input_ids, attention_mask: (sequences, tokens), of all sentences to be tagged or attended to, each
                once; 1 = token, 0 = padding, which comes last.
            words: (sequences, tokens) long, of each token the number of its word in the sentence; -1 = of
                none. A word's state is the mean of those of its tokens.
            target_rows: (batch,) long, rows of the sentences to be tagged.
            word_mask: (batch, words) bool, True = word of such a sentence; in each row those come first.
            places: (batch, words, K, 2) long, of each word's occurrences: row and word in it; -1 = none.
            buckets: (batch, words, K) long, of their distances; not read where there is none.
            labels: (batch, words) long, numbers of tags; -100 = filling, or not to be learnt.
            num_items_in_batch: labels of the whole effective batch; None = those of this one.

        Raises:
            ValueError: places or buckets for a tagger without context, or none for one with it.
        """
        head = self.head
        if [places is not None, buckets is not None] != [head.attention is not None] * 2:
            raise ValueError("places and buckets are for a tagger with context, which needs both")
        states = self.longformer(input_ids, attention_mask).last_hidden_state
        every = word_states(states, words, most=max(words.shape[1], word_mask.shape[1]))
        read, weights = every[target_rows, : word_mask.shape[1]], None
        if head.attention is not None:
            there = places[..., 0] >= 0
            numbers = (places[..., 0] * every.shape[1] + places[..., 1]).masked_fill(~there, -1)
            attended, weights = head.attention(rows_at(every.flatten(0, 1), numbers), buckets, there)
            read = torch.cat([read, attended], dim=-1)
        if head.sequence_encoder is not None:
            read = contextualised(head.sequence_encoder, read, word_mask)
        logits = head.classifier(head.dropout(read))
        return tag_output(logits, weights=weights, labels=labels, num_items_in_batch=num_items_in_batch)


def word_states(states: Tensor, words: Tensor, *, most: int) -> Tensor:
    """The mean of the states of each word's tokens (footnote 1).

    Args:
        states: (sequences, tokens, size).
        words: (sequences, tokens) long, number of the word, below `most`; -1 = of none.

    Returns:
        (sequences, most, size) float32; 0 where there is no word.
    """
    rows = torch.arange(len(words), device=words.device)[:, None]
    # one place more than there are words, which takes up the tokens of none
    place = torch.where(words < 0, len(words) * most, rows * most + words).flatten()
    sums = states.new_zeros(len(words) * most + 1, states.shape[-1], dtype=torch.float32)
    sums = sums.index_add(0, place, states.flatten(0, 1).float())
    counts = torch.bincount(place, minlength=len(sums))[:, None].clamp(min=1)
    return (sums / counts)[:-1].view(len(words), most, -1)


def load_dynamic_tagger(
    name_or_path: str | os.PathLike[str],
    *,
    head: TaggerHead | None = None,
    max_length: int,
    window: int,
    attention: str = "auto",
    dropout: float | None = None,
    attention_dropout: AttentionDropout = 0.0,
    seed: int = 0,
) -> tuple[DynamicTagger, PreTrainedTokenizerFast]:
    """A tagger on top of any encoder, or a trained one from its folder, and its tokenizer.

    Args:
        head: what to put on the encoder. A trained tagger must have been trained with it; None = whatever it
            was trained with.
        dropout, attention_dropout: of the encoder; that of the head is in `head`.
        seed: of the head's weights and of all that the checkpoint does not bring.

    Other arguments and errors as of `load_encoder`.

    Raises:
        ValueError: an encoder without `head`; a trained tagger with another one.
    """
    name = os.fspath(name_or_path)
    form = {
        "max_length": max_length,
        "window": window,
        "attention": attention,
        "dropout": dropout,
        "attention_dropout": attention_dropout,
    }
    if is_trained(name, DynamicTagger):
        model, tokenizer = load_trained(DynamicTagger, name, **form)
        if head is not None and (found := TaggerHead(**model.config.tagger)) != head:
            raise ValueError(f"{name}: trained with {found}, not {head}; ask for that, or give no head")
        return model, tokenizer
    if head is None:
        raise ValueError(f"{name}: not a trained tagger; give a head for it")
    encoder, tokenizer = load_encoder(name, **form, seed=seed)
    encoder.config.tagger = asdict(head)
    with own_randomness(seed):  # all but the head is replaced below
        model = DynamicTagger(encoder.config)
    model.longformer = encoder
    with own_randomness(seed):  # so that heads of one form start alike, on whatever encoder
        model.head = HeadLayers(head, size=encoder.config.hidden_size)
    return model.eval(), tokenizer


def equal_head(head: TaggerHead, *, size: int) -> TaggerHead:
    """The head without context that has as many parameters as nearest possible to `head`, on an encoder with
    vectors of `size`."""

    def baseline(hidden_size: int) -> TaggerHead:
        return replace(head, context=False, sequence_encoder="bilstm", hidden_size=hidden_size)

    def parameters(form: TaggerHead) -> int:
        with torch.device("meta"):  # shapes without numbers
            return sum(weight.numel() for weight in HeadLayers(form, size=size).parameters())

    return baseline(nearest_size(lambda hidden_size: parameters(baseline(hidden_size)), parameters(head)))
