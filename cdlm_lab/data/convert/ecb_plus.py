"""ECB+ (Cybulska and Vossen 2014): events and entities that corefer within and across documents.

Folder: `ECB+/<topic>/<topic>_<number>ecb[plus].xml` and, beside it, `ECBplus_coreference_sentences.csv`,
which names the sentences whose annotation was checked ("validated"). Topics are split as in appendix A.2 of
the CDLM paper (topics 15 and 17 do not exist). Sentence 0 of the `ecbplus` files is the address of the page,
cut into tokens; it is left out, as are tokens of white space alone (31_10ecbplus 979, 9_3ecbplus 30,
9_4ecbplus 32).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from cdlm_lab.data import coreference, records
from cdlm_lab.data.files import DataError, entries, read_text
from cdlm_lab.data.records import Cluster, CoreferenceDocument, Kind, PassedOver, TokenSpan
from cdlm_lab.data.rows import csv_rows
from cdlm_lab.data.splits import Split

TOPICS: dict[Split, frozenset[int]] = {
    "train": frozenset([1, 3, 4, *range(6, 12), 13, 14, 15, 16, 17, 19, 20, 22, *range(24, 34)]),
    "validation": frozenset([2, 5, 12, 18, 21, 23, 34, 35]),
    "test": frozenset(range(36, 46)),
}
CSV_NAME, HEADER = "ECBplus_coreference_sentences.csv", "Topic,File,Sentence Number"
_FILE_NAME = re.compile(r"(\d+)_(\d+)(ecb|ecbplus)\.xml")
_SENTENCE_NUMBER = re.compile(r"[0-9]{1,9}")
_LISTED = re.compile(r"[0-9]{1,2},[0-9]+(ecb|ecbplus),[0-9]{1,9}")  # a row of validated sentences
LAST_TOPIC = 45
Found = tuple[Split, Path, list[Path]]  # the split, its list of validated sentences, its XML files
_RELEASE = "copy the file again from the official release"
_NAME_REMEDY = "keep the official names, <topic>/<topic>_<number>ecb.xml or ...ecbplus.xml, topics 1 to 45"
_TOKEN_REMEDY = "name tokens of the document by their t_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Xml:
    """A parsed file of the corpus."""

    path: Path
    source: str
    root: Element

    def error(self, field: str, what: str, remedy: str, *, at: Element | None = None) -> DataError:
        """The DataError to raise, with the line where the id of the element `at` first occurs."""
        place = -1 if at is None else self.source.find(_mark(at))
        line = self.source.count("\n", 0, max(0, place)) + 1
        return DataError(self.path, what, remedy, line=line, field=field)

    def sentence(self, token: Element) -> int:
        """The number of the sentence that a token belongs to; raises DataError if that is invalid."""
        number, mark = token.get("sentence", ""), _mark(token)
        if _SENTENCE_NUMBER.fullmatch(number):
            return int(number)
        what = f"{number!r} of the token {mark} is not a number" if number else f"missing in the token {mark}"
        raise self.error("sentence", what, 'write the number from 0, as in sentence="3"', at=token)

    def section(self, name: str) -> Element:
        """The element `name` of the file, Markables or Relations. Raises DataError if it is missing."""
        section = self.root.find(name)
        if section is None:
            raise self.error(name, f"there is no <{name}>", _RELEASE)
        return section


def _mark(element: Element) -> str:
    """The attribute by which the file identifies a token, markable or relation, such as m_id="3"."""
    name = next((name for name in ("t_id", "m_id", "r_id") if name in element.attrib), "")
    return f'{name}="{element.get(name)}"' if name else f"<{element.tag}>"


def _parse(path: Path) -> _Xml:
    """Parse a file without expanding entities or fetching anything; raises DataError if it is not XML."""
    source = read_text(path)
    try:
        return _Xml(path=path, source=source, root=fromstring(source))
    except ParseError as error:
        line, column = error.position
        what, field = f"not XML ({error})", f"column {column + 1}"
        raise DataError(path, what, _RELEASE, line=line, field=field) from None
    except DefusedXmlException as error:
        line = source.count("\n", 0, max(0, source.find("<!DOCTYPE"))) + 1
        what, remedy = f"the XML defines entities ({error})", "remove the DOCTYPE: the corpus has none"
        raise DataError(path, what, remedy, line=line, field="DOCTYPE") from None


def ecb_plus_files(path: str | Path, *, split: Split | None = None) -> list[Path]:
    """The XML files of a split's topics (None = all), sorted by topic, half ("ecb", "ecbplus") and number."""
    below = (Path(path) / name for name in ("ECB+", "ECB+_LREC2014/ECB+"))
    root = next((folder for folder in below if folder.is_dir()), Path(path))
    keys = {
        file: _key(file)
        for topic in entries(root)
        if topic.is_dir() and topic.name.isdecimal()
        for file in entries(topic)
        if file.suffix == ".xml"
    }
    return sorted(
        (file for file in keys if split is None or keys[file][0] in TOPICS[split]), key=keys.__getitem__
    )


