"""What notebook 07 shows: figures and their numbers, sentences as they were tagged, a text of one's own."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tagging_runs import tagged

from cdlm_lab.data.tagged import TaggedDocument, TagSpan, tag_set
from cdlm_lab.examples.tagging import SplitDocument, TagExamples
from cdlm_lab.experiments.document_tagging import TagTraining
from cdlm_lab.experiments.systems.tagging import TAG_SYSTEMS, Tagger, Taggers, TaggerSettings, TagPredictions
from cdlm_lab.experiments.views.tagging import (
    EXAMPLE_TEXT,
    figures,
    own_document,
    own_tagger,
    own_text_in_place,
    own_text_of,
    tagged_sentences,
    tags_in_place,
)


def share(start: float, stop: float, value: float) -> dict[str, float]:
    return {"start": start, "stop": stop, "lowest": start, "highest": stop, "words": 8, "share": value}


def gain(other: str, words: str, difference: float) -> dict[str, Any]:
    interval = {"difference": difference, "low": difference - 0.1, "high": difference + 0.1}
    pair = {"a": "doc-arc", "b": other, "measure": "f1", "words": words}
    return pair | interval | {"occurrences": 40, "p": 0.5, "clusters": 3}


def weights(system: str, bucket: int, mean: float) -> dict[str, Any]:
    quantiles = [mean / 4, mean / 2, mean, mean, 1.0]
    return {"system": system, "bucket": bucket, "count": 7, "mean": mean, "quantiles": quantiles}


SWEPT = ((10, 0, 0.75), (10, 1, 0.25), (2, 0, 0.5), (2, 1, 0.625))
TABLES = {
    "shares": [share(0, 50, 0.125), share(50, 100, 0.75)],
    "gains": [gain("bert-lstm", "all words", 0.02), gain("bert-lstm", "top 10%", 0.05)],
    "weights": [weights("doc-arc", 0, 0.6), weights("doc-arc", 4, 0.2)],
    "sweep": [{"occurrences": most, "seed": seed, "f1": f1} for most, seed, f1 in SWEPT],
}


def drawn(**tables: Any) -> list[Any]:
    return figures(SimpleNamespace(data={"corpus": "texts/mine"}, parameters={}, tables=TABLES | tables))


def titles(**tables: Any) -> list[str]:
    return [figure.layout.title.text for figure in drawn(**tables)]


def test_figures_in_the_papers_order_and_those_without_numbers_left_out() -> None:
    every = titles()
    assert len(every) == 4
    assert "TF-IDF" in every[0]
    assert "Doc-ARC" in every[1]
    assert "BERT + LSTM" in every[1]
    assert every[2].startswith("Attention weight of occurrences, by distance: Doc-ARC")
    assert titles(sweep=[]) == every[:3]
    assert titles(sweep=TABLES["sweep"][:2]) == every[:3]  # one K is no sweep
    assert titles(weights=[]) == [*every[:2], every[3]]
    assert titles(gains=[], weights=[], sweep=[]) == every[:1]
    # each pair and each system has its own
    assert len(titles(gains=[*TABLES["gains"], gain("bert", "all words", 0.01)])) == len(every) + 1
    found = drawn(weights=[*TABLES["weights"], weights("dynamic-doc-arc", 0, 0.5)])
    assert len(found) == len(every) + 1
    assert "Doc-ARC, dynamic" in found[3].layout.title.text
    assert [list(figure.data[-1].y) for figure in found[2:4]] == [[0.6, 0.2], [0.5]]
    assert found[2].layout.xaxis.ticktext[4].startswith("4-7<")


# ---- sentences as they were tagged

HOSTILE = "<script>alert(1)</script>"
SENTENCES = (("Orn met Orn", "B-PER O B-PER"), (f"He met {HOSTILE}", None), ("Orn slept", "B-PER O"))
DOCUMENT = tagged("a", *SENTENCES)


class UntrainedRun(SimpleNamespace):
    """What the views ask of a run; no training, all words are tagged as `tag`."""

    def __init__(self, folder: Path, name: str, *, tag: str = "B-PER", own_text: str = "") -> None:
        system = TAG_SYSTEMS[name]
        shown = TagTraining(system, 3 if system.context else 0, 0)
        settings = SimpleNamespace(own_text=own_text)
        super().__init__(folder=folder, shown=shown, tag=tag, settings=settings, loaded=[])

    def load(self, training: TagTraining) -> Tagger:
        self.loaded.append(training)
        settings = TaggerSettings(layers=1, hidden_size=4, most_tokens=24)
        taggers = Taggers(settings=settings, labels=("PER",), cache=self.folder)
        tagger = taggers.make(training.system, most=training.most, seed=0)
        tagger.model.classifier.bias.data[taggers.tags.index(self.tag)] = 100
        return tagger


SHARES = [[0.5, 0.25, 0.25], [0.75, 0.25, 0], [0.25, 0.5, 0.25], [0.125, 0.25, 0.625], [1, 0, 0]]


def predictions_of(
    document: TaggedDocument, tags: list[int], shares: list[list[float]] | None = None
) -> TagPredictions:
    """1 = a person; with shares K = 3."""
    split = SplitDocument(document=document, origin=tuple(range(len(document.sentences))))
    return TagPredictions(
        examples=TagExamples([split], tag_set(["PER"]), most=3 if shares else 0),
        tags=np.array(tags, dtype=np.int16),
        weights=np.array(shares, dtype=np.float16) if shares else None,
    )


def test_sentences_are_read_with_their_occurrences() -> None:
    first, second = tagged_sentences(predictions_of(DOCUMENT, [1, 0, 0, 1, 1], SHARES))
    assert (first.document, first.number, second.number) == ("a", 0, 2)
    assert first.predicted == (TagSpan(label="PER", first=0, stop=1),)
    assert first.gold == (TagSpan(label="PER", first=0, stop=1), TagSpan(label="PER", first=2, stop=3))
    words = [(word.word, word.gold, word.predicted) for word in second.words]
    assert words == [("Orn", "B-PER", "B-PER"), ("slept", "O", "B-PER")]

    def seen(number: int, place: int) -> list[tuple[int, int, int, float]]:
        word = (first, second)[number].words[place]
        assert all(one.words == DOCUMENT.sentences[one.sentence].words for one in word.occurrences)
        return [(one.sentence, one.place, one.distance, one.weight) for one in word.occurrences]

    assert seen(0, 0) == [(0, 0, 0, 0.5), (0, 2, 0, 0.25), (2, 0, 2, 0.25)]
    assert seen(0, 1) == [(0, 1, 0, 0.75), (1, 1, 1, 0.25)]  # two occurrences, no third
    assert seen(0, 2) == [(0, 0, 0, 0.25), (0, 2, 0, 0.5), (2, 0, 2, 0.25)]
    assert seen(1, 0) == [(2, 0, 0, 0.125), (0, 0, 2, 0.25), (0, 2, 2, 0.625)]
    assert seen(1, 1) == [(2, 1, 0, 1)]


def test_without_context_no_occurrences_and_without_gold_no_verdict() -> None:
    predictions = predictions_of(DOCUMENT, [1, 0, 0, 1, 1])
    reads, unknown = tagged_sentences(predictions), tagged_sentences(predictions, known=False)
    assert [word.occurrences for read in reads for word in read.words] == [()] * 5
    assert reads[0].right is False
    assert {word.gold for read in unknown for word in read.words} == {None}
    assert unknown[0].right is None


def test_the_page_has_sentences_with_spans_and_no_scripts(tmp_path: Path) -> None:
    plain, run = (f"Silence {HOSTILE}", "O O"), UntrainedRun(tmp_path, "doc-arc")

    def page(document: TaggedDocument, *given: list) -> str:
        assert tags_in_place(run, {run.shown.key: {"dev": predictions_of(document, *given)}}).children
        return (tmp_path / "tagged.html").read_text()

    shown = page(tagged(HOSTILE, *SENTENCES, plain), [1, 0, 0, 1, 1, 0, 0], [*SHARES, [1, 0, 0], [1, 0, 0]])
    assert "slept" in shown
    assert "Silence" not in shown
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "Silence" in page(tagged("q", plain), [0, 0]), "where no sentence has a span, all are shown"


# ---- a text of one's own


def test_a_text_becomes_sentences_and_words() -> None:
    document = own_document('Orn\'s son, 54, left.\nHe said "no" to 2,310\nmen.')
    assert [sentence.words for sentence in document.sentences] == [
        ("Orn's", "son", ",", "54", ",", "left", "."),
        ("He", "said", '"', "no", '"', "to", "2,310", "men", "."),
    ]
    assert document.labelled == (0, 1)  # all are to be tagged
    for nothing in ("", " \n\t "):
        with pytest.raises(ValueError, match="the text has no words; write or paste one"):
            own_document(nothing)


@pytest.mark.parametrize("name", ["doc-arc", "bert-lstm"])
def test_a_text_of_ones_own_is_tagged_and_written(tmp_path: Path, name: str) -> None:
    run, text = UntrainedRun(tmp_path, name), f"Orn slept. {HOSTILE} met Orn."
    tag, document = own_tagger(run), own_document(text)
    assert not run.loaded  # nothing before a text is there
    html = tag(text)
    rows = (tmp_path / "own_text.tsv").read_text().splitlines()
    words = [word for sentence in document.sentences for word in sentence.words]
    assert [row.split("\t") for row in rows if row] == [[word, "B-PER"] for word in words]
    assert rows.count("") == len(document.sentences)
    for page in (html, (tmp_path / "own_text.html").read_text()):
        assert "slept" in page
        assert "<script" not in page
        assert "&lt;" in page
    assert "gold" not in html
    tag("Vale slept.")
    assert len(run.loaded) == 1
    assert "Orn" not in (tmp_path / "own_text.tsv").read_text()


def test_of_a_text_without_spans_everything_is_shown(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Orn slept.")
    run = UntrainedRun(tmp_path, "doc-arc", tag="O", own_text=str(tmp_path / "a.txt"))
    assert own_text_in_place(run).children
    assert "slept" in (tmp_path / "own_text.html").read_text()
    assert (tmp_path / "own_text.tsv").read_text() == "Orn\tO\nslept\tO\n.\tO\n\n"


def test_a_sentence_without_end_is_cut_and_no_word_lost(tmp_path: Path) -> None:
    words = ["Orn", "and"] * 60  # more than there is room for
    own_tagger(UntrainedRun(tmp_path, "doc-arc"))(" ".join(words))
    rows = (tmp_path / "own_text.tsv").read_text().splitlines()
    assert [row.split("\t")[0] for row in rows] == [*words, ""]  # one sentence in the file


def test_the_text_of_a_file_or_the_example(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text("Orn slept.")
    for file, text in (("", EXAMPLE_TEXT), (str(tmp_path / "book.txt"), "Orn slept.")):
        assert own_text_of(SimpleNamespace(own_text=file)) == text
    with pytest.raises((ValueError, OSError), match=r"nowhere\.txt"):
        own_text_of(SimpleNamespace(own_text=str(tmp_path / "nowhere.txt")))
    assert len(own_document(EXAMPLE_TEXT).sentences) > 4
