"""Figures of ranks and of heads."""

import numpy as np
import pytest

from cdlm_lab.encoders.variants import VARIANTS
from cdlm_lab.explorer.rank_figures import density, head_maps, rank_distributions
from cdlm_lab.views.html import TEXT, VARIANT_COLOURS
from cdlm_lab.views.score_tables import RANK_CELLS

NAMES = ["Longformer", "Local CDLM", "Rand CDLM", "Prefix CDLM", "CDLM"]
LONG = "a model with a name that goes on and on"


def ranks(pairs=1000, variants=VARIANTS):
    generator = np.random.default_rng(0)
    return {v: {name: 100 * generator.beta(3, 2, pairs) for name in RANK_CELLS} for v in reversed(variants)}


def maps(variants=VARIANTS):
    generator = np.random.default_rng(0)
    return {variant: generator.normal(3, 8, (6, 12)) for variant in reversed(variants)}


def areas(figure):
    return [trace for trace in figure.data if trace.fill]


def labels(figure):
    texts = [axis.ticktext[0] for axis in figure.select_yaxes() if axis.ticktext]
    return [text for text in texts if text]


@pytest.mark.parametrize("pairs", [1, 2, 30, 1000])
def test_densities_hold_all_their_mass_between_0_and_100(pairs):
    curve = density(100 * np.random.default_rng(pairs).beta(3, 1, pairs))
    assert curve.shape == (101,)
    assert (curve >= 0).all()
    assert np.trapezoid(curve) == pytest.approx(1)


def test_a_density_by_hand():
    """One rank at the upper end: half a Gaussian of the least bandwidth, doubled by its mirror image."""
    expected = 2 * np.exp(-0.5 * ((np.arange(101) - 100) / 2.5) ** 2) / (2.5 * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(density(np.array([100.0, 100.0])), expected, atol=1e-4)
    assert density(np.array([20.0, 20.0, 20.0])).argmax() == 20
    assert density(np.arange(101.0)) == pytest.approx(np.full(101, 0.01), rel=0.1), "even ranks are flat"
    with pytest.raises(ValueError, match="no ranks"):
        density(np.array([]))


def test_one_row_for_each_variant_and_one_panel_for_each_kind():
    figure = rank_distributions(ranks())
    assert labels(figure) == NAMES
    assert len(areas(figure)) == 20
    assert len({trace.xaxis for trace in areas(figure)}) == 10
    for area in areas(figure):
        assert (area.x0, area.x0 + area.dx * (len(area.y) - 1)) == (0, 100)
    first, second = (note.text for note in figure.layout.annotations)
    assert first.startswith("<b>events</b><br>")
    assert second.startswith("<b>entities</b><br>")
    assert "same event: 1,000 pairs, different: 1,000 pairs" in first


def test_pairs_that_corefer_stand_above_the_line_the_others_below_and_means_are_written():
    figure = rank_distributions({"cdlm": {"positive/event": [80.0, 90.0], "negative/event": [10.0, 20.0]}})
    above, below = areas(figure)
    assert (above.line.color, below.line.color) == (VARIANT_COLOURS["cdlm"], TEXT)
    assert (min(above.y), max(above.y), max(below.y)) == (0, 1.0, 0)
    assert min(below.y) == pytest.approx(-1, abs=0.01)
    low, high = figure.layout.yaxis.range
    assert low < min(below.y) < max(above.y) < high
    ticks = [trace for trace in figure.data if trace.mode == "lines" and not trace.fill]
    assert [trace.x for trace in ticks] == [(85.0, 85.0), (15.0, 15.0)]
    numbers = [trace for trace in figure.data if trace.mode == "text"]
    assert [trace.text for trace in numbers] == [("85.0",), ("15.0",)]
    assert numbers[0].y[0] > 0 > numbers[1].y[0]
    assert numbers[0].hovertext == "CDLM, same event<br>mean 85.0, median 85.0, 2 pairs"
    assert numbers[1].hovertext == "CDLM, different events<br>mean 15.0, median 15.0, 2 pairs"


def test_what_was_not_measured_is_left_out():
    figure = rank_distributions({"cdlm": {"positive/event": [80.0], "negative/entity": []}, "longformer": {}})
    assert labels(figure) == ["Longformer", "CDLM"]
    assert len(areas(figure)) == 1
    (title,) = figure.layout.annotations
    assert "same event: 1 pair, different: no pairs" in title.text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no ranks to show"),
        ({"cdlm": {}}, "no ranks to show"),
        ({"cdlm": {"positive/event": []}}, "no ranks to show"),
        ({"cdlm": {"events": [1.0]}}, "cdlm: unknown cell 'events'; choose from positive/event"),
        (
            {"cdlm": {"positive/event": np.zeros((2, 3))}},
            r"positive/event: percentile ranks must have shape \(pairs,\), got \(2, 3\)",
        ),
        *(
            ({"cdlm": {"positive/event": [50.0, wrong]}}, rf"event: .* must lie in \[0, 100\], got {wrong}")
            for wrong in (-0.5, 100.5, np.nan)
        ),
    ],
)
def test_ranks_that_cannot_be_shown_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        rank_distributions(given)


