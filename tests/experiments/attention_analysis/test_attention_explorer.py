"""What the explorer opens with, and that it is answered by the models."""

from dataclasses import replace
from pathlib import Path

import pytest

from cdlm_lab.experiments.attention_analysis.explorer import ExploredCluster, explore, explorer
from cdlm_lab.experiments.attention_analysis.ranks import Analysis
from cdlm_lab.parameters import ParameterError
from cdlm_lab.widgets.explorer import Selection

SOURCE = Selection(source=(0, 12, 14), target=(1, 30, 32), layer=1)


def exploring(analysis: Analysis, **changes: str) -> ExploredCluster:
    return explore(replace(analysis, settings=replace(analysis.settings, **changes)))


def test_the_widget_is_answered_by_the_model(documents, reader):
    widget = explorer(documents, [reader])
    assert widget.view == "overview"
    assert widget.overview is not None
    assert len(widget.documents[0]["mentions"]) == len(documents[0].mentions)
    widget.choose(SOURCE)
    assert widget.answer["panels"][0]["name"] == "tiny"
    assert widget.options["predicts"]


def test_it_opens_with_a_pair_that_corefers_in_different_words(explored: ExploredCluster):
    chosen, words, clusters = explored.view.chosen, [], set()
    for document, (_, *span) in zip(explored.documents, (chosen.source, chosen.target), strict=True):
        words.append({word.casefold() for word in document.tokens[slice(*span)]})
        events = (mention for mention in document.mentions if mention.kind == "event")
        clusters |= {mention.cluster for mention in events if list(mention.tokens) == span}
    assert not words[0] & words[1]
    assert len(clusters) == 1
    assert [reader.name for reader in explored.readers] == ["Longformer", "CDLM"]
    assert explored.chosen_sentences().model.options == ("Longformer", "CDLM")
    assert [panel["name"] for panel in explored.view.answer["panels"]] == ["Longformer", "CDLM"]


def test_documents_can_be_named_and_a_model_with_a_head_predicts(
    analysis: Analysis, explored: ExploredCluster
):
    assert not explored.view.options["predicts"], "one of two models has no head"
    names = [document.id for document in analysis.topics[0].documents[:3]]
    named = exploring(analysis, explore="cdlm", explore_documents=f"{names[2]} {names[0]}")
    assert [document.id for document in named.documents] == [names[2], names[0]]
    assert named.view.selection["source"] is None
    assert named.view.options["predicts"]


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("<m>fire</m>", "2 documents, 12 words, 1 mentions underlined"),
        ("fire", "no mention is marked, so"),
        ("[m]fire", "no mention is marked ([m] is not a mark; write "),
    ],
)
def test_text_of_ones_own_with_marks_and_without(analysis: Analysis, tmp_path: Path, text: str, summary: str):
    (tmp_path / "a.txt").write_text("The mill burned.\n")
    (tmp_path / "b.txt").write_text(f"A {text} was seen at the mill.\n")
    explored = exploring(analysis, explore="cdlm", own_documents=str(tmp_path))
    assert [document.id for document in explored.documents] == ["a", "b"]
    assert sum(len(document.mentions) for document in explored.documents) == text.count("</m>")
    assert summary in explored.summary
    with pytest.raises(ValueError, match="choose words in the explorer first"):
        explored.in_bertviz("CDLM", "head", "from")
    explored.view.choose(Selection(source=(0, 2, 3), target=(1, 1, 2), layer=1))
    assert explored.view.answer["panels"][0]["target_rank"] is not None
    assert "<iframe sandbox" in explored.in_bertviz("CDLM", "head", "from")


def test_it_is_kept_as_a_page(explored: ExploredCluster, monkeypatch, capsys):
    def no_browser(path):
        raise RuntimeError("no Chromium")

    monkeypatch.setattr(explored.view, "save_png", no_browser)
    explored.save()
    assert (explored.analysis.opened.folder / "explorer.html").is_file()
    assert "no picture: no Chromium" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"explore": "cdlm", "explore_documents": "nobody"}, "explore_documents names nobody, which"),
        ({"explore": "cdlm", "explore_documents": "a", "own_documents": "b"}, "are both given"),
        ({"explore": "prefix-cdlm"}, "explore names 'prefix-cdlm', for which no model is given"),
        ({"explore": ""}, "names 0 models; name one or two"),
    ],
)
def test_what_cannot_be_explored(analysis: Analysis, arguments: dict, message: str):
    with pytest.raises(ParameterError, match=message):
        exploring(analysis, **arguments)
