"""Partly labelled documents for document-attentive tagging of words (Joerke et al. 2020, "Doc-ARC").

A folder has three splits, each in one of these forms; all but the standoff may be compressed:

    train/*.tsv           Doc-ARC's, or LitBank's own with several tags a word: a file is a document
    train.conll           in columns, as CoNLL's and OntoNotes'; or train/*.conll
    train.iob2            JNLPBA's; or train/*.iob2
    train/*.ann, *.txt    JNLPBA's standoff, as brat writes it

and so `dev` and `test`. Only Doc-ARC's form has sentences without labels; in the others the context of a
document is the rest of its labelled sentences.

A tag is `O`, or `B-` or `I-` and a label. In IOB2 every span starts with `B-`, in IOB1 only a span that
immediately follows another one with its label; BIOES and BILOU also mark the last word and a span of one
word. A stray `I-`, which follows no span with its label, starts a span, as in conlleval, and is counted.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from cdlm_lab.data.files import DataError, entries, plain_name, plain_stem, read_lines, read_text
from cdlm_lab.data.records import Cluster, Document, PassedOver, Span, TaggedDocument, TaggedSentence
from cdlm_lab.data.rows import split_of
from cdlm_lab.data.splits import SPLIT_NAMES
from cdlm_lab.data.tags import OUTSIDE, TagSpan, outermost, spans_of, tagged_sentence, tags_of
from cdlm_lab.data.words import sentence_spans, with_spaces

STRAY = "I- that follows no span of its label, read as B-"
DIVIDED = "sentence of a lone document, made a document"
CONTEXT = "NULL"  # the tag of words that nobody labelled, in Doc-ARC's files
PASSAGE_WORDS = 80
_SPACES = re.compile(r"[ \t]+")
_PREFIXES = {"E": "I", "L": "I", "S": "B", "U": "B"}  # of BIOES and BILOU: last or unit
_DOCUMENT = re.compile(r"###MEDLINE:(.*)|-DOCSTART-.*")
_COMMENT = re.compile(r"# +(?:id|sent_id|text|newdoc|newpar|global)\b")
_CROSSING = "put the one inside the other, or leave one of them"


class Line(NamedTuple):
    """A line of a file, numbered from 1."""

    path: Path
    number: int
    text: str

    def error(self, field: str, what: str, remedy: str) -> DataError:
        """The DataError to raise about this line."""
        return DataError(self.path, what, remedy, line=self.number, field=field)

    def columns(self, *, numbered: bool = False) -> list[str]:
        """The columns of the line, stripped; the first is a word. Tabs separate them if there are any, so
        that a word may hold a space, else spaces; other white space is part of a word. `numbered`: the number
        of the word stands before it. Raises DataError if there is no word or nothing behind it."""
        cells = self.text.split("\t") if "\t" in self.text else _SPACES.split(self.text.strip(" \t"))
        columns = [cell.strip(" ") for cell in cells][numbered:]
        if len(columns) < 2:
            what = "a number and one column" if numbered else "one column"
            remedy = "write both, with a tab or a space between them"
            raise self.error("row", f"{what} instead of a word and its tag", remedy)
        if not columns[0].strip():
            raise self.error("word", "an empty word", "write it, or delete the line")
        return columns


Block = list[Line]  # lines of a sentence


def iob2_tags(
    column: Iterable[tuple[Line, str]], lost: PassedOver, *, labels: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Convert the tags of a sentence, in IOB1, IOB2, BIOES or BILOU, to IOB2; a stray `I-` is counted. Raises
    DataError for a tag that is invalid or has none of `labels` (if given)."""
    tags: list[str] = []
    before = ""  # label of the span that the next tag may continue
    for line, tag in column:
        prefix, _, label = tag.partition("-")
        ends = prefix in ("E", "L", "S", "U")
        prefix = _PREFIXES.get(prefix, prefix)
        if tag != OUTSIDE and (prefix not in ("B", "I") or not label):
            raise line.error("tag", f"{tag[:40]!r} is not a tag", "write O, or B- or I- and a label")
        if label and labels is not None and label not in labels:
            raise line.error("tag", f"{tag[:40]!r} is not a known tag", f"the labels are {', '.join(labels)}")
        if prefix == "I" and label != before:
            lost.add(STRAY, f"{line.path}:{line.number}")
            prefix = "B"
        tags.append(f"{prefix}-{label}" if label else OUTSIDE)
        before = "" if ends else label
    return tuple(tags)


