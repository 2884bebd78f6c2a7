"""Notebook 09's experiment on a handful of questions: trained, ranked, ranked anew, scored, read, resumed."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cdlm_lab.examples.candidates import fixed_order, top_k
from cdlm_lab.experiments import answer_selection
from cdlm_lab.experiments import answer_selection as answer_latency
from cdlm_lab.experiments.answer_selection import (
    ANSWER_SYSTEMS,
    PARAMETERS,
    AnswerCorpus,
    AnswerModels,
    AnswerRun,
    AnswerSettings,
    diagnoses,
    facts,
    group_preview,
    measured_latencies,
    own_ranking,
    prepare_answers,
    rank_answers,
    rankings_in_place,
    score_answers,
    write_answer_report,
)
from cdlm_lab.experiments.runs import FineTuning
from cdlm_lab.metrics.ranking import mean_average_precision
from cdlm_lab.models.joint import load_paragraph_model, save_paragraph_model
from cdlm_lab.models.precision import precision_told
from cdlm_lab.parameters import ParameterError
from cdlm_lab.report import open_run, read_report

K = 3
NAMES = ("pairwise", "mspp-ie")


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> AnswerSettings:
    """Nine questions to learn from, and what notebook 08 leaves, but not trained."""
    folder = tmp_path_factory.mktemp("mspp")
    models = AnswerModels(
        systems=" ".join(NAMES),
        candidates=K,
        sentence_length=12,
        pairwise_length=12,
        mspp=str(folder),
    )
    head = replace(models.head_of(ANSWER_SYSTEMS["mspp-ie"]), length=16)
    save_paragraph_model(*load_paragraph_model("storyworld/longformer", head=head, seed=7), folder / "model")
    return AnswerSettings(
        corpus=AnswerCorpus(train_stories=3, held_out_stories=2),
        models=models,
        training=FineTuning(seeds=2, epochs=2, batch_size=16, micro_batch_size=8),
    )


@pytest.fixture(scope="module")
def finished(settings: AnswerSettings, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("runs") / "answers"
    opened = open_run(folder, name="answer selection", parameters=settings.parameters)
    run = prepare_answers(settings, opened.folder)
    found = rank_answers(run)
    write_answer_report(
        run, opened, found, diagnosed=diagnoses(run, found), latencies=measured_latencies(run)
    )
    return run, found


def judged(run, name: str, seed: int) -> list[dict]:
    """The records of evaluations."""
    file = run.folder_of(ANSWER_SYSTEMS[name], seed) / "training" / "history.jsonl"
    records = [json.loads(line) for line in file.read_text().splitlines()]
    return [record for record in records if "eval_judged" in record]


def test_dropout_is_that_of_the_encoder_or_as_given(settings: AnswerSettings, tmp_path: Path) -> None:
    # The encoder that comes with the project has 0 of both.
    for dropout, attention, expected in ((None, "checkpoint", (0.0, 0.0)), (0.25, 0.1, (0.25, 0.1))):
        training = replace(settings.training, dropout=dropout, attention_dropout=attention)
        given = replace(settings, training=training)
        run = AnswerRun(settings=given, splits={}, folder=tmp_path)
        for system in run.systems:
            config = run.ranker(system, 0, trained=False).model.config
            assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == expected


def test_each_system_ranks_every_candidate_with_each_seed(finished) -> None:
    run, found = finished
    assert list(found) == [(name, seed) for name in NAMES for seed in (0, 1)]
    for (name, _), of_split in found.items():
        for split, ranked in of_split.items():
            assert [one.id for one in ranked.every.sets] == [one.id for one in run.sets(split)]
            assert np.isfinite(np.concatenate(ranked.every.scores)).all()
            assert (ranked.best is None) == (name == "pairwise")


def test_joint_systems_rank_the_best_of_pairwise_anew(finished) -> None:
    run, found = finished
    for (name, seed), of_split in found.items():
        for split in ("dev", "test"):
            if name == "pairwise":
                continue
            pairwise = found["pairwise", seed][split].every
            for one, best, scores in zip(
                run.sets(split), of_split[split].best.scores, pairwise.scores, strict=True
            ):
                read = np.flatnonzero(~np.isnan(best))
                expected = top_k(scores, fixed_order(one.candidates, key=one.id), k=K)
                assert set(read) == set(expected.tolist())


def test_the_pass_with_the_highest_map_on_dev_is_kept(finished) -> None:
    run, found = finished
    for name, seed in found:
        passes = judged(run, name, seed)
        assert len(passes) == 2
        kept = mean_average_precision(found[name, seed]["dev"].every.groups())
        assert kept == pytest.approx(max(one["eval_judged"] for one in passes))


def test_a_pass_is_over_pairs_or_groups(finished) -> None:
    run, _ = finished
    sizes = [len(one.candidates) for one in run.sets("train")]
    pairwise, joint = (ANSWER_SYSTEMS[name] for name in ("pairwise", "mspp-ie"))
    assert run.examples_of(pairwise, "train") == sum(sizes)
    assert run.examples_of(joint, "train") == sum(-(-size // K) for size in sizes)
    config = run.config_of(pairwise, 1)
    assert config.steps == 2 * (sum(sizes) // 16)
    assert (config.seed, config.weight_decay, config.evaluate_every) == (1, 0.01, sum(sizes) // 16)


def test_what_is_finished_is_not_trained_again(finished, monkeypatch: pytest.MonkeyPatch) -> None:
    run, found = finished
    monkeypatch.setattr(answer_selection, "fine_tune", None)  # calling it would fail
    assert_same(rank_answers(run), found)
    for file in ("test.jsonl", "test_reranked.jsonl"):
        kept = run.folder_of(ANSWER_SYSTEMS["mspp-ie"], 1) / file
        kept.rename(run.folder / "aside")
        assert_same(rank_answers(run), found)
        assert kept.is_file()
        (run.folder / "aside").unlink()
    monkeypatch.setattr(answer_selection, "new_ranker", None)
    assert_same(rank_answers(run), found)  # no model is loaded


def assert_same(again, found) -> None:
    assert list(again) == list(found)
    for key, of_split in found.items():
        for split, ranked in of_split.items():
            for kind in ("every", "best"):
                one, other = getattr(ranked, kind), getattr(again[key][split], kind)
                if one is None:
                    assert other is None
                else:
                    np.testing.assert_allclose(
                        np.concatenate(other.scores), np.concatenate(one.scores), atol=1e-5
                    )


def test_predictions_of_other_questions_are_refused(finished) -> None:
    run, _ = finished
    splits = run.splits | {"test": replace(run.splits["test"], sets=run.sets("test")[::-1])}
    with pytest.raises(ValueError, match=r"test\.jsonl is of other questions"):
        rank_answers(replace(run, splits=splits))


def test_the_report_is_written_from_what_was_found(finished) -> None:
    run, found = finished
    report = read_report(run.folder)
    of_seeds = [mean_average_precision(found["mspp-ie", seed]["test"].every.groups()) for seed in (0, 1)]
    score = report.scores["mspp-ie/all/test/map"]
    assert score["value"] == pytest.approx(np.mean(of_seeds))
    assert score["deviation"] == pytest.approx(np.std(of_seeds, ddof=1))
    assert report.data["questions"] == {split: len(run.sets(split)) for split in run.splits}
    assert {(row["system"], row["seed"]) for row in report.tables["diagnosis"]} == {
        (name, seed) for name in NAMES[1:] for seed in (0, 1)
    }
    assert [row["system"] for row in report.tables["latency"]] == ["pairwise", "MSPP IE_k"]


def test_latencies_are_measured_once(finished, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = finished
    measured = measured_latencies(run)
    monkeypatch.setattr(answer_latency, "_measured", None)
    assert measured_latencies(run) == measured
    assert all(one.runs == answer_latency.RUNS for one in measured)


def test_what_a_person_reads_before_the_start(finished) -> None:
    run, _ = finished
    told = dict(facts(run))
    assert told["precision of training"] == precision_told("auto")
    assert told["train"].startswith(f"{len(run.sets('train'))} questions with ")
    assert (
        told["training pairwise"]
        .split("; ")[1]
        .startswith(f"{run.examples_of(ANSWER_SYSTEMS['pairwise'], 'train')} pairs of about ")
    )
    assert "times 2 (systems and seeds)" in told["training pairwise"]
    assert "times 2 (systems and seeds)" in told["training joint"]
    assert told["MSPP IE_k: pretrained with"] == "3 candidates of 16 tokens, strided positions, linear head"
    assert all(
        parameter.grad is None for one in run.untrained.values() for parameter in one.model.parameters()
    )


def test_the_preview_shows_a_group(finished) -> None:
    run, _ = finished
    html = group_preview(run)
    system, config = run.systems[1], run.config_of(run.systems[1], 0)
    examples = run.untrained[system.name].training_examples(
        run.sets("train"), size=config.steps * config.batch_size, seed=0
    )
    number, members = examples.owner(0)
    assert run.sets("train")[number].question[:20] in html
    assert html.count("<tr") == 2 + len(members)
    right = sum(run.sets("train")[number].correct[member] for member in members)
    assert html.count(">right<") == right
    assert "0&ndash;" in html
    assert f">{12 * len(members)}&ndash;" in html, "strided positions"


def test_questions_are_leafed_through_and_those_that_changed_are_on_pages(finished) -> None:
    run, found = finished
    box = rankings_in_place(run, found)
    assert box.children
    pages = list((run.folder / "changed").glob("*.html"))
    assert {page.stem for page in pages} <= set(NAMES[1:])


def test_a_question_of_ones_own_is_ranked_by_every_system(finished) -> None:
    run, _ = finished
    answer = own_ranking(run)
    html = answer("Where is <b>?", ["In a town.", "He <i> left.", "In a town."])
    for system in run.systems:
        assert system.label in html
    assert html.count("In a town.") == 2
    assert "&lt;i&gt;" in html
    assert "Where is &lt;b&gt;?" in (run.folder / "own_question.html").read_text()
    assert answer("Who?", ["One."]).count("100%") == 0


def test_what_cannot_be_is_said_before_anything_is_read(settings: AnswerSettings, tmp_path: Path) -> None:
    def prepare(**changes):
        part = "models" if hasattr(settings.models, next(iter(changes))) else "training"
        return prepare_answers(
            replace(settings, **{part: replace(getattr(settings, part), **changes)}), tmp_path
        )

    with pytest.raises(ParameterError, match="mspp is 'nowhere', where there is no model"):
        prepare(mspp="nowhere")
    with pytest.raises(ValueError, match="reads 512 tokens, but the sentences may have 800 together"):
        prepare(sentence_length=200)
    with pytest.raises(ParameterError, match="must be a multiple of micro_batch_size"):
        prepare(micro_batch_size=3)
    elsewhere = replace(
        settings,
        corpus=AnswerCorpus(corpus=str(tmp_path)),
        models=replace(settings.models, mspp=""),
    )
    with pytest.raises(ParameterError, match='mspp is ""; give a run folder'):
        prepare_answers(elsewhere, tmp_path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": 0}, "seeds is 0; it must be at least 1"),
        ({"patience": -1}, "patience is -1; it must be at least 0"),
        ({"learning_rate": "2e-6"}, "learning_rate is the text '2e-6', not a number"),
    ],
)
def test_values_that_cannot_be(given: dict, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        FineTuning(**given)


def test_parameters_are_those_of_all_parts() -> None:
    assert {"run_folder", "corpus", "systems", "patience", "own_question"} <= set(PARAMETERS)
    assert {"parallel", "workers"} <= set(PARAMETERS)
    assert len(PARAMETERS) == len(set(PARAMETERS))


def test_scores_do_not_depend_on_the_batch_they_were_read_in(finished) -> None:
    run, found = finished
    ranker = run.ranker(ANSWER_SYSTEMS["mspp-ie"], 0, trained=True)
    sets, kept = run.sets("test")[:2], found["mspp-ie", 0]["test"].every.scores[:2]
    alone, together = (score_answers(ranker, sets, batch_size=size).scores for size in (1, 8))
    for one, other, of_run in zip(alone, together, kept, strict=True):
        assert one == pytest.approx(other, abs=1e-4)
        assert one == pytest.approx(of_run, abs=0.05), "the run read in its own precision"
