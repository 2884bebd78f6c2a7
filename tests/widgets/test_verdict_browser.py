"""Choosing claims by verdict and label, and leafing through them."""

import pytest

from cdlm_lab.widgets.browse import EMPTY_VERDICTS as EMPTY
from cdlm_lab.widgets.browse import VerdictBrowser, verdict_browser
from cdlm_lab.widgets.verdicts import ReadClaim


def read(number, predicted, gold):
    probabilities = dict.fromkeys(("supported", "refuted", "not enough info"), 0.2)
    return ReadClaim(
        id=f"c{number}",
        claim=f"Claim {number}.",
        evidence=("A.",),
        probabilities=probabilities | {predicted: 0.6},
        shares=(0.5,),
        gold=gold,
    )


READS = [
    read(0, "supported", "supported"),
    read(1, "refuted", "supported"),
    read(2, "refuted", "refuted"),
    read(3, "not enough info", "refuted"),
    read(4, "refuted", None),
]


def entries(browser, name):
    return [label for label, _ in browser.filters[name].options]


def listed(browser):
    return [number for _, number in browser.picker.options]


def test_it_begins_with_all_claims_and_the_first():
    browser = VerdictBrowser(READS)
    assert entries(browser, "verdict") == ["all (5)", "right (2)", "wrong (2)"]
    assert entries(browser, "gold") == ["all (5)", "supported (2)", "refuted (2)", "not enough info (0)"]
    assert entries(browser, "predicted") == ["all (5)", "supported (1)", "refuted (3)", "not enough info (1)"]
    assert [label for label, _ in browser.picker.options] == [
        "\u2713 1. Claim 0.",
        "\u2717 2. Claim 1.",
        "\u2713 3. Claim 2.",
        "\u2717 4. Claim 3.",
        "\u00b7 5. Claim 4.",
    ]
    assert "Claim 0." in browser.claim.value


@pytest.mark.parametrize(
    ("choice", "numbers"),
    [
        ({"verdict": "right"}, [0, 2]),
        ({"verdict": "wrong"}, [1, 3]),
        ({"gold": "supported"}, [0, 1]),
        ({"gold": "refuted"}, [2, 3]),
        ({"predicted": "refuted"}, [1, 2, 4]),
        ({"predicted": "not enough info"}, [3]),
        ({"verdict": "wrong", "gold": "supported"}, [1]),
        ({"verdict": "right", "predicted": "not enough info"}, []),
    ],
)
def test_lists_choose_together(choice, numbers):
    browser = VerdictBrowser(READS)
    for name, entry in choice.items():
        browser.filters[name].value = entry
    assert listed(browser) == numbers
    shown = [number for number, one in enumerate(READS) if one.claim in browser.claim.value]
    assert shown == numbers[:1]
    assert (browser.claim.value == EMPTY) == (not numbers)


def test_lines_and_labels_show_hidden_characters():
    label = "l\u202e"
    long = ReadClaim(
        id="",
        claim=f"So\u202e\n {'so ' * 40}<b>.",
        evidence=(),
        probabilities={label: 1.0},
        shares=None,
        gold=label,
    )
    browser = VerdictBrowser([long])
    line = browser.picker.options[0][0]
    assert line.startswith("\u2713 1. So\u2039U+202E\u203a so so")
    assert line.endswith("\u2026")
    assert len(line) <= 5 + 90
    assert entries(browser, "gold") == ["all (1)", "l\u2039U+202E\u203a (1)"]
    browser.filters["predicted"].value = "l\u2039U+202E\u203a"
    assert listed(browser) == [0]


def test_the_box_holds_lists_and_claim():
    filters, leafing, claim = verdict_browser(READS, shares="weight").children
    assert [part.description for part in filters.children] == ["verdict", "gold", "predicted"]
    assert len(leafing.children) == 4
    assert "> weight<" in claim.value
    with pytest.raises(ValueError, match="there is no claim to show: reads is empty"):
        verdict_browser([])
