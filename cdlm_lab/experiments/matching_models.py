"""From a system's name to a model, and to what of two documents it reads (CDA section 5.1, CDLM section
3.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.collate import Collate
from cdlm_lab.data.document_pairs import DocumentPair, PairDocument
from cdlm_lab.data.word_vectors import read_word_vectors
from cdlm_lab.examples.embedding_table import embedding_table
from cdlm_lab.examples.match_sequence import MatchExamples, SentencesById
from cdlm_lab.examples.pair_batches import PairCollate
from cdlm_lab.examples.sentence_pairs import SentencePairExamples, SentenceWords
from cdlm_lab.examples.special_tokens import from_tokenizer
from cdlm_lab.examples.vocabulary import FIRST_WORD, Vocabulary
from cdlm_lab.experiments.matching_systems import System
from cdlm_lab.experiments.variants import checkpoint_of, reset_globals
from cdlm_lab.models.checkpoint import own_randomness, read_own_model
from cdlm_lab.models.dropout import AttentionDropout
from cdlm_lab.models.encoder import load_encoder
from cdlm_lab.models.finetuned_matcher import load_finetuned_matcher
from cdlm_lab.models.hierarchical import HierarchicalConfig
from cdlm_lab.models.matcher import DocumentMatcher
from cdlm_lab.models.pair_classifier import load_pair_classifier
from cdlm_lab.models.sentence_encoder import load_sentence_encoder
from cdlm_lab.models.sentence_encodings import SentenceEncodings
from cdlm_lab.parameters import check_least, check_types

# Root mean square of the entries of word vectors that an encoder gives: about that of GloVe's 50-dimensional
# ones, with which the paper's hierarchy starts. An encoder's own are a tenth of it.
WORD_VECTOR_SIZE = 0.6
LEAST_SEEN = 2  # times that a word occurs in train to have an embedding of its own, without given vectors
ENCODINGS_FOLDER = "encodings"


@dataclass(frozen=True, kw_only=True)
class MatchingModels:
    """What the systems are made of.

    Attributes:
        sentence_encoder: of BERT-AVG and BERT-HAN: a folder, a hub name, `minilm`, or one that comes with the
            project.
        word_vectors: of GRU-HAN: a text file as GloVe's, or an encoder, whose embedding table is taken; "" =
            the words of the training documents, from vectors drawn at random.
        hidden_size: of word vectors, of GRUs in one direction and of the matcher (the paper: 50); larger word
            vectors are reduced to it by their principal components.
        most_sentences: of a document; later ones are not read by the hierarchical systems.
        most_words: of a sentence, for these.
        encoders: what Longformer and the CDLM variants start from: `storyworld`, or a folder with a folder
            for each, such as `cdlm` or `cdlm/model`.
        reset_globals: Longformer and Local CDLM start with their local projections as the global ones, as in
            the paper; False = with those of the checkpoint. (Of the models of notebook 01 they are the same.)
        max_length: of both documents in tokens, for these (the paper: 4096).
        window: of their local attention.
        attention_dropout: of attention weights, where an encoder is trained; `checkpoint` = as the checkpoint
            says. That of hidden states is the checkpoint's.
    """

    sentence_encoder: str = "storyworld/longformer"
    word_vectors: str = "storyworld/longformer"
    hidden_size: int = 50
    most_sentences: int = 60
    most_words: int = 50
    encoders: str = "storyworld"
    reset_globals: bool = True
    max_length: int = 512
    window: int = 32
    attention_dropout: AttentionDropout = 0.0

    def __post_init__(self) -> None:
        check_types(self)
        check_least(self, 1, "hidden_size", "most_sentences", "most_words")


@dataclass(frozen=True, kw_only=True)
class Matcher:
    """A model and how it reads pairs.

    Attributes:
        examples: from pairs to what `collate` makes batches of, labels included.
        vocabulary: of the words, where the model has its own.
    """

    system: System
    model: PreTrainedModel
    examples: Callable[[Sequence[DocumentPair]], Sequence[Mapping[str, Any]]]
    collate: Callable[..., Mapping[str, torch.Tensor]]
    tokenizer: PreTrainedTokenizerBase | None = None
    vocabulary: Vocabulary | None = None


@dataclass(frozen=True, kw_only=True)
class MatcherParts:
    """What matchers are made of; what several of them share is made once, when it is first needed.

    Attributes:
        training: pairs the documents of which give the words if there are no vectors.
        cache: folder of encodings of sentences.
    """

    settings: MatchingModels
    training: Sequence[DocumentPair]
    cache: Path

    @cached_property
    def word_table(self) -> tuple[Vocabulary, np.ndarray | None]:
        """The words of GRU-HAN and their first embeddings, (words, hidden_size); None = to be drawn.

        Raises what their readers raise; ValueError for vectors that are smaller than `hidden_size`.
        """
        settings = self.settings
        if not settings.word_vectors:
            documents = {one.id: one for pair in self.training for one in (pair.first, pair.second)}
            sentences = (sentence for one in documents.values() for sentence in one.sentences)
            return Vocabulary.of_sentences(sentences, least=LEAST_SEEN), None
        if Path(settings.word_vectors).is_file():
            words, vectors = read_word_vectors(settings.word_vectors)
            return Vocabulary.of_words(words), embedding_table(vectors, size=settings.hidden_size)
        encoder, tokenizer = load_encoder(
            settings.word_vectors, max_length=512, window=settings.window, seed=0
        )
        vocabulary = Vocabulary.of_tokenizer(tokenizer)
        # some checkpoints have more rows than ids
        vectors = encoder.get_input_embeddings().weight.detach().numpy()[: len(vocabulary) - FIRST_WORD]
        table = embedding_table(vectors, size=settings.hidden_size)
        return vocabulary, table * (WORD_VECTOR_SIZE / float(np.sqrt(np.square(table).mean())))

    @cached_property
    def encodings(self) -> SentenceEncodings:
        """Of frozen BERT, kept in `cache`."""
        name, most = self.settings.sentence_encoder, self.settings.most_words
        encoder = load_sentence_encoder(name, max_tokens=most, seed=0)
        return SentenceEncodings(encoder, self.cache / ENCODINGS_FOLDER)


def new_matcher(system: System, parts: MatcherParts, *, seed: int, trained: Path | None = None) -> Matcher:
    """A matcher of a system, untrained unless told otherwise.

    Args:
        seed: of all weights that are drawn.
        trained: folder of a trained one of the same settings.

    Raises:
        ValueError: with one clear line for whatever does not fit.
    """
    if system.encoder == "longformer":
        return _longformer(system, parts.settings, seed=seed, trained=trained)
    if system.finetuned:
        return _finetuned(system, parts.settings, seed=seed, trained=trained)
    if system.encoder == "gru":
        return _from_words(system, parts, seed=seed, trained=trained)
    return _from_encodings(system, parts, seed=seed, trained=trained)


def _longformer(system: System, settings: MatchingModels, *, seed: int, trained: Path | None) -> Matcher:
    model, tokenizer = load_pair_classifier(
        trained or checkpoint_of(settings.encoders, system.name),
        max_length=settings.max_length,
        window=settings.window,
        attention_dropout=settings.attention_dropout,
        seed=seed,
        whole_last_layer=trained is not None,  # for the alignment of sentences
    )
    if settings.reset_globals and not trained:
        reset_globals(model, system.name)

    def examples(pairs: Sequence[DocumentPair]) -> MatchExamples:
        return MatchExamples(
            pairs=pairs,
            documents=SentencesById(pairs, tokenizer),
            special=from_tokenizer(tokenizer),
            max_length=settings.max_length,
        )

    collate = Collate(pad_token_id=tokenizer.pad_token_id)
    return Matcher(system=system, model=model, examples=examples, collate=collate, tokenizer=tokenizer)


def _finetuned(system: System, settings: MatchingModels, *, seed: int, trained: Path | None) -> Matcher:
    model, tokenizer = load_finetuned_matcher(
        trained or settings.sentence_encoder,
        matcher={"encoder": system.encoder, "cda": system.cda, "hidden_size": settings.hidden_size},
        max_tokens=settings.most_words,
        attention_dropout=settings.attention_dropout,
        seed=seed,
    )
    vocabulary = Vocabulary.of_tokenizer(tokenizer)
    return Matcher(
        system=system,
        model=model,
        examples=_examples(_words(vocabulary, settings)),
        collate=PairCollate(),
        tokenizer=tokenizer,
    )


def _from_words(system: System, parts: MatcherParts, *, seed: int, trained: Path | None) -> Matcher:
    if trained:
        vocabulary, model = Vocabulary.load(trained), read_own_model(DocumentMatcher, str(trained))
    else:
        vocabulary, table = parts.word_table
        with own_randomness(seed):
            model = DocumentMatcher(_config(system, parts.settings, vocabulary_size=len(vocabulary)))
        if table is not None:
            with torch.no_grad():
                model.encoder.words.weight.copy_(torch.from_numpy(table))
    return Matcher(
        system=system,
        model=model,
        examples=_examples(_words(vocabulary, parts.settings)),
        collate=PairCollate(),
        vocabulary=vocabulary,
    )


def _from_encodings(system: System, parts: MatcherParts, *, seed: int, trained: Path | None) -> Matcher:
    settings, encodings = parts.settings, parts.encodings
    if trained:
        model = read_own_model(DocumentMatcher, str(trained))
    else:
        with own_randomness(seed):
            model = DocumentMatcher(_config(system, settings, vector_size=encodings.size))

    def read(document: PairDocument) -> tuple[str, ...]:
        return document.sentences[: settings.most_sentences]

    def examples(pairs: Sequence[DocumentPair]) -> SentencePairExamples:
        documents = {one.id: one for pair in pairs for one in (pair.first, pair.second)}
        encodings.ensure(sentence for one in documents.values() for sentence in read(one))
        return SentencePairExamples(pairs=pairs, encode=lambda one: encodings.vectors(read(one)))

    return Matcher(system=system, model=model, examples=examples, collate=PairCollate())


def _config(system: System, settings: MatchingModels, **sizes: int) -> HierarchicalConfig:
    return HierarchicalConfig(
        encoder=system.encoder,
        cda=system.cda,
        word_size=settings.hidden_size,
        hidden_size=settings.hidden_size,
        **sizes,
    )


def _words(vocabulary: Vocabulary, settings: MatchingModels) -> SentenceWords:
    return SentenceWords(
        vocabulary=vocabulary, most_sentences=settings.most_sentences, most_words=settings.most_words
    )


def _examples(encode: Callable[[PairDocument], Any]) -> Callable[[Sequence[DocumentPair]], Any]:
    return lambda pairs: SentencePairExamples(pairs=pairs, encode=encode)
