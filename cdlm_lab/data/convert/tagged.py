"""Partly labelled documents for document-attentive tagging of words (Joerke et al. 2020, "Doc-ARC").

A folder has three splits, each in one of these forms; all but the standoff may be compressed:

    train/*.tsv           Doc-ARC's, or LitBank's own with several tags a word
    train.conll           in columns, as CoNLL's and OntoNotes'; or train/*.conll
    train.iob2            JNLPBA's; or train/*.iob2
    train/*.ann, *.txt    JNLPBA's standoff

and so `dev` and `test`. Only Doc-ARC's form has sentences without labels; in the others the context of a
document is the rest of its labelled sentences.

A tag is `O`, or `B-` or `I-` and a label. In IOB2 every span starts with `B-`, in IOB1 only a span that
immediately follows another one with its label. A stray `I-`, which follows no span with its label, starts a
span, as in conlleval, and is counted.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from cdlm_lab.data.files import COMPRESSED, DataError, entries, plain_name, plain_stem, read_lines, read_text
from cdlm_lab.data.records import Cluster, Document, PassedOver, Span, TaggedDocument, TaggedSentence
from cdlm_lab.data.rows import split_of
from cdlm_lab.data.splits import SPLIT_NAMES, split_named
from cdlm_lab.data.tags import OUTSIDE, TagSpan, outermost, spans_of, tagged_sentence, tags_of
from cdlm_lab.data.words import split_sentences

STRAY = "I- that follows no span of its label, read as B-"
DIVIDED = "sentence of a lone document, made a document"
_SPACES = re.compile(r"[ \t]+")


class Line(NamedTuple):
    """A line of a file, numbered from 1."""

    path: Path
    number: int
    text: str

    def error(self, field: str, what: str, remedy: str) -> DataError:
        """The DataError to raise about this line."""
        return DataError(self.path, what, remedy, line=self.number, field=field)

    def columns(self, count: int | None = None, *, tabs: bool = True) -> list[str]:
        """The columns of the line, stripped; the first is a word. Raises DataError if they are not valid.

        `count`: required number of columns; None = two or more. `tabs`: True = they are separated by tabs, so
        that a word may hold a space; False = by spaces and tabs. Other white space is part of a word.
        """
        cells = self.text.split("\t") if tabs else _SPACES.split(self.text.strip(" \t"))
        columns = [cell.strip(" ") for cell in cells]
        if len(columns) < 2 or (count and len(columns) != count):
            number = "one column" if len(columns) == 1 else f"{len(columns)} columns"
            what = f"{number} instead of {count or 'a word and its tag'}"
            raise self.error("row", what, f"write the word, {'a tab' if tabs else 'white space'} and its tag")
        if not columns[0].strip():
            raise self.error("word", "an empty word", "write it, or delete the line")
        return columns


Block = list[Line]  # lines of a sentence


_PREFIXES = {"E": "I", "L": "I", "S": "B", "U": "B"}  # of BIOES and BILOU: last or unit


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


def marked_parts(path: Path, *, mark: str | None = None) -> Iterator[tuple[Line, list[Block]]]:
    """Yield each document of a file: the line that begins it, which starts with `mark`, and its sentences,
    separated by blank lines. Lines before the first mark are a document too, with an empty first line."""
    head, blocks, apart = Line(path, 1, ""), [], True
    for line in (Line(path, *numbered) for numbered in read_lines(path)):
        if mark and line.text.startswith(mark):
            if blocks or head.text:
                yield head, _filled(head, blocks)
            head, blocks, apart = line, [], True
        elif not line.text.strip():
            apart = True
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


def line_blocks(path: Path) -> list[Block]:
    """The sentences, as lists of lines, of a file that is a single document."""
    return next(marked_parts(path))[1]


def _rows(block: Block, count: int | None = None) -> list[tuple[Line, list[str]]]:
    """Each line of a sentence with its columns: `count` tab-separated ones, or two or more as in CoNLL."""
    return [(line, line.columns(count, tabs=bool(count) or "\t" in line.text)) for line in block]


def _words(rows: Iterable[tuple[Line, Sequence[str]]]) -> tuple[str, ...]:
    # Interned, as a book repeats few different words many times: each is kept in memory once.
    return tuple(sys.intern(row[0]) for _, row in rows)


def _labelled(
    block: Block, lost: PassedOver, *, count: int | None = None, numbered: bool = False
) -> TaggedSentence:
    """A sentence whose first column is the word and the last its tag; `numbered`: the number of the token
    stands before the word."""
    rows = _rows(block, count)
    if numbered:
        rows = [(line, row[1:]) for line, row in rows]
        if alone := next((line for line, row in rows if len(row) < 2 or not row[0].strip()), None):
            raise alone.error("row", "no word behind the number", "write number, word and tag")
    column = [(line, row[-1]) for line, row in rows]
    return TaggedSentence(words=_words(rows), tags=iob2_tags(column, lost))


CONTEXT = "NULL"  # the tag of words that nobody labelled, in Doc-ARC's files
_SUFFIXES = tuple(f".tsv{suffix}" for suffix in ("", *COMPRESSED))


def read_docarc(files: Sequence[Path], lost: PassedOver) -> Iterator[TaggedDocument]:
    """Yield the documents of a split in Doc-ARC's format, one per file.

        Sir<tab>B-PER
        Walter<tab>I-PER

        He<tab>NULL

    A blank line ends a sentence. `NULL` is the tag of context: sentences that nobody labelled. A word may
    hold white space ("4 1/2", ". . ."), as in the released books. If the folder above has a list of tags
    (`*.tagset`), other labels raise DataError.
    """
    labels = docarc_labels(files[0].parent.parent)
    return (_docarc_document(file, lost, labels) for file in _apart(files))


def docarc_files(folder: str | Path, split: str | None = None) -> list[Path]:
    """The .tsv files of a split, in order of their names; `split` None = of all splits, perhaps []."""
    wanted = split and split_named(split)
    names = [name for name, meant in SPLIT_NAMES.items() if wanted in (None, meant)]
    inner = [Path(folder) / name for name in names if (Path(folder) / name).is_dir()]
    if split is None:
        return [file for below in inner for file in entries(below) if file.name.endswith(_SUFFIXES)]
    if not inner:
        what = f"there is no folder {' or '.join(names)} in it"
        raise DataError(folder, what, "give the folder around train, dev and test", field="folder")
    files = [file for file in entries(inner[0]) if file.name.endswith(_SUFFIXES)]
    if not files:
        raise DataError(inner[0], "no .tsv files in it", "put a file for each document there", field="folder")
    return _apart(files)


def _apart(files: Sequence[Path]) -> list[Path]:
    """The files. Raises DataError if two of them are one document."""
    seen: dict[str, Path] = {}
    for file in files:
        if (other := seen.setdefault(docarc_id(file), file)) is not file:
            raise DataError(file, f"{other.name} is the same document", "leave one of them")
    return list(files)


def docarc_labels(folder: str | Path) -> tuple[str, ...] | None:
    """The labels in the tag list of a folder (`*.tagset`: `B-PER<tab>1`), in order; None without a list."""
    lists = [file for file in entries(folder) if file.suffix == ".tagset"]
    if len(lists) > 1:
        what = f"several lists of tags ({', '.join(file.name for file in lists)})"
        raise DataError(folder, what, "leave the one that fits the files", field="folder")
    if not lists:
        return None
    lines = chain.from_iterable(line_blocks(lists[0]))
    # this is not a sentence: an I- may stand anywhere
    tags = iob2_tags(((line, line.text.partition("\t")[0].strip()) for line in lines), PassedOver())
    return tuple(dict.fromkeys(tag.partition("-")[2] for tag in tags if tag != OUTSIDE))


def docarc_id(path: Path) -> str:
    """The id of the document in a file: its name without ".tsv"."""
    return plain_name(path).removesuffix(".tsv")


def _docarc_document(path: Path, lost: PassedOver, labels: Sequence[str] | None) -> TaggedDocument:
    sentences = []
    for block in line_blocks(path):
        rows = _rows(block, 2)
        column = [(line, tag) for line, (_, tag) in rows]
        context = [tag == CONTEXT for _, tag in column]
        if any(context) and not all(context):
            what, remedy = f"{CONTEXT} and other tags in one sentence", "label all of its words or none"
            raise block[context.index(not context[0])].error("tag", what, remedy)
        tags = None if context[0] else iob2_tags(column, lost, labels=labels)
        sentences.append(TaggedSentence(words=_words(rows), tags=tags))
    if all(sentence.tags is None for sentence in sentences):
        what = f"no sentence has labels, all tags are {CONTEXT}"
        raise DataError(path, what, "label a sentence (O is a label), or take the file out", field="tag")
    return TaggedDocument(id=docarc_id(path), sentences=tuple(sentences))


MARK = "###MEDLINE:"
DOCUMENT_START = "-DOCSTART-"


def read_jnlpba_iob2(path: Path, lost: PassedOver) -> Iterator[TaggedDocument]:
    """Yield the abstracts of a JNLPBA file (Collier and Kim 2004) in the IOB2 format of the shared task.

        ###MEDLINE:90092414

        glucocorticoid<tab>B-protein
        receptors<tab>I-protein

    Text above the first mark is a document named after the file; some files have no marks. Two abstracts of
    test occur twice, with different annotation: the second gets the id "98281994-2", as in the standoff.
    """
    seen: dict[str, int] = {}
    for head, blocks in marked_parts(path, mark=MARK):
        name = head.text.removeprefix(MARK).strip() if head.text else plain_stem(path)
        if not name:
            raise head.error("document", "no name of the abstract", f"write it after {MARK}")
        seen[name] = seen.get(name, 0) + 1
        sentences = tuple(_labelled(block, lost, count=2) for block in blocks)
        yield TaggedDocument(id=name if seen[name] == 1 else f"{name}-{seen[name]}", sentences=sentences)


def read_ner_conll(path: Path, lost: PassedOver) -> Iterator[TaggedDocument]:
    """Yield the documents of a file in columns; ids are the file's name and a number ("eng.train:0").

        -DOCSTART- -X- -X- O

        Sir NNP B-NP B-PER
        slept VBD B-VP O

    This is the form of CoNLL-2003 and of OntoNotes converted to it. The first column is the word, the last
    its tag; if the first counts the words of each sentence, the second is the word. Columns are separated by
    tabs if the line has any, else by spaces. A file without `-DOCSTART-` is one document.
    """
    numbered = _is_numbered(path)
    for number, (_, blocks) in enumerate(marked_parts(path, mark=DOCUMENT_START)):
        sentences = tuple(_labelled(block, lost, numbered=numbered) for block in blocks)
        yield TaggedDocument(id=f"{plain_name(path)}:{number}", sentences=sentences)


def _is_numbered(path: Path) -> bool:
    """Whether most rows of a file begin with the number that follows that of the row before."""
    steps, before = Counter[bool](), ""
    for _, text in read_lines(path):
        first = _SPACES.split(text.strip(" \t"), maxsplit=1)[0]
        if before and first:
            steps[before.isdecimal() and first.isdecimal() and int(first[:9]) == int(before[:9]) + 1] += 1
        before = first
    return steps[True] > steps[False]


def read_litbank(path: Path, lost: PassedOver) -> TaggedDocument:
    """Read the document of a file in LitBank's own form, `entities/tsv` (Bamman et al. 2019; nested spans).

        the<tab>O<tab>B-PER<tab>O<tab>O<tab>
        daughter<tab>O<tab>I-PER<tab>O<tab>O<tab>

    Each column of tags is a layer of spans. The outermost spans are kept, whatever their layer, as in Doc-ARC
    ("all annotations nested within another are removed", section 3), whose files have the same spans; of two
    identical spans, that of the first column is kept.
    """
    sentences = []
    for block in line_blocks(path):
        # Each line ends in one or more tabs.
        rows = [(line, line._replace(text=line.text.rstrip("\t")).columns()) for line in block]
        count = len(rows[0][1])
        for line, row in rows:
            if len(row) != count:
                what = f"{len(row)} columns where the sentence begins with {count}"
                raise line.error("row", what, "write O where a word is in no span")
        spans: list[TagSpan] = []
        for layer in range(1, count):
            spans += spans_of(iob2_tags([(line, row[layer]) for line, row in rows], lost))
        try:
            tags = tags_of(outermost(spans), len(rows))
        except ValueError as error:
            raise block[0].error("tag", f"spans cross ({error})", _CROSSING) from None
        sentences.append(TaggedSentence(words=_words(rows), tags=tags))
    return TaggedDocument(id=docarc_id(path), sentences=tuple(sentences))


_CROSSING = "put the one inside the other, or leave one of them"
_NAME = re.compile(r"T\S*\t(\S+) ([0-9]{1,9})((?: [0-9]{1,9};[0-9]{1,9})*) ([0-9]{1,9})\t(.+)")
_OTHER = re.compile(r"(?:[REAMN]\d+|#\d*|\*)\t.*")  # relations, events, attributes, notes, equivalences
_SPACE = re.compile(r"\s")


def read_jnlpba_standoff(folder: Path, lost: PassedOver) -> Iterator[TaggedDocument]:
    """Yield the abstracts of a folder with JNLPBA in brat's standoff format, in the order of their names.

        90092414.txt      Number of glucocorticoid receptors in lymphocytes ...
        90092414.ann      T1<tab>protein 10 34<tab>glucocorticoid receptors

    Each line (the first is the title) is split by `split_sentences`; sentences that a name crosses are
    joined. Words are those of `token_spans`, also split where a name begins or ends. Of nested names the
    outermost is kept.
    """
    texts = [file for file in entries(folder) if file.suffix == ".txt"]
    remedy = "give the folder that has a .txt and an .ann for each abstract"
    if not texts:
        raise DataError(folder, "no .txt files in it", remedy, field="folder")
    for file in entries(folder):
        if file.suffix == ".ann" and file.with_suffix(".txt") not in texts:
            raise DataError(file, f"there is no {file.stem}.txt beside it", remedy)
    return (_standoff(text, lost) for text in texts)


def _standoff(path: Path, lost: PassedOver) -> TaggedDocument:
    text, annotations = read_text(path), path.with_suffix(".ann")
    names = outermost(_names(annotations, text, lost))
    sentences = []
    for place in _sentence_spans(text, names):
        try:
            sentences.append(tagged_sentence(text, place, names))
        except ValueError as error:
            raise DataError(annotations, f"names cross ({error})", _CROSSING, field="T") from None
    return TaggedDocument(id=path.stem, sentences=tuple(sentences))


def _names(path: Path, text: str, lost: PassedOver) -> list[TagSpan]:
    """The names of an .ann file, in characters of `text`; relations, events and notes are skipped."""
    names = []
    for line in (Line(path, *numbered) for numbered in read_lines(path, allow_empty=True)):
        if not line.text.strip() or _OTHER.fullmatch(line.text):
            continue
        if not (match := _NAME.fullmatch(line.text)):
            remedy = "write T1, a tab, label, first character and end, a tab, and the text"
            raise line.error("T", f"{line.text[:60]!r} is not a name", remedy)
        label, first, stop, name = match[1], int(match[2]), int(match[4]), match[5]
        if match[3] and first < stop <= len(text):  # in several pieces, as where a line ends
            lost.add("name in pieces, read from its first to its last word", f"{path}:{line.number}")
        elif _SPACE.sub(" ", text[first:stop]) != _SPACE.sub(" ", name) or not name.strip():
            what = f"{name[:60]!r} is not what stands at {first} to {stop}"
            raise line.error("T", what, "count characters from 0, line ends as one")
        names.append(TagSpan(label=label, first=first, stop=stop))
    return names


def _sentence_spans(text: str, names: tuple[TagSpan, ...]) -> list[Span]:
    """The character spans of the sentences of a text; no sentence ends within a name."""
    plain = _SPACE.sub(" ", text)  # as the sentence splitter normalises it
    spans: list[Span] = []
    place = 0
    for sentence in chain.from_iterable(split_sentences(line) for line in text.split("\n")):
        start = plain.index(sentence, place)
        place = start + len(sentence)
        inside_a_name = spans and any(name.first < spans[-1][1] < name.stop for name in names)
        spans.append((spans.pop()[0] if inside_a_name else start, place))
    return spans


_FORMS = (".tsv", ".conll", ".iob2", ".ann")


def tagged_files(folder: Path) -> dict[str, list[Path]]:
    """Split -> its files, sorted, and what belongs to them (texts, list of tags): of one ending of _FORMS,
    in a folder named for the split ("train", "val", "devel") or beginning with its name ("dev.conll",
    "eng.testa"). Raises DataError for a split in two forms."""
    found: dict[str, dict[str, list[Path]]] = {}
    for entry in entries(folder) if folder.is_dir() else ():
        named = SPLIT_NAMES.get(entry.name.lower()) if entry.is_dir() else split_of(entry, folder)
        for file in entries(entry) if entry.is_dir() and named else [entry] if named else []:
            ending = next((form for form in _FORMS if plain_name(file).endswith(form)), "")
            if plain_name(file).endswith((".testa", ".testb", ".train")):
                ending = ".conll"
            is_table = entry is file and ending == ".tsv" and _is_table(file)
            if file.is_file() and ending and not is_table:
                found.setdefault(str(named), {}).setdefault(ending, []).append(file)
    for split, forms in found.items():
        if len(forms) > 1:
            what = f"{split} is there in the forms {' and '.join(forms)}"
            remedy = f"give one of {split}/*.tsv, {split}.conll, {split}.iob2, or {split}/*.ann with *.txt"
            raise DataError(folder, what, remedy, field=split)
    lists = [entry for entry in entries(folder) if entry.suffix == ".tagset"] if found else []
    return {split: [*next(iter(forms.values())), *_beside(forms), *lists] for split, forms in found.items()}


def _beside(forms: Mapping[str, Sequence[Path]]) -> list[Path]:
    """The texts of files in brat's standoff format."""
    folders = {file.parent for file in forms.get(".ann", ())}
    return [file for folder in sorted(folders) for file in entries(folder) if file.suffix == ".txt"]


