"""Tokenizers with the document separators `<doc-s>` and `</doc-s>` among their special tokens."""

from __future__ import annotations

import json
import os
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerFast

from cdlm_lab.examples.special_tokens import DOCUMENT_END, DOCUMENT_START
from cdlm_lab.models.checkpoint import AGAIN, CheckpointError, first_line, minilm_folder, named_faults
from cdlm_lab.models.model_folder import TOKENIZER_FILES
from cdlm_lab.models.shipped import shipped_folder
from cdlm_lab.models.tiny import TinySizes, tiny_tokenizer

DOCUMENT_SEPARATORS = (DOCUMENT_START, DOCUMENT_END)
NEEDED = ("cls_token", "sep_token", "pad_token", "mask_token")


def load_tokenizer(
    name_or_path: str | os.PathLike[str], *, sizes: TinySizes | None = None
) -> PreTrainedTokenizerFast:
    """The tokenizer of an encoder; the document separators are added where it does not have them.

    `name_or_path`: as for `load_language_model`. `sizes`: of `tiny`, else unused.

    Raises CheckpointError when there is no tokenizer, its files are damaged, it is not a fast one (facts and
    mentions need character offsets), it has no CLS, SEP, padding or mask token, or two words with one id.
    """
    tokenizer = read_tokenizer(name_or_path, sizes=sizes)
    add_separators(tokenizer)
    return tokenizer


def read_tokenizer(
    name_or_path: str | os.PathLike[str], *, sizes: TinySizes | None = None
) -> PreTrainedTokenizerFast:
    """The tokenizer as it is saved; arguments and errors as of `load_tokenizer`."""
    name = os.fspath(name_or_path)
    if name == "tiny":
        return tiny_tokenizer(sizes=sizes)
    with named_faults(name, "its tokenizer"):
        tokenizer = _from_files(name)
        for token in NEEDED:
            if not getattr(tokenizer, token):
                raise CheckpointError(
                    f"{name}: its tokenizer has no {token}, which a masked language model needs"
                )
        _check_ids(tokenizer.get_vocab(), name)
        if not tokenizer.backend_tokenizer.encode("a \u2603", add_special_tokens=False).ids:
            raise CheckpointError(f"{name}: its tokenizer finds no words in a text; {AGAIN}")
    return tokenizer


def _check_ids(vocabulary: dict[str, int], name: str) -> None:
    """Raise CheckpointError if two words have one id, or would have once the separators are added: they get
    the ids after the last one, as many as there are words."""
    words: dict[int, str] = {}
    for word, number in vocabulary.items():
        if (other := words.setdefault(number, word)) != word:
            raise CheckpointError(
                f"{name}: its tokenizer has one id, {number}, for {other!a} and {word!a}; {AGAIN}"
            )
    if max(words) >= len(words) and not set(DOCUMENT_SEPARATORS) <= set(vocabulary):
        raise CheckpointError(
            f"{name}: its tokenizer has {len(words)} words with ids up to {max(words)}, so that new ones "
            f"would share the ids of others; {AGAIN}"
        )


def add_separators(tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """Make the document separators special tokens of `tokenizer`, in place; returns the ids it did not
    have."""
    known = tokenizer.get_vocab()
    tokenizer.add_special_tokens(
        {"extra_special_tokens": list(DOCUMENT_SEPARATORS)}, replace_extra_special_tokens=False
    )
    return [tokenizer.convert_tokens_to_ids(token) for token in DOCUMENT_SEPARATORS if token not in known]


def _check_added(file: Path, tokenizer: PreTrainedTokenizerFast, name: str) -> None:
    """Raise CheckpointError if a word that tokenizer.json adds is not read with its id."""
    for word in json.loads(file.read_text(encoding="utf-8"))["added_tokens"] if file.is_file() else ():
        if tokenizer.get_vocab().get(word["content"]) != word["id"]:
            raise CheckpointError(
                f"{name}: {file.name} adds {word['content']!a} with the id {word['id']}, but it is read with "
                f"another; {AGAIN}"
            )


def _from_files(name: str) -> PreTrainedTokenizerFast:
    source = minilm_folder() if name == "minilm" else shipped_folder(name) or Path(name)
    if source.is_dir() and not any((source / file).is_file() for file in TOKENIZER_FILES):
        raise CheckpointError(f"{name}: no tokenizer.json; save the tokenizer there with its save_pretrained")
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(source), use_fast=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        if source.is_dir():
            raise
        raise CheckpointError(
            f'{name}: not "tiny" or "minilm", and neither a folder with a tokenizer nor a hub model within '
            f"reach ({first_line(error)})"
        ) from error
    if not tokenizer.is_fast:
        raise CheckpointError(
            f"{name}: its tokenizer has no fast version (tokenizer.json), which character offsets need"
        )
    _check_added(source / "tokenizer.json", tokenizer, name)
    # Sentence encoders such as MiniLM come with a length to cut and to pad to; we pack documents ourselves.
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer
