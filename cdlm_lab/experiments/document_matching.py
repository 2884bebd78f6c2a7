"""Document matching (Zhou et al. 2020, "CDA", section 5.2, Tables 2 and 3; CDLM section 3.3, Table 4):
notebook 04.

Each system is trained with each seed; of its passes over the training pairs the one with the lowest loss on
dev is kept. Test pairs are read once by each. All that is finished stays in the run folder: a stopped run
goes on where it was.

Choices where the papers are silent or a small corpus asks for others: passes are a fixed number (CDA stops
after five without a lower dev loss; which one is kept is the same as long as there are enough); learning
rates fall linearly to 0 without a warm-up, as in CDLM's released code (CDA's keeps them constant); CDLM's 8
passes in batches of 32 are parameters.

From the corpus that notebooks 04 and 05 name to pairs of documents in three splits: storyworld, SciSumm, a
collection of one's own with links, or the benchmark's CSV.

The systems of notebooks 04 and 05: Zhou et al. 2020 ("CDA"), section 5.1, and CDLM section 3.3.

From a system's name to a model, and to what of two documents it reads (CDA section 5.1, CDLM section
3.3).

What a trained matcher says of pairs, kept on disk: probabilities, and which sentences it aligns.

The plainest matcher there is, as a measure of how hard a corpus is: cosine of TF-IDF vectors, and a
threshold learned on train.

Before and after a run of notebook 04: what it will cost, its scores, and its tests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import combinations, product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.data.document_links import (
    DocumentLink,
    Hardness,
    citing_passages,
    is_linked_collection,
    pairs_from_links,
    read_linked_collection,
)
from cdlm_lab.data.document_pairs import (
    DocumentPair,
    PairDocument,
    check_splits,
    nltk_sentences,
    read_pair_csv,
    split_without_leaks,
    twins,
)
from cdlm_lab.data.files import named, read_word_vectors, replaced_file
from cdlm_lab.data.scisumm import NET, TASK, SciSumm, read_scisumm
from cdlm_lab.data.storyworld.task_sets import read_storyworld_pairs
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
from cdlm_lab.experiments.runs import time_told
from cdlm_lab.metrics.counts import DECISION_SCORES, match_counts
from cdlm_lab.metrics.significance import compare_counts, count_scores, holm
from cdlm_lab.models.checkpoint import default_device, own_randomness, read_own_model
from cdlm_lab.models.encoder import AttentionDropout, load_encoder
from cdlm_lab.models.estimate import parameter_count
from cdlm_lab.models.frozen import SentenceEncodings, load_sentence_encoder
from cdlm_lab.models.matching import (
    CDA,
    DocumentMatcher,
    HierarchicalConfig,
    load_finetuned_matcher,
    load_pair_classifier,
)
from cdlm_lab.models.precision import Precision, computing_in, precision_told
from cdlm_lab.parameters import (
    ParameterError,
    check_least,
    check_types,
    parameters_of,
    with_those_of_before,
)
from cdlm_lab.progress import Progress
from cdlm_lab.report import Report, Run
from cdlm_lab.training.checkpoints import MODEL_FOLDER
from cdlm_lab.training.config import TrainingConfig, Workers
from cdlm_lab.training.fine_tuning import Recipe, TrainingJob, config_of_passes, fine_tune, in_training_order
from cdlm_lab.training.history import seconds_of_batch
from cdlm_lab.training.processes import ALONE, Processes
from cdlm_lab.widgets.html import variant_name
from cdlm_lab.widgets.score_tables import score_table
from cdlm_lab.widgets.tables import ScoreTable

SPLITS = ("train", "dev", "test")
SHARES = {"train": 0.6, "dev": 0.15, "test": 0.25}  # of links
SAME_TEXT = "documents with the text of another one, which count as it"
_SUFFIXES = (".csv", ".csv.gz", ".csv.xz")
Pairs = Mapping[str, tuple[DocumentPair, ...]]  # by split


@dataclass(frozen=True, kw_only=True)
class MatchingCorpus:
    """Which documents may belong together.

    Attributes:
        corpus: `storyworld`; the folder of SciSumm; a folder of `documents.jsonl` and `links.jsonl` (see
            data/linked_collection.py); or a folder of `train.csv`, `dev.csv` and `test.csv` as the benchmark
            has them (and `test_positions.csv`, as of PAN, where there are such files).
        train_stories, held_out_stories: of storyworld.
        unrelated: `random` or `similar`. Of storyworld: reports of any two events, or of two of a kind. Of
            linked documents, which SciSumm has too, `similar` ones are drawn among the 20 cited papers whose
            words are most like those of the citing text.
        negatives_per_positive: of linked documents.
        passage_sentences: of these: how long a passage around the citation stands for the citing paper, and
            how much of the cited paper is read from its start; 0 = whole papers, and links whose citing
            sentence is not known as well.
        data_seed: of their splits and draws; models have seeds of their own.
    """

    corpus: str = "storyworld"
    train_stories: int = 150
    held_out_stories: int = 40
    unrelated: Hardness = "random"
    negatives_per_positive: int = 1
    passage_sentences: int = 10
    data_seed: int = 0

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("train_stories", "held_out_stories"):
            if getattr(self, name) < 2:
                raise ParameterError(f"{name} is {getattr(self, name)}; unrelated reports take at least 2")
        if self.negatives_per_positive < 1:
            raise ParameterError(
                f"negatives_per_positive is {self.negatives_per_positive}; without unrelated pairs there is "
                "nothing to tell apart: at least 1"
            )
        if self.passage_sentences < 0:
            raise ParameterError(
                f"passage_sentences is {self.passage_sentences}; write 0 for whole papers, or how many"
            )


def read_matching_pairs(settings: MatchingCorpus, *, lost: dict[str, list[str]] | None = None) -> Pairs:
    """Pairs of train, dev and test. `lost` gets what could not be used of SciSumm, sort -> files and lines,
    and which linked documents have the text of another one.

    No document is in two splits; but the benchmark's CSV files were split by pairs, so there it may be:
    `shared_documents` counts them.

    Raises ParameterError for a corpus that is none of the four, else what the readers raise; ValueError for
    a split with only one sort of pairs.
    """
    if settings.corpus == "storyworld":
        return _checked({split: tuple(_storyworld(split, settings)) for split in SPLITS})
    folder = Path(settings.corpus)
    if files := _csv_files(folder):
        positions = {split: _positions_of(file) for split, file in files.items()}
        # those of one split say how the sentences of all are to be counted
        cut = nltk_sentences if any(positions.values()) else None
        pairs = {
            split: tuple(read_pair_csv(file, positions=positions[split], split=cut))
            for split, file in files.items()
        }
        for split, found in pairs.items():
            check_splits({split: found})
        return pairs
    if is_linked_collection(folder):
        return _checked(linked_pairs(*read_linked_collection(folder), settings, lost))
    if any((folder / name).is_dir() or (folder / f"{name}.tar.xz").is_file() for name in (TASK, NET)):
        scisumm = read_scisumm(folder)
        if lost is not None:
            lost.update(_lost_of(scisumm, folder))
        return _checked(linked_pairs(scisumm.papers, scisumm.links, settings, lost))
    raise ParameterError(
        f"corpus is {settings.corpus!r}; write storyworld, the folder of SciSumm, a folder with "
        "documents.jsonl and links.jsonl, or one with train.csv, dev.csv and test.csv"
    )


def _lost_of(scisumm: SciSumm, folder: Path) -> dict[str, list[str]]:
    found = {
        "not read": scisumm.passed_over,
        "citing text not found in the paper": scisumm.unplaced,
        "characters lost that are not UTF-8": tuple(scisumm.replaced),
    }
    return {
        name: [place.removeprefix(f"{folder}/") for place in places]
        for name, places in found.items()
        if places
    }


def _storyworld(split: str, settings: MatchingCorpus) -> Iterator[DocumentPair]:
    stories = settings.train_stories if split == "train" else settings.held_out_stories
    return read_storyworld_pairs(split, stories, unrelated=settings.unrelated)


def linked_pairs(
    documents: Mapping[str, PairDocument],
    links: Sequence[DocumentLink],
    settings: MatchingCorpus,
    lost: dict[str, list[str]] | None = None,
) -> dict[str, tuple[DocumentPair, ...]]:
    """Links are split first, and unrelated pairs drawn within each split thereafter, so that no document is
    in two of them. Documents of one text, or of one opening where that is read, are in the same split and
    never taken for unrelated to what one of them is linked with. A pair is of the cluster of its first
    document, the whole of it."""
    kept = [link for link in links if link.in_first or not settings.passage_sentences]
    twin_of = _read_alike(documents, kept, opening=settings.passage_sentences)
    if twin_of and lost is not None:
        lost[SAME_TEXT] = [f"{twin} = {first}" for twin, first in twin_of.items()]
    split = split_without_leaks(
        kept, shares=SHARES, seed=settings.data_seed, drop_crossing=True, twin_of=twin_of
    )
    known = [*links, *_links_of_twins(links, twin_of)]
    return {
        name: tuple(_pairs_of(documents, split["validation" if name == "dev" else name], known, settings))
        for name in SPLITS
    }


def _read_alike(
    documents: Mapping[str, PairDocument], links: Sequence[DocumentLink], *, opening: int
) -> dict[str, str]:
    """Twins by their texts; and of the documents that links point to, which are read from their start, by so
    many sentences."""
    whole = twins(documents.values())
    cited = dict.fromkeys(whole.get(link.second, link.second) for link in links)
    starts = twins((documents[name] for name in cited), sentences=opening)
    owner = {name: starts.get(of, of) for name in documents for of in (whole.get(name, name),)}
    return {name: of for name, of in owner.items() if name != of}


def _links_of_twins(links: Sequence[DocumentLink], twin_of: Mapping[str, str]) -> Iterator[DocumentLink]:
    """Between twins, and between all that have the texts of two documents that are linked."""
    of_text: defaultdict[str, list[str]] = defaultdict(list)
    for twin, first in twin_of.items():
        of_text[first] = [*(of_text[first] or [first]), twin]
    same = [(first, second) for names in of_text.values() for first, second in combinations(names, 2)]
    for link in links:
        texts = [twin_of.get(document, document) for document in link.documents]
        if any(text in of_text for text in texts):
            same += product(*(of_text.get(text, [text]) for text in texts))
    for first, second in dict.fromkeys(same):
        if first != second:
            yield DocumentLink(first=first, second=second, source="the same text")


def _pairs_of(
    documents: Mapping[str, PairDocument],
    links: Sequence[DocumentLink],
    known: Sequence[DocumentLink],
    settings: MatchingCorpus,
) -> Iterator[DocumentPair]:
    """Of the links of one split; `known`: those of all."""
    whole: Mapping[str, str] = {}
    if settings.passage_sentences:
        passages = citing_passages(
            documents,
            links,
            length=settings.passage_sentences,
            opening=settings.passage_sentences,
            seed=settings.data_seed,
            known=known,
        )
        documents, links, known = passages.documents, passages.links, passages.known
        whole = passages.paper_of
    pairs = pairs_from_links(
        documents,
        links,
        negatives_per_positive=settings.negatives_per_positive,
        seed=settings.data_seed,
        hard=settings.unrelated,
        known=known,
    )
    for pair in pairs:
        yield replace(pair, cluster=whole.get(pair.cluster, pair.cluster))


def shared_documents(pairs: Pairs) -> dict[str, float]:
    """Share of the pairs of dev and test with a document that train has too."""
    seen = {one.sentences for pair in pairs["train"] for one in (pair.first, pair.second)}
    return {
        split: sum(pair.first.sentences in seen or pair.second.sentences in seen for pair in pairs[split])
        / len(pairs[split])
        for split in ("dev", "test")
    }


def _checked(pairs: Pairs) -> Pairs:
    check_splits(pairs)
    return pairs


def _csv_files(folder: Path) -> dict[str, Path]:
    """File of each split, or nothing if there is none at all.

    Raises ParameterError if some are there and others are not.
    """
    found = {
        split: file
        for split in SPLITS
        for suffix in _SUFFIXES
        if (file := folder / f"{split}{suffix}").is_file()
    }
    if found and (missing := [split for split in SPLITS if split not in found]):
        raise ParameterError(f"{folder}: there is no {missing[0]}.csv; a run needs train, dev and test")
    return found


def _positions_of(file: Path) -> Path | None:
    plain = file.name.partition(".csv")[0]
    named = (file.with_name(f"{plain}_positions{suffix}") for suffix in _SUFFIXES)
    return next((one for one in named if one.is_file()), None)


@dataclass(frozen=True, kw_only=True)
class System:
    """One way to tell whether two documents belong together.

    Attributes:
        name: as in the `systems` parameter.
        label: as the papers write it.
        about: what it is, for people.
        encoder: `words` (compares words, learns nothing but a threshold), `gru`, `vectors` or `average` (as
            of `HierarchicalConfig`), or `longformer` (reads both documents at once).
        cda: cross-document attention, `none`, `shallow` or `deep`.
        finetuned: the sentence encoder is trained along.
        against: the system that it is tested against where both are run; "" = none.
    """

    name: str
    label: str
    about: str
    encoder: str
    cda: str = "none"
    finetuned: bool = False
    against: str = ""

    @property
    def trains_encoder(self) -> bool:
        """True if a pretrained encoder is trained along, which takes long."""
        return self.encoder == "longformer" or self.finetuned


def _system(name: str, about: str, encoder: str, *, label: str = "", against: str = "") -> System:
    """What the name does not say of a system; the rest it does."""
    cda = next((cda for cda in CDA if name.endswith(f"-{cda}")), "none")
    plain = name.removesuffix(f"-{cda}").removesuffix("-finetuned")
    finetuned = "-finetuned" in name
    label = label or plain.upper() + (f" + {cda.upper()}" if cda != "none" else "")
    return System(
        name=name,
        label=f"{label}, fine-tuned" if finetuned else label,
        about=about,
        encoder=encoder,
        cda=cda,
        finetuned=finetuned,
        against=against,
    )


_TUNED = "bert-han-finetuned"
SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        _system("tf-idf", "how many words they share: a threshold, no model", "words", label="TF-IDF cosine"),
        _system("bert-avg", "a document is the mean of its sentences by frozen BERT", "average"),
        _system(
            "bert-han", "GRUs and attention over sentences by frozen BERT", "vectors", against="bert-avg"
        ),
        _system(
            "bert-han-shallow",
            "the same; each document is told of the other's sentences",
            "vectors",
            against="bert-han",
        ),
        _system(_TUNED, "as bert-han, BERT trained along", "vectors", against="bert-han"),
        _system(f"{_TUNED}-shallow", "as bert-han-shallow, BERT trained along", "vectors", against=_TUNED),
        _system("gru-han", "GRUs and attention over words, then over sentences", "gru"),
        _system(
            "gru-han-shallow",
            "the same; each document is told of the other's sentences",
            "gru",
            against="gru-han",
        ),
        _system(
            "gru-han-deep",
            "the same; each sentence is told of the other's sentences and words, too",
            "gru",
            against="gru-han-shallow",
        ),
        *(
            _system(
                name,
                "reads both documents at once"
                + ("" if name == "longformer" else "; pretrained as notebook 01 says"),
                "longformer",
                label=variant_name(name),
                against="" if name == "longformer" else "longformer",
            )
            for name in VARIANTS
        ),
    )
}


def system_rows() -> list[list[str]]:
    """Name and meaning of every system, as cells of HTML."""
    return [[f"<code>{one.name}</code>", f"<b>{one.label}</b>: {one.about}"] for one in SYSTEMS.values()]


def systems_named(names: str) -> tuple[System, ...]:
    """The systems of a parameter: names separated by spaces, in the order of SYSTEMS.

    Raises:
        ParameterError: none are named, or one that is unknown.
    """
    wanted = names.split()
    if not wanted:
        raise ParameterError(f"systems is empty; name some of {', '.join(SYSTEMS)}")
    for name in wanted:
        if name not in SYSTEMS:
            raise ParameterError(f"systems names {name!r}; choose among {', '.join(SYSTEMS)}")
    return tuple(system for name, system in SYSTEMS.items() if name in wanted)


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
        precision: of the forward passes of the frozen encoder, as of `resolve_precision`.
    """

    settings: MatchingModels
    training: Sequence[DocumentPair]
    cache: Path
    precision: Precision = "auto"

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
        encoder = load_sentence_encoder(name, max_tokens=most, precision=self.precision, seed=0)
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


