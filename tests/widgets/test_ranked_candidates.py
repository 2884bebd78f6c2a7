"""Candidates in the order of a system: places, bars, what is framed and what is folded, and hostile texts."""

import html as html_library
import re
from dataclasses import replace

import pytest

from cdlm_lab.widgets.html import CROSS, GLOBAL, OTHER_COLOURS
from cdlm_lab.widgets.rankings import OPEN, ReadRanking, ranking_html, rankings_page

HOSTILE = "<script>x</script> \"'&\u202e"
SHOWN = "&lt;script&gt;x&lt;/script&gt; &quot;&#x27;&amp;\u2039U+202E\u203a"
OUR_TAGS = {"div", "span", "bdi", "b", "style", "details", "summary"}
OUR_TAGS |= {"table", "thead", "tbody", "tr", "th", "td"}
WRONG = OTHER_COLOURS[0]

READ = ReadRanking(
    id="Q7",
    question="When was the light put out?",
    candidates=("It was built in 1871.", "In 1958.", "It is a cape.", "A museum."),
    right=(False, True, False, False),
    # e^0.8473 = 7/3, so the probability is 0.7
    scores={"pairwise": (2.0, 1.0, -1.0, 0.0), "joint": (-2.2, 0.8473, -9.0, -2.0)},
)
CASCADE = replace(READ, scores=READ.scores | {"cascade": (-2.2, -3.0, None, None)})


def plain(html):
    return " ".join(html_library.unescape(re.sub(r"<[^>]*>", " ", html)).split())


def rows(html):
    """The cells of each candidate in sight or folded, as text."""
    return [
        [plain(cell) for cell in re.findall(r"<td.*?</td>", row)]
        for row in re.findall(r"<tr><td.*?</tr>", html)
    ]


def legend(html):
    return plain(re.search(r'<div class="cdlm-legend".*?</div>', html)[0])


def box(html, text):
    """The style of the box around a candidate."""
    return re.search(rf'<div style="([^"]*)" dir="auto">[^/]*(?:</b> )?{re.escape(text)}', html)[1]


def test_candidates_with_probability_and_both_places():
    html = ranking_html(READ, system="joint", beside="pairwise")
    assert rows(html) == [
        ["1", "70%", "2 \u25b21", "\u2713 In 1958."],
        ["2", "12%", "3 \u25b21", "A museum."],
        ["3", "10%", "1 \u25bc2", "It was built in 1871."],
        ["4", "0%", "4", "It is a cape."],
    ]
    assert re.findall(rf"width:(\d+)%;background:{GLOBAL}", html) == ["70", "12", "10", "0"]
    assert [plain(cell) for cell in re.findall(r"<th.*?</th>", html)] == [
        *("", "probability", "pairwise", "candidate")
    ]


def test_one_system_alone():
    html = ranking_html(READ, system="pairwise")
    assert [row[0::2] for row in rows(html)] == [
        ["1", "It was built in 1871."],
        ["2", "\u2713 In 1958."],
        ["3", "A museum."],
        ["4", "It is a cape."],
    ]
    assert "first by" not in plain(html)
    assert "pairwise \u2717 wrong" in plain(html)
    assert html == ranking_html(READ, system="pairwise", beside="pairwise")


@pytest.mark.parametrize(
    ("right", "line"),
    [
        ((False, True, False, False), "pairwise \u2717 wrong \u00b7 joint \u2713 right \u00b7 repaired"),
        ((True, False, False, False), "pairwise \u2713 right \u00b7 joint \u2717 wrong \u00b7 broken"),
        ((True, True, False, False), "pairwise \u2713 right \u00b7 joint \u2713 right \u00b7 both right"),
        ((False, False, True, False), "pairwise \u2717 wrong \u00b7 joint \u2717 wrong \u00b7 both wrong"),
        (
            (False,) * 4,
            "pairwise \u2717 wrong \u00b7 joint \u2717 wrong \u00b7 both wrong "
            "\u00b7 none of the candidates is right",
        ),
    ],
)
def test_what_became_of_the_question(right, line):
    read = replace(READ, right=right)
    html = ranking_html(read, system="joint", beside="pairwise")
    assert line in plain(html)
    assert ("none of" in line) == ("none of the candidates is right" in plain(html))
    assert read.outcome("joint", beside="pairwise") in line


