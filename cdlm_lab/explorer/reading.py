"""A model that reads the explorer's documents: it is run on the reader's choices, and words are ranked.

Words are ranked, where the paper ranks tokens: a word's score is the mean (or the largest) of its tokens',
and its percentile rank is among the words of its document; punctuation and the source do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.attention.cut import Cut
from cdlm_lab.data.records import CoreferenceDocument
from cdlm_lab.encoders.percentile_rank import percentile_rank, ranks_within, source_scores, word_scores
from cdlm_lab.encoders.source_attention import SourceAttention, apart, attend_to_source, is_recordable
from cdlm_lab.examples.packing import DocumentSequence, document_sequence
from cdlm_lab.examples.tokens import DOCUMENT_START, encode_document, from_tokenizer
from cdlm_lab.explorer.hidden_words import HiddenSpan, WordPieces, guess_hidden

KEPT_RUNS = 24  # cached forward passes, so that changing layer or heads needs no new one


Place = tuple[int, int, int]  # index of a document, start and end of a half-open span of its words
Edit = tuple[int, int, str]  # index of a document, index of a word in it, the text that replaces the word


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The user's choices in the explorer."""

    source: Place | None = None  # words S whose attention to or from others is shown; None = not chosen yet
    target: Place | None = None  # words whose percentile rank is shown; None = none
    source_global: bool = True  # True = the source has global attention, as in the CDLM paper's analysis
    extra_global: tuple[Place, ...] = ()  # other spans with global attention
    masked: tuple[Place, ...] = ()  # spans that are masked, for the model to predict
    layer: int = 0  # index of the layer, from 0
    heads: tuple[int, ...] | None = None  # indices of heads, from 0; None = all
    direction: Literal["both", "from", "to"] = "both"  # of attention: from the source, to it, or their sum
    reduce: Literal["mean", "max"] = "mean"  # of heads, and of the subwords of a word: mean or maximum
    edits: tuple[Edit, ...] = ()  # words to replace; the answer then also covers the text without edits
    # Attention between documents that is cut: in all layers, in the one that is shown, or in those below it;
    # `random`, a control, cuts as much within documents; "" = none. The answer then also covers the text
    # without the cut.
    cut: Literal["", "documents", "layer", "below", "random"] = ""

    @property
    def attention_cut(self) -> Cut | None:
        """What is cut."""
        layers = {"layer": (self.layer,), "below": tuple(range(self.layer))}.get(self.cut)
        if not self.cut or layers == ():
            return None
        return Cut(layers=layers, edges="random" if self.cut == "random" else "documents")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A model's prediction for a masked span."""

    span: Place  # the masked words
    truth_probability: float  # of the original text, as one word: the product over its tokens
    top: tuple[tuple[str, float], ...]  # (whole word, probability), most likely first
    pieces: int = 1  # number of masked tokens


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Panel:
    """The answer of one model to a selection."""

    name: str  # of the model
    scores: np.ndarray  # (words of all documents,), attention score s(i|S) of each word i for the source S
    ranks: np.ndarray  # (words,), percentile rank of each score among the words of its document, 0 to 100
    reach: np.ndarray  # bool (words,), True = attention to or from the source is possible
    read: np.ndarray  # bool (words,), True = in the text that the model reads, False = did not fit
    target_rank: float | None = None  # percentile rank of the target; None = no target
    predictions: tuple[Prediction, ...] = ()  # one for each masked span
    before: Panel | None = None  # the answer without edits and cut; None = there are none


