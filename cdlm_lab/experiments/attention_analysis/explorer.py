"""The explorer of notebook 11 with models behind it: what a person chooses is run, scored and ranked.

Words are ranked, where the paper ranks tokens: a word's score is the mean (or the largest) of its tokens',
and its percentile rank is among the words of its document; punctuation and the source do not count.

The overview needs the attention between all sentences. A model with sparse attention has none across
documents unless something is global, so the sentences are made global in turn, the first ones of all
documents together, then the second ones, and so on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.analysis.percentile_rank import percentile_rank, ranks_within, source_scores, word_scores
from cdlm_lab.analysis.source_attention import SourceAttention, attend_to_source, attention_between
from cdlm_lab.data.records import CoreferenceDocument, CoreferenceMention
from cdlm_lab.data.typed_documents import nearly_a_mark, read_marked_documents
from cdlm_lab.examples.mention_pairs import AlignedPair
from cdlm_lab.examples.packing import DocumentSequence, document_sequence
from cdlm_lab.examples.tokens import encode_document, from_tokenizer, token_texts
from cdlm_lab.experiments.attention_analysis.ranks import Analysis
from cdlm_lab.models.checkpoint import CheckpointError
from cdlm_lab.models.encoder import load_encoder, load_language_model
from cdlm_lab.parameters import ParameterError
from cdlm_lab.widgets.ask import ChosenSentences
from cdlm_lab.widgets.explorer import Explorer, Panel, Prediction, Selection, ShownDocument
from cdlm_lab.widgets.explorer.bertviz import bertviz_html
from cdlm_lab.widgets.explorer.records import Place
from cdlm_lab.widgets.html import seconds_in_words, variant_name

KEPT_RUNS = 24  # of the model, so that layers and heads can be changed without another
MOST_TOKENS = {"head": 32, "model": 24}  # of each of two sentences, in bertviz's two views


# ---- what it opens with ----


def explore(analysis: Analysis) -> ExploredCluster:
    """Load the models that the parameter `explore` names, write the documents into their sequences, open the
    explorer. Raises ParameterError: a variant without a model, none, or more than two; a name that no
    document has."""
    settings = analysis.settings
    names, known = settings.explore.split(), settings.checkpoints
    if missing := [name for name in names if name not in known]:
        raise ParameterError(
            f"explore names {missing[0]!r}, for which no model is given; choose among {', '.join(known)}"
        )
    if not 1 <= len(names) <= 2:
        raise ParameterError(f"explore names {len(names)} models; name one or two, separated by a space")
    documents, selection = documents_to_explore(analysis)
    loaded = {}
    for name in names:
        try:
            loaded[variant_name(name)] = analysis.load(name, load_language_model)
        except CheckpointError:  # without a head no words can be predicted, but all else can be seen
            loaded[variant_name(name)] = analysis.load(name, load_encoder)
    readers = read_documents(documents, loaded, max_length=settings.max_length)
    view = explorer(documents, readers, selection=selection)
    return ExploredCluster(analysis=analysis, documents=documents, readers=readers, view=view)


def documents_to_explore(analysis: Analysis) -> tuple[list[CoreferenceDocument], Selection | None]:
    """The documents to show, and the words to begin with: one's own documents, those that are named, or those
    of a pair of events that corefer in different words."""
    names, own = analysis.settings.explore_documents, analysis.settings.own_documents
    if own and names:
        raise ParameterError("own_documents and explore_documents are both given; leave one empty")
    if own:
        return list(read_marked_documents(own, kind="event", needs_marks=False).documents), None
    known = {document.id: document for topic in analysis.topics for document in topic.documents}
    if names:
        if missing := [name for name in names.split() if name not in known]:
            raise ParameterError(
                f"explore_documents names {missing[0]}, which is not there; the documents are "
                f"{', '.join(sorted(known)[:20])}{', ...' if len(known) > 20 else ''}"
            )
        return [known[name] for name in names.split()], None
    pair = _in_different_words(analysis.pairs["event"], known)
    chosen = Selection(source=(0, *pair.source.tokens), target=(1, *pair.target.tokens))
    return [known[mention.document] for mention in (pair.source, pair.target)], chosen


def _in_different_words(
    pairs: Sequence[AlignedPair], documents: Mapping[str, CoreferenceDocument]
) -> AlignedPair:
    """Of the pairs that corefer and share no word, or of all that corefer, the one with the shortest
    documents: they are shown beside each other."""
    positive = [pair for pair in pairs if pair.corefer]

    def words(mention: CoreferenceMention) -> set[str]:
        return set(documents[mention.document].text_of(mention).casefold().split())

    def length(pair: AlignedPair) -> int:
        return sum(len(documents[mention.document].tokens) for mention in (pair.source, pair.target))

    different = [pair for pair in positive if not words(pair.source) & words(pair.target)]
    return min(different or positive, key=length)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExploredCluster:
    """The explorer over some documents, and the models behind it."""

    analysis: Analysis
    documents: list[CoreferenceDocument]
    readers: list[Reader]
    view: Explorer

    @property
    def summary(self) -> str:
        """How much is shown, and what is not, as nobody marked it."""
        words = sum(len(document.tokens) for document in self.documents)
        counts = f"{len(self.documents)} documents, {words:,} words"
        if mentions := sum(len(document.mentions) for document in self.documents):
            return f"{counts}, {mentions:,} mentions underlined"
        near = nearly_a_mark(self.documents)
        wrong = f" ({near} is not a mark; write <m> and </m>)" if near else ""
        return f"{counts}; no mention is marked{wrong}, so nothing is underlined, and all else works"

    def save(self) -> None:
        """Write `explorer.html`, and `explorer.png` where Chromium is installed, into the run's folder."""
        folder = self.analysis.opened.folder
        print("written:", self.view.save_html(folder / "explorer.html"))
        try:
            print("written:", self.view.save_png(folder / "explorer.png"))
        except RuntimeError as error:
            print(f"no picture: {error}")

    def chosen_sentences(self) -> ChosenSentences:
        """Buttons that show in bertviz what is chosen in the explorer."""
        return ChosenSentences(self.in_bertviz, models=[reader.name for reader in self.readers])

    def in_bertviz(self, model: str, view: str, direction: str) -> str:
        """What is chosen in the explorer now, as `sentences_in_bertviz` shows it."""
        (reader,) = (reader for reader in self.readers if reader.name == model)
        chosen = self.view.chosen
        return sentences_in_bertviz(reader, self.documents, chosen, view=view, direction=direction)