def _key(file: Path) -> tuple[int, str, int]:
    """(topic, half, number) of a file, from its name. Raises DataError if that is not a name of ECB+."""
    match = _FILE_NAME.fullmatch(file.name)
    topic = int(match[1]) if match else 0
    if not match or match[1] != file.parent.name or not any(topic in topics for topics in TOPICS.values()):
        raise DataError(file, "not the name of an ECB+ file", _NAME_REMEDY, field="file name")
    return topic, match[3], int(match[2])


# ---- plain text, for pre-training ----


def read_ecb_plus_topics(path: str | Path, *, split: Split | None = None) -> Iterator[Cluster]:
    """Yield clusters of plain text for pre-training, in order of topic; `split`: None = all splits.

    A cluster is a sub-topic, "1ecb" or "1ecbplus": the two halves of a topic describe different events of the
    same kind. Tokens are joined by spaces, and sentences by line breaks.
    """

    def cluster_of(file: Path) -> str:
        topic, half, _ = _key(file)
        return f"{topic}{half}"

    for cluster_id, members in groupby(ecb_plus_files(path, split=split), key=cluster_of):
        yield Cluster(id=cluster_id, documents=tuple(map(_plain_document, members)))


def _plain_document(file: Path) -> records.Document:
    xml = _parse(file)
    lines: list[str] = []
    for sentence, tokens in groupby(xml.root.iter("token"), xml.sentence):
        if sentence or not file.stem.endswith("plus"):
            lines.append(" ".join(token.text.strip() for token in tokens if token.text))
    if not any(lines):
        raise xml.error("token", "no token has any text", _RELEASE)
    starts = accumulate((len(line) + 1 for line in lines), initial=0)
    spans = tuple((start, start + len(line)) for start, line in zip(starts, lines, strict=False))
    return records.Document(id=file.stem, text="\n".join(lines), sentences=spans)


# ---- coreference ----


def coreference_files(folder: Path) -> dict[str, Found]:
    """Split -> its name, the list of validated sentences and its XML files; {} if `folder`, or ECB+_LREC2014
    in it, has no folder ECB+."""
    root = next((path for path in (folder, folder / "ECB+_LREC2014") if (path / "ECB+").is_dir()), None)
    if root is None:
        return {}
    if not (root / CSV_NAME).is_file():
        what = f"{CSV_NAME} is missing, which names the sentences that were annotated"
        raise DataError(root, what, "copy it from the official release", field="folder")
    by_split = {split: ecb_plus_files(root, split=split) for split in TOPICS}
    return {split: (split, root / CSV_NAME, paths) for split, paths in by_split.items() if paths}


