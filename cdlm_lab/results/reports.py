"""The reports of a folder, and the rows of scores that they have for tables: what lies in it, what fills
which table, and what is left aside and why."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from cdlm_lab.experiments.answer_selection import ANSWER_SYSTEMS
from cdlm_lab.experiments.answer_selection import RANDOM as RANDOM_ORDER
from cdlm_lab.experiments.coreference import SYSTEM
from cdlm_lab.experiments.fact_verification import CLAIM_SYSTEMS, MAJORITY, SHOWN_ORDER
from cdlm_lab.experiments.systems.matching import SYSTEMS
from cdlm_lab.experiments.systems.tagging import TAG_SYSTEMS
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import ASIDE, REPORT_FILE, RUN_FILE, Report, RunError, read_report
from cdlm_lab.training.history import HISTORY_FILE
from cdlm_lab.widgets.html import VARIANTS, variant_name
from cdlm_lab.widgets.score_tables import LAYOUTS
from cdlm_lab.widgets.tables import SystemRow, system_rows

PERPLEXITY, COREFERENCE = "cross-document perplexity", "coreference"
PARAGRAPHS = "paragraph pretraining"
MATCHING, ALIGNMENT = "document matching", "sentence alignment"
QUESTIONS, TAGGING = "multihop question answering", "document-attentive tagging"
ANSWERS, CLAIMS, ATTENTION = "answer selection", "fact verification", "attention analysis"
BOOK = "results book"


# ---- the experiments that fill tables ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What is to be known of an experiment whose reports fill tables."""

    # System and parameters -> the pretrained encoder that the system is made of; "" = none.
    checkpoint: Callable[[str, Mapping[str, Any]], str]
    rows: tuple[str, ...]  # parameters that the rows of its table are about, so they may differ in one table
    test: tuple[str, ...]  # parameters that say what is measured on
    # Of a report: system -> what to call it, in the order of the rows.
    labels: Callable[[Report], Mapping[str, str]]


def _of_variant(system: str, parameters: Mapping[str, Any]) -> str:
    return str(parameters[system.replace("-", "_")])


def _of_folder(system: str, parameters: Mapping[str, Any]) -> str:
    return f"{parameters['encoders'].rstrip('/')}/{system}"


def _of_matcher(system: str, parameters: Mapping[str, Any]) -> str:
    if system in VARIANTS:
        return _of_folder(system, parameters)
    # word vectors are no encoder
    return "" if SYSTEMS[system].encoder in ("gru", "words") else parameters["sentence_encoder"]


def _of_joint(pretrained: str, parameters: Mapping[str, Any]) -> str:
    """`pretrained`: head of the pre-training with paragraphs, `ie` or `ae`; "" = the plain encoder."""
    return f"{parameters['mspp']}/mspp-{pretrained}" if pretrained else parameters["encoder"]


def _of_ranker(system: str, parameters: Mapping[str, Any]) -> str:
    if system == RANDOM_ORDER:
        return ""
    return _of_joint(ANSWER_SYSTEMS[system].head[:2] if ANSWER_SYSTEMS[system].pretrained else "", parameters)


def _of_verifier(system: str, parameters: Mapping[str, Any]) -> str:
    return "" if system == MAJORITY else _of_joint(CLAIM_SYSTEMS[system].pretrained, parameters)


def _labels_by(label: Callable[[str], str]) -> Callable[[Report], dict[str, str]]:
    """Labels of the systems that a report has scores of."""
    return lambda report: {row.system: label(row.system) for row in report.rows if row.system}


def _aligner_label(system: str) -> str:
    """`GRU-HAN, cosine` of `gru-han/cosine`."""
    name, _, by = system.partition("/")
    return f"{SYSTEMS[name].label}, {by}" if by else "Random (exact)"


def _claim_labels(report: Report) -> dict[str, str]:
    majority = next((row.note for row in report.rows if row.system == MAJORITY), "")
    ours = {name: system.label for name, system in CLAIM_SYSTEMS.items()}
    return {MAJORITY: f"always \u201c{majority}\u201d"} | ours


