"""A list is answered as its entries are one at a time, in their order; answers say where their parts stand in
the text as it was given."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from cdlm_lab.apply.loading import load
from cdlm_lab.parameters import ParameterError
from cdlm_lab.views.answers import Answers, Result

NAMES = {"rank": "answers", "verify": "claims", "answer": "questions", "tag": "tagging", "align": "matching"}
NAMES |= {
    "score": "matching",
    "clusters": "coreference",
    "encode": "cdlm",
    "fill": "cdlm",
    "attention": "cdlm",
}
TEXTS = {"texts": ["The recount began on [MASK] in Telk.", "Votes were counted again. It ended late."]}
# What each verb is asked besides the example of its model, which is longer.
SHORT: dict[str, dict[str, Any]] = {
    "rank": {"question": "How many?", "candidates": ["The blast killed 75 miners."]},
    "verify": {"claim": "The police had 9 officers.", "evidence": []},
    "answer": {
        "question": "Who left?",
        "documents": {"Telk": "Yessel Brandir left Telk.", "Soup": "It was hot."},
    },
    "tag": {"text": "Yessel Brandir left Telk."},
    "align": {"first": "The doors of 33 exits were chained.", "second": "The market opened late."},
    "score": {"first": "The doors of 33 exits were chained.", "second": "The market opened late."},
    "clusters": {"documents": {"a": "A <m>fire</m> broke out.", "b": "The <m>blaze</m> is out."}},
    "encode": {"texts": ["A fire broke out."]},
    "fill": {"texts": ["A [MASK] broke out."]},
    "attention": {"texts": ["The recount broke.", "The count is out."], "source": (0, "recount")},
}


def close(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, numbers up to the rounding of another batch."""
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(close(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float):
        return bool(np.isclose(one, other, rtol=1e-3, atol=1e-3))  # they compute in bfloat16 where it is fast
    return one == other


@pytest.mark.parametrize("verb", SHORT)
def test_a_list_is_answered_as_its_entries_are_one_at_a_time(verb: str) -> None:
    model, short = load(f"storyworld/{NAMES[verb]}"), SHORT[verb]
    long = {**short, **getattr(model, "example", TEXTS)}
    threshold = {name: long.pop(name) for name in ("threshold",) if name in long}
    items = [short, long, short]
    alone = [getattr(model, verb)(**one, **threshold) for one in items]
    answers = getattr(model, verb)(**{name: [one[name] for one in items] for name in short}, **threshold)
    assert isinstance(answers, Answers)
    assert [type(one) for one in answers] == [type(one) for one in alone]
    assert all(isinstance(one, Result) for one in alone)
    assert all(map(close, answers.as_json(), [one.as_json() for one in alone]))
    assert not close(alone[0].as_json(), alone[1].as_json())
    assert [(one.cut, one.foreign) for one in answers] == [(one.cut, one.foreign) for one in alone]
    assert list(answers.to_frame()["item"].unique()) == [
        n for n, one in enumerate(alone) if len(one.to_frame())
    ]
    assert "<" in answers._repr_html_()
    assert str(answers[1]) in str(answers)
    if "texts" not in short:
        assert getattr(model, verb)(**{name: [] for name in short}).as_json() == []


@pytest.mark.parametrize(
    ("verb", "given", "message"),
    [
        (
            "rank",
            {"question": ["a", "b"], "candidates": [["c"]]},
            "question has 2 entries and candidates 1; give",
        ),
        ("rank", {"question": ["a"], "candidates": "c"}, "candidates is one str; give a list of texts"),
        (
            "rank",
            {"question": ["a", "b"], "candidates": [["c"], []]},
            "entry 1 of the lists: there is no candidate",
        ),
        ("tag", {"text": ["a", " "]}, "entry 1 of the lists: text 0 is empty"),
        ("tag", {"text": None}, "text 0 is NoneType; names and texts must be text"),
        (
            "align",
            {"first": ["a"], "second": ["b", "c"]},
            "first has 1 entries and second 2; give lists of the",
        ),
        ("answer", {"question": ["a"], "documents": [{}]}, "entry 0 of the lists: there is no text"),
        (
            "clusters",
            {"documents": [{"a": "A fire."}]},
            "entry 0 of the lists: .*event mentions were found; mark at least two",
        ),
        ("fill", {"texts": [["a [MASK]"], ["b"]]}, "entry 1 of the lists: no text has a blank"),
    ],
)
def test_lists_that_do_not_fit_are_refused(verb: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        getattr(load(f"storyworld/{NAMES[verb]}"), verb)(**given)


ODD = "Blast in Telk\n\n  Two\tminers, Ze\u0301 Bran\u00addir\nand Orn, got \u00a3 2m.\u00a0 Chief  Orn left."


def test_sentences_stand_in_the_text_as_given() -> None:
    aligned = load("storyworld/matching").align(ODD, "Fire chief Yessel left Telk.")
    found = [ODD[one.start : one.end] for one in aligned]
    assert found[0] == "Blast in Telk", "a line break ends a sentence"
    assert [" ".join(one.split()) for one in found] == [" ".join(one.text.split()) for one in aligned]
    answer = load("storyworld/questions").answer("Who left?", {"odd": ODD, "Soup": "It was hot."})
    odd = [one for one in answer if one.title == "odd"]
    assert [" ".join(ODD[one.start : one.end].split()) for one in odd] == [
        " ".join(one.text.split()) for one in odd
    ]
    assert (
        answer.start is None
        or answer.title != "odd"
        or ODD[answer.start : answer.end].split() == answer.text.split()
    )


def test_words_and_mentions_stand_in_the_text_as_given() -> None:
    marked = ODD.replace("Blast", "<m>Blast</m>").replace("Bran\u00addir\nand", "<M>Bran\u00addir\nand</M>")
    (mentions,) = load("storyworld/coreference").clusters({"a": marked}, threshold=1e-9)
    assert [marked[one.start : one.end] for one in mentions] == ["Blast", "Bran\u00addir\nand"]
    assert mentions[1].text == "Brandir and"
    attended = load("storyworld/cdlm").attention([ODD, ODD], (0, "Orn"))
    assert {ODD[one.start : one.end].replace("\u00ad", "") == one.word for one in attended} == {True}
