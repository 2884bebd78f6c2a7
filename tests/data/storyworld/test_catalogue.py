"""The texts of storyworld and the language they are written in."""

import re

import pytest
from ruamel.yaml import YAML

from cdlm_lab.data.storyworld.catalogue import TEXTS, catalogue
from cdlm_lab.data.storyworld.grammar import compile_template

FORMS = {"sub", "name", "he", "his"}


def test_no_key_stands_twice_and_no_file_is_left_over():
    files = {path.stem: YAML(typ="safe").load(path) for path in TEXTS.glob("*.yaml")}  # refuses such keys
    kinds = [event.name for event in catalogue().events]
    assert files["shared"]["kinds"] == kinds
    assert sorted(files) == sorted([*kinds, "angles", "names", "shared"])


@pytest.mark.parametrize("event", catalogue().events, ids=lambda event: event.name)
def test_every_slot_word_and_fragment_is_known(event):
    known = event.cast.keys() | event.numbers.keys()
    for template in event.templates():
        assert template.keys <= known, template.text
        assert set(re.findall(r"\{\$(\w+)\}", template.text)) <= event.words.keys() | {"next"}, template.text
        assert set(re.findall(r"\{>(\w+)\}", template.text)) <= event.texts.keys(), template.text
        assert set(re.findall(r"\{\w+\.([^}]*)\}", template.text)) <= {"sub", "name", "he", "his"}, (
            template.text
        )
    assert len(event.texts["headlines"]) >= 6  # as many as reports of a story


def test_a_template():
    template = compile_template("[the <fire~main>|{$name's}|] hit {town.sub} and {dead} {ev}, {>what}")
    assert template.keys == {"town", "dead"}
    assert template.clause
    assert template.nodes == (
        ("alt", (("the ", ("mark", ("fire",), "main")), (("word", "name's"),), ())),
        *(" hit ", ("ref", "town", "sub"), " and ", ("ref", "dead", ""), " ", ("event",), ", "),
        ("macro", "what"),
    )
    assert not compile_template('"No," said {mayor}.').clause


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a [b|c", "'[' is never closed in template 'a [b|c'; add ']'"),
        ("a {b", "no '}' after character 2 of template 'a {b'; add it"),
        ("a <b~c", "no '>' after character 4 of template 'a <b~c'; add it"),
        ("a] b", "stray ']' at character 1 of template 'a] b'; remove it"),
    ],
)
def test_brackets_that_do_not_match(text, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        compile_template(text)