_MODELS = tuple(variant.replace("-", "_") for variant in VARIANTS)
_STORIES = ("corpus", "held_out_stories")
_PERPLEXITY_TEST = ("corpus", "split", "clusters", "minimum_documents", "packing")
_TAGGER_LABELS = {name: system.label for name, system in TAG_SYSTEMS.items()}
_RANKER_LABELS = {name: system.label for name, system in ANSWER_SYSTEMS.items()}
_RANKER_LABELS |= {RANDOM_ORDER: "random order"}
EXPERIMENTS: Mapping[str, Experiment] = {
    PERPLEXITY: Experiment(
        checkpoint=_of_variant,
        rows=(*_MODELS, "batch_size"),
        test=(*_PERPLEXITY_TEST, "max_length", "mask_probability"),
        labels=_labels_by(variant_name),
    ),
    COREFERENCE: Experiment(
        checkpoint=lambda system, parameters: str(parameters["model"]) if system == SYSTEM else "",
        rows=("model", "context", "max_length", "window", "compare_with"),
        test=(*_STORIES, "kind", "topic_level", "predicted_topics", "test_topics", "singletons"),
        labels=_labels_by(str),
    ),
    MATCHING: Experiment(
        checkpoint=_of_matcher,
        rows=("systems",),
        test=(*_STORIES, "unrelated", "negatives_per_positive", "passage_sentences", "data_seed"),
        labels=_labels_by(lambda system: SYSTEMS[system].label),
    ),
    ALIGNMENT: Experiment(
        checkpoint=lambda *_: "",  # that of the run of notebook 04, which is another report
        rows=("systems",),
        test=("matching_run", "reading"),
        labels=_labels_by(_aligner_label),
    ),
    QUESTIONS: Experiment(
        checkpoint=_of_folder,
        rows=("variants",),
        test=(*_STORIES, "passage_sentences", "paragraphs", "seen", "held_out_questions", "data_seed"),
        labels=_labels_by(variant_name),
    ),
    TAGGING: Experiment(
        checkpoint=lambda system, given: given["small_encoder" if TAG_SYSTEMS[system].small else "encoder"],
        rows=("systems", "sweep"),
        test=(*_STORIES, "held_out_documents", "most_context", "stray_tags", "reading"),
        labels=lambda _: _TAGGER_LABELS,
    ),
    ANSWERS: Experiment(
        checkpoint=_of_ranker,
        rows=("systems",),
        test=(*_STORIES, "test_corpus"),
        labels=lambda _: _RANKER_LABELS,
    ),
    CLAIMS: Experiment(
        checkpoint=_of_verifier,
        rows=("systems",),
        test=(*_STORIES, "held_out_claims", "labels", "evidence", "evidence_sentences"),
        labels=_claim_labels,
    ),
    ATTENTION: Experiment(
        checkpoint=_of_variant,
        rows=_MODELS,
        test=("corpus", "split", "stories", "pairs", "candidates", "max_length"),
        labels=_labels_by(variant_name),
    ),
}


def report_rows(report: Report) -> list[SystemRow]:
    """All rows of a report; the group of a row is the table of the report that it belongs to: a kind of
    mentions, a ranking, a set of claims. Raises KeyError, ValueError, TypeError: the report is not as its
    notebook writes it, or fills no table."""
    experiment, split = EXPERIMENTS[report.name], LAYOUTS[report.name].split
    labels = experiment.labels(report)
    if report.name == COREFERENCE and SYSTEM not in labels:
        raise ValueError(f"there is no score of {SYSTEM!r}")
    parts = [(split, group) for group in dict.fromkeys(row.group for row in report.rows if row.system)]
    if report.name == CLAIMS:
        parts = [(name, "") for name in SHOWN_ORDER if any(row.split == name for row in report.rows)]
    rows = []
    for part, group in parts:
        for row in system_rows(report.rows, split=part, group=group, labels=labels):
            checkpoint = experiment.checkpoint(row.system, report.parameters)
            rows.append(replace(row, group=part if report.name == CLAIMS else group, checkpoint=checkpoint))
    return rows


def size_of(report: Report, group: str) -> tuple[int, str]:
    """On how much the rows of a group were measured: a number, to tell the larger of two, and in words."""
    split = group if report.name == CLAIMS else LAYOUTS[report.name].split
    return LAYOUTS[report.name].size(report, split, group)


SMALL = "small"  # folder of trainings of a few updates, which are for show


