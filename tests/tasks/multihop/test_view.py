"""A question in its paragraphs: shades, marks at the right characters, folding."""

import re
from dataclasses import replace

import pytest
from shown_reads import PARAGRAPHS, bars_of, grounds_of, legend_of, plain
from shown_reads import QUESTION as READ

from cdlm_lab.data.records import Paragraph
from cdlm_lab.tasks.multihop.view import question_html
from cdlm_lab.views.html import CROSS, WRONG

MEASURED = ("gold_answer", "gold_supporting", "answer_em", "answer_f1", "support_em", "support_f1")
OWN = replace(READ, **dict.fromkeys(MEASURED))


def of_tag(tag, html):
    """Texts of all elements of a tag, outside the legend."""
    body = re.sub(r'<div class="cdlm-legend".*?</div>', "", html)
    return [plain(one) for one in re.findall(rf"<{tag}[ >].*?</{tag}>", body)]


def sentences(html):
    """Of each row: what stands beside the sentence, the sentence, and the depth of its ground (0 to 255)."""
    rows = []
    for row in re.findall(r"<tr><td.*?</tr>", html.partition("</thead>")[2].partition("</table>")[2]):
        number, chips, text = re.findall(r"<td.*?</td>", row)
        beside = plain(number), plain(chips.replace("<br>", " "))
        rows.append((*beside, plain(text), *grounds_of(text)))
    return rows


def head(html):
    """Cells of the table above the paragraphs."""
    table = re.search(r"<thead>.*?</tbody>", html)[0]
    cells = (re.findall(r"<t[dh][ >].*?</t[dh]>", row) for row in re.findall(r"<tr.*?</tr>", table))
    return [[plain(cell) for cell in row] for row in cells]


def test_the_question_and_both_answers():
    html = question_html(READ)
    assert "bridge &middot; 5a8c" in html
    assert READ.question in html
    assert head(html) == [
        ["", "predicted", "gold", ""],
        ["answer", "envoy to Ghanafrom Shirley Temple", "Chief of Protocol", "\u2717 wrong F1 0.25"],
        ["support", "2 sentences", "2 sentences", "\u2713 right"],
    ]
    assert f'<b style="color:{WRONG}">\u2717</b>' in html
    assert f'<b style="color:{CROSS}">\u2713</b>' in html
    html = question_html(OWN)
    rows = [["answer", "envoy to Ghanafrom Shirley Temple"], ["support", "2 sentences"]]
    assert head(html) == [["", "predicted"], *rows]
    assert "gold" not in plain(html)
    assert of_tag("u", html) == []
    half = head(question_html(replace(OWN, gold_answer="yes", answer="", place=None)))
    assert half[1:] == [["answer", "\u2013", "yes", ""], ["support", "2 sentences", "\u2013", ""]]


def test_sentences_and_titles_with_probability_shade_and_names():
    html = question_html(READ)
    assert sentences(html) == [
        ("90%", "\u25cf predicted \u25c6 gold", "A film with Shirley Temple.", 115),  # of 0.5 * 255
        ("0%", "", " It is long.", 0),
        ("25%", "", "A date.", 32),
        ("60%", "\u25cf predicted", "She was an actress.", 76),
        ("100%", "\u25c6 gold", " She was envoy to Ghana, later Chief of Protocol.", 128),
        ("did not fit", "", " She died."),
    ]
    assert bars_of(html) == [90, 0, 25, 60, 100]
    titles = re.findall(r"<span[^>]*>\d+</span>&ensp;.*?needed: \d+%", html)
    lines = ["1 Kiss and Tell needed: 98%", "2 Judy needed: 10%", "3 Shirley Temple needed: 50%"]
    assert [" ".join(plain(title).split()) for title in titles] == lines


@pytest.mark.parametrize(
    ("start", "end", "marked", "underlined"),
    [
        (28, 42, ["envoy to Ghana"], ["Chief of Protocol"]),
        (50, 55, ["Chief"], ["Chief", " of Protocol"]),
        (11, 27, ["actress.", " She was"], ["Chief of Protocol"]),  # from one sentence into the next
        (66, 76, ["l", ".", " She die"], ["Chief of Protoco", "l"]),
    ],
)
def test_answers_in_their_places(start, end, marked, underlined):
    html = question_html(replace(READ, place=(2, "body", start, end)))
    assert of_tag("mark", html) == marked
    assert of_tag("u", html) == underlined
    assert "".join(row[2] for row in sentences(html)[3:]) == PARAGRAPHS[2].text
    html = question_html(replace(READ, place=(2, "title", 0, 7), answer="Shirley"))
    assert re.search(r"<bdi [^>]*><mark [^>]*>Shirley</mark> Temple</bdi>", html)
    assert of_tag("mark", html) == ["Shirley"]


