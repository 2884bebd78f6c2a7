"""Figures of perplexities, of the losses of paragraph pretraining, of ranks and of heads."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cdlm_lab.scores import Score
from cdlm_lab.widgets.charts import (
    TaskLosses,
    density,
    head_maps,
    logarithmic_ticks,
    perplexity_figure,
    pretraining_losses_figure,
    rank_distributions,
    task_losses,
)
from cdlm_lab.widgets.html import (
    GLOBAL,
    MASKED,
    TEXT,
    VARIANT_COLOURS,
    VARIANTS,
    paper_order,
    variant_colours,
)
from cdlm_lab.widgets.score_tables import RANK_CELLS as CELLS

PAPER = {
    "longformer": (3.89, 3.94),
    "local-cdlm": (3.78, 3.84),
    "rand-cdlm": (3.68, 3.81),
    "prefix-cdlm": (3.20, 3.41),
    "cdlm": (3.23, 3.39),
}
NAMES = ["Longformer", "Local CDLM", "Rand CDLM", "Prefix CDLM", "CDLM"]


def rows(*, cross=True):
    every = [
        Score(system=variant, metric="perplexity", value=4.0 + i, low=3.5 + i, high=5.0 + i, n=100)
        for i, variant in enumerate(reversed(VARIANTS))
    ]
    crossing = {"metric": "cross_document_perplexity", "value": 40.0, "low": 30.0, "high": 60.0, "n": 10}
    return every + [Score(system=one.system, **crossing) for one in every] * cross


def test_one_dot_for_each_variant_and_panel():
    figure = perplexity_figure(rows())
    assert [(trace.x[0], trace.y[0], trace.xaxis) for trace in figure.data] == [
        *[(8.0 - i, name, "x") for i, name in enumerate(NAMES)],
        *[(40.0, name, "x2") for name in NAMES],
    ]
    assert figure.layout.xaxis.type == figure.layout.xaxis2.type == "log"


def test_the_first_variant_is_on_top():
    assert list(perplexity_figure(rows()).layout.yaxis.categoryarray) == NAMES[::-1]


def test_intervals_reach_from_low_to_high():
    for trace in perplexity_figure(rows(cross=False)).data:
        assert (trace.error_x.arrayminus[0], trace.error_x.array[0]) == (0.5, 1.0)


def test_one_panel_without_cross_document_tokens():
    figure = perplexity_figure(rows(cross=False))
    assert len(figure.data) == 5
    assert [annotation.text for annotation in figure.layout.annotations] == ["all masked tokens"]


def test_the_papers_numbers_are_marks_in_the_first_panel():
    published = perplexity_figure(rows(), paper=PAPER).data[5]
    assert published.xaxis == "x"
    assert list(published.x) == [3.89, 3.94, 3.78, 3.84, 3.68, 3.81, 3.20, 3.41, 3.23, 3.39]
    assert list(published.y)[::2] == NAMES


def test_the_axis_holds_every_interval_and_mark():
    low, high = perplexity_figure(rows(), paper={"cdlm": (3.0, 20.0)}).layout.xaxis.range
    assert 10**low < 3.0
    assert 10**high > 20.0


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(3, 9.5, [4, 6, 8]), (5, 340, [5, 10, 20, 50, 100, 200]), (2, 30_000, [10, 100, 1000, 10_000])],
)
def test_logarithmic_ticks(low, high, expected):
    assert logarithmic_ticks(low, high) == pytest.approx(expected)


def test_logarithmic_ticks_refuse_zero():
    with pytest.raises(ValueError, match="0 < low < high, got 0 and 3"):
        logarithmic_ticks(0, 3)


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
MLM, MSPP = task_losses(RECORDS, "mlm"), task_losses(RECORDS, "mspp")


def test_losses_are_taken_from_records_by_name():
    mlm, mspp = task_losses(RECORDS, "mlm"), task_losses(RECORDS, "mspp")
    assert mlm == TaskLosses(steps=[10, 20], losses=[5.0, 4.0], eval_steps=[20], eval_losses=[4.4])
    assert mspp == TaskLosses(steps=[10], losses=[0.5], eval_steps=[20], eval_losses=[0.4])
    assert task_losses(RECORDS, "other") == TaskLosses(steps=[], losses=[], eval_steps=[], eval_losses=[])


def test_a_panel_for_each_loss_with_training_and_validation():
    figure = pretraining_losses_figure(MLM, MSPP)
    panels = [(trace.name, trace.yaxis, trace.x, trace.showlegend) for trace in figure.data]
    assert panels == [
        ("training, smoothed", "y", (10, 20), True),
        ("validation", "y", (20,), True),
        ("training, smoothed", "y2", (10,), False),
        ("validation", "y2", (20,), False),
    ]
    # span 4: (0.75 * 5 + 4) / 1.75
    assert figure.data[0].y == (5.0, round(7.75 / 1.75, 4))
    assert [trace.y for trace in figure.data[1:]] == [(4.4,), (0.5,), (0.4,)]
    assert [trace.line.color for trace in figure.data] == [MASKED, GLOBAL] * 2
    assert [note.text for note in figure.layout.annotations] == ["MLM", "MSPP"]
    titles = figure.layout.yaxis.title.text, figure.layout.yaxis2.title.text, figure.layout.xaxis2.title.text
    assert titles == ("nats for each masked token", "nats for each candidate", "optimiser step")
    assert not figure.layout.shapes


def test_the_loss_of_knowing_only_the_share_of_right_candidates():
    figure = pretraining_losses_figure(MLM, MSPP, right=0.2)
    (line,) = figure.layout.shapes
    assert (line.yref, line.line.dash) == ("y2", "dash")
    assert line.y0 == line.y1 == pytest.approx(0.2 * math.log(5) + 0.8 * math.log(1.25))
    assert figure.layout.annotations[-1].text == "always guessing 20%: 0.50"
    for wrong in (0.0, 1.0, 20.0, float("nan")):
        with pytest.raises(ValueError, match=r"right is .*; the share of right candidates lies in"):
            pretraining_losses_figure(MLM, MSPP, right=wrong)


def test_one_loss_alone_and_none():
    empty = TaskLosses(steps=[], losses=[])
    figure = pretraining_losses_figure(empty, replace(MSPP, steps=[], losses=[]))
    assert [trace.x or () for trace in figure.data] == [(), (), (), (20,)]
    with pytest.raises(ValueError, match="neither loss has numbers"):
        pretraining_losses_figure(empty, empty)


def test_long_courses_are_thinned():
    steps = list(range(5000))
    figure = pretraining_losses_figure(TaskLosses(steps=steps, losses=[1.0] * 5000), MSPP)
    line = figure.data[0]
    assert len(line.x) == 220
    assert (line.x[0], line.x[-1]) == (0, 4999)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"losses": [1.0]}, "steps has 2 entries, losses has 1: they must be equal"),
        ({"eval_steps": []}, "eval_steps has 0 entries, eval_losses has 1"),
    ],
)
def test_lists_of_unequal_length_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        replace(MLM, **wrong)


def ranks(pairs=1000, variants=VARIANTS, cells=CELLS):
    generator = np.random.default_rng(0)
    return {v: {name: 100 * generator.beta(3, 2, pairs) for name in cells} for v in reversed(variants)}


def maps(layers=6, heads=12, variants=VARIANTS):
    generator = np.random.default_rng(0)
    return {variant: generator.normal(3, 8, (layers, heads)) for variant in reversed(variants)}


def areas(figure):
    return [trace for trace in figure.data if trace.fill]


def labels(figure):
    texts = [axis.ticktext[0] for axis in figure.select_yaxes() if axis.ticktext]
    return [text for text in texts if text]


@pytest.mark.parametrize("pairs", [1, 2, 30, 1000])
def test_densities_hold_all_their_mass_between_0_and_100(pairs):
    given = 100 * np.random.default_rng(pairs).beta(3, 1, pairs)
    curve = density(given)
    assert curve.shape == (101,)
    assert (curve >= 0).all()
    assert np.trapezoid(curve) == pytest.approx(1)


def test_a_density_by_hand():
    """One rank at the upper end: half a Gaussian of the least width, doubled by its mirror image."""
    expected = 2 * np.exp(-0.5 * ((np.arange(101) - 100) / 2.5) ** 2) / (2.5 * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(density(np.array([100.0, 100.0])), expected, atol=1e-4)
    assert density(np.array([20.0, 20.0, 20.0])).argmax() == 20


def test_the_density_of_even_ranks_is_flat():
    curve = density(np.arange(101.0))
    assert curve == pytest.approx(np.full(101, 0.01), rel=0.1)


def test_no_ranks_have_no_density():
    with pytest.raises(ValueError, match="no ranks"):
        density(np.array([]))


def test_one_row_for_each_variant_and_one_panel_for_each_kind():
    figure = rank_distributions(ranks())
    assert labels(figure) == NAMES
    assert len(areas(figure)) == 20
    assert len({trace.xaxis for trace in areas(figure)}) == 10
    assert [a.text.split("<br>")[0] for a in figure.layout.annotations] == [
        "<b>events</b>",
        "<b>entities</b>",
    ]
    assert "same event: 1,000 pairs, different: 1,000 pairs" in figure.layout.annotations[0].text


def test_pairs_that_corefer_stand_above_the_line_and_the_others_below():
    figure = rank_distributions({"cdlm": {"positive/event": [80.0, 90.0], "negative/event": [10.0, 20.0]}})
    above, below = areas(figure)
    assert (above.line.color, below.line.color) == (VARIANT_COLOURS["cdlm"], TEXT)
    assert max(above.y) == 1.0
    assert min(above.y) == 0
    assert min(below.y) == pytest.approx(-1, abs=0.01)
    assert max(below.y) == 0
    low, high = figure.layout.yaxis.range
    assert low < min(below.y)
    assert high > max(above.y)


def test_areas_span_0_to_100():
    for area in areas(rank_distributions(ranks(pairs=30))):
        assert (area.x0, area.x0 + area.dx * (len(area.y) - 1)) == (0, 100)


def test_means_are_ticked_and_written():
    figure = rank_distributions({"cdlm": {"positive/event": [80.0, 90.5], "negative/event": [10.0, 20.0]}})
    ticks = [trace for trace in figure.data if trace.mode == "lines" and not trace.fill]
    assert [trace.x for trace in ticks] == [(85.25, 85.25), (15.0, 15.0)]
    numbers = [trace for trace in figure.data if trace.mode == "text"]
    assert [trace.text for trace in numbers] == [("85.2",), ("15.0",)]
    assert numbers[0].y[0] > 0 > numbers[1].y[0]
    assert numbers[0].hovertext == "CDLM, same event<br>mean 85.2, median 85.2, 2 pairs"
    assert numbers[1].hovertext == "CDLM, different events<br>mean 15.0, median 15.0, 2 pairs"


def test_what_was_not_measured_is_left_out():
    given = {"cdlm": {"positive/event": [80.0], "negative/entity": []}, "longformer": {}}
    figure = rank_distributions(given)
    assert labels(figure) == ["Longformer", "CDLM"]
    assert len(areas(figure)) == 1
    (title,) = figure.layout.annotations
    assert "same event: 1 pair, different: no pairs" in title.text


def test_ranks_that_cannot_be_shown_are_refused():
    for nothing in ({}, {"cdlm": {}}, {"cdlm": {"positive/event": []}}):
        with pytest.raises(ValueError, match="no ranks to show"):
            rank_distributions(nothing)
    with pytest.raises(ValueError, match="cdlm: unknown cell 'events'"):
        rank_distributions({"cdlm": {"events": [1.0]}})
    with pytest.raises(ValueError, match=r"positive/event: ranks must have shape \(pairs,\), got \(2, 3\)"):
        rank_distributions({"cdlm": {"positive/event": np.zeros((2, 3))}})
    for wrong in (-0.5, 100.5, np.nan):
        with pytest.raises(ValueError, match=rf"cdlm, positive/event: .* lie in \[0, 100\], got {wrong}"):
            rank_distributions({"cdlm": {"positive/event": [50.0, wrong]}})


def test_one_map_for_each_variant_on_one_scale():
    figure = head_maps(maps())
    assert [annotation.text for annotation in figure.layout.annotations] == NAMES
    assert len(figure.data) == 5
    assert {trace.coloraxis for trace in figure.data} == {"coloraxis"}
    largest = max(float(np.abs(values).max()) for values in maps().values())
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == pytest.approx((-largest, largest))
    assert figure.layout.coloraxis.colorbar.title.text == "points higher<br>when they<br>corefer"
    assert figure.layout.coloraxis.colorbar.title.side == "top", "beside the bar it covers its numbers"


def test_layers_rise_and_both_are_counted_from_one():
    values = np.arange(6.0).reshape(2, 3)
    figure = head_maps({"cdlm": values})
    (trace,) = figure.data
    assert (trace.x0, trace.dx, trace.y0, trace.dy) == (1, 1, 1, 1)
    assert [list(line) for line in trace.z] == values.tolist()
    assert figure.layout.yaxis.range == (0.5, 2.5)
    assert figure.layout.xaxis.range == (0.5, 3.5)
    assert figure.layout.xaxis.tickvals == (1, 2, 3)
    assert head_maps(maps()).layout.xaxis.tickvals == (1, 3, 6, 9, 12)


def test_differences_in_words():
    (trace, missing) = head_maps({"cdlm": np.array([[12.34, -3.0, 0.04], [1.0, -0.96, np.nan]])}).data
    assert [list(line) for line in trace.text] == [
        ["12.3 points higher", "3.0 points lower", "as high as others"],
        ["1.0 point higher", "1.0 point lower", ""],
    ]
    assert trace.hovertemplate == (
        "CDLM<br>layer %{y}, head %{x}: coreferring targets rank %{text}<extra></extra>"
    )
    assert trace.z[1][2] is None
    assert (missing.x, missing.y) == ((3,), (2,))
    assert "not measured" in missing.hovertemplate


def test_models_of_different_sizes_share_a_figure():
    figure = head_maps({"cdlm": np.ones((12, 12)), "mine": np.ones((2, 4)), "longformer": np.ones((1, 1))})
    assert [len(trace.z) for trace in figure.data] == [1, 12, 2]
    assert figure.layout.yaxis3.range == (0.5, 2.5)


def test_a_scale_of_nothing_but_zeros():
    figure = head_maps({"cdlm": np.zeros((2, 2))})
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-1, 1)


def test_maps_that_cannot_be_shown_are_refused():
    for nothing in ({}, {"cdlm": np.full((2, 2), np.nan)}):
        with pytest.raises(ValueError, match="no heads to show"):
            head_maps(nothing)
    for shape in ((12,), (2, 2, 2), (0, 12)):
        with pytest.raises(ValueError, match=r"cdlm: a map must have shape \(layers, heads\), got \("):
            head_maps({"cdlm": np.zeros(shape)})
    for wrong in (np.inf, -100.5):
        with pytest.raises(ValueError, match=rf"cdlm: differences .* lie in \[-100, 100\], got {wrong}"):
            head_maps({"cdlm": np.array([[1.0, wrong]])})


def test_long_names_are_shortened_beside_rows_and_above_maps():
    long = "a model with a name that goes on and on"
    figure = rank_distributions(ranks(30, (long,)))
    assert labels(figure) == ["a model with a name …"]
    assert areas(figure)[0].hovertext.startswith(long)
    assert head_maps(maps(variants=(long,))).layout.annotations[0].text == "a model with a name …"


def test_figures_are_small_and_have_no_ground_of_their_own():
    for figure, limit in ((rank_distributions(ranks(20_000)), 40_000), (head_maps(maps()), 20_000)):
        assert len(figure.to_json()) < limit
        template = figure.layout.template.layout
        assert template.paper_bgcolor == template.plot_bgcolor == "rgba(0,0,0,0)"
    for trace in rank_distributions(ranks(20_000)).data:
        assert len(trace.y) <= 200
