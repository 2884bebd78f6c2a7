"""Masked language modelling as in BERT (Devlin et al., 2019, appendix A.1; CDLM section 2.2 refers to it).

Each token that may be masked is selected independently with probability 15%. Of those selected, 80% are
replaced by `[MASK]`, 10% by a random token and 10% stay as they are; the model must predict all of them. With
whole word masking ("Whole Word Masking" in the Doc-ARC paper's Table 9) words are selected, and all subword
tokens of a word must be predicted. Which tokens continue a word shows in their form: `##` in WordPiece, no
white space in front in byte-level BPE, where "mayor," is thus one word. The replacement is drawn for each
token by itself.

Choices where the papers are silent, or where the released code does something else:
- random replacements are never special tokens, and pronouns are masked like any other word;
- whole words are selected independently (Google's code draws until 15% of the tokens are reached);
- an example in which no token happens to be selected gets one masked token or word, so its loss is defined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tokenizers import decoders, models

from cdlm_lab.examples.tokens import SpecialTokens

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


NOT_MASKED = -100  # the label that PyTorch's cross entropy ignores
STARTS, CONTINUES, NO_WORD = range(3)  # the role of a subword token in its word
REPLACED_BY_MASK = 0.8
REPLACED_BY_RANDOM = 0.1
_WHITE_SPACE = "\u0120\u0109\u010a\u010b\u010c\u010d"  # space, tab and line ends in byte-level BPE


def mask_tokens(
    input_ids: np.ndarray,
    eligible: np.ndarray,
    *,
    generator: np.random.Generator,
    special: SpecialTokens,
    probability: float = 0.15,
    continues: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Select the tokens to be predicted and replace most of them: returns the ids that the model reads, and
    labels, the original id of selected tokens and -100 elsewhere, both int64 (seq,). If any token is
    eligible, at least one is selected.

    Args:
        eligible: bool (seq,), True = may be selected. Special tokens never are.
        probability: that an eligible token, or a word, is selected.
        continues: from `continuing_pieces`, to select whole words; None selects tokens. Tokens of a selected
            word that are not eligible are not masked.
    """
    if input_ids.shape != eligible.shape or input_ids.ndim != 1:
        shapes = f"input_ids {input_ids.shape} and eligible {eligible.shape}"
        raise ValueError(f"{shapes} must have the same shape (seq,)")
    if eligible.dtype != bool:
        raise ValueError(f"eligible is {eligible.dtype}; it must be bool, True = may be masked")
    check_probability(probability)
    may_be_drawn = eligible & ~special.is_special(input_ids)
    unit = np.arange(len(input_ids)) if continues is None else words_of(input_ids, continues, special=special)
    drawn = may_be_drawn & (generator.random(len(input_ids)) < probability)[unit]
    if not drawn.any() and may_be_drawn.any():
        drawn = may_be_drawn & (unit == generator.choice(np.unique(unit[may_be_drawn])))
    fate = generator.random(len(input_ids))
    by_mask = drawn & (fate < REPLACED_BY_MASK)
    by_random = drawn & ~by_mask & (fate < REPLACED_BY_MASK + REPLACED_BY_RANDOM)
    masked_ids = input_ids.astype(np.int64)
    masked_ids[by_mask] = special.mask
    masked_ids[by_random] = special.random_ordinary(int(by_random.sum()), generator=generator)
    return masked_ids, np.where(drawn, input_ids, NOT_MASKED).astype(np.int64)


def check_probability(probability: float) -> None:
    """Raise ValueError unless `probability` is in (0, 1]."""
    if not 0 < probability <= 1:
        what = f"the masking probability is {probability}"
        raise ValueError(f"{what}; it must be above 0 and at most 1 (BERT: 0.15)")


def continuing_pieces(tokenizer: PreTrainedTokenizerFast) -> np.ndarray:
    """Bool (ids,), True = the subword token with that id continues the word of the token before it; values
    for special tokens mean nothing. ValueError if the tokenizer is neither WordPiece nor byte-level BPE."""
    backend, vocabulary = tokenizer.backend_tokenizer, tokenizer.get_vocab()
    continues = np.zeros(1 + max(vocabulary.values()), dtype=bool)
    if isinstance(backend.model, models.WordPiece):
        prefix = backend.model.continuing_subword_prefix
        inside = [number for piece, number in vocabulary.items() if piece.startswith(prefix)]
    elif isinstance(backend.decoder, decoders.ByteLevel):
        inside = [number for piece, number in vocabulary.items() if piece[0] not in _WHITE_SPACE]
    else:
        what = f"the tokenizer {tokenizer.name_or_path!r} is neither WordPiece nor byte-level BPE"
        raise ValueError(f"{what}: which pieces are of one word is not known; draw tokens")
    continues[inside] = True
    return continues


def word_pieces(tokenizer: PreTrainedTokenizerFast) -> np.ndarray:
    """The role of each subword token in a word, int8 (ids,): STARTS, CONTINUES, or NO_WORD if it has neither
    letter nor digit. ValueError if the tokenizer is neither WordPiece nor byte-level BPE."""
    kinds, decoder = continuing_pieces(tokenizer).astype(np.int8), tokenizer.backend_tokenizer.decoder
    for piece, number in tokenizer.get_vocab().items():
        if not any(sign.isalnum() for sign in decoder.decode([piece])):
            kinds[number] = NO_WORD
    return kinds


def words_of(input_ids: np.ndarray, continues: np.ndarray, *, special: SpecialTokens) -> np.ndarray:
    """The number of each token's word, int64 (seq,), from 0; a special token is a word by itself, and the
    next token starts a new word, whatever `continuing_pieces` says."""
    return numbers_of_words(continues[input_ids], special.is_special(input_ids))


def numbers_of_words(goes_on: np.ndarray, alone: np.ndarray) -> np.ndarray:
    """The number of each token's word, int64 (seq,), from 0. `goes_on`: True = continues the word before it;
    `alone`: True = a word by itself, which the next token does not continue."""
    goes_on = goes_on & ~alone
    goes_on[1:] &= ~alone[:-1]
    goes_on[:1] = False
    return np.cumsum(~goes_on) - 1
