"""Sentences to read as they were tagged, worked out by hand, and a text of one's own."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence, TagSpan, tag_set
from cdlm_lab.examples.tagging import SplitDocument, TagExamples
from cdlm_lab.experiments.document_tagging import (
    EXAMPLE_TEXT,
    TAG_SYSTEMS,
    Tagger,
    TaggerParts,
    TaggingModels,
    TagPredictions,
    Training,
    new_tagger,
    own_document,
    own_tagger,
    own_text_in_place,
    own_text_of,
    read_sentences,
    tags_in_place,
)

HOSTILE = "<script>alert(1)</script>"
DOCUMENT = TaggedDocument(
    id="a",
    sentences=(
        TaggedSentence(words=("Orn", "met", "Orn"), tags=("B-PER", "O", "B-PER")),
        TaggedSentence(words=("He", "met", HOSTILE)),
        TaggedSentence(words=("Orn", "slept"), tags=("B-PER", "O")),
    ),
)


def predictions_of(document: TaggedDocument, *, weights: bool = True) -> TagPredictions:
    """Of the five words the first and the last are tagged as persons; K = 3."""
    split = SplitDocument(document=document, origin=tuple(range(len(document.sentences))))
    shares = [[0.5, 0.25, 0.25], [0.75, 0.25, 0], [0.25, 0.5, 0.25], [0.125, 0.25, 0.625], [1, 0, 0]]
    return TagPredictions(
        examples=TagExamples([split], tag_set(["PER"]), most=3 if weights else 0),
        tags=np.array([1, 0, 0, 1, 1], dtype=np.int16),
        weights=np.array(shares, dtype=np.float16) if weights else None,
    )


def test_sentences_are_read_with_their_occurrences() -> None:
    first, second = read_sentences(predictions_of(DOCUMENT))
    assert (first.document, first.number, second.number) == ("a", 0, 2)
    assert first.predicted == (TagSpan(label="PER", first=0, stop=1),)
    assert first.gold == (TagSpan(label="PER", first=0, stop=1), TagSpan(label="PER", first=2, stop=3))
    assert [(word.word, word.gold, word.predicted) for word in second.words] == [
        ("Orn", "B-PER", "B-PER"),
        ("slept", "O", "B-PER"),
    ]

    def seen(number: int, place: int) -> list[tuple[int, int, int, float]]:
        word = (first, second)[number].words[place]
        assert all(one.words == DOCUMENT.sentences[one.sentence].words for one in word.occurrences)
        return [(one.sentence, one.place, one.distance, one.weight) for one in word.occurrences]

    assert seen(0, 0) == [(0, 0, 0, 0.5), (0, 2, 0, 0.25), (2, 0, 2, 0.25)]
    assert seen(0, 1) == [(0, 1, 0, 0.75), (1, 1, 1, 0.25)]  # two occurrences, no third
    assert seen(0, 2) == [(0, 0, 0, 0.25), (0, 2, 0, 0.5), (2, 0, 2, 0.25)]
    assert seen(1, 0) == [(2, 0, 0, 0.125), (0, 0, 2, 0.25), (0, 2, 2, 0.625)]
    assert seen(1, 1) == [(2, 1, 0, 1)]


def test_a_system_without_context_has_no_occurrences() -> None:
    reads = read_sentences(predictions_of(DOCUMENT, weights=False))
    assert [word.occurrences for read in reads for word in read.words] == [()] * 5
    assert reads[0].right is False


def test_tags_that_are_not_known_are_no_gold() -> None:
    reads = read_sentences(predictions_of(DOCUMENT), known=False)
    assert {word.gold for read in reads for word in read.words} == {None}
    assert reads[0].right is None


def test_the_page_has_sentences_with_spans_and_no_scripts(tmp_path: Path) -> None:
    plain = TaggedSentence(words=("Silence", HOSTILE), tags=("O", "O"))
    document = TaggedDocument(id=HOSTILE, sentences=(*DOCUMENT.sentences, plain))
    found = predictions_of(DOCUMENT)
    more = TagPredictions(
        examples=predictions_of(document).examples,
        tags=np.concatenate([found.tags, np.zeros(2, dtype=np.int16)]),
        weights=np.concatenate([found.weights, np.array([[1, 0, 0]] * 2, dtype=np.float16)]),
    )
    assert tags_in_place(more, file=tmp_path / "tagged.html").children
    page = (tmp_path / "tagged.html").read_text()
    assert "slept" in page
    assert "Silence" not in page
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    # where no sentence has a span, all are shown
    quiet = TaggedDocument(id="q", sentences=(plain,))
    split = SplitDocument(document=quiet, origin=(0,))
    none = TagPredictions(
        examples=TagExamples([split], ("O",), most=0), tags=np.zeros(2, dtype=np.int16), weights=None
    )
    tags_in_place(none, file=tmp_path / "tagged.html")
    assert "Silence" in (tmp_path / "tagged.html").read_text()


# ---- a text of one's own


@dataclass
class UntrainedRun:
    """What `own_tagger` asks of a run; no training, all words are tagged as `tag`."""

    folder: Path
    tag: str = "B-PER"
    loaded: list[Training] = field(default_factory=list)

    def tagger(self, training: Training, *, trained: bool) -> Tagger:
        assert trained
        self.loaded.append(training)
        parts = TaggerParts(
            settings=TaggingModels(layers=1, hidden_size=4, most_tokens=24),
            labels=("PER",),
            cache=self.folder,
        )
        tagger = new_tagger(training.system, parts, most=training.most, seed=0)
        tagger.model.classifier.bias.data[parts.tags.index(self.tag)] = 100
        return tagger


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


@pytest.mark.parametrize(("name", "most"), [("doc-arc", 3), ("bert-lstm", 0)])
def test_a_text_of_ones_own_is_tagged_and_written(tmp_path: Path, name: str, most: int) -> None:
    run = UntrainedRun(folder=tmp_path)
    tag = own_tagger(run, Training(system=TAG_SYSTEMS[name], most=most, seed=0))
    assert not run.loaded  # nothing before a text is there
    html = tag(f"Orn slept. {HOSTILE} met Orn.")
    rows = (tmp_path / "own_text.tsv").read_text().splitlines()
    document = own_document(f"Orn slept. {HOSTILE} met Orn.")
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
    run = UntrainedRun(folder=tmp_path, tag="O")
    box = own_text_in_place(run, Training(system=TAG_SYSTEMS["doc-arc"], most=3, seed=0), "Orn slept.")
    assert box.children
    assert "slept" in (tmp_path / "own_text.html").read_text()
    assert (tmp_path / "own_text.tsv").read_text() == "Orn\tO\nslept\tO\n.\tO\n\n"


def test_a_sentence_without_end_is_cut_and_no_word_lost(tmp_path: Path) -> None:
    words = ["Orn", "and"] * 60  # more than there is room for
    own_tagger(UntrainedRun(folder=tmp_path), Training(system=TAG_SYSTEMS["doc-arc"], most=3, seed=0))(
        " ".join(words)
    )
    rows = (tmp_path / "own_text.tsv").read_text().splitlines()
    assert [row.split("\t")[0] for row in rows] == [*words, ""]  # one sentence in the file


def test_the_text_of_a_file_or_the_example(tmp_path: Path) -> None:
    assert own_text_of("") == EXAMPLE_TEXT
    (tmp_path / "book.txt").write_text("Orn slept.")
    assert own_text_of(str(tmp_path / "book.txt")) == "Orn slept."
    with pytest.raises((ValueError, OSError), match=r"nowhere\.txt"):
        own_text_of(str(tmp_path / "nowhere.txt"))
    assert len(own_document(EXAMPLE_TEXT).sentences) > 4