DECISION = 0.5  # of two classes the more probable one


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchPredictions:
    """Of pairs, in order.

    Attributes:
        probabilities: float64 (pairs,), that the documents belong together.
        alignments: name of a score -> for each pair float64 (sentences of the first document,), the higher
            the more it belongs to the second one: `attention` and `cosine` (CDA equations 3 and 4). Sentences
            beyond those that a system reads are missing at the end. Empty for a model that has no such
            scores.
    """

    probabilities: np.ndarray
    alignments: dict[str, list[np.ndarray]]

    @property
    def decisions(self) -> np.ndarray:
        """bool (pairs,), True = predicted to belong together."""
        return self.probabilities > DECISION

    def save(self, file: Path) -> None:
        """Write `.npz`, in one go."""
        arrays = {"probabilities": self.probabilities}
        for name, scores in self.alignments.items():
            arrays[f"{name}/scores"] = np.concatenate(scores)
            arrays[f"{name}/sentences"] = np.array([len(one) for one in scores])
        file.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(file, binary=True) as opened:
            np.savez(opened, **arrays)

    @classmethod
    def load(cls, file: Path, *, pairs: int) -> MatchPredictions:
        """Read what `save` wrote.

        Raises:
            ValueError: it is of another number of pairs.
        """
        with np.load(file, allow_pickle=False) as arrays:
            probabilities = arrays["probabilities"]
            alignments = {
                name.partition("/")[0]: np.split(
                    arrays[name], arrays[f"{name.partition('/')[0]}/sentences"].cumsum()[:-1]
                )
                for name in arrays.files
                if name.endswith("/scores")
            }
        if len(probabilities) != pairs:
            raise ValueError(
                f"{file} is of {len(probabilities)} pairs, but there are {pairs}; it is of another run: "
                "choose another run folder"
            )
        return cls(probabilities=probabilities, alignments=alignments)


