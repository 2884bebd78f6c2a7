"""From a packed example to what the preview shows: token texts, replacements, losses, cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from transformers import PreTrainedTokenizerBase

from cdlm_lab.experiments.pretraining import EXAMPLES_LOOKED_AT, Prepared
from cdlm_lab.experiments.step_cost import bytes_per_number, measured_rate, training_seconds
from cdlm_lab.models.estimate import estimate
from cdlm_lab.widgets.packed_example import DocumentLoss, PackedPreview


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
