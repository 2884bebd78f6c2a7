"""Perplexity of masked tokens with a confidence interval over clusters (CDLM section 3.1, Table 1).

Every masked token counts once, so that a cluster weighs as much as it has masked tokens; the mean of means
that comes from averaging the losses of batches is something else. Tokens of one cluster depend on each other,
so the interval resamples clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cdlm_lab.metrics.resampling import check_resamples, percentile_interval, resampled_sums


@dataclass(frozen=True, slots=True, kw_only=True)
class Perplexity:
    """Perplexity and its 95% bootstrap interval.

    Attributes:
        value: exp(sum of losses / number of tokens), at least 1.
        low, high: percentiles 2.5 and 97.5 over resampled clusters; of a single cluster both are `value` and
            say nothing.
        clusters: how many had tokens to predict; only these are resampled.
        tokens: how many were predicted.
    """

    value: float
    low: float
    high: float
    clusters: int
    tokens: int


def perplexity(
    loss_sums: ArrayLike, token_counts: ArrayLike, *, n_resamples: int = 10_000, seed: int = 0
) -> Perplexity:
    """Token-weighted perplexity of one model.

    Args:
        loss_sums: (clusters,), cross-entropy in nats summed over the predicted tokens of each cluster.
        token_counts: (clusters,), how many tokens that are; clusters without any are left out.
        n_resamples: for the interval.
        seed: of the resampling.

    Raises:
        ValueError: shapes differ, a loss is negative or not finite, a count is negative or not whole, a
            cluster without tokens has a loss, no cluster has a token, or `n_resamples` is below 1.
    """
    check_resamples(n_resamples)
    losses, tokens = checked_losses(loss_sums, token_counts)
    counts = np.stack([losses, tokens], axis=1)  # (clusters, 2)
    resampled = resampled_sums(counts, n_resamples=n_resamples, rng=np.random.default_rng(seed))
    low, high = percentile_interval(log_perplexity(resampled))
    return Perplexity(
        value=_exp(float(log_perplexity(counts.sum(axis=0)))),
        low=_exp(low),
        high=_exp(high),
        clusters=len(counts),
        tokens=int(tokens.sum()),
    )


def log_perplexity(sums: np.ndarray) -> np.ndarray:
    """Mean loss in nats from (..., 2) sums of loss and of tokens: (...)."""
    return sums[..., 0] / sums[..., 1]


def checked_losses(
    loss_sums: ArrayLike, token_counts: ArrayLike, *, name: str = "loss_sums"
) -> tuple[np.ndarray, np.ndarray]:
    """Both as float64 (clusters,), less the clusters without tokens; `name`: of the losses, for messages.

    Raises:
        ValueError: as `perplexity`.
    """
    losses, tokens = np.asarray(loss_sums, dtype=np.float64), np.asarray(token_counts, dtype=np.float64)
    if losses.ndim != 1 or losses.shape != tokens.shape:
        raise ValueError(
            f"{name} has shape {losses.shape} and token_counts {tokens.shape}; both must be (clusters,)"
        )
    _refuse(
        losses,
        ~(np.isfinite(losses) & (losses >= 0)),
        f"{name}[%d] is %s; a loss must be finite and not negative",
    )
    _refuse(
        tokens,
        ~(tokens >= 0) | (tokens % 1 != 0),
        "token_counts[%d] is %s; a count must be whole and not negative",
    )
    _refuse(
        losses,
        (tokens == 0) & (losses != 0),
        f"{name}[%d] is %s, but token_counts says that no token was predicted",
    )
    if not tokens.any():
        raise ValueError("no cluster has a predicted token; perplexity needs at least one")
    kept = tokens > 0
    return losses[kept], tokens[kept]


def _refuse(values: np.ndarray, faulty: np.ndarray, message: str) -> None:
    """Complain about the first faulty value; `message` takes its index and the value."""
    if faulty.any():
        index = int(np.argmax(faulty))
        raise ValueError(message % (index, values[index]))


def _exp(value: float) -> float:
    """exp, infinite where a float cannot hold it."""
    with np.errstate(over="ignore"):
        return float(np.exp(value))
