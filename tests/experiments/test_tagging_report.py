"""The report of notebook 07 on tags written by hand: all numbers can be worked out from them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.data.tagged import TaggedDocument, TaggedSentence
from cdlm_lab.examples.tagging import SplitDocument, TagExamples
from cdlm_lab.experiments.document_tagging import (
    TaggedCorpus,
    TaggingModels,
    TaggingRun,
    TaggingSettings,
    TaggingTraining,
    TagPredictions,
    Training,
    comparison_rows,
    corpus_facts,
    corpus_name,
    span_count,
    tag_table,
    top_rows,
    write_tagging_report,
)
from cdlm_lab.metrics.counts import span_counts
from cdlm_lab.models.precision import precision_told
from cdlm_lab.report import Report, open_run, read_report


def document(name: str, *sentences: tuple[str, str | None]) -> TaggedDocument:
    return TaggedDocument(
        id=name,
        sentences=tuple(
            TaggedSentence(words=tuple(words.split()), tags=tuple(tags.split()) if tags else None)
            for words, tags in sentences
        ),
    )


DOCUMENTS = {
    "train": (document("t", ("Nobody slept", "O O")), document("u", ("He came to", "O O O"))),
    "dev": (document("e", ("Orn slept", "B-PER O")), document("f", ("Sul burned", "B-LOC O"))),
    "test": (
        document("a", ("Orn Vale slept", "B-PER I-PER O"), ("He left Dram", "O O B-LOC")),
        document("b", ("Dram burned", "B-LOC O")),
        document("c", ("Nobody came to Sul", "O O O B-LOC"), ("Sul Sul Sul", None)),
    ),
}
# What systems say of the words of test, and how often the spans are right: 4 of the gold are there.
HALF = "B-PER O O O O B-LOC  O O  B-PER O O B-LOC"  # 2 of 4 predicted
MOST = "B-PER I-PER O O O B-LOC  B-LOC O  O O O O"  # 3 of 3
WITHOUT_B = "B-PER I-PER O O O B-LOC  O O  O O O B-LOC"  # 3 of 3
RIGHT = "B-PER I-PER O O O B-LOC  B-LOC O  O O O B-LOC"
NOTHING = "O O O O O O  O O  O O O O"
GIVEN = {
    "bert-lstm-0": (HALF, "O O O O"),
    "bert-lstm-1": (MOST, "B-PER O O O"),
    "doc-arc-3-0": (RIGHT, "B-PER O B-LOC O"),
    "doc-arc-3-1": (WITHOUT_B, "B-PER O O O"),
    "doc-arc-2-0": (NOTHING, "O O O O"),
    "doc-arc-2-1": (RIGHT, "B-PER O B-LOC O"),
}


def run_of(folder: Path, *, reading: str = "seqeval", **documents: tuple[TaggedDocument, ...]) -> TaggingRun:
    return TaggingRun(
        settings=TaggingSettings(
            models=TaggingModels(occurrences=3),
            training=TaggingTraining(seeds=2, sweep="2", reading=reading),
        ),
        corpus=TaggedCorpus(documents=DOCUMENTS | documents, mended={"train": 0, "dev": 1200, "test": 0}),
        folder=folder,
    )


def predicted(run: TaggingRun, split: str, tags: str, *, training: Training) -> TagPredictions:
    """Tags as given. Weights: of Sul in c 0.5 for itself and 0.25 for the two nearest in the context; with
    seed 1 and other K something else, which the report must not look at."""
    documents = [
        SplitDocument(document=one, origin=tuple(range(len(one.sentences))))
        for one in run.corpus.documents[split]
    ]
    names = run.parts.tags
    examples = TagExamples(documents, names, most=training.most)
    numbers = np.array([names.index(tag) for tag in tags.split()], dtype=np.int16)
    weights = None
    if training.most:
        weights = np.zeros((len(numbers), training.most), dtype=np.float16)
        weights[:, 0] = 1
        if split == "test" and training.name == "doc-arc-3-0":
            weights[-1] = 0.5, 0.25, 0.25
    return TagPredictions(examples=examples, tags=numbers, weights=weights)


def found_of(run: TaggingRun, **given: tuple[str, str]) -> dict[Training, dict[str, TagPredictions]]:
    return {
        training: {
            split: predicted(run, split, tags, training=training)
            for split, tags in zip(("test", "dev"), (GIVEN | given)[training.name], strict=True)
        }
        for training in run.trainings
    }


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[TaggingRun, Report]:
    folder = tmp_path_factory.mktemp("tagging")
    run = run_of(folder)
    opened = open_run(folder, name="document-attentive tagging", parameters=run.settings.parameters)
    write_tagging_report(run, opened, found_of(run))
    return run, read_report(folder)


def test_scores_are_means_over_the_seeds(written) -> None:
    _, report = written
    for name, expected in (
        # precision, recall, F1; and F1 of the two seeds
        ("bert-lstm", ((0.5 + 1) / 2, (0.5 + 0.75) / 2, (0.5, 6 / 7))),
        ("doc-arc", (1, (1 + 0.75) / 2, (1, 6 / 7))),
        ("doc-arc-2", (0.5, 0.5, (0, 1))),
    ):
        precision, recall, each = expected
        scores = {
            measure: report.scores[f"{name}/test/{measure}"] for measure in ("precision", "recall", "f1")
        }
        assert scores["precision"]["value"] == pytest.approx(precision)
        assert scores["recall"]["value"] == pytest.approx(recall)
        assert scores["f1"]["value"] == pytest.approx(sum(each) / 2)
        assert scores["f1"]["deviation"] == pytest.approx(abs(each[0] - each[1]) / 2**0.5)
        assert scores["f1"]["seeds"] == 2
        assert scores["f1"]["low"] <= scores["f1"]["value"] <= scores["f1"]["high"]
    assert report.scores["doc-arc/dev/recall"]["value"] == pytest.approx((1 + 0.5) / 2)
    assert len(report.scores) == 3 * 2 * 3


def test_each_run_has_its_own_row(written) -> None:
    run, report = written
    rows = {
        (row["system"], row["occurrences"], row["seed"], row["split"]): row for row in report.tables["runs"]
    }
    assert len(rows) == len(report.tables["runs"]) == 12
    for training, of_split in found_of(run).items():
        for split, one in of_split.items():
            correct, found, gold = span_counts(one.gold(), one.predicted()).sum(axis=0).tolist()
            row = rows[training.system.name, training.most, training.seed, split]
            assert row["precision"] == pytest.approx(correct / found if found else 0)
            assert row["recall"] == pytest.approx(correct / gold)
    assert rows["bert-lstm", 0, 0, "test"]["f1"] == 0.5
    assert rows["doc-arc", 3, 1, "test"]["f1"] == pytest.approx(6 / 7)


def test_comparisons_are_of_the_runs_own_k_on_test(written) -> None:
    _, report = written
    (row,) = report.tables["comparisons"]
    assert (row["a"], row["b"], row["measure"], row["clusters"]) == ("doc-arc", "bert-lstm", "f1", 3)
    assert row["difference"] == pytest.approx((1 + 6 / 7) / 2 - (0.5 + 6 / 7) / 2)
    assert row["p_holm"] == row["p"]  # one test needs no correction
    ((a, b, difference, p),) = comparison_rows(report)
    assert (a, b) == ("Doc-ARC", "BERT + LSTM")
    assert difference.startswith("+25.0 [")
    assert p == f"{row['p_holm']:.3f}"


def test_the_sweep_has_every_k_and_seed_on_dev(written) -> None:
    _, report = written
    assert [(row["occurrences"], row["seed"]) for row in report.tables["sweep"]] == [
        (2, 0),
        (2, 1),
        (3, 0),
        (3, 1),
    ]
    assert [row["f1"] for row in report.tables["sweep"]] == pytest.approx([0, 1, 1, 2 / 3])


def test_rows_of_the_tables(written) -> None:
    _, report = written
    rows = tag_table(report).rows
    assert [(row[0].text, row[4].text) for row in rows] == [("BERT + LSTM", "2"), ("Doc-ARC", "2")]
    score = report.scores["doc-arc/test/f1"]
    assert rows[1][3].text == f"{100 * score['value']:.1f}"
    assert rows[1][3].below.startswith(f"\u00b1 {100 * score['deviation']:.1f} [")
    assert tag_table(report, "dev").rows[1][3].text == "83.3", "of 1 and 2 / 3"
    hostile = replace(report, tables=report.tables | {"top": [{"word": "<b>", "labels": ["<i>", "PER"]}]})
    assert top_rows(hostile) == [["&lt;b&gt;", "&lt;i&gt;, PER"]]
    tiny = report.tables["comparisons"][0] | {"p_holm": 0.0002}
    assert comparison_rows(replace(report, tables={"comparisons": [tiny]}))[0][3] == "< 0.001"


def test_the_report_says_what_was_tagged(written) -> None:
    run, report = written
    assert report.data["documents"] == {"train": 2, "dev": 2, "test": 3}
    assert report.data["labels"] == ["LOC", "PER"]
    assert report.data["precision"] == precision_told("auto")
    facts = dict(corpus_facts(run))
    assert report.data["facts"] == facts
    assert facts["test"] == "3 documents of 15 words; 12 of them labelled, in 4 sentences with 4 spans"
    assert facts["dev"] == (
        "2 documents of 4 words; 4 of them labelled, in 2 sentences with 2 spans; 1,200 tags I- that began a "
        "span were read as B-"
    )
    assert facts["labels"] == "LOC, PER"
    assert span_count(run, "test") == 4
    json.loads((run.folder / "report.json").read_text(), parse_constant=pytest.fail)  # no NaN, no Infinity


@pytest.mark.parametrize(("reading", "f1"), [("seqeval", 1), ("strict", 6 / 7), ("released", 4 / 7)])
def test_the_reading_of_spans_is_that_of_the_settings(tmp_path: Path, reading: str, f1: float) -> None:
    """The span of b starts with an I-. `released` also lets it go on with the span at the end of a."""
    run = run_of(tmp_path, reading=reading)
    stray = RIGHT.replace("B-LOC O  O", "I-LOC O  O")
    assert stray.split().count("I-LOC") == 1
    found = found_of(run, **{"bert-lstm-0": (stray, "O O O O"), "bert-lstm-1": (stray, "O O O O")})
    report = write_tagging_report(run, open_run(tmp_path, name="x", parameters={}), found)
    assert report.scores["bert-lstm/test/f1"]["value"] == pytest.approx(f1)


def test_a_corpus_of_the_paper_is_known_by_its_labels(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert corpus_name(run) == "storyworld"
    labels = ("PER", "LOC", "FAC", "GPE", "ORG", "VEH")
    tags = " ".join(f"B-{label}" for label in labels)
    books = run_of(tmp_path, test=(document("a", ("a b c d e f", tags)),))
    assert corpus_name(books) == "litbank"
    folder = replace(run.settings.corpus, corpus="texts/mine")
    assert corpus_name(replace(run, settings=replace(run.settings, corpus=folder))) == "mine"


# ---- the analyses of section 5 (tagging_analysis.py)


def test_gains_are_of_words(written) -> None:
    """Word-level F1 of the 5 words in spans. bert-lstm: with seed 0 right are Orn, Dram and Sul, Nobody is
    wrong, 6/9; with seed 1 all but Sul, 8/9. doc-arc: 1, and without the Dram of b 8/9."""
    _, report = written
    rows = {row["words"]: row for row in report.tables["gains"]}
    assert list(rows) == ["all words", "top 10%", "top 5%", "top 1%"]
    assert rows["all words"]["occurrences"] == 5
    assert rows["all words"]["difference"] == pytest.approx((1 + 8 / 9) / 2 - (6 / 9 + 8 / 9) / 2)
    assert rows["all words"]["f1_a"] == pytest.approx((1 + 8 / 9) / 2)
    assert rows["all words"]["f1_b"] == pytest.approx((6 / 9 + 8 / 9) / 2)
    # Sul of c alone, where it stands four times: right with one of two seeds, and with both
    assert rows["top 1%"]["occurrences"] == 1
    assert rows["top 1%"]["difference"] == pytest.approx(1 - 0.5)
    assert {(row["a"], row["b"]) for row in rows.values()} == {("doc-arc", "bert-lstm")}


def test_the_top_entities_are_frequent_here_and_rare_elsewhere(written) -> None:
    """Of 7 documents Sul is in 2, Dram in 2, Orn in 2, Vale in 1: 1.6 log 3.5 and once log 7, log 3.5."""
    _, report = written
    rows = report.tables["top"]
    assert [(row["word"], row["labels"]) for row in rows[:2]] == [("Sul", ["LOC"]), ("Vale", ["PER"])]
    assert rows[0]["score"] == pytest.approx((1 + np.log10(4)) * np.log10(7 / 2))
    assert rows[1]["score"] == pytest.approx(np.log10(7))


def test_shares_are_of_all_labelled_words(written) -> None:
    _, report = written
    assert sum(row["words"] for row in report.tables["shares"]) == 12
    entities = sum(row["words"] * row["share"] for row in report.tables["shares"])
    assert entities == pytest.approx(5)


def test_weights_are_of_words_that_occur_more_than_once_with_seed_0(written) -> None:
    _, report = written
    rows = report.tables["weights"]
    assert [(row["system"], row["bucket"], row["count"], row["mean"]) for row in rows] == [
        ("doc-arc", 0, 1, 0.5),
        ("doc-arc", 1, 2, 0.25),
    ]


def test_without_words_that_occur_again_there_are_no_weights(tmp_path: Path) -> None:
    test = (*DOCUMENTS["test"][:2], document("c", ("Nobody came to Sul", "O O O B-LOC")))
    run = run_of(tmp_path, test=test)
    report = write_tagging_report(run, open_run(tmp_path, name="x", parameters={}), found_of(run))
    assert report.tables["weights"] == []