# ---- columns ----


def documents_of(path: Path) -> Iterator[tuple[Line, list[Block]]]:
    """Yield each document of a file in columns: the line that begins it, `###MEDLINE:` and a name or
    `-DOCSTART-`, and its sentences, separated by blank lines; comments (`# id 1`) are skipped. What stands
    before the first such line is a document too, with an empty first line."""
    head, blocks, apart = Line(path, 1, ""), [], True
    for line in (Line(path, *numbered) for numbered in read_lines(path)):
        if _DOCUMENT.match(line.text):
            if blocks or head.text:
                yield head, _filled(head, blocks)
            head, blocks, apart = line, [], True
        elif not line.text.strip():
            apart = True
        elif _COMMENT.match(line.text):
            continue
        elif apart:
            blocks.append([line])
            apart = False
        else:
            blocks[-1].append(line)
    yield head, _filled(head, blocks)


def _filled(head: Line, blocks: list[Block]) -> list[Block]:
    if not blocks:
        remedy = "delete the line, or write the document below it"
        raise head.error("document", "no sentence follows", remedy)
    return blocks


def read_columns(path: Path, lost: PassedOver) -> Iterator[TaggedDocument]:
    """Yield the documents of a file in columns, of which the first is the word and the last its tag; if the
    first counts the words of each sentence, the second is the word.

        -DOCSTART- -X- -X- O            ###MEDLINE:90092414

        Sir NNP B-NP B-PER              glucocorticoid<tab>B-protein
        slept VBD B-VP O                receptors<tab>I-protein

    The first is the form of CoNLL-2003 and of OntoNotes converted to it; ids are the file's name and a number
    ("eng.train:0"). The second is that of JNLPBA (Collier and Kim 2004), which names its abstracts; two of
    its test set occur twice, with different annotation: the second gets the id "98281994-2", as in the
    standoff. A file (or its beginning) without such a line is a document named after the file.
    """
    numbered, seen = _is_numbered(path), Counter[str]()
    for number, (head, blocks) in enumerate(documents_of(path)):
        rows = ([(line, line.columns(numbered=numbered)) for line in block] for block in blocks)
        sentences = tuple(
            TaggedSentence(words=_words(some), tags=iob2_tags([(at, row[-1]) for at, row in some], lost))
            for some in rows
        )
        mark = _DOCUMENT.match(head.text)
        name = mark[1].strip() if mark and mark[1] is not None else f"{plain_name(path)}:{number}"
        if not head.text and plain_name(path).endswith(".iob2"):
            name = plain_stem(path)
        if not name:
            raise head.error("document", "no name of the abstract", "write it after ###MEDLINE:")
        seen[name] += 1
        again = f"-{seen[name]}" if seen[name] > 1 else ""
        yield TaggedDocument(id=f"{name}{again}", sentences=sentences)


def _words(rows: Iterable[tuple[Line, Sequence[str]]]) -> tuple[str, ...]:
    # Interned, as a book repeats few different words many times: each is kept in memory once.
    return tuple(sys.intern(row[0]) for _, row in rows)


def _is_numbered(path: Path) -> bool:
    """Whether most rows of a file begin with the number that follows that of the row before."""
    steps, before = Counter[bool](), ""
    for _, text in read_lines(path):
        first = _SPACES.split(text.strip(" \t"), maxsplit=1)[0]
        if before and first:
            steps[before.isdecimal() and first.isdecimal() and int(first[:9]) == int(before[:9]) + 1] += 1
        before = first
    return steps[True] > steps[False]


