"""What of the parameters of a report says which table it belongs to, what it was measured on, and which model
it is of.

Two reports can stand in one table if they differ in nothing but what its rows are about: models, systems.
Those that differ in the seed alone are one row, whose scores are put together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from cdlm_lab.experiments.found_reports import FoundReport, FoundReports
from cdlm_lab.experiments.reported_scores import (
    ALIGNMENT,
    ANSWERS,
    ATTENTION,
    CLAIMS,
    COREFERENCE,
    MATCHING,
    PERPLEXITY,
    QUESTIONS,
    TAGGING,
)
from cdlm_lab.parameters import BY_HOW_MANY, with_those_of_before
from cdlm_lab.widgets.theme import VARIANTS, variant_name

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
