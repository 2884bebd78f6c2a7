"""The picture of a training run, drawn as a small SVG: one line of numbers in, about 10 kB of picture out.

Loss and perplexity share one scale: the axis on the left reads cross entropy, the one on the right its
    exponential.
A validation perplexity p is therefore drawn at the height of ln p, and both can be compared at a glance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cdlm_lab.widgets.theme import FONT, GLOBAL, MASKED, TEXT

POINTS = 220  # most points a line is drawn with
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 860, 300, 54, 58, 12, 40


@dataclass(kw_only=True, slots=True)
class RunHistory:
    """What a run has reported so far; each list grows at its end, steps ascending.

    Attributes:
        steps, losses: optimiser step and training loss (nats per masked token) of each report.
        eval_steps, eval_perplexities: the same for each validation.
        total_steps: length of the whole run, if known.
    """

    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    eval_steps: list[int] = field(default_factory=list)
    eval_perplexities: list[float] = field(default_factory=list)
    total_steps: int | None = None


def smoothed(values: Sequence[float], *, span: float) -> np.ndarray:
    """The exponential moving average over about `span` values, unbiased at the start; NaN and infinity are
    passed over.

    `average_t = sum_i (1 - 1/span)^(t - i) value_i / sum_i (1 - 1/span)^(t - i)` over the finite values i <=
    t.

    Raises:
        ValueError: a span below 1.
    """
    if span < 1:
        raise ValueError(f"span must be at least 1, got {span}")
    keep, total, weight = 1 - 1 / span, 0.0, 0.0
    averages = np.full(len(values), np.nan)
    for i, value in enumerate(values):
        if math.isfinite(value):
            total, weight = keep * total + value, keep * weight + 1
        if weight:
            averages[i] = total / weight
    return averages


def smoothing_span(count: int) -> float:
    """The span used for `count` reports: a sixtieth of them, at least 4 and at most 100."""
    return min(max(count / 60, 4.0), 100.0)


def curve_svg(history: RunHistory, *, perplexity: bool = True) -> str:
    """Training loss (faint: as reported; strong: smoothed) and validation perplexity over optimiser steps.

    `perplexity`: False = the axis of losses alone, for tasks in which perplexity means nothing.
    """
    average = smoothed(history.losses, span=smoothing_span(len(history.losses)))
    heights = [math.log(p) if 0 < p < math.inf else math.nan for p in history.eval_perplexities]
    low, high = _value_range(average, heights)
    last = max([1, history.total_steps or 0, *history.steps[-1:], *history.eval_steps[-1:]])
    first = min([*history.steps[:1], *history.eval_steps[:1], last])
    first = 0 if first < 0.2 * last else first  # a resumed run is not squeezed into the right-hand end

    def x(step: float) -> float:
        return _LEFT + (step - first) / max(last - first, 1) * (_WIDTH - _LEFT - _RIGHT)

    def y(loss: float) -> float:
        return _TOP + (high - loss) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    faint = _line(history.steps, np.clip(_finite(history.losses), low, high), x, y)
    strong = _line(history.steps, average, x, y)
    dots = "".join(
        f'<circle cx="{x(step):.1f}" cy="{y(value):.1f}" r="4.2" fill="{GLOBAL}"/>'
        for step, value in zip(history.eval_steps, heights, strict=True)
        if math.isfinite(value)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="{FONT}" '
        f'font-size="12" fill="{TEXT}">{_value_axes(low, high, y, perplexity)}'
        f"{_step_axis(first, last, x, perplexity)}"
        f'<path d="{faint}" fill="none" stroke="{MASKED}" stroke-opacity=".32"/>'
        f'<path d="{strong}" fill="none" stroke="{MASKED}" stroke-width="2.2" stroke-linejoin="round"/>'
        f'<path d="{_line(history.eval_steps, np.array(heights), x, y)}" fill="none" stroke="{GLOBAL}" '
        f'stroke-width="1.4" stroke-opacity=".6"/>{dots}</svg>'
    )


def _finite(values: Sequence[float]) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    return np.where(np.isfinite(array), array, np.nan)


def _value_range(average: np.ndarray, heights: Sequence[float]) -> tuple[float, float]:
    shown = [*average[np.isfinite(average)], *(h for h in heights if math.isfinite(h))]
    low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
    margin = max(0.08 * (high - low), 0.05)
    return low - margin, high + margin


def _line(steps: Sequence[int], values: np.ndarray, x, y) -> str:
    """An SVG path through at most POINTS points; it is broken where a value is not finite."""
    chosen = (
        np.unique(np.linspace(0, len(steps) - 1, min(len(steps), POINTS)).round().astype(int))
        if len(steps)
        else []
    )
    moves, pen = [], "M"
    for i in chosen:
        if math.isfinite(values[i]):
            moves.append(f"{pen}{x(steps[i]):.1f} {y(values[i]):.1f}")
            pen = "L"
        else:
            pen = "M"
    return "".join(moves)


def _value_axes(low: float, high: float, y, perplexity: bool) -> str:
    parts = []
    for tick in ticks(low, high, about=5):
        height = f"{y(tick):.1f}"
        right = _short(math.exp(min(tick, 50.0))) if perplexity else ""
        parts.append(
            f'<path d="M{_LEFT} {height}H{_WIDTH - _RIGHT}" stroke="#808080" stroke-opacity=".22"/>'
            f'<text x="{_LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
            f'<text x="{_WIDTH - _RIGHT + 8}" y="{y(tick) + 4:.1f}">{right}</text>'
        )
    return "".join(parts)


def _step_axis(first: int, last: int, x, perplexity: bool) -> str:
    bottom = _HEIGHT - _BOTTOM
    labels = "".join(
        f'<text x="{x(tick):.1f}" y="{bottom + 17}" text-anchor="middle">{tick:,.0f}</text>'
        for tick in ticks(first, last, about=6)
        if tick == int(tick)
    )
    return (
        f'{labels}<text x="{_LEFT - 8}" y="{_HEIGHT - 5}" text-anchor="end">loss</text>'
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 5}" text-anchor="middle">step</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT - 5}" text-anchor="end">{"perplexity" if perplexity else ""}</text>'
    )


def ticks(low: float, high: float, *, about: int) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart) in [low, high], roughly `about` of them."""
    if not high > low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough)
    return [
        round(i * step, 10) for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    ]


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}" if value < 1e6 else f"{value:.0e}"
