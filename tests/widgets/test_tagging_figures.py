"""Figures of tagging: shares and gains by TF-IDF, weights by distance, F1 by attention width."""

from dataclasses import replace

import pytest

from cdlm_lab.analysis.tf_idf import QuantileShare
from cdlm_lab.widgets.html import HUES
from cdlm_lab.widgets.tagged import (
    DistanceWeights,
    SweepPoint,
    WordGain,
    gain_by_tf_idf_figure,
    shares_by_tf_idf_figure,
    sweep_figure,
    weights_by_distance_figure,
)

HOSTILE = "<a href='x'>n</a>\u202e"
SHOWN = "&lt;a href='x'&gt;n&lt;/a&gt;\u2039U+202E\u203a"
NEAR = DistanceWeights(bucket="0", quantiles=(0.1, 0.2, 0.4, 0.6, 0.9), mean=0.45, count=1200)
FAR = DistanceWeights(bucket="4-7", quantiles=(0.0, 0.01, 0.02, 0.05, 0.3), mean=0.5, count=7)
NONE = DistanceWeights(bucket="1", quantiles=(0, 0, 0, 0, 0), mean=0, count=0)
ALL = WordGain(stratum="all words", gain=0.0312, low=0.01, high=0.05, words=5321)
TOP = WordGain(stratum="top 1%", gain=-0.2, low=-0.3, high=0.1, words=71)


def part(start, stop, share, words):
    return QuantileShare(start=start, stop=stop, lowest=0.1, highest=0.2, words=words, share=share)


def point(k, f1, deviation=0.01, seeds=3):
    return SweepPoint(k=k, f1=f1, deviation=deviation, seeds=seeds)


def axes(figure):
    return figure.layout.xaxis.title.text, figure.layout.yaxis.title.text


def test_shares_stand_in_the_middle_of_their_percentiles():
    parts = [part(0, 40, 0.0125, 400), part(40, 100, 0.5, 1600)]
    figure = shares_by_tf_idf_figure({"JNLPBA": parts})
    assert figure.data[0].cliponaxis is False, "a point at 0% is half a point otherwise"
    (line,) = figure.data
    assert (line.x, line.y) == ((20, 70), (1.25, 50))
    assert line.name == "JNLPBA (n = 2,000 words)"
    assert line.text == ("percentiles 0 to 40, n = 400 words", "percentiles 40 to 100, n = 1,600 words")
    assert line.hovertemplate == "JNLPBA<br>%{text}<br>%{y:.1f}% are entities<extra></extra>"
    assert axes(figure) == ("TF-IDF of the word in its document (percentile)", "share of entities (%)")
    assert figure.layout.xaxis.range == (0, 100)
    assert figure.layout.title.text == "Share of words that are entities, by TF-IDF"


def test_lines_differ_in_colour_and_symbol():
    figure = shares_by_tf_idf_figure({name: [part(0, 100, 0.5, 4)] for name in "abcdefgh"} | {"none": []})
    assert [line.name[0] for line in figure.data] == list("abcdefgh")
    assert len({line.marker.color for line in figure.data}) == len(HUES) == 8
    assert len({(line.marker.color, line.marker.symbol) for line in figure.data[:5]}) == 5
    assert len({line.marker.symbol for line in figure.data[:5]}) == 5


def test_gains_of_one_corpus():
    figure = gain_by_tf_idf_figure({"LitBank": [ALL, TOP]}, system="Doc-ARC", other="BERT")
    dots, numbers = figure.data
    assert (dots.x, dots.y) == ((0, 1), (3.12, -20))
    assert [bound - y for bound, y in zip(dots.error_y.array, (5 - 3.12, 10 + 20), strict=True)] == [0, 0]
    assert dots.error_y.arrayminus == (2.12, 10)
    assert dots.hovertext == (
        "all words<br>+3.1 points (+1.0 to +5.0), n = 5,321 words",
        "top 1%<br>\u221220.0 points (\u221230.0 to +10.0), n = 71 words",
    )
    assert (numbers.text, numbers.y) == (("+3.1", "\u221220.0"), (5, 10))
    assert figure.layout.xaxis.ticktext == (
        'all words<br><span style="font-size:11px;font-weight:normal">n = 5,321</span>',
        'top 1%<br><span style="font-size:11px;font-weight:normal">n = 71</span>',
    )
    assert axes(figure)[1] == "word F1: Doc-ARC \u2212 BERT (points)"
    assert figure.layout.title.text == "Word F1 of Doc-ARC minus that of BERT, by TF-IDF"
    assert figure.layout.showlegend is False
    low, high = figure.layout.yaxis.range
    assert low < -30
    assert high > 10