def predict(
    matcher: Matcher,
    pairs: Sequence[DocumentPair],
    *,
    batch_size: int,
    precision: Precision = "float32",
    name: str | None = None,
) -> MatchPredictions:
    """Read every pair.

    Pairs are read longest first, so that batches hold little padding.

    Args:
        batch_size: pairs read at once; changes nothing but speed and memory.
        precision: of the forward pass, as of `resolve_precision`.
        name: beside the progress bar; None = no bar.
    """
    model = matcher.model.to(default_device()).eval()
    examples = matcher.examples(pairs)
    lengths = [_length(pair) for pair in pairs]
    probabilities = np.empty(len(pairs))
    alignments: dict[str, list[np.ndarray]] = {}
    with (
        Progress(total=len(pairs), desc=name, unit="pair", disable=name is None) as bar,
        computing_in(precision, model.device),
    ):
        for numbers in batches_by_length(lengths, [0] * len(lengths), batch_size):
            output, sentences = _read(matcher, model, [examples[number] for number in numbers])
            probabilities[numbers] = _probabilities(output["logits"])
            for score in ("attention", "cosine"):
                if score in output:
                    kept = alignments.setdefault(score, [np.empty(0)] * len(pairs))
                    rows = output[score][:, 0].double().cpu().numpy()
                    for row, number, count in zip(rows, numbers, sentences, strict=True):
                        kept[number] = row[:count]
            bar.update(len(numbers))
    return MatchPredictions(probabilities=probabilities, alignments=alignments)


