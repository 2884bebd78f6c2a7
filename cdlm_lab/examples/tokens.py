"""From texts to token ids: all kinds of examples are tokenised by the functions in this module."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import numpy as np

from cdlm_lab.data.files import DataError, parse_json, read_text, replaced_file
from cdlm_lab.data.records import CoreferenceDocument, TokenSpan
from cdlm_lab.data.words import words_of
from cdlm_lab.errors import check_least

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase


DOCUMENT_START, DOCUMENT_END = "<doc-s>", "</doc-s>"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTokens:
    """Ids of the special tokens, whatever the tokenizer calls them (`<s>` and `</s>` for RoBERTa)."""

    framing: ClassVar[int] = 2  # special tokens of every sequence: `[CLS]` and `[SEP]`
    per_document: ClassVar[int] = 2  # special tokens per document: `<doc-s>` and `</doc-s>`

    start: int  # `<doc-s>`, before each document (CDLM section 2.2)
    end: int  # `</doc-s>`, after it
    cls: int  # first token of a sequence
    sep: int  # last token of a sequence
    pad: int  # padding of batches
    mask: int  # what a model reads in place of a masked token
    # All special ids: the six above and others that the tokenizer marks as special, such as `[UNK]`. None is
    # ever masked or used as a random replacement.
    all_special: frozenset[int]
    vocabulary_size: int  # ids are 0 to `vocabulary_size - 1`, special ones included

    def __post_init__(self) -> None:
        for name in ("start", "end", "cls", "sep", "pad", "mask"):
            if (number := getattr(self, name)) not in self.all_special:
                raise ValueError(f"{name} ({number}) is not among all_special {sorted(self.all_special)}")
        size = self.vocabulary_size
        if outside := sorted(i for i in self.all_special if not 0 <= i < size):
            raise ValueError(f"special token id {outside[0]} is outside the vocabulary of {size} ids")
        if len(self.all_special) == size:
            raise ValueError(f"all {size} ids of the vocabulary are special: no text can be written")

    def is_special(self, input_ids: np.ndarray) -> np.ndarray:
        """Bool, the shape of `input_ids`: True = the id is special."""
        special = _ascending(self.all_special)
        # Less than half the time of np.isin, which would take a tenth of the time for an example.
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


def from_tokenizer(tokenizer: PreTrainedTokenizerBase, *, plain: bool = False) -> SpecialTokens:
    """Read the ids of a tokenizer that already has `<doc-s>` and `</doc-s>`; ValueError if it lacks one.
    `plain`: True = where it has none, its CLS and SEP tokens stand in their place."""
    vocabulary = tokenizer.get_vocab()
    wording = {"start": DOCUMENT_START, "end": DOCUMENT_END}
    ids = {name: vocabulary.get(token) for name, token in wording.items()}
    ids |= {name: getattr(tokenizer, f"{name}_token_id") for name in ("cls", "sep", "pad", "mask")}
    if plain and None in (ids["start"], ids["end"]):
        ids |= {"start": ids["cls"], "end": ids["sep"]}
    for name, number in ids.items():
        if number is None:
            raise lacking(tokenizer, wording.get(name, f"{name} token"), "encoder.load_tokenizer")
    marked = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    all_special = frozenset({*ids.values(), *tokenizer.all_special_ids, *marked})
    return SpecialTokens(**ids, all_special=all_special, vocabulary_size=len(tokenizer))


def lacking(tokenizer: PreTrainedTokenizerBase, token: str, loader: str) -> ValueError:
    """An error for a tokenizer without a token; `loader`: what in `cdlm_lab.encoders` adds it."""
    what = f"the tokenizer {tokenizer.name_or_path!r} has no {token}"
    return ValueError(f"{what}: load it with cdlm_lab.encoders.{loader}, which adds what is missing")


def tokenise(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, **wanted: bool) -> BatchEncoding:
    """Tokenise texts without adding special tokens; a "[MASK]" or "</doc-s>" in a text is plain text.

    Texts may be longer than a model allows: they are truncated when written into a sequence. `wanted`: more
    options of the tokenizer, such as `return_offsets_mapping`.
    """
    return tokenizer(
        list(texts),
        add_special_tokens=False,
        split_special_tokens=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
        **wanted,
    )


def as_within_a_text(text: str) -> str:
    """The text with a space before it, so that a byte-level BPE tokenises its first word as within a text,
    whatever its settings; "" if it is blank."""
    return f" {text.strip()}" if text.strip() else ""


def encode_pieces(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[np.ndarray]:
    """Tokenise texts, each as if a space stood before it: a list of int32 (pieces,), empty for a blank text
    or one that yields no token, such as a lone control character."""
    if not texts:
        return []  # tokenizers refuse an empty list
    encoded = tokenise([as_within_a_text(text) for text in texts], tokenizer)
    return [np.array(ids, dtype=np.int32) for ids in encoded["input_ids"]]


def characters_read(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase, *, most: int) -> list[int]:
    """How many characters of each text a model reads that keeps the first `most` of `encode_pieces`."""
    if not texts:
        return []
    spaced = [as_within_a_text(text) for text in texts]
    every = tokenise(spaced, tokenizer, return_offsets_mapping=True)["offset_mapping"]
    before = (len(text) - len(text.lstrip()) - 1 for text in texts)  # offsets count the space in front
    return [
        len(text) if len(offsets) <= most else start + offsets[most - 1][1]
        for text, offsets, start in zip(texts, every, before, strict=True)
    ]


def tokenise_words(words: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> tuple[np.ndarray, np.ndarray]:
    """Tokenise word by word, each as if a space stood before it, punctuation too: corpora that consist of
    words do not say where their texts had spaces.

    Returns ids, int64 (pieces,), and for each the index of its word, int64 (pieces,), ascending; a word that
    yields no token, such as a lone control character, has none.
    """
    encoded = tokenise([f" {word}" for word in words], tokenizer, is_split_into_words=True)
    return np.array(encoded["input_ids"], dtype=np.int64), np.array(encoded.word_ids(), dtype=np.int64)


Record = TypeVar("Record")
Encoded = TypeVar("Encoded")


class EncodedById(Mapping[str, Encoded], Generic[Record, Encoded]):
    """Mapping from ids to encoded records, each encoded when it is first read and then cached. `records` may
    have a record several times, but not two different ones with one id; `kind`: their name in messages."""

    def __init__(self, records: Iterable[Record], encode: Callable[[Record], Encoded], *, kind: str) -> None:
        self._records: dict[str, Record] = {}
        self._encoded: dict[str, Encoded] = {}
        self._encode = encode
        for record in records:
            if self._records.setdefault(record.id, record) != record:
                raise ValueError(f"there are two different {kind} {record.id}; name them apart")

    def __getitem__(self, name: str) -> Encoded:
        if name not in self._encoded:
            self._encoded[name] = self._encode(self._records[name])
        return self._encoded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedDocument:
    """A document of words in subword tokens."""

    document: CoreferenceDocument
    input_ids: np.ndarray  # int64 (subword,), no special tokens
    starts: np.ndarray  # int64 (tokens + 1,), first subword of each token; last, the number of subwords

    def subwords(self, tokens: TokenSpan) -> TokenSpan:
        """The span of subwords that a span of the document's tokens covers."""
        start, end = tokens
        return int(self.starts[start]), int(self.starts[end])


