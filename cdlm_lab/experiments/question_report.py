"""Before and after a run of notebook 06: what is asked and what it will cost, the scores, and their tests."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean, stdev
from typing import Any

import numpy as np

from cdlm_lab.data.hotpotqa import hotpot_record, write_predictions
from cdlm_lab.data.multihop_questions import MultihopQuestion
from cdlm_lab.examples.question_examples import FitFacts
from cdlm_lab.experiments.multihop_qa import SPLITS, MultihopRun
from cdlm_lab.experiments.question_corpora import cluster_of
from cdlm_lab.experiments.question_predictions import QuestionPredictions
from cdlm_lab.metrics.question_answering import HOTPOTQA_SCORES, hotpotqa, scores_by_question
from cdlm_lab.metrics.resampling import percentile_interval, resampled_sums, sums_by_cluster
from cdlm_lab.metrics.significance import compare, holm
from cdlm_lab.models.device import default_device
from cdlm_lab.models.estimate import parameter_count
from cdlm_lab.report import Report, Run
from cdlm_lab.widgets.markup import escaped, seconds_in_words
from cdlm_lab.widgets.question_table import MEASURES, QuestionRow
from cdlm_lab.widgets.theme import variant_name

TESTED = ("f1", "sp_f1", "joint_f1")  # the columns of the paper's Table 5
AGAINST = "longformer"  # what the variants are tested against
RESAMPLES = 10_000
Found = Mapping[tuple[str, int], Mapping[str, QuestionPredictions]]  # (encoder, seed) -> split


def facts(run: MultihopRun) -> list[tuple[str, str]]:
    """What there is to know before the start, as (name, text)."""
    return question_facts(run) + training_facts(run)


def question_facts(run: MultihopRun) -> list[tuple[str, str]]:
    """What is asked and what of it fits into the sequences, as (name, text)."""
    rows = []
    answerer = run.answerer(run.settings.answerer.names[0], 0, trained=False)
    for split, questions in run.questions.items():
        kinds = Counter(one.kind or "other" for one in questions)
        types = Counter(one.type for one in questions)
        told = ", ".join(f"{count:,} {name}" for name, count in kinds.most_common())
        yes_no = types["yes"] + types["no"]
        rows.append((split, f"{len(questions):,} questions ({told}); {yes_no:,} of them yes or no"))
        rows.append((f"{split}: does not fit", _what_is_lost(answerer.examples(questions).fit_facts())))
    return rows


def _what_is_lost(fit: FitFacts) -> str:
    if not fit.questions_cut and not fit.without_occurrence:
        return "nothing"
    return (
        f"{fit.questions_cut:,} questions lose text, {fit.tokens_lost / fit.tokens:.0%} of all tokens and "
        f"{fit.supporting_lost:,} of {fit.supporting:,} supporting sentences; of {fit.span_questions:,} "
        f"answers {fit.without_occurrence:,} stand nowhere in the needed paragraphs as far as they are read"
    )


def training_facts(run: MultihopRun) -> list[tuple[str, str]]:
    """What training an encoder takes, as (name, text); takes a few seconds, for one batch is learned from to
    know how long a step takes. All encoders are of one size."""
    name, config = run.settings.answerer.names[0], run.config
    answerer = run.answerer(name, 0, trained=False)
    examples = answerer.examples(run.questions["train"][: config.micro_batch_size])
    model = answerer.model.to(default_device()).train()
    batch = answerer.collate([examples[number] for number in range(len(examples))])
    batch = {key: tensor.to(model.device) for key, tensor in batch.items()}
    for _ in range(2):  # the first is slower than all others
        start = time.perf_counter()
        model(**batch)["loss"].backward()
        seconds = time.perf_counter() - start
    total = seconds * config.steps * config.batch_size / len(examples)
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
            f"{config.batch_size} questions, about {seconds_in_words(total)}; times "
            f"{len(run.trainings)} (encoders and seeds)",
        ),
    ]


def write_question_report(run: MultihopRun, opened: Run, found: Found) -> Report:
    """Scores of all encoders on dev and test, the tests between them, and for each training the official
    prediction file of test beside its answers."""
    for (name, seed), of_split in found.items():
        file = run.folder_of(name, seed) / "test_predictions.json"
        write_predictions(file, of_split["test"].texts(), of_split["test"].supporting())
    return opened.write_report(
        scores={
            f"{name}/{split}/{measure}": score
            for name in run.settings.answerer.names
            for split in SPLITS
            for measure, score in _scores(_of(found, name, split)).items()
        },
        data={
            "corpus": run.settings.corpus.corpus,
            "questions": {split: len(questions) for split, questions in run.questions.items()},
            "clusters": {
                split: len(set(map(cluster_of, questions))) for split, questions in run.questions.items()
            },
        },
        tables={
            "comparisons": _comparisons(run, found),
            "kinds": [
                {"system": name, "split": split, **row}
                for name in run.settings.answerer.names
                for split in SPLITS
                for row in _by_kind(_of(found, name, split))
            ],
            "runs": [
                {"system": name, "seed": seed, "split": split, **_plain_scores(one)}
                for (name, seed), of_split in found.items()
                for split, one in of_split.items()
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


def _gold(questions: Sequence[MultihopQuestion]) -> list[dict[str, Any]]:
    return [hotpot_record(question) for question in questions]


def _plain_scores(predictions: QuestionPredictions) -> dict[str, float]:
    return hotpotqa(_gold(predictions.questions), predictions.official())


def _of(found: Found, name: str, split: str) -> list[QuestionPredictions]:
    """Of all seeds."""
    return [of_split[split] for (other, _), of_split in found.items() if other == name]


def _means(seeds: Sequence[QuestionPredictions]) -> dict[str, np.ndarray]:
    """Each measure of each question, its mean over the seeds: (questions,)."""
    each = [scores_by_question(_gold(one.questions), one.official()) for one in seeds]
    return {measure: np.mean([scores[measure] for scores in each], axis=0) for measure in HOTPOTQA_SCORES}


def _sums(values: np.ndarray, questions: Sequence[MultihopQuestion]) -> np.ndarray:
    """(clusters, 2): sum of the values and number of the questions of each."""
    return sums_by_cluster(
        [values, np.ones(len(values))], [cluster_of(one) for one in questions], name="questions"
    )


def _mean(sums: np.ndarray) -> np.ndarray:
    return sums[..., 0] / sums[..., 1]


def _scores(seeds: Sequence[QuestionPredictions]) -> dict[str, dict[str, Any]]:
    """Mean and deviation over seeds; the interval of the mean draws clusters of questions."""
    each = [_plain_scores(one) for one in seeds]
    found = {}
    for measure, values in _means(seeds).items():
        drawn = resampled_sums(
            _sums(values, seeds[0].questions), n_resamples=RESAMPLES, rng=np.random.default_rng(0)
        )
        low, high = percentile_interval(_mean(drawn))
        of_seeds = [one[measure] for one in each]
        value = fmean(of_seeds)
        found[measure] = {
            "value": value,
            "low": min(low, value),  # sums in another order may differ in the last digit
            "high": max(high, value),
            "deviation": stdev(of_seeds) if len(of_seeds) > 1 else None,
            "seeds": len(of_seeds),
        }
    return found


def _by_kind(seeds: Sequence[QuestionPredictions]) -> list[dict[str, Any]]:
    """The means of bridge and comparison questions, and of yes-or-no ones."""
    questions, means = seeds[0].questions, _means(seeds)
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


def _comparisons(run: MultihopRun, found: Found) -> list[dict[str, Any]]:
    """Each variant against Longformer on test, clusters of questions being what is drawn. `p_holm`:
    corrected for the variants tested."""
    names = run.settings.answerer.names
    tested = [name for name in names if name != AGAINST] if AGAINST in names else []
    rows = []
    for measure in TESTED:
        compared = [_compare(found, name, measure) for name in tested]
        for row, corrected in zip(compared, holm([row["p_permutation"] for row in compared]), strict=True):
            rows.append({**row, "p_holm": corrected})
    return rows


def _compare(found: Found, name: str, measure: str) -> dict[str, Any]:
    ours, theirs = (
        _sums(_means(_of(found, one, "test"))[measure], _of(found, one, "test")[0].questions)
        for one in (name, AGAINST)
    )
    return {"a": name, "b": AGAINST, "measure": measure, **asdict(compare(ours, theirs, _mean))}
