"""From reports to the rows of tables: which reports belong together, which of two is taken, and what several
seeds are together.

Reports stand in one table if their settings agree (see `report_settings`). A row that several of them have is
that of the newest; runs of the same model that differ in their seed alone are one row, with mean and
deviation over them. Of such a row no interval is shown, for those of the runs say what other test items would
have changed in each; p is the largest of theirs.

Scores out of the reports of all notebooks, in one form: rows of systems, columns of measures.

A row belongs to a group of its report, that is to one table: a kind of mentions, a ranking, a set of claims.
`reported_rows` makes them of a report.

How much a report's numbers were measured on.

From the report of any notebook that fills a table of a paper to rows of scores (see `reported_scores`).

Every report names its scores in its own way; `READERS` has what knows that, by the name of the experiment.

Reports found in a folder of runs, or in data/results, and what lies there besides and is left aside.

What of the parameters of a report says which table it belongs to, what it was measured on, and which model
it is of.

Two reports can stand in one table if they differ in nothing but what its rows are about: models, systems.
Those that differ in the seed alone are one row, whose scores are put together.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from statistics import fmean, stdev
from typing import Any

from cdlm_lab.experiments.answer_selection import ANSWER_SYSTEMS, RANKINGS
from cdlm_lab.experiments.answer_selection import RANDOM as RANDOM_ORDER
from cdlm_lab.experiments.coreference import SYSTEM
from cdlm_lab.experiments.fact_verification import CLAIM_SYSTEMS, MAJORITY, SHOWN_ORDER
from cdlm_lab.experiments.systems.matching import SYSTEMS
from cdlm_lab.experiments.systems.tagging import TAG_SYSTEMS
from cdlm_lab.parameters import BY_HOW_MANY, ParameterError, with_those_of_before
from cdlm_lab.report import ASIDE, REPORT_FILE, RUN_FILE, Report, RunError, read_report
from cdlm_lab.widgets.alignment_table import RANDOM
from cdlm_lab.widgets.html import VARIANTS, variant_name
from cdlm_lab.widgets.rank_table import pairs_in_words

DEV = "dev "  # before the name of a measure: the same on dev
PERPLEXITY, COREFERENCE = "cross-document perplexity", "coreference"
MATCHING, ALIGNMENT = "document matching", "sentence alignment"
QUESTIONS, TAGGING = "multihop question answering", "document-attentive tagging"
ANSWERS, CLAIMS, ATTENTION = "answer selection", "fact verification", "attention analysis"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedScore:
    """A number of a report.

    Attributes:
        value: the number, as the report has it.
        interval: its 95% interval; None = the report has none.
        deviation: standard deviation over `seeds`; None of one.
        seeds: of how many trainings it is the mean; None = it is of one run, or nothing was trained.
        p: of the test against the row `against`, corrected as the report has it; None = not tested.
    """

    value: float
    interval: tuple[float, float] | None = None
    deviation: float | None = None
    seeds: int | None = None
    p: float | None = None
    against: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRow:
    """A system of a report.

    Attributes:
        group: the table of the report that it belongs to.
        system: name, by which tables of papers know it.
        label: what to call it.
        checkpoint: the pretrained encoder that it is made of, as the parameters name it; "" = none.
        scores: by measure; those on dev under `DEV` and the measure.
    """

    group: str
    system: str
    label: str
    checkpoint: str
    scores: Mapping[str, ReportedScore] = field(default_factory=dict)


def score_of(score: Mapping[str, Any], *, p: float | None = None, against: str = "") -> ReportedScore:
    """A score as a report holds it (see `seed_scores.score_of_seeds`), and its test if there is one."""
    return ReportedScore(
        value=float(score["value"]),
        interval=(float(score["low"]), float(score["high"])) if "low" in score else None,
        deviation=score.get("deviation"),
        seeds=score.get("seeds"),
        p=p,
        against=against if p is not None else "",
    )


def p_values_of(rows: Iterable[Mapping[str, Any]], *keys: str) -> dict[tuple[str, ...], tuple[float, str]]:
    """The values of `keys` -> p, corrected, and against what; of the rows `a` against `b`."""
    return {tuple(row[key] for key in keys): (row["p_holm"], row["b"]) for row in rows}


def tested_score(score: Mapping[str, Any], test: tuple[float, str] | None) -> ReportedScore:
    """The same with a value of `p_values_of`."""
    return score_of(score) if test is None else score_of(score, p=test[0], against=test[1])


def size_of(report: Report, group: str) -> tuple[int, str]:
    """A number, to tell the larger of two, and in words; `group` as of `ReportedRow`.

    Raises:
        KeyError, TypeError, ValueError: the report is not as its notebook writes it, or fills no table.
    """
    data, scores, name = report.data, report.scores, report.name
    if name == PERPLEXITY:
        score = next(iter(scores.values()))
        return score["tokens"], f"{score['n']:,} clusters, {score['tokens']:,} masked tokens"
    if name == COREFERENCE:
        pairs = data["pairs_scored"]["test"]
        return pairs, f"{len(data['topics']['test']):,} topics, {pairs:,} pairs"
    if name in (MATCHING, ALIGNMENT):
        pairs, clusters = (
            data[what]["test"] if name == MATCHING else data[what] for what in ("pairs", "clusters")
        )
        return pairs, f"{pairs:,} pairs, {clusters:,} clusters of them"
    if name == QUESTIONS:
        questions = data["questions"]["test"]
        return questions, f"{questions:,} questions, {data['clusters']['test']:,} clusters of them"
    if name == TAGGING:
        return data["documents"]["test"], str(data["facts"]["test"])
    if name == ANSWERS:
        candidates, _ = data["candidates"]["test"], data["format"]["test"]
        return candidates, f"{data['questions']['test']:,} questions, {candidates:,} candidates"
    if name == CLAIMS:
        claims = data["scored"][group]
        return claims, f"{claims:,} claims, {data['groups'][group]:,} groups of them"
    if name == ATTENTION:
        counts = [score["n"] for key, score in scores.items() if "/gap/" not in key]
        told = f"{pairs_in_words(counts)} of each sort and kind, {len(data['topics']):,} topics"
        return sum(counts), told
    raise ValueError(f"no table is filled from reports of {name!r}")


def reported_rows(report: Report) -> list[ReportedRow]:
    """All rows of a report.

    Raises:
        KeyError, ValueError, TypeError: the report is not as its notebook writes it, or no notebook of tables
            wrote it.
    """
    return READERS[report.name](report)


def checkpoint_in(encoders: str, variant: str) -> str:
    """The checkpoint of a variant by the parameter `encoders`, without looking for it."""
    return f"{encoders.rstrip('/')}/{variant}"


def _perplexities(report: Report) -> list[ReportedRow]:
    """Tested against the next variant."""
    tests = p_values_of(report.tables["comparisons"], "a", "kind")
    rows = []
    for variant in dict.fromkeys(name.partition("/")[0] for name in report.scores):
        measures = ("perplexity", "cross_document_perplexity")
        rows.append(
            ReportedRow(
                group="",
                system=variant,
                label=variant_name(variant),
                checkpoint=str(report.parameters[variant.replace("-", "_")]),
                scores={
                    measure: tested_score(report.scores[name], tests.get((variant, measure)))
                    for measure in measures
                    if (name := f"{variant}/{measure}") in report.scores
                },
            )
        )
    return rows


def _coreference(report: Report) -> list[ReportedRow]:
    """This run, and what it was tested against; p stands in the row of the other."""
    tests = {(row["b"],): (row["p_holm"], row["a"]) for row in report.tables["comparisons"]}
    of_system: dict[str, dict[str, ReportedScore]] = {}
    for name, score in report.scores.items():
        if name.count("/") == 3:
            split, system, measure, part = name.split("/")
            key = f"{DEV if split == 'dev' else ''}{measure}/{part}"
            test = tests.get((system,)) if key == "conll/f1" else None
            of_system.setdefault(system, {})[key] = tested_score(score, test)
    if SYSTEM not in of_system:
        raise ValueError(f"there is no score of {SYSTEM!r}")
    context = report.parameters["context"]
    return [
        ReportedRow(
            group=report.parameters["kind"],
            system=context if system == SYSTEM else system,
            label=system,
            checkpoint=str(report.parameters["model"]) if system == SYSTEM else "",
            scores=scores,
        )
        for system, scores in of_system.items()
    ]


def _with_dev(
    report: Report, system: str, measures: Iterable[str], tests: Mapping[tuple[str, ...], tuple[float, str]]
) -> dict[str, ReportedScore]:
    """Scores named system/split/measure; `tests` by system and measure are of test."""
    found = {}
    for measure in measures:
        if (name := f"{system}/test/{measure}") in report.scores:
            found[measure] = tested_score(report.scores[name], tests.get((system, measure)))
        if (name := f"{system}/dev/{measure}") in report.scores:
            found[f"{DEV}{measure}"] = score_of(report.scores[name])
    return found


def _systems(report: Report) -> list[str]:
    return list(dict.fromkeys(name.partition("/")[0] for name in report.scores))


def _matching_checkpoint(system: str, parameters: Mapping[str, Any]) -> str:
    if system in VARIANTS:
        return checkpoint_in(parameters["encoders"], system)
    # word vectors are no encoder
    return "" if SYSTEMS[system].encoder in ("gru", "words") else parameters["sentence_encoder"]


def _matching(report: Report) -> list[ReportedRow]:
    tests = p_values_of(report.tables["comparisons"], "a", "measure")
    return [
        ReportedRow(
            group="",
            system=system,
            label=SYSTEMS[system].label,
            checkpoint=_matching_checkpoint(system, report.parameters),
            scores=_with_dev(report, system, ("accuracy", "f1"), tests),
        )
        for system in _systems(report)
    ]


def _alignment(report: Report) -> list[ReportedRow]:
    """System and what ranks, `gru-han/cosine`; given that documents are related (`oracle`), jointly with that
    decision (`joint`), and as the released code scores it (`released`)."""
    tests = {
        (row["a"], row["by"]): (row["p_holm"], f"{row['b']}/{row['b_by']}")
        for row in report.tables["comparisons"]
    }
    of_row: dict[tuple[str, str, str], dict[str, ReportedScore]] = {}
    for name, score in report.scores.items():
        system, by, setting, measure = name.split("/")
        test = tests.get((system, by)) if (setting, measure) == ("oracle", "mrr") else None
        of_row.setdefault((setting, system, by), {})[measure] = tested_score(score, test)
    return [
        ReportedRow(
            group=setting,
            system=RANDOM if system == RANDOM else f"{system}/{by}",
            label="Random (exact)" if system == RANDOM else f"{SYSTEMS[system].label}, {by}",
            checkpoint="",  # that of the run of notebook 04, which is another report
            scores=scores,
        )
        for (setting, system, by), scores in of_row.items()
    ]


def _questions(report: Report) -> list[ReportedRow]:
    tests = p_values_of(report.tables["comparisons"], "a", "measure")
    measures = ("em", "f1", "sp_em", "sp_f1", "joint_em", "joint_f1")
    return [
        ReportedRow(
            group="",
            system=variant,
            label=variant_name(variant),
            checkpoint=checkpoint_in(report.parameters["encoders"], variant),
            scores=_with_dev(report, variant, measures, tests),
        )
        for variant in _systems(report)
    ]


def _tagging(report: Report) -> list[ReportedRow]:
    tests = p_values_of(report.tables["comparisons"], "a", "measure")
    return [
        ReportedRow(
            group="",
            system=name,
            label=system.label,
            checkpoint=report.parameters["small_encoder" if system.small else "encoder"],
            scores=_with_dev(report, name, ("precision", "recall", "f1"), tests),
        )
        for name, system in TAG_SYSTEMS.items()
        if f"{name}/test/f1" in report.scores
    ]


def _answers(report: Report) -> list[ReportedRow]:
    """Tested against pairwise; the other tests, of pre-training, stand in the report alone. A random order is
    a row of both rankings, as pairwise is, which ranks all."""
    rows = [row for row in report.tables["comparisons"] if row["b"] == "pairwise"]
    tests = p_values_of(rows, "a", "ranking", "measure")
    found = []
    for group in RANKINGS:
        for name in (*ANSWER_SYSTEMS, RANDOM_ORDER):
            how = group if f"{name}/{group}/test/map" in report.scores else "all"
            if f"{name}/{how}/test/map" not in report.scores:
                continue
            system = ANSWER_SYSTEMS.get(name)
            pretrained = system.head[:2] if system and system.pretrained else ""
            found.append(
                ReportedRow(
                    group=group,
                    system=system.published if system else name,
                    label=system.label if system else "random order",
                    checkpoint=_joint_checkpoint(pretrained, report.parameters) if system else "",
                    scores={
                        f"{before}{measure}": tested_score(
                            report.scores[f"{name}/{how}/{split}/{measure}"],
                            tests.get((name, how, measure)) if split == "test" else None,
                        )
                        for before, split in (("", "test"), (DEV, "dev"))
                        for measure in ("p_at_1", "map", "mrr")
                    },
                )
            )
    return found


def _joint_checkpoint(pretrained: str, parameters: Mapping[str, Any]) -> str:
    """`pretrained`: head of the pre-training with paragraphs, `ie` or `ae`; "" = the plain encoder."""
    if not pretrained:
        return parameters["encoder"]
    return f"{parameters['mspp']}/mspp-{pretrained}"


def _claims(report: Report) -> list[ReportedRow]:
    """Tested against pairwise reading, as the table of notebook 10 has it."""
    tests = {
        (row["a"], row["set"]): (row["p_holm"], CLAIM_SYSTEMS[row["b"]].paper)
        for row in report.tables["comparisons"]
        if CLAIM_SYSTEMS[row["b"]].pairwise
    }
    found = []
    for group in SHOWN_ORDER:
        for name in (MAJORITY, *CLAIM_SYSTEMS):
            score = report.scores.get(f"{name}/{group}/label_accuracy")
            if score is None:
                continue
            system = CLAIM_SYSTEMS.get(name)
            found.append(
                ReportedRow(
                    group=group,
                    system=(system.paper or name) if system else name,
                    label=system.label if system else f"always \u201c{score['label']}\u201d",
                    checkpoint=_joint_checkpoint(system.pretrained, report.parameters) if system else "",
                    scores={
                        "label_accuracy": tested_score(score, tests.get((name, group))),
                        f"{DEV}label_accuracy": score_of(report.scores[f"{name}/dev/label_accuracy"]),
                    },
                )
            )
    return found


def _attention(report: Report) -> list[ReportedRow]:
    """Tested against the next variant."""
    tests = p_values_of(report.tables["comparisons"], "a", "cell")
    of_variant: dict[str, dict[str, ReportedScore]] = {}
    for name, score in report.scores.items():
        variant, _, cell = name.partition("/")
        of_variant.setdefault(variant, {})[cell] = tested_score(score, tests.get((variant, cell)))
        if "chance" in score:
            of_variant[variant][f"chance/{cell}"] = ReportedScore(value=float(score["chance"]))
    return [
        ReportedRow(
            group="",
            system=variant,
            label=variant_name(variant),
            checkpoint=str(report.parameters[variant.replace("-", "_")]),
            scores=scores,
        )
        for variant, scores in of_variant.items()
    ]


READERS: Mapping[str, Callable[[Report], list[ReportedRow]]] = {
    PERPLEXITY: _perplexities,
    COREFERENCE: _coreference,
    MATCHING: _matching,
    ALIGNMENT: _alignment,
    QUESTIONS: _questions,
    TAGGING: _tagging,
    ANSWERS: _answers,
    CLAIMS: _claims,
    ATTENTION: _attention,
}


BOOK = "results book"
# What fills no table of a paper, and why.
_ELSEWHERE = {
    "tour": "trains for show, for minutes; notebook 02 measures",
    "tour, shipped checkpoints": "a part of the tour; notebook 02 measures",
    "pretraining": "says what its model was trained with; notebook 02 measures it",
    "paragraph pretraining": "says what its model was trained with; notebooks 09 and 10 measure it",
    BOOK: "is an earlier results book",
}
_REPORT_START = re.compile(rb'\s*\{\s*"format"\s*:')  # reports are written with this field first


@dataclass(frozen=True)
class FoundReport:
    """A report in a folder.

    Attributes:
        name: its place below the folder, without `report.json`.
        report: what it says.
    """

    name: str
    report: Report

    @cached_property
    def rows(self) -> list[ReportedRow]:
        """Its rows; [] if it fills no table."""
        return reported_rows(self.report) if self.report.name in READERS else []


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftAside:
    """Something in the folder that fills no table, and why; `damaged` if it is a report that should."""

    name: str
    why: str
    damaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundReports:
    """What a folder holds.

    Attributes:
        folder: where was looked.
        reports: those that fill tables.
        others: those that say how models were made.
        aside: what is not used, and why.
    """

    folder: Path
    reports: Sequence[FoundReport]
    others: Sequence[FoundReport]
    aside: Sequence[LeftAside]


def find_reports(
    folder: str | os.PathLike[str], *, leave_out: str = "", own: str | Path | None = None
) -> FoundReports:
    """Look through a folder, however deep.

    Args:
        folder: of runs, where reports are called `report.json`, or of recorded ones, called anything.
        leave_out: names of reports, separated by spaces, as `FoundReport.name` has them; `*` stands for
            anything.
        own: a folder that is not looked into, that of the run which looks.

    Raises:
        ParameterError: the folder is not there, or a name of `leave_out` fits none.
    """
    top = Path(folder)
    if not top.is_dir():
        raise ParameterError(
            f"results is {os.fspath(folder)!r}, which is no folder; give one with runs in it"
        )
    patterns = leave_out.split()
    fitting = dict.fromkeys(patterns, 0)
    reports: list[FoundReport] = []
    others: list[FoundReport] = []
    aside: list[LeftAside] = []
    no_reports = 0
    for file in _files(top, own):
        name = _name(file, top)
        if ASIDE in file.name and file.is_dir():
            aside.append(LeftAside(name=name, why="was put aside; another run has its place"))
        elif file.name == RUN_FILE:
            if not (file.parent / REPORT_FILE).exists():
                aside.append(LeftAside(name=_name(file.parent / REPORT_FILE, top), why="is not finished"))
        elif not _is_report(file):
            no_reports += 1
        elif left := next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None):
            fitting[left] += 1
            aside.append(LeftAside(name=name, why=f"is left out, as leave_out says ({left})"))
        elif isinstance(one := _read(file, name), LeftAside):
            aside.append(one)
        else:
            (reports if one.rows else others).append(one)
            if why := _ELSEWHERE.get(one.report.name):
                aside.append(LeftAside(name=name, why=why))
    if unused := [pattern for pattern, count in fitting.items() if not count]:
        raise ParameterError(f"leave_out names {unused[0]!r}, which no report in {top} is called")
    if no_reports:
        aside.append(LeftAside(name=f"{no_reports} other JSON files", why="are no reports of runs"))
    return FoundReports(folder=top, reports=reports, others=others, aside=aside)


def _files(top: Path, own: str | Path | None) -> list[Path]:
    """JSON files in order, folders that were put aside, and those that are called as a report is. None of
    these is entered, nor are `own` and those that begin with a dot."""
    left = None if own is None else Path(own).resolve()
    found: list[Path] = []
    for where, folders, names in os.walk(top):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and (Path(where) / name).resolve() != left
        )
        found += [Path(where) / name for name in folders if ASIDE in name or name == REPORT_FILE]
        folders[:] = [name for name in folders if ASIDE not in name and name != REPORT_FILE]
        found += [Path(where) / name for name in sorted(names) if name.endswith(".json")]
    return found


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


def _read(file: Path, name: str) -> FoundReport | LeftAside:
    """A report whose rows can be read, and on how much they were measured."""
    try:
        found = FoundReport(name=name, report=read_report(file))
        if found.report.name not in READERS and found.report.name not in _ELSEWHERE:
            return LeftAside(name=name, why=f"is of {found.report.name!r}, which fills no table")
        if not found.rows and found.report.name in READERS:
            return LeftAside(name=name, why="has no scores")
        for row in found.rows:
            size_of(found.report, row.group)
    except RunError as error:
        told = str(error).removeprefix(str(file)).lstrip(": ")
        return LeftAside(name=name, why=f"cannot be read: {told}", damaged=True)
    except Exception as error:
        return malformed(name, error)
    return found


def malformed(name: str, error: Exception) -> LeftAside:
    """A report that has all fields, but in them something else than its notebook writes."""
    return LeftAside(name=name, why=f"is not as its notebook writes it ({repr(error)[:200]})", damaged=True)


_PARAGRAPHS = "paragraph pretraining"
_PRETRAININGS = ("pretraining", _PARAGRAPHS)
_MODELS = tuple(variant.replace("-", "_") for variant in VARIANTS)
# Parameters that change no number, or say how many numbers are put together.
_ALWAYS_FREE = ("run_folder", "seed", "seeds", "attention", "precision", *BY_HOW_MANY)
_SHOWN = (
    "own_documents",
    "own_question",
    "own_text",
    "own_claim",
    "shown_model",
    "shown_pair",
    "shown_system",
)
_ADDED = "attention_dropout"
_HELD = ("micro_batch_size", "encoder_micro_batch_size", "gradient_checkpointing")
_FREE = (*_ALWAYS_FREE, *_HELD, *_SHOWN, "first_document", "second_document", "explore", "explore_documents")
# What changes nothing where the corpus is another.
_OF_STORYWORLD = ("train_stories", "held_out_stories", "stories", "paragraphs", "seen")
# The folders within a run that may stand behind its own in the name of a checkpoint.
_WITHIN = ("model", "training")
# The recorded runs, in data/results, that left the models which come with the project.
_RECORDED = "storyworld_tiny/pretraining_{}.json"
_DEEPEST = 8  # a run made from a run made from ...; the end of those that name each other


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Which parameters of an experiment mean what.

    Attributes:
        rows: the rows of its table are about these, so they may differ.
        test: these say what is measured on.
    """

    rows: tuple[str, ...]
    test: tuple[str, ...]


