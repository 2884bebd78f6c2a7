"""The reports in a folder, and their rows of scores for tables: what is found, what fills which table, and
what is not used and why."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from cdlm_lab.data.files import is_hidden, shipped_path
from cdlm_lab.encoders.variants import VARIANTS, variant_name
from cdlm_lab.parameters import ParameterError, names_in
from cdlm_lab.results.layouts import LAYOUTS
from cdlm_lab.runs.report import ASIDE, REPORT_FILE, RUN_FILE, Report, RunError, read_report
from cdlm_lab.tasks.coreference.experiment import SYSTEM
from cdlm_lab.tasks.joint.claims import SHOWN_ORDER
from cdlm_lab.tasks.matching.systems import SYSTEMS
from cdlm_lab.training.history import HISTORY_FILE
from cdlm_lab.views.score_tables import labels_of, origin
from cdlm_lab.views.tables import SystemRow, system_rows

PERPLEXITY, COREFERENCE = "cross-document perplexity", "coreference"
PARAGRAPHS = "paragraph pretraining"
MATCHING, ALIGNMENT = "document matching", "sentence alignment"
QUESTIONS, TAGGING = "multihop question answering", "document-attentive tagging"
ANSWERS, CLAIMS, ATTENTION = "answer selection", "fact verification", "attention analysis"


# ---- the experiments that fill tables ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What the results book needs to know about an experiment whose reports fill tables."""

    test: tuple[str, ...]  # parameters that determine the test data
    rows: tuple[str, ...] = ("systems",)  # those that distinguish rows, so they may differ within one table


def is_cosine(system: str) -> bool:
    """True for a cosine baseline: `tf-idf` in notebook 04, `tf-idf/cosine` in notebook 05."""
    name = system.partition("/")[0]
    return name in SYSTEMS and not SYSTEMS[name].is_model


_MODELS = tuple(variant.replace("-", "_") for variant in VARIANTS)
_STORIES = ("corpus", "held_out_stories")
_PERPLEXITY_TEST = ("corpus", "split", "clusters", "minimum_documents", "packing")
EXPERIMENTS: Mapping[str, Experiment] = {
    PERPLEXITY: Experiment(
        rows=(*_MODELS, "batch_size"), test=(*_PERPLEXITY_TEST, "max_length", "mask_probability")
    ),
    COREFERENCE: Experiment(
        rows=("model", "context", "max_length", "window", "compare_with"),
        test=(*_STORIES, "kind", "topic_level", "predicted_topics", "test_topics", "singletons"),
    ),
    MATCHING: Experiment(test=(*_STORIES, "unrelated", "negatives_per_positive", "passage_sentences")),
    ALIGNMENT: Experiment(test=("matching_run", "reading")),
    QUESTIONS: Experiment(test=(*_STORIES, "passage_sentences", "paragraphs", "seen", "data_seed")),
    TAGGING: Experiment(rows=("systems", "sweep"), test=(*_STORIES, "held_out_documents")),
    ANSWERS: Experiment(test=(*_STORIES, "test_corpus")),
    CLAIMS: Experiment(test=(*_STORIES, "labels", "evidence", "evidence_sentences")),
    ATTENTION: Experiment(
        rows=_MODELS, test=("corpus", "split", "stories", "pairs", "candidates", "max_length")
    ),
}


@checked(frozen=True)
class Encoder:
    """What made the encoder of a system, as `facts_of` tells it."""

    model: str = ""  # as the run names it
    name: str = ""  # of the language model that it comes from
    variant: str = ""  # "" = not known
    head: str = ""  # of a model of paragraphs, such as `ie_k`
    corpus: str = ""  # "" = not known
    root: str = ""  # what the language model began with
    steps: int = 0
    tasks: tuple[str, ...] = ()  # what it has learned since
    seed: int | None = None
    recipe: str = ""  # the same for models that differ in their seed or variant alone; "" = not known


_ENCODERS = TypeAdapter(dict[str, Encoder])


def encoders_of(report: Report) -> dict[str, Encoder]:
    """System -> the encoder that it reads with or began with. Raises ValueError for other values than
    `facts_of` writes."""
    try:
        return _ENCODERS.validate_python(report.identity.get("encoders", {}))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, ("encoders", *first["loc"])))
        raise ValueError(f"{place}: {first['msg']}") from None


