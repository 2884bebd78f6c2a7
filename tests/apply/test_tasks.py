"""Models for tasks answer as the boxes of the notebooks do."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from work import calls_of

from cdlm_lab.apply.loading import load
from cdlm_lab.data.files import DataError
from cdlm_lab.parameters import ParameterError
from cdlm_lab.tasks.coreference.ask import CoreferenceModel
from cdlm_lab.tasks.coreference.experiment import CoreferenceRun
from cdlm_lab.tasks.coreference.view import own_clusters
from cdlm_lab.tasks.tagging.ask import TaggingModel
from cdlm_lab.tasks.tagging.experiment import EXAMPLE_TEXT
from cdlm_lab.tasks.tagging.systems import tag_own
from cdlm_lab.views.answers import TextCut

DOCUMENTS = {
    "police": "A <m>fire</m> broke out in the old mill on Monday. One man was <m>arrested</m>.",
    "paper": "The <m>blaze</m> was put out after three hours. == <script>alert(1)</script> ==",
}


# ---- coreference ----


def test_clusters_are_those_of_the_notebooks_box(coreference: CoreferenceModel, tmp_path: Path) -> None:
    clusters = coreference.clusters(DOCUMENTS)
    assert clusters.threshold == coreference.threshold == 0.58
    form = {name: {} for name in ("topics", "groups", "level", "passed_over", "examples")}
    form |= dict.fromkeys(("train_examples", "dev_examples", "config"))
    scorer = replace(
        coreference.scorer, settings=replace(coreference.scorer.settings, run_folder=str(tmp_path))
    )
    prepared = CoreferenceRun(**vars(scorer), **form)
    text = "\n".join(f"== {name} ==\n{text}" for name, text in DOCUMENTS.items()).replace(" == <", " = = <")
    picture = own_clusters(prepared, text.replace("> ==", "> = ="))(0.58)
    written = json.loads((tmp_path / "own_clusters.json").read_text())["clusters"]
    assert [
        [{"document": one.document, "tokens": [one.start, one.end], "text": one.text} for one in cluster]
        for cluster in clusters
    ] == written
    assert "<script" not in clusters._repr_html_() + picture
    assert list(clusters.to_frame().columns) == ["cluster", "document", "start", "end", "text"]


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
        ({"a": "A fire."}, "no mention in any document; write <m> before"),
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


def test_tags_are_those_of_the_notebooks_box(tagging: TaggingModel, tmp_path: Path) -> None:
    tagged = tagging.tag(EXAMPLE_TEXT)
    kept = replace(tagging.tagger.taggers, cache=tmp_path)
    _, predictions = tag_own(replace(tagging.tagger, taggers=kept), EXAMPLE_TEXT)
    assert [word.tag for word in tagged.words] == [tag for tags in predictions.predicted()[0] for tag in tags]
    assert len(tagged) > 5
    for one in (*tagged, *tagged.words):
        assert EXAMPLE_TEXT[one.start : one.end] == one.text
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
