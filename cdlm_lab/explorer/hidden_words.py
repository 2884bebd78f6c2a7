"""What a masked language model predicts in place of words: whole words of any number of pieces (subword
tokens).

All pieces of a word are masked. Its probability is the product of those of its pieces, each over the whole
vocabulary, once those before it are filled in:

    p(w) = product over its pieces k of p(w_k | w_1 ... w_{k-1}, masks from k on)

`guess_hidden` knows how many pieces a hidden span has and which of them begin words, so that a name of three
pieces is never guessed as "es" or ",": a beam search from left to right keeps the `beams` best beginnings.

`fill_blank` does not know. A blank is read as one mask, then as two, and so on. At each step the most
probable piece is filled in, the others are predicted anew, and the best few are kept (Jiang et al. 2020,
"X-FACTR": by confidence), so "those before it" are those filled in before. Words of all lengths are compared
by these probabilities, which of each length sum to 1 at most, so of all lengths to more. Where those of the
words that are compared, the best few of each length, do, all are divided by their sum.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from cdlm_lab.encoders.source_attention import evaluating, logits_at, predicts
from cdlm_lab.examples.masking import continuing_pieces
from cdlm_lab.examples.tokens import tokenise

MOST_PIECES = 16  # maximum in a hidden span: each needs another forward pass
ROWS = 16  # texts per forward pass
_IN_A_WORD = re.compile(r"[\w'’\-\ufffd]+")  # \ufffd: byte-level BPE may split a letter
Beginning = tuple[tuple[int, ...], float]  # pieces and their log-probability


class WordPieces:
    """Which pieces of a tokenizer's vocabulary can begin a word, and which can continue one."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.tokenizer = tokenizer
        self._prefix = getattr(tokenizer.backend_tokenizer.model, "continuing_subword_prefix", None) or ""

    def is_glued(self, before: str) -> bool:
        """Whether the tokenizer joins a word directly after this text to the last piece of the text."""
        if self._prefix:
            return before[-1:].isalnum()
        if before:
            return not before[-1].isspace()
        return bool(self._sorts[0][tokenise(["a"], self.tokenizer)["input_ids"][0][0]])

    @cached_property
    def first(self) -> Mapping[bool, np.ndarray]:
        """Glued to what precedes it (as after a bracket in byte-level BPE) or not -> bool (ids,), True = a
        word may begin with the piece."""
        goes_on, allowed, letters = self._sorts
        return {False: allowed & letters & ~goes_on, True: allowed & letters & goes_on}

    @cached_property
    def later(self) -> np.ndarray:
        """bool (ids,), True = the piece may continue a word."""
        goes_on, allowed, _ = self._sorts
        return goes_on & allowed

    @cached_property
    def _sorts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """bool (ids,) each: continues the piece before it; may be in a word; has a letter or digit."""
        goes_on, special = continuing_pieces(self.tokenizer), {*self.tokenizer.added_tokens_decoder}
        decoded = (self.tokenizer.decode([number]).strip() for number in range(len(goes_on)))
        texts = [text.removeprefix(self._prefix) for text in decoded]
        allowed = [n not in special and bool(_IN_A_WORD.fullmatch(text)) for n, text in enumerate(texts)]
        return goes_on, np.array(allowed), np.array([any(map(str.isalnum, text)) for text in texts])


def _log_probabilities(
    model: PreTrainedModel, rows: Sequence[np.ndarray], places: np.ndarray, is_global: np.ndarray
) -> np.ndarray:
    """Log-probabilities of all pieces at `places` of texts of one length: float32 (rows, places, vocab)."""
    read = []
    with evaluating(model), torch.inference_mode():
        for start in range(0, len(rows), ROWS):
            ids = torch.from_numpy(np.stack(rows[start : start + ROWS]))
            logits = logits_at(model, ids, places, is_global)
            read.append(logits.float().log_softmax(-1).cpu().numpy())
    return np.concatenate(read)


# ---- hidden spans ----


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenSpan:
    """Pieces that are hidden together."""

    positions: np.ndarray  # int64 (pieces,), ascending
    truth: np.ndarray  # int64 (pieces,), ids of the true pieces
    begins: np.ndarray  # bool (pieces,), True = the piece begins a word


@dataclass(frozen=True, slots=True, kw_only=True)
class Guessed:
    """A model's predictions for a hidden span."""

    truth_probability: float
    best: tuple[tuple[tuple[int, ...], float], ...]  # (pieces, probability), most probable first


def guess_hidden(
    model: PreTrainedModel,
    input_ids: np.ndarray,
    spans: Sequence[HiddenSpan],
    *,
    is_global: np.ndarray,
    mask: int,
    words: WordPieces,
    beams: int = 5,
) -> list[Guessed]:
    """A language model's predictions for each span of a text (seq,) without padding, while all are hidden.
    `is_global`: bool (seq,); `mask`: id of the mask token; `words`: made from the tokenizer. ValueError: a
    model without language-model head, a span that is too long."""
    if not predicts(model):
        what = f"{type(model).__name__} has no language-model head to predict with"
        raise ValueError(f"{what}; use load_language_model")
    if (longest := max((len(span.positions) for span in spans), default=0)) > MOST_PIECES:
        what = f"the hidden words are {longest} pieces, at most {MOST_PIECES} can be guessed together"
        raise ValueError(f"{what}; hide fewer words at once")
    text = np.array(input_ids, dtype=np.int64)
    for span in spans:
        text[span.positions] = mask
    searches = [_Search(span, words, beams) for span in spans]
    for step in range(longest):
        going = [search for search in searches if step < len(search.span.positions)]
        rows: dict[bytes, np.ndarray] = {}  # in the first step all are the same text
        written = [{pieces: search.written(text, pieces) for pieces in search.beginnings} for search in going]
        for of_search in written:
            rows |= {row.tobytes(): row for row in of_search.values()}
        places = np.array([search.span.positions[step] for search in going])
        read = _log_probabilities(model, [*rows.values()], places, is_global)
        shares = dict(zip(rows, read, strict=True))
        for number, (search, of_search) in enumerate(zip(going, written, strict=True)):
            search.extend(step, {pieces: shares[row.tobytes()][number] for pieces, row in of_search.items()})
    return [search.result for search in searches]