@dataclass(kw_only=True, eq=False)
class Reader:
    """A model with the documents it reads."""

    name: str  # shown above its panel
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    documents: Sequence[CoreferenceDocument]
    max_length: int  # most tokens of the sequence
    sequence: DocumentSequence  # the documents as one input sequence
    firsts: np.ndarray  # index of each document's first word among all words; then the number of words
    ranked: np.ndarray  # bool (words of all documents,), True = a word, False = punctuation, without a rank
    runs: dict[tuple, Any] = field(default_factory=dict)  # cache of the latest results, by what was run

    @property
    def can_be_cut(self) -> bool:
        """True if attention between documents can be cut: ours, if the tokenizer separates them."""
        vocabulary = self.tokenizer.get_vocab()
        return is_recordable(self.model) and DOCUMENT_START in vocabulary

    @property
    def words(self) -> np.ndarray:
        """int64 (seq,), index of each position's word among all words; -1 = special token."""
        return self.sequence.word_numbers(np.diff(self.firsts))

    @property
    def document_of_word(self) -> np.ndarray:
        """int64 (words of all documents,), index of each word's document."""
        return np.repeat(np.arange(len(self.firsts) - 1), np.diff(self.firsts))

    def positions(self, place: Place) -> np.ndarray:
        """Positions of the words of a place. Raises ValueError if they were cut from the sequence."""
        document, start, end = place
        positions = self.sequence.positions(document, (start, end))
        if not len(positions):
            raise ValueError(
                f"{self.name} does not read these words: {sum(self.sequence.lost_tokens):,} tokens did not "
                "fit its length; raise max_length or choose fewer documents"
            )
        return positions

    def words_at(self, place: Place) -> slice:
        """Slice of the words of a place among all words."""
        document, start, end = place
        return slice(self.firsts[document] + start, self.firsts[document] + end)

    def positions_of(self, places: Sequence[Place]) -> np.ndarray:
        """Positions of the words of all places, sorted."""
        return np.unique(np.concatenate([[], *(self.positions(place) for place in places)]).astype(np.int64))

    def edited(self, edits: Sequence[Edit]) -> Reader:
        """The same model with words replaced; a word stays one place even if its replacement is several."""
        if not edits:
            return self
        changed = [list(document.tokens) for document in self.documents]
        for document, word, text in edits:
            changed[document][word] = text
        pairs = zip(self.documents, changed, strict=True)
        documents = [replace(document, tokens=tuple(tokens)) for document, tokens in pairs]
        models, form = {self.name: (self.model, self.tokenizer)}, {"max_length": self.max_length}
        reader = self._kept(("edited", tuple(edits)), lambda: read_documents(documents, models, **form)[0])
        reader.ranked = self.ranked
        return reader

    def is_global(self, selection: Selection) -> np.ndarray:
        """bool (seq,), True = has global attention."""
        source = (selection.source,) if selection.source and selection.source_global else ()
        chosen = self.positions_of((*selection.extra_global, *source))
        return np.isin(np.arange(len(self.sequence.input_ids)), chosen)

    def hidden(self, selection: Selection) -> np.ndarray:
        """int64 (seq,), input ids with the mask token at all pieces of the hidden words."""
        ids = self.sequence.input_ids.copy()
        ids[self.positions_of(selection.masked)] = self.tokenizer.mask_token_id
        return ids

    def attention(self, selection: Selection) -> SourceAttention:
        """Attention from and to the source in all layers."""
        chosen = (selection.source, selection.source_global, selection.extra_global, selection.masked)
        return self._kept(
            ("attention", *chosen, selection.attention_cut),
            lambda: attend_to_source(
                self.model,
                self.hidden(selection),
                source=self.positions(selection.source),
                extra_global=self.is_global(selection),
                source_is_global=False,
            ),
            cut=selection.attention_cut,
        )

    def predictions(self, selection: Selection) -> tuple[Prediction, ...]:
        """The model's predictions for each hidden span, with all pieces of all of them masked."""
        if not selection.masked:
            return ()
        key = ("predictions", self.is_global(selection).tobytes(), selection.masked, selection.attention_cut)
        return self._kept(key, lambda: self._predict(selection), cut=selection.attention_cut)

    def _predict(self, selection: Selection) -> tuple[Prediction, ...]:
        ids, begins, spans = self.sequence.input_ids, np.diff(self.words, prepend=-2) != 0, []
        for place in selection.masked:
            positions = self.positions(place)
            spans.append(HiddenSpan(positions=positions, truth=ids[positions], begins=begins[positions]))
        form = {"is_global": self.is_global(selection), "words": self.word_pieces}
        guesses = guess_hidden(self.model, ids, spans, mask=self.tokenizer.mask_token_id, **form)
        return tuple(
            Prediction(
                span=place,
                truth_probability=guessed.truth_probability,
                top=tuple((self.tokenizer.decode(list(word)).strip(), share) for word, share in guessed.best),
                pieces=len(span.positions),
            )
            for place, span, guessed in zip(selection.masked, spans, guesses, strict=True)
        )

    @cached_property
    def word_pieces(self) -> WordPieces:
        """Which word pieces may stand where in a prediction."""
        return WordPieces(self.tokenizer)

    def _kept(self, key: tuple, run: Callable[[], Any], *, cut: Cut | None = None) -> Any:
        """The cached result for `key`, or else that of `run` under the cut, which is then cached."""
        if key not in self.runs:
            if len(self.runs) >= KEPT_RUNS:
                del self.runs[next(iter(self.runs))]
            with apart(self.model, self.tokenizer, cut):
                self.runs[key] = run()
        return self.runs[key]


def read_documents(
    documents: Sequence[CoreferenceDocument],
    models: dict[str, tuple[PreTrainedModel, PreTrainedTokenizerBase]],
    *,
    max_length: int,
) -> list[Reader]:
    """Pack the documents into one sequence for each model; runs no model. `models`: by display name."""
    firsts, readers = np.cumsum([0, *(len(document.tokens) for document in documents)]), []
    ranked = np.array([any(map(str.isalnum, word)) for document in documents for word in document.tokens])
    for name, (model, tokenizer) in models.items():
        encoded = [encode_document(document, tokenizer) for document in documents]
        sequence = document_sequence(
            encoded, special=from_tokenizer(tokenizer, plain=True), max_length=max_length
        )
        form = {"name": name, "model": model, "tokenizer": tokenizer}
        form |= {"documents": documents, "max_length": max_length}
        readers.append(Reader(**form, sequence=sequence, firsts=firsts, ranked=ranked))
    return readers


def panel_of(reader: Reader, selection: Selection) -> Panel:
    """Run the model, or use a cached run, and score every word. If words are edited or attention is cut, the
    panel also holds that of before."""
    before = None
    if selection.edits or selection.cut:
        before = panel_of(reader, replace(selection, edits=(), cut=""))
    return replace(_panel_of(reader.edited(selection.edits), replace(selection, edits=())), before=before)


def _panel_of(reader: Reader, selection: Selection) -> Panel:
    attention = reader.attention(selection)
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
    if selection.cut in ("documents", "layer"):
        reach &= reader.document_of_word == selection.source[0]
    read = ~np.isnan(scores)
    scores = np.where(read, scores, 1.0)  # words that did not fit: exp(0), no weight
    ranked = reader.ranked.copy()
    ranked[reader.words_at(selection.source)] = False
    groups, target_rank = np.where(ranked, reader.document_of_word, -1), None
    if selection.target:  # the rank of its mean score among the other words of its document
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
        predictions=reader.predictions(selection),
    )
