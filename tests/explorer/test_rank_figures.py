"""Figures of ranks and of heads."""

import numpy as np
import pytest

from cdlm_lab.encoders.variants import VARIANTS
from cdlm_lab.explorer.rank_figures import RANK_CELLS, head_maps, rank_distributions
from cdlm_lab.views.html import TEXT, VARIANT_COLOURS

NAMES = ["Longformer", "Local CDLM", "Rand CDLM", "Prefix CDLM", "CDLM"]


def ranks(pairs=1000, variants=VARIANTS):
    generator = np.random.default_rng(0)
    return {v: {name: 100 * generator.beta(3, 2, pairs) for name in RANK_CELLS} for v in reversed(variants)}


def maps(variants=VARIANTS):
    generator = np.random.default_rng(0)
    return {variant: generator.normal(3, 8, (6, 12)) for variant in reversed(variants)}


def boxes(figure):
    return [trace for trace in figure.data if trace.type == "box"]


def test_two_boxes_for_each_variant_in_one_panel_for_each_kind():
    figure = rank_distributions(ranks())
    assert list(figure.layout.xaxis.ticktext) == NAMES
    assert len(boxes(figure)) == 20
    assert len({trace.xaxis for trace in boxes(figure)}) == 2
    first, second = (note.text for note in figure.layout.annotations)
    assert first.startswith("<b>events</b><br>")
    assert second.startswith("<b>entities</b><br>")
    assert "same event: 1,000 pairs, different: 1,000 pairs" in first


def test_a_box_holds_quartiles_median_and_mean():
    given = {"positive/event": np.arange(101.0), "negative/event": [10.0, 20.0]}
    figure = rank_distributions({"cdlm": given})
    same, other = boxes(figure)
    assert (same.line.color, other.line.color) == (VARIANT_COLOURS["cdlm"], TEXT)
    ends = [getattr(same, name)[0] for name in ("lowerfence", "q1", "median", "q3", "upperfence")]
    assert ends == [5, 25, 50, 75, 95]
    assert same.x[0] < 0 < other.x[0]
    means = [trace for trace in figure.data if trace.type == "scatter" and trace.hovertext]
    assert [trace.y for trace in means] == [(50.0,), (15.0,)]
    assert means[1].hovertext == "CDLM, different events<br>mean 15.0, median 15.0, 2 pairs"


def test_what_was_not_measured_is_left_out():
    figure = rank_distributions({"cdlm": {"positive/event": [80.0], "negative/entity": []}, "longformer": {}})
    assert list(figure.layout.xaxis.ticktext) == ["Longformer", "CDLM"]
    assert len(boxes(figure)) == 1
    (title,) = figure.layout.annotations
    assert "same event: 1 pair, different: no pairs" in title.text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no ranks to show"),
        ({"cdlm": {}}, "no ranks to show"),
        ({"cdlm": {"positive/event": []}}, "no ranks to show"),
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
    ],
)
def test_maps_that_cannot_be_shown_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        head_maps(given)
