"""Before and after a run of notebook 07: what is tagged and what it costs, the scores, and their tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from cdlm_lab.data.tagged_documents import spans_of
from cdlm_lab.examples.tag_examples import TagExamples
from cdlm_lab.experiments.document_tagging import (
    HELD_OUT,
    TaggingRun,
    Training,
    training_config,
)
from cdlm_lab.experiments.seed_scores import RESAMPLES, score_of_seeds
from cdlm_lab.experiments.tag_predictions import TagPredictions
from cdlm_lab.experiments.tagging_analysis import analysis_tables, mean_of_seeds
from cdlm_lab.experiments.tagging_systems import TAG_SYSTEMS
from cdlm_lab.metrics.resampling import percentile_interval, resampled_sums
from cdlm_lab.metrics.significance import compare, holm
from cdlm_lab.metrics.span_f1 import f1_of, precision_of, recall_of, span_counts
from cdlm_lab.models.estimate import parameter_count
from cdlm_lab.models.sentence_encoder import ENDS
from cdlm_lab.report import Report, Run
from cdlm_lab.training.batch_time import seconds_of_batch
from cdlm_lab.training.config import precision_told
from cdlm_lab.widgets.markup import escaped, seconds_in_words
from cdlm_lab.widgets.tag_table import TagRow

MEASURES = {"precision": precision_of, "recall": recall_of, "f1": f1_of}
# What is tested: the first against the second.
TESTED = (("doc-arc", "bert-lstm"), ("dynamic-doc-arc", "dynamic-bert-lstm"), ("doc-arc", "bert"))
SEED = 0  # of resampling
PAPER_LABELS = {  # by which the paper's corpora are known
    "litbank": {"PER", "LOC", "FAC", "GPE", "ORG", "VEH"},
    "jnlpba": {"protein", "DNA", "RNA", "cell_type", "cell_line"},
}
Found = Mapping[Training, Mapping[str, TagPredictions]]
Counts = Mapping[str, Mapping[Training, np.ndarray]]  # split -> training -> (documents, 3)


def corpus_facts(run: TaggingRun) -> list[tuple[str, str]]:
    """What is tagged, as (name, text)."""
    rows = []
    for split, documents in run.corpus.documents.items():
        labelled = [one.sentences[number] for one in documents for number in one.labelled]
        words = sum(len(sentence.words) for sentence in labelled)
        every = sum(len(sentence.words) for one in documents for sentence in one.sentences)
        mended, divided = run.corpus.mended.get(split, 0), run.corpus.divided.get(split, 0)
        rows.append(
            (
                split,
                f"{len(documents):,} documents of {every:,} words; {words:,} of them labelled, in "
                f"{len(labelled):,} sentences with {span_count(run, split):,} spans"
                + (f"; {mended:,} tags I- that began a span were read as B-" if mended else "")
                + ("; it was one document, so each sentence is read as one" if divided else ""),
            )
        )
    return [*rows, ("labels", ", ".join(run.corpus.labels))]


def cost_facts(run: TaggingRun) -> list[tuple[str, str]]:
    """What training each system takes, as (name, text); one batch of each is learned from to know that. The
    encodings of that batch are made, no others."""
    rows = [("precision", precision_told(run.settings.models.precision))]
    for system in run.systems:
        training = next(one for one in run.trainings if one.system is system)
        tagger = run.tagger(training, trained=False)
        examples = run.examples(tagger, training)["train"]
        config = training_config(run.settings, system, seed=0, items=len(examples))
        first = examples.in_order(range(min(config.batch_size, len(examples))))
        tagger.ready(first)
        chosen, collate = [first[number] for number in range(len(first))], tagger.collate_of(first)
        seconds, _ = seconds_of_batch(tagger.model, partial(collate, chosen), precision=config.precision)
        alike = sum(one.system is system for one in run.trainings)
        cut = sum(shortened_words(run, examples).values())
        room = run.settings.models.most_tokens - ENDS
        rows.append(
            (
                system.label,
                f"{parameter_count(tagger.model) / 1e6:.2f} million parameters"
                f"{'' if system.trains_encoder else ' besides the frozen encoder'}; {config.steps:,} updates "
                f"with {config.batch_size} sentences, about {seconds_in_words(seconds * config.steps)}"
                f"{f'; times {alike} (seeds, K)' if alike > 1 else ''}"
                f"{f'; of {cut:,} long words the first {room} pieces are read' if cut else ''}",
            )
        )
    return rows


def shortened_words(run: TaggingRun, examples: TagExamples) -> dict[str, int]:
    """How many words of each split have more pieces than `most_tokens` has room for: these alone are read.

    Args:
        examples: of any split; they know the documents of all.
    """
    documents = iter(examples.documents)
    return {
        split: sum(one.shortened for one in islice(documents, len(of_split)))
        for split, of_split in run.corpus.documents.items()
    }


def write_tagging_report(run: TaggingRun, opened: Run, found: Found) -> Report:
    """Scores of all systems on dev and test, the tests between them, the sweep, and the analyses of
    section 5."""
    counts = _counts(run, found)
    return opened.write_report(
        scores={
            f"{row}/{split}/{measure}": score
            for row in dict.fromkeys(map(run.row_of, found))
            for split in HELD_OUT
            for measure, score in _scores(_of_row(run, counts[split], row)).items()
        },
        data={
            "corpus": run.settings.corpus.corpus,
            "precision": precision_told(run.settings.models.precision),
            "documents": {split: len(documents) for split, documents in run.corpus.documents.items()},
            "facts": dict(corpus_facts(run)),
            "labels": list(run.corpus.labels),
            "shortened_words": {
                training.system.name: shortened_words(run, of_split["dev"].examples)
                for training, of_split in found.items()
            },
        },
        tables={
            "comparisons": _comparisons(run, counts["test"]),
            "runs": [
                {
                    "system": training.system.name,
                    "occurrences": training.most,
                    "seed": training.seed,
                    "split": split,
                    **{
                        measure: float(score(counts[split][training].sum(axis=0)))
                        for measure, score in MEASURES.items()
                    },
                }
                for training in found
                for split in HELD_OUT
            ],
            "sweep": _sweep(counts["dev"]),
            **analysis_tables(run, found),
        },
    )


def tag_rows(report: Report, split: str = "test") -> list[TagRow]:
    """A row for each system of a report that is not of the sweep, in the order of the paper's tables."""
    return [
        TagRow(
            label=system.label,
            system=name,
            values={
                measure: tuple(
                    report.scores[f"{name}/{split}/{measure}"][key] for key in ("value", "low", "high")
                )
                for measure in MEASURES
            },
            deviation=report.scores[f"{name}/{split}/f1"]["deviation"],
            seeds=report.scores[f"{name}/{split}/f1"]["seeds"],
        )
        for name, system in TAG_SYSTEMS.items()
        if f"{name}/{split}/f1" in report.scores
    ]


