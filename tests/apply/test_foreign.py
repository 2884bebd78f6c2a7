"""Text foreign to a model: one line of warning, a mark on the result, a field in each output line."""

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdlm_lab.apply.lines import apply_lines
from cdlm_lab.apply.loading import load
from cdlm_lab.batch.command import main
from cdlm_lab.data.storyworld.stories import story
from cdlm_lab.encoders.model_folder import FOLDER
from cdlm_lab.views.answers import NO_REAL_MODEL, ForeignText, Result

QUAKE = "A strong earthquake struck off the coast of Sumatra early on Sunday, the US Geological Survey said."
OTHER = "Indonesian officials lifted a tsunami warning two hours after the tremor shook hotels in Padang."
OWN = story(seed=0, split="test", index=0)
OWN_SENTENCES = [document.text[slice(*document.sentences[1])] for document in OWN.cluster.documents[:2]]


def marked(text: str) -> str:
    """The text with its second word as a mention."""
    first, second, rest = text.split(maxsplit=2)
    return f"{first} <m>{second}</m> {rest}"


# name of a model -> its verbs, on two texts
VERBS: dict[str, dict[str, Callable[[Any, str, str], Result]]] = {
    "storyworld/cdlm": {
        "encode": lambda m, a, b: m.encode([a, b]),
        "fill": lambda m, a, b: m.fill([f"{a} [MASK].", b], pieces=1, top=1),
        "attention": lambda m, a, b: m.attention([a, b], (0, a.split()[0])),
    },
    "storyworld/coreference": {"clusters": lambda m, a, b: m.clusters({"a": marked(a), "b": marked(b)})},
    "storyworld/matching": {
        "score": lambda m, a, b: m.score(a, b),
        "align": lambda m, a, b: m.align(a, b),
    },
    "storyworld/answers": {"rank": lambda m, a, b: m.rank(OWN.questions[0].text, [a, b])},
    "storyworld/questions": {
        "answer": lambda m, a, b: m.answer(OWN.questions[0].text, {"first": a, "second": b})
    },
    "storyworld/tagging": {"tag": lambda m, a, b: m.tag(f"{a}\n{b}")},
    "storyworld/claims": {"verify": lambda m, a, b: m.verify(OWN.claims[0].text, [a, b])},
}
INSTEAD = {
    "cdlm": 'means little; for real English open "news/cdlm"',
    "coreference": 'means little; for real English open "ecb/events"',
    "tagging": 'means little; for real English open "ecb/mentions" or "litbank/names"',
}
CASES = [(name, verb) for name, verbs in VERBS.items() for verb in verbs]


@pytest.mark.parametrize(("name", "verb"), CASES)
def test_every_verb_warns_once_and_marks_what_it_shows(name: str, verb: str) -> None:
    model, ask = load(name), VERBS[name][verb]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = ask(model, QUAKE, OTHER)
    (line,) = [str(one.message) for one in caught if one.category is ForeignText]
    assert line == f"{name}: {result.foreign}"
    assert result.foreign.startswith("foreign text: the model was trained on storyworld, reports of invented")
    assert result.foreign.endswith(INSTEAD.get(name.partition("/")[2], NO_REAL_MODEL))
    assert "\n" not in line
    assert caught[[one.category for one in caught].index(ForeignText)].filename == __file__
    html = result._repr_html_()
    assert html.index("foreign text: ") < html.index("cdlm-") if "cdlm-" in html else "foreign text: " in html
    assert "foreign text: " in repr(result)


@pytest.mark.parametrize(("name", "verb"), CASES)
def test_no_verb_warns_of_its_own_world(name: str, verb: str) -> None:
    model, ask = load(name), VERBS[name][verb]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = ask(model, *OWN_SENTENCES)
    assert [one for one in caught if one.category is ForeignText] == []
    assert result.foreign == ""
    assert "foreign" not in result._repr_html_()


def test_a_model_without_a_profile_says_nothing(tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "cdlm", tmp_path / "cdlm", ignore=shutil.ignore_patterns("text_profile.json"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ForeignText)
        assert load(tmp_path / "cdlm").encode([QUAKE]).foreign == ""


def test_apply_counts_foreign_lines_and_says_so_in_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [{"first": QUAKE, "second": OTHER}, {"first": OWN_SENTENCES[0], "second": OWN_SENTENCES[1]}]
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert main(["apply", "storyworld/matching", str(source), str(target)]) == 0
    foreign, own = map(json.loads, target.read_text().splitlines())
    assert foreign["foreign"].startswith("foreign text: ")
    assert "foreign" not in own
    said = capsys.readouterr()
    assert said.err.count("foreign") == 1
    assert "1 of them: foreign text, unlike all that the model was trained on" in said.err
    assert apply_lines("storyworld/matching", source, target).foreign == 1
