"""Sentences as numbers of words: 0 is filling, 1 a word that is not known, words count from 2.

The pieces of a sentence are words, in lower case and with punctuation apart ("Don't go!" is don ' t go !), or
the subwords of a tokenizer, whose ids move up by two.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cdlm_lab.data.files import DataError, read_text, replaced_file

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FILLING, UNKNOWN, FIRST_WORD = 0, 1, 2
VOCABULARY_FILE = "vocabulary.json"
_PIECE = re.compile(r"\w+|[^\w\s]")
_REMEDY = "copy the folder again, or save the vocabulary anew"


def pieces_of(sentence: str) -> list[str]:
    """Runs of letters and digits and all other characters but white space, in lower case.

    Example:
        >>> pieces_of("It's $3.50.")
        ['it', "'", 's', '$', '3', '.', '50', '.']
    """
    return _PIECE.findall(sentence.lower())


@dataclass(frozen=True, kw_only=True, eq=False)
class Vocabulary:
    """Numbers of words; make it with `of_words`, `of_tokenizer` or `of_sentences`. `len` of it is how many
    numbers there are, filling and unknown included.

    Attributes:
        words: those that have the numbers 2, 3, ...; none if there is a tokenizer.
        tokenizer: of the subwords; None for words.
    """

    words: tuple[str, ...] = ()
    tokenizer: PreTrainedTokenizerBase | None = None
    _number: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        number = {word: number for number, word in enumerate(self.words, FIRST_WORD)}
        object.__setattr__(self, "_number", number)

    @classmethod
    def of_words(cls, words: Iterable[str]) -> Vocabulary:
        """Word n of a list gets the number n + 2; one that `pieces_of` never yields is never met.

        Raises:
            ValueError: no words, or one that is there twice.
        """
        listed = tuple(words)
        if not listed:
            raise ValueError("a vocabulary without words; give at least one")
        word, count = Counter(listed).most_common(1)[0]
        if count > 1:
            raise ValueError(f"word {word!r} is there {count} times; give each once")
        return cls(words=listed)

    @classmethod
    def of_tokenizer(cls, tokenizer: PreTrainedTokenizerBase) -> Vocabulary:
        """A subword's number is its id plus 2; UNKNOWN is none of them, the tokenizer has its own."""
        return cls(tokenizer=tokenizer)

    @classmethod
    def of_sentences(cls, sentences: Iterable[str], *, least: int = 2) -> Vocabulary:
        """Words that occur at least `least` times, the most frequent first, equals in order of the alphabet.

        Give it the sentences of the training split and no others.

        Raises:
            ValueError: `least` below 1, or no word that occurs so often.
        """
        if least < 1:
            raise ValueError(f"least is {least}; it must be at least 1")
        counts = Counter(piece for sentence in sentences for piece in pieces_of(sentence))
        often = [word for word, count in counts.items() if count >= least]
        if not often:
            raise ValueError(f"none of {len(counts)} words occurs {least} times; lower least")
        return cls.of_words(sorted(often, key=lambda word: (-counts[word], word)))

    @classmethod
    def load(cls, folder: str | Path) -> Vocabulary:
        """What `save` left in a folder.

        Raises:
            DataError: a file is missing, damaged or holds something else.
        """
        path = Path(folder) / VOCABULARY_FILE
        text = read_text(path)
        try:
            read = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(path, f"not JSON ({error})", _REMEDY) from None
        if read == {"sort": "subwords"}:
            return cls.of_tokenizer(_read_tokenizer(Path(folder)))
        words = read.get("words") if isinstance(read, dict) and read.get("sort") == "words" else None
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise DataError(path, "neither words nor subwords", _REMEDY, field="sort")
        try:
            return cls.of_words(words)
        except ValueError as error:
            raise DataError(path, str(error), _REMEDY, field="words") from None

    def save(self, folder: str | Path) -> None:
        """Write `vocabulary.json`, and beside it the files of the tokenizer if there is one."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        written: dict[str, object] = {"sort": "words", "words": self.words}
        if self.tokenizer is not None:
            self.tokenizer.save_pretrained(target)
            written = {"sort": "subwords"}
        with replaced_file(target / VOCABULARY_FILE) as file:
            json.dump(written, file)

    def __len__(self) -> int:
        if self.tokenizer is None:
            return FIRST_WORD + len(self.words)
        return FIRST_WORD + 1 + max(self.tokenizer.get_vocab().values())  # ids may have gaps

    def numbers(self, sentence: str, *, most: int) -> np.ndarray:
        """The first `most` words of a sentence, int64 (words,); one UNKNOWN if there are none.

        Raises:
            ValueError: `most` below 1.
        """
        if most < 1:
            raise ValueError(f"most is {most}; it must be at least 1")
        if self.tokenizer is None:
            found = [self._number.get(piece, UNKNOWN) for piece in pieces_of(sentence)[:most]]
        else:
            found = [number + FIRST_WORD for number in self._ids(sentence)[:most]]
        return np.array(found or [UNKNOWN], dtype=np.int64)

    def _ids(self, sentence: str) -> list[int]:
        encoded = self.tokenizer(
            sentence,
            add_special_tokens=False,
            split_special_tokens=True,  # a "[MASK]" that somebody wrote in a text is text
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,  # sentences longer than the model are cut by `numbers`
        )
        return encoded["input_ids"]


def _read_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer, PretrainedConfig  # here, so that words do without it

    try:
        return AutoTokenizer.from_pretrained(
            str(folder),
            config=PretrainedConfig(),  # not the config.json of a matcher beside it
            trust_remote_code=False,
            local_files_only=True,
        )
    except Exception as error:  # of many kinds, as tokenizers and transformers have them
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        what = f"no tokenizer can be read from it ({reason})"
        raise DataError(folder, what, _REMEDY, field="folder") from None
