"""Models for tasks answer as the boxes of the notebooks do."""

from dataclasses import replace
from functools import partial

import pytest
from work import calls_of

from cdlm_lab.apply.loading import load
from cdlm_lab.data.files import DataError
from cdlm_lab.parameters import ParameterError
from cdlm_lab.tasks.coreference.ask import CoreferenceModel
from cdlm_lab.tasks.tagging.ask import TaggingModel
from cdlm_lab.views.answers import TextCut

DOCUMENTS = {
    "police": "A <m>fire</m> broke out in the old mill on Monday. One man was <m>arrested</m>.",
    "paper": "The <m>blaze</m> was put out after three hours. == <script>alert(1)</script> ==",
}


# ---- coreference ----


def test_mentions_come_with_their_characters(coreference: CoreferenceModel) -> None:
    clusters = coreference.clusters(DOCUMENTS)
    assert clusters.threshold == coreference.threshold == 0.58
    found = [(one.text, DOCUMENTS[one.document][one.start : one.end]) for each in clusters for one in each]
    assert sorted(found) == [(word, word) for word in ("arrested", "blaze", "fire")]
    assert "<script" not in clusters._repr_html_()
    assert list(clusters.to_frame().columns) == ["cluster", "document", "start", "end", "text"]


def test_another_threshold_needs_no_other_scores(coreference: CoreferenceModel, monkeypatch) -> None:
    before = coreference.clusters(DOCUMENTS)
    monkeypatch.setattr("cdlm_lab.tasks.coreference.ask.predict_groups", None)
    assert len(coreference.clusters(DOCUMENTS, threshold=0.999999)) == 3
    assert coreference.clusters(DOCUMENTS).parts == before.parts


def test_a_threshold_puts_all_together_or_none(coreference: CoreferenceModel) -> None:
    assert len(coreference.clusters(DOCUMENTS, threshold=0.999999)) == 3
    assert len(coreference.clusters(DOCUMENTS, threshold=1e-9)) == 1
    with pytest.raises(ParameterError, match=r"threshold is 2: it must lie between 0 and 1"):
        coreference.clusters(DOCUMENTS, threshold=2)
    with pytest.raises(ParameterError, match=r"threshold is None: the run chose none; give one, such as 0.5"):
        replace(coreference, threshold=None).clusters(DOCUMENTS)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ({"a": "A <m>fire</m>."}, "there is one mention only; mark at least two"),
        ({"a": "x\nA <m>fire."}, "a:2: field marks: <m> is not closed"),
    ],
)
def test_documents_that_cannot_be_read_are_named(
    coreference: CoreferenceModel, documents, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        coreference.clusters(documents)


def test_long_documents_are_cut_around_the_mentions(coreference: CoreferenceModel) -> None:
    long = {"a": DOCUMENTS["police"] + " It rained." * 400, "b": DOCUMENTS["paper"] + " It rained." * 400}
    with pytest.warns(
        TextCut, match=r"pairs of documents: [\d,]+ of [\d,]+ tokens are not read; a pair has 256"
    ):
        assert sum(map(len, coreference.clusters(long))) == 3


# ---- tagging ----


def test_names_and_words_come_with_their_characters(tagging: TaggingModel) -> None:
    text = f"{tagging.example['text']}\n  \u00a32m,\u00a0\u00a3 2m for Ze\u0301 Bran\u00addir.\t"
    tagged = tagging.tag(text)
    assert len(tagged) > 5
    for one in (*tagged, *tagged.words):
        assert text[one.start : one.end] == one.text
    assert {"\u00a3", "2m", "Ze\u0301", "Bran\u00addir"} <= {one.text for one in tagged.words}
    assert list(tagged.to_frame().columns) == ["text", "label", "start", "end", "sentence"]
    assert "cdlm-tagged" in tagged._repr_html_()


def test_a_system_of_a_run_is_chosen_by_name(tagging: TaggingModel) -> None:
    other = load("storyworld/tagging", system="bert-lstm")
    assert (tagging.system, other.system) == ("doc-arc", "bert-lstm")
    assert other.tag("Yessel Brandir left Telk.").words
    with pytest.raises(ParameterError, match="system is 'x'; choose one of bert-lstm, doc-arc"):
        load("storyworld/tagging", system="x")


def test_the_work_of_tagging_grows_with_the_text_and_not_with_its_square(tagging: TaggingModel) -> None:
    sentences = [f"Yessel Brandir saw {number} men at mill {number % 7}." for number in range(400)]
    for _ in range(2):  # the first also loads and compiles
        short, long = (
            calls_of(partial(tagging.tag, " ".join(sentences[:number])), events=("call",))
            for number in (100, 400)
        )
    assert short * 3 < long < short * 5


def test_texts_that_are_none_or_hostile(tagging: TaggingModel) -> None:
    with pytest.raises(ParameterError, match="text 0 is empty"):
        tagging.tag(" ")
    assert "<script" not in tagging.tag("<script>alert(1)</script> in Telk")._repr_html_()
    with pytest.warns(TextCut, match=r"the ends of words: 1 of 3 words are not read; .* reads 128 pieces"):
        tagging.tag(f"In {'qx' * 200} Telk")
