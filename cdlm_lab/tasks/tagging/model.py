"""Tagging words by attention to the same words elsewhere in their document (Joerke et al. 2020, "Doc-ARC").

Static (sections 2 and 4.1): the encodings are frozen; without context two biLSTMs, the baseline:

    encodings of a sentence's words x_1 ... x_n         -> f_c, a biLSTM
    for each k, of the k-th occurrences of x_1 ... x_n  -> f_c (eq. 5), in the order of that sentence
    a word's occurrences                                -> attention -> c (eq. 1 to 3)
    [f_c(x); c(x)]                                      -> f_s, a biLSTM -> dropout, linear, softmax (eq. 4)

The paper does not say what f_c reads for a word without a k-th occurrence: here a vector of zeros, in the
released code the encoding of some [CLS].

"H 256" and "9.5M trainable parameters" of Table 6 fit BERT-base only if an encoding concatenates the last
four layers (3,072 numbers), H is the size of one direction, and the sentence to be tagged goes through the
same f_c as its context: 9.49M with the 11 tags of JNLPBA, as in the released code.

Dynamic (sections 2.2 and 4.2): the encoder is trained along; without context the baseline with one biLSTM
(Table 3), without the biLSTM as well the fine-tuned encoder (BERT in Table 4):

    all sentences of a batch, to be tagged or attended to -> encoder, last layer -> e: mean of a word's pieces
    a word's occurrences -> attention -> c (eq. 1 to 3)
    [e(x); c(x)] -> f_s, a biLSTM -> dropout -> linear -> softmax (eq. 4)

H is the size of one direction: with 128, an encoder of 4.39M parameters (BERT-tiny) gives the 4.8M of Table
8. In the paper a sentence is encoded each time that a word attends to it, here once per batch, which changes
no number without dropout. Dropout before the last layer only and its rate are as in the released code, and
weights are initialised as PyTorch does by default. Unlike in that code, padding is masked everywhere.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Literal, Unpack

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import LongformerConfig, PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils import ModelOutput

from cdlm_lab.attention.document import (
    OccurrenceAttention,
    contextualised,
)
from cdlm_lab.encoders import encoder
from cdlm_lab.encoders.checkpoint import own_randomness, read_own_model
from cdlm_lab.encoders.encoder import EncoderWithHead, LoadOptions
from cdlm_lab.encoders.frozen import ENDS, WordEncodings, word_pieces
from cdlm_lab.encoders.language_model import Items, label_loss
from cdlm_lab.encoders.precision import as_weights, in_full
from cdlm_lab.errors import check_choice
from cdlm_lab.examples.collate import padded
from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.parameters import settings
from cdlm_lab.tasks.tagging.examples import SplitDocument, TagExample, context_of

CONTEXT_ENCODERS = ("bilstm", "linear")


class StaticTaggerConfig(PretrainedConfig):
    """Sizes and kind of a static tagger. Raises ValueError without a size, without tags or with a duplicate
    one, for an unknown context encoder, and for a linear encoder without context."""

    model_type = "cdlm_lab_static_tagger"

    def __init__(
        self,
        *,
        size: int = 0,  # of a word's encoding: the encoder's hidden size times the number of its layers used
        tags: Sequence[str] = (),  # all of them, in the order of the logits
        hidden_size: int = 256,  # of an LSTM in one direction (the paper: 256)
        context: bool = True,  # False = no attention to the rest of the document, the paper's baseline
        context_encoder: str = "bilstm",  # f_c: as in the paper, or `linear` (ours), each word by itself
        distance_size: int = 20,  # of the embedding of an occurrence's distance
        dropout: float = 0.25,  # before the last layer
        **rest: object,
    ) -> None:
        if size < 1:
            raise ValueError("size is 0; give that of the words' encodings")
        check_tags(tags)
        check_choice("context_encoder", context_encoder, CONTEXT_ENCODERS)
        if context_encoder == "linear" and not context:
            raise ValueError("context_encoder 'linear' needs context; the baseline has two biLSTMs")
        self.size, self.tags, self.hidden_size = size, list(tags), hidden_size
        self.context, self.context_encoder = context, context_encoder
        self.distance_size, self.dropout = distance_size, dropout
        super().__init__(**rest)


@dataclass
class TagOutput(ModelOutput):
    """What a tagger returns, float32."""

    loss: Tensor | None = None  # (), summed cross entropy divided by the number of labelled words
    logits: Tensor | None = None  # (batch, words, tags)
    # (batch, words, K), attention to each word's occurrences (equation 3), 0 at padding; None without context
    weights: Tensor | None = None


class StaticTagger(PreTrainedModel):
    """Tags words from their encodings and those of their occurrences; create one with `new_static_tagger`."""

    config_class = StaticTaggerConfig
    # the training loop then counts the words of the whole effective batch
    accepts_loss_kwargs = True

    def __init__(self, config: StaticTaggerConfig) -> None:
        super().__init__(config)
        width = 2 * config.hidden_size  # both directions
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
        """Do nothing: the weights keep PyTorch's default initialisation."""

    def forward(
        self,
        targets: Tensor,  # (batch, words, size), encodings of the words to be tagged
        attention_mask: Tensor,  # (batch, words) bool, True = word, False = padding, at the end
        context: Tensor | None = None,  # (occurrences, size), encodings of all words attended to, each once
        places: Tensor | None = None,  # (batch, words, K) long, rows of occurrences in `context`; -1 = none
        buckets: Tensor | None = None,  # (batch, words, K) long, distance buckets; ignored where place is -1
        labels: Tensor | None = None,  # (batch, words) long, tag numbers; -100 = padding or ignored
        num_items_in_batch: Items = None,  # number of labels in the whole effective batch
    ) -> TagOutput:
        """Tag a batch of sentences. Raises ValueError when a tagger without context is given any or one with
        context is given none."""
        given = [part is not None for part in (context, places, buckets)]
        if given != [self.config.context] * 3:
            raise ValueError(
                "a tagger with context takes context, places and buckets, one without takes none of them; "
                f"this is one {'with' if self.config.context else 'without'}"
            )
        states, occurrences = self._encoded(targets, attention_mask), None
        if context is not None:
            occurrences = (self._of_occurrences(context, places, attention_mask), buckets, places >= 0)
        return tagged(self, states, attention_mask, occurrences, labels, num_items_in_batch)

    def _encoded(self, words: Tensor, mask: Tensor) -> Tensor:
        """f_c applied to sentences, (sentences, words, 2 * hidden_size)."""
        if isinstance(self.context_encoder, nn.Linear):
            return self.context_encoder(words)
        return contextualised(self.context_encoder, words, mask)

    def _of_occurrences(self, context: Tensor, places: Tensor, attention_mask: Tensor) -> Tensor:
        """f_c applied to each word's occurrences (equation 5), (batch, words, K, 2 * hidden_size). Sentences
        in which no word has a k-th occurrence are skipped."""
        if isinstance(self.context_encoder, nn.Linear):
            return rows_at(self._encoded(context, attention_mask), places)
        mask = attention_mask[:, None] & (places >= 0).any(1)[..., None]  # (batch, K, words)
        occurrences = rows_at(context, places.transpose(1, 2))
        read = self._encoded(occurrences.flatten(0, 1), mask.flatten(0, 1))
        return read.unflatten(0, mask.shape[:2]).transpose(1, 2)


