"""Candidates in the order of a system: places, bars, frames, folds; and figures of joint reading."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from shown_reads import bars_of, cells_of, legend_of, words_of

from cdlm_lab.tasks.joint import answers_view as rankings
from cdlm_lab.tasks.joint.answers_view import HIGHEST, OPEN, Latency, ReadRanking, score_spread_figure
from cdlm_lab.tasks.joint.ranking import ranking_table
from cdlm_lab.views.html import CROSS, GLOBAL, WRONG

READ = ReadRanking(
    id="Q7",
    question="When was the light put out?",
    candidates=("It was built in 1871.", "In 1958.", "It is a cape.", "A museum."),
    right=(False, True, False, False),
    # e^0.8473 = 7/3, so the probability is 0.7
    scores={"pairwise": (2.0, 1.0, -1.0, 0.0), "joint": (-2.2, 0.8473, -9.0, -2.0)},
)
CASCADE = replace(READ, scores=READ.scores | {"cascade": (-2.2, -3.0, None, None)})
NAN, INFINITE = float("nan"), float("inf")


def shown(read=READ, system="joint", beside="pairwise"):
    return rankings.ranking_html(read, system=system, beside=beside)


def box(html, text):
    """The style of the box around a candidate."""
    return re.search(rf'<div style="([^"]*)" dir="auto">[^/]*(?:</b> )?{re.escape(text)}', html)[1]


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


def test_frames_grounds_and_their_legend():
    html = shown()
    assert f"border:1px solid {WRONG}" in box(html, "It was built in 1871.")
    assert "border:" not in box(html, "In 1958.")
    assert f"background:{CROSS}30" in box(html, "In 1958.")
    assert "background" not in box(html, "A museum.")
    places = "\u25b2 \u25bc places up and down from pairwise"
    assert legend_of(html, words_of) == f"\u2713 right answer first by pairwise {places}"
    for right, colour in (((True, True, False, False), CROSS), (None, GLOBAL)):
        assert f"border:1px solid {colour}" in box(shown(replace(READ, right=right)), "It was")
    alone = shown(replace(READ, right=None), beside="joint")
    assert not re.search("right|wrong|\u2713|\u2717", words_of(alone))
    assert "cdlm-legend" not in alone


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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"candidates": (), "right": None}, "there are no candidates"),
        ({"scores": {}}, "there are no scores"),
        ({"right": (True,)}, "1 labels for 4 candidates; give one for each"),
        ({"scores": {"joint": (1.0,)}}, "joint: 1 scores for 4 candidates; give one for each"),
        ({"scores": {"joint": (None,) * 4}}, "joint has read no candidate"),
        ({"scores": {"joint": (1.0, 2.0, NAN, None)}}, "joint: a score is nan; it must be finite"),
        ({"scores": {"joint": (1.0, 2.0, -INFINITE, 0.0)}}, "joint: a score is -inf"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, message):
    for name, more in (("Q7", {}), (re.escape(READ.question), {"id": ""})):
        with pytest.raises(ValueError, match=f"^question '{name}': {message}"):
            replace(READ, **wrong, **more)


def test_an_unknown_system_is_refused():
    for ask in (READ.order, READ.probabilities, READ.right_on_top, lambda name: shown(beside=name)):
        with pytest.raises(ValueError, match="question 'Q7': no scores of 'own'; it has pairwise, joint"):
            ask("own")


def placed(accuracy, always_wrong=(0.9, 0.8, 0.7)):
    return SimpleNamespace(accuracy=accuracy, always_wrong=always_wrong)


def test_accuracy_by_place_between_what_calling_each_wrong_gets_and_the_share_of_right_ones():
    figure = rankings.accuracy_by_place_figure(
        {"joint": placed([0.95, 0.5, 0.25]), "pairwise": placed([0.9] * 3)}
    )
    assert {line.name: (line.x, line.y) for line in figure.data} == {
        "joint": ((1, 2, 3), (95, 50, 25)),
        "pairwise": ((1, 2, 3), (90, 90, 90)),
        "calling each wrong": ((1, 2, 3), (90, 80, 70)),
        "right candidates": ((1, 2, 3), (10, 20, 30)),
    }
    assert len({(line.line.color, line.line.dash) for line in figure.data}) == 4
    assert figure.layout.xaxis.tickvals == (1, 2, 3)
    broken = rankings.accuracy_by_place_figure({"a": placed([0.5, NAN, 0.5], (0.9, NAN, 0.8))})
    assert [line.y[1:] for line in broken.data] == [(None, 50), (None, 80), (None, 20)], "no candidate there"
    several = rankings.accuracy_by_place_figure({name: placed([0.9] * 3) for name in "abcdefgh"}).data[:8]
    assert len({line.marker.color for line in several}) == 8
    assert len({line.marker.symbol for line in several[:5]}) == 5


HALF = placed([0.5] * 3)


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ({}, "systems is empty"),
        ({"a": placed([0.5, 1.5, 0.5])}, r"a: accuracy must lie in \[0, 1\], got 1\.5"),
        ({"a": placed([0.5], 0.5)}, r"a: always_wrong must have shape \(k,\), got \(\)"),
        ({"a": HALF, "b": placed([0.5] * 3, (0.9, 0.8, 0.6))}, "b: its candidates are not"),
        ({"a": HALF, "b": placed([0.5] * 2, (0.9, 0.8))}, "b: its candidates are not those of a"),
    ],
)
def test_accuracies_that_make_no_sense_are_refused(systems, message):
    with pytest.raises(ValueError, match=message):
        rankings.accuracy_by_place_figure(systems)


def test_spreads_are_a_row_for_each_system():
    figure = score_spread_figure({"joint": [0.0, 0.01, 4.0, 0.03], "pairwise": [2.0, 2.0], "none": []})
    labels = [words_of(text) for text in figure.layout.yaxis.ticktext]
    assert labels == ["joint median 0.02, 4 groups", "pairwise median 2, 2 groups"]
    assert figure.layout.yaxis.tickvals == (1 + HIGHEST / 2, HIGHEST / 2)
    ground, area, tick, ground_2, area_2, tick_2 = figure.data
    assert (ground.y, ground_2.y) == ((1, 1), (0, 0))
    assert (tick.x, tick_2.x) == ((0.02, 0.02), (2, 2))
    assert (area.x[0], area.x[1], area.x[-1]) == (0, 0, 4)
    heights = np.array(area.y[1:-1:2]) - 1  # of each bin
    assert heights.tolist() == pytest.approx([HIGHEST, *[0] * (rankings.BINS - 2), HIGHEST / 3], abs=1e-4)
    assert area.text[1] == "75.0% of the groups"
    assert area_2.y[0] == area_2.y[-1] == 0
    assert np.argmax(area_2.y[1:-1:2]) == rankings.BINS // 2
    assert figure.layout.xaxis.title.text == "standard deviation of log-odds within a group"
    collapsed = score_spread_figure({"joint": [0.0, 0.0]})
    assert collapsed.data[1].y[1] == HIGHEST
    assert collapsed.layout.xaxis.range[1] > 0


@pytest.mark.parametrize(
    ("spreads", "message"),
    [
        ({}, "spreads is empty"),
        ({"a": [0.1, -0.2]}, r"a: a spread is -0\.2; it must be finite and not negative"),
        ({"a": [NAN]}, "a: a spread is nan"),
        ({"a": [INFINITE]}, "a: a spread is inf"),
    ],
)
def test_spreads_that_make_no_sense_are_refused(spreads, message):
    with pytest.raises(ValueError, match=message):
        score_spread_figure(spreads)


PAIRWISE = Latency(system="pairwise", seconds=0.05, fastest=0.04, slowest=0.06, runs=3)
JOINT = Latency(system="joint", seconds=0.057, fastest=0.05, slowest=0.08, runs=1)


def test_latencies_with_their_runs_and_how_many_times_as_long():
    slow = replace(JOINT, system="slow", seconds=1.0, slowest=1.25)
    figure = rankings.latency_figure([PAIRWISE, JOINT, slow], against="pairwise")
    bars, numbers = figure.data
    assert (bars.x, bars.y) == ((50, 57, 1000), (0, 1, 2))
    assert bars.error_x.array == pytest.approx((10, 23, 250))
    assert bars.error_x.arrayminus == pytest.approx((10, 7, 950))
    written = [text.strip() for text in numbers.text]
    assert written == ["50.0 ms", "57.0 ms, 1.14 \u00d7", "1,000.0 ms, 20.00 \u00d7"]
    assert numbers.x == (60, 80, 1250)
    assert bars.hovertext[:2] == (
        "pairwise<br>median 50.0 ms of 3 runs, 40.0 ms to 60.0 ms",
        "joint<br>median 57.0 ms of 1 run, 50.0 ms to 80.0 ms",
    )
    assert figure.layout.yaxis.ticktext == ("pairwise", "joint", "slow")
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1], "from top to bottom"
    assert figure.layout.xaxis.title.text == "milliseconds for one question; \u00d7: times pairwise"
    other = rankings.latency_figure([PAIRWISE, JOINT], against="joint")
    assert [text.strip() for text in other.data[1].text] == ["50.0 ms, 0.88 \u00d7", "57.0 ms"]


def test_latencies_that_make_no_sense_are_refused():
    for wrong in ([], [PAIRWISE, PAIRWISE]):
        with pytest.raises(ValueError, match="give each system once, and at least one"):
            rankings.latency_figure(wrong, against="pairwise")
    with pytest.raises(ValueError, match="there is no 'pairwise' to compare with; choose from joint"):
        rankings.latency_figure([JOINT], against="pairwise")
    times = ({"fastest": 0.0}, {"fastest": 0.055}, {"slowest": 0.04}, {"seconds": NAN}, {"slowest": INFINITE})
    for changed in times:
        with pytest.raises(ValueError, match=r"pairwise: fastest, median and slowest \(.*\) must be above 0"):
            replace(PAIRWISE, **changed)
    with pytest.raises(ValueError, match="pairwise: runs is 0; it must be at least 1"):
        replace(PAIRWISE, runs=0)


def test_ends_of_candidates_that_were_not_read_are_struck_out():
    html = shown(replace(READ, read=(6, 8, 0, 9)))
    struck = [words_of(one) for one in re.findall(r"<s [^>]*>.*?</s>", html)]
    assert struck == ["struck out", "built in 1871.", "It is a cape."]
    assert "<s " not in shown(replace(READ, read=tuple(map(len, READ.candidates))))
    assert "<s " not in shown()
    table = ranking_table(replace(READ, read=(6, 8, 0, 9), cut="sentences: 4 of 9 tokens are not read"))
    struck = [words_of(one) for one in re.findall(r"<s [^>]*>.*?</s>", table)]
    assert struck == ["built in 1871.", "It is a cape.", "Struck out"]
    assert table.index("4 of 9 tokens are not read") < table.index("In 1958.")
    with pytest.raises(ValueError, match="1 numbers of characters read for 4 candidates; give one for each"):
        replace(READ, read=(1,))
