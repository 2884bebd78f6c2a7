"""Two kinds of models that decide whether two documents belong together.

`PairClassifier`: a Longformer over both documents in one sequence, with the head of transformers'
`LongformerForSequenceClassification` on its first token, under the same weight names (CDLM sections 2.2, 3.3
and C.2). The released code calls documents related where `logit_1 > 0.5`, whatever the other logit is, and
attends to padding; neither is done here.

`DocumentMatcher`: hierarchical encoders with cross-document attention, which also tell which sentences make
two documents belong together (Zhou et al. 2020, "CDA", sections 3 and 5).

    words     -> BiGRU -> pooled (eq. 1) -> sentences  [deep: attend to the other's sentences and words]
    sentences -> BiGRU -> pooled (eq. 1) -> document   [both: attends to the other's sentences and document]

Its `encoder` says where sentence vectors come from: `gru`, from words as above (GRU-HAN); `vectors`,
encodings of sentences, for example by BERT, which go through two GRU layers (BERT-HAN); `average`, the same
encodings, of which a document is the plain mean (BERT-AVG). Encodings are frozen, or fine-tuned in
`FineTunedMatcher`.

Choices where the paper is silent: deep attention updates both documents at once, from the vectors before it;
one affine map serves all levels, as the 20K more parameters of section 5.1 imply; the matcher has no dropout.
Unlike in the released code, padding is masked everywhere, no state is carried from one sentence to the next,
and no attention is normalised over the batch.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Unpack

import torch
from torch import Tensor, nn
from transformers import LongformerConfig, PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.models.longformer.modeling_longformer import LongformerClassificationHead
from transformers.utils import ModelOutput

from cdlm_lab.attention.document import (
    AttentionPooling,
    CrossDocumentAttention,
    alignment_weights,
    contextualised,
)
from cdlm_lab.attention.plan import Plan
from cdlm_lab.encoders.checkpoint import is_trained, own_randomness
from cdlm_lab.encoders.encoder import (
    EncoderOptions,
    EncoderWithHead,
    LoadOptions,
    load_encoder,
    load_encoder_with_head,
    load_trained,
    put_head_on,
)
from cdlm_lab.encoders.frozen import ENDS, lengths_of, sentence_vectors
from cdlm_lab.encoders.language_model import Items, label_loss, pair_loss
from cdlm_lab.encoders.packed import read_only_globals
from cdlm_lab.encoders.precision import as_weights, found_on_cpu, in_full
from cdlm_lab.errors import check_choice
from cdlm_lab.examples.tokens import FIRST_WORD


class PairClassifier(EncoderWithHead):
    """A Longformer with a head on the state of its first token only, so the last layer's local projections
    get no gradient, and a model from `load_pair_classifier` does not compute local tokens there."""

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__(config)
        config.num_labels = 2  # the encoder's config may have the number of another task
        self.classifier = LongformerClassificationHead(config)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,  # (batch, seq), [CLS] first
        attention_mask: Tensor | None = None,  # (batch, seq), 1 = token, 0 = padding; None = no padding
        global_attention_mask: Tensor | None = None,  # (batch, seq), 1 = global; the first token must be
        labels: Tensor | None = None,  # (batch,), 1 = related, 0 = not
        plan: Plan | None = None,  # of the masks; None = the encoder makes it
        num_items_in_batch: Items = None,  # pairs of the whole effective batch
    ) -> SequenceClassifierOutput:
        """The logits of a batch of pairs, (batch, 2), float32, whose softmax gives the probabilities of not
        related and related; with labels also the loss, summed cross entropy divided by the number of pairs.
        Raises ValueError when the first token is not global."""
        if global_attention_mask is None or found_on_cpu(global_attention_mask[:, 0] != 1):
            raise ValueError("the first token must be global: set it to 1 in global_attention_mask")
        states = self.longformer(
            input_ids, attention_mask, global_attention_mask, plan=plan
        ).last_hidden_state
        with in_full(states.device):
            logits = self.classifier(as_weights(states[:, :1], self.classifier)).float()  # (batch, 2)
        return SequenceClassifierOutput(loss=label_loss(logits, labels, num_items_in_batch), logits=logits)


def load_pair_classifier(
    name_or_path: str | os.PathLike[str], *, whole_last_layer: bool = False, **options: Unpack[LoadOptions]
) -> tuple[PairClassifier, PreTrainedTokenizerFast]:
    """A pair classifier on top of any encoder, its head drawn from the seed, or a trained one from its
    folder, and its tokenizer. `whole_last_layer`: True = the last layer computes all tokens, which sentence
    alignment reads; it takes longer and changes no logit."""
    model, tokenizer = load_encoder_with_head(PairClassifier, name_or_path, **options)
    if not whole_last_layer:
        read_only_globals(model.longformer)
    return model, tokenizer


ENCODERS = ("gru", "vectors", "average")
CDA = ("none", "shallow", "deep")


class HierarchicalConfig(PretrainedConfig):
    """Sizes and kind of a hierarchical matcher. Raises ValueError for an unknown name, a missing size, or a
    `cda` that the encoder does not support.

    The paper says nothing of `initializer_range`, the standard deviation of the normal distribution that all
    weights are drawn from. No single value suits all: with the 0.05 of the released code GRU-HAN stayed at
    chance in nine trainings on SciSumm, and with 0.15 on storyworld, where sums over 200 entries start so
    large that the head's ReLUs die. 0 = scaled to the size of each weight (Glorot and Bengio 2010), and
    orthogonal for the state-to-state weights of a GRU.

    Nor does it mention `standardised`: sentence encodings have much in common (in those that come with the
    project the mean of an entry is four times its standard deviation over documents), and in the head that
    common part soon drives all ReLUs below 0, from where none recovers. So the mean is subtracted, and the
    rest divided by its standard deviation.
    """

    model_type = "cdlm_lab_hierarchical"

    def __init__(
        self,
        *,
        encoder: str = "average",  # `gru`, `vectors` or `average`
        cda: str = "none",  # `none`, `shallow` or `deep` (`gru` only, as it needs words); `average`: `none`
        vocabulary_size: int = 0,  # number of word embeddings, for `gru`; word 0 is padding
        word_size: int = 50,  # of a word embedding, for `gru`
        vector_size: int = 0,  # of sentence encodings, for `vectors` and `average`
        standardised: bool = False,  # for the same two; set up by `HierarchicalEncoder.standardise`
        hidden_size: int = 50,  # of a GRU in one direction and of the matcher's hidden layer (the paper: 50)
        initializer_range: float = 0.0,
        **rest: object,
    ) -> None:
        for name, value, known in (("encoder", encoder, ENCODERS), ("cda", cda, CDA)):
            check_choice(name, value, known)
        if cda == "deep" and encoder != "gru":
            raise ValueError(
                f"cda 'deep' attends to words, which encoder {encoder!r} has not; take 'shallow'"
            )
        if encoder == "average" and cda != "none":
            raise ValueError("encoder 'average' has no level to attend to; set cda to 'none'")
        needed = "vocabulary_size" if encoder == "gru" else "vector_size"
        if (vocabulary_size if encoder == "gru" else vector_size) < 1:
            raise ValueError(f"{needed} is 0; encoder {encoder!r} needs it")
        if standardised and encoder == "gru":
            raise ValueError("standardised is for encodings of sentences; encoder 'gru' reads words")
        self.encoder, self.cda = encoder, cda
        self.vocabulary_size, self.word_size = vocabulary_size, word_size
        self.vector_size, self.hidden_size, self.standardised = vector_size, hidden_size, standardised
        self.initializer_range = initializer_range
        super().__init__(**rest)

    @property
    def state_size(self) -> int:
        """The size of sentence and document vectors."""
        return self.vector_size if self.encoder == "average" else 2 * self.hidden_size


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedPair:
    """The encoder's output for a batch of pairs of documents."""

    documents: Tensor  # (batch, 2, size), after cross-document attention
    plain: Tensor  # (batch, 2, size), before cross-document attention: d of equations 2 and 3
    sentences: Tensor  # (batch, 2, sentences, size), the sentence vectors that the other document attends to


