"""The figure of how language models learned, from reports alone."""

from pathlib import Path

from cdlm_lab.report import open_run
from cdlm_lab.results.learning import learning_figures
from cdlm_lab.results.reports import find_reports
from cdlm_lab.scores import Score

RECORDED = Path(__file__).resolve().parents[2] / "data" / "results"
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


def test_a_line_for_each_run_and_a_figure_for_each_length(tmp_path: Path):
    pretrained(tmp_path / "a", [2.0, 1.0])
    pretrained(tmp_path / "b", [2.5, 1.5], seed=1)
    pretrained(tmp_path / "c", [3.0, 2.0], variant="local-cdlm")
    pretrained(tmp_path / "d", [4.0], length=1024)
    pretrained(tmp_path / "e", [4.5], variant=HOSTILE, length=1024)
    short, long = learning_figures(find_reports(tmp_path))
    lines = {trace.hovertext[0].partition("<br>")[0]: trace for trace in short.data}
    assert list(lines) == ["Local CDLM, c, seed 0", "CDLM, a, seed 0", "CDLM, b, seed 1"], "paper order"
    assert [*lines["CDLM, a, seed 0"].x] == [1.0, 2.0]
    assert [*lines["CDLM, a, seed 0"].y] == [2.0, 1.0], "of validation alone"
    assert lines["CDLM, a, seed 0"].line.color == lines["CDLM, b, seed 1"].line.color
    assert [trace.showlegend for trace in short.data] == [True, True, False]
    assert long.layout.title.text == "Pretraining on storyworld, 1024 tokens long"
    assert HOSTILE not in long.to_json()
    assert learning_figures(find_reports(tmp_path / "a")), "of one run"


def test_the_recorded_variants_have_a_line_each():
    (figure,) = learning_figures(find_reports(RECORDED / "storyworld_tiny"))
    assert [trace.name for trace in figure.data] == [
        "Longformer",
        "Local CDLM",
        "Rand CDLM",
        "Prefix CDLM",
        "CDLM",
    ]
    assert all(trace.y[-1] < trace.y[0] for trace in figure.data)
