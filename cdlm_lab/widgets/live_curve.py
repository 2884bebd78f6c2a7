"""A training run to watch: a curve that redraws itself in its place, and a line of text now and then.

In JupyterLab the curve is an output that is replaced at most once a second; what is saved with the notebook
is the last picture alone, about 15 kB. The lines of text are for `papermill --log-output` and for logs. They
come every ten seconds at first and, after ten minutes, whenever a sixtieth of the time so far has passed: a
run of a day leaves 360. Loss and perplexity share one scale, a validation perplexity p being drawn at the
height of ln p."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, get_args

import numpy as np

from cdlm_lab.widgets.html import (
    FONT,
    GLOBAL,
    MASKED,
    MUTED,
    TEXT,
    count_in_words,
    escaped,
    image_from_svg,
    seconds_in_words,
)

POINTS = 220  # most points a line is drawn with
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 860, 300, 54, 58, 12, 40


@dataclass(kw_only=True, slots=True)
class RunHistory:
    """What a run has reported so far; each list grows at its end, steps ascending."""

    # steps, losses: optimiser step and training loss (nats per masked token) of each report.
    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    # eval_steps, eval_perplexities: the same for each validation.
    eval_steps: list[int] = field(default_factory=list)
    eval_perplexities: list[float] = field(default_factory=list)
    total_steps: int | None = None  # length of the whole run, if known


def smoothed(values: Sequence[float], *, span: float | None = None) -> np.ndarray:
    """The exponential moving average over about `span` values, unbiased at the start; NaN and infinity are
    passed over.

    `average_t = sum_i (1 - 1/span)^(t - i) value_i / sum_i (1 - 1/span)^(t - i)` over the finite values i <=
    t. None = a span of a sixtieth of the values, at least 4 and at most 100."""
    span = min(max(len(values) / 60, 4.0), 100.0) if span is None else span
    if span < 1:
        raise ValueError(f"span must be at least 1, got {span}")
    decay, total, weight = 1 - 1 / span, 0.0, 0.0
    averages = np.full(len(values), np.nan)
    for i, value in enumerate(values):
        if math.isfinite(value):
            total, weight = decay * total + value, decay * weight + 1
        if weight:
            averages[i] = total / weight
    return averages


def thinned(count: int) -> list[int]:
    """Numbers of at most POINTS of `count` points, evenly spaced, first and last among them."""
    return sorted({round(i) for i in np.linspace(0, count - 1, min(count, POINTS)).tolist()})


def ticks(low: float, high: float, *, about: int) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart) in [low, high], roughly `about` of them."""
    if not high > low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def curve_svg(history: RunHistory, *, perplexity: bool = True) -> str:
    """Training loss (faint: as reported; strong: smoothed) and validation perplexity over optimiser steps.

    `perplexity`: False = the axis of losses alone, for tasks in which perplexity means nothing.
    """
    average = smoothed(history.losses)
    heights = np.array([math.log(p) if 0 < p < math.inf else math.nan for p in history.eval_perplexities])
    drawn = [value for value in (*average, *heights) if math.isfinite(value)]
    low, high = (min(drawn), max(drawn)) if drawn else (0.0, 1.0)
    margin = max(0.08 * (high - low), 0.05)
    low, high = low - margin, high + margin
    last = max([1, history.total_steps or 0, *history.steps[-1:], *history.eval_steps[-1:]])
    first = min([*history.steps[:1], *history.eval_steps[:1], last])
    first = 0 if first < 0.2 * last else first  # a resumed run is not squeezed into the right-hand end

    def x(step: float) -> float:
        return _LEFT + (step - first) / max(last - first, 1) * (_WIDTH - _LEFT - _RIGHT)

    def y(loss: float) -> float:
        return _TOP + (high - loss) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    def line(steps: Sequence[int], values: np.ndarray, style: str) -> str:
        """A path that is broken where a value is not finite."""
        moves, pen = [], "M"
        for i in thinned(len(steps)):
            finite = math.isfinite(values[i])
            moves += [f"{pen}{x(steps[i]):.1f} {y(values[i]):.1f}"] if finite else []
            pen = "L" if finite else "M"
        return f'<path d="{"".join(moves)}" fill="none" {style}/>'

    reported = np.asarray(history.losses, dtype=float)
    reported = np.clip(np.where(np.isfinite(reported), reported, np.nan), low, high)
    dots = "".join(
        f'<circle cx="{x(step):.1f}" cy="{y(value):.1f}" r="4.2" fill="{GLOBAL}"/>'
        for step, value in zip(history.eval_steps, heights, strict=True)
        if math.isfinite(value)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="{FONT}" '
        f'font-size="12" fill="{TEXT}">{_value_axes(low, high, y, perplexity)}'
        + _step_axis(first, last, x, perplexity)
        + line(history.steps, reported, f'stroke="{MASKED}" stroke-opacity=".32"')
        + line(history.steps, average, f'stroke="{MASKED}" stroke-width="2.2" stroke-linejoin="round"')
        + line(history.eval_steps, heights, f'stroke="{GLOBAL}" stroke-width="1.4" stroke-opacity=".6"')
        + f"{dots}</svg>"
    )