def test_gains_of_several_corpora_stand_side_by_side():
    gains = {"LitBank": [ALL, TOP], "JNLPBA": [replace(ALL, words=3), replace(TOP, words=2)], "none": []}
    figure = gain_by_tf_idf_figure(gains, system="A", other="B", title="Gains")
    assert [trace.x for trace in figure.data[::2]] == [(-0.165, 0.835), (0.165, 1.165)]
    assert [trace.name for trace in figure.data[::2]] == ["LitBank", "JNLPBA"]
    assert "LitBank: n = 71<br>JNLPBA: n = 2</span>" in figure.layout.xaxis.ticktext[1]
    assert figure.data[2].hovertext[0].startswith("JNLPBA, all words<br>+3.1")
    assert figure.layout.showlegend is True
    assert figure.layout.title.text == "Gains"
    with pytest.raises(ValueError, match="JNLPBA: its strata are not all words, top 1%; give the same"):
        gain_by_tf_idf_figure(gains | {"JNLPBA": [TOP, ALL]}, system="A", other="B")


def test_zero_is_always_in_sight():
    figure = gain_by_tf_idf_figure({"a": [replace(ALL, low=0.02)]}, system="A", other="B")
    assert figure.layout.yaxis.range[0] < 0
    assert figure.layout.yaxis.zeroline is True


def test_weights_are_boxes_without_points():
    figure = weights_by_distance_figure([NEAR, NONE, FAR])
    boxes, means = figure.data
    assert boxes.x == means.x == (0, 2)
    drawn = (boxes.lowerfence, boxes.q1, boxes.median, boxes.q3, boxes.upperfence)
    assert list(zip(*drawn, strict=True)) == [NEAR.quantiles, FAR.quantiles]
    assert boxes.y is None
    assert means.y == (0.45, 0.5)
    assert means.hovertext[0] == (
        "distance 0, n = 1,200<br>mean 0.450<br>5%: 0.100, 25%: 0.200, 50%: 0.400, 75%: 0.600, 95%: 0.900"
    )
    assert [label.split("n = ")[1] for label in figure.layout.xaxis.ticktext] == [
        *("1,200</span>", "0</span>", "7</span>")
    ]
    assert [label.split("<")[0] for label in figure.layout.xaxis.ticktext] == ["0", "1", "4-7"]
    assert figure.layout.yaxis.range[0] == 0
    assert figure.layout.yaxis.range[1] > 0.9
    assert axes(figure) == ("distance in sentences, and number of occurrences", "attention weight")
    assert figure.layout.title.text == "Attention weight of occurrences, by distance"


def test_a_mean_above_all_quantiles_is_in_sight():
    figure = weights_by_distance_figure([FAR])
    assert figure.layout.yaxis.range[1] > 0.5


def test_a_sweep_is_a_line_with_a_band_and_its_best_point():
    figure = sweep_figure({"LitBank": [point(10, 0.72, 0.02), point(2, 0.7), point(25, 0.71, None)]})
    band, line = figure.data
    assert (line.x, line.y) == ((2, 10, 25), (70, 72, 71))
    assert line.text == ("", "72.0", "")
    assert line.name == "LitBank (n = 3 seeds)"
    assert line.hovertext == (
        "LitBank<br>K = 2: F1 70.0 \u00b1 1.0, 3 seeds",
        "LitBank<br>K = 10: F1 72.0 \u00b1 2.0, 3 seeds",
        "LitBank<br>K = 25: F1 71.0, 3 seeds",
    )
    assert (band.x, band.y) == ((2, 10, 10, 2), (71, 74, 70, 69))
    assert band.fill == "toself"
    assert figure.layout.xaxis.tickvals == (2, 10, 25)
    assert axes(figure) == ("K: occurrences that a word may attend to", "F1 on development documents (%)")
    assert figure.layout.title.text == "F1 by the number of occurrences attended to"