# ---- models that have read the documents ----


@dataclass(kw_only=True, eq=False)
class Reader:
    """A model that has read the documents."""

    name: str  # above its panel
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    sequence: DocumentSequence  # what it reads
    firsts: (
        np.ndarray
    )  # number of the first word of each document among all words, and at the end their number
    runs: dict[tuple, SourceAttention] = field(default_factory=dict)

    @property
    def words(self) -> np.ndarray:
        """int64 (seq,), number of each position's word among all words; -1 = special token."""
        return self.sequence.word_numbers(np.diff(self.firsts))

    @property
    def document_of_word(self) -> np.ndarray:
        """int64 (words of all documents,)."""
        return np.repeat(np.arange(len(self.firsts) - 1), np.diff(self.firsts))

    def positions(self, place: Place) -> np.ndarray:
        """Positions of words; ValueError if they are not in the text that the model reads."""
        document, start, end = place
        positions = self.sequence.positions(document, (start, end))
        if not len(positions):
            raise ValueError(
                f"{self.name} does not read these words: {sum(self.sequence.lost_tokens):,} tokens did not "
                "fit its length; raise max_length or choose fewer documents"
            )
        return positions

    def words_at(self, place: Place) -> slice:
        """Words of a document among all words."""
        document, start, end = place
        return slice(self.firsts[document] + start, self.firsts[document] + end)

    def positions_of(self, places: Sequence[Place]) -> np.ndarray:
        """Positions of all these words, in order."""
        return np.unique(np.concatenate([[], *(self.positions(place) for place in places)]).astype(np.int64))

    def run(self, selection: Selection) -> SourceAttention:
        """Attention from and to the source in all layers; the last runs are kept."""
        key = (selection.source, selection.source_global, selection.extra_global, selection.masked)
        if key not in self.runs:
            hidden = self.positions_of(selection.masked)
            ids = self.sequence.input_ids.copy()
            ids[hidden] = self.tokenizer.mask_token_id
            if len(self.runs) >= KEPT_RUNS:
                del self.runs[next(iter(self.runs))]
            self.runs[key] = attend_to_source(
                self.model,
                ids,
                source=self.positions(selection.source),
                extra_global=self.positions_of(selection.extra_global),
                source_is_global=selection.source_global,
                predict=hidden,
                truth=self.sequence.input_ids[hidden],
            )
        return self.runs[key]


