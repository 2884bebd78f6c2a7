"""Live training curves: a curve that is redrawn in place, and occasional lines of text.

In JupyterLab the curve is an output that is replaced at most once a second; only the last picture, about 15
kB, is saved with the notebook. The lines of text are for `papermill --log-output` and other logs, and are not
printed where a user watches the curve. They appear every ten seconds at first and, after ten minutes,
whenever a sixtieth of the time so far has passed: a run of one day prints 360. Loss and perplexity share one
scale: a validation perplexity p is drawn at the height of ln p."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import pandas as pd

from cdlm_lab.encoders.variants import variant_name
from cdlm_lab.views import html
from cdlm_lab.views.html import GLOBAL, MASKED, div
from cdlm_lab.views.still_figure import figure_svg, ticks

POINTS = 220  # most points per line
_SMOOTHED = "training loss, smoothed"

Points = Sequence[tuple[float, float]]  # (optimiser step, value), in ascending order of steps


def smoothed(values: Sequence[float]) -> np.ndarray:
    """Return the exponential moving average, without bias at the start. The span is a sixtieth of the number
    of values, but at least 4 and at most 100; NaN and infinity are ignored.

    `average_t = sum_i (1 - 1/span)^(t - i) value_i / sum_i (1 - 1/span)^(t - i)` over the finite values i <=
    t."""
    numbers = np.asarray(values, dtype=float)
    finite = pd.Series(np.where(np.isfinite(numbers), numbers, np.nan))
    span = min(max(len(numbers) / 60, 4.0), 100.0)
    return finite.ewm(alpha=1 / span, ignore_na=True).mean().to_numpy()


def thinned(count: int) -> list[int]:
    """Return the indices of at most POINTS of `count` points, evenly spaced, including first and last."""
    return sorted({round(i) for i in np.linspace(0, count - 1, min(count, POINTS)).tolist()})


def curve_svg(
    losses: Points,
    perplexities: Points,
    *,
    total_steps: float | None = None,
    perplexity: bool = True,
    chance: float | None = None,
) -> str:
    """Draw training loss in nats (faint: as reported; strong: smoothed) and validation perplexity against
    optimiser steps, up to `total_steps` if known. `perplexity`: False = without the perplexities beside the
    losses, for tasks in which they have no meaning. `chance`: the loss of guessing, as a dashed line."""
    steps, reported = np.array(losses, dtype=float).reshape(-1, 2).T
    eval_steps, validated = np.array(perplexities, dtype=float).reshape(-1, 2).T
    average = smoothed(reported)
    heights = np.array([math.log(p) if 0 < p < math.inf else math.nan for p in validated])
    drawn = [value for value in (*average, *heights, chance) if value is not None and math.isfinite(value)]
    low, high = (min(drawn), max(drawn)) if drawn else (0.0, 1.0)
    margin = max(0.08 * (high - low), 0.05)
    low, high = low - margin, high + margin
    last = max([1, total_steps or 0, *steps[-1:], *eval_steps[-1:]])
    first = min([*steps[:1], *eval_steps[:1], last])
    if first < 0.2 * last or first == last:  # a resumed run is not squeezed into the right-hand end
        first = 0
    seen = thinned(len(steps))
    reported = np.clip(np.where(np.isfinite(reported), reported, np.nan), low, high)
    validation = {"mode": "lines+markers", "marker": {"color": GLOBAL, "size": 8.4}}
    validation["name"] = "validation perplexity" if perplexity else "validation loss"
    traces = [
        _line(steps[seen], reported[seen], f"{MASKED}52", 1),
        _line(steps[seen], average[seen], MASKED, 6 if len(steps) == 1 else 2.2) | {"name": _SMOOTHED},
        _line(eval_steps, heights, f"{GLOBAL}99", 1.4) | validation,
    ]
    axis = _loss_axis(low, high, perplexity=perplexity)
    layout = {"xaxis": {"range": [first, last], "title": {"text": "step"}, "showgrid": False}, "yaxis": axis}
    layout |= {"width": 860, "height": 300, "margin": {"r": 24, "t": 32, "b": 46}}
    layout["margin"]["l"] = 104 if perplexity else 54
    return figure_svg({"data": traces, "layout": layout | _guessing(chance)})


def _line(steps: np.ndarray, values: np.ndarray, colour: str, width: float) -> dict[str, Any]:
    """A line of plotly, interrupted where a value is not finite."""
    heights = [value if math.isfinite(value) else None for value in values.tolist()]
    return {"x": steps.tolist(), "y": heights, "mode": "lines", "line": {"color": colour, "width": width}}


def _loss_axis(low: float, high: float, *, perplexity: bool) -> dict[str, Any]:
    """The axis of losses, with perplexities in parentheses."""
    places = ticks(low, high, about=5)
    beside = [math.exp(min(place, 50.0)) for place in places]
    words = [f"{p:.3g}" if p < 1000 else f"{p:,.0f}" if p < 1e6 else f"{p:.0e}" for p in beside]
    texts = [
        f"{place:g} ({p})" if perplexity else f"{place:g}" for place, p in zip(places, words, strict=True)
    ]
    title = "loss (perplexity)" if perplexity else "loss"
    return {"range": [low, high], "tickvals": places, "ticktext": texts, "title": {"text": title}}


def _guessing(chance: float | None) -> dict[str, Any]:
    """The loss of guessing as a dashed line with its value."""
    if chance is None:
        return {}
    place = {"xref": "paper", "yref": "y"}
    line = {"type": "line", "x0": 0, "x1": 1, "y0": chance, "y1": chance, "line": {"dash": "dash"}} | place
    note = {"text": f"guessing: {chance:.2f}", "x": 1, "y": chance, "yanchor": "bottom"} | place
    return {"shapes": [line], "annotations": [note]}


Measure = Literal["perplexity", "loss"]
REDRAW_SECONDS = 1.0  # least time between two pictures
TEXT_SECONDS = 10.0  # least time between two lines of text
RECENT = 50  # number of last records that the speed is computed from
_KEYS = ("step", "loss", "learning_rate", "eval_perplexity", "seconds", "total_steps")


class LiveCurve:
    """Live curve of one training run: call it with each record of the run. As a context manager, it shows the
    last state at the end, even after an error.

    A record is a mapping with the keys `step` (number of optimiser updates), `loss` (mean over masked tokens,
    in nats), `learning_rate`, `eval_perplexity`, `seconds` (since the run began) and `total_steps`. All but
    `step` may be missing or None; other keys are ignored.

    Args:
        measure: how validation is reported: `perplexity`, or `loss` (its logarithm) for tasks in which
            perplexity has no meaning.
        chance: the loss of a model that guesses, in nats, such as ln 2 for yes or no; None = not drawn.
        write: called with each line of text; None = print it, but not below a curve in JupyterLab.
        show: called with the HTML of each picture; None = show it as the notebook's output, if there is one.
    """

    def __init__(
        self,
        *,
        title: str = "",
        measure: Measure = "perplexity",
        chance: float | None = None,
        write: Callable[[str], None] | None = None,
        show: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.title, self.measure, self.chance = title, measure, chance
        self.records: list[dict[str, float | None]] = []  # with the keys of `_KEYS`; `seconds` is never None
        self._write = write or _print_unwatched
        self._show, self._clock = show or ReplacedOutput(), clock
        self._began = clock()
        self._drawn = self._written = -math.inf
        self._unwritten = False  # True = a record came after the last line of text

    def __call__(self, record: Mapping[str, object]) -> None:
        """Add one record; redraw the curve and write a line of text if it is time to."""
        values = self.remember(record)
        now = self._clock()
        self._unwritten = True
        if now - self._drawn >= REDRAW_SECONDS:
            self._drawn = now
            self._show(self.html(final=False))
        quiet = max(TEXT_SECONDS, (now - self._began) / 60)
        if now - self._written >= quiet or values["eval_perplexity"] is not None:
            self._written, self._unwritten = now, False
            self._write(self.line())

    def __enter__(self) -> LiveCurve:
        return self

    def __exit__(self, *error: object) -> None:
        """Show and write the last state, if any. This final picture is an image, which notebooks keep even if
        they are not trusted."""
        if self.is_empty:
            return
        self._show(self.html())
        if self._unwritten:
            self._unwritten = False
            self._write(self.line())

    def remember(self, record: Mapping[str, object]) -> dict[str, float | None]:
        """Add one record without showing it; return its values."""
        values: dict[str, Any] = {key: record.get(key) for key in _KEYS}
        if values["seconds"] is None:
            values["seconds"] = self._clock() - self._began
        self.records.append(values)
        return values

    def known(self, key: str) -> list[tuple[float, float]]:
        """Return (step, value) of all records that have a value for `key`."""
        return [(record["step"], record[key]) for record in self.records if record[key] is not None]

    def last(self, key: str) -> float | None:
        """Return the last known value of `key`; None = no record has one."""
        return next((record[key] for record in reversed(self.records) if record[key] is not None), None)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return all(self.last(key) is None for key in ("loss", "eval_perplexity", "total_steps"))

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds until the end, from the speed of the last records; None while it is not known."""
        total, recent = self.last("total_steps"), self.records[-RECENT - 1 :]
        if not total or len(recent) < 2:
            return None
        steps, seconds = (recent[-1][key] - recent[0][key] for key in ("step", "seconds"))
        if steps <= 0 or seconds <= 0:
            return None
        return max(total - recent[-1]["step"], 0) * seconds / steps

    def facts(self) -> list[tuple[str, str]]:
        """Return (name, value) pairs of the current state: step, losses, learning rate, time."""
        total, step, seconds = (self.last(key) or 0 for key in ("total_steps", "step", "seconds"))
        rows = [("step", f"{step:,.0f}" + (f" of {total:,.0f} ({step / total:.0%})" if total else ""))]
        if losses := [loss for _, loss in self.known("loss")]:
            last = losses[-1]
            loss = f"{smoothed(losses)[-1]:.3f}" if math.isfinite(last) else f"{last:g}, not a number"
            rows.append(("training loss", loss))
        if validated := [perplexity for _, perplexity in self.known("eval_perplexity")]:
            in_perplexity = self.measure == "perplexity"
            perplexities = min(validated), validated[-1]
            best, now = (f"{p:.2f}" if in_perplexity else f"{math.log(p):.3f}" for p in perplexities)
            rows.append((f"validation {self.measure}", now + (f" (best {best})" if best != now else "")))
        if (learning_rate := self.last("learning_rate")) is not None:
            rows.append(("learning rate", f"{learning_rate:.1e}"))
        rows.append(("so far", html.seconds_in_words(seconds)))
        if left := self.seconds_left:
            rows.append(("left", html.seconds_in_words(left)))
        return rows

    def line(self) -> str:
        """Return the current state as one line of text."""
        return " | ".join(f"{name} {value}" for name, value in self.facts())

    def html(self, *, final: bool = True) -> str:
        """Return the current state and the curve as HTML. During a run the SVG is inline, so that it does not
        flicker; the final one is an image, which notebooks keep even if they are not trusted."""
        form = {"total_steps": self.last("total_steps"), "perplexity": self.measure == "perplexity"}
        form |= {"chance": self.chance}
        picture = curve_svg(self.known("loss"), self.known("eval_perplexity"), **form)
        if final:
            whose = f" of {self.title}" if self.title else ""
            words = f"The training loss and the validation {self.measure}{whose} by step. {self.line()}"
            picture = html.image_from_svg(picture, description=words)
        title = f"<bdi>{html.escaped(self.title)}</bdi>" if self.title else ""
        parts = [
            div(title, "font-size:15px;font-weight:600"),
            div("".join(html.tile(name, value) for name, value in self.facts()), "margin:4px 0 6px"),
            picture,
        ]
        return f'<div class="cdlm-curve" style="max-width:900px">{"".join(parts)}</div>'

    def _repr_html_(self) -> str:
        return self.html()