SETTINGS: Mapping[str, Setting] = {
    PERPLEXITY: Setting(
        rows=(*_MODELS, "batch_size"),
        test=(
            "corpus",
            "split",
            "clusters",
            "minimum_documents",
            "packing",
            "max_length",
            "mask_probability",
        ),
    ),
    COREFERENCE: Setting(
        rows=("model", "context", "max_length", "window", "compare_with"),
        test=(
            "corpus",
            "kind",
            "topic_level",
            "predicted_topics",
            "test_topics",
            "held_out_stories",
            "singletons",
        ),
    ),
    MATCHING: Setting(
        rows=("systems",),
        test=(
            "corpus",
            "held_out_stories",
            "unrelated",
            "negatives_per_positive",
            "passage_sentences",
            "data_seed",
        ),
    ),
    ALIGNMENT: Setting(rows=("systems",), test=("matching_run", "reading")),
    QUESTIONS: Setting(
        rows=("variants",),
        test=(
            "corpus",
            "held_out_stories",
            "passage_sentences",
            "paragraphs",
            "seen",
            "held_out_questions",
            "data_seed",
        ),
    ),
    TAGGING: Setting(
        rows=("systems", "sweep"),
        test=("corpus", "held_out_stories", "held_out_documents", "most_context", "stray_tags", "reading"),
    ),
    ANSWERS: Setting(rows=("systems",), test=("corpus", "test_corpus", "held_out_stories")),
    CLAIMS: Setting(
        rows=("systems",),
        test=("corpus", "held_out_stories", "held_out_claims", "evidence", "evidence_sentences"),
    ),
    ATTENTION: Setting(
        rows=_MODELS, test=("corpus", "split", "stories", "pairs", "candidates", "max_length")
    ),
}
_CORPORA = {
    "storyworld": "storyworld",
    "news_clusters": "news",
    "ECB+_LREC2014": "ECB+",
    "ecbplus": "ECB+",
    "scisumm": "SciSumm",
    "hotpotqa": "HotpotQA",
    "genia_ner_data_full": "JNLPBA",
    "jnlpba": "JNLPBA",
    "litbank": "LitBank",
    "wikiqa": "WikiQA",
    "trecqa": "TREC-QA",
    "asnq": "ASNQ",
    "fm2": "FM2",
    "fever_related": "FM2",
}