def test_one_map_for_each_variant_on_one_scale():
    figure = head_maps(maps())
    assert [annotation.text for annotation in figure.layout.annotations] == NAMES
    assert len(figure.data) == 5
    assert {trace.coloraxis for trace in figure.data} == {"coloraxis"}
    largest, axis = max(float(np.abs(values).max()) for values in maps().values()), figure.layout.coloraxis
    assert (axis.cmin, axis.cmax) == pytest.approx((-largest, largest))
    assert axis.colorbar.title.text == "points higher<br>when they<br>corefer"
    assert axis.colorbar.title.side == "top", "beside the bar it covers its numbers"
    assert figure.layout.xaxis.tickvals == (1, 3, 6, 9, 12)
    nothing = head_maps({"cdlm": np.zeros((2, 2))}).layout.coloraxis
    assert (nothing.cmin, nothing.cmax) == (-1, 1)


def test_layers_rise_both_are_counted_from_one_and_models_differ_in_size():
    values = np.arange(6.0).reshape(2, 3)
    figure = head_maps({"cdlm": values})
    (trace,) = figure.data
    assert (trace.x0, trace.dx, trace.y0, trace.dy) == (1, 1, 1, 1)
    assert [list(line) for line in trace.z] == values.tolist()
    assert (figure.layout.yaxis.range, figure.layout.xaxis.range) == ((0.5, 2.5), (0.5, 3.5))
    assert figure.layout.xaxis.tickvals == (1, 2, 3)
    figure = head_maps({"cdlm": np.ones((12, 12)), "mine": np.ones((2, 4)), "longformer": np.ones((1, 1))})
    assert [len(trace.z) for trace in figure.data] == [1, 12, 2]
    assert figure.layout.yaxis3.range == (0.5, 2.5)


def test_differences_in_words():
    (trace, missing) = head_maps({"cdlm": np.array([[12.34, -3.0, 0.04], [1.0, -0.96, np.nan]])}).data
    assert [list(line) for line in trace.text] == [
        ["12.3 points higher", "3.0 points lower", "as high as others"],
        ["1.0 point higher", "1.0 point lower", ""],
    ]
    hover = "CDLM<br>layer %{y}, head %{x}: coreferring targets rank %{text}<extra></extra>"
    assert trace.hovertemplate == hover
    assert trace.z[1][2] is None
    assert (missing.x, missing.y) == ((3,), (2,))
    assert "not measured" in missing.hovertemplate


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no heads to show"),
        ({"cdlm": np.full((2, 2), np.nan)}, "no heads to show"),
        *(
            ({"cdlm": np.zeros(shape)}, r"cdlm: .* must have shape \(layers, heads\), got \(")
            for shape in ((12,), (2, 2, 2), (0, 12))
        ),
        *(
            ({"cdlm": np.array([[1.0, wrong]])}, rf"cdlm: differences .* lie in \[-100, 100\], got {wrong}")
            for wrong in (np.inf, -100.5)
        ),
    ],
)
def test_maps_that_cannot_be_shown_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        head_maps(given)


def test_long_names_are_shortened_and_figures_are_small():
    figure = rank_distributions(ranks(30, (LONG,)))
    assert labels(figure) == ["a model with a name …"]
    assert areas(figure)[0].hovertext.startswith(LONG)
    assert head_maps(maps((LONG,))).layout.annotations[0].text == "a model with a name …"
    large = rank_distributions(ranks(20_000))
    assert len(large.to_json()) < 40_000
    assert max(len(trace.y) for trace in large.data) <= 200
    assert len(head_maps(maps()).to_json()) < 20_000
