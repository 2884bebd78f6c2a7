"""Which words of a text a prediction rests on: integrated gradients (Sundararajan et al. 2017), by captum.

The output is the logarithm of the probability of what really stands where pieces are hidden, as one word: of
its first piece, and that of each other one once those before it stand there,

    F(x) = sum over hidden pieces k of log p(w_k | x, w_1 ... w_{k-1}, masks from k on)

x are the embeddings of the text's pieces without their positions, and x' those of the same text with every
word hidden. A piece is given the sum over its dimensions of (x - x') times the mean gradient of F on the way
from x' to x. These attributions add up to F(x) - F(x') but for the error of the numerical mean; special
tokens and hidden pieces, which are the same in both, have 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from cdlm_lab.analysis.source_attention import evaluating

STEPS = 12  # points of the Gauss-Legendre rule between the two texts
NUMBERS_AT_ONCE = 2**19  # of embeddings, by which so many points are read together


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attribution:
    """What each piece does for a prediction, in natural logarithms: above 0 it speaks for it."""

    tokens: np.ndarray  # float64 (seq,)
    output: float  # F(x)
    baseline: float  # F(x')


def integrated_gradients(
    model: PreTrainedModel,
    input_ids: np.ndarray,
    *,
    positions: np.ndarray,
    truth: np.ndarray,
    words: np.ndarray,
    is_global: np.ndarray,
    mask: int,
    steps: int = STEPS,
) -> Attribution:
    """What the prediction at some positions of one text rests on.

    Args:
        input_ids: (seq,), with masks where pieces are hidden; no padding.
        positions: of the hidden pieces of a word, ascending.
        truth: (positions,), what really stands there.
        words: bool (seq,), True = text, False = special token, which the baseline keeps.
        is_global: bool (seq,).
        mask: id of the mask.
    """
    from captum.attr import IntegratedGradients  # here: it imports matplotlib

    embed = model.get_input_embeddings()
    text, may = np.array(input_ids, dtype=np.int64), np.array(words, dtype=bool)
    tokens, output, baseline = np.zeros(len(text)), 0.0, 0.0
    with evaluating(model), torch.no_grad():
        for position, piece in zip(positions, truth, strict=True):
            ids = np.stack([text, np.where(may, mask, text)])
            ends = embed(torch.from_numpy(ids).to(model.device))[:, None]  # (2, 1, seq, dim)
            of_piece = _LogProbability(model, int(position), int(piece), is_global)
            output, baseline = output + float(of_piece(ends[0])), baseline + float(of_piece(ends[1]))
            given = IntegratedGradients(of_piece).attribute(
                ends[0],
                baselines=ends[1],
                n_steps=steps,
                internal_batch_size=int(np.clip(NUMBERS_AT_ONCE // ends[0].numel(), 1, 8)),
            )
            tokens += given[0].sum(-1).double().cpu().numpy()
            text[position], may[position] = piece, False  # stands there from now on
    return Attribution(tokens=tokens, output=output, baseline=baseline)


class _LogProbability:
    """The logarithm of the probability of a piece at a position, (batch,) of embeddings (batch, seq, dim)."""

    def __init__(self, model: PreTrainedModel, position: int, piece: int, is_global: np.ndarray) -> None:
        self.model, self.position, self.piece = model, position, piece
        self.is_global = torch.from_numpy(np.asarray(is_global, dtype=np.int64)).to(model.device)

    def __call__(self, embeddings: Tensor) -> Tensor:
        everywhere = torch.ones(embeddings.shape[:2], dtype=torch.long, device=embeddings.device)
        masks = {"attention_mask": everywhere, "global_attention_mask": self.is_global.expand_as(everywhere)}
        read = self.model.base_model(inputs_embeds=embeddings, **masks, return_dict=True).last_hidden_state
        return self.model.lm_head(read[:, self.position]).float().log_softmax(-1)[:, self.piece]
