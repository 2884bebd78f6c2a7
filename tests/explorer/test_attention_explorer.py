"""What the explorer opens with, and that it is answered by the models."""

import gc
import json
import os
import re
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tagging_runs import saved

from cdlm_lab.encoders.encoder import load_language_model
from cdlm_lab.examples.packing import document_sequence
from cdlm_lab.examples.tokens import encode_document, from_tokenizer
from cdlm_lab.explorer.explorer import ExploredCluster, explore
from cdlm_lab.explorer.opening import excerpts, models_to_open, own_source
from cdlm_lab.explorer.ranks import Analysis
from cdlm_lab.explorer.reading import Selection
from cdlm_lab.explorer.widget.content import ShownDocument
from cdlm_lab.parameters import ParameterError

from .conftest import SIZES


def test_it_opens_with_a_pair_that_corefers_in_different_words(explored: ExploredCluster):
    chosen, words, clusters = explored.view.chosen, [], set()
    for document, (_, *span) in zip(explored.documents, (chosen.source, chosen.target), strict=True):
        words.append({word.casefold() for word in document.tokens[slice(*span)]})
        events = (mention for mention in document.mentions if mention.kind == "event")
        clusters |= {mention.cluster for mention in events if list(mention.tokens) == span}
    assert not words[0] & words[1]
    assert len(clusters) == 1
    assert [reader.name for reader in explored.readers] == ["Longformer", "CDLM"]
    assert explored.chosen_sentences().fields["model"].options == ("Longformer", "CDLM")
    assert [panel["name"] for panel in explored.view.answer["panels"]] == ["Longformer", "CDLM"]


def test_documents_can_be_named_and_a_model_with_a_head_predicts(
    analysis: Analysis, explored: ExploredCluster
):
    assert not explored.view.options["predicts"], "one of two models has no head"
    names = [document.id for document in analysis.topics[0].documents[:3]]
    named = explore(analysis, models=["cdlm"], documents=[names[2], names[0]])
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
    explored = explore(analysis, models=["cdlm"], own=str(tmp_path))
    assert [document.id for document in explored.documents] == ["a", "b"]
    assert sum(len(document.mentions) for document in explored.documents) == text.count("</m>")
    assert summary in explored.summary
    with pytest.raises(ValueError, match="choose words in the explorer first"):
        explored.in_bertviz("CDLM", "head", "from")
    explored.view.choose(Selection(source=(0, 2, 3), target=(1, 1, 2), layer=1))
    assert explored.view.answer["panels"][0]["target_rank"] is not None
    assert "<iframe sandbox" in explored.in_bertviz("CDLM", "head", "from")


def test_clusters_that_were_mined_are_listed(analysis: Analysis, tmp_path: Path):
    documents = [
        {"id": "1", "title": "Fire in\nTelk", "text": "Fire\n\nA mill burned."},
        {"id": "2", "text": "A fire."},
    ]
    lines = [
        {"id": name, "split": split, "documents": documents}
        for name, split in (("a", "test"), ("b", "train"))
    ]
    (tmp_path / "clusters.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    explored = explore(analysis, models=["cdlm"], own=str(tmp_path / "clusters.jsonl"))
    assert [document.id for document in explored.documents] == ["Fire in Telk", "2"]
    assert [key for key, *_ in explored.view.choices["examples"][:2]] == ["cluster b", "cluster a"]
    assert switched(explored, example="cluster a", documents=["2", "Fire in Telk"]) == ""
    assert [document.id for document in explored.documents] == ["2", "Fire in Telk"]


def test_it_is_kept_as_a_page(explored: ExploredCluster, capsys):
    explored.save()
    assert (explored.analysis.opened.folder / "explorer.html").is_file()
    assert "written: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"models": ["cdlm"], "documents": ["nobody"]}, "documents names nobody, which"),
        ({"models": ["cdlm"], "documents": ["a"], "own": "b"}, "are both given"),
        ({"models": ["prefix-cdlm"]}, "models names 'prefix-cdlm', for which no model is given"),
        ({"models": []}, "names 0 models; name one or two"),
    ],
)
def test_what_cannot_be_explored(analysis: Analysis, arguments: dict, message: str):
    with pytest.raises(ParameterError, match=message):
        explore(analysis, **arguments)


