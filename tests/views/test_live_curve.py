"""The live curve: throttled, small, honest about what it knows; and the drawing of a training run."""

import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from cdlm_lab.views.live_curve import LiveCurve, LiveCurves, curve_svg, smoothed


class Stage:
    """A clock that is set by hand, and a record of what was shown and written."""

    def __init__(self, *records, **options):
        self.now, self.pictures, self.lines = 0.0, [], []
        parts = {"clock": lambda: self.now, "show": self.pictures.append, "write": self.lines.append}
        self.curve = LiveCurve(**parts, **options)
        for record in records:
            self.curve(record)


def test_pictures_and_lines_are_throttled_and_lines_become_rare_in_a_long_run():
    stage = Stage()
    for step in range(1, 1001):  # 100 seconds
        stage.now = step / 10
        stage.curve({"step": step, "loss": 3.0})
    assert (len(stage.pictures), len(stage.lines)) == (100, 10)
    stage = Stage()
    stage.curve.html = lambda *, final: ""  # 5,760 pictures take long
    for quarter in range(24 * 60 * 4):  # a day, four records a minute
        stage.now = quarter * 15.0
        stage.curve({"step": 1000, "learning_rate": 3e-5})
    assert 200 < len(stage.lines) < 400


def test_where_nothing_was_trained_nothing_is_shown():
    stage = Stage()
    with stage.curve:
        pass
    assert (stage.pictures, stage.lines) == ([], [])
    with stage.curve as curve:
        curve({"step": 1000, "learning_rate": 3e-5})
    assert stage.pictures


def test_a_validation_is_always_written():
    stage = Stage({"step": 1, "loss": 3.0}, {"step": 2, "eval_perplexity": 12.5}, {"step": 3, "loss": 3.0})
    assert len(stage.lines) == 2
    assert "validation perplexity 12.50" in stage.lines[1]


def test_the_last_state_is_shown_and_written_once_whatever_happens():
    stage = Stage()
    with stage.curve as curve:
        curve({"step": 1, "loss": 3.0})
        curve({"step": 7, "loss": 3.0})
    assert len(stage.pictures) == 2
    assert "<img" in stage.pictures[-1]
    assert "<svg" not in stage.pictures[-1]
    assert [line.split(" | ")[0] for line in stage.lines] == ["step 1", "step 7"]
    stage = Stage()

    def train():
        with stage.curve as curve:
            curve({"step": 1, "loss": 3.0})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train()
    assert "<img" in stage.pictures[-1]
    assert len(stage.lines) == 1, "what was written is not written again"


def test_facts_by_hand():
    curve = Stage(
        {"step": 100, "loss": 4.0, "learning_rate": 3e-5, "seconds": 50, "total_steps": 1000},
        {"step": 200, "eval_perplexity": 9.0, "seconds": 100},
        {"step": 300, "eval_perplexity": 11.0, "seconds": 150, "grad_norm": 1.0},
    ).curve
    assert curve.line() == (
        "step 300 of 1,000 (30%) | training loss 4.000 | validation perplexity 11.00 (best 9.00) | "
        "learning rate 3.0e-05 | so far 2 min 30 s | left 5 min 50 s"
    )  # 700 steps at half a second
    resumed = {"loss": 2.0, "total_steps": 1000}
    later = Stage({"step": 900, "seconds": 1} | resumed, {"step": 910, "seconds": 21} | resumed).curve
    assert later.seconds_left == pytest.approx(180), "a resumed run counts its own steps only"
    broken = Stage({"step": 1, "loss": 4.0}, {"step": 2, "loss": math.nan}).curve
    assert "training loss nan, not a number" in broken.line()


def test_where_perplexity_means_nothing_the_loss_is_shown():
    half = {"step": 1, "loss": 0.7, "eval_perplexity": math.exp(0.5), "seconds": 1}
    curve = Stage(half, half | {"step": 2, "eval_perplexity": math.exp(0.625)}, measure="loss").curve
    assert "validation loss 0.625 (best 0.500)" in curve.line()
    assert "perplexity" not in curve.html(final=False)
    assert "perplexity" in Stage().curve.html(final=False)


def test_trainings_one_after_the_other_share_a_place():
    pictures, lines = [], []
    curves = LiveCurves(show=pictures.append, write=lines.append)
    curves.add("cdlm", [{"step": 1, "loss": 3.0}, {"step": 2, "eval_perplexity": 4.0}])
    assert "CDLM" in pictures[-1]
    assert ("<details" in pictures[-1], lines) == (False, []), "it ended before"
    for name in ("<b>second", "third", "nothing"):
        with curves(name) as curve:
            curve({"step": 1, "loss": 3.0} if name != "nothing" else {"step": 1})
    folded = re.findall(r"<summary>(.*?)</summary>", pictures[-1])
    assert [line.split(": step")[0] for line in map(re.sub, ["<.*?>"] * 3, [""] * 3, folded)] == [
        "CDLM",
        "&lt;b&gt;second",
        "third",
    ]
    assert "validation loss 1.386" in folded[0]
    assert pictures[-1].count("<img") == 3, "two that are folded, and the last"
    assert len(lines) == 3

    def stopped():
        with curves("stopped") as curve:
            curve({"step": 5, "loss": 1.0})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert "stopped" in pictures[-1]


