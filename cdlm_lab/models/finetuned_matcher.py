"""The document matcher with its sentence encoder trained along: BERT-HAN of table 3 (Zhou et al. 2020, "CDA",
section 5.2).

Sentences come as the numbers of `Vocabulary.of_tokenizer`: 0 = filling, 1 = no words in the sentence, else
the tokenizer's id + 2. They are read as `SentenceEncoder` reads them, between `[CLS]` and `[SEP]`, so that
the frozen encoder and this one see the same text.

Choices where the paper is silent: dropout of hidden states is the checkpoint's; the matcher has none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch
from torch import Tensor
from transformers import LongformerConfig, LongformerModel, PreTrainedTokenizerFast
from transformers.models.longformer.modeling_longformer import LongformerPreTrainedModel

from cdlm_lab.examples.vocabulary import FIRST_WORD
from cdlm_lab.models.checkpoint import is_trained, own_randomness
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.encoder import load_encoder, load_trained
from cdlm_lab.models.hierarchical import HierarchicalConfig
from cdlm_lab.models.matcher import DocumentMatcher, MatchOutput
from cdlm_lab.models.sentence_encoder import ENDS, lengths_of, sentence_vectors


class FineTunedMatcher(LongformerPreTrainedModel):
    """Longformer, the average of its token vectors, and the matcher over these.

    No token is global, so the global projections get no gradient; every other weight does.

    Args:
        config: of the encoder, and besides: `matcher`, the arguments of `HierarchicalConfig`; `max_tokens`,
            what a sentence is cut to, `[CLS]` and `[SEP]` included; `cls_token_id` and `sep_token_id`.
    """

    # transformers.Trainer then counts the pairs of the whole effective batch
    accepts_loss_kwargs = True

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__(config)
        self.longformer = LongformerModel(config, add_pooling_layer=False)
        self.matcher = DocumentMatcher(HierarchicalConfig(**config.matcher))
        self.post_init()

    def forward(
        self,
        inputs: Tensor,
        sentence_mask: Tensor,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> MatchOutput:
        """Match a batch of pairs.

        Args:
            inputs: (batch, 2, sentences, words) long, words as above; filling comes last.
            sentence_mask: (batch, 2, sentences) bool, True = sentence; the rest is not read.
            labels: (batch,), 1 = related, 0 = not.
            num_items_in_batch: pairs of the whole effective batch; None = those of this one.
        """
        ids, there = self._between_ends(inputs[sentence_mask])
        found = sentence_vectors(self.longformer, ids, there)
        vectors = found.new_zeros(*sentence_mask.shape, found.shape[-1])
        vectors[sentence_mask] = found
        return self.matcher(vectors, sentence_mask, labels, num_items_in_batch)

    def _between_ends(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Token ids and attention mask, (sentences, words + 2), of (sentences, words)."""
        words = words[:, : self.config.max_tokens - ENDS]
        ids = words.new_full((len(words), words.shape[1] + ENDS), self.config.pad_token_id)
        ids[:, 0] = self.config.cls_token_id
        is_word = words >= FIRST_WORD
        ids[:, 1:-1] = torch.where(is_word, words - FIRST_WORD, self.config.pad_token_id)
        last = is_word.sum(1, keepdim=True) + 1
        ids.scatter_(1, last, self.config.sep_token_id)
        there = torch.arange(ids.shape[1], device=ids.device) <= last
        return ids, there.long()


def load_finetuned_matcher(
    name_or_path: str | os.PathLike[str],
    *,
    matcher: Mapping[str, object],
    max_tokens: int,
    window: int | None = None,
    attention: str = "auto",
    attention_dropout: AttentionDropout = 0.0,
    seed: int = 0,
) -> tuple[FineTunedMatcher, PreTrainedTokenizerFast]:
    """A matcher on top of any encoder, or a trained one from its folder, and its tokenizer.

    Args:
        matcher: arguments of `HierarchicalConfig`, its encoder `vectors` or `average`; `vector_size` is that
            of the encoder. A trained matcher must have been trained with them.
        seed: of the matcher's weights and of all that the checkpoint does not bring.

    Other arguments and errors as of `load_encoder` and `lengths_of`.

    Raises:
        ValueError: a matcher of words, or other than the trained one.
    """
    name = os.fspath(name_or_path)
    form = {"attention": attention, "attention_dropout": attention_dropout}
    form |= lengths_of(max_tokens=max_tokens, window=window)
    if is_trained(name, FineTunedMatcher):
        model, tokenizer = load_trained(FineTunedMatcher, name, **form)
        _check_same(model.matcher.config, matcher, name=name)
        model.config.max_tokens = max_tokens
        return model, tokenizer
    if matcher.get("encoder") == "gru":
        raise ValueError("encoder is 'gru', which reads words, not sentences; choose 'vectors' or 'average'")
    encoder, tokenizer = load_encoder(name, **form, seed=seed)
    config = encoder.config
    config.matcher = dict(matcher) | {"vector_size": config.hidden_size}
    config.max_tokens = max_tokens
    config.cls_token_id, config.sep_token_id = tokenizer.cls_token_id, tokenizer.sep_token_id
    with own_randomness(seed):  # all is replaced below, but drawing it would move the global generator
        model = FineTunedMatcher(config)
    model.longformer = encoder
    with own_randomness(seed):  # so that a matcher of frozen vectors with this seed starts as the same
        model.matcher = DocumentMatcher(model.matcher.config)
    return model.eval(), tokenizer


def _check_same(trained: HierarchicalConfig, wanted: Mapping[str, object], *, name: str) -> None:
    for field, value in wanted.items():
        if (found := getattr(trained, field, None)) != value:
            raise ValueError(f"{name}: trained with {field} {found!r}, not {value!r}; ask for {found!r}")
