"""What the explorer of notebook 11 opens with: which documents, which models, which words; and the sentences
around the chosen words, handed to bertviz."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.analysis.dense_attention import attention_between
from cdlm_lab.data.coreference_records import CoreferenceDocument, Topic
from cdlm_lab.data.marked_documents import nearly_a_mark, read_marked_documents
from cdlm_lab.examples.aligned_mentions import AlignedPair
from cdlm_lab.experiments.attention_analysis import Analysis
from cdlm_lab.experiments.attention_explorer import (
    Reader,
    explorer,
    panel_of,
    read_documents,
    shown_document,
)
from cdlm_lab.experiments.preview import token_texts
from cdlm_lab.models.checkpoint import CheckpointError
from cdlm_lab.models.device import default_device
from cdlm_lab.models.encoder import load_encoder, load_language_model
from cdlm_lab.parameters import ParameterError
from cdlm_lab.widgets.bertviz_view import bertviz_html
from cdlm_lab.widgets.explorer import Explorer, Selection
from cdlm_lab.widgets.explorer.records import Place
from cdlm_lab.widgets.theme import variant_name

MOST_TOKENS = {"head": 32, "model": 24}  # of each of two sentences, in bertviz's two views


def documents_to_explore(
    topics: Sequence[Topic], pairs: Sequence[AlignedPair], *, names: str, own: str
) -> tuple[list[CoreferenceDocument], Selection | None]:
    """The documents to show, and the words to begin with.

    Args:
        pairs: of those that corefer in different words the one with the shortest documents is shown, if
            nothing else is named.
        names: of documents, separated by spaces; "" = those of that pair.
        own: a file or folder of one's own documents, with marked mentions or without; "" = none.

    Raises:
        ParameterError: a name that no document has, or both `names` and `own`.
        DataError: as of `read_marked_documents`.
    """
    if own and names:
        raise ParameterError("own_documents and explore_documents are both given; leave one empty")
    if own:
        return list(read_marked_documents(own, kind="event", needs_marks=False).documents), None
    known = {document.id: document for topic in topics for document in topic.documents}
    if names:
        if missing := [name for name in names.split() if name not in known]:
            raise ParameterError(
                f"explore_documents names {missing[0]}, which is not there; the documents are "
                f"{', '.join(sorted(known)[:20])}{', ...' if len(known) > 20 else ''}"
            )
        return [known[name] for name in names.split()], None
    pair = _in_different_words(pairs, known)
    mentions = (pair.source, pair.target)
    chosen = Selection(source=(0, *pair.source.tokens), target=(1, *pair.target.tokens))
    return [known[mention.document] for mention in mentions], chosen


def _in_different_words(
    pairs: Sequence[AlignedPair], documents: Mapping[str, CoreferenceDocument]
) -> AlignedPair:
    """Of the pairs that corefer and share no word, or of all that corefer, the one with the shortest
    documents: they are shown beside each other."""
    positive = [pair for pair in pairs if pair.corefer]

    def words(mention) -> set[str]:
        return set(documents[mention.document].text_of(mention).casefold().split())

    def length(pair: AlignedPair) -> int:
        return sum(len(documents[mention.document].tokens) for mention in (pair.source, pair.target))

    different = [pair for pair in positive if not words(pair.source) & words(pair.target)]
    return min(different or positive, key=length)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExploredCluster:
    """The explorer over some documents, and the models behind it."""

    documents: list[CoreferenceDocument]
    readers: list[Reader]
    view: Explorer

    @property
    def models(self) -> list[str]:
        """Their names."""
        return [reader.name for reader in self.readers]

    @property
    def told(self) -> str:
        """How much is shown, and what is not, as nobody marked it."""
        words = sum(len(document.tokens) for document in self.documents)
        counts = f"{len(self.documents)} documents, {words:,} words"
        if mentions := sum(len(document.mentions) for document in self.documents):
            return f"{counts}, {mentions:,} mentions underlined"
        near = nearly_a_mark(self.documents)
        wrong = f" ({near} is not a mark; write <m> and </m>)" if near else ""
        return f"{counts}; no mention is marked{wrong}, so nothing is underlined, and all else works"

    def in_bertviz(self, model: str, view: str, direction: str) -> str:
        """What is chosen in the explorer now, as `sentences_in_bertviz` shows it."""
        return sentences_in_bertviz(
            self.readers, self.documents, self.view.chosen, model=model, view=view, direction=direction
        )


def explore_cluster(analysis: Analysis, *, models: str, names: str = "", own: str = "") -> ExploredCluster:
    """Load models, write documents into their sequences, open the explorer.

    Args:
        models: variants of the analysis, one or two, separated by a space.
        names, own: as of `documents_to_explore`.

    Raises:
        ParameterError: a variant without a model, none, or more than two; as `documents_to_explore`.
        DataError: as of `documents_to_explore`.
    """
    wanted = models.split()
    if missing := [name for name in wanted if name not in analysis.checkpoints]:
        raise ParameterError(
            f"explore names {missing[0]!r}, for which no model is given; choose among "
            f"{', '.join(analysis.checkpoints)}"
        )
    if not 1 <= len(wanted) <= 2:
        raise ParameterError(f"explore names {len(wanted)} models; name one or two, separated by a space")
    documents, selection = documents_to_explore(
        analysis.topics, analysis.pairs["event"], names=names, own=own
    )
    readers = read_documents(
        documents,
        {variant_name(name): _loaded(analysis, name) for name in wanted},
        max_length=analysis.settings.max_length,
    )
    view = explorer(documents, readers, selection=selection, title="Where does the model look?")
    return ExploredCluster(documents=documents, readers=readers, view=view)


def _loaded(analysis: Analysis, variant: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    try:
        model, tokenizer = analysis.load(variant, load_language_model)
    except CheckpointError:  # without a head no words can be predicted, but all else can be seen
        model, tokenizer = analysis.load(variant, load_encoder)
    return model.to(default_device()), tokenizer


def sentences_in_bertviz(
    readers: Sequence[Reader],
    documents: Sequence[CoreferenceDocument],
    selection: Selection,
    *,
    model: str,
    view: str,
    direction: str = "from",
) -> str:
    """bertviz's view of two sentences as HTML: that of the source, and that of the target (without one, of
    the strongest word of another document), with the global attention that is chosen in the explorer.

    Only what passes between the two is shown; within a sentence there is far more, and it would hide this.

    Args:
        model: name of the reader.
        view: `head` or `model`.
        direction: `from` = what the source's sentence gives to the other; `to` = what it receives.

    Raises:
        ValueError: nothing is chosen; words that the model does not read; another document is missing;
            nothing passes between the sentences.
    """
    reader = next(reader for reader in readers if reader.name == model)
    if selection.source is None:
        raise ValueError("choose words in the explorer first: click a word or drag over several")
    other = selection.target or _strongest(reader, documents, selection)
    ids = reader.sequence.input_ids
    queries, keys = (
        _around(reader, documents, place, MOST_TOKENS[view]) for place in (selection.source, other)
    )
    if direction == "to":
        queries, keys = keys, queries
    is_global = np.zeros(len(ids), dtype=bool)
    for place in (*selection.extra_global, *((selection.source,) if selection.source_global else ())):
        is_global[reader.positions(place)] = True
    weights = attention_between(reader.model, ids, queries=queries, keys=keys, global_mask=is_global)
    if not weights.any():
        raise ValueError(
            "nothing passes between these sentences: they are too far apart and neither is global; switch on "
            "the global attention of the chosen words"
        )
    left, right = (token_texts(reader.tokenizer, ids[positions])[0] for positions in (queries, keys))
    return bertviz_html(weights, query_tokens=left, key_tokens=right, view=view)


def _strongest(reader: Reader, documents: Sequence[CoreferenceDocument], selection: Selection) -> Place:
    """The word of another document that goes with the source most. Raises ValueError without another one."""
    counts = np.concatenate([shown_document(document).counts for document in documents])
    of_word = np.repeat(np.arange(len(documents)), np.diff(reader.firsts))
    allowed = counts & (of_word != selection.source[0])
    if not allowed.any():
        raise ValueError("there is no other document; show two or more")
    word = int(np.where(allowed, panel_of(reader, selection, counts).scores, -np.inf).argmax())
    document = int(of_word[word])
    place = word - int(reader.firsts[document])
    return document, place, place + 1


def _around(reader: Reader, documents: Sequence[CoreferenceDocument], place: Place, most: int) -> np.ndarray:
    """Positions of the sentence of a span, at most so many, those nearest to the span."""
    document, start, end = place
    first, last = next(one for one in documents[document].sentences if one[0] <= start < one[1])
    sentence = reader.sequence.positions(document, (first, max(last, end)))
    chosen = reader.positions(place)
    middle = np.searchsorted(sentence, chosen).mean()
    begin = int(min(max(round(middle - most / 2), 0), max(0, len(sentence) - most)))
    return sentence[begin : begin + most]
