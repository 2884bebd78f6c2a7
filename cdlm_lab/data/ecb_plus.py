"""ECB+ (Cybulska and Vossen 2014): events and entities that corefer within and across documents.

Folder: `ECB+/<topic>/<topic>_<number>ecb[plus].xml` and, beside it, `ECBplus_coreference_sentences.csv`,
which names the sentences whose annotation was checked ("validated"). Topics are split as in appendix A.2 of
the CDLM paper (topics 15 and 17 do not exist). Sentence 0 of the `ecbplus` files is the address of the page,
cut into tokens; it is left out, as are tokens of white space alone (31_10ecbplus 979, 9_3ecbplus 30,
9_4ecbplus 32).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, groupby
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from cdlm_lab.data.files import DataError, entries, read_table, read_text
from cdlm_lab.data.records import (
    Cluster,
    CoreferenceDocument,
    CoreferenceMention,
    Document,
    Kind,
    Split,
    TokenSpan,
    Topic,
    split_named,
)

_RELEASE = "copy the file again from the official release"
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EcbXml:
    """A parsed file of the corpus."""

    path: Path
    source: str
    root: Element

    def error(self, what: str, remedy: str, *, field: str, mark: str = "") -> DataError:
        """A message, to be raised, about the line in which `mark` first stands."""
        line = self.source[: max(0, self.source.find(mark))].count("\n") + 1
        return DataError(self.path, what, remedy, line=line, field=field)

    def sentence(self, token: Element) -> int:
        """Number of the sentence that a token belongs to."""
        number = token.get("sentence", "")
        if _NUMBER.fullmatch(number):
            return int(number)
        mark = f't_id="{token.get("t_id")}"'
        what = f"{number!r} of the token {mark} is not a number" if number else f"missing in the token {mark}"
        raise self.error(what, 'write the number from 0, as in sentence="3"', field="sentence", mark=mark)


def read_ecb_xml(path: Path) -> EcbXml:
    """Parse a file without expanding or fetching anything."""
    source = read_text(path)
    try:
        return EcbXml(path=path, source=source, root=fromstring(source))
    except ParseError as error:
        line, column = error.position
        raise DataError(
            path, f"not XML ({error})", _RELEASE, line=line, field=f"column {column + 1}"
        ) from None
    except DefusedXmlException as error:
        remedy = "remove the DOCTYPE: the corpus has none"
        line = source[: max(0, source.find("<!DOCTYPE"))].count("\n") + 1
        what = f"the XML defines entities ({error})"
        raise DataError(path, what, remedy, line=line, field="DOCTYPE") from None


TOPICS: dict[Split, frozenset[int]] = {
    "train": frozenset([1, 3, 4, *range(6, 12), 13, 14, 15, 16, 17, 19, 20, 22, *range(24, 34)]),
    "validation": frozenset([2, 5, 12, 18, 21, 23, 34, 35]),
    "test": frozenset(range(36, 46)),
}
_FILE_NAME = re.compile(r"(\d+)_(\d+)(ecb|ecbplus)\.xml")
_NAME_REMEDY = "keep the official names, <topic>/<topic>_<number>ecb.xml or ...ecbplus.xml, topics 1 to 45"


def ecb_plus_files(path: str | Path, *, split: Split | None = None) -> list[Path]:
    """The XML files of the topics of `split` (None: of all) by topic, half and number; [] if there are
    none."""
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


def read_ecb_plus_topics(
    path: str | Path, *, split: Split | None = None, by_topic: bool = False
) -> Iterator[Cluster]:
    """Clusters of plain text for pre-training, in order of topic; `split` None for those of every split.

    A cluster is a sub-topic, "1ecb" or "1ecbplus": the two halves of a topic describe different events of the
    same kind. `by_topic` makes one cluster of both, "1". Tokens are joined by spaces, one sentence a line.
    """
    files = ecb_plus_files(path, split=split)
    if not files:
        what = f"no ECB+ files for the split {split}" if split else "no ECB+ files"
        raise DataError(path, what, _NAME_REMEDY, field="folder")
    for cluster_id, members in groupby(files, key=lambda file: _cluster_id(file, by_topic=by_topic)):
        yield Cluster(id=cluster_id, documents=tuple(_plain_document(file) for file in members))


def _cluster_id(file: Path, *, by_topic: bool) -> str:
    topic, half, _ = _key(file)
    return str(topic) if by_topic else f"{topic}{half}"


def _key(file: Path) -> tuple[int, str, int]:
    """(topic, half, number) of a file."""
    match = _FILE_NAME.fullmatch(file.name)
    topic = int(match[1]) if match else 0
    if not match or match[1] != file.parent.name or not any(topic in topics for topics in TOPICS.values()):
        raise DataError(file, "not the name of an ECB+ file", _NAME_REMEDY, field="file name")
    return topic, match[3], int(match[2])


def _plain_document(file: Path) -> Document:
    xml = read_ecb_xml(file)
    lines: list[str] = []
    for sentence, tokens in groupby(xml.root.iter("token"), xml.sentence):
        if sentence or not file.stem.endswith("plus"):
            lines.append(" ".join(token.text.strip() for token in tokens if token.text))
    if not any(lines):
        raise xml.error("no token has any text", _RELEASE, field="token")
    starts = accumulate((len(line) + 1 for line in lines), initial=0)
    spans = tuple((start, start + len(line)) for start, line in zip(starts, lines, strict=False))
    return Document(id=file.stem, text="\n".join(lines), sentences=spans)


CSV_NAME = "ECBplus_coreference_sentences.csv"
_ROOT_REMEDY = f"give the folder that holds ECB+ and {CSV_NAME}"
_CSV_HEADER = ["Topic", "File", "Sentence Number"]
# What the cells of a line must be, and an example.
_CELLS = (
    ("Topic", re.compile(r"[0-9]{1,2}"), "36"),
    ("File", re.compile(r"[0-9]+(ecb|ecbplus)"), "1ecbplus"),
    ("Sentence Number", re.compile(r"[0-9]{1,9}"), "3"),
)
_TOKEN_REMEDY = "name tokens of the document by their t_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """Tokens of a file: `places` has sentence number and index (None: no text) of each t_id, `sentences` the
    spans by sentence number."""

    tokens: tuple[str, ...]
    places: dict[str, tuple[int, int | None]]
    sentences: dict[int, TokenSpan]


def read_ecb_plus(root: str | Path, split: str, *, addresses: bool = False) -> Iterator[Topic]:
    """The topics of a split (train, dev or test), in order, one at a time.

    What counts is what the literature counts: the mentions of validated sentences, in the documents that have
    such sentences. Markables whose tag starts with ACTION or NEG_ACTION are events, all others entities.

    - A mention of separate tokens (52 in validated sentences) becomes the span from the first to the last.
    - U+FFFD, which stands in some words for a lost character, is taken out of them.
    - A cross-document cluster is named by its instance ("HUM17642391151298735"). Seven instances occur in two
      topics; each stays one cluster (`gold_clusters` can cut it). A cluster within a document is named by its
      relation and the kind of its mentions, as four such relations link an event to an entity; a mention
      without relations, by itself.

    `root`: the folder that holds `ECB+` and the list of validated sentences, or the one around it.
    `addresses`: keep the address of the page as sentence 0 of the `ecbplus` documents, as the code of the
    paper does.
    """
    return _read_topics(Path(root), split_named(split), addresses=addresses)


def _read_topics(root: Path, split: Split, *, addresses: bool) -> Iterator[Topic]:
    folder = _corpus_folder(root)
    files = {file.stem: file for file in ecb_plus_files(folder, split=split)}
    if not files:
        what = f"no ECB+ files for the split {split}"
        raise DataError(folder, what, "copy the folders of its topics", field="folder")
    validated = _read_validated(folder / CSV_NAME, files, topics=TOPICS[split])
    for topic, members in groupby(files.items(), key=lambda item: item[1].parent):
        documents = tuple(
            _annotated_document(file, validated[name], csv=folder / CSV_NAME, addresses=addresses)
            for name, file in members
            if name in validated
        )
        if not any(document.mentions for document in documents):
            remedy = f"annotate some, or list the sentences in {CSV_NAME}"
            raise DataError(topic, "no mention in a validated sentence", remedy, field="folder")
        try:
            yield Topic(id=topic.name, documents=documents)
        except ValueError as error:
            remedy = "correct the instance_id that one of its relations leads to"
            raise DataError(topic, str(error), remedy, field="instance_id") from None


def _corpus_folder(root: Path) -> Path:
    if not root.is_dir():
        raise DataError(root, "there is no such folder", _ROOT_REMEDY, field="folder")
    folder = next((path for path in (root, root / "ECB+_LREC2014") if (path / "ECB+").is_dir()), None)
    if folder is None:
        raise DataError(root, "there is no folder ECB+ in it", _ROOT_REMEDY, field="folder")
    if not (folder / CSV_NAME).is_file():
        what = f"{CSV_NAME} is missing, which names the sentences that were annotated"
        raise DataError(folder, what, "copy it from the official release", field="folder")
    return folder


def _read_validated(
    csv: Path, files: dict[str, Path], *, topics: frozenset[int]
) -> dict[str, dict[int, int]]:
    """Document -> number of a validated sentence -> line that lists it, for the documents of `topics`."""
    validated: dict[str, dict[int, int]] = {}
    for line, cells in read_table(
        csv, columns=3, row="it as 36,1ecbplus,3", header=_CSV_HEADER, separator=","
    ):
        for cell, (field, form, example) in zip(cells, _CELLS, strict=True):
            if not form.fullmatch(cell):
                raise DataError(csv, f"{cell!r} is none", f"write it as {example}", line=line, field=field)
        topic, file, sentence = cells
        if not any(int(topic) in known for known in TOPICS.values()):
            what = f"{topic} is not a topic of ECB+"
            raise DataError(csv, what, "the topics are 1 to 45", line=line, field="Topic")
        if int(topic) in topics:
            document = f"{topic}_{file}"
            if document not in files:
                remedy = "copy the whole of the official release, or delete the line"
                raise DataError(csv, f"there is no {topic}/{document}.xml", remedy, line=line, field="File")
            validated.setdefault(document, {}).setdefault(int(sentence), line)
    return validated


def _annotated_document(
    file: Path, validated: dict[int, int], *, csv: Path, addresses: bool
) -> CoreferenceDocument:
    xml = read_ecb_xml(file)
    text = _read_tokens(xml, drop_address=file.stem.endswith("plus") and not addresses)
    for number, line in validated.items():
        if number not in text.sentences:
            what = f"{file.stem} has no sentence {number} with text"
            remedy = "correct the number, or delete the line"
            raise DataError(csv, what, remedy, line=line, field="Sentence Number")
    index = {number: position for position, number in enumerate(text.sentences)}
    mentions = _read_mentions(xml, text, {number: index[number] for number in validated})
    return CoreferenceDocument(
        id=file.stem,
        topic=file.parent.name,
        subtopic=f"{file.parent.name}_{'ecbplus' if file.stem.endswith('plus') else 'ecb'}",
        tokens=text.tokens,
        sentences=tuple(text.sentences.values()),
        validated=tuple(sorted(index[number] for number in validated)),
        mentions=tuple(sorted(mentions, key=lambda mention: mention.tokens)),
    )


def _read_tokens(xml: EcbXml, *, drop_address: bool) -> _Text:
    tokens: list[str] = []
    places: dict[str, tuple[int, int | None]] = {}
    sentences: dict[int, TokenSpan] = {}
    last = 0
    for token in xml.root.iter("token"):
        identifier, sentence = token.get("t_id", ""), xml.sentence(token)
        mark = f't_id="{identifier}"'
        if not identifier or identifier in places:
            what = f"a second token {mark}" if identifier else "missing in a token"
            raise xml.error(what, "number the tokens from 1", field="t_id", mark=mark)
        if sentence < last:
            what = f"{sentence} of the token {mark} comes after {last}"
            raise xml.error(what, "put the tokens in order", field="sentence", mark=mark)
        last = sentence
        word = (token.text or "").replace("\ufffd", "").strip()
        if not word or (drop_address and sentence == 0):
            places[identifier] = (sentence, None)
            continue
        places[identifier] = (sentence, len(tokens))
        start, _ = sentences.get(sentence, (len(tokens), 0))
        tokens.append(word)
        sentences[sentence] = (start, len(tokens))
    if not tokens:
        raise xml.error("no token has any text", _RELEASE, field="token")
    return _Text(tokens=tuple(tokens), places=places, sentences=sentences)


def _read_mentions(xml: EcbXml, text: _Text, validated: dict[int, int]) -> Iterator[CoreferenceMention]:
    """Mentions whose first token is in one of the `validated` sentences (number -> index)."""
    markables: dict[str, Element] = {}
    for markable in _section(xml, "Markables"):
        identifier = markable.get("m_id", "")
        mark = f'm_id="{identifier}"'
        if not identifier or identifier in markables:
            what = f"a second markable {mark}" if identifier else f"missing in a markable {markable.tag}"
            raise xml.error(what, "number the markables of a file", field="m_id", mark=mark)
        markables[identifier] = markable
    clusters = _read_relations(xml, markables)
    for identifier, markable in markables.items():
        if "RELATED_TO" in markable.attrib:  # it names an instance, and stands nowhere in the text
            continue
        sentence, span = _anchors(xml, markable, text)
        if sentence not in validated:
            continue
        if span is None:
            what = f'the mention m_id="{identifier}" has tokens without text or in two sentences'
            raise xml.error(what, _TOKEN_REMEDY, field="token_anchor", mark=f'm_id="{identifier}"')
        name = f"{xml.path.stem}:{identifier}"
        yield CoreferenceMention(
            id=name,
            document=xml.path.stem,
            tokens=span,
            sentence=validated[sentence],
            kind=_kind(markable),
            cluster=clusters.get(identifier, name),
            tag=markable.tag,
        )


def _anchors(xml: EcbXml, markable: Element, text: _Text) -> tuple[int, TokenSpan | None]:
    """Number of the sentence of the first token, and the span; None if it is none within the sentence."""
    mark = f'm_id="{markable.get("m_id")}"'
    anchors = [anchor.get("t_id", "") for anchor in markable]
    if not anchors:
        raise xml.error(f"the mention {mark} has no tokens", _TOKEN_REMEDY, field="token_anchor", mark=mark)
    for anchor in anchors:
        if anchor not in text.places:
            what = f"the mention {mark} names the token {anchor!r}, which is not there"
            raise xml.error(what, _TOKEN_REMEDY, field="token_anchor", mark=mark)
    places = [text.places[anchor] for anchor in anchors]
    positions = [position for _, position in places if position is not None]
    sentence = places[0][0]
    if len(positions) < len(places) or any(other != sentence for other, _ in places):
        return sentence, None
    return sentence, (min(positions), max(positions) + 1)


def _read_relations(xml: EcbXml, markables: dict[str, Element]) -> dict[str, str]:
    """Mention -> name of its cluster, for the mentions that are in a relation."""
    clusters: dict[str, str] = {}
    for relation in _section(xml, "Relations"):
        mark = f'r_id="{relation.get("r_id")}"'
        targets = [end.get("m_id", "") for end in relation if end.tag == "target"]
        sources = [end.get("m_id", "") for end in relation if end.tag == "source"]
        if len(targets) != 1:
            what = f"the relation {mark} has {len(targets)} targets"
            raise xml.error(what, "give it one: the markable that names it", field="target", mark=mark)
        for end in (*sources, *targets):
            if end not in markables:
                what = f"the relation {mark} names the markable {end!r}, which is not there"
                raise xml.error(what, "name markables by their m_id", field="m_id", mark=mark)
        intra, instance = relation.tag.startswith("INTRA"), markables[targets[0]].get("instance_id")
        if not intra and not instance:
            what = f'missing in the markable m_id="{targets[0]}", the target of the relation {mark}'
            raise xml.error(what, _RELEASE, field="instance_id", mark=f'm_id="{targets[0]}"')
        for source in sources:
            if source in clusters:
                what = f'the mention m_id="{source}" is in two relations'
                raise xml.error(what, "leave it in one of them", field="source", mark=mark)
            within = f"{xml.path.stem}:intra:{relation.get('r_id')}:{_kind(markables[source])}"
            clusters[source] = within if intra else str(instance)
    return clusters


def _kind(markable: Element) -> Kind:
    return "event" if markable.tag.startswith(("ACTION", "NEG_ACTION")) else "entity"


def _section(xml: EcbXml, name: str) -> Element:
    section = xml.root.find(name)
    if section is None:
        raise xml.error(f"there is no <{name}>", _RELEASE, field=name)
    return section