def read_ecb_plus(
    found: Found, *, passed_over: PassedOver, kind: Kind | None = None
) -> Iterator[CoreferenceDocument]:
    """Yield the documents of a split, in order of topic, half and number.

    As in the literature, only documents with validated sentences are read, and of these only the mentions in
    validated sentences. Markables whose tag starts with ACTION or NEG_ACTION are events, all others entities.
    A mention of separate tokens (52 in validated sentences) becomes the span from the first to the last.
    U+FFFD, which replaces a lost character in some words, is removed.

    A cross-document cluster is named by its instance id ("HUM17642391151298735"). Seven instances occur in
    two topics; each stays one cluster (`gold_clusters` can divide it). A cluster within a document is named
    by its relation and the kind of its mentions, as four such relations link an event to an entity; a mention
    without relations is a cluster of its own. Nothing is passed over, and both kinds are read, whatever
    `kind` is.
    """
    split, csv, paths = found
    validated = _read_validated(csv, {path.stem for path in paths}, split)
    for path in paths:
        if path.stem in validated:
            yield _annotated_document(path, validated[path.stem], csv)


def _read_validated(csv: Path, documents: Collection[str], split: Split) -> dict[str, dict[int, int]]:
    """Document -> {number of a validated sentence: line that lists it}, for the documents of a split."""
    validated: dict[str, dict[int, int]] = {}
    for line, cells in csv_rows(csv):
        row = ",".join(cell.strip() for cell in cells)
        if line == 1:
            if row != HEADER:
                what, remedy = f"{row!r} is not the header", f"begin with {HEADER}"
                raise DataError(csv, what, remedy, field="header")
            continue
        if not _LISTED.fullmatch(row) or not 1 <= int(cells[0]) <= LAST_TOPIC:
            remedy = f"write topic (1 to {LAST_TOPIC}), file and sentence as 36,1ecbplus,3"
            raise DataError(csv, f"{row!r} names no sentence", remedy, line=line, field="row")
        topic, file, sentence = row.split(",")
        if int(topic) in TOPICS[split]:
            document = f"{topic}_{file}"
            if document not in documents:
                remedy = "copy the whole of the official release, or delete the line"
                raise DataError(csv, f"there is no {topic}/{document}.xml", remedy, line=line, field="File")
            validated.setdefault(document, {}).setdefault(int(sentence), line)
    return validated


@dataclass(slots=True, kw_only=True)
class _Text:
    """The tokens of a file. `places`: t_id -> (number of the sentence, index of the token, or None if it has
    no text); `sentences`: number of a sentence -> its span of tokens."""

    tokens: list[str] = field(default_factory=list)
    places: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    sentences: dict[int, TokenSpan] = field(default_factory=dict)


def _annotated_document(file: Path, validated: Mapping[int, int], csv: Path) -> CoreferenceDocument:
    xml, topic, half = _parse(file), file.parent.name, "ecbplus" if file.stem.endswith("plus") else "ecb"
    text = _read_tokens(xml)
    for number, line in validated.items():
        if number not in text.sentences:
            what = f"{file.stem} has no sentence {number} with text"
            remedy = "correct the number, or delete the line"
            raise DataError(csv, what, remedy, line=line, field="Sentence Number")
    numbers = list(text.sentences)
    mentions, tags = _read_mentions(xml, text, validated)
    return coreference.document_of_spans(
        mentions,
        id=file.stem,
        topic=topic,
        subtopic=f"{topic}_{half}",
        tokens=text.tokens,
        sentences=list(text.sentences.values()),
        validated=[numbers.index(number) for number in validated],
        tags=tags,
    )


def _read_tokens(xml: _Xml) -> _Text:
    text, last, has_address = _Text(), 0, xml.path.stem.endswith("plus")
    for token in xml.root.iter("token"):
        identifier, sentence = token.get("t_id", ""), xml.sentence(token)
        if not identifier or identifier in text.places:
            what = f"a second token {_mark(token)}" if identifier else "missing in a token"
            raise xml.error("t_id", what, "number the tokens from 1", at=token)
        if sentence < last:
            what = f"{sentence} of the token {_mark(token)} comes after {last}"
            raise xml.error("sentence", what, "put the tokens in order", at=token)
        last = sentence
        word = (token.text or "").replace("\ufffd", "").strip()
        if not word or (has_address and sentence == 0):
            text.places[identifier] = (sentence, None)
            continue
        text.places[identifier] = (sentence, len(text.tokens))
        start, _ = text.sentences.get(sentence, (len(text.tokens), 0))
        text.tokens.append(word)
        text.sentences[sentence] = (start, len(text.tokens))
    if not text.tokens:
        raise xml.error("token", "no token has any text", _RELEASE)
    return text


