"""Pretraining one variant (CDLM section 2, appendix B): notebook 01.

`prepare` reads and tokenises the corpus and loads the model; nothing is trained, so that a person can look at
what will be (`preview`). `pretrain` trains, keeps the best checkpoint on validation perplexity, and writes
the model and the report into the run's folder. A run that was stopped goes on when the same is called again.

From a packed example to what the preview shows: token texts, replacements, losses, cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerBase

from cdlm_lab.data.files import named
from cdlm_lab.examples.collate import Collate
from cdlm_lab.examples.cross_document import CrossDocumentExamples
from cdlm_lab.examples.packing import LossOfText
from cdlm_lab.experiments.cluster_corpora import (
    CorpusSettings,
    TokenisedSplit,
    Variant,
    held_out_examples,
    tell_passed_over,
    tokenised_split,
    training_examples,
    variant_of,
)
from cdlm_lab.experiments.perplexity import cluster_losses, scores_of
from cdlm_lab.models.encoder import AttentionDropout, copy_local_to_global, load_language_model
from cdlm_lab.models.estimate import (
    bytes_per_number,
    estimate,
    measured_rate,
    parameter_count,
    training_seconds,
)
from cdlm_lab.models.language_model import CrossDocumentLM
from cdlm_lab.models.precision import precision_told
from cdlm_lab.parameters import ParameterError, check_types
from cdlm_lab.report import Report, Run
from cdlm_lab.training.checkpoints import MODEL_FOLDER, TRAINING_FOLDER, save_model
from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.fine_tuning import Recipe, TrainingJob, train_in_processes
from cdlm_lab.training.processes import ALONE, Processes
from cdlm_lab.training.trainer import TrainingResult
from cdlm_lab.widgets.packed import DocumentLoss, PackedPreview

# The parameters of notebook 01.
PARAMETERS = (
    "run_folder",
    "variant",
    "model",
    "corpus",
    "train_clusters",
    "held_out_clusters",
    "minimum_documents",
    "packing",
    "max_length",
    "window",
    "mask_probability",
    "masking",
    "attention",
    "dropout",
    "attention_dropout",
    "steps",
    "batch_size",
    "micro_batch_size",
    "learning_rate",
    "warmup_steps",
    "decay_power",
    "precision",
    "gradient_checkpointing",
    "evaluate_every",
    "parallel",
    "workers",
    "seed",
)
EXAMPLES_LOOKED_AT = 200  # for the share of text lost and the mean number of global tokens


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The model to start from: `model` is a hub name, a folder, `minilm` or `tiny`; `window` the total width
    of local attention; `attention` a backend; `dropout` of hidden states (None = as the checkpoint says);
    `attention_dropout` of attention weights (`checkpoint` = as the checkpoint says); `seed` of new
    weights."""

    model: str
    window: int
    attention: str
    dropout: float | None
    seed: int
    attention_dropout: AttentionDropout = 0.0

    def __post_init__(self) -> None:
        check_types(self)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """All that a run needs, before anything is trained."""

    variant: Variant
    settings: ModelSettings
    model: CrossDocumentLM
    tokenizer: PreTrainedTokenizerBase
    corpus: CorpusSettings
    training: TrainingConfig
    train_split: TokenisedSplit
    validation_split: TokenisedSplit
    train_examples: CrossDocumentExamples
    validation_examples: CrossDocumentExamples


def prepare(
    *, variant: str, model: ModelSettings, corpus: CorpusSettings, training: TrainingConfig
) -> Prepared:
    """Load the model, tokenise the corpus (once), make the examples.

    Global projections start as copies of the local ones wherever the checkpoint was not pretrained with
    global tokens; a Longformer checkpoint's own are kept. Raises ValueError with one clear line for whatever
    does not fit.
    """
    chosen = variant_of(variant)
    if variant == "longformer" and model.model not in ("tiny", "minilm"):
        raise ParameterError(
            f"variant is 'longformer', which is the base itself: {model.model!r} has a language-model head "
            "and needs no training; choose another variant"
        )
    language_model, tokenizer = load_language_model(
        model.model,
        max_length=corpus.max_length,
        window=model.window,
        attention=model.attention,
        dropout=model.dropout,
        attention_dropout=model.attention_dropout,
        seed=model.seed,
    )
    if model.model == "tiny":
        copy_local_to_global(language_model)
    train_split = tokenised_split(corpus, "train", tokenizer=tokenizer, workers=training.workers)
    tell_passed_over(corpus.corpus, train_split.passed_over)
    validation_split = tokenised_split(corpus, "validation", tokenizer=tokenizer, workers=training.workers)
    parts = {"variant": chosen, "tokenizer": tokenizer}
    return Prepared(
        settings=model,
        model=language_model,
        corpus=corpus,
        training=training,
        train_split=train_split,
        validation_split=validation_split,
        train_examples=training_examples(
            train_split, corpus, size=training.steps * training.batch_size, **parts
        ),
        validation_examples=held_out_examples(validation_split, corpus, name="validation", **parts),
        **parts,
    )


