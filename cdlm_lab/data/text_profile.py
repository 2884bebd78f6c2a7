"""What a model knows: a small profile of the texts that it was trained on, kept in its folder, by which a
text of another world is recognised.

A text is measured by three shares, which need no tokenizer and hold for every language:

- phrases: pairs of neighbouring words that the training texts do not have;
- spellings: words that are rare in them, and that have three letters in a row which none of their rare words
  has;
- words: words that are rare in them.

How large the shares may be is measured on held-out texts of the same world. In storyworld, whose sentences
are made from templates and whose names from syllables, the first two are below one in a thousand, and most
single sentences of real English stand out. The profiles of the shipped models miss, of 500 single sentences
each, 2 or 3 of HotpotQA and 1 to 3 of WikiQA, but 150 to 175 of 500 made in the style of storyworld from real
names ("A fire destroyed the cathedral in Paris on Tuesday."), and they call foreign none of 6,000 single
sentences of storyworld's test split. In real English a third of all pairs are new in every text, so
that only other languages and scripts stand out, by their words, and that only from some three sentences on.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from pydantic import Base64Bytes, BaseModel, Field, ValidationError
from scipy.special import betainc

from cdlm_lab.data.files import DataError, read_text, replaced_file
from cdlm_lab.data.records import (
    CandidateSet,
    Cluster,
    CoreferenceDocument,
    DocumentPair,
    EvidencedClaim,
    MultihopQuestion,
    Paragraphed,
    TaggedDocument,
    Topic,
)

PROFILE_FILE = "text_profile.json"
PHRASES, SPELLINGS, WORDS = SHARES = "phrases", "spellings", "words"
MOST_CHARACTERS = 12_000_000  # of the training texts that a profile is made of: two million words
MOST_HELD_OUT = 500
LEAST_INPUTS = 3  # a word in fewer of them is rare, and stands for its kind in phrases
# Largest probability of so many unseen items in a text of the same world; two odd names are no other world.
FALSE_ALARM = {PHRASES: 3e-3, SPELLINGS: 2e-4, WORDS: 2e-4}
_ITEM_BITS, _HASHES = 10, 4  # of the Bloom filter, which takes at most one unseen item in 80 for a known one
_MOST = 0.8  # a share whose limit is higher tells nothing, as in small corpora
# How much more often than in held-out texts phrases and spellings, or words, may be unseen.
_TIMES, _MORE = 10, 0.4
_SPELT = ("<N>", "<n>", "<s>")  # kinds of rare words whose spelling is measured
_IN_WORDS = {
    PHRASES: "pairs of words here are new to it",
    SPELLINGS: "rare words here are spelt as none that it knows",
    WORDS: "words here are new to it",
}
_MEANING = "what it says about this text means little"

Record = Cluster | Paragraphed | Topic | DocumentPair | MultihopQuestion | CandidateSet | EvidencedClaim
Record |= TaggedDocument


def texts_of_record(record: Record) -> list[str]:
    """The texts of a record of any task, which a model reads together."""
    match record:
        case Cluster():
            return [document.text for document in record.documents]
        case Paragraphed():
            return [sentence for paragraph in record.paragraphs for sentence in paragraph]
        case Topic():
            return ["\n".join(map(" ".join, _sentences(one))) for one in record.documents]
        case DocumentPair():
            return ["\n".join(one.sentences) for one in (record.first, record.second)]
        case MultihopQuestion():
            return [
                record.text,
                *chain(*((_NUMBER.sub("", one.title), one.text) for one in record.paragraphs)),
            ]
        case CandidateSet():
            return [record.question, *record.candidates]
        case EvidencedClaim():
            return [record.text, *record.evidence]
        case TaggedDocument():
            return [" ".join(sentence.words) for sentence in record.sentences]
    raise TypeError(f"{type(record).__name__} is no record with texts")


def _sentences(document: CoreferenceDocument) -> list[tuple[str, ...]]:
    return [document.tokens[start:end] for start, end in document.sentences]


_PLAIN = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"}
)
_TOKEN = re.compile(r"\0|\n|\d+(?:[.,:]\d+)*|[\u3040-\u30ff\u3400-\u9fff]|[^\W\d_]+|[^\w\s]|_")
_NUMBER = re.compile(r" \(\d+\)$")  # of a title that is there twice
_MARK = re.compile(r"</?m>", re.IGNORECASE)
_BLANK = re.compile(r"\[MASK\]|<mask>")


def _tokens(text: str) -> list[str]:
    """Words, numbers, signs and line ends of a text, without marks of mentions; "\\0" for a blank."""
    plain = _BLANK.sub("\0", _MARK.sub("", text.replace("\0", " "))).translate(_PLAIN)
    return ["\n", *_TOKEN.findall(plain), "\n"]


def _kind(token: str) -> str:
    """What stands for a rare token in phrases: a number, a name, another word, or a sign."""
    if token[0].isdigit():
        return "<0>"
    if token[0].isalpha():
        return "<N>" if token[0].isupper() else "<n>"
    return token if token.isascii() else "<s>"


def _letters(word: str) -> Iterator[str]:
    around = f" {word} "
    return (around[place : place + 3] for place in range(len(around) - 2))


def _places(item: str, bits: int) -> list[int]:
    """The bits of an item in a Bloom filter."""
    digest = hashlib.blake2b(item.encode("utf-8", "replace"), digest_size=4 * _HASHES).digest()
    return [value % bits for value in struct.unpack(f"<{_HASHES}I", digest)]


def _known_items(inputs: list[Sequence[str]]) -> set[str]:
    """The words that are not rare in training inputs, their phrases, and the letters of their rare words."""
    inputs_with: Counter[str] = Counter()
    for texts in inputs:
        inputs_with.update({token.casefold() for text in texts for token in _tokens(text)})
    words = {word for word, count in inputs_with.items() if count >= LEAST_INPUTS}
    items = set(words)
    for text in chain.from_iterable(inputs):
        for before, now in pairwise(_kinds(_tokens(text), words)):
            items.add(f"{before} {now}")
    return items | {f"\t{three}" for word in inputs_with.keys() - words for three in _letters(word)}


def _kinds(tokens: Iterable[str], words: Container[str]) -> Iterator[str]:
    """The words of a text, and for each rare one what kind of word it is."""
    for token in tokens:
        word = token.casefold()
        yield word if word in words and not word[0].isdigit() else _kind(token)


def _limit(share: str, counts: list[tuple[int, int]]) -> float:
    """The share of unseen items that texts of a world keep to: ten times that of the held-out ones, of words
    0.4 more, and higher if more than one in a hundred of them would still be foreign."""
    unseen, total = (1 + sum(column) for column in zip(*counts, strict=True))
    limit = unseen / total + _MORE if share == WORDS else unseen / total * _TIMES
    while limit < 1 and sum(_is_foreign(share, *one, limit) for one in counts) > len(counts) / 100:
        limit *= 1.25
    return limit if limit < _MOST else 1.0


def _is_foreign(share: str, unseen: int, total: int, limit: float) -> bool:
    """Whether so many unseen items are improbable if a share of `limit` is unseen: binomial, one-sided."""
    probability = betainc(unseen, total - unseen + 1, limit) if unseen else 1.0
    return bool(limit < 1 and probability < FALSE_ALARM[share])


@dataclass(frozen=True, kw_only=True, eq=False)
class TextProfile:
    """What a model's training texts were, and which words, phrases and spellings they have."""

    trained_on: str  # in words, as in "it was trained on ..."
    limits: Mapping[str, float]  # the largest usual share of unseen items, by the names of SHARES
    known: np.ndarray  # uint8, a Bloom filter of known words, phrases and spellings

    @classmethod
    def of(
        cls, inputs: Iterable[Sequence[str]], held_out: Iterable[Sequence[str]], *, trained_on: str
    ) -> TextProfile | None:
        """The profile of training inputs, each one or several texts that are read together, with the limits
        that held-out inputs of the same world keep to; None if there are none of one of the two. Of both only
        the first are read, MOST_CHARACTERS or MOST_HELD_OUT."""
        read, size = [], 0
        for texts in inputs:
            read.append(texts)
            if (size := size + sum(map(len, texts))) > MOST_CHARACTERS:
                break
        if not read:
            return None
        items = _known_items(read)
        bits = max(64, 1 << (_ITEM_BITS * len(items) - 1).bit_length())
        known = np.zeros(bits, dtype=bool)
        known[[place for item in items for place in _places(item, bits)]] = True
        none = dict.fromkeys(SHARES, 1.0)
        return cls(trained_on=trained_on, limits=none, known=np.packbits(known)).limited(held_out)

    def limited(self, held_out: Iterable[Sequence[str]]) -> TextProfile | None:
        """The same with the limits that held-out inputs keep to; None without any."""
        counts = [self.counts(texts) for texts in islice(held_out, MOST_HELD_OUT)]
        if not counts:
            return None
        limits = {share: _limit(share, [one[share] for one in counts]) for share in SHARES}
        return replace(self, limits=limits)

    def counts(self, texts: Iterable[str]) -> dict[str, tuple[int, int]]:
        """By the names of SHARES, how many different items are unseen, and how many there are."""
        listed = list(map(_tokens, texts))
        words = {word for word in {one.casefold() for one in chain.from_iterable(listed)} if word in self}
        phrases: set[str] = set()
        rare: set[str] = set()
        for tokens in listed:
            kinds = list(_kinds(tokens, words))
            phrases.update(f"{before} {now}" for before, now in pairwise(kinds) if "\0" not in (before, now))
            both = zip(tokens, kinds, strict=True)
            rare.update(token.casefold() for token, kind in both if kind in _SPELT)
        phrases.discard("\n \n")
        spelt = sum(any(f"\t{three}" not in self for three in _letters(word)) for word in rare)
        known = sum(word.isalpha() for word in words)
        return {
            PHRASES: (sum(phrase not in self for phrase in phrases), len(phrases)),
            SPELLINGS: (spelt, len(rare)),
            WORDS: (len(rare), len(rare) + known),
        }

    def foreign(self, texts: Iterable[str]) -> str:
        """A line that says so if texts, taken together, are foreign to the model; "" if they are not."""
        for share, (unseen, total) in self.counts(texts).items():
            if _is_foreign(share, unseen, total, self.limits[share]):
                why = f"{unseen:,} of {total:,} {_IN_WORDS[share]}"
                return f"foreign text: the model was trained on {self.trained_on}, and {why}; {_MEANING}"
        return ""

    def __contains__(self, item: str) -> bool:
        places = _places(item, 8 * len(self.known))
        return all(self.known[place >> 3] >> (7 - (place & 7)) & 1 for place in places)

    def save(self, folder: str | Path) -> None:
        """Write `text_profile.json`, atomically."""
        known = base64.b64encode(self.known.tobytes()).decode("ascii")
        values = {"trained_on": self.trained_on, "limits": self.limits, "known": known}
        with replaced_file(Path(folder) / PROFILE_FILE) as file:
            json.dump(values, file, indent=1)

    @classmethod
    def load(cls, folder: str | Path) -> TextProfile | None:
        """The profile in a model's folder; None if there is none. Raises DataError: it is damaged."""
        path = Path(folder) / PROFILE_FILE
        if not path.is_file():
            return None
        try:
            saved = _Saved.model_validate_json(read_text(path))
        except ValidationError as error:
            what = f"no profile of texts ({str(error).splitlines()[1]})"
            raise DataError(path, what, "copy it again, or delete it") from None
        return cls(**vars(saved) | {"known": np.frombuffer(saved.known, dtype=np.uint8)})


def foreign_to_a_model(folders: Iterable[str | Path], texts: Iterable[str]) -> str:
    """What `TextProfile.foreign` says about texts for the first of the models in these folders to which they
    are foreign; "" if they are to none, or none has a profile."""
    read = list(texts)
    profiles = filter(None, map(TextProfile.load, folders))
    return next(filter(None, (profile.foreign(read) for profile in profiles)), "")


class _Trained(Protocol):
    @property
    def profile(self) -> TextProfile | None: ...


def with_profile(run: _Trained, write: Callable[[Any, Any, Path], None]) -> Callable[[Any, Any, Path], None]:
    """What `write` does, which writes a model and its tokenizer into a folder, and then the profile of the
    run's texts beside them, which is made when the model is trained."""

    def written(model: Any, tokenizer: Any, folder: Path) -> None:
        write(model, tokenizer, folder)
        if run.profile is not None:
            run.profile.save(folder)

    return written


class _Saved(BaseModel):
    trained_on: str
    limits: dict[Literal["phrases", "spellings", "words"], float]
    known: Annotated[Base64Bytes, Field(min_length=8)]