def _is_table(file: Path) -> bool:
    """Whether the first line of a file is a header and not a word with its tag."""
    first = next((text for _, text in read_lines(file, allow_empty=True) if text.strip()), "")
    tag = first.rpartition("\t")[2].strip()
    return bool(tag) and tag not in (OUTSIDE, CONTEXT) and not re.match(r"[BIESLU]-", tag)


def read_files(files: Sequence[Path], *, passed_over: PassedOver) -> Iterator[TaggedDocument]:
    """Yield the documents of a split. If a split in columns is a single document, as of tweets without
    `-DOCSTART-`, each sentence becomes a document, which is counted, as are stray tags."""
    name, lost = plain_name(files[0]), passed_over
    files = [file for file in files if file.suffix not in (".txt", ".tagset")]
    if name.endswith(".ann"):
        yield from read_jnlpba_standoff(files[0].parent, lost)
    elif name.endswith(".iob2"):
        each = chain.from_iterable(read_jnlpba_iob2(file, lost) for file in files)
        yield from _divided(each, lost)
    elif name.endswith(".tsv") and files[0].parent.name.lower() in SPLIT_NAMES:
        if _has_several_tags(files[0]):
            yield from (read_litbank(file, lost) for file in files)
        else:
            yield from read_docarc(files, lost)
    else:
        yield from _divided(chain.from_iterable(read_ner_conll(file, lost) for file in files), lost)


