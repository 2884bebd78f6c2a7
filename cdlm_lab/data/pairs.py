"""Document pairs made from links in a collection: links are related pairs, unlinked documents unrelated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import Annotated

from pydantic import AfterValidator, AliasChoices, Field

from cdlm_lab.data import files
from cdlm_lab.data.files import DataError, FieldFault, Fields, FilledText, JsonRecord, Text
from cdlm_lab.data.native import pair_document
from cdlm_lab.data.records import DocumentLink, DocumentPair, PairDocument, check_positions
from cdlm_lab.data.rows import Row, Rows, rows_of
from cdlm_lab.errors import check_least


def pairs_from_links(
    papers: Mapping[str, PairDocument],
    links: Sequence[DocumentLink],
    *,
    negatives_per_positive: int = 1,
    seed: int = 0,
    known: Iterable[DocumentLink] = (),
) -> Iterator[DocumentPair]:
    """Yield the related pair of each link, in order, followed by its unrelated pairs with the same first one.

    The second document of an unrelated pair is the second document of another link, is not linked with the
    first in either direction, and differs between the unrelated pairs of a link. If any document could be
    drawn, being cited at all would reveal the related pairs; so each is drawn as often as it is cited. The id
    of a related pair is "citing>cited", that of its unrelated ones "citing>other#citing>cited". Draws depend
    on the seed, the link and the documents, not on the order of the links. `known`: further links, whose
    documents must not form unrelated pairs. Raises ValueError if too few documents are left to draw from.
    """
    check_least(0, negatives_per_positive=negatives_per_positive)
    _check_links(papers, links)
    related: defaultdict[str, set[str]] = defaultdict(set)
    for link in [*links, *known]:
        for one in link.documents:
            related[one].update(link.documents)
    cited = sorted(link.second for link in links)  # each document as often as it is cited
    for link in links:
        first, second = papers[link.first], papers[link.second]
        pair = DocumentPair(
            id=link.id, first=first, second=second, related=True, aligned=link.in_first, cluster=link.first
        )
        yield pair
        others = _drawn(cited, related[link.first], Random(f"{seed}/{link.id}"))
        drawn = list(islice(others, negatives_per_positive))
        if len(drawn) < negatives_per_positive:
            remedy = "lower negatives_per_positive, or give more links"
            raise ValueError(f"link {link.id}: {len(drawn)} documents to draw from; {remedy}")
        for other in drawn:
            name = f"{link.first}>{other}#{link.id}"
            yield replace(pair, id=name, second=papers[other], related=False, aligned=())


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


def _drawn(names: Sequence[str], avoided: Collection[str], rng: Random) -> Iterator[str]:
    """The names in the order of `rng.sample(names, len(names))`, each once and none that is `avoided`; they
    are drawn one by one, as few of them are needed."""
    seen, moved = set(avoided), dict[int, int]()  # place -> place of the name that stands there now
    for left in range(len(names), 0, -1):
        place = rng.randrange(left)
        name = names[moved.get(place, place)]
        moved[place] = moved.get(left - 1, left - 1)
        if name not in seen:
            seen.add(name)
            yield name


DOCUMENTS, LINKS = "documents.jsonl", "links.jsonl"


def _sentence(text: str) -> str:
    if not (plain := " ".join(text.split())):
        raise FieldFault("it is empty", "leave it out")
    return plain


class _Text(Fields):
    id: FilledText
    text: FilledText


class _Sentences(Fields):
    id: FilledText
    sentences: list[Annotated[Text, AfterValidator(_sentence)]] = Field(min_length=1)


class _Link(Fields):
    first: Text
    second: Text
    sentences: list[int] | None = Field(
        None, min_length=1, validation_alias=AliasChoices("sentences", "in_first")
    )
    source: Text = LINKS


def collection_rows(folder: str | Path) -> dict[str, Rows]:
    """The rows of a user's own collection, as one split, from two files, plain or compressed; {} if the
    folder has no `documents.jsonl`.

        documents.jsonl   {"id": "a", "text": "We follow B. It is new."}
                          {"id": "b", "sentences": ["A title", "An earlier work."]}
        links.jsonl       {"first": "b", "second": "a", "sentences": [1]}
                          {"first": "a", "second": "b"}
    """
    paths = [files.present_file(folder, name) for name in (DOCUMENTS, LINKS)]
    if paths[0] and not paths[1]:
        remedy = f"put {DOCUMENTS} and {LINKS} into the folder"
        raise DataError(Path(folder) / LINKS, "no such file", remedy)
    return {"": lambda: chain.from_iterable(map(rows_of, paths))} if paths[0] else {}  # type: ignore[arg-type]


def read_collection(rows: Iterator[Row]) -> Iterator[PairDocument | DocumentLink]:
    """Yield documents and the links between them, whose documents come first.

    `sentences` of a link are the indices, from 0, of the sentences of the first document that link to the
    second, if known; the document must then be given as sentences, so that the indices are unambiguous.
    """
    documents: dict[str, PairDocument] = {}
    links: set[tuple[str, str]] = set()
    for row in rows:
        if "first" in row.fields:
            link = _link(row.checked(_Link), documents)
            if link.documents in links:
                raise row.error("second", "the same link is there already", "give each link once")
            links.add(link.documents)
            yield link
            continue
        given = row.checked(_Sentences if "sentences" in row.fields else _Text).fields
        if given.id in documents:
            raise row.error("id", f"{given.id!r} is there already", "give every document its own id")
        if isinstance(given, _Text):
            documents[given.id] = pair_document(given.id, given.text)
        else:
            documents[given.id] = PairDocument(id=given.id, sentences=tuple(given.sentences))
        yield documents[given.id]


def collected(
    some: Iterable[PairDocument | DocumentLink],
) -> tuple[dict[str, PairDocument], tuple[DocumentLink, ...]]:
    """The documents of a collection by id, and its links."""
    every = list(some)
    documents = {one.id: one for one in every if isinstance(one, PairDocument)}
    return documents, tuple(one for one in every if isinstance(one, DocumentLink))


def _link(record: JsonRecord[_Link], documents: Mapping[str, PairDocument]) -> DocumentLink:
    first, second, numbers = record.fields.first, record.fields.second, record.fields.sentences
    for field, name in (("first", first), ("second", second)):
        if name not in documents:
            raise record.error(field, f"there is no document {name!r}", "add it, or delete the line")
    if first == second:
        raise record.error("second", "a document linked with itself", "delete the line")
    if numbers and documents[first].offsets:
        what = f"document {first!r} is given as a text"
        raise record.error("sentences", what, "give it as sentences, so that their numbers are sure")
    count = len(documents[first].sentences)
    for place, number in enumerate(numbers or ()):
        if not 0 <= number < count:
            what = f"{number!r} is no sentence of {first!r}, which has {count}"
            raise record.error(f"sentences[{place}]", what, "count them from 0")
    in_first = tuple(sorted(set(numbers))) if numbers else None
    return DocumentLink(first=first, second=second, source=record.fields.source, in_first=in_first)


@dataclass(frozen=True, slots=True, kw_only=True)
class CitingPassages:
    """Passages of citing papers and openings of cited ones, with their links, for `pairs_from_links`."""

    # By id: passages, such as "C04-1089[12:24]" after the paper and its sentences, and openings, which have
    # the ids of their papers.
    documents: Mapping[str, PairDocument]
    links: tuple[DocumentLink, ...]  # from passages to openings, in the order of the original links
    known: tuple[DocumentLink, ...]  # from passages to all other papers that their papers are linked with
    paper_of: Mapping[str, str]  # id of a passage -> id of its paper


def citing_passages(
    papers: Mapping[str, PairDocument],
    links: Sequence[DocumentLink],
    *,
    length: int,
    opening: int,
    seed: int,
    known: Sequence[DocumentLink] = (),
) -> CitingPassages:
    """For each link whose citing sentences are known, replace the citing paper by a passage, as S2ORC's pairs
    have the citing section (Zhou et al. 2020, section 4): it fits models that read both documents at once.

    A passage is a run of `length` sentences (all if the paper is shorter). One of the citing sentences is
    drawn, then its position in the passage, uniformly as far as the paper's ends permit, lest the position
    reveal it. Draws depend on the seed and the link alone. `opening`: number of sentences from the start of
    the cited paper; 0 = all of them. `known`: more links of these papers, such as those of other splits.
    """
    if length < 1 or opening < 0:
        remedy = "a passage has at least 1 sentence, an opening 0 (= the whole paper) or more"
        raise ValueError(f"length is {length} and opening {opening}; {remedy}")
    neighbours: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for link in [*links, *known]:
        neighbours[link.first][link.second] = neighbours[link.second][link.first] = None
    documents: dict[str, PairDocument] = {}
    passages, others, paper_of = [], [], {}
    for link in links:
        if link.in_first is None:
            continue
        paper, cited = papers[link.first], papers[link.second]
        check_positions(f"link {link.id}", link.in_first, paper)
        rng, count = Random(f"{seed}/{link.id}"), len(paper.sentences)
        citing = rng.choice(link.in_first)
        start = rng.randint(max(0, citing - length + 1), max(0, min(citing, count - length)))
        end = min(start + length, count)
        passage = PairDocument(id=f"{paper.id}[{start}:{end}]", sentences=paper.sentences[start:end])
        documents[passage.id] = passage
        documents[cited.id] = replace(cited, sentences=cited.sentences[: opening or None])
        inside = tuple(number - start for number in link.in_first if start <= number < end)
        passages.append(replace(link, first=passage.id, in_first=inside))
        paper_of[passage.id] = paper.id
        for other in neighbours[paper.id]:
            if other != link.second:
                others.append(DocumentLink(first=passage.id, second=other, source=link.source))
    return CitingPassages(documents=documents, links=tuple(passages), known=tuple(others), paper_of=paper_of)
