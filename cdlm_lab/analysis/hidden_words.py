"""What a masked language model puts in the place of hidden words: whole words, however many pieces they are.

All pieces of a hidden span are masks. A word has the probability of its first piece, times that of its second
once the first stands there, and so on:

    p(w) = product over its pieces k of p(w_k | w_1 ... w_{k-1}, masks from k on)

The best words are searched piece by piece, the `beams` likeliest beginnings being kept. They have as many
pieces as the hidden span and begin words where it does, so that a name of three pieces is never guessed as
"es" or ",".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from cdlm_lab.analysis.filled_words import WordPieces
from cdlm_lab.analysis.source_attention import evaluating, hidden_states

MOST_PIECES = 16  # of a hidden span: each is another run
ROWS = 16  # texts that are read at once
Beginning = tuple[tuple[int, ...], float]  # pieces and the logarithm of their probability


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenSpan:
    """Pieces that are hidden together."""

    positions: np.ndarray  # int64 (pieces,), ascending
    truth: np.ndarray  # int64 (pieces,), what really stands there
    begins: np.ndarray  # bool (pieces,), True = the piece begins a word


@dataclass(frozen=True, slots=True, kw_only=True)
class Guessed:
    """What a model makes of a hidden span."""

    truth_probability: float
    best: tuple[tuple[tuple[int, ...], float], ...]  # (pieces, probability), likeliest first


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
    """What a language model makes of each span of a text (seq,) without padding, while all are hidden.
    `is_global`: bool (seq,); `mask`: the id of the mask; `words`: of the tokenizer. ValueError: a model
    without head, a span that is too long."""
    if not hasattr(model, "lm_head"):
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
        rows: dict[bytes, np.ndarray] = {}  # before the first step all read the same
        written = [{pieces: search.written(text, pieces) for pieces in search.beginnings} for search in going]
        for of_search in written:
            rows |= {row.tobytes(): row for row in of_search.values()}
        places = np.array([search.span.positions[step] for search in going])
        shares = dict(zip(rows, _log_shares(model, list(rows.values()), places, is_global), strict=True))
        for number, (search, of_search) in enumerate(zip(going, written, strict=True)):
            search.extend(step, {pieces: shares[row.tobytes()][number] for pieces, row in of_search.items()})
    return [search.result for search in searches]


class _Search:
    """The likeliest beginnings of a span's words, and the true one, which is kept to the end."""

    def __init__(self, span: HiddenSpan, words: WordPieces, beams: int) -> None:
        self.span, self.beams, self.words = span, beams, words
        self.best: list[Beginning] = [((), 0.0)]
        self.truth: Beginning = ((), 0.0)

    @property
    def beginnings(self) -> list[tuple[int, ...]]:
        """Each once."""
        return list(dict.fromkeys(pieces for pieces, _ in [*self.best, self.truth]))

    def written(self, text: np.ndarray, pieces: Sequence[int]) -> np.ndarray:
        """The text with the first pieces of the span in it."""
        row = text.copy()
        row[self.span.positions[: len(pieces)]] = pieces
        return row

    def extend(self, step: int, shares: dict[tuple[int, ...], np.ndarray]) -> None:
        """Take one more piece; `shares`: log probabilities (vocab,) after each beginning."""
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


def _log_shares(
    model: PreTrainedModel, rows: Sequence[np.ndarray], places: np.ndarray, is_global: np.ndarray
) -> list[np.ndarray]:
    """Log probabilities of every piece at each place of each text: (places, vocab) float32 of a text."""
    shares: list[np.ndarray] = []
    with evaluating(model), torch.inference_mode():
        for start in range(0, len(rows), ROWS):
            ids = torch.from_numpy(np.stack(rows[start : start + ROWS]))
            everywhere = np.ones(ids.shape, dtype=bool)
            states: Tensor = hidden_states(model, ids, everywhere, np.tile(is_global, (len(ids), 1)))
            logits = model.lm_head(states[:, places]).float()  # (rows, places, vocab)
            shares.extend(logits.log_softmax(-1).cpu().numpy())
    return shares
