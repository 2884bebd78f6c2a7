"""Coreference in CorefUD's files (Nedoluzhko et al. 2022, version 1.0 and later), by Udapi.

CorefUD is CoNLL-U whose last column has the entities that begin and end at a word, `Entity=(e1-person(e2)`.
Udapi (Popel et al. 2017) reads and writes it. It is an extra of this package, `corefud`, and is imported when
the first such file is read or written.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from cdlm_lab.data import files
from cdlm_lab.data.convert.conll import (
    Found,
    conll_files,
    documents_by_id,
    members_by_document,
    plain_cell,
)
from cdlm_lab.data.coreference import document_of_spans, kinds_told
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import (
    KINDS,
    CoreferenceDocument,
    CoreferenceMention,
    Kind,
    PassedOver,
    TokenSpan,
    Topic,
)

PIECES = "mention in pieces, read from its first to its last word"
_META = re.compile(r"^ meta::(topic|subtopic) = (.+)$", re.MULTILINE)
_WARNED = {  # what a warning of Udapi holds -> what is counted
    "not closed": "mention that does not end",
    "etype mismatch": "mention of another type than its entity, whose first type counts",
}


def corefud_files(corpus: Path) -> dict[str, Found]:
    """Split -> its name and its files, which end in `.conllu`, as `conll_files` finds them."""
    return conll_files(corpus, (".conllu",))


def _new_document(path: Path) -> Any:
    try:
        from udapi.core.document import Document
    except ImportError:
        remedy = 'install the extra "corefud": pip install "cdlm_lab[corefud]"'
        raise DataError(path, "CorefUD needs the package udapi", remedy, field="corpus") from None
    return Document()


# ---- read ----


def read_corefud(
    found: Found, *, passed_over: PassedOver, kind: Kind | None = None
) -> Iterator[CoreferenceDocument]:
    """Yield the documents of a split; `# newdoc id` begins each. An entity is one in its file, or, where the
    file says `GRP`, in its document. If a file has entities in several documents, these are one topic, unless
    lines `# meta::topic = 36` name their topics; else each document is a topic of its own.

    A mention in pieces becomes the span from its first to its last word; words that are not there (empty
    nodes) are left out. Both are counted, as are mentions of such words alone. Types of entities become tags,
    and say what is an event (`kinds_told`). `kind`: only these mentions; None = all. Raises DataError if
    Udapi is not installed or does not accept a file, or if no document has a mention.
    """
    name, paths = found
    seen: dict[str, Path] = {}
    mentions = 0
    for path in paths:
        document = _new_document(path)
        text = files.read_text(path).replace("\r\n", "\n").strip("\n")
        with _warnings_counted(path, passed_over):
            try:
                document.from_conllu_string(text)
                entities = list(document.coref_entities)
            except Exception as error:  # Udapi raises many kinds
                what = f"Udapi cannot read it ({(str(error).splitlines() or [type(error).__name__])[0]})"
                raise DataError(path, what, "write CoNLL-U with Entity= in the last column") from None
        prefix = f"{files.plain_stem(path)}:" if len(paths) > 1 else ""
        for one in _documents(path, name, document, entities, prefix, kind, passed_over):
            if seen.setdefault(one.id, path) is not path:
                passed_over.add("document that was read already", f"{path}: {one.id}")
                continue
            mentions += len(one.mentions)
            yield one
    if not mentions:
        what = f"no {kind or ''} mention in {len(seen)} documents".replace("  ", " ")
        raise DataError(paths[0], what, "write them as Entity=(e1) in the last column", field="Entity")


@contextmanager
def _warnings_counted(path: Path, passed_over: PassedOver) -> Iterator[None]:
    """Count what Udapi logs in place of printing it."""

    class Counting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said = record.getMessage()
            reason = next((what for part, what in _WARNED.items() if part in said), "warning of Udapi")
            passed_over.add(reason, f"{path}: {said}")

    root, handler = logging.getLogger(), Counting()
    before, root.handlers = root.handlers, [handler]
    try:
        yield
    finally:
        root.handlers = before


def _documents(
    path: Path,
    split: str,
    document: Any,
    entities: list[Any],
    prefix: str,
    kind: Kind | None,
    passed_over: PassedOver,
) -> Iterator[CoreferenceDocument]:
    """The documents of a file; `prefix`: of the names of its entities."""
    groups: list[list[Any]] = []  # the trees of each document
    for tree in document.trees:
        if tree.newdoc or not groups:
            groups.append([])
        groups[-1] += [tree] if tree.descendants else []
    place = {
        id(node): (number, at)
        for number, trees in enumerate(groups)
        for at, node in enumerate(node for tree in trees for node in tree.descendants)
    }
    kinds = kinds_told({entity.etype or "" for entity in entities}, kind)
    given: dict[int, list[tuple[TokenSpan, Kind, str, str]]] = {}  # span, kind, cluster, tag
    shared = False
    for entity in entities:
        tag, members = entity.etype or "", set()
        for mention in entity.mentions:
            words = [place[id(word)] for word in mention.words if id(word) in place]
            if not words:
                passed_over.add("mention of words that are not there alone", f"{path}: {entity.eid}")
                continue
            (number, first), (_, last) = min(words), max(words)
            members.add(number)
            if last - first >= len(words):
                passed_over.add(PIECES, f"{path}: {entity.eid}, word {first} of its document")
            if kind in (None, kinds[tag]):
                one = ((first, last + 1), kinds[tag], prefix + entity.eid, tag)
                given.setdefault(number, []).append(one)
        shared |= len(members) > 1
    for number, trees in enumerate(groups):
        if not trees:
            passed_over.add("document without words", str(path))
            continue
        yield _document(path, number, trees, sorted(given.get(number, [])), split if shared else "")


def _document(
    path: Path, number: int, trees: list[Any], given: list[tuple[TokenSpan, Kind, str, str]], topic: str
) -> CoreferenceDocument:
    named = trees[0].newdoc
    name = named if isinstance(named, str) else f"{files.plain_stem(path)}{f':{number}' if number else ''}"
    meta = dict(_META.findall(trees[0].comment))
    topic = meta.get("topic") or topic or name
    borders = list(accumulate((len(tree.descendants) for tree in trees), initial=0))
    mentions = [(f"{name}:{at}", *mention) for at, (*mention, _) in enumerate(given)]
    try:
        return document_of_spans(
            mentions,  # type: ignore[arg-type]
            id=name,
            topic=topic,
            subtopic=meta.get("subtopic") or topic,
            tokens=[node.form.strip() or "_" for tree in trees for node in tree.descendants],
            sentences=list(pairwise(borders)),
            validated=range(len(trees)),
            tags={f"{name}:{at}": tag for at, (*_, tag) in enumerate(given) if tag not in KINDS},
        )
    except ValueError as error:
        raise DataError(path, str(error), "correct the document", field=name) from None


# ---- written ----


def write_corefud(
    path: str | Path, topics: Iterable[Topic], clusters: Mapping[str, Iterable[CoreferenceMention]]
) -> None:
    """Write clusters of mentions in the documents of `topics` as CorefUD, so that `read_corefud` reads the
    same: entities "e1", "e2", ..., of the type of their first mention's tag or kind; the topic of each
    document in a line `# meta::topic`. Words hang on the first of their sentence, as nothing is parsed.

    Raises ValueError for what the format cannot say, as `write_conll`, and DataError without Udapi.
    """
    made = _new_document(Path(path))
    documents = documents_by_id(topics)
    members = members_by_document(clusters, documents)
    entities: dict[str, Any] = {}
    nodes = {name: _add_document(made, document) for name, document in documents.items()}
    for name, some in members.items():
        for mention, cluster in some:
            if cluster not in entities:
                etype = (mention.tag or mention.kind).replace("-", "_")
                entities[cluster] = made.create_coref_entity(eid=f"e{len(entities) + 1}", etype=etype)
            words = nodes[name][slice(*mention.tokens)]
            entities[cluster].create_mention(head=words[0], words=words)
    text = made.to_conllu_string()
    with files.replaced_file(Path(path)) as file:
        file.write(text)


def _add_document(made: Any, document: CoreferenceDocument) -> list[Any]:
    """Add a document, and return its words as nodes."""
    names = {"topic": document.topic, "subtopic": document.subtopic}
    heading = "".join(f" meta::{what} = {plain_cell(name, what)}\n" for what, name in names.items())
    nodes: list[Any] = []
    for start, end in document.sentences:
        tree = made.create_bundle().create_tree()
        if not start:
            tree.newdoc = plain_cell(document.id, "document")
            tree.comment = f"$NEWDOC\n$GLOBAL.ENTITY\n{heading}"
        parent = tree
        for number in range(start, end):
            word = plain_cell(document.tokens[number], f"token {number} of document {document.id}")
            node = parent.create_child(form=word, deprel="root" if parent is tree else "dep")
            joined = document.offsets[number : number + 2]
            if len(joined) == 2 and joined[0][1] == joined[1][0]:
                node.misc["SpaceAfter"] = "No"
            nodes.append(node)
            parent = nodes[start]
    return nodes