def loss_of_text(prepared: Prepared) -> LossOfText:
    """How much text the packing leaves out, and why, over the first examples of the training."""
    examples = prepared.train_examples
    looked_at = range(min(EXAMPLES_LOOKED_AT, len(examples)))
    return LossOfText.over(examples.describe(index).packed for index in looked_at)


def job_of(prepared: Prepared) -> TrainingJob:
    """What is trained on what."""
    return TrainingJob(
        model=prepared.model,
        tokenizer=prepared.tokenizer,
        train_examples=prepared.train_examples,
        validation_examples=prepared.validation_examples,
        collate=Collate(pad_token_id=prepared.tokenizer.pad_token_id, cross_document=False),
        config=prepared.training,
    )


def prepare_job(
    *, variant: str, model: ModelSettings, corpus: CorpusSettings, training: TrainingConfig
) -> TrainingJob:
    """That of `prepare`, for each of several processes."""
    return job_of(prepare(variant=variant, model=model, corpus=corpus, training=training))


def train_model(
    prepared: Prepared,
    folder: Path,
    *,
    processes: Processes = ALONE,
    on_log: Callable[[Mapping[str, Any]], None] | None = None,
) -> TrainingResult:
    """Train and write the best model into `folder/model`; checkpoints and history go to `folder/training`.

    For variants trained without global tokens the global projections are set to the local ones at the end,
    as the paper does. An interrupted run writes no model. Errors as of `train_in_processes`.
    """
    model, tokenizer = prepared.model, prepared.tokenizer
    settings = {"variant": prepared.variant.name, "model": prepared.settings}
    settings |= {"corpus": prepared.corpus, "training": prepared.training}
    result = train_in_processes(
        Recipe(function=prepare_job, arguments=settings),
        job=job_of(prepared),
        processes=processes,
        folder=folder / TRAINING_FOLDER,
        on_log=on_log,
    )
    if not result.interrupted:
        if prepared.variant.global_policy == "none":
            copy_local_to_global(model)
        save_model(model, tokenizer, folder / MODEL_FOLDER)
    return result


def pretrain(
    prepared: Prepared,
    run: Run,
    *,
    processes: Processes = ALONE,
    on_log: Callable[[Mapping[str, Any]], None] | None = None,
) -> tuple[TrainingResult, Report | None]:
    """Train, then write `model/` and `report.json` into the run's folder; no report if the run was
    interrupted.

    The validation perplexity in the report is that of the model written, with its interval over clusters.
    """
    result = train_model(prepared, run.folder, processes=processes, on_log=on_log)
    if result.interrupted:
        return result, None
    losses = {
        prepared.variant.name: cluster_losses(
            prepared.model,
            prepared.validation_examples,
            batch_size=prepared.training.micro_batch_size,
            precision=prepared.training.precision,
            name="validation",
        )
    }
    report = run.write_report(
        scores={
            **scores_of(losses, seed=prepared.corpus.seed),
            "training_seconds": {"value": result.seconds},
            "training_tokens": {"value": result.tokens},
        },
        data={
            "corpus": prepared.corpus.corpus,
            "train_checksum": prepared.train_split.checksum,
            "validation_checksum": prepared.validation_split.checksum,
            "train_clusters": prepared.train_split.counts.clusters_kept,
            "train_clusters_dropped": prepared.train_split.counts.clusters_dropped,
            "files_passed_over": named(prepared.train_split.passed_over),
            "share_of_text_lost": loss_of_text(prepared).share_lost,
            "weights": parameter_count(prepared.model),
            "processes": processes.total,
            "precision": precision_told(prepared.training.precision),
        },
        tables={"history": [dict(record) for record in result.history]},
    )
    return result, report


