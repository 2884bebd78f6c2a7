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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from cdlm_lab.data.coreference_conll_section import ConllDraft, ConllSection
from cdlm_lab.data.coreference_records import (
    KINDS,
    CoreferenceDocument,
    CoreferenceMention,
    Kind,
    PassedOver,
    Topic,
    check_mention,
    topics_by_name,
)
from cdlm_lab.data.files import DataError, plain_name, read_lines, replaced_file
from cdlm_lab.data.splits import SPLIT_NAMES

Level = Literal["corpus", "topic", "document"]
LEVELS: tuple[Level, ...] = get_args(Level)
_BEGIN = re.compile(r"#\s*begin document\s*(.*)")
_END = re.compile(r"#\s*end document")
_ENDINGS = (".conll", "_conll")
_OTHERS: dict[Kind, set[str]] = {"event": {"entity", "entities"}, "entity": {"event", "events"}}
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
    their column, and all their sentences count as validated; two sentences with a mention across them are
    one. A cluster is named by its topic and its number ("36:1"), as numbers mean nothing beyond it; the
    sub-topic is the topic. `read_conll_corpus` reads the files of a corpus, and passes over what cannot be
    used.

    Args:
        kind: of the mentions; the format does not say.

    Raises:
        ValueError: an unknown kind.
        DataError: a line that does not fit, a mention that does not start, does not end in its document, goes
            across three sentences or comes twice, two documents of one name, no tokens, and as
            `files.read_lines`.
    """
    _check_kind(kind)
    for section in _read_sections(Path(path), None):
        yield section.topic(kind)


def read_conll_corpus(
    files: Sequence[str | Path], *, kind: Kind, name: str, passed_over: PassedOver
) -> list[Topic]:
    """The topics of a cross-document corpus, whatever its files mark as a "document": the corpus, a topic, or
    a document.

    The topic of a document is, whichever there is first: that of its rows (eight columns); the name of the
    section, if it holds several documents or is called otherwise; the parts of its name before the last "/"
    ("0/221/0_news_119" is of topic 0 and sub-topic 0/221); its name up to the first "_", if that puts any two
    documents together; and else all are of one topic. Names of chains mean the same within a section of
    several documents; where each section is one document, within the topic; in rows of CoNLL-2012 (ten
    columns or more, or parts), which know no other documents, within the section alone, which is a topic.

    Args:
        files: of one split; a document that is in two of them counts once.
        kind: of the mentions; the format does not say.
        name: of the topic, where nothing tells topics apart.
        passed_over: counts what could not be used: mentions that do not start or end, that come twice or go
            across three sentences, rows that do not fit.

    Raises:
        ValueError: an unknown kind.
        DataError: no mention at all, two documents of one name in a file, no tokens, and as
            `files.read_lines`.
    """
    _check_kind(kind)
    found: dict[str, _Placed] = {}
    sections: dict[str, int] = {}
    for file in files:
        for section in _read_sections(Path(file), passed_over):
            if not section.documents:
                passed_over.add("section without tokens", f"{file}:{section.line}")
                continue
            section.end()
            sections[section.name] = sections.get(section.name, 0) + 1
            for placed in _placed(section, again=sections[section.name] > 1):
                if placed.draft.id in found:
                    passed_over.add("document that was read already", f"{file}:{section.line}")
                else:
                    found[placed.draft.id] = placed
    if not any(placed.draft.mentions for placed in found.values()):
        first = next(iter(passed_over.found.items()), None)
        what = f"no mention in {len(found)} documents" + (f" ({first[0]} at {first[1][1]})" if first else "")
        raise DataError(files[0], what, 'write them in the last column, as (1), (1 and 1); "-" is none')
    return _topics(list(found.values()), kind=kind, name=name)


def find_conll(corpus: str | Path, kind: Kind) -> dict[str, list[Path]]:
    """The CoNLL files of a corpus, by split: train, dev, test, or "" for files of which nothing says it.

    A folder called as a split, or a name that begins or ends with one, says so ("val/topic_3.conll",
    "dev_events_topic_level.conll", "key-test.conll"); a CoNLL file ends in `.conll` or `_conll`. Files whose
    names say that they hold the other kind of mentions are left out. {} = there are none.
    """
    corpus = Path(corpus)
    files = [corpus] if corpus.is_file() else sorted(corpus.rglob("*conll*"))
    found: dict[str, list[Path]] = {}
    for file in files:
        *folders, name = file.relative_to(corpus.parent if corpus.is_file() else corpus).parts
        words = re.findall(r"[a-z]+", plain_name(name).lower())
        is_conll = file.is_file() and plain_name(name).endswith(_ENDINGS)
        if not is_conll or _OTHERS[kind] & {*folders, *words}:
            continue
        places = [*folders, *words[:1], *words[-2:-1]]  # the last word is conll
        split = next((SPLIT_NAMES[place] for place in places if place in SPLIT_NAMES), "")
        found.setdefault("dev" if split == "validation" else split, []).append(file)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A document with its topic and sub-topic ("" if nothing tells them yet), and the name of what its chains
    mean the same in ("" for the topic)."""

    draft: ConllDraft
    topic: str
    subtopic: str
    chains: str


