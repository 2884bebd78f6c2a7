"""A question or claim and several candidates in one sequence, for a model that reads them jointly (Di Liello
et al. 2022, "MSPP", section 3.2), here with k = 2:

    [CLS] who won ? [SEP] Ada won the race . [SEP] Bo came second .

Each sentence s_0 ... s_k is cut to L tokens, the front token included: "the [CLS]/[SEP] token in front of
each sentence", whose output is the sentence's embedding E_i. Token types are 0 ... k.

The paper pads each sentence to L. Padding is masked, so nothing is computed from it, and none is written
here. What it leaves is the positions: `strided`, the paper's 0 ... L(k + 1) - 1, has token j of sentence i at
i * L + j, as if the padding were there; `compact` numbers the tokens 0, 1, 2, ... without gaps, as RoBERTa
does in the released code, since it skips padding. That code also ends each sentence with `</s>`, starts each
with `<s>`, and keeps `<s></s>` for an absent candidate, where this leaves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .special_tokens import SpecialTokens

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

POSITIONS = ("strided", "compact")
ABSENT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class JointLayout:
    """How many sentences stand in a sequence, and where.

    Attributes:
        sentences: k + 1, the question or claim and k candidates.
        length: L, most tokens of a sentence, the one in front of it included.
        positions: `strided` or `compact`.

    Raises:
        ValueError: fewer than 2 sentences, a length below 2, unknown positions.
    """

    sentences: int
    length: int = 64
    positions: str = "strided"

    def __post_init__(self) -> None:
        if self.sentences < 2:
            raise ValueError(f"sentences is {self.sentences}; a question and a candidate are 2")
        if self.length < 2:
            raise ValueError(f"length is {self.length}; the front token and one of text need 2")
        if self.positions not in POSITIONS:
            raise ValueError(f"unknown positions {self.positions!r}; choose one of {', '.join(POSITIONS)}")

    @property
    def candidates(self) -> int:
        """k, the most candidates of a sequence."""
        return self.sentences - 1

    @property
    def tokens(self) -> int:
        """L(k + 1), the most tokens of a sequence; positions are below it."""
        return self.sentences * self.length


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointSequence:
    """One sequence.

    Attributes:
        input_ids: int64 (tokens,).
        token_type_ids: int64 (tokens,), number of the sentence, 0 ... k.
        position_ids: int64 (tokens,), from 0.
        starts: int64 (k + 1,), where the front token of each sentence is; -1 = absent.
        cut: int64 (k + 1,), how many pieces of each sentence were left out.
    """

    input_ids: np.ndarray
    token_type_ids: np.ndarray
    position_ids: np.ndarray
    starts: np.ndarray
    cut: np.ndarray

    @property
    def sentence(self) -> np.ndarray:
        """int64 (tokens,), which sentence each token is of, front tokens too; the same as its type."""
        return self.token_type_ids


def joint_sequence(
    pieces: Sequence[Sequence[int] | np.ndarray | None], *, layout: JointLayout, special: SpecialTokens
) -> JointSequence:
    """Write k + 1 sentences into one sequence.

    Args:
        pieces: ids of each sentence without special tokens, as of `encode_pieces`; the question or claim,
            then k candidates. None = absent: it leaves no token, and the others keep their numbers. A
            sentence without pieces is there, with its front token alone.
        layout: how many sentences, and where they stand.
        special: `[CLS]` in front of sentence 0, `[SEP]` in front of the others.

    Raises:
        ValueError: another number of sentences than the layout's; no sentence 0.
    """
    if len(pieces) != layout.sentences:
        raise ValueError(f"there are {len(pieces)} sentences; the layout has {layout.sentences}")
    if pieces[0] is None:
        raise ValueError("sentence 0, the question or claim, is absent; only candidates may be")
    room = layout.length - 1
    fronts = [special.cls, *[special.sep] * layout.candidates]
    texts = [
        np.array([] if one is None else [front, *one[:room]], dtype=np.int64)
        for front, one in zip(fronts, pieces, strict=True)
    ]
    lengths = np.array([len(text) for text in texts])  # (k + 1,)
    starts = lengths.cumsum() - lengths
    sentence = np.repeat(np.arange(layout.sentences), lengths)
    positions = np.arange(lengths.sum())
    if layout.positions == "strided":
        positions += (sentence * layout.length) - starts[sentence]
    return JointSequence(
        input_ids=np.concatenate(texts),
        token_type_ids=sentence,
        position_ids=positions,
        starts=np.where(lengths > 0, starts, ABSENT),
        cut=np.array([0 if one is None else max(0, len(one) - room) for one in pieces]),
    )


def encode_pieces(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[np.ndarray]:
    """Tokenise texts, each as if a space stood before it, without special tokens.

    Returns:
        int32 (pieces,) of each text; empty for one of white space, or of which nothing is left, as a lone
        control character.
    """
    if not texts:
        return []  # tokenizers refuse an empty list
    encoded = tokenizer(
        # With the space a byte-level BPE reads the first word as within a text, whatever its settings.
        [f" {text.strip()}" if text.strip() else "" for text in texts],
        add_special_tokens=False,
        split_special_tokens=True,  # a "[SEP]" or "</s>" that somebody wrote in a text is text
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,  # what is too long is cut in `joint_sequence`
    )["input_ids"]
    return [np.array(ids, dtype=np.int32) for ids in encoded]