def _length(pair: DocumentPair) -> int:
    return sum(len(sentence) for one in (pair.first, pair.second) for sentence in one.sentences)


@torch.inference_mode()
def _read(matcher: Matcher, model: torch.nn.Module, examples: list) -> tuple[dict, list[int]]:
    """The model's output, and how many sentences of each first document it read."""
    batch = {name: tensor.to(model.device) for name, tensor in matcher.collate(examples).items()}
    batch.pop("labels", None)
    output = model(**batch)
    mask = batch.get("sentence_mask")
    return output, [0] * len(examples) if mask is None else mask[:, 0].sum(1).tolist()


def _probabilities(logits: torch.Tensor) -> np.ndarray:
    """Of one logit (batch,), or of two (batch, 2), of which the second is for related documents."""
    logits = logits.double()
    found = torch.sigmoid(logits) if logits.ndim == 1 else torch.softmax(logits, dim=-1)[:, 1]
    return found.cpu().numpy()


class WordOverlap:
    """Fitted on pairs of train; `predict` then says of any pairs how probable it is that they belong together
    (logistic regression on the cosine), and aligns a sentence by its cosine with the other document."""

    def __init__(self, training: Sequence[DocumentPair]) -> None:
        documents = {one.id: one for pair in training for one in (pair.first, pair.second)}
        self._words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+")
        self._words.fit(one.text_of() for one in documents.values())
        labels = [pair.related for pair in training]
        self._decision = LogisticRegression().fit(self._cosines(training)[:, None], labels)

    def predict(self, pairs: Sequence[DocumentPair]) -> MatchPredictions:
        """Of pairs, in order; see the head of this class."""
        probabilities = self._decision.predict_proba(self._cosines(pairs)[:, None])[:, 1]
        cosine = [
            np.asarray(
                (self._vectors(pair.first.sentences) @ self._vectors([pair.second.text_of()]).T).todense()
            )
            .ravel()
            .astype(np.float64)
            for pair in pairs
        ]
        return MatchPredictions(probabilities=probabilities, alignments={"cosine": cosine})

    def _cosines(self, pairs: Sequence[DocumentPair]) -> np.ndarray:
        first, second = (
            self._vectors([one.text_of() for one in documents])
            for documents in zip(*((pair.first, pair.second) for pair in pairs), strict=True)
        )
        return np.asarray(first.multiply(second).sum(axis=1)).ravel()

    def _vectors(self, texts: Sequence[str]) -> csr_matrix:
        return self._words.transform(texts)


