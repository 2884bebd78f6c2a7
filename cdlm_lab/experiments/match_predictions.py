"""What a trained matcher says of pairs, kept on disk: probabilities, and which sentences it aligns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from cdlm_lab.collate import batches_by_length
from cdlm_lab.data.document_pairs import DocumentPair
from cdlm_lab.data.files import replaced_file
from cdlm_lab.experiments.matching_models import Matcher
from cdlm_lab.models.device import default_device
from cdlm_lab.models.precision import Precision, computing_in
from cdlm_lab.progress import Progress

DECISION = 0.5  # of two classes the more probable one


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchPredictions:
    """Of pairs, in order.

    Attributes:
        probabilities: float64 (pairs,), that the documents belong together.
        alignments: name of a score -> for each pair float64 (sentences of the first document,), the higher
            the more it belongs to the second one: `attention` and `cosine` (CDA equations 3 and 4). Sentences
            beyond those that a system reads are missing at the end. Empty for a model that has no such
            scores.
    """

    probabilities: np.ndarray
    alignments: dict[str, list[np.ndarray]]

    @property
    def decisions(self) -> np.ndarray:
        """bool (pairs,), True = predicted to belong together."""
        return self.probabilities > DECISION

    def save(self, file: Path) -> None:
        """Write `.npz`, in one go."""
        arrays = {"probabilities": self.probabilities}
        for name, scores in self.alignments.items():
            arrays[f"{name}/scores"] = np.concatenate(scores)
            arrays[f"{name}/sentences"] = np.array([len(one) for one in scores])
        file.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(file, binary=True) as opened:
            np.savez(opened, **arrays)

    @classmethod
    def load(cls, file: Path, *, pairs: int) -> MatchPredictions:
        """Read what `save` wrote.

        Raises:
            ValueError: it is of another number of pairs.
        """
        with np.load(file, allow_pickle=False) as arrays:
            probabilities = arrays["probabilities"]
            alignments = {
                name.partition("/")[0]: np.split(
                    arrays[name], arrays[f"{name.partition('/')[0]}/sentences"].cumsum()[:-1]
                )
                for name in arrays.files
                if name.endswith("/scores")
            }
        if len(probabilities) != pairs:
            raise ValueError(
                f"{file} is of {len(probabilities)} pairs, but there are {pairs}; it is of another run: "
                "choose another run folder"
            )
        return cls(probabilities=probabilities, alignments=alignments)


def predict(
    matcher: Matcher,
    pairs: Sequence[DocumentPair],
    *,
    batch_size: int,
    precision: Precision = "float32",
    name: str | None = None,
) -> MatchPredictions:
    """Read every pair.

    Pairs are read longest first, so that batches hold little padding.

    Args:
        batch_size: pairs read at once; changes nothing but speed and memory.
        precision: of the forward pass, as of `resolve_precision`.
        name: beside the progress bar; None = no bar.
    """
    model = matcher.model.to(default_device()).eval()
    examples = matcher.examples(pairs)
    lengths = [_length(pair) for pair in pairs]
    probabilities = np.empty(len(pairs))
    alignments: dict[str, list[np.ndarray]] = {}
    with (
        Progress(total=len(pairs), desc=name, unit="pair", disable=name is None) as bar,
        computing_in(precision, model.device),
    ):
        for numbers in batches_by_length(lengths, [0] * len(lengths), batch_size):
            output, sentences = _read(matcher, model, [examples[number] for number in numbers])
            probabilities[numbers] = _probabilities(output["logits"])
            for score in ("attention", "cosine"):
                if score in output:
                    kept = alignments.setdefault(score, [np.empty(0)] * len(pairs))
                    rows = output[score][:, 0].double().cpu().numpy()
                    for row, number, count in zip(rows, numbers, sentences, strict=True):
                        kept[number] = row[:count]
            bar.update(len(numbers))
    return MatchPredictions(probabilities=probabilities, alignments=alignments)


def _length(pair: DocumentPair) -> int:
    return sum(len(sentence) for one in (pair.first, pair.second) for sentence in one.sentences)


@torch.inference_mode()
def _read(matcher: Matcher, model: torch.nn.Module, examples: list) -> tuple[dict, list[int]]:
    """The model's output, and how many sentences of each first document it read."""
    batch = {name: tensor.to(model.device) for name, tensor in matcher.collate(examples).items()}
    batch.pop("labels", None)
    output = model(**batch)
    mask = batch.get("sentence_mask")
    return output, [0] * len(examples) if mask is None else mask[:, 0].sum(1).tolist()


def _probabilities(logits: torch.Tensor) -> np.ndarray:
    """Of one logit (batch,), or of two (batch, 2), of which the second is for related documents."""
    logits = logits.double()
    found = torch.sigmoid(logits) if logits.ndim == 1 else torch.softmax(logits, dim=-1)[:, 1]
    return found.cpu().numpy()
