"""From the corpus that notebook 07 names to documents with tags, in three splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path

import numpy as np

from cdlm_lab.data.tag_reading import TagReading
from cdlm_lab.data.tag_storyworld import read_storyworld_tags
from cdlm_lab.data.tagged_documents import TaggedDocument, labels_of
from cdlm_lab.data.tagged_folder import read_tagged_split
from cdlm_lab.parameters import ParameterError, check_choice, check_types
from cdlm_lab.progress import Progress

SPLITS = ("train", "dev", "test")
STORIES = {"train": 60, "dev": 20, "test": 20}  # of storyworld, where nothing else is said
STRAY = ("accept", "refuse")
DRAW = 0  # seed of the documents that are drawn
TaggedSplits = Mapping[str, tuple[TaggedDocument, ...]]


@dataclass(frozen=True, kw_only=True)
class TagCorpus:
    """Which documents are tagged.

    Attributes:
        corpus: `storyworld`, or a folder of `train`, `dev` and `test` in one of the forms of
            data/tagged_folder.py: Doc-ARC's, LitBank's, CoNLL's, JNLPBA's.
        train_documents, held_out_documents: at most so many are drawn of the training documents, and of those
            of dev and of test, always the same ones; 0 = all. A document of storyworld, which never ends, is
            a story, its first report labelled; 0 = 60 and 20 of them.
        most_context: sentences without labels that are kept of a document: those nearest to a labelled one,
            the earlier first; 0 = all.
        stray_tags: what happens to an `I-` that follows no span of its label: `accept` = it starts one, and
            the preview says how many there were; `refuse` = an error that names the line.
    """

    corpus: str = "storyworld"
    train_documents: int = 0
    held_out_documents: int = 0
    most_context: int = 0
    stray_tags: str = "accept"

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("train_documents", "held_out_documents", "most_context"):
            if getattr(self, name) < 0:
                raise ParameterError(f"{name} is {getattr(self, name)}; write 0 for all, or how many")
        check_choice(self, STRAY, "stray_tags")


@dataclass(frozen=True, kw_only=True)
class TaggedCorpus:
    """What was read.

    Attributes:
        documents: by split.
        mended: tags `I-` that followed no span of their label, by split.
        divided: sentences that were made documents, by split; see `data/tagged_folder.py`.
    """

    documents: TaggedSplits
    mended: Mapping[str, int] = field(default_factory=dict)
    divided: Mapping[str, int] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """Of all splits; one that train has not cannot be learned, and counts against everybody."""
        return labels_of(chain.from_iterable(self.documents.values()))


def read_tagged(settings: TagCorpus) -> TaggedCorpus:
    """Documents of train, dev and test.

    Raises:
        ParameterError: a corpus that is neither, or a split with less than two documents or without any span.
        DataError: as its reader.
    """
    documents, mended, divided = {}, {}, {}
    for split in SPLITS:
        reading = TagReading(stray=settings.stray_tags)
        found = tuple(
            _near_labels(one, settings.most_context) for one in _documents(settings, split, reading)
        )
        if len(found) < 2:
            raise ParameterError(
                f"corpus is {settings.corpus!r}, whose {split} has one document to read; it needs two: give "
                f"a file for each in {split}/ or a line -DOCSTART- before each in {split}.conll, and 0 or at "
                f"least 2 as {'train_documents' if split == 'train' else 'held_out_documents'}"
            )
        if not labels_of(found):
            raise ParameterError(
                f"corpus is {settings.corpus!r}, whose {split} has no span; all labelled words have the tag O"
            )
        documents[split], mended[split], divided[split] = found, reading.mended, reading.divided
    return TaggedCorpus(documents=documents, mended=mended, divided=divided)


def _documents(settings: TagCorpus, split: str, reading: TagReading) -> Iterator[TaggedDocument]:
    most = settings.train_documents if split == "train" else settings.held_out_documents
    if settings.corpus == "storyworld":
        yield from read_storyworld_tags(split, most or STORIES[split])
        return
    folder = Path(settings.corpus)
    if not folder.is_dir():
        raise ParameterError(
            f"corpus is {settings.corpus!r}, which is no folder; write storyworld, or a folder with train, "
            "dev and test"
        )
    with Progress(desc=f"reading {split}", unit=" documents") as bar:
        chosen = _drawn(split, most)
        for document in read_tagged_split(folder, split, reading=reading, chosen=chosen):
            bar.update(1)
            yield document


def _drawn(split: str, most: int) -> Callable[[int], list[int]] | None:
    """From a number of documents to those that are used, in order; None = all."""
    if not most:
        return None
    rng = np.random.default_rng([DRAW, SPLITS.index(split)])
    return lambda count: sorted(rng.permutation(count)[:most].tolist())


def _near_labels(document: TaggedDocument, most: int) -> TaggedDocument:
    """With its labelled sentences and the `most` unlabelled ones that are nearest to one; 0 = with all."""
    if not most:
        return document
    labelled = np.array(document.labelled)
    context = np.setdiff1d(np.arange(len(document.sentences)), labelled)
    distance = np.abs(context[:, None] - labelled[None, :]).min(axis=1) if len(context) else context
    nearest = islice(context[np.argsort(distance, kind="stable")].tolist(), most)
    kept = sorted([*labelled.tolist(), *nearest])
    return replace(document, sentences=tuple(document.sentences[number] for number in kept))
