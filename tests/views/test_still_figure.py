"""Figures as plain SVG: everything that is named or measured in the interactive figure stands in it, and what
`jupyter nbconvert` makes of an executed notebook shows every figure."""

import base64
import html
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import nbformat
import papermill
import plotly.graph_objects as go
import pytest
from test_contracts import FIGURES

from cdlm_lab.views.charts import box_figure, lay_out
from cdlm_lab.views.still_figure import figure_image, figure_svg, is_of_this_project, ticks

SVG = "{http://www.w3.org/2000/svg}"


def drawn(figure: go.Figure) -> ElementTree.Element:
    return ElementTree.fromstring(figure_svg(figure.to_dict()))


def texts(picture: ElementTree.Element) -> str:
    return " ".join(one.text or "" for one in picture.iter(f"{SVG}text"))


def words_of(markup: str) -> list[str]:
    return [html.unescape(re.sub(r"<[^>]*>", "", line)) for line in re.split(r"<br\s*/?>", markup)]


@pytest.mark.parametrize("name", FIGURES)
def test_what_a_figure_says_stands_in_its_picture_and_nothing_runs(name: str):
    figure, _ = FIGURES[name]
    markup = figure_svg(figure.to_dict())
    shown, layout = texts(ElementTree.fromstring(markup)), figure.layout
    assert not re.search(r"<script|<foreignObject|<style|\son\w+=|href|url\(", markup)
    said = [layout.title.text or "", *(note.text for note in layout.annotations)]
    for trace in figure.data:
        if trace.type == "scatter" and "text" in (trace.mode or ""):
            said += [trace.text] if isinstance(trace.text, str) else [*trace.text]
    for axis in figure.select_xaxes():
        said += [axis.title.text or ""]
        said += list(axis.ticktext or ()) if axis.showticklabels is not False else []
    for axis in figure.select_yaxes():
        said += [axis.title.text or "", *(axis.ticktext or ())]
    for words in said:
        for line in words_of(words):
            assert line in shown, line
    assert len(markup) < 12_000


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


def points(picture: ElementTree.Element) -> list[tuple[float, float]]:
    return [(float(one.get("cx")), float(one.get("cy"))) for one in picture.iter(f"{SVG}circle")]


def scatter(x: list, y: list, **layout: object) -> ElementTree.Element:
    figure = go.Figure([go.Scatter(x=x, y=y, mode="markers+lines", name="a")])
    margin = {"l": 100, "r": 100, "t": 100, "b": 100}
    return drawn(lay_out(figure, title="t", height=400, width=400, margin=margin, **layout))


def test_points_stand_where_their_values_are():
    picture = scatter([0, 10], [0, 4], xaxis_range=[0, 10], yaxis_range=[0, 8])
    assert points(picture) == [(100, 300), (300, 200)]
    assert "M100.0 300.0L300.0 200.0" in [one.get("d") for one in picture.iter(f"{SVG}path")]
    picture = scatter([1, 10, 100], [0, 0, 0], xaxis_type="log", xaxis_range=[0, 2], yaxis_range=[-1, 1])
    assert points(picture) == [(100, 200), (200, 200), (300, 200)]
    picture = scatter(["a", "b"], [1, None], yaxis_range=[0, 2])
    assert points(picture) == [(150, 200)]
    assert {"a", "b"} <= set(texts(picture).split())


def test_bars_and_errors_have_their_lengths():
    figure = go.Figure(
        [go.Bar(x=[0.5, 1.0], y=[0, 1], orientation="h", width=1, error_x={"array": [0.25, 0]})]
    )
    margin = {"l": 100, "r": 100, "t": 100, "b": 100}
    layout = {"xaxis_range": [0, 1], "yaxis_range": [-0.5, 1.5], "height": 400, "width": 400}
    picture = drawn(lay_out(figure, title="", margin=margin, **layout))
    paths = [one.get("d") for one in picture.iter(f"{SVG}path")]
    assert "M100.0 300.0H200.0V200.0H100.0Z" in paths
    assert "M150.0 250.0H250.0" in paths, "from 0.25 to 0.75"


def test_the_axis_reaches_to_the_ends_of_error_bars():
    figure = lay_out(go.Figure(go.Scatter(x=["a", "b"], y=[1, 2], error_y={"array": [8, 0]})), title="")
    assert {"5", "\u22125"} <= {*texts(drawn(figure)).split()}, "from -7 to 9"


def test_bars_without_a_range_begin_at_the_edge_of_the_picture():
    figure = go.Figure(go.Bar(x=[58, 64], y=[0, 1], width=1, orientation="h", error_x={"array": [0, 6]}))
    margin = {"l": 100, "r": 100, "t": 100, "b": 100}
    picture = drawn(lay_out(figure, title="", margin=margin, height=400, width=400, yaxis_range=[-0.5, 1.5]))
    bars = [one.get("d") for one in picture.iter(f"{SVG}path") if one.get("d").endswith("Z")]
    assert bars == ["M100.0 300.0H257.8V200.0H100.0Z", "M100.0 200.0H274.1V100.0H100.0Z"], "70 is at 290.5"


