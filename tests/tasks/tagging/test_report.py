"""Notebook 07 with tags written by hand: its report, all of whose numbers follow from them; figures, tagged
sentences, and a text of the user's own."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tagging_runs import score_of, tagged, tagging_run

from cdlm_lab.data.convert.tagged import STRAY
from cdlm_lab.data.files import DataError
from cdlm_lab.data.records import PassedOver, TaggedDocument
from cdlm_lab.data.tags import TagSpan, tag_set
from cdlm_lab.encoders.precision import precision_in_words
from cdlm_lab.runs.own import add_predictions
from cdlm_lab.runs.report import Report, open_run, read_report
from cdlm_lab.tasks.tagging import experiment as document_tagging
from cdlm_lab.tasks.tagging import view
from cdlm_lab.tasks.tagging.examples import SplitDocument, TagExamples
from cdlm_lab.tasks.tagging.experiment import (
    Settings,
    TaggedCorpus,
    TaggingRun,
    TagTraining,
)
from cdlm_lab.tasks.tagging.systems import Tagger, Taggers, TagPredictions
from cdlm_lab.tasks.tagging.view import (
    figures,
    tagged_sentences,
    tags_in_place,
)

Predictions = dict[tuple[str, int], dict[str, TagPredictions]]
DOCUMENTS = {
    "train": (tagged("t", ("Nobody slept", "O O")), tagged("u", ("He came to", "O O O"))),
    "dev": (tagged("e", ("Orn slept", "B-PER O")), tagged("f", ("Sul burned", "B-LOC O"))),
    "test": (
        tagged("a", ("Orn Vale slept", "B-PER I-PER O"), ("He left Dram", "O O B-LOC")),
        tagged("b", ("Dram burned", "B-LOC O")),
        tagged("c", ("Nobody came to Sul", "O O O B-LOC"), ("Sul Sul Sul", None)),
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


def run_of(folder: Path, **documents: tuple[TaggedDocument, ...]) -> TaggingRun:
    counted = PassedOver()
    for _ in range(1200):
        counted.add(STRAY, "dev.conll")
    corpus = TaggedCorpus(documents=DOCUMENTS | documents, passed_over={"dev": counted})
    run = tagging_run(corpus, run_folder=str(folder), occurrences=3, seeds=2, sweep="2")
    return replace(run, opened=open_run(folder, name="document-attentive tagging", parameters={}))


def report_of(run: TaggingRun, **given: tuple[str, str]) -> Report:
    return document_tagging.report(run, document_tagging.evaluate(run, tagged_by_hand(run, **given)))


def predicted(run: TaggingRun, split: str, tags: str, *, training: TagTraining) -> TagPredictions:
    """Make predictions with these tags. Weights: Sul in c gives 0.5 to itself and 0.25 to each of the two
    nearest occurrences; with seed 1 and other K different ones, which the report must not use."""
    documents = run.corpus.documents[split]
    splits = [SplitDocument(document=one, origin=tuple(range(len(one.sentences)))) for one in documents]
    names, weights = run.taggers.tags, None
    numbers = np.array([names.index(tag) for tag in tags.split()], dtype=np.int16)
    if training.most:
        weights = np.zeros((len(numbers), training.most), dtype=np.float16)
        weights[:, 0] = 1
        if split == "test" and training.name == "doc-arc-3-0":
            weights[-1] = 0.5, 0.25, 0.25
    examples = TagExamples(splits, names, most=training.most)
    return TagPredictions(examples=examples, tags=numbers, weights=weights)


def tagged_by_hand(run: TaggingRun, **given: tuple[str, str]) -> Predictions:
    return {
        training.key: {
            split: predicted(run, split, tags, training=training)
            for split, tags in zip(("test", "dev"), (GIVEN | given)[training.name], strict=True)
        }
        for training in run.trainings
    }


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[TaggingRun, Report]:
    folder = tmp_path_factory.mktemp("tagging")
    run = run_of(folder)
    report_of(run)
    return run, read_report(folder)


@pytest.mark.parametrize(
    ("name", "precision", "recall", "each"),  # each: F1 of each seed
    [
        ("bert-lstm", (0.5 + 1) / 2, (0.5 + 0.75) / 2, (0.5, 6 / 7)),
        ("doc-arc", 1, (1 + 0.75) / 2, (1, 6 / 7)),
        ("doc-arc-2", 0.5, 0.5, (0, 1)),
    ],
)
def test_scores_are_means_over_the_seeds(written, name, precision, recall, each) -> None:
    _, by_hand = written
    scores = {metric: score_of(by_hand, name, "test", metric) for metric in ("precision", "recall", "f1")}
    assert scores["precision"].value == pytest.approx(precision)
    assert scores["recall"].value == pytest.approx(recall)
    assert scores["f1"].value == pytest.approx(sum(each) / 2)
    assert (scores["f1"].seeds, scores["f1"].n, scores["f1"].clusters) == (2, 4, 3)
    assert [score_of(by_hand, name, "test", "f1", seed).value for seed in (0, 1)] == pytest.approx(each)


def test_comparisons_are_of_the_runs_own_k_on_test(written) -> None:
    _, by_hand = written
    (row,) = by_hand.tables["comparisons"]
    assert (row["a"], row["b"], row["measure"], row["clusters"]) == ("doc-arc", "bert-lstm", "f1", 3)
    assert row["difference"] == pytest.approx((1 + 6 / 7) / 2 - (0.5 + 6 / 7) / 2)
    score = score_of(by_hand, "doc-arc", "test", "f1")
    assert (score.p, score.against) == (row["p_holm"], "bert-lstm")
    assert row["p"] == max(row["p_items"], row["p_seeds"])
    tiny = replace(by_hand, tables={"comparisons": [row | {"p_holm": 0.0002}]})
    assert "+25.0 [" in view.comparison_table(by_hand).html()
    assert "&lt; 0.001" in view.comparison_table(tiny).html()
    assert "Doc-ARC-2" not in view.score_table(by_hand).text(), "the sweep has a figure"


def test_the_sweep_has_every_k_and_seed_on_dev(written) -> None:
    _, by_hand = written
    sweep = by_hand.tables["sweep"]
    assert [(row["occurrences"], row["seed"]) for row in sweep] == [(2, 0), (2, 1), (3, 0), (3, 1)]
    assert [row["f1"] for row in sweep] == pytest.approx([0, 1, 1, 2 / 3])


def test_the_report_says_what_was_tagged(written) -> None:
    run, by_hand = written
    assert by_hand.data["documents"] == {"train": 2, "dev": 2, "test": 3}
    assert by_hand.data["labels"] == ["LOC", "PER"]
    assert by_hand.data["precision"] == precision_in_words("auto")
    facts = dict(document_tagging.corpus_facts(run))
    assert by_hand.data["facts"] == facts
    assert facts["test"] == "3 documents of 15 words; 12 of them labelled, in 4 sentences with 4 spans"
    dev = "2 documents of 4 words; 4 of them labelled, in 2 sentences with 2 spans"
    assert facts["dev"] == f"{dev}; 1,200 tags I- that began a span were read as B-"
    assert facts["labels"] == "LOC, PER"
    json.loads((run.folder / "report.json").read_text(), parse_constant=pytest.fail)  # no NaN, no Infinity


# ---- the analyses of section 5


def test_gains_are_of_words(written) -> None:
    """Word-level F1 of the 5 words in spans. bert-lstm: with seed 0 Orn, Dram and Sul are right and Nobody is
    wrong, 6/9; with seed 1 all but Sul are right, 8/9. doc-arc: 1, and without the Dram of b 8/9."""
    _, by_hand = written
    rows = {row["words"]: row for row in by_hand.tables["gains"]}
    assert list(rows) == ["all words", "top 10%", "top 5%", "top 1%"]
    every, top = rows["all words"], rows["top 1%"]
    assert every["difference"] == pytest.approx((1 + 8 / 9) / 2 - (6 / 9 + 8 / 9) / 2)
    # Sul of c alone, where it stands four times: right with one of two seeds, and with both
    assert (every["occurrences"], top["occurrences"], top["difference"]) == (5, 1, pytest.approx(1 - 0.5))
    assert (every["f1_a"], every["f1_b"]) == pytest.approx(((1 + 8 / 9) / 2, (6 / 9 + 8 / 9) / 2))
    assert {row["family"] for row in rows.values()} == {"word_f1/doc-arc/bert-lstm"}


@pytest.mark.parametrize("name", ["doc-arc-3-0", "bert-lstm-0"])
def test_predictions_of_ones_own_have_the_same_scores(written, tmp_path: Path, name: str) -> None:
    run, by_hand = written
    system, seed = next(one.key for one in run.trainings if one.name == name)
    tags = tagged_by_hand(run)[system, seed]["test"].predicted()
    rows = [{"item": item, "tags": of} for item, of in zip("abc", tags, strict=True)]
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows[::-1]))
    made = add_predictions(run, file)
    mine = {row.metric: row.value for row in made.rows if row.key[:3] == ("mine", "test", "") and row.seeds}
    assert list(mine) == ["precision", "recall", "f1"]
    for metric, value in mine.items():
        assert value == pytest.approx(score_of(by_hand, system, "test", metric, seed).value)
    compared = [(row["b"], row["measure"], row["group"]) for row in made.comparisons]
    assert compared.count(("doc-arc", "f1", "")) == compared.count(("doc-arc", "word_f1", "top 1%")) == 1


@pytest.mark.parametrize("tags", [[["O"]], [["O", "O", "X"], ["O"] * 3], "O", [1], None])
def test_tags_of_ones_own_that_do_not_fit_are_refused(written, tmp_path: Path, tags: Any) -> None:
    run, _ = written
    rows = [{"item": "b", "tags": [["O", "O"]]}, {"item": "a", "tags": tags}]
    rows.append({"item": "c", "tags": [["O"] * 4]})
    (tmp_path / "mine.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(DataError, match=r"mine\.jsonl:2: field tags: no tags of 2 sentences of 3, 3 words; "):
        add_predictions(run, tmp_path / "mine.jsonl")


def test_the_top_entities_are_frequent_here_and_rare_elsewhere(written) -> None:
    """Of 7 documents Sul is in 2, Dram in 2, Orn in 2, Vale in 1: 1.6 log 3.5 and once log 7, log 3.5."""
    _, by_hand = written
    first, second = by_hand.tables["top"][:2]
    assert (first["word"], first["labels"]) == ("Sul", ["LOC"])
    assert (second["word"], second["labels"]) == ("Vale", ["PER"])
    assert first["score"] == pytest.approx((1 + np.log10(4)) * np.log10(7 / 2))
    assert second["score"] == pytest.approx(np.log10(7))


def test_shares_are_of_all_labelled_words(written) -> None:
    _, by_hand = written
    shares = by_hand.tables["shares"]
    assert sum(row["words"] for row in shares) == 12
    assert sum(row["words"] * row["share"] for row in shares) == pytest.approx(5), "entities"


def test_weights_are_of_words_that_occur_more_than_once_with_seed_0(written, tmp_path: Path) -> None:
    _, by_hand = written
    columns = ("system", "bucket", "count", "mean")
    rows = [tuple(row[column] for column in columns) for row in by_hand.tables["weights"]]
    assert rows == [("doc-arc", 0, 1, 0.5), ("doc-arc", 1, 2, 0.25)]
    once = (*DOCUMENTS["test"][:2], tagged("c", ("Nobody came to Sul", "O O O B-LOC")))
    assert report_of(run_of(tmp_path, test=once)).tables["weights"] == []


# ---- what is shown


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
    assert [list(figure.data[0].mean) for figure in found[2:4]] == [[0.6, 0.2], [0.5]]
    assert [name.partition("<")[0] for name in found[2].layout.xaxis.ticktext] == ["0", "4-7"]
    shares, gains, _, _, sweep = found
    assert (list(shares.data[0].x), list(shares.data[0].y)) == ([25, 75], [12.5, 75])
    assert list(gains.data[0].y) == pytest.approx([2, 5])
    assert list(gains.data[0].error_y.array) == pytest.approx([10, 10])
    assert (list(sweep.data[0].x), list(sweep.data[0].y)) == ([2, 10], [56.25, 50])


# ---- sentences as they were tagged

HOSTILE = "<script>alert(1)</script>"
SENTENCES = (("Orn met Orn", "B-PER O B-PER"), (f"He met {HOSTILE}", None), ("Orn slept", "B-PER O"))
DOCUMENT = tagged("a", *SENTENCES)


@dataclass(frozen=True, kw_only=True)
class UntrainedRun(TaggingRun):
    """A run without training, whose taggers tag all words as `tag`."""

    tag: str

    def load(self, training: TagTraining) -> Tagger:
        tagger = self.new(training)
        tagger.model.classifier.bias.data[self.taggers.tags.index(self.tag)] = 100
        return tagger


def untrained(folder: Path, name: str, *, tag: str = "B-PER") -> UntrainedRun:
    sizes = {"occurrences": 3, "layers": 1, "hidden_size": 4, "most_tokens": 24}
    settings = Settings(run_folder=str(folder), systems=name, **sizes)
    taggers = Taggers(settings=settings, labels=("PER",), cache=folder)
    return UntrainedRun(settings=settings, corpus=TaggedCorpus(documents={}), taggers=taggers, tag=tag)


SHARES = [[0.5, 0.25, 0.25], [0.75, 0.25, 0], [0.25, 0.5, 0.25], [0.125, 0.25, 0.625], [1, 0, 0]]


def predictions_of(
    document: TaggedDocument, tags: list[int], shares: list[list[float]] | None = None
) -> TagPredictions:
    """Make predictions; tag 1 = a person; with `shares`, the attention weights, K is 3."""
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


def test_the_page_has_sentences_with_spans_and_no_scripts(tmp_path: Path) -> None:
    plain, run = (f"Silence {HOSTILE}", "O O"), untrained(tmp_path, "doc-arc")

    def page(document: TaggedDocument, *given: list) -> str:
        assert tags_in_place(run, {run.shown.key: {"dev": predictions_of(document, *given)}}).children
        return (tmp_path / "tagged.html").read_text()

    shown = page(tagged(HOSTILE, *SENTENCES, plain), [1, 0, 0, 1, 1, 0, 0], [*SHARES, [1, 0, 0], [1, 0, 0]])
    assert "slept" in shown
    assert "Silence" not in shown
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "Silence" in page(tagged("q", plain), [0, 0]), "where no sentence has a span, all are shown"