class LiveCurves:
    """Live curves of several training runs, one after the other, in one output: the current one is shown
    below the previous ones, each of which is folded into one line. `measure`: how validation is reported;
    `write`, `show`: called with lines of text and with pictures; None = into the log and the notebook."""

    def __init__(
        self,
        *,
        measure: Measure = "loss",
        write: Callable[[str], None] | None = None,
        show: Callable[[str], None] | None = None,
    ) -> None:
        self.measure, self._write, self._show_all = measure, write, show or ReplacedOutput()
        self._before: list[str] = []
        self._last = ("", "")  # the last curve folded and unfolded, as HTML

    @contextmanager
    def __call__(self, name: str) -> Iterator[LiveCurve]:
        """Context that draws the curve of one training run; variants of CDLM get their name in the paper."""
        curve = self._begin(name, write=self._write)
        with curve:
            yield curve
        self._ended(curve)

    def add(self, name: str, records: Iterable[Mapping[str, object]]) -> None:
        """Show the records of a training run that has already ended."""
        curve = self._begin(name, write=lambda text: None)
        for record in records:
            curve.remember(record)
        self._ended(curve)
        self._show("")

    def _begin(self, name: str, *, write: Callable[[str], None] | None) -> LiveCurve:
        title = variant_name(name)
        return LiveCurve(title=title, measure=self.measure, write=write, show=self._show)

    def _show(self, text: str) -> None:
        line, whole = self._last
        folded = [*self._before, *([line] if text and line else [])]
        self._show_all("".join(folded) + (text or whole))

    def _ended(self, curve: LiveCurve) -> None:
        if curve.is_empty:
            return
        self._before += [self._last[0]] if self._last[0] else []
        summary = f"{html.name_html(curve.title)}: {html.escaped(curve.line())}"
        self._last = html.fold(summary, curve.html()), curve.html()


