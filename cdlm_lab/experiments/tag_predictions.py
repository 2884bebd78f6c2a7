"""The tags that a trained model gives, kept on disk, and how much each occurrence of a word weighed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from cdlm_lab.data.files import replaced_file
from cdlm_lab.examples.tag_examples import TagExamples
from cdlm_lab.examples.tag_sequences import joined
from cdlm_lab.experiments.tagging_models import Tagger
from cdlm_lab.models.device import default_device
from cdlm_lab.progress import Progress

BATCH = 32  # sequences tagged at once; neighbours share their context

SentenceTags = list[list[str]]  # of the sentences of a document


@dataclass(frozen=True, kw_only=True, eq=False)
class TagPredictions:
    """Of the labelled sequences of documents, in the order of `examples`.

    Attributes:
        tags: int16 (words,), numbers of tags of all words, one sequence after the other.
        weights: float16 (words, K), of each word's occurrences; 0 where there is none. None for a system
            without context.
    """

    examples: TagExamples
    tags: np.ndarray
    weights: np.ndarray | None

    @cached_property
    def starts(self) -> np.ndarray:
        """int64 (sequences + 1,): where in `tags` each sequence begins."""
        lengths = [
            len(self.examples.documents[document].document.sentences[number].words)
            for document, number in self.examples.sequences.tolist()
        ]
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    @property
    def documents(self) -> list[int]:
        """Numbers of the documents that have labelled sequences here, in order."""
        return np.unique(self.examples.sequences[:, 0]).tolist()

    def predicted(self) -> list[SentenceTags]:
        """For each document the predicted tags of its labelled sentences, as the source divides them."""
        names, starts = self.examples.tags, self.starts
        of_document: dict[int, SentenceTags] = {}
        for number, document in enumerate(self.examples.sequences[:, 0].tolist()):
            chosen = self.tags[starts[number] : starts[number + 1]]
            of_document.setdefault(document, []).append([names[tag] for tag in chosen])
        return [joined(self.examples.documents[number], of_document[number]) for number in self.documents]

    def gold(self) -> list[SentenceTags]:
        """The tags of the source, for the same sentences."""
        splits = [self.examples.documents[number] for number in self.documents]
        return [
            joined(split, [split.document.sentences[number].tags or () for number in split.document.labelled])
            for split in splits
        ]

    def buckets(self) -> np.ndarray:
        """int64 (words, K): the distance bucket of each occurrence, -1 = there is none."""
        rows = []
        for number in range(len(self.examples)):
            example = self.examples[number]
            rows.append(np.where(example.places[..., 0] >= 0, example.buckets, -1))
        return np.concatenate(rows)

    def save(self, file: Path) -> None:
        """Write `.npz`, in one go."""
        arrays = {"tags": self.tags} | ({} if self.weights is None else {"weights": self.weights})
        file.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(file, binary=True) as opened:
            np.savez(opened, **arrays)

    @classmethod
    def load(cls, file: Path, *, examples: TagExamples) -> TagPredictions:
        """Read what `save` wrote.

        Raises:
            ValueError: it is of another number of words.
        """
        with np.load(file, allow_pickle=False) as arrays:
            found = cls(examples=examples, tags=arrays["tags"], weights=arrays.get("weights"))
        if found.starts[-1] != len(found.tags):
            raise ValueError(f"{file} is of other documents, so of another run: choose another run folder")
        return found


def predict_tags(tagger: Tagger, examples: TagExamples, *, name: str | None = None) -> TagPredictions:
    """Tag every sequence with its most probable tags; of equally probable ones the first is taken.

    Args:
        name: beside the progress bar; None = no bar.
    """
    tagger.ready(examples)
    model, collate = tagger.model.to(default_device()).eval(), tagger.collate_of(examples)
    tags: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    with Progress(total=len(examples), desc=name, unit=" sentences", disable=name is None) as bar:
        for start in range(0, len(examples), BATCH):
            rows = [examples[number] for number in range(start, min(start + BATCH, len(examples)))]
            output = _read(model, collate(rows))
            for row, example in enumerate(rows):
                words = len(example.words)
                tags.append(output["logits"][row, :words].argmax(-1).cpu().numpy().astype(np.int16))
                if output["weights"] is not None:
                    weights.append(output["weights"][row, :words].cpu().numpy().astype(np.float16))
            bar.update(len(rows))
    return TagPredictions(
        examples=examples, tags=np.concatenate(tags), weights=np.concatenate(weights) if weights else None
    )


@torch.no_grad()  # not inference_mode: the judge of a training asks between updates
def _read(model: torch.nn.Module, batch: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
    device = next(model.parameters()).device
    output = model(**{name: tensor.to(device) for name, tensor in batch.items()})
    return {"logits": output.logits.float(), "weights": output.weights}
