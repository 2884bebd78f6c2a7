"""What notebook 08 tells before the start, and the tables and figures of its report."""

from dataclasses import replace
from pathlib import Path

import pytest

from cdlm_lab.experiments.paragraph_pretraining import (
    ParagraphCorpus,
    ParagraphRun,
    ParagraphSettings,
    ParagraphTask,
    ParagraphTraining,
    cost_of_training,
    facts,
    losses_figure,
    measure,
    prepare_paragraphs,
    pretrain,
    score_rows,
    write_paragraph_report,
)
from cdlm_lab.models.precision import precision_told
from cdlm_lab.report import Report, open_run, read_report
from cdlm_lab.scores import rows_of_names

SETTINGS = ParagraphSettings(
    corpus=ParagraphCorpus(train_clusters=3, held_out_clusters=2),
    task=ParagraphTask(sentence_length=10),
    training=ParagraphTraining(
        steps=3, batch_size=2, micro_batch_size=1, warmup_steps=1, evaluate_every=2, seed=5
    ),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ParagraphRun:
    """Not to be trained."""
    return prepare_paragraphs(SETTINGS, cache_folder=tmp_path_factory.mktemp("cache"))


def test_facts_say_what_is_read_and_what_is_lost(run: ParagraphRun) -> None:
    told = dict(facts(run))
    assert told["precision"] == precision_told("auto")
    train, test = run.splits["train"], run.splits["test"]
    assert told["for training"].startswith(f"{train.counts.documents_kept} documents with sentences: ")
    assert f"{train.examples.counts.sources} of them long enough" in told["for training"]
    assert told["test"].endswith(f"; {len(test.examples)} examples")
    assert told["wrong candidates"] == "each document has 2 or more sentences in other paragraphs"
    cut = [n for index in range(6) for n in train.examples.describe(index).sequence.cut]
    read = sum(len(train.examples[index]["input_ids"]) - 6 for index in range(6))
    share = sum(n > 0 for n in cut) / 36
    assert told["too long"] == (
        f"{share:.0%} of the sentences are cut to 10 tokens, which takes {sum(cut) / (sum(cut) + read):.0%} "
        "of the text"
    )
    assert told["training"].startswith("3 steps of 2 examples, each of about 6")
    assert f"{6 / train.examples.counts.sources:.1f} times each paragraph" in told["training"]


def test_documents_without_sentences_are_counted(tmp_path: Path) -> None:
    texts = [
        f"{name} roofs were sold today. {name} owners are content.\n{name} cellars stand empty. Nobody buys."
        for name in "abc"
    ]
    for cluster in ("c0", "c7", "c11"):  # a split each
        (tmp_path / "houses" / cluster).mkdir(parents=True)
        for number, text in enumerate([*texts, "Too short."]):
            (tmp_path / "houses" / cluster / f"{number}.txt").write_text(text, encoding="utf-8")
    (tmp_path / "houses" / "list.csv").write_text("a")
    houses = ParagraphCorpus(corpus=str(tmp_path / "houses"), train_clusters=0, held_out_clusters=0)
    settings = ParagraphSettings(corpus=houses, task=SETTINGS.task, training=SETTINGS.training)
    told = dict(facts(prepare_paragraphs(settings, cache_folder=tmp_path)))
    assert told["for training"] == (
        "3 documents with sentences (1 without): 6 paragraphs, 3 of them long enough to ask about, "
        "9 sentences"
    )
    assert told["files passed over"] == "1: list.csv"


def test_missing_hard_negatives_are_told(run: ParagraphRun, tmp_path: Path) -> None:
    task = ParagraphTask(sentence_length=10, same_document=30)
    short = ParagraphSettings(corpus=SETTINGS.corpus, task=task, training=SETTINGS.training)
    prepared = prepare_paragraphs(short, cache_folder=tmp_path)
    counts = prepared.splits["train"].examples.counts
    assert counts.short_of_hard > 0
    told = dict(facts(prepared))["wrong candidates"]
    assert told.startswith(f"{counts.short_of_hard / counts.sources:.0%} of these paragraphs")
    assert "fewer than 30 sentences elsewhere" in told


def test_cost_grows_with_what_is_asked(run: ParagraphRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdlm_lab.experiments.paragraph_pretraining.measured_rate", lambda precision: 1e9)
    cost = cost_of_training(run)
    mean = sum(len(run.splits["train"].examples[index]["input_ids"]) for index in range(6)) / 6
    assert cost.tokens == pytest.approx(mean)
    assert 15e6 < cost.memory_bytes < 1e8, "16 bytes for each of a million weights, and activations"
    held_out = 2 * len(run.splits["validation"].examples) + len(run.splits["test"].examples)
    forward = (cost.seconds - 3 * cost.step_seconds) / held_out
    # a step reads two examples, forward and backward, which is three to three and a half forwards
    assert 3 < cost.step_seconds / (2 * forward) < 3.6


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("runs") / "run"
    opened = open_run(folder, name="paragraph pretraining", parameters=SETTINGS.parameters)
    trained = prepare_paragraphs(SETTINGS, cache_folder=folder.parent / "cache")
    result = pretrain(trained, folder)
    write_paragraph_report(trained, opened, result, measure(trained))
    return read_report(folder)


def test_the_report_has_scores_and_where_they_come_from(report: Report, run: ParagraphRun) -> None:
    test = run.splits["test"]
    assert report.seed == 5
    assert report.scores["mspp/first"]["n"] == len(test.examples)
    assert report.scores["mspp/called"]["n"] == 5 * len(test.examples)
    assert report.scores["mspp/called"]["chance"] == pytest.approx(0.8)
    assert report.scores["best_step"]["value"] in (2, 3)
    assert report.data["checksums"]["test"] == test.checksum
    assert report.data["documents"]["train"] == run.splits["train"].counts.documents_kept
    assert report.data["right"] == 0.2
    assert report.data["precision"] == precision_told("auto")
    assert 0 < report.data["share_of_text_cut"] < 1
    assert {record["step"] for record in report.tables["history"]} == {1, 2, 3}


def score(value: float, n: int, chance: float | None = None) -> dict:
    return {"value": value, "low": value - 0.1, "high": value + 0.1, "n": n, "chance": chance}


def test_rows_are_the_numbers_of_the_report(report: Report) -> None:
    by_hand = {
        "mspp/called": score(0.75, 1000, 0.8),
        "mspp/called/other document": score(0.5, 400),
        "mspp/first": score(0.3, 200, 0.2),
        "mlm/perplexity": {"value": 12.345, "low": 11.0, "high": 14.0, "n": 5000, "chance": None},
    }
    changed = replace(report, rows=rows_of_names("", by_hand, parameters={}, tables={}))
    assert score_rows(changed) == [
        ["candidates called as they are", "75.0% [65.0%, 85.0%]", "80%", "1,000"],
        ["&emsp;of other documents", "50.0% [40.0%, 60.0%]", "", "400"],
        ["one of the same paragraph is ranked first", "30.0% [20.0%, 40.0%]", "20%", "200"],
        ["perplexity of masked tokens", "12.35 [11.00, 14.00]", "", "5,000"],
    ]


def test_every_score_has_a_row(report: Report) -> None:
    assert len(score_rows(report)) == 8
    assert sum(name.startswith(("mspp/", "mlm/")) for name in report.scores) == 8


def test_the_figure_has_both_losses(report: Report) -> None:
    figure = losses_figure(report)
    training, validation, *_ = figure.data
    assert list(training.x) == [1, 2, 3]
    assert list(validation.x) == [2, 3]
    assert len(figure.data) == 4
    first = next(one for one in report.tables["history"] if one["step"] == 2 and "eval_loss" in one)
    assert figure.data[3].y[0] == pytest.approx(first["eval_loss_mspp"], abs=1e-3)
    assert any("20%" in one.text for one in figure.layout.annotations), "what guessing gives"
