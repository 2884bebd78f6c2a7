"""What the explorer can open: topics of the corpus, the reader's own texts, the models of the notebook, those
that ship with the project, and those of other runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.clusters import open_corpus
from cdlm_lab.data.coreference import document_of_spans
from cdlm_lab.data.files import DataError, is_hidden, plain_name
from cdlm_lab.data.marked import (
    as_pasted,
    has_marks,
    marked_texts,
    parse_marked_documents,
    pasted_documents,
    read_marked_documents,
    with_marks,
)
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention, TokenSpan, Topic
from cdlm_lab.data.splits import SPLITS
from cdlm_lab.data.words import plain_word
from cdlm_lab.encoders.checkpoint import CheckpointError, is_trained
from cdlm_lab.encoders.language_model import LANGUAGE_MODELS
from cdlm_lab.encoders.model_folder import MODEL_FOLDER
from cdlm_lab.encoders.variants import VARIANTS, checkpoint_of
from cdlm_lab.examples.packing import equal_share
from cdlm_lab.examples.tokens import SpecialTokens, encode_document
from cdlm_lab.explorer.aligned_pairs import AlignedPair
from cdlm_lab.explorer.ranks import Analysis
from cdlm_lab.parameters import ParameterError
from cdlm_lab.runs.report import RunError, read_run_file
from cdlm_lab.tasks.coreference.found import Finder, found_spans

GIVEN = "given"  # key of the documents that are named
MOST_CLUSTERS = 200  # most clusters of a file that are listed
MOST_RUNS = 40  # most runs whose models are listed, newest first


# ---- documents ----


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """Related documents, and which of them are opened at first."""

    key: str
    label: str = ""  # "" = the headline of its first document
    documents: Sequence[CoreferenceDocument]
    first: Sequence[str]  # ids
    pair: AlignedPair | None = None  # the mentions selected at first; None = no selection
    whole: bool = False  # True = never cut
    spaces: Mapping[str, tuple[bool, ...]] = field(default_factory=dict)  # before the words, where known

    def spans(self, documents: Sequence[CoreferenceDocument]) -> list[TokenSpan]:
        """For each document the words selected at first, (0, 0) = none."""
        mentions = () if self.pair is None else (self.pair.source, self.pair.target)
        chosen = {one.document: one.tokens for one in mentions}
        return [chosen.get(one.id, (0, 0)) for one in documents]


def sources_of(analysis: Analysis, named: Sequence[str] = (), own: str = "") -> list[Source]:
    """The documents of these names, those of the file or folder `own`, or the clusters in it, then each topic
    with a coreferring event pair in different words; the first source is opened."""
    known = {document.id: document for topic in analysis.topics for document in topic.documents}
    positive = [pair for pair in analysis.pairs["event"] if pair.corefer]
    sources = _given(known, named, own)
    topics = [_of_topic(topic, [one for one in positive if one.topic == topic.id], known)
              for topic in analysis.topics]  # fmt: skip
    if not sources:
        best = _in_different_words(positive, known).topic
        topics.sort(key=lambda source: source.key != best)
    return sources + topics


def own_source(text: str, mentions: Finder | None = None) -> Source:
    """A text that the reader typed. Raises DataError if it cannot be read. `mentions`: what finds them if
    none is marked; if it cannot, as where no tagger is here, none is underlined."""
    if mentions and not has_marks(text):
        with suppress(ParameterError):
            texts = dict(pasted_documents(text))
            found = {name: found_spans(mentions, one, kind=None, source=name) for name, one in texts.items()}
            text = as_pasted({name: with_marks(one, found[name]) for name, one in texts.items()})
    topic = parse_marked_documents(text, kind="event", source="your own text", needs_marks=False)
    spaces = spaces_as_typed(text, topic.documents)
    return replace(_uncut("own", topic.documents), spaces=spaces)


def spaces_as_typed(text: str, documents: Sequence[CoreferenceDocument]) -> dict[str, tuple[bool, ...]]:
    """For each document of a typed text whether white space stands before each word."""
    spaces, end = {}, 0
    for document in documents:
        starts, ends = zip(*document.offsets, strict=True)
        before = zip((end, *ends), starts, strict=False)
        spaces[document.id] = tuple(any(map(str.isspace, text[last:start])) for last, start in before)
        end = ends[-1]
    return spaces


def _given(known: Mapping[str, CoreferenceDocument], names: Sequence[str], own: str) -> list[Source]:
    if own and names:
        raise ParameterError("documents and own are both given; leave one out")
    if plain_name(own).endswith(".jsonl"):
        return _mined(own)
    if own:
        documents = read_marked_documents(own, kind="event", needs_marks=False).documents
        return [_uncut(own, documents)]
    if missing := [name for name in names if name not in known]:
        raise ParameterError(
            f"documents names {missing[0]}, which is not there; the documents are "
            f"{', '.join(sorted(known)[:20])}{', ...' if len(known) > 20 else ''}"
        )
    documents = [known[name] for name in names]
    label, first = f"documents: {' '.join(names)}", [document.id for document in documents]
    return [Source(key=GIVEN, label=label, documents=documents, first=first)] if documents else []


def _mined(corpus: str) -> list[Source]:
    """The first clusters of a file, such as `cdlm-lab mine` writes; documents are named by their titles.
    Raises DataError if there are none."""
    sources: list[Source] = []
    for split in SPLITS:
        try:
            some = list(islice(open_corpus(corpus, split=split), MOST_CLUSTERS - len(sources)))
        except DataError as error:
            if error.field != "split" or (split == SPLITS[-1] and not sources):  # this split has none
                raise
            continue
        for cluster in some:
            named: dict[str, str] = {}
            for one in cluster.documents:
                title = " ".join((one.title or "").split())
                named[one.id if not title or title in named else title] = one.text
            topic = marked_texts(named, kind="event", needs_marks=False)
            first = [document.id for document in topic.documents[:2]]
            sources.append(Source(key=f"cluster {cluster.id}", documents=topic.documents, first=first))
    return sources


def _uncut(label: str, documents: Sequence[CoreferenceDocument]) -> Source:
    first = [document.id for document in documents]
    return Source(key=GIVEN, label=label, documents=documents, first=first, whole=True)


def _of_topic(topic: Topic, pairs: Sequence[AlignedPair], known: Mapping[str, CoreferenceDocument]) -> Source:
    pair = _in_different_words(pairs, known) if pairs else None
    first = [one.id for one in topic.documents[:2]]
    if pair is not None:
        first = [pair.source.document, pair.target.document]
    return Source(key=topic.id, documents=topic.documents, first=first, pair=pair)


def _in_different_words(
    pairs: Sequence[AlignedPair], documents: Mapping[str, CoreferenceDocument]
) -> AlignedPair:
    """Among the pairs that share no word, or among all if there are none, the one with the shortest
    documents, which are shown side by side."""

    def words(mention: CoreferenceMention) -> set[str]:
        tokens = documents[mention.document].tokens[slice(*mention.tokens)]
        return {plain_word(token).casefold() for token in tokens}

    def length(pair: AlignedPair) -> int:
        return sum(len(documents[mention.document].tokens) for mention in (pair.source, pair.target))

    different = [pair for pair in pairs if not words(pair.source) & words(pair.target)]
    return min(different or pairs, key=length)


# ---- documents cut to whole sentences, so that models read all that is shown of them ----


def excerpts(
    documents: Sequence[CoreferenceDocument],
    tokenizers: Sequence[PreTrainedTokenizerBase],
    *,
    max_length: int,
    around: Sequence[TokenSpan],
) -> list[tuple[CoreferenceDocument, int]]:
    """Cut each document to whole sentences, so that together they fit into `max_length` tokens of every
    tokenizer. Returns for each the excerpt and the index of its first word in the whole document. The excerpt
    grows around a half-open span of words, at least the span's own sentences; documents get equal shares of
    the room, and what a short one leaves goes to the others."""
    lengths = [_sentence_lengths(document, tokenizers) for document in documents]
    room, _ = equal_share(
        [int(of.sum()) for of in lengths],
        budget=max_length - SpecialTokens.framing,
        per_document=SpecialTokens.per_document,
    )
    cut = []
    for document, of_sentences, tokens, span in zip(documents, lengths, room, around, strict=True):
        first, last = _fitting(document.sentences, of_sentences, room=tokens, span=span)
        cut.append((_part(document, first, last), document.sentences[first][0]))
    return cut


def _sentence_lengths(
    document: CoreferenceDocument, tokenizers: Sequence[PreTrainedTokenizerBase]
) -> np.ndarray:
    """int64 (sentences,), tokens of each sentence by the tokenizer that needs the most."""
    ends = np.array([0, *(end for _, end in document.sentences)])
    starts = [encode_document(document, tokenizer).starts for tokenizer in tokenizers]
    return np.max([np.diff(of[ends]) for of in starts], axis=0)


def _fitting(
    sentences: Sequence[TokenSpan], lengths: np.ndarray, *, room: int, span: TokenSpan
) -> tuple[int, int]:
    """Half-open span of sentences: those of the span of words, then in turn the next and previous."""
    first = max(number for number, (start, _) in enumerate(sentences) if start <= span[0])
    last = 1 + max(number for number, (start, _) in enumerate(sentences) if start < max(span[1], 1))
    left, grown = room - int(lengths[first:last].sum()), True
    while grown:
        grown = False
        for side in (last, first - 1):
            if 0 <= side < len(sentences) and lengths[side] <= left:
                left, grown = left - int(lengths[side]), True
                first, last = min(first, side), max(last, side + 1)
    return first, last


def _part(document: CoreferenceDocument, first: int, last: int) -> CoreferenceDocument:
    """The sentences [first, last) of a document, with the mentions in them."""
    start, end = document.sentences[first][0], document.sentences[last - 1][1]
    if (start, end) == (0, len(document.tokens)):
        return document
    mentions = [
        (one.id, (one.tokens[0] - start, one.tokens[1] - start), one.kind, one.cluster)
        for one in document.mentions
        if start <= one.tokens[0] and one.tokens[1] <= end
    ]
    return document_of_spans(
        mentions,
        id=document.id,
        topic=document.topic,
        subtopic=document.subtopic,
        tokens=document.tokens[start:end],
        sentences=[(one - start, other - start) for one, other in document.sentences[first:last]],
        validated=[number - first for number in document.validated if first <= number < last],
    )


# ---- models ----


@dataclass(frozen=True, kw_only=True)
class NamedModel:
    """A model that the explorer can open."""

    label: str
    where: str
    variant: str  # the variant as which it was trained; "" = unknown


def models_to_open(analysis: Analysis) -> dict[str, NamedModel]:
    """Key -> model: the notebook's, those that ship with the project, and language models of runs in the same
    parent folder as this run."""
    models = {
        variant: NamedModel(label=variant, where=where, variant=variant)
        for variant, where in analysis.settings.checkpoints.items()
    }
    for variant in VARIANTS:
        where = checkpoint_of("storyworld", variant)
        if all(where != one.where for one in models.values()):
            models[where] = NamedModel(label=where, where=where, variant=variant)
    beside = Path(analysis.settings.run_folder).parent
    patterns = (f"{depth}/{MODEL_FOLDER}/config.json" for depth in ("*", "*/*"))
    files = (path for pattern in patterns for path in beside.glob(pattern) if not is_hidden(path, beside))
    folders = [path.parent for path in files]
    folders.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in [one for one in folders if _is_language_model(one)][:MOST_RUNS]:
        run = folder.parent
        label = f"run {run.relative_to(beside).as_posix()}"
        models[str(folder)] = NamedModel(label=label, where=str(folder), variant=_variant_of_run(run))
    return models


def _is_language_model(folder: Path) -> bool:
    try:
        if not (folder / "tokenizer.json").is_file():
            return False
        return any(is_trained(str(folder), kind.plain_class) for kind in LANGUAGE_MODELS.values())
    except CheckpointError:
        return False


def _variant_of_run(run: Path) -> str:
    try:
        _, parameters, _ = read_run_file(run)
    except RunError:
        parameters = {}
    variant = parameters.get("variant", run.name)
    return variant if variant in VARIANTS else ""
