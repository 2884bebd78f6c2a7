"""Document matching systems (CDA section 5.1, CDLM section 3.3): from a name to a model, to the text it
reads, and to its predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from pydantic import Field
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.data.files import read_word_vectors
from cdlm_lab.data.records import DocumentPair, PairDocument
from cdlm_lab.data.words import words_of
from cdlm_lab.encoders.checkpoint import on_default_device, own_randomness, read_own_model
from cdlm_lab.encoders.conversion import reset_globals
from cdlm_lab.encoders.encoder import AttentionDropout, load_encoder
from cdlm_lab.encoders.frozen import PassingSentences, SentenceEncodings, load_sentence_encoder
from cdlm_lab.encoders.precision import Precision
from cdlm_lab.encoders.variants import VARIANTS, checkpoint_of, variant_name
from cdlm_lab.examples.collate import Collate
from cdlm_lab.examples.tokens import FIRST_WORD, Vocabulary, from_tokenizer
from cdlm_lab.parameters import settings
from cdlm_lab.runs import runs
from cdlm_lab.runs.items import write_frame
from cdlm_lab.tasks.matching import examples as pair_examples
from cdlm_lab.tasks.matching import model as matching


@dataclass(frozen=True, slots=True)
class MatchSystem(runs.System):
    """A system that predicts whether two documents belong together."""

    about: str  # a short description, shown in tables
    # `words` or `means` (cosine of TF-IDF or of mean sentence vectors; only a threshold is learned),
    # `gru`, `vectors` or `average` (of `HierarchicalConfig`), or `longformer` (reads both documents at once).
    encoder: str
    against: str = ""  # the system it is compared with in significance tests if both are run; "" = none
    cda: str = "none"  # cross-document attention, `none`, `shallow` or `deep`

    @property
    def is_model(self) -> bool:
        """False if only a threshold is learned, which is fitted when it is needed."""
        return self.encoder not in ("words", "means")

    @property
    def finetuned(self) -> bool:
        """True if the sentence encoder of a hierarchical model is fine-tuned, too."""
        return "finetuned" in self.name

    @property
    def trains_encoder(self) -> bool:
        """True if a pretrained encoder is fine-tuned, which takes long."""
        return self.encoder == "longformer" or self.finetuned


_SHALLOW = "the same; each document attends to the other's sentences"
_DEEP = "the same; each sentence attends to the other's sentences and words, too"
_TUNED, _ALONG = "bert-han-finetuned", "BERT trained along"
_BOTH = "reads both documents at once"
SYSTEMS = {
    system.name: system
    for system in (
        MatchSystem("tf-idf", "TF-IDF cosine", "how many words they share: a threshold, no model", "words"),
        MatchSystem(
            "bert-cosine",
            "BERT cosine",
            "cosine of their mean sentences by frozen BERT: a threshold, no model",
            "means",
        ),
        MatchSystem(
            "bert-avg", "BERT-AVG", "a document is the mean of its sentences by frozen BERT", "average"
        ),
        MatchSystem(
            "bert-han", "BERT-HAN", "GRUs and attention over sentences by frozen BERT", "vectors", "bert-avg"
        ),
        MatchSystem("bert-han-shallow", "BERT-HAN + SHALLOW", _SHALLOW, "vectors", "bert-han", "shallow"),
        MatchSystem(_TUNED, "BERT-HAN, fine-tuned", f"as bert-han, {_ALONG}", "vectors", "bert-han"),
        MatchSystem(
            f"{_TUNED}-shallow",
            "BERT-HAN + SHALLOW, fine-tuned",
            f"as bert-han-shallow, {_ALONG}",
            "vectors",
            _TUNED,
            "shallow",
        ),
        MatchSystem("gru-han", "GRU-HAN", "GRUs and attention over words, then over sentences", "gru"),
        MatchSystem("gru-han-shallow", "GRU-HAN + SHALLOW", _SHALLOW, "gru", "gru-han", "shallow"),
        MatchSystem("gru-han-deep", "GRU-HAN + DEEP", _DEEP, "gru", "gru-han-shallow", "deep"),
        MatchSystem("longformer", variant_name("longformer"), _BOTH, "longformer"),
        *(
            MatchSystem(
                name,
                variant_name(name),
                f"{_BOTH}; pretrained as notebook 01 says",
                "longformer",
                "longformer",
            )
            for name in VARIANTS
            if name != "longformer"
        ),
    )
}


@settings
class MatcherSettings:
    """The parameters of the systems of notebooks 04 and 05."""

    systems: str = "tf-idf gru-han-deep cdlm"
    # For BERT-AVG and BERT-HAN: a folder, a hub name, `minilm`, or one that ships with the project.
    sentence_encoder: str = "storyworld/longformer"
    # For GRU-HAN: a text file in GloVe's format, or an encoder, whose embedding table is used; "" = the words
    # of the training documents, with random vectors.
    word_vectors: str = "storyworld/longformer"
    # Root mean square to which the vectors of an encoder are scaled (GloVe of size 50 has 0.6). The
    # larger they are, the more a word attends to the same word of the other document from the start.
    word_vector_size: float = Field(default=2.4, gt=0)
    # Size of word vectors, of GRUs in one direction and of the matcher (the paper: 50); larger word vectors
    # are reduced to it by their principal components.
    hidden_size: int = Field(default=50, ge=1)
    # Most sentences of a document and words of a sentence that hierarchical systems read.
    most_sentences: int = Field(default=10, ge=1)
    most_words: int = Field(default=24, ge=1)
    encoders: str = "storyworld"  # or a folder with a folder for each variant, such as `cdlm` or `cdlm/model`
    reset_globals: bool = True
    max_length: int = 512
    window: int = 512
    attention_dropout: AttentionDropout = (
        0.0  # where an encoder is trained; hidden states keep the checkpoint's dropout
    )
    precision: Precision = "auto"  # of the forward pass in training, of frozen encodings and of predictions

    def __post_init__(self) -> None:
        _ = self.chosen

    @property
    def chosen(self) -> tuple[MatchSystem, ...]:
        """The systems, in the order of SYSTEMS. Raises ParameterError for an unknown name, or none."""
        return runs.chosen_systems(self.systems, SYSTEMS)


# ---- predictions ----


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchPredictions:
    """Predictions for pairs, in the same order."""

    probabilities: np.ndarray  # float64 (pairs,), probability that the documents belong together
    # Name of a score -> for each pair float64 (sentences of the first document,), higher = belongs more to
    # the second document: `attention` and `cosine` (CDA equations 3 and 4). Sentences beyond those that a
    # system reads are missing at the end. Empty for a model that has no such scores.
    alignments: dict[str, list[np.ndarray]]

    @property
    def decisions(self) -> np.ndarray:
        """bool (pairs,), True = predicted to belong together (probability above 0.5)."""
        return self.probabilities > 0.5

    @property
    def frame(self) -> pd.DataFrame:
        """One row a pair: its probability, and a list of scores for each alignment."""
        return pd.DataFrame({"probability": self.probabilities, **self.alignments})

    def save(self, file: Path) -> None:
        """Write the frame, atomically."""
        write_frame(self.frame, file)

    @classmethod
    def of_frame(cls, frame: pd.DataFrame) -> MatchPredictions:
        """The predictions of this `frame`."""
        alignments = {name: list(frame[name]) for name in frame if name != "probability"}
        return cls(probabilities=frame["probability"].to_numpy(), alignments=alignments)


@dataclass(frozen=True, kw_only=True)
class Matcher:
    """A model and how it reads pairs of documents."""

    system: MatchSystem
    model: PreTrainedModel
    # Turns pairs into examples, labels included, from which `collate` makes batches.
    examples: Callable[[Sequence[DocumentPair]], Sequence[Mapping[str, Any]]]
    collate: Callable[..., Mapping[str, torch.Tensor]]
    # Saved beside the model; None for one that reads sentences as vectors.
    tokenizer: PreTrainedTokenizerBase | Vocabulary | None = None


def predict_pairs(matcher: Matcher, pairs: Sequence[DocumentPair], **reading: Any) -> MatchPredictions:
    """Predict every pair. `reading`: batch size, precision, name beside a progress bar."""
    on_default_device(matcher.model)
    lengths = [sum(map(len, (*pair.first.sentences, *pair.second.sentences))) for pair in pairs]
    probabilities = np.empty(len(pairs))
    alignments: dict[str, list[np.ndarray]] = {}
    form = {"lengths": lengths, "unit": "pair", **reading}
    outputs = runs.outputs_by_length(matcher.model, matcher.examples(pairs), matcher.collate, **form)
    for numbers, examples, output in outputs:
        probabilities[numbers] = _probabilities(output["logits"])
        for score in ("attention", "cosine"):
            if score in output:
                of_pairs = alignments.setdefault(score, [np.empty(0)] * len(pairs))
                rows = output[score][:, 0].cpu().double().numpy()
                for row, number, example in zip(rows, numbers, examples, strict=True):
                    of_pairs[number] = row[: len(example["first"])]
    return MatchPredictions(probabilities=probabilities, alignments=alignments)


def _probabilities(logits: torch.Tensor) -> np.ndarray:
    """From one logit per pair (batch,), or two (batch, 2), the second of which means related."""
    logits = logits.cpu().double()
    shares = torch.sigmoid(logits) if logits.ndim == 1 else torch.softmax(logits, dim=-1)[:, 1]
    return shares.numpy()


# ---- from a system to a model ----

STANDARD_PAIRS = 64  # first training pairs, whose sentence encodings are used to standardise all others
LEAST_SEEN = 2  # occurrences in train that a word needs for its own embedding, if no vectors are given


@dataclass(frozen=True, kw_only=True)
class Matchers:
    """Builds matchers; what several of them share is built once, on first use."""

    settings: MatcherSettings
    training: Sequence[DocumentPair]  # training pairs; their documents give the vocabulary if no vectors do
    dev: Sequence[DocumentPair] = ()  # on which the thresholds of the cosine baselines are chosen
    # Whose texts give the words and document frequencies of TF-IDF, without labels; () = those of `dev`.
    compared: Sequence[DocumentPair] = ()
    cache: Path | None  # folder of sentence encodings; None = they are not stored

    @cached_property
    def word_table(self) -> tuple[Vocabulary, np.ndarray | None]:
        """The vocabulary of GRU-HAN and its initial embeddings, (words, hidden_size); None = random ones."""
        given, size = self.settings, self.settings.hidden_size
        if not given.word_vectors:
            sentences = (text for one in _documents(self.training) for text in one.sentences)
            return Vocabulary.of_sentences(sentences, least=LEAST_SEEN), None
        if Path(given.word_vectors).is_file():
            words, vectors = read_word_vectors(given.word_vectors)
            return Vocabulary.of_words(words), pair_examples.embedding_table(vectors, size=size)
        encoder, tokenizer = load_encoder(given.word_vectors, max_length=512, window=512, seed=0)
        vocabulary = Vocabulary.of_tokenizer(tokenizer)
        # some checkpoints have more rows than ids
        vectors = encoder.get_input_embeddings().weight.detach().numpy()[: len(vocabulary) - FIRST_WORD]
        table = pair_examples.embedding_table(vectors, size=size)
        return vocabulary, table * (given.word_vector_size / float(np.sqrt(np.square(table).mean())))

    @cached_property
    def encodings(self) -> SentenceEncodings | PassingSentences:
        """Sentence encodings by frozen BERT, stored in `cache`."""
        given = self.settings
        form = {"max_tokens": given.most_words, "precision": given.precision, "seed": 0}
        encoder = load_sentence_encoder(given.sentence_encoder, **form)
        if self.cache is None:
            return PassingSentences(encoder)
        return SentenceEncodings(encoder, self.cache / "encodings")

    def make(
        self, system: MatchSystem, *, seed: int, trained: Path | None = None, sample: int = STANDARD_PAIRS
    ) -> Matcher:
        """A new matcher, or a trained one from its folder; `sample`: number of training pairs by whose
        sentences frozen encodings are standardised. Raises ValueError if anything does not fit."""
        if system.encoder == "longformer":
            return self._longformer(system, seed, trained)
        given = self.settings
        if system.finetuned:
            model, tokenizer = matching.load_finetuned_matcher(
                trained or given.sentence_encoder,
                matcher={"encoder": system.encoder, "cda": system.cda, "hidden_size": given.hidden_size},
                max_tokens=given.most_words,
                attention_dropout=given.attention_dropout,
                seed=seed,
            )
            vocabulary = Vocabulary.of_tokenizer(tokenizer)
        elif system.encoder == "gru":
            vocabulary, table = (Vocabulary.load(trained), None) if trained else self.word_table
            model = self._hierarchy(system, seed, trained, vocabulary_size=len(vocabulary))
            tokenizer = vocabulary
            if table is not None:
                with torch.no_grad():
                    model.encoder.words.weight.copy_(torch.from_numpy(table))
        else:
            form = {"vector_size": self.encodings.size, "standardised": True}
            model, tokenizer = self._hierarchy(system, seed, trained, **form), None
            self.encodings.encoder.recognise(model.config, trained=trained)
            if not trained:
                encodings = self.encodings.vectors(self._sentences(self.training[:sample]))
                model.encoder.standardise(torch.from_numpy(encodings))
        form = {"most_sentences": given.most_sentences, "most_words": given.most_words}
        words = pair_examples.SentenceWords(vocabulary=vocabulary, **form) if tokenizer else None

        def examples(pairs: Sequence[DocumentPair]) -> pair_examples.SentencePairExamples:
            if words is None:
                self.encodings.ensure(self._sentences(pairs))
            return pair_examples.SentencePairExamples(pairs=pairs, encode=words or self._vectors)

        collate = pair_examples.PairCollate()
        return Matcher(system=system, model=model, examples=examples, collate=collate, tokenizer=tokenizer)

    def _sentences(self, pairs: Sequence[DocumentPair]) -> list[str]:
        """The sentences of their documents that are read."""
        return [text for one in _documents(pairs) for text in one.sentences[: self.settings.most_sentences]]

    def _vectors(self, document: PairDocument) -> np.ndarray:
        return self.encodings.vectors(document.sentences[: self.settings.most_sentences])

    def _longformer(self, system: MatchSystem, seed: int, trained: Path | None) -> Matcher:
        given = self.settings
        model, tokenizer = matching.load_pair_classifier(
            trained or checkpoint_of(given.encoders, system.name),
            max_length=given.max_length,
            window=given.window,
            attention_dropout=given.attention_dropout,
            seed=seed,
            whole_last_layer=trained is not None,  # sentence alignment needs all states of the last layer
        )
        if given.reset_globals and not trained:
            reset_globals(model, system.name)

        def examples(pairs: Sequence[DocumentPair]) -> pair_examples.MatchExamples:
            documents = pair_examples.SentencesById(pairs, tokenizer)
            form = {"special": from_tokenizer(tokenizer), "max_length": given.max_length}
            return pair_examples.MatchExamples(pairs=pairs, documents=documents, **form)

        collate = Collate(pad_token_id=tokenizer.pad_token_id, window=given.window)
        return Matcher(system=system, model=model, examples=examples, collate=collate, tokenizer=tokenizer)

    def threshold(self, system: MatchSystem) -> CosineThreshold:
        """A cosine baseline, whose threshold is chosen on dev. TF-IDF weighs words by the texts that are
        compared, as in search, so that nothing depends on how many pairs there are for training."""
        if system.encoder == "words":
            words = TfidfVectorizer(sublinear_tf=True, tokenizer=words_of, token_pattern=None)
            words.fit(one.text_of() for one in _documents(self.compared or self.dev))
            return CosineThreshold(self.dev, lambda texts: words.transform(map(" ".join, texts)))

        def means(texts: Sequence[Sequence[str]]) -> csr_matrix:
            read = [text[: self.settings.most_sentences] for text in texts]
            sentences = list(chain.from_iterable(read))
            self.encodings.ensure(sentences)
            starts = np.cumsum([0, *map(len, read[:-1])])
            return csr_matrix(normalize(np.add.reduceat(self.encodings.vectors(sentences), starts)))

        return CosineThreshold(self.dev, means)

    def _hierarchy(
        self, system: MatchSystem, seed: int, trained: Path | None, **sizes: int
    ) -> matching.DocumentMatcher:
        if trained:
            return read_own_model(matching.DocumentMatcher, str(trained))
        size = self.settings.hidden_size
        form = {"encoder": system.encoder, "cda": system.cda, "word_size": size, "hidden_size": size}
        with own_randomness(seed):
            return matching.DocumentMatcher(matching.HierarchicalConfig(**form, **sizes))


def _documents(pairs: Sequence[DocumentPair]) -> Iterable[PairDocument]:
    """Each document of the pairs once."""
    return {one.id: one for pair in pairs for one in (pair.first, pair.second)}.values()


class CosineThreshold:
    """The simplest baseline, which shows how hard a corpus is: the cosine of two documents, and a decision
    threshold learned on the pairs of dev. `vectors`: maps texts, each a sequence of sentences (all of a
    document, or just one), to rows of length 1."""

    def __init__(
        self, dev: Sequence[DocumentPair], vectors: Callable[[Sequence[Sequence[str]]], csr_matrix]
    ) -> None:
        self.vectors = vectors
        labels = [pair.related for pair in dev]
        self._decision = LogisticRegression().fit(self.cosines(dev)[:, None], labels)

    def predict(self, pairs: Sequence[DocumentPair]) -> MatchPredictions:
        """Probabilities, and per pair the cosine of each sentence of the first document with the second."""
        products = (
            self.vectors([(text,) for text in pair.first.sentences]) @ self.vectors([pair.second.sentences]).T
            for pair in pairs
        )
        return MatchPredictions(
            probabilities=self._decision.predict_proba(self.cosines(pairs)[:, None])[:, 1],
            alignments={"cosine": [one.toarray().ravel().astype(np.float64) for one in products]},
        )

    def cosines(self, pairs: Sequence[DocumentPair]) -> np.ndarray:
        """float64 (pairs,), cosine of the two whole documents."""
        first = self.vectors([pair.first.sentences for pair in pairs])
        second = self.vectors([pair.second.sentences for pair in pairs])
        return np.asarray(first.multiply(second).sum(axis=1)).ravel()