def report_rows(report: Report, *, split: str = "") -> list[SystemRow]:
    """All rows of a report; the group of a row says which table it belongs to: a kind of mentions, a ranking,
    a set of claims. `split`: "" = the one that its notebook shows. Raises KeyError, ValueError or TypeError
    if the report is not as its notebook writes it, or fills no table."""
    layout = LAYOUTS[report.name]
    split = split or layout.split
    labels = {
        system: f"{label}{origin(report, system)} {report.mark}".strip()
        for system, label in labels_of(report, layout).items()
    }
    if report.name == COREFERENCE and SYSTEM not in labels:
        raise ValueError(f"there is no score of {SYSTEM!r}")
    parts = [(split, group) for group in dict.fromkeys(row.group for row in report.rows if row.system)]
    if report.name == CLAIMS:
        parts = [(name, "") for name in SHOWN_ORDER if any(row.split == name for row in report.rows)]
    encoders, rows = encoders_of(report), []
    for part, group in parts:
        for row in system_rows(report.rows, split=part, group=group, labels=labels):
            checkpoint = encoders.get(_of_system(row.system), Encoder()).model
            rows.append(replace(row, group=part if report.name == CLAIMS else group, checkpoint=checkpoint))
    return rows


def _of_system(system: str) -> str:
    """The name under which a report has the encoder of a row: `cdlm` for `cdlm/attention`."""
    return system.partition("/")[0]


def size_of(report: Report, group: str) -> tuple[int, str]:
    """The size of the test set of a group of rows: as a number, for comparing two, and in words."""
    split = group if report.name == CLAIMS else LAYOUTS[report.name].split
    return LAYOUTS[report.name].size(report, split, group)


SMALL = "small"  # folder of short trainings of a few steps, which are demonstrations