def facts_of(prepared: Prepared) -> list[tuple[str, str]]:
    """What a person wants to know before a run starts, as (name, text) pairs."""
    counts, training = prepared.train_split.counts, prepared.training
    passed_over = prepared.train_split.passed_over
    sizes = ", ".join(f"{n} documents: {count:,}" for n, count in counts.documents_per_cluster.items())
    return [
        (
            "clusters",
            f"{counts.clusters_kept:,} for training ({sizes}); {counts.clusters_dropped:,} dropped "
            f"for having fewer than {counts.minimum_documents} documents",
        ),
        *([("files passed over", named(passed_over))] if passed_over else []),
        ("held out", f"{prepared.validation_split.counts.clusters_kept:,} clusters"),
        ("text", str(loss_of_text(prepared))),
        ("weights", f"{parameter_count(prepared.model):,}"),
        ("precision", precision_told(training.precision)),
        (
            "training",
            f"{training.steps:,} steps of {training.batch_size} examples, "
            f"about {training.steps * training.batch_size * prepared.corpus.max_length:,} tokens",
        ),
    ]


def preview(prepared: Prepared, *, index: int = 0) -> PackedPreview:
    """One training example as a picture: masked and global tokens, what was cut, estimated memory and
    time."""
    example = prepared.train_examples.describe(index)
    tokenizer = prepared.tokenizer
    tokens, starts_word = token_texts(tokenizer, example.packed.input_ids)
    shown, _ = token_texts(tokenizer, example.input_ids)
    replacement = [text if masked else None for text, masked in zip(shown, example.masked, strict=True)]
    packed = example.packed
    documents = [
        DocumentLoss(title=title, kept=kept, cut=lost, reason=reason)
        for title, kept, lost, reason in zip(
            example.document_ids, packed.kept_tokens, packed.lost_tokens, packed.reasons, strict=True
        )
    ]
    memory, seconds = cost_of_step(prepared)
    return PackedPreview(
        tokens=tokens,
        document=packed.document,
        masked=example.masked,
        replacement=replacement,
        global_=example.global_,
        special=packed.is_special,
        documents=documents,
        cross_document=example.cross_document,
        starts_word=starts_word,
        mask_token=tokenizer.mask_token,
        title=f"{prepared.variant.name} on {prepared.corpus.corpus}",
        memory_bytes=memory,
        step_seconds=seconds,
    )


def cost_of_step(prepared: Prepared) -> tuple[float, float]:
    """Estimated peak memory in bytes and seconds of one optimiser step, from the mean number of global
    tokens."""
    examples = prepared.train_examples
    seen = [examples[index] for index in range(min(EXAMPLES_LOOKED_AT // 10, len(examples)))]
    length = round(np.mean([len(example["input_ids"]) for example in seen]))
    training, config = prepared.training, prepared.model.config
    cost = estimate(
        config,
        length=length,
        batch=training.micro_batch_size,
        global_tokens=float(np.mean([example["global_attention_mask"].sum() for example in seen])),
        bytes_per_number=bytes_per_number(training.precision),
        gradient_checkpointing=training.gradient_checkpointing,
    )
    seconds = training_seconds(cost, config, rate=measured_rate(training.precision))
    return cost.peak_bytes, training.batch_size * seconds


def token_texts(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> tuple[list[str], np.ndarray]:
    """The text of each token without its joining sign, and whether a space stands before it ((tokens,) bool).

    Knows the signs of byte-level BPE (a leading `Ġ`), WordPiece (`##` inside words) and SentencePiece (`▁`).
    """
    names = tokenizer.convert_ids_to_tokens([int(i) for i in ids])
    special = set(tokenizer.all_special_tokens)
    spaced = any("\u0120" in name for name in names) or any("\u2581" in name for name in names)
    texts, starts = [], np.ones(len(names), dtype=bool)
    for number, name in enumerate(names):
        if name in special:
            texts.append(name)
        elif spaced:
            starts[number] = name[0] in "\u0120\u2581"
            text = tokenizer.convert_tokens_to_string([name])
            texts.append(text.strip() or ("\u21b5" if "\n" in text else "\u2423"))  # newline, blank
        else:
            starts[number] = not name.startswith("##")
            texts.append(name.removeprefix("##"))
    return texts, starts
