"""A model applied to many texts: a line of JSON in, a line of JSON out, for `cdlm-lab apply`.

All lines are looked at before anything is loaded: one that is malformed stops the command, with its place.
Then the model answers line after line, as it does from Python, and nothing is kept but the line at hand. What
it gave grows in `out.jsonl.part`, line by line; when all are there that becomes `out.jsonl`. After a kill the
same command goes on behind the last whole line, and the file ends up the same: no answer depends on the lines
before it. `out.jsonl.made.json` says which model read which file, and with what; other ones are refused.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any

from pydantic import Field

import cdlm_lab
from cdlm_lab.applied.language import LanguageModel
from cdlm_lab.applied.loading import kind_of_name, load
from cdlm_lab.applied.results import Result, TextCut
from cdlm_lab.applied.tasks import (
    AnswerModel,
    ClaimModel,
    CoreferenceModel,
    MatchingModel,
    QuestionModel,
    TaggingModel,
)
from cdlm_lab.data.files import (
    FROM_LIST,
    Fields,
    FilledText,
    JsonRecord,
    Text,
    read_json_lines,
    sha256_of_file,
)
from cdlm_lab.errors import Stopped
from cdlm_lab.progress import Progress, bars_after
from cdlm_lab.report import Report, RunError, open_run, write_json
from cdlm_lab.scores import Score

Some = Annotated[list[FilledText], Field(min_length=1)]
Named = Annotated[dict[Text, FilledText], Field(min_length=1)]


class _Record(Fields):
    id: Any = None  # comes back as it is


class _Texts(_Record):
    texts: Some
    source: Annotated[tuple[int, FilledText], FROM_LIST] | None = None


class _Documents(_Record):
    documents: Named
    threshold: float | None = None


class _Pair(_Record):
    first: FilledText
    second: FilledText


class _Question(_Record):
    question: FilledText
    documents: Named


class _Text(_Record):
    text: FilledText


class _Candidates(_Record):
    question: FilledText
    candidates: Some


class _Claim(_Record):
    claim: FilledText
    evidence: list[FilledText]


def _of_texts(model: LanguageModel, given: _Texts) -> Result:
    if given.source is not None:
        return model.attention(given.texts, given.source)
    return model.fill(given.texts) if any(map(model.has_blank, given.texts)) else model.encode(given.texts)


@dataclass(frozen=True)
class Form:
    """What a line for a sort of model holds, and how the model takes it."""

    kind: type[_Record]
    answer: Callable[[Any, Any], Result]


FORMS: dict[type[Any], Form] = {
    LanguageModel: Form(_Texts, _of_texts),
    CoreferenceModel: Form(_Documents, lambda m, one: m.clusters(one.documents, threshold=one.threshold)),
    MatchingModel: Form(_Pair, lambda m, one: m.align(one.first, one.second)),
    QuestionModel: Form(_Question, lambda m, one: m.answer(one.question, one.documents)),
    TaggingModel: Form(_Text, lambda m, one: m.tag(one.text)),
    AnswerModel: Form(_Candidates, lambda m, one: m.rank(one.question, one.candidates)),
    ClaimModel: Form(_Claim, lambda m, one: m.verify(one.claim, one.evidence)),
}


@dataclass(frozen=True)
class Applied:
    """How many lines there are, and how many of them the model could not read."""

    lines: int
    refused: int


def apply_lines(
    name: str, source: str | os.PathLike[str], target: str | os.PathLike[str], *, system: str = ""
) -> Applied:
    """Let a model answer each line of a file, or go on with that.

    Args:
        name: of the model, as `load` takes it; `system`: likewise.
        source, target: files of JSON lines; what the model cannot read has an `error` in place of an answer.

    Raises DataError: a line is malformed. Raises RunError: what is there was made of another file or by
    another model, or another process is at it. Raises Stopped after an interrupt.
    """
    source, target = Path(source), Path(target)
    if not source.exists():
        raise RunError(f"{source}: there is no such file; check the spelling of the path")
    if source.resolve() == target.resolve():
        raise RunError(f"{source} would be read and written; name another file for the answers")
    form = FORMS[kind_of_name(name)]
    total = sum(1 for _ in read_json_lines(source, form.kind))
    made = {"model": name, "system": system, "input": source.name, "sha256": sha256_of_file(source)}
    made |= {"lines": total, "cdlm_lab": cdlm_lab.__version__}
    note = target.with_name(f"{target.name}.made.json")
    _check_same(target, note, made)
    if target.exists():
        return Applied(total, _refused(target))
    with _held(target.with_name(f"{target.name}.part")) as part:
        if not note.exists():
            write_json(note, made)
        done = _whole_lines(part)
        if done < total:
            model = load(name, system=system)
            _answer_lines(model, form, source, part, done=done, total=total)
        part.flush()
        os.replace(part.name, target)
    return Applied(total, _refused(target))


def apply_in_run(run_folder: str, *, model: str, texts: str, system: str = "") -> Report:
    """The same as a run: answers go into `answers.jsonl` of its folder, and what became of them into its
    report."""
    run = open_run(run_folder, name="apply", parameters={"model": model, "texts": texts, "system": system})
    if run.finished:
        return run.finished
    applied = apply_lines(model, texts, run.folder / "answers.jsonl", system=system)
    counts = {"lines": applied.lines, "refused": applied.refused}
    scores = [Score(metric=metric, value=value) for metric, value in counts.items()]
    return run.write_report(scores=scores, data={"texts": sha256_of_file(texts)})


def _answer_lines(model: Any, form: Form, source: Path, part: IO[bytes], *, done: int, total: int) -> None:
    try:
        with Progress(total=total, initial=done, desc=source.name, unit="line") as bar, bars_after(math.inf):
            for number, record in enumerate(read_json_lines(source, form.kind)):
                if number < done:
                    continue
                line = json.dumps(answer_of(model, form, record), ensure_ascii=False, allow_nan=False)
                part.write(f"{line}\n".encode())
                part.flush()
                bar.update(1)
    except KeyboardInterrupt:
        raise Stopped(f"stopped; what was made is in {part.name}, and the same command goes on") from None


def answer_of(model: Any, form: Form, record: JsonRecord[Any]) -> dict[str, Any]:
    """What becomes of a line: its `id` if it has one, the answer, and what was `cut`; or an `error`."""
    given = record.fields
    answer = {} if given.id is None else {"id": given.id}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TextCut)
        try:
            answer |= form.answer(model, given).as_json()
        except ValueError as error:
            return answer | {"error": f"{record.path.name}:{record.line}: {error}"}
    cut = [str(one.message) for one in caught if issubclass(one.category, TextCut)]
    return answer | ({"cut": cut} if cut else {})


def _check_same(target: Path, note: Path, made: dict[str, Any]) -> None:
    """Raise RunError unless what is at the target, or was begun there, was made in the same way."""
    begun = target if target.exists() else target.with_name(f"{target.name}.part")
    if not begun.exists():
        note.unlink(missing_ok=True)
        return
    remedy = f"delete {begun}, or name another file"
    try:
        before = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise RunError(f"{begun} is there, and nothing says how it was made; {remedy}") from None
    for name, value in made.items():
        if before.get(name) != value:
            raise RunError(f"{begun} was made with {name} {before.get(name)!r}, not {value!r}; {remedy}")


@contextmanager
def _held(path: Path) -> Iterator[IO[bytes]]:
    """A file to be gone on with, which no other process writes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as part:
        try:
            fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"{path} is being written by another process; wait for it, or end it") from None
        yield part


def _whole_lines(part: IO[bytes]) -> int:
    """How many lines are whole; the beginning of another is cut off."""
    part.seek(0)
    count, end = 0, 0
    for line in part:
        if line.endswith(b"\n"):
            count, end = count + 1, end + len(line)
    part.truncate(end)
    part.seek(0, os.SEEK_END)
    return count


def _refused(target: Path) -> int:
    with target.open("rb") as lines:
        return sum("error" in json.loads(line) for line in lines)
