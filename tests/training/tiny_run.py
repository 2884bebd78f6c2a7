"""A tiny masked language model, examples for it, and its training: imported by tests, or run as a program.

`python tiny_run.py FOLDER '{"kill_at": 7}'` trains and is killed by SIGKILL right after the record of step 7.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ipykernel.parentpoller import ParentPollerUnix
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import MaskedLMOutput

from cdlm_lab.training.config import TrainingConfig
from cdlm_lab.training.trainer import TrainingJob, TrainingResult, train
from cdlm_lab.training.validation import Judge

VOCABULARY = 40
# Environment for tests that start this program.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "OMP_NUM_THREADS": "1"}


class TinyConfig(PreTrainedConfig):
    """Configuration with one width for all layers."""

    model_type = "tiny-run"

    def __init__(self, width: int = 16, dropout: float = 0.2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.width, self.dropout = width, dropout


class PlainModel(PreTrainedModel):
    """Accepts any keyword, as Hugging Face's masked language models do, and ignores `num_items_in_batch`."""

    config_class = TinyConfig

    def __init__(self, config: TinyConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(VOCABULARY, config.width)
        self.local = nn.Linear(config.width, config.width)
        self.global_projection = nn.Linear(config.width, config.width)
        self.norm = nn.LayerNorm(config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.vocabulary = nn.Linear(config.width, VOCABULARY)
        self.post_init()

    def logits(self, input_ids: Tensor, attention_mask: Tensor, global_attention_mask: Tensor) -> Tensor:
        """Return logits; as in Longformer, the global projection is used only if a token is global."""
        hidden = self.embedding(input_ids) * attention_mask[..., None]
        mixed = self.local(hidden.sum(1, keepdim=True) / attention_mask.sum(1)[:, None, None])
        if global_attention_mask.any():
            mixed = mixed + self.global_projection(hidden) * global_attention_mask[..., None]
        return self.vocabulary(self.dropout(self.norm(hidden + mixed)))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        global_attention_mask: Tensor,
        labels: Tensor,
        **kwargs: Any,
    ) -> MaskedLMOutput:
        logits = self.logits(input_ids, attention_mask, global_attention_mask)
        return MaskedLMOutput(loss=nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()))


class TinyModel(PlainModel):
    """Divides its loss by `num_items_in_batch`, as CrossDocumentLM does."""

    accepts_loss_kwargs = True

    def forward(
        self, *, labels: Tensor, num_items_in_batch: Tensor | None = None, **inputs: Tensor
    ) -> MaskedLMOutput:
        logits = self.logits(**inputs)
        total = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
        count = labels.ne(-100).sum() if num_items_in_batch is None else num_items_in_batch
        return MaskedLMOutput(loss=total / count)


class Examples:
    """Examples of 3 to 14 tokens, of which 1 to 5 are masked; each depends only on seed and index."""

    def __init__(self, *, seed: int, size: int, global_from: int = 0) -> None:
        self.seed, self.size, self.global_from = seed, size, global_from

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        if index >= self.size:
            raise IndexError(index)
        random = np.random.default_rng([self.seed, index])
        length = int(random.integers(3, 15))
        tokens = random.integers(1, VOCABULARY, length)
        masked = random.choice(length, size=int(random.integers(1, min(6, length + 1))), replace=False)
        labels = np.full(length, -100)
        labels[masked] = tokens[masked]
        # From index `global_from` on, every third example has global tokens.
        global_tokens = (labels != -100) & (index >= self.global_from and index % 3 == 0)
        return {
            "input_ids": np.where(labels == -100, tokens, 0),
            "labels": labels,
            "global_attention_mask": global_tokens.astype(np.int64),
        }


def collate(examples: list[dict[str, np.ndarray]]) -> dict[str, Tensor]:
    """Pad examples to the longest and stack them."""
    longest = max(len(example["labels"]) for example in examples)
    fill = {"input_ids": 0, "labels": -100, "global_attention_mask": 0, "attention_mask": 0}
    batch = {name: torch.full((len(examples), longest), value) for name, value in fill.items()}
    for row, example in enumerate(examples):
        batch["attention_mask"][row, : len(example["labels"])] = 1
        for name, values in example.items():
            batch[name][row, : len(values)] = torch.as_tensor(values)
    return batch


def tiny_config(**changes: Any) -> TrainingConfig:
    """Ten steps of four examples in micro-batches of two; always in float32, as most tests are exact."""
    settings: dict[str, Any] = {
        "steps": 10, "batch_size": 4, "micro_batch_size": 2, "learning_rate": 0.01, "warmup_steps": 2,
        "evaluate_every": 4, "save_every": 3, "log_every": 1, "seed": 5, "precision": "float32",
    }  # fmt: skip
    return TrainingConfig(**(settings | changes))


def tiny_model(kind: type[PlainModel] = TinyModel, **settings: Any) -> PlainModel:
    """Make a model, always with the same weights."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return kind(TinyConfig(**settings))


def run(
    folder: str | Path,
    *,
    model: PlainModel | None = None,
    on_log: Callable[[dict[str, Any]], None] | None = None,
    train_examples: Examples | None = None,
    judge: Judge | None = None,
    **changes: Any,
) -> TrainingResult:
    """Train a tiny model in a folder."""
    config = tiny_config(**changes)
    job = TrainingJob(
        model=model or tiny_model(),
        train_examples=train_examples or Examples(seed=1, size=config.steps * config.batch_size),
        validation_examples=Examples(seed=2, size=11),
        collate=collate,
        config=config,
        judge=judge,
    )
    return train(job, Path(folder), on_log=on_log)


def timeless(history: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records without `seconds`, which differ from run to run."""
    return [{name: value for name, value in record.items() if name != "seconds"} for record in history]


def main(folder: str, options: str = "{}") -> None:
    """Train in a separate process, which kills itself at step `kill_at`, or with SIGTERM the process that
    started it at step `orphaned_at`, which a kernel notices; write outcome.json at the end."""
    settings = json.loads(options)
    kill_at, model = settings.pop("kill_at", None), settings.pop("model", {})
    orphaned_at, parent = settings.pop("orphaned_at", None), os.getppid()
    if orphaned_at:
        ParentPollerUnix(parent_pid=parent).start()
    global_from, double = settings.pop("global_from", 0), settings.pop("double", False)

    def die(record: dict[str, Any]) -> None:
        if record["step"] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if record["step"] == orphaned_at:
            os.kill(parent, signal.SIGTERM)
            time.sleep(2.5)  # the kernel looks once a second

    examples = Examples(seed=1, size=1000, global_from=global_from)
    tiny = tiny_model(**model)
    tiny = tiny.double() if double else tiny
    result = run(folder, model=tiny, on_log=die, train_examples=examples, **settings)
    if os.environ.get("RANK", "0") == "0":
        last = load_file(result.last_checkpoint / "model.safetensors")
        weights = {name: value.tolist() for name, value in last.items()}
        outcome = {"history": result.history, "weights": weights, "best_step": result.best_step}
        (Path(folder) / "outcome.json").write_text(json.dumps(outcome), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
