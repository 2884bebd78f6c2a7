"""Coreference clusters in the format of CoNLL-2012, which the reference scorers (scorer.pl, coval) read.

    #begin document (36); part 000
    36_1ecb<tab>36_ecb<tab>0<tab>Police<tab>(1)
    36_1ecb<tab>36_ecb<tab>1<tab>made<tab>(2
    36_1ecb<tab>36_ecb<tab>2<tab>arrests<tab>(3)|2)

    #end document

A line is a token: document, sub-topic, number in the sentence, word and, last, the mentions that start and
end at it; an empty line ends a sentence. What stands between two "document" marks is scored as one: clusters
go as far as that and no further, so cross-document clusters need a level above the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, get_args

from cdlm_lab.data.coreference_conll_section import ConllSection
from cdlm_lab.data.coreference_records import (
    KINDS,
    CoreferenceDocument,
    CoreferenceMention,
    Kind,
    Topic,
    check_mention,
)
from cdlm_lab.data.files import DataError, read_lines, replaced_file

Level = Literal["corpus", "topic", "document"]
LEVELS: tuple[Level, ...] = get_args(Level)
_BEGIN = re.compile(r"#\s*begin document\s*(.*)")
_END = re.compile(r"#\s*end document")
_TABS = re.compile(r"[\t\r\n]")


def write_conll(
    path: str | Path,
    topics: Iterable[Topic],
    clusters: Mapping[str, Iterable[CoreferenceMention]],
    *,
    level: Level = "topic",
) -> dict[str, int]:
    """Write clusters over the documents of `topics`: a key (`gold_clusters`) or a system's response.

    The file is there whole or not at all. All sentences are written, so that the files of a key and a
    response over the same topics fit each other.

    Args:
        clusters: name -> mentions; singletons are written as well.
        level: what is scored as one: the corpus, a topic, or a document (for links within documents only).

    Returns:
        The number that stands in the file for each name, from 1 in order of first appearance.

    Raises:
        ValueError: an unknown level, no topics, a mention that does not fit the documents or is in two
            clusters, mentions of one cluster that cross each other or stand in the same place, a name or
            token with a tab or a line break.
        DataError: the folder of `path` is not there.
    """
    if level not in LEVELS:
        raise ValueError(f"level is {level!r}; choose one of {', '.join(LEVELS)}")
    if not Path(path).parent.is_dir():
        raise DataError(path, "there is no such folder to write to", "make it first", field="folder")
    topics = list(topics)
    documents = {document.id: document for topic in topics for document in topic.documents}
    if len(documents) < sum(len(topic.documents) for topic in topics) or not documents:
        raise ValueError("two documents of one id, or none at all; give each topic once")
    names = _by_document(clusters, documents)
    numbers: dict[str, int] = {}
    lines: list[str] = []
    for name, section in _sections(topics, level):
        lines.append(f"#begin document ({_plain(name, 'name')}); part 000\n")
        lines += (
            line for document in section for line in _rows(document, names.get(document.id, []), numbers)
        )
        lines.append("#end document\n")
    with replaced_file(Path(path)) as file:
        file.writelines(lines)
    return numbers


def _sections(topics: list[Topic], level: Level) -> Iterator[tuple[str, Iterable[CoreferenceDocument]]]:
    if level == "corpus":
        yield "corpus", (document for topic in topics for document in topic.documents)
    for topic in topics:
        if level == "topic":
            yield topic.id, topic.documents
        elif level == "document":
            yield from ((document.id, [document]) for document in topic.documents)


Named = tuple[CoreferenceMention, str]


def _by_document(
    clusters: Mapping[str, Iterable[CoreferenceMention]], documents: Mapping[str, CoreferenceDocument]
) -> dict[str, list[Named]]:
    """Document -> its mentions with the names of their clusters, checked."""
    found: dict[str, list[Named]] = {}
    places: dict[str, str] = {}
    for name, mentions in clusters.items():
        for mention in mentions:
            if mention.document not in documents:
                raise ValueError(f"{mention.name}: the topics to be written have no such document")
            check_mention(mention, documents[mention.document])
            if mention.id in places:
                raise ValueError(f"{mention.name} is in the clusters {places[mention.id]} and {name}")
            places[mention.id] = name
            found.setdefault(mention.document, []).append((mention, name))
    for named in found.values():
        named.sort(key=lambda item: (item[0].tokens[0], -item[0].tokens[1]))
        _check_nesting(named)
    return found


def _check_nesting(named: list[Named]) -> None:
    """Mentions of one cluster must be told apart by their brackets alone."""
    around: dict[str, list[CoreferenceMention]] = {}
    for mention, name in named:
        still_open = around.setdefault(name, [])
        while still_open and still_open[-1].tokens[1] <= mention.tokens[0]:
            still_open.pop()
        if still_open:
            outer = still_open[-1]
            if outer.tokens == mention.tokens or outer.tokens[1] < mention.tokens[1]:
                what = "stand in the same place" if outer.tokens == mention.tokens else "cross each other"
                raise ValueError(
                    f"{outer.name} and {mention.id} of cluster {name} {what}; CoNLL cannot say so"
                )
        still_open.append(mention)


def _rows(document: CoreferenceDocument, named: list[Named], numbers: dict[str, int]) -> Iterator[str]:
    """Lines of a document; `named` in order of start, the longer first. New names get their `numbers`."""
    before: dict[int, list[str]] = {}
    after: dict[int, list[str]] = {}
    for mention, name in named:
        number = numbers.setdefault(name, len(numbers) + 1)
        start, end = mention.tokens
        if end == start + 1:
            before.setdefault(start, []).append(f"({number})")
        else:
            before.setdefault(start, []).append(f"({number}")
            after.setdefault(end - 1, []).insert(0, f"{number})")
    head = f"{_plain(document.id, 'document')}\t{_plain(document.subtopic, 'sub-topic')}"
    for start, end in document.sentences:
        for position in range(start, end):
            pieces = before.get(position, []) + after.get(position, [])
            word = _plain(document.tokens[position], f"token {position} of document {document.id}")
            yield f"{head}\t{position - start}\t{word}\t{'|'.join(pieces) or '-'}\n"
        yield "\n"


def _plain(text: str, what: str) -> str:
    if _TABS.search(text) or not text or (what == "document" and text.startswith("#")):
        raise ValueError(f"{what} {text!r} cannot stand in a CoNLL file: empty, a tab, a line break or a #")
    return text


def read_conll(path: str | Path, *, kind: Kind = "entity") -> Iterator[Topic]:
    """Topics of a CoNLL file, one for each "document" that it marks, one at a time.

    Reads what `write_conll` writes, CoNLL-2012 files (a part other than 0 is added to the names, as in
    "bc/cctv_0001/2"), files of two to four columns (words become "_"), and the eight columns of the paper's
    code (topic, sub-topic, document, sentence, token, word, flag, mentions). Documents are told apart by
    their column, and all their sentences count as validated. A cluster is named by its topic and its number
    ("36:1"), as numbers mean nothing beyond it; the sub-topic is the topic.

    Args:
        kind: of the mentions; the format does not say.

    Raises:
        ValueError: an unknown kind.
        DataError: a line that does not fit, a mention that does not start, does not end in its sentence or
            comes twice, two documents of one name, no tokens, and as `files.read_lines`.
    """
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}; choose one of {', '.join(KINDS)}")
    path = Path(path)
    section: ConllSection | None = None
    names: set[str] = set()
    for line, text in read_lines(path):
        if begin := _BEGIN.match(text):
            if section:
                raise _not_ended(section)
            section = ConllSection(path=path, line=line, name=begin[1].strip(), names=names)
        elif _END.match(text):
            if not section:
                raise DataError(path, "no document has begun", "remove the line", line=line, field="#end")
            yield section.topic(kind)
            section = None
        elif section:
            section.add(text, line)
        elif text.strip():
            what = "a line outside of a document"
            raise DataError(path, what, "write #begin document above it", line=line, field="row")
    if section:
        raise _not_ended(section)


def _not_ended(section: ConllSection) -> DataError:
    return section.error(f"{section.name} does not end", "write #end document", section.line, "#begin")
