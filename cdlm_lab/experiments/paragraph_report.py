"""Before and after a run of notebook 08: what is read and what it will cost, the scores, the two losses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from cdlm_lab.data.files import named
from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.examples.paragraph_tasks import OTHER_DOCUMENT, SAME_DOCUMENT, SAME_PARAGRAPH
from cdlm_lab.experiments.paragraph_answers import ParagraphAnswers, answer_tasks, paragraph_scores
from cdlm_lab.experiments.paragraph_corpora import ParagraphSplit
from cdlm_lab.experiments.paragraph_pretraining import ParagraphRun
from cdlm_lab.experiments.step_cost import bytes_per_number, measured_rate, training_seconds
from cdlm_lab.models.estimate import estimate, parameter_count
from cdlm_lab.report import Report, Run
from cdlm_lab.training.config import precision_told
from cdlm_lab.training.processes import Processes
from cdlm_lab.training.trainer import TrainingResult
from cdlm_lab.widgets.joint_figures import pretraining_losses_figure, task_losses
from cdlm_lab.widgets.markup import bytes_in_words, seconds_in_words

LOOKED_AT = 200  # examples, for what is cut and for the mean length
MEASURES = {
    "mspp/called": "candidates called as they are",
    f"mspp/called/{SAME_PARAGRAPH}": "of the same paragraph",
    f"mspp/called/{SAME_DOCUMENT}": "of the same document, another paragraph",
    f"mspp/called/{OTHER_DOCUMENT}": "of other documents",
    "mspp/first": "one of the same paragraph is ranked first",
    f"mspp/above/{SAME_DOCUMENT}": "above one of the same document, another paragraph",
    f"mspp/above/{OTHER_DOCUMENT}": "above one of another document",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCost:
    """What a training takes, estimated: tokens of an example on average, bytes of memory at most, seconds of
    a step and of the whole with its evaluations."""

    tokens: float
    memory_bytes: float
    step_seconds: float
    seconds: float


def facts(run: ParagraphRun) -> list[tuple[str, str]]:
    """What there is to know before the start, as (name, text)."""
    train, training = run.splits["train"], run.settings.training
    cost = cost_of_training(run)
    return [
        ("for training", _documents_told(train)),
        *[
            (name, f"{_documents_told(run.splits[name])}; {len(run.splits[name].examples):,} examples")
            for name in ("validation", "test")
        ],
        *([("files passed over", named(train.passed_over))] if train.passed_over else []),
        ("wrong candidates", _shortage_told(train)),
        ("too long", _cut_told(run)),
        ("weights", f"{parameter_count(run.model):,}"),
        ("precision", precision_told(training.precision)),
        (
            "training",
            f"{training.steps:,} steps of {training.batch_size:,} examples, each of about {cost.tokens:,.0f} "
            f"tokens: {training.steps * training.batch_size / train.examples.counts.sources:,.1f} times each "
            f"paragraph; here about {seconds_in_words(cost.step_seconds)} a step and "
            f"{seconds_in_words(cost.seconds)} in all, {bytes_in_words(cost.memory_bytes)} of memory",
        ),
    ]


def cost_of_training(run: ParagraphRun) -> TaskCost:
    """By the arithmetic of `models.estimate` and the speed of a matrix product here; nothing is trained."""
    settings, examples = run.settings.training, run.splits["train"].examples
    seen = [examples[index] for index in range(min(LOOKED_AT, len(examples)))]
    length = float(np.mean([len(example["input_ids"]) for example in seen]))
    cost = estimate(
        run.model.config,
        length=round(length),
        batch=settings.micro_batch_size,
        global_tokens=0.0,
        masked_tokens=float(np.mean([(example["mlm_labels"] != NOT_MASKED).sum() for example in seen])),
        bytes_per_number=bytes_per_number(settings.precision),
        gradient_checkpointing=settings.gradient_checkpointing,
    )
    rate = measured_rate(settings.precision)
    looks = -(-settings.steps // settings.evaluate_every)  # the last step is always looked at
    held_out = looks * len(run.splits["validation"].examples) + len(run.splits["test"].examples)
    one = training_seconds(cost, run.model.config, rate=rate)
    step = one * settings.batch_size / Processes.of(settings.parallel).total
    return TaskCost(
        tokens=length,
        memory_bytes=cost.peak_bytes,
        step_seconds=step,
        seconds=settings.steps * step + held_out * cost.forward_flops / rate,
    )


def measure(run: ParagraphRun) -> ParagraphAnswers:
    """What the model makes of the test examples."""
    return answer_tasks(
        run.model,
        run.splits["test"].examples,
        run.collate,
        batch_size=run.settings.training.micro_batch_size,
        name="test",
    )


def write_paragraph_report(
    run: ParagraphRun, opened: Run, result: TrainingResult, answers: ParagraphAnswers
) -> Report:
    """Scores on test, what they were measured on, and the history of both losses."""
    return opened.write_report(
        scores={
            **paragraph_scores(answers, seed=run.settings.training.seed),
            "best_step": {"value": result.best_step},
            "training_seconds": {"value": result.seconds},
            "training_tokens": {"value": result.tokens},
        },
        data={
            "corpus": run.settings.corpus.corpus,
            "precision": precision_told(run.settings.training.precision),
            "checksums": {split: one.checksum for split, one in run.splits.items()},
            "files_passed_over": named(run.splits["train"].passed_over),
            "documents": {split: one.counts.documents_kept for split, one in run.splits.items()},
            "paragraphs": {split: one.examples.counts.sources for split, one in run.splits.items()},
            "short_of_hard": {split: one.examples.counts.short_of_hard for split, one in run.splits.items()},
            "share_of_text_cut": _share_cut(run),
            "right": run.settings.task.right,
            "weights": parameter_count(run.model),
        },
        tables={"history": [dict(record) for record in result.history]},
    )


def score_rows(report: Report) -> list[list[str]]:
    """Measure, value with interval, chance, and what it is of, as cells of HTML."""
    rows = [
        [
            f"&emsp;{name}" if key.count("/") > 1 else name,
            f"{score['value']:.1%} [{score['low']:.1%}, {score['high']:.1%}]",
            "" if score["chance"] is None else f"{score['chance']:.0%}",
            f"{score['n']:,}",
        ]
        for key, name in MEASURES.items()
        if (score := report.scores.get(key))
    ]
    words = report.scores["mlm/perplexity"]
    interval = f"{words['value']:.2f} [{words['low']:.2f}, {words['high']:.2f}]"
    return [*rows, ["perplexity of masked tokens", interval, "", f"{words['n']:,}"]]


def losses_figure(report: Report) -> go.Figure:
    """Both losses over the steps, made from the report and nothing else."""
    history = report.tables["history"]
    mlm, mspp = (task_losses(history, name) for name in ("mlm", "mspp"))
    return pretraining_losses_figure(mlm, mspp, right=report.data["right"])


def _documents_told(split: ParagraphSplit) -> str:
    counts, sources = split.counts, split.examples.counts
    left_out = counts.documents_read - counts.documents_kept
    without = f" ({left_out:,} without)" if left_out else ""
    return (
        f"{counts.documents_kept:,} documents with sentences{without}: {counts.paragraphs:,} paragraphs, "
        f"{sources.sources:,} of them long enough to ask about, {counts.sentences:,} sentences"
    )


def _shortage_told(split: ParagraphSplit) -> str:
    counts, hard = split.examples.counts, split.examples.k[1]
    if not counts.short_of_hard:
        return f"each document has {hard:,} or more sentences in other paragraphs"
    share = counts.short_of_hard / counts.sources
    return (
        f"{share:.0%} of these paragraphs stand in documents with fewer than {hard:,} sentences elsewhere; "
        "what is missing is taken from other documents"
    )


def _share_cut(run: ParagraphRun) -> float:
    """Of the tokens of the first training examples, how much is cut."""
    cut, read = _cut(run)
    return float(cut.sum() / (cut.sum() + read))


def _cut_told(run: ParagraphRun) -> str:
    cut, read = _cut(run)
    length = run.settings.task.sentence_length
    return (
        f"{(cut > 0).mean():.0%} of the sentences are cut to {length:,} tokens, which takes "
        f"{cut.sum() / (cut.sum() + read):.0%} of the text"
    )


def _cut(run: ParagraphRun) -> tuple[np.ndarray, int]:
    """Tokens cut from each sentence of the first training examples, and how many are read of all."""
    examples = run.splits["train"].examples
    seen = [examples.describe(index) for index in range(min(LOOKED_AT, len(examples)))]
    read = sum(len(one.input_ids) - len(one.sequence.starts) for one in seen)
    return np.concatenate([one.sequence.cut for one in seen]), read
