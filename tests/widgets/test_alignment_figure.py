"""The bars of found sentences."""

import pytest

from cdlm_lab.scores import Score
from cdlm_lab.widgets.aligned import alignment_figure
from cdlm_lab.widgets.tables import SystemRow


def row(system, by, mrr, *, label=None, **more):
    name = f"{system}/{by}" if by else system
    score = Score(system=name, metric="mrr", value=mrr, **more)
    return SystemRow(system=name, label=label or system.upper(), scores={"mrr": score})


ROWS = [
    row("random", "", 0.3611, label="Random"),
    row("gru-han", "attention", 0.543, low=0.5, high=0.56),
    row("gru-han", "cosine", 0.4742),
    row("cdlm", "attention", 0.75),
]


def test_a_group_for_each_system_and_a_colour_for_each_way():
    figure = alignment_figure(ROWS)
    attention, cosine, _ = figure.data
    assert (attention.name, cosine.name) == ("attention", "cosine")
    assert attention.marker.color != cosine.marker.color
    assert attention.marker.pattern.shape != cosine.marker.pattern.shape
    assert (attention.y, cosine.y) == ((0.543, 0.75), (0.4742,))
    assert figure.layout.xaxis.ticktext == ("GRU-HAN", "CDLM")
    assert attention.x == pytest.approx((-0.175, 1.0)), "the single bar stands in the middle"
    assert cosine.x == pytest.approx((0.175,))
    assert attention.width < 0.35, "bars do not touch"


def test_intervals():
    attention, cosine, _ = alignment_figure(ROWS).data
    assert attention.error_y.array == pytest.approx((0.017, 0))
    assert attention.error_y.arrayminus == pytest.approx((0.043, 0))
    assert cosine.error_y.array == (0,)
    assert attention.hovertext[0] == "GRU-HAN, attention: MRR 0.5430 (0.5000 to 0.5600)"
    assert cosine.hovertext[0] == "GRU-HAN, cosine: MRR 0.4742"


def test_random_scores_are_a_dashed_line_over_all_groups():
    figure = alignment_figure(ROWS)
    line = figure.data[-1]
    assert (line.name, line.line.dash, line.y) == ("Random", "dash", (0.3611, 0.3611))
    assert line.x == figure.layout.xaxis.range
    assert line.hovertext == "Random: MRR 0.3611"
    assert [trace.type for trace in alignment_figure(ROWS[1:]).data] == ["bar", "bar"]


def test_long_names_are_broken_and_all_texts_escaped():
    figure = alignment_figure(
        [row("a", "<i>", 0.5, label="BERT-HAN + shallow <b>CDA</b>")], title="<script>\u202e"
    )
    assert figure.layout.xaxis.ticktext == ("BERT-HAN +<br>shallow<br>&lt;b&gt;CDA&lt;/b&gt;",)
    assert figure.layout.title.text == "&lt;script&gt;\u2039U+202E\u203a"
    assert figure.data[0].name == "&lt;i&gt;"
    assert figure.data[0].hovertext[0].startswith("BERT-HAN + shallow &lt;b&gt;CDA&lt;/b&gt;, &lt;i&gt;: MRR")


def test_rows_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="rows is empty"):
        alignment_figure([])
    with pytest.raises(ValueError, match="all rows are random"):
        alignment_figure(ROWS[:1])
    with pytest.raises(ValueError, match="two rows of cdlm/attention"):
        alignment_figure([ROWS[3], ROWS[3]])
    with pytest.raises(ValueError, match="a/b has no mrr"):
        alignment_figure([SystemRow(system="a/b", label="a")])
