"""Figures of perplexities and of training curves, and the colours they share."""

import pytest

from cdlm_lab.scores import Score
from cdlm_lab.widgets.charts import logarithmic_ticks, perplexity_figure
from cdlm_lab.widgets.html import VARIANT_COLOURS, VARIANTS, paper_order, variant_colours

PAPER = {
    "longformer": (3.89, 3.94),
    "local-cdlm": (3.78, 3.84),
    "rand-cdlm": (3.68, 3.81),
    "prefix-cdlm": (3.20, 3.41),
    "cdlm": (3.23, 3.39),
}


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


NAMES = ["Longformer", "Local CDLM", "Rand CDLM", "Prefix CDLM", "CDLM"]


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


def test_figures_are_small_and_can_be_written_offline(tmp_path):
    for figure in (perplexity_figure(rows(), title="<i>t</i>", paper=PAPER),):
        assert len(figure.to_json()) < 20_000
        figure.write_html(tmp_path / "figure.html", include_plotlyjs=True)
        assert "https://cdn" not in (tmp_path / "figure.html").read_text(encoding="utf-8")[-100_000:]
    assert perplexity_figure(rows(), title="<i>t</i>").layout.title.text == "&lt;i&gt;t&lt;/i&gt;"


def test_figures_have_no_ground_of_their_own():
    template = perplexity_figure(rows()).layout.template.layout
    assert template.paper_bgcolor == template.plot_bgcolor == "rgba(0,0,0,0)"


def test_order_and_colours_of_variants():
    assert paper_order(["mine", "cdlm", "longformer", "cdlm"]) == ["longformer", "cdlm", "mine"]
    colours = variant_colours(["mine", "yours", *VARIANTS])
    assert len(set(colours.values())) == 7
    assert {v: colours[v] for v in VARIANTS} == VARIANT_COLOURS