# ---- a file for each document ----


def read_book(path: Path, lost: PassedOver, labels: Sequence[str] | None = None) -> TaggedDocument:
    """Read the document of a file in Doc-ARC's format, or in LitBank's own, `entities/tsv` (Bamman et al.
    2019; nested spans), whose lines end in one or more tabs.

        Sir<tab>B-PER                   the<tab>O<tab>B-PER<tab>O<tab>O<tab>
        Walter<tab>I-PER                daughter<tab>O<tab>I-PER<tab>O<tab>O<tab>

        He<tab>NULL

    A blank line ends a sentence. `NULL` is the tag of context: sentences that nobody labelled. A word may
    hold white space ("4 1/2", ". . ."), as in the released books. Each column of LitBank's tags is a layer of
    spans: the outermost ones are kept, whatever their layer, as in Doc-ARC ("all annotations nested within
    another are removed", section 3), whose files have the same spans; of two identical spans, that of the
    first column is kept. `labels`: other labels raise DataError.
    """
    (_, blocks), *_ = documents_of(path)
    sentences = tuple(_layered(block, lost, labels) for block in blocks)
    if all(sentence.tags is None for sentence in sentences):
        what = f"no sentence has labels, all tags are {CONTEXT}"
        raise DataError(path, what, "label a sentence (O is a label), or take the file out", field="tag")
    return TaggedDocument(id=book_id(path), sentences=sentences)


def _layered(block: Block, lost: PassedOver, labels: Sequence[str] | None) -> TaggedSentence:
    rows = [(line, line._replace(text=line.text.rstrip("\t")).columns()) for line in block]
    context, count = [row[1:] == [CONTEXT] for _, row in rows], len(rows[0][1])
    if any(context) and not all(context):
        what, remedy = f"{CONTEXT} and other tags in one sentence", "label all of its words or none"
        raise block[context.index(not context[0])].error("tag", what, remedy)
    if context[0]:
        return TaggedSentence(words=_words(rows))
    for line, row in rows:
        if len(row) != count:
            what = f"{len(row)} columns where the sentence begins with {count}"
            raise line.error("row", what, "write O where a word is in no span")
    layers = ([(line, row[layer]) for line, row in rows] for layer in range(1, count))
    spans = [span for layer in layers for span in spans_of(iob2_tags(layer, lost, labels=labels))]
    try:
        return TaggedSentence(words=_words(rows), tags=tags_of(outermost(spans), len(rows)))
    except ValueError as error:
        raise block[0].error("tag", f"spans cross ({error})", _CROSSING) from None


def book_id(path: Path) -> str:
    """The id of the document in a file: its name without ".tsv"."""
    return plain_name(path).removesuffix(".tsv")


def labels_listed(folder: str | Path) -> tuple[str, ...] | None:
    """The labels in the tag list of a folder (`*.tagset`: `B-PER<tab>1`), in order; None without a list."""
    lists = [file for file in entries(folder) if file.suffix == ".tagset"]
    if len(lists) > 1:
        what = f"several lists of tags ({', '.join(file.name for file in lists)})"
        raise DataError(folder, what, "leave the one that fits the files", field="folder")
    lines = [Line(file, *numbered) for file in lists for numbered in read_lines(file) if numbered[1].strip()]
    # this is not a sentence: an I- may stand anywhere
    tags = iob2_tags(((line, line.text.partition("\t")[0].strip()) for line in lines), PassedOver())
    return tuple(dict.fromkeys(tag.partition("-")[2] for tag in tags if tag != OUTSIDE)) if lists else None


