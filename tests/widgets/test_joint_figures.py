"""Figures of joint reading: losses of pretraining, accuracy by place, spread of scores, time."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cdlm_lab.widgets.charts import TaskLosses, pretraining_losses_figure, task_losses
from cdlm_lab.widgets.html import GLOBAL, MASKED
from cdlm_lab.widgets.rankings import (
    BINS,
    HIGHEST,
    Latency,
    accuracy_by_place_figure,
    latency_figure,
    score_spread_figure,
)

HOSTILE = "<a href='x'>n</a>\u202e"
SHOWN = "&lt;a href='x'&gt;n&lt;/a&gt;\u2039U+202E\u203a"
RECORDS = [
    {"step": 10, "loss": 5.5, "loss_mlm": 5.0, "loss_mspp": 0.5},
    {"step": 20, "eval_loss": 4.8, "eval_loss_mlm": 4.4, "eval_loss_mspp": 0.4},
    {"step": 20, "loss": 4.3, "loss_mlm": 4.0, "loss_mspp": None},
    {"step": 30, "learning_rate": 0.1},
]
MLM, MSPP = task_losses(RECORDS, "mlm"), task_losses(RECORDS, "mspp")
PAIRWISE = Latency(system="pairwise", seconds=0.05, fastest=0.04, slowest=0.06, runs=3)
JOINT = Latency(system="joint", seconds=0.057, fastest=0.05, slowest=0.08, runs=1)


def placed(accuracy, always_wrong=(0.9, 0.8, 0.7)):
    return SimpleNamespace(accuracy=accuracy, always_wrong=always_wrong)


def axes(figure):
    return figure.layout.xaxis.title.text, figure.layout.yaxis.title.text


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


def test_accuracy_by_place_between_what_calling_each_wrong_gets_and_the_share_of_right_ones():
    figure = accuracy_by_place_figure({"joint": placed([0.95, 0.5, 0.25]), "pairwise": placed([0.9] * 3)})
    lines = {line.name: (line.x, line.y) for line in figure.data}
    assert lines == {
        "joint": ((1, 2, 3), (95, 50, 25)),
        "pairwise": ((1, 2, 3), (90, 90, 90)),
        "calling each wrong": ((1, 2, 3), (90, 80, 70)),
        "right candidates": ((1, 2, 3), (10, 20, 30)),
    }
    assert len({(line.line.color, line.line.dash) for line in figure.data}) == 4
    assert axes(figure) == ("place of the candidate in the sequence", "share of candidates (%)")
    assert figure.layout.xaxis.tickvals == (1, 2, 3)


def test_a_place_without_candidates_breaks_the_lines():
    nan = float("nan")
    figure = accuracy_by_place_figure({"a": placed([0.5, nan, 0.5], (0.9, nan, 0.8))})
    assert [line.y[1] for line in figure.data] == [None] * 3
    assert [line.y[2] for line in figure.data] == [50, 80, 20]


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ({}, "systems is empty"),
        ({"a": placed([0.5, 1.5, 0.5])}, r"a: accuracy has 1\.5; a share lies in"),
        ({"a": placed([0.5], ())}, r"a: always_wrong has shape \(0,\); it must be \(k,\)"),
        (
            {"a": placed([0.5] * 3), "b": placed([0.5] * 3, (0.9, 0.8, 0.6))},
            "b: its candidates are not those",
        ),
        (
            {"a": placed([0.5] * 3), "b": placed([0.5] * 2, (0.9, 0.8))},
            "b: its candidates are not those of a",
        ),
    ],
)
def test_accuracies_that_make_no_sense_are_refused(systems, message):
    with pytest.raises(ValueError, match=message):
        accuracy_by_place_figure(systems)


def test_spreads_are_a_row_for_each_system():
    figure = score_spread_figure({"joint": [0.0, 0.01, 4.0, 0.03], "pairwise": [2.0, 2.0], "none": []})
    assert figure.layout.yaxis.ticktext == (
        'joint<br><span style="font-size:11px;font-weight:normal">median 0.02, 4 groups</span>',
        'pairwise<br><span style="font-size:11px;font-weight:normal">median 2, 2 groups</span>',
    )
    assert figure.layout.yaxis.tickvals == (1 + HIGHEST / 2, HIGHEST / 2)
    ground, area, tick, ground_2, area_2, tick_2 = figure.data
    assert (ground.y, ground_2.y) == ((1, 1), (0, 0))
    assert (tick.x, tick_2.x) == ((0.02, 0.02), (2, 2))
    assert area.x[0] == area.x[1] == 0
    assert area.x[-1] == 4
    heights = np.array(area.y[1:-1:2]) - 1  # of each bin
    assert len(heights) == BINS
    assert heights.tolist() == pytest.approx([HIGHEST, *[0] * (BINS - 2), HIGHEST / 3], abs=1e-4)
    assert area.text[1] == "75.0% of the groups"
    assert area_2.y[0] == area_2.y[-1] == 0
    assert np.argmax(area_2.y[1:-1:2]) == BINS // 2
    assert axes(figure)[0] == "standard deviation of log-odds within a group"


def test_a_collapse_without_any_spread_can_be_drawn():
    figure = score_spread_figure({"joint": [0.0, 0.0]})
    assert figure.data[1].y[1] == HIGHEST
    assert figure.layout.xaxis.range[1] > 0
    assert "median 0, 2 groups" in figure.layout.yaxis.ticktext[0]


@pytest.mark.parametrize(
    ("spreads", "message"),
    [
        ({}, "spreads is empty"),
        ({"a": [0.1, -0.2]}, r"a: a spread is -0\.2; it must be finite and not negative"),
        ({"a": [float("nan")]}, "a: a spread is nan"),
        ({"a": [float("inf")]}, "a: a spread is inf"),
    ],
)
def test_spreads_that_make_no_sense_are_refused(spreads, message):
    with pytest.raises(ValueError, match=message):
        score_spread_figure(spreads)


def test_latencies_with_their_runs_and_how_many_times_as_long():
    figure = latency_figure([PAIRWISE, JOINT, replace(JOINT, system="slow", seconds=1.0, slowest=1.25)])
    bars, numbers = figure.data
    assert (bars.x, bars.y) == ((50, 57, 1000), (0, 1, 2))
    assert bars.error_x.array == pytest.approx((10, 23, 250))
    assert bars.error_x.arrayminus == pytest.approx((10, 7, 950))
    assert [text.strip() for text in numbers.text] == [
        "50.0 ms",
        "57.0 ms, 1.14 \u00d7",
        "1,000 ms, 20.00 \u00d7",
    ]
    assert numbers.x == (60, 80, 1250)
    assert bars.hovertext[:2] == (
        "pairwise<br>median 50.0 ms of 3 runs, 40.0 ms to 60.0 ms",
        "joint<br>median 57.0 ms of 1 run, 50.0 ms to 80.0 ms",
    )
    assert figure.layout.yaxis.ticktext == ("pairwise", "joint", "slow")
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1], "from top to bottom"
    assert axes(figure)[0] == "milliseconds for one question; \u00d7: times pairwise"
    other = latency_figure([PAIRWISE, JOINT], against="joint")
    assert [text.strip() for text in other.data[1].text] == ["50.0 ms, 0.88 \u00d7", "57.0 ms"]


def test_latencies_that_make_no_sense_are_refused():
    for wrong in ([], [PAIRWISE, PAIRWISE]):
        with pytest.raises(ValueError, match="give each system once, and at least one"):
            latency_figure(wrong)
    with pytest.raises(ValueError, match="there is no 'pairwise' to compare with; choose from joint"):
        latency_figure([JOINT])
    for changed in ({"fastest": 0.0}, {"fastest": 0.055}, {"slowest": 0.04}, {"seconds": float("nan")}):
        with pytest.raises(ValueError, match=r"pairwise: fastest, median and slowest \(.*\) must be above 0"):
            replace(PAIRWISE, **changed)
    with pytest.raises(ValueError, match="pairwise: fastest"):
        replace(PAIRWISE, slowest=float("inf"))
    with pytest.raises(ValueError, match="pairwise: runs is 0; it must be at least 1"):
        replace(PAIRWISE, runs=0)


def test_texts_are_no_markup():
    hostile = replace(PAIRWISE, system=HOSTILE)
    figures = (
        pretraining_losses_figure(MLM, MSPP, title=HOSTILE),
        accuracy_by_place_figure({HOSTILE: placed([0.5] * 3)}, title=HOSTILE),
        score_spread_figure({HOSTILE: [0.5]}, title=HOSTILE),
        latency_figure([hostile, JOINT], against=HOSTILE, title=HOSTILE),
    )
    for figure in figures:
        seen = {key: value for key, value in figure.to_dict().items() if key != "template"}
        assert "<a" not in str(seen)
        assert "202e" not in str(seen), "written as an escape: U+202E is no printable character"
        assert SHOWN in figure.layout.title.text
