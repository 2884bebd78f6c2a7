"""Figures are kept by the run they are of, and become files."""

import json
import shutil
from pathlib import Path

import plotly.graph_objects as go
import plotly.io as pio
import pytest

from cdlm_lab.runs.report import RunError, read_report
from cdlm_lab.tasks.pretraining.view import perplexity_figure
from cdlm_lab.views.charts import lay_out
from cdlm_lab.views.figures import CONFIG, folder_of, keep_figure, kept_figures, write_figures

RECORDED = Path(__file__).resolve().parents[2] / "data" / "results" / "storyworld_tiny" / "perplexity.json"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copy(RECORDED, folder / "report.json")
    return folder


def test_a_run_keeps_its_own_figures(run: Path, monkeypatch: pytest.MonkeyPatch):
    report = read_report(run)
    assert folder_of(report) is None, "it was made somewhere else"
    report.parameters["run_folder"] = str(run)
    assert folder_of(report) == run
    figure = perplexity_figure(report.rows, title="<b>")
    assert keep_figure(folder_of(report), "Perplexity, test", figure) is figure
    (name, kept), *others = kept_figures(run).items()
    assert (name, others) == ("perplexity-test", [])
    assert json.loads(kept.to_json()) == json.loads(figure.to_json())
    (run / "report.json").write_text(RECORDED.read_text().replace(report.finished, "2020-01-01T00:00:00"))
    assert folder_of(report) is None, "another run has its place"
    assert keep_figure(None, "a", figure) is figure is keep_figure(run / "none", "a", figure)


@pytest.mark.parametrize("text", ["{", "[1]", '{"data": [{"type": "nothing"}]}', '{"x": 1}'])
def test_what_is_no_figure_is_named(run: Path, text: str):
    (run / "figures").mkdir()
    (run / "figures" / "a.json").write_text(text)
    with pytest.raises(RunError, match=r"a\.json is no figure \(.*delete it"):
        kept_figures(run)


def test_the_camera_saves_svg():
    lay_out(go.Figure(), title="")
    assert pio.renderers["plotly_mimetype"].config == CONFIG
    assert CONFIG["toImageButtonOptions"]["format"] == "svg"


def test_figures_become_pages_without_a_network_and_plain_pictures(tmp_path: Path):
    figure = go.Figure(go.Scatter(x=[1], y=[1], text="</script><script>alert(1)</script>"))
    write_figures({"a": figure}, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.svg", "plotly.min.js"]
    page = (tmp_path / "a.html").read_text()
    assert "alert(1)</script>" not in page
    assert json.dumps(CONFIG["toImageButtonOptions"]) in page
    assert "cdn.plot.ly" not in page
    assert (tmp_path / "a.svg").read_text().startswith("<svg ")