def switched(explored: ExploredCluster, **change: object) -> str:
    """Open something else as a person does; the line that they see if it is refused."""
    explored.view.opened = explored.view.opened | change
    return explored.view.refused


def test_another_example_other_documents_and_own_text_in_place(analysis: Analysis):
    explored = explore(analysis, models=["cdlm"])
    examples = explored.view.choices["examples"]
    assert len(examples) == len(analysis.topics)
    key, label, listed = examples[1]
    assert label.endswith(f"({len(listed)} documents)")
    assert switched(explored, example=key, documents=[]) == ""
    assert len(explored.documents) == 2
    assert explored.view.chosen.source is not None
    names = [name for name, _ in listed][:3]
    assert switched(explored, documents=names) == ""
    assert [document.id for document in explored.documents] == names
    assert switched(explored, example="", documents=[], text="== a ==\nA fire.\n\n== b ==\nNo fire.") == ""
    assert [document["words"] for document in explored.view.documents] == [
        ["A", "fire", "."],
        ["No", "fire", "."],
    ]
    explored.view.choose(Selection(source=(0, 1, 2), layer=1))
    assert explored.view.answer["panels"][0]["name"] == "CDLM"
    for text, message in (("== a", "== at its end is missing"), (" ", "the text is empty; write a document")):
        assert message in switched(explored, text=text)
        assert [document.id for document in explored.documents] == ["a", "b"]


def test_of_ten_runs_of_the_cell_one_copy_of_the_models_lives(analysis: Analysis):
    opened = []
    for _ in range(10):
        explored = explore(analysis)
        opened.append([weakref.ref(reader.model) for reader in explored.readers])
    del explored
    gc.collect()
    living = {id(model()) for models in opened for model in models if model() is not None}
    assert len(living) == len(opened[0])


def test_a_model_whose_files_were_written_anew_is_opened_anew(analysis: Analysis):
    before = explore(analysis).readers[1].model
    assert explore(analysis).readers[1].model is before
    file = Path(analysis.settings.checkpoints["cdlm"]) / "model.safetensors"
    os.utime(file, ns=(1, 1))
    gone = weakref.ref(before)
    del before
    assert explore(analysis).readers[1].model is not gone()


def test_a_closed_explorer_lets_go_of_its_models(analysis: Analysis):
    explored = explore(analysis)
    view, model = explored.view, weakref.ref(explored)
    view.close()
    del explored
    gc.collect()
    assert model() is None
    assert view.comm is None
    view.selection = {**view.selection, "source": [0, 1, 2]}  # nobody observes it
    assert view.answer is None or view.message == ""


def test_a_text_of_ones_own_has_the_spaces_that_were_typed():
    text = (
        '== first ==\nFees rose to £2m (or 3 %), "now" ; his <m>fire</m>truck .\n\n== second ==\nsecond :end'
    )
    source = own_source(text)
    shown = [
        ShownDocument(name="", words=one.tokens, sentences=one.sentences, spaces=source.spaces[one.id])
        for one in source.documents
    ]
    printed = [
        "".join(" " * gap + word for gap, word in zip(one.gaps, one.words, strict=True)) for one in shown
    ]
    assert printed == ['Fees rose to £2m (or 3 %), "now" ; his firetruck .', "second :end"]
    assert "spaces" not in shown[0].for_browser()
    joined = shown[0].edited(0, [(0, 0, "Prices")])
    assert joined.gaps == shown[0].gaps


def test_models_of_runs_are_listed_and_opened(analysis: Analysis):
    """Those that are language models; a run that trained a variant is read as that variant."""
    beside = Path(analysis.settings.run_folder).parent
    parts = load_language_model("tiny", max_length=400, window=8, sizes=SIZES)
    for folder in (beside / "mine" / "model", beside / "tour" / "prefix-cdlm" / "model"):
        saved(folder, *parts)
    (beside / "other" / "model").mkdir(parents=True)
    (beside / "other" / "model" / "config.json").write_text("{")
    variants = {one.label: one.variant for one in models_to_open(analysis).values()}
    assert (variants["run mine"], variants["run tour/prefix-cdlm"]) == ("", "prefix-cdlm")
    explored = explore(analysis, models=["cdlm"])
    listed = {label: key for key, label in explored.view.choices["models"]}
    assert {"CDLM", "Longformer", "storyworld/cdlm", "run mine", "run tour/prefix-cdlm"} <= set(listed)
    assert "run other" not in listed
    buttons = explored.chosen_sentences()
    assert switched(explored, models=["cdlm", listed["run mine"]]) == ""
    assert [reader.name for reader in explored.readers] == ["CDLM", "run mine"]
    assert buttons.fields["model"].options == ("CDLM", "run mine")
    assert explored.view.options["predicts"]
    assert switched(explored, models=["storyworld/cdlm"]) == ""  # made for 512 tokens, window 32
    assert switched(explored, models=["longformer"]) == ""
    assert not explored.view.options["predicts"], "it has no head"


