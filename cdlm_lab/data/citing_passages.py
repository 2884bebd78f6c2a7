"""Passages around citations instead of whole papers, as S2ORC's pairs have a section that cites (Zhou et al.
2020, "CDA", section 4): they fit models that read both documents at once.

Sections are not marked in every collection, so a passage is a run of sentences of a given length. Where in it
the citation stands is drawn, lest its place gives it away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from cdlm_lab.data.document_links import DocumentLink
from cdlm_lab.data.document_pairs import PairDocument, check_positions


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
