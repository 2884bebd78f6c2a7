"""What a model makes of held-out paragraphs: how it scores the candidates, and the loss on masked tokens
(Di Liello et al. 2022, section 3.4).

The paper reports neither. Candidates are scored here
- each by itself: `called`, the share that is called as it is (log-odds above 0 = of the same paragraph), of
  all and by where they come from;
- against each other, whatever the threshold: `first`, how often one of the same paragraph has the highest
  score, and `above`, how often it has a higher score than one from elsewhere, by where that comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cdlm_lab.collate import batches_by_length
from cdlm_lab.examples.candidate_examples import JointCollate
from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.examples.paragraph_tasks import KINDS, SAME_PARAGRAPH, ParagraphTasks
from cdlm_lab.experiments.seed_scores import mean_score
from cdlm_lab.metrics.language_modelling import perplexity
from cdlm_lab.metrics.ranking import values_per_group
from cdlm_lab.metrics.resampling import sums_by_cluster
from cdlm_lab.models.joint_head import front_states, sentence_states
from cdlm_lab.models.joint_model import scores_of
from cdlm_lab.models.paragraph_model import ParagraphModel
from cdlm_lab.models.precision import Precision, computing_in
from cdlm_lab.progress import Progress


@dataclass(frozen=True, kw_only=True, eq=False)
class ParagraphAnswers:
    """What a model makes of examples.

    Attributes:
        documents: int64 (examples,), row of the document of s_0 in the corpus.
        kinds: str (examples, k), where each candidate comes from, one of `paragraph_tasks.KINDS`; those of
            the same paragraph are to be found.
        scores: float64 (examples, k), log-odds of being of the same paragraph.
        losses: float64 (examples,), cross entropy in nats, summed over the masked tokens.
        masked: int64 (examples,), how many these are.
    """

    documents: np.ndarray
    kinds: np.ndarray
    scores: np.ndarray
    losses: np.ndarray
    masked: np.ndarray

    @property
    def probabilities(self) -> np.ndarray:
        """float64 (examples, k), of being of the same paragraph."""
        return 1 / (1 + np.exp(-self.scores))


def answer_tasks(
    model: ParagraphModel,
    examples: ParagraphTasks,
    collate: JointCollate,
    *,
    batch_size: int,
    precision: Precision = "float32",
    name: str,
) -> ParagraphAnswers:
    """Put all examples to a model, on the device that it is on; a progress bar called `name`. `precision`: of
    the forward pass, as of `resolve_precision`; scores and losses are float32 in each."""
    described = [examples.describe(number) for number in range(len(examples))]
    scores = np.zeros((len(described), examples.layout.candidates))
    losses, masked = np.zeros(len(described)), np.zeros(len(described), dtype=np.int64)
    lengths = [len(one.input_ids) for one in described]
    model.eval()
    with (
        Progress(total=len(described), desc=name, unit="example") as bar,
        torch.no_grad(),
        computing_in(precision, model.device),
    ):
        for rows in batches_by_length(lengths, [0] * len(lengths), batch_size):
            batch = collate([examples[row] for row in rows])
            logits, loss = _read(model, {key: value.to(model.device) for key, value in batch.items()})
            scores[rows] = scores_of(logits)
            losses[rows] = loss.double().cpu().numpy()
            masked[rows] = (batch["mlm_labels"] != NOT_MASKED).sum(1).numpy()
            bar.update(len(rows))
    return ParagraphAnswers(
        documents=np.array([one.sentences[0].row for one in described]),
        kinds=np.array([[sentence.kind for sentence in one.sentences[1:]] for one in described]),
        scores=scores,
        losses=losses,
        masked=masked,
    )


def _read(model: ParagraphModel, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Logits of the candidates, (batch, k, 2), and the summed loss of the masked tokens of each example,
    (batch,): what `ParagraphModel.forward` has the mean of."""
    names = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
    states = sentence_states(model.longformer, *(batch[name] for name in names))
    fronts = front_states(states, batch["starts"], sentences=model.head.form.sentences)
    labels = batch["mlm_labels"]
    row, place = (labels != NOT_MASKED).nonzero(as_tuple=True)
    words = model.lm_head(states[row, place]).float()  # (n_masked, vocab)
    each = torch.nn.functional.cross_entropy(words, labels[row, place], reduction="none")
    return model.head(fronts, batch["starts"]), each.new_zeros(len(labels)).index_add(0, row, each)


def paragraph_scores(answers: ParagraphAnswers, *, seed: int) -> dict[str, dict[str, Any]]:
    """For the report: `mspp/called`, `mspp/called/<kind>`, `mspp/first`, `mspp/above/<kind>` and
    `mlm/perplexity`.

    Each has its `value` with a 95% interval over the documents of s_0 (`low`, `high`), what it is of, `n`
    (candidates, examples, pairs or masked tokens), and `chance`, what knowing nothing gives: calling each
    candidate wrong, scores at random; None of perplexity and of `called` by kind, where it depends on what is
    called. Kinds of fewer than two documents are left out.

    Args:
        seed: of the interval's draws.

    Raises:
        ValueError: the examples are of a single document.
    """
    positive = answers.kinds == SAME_PARAGRAPH  # (examples, k)
    right = (answers.scores > 0) == positive
    first = values_per_group(list(zip(answers.scores, positive, strict=True)))["precision_at_1"]
    documents = np.broadcast_to(answers.documents[:, None], positive.shape)  # (examples, k)
    found = {
        "called": (right.ravel(), documents.ravel(), float(1 - positive.mean())),
        **{
            f"called/{kind}": (right[chosen], documents[chosen], None)
            for kind in KINDS
            for chosen in [answers.kinds == kind]
        },
        "first": (first, answers.documents, float(positive.mean())),
        **{f"above/{kind}": (*_above(answers, kind), 0.5) for kind in KINDS if kind != SAME_PARAGRAPH},
    }
    scores = {
        f"mspp/{name}": _score(values, of, seed=seed) | {"chance": chance}
        for name, (values, of, chance) in found.items()
        if "/" not in name or len(np.unique(of)) > 1
    }
    sums = sums_by_cluster([answers.losses, answers.masked], answers.documents.tolist(), name="examples")
    of_words = perplexity(*sums.T, seed=seed)
    return scores | {
        "mlm/perplexity": {
            "value": of_words.value,
            "low": of_words.low,
            "high": of_words.high,
            "n": of_words.tokens,
            "chance": None,
        }
    }


def _above(answers: ParagraphAnswers, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Of each pair of a candidate of the same paragraph and one of a kind: 1 = the score of the first is
    higher, 0 = lower, 1/2 = the same; and the document of s_0."""
    positive, other = (answers.kinds == one for one in (SAME_PARAGRAPH, kind))
    example, left, right = np.nonzero(positive[:, :, None] & other[:, None, :])
    difference = answers.scores[example, left] - answers.scores[example, right]
    return (1 + np.sign(difference)) / 2, answers.documents[example]


def _score(values: np.ndarray, documents: Sequence[int] | np.ndarray, *, seed: int) -> dict[str, Any]:
    found = mean_score([values.astype(np.float64)], np.asarray(documents).tolist(), seed=seed)
    return {name: found[name] for name in ("value", "low", "high")} | {"n": len(values)}
