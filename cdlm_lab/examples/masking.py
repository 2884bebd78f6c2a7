"""Masked language modelling as in BERT (Devlin et al., 2019, appendix A.1; CDLM section 2.2 refers to it).

Each token that may be masked is drawn by itself with probability 15%. Of those drawn, 80% are replaced by
`[MASK]`, 10% by a random token and 10% stay as they are; the model must give all of them back.

Choices where the papers are silent, or where the released code does something else:
- random replacements are never special tokens (the released code draws from the whole vocabulary, so
  `<doc-s>` or padding can appear in the middle of a text);
- pronouns are masked like any other word (the released code exempts a list of them from global attention; the
  paper does not mention that);
- an example in which chance drew nothing gets one masked token, so that its loss is defined.
"""

from __future__ import annotations

import numpy as np

from .special_tokens import SpecialTokens

NOT_MASKED = -100  # the label that PyTorch's cross entropy ignores
REPLACED_BY_MASK = 0.8
REPLACED_BY_RANDOM = 0.1


def mask_tokens(
    input_ids: np.ndarray,
    eligible: np.ndarray,
    *,
    generator: np.random.Generator,
    special: SpecialTokens,
    probability: float = 0.15,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the tokens to be predicted and hide most of them.

    Args:
        input_ids: int (seq,), left unchanged.
        eligible: bool (seq,), True = may be drawn. Special tokens are never drawn, whatever it says.
        generator: the source of chance.
        special: which ids are special, and which one is `[MASK]`.
        probability: of each eligible token to be drawn.

    Returns:
        `(masked_ids, labels)`, both int64 (seq,): what the model reads, and the original id where a token was
        drawn, `-100` elsewhere. If nothing was drawn although something is eligible, one eligible token is;
        if nothing is eligible, nothing is masked.

    Raises:
        ValueError: shapes that differ; `eligible` that is not bool; a probability outside (0, 1].
    """
    if input_ids.shape != eligible.shape or input_ids.ndim != 1:
        raise ValueError(
            f"input_ids {input_ids.shape} and eligible {eligible.shape} must have the same shape (seq,)"
        )
    if eligible.dtype != bool:
        raise ValueError(f"eligible is {eligible.dtype}; it must be bool, True = may be masked")
    check_probability(probability)
    may_be_drawn = eligible & ~special.is_special(input_ids)
    drawn = may_be_drawn & (generator.random(len(input_ids)) < probability)
    if not drawn.any() and may_be_drawn.any():
        drawn[generator.choice(np.flatnonzero(may_be_drawn))] = True
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
        raise ValueError(
            f"the masking probability is {probability}; it must be above 0 and at most 1 (BERT: 0.15)"
        )