@dataclass(frozen=True)
class KnownRuns:
    """The runs of a folder, by which paths in the parameters of others are understood: a checkpoint of a run
    is the same model whatever its folder is called, and with another seed the same but for the seed."""

    found: FoundReports

    @cached_property
    def by_folder(self) -> dict[PurePosixPath, FoundReport]:
        """The folder of each run, as its parameters say and as it lies here -> the run."""
        folders: dict[PurePosixPath, FoundReport] = {}
        for one in (*self.found.reports, *self.found.others):
            if given := one.report.parameters.get("run_folder"):
                folders[_path(str(given))] = one
            folders[_path((self.found.folder / one.name).as_posix())] = one
        return folders

    @cached_property
    def by_head(self) -> dict[PurePosixPath, FoundReport]:
        """Runs of notebook 08 as `reported_rows` names them, by the folder that holds them and their head:
        `runs/mspp/mspp-ie`, whatever the run in `runs/mspp` is called."""
        return {
            folder.parent / f"mspp-{_head(one)}": one
            for folder, one in self.by_folder.items()
            if one.report.name == _PARAGRAPHS
        }

    def run_at(self, path: str) -> FoundReport | None:
        """The run in whose folder a path lies; None if it lies in none that is known."""
        place = _path(path)
        for folder in (place, *place.parents):
            one = self.by_folder.get(folder) or self.by_head.get(folder)
            if one and str(folder) != ".":
                return one
        return None

    def told(self, value: Any, *, deep: int = 0) -> Any:
        """A parameter's value in a form in which that of another run can be compared: a path in a run is what
        the run was made with."""
        if not isinstance(value, str) or not value or deep > _DEEPEST:
            return value
        if run := self.run_at(value):
            return (run.report.name, self.of_report(run, without=_FREE, deep=deep + 1))
        place = _path(value)
        # Of a grid's folder its pretrained models alone: the runs beside them name that folder themselves.
        within = {
            folder.name: self.of_report(one, without=_FREE, deep=deep + 1)
            for folder, one in self.by_folder.items()
            if folder.parent == place and str(place) != "." and one.report.name in _PRETRAININGS
        }
        return tuple(sorted(within.items())) if within else value

    def of_report(
        self, one: FoundReport, *, without: Sequence[str], deep: int = 0
    ) -> tuple[tuple[str, str], ...]:
        """(name, value) of the parameters, but for those that are not given or not asked for."""
        invented = one.report.parameters.get("corpus", "storyworld") == "storyworld"
        values = {
            name: _corpus_path(value) if "corpus" in name else self.told(value, deep=deep)
            for name, value in _without_what_goes_without_saying(one.report.parameters).items()
            if name not in without and value not in ("", None) and (invented or name not in _OF_STORYWORLD)
        }
        return tuple(sorted((name, repr(value)) for name, value in values.items()))

    def setting_of(self, one: FoundReport) -> tuple[tuple[str, str], ...]:
        """What reports of one table agree in."""
        return self.of_report(one, without=(*_FREE, *SETTINGS[one.report.name].rows))

    def test_of(self, one: FoundReport) -> tuple[tuple[str, str], ...]:
        """What was measured on."""
        kept = SETTINGS[one.report.name].test
        return self.of_report(one, without=[name for name in one.report.parameters if name not in kept])

    def encoder_of(self, checkpoint: str, *, deep: int = 0) -> str:
        """The name of a checkpoint for people, the same for all seeds; "" = none."""
        if not checkpoint or checkpoint.startswith("storyworld/"):
            return checkpoint
        run = self.run_at(checkpoint)
        if run is None or deep > _DEEPEST:
            return _plain(checkpoint)
        parameters = run.report.parameters
        variant = parameters.get("variant")
        if variant and run.name == _RECORDED.format(variant):
            return f"storyworld/{variant}"
        if variant or run.report.name == _PARAGRAPHS:
            made = variant_name(variant) if variant else f"MSPP {_head(run).upper()}_k"
            steps = f"{parameters.get('steps', 0):,} steps"
            corpus = corpus_name(str(parameters.get("corpus", "")))
            return f"{made} of {corpus}, from {self._root(run)}, {steps}"
        started = str(parameters.get("model") or parameters.get("encoder") or "")
        return self.encoder_of(started, deep=deep + 1) if started else run.name

    def _root(self, run: FoundReport) -> str:
        """The checkpoint that the first of the runs started from of which a model was made."""
        for _ in range(_DEEPEST):
            start = str(run.report.parameters.get("model", ""))
            before = self.run_at(start)
            if before is None or before is run:
                return _plain(start)
            run = before
        return run.name

    def variant_of(self, checkpoint: str, *, deep: int = 0) -> str:
        """The variant of a checkpoint, by the run that made it or else by its folder; "" = not known."""
        run = self.run_at(checkpoint)
        if run and (variant := run.report.parameters.get("variant")):
            return str(variant)
        if run and run.report.parameters.get("model") and deep < _DEEPEST:
            return self.variant_of(str(run.report.parameters["model"]), deep=deep + 1)
        parts = [part for part in _path(checkpoint).parts if part in VARIANTS]
        return parts[-1] if parts else ""

    def misnamed(self, one: FoundReport) -> str:
        """Says that a report has one variant's model for another's, as a trial may; "" = it has not."""
        for row in one.rows:
            made = self.variant_of(row.checkpoint) if row.system in VARIANTS else ""
            if made not in ("", row.system):
                return f"has a model of {made} for {row.system}"
        return ""


