"""The systems that tell whether two documents belong together (CDA section 5.1, CDLM section 3.3): from a
name to a model, to what of the documents it reads, and to what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from IPython.display import HTML
from pydantic import Field
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.data.document_pairs import DocumentPair
from cdlm_lab.data.files import read_word_vectors
from cdlm_lab.examples.collate import Collate, batches_by_length
from cdlm_lab.examples.document_pairs import (
    MatchExamples,
    PairCollate,
    SentencePairExamples,
    SentencesById,
    SentenceWords,
    embedding_table,
)
from cdlm_lab.examples.tokens import FIRST_WORD, Vocabulary, from_tokenizer
from cdlm_lab.experiments.cluster_corpora import VARIANTS, checkpoint_of, reset_globals
from cdlm_lab.experiments.runs import chosen_systems, of_another_run, output_of, read_arrays, write_arrays
from cdlm_lab.models.checkpoint import default_device, own_randomness, read_own_model
from cdlm_lab.models.encoder import AttentionDropout, load_encoder
from cdlm_lab.models.frozen import SentenceEncodings, load_sentence_encoder
from cdlm_lab.models.matching import (
    CDA,
    DocumentMatcher,
    HierarchicalConfig,
    load_finetuned_matcher,
    load_pair_classifier,
)
from cdlm_lab.models.precision import Precision
from cdlm_lab.parameters import settings
from cdlm_lab.progress import Progress
from cdlm_lab.widgets.html import table_html, variant_name


@dataclass(frozen=True, kw_only=True)
class System:
    """One way to tell whether two documents belong together."""

    # name, label: as a parameter and as the papers write it.
    name: str
    label: str
    about: str  # what it is, for people
    # `words` (compares words, learns nothing but a threshold), `gru`, `vectors` or `average` (of
    # `HierarchicalConfig`), or `longformer` (reads both documents at once).
    encoder: str
    cda: str = "none"  # cross-document attention, `none`, `shallow` or `deep`
    finetuned: bool = False  # the sentence encoder is trained along
    against: str = ""  # the system that it is tested against where both are run; "" = none

    @property
    def trains_encoder(self) -> bool:
        """True if a pretrained encoder is trained along, which takes long."""
        return self.encoder == "longformer" or self.finetuned


def _systems() -> Iterator[System]:
    def system(name: str, about: str, encoder: str, *, label: str = "", against: str = "") -> System:
        cda = next((cda for cda in CDA if name.endswith(f"-{cda}")), "none")
        plain = name.removesuffix(f"-{cda}").removesuffix("-finetuned")
        label = label or plain.upper() + (f" + {cda.upper()}" if cda != "none" else "")
        finetuned = "-finetuned" in name
        form = {"cda": cda, "finetuned": finetuned, "against": against}
        shown = f"{label}, fine-tuned" if finetuned else label
        return System(name=name, label=shown, about=about, encoder=encoder, **form)

    shallow = "the same; each document is told of the other's sentences"
    deep = "the same; each sentence is told of the other's sentences and words, too"
    tuned = "bert-han-finetuned"
    yield system("tf-idf", "how many words they share: a threshold, no model", "words", label="TF-IDF cosine")
    yield system("bert-avg", "a document is the mean of its sentences by frozen BERT", "average")
    about = "GRUs and attention over sentences by frozen BERT"
    yield system("bert-han", about, "vectors", against="bert-avg")
    yield system("bert-han-shallow", shallow, "vectors", against="bert-han")
    yield system(tuned, "as bert-han, BERT trained along", "vectors", against="bert-han")
    about = "as bert-han-shallow, BERT trained along"
    yield system(f"{tuned}-shallow", about, "vectors", against=tuned)
    yield system("gru-han", "GRUs and attention over words, then over sentences", "gru")
    yield system("gru-han-shallow", shallow, "gru", against="gru-han")
    yield system("gru-han-deep", deep, "gru", against="gru-han-shallow")
    for name in VARIANTS:
        more, against = (
            ("; pretrained as notebook 01 says", "longformer") if name != "longformer" else ("", "")
        )
        about = f"reads both documents at once{more}"
        yield system(name, about, "longformer", label=variant_name(name), against=against)


SYSTEMS = {system.name: system for system in _systems()}


def systems_table() -> HTML:
    """Name and meaning of every system."""
    rows = [[f"<code>{one.name}</code>", f"<b>{one.label}</b>: {one.about}"] for one in SYSTEMS.values()]
    return HTML(table_html(["name", "what it is"], rows, text_columns=(0, 1)))


# ---- settings ----


@settings
class MatcherSettings:
    """What the systems of notebooks 04 and 05 are made of."""

    # Names, separated by spaces.
    systems: str = "tf-idf bert-avg bert-han bert-han-shallow gru-han-shallow cdlm"
    # Of BERT-AVG and BERT-HAN: a folder, a hub name, `minilm`, or one that comes with the project.
    sentence_encoder: str = "storyworld/longformer"
    # Of GRU-HAN: a text file as GloVe's, or an encoder, whose embedding table is taken; "" = the words of the
    # training documents, from vectors drawn at random.
    word_vectors: str = "storyworld/longformer"
    # Of word vectors, of GRUs in one direction and of the matcher (the paper: 50); larger word vectors are
    # reduced to it by their principal components.
    hidden_size: int = Field(default=50, ge=1)
    # most_sentences, most_words: of a document and of a sentence, for the hierarchical systems.
    most_sentences: int = Field(default=60, ge=1)
    most_words: int = Field(default=50, ge=1)
    # What Longformer and the CDLM variants start from: `storyworld`, or a folder with a folder for each, such
    # as `cdlm` or `cdlm/model`.
    encoders: str = "storyworld"
    # Longformer and Local CDLM start with their local projections as the global ones, as in the paper; False
    # = with those of the checkpoint. (Of the models of notebook 01 they are the same.).
    reset_globals: bool = True
    # max_length, window: of both documents in tokens, and of local attention, for these (the paper: 4096).
    max_length: int = 512
    window: int = 32
    # Of attention weights, where an encoder is trained; `checkpoint` = as the checkpoint says. That of hidden
    # states is the checkpoint's.
    attention_dropout: AttentionDropout = 0.0
    precision: Precision = "auto"  # of the forward pass in training, of frozen encodings and of predictions

    def __post_init__(self) -> None:
        _ = self.chosen

    @property
    def chosen(self) -> tuple[System, ...]:
        """The systems, in the order of SYSTEMS. Raises ParameterError for an unknown name, or none."""
        return chosen_systems(self.systems, SYSTEMS)


# ---- what a matcher says ----

DECISION = 0.5  # of two classes the more probable one


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchPredictions:
    """Of pairs, in order."""

    probabilities: np.ndarray  # float64 (pairs,), that the documents belong together
    # Name of a score -> for each pair float64 (sentences of the first document,), the higher the more it
    # belongs to the second one: `attention` and `cosine` (CDA equations 3 and 4). Sentences beyond those that
    # a system reads are missing at the end. Empty for a model that has no such scores.
    alignments: dict[str, list[np.ndarray]]

    @property
    def decisions(self) -> np.ndarray:
        """bool (pairs,), True = predicted to belong together."""
        return self.probabilities > DECISION

    def save(self, file: Path) -> None:
        """Write `.npz`, atomically."""
        arrays = {"probabilities": self.probabilities}
        for name, scores in self.alignments.items():
            arrays[f"{name}/scores"] = np.concatenate(scores)
            arrays[f"{name}/sentences"] = np.array([len(one) for one in scores])
        write_arrays(file, arrays)

    @classmethod
    def load(cls, file: Path, *, pairs: int) -> MatchPredictions:
        """Read what `save` wrote. Raises ValueError if it is of another number of pairs."""
        arrays = read_arrays(file)
        if len(arrays["probabilities"]) != pairs:
            raise of_another_run(file, "pairs")
        names = [name.removesuffix("/scores") for name in arrays if name.endswith("/scores")]
        alignments = {
            name: np.split(arrays[f"{name}/scores"], arrays[f"{name}/sentences"].cumsum()[:-1])
            for name in names
        }
        return cls(probabilities=arrays["probabilities"], alignments=alignments)


@dataclass(frozen=True, kw_only=True)
class Matcher:
    """A model and how it reads pairs."""

    system: System
    model: PreTrainedModel
    # From pairs to what `collate` makes batches of, labels included.
    examples: Callable[[Sequence[DocumentPair]], Sequence[Mapping[str, Any]]]
    collate: Callable[..., Mapping[str, torch.Tensor]]
    # Saved beside the model; None for one that reads sentences as vectors.
    tokenizer: PreTrainedTokenizerBase | Vocabulary | None = None


def predict_pairs(
    matcher: Matcher,
    pairs: Sequence[DocumentPair],
    *,
    batch_size: int,
    precision: Precision = "float32",
    name: str | None = None,
) -> MatchPredictions:
    """Read every pair, the longest first, so that batches hold little padding.

    Args:
        batch_size: pairs read at once; changes nothing but speed and memory.
        name: beside the progress bar; None = no bar.
    """
    matcher.model.to(default_device())
    examples = matcher.examples(pairs)
    lengths = [sum(map(len, (*pair.first.sentences, *pair.second.sentences))) for pair in pairs]
    probabilities = np.empty(len(pairs))
    alignments: dict[str, list[np.ndarray]] = {}
    with Progress(total=len(pairs), desc=name, unit="pair", disable=name is None) as bar:
        for numbers in batches_by_length(lengths, [0] * len(lengths), batch_size):
            chosen = [examples[number] for number in numbers]
            output = output_of(matcher.model, chosen, matcher.collate, precision=precision)
            probabilities[numbers] = _probabilities(output["logits"])
            for score in ("attention", "cosine"):
                if score in output:
                    of_pairs = alignments.setdefault(score, [np.empty(0)] * len(pairs))
                    rows = output[score][:, 0].double().cpu().numpy()
                    for row, number, example in zip(rows, numbers, chosen, strict=True):
                        of_pairs[number] = row[: len(example["first"])]
            bar.update(len(numbers))
    return MatchPredictions(probabilities=probabilities, alignments=alignments)


def _probabilities(logits: torch.Tensor) -> np.ndarray:
    """Of one logit (batch,), or of two (batch, 2), of which the second is for related documents."""
    logits = logits.double()
    shares = torch.sigmoid(logits) if logits.ndim == 1 else torch.softmax(logits, dim=-1)[:, 1]
    return shares.cpu().numpy()


# ---- from a system to a model ----

# Root mean square of the entries of word vectors that an encoder gives: about that of GloVe's 50-dimensional
# ones, with which the paper's hierarchy starts. An encoder's own are a tenth of it.
WORD_VECTOR_SIZE = 0.6
LEAST_SEEN = 2  # times that a word occurs in train to have an embedding of its own, without given vectors
ENCODINGS_FOLDER = "encodings"


@dataclass(frozen=True, kw_only=True)
class Matchers:
    """Makes matchers; what several of them share is made once, when it is first needed."""

    settings: MatcherSettings
    training: Sequence[DocumentPair]  # pairs the documents of which give the words if there are no vectors
    cache: Path  # folder of encodings of sentences

    @cached_property
    def word_table(self) -> tuple[Vocabulary, np.ndarray | None]:
        """The words of GRU-HAN and their first embeddings, (words, hidden_size); None = to be drawn. Raises
        ValueError: vectors that are smaller than `hidden_size`, or that cannot be read."""
        given = self.settings
        if not given.word_vectors:
            documents = {one.id: one for pair in self.training for one in (pair.first, pair.second)}
            sentences = (sentence for one in documents.values() for sentence in one.sentences)
            return Vocabulary.of_sentences(sentences, least=LEAST_SEEN), None
        if Path(given.word_vectors).is_file():
            words, vectors = read_word_vectors(given.word_vectors)
            return Vocabulary.of_words(words), embedding_table(vectors, size=given.hidden_size)
        encoder, tokenizer = load_encoder(given.word_vectors, max_length=512, window=given.window, seed=0)
        vocabulary = Vocabulary.of_tokenizer(tokenizer)
        # some checkpoints have more rows than ids
        vectors = encoder.get_input_embeddings().weight.detach().numpy()[: len(vocabulary) - FIRST_WORD]
        table = embedding_table(vectors, size=given.hidden_size)
        return vocabulary, table * (WORD_VECTOR_SIZE / float(np.sqrt(np.square(table).mean())))

    @cached_property
    def encodings(self) -> SentenceEncodings:
        """Of frozen BERT, kept in `cache`."""
        given = self.settings
        form = {"max_tokens": given.most_words, "precision": given.precision, "seed": 0}
        encoder = load_sentence_encoder(given.sentence_encoder, **form)
        return SentenceEncodings(encoder, self.cache / ENCODINGS_FOLDER)

    def make(self, system: System, *, seed: int, trained: Path | None = None) -> Matcher:
        """A new matcher, or a trained one from its folder. Raises ValueError for whatever does not fit."""
        if system.encoder == "longformer":
            make = self._longformer
        elif system.finetuned:
            make = self._finetuned
        else:
            make = self._from_words if system.encoder == "gru" else self._from_encodings
        return make(system, seed, trained)

    def _longformer(self, system: System, seed: int, trained: Path | None) -> Matcher:
        given = self.settings
        model, tokenizer = load_pair_classifier(
            trained or checkpoint_of(given.encoders, system.name),
            max_length=given.max_length,
            window=given.window,
            attention_dropout=given.attention_dropout,
            seed=seed,
            whole_last_layer=trained is not None,  # for the alignment of sentences
        )
        if given.reset_globals and not trained:
            reset_globals(model, system.name)

        def examples(pairs: Sequence[DocumentPair]) -> MatchExamples:
            documents, special = SentencesById(pairs, tokenizer), from_tokenizer(tokenizer)
            form = {"special": special, "max_length": given.max_length}
            return MatchExamples(pairs=pairs, documents=documents, **form)

        collate = Collate(pad_token_id=tokenizer.pad_token_id)
        return Matcher(system=system, model=model, examples=examples, collate=collate, tokenizer=tokenizer)

    def _finetuned(self, system: System, seed: int, trained: Path | None) -> Matcher:
        given = self.settings
        model, tokenizer = load_finetuned_matcher(
            trained or given.sentence_encoder,
            matcher={"encoder": system.encoder, "cda": system.cda, "hidden_size": given.hidden_size},
            max_tokens=given.most_words,
            attention_dropout=given.attention_dropout,
            seed=seed,
        )
        examples = self._read_as_words(Vocabulary.of_tokenizer(tokenizer))
        return Matcher(
            system=system, model=model, examples=examples, collate=PairCollate(), tokenizer=tokenizer
        )

    def _from_words(self, system: System, seed: int, trained: Path | None) -> Matcher:
        vocabulary, table = (Vocabulary.load(trained), None) if trained else self.word_table
        model = self._hierarchy(system, seed, trained, vocabulary_size=len(vocabulary))
        if table is not None:
            with torch.no_grad():
                model.encoder.words.weight.copy_(torch.from_numpy(table))
        examples = self._read_as_words(vocabulary)
        return Matcher(
            system=system, model=model, examples=examples, collate=PairCollate(), tokenizer=vocabulary
        )

    def _from_encodings(self, system: System, seed: int, trained: Path | None) -> Matcher:
        encodings, most = self.encodings, self.settings.most_sentences
        model = self._hierarchy(system, seed, trained, vector_size=encodings.size)

        def examples(pairs: Sequence[DocumentPair]) -> SentencePairExamples:
            documents = {one.id: one for pair in pairs for one in (pair.first, pair.second)}
            encodings.ensure(sentence for one in documents.values() for sentence in one.sentences[:most])
            return SentencePairExamples(
                pairs=pairs, encode=lambda one: encodings.vectors(one.sentences[:most])
            )

        return Matcher(system=system, model=model, examples=examples, collate=PairCollate())

    def _hierarchy(self, system: System, seed: int, trained: Path | None, **sizes: int) -> DocumentMatcher:
        if trained:
            return read_own_model(DocumentMatcher, str(trained))
        size = self.settings.hidden_size
        with own_randomness(seed):
            return DocumentMatcher(
                HierarchicalConfig(
                    encoder=system.encoder, cda=system.cda, word_size=size, hidden_size=size, **sizes
                )
            )

    def _read_as_words(self, vocabulary: Vocabulary) -> Callable[..., SentencePairExamples]:
        given = self.settings
        form = {"most_sentences": given.most_sentences, "most_words": given.most_words}
        encode = SentenceWords(vocabulary=vocabulary, **form)
        return lambda pairs: SentencePairExamples(pairs=pairs, encode=encode)


class WordOverlap:
    """The plainest matcher, as a measure of how hard a corpus is: cosine of TF-IDF vectors, and a threshold
    learned on the training pairs (logistic regression on the cosine)."""

    def __init__(self, training: Sequence[DocumentPair]) -> None:
        documents = {one.id: one for pair in training for one in (pair.first, pair.second)}
        self._words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+")
        self._words.fit(one.text_of() for one in documents.values())
        labels = [pair.related for pair in training]
        self._decision = LogisticRegression().fit(self._cosines(training)[:, None], labels)

    def probabilities(self, pairs: Sequence[DocumentPair]) -> np.ndarray:
        """float64 (pairs,), that the documents belong together."""
        return self._decision.predict_proba(self._cosines(pairs)[:, None])[:, 1]

    def alignments(self, pairs: Sequence[DocumentPair]) -> list[np.ndarray]:
        """For each pair float64 (sentences of the first document,), their cosines with the second one."""
        products = (
            self._vectors(pair.first.sentences) @ self._vectors([pair.second.text_of()]).T for pair in pairs
        )
        return [np.asarray(cosines.todense()).ravel().astype(np.float64) for cosines in products]

    def _cosines(self, pairs: Sequence[DocumentPair]) -> np.ndarray:
        sides = zip(*((pair.first, pair.second) for pair in pairs), strict=True)
        first, second = (self._vectors([one.text_of() for one in documents]) for documents in sides)
        return np.asarray(first.multiply(second).sum(axis=1)).ravel()

    def _vectors(self, texts: Sequence[str]) -> csr_matrix:
        return self._words.transform(texts)
