"""The benchmark of document-attentive tagging: what is counted, and the command from end to end."""

from pathlib import Path

import pytest

from cdlm_lab.benchmarks import document_tagging as benchmark
from cdlm_lab.data.convert.tagged import TaggedDocument, TaggedSentence
from cdlm_lab.encoders.frozen import load_word_encoder
from cdlm_lab.tasks.tagging.model import equal_hidden_size

HIDDEN = 2


def document(name: str) -> TaggedDocument:
    """Both words of the labelled sentence look at it, and the name at the last sentence too."""
    return TaggedDocument(
        id=name,
        sentences=(
            TaggedSentence(words=(name, "slept"), tags=("B-PER", "O")),
            TaggedSentence(words=("He", "woke")),
            TaggedSentence(words=(name, "left", "early")),
        ),
    )


@pytest.fixture(scope="module")
def epochs(tmp_path_factory: pytest.TempPathFactory) -> benchmark.Epochs:
    return benchmark.Epochs(
        load_word_encoder("storyworld/longformer", layers=1, max_tokens=32),
        [document("Orn"), document("Vale")],
        most=2,
        hidden_size=HIDDEN,
        cache=tmp_path_factory.mktemp("encodings"),
        device="cpu",
    )


def test_words_of_an_epoch_by_hand(epochs: benchmark.Epochs) -> None:
    """Of each document a sentence of 2 words is read for k = 1 and, as its name is there twice, for k = 2;
    three words are attended to."""
    assert epochs.read() == {"targets": 4, "context": 8, "attended": 6}
    assert epochs.encoding > 0


def test_multiply_adds_by_hand(epochs: benchmark.Epochs) -> None:
    size = epochs.models["bilstm"].config.size
    read = {"targets": 3, "context": 5, "attended": 2}
    # an LSTM of 2 numbers has 4 gates, each of its input and of its 2 numbers; there are two directions
    f_c = 2 * 4 * 2 * (size + 2)
    # f_s reads the 4 numbers of f_c, as many of the occurrences, and the 20 of a distance
    f_s = 2 * 4 * 2 * (4 + 4 + 20 + 2)
    assert epochs.multiply_adds("bilstm", read) == 3 * (f_c + f_s) + 5 * f_c
    assert epochs.multiply_adds("linear", read) == 3 * (4 * size + f_s) + 2 * 4 * size
    hidden = equal_hidden_size(epochs.models["bilstm"].config)
    alone = 8 * hidden * (size + hidden) + 8 * hidden * (2 * hidden + hidden)
    assert epochs.multiply_adds("baseline", read) == 3 * alone


def test_an_epoch_learns_from_every_form(epochs: benchmark.Epochs) -> None:
    for form in benchmark.FORMS:
        before = {name: weight.clone() for name, weight in epochs.models[form].state_dict().items()}
        epochs.epoch(form)
        after = epochs.models[form].state_dict()
        assert (after["classifier.weight"] != before["classifier.weight"]).any()


def test_the_command_prints_a_table_and_writes_the_rows(command) -> None:
    options = "--documents 2 --occurrences 2 --repeats 1 --layers 1 --hidden-size 4"
    written, printed = command(benchmark, options)
    assert written["documents"] == 2
    assert "documents 2" in printed
    rows = written["rows"]
    assert [(row["occurrences"], row["form"]) for row in rows] == [(2, form) for form in benchmark.FORMS]
    assert rows[0]["ratio"] == rows[0]["predicted"] == 1
    assert rows[1]["predicted"] < rows[2]["predicted"]
    assert rows[0]["encoding_again"] is None
    assert all(row["encoding_again"] > row["ratio"] for row in rows[1:])
    assert all(row["ratio_min"] == row["ratio"] == row["ratio_max"] for row in rows)  # one repeat
    assert f"| 2 | bilstm | {rows[2]['seconds']:.2f} |" in printed


def test_a_corpus_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command) -> None:
    """The first documents of train; the measuring itself is left out."""
    (tmp_path / "train").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "train" / f"{name}.tsv").write_text("Orn\tB-PER\nslept\tO\n\nOrn\tNULL\n")
    seen = []
    monkeypatch.setattr(benchmark, "measure", lambda epochs, **_: seen.append(epochs.examples) or [])
    command(benchmark, f"--corpus {tmp_path} --documents 2 --occurrences 1 3")
    assert [examples.most for examples in seen] == [1, 3]
    assert [split.document.id for split in seen[0].documents] == ["a", "b"]
