"""The page of the public interface is what the docstrings say."""

import interface

import cdlm_lab


def test_the_page_is_up_to_date():
    """Written by: python .make/interface.py"""
    assert interface.PAGE.read_text(encoding="utf-8") == interface.page()


def test_every_public_name_every_verb_and_every_command_is_there():
    text = interface.page()
    verbs = ("encode", "fill", "attention", "clusters", "score", "align", "answer", "tag", "rank", "verify")
    for name in (*cdlm_lab.__all__, *verbs):
        assert f"# {name}\n" in text, name
    for command in ("run", "show", "apply", "mine", "convert", "notebooks"):
        assert f"### cdlm-lab {command}\n" in text
