"""Apply a model to many texts, for `cdlm-lab apply`: one line of JSON in, one line of JSON out.

All lines are checked before a model is loaded: a malformed one stops the command, with its file and line.
Then the model answers a batch of lines at a time, as it answers lists in Python. Answers are appended to
`out.jsonl.part`, which becomes `out.jsonl` when all are there. After a kill the same command continues behind
the last complete line, and the result is the same, since the same lines are always answered together.
`out.jsonl.made.json` records the model by its bytes, its system, the input file, and which of its lines; with
others, or another version, the command is refused. Several machines may each answer a shard of the lines,
whole batches that follow one another: the files of all shards, one after the other, are that of one run.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import IO, Annotated, Any

from pydantic import AfterValidator, Field

from cdlm_lab.apply.language import LanguageModel
from cdlm_lab.apply.loading import kind_of_name, load, made_of
from cdlm_lab.data.files import (
    FROM_LIST,
    FieldFault,
    Fields,
    FilledText,
    JsonRecord,
    Text,
    read_json_lines,
    sha256_of_file,
)
from cdlm_lab.errors import Stopped, check_least
from cdlm_lab.parameters import ParameterError, local_path
from cdlm_lab.progress import Progress, bars_after
from cdlm_lab.runs.identity import Identity, Inputs, changed_inputs
from cdlm_lab.runs.report import Report, RunError, open_run, write_json
from cdlm_lab.runs.scores import Score
from cdlm_lab.tasks.coreference.ask import CoreferenceModel
from cdlm_lab.tasks.joint.ask import AnswerModel, ClaimModel
from cdlm_lab.tasks.matching.ask import MatchingModel
from cdlm_lab.tasks.multihop.ask import QuestionModel
from cdlm_lab.tasks.tagging.ask import TaggingModel
from cdlm_lab.views.answers import ForeignText, Result, TextCut

Some = Annotated[list[FilledText], Field(min_length=1)]
Named = Annotated[dict[Text, FilledText], Field(min_length=1)]


def _writable(value: Any) -> Any:
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except ValueError:
        what = "it has a number or a character that JSON cannot write"
        raise FieldFault(what, "write it as a text or a finite number") from None
    return value


class _Record(Fields):
    id: Annotated[Any, AfterValidator(_writable)] = None  # copied unchanged into the answer


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


def _of_texts(model: LanguageModel, lines: Sequence[_Texts]) -> list[Result]:
    """Lines without a source and without a blank are encoded together, the others are read one by one."""
    results: dict[int, Result] = {}
    for number, one in enumerate(lines):
        if one.source is not None:
            results[number] = model.attention(one.texts, one.source)
        elif any(map(model.has_blank, one.texts)):
            results[number] = model.fill(one.texts)
    rest = [number for number in range(len(lines)) if number not in results]
    encoded = model.encode([lines[number].texts for number in rest]) if rest else ()
    results |= zip(rest, encoded, strict=True)
    return [results[number] for number in range(len(lines))]


def _clusters(model: CoreferenceModel, lines: Sequence[_Documents]) -> list[Result]:
    return [model.clusters(one.documents, threshold=one.threshold) for one in lines]


@dataclass(frozen=True)
class Form:
    """The fields of an input line for one class of models, and how they are answered: by a verb that takes a
    list for each field, or by a function of several lines."""

    kind: type[_Record]
    verb: str | Callable[[Any, Sequence[Any]], Sequence[Result]]

    def answer(self, model: Any, lines: Sequence[Any]) -> Sequence[Result]:
        """The answers to several lines. Raises ValueError if one cannot be read."""
        if not isinstance(self.verb, str):
            return self.verb(model, lines)
        names = (name for name in self.kind.model_fields if name != "id")
        return getattr(model, self.verb)(**{name: [getattr(one, name) for one in lines] for name in names})


FORMS: dict[type[Any], Form] = {
    LanguageModel: Form(_Texts, _of_texts),
    CoreferenceModel: Form(_Documents, _clusters),
    MatchingModel: Form(_Pair, "align"),
    QuestionModel: Form(_Question, "answer"),
    TaggingModel: Form(_Text, "tag"),
    AnswerModel: Form(_Candidates, "rank"),
    ClaimModel: Form(_Claim, "verify"),
}
AT_ONCE = 32  # lines that are answered together, from the first one on
_SHARD = re.compile(r"(\d+)/(\d+)")


@dataclass(frozen=True)
class Shard:
    """A share of the lines of a file: the `number`-th of `of` equal ones, from 1; in whole batches."""

    number: int = 1
    of: int = 1

    @classmethod
    def named(cls, text: str) -> Shard:
        """From `2/8`, or "" for all. Raises ParameterError for anything else."""
        if not text:
            return cls()
        match = _SHARD.fullmatch(text.strip())
        shard = cls(*map(int, match.groups())) if match else cls(0)
        if not 1 <= shard.number <= shard.of:
            raise ParameterError(f'shard is {text!r}; write "2/8" for the second of eight, counted from 1')
        return shard

    def lines(self, total: int, batch: int) -> range:
        """Which of `total` lines, from 0."""
        batches = -(-total // batch)
        first, last = (batches * number // self.of * batch for number in (self.number - 1, self.number))
        return range(min(first, total), min(last, total))

    def file(self, path: Path) -> Path:
        """The file of its answers: `out-2-of-8.jsonl` for `out.jsonl`, in the order of their names."""
        if self.of == 1:
            return path
        number = str(self.number).zfill(len(str(self.of)))
        return path.with_name(f"{path.stem}-{number}-of-{self.of}{path.suffix}")


@dataclass(frozen=True)
class Applied:
    """The file of answers and its number of lines, how many of them the model could not read, and how many
    are foreign to it."""

    file: Path
    lines: int
    refused: int
    foreign: int  # lines whose text is foreign to the model


def apply_lines(
    name: str,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    system: str = "",
    batch: int = AT_ONCE,
    shard: str = "",
) -> Applied:
    """Let a model answer each line of a file, or continue a run that was interrupted.

    Args:
        name: of the model: a shipped one, or a folder; `system`: which one, of a run with several.
        source, target: files of JSON lines; a line that the model cannot read gets an `error`, no answer.
        batch: lines that are answered together; with another number, answers may differ in their last digits.
        shard: which share of the lines, as `2/8`; its answers go to `out-2-of-8.jsonl`. "" = all.

    Raises DataError if a line is malformed. Raises RunError if existing answers are of another file or model,
    or another process is writing them. Raises Stopped after an interrupt.
    """
    name, share = local_path(name, "the model"), Shard.named(shard)
    check_least(batch=batch)
    source, target = _two_files(source, target)
    form = FORMS[kind_of_name(name)]
    wanted = share.lines(sum(1 for _ in read_json_lines(source, form.kind)), batch)
    target = share.file(target)
    made = {"model": name, "system": system, "input": source.name, "sha256": sha256_of_file(source)}
    made |= {"batch": batch, "shard": f"{share.number}/{share.of}"}
    made |= Identity.of("apply", {}, Inputs(models=made_of(name))).as_json
    note = target.with_name(f"{target.name}.made.json")
    if target.exists():
        _check_same(target, note, made)
        return _applied(target)
    with _held(target.with_name(f"{target.name}.part")) as part:
        if part.seek(0, os.SEEK_END):
            _check_same(Path(part.name), note, made)
        else:
            write_json(note, made)
        done = _whole_lines(part)
        if done < len(wanted):
            model = load(name, system=system)
            records = islice(read_json_lines(source, form.kind), wanted.start, wanted.stop)
            with Progress(total=len(wanted), initial=done, desc=source.name, unit="line") as bar:
                _answer_lines(model, form, records, part, done=done, batch=batch, bar=bar)
        part.flush()
        os.replace(part.name, target)
    return _applied(target)


def _two_files(*given: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Source and target. Raises RunError if they are the same, or there is no source."""
    source, target = (Path(local_path(os.fspath(file), "the file")) for file in given)
    if not source.exists():
        raise RunError(f"{source}: there is no such file; check the spelling of the path")
    if source.resolve() == target.resolve():
        raise RunError(f"{source} would be read and written; name another file for the answers")
    return source, target