def _value_axes(low: float, high: float, y: Callable[[float], float], perplexity: bool) -> str:
    def short(value: float) -> str:
        return f"{value:.3g}" if value < 1000 else f"{value:,.0f}" if value < 1e6 else f"{value:.0e}"

    return "".join(
        f'<path d="M{_LEFT} {y(tick):.1f}H{_WIDTH - _RIGHT}" stroke="#808080" stroke-opacity=".22"/>'
        f'<text x="{_LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        f'<text x="{_WIDTH - _RIGHT + 8}" y="{y(tick) + 4:.1f}">'
        f"{short(math.exp(min(tick, 50.0))) if perplexity else ''}</text>"
        for tick in ticks(low, high, about=5)
    )


def _step_axis(first: int, last: int, x: Callable[[float], float], perplexity: bool) -> str:
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


Measure = Literal["perplexity", "loss"]
RECENT = 50  # reports from which the speed is taken
_KEYS = ("step", "loss", "learning_rate", "eval_perplexity", "seconds", "total_steps")


class LiveCurve:
    """Call it with each record of a run; use it as a context manager so that the last picture stays whatever
    happens.

    A record is a mapping. Keys that count, all but `step` optional and None where nothing is known: `step`
    (optimiser updates done), `loss` (mean over masked tokens, nats), `learning_rate`, `eval_perplexity`,
    `seconds` (since the run began), `total_steps`. Other keys are passed over.

    Args:
        title: shown above the curve (untrusted text).
        measure: what validation is shown as, `perplexity`, or `loss` (its logarithm) for tasks in which
            perplexity means nothing.
        redraw_seconds: least time between two pictures.
        text_seconds: least time between two lines of text; 0 = a line for each record.
        write: where lines of text go; None = they are printed.
        show: called with the HTML of each picture. None = the notebook's output is made and then replaced;
            outside a notebook nothing is shown.
        clock: a clock in seconds.
    """

    def __init__(
        self,
        *,
        title: str = "",
        measure: Measure = "perplexity",
        redraw_seconds: float = 1.0,
        text_seconds: float = 10.0,
        write: Callable[[str], None] | None = None,
        show: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if measure not in get_args(Measure):
            raise ValueError(f"measure is {measure!r}; choose perplexity or loss")
        self.title, self.measure = title, measure
        self.redraw_seconds, self.text_seconds = redraw_seconds, text_seconds
        self.history = RunHistory()
        self._write = write or (lambda text: print(text, flush=True))
        self._show = show or ReplacedOutput()
        self._clock = clock
        self._began = clock()
        self._drawn = self._written = -math.inf
        self._unwritten = False  # True = something was reported since the last line of text
        self._times: list[tuple[int, float]] = []
        self._learning_rate: float | None = None

    def __call__(self, record: Mapping[str, object]) -> None:
        """Take in one record; redraw and write when it is time."""
        values = {key: _number(record, key) for key in _KEYS}
        self._remember(values)
        now = self._clock()
        self._unwritten = True
        if now - self._drawn >= self.redraw_seconds:
            self._draw(final=False)
        quiet = max(self.text_seconds, (now - self._began) / 60) if self.text_seconds else 0.0
        if now - self._written >= quiet or values["eval_perplexity"] is not None:
            self._written = now
            self._write_line()

    def close(self) -> None:
        """Draw and write the last state; the picture then also survives in a notebook that is not trusted."""
        self._draw(final=True)
        if self._unwritten:
            self._write_line()

    def __enter__(self) -> LiveCurve:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _remember(self, values: Mapping[str, float | None]) -> None:
        if values["step"] is None:
            raise ValueError(
                "a record of training needs the key 'step', the number of optimiser updates done"
            )
        step, history = int(values["step"]), self.history
        last = max([*history.steps[-1:], *history.eval_steps[-1:], step])
        if step < last:
            raise ValueError(f"step {step} comes after step {last}: begin a new LiveCurve for a new run")
        if values["loss"] is not None:
            history.steps.append(step)
            history.losses.append(values["loss"])
        if values["eval_perplexity"] is not None:
            history.eval_steps.append(step)
            history.eval_perplexities.append(values["eval_perplexity"])
        if values["total_steps"] is not None:
            history.total_steps = int(values["total_steps"])
        if values["learning_rate"] is not None:
            self._learning_rate = values["learning_rate"]
        seconds = values["seconds"] if values["seconds"] is not None else self._clock() - self._began
        self._times = [*self._times[-RECENT:], (step, seconds)]

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the end at the speed of the last reports; None while that is not known."""
        if not self.history.total_steps or len(self._times) < 2:
            return None
        (first_step, first), (step, seconds) = self._times[0], self._times[-1]
        if step <= first_step or seconds <= first:
            return None
        return max(self.history.total_steps - step, 0) * (seconds - first) / (step - first_step)

    def facts(self) -> list[tuple[str, str]]:
        """(name, value) of what is worth reading now: step, loss, perplexity, learning rate, time."""
        history, total = self.history, self.history.total_steps
        step, seconds = self._times[-1] if self._times else (0, 0.0)
        of_total = f" of {count_in_words(total)} ({step / total:.0%})" if total else ""
        rows = [("step", count_in_words(step) + of_total)]
        if history.losses:
            last = history.losses[-1]
            loss = f"{smoothed(history.losses)[-1]:.3f}" if math.isfinite(last) else f"{last:g}, not a number"
            rows.append(("training loss", loss))
        if history.eval_perplexities:
            perplexities = min(history.eval_perplexities), history.eval_perplexities[-1]
            in_perplexity = self.measure == "perplexity"
            best, now = (f"{p:.2f}" if in_perplexity else f"{math.log(p):.3f}" for p in perplexities)
            rows.append((f"validation {self.measure}", now + (f" (best {best})" if best != now else "")))
        if self._learning_rate is not None:
            rows.append(("learning rate", f"{self._learning_rate:.1e}"))
        rows.append(("so far", seconds_in_words(seconds)))
        if (left := self.seconds_left) is not None:
            rows.append(("left", seconds_in_words(left)))
        return rows

    def line(self) -> str:
        """The facts as one line of text."""
        return " | ".join(f"{name} {value}" for name, value in self.facts())

    def html(self, *, final: bool = True) -> str:
        """The facts and the curve as HTML. While a run goes on the picture is inline, so that it does not
        flicker; the final one is an image, which notebooks keep even where they are not trusted."""
        picture = curve_svg(self.history, perplexity=self.measure == "perplexity")
        if final:
            words = f"The training loss and the validation {self.measure} by step. {self.line()}"
            picture = image_from_svg(picture, description=words)
        title = f'<div style="font-size:15px;font-weight:600"><bdi>{escaped(self.title)}</bdi></div>'
        tiles = "".join(
            '<div style="display:inline-block;margin:4px 28px 6px 0">'
            f'<div style="font-size:12px;{MUTED}">{name}</div>'
            f'<div style="font-size:16px;font-weight:600">{value}</div></div>'
            for name, value in self.facts()
        )
        key = (
            f'<span style="color:{MASKED}">\u2501\u2501</span> training loss, smoothed &emsp;'
            f'<span style="color:{GLOBAL}">\u25cf</span> validation {self.measure}'
        )
        return (
            f'<div class="cdlm-curve" style="max-width:900px">{title if self.title else ""}<div>{tiles}</div>'
            f'<div style="font-size:12.5px;margin:2px 0 8px">{key}</div>{picture}</div>'
        )

    def _repr_html_(self) -> str:
        return self.html()

    def _write_line(self) -> None:
        self._unwritten = False
        self._write(self.line())

    def _draw(self, *, final: bool) -> None:
        self._drawn = self._clock()
        self._show(self.html(final=final))


def _number(record: Mapping[str, object], key: str) -> float | None:
    value = record.get(key)
    if value is None:
        return None
    try:
        if isinstance(value, bool | str):
            raise TypeError
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{key} must be a number, got {value!r}") from None


class ReplacedOutput:
    """Shows HTML in the running notebook, each time in place of the last; outside a notebook it shows
    nothing."""

    def __init__(self) -> None:
        self._output = None

    def __call__(self, html: str) -> None:
        from IPython import get_ipython
        from IPython.display import HTML, display

        shell = get_ipython()
        if shell is None or not hasattr(shell, "kernel"):
            return
        if self._output is None:
            self._output = display(HTML(html), display_id=True)
        else:
            self._output.update(HTML(html))