def _has_several_tags(file: Path) -> bool:
    """Whether the first word of a file has more than one tag, as in LitBank."""
    first = next((text for _, text in read_lines(file, allow_empty=True) if text.strip()), "")
    return len(first.rstrip("\t").split("\t")) > 2


def _divided(documents: Iterator[TaggedDocument], lost: PassedOver) -> Iterator[TaggedDocument]:
    """Yield the documents; if there is only one, its sentences as documents, which are counted."""
    first = list(islice(documents, 2))
    if len(first) != 1 or len(first[0].sentences) == 1:
        yield from chain(first, documents)
        return
    for number, sentence in enumerate(first[0].sentences):
        lost.add(DIVIDED, first[0].id)
        yield TaggedDocument(id=f"{first[0].id}:{number}", sentences=(sentence,))


PASSAGE_WORDS = 80


def read_docarc_passages(folder: str | Path, split: str) -> Iterator[Cluster]:
    """Yield clusters of plain text for task-adaptive pre-training on all sentences, labelled or not.

    See Joerke et al. 2020, section 4.1. A cluster is a passage of a document, "document/1": consecutive
    sentences of at most `PASSAGE_WORDS` words in all. 80 words have 100 WordPiece tokens in a biomedical
    paper and 70 in a novel on average, to fit the 128 tokens of the paper's Table 9. Abstracts that JNLPBA
    has twice are yielded twice.
    """
    for file in docarc_files(folder, split):
        for number, words in enumerate(_passages(file), start=1):
            name = f"{docarc_id(file)}/{number}"
            yield Cluster(id=name, documents=(Document(id=name, text=" ".join(words)),))


def _passages(file: Path) -> Iterator[list[str]]:
    """Yield the words of each passage: whole sentences, but one longer than a passage is split."""
    passage: list[str] = []
    for block in line_blocks(file):
        words = [word for _, (word, _) in _rows(block, 2)]
        for start in range(0, len(words), PASSAGE_WORDS):
            part = words[start : start + PASSAGE_WORDS]
            if len(passage) + len(part) > PASSAGE_WORDS:  # never true of an empty passage
                yield passage
                passage = []
            passage = passage + part
    if passage:
        yield passage
