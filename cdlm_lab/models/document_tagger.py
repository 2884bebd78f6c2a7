"""Tagging words with what their document says of the same words elsewhere, over encodings that stay as they
are: static Doc-ARC (Joerke et al. 2020, sections 2 and 4.1).

    encodings of a sentence's words x_1 ... x_n         -> f_c, a biLSTM
    for each k, of the k-th occurrences of x_1 ... x_n  -> f_c (eq. 5), in the order of that sentence
    a word's occurrences                                -> attention -> c (eq. 1 to 3)
    [f_c(x); c(x)]                                      -> f_s, a biLSTM -> dropout, linear, softmax (eq. 4)

So of the rest of the document nothing is read but the encodings of the occurrences; words around them tell by
way of the frozen encoder alone. If a word has fewer than k occurrences nothing is attended to there ("we
only attend over these K' relevant instances"). What f_c reads in its place the paper does not say: here it is
a vector of zeros, in the released code the encoding of the [CLS] of whichever sentence comes first.

With `context_order` "sentence" (ours, no equation of the paper's) f_c reads instead every sentence that has
an occurrence, whole and in its own order. It has as many parameters and was a little better in the recorded
runs on storyworld (data/results/).

Without context it is the paper's baseline, two biLSTMs one on the other: the same without c.

What Table 6 means by "H 256" and "9.5M trainable parameters" with BERT-base: encodings are the last four
layers one beside the other (3,072 numbers), H is of one direction, and the sentence to be tagged goes through
the same f_c as its context. That makes 9.49M with the 11 tags of JNLPBA, and is what the released code has.
No other reading comes near: eq. 4 to the letter, with the encoding itself beside c, makes 14.7M; H of both
directions together 4.0M (to the letter 6.8M); the mean of the four layers 4.8M (5.3M).

Choices where the paper is silent: dropout before the last layer alone and its rate, as in the released code;
weights are drawn as PyTorch does, there too. Unlike in that code, filling is masked everywhere, so that
neither the other sentences of a batch nor missing occurrences change anything.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import PretrainedConfig, PreTrainedModel
from transformers.utils import ModelOutput

from cdlm_lab.attention.occurrences import OccurrenceAttention
from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.models.checkpoint import own_randomness, read_own_model
from cdlm_lab.models.hierarchical import contextualised
from cdlm_lab.models.loss import over_items

CONTEXT_ENCODERS = ("bilstm", "linear")
CONTEXT_ORDERS = ("target", "sentence")


class StaticTaggerConfig(PretrainedConfig):
    """Sizes and sort of a static tagger.

    Args:
        size: of the encoding of a word: the encoder's hidden size times the layers that are taken.
        tags: all of them, in the order of the logits.
        hidden_size: of an LSTM in one direction (the paper: 256).
        context: False = no attention to the rest of the document, the paper's baseline.
        context_encoder: f_c: `bilstm` as in the paper, or `linear` (ours), one map of each word by itself,
            which costs a fraction.
        context_order: in which a biLSTM f_c reads occurrences: that of the sentence to be tagged, `target`
            (the paper's), or that of the `sentence` that they stand in.
        distance_size: of the embedding of a distance.
        dropout: before the last layer.

    Raises:
        ValueError: no size, no tags or one twice, an unknown context encoder, a linear one without context.
    """

    model_type = "cdlm_lab_static_tagger"

    def __init__(
        self,
        *,
        size: int = 0,
        tags: Sequence[str] = (),
        hidden_size: int = 256,
        context: bool = True,
        context_encoder: str = "bilstm",
        context_order: str = "target",
        distance_size: int = 20,
        dropout: float = 0.25,
        **rest: object,
    ) -> None:
        if size < 1:
            raise ValueError("size is 0; give that of the words' encodings")
        check_tags(tags)
        for name, value, known in (
            ("context_encoder", context_encoder, CONTEXT_ENCODERS),
            ("context_order", context_order, CONTEXT_ORDERS),
        ):
            if value not in known:
                raise ValueError(f"{name} is {value!r}; choose one of {', '.join(known)}")
        if context_encoder == "linear" and not context:
            raise ValueError("context_encoder 'linear' needs context; the baseline has two biLSTMs")
        self.size, self.tags, self.hidden_size = size, list(tags), hidden_size
        self.context, self.context_encoder = context, context_encoder
        self.context_order = context_order
        self.distance_size, self.dropout = distance_size, dropout
        super().__init__(**rest)

    @property
    def whole_sentences(self) -> bool:
        """Whether f_c reads whole sentences of the context, and not only the words attended to."""
        return self.context and self.context_encoder == "bilstm" and self.context_order == "sentence"


@dataclass
class TagOutput(ModelOutput):
    """What a tagger returns, float32.

    Attributes:
        loss: (), summed cross entropy of the labelled words over their number; None without labels.
        logits: (batch, words, tags).
        weights: (batch, words, K), of each word's occurrences (equation 3), 0 where there is none; None
            without context.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    weights: Tensor | None = None


class StaticTagger(PreTrainedModel):
    """See the head of this module; make one with `new_static_tagger`."""

    config_class = StaticTaggerConfig
    # transformers.Trainer then counts the words of the whole effective batch
    accepts_loss_kwargs = True

    def __init__(self, config: StaticTaggerConfig) -> None:
        super().__init__(config)
        width = 2 * config.hidden_size  # of both directions
        linear = config.context_encoder == "linear"
        self.context_encoder = nn.Linear(config.size, width) if linear else bilstm(config.size, width)
        self.attention = None
        read = width
        if config.context:
            self.attention = OccurrenceAttention(width, distance_size=config.distance_size)
            read += self.attention.output_size
        self.sequence_encoder = bilstm(read, width)
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = nn.Linear(width, len(config.tags))
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Nothing: PyTorch has drawn them."""

    def forward(
        self,
        targets: Tensor,
        attention_mask: Tensor,
        context: Tensor | None = None,
        places: Tensor | None = None,
        buckets: Tensor | None = None,
        context_lengths: Tensor | None = None,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> TagOutput:
        """Tag a batch of sentences.

        Args:
            targets: (batch, words, size), encodings of the words to be tagged.
            attention_mask: (batch, words) bool, True = word; in each row those come first.
            context: (occurrences, size), encodings of all words that are attended to, each once.
            places: (batch, words, K) long, of each word's occurrences: rows of `context`; -1 = none.
            buckets: (batch, words, K) long, of their distances; not read where there is none.
            context_lengths: (sentences,) long, for the context order `sentence` alone: `context` is then the
                words of that many sentences, one after the other, of so many words each.
            labels: (batch, words) long, numbers of tags; -100 = filling, or not to be learnt.
            num_items_in_batch: labels of the whole effective batch; None = those of this one.

        Raises:
            ValueError: context for a tagger without, or none for one with it; the same of `context_lengths`.
        """
        given = [part is not None for part in (context, places, buckets)]
        if given != [self.config.context] * 3:
            raise ValueError(
                "a tagger with context takes context, places and buckets, one without takes none of them; "
                f"this is one {'with' if self.config.context else 'without'}"
            )
        if (context_lengths is not None) != self.config.whole_sentences:
            raise ValueError("context_lengths are for the context order 'sentence', which needs them")
        states, weights = self._encoded(targets, attention_mask), None
        if self.attention is not None:
            if context_lengths is None:
                encoded = self._of_occurrences(context, places, attention_mask)
            else:
                encoded = rows_at(self._of_sentences(context, context_lengths), places)
            attended, weights = self.attention(encoded, buckets, places >= 0)
            states = torch.cat([states, attended], dim=-1)
        states = contextualised(self.sequence_encoder, states, attention_mask)
        logits = self.classifier(self.dropout(states))
        return tag_output(logits, weights=weights, labels=labels, num_items_in_batch=num_items_in_batch)

    def _encoded(self, words: Tensor, mask: Tensor) -> Tensor:
        """f_c of sentences, (sentences, words, 2 * hidden_size)."""
        if isinstance(self.context_encoder, nn.Linear):
            return self.context_encoder(words)
        return contextualised(self.context_encoder, words, mask)

    def _of_sentences(self, context: Tensor, lengths: Tensor) -> Tensor:
        """f_c of whole sentences of the context, (words, 2 * hidden_size), in the order of `context`."""
        if not len(lengths):
            return context.new_zeros(0, 2 * self.config.hidden_size)
        sentences = pad_sequence(context.split(lengths.tolist()), batch_first=True)
        mask = torch.arange(sentences.shape[1], device=lengths.device) < lengths[:, None]
        return self._encoded(sentences, mask)[mask]

    def _of_occurrences(self, context: Tensor, places: Tensor, attention_mask: Tensor) -> Tensor:
        """f_c of each word's occurrences (equation 5), (batch, words, K, 2 * hidden_size). Rows of which no
        word has a k-th occurrence are not computed. Arguments as of `forward`."""
        if isinstance(self.context_encoder, nn.Linear):
            return rows_at(self.context_encoder(context), places)
        mask = attention_mask[:, None] & (places >= 0).any(1)[..., None]  # (batch, K, words)
        found = rows_at(context, places.transpose(1, 2))
        read = self._encoded(found.flatten(0, 1), mask.flatten(0, 1))
        return read.unflatten(0, mask.shape[:2]).transpose(1, 2)


def check_tags(tags: Sequence[str]) -> None:
    """Raise ValueError without tags, or if one is there twice."""
    if not tags or isinstance(tags, str) or len(set(tags)) != len(tags):
        raise ValueError(f"tags are {tags!r}; give each tag once, as `tag_set` does")


def bilstm(size: int, width: int) -> nn.LSTM:
    """An LSTM in both directions, from `size` numbers to `width` of both together."""
    return nn.LSTM(size, width // 2, batch_first=True, bidirectional=True)


def rows_at(states: Tensor, numbers: Tensor) -> Tensor:
    """`states[numbers]`, (..., size), of states (rows, size); of -1 a vector of zeros."""
    padded = nn.functional.pad(states, (0, 0, 1, 0))
    # the same as indexing, of which the gradient would be many times slower
    return nn.functional.embedding(numbers + 1, padded)


def tag_output(
    logits: Tensor,
    *,
    weights: Tensor | None,
    labels: Tensor | None,
    num_items_in_batch: Tensor | int | None,
) -> TagOutput:
    """Logits and weights in float32, with the loss if there are labels. Arguments as of `StaticTagger`."""
    logits, loss = logits.float(), None
    if labels is not None:
        total = nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=NOT_MASKED, reduction="sum"
        )
        items = (labels != NOT_MASKED).sum()
        loss = over_items(total, items=items, num_items_in_batch=num_items_in_batch)
    return TagOutput(loss=loss, logits=logits, weights=None if weights is None else weights.float())


def new_static_tagger(config: StaticTaggerConfig, *, seed: int = 0) -> StaticTagger:
    """An untrained tagger in eval mode, its weights drawn from `seed`; the global generator stays as it
    is."""
    with own_randomness(seed):
        return StaticTagger(config).eval()


def load_static_tagger(folder: str | os.PathLike[str]) -> StaticTagger:
    """The tagger that `save_pretrained` left in a folder, in eval mode.

    Raises:
        CheckpointError: there is none; weights are missing, left over or of another shape.
    """
    # before the order was written down there was no other
    return read_own_model(StaticTagger, os.fspath(folder), before={"context_order": "sentence"})


def equal_hidden_size(config: StaticTaggerConfig) -> int:
    """The hidden size with which the baseline has as many parameters as nearest possible to the tagger of
    `config`, which has context."""

    def without_context(hidden_size: int) -> int:
        form = {"size": config.size, "tags": config.tags, "hidden_size": hidden_size}
        return _parameters(StaticTaggerConfig(**form, context=False))

    return nearest_size(without_context, _parameters(config))


def nearest_size(count: Callable[[int], int], wanted: int) -> int:
    """The size, 1 or more, of which `count`, a growing function, comes nearest to `wanted`."""
    first = 1 + bisect_left(range(1, 2**16), wanted, key=count)  # whose count is at least that
    return min((max(first - 1, 1), first), key=lambda size: abs(count(size) - wanted))


def _parameters(config: StaticTaggerConfig) -> int:
    with torch.device("meta"):  # shapes without numbers
        return StaticTagger(config).num_parameters()
