"""Documents as paragraphs of sentences, for paragraph pre-training (Di Liello et al. 2022, "MSPP", section
3.4: sentences of one paragraph are told from those of others).

A paragraph ends at a line break, or several in a row. The paper does not say how it cut texts; its released
code cuts at blank lines, of which many corpora here have none. Sentences are those of the source where
it gives them, and sentencex's elsewhere. A sentence of fewer than `LEAST_CHARACTERS` characters is dropped,
as in the released code, and with the last of its sentences a paragraph. (That code also drops paragraphs
under 60 characters and documents under 200.) A title is no paragraph.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from cdlm_lab.data.corpus import open_corpus
from cdlm_lab.data.pair_csv import split_sentences
from cdlm_lab.data.records import Document
from cdlm_lab.data.splits import Split

LEAST_CHARACTERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraphed:
    """A document as paragraphs of sentences, both in order; no paragraph is empty, but there may be none."""

    id: str
    paragraphs: tuple[tuple[str, ...], ...]


def paragraph_documents(corpus: str, split: Split, *, size: int = 0, seed: int = 0) -> Iterator[Paragraphed]:
    """The documents of a corpus's clusters, one at a time, those without a paragraph too.

    Args:
        corpus, split, size, seed: as of `corpus.open_corpus`; size counts clusters.

    Raises:
        ValueError, DataError: as `corpus.open_corpus`.
    """
    clusters = open_corpus(corpus, split=split, size=size, seed=seed)
    return (paragraphed(document) for cluster in clusters for document in cluster.documents)


def paragraphed(document: Document) -> Paragraphed:
    """The paragraphs of a text, white space made single; a sentence over a line break stays where it starts.

    The title is left out if the text begins with it as a line of its own.

    Example:
        >>> text = "Fire in mill\\nA mill burned down. Nobody was hurt in it.\\n\\nToo short.\\n"
        >>> paragraphed(Document(id="a", title="Fire in mill", text=text)).paragraphs
        (('Nobody was hurt in it.',),)
    """
    body = _after_title(document)
    found = _given_sentences(document, body) if document.sentences else _split_lines(document.text[body:])
    paragraphs = (
        tuple(plain for sentence in sentences if len(plain := " ".join(sentence.split())) >= LEAST_CHARACTERS)
        for sentences in found
    )
    return Paragraphed(id=document.id, paragraphs=tuple(filter(None, paragraphs)))


def _after_title(document: Document) -> int:
    """Where the text goes on after a first line that is the title; 0 if it is not."""
    title, text = document.title, document.text
    return len(title) if title and (text == title or text.startswith(f"{title}\n")) else 0


def _split_lines(text: str) -> Iterator[list[str]]:
    # At "\n" alone: news texts hold U+2028 and U+0085 within sentences.
    return (split_sentences(line) for line in text.split("\n"))


def _given_sentences(document: Document, body: int) -> Iterator[list[str]]:
    """The source's sentences that start at `body` or later, by the line in which they start."""
    text = document.text
    breaks = [place for place, character in enumerate(text) if character == "\n"]
    spans = (span for span in document.sentences if span[0] >= body)
    for _, line in groupby(spans, key=lambda span: bisect_right(breaks, span[0])):
        yield [text[start:end] for start, end in line]