class _Search:
    """The most probable beginnings of a span's words, and the true one, which is kept to the end."""

    def __init__(self, span: HiddenSpan, words: WordPieces, beams: int) -> None:
        self.span, self.beams, self.words = span, beams, words
        self.best: list[Beginning] = [((), 0.0)]
        self.truth: Beginning = ((), 0.0)

    @property
    def beginnings(self) -> list[tuple[int, ...]]:
        """All beginnings, including the true one, without duplicates."""
        return list(dict.fromkeys(pieces for pieces, _ in [*self.best, self.truth]))

    def written(self, text: np.ndarray, pieces: Sequence[int]) -> np.ndarray:
        """The text with the first pieces of the span filled in."""
        row = text.copy()
        row[self.span.positions[: len(pieces)]] = pieces
        return row

    def extend(self, step: int, shares: dict[tuple[int, ...], np.ndarray]) -> None:
        """Add one more piece; `shares`: log-probabilities (vocab,) after each beginning."""
        may = self.words.first[False] if self.span.begins[step] else self.words.later
        longer = []
        for pieces, so_far in self.best:
            of_next = np.where(may, shares[pieces][: len(may)], -np.inf)
            for piece in np.argsort(-of_next, kind="stable")[: self.beams].tolist():
                longer.append(((*pieces, piece), so_far + float(of_next[piece])))
        self.best = sorted(longer, key=lambda one: (-one[1], one[0]))[: self.beams]
        pieces, so_far = self.truth
        piece = int(self.span.truth[step])
        self.truth = (*pieces, piece), so_far + float(shares[pieces][piece])

    @property
    def result(self) -> Guessed:
        best = tuple((pieces, float(np.exp(value))) for pieces, value in self.best if np.isfinite(value))
        return Guessed(truth_probability=float(np.exp(self.truth[1])), best=best)


# ---- blanks of any length ----


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledWord:
    """A predicted word for a blank."""

    word: str
    probability: float  # those of all words that were compared for a blank sum to 1 at most
    pieces: int


def fill_blank(
    model: PreTrainedModel,
    words: WordPieces,
    input_ids: np.ndarray,
    place: int,
    *,
    glued: bool = False,
    globals_of: Callable[[np.ndarray], np.ndarray],
    pieces: int,
    top: int,
) -> list[FilledWord]:
    """The most probable words for a blank, best first, each spelling once.

    Args:
        model: a language model; it is not changed.
        input_ids: (seq,), with one mask for each blank.
        place: the position of the blank to be filled.
        glued: True = no space precedes the blank.
        globals_of: maps a mask of blanks, bool (seq,), to the global tokens, bool (seq,).
        pieces: the maximum number of pieces of a word.
        top: the maximum number of words.
    """
    best: dict[str, FilledWord] = {}
    for count in range(1, pieces + 1):
        ids = np.insert(input_ids, place, [input_ids[place]] * (count - 1))
        blank = np.arange(place, place + count)
        allowed = np.stack([words.first[glued], *[words.later] * (count - 1)])
        beams, is_global = [_Beam(0.0, ids, frozenset())], globals_of(ids == input_ids[place])
        for _ in range(count):
            scores = _log_probabilities(model, [beam.ids for beam in beams], blank, is_global)
            beams = _longer(beams, scores[..., : allowed.shape[1]], blank, allowed, most=top)
        for beam in beams:
            text, probability = words.tokenizer.decode(beam.ids[blank]).strip(), float(np.exp(beam.score))
            if text and (text not in best or best[text].probability < probability):
                best[text] = FilledWord(word=text, probability=probability, pieces=count)
    total = max(1.0, sum(one.probability for one in best.values()))
    ranked = sorted(best.values(), key=lambda one: (-one.probability, one.word))[:top]
    return [replace(one, probability=one.probability / total) for one in ranked]


class _Beam(NamedTuple):
    """A partly filled blank: log-probability, the sequence, and which of the blank's pieces are filled in."""

    score: float
    ids: np.ndarray
    filled: frozenset[int]


def _longer(
    beams: Sequence[_Beam], scores: np.ndarray, blank: np.ndarray, allowed: np.ndarray, *, most: int
) -> list[_Beam]:
    """Extend each beam at its most probable place by the most probable pieces, and return the best of all;
    ties go to the earlier beam and piece. `scores`: (beams, places, ids); `allowed`: bool (places, ids)."""
    longer: dict[bytes, _Beam] = {}
    for beam, of_beam in zip(beams, scores, strict=True):
        open_ = np.array([place not in beam.filled for place in range(len(blank))])
        possible = np.where(allowed & open_[:, None], of_beam, -np.inf)
        place = int(possible.max(axis=1).argmax())
        for piece in np.argsort(-possible[place], kind="stable")[:most]:
            if np.isfinite(possible[place, piece]):
                ids = beam.ids.copy()
                ids[blank[place]] = piece
                score = beam.score + float(possible[place, piece])
                made = _Beam(score, ids, beam.filled | {place})
                longer[ids.tobytes()] = max(longer.get(ids.tobytes(), made), made, key=lambda one: one.score)
    return sorted(longer.values(), key=lambda one: -one.score)[:most]
