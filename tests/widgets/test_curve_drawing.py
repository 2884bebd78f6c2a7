"""The drawing of a training run."""

import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from cdlm_lab.widgets.live_curve import RunHistory, curve_svg, smoothed, ticks


def test_smoothed_by_hand():
    # span 2 keeps one half: 4; (4/2 + 1) / (1/2 + 1) = 2; (4/4 + 1/2 + 6) / (1/4 + 1/2 + 1) = 30/7
    assert smoothed([4, 1, 6], span=2) == pytest.approx([4, 2, 30 / 7])


def test_smoothed_equals_its_formula():
    values = np.random.default_rng(0).normal(size=50)
    weights = [(1 - 1 / 7) ** np.arange(t, -1, -1) for t in range(50)]
    assert smoothed(values, span=7) == pytest.approx(
        [(w * values[: len(w)]).sum() / w.sum() for w in weights]
    )


def test_smoothed_passes_over_what_is_not_finite():
    result = smoothed([math.nan, 2, math.inf, 2], span=4)
    assert math.isnan(result[0])
    assert result[1:] == pytest.approx([2, 2, 2])


def test_smoothed_refuses_a_span_below_one():
    with pytest.raises(ValueError, match=r"at least 1, got 0\.5"):
        smoothed([1], span=0.5)


def test_span_grows_with_the_number_of_reports():
    for count, span in ((10, 4), (600, 10), (10_000, 100)):
        values = np.arange(count, dtype=float)
        assert np.array_equal(smoothed(values), smoothed(values, span=span))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (1.9, 3.1, [2, 2.5, 3]),
        (0, 25_000, [0, 5000, 10000, 15000, 20000, 25000]),
    ],
)
def test_ticks_are_round(low, high, expected):
    assert ticks(low, high, about=5) == pytest.approx(expected)


def circles(svg: str) -> list[tuple[float, float]]:
    root = ElementTree.fromstring(svg)
    return [(float(e.get("cx")), float(e.get("cy"))) for e in root if e.tag.endswith("circle")]


def test_a_perplexity_is_drawn_at_the_height_of_the_loss_that_is_its_logarithm():
    history = RunHistory(steps=[0, 100], losses=[3.0, 1.0], eval_steps=[0], eval_perplexities=[math.exp(3.0)])
    svg = curve_svg(history)
    start = re.search(r'd="M([\d.]+) ([\d.]+)L[^"]*" fill="none" stroke="#e69f00" stroke-width', svg)
    assert circles(svg) == [pytest.approx((float(start[1]), float(start[2])))]


def test_the_whole_run_is_on_the_step_axis():
    half = curve_svg(RunHistory(eval_steps=[0, 50], eval_perplexities=[9, 3], total_steps=100))
    whole = curve_svg(RunHistory(eval_steps=[0, 100], eval_perplexities=[9, 3], total_steps=100))
    (left, _), (middle, _) = circles(half)
    (_, _), (right, _) = circles(whole)
    assert middle == pytest.approx((left + right) / 2)


def test_a_long_run_is_drawn_small():
    count = 25_000
    losses = np.random.default_rng(0).normal(4, 0.3, count).tolist()
    svg = curve_svg(RunHistory(steps=list(range(count)), losses=losses))
    assert len(svg) < 12_000


@pytest.mark.parametrize(
    "history",
    [
        RunHistory(),
        RunHistory(steps=[1], losses=[2.0]),
        RunHistory(steps=[1, 2, 3], losses=[math.nan, 2.0, math.inf]),
        RunHistory(eval_steps=[1, 2], eval_perplexities=[math.inf, math.nan]),
    ],
)
def test_odd_histories_are_drawn_without_a_wrong_number(history):
    svg = curve_svg(history)
    ElementTree.fromstring(svg)
    assert "nan" not in svg
    assert "inf" not in svg
