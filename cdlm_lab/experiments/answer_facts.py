"""What there is to know before a run of notebook 09: what is asked, what is cut, what training takes; and a
group of candidates as a joint model reads it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from cdlm_lab.experiments.answer_corpora import SPLITS, AnswerSplit
from cdlm_lab.experiments.answer_models import Ranker
from cdlm_lab.experiments.answer_selection import AnswerRun
from cdlm_lab.experiments.answer_systems import AnswerSystem
from cdlm_lab.experiments.parallel import time_told
from cdlm_lab.experiments.preview import token_texts
from cdlm_lab.models.estimate import parameter_count
from cdlm_lab.models.joint_head import paragraph_head
from cdlm_lab.training.batch_time import seconds_of_batch
from cdlm_lab.training.config import precision_told
from cdlm_lab.training.processes import Processes
from cdlm_lab.widgets.markup import escaped, table_html

LOOKED_AT = 500  # questions of a split in which sentences are measured: more would take long to tokenise
_LABELS = {True: "right", False: "wrong"}


def facts(run: AnswerRun) -> list[tuple[str, str]]:
    """What there is to know before the start, as (name, text)."""
    return [*question_facts(run), *pretraining_facts(run), *training_facts(run)]


def question_facts(run: AnswerRun) -> list[tuple[str, str]]:
    """What is asked, what was left out, and how many sentences of the first LOOKED_AT questions of each split
    do not fit, as (name, text)."""
    rows = []
    for split in SPLITS:
        rows.append((split, _questions_told(run.splits[split])))
        told = [
            f"{_share_cut(run.untrained[system.name], run.sets(split)):.0%} ({system.label})"
            for system in run.systems[:2]
        ]
        rows.append((f"{split}: candidates that lose their end", ", ".join(told)))
    return rows


def pretraining_facts(run: AnswerRun) -> list[tuple[str, str]]:
    """What each system with MSPP was pretrained to read, where that is not what it reads here, as (name,
    text)."""
    rows = []
    for system in run.systems:
        source = run.settings.models.checkpoint_of(system)
        found = paragraph_head(source) if system.pretrained else None
        wanted = run.settings.models.head_of(system)
        if found and found[0] != wanted:
            head = found[0]
            told = (
                f"{head.sentences - 1} candidates of {head.length} tokens, {head.positions} positions, "
                f"{head.layers} head"
            )
            kept = "" if head.layers == wanted.layers else "; its head is not used"
            rows.append((f"{system.label}: pretrained with", f"{told}{kept}"))
    return rows


def training_facts(run: AnswerRun) -> list[tuple[str, str]]:
    """What training pairwise and joint systems takes, as (name, text); takes a few seconds, for one batch is
    learned from to know how long a step takes. Joint systems are of one size."""
    rows = [("precision of training", precision_told(run.settings.training.precision))]
    for system in run.systems[:2]:
        alike = sum(other.is_joint == system.is_joint for other, _ in run.trainings)
        rows.append((f"training {'joint' if system.is_joint else system.label}", _told(run, system, alike)))
    return rows


def group_preview(run: AnswerRun, *, index: int = 0) -> str:
    """HTML: a group of training candidates as the first joint system reads it, sentence by sentence.

    Args:
        index: of the group, in the order of the first pass with seed 0.
    """
    ranker, config = run.untrained[run.systems[1].name], run.config_of(run.systems[1], 0)
    examples = ranker.training_examples(
        run.sets("train"), size=config.steps * config.batch_size, seed=config.seed
    )
    sequence, (number, members) = examples.describe(index), examples.owner(index)
    texts, spaced = token_texts(ranker.tokenizer, sequence.input_ids)
    labels = ["", *(_LABELS[run.sets("train")[number].correct[member]] for member in members)]
    rows = []
    for place, label in enumerate(labels):
        at = np.flatnonzero(sequence.sentence == place)
        read = "".join((" " if spaced[token] else "") + texts[token] for token in at)
        positions = sequence.position_ids[at]
        rows.append(
            [
                f"s<sub>{place}</sub>",
                label,
                f'<div dir="auto">{escaped(read.strip())}</div>',
                f"{positions[0]}&ndash;{positions[-1]}",
                f"{sequence.cut[place]}" if sequence.cut[place] else "",
            ]
        )
    columns = ["", "label", "what the model reads", "positions", "cut"]
    return table_html(columns, rows, text_columns=(0, 1, 2))


def _questions_told(split: AnswerSplit) -> str:
    candidates = [len(one.candidates) for one in split.sets]
    right = sum(sum(one.correct) for one in split.sets)
    told = f"{len(candidates):,} questions with {sum(candidates):,} candidates, {right:,} of them right"
    if len(candidates) == split.read.questions:
        return told
    return (
        f"{told}; of the {split.read.questions:,} that are there, {split.read.without_right:,} have no right "
        f"candidate and {split.read.without_wrong:,} no wrong one"
    )


def _share_cut(ranker: Ranker, sets: Sequence) -> float:
    examples = ranker.examples(sets[:LOOKED_AT])
    room = ranker.model.head.form.length - 1
    lengths = [len(text) for one in examples.sets for text in examples.encoded[one.id][1:]]
    return float((np.array(lengths) > room).mean())


def _told(run: AnswerRun, system: AnswerSystem, alike: int) -> str:
    ranker, config = run.untrained[system.name], run.config_of(system, 0)
    examples = ranker.training_examples(run.sets("train"), size=config.micro_batch_size, seed=0)
    chosen = [examples[number] for number in range(len(examples))]
    model = ranker.model
    seconds, batch = seconds_of_batch(model, partial(ranker.collate, chosen), precision=config.precision)
    model.to("cpu").eval()  # it stays; nothing of it on the accelerator
    total = seconds * config.steps * config.accumulation(processes=1)
    tokens = float(batch["attention_mask"].sum(1).float().mean())
    kind = "groups" if system.is_joint else "pairs"
    return (
        f"{parameter_count(model) / 1e6:.1f} million parameters; {run.examples_of(system, 'train'):,} {kind} "
        f"of about {tokens:.0f} tokens; {config.steps:,} updates with {config.batch_size} of them, about "
        f"{time_told(total, Processes.of(run.settings.training.parallel))} without evaluation; times {alike} "
        "(systems and seeds)"
    )
