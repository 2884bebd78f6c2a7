"""`cdlm-lab convert TASK IN OUT`: write a corpus of any known format in the native form."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from itertools import chain
from pathlib import Path

from cdlm_lab.data.convert.written import ENDINGS, save_clusters
from cdlm_lab.data.coreference import topics_of, without_repeats
from cdlm_lab.data.pairs import collected
from cdlm_lab.data.reading import FORMATS, KIND, open_records, read_records, splits_of, write_records
from cdlm_lab.data.records import PassedOver, gold_clusters


def add_convert(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to those of `cdlm-lab`."""
    known = "; ".join(f"{task}: {', '.join(_formats(task))}" for task in KIND)
    convert = commands.add_parser(
        "convert", help="write a corpus in the native form of a task", epilog=f"Formats: {known}."
    )
    convert.add_argument("form", metavar="FORMAT", choices=[*KIND, *(one.name for one in FORMATS)])
    convert.add_argument("source", metavar="IN", help="a file, a folder, or hub:owner/name@revision")
    out = (
        f"the folder of train.jsonl, dev.jsonl, test.jsonl; of coreference also one file {', '.join(ENDINGS)}"
    )
    convert.add_argument("made", metavar="OUT", help=out)
    convert.set_defaults(do=convert_corpus)


def _formats(task: str) -> list[str]:
    return [form.name for form in FORMATS if form.task == task] or ["one's own"]


def convert_corpus(chosen: argparse.Namespace) -> int:
    """Write each split of a corpus as JSON lines of records, or all coreference of it as one file by its
    ending (`save_clusters`); print how many, and what was passed over. The format is a task, whose formats
    are tried, or the name of one. Raises DataError if it is another."""
    task = next((one.task for one in FORMATS if one.name == chosen.form), chosen.form)
    if chosen.form != task and (form := open_records(task, chosen.source).format) != chosen.form:
        print(f"{chosen.source} is not {chosen.form}, but {form}", file=sys.stderr)
        return 1
    out, lost = Path(chosen.made), PassedOver()
    if task == "coreference" and out.suffix in ENDINGS:
        opened = open_records(task, chosen.source)
        for counted in opened.passed_over.values():
            lost.include(counted)
        documents = list(chain.from_iterable(read() for read in opened.splits.values()))
        topics = without_repeats(topics_of(documents, chosen.source), lost)
        save_clusters(out, topics, gold_clusters(topics))
        print(f"{out}: {len(documents):,} documents")
        return _told(lost)
    out.mkdir(parents=True, exist_ok=True)
    if task == "collection":
        both = collected(read_records(task, chosen.source, "", passed_over=lost))
        parts = {"documents": both[0].values(), "links": both[1]}
    else:
        read = partial(read_records, task, chosen.source, passed_over=lost)
        parts = {split.replace("validation", "dev"): read(split) for split in splits_of(task, chosen.source)}
    for name, some in parts.items():
        file = out / f"{name}.jsonl"
        print(f"{file}: {write_records(file, some):,} records")
    return _told(lost)


def _told(lost: PassedOver) -> int:
    for line in [*lost.lines(), *lost.notes]:
        print(line, file=sys.stderr)
    return 0
