"""Tagged documents in a folder of three splits, in whichever form they lie there:

    train/*.tsv           Doc-ARC's (docarc_tsv.py), or LitBank's own with several tags a word (litbank.py)
    train.conll           in columns, as CoNLL's and OntoNotes' (ner_conll.py); or train/*.conll
    train.iob2            JNLPBA's (jnlpba.py); or train/*.iob2
    train/*.ann, *.txt    JNLPBA's standoff

and so `dev` and `test`. All but the standoff may be compressed. Only Doc-ARC's form knows sentences without
labels; in the others the context of a document is the rest of its labelled sentences. Where a split in
columns is a single document, as tweets without `-DOCSTART-`, each sentence is one by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path

from cdlm_lab.data.docarc_tsv import Chosen, read_docarc_split
from cdlm_lab.data.files import DataError, entries, plain_name, read_lines
from cdlm_lab.data.jnlpba import read_jnlpba_iob2, read_jnlpba_standoff
from cdlm_lab.data.litbank import read_litbank
from cdlm_lab.data.ner_conll import read_ner_conll
from cdlm_lab.data.tag_reading import TagReading
from cdlm_lab.data.tagged_documents import TaggedDocument

_OF_FILES: dict[str, Callable[..., Iterator[TaggedDocument]]] = {
    ".conll": read_ner_conll,
    ".iob2": read_jnlpba_iob2,
}
_FORMS = (".tsv", *_OF_FILES, ".ann")


def read_tagged_split(
    folder: str | Path, split: str, *, reading: TagReading | None = None, chosen: Chosen | None = None
) -> Iterator[TaggedDocument]:
    """The documents of a split, one at a time.

    Args:
        folder: see the top.
        split: train, dev or test.
        reading: what to do about tags; None for the defaults. It counts stray tags of all documents that are
            read, in forms other than Doc-ARC's also of those that are not chosen.
        chosen: given how many documents there are, the numbers from 0 of those that are wanted; None for all.

    Raises:
        DataError: the split is not there, or in two forms; and, while reading, as the readers.
    """
    form, files = _form_of(Path(folder), split)
    reading = reading or TagReading()
    if form == ".tsv" and not _has_several_tags(files[0]):
        return read_docarc_split(folder, split, reading=reading, chosen=chosen)
    if form == ".tsv":
        found: Iterator[TaggedDocument] = (read_litbank(file, reading=reading) for file in files)
    elif form == ".ann":
        found = read_jnlpba_standoff(files[0].parent, reading=reading)
    else:
        read = chain.from_iterable(_OF_FILES[form](file, reading=reading) for file in files)
        found = _divided(read, reading)
    return found if chosen is None else _some(found, chosen)


def _form_of(folder: Path, split: str) -> tuple[str, list[Path]]:
    """The ending of the files of a split, and these in the order of their names."""
    inner = folder / split
    there = [file for file in entries(folder) if file.name.startswith(f"{split}.")]
    there += entries(inner) if inner.is_dir() else []
    forms = {form: [file for file in there if plain_name(file).endswith(form)] for form in _FORMS}
    forms = {form: files for form, files in forms.items() if files}
    if len(forms) == 1:
        return next(iter(forms.items()))
    what = f"{split} is there in the forms {' and '.join(forms)}" if forms else f"there is no {split} in it"
    remedy = f"give one of {split}/*.tsv, {split}.conll, {split}.iob2, or {split}/*.ann with *.txt"
    raise DataError(folder, what, remedy, field=split)


def _has_several_tags(file: Path) -> bool:
    """Whether the first word of a file has more than one tag, as in LitBank."""
    first = next((text for _, text in read_lines(file, allow_empty=True) if text.strip()), "")
    return len(first.rstrip("\t").split("\t")) > 2


def _divided(documents: Iterator[TaggedDocument], reading: TagReading) -> Iterator[TaggedDocument]:
    """The documents; of a single one each sentence, which is counted."""
    first = list(islice(documents, 2))
    if len(first) != 1 or len(first[0].sentences) == 1:
        yield from chain(first, documents)
        return
    for number, sentence in enumerate(first[0].sentences):
        reading.divided += 1
        yield TaggedDocument(id=f"{first[0].id}:{number}", sentences=(sentence,))


def _some(documents: Iterator[TaggedDocument], chosen: Chosen) -> Iterator[TaggedDocument]:
    every = list(documents)
    return (every[number] for number in chosen(len(every)))
