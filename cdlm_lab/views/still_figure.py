"""A plotly figure as plain SVG, beside the interactive one in a notebook's output: for pages that `jupyter
nbconvert` makes, for GitHub, and wherever no script runs.

It draws what the figures of this project consist of: lines, markers, texts, areas, error bars, bars, boxes
and heat maps on linear, logarithmic and category axes, with legend, annotations and shapes. Text and grid are
middle greys on a transparent ground, as in the interactive figures, for light and dark pages."""

from __future__ import annotations

import base64
import html as markup
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from cdlm_lab.views.html import FONT, RULE, TEXT, image_from_svg

WIDTH, HEIGHT = 960, 420  # pixels of a figure that sets none
MARGIN = {"l": 64, "r": 44, "t": 72, "b": 56}
CHARACTER = 6.4  # mean width of a character, in pixels at a font size of 13
BANDS = 20  # of a colour bar
DASHES = {"dash": "9 4", "dot": "2 3", "dashdot": "9 3 2 3"}
# Outlines of markers within a square from -1 to 1.
SYMBOLS = {
    "square": "M-.8-.8H.8V.8H-.8Z",
    "diamond": "M0-1.1L1.1 0 0 1.1-1.1 0Z",
    "cross": "M-.35-1H.35V-.35H1V.35H.35V1H-.35V.35H-1V-.35H-.35Z",
    "x": "M-.9-.5L-.5-.9 0-.4 .5-.9 .9-.5 .4 0 .9 .5 .5 .9 0 .4-.5 .9-.9 .5-.4 0Z",
    "star": "M0-1.2L.35-.4 1.2-.35 .55.2.75 1 0 .55-.75 1-.55.2-1.2-.35-.35-.4Z",
    "triangle-up": "M0-1L1 .8H-1Z",
    "triangle-down": "M0 1L1-.8H-1Z",
    "x-thin": "M-1-1L1 1M-1 1L1-1",
    "line-ns-open": "M0-1.2V1.2",
}
Record = Mapping[str, Any]


def figure_svg(figure: Record) -> str:
    """Draw a figure of this project, given as the dictionary that plotly makes of it."""
    return _Picture(figure).svg()


def figure_image(figure: Record) -> str:
    """Draw a figure as an HTML image, which untrusted notebooks keep; its title, what it compares and the
    values that it writes are the image's text."""
    title = ((figure["layout"].get("title") or {}).get("text")) or "figure"
    axis = figure["layout"].get("yaxis") or {}
    rows = dict(zip(_values(axis.get("tickvals")), _values(axis.get("ticktext")), strict=False))
    traces = dict.fromkeys(_in_words(trace, rows) for trace in figure["data"])
    words = [words for text in (title, *filter(None, traces)) for words, _, _ in _lines(text)]
    return image_from_svg(figure_svg(figure), description="; ".join(words))


def _in_words(trace: Record, rows: Mapping[float, str]) -> str:
    """The name of a trace, and the values that it writes beside its points, with the names of their rows."""
    at = _values(trace.get("y"))
    texts = _each(trace.get("text"), "", len(at)) if "text" in trace.get("mode", "") else [""] * len(at)
    pairs = [(rows.get(y, y), str(text).strip()) for y, text in zip(at, texts, strict=True) if text]
    values = ", ".join(f"{row} {text}" if isinstance(row, str) else text for row, text in pairs)
    return ": ".join(filter(None, (trace.get("name"), values)))


def is_of_this_project(figure: Record) -> bool:
    """Whether a figure has the look of this project, so that `figure_svg` knows all that it consists of."""
    look = (figure.get("layout", {}).get("template") or {}).get("layout") or {}
    return (look.get("font") or {}).get("family") == FONT


def _values(value: Any) -> list[Any]:
    """A list of plotly, which may be written as base64 of an array."""
    if isinstance(value, Mapping):
        array = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"])
        return array.reshape([int(n) for n in str(value.get("shape", -1)).split(",")]).tolist()
    return [] if value is None else np.asarray(value, dtype=object).tolist()


