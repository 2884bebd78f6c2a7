"""Figures of perplexities, of the losses of paragraph pretraining, of ranks and of heads."""

import math

import numpy as np
import pytest

from cdlm_lab.runs.scores import Score
from cdlm_lab.views import charts, html
from cdlm_lab.views.charts import density, head_maps, rank_distributions
from cdlm_lab.views.html import TEXT, VARIANT_COLOURS, VARIANTS, paper_order, variant_colours
from cdlm_lab.views.score_tables import RANK_CELLS

NAMES = ["Longformer", "Local CDLM", "Rand CDLM", "Prefix CDLM", "CDLM"]
LONG = "a model with a name that goes on and on"


def rows(*, cross=True):
    every = [
        Score(system=variant, metric="perplexity", value=4.0 + i, low=3.5 + i, high=5.0 + i, n=100)
        for i, variant in enumerate(reversed(VARIANTS))
    ]
    crossing = {"metric": "cross_document_perplexity", "value": 40.0, "low": 30.0, "high": 60.0, "n": 10}
    return every + [Score(system=one.system, **crossing) for one in every] * cross


def test_one_dot_with_its_interval_for_each_variant_and_panel():
    figure = charts.perplexity_figure(rows())
    assert [(trace.x[0], trace.y[0], trace.xaxis) for trace in figure.data] == [
        *[(8.0 - i, name, "x") for i, name in enumerate(NAMES)],
        *[(40.0, name, "x2") for name in NAMES],
    ]
    assert figure.layout.xaxis.type == figure.layout.xaxis2.type == "log"
    assert list(figure.layout.yaxis.categoryarray) == NAMES[::-1], "the first variant is on top"
    for trace in figure.data[:5]:
        assert (trace.error_x.arrayminus[0], trace.error_x.array[0]) == (0.5, 1.0)
    low, high = (10**end for end in figure.layout.xaxis.range)
    assert low < 3.5 < 9.0 < high
    single = charts.perplexity_figure(rows(cross=False))
    assert len(single.data) == 5
    assert [annotation.text for annotation in single.layout.annotations] == ["all masked tokens"]
    with pytest.raises(ValueError, match="there is no variant to show: no row is a perplexity"):
        charts.perplexity_figure([Score(system="cdlm", metric="f1", value=0.5)])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(3, 9.5, [4, 6, 8]), (5, 340, [5, 10, 20, 50, 100, 200]), (2, 30_000, [10, 100, 1000, 10_000])],
)
def test_logarithmic_ticks(low, high, expected):
    assert charts.logarithmic_ticks(low, high) == pytest.approx(expected)
    with pytest.raises(ValueError, match="0 < low < high, got 0 and 3"):
        charts.logarithmic_ticks(0, 3)


def test_order_and_colours_of_variants():
    assert paper_order(["mine", "cdlm", "longformer", "cdlm"]) == ["longformer", "cdlm", "mine"]
    colours = variant_colours(["mine", "yours", *VARIANTS])
    assert len(set(colours.values())) == 7
    assert {v: colours[v] for v in VARIANTS} == VARIANT_COLOURS


RECORDS = [
    {"step": 10, "loss": 5.5, "loss_mlm": 5.0, "loss_mspp": 0.5},
    {"step": 20, "eval_loss": 4.8, "eval_loss_mlm": 4.4, "eval_loss_mspp": 0.4},
    {"step": 20, "loss": 4.3, "loss_mlm": 4.0, "loss_mspp": None},
    {"step": 30, "learning_rate": 0.1},
]


def test_a_panel_for_each_loss_with_training_and_validation():
    figure = charts.pretraining_losses_figure(RECORDS, right=0.2)
    assert [(trace.name, trace.yaxis, trace.x, trace.showlegend) for trace in figure.data] == [
        ("training, smoothed", "y", (10, 20), True),
        ("validation", "y", (20,), True),
        ("training, smoothed", "y2", (10,), False),
        ("validation", "y2", (20,), False),
    ]
    # span 4: (0.75 * 5 + 4) / 1.75
    assert [trace.y for trace in figure.data] == [(5.0, round(7.75 / 1.75, 4)), (4.4,), (0.5,), (0.4,)]
    assert [trace.line.color for trace in figure.data] == [html.MASKED, html.GLOBAL] * 2
    titles = figure.layout.yaxis.title.text, figure.layout.yaxis2.title.text, figure.layout.xaxis2.title.text
    assert titles == ("nats for each masked token", "nats for each candidate", "optimiser step")
    (line,) = figure.layout.shapes  # what knowing only the share of right candidates costs
    assert (line.yref, line.line.dash) == ("y2", "dash")
    assert line.y0 == line.y1 == pytest.approx(0.2 * math.log(5) + 0.8 * math.log(1.25))
    texts = [note.text for note in figure.layout.annotations]
    assert texts == [
        "masked words (MLM)",
        "candidates of the same paragraph (MSPP)",
        "always guessing 20%: 0.50",
    ]
    validated = charts.pretraining_losses_figure(RECORDS[1:2], right=0.2)
    assert [trace.x or () for trace in validated.data] == [(), (20,), (), (20,)]


def test_no_panel_for_masked_words_where_none_were_masked():
    unmasked = [record | {"loss_mlm": 0.0, "eval_loss_mlm": 0.0} for record in RECORDS]
    figure = charts.pretraining_losses_figure(unmasked, right=0.2)
    assert [(trace.name, trace.yaxis, trace.showlegend) for trace in figure.data] == [
        ("training, smoothed", "y", True),
        ("validation", "y", True),
    ]
    assert figure.layout.yaxis.title.text == "nats for each candidate"
    assert figure.layout.title.text == "The loss of pretraining"


def test_long_courses_are_thinned_and_losses_that_make_no_sense_are_refused():
    long = [{"step": step, "loss_mlm": 1.0} for step in range(5000)]
    line = charts.pretraining_losses_figure(long, right=0.2).data[0]
    assert (len(line.x), line.x[0], line.x[-1]) == (220, 0, 4999)
    with pytest.raises(ValueError, match="neither loss has numbers"):
        charts.pretraining_losses_figure(RECORDS[3:], right=0.2)
    for wrong in (0.0, 1.0, 20.0, float("nan")):
        with pytest.raises(ValueError, match=r"right is .*; the share of right candidates lies in"):
            charts.pretraining_losses_figure(RECORDS, right=wrong)


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
