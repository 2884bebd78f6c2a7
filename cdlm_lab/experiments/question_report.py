"""Before and after a run of notebook 06: what is asked and what it will cost, the scores, and their tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from cdlm_lab.data.hotpotqa import hotpot_record, write_predictions
from cdlm_lab.data.multihop_questions import MultihopQuestion
from cdlm_lab.examples.question_examples import FitFacts
from cdlm_lab.experiments.multihop_qa import SPLITS, MultihopRun
from cdlm_lab.experiments.parallel import time_told
from cdlm_lab.experiments.question_corpora import cluster_of
from cdlm_lab.experiments.question_predictions import QuestionPredictions
from cdlm_lab.experiments.seed_scores import compare_means, mean_score
from cdlm_lab.metrics.question_answering import HOTPOTQA_SCORES, scores_by_question
from cdlm_lab.metrics.significance import holm
from cdlm_lab.models.estimate import parameter_count
from cdlm_lab.models.precision import precision_told
from cdlm_lab.report import Report, Run
from cdlm_lab.training.batch_time import seconds_of_batch
from cdlm_lab.training.processes import Processes
from cdlm_lab.widgets.markup import escaped
from cdlm_lab.widgets.question_table import MEASURES, QuestionRow
from cdlm_lab.widgets.theme import variant_name

TESTED = ("f1", "sp_f1", "joint_f1")  # the columns of the paper's Table 5
AGAINST = "longformer"  # what the variants are tested against
LOOKED_AT = 500  # questions of a split that are read before the start: 90,000 would take most of an hour
Found = Mapping[tuple[str, int], Mapping[str, QuestionPredictions]]  # (encoder, seed) -> split
# (encoder, seed, split) -> measure -> (questions,)
Scored = Mapping[tuple[str, int, str], Mapping[str, np.ndarray]]


def facts(run: MultihopRun) -> list[tuple[str, str]]:
    """What there is to know before the start, as (name, text)."""
    return question_facts(run) + training_facts(run)


def question_facts(run: MultihopRun) -> list[tuple[str, str]]:
    """What is asked, and what of the first LOOKED_AT questions of each split fits into the sequences, as
    (name, text)."""
    rows = []
    for split, questions in run.questions.items():
        kinds = Counter(one.kind or "other" for one in questions)
        types = Counter(one.type for one in questions)
        told = ", ".join(f"{count:,} {name}" for name, count in kinds.most_common())
        yes_no = types["yes"] + types["no"]
        rows.append((split, f"{len(questions):,} questions ({told}); {yes_no:,} of them yes or no"))
        if unknown := [len(one.unknown_supporting) for one in questions if one.unknown_supporting]:
            told = (
                f"{sum(unknown):,} in {len(unknown):,} questions name no sentence: nobody can find them, and "
            )
            rows.append(
                (f"{split}: supporting facts", f"{told}they count as missed, as in the official scores")
            )
        rows.append((f"{split}: does not fit", _what_is_lost(run, split)))
    return rows


def _what_is_lost(run: MultihopRun, split: str) -> str:
    questions = run.questions[split]
    told = _told(run.untrained.examples(questions[:LOOKED_AT]).fit_facts())
    return told if len(questions) <= LOOKED_AT else f"of the first {LOOKED_AT:,}: {told}"


def _told(fit: FitFacts) -> str:
    if not fit.questions_cut and not fit.without_occurrence:
        return "nothing"
    return (
        f"questions that lose text: {fit.questions_cut:,}; lost are {fit.tokens_lost / fit.tokens:.0%} of "
        f"all tokens and {fit.supporting_lost:,} of {fit.supporting:,} supporting sentences; of "
        f"{fit.span_questions:,} answers {fit.without_occurrence:,} stand nowhere in the needed paragraphs "
        "as far as they are read"
    )


def training_facts(run: MultihopRun) -> list[tuple[str, str]]:
    """What training an encoder takes, as (name, text); takes a few seconds, for one batch is learned from to
    know how long a step takes. All encoders are of one size."""
    answerer, config = run.untrained, run.config
    examples = answerer.examples(run.questions["train"][: config.micro_batch_size])
    chosen = [examples[number] for number in range(len(examples))]
    model = answerer.model
    seconds, batch = seconds_of_batch(model, partial(answerer.collate, chosen), precision=config.precision)
    model.to("cpu")  # it stays; nothing of it on the accelerator
    total = seconds * config.steps * config.batch_size / len(examples)
    processes = Processes.of(run.settings.answerer.parallel)
    tokens, globals_ = (
        float(batch[mask].sum(1).float().mean()) for mask in ("attention_mask", "global_attention_mask")
    )
    return [
        (
            "an example",
            f"{tokens:,.0f} tokens, {globals_:.0f} of them global: question, starts of titles and sentences",
        ),
        (
            "training",
            f"{parameter_count(model) / 1e6:.1f} million parameters; {config.steps:,} updates with "
            f"{config.batch_size} questions, about {time_told(total, processes)}; times "
            f"{len(run.trainings)} (encoders and seeds)",
        ),
        ("precision of training", precision_told(config.precision)),
    ]


def write_question_report(run: MultihopRun, opened: Run, found: Found) -> Report:
    """Scores of all encoders on dev and test, the tests between them, and for each training the official
    prediction file of test beside its answers."""
    for (name, seed), of_split in found.items():
        file = run.folder_of(name, seed) / "test_predictions.json"
        write_predictions(file, of_split["test"].texts(), of_split["test"].supporting())
    scored = _scored(run, found)
    names = run.settings.answerer.names
    clusters = {split: list(map(cluster_of, questions)) for split, questions in run.questions.items()}
    return opened.write_report(
        scores={
            f"{name}/{split}/{measure}": mean_score(seeds, clusters[split], seed=0)
            for name in names
            for split in SPLITS
            for measure, seeds in _seeds(scored, name, split).items()
        },
        data={
            "corpus": run.settings.corpus.corpus,
            "precision": precision_told(run.config.precision),
            "questions": {split: len(questions) for split, questions in run.questions.items()},
            "clusters": {split: len(set(of_split)) for split, of_split in clusters.items()},
        },
        tables={
            "comparisons": _comparisons(names, scored, clusters["test"]),
            "kinds": [
                {"system": name, "split": split, **row}
                for name in names
                for split in SPLITS
                for row in _by_kind(run.questions[split], _seeds(scored, name, split))
            ],
            "runs": [
                {
                    "system": name,
                    "seed": seed,
                    "split": split,
                    **{measure: float(values.mean()) for measure, values in scores.items()},
                }
                for (name, seed, split), scores in scored.items()
            ],
        },
    )


def question_rows(report: Report, split: str = "test") -> list[QuestionRow]:
    """A row for each encoder of a report, in order."""
    return [
        QuestionRow(
            label=variant_name(name),
            variant=name,
            values={
                measure: tuple(score[key] for key in ("value", "low", "high"))
                for measure in MEASURES
                for score in [report.scores[f"{name}/{split}/{measure}"]]
            },
        )
        for name in dict.fromkeys(name.partition("/")[0] for name in report.scores)
    ]


def kind_rows(report: Report, split: str = "test") -> list[list[str]]:
    """Encoder, kind, number of questions, and F1 of answer, support and both, as cells of HTML."""
    return [
        [
            variant_name(row["system"]),
            escaped(row["kind"] or "not known"),
            f"{row['questions']:,}",
            *(f"{100 * row[measure]:.1f}" for measure in TESTED),
        ]
        for row in report.tables["kinds"]
        if row["split"] == split
    ]


def _scored(run: MultihopRun, found: Found) -> Scored:
    """Every score of every question, once for all tables."""
    gold = {split: [hotpot_record(one) for one in run.questions[split]] for split in SPLITS}
    return {
        (name, seed, split): scores_by_question(gold[split], one.official())
        for (name, seed), of_split in found.items()
        for split, one in of_split.items()
    }


def _seeds(scored: Scored, name: str, split: str) -> dict[str, list[np.ndarray]]:
    """Measure -> with each seed (questions,)."""
    seeds = [scores for (other, _, of_split), scores in scored.items() if (other, of_split) == (name, split)]
    return {measure: [scores[measure] for scores in seeds] for measure in HOTPOTQA_SCORES}


def _by_kind(
    questions: Sequence[MultihopQuestion], of_measure: Mapping[str, list[np.ndarray]]
) -> list[dict[str, Any]]:
    """The means of bridge and comparison questions, and of yes-or-no ones."""
    means = {measure: np.mean(seeds, axis=0) for measure, seeds in of_measure.items()}
    groups = {
        **{kind: [one.kind == kind for one in questions] for kind in sorted({one.kind for one in questions})},
        "yes or no": [one.type in ("yes", "no") for one in questions],
    }
    return [
        {
            "kind": kind,
            "questions": int(np.sum(chosen)),
            **{measure: float(values[chosen].mean()) for measure, values in means.items()},
        }
        for kind, chosen in groups.items()
        if any(chosen)
    ]


def _comparisons(names: Sequence[str], scored: Scored, clusters: Sequence[str]) -> list[dict[str, Any]]:
    """Each variant against Longformer on test, clusters of questions being what is drawn. `p_holm`:
    corrected for the variants tested."""
    tested = [name for name in names if name != AGAINST] if AGAINST in names else []
    of_test = {name: _seeds(scored, name, "test") for name in names}
    rows = []
    for measure in TESTED:
        compared = [
            compare_means(of_test[name][measure], of_test[AGAINST][measure], clusters, seed=0)
            for name in tested
        ]
        corrected = holm([one.p_permutation for one in compared])
        for name, one, p in zip(tested, compared, corrected, strict=True):
            rows.append({"a": name, "b": AGAINST, "measure": measure, **asdict(one), "p_holm": p})
    return rows