def _lines(text: str) -> list[tuple[str, float, str]]:
    """The lines of a text in plotly's markup: each its words, font size (0 = as around it) and weight."""
    lines = []
    for line in re.split(r"<br\s*/?>", text):
        size = re.search(r"font-size:\s*([\d.]+)px", line)
        weight = "bold" if "<b>" in line else "normal"
        words = markup.unescape(re.sub(r"<[^>]*>", "", line))
        lines.append((words, float(size[1]) if size else 0.0, weight))
    return lines


def ticks(low: float, high: float, *, about: int) -> list[float]:
    """Return roughly `about` round numbers in [low, high], 1, 2 or 5 times a power of ten apart."""
    if not high > low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


class _Axis:
    """One axis: its place in the picture, its range, and how values become coordinates."""

    def __init__(
        self, name: str, layout: Record, start: float, end: float, values: Sequence[Any], *, bars: bool
    ) -> None:
        given, self.bars = layout.get(name, {}), bars  # whether bars lie along it
        self.given, self.vertical = given, name.startswith("y")
        low, high = given.get("domain", (0, 1))
        self.start, self.end = start + low * (end - start), start + high * (end - start)
        named = [value for value in values if isinstance(value, str)]
        self.names = list(dict.fromkeys([*_values(given.get("categoryarray")), *named])) if named else []
        self.logarithmic = given.get("type") == "log"
        self.low, self.high = given.get("range") or self._range(values)

    def _range(self, values: Sequence[Any]) -> tuple[float, float]:
        if self.names:
            return -0.5, len(self.names) - 0.5
        numbers = [self._number(value) for value in values if value is not None]
        numbers = [number for number in numbers if math.isfinite(number)] or [0.0, 1.0]
        low, high = min(numbers), max(numbers)
        room = 0.05 * (high - low) or 0.5
        to_zero = self.given.get("rangemode") == "tozero" or (self.bars and low == 0)
        return (0 if to_zero else low - room), high + room

    def _number(self, value: Any) -> float:
        number = float(self.names.index(value) if isinstance(value, str) else value)
        return math.log10(number) if self.logarithmic and number > 0 else number

    def at(self, value: Any) -> float:
        """The coordinate of a value."""
        part = (self._number(value) - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Coordinate and text of each tick."""
        given = self.given.get("tickvals")
        if given is not None:
            places = _values(given)
            texts = _values(self.given.get("ticktext")) or [f"{place:,g}" for place in places]
        elif self.names:
            places = texts = self.names
        else:
            low, high = sorted((self.low, self.high))
            places = ticks(low, high, about=6)
            places = [10**place for place in places] if self.logarithmic else places
            texts = [f"{place:,g}".replace("-", "\u2212") for place in places]
        within = sorted((self.start, self.end))
        every = ((self.at(place), str(text)) for place, text in zip(places, texts, strict=True))
        return [(place, text) for place, text in every if within[0] - 1 <= place <= within[1] + 1]


class _Picture:
    """The parts of a picture, drawn one after the other."""

    def __init__(self, figure: Record) -> None:
        self.traces, self.layout = figure["data"], figure["layout"]
        self.width, self.height = self.layout.get("width") or WIDTH, self.layout.get("height") or HEIGHT
        margin = MARGIN | dict(self.layout.get("margin") or {})
        self.left, self.right = self._room(margin["l"]), self.width - self._right(margin["r"])
        self.top, self.bottom = margin["t"], self.height - margin["b"]
        names = {"xaxis", "yaxis"} | {name for name in self.layout if re.fullmatch(r"[xy]axis\d*", name)}
        self.empty: set[str] = set()  # axes without a trace
        self.axes = {name: self._axis(name) for name in sorted(names)}
        self.parts: list[str] = []

    def svg(self) -> str:
        """The whole picture."""
        title = (self.layout.get("title") or {}).get("text") or ""
        for shape in self.layout.get("shapes") or ():
            self._shape(shape)
        for name, axis in self.axes.items():
            if name not in self.empty and axis.given.get("visible") is not False:
                self._draw_axis(name, axis)
        for trace in self.traces:
            self._trace(trace)
        self._legend()
        self._colour_bar()
        for note in self.layout.get("annotations") or ():
            self._annotation(note)
        self.text(self.left, 24, title, size=16)
        name = markup.escape(" ".join(words for words, _, _ in _lines(title)))
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" role="img" font-size="13" '
            f'viewBox="0 0 {self.width:g} {self.height:g}" width="{self.width:g}" font-family="{FONT}" '
            f'style="max-width:100%;height:auto" fill="{TEXT}">{f"<title>{name}</title>" if name else ""}'
            f"{''.join(self.parts)}</svg>"
        )

    def _room(self, margin: float) -> float:
        """Room on the left for the texts of the vertical axes, of which those with texts stand there."""
        axes = [axis for name, axis in self.layout.items() if re.fullmatch(r"yaxis\d*", name)]
        texts = [(str(text), axis) for axis in axes for text in _values(axis.get("ticktext"))]
        named = [value for trace in self.traces for value in _values(trace.get("y"))]
        texts += [(value, self.layout.get("yaxis", {})) for value in named if isinstance(value, str)]
        widths = [
            len(words) * CHARACTER * (axis.get("tickfont") or {}).get("size", 12) / 12
            for text, axis in texts
            for words, _, _ in _lines(text)
        ]
        return max(margin, 22 + max(widths, default=0))

    def _right(self, margin: float) -> float:
        return margin + (70 if self.layout.get("coloraxis") else 0)

    def _axis(self, name: str) -> _Axis:
        same = {name, f"{name[0]}axis{self.layout.get(name, {}).get('matches', ' ')[1:]}"}
        side = name[0]
        on = [trace for trace in self.traces if f"{side}axis{trace.get(f'{side}axis', side)[1:]}" in same]
        values = [value for trace in on for value in (*_places(trace, side), *_ends(trace, side))]
        self.empty |= set() if on else {name}
        ends = (self.left, self.right) if side == "x" else (self.bottom, self.top)
        return _Axis(name, self.layout, *ends, values, bars=any(_lies_along(trace, side) for trace in on))

    def draw(self, d: str, **style: Any) -> None:
        """Add a path; None values are left out, `_` in names stands for `-`."""
        style = {"fill": "none"} | {key.replace("_", "-"): value for key, value in style.items()}
        looks = " ".join(f'{key}="{value}"' for key, value in style.items() if value is not None)
        self.parts.append(f'<path d="{d}" {looks}/>')

    def text(
        self, x: float, y: float, text: str, *, anchor: str = "start", size: float = 13,
        colour: str | None = None, turned: bool = False,
    ) -> None:  # fmt: skip
        """Add a text in plotly's markup, whose first line is at y."""
        fill = f' fill="{colour}"' if colour else ""
        turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
        for words, own, weight in _lines(text):
            look = f'font-size="{own or size:g}"' + (' font-weight="600"' if weight == "bold" else "")
            where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
            self.parts.append(
                f"<text {where} {look}{fill}{turn}>{markup.escape(words)}</text>" if words else ""
            )
            y += 1.25 * (own or size)
        self.height = max(self.height, y - size + 4)  # as plotly, which makes room for a legend below

    def rectangle(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """Add a filled rectangle."""
        place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self.parts.append(f'<rect {place} fill="{colour}"/>')

    def _other(self, name: str) -> _Axis:
        anchor = self.axes[name].given.get("anchor", "y" if name[0] == "x" else "x")
        return self.axes.get(
            f"{anchor[0]}axis{anchor[1:]}", self.axes["yaxis" if name[0] == "x" else "xaxis"]
        )

    def _draw_axis(self, name: str, axis: _Axis) -> None:
        other, given = self._other(name), axis.given
        size = (given.get("tickfont") or {}).get("size", 12)
        edge = max(other.start, other.end) if not axis.vertical else min(other.start, other.end)
        for place, text in axis.ticks():
            line = f"M{other.start:.1f} {place:.1f}H{other.end:.1f}" if axis.vertical else None
            line = line or f"M{place:.1f} {other.start:.1f}V{other.end:.1f}"
            if given.get("showgrid") is not False:
                self.draw(line, stroke=RULE)
            if given.get("showticklabels") is not False and axis.vertical:
                higher = 0.625 * size * (len(_lines(text)) - 1)
                self.text(edge - 8, place + 4 - higher, text, anchor="end", size=size)
            elif given.get("showticklabels") is not False:
                self.text(place, edge + 18, text, anchor="middle", size=size)
        if given.get("zeroline") and axis.low <= 0 <= axis.high:
            zero = axis.at(0)
            line = f"M{other.start:.1f} {zero:.1f}H{other.end:.1f}" if axis.vertical else None
            self.draw(line or f"M{zero:.1f} {other.start:.1f}V{other.end:.1f}", stroke=TEXT)
        title, middle = (given.get("title") or {}).get("text"), (axis.start + axis.end) / 2
        if title and axis.vertical:
            longest = max((len(text) for _, text in axis.ticks()), default=0)
            self.text(edge - 20 - CHARACTER * longest, middle, title, anchor="middle", turned=True)
        elif title:
            lines = max((len(_lines(text)) for _, text in axis.ticks()), default=1)
            self.text(middle, edge + 26 + 14 * lines, title, anchor="middle")

    def _axes_of(self, trace: Record) -> tuple[_Axis, _Axis]:
        return tuple(self.axes[f"{side}axis{trace.get(f'{side}axis', side)[1:]}"] for side in "xy")

    def _trace(self, trace: Record) -> None:
        kind = trace.get("type", "scatter")
        if kind == "heatmap":
            self._heat_map(trace)
        elif kind == "bar":
            self._bars(trace)
        elif kind == "box":
            self._boxes(trace)
        else:
            self._scatter(trace)

    def _scatter(self, trace: Record) -> None:
        x, y = self._axes_of(trace)
        pairs = zip(_places(trace, "x"), _places(trace, "y"), strict=True)
        points = [None if None in pair else (x.at(pair[0]), y.at(pair[1])) for pair in pairs]
        mode, marker = trace.get("mode", "lines"), trace.get("marker") or {}
        line = trace.get("line") or {}
        if trace.get("fill") and (known := [point for point in points if point]):
            area = "L".join(f"{a:.1f} {b:.1f}" for a, b in known)
            if trace["fill"] == "tozeroy":
                area = f"{known[0][0]:.1f} {y.at(0):.1f}L{area}L{known[-1][0]:.1f} {y.at(0):.1f}"
            edge = {"stroke": line.get("color", TEXT), "stroke_width": line.get("width", 2)}
            self.draw(f"M{area}Z", fill=trace.get("fillcolor", RULE), **(edge if "lines" in mode else {}))
        elif "lines" in mode:
            dash = DASHES.get(line.get("dash", ""))
            style = {"stroke": line.get("color", TEXT), "stroke_width": line.get("width", 2)}
            cap = None if dash else "round"  # of which a single point is a dot
            self.draw(_path(points), **style, stroke_dasharray=dash, stroke_linecap=cap)
        self._errors(trace, points, x, y)
        colours, sizes, symbols = (
            _each(marker.get(key), usual, len(points))
            for key, usual in (("color", line.get("color", TEXT)), ("size", 7), ("symbol", "circle"))
        )
        if "markers" in mode:
            for point, colour, size, symbol in zip(points, colours, sizes, symbols, strict=True):
                if point:
                    self.marker(*point, colour, size, symbol)
        if "text" in mode:
            font = trace.get("textfont") or {}
            texts = _each(trace.get("text"), "", len(points))
            for point, text, place in zip(
                points, texts, _each(trace.get("textposition"), "middle center", len(points)), strict=True
            ):
                if point and text:
                    self._label(*point, str(text), place, font)

    def marker(self, x: float, y: float, colour: str, size: float, symbol: str) -> None:
        """Add a marker of `size` pixels."""
        outline, half = SYMBOLS.get(symbol, SYMBOLS.get(symbol.removesuffix("-open"))), size / 2
        is_open = symbol.endswith(("-open", "-thin"))
        if outline is None:
            paint = f'fill="none" stroke="{colour}" stroke-width="2"' if is_open else f'fill="{colour}"'
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{half:g}" {paint}/>')
            return
        lines = {"stroke": colour, "stroke_width": f"{2 / half:.2f}"}
        move = f"translate({x:.1f} {y:.1f}) scale({half:g})"
        self.draw(outline, transform=move, **(lines if is_open else {"fill": colour}))

    def _label(self, x: float, y: float, text: str, place: str, font: Record) -> None:
        height, _, side = place.partition(" ")
        anchor = {"right": "start", "left": "end"}.get(side, "middle")
        shift = {"right": 8, "left": -8}.get(side, 0)
        down = {"top": -10, "bottom": 20}.get(height, 4) - 16 * text.count("<br>") * (height == "top")
        colour = font.get("color") if isinstance(font.get("color"), str) else None
        self.text(x + shift, y + down, text, anchor=anchor, size=font.get("size", 12), colour=colour)

    def _errors(self, trace: Record, points: Sequence[Any], x: _Axis, y: _Axis) -> None:
        for side, axis in (("x", x), ("y", y)):
            bars = trace.get(f"error_{side}") or {}
            if bars.get("array") is None:
                continue
            above, middle = _values(bars["array"]), _places(trace, side)
            below = _values(bars.get("arrayminus")) or above
            style = {"stroke": bars.get("color", TEXT), "stroke_width": bars.get("thickness", 2)}
            for point, value, more, less in zip(points, middle, above, below, strict=True):
                if point is None or more is None or less is None:
                    continue
                low, high = axis.at(value - less), axis.at(value + more)
                across = f"M{low:.1f} {point[1]:.1f}H{high:.1f}"
                self.draw(across if side == "x" else f"M{point[0]:.1f} {low:.1f}V{high:.1f}", **style)

    def _bars(self, trace: Record) -> None:
        x, y = self._axes_of(trace)
        lying = trace.get("orientation") == "h"
        along, across = (x, y) if lying else (y, x)
        lengths, places = (_places(trace, side) for side in ("xy" if lying else "yx"))
        widths = _each(trace.get("width"), 0.8, len(places))
        colours = _each((trace.get("marker") or {}).get("color"), TEXT, len(places))
        bases = _each(trace.get("base"), 0, len(places))
        beside = [_slot(trace)]  # the slots at a place, one of them of these bars
        if self.layout.get("barmode") == "group":
            beside = [*dict.fromkeys(_slot(one) for one in self.traces if one.get("type") == "bar")]
        shift = beside.index(_slot(trace)) - (len(beside) - 1) / 2
        points = []
        for place, length, width, colour, base in zip(places, lengths, widths, colours, bases, strict=True):
            width /= len(beside)
            number = (across.names.index(place) if isinstance(place, str) else place) + shift * width
            edges = [across.at(number + side * width / 2) for side in (-1, 1)]
            ends = [along.at(base), along.at(base + (length or 0))]
            (left, right), (low, high) = (ends, edges) if lying else (edges, ends)
            self.draw(f"M{left:.1f} {low:.1f}H{right:.1f}V{high:.1f}H{left:.1f}Z", fill=colour)
            middle = across.at(number)
            points.append((ends[1], middle) if lying else (middle, ends[1]))
        self._errors(trace, points, x, y)

    def _boxes(self, trace: Record) -> None:
        x, y = self._axes_of(trace)
        names = ("lowerfence", "q1", "median", "q3", "upperfence")
        half = (trace.get("width") or 0.5) / 2
        style = {"stroke": (trace.get("line") or {}).get("color", TEXT), "stroke_width": 1.5}
        for place, *numbers in zip(
            _places(trace, "x"), *(_values(trace[name]) for name in names), strict=True
        ):
            left, middle, right = (x.at(place + shift) for shift in (-half, 0, half))
            low, first, median, third, high = map(y.at, numbers)
            box = f"M{left:.1f} {first:.1f}H{right:.1f}V{third:.1f}H{left:.1f}Z"
            self.draw(box, fill=trace.get("fillcolor", RULE), **style)
            whiskers = f"M{middle:.1f} {low:.1f}V{first:.1f}M{middle:.1f} {third:.1f}V{high:.1f}"
            self.draw(f"{whiskers}M{left:.1f} {median:.1f}H{right:.1f}", **style)
        for place, mean in zip(_places(trace, "x"), map(y.at, _values(trace.get("mean"))), strict=False):
            self.draw(
                f"M{x.at(place - half):.1f} {mean:.1f}H{x.at(place + half):.1f}",
                **style,
                stroke_dasharray="3 3",
            )

    def _heat_map(self, trace: Record) -> None:
        x, y = self._axes_of(trace)
        for row, values in enumerate(_values(trace["z"])):
            for column, value in enumerate(values):
                if value is None or math.isnan(value):
                    continue
                place = [
                    trace.get(f"{side}0", 0) + n * trace.get(f"d{side}", 1)
                    for side, n in (("x", column), ("y", row))
                ]
                (left, right), (low, high) = (
                    [axis.at(at + 0.5 * s) for s in (-1, 1)] for axis, at in zip((x, y), place, strict=True)
                )
                box = (left + 0.5, high + 0.5, right - left - 1, low - high - 1)
                self.rectangle(*box, self._colour(value))

    def _colour(self, value: float) -> str:
        scale = self.layout["coloraxis"]
        part = (value - scale["cmin"]) / (scale["cmax"] - scale["cmin"])
        stops = [
            (at, [float(n) for n in re.findall(r"[\d.]+", colour)]) for at, colour in scale["colorscale"]
        ]
        mixed = [
            np.interp(part, [at for at, _ in stops], channel)
            for channel in zip(*(c for _, c in stops), strict=True)
        ]
        return f"rgba({','.join(f'{channel:.0f}' for channel in mixed[:3])},{mixed[3]:.2f})"

    def _colour_bar(self) -> None:
        if not (scale := self.layout.get("coloraxis")):
            return
        bar, left = scale["colorbar"], self.right + 24
        top, bottom = self.top + 40, self.bottom
        for step in range(BANDS):
            value = scale["cmax"] - (step + 0.5) / BANDS * (scale["cmax"] - scale["cmin"])
            y, height = top + step * (bottom - top) / BANDS, (bottom - top) / BANDS
            self.rectangle(left, y, 14, height, self._colour(value))
        for value, text in zip(_values(bar["tickvals"]), _values(bar["ticktext"]), strict=True):
            part = (scale["cmax"] - value) / (scale["cmax"] - scale["cmin"])
            self.text(left + 20, top + part * (bottom - top) + 4, text, size=12)
        self.text(left - 16, top - 44, bar["title"]["text"], size=12)

    def _legend(self) -> None:
        entries = [one for one in self.traces if one.get("name") and one.get("showlegend") is not False]
        shown = self.layout.get("showlegend")
        if shown is False or not entries or (len(self.traces) < 2 and not shown):
            return
        given = self.layout.get("legend") or {}
        y = self.bottom + (self.top - self.bottom) * given.get("y", 1.02) - 6
        y += 18 if given.get("yanchor") == "top" else 0
        x = self.left
        for trace in entries:
            words = _lines(trace["name"])[0][0]
            if x > self.left and x + 30 + CHARACTER * len(words) > self.right:
                x, y = self.left, y + 18
            self._sample(trace, x, y - 4)
            self.text(x + 30, y, trace["name"], size=12)
            x += 48 + CHARACTER * len(words)

    def _sample(self, trace: Record, x: float, y: float) -> None:
        marker, line = trace.get("marker") or {}, trace.get("line") or {}
        colour = _each(marker.get("color"), line.get("color", trace.get("fillcolor", TEXT)), 1)[0]
        if trace.get("type") in ("bar", "box"):
            self.rectangle(x + 6, y - 5, 12, 10, colour)
            return
        if "lines" in trace.get("mode", "lines"):
            look = {"stroke": line.get("color", TEXT), "stroke_width": 2}
            dash = DASHES.get(line.get("dash", ""))
            self.draw(f"M{x:.1f} {y:.1f}H{x + 24:.1f}", **look, stroke_dasharray=dash)
        if "markers" in trace.get("mode", ""):
            self.marker(x + 12, y, colour, 9, _each(marker.get("symbol"), "circle", 1)[0])

    def _at(self, ref: str, side: str, value: Any) -> float:
        """The coordinate of a value of a shape or a note: of the paper, of an axis, or of an axis' domain."""
        if ref == "paper":
            ends = (self.left, self.right) if side == "x" else (self.bottom, self.top)
            return ends[0] + value * (ends[1] - ends[0])
        axis = self.axes[f"{side}axis{ref.split()[0][1:]}"]
        return axis.start + value * (axis.end - axis.start) if ref.endswith("domain") else axis.at(value)

    def _shape(self, shape: Record) -> None:
        (left, right), (low, high) = (
            [self._at(shape.get(f"{side}ref", side), side, shape[f"{side}{n}"]) for n in (0, 1)]
            for side in "xy"
        )
        line = shape.get("line") or {}
        style = {
            "stroke": line.get("color", TEXT),
            "stroke_width": line.get("width", 1),
            "stroke_dasharray": DASHES.get(line.get("dash", "")),
        }
        if shape["type"] == "line":
            self.draw(f"M{left:.1f} {low:.1f}L{right:.1f} {high:.1f}", **style)
        else:
            ground = {"fill": shape.get("fillcolor", "none"), "fill_opacity": shape.get("opacity")}
            self.draw(f"M{left:.1f} {low:.1f}H{right:.1f}V{high:.1f}H{left:.1f}Z", **style, **ground)

    def _annotation(self, note: Record) -> None:
        x, y = (self._at(note.get(f"{side}ref", side), side, note[side]) for side in "xy")
        size = (note.get("font") or {}).get("size", 12)
        lines = len(_lines(note["text"]))
        usual = "center"
        if note.get("xref") == "paper":
            usual = "left" if note["x"] <= 1 / 3 else "right" if note["x"] >= 2 / 3 else "center"
        anchor = {"left": "start", "right": "end"}.get(note.get("xanchor", usual), "middle")
        above = {"bottom": -4 - 1.25 * size * (lines - 1), "top": size + 2}
        y += above.get(note.get("yanchor", "middle"), 4) - note.get("yshift", 0)
        self.text(x + note.get("xshift", 0), y, note["text"], anchor=anchor, size=size)


def _slot(trace: Record) -> Any:
    """What a trace of bars shares its slot with at each place, in a figure of grouped bars."""
    return trace.get("offsetgroup") or id(trace)


def _places(trace: Record, side: str) -> list[Any]:
    """The values of a trace on the x or the y axis; of boxes on the y axis the ends of their whiskers."""
    if trace.get("type") == "box" and side == "y":
        return [end for name in ("lowerfence", "upperfence") for end in _values(trace[name])]
    if side in trace and trace[side] is not None:
        return _values(trace[side])
    other = _values(trace.get("y" if side == "x" else "x"))
    count = len(other) if trace.get("type") != "heatmap" else _extent(trace, side)
    first, step = trace.get(f"{side}0", 0), trace.get(f"d{side}", 1)
    return [first + number * step for number in range(count)]


def _ends(trace: Record, side: str) -> list[float]:
    """The ends of the error bars of a trace along an axis, and where its bars begin."""
    bars, middle = trace.get(f"error_{side}") or {}, _places(trace, side)
    above = _values(bars.get("array"))
    below = [None if less is None else -less for less in _values(bars.get("arrayminus")) or above]
    reach = (pair for lengths in (above, below) for pair in zip(middle, lengths, strict=False))
    begin = [0] if _lies_along(trace, side) else []
    return begin + [value + length for value, length in reach if None not in (value, length)]


def _lies_along(trace: Record, side: str) -> bool:
    return trace.get("type") == "bar" and (side == "x") == (trace.get("orientation") == "h")


def _extent(trace: Record, side: str) -> int:
    rows = _values(trace["z"])
    return len(rows) if side == "y" else len(rows[0])


def _each(value: Any, usual: Any, count: int) -> list[Any]:
    """One value for each point, from one for all or a list."""
    if value is None or isinstance(value, str | int | float):
        return [usual if value is None else value] * count
    return _values(value)


def _path(points: Iterable[tuple[float, float] | None]) -> str:
    """A line through points, interrupted at each None; a point between two of them is a line of no length."""
    lines = [list(run) for known, run in groupby(points, bool) if known]
    moves = ["L".join(f"{x:.1f} {y:.1f}" for x, y in run) + ("" if run[1:] else "h0") for run in lines]
    return "".join(f"M{move}" for move in moves)
