"""Hierarchical encoders of two documents with cross-document attention (Zhou et al. 2020, "CDA", section 3).

    words     -> BiGRU -> pooled (eq. 1) -> sentences  [deep: told of the other's sentences and words]
    sentences -> BiGRU -> pooled (eq. 1) -> document   [both: told of the other's sentences and document]

`encoder` says where sentences come from: `gru`, from words as above (GRU-HAN); `vectors`, frozen encodings of
sentences, as by BERT, which go through two GRU layers (BERT-HAN); `average`, the same encodings, of which a
document is the plain mean (BERT-AVG). What the other document is told of are sentence vectors before they are
contextualised with `gru`, and after the first GRU layer with `vectors` (appendix A.4.2).

Choices where the paper is silent: deep updates both documents at once, from the vectors before; one affine
map serves all levels, as in the released code and as the 20K more parameters of section 5.1 say. Unlike in
that code, filling is masked everywhere, no state is carried from one sentence to the next, and no attention
is taken over the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import PretrainedConfig

from cdlm_lab.attention.cross_document import CrossDocumentAttention
from cdlm_lab.attention.pooling import AttentionPooling

ENCODERS = ("gru", "vectors", "average")
CDA = ("none", "shallow", "deep")


class HierarchicalConfig(PretrainedConfig):
    """Sizes and sort of a hierarchical matcher.

    Args:
        encoder: `gru`, `vectors` or `average`.
        cda: `none`, `shallow` or `deep`; deep needs words, so `gru`; `average` has none.
        vocabulary_size, word_size: of word embeddings, for `gru`; word 0 is filling.
        vector_size: of sentence encodings, for the other two.
        hidden_size: of a GRU in one direction and of the matcher's hidden layer (the paper: 50).
        combine: as of `CrossDocumentAttention`.
        initializer_range: deviation of the normal distribution that all weights are drawn from. The paper
            says nothing of it and the released code has 0.05, with which (and with word vectors a tenth as
            large) GRU-HAN stood at chance after 470 updates in nine recorded trainings on SciSumm; with 0.15
            and vectors of GloVe's size the nine of the same settings but twice the passes learned.

    Raises:
        ValueError: an unknown name, sizes that are missing, a `cda` that the encoder cannot have.
    """

    model_type = "cdlm_lab_hierarchical"

    def __init__(
        self,
        *,
        encoder: str = "average",
        cda: str = "none",
        vocabulary_size: int = 0,
        word_size: int = 50,
        vector_size: int = 0,
        hidden_size: int = 50,
        combine: str = "concatenation",
        initializer_range: float = 0.15,
        **rest: object,
    ) -> None:
        for name, value, known in (("encoder", encoder, ENCODERS), ("cda", cda, CDA)):
            if value not in known:
                raise ValueError(f"{name} is {value!r}; choose one of {', '.join(known)}")
        if cda == "deep" and encoder != "gru":
            raise ValueError(
                f"cda 'deep' attends to words, which encoder {encoder!r} has not; take 'shallow'"
            )
        if encoder == "average" and cda != "none":
            raise ValueError("encoder 'average' has no level to attend to; set cda to 'none'")
        needed = "vocabulary_size" if encoder == "gru" else "vector_size"
        if (vocabulary_size if encoder == "gru" else vector_size) < 1:
            raise ValueError(f"{needed} is 0; encoder {encoder!r} needs it")
        self.encoder, self.cda, self.combine = encoder, cda, combine
        self.vocabulary_size, self.word_size = vocabulary_size, word_size
        self.vector_size, self.hidden_size = vector_size, hidden_size
        self.initializer_range = initializer_range
        super().__init__(**rest)

    @property
    def state_size(self) -> int:
        """Of sentence and document vectors."""
        return self.vector_size if self.encoder == "average" else 2 * self.hidden_size


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedPair:
    """What the encoder makes of pairs of documents.

    Attributes:
        documents: (batch, 2, size), after cross-document attention.
        plain: (batch, 2, size), the same before it: d of equations 2 and 3.
        sentences: (batch, 2, sentences, size), the sentence vectors that the other document attends to.
    """

    documents: Tensor
    plain: Tensor
    sentences: Tensor


class HierarchicalEncoder(nn.Module):
    """Two documents at a time; see the head of this module."""

    def __init__(self, config: HierarchicalConfig) -> None:
        super().__init__()
        self.config = config
        size, hidden = config.state_size, config.hidden_size
        if config.encoder == "average":
            return
        if config.encoder == "gru":
            self.words = nn.Embedding(config.vocabulary_size, config.word_size, padding_idx=0)
            self.word_gru = _bidirectional(config.word_size, hidden)
            self.word_pooling = AttentionPooling(size)
        else:
            self.vector_gru = _bidirectional(config.vector_size, hidden)
        self.sentence_gru = _bidirectional(size, hidden)
        self.sentence_pooling = AttentionPooling(size)
        self.cross = None if config.cda == "none" else CrossDocumentAttention(size, combine=config.combine)

    def forward(self, inputs: Tensor, mask: Tensor) -> EncodedPair:
        """Encode pairs.

        Args:
            inputs: `gru`: (batch, 2, sentences, words) long, word 0 = filling; else (batch, 2, sentences,
                size) encodings.
            mask: (batch, 2, sentences) bool, True = sentence; those come first.
        """
        batch, sides, count = mask.shape
        flat = inputs.flatten(0, 1)  # (documents, sentences, ...)
        there = mask.flatten(0, 1)
        if self.config.encoder == "average":
            mean = (flat * there[..., None]).sum(1) / there.sum(1, keepdim=True).clamp(min=1)
            documents = mean.view(batch, sides, -1)
            return EncodedPair(documents=documents, plain=documents, sentences=inputs)
        words = None
        if self.config.encoder == "gru":
            sentences, words = self._from_words(flat)
        else:
            sentences = contextualised(self.vector_gru, flat, there)
        if self.config.cda == "deep":
            parts, parts_mask = torch.cat([sentences, words[0]], 1), torch.cat([there, words[1]], 1)
            sentences = self.cross(sentences, _other(parts), _other(parts_mask))[0] * there[..., None]
        plain, _ = self.sentence_pooling(contextualised(self.sentence_gru, sentences, there), there)
        documents = plain
        if self.cross is not None:
            parts = torch.cat([sentences, plain[:, None]], 1)  # (documents, sentences + 1, size)
            parts_mask = torch.cat([there, there.any(1, keepdim=True)], 1)
            documents = self.cross(plain[:, None], _other(parts), _other(parts_mask))[0][:, 0]
        return EncodedPair(
            documents=documents.view(batch, sides, -1),
            plain=plain.view(batch, sides, -1),
            sentences=sentences.view(batch, sides, count, -1),
        )

    def _from_words(self, ids: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Sentence vectors (documents, sentences, size); word vectors (documents, sentences * words, size)
        and which are there."""
        documents, count, longest = ids.shape
        flat = ids.reshape(-1, longest)
        there = flat != 0
        states = contextualised(self.word_gru, self.words(flat), there)
        sentences, _ = self.word_pooling(states, there)
        shape = (documents, count * longest)
        return sentences.view(documents, count, -1), (states.reshape(*shape, -1), there.reshape(shape))


def contextualised(rnn: nn.GRU | nn.LSTM, states: Tensor, mask: Tensor) -> Tensor:
    """Each row through the GRU or LSTM, by itself: (rows, items, 2 * hidden), 0 at filling.

    Args:
        states: (rows, items, size).
        mask: (rows, items) bool, True = item; in each row those come first.
    """
    lengths = mask.sum(dim=1)
    rows = lengths.nonzero().flatten()
    output = states.new_zeros(*mask.shape, 2 * rnn.hidden_size)
    if not len(rows):
        return output
    packed = pack_padded_sequence(states[rows], lengths[rows].cpu(), batch_first=True, enforce_sorted=False)
    read, _ = pad_packed_sequence(rnn(packed)[0], batch_first=True, total_length=mask.shape[1])
    return output.index_copy(0, rows, read.to(output.dtype))


def _bidirectional(size: int, hidden: int) -> nn.GRU:
    return nn.GRU(size, hidden, batch_first=True, bidirectional=True)


def _other(states: Tensor) -> Tensor:
    """Of documents in pairs, (2 * pairs, ...), each one's partner."""
    return states.unflatten(0, (-1, 2)).flip(1).flatten(0, 1)