RUN_SPLITS = ("dev", "test")  # that are predicted


@dataclass(frozen=True, kw_only=True)
class MatchingTraining:
    """How systems are trained. The first four are of the hierarchical systems; those with `encoder_` of the
    systems whose encoder is trained, which are Longformers and fine-tuned BERT-HAN.

    Attributes:
        systems: names, separated by spaces.
        seeds: how many times each is trained, with seeds from 0.
        warmup_share: of all updates of a system, during which its learning rate rises to the one given.
        precision: of the forward pass in training, of frozen encodings and of predictions, as of
            `TrainingConfig`.
        parallel: processes that train each system whose encoder is trained, as of `Processes.of`; "" = one.
            The others are trained by one, and pairs are predicted by one.
        workers: as of `TrainingConfig`, for these systems too: what the others read is made already, and
            too large to be sent.
    """

    systems: str = "tf-idf bert-avg bert-han bert-han-shallow gru-han-shallow cdlm"
    seeds: int = 1
    epochs: int = 6
    batch_size: int = 16
    learning_rate: float = 0.002
    encoder_epochs: int = 1
    encoder_batch_size: int = 8
    encoder_micro_batch_size: int = 8
    encoder_learning_rate: float = 0.0005
    warmup_share: float = 0.0
    precision: Precision = "auto"
    parallel: str = ""
    workers: Workers = "auto"

    def __post_init__(self) -> None:
        check_types(self)
        systems_named(self.systems)
        check_least(self, 1, "seeds", "epochs", "encoder_epochs")
        if not 0 <= self.warmup_share <= 0.5:
            raise ParameterError(f"warmup_share is {self.warmup_share}; it must lie between 0 and 0.5")
        Processes.of(self.parallel)


