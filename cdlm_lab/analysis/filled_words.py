"""Whole words for the blanks of texts, by a masked language model: words of one piece and of several.

A blank is read as one mask, then as two, and so on. Each time the piece that is surest is written in, the
others are predicted anew, and the best few go on (Jiang et al. 2020, "X-FACTR": by confidence). So the
probability of a word is the product of those of its pieces, each among the whole vocabulary, given those
before it; words of all lengths are compared by it, though their probabilities need not sum to 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from cdlm_lab.analysis.source_attention import evaluating
from cdlm_lab.examples.masking import continuing_pieces
from cdlm_lab.examples.tokens import tokenise

_IN_A_WORD = re.compile(r"[\w'’\-\ufffd]+")  # \ufffd: part of a letter, of which byte-level BPE makes pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledWord:
    """A word for a blank."""

    word: str
    probability: float
    pieces: int


class WordPieces:
    """Which pieces of a tokenizer's vocabulary begin a word, and which go on with one."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.tokenizer = tokenizer
        self._prefix = getattr(tokenizer.backend_tokenizer.model, "continuing_subword_prefix", None) or ""

    def is_glued(self, before: str) -> bool:
        """Whether a word behind this text goes on with its last piece, as the tokenizer has it."""
        if self._prefix:
            return before[-1:].isalnum()
        if before:
            return not before[-1].isspace()
        return bool(self._sorts[0][tokenise(["a"], self.tokenizer)["input_ids"][0][0]])

    @cached_property
    def first(self) -> Mapping[bool, np.ndarray]:
        """bool (ids,), True = a word may begin so. By whether it is glued to what stands before it, as behind
        a bracket in byte-level BPE."""
        goes_on, allowed, letters = self._sorts
        return {False: allowed & letters & ~goes_on, True: allowed & letters & goes_on}

    @cached_property
    def later(self) -> np.ndarray:
        """bool (ids,), True = a word may go on so."""
        goes_on, allowed, _ = self._sorts
        return goes_on & allowed

    @cached_property
    def _sorts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """bool (ids,) each: goes on with the piece before it; may be in a word; has a letter or digit."""
        goes_on, special = continuing_pieces(self.tokenizer), {*self.tokenizer.added_tokens_decoder}
        decoded = (self.tokenizer.decode([number]).strip() for number in range(len(goes_on)))
        texts = [text.removeprefix(self._prefix) for text in decoded]
        allowed = [n not in special and bool(_IN_A_WORD.fullmatch(text)) for n, text in enumerate(texts)]
        return goes_on, np.array(allowed), np.array([any(map(str.isalnum, text)) for text in texts])


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
    """The likeliest words for a blank, likeliest first, at most one of each spelling.

    Args:
        model: a language model; it stays as it is.
        input_ids: (seq,), with one mask for each blank.
        place: the position of the blank to be filled.
        glued: True = no space stands before it.
        globals_of: from bool (seq,), True = of a blank, to the global tokens, bool (seq,).
        pieces: the most that a word may have.
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
    return sorted(best.values(), key=lambda one: (-one.probability, one.word))[:top]


class _Beam(NamedTuple):
    """A blank as far as it is filled: log-probability, the sequence, and which of its pieces are there."""

    score: float
    ids: np.ndarray
    filled: frozenset[int]


def _log_probabilities(
    model: PreTrainedModel, rows: Sequence[np.ndarray], places: np.ndarray, is_global: np.ndarray
) -> np.ndarray:
    """float64 (rows, places, vocab)."""
    ids = torch.from_numpy(np.stack(rows)).to(model.device)
    global_mask = torch.from_numpy(is_global).long().to(model.device).expand_as(ids)
    with evaluating(model), torch.inference_mode():
        states = model.base_model(ids, global_attention_mask=global_mask).last_hidden_state[:, places]
        return model.lm_head(states).double().log_softmax(-1).cpu().numpy()


def _longer(
    beams: Sequence[_Beam], scores: np.ndarray, blank: np.ndarray, allowed: np.ndarray, *, most: int
) -> list[_Beam]:
    """Of each beam its surest piece in the likeliest ways, and of all these the best; ties go to the beam and
    to the piece that comes first. `scores`: (beams, places, ids); `allowed`: bool (places, ids)."""
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