def trainings_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each training of a run, such as `joint-ie-0` ("" = the only one), and its history file."""
    for file in (one for one in sorted(folder.rglob(HISTORY_FILE)) if not is_hidden(one, folder)):
        place = file.parent.relative_to(folder).as_posix()
        yield place.removesuffix("training").strip("/.").removeprefix("systems/"), file


def training_name(training: str, report: Report | None) -> str:
    """Display name of a training: `joint-ie-0` -> `joint IE_k, seed 0`; `report`: None = not finished."""
    if training == SMALL:
        return "a new model, its first updates"
    system, _, seed = training.rpartition("-")
    labels = labels_of(report, LAYOUTS[report.name]) if report and report.name in LAYOUTS else {}
    return f"{labels[system]}, seed {seed}" if system in labels else variant_name(training)


# ---- searching a folder ----


_REPORT_START = re.compile(rb'\s*\{\s*"format"\s*:')  # reports are written with this field first


@dataclass(frozen=True)
class NamedReport:
    """A report and its path relative to the folder that was searched, without `report.json`."""

    name: str
    report: Report

    @cached_property
    def rows(self) -> list[SystemRow]:
        """Its rows; [] if it fills no table."""
        return report_rows(self.report) if self.report.name in EXPERIMENTS else []

    @cached_property
    def encoders(self) -> dict[str, Encoder]:
        """`encoders_of` the report."""
        return encoders_of(self.report)

    def encoder_of(self, system: str) -> Encoder:
        """The encoder of a row; one without a name if it has none."""
        return self.encoders.get(_of_system(system), Encoder())


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftAside:
    """A report or run that fills no table though it could, and why; `damaged`: True = it cannot be read."""

    name: str
    why: str
    damaged: bool = False
    folder: Path | None = None  # of a run that is not finished


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFolder:
    """The reports found in one folder or several."""

    searched: str  # the folders that were searched, in words
    reports: list[NamedReport]  # reports that fill tables
    others: list[NamedReport]  # reports that fill no table, such as those on how models were trained
    aside: list[LeftAside]  # what is not used, and why


# The recorded results that come with the project: their name, in `results` and names of reports, and folder.
RECORDED, RECORDED_FOLDER = "recorded", shipped_path("data", "results")


def find_reports(
    *folders: str | os.PathLike[str], leave_out: str = "", own: str | Path | None = None
) -> ReportFolder:
    """Search folders and their subfolders for reports: of runs (`report.json`), or recorded ones of any name.

    Args:
        folders: RECORDED = that of the results that come with the project. If there are several, the name of
            a report begins with that of its folder.
        leave_out: names of reports, separated by spaces, with `*` as a wildcard.
        own: a folder that is not searched, that of the run which searches.

    Raises ParameterError if no folder exists, or a name in `leave_out` matches nothing.
    """
    tops = {os.fspath(name): _folder_of(os.fspath(name)) for name in folders}
    here = {name: top for name, top in tops.items() if top.is_dir()}
    if not here:
        remedy = f"give one with runs in it, or {RECORDED!r}, which the project comes with"
        raise ParameterError(f"results is {' '.join(tops)!r}, which is no folder; {remedy}")
    unused = dict.fromkeys(names_in(leave_out, "leave_out"))
    patterns = list(unused)
    searched = " or ".join(tops)
    away = [LeftAside(name=name, why="is no folder (yet)") for name in tops if name not in here]
    result = ReportFolder(searched=searched, reports=[], others=[], aside=away)
    for called, top in here.items():
        before = f"{called}/" if len(tops) > 1 else ""
        for file in _files(top, own):
            name = before + _name(file, top)
            if (one := _outside(file, before, top)) is not None:
                result.aside.append(one)
            elif not _is_report(file) or file.name == RUN_FILE:
                continue
            elif left := next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None):
                unused.pop(left, None)
                result.aside.append(LeftAside(name=name, why=f"is left out, as leave_out says ({left})"))
            elif isinstance(one := _read(file, name), LeftAside):
                result.aside.append(one)
            else:
                (result.reports if one.rows else result.others).append(one)
    if unused:
        wrong = next(iter(unused))
        raise ParameterError(f"leave_out names {wrong!r}, which no report in {searched} is called")
    return result


def _folder_of(name: str) -> Path:
    return RECORDED_FOLDER if name == RECORDED else Path(name)


def _outside(file: Path, before: str, top: Path) -> LeftAside | None:
    """What is no report, though it stands where one could: a folder that was put aside, an unfinished run."""
    if ASIDE in file.name and file.is_dir():
        return LeftAside(name=before + _name(file, top), why="was put aside; another run has its place")
    if file.name == RUN_FILE and not (file.parent / REPORT_FILE).exists():
        name = before + _name(file.parent / REPORT_FILE, top)
        return LeftAside(name=name, why="is not finished", folder=file.parent)
    return None


def _files(top: Path, own: str | Path | None) -> Iterator[Path]:
    """Yield the JSON files in order, folders that were put aside, and folders called `report.json`. None of
    these folders is entered, nor is `own`, nor are names used that begin with a dot."""
    left = None if own is None else Path(own).resolve()
    for where, folders, names in os.walk(top):
        inner = sorted(
            name for name in folders if not name.startswith(".") and (Path(where) / name).resolve() != left
        )
        folders[:] = [name for name in inner if ASIDE not in name and name != REPORT_FILE]
        files = [name for name in inner if name not in folders]
        files += sorted(name for name in names if name.endswith(".json") and not name.startswith("."))
        yield from (Path(where) / name for name in files)


def _name(file: Path, top: Path) -> str:
    place = file.parent if file.name == REPORT_FILE else file
    name = place.relative_to(top).as_posix() if place != top else REPORT_FILE
    return name.encode("utf-8", errors="backslashreplace").decode("utf-8")  # file names may have any bytes


def _is_report(file: Path) -> bool:
    """Decided by its name, or its first field, without parsing: other JSON files of runs can be large."""
    if file.name == REPORT_FILE:
        return True
    if not file.is_file():
        return False
    try:
        with file.open("rb") as stream:
            return bool(_REPORT_START.match(stream.read(64)))
    except OSError:
        return False


def _read(file: Path, name: str) -> NamedReport | LeftAside:
    """A report, after checking that its rows and test set sizes can be read; or why it is set aside."""
    try:
        one = NamedReport(name=name, report=read_report(file))
        if not one.rows and one.report.name in EXPERIMENTS:
            return LeftAside(name=name, why="has no scores")
        for row in one.rows:
            size_of(one.report, row.group)
    except RunError as error:
        reason = str(error).removeprefix(str(file)).lstrip(": ")
        return LeftAside(name=name, why=f"cannot be read: {reason}", damaged=True)
    except Exception as error:
        return malformed(name, error)
    return one


def malformed(name: str, error: Exception) -> LeftAside:
    """A report that has all fields, but with other contents than its notebook writes."""
    return LeftAside(name=name, why=f"is not as its notebook writes it ({repr(error)[:200]})", damaged=True)
