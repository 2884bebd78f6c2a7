"""The ids of a tokenizer's special tokens, as far as building examples needs them.

`<doc-s>` and `</doc-s>` frame each document (CDLM section 2.2); `[CLS]` and `[SEP]` open and close the whole
sequence, under whatever name the tokenizer knows them (`<s>` and `</s>` for RoBERTa and Longformer).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

DOCUMENT_START = "<doc-s>"
DOCUMENT_END = "</doc-s>"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTokens:
    """Ids of the special tokens and the number of ids there are.

    Attributes:
        start: `<doc-s>`, before each document.
        end: `</doc-s>`, after each document.
        cls: first token of a sequence.
        sep: last token of a sequence.
        pad: fills a batch up.
        mask: what a model reads in place of a masked token.
        all_special: every id that is no text, the six above and others the tokenizer marks so, such as
            `[UNK]`. None of them is ever masked, and none is ever put in as a random replacement.
        vocabulary_size: ids are 0 to `vocabulary_size - 1`, special ones included.

    Raises:
        ValueError: one of the six is missing from `all_special`; an id is outside the vocabulary; no ordinary
            token is left.
    """

    start: int
    end: int
    cls: int
    sep: int
    pad: int
    mask: int
    all_special: frozenset[int]
    vocabulary_size: int

    def __post_init__(self) -> None:
        for name in ("start", "end", "cls", "sep", "pad", "mask"):
            if getattr(self, name) not in self.all_special:
                raise ValueError(
                    f"{name} ({getattr(self, name)}) is not among all_special {sorted(self.all_special)}"
                )
        if outside := sorted(i for i in self.all_special if not 0 <= i < self.vocabulary_size):
            raise ValueError(
                f"special token id {outside[0]} is outside the vocabulary of {self.vocabulary_size} ids"
            )
        if len(self.all_special) == self.vocabulary_size:
            raise ValueError(
                f"all {self.vocabulary_size} ids of the vocabulary are special: no text can be written"
            )

    @property
    def framing(self) -> int:
        """Special tokens a sequence has however many documents are in it: `[CLS]` and `[SEP]`."""
        return 2

    @property
    def per_document(self) -> int:
        """Special tokens each document costs: `<doc-s>` and `</doc-s>`."""
        return 2

    def is_special(self, input_ids: np.ndarray) -> np.ndarray:
        """Bool, the shape of `input_ids`: True = the id is no text."""
        special = _ascending(self.all_special)
        # Less than half of what np.isin takes, which examples would spend a tenth of their time on.
        return special.take(special.searchsorted(input_ids), mode="clip") == input_ids

    def random_ordinary(self, count: int, *, generator: np.random.Generator) -> np.ndarray:
        """Draw ids uniformly from those that are not special; int64 (count,)."""
        special = _ascending(self.all_special)
        drawn = generator.integers(self.vocabulary_size - len(special), size=count)
        # The n-th ordinary id is n plus the number of special ids before it.
        return drawn + np.searchsorted(special - np.arange(len(special)), drawn, side="right")


@cache
def _ascending(ids: frozenset[int]) -> np.ndarray:
    return np.array(sorted(ids), dtype=np.int64)


def from_tokenizer(tokenizer: PreTrainedTokenizerBase) -> SpecialTokens:
    """Read the ids off a tokenizer that has `<doc-s>` and `</doc-s>` already.

    Raises:
        ValueError: the tokenizer lacks one of the six tokens; the message names it.
    """
    vocabulary = tokenizer.get_vocab()
    ids = {
        "start": vocabulary.get(DOCUMENT_START),
        "end": vocabulary.get(DOCUMENT_END),
        "cls": tokenizer.cls_token_id,
        "sep": tokenizer.sep_token_id,
        "pad": tokenizer.pad_token_id,
        "mask": tokenizer.mask_token_id,
    }
    wording = {"start": DOCUMENT_START, "end": DOCUMENT_END}
    for name, number in ids.items():
        if number is None:
            raise ValueError(
                f"the tokenizer {tokenizer.name_or_path!r} has no {wording.get(name, name + ' token')}: "
                "load it with cdlm_lab.models.encoder.load_tokenizer, which adds what is missing"
            )
    marked = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    return SpecialTokens(
        **ids,
        all_special=frozenset({*ids.values(), *tokenizer.all_special_ids, *marked}),
        vocabulary_size=len(tokenizer),
    )
