"""The explorer with models behind it: scores, ranks, what-ifs and the overview are those of the analysis."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cdlm_lab.analysis.percentile_rank import source_scores, word_scores
from cdlm_lab.analysis.source_attention import attend_to_source, attention_between
from cdlm_lab.data.storyworld.task_sets import read_storyworld_topics
from cdlm_lab.experiments.attention_analysis import explorer as attention_explorer
from cdlm_lab.experiments.attention_analysis.explorer import ExploredCluster, Reader, explore, panel_of
from cdlm_lab.experiments.attention_analysis.ranks import Analysis, Settings, prepare
from cdlm_lab.models.encoder import TinySizes, load_encoder, load_language_model
from cdlm_lab.parameters import ParameterError
from cdlm_lab.widgets.explorer import Selection

SIZES = TinySizes(
    hidden_size=16, layers=2, heads=2, intermediate_size=16, vocabulary=300, initializer_range=0.2
)
SOURCE = Selection(source=(0, 12, 14), target=(1, 30, 32), layer=1)


@pytest.fixture(scope="module")
def documents():
    return next(iter(read_storyworld_topics("test", 1))).documents[:3]


@pytest.fixture(scope="module")
def loaded():
    return {"tiny": load_language_model("tiny", max_length=2048, window=16, sizes=SIZES)}


@pytest.fixture
def reader(documents, loaded) -> Reader:
    return attention_explorer.read_documents(documents, loaded, max_length=2048)[0]


@pytest.fixture
def counts(documents) -> np.ndarray:
    return np.concatenate([attention_explorer.shown_document(document).counts for document in documents])


def test_a_panel_holds_the_papers_scores(reader, counts):
    panel = panel_of(reader, SOURCE, counts)
    positions = reader.sequence.positions(0, (12, 14))
    attention = attend_to_source(reader.model, reader.sequence.input_ids, source=positions)
    tokens = source_scores(attention.given, attention.received)
    expected = word_scores(tokens, reader.words, int(reader.firsts[-1]))
    np.testing.assert_allclose(panel.scores, np.nan_to_num(expected, nan=1.0))
    np.testing.assert_array_equal(panel.reach, ~np.isnan(expected))
    # the rank of the target by a slow definition
    first, end = reader.firsts[1:3]
    target = panel.scores[first + 30 : first + 32].mean()
    ranked = [n for n in range(first, end) if counts[n] and n - first not in (30, 31)]
    below = sum((panel.scores[n] < target) + (panel.scores[n] == target) / 2 for n in ranked)
    assert panel.target_rank == pytest.approx(100 * below / len(ranked))


@pytest.mark.parametrize(
    "change",
    [{"layer": 0}, {"heads": (1,)}, {"direction": "from"}, {"reduce": "max"}, {"source_global": False}],
)
def test_every_choice_changes_the_scores(reader, counts, change):
    before, after = (panel_of(reader, chosen, counts) for chosen in (SOURCE, replace(SOURCE, **change)))
    assert np.abs(before.scores - after.scores).max() > 1e-6
    again = "source_global" in change
    assert len(reader.runs) == 1 + again, "layers, heads and directions need no other run"


def test_without_global_attention_far_words_are_out_of_reach(reader, counts):
    panel, second = panel_of(reader, replace(SOURCE, source_global=False), counts), reader.firsts[1]
    assert panel.reach[:second].any()
    assert not panel.reach[second:].any()
    assert (panel.read | ~panel.reach).all(), "what is reached is read"
    assert panel.read[second:].any()
    assert (panel.scores[second:] == 1).all(), "exp of no weight"
    seen = panel_of(reader, replace(SOURCE, source_global=False, extra_global=((2, 5, 6),)), counts)
    assert np.flatnonzero(seen.reach[second:]).tolist() == [reader.firsts[2] - second + 5]


def test_hidden_words_are_hidden_and_predicted(reader, counts):
    (prediction,) = panel_of(reader, replace(SOURCE, masked=((2, 8, 10),)), counts).predictions
    assert prediction.span == (2, 8, 10)
    assert len(prediction.top) == 5
    hidden = reader.sequence.positions(2, (8, 10))
    ids = torch.tensor(reader.sequence.input_ids)[None]
    masked, is_global = ids.clone(), torch.zeros_like(ids)
    masked[0, hidden] = reader.tokenizer.mask_token_id
    is_global[0, reader.sequence.positions(0, (12, 14))] = 1
    with torch.no_grad():
        read = reader.model.longformer(masked, torch.ones_like(ids), global_attention_mask=is_global)
        shares = reader.model.lm_head(read.last_hidden_state).softmax(-1)[0]
    expected = np.prod([float(shares[place, ids[0, place]]) for place in hidden])
    assert prediction.truth_probability == pytest.approx(expected, rel=1e-3)


def test_the_overview_is_the_mean_weight_between_sentences(reader, documents):
    shown, lines = [attention_explorer.shown_document(document) for document in documents], []
    (matrix,) = attention_explorer.overview_of([reader], shown, lines.append)
    sizes = [len(document.sentences) for document in shown]
    assert matrix.shape == (sum(sizes), sum(sizes))
    assert len(lines) == max(sizes)
    # one pair of sentences by hand: the third of the first document, the fifth of the second
    thirds = [reader.sequence.positions(n, document.sentences[2]) for n, document in enumerate(shown)]
    form = {"source": np.concatenate(thirds), "layers": [-1]}
    attention = attend_to_source(reader.model, reader.sequence.input_ids, **form)
    mine = np.isin(attention.source, thirds[0])
    theirs = reader.sequence.positions(1, shown[1].sentences[4])
    weights = (attention.given + attention.received)[0].sum(0)[mine][:, theirs]
    assert matrix[2, sizes[0] + 4] == pytest.approx(weights.mean(), rel=1e-4)


def test_words_that_did_not_fit_are_said(documents, loaded, counts):
    (short,) = attention_explorer.read_documents(documents, loaded, max_length=120)
    with pytest.raises(ValueError, match=r"tiny does not read these words: .* tokens did not fit"):
        panel_of(short, replace(SOURCE, source=(0, 150, 151)), counts)
    panel = panel_of(short, replace(SOURCE, source=(0, 1, 2), target=None), counts)
    last = short.firsts[1] - 1
    assert (panel.reach[last], panel.read[last], panel.read[0]) == (False, False, True)


def test_the_widget_is_answered_by_the_model(documents, reader):
    widget = attention_explorer.explorer(documents, [reader])
    assert widget.view == "overview"
    assert widget.overview is not None
    assert len(widget.documents[0]["mentions"]) == len(documents[0].mentions)
    widget.choose(SOURCE)
    assert widget.answer["panels"][0]["name"] == "tiny"
    assert widget.options["predicts"]


# ---- what it opens with, and the sentences that are handed to bertviz ----


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    models = dict.fromkeys(("local_cdlm", "rand_cdlm", "prefix_cdlm"), "")
    for name, load in (("longformer", load_encoder), ("cdlm", load_language_model)):
        models[name] = str(tmp_path_factory.mktemp(name))
        for part in load("tiny", max_length=400, window=8, sizes=SIZES):
            part.save_pretrained(models[name])
    run_folder = str(tmp_path_factory.mktemp("runs") / "run")
    return prepare(Settings(run_folder=run_folder, stories=6, pairs=12, max_length=400, window=8, **models))


def exploring(analysis: Analysis, **changes: str) -> ExploredCluster:
    return explore(replace(analysis, settings=replace(analysis.settings, **changes)))


@pytest.fixture(scope="module")
def explored(analysis: Analysis) -> ExploredCluster:
    return explore(analysis)


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


@pytest.fixture
def handed(monkeypatch) -> dict:
    """What bertviz is given, and the positions it is of."""
    given = {}

    def recorded(model, ids, *, queries, keys, global_mask):
        given.update(queries=queries, keys=keys)
        return attention_between(model, ids, queries=queries, keys=keys, global_mask=global_mask)

    monkeypatch.setattr(attention_explorer, "attention_between", recorded)
    monkeypatch.setattr(
        attention_explorer, "bertviz_html", lambda weights, **named: given.update(named, weights=weights)
    )
    return given


@pytest.mark.parametrize("direction", ["from", "to"])
@pytest.mark.parametrize("with_target", [True, False])
def test_bertviz_gets_what_passes_between_the_sentences_of_both_spans(
    explored: ExploredCluster, handed: dict, with_target: bool, direction: str
):
    chosen, reader = explored.view.chosen, explored.readers[1]
    selection = chosen if with_target else replace(chosen, target=None)
    attention_explorer.sentences_in_bertviz(
        reader, explored.documents, selection, view="head", direction=direction
    )
    ids, source = reader.sequence.input_ids, reader.positions(chosen.source)
    mine, other = (handed["queries"], handed["keys"])[:: 1 if direction == "from" else -1]
    assert len(handed["query_tokens"]) == len(handed["queries"])
    assert len(handed["key_tokens"]) == len(handed["keys"])
    assert set(source) <= set(mine)
    assert set(reader.sequence.document[mine]) == {0}
    assert set(reader.sequence.document[other]) == {1}
    if with_target:
        assert set(reader.positions(chosen.target)) <= set(other)
    # the weights are those of the whole text with the source global
    everywhere = np.arange(len(ids))
    is_global = np.isin(everywhere, source)
    full = attention_between(reader.model, ids, queries=everywhere, keys=everywhere, global_mask=is_global)
    expected = full[:, :, handed["queries"]][:, :, :, handed["keys"]]
    np.testing.assert_allclose(handed["weights"], expected, atol=1e-6)


def test_where_nothing_passes_it_says_so(explored: ExploredCluster):
    selection = replace(explored.view.chosen, source_global=False)
    with pytest.raises(ValueError, match="nothing passes between these sentences: they are too far apart"):
        attention_explorer.sentences_in_bertviz(
            explored.readers[1], explored.documents, selection, view="head"
        )


def test_a_long_sentence_is_cut_around_the_words(explored: ExploredCluster, handed: dict, monkeypatch):
    monkeypatch.setattr(attention_explorer, "MOST_TOKENS", {"head": 6, "model": 4})
    explored.in_bertviz("Longformer", "model", "from")
    chosen = explored.view.chosen
    for place, positions in ((chosen.source, handed["queries"]), (chosen.target, handed["keys"])):
        assert len(positions) == 4
        assert explored.readers[0].positions(place)[0] in positions
