"""Which words of a text a prediction depends on: integrated gradients (Sundararajan et al. 2017), by captum.

The output F is the log-probability of the true subword tokens at hidden positions, as one word: that of the
first token, plus that of each other one once those before it are filled in,

    F(x) = sum over hidden tokens k of log p(w_k | x, w_1 ... w_{k-1}, masks from k on)

x are the embeddings of the text's tokens without positions, and x' those of the same text with every word
masked. The attribution of a token is the sum over its dimensions of (x - x') times the mean gradient of F on
the path from x' to x. Attributions add up to F(x) - F(x') except for the error of numerical integration;
special tokens and hidden tokens, which are the same in both, have 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from cdlm_lab.encoders.source_attention import evaluating

STEPS = 12  # points of the Gauss-Legendre rule on the path
NUMBERS_AT_ONCE = 2**19  # embedding numbers per batch of points


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attribution:
    """How much each token contributes to a prediction, in natural logarithms: positive = supports it."""

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
    """Attribute the prediction at some positions of one text to its tokens.

    Args:
        input_ids: (seq,), with masks at hidden tokens; no padding.
        positions: of the hidden tokens of a word, ascending.
        truth: (positions,), ids of the true tokens there.
        words: bool (seq,), True = text, False = special token, which the baseline keeps.
        is_global: bool (seq,), True = global.
        mask: id of the mask token.
        steps: number of points on the path.
    """
    from captum.attr import IntegratedGradients  # imported here, since it imports matplotlib

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
            tokens += given[0].sum(-1).cpu().double().numpy()
            text[position], may[position] = piece, False  # filled in from now on
    return Attribution(tokens=tokens, output=output, baseline=baseline)


class _LogProbability:
    """The log-probability of a piece at a position, (batch,), for embeddings (batch, seq, dim)."""

    def __init__(self, model: PreTrainedModel, position: int, piece: int, is_global: np.ndarray) -> None:
        self.model, self.position, self.piece = model, position, piece
        self.is_global = torch.from_numpy(np.asarray(is_global, dtype=np.int64)).to(model.device)

    def __call__(self, embeddings: Tensor) -> Tensor:
        everywhere = torch.ones(embeddings.shape[:2], dtype=torch.long, device=embeddings.device)
        masks = {"attention_mask": everywhere, "global_attention_mask": self.is_global.expand_as(everywhere)}
        read = self.model.base_model(inputs_embeds=embeddings, **masks, return_dict=True).last_hidden_state
        return self.model.lm_head(read[:, self.position]).float().log_softmax(-1)[:, self.piece]
