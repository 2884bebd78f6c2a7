"""A claim with its evidence: labels with probabilities, shades by share."""

import re
from dataclasses import replace

from shown_reads import bars_of, cells_of, words_of

from cdlm_lab.tasks.joint.claims_view import ReadClaim, verdict_html
from cdlm_lab.views.html import CROSS, GLOBAL, WRONG

READ = ReadClaim(
    id="c7",
    claim="The light was put out in 1871.",
    evidence=("Light. It was built in 1871.", "Light. It was put out in 1958.", "Cape. It is a cape."),
    probabilities={"supported": 0.25, "refuted": 0.7, "not enough info": 0.05},
    shares=(0.2, 0.8, 0.0),
    gold="refuted",
)
MISJUDGED = replace(READ, gold="supported")
OWN = replace(READ, id="", gold=None, shares=None)


def shown(read, shares="share in the verdict"):
    return verdict_html(read, shares=shares)


def rows(html):
    """The rows of labels, and those of evidence, as text."""
    cells = cells_of(html, words_of)
    return cells[:3], cells[3:]


def depths(html):
    """Of the grounds of the evidence, 0 to 255."""
    return [int(depth, 16) for depth in re.findall(rf"background:{GLOBAL}([0-9a-f]{{2}})\" dir=", html)]


def test_labels_with_probabilities_and_marks_right_and_wrong_in_words():
    assert rows(shown(READ))[0] == [
        ["25%", "supported", ""],
        ["70%", "refuted", "\u25cf predicted \u25c6 gold"],
        ["5%", "not enough info", ""],
    ]
    assert (READ.predicted, READ.right, MISJUDGED.right, OWN.right) == ("refuted", True, False, None)
    for read, marks, colour, verdict in (
        (READ, ["", "\u25cf predicted \u25c6 gold", ""], CROSS, "\u2713 right "),
        (MISJUDGED, ["\u25c6 gold", "\u25cf predicted", ""], WRONG, "\u2717 wrong "),
        (OWN, ["", "\u25cf predicted", ""], "", ""),
    ):
        html = shown(read)
        assert [row[2] for row in rows(html)[0]] == marks
        assert f"in 1871. refuted {verdict}25%" in words_of(html)
        assert not colour or f'<b style="color:{colour}">{verdict[0]}</b>' in html
    assert replace(OWN, probabilities={"b": 0.5, "a": 0.5}).predicted == "b", "ties go to the first"


def test_evidence_in_its_order_with_shares():
    html = shown(READ)
    assert rows(html)[1] == [
        ["1", "20%", "Light. It was built in 1871."],
        ["2", "80%", "Light. It was put out in 1958."],
        ["3", "0%", "Cape. It is a cape."],
    ]
    assert depths(html) == [26, 102, 0]  # half of 255 times the share
    assert bars_of(html) == [25, 70, 5, 20, 80, 0]
    assert "0% 50% 100% share in the verdict" in words_of(html)
    assert "100% what leaving it out costs" in words_of(shown(READ, "what leaving it out costs"))


def test_without_shares_or_evidence():
    html = shown(OWN)
    assert rows(html)[1] == [[str(n), text] for n, text in enumerate(READ.evidence, start=1)]
    assert depths(html) == []
    assert "share" not in words_of(html)
    none = shown(replace(READ, evidence=(), shares=()))
    assert rows(none)[1] == []
    assert "no evidence was retrieved" in none
    assert "no evidence" not in html


def test_ends_and_sentences_that_were_not_read_are_struck_out():
    whole, second, third = map(len, READ.evidence)
    read = replace(READ, read=(whole, second - 8, 0), shares=(0.2, 0.8, None))
    html = shown(read)
    struck = [words_of(one) for one in re.findall(r"<s [^>]*>.*?</s>", html)]
    assert struck == ["struck out", "in 1958.", "Cape. It is a cape."]
    assert [row[1] for row in rows(html)[1]] == ["20%", "80%", "not read"]
    assert "<s " not in shown(replace(READ, read=(whole, second, third)))
    assert "<s " not in shown(READ)