def test_a_sweep_without_deviations_has_no_band():
    figure = sweep_figure({"a": [point(2, 0.5, None, 1), point(5, 0.6, None, 1)], "b": [point(9, 0.1)]})
    assert [trace.name for trace in figure.data] == ["a (n = 1 seed)", "b (n = 3 seeds)"]
    assert figure.layout.xaxis.tickvals == (2, 5, 9)
    mixed = sweep_figure({"a": [point(2, 0.5, None, 1), point(5, 0.6)]})
    assert mixed.data[0].name == "a (n = 1 to 3 seeds)"


def test_nothing_and_nonsense_are_refused():
    for draw in (shares_by_tf_idf_figure, sweep_figure):
        with pytest.raises(ValueError, match=r"there is nothing to show: \w+ is empty"):
            draw({"a": []})
    with pytest.raises(ValueError, match="gains is empty"):
        gain_by_tf_idf_figure({}, system="A", other="B")
    for nothing in ([], [NONE]):
        with pytest.raises(ValueError, match="weights is empty"):
            weights_by_distance_figure(nothing)
    with pytest.raises(ValueError, match=r"a: share is 1\.5; it must lie in \[0, 1\]"):
        shares_by_tf_idf_figure({"a": [part(0, 100, 1.5, 3)]})
    with pytest.raises(ValueError, match="a: two points of one K"):
        sweep_figure({"a": [point(2, 0.5), point(2, 0.6)]})


@pytest.mark.parametrize(
    ("record", "wrong", "message"),
    [
        (ALL, {"gain": 2.0}, r"all words: gain is 2\.0; it must lie in \[-1, 1\]"),
        (ALL, {"low": 0.06}, r"all words: \(0\.06, 0\.05\) is no interval in \[-1, 1\]"),
        (ALL, {"high": float("nan")}, "all words: .* is no interval"),
        (ALL, {"words": -1}, "all words: words is -1"),
        (FAR, {"quantiles": (0.1, 0.2)}, "4-7: 2 quantiles; give those at"),
        (FAR, {"quantiles": (0.1, 0.2, 0.1, 0.3, 0.4)}, "4-7: quantiles .* must not fall"),
        (FAR, {"mean": float("nan")}, "4-7: a weight is nan"),
        (FAR, {"count": -1}, "4-7: count is -1"),
        (point(5, 0.5), {"f1": 50.0}, r"K = 5: f1 is 50\.0"),
        (point(5, 0.5), {"seeds": 0}, "K = 5 with 0 seeds"),
        (point(5, 0.5), {"k": -1}, "K = -1 with 3 seeds"),
        (point(5, 0.5), {"seeds": 1}, r"K = 5: a deviation of 0\.01 over 1 seeds"),
        (point(5, 0.5), {"deviation": -0.1}, r"K = 5: a deviation of -0\.1"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(record, wrong, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        replace(record, **wrong)


def test_texts_are_no_markup():
    figures = (
        shares_by_tf_idf_figure({HOSTILE: [part(0, 100, 0.5, 3)]}, title=HOSTILE),
        gain_by_tf_idf_figure({HOSTILE: [replace(ALL, stratum=HOSTILE)]}, system=HOSTILE, other=HOSTILE),
        weights_by_distance_figure([replace(NEAR, bucket=HOSTILE)], title=HOSTILE),
        sweep_figure({HOSTILE: [point(2, 0.5)]}, title=HOSTILE),
    )
    for figure in figures:
        visible = {key: value for key, value in figure.to_dict().items() if key != "template"}
        for trace in visible["data"]:
            trace.pop("legendgroup", None)  # which is not shown
        assert "<a" not in str(visible)
        assert "202e" not in str(visible), "written as an escape: U+202E is no printable character"
        assert SHOWN in figure.layout.title.text
