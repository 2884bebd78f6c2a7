"""Sentences as numbers of words: 0 is filling, 1 a word that is not known, words count from 2.

The pieces of a sentence are words, in lower case and with punctuation apart ("Don't go!" is don ' t go !), or
the subwords of a tokenizer, whose ids move up by two.

The ids of a tokenizer's special tokens, as far as building examples needs them.

`<doc-s>` and `</doc-s>` frame each document (CDLM section 2.2); `[CLS]` and `[SEP]` open and close the whole
sequence, under whatever name the tokenizer knows them (`<s>` and `</s>` for RoBERTa and Longformer).

Words in pieces, for texts that come in words: which pieces, and of which word each is.

The token ids of a cluster's documents, and which tokens state which fact.

What readers give, encoded once.

The subwords of a tokenised document, and which of them belong to which of its words.

Every word is tokenised as if a space stood before it, punctuation too: corpora of mentions, as ECB+, consist
of tokens and do not say where their texts had spaces.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypedDict, TypeVar

import numpy as np

from cdlm_lab.data.files import DataError, read_text, replaced_file
from cdlm_lab.data.records import Cluster, CoreferenceDocument, Document, Fact, TokenSpan

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


def tokenise_words(words: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> tuple[np.ndarray, np.ndarray]:
    """Tokenise word by word, each as if a space stood before it.

    Returns:
        ids: int64 (pieces,), no special tokens.
        numbers: int64 (pieces,), rising, the word of each; a word that the tokenizer makes nothing of, as a
            lone control character, has no piece.
    """
    encoded = tokenizer(
        # With the space a byte-level BPE takes a word for what it is within a text, whatever its settings.
        [f" {word}" for word in words],
        is_split_into_words=True,
        add_special_tokens=False,
        split_special_tokens=True,  # a "[MASK]" or "<m>" that somebody wrote in a text is text
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,  # who asks sees to the length
    )
    return np.array(encoded["input_ids"], dtype=np.int64), np.array(encoded.word_ids(), dtype=np.int64)


NO_FACT = -1


class EncodedCluster(TypedDict):
    """One row of a tokenised corpus; lists have one entry for each document that has text.

    `input_ids` and `fact_ids`: int32 (tokens,); a fact's number is that of its first appearance in the
        cluster, -1 = none.
    """

    cluster_id: str
    document_ids: list[str]
    input_ids: list[np.ndarray]
    fact_ids: list[np.ndarray]


def encode_cluster(cluster: Cluster, tokenizer: PreTrainedTokenizerBase) -> EncodedCluster:
    """Tokenise the documents without adding special tokens; documents without text are left out.

    A token belongs to a fact if its characters overlap the fact's; where facts overlap, to the one that
    starts first.

    Args:
        cluster: documents with their facts.
        tokenizer: a fast one, which says where in the text each token stands.
    """
    written = [document for document in cluster.documents if document.text.strip()]
    row = EncodedCluster(cluster_id=cluster.id, document_ids=[], input_ids=[], fact_ids=[])
    if not written:
        return row
    encoded = tokenizer(
        [document.text for document in written],
        add_special_tokens=False,
        split_special_tokens=True,  # a "[MASK]" that somebody wrote in an article is text
        return_offsets_mapping=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,  # documents longer than the model are expected; packing sees to them
    )
    numbers = _fact_numbers(written)
    for document, ids, offsets in zip(written, encoded["input_ids"], encoded["offset_mapping"], strict=True):
        if ids:
            row["document_ids"].append(document.id)
            row["input_ids"].append(np.array(ids, dtype=np.int32))
            row["fact_ids"].append(_fact_of_tokens(document.facts, np.array(offsets), numbers=numbers))
    return row


def _fact_numbers(documents: Sequence[Document]) -> dict[str, int]:
    """Fact id -> its number within the cluster, by order of first appearance in the text."""
    numbers: dict[str, int] = {}
    for document in documents:
        for fact in sorted(document.facts, key=lambda fact: fact.start):
            numbers.setdefault(fact.id, len(numbers))
    return numbers


def _fact_of_tokens(facts: Sequence[Fact], offsets: np.ndarray, *, numbers: dict[str, int]) -> np.ndarray:
    """int32 (tokens,), from offsets (tokens, 2), half-open character ranges."""
    found = np.full(len(offsets), NO_FACT, dtype=np.int32)
    starts, ends = offsets[:, 0], offsets[:, 1]
    for fact in sorted(facts, key=lambda fact: fact.start):
        found[(starts < fact.end) & (ends > fact.start) & (found == NO_FACT)] = numbers[fact.id]
    return found


class Named(Protocol):
    """What has an id."""

    @property
    def id(self) -> str:
        """Its name among the others."""


Record = TypeVar("Record", bound=Named)
Encoded = TypeVar("Encoded")


class EncodedById(Mapping[str, Encoded], Generic[Record, Encoded]):
    """Records by their ids, each encoded when it is first asked for and then kept.

    Args:
        records: may name one several times.
        encode: of one record.
        kind: what complaints call them, as "documents".

    Raises:
        ValueError: two different records of one id.
        KeyError: an id asked for that no record has.
    """

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
    """A document in subwords.

    Attributes:
        document: the record it was made of.
        input_ids: int64 (subword,), no special tokens.
        starts: int64 (tokens + 1,), the first subword of each token, and at the end the number of subwords.
    """

    document: CoreferenceDocument
    input_ids: np.ndarray
    starts: np.ndarray

    def subwords(self, tokens: TokenSpan) -> TokenSpan:
        """The span of subwords of a span of tokens."""
        start, end = tokens
        return int(self.starts[start]), int(self.starts[end])


def encode_document(document: CoreferenceDocument, tokenizer: PreTrainedTokenizerBase) -> EncodedDocument:
    """Tokenise a document word by word; a word without any subword, as a lone control character, is unknown.

    Raises:
        ValueError: there is such a word and the tokenizer has no id for unknown ones.
    """
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
    """Documents by their ids; errors as of `EncodedById`."""

    def __init__(self, documents: Iterable[CoreferenceDocument], tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__(documents, lambda one: encode_document(one, tokenizer), kind="documents")


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
        """What `save_pretrained` left in a folder.

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

    def save_pretrained(self, folder: str | Path) -> None:
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
