"""Read the records of a task: one's own data in the native form, or a published format, by one table.

Formats of rows (JSON lines, CSV, parquet, what `datasets` opens) are recognised by the fields of the first
row and read as they lie; formats of several files are recognised by the names of these, and converted once
into JSON lines of records in the user's cache, under the fingerprint of their bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from cdlm_lab.data import files, native, pairs, records
from cdlm_lab.data.cache import built_once, cache_folder, fingerprint, hash_as_known
from cdlm_lab.data.convert import (
    candidates,
    claims,
    conll,
    coreference_json,
    coreference_rows,
    corefud,
    ecb_plus,
    hotpotqa,
    pair_csv,
    scisumm,
    spans,
    tagged,
)
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import PassedOver
from cdlm_lab.data.rows import rows_by_split
from cdlm_lab.data.splits import SPLIT_NAMES, SPLITS, dealt
from cdlm_lab.data.tags import tagged_mentions
from cdlm_lab.progress import tracked

VERSION = 4  # part of every key of the cache; raise it when a converter makes other records of the same files
KIND: dict[str, Any] = {
    "coreference": records.CoreferenceDocument,
    "pairs": records.DocumentPair,
    "questions": records.MultihopQuestion,
    "tagging": records.TaggedDocument,
    "candidates": records.CandidateSet,
    "claims": records.EvidencedClaim,
    "collection": records.PairDocument | records.DocumentLink,
}
READ = {**native.READ, "collection": pairs.read_collection}
GROUP: dict[str, Callable[[Any], str]] = {  # what must not be divided between splits
    "coreference": lambda document: document.topic,
    "pairs": lambda pair: pair.cluster,
    "claims": lambda claim: claim.group,
}
Reader = Callable[[], Iterator[Any]]
HELD_OUT = 0.2  # share of the groups for dev and for test, where a corpus does not divide them


class Format(NamedTuple):
    """A published format. Of rows: `read(rows, **options)`, recognised by `known(fields of the first row)`.
    Of files: `read(found, passed_over=, **options)`, where `files(path)` says what it finds, by split."""

    name: str
    task: str
    read: Callable[..., Iterable[Any]]
    known: Callable[[Mapping[str, Any]], bool] | None = None
    files: Callable[[Path], dict[str, Any]] | None = None


def _has(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda fields: set(names) <= set(fields)


FORMATS = (
    Format("ecb_plus", "coreference", ecb_plus.read_ecb_plus, files=ecb_plus.coreference_files),
    Format("cattan", "coreference", coreference_json.read_json, files=coreference_json.json_files),
    Format("conll", "coreference", conll.read_conll, files=conll.conll_files),
    Format("corefud", "coreference", corefud.read_corefud, files=corefud.corefud_files),
    Format("ucdcr", "coreference", coreference_rows.read_ucdcr, files=coreference_rows.ucdcr_files),
    Format("jsonlines", "coreference", coreference_rows.read_jsonlines, known=coreference_rows.is_jsonlines),
    Format("linked_spans", "coreference", spans.read_linked_spans, files=spans.span_files),
    Format("benchmark", "pairs", pair_csv.read_benchmark, files=pair_csv.csv_files),
    Format("scisumm", "collection", scisumm.read_scisumm, files=scisumm.collection_files),
    Format("hotpotqa", "questions", hotpotqa.read_rows, known=_has("question", "context")),
    Format("fever_wiki", "claims", claims.refuse_fever, known=_has("claim", "verifiable")),
    Format("fever_symmetric", "claims", claims.read_symmetric, known=claims.is_symmetric),
    Format("fever", "claims", claims.read_fever, known=claims.is_fever),
    Format("fm2", "claims", claims.read_fm2, known=_has("wikipedia_page", "text")),
    Format("trecqa", "candidates", candidates.read_trecqa, files=candidates.trecqa_files),
    Format("asnq", "candidates", candidates.read_asnq, files=candidates.asnq_files),
    Format("wikiqa", "candidates", native.read_candidate_table, known=_has("QuestionID", "SentenceID")),
    Format("table", "candidates", native.read_candidate_table, known=candidates.is_table),
    Format("tagged", "tagging", tagged.read_files, files=tagged.tagged_files),
    Format("spans", "tagging", spans.read_spans, files=spans.span_files),
)
ALONE = ("conll", "corefud", "spans", "linked_spans")  # formats of files that may be given alone
_FOLDERS = {
    "claims": claims.files_by_set,
    "collection": pairs.collection_rows,
}  # how files of rows are named, where it differs from other tasks


class Corpus(NamedTuple):
    """What is at a path: its format ("native" for one's own), and by split what `read` takes."""

    format: str
    splits: dict[str, Reader]
    passed_over: Mapping[str, PassedOver]


def open_records(task: str, corpus: str | Path, **options: Any) -> Corpus:
    """Recognise a corpus and find its splits; nothing of rows is read yet but the first one. `options` are
    those of its converter. Raises DataError if there is nothing that can be read."""
    path = Path(str(corpus))
    if not str(corpus).startswith("hub:"):
        path = files.home_path(corpus)
        if not path.exists():
            raise DataError(path, "no such file or folder", _remedy(task), field="corpus")
        form, found = _in_files(task, path)
        if form:
            return Corpus(form.name, *_converted(form, path, found, options))
    find = _FOLDERS.get(task, rows_by_split) if path.is_dir() else rows_by_split
    rows = find(corpus)
    if not rows:
        raise DataError(path, f"no {task} that can be read", _remedy(task), field="corpus")
    first = next(next(iter(rows.values()))(), None)
    known = (one for one in FORMATS if one.task == task and one.known and first and one.known(first.fields))
    name = form.name if (form := next(known, None)) else "native"

    if name == "fever_symmetric" and "" in rows:
        rows = {claims.SYMMETRIC: rows[""]}  # one file of it is a test set of its own

    def reader(each: Reader) -> Reader:
        return lambda: _read_rows(task, each(), options)

    return Corpus(name, {split: reader(each) for split, each in rows.items()}, {})


def _in_files(task: str, path: Path) -> tuple[Format | None, dict[str, Any]]:
    """The format of several files that a path has, and what that finds; None if it has none."""
    for form in (one for one in FORMATS if one.task == task and one.files):
        if (path.is_dir() or form.name in ALONE) and (found := form.files(path)):
            return form, found
    return None, {}


def format_of(task: str, corpus: str | Path) -> str:
    """The name of a format of several files, which `read_records` would convert; "" for anything else."""
    form, _ = _in_files(task, files.home_path(corpus))
    return form.name if form else ""


def _read_rows(task: str, rows: Iterator[Any], options: Mapping[str, Any]) -> Iterator[Any]:
    """The records of rows, all of the format of the first one."""
    first = next(rows, None)
    if first is None:
        return iter(())
    known = (one for one in FORMATS if one.task == task and one.known and one.known(first.fields))
    form = next(known, None)
    read = form.read if form else READ[task]
    return iter(read(chain([first], rows), **options))


def _remedy(task: str) -> str:
    names = [form.name for form in FORMATS if form.task == task]
    return f"give a folder with train.jsonl, dev.jsonl and test.jsonl, or one of {', '.join(names)}"


def splits_of(task: str, corpus: str | Path, **options: Any) -> tuple[str, ...]:
    """The splits that can be read: those of the corpus and, as `read_records` divides it, train, validation
    and test where they are missing."""
    task = "coreference" if _holds_mentions(task, corpus) else task
    return tuple(filter(None, _divided(task, open_records(task, corpus, **options).splits)))


def _holds_mentions(task: str, corpus: str | Path) -> bool:
    """Whether tags are asked for, of a corpus of coreference."""
    if task != "tagging" or str(corpus).startswith("hub:") or not (path := files.home_path(corpus)).exists():
        return False
    if _in_files(task, path)[0]:
        return False
    if _in_files("coreference", path)[0]:
        return True
    rows = next(iter(rows_by_split(corpus).values()), None)
    return bool(rows and (first := next(rows(), None)) and "mentions" in first.fields)


def read_records(
    task: str, corpus: str | Path, split: str, *, passed_over: PassedOver | None = None, **options: Any
) -> Iterator[Any]:
    """The records of a split, one at a time, in the order of the corpus.

    A corpus without splits is divided by groups (topics, pages, clusters; else records), a fifth for dev and
    a fifth for test; claims without train have a fifth of their dev groups as dev and the others as train.
    Groups are dealt by a hash of their names (`dealt`). `passed_over`: what was skipped is counted there.
    The mentions of a coreference corpus are read as tags too, by `tagged_mentions`, from its files or native
    rows. Raises DataError if the corpus has no such split, or nothing in it.
    """
    if _holds_mentions(task, corpus):
        marked = read_records("coreference", corpus, split, passed_over=passed_over)
        return (tagged_mentions(one, passed_over) for one in marked)
    opened = open_records(task, corpus, **options)
    divided = _divided(task, opened.splits)
    if (wanted := SPLIT_NAMES.get(split, split)) not in divided:
        names = ", ".join(sorted(opened.splits)).replace("validation", "dev")
        raise DataError(str(corpus), f"it has no split {split}, but {names}", _remedy(task), field="split")
    source, read = divided[wanted]
    if passed_over is not None and source in opened.passed_over:
        passed_over.include(opened.passed_over[source])
    return _filled(read(), corpus, split)


def _divided(task: str, found: Mapping[str, Reader]) -> dict[str, tuple[str, Reader]]:
    """Split -> the split of the corpus that it is all or a part of, and what yields its records."""
    given = {split: (split, read) for split, read in found.items()}
    if "" in found:
        source, shares = "", {"test": HELD_OUT, "validation": HELD_OUT, "train": 1 - 2 * HELD_OUT}
    elif task == "claims" and "train" not in found and "validation" in found:
        source, shares = "validation", {"validation": HELD_OUT, "train": 1 - HELD_OUT}
        del given[source]
    else:
        return given
    parts = {
        one: (source, partial(_dealt, task, found[source], one, shares)) for one in SPLITS if one in shares
    }
    return parts | given


def _dealt(task: str, read: Reader, wanted: str, shares: Mapping[str, float]) -> Iterator[Any]:
    group = GROUP.get(task, lambda record: record.id)
    split_of = dealt(dict.fromkeys(map(group, read())), shares, salt=f"{task}/0/")
    return (record for record in read() if split_of[group(record)] == wanted)


def _filled(some: Iterator[Any], corpus: str | Path, split: str) -> Iterator[Any]:
    empty = True
    for record in some:
        empty = False
        yield record
    if empty:
        what, remedy = f"nothing in it for {split}", "give more groups, or files for each split"
        raise DataError(str(corpus), what, remedy, field="split")


# ---- the cache of converted corpora ----


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """What writes and reads a record of this kind as JSON."""
    return TypeAdapter(kind)


def write_records(path: Path, some: Iterable[Any]) -> int:
    """Write records as JSON lines, a file that `read_records` reads; return how many."""
    count = 0
    with files.replaced_file(path) as file:
        for record in some:
            file.write(adapter(type(record)).dump_json(record).decode() + "\n")
            count += 1
    return count


def _converted(
    form: Format, path: Path, found: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[dict[str, Reader], dict[str, PassedOver]]:
    """By split, a function that yields the records of a corpus in files, which are converted if the cache
    does not have them yet; and what was passed over. Raises ParameterError if the cache cannot be written."""
    chosen = json.dumps(dict(options), sort_keys=True, default=str)
    name = "" if path.is_dir() else path.name
    parts = [form.name, str(VERSION), chosen, name, fingerprint(path, of_file=hash_as_known)]
    folder = built_once(
        cache_folder() / "converted" / files.sha256_of_parts(parts)[:32],
        lambda new: _convert(form, found, new, options),
        is_built=Path.is_dir,
    )
    kind, lost = KIND[form.task], json.loads((folder / "passed_over.json").read_text(encoding="utf-8"))

    def reader(split: str) -> Reader:
        def read() -> Iterator[Any]:
            with (folder / f"{split or 'all'}.jsonl").open(encoding="utf-8") as lines:
                yield from map(adapter(kind).validate_json, lines)

        return read

    counted = {split: adapter(PassedOver).validate_python(each) for split, each in lost.items()}
    return {split: reader(split) for split in found}, counted


def _convert(form: Format, found: Mapping[str, Any], folder: Path, options: Mapping[str, Any]) -> None:
    lost = {split: PassedOver() for split in found}
    for split, some in found.items():
        made = form.read(some, passed_over=lost[split], **options)
        shown = tracked(made, desc=f"converting {split or 'all'}", unit="record")
        write_records(folder / f"{split or 'all'}.jsonl", shown)
    text = json.dumps({split: {"counts": one.counts, "notes": one.notes} for split, one in lost.items()})
    (folder / "passed_over.json").write_text(text, encoding="utf-8")