def read_documents(
    documents: Sequence[CoreferenceDocument],
    models: dict[str, tuple[PreTrainedModel, PreTrainedTokenizerBase]],
    *,
    max_length: int,
) -> list[Reader]:
    """Write the documents into one sequence for each model; nothing is run. `models`: by name to show."""
    firsts, readers = np.cumsum([0, *(len(document.tokens) for document in documents)]), []
    for name, (model, tokenizer) in models.items():
        encoded = [encode_document(document, tokenizer) for document in documents]
        sequence = document_sequence(encoded, special=from_tokenizer(tokenizer), max_length=max_length)
        form = {"name": name, "model": model, "tokenizer": tokenizer}
        readers.append(Reader(**form, sequence=sequence, firsts=firsts))
    return readers


def explorer(
    documents: Sequence[CoreferenceDocument],
    readers: Sequence[Reader],
    *,
    selection: Selection | None = None,
) -> Explorer:
    """The widget over documents and the models that read them; `selection`: at first, in the last layer."""
    shown = [shown_document(document) for document in documents]
    layers = min(reader.model.config.num_hidden_layers for reader in readers)
    counts = np.concatenate([document.counts for document in shown])
    return Explorer(
        shown,
        models=[reader.name for reader in readers],
        layers=layers,
        heads=min(reader.model.config.num_attention_heads for reader in readers),
        answer=lambda chosen: [panel_of(reader, chosen, counts) for reader in readers],
        overview=lambda tell: overview_of(readers, shown, tell),
        predicts=all(hasattr(reader.model, "lm_head") for reader in readers),
        selection=selection and replace(selection, layer=layers - 1),
        title="Where does the model look?",
    )


def shown_document(document: CoreferenceDocument) -> ShownDocument:
    """A record as the explorer shows it, with its mentions."""
    mentions = tuple((*mention.tokens, mention.cluster) for mention in document.mentions)
    return ShownDocument(
        name=document.id, words=document.tokens, sentences=document.sentences, mentions=mentions
    )


def panel_of(reader: Reader, selection: Selection, counts: np.ndarray) -> Panel:
    """Run the model, or take a run that was kept, and score every word; `counts`: bool (words of all
    documents,), True = ranked."""
    attention = reader.run(selection)
    tokens = source_scores(
        attention.given,
        attention.received,
        layers=[selection.layer],
        heads=selection.heads,
        directions=selection.direction,
        reduce="max" if selection.reduce == "max" else "sum",
    )
    words, total = reader.words, int(reader.firsts[-1])
    scores = word_scores(tokens, words, n_words=total, reduce=selection.reduce)
    reach = np.zeros(total, dtype=bool)
    reach[words[attention.reach & (words >= 0)]] = True
    read = ~np.isnan(scores)
    scores = np.where(read, scores, 1.0)  # words that did not fit: exp(0), no weight
    ranked = counts.copy()
    ranked[reader.words_at(selection.source)] = False
    groups, target_rank = np.where(ranked, reader.document_of_word, -1), None
    if selection.target:  # the rank of its mean among the other words of its document
        span, others = reader.words_at(selection.target), groups == selection.target[0]
        others[span] = False
        if others.any():
            target_rank = percentile_rank(float(scores[span].mean()), scores[others])
    return Panel(
        name=reader.name,
        scores=scores,
        ranks=np.nan_to_num(ranks_within(scores, groups), nan=0.0),
        reach=reach,
        read=read,
        target_rank=target_rank,
        predictions=tuple(_prediction(reader, attention, place) for place in selection.masked),
    )


def _prediction(reader: Reader, attention: SourceAttention, place: Place) -> Prediction:
    """What the model predicts for the first token of the hidden words, and how likely it holds the truth."""
    at = np.searchsorted(attention.predicted, reader.positions(place))
    decoded = [reader.tokenizer.decode([token]).strip() for token in attention.predicted_ids[at[0]]]
    return Prediction(
        span=place,
        truth_probability=float(np.prod(attention.truth_probabilities[at])),
        top=tuple(zip(decoded, map(float, attention.probabilities[at[0]]), strict=True)),
    )