def test_what_the_other_system_put_on_top_is_framed():
    html = ranking_html(READ, system="joint", beside="pairwise")
    assert f"border:1px solid {WRONG}" in box(html, "It was built in 1871.")
    assert "border" not in box(html, "In 1958.").replace("border-radius", "")
    right = replace(READ, right=(True, True, False, False))
    assert f"border:1px solid {CROSS}" in box(
        ranking_html(right, system="joint", beside="pairwise"), "It was"
    )
    unknown = ranking_html(replace(READ, right=None), system="joint", beside="pairwise")
    assert f"border:1px solid {GLOBAL}" in box(unknown, "It was")


def test_right_candidates_stand_on_green_with_a_sign():
    html = ranking_html(READ, system="joint", beside="pairwise")
    assert f"background:{CROSS}30" in box(html, "In 1958.")
    assert "background" not in box(html, "A museum.")
    assert (
        legend(html) == "\u2713 right answer first by pairwise \u25b2 \u25bc places up and down from pairwise"
    )


def test_without_labels_nothing_is_right_or_wrong():
    html = ranking_html(replace(READ, right=None), system="joint")
    assert not re.search("right|wrong|\u2713|\u2717", plain(html))
    assert "cdlm-legend" not in html


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
    html = ranking_html(many(right=(14,)), system="joint", beside="pairwise")
    folded = re.findall(r"<details.*?</details>", html)
    assert [plain(re.search("<summary.*?</summary>", fold)[0]) for fold in folded] == [
        "places 11 to 14",
        "places 16 to 29",
    ]
    shown = rows(re.sub(r"<details.*?</details>", "", html))
    assert [row[0] for row in shown] == [*map(str, range(1, OPEN + 1)), "15", "30"]
    assert [row[0] for row in rows(html)] == [str(place) for place in range(1, 31)]
    assert html.count("<thead>") == 1
    open_ = ranking_html(many(right=(14,)), system="joint", beside="pairwise", folded=False)
    assert "<details" not in open_
    assert rows(open_) == rows(html)


def test_one_folded_place():
    html = ranking_html(many(right=range(11, 30)), system="joint")
    assert plain(re.search("<summary.*?</summary>", html)[0]) == "place 11"


def test_ties_keep_the_order_of_the_candidates_and_never_look_at_labels():
    for right in ((0,), (29,), ()):
        tied = many(right=right, scores={"a": [1.0] * 30, "b": [None, *[0.0] * 29]})
        assert tied.order("a") == tuple(range(30))
        assert tied.order("b", beside="a") == (*range(1, 30), 0)
        assert tied.right_on_top("a") is (0 in right)
        assert tied.right_on_top("b") is False
    assert many().right_on_top("joint") is False
    assert replace(many(), right=None).right_on_top("joint") is None
    assert replace(many(), right=None).outcome("joint", beside="pairwise") is None


def test_far_scores_become_probabilities_without_overflow():
    read = replace(READ, scores={"joint": (1e4, -1e4, 0.0, None)})
    assert read.probabilities("joint") == [1.0, 0.0, 0.5, None]


def test_texts_are_escaped():
    hostile = ReadRanking(
        id=HOSTILE,
        question=HOSTILE,
        candidates=(HOSTILE, HOSTILE),
        right=(True, False),
        scores={HOSTILE: (1.0, None), HOSTILE + "2": (0.0, 1.0)},
    )
    html = ranking_html(hostile, system=HOSTILE, beside=HOSTILE + "2")
    assert "<script" not in html
    assert "\u202e" not in html
    assert set(re.findall(r"<(\w+)", html)) <= OUR_TAGS
    assert html.count(SHOWN) == 2 + 2 + 2 + 3 + 1  # id, question; candidates; verdicts; legend; heading
    page = rankings_page([hostile], system=HOSTILE, beside=HOSTILE + "2", title=HOSTILE)
    assert "<script" not in page
    assert page.count(f"<title>{SHOWN}</title>") == 1


def test_a_page_runs_nothing_and_loads_nothing():
    broken = replace(READ, right=(True, False, False, False))
    unknown = replace(READ, right=None)
    page = rankings_page(
        [READ, broken, broken, unknown], system="joint", beside="pairwise", title="Dev <set>"
    )
    assert page.startswith("<!doctype html>")
    assert page.endswith("</body></html>")
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert "4 questions; joint right on 1 of 3; pairwise right on 2 of 3; 1 repaired; 2 broken<" in page
    assert page.count('<div class="cdlm-view cdlm-ranking"') == 4
    assert not re.search(r"https?:|<link|<img|\son\w+=", page)
    assert "1 question; joint right on 1 of 1<" in rankings_page([READ], system="joint", title="One")
    assert "1 question<" in rankings_page([unknown], system="joint", beside="joint", title="Own")
    with pytest.raises(ValueError, match="reads is empty"):
        rankings_page([], system="joint", title="None")


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