@pytest.mark.parametrize(
    ("answer", "texts", "underlined"),
    [
        ("US", ("The US and us.", " Trust US."), ["US", "US"]),
        ("a big fire", ("A big", "  fire; a\u00a0big fire."), ["a\u00a0big fire"]),
        ("big fire", ("A big", "  fire."), ["big", "  fire"]),  # from one sentence into the next
        ("Town", ("The Town.", " A town."), ["Town", "Town"]),  # in the title
        ("yes", ("Oh yes.", " No."), []),
    ],
)
def test_where_the_gold_answer_is_underlined(answer, texts, underlined):
    other = Paragraph(title=answer, sentences=(f"{answer}.",))
    read = replace(
        READ,
        gold_answer=answer,
        place=None,
        paragraphs=(Paragraph(title="Old Town", sentences=texts), other),
        sentence_probabilities={(0, 0): 0.5, (0, 1): 0.5, (1, 0): 0.5},
        paragraph_probabilities=(0.5, 0.5),
        supporting=frozenset({(1, 0)}),
        gold_supporting=frozenset({(0, 0), (0, 1)}),
    )
    assert of_tag("u", question_html(read)) == underlined


def test_sentences_that_did_not_fit_are_struck_out_and_other_paragraphs_folded():
    html = question_html(READ)
    assert of_tag("s", html) == [" She died."]
    assert '<s title="did not fit" style="opacity:0.55"> She died.</s>' in html
    missed = question_html(replace(READ, gold_supporting=frozenset({(2, 2)})))
    assert sentences(missed)[-1] == ("did not fit", "\u25c6 gold", " She died.")
    (folded,) = re.findall(r"<details.*?</details>", html)
    assert plain(folded) == "2\u2002Judy\u2002needed: 10%25%A date."
    assert "<details style" in html


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({}, {0, 2}),
        ({"supporting": frozenset({(1, 0)})}, {0, 1, 2}),
        ({"supporting": frozenset(), "gold_supporting": None}, {2}),
        ({"supporting": frozenset(), "gold_supporting": None, "place": (1, "title", 0, 4)}, {1}),
        ({"supporting": frozenset(), "gold_supporting": frozenset({(1, 0)}), "place": None}, {1}),
    ],
)
def test_which_paragraphs_are_shown(changed, shown):
    assert replace(READ, **changed).shown_paragraphs == shown


def test_a_predicted_sentence_of_half_or_less_is_called_the_most_probable():
    low = {(0, 0): 0.05, (0, 1): 0.0, (1, 0): 0.01, (2, 0): 0.5, (2, 1): 0.04}
    read = replace(OWN, sentence_probabilities=low, supporting=frozenset({(0, 0), (2, 0)}))
    html = question_html(replace(read, support="two_paragraphs"))
    chips = {row[2].strip(): row[1] for row in sentences(html)}
    assert chips["A film with Shirley Temple."] == "\u25cf predicted most probable"
    assert chips["She was an actress."] == "\u25cf predicted most probable"
    assert chips["A date."] == ""
    assert "in two paragraphs only, there above 50%, or the most probable one if none is" in legend_of(html)
    assert "most probable" not in "".join(row[1] for row in sentences(question_html(OWN)))


def test_the_probability_of_the_answer_stands_beside_it():
    html = question_html(replace(OWN, answer_probability=0.0564))
    assert head(html)[1] == ["answer", "envoy to Ghana\u20025.6%from Shirley Temple"]
    assert "the probability of its type, span, yes or no times those of its first and" in legend_of(html)
    yes = question_html(replace(OWN, answer="yes", place=None, answer_probability=0.5))
    assert head(yes)[1] == ["answer", "yes\u200250.0%"]
    assert "of its type, span, yes or nostruck out" in legend_of(yes)
    assert "of its type" not in legend_of(question_html(OWN))