def in_notebook() -> bool:
    """Return whether this code runs in a Jupyter kernel, whose outputs are shown or saved."""
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


def _print_unwatched(text: str) -> None:
    """Print for logs, but not in kernels of JupyterLab, which set this variable: there the curve is seen."""
    if not (in_notebook() and "JPY_SESSION_NAME" in os.environ):
        print(text, flush=True)


def _with_text(markup: str) -> dict[str, str]:
    """Return a MIME bundle with the HTML and, for logs, its text."""
    return {"text/html": markup, "text/plain": " ".join(html.lines_of(markup))}


class ReplacedOutput:
    """Shows HTML in the running notebook, each time replacing the last; outside notebooks it does nothing."""

    def __init__(self) -> None:
        self._output = None

    def __call__(self, text: str) -> None:
        """Show HTML in place of what was shown before."""
        from IPython.display import display

        if not in_notebook():
            return
        if self._output is None:
            self._output = display(_with_text(text), raw=True, display_id=True)
        else:
            self._output.update(_with_text(text), raw=True)


def guessing(labels: Iterable[Any]) -> float:
    """The loss in nats, a label, of always guessing each label by its share: yes, no, no, no -> 0.56."""
    shares = pd.Series(list(labels)).value_counts(normalize=True)
    return float(-(shares * np.log(shares)).sum())


def training_button(train: Callable[..., None], run: Any, **curve: Any) -> None:
    """Show a button that trains with `train(run, on_log=...)` while a curve below it is drawn. Nothing is
    trained unattended; what fails is a line in place of the curve. `curve`: as for `LiveCurve`."""
    from IPython.display import display
    from ipywidgets import Button, Layout

    button = Button(description="Train for a few updates", icon="play", layout=Layout(width="auto"))
    show = ReplacedOutput()

    def start(_: Button) -> None:
        button.disabled, nothing = True, "Nothing to train: this run has trained models of its own."
        try:
            with LiveCurve(**curve, show=show) as drawn:
                train(run, on_log=drawn)
            if drawn.is_empty:
                show(html.muted(nothing))
        except (ValueError, RuntimeError, OSError) as error:
            show(html.muted(html.escaped(str(error))))
        finally:
            button.disabled = False

    button.on_click(start)
    display(button)
    show(html.muted("Nothing has been trained here: click the button."))
