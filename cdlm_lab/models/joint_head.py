"""Four heads on the embeddings E_0 ... E_k of sentences that were read together, the states of their front
tokens (Di Liello et al. 2022, "MSPP", sections 3.2 and 3.3; examples/joint_sequence.py writes the sequences).

    ie_1    linear(E_0)                    one label
    ae_1    linear(mean of E_0 ... E_k)    one label
    ie_k    linear(E_i)                    a label of each candidate
    ae_k    linear([E_0; E_i])             a label of each candidate

Choices where the paper is silent: the mean of `ae_1` is over the sentences that are there; nothing is dropped
out in a linear head. In the released code each head has a hidden layer (`tanh` here), `ae_1` is a sum, and an
absent candidate is read as an empty sentence.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn
from transformers import LongformerConfig, LongformerModel

from cdlm_lab.data.files import replaced_file
from cdlm_lab.examples.joint_sequence import JointLayout
from cdlm_lab.examples.masking import NOT_MASKED
from cdlm_lab.models.checkpoint import CheckpointError, first_line, refuse_not_finite
from cdlm_lab.models.precision import as_weights, in_full

KINDS = ("ie_1", "ae_1", "ie_k", "ae_k")
LAYERS = ("linear", "tanh")
HEAD_FILE = "paragraph_head.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class JointHead:
    """What stands on the encoder, and the layout of the sequences that it reads.

    Attributes:
        kind: `ie_1`, `ae_1`, `ie_k` or `ae_k`, see the head of this module.
        labels: how many there are to choose from.
        sentences, length, positions: as of `JointLayout`.
        layers: `linear`, or the released code's `tanh`: dropout, linear, tanh, dropout, linear.

    Raises:
        ValueError: an unknown kind or unknown layers, fewer than 2 labels, a layout that cannot be.
    """

    kind: str
    labels: int = 2
    sentences: int = 6
    length: int = 64
    positions: str = "strided"
    layers: str = "linear"

    def __post_init__(self) -> None:
        for name, choices in (("kind", KINDS), ("layers", LAYERS)):
            if (found := getattr(self, name)) not in choices:
                raise ValueError(f"{name} is {found!r}; choose one of {', '.join(choices)}")
        if self.labels < 2:
            raise ValueError(f"labels is {self.labels}; there must be 2 or more to choose from")
        _ = self.layout  # which refuses what cannot be

    @property
    def layout(self) -> JointLayout:
        """That of its sequences."""
        return JointLayout(sentences=self.sentences, length=self.length, positions=self.positions)

    @property
    def of_candidates(self) -> bool:
        """True for `ie_k` and `ae_k`, which label each candidate."""
        return self.kind in ("ie_k", "ae_k")


class JointHeadLayers(nn.Module):
    """From the embeddings of sentences to logits.

    Args:
        head: its form.
        config: of the encoder, for size and dropout.
    """

    def __init__(self, head: JointHead, config: LongformerConfig) -> None:
        super().__init__()
        self.form = head
        size = config.hidden_size * (2 if head.kind == "ae_k" else 1)
        dropout, output = nn.Dropout(config.hidden_dropout_prob), nn.Linear(size, head.labels)
        hidden = (dropout, nn.Linear(size, size), nn.Tanh(), dropout) if head.layers == "tanh" else ()
        self.layers = nn.Sequential(*hidden, output)

    def forward(self, embeddings: Tensor, starts: Tensor) -> Tensor:
        """Logits, float32: (batch, k, labels), 0 of absent candidates, or (batch, labels).

        Args:
            embeddings: (batch, k + 1, dim), 0 of absent sentences.
            starts: (batch, k + 1) long, -1 = absent.
        """
        with in_full(embeddings.device):
            return self._logits(as_weights(embeddings, self.layers), starts).float()

    def _logits(self, embeddings: Tensor, starts: Tensor) -> Tensor:
        question, candidates = embeddings[:, 0], embeddings[:, 1:]
        if self.form.kind == "ie_1":
            return self.layers(question)
        if self.form.kind == "ae_1":
            there = (starts >= 0).sum(1, keepdim=True)
            return self.layers(embeddings.sum(1) / there)
        if self.form.kind == "ae_k":
            candidates = torch.cat([question[:, None].expand_as(candidates), candidates], dim=-1)
        return self.layers(candidates).masked_fill(starts[:, 1:, None] < 0, 0.0)


def sentence_states(
    encoder: LongformerModel, input_ids: Tensor, mask: Tensor, token_type_ids: Tensor, position_ids: Tensor
) -> Tensor:
    """The last hidden states, (batch, tokens, dim); arguments as of `JointModel.forward`."""
    first = encoder.embeddings.padding_idx + 1  # the row of position 0
    form = {"token_type_ids": token_type_ids, "position_ids": position_ids + first, "return_dict": True}
    return encoder(input_ids, mask, **form).last_hidden_state


def front_states(states: Tensor, starts: Tensor, *, sentences: int) -> Tensor:
    """The embeddings of sentences: (batch, k + 1, dim), 0 of absent ones.

    Args:
        states: (batch, tokens, dim).
        starts: (batch, k + 1) long, where the front token of each sentence is; -1 = absent.
        sentences: how many there must be, k + 1.

    Raises:
        ValueError: there are more or fewer.
    """
    if starts.shape[1] != sentences:
        raise ValueError(
            f"the sequences have {starts.shape[1]} sentences, the model reads {sentences}; write them by the "
            "layout of its head"
        )
    rows = torch.arange(len(states), device=states.device)[:, None]
    return states[rows, starts.clamp(min=0)].masked_fill((starts < 0)[..., None], 0.0)


def summed_loss(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Summed cross entropy of the labels, and how many these are: () each.

    Args:
        logits: (..., labels) float32.
        labels: (...,), -100 = none.
    """
    total = nn.functional.cross_entropy(
        logits.flatten(0, -2), labels.flatten().long(), ignore_index=NOT_MASKED, reduction="sum"
    )
    return total, (labels != NOT_MASKED).sum()