class HierarchicalEncoder(nn.Module):
    """Encodes the documents of pairs as vectors."""

    def __init__(self, config: HierarchicalConfig) -> None:
        super().__init__()
        self.config = config
        size, hidden = config.state_size, config.hidden_size
        both_ways = {"batch_first": True, "bidirectional": True}
        if config.standardised:
            self.register_buffer("centre", torch.zeros(config.vector_size))
            self.register_buffer("spread", torch.ones(()))
        if config.encoder == "average":
            return
        if config.encoder == "gru":
            self.words = nn.Embedding(config.vocabulary_size, config.word_size, padding_idx=0)
            self.word_gru = nn.GRU(config.word_size, hidden, **both_ways)
            self.word_pooling = AttentionPooling(size)
        else:
            self.vector_gru = nn.GRU(config.vector_size, hidden, **both_ways)
        self.sentence_gru = nn.GRU(size, hidden, **both_ways)
        self.sentence_pooling = AttentionPooling(size)
        self.cross = None if config.cda == "none" else CrossDocumentAttention(size)

    def standardise(self, vectors: Tensor) -> None:
        """From now on subtract the mean of these `vectors` (sentences, size) from all inputs, and divide by
        the root mean square of what then remains of them."""
        self.centre.copy_(vectors.mean(0))
        self.spread.copy_((vectors - self.centre).square().mean().sqrt().clamp(min=1e-6))

    def forward(self, inputs: Tensor, mask: Tensor) -> EncodedPair:
        """Encode pairs. `inputs`: with `gru` (batch, 2, sentences, words) long, word 0 = padding; else
        encodings (batch, 2, sentences, size). `mask`: (batch, 2, sentences), True = sentence, False =
        padding, which must come last."""
        batch, sides, count = mask.shape
        if self.config.standardised:
            inputs = (inputs - self.centre) / self.spread * mask[..., None]
        flat, is_sentence = inputs.flatten(0, 1), mask.flatten(0, 1)  # (documents, sentences, ...)
        if self.config.encoder == "average":
            mean = (flat * is_sentence[..., None]).sum(1) / is_sentence.sum(1, keepdim=True).clamp(min=1)
            documents = mean.view(batch, sides, -1)
            return EncodedPair(documents=documents, plain=documents, sentences=inputs)
        words = None
        if self.config.encoder == "gru":
            sentences, words = self._from_words(flat)
        else:
            sentences = contextualised(self.vector_gru, flat, is_sentence)
        if self.config.cda == "deep":
            parts, parts_mask = torch.cat([sentences, words[0]], 1), torch.cat([is_sentence, words[1]], 1)
            sentences = self.cross(sentences, _other(parts), _other(parts_mask))[0] * is_sentence[..., None]
        plain, _ = self.sentence_pooling(
            contextualised(self.sentence_gru, sentences, is_sentence), is_sentence
        )
        documents = plain
        if self.cross is not None:
            parts = torch.cat([sentences, plain[:, None]], 1)  # (documents, sentences + 1, size)
            parts_mask = torch.cat([is_sentence, is_sentence.any(1, keepdim=True)], 1)
            documents = self.cross(plain[:, None], _other(parts), _other(parts_mask))[0][:, 0]
        return EncodedPair(
            documents=documents.view(batch, sides, -1),
            plain=plain.view(batch, sides, -1),
            sentences=sentences.view(batch, sides, count, -1),
        )

    def _from_words(self, ids: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Sentence vectors (documents, sentences, size); word vectors (documents, sentences * words, size)
        with a mask, True = word."""
        documents, count, longest = ids.shape
        flat = ids.reshape(-1, longest)
        is_word = flat != 0
        states = contextualised(self.word_gru, self.words(flat), is_word)
        sentences, _ = self.word_pooling(states, is_word)
        shape = (documents, count * longest)
        return sentences.view(documents, count, -1), (states.reshape(*shape, -1), is_word.reshape(shape))


def _other(states: Tensor) -> Tensor:
    """Swap the two documents of each pair in a tensor of shape (2 * pairs, ...)."""
    return states.unflatten(0, (-1, 2)).flip(1).flatten(0, 1)


@dataclass
class MatchOutput(ModelOutput):
    """What a matcher returns, float32."""

    loss: Tensor | None = None  # (), summed cross entropy divided by the number of pairs; None without labels
    logits: Tensor | None = None  # (batch,); the sigmoid is the probability that the documents are related
    # (batch, 2, sentences), AttScore (equation 3): softmax over a document's sentences of their dot products
    # with the other document's vector before cross-document attention
    attention: Tensor | None = None
    cosine: Tensor | None = None  # (batch, 2, sentences), CosScore (equation 4) of the same; -1 at padding


EMBEDDING_RANGE = 0.15  # standard deviation of initial word vectors where `initializer_range` is 0
GRU_GATES = 3  # whose weight matrices are stacked in one


class DocumentMatcher(PreTrainedModel):
    """[d_A; d_B] -> Linear -> ReLU -> Linear -> one logit. Weights are initialised as the config's
    `initializer_range` says, biases to 0."""

    config_class = HierarchicalConfig
    # the training loop then counts the pairs of the whole effective batch
    accepts_loss_kwargs = True

    def __init__(self, config: HierarchicalConfig) -> None:
        super().__init__(config)
        self.encoder = HierarchicalEncoder(config)
        self.head = nn.Sequential(
            nn.Linear(2 * config.state_size, config.hidden_size), nn.ReLU(), nn.Linear(config.hidden_size, 1)
        )
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        deviation = self.config.initializer_range
        for name, weight in module.named_parameters(recurse=False):
            if "bias" in name:
                nn.init.zeros_(weight)
            elif deviation or isinstance(module, nn.Embedding):
                nn.init.normal_(weight, std=deviation or EMBEDDING_RANGE)
            else:
                draw = nn.init.orthogonal_ if "weight_hh" in name else nn.init.xavier_uniform_
                for gate in weight.data.chunk(GRU_GATES if isinstance(module, nn.GRU) else 1):
                    draw(gate)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])

    def forward(
        self,
        inputs: Tensor,  # (batch, 2, sentences, words) long, or encodings (batch, 2, sentences, size)
        sentence_mask: Tensor,  # (batch, 2, sentences) bool, True = sentence
        labels: Tensor | None = None,  # (batch,), 1 = related, 0 = not
        num_items_in_batch: Items = None,  # pairs of the whole effective batch
    ) -> MatchOutput:
        """Match a batch of pairs."""
        encoded = self.encoder(inputs, sentence_mask)
        with in_full(sentence_mask.device):
            documents = as_weights(encoded.documents, self.head)
            logits = self.head(documents.flatten(1)).squeeze(-1).float()
            # Equations 3 and 4: the sentences of each document by the other document's vector
            others = encoded.plain.float().flip(1).flatten(0, 1)[:, None]  # (2 * batch, 1, size)
            parts, is_sentence = encoded.sentences.float().flatten(0, 1), sentence_mask.flatten(0, 1)
            attention = alignment_weights(others, parts, is_sentence)[:, 0]
            cosine = torch.cosine_similarity(parts, others, dim=-1).masked_fill(~is_sentence, -1.0)
        return MatchOutput(
            loss=pair_loss(logits, labels, num_items_in_batch),
            logits=logits,
            attention=attention.view(sentence_mask.shape),
            cosine=cosine.view(sentence_mask.shape),
        )


class FineTunedMatcher(EncoderWithHead):
    """A Longformer, the average of each sentence's token vectors, and the matcher over these averages.

    Sentences are given as the numbers of `Vocabulary.of_tokenizer`: 0 = padding, 1 = no words in the
    sentence, else the tokenizer's id + 2. They are encoded between `[CLS]` and `[SEP]`, as `SentenceEncoder`
    does. No token is global, so the global projections get no gradient; every other weight does.
    """

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__(config)
        self.matcher = DocumentMatcher(HierarchicalConfig(**config.matcher))
        self.post_init()

    def forward(
        self,
        inputs: Tensor,  # (batch, 2, sentences, words) long; padding comes last
        sentence_mask: Tensor,  # (batch, 2, sentences) bool, True = sentence, False = ignored
        labels: Tensor | None = None,  # (batch,), 1 = related, 0 = not
        num_items_in_batch: Items = None,  # pairs of the whole effective batch
    ) -> MatchOutput:
        """Match a batch of pairs."""
        encoded = sentence_vectors(self.longformer, *self._between_ends(inputs[sentence_mask]))
        vectors = encoded.new_zeros(*sentence_mask.shape, encoded.shape[-1])
        vectors[sentence_mask] = encoded
        return self.matcher(vectors, sentence_mask, labels, num_items_in_batch)

    def _between_ends(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Ids with `[CLS]` and `[SEP]` and attention mask, (sentences, words + 2), of (sentences, words)."""
        words = words[:, : self.config.max_tokens - ENDS]
        ids = words.new_full((len(words), words.shape[1] + ENDS), self.config.pad_token_id)
        ids[:, 0] = self.config.cls_token_id
        is_word = words >= FIRST_WORD
        ids[:, 1:-1] = torch.where(is_word, words - FIRST_WORD, self.config.pad_token_id)
        last = is_word.sum(1, keepdim=True) + 1
        ids.scatter_(1, last, self.config.sep_token_id)
        return ids, (torch.arange(ids.shape[1], device=ids.device) <= last).long()


def load_finetuned_matcher(
    name_or_path: str | os.PathLike[str],
    *,
    matcher: Mapping[str, object],
    max_tokens: int,
    window: int | None = None,
    seed: int = 0,
    **options: Unpack[EncoderOptions],
) -> tuple[FineTunedMatcher, PreTrainedTokenizerFast]:
    """A matcher on top of any encoder, or a trained one from its folder, and its tokenizer.

    `matcher`: arguments of `HierarchicalConfig`, with encoder `vectors` or `average`; a trained matcher must
    have been trained with the same. `max_tokens`: length that sentences are truncated to, `[CLS]` and `[SEP]`
    included. `window`: total width of attention; None = every token of a sentence attends to every other.
    Raises ValueError: a matcher with encoder `gru`, or other than the trained one; `max_tokens` below 3.
    """
    name, lengths = os.fspath(name_or_path), lengths_of(max_tokens=max_tokens, window=window)
    if is_trained(name, FineTunedMatcher):
        model, tokenizer = load_trained(FineTunedMatcher, name, **lengths, **options)
        for field, value in matcher.items():
            if (own := getattr(model.matcher.config, field, None)) != value:
                raise ValueError(f"{name}: trained with {field} {own!r}, not {value!r}; ask for {own!r}")
        model.config.max_tokens = max_tokens
        return model, tokenizer
    if matcher.get("encoder") == "gru":
        raise ValueError("encoder is 'gru', which reads words, not sentences; choose 'vectors' or 'average'")
    encoder, tokenizer = load_encoder(name, **lengths, **options, seed=seed)
    model = put_head_on(
        encoder,
        FineTunedMatcher,
        seed=seed,
        matcher=dict(matcher) | {"vector_size": encoder.config.hidden_size},
        max_tokens=max_tokens,
        cls_token_id=tokenizer.cls_token_id,
        sep_token_id=tokenizer.sep_token_id,
    )
    with own_randomness(seed):  # so that it starts like a matcher of frozen vectors with the same seed
        model.matcher = DocumentMatcher(model.matcher.config)
    return model.eval(), tokenizer