def test_the_words_of_an_image_have_the_values_that_it_writes():
    rows = {"tickvals": [0, 1], "ticktext": ["ours", "theirs"]}
    trace = go.Scatter(x=[7, 5], y=[0, 1], text=["7.0", "5.0"], mode="markers+text", name="test")
    image = figure_image(lay_out(go.Figure(trace), title="F1", yaxis=rows).to_dict())
    assert 'alt="F1; test: ours 7.0, theirs 5.0"' in image


def test_two_lines_of_a_row_stand_above_and_below_its_middle():
    picture = scatter([0, 1], [0, 1], yaxis={"tickvals": [0], "ticktext": ["a<br>b"], "range": [-1, 1]})
    heights = {one.text: float(one.get("y")) for one in picture.iter(f"{SVG}text") if one.text in "ab"}
    assert (heights["a"] + heights["b"]) / 2 == pytest.approx(204), "the middle of the letters is at 200"


def test_bars_of_a_group_stand_side_by_side():
    figure = go.Figure([go.Bar(x=["a"], y=[1]), go.Bar(x=["a"], y=[1])])
    margin = {"l": 100, "r": 100, "t": 100, "b": 100}
    layout = {"yaxis_range": [0, 1], "height": 400, "width": 400, "barmode": "group"}
    picture = drawn(lay_out(figure, title="", margin=margin, **layout))
    bars = [one.get("d") for one in picture.iter(f"{SVG}path") if one.get("d").endswith("Z")]
    assert bars == ["M120.0 300.0H200.0V100.0H120.0Z", "M200.0 300.0H280.0V100.0H200.0Z"]


def test_boxes_reach_from_whisker_to_whisker():
    figure = box_figure(["a"], [[0, 0.1, 0.2, 0.3, 0.4]], mean=[0.25], title="")
    figure.update_layout(height=400, width=400, margin={"l": 100, "r": 100, "t": 100, "b": 100})
    box, whiskers, mean = (
        one.get("d") for one in drawn(figure).iter(f"{SVG}path") if one.get("stroke-width")
    )
    # with a twentieth of the range above and below, 0 is at 300 - 200 / 22 and 0.4 at 100 + 200 / 22
    assert box == "M150.0 245.5H250.0V154.5H150.0Z"
    assert whiskers == "M200.0 290.9V245.5M200.0 154.5V109.1M150.0 200.0H250.0"
    assert mean == "M150.0 177.3H250.0"


def test_a_figure_of_someone_else_is_left_alone():
    assert is_of_this_project(lay_out(go.Figure(), title="t").to_dict())
    assert not is_of_this_project(go.Figure([go.Pie(values=[1, 2])]).to_dict())


CELLS = (
    """import plotly.graph_objects as go
from IPython.display import display
from cdlm_lab.views.charts import lay_out
from cdlm_lab.views.live_curve import LiveCurve
figure = lay_out(go.Figure([go.Scatter(x=[1, 2], y=[3, 5], name="ours")]), title="the first figure")
figure.show()""",
    'display(lay_out(go.Figure([go.Bar(x=["left", "right"], y=[1, 2])]), title="the second figure"))',
    'go.Figure([go.Pie(values=[1, 2])])',
    """with LiveCurve(title="the curve", measure="loss", write=lambda line: None) as curve:
    curve({"step": 1, "loss": 0.75})""",
)  # fmt: skip


@pytest.mark.slow
def test_a_converted_notebook_shows_every_figure(tmp_path: Path):
    exporters = pytest.importorskip(
        "nbconvert", reason="comes with cdlm_lab[lab]: skipped until it is installed"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, tmp_path / "in.ipynb")
    papermill.execute_notebook(tmp_path / "in.ipynb", tmp_path / "out.ipynb", progress_bar=False)
    done = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    kinds = [set(output.data) for cell in done.cells for output in cell.outputs]
    interactive, still = "application/vnd.plotly.v1+json", "text/html"
    assert [{interactive, still} <= kind for kind in kinds] == [True, True, False, False]
    assert len((tmp_path / "out.ipynb").read_bytes()) < 60_000
    page, _ = exporters.HTMLExporter().from_notebook_node(done)
    images = re.findall(r'<img alt="([^"]*)" src="data:image/svg\+xml;base64,([^"]*)"', page)
    assert [alt.split(";")[0].split(" |")[0] for alt, _ in images] == [
        "the first figure",
        "the second figure",
        "The training loss and the validation loss by step. step 1",
    ]
    shown = [base64.b64decode(data).decode() for _, data in images]
    assert ">the first figure</text>" in shown[0]
    assert ">left</text>" in shown[1]