def trainings_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Each training of a run, such as `joint-ie-0` ("" = the only one), and the file of its records."""
    for file in sorted(folder.rglob(HISTORY_FILE)):
        place = file.parent.relative_to(folder).as_posix()
        yield place.removesuffix("training").strip("/.").removeprefix("systems/"), file


def training_name(training: str, report: Report | None) -> str:
    """What to call it: `joint-ie-0` -> `joint IE_k, seed 0`; `report`: None = the run is not finished."""
    if training == SMALL:
        return "a new model, its first updates"
    system, _, seed = training.rpartition("-")
    known = EXPERIMENTS.get(report.name) if report else None
    labels = known.labels(report) if known and report else {}
    return f"{labels[system]}, seed {seed}" if system in labels else variant_name(training)


# ---- what lies in a folder ----


# What fills no table of a paper, and why.
_ELSEWHERE = {
    "tour": "trains for show, for minutes; the models that come with the project are in the table",
    "tour, shipped checkpoints": "a part of an older tour; notebook 02 measures",
    "pretraining": "says what its model was trained with; notebook 02 measures it",
    PARAGRAPHS: "says what its model was trained with; notebooks 09 and 10 measure it",
    BOOK: "is an earlier results book",
}
_REPORT_START = re.compile(rb'\s*\{\s*"format"\s*:')  # reports are written with this field first


@dataclass(frozen=True)
class NamedReport:
    """A report and its place below the folder that was searched, without `report.json`."""

    name: str
    report: Report

    @cached_property
    def rows(self) -> list[SystemRow]:
        """Its rows; [] if it fills no table."""
        return report_rows(self.report) if self.report.name in EXPERIMENTS else []


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftAside:
    """Something in the folder that fills no table, and why; `damaged` if it is a report that should."""

    name: str
    why: str
    damaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFolder:
    """What a folder holds."""

    folder: Path  # that was searched
    reports: list[NamedReport]  # those that fill tables
    others: list[NamedReport]  # those that say how models were made
    aside: list[LeftAside]  # what is not used, and why


def find_reports(
    folder: str | os.PathLike[str], *, leave_out: str = "", own: str | Path | None = None
) -> ReportFolder:
    """Search a folder, however deep, of runs, where reports are called `report.json`, or of recorded ones,
    called anything.

    Args:
        leave_out: names of reports, separated by spaces; `*` stands for anything.
        own: a folder that is not searched, that of the run which searches.

    Raises ParameterError: the folder does not exist, or a name of `leave_out` fits none.
    """
    top = Path(folder)
    if not top.is_dir():
        raise ParameterError(
            f"results is {os.fspath(folder)!r}, which is no folder; give one with runs in it"
        )
    unused = dict.fromkeys(leave_out.split())
    patterns = list(unused)
    result = ReportFolder(folder=top, reports=[], others=[], aside=[])
    no_reports = 0
    for file in _files(top, own):
        name = _name(file, top)
        if ASIDE in file.name and file.is_dir():
            result.aside.append(LeftAside(name=name, why="was put aside; another run has its place"))
        elif file.name == RUN_FILE:
            if not (file.parent / REPORT_FILE).exists():
                unfinished = _name(file.parent / REPORT_FILE, top)
                result.aside.append(LeftAside(name=unfinished, why="is not finished"))
        elif not _is_report(file):
            no_reports += 1
        elif left := next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None):
            unused.pop(left, None)
            result.aside.append(LeftAside(name=name, why=f"is left out, as leave_out says ({left})"))
        elif isinstance(one := _read(file, name), LeftAside):
            result.aside.append(one)
        else:
            (result.reports if one.rows else result.others).append(one)
            if why := _ELSEWHERE.get(one.report.name):
                result.aside.append(LeftAside(name=name, why=why))
    if unused:
        raise ParameterError(f"leave_out names {next(iter(unused))!r}, which no report in {top} is called")
    if no_reports:
        result.aside.append(LeftAside(name=f"{no_reports} other JSON files", why="are no reports of runs"))
    return result


def _files(top: Path, own: str | Path | None) -> Iterator[Path]:
    """JSON files in order, folders that were put aside, and those that are called as a report is. None of
    these is entered, nor are `own` and those that begin with a dot."""
    left = None if own is None else Path(own).resolve()
    for where, folders, names in os.walk(top):
        inner = sorted(
            name for name in folders if not name.startswith(".") and (Path(where) / name).resolve() != left
        )
        folders[:] = [name for name in inner if ASIDE not in name and name != REPORT_FILE]
        files = [name for name in inner if name not in folders]
        files += sorted(name for name in names if name.endswith(".json"))
        yield from (Path(where) / name for name in files)


def _name(file: Path, top: Path) -> str:
    place = file.parent if file.name == REPORT_FILE else file
    name = place.relative_to(top).as_posix() if place != top else REPORT_FILE
    return name.encode("utf-8", errors="backslashreplace").decode("utf-8")  # a name may be of any bytes


def _is_report(file: Path) -> bool:
    """By its name, or by its first field: other JSON files of runs can be large."""
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
    """A report whose rows can be read, and on how much they were measured."""
    try:
        one = NamedReport(name=name, report=read_report(file))
        if one.report.name not in EXPERIMENTS and one.report.name not in _ELSEWHERE:
            return LeftAside(name=name, why=f"is of {one.report.name!r}, which fills no table")
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
    """A report that has all fields, but in them something else than its notebook writes."""
    return LeftAside(name=name, why=f"is not as its notebook writes it ({repr(error)[:200]})", damaged=True)
