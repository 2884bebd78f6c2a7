"""The figure of how language models learned, from reports alone."""

from pathlib import Path

import plotly.graph_objects as go
import pytest
from small_reports import RESULTS

from cdlm_lab.results.learning import learning_figures, main
from cdlm_lab.results.reports import find_reports
from cdlm_lab.runs.report import open_run
from cdlm_lab.runs.scores import Score

HOSTILE = "<b>mine</b>"


def pretrained(folder: Path, losses: list[float], *, variant: str = "cdlm", seed: int = 0, length: int = 512):
    """A report of notebook 01 with two records of training and one of validation for each loss."""
    parameters = {"run_folder": str(folder), "variant": variant, "max_length": length, "seed": seed}
    history = []
    for number, loss in enumerate(losses, start=1):
        place = {"step": number, "tokens": number * 1_000_000}
        history += [place | {"loss": loss + 1}, place | {"eval_loss": loss}]
    run = open_run(folder, name="pretraining", parameters=parameters)
    data = {"corpus": "storyworld", "validation_checksum": "0"}
    scores = [Score(system=variant, metric="perplexity", value=2.0)]
    run.write_report(scores=scores, data=data, tables={"history": [*history, {"step": 9, "eval_loss": "?"}]})


def lines(figure: go.Figure, *, axis: str = "y") -> dict[str, go.Scatter]:
    """What a line is called when one points at it -> the line; those of the legend alone left out."""
    drawn = [trace for trace in figure.data if trace.hovertext and trace.yaxis == axis]
    return {trace.hovertext[0].partition("<br>")[0]: trace for trace in drawn}


def test_a_line_for_each_run_and_a_figure_for_each_length(tmp_path: Path):
    pretrained(tmp_path / "a", [2.0, 1.0])
    pretrained(tmp_path / "b", [2.5, 1.5], seed=1)
    pretrained(tmp_path / "c", [3.0, 0.5], variant="local-cdlm")
    pretrained(tmp_path / "d", [4.0], length=1024)
    pretrained(tmp_path / "e", [4.5], variant=HOSTILE, length=1024)
    short, long = learning_figures(find_reports(tmp_path))
    drawn, differences = lines(short), lines(short, axis="y2")
    assert list(drawn) == ["Local CDLM, c, seed 0", "CDLM, a, seed 0", "CDLM, b, seed 1"], "paper order"
    first, second = drawn["CDLM, a, seed 0"], drawn["CDLM, b, seed 1"]
    assert ([*first.x], [*first.y]) == ([1.0, 2.0], [2.0, 1.0]), "of validation alone"
    assert first.line.color == second.line.color
    assert (first.line.dash, second.line.dash) == ("solid", "dash")
    assert list(differences) == ["CDLM, a, seed 0"], "against Local CDLM of the same seed, or not at all"
    assert [*differences["CDLM, a, seed 0"].y] == [-1.0, 0.5]
    in_legend = [trace.name for trace in short.data if trace.showlegend is not False]
    assert in_legend == ["Local CDLM", "CDLM", "seed 0", "seed 1"]
    assert long.layout.title.text == "Validation loss of pretraining on storyworld, 1,024 tokens long"
    assert not lines(long, axis="y2")
    assert HOSTILE not in long.to_json()
    assert learning_figures(find_reports(tmp_path / "a")), "of one run"


def test_runs_of_other_lengths_are_compared_as_far_as_both_went(tmp_path: Path):
    pretrained(tmp_path / "long", [3.0, 2.0, 1.0])
    pretrained(tmp_path / "local", [2.5, 2.5], variant="local-cdlm")
    (figure,) = learning_figures(find_reports(tmp_path))
    assert [*lines(figure, axis="y2")["CDLM, long, seed 0"].y] == [0.5, -0.5]


@pytest.mark.parametrize("folder", ["storyworld_tiny", "news_clusters_minilm_512"])
def test_the_recorded_variants_have_a_line_for_each_seed(folder: str):
    (figure,) = learning_figures(find_reports(RESULTS / folder))
    drawn, below = lines(figure), lines(figure, axis="y2")
    assert (len(drawn), len(below)) == (5 * 2, 3 * 2)
    assert all(trace.y[-1] < trace.y[0] for trace in drawn.values())
    assert all(trace.y[-1] < 0 for name, trace in below.items() if name.startswith("CDLM")), "it passes Local"


def test_the_figures_of_a_folder_are_written_by_a_command(tmp_path: Path, capsys: pytest.CaptureFixture):
    main([str(RESULTS / "storyworld_tiny"), str(tmp_path)])
    assert "Validation loss of pretraining" in (tmp_path / "learning.html").read_text()
    assert "Validation loss of pretraining" in (tmp_path / "learning.svg").read_text()
    with pytest.raises(SystemExit):
        main([str(tmp_path / "nothing"), str(tmp_path)])
    assert "nothing" in capsys.readouterr().err.splitlines()[-1]
