"""Candidates in the order of a system: places, bars, what is framed and folded; and figures of joint
reading."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from shown_reads import words_of

from cdlm_lab.widgets.html import CROSS, GLOBAL, WRONG
from cdlm_lab.widgets.rankings import (
    BINS,
    HIGHEST,
    OPEN,
    Latency,
    ReadRanking,
    accuracy_by_place_figure,
    latency_figure,
    ranking_html,
    score_spread_figure,
)

READ = ReadRanking(
    id="Q7",
    question="When was the light put out?",
    candidates=("It was built in 1871.", "In 1958.", "It is a cape.", "A museum."),
    right=(False, True, False, False),
    # e^0.8473 = 7/3, so the probability is 0.7
    scores={"pairwise": (2.0, 1.0, -1.0, 0.0), "joint": (-2.2, 0.8473, -9.0, -2.0)},
)
CASCADE = replace(READ, scores=READ.scores | {"cascade": (-2.2, -3.0, None, None)})
BESIDE = {"system": "joint", "beside": "pairwise"}


def rows(html):
    """The cells of each candidate in sight or folded, as text."""
    found = re.findall(r"<tr><td.*?</tr>", html)
    return [[words_of(cell) for cell in re.findall(r"<td.*?</td>", row)] for row in found]


def legend(html):
    return words_of(re.search(r'<div class="cdlm-legend".*?</div>', html)[0])


def box(html, text):
    """The style of the box around a candidate."""
    return re.search(rf'<div style="([^"]*)" dir="auto">[^/]*(?:</b> )?{re.escape(text)}', html)[1]


def test_candidates_with_probability_and_both_places():
    html = ranking_html(READ, **BESIDE)
    assert rows(html) == [
        ["1", "70%", "2 \u25b21", "\u2713 In 1958."],
        ["2", "12%", "3 \u25b21", "A museum."],
        ["3", "10%", "1 \u25bc2", "It was built in 1871."],
        ["4", "0%", "4", "It is a cape."],
    ]
    assert re.findall(rf"width:(\d+)%;background:{GLOBAL}", html) == ["70", "12", "10", "0"]
    heads = [words_of(cell) for cell in re.findall(r"<th .*?</th>", html)]
    assert heads == ["", "probability", "pairwise", "candidate"]


def test_one_system_alone():
    html = ranking_html(READ, system="pairwise")
    assert [row[0::2] for row in rows(html)] == [
        ["1", "It was built in 1871."],
        ["2", "\u2713 In 1958."],
        ["3", "A museum."],
        ["4", "It is a cape."],
    ]
    assert "first by" not in words_of(html)
    assert "pairwise \u2717 wrong" in words_of(html)
    assert html == ranking_html(READ, system="pairwise", beside="pairwise")


@pytest.mark.parametrize(
    ("right", "line"),
    [
        ((False, True, False, False), "pairwise \u2717 wrong \u00b7 joint \u2713 right \u00b7 repaired"),
        ((True, False, False, False), "pairwise \u2713 right \u00b7 joint \u2717 wrong \u00b7 broken"),
        ((True, True, False, False), "pairwise \u2713 right \u00b7 joint \u2713 right \u00b7 both right"),
        ((False, False, True, False), "pairwise \u2717 wrong \u00b7 joint \u2717 wrong \u00b7 both wrong"),
        ((False,) * 4, "joint \u2717 wrong \u00b7 both wrong \u00b7 none of the candidates is right"),
    ],
)
def test_what_became_of_the_question(right, line):
    read = replace(READ, right=right)
    text = " ".join(words_of(ranking_html(read, **BESIDE)).split())
    assert line in text
    assert ("none of" in line) == ("none of the candidates is right" in text)
    assert read.outcome("joint", beside="pairwise") in line


def test_frames_grounds_and_their_legend():
    html = ranking_html(READ, **BESIDE)
    assert f"border:1px solid {WRONG}" in box(html, "It was built in 1871.")
    assert "border:" not in box(html, "In 1958.")
    assert f"background:{CROSS}30" in box(html, "In 1958.")
    assert "background" not in box(html, "A museum.")
    places = "\u25b2 \u25bc places up and down from pairwise"
    assert legend(html) == f"\u2713 right answer first by pairwise {places}"
    right = ranking_html(replace(READ, right=(True, True, False, False)), **BESIDE)
    assert f"border:1px solid {CROSS}" in box(right, "It was")
    unknown = ranking_html(replace(READ, right=None), **BESIDE)
    assert f"border:1px solid {GLOBAL}" in box(unknown, "It was")
    alone = ranking_html(replace(READ, right=None), system="joint")
    assert not re.search("right|wrong|\u2713|\u2717", words_of(alone))
    assert "cdlm-legend" not in alone


def test_what_a_cascade_leaves_out_stands_below():
    html = ranking_html(CASCADE, system="cascade", beside="pairwise")
    assert rows(html) == [
        ["1", "10%", "1", "It was built in 1871."],
        ["2", "5%", "2", "\u2713 In 1958."],
        ["3", "not read", "3", "A museum."],  # before the cape, as pairwise has it
        ["4", "not read", "4", "It is a cape."],
    ]
    assert "not read: below what was read, in the order of pairwise" in legend(html)
    assert CASCADE.order("cascade") == (0, 1, 2, 3)


def many(right=(), scores=None):
    """A ranking of 30 candidates, the last one first by pairwise."""
    return ReadRanking(
        id="many",
        question="?",
        candidates=tuple(f"c{number}." for number in range(30)),
        right=tuple(number in right for number in range(30)),
        scores=scores or {"joint": [-n for n in range(30)], "pairwise": list(range(30))},
    )


def test_low_places_are_folded_but_not_what_matters():
    html = ranking_html(many(right=(14,)), **BESIDE)
    summaries = [words_of(one) for one in re.findall(r"<summary.*?</summary>", html)]
    assert summaries == ["places 11 to 14", "places 16 to 29"]
    shown = rows(re.sub(r"<details.*?</details>", "", html))
    assert [row[0] for row in shown] == [*map(str, range(1, OPEN + 1)), "15", "30"]
    assert [row[0] for row in rows(html)] == [str(place) for place in range(1, 31)]
    assert html.count("<thead>") == 1
    unfolded = ranking_html(many(right=(14,)), **BESIDE, folded=False)
    assert "<details" not in unfolded
    assert rows(unfolded) == rows(html)
    one = ranking_html(many(right=range(11, 30)), system="joint")
    assert words_of(re.search("<summary.*?</summary>", one)[0]) == "place 11"


def test_ties_keep_the_order_of_the_candidates_and_never_look_at_labels():
    for right in ((0,), (29,), ()):
        tied = many(right=right, scores={"a": [1.0] * 30, "b": [None, *[0.0] * 29]})
        assert tied.order("a") == tuple(range(30))
        assert tied.order("b", beside="a") == (*range(1, 30), 0)
        assert tied.right_on_top("a") is (0 in right)
        assert tied.right_on_top("b") is False
    assert replace(many(), right=None).right_on_top("joint") is None
    assert replace(many(), right=None).outcome("joint", beside="pairwise") is None


def test_far_scores_become_probabilities_without_overflow():
    read = replace(READ, scores={"joint": (1e4, -1e4, 0.0, None)})
    assert read.probabilities("joint") == [1.0, 0.0, 0.5, None]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"candidates": (), "right": None}, "there are no candidates"),
        ({"scores": {}}, "there are no scores"),
        ({"right": (True,)}, "1 labels for 4 candidates; give one for each"),
        ({"scores": {"joint": (1.0,)}}, "joint: 1 scores for 4 candidates; give one for each"),
        ({"scores": {"joint": (None,) * 4}}, "joint has read no candidate"),
        ({"scores": {"joint": (1.0, 2.0, float("nan"), None)}}, "joint: a score is nan; it must be finite"),
        ({"scores": {"joint": (1.0, 2.0, float("-inf"), 0.0)}}, "joint: a score is -inf"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, message):
    with pytest.raises(ValueError, match=f"^question 'Q7': {message}"):
        replace(READ, **wrong)
    with pytest.raises(ValueError, match=f"^question '{re.escape(READ.question)}': {message}"):
        replace(READ, id="", **wrong)


def test_an_unknown_system_is_refused():
    for ask in (READ.order, READ.probabilities, READ.right_on_top):
        with pytest.raises(ValueError, match="question 'Q7': no scores of 'own'; it has pairwise, joint"):
            ask("own")
    with pytest.raises(ValueError, match="no scores of 'own'"):
        ranking_html(READ, system="joint", beside="own")


def placed(accuracy, always_wrong=(0.9, 0.8, 0.7)):
    return SimpleNamespace(accuracy=accuracy, always_wrong=always_wrong)


def test_accuracy_by_place_between_what_calling_each_wrong_gets_and_the_share_of_right_ones():
    figure = accuracy_by_place_figure({"joint": placed([0.95, 0.5, 0.25]), "pairwise": placed([0.9] * 3)})
    assert {line.name: (line.x, line.y) for line in figure.data} == {
        "joint": ((1, 2, 3), (95, 50, 25)),
        "pairwise": ((1, 2, 3), (90, 90, 90)),
        "calling each wrong": ((1, 2, 3), (90, 80, 70)),
        "right candidates": ((1, 2, 3), (10, 20, 30)),
    }
    assert len({(line.line.color, line.line.dash) for line in figure.data}) == 4
    assert figure.layout.xaxis.tickvals == (1, 2, 3)
    nan = float("nan")
    broken = accuracy_by_place_figure({"a": placed([0.5, nan, 0.5], (0.9, nan, 0.8))})
    assert [line.y[1:] for line in broken.data] == [(None, 50), (None, 80), (None, 20)], "no candidate there"


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ({}, "systems is empty"),
        ({"a": placed([0.5, 1.5, 0.5])}, r"a: accuracy has 1\.5; a share lies in"),
        ({"a": placed([0.5], ())}, r"a: always_wrong has shape \(0,\); it must be \(k,\)"),
        ({"a": placed([0.5] * 3), "b": placed([0.5] * 3, (0.9, 0.8, 0.6))}, "b: its candidates are not"),
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
    assert [words_of(text) for text in figure.layout.yaxis.ticktext] == [
        "joint median 0.02, 4 groups",
        "pairwise median 2, 2 groups",
    ]
    assert figure.layout.yaxis.tickvals == (1 + HIGHEST / 2, HIGHEST / 2)
    ground, area, tick, ground_2, area_2, tick_2 = figure.data
    assert (ground.y, ground_2.y) == ((1, 1), (0, 0))
    assert (tick.x, tick_2.x) == ((0.02, 0.02), (2, 2))
    assert (area.x[0], area.x[1], area.x[-1]) == (0, 0, 4)
    heights = np.array(area.y[1:-1:2]) - 1  # of each bin
    assert heights.tolist() == pytest.approx([HIGHEST, *[0] * (BINS - 2), HIGHEST / 3], abs=1e-4)
    assert area.text[1] == "75.0% of the groups"
    assert area_2.y[0] == area_2.y[-1] == 0
    assert np.argmax(area_2.y[1:-1:2]) == BINS // 2
    assert figure.layout.xaxis.title.text == "standard deviation of log-odds within a group"
    collapsed = score_spread_figure({"joint": [0.0, 0.0]})
    assert collapsed.data[1].y[1] == HIGHEST
    assert collapsed.layout.xaxis.range[1] > 0


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


PAIRWISE = Latency(system="pairwise", seconds=0.05, fastest=0.04, slowest=0.06, runs=3)
JOINT = Latency(system="joint", seconds=0.057, fastest=0.05, slowest=0.08, runs=1)


def test_latencies_with_their_runs_and_how_many_times_as_long():
    figure = latency_figure([PAIRWISE, JOINT, replace(JOINT, system="slow", seconds=1.0, slowest=1.25)])
    bars, numbers = figure.data
    assert (bars.x, bars.y) == ((50, 57, 1000), (0, 1, 2))
    assert bars.error_x.array == pytest.approx((10, 23, 250))
    assert bars.error_x.arrayminus == pytest.approx((10, 7, 950))
    written = [text.strip() for text in numbers.text]
    assert written == ["50.0 ms", "57.0 ms, 1.14 \u00d7", "1,000 ms, 20.00 \u00d7"]
    assert numbers.x == (60, 80, 1250)
    assert bars.hovertext[:2] == (
        "pairwise<br>median 50.0 ms of 3 runs, 40.0 ms to 60.0 ms",
        "joint<br>median 57.0 ms of 1 run, 50.0 ms to 80.0 ms",
    )
    assert figure.layout.yaxis.ticktext == ("pairwise", "joint", "slow")
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1], "from top to bottom"
    assert figure.layout.xaxis.title.text == "milliseconds for one question; \u00d7: times pairwise"
    other = latency_figure([PAIRWISE, JOINT], against="joint")
    assert [text.strip() for text in other.data[1].text] == ["50.0 ms, 0.88 \u00d7", "57.0 ms"]


def test_latencies_that_make_no_sense_are_refused():
    for wrong in ([], [PAIRWISE, PAIRWISE]):
        with pytest.raises(ValueError, match="give each system once, and at least one"):
            latency_figure(wrong)
    with pytest.raises(ValueError, match="there is no 'pairwise' to compare with; choose from joint"):
        latency_figure([JOINT])
    times = ({"fastest": 0.0}, {"fastest": 0.055}, {"slowest": 0.04}, {"seconds": float("nan")})
    for changed in (*times, {"slowest": float("inf")}):
        with pytest.raises(ValueError, match=r"pairwise: fastest, median and slowest \(.*\) must be above 0"):
            replace(PAIRWISE, **changed)
    with pytest.raises(ValueError, match="pairwise: runs is 0; it must be at least 1"):
        replace(PAIRWISE, runs=0)