def test_all_that_is_shown_of_a_corpus_is_read(analysis: Analysis):
    short = replace(analysis, settings=replace(analysis.settings, max_length=399))
    explored = explore(short)
    for source in explored.view.choices["examples"][:4]:
        switched(explored, example=source[0], documents=[])
        assert explored.readers[0].sequence.lost_tokens == (0, 0)
    note = explored.view.options["note"]
    assert "words are shown, as many whole sentences as the models read at once (399 tokens" in note
    assert explored.summary.startswith("2 documents, ")
    first, text = explored.documents[0], explored.view.documents[0]
    assert first.id.startswith("storyworld-")
    assert not text["name"].startswith("storyworld-"), "a headline"
    assert all("storyworld" not in label for *_, label in text["mentions"])
    long = " ".join(["fire"] * 400)
    switched(explored, example="", text=f"== a ==\n{long}\n== b ==\n{long}")
    assert "in grey, are more than the models read at once (399 tokens" in explored.view.options["note"]
    assert len(explored.view.documents[0]["words"]) == 400, "a text of one's own is shown whole"


@pytest.mark.parametrize("max_length", [120, 300, 700, 5000])
@pytest.mark.parametrize("spans", [[(0, 0)] * 3, [(100, 102), (0, 1), (40, 41)]], ids=["none", "some"])
def test_whole_sentences_around_the_words_that_fit_and_no_more_would(documents, loaded, max_length, spans):
    ((_, tokenizer),) = loaded.values()
    cut = excerpts(documents, [tokenizer], max_length=max_length, around=spans)
    for (part, first), document, span in zip(cut, documents, spans, strict=True):
        last = first + len(part.tokens)
        assert part.tokens == document.tokens[first:last]
        assert first in {start for start, _ in document.sentences}
        assert last in {end for _, end in document.sentences}
        assert first <= span[0]
        assert span[1] <= last
        inside = [one for one in document.mentions if first <= one.tokens[0] and one.tokens[1] <= last]
        assert [part.text_of(one) for one in part.mentions] == [document.text_of(one) for one in inside]
    encoded = [encode_document(part, tokenizer) for part, _ in cut]
    sequence = document_sequence(encoded, special=from_tokenizer(tokenizer), max_length=max_length)
    longest = max(
        np.diff(encode_document(one, tokenizer).starts[[s for s, _ in one.sentences]]).max()
        for one in documents
    )
    if max_length > 4 * longest:
        assert sequence.lost_tokens == (0, 0, 0)
        if any(len(part.tokens) < len(one.tokens) for (part, _), one in zip(cut, documents, strict=True)):
            assert len(sequence.input_ids) > max_length - 3 * 2 * longest
    if max_length == 5000:
        assert [part for part, _ in cut] == list(documents)


def test_mentions_of_a_typed_text_are_found():
    def finder(text: str) -> list[tuple[int, int, str]]:
        return [
            (*one.span(), kind) for kind in ("event", "entity") for one in re.finditer(f"an {kind}", text)
        ]

    text = "== a ==\nIt is an event.\n\n== b ==\nIt is an entity, not an event."
    documents = own_source(text, finder).documents
    assert [[one.text_of(m) for m in one.mentions] for one in documents] == [
        ["an event"],
        ["an entity", "an event"],
    ]
    marked = own_source("An <m>event</m> is not an entity.", finder).documents
    assert [len(one.mentions) for one in marked] == [1], "given marks are used as they are"
    for faulty in (lambda text: [(0, 10_000)], lambda text: None):
        assert not own_source("Nobody.", faulty).documents[0].mentions