def overview_of(
    readers: Sequence[Reader], documents: Sequence[ShownDocument], tell: Callable[[str], None]
) -> list[np.ndarray]:
    """How much the sentences have to do with each other, for each model: (sentences, sentences) float64.

    Row i, column j: the weight between a token of sentence i, while that is global, and a token of sentence
    j in the last layer, both ways, summed over heads, on average. Sentences that did not fit have 0.
    `tell`: called with a line on how far it is.
    """
    sizes = [len(document.sentences) for document in documents]
    lengths = [end - start for document in documents for start, end in document.sentences]
    of_word = np.repeat(np.arange(sum(sizes)), lengths)
    turns, all_turns = max(sizes), max(sizes) * len(readers)
    began, done, matrices = time.monotonic(), 0, []
    for reader in readers:
        words = reader.words
        sentence = np.where(words < 0, -1, of_word[words])  # of each position; -1 = special token
        matrix = np.zeros((sum(sizes), sum(sizes)))
        for turn in range(turns):
            rows = [sum(sizes[:number]) + turn for number, size in enumerate(sizes) if turn < size]
            _fill_rows(matrix, reader, sentence, rows)
            done += 1
            left = seconds_in_words((time.monotonic() - began) / done * (all_turns - done))
            tell(f"reading sentence by sentence: {done} of {all_turns}, {left} left")
        matrices.append(matrix)
    return matrices


def _fill_rows(matrix: np.ndarray, reader: Reader, sentence: np.ndarray, rows: Sequence[int]) -> None:
    source = np.flatnonzero(np.isin(sentence, rows))
    if not len(source):
        return
    attention = attend_to_source(reader.model, reader.sequence.input_ids, source=source, layers=[-1])
    weights = (attention.given[0] + attention.received[0]).sum(axis=0)  # (source tokens, seq)
    inside = sentence >= 0
    counts = np.bincount(sentence[inside], minlength=len(matrix))
    for row in rows:
        mine = sentence[attention.source] == row
        if mine.any():
            of_row = weights[mine].mean(axis=0)[inside]
            sums = np.bincount(sentence[inside], of_row, minlength=len(matrix))
            matrix[row] = sums / np.maximum(counts, 1)


# ---- two sentences in bertviz ----


def sentences_in_bertviz(
    reader: Reader,
    documents: Sequence[CoreferenceDocument],
    selection: Selection,
    *,
    view: str,
    direction: str = "from",
) -> str:
    """bertviz's view of two sentences as HTML: that of the source, and that of the target (without one, of
    the strongest word of another document), with the global attention that is chosen in the explorer.

    Only what passes between the two is shown; within a sentence there is far more, and it would hide this.

    Args:
        view: `head` or `model`.
        direction: `from` = what the source's sentence gives to the other; `to` = what it receives.
    """
    if selection.source is None:
        raise ValueError("choose words in the explorer first: click a word or drag over several")
    places = (selection.source, selection.target or _strongest(reader, documents, selection))
    queries, keys = (_around(reader, documents, place, MOST_TOKENS[view]) for place in places)
    if direction == "to":
        queries, keys = keys, queries
    ids = reader.sequence.input_ids
    source = (selection.source,) if selection.source_global else ()
    is_global = np.zeros(len(ids), dtype=bool)
    is_global[reader.positions_of((*selection.extra_global, *source))] = True
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
    allowed = counts & (reader.document_of_word != selection.source[0])
    if not allowed.any():
        raise ValueError("there is no other document; show two or more")
    word = int(np.where(allowed, panel_of(reader, selection, counts).scores, -np.inf).argmax())
    document = int(reader.document_of_word[word])
    place = word - int(reader.firsts[document])
    return document, place, place + 1


def _around(reader: Reader, documents: Sequence[CoreferenceDocument], place: Place, most: int) -> np.ndarray:
    """Positions of the sentence of a span, at most so many, those nearest to the span."""
    document, start, end = place
    first, last = next(one for one in documents[document].sentences if one[0] <= start < one[1])
    sentence = reader.sequence.positions(document, (first, max(last, end)))
    middle = np.searchsorted(sentence, reader.positions(place)).mean()
    begin = int(min(max(round(middle - most / 2), 0), max(0, len(sentence) - most)))
    return sentence[begin : begin + most]