def read_passages(folder: Path, split: str) -> Iterator[Cluster]:
    """Yield clusters of plain text for task-adaptive pre-training on all sentences, labelled or not.

    See Joerke et al. 2020, section 4.1. A cluster is a passage of a document, "document/1": consecutive
    sentences of at most `PASSAGE_WORDS` words in all. 80 words have 100 WordPiece tokens in a biomedical
    paper and 70 in a novel on average, to fit the 128 tokens of the paper's Table 9. Abstracts that JNLPBA
    has twice are yielded twice.
    """
    for file in book_files(folder).get(split, []):
        for number, words in enumerate(_passages(file), start=1):
            name = f"{book_id(file)}/{number}"
            yield Cluster(id=name, documents=(Document(id=name, text=" ".join(words)),))


def book_files(folder: Path) -> dict[str, list[Path]]:
    """Split -> its files of one document each."""
    return {split: files for split, files in tagged_files(folder).items() if _are_books(files)}


def _are_books(files: Sequence[Path]) -> bool:
    in_folder = files[0].parent.name.lower() in SPLIT_NAMES
    return in_folder and plain_name(files[0]).endswith(".tsv")


def _passages(file: Path) -> Iterator[list[str]]:
    """Yield the words of each passage: whole sentences, but one longer than a passage is split."""
    passage: list[str] = []
    for block in chain.from_iterable(blocks for _, blocks in documents_of(file)):
        words = [line.columns()[0] for line in block]
        for start in range(0, len(words), PASSAGE_WORDS):
            part = words[start : start + PASSAGE_WORDS]
            if len(passage) + len(part) > PASSAGE_WORDS:  # never true of an empty passage
                yield passage
                passage = []
            passage = passage + part
    if passage:
        yield passage


# ---- standoff ----

_NAME = re.compile(r"T\S*\t(\S+) ([0-9]{1,9})((?: [0-9]{1,9};[0-9]{1,9})*) ([0-9]{1,9})\t(.+)")
_OTHER = re.compile(r"(?:[REAMN]\d+|#\d*|\*)\t.*")  # relations, events, attributes, notes, equivalences


def read_standoff(annotations: Path, lost: PassedOver) -> TaggedDocument:
    """Read the text beside a file in brat's standoff format, as JNLPBA has it.

        90092414.txt      Number of glucocorticoid receptors in lymphocytes ...
        90092414.ann      T1<tab>protein 10 34<tab>glucocorticoid receptors

    Each line (the first is the title) is split into sentences; those that a name crosses are joined. Words
    are those of `token_spans`, also split where a name begins or ends. Of nested names the outermost is kept.
    """
    text = read_text(annotations.with_suffix(".txt"))
    names = outermost(_names(annotations, text, lost))
    try:
        sentences = tuple(tagged_sentence(text, place, names) for place in _sentences(text, names))
    except ValueError as error:
        raise DataError(annotations, f"names cross ({error})", _CROSSING, field="T") from None
    return TaggedDocument(id=annotations.stem, sentences=sentences)


def _names(path: Path, text: str, lost: PassedOver) -> Iterator[TagSpan]:
    """The names of an .ann file, in characters of `text`; relations, events and notes are skipped."""
    for line in (Line(path, *numbered) for numbered in read_lines(path, allow_empty=True)):
        if not line.text.strip() or _OTHER.fullmatch(line.text):
            continue
        if not (match := _NAME.fullmatch(line.text)):
            remedy = "write T1, a tab, label, first character and end, a tab, and the text"
            raise line.error("T", f"{line.text[:60]!r} is not a name", remedy)
        label, first, stop, name = match[1], int(match[2]), int(match[4]), match[5]
        if match[3] and first < stop <= len(text):  # in several pieces, as where a line ends
            lost.add("name in pieces, read from its first to its last word", f"{path}:{line.number}")
        elif with_spaces(text[first:stop]) != with_spaces(name) or not name.strip():
            what = f"{name[:60]!r} is not what stands at {first} to {stop}"
            raise line.error("T", what, "count characters from 0, line ends as one")
        yield TagSpan(label=label, first=first, stop=stop)