def encode_document(document: CoreferenceDocument, tokenizer: PreTrainedTokenizerBase) -> EncodedDocument:
    """Tokenise a document word by word; a word that yields no subword, such as a lone control character,
    becomes the unknown token. ValueError if the tokenizer has none."""
    ids, words = tokenise_words(document.tokens, tokenizer)
    counts = np.bincount(words, minlength=len(document.tokens))
    if len(silent := np.flatnonzero(counts == 0)):
        if tokenizer.unk_token_id is None:
            what = f"token {silent[0]}, {document.tokens[silent[0]]!r}, has no subword"
            raise ValueError(f"document {document.id}: {what} and the tokenizer no unknown one; leave it out")
        ids = np.insert(ids, counts.cumsum()[silent], tokenizer.unk_token_id)
        counts[silent] = 1
    return EncodedDocument(document=document, input_ids=ids, starts=np.append(0, counts.cumsum()))


class EncodedDocuments(EncodedById[CoreferenceDocument, EncodedDocument]):
    """Tokenised documents of words by id, each encoded when it is first read."""

    def __init__(self, documents: Iterable[CoreferenceDocument], tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__(documents, partial(encode_document, tokenizer=tokenizer), kind="documents")


FILLING, UNKNOWN, FIRST_WORD = 0, 1, 2
VOCABULARY_FILE = "vocabulary.json"
_REMEDY = "copy the folder again, or save the vocabulary anew"


def pieces_of(sentence: str) -> list[str]:
    """Runs of letters and digits and all other characters but white space, in lower case.

    Example:
        >>> pieces_of("It's $3.50.")
        ['it', "'", 's', '$', '3', '.', '50', '.']
    """
    return words_of(sentence.lower(), signs=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Vocabulary:
    """Maps words to numbers: 0 is padding, 1 an unknown word, known words count from 2. Words are
    lower-cased, with punctuation apart ("Don't go!" is don ' t go !), or they are the subword tokens of a
    tokenizer.

    Create it with `of_words`, `of_tokenizer` or `of_sentences`. `len` of it is how many numbers there are.
    """

    words: tuple[str, ...] = ()  # the words with the numbers 2, 3, ...; empty with a tokenizer
    tokenizer: PreTrainedTokenizerBase | None = None  # for subword tokens; None for words

    @classmethod
    def of_words(cls, words: Iterable[str]) -> Vocabulary:
        """Give word n of a list the number n + 2; ValueError for duplicates or an empty list. A word that
        `pieces_of` never yields is never found."""
        listed = tuple(words)
        if not listed:
            raise ValueError("a vocabulary without words; give at least one")
        word, count = Counter(listed).most_common(1)[0]
        if count > 1:
            raise ValueError(f"word {word!r} is there {count} times; give each once")
        return cls(words=listed)

    @classmethod
    def of_tokenizer(cls, tokenizer: PreTrainedTokenizerBase) -> Vocabulary:
        """Give a subword token its id plus 2; UNKNOWN is not used, since the tokenizer has its own."""
        return cls(tokenizer=tokenizer)

    @classmethod
    def of_sentences(cls, sentences: Iterable[str], *, least: int = 2) -> Vocabulary:
        """Words that occur at least `least` times, most frequent first, ties in alphabetical order. Pass only
        sentences of the training split."""
        check_least(least=least)
        counts = Counter(piece for sentence in sentences for piece in pieces_of(sentence))
        often = [word for word, count in counts.items() if count >= least]
        if not often:
            raise ValueError(f"none of {len(counts)} words occurs {least} times; lower least")
        return cls.of_words(sorted(often, key=lambda word: (-counts[word], word)))

    @classmethod
    def load(cls, folder: str | Path) -> Vocabulary:
        """Load what `save_pretrained` wrote to a folder; DataError if a file is missing or damaged, or holds
        something else."""
        path = Path(folder) / VOCABULARY_FILE
        read = parse_json(read_text(path), path, remedy=_REMEDY)
        if read == {"sort": "subwords"}:
            return cls.of_tokenizer(_read_tokenizer(Path(folder)))
        words = read.get("words") if isinstance(read, dict) and read.get("sort") == "words" else None
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise DataError(path, "neither words nor subwords", _REMEDY, field="sort")
        try:
            return cls.of_words(words)
        except ValueError as error:
            raise DataError(path, str(error), _REMEDY, field="words") from None

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `vocabulary.json`, and the tokenizer's files beside it if there is a tokenizer."""
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
        """Numbers of the first `most` words of a sentence, int64 (words,); one UNKNOWN if it has no words."""
        check_least(most=most)
        if self.tokenizer is None:
            numbers = [self._number_of.get(piece, UNKNOWN) for piece in pieces_of(sentence)[:most]]
        else:
            (ids,) = tokenise([sentence], self.tokenizer)["input_ids"]
            numbers = [number + FIRST_WORD for number in ids[:most]]
        return np.array(numbers or [UNKNOWN], dtype=np.int64)

    @cached_property
    def _number_of(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words, FIRST_WORD)}


def _read_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer, PretrainedConfig  # imported here: not needed for words

    try:
        return AutoTokenizer.from_pretrained(
            str(folder),
            config=PretrainedConfig(),  # not the config.json of a matcher beside it
            trust_remote_code=False,
            local_files_only=True,
        )
    except Exception as error:  # tokenizers and transformers raise many kinds
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        what = f"no tokenizer can be read from it ({reason})"
        raise DataError(folder, what, _REMEDY, field="folder") from None


def token_texts(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> tuple[list[str], np.ndarray]:
    """The text of each token without its continuation sign, and whether a space precedes it ((tokens,) bool).

    Knows the signs of byte-level BPE (a leading `Ġ`), WordPiece (`##` inside words) and SentencePiece (`▁`).
    """
    names = tokenizer.convert_ids_to_tokens([int(i) for i in ids])
    special = set(tokenizer.all_special_tokens)
    spaced = any("\u0120" in name or "\u2581" in name for name in names)
    texts, starts = [], np.ones(len(names), dtype=bool)
    for number, name in enumerate(names):
        if name in special:
            texts.append(name)
        elif spaced:
            starts[number] = name[0] in "\u0120\u2581"
            text = tokenizer.convert_tokens_to_string([name])
            texts.append(text.strip() or ("\u21b5" if "\n" in text else "\u2423"))  # newline, blank
        else:
            starts[number] = not name.startswith("##")
            texts.append(name.removeprefix("##"))
    return texts, starts