@dataclass(frozen=True, kw_only=True)
class MatchingSettings:
    """All parameters of a run but its folder."""

    corpus: MatchingCorpus = field(default_factory=MatchingCorpus)
    models: MatchingModels = field(default_factory=MatchingModels)
    training: MatchingTraining = field(default_factory=MatchingTraining)

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> MatchingSettings:
        """From the parameters of notebook 04, which are the fields of the three parts."""
        parameters = with_those_of_before(_BEFORE | dict(parameters), PARAMETERS)
        parts = {
            part.name: {name.name: parameters[name.name] for name in fields(kind)}
            for part, kind in zip(fields(cls), _PARTS, strict=True)
        }
        return cls(**{name: kind(**parts[name]) for name, kind in zip(parts, _PARTS, strict=True)})

    @property
    def systems(self) -> tuple[System, ...]:
        """In the order of SYSTEMS."""
        return systems_named(self.training.systems)

    @property
    def parameters(self) -> dict[str, Any]:
        """As `of` takes them."""
        return parameters_of(self)


# What runs had from before these were parameters.
_BEFORE: Mapping[str, Any] = {
    "warmup_share": 0.1,
    "reset_globals": False,
    "parallel": "",
    "workers": "auto",
}
_PARTS = (MatchingCorpus, MatchingModels, MatchingTraining)
# The parameters of notebook 04.
PARAMETERS = ("run_folder", *MatchingSettings().parameters)


@dataclass(frozen=True, kw_only=True)
class MatchingRun:
    """The pairs of a run and the folder that it works in; `lost`: what of the corpus could not be used (see
    `read_matching_pairs`)."""

    settings: MatchingSettings
    pairs: Pairs
    folder: Path
    lost: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def trainings(self) -> list[tuple[System, int]]:
        """Each system with each seed; one that leaves nothing to chance once."""
        seeds = self.settings.training.seeds
        return [
            (system, seed)
            for system in self.settings.systems
            for seed in range(1 if system.encoder == "words" else seeds)
        ]

    def folder_of(self, system: System, seed: int) -> Path:
        """Where a system trained with a seed is kept."""
        return self.folder / "systems" / f"{system.name}-{seed}"

    def is_finished(self, system: System, seed: int) -> bool:
        """True if it is trained and its predictions are there."""
        return all((self.folder_of(system, seed) / f"{split}.npz").is_file() for split in RUN_SPLITS)

    @cached_property
    def parts(self) -> MatcherParts:
        """Of its matchers."""
        return MatcherParts(
            settings=self.settings.models,
            training=self.pairs["train"],
            cache=self.folder,
            precision=self.settings.training.precision,
        )

    def matcher(self, system: System, seed: int, *, trained: bool) -> Matcher:
        """A new matcher, or the one that was trained. Errors as of `new_matcher`."""
        kept = self.folder_of(system, seed) / MODEL_FOLDER if trained else None
        return new_matcher(system, self.parts, seed=seed, trained=kept)


def prepare_matching(settings: MatchingSettings, folder: Path) -> MatchingRun:
    """Read the corpus and look whether every system has what it needs; nothing is trained.

    Raises ValueError with one clear line for whatever does not fit.
    """
    for system in settings.systems:
        if system.encoder == "longformer":
            checkpoint_of(settings.models.encoders, system.name)
        training_of(settings, system, seed=0, pairs=1)
    lost: dict[str, list[str]] = {}
    pairs = read_matching_pairs(settings.corpus, lost=lost)
    for name, places in lost.items():
        print(f"{settings.corpus.corpus}: {name}: {named(places)}")
    return MatchingRun(settings=settings, pairs=pairs, folder=folder, lost=lost)