def comparison_rows(report: Report) -> list[list[str]]:
    """The tests of a report as rows of a table."""
    return [
        [
            TAG_SYSTEMS[row["a"]].label,
            TAG_SYSTEMS[row["b"]].label,
            f"{100 * row['difference']:+.1f} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]",
            f"{row['p_holm']:.3f}" if row["p_holm"] >= 0.001 else "< 0.001",
        ]
        for row in report.tables["comparisons"]
    ]


def top_rows(report: Report) -> list[list[str]]:
    """The entities of the highest TF-IDF as rows of a table (Table 5)."""
    return [[escaped(row["word"]), escaped(", ".join(row["labels"]))] for row in report.tables["top"]]


def corpus_name(run: TaggingRun) -> str:
    """What the paper calls the corpus, if its labels are those of one of the paper's; else that of its
    folder."""
    labels = set(run.corpus.labels)
    known = [name for name, theirs in PAPER_LABELS.items() if labels == theirs]
    return known[0] if known else Path(run.settings.corpus.corpus).name


def span_count(run: TaggingRun, split: str) -> int:
    """True spans of a split."""
    return sum(
        len(spans_of(one.sentences[number].tags or ()))
        for one in run.corpus.documents[split]
        for number in one.labelled
    )


def _counts(run: TaggingRun, found: Found) -> Counts:
    """Correct, predicted and gold spans of each document."""
    reading = run.settings.training.reading
    return {
        split: {
            training: span_counts(of_split[split].gold(), of_split[split].predicted(), reading=reading)
            for training, of_split in found.items()
        }
        for split in HELD_OUT
    }


def _of_row(run: TaggingRun, counts: Mapping[Training, np.ndarray], row: str) -> np.ndarray:
    """Those with all seeds: (seeds, documents, 3)."""
    return np.stack([one for training, one in counts.items() if run.row_of(training) == row])


def _columns(of_seeds: np.ndarray) -> np.ndarray:
    """(documents, seeds * 3): what resampling draws rows of."""
    return np.moveaxis(of_seeds, 0, 1).reshape(of_seeds.shape[1], -1)


def _scores(of_seeds: np.ndarray) -> dict[str, dict[str, Any]]:
    drawn = resampled_sums(_columns(of_seeds), n_resamples=RESAMPLES, rng=np.random.default_rng(SEED))
    return {
        measure: score_of_seeds(
            score(of_seeds.sum(axis=1)).tolist(), percentile_interval(mean_of_seeds(drawn, score=score))
        )
        for measure, score in MEASURES.items()
    }


def _comparisons(run: TaggingRun, counts: Mapping[Training, np.ndarray]) -> list[dict[str, Any]]:
    """Mean F1 on test over the seeds, documents being what is drawn. `p_holm`: corrected for these tests."""
    names = {system.name for system in run.systems}
    rows = []
    for a, b in TESTED:
        if {a, b} <= names:
            sides = [_columns(_of_row(run, counts, name)) for name in (a, b)]
            compared = compare(*sides, mean_of_seeds, n_resamples=RESAMPLES, seed=SEED)
            rows.append({"a": a, "b": b, "measure": "f1", **asdict(compared)})
    corrected = holm([row["p_permutation"] for row in rows])
    return [{**row, "p_holm": p} for row, p in zip(rows, corrected, strict=True)]


def _sweep(counts: Mapping[Training, np.ndarray]) -> list[dict[str, Any]]:
    """Doc-ARC's F1 on dev for each K and seed (Figure 5)."""
    swept = [training for training in counts if training.system.name == "doc-arc"]
    return [
        {"occurrences": one.most, "seed": one.seed, "f1": float(f1_of(counts[one].sum(axis=0)))}
        for one in sorted(swept, key=lambda training: (training.most, training.seed))
    ]
