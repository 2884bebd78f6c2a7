"""Coreference of plain texts: mentions that a function or a tagger finds, with their characters."""

import re
from dataclasses import replace

import pytest

from cdlm_lab.apply import loading
from cdlm_lab.apply.loading import MENTIONS, load, mention_finder
from cdlm_lab.data.files import DataError
from cdlm_lab.data.marked import marked_texts
from cdlm_lab.parameters import ParameterError
from cdlm_lab.tasks.coreference import view
from cdlm_lab.tasks.coreference.ask import CoreferenceModel
from cdlm_lab.tasks.coreference.found import found_spans
from cdlm_lab.views.ask import AskBox

TEXTS = {
    "police": "\ufeffA fire broke out in the old mill.\r\n\n  One man\u00a0was arrested.",
    "paper": "The blaze was put out.\n\nNobody was arrested.",
}


def finder(*words: str, label: str = ""):
    """Finds words, wherever they stand."""
    return lambda text: [
        (*match.span(), *filter(None, [label])) for match in re.finditer("|".join(words), text)
    ]


def test_found_mentions_are_clustered_as_marked_ones(coreference: CoreferenceModel) -> None:
    events = finder("fire", "blaze", "arrested")
    found = coreference.clusters(TEXTS, mentions=events)
    marked = {name: re.sub("fire|blaze|arrested", r"<m>\g<0></m>", text) for name, text in TEXTS.items()}
    given = coreference.clusters(marked, mentions=lambda text: pytest.fail("these texts have marks"))
    assert [[one.text for one in each] for each in found] == [[one.text for one in each] for each in given]
    for each in found:
        for one in each:
            assert TEXTS[one.document][one.start : one.end] == one.text
    assert coreference.clusters(iter([TEXTS, marked]), mentions=events)[0] == found
    unnamed = coreference.clusters([*TEXTS.values()], mentions=events)  # a document each, not a topic
    assert [[one.text for one in each] for each in unnamed] == [[one.text for one in each] for each in found]


def test_a_found_document_is_that_with_marks() -> None:
    found = {
        name: found_spans(finder("old mill", "man"), text, kind="event", source=name)
        for name, text in TEXTS.items()
    }
    marked = {name: re.sub("old mill|man", r"<m>\g<0></m>", text) for name, text in TEXTS.items()}
    assert marked_texts(TEXTS, kind="event", found=found) == marked_texts(marked, kind="event")


@pytest.mark.parametrize(
    ("label", "kind", "count"),
    [("", "event", 1), ("event", "event", 1), ("PER", "event", 0), ("PER", "entity", 1)],
)
def test_labels_say_which_kind_a_mention_has(label: str, kind: str, count: int) -> None:
    assert len(found_spans(finder("fire", label=label), "A fire.", kind=kind, source="a")) == count


def test_white_space_around_a_mention_is_no_part_of_it() -> None:
    assert found_spans(lambda text: [(1, 7)], "A fire .", kind="event", source="a") == [(2, 6)]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "it returned NoneType"),
        ("fire", "it returned str"),
        ([3], "it returned 3"),
        ([(2.0, 6)], r"it returned \(2.0, 6\)"),
        ([(2, 6, 7)], r"it returned \(2, 6, 7\)"),
        ([(2, 6, "event", 1)], "it returned"),
        ([(2, 60)], r"\(2, 60\) is no span of 14 characters"),
        ([(6, 2)], r"\(6, 2\) is no span"),
        ([(-4, 6)], r"\(-4, 6\) is no span"),
        ([(1, 2)], r"\(1, 2\) has no words"),
        ([(2, 14)], r"\(2, 14\) has a blank line in it"),
        ([(2, 6), (1, 6)], r"'fire' at \(2, 6\) is there twice"),
    ],
)
def test_a_bad_finder_is_one_line(found: object, message: str) -> None:
    with pytest.raises(ParameterError, match=f"^mentions of a: {message}.*; it must return [^\n]*$"):
        found_spans(lambda text: found, "A fire.\n\nSmoke", kind="event", source="a")


def test_too_few_mentions_are_one_line(coreference: CoreferenceModel) -> None:
    with pytest.raises(DataError, match="1 event mentions were found; mark at least two"):
        coreference.clusters(TEXTS, mentions=finder("fire"))
    with pytest.raises(DataError, match="no mention in any document; write <m> before"):
        replace(coreference, open_finder=None).clusters(TEXTS)


def test_a_tagger_finds_mentions_by_its_name(coreference: CoreferenceModel) -> None:
    example = load("storyworld/tagging").example["text"]
    texts = {"a": example, "b": example}
    entities = replace(coreference, kind="entity")
    found = {one.text for each in entities.clusters(texts, mentions="storyworld/tagging") for one in each}
    assert "Yessel Brandir" in found
    with pytest.raises(
        ParameterError, match="mentions is 'storyworld/answers', a AnswerModel; name a tagger"
    ):
        coreference.clusters(texts, mentions="storyworld/answers")


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdlm_lab.apply.loading.shipped_runs", list)
    loading._shipped_finder.cache_clear()
    with pytest.raises(ParameterError, match=f"no mention is marked, and {MENTIONS}, .* is not here; mark"):
        mention_finder()


def test_three_real_articles_without_marks_give_sensible_clusters() -> None:
    events = load("ecb/events")
    clusters = [{one.text for one in each} for each in events.clusters(events.example["documents"])]
    assert {"earthquake", "quake"} in clusters
    assert not any(len(one) > 4 for one in clusters), "nothing is put together wholesale"


def test_found_mentions_are_marked_to_be_looked_over(coreference: CoreferenceModel) -> None:
    def nested(text: str) -> list:
        return finder("fire", "blaze")(text) + finder("fire broke")(text)

    marked = coreference.marked({"a": "A fire broke out.", "b": "The blaze."}, mentions=nested)
    assert marked == {"a": "A <m><m>fire</m> broke</m> out.", "b": "The <m>blaze</m>."}
    assert coreference.marked(marked, mentions=nested) == marked, "given marks stay"


def test_a_model_of_real_texts_opens_on_three_articles(
    coreference: CoreferenceModel, capsys, monkeypatch
) -> None:
    events = finder("struck", "earthquake", "disaster")
    real = replace(coreference, corpus="ecb", open_finder=lambda name: events)
    documents = real.example["documents"]
    assert len(documents) == 3
    assert all(80 <= len(text.split()) <= 200 and "<m>" not in text for text in documents.values())
    shown = real.clusters(documents)._repr_html_()
    assert 'class="cdlm-view cdlm-texts"' in shown
    assert all(name in shown for name in documents)
    monkeypatch.setattr("cdlm_lab.apply.loading.shipped_runs", list)
    loading._shipped_finder.cache_clear()
    view.show_articles(lambda name: coreference, "ecb/events", "ecb/entities")
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"The articles cannot be read yet: no mention is marked, and {MENTIONS}")
    opened = []
    monkeypatch.setattr(AskBox, "show", lambda box: opened.append(box))
    view.show_articles(lambda name: real, "ecb/events", "ecb/entities")
    assert [box.button.description for box in opened] == ["Cluster event mentions"] * 2
    assert "<m>earthquake</m> <m>struck</m> Nepal" in opened[0].fields["documents"].value