def check_tags(tags: Sequence[str]) -> None:
    """Raise ValueError if there are no tags or duplicate ones."""
    if not tags or isinstance(tags, str) or len(set(tags)) != len(tags):
        raise ValueError(f"tags are {tags!r}; give each tag once, as `tag_set` does")


def bilstm(size: int, width: int) -> nn.LSTM:
    """A bidirectional LSTM from vectors of `size` to `width`, the concatenation of both directions."""
    return nn.LSTM(size, width // 2, batch_first=True, bidirectional=True)


def rows_at(states: Tensor, numbers: Tensor) -> Tensor:
    """`states[numbers]`, (..., size), of states (rows, size), with a vector of zeros for -1."""
    padded = nn.functional.pad(states, (0, 0, 1, 0))
    # the same as indexing, whose backward pass would be many times slower
    return nn.functional.embedding(numbers + 1, padded)


def tagged(
    layers: StaticTagger | HeadLayers,
    states: Tensor,
    mask: Tensor,
    occurrences: tuple[Tensor, Tensor, Tensor] | None,
    labels: Tensor | None,
    num_items_in_batch: Items,
) -> TagOutput:
    """Predict the tags of words, where `mask` (batch, words) is True, from their `states` (batch, words,
    size) and `occurrences`: encodings, buckets and mask in `OccurrenceAttention`'s form; None without
    context."""
    weights = None
    with in_full(states.device):
        states = as_weights(states, layers.classifier)
        if occurrences is not None:
            encodings, *places = occurrences
            attended, weights = layers.attention(as_weights(encodings, layers.classifier), *places)
            states, weights = torch.cat([states, attended], dim=-1), weights.float()
        if layers.sequence_encoder is not None:
            states = contextualised(layers.sequence_encoder, states, mask)
        logits = layers.classifier(layers.dropout(states)).float()
    return TagOutput(loss=label_loss(logits, labels, num_items_in_batch), logits=logits, weights=weights)


def new_static_tagger(config: StaticTaggerConfig, *, seed: int = 0) -> StaticTagger:
    """An untrained tagger in eval mode, its weights drawn from `seed`."""
    with own_randomness(seed):
        return StaticTagger(config).eval()


def load_static_tagger(folder: str | os.PathLike[str]) -> StaticTagger:
    """The tagger that `save_pretrained` left in a folder, in eval mode."""
    return read_own_model(StaticTagger, os.fspath(folder))


def equal_hidden_size(config: StaticTaggerConfig) -> int:
    """The hidden size that brings the baseline's number of parameters as close as possible to that of the
    tagger with context of `config`."""

    def parameters(form: StaticTaggerConfig) -> int:
        with torch.device("meta"):  # shapes without numbers
            return StaticTagger(form).num_parameters()

    def without_context(hidden_size: int) -> int:
        form = {"size": config.size, "tags": config.tags, "hidden_size": hidden_size}
        return parameters(StaticTaggerConfig(**form, context=False))

    return nearest_size(without_context, parameters(config))


def nearest_size(count: Callable[[int], int], wanted: int) -> int:
    """The size, 1 or more, whose `count`, an increasing function, comes closest to `wanted`."""
    first = 1 + bisect_left(range(1, 2**16), wanted, key=count)  # smallest with a count of `wanted` or more
    return min((max(first - 1, 1), first), key=lambda size: abs(count(size) - wanted))


@settings
class TaggerHead:
    """The head on the encoder of a dynamic tagger."""

    tags: Sequence[str]  # all of them, in the order of the logits
    context: bool = True  # False = no attention to the rest of the document
    sequence_encoder: Literal["bilstm", "none"] = "bilstm"  # f_s
    hidden_size: int = 128  # of the LSTM in one direction (the paper: 128)
    distance_size: int = 20  # of the embedding of an occurrence's distance
    dropout: float = 0.25  # before the last layer

    def __post_init__(self) -> None:
        check_tags(self.tags)
        object.__setattr__(self, "tags", list(self.tags))  # the same type as when read from a file


class HeadLayers(nn.Module):
    """The layers of a head, from word vectors of `size` and their occurrences to logits."""

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


class DynamicTagger(EncoderWithHead):
    """A Longformer with `HeadLayers`; no token is global, so the global projections get no gradient. The
    encoder's config has an additional entry `tagger`, the arguments of `TaggerHead`."""

    head_class, head_entry = TaggerHead, "tagger"

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__(config)
        self.head = HeadLayers(TaggerHead(**config.tagger), size=config.hidden_size)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Initialise the encoder as usual; the head keeps PyTorch's default initialisation."""
        if not any(module is own for own in self.head.modules()):
            super()._init_weights(module)

    def forward(
        self,
        input_ids: Tensor,  # (sequences, tokens), all sentences to be tagged or attended to, each once
        attention_mask: Tensor,  # (sequences, tokens), 1 = token, 0 = padding, which comes last
        words: Tensor,  # (sequences, tokens) long, number of each token's word; -1 = no word
        target_rows: Tensor,  # (batch,) long, rows of the sentences to be tagged
        word_mask: Tensor,  # (batch, words) bool, True = word of such a sentence, False = padding
        places: Tensor | None = None,  # (batch, words, K, 2) long, row and word of occurrences; -1 = none
        buckets: Tensor | None = None,  # (batch, words, K) long, distance buckets; ignored where place is -1
        labels: Tensor | None = None,  # (batch, words) long, tag numbers; -100 = padding or ignored
        num_items_in_batch: Items = None,  # number of labels in the whole effective batch
    ) -> TagOutput:
        """Tag a batch of sentences; a word's state is the mean of its tokens' states. Raises ValueError when
        a tagger without context is given places or buckets, or one with context is not."""
        head = self.head
        if [places is not None, buckets is not None] != [head.attention is not None] * 2:
            raise ValueError("places and buckets are for a tagger with context, which needs both")
        states = self.longformer(input_ids, attention_mask).last_hidden_state
        every = word_states(states, words, most=max(words.shape[1], word_mask.shape[1]))
        read, occurrences = every[target_rows, : word_mask.shape[1]], None
        if places is not None:
            present = places[..., 0] >= 0
            numbers = (places[..., 0] * every.shape[1] + places[..., 1]).masked_fill(~present, -1)
            occurrences = (rows_at(every.flatten(0, 1), numbers), buckets, present)
        return tagged(head, read, word_mask, occurrences, labels, num_items_in_batch)


def word_states(states: Tensor, words: Tensor, *, most: int) -> Tensor:
    """The mean of the `states` (sequences, tokens, size) of each word's tokens (footnote 1), float32
    (sequences, most, size); 0 where there is no word. `words`: (sequences, tokens), number of the word, -1 =
    none."""
    rows = torch.arange(len(words), device=words.device)[:, None]
    # one extra place collects the tokens that belong to no word
    place = torch.where(words < 0, len(words) * most, rows * most + words).flatten()
    sums = states.new_zeros(len(words) * most + 1, states.shape[-1], dtype=torch.float32)
    sums = sums.index_add(0, place, states.flatten(0, 1).float())
    counts = torch.bincount(place, minlength=len(sums))[:, None].clamp(min=1)
    return (sums / counts)[:-1].view(len(words), most, -1)


def load_dynamic_tagger(
    name_or_path: str | os.PathLike[str], *, head: TaggerHead | None = None, **options: Unpack[LoadOptions]
) -> tuple[DynamicTagger, PreTrainedTokenizerFast]:
    """A tagger on top of any encoder, or a trained one from its folder, and its tokenizer.

    `head`: the head to put on the encoder; None = that of the trained tagger, which must otherwise be the
    same. Dropout in the options is that of the encoder; the head's is in `head`. Raises ValueError for an
    encoder without `head`, and for a trained tagger with another one.
    """
    name, seed = os.fspath(name_or_path), options.get("seed", 0)
    head, trained = encoder.wanted_head(DynamicTagger, name, head)
    if trained:
        return encoder.load_trained(DynamicTagger, name, **options)
    source, tokenizer = encoder.load_encoder(name, **options)
    model = encoder.put_head_on(source, DynamicTagger, seed=seed, tagger=asdict(head))
    with own_randomness(seed):  # so that heads with the same settings start with equal weights on any encoder
        model.head = HeadLayers(head, size=source.config.hidden_size)
    return model.eval(), tokenizer


def equal_head(head: TaggerHead, *, size: int) -> TaggerHead:
    """The head without context whose number of parameters comes as close as possible to that of `head`, on an
    encoder with vectors of `size`."""

    def baseline(hidden_size: int) -> TaggerHead:
        return replace(head, context=False, sequence_encoder="bilstm", hidden_size=hidden_size)

    def parameters(form: TaggerHead) -> int:
        with torch.device("meta"):  # shapes without numbers
            return sum(weight.numel() for weight in HeadLayers(form, size=size).parameters())

    return baseline(nearest_size(lambda hidden_size: parameters(baseline(hidden_size)), parameters(head)))


NOWHERE = -1
SequenceNumber = tuple[int, int]  # number of the document, and of the sequence within it


@dataclass(frozen=True, slots=True, eq=False)
class StaticCollate:
    """A collate function for `StaticTagger`; pass it to a `Trainer` or `DataLoader` as it is."""

    encodings: WordEncodings  # of all sequences; `ensure` them beforehand, missing ones are slow
    documents: Sequence[SplitDocument]  # those of the `TagExamples`
    _: KW_ONLY
    context: bool = True  # False = for a tagger without context

    def __call__(self, examples: Sequence[TagExample]) -> dict[str, Tensor]:
        """Look up encodings and pad: arguments of `StaticTagger.forward`, encodings in float32. In training
        the words of `attention_mask` are counted as tokens. Raises ValueError without examples, and for a
        sentence that the encoder cannot read."""
        _check(examples)
        targets = [torch.from_numpy(self.encodings.rows(e.words).astype(np.float32)) for e in examples]
        batch = {
            "targets": pad_sequence(targets, batch_first=True),
            "attention_mask": _mask([len(rows) for rows in targets]),
            "labels": padded([example.labels for example in examples], fill=NOT_MASKED),
        }
        return batch | (self._occurrences(examples) if self.context else {})

    def _occurrences(self, examples: Sequence[TagExample]) -> dict[str, Tensor]:
        """`context`, the words attended to without duplicates, `places`, rows in it of each word's
        occurrences, and `buckets`."""
        sequences = context_of(examples)
        sentences = [self.encodings.rows(_words(self.documents, sequence)) for sequence in sequences]
        lengths = torch.tensor([len(rows) for rows in sentences], dtype=torch.int64)
        starts = lengths.cumsum(0) - lengths
        batch = _places(examples, sequences)
        present = batch["places"][..., 0] >= 0
        row, word = batch["places"][present].T
        # The numbers of the words among all words of the sentences.
        used, numbers = torch.unique(starts[row] + word, return_inverse=True)
        row = torch.searchsorted(starts, used, right=True) - 1
        chosen = zip(row.tolist(), (used - starts[row]).tolist(), strict=True)
        vectors = np.array([sentences[row][word] for row, word in chosen], dtype=np.float32)
        return batch | {
            "context": torch.from_numpy(vectors.reshape(-1, self.encodings.size)),
            "places": torch.full(present.shape, NOWHERE).masked_scatter(present, numbers),
        }


@dataclass(frozen=True, slots=True, eq=False)
class DynamicCollate:
    """A collate function for `DynamicTagger`; pass it to a `Trainer` or `DataLoader` as it is."""

    tokenizer: PreTrainedTokenizerFast  # its `model_max_length` is the maximum number of tokens of a sequence
    documents: Sequence[SplitDocument]  # those of the `TagExamples`
    _: KW_ONLY
    context: bool = True  # False = for a tagger without context

    def __call__(self, examples: Sequence[TagExample]) -> dict[str, Tensor]:
        """Tokenise and pad: arguments of `DynamicTagger.forward`. Raises ValueError without examples, and for
        a sequence that is longer than the model allows."""
        _check(examples)
        targets = [(example.document, example.sentence) for example in examples]
        sequences = sorted({*targets, *(context_of(examples) if self.context else ())})
        row = {sequence: number for number, sequence in enumerate(sequences)}
        batch = self._tokens(sequences) | {
            "target_rows": torch.tensor([row[sequence] for sequence in targets]),
            "word_mask": _mask([len(example.words) for example in examples]),
            "labels": padded([example.labels for example in examples], fill=NOT_MASKED),
        }
        return batch | (_places(examples, sequences) if self.context else {})

    def _tokens(self, sequences: Sequence[SequenceNumber]) -> dict[str, Tensor]:
        begin, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        room = self.tokenizer.model_max_length - ENDS
        ids, words = [], []
        for sequence in sequences:
            pieces, numbers = word_pieces(self.tokenizer, _words(self.documents, sequence), most=room)
            if len(pieces) > room:
                number, place = sequence
                raise ValueError(
                    f"document {self.documents[number].document.id}, sequence {place} has {len(pieces)} "
                    f"pieces, but the model has room for {room}; split it"
                )
            ids.append(np.array([begin, *pieces, end]))
            words.append(np.array([NOWHERE, *numbers, NOWHERE]))
        return {
            "input_ids": padded(ids, fill=self.tokenizer.pad_token_id),
            "attention_mask": _mask([len(row) for row in ids]).long(),
            "words": padded(words, fill=NOWHERE),
        }


def _check(examples: Sequence[TagExample]) -> None:
    if not examples:
        raise ValueError("no examples to collate")


def _words(documents: Sequence[SplitDocument], sequence: SequenceNumber) -> tuple[str, ...]:
    number, place = sequence
    return documents[number].document.sentences[place].words


def _places(examples: Sequence[TagExample], sequences: Sequence[SequenceNumber]) -> dict[str, Tensor]:
    """`buckets`, and `places` with row numbers (indices in `sequences`) for numbers in the document."""
    row_of = {sequence: row for row, sequence in enumerate(sequences)}
    places = []
    for example in examples:
        numbers, inverse = np.unique(example.places[..., 0], return_inverse=True)
        rows = [row_of.get((example.document, number), NOWHERE) for number in numbers.tolist()]
        known = np.array(rows, dtype=np.int64)[inverse].reshape(example.places.shape[:-1])
        places.append(np.stack([known, example.places[..., 1]], axis=-1))
    buckets = [example.buckets for example in examples]
    return {"places": padded(places, fill=NOWHERE), "buckets": padded(buckets)}


def _mask(lengths: Sequence[int]) -> Tensor:
    """(rows, longest) bool: True for the first `lengths[i]` items of row i."""
    longest = max(lengths, default=0)
    return torch.arange(longest) < torch.tensor(lengths, dtype=torch.int64)[:, None]
