"""The record behind the preview of a packed example: arrays and strings, held to one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cdlm_lab.widgets.token_text import MarkedTokens


@dataclass(frozen=True, kw_only=True)
class DocumentLoss:
    """How much of one document the packing kept.

    Attributes:
        title: headline or id of the document; untrusted text.
        kept: text tokens of the document in the example, special tokens not counted.
        cut: text tokens left out.
        reason: why they were left out, for people; empty if nothing was.

    Raises:
        ValueError: a negative number of tokens.
    """

    title: str
    kept: int
    cut: int = 0
    reason: str = ""

    def __post_init__(self) -> None:
        if self.kept < 0 or self.cut < 0:
            raise ValueError(f"tokens kept and cut must not be negative, got {self.kept} and {self.cut}")


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedSequence:
    """One packed training example, token by token, with what is worth knowing about it.

    Attributes:
        tokens: the text of every token of the sequence (untrusted), joining signs (`##`, a leading space)
            taken off.
        document: int (seq,), index into `documents`; -1 = belongs to none (`[CLS]`, `[SEP]`).
        masked: bool (seq,), True = the model must give the token back.
        replacement: for each masked token what the model reads instead: `mask_token`, another word, or the
            token itself (written the same way as in `tokens`); for the others None or the token itself.
        global_: bool (seq,), True = the token attends to all and all attend to it.
        special: bool (seq,), True = a mark of the tokenizer, not text.
        documents: one record for each document, also for those of which nothing was kept.
        cross_document: bool (seq,), True = part of a fact that another packed document states too; None = not
            known.
        starts_word: bool (seq,), True = a space stands before the token; None = before every token.
        mask_token: the text of the mask token.
        title: a line above everything, such as the variant and the corpus.
        memory_bytes: estimated peak memory of one training step; None = not shown.
        step_seconds: estimated time of one training step; None = not shown.

    Raises:
        ValueError: a field whose length is not that of `tokens`; an array that is not bool; a document number
            outside `documents`; a masked token without replacement; a replacement where nothing is masked; a
            `kept` that is not the number of the document's text tokens in the sequence.
    """

    tokens: Sequence[str]
    document: np.ndarray
    masked: np.ndarray
    replacement: Sequence[str | None]
    global_: np.ndarray
    special: np.ndarray
    documents: Sequence[DocumentLoss]
    cross_document: np.ndarray | None = None
    starts_word: np.ndarray | None = None
    mask_token: str = "<mask>"
    title: str = ""
    memory_bytes: float | None = None
    step_seconds: float | None = None

    def __post_init__(self) -> None:
        length = len(self.tokens)
        for name, missing in (("cross_document", False), ("starts_word", True)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.full(length, missing))
        for name in ("masked", "global_", "special", "cross_document", "starts_word"):
            object.__setattr__(self, name, _flags(name, getattr(self, name), length))
        document = np.asarray(self.document)
        if document.shape != (length,):
            raise ValueError(f"document has shape {document.shape}, but there are {length} tokens")
        object.__setattr__(self, "document", document.astype(np.int64))
        self._check_documents()
        self._check_replacements()

    def _check_documents(self) -> None:
        if outside := sorted({int(n) for n in self.document if not -1 <= n < len(self.documents)}):
            raise ValueError(
                f"document number {outside[0]} is not one of the {len(self.documents)} documents or -1"
            )
        for number, loss in enumerate(self.documents):
            present = int(((self.document == number) & ~self.special).sum())
            if loss.kept != present:
                raise ValueError(
                    f"documents[{number}].kept is {loss.kept}, "
                    f"but {present} text tokens of it are in the sequence"
                )

    def _check_replacements(self) -> None:
        if len(self.replacement) != len(self.tokens):
            raise ValueError(
                f"replacement has {len(self.replacement)} entries, but there are {len(self.tokens)} tokens"
            )
        for i, (masked, instead) in enumerate(zip(self.masked, self.replacement, strict=True)):
            if masked and instead is None:
                raise ValueError(
                    f"token {i} is masked, but replacement[{i}] is None: say what the model reads there"
                )
            if not masked and instead not in (None, self.tokens[i]):
                raise ValueError(
                    f"token {i} is not masked, but replacement[{i}] is another text than the token"
                )

    @property
    def marked(self) -> MarkedTokens:
        """The token-wise fields alone, as `token_text` takes them."""
        return MarkedTokens(
            texts=self.tokens,
            starts_word=self.starts_word,
            masked=self.masked,
            replacement=self.replacement,
            mask_token=self.mask_token,
            global_=self.global_,
            special=self.special,
            cross_document=self.cross_document,
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.tokens)} tokens, {len(self.documents)} documents, "
            f"{int(self.masked.sum())} masked, {int(self.global_.sum())} global)"
        )


def _flags(name: str, values: object, length: int) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype != np.bool_ and length:
        raise ValueError(f"{name} must be bool (True = the token has the property), got {array.dtype}")
    if array.shape != (length,):
        raise ValueError(f"{name} has shape {array.shape}, but there are {length} tokens")
    return array.astype(bool)