def check_labels(labels: Tensor, starts: Tensor) -> None:
    """Raise ValueError if an absent candidate has a label: labels (batch, k), starts (batch, k + 1)."""
    if ((labels != NOT_MASKED) & (starts[:, 1:] < 0)).any():
        raise ValueError(f"an absent candidate has a label; give it {NOT_MASKED}")


def write_head(layers: JointHeadLayers, folder: Path) -> None:
    """Write a head of paragraph pre-training, with its form, into the folder of the encoder."""
    weights = {name: weight.detach().cpu().contiguous() for name, weight in layers.state_dict().items()}
    with replaced_file(folder / HEAD_FILE, binary=True) as file:
        file.write(save(weights, metadata={"format": "pt", "head": json.dumps(asdict(layers.form))}))


def paragraph_head(folder: str) -> tuple[JointHead, dict[str, Tensor]] | None:
    """The head that `write_head` left in a folder: its form and its weights by name; None if there is none.

    Raises:
        CheckpointError: the file is damaged, or no such head.
    """
    file = Path(folder) / HEAD_FILE
    if not file.is_file():
        return None
    try:
        with safe_open(file, framework="pt") as opened:
            form = JointHead(**json.loads(opened.metadata()["head"]))
            weights = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except Exception as error:
        raise CheckpointError(
            f"{file}: no head of paragraph pre-training ({first_line(error)}); save the model again"
        ) from error
    refuse_not_finite(weights, str(file))
    return form, weights


def start_from_paragraph_head(layers: JointHeadLayers, folder: str) -> bool:
    """Give a head the weights of that in a folder, if one of the same kind, labels and layers is there.

    Returns:
        True if so.

    Raises:
        CheckpointError: the file is damaged, or of another model.
    """
    found = paragraph_head(folder)
    if found is None or _shape(found[0]) != _shape(layers.form):
        return False
    try:
        layers.load_state_dict(found[1])
    except RuntimeError as error:  # says over many lines what the shapes are
        raise CheckpointError(
            f"{folder}: {HEAD_FILE} is not of the encoder beside it; remove it, or save the model again"
        ) from error
    return True


def _shape(head: JointHead) -> tuple[str, int, str]:
    return head.kind, head.labels, head.layers