def _read_mentions(
    xml: _Xml, text: _Text, validated: Collection[int]
) -> tuple[list[tuple[str, TokenSpan, Kind, str]], dict[str, str]]:
    """Mentions whose first token is in a validated sentence, as (id, span, kind, cluster), and their tags."""
    markables: dict[str, Element] = {}
    for markable in xml.section("Markables"):
        identifier, tag = markable.get("m_id", ""), markable.tag
        if not identifier or identifier in markables:
            what = f"a second markable {_mark(markable)}" if identifier else f"missing in a markable {tag}"
            raise xml.error("m_id", what, "number the markables of a file", at=markable)
        markables[identifier] = markable
    clusters = _read_relations(xml, markables)
    mentions, tags = [], {}
    for identifier, markable in markables.items():
        if "RELATED_TO" in markable.attrib:  # it defines an instance, and has no place in the text
            continue
        places = _anchors(xml, markable, text)
        sentence, positions = places[0][0], [position for _, position in places]
        if sentence not in validated:
            continue
        if None in positions or any(other != sentence for other, _ in places):
            what = f"the mention {_mark(markable)} has tokens without text or in two sentences"
            raise xml.error("token_anchor", what, _TOKEN_REMEDY, at=markable)
        name, span = f"{xml.path.stem}:{identifier}", (min(positions), max(positions) + 1)
        mentions.append((name, span, _kind(markable), clusters.get(identifier, name)))
        tags[name] = markable.tag
    return mentions, tags


def _anchors(xml: _Xml, markable: Element, text: _Text) -> list[tuple[int, int | None]]:
    """(number of the sentence, index) of each token of a mention, the index None for a token without text."""
    anchors = [anchor.get("t_id", "") for anchor in markable]
    missing = [anchor for anchor in anchors if anchor not in text.places]
    if missing or not anchors:
        what = f"names the token {missing[0]!r}, which is not there" if missing else "has no tokens"
        raise xml.error("token_anchor", f"the mention {_mark(markable)} {what}", _TOKEN_REMEDY, at=markable)
    return [text.places[anchor] for anchor in anchors]


def _read_relations(xml: _Xml, markables: Mapping[str, Element]) -> dict[str, str]:
    """m_id of a mention -> name of its cluster, for the mentions that are in a relation."""
    clusters: dict[str, str] = {}
    for relation in xml.section("Relations"):
        name = f"the relation {_mark(relation)}"
        targets = [end.get("m_id", "") for end in relation if end.tag == "target"]
        sources = [end.get("m_id", "") for end in relation if end.tag == "source"]
        if len(targets) != 1:
            what, remedy = f"{name} has {len(targets)} targets", "give it one: the markable that names it"
            raise xml.error("target", what, remedy, at=relation)
        for end in (*sources, *targets):
            if end not in markables:
                what = f"{name} names the markable {end!r}, which is not there"
                raise xml.error("m_id", what, "name markables by their m_id", at=relation)
        target, within = markables[targets[0]], relation.tag.startswith("INTRA")
        if not within and not target.get("instance_id"):
            what = f"missing in the markable {_mark(target)}, the target of {name}"
            raise xml.error("instance_id", what, _RELEASE, at=target)
        for source in sources:
            if source in clusters:
                what = f"the mention {_mark(markables[source])} is in two relations"
                raise xml.error("source", what, "leave it in one of them", at=relation)
            own = f"{xml.path.stem}:intra:{relation.get('r_id')}:{_kind(markables[source])}"
            clusters[source] = own if within else target.attrib["instance_id"]
    return clusters


def _kind(markable: Element) -> Kind:
    return "event" if markable.tag.startswith(("ACTION", "NEG_ACTION")) else "entity"
