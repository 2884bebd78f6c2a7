"""Tagged documents in sequences that an encoder has room for (Joerke et al. 2020, "Doc-ARC", section 3).

"All labeled sequences are kept at their original length [...]. All unlabeled (context) sequences longer than
256 tokens are partitioned into chunks". A labelled sentence can be too long as well: it is cut in the same
way, and the tags of its parts are joined again before they are scored. A single word that is too long, as an
address may be, becomes a sequence by itself, of which the encoders read the first pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cdlm_lab.data.tagged_documents import TaggedDocument, TaggedSentence


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitDocument:
    """A document whose long sentences are cut.

    Attributes:
        document: its sentences are the sequences; the words of the original in their order, none missing.
            The tags are those of the original too, so the later part of a span that was cut starts with `I-`.
        origin: of each sequence the number of the sentence that it is, or is a part of.
        shortened: how many words have more pieces than a sequence may; only their first ones are read.
    """

    document: TaggedDocument
    origin: tuple[int, ...]
    shortened: int = 0


def split_long(
    document: TaggedDocument,
    *,
    pieces: Callable[[Sequence[str]], list[int]],
    most_labelled: int,
    most_context: int,
) -> SplitDocument:
    """Cut sentences between words, so that no sequence has more pieces than it may.

    Each part takes as many words as it has room for. Tags are not looked at: where spans end is not known of
    a document that is yet to be tagged.

    Args:
        document: as a reader gives it.
        pieces: how many pieces of the tokenizer each word of a sentence has.
        most_labelled, most_context: pieces of a sequence, special tokens not counted.

    Raises:
        ValueError: a limit below 1; a sentence without words, or with another number of tags or of what
            `pieces` gives.

    Example: with room for 4 pieces, words of 2, 1, 2 and 3 give sequences of two words, one and one.
    """
    for name, limit in (("most_labelled", most_labelled), ("most_context", most_context)):
        if limit < 1:
            raise ValueError(f"{name} is {limit}; it must be at least 1")
    sequences: list[TaggedSentence] = []
    origin: list[int] = []
    shortened = 0
    for number, sentence in enumerate(document.sentences):
        where = f"document {document.id}, sentence {number}"
        most = most_context if sentence.tags is None else most_labelled
        sizes = _sizes(sentence, pieces, where)
        shortened += sum(size > most for size in sizes)
        parts = list(_parts(sentence, sizes, most))
        sequences += parts
        origin += [number] * len(parts)
    return SplitDocument(
        document=TaggedDocument(id=document.id, sentences=tuple(sequences)),
        origin=tuple(origin),
        shortened=shortened,
    )


def joined(split: SplitDocument, tags: Sequence[Sequence[str]]) -> list[list[str]]:
    """Tags of the labelled sentences of the original, from those of the labelled sequences, in order.

    Raises:
        ValueError: tags for another number of sequences, or of words of one.
    """
    labelled = split.document.labelled
    if len(tags) != len(labelled):
        raise ValueError(
            f"document {split.document.id} has {len(labelled)} labelled sequences, but there are tags of "
            f"{len(tags)}"
        )
    found: dict[int, list[str]] = {}
    for number, given in zip(labelled, tags, strict=True):
        words = len(split.document.sentences[number].words)
        if len(given) != words:
            raise ValueError(
                f"document {split.document.id}, sequence {number} has {words} words, but there are tags of "
                f"{len(given)}"
            )
        found.setdefault(split.origin[number], []).extend(given)
    return list(found.values())


def _sizes(sentence: TaggedSentence, pieces: Callable[[Sequence[str]], list[int]], where: str) -> list[int]:
    """Pieces of each word of a sentence that is one."""
    words = len(sentence.words)
    if not words:
        raise ValueError(f"{where} has no words; leave it out when reading")
    if sentence.tags is not None and len(sentence.tags) != words:
        raise ValueError(f"{where} has {words} words, but {len(sentence.tags)} tags")
    sizes = pieces(sentence.words)
    if len(sizes) != words:
        raise ValueError(f"{where} has {words} words, but `pieces` gives numbers for {len(sizes)}")
    return sizes


def _parts(sentence: TaggedSentence, sizes: Sequence[int], most: int) -> Iterator[TaggedSentence]:
    """The sentence itself if there is room for it, else its parts."""
    edges, room = [0], most
    for place, size in enumerate(sizes):
        if size > room and place > edges[-1]:
            edges.append(place)
            room = most
        room -= size
    if len(edges) == 1:
        yield sentence
        return
    for first, stop in pairwise([*edges, len(sizes)]):
        tags = None if sentence.tags is None else sentence.tags[first:stop]
        yield TaggedSentence(words=sentence.words[first:stop], tags=tags)
