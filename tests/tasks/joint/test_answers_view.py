"""Candidates in the order of a system: places, bars, frames, folds; and figures of joint reading."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from shown_reads import bars_of, cells_of, legend_of, words_of

from cdlm_lab.tasks.joint import answers_view as rankings
from cdlm_lab.tasks.joint.answers_view import OPEN, ReadRanking
from cdlm_lab.tasks.joint.ranking import Latency

READ = ReadRanking(
    id="Q7",
    question="When was the light put out?",
    candidates=("It was built in 1871.", "In 1958.", "It is a cape.", "A museum."),
    right=(False, True, False, False),
    # e^0.8473 = 7/3, so the probability is 0.7
    scores={"pairwise": (2.0, 1.0, -1.0, 0.0), "joint": (-2.2, 0.8473, -9.0, -2.0)},
)
CASCADE = replace(READ, scores=READ.scores | {"cascade": (-2.2, -3.0, None, None)})


def shown(read=READ, system="joint", beside="pairwise"):
    return rankings.ranking_html(read, system=system, beside=beside)


def test_candidates_with_probability_and_both_places():
    html = shown()
    assert cells_of(html, words_of) == [
        ["1", "70%", "2 \u25b21", "\u2713 In 1958."],
        ["2", "12%", "3 \u25b21", "A museum."],
        ["3", "10%", "1 \u25bc2", "It was built in 1871."],
        ["4", "0%", "4", "It is a cape."],
    ]
    assert bars_of(html) == [70, 12, 10, 0]
    heads = [words_of(cell) for cell in re.findall(r"<th .*?</th>", html)]
    assert heads == ["", "probability", "pairwise", "candidate"]
    alone = shown(system="pairwise")
    order = ["It was built in 1871.", "\u2713 In 1958.", "A museum.", "It is a cape."]
    assert [row[0::2] for row in cells_of(alone, words_of)] == [[f"{n + 1}", t] for n, t in enumerate(order)]
    assert "first by" not in words_of(alone)
    assert "pairwise \u2717 wrong" in words_of(alone)


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
    text = " ".join(words_of(shown(read)).split())
    assert line in text
    assert ("none of" in line) == ("none of the candidates is right" in text)
    assert read.outcome("joint", beside="pairwise") in line


def test_what_a_cascade_leaves_out_stands_below():
    html = shown(CASCADE, "cascade")
    assert cells_of(html, words_of) == [
        ["1", "10%", "1", "It was built in 1871."],
        ["2", "5%", "2", "\u2713 In 1958."],
        ["3", "not read", "3", "A museum."],  # before the cape, as pairwise has it
        ["4", "not read", "4", "It is a cape."],
    ]
    assert "not read: below what was read, in the order of pairwise" in legend_of(html, words_of)
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
    html = shown(many(right=(14,)))
    summaries = [words_of(one) for one in re.findall(r"<summary.*?</summary>", html)]
    assert summaries == ["places 11 to 14", "places 16 to 29"]
    unfolded = cells_of(re.sub(r"<details.*?</details>", "", html))
    assert [row[0] for row in unfolded] == [*map(str, range(1, OPEN + 1)), "15", "30"]
    assert [row[0] for row in cells_of(html)] == [str(place) for place in range(1, 31)]
    assert html.count("<thead>") == 1
    one = shown(many(right=range(11, 30)), beside="joint")
    assert words_of(re.search("<summary.*?</summary>", one)[0]) == "place 11"


def test_ties_keep_the_order_of_the_candidates_and_never_look_at_labels():
    for right in ((0,), (29,), ()):
        tied = many(right=right, scores={"a": [1.0] * 30, "b": [None, *[0.0] * 29]})
        assert tied.order("a") == tuple(range(30))
        assert tied.order("b", beside="a") == (*range(1, 30), 0)
        assert tied.right_on_top("a") is (0 in right)
        assert tied.right_on_top("b") is False
    unknown = replace(many(), right=None)
    assert (unknown.right_on_top("joint"), unknown.outcome("joint", beside="pairwise")) == (None, None)
    far = replace(READ, scores={"joint": (1e4, -1e4, 0.0, None)})
    assert far.probabilities("joint") == [1.0, 0.0, 0.5, None], "without overflow"


def test_ends_of_candidates_that_were_not_read_are_struck_out():
    html = shown(replace(READ, read=(6, 8, 0, 9)))
    struck = [words_of(one) for one in re.findall(r"<s [^>]*>.*?</s>", html)]
    assert struck == ["struck out", "built in 1871.", "It is a cape."]
    assert "<s " not in shown(replace(READ, read=tuple(map(len, READ.candidates))))
    assert "<s " not in shown()


def test_figures_have_a_line_a_box_and_a_bar_for_each_system():
    accuracy = np.array([0.95, 0.5, np.nan])
    placed = SimpleNamespace(accuracy=accuracy, always_wrong=np.array([0.9, 0.75, 0.75]))
    figure = rankings.accuracy_by_place_figure({"joint": placed, "other": placed})
    assert [line.name.partition(",")[0] for line in figure.data][2:] == [
        "calling each wrong",
        "right candidates",
    ]
    assert list(figure.data[0].y[:2]) == [95, 50]
    assert list(figure.data[3].y) == pytest.approx([10, 25, 25])
    assert len({(line.line.color, line.line.dash) for line in figure.data}) == 4
    spread = rankings.score_spread_figure({"joint": [0.0, 0.01, 4.0], "pairwise": [2.0, 2.0]})
    assert list(spread.data[0].median) == [0.01, 2]
    assert spread.layout.xaxis.ticktext == ("joint", "pairwise")
    pairwise = Latency(system="pairwise", seconds=0.05, fastest=0.04, slowest=0.06, runs=3)
    joint = replace(pairwise, system="joint", seconds=0.057, slowest=0.08)
    figure = rankings.latency_figure([pairwise, joint], against="pairwise")
    bars, shown = figure.data[0], [re.sub("<[^>]*>", " ", row) for row in figure.layout.yaxis.ticktext]
    rows = ["pairwise 50.0 ms, 1.00 \u00d7", "joint 57.0 ms, 1.14 \u00d7"]
    assert [" ".join(row.split()) for row in shown] == rows
    assert list(bars.error_x.array) == pytest.approx([10, 23])
    assert list(bars.error_x.arrayminus) == pytest.approx([10, 17])