def match_documents(run: MatchingRun) -> dict[tuple[str, int], dict[str, MatchPredictions]]:
    """(system, seed) -> split -> predictions; trained where that was not done yet.

    Raises Stopped when it was asked to stop; the same call goes on from there.
    """
    found = {}
    for system, seed in run.trainings:
        if not run.is_finished(system, seed):
            _train_and_predict(run, system, seed)
        found[system.name, seed] = {
            split: MatchPredictions.load(
                run.folder_of(system, seed) / f"{split}.npz", pairs=len(run.pairs[split])
            )
            for split in RUN_SPLITS
        }
    return found


def _train_and_predict(run: MatchingRun, system: System, seed: int) -> None:
    folder = run.folder_of(system, seed)
    if system.encoder == "words":
        overlap = WordOverlap(run.pairs["train"])
        for split in RUN_SPLITS:
            overlap.predict(run.pairs[split]).save(folder / f"{split}.npz")
        return
    matcher = run.matcher(system, seed, trained=False)
    config = training_of(run.settings, system, seed=seed, pairs=len(run.pairs["train"]))
    name = f"{system.label}, seed {seed}"
    arguments = {"settings": run.settings, "folder": str(run.folder), "system": system.name, "seed": seed}
    fine_tune(
        _job(matcher, run.pairs, config),
        folder=folder,
        name=name,
        parallel=run.settings.training.parallel if system.trains_encoder else "",
        recipe=Recipe(function=prepare_job, arguments=arguments),
    )
    if matcher.vocabulary is not None:
        matcher.vocabulary.save(folder / MODEL_FOLDER)
    slow = name if system.trains_encoder else None
    for split in RUN_SPLITS:
        predictions = predict(
            matcher,
            run.pairs[split],
            batch_size=config.micro_batch_size,
            precision=config.precision,
            name=slow and f"{slow}: {split}",
        )
        predictions.save(folder / f"{split}.npz")


def prepare_job(*, settings: MatchingSettings, folder: str, system: str, seed: int) -> TrainingJob:
    """That of a system and a seed, for each of several processes. Errors as of `prepare_matching`."""
    run, chosen = prepare_matching(settings, Path(folder)), SYSTEMS[system]
    config = training_of(settings, chosen, seed=seed, pairs=len(run.pairs["train"]))
    return _job(run.matcher(chosen, seed, trained=False), run.pairs, config)


def _job(matcher: Matcher, pairs: Pairs, config: TrainingConfig) -> TrainingJob:
    return TrainingJob(
        model=matcher.model,
        tokenizer=matcher.tokenizer,
        train_examples=matcher.examples(list(in_training_order(pairs["train"], config))),
        validation_examples=matcher.examples(pairs["dev"]),
        collate=matcher.collate,
        config=config,
    )


def training_of(settings: MatchingSettings, system: System, *, seed: int, pairs: int) -> TrainingConfig:
    """How a system is trained on so many pairs.

    Raises ParameterError for values that cannot be.
    """
    given = settings.training
    if system.trains_encoder:
        epochs, batch_size, rate = given.encoder_epochs, given.encoder_batch_size, given.encoder_learning_rate
        at_once = given.encoder_micro_batch_size
    else:
        epochs, batch_size, rate = given.epochs, given.batch_size, given.learning_rate
        at_once = batch_size
    config = config_of_passes(
        items=pairs,
        epochs=epochs,
        batch_size=batch_size,
        micro_batch_size=at_once,
        learning_rate=rate,
        precision=given.precision,
        parallel=given.parallel if system.trains_encoder else "",
        workers=given.workers if system.trains_encoder else 0,
        seed=seed,
    )
    return replace(config, warmup_steps=int(given.warmup_share * config.steps))


MEASURES = ("accuracy", "f1")
Found = Mapping[tuple[str, int], Mapping[str, MatchPredictions]]  # (system, seed) -> split


def corpus_facts(run: MatchingRun) -> list[tuple[str, str]]:
    """What is matched, as (name, text)."""
    rows = [
        (
            split,
            f"{len(pairs):,} pairs, {fmean(pair.related for pair in pairs):.0%} related; "
            f"{fmean(len(one.sentences) for pair in pairs for one in (pair.first, pair.second)):.0f} "
            "sentences a document",
        )
        for split, pairs in run.pairs.items()
    ]
    rows += ((name, named(places)) for name, places in run.lost.items())
    shared = shared_documents(run.pairs)
    if any(shared.values()):
        told = ", ".join(f"{share:.0%} of {split}" for split, share in shared.items())
        rows.append(("documents of train are in", f"{told}: this corpus was split by pairs"))
    return rows