def apply_in_run(run_folder: str, *, model: str, texts: str, system: str = "") -> Report:
    """Apply a model as a run: answers go to `answers.jsonl` in its folder, and the counts of lines and
    refused lines into its report."""
    model, texts = local_path(model, "model"), local_path(texts, "texts")
    parameters = {"model": model, "texts": texts, "system": system}
    inputs = Inputs(data=[texts], models=made_of(model))
    run = open_run(run_folder, name="apply", parameters=parameters, inputs=inputs)
    if run.finished:
        return run.finished
    applied = apply_lines(model, texts, run.folder / "answers.jsonl", system=system)
    counts = {name: getattr(applied, name) for name in ("lines", "refused", "foreign")}
    scores = [Score(metric=metric, value=value) for metric, value in counts.items()]
    return run.write_report(scores=scores, data={"texts": sha256_of_file(texts)})


def _answer_lines(
    model: Any,
    form: Form,
    records: Iterator[JsonRecord[Any]],
    part: IO[bytes],
    *,
    done: int,
    batch: int,
    bar: Progress,
) -> None:
    try:
        with bars_after(math.inf):
            for start in count(0, batch):
                if not (some := list(islice(records, batch))):
                    return
                if start + len(some) <= done:
                    continue
                for answer in answers_of(model, form, some)[max(done - start, 0) :]:
                    part.write(f"{json.dumps(answer, ensure_ascii=False, allow_nan=False)}\n".encode())
                    bar.update(1)
                part.flush()
    except KeyboardInterrupt:
        raise Stopped(f"stopped; what was made is in {part.name}, and the same command goes on") from None


