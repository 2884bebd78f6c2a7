"""What a training leaves for others to load."""

from __future__ import annotations

from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cdlm_lab.models.checkpoint import without_bars
from cdlm_lab.ranks import is_first

# Folders of a run: the model to load, and the checkpoints and history of its training.
MODEL_FOLDER, TRAINING_FOLDER = "model", "training"


def save_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, folder: Path) -> None:
    """Write both, if there are both, as safetensors and JSON; under torchrun only rank 0 writes."""
    if is_first():
        with without_bars():
            model.save_pretrained(folder)
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)