def _sentences(text: str, names: Sequence[TagSpan]) -> list[Span]:
    """The sentences of each line of a text, in characters of it; none ends within a name."""
    spans: list[Span] = []
    begin = 0
    for line in text.split("\n"):
        for start, end in sentence_spans(line):
            inside_a_name = spans and any(name.first < spans[-1][1] < name.stop for name in names)
            spans.append((spans.pop()[0] if inside_a_name else begin + start, begin + end))
        begin += len(line) + 1
    return spans


# ---- folders ----

_FORMS = (".tsv", ".conll", ".iob2", ".ann")


def tagged_files(folder: Path) -> dict[str, list[Path]]:
    """Split -> its files, sorted, of one ending of _FORMS, in a folder named for the split ("train", "val",
    "devel") or beginning with its name ("dev.conll", "eng.testa"). Raises DataError for a split in two
    forms."""
    found: dict[str, dict[str, list[Path]]] = {}
    for entry in entries(folder) if folder.is_dir() else ():
        split = SPLIT_NAMES.get(entry.name.lower()) if entry.is_dir() else split_of(entry, folder)
        for file in entries(entry) if entry.is_dir() and split else [entry] if split else []:
            ending = next((form for form in _FORMS if plain_name(file).endswith(form)), "")
            if plain_name(file).endswith((".testa", ".testb", ".train")):
                ending = ".conll"
            is_table = entry is file and ending == ".tsv" and _is_table(file)
            if file.is_file() and ending and not is_table:
                found.setdefault(str(split), {}).setdefault(ending, []).append(file)
    for split, forms in found.items():
        if len(forms) > 1:
            what = f"{split} is there in the forms {' and '.join(forms)}"
            remedy = f"give one of {split}/*.tsv, {split}.conll, {split}.iob2, or {split}/*.ann with *.txt"
            raise DataError(folder, what, remedy, field=split)
    return {split: next(iter(forms.values())) for split, forms in found.items()}


def _is_table(file: Path) -> bool:
    """Whether the first line of a file is a header and not a word with its tag."""
    first = next((text for _, text in read_lines(file, allow_empty=True) if text.strip()), "")
    tag = first.rpartition("\t")[2].strip()
    return bool(tag) and tag not in (OUTSIDE, CONTEXT) and not re.match(r"[BIESLU]-", tag)


def read_files(files: Sequence[Path], *, passed_over: PassedOver) -> Iterator[TaggedDocument]:
    """Yield the documents of a split. If a split in columns is a single document, as of tweets without
    `-DOCSTART-`, each sentence becomes a document, which is counted, as are stray tags. If the folder above
    files of one document each has a list of tags, other labels raise DataError."""
    if files[0].suffix == ".ann":
        for text in entries(files[0].parent):
            if text.suffix == ".txt" and text.with_suffix(".ann") not in files:
                passed_over.add("text without an .ann file", str(text))
        yield from (read_standoff(file, passed_over) for file in files)
    elif _are_books(files):
        labels, seen = labels_listed(files[0].parent.parent), dict[str, Path]()
        for file in files:
            if (other := seen.setdefault(book_id(file), file)) is not file:
                raise DataError(file, f"{other.name} is the same document", "leave one of them")
            yield read_book(file, passed_over, labels)
    else:
        each = chain.from_iterable(read_columns(file, passed_over) for file in files)
        yield from _divided(each, passed_over)


def _divided(documents: Iterator[TaggedDocument], lost: PassedOver) -> Iterator[TaggedDocument]:
    """Yield the documents; if there is only one, its sentences as documents, which are counted."""
    first = list(islice(documents, 2))
    if len(first) != 1 or len(first[0].sentences) == 1:
        yield from chain(first, documents)
        return
    for number, sentence in enumerate(first[0].sentences):
        lost.add(DIVIDED, first[0].id)
        yield TaggedDocument(id=f"{first[0].id}:{number}", sentences=(sentence,))