def answers_of(model: Any, form: Form, records: Sequence[JsonRecord[Any]]) -> list[dict[str, Any]]:
    """The output for each line: its `id` if it has one, the answer, what was `cut`, and what is `foreign` to
    the model; or an `error`. If one of several lines cannot be read, each is answered by itself."""
    with warnings.catch_warnings():
        for kind in (TextCut, ForeignText):  # the answers have what they say
            warnings.simplefilter("ignore", kind)
        try:
            results = form.answer(model, [one.fields for one in records])
        except ValueError as error:
            if len(records) > 1:
                return [line for one in records for line in answers_of(model, form, [one])]
            what = str(error).removeprefix("entry 0 of the lists: ")
            answers = [{"error": f"{records[0].path.name}:{records[0].line}: {what}"}]
        else:
            answers = [one.as_json() | _notes(one) for one in results]
    ids = ({} if one.fields.id is None else {"id": one.fields.id} for one in records)
    return [name | answer for name, answer in zip(ids, answers, strict=True)]


def _notes(result: Result) -> dict[str, Any]:
    notes = {"cut": [result.cut] if result.cut else [], "foreign": result.foreign}
    return {name: note for name, note in notes.items() if note}


def _check_same(begun: Path, note: Path, made: dict[str, Any]) -> None:
    """Raise RunError unless existing answers, finished or not, are of the same input and model."""
    remedy = f"delete {begun}, or name another file"
    try:
        before = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise RunError(f"{begun} is there, and nothing says how it was made; {remedy}") from None
    for name in ("model", "system", "input", "sha256", "batch", "shard"):
        if before.get(name) != made[name]:
            raise RunError(f"{begun} was made with {name} {before.get(name)!r}, not {made[name]!r}; {remedy}")
    if changed := changed_inputs(before, made):
        raise RunError(f"{begun} was made with other models: {'; '.join(changed)}; {remedy}")


@contextmanager
def _held(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for appending, locked against other processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as part:
        try:
            fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"{path} is being written by another process; wait for it, or end it") from None
        yield part


def _whole_lines(part: IO[bytes]) -> int:
    """The number of complete lines; an incomplete last line is removed from the file."""
    part.seek(0)
    count, end = 0, 0
    for line in part:
        if line.endswith(b"\n"):
            count, end = count + 1, end + len(line)
    part.truncate(end)
    part.seek(0, os.SEEK_END)
    return count


def _applied(target: Path) -> Applied:
    noted: Counter[str] = Counter()
    with target.open("rb") as lines:
        for line in lines:
            noted.update({"line"} | json.loads(line).keys() & {"error", "foreign"})
    return Applied(target, lines=noted["line"], refused=noted["error"], foreign=noted["foreign"])