def test_below_a_curve_in_jupyterlab_there_are_no_lines(capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cdlm_lab.views.live_curve.in_notebook", lambda: True)
    monkeypatch.setenv("JPY_SESSION_NAME", "a.ipynb")
    record = {"step": 1, "loss": 3.0}
    LiveCurve(show=lambda text: None)(record)
    assert capsys.readouterr().out == ""
    monkeypatch.delenv("JPY_SESSION_NAME")  # papermill
    LiveCurve(show=lambda text: None)(record)
    assert capsys.readouterr().out.startswith("step 1 |")


@pytest.mark.parametrize(("count", "span"), [(50, 4), (600, 10), (7000, 100)])
def test_smoothed_equals_its_formula_and_its_span_grows_with_the_number_of_reports(count, span):
    values = np.random.default_rng(0).normal(size=count)
    for t in (0, 1, 40, count - 1):
        weights = (1 - 1 / span) ** np.arange(t, -1, -1)
        expected = (weights * values[: t + 1]).sum() / weights.sum()
        assert smoothed(values)[t] == pytest.approx(expected)


def circles(svg: str) -> list[tuple[float, float]]:
    """The places of the circles below the legend, which is above 32."""
    places = [(float(e.get("cx")), float(e.get("cy"))) for e in ElementTree.fromstring(svg) if e.get("r")]
    return [(x, y) for x, y in places if y > 32]


def test_a_perplexity_is_drawn_at_the_height_of_the_loss_that_is_its_logarithm():
    svg = curve_svg([(0, 3.0), (100, 1.0)], [(0, math.exp(3.0))])
    start = re.search(r'd="M([\d.]+) ([\d.]+)L[^"]*" fill="none" stroke="#e69f00" stroke-width', svg)
    assert circles(svg) == [pytest.approx((float(start[1]), float(start[2])))]


def test_the_whole_run_is_on_the_step_axis():
    half = curve_svg([], [(0, 9), (50, 3)], total_steps=100)
    whole = curve_svg([], [(0, 9), (100, 3)], total_steps=100)
    (left, _), (middle, _) = circles(half)
    (_, _), (right, _) = circles(whole)
    assert middle == pytest.approx((left + right) / 2)


def test_a_long_run_is_drawn_small():
    losses = np.random.default_rng(0).normal(4, 0.3, 25_000).tolist()
    assert len(curve_svg(list(enumerate(losses)), [])) < 12_000
    stage = Stage()
    for step, loss in enumerate(losses):
        stage.curve.remember({"step": step, "loss": loss})
    assert len(stage.curve.html()) < 20_000


@pytest.mark.parametrize(
    ("losses", "perplexities"),
    [
        ([], []),
        ([(1, 2.0)], []),
        ([(1, math.nan), (2, 2.0), (3, math.inf)], []),
        ([], [(1, math.inf), (2, math.nan)]),
    ],
)
def test_odd_histories_are_drawn_without_a_wrong_number(losses, perplexities):
    svg = curve_svg(losses, perplexities)
    ElementTree.fromstring(svg)
    assert "nan" not in svg
    assert "inf" not in svg


def test_the_lines_are_named_in_the_picture_and_the_model_in_its_words():
    assert ">training loss, smoothed</text>" in curve_svg([(1, 2.0)], [])
    assert ">validation perplexity</text>" in curve_svg([(1, 2.0)], [])
    assert ">validation loss</text>" in curve_svg([(1, 2.0)], [], perplexity=False)
    curve = LiveCurve(title="CDLM", write=lambda line: None)
    curve.remember({"step": 1, "loss": 2.0})
    assert 'alt="The training loss and the validation perplexity of CDLM by step. ' in curve.html()


def test_one_point_is_seen():
    picture = curve_svg([(8, 0.75)], [], total_steps=8, perplexity=False)
    (path,) = re.findall(
        r'<path d="(M[^"]*)" fill="none" [^>]*stroke-width="6"[^>]*stroke-linecap="round"', picture
    )
    assert path.endswith("h0"), "a round cap, as a dot"
    assert path.startswith("M836.0 "), "at the last step"


def test_the_loss_of_guessing_is_a_line_within_the_picture():
    losses = [(step, 0.4) for step in range(1, 9)]
    picture = curve_svg(losses, [], perplexity=False, chance=math.log(2))
    assert "guessing: 0.69" in picture
    (height,) = re.findall(r'<path d="M54.0 ([\d.]+)L836.0 [^>]*stroke-dasharray', picture)
    assert 26 < float(height) < 260
    assert "guessing" not in curve_svg(losses, [], perplexity=False)
    assert "guessing: 0.69" in Stage({"step": 1, "loss": 0.4}, measure="loss", chance=0.693).curve.html(
        final=False
    )


def test_perplexities_stand_in_parentheses_beside_the_losses():
    assert ">2 (7.39)<" in curve_svg([(1, 2.5), (2, 1.5)], [])
    assert ">2<" in curve_svg([(1, 2.5), (2, 1.5)], [], perplexity=False)