def cost_facts(run: MatchingRun) -> list[tuple[str, str]]:
    """What each system will take, as (name, text); takes a few seconds, for one batch is learned from to know
    how long a step takes. Encodings of sentences that frozen encoders make once are not counted."""
    rows = [("precision of training", precision_told(run.settings.training.precision))]
    for system in run.settings.systems:
        if system.encoder == "words":
            continue
        matcher = run.matcher(system, 0, trained=False)
        config = training_of(run.settings, system, seed=0, pairs=len(run.pairs["train"]))
        processes = Processes.of(run.settings.training.parallel) if system.trains_encoder else ALONE
        examples = matcher.examples(run.pairs["train"][: config.micro_batch_size])
        seconds, _ = seconds_of_batch(
            matcher.model, partial(matcher.collate, examples), precision=config.precision
        )
        total = seconds * config.steps * config.batch_size / config.micro_batch_size
        rows.append(
            (
                system.label,
                f"{parameter_count(matcher.model) / 1e6:.2f} million parameters; updates with "
                f"{config.batch_size} pairs: {config.steps:,}, about {time_told(total, processes)}; times "
                f"seeds: {run.settings.training.seeds}",
            )
        )
    return rows


def write_matching_report(run: MatchingRun, opened: Run, found: Found) -> Report:
    """Scores of all systems on dev and test, and the tests between them on test."""
    return opened.write_report(
        scores={
            f"{system.name}/{split}/{measure}": score
            for system in run.settings.systems
            for split in ("dev", "test")
            for counts in [_counts(run.pairs[split], _of(found, system.name, split))]
            for measure, score in count_scores(
                counts, {name: DECISION_SCORES[name] for name in MEASURES}, seed=0
            ).items()
        },
        data={
            "corpus": run.settings.corpus.corpus,
            "precision": precision_told(run.settings.training.precision),
            "pairs": {split: len(pairs) for split, pairs in run.pairs.items()},
            "clusters": {split: len({pair.cluster for pair in pairs}) for split, pairs in run.pairs.items()},
            "shared_documents": shared_documents(run.pairs),
            "lost": {name: named(places) for name, places in run.lost.items()},
        },
        tables={
            "comparisons": _comparisons(run, found),
            "runs": [
                {"system": name, "seed": seed, "split": split, **_plain(run.pairs[split], one)}
                for (name, seed), of_split in found.items()
                for split, one in of_split.items()
            ],
        },
    )


def matching_table(report: Report, split: str = "test") -> ScoreTable:
    """A row for each system of a report, in order."""
    labels = {system: SYSTEMS[system].label for system in dict.fromkeys(row.system for row in report.rows)}
    corpus = Path(report.parameters["corpus"]).name
    return score_table(report, labels=labels, split=split, caption=f"{corpus}, {split}")


def _counts(pairs: Sequence[DocumentPair], seeds: Iterable[MatchPredictions]) -> list[np.ndarray]:
    """(clusters, 4) with each seed: right, predicted and gold matches, and pairs."""
    labels, clusters = [pair.related for pair in pairs], [pair.cluster for pair in pairs]
    return [match_counts(labels, one.decisions, clusters=clusters) for one in seeds]


def _of(found: Found, system: str, split: str) -> list[MatchPredictions]:
    """Of all seeds."""
    return [of_split[split] for (name, _), of_split in found.items() if name == system]


def _plain(pairs: Sequence[DocumentPair], predictions: MatchPredictions) -> dict[str, Any]:
    (counts,) = _counts(pairs, [predictions])
    scores = {measure: float(of(counts.sum(axis=0))) for measure, of in DECISION_SCORES.items()}
    return {**scores, "pairs": len(pairs)}


def _comparisons(run: MatchingRun, found: Found) -> list[dict[str, Any]]:
    """Each system against the one that it builds on, by mean accuracy and by mean F1 over the seeds, clusters
    of pairs being what is drawn. `p_holm`: corrected for the systems tested."""
    tested = [
        (system, SYSTEMS[system.against])
        for system in run.settings.systems
        if system.against in {other.name for other in run.settings.systems}
    ]
    rows = []
    for measure in MEASURES:
        compared = [_compare(run.pairs["test"], found, *pair, measure=measure) for pair in tested]
        for row, corrected in zip(compared, holm([row["p"] for row in compared]), strict=True):
            rows.append({**row, "p_holm": corrected})
    return rows


def _compare(
    pairs: Sequence[DocumentPair], found: Found, a: System, b: System, *, measure: str
) -> dict[str, Any]:
    sides = (_counts(pairs, _of(found, system.name, "test")) for system in (a, b))
    compared = compare_counts(*sides, DECISION_SCORES[measure], seed=0)
    return {"a": a.name, "b": b.name, **asdict(compared), "measure": measure, "pairs": len(pairs)}
