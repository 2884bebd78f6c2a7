"""A claim with its evidence: labels with probabilities, shades by share, and hostile texts."""

import html as html_library
import re
from dataclasses import replace

import pytest

from cdlm_lab.widgets.html import CROSS, GLOBAL, OTHER_COLOURS
from cdlm_lab.widgets.verdicts import ReadClaim, verdict_html, verdicts_page

HOSTILE = "<script>x</script> \"'&\u202e"
SHOWN = "&lt;script&gt;x&lt;/script&gt; &quot;&#x27;&amp;\u2039U+202E\u203a"
OUR_TAGS = {"div", "span", "b", "style", "table", "tbody", "tr", "td"}
READ = ReadClaim(
    id="c7",
    claim="The light was put out in 1871.",
    evidence=("Light. It was built in 1871.", "Light. It was put out in 1958.", "Cape. It is a cape."),
    probabilities={"supported": 0.25, "refuted": 0.7, "not enough info": 0.05},
    shares=(0.2, 0.8, 0.0),
    gold="refuted",
)
WRONG = replace(READ, gold="supported")
OWN = replace(READ, id="", gold=None, shares=None)


def plain(html):
    return " ".join(html_library.unescape(re.sub(r"<[^>]*>", " ", html)).split())


def tables(html):
    """The rows of labels, and those of evidence, as text."""
    return [
        [
            [plain(cell) for cell in re.findall(r"<td.*?</td>", row)]
            for row in re.findall(r"<tr>.*?</tr>", table)
        ]
        for table in re.findall(r"<table.*?</table>", html)
    ]


def depths(html):
    """Of the grounds of the evidence, 0 to 255."""
    return [int(depth, 16) for depth in re.findall(rf"background:{GLOBAL}([0-9a-f]{{2}})\" dir=", html)]


def test_labels_with_probabilities_and_marks():
    labels, _ = tables(verdict_html(READ))
    assert labels == [
        ["25%", "supported", ""],
        ["70%", "refuted", "\u25cf predicted \u25c6 gold"],
        ["5%", "not enough info", ""],
    ]
    assert [row[2] for row in tables(verdict_html(WRONG))[0]] == ["\u25c6 gold", "\u25cf predicted", ""]
    assert [row[2] for row in tables(verdict_html(OWN))[0]] == ["", "\u25cf predicted", ""]


def test_right_and_wrong_in_words():
    assert (READ.predicted, READ.right, WRONG.right, OWN.right) == ("refuted", True, False, None)
    assert "in 1871. refuted \u2713 right 25%" in plain(verdict_html(READ))
    assert f'<b style="color:{CROSS}">\u2713</b>' in verdict_html(READ)
    assert "in 1871. refuted \u2717 wrong 25%" in plain(verdict_html(WRONG))
    assert f'<b style="color:{OTHER_COLOURS[0]}">\u2717</b>' in verdict_html(WRONG)
    assert "in 1871. refuted 25%" in plain(verdict_html(OWN))
    assert replace(OWN, probabilities={"b": 0.5, "a": 0.5}).predicted == "b"


def test_evidence_in_its_order_with_shares():
    html = verdict_html(READ)
    assert tables(html)[1] == [
        ["1", "20%", "Light. It was built in 1871."],
        ["2", "80%", "Light. It was put out in 1958."],
        ["3", "0%", "Cape. It is a cape."],
    ]
    assert depths(html) == [26, 102, 0]  # half of 255 times the share
    assert re.findall(rf"width:(\d+)%;background:{GLOBAL}", html) == ["25", "70", "5", "20", "80", "0"]
    assert "0% 50% 100% share in the verdict" in plain(html)
    assert "100% what leaving it out costs" in plain(verdict_html(READ, shares="what leaving it out costs"))


def test_without_shares_or_evidence():
    html = verdict_html(OWN)
    assert tables(html)[1] == [["1", READ.evidence[0]], ["2", READ.evidence[1]], ["3", READ.evidence[2]]]
    assert depths(html) == []
    assert "share" not in plain(html)
    none = verdict_html(replace(READ, evidence=(), shares=()))
    assert len(tables(none)) == 1
    assert "no evidence was retrieved" in none
    assert "no evidence" not in html


def test_texts_are_escaped():
    hostile = ReadClaim(
        id=HOSTILE,
        claim=HOSTILE,
        evidence=(HOSTILE, HOSTILE),
        probabilities={HOSTILE: 1.0},
        shares=(0.5, 0.5),
        gold=HOSTILE,
    )
    html = verdict_html(hostile, shares=HOSTILE)
    assert "<script" not in html
    assert "\u202e" not in html
    assert set(re.findall(r"<(\w+)", html)) <= OUR_TAGS
    assert html.count(SHOWN) == 2 + 1 + 1 + 2 + 1  # id, claim; verdict; label; evidence; legend
    page = verdicts_page([hostile], title=HOSTILE, shares=HOSTILE)
    assert "<script" not in page
    assert page.count(f"<title>{SHOWN}</title>") == 1


def test_a_page_runs_nothing_and_loads_nothing():
    page = verdicts_page([READ, WRONG, OWN], title="Dev <set>", shares="weight")
    assert page.startswith("<!doctype html>")
    assert page.endswith("</body></html>")
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert "3 claims; 1 of 2 verdicts right<" in page
    assert page.count('<div class="cdlm-view cdlm-claim"') == 3
    assert page.count("> weight<") == 2
    assert not re.search(r"https?:|<link|<img|\son\w+=", page)
    assert "1 claim<" in verdicts_page([OWN], title="One")
    with pytest.raises(ValueError, match="there is no claim to show: reads is empty"):
        verdicts_page([], title="None")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"probabilities": {}}, "there are no labels"),
        ({"probabilities": {"refuted": 1.5}}, r"the probability of 'refuted' is 1\.5; it must lie"),
        ({"probabilities": {"refuted": float("nan")}}, "the probability of 'refuted' is nan"),
        ({"probabilities": {"refuted": 0.5, "b": 0.4}}, r"the probabilities sum to 0\.9; they must sum to 1"),
        ({"gold": "SUPPORTS"}, "the gold label 'SUPPORTS' has no probability; there are supported, refuted"),
        ({"shares": (0.5,)}, "1 shares for 3 sentences; give one for each"),
        ({"shares": (0.5, -0.1, 0.6)}, r"the share of sentence 1 is -0\.1; it must lie"),
        ({"shares": (0.5, 0.1, float("nan"))}, "the share of sentence 2 is nan"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, message):
    with pytest.raises(ValueError, match=f"^claim 'c7': {message}"):
        replace(READ, **wrong)
