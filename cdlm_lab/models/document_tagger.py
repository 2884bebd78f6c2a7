"""Tagging words with what their document says of the same words elsewhere, over encodings that stay as they
are: static Doc-ARC (Joerke et al. 2020, sections 2 and 4.1).

    encodings of a sentence's words -> f_c, a biLSTM (eq. 5): of the sentence to be tagged and of every
                                       sentence that has occurrences of its words
    a word's occurrences            -> attention -> c (eq. 1 to 3)
    [f_c(x); c(x)]                  -> f_s, a biLSTM -> dropout -> linear -> softmax (eq. 4)

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
from transformers import PretrainedConfig, PreTrainedModel
from transformers.utils import ModelOutput

from cdlm_lab.attention.occurrences import OccurrenceAttention
from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.models.checkpoint import CheckpointError, first_line, own_randomness, read_model
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
        context_encoder: f_c: `bilstm` as in the paper, or `linear`, one map of each word by itself. With the
            latter only the words that are attended to need be computed, and not their sentences.
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
        self.context, self.context_encoder, self.context_order = context, context_encoder, context_order
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
        context_mask: Tensor | None = None,
        places: Tensor | None = None,
        buckets: Tensor | None = None,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> TagOutput:
        """Tag a batch of sentences.

        Args:
            targets: (batch, words, size), encodings of the words to be tagged.
            attention_mask: (batch, words) bool, True = word; in each row those come first.
            context: (contexts, context words, size), of all sentences that are attended to, each once; f_c
                reads them once, however many words attend to them.
            context_mask: (contexts, context words) bool, True = word; those come first.
            places: (batch, words, K, 2) long, of each word's occurrences: row of `context` and word in it;
                -1 = none.
            buckets: (batch, words, K) long, of their distances; not read where there is none.
            labels: (batch, words) long, numbers of tags; -100 = filling, or not to be learnt.
            num_items_in_batch: labels of the whole effective batch; None = those of this one.

        Raises:
            ValueError: context for a tagger without, or none for one with it.
        """
        given = [part is not None for part in (context, context_mask, places, buckets)]
        if given != [self.config.context] * 4:
            raise ValueError(
                "a tagger with context takes context, context_mask, places and buckets, one without takes "
                f"none of them; this is one {'with' if self.config.context else 'without'}"
            )
        states, weights = self._encoded(targets, attention_mask), None
        if self.attention is not None:
            if isinstance(self.context_encoder, nn.LSTM) and not self.config.whole_sentences:
                context, context_mask, places = in_target_order(context, places, attention_mask)
            encoded = self._encoded(context, context_mask)
            attended, weights = attend(self.attention, encoded, places=places, buckets=buckets)
            states = torch.cat([states, attended], dim=-1)
        states = contextualised(self.sequence_encoder, states, attention_mask)
        logits = self.classifier(self.dropout(states))
        return tag_output(logits, weights=weights, labels=labels, num_items_in_batch=num_items_in_batch)

    def _encoded(self, words: Tensor, mask: Tensor) -> Tensor:
        """f_c of sentences, (sentences, words, 2 * hidden_size)."""
        if isinstance(self.context_encoder, nn.Linear):
            return self.context_encoder(words)
        return contextualised(self.context_encoder, words, mask)


def check_tags(tags: Sequence[str]) -> None:
    """Raise ValueError without tags, or if one is there twice."""
    if not tags or isinstance(tags, str) or len(set(tags)) != len(tags):
        raise ValueError(f"tags are {tags!r}; give each tag once, as `tag_set` does")


def bilstm(size: int, width: int) -> nn.LSTM:
    """An LSTM in both directions, from `size` numbers to `width` of both together."""
    return nn.LSTM(size, width // 2, batch_first=True, bidirectional=True)


def attend(
    attention: OccurrenceAttention, states: Tensor, *, places: Tensor, buckets: Tensor
) -> tuple[Tensor, Tensor]:
    """c of words, by the places of their occurrences in `states` (rows, words, size), and the weights.

    Filling and words without occurrences are not computed; both are 0 there.

    Args:
        places, buckets: as of `StaticTagger.forward`.

    Returns:
        (batch, words, size + distance_size) and (batch, words, K).
    """
    there = places[..., 0] >= 0
    words = there.any(-1)
    found, shares = attention(at_places(states, places[words]), buckets[words], there[words])
    attended = found.new_zeros(*words.shape, attention.output_size)
    attended[words] = found
    weights = shares.new_zeros(there.shape)
    weights[words] = shares
    return attended, weights


def in_target_order(
    context: Tensor, places: Tensor, attention_mask: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What f_c reads by equation 5: for each sentence and each k the k-th occurrences of its words, in the
    order of the sentence, 0 where a word has fewer.

    Args:
        context, places, attention_mask: as of `StaticTagger.forward`.

    Returns:
        Rows (batch * K, words, size); their mask (batch * K, words) bool, True = a word of the sentence, and
        nowhere True in a row without any occurrence; the places (batch, words, K, 2) of the occurrences in
        these rows, -1 = none.
    """
    there = places[..., 0] >= 0
    batch, words, most = there.shape
    found = at_places(context, places).masked_fill(~there[..., None], 0.0)
    mask = attention_mask[:, None] & there.any(1)[..., None]  # (batch, K, words)
    row = torch.arange(batch * most, device=places.device).view(batch, 1, most).expand(there.shape)
    word = torch.arange(words, device=places.device).view(1, words, 1).expand(there.shape)
    moved = torch.stack([row, word], dim=-1).masked_fill(~there[..., None], -1)
    return found.transpose(1, 2).flatten(0, 1), mask.flatten(0, 1), moved


def at_places(states: Tensor, places: Tensor) -> Tensor:
    """The states of words by their places.

    Args:
        states: (rows, words, size).
        places: (..., 2) long, row and word; of -1 any state comes back, so mask those.

    Returns:
        (..., size).
    """
    if not states.shape[0] * states.shape[1]:
        return states.new_zeros(*places.shape[:-1], states.shape[-1])
    index = places[..., 0] * states.shape[1] + places[..., 1]
    # the same as indexing, of which the gradient would be many times slower
    return nn.functional.embedding(index.clamp(min=0), states.flatten(0, 1))


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
    name = os.fspath(folder)
    try:
        config = StaticTaggerConfig.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{name}: no static tagger ({first_line(error)})") from error
    return read_model(StaticTagger, name, config, seed=0)[0].eval()


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