def _placed(section: ConllSection, *, again: bool) -> Iterator[_Placed]:
    """`again`: there was a section of this name before."""
    name = f"{section.name} at line {section.line} of {section.path.name}" if again else section.name
    drafts = section.documents
    several = len(drafts) > 1 or drafts[0].id != section.name
    for draft in drafts:
        above = draft.id.split("/")[:-1]
        if draft.topic:
            topic, subtopic, chains = draft.topic, draft.subtopic or draft.topic, name if several else ""
        elif several or section.is_shared_task:
            topic, subtopic, chains = section.name, section.name, name
        else:
            topic, subtopic, chains = "/".join(above[:1]), "/".join(above[:2]), ""
        yield _Placed(draft=draft, topic=topic, subtopic=subtopic, chains=chains)


def _topics(placed: Sequence[_Placed], *, kind: Kind, name: str) -> list[Topic]:
    named = topics_by_name([one.draft.id for one in placed if not one.topic], otherwise=name)
    documents: dict[str, list[CoreferenceDocument]] = {}
    for one in placed:
        topic = one.topic or named[one.draft.id]
        record = one.draft.record(
            topic=topic, subtopic=one.subtopic or topic, chains=one.chains or topic, kind=kind
        )
        documents.setdefault(topic, []).append(record)
    return [Topic(id=topic, documents=tuple(members)) for topic, members in documents.items()]


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}; choose one of {', '.join(KINDS)}")


def _read_sections(path: Path, passed_over: PassedOver | None) -> Iterator[ConllSection]:
    """Sections as they are read; the last line of each was read. With `passed_over`, rows outside of a
    section are one, named as the file, and a section without end goes as far as the next one."""
    section: ConllSection | None = None
    names: set[str] = set()
    for line, text in read_lines(path):
        form = {"path": path, "line": line, "names": names, "passed_over": passed_over}
        if begin := _BEGIN.match(text):
            if section:
                _pass_over_end(section)
                yield section
            section = ConllSection(name=begin[1].strip(), **form)
        elif _END.match(text):
            if section:
                yield section
            elif passed_over is None:
                raise DataError(path, "no document has begun", "remove the line", line=line, field="#end")
            section = None
        elif section:
            section.add(text, line)
        elif text.strip() and passed_over is None:
            what = "a line outside of a document"
            raise DataError(path, what, "write #begin document above it", line=line, field="row")
        elif text.strip() and not text.startswith("#"):
            passed_over.add("rows without #begin document, which are one document", f"{path}:{line}")
            section = ConllSection(name=path.name.partition(".")[0], is_marked=False, **form)
            section.add(text, line)
    if section:
        _pass_over_end(section)
        yield section


def _pass_over_end(section: ConllSection) -> None:
    if not section.is_marked:
        return
    what = f"{section.name} does not end"
    section.pass_over("section without #end document", what, "write #end document", section.line, "#begin")