def corpus_name(corpus: str) -> str:
    """What to call a corpus that a parameter names."""
    name = _corpus_path(corpus)
    return _CORPORA.get(name, name)


def corpus_of(one: FoundReport, runs: KnownRuns) -> str:
    """What to call what a report was measured on."""
    parameters = one.report.parameters
    if one.report.name == ALIGNMENT:
        given = str(parameters.get("matching_run", ""))
        matching = runs.run_at(given)
        if matching is None or matching is one:
            return f"documents of {_plain(given)}" if given else "storyworld"
        return corpus_of(matching, runs)
    if one.report.name == ANSWERS:
        return corpus_name(str(one.report.data["format"]["test"]))
    return corpus_name(str(parameters.get("corpus", "")))


def _without_what_goes_without_saying(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters without those that older reports do not have, where they say what was so then."""
    older = {name: value for name, value in parameters.items() if name != _ADDED}
    was = with_those_of_before(older, (_ADDED,))[_ADDED]
    return older if parameters.get(_ADDED, was) == was else dict(parameters)


def _path(path: str) -> PurePosixPath:
    """Relative paths are taken from where the runs were started, whatever that was: leading dots are
    dropped."""
    parts = [part for part in PurePosixPath(Path(path).as_posix()).parts if part not in (".", "..")]
    return PurePosixPath(*parts) if parts else PurePosixPath(".")


def _head(one: FoundReport) -> str:
    """`ie` or `ae`, of a run of notebook 08."""
    return str(one.report.parameters["head"]).removesuffix("_k")


def _plain(checkpoint: str) -> str:
    """The folder of a run without what it holds: `runs/news/cdlm/model` -> `runs/news/cdlm`."""
    path = _path(checkpoint)
    while path.name in _WITHIN or path.name.startswith("checkpoint-"):
        path = path.parent
    return str(path)


def _corpus_path(corpus: Any) -> Any:
    """A corpus is the same wherever its folder lies."""
    return PurePosixPath(corpus.rstrip("/")).name if isinstance(corpus, str) else corpus


CONTEXTS = {"documents": "whole documents", "sentences": "sentences only"}
_Candidate = tuple[FoundReport, ReportedRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenRow:
    """A row of a table.

    Attributes:
        row: its scores; `against` of these is a label.
        encoder: name of its checkpoint; "" = none.
        sources: the reports that it is from, of several seeds in their order.
        passed_over: reports that have this row too and were not taken.
    """

    row: ReportedRow
    encoder: str
    sources: tuple[FoundReport, ...]
    passed_over: tuple[FoundReport, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Reports of one experiment whose settings agree, and the rows that they make of one group.

    Attributes:
        newest: the last of them.
        reports: all of them.
        setting: what they agree in.
        rows: by system.
    """

    newest: FoundReport
    reports: Sequence[FoundReport]
    setting: tuple[tuple[str, str], ...]
    rows: Mapping[str, TakenRow]


def series_of(
    found: FoundReports, runs: KnownRuns, *, experiment: str, group: str, choose: str = ""
) -> list[Series]:
    """The series of a group of rows, the oldest first.

    Args:
        choose: names of reports, separated by spaces, `*` standing for anything, that are taken before newer
            ones.
    """
    by_setting: dict[tuple[tuple[str, str], ...], list[FoundReport]] = {}
    for one in sorted(found.reports, key=lambda one: (one.report.finished, one.name)):
        if one.report.name == experiment and any(row.group == group for row in one.rows):
            by_setting.setdefault(runs.setting_of(one), []).append(one)
    return [
        Series(
            newest=reports[-1],
            reports=reports,
            setting=setting,
            rows=_taken(reports, runs, group, choose.split()),
        )
        for setting, reports in by_setting.items()
    ]


def check_chosen(found: FoundReports, choose: str) -> None:
    """Refuses names of `choose` that no report has.

    Raises:
        ParameterError: such a name.
    """
    for pattern in choose.split():
        if not any(fnmatchcase(one.name, pattern) for one in found.reports):
            raise ParameterError(f"choose names {pattern!r}, which no report in {found.folder} is called")


def _taken(
    reports: Sequence[FoundReport], runs: KnownRuns, group: str, chosen: Sequence[str]
) -> dict[str, TakenRow]:
    candidates: dict[str, list[_Candidate]] = {}
    for one in reports:
        for row in one.rows:
            if row.group == group:
                named = _named(one, row, runs)
                candidates.setdefault(named.system, []).append((one, named))
    taken = {system: _take(rows, runs, chosen) for system, rows in candidates.items()}
    return {system: _with_sound_tests(one, taken) for system, one in taken.items()}


def _named(one: FoundReport, row: ReportedRow, runs: KnownRuns) -> ReportedRow:
    """Of coreference, where a report is of one model and says `this run`: the row as the table has it."""
    if one.report.name != COREFERENCE:
        return row
    ours = next(other for other in one.rows if other.label == SYSTEM)
    model = runs.variant_of(ours.checkpoint) or runs.encoder_of(ours.checkpoint)
    system = f"{model}/{ours.system}"
    if row is ours:
        label = f"{variant_name(model)}, {CONTEXTS.get(ours.system, ours.system)}"
        return replace(row, system=system, label=label)
    scores = {
        name: replace(score, against=system) if score.p is not None else score
        for name, score in row.scores.items()
    }
    return replace(row, scores=scores)


def _take(candidates: Sequence[_Candidate], runs: KnownRuns, chosen: Sequence[str]) -> TakenRow:
    """The newest, or the newest that is chosen, with the runs of the same model that have other seeds."""

    def rank(candidate: _Candidate) -> tuple[bool, str, str]:
        one = candidate[0]
        return any(fnmatchcase(one.name, name) for name in chosen), one.report.finished, one.name

    ordered = sorted(candidates, key=rank)
    model = runs.told(ordered[-1][1].checkpoint)
    of_seed: dict[int | None, _Candidate] = {}
    for candidate in ordered:  # the last of each seed stays
        if runs.told(candidate[1].checkpoint) == model:
            of_seed[candidate[0].report.seed] = candidate
    alike = sorted(of_seed.values(), key=lambda candidate: candidate[0].report.seed or 0)
    if not ordered[-1][1].checkpoint and len({repr(_values(row)) for _, row in alike}) == 1:
        alike = [ordered[-1]]  # nothing was trained, so seeds change nothing
    sources = tuple(one for one, _ in alike)
    return TakenRow(
        row=_merged([row for _, row in alike]),
        encoder=runs.encoder_of(ordered[-1][1].checkpoint),
        sources=sources,
        passed_over=tuple(one for one, _ in ordered if one not in sources),
    )


def _values(row: ReportedRow) -> dict[str, float]:
    return {name: score.value for name, score in row.scores.items()}


def _merged(rows: Sequence[ReportedRow]) -> ReportedRow:
    if len(rows) == 1:
        return rows[0]
    measures = [name for name in rows[0].scores if all(name in row.scores for row in rows)]
    return replace(rows[0], scores={name: _of_seeds([row.scores[name] for row in rows]) for name in measures})


def _of_seeds(scores: Sequence[ReportedScore]) -> ReportedScore:
    values = [score.value for score in scores]
    p = [score.p for score in scores if score.p is not None]
    tested = len(p) == len(scores) and len({score.against for score in scores}) == 1
    return ReportedScore(
        value=fmean(values),
        deviation=stdev(values),
        seeds=len(values),
        p=max(p) if tested else None,
        against=scores[0].against if tested else "",
    )


def _with_sound_tests(one: TakenRow, taken: Mapping[str, TakenRow]) -> TakenRow:
    """Without the p-values of tests against a row that is now from another report; what is tested against
    gets its label."""

    def sound(score: ReportedScore) -> ReportedScore:
        other = taken.get(score.against)
        if score.p is None or (other is not None and _names(other.sources) == _names(one.sources)):
            return replace(score, against=other.row.label if other and score.p is not None else "")
        return replace(score, p=None, against="")

    scores = {name: sound(score) for name, score in one.row.scores.items()}
    return replace(one, row=replace(one.row, scores=scores))


def _names(reports: Iterable[FoundReport]) -> set[str]:
    return {one.name for one in reports}
